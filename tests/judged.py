"""`python -m tests.judged FILE`: what the judge writes with `--json`, but for the exceptions explained here."""

import json
import sys
from pathlib import Path

EXPLAINED = {
    "charmbracelet__fantasy/TestOpenAICompatibleThinking_avian-kimi_thinking-streaming.sse": (
        "cut: the judge shortens what it wants to the number of blocks it sees before it leaves blank text out"
    ),
}
"""Failures that are none of ours, by recording, and why."""


def main(path: Path) -> int:
    """Exit 1 if a sure case failed that is not explained."""
    rows = json.loads(path.read_bytes())
    failed = [row["id"] for row in rows if row["failures"] and not row["arguable"]]
    for name in failed:
        print(f"{name}: {EXPLAINED.get(name, 'not explained')}")
    return 1 if set(failed) - set(EXPLAINED) else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
