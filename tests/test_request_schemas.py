"""A schema goes up as its provider takes it; what of it cannot be demanded is said in words, and recorded."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from pipeline.ledger import Ledger
from pipeline.request import RequestOptions
from pipeline.schemas import takes_strictly
from stages.dialects.messages.request_schema import Fitting, is_recursive
from tests.request_shapes import BUILDS, CLOSED, JSON, read

WORD = {"type": "string"}


def closed(**properties: Any) -> JSON:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def asking(client: str, schema: Mapping[str, Any], strict: bool | None = None) -> JSON:
    """A client's request for an answer of that form."""
    said = {} if strict is None else {"strict": strict}
    if client == "messages":
        format_ = {"format": {"type": "json_schema", "schema": schema}}
        return {
            "model": "m",
            "max_tokens": 99,
            "messages": [{"role": "user", "content": "go"}],
            "output_config": format_,
        }
    if client == "chat":
        form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema, **said}}
        return {"model": "m", "messages": [{"role": "user", "content": "go"}], "response_format": form}
    return {
        "model": "m",
        "input": "go",
        "text": {"format": {"type": "json_schema", "name": "n", "schema": schema, **said}},
    }


def offering(client: str, schema: Mapping[str, Any], strict: bool | None) -> JSON:
    """A client's request with one tool."""
    said = {} if strict is None else {"strict": strict}
    body = asking(client, {})
    for member in ("output_config", "response_format", "text"):
        body.pop(member, None)
    if client == "messages":
        return {**body, "tools": [{"name": "f", "input_schema": schema, **said}]}
    if client == "chat":
        return {**body, "tools": [{"type": "function", "function": {"name": "f", "parameters": schema, **said}}]}
    return {**body, "tools": [{"type": "function", "name": "f", "parameters": schema, **said}]}


def sent(client: str, upstream: str, body: JSON, **options: Any) -> tuple[JSON, list[tuple[str, str]]]:
    ledger = Ledger(direction="request")
    built = BUILDS[upstream](read(client, body), ledger=ledger, options=RequestOptions(**options)).body
    return built, [(entry.path, entry.action) for entry in ledger]


def form(upstream: str, body: JSON) -> JSON:
    """What is said of the answer's form: its schema and whether it is strict."""
    found: JSON = {
        "messages": lambda: body["output_config"]["format"],
        "chat": lambda: body["response_format"]["json_schema"],
        "responses": lambda: body["text"]["format"],
    }[upstream]()
    return found


def offered(upstream: str, body: JSON) -> JSON:
    tool: JSON = body["tools"][0]
    return tool["function"] if upstream == "chat" else tool


# toward Anthropic

FITTED: list[tuple[str, JSON, JSON, set[str]]] = [
    ("as it is", closed(a=WORD), closed(a=WORD), set()),
    (
        "numbers",
        {
            "type": "integer",
            "minimum": 1,
            "maximum": 9,
            "exclusiveMinimum": 0,
            "multipleOf": 2,
            "description": "How many",
        },
        {
            "type": "integer",
            "description": "How many\n\n{minimum: 1, maximum: 9, exclusiveMinimum: 0, multipleOf: 2}",
        },
        {"minimum", "maximum", "exclusiveMinimum", "multipleOf"},
    ),
    (
        "strings",
        {"type": "string", "minLength": 1, "maxLength": 5},
        {"type": "string", "description": "{minLength: 1, maxLength: 5}"},
        {"minLength", "maxLength"},
    ),
    ("a simple pattern", {"type": "string", "pattern": "^[a-z]+$"}, {"type": "string", "pattern": "^[a-z]+$"}, set()),
    (
        "a pattern that looks ahead",
        {"type": "string", "pattern": "(?=a)"},
        {"type": "string", "description": '{pattern: "(?=a)"}'},
        {"pattern"},
    ),
    ("a format", {"type": "string", "format": "date"}, {"type": "string", "format": "date"}, set()),
    (
        "a format unknown",
        {"type": "string", "format": "int64"},
        {"type": "string", "description": '{format: "int64"}'},
        {"format"},
    ),
    (
        "items",
        {"type": "array", "items": {"type": "number", "minimum": 0}, "minItems": 1},
        {"type": "array", "items": {"type": "number", "description": "{minimum: 0}"}, "minItems": 1},
        {"minimum"},
    ),
    (
        "counts of items",
        {"type": "array", "items": WORD, "minItems": 2, "maxItems": 3, "uniqueItems": True},
        {"type": "array", "items": WORD, "description": "{minItems: 2, maxItems: 3, uniqueItems: true}"},
        {"minItems", "maxItems", "uniqueItems"},
    ),
    ("open", {"type": "object"}, {"type": "object", "additionalProperties": False}, {"additionalProperties"}),
    (
        "a map",
        {"type": ["object", "null"], "additionalProperties": WORD},
        {
            "type": ["object", "null"],
            "additionalProperties": False,
            "description": '{additionalProperties: {"type":"string"}}',
        },
        {"additionalProperties"},
    ),
    (
        "enumerations",
        {"anyOf": [{"enum": ["a", 1, None]}, {"const": 1}, {"type": "object", "enum": [{}], **closed()}]},
        {"anyOf": [{"enum": ["a", 1, None]}, {"const": 1}, {**closed(), "description": "{enum: [{}]}"}]},
        {"enum"},
    ),
    ("one of", {"oneOf": [WORD, {"type": "null"}]}, {"anyOf": [WORD, {"type": "null"}]}, {"oneOf"}),
    (
        "all of a reference",
        {"$defs": {"a": {"type": "string", "minLength": 1}}, **closed(a={"allOf": [{"$ref": "#/$defs/a"}]})},
        {
            "$defs": {"a": {"type": "string", "description": "{minLength: 1}"}},
            **closed(a={"$ref": "#/$defs/a"}),
        },
        {"minLength"},
    ),
    (
        "beside a reference",
        {"definitions": {"a": WORD}, **closed(a={"$ref": "#/definitions/a", "description": "d"})},
        {"definitions": {"a": WORD}, **closed(a={"$ref": "#/definitions/a"})},
        {"description"},
    ),
    ("marks", {"$schema": "s", **closed()}, closed(), {"$schema"}),
    (
        "conditions",
        {**closed(a=WORD), "if": {"required": ["a"]}, "not": {}, "patternProperties": {}},
        {**closed(a=WORD), "description": '{if: {"required":["a"]}, not: {}, patternProperties: {}}'},
        {"if", "not", "patternProperties"},
    ),
]


