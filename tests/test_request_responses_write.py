"""Building a Responses request: every row of its table."""

import pytest
from attrs import evolve

from pipeline.request import (
    AudioPart,
    Choosing,
    OutputFormat,
    OutputKind,
    Reasoning,
    Request,
    RequestOptions,
    Role,
    TextPart,
    ToolChoice,
    Turn,
)
from stages.dialects.responses.request import build
from stages.dialects.responses.request_tables import WRITE
from tests.request_rows import OPENAI_LOST, TOOL, check_lost, check_written
from tests.request_shapes import AT, CLOSED, GO, JSON, SCHEMA, read, request, user

GO_ITEM = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}


# row of the table: (the request, what of the body shows it)
CARRIED: list[tuple[str, Request, JSON]] = [
    ("model", request(), {"model": "m"}),
    (
        "system",
        request(system=(Turn(Role.SYSTEM, (TextPart("a"), TextPart("b"))),)),
        {"instructions": "a\n\nb", "input": [GO_ITEM]},
    ),
    ("turns", request(), {"input": [GO_ITEM]}),
    (
        "tools",
        request(tools=(TOOL,)),
        {"tools": [{"type": "function", "name": "f", "description": "does f", "parameters": SCHEMA, "strict": False}]},
    ),
    (
        "tool_choice",
        request(tools=(TOOL,), tool_choice=ToolChoice(Choosing.ONE, "f")),
        {"tool_choice": {"type": "function", "name": "f"}},
    ),
    ("parallel", request(tools=(TOOL,), parallel=False), {"parallel_tool_calls": False}),
    ("max_tokens", request(max_tokens=50), {"max_output_tokens": 50}),
    ("temperature", request(temperature=0.5), {"temperature": 0.5}),
    ("top_p", request(top_p=0.5), {"top_p": 0.5}),
    ("logprobs", request(logprobs=2), {"include": ["message.output_text.logprobs"], "top_logprobs": 2}),
    (
        "reasoning",
        request(reasoning=Reasoning(True, "high")),
        {"reasoning": {"effort": "high", "summary": "auto"}, "include": ["reasoning.encrypted_content"]},
    ),
    (
        "output",
        request(output=OutputFormat(OutputKind.SCHEMA, schema=CLOSED)),
        {"text": {"format": {"type": "json_schema", "name": "output", "schema": CLOSED, "strict": True}}},
    ),
    ("verbosity", request(verbosity="low"), {"text": {"verbosity": "low"}}),
    ("metadata", request(metadata={"a": "b"}), {"metadata": {"a": "b"}}),
    ("user", request(user="u" * 65), {"safety_identifier": request(user="u" * 65).user_within(64)}),
    ("older_user", request(user="u", older_user="v"), {"safety_identifier": "u", "user": "v"}),
    ("cache_key", request(cache_key="k"), {"prompt_cache_key": "k"}),
    ("service_tier", request(service_tier="flex"), {"service_tier": "flex"}),
    ("store", request(), {"store": False}),
    ("stream", request(stream=True), {"stream": True}),
]

SEARCHING = read(
    "messages",
    {
        "model": "m",
        "max_tokens": 99,
        "messages": [{"role": "user", "content": "go"}],
        "tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 3}],
    },
)

# row of the table: (the request, where the loss is named)
LOST: list[tuple[str, Request, str]] = [
    *OPENAI_LOST,
    ("turns.name", request(evolve(GO, name="me", where="messages[0]")), "messages[0].name"),
    ("max_tokens below sixteen", request(max_tokens=1), "max_tokens"),
    ("stop", request(stop=("a",), paths={"stop": "stop_sequences"}), "stop_sequences"),
    ("seed", request(seed=5), "seed"),
    ("frequency_penalty", request(frequency_penalty=1), "frequency_penalty"),
    ("presence_penalty", request(presence_penalty=1), "presence_penalty"),
    ("logit_bias", request(logit_bias={}), "logit_bias"),
    ("web search besides", SEARCHING, "tools[0].max_uses"),
    ("part audio", request(user(AudioPart("QQ==", "wav", where=AT))), AT),
]


OPTIONS: dict[str, JSON] = {
    "max_tokens above the most": {"most_tokens": 50},
    "reasoning off": {"off_effort": "low"},
    "sampling": {"sampling": False},
    "web search besides": {"web_search": True},
}
"""The options of the routes on which a row matters."""


@pytest.mark.parametrize(("row", "given", "shows"), CARRIED, ids=[case[0] for case in CARRIED])
def test_a_member_is_written_as_its_row_says(row: str, given: Request, shows: JSON) -> None:
    check_written(build, WRITE[row], given, shows)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("row", "given", "where"), LOST, ids=[case[0] for case in LOST])
def test_what_cannot_be_said_is_lost_as_its_row_says(row: str, given: Request, where: str, strict: bool) -> None:
    options = RequestOptions(strict=strict, **OPTIONS.get(row, {}))
    check_lost(build, WRITE[row], given, where, options)


def test_every_row_has_its_case() -> None:
    assert {case[0] for case in CARRIED} | {case[0] for case in LOST} == set(WRITE)
