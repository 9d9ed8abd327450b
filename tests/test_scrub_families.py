"""stages.scrub.families: what each reads as a call, as reasoning, and as neither; the same at every cut."""

from typing import Any

import pytest

from stages.scrub.families import FAMILIES
from stages.scrub.families.deepseek import CALL_END, SECTION, SECTION_END
from tests.scrubbing import CALL, HIDING, MARKUP, PROMPT, F, at_every_cut, cuts, scrubbed

V3 = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{}\n```<｜tool▁call▁end｜>"
V31 = '<｜tool▁call▁begin｜>f<｜tool▁sep｜>{"x": 1}<｜tool▁call▁end｜>'
EOS = "<｜end▁of▁sentence｜>"


def section(*calls: str, glue: str = "") -> str:
    return f"<｜tool▁calls▁begin｜>{glue.join(calls)}<｜tool▁calls▁end｜>"


CALLED: dict[str, list[Any]] = {
    MARKUP: [F],
    f"Hi.\n{MARKUP}": ["Hi.\n", F],
    f"a {MARKUP} b": ["a ", F, " b"],
    f"<tool_call>\n{CALL}\n</tool_call>\n<tool_call>\n{CALL}\n</tool_call>": [F, F],
    f"<tool_call>{CALL}{CALL}</tool_call>": [F, F],
    f"<tool_call>{CALL}\n{CALL}\n</tool_call> b": [F, F, "b"],
    f"<tool_call>[{CALL}, {CALL}]</tool_call>": [F, F],
    f"<tool_call>\n{CALL}\n<tool_call>\n{CALL}\n</tool_call>": [F, F],
    f"<tool_call>\n<tool_call>\n{CALL}\n</tool_call>\n</tool_call>": [F],
    f"<tool_call>\n```json\n{CALL}\n```\n</tool_call>": [F],
    f"<tool_call>\u200b{CALL}</tool_call>": [F],
    f"<tool_call>{CALL}}}</tool_call>": [F],
    f"<tool_call>{CALL} // done\n</tool_call>": [F],
    f"<tool_call>{CALL} /* done */</tool_call>": [F],
    f"<tool_call>{CALL}": [F],
    f"<tool_call>{CALL}</tool_": [F],
    f"<tool_call>{CALL} and so on": [F, "and so on"],
    f"<tool_call id=\"a > b\" type='x'>{CALL}</tool_call>": [F],
    f'<tool_call\n id = "a" >{CALL}</tool_call>': [F],
    f'<tool_call id="">{CALL}</tool_call>': [F],
    f"<tool_call id=call_0>{CALL}</tool_call>": [F],
    f"<tool_call id = 1 type='x' n=2>{CALL}</tool_call>": [F],
    f'<tool_call id="a", type=b ,n="c">{CALL}</tool_call>': [F],
    f'<tool_call id="a \\"b>\\"" n=\'\\\'\\\\\'>{CALL}</tool_call>': [F],
    f'<tool_call note="{"n" * 300}" id={"i" * 300}>{CALL}</tool_call>': [F],
    '<tool_call id="1",name=f>{"x": 1}</tool_call>': [F],
    f"<tool_call|>{CALL}</tool_call>": [F],
    f"<tool_call|>\n[{CALL}]<tool_call|>": [F],
    f"<toolcall>{CALL}</toolcall>": [F],
    f"<tool-call>{CALL}</tool-call>": [F],
    f"<|tool_call|>{CALL}<|/tool_call|>": [F],
    f"<TOOL_CALL>{CALL}</TOOL_CALL>": [F],
    '<tool_call name="f">{"x": 1}</tool_call>': [F],
    '<tool_call name="f">{"e": 1, "name": "Bob"}</tool_call>': [("f", '{"e": 1, "name": "Bob"}')],
    '<tool_call name="f">{"name": "Bob", "input": {}}</tool_call>': [("f", '{"name": "Bob", "input": {}}')],
    f'<tool_call name="g">{CALL}</tool_call>': [F],
    '<tool_call name="f">\n<tool_call>{"x": 1}</tool_call>': [F],
    f"{MARKUP}<|im_end|>": [F],
    f"<tool_call>{CALL}<｜tool▁call▁end｜>": [F],
    f"<tool_call></tool_call>{MARKUP}": [F],
    "<｜tool▁call▁begin｜>" + CALL + "<｜tool▁call▁end｜>": [F],
    f"<｜tool▁call▁begin｜>{CALL}</tool_call>": [F],
    section(V31): [F],
    f"Ok. {V31}": ["Ok. ", F],
    f"{V31}{V31} b": [F, F, "b"],
    section(V31, V31): [F, F],
    section(V31, V31, glue="\n") + EOS: [F, F],
    section(V3): [("f", "{}")],
    section(V3, V3, glue="\n") + f"\n{EOS}": [("f", "{}")] * 2,
    section(V3.replace("\n```<", "```<")): [("f", "{}")],
    section(V31.replace("{", "```json\n{").replace("}", "}\n```")): [F],
    section(V31)[: -len("<｜tool▁calls▁end｜>")]: [F],
    section(V31).replace("<｜tool▁call▁end｜>", ""): [F],
    section(V31.replace("f<", "function<", 1)): [("function", '{"x": 1}')],
    section('<｜tool▁call▁begin｜>function<｜tool▁sep｜>```json\n{"x": 1}\n```'): [("function", '{"x": 1}')],
    "<｜tool▁calls▁begin｜><｜tool▁calls▁end｜>x": ["x"],
    f"A {MARKUP} B {section(V31)} C": ["A ", F, " B ", F, " C"],
    "<think>\nplan\n</think>\n\nAnswer": [["plan"], "Answer"],
    "<thinking>a</thinking>b": [["a"], "b"],
    '<think type="deep">a</think>b': [["a"], "b"],
    "<think/>b": ["b"],
    "<think></think>b": ["b"],
    "<think> \n </think>\n\nb": ["b"],
    "<think>r</think>x<think></think>y": [["r"], "xy"],
    "<think>a</think><think>b</think>c": [["ab"], "c"],
    "<think>a b\n\nc</think>d": [["a b\n\nc"], "d"],
    "x <think>a</think>y": ["x ", ["a"], "y"],
    "x\n<think> a</think>y": ["x\n", ["a"], "y"],
    "<think>a": [["a"]],
    "<think>a</thi": [["a</thi"]],
    "<think>a </think></think>b": [["a"], "b"],
    "<think>a</thinking>b</think>c": [["a</thinking>b"], "c"],
    "<think><think>a</think>b": [["a"], "b"],
    f"<think>a</think>{MARKUP}": [["a"], F],
    f"<think>a {MARKUP}": [["a"], F],
    f"<think>a {MARKUP}</think>": [["a"], F],
    f"<think>a {MARKUP} no</think>b": [[f"a {MARKUP} no"], "b"],
}
"""What makes calls and reasoning."""


BESIDE = "what stands beside the name and the arguments of a call"


@pytest.mark.parametrize("options", [PROMPT, HIDING])
@pytest.mark.parametrize("markup", CALLED)
def test_markup_is_read(markup: str, options: Any) -> None:
    out = at_every_cut(markup, options=options)
    assert out.content == CALLED[markup]
    assert not any("<" in delta for delta in out.deltas)
    mended = ("mended", "the JSON of a call")
    assert set(out.lost) <= {("dropped", BESIDE), ("dropped", "the markup of a call is empty"), mended}
    assert (mended in out.lost) == ("}}}</" in markup)
    assert (("dropped", BESIDE) in out.lost) == any(left in markup for left in ("done", " n=", ",n=", "note="))


def test_the_value_of_an_attribute_has_at_most_4096_characters() -> None:
    for value in ('"{}"', "{}"):
        for more in (0, 1):
            whole = f"<tool_call id={value.format('a' * (4096 + more))}>{MARKUP[11:]}"
            for size in (7, 5000):
                assert scrubbed(*cuts(whole, size)).content == ([whole] if more else [F])


def test_a_body_may_begin_with_a_bare_key() -> None:
    for key in ("name", "_n: 1, name"):
        for opener in ("<tool_call>", "<｜tool▁call▁begin｜>"):
            out = at_every_cut(f"{opener}{{{key}: 'f', arguments: {{x: 1}}}}</tool_call>")
            assert out.content == [("f", '{"x":1}')]
            assert ("dropped", BESIDE) in out.lost if "_n" in key else ("dropped", BESIDE) not in out.lost
            assert out.lost[-1] == ("mended", "the JSON of a call")


BEHIND: dict[str, list[Any]] = {
    " // done</tool_call> The answer.\nBye": [F, "The answer.\nBye"],
    " /* done</tool_call> The answer.\nBye": [F, "The answer.\nBye"],
    f"// done</tool_call>{MARKUP} a": [F, F, "a"],
    f" // done\n{CALL} /* }} */ }},\n// done\n</tool_call>": [F, F],
    "\n```\n} // done\n}</tool_call>a": [F, "a"],
    f", {CALL},{CALL},</tool_call>a": [F, F, F, "a"],
    f", {CALL}": [F, F],
    f"}} {CALL} and so on": [F, F, "and so on"],
    '{"a": "</tool_call>"}</tool_call>a': [F, "a"],
    "}</tool_": [F],
    "\n// The code:\nint x;": [F, "// The code:\nint x;"],
    "\n// The code": [F, "// The code"],
    "\n/* The */ code": [F, "/* The */ code"],
    "\n/* The code": [F, "/* The code"],
    "\n} else {": [F, "} else {"],
    "}": [F, "}"],
    "{": [F, "{"],
    ", and so on": [F, ", and so on"],
    "\n```py\nprint()\n```\na": [F, "```py\nprint()\n```\na"],
    f"\n```\n{MARKUP}\n```": [F, f"```\n{MARKUP}\n```"],
    f" // or {MARKUP}": [F, "// or ", F],
    f"}} {MARKUP}": [F, "} ", F],
    '\n{"a": 1}\nand so on': [F, '{"a": 1}\nand so on'],
    "\n{ braces } in prose": [F, "{ braces } in prose"],
    f"\n{{ braces in prose, and {MARKUP}": [F, "{ braces in prose, and ", F],
    "\n{\"a\": \"<tool_call>{'name': 'f'}\"}": [F, "{\"a\": \"<tool_call>{'name': 'f'}\"}"],
    f"\n{{}}\n```\n{MARKUP}\n```": [F, f"{{}}\n```\n{MARKUP}\n```"],
}
"""What becomes of what stands behind a body."""


