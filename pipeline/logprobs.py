"""How likely the tokens of a text were: a note on the text before it, of a form of its own in no dialect's words."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pipeline.unread import Unread

LOGPROBS: Final = "logprobs"

Scores = Sequence[Mapping[str, Any]]


OF_OTHER: Final = frozenset({"token", "logprob", "bytes"})
OF_TOKEN: Final = OF_OTHER | {"top_logprobs"}
"""The members of what could have stood there, and of a token, that are read."""


def note_unread(entries: Any, unread: Unread, prefix: str) -> None:
    """Record what of a list of tokens is not read. `prefix`: where it stands."""
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            unread.note(entry, OF_TOKEN, f"{prefix}[].")
            rest = entry.get("top_logprobs")
            for other in rest if isinstance(rest, list) else ():
                unread.note(other, OF_OTHER, f"{prefix}[].top_logprobs[].")


def note_of(entries: Any) -> Mapping[str, Any] | None:
    """The note that a list of tokens makes, each with what could have stood there; None if no token can be read."""
    scores = [score for entry in entries if (score := _score(entry))] if isinstance(entries, list) else []
    return {"type": LOGPROBS, LOGPROBS: scores} if scores else None


def scores_in(annotation: Mapping[str, Any]) -> Scores:
    """The tokens that a note tells of; empty if it is another one, which a dialect's own may be."""
    scores = annotation.get(LOGPROBS) if annotation.get("type") == LOGPROBS else None
    return scores if isinstance(scores, list) else ()


def _score(entry: Any) -> dict[str, Any] | None:
    """A token in the strictest form: all of its members are there, also those that a delta of some API leaves out."""
    if not isinstance(entry, dict):
        return None
    rest = entry.get("top_logprobs")
    others = [other for one in rest if (other := _likely(one))] if isinstance(rest, list) else []
    told = _likely(entry)
    return told and {**told, "top_logprobs": others}


def _likely(entry: Any) -> dict[str, Any] | None:
    if not isinstance(entry, dict):
        return None
    token, likely, written = entry.get("token"), entry.get("logprob"), entry.get("bytes")
    if not isinstance(token, str) or isinstance(likely, bool) or not isinstance(likely, int | float):
        return None
    if not isinstance(written, list) or not all(type(byte) is int for byte in written):
        written = list(token.encode("utf-8", "replace"))
    return {"token": token, "logprob": likely, "bytes": written}
