"""The proxy's log: a line an exchange, and nothing in it that a client or an upstream wrote but the path."""

import logging
import time

from aiohttp import web
from attrs import define, field

from pipeline.events import Usage
from pipeline.outcome import Outcome, Verdict

LOG = logging.getLogger("streamweir.proxy")
PATH_CHARS = 200


@define
class Access:
    """One exchange, for the log. `status` is 0 until an answer has begun."""

    status: int = 0
    outcome: Outcome = field(factory=Outcome)
    begun: float = field(factory=time.monotonic)

    def write(self, request: web.Request) -> None:
        """The line. An exchange that ended without a verdict was cancelled: the client left."""
        LOG.info(
            "%s %s %s %s %s %.3fs",
            request.method,
            request.rel_url.raw_path[:PATH_CHARS],
            self.status or "-",
            self.outcome.verdict or Verdict.CANCELLED,
            _counts(self.outcome.usage),
            time.monotonic() - self.begun,
        )


def _counts(usage: Usage | None) -> str:
    if usage is None:
        return "-"
    return (
        f"input={usage.input} cache_read={usage.cache_read} cache_write={usage.cache_write} "
        f"output={usage.output} reasoning={usage.reasoning}"
    )
