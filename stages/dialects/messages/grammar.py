"""The grammar of a Messages stream: a message that begins, blocks one at a time, how it ended, one terminal."""

from collections.abc import Iterator
from typing import Any, Final

from attrs import define, field

from pipeline.events import Frame
from pipeline.grammar import Grammar, Part, Reading, Rule, framing, get, is_count, is_word
from pipeline.jsontext import is_object, loads

API: Final = "Anthropic API reference, Streaming messages"
PY: Final = "anthropic 2.14, lib/streaming/_messages.py"
JS: Final = "npm @anthropic-ai/sdk 1.14, MessageStream"
AI: Final = "ai 7.0, @ai-sdk/anthropic"
CODE: Final = "Claude Code 2.1.332"
CHAIN: Final = "langchain-anthropic 1.7"

EVENTS: Final = (
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "ping",
    "error",
)
STOPS: Final = (
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
)
CUTTING: Final = ("max_tokens", "refusal", "model_context_window_exceeded", "pause_turn")
"""Behind these a call's input may be cut."""
ERRORS: Final = (
    "invalid_request_error",
    "authentication_error",
    "billing_error",
    "permission_error",
    "not_found_error",
    "request_too_large",
    "rate_limit_error",
    "api_error",
    "timeout_error",
    "overloaded_error",
)
CALLS: Final = ("tool_use", "server_tool_use", "mcp_tool_use")
DELTAS: Final = {
    "text_delta": (("text",), "text"),
    "citations_delta": (("text",), "citation"),
    "thinking_delta": (("thinking",), "thinking"),
    "signature_delta": (("thinking",), "signature"),
    "input_json_delta": (CALLS, "partial_json"),
    "compaction_delta": (("compaction",), "content"),
}
"""The blocks that each delta fits, and the member that it brings."""
BLANK: Final = {"text": {"text": ""}, "thinking": {"thinking": ""}}
"""How blocks begin whose text comes in deltas."""
WHOLE: Final = ("redacted_thinking", "container_upload", "compaction", "fallback", "mcp_tool_listing")
"""Blocks that come whole, beside the results of tools that the provider runs."""
COUNTS: Final = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


@define(eq=False)
class _Block:
    kind: str
    text: str = ""
    signatures: int = 0


@define(eq=False)
class MessagesReading(Reading):
    """One Messages stream as far as it was read."""

    started: bool = field(init=False, default=False)
    blocks: list[_Block] = field(init=False, factory=list)
    open: _Block | None = field(init=False, default=None)
    ids: set[str] = field(init=False, factory=set)
    broken: bool = field(init=False, default=False)
    """A call was closed whose input is no object."""
    told: bool = field(init=False, default=False)
    """How it ended was told, and the stop reason."""
    stop: Any = field(init=False, default=None)
    ended: str = field(init=False, default="")
    """The type of the terminal."""

    def parts(self, frame: Frame) -> Iterator[Part]:
        """A frame, the event that it is, and what it tells."""
        try:
            event = loads(frame.data)
        except ValueError:
            event = None
        kind = get(event, "type")
        yield "frame", (frame.name.decode(errors="replace"), event)
        if not isinstance(event, dict) or kind in (None, "ping"):
            return
        yield "event", event
        if kind == "message_start":
            yield "start", event
            self.started = True
        elif kind == "content_block_start":
            yield "block start", event
            self._open(event.get("content_block"))
        elif kind == "content_block_delta":
            yield "delta", event
            self._grow(event)
        elif kind == "content_block_stop":
            yield "block stop", event
            self._close(event)
        elif kind == "message_delta":
            yield "end told", event
            self.told, self.stop = True, get(event, "delta", "stop_reason")
        elif kind in ("message_stop", "error"):
            yield kind.replace("_", " "), event
            self.ended = kind

    def _open(self, block: Any) -> None:
        self.open = _Block(str(get(block, "type")))
        self.blocks.append(self.open)
        if is_word(name := get(block, "id")):
            self.ids.add(name)

    def _grow(self, event: Any) -> None:
        kind = _kind_of(event)
        if not self.is_open(event) or self.open is None or kind not in DELTAS:
            return
        said = get(event, "delta", DELTAS[kind][1])
        if kind == "signature_delta":
            self.open.signatures += 1
        elif isinstance(said, str):
            self.open.text += said

    def _close(self, event: Any) -> None:
        if self.is_open(event) and self.open is not None:
            self.broken = self.broken or (self.open.kind == "tool_use" and not is_object(self.open.text or "{}"))
            self.open = None

    def is_open(self, event: Any) -> bool:
        """Whether an event is of the open block."""
        index = get(event, "index")
        return self.open is not None and is_count(index) and index == len(self.blocks) - 1


