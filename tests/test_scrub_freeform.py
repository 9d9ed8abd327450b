"""stages.scrub: the input of a freeform tool, however a model writes it: raw, in a fence, in JSON, encoded twice."""

import json
from typing import Any

import pytest
from attrs import evolve

from pipeline.events import ArgumentsDelta, ToolKind
from pipeline.message import ToolUse
from pipeline.route import AnswerOptions
from pipeline.testing import play
from stages.scrub import TagScrubber
from stages.scrub.calls import LEFT, NO_ARGUMENTS
from tests.exchange import answered, route, whole
from tests.scrubbing import MARKUP, PROMPT, SIZES, F, Scrubbed, at_every_cut, cuts, said
from tests.support import DONE, finish, sse
from tests.support import text as spoken

EARLY = evolve(PROMPT, stream_calls=True)
V31, V3 = "<｜tool▁call▁begin｜>cu<｜tool▁sep｜>", "<｜tool▁call▁begin｜>function<｜tool▁sep｜>cu\n"
ENDED, SECTION_ENDED = "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"

PATCH = '*** Begin Patch\n*** Add File: a.py\n+print("}")  # it\'s {so}\n*** End Patch'
RAW = {
    "ls -l": "ls -l",
    "\nls -l\n": "ls -l",
    "  a\n  b": "  a\n  b",
    PATCH: PATCH,
    "```json\nls -l\n```": "ls -l",
    "\n```\nls -l```": "ls -l",
    f"~~~diff\n{PATCH}\n~~~": PATCH,
    "{ echo hi; }": "{ echo hi; }",
    "{ echo hi; } && ls": "{ echo hi; } && ls",
    "{ echo it's; }": "{ echo it's; }",
    "```sh\n{ echo hi; }\n```": "{ echo hi; }",
    "[1, 2]": "[1, 2]",
    "<b>bold</b> <tool_call> `x`": "<b>bold</b> <tool_call> `x`",
    '"ls -l"': "ls -l",
    '"a\\nb\\ud800"': "a\nb\ufffd",
    '"a" + "b"': '"a" + "b"',
    '{"input": "ls -l"}': "ls -l",
    "{'input': 'ls -l',}": "ls -l",
    "{'a': 'ls -l'}": "{'a': 'ls -l'}",
    "{\u201ca\u201c: 1}": "{\u201ca\u201c: 1}",
    '```json\n{"input": "ls -l"}\n```': "ls -l",
    '{"input": "a<｜tool▁call▁end｜>b"}': "a<｜tool▁call▁end｜>b",
    json.dumps(json.dumps({"input": "ls -l"})): "ls -l",
}
"""What may stand in DeepSeek's markup, and the input that it is."""


@pytest.mark.parametrize("options", [PROMPT, EARLY])
@pytest.mark.parametrize("raw", RAW)
def test_what_stands_in_deepseeks_markup_is_the_input_of_a_freeform_tool(raw: str, options: AnswerOptions) -> None:
    for opener in (V31, V3):
        for closer in (ENDED, SECTION_ENDED):
            text = f"a {opener}{raw}{closer} b"
            for parts in ([text], *(cuts(text, size) for size in SIZES)):
                out = Scrubbed(options, freeform=("cu",)).give(*said(*parts))
                (before, (name, given), behind) = out.content
                assert (before, name, given, behind.strip()) == ("a ", "cu", RAW[raw], "b")
                assert [part.kind for part in out.message.content if isinstance(part, ToolUse)] == [ToolKind.CUSTOM]
                assert out.lost == (
                    [("mended", "the JSON of a call")]
                    if "\ufffd" in given or (raw[1] == "'" and given == "ls -l")
                    else []
                )


@pytest.mark.parametrize("raw", ["", "\n", "```\n```", " "])
def test_a_freeform_call_without_input_is_none(raw: str) -> None:
    for opener in (V31, V3):
        out = at_every_cut(f"a {opener}{raw}{ENDED} b", freeform=("cu",))
        assert (out.content, out.lost) == (["a  b"], [("dropped", NO_ARGUMENTS.reason)])


