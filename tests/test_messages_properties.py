"""Properties of Messages as an upstream: what is written comes back, and whatever comes harms nothing."""

import json
from collections.abc import Sequence
from typing import Any

from attrs import evolve
from hypothesis import given as examples
from hypothesis import strategies as st

from pipeline.dialect import NO_REQUEST
from pipeline.errors import UpstreamError
from pipeline.events import (
    BlockStart,
    BlockStop,
    Event,
    MessageStart,
    MessageStop,
    StopReason,
    StreamError,
    ToolKind,
    Usage,
)
from pipeline.jsontext import dumps
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS
from pipeline.message import (
    Content,
    Message,
    Reasoning,
    RedactedReasoning,
    Refusal,
    ServerItem,
    Text,
    ToolUse,
    assemble,
    disassemble,
)
from stages.dialects.messages import DIALECT
from stages.dialects.messages.encode import MessagesEncoder
from stages.dialects.messages.normalize import CUTTING, MessagesNormalizer
from stages.dialects.messages.opaque import proof_of
from stages.sse import SSEDecoder, SSEEncoder
from tests.messages_stream import (
    END,
    TEXT,
    THINKING,
    Json,
    begin,
    call,
    citation,
    delta,
    event,
    frame,
    given,
    message,
    search,
    signature,
    sse,
    start,
    stop,
    text,
    thinking,
    told,
)

WORDS = st.text(min_size=1, max_size=8)
INPUTS = st.dictionaries(WORDS, st.integers() | WORDS | st.lists(WORDS, max_size=2), max_size=3)
NOTE = {"type": "char_location", "cited_text": "x"}
FOREIGN = {"type": "url_citation", "url": "u"}
PAGE = {"type": "web_search_result_location", "url": "u", "title": "u", "cited_text": "", "encrypted_index": ""}
SEARCH = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}}
PROOFS = {kind: proof_of(kind, "SIG") for kind in ("thinking", "redacted_thinking")}

SAID: st.SearchStrategy[Content] = st.one_of(
    st.builds(Text, WORDS, st.sampled_from([(), (NOTE,), (NOTE, NOTE)])),
    st.builds(Reasoning, WORDS, st.sampled_from(["", PROOFS["thinking"]]), st.just(False)),
    st.just(RedactedReasoning(PROOFS["redacted_thinking"])),
    st.builds(ToolUse, WORDS.map("id".__add__), WORDS.map("f".__add__), INPUTS.map(lambda it: dumps(it).decode())),
    st.just(ServerItem("messages", SEARCH, "q")),
)
"""What this dialect can say."""

UNSAID: st.SearchStrategy[Content] = st.one_of(
    st.builds(Refusal, WORDS),
    st.builds(Text, WORDS, st.sampled_from([(FOREIGN,), (NOTE, FOREIGN)])),
    st.builds(Reasoning, WORDS, st.sampled_from(["", "E"]), st.just(True)),
    st.builds(ToolUse, WORDS.map("ct".__add__), WORDS.map("g".__add__), WORDS, st.just(ToolKind.CUSTOM)),
    st.just(ServerItem("responses", {"type": "web_search_call"})),
)
"""What it cannot, or not in so many words."""


def messages_of(contents: st.SearchStrategy[Content]) -> st.SearchStrategy[Message]:
    """Messages with that content."""
    unique = st.lists(contents, max_size=5, unique_by=lambda one: getattr(one, "id", object()))
    usages = st.builds(Usage, st.integers(1, 99), *[st.integers(0, 99)] * 4)
    made = st.builds(
        Message, WORDS.map("msg_".__add__), WORDS, unique.map(tuple), st.sampled_from(StopReason), usage=usages
    )
    sure = made.filter(lambda it: it.stop_reason not in CUTTING or all(map(_is_whole, it.content)))
    return st.tuples(sure, WORDS).map(
        lambda pair: evolve(pair[0], stop_sequence=pair[1] if pair[0].stop_reason is StopReason.STOP_SEQUENCE else None)
    )


def _is_whole(content: Content) -> bool:
    """Whether a limit cannot have cut it: of a call without input nobody can tell."""
    return not isinstance(content, ToolUse) or content.arguments != "{}"


def streamed(message: Message, ledger: Ledger) -> Message:
    """A message that was written as a stream and read again."""
    bytes_ = MessagesEncoder(ledger=ledger) | SSEEncoder()
    raw = b"".join([*bytes_.receive([*disassemble(message)]), *bytes_.receive_eof()])
    back = SSEDecoder() | MessagesNormalizer(ledger=ledger)
    return assemble([*back.receive([raw]), *back.receive_eof()])


