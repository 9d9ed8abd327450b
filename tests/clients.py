"""`python -m tests.clients`: real clients through the example hosts against a scripted upstream, without network.

It drives `../shared/clients/run.py`, one run at a time, where that lies beside the project and its clients are
installed; else it says so and does nothing. Without `--violation` every run must be green: one try, the calls run with
exact arguments, the text shown, no error or warning of the client. With `--violation NAME` (or `all`) the upstream
misbehaves, and the client must either do the task or say that it failed. The tables of `docs/clients.md` come from
here (`--json FILE` keeps the verdicts, `--tables FILE` writes them as tables).
"""

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from attrs import asdict, frozen

ROOT = Path(__file__).resolve().parent.parent
KIT = ROOT.parent / "shared" / "clients"

HOSTS = ("proxy", "raw_socket")
UPSTREAMS = ("chat", "responses", "messages")
SCENARIOS = ("single", "parallel", "interleaved")
JSON = dict[str, Any]

EXPLAINED = {
    ("chat", "args_empty"): "the upstream ended a call without arguments as whole: that is an empty object",
    ("chat", "only_done"): "the upstream said that it had said all, which was nothing: an empty message",
    ("chat", "final_no_finish_no_done"): "Claude Code asks to go on as often as it is cut; the script begins anew",
    ("responses", "final_no_completed"): "Claude Code asks to go on as often as it is cut; the script begins anew",
    (
        "responses",
        "cut_call_done_incomplete_then_incomplete",
    ): "a call that the token limit cut is closed with that reason, as vendors do; the client tells the model",
    ("chat", "text_between_args"): "no text is lost: what came inside the call follows it, behind a blank line",
    ("messages", "no_args_delta"): "the upstream ended a call without arguments as whole: that is an empty object",
    ("messages", "empty_text_block"): "the upstream's text was empty",
    **{
        ("messages", name): "no text is lost: what came for no open text block is text all the same"
        for name in ("delta_closed_block", "delta_unopened_index", "text_delta_in_tool")
    },
    **{
        ("messages", name): "the client asks to go on as often as it is cut; the script begins anew"
        for name in ("final_no_message_stop", "final_eof_mid_text")
    },
}
"""What is no fault of ours though a client is not content, by upstream and violation, and why."""

SILENT = {"js-openai:responses": "the SDK's helper takes response.failed for an end like any other"}
"""Clients that end without a word where they are told of a failure, and why."""

SCRIPT = 'text((await tools.exec_command({cmd: "cat {cwd}/note.txt"})).output);'
CALLED = {
    ("codex:default", upstream): ("--tool", "exec", "--args", json.dumps({"input": SCRIPT}))
    for upstream in ("chat", "messages")
}
"""What the kit cannot think of by itself: Codex's freeform tool, which these upstreams are offered as a function, is
called with a program, not with any string."""

ITS_OWN = "failed to flush rollout after emitting terminal turn event"
"""What Codex warns of when it ends its thread before it has written down the turn's end, in a race with itself: the
turn is complete by then. Others have seen it without us; here it came in one of ten runs on a busy machine."""

MANY = 10
"""So many requests for one turn are no hang: the client was told of each failure and asks again."""


@frozen
class Case:
    """One run."""

    client: str
    host: str
    upstream: str
    scenario: str = "single"
    violation: str = ""

    def command(self, out: Path) -> list[str]:
        """The command that runs it and prints its verdict."""
        host = f"{shlex.quote(sys.executable)} -m examples.{self.host} --listen 127.0.0.1:{{port}}"
        proxy = f"cd {shlex.quote(str(ROOT))} && PYTHONPATH=. exec {host} --upstream {self.upstream}={{upstream}}/v1"
        asked = ["--proxy", proxy, "--scenario", self.scenario, "--out", str(out)]
        return [
            sys.executable,
            str(KIT / "run.py"),
            self.client,
            *asked,
            *(["--violation", self.violation] if self.violation else []),
            *CALLED.get((self.client, self.upstream), ()),
        ]


@frozen
class Verdict:
    """What came of it: one word, and whether a user can live with it."""

    word: str
    well: bool
    why: Sequence[str] = ()


def judged(case: Case, said: JSON) -> Verdict:
    """A verdict on what the kit saw.

    With a misbehaving upstream it is well when the task is done, with nothing of the answer lost, or when the client
    says that it failed. It is not when the client hangs, ends without a word, or is handed a call that cannot be run.
    """
    why = (*said.get("errors", ()), *said.get("notes", ()))
    if said["outcome"] in ("harness-error", "proxy-down") or said.get("dialects_seen") != [case.upstream]:
        return Verdict("not run", False, why)
    if not case.violation:
        if said["outcome"] == "ok-with-errors" and all(ITS_OWN in line for line in said["errors"]):
            return Verdict("green (its own warning)", True, why)
        return Verdict("green" if said["green"] else said["outcome"], said["green"], why)
    if said["timed_out"]:
        again = max(said["requests"]["tool"], said["requests"]["final"]) > MANY
        return Verdict("keeps asking" if again else "hang", False, why)
    if not said["violated"]:
        return Verdict("does not apply", True)
    if any("the SDK delivered" in line for line in why) or said["outcome"] == "tool-error-to-model":
        return Verdict("broken call", False, why)
    if said["exit"] == 0 and said["tool_executed"] and said["final_text_shown"]:
        again = max(said["requests"]["tool"], said["requests"]["final"]) > 1
        altered = any(line.startswith(("text1", "tool calls")) for line in said["notes"])
        word = "altered" if altered else "retried" if again else "done"
        return Verdict(word, not altered, why)
    if said["exit"] != 0 or said["errors"]:
        return Verdict("said", True, why)
    return Verdict("silent", False, why)


