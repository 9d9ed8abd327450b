"""DeepSeek's call tokens: V3 with a fenced body, V3.1 with a bare one, and the JSON of other models between them."""

import re
import sys
from collections.abc import Generator
from itertools import product

from stages.scrub.calls import beside, call_of, calls_in, framed, free_call
from stages.scrub.code import FENCES
from stages.scrub.early import Beginning
from stages.scrub.fence import Fence, fence, unfenced
from stages.scrub.grammar import (
    BLANKS,
    Family,
    Found,
    Lost,
    Place,
    Refused,
    Source,
    Unfinished,
    behind_blanks,
    is_cut,
    one_of,
    peek,
    second,
    skip,
    stray,
    until,
    word,
)
from stages.scrub.json_body import body, end
from stages.scrub.strings import name_of


def spellings(*words: str) -> tuple[str, ...]:
    """A token as the servers write it: its bars fullwidth or not, its joints low blocks, underscores or blanks."""
    joints, bars = ("▁", "_", " ", r"\_"), ("｜", "|")
    return tuple(f"<{bar}{joint.join(words)}{bar}>" for bar, joint in product(bars, joints))


def either(tokens: tuple[str, ...]) -> str:
    """A pattern for one of the tokens."""
    return "|".join(map(re.escape, tokens))


SECTION = (*spellings("tool", "calls", "begin"), *spellings("tool", "calls"))
SECTION_END = spellings("tool", "calls", "end")
CALL = spellings("tool", "call", "begin")
CALL_END = spellings("tool", "call", "end")
CLOSERS = (*CALL_END, *SECTION_END)
SEPARATOR = spellings("tool", "sep")
TURN_END = spellings("end", "of", "sentence")
OPENING = (
    rf"(?:{either(SECTION)})\s*+(?:{either(CALL)})"
    rf"|(?:{either(CALL)})(?:\s*+(?:\{{|`{{3}}|~{{3}})|[^\s<{{\"`][^\n<\"]{{0,63}}(?:{either(SEPARATOR)}))"
)
"""A section with a call; a call that has a body, or a name and the separator."""
KIND = "function"
"""What stands in V3 before the separator, and the name behind it."""

_KIND = re.compile(r"[^<\n]*")
_NAME = re.compile(r"[^\s{`<]*")


def _deepseek(source: Source, place: Place) -> Generator[Found | None, None, None]:
    token = place.opener if place.opener in CALL else (yield from behind_blanks(source, (*CALL, *SECTION_END)))
    if not token:
        raise Unfinished if source.text.strip() and is_cut(source, CALL) else Refused
    while token in CALL:
        yield from _call(source, place)
        token = yield from behind_blanks(source, (*CALL, *SECTION_END))
    if token:
        yield from behind_blanks(source, TURN_END)


def _call(source: Source, place: Place) -> Generator[Found | None, None, None]:
    """One call behind its opening token, the closing one included."""
    apart = (yield from peek(source)) in BLANKS
    char = yield from skip(source)
    if char == "{" or char in FENCES:
        around = (yield from fence(source)) if char in FENCES else None
        if (char := (yield from skip(source))) != "{":
            raise Refused if char else Unfinished
        yield from _json(source, place, "", around)
        return
    if apart:  # as prose would write it
        raise Refused
    kind = (yield from word(source, _KIND)).strip()
    if not (yield from one_of(source, SEPARATOR)):
        raise Unfinished if is_cut(source, SEPARATOR) else Refused
    source.mark()
    try:
        name, around = yield from _arguments(source, kind)
        if name not in place.freeform:
            source.taken()
        yield from _json(source, place, name, around)
    except Refused:
        source.back()
        yield from _raw(source, place, kind)


def _json(source: Source, place: Place, name: str, around: Fence | None) -> Generator[Found | None, None, None]:
    """Take a JSON body and what closes it. Raises `Refused` if it is none and may be the text of a freeform tool."""
    depth = place.limits.json_depth
    early = Beginning(place, name, whole=bool(name)) if place.early else None
    free = name in place.freeform
    if free and not (yield from _is_strict(source)):
        raise Refused
    read = yield from body(source, CLOSERS, depth, early, openings=place.openings)
    calls = (
        [call_of(name, read, depth, freeform=place.freeform)]
        if name
        else [*calls_in(read, depth, freeform=place.freeform)]
    )
    if free and not (early and early.opened):
        if isinstance(calls[0], Lost):
            raise Refused
        source.taken()
    yield from framed(calls, around)
    behind = yield from end(source, CLOSERS, place.openings, several=False, around=around)
    if behind.token in SECTION_END:
        source.at -= len(behind.token)
    yield from beside(behind)


def _is_strict(source: Source) -> Generator[None, None, bool]:
    """Whether a body begins as JSON does: what a tool of free text is given may hold quotes that nothing closes."""
    return (yield from second(source)) in ('"', "}")


def _arguments(source: Source, kind: str) -> Generator[None, None, tuple[str, Fence | None]]:
    """Take what stands between the separator and the arguments: the tool's name, and a fence that is opened there.

    The name stands before the separator, or, if that is a mere kind, behind it. Raises `Refused` where no arguments
    follow.
    """
    char = yield from skip(source)
    name = kind if kind != KIND or char == "{" or char in FENCES else (yield from word(source, _NAME))
    char = yield from skip(source)
    around = (yield from fence(source)) if char in FENCES else None
    char = yield from skip(source)
    if not char:
        raise Unfinished
    if char != "{":
        raise Refused
    return name_of(name), around


def _raw(source: Source, place: Place, kind: str) -> Generator[Found | None, None, None]:
    """Take what stands in place of JSON, and the closing token: the input of a freeform tool, or no arguments at all.

    Raises `Refused` if there is none: it is prose, but `Unfinished` where the input of a freeform tool has begun.
    """
    name = kind
    if kind == KIND:
        yield from skip(source)
        name = yield from word(source, _NAME, sys.maxsize)
    name = name_of(name)
    try:
        text, token = yield from until(source, (*CALL_END, *SECTION_END, *CALL, *SECTION))
    except Unfinished:
        if name in place.freeform:
            raise
        raise Refused from None
    if token in CALL or token in SECTION:
        raise Refused
    if token in SECTION_END:
        source.at -= len(token)
    yield free_call(name, unfenced(text), place.limits.json_depth, place.freeform)


FAMILIES = (
    Family(name="deepseek", openers=(*SECTION, *CALL), parse=_deepseek, opening=OPENING),
    Family(name="closers of DeepSeek's calls", openers=(*SECTION_END, *CALL_END, *TURN_END), parse=stray, stray=True),
)
