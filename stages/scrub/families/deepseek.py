"""DeepSeek's call tokens: V3 with a fenced body, V3.1 with a bare one, and the JSON of other models between them."""

import re
import sys
from collections.abc import Generator, Iterator
from itertools import product

from stages.scrub.calls import ARGUMENTS, BESIDE, NO_NAME, beside, call_of, calls_in, framed, free_call
from stages.scrub.code import FENCES
from stages.scrub.early import Beginning
from stages.scrub.ends import NEAR
from stages.scrub.fence import Fence, fence, unfenced
from stages.scrub.grammar import (
    BLANKS,
    Call,
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
from stages.scrub.json_body import Behind, Body, begins, body, end
from stages.scrub.mend import QUOTES
from stages.scrub.outside import Outside
from stages.scrub.several import bodies
from stages.scrub.strings import name_of


def spellings(*words: str) -> tuple[str, ...]:
    """A token as the servers write it: its bars fullwidth or not, its joints low blocks, underscores or blanks."""
    joints, bars = ("▁", "_", " ", r"\_"), ("｜", "|")
    return tuple(f"<{bar}{joint.join(words)}{bar}>" for bar, joint in product(bars, joints))


def either(tokens: tuple[str, ...]) -> str:
    """A pattern for one of the tokens."""
    return "|".join(map(re.escape, tokens))


SECTION = (*spellings("tool", "calls", "begin"), *spellings("tool", "calls"))
SECTION_END = (*spellings("tool", "calls", "end"), *spellings("/tool", "calls"))
CALL = spellings("tool", "call", "begin")
CALL_END = spellings("tool", "call", "end")
CLOSERS = (*CALL_END, *SECTION_END)
SEPARATOR = spellings("tool", "sep")
TURN_END = spellings("end", "of", "sentence")
_BODY = r"\s*+(?:\{|\[\s*+[{\]]|`{3}|~{3})"
OPENING = (
    rf"(?:{either(SECTION)})(?:\s*+(?:{either(CALL)})|{_BODY})"
    rf"|(?:{either(CALL)})(?:{_BODY}"
    rf"|[^\s<{{\"`][^\n<\"]{{0,63}}(?:{either(SEPARATOR)})|[^\s<\[{{\"`]{{1,64}}[ \t\r]*+\n{_BODY})"
)
"""A section with a call or a body; a call that has a body, or a name and what parts them."""
KIND = "function"
"""What stands in V3 before the separator, and the name behind it."""
SAYS = frozenset((*ARGUMENTS, *BESIDE))
"""The first member of a body that may say its call itself."""

_KIND = re.compile(r"[^<\n]*")
_NAME = re.compile(r"[^\s{`<]*")
_PLAIN = re.compile(r"[\w.:/-]*", re.ASCII)
_WORDS = re.compile(r"[^<`~]*")
_KEY = re.compile(r"\w*")
_SAID = re.compile(rf"[^{''.join(QUOTES)}{''.join(QUOTES.values())}\\]*")


def _deepseek(source: Source, place: Place) -> Generator[Found | None, None, None]:
    """One call, and the end of the section, or a section without one. A call behind it is read by itself: one that is
    cut or none at all leaves this one whole."""
    token = place.opener
    if token not in CALL:
        begin = source.past
        token = yield from behind_blanks(source, (*CALL, *SECTION_END))
        if not token and source.past > begin:
            raise Unfinished
    if token in CALL:
        yield from _call(source, place)
    elif not token:
        yield from _bare(source, place)
    if token in SECTION_END or (yield from behind_blanks(source, SECTION_END)):
        yield from behind_blanks(source, TURN_END)


def _bare(source: Source, place: Place) -> Generator[Found | None, None, None]:
    """Take the JSON of calls that stands in a section with no call's token; nothing is taken if only words part the
    section from its first call. Raises `Refused` if it has none."""
    apart = (yield from peek(source)) in (" ", "\t")
    char = yield from skip(source)
    if char in ("{", "[") or char in FENCES:
        yield from _said(source, place, (yield from _around(source)))
        return
    if apart and place.mentioned:
        raise Refused
    source.mark()
    yield from word(source, _WORDS, NEAR)
    token = yield from one_of(source, CALL)
    source.at -= len(token)
    called = token != "" and (yield from place.openings.here(source))
    source.back()
    if not called:
        raise Refused


def _call(source: Source, place: Place) -> Generator[Found | None, None, None]:
    """One call behind its opening token, the closing one included."""
    apart = (yield from peek(source)) in BLANKS
    char = yield from skip(source)
    if char in ("{", "[") or char in FENCES:
        yield from _said(source, place, (yield from _around(source)))
        return
    if apart:  # as prose would write it
        raise Refused
    kind = (yield from _word(source, _KIND, 256)).strip()
    if not (yield from one_of(source, SEPARATOR)):
        if is_cut(source, SEPARATOR):
            raise Unfinished
        yield from _below(source, place, kind)
        return
    source.mark()
    try:
        name, around = yield from _arguments(source, kind)
        if name not in place.freeform:
            source.taken()
        yield from _json(source, place, name, around)
    except Refused:
        source.back()
        yield from _raw(source, place, kind)


def _below(source: Source, place: Place, name: str) -> Generator[Found | None, None, None]:
    """Take the arguments of a call that stand in the lines below its name. Raises `Refused` if none do."""
    if not name or _NAME.fullmatch(name) is None or (yield from skip(source)) == "":
        raise Refused
    yield from _json(source, place, name_of(name), (yield from _around(source)))


def _said(source: Source, place: Place, around: Fence | None) -> Generator[Found | None, None, None]:
    """Take JSON bodies that say their calls themselves, and what closes them."""
    behind = yield from bodies(source, place, CLOSERS, Outside(), around)
    yield from _closed(source, behind)


def _closed(source: Source, behind: Behind) -> Iterator[Lost]:
    """What stood between a body and what closes it. The end of a section is that one's."""
    if behind.token in SECTION_END:
        source.at -= len(behind.token)
    return beside(behind)


def _json(source: Source, place: Place, name: str, around: Fence | None) -> Generator[Found | None, None, None]:
    """Take the JSON body of a call that is named before it, and what closes it.

    Raises `Refused` if it is none and may be the text of a freeform tool.
    """
    free = name in place.freeform
    if free and not (yield from _is_strict(source)):
        raise Refused
    says = yield from _first(source, place, name)
    early = None
    if place.early and says in ("", "name"):
        early = Beginning(place, "" if _is_kind(name, place) and says else name, whole=not says)
    read = yield from body(source, CLOSERS, place.limits.json_depth, early, openings=place.openings)
    calls = _calls(read, place, name, says)
    if free and not (early and early.opened):
        if isinstance(calls[0], Lost):
            raise Refused
        source.taken()
    yield from framed(calls, around)
    behind = yield from end(source, CLOSERS, place.openings, several=False, around=around)
    yield from _closed(source, behind)


def _calls(read: Body, place: Place, name: str, says: str) -> list[Call | Lost]:
    """The calls of a body: those that it says itself, or that of the tool which is named before it."""
    depth, freeform = place.limits.json_depth, place.freeform
    if not says:
        return [call_of(name, read, depth, freeform=freeform)]
    if _is_kind(name, place):
        said = [*calls_in(read, depth, freeform=freeform)]
        if says == "name" or all(isinstance(call, Call) and not call.left for call in said):
            return said
    return [*calls_in(read, depth, name, tools=place.tools, freeform=freeform)]


def _is_kind(name: str, place: Place) -> bool:
    return name == KIND and name not in place.tools


def _first(source: Source, place: Place, name: str) -> Generator[None, None, str]:
    """The first member of the body that begins here, if the body may say its call itself, in spite of the name before
    it; `name` only with that of a tool. Nothing is taken."""
    if source.text[source.at] == "[":
        return "name"
    source.mark()
    try:
        source.at += 1
        if (yield from skip(source)) in QUOTES:
            source.at += 1
        key = yield from word(source, _KEY)
        if key != "name":
            return key if key in SAYS else ""
        while (char := (yield from skip(source))) and (char == ":" or char in QUOTES.values()):
            source.at += 1
            if char == ":":
                break
        if (yield from skip(source)) not in QUOTES:
            return ""
        source.at += 1
        said = name_of((yield from word(source, _SAID, place.limits.id_chars)))
        if said in place.tools:
            return key
        escaped = (yield from peek(source)) == "\\"
        return "id" if escaped or _is_kind(name, place) else ""
    except Refused:
        return ""
    finally:
        source.back()


def _is_strict(source: Source) -> Generator[None, None, bool]:
    """Whether a body begins as JSON does: what a tool of free text is given may hold quotes that nothing closes."""
    return (yield from second(source)) in ('"', "}")


def _arguments(source: Source, kind: str) -> Generator[None, None, tuple[str, Fence | None]]:
    """Take what stands between the separator and the arguments: the tool's name, and a fence that is opened there.

    The name stands before the separator, or, if that is a mere kind, behind it. Raises `Refused` where no arguments
    follow.
    """
    char = yield from skip(source)
    inside = kind == KIND and char not in ("{", "[") and char not in FENCES
    name = (yield from _word(source, _NAME, 256)) if inside else kind
    return name_of(name), (yield from _around(source))


def _around(source: Source) -> Generator[None, None, Fence | None]:
    """Take what stands before a body, and a fence that is opened there. Raises `Refused` if none begins."""
    char = yield from skip(source)
    around = (yield from fence(source)) if char in FENCES else None
    if not (yield from skip(source)):
        raise Unfinished
    if not (yield from begins(source)):
        raise Refused
    return around


def _raw(source: Source, place: Place, kind: str) -> Generator[Found | None, None, None]:
    """Take what stands in place of JSON, and the closing token: the input of a freeform tool, or no arguments at all.

    Raises `Refused` if there is none, or none is near: it is prose, but `Unfinished` where the input of a freeform tool
    has begun.
    """
    name = kind
    if kind == KIND:
        yield from skip(source)
        name = (yield from _word(source, _NAME, sys.maxsize)) or (KIND if KIND in place.tools else "")
    name, most = name_of(name), sys.maxsize
    if name not in place.freeform:
        yield from skip(source)
        most = NEAR
    try:
        text, token = yield from until(source, (*CALL_END, *SECTION_END, *CALL, *SECTION), most)
    except Unfinished:
        if name in place.freeform:
            raise
        raise Refused from None
    if token in CALL or token in SECTION:
        raise Refused
    if token in SECTION_END:
        source.at -= len(token)
    yield _given(name, unfenced(text), place)


def _given(name: str, text: str, place: Place) -> Call | Lost:
    """The call of a tool with what stands in place of JSON: nothing is no arguments, but no free text."""
    if name in place.freeform or text.strip() not in ("", "null"):
        return free_call(name, text, place.limits.json_depth, place.freeform)
    return Call(name, "{}") if name else NO_NAME


def _word(source: Source, pattern: "re.Pattern[str]", most: int) -> Generator[None, None, str]:
    """Take what matches, `NEAR` characters of it, or `most` of those that names are made of. Raises `Refused` if it is
    longer."""
    plain = yield from word(source, _PLAIN, most)
    return plain + (yield from word(source, pattern, max(NEAR - len(plain), len("  \r\n"))))


FAMILIES = (
    Family(name="deepseek", openers=(*SECTION, *CALL), parse=_deepseek, opening=OPENING),
    Family(name="closers of DeepSeek's calls", openers=(*SECTION_END, *CALL_END, *TURN_END), parse=stray, stray=True),
)
