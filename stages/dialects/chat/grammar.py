"""The grammar of a Chat stream: role, deltas, finish, counts, `[DONE]`; or an error in place of the rest."""

from collections.abc import Iterator
from typing import Any, Final

from attrs import define, field

from pipeline.events import Frame
from pipeline.grammar import Grammar, Part, Reading, Rule, framing, get, is_count, is_word
from pipeline.jsontext import is_object, loads
from stages.dialects.chat.normalize import DONE

CHUNK: Final = "OpenAI API reference, The chat completion chunk object"
ERROR: Final = "OpenAI API reference, Errors; openai 3.57, _streaming.py"
PY: Final = "openai 3.57, the helper behind chat.completions.stream()"
JS: Final = "npm openai 7.59, ChatCompletionStream"
AI: Final = "ai 7.0, @ai-sdk/openai"
COUNTS: Final = "OpenAI API reference, The chat completion object, usage"
CALLS: Final = "OpenAI API reference, Function calling, Streaming"

CALLING: Final = ("tool_calls", "function_call")
FINISHES: Final = ("stop", "length", "content_filter", *CALLING)
CUTTING: Final = ("length", "content_filter")
"""Behind these a call's arguments may be cut."""
JOINED: Final = frozenset({"index", "type", "text"})
"""What may stand in every piece of a detail."""
TEXTS: Final = ("content", "refusal", "reasoning_content")


@define(eq=False)
class _Call:
    kind: str
    text: str = ""


@define(eq=False)
class ChatReading(Reading):
    """One Chat stream as far as it was read."""

    first: dict[str, Any] | None = field(init=False, default=None)
    """The first chunk."""
    role: bool = field(init=False, default=False)
    finish: Any = field(init=False, default=None)
    calls: list[_Call] = field(init=False, factory=list)
    older: _Call | None = field(init=False, default=None)
    """The one call that the deprecated words tell of."""
    ids: set[str] = field(init=False, factory=set)
    usages: int = field(init=False, default=0)
    noted: bool = field(init=False, default=False)
    details: dict[int, set[str]] = field(init=False, factory=dict)
    """What was said of each detail of the reasoning but for its text."""
    ended: str = field(init=False, default="")
    """How it ended: `done`, or `error`."""

    def parts(self, frame: Frame) -> Iterator[Part]:
        """A frame, the chunk or the error that it is, and what that is made of."""
        try:
            value = loads(frame.data)
        except ValueError:
            value = None
        done = frame.data == DONE
        yield "frame", value if not done else {}
        if done:
            self.ended = self.ended or "done"
        elif get(value, "error") is not None:
            yield "error", value
            self.ended = "error"
        elif isinstance(value, dict):
            yield from self._chunk(value)

    def _chunk(self, chunk: dict[str, Any]) -> Iterator[Part]:
        yield "chunk", chunk
        self.first = self.first or chunk
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            yield "choice", choice
            if isinstance(delta := get(choice, "delta"), dict):
                yield from self._delta(delta)
            if (finish := get(choice, "finish_reason")) is not None:
                yield "finish", finish
                self.finish = finish
        if (usage := chunk.get("usage")) is not None:
            yield "usage", usage
            self.usages += 1

    def _delta(self, delta: dict[str, Any]) -> Iterator[Part]:
        yield "delta", delta
        self.role = self.role or "role" in delta
        self.noted = self.noted or "annotations" in delta
        if "function_call" in delta:
            yield "older call", delta["function_call"]
            self.older = self.older or _Call("function")
            self.older.text += str(get(delta["function_call"], "arguments"))
        for name, part in (("detail", "reasoning_details"), ("call", "tool_calls")):
            for one in delta.get(part) or () if isinstance(delta.get(part), list) else ():
                yield name, one
                if isinstance(one, dict):
                    self._note_detail(one) if name == "detail" else self._note_call(one)

    def _note_detail(self, detail: dict[str, Any]) -> None:
        if is_count(place := detail.get("index")):
            self.details.setdefault(place, set()).update(detail.keys() - JOINED)

    def _note_call(self, call: dict[str, Any]) -> None:
        if self.opens(call):
            self.calls.append(_Call("custom" if call.get("type") == "custom" else "function"))
            self.ids.add(str(call.get("id")))
        if self.goes_on(call) and isinstance(text := self.text_of(call), str):
            self.calls[call["index"]].text += text

    def body_of(self, call: Any) -> Any:
        """The object in which the name and the text of a fragment stand."""
        kind = self.calls[call["index"]].kind if self.goes_on(call) else get(call, "type")
        return get(call, "custom" if kind == "custom" else "function")

    def text_of(self, call: Any) -> Any:
        """The piece of arguments that a fragment brings."""
        body = self.body_of(call)
        return get(body, "input" if body is get(call, "custom") else "arguments")

    def opens(self, call: Any) -> bool:
        """Whether a fragment is the first of its call."""
        return get(call, "index") == len(self.calls) and not isinstance(get(call, "index"), bool)

    def goes_on(self, call: Any) -> bool:
        """Whether a fragment is another one of its call."""
        return is_count(get(call, "index")) and get(call, "index") < len(self.calls)


