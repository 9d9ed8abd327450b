"""Errors as Messages servers write them."""

from typing import Any

from pipeline.errors import STATUS, ErrorKind
from pipeline.events import StreamError

TYPES: dict[ErrorKind, str] = {
    ErrorKind.INVALID_REQUEST: "invalid_request_error",
    ErrorKind.AUTHENTICATION: "authentication_error",
    ErrorKind.BILLING: "billing_error",
    ErrorKind.PERMISSION: "permission_error",
    ErrorKind.NOT_FOUND: "not_found_error",
    ErrorKind.REQUEST_TOO_LARGE: "request_too_large",
    ErrorKind.CONTEXT_LENGTH: "invalid_request_error",
    ErrorKind.RATE_LIMIT: "rate_limit_error",
    ErrorKind.QUOTA: "billing_error",
    ErrorKind.OVERLOADED: "overloaded_error",
    ErrorKind.TIMEOUT: "timeout_error",
    ErrorKind.API: "api_error",
    ErrorKind.CUT: "api_error",
    ErrorKind.INVALID_RESPONSE: "api_error",
    ErrorKind.INVALID_TOOL_ARGUMENTS: "api_error",
    ErrorKind.LIMIT: "api_error",
    ErrorKind.INTERNAL: "api_error",
}
"""The error type of each class."""

DETAILED = frozenset({"thread_not_found"})
"""The codes that a client looks for: at this one the SDK sends the whole conversation instead."""


def error_body(error: StreamError) -> dict[str, Any]:
    """The body of an error, the same in a stream and as an HTTP answer."""
    told: dict[str, Any] = {"type": TYPES[error.kind], "message": error.message or "the upstream failed"}
    if error.code in DETAILED:
        told["details"] = {"error_code": error.code}
    return {"type": "error", "error": told}


def status_of(error: StreamError, status: int) -> int:
    """The HTTP status of an error. `status` is the upstream's, 0 if it did not answer with one.

    The upstream's stands, since clients act on it; but an overloaded upstream is told by 529 in this API, and a status
    that is no error's (a redirection) by that of the class.
    """
    if error.kind is ErrorKind.OVERLOADED or not 400 <= status < 600:
        return STATUS[error.kind]
    return status
