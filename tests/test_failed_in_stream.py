"""A failure that an upstream tells in its stream before it says anything: in which form the client is told of it."""

import json
from pathlib import Path

import pytest

from pipeline.outcome import Verdict
from tests.exchange import Got, answered, route
from tests.patching import Json
from tests.test_errors_kept import ASKED
from tests.test_head_at_any_cut import BEGUN, FAILING, SPOKEN, sse

WHY = {"code": "rate_limit_exceeded", "message": "Rate limit reached. Please try again in 1.054s."}
ERROR = {"type": "error", "sequence_number": 2, "error": {"code": "unknown-error", "message": "Foobar", "param": None}}
FAILED = {"type": "response.failed", "response": {**BEGUN, "status": "failed", "error": WHY}}
RECORDED = [FAILING["responses"][0], FAILING["responses"][1], ERROR, FAILED]
"""The order in which OpenAI tells a failure: the event, then the response that failed."""
OPENROUTER = {
    "id": "gen-1",
    "object": "chat.completion.chunk",
    "model": "m",
    "error": {"code": 429, "message": WHY["message"]},
    "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": "error"}],
}
GATEWAY = {"error": {"message": WHY["message"], "type": "requests", "code": "rate_limit_exceeded"}}
LIMIT = {"type": "error", "error": {"type": "rate_limit_error", "message": WHY["message"]}}
STREAMS: dict[str, list[tuple[str, list[Json]]]] = {
    "responses": [
        ("failed", [*RECORDED[:2], FAILED]),
        ("failed alone", [FAILED]),
        ("error alone", [{**WHY, "type": "error", "param": None}]),
        ("error announced", [*RECORDED[:2], {"type": "error", "error": WHY}]),
    ],
    "messages": [("alone", [LIMIT]), ("announced", [*FAILING["messages"][:2], LIMIT])],
    "chat": [("openrouter", [OPENROUTER]), ("alone", [GATEWAY]), ("announced", [*FAILING["chat"][:1], GATEWAY])],
}
"""Streams that tell of a rate limit, and when to ask again, before they say anything."""
EVERY = [(upstream, name, frames) for upstream, of in STREAMS.items() for name, frames in of]
IDS = [f"{upstream}: {name}" for upstream, name, _ in EVERY]
CORPUS = Path(__file__).parents[2] / "shared" / "corpus"
UNTOLD = "the answer failed: it is told by its error"


def got(client: str, upstream: str, *reads: bytes, stream: bool = True) -> Got:
    body = json.dumps({"model": "m", "stream": stream, **ASKED[client]}).encode()
    return answered(route(client=client, upstream=upstream).open(body), *reads)


def events(got: Got) -> list[Json]:
    return [json.loads(line[6:]) for line in got.body.splitlines() if line.startswith(b"data: {")]


def cuts(raw: bytes) -> list[list[bytes]]:
    """The bytes whole, by frame, in two behind each frame and within it, and in sevens."""
    frames = [frame + b"\n\n" for frame in raw.split(b"\n\n") if frame]
    ends = [sum(map(len, frames[:at])) for at in range(1, len(frames) + 1)]
    places = {place for end in ends for place in (end - 9, end - 1, end)} - {0, len(raw)}
    twos = [[raw[:at], raw[at:]] for at in sorted(places) if 0 < at < len(raw)]
    return [[raw], frames, *twos, [raw[at : at + 7] for at in range(0, len(raw), 7)]]


# Another dialect


@pytest.mark.parametrize(("upstream", "name", "frames"), [one for one in EVERY if one[0] != "responses"], ids=IDS[4:])
def test_a_responses_client_is_told_in_a_stream_with_the_words_it_waits_by_at_every_cut(
    upstream: str, name: str, frames: list[Json]
) -> None:
    told = set()
    for reads in cuts(sse(frames)):
        reply = got("responses", upstream, *reads)
        assert (reply.status, reply.is_stream) == (200, True)
        assert reply.exchange.outcome.verdict is Verdict.FAILED
        first, *_, last = events(reply)
        assert (first["type"], last["type"]) == ("response.created", "response.failed")
        told.add(json.dumps(last["response"]["error"]))
    assert told == {json.dumps(WHY)}


