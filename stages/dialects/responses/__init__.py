"""OpenAI Responses, in every flavour that servers speak."""

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from pipeline.change import Change
from pipeline.dialect import RequestFacts, Returner, ShownReasoning, ToldLimit
from pipeline.errors import UpstreamError
from pipeline.events import Event, Frame, StreamError
from pipeline.failure import answered
from pipeline.jsontext import loads
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.message import Message
from pipeline.request import Request, RequestOptions
from pipeline.stage import Stage
from pipeline.toolnames import BuiltRequest, RequestMap
from stages.dialects.responses import body, errors, forms, patch, request
from stages.dialects.responses.encode import ResponsesEncoder, ShowReasoning
from stages.dialects.responses.normalize import DONE, ResponsesNormalizer
from stages.dialects.responses.offered import callable_tools, echo_of, offered_tools
from stages.dialects.responses.returned import ResponsesReturner


@frozen
class Responses:
    """Hands out the rooms of this dialect."""

    name: str = "responses"
    path: str = "responses"
    sentinels: tuple[bytes, ...] = (DONE,)
    told: tuple[str, ...] = (
        "openai-organization",
        "openai-processing-ms",
        "openai-version",
        "x-codex-",
        "x-models-etag",
    )
    tells: tuple[str, ...] = ("openai-beta", "session-id", "thread-id", "x-codex-")
    restates: bool = True
    reasoning: ShowReasoning = ShowReasoning.SUMMARY
    limit: ToldLimit = "incomplete"

    def worded(self, *, reasoning: ShownReasoning, limit: ToldLimit) -> "Responses":
        """This dialect, with another API's reasoning, and what a limit ended, told so."""
        return evolve(self, reasoning=ShowReasoning(reasoning), limit=limit)

    def facts(self, request: Mapping[str, Any]) -> RequestFacts:
        """What a client's request body says that the answer's stages need; what is odd in it counts as absent."""
        model = request.get("model")
        return RequestFacts(
            model=model if isinstance(model, str) else "",
            stream=request.get("stream") is True,
            map=RequestMap(tools=offered_tools(request)),
            tools=callable_tools(request),
            echo=echo_of(request),
        )

    def parse(self, body: Mapping[str, Any], *, ledger: Ledger, limits: Limits, own: bool = False) -> Request:
        """A client's request. Raises `ClientError` naming the member that is wrong or cannot be honoured."""
        return request.parse(body, ledger=ledger, limits=limits, own=own)

    def build(self, asked: Request, *, ledger: Ledger, limits: Limits, options: RequestOptions) -> BuiltRequest:
        """The body to send up. Raises `ClientError` naming the client's member that cannot be honoured."""
        return request.build(asked, ledger=ledger, limits=limits, options=options)

    def headers(self, key: str) -> Mapping[str, str]:
        """The key, if there is one."""
        return {"authorization": f"Bearer {key}"} if key else {}

    def normalizer(self, *, facts: RequestFacts, ledger: Ledger, limits: Limits) -> Stage[Frame, Event]:
        """Fresh, for one stream of this dialect's answers."""
        return ResponsesNormalizer(facts=facts, ledger=ledger, limits=limits)

    def encoder(self, *, facts: RequestFacts, ledger: Ledger, limits: Limits) -> Stage[Event, Frame]:
        """Fresh, for one stream of answers in this dialect."""
        return ResponsesEncoder(facts=facts, ledger=ledger, reasoning=self.reasoning, limit=self.limit)

    def returner(self, *, facts: RequestFacts, ledger: Ledger, limits: Limits) -> Returner:
        """Fresh, for one stream that goes to a client of this dialect."""
        return ResponsesReturner(facts=facts, ledger=ledger)

    def read_body(self, answer: bytes, *, facts: RequestFacts, ledger: Ledger, limits: Limits) -> Message:
        """The message of a whole answer. Raises `UpstreamError` if it is none."""
        try:
            parsed = loads(answer, limits.json_depth)
        except ValueError as error:
            raise UpstreamError("the upstream's answer is no JSON", code="invalid_json") from error
        return body.read(parsed, facts=facts, ledger=ledger, limits=limits)

    def write_body(
        self, message: Message, *, facts: RequestFacts, ledger: Ledger, limits: Limits = DEFAULT_LIMITS
    ) -> Mapping[str, Any]:
        """The body of a whole answer."""
        encoder = ResponsesEncoder(facts=facts, ledger=ledger, reasoning=self.reasoning, limit=self.limit)
        return body.written(message, encoder)

    def patch_body(self, change: Change, *, facts: RequestFacts, ledger: Ledger, limits: Limits) -> Mapping[str, Any]:
        """A whole answer with what was changed in it: every member that nobody changed stays as it came."""
        return patch.patch(change, facts=facts, ledger=ledger, limits=limits)

    def unroll(self, answer: bytes, *, facts: RequestFacts, ledger: Ledger) -> Sequence[Frame]:
        """The stream of a whole answer, with all that stands in it."""
        return forms.unroll(answer, facts=facts, ledger=ledger)

    def roll(self, frames: Sequence[Frame], *, facts: RequestFacts, ledger: Ledger) -> Mapping[str, Any]:
        """The whole answer that a stream makes, with all that stands in it."""
        return forms.roll(frames, facts=facts, ledger=ledger)

    def read_error(self, status: int, answer: Any) -> StreamError:
        """The error that an upstream answered with."""
        return answered(status, answer, errors.error_told)

    def write_error(self, error: StreamError, status: int) -> tuple[int, Mapping[str, Any]]:
        """The status and the body of an error."""
        return errors.status_of(error, status), errors.error_body(error)

    def keeps_error(self, body: Any, status: int) -> int:
        """The status under which an error's body goes as it came to a client of this dialect; 0: it does not."""
        return errors.keeps(body, status)


DIALECT = Responses()
