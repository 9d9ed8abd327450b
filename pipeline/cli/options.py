"""What the commands share: the options of a conversion, checked once, from flags and from a job's members alike."""

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO, Any, Literal, get_args

from attrs import Attribute, field, fields_dict, frozen

from pipeline import route
from pipeline.errors import ClientError, LimitExceeded
from pipeline.jsontext import loads
from pipeline.route import AnswerOptions, Leftover, Recover
from pipeline.stage import Stage
from pipeline.testing import Chunk

Switch = Literal["on", "off"]

JSON_TYPES: dict[type, str] = {bool: "a boolean", float: "a fraction", list: "a list", dict: "an object"}


Recipe = route.Recipe[Stage[bytes, bytes]]
"""What makes a route's chain: `stages.recipe.default_chain` or another of its shape, of sync stages."""


@frozen
class Command:
    """One row of the table of subcommands: its sentence of help, its arguments, what it does and exits with."""

    help: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, Recipe], int]


def _said(value: object) -> str:
    return repr(value) if type(value) in (str, int) else JSON_TYPES.get(type(value), "of another kind")


def _name(attribute: "Attribute[Any]") -> str:
    return attribute.name.rstrip("_")


def _word_of(literal: object) -> Callable[[object, "Attribute[Any]", object], None]:
    words = get_args(literal)

    def check(_: object, attribute: "Attribute[Any]", value: object) -> None:
        if value not in words:
            raise ClientError(f"{_name(attribute)!r} is {_said(value)}, not one of {', '.join(words)}")

    return check


def _text(_: object, attribute: "Attribute[Any]", value: object) -> None:
    if value == "":
        raise ClientError(f"{_name(attribute)!r} is missing")
    if not isinstance(value, str):
        raise ClientError(f"{_name(attribute)!r} is {_said(value)}, not a text")


def _text_if_any(instance: object, attribute: "Attribute[Any]", value: object) -> None:
    if value == "":
        raise ClientError(f"{_name(attribute)!r} is empty")
    if value is not None:
        _text(instance, attribute, value)


def _flag(_: object, attribute: "Attribute[Any]", value: object) -> None:
    if not isinstance(value, bool):
        raise ClientError(f"{_name(attribute)!r} is {_said(value)}, not true or false")


def _texts(_: object, attribute: "Attribute[Any]", value: object) -> None:
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise ClientError(f"{_name(attribute)!r} is not a list of texts")


def _cut(_: object, attribute: "Attribute[Any]", value: object) -> None:
    chunk_of(value)


def chunk_of(value: object) -> Chunk:
    """A way of cutting. Raises `ClientError` if it is none."""
    if value is None or value == "frame":
        return None if value is None else "frame"
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    raise ClientError(f"'chunk' is {_said(value)}, neither a number above 0 nor 'frame'")


@frozen(kw_only=True)
class ConvertOptions:
    """How markup in the text is read and what becomes of its rest: the `options` of a job.

    Raises `ClientError` naming the option whose value is none of its values, or that does nothing beside the others.
    """

    recover: Recover = field(default="native", validator=_word_of(Recover))
    residue: Leftover = field(default="verbatim", validator=_word_of(Leftover))
    unfinished: Leftover = field(default="verbatim", validator=_word_of(Leftover))
    reasoning_open: bool = field(default=False, validator=_flag)
    weak: Sequence[str] = field(default=(), validator=_texts)
    stream_calls: bool = field(default=False, validator=_flag)
    envelope: Switch = field(default="on", validator=_word_of(Switch))

    def __attrs_post_init__(self) -> None:
        if self.stream_calls and self.recover != "prompt":
            raise ClientError(f"'stream_calls' does nothing without recover = 'prompt'; it is {self.recover!r}")

    def of_hop(self, hop: int) -> AnswerOptions:
        """What the stages of a hop are told. Markup is read on the first: behind it, what is text is meant as text."""
        envelope = self.envelope == "on"
        if hop > 0:
            return AnswerOptions(envelope=envelope, recover="off")
        return AnswerOptions(
            envelope=envelope,
            recover=self.recover,
            residue=self.residue,
            unfinished=self.unfinished,
            reasoning_open=self.reasoning_open,
            weak=tuple(self.weak),
            stream_calls=self.stream_calls,
        )


