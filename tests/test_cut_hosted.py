"""A stream that is cut while a tool of the provider's runs: its item ends before the failure; what a client runs stays
open."""

import json
from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from operator import or_
from typing import Any

import pytest

from pipeline.dialect import dialect
from pipeline.errors import ErrorKind
from pipeline.events import BlockStart, ServerBlock, StreamError
from stages.dialects.responses.stops import CUT
from stages.recipe import default_chain
from tests import messages_stream as ms
from tests import responses_stream as rs
from tests.lawful import check_law

Json = dict[str, Any]
WHERE: Json = {"output_index": 0, "item_id": "i_0"}
SPOKEN: dict[str, Json] = {"message": {"role": "assistant", "content": []}, "reasoning": {"summary": []}}
OPEN = [
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
    "computer_call",
    "odd",
]
"""What a client may run, and what nobody knows."""
SEARCHING = ["response.web_search_call.in_progress", "response.web_search_call.searching"]


def item_of(kind: str) -> Json:
    beside = {"arguments": ""} if kind == "function_call" else {"input": ""} if kind == "custom_tool_call" else {}
    named = {"call_id": "c", "name": "f", **beside} if kind in OPEN else {}
    return {"id": "i_0", "type": kind, "status": "in_progress", **named, **SPOKEN.get(kind, {})}


def numbered(*events: Json) -> bytes:
    told = [{**event, "sequence_number": number} for number, event in enumerate(events)]
    return b"".join(b"event: %s\ndata: %s\n\n" % (one["type"].encode(), json.dumps(one).encode()) for one in told)


def begun() -> Json:
    beside: Json = {"created_at": 1, "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    return rs.event("response.created", response=rs.response("in_progress", **beside))


def cut_in(kind: str) -> bytes:
    """A stream that ends while an item of that type is open."""
    steps = [rs.event(step, **WHERE) for step in SEARCHING] if kind == "web_search_call" else []
    return numbered(begun(), rs.added(item_of(kind)), *steps)


def got(*reads: bytes, way: Sequence[str] = ("responses", "responses")) -> bytes:
    """What leaves at the end of a way from dialect to dialect, when these reads came and then the end."""
    hops = (default_chain(dialect(upstream), dialect(client)) for upstream, client in pairwise(way))
    chain = reduce(or_, hops)
    return b"".join([*(piece for read in reads for piece in chain.receive([read])), *chain.receive_eof()])


def events_of(body: bytes) -> list[Json]:
    return [json.loads(line[6:]) for line in body.splitlines() if line.startswith(b"data: {")]


@pytest.mark.parametrize("kind", [*CUT])
def test_an_item_that_no_client_runs_ends_before_the_failure(kind: str) -> None:
    raw = cut_in(kind)
    told = got(raw)
    assert told.startswith(raw)
    check_law("responses", told)
    *_, done, failed = events_of(told)
    assert done["type"] == "response.output_item.done"
    assert done["item"] == {**item_of(kind), "status": CUT[kind]}
    assert failed["type"] == "response.failed"
    assert failed["response"]["output"] == [done["item"]]


@pytest.mark.parametrize("kind", OPEN)
def test_what_a_client_may_run_stays_open(kind: str) -> None:
    raw = cut_in(kind)
    told = got(raw)
    check_law("responses", told)
    assert [event["type"] for event in events_of(told)][-2:] == ["response.output_item.added", "response.failed"]


def test_an_item_without_a_status_is_given_none() -> None:
    item = {"id": "i_0", "type": "mcp_list_tools", "server_label": "s", "tools": []}
    told = got(numbered(begun(), rs.added(item)))
    assert events_of(told)[-2]["item"] == item


@pytest.mark.parametrize("size", [1, 7, 64])
def test_every_cut_says_the_same(size: int) -> None:
    raw = cut_in("web_search_call")
    reads = [raw[at : at + size] for at in range(0, len(raw), size)]
    assert got(*reads) == got(raw)


@pytest.mark.parametrize("end", range(1, 5))
@pytest.mark.parametrize("middle", [(), ("responses",), ("messages",), ("chat",)])
def test_over_every_way_a_stream_that_is_cut_behind_any_event_is_lawful(middle: tuple[str, ...], end: int) -> None:
    frames = cut_in("web_search_call").split(b"\n\n")[:end]
    told = got(b"".join(frame + b"\n\n" for frame in frames), way=("responses", *middle, "responses"))
    check_law("responses", told)
    assert events_of(told)[-1]["type"] == "response.failed"


def test_a_search_of_another_api_that_was_cut_ends_too() -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    raw = ms.sse([ms.begin(), ms.start(search)])
    told = got(raw, way=("messages", "responses"))
    check_law("responses", told)


def test_an_item_that_is_being_told_when_an_error_comes_ends_before_it() -> None:
    search = BlockStart(0, ServerBlock("messages", {}, "q"))
    told = rs.told(rs.START, search, StreamError(ErrorKind.CUT, "cut"))
    assert told[-2]["item"]["status"] == "incomplete"
    assert told[-1]["response"]["output"] == [told[-2]["item"]]
