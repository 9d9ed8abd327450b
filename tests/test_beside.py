"""What stands beside an answer: carried where both dialects can say it, else an entry in the ledger, once."""

import json
from typing import Any

import pytest

from pipeline.dialect import dialect
from pipeline.ledger import Ledger
from pipeline.reply import Form
from pipeline.testing import cut
from stages.recipe import default_chain
from tests import messages_stream as ms
from tests import responses_stream as rs
from tests import support as cs

Json = dict[str, Any]
TIME = 1_700_000_000
FORMS = [(arriving, leaving) for arriving in Form for leaving in Form]
SERVED = {"service_tier": "default", "provider": "P"}

USAGE: dict[str, Json] = {
    "chat": {
        "prompt_tokens": 3,
        "completion_tokens": 2,
        "cost": 0.1,
        "prompt_tokens_details": {"cached_tokens": 1, "audio_tokens": 1},
        "completion_tokens_details": {"reasoning_tokens": 1, "accepted_prediction_tokens": 1, "audio_tokens": 0},
    },
    "responses": {
        "input_tokens": 3,
        "output_tokens": 2,
        "cost": 0.1,
        "output_tokens_details": {"reasoning_tokens": 1, "audio_tokens": 2},
    },
    "messages": {
        "input_tokens": 3,
        "output_tokens": 2,
        "service_tier": "standard",
        "server_tool_use": {"web_search_requests": 1, "web_fetch_requests": 0},
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "inference_geo": "us",
    },
}
BESIDE: dict[str, Json] = {
    "chat": {"system_fingerprint": "fp", "moderation": {"input": {"flagged": True}}, **SERVED},
    "responses": {
        "metadata": {"a": "b"},
        "conversation": {"id": "c"},
        "moderation": {"input": {"flagged": True}},
        "completed_at": 2,
        "safety_identifier": "s",
        "temperature": 1.0,
        "tools": [{"type": "web_search"}],
        **SERVED,
    },
    "messages": {"container": {"id": "c"}},
}
LOST: dict[str, set[str]] = {
    "chat": {
        *("system_fingerprint", "moderation", "choices[].native_finish_reason", "usage.cost"),
        "usage.prompt_tokens_details.audio_tokens",
        "usage.completion_tokens_details.accepted_prediction_tokens",
    },
    "responses": {
        *("metadata", "conversation", "moderation", "completed_at", "safety_identifier", "usage.cost"),
        "usage.output_tokens_details.audio_tokens",
    },
    "messages": {"container", "usage.service_tier", "usage.server_tool_use", "usage.inference_geo"},
}


def answer(upstream: str, form: Form) -> bytes:
    """An answer with all of that beside it, in every frame that may have it."""
    beside, usage = BESIDE[upstream], USAGE[upstream]
    if upstream == "chat":
        about = {"id": "c", "created": TIME, "model": "m", **beside}
        told = [cs.text("a"), cs.text("b"), cs.text("c"), cs.finish()]
        told[-1]["choices"][0]["native_finish_reason"] = "STOP"
        message = {"role": "assistant", "content": "abc"}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "native_finish_reason": "STOP"}
        if form is Form.WHOLE:
            return json.dumps({**about, "choices": [choice], "usage": usage}).encode()
        return cs.sse(*({**one, **about} for one in told), {**about, "choices": [], "usage": usage}, cs.DONE)
    if upstream == "messages":
        about = {"id": "m", "model": "m", "usage": usage, **beside}
        if form is Form.WHOLE:
            return json.dumps(ms.message({"type": "text", "text": "abc"}, stop_reason="end_turn", **about)).encode()
        block = [ms.start({"type": "text", "text": ""}), ms.text("abc"), ms.stop()]
        return ms.sse([ms.begin(**about), *block, ms.told(usage=usage), ms.END])
    about = {"id": "r", "created_at": TIME, "model": "m", **beside}
    if form is Form.WHOLE:
        return json.dumps(rs.response(output=[rs.message("abc")], usage=usage, **about)).encode()
    created = rs.event("response.created", response=rs.response("in_progress", **{**about, "service_tier": "auto"}))
    items = [rs.added({**rs.message(), "content": []}), rs.text("abc"), rs.done(rs.message("abc"))]
    return ms.sse([created, *items, rs.terminal(output=[rs.message("abc")], usage=usage, **about)])