@pytest.mark.parametrize("options", [PROMPT, EARLY])
def test_a_freeform_body_that_nothing_ends_is_shown_or_hidden_as_any(options: AnswerOptions) -> None:
    hiding = evolve(options, unfinished="hide")
    for opener in (V31, V3):
        for raw in ("ls -l", "{ echo it's; }", "{", '"', f"ls {V31}ls"):
            assert at_every_cut(f"{opener}{raw}", options=options, freeform=("cu",)).content == [f"{opener}{raw}"]
            out = at_every_cut(f"{opener}{raw}", options=hiding, freeform=("cu",))
            assert out.content == ([f"{opener}ls "] if raw.startswith("ls <") else [])
            assert out.lost == [("dropped", "markup of a call that the end of the answer cut")]


TAGS = ('<tool_call name="cu">', "<toolcall\nname = 'cu' id=1>", "<tool_call name=cu|>")
TAGGED = {raw: given for raw, given in RAW.items() if ENDED not in raw} | {
    "<p>{</p>": "<p>{</p>",
    "\r\n<b>": "<b>",
    "`ls`": "`ls`",
    "a `</x>` <": "a `</x>` <",
    "[]": "[]",
    "```two words {": "```two words {",
}
"""The same in a tag that names the tool."""


@pytest.mark.parametrize("options", [PROMPT, EARLY])
@pytest.mark.parametrize("raw", TAGGED)
def test_what_stands_in_a_tag_that_names_a_freeform_tool_is_its_input(raw: str, options: AnswerOptions) -> None:
    for opener in TAGS:
        for before, closer in (("a\n", "</tool_call>"), ("a", "</toolcall>"), ("", "<tool_call|>")):
            out = at_every_cut(f"{before}{opener}{raw}{closer} b", options=options, freeform=("cu",))
            assert [one.strip() if isinstance(one, str) else one for one in out.content] == [
                *filter(None, [before.strip()]),
                ("cu", TAGGED[raw]),
                "b",
            ]
            assert [action for action, _ in out.lost] == (
                ["mended"] if "\ufffd" in TAGGED[raw] or (raw[1] == "'" and TAGGED[raw] == "ls -l") else []
            )


def test_what_the_tag_of_free_text_says_besides_is_recorded() -> None:
    out = at_every_cut('<tool_call name="cu" path=x>ls</tool_call>', freeform=("cu",))
    assert (out.content, out.lost) == ([("cu", "ls")], [("dropped", LEFT.reason)])


@pytest.mark.parametrize("raw", ["", "\n", "```\n```\n"])
def test_a_tag_of_a_freeform_tool_without_input_is_no_call(raw: str) -> None:
    out = at_every_cut(f"a\n{TAGS[0]}{raw}</tool_call> b", freeform=("cu",))
    assert out.content == ["a\n b"]
    assert [action for action, _ in out.lost] == ["dropped"]


@pytest.mark.parametrize(
    "prose",
    [
        "Use <tool_call name='cu'> to call it, and </tool_call> behind it.",
        "Use <tool_call name='cu'> .",
        "<tool_call name='f'>ls</tool_call>",
        "<tool_call name='cu'>",
        "<tool_call name='cu'>\nls -l",
    ],
)
def test_other_text_behind_a_tag_stays_text(prose: str) -> None:
    assert at_every_cut(prose, freeform=("cu",)).content == [prose]


def test_free_text_in_which_another_call_begins_is_none() -> None:
    out = at_every_cut(f"{TAGS[0]}ls -l\n{MARKUP}b", freeform=("cu",))
    assert out.content == [f"{TAGS[0]}ls -l\n", F, "b"]


def test_of_free_text_that_breaks_off_nothing_is_called() -> None:
    out = at_every_cut(f"a {TAGS[0]}\nls -l", freeform=("cu",), options=evolve(PROMPT, unfinished="hide"))
    assert (out.content, [action for action, _ in out.lost]) == (["a "], ["dropped"])


