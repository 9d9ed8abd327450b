"""Streams of each dialect, as a server sends them, of texts and what stands between them, and their whole answers."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tests.support import DONE

Json = dict[str, Any]
Part = tuple[str, Sequence[str]]
"""A kind, and its pieces: `text`, `reasoning`, `call` (its arguments), and for Responses `search`."""

ABOUT: Json = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "error": None}
ABOUT |= {"incomplete_details": None, "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
DETAILS: Json = {"input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0}}
DETAILS |= {"output_tokens_details": {"reasoning_tokens": 0}}
COUNTS: Json = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7, **DETAILS}


def sse(*events: Any) -> bytes:
    """The frames of a stream."""
    return b"".join(
        b"data: " + event + b"\n\n"
        if isinstance(event, bytes)
        else (f"event: {event['type']}\n" if "type" in event else "").encode()
        + b"data: "
        + json.dumps(event).encode()
        + b"\n\n"
        for event in events
    )


def item_of(part: Part, place: int) -> Json:
    """An item of a response, whole."""
    kind, text = part[0], "".join(part[1])
    if kind == "text":
        said = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        return {"id": f"m{place}", "type": "message", "role": "assistant", "status": "completed", "content": [said]}
    if kind == "reasoning":
        return {"id": f"r{place}", "type": "reasoning", "summary": [{"type": "summary_text", "text": text}]}
    if kind == "call":
        named = {"call_id": f"c{place}", "name": "f", "arguments": text}
        return {"id": f"f{place}", "type": "function_call", "status": "completed", **named}
    return {"id": f"w{place}", "type": "web_search_call", "status": "completed", "action": {"type": "search"}}


def item_events(part: Part, place: int) -> Iterator[Json]:
    """The events of an item."""
    item, (kind, pieces) = item_of(part, place), part
    bare: Json = {**item, **{name: [] for name in ("content", "summary") if name in item}}
    bare |= {"arguments": ""} if kind == "call" else {}
    bare |= {"status": "in_progress"} if "status" in item else {}
    where = {"item_id": item["id"], "output_index": place}
    yield {"type": "response.output_item.added", "output_index": place, "item": bare}
    if kind in ("text", "reasoning"):
        index, name, of = (
            ("content_index", "output_text", "content_part")
            if kind == "text"
            else ("summary_index", "reasoning_summary_text", "reasoning_summary_part")
        )
        part_ = item["content" if kind == "text" else "summary"][0]
        where |= {index: 0}
        beside: Json = {"logprobs": []} if kind == "text" else {}
        yield {"type": f"response.{of}.added", **where, "part": {**part_, "text": ""}}
        for piece in pieces:
            yield {"type": f"response.{name}.delta", **where, "delta": piece, **beside}
        yield {"type": f"response.{name}.done", **where, "text": part_["text"], **beside}
        yield {"type": f"response.{of}.done", **where, "part": part_}
    elif kind == "call":
        for piece in pieces:
            yield {"type": "response.function_call_arguments.delta", **where, "delta": piece}
        yield {"type": "response.function_call_arguments.done", **where, "arguments": item["arguments"]}
    else:
        for step in ("in_progress", "searching", "completed"):
            yield {"type": f"response.web_search_call.{step}", **where}
    yield {"type": "response.output_item.done", "output_index": place, "item": item}


def responded(parts: Sequence[Part], order: Iterable[int] = (), *, told: bool = True) -> list[Json]:
    """A response, item by item, or each next event of the item that `order` names. `told`: its terminal has them."""
    begun = {**ABOUT, "status": "in_progress", "output": [], "usage": None}
    events: list[Json] = [{"type": f"response.{kind}", "response": begun} for kind in ("created", "in_progress")]
    due = {place: item_events(part, place) for place, part in enumerate(parts)}
    events += (event for place in order if (event := next(due[place], None)) is not None)
    events += (event for place in due for event in due[place])
    whole = {**ABOUT, "status": "completed", "output": outputs(parts) if told else [], "usage": COUNTS}
    events.append({"type": "response.completed", "response": whole})
    return [{**event, "sequence_number": at} for at, event in enumerate(events)]


def outputs(parts: Sequence[Part]) -> list[Json]:
    return [item_of(part, place) for place, part in enumerate(parts)]


def messaged(parts: Sequence[Part]) -> list[Json]:
    """A message, block by block."""
    about = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
    begun = {**about, "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 3, "output_tokens": 0}}
    events: list[Json] = [{"type": "message_start", "message": begun}]
    for place, (kind, pieces) in enumerate(parts):
        bare, name, member = {
            "text": ({"type": "text", "text": ""}, "text_delta", "text"),
            "reasoning": ({"type": "thinking", "thinking": "", "signature": ""}, "thinking_delta", "thinking"),
            "call": (
                {"type": "tool_use", "id": f"c{place}", "name": "f", "input": {}},
                "input_json_delta",
                "partial_json",
            ),
        }[kind]
        events.append({"type": "content_block_start", "index": place, "content_block": bare})
        deltas: list[Json] = [{"type": name, member: piece} for piece in pieces]
        deltas += [{"type": "signature_delta", "signature": "S"}] if kind == "reasoning" else []
        events += ({"type": "content_block_delta", "index": place, "delta": delta} for delta in deltas)
        events.append({"type": "content_block_stop", "index": place})
    stop = "tool_use" if any(kind == "call" for kind, _ in parts) else "end_turn"
    told = {"stop_reason": stop, "stop_sequence": None}
    events.append({"type": "message_delta", "delta": told, "usage": {"input_tokens": 3, "output_tokens": 4}})
    return [*events, {"type": "message_stop"}]


def chatted(parts: Sequence[Part]) -> list[Any]:
    """A completion, chunk by chunk."""
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    calls = 0
    for place, (kind, pieces) in enumerate(parts):
        if kind == "call":
            function = {"name": "f", "arguments": ""}
            deltas.append(
                {"tool_calls": [{"index": calls, "id": f"c{place}", "type": "function", "function": function}]}
            )
            deltas += ({"tool_calls": [{"index": calls, "function": {"arguments": piece}}]} for piece in pieces)
            calls += 1
        else:
            deltas += ({"content" if kind == "text" else "reasoning_content": piece} for piece in pieces)
    about = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    ends: list[tuple[Json, str | None]] = [(delta, None) for delta in deltas] + [
        ({}, "tool_calls" if calls else "stop")
    ]
    chunks = [{**about, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]} for delta, finish in ends]
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    return [*chunks, {**about, "choices": [], "usage": usage}, DONE.encode()]


def whole(name: str, parts: Sequence[Part]) -> Json:
    """The answer that a stream of these makes."""
    if name == "responses":
        return {**ABOUT, "status": "completed", "output": outputs(parts), "usage": COUNTS}
    texts = [(place, kind, "".join(pieces)) for place, (kind, pieces) in enumerate(parts)]
    called = [(place, text) for place, kind, text in texts if kind == "call"]
    if name == "messages":
        content: list[Json] = []
        for place, kind, text in texts:
            if kind == "text":
                content.append({"type": "text", "text": text})
            elif kind == "reasoning":
                content.append({"type": "thinking", "thinking": text, "signature": "S"})
            else:
                content.append({"type": "tool_use", "id": f"c{place}", "name": "f", "input": json.loads(text)})
        about = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content}
        stop = {"stop_reason": "tool_use" if called else "end_turn", "stop_sequence": None}
        return {**about, **stop, "usage": {"input_tokens": 3, "output_tokens": 4}}
    said: Json = {"role": "assistant", "content": "".join(text for _, kind, text in texts if kind == "text")}
    if thought := "".join(text for _, kind, text in texts if kind == "reasoning"):
        said["reasoning_content"] = thought
    if called:
        said["tool_calls"] = [
            {"id": f"c{place}", "type": "function", "function": {"name": "f", "arguments": text}}
            for place, text in called
        ]
    choice = {"index": 0, "message": said, "finish_reason": "tool_calls" if called else "stop"}
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def told(name: str, answer: Json) -> list[tuple[str, str]]:
    """What an answer says, in its order; blanks do not count, and what stands beside calls of Chat comes first."""
    said: list[tuple[str, str]] = []
    if name == "responses":
        for item in answer["output"]:
            kind = item["type"]
            if kind in ("message", "reasoning"):
                parts = item["content" if kind == "message" else "summary"]
                said += (("text" if kind == "message" else kind, part["text"]) for part in parts)
            elif kind == "function_call":
                said.append(("call", f"{item['name']} {json.loads(item['arguments'])}"))
            else:
                said.append((kind, ""))
    elif name == "messages":
        for block in answer["content"]:
            kind = {"thinking": "reasoning", "tool_use": "call"}.get(block["type"], block["type"])
            text = block.get("text") or block.get("thinking") or ""
            said.append((kind, f"{block['name']} {block['input']}" if kind == "call" else text))
    else:
        message = answer["choices"][0]["message"]
        said = [("reasoning", message.get("reasoning_content") or ""), ("text", message.get("content") or "")]
        said += (
            ("call", f"{call['function']['name']} {json.loads(call['function']['arguments'])}")
            for call in message.get("tool_calls") or ()
        )
    joined: list[tuple[str, str]] = []
    for kind, text in said:
        text = "".join(text.split())
        if not text and kind in ("text", "reasoning"):
            continue
        if joined and joined[-1][0] == kind and kind in ("text", "reasoning"):
            text = joined.pop()[1] + text
        joined.append((kind, text))
    return joined
