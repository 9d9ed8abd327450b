"""Routes over a third dialect: a request goes up, an answer comes down; each hop knows only what lies next to it."""

import io
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from pipeline.cli import main
from stages.dialects.responses import DIALECT as RESPONSES
from stages.recipe import default_chain
from tests.exchange import ASKED, answered_over, opened_over, sent
from tests.lawful import check_law
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
    response,
    terminal,
)
from tests.support import events_of

WAY = ("chat", "responses")
UP = ("--from", "messages", "--via", "chat", "--to", "responses")
DOWN = ("--from", "responses", "--via", "chat", "--to", "messages")
ITEMS = [
    reasoning("Why", id="rs1", blob="BLOB1"),
    reasoning("So", "then", id="rs2", blob="BLOB2"),
    reasoning(id="rs3", blob="BLOB3"),
    call('{"x": 1.10}', id="fc1"),
]
CALL = ITEMS[-1]["call_id"]

Run = Callable[..., tuple[int, bytes]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Run:
    """The command line in this process: exit code and stdout."""

    def command(*argv: str, stdin: bytes) -> tuple[int, bytes]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main(argv, recipe=default_chain)
        return code, capsysbinary.readouterr().out

    return command


def sse(*events: Json) -> bytes:
    """A Responses stream."""
    return b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in events)


def streamed(*items: Json) -> bytes:
    """A Responses stream that tells each item at one stroke."""
    told = [one for place, item in enumerate(items) for one in (added(item, place), done(item, place))]
    return sse(created(), *told, terminal(output=items))


def whole(*items: Json) -> bytes:
    return json.dumps(response(output=items)).encode()


@pytest.mark.parametrize("stream", [True, False])
def test_opaque_reasoning_comes_back_to_its_provider_over_both_hops(stream: bool) -> None:
    got = answered_over(opened_over(WAY, stream), streamed(*ITEMS) if stream else whole(*ITEMS))
    result = {"type": "tool_result", "tool_use_id": CALL, "content": "18"}
    turns = [
        *ASKED["messages"],
        {"role": "assistant", "content": got.message["content"]},
        {"role": "user", "content": [result]},
    ]
    asked = sent(opened_over(WAY, stream, messages=turns)[-1])["input"]
    replayed = [item for item in asked if item.get("type") == "reasoning"]
    assert [(item["id"], item["encrypted_content"]) for item in replayed] == [
        ("rs1", "BLOB1"),
        ("rs2", "BLOB2"),
        ("rs3", "BLOB3"),
    ]
    assert [part["text"] for item in replayed for part in item["summary"]] == ["Why", "So", "then"]


def test_an_edited_text_is_noticed_over_both_hops() -> None:
    content = answered_over(opened_over(WAY, False), whole(*ITEMS[:1], message("hi"))).message["content"]
    content[0]["thinking"] += "!"
    turns = [*ASKED["messages"], {"role": "assistant", "content": content}, *ASKED["messages"]]
    asked = sent(opened_over(WAY, False, messages=turns)[-1])["input"]
    assert [item for item in asked if item.get("type") == "reasoning"] == []


def test_what_stands_in_the_middle_is_a_chat_stream() -> None:
    inner = opened_over(WAY)[-1]
    chain: Any = inner.reply(200, {}).chain
    out = b"".join([*chain.receive([streamed(*ITEMS, message("hi"))]), *chain.receive_eof()])
    check_law("chat", out)
    chunks = [json.loads(line[6:]) for line in out.splitlines() if line.startswith(b"data: {")]
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert out.endswith(b"data: [DONE]\n\n")
    assert [chunk["usage"] for chunk in chunks if "usage" in chunk] == []  # the upstream counted nothing


def test_a_call_that_was_cut_is_left_open_at_both_joints() -> None:
    item = call("", id="fc1")
    out = answered_over(opened_over(WAY), sse(created(), added(item), arguments('{"x"'))).body
    kinds = [one["type"] for one in events_of(out)]
    assert kinds[-2:] == ["content_block_delta", "error"]
    assert "content_block_stop" not in kinds


def test_only_the_last_hop_restores_the_clients_tools(run: Run, tmp_path: Any) -> None:
    """The client's names mean nothing to the hop before."""
    namespace = {"type": "namespace", "name": "ns", "tools": [{"type": "custom", "name": "patch"}]}
    request = {"model": "m", "input": "hi", "tools": [namespace]}
    (tmp_path / "request").write_text(json.dumps(request))
    assert RESPONSES.facts(request).map.tools["ns__patch"].namespace == "ns"
    chat = {
        "index": 0,
        "delta": {
            "tool_calls": [
                {
                    "index": 0,
                    "id": "c",
                    "type": "function",
                    "function": {"name": "ns__patch", "arguments": '{"input":"x"}'},
                }
            ]
        },
        "finish_reason": "tool_calls",
    }
    recorded = b"data: " + json.dumps({"id": "c1", "model": "m", "choices": [chat]}).encode() + b"\n\ndata: [DONE]\n\n"
    argv = ("convert", "--from", "chat", "--to", "responses", "--request", str(tmp_path / "request"))
    items = []
    for way in (("--via", "chat"), ()):
        code, out = run(*argv, *way, stdin=recorded)
        assert code == 0
        last = json.loads(out.strip().splitlines()[-1].removeprefix(b"data: "))
        items.append(
            [(item["type"], item["namespace"], item["name"], item["input"]) for item in last["response"]["output"]]
        )
    assert items[0] == items[1] == [("custom_tool_call", "ns", "patch", "x")]


