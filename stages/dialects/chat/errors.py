"""Errors as Chat servers write them, in a stream or as a body."""

from collections.abc import Iterable, Mapping
from typing import Any

from pipeline.errors import RETRYABLE, STATUS, ErrorKind
from pipeline.events import StreamError
from pipeline.failure import code_of, failure, is_told, stated, status_told
from pipeline.ledger import Ledger

KINDS: dict[str, ErrorKind] = {
    "authentication_error": ErrorKind.AUTHENTICATION,
    "invalid_api_key": ErrorKind.AUTHENTICATION,
    "invalid_authentication_error": ErrorKind.AUTHENTICATION,
    "permission_error": ErrorKind.PERMISSION,
    "permission_denied": ErrorKind.PERMISSION,
    "not_found_error": ErrorKind.NOT_FOUND,
    "notfounderror": ErrorKind.NOT_FOUND,
    "model_not_found": ErrorKind.NOT_FOUND,
    "invalid_request_error": ErrorKind.INVALID_REQUEST,
    "badrequesterror": ErrorKind.INVALID_REQUEST,
    "invalid_argument": ErrorKind.INVALID_REQUEST,
    "context_length_exceeded": ErrorKind.CONTEXT_LENGTH,
    "exceed_context_size_error": ErrorKind.CONTEXT_LENGTH,  # llama.cpp's
    "too_many_prompt_tokens": ErrorKind.CONTEXT_LENGTH,  # Perplexity's
    "request_too_large": ErrorKind.REQUEST_TOO_LARGE,
    "rate_limit_exceeded": ErrorKind.RATE_LIMIT,
    "rate_limit_error": ErrorKind.RATE_LIMIT,
    "rate_limit_reached_error": ErrorKind.RATE_LIMIT,
    "ratelimiterror": ErrorKind.RATE_LIMIT,
    "resource_exhausted": ErrorKind.RATE_LIMIT,
    "too_many_requests": ErrorKind.RATE_LIMIT,
    "insufficient_quota": ErrorKind.QUOTA,
    "exceeded_current_quota_error": ErrorKind.QUOTA,
    "billing_error": ErrorKind.BILLING,
    "overloaded_error": ErrorKind.OVERLOADED,
    "engine_overloaded_error": ErrorKind.OVERLOADED,
    "server_is_overloaded": ErrorKind.OVERLOADED,
    "insufficient_system_resource": ErrorKind.OVERLOADED,
    "unavailable": ErrorKind.OVERLOADED,
    "timeout_error": ErrorKind.TIMEOUT,
    "deadline_exceeded": ErrorKind.TIMEOUT,
    "1000": ErrorKind.AUTHENTICATION,  # these numbers are Zhipu's (docs.z.ai, "Errors"); they come as text
    "1001": ErrorKind.AUTHENTICATION,
    "1002": ErrorKind.AUTHENTICATION,
    "1003": ErrorKind.AUTHENTICATION,
    "1004": ErrorKind.AUTHENTICATION,
    "1113": ErrorKind.QUOTA,
    "1210": ErrorKind.INVALID_REQUEST,
    "1211": ErrorKind.NOT_FOUND,
    "1220": ErrorKind.PERMISSION,
    "1301": ErrorKind.INVALID_REQUEST,
    "1302": ErrorKind.RATE_LIMIT,
    "1303": ErrorKind.RATE_LIMIT,
    "1305": ErrorKind.RATE_LIMIT,
}
"""Words of `type`, `code` and `status`, in lower case. What is not among them goes by its number, else it is the
provider's."""

STATUS_CODES: dict[int, ErrorKind] = {
    1001: ErrorKind.TIMEOUT,
    1002: ErrorKind.RATE_LIMIT,
    1004: ErrorKind.AUTHENTICATION,
    1008: ErrorKind.QUOTA,
    1039: ErrorKind.RATE_LIMIT,
    2013: ErrorKind.INVALID_REQUEST,
}
"""MiniMax's numbers (platform.minimax.io, "Error Codes"), in a member of their own."""

FAILED_FINISH: dict[str, ErrorKind] = {
    "error": ErrorKind.API,
    "network_error": ErrorKind.API,
    "abort": ErrorKind.API,
    "insufficient_system_resource": ErrorKind.OVERLOADED,
}
"""Finish reasons that are failures (DeepSeek, Zhipu, OpenRouter, Mistral, SGLang)."""

FAILING = frozenset({"error", "base_resp", "x_groq"})
"""Members of a chunk with choices in which an error may stand."""

