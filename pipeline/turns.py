"""Putting the turns of a request in the order that every provider demands: each call's result right behind the call."""

from collections.abc import Iterable, Iterator, Sequence

from attrs import evolve

from pipeline.ladder import Ladder, Rule
from pipeline.request import (
    AudioPart,
    DocumentPart,
    ImagePart,
    Part,
    ReasoningPart,
    ResultPart,
    Role,
    ServerPart,
    TextPart,
    ToolResultPart,
    ToolUsePart,
    Turn,
)

SOMETHING = "."
"""What a user says where somebody must say something."""
ERROR_PREFIX = "[tool error] "
"""What the text of a failed tool's result begins with, where a dialect cannot say that it failed."""
NO_OUTPUT = "no output"
"""The result of a call that was never answered."""
OUT_OF_PLACE = "part out of place"
UNANSWERED = "turns.unanswered_call"
ORPHAN = "turns.orphan_result"


def bind(turns: Sequence[Turn], ladder: Ladder) -> list[Turn]:
    """The turns with the results of each assistant's turn first in the user's turn that follows it.

    A call without result gets one, a result without call becomes text, as the ladder's rows `UNANSWERED` and `ORPHAN`
    say; nobody but the user gives either. Ids may be used again: a result belongs to the nearest call before it that
    has none yet.
    """
    claimed = _claims(turns)
    taken = {at for places in claimed.values() for at in places}
    bound: list[Turn] = []
    pending: list[Part] = []
    for at, turn in enumerate(turns):
        parts, given = _free(turn, at, taken, ladder)
        if parts or not turn.parts or (pending and turn.role is Role.USER):
            if pending and turn.role is not Role.USER:
                bound.append(Turn(Role.USER, tuple(pending)))
                pending = []
            bound.append(evolve(turn, parts=(*pending, *parts)))
            pending = []
        if at in claimed:
            pending.extend(_results(turn, turns, claimed[at], ladder))
        pending.extend(given)
    if pending:
        bound.append(Turn(Role.USER, tuple(pending)))
    return bound


def distinct(turns: Iterable[Turn], *, afresh: bool = False) -> list[Turn]:
    """Turns as `bind` leaves them, with no id of a call given twice: one that is used again gets a suffix, the same in
    the call and in its result, and the same each time the conversation goes up.

    `afresh`: each turn of the assistant's may use the ids of those before it, as some providers count them.
    """
    used: dict[str, int] = {}
    renamed: dict[str, list[str]] = {}
    told: list[Turn] = []
    for turn in turns:
        if afresh and turn.role is Role.ASSISTANT:
            used, renamed = {}, {}
        told.append(evolve(turn, parts=tuple(_distinct(part, used, renamed) for part in turn.parts)))
    return told


def nodes_of(parts: Iterable[Part]) -> Iterator[Part]:
    """Every part, each before those within it."""
    for part in parts:
        yield part
        if isinstance(part, ToolResultPart):
            yield from nodes_of(part.parts)
        elif isinstance(part, DocumentPart) and isinstance(part.source, tuple):
            yield from nodes_of(part.source)


def joined(parts: Iterable[Part], between: str = "\n\n") -> str:
    """The text of the text parts."""
    return between.join(part.text for part in parts if isinstance(part, TextPart))


def contiguous(parts: Iterable[Part]) -> str:
    """The text of an assistant's parts, as it was; a blank line where a call stood between, and around what a piece of
    the client's dialect reads as. Reasoning parts no text: it may stand in the middle of a word."""
    text = ""
    apart = False
    for part in parts:
        alone = not isinstance(part, TextPart | ReasoningPart)
        apart = apart or alone
        if isinstance(part, TextPart | ServerPart) and part.text:
            text += ("\n\n" if apart and text else "") + part.text
            apart = alone
    return text


def only_text(parts: Iterable[Part], ladder: Ladder) -> Iterator[Part]:
    """The parts of an instruction, which is text alone; what is none is lost as the row `OUT_OF_PLACE` says."""
    for part in parts:
        if isinstance(part, DocumentPart) and isinstance(part.source, tuple):
            held = tuple(piece for piece in only_text(part.source, ladder) if isinstance(piece, ResultPart))
            yield evolve(part, source=held)
        elif isinstance(part, ImagePart | AudioPart) or (
            isinstance(part, DocumentPart) and not isinstance(part.source, str)
        ):
            ladder.lose(OUT_OF_PLACE, part.where)
        else:
            yield part


