"""pipeline.payload: a frame that is not one JSON text."""

from typing import Any

import pytest

from pipeline.errors import UpstreamError
from pipeline.ledger import Ledger
from pipeline.payload import payloads

END = b"[DONE]"


def read(data: bytes) -> tuple[list[Any], bool, list[tuple[str, str]]]:
    """The values, whether the sentinel came, and what was recorded."""
    ledger = Ledger()
    values, ended = payloads(data, END, "Normalizer", ledger)
    return values, ended, [(entry.action, entry.reason) for entry in ledger]


@pytest.mark.parametrize("data", [END, b" [DONE]\n", b"[DONE] bye"])
def test_a_sentinel_is_the_end(data: bytes) -> None:
    assert read(data) == ([], True, [])


@pytest.mark.parametrize("data", [b": keepalive", b"hello [DONE]", b""])
def test_other_text_is_ignored_and_recorded(data: bytes) -> None:
    assert read(data) == ([], False, [("ignored", "data that is no JSON")])


@pytest.mark.parametrize(
    ("data", "values", "ended"),
    [
        (b'{"a":1}\n{"b":2}', [{"a": 1}, {"b": 2}], False),
        (b'{"a":1}[2]', [{"a": 1}, [2]], False),
        (b'{"a":1}\n[DONE]', [{"a": 1}], True),
    ],
)
def test_several_json_texts_are_parted(data: bytes, values: list[Any], ended: bool) -> None:
    assert read(data) == (values, ended, [("parted", "several JSON texts in one frame")])


@pytest.mark.parametrize("data", [b'{"a":', b"[DONE", b'{"a":1} x', b'{"a":1}{"b"'])
def test_what_starts_like_json_and_does_not_parse_fails(data: bytes) -> None:
    with pytest.raises(UpstreamError, match="does not parse") as raised:
        read(data)
    assert raised.value.code == "invalid_json"
