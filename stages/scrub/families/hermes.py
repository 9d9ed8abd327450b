"""JSON between tags: `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`, in its spellings."""

from collections.abc import Generator

from stages.scrub.calls import NO_BODY, calls_in
from stages.scrub.early import Beginning
from stages.scrub.grammar import (
    BLANKS,
    Family,
    Found,
    Lost,
    Place,
    Plain,
    Refused,
    Source,
    behind_blanks,
    fence,
    one_of,
    skip,
    stray,
    tag,
)
from stages.scrub.json_body import begins, body, end
from stages.scrub.strings import name_of

NAMES = ("tool_call", "toolcall", "tool-call", "TOOL_CALL")
OPENERS = tuple(f"<{name}" for name in NAMES)
TOKENS = ("<|tool_call|>",)
"""Openers that are one token, with no attributes."""
CLOSERS = (*(f"</{name}>" for name in NAMES), "<tool_call|>", "<|/tool_call|>", "<|tool_call|>")
STRAYS = (*(f"</{name}>" for name in NAMES), "<tool_call|>", "<|/tool_call|>", "<|im_end|>", "<|endoftext|>")
WRAPPERS = 4
"""So many openers may stand one in another round a body. Those that no body follows are read again as text."""
INVISIBLE = "\u200b\ufeff"


def _hermes(source: Source, place: Place) -> Generator[Found | None, None, None]:
    name = ""
    opener = place.opener
    fenced = False
    for _ in range(WRAPPERS):
        if opener in OPENERS:
            attributes = yield from tag(source)
            if attributes is None:
                yield NO_BODY
                return
            name = name_of(attributes.get("name", name))
        char = yield from skip(source, BLANKS + INVISIBLE)
        if char == "`":
            fenced = True
            char = yield from fence(source)
        if char != "<":
            break
        if (yield from one_of(source, CLOSERS)):
            yield NO_BODY
            return
        opener = yield from one_of(source, OPENERS + TOKENS)
        if not opener:
            raise Refused
    if not char or not (yield from begins(source)):
        raise Refused
    yield from _bodies(source, place, name, fenced)


def _bodies(source: Source, place: Place, name: str, fenced: bool) -> Generator[Found | None, None, None]:
    """The calls of the body that begins here, and of those behind it, the closer included.

    Another body that makes no call is one only if the closer comes behind it; else it is the reader's.
    """
    depth, closers, another = place.limits.json_depth, CLOSERS + OPENERS + TOKENS, False
    while True:
        early = Beginning(place, name) if place.early else None
        read = yield from body(source, closers, depth, early)
        calls = [*calls_in(read, depth, name, tools=place.tools, freeform=place.freeform)]
        doubtful = another and not (early and early.opened) and all(isinstance(call, Lost) for call in calls)
        if not doubtful:
            yield from calls
        if fenced:
            yield from behind_blanks(source, ("```",))
        closer = yield from end(source, CLOSERS, OPENERS + TOKENS)
        if doubtful:
            yield from calls if closer else (Plain(),)
        if closer != "{":
            return
        fenced, another = False, True


FAMILIES = (
    Family(name="hermes", openers=(*OPENERS, *TOKENS), parse=_hermes),
    Family(name="closers of calls", openers=STRAYS, parse=stray, stray=True),
)
