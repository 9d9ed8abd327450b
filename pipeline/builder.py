"""What building a request has alike in every dialect: what it begins with, and what its answer is read with."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from attrs import evolve

from pipeline.effort import effort_of
from pipeline.given import as_given
from pipeline.ladder import Ladder, Row, Rule
from pipeline.members import join
from pipeline.portable import portable
from pipeline.request import Choosing, Node, Request, RequestOptions, ToolUsePart
from pipeline.toolnames import BuiltRequest, ToolNames, UpstreamIds
from pipeline.turns import nodes_of

DECIDED: Final = "the route decides it"


class Builder:
    """Builds one body. `native`: the request came in the dialect that it goes up in, and keeps what only that has."""

    names: ToolNames
    ids: UpstreamIds

    def __init__(self, request: Request, ladder: Ladder, options: RequestOptions, dialect: str) -> None:
        self.request = request
        self.ladder = ladder
        self.options = options
        self.native = request.dialect == dialect

    def _begun(self) -> dict[str, Any]:
        """The body before anything of the dialect's: what nobody knows goes up as it came.

        What the client's dialect alone has is lost toward another, as its own rows say.
        """
        if not self.native:
            self.request = portable(self.request, self.ladder)
        own = self.request.private if self.native else {}
        return {**self.request.extras, **own, "model": self.options.model or self.request.model}

    def _built(
        self, body: dict[str, Any], rows: Mapping[str, Row], changed: Collection[str], decided: Collection[str]
    ) -> BuiltRequest:
        """The whole body, and the way back from the names and ids in it.

        Toward the client's own dialect, whose body is read by `rows`, only what is `changed` is not as it came. What of
        the members that are `decided` by the route is not, is recorded.
        """
        if self.request.stream:
            body["stream"] = True
        if self.native:
            body = as_given(self.request, body, rows, changed)
        else:
            self._note_effort()
            for node in _nodes(self.request):
                if node.extras:
                    self.ladder.leave(node.where, node.extras)
        self._note_decided(body, decided)
        calls = frozenset(part.id for part in self.request.parts() if isinstance(part, ToolUsePart))
        return BuiltRequest(body, evolve(self.names.map(self.ids), calls=calls))

    @property
    def _unread(self) -> frozenset[str]:
        """The members of the client's body that could not be read."""
        return frozenset() if self.request.given is None else self.request.given.unread

    def _unread_member(self, name: str) -> Any:
        """A member of the client's body that could not be read, as it came; None if there is none."""
        return self.request.given.body[name] if self.request.given is not None and name in self._unread else None

    def _note_decided(self, body: Mapping[str, Any], decided: Collection[str]) -> None:
        """Record what the route decides, or could not be read, and does not go up as it came, if it is not told yet."""
        given = self.request.extras if not self.native or self.request.given is None else self.request.given.body
        told = {entry.path for entry in self.ladder.ledger if entry.action != "not read"}
        for name in sorted(self._unread.union(decided if self._decides else ())):
            for where, action in _changes(name, given.get(name), body.get(name)):
                if told.isdisjoint((name, where)):
                    self.ladder.ledger.record(self.ladder.stage, where, action, DECIDED)

    @property
    def _decides(self) -> bool:
        """Whether the route says how much to think."""
        return self.options.effort is not None or self.options.thinking_budget or self.options.most_tokens is not None

    def _note_effort(self) -> None:
        """Record that the client's effort is not asked for, since the route has its own."""
        reasoning, policy = self.request.reasoning, self.options.effort
        if policy is None or reasoning is None or effort_of(reasoning) in ("", policy):
            return
        where = self.request.path("reasoning")
        if not any(entry.path == where and entry.action != "not read" for entry in self.ladder.ledger):
            self.ladder.ledger.record(self.ladder.stage, where, "rewritten" if policy else "dropped", DECIDED)

    @property
    def _demands_a_call(self) -> bool:
        """Whether the answer must call a tool."""
        choice = self.request.tool_choice
        return choice is not None and choice.mode in (Choosing.ANY, Choosing.ONE)

    def _bound(self, *names: str) -> int | None:
        """The bound on the answer's tokens; that the route's most is below the client's is told. Where the client's,
        one of `names`, could not be read, it is the route's."""
        if self.request.max_tokens is None and not self._unread.isdisjoint(names):
            return self.options.most_tokens
        bound = self.request.bound(self.options.most_tokens)
        if bound != self.request.max_tokens:
            self._lose("max_tokens", "max_tokens above the most")
        return bound

    def _most(self, bound: int) -> int:
        """A bound of ours, within the most that the upstream takes."""
        return bound if self.options.most_tokens is None else min(bound, self.options.most_tokens)

    def _budget_beside_effort(self) -> None:
        """A budget that stands beside an effort, which alone is told."""
        reasoning = self.request.reasoning
        if reasoning is not None and reasoning.effort and reasoning.budget is not None and not self.native:
            self._lose("reasoning.budget")

    def _not_there(self, allowed: Iterable[tuple[str, str]]) -> None:
        """Tools that alone may be called and are not offered."""
        if not self.native and any(self.names.name(*key) not in self.names.tools() for key in allowed):
            self._lose("tool_choice", "tool_choice hosted")

    def _lose(self, member: str, row: str = "") -> Rule:
        """A member that cannot be said as it is; `row` where it is not the member's own."""
        return self.ladder.lose(row or member, self.request.path(member))


def _changes(where: str, was: Any, now: Any) -> Iterator[tuple[str, str]]:
    """Where a member of a client's body is another now, and what became of it there."""
    if was is None or was == now:
        return
    if now is None:
        yield where, "dropped"
    elif isinstance(was, Mapping) and isinstance(now, Mapping):
        for name, value in was.items():
            yield from _changes(join(where, name), value, now.get(name))
    else:
        yield where, "rewritten"


def _nodes(request: Request) -> Iterator[Node]:
    """Every piece of a request."""
    for turn in (*request.system, *request.turns):
        yield turn
        yield from nodes_of(turn.parts)
    yield from request.tools
    yield from (piece for piece in (request.tool_choice, request.reasoning, request.output) if piece is not None)
