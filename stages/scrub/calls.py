"""The calls that the objects of a JSON body are."""

import json
import re
from collections.abc import Collection, Iterator, Mapping

from attrs import evolve

from pipeline.jsontext import BLANK, dumps, is_whole
from stages.scrub.fence import Fence
from stages.scrub.grammar import Call, Lost, Tools
from stages.scrub.json_body import Behind, Body
from stages.scrub.mend import mend
from stages.scrub.objects import Value, members, objects
from stages.scrub.strings import name_of, whole_escapes

ARGUMENTS = ("arguments", "parameters", "args", "params", "input")
"""The members that may hold a call's arguments: the first that is there does."""

BESIDE = frozenset({"name", "id", "type", "function"})
"""What else a call may hold without a loss."""

NO_TOOLS: Tools = {}
NO_OBJECT = Lost("what stands in the markup of a call is no JSON object")
NO_NAME = Lost("the markup of a call names no tool")
NO_ARGUMENTS = Lost("the arguments of a call are no JSON object")
NO_BODY = Lost("the markup of a call is empty")
BROKEN = Lost("a call broke off where other markup begins")
LEFT = Lost("what stands beside the name and the arguments of a call")
MENDED = Lost("the JSON of a call", "mended")
_NULL = Value(None, "null")
"""The arguments of a call that gives none."""
_NOTHING = re.compile(f"[{BLANK}]*{{[{BLANK}]*}}[{BLANK}]*")
_ENDS = ("}", "]", '"', "'")
"""What a member ends with that is surely whole."""


def calls_in(
    body: Body, depth: int, tool: str = "", *, tools: Tools = NO_TOOLS, freeform: Collection[str] = ()
) -> Iterator[Call | Lost]:
    """A call for each object of a body.

    Given a `tool`, which was named outside, it is that one's arguments, unless it says a call itself: with arguments of
    one of the `tools`, or with that name and nothing else. A string is the whole input of a `freeform` tool. One that
    broke off where other markup begins is a call only if nothing but its last bracket is missing.
    """
    bodies = objects(body, depth)
    if not bodies:
        yield NO_BODY
    for found in bodies:
        if found is None:
            yield NO_OBJECT
        elif tool and not _says_call(found, tool, tools):
            yield call_of(tool, body, depth, freeform=freeform) if len(bodies) == 1 else NO_ARGUMENTS
        else:
            yield _call(found, depth, freeform, body)


def _says_call(found: Mapping[str, Value], tool: str, tools: Tools) -> bool:
    name = found["name"].value if "name" in found else None
    if not isinstance(name, str) or found.keys() <= parameters(tools, tool):
        return False
    name = name_of(name)
    return name in tools if any(key in found for key in ARGUMENTS) else len(found) == 1 and name == tool


def parameters(tools: Tools, name: str) -> frozenset[str]:
    """What the schema of a tool calls its arguments; nothing, if it does not say."""
    found = tools.get(name, {}).get("properties")
    return frozenset(found) if isinstance(found, Mapping) else frozenset()


def beside(behind: Behind) -> Iterator[Lost]:
    """What stood between a body and its closer."""
    if behind.mended:
        yield MENDED
    if behind.said:
        yield LEFT


def framed(calls: list[Call | Lost], fence: Fence | None) -> list[Call | Lost]:
    """The calls of a body in a fence, which may say what cannot be carried."""
    call = next((call for call in calls if isinstance(call, Call)), None)
    if fence is None or not fence.left or call is None:
        return calls
    return [evolve(call, left=True) if one is call else one for one in calls]


def call_of(name: str, body: Body, depth: int, id: str = "", freeform: Collection[str] = ()) -> Call | Lost:  # noqa: A002
    """The call of a tool that is named outside of its arguments, which the body is; if they broke off, it is none."""
    if body.cut:
        return BROKEN
    found = objects(body, depth, call=False)
    if len(found) != 1 or (arguments := found[0]) is None or body.text.lstrip().startswith("["):
        return NO_ARGUMENTS
    if not (name := name_of(name)):
        return NO_NAME
    if body.whole and _stands(body.text, arguments):
        text = whole_escapes(body.text)
        call = Call(name, text, id, mended=text != body.text)
    else:
        left = any(value.repeated for value in arguments.values())
        call = Call(name, _text({key: value.value for key, value in arguments.items()}), id, mended=True, left=left)
    return _freed(call) if name in freeform else call


def _stands(text: str, arguments: Mapping[str, Value]) -> bool:
    """Whether arguments stand in a text as they are, and were not mended."""
    return not any(value.mended for value in arguments.values()) if arguments else _NOTHING.fullmatch(text) is not None


def input_of(arguments: str) -> str:
    """The input of a freeform tool: the one string that its arguments are, nothing, or, if they are neither, they."""
    found = [value.value for value in members(arguments)[0].values()]
    if not found:
        return ""
    return found[0] if len(found) == 1 and isinstance(found[0], str) else arguments