def document_text(part: DocumentPart) -> str:
    """What stands above a document's text where a dialect has no documents, and the text itself if it is plain."""
    head = "\n".join(line for line in (part.name, part.context) if line)
    body = part.source if isinstance(part.source, str) else ""
    return "\n\n".join(piece for piece in (head, body) if piece)


def marked(parts: tuple[ResultPart, ...]) -> bool:
    """Whether a result's parts begin with the mark of a failed tool."""
    return bool(parts) and isinstance(parts[0], TextPart) and parts[0].text.startswith(ERROR_PREFIX)


def unmarked(parts: tuple[ResultPart, ...]) -> tuple[ResultPart, ...]:
    """A result's parts without the mark of a failed tool."""
    first = parts[0] if parts else None
    if not isinstance(first, TextPart) or not marked(parts):
        return parts
    return (evolve(first, text=first.text.removeprefix(ERROR_PREFIX)), *parts[1:])


def instruction(text: str) -> str:
    """An instruction as a user says it, where a dialect has none in the middle of a conversation."""
    return f"<system>\n{text}\n</system>"


_Place = tuple[int, int]


def _claims(turns: Sequence[Turn]) -> dict[int, list[_Place]]:
    """For each assistant's turn with calls, where their results stand, in a turn of any role: (turn, part), in that
    order."""
    waiting: dict[str, list[int]] = {}
    claimed: dict[int, list[_Place]] = {}
    for at, turn in enumerate(turns):
        for place, part in enumerate(turn.parts):
            if isinstance(part, ToolUsePart) and turn.role is Role.ASSISTANT:
                waiting.setdefault(part.id, []).append(at)
                claimed.setdefault(at, [])
            elif isinstance(part, ToolResultPart) and waiting.get(part.id):
                claimed[waiting[part.id].pop()].append((at, place))
    return claimed


def _distinct(part: Part, used: dict[str, int], renamed: dict[str, list[str]]) -> Part:
    """A part with an id of its own. `used` are the ids that were given, and how often each was wanted; `renamed` are
    those of the calls that wait for results, in order."""
    if isinstance(part, ToolUsePart):
        given = part.id
        while given in used:
            used[part.id] += 1
            given = f"{part.id}_{used[part.id]}"
        used[given] = 1
        renamed.setdefault(part.id, []).append(given)
        return part if given == part.id else evolve(part, id=given)
    if isinstance(part, ToolResultPart) and renamed.get(part.id):
        return evolve(part, id=renamed[part.id].pop(0))
    return part


def _results(turn: Turn, turns: Sequence[Turn], places: list[_Place], ladder: Ladder) -> list[Part]:
    found: list[Part] = [turns[at].parts[place] for at, place in places]
    answered = [part.id for part in found if isinstance(part, ToolResultPart)]
    for part in turn.parts:
        if not isinstance(part, ToolUsePart):
            continue
        if part.id in answered:
            answered.remove(part.id)
        else:
            ladder.lose(UNANSWERED, part.where)
            found.append(ToolResultPart(part.id, (TextPart(NO_OUTPUT),), kind=part.kind, where=part.where))
    return found


def _free(turn: Turn, at: int, taken: set[_Place], ladder: Ladder) -> tuple[list[Part], list[Part]]:
    """A turn's parts without the results that belong to a call, and what those that belong to none show.

    In a user's turn that stays in its place.
    """
    free: list[Part] = []
    given: list[Part] = free if turn.role is Role.USER else []
    for place, part in enumerate(turn.parts):
        if not isinstance(part, ToolResultPart):
            free.append(part)
        elif (at, place) not in taken and ladder.lose(ORPHAN, part.where) is not Rule.DROP:
            given.append(TextPart(f"[result of the tool call {part.id}]", where=part.where))
            given.extend(part.parts)
    return free, given if given is not free else []
