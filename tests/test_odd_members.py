"""One odd member, wherever it stands in an answer: nothing raises, and no other member is lost."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from pipeline.dialect import dialect
from pipeline.outcome import Outcome, Verdict
from pipeline.reply import Form
from pipeline.word import word
from stages.recipe import default_chain
from tests import messages_stream, responses_stream
from tests.support import DONE, chunk, finish, fragment

Json = dict[str, Any]
Path = tuple[str | int, ...]

PAGE = {"url": "https://a.example/page", "title": "wTitle"}
LOGPROB = {"token": "wToken", "logprob": -0.5, "bytes": [104], "top_logprobs": [{"token": "wOther", "logprob": -1.5}]}

CHAT: list[Any] = [
    chunk({"role": "assistant", "content": "wOne"}),
    chunk({"reasoning_content": "wTwo"}),
    chunk({"reasoning_details": [{"type": "reasoning.text", "text": "wThree", "signature": "wFour", "index": 0}]}),
    chunk({"content": [{"type": "text", "text": "wFive"}, {"type": "thinking", "thinking": [{"text": "wSix"}]}]}),
    chunk({"content": "wSeven", "annotations": [{"type": "url_citation", "url_citation": {**PAGE, "end_index": 4}}]}),
    chunk({"refusal": "wEight"}),
    chunk({"tool_calls": [fragment(0, "call_a", "f", '{"a":"wNine"}')]}),
    chunk({"tool_calls": [{"index": 1, "id": "call_b", "type": "custom", "custom": {"name": "c", "input": "wTen"}}]}),
    chunk({"content": "wEleven"}) | {"system_fingerprint": "fp"},
    finish("tool_calls", usage={"prompt_tokens": 3, "prompt_tokens_details": {"cached_tokens": 1}}),
    DONE,
]

CITED = {"type": "web_search_result_location", **PAGE, "cited_text": "c", "encrypted_index": "e"}
SEARCHED = {"query": "wFive"}
"""Shown only of a search: the name tells that it is one."""
MESSAGES: list[Json] = [
    messages_stream.begin(usage={"input_tokens": 2, "output_tokens": 1}),
    *messages_stream.told_in_deltas({"type": "thinking", "thinking": "wOne", "signature": "wTwo"}, 0),
    messages_stream.start({"type": "redacted_thinking", "data": "wThree"}, 1),
    messages_stream.stop(1),
    *messages_stream.told_in_deltas({"type": "text", "text": "wFour wAgain", "citations": [CITED]}, 2, [6]),
    *messages_stream.told_in_deltas(messages_stream.search("s", SEARCHED), 3),
    messages_stream.start({"type": "web_search_tool_result", "tool_use_id": "s", "content": [PAGE]}, 4),
    messages_stream.stop(4),
    *messages_stream.told_in_deltas({"type": "text", "text": "wSix"}, 5),
    *messages_stream.told_in_deltas(messages_stream.call("call_a", "f", {"a": "wSeven"}), 6),
    messages_stream.told("tool_use", {"output_tokens": 3}, stop_details={"explanation": "wEight"}),
    messages_stream.END,
]

NOTE = {"type": "url_citation", **PAGE, "start_index": 0, "end_index": 4}
SAID = responses_stream.message("wOne", id="m1")
SAID["content"][0] |= {"annotations": [NOTE], "logprobs": [LOGPROB]}
THOUGHT = responses_stream.reasoning("wTwo", id="rs1", blob="wThree")
FUNCTION = responses_stream.call('{"a":"wFour"}', id="fc1", call_id="call_a")
FREEFORM = responses_stream.custom("wFive", id="ctc1", call_id="call_b")
HOSTED = {"type": "web_search_call", "id": "ws1", "status": "completed", "action": {"type": "search", "query": "wSix"}}


def responses() -> Iterator[Json]:
    """A stream of them, each member told in every event that tells it."""
    event = responses_stream.event
    yield responses_stream.created()
    for at, item in enumerate((THOUGHT, SAID, FUNCTION, FREEFORM, HOSTED)):
        where = {"output_index": at, "item_id": item["id"]}
        begun: Json = {
            name: [] if name in ("content", "summary") else "" if name in ("arguments", "input") else value
            for name, value in item.items()
            if name != "encrypted_content"
        }
        yield event("response.output_item.added", output_index=at, item={**begun, "status": "in_progress"})
        if item is SAID:
            part = item["content"][0]
            of = {**where, "content_index": 0}
            yield event("response.content_part.added", **of, part={**part, "text": "", "annotations": []})
            yield event("response.output_text.delta", **of, delta="wOne", logprobs=[LOGPROB])
            yield event("response.output_text.annotation.added", **of, annotation_index=0, annotation=NOTE)
            yield event("response.output_text.done", **of, text="wOne", logprobs=[LOGPROB])
            yield event("response.content_part.done", **of, part=part)
        elif item is THOUGHT:
            of = {**where, "summary_index": 0}
            yield event("response.reasoning_summary_text.delta", **of, delta="wTwo")
            yield event("response.reasoning_summary_part.done", **of, part=item["summary"][0])
        elif item is FUNCTION:
            yield event("response.function_call_arguments.delta", **where, delta=item["arguments"])
            yield event("response.function_call_arguments.done", **where, arguments=item["arguments"])
        elif item is FREEFORM:
            yield event("response.custom_tool_call_input.delta", **where, delta=item["input"])
        yield event("response.output_item.done", output_index=at, item=item)
    usage = {"input_tokens": 3, "input_tokens_details": {"cached_tokens": 1}, "output_tokens": 2}
    yield responses_stream.terminal(output=(THOUGHT, SAID, FUNCTION, FREEFORM, HOSTED), usage=usage)


STREAMS: dict[str, list[Any]] = {"chat": CHAT, "messages": MESSAGES, "responses": [*responses()]}
WHOLE: dict[str, Json] = {
    "chat": {
        "id": "c1",
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "wOne",
                    "reasoning_content": "wTwo",
                    "annotations": [{"type": "url_citation", "url_citation": PAGE}],
                    "tool_calls": [fragment(None, "call_a", "f", '{"a":"wThree"}')],
                },
                "logprobs": {"content": [LOGPROB], "refusal": None},
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    },
    "messages": messages_stream.message(
        {"type": "thinking", "thinking": "wOne", "signature": "wTwo"},
        {"type": "text", "text": "wThree", "citations": [CITED]},
        messages_stream.search("s", {"query": "wFour"}),
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": [PAGE]},
        messages_stream.call("call_a", "f", {"a": "wFive"}),
        stop_reason="tool_use",
        usage={"input_tokens": 2, "output_tokens": 1},
    ),
    "responses": responses_stream.response(
        output=[THOUGHT, SAID, FUNCTION, FREEFORM, HOSTED], usage={"input_tokens": 3}
    ),
}
ODD: list[Any] = [{"wOdd": 1}, 7, None, -1.5, True, "x" * 5000, "\ud800", 10**25]
"""What is put in a member's place, in turn; and a list in that of each."""

