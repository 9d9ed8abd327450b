"""pipeline.reply: what stands in front of an answer, and when it is known."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from attrs import define, evolve, field, frozen
from hypothesis import given
from hypothesis import strategies as st

from pipeline.dialect import Dialect, dialect
from pipeline.errors import ErrorKind
from pipeline.events import Frame, Origin, StreamError
from pipeline.limits import Limits
from pipeline.outcome import Outcome, Verdict
from pipeline.reply import (
    ANNOUNCED,
    JSON_HEADERS,
    STREAM_HEADERS,
    ErrorBody,
    Form,
    Head,
    Heading,
    Refusal,
    Reply,
    passed_on,
    refused,
    said,
)
from pipeline.stage import Stage
from pipeline.testing import EOF, check_stage, play
from stages.dialects.messages import DIALECT, Messages
from tests.canonical import BOOM, CUT
from tests.exchange import route

SLOW = StreamError(ErrorKind.RATE_LIMIT, "slow down")
SLOW_BODY = b'{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}'


def heading(form: Form = Form.STREAM, outcome: Outcome | None = None, **members: Any) -> Heading:
    return Heading(DIALECT, form, outcome or Outcome(), **members)


def failed(error: StreamError, *, begun: bool = False) -> Outcome:
    """The outcome of an answer that failed."""
    outcome = Outcome(begun=begun)
    outcome.note(error)
    return outcome


# The head


def test_the_head_of_a_stream_is_known_with_its_first_byte() -> None:
    stage = heading(outcome=Outcome(begun=True))
    assert play(stage, []) == [[]]
    assert stage.head is None
    assert play(stage, b"a", b"b", EOF) == [[b"a"], [b"b"], []]
    assert stage.head == Head(200, STREAM_HEADERS)


def test_the_head_of_a_whole_answer_says_that_it_is_json() -> None:
    stage = heading(Form.WHOLE)
    assert play(stage, b"{}", EOF) == [[b"{}"], []]
    assert stage.head == Head(200, JSON_HEADERS)


def test_what_the_upstream_tells_of_a_request_stands_in_the_head_but_never_in_place_of_ours() -> None:
    stage = heading(headers={"request-id": "r", "content-type": "x"})
    play(stage, b"a", EOF)
    assert stage.head == Head(200, {"request-id": "r", **STREAM_HEADERS})


def test_nothing_is_written_behind_an_error_that_came_alone() -> None:
    stage = heading(Form.STREAM, failed(SLOW))
    assert play(stage, b"event: error\n\n", b"data: [DONE]\n\n", EOF) == [[SLOW_BODY], [], []]
    assert stage.ended


@pytest.mark.parametrize("form", Form)
def test_an_error_that_comes_alone_is_answered_with_its_status(form: Form) -> None:
    stage = heading(form, failed(SLOW), headers={"retry-after": "3"})
    assert play(stage, b"event: error\n\n" if form is Form.STREAM else [], EOF) == [[SLOW_BODY], []]
    assert stage.head == Head(429, {"retry-after": "3", **JSON_HEADERS})


@pytest.mark.parametrize("form", Form)
def test_an_error_of_which_nothing_was_written_is_answered_at_the_end(form: Form) -> None:
    stage = heading(form, failed(SLOW))
    assert play(stage, EOF) == [[SLOW_BODY]]
    assert stage.ended


def test_the_upstreams_status_stands() -> None:
    stage = heading(outcome=failed(BOOM), status=418)
    play(stage, EOF)
    assert stage.head is not None
    assert stage.head.status == 418


def test_an_error_behind_the_beginning_of_a_stream_is_told_in_the_stream() -> None:
    stage = heading(outcome=failed(SLOW, begun=True))
    assert play(stage, b"begin, error", EOF) == [[b"begin, error"], []]
    assert stage.head == Head(200, STREAM_HEADERS)


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("client", ["messages", "chat", "responses"])
def test_an_error_that_a_stream_told_is_told_in_one_to_its_own_dialect_and_to_who_acts_on_that(
    client: str, same: bool
) -> None:
    for origin, form in itertools.product((Origin(b"{}"), Frame(b"{}"), None), Form):
        outcome = failed(evolve(SLOW, origin=origin))
        stage = Heading(dialect(client), form, outcome, same=same)
        play(stage, b"error", EOF)
        streamed = isinstance(origin, Origin) and form is Form.STREAM and (same or client == "responses")
        assert stage.head is not None
        assert stage.head.status == (200 if streamed else 429)


@pytest.mark.parametrize(("announced", "begun"), [(True, False), (False, True), (True, True), (False, False)])
def test_what_an_error_does_not_tell_is_recorded_once(announced: bool, begun: bool) -> None:
    outcome = failed(SLOW, begun=begun)
    outcome.announced = announced
    play(heading(Form.WHOLE, outcome), EOF)
    due = ["content"] if begun else ["message"] if announced else []
    assert [entry.path for entry in outcome.ledger] == due


def test_what_announces_a_stream_waits_for_what_decides() -> None:
    outcome = Outcome()
    stage = heading(outcome=outcome)
    assert (play(stage, b"begin", b"ping"), stage.head, stage.held) == ([[], []], None, 9)
    outcome.begun = True
    assert (play(stage, b"text", b"more"), stage.held) == ([[b"begin", b"ping", b"text"], [b"more"]], 0)
    assert stage.head == Head(200, STREAM_HEADERS)
    outcome = Outcome()
    stage = heading(outcome=outcome)
    play(stage, b"begin")
    outcome.note(SLOW)
    assert (play(stage, b"error", EOF), stage.held) == ([[SLOW_BODY], []], 0)
    assert stage.head == Head(429, JSON_HEADERS)


def test_what_announces_a_stream_leaves_while_nothing_comes_and_at_its_end_and_where_it_is_too_large() -> None:
    stage = heading()
    assert ([*stage.idle()], stage.head) == ([], None)
    play(stage, b"begin")
    assert ([*stage.idle()], [*stage.idle()], stage.head) == ([b"begin"], [], Head(200, STREAM_HEADERS))
    assert play(heading(), b"begin", EOF) == [[], [b"begin"]]
    large = b"x" * (ANNOUNCED + 1)
    assert play(heading(), large, b"more") == [[], [large, b"more"]]


def test_an_error_behind_a_ping_of_ours_is_told_in_the_stream() -> None:
    outcome = Outcome()
    stage = heading(outcome=outcome)
    play(stage, b"ping")
    stage.idle()
    outcome.note(SLOW)
    assert play(stage, b"error", EOF) == [[b"error"], []]
    assert stage.head == Head(200, STREAM_HEADERS)


def test_an_error_behind_the_beginning_of_a_whole_answer_is_all_that_is_answered() -> None:
    stage = heading(Form.WHOLE, failed(SLOW, begun=True))
    assert play(stage, EOF) == [[SLOW_BODY]]
    assert stage.head == Head(429, JSON_HEADERS)


def test_the_reply_knows_the_head_of_its_chain() -> None:
    stage = heading()
    reply = Reply(stage, stage)
    assert reply.head is None
    play(stage, b"a", EOF)
    assert reply.head == Head(200, STREAM_HEADERS)


def test_the_heading_keeps_the_rules_of_every_stage() -> None:
    check_stage(heading, [b"a", b"b", b"c"])


@define
class Encoding(Stage[bytes, bytes]):
    """Pings while nothing comes."""

    pings: int = field(init=False, default=0)

    def receive(self, items: Sequence[bytes]) -> Sequence[bytes]:
        return items

    def idle(self) -> Sequence[bytes]:
        self.pings += 1
        return (b"ping",)


def test_a_ping_of_the_encoder_is_a_first_byte() -> None:
    last = heading()
    chain = Encoding() | last
    assert (chain.idle(), last.head) == ([b"ping"], Head(200, STREAM_HEADERS))


# Headers


def test_a_client_is_told_of_its_request_and_its_limits() -> None:
    told = {
        "Retry-After": "3",
        "retry-after-ms": "3000",
        "X-Should-Retry": "true",
        "x-ratelimit-remaining-tokens": "7",
    }
    assert passed_on(told) == {name.lower(): value for name, value in told.items()}


OWN = {
    "messages": ["anthropic-ratelimit-requests-limit", "anthropic-organization-id", "anthropic-workspace-id"],
    "chat": ["openai-organization", "openai-processing-ms", "openai-version"],
    "responses": ["openai-version", "x-codex-primary-used-percent", "X-Codex-Turn-State", "X-Models-Etag"],
}
"""Headers that a dialect alone knows."""


@pytest.mark.parametrize("name", OWN)
def test_what_a_dialect_knows_is_told_where_one_of_the_two_speaks_it(name: str) -> None:
    told = dict.fromkeys(OWN[name], "9")
    due = {name.lower(): value for name, value in told.items()}
    assert passed_on(told) == {}
    assert passed_on(told, dialect(name)) == due
    assert passed_on({**told, "x-codex\x01": "9", "set-cookie": "a", "anthropic-": "1"}, DIALECT, dialect(name)) == due
    for client, upstream in ((name, "chat"), ("messages", name)):
        exchange = route(client=client, upstream=upstream).open(
            b'{"model":"m","max_tokens":9,"messages":[],"input":"a"}'
        )
        reply = exchange.reply(429, told)
        assert isinstance(reply.chain, Stage)
        reply.chain.receive_eof()
        assert reply.head is not None
        assert due.items() <= reply.head.headers.items()


@pytest.mark.parametrize("name", ["x-codex-\x01", "x-codex-\xe9"], ids=ascii)
def test_a_name_of_a_dialects_that_no_server_can_write_is_left_out(name: str) -> None:
    assert passed_on({name: "3"}, dialect("responses")) == {}


@pytest.mark.parametrize(
    "name",
    ["content-length", "Content-Encoding", "transfer-encoding", "content-type", "set-cookie", "server", "connection"],
)
def test_nothing_is_told_of_how_the_upstream_sent_it(name: str) -> None:
    assert passed_on({name: "x"}) == {}


@pytest.mark.parametrize("told", [{"x-request-id": "r"}, {"Request-Id": "r"}, {"request-id": "r", "x-request-id": "s"}])
def test_the_id_of_a_request_is_told_under_both_its_names(told: Mapping[str, str]) -> None:
    assert passed_on(told) == {"request-id": "r", "x-request-id": "r"}


@pytest.mark.parametrize("value", ["", "3", "a b", "a\tb", "!~", "7; w=60"])
def test_a_value_that_may_stand_in_a_header_is_told(value: str) -> None:
    assert passed_on({"retry-after": value}) == {"retry-after": value}


@pytest.mark.parametrize(
    "value",
    ["a\x01b", "3\x0b", "a\x7f", "a\r\nx: y", "a\n", "\0", " a", "a\t", "é", "\udce9", "\x85", "\u2028"],
    ids=ascii,
)
@pytest.mark.parametrize("name", ["retry-after", "x-request-id", "x-ratelimit-reset"])
def test_a_value_that_no_server_can_write_is_left_out_alone(name: str, value: str) -> None:
    assert passed_on({name: value, "x-should-retry": "true"}) == {"x-should-retry": "true"}


def test_the_other_name_tells_the_id_of_a_request_where_one_cannot() -> None:
    assert passed_on({"request-id": "a\x01", "x-request-id": "r"}) == {"request-id": "r", "x-request-id": "r"}


@pytest.mark.parametrize("name", ["x-ratelimit-\x01", "x-ratelimit-é", "x-ratelimit-a b", "x-ratelimit-a\n"], ids=ascii)
def test_a_name_that_no_server_can_write_is_left_out(name: str) -> None:
    assert passed_on({name: "3"}) == {}


# The body of an error


@frozen
class Deaf(Messages):
    """A dialect that writes what it is given."""

    def write_error(self, error: StreamError, status: int) -> tuple[int, Mapping[str, Any]]:
        return status or 599, {"said": error.message}


def test_a_refusal_is_in_the_clients_words() -> None:
    deaf: Dialect = Deaf()
    assert refused(deaf, BOOM) == Refusal(Head(599, JSON_HEADERS), b'{"said":"boom"}')
    assert refused(deaf, BOOM, 418).head.status == 418


@pytest.mark.parametrize(
    ("body", "due"),
    [
        (b'{"error": 1}', {"error": 1}),
        (b'"text"', "text"),
        (b"Too Many Requests\n", "Too Many Requests"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"x" * 1000, "x" * 500),
        (b"<html>", None),
        (b' \n {"cut', None),
        (b"[1, ", None),
        (b"", None),
        (b" \n", None),
        (b"[" * 1000 + b"]" * 1000, None),
        (b'event: error\ndata: {"a": 1}\n\n', {"a": 1}),
        (b'event: error\r\ndata:{"a":\r\ndata: 1}', {"a": 1}),
        (b': hi\n\ndata: {"a": 1}\n\ndata: {"b": 2}\n\ndata: [DONE]\n\n', [{"a": 1}, {"b": 2}]),
        (b'{"a": 1}\n{"b": 2}\n', [{"a": 1}, {"b": 2}]),
        (b"event: error\ndata: too busy\n\n", "too busy"),
        (b"error: data: none of these", "error: data: none of these"),
        (b"null", None),
    ],
)
def test_a_body_says_its_json_or_a_text_for_people_or_nothing(body: bytes, due: Any) -> None:
    assert said(body) == due


def error_body(outcome: Outcome, limits: Limits | None = None) -> ErrorBody:
    def read(told: Any) -> StreamError:
        return StreamError(ErrorKind.API, repr(told))

    return ErrorBody(read, outcome, limits or Limits())


@given(st.integers(1, 12))
def test_the_error_is_known_at_the_end_of_its_body_however_it_is_cut(size: int) -> None:
    outcome = Outcome()
    stage = error_body(outcome)
    body = b'{"error": "a"}'
    for at in range(0, len(body), size):
        assert play(stage, body[at : at + size]) == [[]]
    assert (outcome, stage.held) == (Outcome(), len(body))
    assert play(stage, EOF) == [[]]
    assert outcome.error == StreamError(ErrorKind.API, "{'error': 'a'}")
    assert outcome.verdict is Verdict.FAILED
    assert (stage.held, stage.ended) == (0, True)


def test_a_connection_that_breaks_inside_the_body_of_an_error_changes_nothing() -> None:
    outcome = Outcome()
    play(error_body(outcome), b"busy", EOF(CUT))
    assert outcome.error == StreamError(ErrorKind.API, "'busy'")


def test_no_more_of_a_body_is_read_than_its_bound() -> None:
    outcome = Outcome()
    stage = error_body(outcome, Limits(error_bytes=4))
    play(stage, b"abc")
    assert not stage.ended
    play(stage, b"defg")
    assert (stage.ended, stage.held) == (True, 4)
    play(stage, b"h", EOF)
    assert outcome.error == StreamError(ErrorKind.API, "'abcd'")


def test_the_body_of_an_error_keeps_the_rules_of_every_stage() -> None:
    check_stage(lambda: error_body(Outcome()), [b"a", b"b", b"c"])
