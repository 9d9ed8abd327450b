"""The comparison with other translators: its strict readers, its verdicts, its upstream, its page. None is run here."""

import json
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from benchmarks.compared import page, read_chat, read_messages, read_responses
from benchmarks.compared.__main__ import OTHERS, OURS, models, translator
from benchmarks.compared.answer import Answer, Block
from benchmarks.compared.cases import FIXTURES, GOLDENS, PAIRS, READERS, Case, cases_of
from benchmarks.compared.environment import REQUIREMENTS
from benchmarks.compared.run import Process, read_reply
from benchmarks.compared.upstream import Upstream, frames_of, media_type
from benchmarks.compared.verdict import MEANINGS, UNUSABLE, verdict
from tests.support import DONE, call, chunk, finish, reasoning, sse, text, usage

START = {"type": "message_start", "message": {"usage": {"input_tokens": 3, "output_tokens": 0}}}
END = {"type": "message_stop"}
CREATED = {"type": "response.created", "response": {}}


def named(*events: dict[str, Any]) -> bytes:
    """A stream of named events."""
    return b"".join(b"event: %b\ndata: %b\n\n" % (one["type"].encode(), json.dumps(one).encode()) for one in events)


def opened(index: int, kind: str = "text", **members: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **members}}


def tool(index: int, name: str = "f") -> dict[str, Any]:
    return opened(index, "tool_use", id=f"id{index}", name=name, input={})


def delta(index: int, kind: str, **said: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **said}}


def json_delta(index: int, piece: str) -> dict[str, Any]:
    return delta(index, "input_json_delta", partial_json=piece)


def closed(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def stopped(reason: str = "end_turn") -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"input_tokens": 3, "output_tokens": 5}}


def added(index: int, kind: str, **members: Any) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": index, "item": {"type": kind, **members}}


def done(index: int, kind: str, **members: Any) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": index, "item": {"type": kind, **members}}


def arguments(index: int, piece: str) -> dict[str, Any]:
    return {"type": "response.function_call_arguments.delta", "output_index": index, "delta": piece}


