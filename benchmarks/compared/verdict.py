"""An answer held against what must come out, in a few words."""

import re

from benchmarks.compared.answer import Answer, Block

OK = "ok"
MEANINGS = {
    "fails": "gives an error though the upstream's answer was complete",
    "false end": "ends as complete though the upstream's answer was cut or failed",
    "no end": "neither a terminal nor an error: the stream stops",
    "hangs": "nothing came for fifteen seconds",
    "torn": "breaks the client's dialect: see *What is torn*",
    "broken call": "gives a call as whole whose arguments are not those that were sent, or no JSON object",
    "extra call": "gives a call that nobody made",
    "lost call": "a call is missing, or never ends",
    "lost text": "text is missing",
    "leaked text": "shows as text what is none",
    "lost reasoning": "reasoning is missing",
    "leaked reasoning": "shows as reasoning what is none",
    "stop": "another stop reason",
    "order": "the same blocks in another order",
    "tokens": "another last count of input or output tokens",
}
"""The words of a verdict, the gravest first."""
UNUSABLE = frozenset(MEANINGS) - {"lost reasoning", "leaked reasoning", "stop", "order", "tokens"}
"""The words that say that a client breaks, is misled, or misses text or a call."""


def verdict(wanted: Answer, got: Answer, client: str, sent: Answer | None = None) -> list[str]:
    """What is wrong with an answer, the gravest first; nothing, if it is right.

    What the upstream `sent` as text or reasoning is not leaked, also where the golden leaves it out.
    """
    words = {*_ending(wanted, got), *_calls(wanted, got)}
    if got.faults:
        words.add("torn")
    for kind in ("text", "reasoning"):
        pieces = [block.text.strip() for block in wanted.blocks if block.kind == kind]
        found = set(_compared(pieces, got.said(kind)))
        if sent is not None and "".join(got.said(kind).split()) in "".join(sent.said(kind).split()):
            found.discard("leaked")
        words.update(f"{word} {kind}" for word in found)
    if wanted.ended and got.ended and not got.error:
        if got.stop != wanted.stop:
            words.add("stop")
        if wanted.tokens and any(wanted.tokens) and got.tokens != wanted.tokens:
            words.add("tokens")
        one, other = _order(wanted, client), _order(got, client)
        if words <= {"stop", "tokens"} and one != other and sorted(one) == sorted(other):
            words.add("order")
    return [word for word in MEANINGS if word in words]


def _ending(wanted: Answer, got: Answer) -> list[str]:
    if got.error:
        return ["fails"] if wanted.ended else []
    if not got.ended:
        return ["no end"]
    return [] if wanted.ended else ["false end"]


def _calls(wanted: Answer, got: Answer) -> list[str]:
    """Each call that a client would run must be one that was made; each that was made must be there."""
    words, left = list[str](), list(wanted.runnable)
    for call in got.runnable:
        same = next((other for other in left if _same(other, call)), None)
        if same is not None:
            left.remove(same)
        elif wanted.stop == got.stop == "limit" and any(_same(other, call) for other in wanted.calls):
            continue  # the token limit cut it, and the stop reason says so
        elif call.arguments is None and not call.freeform:
            words.append("broken call")
        else:
            made = any(other.name == call.name for other in wanted.calls)
            words.append("broken call" if made else "extra call")
    if any(call.arguments is not None or call.freeform for call in left) and "broken call" not in words:
        words.append("lost call")
    return words


def _same(one: Block, other: Block) -> bool:
    if one.name != other.name:
        return False
    if one.freeform != other.freeform:
        free, bound = (one, other) if one.freeform else (other, one)
        return list((bound.arguments or {}).values()) == [free.text]
    return one.text == other.text or (one.arguments is not None and one.arguments == other.arguments)


def _compared(pieces: list[str], got: str) -> list[str]:
    """The text of each block must be there, in order; blanks between them and at the ends count for nothing."""
    if re.fullmatch(r"\s*".join(map(re.escape, pieces)), got.strip()):
        return []
    wanted, dense = "".join("".join(pieces).split()), "".join(got.split())
    if wanted == dense:
        return ["lost"] if len(got.strip()) < len("".join(pieces)) else ["leaked"]
    if wanted in dense:
        return ["leaked"]
    return ["lost"] if dense in wanted else ["lost", "leaked"]


def _order(answer: Answer, client: str) -> list[str]:
    """A Chat message has one text, one reasoning and its calls: only their order can be told."""
    calls = [call.name for call in answer.calls]
    return calls if client == "chat" else answer.order
