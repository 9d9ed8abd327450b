"""A call that stands alone, with the arguments that it would have among others."""

from collections.abc import Collection

from attrs import evolve

from pipeline.events import ArgumentsDelta, BlockStart, BlockStop, ToolKind, ToolUseBlock
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.message import Content, ToolUse
from stages.interleave.buffer import InterleaveBuffer


def meant(content: Content, *, freeform: Collection[str], ledger: Ledger, limits: Limits) -> Content:
    """A call with the arguments that every other route makes of its own; anything else as it is.

    Raises `UpstreamError` if it is said to be whole and they are no JSON object, `LimitExceeded` at a bound.
    """
    if not isinstance(content, ToolUse) or content.kind is not ToolKind.FUNCTION:
        return content
    buffer = InterleaveBuffer(freeform=freeform, ledger=ledger, limits=limits)
    arguments = [ArgumentsDelta(0, content.arguments)] if content.arguments else []
    block = ToolUseBlock(content.id, content.name, content.kind, content.namespace)
    told = buffer.receive([BlockStart(0, block), *arguments, BlockStop(0, content.complete)])
    return evolve(content, arguments="".join(event.text for event in told if isinstance(event, ArgumentsDelta)))
