"""The sure cases of chat to messages from the neighbouring `../shared/cases`, where it lies beside the project."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.testing import Chunk, cut
from tests.support import Answer, Run, read, same_ids

FILE = Path(__file__).parents[2] / "shared" / "cases" / "streams.jsonl"
LATER = ("texttool", "thinktag")
"""Kinds that are about markup in the text: `test_scrub_cases` has them, with the tools that they offer."""

pytestmark = pytest.mark.skipif(not FILE.exists(), reason="../shared/cases does not lie beside the project")


def cases() -> list[dict[str, Any]]:
    """The cases that are for us."""
    lines = FILE.read_bytes().splitlines() if FILE.exists() else []  # bytes: only LF ends a line
    found = [json.loads(line) for line in lines]
    return [
        case
        for case in found
        if case["from"] == "chat"
        and "messages" in case["to"]
        and not case.get("arguable")
        and case["kind"] not in LATER
    ]


def stream_of(case: dict[str, Any]) -> bytes:
    """The bytes of a case."""
    if "raw_b64" in case:
        return base64.b64decode(case["raw_b64"])
    out = ""
    for frame in case["frames"]:
        if isinstance(frame, str) and frame != "[DONE]":
            out += frame
        else:
            out += f"data: {frame if isinstance(frame, str) else json.dumps(frame, ensure_ascii=False)}\n\n"
    return out.encode("utf-8", "surrogatepass")


def merged(blocks: list[list[Any]]) -> list[list[Any]]:
    """Neighbours of one kind as one; what is only blank is nothing."""
    out: list[list[Any]] = []
    for kind, *rest in blocks:
        if kind == "tool":
            out.append([kind, *rest])
        elif rest[0].strip():
            if out and out[-1][0] == kind:
                out[-1][1] += rest[0]
            else:
                out.append([kind, rest[0]])
    return out


def blocks_of(answer: Answer) -> list[list[Any]]:
    """An answer's blocks in the words of a case, which tells of no opaque ones."""
    out: list[list[Any]] = []
    for kind, said, *call in answer.blocks:
        if kind == "redacted_thinking":
            continue
        if kind == "tool_use":
            out.append(["tool", call[1], value_of(said) if call[2] else said, call[0]])
        else:
            out.append(["reasoning" if kind == "thinking" else kind, said])
    return merged(out)


def value_of(said: str) -> Any:
    """The input of a call: the object, or its text if it was cut."""
    try:
        return json.loads(said or "{}")
    except ValueError:
        return said


def wanted(blocks: list[list[Any]]) -> list[list[Any]]:
    """A case's blocks as Messages can say them."""
    return merged([["text" if kind == "refusal" else kind, *rest] for kind, *rest in blocks])


def fits(case: dict[str, Any], answer: Answer) -> bool:
    """Whether the blocks are the ones that are wanted, or others that are right too."""
    shown = blocks_of(answer)
    for one in (case["want"], *case["want"].get("or", ())):
        want = wanted(one["blocks"])
        for got, due in zip(shown, want, strict=False):
            if due[0] == "tool" and due[3] is None:
                due[3] = got[-1]
        if shown == want:
            return True
    return False


@pytest.mark.parametrize("chunk", [None, 1, 7], ids=str)
@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_a_case_comes_out_as_it_should(case: dict[str, Any], chunk: Chunk) -> None:
    run, want = Run(), case["want"]
    out = run.all(cut(stream_of(case), chunk))
    answer = read(out)
    assert fits(case, answer), f"{case['why']}: {blocks_of(answer)}, wanted {want['blocks']}"
    assert run.outcome.verdict == want["ending"]
    assert ("error" if answer.error else answer.stop) == want["stop"]
    assert want.get("error", "") in (answer.error or {"message": ""})["message"]
    assert len(run.ledger) > 0 or not want.get("ledger")
    if counts := want.get("usage"):
        names = {"input": "input_tokens", "cache_read": "cache_read_input_tokens", "output": "output_tokens"}
        names["cache_write"] = "cache_creation_input_tokens"
        assert {name: answer.usage[told] for name, told in names.items()} == {name: counts[name] for name in names}
    assert same_ids(out) == same_ids(Run().all([stream_of(case)]))


def test_the_cases_are_there() -> None:
    assert len(cases()) >= 127
