"""One dialect over itself: no value of any member of an answer breaks it, in any form, changed or not."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from pipeline.dialect import RequestFacts
from pipeline.reply import Form
from pipeline.route import AnswerOptions
from tests.lawful import GRAMMARS
from tests.patching import MARKUP, Json, saying
from tests.returning import returned
from tests.test_bridged import bodies, stream_of

VALUES: list[Any] = [["x"], {"type": {}}]
FACTS = RequestFacts(tools={"f": {}})

Path = tuple[str | int, ...]


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """The places of all members."""
    for name, inner in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield (*path, name)
        yield from paths(inner, (*path, name))


def with_odd(value: Any, path: Path, odd: Any) -> Any:
    """A value with another at a place."""
    if not path:
        return odd
    name, *rest = path
    if isinstance(value, list):
        return [with_odd(one, tuple(rest), odd) if at == name else one for at, one in enumerate(value)]
    return {**value, name: with_odd(value[name], tuple(rest), odd)}


def odd_bodies(name: str) -> Iterator[bytes]:
    for body in (bodies()[name], saying(name, f"A {MARKUP} B")):
        for path in paths(body):
            for odd in VALUES:
                yield json.dumps(with_odd(body, path, odd)).encode()


def odd_streams(name: str) -> Iterator[bytes]:
    """Each frame of a stream with one odd member; what repeats the response has been looked through as a body."""
    for body in (bodies()[name],):
        frames = [frame for frame in stream_of(name, body)[0].split(b"\n\n") if frame]
        for at, frame in enumerate(frames):
            head, _, data = frame.rpartition(b"data: ")
            said: Json = json.loads(data) if data != b"[DONE]" else {}
            for path in paths({name: value for name, value in said.items() if name != "response"}):
                for odd in VALUES:
                    line = head + b"data: " + json.dumps(with_odd(said, path, odd)).encode()
                    yield b"\n\n".join([*frames[:at], line, *frames[at + 1 :], b""])


@pytest.mark.parametrize("name", GRAMMARS)
@pytest.mark.parametrize("leaving", Form)
@pytest.mark.parametrize("arriving", Form)
def test_no_odd_member_breaks_it(name: str, arriving: Form, leaving: Form) -> None:
    options = AnswerOptions(recover="prompt")
    for raw in odd_bodies(name) if arriving is Form.WHOLE else odd_streams(name):
        out, outcome = returned(name, [raw], arriving=arriving, leaving=leaving, facts=FACTS, options=options)
        assert outcome.verdict is not None
        assert leaving is Form.STREAM or not out or json.loads(out)