@pytest.mark.parametrize("behind", BEHIND)
def test_behind_a_body_that_its_closer_does_not_follow_all_is_text(behind: str) -> None:
    out = at_every_cut(f"<tool_call>{CALL}{behind}")
    assert out.content == BEHIND[behind]
    lost = [("dropped", BESIDE)] if "done" in behind else []
    if behind in ("}</tool_", f"}} {CALL} and so on") or "} */ }" in behind or "}</tool_call>a" in behind[4:]:
        lost = sorted([*lost, ("mended", "the JSON of a call")])
    assert sorted(out.lost) == (
        [("dropped", "the markup of a call names no tool")]
        if '{"a": "<' in behind and "so" not in behind and "'name'" not in behind
        else lost
    )


@pytest.mark.parametrize("behind", ["\n```\na", "}<｜tool▁call▁begin｜>a", "}{", "} a", "// a"])
def test_so_it_is_behind_a_body_of_deepseeks(behind: str) -> None:
    markup = V31.removesuffix(CALL_END[0])
    assert at_every_cut(f"{markup}{behind}").content == [F, behind.lstrip()]
    assert at_every_cut(f"{markup}}} // a {CALL_END[0]}a").content == [F, "a"]


def test_a_fence_that_the_markup_opened_ends_with_it() -> None:
    for opener in ("<tool_call>", "<｜tool▁call▁begin｜>f<｜tool▁sep｜>"):
        body = CALL if opener == "<tool_call>" else '{"x": 1}'
        assert at_every_cut(f"{opener}```json\n{body}\n```\na").content == [F, "a"]
        assert at_every_cut(f"{opener}```json\n{body}\n```\n```\na").content == [F, "```\na"]


