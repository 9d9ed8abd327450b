"""Requests that say little: what the client's own server takes, a server of another dialect takes too."""

from typing import Any

import pytest

from pipeline.errors import ClientError
from pipeline.ledger import Ledger
from pipeline.request import RequestOptions
from tests.request_shapes import BUILDS, JSON, PARSES

SYSTEM = {"role": "system", "content": "x"}
DOT = {"role": "user", "content": "."}
NOBODY = [("messages", "degraded to a user's turn of one dot")]


def said(*given: JSON) -> JSON:
    return {"model": "m", "messages": list(given)}


def user(content: Any) -> JSON:
    return {"role": "user", "content": content}


def up(client: str, upstream: str, body: JSON, **options: Any) -> tuple[JSON, list[tuple[str, str]]]:
    """The upstream's body and what is lost. Our own reader of that dialect takes it."""
    ledger = Ledger(direction="request")
    request = PARSES[client](body, ledger=ledger)
    written = BUILDS[upstream](request, ledger=ledger, options=RequestOptions(**options)).body
    PARSES[upstream](written, ledger=Ledger())
    return written, [(entry.path, entry.action) for entry in ledger]


def test_instructions_alone_are_an_input_of_responses() -> None:
    body, lost = up("chat", "responses", said(SYSTEM, {"role": "developer", "content": "y"}))
    assert [(item["role"], item["content"][0]["text"]) for item in body["input"]] == [
        ("system", "x"),
        ("developer", "y"),
    ]
    assert "instructions" not in body
    assert lost == []


def test_to_instructions_alone_a_user_says_something_in_messages() -> None:
    body, lost = up("chat", "messages", said(SYSTEM))
    assert (body["system"], body["messages"]) == ("x", [DOT])
    assert lost == NOBODY


@pytest.mark.parametrize("via", ["messages", "responses"])
def test_instructions_alone_go_over_another_dialect_and_back(via: str) -> None:
    there, _ = up("chat", via, said(SYSTEM))
    back, _ = up(via, "chat", there)
    assert back["messages"] == [SYSTEM, DOT][: 2 if via == "messages" else 1]


@pytest.mark.parametrize(
    ("client", "upstream", "body", "becomes"),
    [
        ("chat", "messages", said(user("")), [DOT]),
        ("chat", "messages", said(user(" \n")), [DOT]),
        ("chat", "messages", said(SYSTEM, user([])), [DOT]),
        ("chat", "messages", said(user(""), user("a")), [user("a")]),
        ("responses", "messages", {"model": "m", "input": ""}, [DOT]),
        ("responses", "chat", {"model": "m", "input": [{"type": "compaction_trigger"}]}, [DOT]),
        ("responses", "messages", {"model": "m", "input": [{"type": "compaction_trigger"}]}, [DOT]),
        ("chat", "responses", said(user([])), "."),
        ("messages", "responses", {**said(user([])), "max_tokens": 99, "system": "x"}, "."),
    ],
)
def test_where_nothing_is_left_to_say_a_user_says_something(
    client: str, upstream: str, body: JSON, becomes: Any
) -> None:
    written, lost = up(client, upstream, body)
    if upstream == "responses":
        (item,) = written["input"]
        assert (item["role"], item["content"]) == ("user", [{"type": "input_text", "text": becomes}])
    else:
        assert [message for message in written["messages"] if message["role"] != "system"] == becomes
    assert all(path.startswith(("messages", "input")) for path, _ in lost)
    assert lost


def test_a_strict_route_makes_nobody_say_anything() -> None:
    with pytest.raises(ClientError, match=r"^messages: there must be a turn"):
        up("chat", "messages", said(SYSTEM), strict=True)


@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
def test_a_text_of_blanks_is_left_out_for_messages_which_refuses_it(blank: str) -> None:
    body, lost = up("chat", "messages", said(user("a"), {"role": "assistant", "content": blank}, user("b")))
    assert body["messages"] == [user([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])]
    assert lost == ([("messages[1].content", "dropped")] if blank else [])


@pytest.mark.parametrize("output", ["", "\n", [], [{"type": "input_text", "text": ""}]])
def test_an_empty_result_is_as_it_was_and_no_loss(output: Any) -> None:
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c", "output": output}
    items = [{"role": "user", "content": "u"}, call, result]
    body, lost = up("responses", "messages", {"model": "m", "input": items})
    (block,) = body["messages"][-1]["content"]
    assert block["content"] == (output if isinstance(output, str) else "")
    assert lost == []


def test_an_empty_text_beside_others_in_a_result_is_left_out() -> None:
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    texts = [{"type": "input_text", "text": text} for text in ("", "a", "b")]
    result = {"type": "function_call_output", "call_id": "c", "output": texts}
    body, lost = up("responses", "messages", {"model": "m", "input": [user("u"), call, result]})
    (block,) = body["messages"][-1]["content"]
    assert block["content"] == [{"type": "text", "text": text} for text in ("a", "b")]
    assert lost == []


@pytest.mark.parametrize("upstream", BUILDS)
def test_a_bound_below_zero_is_none(upstream: str) -> None:
    body, lost = up("chat", upstream, {**said(user("a")), "max_tokens": -1})
    if upstream == "chat":
        assert (body["max_tokens"], lost) == (-1, [])
        return
    assert body.get("max_tokens") == (32_000 if upstream == "messages" else None)
    assert "max_output_tokens" not in body
    assert lost == [("max_tokens", "dropped")]


@pytest.mark.parametrize("most", [0, -1])
def test_a_top_k_below_one_is_none(most: int) -> None:
    body, lost = up("chat", "messages", {**said(user("a")), "top_k": most})
    assert "top_k" not in body
    assert lost == [("top_k", "dropped")]
    assert up("chat", "chat", {**said(user("a")), "top_k": most})[0]["top_k"] == most
