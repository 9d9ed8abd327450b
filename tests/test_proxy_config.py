"""The flags of the example hosts and their TOML file, and the modules themselves as they are run."""

import logging
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import anyio
import pytest
from attrs import evolve

from examples.gateway.access import without_values
from examples.gateway.config import Config, base_url, parser
from examples.gateway.config import read as read_flags
from examples.gateway.run import serve
from examples.gateway.visitors import Visitors
from examples.proxy.__main__ import main as on_aiohttp
from examples.raw_socket.__main__ import main as on_sockets
from pipeline.errors import ClientError
from pipeline.limits import DEFAULT_LIMITS
from pipeline.request import RequestOptions
from pipeline.route import AnswerOptions
from tests.upstreams import EVERY_HOST, Host

ROOT = Path(__file__).parents[1]


def read(argv: Sequence[str], environment: Mapping[str, str]) -> Config:
    return read_flags(parser("python -m examples.proxy"), argv, environment)


def written(folder: Path, text: str) -> str:
    file = folder / "proxy.toml"
    file.write_text(text, "utf-8")
    return str(file)


def test_without_flags_it_listens_on_loopback_over_the_embedded_replay() -> None:
    assert read([], {}) == Config(host="127.0.0.1", port=8080, dialect="chat", upstream="", limits=DEFAULT_LIMITS)


def test_flags_say_where_it_listens_and_what_is_behind_it() -> None:
    flags = ["--listen", "[::1]:0", "--upstream", "chat=https://host/v1/", "--api-key-env", "KEY"]
    assert read(flags, {"KEY": " secret\n"}) == Config(host="::1", port=0, upstream="https://host/v1", api_key="secret")


def test_who_else_is_answered_is_told_by_flags_or_in_a_file(tmp_path: Path) -> None:
    file = written(tmp_path, "allow_host = ['a', 'b']")
    assert read(["--config", file], {}).allow_host == {"a", "b"}
    assert read(["--config", file, "--allow-host", "c", "--allow-host", "d"], {}).allow_host == {"c", "d"}


@pytest.mark.parametrize(
    ("said", "due"),
    [
        ("http://h/", "http://h"),
        ("http://h:1/a/?b=/c/", "http://h:1/a?b=/c/"),
        ("https://h.example/openai/v1?api-version=2", "https://h.example/openai/v1?api-version=2"),
        ("https://[::1]:8000/v1", "https://[::1]:8000/v1"),
    ],
)
def test_a_base_url_keeps_its_query_and_no_slash_at_its_end(said: str, due: str) -> None:
    assert read(["--upstream", f"chat={said}"], {}).upstream == due


WRONG_URLS = [
    *("http://", "http:///v1", "http://:80/v1", "http:h/v1", "http://?h", "//h/v1", "ftp://h/v1", "h:80/v1", ""),
    *("http://h:x/v1", "http://h:99999/v1", "http://h:0/v1", "http://[::1/v1", "http://[x]/v1"),
    *("http://h/v1#", "http://h/v1#SECRET", "http://h/v1?SECRET#a", "http://h:x/v1?SECRET"),
    *("http://h/v 1", "http://h/v1\n", "http://h\u00fc/v1", "http://h/v1?SECRET \x7f"),
    *("http://u:SECRET@h/v1", "http://SECRET@h/v1", "http://@h/v1", "http://:SECRET@h/v1", "ftp://u:SECRET@h/v1"),
    *("http://u:SECRET?@h/v1", "http://u:SECRET#@h/v1", "http://u:SECRET/@h/v1", "u:SECRET@h/v1"),
]


