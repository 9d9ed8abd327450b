"""stages.dialects.responses.written: the items of a response, event by event."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.dialect import RequestFacts
from pipeline.errors import ErrorKind
from pipeline.events import (
    AnnotationDelta,
    ArgumentsDelta,
    BlockStart,
    BlockStop,
    Event,
    MessageDelta,
    MessageStop,
    ReasoningBlock,
    ReasoningDelta,
    RedactedReasoningBlock,
    RefusalDelta,
    ServerBlock,
    SignatureDelta,
    StopReason,
    StreamError,
    TextBlock,
    TextDelta,
    ToolKind,
    ToolUseBlock,
)
from pipeline.toolnames import OfferedTool, RequestMap
from stages.dialects.responses.encode import ShowReasoning
from stages.dialects.responses.opaque import proof_of
from tests.responses_stream import END, START, Json, between, encoder, ended, kinds, reasoning, told

HI: list[Event] = [BlockStart(0, TextBlock()), TextDelta(0, "H"), TextDelta(0, "i"), BlockStop(0)]
CALL = BlockStart(0, ToolUseBlock("call_a", "f"))
BOOM = StreamError(ErrorKind.API, "boom", retryable=True)


def test_text_is_a_message_with_every_event_of_its_part() -> None:
    item = {"id": "msg_c1_0", "type": "message", "role": "assistant"}
    where = {"item_id": "msg_c1_0", "output_index": 0, "content_index": 0}
    part = {"type": "output_text", "text": "Hi", "annotations": [], "logprobs": []}
    whole = {**item, "status": "completed", "content": [part]}
    assert between(*HI) == [
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**item, "status": "in_progress", "content": []},
        },
        {"type": "response.content_part.added", **where, "part": {**part, "text": ""}},
        {"type": "response.output_text.delta", **where, "delta": "H", "logprobs": []},
        {"type": "response.output_text.delta", **where, "delta": "i", "logprobs": []},
        {"type": "response.output_text.done", **where, "text": "Hi", "logprobs": []},
        {"type": "response.content_part.done", **where, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": whole},
    ]
    assert ended(*HI, *END)["output"] == [whole]


def test_a_refusal_is_a_part_of_its_own() -> None:
    made = between(
        BlockStart(0, TextBlock()), TextDelta(0, "a"), RefusalDelta(0, "n"), RefusalDelta(0, "o"), BlockStop(0)
    )
    assert kinds(made) == [
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "content_part.added",
        "refusal.delta",
        "refusal.delta",
        "refusal.done",
        "content_part.done",
        "output_item.done",
    ]
    assert made[-3] == {
        "type": "response.refusal.done",
        "item_id": "msg_c1_0",
        "output_index": 0,
        "content_index": 1,
        "refusal": "no",
    }
    assert made[-1]["item"]["content"][1] == {"type": "refusal", "refusal": "no"}


def test_reasoning_is_shown_as_a_summary() -> None:
    made = between(BlockStart(0, ReasoningBlock()), ReasoningDelta(0, "A"), ReasoningDelta(0, "b"), BlockStop(0))
    where = {"item_id": "rs_c1_0", "output_index": 0, "summary_index": 0}
    part = {"type": "summary_text", "text": "Ab"}
    item = {"id": "rs_c1_0", "type": "reasoning", "summary": []}
    assert made == [
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.reasoning_summary_part.added", **where, "part": {**part, "text": ""}},
        {"type": "response.reasoning_summary_text.delta", **where, "delta": "A"},
        {"type": "response.reasoning_summary_text.delta", **where, "delta": "b"},
        {"type": "response.reasoning_summary_text.done", **where, "text": "Ab"},
        {"type": "response.reasoning_summary_part.done", **where, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": {**item, "summary": [part]}},
    ]


def test_reasoning_is_shown_as_raw_text_if_asked() -> None:
    stage = encoder(reasoning=ShowReasoning.CONTENT)
    made = between(BlockStart(0, ReasoningBlock()), ReasoningDelta(0, "A"), BlockStop(0), stage=stage)
    assert kinds(made)[1:6] == [
        "content_part.added",
        "reasoning_text.delta",
        "reasoning_text.done",
        "content_part.done",
        "output_item.done",
    ]
    assert made[-1]["item"] == {
        "id": "rs_c1_0",
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "A"}],
    }


@pytest.mark.parametrize(
    ("signature", "blob"), [("SIG", "SIG"), ("sw1.e30", "sw1.e30"), (proof_of(reasoning("A", blob="E")), "E")]
)
def test_an_opaque_proof_is_the_blob_of_its_item(signature: str, blob: str) -> None:
    text = between(BlockStart(0, ReasoningBlock()), ReasoningDelta(0, "A"), SignatureDelta(0, signature), BlockStop(0))
    assert text[-1]["item"]["encrypted_content"] == blob
    alone = between(BlockStart(0, ReasoningBlock()), SignatureDelta(0, signature), BlockStop(0))
    assert kinds(alone) == ["output_item.added", "output_item.done"]
    redacted = between(BlockStart(0, RedactedReasoningBlock(signature)), BlockStop(0))
    assert redacted == alone
    assert redacted[-1]["item"]["summary"] == []
    assert redacted[-1]["item"]["encrypted_content"] == blob


def test_a_call_is_announced_at_once_and_whole_at_its_end() -> None:
    item = {"id": "fc_a", "type": "function_call", "call_id": "call_a", "name": "f"}
    where = {"item_id": "fc_a", "output_index": 0}
    made = between(CALL, ArgumentsDelta(0, '{"x"'), ArgumentsDelta(0, ""), ArgumentsDelta(0, ":1}"), BlockStop(0))
    assert made == [
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**item, "status": "in_progress", "arguments": ""},
        },
        {"type": "response.function_call_arguments.delta", **where, "delta": '{"x"'},
        {"type": "response.function_call_arguments.delta", **where, "delta": ":1}"},
        {"type": "response.function_call_arguments.done", **where, "arguments": '{"x":1}'},
        {
            "type": "response.output_item.done",
            "output_index": 0,
            "item": {**item, "status": "completed", "arguments": '{"x":1}'},
        },
    ]


def test_a_call_that_the_limit_cut_is_incomplete() -> None:
    cut = [CALL, ArgumentsDelta(0, '{"x"'), BlockStop(0, complete=False), MessageDelta(StopReason.MAX_TOKENS)]
    made = told(START, *cut, MessageStop())
    assert kinds(made)[2:] == ["output_item.added", "function_call_arguments.delta", "output_item.done", "incomplete"]
    assert made[-2]["item"]["status"] == "incomplete"
    assert made[-2]["item"]["arguments"] == '{"x"'
    assert made[-1]["response"]["incomplete_details"] == {"reason": "max_output_tokens"}


def test_a_freeform_call_has_an_input() -> None:
    block = BlockStart(0, ToolUseBlock("a", "patch", ToolKind.CUSTOM))
    made = between(block, ArgumentsDelta(0, "***"), ArgumentsDelta(0, ' "x"'), BlockStop(0))
    assert kinds(made)[1:4] == ["custom_tool_call_input.delta"] * 2 + ["custom_tool_call_input.done"]
    assert made[3]["input"] == '*** "x"'
    assert made[-1]["item"] == {
        "id": "ctc_a",
        "type": "custom_tool_call",
        "status": "completed",
        "call_id": "a",
        "name": "patch",
        "input": '*** "x"',
    }


def test_a_tool_that_the_client_declared_freeform_is_one() -> None:
    facts = RequestFacts(map=RequestMap(tools={"patch": OfferedTool("patch", kind=ToolKind.CUSTOM)}))
    block = BlockStart(0, ToolUseBlock("a", "patch"))
    made = between(
        block,
        ArgumentsDelta(0, '{"input":'),
        ArgumentsDelta(0, '"a\\'),
        ArgumentsDelta(0, 'n"}'),
        BlockStop(0),
        stage=encoder(facts=facts),
    )
    assert [event["delta"] for event in made if "delta" in event] == ["a", "\n"]
    assert (made[-1]["item"]["type"], made[-1]["item"]["input"]) == ("custom_tool_call", "a\n")


def test_a_tool_that_the_client_declared_a_function_is_one() -> None:
    facts = RequestFacts(map=RequestMap(tools={"f": OfferedTool("f")}))
    block = BlockStart(0, ToolUseBlock("a", "f", ToolKind.CUSTOM))
    made = between(block, ArgumentsDelta(0, 'a"'), BlockStop(0), stage=encoder(facts=facts))
    assert (made[-1]["item"]["type"], made[-1]["item"]["arguments"]) == ("function_call", '{"input":"a\\""}')


def test_a_tool_has_the_name_and_the_namespace_that_the_client_gave_it() -> None:
    tools = {"list": OfferedTool("list"), "collab__list": OfferedTool("list", "collab", ToolKind.CUSTOM)}
    facts = RequestFacts(map=RequestMap(tools=tools))
    for namespace, kind, named in (("collab", "custom_tool_call", {"namespace": "collab"}), ("", "function_call", {})):
        block = ToolUseBlock("a", "list", namespace=namespace)
        made = between(BlockStart(0, block), ArgumentsDelta(0, "{}"), BlockStop(0), stage=encoder(facts=facts))
        for item in (made[0]["item"], made[-1]["item"]):
            assert (item["name"], item["type"]) == ("list", kind)
            assert {name: item[name] for name in ("namespace",) if name in item} == named


def test_a_tool_that_was_not_offered_keeps_its_namespace() -> None:
    made = between(BlockStart(0, ToolUseBlock("a", "list", namespace="other")), BlockStop(0))
    assert made[-1]["item"]["namespace"] == "other"


def test_an_item_of_this_dialects_own_tools_goes_through() -> None:
    item = {"type": "web_search_call", "id": "ws1", "status": "completed"}
    made = between(BlockStart(0, ServerBlock("responses", item)), BlockStop(0))
    assert [event["item"] for event in made] == [item, item]
    nameless = {"type": "compaction", "encrypted_content": "E"}
    assert between(BlockStart(0, ServerBlock("responses", nameless)), BlockStop(0))[0]["item"]["id"] == "item_c1_0"


@pytest.mark.parametrize(
    "note",
    [
        {"type": "url_citation", "url": "u", "start_index": 0},
        {"type": "url_citation", "url_citation": {"url": "u", "start_index": 0}},
    ],
)
def test_a_note_is_written_flat_and_stays_on_its_part(note: Json) -> None:
    flat = {"type": "url_citation", "url": "u", "start_index": 0}
    made = between(
        BlockStart(0, TextBlock()), TextDelta(0, "a"), AnnotationDelta(0, note), TextDelta(0, "b"), BlockStop(0)
    )
    assert made[3] == {
        "type": "response.output_text.annotation.added",
        "item_id": "msg_c1_0",
        "output_index": 0,
        "content_index": 0,
        "annotation_index": 0,
        "annotation": flat,
    }
    assert made[-1]["item"]["content"][0]["annotations"] == [flat]
    assert kinds(made)[4] == "output_text.delta"


@pytest.mark.parametrize(
    ("named", "title"), [({"title": "t"}, "t"), ({"title": None}, "https://e.org"), ({}, "https://e.org")]
)
def test_another_apis_citation_of_a_page_is_one_of_the_whole_part(named: Json, title: str) -> None:
    cited = {"type": "somewhere", "url": "https://e.org", "cited_text": "x", **named}
    note = {"type": "url_citation", "url": "https://e.org", "title": title, "start_index": 0, "end_index": 3}
    made = between(
        BlockStart(0, TextBlock()), TextDelta(0, "a"), AnnotationDelta(0, cited), TextDelta(0, "bc"), BlockStop(0)
    )
    kinds = [event["type"] for event in made]
    added = kinds.index("response.output_text.annotation.added")
    assert kinds[added - 1 : added + 2] == [
        "response.output_text.delta",
        "response.output_text.annotation.added",
        "response.output_text.done",
    ]
    assert (made[added]["annotation"], made[added]["annotation_index"]) == (note, 0)
    assert made[-1]["item"]["content"][0]["annotations"] == [note]


def test_a_note_before_its_text_opens_the_part() -> None:
    note = AnnotationDelta(0, {"type": "file_path"})
    made = between(BlockStart(0, TextBlock()), note, note, TextDelta(0, "a"), BlockStop(0))
    assert [event["annotation_index"] for event in made if "annotation" in event] == [0, 1]
    assert made[-1]["item"]["content"] == [
        {"type": "output_text", "text": "a", "annotations": [{"type": "file_path"}] * 2, "logprobs": []}
    ]


@given(st.lists(st.text(max_size=5), min_size=1, max_size=6))
def test_the_pieces_of_a_text_make_its_whole(pieces: list[str]) -> None:
    text = "".join(pieces)
    made = between(BlockStart(0, TextBlock()), *(TextDelta(0, piece) for piece in pieces), BlockStop(0))
    assert "".join(event["delta"] for event in made if "delta" in event) == text
    if text:
        assert made[-1]["item"]["content"][0]["text"] == text
