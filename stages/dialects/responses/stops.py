"""Why an answer ends, as a response tells it."""

from typing import Final

from pipeline.events import StopReason

INCOMPLETE: dict[StopReason, str] = {
    StopReason.MAX_TOKENS: "max_output_tokens",
    StopReason.CONTEXT_WINDOW: "max_output_tokens",
    StopReason.REFUSAL: "content_filter",
}
"""Why a response that ended so is incomplete; a refusal is, unless it was said. The others are complete."""

UNSAID: dict[StopReason, str] = {
    StopReason.STOP_SEQUENCE: "Responses does not tell that a stop sequence ended it",
    StopReason.PAUSE_TURN: "Responses does not tell that the turn is to go on",
    StopReason.CONTEXT_WINDOW: "Responses tells one limit from another by no word",
}
"""Stop reasons that are lost in part."""

WITHHELD: Final = "The provider's filter withheld the answer."
"""The refusal of an answer that a filter ended before anything of it was said."""

CUT: Final = {
    **dict.fromkeys(("message", "reasoning", "web_search_call", "file_search_call"), "incomplete"),
    **dict.fromkeys(("code_interpreter_call", "mcp_call", "mcp_list_tools"), "incomplete"),
    "image_generation_call": "failed",
}
"""The items that are ended before an error, and the status that each has then, if it has one: what speaks, and what the
provider runs itself. A call that a client may run, and what we do not know, stays open."""
