"""What stands between a whole body and its closer: it is recorded and never shown, but what speaks of it is prose."""

from typing import Any

import pytest
from attrs import evolve

from stages.scrub.calls import LEFT
from stages.scrub.families.deepseek import CALL_END, SECTION_END
from stages.scrub.families.hermes import CLOSERS
from tests.scrubbing import CALL, HIDING, MARKUP, PROMPT, F, Scrubbed, at_every_cut, cuts, said, scrubbed

EARLY = evolve(PROMPT, stream_calls=True)
BESIDE = ("dropped", LEFT.reason)
MENDED = ("mended", "the JSON of a call")
O, E = "<tool_call>", "</tool_call>"  # noqa: E741
B, S, D = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"
SB, SE = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
G = ("g", '{"y": 2}')
OTHER = '{"name": "g", "arguments": {"y": 2}}'

JUNK = {
    "]": MENDED,
    ";": MENDED,
    "};": MENDED,
    "}\n]": MENDED,
    ")": BESIDE,
    '"': BESIDE,
    ".": BESIDE,
    "`": BESIDE,
    "\n# note\n": BESIDE,
    "\n(calling f)\n": BESIDE,
    "\n```\nsome words": BESIDE,
    "\n\na\n\nb < c\n": BESIDE,
    " Use `x` \n": BESIDE,
    "<!-- x -->": BESIDE,
    "{ return x; }": BESIDE,
    "\n" + "a " * 64: BESIDE,
}
"""What may stand there, and what is recorded of it."""


@pytest.mark.parametrize("options", [PROMPT, EARLY])
@pytest.mark.parametrize("junk", JUNK)
def test_a_closer_is_never_shown_for_what_stands_before_it(junk: str, options: Any) -> None:
    for opener, body, closer in (
        (f"{O}\n", CALL, E),
        ("<tool_call name=f>", '{"x": 1}', E),
        (f"{SB}{B}f{S}", '{"x": 1}', f"{D}{SE}"),
        (f"{B}function{S}f\n```json\n", '{"x": 1}\n```', D),
    ):
        for line in ("", "\n"):
            if body.endswith(junk):  # a mark more ends the fence as well
                continue
            out = at_every_cut(f"a {opener}{body}{junk}{line}{closer}\nb", options=options)
            assert out.content == ["a ", F, "\nb"]
            assert out.lost == [JUNK[junk]]


@pytest.mark.parametrize("closer", [*CLOSERS, *CALL_END, *SECTION_END])
def test_so_it_is_with_every_closer(closer: str) -> None:
    deep = closer not in CLOSERS
    opener, body = (f"{B}f{S}", '{"x": 1}') if deep else (O, CALL)
    out = at_every_cut(f"a {opener}{body}\nso\n{closer}b")
    assert (out.content, out.lost) == (["a ", F, "b"], [BESIDE])


@pytest.mark.parametrize(
    "words",
    [
        f"The tag `{E}` ends it",
        f"`{E}`",
        f"With `a {E} b`\nand `more`",
        f"See ``a ` {E}`` too",
        f"Use {O} and {E} tags",
        f"Example:\n```\n{E}\n```\nb",
        f"{'a ' * 65}{E} b",
        f"{'a' * 65}\n{E} b",
        f"and {MARKUP[:-12]}",
        f"then\n{OTHER}\nso",
        'then {"name": 1} so',
        "{ return x; and so on",
        "and so on",
    ],
)
@pytest.mark.parametrize("options", [PROMPT, EARLY])
def test_words_that_only_speak_of_a_closer_are_the_readers(words: str, options: Any) -> None:
    out = at_every_cut(f"{O}{CALL}\n{words}", options=options)
    shown = "".join(part for part in out.content if isinstance(part, str))
    assert (out.content[0], shown) == (F, words.replace(MARKUP[:-12], ""))
    assert out.lost == []


def test_a_closer_may_follow_behind_one_that_is_quoted() -> None:
    out = at_every_cut(f"{O}{CALL}\nThe tag `{E}` ends it.\n{E} b")
    assert (out.content, out.lost) == ([F, "b"], [BESIDE])


def test_a_backtick_too_many_opens_no_code() -> None:
    for behind in ("\n", " Use `x` now", "b ` c"):
        for before in ("`", "``"):
            out = at_every_cut(f"{O}{CALL}{before}{E}{behind}")
            assert (out.content, out.lost) == ([F, behind.strip()] if behind.strip() else [F], [BESIDE])


@pytest.mark.parametrize("options", [PROMPT, HIDING, EARLY])
@pytest.mark.parametrize(
    ("between", "lost"),
    [
        ("};\n", [MENDED]),
        (";", [MENDED]),
        ("]\n", [MENDED]),
        ("\nthen\n", [BESIDE]),
        ("}, and `x`:\n", [BESIDE, MENDED]),
        ("\n```\n```json\n", []),
        ("``` ```", []),
        ("\n```\n~~~python\n", [BESIDE]),
        ("\n```\nand\n```json\n", [BESIDE]),
    ],
)
def test_another_body_in_the_same_tag_makes_its_call(between: str, lost: list[Any], options: Any) -> None:
    for body in (f"{CALL}{between}{OTHER}", f"```json\n{CALL}{between}{OTHER}\n```"):
        if "`" in between and body[0] != "`":
            continue
        out = at_every_cut(f"{O}\n{body}\n{E}\nb", options=options)
        assert out.content == [F, G, "b"]
        assert sorted(out.lost) == lost


def test_words_are_held_back_only_while_a_closer_may_be_near() -> None:
    for begun, most in ((" ", 64), ("\n```\n", 70), ("// ", 1030), ("/* ", 1030), ("{ a ", 70), ("{ a: b; ", 72)):
        whole = f"{O}{CALL}{begun}{'word' * 600}"
        stage, held = Scrubbed().stage(), []
        for event in said(*cuts(whole, 1))[:-2]:
            stage.receive([event])
            held.append(stage.held)
        assert max(held[len(O + CALL) + 4 :]) <= most + len(begun) + 1
        assert scrubbed(whole).content == [F, whole[len(O + CALL) :].lstrip()]


def test_a_key_of_another_body_need_stand_in_no_quotes() -> None:
    for value in ("1", "-1", "'a'", "“a”", "True", "null", "{}", "[]", '<|"|>a<|"|>'):
        out = at_every_cut(
            f"{O}{CALL}\n{{arguments: {{x: 1}}, name: 'f', _n : {value}}}\n{{ a : {value}, name: 'g'}}{E}b"
        )
        assert out.content == [F, ("f", '{"x":1}'), ("g", "{}"), "b"]
