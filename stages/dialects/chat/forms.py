"""A whole Chat answer as the stream of it, and a stream as the whole answer: all members are in both."""

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count, islice
from sys import maxsize
from typing import Any, Final

from attrs import define, field

from pipeline.dialect import RequestFacts
from pipeline.errors import PipelineError
from pipeline.events import Frame, StopReason
from pipeline.jsontext import as_written, dumps
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.unread import Unread, brings, says
from stages.dialects.chat.calls import Call, Calls
from stages.dialects.chat.content import REASONING, pieces_of
from stages.dialects.chat.encode import completion_id
from stages.dialects.chat.errors import error_beside, error_body, error_in, failed_finish
from stages.dialects.chat.fragments import Fragment, is_call
from stages.dialects.chat.normalize import DONE
from stages.dialects.chat.patch import Json, entries_in, finish_word, said_in
from stages.dialects.chat.returned import WHOSE
from stages.dialects.chat.stops import finish_of
from stages.dialects.chat.usage import tells, usage_object, usage_of
from stages.dialects.chat.within import FIRST_CHOICE, note_part

STAGE: Final = "chat.forms"

TEXTS: Final = frozenset(
    {"content", "refusal", *REASONING, "text", "summary", "arguments", "input", "data", "transcript"}
)
"""What goes on from delta to delta; of anything else the last counts."""
ONCE: Final = frozenset({"id", "type", "name", "role"})
"""What tells a call from another: of it the first counts, whoever repeats it."""
FIRST: Final = frozenset({"id", "created", "model"})
"""The same of an answer."""
LISTS: Final = frozenset({"tool_calls", "reasoning_details", "annotations"})
"""What a delta has only if it holds something: an empty list says nothing."""
PADDING: Final = frozenset({"obfuscation", "p"})
"""What hides how long a chunk is, and says nothing."""
APART: Final = frozenset({"message", "delta", "finish_reason"})
"""Members of a choice that have chunks of their own."""
LONG: Final = 19
"""So many digits are no time."""
JOINED: Final = ("index", "delta", "message", "logprobs")
"""Members of a choice that go on from chunk to chunk."""
BOUNDED: Final = Limits(blocks=maxsize, held_bytes=maxsize, arguments_bytes=maxsize, id_chars=maxsize)
"""What was read is bounded."""
OF_NONE: Final = frozenset({"index", "type"})
"""What an entry may have that is of no call."""
LOOKED_AT: Final = 64
"""So many entries of a list are looked at for the one that goes on."""


def unroll(body: bytes, *, facts: RequestFacts, ledger: Ledger, clock: Callable[[], float] = time.time) -> list[Frame]:
    """The stream of a whole answer: each choice's message, its calls, its finish; then the counts, if they are wanted.

    What every chunk tells of its message is as it came; what the body lacks of that is made. Other members of the body
    stand in the first chunk, those of a choice beside its finish. Of an answer that failed they are told with its
    error, at the end, and no choice finishes.
    """
    said = as_written(body)
    beside = {name: value for name, value in said.items() if name not in ("choices", "usage")}
    whose = {name: beside.pop(name) for name in WHOSE if name in beside}
    whose = _named({**whose, "object": "chat.completion.chunk"}, facts.model, clock)
    choices = _placed(_list(said.get("choices")), ledger)
    choices.sort(key=lambda choice: choice.get("index") not in FIRST_CHOICE)  # clients want it first
    error = error_in(said)
    if error is None and choices and (error := error_beside(choices[0])) is not None:
        beside["error"] = choices[0].pop("error")
    chunks = [chunk for choice in choices for chunk in _chunks(choice, ledger, failed=error is not None)]
    told = [{**whose, "choices": [chunk]} for chunk in chunks]
    counted = _counted(said.get("usage"), ledger) if facts.include_usage else {}
    if error is not None:
        theirs = isinstance(_object(beside.get("error")).get("message"), str)
        last = {**beside, **({} if theirs else error_body(error)), **counted}
        return [Frame(dumps(chunk)) for chunk in (*told, last)]
    if told:
        told[0] |= beside
    if counted:
        told.append({**whose, "choices": [], **counted})
    return [*(Frame(dumps(chunk)) for chunk in told), Frame(DONE)]


