"""The default chain of a route: the composition root."""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from attrs import evolve

from pipeline.change import Change
from pipeline.dialect import NO_REQUEST, Dialect, RequestFacts, Restating, Returning, Wording
from pipeline.errors import ClientError
from pipeline.events import Event, Frame, ToolKind
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.message import Message
from pipeline.outcome import Outcome
from pipeline.reply import Form
from pipeline.route import DEFAULT_ANSWERS, AnswerOptions
from pipeline.stage import Stage
from stages.answer import AnswerReader
from stages.bridge import StreamGatherer, Unroller
from stages.interleave import InterleaveBuffer, meant
from stages.raw import RawDecoder
from stages.restore import ToolRestorer
from stages.scrub import TagScrubber, meant_object
from stages.seal import Sealer
from stages.sse import SSEDecoder, SSEEncoder
from stages.unwrap import InputUnwrapper
from stages.validate import BlockValidator
from stages.verbatim import FrameReturner, OriginKeeper
from stages.verdict import VerdictStage
from stages.whole import AnswerBound, BodyReader, BodyWriter, mended, plainly, remembering


def default_chain(
    upstream: Dialect,
    client: Dialect,
    *,
    arriving: Form | None = Form.STREAM,
    leaving: Form = Form.STREAM,
    facts: RequestFacts = NO_REQUEST,
    ledger: Ledger | None = None,
    limits: Limits = DEFAULT_LIMITS,
    outcome: Outcome | None = None,
    options: AnswerOptions = DEFAULT_ANSWERS,
) -> Stage[bytes, bytes]:
    """Fresh stages that turn one answer of `upstream` into one that a `client` reads.

    It is read in the form `arriving`, or, if that is None, in the one that its first byte tells. What cannot be
    carried goes to `ledger`, how the answer ended to `outcome`.
    """
    before, after = default_halves(
        upstream,
        client,
        arriving=arriving,
        leaving=leaving,
        facts=facts,
        ledger=ledger,
        limits=limits,
        outcome=outcome,
        options=options,
    )
    return before | after


def default_halves(
    upstream: Dialect,
    client: Dialect,
    *,
    arriving: Form | None = Form.STREAM,
    leaving: Form = Form.STREAM,
    facts: RequestFacts = NO_REQUEST,
    ledger: Ledger | None = None,
    limits: Limits = DEFAULT_LIMITS,
    outcome: Outcome | None = None,
    options: AnswerOptions = DEFAULT_ANSWERS,
) -> tuple[Stage[bytes, Event], Stage[Event, bytes]]:
    """The default chain in two, for stages of one's own: `before | mine | after`.

    What stands between is given one block at a time. Whatever it makes of that is lawful again behind it, but where
    both dialects are the same.
    """
    whole = Form.WHOLE in (arriving, leaving)
    options = options if leaving is Form.STREAM else evolve(options, stream_calls=False)
    ledger = Ledger(most=limits.ledger_entries) if ledger is None else ledger
    outcome = Outcome(ledger=ledger) if outcome is None else outcome
    verdict = VerdictStage(outcome, facts.usage)
    custom = {name: tool.wrapped for name, tool in facts.map.tools.items() if tool.kind is ToolKind.CUSTOM}
    freeform = [name for name, wrapped in custom.items() if not wrapped]
    known = {**facts.map.seen, **facts.map.tools}
    called = tuple(name for name, tool in known.items() if tool.kind is ToolKind.CUSTOM)
    if upstream.name == client.name and isinstance(client, Returning):
        facts = evolve(facts, calls=frozenset())  # what it repeats goes back as it came
        streamed = leaving is Form.STREAM
        patch = partial(client.patch_body, facts=facts, ledger=ledger, limits=limits)
        ledgers = ledger, outcome.kept
        reading = _keeping(client, upstream, arriving, facts, ledgers, limits, called, patch=patch, streamed=streamed)
        if options.recover != "off":
            reading = reading | TagScrubber(
                options=options,
                tools=facts.tools,
                freeform=freeform,
                ledger=ledger,
                limits=limits,
                outcome=outcome,
                in_place=True,
                whole=whole,
            )
        if _renames(facts):
            reading = reading | ToolRestorer(facts.map)
        if not streamed:
            return reading, _writing(client, leaving, facts, ledger, limits, verdict, patch)
        returner = client.returner(facts=facts, ledger=ledger, limits=limits)
        return reading, verdict | FrameReturner(returner, SSEEncoder())
    sealer = Sealer(upstream=options.upstream or upstream.name, envelopes=options.envelope, ledger=ledger)
    neutral = sealer | InterleaveBuffer(freeform=called, ledger=ledger, limits=limits)
    if options.recover != "off":
        neutral = neutral | TagScrubber(
            options=options,
            tools=facts.tools,
            freeform=freeform,
            wrapped=[name for name, wrapped in custom.items() if wrapped],
            whole=whole,
            ledger=ledger,
            limits=limits,
            outcome=outcome,
        )
    if called:
        neutral = neutral | InputUnwrapper(facts.map, ledger=ledger, limits=limits)
    if _renames(facts):
        neutral = neutral | ToolRestorer(facts.map)
    if isinstance(client, Wording):
        client = client.worded(reasoning=options.show_reasoning, limit=options.told_limit)
    before = _reading(upstream, arriving, facts, ledger, limits, called) | neutral
    validator = BlockValidator(ledger=ledger, limits=limits)
    return before, validator | _writing(client, leaving, facts, ledger, limits, verdict)


