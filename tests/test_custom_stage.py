"""The example of a sync and an async stage of one's own."""

import json
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from examples.custom_stage import MaskDigits, Moderate, main
from pipeline.events import BlockStart, BlockStop, MessageStop, TextBlock, TextDelta
from pipeline.testing import acheck_stage, check_stage
from tests.clocks import BACKENDS

ROOT = Path(__file__).parent.parent
EVENTS = [
    BlockStart(0, TextBlock()),
    TextDelta(0, "a 1"),
    TextDelta(0, "23 b"),
    TextDelta(0, "dynamite"),
    BlockStop(0),
    MessageStop(),
]
SHOWN = ["Your PIN is ##", "##. ", "(withheld)", " to gate #."]


def texts(output: str) -> list[str]:
    """The texts of a Messages stream that was read to its end."""
    payloads = [json.loads(line[6:]) for line in output.splitlines() if line.startswith("data: ")]
    assert payloads[-1] == {"type": "message_stop"}
    return [payload["delta"]["text"] for payload in payloads if payload["type"] == "content_block_delta"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_both_stages_do_their_work_in_one_chain(backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    name, options = BACKENDS[backend]()
    anyio.run(main, backend=name, backend_options=options)
    assert texts(capsys.readouterr().out) == SHOWN


@pytest.mark.parametrize("backend", BACKENDS)
def test_both_stages_keep_the_rules(backend: str) -> None:
    check_stage(MaskDigits, EVENTS)
    name, options = BACKENDS[backend]()
    anyio.run(acheck_stage, Moderate, EVENTS, backend=name, backend_options=options)


def test_it_runs_as_its_first_line_says() -> None:
    command = [sys.executable, "-m", "examples.custom_stage"]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=60).stdout
    assert texts(output) == SHOWN


def test_it_is_at_most_sixty_lines() -> None:
    assert len((ROOT / "examples/custom_stage.py").read_text().splitlines()) <= 60
