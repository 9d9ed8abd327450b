"""An envelope carries a provider's opaque reasoning through a client of another dialect and back to that provider."""

import base64
import binascii
import hashlib
import json
from typing import Any

from attrs import define, field, frozen

PREFIX = "sw1."
"""What every envelope begins with; the number is its version."""

_MEMBERS = 5
_DIGEST = 32
_AT_ONCE = 256
"""So many characters of a text are hashed at once: hashing each piece would cost more than all else that is done."""


@frozen
class Envelope:
    """What an envelope holds: who made the blob with which model, the text's hash, and the blob as it was."""

    upstream: str
    model: str
    digest: str
    blob: str

    def fits(self, text: str) -> bool:
        """Whether this is the text that the blob came with."""
        return self.digest == _digest(text)


@define
class TextDigest:
    """The hash of a text that comes in pieces, which are not kept."""

    _hash: Any = field(init=False, factory=hashlib.sha256)
    _pending: str = field(init=False, default="")

    def add(self, text: str) -> None:
        """More of the text."""
        self._pending += text
        if len(self._pending) >= _AT_ONCE:
            self._sum_up()

    def hex(self) -> str:
        """The hash of what has come."""
        self._sum_up()
        return str(self._hash.hexdigest()[:_DIGEST])

    def _sum_up(self) -> None:
        self._hash.update(self._pending.encode("utf-8", "surrogatepass"))
        self._pending = ""


def seal(upstream: str, model: str, text: str | TextDigest, blob: str) -> str:
    """The envelope for a blob that `upstream` sent with the reasoning `text`."""
    digest = _digest(text) if isinstance(text, str) else text.hex()
    inside = json.dumps([1, upstream, model, digest, blob], separators=(",", ":"))
    return PREFIX + base64.urlsafe_b64encode(inside.encode()).decode().rstrip("=")


def is_sealed(text: str) -> bool:
    """Whether an opaque text is an envelope of ours, of this version or another."""
    return text.startswith("sw") and text.partition(".")[0][2:].isdigit()


def unseal(envelope: str) -> Envelope | None:
    """What an envelope holds; None if it is none of this version, or damaged."""
    if not envelope.startswith(PREFIX):
        return None
    inside = envelope.removeprefix(PREFIX)
    try:
        data = base64.b64decode(inside + "=" * (-len(inside) % 4), altchars=b"-_", validate=True)
        members = json.loads(data)
    except (binascii.Error, ValueError, RecursionError):
        return None
    if not isinstance(members, list) or len(members) != _MEMBERS or members[0] != 1:
        return None
    texts = [member for member in members[1:] if isinstance(member, str)]
    return Envelope(*texts) if len(texts) == _MEMBERS - 1 else None


def open(envelope: str, *, upstream: str, text: str) -> Envelope | None:  # noqa: A001  # the word for it
    """What an envelope holds for the provider that sealed it; None for any other, or if the text was edited."""
    found = unseal(envelope)
    return found if found is not None and upstream and found.upstream == upstream and found.fits(text) else None


def _digest(text: str) -> str:
    whole = TextDigest()
    whole.add(text)
    return whole.hex()
