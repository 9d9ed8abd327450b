"""The command line's options about markup, and what the dialects say of the tools that may be called."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline.cli import main
from pipeline.cli.options import ConvertOptions
from pipeline.dialect import dialect
from pipeline.route import AnswerOptions
from pipeline.toolnames import WRAPPED_SCHEMA
from stages.recipe import default_chain
from tests.exchange import whole
from tests.scrubbing import MARKUP
from tests.support import DONE, finish, read, sse, text

SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}}
TOOLS = [{"name": "f", "input_schema": SCHEMA}]
STREAM = sse(text(f"Hi. {MARKUP}"), finish(), DONE)
CUT = sse(text("Hi. <tool_call>{'na"), finish(), DONE)


def command(
    name: str,
    data: bytes,
    *flags: str,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
    folder: Path,
    **asked: Any,
) -> bytes:
    """What a command writes, given the request of a Messages client."""
    (folder / "request.json").write_text(json.dumps({"model": "m", "tools": TOOLS, **asked}))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    way = ("--from", "chat", "--to", "messages", "--request", str(folder / "request.json"))
    assert main((name, *way, *flags), recipe=default_chain) == 0
    return capsysbinary.readouterr()[0]


@pytest.mark.parametrize(
    ("flags", "asked", "said", "calls"),
    [
        ((), {}, "Hi. ", [("f", {"x": 1})]),
        (("--recover", "prompt"), {}, "Hi. ", [("f", {"x": 1})]),
        (("--recover", "off"), {}, f"Hi. {MARKUP}", []),
        ((), {"tools": []}, f"Hi. {MARKUP}", []),
        ((), {"tool_choice": {"type": "none"}}, f"Hi. {MARKUP}", []),
    ],
)
def test_convert_recovers_calls_by_its_options_and_the_requests_tools(
    flags: tuple[str, ...],
    asked: dict[str, Any],
    said: str,
    calls: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
    tmp_path: Path,
) -> None:
    given: dict[str, Any] = {"monkeypatch": monkeypatch, "capsysbinary": capsysbinary, "folder": tmp_path}
    answer = read(command("convert", STREAM, *flags, **given, **asked))
    assert (answer.said("text"), answer.calls) == (said, calls)
    message = json.loads(command("answer", whole(content=f"Hi. {MARKUP}"), *flags, **given, **asked))
    assert "".join(block["text"] for block in message["content"] if block["type"] == "text") == said
    assert [(block["name"], block["input"]) for block in message["content"] if block["type"] == "tool_use"] == calls
    shown = read(command("convert", CUT, *flags, **given, **asked)).said("text")
    assert shown == "Hi. <tool_call>{'na"
    hidden = read(command("convert", CUT, *flags, "--unfinished", "hide", **given, **asked)).said("text")
    assert hidden == ("Hi. " if calls else shown)
    opened = read(command("convert", sse(text("a</think>b"), finish(), DONE), *flags, "--reasoning-open", **given))
    assert opened.said("thinking") == ("" if "off" in flags else "a")


def test_markup_is_read_on_the_first_hop_alone() -> None:
    said: dict[str, Any] = {"recover": "prompt", "residue": "hide", "unfinished": "hide"}
    options = ConvertOptions(**said, reasoning_open=True, stream_calls=True, weak=["w"])
    first = AnswerOptions(**said, reasoning_open=True, stream_calls=True, weak=("w",))
    assert options.of_hop(0) == first
    assert options.of_hop(1) == AnswerOptions(recover="off")
    assert ConvertOptions(envelope="off").of_hop(0) == AnswerOptions(envelope=False)
    assert ConvertOptions(envelope="off").of_hop(1) == AnswerOptions(envelope=False, recover="off")


FUNCTION = {"name": "f", "parameters": SCHEMA}
SPACED = {"type": "function", **FUNCTION}


@pytest.mark.parametrize(
    ("name", "request_", "tools"),
    [
        ("messages", {"tools": TOOLS}, {"f": SCHEMA}),
        ("messages", {"tools": [{"type": "custom", "name": "g"}]}, {"g": {}}),
        ("messages", {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, {}),
        ("messages", {"tools": TOOLS, "tool_choice": {"type": "none"}}, {}),
        ("messages", {"tools": TOOLS, "tool_choice": {"type": "auto"}}, {"f": SCHEMA}),
        ("messages", {"tools": [7, {"name": 7}, {"name": "f", "input_schema": 7}], "tool_choice": "none"}, {"f": {}}),
        ("messages", {"tools": 7}, {}),
        ("messages", {}, {}),
        ("chat", {"tools": [{"type": "function", "function": FUNCTION}]}, {"f": SCHEMA}),
        ("chat", {"tools": [{"type": "custom", "custom": {"name": "g"}}]}, {"g": WRAPPED_SCHEMA}),
        ("chat", {"tools": [{"type": "function", "function": FUNCTION}], "tool_choice": "none"}, {}),
        (
            "chat",
            {"tools": [7, {"type": "x"}, {"type": "function"}, {"type": "function", "function": {"name": 7}}]},
            {},
        ),
        ("chat", {"tools": {}}, {}),
        ("responses", {"tools": [{"type": "function", **FUNCTION}]}, {"f": SCHEMA}),
        ("responses", {"tools": [{"type": "custom", "name": "g"}, {"type": "web_search"}]}, {"g": WRAPPED_SCHEMA}),
        ("responses", {"tools": [{"type": "function", **FUNCTION}], "tool_choice": "none"}, {}),
        ("responses", {"tools": [{"type": "function", "name": "f", "parameters": 7}]}, {"f": {}}),
        ("responses", {"tools": [{"type": "namespace", "name": "n", "tools": [SPACED]}]}, {"n__f": SCHEMA}),
        ("responses", {}, {}),
    ],
)
def test_a_dialect_knows_which_tools_of_a_request_may_be_called(
    name: str, request_: dict[str, Any], tools: dict[str, Any]
) -> None:
    assert dialect(name).facts(request_).tools == tools
