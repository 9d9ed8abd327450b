"""The sure cases about markup from the neighbouring `../shared/cases`, where it lies beside the project."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pipeline.dialect import dialect
from pipeline.events import ToolUseBlock
from pipeline.ledger import Ledger
from pipeline.outcome import Outcome
from pipeline.route import AnswerOptions
from pipeline.testing import cut
from stages.recipe import default_chain
from tests.canonical import BEGIN, END, TEXT, start, stop, text
from tests.scrubbing import Scrubbed, cuts
from tests.support import read, same_ids
from tests.test_cases import fits, stream_of

FOLDER = Path(__file__).parents[2] / "shared" / "cases"
FORMATS = {"hermes", "hermes-attr", "hermes-pipe", "toolcall-variant", "granite", "granite4", "ernie45"}
FORMATS |= {"deepseek_v3", "deepseek_v31", "deepseek_inner_json", "reasoning", "reasoning+hermes"}
OTHERS = {
    "adv-think-close-in-think",
    "reasoning-tag",
    "kimi-triangle",
    "seedthink",
    "mistral-THINK",
    "mmthink-stray",
    "hermes-scratchpad",
}
"""Cases of these formats that are about other tags, or, in the first, about a backtick that quotes nothing."""
LATER = {"t-qwen-basic", "t-kimi", "t-kimi-in-reasoning", "t-dsml"}
"""Streams that hold markup of families that are not read yet."""
KINDS = ("texttool", "thinktag")

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="../shared/cases does not lie beside the project")


def lines(name: str) -> list[dict[str, Any]]:
    """The cases of a file."""
    return [json.loads(line) for line in (FOLDER / name).read_bytes().splitlines()] if FOLDER.exists() else []


TAGS = [
    case
    for case in lines("tags.jsonl")
    if case["format"] in FORMATS and case["id"] not in OTHERS and not (case.get("opts") or {}).get("parser")
]
STREAMS = [case for case in lines("streams.jsonl") if case["kind"] in KINDS and case["id"] not in LATER]


@pytest.mark.parametrize("case", TAGS, ids=lambda case: case["id"])
def test_markup_is_read_as_the_case_says_whole_and_in_pieces(case: dict[str, Any]) -> None:
    opts, want = case.get("opts") or {}, case["want"]
    options = AnswerOptions(
        recover="native" if opts.get("native_calls") else "prompt",
        residue="hide",
        unfinished="hide",
        reasoning_open=bool(opts.get("reasoning_open")),
    )
    tools = {tool["name"]: tool.get("parameters") or {} for tool in case.get("tools") or []}
    native = opts.get("native_calls") or 0
    own = [event for at in range(1, native + 1) for event in (start(at, ToolUseBlock(f"own_{at}", "own")), stop(at))]
    for size in (1, 4, 23, len(case["input"])):
        events = [BEGIN, start(0, TEXT), *(text(0, part) for part in cuts(case["input"], size)), stop(0), *own, END]
        made = Scrubbed(options, tools).give(*events)
        content = made.content[: len(made.content) - native]
        assert made.content[len(content) :] == [("own", "")] * native
        assert "".join(part for part in content if isinstance(part, str)) == want["text"]
        assert "".join(part[0] for part in content if isinstance(part, list)) == (want["reasoning"] or "")
        calls = [(name, json.loads(arguments)) for name, arguments in (p for p in content if isinstance(p, tuple))]
        assert calls == [(call["name"], call["arguments"]) for call in want["calls"]]


@pytest.mark.parametrize("chunk", [None, 1, 7], ids=str)
@pytest.mark.parametrize("case", STREAMS, ids=lambda case: case["id"])
def test_a_stream_comes_out_as_the_case_says(case: dict[str, Any], chunk: Any) -> None:
    def converted(size: Any) -> tuple[bytes, Outcome, Ledger]:
        ledger = Ledger()
        outcome = Outcome(ledger=ledger)
        up, down = dialect("chat"), dialect("messages")
        facts, options = down.facts(case["request"]["messages"]), AnswerOptions(**case["options"])
        chain = default_chain(up, down, facts=facts, options=options, ledger=ledger, outcome=outcome)
        out = [item for part in cut(stream_of(case), size) for item in chain.receive([part])]
        return b"".join([*out, *chain.receive_eof()]), outcome, ledger

    raw, outcome, ledger = converted(chunk)
    answer, want = read(raw), case["want"]
    assert fits(case, answer), answer.blocks
    assert outcome.verdict == want["ending"]
    assert ("error" if answer.error else answer.stop) == want["stop"]
    assert len(ledger) > 0 or not want.get("ledger")
    assert same_ids(raw) == same_ids(converted(None)[0])
    if case["options"].get("residue") == "hide":
        shown = re.findall(r'"text_delta","text":"(.*?)"\}', raw.decode())
        assert "tool_call>" not in "".join(shown) or case["id"] in ("t-fence", "t-eof-held")


def test_the_cases_are_there() -> None:
    assert len(TAGS) >= 80
    assert len(STREAMS) >= 27
