"""`make mutants`: break the stages that hold the rules, one small change at a time, and see a test go red for each.

A mutant that no test kills is to stand in `docs/mutants.md` with the reason. mutmut works on a copy of the tree in
`mutants/`; what it mutates and which tests it runs stands in `pyproject.toml`. `python -m tests.mutants stages.scrub`
breaks only what lies in that package or module; several may be named.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import frozen

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "docs" / "mutants.md"
CHILDREN = "2"
SURVIVED = frozenset({"survived", "no tests", "suspicious", "segfault", "not checked", "skipped"})
"""What mutmut says of a mutant that no test killed. One that ran out of time was killed: it loops."""

_RESULT = re.compile(r"^ +(?P<name>\S+): (?P<status>.+)$", re.MULTILINE)
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


def survivors(modules: Sequence[str]) -> Iterator[Change]:
    """The mutants in the modules that no test of the last run killed."""
    for result in _RESULT.finditer(mutmut("results")):
        place = place_of(result["name"])
        if result["status"] in SURVIVED and within(place, modules):
            yield Change.of(place, mutmut("show", result["name"]))


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
    shutil.rmtree(ROOT / "mutants", ignore_errors=True)
    run = ("run", "--max-children", CHILDREN, *(f"{module}.*" for module in modules))
    if sys.stdout.isatty():
        subprocess.run([_command(), *run], cwd=ROOT, check=True)
    else:
        mutmut(*run)  # its progress is for a terminal
    left = list(dict.fromkeys(survivors(modules)))
    reasons = explained(LIST.read_text(encoding="utf-8"))
    unexplained = [change for change in left if change not in reasons]
    for change in left:
        print(f"\n{change}\n\n{reasons.get(change, 'SURVIVED, and stands in no list')}")
    for change in (change for change in reasons.keys() - set(left) if within(change.place, modules)):
        print(f"\n{change}\n\nis listed, and was killed: take it out")
    print(f"\n{len(left)} mutants survived, {len(unexplained)} of them unexplained")
    return 1 if unexplained else 0


def _command() -> str:
    return str(Path(sys.executable).with_name("mutmut"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
