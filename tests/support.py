"""What several test modules share: Chat streams to give, and a reader of Messages streams that owes us nothing."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from attrs import define, field
from hypothesis import strategies as st

from pipeline.dialect import dialect
from pipeline.events import Frame
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.outcome import Outcome
from pipeline.stage import Stage
from stages.recipe import default_chain

# Chat, as a server writes it


def chunk(delta: Any = None, finish: str | None = None, **members: Any) -> dict[str, Any]:
    """One chunk of a Chat stream with one choice."""
    choice = {"index": 0, "delta": {} if delta is None else delta, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **members}


def text(content: str) -> dict[str, Any]:
    """A chunk of visible text."""
    return chunk({"content": content})


def reasoning(content: str) -> dict[str, Any]:
    """A chunk of reasoning."""
    return chunk({"reasoning_content": content})


def fragment(index: Any = None, id: Any = None, name: Any = None, arguments: Any = None, **more: Any) -> dict[str, Any]:  # noqa: A002
    """One entry of `tool_calls`; what is None is left out."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    entry = {key: value for key, value in (("index", index), ("id", id)) if value is not None}
    if id is not None:
        entry["type"] = "function"
    return {**entry, "function": function, **more}


def call(index: Any = None, id: Any = None, name: Any = None, arguments: Any = None) -> dict[str, Any]:  # noqa: A002
    """A chunk with one fragment of a call."""
    return chunk({"tool_calls": [fragment(index, id, name, arguments)]})


def finish(reason: str = "stop", **members: Any) -> dict[str, Any]:
    """The finish chunk."""
    return chunk({}, reason, **members)


def usage(prompt: int = 10, completion: int = 5) -> dict[str, Any]:
    """The chunk behind the finish that counts the tokens."""
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return {**chunk(), "choices": [], "usage": counts}


DONE = "[DONE]"


def payload(item: Any) -> bytes:
    """The data of one frame: JSON for what is no text."""
    return item.encode() if isinstance(item, str) else json.dumps(item, ensure_ascii=False).encode()


def frame(item: Any, name: bytes = b"") -> Frame:
    """A frame with that data."""
    return Frame(payload(item), name)


def sse(*items: Any) -> bytes:
    """The bytes of a stream of these frames."""
    return b"".join(b"data: " + payload(item) + b"\n\n" for item in items)


# The chain

CHAT, MESSAGES = dialect("chat"), dialect("messages")


@define
class Run:
    """A stream through the whole default chain, and what is said of it."""

    limits: Limits = DEFAULT_LIMITS
    ledger: Ledger = field(init=False, factory=Ledger)
    outcome: Outcome = field(init=False, factory=Outcome)
    chain: Stage[bytes, bytes] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.chain = default_chain(CHAT, MESSAGES, ledger=self.ledger, limits=self.limits, outcome=self.outcome)

    def give(self, data: bytes) -> bytes:
        """What leaves in the read that brings `data`."""
        return b"".join(self.chain.receive([data]))

    def end(self) -> bytes:
        """What leaves at the end."""
        return b"".join(self.chain.receive_eof())

    def all(self, reads: Iterable[bytes]) -> bytes:
        """All that leaves."""
        return b"".join([*map(self.give, reads), self.end()])

    @property
    def lost(self) -> set[tuple[str, str]]:
        """What the ledger holds: path and action."""
        return {(entry.path, entry.action) for entry in self.ledger}


def converted(*items: Any) -> bytes:
    """What a Messages client gets of a Chat stream of these frames, read at once."""
    return Run().all([sse(*items)])


def same_ids(raw: bytes) -> bytes:
    """A Messages stream with minted ids replaced by their number."""
    seen: dict[bytes, bytes] = {}
    return re.sub(rb"\b(?:call|msg)_[0-9a-f]{24}\b", lambda it: seen.setdefault(it.group(), b"id%d" % len(seen)), raw)


# Messages, as a client reads it


