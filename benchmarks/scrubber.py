"""`python -m benchmarks.scrubber`: what recovering calls from text costs, and that it grows with the text and no more.

Bodies and hostile texts of 20, 80 and 320 kB at 4-character deltas, and plain text with the scrubber and without;
seconds of processor time, the best of several runs.
"""

import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from time import process_time

from pipeline.dialect import RequestFacts, dialect
from pipeline.events import BlockStart as Start
from pipeline.events import BlockStop as Stop
from pipeline.events import Event, MessageDelta, MessageStart, StopReason, TextBlock, TextDelta
from pipeline.route import AnswerOptions
from stages.recipe import default_chain
from stages.scrub import TagScrubber

SIZES = (20_000, 80_000, 320_000)
DELTA = 4
MOST_RATIO = 4.6
"""Four times the text may take so many times as long."""
MOST_COST = 1.15
"""What plain text may cost with the scrubber, of what it costs without."""
RUNS = 7

PROSE = "A weir holds a river back just enough to make it orderly, and that is the whole of its job. "


def main() -> int:
    """Print the table; 1 if something costs more than it may."""
    good = True
    for name, kind in KINDS.items():
        times = [best(partial(recovered, kind(size))) for size in SIZES]
        ratios = [later / before for before, later in pairwise(times)]
        good = good and max(ratios) <= MOST_RATIO
        told = ", ".join(f"{size // 1000} kB {time:.3f} s" for size, time in zip(SIZES, times, strict=True))
        print(f"{name}: {told}; ratios {', '.join(f'{ratio:.2f}' for ratio in ratios)}")
    off, on = compared(lambda: through("off"), lambda: through("prompt"))
    good = good and on / off <= MOST_COST
    print(f"plain text through the whole chain: {off:.3f} s without, {on:.3f} s with: {on / off:.3f}")
    return 0 if good else 1


def _body(size: int, opener: str, closer: str) -> str:
    text = (PROSE + "if a < b: </tool_call> ") * (size // len(PROSE))
    return f"{opener}{json.dumps({'name': 'f', 'arguments': {'text': text}})}{closer}"


KINDS: dict[str, Callable[[int], str]] = {
    "tag": lambda size: _body(size, "<tool_call>", "</tool_call>"),
    "DeepSeek": lambda size: _body(size, "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"),
    "mended": lambda size: _body(size, "<tool_call>", "</tool_call>").replace('"f"', "'f'"),
    "never closed": lambda size: _body(size, "<tool_call>", "</tool_call>")[: size - 100],
    "reasoning": lambda size: f"<think>{PROSE * (size // len(PROSE))}</think>",
    "prose": lambda size: PROSE * (size // len(PROSE)),
    "angles": lambda size: "<tool < <t " * (size // 11),
    "openers": lambda size: "<tool_call>" * (size // 11),
    "blanks behind a body": lambda size: f'<tool_call>{{"name": "f"}}{" " * size}x',
}


def recovered(whole: str) -> None:
    """A text through the scrubber, a delta a read."""
    scrubber = TagScrubber(options=AnswerOptions(recover="prompt"), tools={"f": {}})
    deltas = [TextDelta(0, whole[at : at + DELTA]) for at in range(0, len(whole), DELTA)]
    events: list[Event] = [MessageStart("", ""), Start(0, TextBlock()), *deltas, Stop(0)]
    for event in [*events, MessageDelta(StopReason.END_TURN)]:
        scrubber.receive([event])
    scrubber.receive_eof()


def through(recover: str) -> None:
    """A plain Chat stream through the whole chain, a frame a read, to a Messages client."""
    options = AnswerOptions(recover="prompt" if recover == "prompt" else "off")
    facts = RequestFacts(tools={"f": {}})
    chain = default_chain(dialect("chat"), dialect("messages"), facts=facts, options=options)
    for frame in FRAMES:
        chain.receive([frame])
    chain.receive_eof()


def _frame(delta: object, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    head = {"id": "chatcmpl-7c1f0a9e", "object": "chat.completion.chunk", "created": 1790000000, "model": "weir-1"}
    return b"data: " + json.dumps({**head, "choices": [choice]}, separators=(",", ":")).encode() + b"\n\n"


FRAMES: Sequence[bytes] = [
    *(_frame({"content": f" {word}"}) for word in (PROSE * 250).split()),
    _frame({}, "stop"),
    b"data: [DONE]\n\n",
]


def best(work: Callable[[], None]) -> float:
    """The least processor time that it takes."""
    return min(_time(work) for _ in range(RUNS))


def compared(one: Callable[[], None], other: Callable[[], None]) -> tuple[float, float]:
    """The least processor time of each, measured in turns."""
    times = [(_time(one), _time(other)) for _ in range(3 * RUNS)]
    return min(first for first, _ in times), min(second for _, second in times)


def _time(work: Callable[[], None]) -> float:
    begin = process_time()
    work()
    return process_time() - begin


if __name__ == "__main__":
    sys.exit(main())
