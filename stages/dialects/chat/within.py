"""What stands within a delta that no event carries."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pipeline.logprobs import note_unread, scores_in
from pipeline.unread import UNCARRIED, Unread, says
from pipeline.word import word
from stages.dialects.chat.content import DETAIL, JOINT, NAMING, SILENT_BESIDE, THINKING, thought_in, unread_members
from stages.dialects.chat.notes import NOTE

FIRST_CHOICE: Final = (0, None, "0")
"""The index of the choice that is read."""
OF_CALL: Final = frozenset({"index", "id", "type", "function", "custom", "extra_content"})
OF_BODY: Final = {
    "function": frozenset({"name", "arguments"}),
    "custom": frozenset({"name", "input"}),
}
"""The members of a call, and of the object within, that are read."""
OF_SCORES: Final = frozenset({"content", "refusal"})
OF_NOTE: Final = frozenset({"type", NOTE})
OF_PART: Final = {
    **dict.fromkeys(("text", "output_text"), frozenset({"type", "text"})),
    **dict.fromkeys(("thinking", "reasoning"), frozenset({"type", "signature", "closed"})),
    "refusal": frozenset({"type", "refusal"}),
}
"""The parts that are read, and the members of each; others are dropped whole. A thought has one of `THOUGHTS` besides,
and `closed`: Mistral says that it has ended."""
OF_DETAIL: Final = NAMING | DETAIL
SECOND: Final = "its details or parts say something else, and are read"
EXCLUDED: Final = "what stands beside it counts"


def note_delta(delta: Mapping[str, Any], unread: Unread) -> None:
    """Record what of a delta is not read."""
    for path, reason in unread_members(delta):
        unread.ledger.record(unread.stage, path, "dropped", unread.reason if reason == UNCARRIED else reason)
    if calls := delta.get("tool_calls"):
        for call in calls if isinstance(calls, list) else (calls,):
            _note_call(call, unread)
        if says(delta.get("function_call")):
            unread.ledger.record(unread.stage, "choices[].delta.function_call", "dropped", EXCLUDED)
    elif call := delta.get("function_call"):
        unread.note(call, OF_BODY["function"], "choices[].delta.function_call.")
    if isinstance(parts := delta.get("content"), list):
        for part in parts:
            note_part(part, unread, "choices[].delta.content[].")
    if isinstance(notes := delta.get("annotations"), list):
        for note in notes:
            if isinstance(note, dict) and isinstance(note.get(NOTE), dict):
                unread.note(note, OF_NOTE, "choices[].delta.annotations[].")
    if isinstance(details := delta.get("reasoning_details"), list):
        for detail in details:
            if isinstance(detail, dict) and not (detail.get("data") or detail.get("signature")):
                unread.note(detail, OF_DETAIL, "choices[].delta.reasoning_details[].")


def note_second(reasoning: str, pieces: Iterable[tuple[str, str]], unread: Unread) -> None:
    """Record reasoning that stands beside other reasoning, which is read, unless that says it all."""
    told = [text for kind, text in pieces if kind == "reasoning"]
    if reasoning and reasoning not in told and reasoning not in ("".join(told), JOINT.join(told)):
        unread.ledger.record(unread.stage, "choices[].delta.reasoning", "dropped", SECOND)


def note_part(part: Any, unread: Unread, prefix: str) -> None:
    """Record what of a part of a content is not read; one that is dropped whole is another's affair."""
    if isinstance(part, dict) and (kind := word(part.get("type", "text"))) in OF_PART:
        thought = {thought_in(part)} if kind in THINKING else set()
        unread.note(part, OF_PART[kind], prefix, apart=thought)


def note_choice(choice: Mapping[str, Any], unread: Unread, *, whole: bool) -> None:
    """Record what of a choice is not read. `whole`: its message counts, not a delta beside it; else the other way,
    and the message may say all so far once more."""
    unread.note(choice, SILENT_BESIDE, "choices[].")
    due, other = ("message", "delta") if whole else ("delta", "message")
    if says(choice.get(due)) and not _is_said(choice.get(other), choice[due]):
        unread.ledger.record(unread.stage, f"choices[].{other}", "dropped", EXCLUDED)


def _is_said(beside: Any, due: Any) -> bool:
    """Whether all that one object says ends with what another does; whose words they are does not matter."""
    if not isinstance(beside, dict) or not isinstance(due, dict):
        return not says(beside)
    return all(
        name == "role" or not says(value) or value == due.get(name) or _ends(value, due.get(name))
        for name, value in beside.items()
    )


def _ends(text: Any, end: Any) -> bool:
    return isinstance(text, str) and isinstance(end, str) and text.endswith(end)


def note_scores(scores: Any, unread: Unread) -> None:
    """Record what of a choice's `logprobs` is not read."""
    unread.note(scores, OF_SCORES, "choices[].logprobs.")
    if isinstance(scores, dict):
        note_unread(scores.get("content"), unread, "choices[].logprobs.content")
        if scores.get("refusal"):
            unread.ledger.record(unread.stage, "choices[].logprobs.refusal", "dropped", UNCARRIED)


def note_tokenless(note: Mapping[str, Any], told: Sequence[Any], unread: Unread) -> None:
    """Record that some of what was told of tokens is of none."""
    if len(scores_in(note)) < len(told):
        unread.ledger.record(unread.stage, "choices[].logprobs[]", "dropped", "no token")


def _note_call(call: Any, unread: Unread) -> None:
    """A call is read by its members; what the provider runs itself is none, and dropped whole."""
    unread.note(call, OF_CALL, "choices[].delta.tool_calls[].")
    if isinstance(call, dict) and call.get("function") and call.get("custom"):
        unread.ledger.record(unread.stage, "choices[].delta.tool_calls[].custom", "dropped", EXCLUDED)
        call = {**call, "custom": None}
    for name, read in OF_BODY.items() if isinstance(call, dict) else ():
        unread.note(call.get(name), read, f"choices[].delta.tool_calls[].{name}.")
