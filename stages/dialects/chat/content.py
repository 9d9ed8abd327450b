"""What a delta says: text in its several forms, reasoning in its many spellings."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from attrs import define, field

from pipeline.jsontext import whole_text
from pipeline.ledger import Ledger

Piece = tuple[Literal["text", "reasoning", "refusal"], str]

REASONING: tuple[str, ...] = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
"""Where vendors put reasoning, by rank: several servers send twins, so only the first that is not empty is read."""

READ = frozenset(
    {
        *REASONING,
        "annotations",
        "content",
        "function_call",
        "reasoning_details",
        "refusal",
        "role",
        "stop_sequence",
        "tensorzero_extra_content",
        "tool_calls",
    }
)
"""The members of a delta that are read, or say nothing."""


def said_alone(chunk: Any) -> tuple[str, Any]:
    """The member of the delta that is all a chunk brings, and its value, as in nearly every chunk; else empty."""
    try:
        (choice,) = chunk["choices"]
        if (
            choice["finish_reason"] is not None
            or choice["index"] != 0
            or chunk.get("usage") is not None
            or "error" in chunk
            or "x_groq" in chunk
            or (len(choice) > 3 and (len(choice) > 4 or choice["logprobs"] is not None))
        ):
            return "", None
        name, value = "", None
        for member, said in choice["delta"].items():
            if said and member != "role":
                if name:
                    return "", None
                name, value = member, said
    except (LookupError, TypeError, ValueError, AttributeError):
        return "", None  # another shape
    return name, value


def reasoning_of(delta: Mapping[str, Any]) -> str:
    """The reasoning of a delta, once, whatever it is called."""
    for name in REASONING:
        value = delta.get(name)
        if isinstance(value, dict):
            value = value.get("text") or value.get("content")
        if isinstance(value, str) and value:
            return value
    details = delta.get("reasoning_details") or delta.get("tensorzero_extra_content")
    if not isinstance(details, list):
        return ""
    return "".join(_text(detail.get("text") or detail.get("summary")) for detail in details if isinstance(detail, dict))


def pieces_of(content: Any, ledger: Ledger) -> Sequence[Piece]:
    """The pieces of a content list (Mistral): thinking, text and plain strings mixed."""
    if not isinstance(content, list):
        return ()
    pieces: list[Piece] = []
    for part in content:
        kind = part.get("type", "text") if isinstance(part, dict) else ""
        if isinstance(part, str):
            pieces.append(("text", part))
        elif kind in ("text", "output_text"):
            pieces.append(("text", _text(part.get("text"))))
        elif kind == "thinking":
            pieces.append(("reasoning", _text(part.get("thinking"))))
        elif kind == "refusal":
            pieces.append(("refusal", _text(part.get("refusal"))))
        else:
            ledger.record("ChatNormalizer", "content[]", "dropped", "a part that is no text")
    return pieces


def unread_members(delta: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The members that no event carries, each with the reason."""
    for name in delta.keys() - READ:
        if delta[name]:
            yield f"choices[].delta.{name[:64]}", "no event carries it"
    details = delta.get("reasoning_details")
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict) and (detail.get("data") or detail.get("signature")):
            yield "choices[].delta.reasoning_details[]", "opaque reasoning of another provider"
    calls = delta.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict) and call.get("extra_content"):
            yield "choices[].delta.tool_calls[].extra_content", "no event carries it"


def _text(value: Any) -> str:
    """Text from a string, or from a list of parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(_text(part.get("text")) if isinstance(part, dict) else _text(part) for part in value)
    return ""


@define
class Halves:
    """Joins the halves of a character that two deltas brought; half a character alone becomes U+FFFD."""

    odd: bool = field(init=False, default=False)
    """A half is waiting."""
    _waiting: dict[str, str] = field(init=False, factory=dict)

    @property
    def held(self) -> int:
        """Bytes that wait."""
        return len(self._waiting)

    def joined(self, key: str, text: str) -> str:
        """The text that can be passed on for `key`; a leading half at its end waits for the next."""
        if not text or (text.isascii() and not self.odd):
            return text
        text = self._waiting.pop(key, "") + text
        if "\ud800" <= text[-1] <= "\udbff":
            self._waiting[key] = text[-1]
            text = text[:-1]
        self.odd = bool(self._waiting)
        return whole_text(text)

    def rest(self) -> Iterable[tuple[str, str]]:
        """What still waits, by key, without its other half."""
        waiting, self._waiting, self.odd = self._waiting, {}, False
        return [(key, "\ufffd") for key in waiting]
