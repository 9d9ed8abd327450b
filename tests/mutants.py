"""`make mutants`: break the stages that hold the rules, one small change at a time, and see a test go red for each.

A mutant that no test kills is to stand in `docs/mutants.md` with the reason. mutmut makes the mutants in a copy of the
tree, `mutants/`, and finds out which tests call what; `tests.forked` tries them there. What is mutated, and by which
tests, stands in `pyproject.toml`. `python -m tests.mutants stages.scrub` breaks only what lies in that package or
module; several may be named.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import frozen

from tests.forked import AT_ONCE, KILLED

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "docs" / "mutants.md"
COPY = ROOT / "mutants"
FEW = "pipeline.arguments.*__mutmut_1"
"""Mutants that mutmut is to try itself: it tries one at least, when all that this needs of it is done."""

QUICK = ("-p", "tests.forked", "--assert=plain", "--tb=native")
"""Nobody reads why a test fails; pytest's own account of it takes seconds, as mutmut's files are long."""

_LISTED = re.compile(
    r"^`(?P<place>[^`]+)`\n\n```diff\n(?P<diff>.*?)\n```\n\n(?P<reason>\S.*?)(?=\n\n|\s*\Z)", re.M | re.S
)


@frozen
class Change:
    """What a mutant is: a function, and the lines taken out of it and put in. (mutmut's numbers come and go.)"""

    place: str
    lines: tuple[str, ...]

    @classmethod
    def of(cls, place: str, diff: str) -> "Change":
        """The change that a diff makes; its context and the lines' indentation do not matter."""
        changed = [line for line in diff.splitlines() if line[:1] in ("+", "-") and line[:3] not in ("+++", "---")]
        return cls(place, tuple(line[0] + line[1:].strip() for line in changed))

    def __str__(self) -> str:
        return "\n".join((f"`{self.place}`", "", "```diff", *self.lines, "```"))


def explained(document: str) -> dict[Change, str]:
    """The listed mutants and their reasons: a place, a diff and a paragraph each."""
    return {Change.of(entry["place"], entry["diff"]): entry["reason"] for entry in _LISTED.finditer(document)}


def mutants(modules: Sequence[str]) -> list[str]:
    """mutmut's names for the mutants in the modules."""
    files = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(COPY.rglob("*.py.meta"))]
    return [name for file in files for name in file["exit_code_by_key"] if within(place_of(name), modules)]


def survivors(names: Sequence[str]) -> Iterator[Change]:
    """Try the mutants; those that no test killed. Exits if a test fails without any."""
    asked, told = COPY / "asked.txt", COPY / "told.txt"
    asked.write_text("\n".join(names), encoding="utf-8")
    set_up = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mutmut"]
    arguments = (*set_up["pytest_add_cli_args"], *set_up["pytest_add_cli_args_test_selection"])
    command = (sys.executable, "-m", "pytest", *QUICK, f"--mutants={asked}", f"--results={told}")
    environment = {**os.environ, "MUTANT_UNDER_TEST": ""}
    done = subprocess.run((*command, *arguments), cwd=COPY, env=environment, capture_output=True, text=True)
    if not told.exists() or len(results := told.read_text(encoding="utf-8").splitlines()) != len(names):
        sys.exit(f"the mutants were not tried:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    for name, became in (line.split("\t") for line in results):
        if became != KILLED:
            yield Change.of(place_of(name), mutmut("show", name))


def place_of(mutant: str) -> str:
    """The dotted name of the function that mutmut's name for a mutant tells of."""
    module, _, function = mutant.rpartition("__mutmut_")[0].rpartition(".")
    named = function.removeprefix("xǁ").replace("ǁ", ".") if "ǁ" in function else function.removeprefix("x_")
    return f"{module}.{named}"


def mutmut(*arguments: str) -> str:
    """What a command of mutmut's prints. Exits with it if the command fails."""
    done = subprocess.run([_command(), *arguments], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"mutmut {' '.join(arguments)} failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


def within(place: str, modules: Sequence[str]) -> bool:
    """Whether a function lies in one of the packages or modules, of which none means all."""
    return not modules or any(place.startswith(f"{module}.") for module in modules)


def main(modules: Sequence[str]) -> int:
    """Run mutmut afresh and print what survived; 1 if some of it stands nowhere with its reason."""
    shutil.rmtree(COPY, ignore_errors=True)
    mutmut("run", "--max-children", str(AT_ONCE), FEW)
    names = mutants(modules)
    left = list(dict.fromkeys(survivors(names)))
    reasons = explained(LIST.read_text(encoding="utf-8"))
    unexplained = [change for change in left if change not in reasons]
    for change in left:
        print(f"\n{change}\n\n{reasons.get(change, 'SURVIVED, and stands in no list')}")
    for change in (change for change in reasons.keys() - set(left) if within(change.place, modules)):
        print(f"\n{change}\n\nis listed, and was killed: take it out")
    print(f"\n{len(left)} of {len(names)} mutants survived, {len(unexplained)} of them unexplained")
    return 1 if unexplained else 0


def _command() -> str:
    return str(Path(sys.executable).with_name("mutmut"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