def _freed(call: Call) -> Call:
    """The call of a freeform tool whose arguments are an object: its input is their member `input`, or the only one
    that they have, nothing if they have none, or else they are it, as they are written."""
    found = members(call.arguments)[0]
    if not found:
        return evolve(call, arguments=_text({"input": ""}))
    key = "input" if "input" in found else next(iter(found))
    said = found[key].value
    if not isinstance(said, str) or (key != "input" and len(found) > 1):
        return evolve(call, arguments=_text({"input": call.arguments}))
    if found.keys() == {"input"}:
        return call
    return evolve(call, arguments=_text({"input": said}), left=True)


def _call(found: Mapping[str, Value], depth: int, freeform: Collection[str], body: Body) -> Call | Lost:
    """The call that an object of a body says, itself or in its member `function`, beside which its arguments may
    stand."""
    wrapped = found.get("function")
    beside = any(value.repeated for value in found.values())
    if wrapped is not None and isinstance(wrapped.value, dict):
        inner, _ = members(wrapped.text)
        outer = {key: value for key, value in found.items() if key not in BESIDE}
        found = {key: evolve(value, mended=wrapped.mended) for key, value in inner.items()}
        beside = beside or any(value.repeated for value in inner.values())
        if found.keys().isdisjoint(ARGUMENTS):
            found |= outer
        else:
            beside = beside or bool(outer)
    said = found.get("name")
    if said is None or not isinstance(said.value, str) or not (name := name_of(said.value)):
        return NO_NAME
    key = next((key for key in ARGUMENTS if key in found), None)
    given = _NULL if key is None else found[key]
    left = beside or bool(found.keys() - BESIDE - {key})
    if _broke_off(body) and (given.value is None or not body.text.rstrip().endswith(_ENDS)):
        return BROKEN
    call = _given(name, given, depth, freeform)
    return evolve(call, mended=said.mended or call.mended, left=left or call.left) if isinstance(call, Call) else call


def _broke_off(body: Body) -> bool:
    """Other markup begins where the object that is the body should end."""
    return body.cut and body.text.lstrip().startswith("{")


def given_call(name: str, text: str, depth: int, freeform: Collection[str]) -> Call | Lost:
    """The call of a tool with arguments that are in a string."""
    return _given(name, Value(text, text), depth, freeform)


def free_call(name: str, text: str, depth: int, freeform: Collection[str]) -> Call | Lost:
    """The call of a freeform tool whose input is a text, or a JSON string that holds it, or an object that could be
    mended and has it as its one member `input`, or no member at all."""
    if name not in freeform or not text.strip():
        return NO_ARGUMENTS
    found = objects(Body(text.strip(), False), depth)[0] if text.lstrip().startswith("{") else None
    said = found["input"].value if found is not None and found.keys() == {"input"} else "" if found == {} else None
    if isinstance(said, str):
        return Call(name, _text({"input": said}), mended=True)
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        said = None
    return _free(name, said if isinstance(said, str) else text)


def _free(name: str, text: str) -> Call:
    """The call of a freeform tool with a string."""
    return Call(name, _text({"input": _input(text)}), mended=not is_whole(text))


def _given(name: str, given: Value, depth: int, freeform: Collection[str]) -> Call | Lost:
    """The call of a tool with arguments, whatever value they are."""
    if name in freeform and isinstance(given.value, str):
        return _free(name, given.value)
    arguments = _arguments(given, depth)
    if arguments is None:
        return NO_ARGUMENTS
    text, mended = arguments
    whole = whole_escapes(text)
    call = Call(name, whole, mended=mended or whole != text)
    return _freed(call) if name in freeform else call


def _input(text: str) -> str:
    """The input that a string says: itself, or what its one member `input` says, if it is such an object."""
    inner = text.strip(BLANK)
    try:
        found, end = members(inner)
    except (ValueError, RecursionError):
        return text
    only = found["input"].value if found.keys() == {"input"} and end == len(inner) else None
    return only if isinstance(only, str) else text


def _arguments(given: Value, depth: int) -> tuple[str, bool] | None:
    """The text of arguments that are an object, and whether it was mended: `null` is none, a string holds it."""
    if isinstance(given.value, dict):
        return given.text, given.mended
    if given.value is None or (isinstance(given.value, str) and given.value.strip() in ("", "null")):
        return "{}", False
    if not isinstance(given.value, str):
        return None
    text = given.value.strip(BLANK)
    try:
        if members(text)[1] == len(text):
            return text, False
    except (ValueError, RecursionError):
        pass
    try:
        inner = mend(text, depth=depth)
    except ValueError:
        return None
    return (_text(inner), True) if isinstance(inner, dict) else None


def _text(value: Mapping[str, object]) -> str:
    return dumps(value).decode()
