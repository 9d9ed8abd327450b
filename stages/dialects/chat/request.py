"""Requests in this dialect: `parse` reads one, `build` writes one."""

from stages.dialects.chat.request_build import build
from stages.dialects.chat.request_parse import parse

__all__ = ["build", "parse"]
