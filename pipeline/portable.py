"""A client's request as a dialect other than its own can be told it."""

from attrs import evolve

from pipeline.ladder import Ladder, Row, Rule
from pipeline.request import Request

_UNBOUND = "where it is understood it asks for no bound at all"

PORTABLE = (
    Row("max_tokens below zero", Rule.DROP, reason=_UNBOUND, strict=Rule.REFUSE),
    Row("top_k below one", Rule.DROP, reason=_UNBOUND, strict=Rule.REFUSE),
)
"""The rows that every dialect has for what is told to none but the client's own."""


def portable(request: Request, ladder: Ladder) -> Request:
    """The request without what only the client's own dialect is told.

    Raises `ClientError` naming the member that cannot be left out.
    """
    ladder.settle(request.losses)
    if request.max_tokens is not None and request.max_tokens < 0:
        ladder.lose("max_tokens below zero", request.path("max_tokens"))
        request = evolve(request, max_tokens=None)
    if request.top_k is not None and request.top_k < 1:
        ladder.lose("top_k below one", request.path("top_k"))
        request = evolve(request, top_k=None)
    return request
