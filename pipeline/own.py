"""A client's request toward its own dialect: what of it cannot be read there goes up unread, to the judge of it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import evolve

from pipeline.dialect import Dialect
from pipeline.envelope import is_sealed
from pipeline.errors import ClientError
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.request import Given, Request

_STAGE = "Route"


def read_own(dialect: Dialect, body: Mapping[str, Any], *, ledger: Ledger, limits: Limits) -> Request:
    """The request that goes up to its own dialect. A member that is not as it must be counts as absent here, and goes
    up as it came; that it was not read is recorded.

    Raises `ClientError` naming a member that is not as it must be and holds an envelope of ours: it cannot be opened
    there, and nobody else's eyes are for it.
    """
    read = dict(body)
    while True:
        try:
            request = dialect.parse(read, ledger=ledger, limits=limits, own=True)
        except ClientError as error:
            name = re.split(r"[.\[]", error.param, maxsplit=1)[0]
            if name not in read or any(map(is_sealed, _texts(read[name]))):
                raise
            ledger.record(_STAGE, error.param, "not read", str(error).removeprefix(f"{error.param}: "))
            del read[name]
            continue
        unread = frozenset(body.keys() - read.keys())
        return evolve(request, given=Given(body, request, unread)) if unread else request


def _texts(value: Any) -> Iterator[str]:
    """Every text within a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(inner)
