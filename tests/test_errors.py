"""pipeline.errors: whose fault it was, and whether a retry makes sense."""

import pytest

from pipeline.errors import (
    BY_STATUS,
    RETRYABLE,
    STATUS,
    ClientError,
    ErrorKind,
    LimitExceeded,
    PipelineError,
    StageError,
    UpstreamError,
    kind_of_status,
)


def test_every_class_of_error_has_a_status() -> None:
    assert set(STATUS) == set(ErrorKind)
    assert all(400 <= status < 600 for status in STATUS.values())


def test_what_the_client_got_wrong_is_not_worth_a_retry() -> None:
    assert {STATUS[kind] for kind in RETRYABLE} <= {429, 500, 502, 504, 529}
    assert ErrorKind.QUOTA not in RETRYABLE


@pytest.mark.parametrize("status", sorted(BY_STATUS))
def test_a_known_status_has_its_own_class(status: int) -> None:
    assert kind_of_status(status) is BY_STATUS[status]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (399, ErrorKind.INVALID_RESPONSE),
        (402, ErrorKind.BILLING),
        (418, ErrorKind.INVALID_REQUEST),
        (499, ErrorKind.INVALID_REQUEST),
        (500, ErrorKind.API),
        (599, ErrorKind.API),
    ],
)
def test_an_unknown_status_is_the_requests_fault_below_500_else_the_providers(status: int, kind: ErrorKind) -> None:
    assert kind_of_status(status) is kind


@pytest.mark.parametrize(
    ("error", "kind", "status", "retryable"),
    [
        (PipelineError("x"), ErrorKind.INTERNAL, 500, False),
        (UpstreamError("x"), ErrorKind.INVALID_RESPONSE, 502, True),
        (ClientError("x"), ErrorKind.INVALID_REQUEST, 400, False),
        (StageError("x"), ErrorKind.INTERNAL, 500, False),
        (LimitExceeded("x"), ErrorKind.LIMIT, 502, False),
    ],
)
def test_an_error_says_whose_fault_it_is(error: PipelineError, kind: ErrorKind, status: int, retryable: bool) -> None:
    assert (str(error), error.kind, error.status, error.retryable, error.code) == ("x", kind, status, retryable, "")


def test_an_error_may_be_of_another_class_than_its_default() -> None:
    error = UpstreamError("x", kind=ErrorKind.QUOTA, code="spent")
    assert (error.kind, error.status, error.retryable, error.code) == (ErrorKind.QUOTA, 429, False, "spent")


def test_whether_a_retry_makes_sense_may_be_said() -> None:
    assert not UpstreamError("x", retryable=False).retryable
    assert StageError("x", retryable=True).retryable


def test_an_error_carries_what_had_been_made_before_it() -> None:
    error = StageError("x")
    assert not error.made
    assert error.after([1, 2]) is error
    assert list(error.made) == [1, 2]
