"""What a delta says: text in its several forms, reasoning in its many spellings."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from attrs import define, field

from pipeline.jsontext import dumps
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.unread import UNCARRIED, brings
from stages.dialects.chat.fragments import more_alone

Piece = tuple[Literal["text", "reasoning", "refusal"], str]
Detail = tuple[Literal["reasoning", "signature", "redacted"], str]

REASONING: tuple[str, ...] = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
"""Where vendors put reasoning, by rank: several servers send twins, so only the first that is not empty is read."""

THINKING: Final = ("thinking", "reasoning")
THOUGHTS: Final = ("thinking", "summary", "text")
"""The parts of a content that are reasoning, and where each has its text, by rank."""

SPELLINGS: Final = REASONING[:2]
"""Those of nearly all vendors."""

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

PLAIN: Final = frozenset({"id", "object", "created", "model", "choices", "usage", "type", "obfuscation", "p", "nonce"})
"""The members of a chunk that are read wherever they stand, or that only make it longer."""

SERVING: Final = frozenset({"service_tier", "provider"})
"""Those that tell how the answer was made."""

APART: Final = SERVING | {"error", "x_groq", "base_resp"}
"""Those, and its errors: read where they say something."""

OF_GROQ: Final = frozenset({"usage", "error"})
"""The members of Groq's own object that are read."""

STANDARD: Final = {"index", "delta", "finish_reason"}
"""The members that every choice has."""

SILENT_BESIDE: Final = frozenset(
    {
        *("index", "delta", "message", "finish_reason", "usage", "error", "logprobs"),
        *("stop_reason", "matched_stop", "stop_sequence"),
    }
)
"""The members of a choice that are read."""

NAMING: Final = frozenset({"type", "index", "id", "format"})
DETAIL: Final = frozenset({"text", "summary", "data", "signature"})
"""What names a reasoning detail, and what it says."""

FORMS: Final[dict[str, type]] = {"annotations": list, "function_call": dict, "stop_sequence": str}
"""What some members of a delta are."""

OPAQUE: Final = "opaque reasoning of another provider"

JOINT: Final = "\n\n"
"""What we write between the reasoning of two items."""

TELLING: Final = 4
"""So many characters again at the beginning of a delta are a repetition, not a model that stammers."""


