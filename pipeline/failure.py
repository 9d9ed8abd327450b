"""A provider's error object as an event."""

import re
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from attrs import evolve

from pipeline.errors import RETRYABLE, ErrorKind, kind_of_status
from pipeline.events import StreamError
from pipeline.jsontext import value_of
from pipeline.ledger import Ledger
from pipeline.unread import Unread

UNTOLD = ("content", "dropped", "the answer failed: it is told by its error")
"""What the ledger has of the content of a whole answer that failed: where it stands, what became of it, why."""
LOST_COUNTS = ("usage", "dropped", "the answer failed")
"""The same of its counts."""
_HTTP_STATUS = re.compile("[45][0-9]{2}")
_PLACE = re.compile("[\x21-\x7e]+")
SHOWN = 500
"""So many characters are shown of where a redirection leads."""
_FULL = re.compile(
    r"prompt (?:is )?too long|input is too long for (?:the )?requested model|maximum context length is \d"
    r"|too large for model with \d+ maximum context length|maximum prompt length is \d"
    r"|exceed(?:s|ed|ing)? (?:the |this |your )?(?:available |maximum |model |model's )*"
    r"context (?:size|length|window|limit)"
    r"|context (?:size|length|window) (?:is |was |has been )?exceeded|context window exceeds limit"
    r"|(?:greater|longer) than the (?:model's |maximum )*context length|exceeded model token limit"
    r"|input token count.{0,40} exceeds the maximum|total length of all messages is too long"
    r"|reduce the length of the messages|prompt exceeds (?:the )?max(?:imum)? length"
    r"|tokens in request more than max tokens allowed|longer than the maximum model length"
    r"|prompt .{0,40}is too long to fit into the model|loaded with context length of"
    r"|range of input length should be|input length .{0,40}exceeds the maximum allowed length"
    r"|inputs[`'\"]? must have less than \d+ tokens|prompt length .{0,60}should not exceed",
    re.IGNORECASE,
)
"""What an error says where a conversation is too long for the model: vLLM, SGLang, llama.cpp, LM Studio, OpenAI, Groq,
OpenRouter, Mistral, xAI, Gemini, Perplexity, Kimi, MiniMax, Bedrock, Anthropic, Z.AI, Ollama, DashScope, TGI,
TensorRT-LLM."""
_ASKED_TOO_MUCH = re.compile(
    r"max_(?:completion_|output_|new_)?tokens[`'\")]*(?: \(?\d+\)?)?"
    r" (?:must|should|cannot|may not|exceeds|is (?:greater|larger))",
    re.IGNORECASE,
)
"""What it says where the answer that is asked for is too long by itself: a shorter conversation would not help."""
_OF_REQUEST = (ErrorKind.INVALID_REQUEST, ErrorKind.REQUEST_TOO_LARGE)
"""The classes of error whose words are looked at for that."""
_NO_CODE = re.compile("[1-5][0-9]{2}|.*_error", re.DOTALL)
"""What stands where a code might: an HTTP status, or the word of a type."""


def failure(error: Any, around: Mapping[str, Any], kinds: Mapping[str, ErrorKind]) -> StreamError:
    """The error that a value is: an object, a text, or a list whose first member is one.

    `around` is the object it stands in, whose words count where it has none. `kinds` tells the class by the words of
    `code`, `type` and `status`, in lower case; what it lacks goes by its number, else it is the provider's. An object
    that is another's wrapping is read with what stands in it, whose message is told, and whose words count first.
    """
    if isinstance(error, list):
        error = error[0] if error else None
    if type(error) is int:
        return stated(around.get("message"), (around.get("type"),), around.get("code") or error, kinds)
    if not isinstance(error, dict):
        return stated(error, (around.get("type"),), around.get("code"), kinds)
    layers = _layers(error)
    words = [layer.get(name) for layer in layers for name in ("code", "type", "status")]
    codes = [code for layer in layers if (code := layer.get("code") or layer.get("status_code"))]
    told = any(isinstance(word, str) and word.lower() in kinds for word in words)
    numbers = [] if told else [number for code in codes if (number := _status(code))]
    kind = kind_of_status(numbers[0]) if numbers else None
    found = stated(_cause(layers), words, codes[0] if codes else None, kinds, kind)
    params = [param for layer in layers if isinstance(param := layer.get("param"), str) and param]
    return evolve(found, param=params[0]) if params else found


