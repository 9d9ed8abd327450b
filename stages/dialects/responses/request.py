"""Requests in this dialect: `parse` reads one, `build` writes one."""

from stages.dialects.responses.request_build import build
from stages.dialects.responses.request_parse import parse

__all__ = ["build", "parse"]