@frozen(kw_only=True)
class Conversion:
    """One recorded answer's way: from which dialect to which, over which, in what reads. Paths are as they were given.

    Raises `ClientError` naming the member that is missing or of a wrong type.
    """

    from_: str = field(default="", validator=_text)
    to: str = field(default="", validator=_text)
    via: str | None = field(default=None, validator=_text_if_any)
    chunk: Chunk = field(default=None, validator=_cut)
    request: str | None = field(default=None, validator=_text_if_any)
    trace: str | None = field(default=None, validator=_text_if_any)
    options: ConvertOptions = ConvertOptions()

    @property
    def hops(self) -> Sequence[str]:
        """The dialects it passes, in order."""
        return (self.from_, self.to) if self.via is None else (self.from_, self.via, self.to)


@frozen(kw_only=True)
class JobFiles:
    """Where a job reads and writes. Raises `ClientError` naming the member that is missing or no text."""

    input: str = field(default="", validator=_text)
    output: str = field(default="", validator=_text)
    trace: str | None = field(default=None, validator=_text_if_any)

    def __attrs_post_init__(self) -> None:
        if len({self.input, self.output, self.trace}) < 3:
            raise ClientError("'input', 'output' and 'trace' are not three files")


OPTIONS = tuple(fields_dict(ConvertOptions))
WAY = tuple(name for name in fields_dict(Conversion) if name != "options")


def _given(members: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: value for name in names if (value := members.get(name.rstrip("_"))) is not None}


def job_files(members: Mapping[str, Any]) -> JobFiles:
    """Where the job of these members reads and writes."""
    return JobFiles(**_given(members, fields_dict(JobFiles)))


def conversion_of(members: Mapping[str, Any]) -> Conversion:
    """The conversion that a job's members ask for; a missing or null one means its default.

    Members that are not known are the asker's own; an option that is not known is refused.
    """
    options = members.get("options")
    options = {} if options is None else options
    if not isinstance(options, dict):
        raise ClientError(f"'options' is {_said(options)}, not an object")
    for name in options:
        if name not in OPTIONS:
            raise ClientError(f"there is no option {name!r}; there are: {', '.join(OPTIONS)}")
    return Conversion(**_given(members, WAY), options=ConvertOptions(**_given(options, OPTIONS)))


def add_chunk(parser: argparse.ArgumentParser) -> None:
    """The flag that cuts a recording into reads."""
    parser.add_argument(
        "--chunk",
        metavar="N|frame",
        type=lambda text: int(text) if text.isdecimal() else text,
        help="cut the input into reads of N bytes, or behind each blank line (default: one read)",
    )


def add_conversion(parser: argparse.ArgumentParser) -> None:
    """The flags of a conversion. Those that are not given leave no trace, so the defaults stand in one place."""
    parser.add_argument("--from", metavar="D", help="the upstream's dialect")
    parser.add_argument("--to", metavar="D", help="the client's dialect")
    parser.add_argument("--via", metavar="D", help="a dialect to pass on the way")
    parser.add_argument("--request", metavar="FILE", help="the client's request (JSON): its tools and options")
    add_chunk(parser)
    parser.add_argument("--recover", choices=get_args(Recover), help="tool calls written as text (default: native)")
    parser.add_argument("--residue", choices=get_args(Leftover), help="markup of a call that is not taken up")
    parser.add_argument("--unfinished", choices=get_args(Leftover), help="markup that the end cut off")
    parser.add_argument("--reasoning-open", action="store_true", help="the prompt ended inside an open reasoning tag")
    parser.add_argument("--weak", metavar="FAMILY", action="append", help="also take up this family of weak markup")
    parser.add_argument(
        "--stream-calls", action="store_true", help="begin such a call before its body is whole (with --recover prompt)"
    )
    parser.add_argument(
        "--envelope", choices=get_args(Switch), help="wrap opaque reasoning in signatures (default: on)"
    )
    parser.add_argument("--trace", metavar="FILE", help="write a JSON line a read: bytes in, bytes out, bytes held")


def opened(path: str, mode: Literal["rb", "wb"]) -> IO[bytes]:
    """A file, to be closed by the asker.

    Raises `ClientError` naming a file that cannot be opened.
    """
    try:
        return open(path, mode)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ClientError(f"cannot {'read' if mode == 'rb' else 'write'} {path!r}: {reason}") from error


def contents(path: str) -> bytes:
    """What a file holds. Raises `ClientError` naming a file that cannot be read."""
    with opened(path, "rb") as file:
        return file.read()


def json_object(name: str, data: bytes) -> dict[str, Any]:
    """The JSON object that `data` is. Raises `ClientError` naming it, as `name`, if it is none."""
    try:
        value = loads(data)
    except (ValueError, LimitExceeded) as error:
        raise ClientError(f"{name} cannot be read as JSON: {error}") from error
    if not isinstance(value, dict):
        raise ClientError(f"{name} is {_said(value)}, not a JSON object")
    return value
