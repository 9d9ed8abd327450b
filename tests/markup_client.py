"""`python -m tests.markup_client`: Claude Code through the proxy, over a model that writes its calls as text.

The model is `tests.markup_upstream`; the client is the real one, without network, started by `../shared/clients/run.py`
where that lies beside the project and the client is installed; else it says so and does nothing. For each way to take
calls up: the tool must have run, once, as the model asked, the reasoning must be shown as such, and the text must have
come piece by piece, with no markup in it.
"""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from attrs import define, field

from tests.clients import KIT, ROOT, kit
from tests.markup_upstream import BEFORE, KNOWN, THOUGHT, final

CLIENT = "claude-code"
UPSTREAM = 18090
"""A port in the run's own network."""
WAYS = (("--recover", "native"), ("--recover", "prompt"))
LONGEST = 8
"""No token of the model has more characters."""

JSON = dict[str, Any]


@define
class Seen:
    """What the client told on its standard output."""

    calls: list[JSON] = field(factory=list)
    results: list[str] = field(factory=list)
    thoughts: list[str] = field(factory=list)
    deltas: list[str] = field(factory=list)
    """Pieces of the text, as they came."""
    shown: str = ""
    """The answer that its user was shown at last."""

    @classmethod
    def of(cls, printed: str) -> "Seen":
        """What stands in lines of JSON."""
        seen = cls()
        for line in printed.splitlines():
            if line.startswith("{"):
                seen._take(json.loads(line))
        return seen

    def _take(self, line: JSON) -> None:
        if line["type"] == "stream_event":
            delta = line["event"].get("delta", {})
            if delta.get("type") == "text_delta":
                self.deltas.append(delta["text"])
        elif line["type"] == "result":
            self.shown = line.get("result", "")
        elif line["type"] in ("assistant", "user"):
            for block in line["message"]["content"]:
                if block["type"] == "tool_use":
                    self.calls.append(block["input"])
                elif block["type"] == "tool_result":
                    self.results.append(json.dumps(block["content"]))
                elif block["type"] == "thinking":
                    self.thoughts.append(block["thinking"])


def wrong(seen: Seen) -> Iterator[str]:
    """What is not as it must be."""
    numbers = re.findall(r"NUMBER=(\d+)", "".join(seen.results))
    if len(seen.calls) != 1 or len(numbers) != 1:
        yield f"the tool did not run once: {seen.calls} gave {seen.results}"
        return
    if seen.thoughts != [THOUGHT, KNOWN]:
        yield f"the reasoning is {seen.thoughts}"
    if seen.shown != final(numbers[0]):
        yield f"the answer that was shown is {seen.shown!r}"
    if "".join(seen.deltas) != f"{BEFORE}\n{final(numbers[0])}":
        yield f"the text that was streamed is {''.join(seen.deltas)!r}"
    if max(map(len, seen.deltas)) > LONGEST:
        yield f"the text did not come as it was written: {seen.deltas}"


def run(way: Sequence[str], out: Path) -> tuple[Seen, list[str]]:
    """A run: what was seen, and what is wrong with it."""
    python = shlex.quote(sys.executable)
    upstream = f"{python} -m tests.markup_upstream {UPSTREAM}"
    host = f"{python} -m examples.proxy --listen 127.0.0.1:{{port}} --upstream chat=http://127.0.0.1:{UPSTREAM}/v1"
    both = f"cd {shlex.quote(str(ROOT))} && export PYTHONPATH=. && ({upstream} & exec {host} {shlex.join(way)})"
    command = [sys.executable, str(KIT / "run.py"), CLIENT, "--proxy", both, "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        verdict: JSON = json.loads(done.stdout)
        seen = Seen.of((out / "stdout").read_text())
    except (ValueError, OSError):
        return Seen(), [(done.stdout + done.stderr)[-500:]]
    failed = [] if verdict["exit"] == 0 and verdict["final_text_shown"] else [f"the client failed: {verdict}"]
    return seen, [*failed, *verdict["errors"], *wrong(seen)]


def main() -> int:
    """Exit 1 if a run did not end well."""
    if not (KIT / "run.py").exists():
        print("../shared/clients does not lie beside the project: nothing was run")
        return 0
    if not Path(kit("import clients; print(json.dumps(clients.DEPS))")).exists():
        print("the clients are not installed (../shared/clients/setup.sh): nothing was run")
        return 0
    bad, folder = 0, Path(mkdtemp(prefix="markup-client-"))
    for way in WAYS:
        seen, errors = run(way, out := folder / way[-1])
        bad += bool(errors)
        told = f"calls: {len(seen.calls)}, pieces of text: {len(seen.deltas)}"
        print("! " if errors else "  ", CLIENT, *way, told, flush=True)
        for error in errors:
            print(f"    {error} (see {out})")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
