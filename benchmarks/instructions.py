"""A guard against slowing down that needs no clock: instructions an event of the whole default chain, by callgrind.

    python -m benchmarks.instructions            compare with the committed figure
    python -m benchmarks.instructions --update   commit another

One fixed stream is run few and many times in two processes; what the second executes more is the chain's own. The
figure depends on the interpreter, so there is one for each minor version of Python; another version is skipped.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.ours import chat_to_messages
from benchmarks.stream import chat_stream

FIGURES = Path(__file__).with_name("instructions.json")
FEW, MANY = 2, 10
TOLERANCE = 0.05
"""How much more is no slowing down."""


def run(times: int) -> None:
    """The measured work: the stream at one event a read, `times` over."""
    frames = chat_stream()
    for _ in range(times):
        feed = chat_to_messages().feed
        for frame in frames:
            feed(frame)


def instructions(times: int) -> int:
    """How many instructions a process executes that runs the stream `times` over."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.executable]
    done = subprocess.run(
        [*command, "-m", "benchmarks.instructions", "--run", str(times)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )
    found = re.search(r"Collected\s*:\s*(\d+)", done.stderr)
    if found is None:
        raise RuntimeError(f"valgrind told no count: {done.stderr[-400:]}")
    return int(found.group(1))


def main() -> int:
    """Exit 0 if the chain executes at most `TOLERANCE` more than the committed figure, else 1."""
    parser = argparse.ArgumentParser(description="instructions an event, against the committed figure")
    parser.add_argument("--update", action="store_true", help="write the figure of this interpreter")
    parser.add_argument("--run", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run is not None:
        run(options.run)
        return 0
    if shutil.which("valgrind") is None:
        print("skipped: valgrind is not installed")
        return 0
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    figures: dict[str, int] = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    if not options.update and version not in figures:
        print(f"skipped: no figure for Python {version}; there are: {', '.join(sorted(figures))}")
        return 0
    events = len(chat_stream()) * (MANY - FEW)
    measured = round((instructions(MANY) - instructions(FEW)) / events)
    if options.update:
        FIGURES.write_text(json.dumps({**figures, version: measured}, indent=2, sort_keys=True) + "\n")
        print(f"Python {version}: {measured} instructions an event, committed")
        return 0
    committed = figures[version]
    print(f"Python {version}: {measured} instructions an event, committed {committed} ({measured / committed:.2f} x)")
    return 0 if measured <= committed * (1 + TOLERANCE) else 1


if __name__ == "__main__":
    sys.exit(main())
