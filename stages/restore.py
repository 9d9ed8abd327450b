"""Tools under the names that the client gave them."""

from collections.abc import Sequence

from attrs import define, evolve, field

from pipeline.events import BlockStart, Event, StreamError, ToolUseBlock
from pipeline.stage import Stage
from pipeline.toolnames import RequestMap


@define
class ToolRestorer(Stage[Event, Event]):
    """A call has the client's id and the name and namespace of its tool, where the upstream was given others."""

    map: RequestMap
    ended: bool = field(init=False, default=False)

    def receive(self, items: Sequence[Event]) -> Sequence[Event]:
        if BlockStart not in map(type, items):
            return items
        return [self._restored(event) if isinstance(event, BlockStart) else event for event in items]

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Event]:
        self.ended = True
        return () if cause is None else (cause,)

    def _restored(self, event: BlockStart) -> BlockStart:
        block = event.block
        if not isinstance(block, ToolUseBlock):
            return event
        tool = self.map.tool(block.name)
        call = self.map.ids.get(block.id, block.id)
        theirs = evolve(block, id=call, name=tool.name, namespace=block.namespace or tool.namespace)
        return event if theirs == block else evolve(event, block=theirs)
