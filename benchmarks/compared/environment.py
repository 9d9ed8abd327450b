"""The environment of the other translators: made on the first run, and anew when the pins have changed."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).parent / "requirements.txt"
STAMP = ".requirements"
ASK = "import importlib.metadata as m, json, sys; print(json.dumps({n: m.version(n) for n in sys.argv[1:]}))"


def python_of(folder: Path) -> Path:
    """Its interpreter."""
    return folder / "bin" / "python"


def made(folder: Path) -> Path:
    """The interpreter of the environment, once it is made. Raises `CalledProcessError`."""
    digest = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    stamp = folder / STAMP
    if stamp.exists() and stamp.read_text() == digest:
        return python_of(folder)
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    pip = [str(python_of(folder)), "-m", "pip", "install", "--quiet", "--only-binary", ":all:"]
    subprocess.run([*pip, "--requirement", REQUIREMENTS], check=True)
    stamp.write_text(digest)
    return python_of(folder)


def versions(python: Path, packages: list[str]) -> dict[str, str]:
    """The installed versions."""
    done = subprocess.run([python, "-c", ASK, *packages], check=True, capture_output=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found