# The command line


def test_a_stream_over_a_third_dialect_has_one_ledger_of_both_hops(run: Run, tmp_path: Any) -> None:
    note = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 2}
    said = message("Hi")
    said["content"][0]["annotations"] = [note, {"type": "file_path"}]
    search = {"type": "web_search_call", "id": "ws", "status": "completed"}
    code, out = run("convert", *DOWN, "--ledger", str(tmp_path / "ledger"), stdin=streamed(search, said))
    assert (code, list(events_of(out))[-1]["type"]) == (0, "message_stop")
    losses = [(entry["stage"], entry["path"]) for entry in json.loads((tmp_path / "ledger").read_bytes())]
    assert losses == [
        ("ChatEncoder", "ServerBlock[0] web_search_call"),
        ("ChatEncoder", "annotation"),
        ("MessagesEncoder", "annotation"),
        ("MessagesEncoder", "usage"),
    ]


@pytest.mark.parametrize("chunk", ["1", "7", "frame"])
def test_a_stream_over_a_third_dialect_is_the_same_at_every_cut(run: Run, chunk: str) -> None:
    recorded = streamed(*ITEMS, message("hi"))
    cut, uncut = (
        run("convert", *DOWN, "--envelope", "off", *more, stdin=recorded)[1] for more in (("--chunk", chunk), ())
    )
    assert cut == uncut


@pytest.mark.parametrize(
    ("recorded", "code"),
    [
        (sse(created()), 3),
        (sse(created(), event("error", message="boom")), 4),
        (streamed(custom("x")), 0),
    ],
)
def test_how_the_answer_ended_is_known_over_both_hops(run: Run, recorded: bytes, code: int) -> None:
    assert run("convert", *DOWN, stdin=recorded)[0] == code


def test_a_whole_answer_over_a_third_dialect_is_whole(run: Run) -> None:
    code, out = run("answer", *DOWN, "--envelope", "off", stdin=whole(*ITEMS[:2], message("hi"), ITEMS[3]))
    assert code == 0
    assert b'"input":{"x": 1.10}' in out
    assert [(block["type"], block.get("thinking", block.get("text"))) for block in json.loads(out)["content"]] == [
        ("thinking", "Why"),
        ("thinking", "So\n\nthen"),
        ("text", "hi"),
        ("tool_use", None),
    ]


def test_a_request_goes_up_over_a_third_dialect(run: Run, tmp_path: Any) -> None:
    asked = json.dumps({**ASKED, "top_k": 7, "stop_sequences": ["x"], "stream": True}).encode()
    code, out = run("request", *UP, "--ledger", str(tmp_path / "ledger"), stdin=asked)
    assert code == 0
    body = json.loads(out)
    assert (body["model"], body["max_output_tokens"], body["stream"]) == ("m", 100, True)
    losses = [entry["path"] for entry in json.loads((tmp_path / "ledger").read_bytes())]
    assert losses == ["top_k", "stop"]


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        (
            {"messages": [{"role": "user", "content": [{"type": "document", "source": {"type": "url", "url": "u"}}]}]},
            "only by its bytes",
        ),
    ],
    ids=["the first hop", "the second hop"],
)
def test_a_request_that_is_refused_on_the_way_is_refused_in_the_clients_dialect(
    run: Run, members: Json, told: str
) -> None:
    way = ("--from", "messages", "--via", "responses", "--to", "chat")
    code, out = run("request", *way, stdin=json.dumps({**ASKED, **members}).encode())
    body = json.loads(out)
    assert (code, body["type"], body["error"]["type"]) == (4, "error", "invalid_request_error")
    assert told in body["error"]["message"]


def test_each_job_of_requests_may_name_a_dialect_on_the_way(run: Run, tmp_path: Any) -> None:
    (tmp_path / "in").write_text(json.dumps({**ASKED, "top_k": 7, "stop_sequences": ["x"]}))
    files = {"input": str(tmp_path / "in"), "output": str(tmp_path / "out")}
    job = {**files, "from": "messages", "via": "chat", "to": "responses"}
    (tmp_path / "jobs").write_text(json.dumps(job))
    code, printed = run("request", "--jobs", str(tmp_path / "jobs"), stdin=b"")
    row = json.loads(printed)
    assert (code, row["status"], [entry["path"] for entry in row["ledger"]]) == (0, 200, ["top_k", "stop"])
    assert "input" in json.loads((tmp_path / "out").read_bytes())
