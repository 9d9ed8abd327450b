"""Requests in this dialect: `parse` reads one, `build` writes one."""

from stages.dialects.responses.request_build import build

__all__ = ["build"]
