"""stages.recipe: which stages stand in a route, and in which order."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from attrs import evolve

from pipeline import envelope
from pipeline.dialect import Dialect, RequestFacts, dialect
from pipeline.events import BlockStart, Event, TextDelta, ToolKind
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.outcome import Outcome, Verdict
from pipeline.reply import Form
from pipeline.route import AnswerOptions
from pipeline.stage import EventStage, Stage, parts
from pipeline.testing import EOF, play
from pipeline.toolnames import OfferedTool, RequestMap
from stages.recipe import default_chain, default_halves
from tests.exchange import calls, whole
from tests.messages_client import folded
from tests.support import DONE, call, chunk, finish, read, reasoning, sse, text

CHAT, MESSAGES = dialect("chat"), dialect("messages")
HELLO = sse(text("hello"), finish(), DONE)
SAYS_HELLO = whole(content="hello")
NEUTRAL = ["Sealer", "InterleaveBuffer", "TagScrubber", "BlockValidator"]


def names(chain: Stage[bytes, bytes]) -> list[str]:
    return [type(stage).__name__ for stage in parts(chain)]


def chain(upstream: Dialect = CHAT, client: Dialect = MESSAGES, **asked: Any) -> Stage[bytes, bytes]:
    return default_chain(upstream, client, **asked)


def given(raw: bytes, **asked: Any) -> bytes:
    """What a client gets of an answer."""
    return b"".join(item for step in play(chain(**asked), raw, EOF) for item in step)


def test_a_stream_for_a_stream_passes_all_that_makes_it_lawful() -> None:
    ends = ["VerdictStage", "MessagesEncoder", "SSEEncoder"]
    assert names(chain()) == ["SSEDecoder", "ChatNormalizer", *NEUTRAL, *ends]


def test_a_whole_answer_passes_the_same_stages() -> None:
    ends = ["AnswerBound", "VerdictStage", "BodyWriter"]
    assert names(chain(arriving=Form.WHOLE, leaving=Form.WHOLE)) == ["BodyReader", *NEUTRAL, *ends]


class Shout(EventStage):
    """Text is in capitals, in a block that never began."""

    def on_event(self, event: Event) -> Iterable[Event]:
        if isinstance(event, BlockStart):
            return []
        return [TextDelta(event.index + 1, event.text.upper())] if isinstance(event, TextDelta) else [event]


@pytest.mark.parametrize("leaving", Form)
def test_stages_of_ones_own_stand_between_the_halves_and_what_they_make_is_mended(leaving: Form) -> None:
    before, after = default_halves(CHAT, MESSAGES, leaving=leaving)
    out = b"".join(item for step in play(before | Shout() | after, HELLO, EOF) for item in step)
    body = folded(out) if leaving is Form.STREAM else json.loads(out)
    assert [block["text"] for block in body["content"]] == ["HELLO"]


def test_the_halves_of_one_dialect_over_itself_change_no_byte_but_those_of_what_is_changed() -> None:
    before, after = default_halves(MESSAGES, MESSAGES)
    stream = given(HELLO)
    assert b"".join(item for step in play(before | after, stream, EOF) for item in step) == stream


@pytest.mark.parametrize("leaving", Form)
def test_tools_have_the_clients_names_again_over_its_own_dialect_too(leaving: Form) -> None:
    facts = RequestFacts(map=RequestMap(tools={"up": OfferedTool("down")}))
    stream = given(sse(call(0, "i", "up", "{}"), finish("tool_calls"), DONE))
    out = b"".join(item for step in play(chain(MESSAGES, leaving=leaving, facts=facts), stream, EOF) for item in step)
    body = folded(out) if leaving is Form.STREAM else json.loads(out)
    assert [block["name"] for block in body["content"]] == ["down"]


@pytest.mark.parametrize("name", ["chat", "messages", "responses"])
def test_one_dialect_over_itself_passes_the_scrubber_alone_and_only_where_its_gate_is_open(name: str) -> None:
    one, offered = dialect(name), RequestFacts(tools={"f": {}})
    ends = ["VerdictStage", "FrameReturner"]
    assert names(chain(one, one, facts=offered)) == ["RawDecoder", "OriginKeeper", "TagScrubber", *ends]
    assert names(chain(one, one)) == ["RawDecoder", "OriginKeeper", "TagScrubber", *ends]
    closed = AnswerOptions(recover="off")
    assert names(chain(one, one, facts=offered, options=closed)) == ["RawDecoder", "OriginKeeper", *ends]
    whole_ends = ["AnswerBound", "VerdictStage", "BodyWriter"]
    forms = {"arriving": Form.WHOLE, "leaving": Form.WHOLE}
    assert names(chain(one, one, facts=offered, **forms)) == ["BodyReader", "TagScrubber", *whole_ends]


def test_an_answer_of_any_form_is_read_by_its_first_byte() -> None:
    assert names(chain(arriving=None))[0] == "AnswerReader"


@pytest.mark.parametrize("leaving", Form)
@pytest.mark.parametrize("raw", [HELLO, SAYS_HELLO])
def test_any_form_becomes_any_other(raw: bytes, leaving: Form) -> None:
    out = given(raw, arriving=None, leaving=leaving)
    message = folded(out) if leaving is Form.STREAM else json.loads(out)
    assert message["content"] == [{"type": "text", "text": "hello"}]


def test_a_form_that_is_said_is_believed() -> None:
    assert read(given(SAYS_HELLO + b"x", arriving=Form.STREAM)).error is not None
    assert read(given(HELLO, arriving=Form.WHOLE)).error is not None


def offered(**tools: OfferedTool) -> RequestFacts:
    return RequestFacts(map=RequestMap(tools=tools))


def test_stages_for_tools_stand_only_where_the_upstream_was_given_others() -> None:
    assert names(chain(facts=offered(f=OfferedTool("f")))) == names(chain())
    assert "ToolRestorer" in names(chain(facts=offered(f=OfferedTool("long"))))
    assert "ToolRestorer" in names(chain(facts=RequestFacts(map=RequestMap(ids={"a": "b"}))))
    both = names(chain(facts=offered(f=OfferedTool("g", kind=ToolKind.CUSTOM, wrapped=True))))
    assert [name for name in both if name in ("InputUnwrapper", "ToolRestorer")] == ["InputUnwrapper", "ToolRestorer"]
    same = names(chain(facts=offered(f=OfferedTool("f", kind=ToolKind.CUSTOM, wrapped=True))))
    assert "InputUnwrapper" in same
    assert both.index("TagScrubber") < both.index("InputUnwrapper")
    assert "ToolRestorer" not in same


@pytest.mark.parametrize("leaving", Form)
def test_a_wrapped_tool_is_the_clients_freeform_tool_again(leaving: Form) -> None:
    facts = offered(f=OfferedTool("patch", kind=ToolKind.CUSTOM, wrapped=True))
    raw = sse(call(0, "i", "f", '{"input":"a\\n'), call(0, arguments='b"}'), finish("tool_calls"), DONE)
    out = given(raw, facts=facts, leaving=leaving)
    message = folded(out) if leaving is Form.STREAM else json.loads(out)
    (block,) = message["content"]
    assert (block["name"], block["input"]) == ("patch", {"input": "a\nb"})


def test_text_is_text_where_nothing_is_to_be_recovered() -> None:
    assert names(chain(options=AnswerOptions(recover="off"))) == [
        name for name in names(chain()) if name != "TagScrubber"
    ]


def test_a_call_of_a_wrapped_tool_that_was_written_as_text_is_the_clients_freeform_tool_again() -> None:
    tools = {"f": OfferedTool("patch", kind=ToolKind.CUSTOM, wrapped=True)}
    facts = RequestFacts(map=RequestMap(tools=tools), tools={"f": {}})
    raw = sse(text('<tool_call>{"name": "f", "arguments": {"input": "a\\nb"}}</tool_call>'), finish(), DONE)
    outcome = Outcome()
    (block,) = folded(given(raw, facts=facts, outcome=outcome))["content"]
    assert (block["name"], block["input"]) == ("patch", {"input": "a\nb"})
    assert outcome.recovered == 1


def test_what_such_a_tool_is_given_is_unwrapped_once() -> None:
    tools = {"f": OfferedTool("f", kind=ToolKind.CUSTOM, wrapped=True)}
    inner = '{"input": "x"}'
    written = json.dumps({"name": "f", "arguments": {"input": inner}})
    raw = sse(text(f"<tool_call>{written}</tool_call>"), finish(), DONE)
    facts = RequestFacts(map=RequestMap(tools=tools), tools={"f": {}})
    out = given(raw, facts=facts, client=dialect("responses"))
    assert json.loads(out.rpartition(b"data: ")[2])["response"]["output"][0]["input"] == inner


def test_a_call_of_a_freeform_tool_that_was_written_as_text_is_freeform() -> None:
    tools = {"f": OfferedTool("f", kind=ToolKind.CUSTOM)}
    facts = RequestFacts(map=RequestMap(tools=tools), tools={"f": {}})
    raw = sse(text('<tool_call>{"name": "f", "arguments": {"patch": "a\\nb"}}</tool_call>'), finish(), DONE)
    out = given(raw, facts=facts, client=dialect("responses"))
    assert b'"type":"custom_tool_call"' in out
    assert b'"input":"a\\nb"' in out


def test_an_envelope_names_the_provider() -> None:
    raw = sse(chunk({"reasoning_details": [{"text": "hm", "signature": "S"}]}), text("a"), finish(), DONE)
    for options, name in ((AnswerOptions(), "chat"), (AnswerOptions(upstream="red"), "red")):
        (sealed,) = read(given(raw, options=options)).signatures
        assert envelope.open(sealed, upstream=name, text="hm") is not None
    assert read(given(raw, options=AnswerOptions(envelope=False))).signatures == []


def test_what_is_shared_reaches_every_stage() -> None:
    ledger = Ledger()
    outcome = Outcome(ledger=ledger)
    facts = RequestFacts(model="asked")
    raw = sse({"choices": [{"index": 0, "delta": {"content": "a", "audio": "x"}, "finish_reason": "stop"}]}, DONE)
    out = given(raw, ledger=ledger, outcome=outcome, facts=facts)
    assert b'"model":"asked"' in out
    assert [entry.path for entry in ledger] == ["choices[].delta.audio", "usage"]
    assert outcome.verdict is Verdict.COMPLETE
    assert outcome.begun


def test_limits_reach_every_stage() -> None:
    body = whole("tool_calls", tool_calls=calls(*((f"i{n}", "f", "{}") for n in range(9))))
    small = {"blocks": 3, "answer_bytes": 500, "held_bytes": 10, "frame_bytes": 100}
    for name, value in small.items():
        limits = evolve(Limits(), **{name: value})
        outcome = Outcome()
        raw, arriving = (body, Form.WHOLE) if name in ("blocks", "answer_bytes") else (sse(*MIXED), Form.STREAM)
        given(raw, arriving=arriving, leaving=Form.WHOLE, limits=limits, outcome=outcome)
        assert (outcome.verdict, outcome.error.code if outcome.error else "") == (Verdict.FAILED, name)


@pytest.mark.parametrize(("levels", "depth"), [(10, 10), (11, 10), (251, 251), (252, 251)])
def test_arguments_are_mended_as_deep_as_the_limit_says(levels: int, depth: int) -> None:
    nested = "[" * (levels - 1) + "]" * (levels - 1)
    body = whole("tool_calls", tool_calls=calls(("i", "f", f"/**/{{x: {nested}}}")))
    ledger = Ledger()
    given(body, arriving=Form.WHOLE, limits=Limits(json_depth=depth), ledger=ledger)
    assert [entry.action for entry in ledger] == (["mended"] if levels <= depth else [])


MIXED = [call(0, "i", "f", '{"x":'), *[text("a" * 20)] * 3, finish(), DONE]


def test_two_chains_share_nothing() -> None:
    one, other = chain(), chain()
    assert not set(map(id, parts(one))) & set(map(id, parts(other)))
    raw = [HELLO[at : at + 40] for at in range(0, len(HELLO), 40)]
    pairs = [(b"".join(one.receive([piece])), b"".join(other.receive([piece]))) for piece in raw]
    assert all(first == second for first, second in pairs)


@pytest.mark.parametrize("leaving", Form)
def test_a_responses_client_is_shown_reasoning_and_told_of_a_limit_as_the_route_says(leaving: Form) -> None:
    raw = sse(reasoning("Why"), text("hello"), finish("length"), DONE)
    for options, member, status in (
        (AnswerOptions(), "summary", "incomplete"),
        (AnswerOptions(show_reasoning="content"), "content", "incomplete"),
        (AnswerOptions(told_limit="completed"), "summary", "completed"),
    ):
        ledger = Ledger()
        out = given(raw, client=dialect("responses"), leaving=leaving, options=options, ledger=ledger)
        told = json.loads(out.rpartition(b"data: ")[2])
        response = told.get("response", told)
        thought, said = response["output"]
        assert [part["text"] for part in thought[member]] == ["Why"]
        assert thought["summary"] == [] or member == "summary"
        assert said["content"][0]["text"] == "hello"
        assert (response["status"], response["incomplete_details"] is None) == (status, status == "completed")
        assert ("stop reason" in [entry.path for entry in ledger]) is (status == "completed")


def test_an_answer_with_a_call_that_a_limit_cut_is_incomplete_whatever_the_route_says() -> None:
    raw = sse(call(0, "i", "f", '{"x":'), finish("length"), DONE)
    out = given(raw, client=dialect("responses"), options=AnswerOptions(told_limit="completed"))
    assert b"event: response.incomplete" in out
    assert b"event: response.completed" not in out
