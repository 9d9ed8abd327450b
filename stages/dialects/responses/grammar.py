"""The grammar of a Responses stream: a response that begins, items that are announced, told and done, one terminal."""

from typing import Any, Final

from pipeline.grammar import Grammar, Rule, framing, get, is_count, is_word
from pipeline.jsontext import is_object
from stages.dialects.responses.reading import BEGINNINGS, CALLS, EVENTS, HOSTED, TERMINALS, ResponsesReading
from stages.dialects.responses.stops import CUT

API: Final = "OpenAI API reference, Streaming events"
PY: Final = "openai 3.57, the helper behind responses.stream()"
JS: Final = "npm openai 7.59, ResponseStream"
AI: Final = "ai 7.0, @ai-sdk/openai"
CODEX: Final = "Codex 0.171, codex-api/src/sse/responses.rs"

REASONS: Final = ("max_output_tokens", "content_filter", "max_messages", "steered")
MEMBERS: Final = ("id", "created_at", "model", "status", "output", "parallel_tool_calls", "tool_choice", "tools")
COUNTS: Final = ("input_tokens", "output_tokens", "total_tokens")
DETAILS: Final = (
    ("input_tokens_details", "cached_tokens"),
    ("input_tokens_details", "cache_write_tokens"),
    ("output_tokens_details", "reasoning_tokens"),
)
PARTS: Final = {
    "message": ("output_text", "refusal"),
    "reasoning": ("reasoning_text", "summary_text"),
}
"""The parts that an item may have."""

Seen = ResponsesReading


def _unknown(event: Any, seen: Seen) -> bool:
    kind = event["type"]
    known = {*BEGINNINGS, *TERMINALS, *EVENTS, "response.output_item.added", "response.output_item.done"}
    return kind not in {*known, "error", "keepalive"} and not kind.startswith(HOSTED)


def _lacks_members(response: Any, seen: Seen) -> bool:
    return get(response, "object") != "response" or any(get(response, name) is None for name in MEMBERS)


def _other_response(response: Any, seen: Seen) -> bool:
    names = ("id", "model", "created_at")
    return seen.created is not None and any(get(response, name) != seen.created.get(name) for name in names)


def _is_call(item: Any) -> bool:
    return get(item, "type") in ("function_call", "custom_tool_call")


def _unnamed_call(event: Any, seen: Seen) -> bool:
    item = get(event, "item")
    return _is_call(item) and not (is_word(item.get("call_id")) and is_word(item.get("name")))


def _same_ids(event: Any, seen: Seen) -> bool:
    item = get(event, "item")
    names = [item[name] for name in ("id", "call_id") if name in item] if isinstance(item, dict) else []
    return any(name in seen.ids for name in names if isinstance(name, str))


def _begun_with_text(event: Any, seen: Seen) -> bool:
    item = get(event, "item")
    kind = get(item, "type")
    if _is_call(item):
        return bool(get(item, CALLS[kind]) != "")
    role = get(item, "role") == "assistant" or kind != "message"
    empty = {"message": "content", "reasoning": "summary"}.get(str(kind), "")
    return not role or (empty != "" and get(item, empty) != [])


def _renamed(event: Any, seen: Seen) -> bool:
    item = seen.item_of(event)
    names = ("id", "type", "call_id", "name", "namespace")
    return item is not None and any(get(event, "item", name) != item.begun.get(name) for name in names)


def _told_otherwise(event: Any, seen: Seen) -> bool:
    """An item whose whole is not what was told of it."""
    item, final = seen.item_of(event), get(event, "item")
    if item is None:
        return False
    kind = item.begun.get("type")
    if _is_call(item.begun):
        said = get(final, CALLS[str(kind)])
        return said != item.call.text or item.call.whole not in (None, said)
    wanted = {"message": ("content",), "reasoning": ("content", "summary")}.get(str(kind), ())
    return any(_texts(get(final, name)) != [part.text for part in item.parts[name]] for name in wanted)


def _texts(parts: Any) -> list[Any]:
    return [get(part, "refusal" if get(part, "type") == "refusal" else "text") for part in parts or ()]


