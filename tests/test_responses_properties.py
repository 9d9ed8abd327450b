"""Properties of the responses normalizer: any server's way of telling an answer gives the same answer."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import UpstreamError
from pipeline.events import BlockStart, BlockStop, Event, MessageStart, MessageStop, StreamError
from pipeline.message import assemble
from stages.dialects.responses.body import read
from stages.dialects.responses.normalize import ResponsesNormalizer
from stages.sse import SSEDecoder
from tests.responses_stream import (
    Json,
    added,
    arguments,
    arguments_done,
    call,
    created,
    custom,
    done,
    event,
    events,
    frame,
    message,
    raw,
    reasoning,
    refusal,
    response,
    summary,
    terminal,
    text,
)

COUNTS = {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 5}
pieces = st.lists(st.text(max_size=4), min_size=1, max_size=3)
ITEMS = st.one_of(
    pieces.map(lambda texts: message(*texts)),
    st.text(min_size=1, max_size=4).map(refusal),
    pieces.map(lambda texts: reasoning(*texts)),
    st.tuples(pieces, st.sampled_from(["", "E"])).map(lambda told: reasoning(content=told[0], blob=told[1])),
    st.integers().map(lambda number: call(json.dumps({"x": number}))),
    st.text(min_size=1, max_size=4).map(custom),
    st.just({"type": "web_search_call", "status": "completed"}),
)
DELTAS = {
    "output_text": "response.output_text",
    "refusal": "response.refusal",
    "summary_text": "response.reasoning_summary_text",
    "reasoning_text": "response.reasoning_text",
}
Draw = Any


def told(item: Json, place: int, draw: Draw) -> list[Json]:
    """What a server says of an item, with things left out that others tell."""
    where: Json = {"output_index": place, "item_id": item["id"]}
    out: list[Json] = []
    said_by_deltas = draw(st.booleans())
    announced = draw(st.booleans())
    if announced:
        empty: Json = {"content": [], "summary": [], "arguments": "", "input": ""}
        begun = {name: empty.get(name, value) for name, value in item.items() if name != "encrypted_content"}
        out.append(added(begun, place))
    if said_by_deltas:
        for kind, index, member in (("summary", "summary_index", "text"), ("content", "content_index", "")):
            for at, part in enumerate(item.get(kind, ())):
                name, key = DELTAS[part["type"]], member or ("refusal" if part["type"] == "refusal" else "text")
                out.extend(
                    event(f"{name}.delta", **where, **{index: at}, delta=piece) for piece in cut(part[key], draw)
                )
                if draw(st.booleans()):
                    out.append(event(f"{name}.done", **where, **{index: at}, **{key: part[key]}))
        for key, name in (("arguments", "function_call_arguments"), ("input", "custom_tool_call_input")):
            if key in item:
                out.extend(event(f"response.{name}.delta", **where, delta=piece) for piece in cut(item[key], draw))
                if draw(st.booleans()):
                    out.append(event(f"response.{name}.done", **where, **{key: item[key]}))
    if draw(st.booleans()):
        out.append(done(item, place))
    return out


def cut(whole: str, draw: Draw) -> list[str]:
    at = draw(st.integers(0, len(whole)))
    return [whole[:at], whole[at:]]


@st.composite
def streams(draw: Draw) -> tuple[list[Json], Json]:
    """The events of a stream that tells the items of a response one behind the other, and that response."""
    output = [
        {**item, "id": f"i{at}", **({"call_id": f"c{at}"} if "call_id" in item else {})}
        for at, item in enumerate(draw(st.lists(ITEMS, max_size=4)))
    ]
    whole = response(output=output, usage=COUNTS)
    frames = [one for place, item in enumerate(output) for one in told(item, place, draw)]
    return [created(), *frames, event("response.completed", response=whole)], whole


@given(streams())
def test_the_assembled_stream_is_the_whole_answer_whatever_it_leaves_to_whom(told: tuple[list[Json], Json]) -> None:
    frames, whole = told
    streamed, answer = assemble(events(*frames)), read(whole)
    assert sorted(map(repr, streamed.content)) == sorted(map(repr, answer.content))
    assert (streamed.stop_reason, streamed.usage) == (answer.stop_reason, answer.usage)


@given(streams(), st.integers(1, 90))
def test_every_cut_of_the_bytes_gives_the_same_events(told: tuple[list[Json], Json], size: int) -> None:
    data = b"".join(b"data: " + frame(item).data + b"\n\n" for item in told[0])

    def made(size: int) -> list[Event]:
        chain = SSEDecoder() | ResponsesNormalizer()
        out = [one for at in range(0, len(data), size) for one in chain.receive([data[at : at + size]])]
        return [*out, *chain.receive_eof()]

    assert made(size) == made(len(data))


ANY_ORDER = [
    created(),
    added(message()),
    text("a"),
    text("b", None, None, None),
    summary("s", 1),
    raw("r", 1),
    added(call(), 2),
    arguments('{"x"', 2),
    arguments(":1}", 2),
    arguments_done('{"x":1}', 2),
    done(call('{"x":1}'), 2),
    done(message("ab")),
    done(reasoning("s", blob="E"), 1),
    event("weird"),
    event("keepalive"),
    terminal(),
    terminal("failed"),
    terminal("incomplete"),
    terminal(output=[message("ab"), reasoning("st"), call('{"x":1}')]),
    {"error": {}},
]


@given(st.lists(st.sampled_from(ANY_ORDER), max_size=12))
def test_whatever_comes_makes_events_that_belong_to_blocks_that_are_open(items: list[Json]) -> None:
    opened: set[Any] = set()
    closed: set[Any] = set()
    stage = ResponsesNormalizer()
    try:
        made = [*stage.receive([frame(item) for item in items]), *stage.receive_eof()]
    except UpstreamError as error:
        made = [*error.made]
    for one in made:
        index = getattr(one, "index", None)
        if isinstance(one, BlockStart):
            assert index == len(opened)
            opened.add(index)
        elif index is not None:
            assert index in opened - closed
        if isinstance(one, BlockStop):
            closed.add(index)
    assert sum(isinstance(one, MessageStart) for one in made) <= 1
    assert sum(isinstance(one, MessageStop | StreamError) for one in made) <= 1
