"""How likely the tokens of a text were: asked for by a client, told to it, in Chat and in Responses."""

import json
from collections.abc import Sequence
from typing import Any

import openai.types.responses as typed
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from pipeline.dialect import dialect
from pipeline.ledger import Ledger
from pipeline.logprobs import note_of, scores_in
from pipeline.reply import Form
from pipeline.testing import EOF, cut, play
from stages.recipe import default_chain
from tests.responses_stream import created, event, message, terminal
from tests.support import DONE, chunk, finish, sse

Json = dict[str, Any]


def score(token: str, *others: str) -> Json:
    """A token, and what could have stood there."""
    told = {"token": token, "logprob": -0.5, "bytes": list(token.encode())}
    return {**told, "top_logprobs": [{**told, "token": other, "bytes": list(other.encode())} for other in others]}


HEL, LO, MORE = score("Hel", "Hal"), score("lo"), score(" é")


def said(text: str | None, *scores: Json, **delta: Any) -> Json:
    """A chunk of text, with how likely its tokens were."""
    one = chunk({"content": text, **delta})
    one["choices"][0]["logprobs"] = {"content": [*scores], "refusal": None}
    return one


def spoken(text: str, *scores: Json, part: int = 0) -> Json:
    """A delta of text, with the same."""
    where = {"output_index": 0, "item_id": "m1", "content_index": part}
    return event("response.output_text.delta", delta=text, logprobs=[*scores], **where)


def scored(*scores: Json) -> Json:
    """The message that they make."""
    item = message("Hello é")
    item["content"][0]["logprobs"] = [*scores]
    return item


CHAT = sse(said("Hel", HEL), said("lo", LO), said(" é", MORE), finish(), DONE)
RESPONSES = sse(
    created(), spoken("Hel", HEL), spoken("lo", LO), spoken(" é", MORE), terminal(output=[scored(HEL, LO, MORE)])
)
STREAMS = {"chat": CHAT, "responses": RESPONSES}
WHOLE = {
    "chat": json.dumps(
        {
            "id": "c1",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": "Hello é"},
                    "logprobs": {"content": [HEL, LO, MORE], "refusal": None},
                    "finish_reason": "stop",
                }
            ],
        }
    ).encode(),
    "responses": json.dumps(terminal(output=[scored(HEL, LO, MORE)])["response"]).encode(),
}
OTHER = {"chat": "responses", "responses": "chat"}


def given(upstream: str, client: str, raw: Sequence[bytes], arriving: Form, leaving: Form) -> tuple[bytes, list[Json]]:
    """What a client gets of an answer, and the ledger."""
    ledger = Ledger()
    facts = dialect(client).facts({"model": "m", "stream": leaving is Form.STREAM})
    ends = dialect(upstream), dialect(client)
    stages = default_chain(*ends, arriving=arriving, leaving=leaving, facts=facts, ledger=ledger)
    out = b"".join(item for step in play(stages, *raw, EOF) for item in step)
    return out, [*ledger.as_dicts()]


def frames(raw: bytes) -> list[Json]:
    return [json.loads(line[6:]) for line in raw.splitlines() if line.startswith(b"data: {")]


@pytest.mark.parametrize("size", [1, 7, None])
def test_a_chat_client_is_told_beside_each_text(size: int | None) -> None:
    out, lost = given("responses", "chat", cut(RESPONSES, size), Form.STREAM, Form.STREAM)
    told = [one["choices"][0] for one in frames(out) if one["choices"] and one["choices"][0]["delta"].get("content")]
    assert [(one["delta"]["content"], one["logprobs"]["content"]) for one in told] == [
        ("Hel", [HEL]),
        ("lo", [LO]),
        (" é", [MORE]),
    ]
    assert all(ChatCompletionChunk.model_validate(one, strict=True) for one in frames(out))
    assert lost == []


@pytest.mark.parametrize("size", [1, 7, None])
def test_a_responses_client_is_told_in_each_delta_and_again_at_the_end(size: int | None) -> None:
    out, lost = given("chat", "responses", cut(CHAT, size), Form.STREAM, Form.STREAM)
    told = {one["type"]: one for one in frames(out)}
    deltas = [one for one in frames(out) if one["type"] == "response.output_text.delta"]
    assert [(one["delta"], one["logprobs"]) for one in deltas] == [("Hel", [HEL]), ("lo", [LO]), (" é", [MORE])]
    assert [typed.ResponseTextDeltaEvent.model_validate(one) for one in deltas]
    everything = [HEL, LO, MORE]
    assert told["response.output_text.done"]["logprobs"] == everything
    assert told["response.content_part.done"]["part"]["logprobs"] == everything
    for item in (told["response.output_item.done"]["item"], told["response.completed"]["response"]["output"][0]):
        assert item["content"][0]["logprobs"] == everything
    assert lost == []


@pytest.mark.parametrize("upstream", OTHER)
@pytest.mark.parametrize("arriving", Form)
def test_a_whole_answer_tells_all_of_them(upstream: str, arriving: Form) -> None:
    raw = (STREAMS if arriving is Form.STREAM else WHOLE)[upstream]
    out, lost = given(upstream, OTHER[upstream], [raw], arriving, Form.WHOLE)
    body = json.loads(out)
    if upstream == "responses":
        ChatCompletion.model_validate(body)
        assert body["choices"][0]["logprobs"] == {"content": [HEL, LO, MORE], "refusal": None}
    else:
        assert body["output"][0]["content"][0]["logprobs"] == [HEL, LO, MORE]
    assert lost == []


