"""What the proxy is told by flags or by a TOML file: the same names, flags first."""

import argparse
import math
import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from attrs import asdict, evolve, field, frozen

from pipeline.limits import DEFAULT_LIMITS, Limits

DEFAULT_LISTEN = "127.0.0.1:8080"


@frozen(kw_only=True)
class Config:
    """One proxy. Without an upstream it answers from the embedded replay."""

    host: str = "127.0.0.1"
    port: int = 8080
    upstream: str = ""
    """The base URL of a Chat upstream, up to and with `/v1`."""
    api_key: str = field(default="", repr=False)
    limits: Limits = DEFAULT_LIMITS


def read(argv: Sequence[str], environment: Mapping[str, str] = os.environ) -> Config:
    """The configuration that a command line asks for.

    What cannot be asked for exits as argparse does: `SystemExit` with 2, after the usage.
    """
    parser = argparse.ArgumentParser(
        prog="python -m examples.proxy",
        description="Messages clients over a Chat upstream; without an upstream, over an embedded replay.",
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument("--listen", metavar="HOST:PORT", help=f"default {DEFAULT_LISTEN}")
    parser.add_argument("--upstream", metavar="chat=URL", help="a Chat upstream; the URL ends in /v1")
    parser.add_argument("--api-key-env", metavar="NAME", help="the environment variable that holds the upstream's key")
    parser.add_argument("--config", metavar="FILE.toml", help="the same names, with _ for -, and a table [limits]")
    flags = vars(parser.parse_args(argv))
    try:
        members = _file(Path(flags.pop("config"))) if "config" in flags else {}
        return _config({**members, **flags}, environment)
    except (OSError, ValueError) as error:
        parser.error(str(error))


def _file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _config(members: Mapping[str, Any], environment: Mapping[str, str]) -> Config:
    """Raises `ValueError` naming the member that is wrong."""
    if unknown := members.keys() - {"listen", "upstream", "api_key_env", "limits"}:
        raise ValueError(f"unknown: {', '.join(sorted(unknown))}")
    host, port = _address(_text(members, "listen", DEFAULT_LISTEN))
    return Config(
        host=host,
        port=port,
        upstream=_upstream(_text(members, "upstream")),
        api_key=_key(_text(members, "api_key_env"), environment),
        limits=_limits(members.get("limits", {})),
    )


def _text(members: Mapping[str, Any], name: str, default: str = "") -> str:
    value = members.get(name, default)
    if not isinstance(value, str):
        raise ValueError(f"{name}: must be a string")
    return value


def _address(listen: str) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{listen}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or port is None:
        raise ValueError(f"listen: {listen!r} is no HOST:PORT")
    return host, port


def _upstream(said: str) -> str:
    if not said:
        return ""
    name, _, url = said.partition("=")
    if name != "chat" or urlsplit(url).scheme not in ("http", "https"):
        raise ValueError(f"upstream: {said!r} is no chat=URL")
    return url.rstrip("/")


def _key(name: str, environment: Mapping[str, str]) -> str:
    if not name:
        return ""
    if not (key := environment.get(name, "").strip()):
        raise ValueError(f"api_key_env: the environment has no {name}")
    return key


def _limits(table: Any) -> Limits:
    known = asdict(DEFAULT_LIMITS)
    if not isinstance(table, dict):
        raise ValueError("limits: must be a table")
    for name, value in table.items():
        if name not in known:
            raise ValueError(f"limits.{name}: unknown")
        if isinstance(known[name], float):
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise ValueError(f"limits.{name}: must be a number of seconds; 0 turns it off")
        elif isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"limits.{name}: must be a whole number above 0")
    return evolve(DEFAULT_LIMITS, **table)
