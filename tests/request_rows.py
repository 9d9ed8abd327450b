"""What the tests of every dialect's table for building a request check of each row."""

from collections.abc import Callable

import pytest

from pipeline.errors import ClientError
from pipeline.ladder import Row, Rule
from pipeline.ledger import Ledger
from pipeline.request import Request, RequestOptions
from pipeline.toolnames import BuiltRequest
from tests.request_shapes import JSON

Build = Callable[..., BuiltRequest]


def check_written(build: Build, row: Row, given: Request, shows: JSON) -> None:
    """A member is carried, as its row says: the body shows it, and nothing is recorded on the strictest of routes."""
    ledger = Ledger(direction="request")
    assert row.rule in (Rule.ACCEPT, Rule.TRANSLATE)
    body = build(given, ledger=ledger, options=RequestOptions(strict=True)).body
    assert {name: body.get(name) for name in shows} == shows
    assert list(ledger) == []


def check_lost(build: Build, row: Row, given: Request, where: str, options: RequestOptions) -> None:
    """A member is lost, as its row says: it is refused by the client's word for it, or recorded once."""
    ledger = Ledger(direction="request")
    rule = row.under(options.strict)
    if rule is Rule.REFUSE:
        with pytest.raises(ClientError) as caught:
            build(given, ledger=ledger, options=options)
        assert str(caught.value) == f"{where}: {row.reason}"
        assert caught.value.status == 400
        return
    build(given, ledger=ledger, options=options)
    found = [entry for entry in ledger if entry.reason == row.reason]
    assert [entry.path for entry in found] == [where]
    assert found[0].action.startswith(rule.value)
