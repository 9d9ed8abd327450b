"""What a host is told by flags or by a TOML file: the same names, flags first."""

import argparse
import math
import os
import re
import tomllib
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any, Literal, get_args, get_origin
from urllib.parse import urlsplit

from attrs import asdict, evolve, field, fields, frozen

from pipeline.dialect import ShownReasoning, ToldLimit
from pipeline.errors import ClientError
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.request import DEFAULT_OPTIONS, RequestOptions
from pipeline.route import DEFAULT_ANSWERS, AnswerOptions, Leftover, Recover
from stages.recipe import check

DEFAULT_LISTEN = "127.0.0.1:8080"
WRITTEN = re.compile("[\x21-\x7e]+")
"""What can stand in a request's head."""
NONE: Set[str] = frozenset()
UPSTREAMS = ("chat", "responses", "messages")
"""The dialects that an upstream may speak."""


@frozen(kw_only=True)
class Config:
    """One host. Without an upstream it answers from the embedded replay."""

    host: str = "127.0.0.1"
    port: int = 8080
    allow_host: frozenset[str] = frozenset()
    """Who is answered besides those who name this machine; see `Visitors`."""
    dialect: str = "chat"
    """What the upstream speaks."""
    upstream: str = ""
    """Its base URL, up to and with `/v1`; a query behind that goes with each request."""
    api_key: str = field(default="", repr=False)
    models: Mapping[str, str] = field(factory=dict)
    """The upstream's model for a client's."""
    streams_only: bool = False
    without: frozenset[str] = frozenset()
    requests: RequestOptions = DEFAULT_OPTIONS
    answers: AnswerOptions = DEFAULT_ANSWERS
    limits: Limits = DEFAULT_LIMITS


def parser(prog: str) -> argparse.ArgumentParser:
    """The flags that every host has."""
    flags = argparse.ArgumentParser(
        prog=prog,
        description="Clients of Messages, Chat and Responses over one upstream of any of them, or over a replay.",
        argument_default=argparse.SUPPRESS,
    )
    flags.add_argument("--listen", metavar="HOST:PORT", help=f"default {DEFAULT_LISTEN}")
    flags.add_argument(
        "--allow-host",
        metavar="NAME",
        action="append",
        help="also answer what is sent to this name (Host) or by its pages (Origin); repeatable",
    )
    flags.add_argument(
        "--upstream",
        metavar="DIALECT=URL",
        help=f"DIALECT: {' or '.join(UPSTREAMS)}; the URL ends in /v1, or in /v1?QUERY",
    )
    flags.add_argument("--api-key-env", metavar="NAME", help="the environment variable that holds the upstream's key")
    flags.add_argument(
        "--model-map",
        metavar="A=B",
        action="append",
        help="ask for model B where a client asks for A (=B: where it names none); repeatable",
    )
    flags.add_argument(
        "--recover",
        choices=get_args(Recover),
        help="tool calls written as text (default: native)",
    )
    flags.add_argument("--residue", choices=get_args(Leftover), help="markup of a call that is not taken up")
    flags.add_argument("--unfinished", choices=get_args(Leftover), help="markup that the end cut off")
    flags.add_argument("--reasoning-open", action="store_true", help="the prompt ends inside an open reasoning tag")
    flags.add_argument(
        "--stream-calls", action="store_true", help="begin a call written as text before it is whole (--recover prompt)"
    )
    flags.add_argument(
        "--show-reasoning", choices=get_args(ShownReasoning), help="what reasoning is for a Responses client"
    )
    flags.add_argument(
        "--told-limit", choices=get_args(ToldLimit), help="what a Responses client is told that a limit ended"
    )
    flags.add_argument("--weak", metavar="FAMILY", action="append", help="also take up this family of weak markup")
    flags.add_argument(
        "--config",
        metavar="FILE.toml",
        help="the same names, with _ for -, and the tables [model_map], [requests], [answers] and [limits]",
    )
    return flags


def read(flags: argparse.ArgumentParser, argv: Sequence[str], environment: Mapping[str, str] = os.environ) -> Config:
    """The configuration that a command line asks for. Flags of a host's own are its own matter.

    What cannot be asked for exits as argparse does: `SystemExit` with 2, after the usage.
    """
    given = vars(flags.parse_args(argv))
    given = {name: given[name] for name in (*NAMES, *ANSWERS, "config") if name in given}
    try:
        members = _file(Path(given.pop("config"))) if "config" in given else {}
        if asked := {name: given.pop(name) for name in ANSWERS if name in given}:
            table = members.get("answers", {})
            given["answers"] = {**table, **asked} if isinstance(table, dict) else table
        if "model_map" in given:
            given["model_map"] = dict(map(_pair, given["model_map"]))
        return _config({**members, **given}, environment)
    except (OSError, ValueError) as error:
        flags.error(str(error))