def _kind_of(event: Any) -> str:
    """The type of the delta that an event brings."""
    return str(get(event, "delta", "type"))


Seen = MessagesReading


def _odd_start(event: Any, seen: Seen) -> bool:
    message = get(event, "message")
    due: dict[str, Any] = {
        "type": "message",
        "role": "assistant",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }
    named = is_word(get(message, "id")) and isinstance(get(message, "model"), str)
    return not named or any(name not in message or message[name] != value for name, value in due.items())


def _no_counts(event: Any, seen: Seen) -> bool:
    usage = get(event, "message", "usage") if event["type"] == "message_start" else get(event, "usage")
    needed = COUNTS[:2] if event["type"] == "message_start" else COUNTS[1:2]
    told = [get(usage, name) for name in COUNTS]
    return not all(is_count(get(usage, name)) for name in needed) or any(
        count is not None and not is_count(count) for count in told
    )


def _unknown_block(event: Any, seen: Seen) -> bool:
    kind = get(event, "content_block", "type")
    known = (*BLANK, *CALLS, *WHOLE)
    return not isinstance(kind, str) or (kind not in known and not kind.endswith("_tool_result"))


def _begun_with_text(event: Any, seen: Seen) -> bool:
    block = get(event, "content_block")
    return any(get(block, name) != value for name, value in BLANK.get(str(get(block, "type")), {}).items())


def _unnamed_call(event: Any, seen: Seen) -> bool:
    block = get(event, "content_block")
    called = get(block, "type") == "tool_use"
    return called and not (is_word(get(block, "id")) and is_word(get(block, "name")) and block["id"] not in seen.ids)


def _strict_start(event: Any, seen: Seen) -> bool:
    block = get(event, "content_block")
    kind = get(block, "type")
    return bool(
        (kind == "tool_use" and get(block, "input") != {}) or (kind == "thinking" and block.get("signature") != "")
    )


def _no_fit(event: Any, seen: Seen) -> bool:
    kind = _kind_of(event)
    return kind not in DELTAS or seen.open is None or seen.open.kind not in DELTAS[kind][0]


def _says_nothing(event: Any, seen: Seen) -> bool:
    kind = _kind_of(event)
    if kind not in DELTAS or kind in ("citations_delta", "compaction_delta"):
        return False
    return not isinstance(get(event, "delta", DELTAS[kind][1]), str)


def _odd_end(event: Any, seen: Seen) -> bool:
    delta = get(event, "delta")
    stop = get(delta, "stop_reason")
    sequence = get(delta, "stop_sequence")
    known = isinstance(stop, str) and stop in STOPS and "stop_sequence" in delta
    return not known or isinstance(sequence, str) != (stop == "stop_sequence")


def _called(seen: Seen) -> bool:
    return any(block.kind == "tool_use" for block in seen.blocks)


