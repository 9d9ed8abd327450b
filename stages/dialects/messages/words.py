"""Words of this dialect that several rooms use."""

from typing import Final

NAME: Final = "messages"

DELTA: Final = "content_block_delta"
TEXT: Final = "text_delta"
THINKING: Final = "thinking_delta"
INPUT: Final = "input_json_delta"
SIGNATURE: Final = "signature_delta"
CITATION: Final = "citations_delta"

MEMBERS: Final = {TEXT: "text", THINKING: "thinking", INPUT: "partial_json"}
"""Where the text of a delta stands."""

PAGE: Final = "web_search_result_location"
"""The citation of a page."""

CITATIONS: Final = (
    "char_location",
    "content_block_location",
    "page_location",
    "search_result_location",
    PAGE,
)
"""The notes on a text that Messages has. What is looked for among them may be anything, so they are no set."""