NAMES = (
    *("listen", "allow_host", "upstream", "api_key_env", "model_map"),
    *("streams_only", "without", "requests", "answers", "limits"),  # in a file only
)
ANSWERS = (
    *("recover", "residue", "unfinished", "reasoning_open", "stream_calls", "weak"),
    *("show_reasoning", "told_limit"),
)
"""The options of answers that are flags too."""
ROUTES_OWN = frozenset({"model", "upstream"})
"""The options of a request that the route itself sets."""


def base_url(host: str, port: int) -> str:
    """The address as a client writes it."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _pair(said: str) -> tuple[str, str]:
    client, _, upstream = said.partition("=")
    if not upstream:
        raise ValueError(f"model_map: {said!r} is no A=B")
    return client, upstream


def _config(members: Mapping[str, Any], environment: Mapping[str, str]) -> Config:
    """Raises `ValueError` naming the member that is wrong."""
    if unknown := members.keys() - set(NAMES):
        raise ValueError(f"unknown: {', '.join(sorted(unknown))}")
    host, port = _address(_text(members, "listen", DEFAULT_LISTEN))
    dialect, upstream = _upstream(_text(members, "upstream"))
    return Config(
        host=host,
        port=port,
        allow_host=frozenset(_words("allow_host", members.get("allow_host", []))),
        dialect=dialect,
        upstream=upstream,
        api_key=_key(_text(members, "api_key_env"), environment),
        models=_models(members.get("model_map", {})),
        streams_only=_of_kind("streams_only", bool, members.get("streams_only", False)),
        without=frozenset(_words("without", members.get("without", []))),
        requests=evolve(DEFAULT_OPTIONS, **_options("requests", members, RequestOptions, ROUTES_OWN)),
        answers=_answers(members),
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


def _upstream(said: str) -> tuple[str, str]:
    if not said:
        return UPSTREAMS[0], ""
    if "@" in said:
        raise ValueError("upstream: no user and no password (no @) may stand in its URL; see --api-key-env")
    name, _, url = said.partition("=")
    if name not in UPSTREAMS or not _is_base(url):
        shown = said.partition("?")[0].partition("#")[0]  # behind that there may be a key
        raise ValueError(f"upstream: {shown!r} is no {'=URL or '.join(UPSTREAMS)}=URL")
    base, mark, query = url.partition("?")
    return name, base.rstrip("/") + mark + query


def _is_base(url: str) -> bool:
    """Whether paths can be asked for behind it."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    whole = parts.scheme in ("http", "https") and parts.hostname and port != 0
    return bool(whole) and "#" not in url and WRITTEN.fullmatch(url) is not None


def _key(name: str, environment: Mapping[str, str]) -> str:
    if not name:
        return ""
    if not (key := environment.get(name, "").strip()):
        raise ValueError(f"api_key_env: the environment has no {name}")
    return key


def _models(table: Any) -> dict[str, str]:
    if not isinstance(table, dict) or not all(isinstance(name, str) and name for name in table.values()):
        raise ValueError("model_map: must be a table of the upstream's models by the client's")
    return table


def _answers(members: Mapping[str, Any]) -> AnswerOptions:
    answers = evolve(DEFAULT_ANSWERS, **_options("answers", members, AnswerOptions))
    try:
        check(answers)
    except ClientError as error:
        raise ValueError(f"answers: {error}") from error
    return answers


def _options(
    name: str, members: Mapping[str, Any], options: type[RequestOptions] | type[AnswerOptions], barred: Set[str] = NONE
) -> dict[str, Any]:
    """The options of a route that a table names."""
    table = members.get(name, {})
    kinds = {option.name: option.type for option in fields(options) if option.name not in barred}
    if not isinstance(table, dict):
        raise ValueError(f"{name}: must be a table")
    for member in table:
        if member not in kinds:
            raise ValueError(f"{name}.{member}: unknown")
    return {member: _of_kind(f"{name}.{member}", kinds[member], value) for member, value in table.items()}


def _of_kind(name: str, kind: Any, value: Any) -> Any:
    """The value, which must be of that type, or of the first of a union; of a literal, one of its words."""
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise ValueError(f"{name}: must be one of {', '.join(get_args(kind))}")
        return value
    if get_origin(kind) is tuple:
        return tuple(_words(name, value))
    due = (get_args(kind) or (kind,))[0]
    if type(value) is not due:
        raise ValueError(f"{name}: must be {_KINDS[due]}")
    return value


_KINDS = {bool: "true or false", int: "a whole number", str: "a string"}


def _words(name: str, value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise ValueError(f"{name}: must be a list of words")
    return value


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
