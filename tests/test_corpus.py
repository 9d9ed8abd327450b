"""Every recorded Chat stream of the neighbouring `../shared/corpus`, where it lies beside the project."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from pipeline.outcome import Verdict
from pipeline.testing import cut
from tests.support import Answer, Run, read, same_ids

FOLDER = Path(__file__).parents[2] / "shared" / "corpus"
SMALL = 12_000
"""Bytes up to which a recording is also cut into single bytes."""

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="../shared/corpus does not lie beside the project")


def recordings() -> list[dict[str, Any]]:
    """The rows of the manifest that are for us."""
    lines = (FOLDER / "manifest.jsonl").read_bytes().splitlines() if FOLDER.exists() else []
    rows = [json.loads(line) for line in lines]
    return [row for row in rows if row["dialect"] == "chat" and row["kind"] == "stream" and row["status"] == 200]


@define
class Said:
    """What a Chat stream says, read as simply as can be."""

    text: str = ""
    reasoning: str = ""
    calls: list[list[str]] = field(factory=list)
    """Name and arguments of each."""
    finished: bool = False
    failed: bool = False


THOUGHTS = re.compile("<think>(.*?)</think>", re.DOTALL)
"""Reasoning that a model writes as text."""


def said_in(raw: bytes) -> Said:
    """What a recording says."""
    said, places = Said(), dict[Any, list[str]]()
    for line in raw.replace(b"\r\n", b"\n").split(b"\n"):
        if not line.startswith(b"data:"):
            continue
        data = line[5:].strip()
        if data == b"[DONE]":
            said.finished = True
            break
        try:
            chunk = json.loads(data)
        except ValueError:
            continue
        said.failed = said.failed or bool(chunk.get("error"))
        for choice in chunk.get("choices") or ():
            if choice.get("index") in (0, None):
                say(choice.get("delta") or {}, said, places)
                said.finished = said.finished or bool(choice.get("finish_reason"))
    thoughts = THOUGHTS.findall(said.text)
    said.reasoning += "".join(thoughts)
    said.text = THOUGHTS.sub("", said.text)
    return said


def say(delta: dict[str, Any], said: Said, places: dict[Any, list[str]]) -> None:
    """Add what a delta says."""
    content, inner = delta.get("content") or "", ""
    if isinstance(content, list):
        inner = "".join(text_of(part.get("thinking", "")) for part in content if isinstance(part, dict))
        content = "".join(part if isinstance(part, str) else part.get("text") or "" for part in content)
    said.text += content + (delta.get("refusal") or "")
    names = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
    plain = next((delta[name] for name in names if delta.get(name)), "")
    details = [one.get("text") or one.get("summary") or "" for one in delta.get("reasoning_details") or ()]
    said.reasoning += inner or plain or "".join(details)
    for entry in delta.get("tool_calls") or ():
        body = entry.get("function") or entry.get("custom") or {}
        place = entry.get("index", entry.get("id"))
        if place not in places or (entry.get("id") and body.get("name") and places[place][2] not in ("", entry["id"])):
            places[place] = ["", "", entry.get("id") or ""]
            said.calls.append(places[place])
        places[place][0] = places[place][0] or body.get("name") or ""
        arguments = body.get("arguments", body.get("input")) or ""
        places[place][1] += arguments if isinstance(arguments, str) else json.dumps(arguments)
    if legacy := delta.get("function_call"):
        if "legacy" not in places:
            places["legacy"] = ["", "", ""]
            said.calls.append(places["legacy"])
        places["legacy"][0] += legacy.get("name") or ""
        places["legacy"][1] += legacy.get("arguments") or ""


def text_of(value: Any) -> str:
    """Text, also of a list of parts."""
    return value if isinstance(value, str) else "".join(part.get("text") or "" for part in value)


def bare(text: str) -> str:
    """A text without its blanks: a blank block may be lost."""
    return "".join(text.split())


def value(arguments: str) -> Any:
    """What the arguments of a call say; they may have been written as freeform text."""
    try:
        return json.loads(arguments or "{}") or {}
    except ValueError:
        return {"input": arguments}


def check_content(said: Said, answer: Answer) -> None:
    """All that was said is in the answer."""
    assert bare(answer.said("text")) == bare(said.text)
    assert bare(answer.said("thinking")) == bare(said.reasoning)
    shown = [(block[3], block[1]) for block in answer.blocks if block[0] == "tool_use"]
    if answer.stop in ("max_tokens", "refusal") or answer.error:
        assert shown == [(name, arguments) for name, arguments, _ in said.calls] or answer.calls == [
            (name, value(arguments)) for name, arguments, _ in said.calls
        ]
    else:
        assert answer.calls == [(name, value(arguments)) for name, arguments, _ in said.calls]


@pytest.mark.parametrize("row", recordings(), ids=lambda row: row["file"])
def test_a_recording_comes_through_whole_and_the_same_at_every_cut(row: dict[str, Any]) -> None:
    raw = (FOLDER / row["file"]).read_bytes()
    run = Run()
    out = run.all([raw])
    answer, said = read(out), said_in(raw)
    assert answer.ended == (said.finished and not said.failed)
    assert run.outcome.verdict is (
        Verdict.FAILED if said.failed else Verdict.COMPLETE if said.finished else Verdict.CUT
    )
    check_content(said, answer)
    for size in (1, 61) if len(raw) <= SMALL else (61,):
        assert same_ids(Run().all(cut(raw, size))) == same_ids(out)


@pytest.mark.parametrize("row", recordings()[::4], ids=lambda row: row["file"])
def test_a_recording_that_is_cut_short_is_never_whole(row: dict[str, Any]) -> None:
    raw = (FOLDER / row["file"]).read_bytes()
    for part in (3, 2):
        run = Run()
        short = raw[: len(raw) // part]
        answer = read(run.all([short]))
        assert answer.ended == (said_in(short).finished and not said_in(short).failed)
        assert answer.ended == (run.outcome.verdict is Verdict.COMPLETE)


def test_the_recordings_are_there() -> None:
    assert len(recordings()) >= 300