TWICE: dict[str, str] = {
    json.dumps({"input": "ls -l"}): "ls -l",
    f" {json.dumps({'input': 'ls'})}\n": "ls",
    json.dumps({"input": ["ls"]}): json.dumps({"input": ["ls"]}),
    json.dumps({"input": "ls", "x": 1}): json.dumps({"input": "ls", "x": 1}),
    '{"input": "ls"} and so on': '{"input": "ls"} and so on',
    '"ls"': '"ls"',
    "{ ls; }": "{ ls; }",
}
"""Strings that a freeform tool may be given, and its input."""


@pytest.mark.parametrize("member", ["arguments", "input"])
@pytest.mark.parametrize("text", TWICE)
def test_input_that_was_encoded_twice_is_decoded(text: str, member: str) -> None:
    body = json.dumps({"name": "cu", member: text})
    for options in (PROMPT, EARLY):
        for markup in (f"<tool_call>{body}</tool_call>", f"<｜tool▁call▁begin｜>{body}{ENDED}"):
            out = at_every_cut(markup, options=options, freeform=("cu",))
            assert (out.content, out.lost) == ([("cu", TWICE[text])], [])


@pytest.mark.parametrize("options", [PROMPT, EARLY])
@pytest.mark.parametrize(
    "markup",
    [
        f"{V31}ls -l{ENDED}",
        f"{V3}```\nls -l\n```{ENDED}",
        '<tool_call>{"name": "cu", "arguments": "{\\"input\\": \\"ls -l\\"}"}</tool_call>',
        '<tool_call name="cu" input="ls -l"/>',
    ],
)
def test_streamed_and_whole_a_client_gets_one_input_over_every_upstream(markup: str, options: Any) -> None:
    asked = {"model": "m", "input": "q", "tools": [{"type": "custom", "name": "cu"}]}
    streams = [sse(*map(spoken, cuts(markup, size)), finish(), DONE) for size in (1, 3, 1000)]
    for raw, streamed in ((whole(content=markup), False), *((stream, True) for stream in streams)):
        on = route("responses", "chat", answers=options)
        got = answered(on.open(json.dumps({**asked, "stream": streamed}).encode()), raw)
        body = got.body.decode()
        final = json.loads(body.rpartition("data: ")[2])["response"] if streamed else json.loads(body)
        assert [(item["type"], item.get("input")) for item in final["output"]] == [("custom_tool_call", "ls -l")]


OBJECTS: dict[str, tuple[str, bool]] = {
    '{"name": "cu"}': ("", False),
    '{"name": "cu", "arguments": null}': ("", False),
    '{"name": "cu", "arguments": {}}': ("", False),
    '{"name": "cu", "arguments": {"input": "ls"}}': ("ls", False),
    '{"name": "cu", "arguments": {"cmd": "ls"}}': ("ls", True),
    '{"name": "cu", "arguments": {"x": 1, "input": "ls"}}': ("ls", True),
    '{"name": "cu", "arguments": {"x": "a", "y": "b"}}': ('{"x": "a", "y": "b"}', False),
    '{"name": "cu", "arguments": {"input": ["ls"]}}': ('{"input": ["ls"]}', False),
}
"""Bodies that call a freeform tool with an object or with nothing: its input, and whether something stood beside it."""


@pytest.mark.parametrize("options", [PROMPT, EARLY])
@pytest.mark.parametrize("body", OBJECTS)
def test_an_object_or_nothing_is_one_input_whether_the_tool_is_wrapped_or_not(body: str, options: Any) -> None:
    (text, left), markup = OBJECTS[body], f"<tool_call>{body}</tool_call>"
    out = at_every_cut(markup, options=options, freeform=("cu",))
    assert out.content == [("cu", text)]
    assert bool(out.lost) is left
    wrapped = TagScrubber(options=options, tools={"cu": {}}, wrapped=("cu",))
    made = [event for step in play(wrapped, said(*cuts(markup, 3))) for event in step]
    given = "".join(event.text for event in made if isinstance(event, ArgumentsDelta))
    assert json.loads(given) == {"input": text}