def stated(
    message: Any, words: Sequence[Any], code: Any, kinds: Mapping[str, ErrorKind], kind: ErrorKind | None = None
) -> StreamError:
    """An error from its message, the words that name its class unless `kind` does, and its code."""
    named = [word for word in words if isinstance(word, str) and word]
    kind = kind or next((found for word in named if (found := kinds.get(word.lower())) is not None), None)
    if kind is None:
        number = _status(code)
        kind = kind_of_status(number) if number else ErrorKind.API
    said = named[0] if named else code
    text = _message(message) or (f"the upstream failed: {said}" if said else "the upstream failed")
    return _of_length(StreamError(kind, text, str(code) if code else "".join(named[:1]), kind in RETRYABLE))


def _of_length(error: StreamError) -> StreamError:
    """An error of the request, whose words may say that the conversation is too long for the model."""
    if error.kind in _OF_REQUEST and _FULL.search(error.message) and not _ASKED_TOO_MUCH.search(error.message):
        return evolve(error, kind=ErrorKind.CONTEXT_LENGTH)
    return error


def is_told(body: Any) -> bool:
    """Whether a body is an object whose `error` tells what such objects do: a message and a type, and, if at all, a
    code and the member of the request that it is about, each of its kind.

    An object that calls itself an error and names neither of these two is an error of another shape.
    """
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict) or not isinstance(error.get("message"), str) or "type" not in error:
        return False
    if "type" in body and not ("code" in error or "param" in error):
        return False
    texts = error["type"], error.get("param"), None if type(error.get("code")) is int else error.get("code")
    return all(text is None or isinstance(text, str) for text in texts)


def note_untold(
    body: Any,
    error: StreamError,
    stage: str,
    ledger: Ledger,
    *,
    answered: bool,
    apart: AbstractSet[str] = frozenset(),
) -> None:
    """Record what the body of an error says beside that error: it is told in other words, and what nobody reads is not.

    `answered`: nobody else has read the body either, so what stands around the error's object is recorded too, but for
    the members `apart`.
    """
    unread = Unread(stage, ledger, UNTOLD[2])
    for around in body if isinstance(body, list) else (body,):
        if not isinstance(around, dict):
            continue
        if answered:
            unread.note(
                {name: value for name, value in around.items() if not _holds(value, error)}, _AROUND, apart=apart
            )
        inner = around.get("error")
        inner = inner[0] if isinstance(inner, list) and inner else inner
        for layer in _layers(inner) if isinstance(inner, dict) else ():
            told = {name: value for name, value in layer.items() if not _holds(value, error)}
            unread.note(told, _OF_ERROR, "error.")
            unread.note(layer.get("metadata"), _OF_METADATA, "error.metadata.")


def _holds(value: Any, error: StreamError) -> bool:
    """Whether a value holds what is told of an error."""
    if isinstance(value, dict):
        return any(_holds(inner, error) for inner in value.values())
    if isinstance(value, list):
        return any(_holds(inner, error) for inner in value)
    return isinstance(value, str) and bool(value) and value in (error.message, error.code, error.param)


def code_of(error: StreamError, codes: Mapping[ErrorKind, str], kinds: Mapping[str, ErrorKind]) -> str:
    """The code that clients are told: the provider's own, where it says what the error's class does.

    `codes` are those that clients know a class by; they stand where the provider's says no class or another one.
    Where there is none, the provider's stands unless it says another class. A status or a type is no code. `kinds` as
    for `failure`.
    """
    if error.kind is ErrorKind.CONTEXT_LENGTH and error.kind in codes:
        return codes[error.kind]  # clients shorten the conversation at this code alone
    code = "" if _NO_CODE.fullmatch(error.code) else error.code
    said = kinds.get(code.lower())
    if (due := codes.get(error.kind)) is not None:
        return code if said is error.kind else due
    return code if said in (None, error.kind, ErrorKind.API) else ""


def answered(status: int, body: Any, error_in: Callable[[Any], StreamError | None]) -> StreamError:
    """The error that an upstream answered with: its status, and what its body says (None if nothing).

    `error_in` finds the error in a dialect's own words; a text is one too, and so are the `errors` of gateways. A class
    that words tell stands; else, and where they only say that the request is wrong, the status tells it.
    """
    found = error_in(body)
    if found is None:
        bare = body if isinstance(body, str) else None
        if isinstance(body, dict):
            bare = next((body[name] for name in _BARE if body.get(name)), None)
        found = error_in({"error": bare}) if bare else None
    kind = kind_of_status(status)
    if found is None:
        return StreamError(kind, f"the upstream answered with status {status}", str(status), kind in RETRYABLE)
    if found.kind not in (ErrorKind.API, ErrorKind.INVALID_REQUEST):
        return found
    return _of_length(evolve(found, kind=kind, retryable=kind in RETRYABLE))