def verdict_of(case: Case, out: Path) -> tuple[Verdict, float | None]:
    """Run it, once more if the machine was too slow for it to begin; its verdict, and the seconds it took."""
    for _ in range(2):
        said = run(case, out)
        verdict = judged(case, said)
        if verdict.word != "not run":
            break
    return explained(case, verdict), said.get("seconds")


def explained(case: Case, verdict: Verdict) -> Verdict:
    """The verdict, which is well if what is not is no fault of ours."""
    reason = EXPLAINED.get((case.upstream, case.violation))
    if reason is None and verdict.word == "silent":
        reason = SILENT.get(case.client)
    if verdict.well or verdict.word == "hang" or reason is None:
        return verdict
    return Verdict(f"{verdict.word} (explained)", True, (reason, *verdict.why))


def run(case: Case, out: Path) -> JSON:
    """What the kit says of a run."""
    done = subprocess.run(case.command(out), capture_output=True, text=True, check=False)
    try:
        said: JSON = json.loads(done.stdout)
    except ValueError:
        return {"outcome": "harness-error", "green": False, "errors": [(done.stdout + done.stderr)[-500:]]}
    return said


def kit(program: str) -> Any:
    """What a line of Python prints as JSON inside the kit."""
    asked = f"import json, sys; sys.path.insert(0, {str(KIT)!r}); {program}"
    return json.loads(subprocess.run([sys.executable, "-c", asked], capture_output=True, check=True).stdout)


def clients() -> list[str]:
    """The clients that speak a dialect which these hosts answer."""
    return list(
        kit(f"from clients import CLIENTS as C; print(json.dumps([n for n in C if C[n]['dialect'] in {UPSTREAMS!r}]))")
    )


def violations(upstream: str) -> dict[str, str]:
    """What an upstream can do wrong, by name."""
    listed = f"print(json.dumps({{n: v[3] for n, v in server.DIALECTS[{upstream!r}].V.items()}}))"
    return dict(kit(f"from fakellm import server; {listed}"))


def cases(asked: argparse.Namespace) -> Iterator[Case]:
    """The runs that the flags name."""
    for client, host, upstream in product(asked.client or clients(), asked.host or HOSTS, asked.upstream or UPSTREAMS):
        known = violations(upstream)
        wrong = [*known] if "all" in asked.violation else [name for name in asked.violation if name in known]
        scenarios = asked.scenario or (SCENARIOS[:1] if asked.violation else SCENARIOS)
        for scenario, violation in product(scenarios, wrong if asked.violation else [""]):
            yield Case(client, host, upstream, scenario, violation)


def tables(rows: Sequence[JSON]) -> Iterator[str]:
    """The verdicts as Markdown: a row a client and scenario, or a row a violation; a column where it ran."""
    for kind in ("", *UPSTREAMS):
        ours = [row for row in rows if (row["upstream"] if row["violation"] else "") == kind]
        if not ours:
            continue
        names = ("client", "scenario") if not kind else ("violation",)
        column = ("host", "upstream") if not kind else ("client", "host")
        columns = list(dict.fromkeys(tuple(row[name] for name in column) for row in ours))
        cells = {(tuple(row[name] for name in names), tuple(row[name] for name in column)): row["word"] for row in ours}
        known = violations(kind) if kind else {}
        yield f"\n| {' | '.join((*names, *(('what the upstream does',) if kind else ()), *map(', '.join, columns)))} |"
        yield "|" + "---|" * (len(names) + bool(kind) + len(columns))
        for row in dict.fromkeys(key for key, _ in cells):
            told = (known[row[0]].replace("|", "\\|"),) if kind else ()
            yield f"| {' | '.join((*row, *told, *(cells.get((row, where), '') for where in columns)))} |"


def main(argv: Sequence[str]) -> int:
    """Exit 1 if a run did not end well."""
    flags = argparse.ArgumentParser(prog="python -m tests.clients", description=__doc__)
    for name, known in {"host": HOSTS, "upstream": UPSTREAMS, "scenario": SCENARIOS}.items():
        flags.add_argument(f"--{name}", action="append", choices=known, default=[], help="repeatable")
    for name in ("client", "violation"):
        flags.add_argument(f"--{name}", action="append", default=[], help="repeatable")
    flags.add_argument("--json", type=Path, help="add a verdict a line to this file")
    flags.add_argument("--tables", type=Path, nargs="+", help="run nothing; print these files as tables")
    asked = flags.parse_args(argv)
    if not (KIT / "run.py").exists():
        print("../shared/clients does not lie beside the project: nothing was run")
        return 0
    if asked.tables:
        rows = [json.loads(line) for file in asked.tables for line in file.read_text().splitlines()]
        print("\n".join(tables(rows)))
        return 0
    there = clients() if asked.client else []
    if unknown := [name for name in asked.client if name not in there]:
        flags.error(f"no client {', '.join(unknown)}; known are {', '.join(there)}")
    bad, out = 0, Path(mkdtemp(prefix="clients-"))
    for number, case in enumerate(cases(asked)):
        verdict, seconds = verdict_of(case, folder := out / f"{number:03}")
        bad += not verdict.well
        row = {**asdict(case), **asdict(verdict), "seconds": seconds, "out": str(folder)}
        print(*("  " if verdict.well else "! ", *asdict(case).values(), verdict.word, seconds), flush=True)
        if not verdict.well:
            print(f"    {folder} {verdict.why}", flush=True)
        if asked.json:
            with asked.json.open("a") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    print(f"{bad} did not end well")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
