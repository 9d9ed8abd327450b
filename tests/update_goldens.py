"""Writes the goldens of the fixtures anew: `python -m tests.update_goldens`. Read the difference before you keep it.

Beside `<case>.sse` stand `<case>.messages.sse`, what a Messages client gets of it, and for some fixtures
`<case>.normalized.txt`, the transcript of the chat normalizer, as `replay --update` writes it. Minted ids are numbered.
"""

from pathlib import Path

from pipeline.testing import Chunk, cut, replay
from stages.dialects.chat.normalize import ChatNormalizer
from stages.sse import SSEDecoder
from tests.support import Run, same_ids

FOLDER = Path(__file__).parent.parent / "fixtures" / "chat"
CASES = sorted(path.name.removesuffix(".sse") for path in FOLDER.glob("*.sse") if path.name.count(".") == 1)
TRANSCRIPTS = sorted(path.name.removesuffix(".normalized.txt") for path in FOLDER.glob("*.normalized.txt"))


def recording(case: str) -> bytes:
    """The bytes of a fixture."""
    return (FOLDER / f"{case}.sse").read_bytes()


def golden(case: str, chunk: Chunk = None) -> tuple[bytes, Run]:
    """What a Messages client gets of a fixture, and the run that made it."""
    run = Run()
    return same_ids(run.all(cut(recording(case), chunk))), run


def transcript(case: str) -> bytes:
    """What the chat normalizer makes of a fixture."""
    return same_ids(replay(recording(case), ChatNormalizer(), [SSEDecoder(sentinels=(b"[DONE]",))], "frame").encode())


def main() -> None:
    """Write them all."""
    for case in CASES:
        (FOLDER / f"{case}.messages.sse").write_bytes(golden(case)[0])
    for case in TRANSCRIPTS:
        (FOLDER / f"{case}.normalized.txt").write_bytes(transcript(case))


if __name__ == "__main__":
    main()