PROSE = [
    "The prefix <tool_call matters, and a > b too.",
    "The prefix <tool_call is",
    "Wrap the JSON in a <tool_call> tag and close it.",
    "Write <tool_call> and </tool_call> around it.",
    "Always end with </tool_call> and stop.",
    "<tool_calls>none</tool_calls>",
    "The key <tool_calls> holds <tool_callable>x</tool_callable>.",
    "<tool_call_id>42</tool_call_id> <tool_call-x>42</tool_call-x> <tool_call.x>",
    "<tool_call>[1] and [a] are references",
    "<tool_call>{ 1 is a set, {} too",
    "<tool_call>[X] and [a] are references too",
    "<tool_call>\n",
    "<tool_call> `code` follows",
    "<tool_call><b>bold</b>",
    "<tool_call / > and <tool_call | >",
    '<tool_call id="a"b>',
    "<tool_call id=a>: so it opens",
    "<tool_call id=a b>{}",
    '<tool_call id=a"b">{}',
    "<tool_call id= >{}",
    "<tool_call id>{}",
    "<tool_call , id=a>{}",
    '<tool_call id="a',
    "<tool_call id=a",
    f"<tool_call {'a' * 300}=",
    'He wrote "<tool_call>{\\"name\\": \\"f\\"}</tool_call>".',
    "&lt;tool_call&gt;{}",
    "＜tool_call＞{}",
    "<thinker>no</thinker> <thin>k</thin> <think about it>",
    "The model prints <think> before it reasons, and </think> behind.",
    "End with <think>, please, or with <thinking>",
    "<THINK>shout</THINK>ok",
    "The token <｜tool▁calls▁begin｜> opens, <｜tool▁call▁begin｜> too.",
    "<｜tool▁call▁begin｜>function<｜tool▁sep｜><steptml:invoke>",
    "<｜tool▁call▁begin｜>a name\nof more lines",
    "<｜tool▁call▁begin｜>f<｜tool▁sep｜>no JSON",
    "<｜tool▁call▁begin｜>f<｜tool▁sep｜>a<｜tool▁call▁begin｜> and <｜tool▁call▁end｜> too",
    "A <｜tool▁call▁begin｜>call<｜tool▁call▁end｜> has no separator.",
    '<tool_response>\n{"name": "f"}\n</tool_response>',
    "Use `<think>` and `<tool_call>{}</tool_call>`.",
    f"Use ``a`{MARKUP}`` so.",
    f"```\n{MARKUP}\n```\n",
    f"~~~xml\n{MARKUP}\n~~~",
    f"- so:\n  ```\n  <think>x</think>\n  {MARKUP}\n  ```\n",
    f"```\n```py\n{MARKUP}",
    f"````\n```\n{MARKUP}\n````",
]
"""What speaks of markup."""


