"""stages.restore: calls under the names and ids that the client knows."""

from pipeline.events import Event, ToolKind, ToolUseBlock
from pipeline.testing import EOF, check_stage, play
from pipeline.toolnames import OfferedTool, RequestMap
from stages.restore import ToolRestorer
from tests.canonical import BOOM, TEXT, args, start, stop, text

MAP = RequestMap(tools={"short": OfferedTool("a_long_name"), "same": OfferedTool("same")}, ids={"u1": "c1"})


def test_a_shortened_name_is_the_clients_again() -> None:
    assert play(ToolRestorer(MAP), start(0, ToolUseBlock("i", "short")), args(0, "{}"), stop(0)) == [
        [start(0, ToolUseBlock("i", "a_long_name"))],
        [args(0, "{}")],
        [stop(0)],
    ]


def test_a_tool_in_a_namespace_is_known_by_both() -> None:
    collab = RequestMap(tools={"collab__list": OfferedTool("list", "collab")})
    assert play(ToolRestorer(collab), start(0, ToolUseBlock("i", "collab__list"))) == [
        [start(0, ToolUseBlock("i", "list", namespace="collab"))]
    ]
    event = start(0, ToolUseBlock("i", "list", namespace="theirs"))
    assert play(ToolRestorer(collab), event) == [[event]]


def test_an_id_is_the_clients_again() -> None:
    freeform = ToolUseBlock("u1", "same", ToolKind.CUSTOM)
    assert play(ToolRestorer(MAP), start(0, freeform)) == [[start(0, ToolUseBlock("c1", "same", ToolKind.CUSTOM))]]


def test_a_tool_that_was_not_offered_keeps_its_name() -> None:
    event = start(0, ToolUseBlock("i", "invented"))
    (made,) = play(ToolRestorer(MAP), event)
    assert made[0] is event


def test_all_else_goes_on_as_it_came() -> None:
    events: list[Event] = [text(0, "short"), args(1, "u1"), stop(1)]
    assert ToolRestorer(MAP).receive(events) is events
    assert play(ToolRestorer(MAP), [start(0, TEXT), *events]) == [[start(0, TEXT), *events]]


def test_the_cause_of_a_sudden_end_is_told() -> None:
    stage = ToolRestorer(MAP)
    assert play(stage, EOF(BOOM)) == [[BOOM]]
    assert stage.ended
    assert play(ToolRestorer(MAP), EOF) == [[]]


def test_the_rules_of_every_stage_are_kept() -> None:
    events: list[Event] = [start(0, ToolUseBlock("u1", "short")), args(0, "{}"), stop(0), start(1, TEXT), stop(1)]
    check_stage(lambda: ToolRestorer(MAP), events)