def said_alone(chunk: Any) -> tuple[str, Any]:
    """The member of the delta that is all a chunk's choice brings, and its value, as in nearly every chunk; else
    empty."""
    try:
        (choice,) = chunk["choices"]
        if (
            choice["finish_reason"] is not None
            or choice["index"] != 0
            or chunk.get("usage") is not None
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


def text_alone(chunk: Any) -> Any:
    """What `said_alone` tells, or the text of the fragment that it is."""
    name, value = said_alone(chunk)
    return more_alone(value)[1] if name == "tool_calls" else value


def reasoning_of(delta: Mapping[str, Any]) -> str:
    """The reasoning of a delta, once, whatever it is called."""
    for name in REASONING:
        value = delta.get(name)
        if isinstance(value, dict):
            value = value.get("text") or value.get("content")
        if isinstance(value, str) and value:
            return value
    return ""


def detailed_reasoning(delta: Mapping[str, Any]) -> str:
    """The reasoning that only the details of a delta hold."""
    details = _list(delta.get("reasoning_details") or delta.get("tensorzero_extra_content"))
    return "".join(_text(detail.get("text") or detail.get("summary")) for detail in details if isinstance(detail, dict))


def items_of(delta: Mapping[str, Any]) -> Sequence[str]:
    """The reasoning of the items that a delta holds as we write them: a blank line apart, and each in its detail.

    The first goes on with what was said before; it is empty where the delta begins another.
    """
    said = delta.get("reasoning_content")
    texts = [_text(detail.get("text")) for detail in _list(delta.get("reasoning_details")) if isinstance(detail, dict)]
    for items in (texts, ["", *texts]):
        if len(items) > 1 and all(items[1:]) and said == JOINT.join(items):
            return items
    return ()


def pieces_of(delta: Mapping[str, Any], ledger: Ledger, *, whole: bool = False) -> Sequence[Piece]:
    """The pieces of a delta's content: its text, or those of a list (Mistral and Databricks mix reasoning in).

    `whole`: it is a whole message, which Gemini marks as a thought if any of it was one.
    """
    content = delta.get("content")
    if isinstance(content, str):
        return (("reasoning" if _is_thought(delta) and not whole else "text", content),) if content else ()
    pieces: list[Piece] = []
    if not isinstance(content, list):
        if content is not None:
            ledger.record("ChatNormalizer", "content", "ignored", "neither text nor a list")
        return pieces
    for part in content:
        kind = part.get("type", "text") if isinstance(part, dict) else ""
        if isinstance(part, str):
            pieces.append(("text", part))
        elif kind in ("text", "output_text"):
            pieces.append(("text", _text(part.get("text"))))
            if part.get("text") and not pieces[-1][1]:
                ledger.record("ChatNormalizer", "content[].text", "ignored", "no text")
        elif kind in THINKING:
            inner = part.get(thought_in(part))
            pieces.append(("reasoning", _text(inner)))
            if any(isinstance(one, dict) and one.get("signature") for one in (part, *_list(inner))):
                ledger.record("ChatNormalizer", "content[].signature", "dropped", OPAQUE)
        elif kind == "refusal":
            pieces.append(("refusal", _text(part.get("refusal"))))
        else:
            ledger.record("ChatNormalizer", "content[]", "dropped", "a part that is no text")
    return pieces


def thought_in(part: Mapping[str, Any]) -> str:
    """The member that a part of reasoning is read from: the first that says something."""
    return next(filter(part.get, THOUGHTS), "")


def said_of(part: Any) -> str:
    """The text of one part of a content that is a list."""
    return "".join(text for _, text in pieces_of({"content": [part]}, Ledger()))


def details_of(delta: Mapping[str, Any]) -> Sequence[Detail]:
    """The reasoning details of a delta, in order, if any is opaque: texts, and the proof of what was said last or a
    blob that holds reasoning. Either is what goes back to the provider, in its own words, but for the text."""
    found: list[Detail] = []
    for detail in _list(delta.get("reasoning_details")):
        if not isinstance(detail, dict):
            continue
        if said := _text(detail.get("text") or detail.get("summary")):
            found.append(("reasoning", said))
        if detail.get("data") and isinstance(detail["data"], str):
            found.append(("redacted", _replay(detail)))
        elif detail.get("signature") and isinstance(detail["signature"], str):
            found.append(("signature", _replay({name: value for name, value in detail.items() if name != "text"})))
    return found if any(kind != "reasoning" for kind, _ in found) else ()


def unread_members(delta: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The members that no event carries, each with the reason."""
    for name in delta.keys() - READ:
        if delta[name]:
            yield f"choices[].delta.{name[:64]}", UNCARRIED
    for name, form in FORMS.items():
        if (said := delta.get(name)) and not isinstance(said, form):
            yield f"choices[].delta.{name}", "not in a form that is known"
    words = set()
    for name in REASONING:
        said = delta.get(name)
        if isinstance(said, dict) and said.get("signature"):
            yield f"choices[].delta.{name}.signature", OPAQUE
        elif isinstance(said, str):
            words.add(said)
        elif said and not isinstance(said, dict):
            yield f"choices[].delta.{name}", "not in a form that is known"
    if len(words - {""}) > 1:
        yield "choices[].delta.reasoning", "two members say different things, and the first is read"
    for detail in _list(delta.get("reasoning_details")):
        if not isinstance(detail, dict) or (brings(detail, NAMING) and not DETAIL & detail.keys()):
            yield "choices[].delta.reasoning_details[]", "not in a form that is known"


def word_of(value: Any, ledger: Ledger, limits: Limits) -> str:
    """The message's id or the model's name; an odd one is none."""
    if isinstance(value, str) and len(value) <= limits.id_chars:
        return value
    if value is not None:
        ledger.record("ChatNormalizer", "id, model", "ignored", "no text, or a long one")
    return ""


def _replay(detail: Mapping[str, Any]) -> str:
    """What an assistant's message of a later request holds of a detail."""
    return dumps({"reasoning_details": [detail]}).decode()


def _is_thought(delta: Mapping[str, Any]) -> bool:
    """Whether Gemini marks the content as a thought."""
    extra = delta.get("extra_content")
    google = extra.get("google") if isinstance(extra, dict) else None
    return isinstance(google, dict) and google.get("thought") is True


def _text(value: Any) -> str:
    """Text from a string, or from a list of parts."""
    if isinstance(value, str):
        return value
    return "".join(_text(part.get("text")) if isinstance(part, dict) else _text(part) for part in _list(value))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


@define
class Repeats:
    """Takes out of a delta what it repeats: MiniMax documents details that hold all that came so far.

    The first delta behind `TELLING` characters settles whether they do.
    """

    _said: str = field(init=False, default="")
    _cumulative: bool | None = field(init=False, default=None)

    def new(self, text: str) -> str:
        """The part of a delta that is new."""
        if not text or self._cumulative is False:
            return text
        if self._cumulative is None and len(self._said) >= TELLING:
            if text == self._said:
                return text  # a stammer, or a repetition: the next one tells
            self._cumulative = text.startswith(self._said)
        if not self._cumulative:
            self._said = "" if self._cumulative is False else self._said + text
            return text
        fresh = text.removeprefix(self._said)  # all of it, if something else begins
        self._said = text
        return fresh
