"""A Chat client over a Responses upstream: requests, streams, whole answers and errors cross the whole route."""

import json
from typing import Any

import pytest

from pipeline.errors import ErrorKind
from pipeline.events import StreamError
from pipeline.outcome import Verdict
from pipeline.route import Exchange, UpstreamRequest
from pipeline.stage import Stage
from tests.exchange import Got, answered, route, sent
from tests.responses_stream import (
    Json,
    added,
    arguments,
    call,
    created,
    custom,
    done,
    event,
    message,
    reasoning,
    refusal,
    response,
    summary,
    terminal,
    text,
)

USER: Json = {"role": "user", "content": "hello"}
COUNTS: Json = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 15,
}
WANTED: Json = {"stream_options": {"include_usage": True}}


def opened(stream: bool = True, **members: Any) -> Exchange:
    """An exchange begun by a Chat client."""
    body = {"model": "m", "messages": [USER], "stream": stream, **members}
    return route("chat", "responses").open(json.dumps(body).encode())


def sse(*events: Json, end: bytes = b"\n", names: bool = True) -> bytes:
    """A Responses stream."""
    rows = [[b"event: " + one["type"].encode(), b"data: " + json.dumps(one).encode(), b""] for one in events]
    return b"".join(end.join([*(row if names else row[1:]), b""]) for row in rows)


def chunks(got: Got) -> list[Any]:
    """The payloads of the stream that the client got."""
    assert got.is_stream
    lines = [line.removeprefix(b"data: ") for line in got.body.split(b"\n\n")[:-1] if not line.startswith(b":")]
    return ["[DONE]" if line == b"[DONE]" else json.loads(line) for line in lines]


def turn(*events: Json, **members: Any) -> list[Any]:
    """The payloads of the stream that a client gets of these events."""
    return chunks(answered(opened(**members), sse(*events)))


def deltas(got: list[Any]) -> list[Json]:
    """What is said between the role and the finish."""
    return [chunk["choices"][0]["delta"] for chunk in got if chunk != "[DONE]" and chunk.get("choices")][1:-1]


def whole(body: Json, **members: Any) -> Json:
    """The body that a client gets of a whole answer."""
    got = answered(opened(stream=False, **members), json.dumps(body).encode())
    assert (got.status, got.is_stream) == (200, False)
    answer: Json = json.loads(got.body)
    return answer


def finish(got: list[Any]) -> Any:
    return [chunk["choices"][0]["finish_reason"] for chunk in got if chunk != "[DONE]" and chunk.get("choices")][-1]


# Requests


@pytest.mark.parametrize(
    "echoed",
    [
        {"reasoning_content": "hm"},
        {"reasoning": "hm"},
        {"reasoning_text": "hm"},
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "another provider's"}]},
    ],
)
def test_echoed_reasoning_is_dropped_and_not_rejected(echoed: Json) -> None:
    """behaviours.md C4."""
    said = {"role": "assistant", "content": "hi", **echoed}
    exchange = opened(messages=[USER, said, USER])
    items = sent(exchange)["input"]
    assert [(item["type"], item["role"]) for item in items] == [
        ("message", role) for role in ("user", "assistant", "user")
    ]
    assert "hm" not in json.dumps(sent(exchange))
    assert [(entry["path"], entry["action"]) for entry in exchange.ledger] == [
        (f"messages[1].{next(iter(echoed))}" + ("[0]" if "reasoning_details" in echoed else ""), "dropped")
    ]


@pytest.mark.parametrize(
    ("asked", "reasoning"),
    [
        ({"reasoning_effort": "low"}, {"effort": "low", "summary": "auto"}),
        ({"reasoning_effort": "high"}, {"effort": "high", "summary": "auto"}),
        ({"reasoning_effort": "none"}, {"effort": "none"}),
        ({}, None),
    ],
)
def test_a_summary_is_asked_for_with_every_effort_that_is_not_off(asked: Json, reasoning: Json | None) -> None:
    """behaviours.md C5."""
    assert sent(opened(**asked)).get("reasoning") == reasoning


def test_counts_are_told_only_to_a_client_that_asks_and_the_upstream_is_not_told_of_it() -> None:
    """behaviours.md C8."""
    exchange = opened(**WANTED)
    assert "stream_options" not in sent(exchange)
    events = (created(), text("hi"), terminal(output=[message("hi")], usage=COUNTS))
    asked, unasked, refused = (
        turn(*events, **members) for members in (WANTED, {}, {"stream_options": {"include_usage": False}})
    )
    assert asked[-2]["usage"]["prompt_tokens_details"] == {"cached_tokens": 4, "cache_write_tokens": 0}
    assert (asked[-2]["choices"], asked[-1]) == ([], "[DONE]")
    for got in (unasked, refused):
        assert [chunk for chunk in got if "usage" in chunk] == []
        assert got[-1] == "[DONE]"
    assert whole(response(output=[message("hi")], usage=COUNTS))["usage"]["total_tokens"] == 15


