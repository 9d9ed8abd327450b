"""The fixtures of each upstream dialect and their goldens, which `python -m tests.goldens` writes anew.

Read the difference before you keep it. Beside `<case>.sse` stand `<case>.<client>.sse`, what a client of another
dialect gets of it, and for some fixtures `<case>.normalized.txt`, the transcript of the normalizer, as
`replay --update` writes it. Minted ids are numbered, and there is no clock.
"""

import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from pipeline.dialect import dialect
from pipeline.ledger import Ledger
from pipeline.normalizer import Normalizer
from pipeline.outcome import Outcome
from pipeline.reply import Form
from pipeline.testing import Chunk, cut, replay
from stages.dialects.chat.normalize import ChatNormalizer
from stages.dialects.messages.normalize import MessagesNormalizer
from stages.dialects.responses.normalize import ResponsesNormalizer
from stages.recipe import default_chain
from stages.sse import SSEDecoder
from tests.responses_client import same_clock
from tests.support import same_ids

FIXTURES = Path(__file__).parent.parent / "fixtures"


@frozen(kw_only=True)
class Goldens:
    """The fixtures of one dialect, and a client of another that gets them."""

    normalizer: type[Normalizer]
    upstream: str
    client: str
    same: Callable[[bytes], bytes]
    """The client's stream without what is another at each run."""
    transcripts: Sequence[str]
    """The fixtures whose transcript is kept."""
    arriving: Form | None = Form.STREAM
    """The form that they come in; None where not all have the same."""

    @property
    def folder(self) -> Path:
        """Where they lie."""
        return FIXTURES / self.upstream

    @property
    def cases(self) -> Sequence[str]:
        """Their names."""
        return sorted(path.name.removesuffix(".sse") for path in self.folder.glob("*.sse") if path.name.count(".") == 1)

    def recording(self, case: str) -> bytes:
        """The bytes of a fixture."""
        return (self.folder / f"{case}.sse").read_bytes()

    def facts(self, case: str) -> dict[str, Any]:
        """What is noted of it."""
        return tomllib.loads((self.folder / f"{case}.toml").read_text())

    def made(self, case: str, chunk: Chunk = None) -> tuple[bytes, Outcome, Ledger]:
        """What the client gets of it through the whole default chain, and what is said of that."""
        ledger, outcome = Ledger(), Outcome()
        ends = (dialect(self.upstream), dialect(self.client))
        chain = default_chain(*ends, arriving=self.arriving, ledger=ledger, outcome=outcome)
        out = [piece for read in cut(self.recording(case), chunk) for piece in chain.receive([read])]
        return self.same(b"".join([*out, *chain.receive_eof()])), outcome, ledger

    def transcript(self, case: str) -> bytes:
        """What the normalizer makes of it."""
        decoder = SSEDecoder(sentinels=(self.normalizer.sentinel,))
        return same_ids(replay(self.recording(case), self.normalizer(), [decoder], "frame").encode())

    def golden(self, case: str) -> Path:
        """Where that stands which the client gets of it."""
        return self.folder / f"{case}.{self.client}.sse"

    def transcribed(self, case: str) -> Path:
        """Where its transcript stands."""
        return self.folder / f"{case}.normalized.txt"


FROM_CHAT = Goldens(
    normalizer=ChatNormalizer,
    upstream="chat",
    client="messages",
    same=same_ids,
    transcripts=(
        "azure",
        "copilot",
        "gemini",
        "identity-after-arguments",
        "minimax",
        "mistral",
        "perplexity",
        "reasoning-inside-arguments",
        "two-calls-alternate",
    ),
)
FROM_MESSAGES = Goldens(
    normalizer=MessagesNormalizer,
    upstream="messages",
    client="responses",
    same=same_clock,
    transcripts=(
        "anthropic",
        "call-cut-by-limit",
        "interleaved",
        "parallel-calls",
        "thinking-inside-text",
        "web-search",
    ),
    arriving=None,
)
FROM_RESPONSES = Goldens(
    normalizer=ResponsesNormalizer,
    upstream="responses",
    client="messages",
    same=same_ids,
    transcripts=("calls-alternate", "copilot", "llamacpp", "openai", "reasoning-inside-arguments", "vllm"),
)
ALL = (FROM_CHAT, FROM_MESSAGES, FROM_RESPONSES)


def main() -> None:
    """Write them all."""
    for goldens in ALL:
        for case in goldens.cases:
            goldens.golden(case).write_bytes(goldens.made(case)[0])
        for case in goldens.transcripts:
            goldens.transcribed(case).write_bytes(goldens.transcript(case))


if __name__ == "__main__":
    main()
