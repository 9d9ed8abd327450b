"""The rules of the house, read from the sources: who imports whom, where words stand, how large files are."""

import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FRAMEWORK = sorted((ROOT / "pipeline").rglob("*.py"))
STAGES = sorted((ROOT / "stages").rglob("*.py"))
SOURCES = [*FRAMEWORK, *STAGES]
DIALECTS = sorted(path.name for path in (ROOT / "stages" / "dialects").iterdir() if (path / "__init__.py").exists())

COMPOSES = {"stages/recipe.py"}
"""The composition root: the one module that may import every stage."""

AWAITS = {"pipeline/drive.py": "the one place that awaits", "pipeline/testing.py": "plays async stages for their tests"}
"""Where `await` may stand, and why."""

CONCURRENCY = {"pipeline/drive.py": "it may own one reader task"}
"""Where a task may be started, and why."""

WIRE_WORDS: dict[str, tuple[str, ...]] = {
    "chat": (
        "[DONE]",
        "chat.completion",
        "completion_tokens",
        "content_filter",
        "finish_reason",
        "function_call",
        "prompt_tokens",
        "reasoning_content",
        "reasoning_details",
        "tool_calls",
    ),
    "messages": (
        "cache_creation_input_tokens",
        "content_block_delta",
        "content_block_start",
        "content_block_stop",
        "input_json_delta",
        "message_delta",
        "message_start",
        "message_stop",
        "partial_json",
        "redacted_thinking",
        "signature_delta",
        "stop_sequences",
        "thinking_delta",
    ),
    "responses": (
        "custom_tool_call",
        "function_call_arguments",
        "function_call_output",
        "max_output_tokens",
        "output_item",
        "output_text",
        "reasoning_summary",
        "response.completed",
        "response.created",
        "response.failed",
        "response.incomplete",
        "sequence_number",
    ),
}
"""Words that only one API's wire has. They stand in its dialect's folder and nowhere else."""

SHARED_WORDS = {
    ("responses", "function_call"): "the name of an item",
    ("responses", "content_filter"): "why a response is incomplete",
    ("responses", "[DONE]"): "servers that speak both APIs send it here too",
    ("responses", "prompt_tokens"): "they count under Chat's names here too",
    ("responses", "completion_tokens"): "they count under Chat's names here too",
    ("chat", "output_text"): "a part of a content list, at vendors that serve both APIs",
    ("chat", "cache_creation_input_tokens"): "vendors and gateways count under Anthropic's name too",
}
"""Words of another dialect that this one's wire has as well, and where."""


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imported(path: Path) -> Iterator[str]:
    """The modules that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name(path)}: imports are absolute"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def said(path: Path) -> Iterator[str]:
    """The strings, comments and docstrings of a file."""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if token.type in (tokenize.STRING, tokenize.COMMENT):
            yield token.string


def own_dialect(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    return parts[2] if parts[:2] == ("stages", "dialects") and len(parts) > 3 else ""


@pytest.mark.parametrize("path", FRAMEWORK, ids=name)
def test_the_framework_knows_no_stage(path: Path) -> None:
    assert not [module for module in imported(path) if module.split(".")[0] == "stages"]


@pytest.mark.parametrize("path", [path for path in STAGES if not own_dialect(path)], ids=name)
def test_a_neutral_stage_imports_no_other_stage(path: Path) -> None:
    package = ".".join(path.relative_to(ROOT).with_suffix("").parts[:2])
    others = [m for m in imported(path) if m.split(".")[0] == "stages" and not (m + ".").startswith(package + ".")]
    assert name(path) in COMPOSES or not others


@pytest.mark.parametrize("path", [path for path in STAGES if own_dialect(path)], ids=name)
def test_a_dialect_imports_no_stage_but_its_own_rooms(path: Path) -> None:
    rooms = f"stages.dialects.{own_dialect(path)}"
    assert not [m for m in imported(path) if m.split(".")[0] == "stages" and not (m + ".").startswith(rooms + ".")]


def test_every_dialect_is_found_through_its_entry_point() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["streamweir.dialects"] == {
        dialect: f"stages.dialects.{dialect}:DIALECT" for dialect in DIALECTS
    }


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_only_drive_awaits(path: Path) -> None:
    waiting = (ast.Await, ast.AsyncFor, ast.AsyncWith)
    found = [node.lineno for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, waiting)]
    assert name(path) in AWAITS or name(path).startswith("stages/guards/") or not found


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_no_task_queue_or_lock_stands_in_a_stage(path: Path) -> None:
    words = r"create_task\b|TaskGroup\(|create_task_group\(|start_soon\(|Queue\(|Lock\(|memory_object_stream|Thread\("
    assert name(path) in CONCURRENCY or not re.search(words, path.read_text())


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_a_wire_word_stands_in_its_dialects_folder_only(path: Path) -> None:
    strange = [
        (dialect, word)
        for dialect, words in WIRE_WORDS.items()
        for word in words
        if dialect != own_dialect(path) and (own_dialect(path), word) not in SHARED_WORDS
        for text in said(path)
        if re.search(rf"(?<![a-z_]){re.escape(word)}(?![a-z_])", text)
    ]
    assert not strange


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_a_file_is_one_thing(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_what_is_public_says_what_it_is(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree) or not tree.body
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    public = [*classes, *(node for node in functions if not node.name.startswith("_"))]
    assert not [node.name for node in public if ast.get_docstring(node) is None]


@pytest.mark.parametrize("path", [*SOURCES, *sorted((ROOT / "examples").rglob("*.py"))], ids=name)
def test_nothing_is_left_undone_or_silenced(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"\b(TODO|FIXME|XXX|HACK)\b", text)
    assert not re.search(r"\bcast\(|# type: ignore(?!\[[a-z-]+\]  # )", text)


def test_the_wheel_ships_the_framework_and_the_stages_alone() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]
    assert build["wheel"] == {"packages": ["pipeline", "stages"]}
