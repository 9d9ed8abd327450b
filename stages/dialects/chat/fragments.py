"""The fragments of calls, as a delta brings them."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define

from pipeline.events import ToolKind
from pipeline.jsontext import dumps, exact, is_whole
from pipeline.ledger import Ledger

LEGACY = "function_call"
"""The place of the one call that the deprecated `function_call` deltas make."""

_STARTS_VALUE = re.compile(r'\s*(?:[{\[]|"\s*\{|null\s*\Z)')
"""Text that begins the arguments of a call, and does not go on with some."""

_NUMBER = re.compile("[0-9]{1,9}")


@define
class Fragment:
    """One entry of `tool_calls`, its members read one by one."""

    place: int | str | None
    id: str
    name: str
    text: str
    kind: ToolKind
    value: bool = False
    """Its arguments came as a value, not as text."""
    proof: str = ""
    """What the provider must get back with the call (Gemini's thought signature), as a later request holds it."""

    @classmethod
    def of(cls, entry: Mapping[str, Any], place: int | str | None = None) -> "Fragment":
        """Read an entry; what is odd in it counts as absent."""
        body, kind = entry.get("function"), ToolKind.FUNCTION
        if not isinstance(body, dict) and (entry.get("type") == "custom" or isinstance(entry.get("custom"), dict)):
            body, kind = entry.get("custom"), ToolKind.CUSTOM
        if not isinstance(body, dict):
            body = {}
        text = body.get("input") if kind is ToolKind.CUSTOM else body.get("arguments")
        value = text is not None and not isinstance(text, str)
        return cls(
            place=_place(entry.get("index")) if place is None else place,
            id="" if entry.get("id") == "null" else _word(entry.get("id")),  # Mistral's SDK writes the word
            name=_word(body.get("name")),
            text=dumps(text).decode() if value else text or "",
            kind=kind,
            value=value,
            proof=replay(extra) if _says(extra := entry.get("extra_content")) else "",
        )

    @property
    def begins(self) -> bool:
        """Its text begins the arguments of a call."""
        return _STARTS_VALUE.match(self.text) is not None


def fragments_of(entries: Sequence[Any], ledger: Ledger) -> list[Fragment]:
    """The fragments that a list of entries holds. What the provider runs itself (`type` says what) is none."""
    fragments = []
    for entry in entries:
        if not isinstance(entry, dict):
            ledger.record("ChatNormalizer", "tool_calls[]", "ignored", "no object")
        elif is_call(entry):
            fragments.append(Fragment.of(entry))
        else:
            ledger.record("ChatNormalizer", "tool_calls[]", "dropped", "an item of a tool that the provider runs")
    return fragments


def exact_entries(data: bytes, at: int) -> Sequence[Any]:
    """The `tool_calls` of a frame's choice, read with every digit of its numbers; empty if they are not where they
    stand in a chunk."""
    try:
        choice = exact(data)["choices"][at]
        return list((choice.get("delta") or choice["message"])["tool_calls"])
    except (ValueError, LookupError, TypeError):
        return ()


def more_alone(entries: Any) -> tuple[int, str]:
    """The place and the text of a fragment that is nothing but more arguments; else no text."""
    try:
        (entry,) = entries
        function = entry["function"]
        (text,) = function.values()
        place = entry["index"]
        if len(entry) == 2 and type(place) is int and "arguments" in function and is_whole(text):
            return place, text
    except (LookupError, TypeError, ValueError, AttributeError):
        pass
    return 0, ""


def replay(proof: Any) -> str:
    """What the call that follows holds in a later request."""
    return dumps({"tool_calls": [{"extra_content": proof}]}).decode()


def _says(proof: Any) -> bool:
    """Whether there is anything in it."""
    return any(map(_says, proof.values())) if isinstance(proof, dict) else isinstance(proof, str) and bool(proof)


def is_call(entry: Mapping[str, Any]) -> bool:
    """Whether an entry is of a call, not an item of a tool that the provider runs itself."""
    kind = entry.get("type")
    named = isinstance(entry.get("function"), dict) or isinstance(entry.get("custom"), dict)
    return named or not isinstance(kind, str) or kind in ("", "function", "custom")


def _place(index: Any) -> int | str | None:
    """An `index` as servers write it: a number, rarely a string of one."""
    if isinstance(index, str):
        return int(index) if _NUMBER.fullmatch(index) else None
    if isinstance(index, float):
        return int(index) if index.is_integer() else None
    return index if isinstance(index, int) and not isinstance(index, bool) else None


def _word(value: Any) -> str:
    """An id or a name; a blank one is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and not value.isspace() else ""
