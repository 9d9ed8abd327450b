"""pipeline.builder: what the body of every dialect begins with and how it is handed over."""

from typing import Any

import pytest
from attrs import evolve

from pipeline.builder import Builder
from pipeline.ladder import Ladder, Loss, Row, Rule, table
from pipeline.ledger import Ledger
from pipeline.request import Choosing, Given, Request, RequestOptions, ToolChoice, ToolUsePart
from pipeline.toolnames import BuiltRequest, OfferedTool, ToolNames, UpstreamIds
from tests.request_shapes import assistant, request
from tests.test_request_names import BARRED

TABLE = table(
    Row("stop", Rule.DROP, reason="it cannot be said"),
    Row("stop of blanks", Rule.DROP, reason="blanks"),
    Row("max_tokens above the most", Rule.DEGRADE, reason="too many"),
)
THEIRS = Row("hosted", Rule.DROP, reason="another provider's")
GIVEN = evolve(
    request(extras={"trace": 1, "model": "x"}, private={"container": "c"}, paths={"stop": "stop_sequences"}),
    dialect="words",
    losses=(Loss("container", THEIRS),),
)


class Words(Builder):
    """Builds nothing of its own."""

    def __init__(self, given: Request, ledger: Ledger, dialect: str = "words", **options: Any) -> None:
        super().__init__(given, Ladder("words request", TABLE, ledger), RequestOptions(**options), dialect)
        self.names, self.ids = ToolNames(8, BARRED), UpstreamIds(8, BARRED)

    def build(self) -> BuiltRequest:
        return self._built(self._begun(), TABLE, ("trace",), decided=())

    def bound(self) -> int | None:
        return self._bound()

    def demands(self) -> bool:
        return self._demands_a_call

    def lose(self) -> None:
        self._lose("stop")
        self._lose("stop", "stop of blanks")


def test_a_dialect_keeps_what_only_it_has_and_nothing_is_lost() -> None:
    ledger = Ledger(direction="request")
    assert Words(GIVEN, ledger).build().body == {"trace": 1, "container": "c", "model": "m"}
    assert list(ledger) == []


def test_a_body_that_a_request_was_read_from_goes_up_but_for_what_is_changed() -> None:
    given = evolve(GIVEN, given=Given({"model": None, "trace": 2, "odd": 3}, GIVEN))
    assert Words(given, Ledger()).build().body == {"model": None, "trace": 1, "odd": 3}
    assert Words(given, Ledger(), "others").build().body == {"trace": 1, "model": "m"}


def test_toward_another_dialect_it_stays_behind_as_its_row_says() -> None:
    ledger = Ledger(direction="request")
    assert Words(GIVEN, ledger, "others").build().body == {"trace": 1, "model": "m"}
    assert [(entry.path, entry.reason) for entry in ledger] == [("container", "another provider's")]


def test_the_routes_model_stands_over_the_requests_and_a_stream_is_asked_for() -> None:
    built = Words(evolve(GIVEN, stream=True), Ledger(), model="big").build()
    assert built.body == {"trace": 1, "container": "c", "model": "big", "stream": True}


def test_the_way_back_from_names_and_ids_goes_with_the_body() -> None:
    builder = Words(GIVEN, Ledger())
    name, given = builder.names.offer(OfferedTool("a.b")), builder.ids.id("a client's id")
    built = builder.build()
    assert built.map.tool(name) == OfferedTool("a.b")
    assert built.map.ids == {given: "a client's id"}


def test_the_ids_of_the_calls_that_the_conversation_holds_go_with_the_body() -> None:
    calls = (ToolUsePart("a", "f", {}), ToolUsePart("b", "f", {}), ToolUsePart("a", "f", {}))
    assert Words(evolve(GIVEN, turns=(assistant(*calls),)), Ledger()).build().map.calls == {"a", "b"}
    assert Words(GIVEN, Ledger()).build().map.calls == set()


def test_a_loss_is_told_by_the_clients_word_and_the_members_row_or_another() -> None:
    ledger = Ledger(direction="request")
    Words(GIVEN, ledger).lose()
    assert [(entry.path, entry.reason) for entry in ledger] == [
        ("stop_sequences", "it cannot be said"),
        ("stop_sequences", "blanks"),
    ]


@pytest.mark.parametrize(
    ("asked", "most", "bound", "lowered"),
    [(None, 9, None, False), (9, None, 9, False), (9, 9, 9, False), (9, 8, 8, True)],
)
def test_a_bound_is_within_the_routes_and_recorded_if_it_was_lowered(
    asked: int | None, most: int | None, bound: int | None, lowered: bool
) -> None:
    ledger = Ledger(direction="request")
    assert Words(evolve(GIVEN, max_tokens=asked), ledger, most_tokens=most).bound() == bound
    assert [(entry.path, entry.reason) for entry in ledger] == [("max_tokens", "too many")] * lowered


def test_a_call_is_demanded_of_any_tool_or_of_one() -> None:
    choices = [None, *(ToolChoice(mode) for mode in Choosing)]
    demanding = [one for one in choices if Words(evolve(GIVEN, tool_choice=one), Ledger()).demands()]
    assert demanding == [ToolChoice(Choosing.ANY), ToolChoice(Choosing.ONE)]