Seen = ChatReading


def _changes(chunk: Any, seen: Seen) -> bool:
    first = seen.first
    return first is not None and any(chunk.get(name) != first.get(name) for name in ("id", "model"))


def _first_choice(chunk: Any) -> Any:
    choices = chunk.get("choices")
    return choices[0] if isinstance(choices, list) and choices else None


def _no_finish(choice: Any, seen: Seen) -> bool:
    return not isinstance(choice, dict) or "finish_reason" not in choice


def _no_text(delta: Any, seen: Seen) -> bool:
    return any(not isinstance(delta[name], str | None) for name in TEXTS if name in delta)


def _no_entries(delta: Any, seen: Seen) -> bool:
    return any(not isinstance(delta[name], list) or not delta[name] for name in _LISTS if name in delta)


_LISTS = ("tool_calls", "reasoning_details", "annotations")


def _repeated(detail: Any, seen: Seen) -> bool:
    """A text of a detail that comes twice: clients join what has the same index."""
    if not isinstance(detail, dict) or not is_count(detail.get("index")):
        return False
    return bool(seen.details.get(detail["index"], set()) & (detail.keys() - JOINED))


def _no_details(usage: Any, seen: Seen) -> bool:
    counts = [get(usage, *path) for path in _DETAILS]
    return any(count is not None and not is_count(count) for count in counts)


_DETAILS = (
    ("prompt_tokens_details", "cached_tokens"),
    ("prompt_tokens_details", "cache_write_tokens"),
    ("completion_tokens_details", "reasoning_tokens"),
)


def _no_counts(usage: Any, seen: Seen) -> bool:
    return not all(is_count(get(usage, name)) for name in ("prompt_tokens", "completion_tokens", "total_tokens"))


def _no_sum(usage: Any, seen: Seen) -> bool:
    if _no_counts(usage, seen) or _no_details(usage, seen):
        return False
    read, write, reasoning = (get(usage, *path) or 0 for path in _DETAILS)
    prompt, completion = usage["prompt_tokens"], usage["completion_tokens"]
    return bool(read + write > prompt or reasoning > completion or prompt + completion != usage["total_tokens"])


def _no_arguments(_: object, seen: Seen) -> bool:
    unfinished = seen.ended == "error" or seen.finish in CUTTING
    calls = [*seen.calls, *filter(None, [seen.older])]
    return not unfinished and any(call.kind == "function" and not is_object(call.text) for call in calls)


def _no_call(finish: Any, seen: Seen) -> bool:
    return finish in CALLING and not (seen.older if finish == "function_call" else seen.calls)