def _named(said: Json, model: str, clock: Callable[[], float]) -> Json:
    """What tells an answer from others, with what it lacks of that."""
    created = str(getattr(said.get("created"), "text", said.get("created"))).partition(".")[0]
    named = {name: said[name] for name in ("id", "model") if isinstance(said.get(name), str) and said[name]}
    time_ = int(created) if created.isdecimal() and len(created) < LONG else int(clock())
    return {**said, "id": completion_id(""), "model": model, **named, "created": time_}


def _placed(told: list[Any], ledger: Ledger) -> list[Json]:
    """The choices of an answer, each in a place of its own. One that is no object is none; the first must be there."""
    choices = [choice for choice in told if isinstance(choice, dict)]
    if len(choices) < len(told):
        ledger.record(STAGE, "choices[]", "dropped", "no object")
        choices = choices or [{}]
    taken: set[int] = set()
    free = count()
    for at, choice in enumerate(choices):
        place = choice.get("index")
        if not isinstance(place, int) or isinstance(place, bool) or place in taken:
            place = next(place for place in free if place not in taken)
            if place or choice.get("index") not in FIRST_CHOICE:
                ledger.record(STAGE, "choices[].index", "mended", "it was another's, or none")
            choices[at] = {**choice, "index": place}
        taken.add(place)
    return choices


def _chunks(choice: Json, ledger: Ledger, *, failed: bool) -> Iterator[Json]:
    """The chunks of a choice. `failed`: it has no finish, for a client would run its calls."""
    message = _object(choice.get("message") or choice.get("delta"))
    delta = {name: value for name, value in message.items() if value or name not in LISTS}
    calls = [_call(entry) for entry in entries_in(message)]
    for name in ("tool_calls", "function_call"):
        delta.pop(name, None)
    if isinstance(details := delta.get("reasoning_details"), list):
        delta["reasoning_details"] = [{**one, "index": at} for at, one in enumerate(details) if isinstance(one, dict)]
    if not isinstance(delta.get("content"), str | None):
        delta |= {"content": "", **_texts(delta, ledger)}
    index = {"index": choice.get("index") or 0}
    logprobs = {"logprobs": choice["logprobs"]} if choice.get("logprobs") else {}
    spoken = {name: value for name, value in delta.items() if value and name != "role"}
    silent = {name: value for name, value in delta.items() if not value}
    yield {**index, "delta": {**silent, "role": "assistant", "content": None}, "finish_reason": None}
    if spoken or logprobs:
        yield {**index, "delta": spoken, **logprobs, "finish_reason": None}
    if calls:
        numbered = [{**call, "index": at} for at, call in enumerate(calls)]
        yield {**index, "delta": {"tool_calls": numbered}, "finish_reason": None}
    told = {**choice, **dict.fromkeys(logprobs)}
    beside = {name: value for name, value in told.items() if name not in APART}
    if failed and (reason := finish_of(choice, ledger)) and failed_finish(reason) is None:
        ledger.record(STAGE, "finish_reason", "dropped", "the answer failed")
    finish = None if failed else _finish(choice, ledger, called=any(map(is_call, calls)))
    if finish or any(beside[name] for name in beside.keys() - index.keys()):
        yield {**beside, **index, "delta": {}, "finish_reason": finish}


def _texts(delta: Mapping[str, Any], ledger: Ledger) -> Json:
    """What a content in parts says, text by text; what else a part says is recorded."""
    texts: dict[str, str] = {}
    unread = Unread(STAGE, ledger, "a stream has texts, not parts")
    for part in _list(delta.get("content")):
        note_part(part, unread, "content[].")
    for kind, text in pieces_of(delta, ledger):
        member = {"text": "content", "reasoning": REASONING[0]}.get(kind, kind)
        texts[member] = texts.get(member, "") + text
    return texts


