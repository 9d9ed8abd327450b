"""How an answer was made is what its last word says, wherever that stands; chunks that repeat it are plain."""

import json
from typing import Any

import pytest

from pipeline.dialect import dialect
from pipeline.events import Frame, MessageDelta
from pipeline.ledger import Ledger
from pipeline.reply import Form
from stages.dialects.chat.normalize import ChatNormalizer
from stages.dialects.responses.normalize import ResponsesNormalizer
from stages.recipe import default_chain
from tests import responses_stream as rs
from tests import support as cs

Json = dict[str, Any]


def last(upstream: str, client: str, body: bytes, leaving: Form = Form.STREAM) -> Json:
    """The last object that tells how the answer was made."""
    ways: dict[str, Any] = {"arriving": Form.STREAM, "leaving": leaving, "ledger": (ledger := Ledger())}
    chain = default_chain(dialect(upstream), dialect(client), **ways)
    out = b"".join([*chain.receive([body]), *chain.receive_eof()])
    assert len(ledger) == 0
    lines = [out] if leaving is Form.WHOLE else [line[6:] for line in out.splitlines() if line.startswith(b"data: {")]
    told: Json = json.loads(lines[-1])
    return told.get("response", told)  # type: ignore[no-any-return]  # JSON's


def chunks(words: list[Any], name: str, delta: Json) -> list[Json]:
    return [{**delta, name: word} if word != "absent" else delta for word in words]


@pytest.mark.parametrize("leaving", Form)
@pytest.mark.parametrize("name", ["service_tier", "provider"])
@pytest.mark.parametrize("delta", [cs.text("b"), cs.reasoning("b"), cs.call(0, arguments="1")])
@pytest.mark.parametrize(
    ("words", "word"),
    [
        (["auto", "flex"], "flex"),
        (["auto", "auto", "flex", "absent", None, ""], "flex"),
        (["auto", "flex", "auto"], "auto"),
        (["absent", "auto", "auto", "flex", "flex"], "flex"),
    ],
)
def test_the_last_word_counts_where_it_stands_on_plain_chunks(
    words: list[Any], word: str, delta: Json, name: str, leaving: Form
) -> None:
    first = [cs.text("a"), cs.reasoning("a"), cs.call(0, "c", "f", '{"a": [1')]
    body = cs.sse(
        *first, delta, *chunks(words, name, delta), cs.call(0, arguments="]}"), cs.finish("tool_calls"), cs.DONE
    )
    assert last("chat", "responses", body, leaving)[name] == word


@pytest.mark.parametrize("kind", ["response.queued", "response.in_progress"])
def test_the_last_word_counts_where_the_end_of_a_response_tells_none(kind: str) -> None:
    frames = [
        rs.event("response.created", response=rs.response("in_progress", service_tier="auto")),
        rs.event(kind, response=rs.response("in_progress", service_tier="flex")),
        *[rs.added({**rs.message(), "content": []}), rs.text("abc"), rs.done(rs.message("abc"))],
        rs.terminal(output=[rs.message("abc")]),
    ]
    made = ResponsesNormalizer().receive([Frame(json.dumps(frame).encode()) for frame in frames])
    ended = [event for event in made if isinstance(event, MessageDelta)]
    assert [event.served and event.served.service_tier for event in ended] == ["flex"]


def test_chunks_that_tell_it_again_are_plain() -> None:
    read: list[Any] = []

    class Counting(ChatNormalizer):
        def _read(self, chunk: Any, frame: Frame, out: list[Any]) -> None:
            read.append(chunk)
            super()._read(chunk, frame, out)

    stage = Counting()
    said = [{**cs.text(word), "service_tier": "auto", "provider": "P"} for word in ("a", "b", "c", 'd"', "e\n")]
    stage.receive([Frame(json.dumps(one).encode()) for one in said])
    assert read == said[:1]
