"""The two contracts on reasoning, at the route: `docs/decisions/reasoning.md`."""

import json
from typing import Any

import pytest

from pipeline.envelope import unseal
from pipeline.request import RequestOptions
from pipeline.route import AnswerOptions, Route
from tests import responses_stream as rs
from tests.exchange import ASKED, Got, answered, calls, opened, route, sent, whole
from tests.support import DONE, call, chunk, events_of, finish, reasoning, sse
from tests.test_order import wire

UPSTREAMS = ["chat", "responses"]
FORMS = [True, False]
DETAILS = [{"type": "reasoning.text", "text": "hm", "signature": "S+/="}]
ENCRYPTED = [{"type": "reasoning.encrypted", "data": "E"}]
ITEM = rs.reasoning("hm", blob="gA+/==")
HELD = {
    "chat": {"reasoning_details": [{"type": "reasoning.text", "signature": "S+/="}]},
    "responses": {name: value for name, value in ITEM.items() if name != "type"},
}
"""What an envelope holds: of a detail all but its text, of an item everything."""
CALL = rs.call('{"x": 1}', call_id="i")

pytestmark = pytest.mark.parametrize("upstream", UPSTREAMS)


def plain(upstream: str) -> bytes:
    """A stream that reasons, with nothing opaque, and calls."""
    if upstream == "chat":
        return sse(reasoning("h"), reasoning("m"), call(0, "i", "f", '{"x": 1}'), finish("tool_calls"), DONE)
    thought = rs.reasoning("hm")
    return wire(
        rs.created(),
        rs.added(rs.reasoning()),
        rs.summary("h"),
        rs.summary("m"),
        rs.done(thought),
        *_called(thought),
    )


def _called(*before: rs.Json) -> tuple[rs.Json, ...]:
    return (rs.added(rs.call(call_id="i"), 1), rs.done(CALL, 1), rs.terminal(output=[*before, CALL]))


def opaque(upstream: str) -> bytes:
    """A whole answer that reasons, with a blob to bring back, and calls."""
    if upstream == "chat":
        called = calls(("i", "f", '{"x": 1}'))
        return whole("tool_calls", reasoning_content="hm", reasoning_details=DETAILS, tool_calls=called)
    return json.dumps(rs.response(output=[ITEM, CALL])).encode()


def hidden(upstream: str) -> bytes:
    """A whole answer whose reasoning only its provider can read."""
    if upstream == "chat":
        return whole("tool_calls", reasoning_details=ENCRYPTED, tool_calls=calls(("i", "f", '{"x": 1}')))
    return json.dumps(rs.response(output=[rs.reasoning(blob="gA+/=="), CALL])).encode()


def got(upstream: str, stream: bool, body: bytes, **members: Any) -> Got:
    return answered(opened(stream, on=route(upstream=upstream, **members)), body)


def first(message: dict[str, Any]) -> dict[str, Any]:
    """Its first block."""
    block: dict[str, Any] = message["content"][0]
    return block


