"""What the README shows is what happens."""

import re
import shlex
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_replay_in_the_readme_is_its_real_output() -> None:
    shown = re.search(r"```console\n\$ \.venv/bin/python -m pipeline (replay .*?[^\\])\n(.*?)```", README, re.DOTALL)
    assert shown
    command, transcript = shown.groups()
    arguments = shlex.split(command.replace("\\\n", " "))
    done = subprocess.run([sys.executable, "-m", "pipeline", *arguments], cwd=ROOT, capture_output=True, check=True)
    assert done.stdout.decode() == transcript


def test_the_stages_in_the_readmes_table_are_there() -> None:
    named = re.findall(r"^\| `(stages\.[\w.]+)\.(\w+)` \|", README, re.MULTILINE)
    assert len(named) >= 7
    for module, stage in named:
        assert isinstance(getattr(import_module(module), stage), type)


def test_the_two_commands_are_targets_of_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"\$ make (\w+)", README)) == {"demo", "test"} <= targets


def test_the_readme_asks_for_the_python_that_the_project_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=3.11"
    assert "Python 3.11 or newer" in README
