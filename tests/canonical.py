"""Short names for canonical events, so that a transcript is read as a picture, and streams of them at random."""

from collections.abc import Sequence
from typing import Any

from attrs import frozen
from hypothesis import strategies as st

from pipeline.errors import ErrorKind
from pipeline.events import (
    ArgumentsDelta,
    Block,
    BlockStart,
    BlockStop,
    Event,
    MessageDelta,
    MessageStart,
    MessageStop,
    ReasoningBlock,
    ReasoningDelta,
    RefusalDelta,
    SignatureDelta,
    StopReason,
    StreamError,
    TextBlock,
    TextDelta,
    ToolKind,
    ToolUseBlock,
)
from pipeline.ledger import Ledger
from pipeline.testing import play

start, stop, text, think, args = BlockStart, BlockStop, TextDelta, ReasoningDelta, ArgumentsDelta

CALL_A, CALL_B, CALL_C = (ToolUseBlock(name, f"get_{name}") for name in "abc")
FREEFORM = ToolUseBlock("x", "run", ToolKind.CUSTOM)
TEXT, REASONING, ITEM = TextBlock(), ReasoningBlock(), ReasoningBlock(splittable=False)

BEGIN = MessageStart("id", "model")
END, TOOLS, LIMIT = (
    MessageDelta(reason) for reason in (StopReason.END_TURN, StopReason.TOOL_USE, StopReason.MAX_TOKENS)
)
BOOM = StreamError(ErrorKind.API, "boom")
CUT = StreamError(ErrorKind.CUT, "the upstream went away")


def losses(ledger: Ledger) -> list[tuple[str, str, str]]:
    """What a ledger holds, without whose it is."""
    return [(entry.path, entry.action, entry.reason) for entry in ledger]


def last(stage: Any, *steps: Any) -> list[Event]:
    """What the last of several steps brought."""
    return play(stage, *steps)[-1]


@frozen
class Stream:
    """The blocks of a message whose events come in any order that keeps each block's own, and how it ends."""

    events: list[Event]
    finish: MessageDelta

    @property
    def whole(self) -> list[Event]:
        return [BEGIN, *self.events, self.finish, MessageStop()]


def pieces_of(text: str) -> st.SearchStrategy[list[str]]:
    """A text in fragments, some of them empty."""
    places = st.lists(st.integers(0, len(text)), max_size=4).map(sorted)
    return places.map(lambda ends: [text[at:end] for at, end in zip([0, *ends], [*ends, len(text)], strict=True)])


def deltas_of(kind: Any, fragments: st.SearchStrategy[str]) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.tuples(st.just(kind), fragments), max_size=4)


def argued(texts: Sequence[str]) -> st.SearchStrategy[list[Any]]:
    cut = st.sampled_from(texts).flatmap(pieces_of)
    return cut.map(lambda fragments: [(ArgumentsDelta, fragment) for fragment in fragments])


WORDS = st.sampled_from(["a", "é b", " c\n"])
BLANKS = st.sampled_from(["", " ", "\n\t", "a", "é b"])
OBJECTS = ['{"x":1}', '{ "s": "}\\"]{", "l": [{}, []] }', '{"é":null}']
ODD_OBJECTS = [*OBJECTS, "{}", "", "null", '"{\\"x\\":1}"', ' \n{"x":1}', '{}{"x":1}', 'null{"x":1}']
NO_OBJECTS = [*ODD_OBJECTS, "[1]", "[]", "1", "nul", '"x"', '{"x"', '{"x":1,}', '{"x":1}x', "{}x", '"{']


@st.composite
def streams(
    draw: st.DrawFn,
    words: st.SearchStrategy[str] = BLANKS,
    arguments: Sequence[str] = ODD_OBJECTS,
    lawful: bool = True,
    alone: bool = False,
) -> Stream:
    """A message of any blocks, interleaved in any way; unless `lawful`, a block's deltas may come behind its stop.

    `alone`: it has one text and one reasoning at most that may be split.
    """
    texts = deltas_of(TextDelta, words) | deltas_of(RefusalDelta, words)
    thoughts = deltas_of(ReasoningDelta, words)
    signed = thoughts.map(lambda deltas: [*deltas, (SignatureDelta, "sig")])
    sketches = draw(
        st.lists(
            st.tuples(st.just(TEXT), texts)
            | st.tuples(st.just(REASONING), thoughts)
            | st.tuples(st.just(ITEM), thoughts | signed)
            | st.tuples(st.just(CALL_A), argued(arguments))
            | st.tuples(st.just(FREEFORM), deltas_of(ArgumentsDelta, words)),
            max_size=5,
            unique_by=(lambda sketch: str(sketch[0]) if sketch[0] in (TEXT, REASONING) else id(sketch))
            if alone
            else None,
        )
    )
    indexes = draw(st.permutations([3 * at for at in range(len(sketches))]))
    queues = []
    for index, (block, deltas) in zip(indexes, sketches, strict=True):
        behind: list[Event] = [kind(index, fragment) for kind, fragment in deltas]
        if draw(st.booleans()):
            behind.insert(len(behind) if lawful else draw(st.integers(0, len(behind))), BlockStop(index))
        queues.append([BlockStart(index, _named(block, index)), *behind])
    order = draw(st.permutations([at for at, queue in enumerate(queues) for _ in queue]))
    called = any(isinstance(block, ToolUseBlock) for block, _ in sketches)
    return Stream([queues[at].pop(0) for at in order], TOOLS if called else END)


def _named(block: Block, index: int) -> Block:
    return ToolUseBlock(f"call_{index}", block.name, block.kind) if isinstance(block, ToolUseBlock) else block