@pytest.mark.parametrize(("schema", "due", "kinds"), [case[1:] for case in FITTED], ids=[case[0] for case in FITTED])
@pytest.mark.parametrize("strict", [None, True, False])
@pytest.mark.parametrize("client", ["chat", "responses"])
def test_anthropic_is_given_what_its_structured_outputs_take_and_the_rest_in_words(
    client: str, strict: bool | None, schema: JSON, due: JSON, kinds: set[str]
) -> None:
    kept = json.dumps(schema)
    for member in (schema, closed(a=schema, b=schema), {"type": "array", "items": {"anyOf": [schema]}}):
        if member is not schema and ("$defs" in schema or "definitions" in schema):
            continue
        body, lost = sent(client, "messages", asking(client, member, strict))
        found = form("messages", body)["schema"]
        assert due in (found, found.get("properties", {}).get("b"), found.get("items", {}).get("anyOf", [0])[0])
        where = "response_format.json_schema" if client == "chat" else "text.format"
        begin = f"{where}.schema."
        assert sorted(path for path, _ in lost if path.startswith(begin)) == sorted(begin + kind for kind in kinds)
    assert json.dumps(schema) == kept


def test_what_fits_is_left_as_it_is_a_second_time() -> None:
    for _, _, due, _ in FITTED:
        again = Fitting()
        assert (again.fit(due), again.lost) == (due, set())


@pytest.mark.parametrize("client", ["chat", "responses"])
def test_a_strict_tool_for_anthropic_keeps_the_same_rules_and_another_goes_as_it_came(client: str) -> None:
    schema = closed(a={"type": "integer", "minimum": 1})
    body, lost = sent(client, "messages", offering(client, schema, True))
    assert offered("messages", body) == {
        "name": "f",
        "strict": True,
        "input_schema": closed(a={"type": "integer", "description": "{minimum: 1}"}),
    }
    assert [action for path, action in lost if path.endswith("minimum")] == ["degraded to its schema's description"]
    body, lost = sent(client, "messages", offering(client, schema, False))
    assert (offered("messages", body), lost) == ({"name": "f", "input_schema": schema}, [])


RECURSIVE = [
    closed(a={"$ref": "#"}),
    {
        **closed(a={"$ref": "#/$defs/a"}),
        "$defs": {"a": closed(b={"$ref": "#/$defs/b"}), "b": closed(a={"$ref": "#/$defs/a"})},
    },
    closed(a={"$ref": "http://elsewhere/schema"}),
]


@pytest.mark.parametrize("schema", RECURSIVE)
@pytest.mark.parametrize("client", ["chat", "responses"])
def test_a_schema_that_leads_back_into_itself_is_told_anthropic_in_words(client: str, schema: JSON) -> None:
    body, lost = sent(client, "messages", asking(client, schema, True))
    assert "output_config" not in body
    assert json.dumps(schema, separators=(",", ":")) in body["system"]
    assert ("degraded to an instruction") in dict(lost).values()
    body, lost = sent(client, "messages", offering(client, schema, True))
    assert offered("messages", body) == {"name": "f", "input_schema": schema}
    assert [action for _, action in lost] == ["dropped"]


def test_definitions_that_lead_nowhere_back_are_no_recursion() -> None:
    assert not is_recursive({**closed(a={"$ref": "#/$defs/a~1b"}), "$defs": {"a/b": {"$ref": "#/$defs/c"}, "c": WORD}})