def _call(entry: Json) -> Json:
    """A call with all that tells it from others; arguments that are nothing are an object. What is none stays."""
    if not is_call(entry):
        return {name: value for name, value in entry.items() if name != "index"}
    kind = "custom" if isinstance(entry.get("custom"), dict) else "function"
    made = {"id": f"call_{secrets.token_hex(12)}", "type": kind}
    call = {**made, **{name: value for name, value in entry.items() if value or name not in made}}
    call.pop("index", None)
    if kind == "function":
        said = _object(call.get(kind))
        text = said.get("arguments")
        text = text if isinstance(text, str) else "" if text is None else dumps(text).decode()
        call[kind] = {**said, "arguments": "{}" if text.strip() in ("", "null") else text}
    return call


def _finish(choice: Mapping[str, Any], ledger: Ledger, *, called: bool) -> str:
    """Why a choice ended, in its server's words, whether they fit what was said or not; if there are none, in ours."""
    if finish_of(choice, ledger):
        return str(choice["finish_reason"])
    ledger.record(STAGE, "finish_reason", "mended", "none was told")
    return finish_word(StopReason.TOOL_USE if called else StopReason.END_TURN)


def _counted(usage: Any, ledger: Ledger) -> Json:
    """The `usage` of an answer, if it counts anything, in counts that add up: those that do stay as they are.

    Of others, and of what counts nothing, it is recorded.
    """
    if not tells(usage):
        if says(usage):
            ledger.record(STAGE, "usage", "dropped", "it holds no count of tokens")
        return {}
    counts = usage_object(usage_of(usage))
    details = {name: value for name, value in counts.items() if isinstance(value, dict)}
    told = {name: _object(usage.get(name)) for name in details}
    odd = any(usage.get(name) != count for name, count in counts.items() if name not in details) or any(
        told[name].get(part) not in (None, 0, count) for name, value in details.items() for part, count in value.items()
    )
    if not odd:
        return {"usage": usage}
    ledger.record(STAGE, "usage", "translated", "its counts do not add up")
    return {"usage": {**usage, **counts, **{name: {**told[name], **details[name]} for name in details}}}


def roll(
    frames: Iterable[Frame], *, facts: RequestFacts, ledger: Ledger, clock: Callable[[], float] = time.time
) -> Json:
    """The whole answer that a stream makes: texts go on, lists too; of what is told twice the last counts, but of what
    tells it from others the first. What it must have and lacks is made."""
    whole: Json = {}
    choices: dict[int, _Choice] = {}
    for frame in frames:
        chunk = said_in(frame)
        if not chunk and frame.data.strip() not in (DONE, b"{}"):
            ledger.record(STAGE, "frame", "ignored", "no JSON object")
        for more in _list(chunk.pop("choices", None)):
            if not isinstance(more, dict):
                ledger.record(STAGE, "choices[]", "ignored", "no object")
            else:
                place = more["index"] if isinstance(more.get("index"), int) else 0
                choice = choices.get(place) or choices.setdefault(place, _Choice.of(facts, ledger))
                choice.add(more)
        _tell(whole, {name: value for name, value in chunk.items() if name not in PADDING})
    counts, beside = whole.pop("usage", None), _object(whole.get("x_groq")).get("usage")
    counted = _counted(beside if tells(beside) and not tells(counts) else counts, ledger)
    told = [_closed(place, choice, ledger) for place, choice in sorted(choices.items())]
    named = _named({**whole, "object": "chat.completion"}, facts.model, clock)
    return {**named, "choices": told, **counted}