def status_told(error: StreamError, status: int, due: int) -> int:
    """The HTTP status that clients are told. `status` is the upstream's (0: it did not answer with one), `due` that of
    the error's class in the client's API.

    The upstream's stands, since clients act on it; but not one that is no error's (a redirection), nor one that says
    another class and at which clients would ask again though it is not worth it, or would not though it is.
    """
    if not 400 <= status < 600 or error.kind is ErrorKind.CONTEXT_LENGTH:
        return due  # clients look for the words of a conversation that is too long at this status alone
    another = error.kind is not kind_of_status(status) and _asked_again(due) is error.retryable
    return due if another and _asked_again(status) is not error.retryable else status


def redirected(status: int, location: str) -> StreamError:
    """The error that a redirection is: nobody follows it, since a key would go where nobody sent it.

    Where it leads is named without what may be secret there: the user, the query.
    """
    place = re.sub("//[^/]*@", "//", re.split("[?#]", location)[0])
    where = f" to {place[:SHOWN]}" if _PLACE.fullmatch(place) else ""
    message = f"the upstream answered with status {status}, a redirection{where}, which is not followed"
    return StreamError(ErrorKind.INVALID_RESPONSE, message, "redirected")


_BARE = ("errors", "detail", "message", "msg")
"""The members of a body without an error object that tell of the error."""
_WRAPPED = ("error", "detail", "message")
"""The members of an error object that may hold another one."""
_OF_ERROR = frozenset({"type", "code", "status", "status_code", "param", "metadata", "errors", *_WRAPPED, "msg"})
_AROUND = frozenset({"object", *_OF_ERROR, *_BARE})
_OF_METADATA = frozenset({"raw"})
"""The members that are read of an error object, around it, and of what a gateway says of it."""
_LAYERS = 8
"""So many objects within each other are looked into."""


def _layers(error: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The error objects that stand in each other, the innermost first; the cause that a gateway was told is one."""
    layers = [error]
    while len(layers) < _LAYERS and (inner := _within(layers[-1])) is not None:
        layers.append(inner)
    return layers[::-1]


def _within(error: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The error object within another; None if there is none."""
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    for inner in (*(error.get(name) for name in _WRAPPED), value_of(raw) if isinstance(raw, str) else raw):
        inner = inner[0] if isinstance(inner, list) and len(inner) == 1 else inner
        if isinstance(inner, dict) and inner:
            return inner
    return {"message": raw} if isinstance(raw, str) and raw.strip() else None


def _cause(layers: Sequence[Mapping[str, Any]]) -> str:
    """The message of the innermost object that has one; what a gateway says of it stands in front."""
    told = [text for layer in layers if (text := _text(layer))]
    if len(told) > 1 and any("metadata" in layer for layer in layers) and told[0] not in told[1]:
        return f"{told[1]}: {told[0][:SHOWN]}"
    return told[0] if told else ""


def _text(layer: Mapping[str, Any]) -> str:
    """What an error object says itself, not by another within it."""
    for name in ("message", "detail", "error", "msg"):
        said = layer.get(name)
        if isinstance(said, str | list) and (text := _message(said)):
            return _placed(layer, text)
    return ""


def _status(code: Any) -> int:
    """The HTTP status of an error that a code is; 0 if it is none."""
    return int(code) if isinstance(code, int | str) and _HTTP_STATUS.fullmatch(str(code)) else 0


def _asked_again(status: int) -> bool:
    """Whether the SDKs of every dialect ask again at a status."""
    return status >= 500 or status in (408, 409, 429)


def _message(message: Any) -> str:
    """A message as text: FastAPI's `detail` is a list of objects."""
    if isinstance(message, str):
        return message
    if isinstance(message, list):
        return "; ".join(filter(None, map(_message, message)))
    if isinstance(message, dict):
        return _placed(message, _message(message.get("message") or message.get("msg")))
    return ""


def _placed(error: Mapping[str, Any], text: str) -> str:
    """What an error says, behind the member of the request that it is about, where it names one (FastAPI's `loc`)."""
    place = error.get("loc")
    steps = [str(step) for step in place if isinstance(step, str | int)] if isinstance(place, list) else []
    return f"{'.'.join(steps)}: {text}" if text and steps else text
