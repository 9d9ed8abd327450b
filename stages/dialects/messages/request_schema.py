"""A schema within what Anthropic's structured outputs take, and its words where they do not.

The rules are those of its guide ("JSON Schema limitations"); the API answers 400 to whatever breaks one. What the SDKs
do is done here: a keyword that is not taken goes into the `description` of its schema, where the model reads it.
"""

import re
from collections.abc import Mapping
from typing import Any

from attrs import define, field

from pipeline.jsontext import dumps

JSON = dict[str, Any]

FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"},
)
KEPT = frozenset({"type", "title", "description", "default", "required"})
"""Keywords that are taken whatever they hold."""
MARKS = frozenset({"$schema", "$id", "$comment", "$anchor"})
"""Keywords that ask for nothing."""
DEFINITIONS = ("$defs", "definitions")
OPEN = "additionalProperties"
COMPLEX = re.compile(r"\(\?|\\[bB1-9k]|\{")
"""What a pattern may not hold: look-around, references, word boundaries, counts."""


@define
class Fitting:
    """Makes one schema fit; `lost` are the kinds of keywords that it had to leave, each behind the name of its row."""

    lost: set[tuple[str, str]] = field(init=False, factory=set)

    def fit(self, schema: Any) -> Any:
        """The schema as it is taken."""
        if not isinstance(schema, Mapping):
            return schema
        schema = _one_reference(schema)
        fitted: JSON = {name: self._each(schema[name]) for name in DEFINITIONS if name in schema}
        if "$ref" in schema:
            self.lost.update(("schema beside a reference", name) for name in schema.keys() - fitted.keys() - {"$ref"})
            return {**fitted, "$ref": schema["$ref"]}
        beside: JSON = {}
        for name, value in schema.items():
            if name in fitted or name == OPEN:
                continue
            if name in KEPT or _is_taken(name, value):
                fitted[name] = self._within(name, value)
            elif name == "oneOf" and isinstance(value, list) and "anyOf" not in schema:
                self.lost.add(("schema oneOf", name))
                fitted["anyOf"] = [self.fit(choice) for choice in value]
            elif name in MARKS:
                self.lost.add(("schema mark", name))
            else:
                beside[name] = value
        if _is_object(schema):
            fitted[OPEN] = False
            if OPEN not in schema:
                self.lost.add(("schema open", OPEN))
            elif schema[OPEN] is not False:
                beside[OPEN] = schema[OPEN]
        self.lost.update(("schema keyword", name) for name in beside)
        return _described(fitted, beside)

    def _each(self, schemas: Any) -> Any:
        return {name: self.fit(one) for name, one in schemas.items()} if isinstance(schemas, Mapping) else schemas

    def _within(self, name: str, value: Any) -> Any:
        if name == "properties":
            return self._each(value)
        if name in ("anyOf", "allOf"):
            return [self.fit(one) for one in value]
        return self.fit(value) if name == "items" else value


def is_recursive(schema: Mapping[str, Any]) -> bool:
    """Whether it leads back into itself, or out of itself: no such schema is taken."""
    left = {"#": _references({name: value for name, value in schema.items() if name not in DEFINITIONS})}
    for within in DEFINITIONS:
        found = schema.get(within)
        for name, one in found.items() if isinstance(found, Mapping) else ():
            left[f"#/{within}/{name.replace('~', '~0').replace('/', '~1')}"] = _references(one)
    done: set[str] = set()
    while ends := {name for name, references in left.items() if references <= done}:
        done |= ends
        left = {name: references for name, references in left.items() if name not in ends}
    return bool(left)


def _references(value: Any) -> set[str]:
    if isinstance(value, list):
        return set().union(*map(_references, value))
    if not isinstance(value, Mapping):
        return set()
    own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
    return own.union(*map(_references, value.values()))


def _one_reference(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """`allOf` around one reference, which is not taken, is that reference."""
    match schema.get("allOf"):
        case [{"$ref": _} as only]:
            return {**{name: value for name, value in schema.items() if name != "allOf"}, **only}
    return schema


def _is_taken(name: str, value: Any) -> bool:
    match name:
        case "enum":
            return isinstance(value, list) and not any(isinstance(one, list | dict) for one in value)
        case "const":
            return not isinstance(value, list | dict)
        case "anyOf":
            return isinstance(value, list)
        case "allOf":
            return isinstance(value, list) and not any(isinstance(one, Mapping) and "$ref" in one for one in value)
        case "properties" | "items":
            return isinstance(value, Mapping)
        case "minItems":
            return type(value) is int and value in (0, 1)
        case "format":
            return isinstance(value, str) and value in FORMATS
        case "pattern":
            return isinstance(value, str) and not COMPLEX.search(value)
    return False


def _is_object(schema: Mapping[str, Any]) -> bool:
    kinds = schema.get("type")
    return kinds == "object" or (isinstance(kinds, list) and "object" in kinds) or "properties" in schema


def _described(fitted: JSON, beside: JSON) -> JSON:
    """With the words of what could not be kept."""
    if not beside:
        return fitted
    words = ", ".join(f"{name}: {dumps(value).decode()}" for name, value in beside.items())
    said = fitted.get("description")
    return {**fitted, "description": f"{said}\n\n{{{words}}}" if said else f"{{{words}}}"}
