"""The rules of the house, read from the source: who imports whom, who awaits, where an API's words stand."""

import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from pipeline.drive import AsyncEventStage
from pipeline.stage import AsyncStage, EventStage, Joint, Stage

ROOT = Path(__file__).parent.parent
SOURCES = sorted(path.relative_to(ROOT) for name in ("pipeline", "stages") for path in (ROOT / name).rglob("*.py"))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

MAY_AWAIT = ("pipeline/drive.py", "stages/guards/")
WAITING = (ast.Await, ast.AsyncFor, ast.AsyncWith)
CONCURRENT = {"asyncio", "concurrent", "multiprocessing", "queue", "sched", "threading", "trio"}
"""Modules that a stage has no business with."""
TASKS = {
    "create_memory_object_stream",
    "create_task",
    "create_task_group",
    "gather",
    "start_soon",
    "BlockingPortal",
    "CapacityLimiter",
    "Condition",
    "Lock",
    "Queue",
    "Semaphore",
    "TaskGroup",
    "Thread",
}
"""Tasks, queues and locks, whoever's they are."""

WIRE_WORDS = {
    "chat": {
        "[DONE]",
        "base_resp",
        "chat.completion",
        "completion_tokens",
        "finish_reason",
        "prompt_tokens",
        "reasoning_content",
        "reasoning_details",
        "tool_calls",
        "x_groq",
    },
    "messages": {
        "anthropic-ratelimit",
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
        "text_delta",
        "thinking_delta",
    },
    "responses": {
        "function_call_arguments",
        "output_item",
        "reasoning_summary_text",
        "response.completed",
        "response.created",
        "response.failed",
        "response.incomplete",
        "sequence_number",
        "x-codex",
        "x-models-etag",
    },
}
"""Words that are unmistakably one API's. Those of the field (content block, `tool_use`, `refusal`) are everybody's."""

ALSO_IN = {"messages": {"[DONE]"}, "responses": {"[DONE]", "completion_tokens", "prompt_tokens", "tool_calls"}}
"""Words of another API that a dialect knows too: as a part of its own, or since servers mix them up."""

INHERITED = {name for base in (Stage, AsyncStage, EventStage, AsyncEventStage, Joint) for name in vars(base)}
"""Methods that a base explains."""


@cache
def source(path: Path) -> str:
    """A file's text."""
    return (ROOT / path).read_text()


def imported(tree: ast.AST) -> Iterator[str]:
    """The modules that are imported anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a relative import"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def within(module: str, package: str) -> bool:
    """Whether a module is that package or in it."""
    return module == package or module.startswith(f"{package}.")


# The rules: each takes a path and its text, and names what breaks it


def wrong_imports(path: str, text: str) -> Iterator[str]:
    """`pipeline/` imports no stage, a neutral stage no other, a dialect no other dialect and no stage."""
    home = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    place = home.split(".")
    if home == "stages.recipe":
        return
    if place[:2] == ["stages", "dialects"]:
        home = ".".join(place[:3])
    elif place[0] == "stages":
        home = ".".join(place[:2])  # a stage may be a folder
    for module in imported(ast.parse(text)):
        if within(module, "stages") and not within(module, home):
            yield module


def waits(path: str, text: str) -> Iterator[str]:
    """`await` stands where the design says, nowhere else."""
    if not path.startswith(MAY_AWAIT):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, WAITING):
                yield f"{type(node).__name__} in line {node.lineno}"


def tasks(path: str, text: str) -> Iterator[str]:
    """No task, queue or lock but drive's."""
    tree = ast.parse(text)
    if path == "pipeline/drive.py":
        return
    yield from (module for module in imported(tree) if module.split(".")[0] in CONCURRENT)
    for node in ast.walk(tree):
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if name in TASKS:
            yield name