@pytest.mark.parametrize("upstream", OTHER)
def test_a_whole_answer_told_as_a_stream_tells_them_once(upstream: str) -> None:
    out, _ = given(upstream, OTHER[upstream], [WHOLE[upstream]], Form.WHOLE, Form.STREAM)
    name = "chat" if upstream == "responses" else "responses"
    told = [
        one["choices"][0].get("logprobs", {}).get("content", []) if name == "chat" else one["logprobs"]
        for one in frames(out)
        if (one.get("choices") if name == "chat" else one["type"].endswith("output_text.delta"))
    ]
    assert [one for one in told if one] == [[HEL, LO, MORE]]


@pytest.mark.parametrize("upstream", OTHER)
@pytest.mark.parametrize("form", Form)
def test_a_messages_client_is_not_told_which_is_recorded_once(upstream: str, form: Form) -> None:
    raw = (STREAMS if form is Form.STREAM else WHOLE)[upstream]
    out, lost = given(upstream, "messages", [raw], form, form)
    assert b"logprob" not in out
    assert [entry["action"] for entry in lost if entry["path"] == "logprobs"] == ["dropped"]


@pytest.mark.parametrize("name", OTHER)
@pytest.mark.parametrize("form", Form)
def test_one_dialect_over_itself_passes_them_as_they_came(name: str, form: Form) -> None:
    raw = (STREAMS if form is Form.STREAM else WHOLE)[name]
    assert given(name, name, [raw], form, form) == (raw, [])


def test_tokens_that_make_no_text_yet_are_told_in_a_chunk_of_their_own() -> None:
    raw = sse(said("a", HEL), said("", LO), said("b", MORE), finish(), DONE)
    out, lost = given("chat", "responses", [raw], Form.STREAM, Form.STREAM)
    deltas = [one for one in frames(out) if one["type"] == "response.output_text.delta"]
    assert [(one["delta"], one["logprobs"]) for one in deltas] == [("a", [HEL]), ("", [LO]), ("b", [MORE])]
    raw = sse(created(), spoken("a", HEL), spoken("", LO), spoken("b", MORE), terminal())
    out, _ = given("responses", "chat", [raw], Form.STREAM, Form.STREAM)
    told = [one["choices"][0] for one in frames(out) if one["choices"] and "logprobs" in one["choices"][0]]
    assert [(one["delta"], one["logprobs"]["content"]) for one in told] == [
        ({"content": "a"}, [HEL]),
        ({"content": ""}, [LO]),
        ({"content": "b"}, [MORE]),
    ]
    assert lost == []


@pytest.mark.parametrize(
    "odd",
    [
        [said(None, HEL, reasoning_content="Hm")],
        [said("a") | {"choices": [{**said("a")["choices"][0], "logprobs": "x"}]}],
        [said("a", {"token": "a"})],
        [said("a", {"token": "a", "logprob": True}), said("b", {"token": ["b"], "logprob": 1})],
    ],
)
def test_those_that_are_of_no_text_or_odd_are_recorded_and_nothing_else_is_lost(odd: list[Json]) -> None:
    raw = sse(chunk({"content": "T"}), *odd, finish(), DONE)
    out, lost = given("chat", "responses", [raw], Form.STREAM, Form.STREAM)
    text = "".join(one["delta"] for one in frames(out) if one["type"] == "response.output_text.delta")
    assert text == "T" + "".join(one["choices"][0]["delta"]["content"] or "" for one in odd)
    assert [entry["path"] for entry in lost] == ["choices[].logprobs"]


@pytest.mark.parametrize("upstream", OTHER)
def test_a_token_among_others_that_cannot_be_read_is_recorded(upstream: str) -> None:
    odd = (HEL, {"token": 7})
    raw = (
        sse(said("Hel", *odd), finish(), DONE)
        if upstream == "chat"
        else sse(created(), spoken("Hel", *odd), terminal())
    )
    out, lost = given(upstream, OTHER[upstream], [raw], Form.STREAM, Form.STREAM)
    assert json.dumps(HEL, separators=(",", ":")).encode() in out
    assert [(entry["path"].rpartition(".")[2], entry["reason"]) for entry in lost] == [("logprobs[]", "no token")]


def test_those_of_a_refusal_are_recorded() -> None:
    one = chunk({"refusal": "No"})
    one["choices"][0]["logprobs"] = {"content": None, "refusal": [HEL]}
    _, lost = given("chat", "responses", [sse(one, finish(), DONE)], Form.STREAM, Form.STREAM)
    assert [entry["path"] for entry in lost] == ["choices[].logprobs.refusal"]


def test_a_snapshot_adds_those_that_no_delta_told_part_by_part() -> None:
    item = scored(HEL, LO)
    item["content"].append({"type": "output_text", "text": "!", "annotations": [], "logprobs": [MORE]})
    raw = sse(created(), spoken("Hel", HEL), spoken("lo é"), spoken("!", part=1), terminal(output=[item]))
    out, lost = given("responses", "chat", [raw], Form.STREAM, Form.WHOLE)
    assert json.loads(out)["choices"][0]["logprobs"]["content"] == [HEL, LO, MORE]
    assert lost == []


def test_a_token_lacks_nothing_and_what_cannot_be_read_of_it_is_left_out() -> None:
    note = note_of([{"token": "é", "logprob": 0, "top_logprobs": [{"token": "e", "logprob": -1}, 5, {}]}, 7])
    assert note is not None
    assert scores_in(note) == [
        {
            "token": "é",
            "logprob": 0,
            "bytes": [195, 169],
            "top_logprobs": [{"token": "e", "logprob": -1, "bytes": [101]}],
        }
    ]
    assert note_of([]) is note_of({}) is note_of([{}]) is None
    for other in ({"type": "url_citation"}, {"type": ["x"]}, {"type": "logprobs"}, {"type": "logprobs", "logprobs": 1}):
        assert not scores_in(other)