def told(upstream: str, client: str, body: bytes, arriving: Form, leaving: Form, size: int | None = None) -> Any:
    """What a client gets, and what the ledger says."""
    ledger = Ledger()
    ways = {"arriving": arriving, "leaving": leaving, "ledger": ledger}
    chain = default_chain(dialect(upstream), dialect(client), **ways)  # type: ignore[arg-type]  # each is of its kind
    reads = [body] if size is None else cut(body, size)
    out = b"".join([*(made for read in reads for made in chain.receive([read])), *chain.receive_eof()])
    return out, [*ledger]


CROSSING = [(up, down) for up in USAGE for down in USAGE if up != down]


@pytest.mark.parametrize(("arriving", "leaving"), FORMS)
@pytest.mark.parametrize(("upstream", "client"), CROSSING)
def test_each_member_that_the_client_cannot_be_told_is_in_the_ledger(
    upstream: str, client: str, arriving: Form, leaving: Form
) -> None:
    _, ledger = told(upstream, client, answer(upstream, arriving), arriving, leaving)
    served = set(SERVED) if client == "messages" else set()
    assert {entry.path for entry in ledger} == LOST[upstream] | served
    assert {entry.action for entry in ledger} == {"dropped"}


@pytest.mark.parametrize("size", [1, 7, 64])
@pytest.mark.parametrize("upstream", USAGE)
def test_the_ledger_does_not_depend_on_the_cut(upstream: str, size: int) -> None:
    body = answer(upstream, Form.STREAM)
    client = "chat" if upstream == "messages" else "messages"
    whole = told(upstream, client, body, Form.STREAM, Form.STREAM)
    assert told(upstream, client, body, Form.STREAM, Form.STREAM, size) == whole


def test_nor_does_its_order() -> None:
    """One stage records at the end what another does at the beginning."""
    blob = [ms.start({"type": "compaction", "content": "x"}), ms.stop()]
    body = ms.sse([ms.begin(usage=USAGE["messages"]), *blob, ms.told("compaction", usage=USAGE["messages"]), ms.END])
    whole = told("messages", "chat", body, Form.STREAM, Form.STREAM)[1]
    assert len({entry.stage for entry in whole}) == 2
    assert told("messages", "chat", body, Form.STREAM, Form.STREAM, 5)[1] == whole


@pytest.mark.parametrize(("arriving", "leaving"), FORMS)
@pytest.mark.parametrize(
    ("upstream", "client", "time"), [("chat", "responses", "created_at"), ("responses", "chat", "created")]
)
def test_time_tier_and_provider_go_between_chat_and_responses(
    upstream: str, client: str, time: str, arriving: Form, leaving: Form
) -> None:
    out, _ = told(upstream, client, answer(upstream, arriving), arriving, leaving)
    if leaving is Form.WHOLE:
        objects = [json.loads(out)]
    else:
        lines = [json.loads(line[6:]) for line in out.splitlines() if line.startswith(b"data: {")]
        objects = [
            line["response"] if client == "responses" else line for line in lines if line.keys() & {"response", "id"}
        ]
    assert {one[time] for one in objects} == {TIME}
    assert {name: objects[-1][name] for name in SERVED} == SERVED
    assert objects[0]["service_tier"] == (
        "auto" if (arriving, leaving) == (Form.STREAM, Form.STREAM) and upstream == "responses" else "default"
    )


def test_what_comes_first_in_the_middle_of_a_stream_is_seen() -> None:
    late = [{**cs.text("b"), "service_tier": "flex"}, {**cs.text("c"), "late": 1}, {**cs.text("d"), "late": None}]
    body = cs.sse(cs.text("a"), cs.text("x"), *late, cs.finish(), cs.DONE)
    out, ledger = told("chat", "responses", body, Form.STREAM, Form.STREAM)
    assert [entry.path for entry in ledger] == ["late"]
    assert b'"service_tier":"flex"' in out


