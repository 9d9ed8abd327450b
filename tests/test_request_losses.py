"""What of a Messages request other dialects cannot say keeps its place, or is recorded as what became of it."""

from typing import Any

import pytest

from pipeline import envelope
from pipeline.errors import ClientError
from pipeline.ledger import Ledger
from pipeline.request import RequestOptions
from tests.request_shapes import BUILDS, JSON, read

UPSTREAMS = ["chat", "responses"]

over_each_upstream = pytest.mark.parametrize("upstream", UPSTREAMS)

FILE = {"type": "container_upload", "file_id": "f"}
FILE_SHOWN = "[a file was uploaded for a tool that is not available]"
IMAGE = {"type": "image", "source": {"type": "url", "url": "http://x"}}
USE = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "a", "content": "R"}
TOOL = {"name": "f", "input_schema": {"type": "object"}}
SEARCH = {"type": "web_search_20250305", "name": "web_search"}


def text(said: str) -> JSON:
    return {"type": "text", "text": said}


def turn(role: str, *content: JSON) -> JSON:
    return {"role": role, "content": list(content)}


def sent(upstream: str, *turns: JSON, strict: bool = False, **members: Any) -> tuple[JSON, list[tuple[str, str]]]:
    """The body that goes up, and where what was lost and what became of it."""
    ledger = Ledger(direction="request")
    asked = list(turns) or [turn("user", text("go"))]
    given = read("messages", {"model": "m", "max_tokens": 100, "messages": asked, **members})
    body = BUILDS[upstream](given, ledger=ledger, options=RequestOptions(strict=strict, upstream="up")).body
    return body, [(entry.path, entry.action) for entry in ledger]


def said(upstream: str, body: JSON, role: str) -> list[str]:
    """The texts of the messages of one role."""
    items = body["messages" if upstream == "chat" else "input"]
    found = [item["content"] for item in items if item.get("role") == role]
    return [it if isinstance(it, str) else "\n\n".join(part["text"] for part in it) for it in found]


# the order


@over_each_upstream
@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ([{"type": "compaction", "content": "SUMMARY"}, text("a")], "SUMMARY\n\na"),
        ([text("before"), FILE, text("after")], f"before\n\n{FILE_SHOWN}\n\nafter"),
        ([FILE, USE, text("after"), FILE], f"{FILE_SHOWN}\n\nafter\n\n{FILE_SHOWN}"),
        ([text("before"), {"type": "fallback"}, text("after")], "before\n\nafter"),
    ],
)
def test_an_assistants_text_keeps_the_order_it_came_in(upstream: str, content: list[JSON], shown: str) -> None:
    body, _ = sent(upstream, turn("user", text("go")), turn("assistant", *content), turn("user", text("on")))
    assert "\n\n".join(said(upstream, body, "assistant")) == shown


# reasoning


@over_each_upstream
@pytest.mark.parametrize("blob", ["[" * 300 + "]" * 300, '{"encrypted_content":"e","x":' + "[" * 300 + "]" * 300 + "}"])
def test_an_envelope_whose_blob_is_nested_too_deeply_is_dropped_and_recorded(upstream: str, blob: str) -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": envelope.seal("up", "m", "hm", blob)}
    turns = turn("user", text("go")), turn("assistant", thought, text("a")), turn("user", text("on"))
    body, lost = sent(upstream, *turns)
    assert "[[" not in str(body)
    assert lost == [("messages[1].content[0]", "dropped")]


# results


def results(upstream: str, body: JSON) -> list[tuple[str, str]]:
    """The results of a body: the call's id, and what came of it."""
    if upstream == "chat":
        return [(it["tool_call_id"], it["content"]) for it in body["messages"] if it["role"] == "tool"]
    return [(it["call_id"], it["output"]) for it in body["input"] if it["type"] == "function_call_output"]


@over_each_upstream
@pytest.mark.parametrize(
    "turns",
    [
        [turn("assistant", USE), turn("system", RESULT), turn("user", text("on"))],
        [turn("assistant", USE), turn("system", RESULT, text("now")), turn("user", text("on"))],
        [turn("assistant", USE, RESULT), turn("user", text("on"))],
        [turn("assistant", USE, RESULT, text("and"))],
        [turn("assistant", USE), turn("assistant", RESULT), turn("user", text("on"))],
    ],
)
def test_a_result_is_sent_once_whoevers_turn_it_stands_in(upstream: str, turns: list[JSON]) -> None:
    body, lost = sent(upstream, turn("user", text("go")), *turns, strict=True)
    assert results(upstream, body) == [("a", "R")]
    assert str(body).count("'R'") == 1
    assert lost == []


