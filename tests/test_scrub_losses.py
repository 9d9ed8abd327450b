"""Markup of which something cannot be carried: the calls that can be made are, and the rest is in the ledger."""

import json

import pytest

from pipeline.dialect import dialect
from pipeline.events import Event
from pipeline.route import AnswerOptions
from stages.recipe import default_chain
from tests.canonical import BEGIN, CALL_A, END, TEXT, args, start, stop, text
from tests.exchange import route
from tests.scrubbing import MARKUP, NATIVE_HIDING, F, Scrubbed, at_every_cut
from tests.support import DONE, chunk, finish, sse
from tests.support import text as said

BEGUN, SEPARATED, ENDED = "<｜tool▁call▁begin｜>", "f<｜tool▁sep｜>", "<｜tool▁call▁end｜>"


@pytest.mark.parametrize(
    ("written", "calls"),
    [
        (f'<tool_call>{{"name": "f", "arguments": {{"x": 1}}\n{MARKUP}', 2),
        (f'<tool_call>{{"name" f}}\n{MARKUP}', 1),
        (f'{BEGUN}{SEPARATED}{{"x" 1}}{BEGUN}{SEPARATED}{{"x": 1}}{ENDED}', 1),
    ],
)
def test_a_body_that_breaks_off_takes_no_call_behind_it_along(written: str, calls: int) -> None:
    out = at_every_cut(written)
    assert [(name, json.loads(arguments)) for name, arguments in out.content] == [("f", {"x": 1})] * calls


@pytest.mark.parametrize("markup", [MARKUP, "<tool_call>{oops 42}</tool_call>"])
def test_markup_that_is_hidden_is_recorded(markup: str) -> None:
    events: list[Event] = [
        BEGIN,
        start(0, TEXT),
        text(0, f"a{markup}"),
        stop(0),
        start(1, CALL_A),
        args(1, "{}"),
        stop(1),
    ]
    out = Scrubbed(NATIVE_HIDING).give(*events, END)
    assert out.content == ["a", ("get_a", "{}")]
    assert out.lost == [("dropped", "markup of a call beside calls in the upstream's own form")]


@pytest.mark.parametrize(
    ("body", "arguments"),
    [
        ('{"name": "f", "x": 1}', "{}"),
        ('{"name": "f", "name": "g"}', "{}"),
        ('{"arguments": {"x": 1}, "name": "f", "arguments": {"y": 1}}', '{"x": 1}'),
        ('{"function": {"name": "f", "arguments": {"x": 1}}, "arguments": {"y": 1}}', '{"x": 1}'),
        ('{"function": {"name": "f", "arguments": {"x": 1}, "arguments": {}}}', '{"x": 1}'),
        ('{"name": "f", "arguments": {"x": 1}, "input": "y"}', '{"x": 1}'),
    ],
)
def test_what_stands_beside_a_calls_arguments_is_recorded(body: str, arguments: str) -> None:
    out = at_every_cut(f"<tool_call>{body}</tool_call>")
    assert out.content == [("f", arguments)]
    assert out.lost == [("dropped", "what stands beside the name and the arguments of a call")]


def test_what_only_frames_a_call_is_no_loss() -> None:
    body = '{"type": "function", "id": "1", "function": {"name": "f", "arguments": {"x": 1}}}'
    out = at_every_cut(f"<tool_call>{body}</tool_call>")
    assert (out.content, out.lost) == ([F], [])


@pytest.mark.parametrize("member", ["arguments", "input"])
def test_a_string_is_the_input_of_a_freeform_tool_that_the_upstream_knows_as_a_function(member: str) -> None:
    asked = {"model": "m", "input": "q", "tools": [{"type": "custom", "name": "cu"}], "stream": True}
    on = route("responses", "chat", answers=AnswerOptions(recover="prompt"))
    exchange = on.open(json.dumps(asked).encode())
    chain = default_chain(
        dialect("chat"), dialect("responses"), facts=exchange.facts, options=AnswerOptions(recover="prompt")
    )
    raw = sse(
        chunk({"role": "assistant"}), said(f'<tool_call>{{"name":"cu","{member}":"ls -l"}}</tool_call>'), finish(), DONE
    )
    out = b"".join([*chain.receive([raw]), *chain.receive_eof()]).decode()
    final = json.loads(out.rpartition("data: ")[2])["response"]["output"]
    assert [(item["type"], item.get("input")) for item in final] == [("custom_tool_call", "ls -l")]
