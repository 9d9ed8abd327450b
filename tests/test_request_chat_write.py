"""Building a Chat Completions request: every row of its table."""

import pytest

from pipeline.request import (
    Choosing,
    CustomTool,
    DocumentPart,
    Grammar,
    ImagePart,
    OutputFormat,
    OutputKind,
    Reasoning,
    ReasoningPart,
    Remote,
    Request,
    RequestOptions,
    Role,
    TextPart,
    ToolChoice,
    ToolResultPart,
    Turn,
)
from stages.dialects.chat.request import build
from stages.dialects.chat.request_tables import WRITE
from tests.request_rows import OPENAI_LOST, TOOL, check_lost, check_written
from tests.request_shapes import AT, CALL, CLOSED, GO, JSON, SCHEMA, assistant, request, user

CUSTOM = CustomTool("apply_patch", "Edits.", Grammar("lark", "start: X"), where="tools[0]")


# row of the table: (the request, what of the body shows it)
CARRIED: list[tuple[str, Request, JSON]] = [
    ("model", request(), {"model": "m"}),
    (
        "system",
        request(system=(Turn(Role.SYSTEM, (TextPart("a"), TextPart("b"))),)),
        {"messages": [{"role": "system", "content": "a\n\nb"}, {"role": "user", "content": "go"}]},
    ),
    ("turns", request(), {"messages": [{"role": "user", "content": "go"}]}),
    (
        "tools",
        request(tools=(TOOL,)),
        {"tools": [{"type": "function", "function": {"name": "f", "description": "does f", "parameters": SCHEMA}}]},
    ),
    ("tool_choice", request(tools=(TOOL,), tool_choice=ToolChoice(Choosing.ANY)), {"tool_choice": "required"}),
    (
        "tool_choice allowed",
        request(tools=(TOOL,), tool_choice=ToolChoice(Choosing.AUTO, allowed=(("", "f"),))),
        {
            "tool_choice": {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]},
            }
        },
    ),
    ("parallel", request(tools=(TOOL,), parallel=False), {"parallel_tool_calls": False}),
    ("max_tokens", request(max_tokens=5), {"max_completion_tokens": 5}),
    ("stop", request(stop=("a", "b")), {"stop": ["a", "b"]}),
    ("temperature", request(temperature=0.5), {"temperature": 0.5}),
    ("top_p", request(top_p=0.5), {"top_p": 0.5}),
    ("seed", request(seed=5), {"seed": 5}),
    ("frequency_penalty", request(frequency_penalty=0.5), {"frequency_penalty": 0.5}),
    ("presence_penalty", request(presence_penalty=0.5), {"presence_penalty": 0.5}),
    ("logit_bias", request(logit_bias={"1": 2}), {"logit_bias": {"1": 2}}),
    ("logprobs", request(logprobs=2), {"logprobs": True, "top_logprobs": 2}),
    ("reasoning", request(reasoning=Reasoning(True, "high")), {"reasoning_effort": "high"}),
    (
        "output",
        request(output=OutputFormat(OutputKind.SCHEMA, schema=CLOSED)),
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "output", "schema": CLOSED, "strict": True},
            }
        },
    ),
    ("verbosity", request(verbosity="low"), {"verbosity": "low"}),
    ("metadata", request(metadata={"a": "b"}), {"metadata": {"a": "b"}}),
    ("user", request(user="u"), {"safety_identifier": "u"}),
    ("older_user", request(user="u", older_user="v"), {"safety_identifier": "u", "user": "v"}),
    ("cache_key", request(cache_key="k"), {"prompt_cache_key": "k"}),
    ("service_tier", request(service_tier="flex"), {"service_tier": "flex"}),
    ("store", request(store=True), {"store": True}),
    ("stream", request(stream=True), {"stream": True}),
    ("include_usage", request(stream=True), {"stream_options": {"include_usage": True}}),
]

# row of the table: (the request, where the loss is named)
LOST: list[tuple[str, Request, str]] = [
    *OPENAI_LOST,
    ("service_tier above fast", request(service_tier="ultrafast"), "service_tier"),
    ("stop beyond four", request(stop=tuple("abcde"), paths={"stop": "stop_sequences"}), "stop_sequences"),
    (
        "reasoning.summary",
        request(reasoning=Reasoning(summary="auto"), paths={"reasoning.summary": "thinking.display"}),
        "thinking.display",
    ),
    ("part reasoning replayed", request(GO, assistant(ReasoningPart("r", "sig", where=AT)), GO), AT),
    ("part document by url", request(user(DocumentPart(Remote("http://x"), where=AT))), AT),
    (
        "part image in a result",
        request(
            assistant(CALL), user(ToolResultPart("1", (ImagePart(Remote("http://x")),), where="messages[1].content[0]"))
        ),
        "messages[1].content[0]",
    ),
    (
        "turns.later instructions",
        request(GO, Turn(Role.SYSTEM, (TextPart("now"),), where="messages[1]")),
        "messages[1]",
    ),
    ("tool grammar", request(tools=(CUSTOM,)), "tools[0]"),
]


OPTIONS: dict[str, JSON] = {
    "max_tokens above the most": {"most_tokens": 50},
    "reasoning off": {"off_effort": "low"},
    "sampling": {"sampling": False},
    "part reasoning replayed": {"replay_reasoning": True},
    "turns.later instructions": {"later_instructions": False},
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
