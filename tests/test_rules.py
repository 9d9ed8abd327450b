"""The documents that name tests: every test they name is there, and every behaviour in the index has one."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
RULES = ROOT / "docs" / "rules.md"
DOCUMENTS = sorted(path for path in (ROOT / "docs").rglob("*.md") if "::test_" in path.read_text("utf-8"))

NAMED = re.compile(r"`(test_\w+)::(test_\w+)`")


@cache
def names_in(module: str) -> frozenset[str]:
    """The tests of a module, read from its source; none if there is no such module."""
    path = ROOT / "tests" / f"{module}.py"
    if not path.exists():
        return frozenset()
    tree = ast.parse(path.read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in tree.body if isinstance(node, kinds) and node.name.startswith("test_"))


def found(name: str) -> list[str]:
    """The modules that have a test of that name."""
    return [path.stem for path in sorted((ROOT / "tests").glob("test_*.py")) if name in names_in(path.stem)]


def rows(document: str) -> Iterator[tuple[str, str]]:
    """The behaviours of an index, each with the cell of its tests."""
    for line in document.splitlines():
        if line.startswith("| ") and "::" in line.rpartition(" | ")[2]:
            what, _, tests = line.strip("| ").rpartition(" | ")
            yield what, tests
        elif line.startswith("| ") and "tests" not in line:
            yield line, ""


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_test_that_a_document_names_is_there(path: Path) -> None:
    text = path.read_text("utf-8")
    named = NAMED.findall(text)
    assert len(named) == text.count("::test_"), "a test is named in another form"
    moved = {f"{module}::{name}": found(name) for module, name in named if name not in names_in(module)}
    assert moved == {}, "a test is not where a document says: each with the modules that have it"


def test_every_behaviour_in_the_index_has_a_test_and_stands_there_once() -> None:
    found = list(rows(RULES.read_text("utf-8")))
    assert len(found) > 80
    assert [what for what, tests in found if not NAMED.search(tests)] == []
    assert len({what for what, _ in found}) == len(found)


def test_a_test_that_is_not_there_is_seen() -> None:
    assert "test_a_test_that_is_not_there_is_seen" in names_in("test_rules")
    assert not names_in("test_no_such_module")
    assert found("test_a_test_that_is_not_there_is_seen") == ["test_rules"]
    assert list(rows("| a | `test_x::test_y` |\n| b | none |\n| what | tests |\n|---|---|\n")) == [
        ("a", "`test_x::test_y`"),
        ("| b | none |", ""),
    ]
