"""One answer toward several clients: what each of them is told, to be compared."""

import json
from collections.abc import Iterable
from typing import Any

from attrs import frozen

from pipeline.dialect import NO_REQUEST, dialect
from pipeline.events import CUTTING, ToolKind
from pipeline.jsontext import value_of
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS
from pipeline.message import Message, Refusal, Text, ToolUse, assemble
from pipeline.outcome import Verdict
from pipeline.reply import Form
from stages.sse import SSEDecoder
from tests.exchange import Got, answered, route

Json = dict[str, Any]


@frozen
class Heard:
    """What a client makes of an answer."""

    message: Message
    """Empty where it was told an error alone."""
    status: int
    verdict: Verdict | None
    ledger: tuple[tuple[str, str], ...]
    """Path and action of every entry."""

    @property
    def calls(self) -> list[tuple[str, Any]]:
        """The calls that it runs: those that are whole, of an answer that did not fail and that nothing cut: a whole
        Messages answer does not say which call was."""
        if self.message.error is not None or self.message.stop_reason in CUTTING:
            return []
        return [(call.name, arguments_of(call)) for call in self.of(ToolUse) if call.complete]

    @property
    def text(self) -> str:
        """All that it shows."""
        return "".join(content.text for content in self.of(Text, Refusal))

    def of(self, *kinds: type) -> list[Any]:
        """Its contents of these kinds."""
        return [content for content in self.message.content if isinstance(content, kinds)]


def arguments_of(call: ToolUse) -> Any:
    """The arguments of a call as a value; a text that is none stands for itself.

    Free text is held by an object where a dialect has no such calls, unless the request declared its tool.
    """
    if call.kind is ToolKind.CUSTOM:
        return {"input": call.arguments}
    value = value_of(call.arguments)
    return call.arguments if value is None else value


def asked(client: str, *, stream: bool, **members: Any) -> bytes:
    """The body of a request."""
    said = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 100}
    return json.dumps(
        {"model": "m", "stream": stream, **({"input": "hi"} if client == "responses" else said), **members}
    ).encode()


def heard(client: str, upstream: str, reads: Iterable[bytes], *, stream: bool, **members: Any) -> Heard:
    """What a client of one dialect makes of an answer of another's."""
    exchange = route(client, upstream).open(asked(client, stream=stream, **members))
    got = answered(exchange, *reads)
    ledger = tuple((entry["path"], entry["action"]) for entry in exchange.ledger)
    message = read(client, got, exchange.form)
    return Heard(message, got.status if got.head else 0, exchange.outcome.verdict, ledger)


def read(client: str, got: Got, form: Form) -> Message:
    """The message that a body, or a stream, is for a client."""
    spoken = dialect(client)
    if got.head is None or got.status != 200:
        return Message("", "")
    if form is Form.WHOLE:
        return spoken.read_body(got.body, facts=NO_REQUEST, ledger=Ledger(), limits=DEFAULT_LIMITS)
    normalizer = spoken.normalizer(facts=NO_REQUEST, ledger=Ledger(), limits=DEFAULT_LIMITS)
    stage = SSEDecoder(sentinels=tuple(spoken.sentinels), ledger=Ledger()) | normalizer
    return assemble([*stage.receive([got.body]), *stage.receive_eof()])


def cuts(raw: bytes) -> list[list[bytes]]:
    """The same bytes in reads of several sizes."""
    return [[raw[at : at + size] for at in range(0, len(raw), size)] for size in (1, 7, 64, max(1, len(raw)))]
