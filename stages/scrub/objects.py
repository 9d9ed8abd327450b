"""The objects that a JSON body holds, and how they stand in its text."""

import json
import math
import re
from typing import Any, NoReturn

from attrs import evolve, frozen

from pipeline.jsontext import BLANK, dumps, end_of
from stages.scrub.json_body import Body
from stages.scrub.mend import mend_told

_BLANKS = re.compile(f"[{BLANK}]*+")


@frozen
class Value:
    """A JSON value, and its text. `mended`: the text is not the model's."""

    value: Any
    text: str
    mended: bool = False
    repeated: bool = False
    """Another of its name stood behind it, which is lost."""


def objects(read: Body, depth: int, *, call: bool = True) -> list[dict[str, Value] | None]:
    """The members of the object that a body is, or of each object in the array that it is; None for what is none.

    Strict first; what is not strict is mended, if it can be. `call`: each says a call, and is not its arguments alone.
    """
    try:
        return _strict(read.text)
    except (ValueError, RecursionError):
        pass
    try:
        mended, repeated = mend_told(read.text, missing=0 if read.whole else 1, depth=depth, call=call)
    except ValueError:
        return [None]
    return [_written(item, repeated) for item in (mended if isinstance(mended, list) else [mended])]


def _written(value: Any, repeated: bool) -> dict[str, Value] | None:
    """The members of a mended object, each in a text of ours."""
    if not isinstance(value, dict):
        return None
    return {name: Value(inner, dumps(inner).decode(), True, repeated) for name, inner in value.items()}


def _strict(text: str) -> list[dict[str, Value] | None]:
    """As `objects`, of strict JSON. Raises `ValueError` if it is none."""
    at = _blanks(text, 0)
    if text[at : at + 1] == "{":
        only, at = members(text, at)
        found: list[dict[str, Value] | None] = [only]
    else:
        found, at = _elements(text, at)
    if _blanks(text, at) != len(text):
        raise ValueError  # something stands behind the value
    return found


def members(text: str, at: int = 0) -> tuple[dict[str, Value], int]:
    """The members of the JSON object that begins here, each as it is written, and where the object ends.

    Raises `ValueError` if it is no strict JSON.
    """
    found: dict[str, Value] = {}
    at = _past(text, at, "{")
    while text[at : at + 1] != "}":
        at = _past(text, at, ",") if found else at
        if text[at : at + 1] != '"':
            raise ValueError(f"no member at {at}")
        name, at = _DECODER.raw_decode(text, at)
        at = _past(text, _blanks(text, at), ":")
        value, end = _DECODER.raw_decode(text, at)
        found[name] = evolve(found[name], repeated=True) if name in found else Value(value, text[at:end])
        at = _blanks(text, end)
    return found, at + 1


def _elements(text: str, at: int) -> tuple[list[dict[str, Value] | None], int]:
    """The objects in the JSON array that begins here, None for each other element, and where the array ends."""
    found: list[dict[str, Value] | None] = []
    at = _past(text, at, "[")
    while text[at : at + 1] != "]":
        at = _past(text, at, ",") if found else at
        element: dict[str, Value] | None = None
        if text[at : at + 1] == "{":
            element, at = members(text, at)
        else:
            at = _DECODER.raw_decode(text, at)[1]
        found.append(element)
        at = _blanks(text, at)
    return found, at + 1


def _past(text: str, at: int, char: str) -> int:
    if text[at : at + 1] != char:
        raise ValueError(f"no {char} at {at}")
    return _blanks(text, at + 1)


def _blanks(text: str, at: int) -> int:
    return end_of(_BLANKS, text, at)


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


def finite(digits: str) -> float:
    """A number. Raises `ValueError` if it is too large to be one."""
    number = float(digits)
    return number if math.isfinite(number) else _refuse(digits)


_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=finite)
