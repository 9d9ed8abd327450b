"""A Messages request toward its own dialect."""

from typing import Any

import pytest

from pipeline import envelope
from pipeline.ledger import Ledger
from pipeline.request import (
    Request,
    RequestOptions,
    Turn,
)
from stages.dialects.messages.request import build, parse
from tests.request_shapes import JSON, SCHEMA
from tests.request_shapes import request as shape

GO_MESSAGE = {"role": "user", "content": "go"}


def request(*turns: Turn, **members: Any) -> Request:
    return shape(*turns, **{"max_tokens": 100, **members})


def written(given: Request, **options: Any) -> JSON:
    return build(given, ledger=Ledger(direction="request"), options=RequestOptions(**options)).body


def messages(*turns: Turn, **options: Any) -> list[JSON]:
    found = written(request(*turns), **options)["messages"]
    assert isinstance(found, list)
    return found


# toward its own dialect


def body(**members: Any) -> JSON:
    return {"model": "m", "max_tokens": 100, "messages": [GO_MESSAGE], **members}


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"system": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}], "stop_sequences": ["\n"]},
        {"temperature": 0.5, "top_p": 0.5, "top_k": 5, "service_tier": "standard_only", "stream": True, "extra": 1},
        {"metadata": {"user_id": "u", "x": 1}, "container": "c", "thread": {"type": "continue"}},
        {"thinking": {"type": "enabled", "budget_tokens": 2000, "display": "updates"}, "temperature": 0.5},
        {"output_config": {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}, "task_budget": {}}},
        {"output_format": {"type": "json_schema", "schema": SCHEMA}, "cache_control": {"type": "ephemeral"}},
        {
            "tools": [
                {"name": "f.g", "input_schema": {}, "defer_loading": True, "strict": False, "x": 1},
                {"name": "bare"},
                {"type": "custom", "name": "h", "input_schema": SCHEMA, "cache_control": {"type": "ephemeral"}},
                {"type": "web_search_20250305", "name": "web_search", "max_uses": 1},
            ],
            "tool_choice": {"type": "tool", "name": "web_search", "disable_parallel_tool_use": False},
            "thinking": {"type": "adaptive"},
        },
        {
            "messages": [
                {"role": "assistant", "content": "first"},
                {"role": "user", "content": [{"type": "image", "source": {"type": "file", "file_id": "f"}}]},
                {"role": "system", "content": "now", "output_config": {"effort": "low"}},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "t", "signature": "s"},
                        {"type": "redacted_thinking", "data": "d"},
                        {"type": "text", "text": "", "citations": [{"type": "char_location"}]},
                        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
                        {"type": "hologram", "x": 1},
                        {"type": "tool_use", "id": "a|b", "name": "f.g", "input": {"b": 1}, "caller": {"type": "d"}},
                        {"type": "image", "source": {"type": "url", "url": "u"}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "a|b", "is_error": True},
                        {"type": "tool_result", "tool_use_id": "zz", "content": "no call"},
                        {
                            "type": "tool_addition",
                            "tool": {"type": "tool_definition", "definition": {"name": "l", "input_schema": {}}},
                        },
                        {"type": "document", "source": {"type": "file", "file_id": "f"}},
                        {"type": "document", "source": {"type": "base64", "media_type": "x/y", "data": "QQ=="}},
                    ],
                },
                {"role": "user", "content": "a"},
                {"role": "user", "content": ""},
            ],
            "tools": [{"name": "f.g", "input_schema": {}}],
        },
    ],
)
def test_toward_its_own_dialect_a_request_is_what_it_was(members: JSON) -> None:
    ledger = Ledger(direction="request")
    given = body(**members)
    assert build(parse(given, ledger=ledger), ledger=ledger).body == given
    assert list(ledger) == []


def test_a_citation_that_was_another_apis_page_is_not_sent_back() -> None:
    plain = {"type": "text", "text": "b"}

    def said(*citations: JSON) -> JSON:
        told = {"citations": [*citations]} if citations else {}
        turns = [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": [{"type": "text", "text": "a", **told}, plain]},
        ]
        return body(messages=turns)

    own: JSON = {"type": "web_search_result_location", "url": "u", "encrypted_index": "x", "cited_text": "c"}
    ours: JSON = {"type": "web_search_result_location", "url": "u", "encrypted_index": "", "cited_text": ""}
    for given, sent in (((own, ours), (own,)), ((ours,), ()), ((own,), (own,))):
        ledger = Ledger(direction="request")
        assert build(parse(said(*given), ledger=ledger), ledger=ledger).body == said(*sent)
        assert [entry.path for entry in ledger] == ([] if given == sent else ["messages[1].content[0]"])


def test_thinking_that_nobody_signed_is_not_sent_to_its_own_dialect_either() -> None:
    said = [
        {"type": "thinking", "thinking": "t", "signature": ""},
        {"type": "thinking", "thinking": "t", "signature": envelope.seal("elsewhere", "m", "t", "{}")},
        {"type": "text", "text": "a"},
    ]
    ledger = Ledger(direction="request")
    request = parse(body(messages=[GO_MESSAGE, {"role": "assistant", "content": said}]), ledger=ledger)
    found: JSON = build(request, ledger=ledger).body
    assert found["messages"][1] == {"role": "assistant", "content": "a"}
    assert [entry.path for entry in ledger] == ["messages[1].content[0]", "messages[1].content[1]"]


def test_a_policys_effort_replaces_the_clients_thinking() -> None:
    request = parse(
        body(thinking={"type": "enabled", "budget_tokens": 2000}, output_config={"effort": "max"}), ledger=Ledger()
    )
    found = build(request, ledger=Ledger(), options=RequestOptions(effort="low")).body
    assert (found["thinking"], found["output_config"]) == ({"type": "adaptive"}, {"effort": "low"})
    off = build(request, ledger=Ledger(), options=RequestOptions(effort="")).body
    assert "thinking" not in off