def test_a_freeform_tool_comes_back_as_one() -> None:
    tool = {"type": "custom", "custom": {"name": "patch"}}
    item = {**custom("***"), "name": "patch"}
    got = turn(created(), added({**item, "input": ""}), done(item), terminal(output=[item]), tools=[tool])
    (entry,) = deltas(got)[0]["tool_calls"]
    assert (entry["type"], entry["custom"]["name"]) == ("custom", "patch")
    assert deltas(got)[1]["tool_calls"][0]["custom"] == {"input": "***"}


# Streams


def test_the_role_comes_first_and_once_also_for_a_terminal_alone() -> None:
    """behaviours.md C17."""
    for events in ([created(), created(), text("hi"), terminal()], [terminal(output=[message("hi")])]):
        got = turn(*events)
        assert [chunk["choices"][0]["delta"].get("role") for chunk in got[:-1]] == ["assistant", None, None]
        assert got[0]["choices"][0]["delta"] == {"role": "assistant", "content": None}


def test_every_chunk_has_the_same_id_which_does_not_show_the_upstreams() -> None:
    """behaviours.md C13, C27."""
    got = answered(opened(), sse(created(), text("hi"), terminal()))
    assert len({chunk["id"] for chunk in chunks(got)[:-1]}) == 1
    assert b"resp_" not in got.body


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("names", [True, False])
def test_names_and_line_ends_of_events_make_no_difference(end: bytes, names: bool) -> None:
    """behaviours.md C16."""
    events = (created(), text("hi"), terminal(output=[message("hi")]))
    got = chunks(answered(opened(), sse(*events, end=end, names=names)))
    assert deltas(got) == [{"content": "hi"}]


def test_refusals_and_both_kinds_of_reasoning_have_places_of_their_own() -> None:
    """behaviours.md C18, C19."""
    item = reasoning("A", "B")
    got = turn(created(), summary("A"), done(item), done(refusal("no"), 1), terminal(output=[item, refusal("no")]))
    assert [delta.get("reasoning_content") or delta.get("refusal") for delta in deltas(got)] == ["A", "\n\nB", "no"]


def test_calls_have_dense_indexes_in_the_order_in_which_they_come() -> None:
    """behaviours.md C20, C21: their arguments are written whole, one call behind the other."""
    one, other = ({**call("{}"), "id": f"fc{at}", "call_id": f"c{at}", "name": f"f{at}"} for at in (0, 1))
    alternate = [
        added({**one, "arguments": ""}, 3),
        added({**other, "arguments": ""}, 7),
        event("response.function_call_arguments.delta", output_index=7, item_id="fc1", delta='{"y":'),
        event("response.function_call_arguments.delta", output_index=3, item_id="fc0", delta='{"x":'),
        event("response.function_call_arguments.delta", output_index=7, item_id="fc1", delta="2}"),
        event("response.function_call_arguments.delta", output_index=3, item_id="fc0", delta="1}"),
    ]
    got = deltas(turn(created(), *alternate, terminal()))
    entries = [delta["tool_calls"][0] for delta in got]
    opens = [entry for entry in entries if "id" in entry]
    assert [(entry["index"], entry["id"], entry["function"]) for entry in opens] == [
        (at, f"c{at}", {"name": f"f{at}", "arguments": ""}) for at in (0, 1)
    ]
    for at, said in ((0, '{"x":1}'), (1, '{"y":2}')):
        assert "".join(entry["function"]["arguments"] for entry in entries if entry["index"] == at) == said


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        (terminal(output=[message("hi")]), "stop"),
        (terminal(output=[message("hi"), call("{}")]), "tool_calls"),
        (terminal("incomplete", [message("hi")], incomplete_details={"reason": "max_output_tokens"}), "length"),
        (terminal("incomplete", [message("hi")], incomplete_details={"reason": "content_filter"}), "content_filter"),
    ],
)
def test_the_finish_is_the_status(last: Json, reason: str) -> None:
    """behaviours.md C14, C24."""
    got = turn(created(), last)
    assert (finish(got), got[-1]) == (reason, "[DONE]")
    assert whole(last["response"])["choices"][0]["finish_reason"] == reason


@pytest.mark.parametrize(
    ("end", "said", "verdict"),
    [
        ([terminal("failed", error={"code": "server_error", "message": "boom"})], "boom", Verdict.FAILED),
        ([event("error", message="boom")], "boom", Verdict.FAILED),
        ([], "ended", Verdict.CUT),
    ],
)
@pytest.mark.parametrize("item", [message("hi"), call('{"x"')])
def test_a_failure_or_a_cut_is_an_error_and_never_a_finish(
    end: list[Json], said: str, verdict: Verdict, item: Json
) -> None:
    """behaviours.md C25; a call that was cut has arguments that no client takes for whole."""
    begun = [text("hi")] if item["type"] == "message" else [added({**item, "arguments": ""}), arguments('{"x"')]
    got = answered(opened(), sse(created(), *begun, *end))
    *before, last = chunks(got)
    assert got.status == 200
    assert said in last["error"]["message"]
    assert [chunk["choices"][0]["finish_reason"] for chunk in before] == [None] * len(before)
    assert got.exchange.outcome.verdict is verdict