@pytest.mark.parametrize("url", WRONG_URLS)
@pytest.mark.parametrize("dialect", ["chat", "other"])
def test_a_wrong_url_is_told_before_there_is_a_client_and_no_secret_in_it(
    url: str, dialect: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        read([f"--upstream={dialect}={url}"], {})
    told = capsys.readouterr().err
    assert caught.value.code == 2
    assert "error: upstream: " in told
    assert "SECRET" not in told


@pytest.mark.parametrize("dialect", ["chat", "responses", "messages"])
def test_the_upstream_may_speak_any_dialect_and_know_models_by_other_names(dialect: str) -> None:
    maps = [flag for pair in ("a=b", "c=d=e", "=f") for flag in ("--model-map", pair)]
    flags = ["--upstream", f"{dialect}=http://host/v1", *maps]
    config = read(flags, {})
    assert (config.dialect, config.upstream) == (dialect, "http://host/v1")
    assert config.models == {"a": "b", "c": "d=e", "": "f"}


def test_a_file_has_the_same_names_and_flags_come_first(tmp_path: Path) -> None:
    text = 'listen = "127.0.0.1:1"\nupstream = "responses=http://host/v1"\nstreams_only = true\nwithout = ["seed"]\n'
    text += '[model_map]\na = "b"\n[limits]\nping_seconds = 5\nblocks = 7\n'
    text += '[requests]\nstrict = true\nmost_tokens = 9\noff_effort = "low"\n'
    text += "[answers]\nenvelope = false\n"
    config = read(["--config", written(tmp_path, text), "--listen", "127.0.0.1:2"], {})
    limits = evolve(DEFAULT_LIMITS, ping_seconds=5, blocks=7)
    expected = Config(port=2, dialect="responses", upstream="http://host/v1", models={"a": "b"}, limits=limits)
    requests, answers = RequestOptions(strict=True, most_tokens=9, off_effort="low"), AnswerOptions(envelope=False)
    due = evolve(expected, streams_only=True, without=frozenset({"seed"}), requests=requests, answers=answers)
    assert config == due


def test_what_becomes_of_markup_is_told_by_flags_or_in_a_table_flags_first(tmp_path: Path) -> None:
    file = written(tmp_path, "[answers]\nrecover = 'off'\nunfinished = 'hide'\nweak = []\nenvelope = false\n")
    told = AnswerOptions(recover="off", unfinished="hide", envelope=False)
    assert read(["--config", file], {}).answers == told
    flags = ["--recover", "prompt", "--residue", "hide", "--reasoning-open", "--stream-calls"]
    flags += ["--show-reasoning", "content", "--told-limit", "completed"]
    due = evolve(told, recover="prompt", residue="hide", reasoning_open=True, stream_calls=True)
    due = evolve(due, show_reasoning="content", told_limit="completed")
    assert read(["--config", file, *flags], {}).answers == due
    assert read(flags, {}).answers == evolve(due, unfinished="verbatim", envelope=True)
    with pytest.raises(SystemExit):
        read(["--config", written(tmp_path, "answers = 1"), *flags], {})


@pytest.mark.parametrize("recover", ["native", "off"])
def test_weak_markup_that_nobody_knows_is_told_before_there_is_a_client(
    recover: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, f"[answers]\nweak = ['a']\nrecover = '{recover}'\n")
    for flags, name in ((["--config", file], "a"), (["--config", file, "--weak", "b", "--weak", "a"], "b")):
        with pytest.raises(SystemExit):
            read(flags, {})
        assert f"answers: there is no weak markup '{name}'; there is: " in capsys.readouterr().err


@pytest.mark.parametrize("recover", [[], ["--recover", "native"], ["--recover", "off"]])
def test_stream_calls_that_would_do_nothing_are_told(recover: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read(["--stream-calls", *recover], {})
    assert "answers: stream_calls: it does nothing without recover = 'prompt'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("listen = ", "proxy.toml"),
        ("lisen = 'x'\nport = 1", "unknown: lisen, port"),
        ("listen = 8080", "listen: must be a string"),
        ("listen = '127.0.0.1'", "listen: '127.0.0.1' is no HOST:PORT"),
        ("listen = ':8080'", "listen: ':8080' is no HOST:PORT"),
        ("listen = 'host:x'", "listen: 'host:x' is no HOST:PORT"),
        (
            "upstream = 'gemini=http://host'",
            "upstream: 'gemini=http://host' is no chat=URL or responses=URL or ",
        ),
        ("upstream = 'chat=host/v1'", "upstream: 'chat=host/v1' is no chat=URL or responses=URL or "),
        ("api_key_env = 'NONE'", "api_key_env: the environment has no NONE"),
        ("model_map = 'a=b'", "model_map: must be a table"),
        ("[model_map]\na = 1", "model_map: must be a table"),
        ("[model_map]\na = ''", "model_map: must be a table"),
        ("requests = 1", "requests: must be a table"),
        ("[requests]\nstrickt = true", "requests.strickt: unknown"),
        ("[requests]\nmodel = 'x'", "requests.model: unknown"),
        ("[requests]\nstrict = 1", "requests.strict: must be true or false"),
        ("[requests]\nmost_tokens = true", "requests.most_tokens: must be a whole number"),
        ("[requests]\neffort = 3", "requests.effort: must be a string"),
        ("without = 'seed'", "without: must be a list of words"),
        ("without = [1]", "without: must be a list of words"),
        ("streams_only = 1", "streams_only: must be true or false"),
        ("[answers]\nenvelope = 'off'", "answers.envelope: must be true or false"),
        ("[answers]\nrecover = 'always'", "answers.recover: must be one of native, prompt, off"),
        ("[answers]\nresidue = true", "answers.residue: must be one of verbatim, hide"),
        ("[answers]\nweak = 'fence'", "answers.weak: must be a list of words"),
        ("limits = 1", "limits: must be a table"),
        ("[limits]\npings = 1", "limits.pings: unknown"),
        ("[limits]\nblocks = 0", "limits.blocks: must be a whole number above 0"),
        ("[limits]\nblocks = true", "limits.blocks: must be a whole number above 0"),
        ("[limits]\nblocks = 1.5", "limits.blocks: must be a whole number above 0"),
        ("[limits]\nidle_seconds = -1", "limits.idle_seconds: must be a number of seconds; 0 turns it off"),
        ("[limits]\nidle_seconds = nan", "limits.idle_seconds: must be a number of seconds; 0 turns it off"),
        ("[limits]\nidle_seconds = inf", "limits.idle_seconds: must be a number of seconds; 0 turns it off"),
        ("[limits]\nidle_seconds = true", "limits.idle_seconds: must be a number of seconds; 0 turns it off"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        read(["--config", written(tmp_path, text)], {})
    assert caught.value.code == 2
    assert wrong in capsys.readouterr().err


@pytest.mark.parametrize("pair", ["a", "a=", "="])
def test_a_model_map_that_is_no_pair_is_named(pair: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read(["--model-map", pair], {})
    assert f"model_map: {pair!r} is no A=B" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read(["--config", "/nowhere/proxy.toml"], {})
    assert "/nowhere/proxy.toml" in capsys.readouterr().err


def test_an_address_is_written_as_a_client_writes_it() -> None:
    assert base_url("::1", 80) == "http://[::1]:80"
    assert base_url("127.0.0.1", 80) == "http://127.0.0.1:80"


@pytest.mark.anyio
@EVERY_HOST
async def test_it_serves_until_it_is_interrupted(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    codes: list[int] = []

    async def run() -> None:
        codes.append(await serve(Config(port=0), host))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            while not (printed := capsys.readouterr().out):
                await anyio.lowlevel.checkpoint()
            os.kill(os.getpid(), signal.SIGTERM)
    assert codes == [0]
    assert printed.startswith("http://127.0.0.1:")
    assert printed.endswith(" over the embedded replay\n")


@pytest.mark.parametrize(
    "module", [["examples.proxy"], ["examples.raw_socket"], ["examples.raw_socket", "--backend", "trio"]]
)
def test_the_module_runs_with_no_configuration_but_a_port(module: list[str]) -> None:
    command = [sys.executable, "-m", *module, "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as proxy:
        assert proxy.stdout is not None
        url = proxy.stdout.readline().split()[0]
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(f"{url}/healthz", timeout=10) as health:
            assert health.read() == b'{"status":"ok"}'
        proxy.send_signal(signal.SIGINT)
        _, log = proxy.communicate(timeout=10)
    assert proxy.returncode == 0
    assert "streamweir.access GET /healthz 200 complete - 0." in log


@pytest.mark.parametrize("main", [on_aiohttp, on_sockets])
def test_a_port_that_is_taken_is_said_so(
    main: Callable[[Sequence[str]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["--listen", f"127.0.0.1:{port}"]) == 1
    assert f"cannot listen on 127.0.0.1:{port}: " in capsys.readouterr().err


def test_the_log_keeps_where_a_fault_was_and_leaves_out_what_it_said() -> None:
    plain = logging.makeLogRecord({"msg": "open"})
    assert without_values(plain)
    assert (plain.exc_info, plain.exc_text) == (None, None)
    try:
        int("SECRET")
    except ValueError:
        fault = logging.makeLogRecord({"msg": "fault", "exc_info": sys.exc_info()})
    assert without_values(fault)
    shown = logging.Formatter().format(fault)
    assert shown.endswith("ValueError")
    assert "in test_the_log_keeps" in shown
    assert "invalid literal" not in shown


def test_a_fault_in_a_group_is_shown_as_deep_as_it_lies() -> None:
    try:
        raise ExceptionGroup("SECRET", [KeyError("SECRET")])
    except ExceptionGroup:
        fault = logging.makeLogRecord({"msg": "fault", "exc_info": sys.exc_info()})
    assert without_values(fault)
    shown = logging.Formatter().format(fault)
    assert shown.splitlines()[-2:] == ["ExceptionGroup", "KeyError"]
    assert "SECRET" not in shown.replace('ExceptionGroup("SECRET", [KeyError("SECRET")])', "")


def test_of_who_is_allowed_a_port_says_nothing_and_no_name_allows_nobody() -> None:
    visitors = Visitors.of("127.0.0.1", ["with.port:8080", "", "fe80::1"])
    assert visitors.names == {"127.0.0.1", "with.port", "fe80::1"}
    visitors.check({"host": "with.port:9"})
    for host in ("", "[", "other.example"):
        with pytest.raises(ClientError, match="is not this machine"):
            visitors.check({"host": host})
