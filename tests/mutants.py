"""`make mutants`: break the stages that hold the rules, one small change at a time, and see a test go red for each.

A mutant that no test kills is to stand in `docs/mutants.md` with the reason. mutmut works on a copy of the tree in
`mutants/`; what it mutates and which tests it runs stands in `pyproject.toml`.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "docs" / "mutants.md"
CHILDREN = "2"
SURVIVED = frozenset({"survived", "no tests", "suspicious", "segfault", "not checked", "skipped"})
"""What mutmut says of a mutant that no test killed. One that ran out of time was killed: it loops."""

_RESULT = re.compile(r"^ +(?P<name>\S+): (?P<status>.+)$", re.MULTILINE)
_LISTED = re.compile(
    r"^`(?P<file>[^`]+)`\n\n```diff\n(?P<diff>.*?)\n```\n\n(?P<reason>\S.*?)$", re.MULTILINE | re.DOTALL
)


@frozen
class Change:
    """What a mutant is: a file, and the lines that were taken out and put in. (mutmut's numbers come and go.)"""

    file: str
    lines: tuple[str, ...]

    @classmethod
    def of(cls, file: str, diff: str) -> "Change":
        """The change that a diff makes; its context and the lines' indentation do not matter."""
        changed = [line for line in diff.splitlines() if line[:1] in ("+", "-") and line[:3] not in ("+++", "---")]
        return cls(file, tuple(line[0] + line[1:].strip() for line in changed))

    def __str__(self) -> str:
        return "\n".join((f"`{self.file}`", "", "```diff", *self.lines, "```"))


def explained(document: str) -> dict[Change, str]:
    """The listed mutants and their reasons: a file's name, a diff and a paragraph each."""
    found = _LISTED.finditer(document)
    return {Change.of(entry["file"], entry["diff"]): entry["reason"] for entry in found}


def survivors() -> Iterator[Change]:
    """The mutants of the last run that no test killed."""
    for result in _RESULT.finditer(mutmut("results")):
        if result["status"] in SURVIVED:
            file = result["name"].rpartition(".")[0].replace(".", "/") + ".py"
            yield Change.of(file, mutmut("show", result["name"]))


def mutmut(*arguments: str) -> str:
    """What a command of mutmut's prints."""
    done = subprocess.run([_command(), *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout


def main() -> int:
    """Run mutmut afresh and print what survived; 1 if some of it stands nowhere with its reason."""
    shutil.rmtree(ROOT / "mutants", ignore_errors=True)
    subprocess.run([_command(), "run", "--max-children", CHILDREN], cwd=ROOT, check=True)
    left, reasons = list(dict.fromkeys(survivors())), explained(LIST.read_text(encoding="utf-8"))
    unexplained = [change for change in left if change not in reasons]
    for change in left:
        print(f"\n{change}\n\n{reasons.get(change, 'SURVIVED, and stands in no list')}")
    for change in reasons.keys() - set(left):
        print(f"\n{change}\n\nis listed, and was killed: take it out")
    print(f"\n{len(left)} mutants survived, {len(unexplained)} of them unexplained")
    return 1 if unexplained else 0


def _command() -> str:
    return str(Path(sys.executable).with_name("mutmut"))


if __name__ == "__main__":
    sys.exit(main())