@pytest.mark.parametrize("options", [PROMPT, HIDING])
@pytest.mark.parametrize("prose", PROSE)
def test_prose_that_speaks_of_markup_is_text(prose: str, options: Any) -> None:
    out = at_every_cut(prose, options=options)
    assert out.content == [prose]
    assert out.lost == []


@pytest.mark.parametrize(
    ("whole", "shown"),
    [
        ("Maybe 4.</think>It is 4.", "Maybe 4.It is 4."),
        ("Done.</tool_call>", "Done."),
        ("Done. </tool_call>", "Done. "),
        ("Done.\n</tool_call>\nBye", "Done.\n\nBye"),
        (f"Done.{CALL_END[0]}{SECTION_END[0]}{EOS}", "Done."),
        ("Done.<|im_end|>", "Done."),
        ("<tool_call|>Done.", "Done."),
    ],
)
def test_a_closer_that_lacks_its_opener_is_dropped_only_where_residue_is_hidden(whole: str, shown: str) -> None:
    assert "".join(at_every_cut(whole, options=HIDING).content) == shown
    assert at_every_cut(whole, options=PROMPT).content == [whole]


@pytest.mark.parametrize("opener", SECTION)
def test_every_spelling_of_the_section_opens_it(opener: str) -> None:
    assert at_every_cut(f"{opener}{V31}", options=PROMPT).content == [F]