RULES: Final = (
    *framing(named=True),
    Rule(
        "frame",
        "is an event that is called by its type",
        PY,
        lambda told, _: told[0] != get(told[1], "type") or not told[0],
    ),
    Rule("frame", "is not behind the terminal", f"{AI}; {CODE}: it takes it up", lambda _, seen: seen.ended),
    Rule("frame", "is a known event", f"{AI}: Type validation failed", lambda told, _: told[0] not in EVENTS),
    Rule(
        "event",
        "is the start, or an error, if it is the first",
        PY,
        lambda event, seen: not seen.started and event["type"] not in ("message_start", "error"),
    ),
    Rule("start", "comes once", f"{JS}: Unexpected event order", lambda _, seen: seen.started),
    Rule("start", "is an empty message", f"{PY}: it appends to its content", _odd_start),
    Rule("start", "has its counts", f"{AI}: it demands them", _no_counts),
    Rule("block start", "has the next index", PY, lambda event, seen: event.get("index") != len(seen.blocks)),
    Rule("block start", "is behind the stop of the block before", CHAIN, lambda _, seen: seen.open is not None),
    Rule("block start", "is before the end is told", API, lambda _, seen: seen.told),
    Rule("block start", "is of a known type", f"{AI}: it drops others", _unknown_block),
    Rule("block start", "begins without its text", f"{PY}: it joins both", _begun_with_text),
    Rule(
        "block start",
        "has a name, and an id of its own, if it is a call",
        f"{CODE}: this call did not run",
        _unnamed_call,
    ),
    Rule("block start", "has no input yet, and no signature", f"{AI}: it joins both", _strict_start, own=True),
    Rule(
        "block start",
        "has its data if it is redacted",
        API,
        lambda event, _: (
            get(event, "content_block", "type") == "redacted_thinking"
            and not is_word(get(event, "content_block", "data"))
        ),
    ),
    Rule(
        "delta", "is of the open block", f"{CODE}: Content block not found", lambda event, seen: not seen.is_open(event)
    ),
    Rule("delta", "fits its block", CODE, _no_fit),
    Rule("delta", "says something of its kind", AI, _says_nothing),
    Rule(
        "delta",
        "is not behind the signature",
        f"{PY}: it keeps the last",
        lambda _, seen: seen.open is not None and seen.open.signatures,
    ),
    Rule("block stop", "is of the open block", PY, lambda event, seen: not seen.is_open(event)),
    Rule(
        "block stop",
        "is of a text that says something",
        "Anthropic API: text content blocks must be non-empty",
        lambda _, seen: seen.open is not None and seen.open.kind == "text" and not seen.open.text,
        own=True,
    ),
    Rule("end told", "is behind the stop of every block", API, lambda _, seen: seen.open is not None),
    Rule("end told", "comes once", f"{PY}: the last stop reason stands", lambda _, seen: seen.told, own=True),
    Rule("end told", "has a known reason, and the sequence if it is one", AI, _odd_end),
    Rule("end told", "has its counts", PY, _no_counts),
    Rule(
        "end told",
        "is for calls only if there is one",
        API,
        lambda event, seen: get(event, "delta", "stop_reason") == "tool_use" and not _called(seen),
    ),
    Rule(
        "end told",
        "is for calls if there is one",
        f"{AI}: it runs none else",
        lambda event, seen: get(event, "delta", "stop_reason") == "end_turn" and _called(seen),
        own=True,
    ),
    Rule(
        "end told",
        "is behind calls whose input is whole, unless it was cut",
        CODE,
        lambda event, seen: seen.broken and get(event, "delta", "stop_reason") not in CUTTING,
    ),
    Rule("message stop", "is behind how it ended", API, lambda _, seen: not seen.told or seen.open is not None),
    Rule(
        "error",
        "has a known type and a message",
        "anthropic 2.14, types.shared",
        lambda event, _: get(event, "error", "type") not in ERRORS or not is_word(get(event, "error", "message")),
    ),
    Rule(
        "error",
        "leaves a call open, and nothing else",
        f"{CODE}: it runs a call that was closed",
        lambda _, seen: (seen.open is not None and seen.open.kind != "tool_use") or seen.broken,
        own=True,
    ),
    Rule("end", "is behind a terminal", JS, lambda _, seen: not seen.ended),
)
"""What each part must be, who says so, and what breaks it."""

GRAMMAR: Final = Grammar(RULES, MessagesReading)
