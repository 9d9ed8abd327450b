"""Errors as Chat servers write them, in a stream or as a body."""

from collections.abc import Mapping
from typing import Any

from pipeline.errors import RETRYABLE, ErrorKind, kind_of_status
from pipeline.events import StreamError

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
}
"""Words of `type`, `code` and `status`, in lower case. What is not among them goes by its number, else it is the
provider's."""

FAILED_FINISH: dict[str, ErrorKind] = {
    "error": ErrorKind.API,
    "network_error": ErrorKind.API,
    "abort": ErrorKind.API,
    "insufficient_system_resource": ErrorKind.OVERLOADED,
}
"""Finish reasons that are failures (DeepSeek, Zhipu, OpenRouter, Mistral, SGLang)."""


def error_in(chunk: Any, name: bytes = b"") -> StreamError | None:
    """The error that a payload is, or None. `name` is its event's.

    Read are OpenAI's `{"error": {...}}`, the same with a string (xAI, Fireworks) or in an array (Gemini), the old
    `{"object": "error", ...}` of vLLM and Mistral, Anthropic's shape, MiniMax's `base_resp`, and whatever comes under
    the event name `error` (Groq) or without choices but with a message.
    """
    if isinstance(chunk, list):
        return next((found for item in chunk if (found := error_in(item)) is not None), None)
    if not isinstance(chunk, dict):
        return None
    if error := chunk.get("error"):
        return _error(error, chunk)
    if chunk.get("object") == "error" or (name == b"error" and not chunk.get("choices")):
        return _error(chunk, chunk)
    status = chunk.get("base_resp")
    if isinstance(status, dict) and status.get("status_code"):
        return _made(status.get("status_msg"), (), status.get("status_code"))
    if "choices" not in chunk and "usage" not in chunk:
        if (several := chunk.get("errors")) and isinstance(several, list):
            return _error(several, chunk)
        if (message := chunk.get("detail") or chunk.get("message")) and not isinstance(message, dict):
            return _error({**chunk, "message": message}, chunk)
    return None


def failed_finish(reason: str) -> StreamError | None:
    """The error that a finish reason is, or None."""
    kind = FAILED_FINISH.get(reason)
    if kind is None:
        return None
    return StreamError(kind, f"the upstream ended with finish reason {reason!r}", reason, kind in RETRYABLE)


def _error(error: Any, around: Mapping[str, Any]) -> StreamError:
    if isinstance(error, list):
        error = error[0]
    if not isinstance(error, dict):
        return _made(error, (around.get("type"),), around.get("code"))
    words = (error.get("code"), error.get("type"), error.get("status"))
    return _made(error.get("message") or error.get("detail"), words, error.get("code") or error.get("status_code"))


def _made(message: Any, words: tuple[Any, ...], code: Any) -> StreamError:
    named = [word for word in words if isinstance(word, str) and word]
    kind = next((found for word in named if (found := KINDS.get(word.lower())) is not None), None)
    number = code if isinstance(code, int) else int(code) if isinstance(code, str) and code.isdecimal() else 0
    if kind is None:
        kind = kind_of_status(number) if 400 <= number < 600 else ErrorKind.API
    text = _message(message) or (f"the upstream failed: {named[0]}" if named else "the upstream failed")
    return StreamError(kind, text, str(code) if code else "".join(named[:1]), kind in RETRYABLE)


def _message(message: Any) -> str:
    """A message as text: FastAPI's `detail` is a list of objects."""
    if isinstance(message, str):
        return message
    if isinstance(message, list):
        return "; ".join(filter(None, map(_message, message)))
    if isinstance(message, dict):
        return _message(message.get("message") or message.get("msg"))
    return ""