NEEDED = {"choices", "index", "content_block"}
CALLED = {"custom", "function", "name", "id", "call_id", "arguments", "input", "delta", "type", "partial_json"}
"""What an answer cannot do without, and what a call that is to be run cannot."""


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """Where each member of a value stands."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in pairs:
        yield (*path, name)
        yield from paths(inner, (*path, name))


def at(value: Any, path: Path) -> Any:
    """What stands there."""
    for name in path:
        value = value[name]
    return value


def replaced(value: Any, path: Path, odd: Any) -> Any:
    """The value with something odd there."""
    if not path:
        return odd
    name, *rest = path
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[name] = replaced(value[name], tuple(rest), odd)
    return copy


def words_of(value: Any) -> set[str]:
    """The words of an answer that tell one of its members from the others."""
    return set(re.findall(r"w[A-Z][a-z]+?(?=w[A-Z]|\b)", value if isinstance(value, str) else json.dumps(value)))


def answered(upstream: str, client: str, raw: bytes, form: Form) -> tuple[set[str], Outcome]:
    """The words that a client is shown of an answer, and how it ended."""
    outcome = Outcome()
    facts = dialect(client).facts({"model": "m", "stream": form is Form.STREAM})
    ends = dialect(upstream), dialect(client)
    stage = default_chain(*ends, arriving=form, leaving=form, facts=facts, outcome=outcome)
    out = b"".join([*stage.receive([raw]), *stage.receive_eof()])
    return words_of(out.decode().replace(r"\"", '"')), outcome


def written(value: Any, form: Form) -> bytes:
    """The bytes of an answer."""
    if form is Form.WHOLE:
        return json.dumps(value).encode()
    return b"".join(b"data: %s\n\n" % (DONE if item == DONE else json.dumps(item)).encode() for item in value)


@pytest.mark.parametrize("form", [Form.STREAM, Form.WHOLE])
@pytest.mark.parametrize(("upstream", "client"), [(up, down) for up in STREAMS for down in STREAMS if up != down])
def test_an_odd_member_raises_nothing_and_takes_no_other_with_it(upstream: str, client: str, form: Form) -> None:
    answer: Any = STREAMS[upstream] if form is Form.STREAM else WHOLE[upstream]
    shown, _ = answered(upstream, client, written(answer, form), form)
    for turn, path in enumerate(paths(answer)):
        for odd in (["wOdd"], ODD[turn % len(ODD)]):
            now, outcome = answered(upstream, client, written(replaced(answer, path, odd), form), form)
            if outcome.verdict is Verdict.FAILED:
                assert (NEEDED | CALLED).intersection(path) or len(path) == 1, path
            elif outcome.verdict is Verdict.COMPLETE and not (path[-1] == "type" and isinstance(odd, str)):
                beside = words_of(at(answer, path[:-1])) if len(path) > 1 else words_of(at(answer, path))
                beside |= words_of(LOGPROB) if path[-1] == "content" else set()
                beside |= words_of(SEARCHED) if path[-2:] == ("content_block", "name") else set()
                assert shown - now <= beside, path


@pytest.mark.parametrize("odd", [["x"], {"x": 1}, 7, None, True])
def test_what_is_no_text_is_the_word_that_no_table_has(odd: Any) -> None:
    assert word(odd) == ""
    assert word("x") == "x"
