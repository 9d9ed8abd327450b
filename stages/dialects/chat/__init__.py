"""OpenAI Chat Completions, in every flavour that vendors serve."""

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from pipeline.change import Change
from pipeline.dialect import RequestFacts, Returner
from pipeline.events import Event, Frame, StreamError
from pipeline.failure import answered
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.message import Message
from pipeline.request import Request, RequestOptions
from pipeline.stage import Stage
from pipeline.toolnames import BuiltRequest, RequestMap
from stages.dialects.chat import body, errors, forms, request
from stages.dialects.chat.encode import ChatEncoder
from stages.dialects.chat.normalize import DONE, ChatNormalizer
from stages.dialects.chat.offered import callable_tools, is_older, offered_tools, wants_usage
from stages.dialects.chat.returned import ChatReturner


@frozen
class Chat:
    """Hands out the rooms of this dialect."""

    name: str = "chat"
    path: str = "chat/completions"
    sentinels: tuple[bytes, ...] = (DONE,)
    told: tuple[str, ...] = ("openai-organization", "openai-processing-ms", "openai-version")
    tells: tuple[str, ...] = ("openai-beta",)
    fails_in_stream: bool = False

    def facts(self, request: Mapping[str, Any]) -> RequestFacts:
        """What a client's request body says that the answer's stages need; what is odd in it counts as absent."""
        model = request.get("model")
        return RequestFacts(
            model=model if isinstance(model, str) else "",
            stream=request.get("stream") is True,
            include_usage=wants_usage(request),
            one_call=is_older(request),
            map=RequestMap(tools=offered_tools(request)),
            tools=callable_tools(request),
        )

    def parse(self, asked: Mapping[str, Any], *, ledger: Ledger, limits: Limits, own: bool = False) -> Request:
        """A client's request. Raises `ClientError` naming the member that is wrong or cannot be honoured."""
        return request.parse(asked, ledger=ledger, limits=limits, own=own)

    def build(self, request_: Request, *, ledger: Ledger, limits: Limits, options: RequestOptions) -> BuiltRequest:
        """The body to send up. Raises `ClientError` naming the client's member that cannot be honoured."""
        return request.build(request_, ledger=ledger, limits=limits, options=options)

    def headers(self, key: str) -> Mapping[str, str]:
        """The key, if there is one."""
        return {"authorization": f"Bearer {key}"} if key else {}

    def normalizer(self, *, facts: RequestFacts, ledger: Ledger, limits: Limits) -> Stage[Frame, Event]:
        """Fresh, for one stream of this dialect's answers."""
        return ChatNormalizer(facts=facts, ledger=ledger, limits=limits)

    def encoder(self, *, facts: RequestFacts, ledger: Ledger, limits: Limits) -> Stage[Event, Frame]:
        """Fresh, for one stream of answers in this dialect."""
        return ChatEncoder(facts=facts, ledger=ledger)

    def returner(self, *, facts: RequestFacts, ledger: Ledger, limits: Limits) -> Returner:
        """Fresh, for one stream that goes to a client of this dialect."""
        return ChatReturner(facts=facts, ledger=ledger)

    def read_body(self, body_: bytes, *, facts: RequestFacts, ledger: Ledger, limits: Limits) -> Message:
        """The message of a whole answer. Raises `UpstreamError` if it is none."""
        return body.read(body_, facts=facts, ledger=ledger, limits=limits)

    def write_body(
        self, message: Message, *, facts: RequestFacts, ledger: Ledger, limits: Limits = DEFAULT_LIMITS
    ) -> Mapping[str, Any]:
        """The body of a whole answer."""
        return body.write(message, facts=facts, ledger=ledger)

    def patch_body(self, change: Change, *, facts: RequestFacts, ledger: Ledger, limits: Limits) -> Mapping[str, Any]:
        """A whole answer with what was changed in it: every member that nobody changed stays as it came."""
        return body.patch(change, facts=facts, ledger=ledger)

    def unroll(self, answer: bytes, *, facts: RequestFacts, ledger: Ledger) -> Sequence[Frame]:
        """The stream of a whole answer, with all that stands in it."""
        return forms.unroll(answer, facts=facts, ledger=ledger)

    def roll(self, frames: Sequence[Frame], *, facts: RequestFacts, ledger: Ledger) -> Mapping[str, Any]:
        """The whole answer that a stream makes, with all that stands in it."""
        return forms.roll(frames, facts=facts, ledger=ledger)

    def read_error(self, status: int, body: Any) -> StreamError:
        """The error that an upstream answered with."""
        return answered(status, body, errors.error_in)

    def write_error(self, error: StreamError, status: int) -> tuple[int, Mapping[str, Any]]:
        """The status and the body of an error."""
        return errors.status_of(error, status), errors.error_body(error)

    def keeps_error(self, body: Any, status: int) -> int:
        """The status under which an error's body goes as it came to a client of this dialect; 0: it does not."""
        return errors.keeps(body, status)


DIALECT = Chat()
