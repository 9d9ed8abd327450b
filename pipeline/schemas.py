"""Which JSON schemas OpenAI's strict mode takes, for the dialects that have it.

The rules are those of its guide to structured outputs, "Supported schemas". A schema that breaks one is refused (400)
with `strict: true`, and taken without. Where the guide is silent a keyword counts as one that is not taken.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from pipeline.builder import Builder
from pipeline.request import FunctionTool, OutputFormat

TYPES = frozenset({"string", "number", "boolean", "integer", "object", "array", "null"})
FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
KEYWORDS = frozenset(
    {
        *("$schema", "$defs", "definitions", "type", "title", "description", "enum", "const", "anyOf"),
        *("properties", "required", "additionalProperties", "items", "minItems", "maxItems"),
        *("pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    }
)
MOST_PROPERTIES = 5000
MOST_VALUES = 1000
"""Of all enumerations together."""
MOST_CHARS = 120_000
"""Of all names and values together."""
MOST_LEVELS = 10
"""Of objects within objects."""


class StrictBuilder(Builder):
    """Builds for a dialect that has strict mode. Its table has the rows `output.strict` and `tool strict`."""

    alike: ClassVar[frozenset[str]]
    """The dialects that have the same one: what their clients say of it goes up as it came."""

    def _strict_output(self, output: OutputFormat) -> bool | None:
        """What is said of the answer's schema: strict, as where it comes from, if it can be; None: nothing."""
        if self.request.dialect in self.alike:
            return output.strict
        if output.strict is False or output.schema is None or takes_strictly(output.schema):
            return output.strict is not False
        self.ladder.lose("output.strict", f"{output.where}.schema")
        return False

    def _strict_tool(self, tool: FunctionTool) -> bool | None:
        """What is said of a tool's schema; None: nothing."""
        if not tool.strict or self.request.dialect in self.alike or takes_strictly(tool.schema):
            return tool.strict
        self.ladder.lose("tool strict", tool.where)
        return None


def takes_strictly(schema: Mapping[str, Any] | None) -> bool:
    """Whether the schema is one that strict mode takes."""
    if schema is None or schema.get("type") != "object" or "anyOf" in schema:
        return False
    nodes = list(_nodes(schema, 1))
    if any(level > MOST_LEVELS or not _is_taken(node) for node, level in nodes):
        return False
    names = [name for node, _ in nodes for name in (*_keys(node, "properties"), *_keys(node, "$defs"))]
    values = [value for node, _ in nodes for value in (*node.get("enum", ()), *_const(node))]
    chars = sum(len(name) for name in (*names, *values) if isinstance(name, str))
    properties = sum(len(_keys(node, "properties")) for node, _ in nodes)
    return properties <= MOST_PROPERTIES and len(values) <= MOST_VALUES and chars <= MOST_CHARS


def _nodes(node: Any, level: int) -> Iterator[tuple[Any, int]]:
    """The schema and all within it, with the level of objects that each stands at."""
    yield node, level
    if not isinstance(node, Mapping):
        return
    for within in ("$defs", "definitions", "properties"):
        found = node.get(within)
        deeper = level + (within == "properties" and any(map(_is_object, _values(found))))
        for child in _values(found):
            yield from _nodes(child, deeper)
    for child in (*([node["items"]] if "items" in node else []), *_listed(node.get("anyOf"))):
        yield from _nodes(child, level)


def _is_taken(node: Any) -> bool:
    """Whether one schema keeps the rules, whatever stands within it."""
    if not isinstance(node, Mapping):
        return False
    if "$ref" in node:
        ref = node["$ref"]
        return len(node) == 1 and isinstance(ref, str) and ref.startswith("#")
    kinds = _kinds(node)
    if not node.keys() <= KEYWORDS or not kinds <= TYPES or not (kinds or _listed(node.get("anyOf"))):
        return False
    if not isinstance(node.get("enum", []), list) or node.get("format", "date") not in FORMATS:
        return False
    if "array" in kinds and "items" not in node:
        return False
    return not _is_object(node) or _is_closed(node)


def _is_closed(node: Mapping[str, Any]) -> bool:
    required, names = node.get("required", []), node.get("properties")
    if node.get("additionalProperties") is not False or not isinstance(names, Mapping):
        return False
    return isinstance(required, list) and all(name in required for name in names) and len(required) == len(names)


def _is_object(node: Any) -> bool:
    return isinstance(node, Mapping) and ("object" in _kinds(node) or "properties" in node)


def _kinds(node: Mapping[str, Any]) -> frozenset[str]:
    said = node.get("type")
    return frozenset(map(str, said)) if isinstance(said, list) else frozenset(() if said is None else (str(said),))


def _keys(node: Mapping[str, Any], name: str) -> tuple[str, ...]:
    found = node.get(name)
    return tuple(found) if isinstance(found, Mapping) else ()


def _values(found: Any) -> tuple[Any, ...]:
    return tuple(found.values()) if isinstance(found, Mapping) else ()


def _listed(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []


def _const(node: Mapping[str, Any]) -> tuple[Any, ...]:
    return (node["const"],) if "const" in node else ()