@pytest.mark.parametrize(
    ("markup", "reason"),
    [
        ("<tool_call></tool_call>", "the markup of a call is empty"),
        ("<tool_call/>", "the markup of a call is empty"),
        ("<tool_call>[]</tool_call>", "the markup of a call is empty"),
        ("<tool_call>{}</tool_call>", "the markup of a call names no tool"),
        ('<tool_call>{"name": " "}</tool_call>', "the markup of a call names no tool"),
        ('<tool_call>{"name": 3, "arguments": {}}</tool_call>', "the markup of a call names no tool"),
        ('<tool_call>{"arguments": {"x": 1}}</tool_call>', "the markup of a call names no tool"),
        ("<tool_call>{nonsense</tool_call>", "what stands in the markup of a call is no JSON object"),
        ('<tool_call>{"a" b "}"}</tool_call>', "what stands in the markup of a call is no JSON object"),
        ("<tool_call>[{}, 1]</tool_call>", "what stands in the markup of a call is no JSON object"),
        ('<tool_call>{"name": "f", "arguments": [1]}</tool_call>', "the arguments of a call are no JSON object"),
        ('<tool_call>{"name": "f", "arguments": "go"}</tool_call>', "the arguments of a call are no JSON object"),
        ('<tool_call>{"name": "f", "arguments": {"x": 1e400}}</tool_call>', "no JSON object"),
        (V31.replace("f<", "<", 1), "the markup of a call names no tool"),
        (V31.replace("1", "1 2"), "the arguments of a call are no JSON object"),
        *(
            (f"{V31[: V31.index('{')]}{hopeless}{closer}", "the arguments of a call are no JSON object")
            for hopeless in (
                "nil",
                '[{"x": 1}]',
                '"{}"',
                "ls -l",
                "```json\nnil\n```",
                "``",
                "a <tool_call> b",
            )
            for closer in (CALL_END[0], SECTION_END[0])
        ),
        (V3.replace("f\n", "my tool\n"), "the arguments of a call are no JSON object"),
        (V3.replace("f\n", "f" * 300 + "\n"), "the arguments of a call are no JSON object"),
        (section(V3.replace("{}", "nil"), V3.replace("{}", "no")), "the arguments of a call are no JSON object"),
    ],
)
def test_a_body_that_makes_no_call_leaves_no_trace_but_in_the_ledger(markup: str, reason: str) -> None:
    out = at_every_cut(f"a {markup} b", options=PROMPT)
    assert out.content == ["a  b"]
    assert {action for action, _ in out.lost} == {"dropped"}
    assert any(reason in said for _, said in out.lost)


def test_where_two_families_know_an_opener_one_comes_first() -> None:
    names = [family.name for family in FAMILIES]
    assert len(names) == len(set(names))
    assert all(family.openers for family in FAMILIES)