def check(options: AnswerOptions) -> None:
    """Raises `ClientError` for options with which no answer can be read: a host asks before it has a client."""
    if options.stream_calls and options.recover != "prompt":
        raise ClientError("stream_calls: it does nothing without recover = 'prompt'")
    TagScrubber(options=options)


def _renames(facts: RequestFacts) -> bool:
    """Whether the upstream was given other names or ids than the client's."""
    return bool(facts.map.ids) or any(name != tool.name or tool.namespace for name, tool in facts.map.tools.items())


def _reading(
    upstream: Dialect,
    form: Form | None,
    facts: RequestFacts,
    ledger: Ledger,
    limits: Limits,
    freeform: Collection[str],
) -> Stage[bytes, Event]:
    """Bytes of an answer to events."""
    decoder = SSEDecoder(limits=limits, sentinels=tuple(upstream.sentinels), ledger=ledger)
    stream = decoder | upstream.normalizer(facts=facts, ledger=ledger, limits=limits)
    tell = partial(plainly, estimate=facts.usage)
    read = partial(upstream.read_body, facts=evolve(facts, usage=None), ledger=ledger, limits=limits)
    mend = partial(meant_object, depth=limits.json_depth)
    whole = BodyReader(read, limits=limits, tell=tell, mend=mend, freeform=freeform, ledger=ledger)
    return AnswerReader(stream, whole) if form is None else stream if form is Form.STREAM else whole


def _keeping(
    client: Returning,
    upstream: Dialect,
    form: Form | None,
    facts: RequestFacts,
    ledgers: tuple[Ledger, Ledger],
    limits: Limits,
    freeform: Collection[str],
    *,
    patch: Callable[[Change], Any],
    streamed: bool,
) -> Stage[bytes, Event]:
    """Bytes of an answer to events that remember what it came as: the frames of a stream, or a whole body.

    What comes in the other form is brought into this one first. What is read of it and cannot be carried is not lost
    with it: it has a ledger of its own, the second.
    """
    ledger, kept = ledgers

    def keeper() -> Stage[Frame, Event]:
        return OriginKeeper(upstream.normalizer(facts=facts, ledger=kept, limits=limits), upstream.name)

    read = partial(upstream.read_body, facts=evolve(facts, usage=None), ledger=kept, limits=limits)
    decoder = SSEDecoder(limits=limits, sentinels=tuple(upstream.sentinels), ledger=ledger)
    stream = RawDecoder(decoder) | keeper()
    alone = partial(meant, freeform=freeform, ledger=ledger, limits=limits)
    if streamed:
        unroll = partial(client.unroll, facts=facts, ledger=ledger)
        encoder = partial(upstream.encoder, facts=facts, ledger=ledger, limits=limits)
        mend = partial(meant_object, depth=limits.json_depth)
        told = Unroller(
            unroll,
            keeper,
            encoder,
            SSEEncoder().receive,
            ledger,
            facts.usage,
            patch=patch,
            meant=lambda one: alone(mended(one, mend=mend, freeform=freeform, ledger=ledger, limits=limits)),
        )
        whole = BodyReader(read, limits=limits, tell=told)
    else:
        stream = stream | StreamGatherer(
            lambda frames, lost: client.roll(frames, facts=facts, ledger=lost),
            read,
            ledger=ledger,
            kept=kept,
            limits=limits,
            answers=lambda answer: 0 < upstream.keeps_error(answer, 500) < 400,
            estimate=facts.usage,
            meant=alone,
            restated=isinstance(client, Restating) and client.restates,
        )
        whole = BodyReader(read, limits=limits, tell=partial(remembering, estimate=facts.usage))
    return AnswerReader(stream, whole) if form is None else stream if form is Form.STREAM else whole


def _writing(
    client: Dialect,
    form: Form,
    facts: RequestFacts,
    ledger: Ledger,
    limits: Limits,
    verdict: VerdictStage,
    patch: Callable[[Change], Any] | None = None,
) -> Stage[Event, bytes]:
    """Events to bytes of an answer, the verdict told last before. `patch` writes what was changed into a whole one."""
    if form is Form.STREAM:
        return verdict | client.encoder(facts=facts, ledger=ledger, limits=limits) | SSEEncoder()

    def write(message: Message) -> Mapping[str, Any]:
        return client.write_body(message, facts=facts, ledger=ledger, limits=limits)

    return AnswerBound(limits=limits) | verdict | BodyWriter(write, patch=patch, estimate=facts.usage)
