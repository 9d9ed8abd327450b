"""The access log: a line an exchange, and nothing in it that a client or an upstream wrote but the path."""

import logging
import re
import time
import traceback
from collections.abc import Iterator

from attrs import define, field

from pipeline.events import Usage
from pipeline.outcome import Outcome

LOG = logging.getLogger("streamweir.access")
LOG_FAULTS = logging.getLogger("streamweir.http")
"""What a host's HTTP server has to say, without the values."""

PATH_CHARS = 200
UNPRINTABLE = re.compile(r"[^\x21-\x7e]")


@define
class Access:
    """One exchange, for the log. `status` is 0 until an answer has begun."""

    method: str
    target: str
    status: int = 0
    outcome: Outcome = field(factory=Outcome)
    begun: float = field(factory=time.monotonic)

    def write(self) -> None:
        """The line. An exchange without a verdict broke down: it has a dash there."""
        path = UNPRINTABLE.sub("?", self.target.partition("?")[0][:PATH_CHARS])
        facts = " ".join(_facts(self.outcome))
        LOG.info("%s %s %s %s %.3fs", self.method, path, self.status or "-", facts, time.monotonic() - self.begun)


def _facts(outcome: Outcome) -> Iterator[str]:
    verdict = outcome.verdict or "-"
    yield f"{verdict}:{outcome.error.kind}" if outcome.error is not None else verdict
    yield "-" if outcome.usage is None else _counts(outcome.usage)
    if outcome.estimated:
        yield "estimated"
    if outcome.repairs:
        yield f"repairs={outcome.repairs}"
    if outcome.recovered:
        yield f"recovered={outcome.recovered}"
    if outcome.hold:
        yield f"silence={outcome.hold:.3f}s"


def _counts(usage: Usage) -> str:
    return (
        f"input={usage.input} cache_read={usage.cache_read} cache_write={usage.cache_write} "
        f"output={usage.output} reasoning={usage.reasoning}"
    )


def without_values(record: logging.LogRecord) -> bool:
    """Leave where an exception was raised and its class, but not its message, which may hold a header or a body."""
    if record.exc_info and record.exc_info[1] is not None:
        record.exc_text = "\n".join(_traced(record.exc_info[1]))
        record.exc_info = None
    return True


def _traced(error: BaseException) -> Iterator[str]:
    yield "".join((*traceback.format_tb(error.__traceback__), type(error).__name__))
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _traced(inner)


LOG_FAULTS.addFilter(without_values)
