"""pipeline.estimate: about how many tokens a request holds."""

import pytest

from pipeline.estimate import TOKENS_A_DOCUMENT, TOKENS_A_TURN, TOKENS_AN_IMAGE, estimate
from pipeline.ladder import Loss, Row, Rule
from pipeline.request import (
    AudioPart,
    CustomTool,
    DocumentPart,
    FunctionTool,
    Grammar,
    ImagePart,
    Inline,
    Part,
    ReasoningPart,
    RefusalPart,
    Request,
    Role,
    ServerPart,
    ServerTool,
    TextPart,
    Tool,
    ToolResultPart,
    ToolUsePart,
    Turn,
)

PICTURE = ImagePart(Inline("image/png", "A" * 100_000))
LOSS = Loss("x", Row("x", Rule.DROP))


def tokens(*parts: Part, tools: tuple[Tool, ...] = ()) -> int:
    """The estimate for one turn of a user, without what every turn costs."""
    return estimate(Request(dialect="d", model="m", turns=(Turn(Role.USER, parts),), tools=tools)).input - TOKENS_A_TURN


@pytest.mark.parametrize(
    ("part", "due"),
    [
        (TextPart("a" * 400), 100),
        (TextPart("abc"), 0),
        (RefusalPart("a" * 40), 10),
        (ToolUsePart("i", "f" * 4, '{"x":12}'), 3),
        (ToolUsePart("i", "f" * 4, {"x": 12}), 3),
        (DocumentPart("a" * 40, name="n" * 4, context="c" * 4), 12),
        (DocumentPart((TextPart("a" * 40), PICTURE)), 10 + TOKENS_AN_IMAGE),
        (DocumentPart(Inline("application/pdf", "A" * 100_000)), TOKENS_A_DOCUMENT),
        (PICTURE, TOKENS_AN_IMAGE),
        (ToolResultPart("i", (TextPart("a" * 40), PICTURE)), 10 + TOKENS_AN_IMAGE),
        (ServerPart({}, LOSS, "a" * 40), 10),
        (ReasoningPart("a" * 400, "b" * 400), 0),
        (AudioPart("A" * 100_000, "wav"), 0),
    ],
)
def test_a_part_counts_by_what_the_model_reads_of_it(part: Part, due: int) -> None:
    assert tokens(part) == due


@pytest.mark.parametrize(
    ("tool", "due"),
    [
        (FunctionTool("f" * 4, "d" * 40, {"type": "object"}), 15),
        (FunctionTool("f" * 40), 10),
        (CustomTool("f" * 4, "d" * 40), 11),
        (CustomTool("f" * 4, "d" * 40, Grammar("lark", "g" * 40)), 21),
        (ServerTool({"type": "web_search"}, LOSS, "f" * 40), 10),
    ],
)
def test_a_tool_counts_by_what_the_model_is_told_of_it(tool: Tool, due: int) -> None:
    assert tokens(tools=(tool,)) == due


def test_every_turn_costs_something_and_the_instructions_are_turns_too() -> None:
    turn = Turn(Role.USER, (TextPart("a" * 40),))
    request = Request(dialect="d", model="m", turns=(turn, turn), system=(turn,))
    assert estimate(request).input == 3 * (10 + TOKENS_A_TURN)


def test_nothing_is_estimated_but_what_went_in() -> None:
    usage = estimate(Request(dialect="d", model="m", turns=()))
    assert (usage.input, usage.cache_read, usage.cache_write, usage.output, usage.reasoning) == (0, 0, 0, 0, 0)
