"""A client's body toward its own dialect: as it came, but for what had to change."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from attrs import fields

from pipeline.ladder import Row
from pipeline.request import Request, RequestOptions

_CONVERSATION = frozenset({"system", "turns"})
"""The members of a request that are written anew together."""


def is_as_given(request: Request) -> bool:
    """Whether the conversation is the one that was read from the client's body."""
    return request.given is not None and not _edited(request) & _CONVERSATION


def replaced(pieces: Sequence[Any], anew: Mapping[str, Sequence[Any]]) -> list[Any]:
    """The pieces of a client's list; what stood at the places of `anew`, as `messages[3]`, is written anew."""
    at = {int(where[where.index("[") + 1 : where.index("]")]): written for where, written in anew.items()}
    return [piece for place, given in enumerate(pieces) for piece in at.get(place, (given,))]


def route_changes(
    request: Request,
    options: RequestOptions,
    *,
    bounds: Collection[str],
    sampling: Collection[str],
    reasoning: Collection[str],
) -> set[str]:
    """The members that a route changes also toward the client's own dialect, by that dialect's names for them."""
    changed = {"model"} if options.model not in ("", request.model) else set()
    unread = frozenset() if request.given is None else request.given.unread
    beyond = options.most_tokens is not None and not unread.isdisjoint(bounds)
    if beyond or request.bound(options.most_tokens) != request.max_tokens:
        changed.update(bounds)
    if not options.sampling:
        changed.update(sampling)
    if options.effort is not None:
        changed.update(reasoning)
    return changed


def as_given(
    request: Request, body: Mapping[str, Any], rows: Mapping[str, Row], changed: Collection[str]
) -> dict[str, Any]:
    """The client's own body; of `body` only the members that are `changed`, and those that by the table `rows` say what
    is no more what was read. Of the latter one that could not be read stays, unless `body` says it."""
    if request.given is None:
        return dict(body)
    own, edited = request.given.body, _edited(request)
    anew = set(changed)
    if edited:
        silent = request.given.unread - body.keys()
        anew.update(name for name in (*own, *body) if name not in silent and edited & _said_by(name, rows))
    written: dict[str, Any] = {}
    for name in (*own, *body):
        if name not in anew and name in own:
            written[name] = own[name]
        elif name in anew and name in body:
            written[name] = body[name]
    return written


def _edited(request: Request) -> set[str]:
    """The members of a request that are not what was read from the client's body."""
    given = request.given
    if given is None:
        return set()
    names = (member.name for member in fields(Request) if member.eq)
    pairs = ((name, getattr(request, name), getattr(given.request, name)) for name in names)
    return {name for name, now, then in pairs if now is not then and now != then}


def _said_by(name: str, rows: Mapping[str, Row]) -> set[str]:
    """The members of a request that a member of the body says; one that has no row is private, or unknown to us."""
    said = {member for row in rows.values() if row.to and _head(row) == name for member in row.to.split(", ")}
    if not said:
        return {"private", "extras"}
    return said | _CONVERSATION if said & _CONVERSATION else said


def _head(row: Row) -> str:
    return re.split(r"[.\[ ]", row.member, maxsplit=1)[0]
