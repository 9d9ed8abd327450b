"""What can go wrong, and whose fault it is."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Self


class ErrorKind(StrEnum):
    """The classes of error. Each dialect has a table of how it writes them; `STATUS` and `RETRYABLE` hold for all."""

    INVALID_REQUEST = "invalid_request"
    AUTHENTICATION = "authentication"
    BILLING = "billing"
    PERMISSION = "permission"
    NOT_FOUND = "not_found"
    REQUEST_TOO_LARGE = "request_too_large"
    CONTEXT_LENGTH = "context_length"
    RATE_LIMIT = "rate_limit"
    QUOTA = "quota"
    OVERLOADED = "overloaded"
    TIMEOUT = "timeout"
    API = "api"
    CUT = "cut"
    INVALID_RESPONSE = "invalid_response"
    INVALID_TOOL_ARGUMENTS = "invalid_tool_arguments"
    LIMIT = "limit"
    INTERNAL = "internal"


STATUS: dict[ErrorKind, int] = {
    ErrorKind.INVALID_REQUEST: 400,
    ErrorKind.AUTHENTICATION: 401,
    ErrorKind.BILLING: 402,
    ErrorKind.PERMISSION: 403,
    ErrorKind.NOT_FOUND: 404,
    ErrorKind.REQUEST_TOO_LARGE: 413,
    ErrorKind.CONTEXT_LENGTH: 400,
    ErrorKind.RATE_LIMIT: 429,
    ErrorKind.QUOTA: 429,
    ErrorKind.OVERLOADED: 529,
    ErrorKind.TIMEOUT: 504,
    ErrorKind.API: 500,
    ErrorKind.CUT: 502,
    ErrorKind.INVALID_RESPONSE: 502,
    ErrorKind.INVALID_TOOL_ARGUMENTS: 502,
    ErrorKind.LIMIT: 502,
    ErrorKind.INTERNAL: 500,
}
"""The HTTP status of each class where nothing has been written yet."""

RETRYABLE = frozenset(
    {
        ErrorKind.RATE_LIMIT,
        ErrorKind.OVERLOADED,
        ErrorKind.TIMEOUT,
        ErrorKind.API,
        ErrorKind.CUT,
        ErrorKind.INVALID_RESPONSE,
        ErrorKind.INVALID_TOOL_ARGUMENTS,
    }
)
"""The classes where the same request may go better another time."""

BY_STATUS: dict[int, ErrorKind] = {
    400: ErrorKind.INVALID_REQUEST,
    401: ErrorKind.AUTHENTICATION,
    402: ErrorKind.BILLING,
    403: ErrorKind.PERMISSION,
    404: ErrorKind.NOT_FOUND,
    408: ErrorKind.TIMEOUT,
    413: ErrorKind.REQUEST_TOO_LARGE,
    422: ErrorKind.INVALID_REQUEST,
    429: ErrorKind.RATE_LIMIT,
    503: ErrorKind.OVERLOADED,
    504: ErrorKind.TIMEOUT,
    529: ErrorKind.OVERLOADED,
}


def kind_of_status(status: int) -> ErrorKind:
    """The class of an HTTP status; what the table lacks is the request's fault below 500, else the provider's.

    What is no error's status (a redirection) is one that the provider must not send.
    """
    if (kind := BY_STATUS.get(status)) is not None:
        return kind
    if status < 400:
        return ErrorKind.INVALID_RESPONSE
    return ErrorKind.INVALID_REQUEST if 400 <= status < 500 else ErrorKind.API


class PipelineError(Exception):
    """An error of ours. `made` holds what the stage that raises it had already made in the same call; `param` is the
    member of a request that it is about."""

    default = ErrorKind.INTERNAL

    def __init__(
        self,
        message: str,
        *,
        kind: ErrorKind | None = None,
        code: str = "",
        retryable: bool | None = None,
        param: str = "",
    ) -> None:
        super().__init__(message)
        self.kind = kind or self.default
        self.code = code
        self.param = param
        self.retryable = self.kind in RETRYABLE if retryable is None else retryable
        self.made: Sequence[Any] = ()

    @property
    def status(self) -> int:
        """The HTTP status where nothing has been written yet."""
        return STATUS[self.kind]

    def after(self, made: Sequence[Any]) -> Self:
        """This error, with what had already been made in the call that raises it."""
        self.made = made
        return self

    def take(self) -> Sequence[Any]:
        """What had already been made, which is passed on now: an error that is raised again does not bring it again."""
        made, self.made = self.made, ()
        return made


class UpstreamError(PipelineError):
    """The provider sent what it must not send."""

    default = ErrorKind.INVALID_RESPONSE


class ClientError(PipelineError):
    """The client asked for what cannot be done."""

    default = ErrorKind.INVALID_REQUEST

    @classmethod
    def about(cls, param: str, reason: str, *, kind: ErrorKind | None = None, code: str = "") -> Self:
        """The error that a member of the client's request is, named by its path."""
        return cls(f"{param}: {reason}", kind=kind, code=code, param=param)


class StageError(PipelineError):
    """A stage was used wrongly, or is wrong: our fault."""

    default = ErrorKind.INTERNAL


class LimitExceeded(PipelineError):
    """A bound of ours was reached."""

    default = ErrorKind.LIMIT
