"""Writes the goldens of the Messages fixtures anew: `python -m tests.messages_goldens`. Read the difference first.

Beside `<case>.sse` stand `<case>.responses.sse`, what a Responses client gets of it, and for some fixtures
`<case>.normalized.txt`, the transcript of the normalizer. Minted ids are numbered, and there is no clock.
"""

from pathlib import Path

from attrs import define, field

from pipeline.dialect import dialect
from pipeline.ledger import Ledger
from pipeline.outcome import Outcome
from pipeline.testing import Chunk, cut, replay
from stages.dialects.messages.normalize import DONE, MessagesNormalizer
from stages.recipe import default_chain
from stages.sse import SSEDecoder
from tests.responses_client import same_clock

FOLDER = Path(__file__).parent.parent / "fixtures" / "messages"
CASES = sorted(path.name.removesuffix(".sse") for path in FOLDER.glob("*.sse") if path.name.count(".") == 1)
TRANSCRIPTS = ("anthropic", "call-cut-by-limit", "interleaved", "parallel-calls", "thinking-inside-text", "web-search")


@define
class Run:
    """A stream through the whole default chain, and what is said of it."""

    ledger: Ledger = field(init=False, factory=Ledger)
    outcome: Outcome = field(init=False, factory=Outcome)

    def of(self, case: str, chunk: Chunk) -> bytes:
        """What a Responses client gets of a fixture, whatever form it comes in."""
        ends = (dialect("messages"), dialect("responses"))
        chain = default_chain(*ends, arriving=None, ledger=self.ledger, outcome=self.outcome)
        made = [piece for read in cut(recording(case), chunk) for piece in chain.receive([read])]
        return same_clock(b"".join([*made, *chain.receive_eof()]))


def recording(case: str) -> bytes:
    """The bytes of a fixture."""
    return (FOLDER / f"{case}.sse").read_bytes()


def transcript(case: str) -> bytes:
    """What the normalizer makes of a fixture."""
    return replay(recording(case), MessagesNormalizer(), [SSEDecoder(sentinels=(DONE,))], "frame").encode()


def main() -> None:
    """Write them all."""
    for case in CASES:
        (FOLDER / f"{case}.responses.sse").write_bytes(Run().of(case, None))
    for case in TRANSCRIPTS:
        (FOLDER / f"{case}.normalized.txt").write_bytes(transcript(case))


if __name__ == "__main__":
    main()
