"""What of a Messages request other dialects cannot say keeps its place, or is recorded as what became of it."""

from typing import Any

import pytest

from pipeline import envelope
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
    if upstream == "chat":
        return [message["content"] for message in body["messages"] if message["role"] == role]
    return ["\n\n".join(part["text"] for part in item["content"]) for item in body["input"] if item.get("role") == role]


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
