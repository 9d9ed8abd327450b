"""The calls that the objects of a JSON body are."""

from collections.abc import Iterator, Mapping

from pipeline.jsontext import BLANK, dumps
from stages.scrub.grammar import Call, Lost
from stages.scrub.json_body import Body, Value, members, objects
from stages.scrub.mend import mend

ARGUMENTS = ("arguments", "parameters", "args", "params", "input")
"""The members that may hold a call's arguments: the first that is there does."""

NO_OBJECT = Lost("what stands in the markup of a call is no JSON object")
NO_NAME = Lost("the markup of a call names no tool")
NO_ARGUMENTS = Lost("the arguments of a call are no JSON object")


def calls_in(body: Body, depth: int, tool: str = "") -> Iterator[Call | Lost]:
    """A call for each object of a body. One that names no tool is the arguments of `tool`, if that is given."""
    bodies = objects(body, depth)
    for found in bodies:
        if found is None:
            yield NO_OBJECT
        elif tool and "name" not in found:
            yield call_of(tool, body, depth) if len(bodies) == 1 else NO_ARGUMENTS
        else:
            yield _call(found, depth)


def call_of(name: str, body: Body, depth: int, id: str = "") -> Call | Lost:  # noqa: A002
    """The call of a tool that is named outside of its arguments, which the body is."""
    found = objects(body, depth)
    if len(found) != 1 or (arguments := found[0]) is None:
        return NO_ARGUMENTS
    if not name.strip():
        return NO_NAME
    if body.whole and not any(value.mended for value in arguments.values()):
        return Call(name.strip(), body.text, id)
    return Call(name.strip(), _text({name: value.value for name, value in arguments.items()}), id, mended=True)


def input_of(arguments: str) -> str:
    """The input of a freeform tool: the one string that its arguments are, or, if they are none, as they stand."""
    found = [value.value for value in members(arguments)[0].values()]
    return found[0] if len(found) == 1 and isinstance(found[0], str) else arguments


def _call(found: Mapping[str, Value], depth: int) -> Call | Lost:
    """The call that an object says, itself or in its member `function`."""
    wrapped = found.get("function")
    if wrapped is not None and isinstance(wrapped.value, dict):
        inner, _ = members(wrapped.text)
        found = {key: Value(value.value, value.text, wrapped.mended) for key, value in inner.items()}
    name = found.get("name")
    if name is None or not isinstance(name.value, str) or not name.value.strip():
        return NO_NAME
    given = next((found[key] for key in ARGUMENTS if key in found), None)
    arguments = ("{}", False) if given is None else _arguments(given, depth)
    if arguments is None:
        return NO_ARGUMENTS
    text, mended = arguments
    return Call(name.value.strip(), text, mended=name.mended or mended)


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
