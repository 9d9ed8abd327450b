"""Whole answers of one dialect over itself: bodies with odd members, and what becomes of them."""

import json
from collections.abc import Callable, Iterable
from typing import Any

from attrs import evolve

from pipeline.dialect import NO_REQUEST, RequestFacts
from pipeline.events import (
    Event,
    RefusalDelta,
    TextDelta,
)
from pipeline.ledger import Ledger
from pipeline.reply import Form
from pipeline.route import AnswerOptions
from tests.returning import returned, through

Json = dict[str, Any]
Make = Callable[[Event], Iterable[Event]]

ARGUMENTS = '{"city": "Paris"}'
MARKUP = f'<tool_call>{{"name":"f","arguments":{ARGUMENTS}}}</tool_call>'
LONG = 123456789012345678901234567890
ODD = {"odd": {"deep": [1, "2"]}, "a": None}
"""Members that nobody knows."""


def scrubbed(name: str, body: Json | str) -> Json:
    """What a client gets of an answer in which calls and reasoning are recovered."""
    raw = body if isinstance(body, str) else json.dumps(body)
    facts = RequestFacts(stream=False, tools={"f": {}})
    forms = {"arriving": Form.WHOLE, "leaving": Form.WHOLE}
    out, _ = returned(name, [raw.encode()], **forms, facts=facts, options=AnswerOptions(recover="prompt"))
    made: Json = json.loads(out)
    return made


def made(name: str, body: Json, make: Make, facts: RequestFacts = NO_REQUEST, ledger: Ledger | None = None) -> Json:
    """The same with a stage in the middle."""
    forms = {"arriving": Form.WHOLE, "leaving": Form.WHOLE}
    out = through(name, make, [json.dumps(body).encode()], **forms, facts=facts, ledger=ledger)
    answer: Json = json.loads(out)
    return answer


def without_ids(item: Json) -> Json:
    return {name: value for name, value in item.items() if name not in ("id", "call_id")}


def chat(content: Any, **members: Any) -> Json:
    other = {"index": 1, "message": {"role": "assistant", "content": MARKUP}, "finish_reason": "stop"}
    said = {"odd": 1, "role": "assistant", "content": content, "refusal": None, **members}
    first = {
        "odd": [],
        "index": 0,
        "message": said,
        "logprobs": {"content": ["token"]},
        "finish_reason": "stop",
        "z": 1,
    }
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7, "prompt_tokens_details": {"odd": 1}}
    return {"id": "c", "odd": ODD, "model": "m", "choices": [first, other], "usage": usage, "service_tier": "x"}


def messages(*blocks: Any, **members: Any) -> Json:
    usage = {"input_tokens": 3, "output_tokens": 4, "service_tier": "x", "server_tool_use": {"web_search_requests": 1}}
    about = {"id": "msg", "odd": ODD, "type": "message", "role": "assistant", "model": "m", "content": [*blocks]}
    return {**about, "stop_reason": "end_turn", "stop_sequence": None, "usage": usage, "container": ODD, **members}


def spoken(text: str, name: str = "msg_1", **members: Any) -> Json:
    part = {"odd": 1, "type": "output_text", "text": text, "annotations": [], "logprobs": [{"token": "x"}]}
    about = {"id": name, "type": "message", "status": "completed", "role": "assistant", "phase": "final"}
    return {**about, "content": [part], **members}


def response(*items: Any, **members: Any) -> Json:
    usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7, "odd": 1}
    about = {"id": "resp_1", "object": "response", "odd": ODD, "model": "m", "status": "completed", "store": True}
    return {**about, "metadata": ODD, "output": [*items], "usage": usage, "service_tier": "x", **members}


def saying(name: str, text: str) -> Json:
    """An answer that says that and no more."""
    if name == "chat":
        return chat(text)
    return messages({"type": "text", "text": text, "odd": 1}) if name == "messages" else response(spoken(text))


def upper(event: Event) -> Iterable[Event]:
    """A stage that changes the text."""
    yield evolve(event, text=event.text.upper()) if isinstance(event, TextDelta | RefusalDelta) else event