def test_an_answer_that_comes_whole_is_a_stream_for_a_client_that_asked_for_one() -> None:
    """behaviours.md X6."""
    got = answered(opened(**WANTED), json.dumps(response(output=[message("hi")], usage=COUNTS)).encode())
    assert deltas(chunks(got)) == [{"content": "hi"}]
    assert chunks(got)[-1] == "[DONE]"


def test_a_client_is_told_that_we_live_by_comments_alone() -> None:
    reply = opened().reply(200, {})
    assert isinstance(reply.chain, Stage)
    assert reply.chain.idle() == [b": keep-alive\n\n"]
    assert reply.head is not None
    assert reply.head.headers["content-type"].startswith("text/event-stream")


# Whole answers


def test_a_whole_answer_is_one_choice() -> None:
    """behaviours.md C10, C11."""
    output = [
        reasoning("A", "B"),
        reasoning("C", id="rs2"),
        message("Hel", "lo"),
        refusal("no", id="m2"),
        call('{"x": 1}'),
    ]
    answer = whole(response(output=output))
    (choice,) = answer["choices"]
    said = choice["message"]
    assert answer["object"] == "chat.completion"
    assert (said["role"], said["content"], said["refusal"]) == ("assistant", "Hello", "no")
    assert said["reasoning_content"] == "A\n\nB\n\nC"
    assert [(one["id"], one["function"]["arguments"]) for one in said["tool_calls"]] == [
        (output[-1]["call_id"], '{"x": 1}')
    ]
    assert "usage" not in answer


def test_a_stream_is_a_whole_answer_for_a_client_that_asked_for_one() -> None:
    """behaviours.md C15."""
    exchange = opened(stream=False)
    got = answered(exchange, sse(created(), text("hi"), terminal(output=[message("hi")])))
    assert json.loads(got.body)["choices"][0]["message"]["content"] == "hi"


# Errors


@pytest.mark.parametrize(
    ("status", "told", "kind", "code"),
    [
        (400, 400, "invalid_request_error", None),
        (401, 401, "authentication_error", None),
        (403, 403, "permission_error", None),
        (404, 404, "not_found_error", None),
        (408, 408, "timeout_error", None),
        (413, 413, "invalid_request_error", "request_too_large"),
        (429, 429, "rate_limit_error", "rate_limit_exceeded"),
        (500, 500, "server_error", None),
        (503, 503, "overloaded_error", None),
        (504, 504, "timeout_error", None),
        (529, 503, "overloaded_error", None),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_an_upstreams_error_has_its_status_and_our_words(
    status: int, told: int, kind: str, code: str | None, stream: bool
) -> None:
    body = json.dumps({"error": {"message": "boom", "type": "x", "code": None}}).encode()
    headers = {"retry-after": "7", "content-type": "application/json", "content-length": "5"}
    got = answered(opened(stream), body, status=status, headers=headers)
    assert got.status == told
    error = json.loads(got.body)["error"]
    assert (error["message"], error["type"], error["param"]) == ("boom", kind, None)
    assert error["code"] in (code, "x")
    assert got.head is not None
    assert got.head.headers["retry-after"] == "7"
    assert "content-length" not in got.head.headers


def test_an_error_that_comes_alone_in_a_stream_has_a_status() -> None:
    failed = event("error", error={"code": "rate_limit_exceeded", "message": "slow down"})
    got = answered(opened(), sse(failed))
    assert (got.status, json.loads(got.body)["error"]["code"]) == (429, "rate_limit_exceeded")


def test_an_upstream_that_goes_away_is_told() -> None:
    gone = StreamError(ErrorKind.CUT, "the upstream went away", "reset", retryable=True)
    got = answered(opened(), sse(created(), text("hi")), cause=gone)
    assert chunks(got)[-1]["error"]["message"] == "the upstream went away"
    refusal_ = opened().failed(gone)
    assert (refusal_.head.status, json.loads(refusal_.body)["error"]["type"]) == (502, "server_error")


@pytest.mark.parametrize(
    ("members", "named"),
    [
        ({"messages": []}, "messages"),
        ({"model": None}, "model"),
        ({"n": 2}, "n"),
        ({"messages": [{"role": "user", "content": [{"type": "x"}]}]}, "messages[0].content[0]"),
    ],
)
def test_a_request_that_cannot_be_honoured_is_refused_by_its_own_name(members: Json, named: str) -> None:
    exchange = opened(**members)
    assert not isinstance(exchange.request, UpstreamRequest)
    error = json.loads(exchange.request.body)["error"]
    assert exchange.request.head.status == 400
    assert (error["type"], error["message"].partition(":")[0]) in [("invalid_request_error", named)] or named in error[
        "message"
    ]
