"""Every recorded Messages stream of the neighbouring `../shared/corpus`, where it lies beside the project."""

import json
from typing import Any

import pytest
from attrs import define, field

from pipeline.dialect import dialect
from pipeline.outcome import Outcome, Verdict
from pipeline.testing import Chunk, cut
from stages.recipe import default_chain
from tests.responses_client import heard, same_clock
from tests.test_corpus import FOLDER, SMALL

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="../shared/corpus does not lie beside the project")


def recordings() -> list[dict[str, Any]]:
    """The rows of the manifest that are for us."""
    lines = (FOLDER / "manifest.jsonl").read_bytes().splitlines() if FOLDER.exists() else []
    rows = [json.loads(line) for line in lines]
    return [
        row for row in rows if row["sub_dialect"] == "messages" and row["kind"] == "stream" and row["status"] == 200
    ]


@define
class Said:
    """What a Messages stream says, read as simply as can be."""

    text: str = ""
    thinking: str = ""
    calls: list[list[str]] = field(factory=list)
    """Name and input of each."""
    ended: bool = False


def said_in(raw: bytes) -> Said:
    """What a recording says; some hold several streams, of which the first is the answer."""
    said, kinds = Said(), dict[int, str]()
    for line in raw.replace(b"\r\n", b"\n").split(b"\n"):
        try:
            event = json.loads(line.removeprefix(b"data:"))
        except ValueError:
            continue
        if event["type"] == "content_block_start":
            block = event["content_block"]
            kinds[event["index"]] = block["type"]
            if block["type"] == "tool_use":
                said.calls.append([block["name"], json.dumps(block["input"]) if block["input"] else ""])
        elif event["type"] == "content_block_delta":
            delta = event["delta"]
            said.text += delta.get("text", "")
            said.thinking += delta.get("thinking", "")
            if kinds[event["index"]] == "tool_use":
                said.calls[-1][1] += delta["partial_json"]
        elif event["type"] == "message_stop":
            said.ended = True
            break
    return said


def converted(raw: bytes, chunk: Chunk) -> tuple[bytes, Outcome]:
    """What a Responses client gets of a stream, and how it ended."""
    outcome = Outcome()
    chain = default_chain(dialect("messages"), dialect("responses"), outcome=outcome)
    made = [piece for part in cut(raw, chunk) for piece in chain.receive([part])]
    return b"".join([*made, *chain.receive_eof()]), outcome


@pytest.mark.parametrize("row", recordings(), ids=lambda row: row["file"])
def test_a_recording_comes_through_whole_and_the_same_at_every_cut(row: dict[str, Any]) -> None:
    raw = (FOLDER / row["file"]).read_bytes()
    out, outcome = converted(raw, None)
    said, answer = said_in(raw), heard(out)
    assert outcome.verdict is (Verdict.COMPLETE if said.ended else Verdict.CUT)
    assert (answer.status != "failed") == said.ended
    texts = {kind: "".join(block[1] for block in answer.blocks if block[0] == kind) for kind in ("text", "reasoning")}
    assert bare(texts["text"]) == bare(said.text)
    assert texts["reasoning"] == said.thinking
    calls = [block[1:3] for block in answer.blocks if block[0] == "tool"]
    assert [name for name, _ in calls] == [name for name, _ in said.calls]
    for (_, shown), (_, given) in zip(calls, said.calls, strict=True):
        assert shown == given or json.loads(shown) == json.loads(given or "{}")
    for size in (1, 61) if len(raw) <= SMALL else (61,):
        assert same_clock(converted(raw, size)[0]) == same_clock(out)


@pytest.mark.parametrize("row", recordings()[::4], ids=lambda row: row["file"])
def test_a_recording_that_is_cut_short_is_never_whole(row: dict[str, Any]) -> None:
    raw = (FOLDER / row["file"]).read_bytes()
    for part in (3, 2):
        short = raw[: len(raw) // part]
        out, outcome = converted(short, None)
        ended = said_in(short).ended
        assert (heard(out).status != "failed") == ended
        assert outcome.verdict is (Verdict.COMPLETE if ended else Verdict.CUT)


def bare(text: str) -> str:
    """A text without its blanks: a blank block may be lost."""
    return "".join(text.split())


def test_the_recordings_are_there() -> None:
    assert len(recordings()) >= 100
