"""JSON between tags: `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`, in its spellings."""

import re
from collections.abc import Generator

from attrs import evolve

from stages.scrub.calls import LEFT, NO_OBJECT, beside, free_call
from stages.scrub.code import FENCES
from stages.scrub.ends import Ends
from stages.scrub.fence import fence, unfenced
from stages.scrub.grammar import (
    BLANKS,
    Call,
    Family,
    Found,
    Place,
    Refused,
    Source,
    Unfinished,
    alone,
    one_of,
    peek,
    second,
    skip,
    stray,
)
from stages.scrub.json_body import begins, hollow
from stages.scrub.outside import Outside
from stages.scrub.several import bodies
from stages.scrub.tag import tag

NAMES = ("tool_call", "toolcall", "tool-call", "TOOL_CALL")
OPENERS = tuple(f"<{name}" for name in NAMES)
TOKENS = ("<|tool_call|>",)
"""Openers that are one token, with no attributes."""
TAGS = tuple(f"</{name}{blank}>" for name in NAMES for blank in ("", " ", "\n"))
CLOSERS = (*TAGS, "<tool_call|>", "<|/tool_call|>", "<|tool_call|>")
STRAYS = (*TAGS, "<tool_call|>", "<|/tool_call|>")
TURN_END = ("<|im_end|>", "<|endoftext|>")
WRAPPERS = 4
"""So many openers may stand one in another round a body. Those that no body follows are read again as text."""
LINE_ENDS = ("\r", "\n")
INVISIBLE = "\u200b\ufeff"
_BODY = rf"[\s{INVISIBLE}]*+(?:[\[{{]|`{{3}}|~{{3}})"
_TAG = rf"<(?:{'|'.join(NAMES)})(?:\s*+\|?>{_BODY}|\s++[A-Za-z_][\w:.-]*+\s*+=)"
OPENING = "|".join((_TAG, *(re.escape(token) + _BODY for token in TOKENS)))
"""A tag with attributes, or what a body begins behind."""


def _hermes(source: Source, place: Place) -> Generator[Found | None, None, None]:
    opener, outside, around = place.opener, Outside(), None
    for _ in range(WRAPPERS):
        if opener in OPENERS:
            opening = yield from tag(source)
            outside = outside.inside(opening)
            if opening.closed:
                yield from outside.alone(place.limits.json_depth, place.freeform)
                return
            if outside.name in place.freeform and not outside.given and (yield from _is_raw(source, place)):
                yield from _raw(source, place, outside)
                return
        if outside.whole and not (yield from _holds(source)):
            yield from _alone(source, place, outside)
            return
        char = yield from skip(source, BLANKS + INVISIBLE)
        if char in FENCES:
            around = yield from fence(source)
            char = yield from skip(source)
        if char != "<":
            break
        if (yield from one_of(source, CLOSERS)):
            yield from outside.alone(place.limits.json_depth, place.freeform)
            return
        opener = yield from one_of(source, OPENERS + TOKENS)
        if not opener:
            raise Refused
    if not char or not (yield from begins(source)):
        if not (yield from hollow(source, CLOSERS)):
            raise Refused
        yield NO_OBJECT
        return
    yield from beside((yield from bodies(source, place, CLOSERS, outside, around)))


def _holds(source: Source) -> Generator[None, None, bool]:
    """Whether a body stands in a tag, or its closer right behind it, but for a fence; nothing is taken."""
    source.mark()
    try:
        char = yield from skip(source, BLANKS + INVISIBLE)
        if char in FENCES:
            yield from fence(source)
            char = yield from skip(source)
        holds = char != "" and ((yield from begins(source)) or (yield from one_of(source, CLOSERS)) != "")
    except (Refused, Unfinished):
        holds = False
    source.back()
    return holds


def _alone(source: Source, place: Place, outside: Outside) -> Generator[Found | None, None, None]:
    """The call that a tag says, where no body stands in it: what else does is taken up to the closer, if that is near,
    and else is the reader's. Raises `Refused` where a line only speaks of it."""
    ends = Ends(CLOSERS, place.openings)
    said = bool((yield from ends.words(source, several=False)))
    calls = [*outside.alone(place.limits.json_depth, place.freeform)]
    if not said and not isinstance(calls[0], Call):
        raise Refused
    if not said and place.mentioned and not (yield from _goes_on(source, place)):
        raise Refused
    yield from calls
    if said:
        yield LEFT


def _goes_on(source: Source, place: Place) -> Generator[None, None, bool]:
    """Whether the line ends here, or other markup begins in it; nothing is taken."""
    source.mark()
    ends = (yield from peek(source)) in ("", *LINE_ENDS)
    if not ends:
        yield from skip(source)
        ends = yield from place.openings.here(source)
    source.back()
    return ends


def _is_raw(source: Source, place: Place) -> Generator[None, None, bool]:
    """Whether free text stands here, and neither JSON nor other markup; nothing is taken. In a line that speaks of the
    tag it is prose."""
    if place.mentioned and (yield from peek(source)) not in LINE_ENDS:
        return False
    source.mark()
    char = yield from skip(source, BLANKS + INVISIBLE)
    if char == "<":
        raw = not (yield from one_of(source, CLOSERS + OPENERS + TOKENS))
    else:
        raw = char != "" and not (yield from _is_json(source))
    source.back()
    return raw


def _is_json(source: Source) -> Generator[None, None, bool]:
    """Whether an object begins here, or behind the line of a fence, as strict JSON does; that line is taken."""
    try:
        if (yield from peek(source)) in FENCES:
            yield from fence(source)
        return (yield from skip(source)) == "{" and (yield from second(source)) in ('"', "}")
    except (Refused, Unfinished):
        return False


def _raw(source: Source, place: Place, outside: Outside) -> Generator[Found | None, None, None]:
    """Take the input of a freeform tool, and the closer. Raises `Refused` where another call begins before that."""
    text, closer = yield from Ends(CLOSERS, place.openings).until(source)
    if not closer:
        raise Refused
    call = free_call(outside.name, unfenced(text), place.limits.json_depth, place.freeform)
    yield evolve(call, left=outside.left) if isinstance(call, Call) else call


FAMILIES = (
    Family(name="hermes", openers=(*OPENERS, *TOKENS), parse=_hermes, opening=OPENING),
    Family(name="closers of calls", openers=STRAYS, parse=stray, stray=True),
    Family(name="ends of turns", openers=TURN_END, parse=alone, stray=True, closes=False),
)