RULES: Final = (
    *framing(named=False),
    Rule("frame", "is the last if it is `[DONE]` or an error", ERROR, lambda _, seen: seen.ended),
    Rule("frame", "is a JSON object, or `[DONE]`", CHUNK, lambda value, _: not isinstance(value, dict)),
    Rule("error", "has a message", ERROR, lambda error, _: not is_word(get(error, "error", "message"))),
    Rule("error", "stands alone", ERROR, lambda error, _: error.get("choices")),
    Rule("chunk", "has an id", CHUNK, lambda chunk, _: not is_word(chunk.get("id"))),
    Rule("chunk", "is called one", PY, lambda chunk, _: chunk.get("object") != "chat.completion.chunk"),
    Rule("chunk", "has a time", CHUNK, lambda chunk, _: not is_count(chunk.get("created"))),
    Rule("chunk", "names the model", CHUNK, lambda chunk, _: not isinstance(chunk.get("model"), str)),
    Rule("chunk", "is of the same answer as the first", CHUNK, _changes),
    Rule(
        "chunk",
        "has the time of the first",
        CHUNK,
        lambda chunk, seen: seen.first and chunk.get("created") != seen.first.get("created"),
        own=True,
    ),
    Rule("chunk", "has a list of choices", PY, lambda chunk, _: not isinstance(chunk.get("choices"), list)),
    Rule(
        "chunk",
        "has the choice 0 if it is the first",
        PY,
        lambda chunk, seen: seen.first is None and get(_first_choice(chunk), "index") != 0,
        own=True,
    ),
    Rule(
        "chunk",
        "has no choice if it has counts",
        f"{PY}: it keeps those of the last chunk",
        lambda chunk, _: chunk.get("usage") is not None and chunk.get("choices"),
        own=True,
    ),
    Rule("choice", "has the index 0", CHUNK, lambda choice, _: get(choice, "index") != 0, own=True),
    Rule("choice", "has a delta", PY, lambda choice, _: not isinstance(get(choice, "delta"), dict)),
    Rule("choice", "has a finish reason, or null", CHUNK, _no_finish),
    Rule("choice", "does not go on behind its finish", CHUNK, lambda _, seen: seen.finish is not None),
    Rule(
        "delta",
        "has the role exactly if it is the first",
        f"{PY}: it joins roles; {JS}: it demands one",
        lambda delta, seen: ("role" in delta) is seen.role,
    ),
    Rule("delta", "is the assistant's", CHUNK, lambda delta, _: delta.get("role", "assistant") != "assistant"),
    Rule("delta", "has texts that are texts", f"{AI}: it validates them", _no_text),
    Rule("delta", "has lists that hold something", CHUNK, _no_entries),
    Rule(
        "delta",
        "has no citations if they came before",
        f"{PY}: it cannot join them; {JS}: it keeps the last",
        lambda delta, seen: seen.noted and "annotations" in delta,
        own=True,
    ),
    Rule(
        "detail",
        "has an index",
        f"{PY}: it joins lists by it",
        lambda detail, _: not is_count(get(detail, "index")),
    ),
    Rule("detail", "says nothing twice but its text", f"{PY}: it joins all texts", _repeated, own=True),
    Rule(
        "call",
        "has the index of a call before it, or the next",
        f"{PY}: it is a place in a list",
        lambda call, seen: not (seen.opens(call) or seen.goes_on(call)),
    ),
    Rule(
        "call",
        "has an id of its own where it opens",
        CALLS,
        lambda call, seen: seen.opens(call) and (not is_word(get(call, "id")) or call["id"] in seen.ids),
    ),
    Rule(
        "call",
        "has a type where it opens",
        f"{JS}: it demands one",
        lambda call, seen: seen.opens(call) and get(call, "type") not in ("function", "custom"),
    ),
    Rule(
        "call",
        "has a name where it opens",
        CALLS,
        lambda call, seen: seen.opens(call) and not is_word(get(seen.body_of(call), "name")),
    ),
    Rule(
        "call",
        "has no id, type or name where it goes on",
        f"{PY}: it joins them; {JS}: changed tool call identity",
        lambda call, seen: (
            seen.goes_on(call) and ({"id", "type"} & call.keys() or get(seen.body_of(call), "name") is not None)
        ),
    ),
    Rule(
        "call",
        "has a text of arguments",
        f"{AI}: it validates it",
        lambda call, seen: seen.goes_on(call) and not isinstance(seen.text_of(call), str),
    ),
    Rule(
        "older call",
        "has a name exactly if it is the first piece",
        f"{PY}: it joins names",
        lambda call, seen: is_word(get(call, "name")) is (seen.older is not None),
    ),
    Rule(
        "older call",
        "has a text of arguments",
        CHUNK,
        lambda call, _: not isinstance(get(call, "arguments"), str),
    ),
    Rule("older call", "is the only one", CHUNK, lambda _, seen: seen.calls, own=True),
    Rule("finish", "is a known one", AI, lambda finish, _: finish not in FINISHES),
    Rule(
        "finish",
        "is for calls only if there is one",
        CHUNK,
        _no_call,
    ),
    Rule(
        "finish",
        "is for calls if there is one",
        CHUNK,
        lambda finish, seen: finish == "stop" and (seen.calls or seen.older),
        own=True,
    ),
    Rule("usage", "comes once", PY, lambda _, seen: seen.usages, own=True),
    Rule("usage", "comes behind the finish", CHUNK, lambda _, seen: seen.finish is None, own=True),
    Rule("usage", "has its three counts", COUNTS, _no_counts),
    Rule("usage", "has details that are counts", COUNTS, _no_details),
    Rule("usage", "adds up, and its details are parts of it", COUNTS, _no_sum),
    Rule("end", "is behind `[DONE]` or an error", CHUNK, lambda _, seen: not seen.ended, own=True),
    Rule(
        "end",
        "is behind a finish, or an error",
        f"{JS}: missing finish_reason",
        lambda _, seen: seen.ended != "error" and seen.finish is None,
    ),
    Rule("end", "finds arguments that are objects, unless they were cut", JS, _no_arguments),
)
"""What each part must be, who says so, and what breaks it."""

GRAMMAR: Final = Grammar(RULES, ChatReading)