def wire_words(path: str, text: str) -> Iterator[str]:
    """An API's word in a string or a comment outside its dialect's folder."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.STRING, tokenize.COMMENT):
            for dialect, words in WIRE_WORDS.items():
                if not path.startswith(f"stages/dialects/{dialect}/"):
                    known = ALSO_IN.get(path.split("/")[2], set()) if path.startswith("stages/dialects/") else set()
                    yield from (word for word in words - known if word in token.string)


def too_long(path: str, text: str) -> Iterator[str]:
    """A file of more than four hundred lines."""
    if (lines := text.count("\n")) > 400:
        yield f"{lines} lines"


def unexplained(path: str, text: str) -> Iterator[str]:
    """A module, a public class or function, or a public method that no base explains, without a docstring."""
    tree = ast.parse(text)
    if tree.body and ast.get_docstring(tree) is None:
        yield "the module"
    named = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in tree.body:
        if not isinstance(node, named) or node.name.startswith("_"):
            continue
        if ast.get_docstring(node) is None:
            yield node.name
        inside = [inner for inner in node.body if isinstance(inner, named)] if isinstance(node, ast.ClassDef) else []
        for inner in inside:
            known = inner.name.startswith("_") or inner.name in INHERITED
            if not known and ast.get_docstring(inner) is None:
                yield f"{node.name}.{inner.name}"


def unfinished(path: str, text: str) -> Iterator[str]:
    """A note of work to be done."""
    yield from re.findall(r"\b(?:TODO|FIXME|XXX|HACK)\b", text)


def workplace(path: str, text: str) -> Iterator[str]:
    """A path of the place where it was written."""
    yield from re.findall(r"/work/|\.\./shared", text)


RULES: list[Callable[[str, str], Iterator[str]]] = [
    wrong_imports,
    waits,
    tasks,
    wire_words,
    too_long,
    unexplained,
    unfinished,
    workplace,
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_file_keeps_the_rule(rule: Callable[[str, str], Iterator[str]]) -> None:
    broken = {path.as_posix(): found for path in SOURCES if (found := [*rule(path.as_posix(), source(path))])}
    assert broken == {}, rule.__doc__


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        (wrong_imports, "pipeline/stage.py", "from stages.sse import SSEDecoder"),
        (wrong_imports, "pipeline/cli/convert.py", "def f():\n    import stages"),
        (wrong_imports, "stages/validate.py", "from stages.interleave import InterleaveBuffer"),
        (wrong_imports, "stages/validate.py", "from stages import interleave"),
        (wrong_imports, "stages/validate.py", "import stages.dialects.chat"),
        (wrong_imports, "stages/scrub/gate.py", "from stages.validate import Mode"),
        (wrong_imports, "stages/dialects/chat/calls.py", "from stages.dialects.messages.encode import PING"),
        (wrong_imports, "stages/dialects/chat/__init__.py", "from stages.dialects import messages"),
        (wrong_imports, "stages/dialects/chat/calls.py", "from stages.sse import SSEDecoder"),
        (waits, "pipeline/stage.py", "async def f(x):\n    await x"),
        (waits, "pipeline/testing.py", "async def f(x):\n    async for _ in x: ..."),
        (waits, "stages/sse.py", "async def f(x):\n    async with x: ..."),
        (tasks, "stages/sse.py", "import asyncio"),
        (tasks, "stages/sse.py", "from queue import Queue"),
        (tasks, "pipeline/stage.py", "anyio.create_memory_object_stream(1)"),
        (tasks, "pipeline/stage.py", "lock = anyio.Lock()"),
        (wire_words, "pipeline/stage.py", 'x = "tool_calls"'),
        (wire_words, "stages/interleave.py", "x = 1  # like content_block_start"),
        (wire_words, "stages/dialects/chat/calls.py", 'x = b"message_stop"'),
        (wire_words, "stages/dialects/messages/encode.py", '"""A chat.completion."""'),
        (wire_words, "stages/validate.py", '"response.output_item.added"'),
        (too_long, "stages/sse.py", "\n" * 401),
        (unexplained, "stages/sse.py", "x = 1"),
        (unexplained, "stages/sse.py", '"""M."""\ndef f(): ...'),
        (unexplained, "stages/sse.py", '"""M."""\nclass C: ...'),
        (unexplained, "stages/sse.py", '"""M."""\nclass C:\n    """C."""\n    def f(self): ...'),
        (unfinished, "stages/sse.py", "x = 1  # TODO: more"),
        (workplace, "stages/sse.py", "# see ../shared/reference"),
    ],
)
def test_the_rule_sees_a_breach(rule: Callable[[str, str], Iterator[str]], path: str, text: str) -> None:
    assert [*rule(path, text)]


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        (wrong_imports, "stages/scrub/gate.py", "from stages.scrub.scanner import Scanner"),
        (wrong_imports, "stages/dialects/chat/__init__.py", "from stages.dialects.chat.calls import Calls"),
        (wrong_imports, "stages/recipe.py", "from stages.sse import SSEDecoder"),
        (wrong_imports, "stages/sse.py", "from pipeline.stage import Stage"),
        (waits, "pipeline/drive.py", "async def f(x):\n    await x"),
        (waits, "pipeline/stage.py", "async def f(x): ..."),
        (waits, "stages/guards/moderate.py", "async def f(x):\n    await x"),
        (tasks, "pipeline/drive.py", "anyio.create_task_group()"),
        (wire_words, "stages/dialects/chat/calls.py", 'x = "tool_calls"'),
        (wire_words, "pipeline/events.py", 'x = "tool_use", "refusal", "content block"'),
        (too_long, "stages/sse.py", "\n" * 400),
        (
            unexplained,
            "stages/sse.py",
            '"""M."""\nclass C:\n    """C."""\n    def receive(self): ...\n    def _f(self): ...',
        ),
    ],
)
def test_the_rule_lets_pass_what_keeps_it(rule: Callable[[str, str], Iterator[str]], path: str, text: str) -> None:
    assert not [*rule(path, text)]


def test_the_rules_read_every_file() -> None:
    names = {path.as_posix() for path in SOURCES}
    assert {"pipeline/stage.py", "pipeline/cli/convert.py", "stages/sse.py", "stages/dialects/chat/calls.py"} <= names


def test_the_recipe_is_reached_by_one_string() -> None:
    found = [path.as_posix() for path in SOURCES if path.parts[0] == "pipeline" and "stages." in source(path)]
    named = [path for path in found if re.search(r"[\"']stages\.", source(Path(path)))]
    assert named == ["pipeline/__main__.py"]
    assert len(re.findall(r"[\"']stages\.", source(Path(named[0])))) == 1


def test_every_dialect_is_an_entry_point() -> None:
    folders = {path.parent.name for path in (ROOT / "stages" / "dialects").glob("*/__init__.py")}
    points = PYPROJECT["project"]["entry-points"]["streamweir.dialects"]
    assert points == {name: f"stages.dialects.{name}:DIALECT" for name in folders}


def test_the_wheel_holds_the_framework_and_the_stages_alone() -> None:
    assert PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"] == {"packages": ["pipeline", "stages"]}


def test_nothing_that_people_read_names_the_place_where_it_was_written() -> None:
    folders = [ROOT / name for name in ("examples", "fixtures", "docs")]
    files = [path for folder in folders for path in folder.rglob("*") if path.suffix in (".py", ".toml", ".md")]
    files += [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml")]
    assert {path.name: found for path in files if (found := [*workplace("", path.read_text())])} == {}
