"""What a Responses server tells of a message by its end alone, and what was changed: it is told anew, as deltas."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pipeline.events import BlockStart, BlockStop, Event, MessageDelta, StreamError
from pipeline.ledger import Ledger
from stages.dialects.responses.errors import failed_error
from stages.dialects.responses.keeper import ITEM_DONE, ITEMS, TEXTS, WORDS, Keeper, spoken
from stages.dialects.responses.kept import DONE, EVENTS, OF_PARTS, PART_DONE, PLACES, STAGE, Kept, Text, unknown_in
from stages.dialects.responses.lost import LOST, parts_in
from stages.dialects.responses.patch import ended
from stages.dialects.responses.written import OUTPUT_TEXT, REFUSAL, Json

OF_MESSAGES = (OUTPUT_TEXT, REFUSAL)


def begins(keeper: Keeper, said: Json, made: Sequence[Event], left: Sequence[Event]) -> bool:
    """Whether `said`, of whose events `made` these are `left`, ends a text of a message of which nothing was told
    before, and which was changed: it is told anew."""
    step, words = EVENTS.get(str(said.get("type")), ("", None))
    part, item = _object(said.get("part")), _object(said.get("item"))
    words = words or OF_PARTS.get(str(part.get("type")))
    whole = said.get("type") == ITEM_DONE and item.get("type") == "message"
    if not whole and (step not in (DONE, PART_DONE) or words not in OF_MESSAGES):
        return False
    kept = keeper.of(said)
    if spoken(made) == spoken(left) or (kept is not None and not _is_silent(kept, said, whole=whole)):
        return False
    if kept is None:
        bare = {**(item if whole else ITEMS[OUTPUT_TEXT.type]), "id": item.get("id", said.get("item_id"))}
        keeper.leave({"output_index": said.get("output_index"), "item": bare})
        kept = keeper.of(said)
    if kept is None:
        return False
    if whole:
        kept.item |= {name: value for name, value in item.items() if name not in (*PLACES, "id", "status")}
    for one in [*parts_in(item), part]:
        kept.beside |= unknown_in(one)
    keeper.unsaid({name: value for name, value in said.items() if name not in ("item", "text")}, LOST)
    keeper.own(kept, left)
    return True


def terminated(keeper: Keeper, said: Json, made: Sequence[Event]) -> None:
    """The messages of which the terminal alone tells the texts, by the blocks of its events."""
    told = _object(said.get("response")).get("output")
    items = [_object(item) for item in (told if isinstance(told, list) else ())]
    silent = [kept for kept in keeper.items if kept.silent and kept not in keeper.blocks.values()]
    for start in made:
        if not isinstance(start, BlockStart) or start.index in keeper.blocks:
            continue
        text = spoken(event for event in made if getattr(event, "index", -1) == start.index)
        for kept in silent:
            item = next((item for item in items if keeper.of({"item": item}) is kept), kept.item)
            if text and text in (_said(item, OUTPUT_TEXT.member), _said(item, REFUSAL.member)):
                kept.item |= {name: value for name, value in item.items() if name not in (*PLACES, "id", "status")}
                for part in parts_in(item):
                    kept.beside |= unknown_in(part)
                keeper.own(kept, [start])
                break


def ends(keeper: Keeper, said: Json) -> Iterator[tuple[str, Json]]:
    """The ends of what was told anew, before the server's next step."""
    kept = keeper.of(said)
    step = "item" if said.get("type") == ITEM_DONE else EVENTS.get(str(said.get("type")), ("",))[0]
    if kept is None or kept.gone or kept.ended or step not in ("item", PART_DONE):
        return
    for (_, at), text in sorted(kept.texts.items()):
        if text.anew and not text.closed and (step == "item" or text is kept.text_of(said, text.words)):
            yield from kept.ending(text, at, part=step == "item")
            text.anew = False


def anew(kept: Kept | None, event: Event, ledger: Ledger) -> Iterator[tuple[str, Json]]:
    """An event that no frame made, of an item of the server's."""
    if kept is not None and kept.final is not None and isinstance(event, BlockStop):
        return
    if kept is None or kept.final is not None or kept.gone:
        ledger.record(STAGE, type(event).__name__, "dropped", "its block is not open")
    elif isinstance(event, BlockStop):
        yield from kept.closing("completed" if event.complete else "incomplete")
    elif isinstance(event, TEXTS):
        said: Json = {"item_id": kept.item.get("id"), "output_index": kept.place}
        words = WORDS[type(event)] if kept.words is None else kept.words
        if kept.words is None:
            known = [at for (_, at), text in kept.texts.items() if text.words is words and not text.closed]
            said[words.index] = max(known) if known else len(kept.texts)
        text = kept.text_of(said, words)
        if kept.words is None and not text.pieces:
            yield from _part(kept, text, said)
        text.pieces.append(event.text)
        text.changed = True
        yield f"{words.event}.delta", {**said, "delta": event.text, **words.beside}
    else:
        ledger.record(STAGE, type(event).__name__, "dropped", "Responses cannot show it here")


def end_of(events: Iterable[Event]) -> MessageDelta | None:
    """What tells how the message ended, if one of the events does."""
    return next((event for event in events if isinstance(event, MessageDelta)), None)


def restated_end(
    keeper: Keeper,
    new: Mapping[int, Json],
    named: Json,
    said: Json,
    made: Sequence[Event],
    events: Sequence[Event],
    *,
    retold: bool,
) -> Json:
    """The terminal, restated. `new`: the items of ours; `named`: what was changed of the response's names; `retold`:
    what only the terminal would tell was told before it."""
    if not isinstance(response := said.get("response"), dict):
        return said
    told = response.get("output")
    told = told if isinstance(told, list) else []
    if keeper.missed and not any(isinstance(event, BlockStart) for event in made):
        told = [item for item in told if not keeper.left_out(item)]
    back = {**said, "response": {**response, **named, "output": keeper.output(told, new, retold=retold)}}
    was, now = end_of(made), end_of(events)
    if now is not None and was is not None:
        end = ended(response, was, now)
        back["response"] |= end
        back["type"] = f"response.{end['status']}" if "status" in end else said["type"]
    error = events[-1]
    if isinstance(error, StreamError) and not any(error is one for one in made):
        back["response"]["error"] = failed_error(error)
    return back


def _part(kept: Kept, text: Text, where: Json) -> Iterator[tuple[str, Json]]:
    """A part that nobody announced is; it ends as one of ours."""
    words, text.anew = text.words, True
    if text.announced is None:
        part = {"type": words.type, words.member: "", **words.empty, **kept.beside}
        text.announced = part
        yield f"{words.part}.added", {**where, "part": part}
    else:
        text.announced = {**text.announced, **kept.beside}
    kept.beside = {}


def _is_silent(kept: Kept, said: Json, *, whole: bool) -> bool:
    """Whether nothing was told of the text yet; the end of an item is of all of its texts."""
    if whole or not kept.silent:
        return kept.silent
    place = said.get("content_index")
    return not any(text.pieces for (_, at), text in kept.texts.items() if at == place)


def _said(item: Json, member: str) -> str:
    """The text that a message tells, in parts of a kind."""
    parts = item.get("content")
    return parts if isinstance(parts, str) else "".join(_string(part.get(member)) for part in parts_in(item))


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}
