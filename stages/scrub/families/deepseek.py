"""DeepSeek's call tokens: V3 with a fenced body, V3.1 with a bare one, and the JSON of other models between them."""

import re
from collections.abc import Generator
from itertools import product

from stages.scrub.calls import NO_ARGUMENTS, call_of, calls_in
from stages.scrub.early import Beginning
from stages.scrub.grammar import (
    BLANKS,
    Family,
    Found,
    Place,
    Refused,
    Source,
    Unfinished,
    behind_blanks,
    fence,
    is_cut,
    one_of,
    peek,
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


SECTION = (*spellings("tool", "calls", "begin"), *spellings("tool", "calls"))
SECTION_END = spellings("tool", "calls", "end")
CALL = spellings("tool", "call", "begin")
CALL_END = spellings("tool", "call", "end")
SEPARATOR = spellings("tool", "sep")
TURN_END = spellings("end", "of", "sentence")
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
    name = ""
    char = yield from skip(source)
    fenced = char == "`"
    if char not in ("{", "`"):
        if apart:  # as prose would write it
            raise Refused
        kind = (yield from word(source, _KIND)).strip()
        if not (yield from one_of(source, SEPARATOR)):
            raise Unfinished if is_cut(source, SEPARATOR) else Refused
        source.mark()
        try:
            said, fenced = yield from _arguments(source, kind)
        except Refused:
            source.back()
            yield from _hopeless(source)
            return
        source.taken()
        name = name_of(said)
    elif fenced and (char := (yield from fence(source))) != "{":
        raise Refused if char else Unfinished
    depth = place.limits.json_depth
    early = Beginning(place, name, whole=bool(name)) if place.early else None
    read = yield from body(source, (*CALL_END, *SECTION_END, *CALL), depth, early)
    if name:
        yield call_of(name, read, depth)
    else:
        yield from calls_in(read, depth, freeform=place.freeform)
    if fenced:
        yield from behind_blanks(source, ("```",))
    yield from end(source, CALL_END, (*SECTION_END, *CALL, *SECTION, "{"))


def _arguments(source: Source, kind: str) -> Generator[None, None, tuple[str, bool]]:
    """Take what stands between the separator and the arguments: the tool's name, and whether a fence is opened there.

    The name stands before the separator, or, if that is a mere kind, behind it. Raises `Refused` where no arguments
    follow.
    """
    char = yield from skip(source)
    name = kind if kind != KIND or char in ("{", "`") else (yield from word(source, _NAME))
    char = yield from skip(source)
    fenced = char == "`"
    if fenced:
        char = yield from fence(source)
    if not char:
        raise Unfinished
    if char != "{":
        raise Refused
    return name, fenced


def _hopeless(source: Source) -> Generator[Found | None, None, None]:
    """Take what stands in place of arguments, and the closing token. Raises `Refused` if there is none: it is prose."""
    try:
        _, token = yield from until(source, (*CALL_END, *SECTION_END, *CALL, *SECTION))
    except Unfinished:
        raise Refused from None
    if token in CALL or token in SECTION:
        raise Refused
    if token in SECTION_END:
        source.at -= len(token)
    yield NO_ARGUMENTS


FAMILIES = (
    Family(name="deepseek", openers=(*SECTION, *CALL), parse=_deepseek),
    Family(name="closers of DeepSeek's calls", openers=(*SECTION_END, *CALL_END, *TURN_END), parse=stray, stray=True),
)
