"""What is lost with an item of which nothing is left, or with an event of one."""

from collections.abc import Iterator, Sequence
from typing import Final

from pipeline.ledger import Ledger
from pipeline.unread import says
from stages.dialects.responses.kept import PLACES, STAGE
from stages.dialects.responses.written import ARGUMENTS, OUTPUT_TEXT, REFUSAL, SUMMARY, Json

GONE: Final = "all of its item was left out"
ENDED: Final = "its item had ended"
LOST: Final = "nothing is left of its frame"
FORGOTTEN: Final = "more frames were left out than are remembered"
KNOWN: Final = frozenset(
    {"type", "sequence_number", "output_index", "item_id", "content_index", "summary_index", "delta", "obfuscation"}
    | {"item", "part", "logprobs", "id", "role", "status", "phase", "name", *PLACES}
    | {words.member for words in (OUTPUT_TEXT, REFUSAL, SUMMARY, ARGUMENTS)}
)
"""What an event of an item has, or a message, that goes with its text."""
OF_PART: Final = KNOWN | {"annotations"}


def lose_item(item: Json, ledger: Ledger, why: str, told: Sequence[Json] = ()) -> None:
    """An item is told nowhere: what it says beside its text is lost, if none of what was `told` has it."""
    parts = [part for one in told for part in parts_in(one)]
    lost = {name for name in item.keys() - KNOWN if says(item[name]) and not any(name in one for one in told)}
    for part in parts_in(item):
        lost |= {name for name in part.keys() - OF_PART if says(part[name]) and not any(name in one for one in parts)}
    for name in sorted(lost):
        ledger.record(STAGE, name[:64], "dropped", why)


def parts_in(item: Json) -> Iterator[Json]:
    """The parts of an item."""
    for parts in map(item.get, PLACES):
        yield from (part for part in (parts if isinstance(parts, list) else ()) if isinstance(part, dict))
