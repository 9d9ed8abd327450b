"""A conversation that is too long for the model, in the words of every kind of server, is told in the client's own."""

import json
from typing import Any

import pytest

from pipeline.dialect import Dialect
from stages.dialects import chat, messages, responses
from tests.patching import Json
from tests.test_failed_in_stream import events, got
from tests.test_head_at_any_cut import sse

TOO_LONG: dict[str, Json] = {
    "llama.cpp": {
        "code": 400,
        "message": "request (2009 tokens) exceeds the available context size (512 tokens), try increasing it",
        "n_ctx": 512,
        "n_prompt_tokens": 2009,
        "type": "exceed_context_size_error",
    },
    "perplexity": {
        "message": "The total length of all messages is too long.",
        "type": "too_many_prompt_tokens",
        "code": 400,
    },
    "openrouter": {
        "message": "This endpoint's maximum context length is 200000 tokens. However, you requested about 250000.",
        "code": 400,
    },
    "sglang": {
        "message": "Requested token count exceeds the model's maximum context length of 32768 tokens.",
        "type": "BadRequestError",
        "code": 400,
    },
    "gemini": {
        "code": 400,
        "message": "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        "status": "INVALID_ARGUMENT",
    },
    "xai": {
        "code": 400,
        "message": "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    },
    "mistral": {
        "type": "invalid_request_error",
        "message": "Prompt contains 52000 tokens, too large for model with 32768 maximum context length",
        "code": 400,
    },
    "openai": {
        "type": "invalid_request_error",
        "message": "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "code": None,
    },
    "minimax": {"type": "invalid_request_error", "message": "invalid params, context window exceeds limit"},
    "lm studio": {"code": 400, "message": "The number of tokens is greater than the context length"},
    "kimi": {"type": "invalid_request_error", "message": "Your request exceeded model token limit: 262144"},
    "z.ai": {"code": "1261", "message": "Prompt exceeds max length"},
    "z.ai, shorter": {"code": "1261", "message": "Prompt too long"},
    "z.ai, in tokens": {"code": "1210", "message": "tokens in request more than max tokens allowed"},
    "vllm's engine": {
        "message": "The decoder prompt (length 163840) is longer than the maximum model length of 131072.",
        "type": "BadRequestError",
        "code": 400,
    },
    "vllm's older engine": {
        "message": "The prompt (total length 25938) is too long to fit into the model (context length 4096).",
        "code": 400,
    },
    "ollama": {"code": 400, "message": "prompt too long; exceeded max context length by 120 tokens"},
    "lm studio, cut": {
        "code": 400,
        "message": "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with "
        "context length of only 4096 tokens, which is not enough.",
    },
    "dashscope": {"type": "invalid_request_error", "message": "Range of input length should be [1, 129024]"},
    "sglang's input": {
        "code": 400,
        "message": "Input length (40000 tokens) exceeds the maximum allowed length (32767 tokens).",
    },
    "tgi": {"code": 400, "message": "Input validation error: `inputs` must have less than 4095 tokens. Given: 5000"},
    "tensorrt-llm": {
        "code": 400,
        "message": "The sum of prompt length (40000.0), query length (0) should not exceed max_num_tokens (8192)",
    },
    "bedrock": {"type": "invalid_request_error", "message": "Input is too long for requested model."},
}
VLLM = "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens."
BODIES: dict[str, Json] = {
    **{name: {"error": error} for name, error in TOO_LONG.items()},
    "vllm": {"object": "error", "message": VLLM, "type": "BadRequestError", "param": None, "code": 400},
    "a type alone": {"error": {"type": "exceed_context_size_error", "message": "no"}},
}
ALIKE = [
    "max_tokens is too large: 50000. This model supports at most 16384 completion tokens",
    "`max_tokens` must be less than the model's maximum context length",
    "max_tokens (200000) exceeds the maximum context length of 131072",
    "max_completion_tokens cannot be larger than the context window",
    "string too long. Expected a string with maximum length 64, but got one with length 90",
    "Too many tokens in the tool's description",
    "the context of the image is not a size that is allowed",
    "context_management.edits: the length must be at least 1",
]
DIALECTS: dict[str, Dialect] = {"messages": messages.DIALECT, "chat": chat.DIALECT, "responses": responses.DIALECT}


def refused(client: str, upstream: str, body: Any, status: int) -> tuple[int, Json]:
    """The status and the error that a client gets of an HTTP error."""
    found, told = DIALECTS[client].write_error(DIALECTS[upstream].read_error(status, body), status)
    return found, told["error"]


def is_too_long(client: str, error: Json) -> bool:
    if client == "messages":
        return bool(error["message"].startswith("prompt is too long"))
    return bool(error["code"] == "context_length_exceeded")


PAIRS = [(client, upstream) for client in DIALECTS for upstream in DIALECTS if client != upstream]


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize(("client", "upstream"), PAIRS)
def test_each_servers_words_are_told_in_those_that_the_client_acts_on(client: str, upstream: str, name: str) -> None:
    for status in (400, 413, 422):
        found, error = refused(client, upstream, BODIES[name], status)
        assert (found, is_too_long(client, error)) == (400, True), error


@pytest.mark.parametrize("name", ["llama.cpp", "perplexity", "vllm", "openrouter"])
@pytest.mark.parametrize("upstream", ["chat", "messages"])
def test_in_a_stream_it_is_a_response_that_failed_with_the_code_at_which_codex_compacts(
    upstream: str, name: str
) -> None:
    body = BODIES[name]
    inner = {name: value for name, value in body.get("error", body).items() if name != "object"}
    frame = {"type": "error", "error": inner} if upstream == "messages" else body
    raw = b"event: error\ndata: " + json.dumps(frame).encode() + b"\n\n"
    last = events(got("responses", upstream, raw if upstream == "messages" else sse([body])))[-1]
    assert (last["type"], last["response"]["error"]["code"]) == ("response.failed", "context_length_exceeded")


@pytest.mark.parametrize("message", ALIKE)
@pytest.mark.parametrize(("client", "upstream"), PAIRS)
def test_words_that_are_only_like_them_are_an_invalid_request(client: str, upstream: str, message: str) -> None:
    body = {"error": {"type": "invalid_request_error", "message": message}}
    found, error = refused(client, upstream, body, 400)
    assert (found, is_too_long(client, error), error["message"]) == (400, False, message)


@pytest.mark.parametrize("status", [401, 429, 500, 503])
@pytest.mark.parametrize(("client", "upstream"), PAIRS)
def test_an_error_of_another_class_stays_what_it_is(client: str, upstream: str, status: int) -> None:
    _, error = refused(client, upstream, {"error": {"message": VLLM}}, status)
    assert not is_too_long(client, error)


def test_words_that_claude_code_looks_for_stay_as_they_are() -> None:
    for message in "prompt is too long: 9 > 8", "input length and `max_tokens` exceed context limit: 1 + 2 > 2":
        body = {"error": {"type": "invalid_request_error", "message": message}}
        assert refused("messages", "chat", body, 400)[1]["message"] == message
        assert refused("chat", "messages", {"type": "error", **body}, 400)[1]["code"] == "context_length_exceeded"
