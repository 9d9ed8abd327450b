"""Writes the goldens of the Responses fixtures anew: `python -m tests.responses_goldens`. Read the difference first.

Beside `<case>.sse` stand `<case>.messages.sse`, what a Messages client gets of it, and for some fixtures
`<case>.normalized.txt`, the transcript of the normalizer. Minted ids are numbered.
"""

from pathlib import Path

from attrs import define, field

from pipeline.dialect import dialect
from pipeline.ledger import Ledger
from pipeline.outcome import Outcome
from pipeline.testing import Chunk, cut, replay
from stages.dialects.responses.normalize import ResponsesNormalizer
from stages.recipe import default_chain
from stages.sse import SSEDecoder
from tests.support import same_ids

FOLDER = Path(__file__).parent.parent / "fixtures" / "responses"
CASES = sorted(path.name.removesuffix(".sse") for path in FOLDER.glob("*.sse") if path.name.count(".") == 1)
TRANSCRIPTS = ("calls-alternate", "copilot", "llamacpp", "openai", "reasoning-inside-arguments", "vllm")


@define
class Run:
    """A stream through the whole default chain, and what is said of it."""

    ledger: Ledger = field(init=False, factory=Ledger)
    outcome: Outcome = field(init=False, factory=Outcome)

    def of(self, case: str, chunk: Chunk) -> bytes:
        """What a Messages client gets of a fixture."""
        ends = (dialect("responses"), dialect("messages"))
        chain = default_chain(*ends, ledger=self.ledger, outcome=self.outcome)
        made = [piece for read in cut(recording(case), chunk) for piece in chain.receive([read])]
        return same_ids(b"".join([*made, *chain.receive_eof()]))


def recording(case: str) -> bytes:
    """The bytes of a fixture."""
    return (FOLDER / f"{case}.sse").read_bytes()


def transcript(case: str) -> bytes:
    """What the normalizer makes of a fixture."""
    text = replay(recording(case), ResponsesNormalizer(), [SSEDecoder(sentinels=(b"[DONE]",))], "frame")
    return same_ids(text.encode())


def main() -> None:
    """Write them all."""
    for case in CASES:
        (FOLDER / f"{case}.messages.sse").write_bytes(Run().of(case, None))
    for case in TRANSCRIPTS:
        (FOLDER / f"{case}.normalized.txt").write_bytes(transcript(case))


if __name__ == "__main__":
    main()