@pytest.mark.parametrize("client", ["messages", "chat"])
@pytest.mark.parametrize(("upstream", "name", "frames"), EVERY, ids=IDS)
def test_a_client_that_acts_on_the_status_is_told_by_it_and_what_was_announced_is_recorded(
    upstream: str, name: str, frames: list[Json], client: str
) -> None:
    if client == upstream:
        return
    found = set()
    for reads in cuts(sse(frames)):
        reply = got(client, upstream, *reads)
        assert (reply.status, reply.is_stream) == (429, False)
        assert WHY["message"].encode() in reply.body
        found.add(json.dumps([one for one in reply.exchange.ledger if one["path"] == "message"]))
    (entries,) = found
    announced = name not in ("alone", "error alone")
    due = [{"direction": "response", "stage": "Heading", "path": "message", "action": "dropped", "reason": UNTOLD}]
    assert json.loads(entries) == (due if announced else [])


@pytest.mark.parametrize("client", FAILING)
@pytest.mark.parametrize(("upstream", "name", "frames"), EVERY, ids=IDS)
def test_a_client_that_asked_for_a_whole_answer_is_told_by_the_status(
    upstream: str, name: str, frames: list[Json], client: str
) -> None:
    if client == upstream == "responses" and name.startswith("failed"):
        return  # that is a whole response, which failed
    assert got(client, upstream, sse(frames), stream=False).status == 429


@pytest.mark.parametrize("client", ["messages", "chat", "responses"])
@pytest.mark.parametrize("upstream", FAILING)
def test_an_error_that_came_as_a_body_keeps_the_status_of_its_class(upstream: str, client: str) -> None:
    body = LIMIT if upstream == "messages" else GATEWAY
    assert got(client, upstream, json.dumps(body).encode()).status == 429


@pytest.mark.parametrize("client", FAILING)
@pytest.mark.parametrize("upstream", FAILING)
@pytest.mark.parametrize("broken", [b"", b"data: {nonsense\n\n"])
def test_what_no_upstream_told_is_told_by_a_status_and_what_was_announced_is_recorded(
    upstream: str, client: str, broken: bytes
) -> None:
    raw = sse(FAILING[upstream][:-1]) + broken
    for reads in cuts(raw):
        reply = got(client, upstream, *reads)
        assert reply.status == 502
        assert [one["path"] for one in reply.exchange.ledger].count("message") == 1


@pytest.mark.parametrize(
    ("upstream", "frames"),
    [
        ("chat", [{"error": {"message": "busy", "code": 503}}]),
        ("messages", [{"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}]),
    ],
)
@pytest.mark.parametrize("spoken", [False, True])
def test_an_overloaded_upstream_is_told_by_a_code_at_which_codex_asks_again(
    upstream: str, frames: list[Json], spoken: bool
) -> None:
    before: list[Json] = [*FAILING[upstream][:-1], SPOKEN[upstream]] if spoken else []
    reply = got("responses", upstream, sse([*before, *frames]))
    assert events(reply)[-1]["response"]["error"] == {"code": "server_error", "message": "busy"}


# The same dialect


@pytest.mark.parametrize(
    ("client", "frames"),
    [*((upstream, frames) for upstream, _, frames in EVERY), ("responses", RECORDED)],
    ids=[*IDS, "responses: recorded"],
)
def test_one_dialect_over_itself_is_told_as_it_came_at_every_cut(client: str, frames: list[Json]) -> None:
    raw = b": hello\n\n" + sse(frames)
    for reads in cuts(raw):
        reply = got(client, client, *reads)
        assert (reply.status, reply.body) == (200, raw)
        assert reply.exchange.outcome.verdict is Verdict.FAILED
        assert [one for one in reply.exchange.ledger if one["direction"] == "response"] == []


@pytest.mark.parametrize(
    "name",
    [
        "prism-php__prism/openai_stream-unknown-error-responses-1.sse",
        "vercel__ai/openai_responses_openai-error.1.sse",
    ],
)
def test_a_recorded_failure_goes_to_codex_as_it_came(name: str) -> None:
    if not CORPUS.exists():
        pytest.skip("the recordings are not here")
    raw = (CORPUS / name).read_bytes()
    reply = got("responses", "responses", raw)
    assert (reply.status, reply.body) == (200, raw)
