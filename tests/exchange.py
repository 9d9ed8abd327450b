"""One exchange, sans-IO: a client's request, the upstream's reply in reads, and what the client gets."""

import json
from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import pairwise
from operator import or_
from typing import Any

from attrs import define, field

from pipeline.dialect import dialect
from pipeline.events import StreamError
from pipeline.reply import Head, Refusal
from pipeline.route import Exchange, Route, UpstreamRequest
from pipeline.stage import Stage
from stages.recipe import default_chain
from tests.lawful import check_law
from tests.messages_client import folded
from tests.support import fragment, same_ids

ASKED: dict[str, Any] = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}]}


def route(client: str = "messages", upstream: str = "chat", **members: Any) -> Route:
    """A route with the default recipe."""
    return Route(client=dialect(client), upstream=dialect(upstream), recipe=default_chain, **members)


def opened(stream: bool = True, on: Route | None = None, **members: Any) -> Exchange:
    """An exchange begun by a Messages client."""
    return (on or route()).open(json.dumps({**ASKED, "stream": stream, **members}).encode())


def sent(exchange: Exchange) -> dict[str, Any]:
    """The body that goes up."""
    assert isinstance(exchange.request, UpstreamRequest), exchange.request
    body: dict[str, Any] = json.loads(exchange.request.body)
    return body


def refusal(exchange: Exchange) -> tuple[int, dict[str, Any]]:
    """The status and the error that the client is answered with, without going up."""
    assert isinstance(exchange.request, Refusal), exchange.request
    return exchange.request.head.status, json.loads(exchange.request.body)["error"]


@define
class Got:
    """What the client got."""

    exchange: Exchange
    head: Head | None = None
    out: list[bytes] = field(factory=list)
    """What came of each read, and of the end."""

    @property
    def body(self) -> bytes:
        return b"".join(self.out)

    @property
    def status(self) -> int:
        assert self.head is not None
        return self.head.status

    @property
    def is_stream(self) -> bool:
        assert self.head is not None
        return self.head.headers["content-type"].startswith("text/event-stream")

    def check(self) -> None:
        """Fail if it is a stream of ours, not the upstream's own, and is not as its dialect must be."""
        route = self.exchange.route
        if self.head is not None and self.is_stream and route.client.name != route.upstream.name:
            check_law(route.client.name, self.body)

    @property
    def message(self) -> dict[str, Any]:
        """The answer, of whichever form, as one message; minted ids numbered."""
        assert self.status == 200, self.body
        body = same_ids(self.body)
        message: dict[str, Any] = folded(body) if self.is_stream else json.loads(body)
        return message

    @property
    def error(self) -> dict[str, Any]:
        """The error, of whichever form."""
        assert self.head is not None
        raw = self.body
        if self.is_stream:
            raw = raw.rpartition(b"event: error\ndata: ")[2]
        parsed: dict[str, Any] = json.loads(raw)
        assert parsed["type"] == "error"
        error: dict[str, Any] = parsed["error"]
        return error


def opened_over(way: Sequence[str], stream: bool = True, **members: Any) -> list[Exchange]:
    """Exchanges begun by a Messages client over the dialects of `way`: each one's request is the next one's to read."""
    exchanges: list[Exchange] = []
    body = json.dumps({**ASKED, "stream": stream, **members}).encode()
    for client, upstream in pairwise(["messages", *way]):
        exchanges.append(route(client=client, upstream=upstream).open(body))
        body = exchanges[-1].request.body
    return exchanges


def answered_over(exchanges: Sequence[Exchange], *reads: bytes) -> "Got":
    """What the client gets of an answer that comes down through all: one chain, since both ends of each are bytes."""
    replies = [exchange.reply(200, {}) for exchange in exchanges]
    chain: Any = reduce(or_, [reply.chain for reply in reversed(replies)])
    got = Got(exchanges[0], out=[b"".join(chain.receive([read])) for read in reads])
    got.out.append(b"".join(chain.receive_eof()))
    got.head = replies[0].head
    got.check()
    return got


def answered(
    exchange: Exchange,
    *reads: bytes,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    cause: StreamError | None = None,
) -> Got:
    """What the client gets of a reply. Nothing may come out before the head is known."""
    reply = exchange.reply(status, headers or {})
    chain = reply.chain
    assert isinstance(chain, Stage)
    got = Got(exchange)
    for read in reads:
        if chain.ended:
            break
        got.out.append(b"".join(chain.receive([read])))
        assert bool(b"".join(got.out)) <= (reply.head is not None)
    got.out.append(b"".join(chain.receive_eof(cause)))
    got.head = reply.head
    got.check()
    return got


def whole(finish: str = "stop", **message: Any) -> bytes:
    """A whole Chat answer."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    answer = {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    return json.dumps(answer).encode()


def calls(*named: Sequence[str]) -> list[dict[str, Any]]:
    """Whole calls of a Chat answer: id, name and arguments of each."""
    return [fragment(None, id, name, arguments) for id, name, arguments in named]  # noqa: A001