def _parts_open(event: Any, seen: Seen) -> bool:
    item = seen.item_of(event)
    return item is not None and any(not part.closed for parts in item.parts.values() for part in parts)


def _whole_untold(event: Any, seen: Seen) -> bool:
    item = seen.item_of(event)
    whole = get(event, "item", "status") != "incomplete"
    return item is not None and _is_call(item.begun) and whole and item.call.whole is None


def _no_arguments(event: Any, seen: Seen) -> bool:
    item = get(event, "item")
    complete = get(item, "type") == "function_call" and get(item, "status") == "completed"
    return complete and not is_object(str(get(item, "arguments")))


def _no_place(event: Any, seen: Seen) -> bool:
    """A part that does not come next, behind parts that are closed, or that its item cannot have."""
    item, told = seen.item_of(event), EVENTS[event["type"]]
    parts = [] if item is None else item.parts[told.part]
    place = get(event, "summary_index" if told.part == "summary" else "content_index")
    fits = item is not None and get(event, "part", "type") in PARTS.get(str(item.begun.get("type")), ())
    return place != len(parts) or any(not part.closed for part in parts) or not fits


def _other_text(event: Any, seen: Seen) -> bool:
    text = seen.text_of(event)
    return text is not None and get(event, EVENTS[event["type"]].member) != text.text


def _other_part(event: Any, seen: Seen) -> bool:
    text = seen.text_of(event)
    return text is not None and ((text.type, text.text) != (get(event, "part", "type"), *_texts([event.get("part")])))


def _unfinished(event: Any, seen: Seen) -> bool:
    failed = get(event, "type") == "response.failed"
    return any(item.final is None and not (failed and item.begun.get("type") not in CUT) for item in seen.items)


def _runs_cut_calls(event: Any, seen: Seen) -> bool:
    if get(event, "type") == "response.incomplete":
        return False
    finals = [item.final for item in seen.items if item.final is not None and _is_call(item.final)]
    return any(final.get("status") == "incomplete" for final in finals)


def _other_output(event: Any, seen: Seen) -> bool:
    return bool(get(event, "response", "output") != [item.final for item in seen.items if item.final is not None])


def _no_reason(event: Any, seen: Seen) -> bool:
    """A failure without its error, an incomplete response without its reason; or one that has another's."""
    kind = get(event, "type")
    error, details = get(event, "response", "error"), get(event, "response", "incomplete_details")
    if kind == "response.failed":
        return not (is_word(get(error, "code")) and is_word(get(error, "message")) and details is None)
    if kind == "response.incomplete":
        return error is not None or get(details, "reason") not in REASONS
    return error is not None or details is not None


def _odd_usage(event: Any, seen: Seen) -> bool:
    usage = get(event, "response", "usage")
    if usage is None:
        return False
    counts = [get(usage, name) for name in COUNTS]
    details = [0 if (count := get(usage, *path)) is None else count for path in DETAILS]
    if not all(map(is_count, (*counts, *details))):
        return True
    return bool(counts[0] + counts[1] != counts[2] or details[0] + details[1] > counts[0])


def _lacks_details(event: Any, seen: Seen) -> bool:
    usage = get(event, "response", "usage")
    return usage is not None and any(get(usage, *path) is None for path in DETAILS)


