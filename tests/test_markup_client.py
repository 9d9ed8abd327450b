"""tests.markup_upstream and tests.markup_client: what the model writes, and what is demanded of the client."""

import json
from typing import Any

import pytest

from pipeline.dialect import RequestFacts, dialect
from pipeline.route import AnswerOptions, Recover
from stages.recipe import default_chain
from tests.markup_client import Seen, wrong
from tests.markup_upstream import BEFORE, KNOWN, THOUGHT, answer, final
from tests.messages_client import folded

PATH = "/tmp/note.txt"
ASKED = {"role": "user", "content": [{"type": "text", "text": f"Read the file {PATH} and tell me the NUMBER in it."}]}
TOLD = {"role": "tool", "tool_call_id": "c", "content": "1\thello\n2\tNUMBER=4711"}


def recovered(recover: Recover, *messages: Any, offered: str = "Read") -> dict[str, Any]:
    """What a client is given where it asks with these messages, and offers that tool."""
    tools = [{"type": "function", "function": {"name": offered, "parameters": {}}}]
    chain = default_chain(
        dialect("chat"),
        dialect("messages"),
        facts=RequestFacts(tools={offered: {}}),
        options=AnswerOptions(recover=recover),
    )
    read = [*answer({"messages": messages, "tools": tools})]
    return folded(b"".join([*chain.receive(read), *chain.receive_eof()]))


@pytest.mark.parametrize("recover", ["native", "prompt"])
def test_the_upstream_calls_a_tool_that_is_offered_as_text(recover: Recover) -> None:
    message = recovered(recover, ASKED)
    thought, said, call = message["content"]
    assert (thought["thinking"], said["text"]) == (THOUGHT, f"{BEFORE}\n")
    assert (call["name"], call["input"], message["stop_reason"]) == ("Read", {"file_path": PATH}, "tool_use")
    other = recovered(recover, ASKED, offered="Bash")["content"][-1]
    assert (other["name"], other["input"]["command"]) == ("Bash", f"cat {PATH}")


@pytest.mark.parametrize("recover", ["native", "prompt"])
def test_the_upstream_answers_with_the_number_of_the_result(recover: Recover) -> None:
    thought, said = recovered(recover, ASKED, TOLD)["content"]
    assert (thought["thinking"], said["text"]) == (KNOWN, final("4711"))


def test_the_upstream_calls_nothing_that_is_not_offered_and_nothing_for_another_task() -> None:
    for message in (recovered("prompt", ASKED, offered="other"), recovered("prompt", {"role": "user", "content": "x"})):
        assert [block["type"] for block in message["content"]] == ["text"]


def lines(**changed: Any) -> str:
    """What the client prints of a good run, but for some of it."""
    run: dict[str, Any] = {
        "thoughts": [THOUGHT, KNOWN],
        "calls": 1,
        "result": "NUMBER=47",
        "text": [BEFORE, "\n", final("47")],
    }
    run |= {"shown": final("47"), **changed}
    call = {"type": "tool_use", "input": {"file_path": PATH}}
    blocks = [*({"type": "thinking", "thinking": text} for text in run["thoughts"]), *[call] * run["calls"]]
    pieces = [part[at : at + 5] for part in run["text"] for at in range(0, len(part), 5)]
    told = [
        {"type": "system"},
        {"type": "stream_event", "event": {"type": "message_start"}},
        *(
            {"type": "stream_event", "event": {"delta": {"type": "text_delta", "text": piece}}}
            for piece in run.get("pieces", pieces)
        ),
        {"type": "assistant", "message": {"content": blocks}},
        {"type": "user", "message": {"content": [{"type": "tool_result", "content": run["result"]}]}},
        {"type": "result", "result": run["shown"]},
    ]
    return "\n".join(["a warning", *map(json.dumps, told)])


def test_a_good_run_is_good() -> None:
    assert [*wrong(Seen.of(lines()))] == []


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"calls": 0}, "the tool did not run once"),
        ({"calls": 2}, "the tool did not run once"),
        ({"result": "no such file"}, "the tool did not run once"),
        ({"thoughts": []}, "the reasoning is"),
        ({"shown": "The number"}, "the answer that was shown is"),
        ({"text": [BEFORE, "\n<tool_call>", final("47")]}, "the text that was streamed is"),
        ({"pieces": [BEFORE, "\n", final("47")]}, "the text did not come as it was written"),
    ],
)
def test_a_run_in_which_something_is_amiss_is_not(changed: dict[str, Any], fault: str) -> None:
    (error,) = wrong(Seen.of(lines(**changed)))
    assert fault in error
