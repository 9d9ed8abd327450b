"""One turn of an upstream that reasons between, and inside, two calls, as servers of each dialect write it."""

import json
from typing import Any, Protocol

from tests.support import DONE, call, finish, reasoning, sse, usage

FIRST, SECOND = "First, the weather.", "Then the time."
WEATHER = ("call_w", "get_weather", '{"city": "Paris", "precision": 1.10}')
TIME = ("call_t", "get_time", '{"zone": "Europe/Paris"}')

Json = dict[str, Any]


class Script(Protocol):
    """What a scripted upstream of one dialect answers, and how to read what it is asked."""

    @property
    def ordered(self) -> bool:
        """Its whole answers keep the order of their blocks."""

    def streamed(self) -> bytes:
        """The turn as a stream: the second reasoning comes inside the arguments of the first call."""

    def whole(self) -> bytes:
        """The turn as a whole body."""

    def asked(self, body: Json) -> list[tuple[str, ...]]:
        """What a request says, in order: `(role, text)`, `("call", id, name, arguments)`, `("result", id, text)`,
        `("reasoning", ...)`."""


class ChatScript:
    """Chat: reasoning, text and calls stand beside each other."""

    ordered = False

    def streamed(self) -> bytes:
        half = len(WEATHER[2]) // 2
        return sse(
            reasoning(FIRST[:5]),
            reasoning(FIRST[5:]),
            call(0, WEATHER[0], WEATHER[1], ""),
            call(0, arguments=WEATHER[2][:half]),
            reasoning(SECOND),
            call(0, arguments=WEATHER[2][half:]),
            call(1, TIME[0], TIME[1], TIME[2]),
            finish("tool_calls"),
            usage(),
            DONE,
        )

    def whole(self) -> bytes:
        calls = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for call_id, name, arguments in (WEATHER, TIME)
        ]
        message = {"role": "assistant", "content": None, "reasoning_content": FIRST + SECOND, "tool_calls": calls}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        return json.dumps({"id": "c1", "model": "m", "choices": [choice], "usage": usage()["usage"]}).encode()

    def asked(self, body: Json) -> list[tuple[str, ...]]:
        said: list[tuple[str, ...]] = []
        for message in body["messages"]:
            role = message["role"]
            said += [("reasoning", name) for name in message if name.startswith("reasoning")]
            if role == "tool":
                said.append(("result", message["tool_call_id"], message["content"]))
            elif message.get("content"):
                said.append((role, message["content"]))
            for one in message.get("tool_calls", ()):
                said.append(("call", one["id"], one["function"]["name"], one["function"]["arguments"]))
        return said


class ResponsesScript:
    """Responses: an output of items, which may overlap."""

    ordered = True

    def streamed(self) -> bytes:
        half = len(WEATHER[2]) // 2
        first, weather, second, time = self._items()
        return b"".join(
            [
                self._event("response.created", response=self._response("in_progress", [])),
                *self._added(0, {**first, "summary": []}),
                *self._summary(0, first, FIRST),
                self._event("response.output_item.done", output_index=0, item=first),
                *self._added(1, {**weather, "arguments": "", "status": "in_progress"}),
                self._arguments(1, weather, WEATHER[2][:half]),
                *self._added(2, {**second, "summary": []}),
                *self._summary(2, second, SECOND),
                self._arguments(1, weather, WEATHER[2][half:]),
                self._event("response.output_item.done", output_index=2, item=second),
                *self._finished(1, weather),
                *self._added(3, {**time, "arguments": "", "status": "in_progress"}),
                self._arguments(3, time, TIME[2]),
                *self._finished(3, time),
                self._event("response.completed", response=self._response("completed", self._items())),
            ]
        )

    def whole(self) -> bytes:
        return json.dumps(self._response("completed", self._items())).encode()

    def asked(self, body: Json) -> list[tuple[str, ...]]:
        said: list[tuple[str, ...]] = []
        for item in body["input"]:
            kind = item.get("type", "message")
            if kind == "function_call":
                said.append(("call", item["call_id"], item["name"], item["arguments"]))
            elif kind == "function_call_output":
                said.append(("result", item["call_id"], item["output"]))
            elif kind == "reasoning":
                said.append(("reasoning", json.dumps(item)))
            else:
                content = item["content"]
                texts = [content] if isinstance(content, str) else [part["text"] for part in content]
                said.append((item["role"], "".join(texts)))
        return said

    def _items(self) -> list[Json]:
        first, second = (
            {"id": f"rs_{n}", "type": "reasoning", "summary": [{"type": "summary_text", "text": text}]}
            for n, text in enumerate((FIRST, SECOND))
        )
        weather, time = (
            {
                "id": f"fc_{call_id}",
                "type": "function_call",
                "call_id": call_id,
                "name": name,
                "arguments": arguments,
                "status": "completed",
            }
            for call_id, name, arguments in (WEATHER, TIME)
        )
        return [first, weather, second, time]

    def _response(self, status: str, output: list[Json]) -> Json:
        details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        counts = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15, **details}
        response = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": status}
        return {**response, "output": output, "usage": counts if status == "completed" else None}

    def _event(self, kind: str, **members: Any) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **members})}\n\n".encode()

    def _added(self, place: int, item: Json) -> list[bytes]:
        return [self._event("response.output_item.added", output_index=place, item=item)]

    def _summary(self, place: int, item: Json, text: str) -> list[bytes]:
        at = {"output_index": place, "item_id": item["id"], "summary_index": 0}
        part = {"type": "summary_text", "text": text}
        return [
            self._event("response.reasoning_summary_part.added", **at, part={**part, "text": ""}),
            self._event("response.reasoning_summary_text.delta", **at, delta=text),
            self._event("response.reasoning_summary_text.done", **at, text=text),
            self._event("response.reasoning_summary_part.done", **at, part=part),
        ]

    def _arguments(self, place: int, item: Json, delta: str) -> bytes:
        kind = "response.function_call_arguments.delta"
        return self._event(kind, output_index=place, item_id=item["id"], delta=delta)

    def _finished(self, place: int, item: Json) -> list[bytes]:
        at = {"output_index": place, "item_id": item["id"]}
        return [
            self._event("response.function_call_arguments.done", **at, arguments=item["arguments"]),
            self._event("response.output_item.done", output_index=place, item=item),
        ]


SCRIPTS: dict[str, Script] = {"chat": ChatScript(), "responses": ResponsesScript()}