def again(on: Route, *content: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, str]]]:
    """What goes up when a client echoes this content and the call's result, and what is recorded of it."""
    turns = [
        *ASKED["messages"],
        {"role": "assistant", "content": [*content, {"type": "tool_use", "id": "i", "name": "f", "input": {"x": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "i", "content": "ok"}]},
    ]
    exchange = opened(on=on, messages=turns)
    return sent(exchange), exchange.ledger


def replayed(upstream: str, body: dict[str, Any]) -> Any:
    """The reasoning in a request that goes up; None if there is none."""
    if upstream == "chat":
        return body["messages"][1].get("reasoning_details")
    return next((item for item in body["input"] if item["type"] == "reasoning"), None)


# Coming down


@pytest.mark.parametrize("stream", FORMS)
def test_foreign_reasoning_is_shown_as_thinking_with_an_empty_signature(upstream: str, stream: bool) -> None:
    answer = got(upstream, stream, plain(upstream))
    assert first(answer.message) == {"type": "thinking", "thinking": "hm", "signature": ""}
    if stream:
        starts = [event["content_block"] for event in events_of(answer.body) if "content_block" in event]
        assert starts[0] == {"type": "thinking", "thinking": "", "signature": ""}
        assert b"signature_delta" not in answer.body


@pytest.mark.parametrize("stream", FORMS)
def test_a_blob_comes_down_in_one_envelope_that_names_its_provider_and_holds_what_must_go_back(
    upstream: str, stream: bool
) -> None:
    answer = got(upstream, stream, opaque(upstream), answers=AnswerOptions(upstream="acme"))
    assert (first(answer.message)["type"], first(answer.message)["thinking"]) == ("thinking", "hm")
    envelope = unseal(first(answer.message)["signature"])
    assert envelope is not None
    assert (envelope.upstream, envelope.model) == ("acme", "m")
    assert envelope.fits("hm")
    assert json.loads(envelope.blob) == HELD[upstream]
    if stream:
        assert answer.body.count(b"signature_delta") == 1


@pytest.mark.parametrize("stream", FORMS)
def test_the_same_provider_gets_the_blob_back_as_it_was_before_what_it_led_to(upstream: str, stream: bool) -> None:
    block = first(got(upstream, stream, opaque(upstream)).message)
    body, lost = again(route(upstream=upstream), block)
    if upstream == "chat":
        assert replayed(upstream, body) == DETAILS
    else:
        assert [item["type"] for item in body["input"][1:3]] == ["reasoning", "function_call"]
        assert replayed(upstream, body) == ITEM
    assert lost == []


@pytest.mark.parametrize("stream", FORMS)
def test_reasoning_that_cannot_be_read_comes_down_redacted_and_goes_back(upstream: str, stream: bool) -> None:
    block = first(got(upstream, stream, hidden(upstream)).message)
    assert (block["type"], set(block)) == ("redacted_thinking", {"type", "data"})
    body, _ = again(route(upstream=upstream), block)
    assert replayed(upstream, body) == (ENCRYPTED if upstream == "chat" else rs.reasoning(blob="gA+/=="))


@pytest.mark.parametrize("stream", FORMS)
def test_with_envelopes_off_nothing_opaque_comes_down(upstream: str, stream: bool) -> None:
    off = AnswerOptions(envelope=False)
    answer = got(upstream, stream, opaque(upstream), answers=off)
    assert first(answer.message) == {"type": "thinking", "thinking": "hm", "signature": ""}
    assert {entry["path"] for entry in answer.exchange.ledger} - {"usage"} == {"signature"}
    assert first(got(upstream, stream, hidden(upstream), answers=off).message)["type"] == "tool_use"


# Going up


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    "block",
    [
        {"type": "thinking", "thinking": "hm", "signature": "EpwBCkYIBxgCKkD"},
        {"type": "thinking", "thinking": "hm", "signature": ""},
        {"type": "redacted_thinking", "data": "EmwKAhgBEgy"},
    ],
)
def test_what_another_signed_or_nobody_is_dropped_and_recorded_and_never_refused(
    upstream: str, strict: bool, block: dict[str, Any]
) -> None:
    body, lost = again(route(upstream=upstream, requests=RequestOptions(strict=strict)), block)
    assert replayed(upstream, body) is None
    assert not {"hm", "Epw", "Emw"} & set(json.dumps(body).replace('"', " ").split())
    assert [(entry["direction"], entry["path"], entry["action"]) for entry in lost] == [
        ("request", "messages[1].content[0]", "dropped")
    ]


@pytest.mark.parametrize("name", ["another", ""])
def test_no_other_provider_gets_a_blob(upstream: str, name: str) -> None:
    block = first(got(upstream, True, opaque(upstream), answers=AnswerOptions(upstream="acme")).message)
    body, lost = again(route(upstream=upstream, answers=AnswerOptions(upstream=name)), block)
    assert replayed(upstream, body) is None
    assert [entry["path"] for entry in lost] == ["messages[1].content[0]"]
    (other,) = {*UPSTREAMS} - {upstream}
    assert replayed(other, again(route(upstream=other), block)[0]) is None


def test_a_blob_does_not_go_back_with_an_edited_text(upstream: str) -> None:
    block = first(got(upstream, True, opaque(upstream)).message)
    body, lost = again(route(upstream=upstream), {**block, "thinking": "hm, edited"})
    assert replayed(upstream, body) is None
    assert [entry["path"] for entry in lost] == ["messages[1].content[0]"]


def test_echoed_text_goes_up_only_where_a_route_says_that_its_provider_demands_it(upstream: str) -> None:
    block = {"type": "thinking", "thinking": "hm", "signature": ""}
    body, _ = again(route(upstream=upstream, requests=RequestOptions(replay_reasoning=True)), block)
    if upstream == "chat":
        assert body["messages"][1]["reasoning_content"] == "hm"
    else:  # an item without its blob is nothing that this API takes
        assert replayed(upstream, body) is None


@pytest.mark.parametrize(
    ("asked", "effort"),
    [
        ({"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}, "high"),
        ({"thinking": {"type": "enabled", "budget_tokens": 2_000}}, "low"),
        ({"thinking": {"type": "disabled"}}, "none"),
        ({"thinking": {"type": "adaptive"}}, None),
    ],
)
def test_as_much_reasoning_is_asked_for_as_the_client_asks(
    upstream: str, asked: dict[str, Any], effort: str | None
) -> None:
    body = sent(opened(on=route(upstream=upstream), **asked))
    if upstream == "chat":
        assert body.get("reasoning_effort") == effort
        return
    assert body["reasoning"].get("effort") == effort
    assert body["reasoning"].get("summary") == (None if effort == "none" else "auto")
    assert body.get("include", []) == ([] if effort == "none" else ["reasoning.encrypted_content"])


def test_reasoning_that_says_nothing_makes_no_block(upstream: str) -> None:
    if upstream == "chat":
        stream = sse(reasoning(""), chunk({"content": "a"}), finish(), DONE)
    else:
        said = rs.message("a", id="m1")
        stream = wire(rs.created(), rs.added(rs.reasoning()), rs.summary(""), rs.done(rs.reasoning()), rs.done(said, 1))
        stream += wire(rs.terminal(output=[rs.reasoning(), said]))
    assert got(upstream, True, stream).message["content"] == [{"type": "text", "text": "a"}]
