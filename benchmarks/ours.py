"""The whole default chain as an object for outside harnesses."""

from collections.abc import Sequence

from pipeline.dialect import dialect
from pipeline.limits import DEFAULT_LIMITS
from pipeline.stage import Stage
from stages.recipe import default_chain

CHAT = dialect("chat")
MESSAGES = dialect("messages")


class Feed:
    """One stream on its way through a chain."""

    def __init__(self, chain: Stage[bytes, bytes]) -> None:
        self._receive = chain.receive

    def feed(self, data: bytes) -> bytes:
        """What comes out, now that `data` came in."""
        out: Sequence[bytes] = self._receive((data,))
        return out[0] if len(out) == 1 else b"".join(out)


def chat_to_messages() -> Feed:
    """Chat in, Messages out: decoder, normalizer, interleave buffer, validator, verdict, encoder, SSE."""
    return Feed(default_chain(CHAT, MESSAGES, limits=DEFAULT_LIMITS))