RULES: Final = (
    *framing(named=True),
    Rule(
        "frame",
        "is an event that is called by its type",
        JS,
        lambda told, _: not told[0] or told[0] != get(told[1], "type"),
    ),
    Rule("frame", "is not behind the terminal", CODEX, lambda _, seen: seen.ended),
    Rule("event", "has the next number", AI, lambda event, seen: event.get("sequence_number") != seen.number),
    Rule("event", "is a known one", f"{JS}: Unhandled response stream event", _unknown),
    Rule(
        "event",
        "is the beginning if it is the first",
        PY,
        lambda event, seen: seen.created is None and event["type"] != "response.created" and not seen.number,
    ),
    Rule(
        "beginning",
        "is not behind an item, nor the second",
        PY,
        lambda event, seen: seen.items or (event["type"] == "response.created" and seen.created is not None),
        own=True,
    ),
    Rule(
        "beginning",
        "has no output yet, and a status that says so",
        API,
        lambda event, _: (
            get(event, "response", "output") != [] or get(event, "response", "status") not in ("queued", "in_progress")
        ),
    ),
    Rule("response", "has what the SDKs' types demand", f"{AI}; {API}", _lacks_members, own=True),
    Rule("response", "is the one that began", PY, _other_response),
    Rule("item", "has the next index", PY, lambda event, seen: event.get("output_index") != len(seen.items), own=True),
    Rule("item", "has an id", f"{JS}: expected item_id", lambda event, _: not is_word(get(event, "item", "id"))),
    Rule("item", "has ids that no other has", f"{PY}: conflicting output identities", _same_ids),
    Rule("item", "has a name and a call id if it is a call", CODEX, _unnamed_call),
    Rule("item", "begins without its text", API, _begun_with_text, own=True),
    Rule("item done", "is of an open item", PY, lambda event, seen: seen.item_of(event) is None),
    Rule("item done", "is who it was", f"{PY}: identity changed", _renamed),
    Rule("item done", "says what was told", f"{CODEX}: it reads this event alone", _told_otherwise),
    Rule("item done", "is behind the end of its parts", API, _parts_open),
    Rule("item done", "is behind the whole of its text, unless it was cut", API, _whole_untold, own=True),
    Rule("item done", "has an object for arguments if it is complete", CODEX, _no_arguments),
    Rule("of an item", "is of an open one", PY, lambda event, seen: seen.item_of(event) is None),
    Rule(
        "of an item",
        "has its id",
        JS,
        lambda event, seen: (item := seen.item_of(event)) is not None and event.get("item_id") != item.begun.get("id"),
    ),
    Rule("part", "comes next, in an item that may have it", PY, _no_place),
    Rule("part done", "is of an open part", PY, lambda event, seen: seen.text_of(event) is None),
    Rule("part done", "says what was told", API, _other_part),
    Rule(
        "delta", "is of an open text of its kind", f"{PY}: IndexError", lambda event, seen: seen.text_of(event) is None
    ),
    Rule(
        "delta",
        "is not behind its whole",
        API,
        lambda event, seen: (text := seen.text_of(event)) is not None and text.whole is not None,
    ),
    Rule("delta", "is a text", AI, lambda event, _: not isinstance(event.get("delta"), str)),
    Rule("done", "is of an open text of its kind", PY, lambda event, seen: seen.text_of(event) is None),
    Rule("done", "says what was told", API, _other_text),
    Rule("note", "is of an open text", API, lambda event, seen: seen.text_of(event) is None),
    Rule(
        "terminal",
        "has its status",
        PY,
        lambda event, _: get(event, "response", "status") != TERMINALS[event["type"]],
    ),
    Rule(
        "terminal", "is behind the end of every item, but for what a failure cut that a client may run", PY, _unfinished
    ),
    Rule(
        "terminal",
        "says of no call that was cut that it is done, unless it is incomplete",
        CODEX,
        _runs_cut_calls,
        own=True,
    ),
    Rule(
        "terminal", "has the items as they were done", f"{PY}: it takes the output from here", _other_output, own=True
    ),
    Rule("terminal", "has its reason, and no other's", CODEX, _no_reason),
    Rule("terminal", "has counts that add up, or none", f"{CODEX}: it refuses others", _odd_usage),
    Rule("terminal", "has all details of its counts", "openai 3.57, ResponseUsage", _lacks_details, own=True),
    Rule(
        "error",
        "has a message",
        API,
        lambda event, _: not (is_word(event.get("message")) or is_word(get(event, "error", "message"))),
    ),
    Rule("end", "is behind a terminal", CODEX, lambda _, seen: not seen.ended),
)
"""What each part must be, who says so, and what breaks it."""

GRAMMAR: Final = Grammar(RULES, ResponsesReading)