TYPES: dict[ErrorKind, str] = {
    ErrorKind.AUTHENTICATION: "authentication_error",
    ErrorKind.PERMISSION: "permission_error",
    ErrorKind.NOT_FOUND: "not_found_error",
    ErrorKind.BILLING: "billing_error",
    ErrorKind.QUOTA: "insufficient_quota",
    ErrorKind.RATE_LIMIT: "rate_limit_error",
    ErrorKind.OVERLOADED: "overloaded_error",
    ErrorKind.TIMEOUT: "timeout_error",
    ErrorKind.INVALID_REQUEST: "invalid_request_error",
    ErrorKind.REQUEST_TOO_LARGE: "invalid_request_error",
    ErrorKind.CONTEXT_LENGTH: "invalid_request_error",
}
"""The `type` of each class that is written; a class that is not here is a `server_error`."""

CODES: dict[ErrorKind, str] = {
    ErrorKind.REQUEST_TOO_LARGE: "request_too_large",
    ErrorKind.CONTEXT_LENGTH: "context_length_exceeded",
    ErrorKind.QUOTA: "insufficient_quota",
    ErrorKind.RATE_LIMIT: "rate_limit_exceeded",
}
"""The code that clients know a class by, where the provider's own does not say it."""


def may_fail(chunk: Mapping[str, Any]) -> bool:
    """Whether an error may stand in a chunk with choices."""
    return not FAILING.isdisjoint(chunk) or chunk.get("object") == "error"


def error_in(chunk: Any, name: bytes = b"") -> StreamError | None:
    """The error that a payload is, or None. `name` is its event's.

    Read are OpenAI's `{"error": {...}}`, the same with a string (xAI, Fireworks) or in an array (Gemini), the old
    `{"object": "error", ...}` of vLLM and Mistral, Anthropic's shape, Groq's `x_groq`, MiniMax's `base_resp`, and
    whatever comes under the event name `error` (Groq) or without choices but with a message.
    """
    if isinstance(chunk, list) and (found := next(filter(None, map(error_in, chunk)), None)) is not None:
        return found
    if not isinstance(chunk, dict):
        return failure(chunk, {}, KINDS) if chunk and name == b"error" else None
    beside = chunk.get("x_groq")
    if error := chunk.get("error") or (beside.get("error") if isinstance(beside, dict) else None):
        return failure(error, chunk, KINDS)
    if chunk.get("object") == "error" or (name == b"error" and not chunk.get("choices")):
        return failure(chunk, chunk, KINDS)
    status = chunk.get("base_resp")
    if isinstance(status, dict) and (code := status.get("status_code")):
        kind = STATUS_CODES.get(code) if isinstance(code, int) else None
        return stated(status.get("status_msg"), (), code, KINDS, kind)
    if "choices" not in chunk and "usage" not in chunk:
        if (several := chunk.get("errors")) and isinstance(several, list):
            return failure(several, chunk, KINDS)
        if (message := chunk.get("detail") or chunk.get("message")) and not isinstance(message, dict):
            return failure({**chunk, "message": message}, chunk, KINDS)
    return None


def error_beside(choice: Any) -> StreamError | None:
    """The error that stands in a choice (OpenRouter), whatever finish it has, or None."""
    error = choice.get("error") if isinstance(choice, dict) else None
    return failure(error, {}, KINDS) if error else None


def failed_finish(reason: str) -> StreamError | None:
    """The error that a finish reason is, or None."""
    kind = FAILED_FINISH.get(reason)
    if kind is None:
        return None
    return StreamError(kind, f"the upstream ended with finish reason {reason!r}", reason, kind in RETRYABLE)


def note_late(names: Iterable[str], ledger: Ledger) -> None:
    """Record what was told so late that only an end would tell it, and there is none."""
    for name in names:
        ledger.record("ChatNormalizer", name, "dropped", "the answer failed")


def note_unfinished(reason: str, ledger: Ledger) -> None:
    """Record a finish that stands beside an error, and is none."""
    if reason and failed_finish(reason) is None:
        ledger.record("ChatNormalizer", "finish_reason", "dropped", "the answer failed")


def error_body(error: StreamError) -> dict[str, Any]:
    """The body of an error, the same in a stream and as an HTTP answer.

    Its words say the class. The provider's own code stands in it unless that says another class, or says none where
    there is a code that clients know.
    """
    code = code_of(error, CODES, KINDS)
    kind = TYPES.get(error.kind, "server_error")
    message = error.message or "the upstream failed"
    return {"error": {"message": message, "type": kind, "param": error.param or None, "code": code or None}}


def keeps(body: Any, status: int) -> int:
    """The status of a body that clients read as it came: a whole error object, and no chunk that holds one; else 0."""
    return status if is_told(body) and "choices" not in body else 0


def status_of(error: StreamError, status: int) -> int:
    """The HTTP status of an error. `status` is the upstream's, 0 if it did not answer with one.

    The upstream's stands, since clients act on it; but an overloaded upstream is told by 503 in this API, and a status
    that is no error's (a redirection) by that of the class.
    """
    if error.kind is ErrorKind.OVERLOADED:
        return 503
    return status_told(error, status, STATUS[error.kind])