@over_each_upstream
@pytest.mark.parametrize("role", ["system", "assistant", "user"])
def test_a_result_without_call_is_text_of_the_users(upstream: str, role: str) -> None:
    body, lost = sent(upstream, turn("user", text("go")), turn(role, RESULT, text("and")), turn("user", text("on")))
    assert results(upstream, body) == []
    assert "[result of the tool call a]\n\nR" in "\n\n".join(said(upstream, body, "user"))
    assert lost == [("messages[1].content[0]", "degraded to text")]


@over_each_upstream
def test_a_call_in_a_users_turn_is_dropped_and_its_result_kept_as_text(upstream: str) -> None:
    body, lost = sent(upstream, turn("user", text("go"), USE), turn("user", RESULT))
    assert results(upstream, body) == []
    assert "[result of the tool call a]\n\nR" in "\n\n".join(said(upstream, body, "user"))
    assert lost == [("messages[1].content[0]", "degraded to text"), ("messages[0].content[1]", "dropped")]


# a last turn of the assistant's


@over_each_upstream
def test_a_last_turn_of_the_assistants_is_sent_and_recorded_as_what_it_becomes(upstream: str) -> None:
    body, lost = sent(upstream, turn("user", text("go")), turn("assistant", text("Sure, ")))
    assert said(upstream, body, "assistant") == ["Sure, "]
    assert lost == [("messages[1]", "degraded to a past turn")]
    with pytest.raises(ClientError, match=r"^messages\[1\]: the upstream may begin anew"):
        sent(upstream, turn("user", text("go")), turn("assistant", text("Sure, ")), strict=True)


@over_each_upstream
@pytest.mark.parametrize(
    ("content", "lost"),
    [
        ([text("a"), USE], [("messages[1].content[1]", "degraded to an empty result")]),
        ([{"type": "thinking", "thinking": "hm", "signature": ""}], [("messages[1].content[0]", "dropped")]),
        ([USE, RESULT], []),
    ],
)
def test_a_last_turn_that_something_follows_or_that_says_nothing_is_no_beginning(
    upstream: str, content: list[JSON], lost: list[tuple[str, str]]
) -> None:
    assert sent(upstream, turn("user", text("go")), turn("assistant", *content))[1] == lost


# what must not vanish


def document(*content: JSON) -> JSON:
    return {"type": "document", "source": {"type": "content", "content": list(content)}}


@over_each_upstream
def test_what_a_document_holds_is_carried_degraded_or_refused_by_its_path(upstream: str) -> None:
    found = {"type": "search_result", "title": "T", "source": "S", "content": [text("hit")]}
    body, lost = sent(upstream, turn("user", document(text("a"), found, document(text("deep")))))
    assert all(word in str(body) for word in ("'a'", "T\\nS\\n\\nhit", "'deep'"))
    assert ("messages[0].content[0].source.content[1]", "degraded to text") in lost
    for odd, fault in (({"type": "odd"}, "unknown block 'odd'"), (USE, "cannot stand in a document")):
        with pytest.raises(ClientError, match=rf"source\.content\[0\]\.type: {fault}"):
            sent(upstream, turn("user", document(odd)))


@over_each_upstream
@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "web_search"}])
@pytest.mark.parametrize("tools", [[], [SEARCH]])
def test_a_call_that_no_tool_is_left_for_is_recorded(upstream: str, choice: JSON, tools: list[JSON]) -> None:
    body, lost = sent(upstream, tools=tools, tool_choice=choice)
    assert "tool_choice" not in body
    assert lost[-1] == ("tool_choice", "dropped")
    with pytest.raises(ClientError, match=r"^tool_choice: "):
        sent(upstream, tools=tools, tool_choice=choice, strict=True)


@over_each_upstream
def test_a_choice_that_demands_nothing_needs_no_tool(upstream: str) -> None:
    assert sent(upstream, tool_choice={"type": "auto"})[1] == []


@over_each_upstream
def test_an_unknown_member_named_reasoning_goes_up_as_it_came(upstream: str) -> None:
    assert sent(upstream, reasoning={"effort": "high"})[0]["reasoning"] == {"effort": "high"}


@over_each_upstream
@pytest.mark.parametrize("before", [[turn("user", text("go"))], []])
def test_an_image_in_an_instruction_is_recorded(upstream: str, before: list[JSON]) -> None:
    turns = *before, turn("system", text("now"), IMAGE, document(text("a"), IMAGE)), turn("user", text("on"))
    at = f"messages[{len(before)}].content"
    body, lost = sent(upstream, *turns)
    assert "http://x" not in str(body)
    assert [path for path, action in lost if action == "dropped"] == [f"{at}[1]", f"{at}[2].source.content[1]"]
    with pytest.raises(ClientError, match="it cannot stand in a turn of this role"):
        sent(upstream, *turns, strict=True)
