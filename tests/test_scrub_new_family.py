"""A new family is a file of data and a small parser: XML with values by schema, ids, weak markup, answer frames."""

import json
import re
from collections.abc import Generator
from typing import Any

import pytest
from attrs import define, evolve, field

from pipeline.errors import ClientError
from pipeline.events import ToolUseBlock
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.testing import play
from stages.scrub import TagScrubber
from stages.scrub.families import FAMILIES
from stages.scrub.grammar import (
    Answering,
    Call,
    Family,
    Found,
    Place,
    Refused,
    Source,
    Thinking,
    behind_blanks,
    one_of,
    skip,
    until,
    word,
)
from stages.scrub.json_body import body
from stages.scrub.objects import objects
from tests.canonical import BEGIN, END, TEXT, args, start, stop, text
from tests.scrubbing import CALL, MARKUP, PROMPT, F, Scrubbed, cuts, said

NAME = re.compile(r"\w*")


def xml(source: Source, place: Place) -> Generator[Found | None, None, None]:
    """`<tool_call><function=NAME><parameter=KEY>VALUE</parameter>...`: under an opener that another family has too."""
    yield from skip(source)
    if not (yield from one_of(source, ("<function=",))):
        raise Refused
    name, _ = yield from until(source, (">",))
    types = place.tools.get(name, {}).get("properties", {})
    values: dict[str, Any] = {}
    while (yield from behind_blanks(source, ("<parameter=",))):
        key, _ = yield from until(source, (">",))
        value, _ = yield from until(source, ("</parameter>", "</function>"))
        value = value.removeprefix("\n").removesuffix("\n")
        values[key] = json.loads(value) if types.get(key, {}).get("type") == "integer" else value
    yield Call(name, json.dumps(values))
    yield from behind_blanks(source, ("</function>",))
    yield from behind_blanks(source, ("</tool_call>",))


def kimi(source: Source, place: Place) -> Generator[Found | None, None, None]:
    """`<|call|>NAME:INDEX<|args|>{...}<|end|>`: the id is the model's."""
    name = yield from word(source, NAME)
    if not (yield from one_of(source, (":",))):
        raise Refused
    at = yield from word(source, NAME)
    if not (yield from one_of(source, ("<|args|>",))):
        raise Refused
    read = yield from body(source, ("<|end|>",), place.limits.json_depth)
    yield Call(name, read.text, f"{name}:{at}")
    yield from behind_blanks(source, ("<|end|>",))


def bare(source: Source, place: Place) -> Generator[Found | None, None, None]:
    """A whole answer in JSON."""
    if not place.behind:
        raise Refused
    source.text, source.at = "{" + source.text[source.at :], 0
    read = yield from body(source, (), place.limits.json_depth)
    (found,) = objects(read, place.limits.json_depth)
    if found is None or "name" not in found:
        raise Refused
    yield Call(found["name"].value, found["arguments"].text)


def channel(source: Source, place: Place) -> Generator[Found | None, None, None]:
    """`<|channel|>analysis<|message|>` opens reasoning, `<|channel|>final<|message|>` the answer."""
    name = yield from word(source, NAME)
    if not (yield from one_of(source, ("<|message|>",))):
        raise Refused
    yield Thinking(("<|end|>",)) if name == "analysis" else Answering()


MORE = (
    Family(name="xml", openers=("<tool_call>",), parse=xml),
    Family(name="kimi", openers=("<|call|>",), parse=kimi),
    Family(name="bare", openers=("{",), parse=bare, weak=True),
    Family(name="channel", openers=("<|channel|>",), parse=channel, reasoning=True),
)
TOOLS = {"f": {"properties": {"x": {"type": "integer"}}}, "g": {}}
XML = "<tool_call>\n<function=f>\n<parameter=x>\n1\n</parameter>\n</function>\n</tool_call>"


@define
class More(Scrubbed):
    """The same, with more families."""

    families: tuple[Family, ...] = (*FAMILIES, *MORE)
    tools: dict[str, Any] = field(factory=lambda: TOOLS)

    def stage(self) -> TagScrubber:
        return TagScrubber(options=self.options, tools=self.tools, families=self.families, ledger=self.ledger)


def content(whole: str, options: Any = PROMPT) -> list[Any]:
    """What becomes of a text, the same at every cut."""
    first: list[Any] = More(options).give(*said(whole)).content
    for size in range(1, len(whole)):
        assert More(options).give(*said(*cuts(whole, size))).content == first
    return first


def test_two_families_under_one_opener_are_told_apart_by_what_follows() -> None:
    assert content(f"a {XML}{MARKUP}") == ["a ", F, F]
    assert content(MARKUP) == [F]
    assert content("<tool_call> is a tag") == ["<tool_call> is a tag"]


def test_values_go_by_the_schema_of_the_tool() -> None:
    text_ = "<tool_call><function=g><parameter=x>\n\n1 </tool_call>\n</parameter></function></tool_call>"
    assert content(text_) == [("g", '{"x": "\\n1 </tool_call>"}')]
    assert content(XML) == [F]


def test_an_id_that_the_model_gave_is_kept_once() -> None:
    call = '<|call|>f:0<|args|>{"x": 1}<|end|>'
    out = More().give(*said(f"{call}{call}<|call|>f:1<|args|>{{}}<|end|>"))
    assert out.ids == ["f:0", "f:0_2", "f:1"]
    assert out.lost == [("renamed", "two calls have the same id")]