@define
class _Choice:
    """A choice while it comes; its calls are joined as they are read."""

    ledger: Ledger
    calls: Calls
    said: Json = field(factory=lambda: {"message": {}})
    entries: list[Any] = field(factory=list)
    known: dict[Call, Json] = field(factory=dict)
    """The entries of calls, which stand among the others."""

    @classmethod
    def of(cls, facts: RequestFacts, ledger: Ledger) -> "_Choice":
        return cls(ledger, Calls(ledger, BOUNDED, count(), facts.map))

    def add(self, more: Json) -> None:
        """What a chunk tells of it."""
        delta = {**_object(more.get("delta") or more.get("message"))}
        entries = delta.pop("tool_calls", None)
        for entry in entries if isinstance(entries, list) else () if entries is None else (entries,):
            self._enter(entry)
        _join(self.said["message"], delta)
        _join(self.said, {"logprobs": more["logprobs"]} if "logprobs" in more else {})
        _tell(self.said, {name: value for name, value in more.items() if name not in JOINED})

    def _enter(self, entry: Any) -> None:
        """A fragment goes on in the entry of its call; what the provider runs itself has one of its own."""
        if not isinstance(entry, dict):
            self.ledger.record(STAGE, "tool_calls[]", "ignored", "no object")
            return
        if not is_call(entry):
            _enter(self.entries, entry)
            return
        try:
            call = self.calls.add(Fragment.of(entry), [])
        except PipelineError:  # of a choice that nobody read
            self.ledger.record(STAGE, "tool_calls[]", "mended", "it could belong to several calls: it is another")
            _enter(self.entries, entry)
            return
        if call is None:
            if brings(entry, OF_NONE):
                self.ledger.record(STAGE, "tool_calls[]", "dropped", "it belongs to no call")
        elif call in self.known:
            _join(self.known[call], entry)
        else:
            _enter(self.entries, {**entry, "index": None})
            self.known[call] = self.entries[-1]

    def whole(self) -> Json:
        """All of it."""
        told: Json = _whole(self.said)
        for call, entry in self.known.items():
            body = entry.get(call.kind.value)
            entry |= {"id": call.id} if call.id else {}
            if call.name and isinstance(body, dict):
                body["name"] = call.name
        if self.entries:
            told["message"]["tool_calls"] = _whole(self.entries)
        return told


def _tell(whole: Json, more: Mapping[str, Any]) -> None:
    """Members of which the last counts that says something, but the first of what tells an answer from others."""
    for name, value in more.items():
        if not (value is None and name in whole) and not (name in FIRST and whole.get(name)):
            whole[name] = value


def _closed(place: int, choice: _Choice, ledger: Ledger) -> Json:
    """A choice as a whole answer tells it."""
    told = choice.whole()
    message = {"role": "assistant", "content": None, **told["message"]}
    finish = _finish(told, ledger, called=any(map(is_call, entries_in(message))))
    if message.get("tool_calls"):
        message["tool_calls"] = [*map(_call, entries_in(message))]
    return {"index": place, **told, "message": message, "finish_reason": finish}


class _Pieces(list[str]):
    """A text while it comes."""


def _join(whole: Json, more: Mapping[str, Any]) -> None:
    for name, value in more.items():
        before = whole.get(name)
        if isinstance(value, str) and name in TEXTS:
            whole[name] = _spoken(before, value)
        elif isinstance(value, list) and isinstance(before, _Pieces):
            whole[name] = [*({"type": "text", "text": text} for text in ["".join(before)] if text), *value]
        elif isinstance(value, list) and isinstance(before, list):
            for part in value:
                _enter(before, part)
        elif isinstance(value, dict):
            if not isinstance(before, dict):
                before = whole[name] = {}
            _join(before, value)
        elif isinstance(value, list):
            whole[name] = []
            for part in value:
                _enter(whole[name], part)
        elif value is None or (before and name in ONCE):
            whole.setdefault(name, value)
        else:
            whole[name] = value


def _spoken(before: Any, text: str) -> Any:
    """A text that goes on; one that comes among parts is a part."""
    if isinstance(before, _Pieces):
        before.append(text)
    elif isinstance(before, list):
        before += [{"type": "text", "text": text}] if text else []
    else:
        return _Pieces([text])
    return before


def _enter(parts: list[Any], part: Any) -> None:
    """An entry of a list: one that has the index of another, and its type, goes on with it."""
    if not isinstance(part, dict):
        parts.append(part)
        return
    place, kind = part.get("index"), part.get("type")
    for known in islice(reversed(parts), LOOKED_AT) if isinstance(place, int) else ():
        if isinstance(known, dict) and known.get("index") == place and kind in (None, known.get("type")):
            _join(known, part)
            return
    new: Json = {}
    parts.append(new)
    _join(new, part)


def _whole(value: Any) -> Any:
    """What was joined, with its texts whole."""
    if isinstance(value, _Pieces):
        return "".join(value)
    if isinstance(value, dict):
        return {name: _whole(part) for name, part in value.items()}
    return [*map(_whole, value)] if isinstance(value, list) else value


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}
