"""Errors as Responses servers write them: in a stream, in a response that failed, as a body; and as clients act on
them."""

from collections.abc import Mapping
from typing import Any

from pipeline.errors import STATUS, ErrorKind
from pipeline.events import StreamError
from pipeline.failure import code_of, failure, is_told, status_told

IMAGE_CODES = (
    "invalid_image",
    "invalid_image_format",
    "invalid_base64_image",
    "invalid_image_url",
    "image_too_large",
    "image_too_small",
    "image_parse_error",
    "image_content_policy_violation",
    "invalid_image_mode",
    "image_file_too_large",
    "unsupported_image_media_type",
    "empty_image_file",
    "failed_to_download_image",
    "image_file_not_found",
)

KINDS: dict[str, ErrorKind] = {
    "authentication_error": ErrorKind.AUTHENTICATION,
    "invalid_api_key": ErrorKind.AUTHENTICATION,
    "token_expired": ErrorKind.AUTHENTICATION,
    "permission_error": ErrorKind.PERMISSION,
    "bio_policy": ErrorKind.PERMISSION,
    "cyber_policy": ErrorKind.PERMISSION,
    "misalignment_policy_violation": ErrorKind.PERMISSION,
    "data_residency_mismatch": ErrorKind.PERMISSION,
    "not_found_error": ErrorKind.NOT_FOUND,
    "model_not_found": ErrorKind.NOT_FOUND,
    "previous_response_not_found": ErrorKind.NOT_FOUND,
    "invalid_request_error": ErrorKind.INVALID_REQUEST,
    "invalid_prompt": ErrorKind.INVALID_REQUEST,
    "context_length_exceeded": ErrorKind.CONTEXT_LENGTH,
    "exceed_context_size_error": ErrorKind.CONTEXT_LENGTH,  # llama.cpp's
    "too_many_prompt_tokens": ErrorKind.CONTEXT_LENGTH,  # Perplexity's
    "request_too_large": ErrorKind.REQUEST_TOO_LARGE,
    "rate_limit_exceeded": ErrorKind.RATE_LIMIT,
    "rate_limit_error": ErrorKind.RATE_LIMIT,
    "too_many_requests": ErrorKind.RATE_LIMIT,
    "insufficient_quota": ErrorKind.QUOTA,
    "usage_limit_reached": ErrorKind.QUOTA,
    "usage_not_included": ErrorKind.QUOTA,
    "billing_error": ErrorKind.BILLING,
    "billing_hard_limit_reached": ErrorKind.BILLING,
    "server_is_overloaded": ErrorKind.OVERLOADED,
    "slow_down": ErrorKind.OVERLOADED,
    "overloaded_error": ErrorKind.OVERLOADED,
    "engine_overloaded_error": ErrorKind.OVERLOADED,
    "vector_store_timeout": ErrorKind.TIMEOUT,
    "timeout_error": ErrorKind.TIMEOUT,
    "server_error": ErrorKind.API,
    **dict.fromkeys(IMAGE_CODES, ErrorKind.INVALID_REQUEST),
}
"""Words of `code` and `type`, in lower case. What is not among them goes by its number, else it is the provider's."""

TYPES: dict[ErrorKind, str] = {
    ErrorKind.AUTHENTICATION: "authentication_error",
    ErrorKind.PERMISSION: "permission_error",
    ErrorKind.NOT_FOUND: "not_found_error",
    ErrorKind.BILLING: "insufficient_quota",
    ErrorKind.QUOTA: "insufficient_quota",
    ErrorKind.RATE_LIMIT: "rate_limit_error",
    ErrorKind.INVALID_REQUEST: "invalid_request_error",
    ErrorKind.REQUEST_TOO_LARGE: "invalid_request_error",
    ErrorKind.CONTEXT_LENGTH: "invalid_request_error",
}
"""The `type` of each class in an error body; a class that is not here is a `server_error`."""

CODES: dict[ErrorKind, str] = {
    ErrorKind.CONTEXT_LENGTH: "context_length_exceeded",
    ErrorKind.QUOTA: "insufficient_quota",
    ErrorKind.BILLING: "insufficient_quota",
    ErrorKind.RATE_LIMIT: "rate_limit_exceeded",
}
"""The code that makes Codex do what fits the class: compact, stop, or wait and retry. What may go better another time
is a `server_error`, which it retries; the rest is an `invalid_prompt`, which it does not."""