@pytest.mark.parametrize("odd", [0, None, "x", -1])
def test_an_odd_time_is_none_and_the_clocks_stands(odd: Any) -> None:
    body = cs.sse({**cs.text("a"), "created": odd}, {**cs.finish(), "created": odd}, cs.DONE)
    out, _ = told("chat", "responses", body, Form.STREAM, Form.STREAM)
    (time,) = {json.loads(line[6:])["response"]["created_at"] for line in out.splitlines() if b'"response":' in line}
    assert time > TIME


# Counts that cannot be read

ODD: dict[str, list[Any]] = {
    "chat": [
        {"input_tokens": 10, "output_tokens": 5},
        {"prompt_tokens": "10"},
        {"prompt_tokens": -1},
        {"total_tokens": 15},
        7,
    ],
    "responses": [{"total_tokens": 15}, {"input_tokens": "10"}, {"output_tokens": -1}, "x"],
    "messages": [{"prompt_tokens": 10}, {"input_tokens": "10"}, {"output_tokens": -1}, [1]],
}


@pytest.mark.parametrize(("arriving", "leaving"), FORMS)
@pytest.mark.parametrize(("upstream", "client"), CROSSING)
def test_counts_that_cannot_be_read_are_none_and_recorded(
    upstream: str, client: str, arriving: Form, leaving: Form, monkeypatch: pytest.MonkeyPatch
) -> None:
    for odd in ODD[upstream]:
        monkeypatch.setitem(USAGE, upstream, odd)
        monkeypatch.setitem(BESIDE, upstream, {})
        out, ledger = told(upstream, client, answer(upstream, arriving), arriving, leaving)
        assert "ignored" in {entry.action for entry in ledger if entry.path == "usage"}, odd
        supplied = [entry for entry in ledger if entry.action == "made"]
        assert len(supplied) == (client == "messages")
        if client == "chat":
            assert b'"usage"' not in out
        if client == "responses":
            assert b'"usage":null' in out
            assert b'"usage":{' not in out


@pytest.mark.parametrize("upstream", ["chat", "responses"])
def test_no_counts_at_all_are_zeros_for_a_messages_client_which_is_recorded(
    upstream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BESIDE, upstream, {})
    empty: Json = {}
    for nothing in (None, empty):
        monkeypatch.setitem(USAGE, upstream, nothing)
        for arriving, leaving in FORMS:
            out, ledger = told(upstream, "messages", answer(upstream, arriving), arriving, leaving)
            assert b'"output_tokens":0' in out
            assert ("usage", "made") in {(entry.path, entry.action) for entry in ledger}


# Iterations

SPENT: Json = {"input_tokens": 23, "output_tokens": 10, "cache_read_input_tokens": 4}
COMPACTED: Json = {"type": "compaction", "input_tokens": 180, "output_tokens": 35}
OWN: Json = {"type": "message", "input_tokens": 23, "output_tokens": 10}
ADVISED: Json = {"type": "advisor_message", "input_tokens": 900, "output_tokens": 90}


@pytest.mark.parametrize("arriving", [*Form])
@pytest.mark.parametrize(
    ("iterations", "counts"),
    [
        ([COMPACTED, OWN], (23 + 4, 10)),
        ([COMPACTED, OWN, ADVISED], (23 + 4, 10)),
        ([OWN, OWN], (46 + 4, 20)),
        ([OWN], (23 + 4, 10)),
        ([COMPACTED, {"type": "fallback_message", "input_tokens": 7, "output_tokens": 7}], (23 + 4, 10)),
        ([COMPACTED, {**OWN, "cache_read_input_tokens": 6}], (23 + 6, 10)),
        ([7, {"type": [], "input_tokens": 5}, {"type": "message"}], (23 + 4, 10)),
        ("x", (23 + 4, 10)),
    ],
)
def test_the_iterations_that_an_answer_took_are_summed_up(
    arriving: Form, iterations: Any, counts: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(USAGE, "messages", {**SPENT, "iterations": iterations})
    monkeypatch.setitem(BESIDE, "messages", {})
    out, ledger = told("messages", "chat", answer("messages", arriving), arriving, Form.WHOLE)
    usage = json.loads(out)["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == counts
    several = isinstance(iterations, list) and len([one for one in iterations if one in (COMPACTED, OWN, ADVISED)]) > 1
    if several:
        assert [(entry.path, entry.action) for entry in ledger] == [("usage.iterations", "summed up")]
