"""Errors as Messages servers write them, in a stream or as a body, both ways."""

import re
from typing import Any

from attrs import evolve

from pipeline.errors import STATUS, ErrorKind
from pipeline.events import StreamError
from pipeline.failure import failure, status_told
from pipeline.unread import says

KINDS: dict[str, ErrorKind] = {
    "invalid_request_error": ErrorKind.INVALID_REQUEST,
    "authentication_error": ErrorKind.AUTHENTICATION,
    "billing_error": ErrorKind.BILLING,
    "permission_error": ErrorKind.PERMISSION,
    "not_found_error": ErrorKind.NOT_FOUND,
    "request_too_large": ErrorKind.REQUEST_TOO_LARGE,
    "rate_limit_error": ErrorKind.RATE_LIMIT,
    "timeout_error": ErrorKind.TIMEOUT,
    "overloaded_error": ErrorKind.OVERLOADED,
    "api_error": ErrorKind.API,
    "accessdeniedexception": ErrorKind.PERMISSION,  # these are Bedrock's, whose exceptions come as errors
    "internalserverexception": ErrorKind.API,
    "modelstreamerrorexception": ErrorKind.API,
    "modeltimeoutexception": ErrorKind.TIMEOUT,
    "serviceunavailableexception": ErrorKind.OVERLOADED,
    "throttlingexception": ErrorKind.RATE_LIMIT,
    "validationexception": ErrorKind.INVALID_REQUEST,
    "exceed_context_size_error": ErrorKind.CONTEXT_LENGTH,  # llama.cpp's
    "context_length_exceeded": ErrorKind.CONTEXT_LENGTH,  # these come from gateways that speak OpenAI's words too
    "insufficient_quota": ErrorKind.QUOTA,
    "rate_limit_exceeded": ErrorKind.RATE_LIMIT,
    "server_is_overloaded": ErrorKind.OVERLOADED,
}
"""Words of `type` and `code`, in lower case. What is not among them goes by its number, else it is the provider's."""

TOO_LONG = re.compile(r"prompt is too long|exceed context limit", re.IGNORECASE)
"""What an invalid request says that the model cannot take, in the words that clients look for; it has no type of its
own."""

_TOO_LONG = "prompt is too long"
"""The words at which Claude Code compacts the conversation."""

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
    message = error.message or "the upstream failed"
    if error.kind is ErrorKind.CONTEXT_LENGTH and not TOO_LONG.search(message):
        message = f"{_TOO_LONG}: {message}"
    told: dict[str, Any] = {"type": TYPES[error.kind], "message": message}
    if error.code in DETAILED:
        told["details"] = {"error_code": error.code}
    return {"type": "error", "error": told}


def keeps(body: Any, status: int) -> int:
    """The status of a body that clients read as it came: an error with its type and message; else 0."""
    error = body.get("error") if isinstance(body, dict) and body.get("type") == "error" else None
    told = isinstance(error, dict) and isinstance(error.get("type"), str) and isinstance(error.get("message"), str)
    return status if told else 0


STATUSES: dict[ErrorKind, int] = {**STATUS, ErrorKind.QUOTA: STATUS[ErrorKind.BILLING]}
"""The HTTP status of each class: that of its type. At that of a rate that is exceeded the SDK would ask again."""


def status_of(error: StreamError, status: int) -> int:
    """The HTTP status of an error. `status` is the upstream's, 0 if it did not answer with one.

    The upstream's stands, since clients act on it; but not where it says that another time may go better and the error
    does not, and an overloaded upstream is told by 529 in this API.
    """
    due = STATUSES[error.kind]
    return due if error.kind is ErrorKind.OVERLOADED else status_told(error, status, due)


def error_in(event: Any, name: bytes = b"") -> StreamError | None:
    """The error that a payload is, or None. `name` is its event's.

    Read are the `error` event, an error object without a type, a flat error, a bare body (`message`, `detail`), and
    whatever comes under the event name `error`.
    """
    if isinstance(event, list) and (found := next(filter(None, map(error_in, event)), None)) is not None:
        return found
    if not isinstance(event, dict):
        return failure(event, {}, KINDS) if event and name == b"error" else None
    kind = event.get("type")
    if kind == "error" or event.get("error"):
        return _detailed(event.get("error") or {**event, "type": None}, event)
    bare = kind is None and (event.get("message") or event.get("detail"))
    if (bare and not isinstance(bare, dict)) or name == b"error":
        return _detailed(event, event)
    return None


def error_of(body: Any) -> StreamError | None:
    """The error that a whole answer is, or None: what calls itself one is one, also beside content; else one that has
    content is an answer."""
    if isinstance(body, dict) and "content" in body and body.get("type") != "error":
        return error_in(body) if says(body.get("error")) and not says(body["content"]) else None
    return error_in(body)


def _detailed(error: Any, around: dict[str, Any]) -> StreamError:
    """An error object, with the code that its details tell: it is more stable than the type."""
    found = failure(error, around, KINDS)
    details = error.get("details") if isinstance(error, dict) else None
    code = details.get("error_code") if isinstance(details, dict) else None
    if isinstance(code, str) and code:
        found = evolve(found, code=code)
    return found
