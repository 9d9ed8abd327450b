"""One dialect over itself: a member that nobody knows reaches the client or is in the ledger, and never both."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from pipeline.dialect import RequestFacts
from pipeline.outcome import Outcome
from pipeline.reply import Form
from pipeline.route import AnswerOptions
from pipeline.testing import Chunk, cut
from tests.markup_streams import Json, Part, chatted, messaged, responded, sse, whole
from tests.returning import payloads, returned

STREAMS: dict[str, Any] = {"messages": messaged, "chat": chatted, "responses": responded}
CALL = '<tool_call>{"name":"f","arguments":{"a":1}}</tool_call>'
PIECES: dict[str, list[Part]] = {
    "plain": [("text", ["Hello", " you"])],
    "all": [("text", [CALL])],
    "in pieces": [("text", [CALL[:9], CALL[9:30], CALL[30:]])],
    "before": [("text", ["Hi ", f"there {CALL}"])],
    "behind": [("text", [CALL, "\n", "Hello", " you"])],
    "both": [("text", [f"Hi{CALL}there", CALL, "end"])],
    "nameless": [("text", ['<tool_call>{"arguments":{}}</tool_call>', "Hello"])],
    "nothing else": [("text", ['<tool_call>{"arguments":{}}</tool_call>'])],
    "thought": [("text", ["<think>deep", " down</think>", "Hello"])],
    "thought alone": [("text", ["<think>deep</think>"])],
    "two texts": [("text", [CALL]), ("text", ["bye", CALL])],
    "beside a call": [("text", ["Hi", CALL]), ("call", ['{"b":', "2}"])],
    "reasoning": [("reasoning", ["why"]), ("text", [CALL, "so"])],
}
OPTIONS = {
    "prompt": AnswerOptions(recover="prompt"),
    "native": AnswerOptions(recover="native"),
    "hidden": AnswerOptions(recover="native", residue="hide"),
}
CUTS: list[Chunk] = [7, "frame", None]


def within(event: Json, name: str) -> Iterator[Json]:
    """The objects of an event that may have a member that nobody knows."""
    yield event
    if name == "chat":
        for choice in event["choices"]:
            yield from (choice, choice["delta"])
    elif name == "messages":
        yield from (event[inner] for inner in ("content_block", "delta") if inner in event)
    elif event["type"] == "response.output_item.done":
        yield from (event["item"], *event["item"].get("content", ()))
    elif event["type"] == "response.content_part.done":
        yield event["part"]


def marked(name: str, events: Sequence[Any]) -> bytes:
    """A stream in whose frames stand members of a name of their own."""
    count = 0
    events = [event if isinstance(event, bytes) else json.loads(json.dumps(event)) for event in events]
    for event in events:
        for place in () if isinstance(event, bytes) else within(event, name):
            place[f"x_{count}_"] = {"said": count + 1}
            count += 1
    return sse(*events)


def facts(form: Form = Form.STREAM) -> RequestFacts:
    return RequestFacts(stream=form is Form.STREAM, tools={"f": {}}, include_usage=True)


def names(told: str) -> set[str]:
    return {*re.findall(r"x_\d+_", told)}


def lost(outcome: Outcome) -> set[str]:
    assert {entry.action for entry in outcome.ledger if "x_" in entry.path} <= {"dropped"}
    return names(" ".join(entry.path for entry in outcome.ledger))


def client(name: str, parts: list[Part], mode: str, cut_: Chunk, end: int | None = None) -> tuple[set[str], set[str]]:
    """What the client is told, and what is recorded, of all that stands in the frames."""
    raw = marked(name, STREAMS[name](parts)[:end])
    out, outcome = returned(name, cut(raw, cut_), facts=facts(), options=OPTIONS[mode])
    told = " ".join(json.dumps(payload) for payload in payloads(out))
    assert names(told) | lost(outcome) == names(raw.decode())
    return names(told), lost(outcome)


@pytest.mark.parametrize("mode", OPTIONS)
@pytest.mark.parametrize("case", PIECES)
@pytest.mark.parametrize("name", STREAMS)
def test_what_stands_beside_a_text_is_told_or_recorded(name: str, case: str, mode: str) -> None:
    both = [client(name, PIECES[case], mode, cut_) for cut_ in CUTS]
    told, gone = both[0]
    assert not told & gone
    assert [one[1] for one in both] == [gone] * len(both)
    if case == "plain":
        assert not gone
    elif case == "in pieces":
        assert gone


@pytest.mark.parametrize("case", PIECES)
@pytest.mark.parametrize("name", STREAMS)
def test_also_of_a_stream_that_is_cut(name: str, case: str) -> None:
    for end in range(2, len(STREAMS[name](PIECES[case]))):
        told, gone = client(name, PIECES[case], "prompt", None, end)
        assert not told & gone


def answer(name: str, parts: list[Part], leaving: Form) -> bytes:
    """A whole answer with such members, wherever its text stands; no stream of Chat has them in a part."""
    body = whole(name, parts)
    if name == "chat":
        message = body["choices"][0]["message"]
        texts = [{"type": "text", "text": "".join(said)} for kind, said in parts if kind == "text"]
        message["content"] = texts if leaving is Form.WHOLE else message["content"]
        places = [body, message, *(texts if leaving is Form.WHOLE else ())]
    elif name == "messages":
        places = [body, *body["content"]]
    else:
        places = [body, *body["output"], *(part for item in body["output"] for part in item.get("content", ()))]
    for count, place in enumerate(places):
        place[f"x_{count}_"] = {"said": count + 1}
    return json.dumps(body).encode()


@pytest.mark.parametrize("leaving", Form)
@pytest.mark.parametrize("mode", OPTIONS)
@pytest.mark.parametrize("case", PIECES)
@pytest.mark.parametrize("name", STREAMS)
def test_what_stands_beside_a_text_of_a_whole_answer_is_told_or_recorded(
    name: str, case: str, mode: str, leaving: Form
) -> None:
    body = answer(name, PIECES[case], leaving)
    ways: Json = {"arriving": Form.WHOLE, "leaving": leaving, "facts": facts(leaving)}
    out, outcome = returned(name, [body], **ways, options=OPTIONS[mode])
    assert names(out.decode()) | lost(outcome) == names(body.decode())
    assert not names(out.decode()) & lost(outcome)


def chunks(*deltas: Json, **last: Any) -> bytes:
    """A Chat stream of chunks that each tell such a delta."""
    about = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    told = [{**about, "choices": [{"index": 0, "finish_reason": None, **choice}]} for choice in deltas]
    return sse(*told[:-1], {**told[-1], **last}, b"[DONE]")


def losses(raw: bytes) -> tuple[bytes, list[tuple[str, str]]]:
    out, outcome = returned("chat", [raw], facts=facts(), options=OPTIONS["prompt"])
    return out, [(entry.path, entry.reason) for entry in outcome.ledger]


COUNTS = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
LEFT = "nothing is left of its frame"


def test_what_chunks_say_again_is_lost_if_none_says_it_again() -> None:
    first, markup = {"delta": {"role": "assistant", "content": "Hi"}}, {"delta": {"content": CALL}}
    finish: Json = {"delta": {"content": CALL}, "finish_reason": "stop", "native_finish_reason": "STOP"}
    told: Json = {"usage": {**COUNTS, "cost": 2}, "service_tier": "flex", "obfuscation": "xx"}
    out, gone = losses(chunks(first, finish, **told))
    assert gone == [(path, LEFT) for path in ("choices[].native_finish_reason", "service_tier")]
    assert b'"prompt_tokens":3' in out
    assert b'"cost":2' in out
    ended = {"delta": {}, "finish_reason": "stop"}
    raw = chunks(first, markup, ended, **told)
    again = raw.replace(b'"created": 1', b'"created": 1, "service_tier": "flex"')
    assert losses(again)[1] == losses(raw)[1] == []


def test_the_scores_of_a_text_that_was_markup_are_recorded_once() -> None:
    scores: Json = {"content": [{"token": CALL, "logprob": -1.0, "bytes": None, "top_logprobs": []}], "refusal": None}
    for told in (scores, {"content": [{"odd": 1}]}):
        raw = chunks({"delta": {"role": "assistant"}}, {"delta": {"content": CALL}, "logprobs": told}, {"delta": {}})
        assert len(losses(raw)[1]) == 1


def test_a_choice_of_several_keeps_the_chunk_and_what_stands_in_it() -> None:
    choices = [{"index": at, "delta": {"content": text, f"x_{at}_": 1}} for at, text in enumerate([CALL, "Hi"])]
    raw = sse({"id": "c", "choices": [{"index": 0, "delta": {"role": "assistant"}}]}, {"choices": choices}, b"[DONE]")
    out, outcome = returned("chat", [raw], facts=facts(), options=OPTIONS["prompt"])
    assert (names(out.decode()), lost(outcome)) == ({"x_0_", "x_1_"}, set())