def test_weak_markup_makes_a_call_only_on_demand_and_only_of_a_tool_that_is_offered() -> None:
    weak = evolve(PROMPT, weak=("bare",))
    assert content(CALL) == [CALL]
    assert content(CALL, weak) == [F]
    other = '{"name": "Alice", "arguments": {}}'
    assert content(other, weak) == [other]
    assert content(f"a {CALL}", weak) == [f"a {CALL}"]
    assert content("{} is empty", weak) == ["{} is empty"]


def test_weak_markup_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ClientError, match="there is no weak markup 'fence'; there is: none"):
        TagScrubber(options=evolve(PROMPT, weak=("fence",)))
    other = Family(name="a", openers=("a:",), parse=bare, weak=True)
    with pytest.raises(ClientError, match=r"there is: a, bare$"):
        TagScrubber(options=evolve(PROMPT, weak=("fence",)), families=(*MORE, other))


def test_a_family_may_open_reasoning_and_the_answer() -> None:
    whole = "<|channel|>analysis<|message|>a<|end|><|channel|>final<|message|>b"
    assert content(whole) == [["a"], "b"]
    assert More(tools={}).give(*said(whole)).content == [["a"], "b"]
    events = More().give(*said(whole)).events
    assert events[-4:-1] == [start(1, TEXT), text(1, "b"), stop(1)]


PLACED = "<here>"


def placed(*parts: str, tools: dict[str, Any] = TOOLS, limits: Limits = DEFAULT_LIMITS) -> list[Place]:
    """Where a parser is told that its openers stand."""
    places: list[Place] = []

    def parse(source: Source, place: Place) -> Generator[Found | None, None, None]:
        places.append(place)
        yield from ()
        raise Refused

    here = Family(name="here", openers=(PLACED,), parse=parse)
    scrubber = TagScrubber(options=PROMPT, tools=tools, limits=limits, families=(*FAMILIES, here))
    play(scrubber, *said(*parts))
    return places


@pytest.mark.parametrize(
    ("before", "line", "glued", "behind", "shown"),
    [
        ("", True, False, True, False),
        (" \n", True, False, True, False),
        ("a", False, True, False, False),
        ("a ", False, False, False, False),
        ("a\n", True, False, False, False),
        ("a\n ", True, False, False, False),
        (f"a {MARKUP}", True, False, True, False),
        (f"a {MARKUP} ", True, False, True, False),
        (f"a{MARKUP}b", False, True, False, False),
        (f"<think>a</think>{MARKUP}", True, False, True, False),
        ("<tool_call is", False, True, False, True),
        ("<tool_call is </tool_call> a ", False, False, False, False),
        ("<tool_call is, <tool_call is </tool_call> a ", False, False, False, True),
        ("<tool_call is </tool_call> <tool_call is", False, True, False, True),
    ],
)
def test_a_parser_is_told_where_its_opener_stands(
    before: str, line: bool, glued: bool, behind: bool, shown: bool
) -> None:
    limits = Limits(json_depth=9)
    (place,) = placed(f"{before}{PLACED}", limits=limits)
    due = Place(opener=PLACED, line=line, glued=glued, behind=behind, shown=shown, tools=TOOLS, limits=limits)
    due = evolve(due, openings=place.openings)
    assert place == due
    assert (place.shown, place.behind) == (shown, behind)
    assert placed(before, PLACED, limits=limits) == [due]
    assert "<tool_call" in place.openings.tokens


def test_what_has_made_something_is_no_other_familys() -> None:
    def first(source: Source, place: Place) -> Generator[Found | None, None, None]:
        yield from until(source, (";",))
        yield Call("f", "{}")
        raise Refused

    def second(source: Source, place: Place) -> Generator[Found | None, None, None]:
        yield Call("g", "{}")

    families = tuple(Family(name=parse.__name__, openers=("<x>",), parse=parse) for parse in (first, second))
    assert More(families=families).give(*said("a<x>;bcde")).content == ["a", ("f", "{}"), "bcde"]


def test_markup_that_makes_calls_may_open_reasoning_too() -> None:
    def parse(source: Source, place: Place) -> Generator[Found | None, None, None]:
        yield Call("f", "{}")
        yield Thinking(("<y>",))

    families = (Family(name="both", openers=("<x>",), parse=parse),)
    assert More(families=families).give(*said("a<x>b<y>c")).content == ["a", ("f", "{}"), ["b"], "c"]


def test_a_first_character_that_is_no_markup_ends_the_blanks_of_its_line() -> None:
    assert content(f"a\n{{~~~\n{MARKUP}", evolve(PROMPT, weak=("bare",))) == ["a\n{~~~\n", F]


def test_an_id_that_the_model_gave_differs_from_the_upstreams_own() -> None:
    own = [start(1, ToolUseBlock("f:0", "g")), args(1, "{}"), stop(1)]
    markup = [start(0, TEXT), text(0, "<|call|>f:0<|args|>{}<|end|>"), stop(0)]
    assert More().give(BEGIN, *own, *markup, END).ids == ["f:0", "f:0_2"]