@define
class Answer:
    """A Messages stream, read: blocks as `[kind, text]` or `["tool_use", text, id, name, closed]`."""

    blocks: list[list[Any]] = field(factory=list)
    stop: str | None = None
    stop_sequence: str | None = None
    usage: dict[str, Any] = field(factory=dict)
    error: dict[str, Any] | None = None
    ended: bool = False
    """`message_stop` came."""
    signatures: list[str] = field(factory=list)

    def said(self, kind: str) -> str:
        """All text of the blocks of a kind."""
        return "".join(block[1] for block in self.blocks if block[0] == kind)

    @property
    def calls(self) -> list[tuple[str, Any]]:
        """Name and input of the calls that were closed."""
        return [
            (block[3], json.loads(block[1] or "{}")) for block in self.blocks if block[0] == "tool_use" and block[4]
        ]


FIELDS = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "tool_use": ("input_json_delta", "partial_json"),
}
STARTS: dict[str, dict[str, Any]] = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"input": {}},
    "redacted_thinking": {},
}
STOPS = {"end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal", "model_context_window_exceeded"}
ERRORS = {
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
}


def events_of(raw: bytes) -> Iterator[dict[str, Any]]:
    """The events of a Messages stream, each checked for its framing."""
    assert raw.endswith(b"\n\n"), "the stream ends inside an event"
    for block in raw[:-2].split(b"\n\n"):
        name, data = block.split(b"\n")
        assert name.startswith(b"event: "), name
        assert data.startswith(b"data: "), data
        event = json.loads(data[6:])
        assert event["type"] == name[7:].decode(), f"{name!r} names a {event['type']}"
        yield event


def read(raw: bytes) -> Answer:
    """Read a Messages stream, and assert its law on the way (dialects.md, A1.2): order, indexes, fitting deltas."""
    answer, state, told = Answer(), "before", None
    for event in events_of(raw):
        kind = event["type"]
        assert state != "ended", f"{kind} after the terminal"
        if kind == "ping":
            continue
        if kind == "error":
            error = event["error"]
            assert error["type"] in ERRORS, error
            assert isinstance(error["message"], str), error
            assert error["message"], error
            assert state != "block" or answer.blocks[-1][0] == "tool_use", "an error while a block is open"
            answer.error, state = error, "ended"
        elif kind == "message_start":
            assert state == "before", "a second start"
            _check_start(event["message"])
            answer.usage.update(event["message"]["usage"])
            state = "between"
        elif kind == "content_block_start":
            assert state == "between", f"a block starts {state}"
            assert event["index"] == len(answer.blocks), event
            answer.blocks.append(_opened(event["content_block"]))
            state = "block"
        elif kind == "content_block_delta":
            assert state == "block", f"a delta {state}"
            assert event["index"] == len(answer.blocks) - 1, event
            if event["delta"]["type"] == "signature_delta":
                assert answer.blocks[-1][0] == "thinking", event
                answer.signatures.append(event["delta"]["signature"])
                state = "signed"
                continue
            if event["delta"]["type"] == "citations_delta":
                assert answer.blocks[-1][0] == "text", event
                continue
            delta, member = FIELDS[answer.blocks[-1][0]]
            assert set(event["delta"]) == {"type", member}, event
            assert event["delta"]["type"] == delta, event
            assert event["delta"][member] != "", "a delta that says nothing"
            answer.blocks[-1][1] += event["delta"][member]
        elif kind == "content_block_stop":
            assert state in ("block", "signed"), f"a block stops {state}"
            assert event["index"] == len(answer.blocks) - 1, event
            block, state = answer.blocks[-1], "between"
            assert block[0] != "text" or block[1], "an empty block"
            if block[0] == "tool_use":
                block[4] = True
        elif kind == "message_delta":
            assert state == "between", f"the end is told {state}"
            assert event["delta"]["stop_reason"] in STOPS, event
            answer.stop, answer.stop_sequence = event["delta"]["stop_reason"], event["delta"]["stop_sequence"]
            assert (answer.stop == "stop_sequence") == (answer.stop_sequence is not None)
            assert isinstance(event["usage"]["output_tokens"], int), event
            answer.usage.update(event["usage"])
            state, told = "told", event
        else:
            assert kind == "message_stop", kind
            assert state == "told", f"the message stops {state}"
            answer.ended, state = True, "ended"
    assert state == "ended", f"the stream ends {state}"
    if told is not None and answer.ended:
        _check_calls(answer)
    return answer


def _check_start(message: dict[str, Any]) -> None:
    fixed: dict[str, Any] = {
        "type": "message",
        "role": "assistant",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }
    assert fixed.items() <= message.items(), message
    assert isinstance(message["id"], str), message
    assert message["id"].startswith("msg_"), message
    assert isinstance(message["model"], str), message
    assert all(type(message["usage"][name]) is int for name in ("input_tokens", "output_tokens")), message