def whole(message: Message, ledger: Ledger) -> Message:
    """A message that was written as a whole answer and read again."""
    body = dumps(DIALECT.write_body(message, facts=NO_REQUEST, ledger=ledger))
    return DIALECT.read_body(body, facts=NO_REQUEST, ledger=ledger, limits=DEFAULT_LIMITS)


@examples(messages_of(SAID))
def test_what_messages_can_say_comes_back_and_nothing_is_recorded(message: Message) -> None:
    for way in (streamed, whole):
        ledger = Ledger()
        assert way(message, ledger) == message
        assert list(ledger) == []


@examples(messages_of(SAID | UNSAID))
def test_of_what_messages_cannot_say_as_much_comes_back_as_it_can_and_the_ledger_names_the_rest(
    message: Message,
) -> None:
    lost = {path for at, content in enumerate(message.content) for path in losses_of(at, content)}
    for way in (streamed, whole):
        ledger = Ledger()
        assert way(message, ledger) == evolve(message, content=tuple(said_of(message.content)))
        assert {entry.path for entry in ledger} == lost


def losses_of(at: int, content: Content) -> Sequence[str]:
    """What is lost of a content."""
    if isinstance(content, Text) and FOREIGN in content.annotations:
        return ("annotation",)
    path = f"ServerBlock[{at}] web_search_call"
    return (path,) if isinstance(content, ServerItem) and content.dialect != "messages" else ()


def said_of(contents: Sequence[Content]) -> list[Content]:
    """What of it comes back: nothing is splittable here, freeform input is a string in an object, a refusal a text."""
    out: list[Content] = []
    for content in contents:
        if isinstance(content, Refusal):
            out.append(Text(content.text))
        elif isinstance(content, Text):
            out.append(Text(content.text, tuple(PAGE if note == FOREIGN else note for note in content.annotations)))
        elif isinstance(content, Reasoning):
            blob = content.signature
            out.append(Reasoning(content.text, proof_of("thinking", "E") if blob == "E" else blob, splittable=False))
        elif isinstance(content, ToolUse) and content.kind is ToolKind.CUSTOM:
            out.append(ToolUse(content.id, content.name, dumps({"input": content.arguments}).decode()))
        elif not isinstance(content, ServerItem) or content.dialect == "messages":
            out.append(content)
    return out


ANY_ORDER: list[Json] = [
    begin(usage={"input_tokens": 3, "output_tokens": 1}),
    event("ping"),
    start(TEXT),
    start(THINKING, 1),
    start(call(), 2),
    start(call("a", "g", {"x": 1}), 3),
    start(search(), 4),
    start({"type": "redacted_thinking", "data": "E"}, 5),
    start({}, 6),
    text("a"),
    text("b", 1),
    text("é", 2),
    text("\ud83d"),
    text("\udc4d"),
    thinking("c", 1),
    thinking("d"),
    signature("S", 1),
    given('{"x"', 2),
    given(":1}", 2),
    given("{}", 4),
    given(" ", 0),
    citation(NOTE),
    delta("weird"),
    *(stop(at) for at in range(7)),
    stop(None),
    told(),
    told("max_tokens"),
    END,
    event("error", error={}),
    event("weird"),
    message({"type": "text", "text": "a"}, stop_reason="end_turn"),
]


@examples(st.lists(st.sampled_from(ANY_ORDER), max_size=14))
def test_whatever_comes_makes_events_that_belong_to_blocks_that_are_open(items: list[Json]) -> None:
    opened: set[int] = set()
    closed: set[int] = set()
    stage = MessagesNormalizer()
    try:
        made: Sequence[Event] = [*stage.receive([frame(item) for item in items]), *stage.receive_eof()]
    except UpstreamError as error:
        made = error.made
    for one in made:
        index: Any = getattr(one, "index", None)
        if isinstance(one, BlockStart):
            assert index == len(opened)
            opened.add(index)
        elif index is not None:
            assert index in opened - closed
            if isinstance(one, BlockStop):
                closed.add(index)
    assert sum(isinstance(one, MessageStart) for one in made) <= 1
    assert sum(isinstance(one, MessageStop | StreamError) for one in made) <= 1
    if any(isinstance(one, MessageStop) for one in made):
        assert opened == closed
        assert stage.held == 0


@examples(st.lists(st.sampled_from(ANY_ORDER), max_size=10), st.integers(1, 90))
def test_every_cut_of_the_bytes_gives_the_same_events(items: list[Json], size: int) -> None:
    data = sse(items)

    def made(size: int) -> list[Any]:
        chain, out = SSEDecoder() | MessagesNormalizer(), list[Any]()
        try:
            for at in range(0, len(data), size):
                out += chain.receive([data[at : at + size]])
            return [*out, *chain.receive_eof()]
        except UpstreamError as error:
            return [*out, *error.made, str(error)]

    assert json.loads(json.dumps(items)) == items
    assert made(size) == made(len(data) or 1)