def completed(*output: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.completed", "response": {"id": "r", "output": [*output]}}


CALL = {"call_id": "a", "name": "f", "arguments": '{"x":1}'}


# The readers


def test_a_messages_stream_is_read_into_blocks_stop_and_tokens() -> None:
    answer = read_messages.read(
        named(
            START,
            opened(0),
            delta(0, "text_delta", text="Hi"),
            closed(0),
            tool(1),
            json_delta(1, '{"x":'),
            json_delta(1, "1}"),
            closed(1),
            stopped("tool_use"),
            END,
        )
    )
    assert answer.order == ["text", "call f"]
    assert answer.runnable[0].arguments == {"x": 1}
    assert (answer.stop, answer.ended, answer.tokens, answer.faults) == ("tool", True, (3, 5), [])


@pytest.mark.parametrize(
    ("events", "fault"),
    [
        ([START, opened(0), tool(1)], "two blocks open"),
        ([START, tool(0), closed(0), json_delta(0, "1")], "a delta to a closed block"),
        ([START, json_delta(0, "1")], "a delta to no block"),
        ([START, opened(0), json_delta(0, "1")], "a delta that does not fit its block"),
        ([START, opened(1)], "an index out of turn"),
        ([START, opened(0), closed(0), opened(0)], "an index used twice"),
        ([START, closed(0)], "a stop of no open block"),
        ([START, opened(0), stopped()], "an open block at the end"),
        ([START, END], "an end without a stop reason"),
        ([START, START], "a second start"),
        ([START, opened(0, "tool_use")], "a call without name or id"),
        ([opened(0)], "an event before the start"),
        ([START, stopped(), END, stopped()], "an event behind the end"),
    ],
)
def test_the_messages_reader_sees_a_breach(events: list[dict[str, Any]], fault: str) -> None:
    assert fault in read_messages.read(named(*events)).faults


def test_the_messages_reader_wants_names_and_json() -> None:
    assert read_messages.read(sse(START)).faults == ["an event without its name"]
    assert read_messages.read(sse(DONE)).faults == ["Chat's terminal"]
    assert read_messages.read(sse("[1]")).faults == ["a frame that is no JSON object"]


def test_a_chat_stream_is_read_and_its_calls_are_whole_at_the_finish() -> None:
    items = [reasoning("Hm"), text("Hi"), call(0, "a", "f", '{"x"'), call(0, arguments=":1}"), finish("tool_calls")]
    answer = read_chat.read(sse(*items, usage(), DONE))
    assert answer.order == ["reasoning", "text", "call f"]
    assert [made.arguments for made in answer.runnable] == [{"x": 1}]
    assert (answer.stop, answer.ended, answer.tokens, answer.faults) == ("tool", True, (10, 5), [])


def test_a_chat_error_takes_a_finish_back() -> None:
    answer = read_chat.read(sse(call(0, "a", "f", "{}"), {"error": {"message": "no"}}))
    assert (answer.error, answer.runnable) == ("no", [])


@pytest.mark.parametrize(
    ("items", "fault"),
    [
        ([call(1, "a", "f", "{}")], "an index out of turn"),
        ([call(None, "a", "f", "{}")], "a fragment without an index"),
        ([call(0, arguments="{}")], "a call without name or id"),
        ([call(0, "a", "f"), call(0, "a", "f", "{}")], "a name given twice"),
        ([finish(), finish()], "a second finish"),
        ([finish(), text("more")], "content behind the finish"),
        ([text("x"), DONE], "an end without a finish"),
        ([finish(), DONE, text("x")], "a chunk behind the end"),
        ([{"choices": []}], "a chunk without id or choices"),
    ],
)
def test_the_chat_reader_sees_a_breach(items: list[Any], fault: str) -> None:
    assert fault in read_chat.read(sse(*items)).faults


def test_a_refusal_in_a_chat_or_responses_stream_is_the_reason_it_stops() -> None:
    part = {"type": "response.content_part.added", "output_index": 0, "content_index": 0}
    said = {"type": "response.refusal.delta", "output_index": 0, "content_index": 0, "delta": "no"}
    message = done(0, "message", content=[{"type": "refusal", "refusal": "no"}])
    events = named(CREATED, added(0, "message"), part, said, message, completed())
    for answer in (read_chat.read(sse(chunk({"refusal": "no"}), finish(), DONE)), read_responses.read(events)):
        assert (answer.said("text"), answer.stop, answer.faults) == ("no", "refusal", [])


def test_a_responses_stream_is_read_into_items() -> None:
    whole = {"type": "function_call", **CALL}
    answer = read_responses.read(
        named(
            CREATED,
            added(0, "reasoning"),
            {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "Hm"},
            done(0, "reasoning", summary=[{"type": "summary_text", "text": "Hm"}]),
            added(1, "function_call", call_id="a", name="f"),
            arguments(1, '{"x":1}'),
            done(1, "function_call", **CALL),
            completed(whole),
        )
    )
    assert answer.order == ["reasoning", "call f"]
    assert (answer.stop, answer.ended, answer.faults) == ("tool", True, [])


def test_an_item_without_deltas_is_read_from_its_end_and_an_incomplete_call_is_not_whole() -> None:
    answer = read_responses.read(
        named(CREATED, added(0, "function_call", **CALL), done(0, "function_call", **CALL, status="incomplete"))
    )
    assert (answer.calls[0].arguments, answer.runnable) == ({"x": 1}, [])


@pytest.mark.parametrize(
    ("events", "fault"),
    [
        ([added(0, "message")], "an event before the start"),
        ([CREATED, arguments(0, "1")], "a delta to no item"),
        ([CREATED, added(0, "message"), done(0, "message"), arguments(0, "1")], "a delta to a closed item"),
        ([CREATED, added(0, "message"), arguments(0, "1")], "a delta that does not fit its item"),
        ([CREATED, added(0, "message"), added(0, "message")], "an index used twice"),
        ([CREATED, done(0, "message")], "an item done that is not open"),
        ([CREATED, added(0, "message"), completed()], "an open item at the end"),
        ([CREATED, completed(), CREATED], "an event behind the end"),
        ([CREATED, {"type": "response.completed"}], "an end without the response"),
        ([{**CREATED, "sequence_number": 1}, {**CREATED, "sequence_number": 1}], "sequence numbers that do not rise"),
        ([CREATED, added(0, "function_call")], "a call without name or id"),
        (
            [CREATED, added(0, "message"), {"type": "response.output_text.delta", "output_index": 0, "delta": "x"}],
            "a delta to no part",
        ),
        (
            [CREATED, added(0, "function_call", **CALL), arguments(0, "{}"), done(0, "function_call", **CALL)],
            "an item done with other content than its deltas",
        ),
        (
            [
                CREATED,
                added(0, "function_call", **CALL),
                done(0, "function_call", **CALL),
                completed({"type": "message"}),
            ],
            "an end with other content than its items",
        ),
    ],
)
def test_the_responses_reader_sees_a_breach(events: list[dict[str, Any]], fault: str) -> None:
    assert fault in read_responses.read(named(*events)).faults


@pytest.mark.parametrize("dialect", GOLDENS)
def test_every_golden_is_free_of_breaches_and_ends_as_its_fixture_says(dialect: str) -> None:
    for case in cases_of(dialect):
        assert case.wanted.faults == [], case.name
        assert case.wanted.ended == (case.ending == "complete"), case.name
        assert bool(case.wanted.error) == (case.ending != "complete"), case.name


# The verdicts


def made(*blocks: Block, stop: str = "end", **members: Any) -> Answer:
    return Answer([*blocks], stop=stop, **{"ended": True, **members})


def a_call(said: str, closed: bool = True, name: str = "f") -> Block:
    return Block("call", said, name, "a", closed)


HI, HM = Block("text", "Hi"), Block("reasoning", "Hm")


@pytest.mark.parametrize(
    ("wanted", "got", "words"),
    [
        (made(HI), made(HI), []),
        (made(HI), made(HI, error="no", ended=False), ["fails"]),
        (made(HI, error="cut", ended=False), made(HI), ["false end"]),
        (made(HI, error="cut", ended=False), made(HI, error="other", ended=False), []),
        (made(HI), made(HI, ended=False), ["no end"]),
        (made(HI), made(HI, faults=["two blocks open"]), ["torn"]),
        (made(HI, HM), made(HI), ["lost reasoning"]),
        (made(HI), made(Block("text", "Hi </x>")), ["leaked text"]),
        (made(HI, Block("text", "you")), made(Block("text", "Hi\n\nyou")), []),
        (made(Block("text", "a b")), made(Block("text", "ab")), ["lost text"]),
        (made(Block("text", "Hi")), made(Block("text", "Ho")), ["lost text", "leaked text"]),
        (made(a_call('{"x":1}')), made(a_call('{"x": 1}')), []),
        (made(a_call('{"x":1}')), made(), ["lost call"]),
        (made(a_call('{"x":1}')), made(a_call('{"x":1}', closed=False)), ["lost call"]),
        (made(a_call('{"x":1}')), made(a_call('{"x":2}')), ["broken call"]),
        (made(a_call("{}")), made(a_call("{}"), a_call("{}", name="g")), ["extra call"]),
        (made(a_call('{"x', closed=False), error="cut", ended=False), made(a_call('{"x'), error="e"), ["broken call"]),
        (made(a_call('{"x'), stop="limit"), made(a_call('{"x'), stop="limit"), []),
        (made(a_call('{"x'), stop="limit"), made(stop="limit"), []),
        (made(a_call('{"input":"ls"}')), made(Block("call", "ls", "f", "a", True, freeform=True)), []),
        (made(a_call("{}"), stop="tool"), made(a_call("{}"), stop="end"), ["stop"]),
        (made(HI, HM), made(HM, HI), ["order"]),
        (made(HI, tokens=(1, 2)), made(HI, tokens=(1, 3)), ["tokens"]),
        (made(HI, tokens=(0, 0)), made(HI), []),
    ],
)
def test_a_verdict_names_what_is_wrong(wanted: Answer, got: Answer, words: list[str]) -> None:
    assert verdict(wanted, got, "messages") == words


def test_a_chat_client_cannot_be_told_the_order_of_text_and_calls() -> None:
    wanted, got = made(HI, a_call("{}"), a_call("[]", name="g")), made(a_call("{}"), HI, a_call("[]", name="g"))
    assert verdict(wanted, got, "chat") == verdict(wanted, wanted, "chat")


def test_what_the_upstream_sent_is_not_leaked() -> None:
    more = made(HI, Block("text", " late"))
    assert verdict(made(HI), more, "messages") == ["leaked text"]
    assert verdict(made(HI), more, "messages", sent=made(Block("text", "Hi late"))) == []


def test_the_words_are_all_explained() -> None:
    assert {*MEANINGS} > UNUSABLE


# The run


def test_a_status_or_an_exception_is_an_answers_error() -> None:
    body = sse(call(0, "a", "f", "{}"), finish("tool_calls")).decode()
    refused = read_reply({"status": 502, "body": "no", "raised": ""}, "chat")
    raised = read_reply({"status": 200, "body": body, "raised": "E: x"}, "chat")
    assert (refused.error, refused.ended) == ("HTTP 502: no", False)
    assert (raised.error, raised.runnable) == ("E: x", [])


def test_the_upstream_replays_what_the_model_or_the_key_names_and_nothing_else() -> None:
    recording = sse(text("Hi"), DONE)
    with Upstream({"chat-000": ("chat", recording)}) as upstream, httpx.Client(base_url=upstream.origin) as client:
        by_model = client.post("/v1/chat/completions", json={"model": "chat-000"})
        by_key = client.post("/v1/chat/completions", json={"model": "m"}, headers={"x-api-key": "chat-000"})
        elsewhere = client.post("/v1/messages", json={"model": "chat-000"})
        unknown = client.post("/v1/chat/completions", json={"model": "m"})
        listed = client.get("/v1/models")
    assert by_model.content == by_key.content == recording
    assert by_model.headers["content-type"] == "text/event-stream"
    assert (elsewhere.status_code, unknown.status_code, listed.json()["data"]) == (404, 404, [])


def test_a_recording_is_cut_into_frames_and_served_as_what_it_is() -> None:
    assert frames_of(b"data: 1\n\ndata: 2\r\n\r\ndata: 3") == [b"data: 1\n\n", b"data: 2\r\n\r\n", b"data: 3"]
    assert [media_type(body) for body in (b"data: 1\n\n", b' {"a":1}', b"<html>")] == [
        "text/event-stream",
        "application/json",
        "text/html",
    ]


def test_ours_answers_a_job_in_a_process_of_its_own(tmp_path: Path) -> None:
    model, case = next((model, case) for model, case in models().items() if case.name == "two-calls-alternate")
    process = Process(Path(sys.executable), OURS, tmp_path)
    with Upstream({model: (case.dialect, case.recording)}) as upstream:
        request = case.request("messages", model)
        job = {"upstream": "chat", "client": "messages", "model": model, "origin": upstream.origin, "request": request}
        reply = process.ask(job)
    process.close()
    assert verdict(case.wanted, read_reply(reply, "messages"), "messages") == []


def test_a_process_that_cannot_serve_is_an_error_and_no_verdict(tmp_path: Path) -> None:
    process = Process(Path(sys.executable), "nobody", tmp_path)
    with pytest.raises((RuntimeError, BrokenPipeError)):
        process.ask({})
    process.close()


def test_every_translator_says_which_pairs_it_offers() -> None:
    assert translator(OURS).pairs == PAIRS
    pinned = REQUIREMENTS.read_text()
    for module in OTHERS:
        one = translator(module)
        assert {*one.pairs} <= {*PAIRS}
        assert f"\n{one.package}==" in pinned


# The page


def a_case(name: str, wanted: Answer, sent: Answer, recorded: tuple[str, ...] = ()) -> Case:
    return Case("chat", name, f"Shows {name}.", "complete", recorded, b"", wanted, sent)


def test_the_page_counts_the_words_and_names_where_ours_is_not_best() -> None:
    right = a_case("right", made(HI), made(HI), ("text",))
    strict = a_case("strict", made(HI, error="no", ended=False), made(HI))
    ours, other = translator(OURS), translator("litellm")
    pair = ("chat", "messages")
    results = page.Results(
        [
            page.Result(pair, right, ours.name, ("tokens",), made(HI)),
            page.Result(pair, strict, ours.name, (), made(HI)),
            page.Result(pair, right, other.name, (), made(HI)),
            page.Result(pair, strict, other.name, ("false end",), made(HI, faults=["two blocks open"])),
        ]
    )
    costs = {ours.name: {"messages": 50.0}, other.name: {"messages": 100.0}}
    made_page = page.page(results, costs, [ours, other], {"litellm": "1.0"}, frames=10)
    assert "| Shows strict. (strict) | ok | false end |" in made_page
    assert "| Chat to Messages | streamweir | 2 | 1 | 0 |  | 1 |" in made_page
    assert "| Chat to Messages | litellm | 2 | 1 | 1 | 1 |  |" in made_page
    assert "- Chat to Messages, right: tokens" in made_page
    assert "- Chat, strict: Shows strict." in made_page
    assert "- Chat, right: `text`" in made_page
    assert "| litellm | 100 µs, 2.00 × ours |" in made_page
    assert "| litellm | two blocks open: 1 |" in made_page
    assert "false end [two blocks open]" in page.printed(results, costs)


def test_the_committed_page_has_every_case_of_today() -> None:
    said = (FIXTURES.parent / "docs" / "compared.md").read_text()
    missing = [case.name for dialect in READERS for case in cases_of(dialect) if f"({case.name}) |" not in said]
    assert missing == [], "run `make compared`"
