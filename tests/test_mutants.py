"""tests.mutants: the list of the mutants that may live."""

from pathlib import Path

import pytest

from tests.mutants import LIST, ROOT, Change, explained, place_of, within

SHOWN = """# stages.sse.x_lines__mutmut_1: survived
--- stages/sse.py
+++ stages/sse.py
@@ -1,4 +1,4 @@
     a = 1
-    b = 2
+    b = 3
     c = 4
"""
ENTRY = """`stages.sse.lines`

```diff
-b = 2
+b = 3
```

Nobody reads it,
as a second line says."""

LISTED = explained(LIST.read_text(encoding="utf-8"))


def test_a_mutant_is_known_by_its_function_and_the_lines_it_changes() -> None:
    assert Change.of("stages.sse.lines", SHOWN) == Change("stages.sse.lines", ("-b = 2", "+b = 3"))


def test_a_function_is_named_as_python_names_it() -> None:
    assert place_of("stages.sse.xǁSSEDecoderǁ_line__mutmut_12") == "stages.sse.SSEDecoder._line"
    assert place_of("stages.sse.x__lines__mutmut_1") == "stages.sse._lines"


def test_a_run_may_be_of_some_packages_and_modules_only() -> None:
    assert within("stages.scrub.gate.fate", [])
    assert within("stages.scrub.gate.fate", ["stages.sse", "stages.scrub"])
    assert not within("stages.scrubber.fate", ["stages.scrub"])


def test_the_list_is_read_back_as_it_is_printed() -> None:
    change = Change("stages.sse.lines", ("-b = 2", "+b = 3"))
    reason = "Nobody reads it,\nas a second line says."
    assert explained(f"# Title\n\nWords.\n\n{ENTRY}\n\n{ENTRY.replace('lines', 'others')}\n") == {
        change: reason,
        Change("stages.sse.others", change.lines): reason,
    }
    assert ENTRY.startswith(str(change))


@pytest.mark.parametrize("change", LISTED, ids=str)
def test_what_a_listed_mutant_takes_out_still_stands_in_its_file(change: Change) -> None:
    code = next(path for path in _files(change.place) if path.exists()).read_text(encoding="utf-8")
    lines = {line.strip() for line in code.splitlines()}
    assert {line[1:] for line in change.lines if line.startswith("-")} <= lines


def _files(place: str) -> list[Path]:
    parts = place.split(".")
    return [ROOT.joinpath(*parts[:end]).with_suffix(".py") for end in range(len(parts) - 1, 0, -1)]
