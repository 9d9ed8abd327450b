"""JSON between tags: `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`, in its spellings."""

from collections.abc import Generator

from stages.scrub.calls import calls_in
from stages.scrub.early import Beginning
from stages.scrub.grammar import (
    BLANKS,
    Family,
    Found,
    Lost,
    Place,
    Refused,
    Source,
    behind_blanks,
    fence,
    one_of,
    second,
    skip,
    stray,
    tag,
    until,
)
from stages.scrub.json_body import body

NAMES = ("tool_call", "toolcall", "tool-call", "TOOL_CALL")
OPENERS = tuple(f"<{name}" for name in NAMES)
TOKENS = ("<|tool_call|>",)
"""Openers that are one token, with no attributes."""
CLOSERS = (*(f"</{name}>" for name in NAMES), "<tool_call|>", "<|/tool_call|>", "<|tool_call|>")
STRAYS = (*(f"</{name}>" for name in NAMES), "<tool_call|>", "<|/tool_call|>", "<|im_end|>", "<|endoftext|>")
INVISIBLE = "\u200b\ufeff"
BEGIN = "\"'“‘{}/"
"""What may stand behind the brace of an object, besides the letters of a bare key."""

COMMENTS = {"//": "\n", "/*": "*/"}
TAIL = ("}", "{", "```", *COMMENTS)
"""What may stand between a body and its closer: a brace too many, the next body, the end of a fence, a comment."""

NO_BODY = Lost("the markup of a call is empty")


def _hermes(source: Source, place: Place) -> Generator[Found | None, None, None]:
    name = ""
    opener = place.opener
    while True:
        if opener in OPENERS:
            attributes = yield from tag(source)
            if attributes is None:
                yield NO_BODY
                return
            name = attributes.get("name", name)
        char = yield from skip(source, BLANKS + INVISIBLE)
        if char == "`":
            char = yield from fence(source)
        if char != "<":
            break
        if (yield from one_of(source, CLOSERS)):
            yield NO_BODY
            return
        opener = yield from one_of(source, OPENERS + TOKENS)
        if not opener:
            raise Refused
    while True:
        if not (yield from _begins(source, char)):
            raise Refused
        early = Beginning(place, name) if place.early else None
        read = yield from body(source, CLOSERS, place.limits.json_depth, early)
        yield from calls_in(read, place.limits.json_depth, name)
        if not (yield from _goes_on(source)):
            return
        char = source.text[source.at]


def _begins(source: Source, char: str) -> Generator[None, None, bool]:
    """Whether a body begins here: nothing that prose would write between brackets."""
    if char not in ("{", "["):
        return False
    inside = yield from second(source)
    return inside in "{]" if char == "[" else inside in BEGIN or inside == "_" or inside.isalpha()


def _goes_on(source: Source) -> Generator[None, None, bool]:
    """Take what belongs to a body behind its end, the closer included; whether another body follows before that."""
    while token := (yield from behind_blanks(source, (*CLOSERS, *TAIL))):
        if token in CLOSERS:
            return False
        if token in COMMENTS:
            yield from until(source, (COMMENTS[token],))
        elif token == "{":
            source.at -= 1
            return True
    return False


FAMILIES = (
    Family(name="hermes", openers=(*OPENERS, *TOKENS), parse=_hermes),
    Family(name="closers of calls", openers=STRAYS, parse=stray, stray=True),
)
