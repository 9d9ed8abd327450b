"""The document of the ladder's rows is what the code says."""

import subprocess
import sys
from pathlib import Path

from attrs import fields

from pipeline.request import RequestOptions
from stages.dialects.chat import request_tables as chat
from stages.dialects.messages import request_tables as messages
from stages.dialects.responses import request_tables as responses

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs" / "requests.md"


def generate(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "docs" / "generate.py"), *arguments],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_document_is_what_the_tables_say() -> None:
    done = generate("--check")
    assert (done.returncode, done.stderr) == (0, "")


def test_every_row_stands_in_the_document() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for module in (chat, messages, responses):
        for row in (*module.READ.values(), *module.WRITE.values()):
            assert f"| `{row.member}` | " in text
            assert row.reason in text


def test_every_option_stands_in_the_document() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for option in fields(RequestOptions):
        assert f"| `{option.name}` | " in text


def test_every_row_that_loses_says_why_and_every_other_where_to() -> None:
    for module in (chat, messages, responses):
        for row in (*module.READ.values(), *module.WRITE.values()):
            assert row.reason or row.to, row.member
            if row.rule.value in ("dropped", "degraded", "refused"):
                assert row.reason, row.member