def _opened(block: dict[str, Any]) -> list[Any]:
    kind = block["type"]
    assert STARTS[kind].items() <= block.items(), block
    if kind != "tool_use":
        return [kind, block.get("data", "")]
    assert block["id"], block
    assert block["name"], block
    return [kind, "", block["id"], block["name"], False]


def _check_calls(answer: Answer) -> None:
    """A call that may be run is a JSON object, under an id of its own; tool use is claimed exactly for one."""
    calls = [block for block in answer.blocks if block[0] == "tool_use"]
    assert len({block[2] for block in calls}) == len(calls), "two calls have the same id"
    if answer.stop in ("end_turn", "tool_use"):
        assert all(isinstance(json.loads(block[1] or "{}"), dict) for block in calls)
        assert (answer.stop == "tool_use") == bool(calls), answer.stop


# Chat streams of chance


@define
class Chance:
    """A Chat stream, and what it says."""

    items: list[Any]
    text: str
    reasoning: str
    calls: list[tuple[str, Any]]

    @property
    def raw(self) -> bytes:
        """Its bytes."""
        return sse(*self.items)


WORDS = st.text(st.sampled_from('aé日👍 \n"\\{}[]<:x'), min_size=1, max_size=6)
SAID = WORDS.map(lambda word: f"w{word}")
VALUES = st.recursive(st.none() | st.booleans() | st.integers(-5, 5) | WORDS, lambda inner: st.lists(inner, max_size=2))
INPUTS = st.dictionaries(WORDS, VALUES, max_size=3)


@st.composite
def pieces_of(draw: st.DrawFn, whole: str) -> list[str]:
    """A text in pieces."""
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(whole) - 1)), max_size=4)))
    return [whole[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True) if whole[begin:end]]


@st.composite
def chat_streams(draw: st.DrawFn) -> Chance:
    """Reasoning, text and up to three calls whose fragments alternate with all else, in some vendors' ways."""
    lanes: list[list[tuple[str, Any]]] = [
        [("text", word) for word in draw(st.lists(SAID, max_size=4))],
        [("reasoning", word) for word in draw(st.lists(SAID, max_size=4))],
    ]
    calls = [(f"f{n}", draw(INPUTS)) for n in range(draw(st.integers(0, 3)))]
    spelling = draw(st.sampled_from(["reasoning_content", "reasoning", "reasoning_text"]))
    begun: list[tuple[str, Any]] = []
    for n, (name, value) in enumerate(calls):
        parts = draw(pieces_of(json.dumps(value, ensure_ascii=draw(st.booleans()))))
        first = fragment(n, f"id{n}", name, "")
        lanes.append([(f"call{n}", first), *((f"call{n}", fragment(n, arguments=part)) for part in parts)])
    items: list[Any] = [chunk({"role": "assistant", "content": ""})] if draw(st.booleans()) else []
    counts = draw(st.booleans())
    while any(lanes):
        kind, said = lanes[draw(st.sampled_from([at for at, lane in enumerate(lanes) if lane]))].pop(0)
        member = {"text": "content", "reasoning": spelling}.get(kind, "tool_calls")
        if member == "tool_calls":
            if "id" in said:
                begun.append(calls[int(kind[4:])])
            said = [said]
        items.append(chunk({member: said}, **({"usage": usage()["usage"]} if counts else {})))
    items += [finish("tool_calls" if bool(calls) and draw(st.booleans()) else "stop"), usage(), DONE]
    texts = [item["choices"][0]["delta"] for item in items[:-2]]
    return Chance(
        items,
        "".join(delta.get("content", "") for delta in texts),
        "".join(delta.get(spelling, "") for delta in texts),
        begun,
    )


def cuts_of(raw: bytes) -> st.SearchStrategy[list[bytes]]:
    """A stream cut anywhere."""
    return st.sets(st.integers(0, len(raw)), max_size=12).map(lambda points: _cut(raw, sorted(points)))


def _cut(raw: bytes, points: Sequence[int]) -> list[bytes]:
    return [raw[begin:end] for begin, end in zip([0, *points], [*points, len(raw)], strict=True)]
