"""The grammar of a Chat stream: each rule of the table is broken once, and alone."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.dialects.chat.grammar import GRAMMAR, RULES
from tests.breaches import check_table

Json = dict[str, Any]


def chunk(delta: Any, finish: Any = None, **members: Any) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **members}


def call(index: Any = 0, **members: Any) -> Json:
    return chunk({"tool_calls": [{"index": index, **members}]})


def opens(index: Any = 0, name: str = "a", **members: Any) -> Json:
    entry = {"id": name, "type": "function", "function": {"name": "f", "arguments": "{}"}, **members}
    return call(index, **{key: value for key, value in entry.items() if value is not None})


def counts(prompt: int = 1, completion: int = 2, **members: Any) -> Json:
    told = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": 3, **members}
    return chunk({}, choices=[], usage=told)


ROLE = chunk({"role": "assistant", "content": None})
HI = chunk({"content": "hi"})
STOP, TOOLS, LENGTH = chunk({}, "stop"), chunk({}, "tool_calls"), chunk({}, "length")
OLDER = chunk({}, "function_call")
DONE = "[DONE]"
ERROR = {"error": {"message": "boom"}}
CITED = chunk({"annotations": [{}]})


def signed(**members: Any) -> Json:
    return chunk({"reasoning_details": [{"index": 0, **members}]})


def older(**members: Any) -> Json:
    return chunk({"function_call": members})


def sse(*items: Any) -> bytes:
    return b"".join(b"data: %s\n\n" % (b"[DONE]" if item == DONE else json.dumps(item).encode()) for item in items)


LAWFUL = [
    (ROLE, HI, STOP, DONE),
    (ROLE, HI, STOP, counts(), DONE),
    (ROLE, HI, ERROR),
    (ERROR,),
    (ROLE, opens(), call(function={"arguments": ""}), opens(1, "b"), call(0, function={"arguments": " "}), TOOLS, DONE),
    (
        ROLE,
        opens(custom={"name": "f", "input": "x"}, function=None, type="custom"),
        call(custom={"input": "y"}),
        TOOLS,
        DONE,
    ),
    (ROLE, opens(function={"name": "f", "arguments": '{"x'}), LENGTH, DONE),
    (ROLE, opens(function={"name": "f", "arguments": '{"x'}), ERROR),
    (ROLE, signed(text="a"), signed(text="b"), signed(signature="s"), CITED, STOP, DONE),
    (ROLE, STOP, counts(prompt_tokens_details={"cached_tokens": 1}, completion_tokens_details=None), DONE),
    (ROLE, older(name="f", arguments=""), older(arguments="{}"), OLDER, DONE),
]

UNLAWFUL: list[tuple[str, str, tuple[Any, ...]]] = [
    ("frame", "is the last if it is `[DONE]` or an error", (ROLE, STOP, DONE, DONE)),
    ("frame", "is the last if it is `[DONE]` or an error", (ERROR, DONE)),
    ("frame", "is a JSON object, or `[DONE]`", (ROLE, 7, STOP, DONE)),
    ("error", "has a message", ({"error": {"message": ""}},)),
    ("error", "has a message", ({"error": "boom"},)),
    ("error", "stands alone", ({**HI, **ERROR},)),
    ("chunk", "has an id", ({**ROLE, "id": ""}, {**STOP, "id": ""}, DONE)),
    ("chunk", "is called one", (ROLE, {**STOP, "object": ""}, DONE)),
    ("chunk", "has a time", ({**ROLE, "created": None}, {**STOP, "created": None}, DONE)),
    ("chunk", "names the model", ({**ROLE, "model": None}, {**STOP, "model": None}, DONE)),
    ("chunk", "is of the same answer as the first", (ROLE, {**STOP, "id": "d"}, DONE)),
    ("chunk", "is of the same answer as the first", (ROLE, {**STOP, "model": "n"}, DONE)),
    ("chunk", "has the time of the first", (ROLE, {**STOP, "created": 2}, DONE)),
    ("chunk", "has a list of choices", (ROLE, {**HI, "choices": None}, STOP, DONE)),
    ("chunk", "has the choice 0 if it is the first", ({**ROLE, "choices": []}, ROLE, STOP, DONE)),
    ("chunk", "has no choice if it has counts", (ROLE, STOP, {**counts(), "choices": [{}]}, DONE)),
    (
        "choice",
        "has the index 0",
        (ROLE, {**HI, "choices": [{"index": 1, "delta": {}, "finish_reason": None}]}, STOP, DONE),
    ),
    ("choice", "has a delta", (ROLE, chunk(None), STOP, DONE)),
    ("choice", "has a finish reason, or null", (ROLE, {**HI, "choices": [{"index": 0, "delta": {}}]}, STOP, DONE)),
    ("choice", "does not go on behind its finish", (ROLE, STOP, HI, DONE)),
    ("delta", "has the role exactly if it is the first", (ROLE, ROLE, STOP, DONE)),
    ("delta", "has the role exactly if it is the first", (chunk({}), ROLE, STOP, DONE)),
    ("delta", "is the assistant's", (chunk({"role": "user"}), STOP, DONE)),
    ("delta", "has texts that are texts", (ROLE, chunk({"content": ["a"]}), STOP, DONE)),
    ("delta", "has texts that are texts", (ROLE, chunk({"reasoning_content": 5}), STOP, DONE)),
    ("delta", "has lists that hold something", (ROLE, chunk({"tool_calls": []}), STOP, DONE)),
    ("delta", "has lists that hold something", (ROLE, chunk({"reasoning_details": None}), STOP, DONE)),
    ("delta", "has no citations if they came before", (ROLE, CITED, CITED, STOP, DONE)),
    ("detail", "has an index", (ROLE, chunk({"reasoning_details": [{"text": "a"}]}), STOP, DONE)),
    ("detail", "has an index", (ROLE, chunk({"reasoning_details": ["a"]}), STOP, DONE)),
    ("detail", "says nothing twice but its text", (ROLE, signed(format="x"), signed(format="x"), STOP, DONE)),
    ("call", "has the index of a call before it, or the next", (ROLE, opens(1), STOP, DONE)),
    ("call", "has the index of a call before it, or the next", (ROLE, opens(None), STOP, DONE)),
    ("call", "has the index of a call before it, or the next", (ROLE, chunk({"tool_calls": ["a"]}), STOP, DONE)),
    ("call", "has the index of a call before it, or the next", (ROLE, opens(), opens(True, "b"), TOOLS, DONE)),
    ("call", "has an id of its own where it opens", (ROLE, opens(id=""), TOOLS, DONE)),
    ("call", "has an id of its own where it opens", (ROLE, opens(), opens(1), TOOLS, DONE)),
    ("call", "has a type where it opens", (ROLE, opens(type=None), TOOLS, DONE)),
    ("call", "has a name where it opens", (ROLE, opens(function={"arguments": "{}"}), TOOLS, DONE)),
    (
        "call",
        "has no id, type or name where it goes on",
        (ROLE, opens(), call(id="a", function={"arguments": ""}), TOOLS, DONE),
    ),
    (
        "call",
        "has no id, type or name where it goes on",
        (ROLE, opens(), call(function={"name": "", "arguments": ""}), TOOLS, DONE),
    ),
    ("call", "has a text of arguments", (ROLE, opens(), call(function={"arguments": {}}), TOOLS, DONE)),
    ("call", "has a text of arguments", (ROLE, opens(), call(), TOOLS, DONE)),
    ("older call", "has a name exactly if it is the first piece", (ROLE, older(arguments="{}"), OLDER, DONE)),
    (
        "older call",
        "has a name exactly if it is the first piece",
        (ROLE, older(name="f", arguments="{"), older(name="f", arguments="}"), OLDER, DONE),
    ),
    ("older call", "has a text of arguments", (ROLE, older(name="f", arguments={}), OLDER, DONE)),
    ("older call", "has a text of arguments", (ROLE, chunk({"function_call": None}), OLDER, DONE)),
    ("older call", "is the only one", (ROLE, opens(), older(name="f", arguments="{}"), OLDER, DONE)),
    ("finish", "is for calls only if there is one", (ROLE, OLDER, DONE)),
    ("finish", "is for calls if there is one", (ROLE, older(name="f", arguments="{}"), STOP, DONE)),
    (
        "end",
        "finds arguments that are objects, unless they were cut",
        (ROLE, older(name="f", arguments="{"), OLDER, DONE),
    ),
    ("finish", "is a known one", (ROLE, chunk({}, "tool_use"), DONE)),
    ("finish", "is for calls only if there is one", (ROLE, TOOLS, DONE)),
    ("finish", "is for calls if there is one", (ROLE, opens(), STOP, DONE)),
    ("usage", "comes once", (ROLE, STOP, counts(), counts(), DONE)),
    ("usage", "comes behind the finish", (ROLE, counts(), STOP, DONE)),
    ("usage", "has its three counts", (ROLE, STOP, counts(total_tokens=None), DONE)),
    ("usage", "has its three counts", (ROLE, STOP, {**counts(), "usage": 7}, DONE)),
    ("usage", "has details that are counts", (ROLE, STOP, counts(prompt_tokens_details={"cached_tokens": "1"}), DONE)),
    ("usage", "adds up, and its details are parts of it", (ROLE, STOP, counts(total_tokens=4), DONE)),
    (
        "usage",
        "adds up, and its details are parts of it",
        (ROLE, STOP, counts(prompt_tokens_details={"cached_tokens": 2}), DONE),
    ),
    (
        "usage",
        "adds up, and its details are parts of it",
        (ROLE, STOP, counts(completion_tokens_details={"reasoning_tokens": 3}), DONE),
    ),
    ("end", "is behind `[DONE]` or an error", (ROLE, STOP)),
    ("end", "is behind a finish, or an error", (ROLE, HI, DONE)),
    (
        "end",
        "finds arguments that are objects, unless they were cut",
        (ROLE, opens(function={"name": "f", "arguments": ""}), TOOLS, DONE),
    ),
]


def broken(*items: Any) -> list[tuple[str, str]]:
    return [(breach.rule.part, breach.rule.says) for breach in GRAMMAR.breaches(sse(*items))]


@pytest.mark.parametrize("items", LAWFUL)
def test_a_lawful_stream_breaks_no_rule(items: tuple[Any, ...]) -> None:
    assert broken(*items) == []


@pytest.mark.parametrize(("part", "says", "items"), UNLAWFUL)
def test_a_breach_is_found(part: str, says: str, items: tuple[Any, ...]) -> None:
    assert (part, says) in broken(*items)


def test_every_rule_of_the_table_is_broken_by_a_test() -> None:
    tested = {(part, says) for part, says, _ in UNLAWFUL}
    check_table(RULES, tested)


NAMES = ("index", "id", "type", "function", "custom", "name", "arguments", "input", "delta", "finish_reason", "text")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 3) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=8,
)
LISTS = ("tool_calls", "reasoning_details", "annotations", "content", "role")


def told(usage: Json) -> Json:
    return counts(**usage)


@given(
    st.lists(
        st.fixed_dictionaries({}, optional=dict.fromkeys(("id", "created", "choices", "usage", "error"), VALUES))
        | st.dictionaries(st.sampled_from(LISTS), VALUES, max_size=2).map(chunk)
        | st.dictionaries(st.sampled_from(["prompt_tokens", "total_tokens"]), VALUES).map(told)
        | VALUES,
        max_size=4,
    )
)
def test_whatever_a_stream_holds_can_be_judged(items: list[Any]) -> None:
    assert isinstance(broken(*items), list)
