"""The fixtures as cases: what each shows, what a client asks, and what must come out for it."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from benchmarks.compared import read_chat, read_messages, read_responses
from benchmarks.compared.answer import Answer

ROOT = Path(__file__).parent.parent.parent
FIXTURES = ROOT / "fixtures"
PAIRS = (
    ("chat", "messages"),
    ("responses", "messages"),
    ("messages", "chat"),
    ("messages", "responses"),
    ("chat", "responses"),
    ("responses", "chat"),
)
"""Upstream and client, in the order of the page."""
READERS = {"chat": read_chat.read, "messages": read_messages.read, "responses": read_responses.read}
GOLDENS = {"chat": "messages", "messages": "responses", "responses": "messages"}
"""The dialect that the goldens of an upstream's fixtures are written in."""
SYSTEM = "Be brief."
SAID = "What is the weather?"
SCHEMA: Mapping[str, Any] = {"type": "object", "properties": {}}


@frozen
class Case:
    """One fixture. `recorded` are the paths that our ledger names: what we do not give on."""

    dialect: str
    name: str
    shows: str
    ending: str
    recorded: tuple[str, ...]
    recording: bytes
    wanted: Answer
    """The golden, read by the strict reader of its dialect."""
    sent: Answer
    """The recording itself, read by the strict reader of its own dialect."""

    def request(self, client: str, model: str) -> dict[str, Any]:
        """What a client asks: one sentence, and a tool for every call that the golden holds."""
        tools = sorted({call.name for call in self.wanted.calls}) or ["get_weather"]
        if client == "messages":
            return {
                "model": model,
                "max_tokens": 4096,
                "stream": True,
                "system": SYSTEM,
                "messages": [{"role": "user", "content": SAID}],
                "tools": [{"name": name, "description": name, "input_schema": SCHEMA} for name in tools],
            }
        if client == "chat":
            functions = [{"name": name, "description": name, "parameters": SCHEMA} for name in tools]
            return {
                "model": model,
                "stream": True,
                "stream_options": {"include_usage": True},
                "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": SAID}],
                "tools": [{"type": "function", "function": function} for function in functions],
            }
        return {
            "model": model,
            "stream": True,
            "instructions": SYSTEM,
            "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": SAID}]}],
            "tools": [{"type": "function", "name": name, "description": name, "parameters": SCHEMA} for name in tools],
        }


def cases_of(dialect: str) -> list[Case]:
    """The fixtures of an upstream's dialect, by name."""
    return [_case(dialect, facts.stem) for facts in sorted((FIXTURES / dialect).glob("*.toml"))]


def _case(dialect: str, name: str) -> Case:
    folder, golden = FIXTURES / dialect, GOLDENS[dialect]
    facts = tomllib.loads((folder / f"{name}.toml").read_text())
    wanted = READERS[golden]((folder / f"{name}.{golden}.sse").read_bytes())
    recording = (folder / f"{name}.sse").read_bytes()
    recorded = tuple(facts.get("recorded", ()))
    return Case(
        dialect, name, facts["shows"], facts["ending"], recorded, recording, wanted, READERS[dialect](recording)
    )