BODY_CODES = {
    **CODES,
    ErrorKind.OVERLOADED: "server_is_overloaded",
    ErrorKind.REQUEST_TOO_LARGE: "request_too_large",
}
"""The code in an HTTP error that clients know a class by, where the provider's own does not say it."""

KEPT = frozenset(
    {
        *IMAGE_CODES,
        "bio_policy",
        "context_length_exceeded",
        "cyber_policy",
        "data_residency_mismatch",
        "insufficient_quota",
        "invalid_prompt",
        "misalignment_policy_violation",
        "rate_limit_exceeded",
        "server_error",
        "usage_not_included",
        "vector_store_timeout",
    }
)
"""Codes that may stand in a response that failed; they are passed on as they come. Those of an overloaded server are
not: at them Codex gives up, though it is worth asking again."""


def error_in(event: Any, name: bytes = b"") -> StreamError | None:
    """The error that a payload is, or None. `name` is its event's.

    Read are the flat `error` event of the specification, the nested one of the real servers, an error object without a
    type, a bare body (`detail`, `message`) where no event stands, and whatever comes under the event name `error`.
    """
    if isinstance(event, list) and (found := next(filter(None, map(error_in, event)), None)) is not None:
        return found
    if not isinstance(event, dict):
        return failure(event, {}, KINDS) if event and name == b"error" else None
    kind = event.get("type")
    if kind in ("error", "response.error"):
        return failure(event.get("error") or {**event, "type": None}, event, KINDS)
    if isinstance(kind, str) and kind.startswith("response."):
        return None
    if error := event.get("error"):
        return failure(error, event, KINDS)
    bare = kind is None and "object" not in event and (event.get("detail") or event.get("message"))
    if bare or name == b"error":
        return failure({**event, "type": None}, event, KINDS)
    return None


def error_told(body: Any) -> StreamError | None:
    """The error that the body of an HTTP error tells: one of `error_in`, or the response that failed, also where it
    came in an event."""
    for event in body if isinstance(body, list) else (body,):
        response = event.get("response") if isinstance(event, dict) else None
        if isinstance(response, dict) and response.get("error"):
            return failed(response)
    return error_in(body)


def failed(response: Mapping[str, Any]) -> StreamError:
    """Why a response failed."""
    if error := response.get("error"):
        return failure(error, {}, KINDS)
    status = response.get("status")
    word = status if isinstance(status, str) else "failed"
    return StreamError(ErrorKind.API, f"the upstream ended the response as {word}", word, word != "cancelled")


def unfinished(status: str) -> StreamError:
    """A response that came whole is not at its end: it was asked for too early, or is a background's."""
    return StreamError(ErrorKind.CUT, f"the upstream's answer is not finished: it is {status}", status, True)


def error_body(error: StreamError) -> dict[str, Any]:
    """The body of an HTTP error. The provider's own code stands in it unless that says another class."""
    kind = TYPES.get(error.kind, "server_error")
    code = code_of(error, BODY_CODES, KINDS)
    message = error.message or "the upstream failed"
    return {"error": {"message": message, "type": kind, "param": error.param or None, "code": code or None}}


def keeps(body: Any, status: int) -> int:
    """The status of a body that clients read as it came: a whole error object, or, under a success, a response that
    says itself how it stands; else 0."""
    if isinstance(body, dict) and body.get("object") == "response" and isinstance(body.get("output"), list):
        return 200 if isinstance(body.get("status"), str) else 0
    return status if is_told(body) else 0


def status_of(error: StreamError, status: int) -> int:
    """The HTTP status of an error. `status` is the upstream's, 0 if it did not answer with one.

    The upstream's stands, since clients act on it; but an overloaded upstream is told by 503, at which Codex looks for
    the code, and a status that is no error's (a redirection) by that of the class.
    """
    if error.kind is ErrorKind.OVERLOADED:
        return 503
    return status_told(error, status, STATUS[error.kind])


def failed_error(error: StreamError) -> dict[str, Any]:
    """The `error` of a response that failed: a code that clients act on, and the message."""
    code = CODES.get(error.kind)
    if error.code in KEPT:
        code = error.code
    elif code is None:
        code = "server_error" if error.retryable else "invalid_prompt"
    return {"code": code, "message": error.message or "the upstream failed"}