# toward OpenAI

LOOSE = {
    "a member that may be left out": {**closed(a=WORD), "required": []},
    "a member required that is none": {**closed(a=WORD), "required": ["a", "b"]},
    "open": {"type": "object", "properties": {"a": WORD}, "required": ["a"]},
    "a map": {**closed(), "additionalProperties": WORD},
    "without properties": {"type": "object", "additionalProperties": False},
    "no type": closed(a={"description": "d"}),
    "an odd type": closed(a={"type": "date"}),
    "no items": closed(a={"type": "array"}),
    "any items": closed(a={"type": "array", "items": True}),
    "no object": {"type": "array", "items": WORD},
    "a choice at the root": {"anyOf": [closed(a=WORD)]},
    "an object and a choice at the root": {**closed(a=WORD), "anyOf": [closed(a=WORD)]},
    "lengths": closed(a={"type": "string", "minLength": 1}),
    "a default": closed(a={"type": "string", "default": ""}),
    "a format unknown": closed(a={"type": "string", "format": "uri"}),
    "all of": closed(a={"allOf": [WORD]}),
    "one of": closed(a={"oneOf": [WORD]}),
    "beside a reference": {**closed(a={"$ref": "#/$defs/b", "description": "d"}), "$defs": {"b": WORD}},
    "elsewhere": closed(a={"$ref": "http://elsewhere"}),
    "within definitions": {**closed(a={"$ref": "#/$defs/b"}), "$defs": {"b": {"type": "object"}}},
    "within a choice": closed(a={"anyOf": [WORD, {"type": "object"}]}),
    "within items": closed(a={"type": "array", "items": {"type": "object"}}),
    "too many members": closed(**{f"p{number}": WORD for number in range(5001)}),
    "too many values": closed(a={"type": "string", "enum": [str(number) for number in range(1001)]}),
    "too many characters": closed(a={"type": "string", "const": "a" * 120_001}),
    "empty": {},
}
DEEP = closed(a=WORD)
for _ in range(9):
    DEEP = closed(a=DEEP)
LOOSE["too deep"] = closed(a=DEEP)
TIGHT = {
    "closed": CLOSED,
    "no members": closed(),
    "nothing": closed(a={"type": ["string", "null"]}, b={"anyOf": [{"type": "null"}, closed(c=WORD)]}),
    "a reference": {**closed(a={"$ref": "#/$defs/b"}, c={"$ref": "#"}), "$defs": {"b": closed(d=WORD)}},
    "bounds": closed(
        a={"type": "number", "minimum": 0, "multipleOf": 2}, b={"type": "array", "items": WORD, "maxItems": 2}
    ),
    "words": {
        "$schema": "s",
        "title": "t",
        "description": "d",
        **closed(a={"type": "string", "format": "date", "pattern": "a"}),
    },
    "deep": DEEP,
}


@pytest.mark.parametrize("upstream", ["chat", "responses"])
@pytest.mark.parametrize("name", [*LOOSE, *TIGHT])
def test_openai_is_told_strict_only_of_a_schema_that_its_strict_mode_takes(upstream: str, name: str) -> None:
    strict = name in TIGHT
    schema = (TIGHT if strict else LOOSE)[name]
    body, lost = sent("messages", upstream, asking("messages", schema))
    found = form(upstream, body)
    assert (found["schema"], found["strict"], takes_strictly(schema)) == (schema, strict, strict)
    assert lost == ([] if strict else [("output_config.format.schema", "degraded to false")])
    body, lost = sent("messages", upstream, offering("messages", schema, True))
    assert offered(upstream, body)["parameters"] == schema
    assert offered(upstream, body).get("strict", False) is strict
    assert lost == ([] if strict else [("tools[0]", "dropped")])


@pytest.mark.parametrize("upstream", ["chat", "responses"])
@pytest.mark.parametrize("strict", [None, False])
def test_a_tool_that_is_not_strict_is_none_toward_openai(upstream: str, strict: bool | None) -> None:
    body, lost = sent("messages", upstream, offering("messages", CLOSED, strict))
    assert (offered(upstream, body).get("strict", False), lost) == (False, [])


@pytest.mark.parametrize(("client", "upstream"), [("chat", "responses"), ("responses", "chat")])
@pytest.mark.parametrize("strict", [None, True, False])
@pytest.mark.parametrize("schema", [CLOSED, LOOSE["lengths"]])
def test_between_openais_dialects_a_schema_and_what_is_said_of_it_go_as_they_came(
    client: str, upstream: str, strict: bool | None, schema: JSON
) -> None:
    body, lost = sent(client, upstream, asking(client, schema, strict))
    found = form(upstream, body)
    assert (found["schema"], found.get("strict"), lost) == (schema, strict, [])
    body, lost = sent(client, upstream, offering(client, schema, strict))
    tool = offered(upstream, body)
    due = strict is True if upstream == "responses" else strict
    assert (tool["parameters"], tool.get("strict"), lost) == (schema, due, [])
