"""Whether a request body is what the official SDKs' types and the reference grammar say a request is."""

import contextlib
import functools
import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

SHARED = Path(os.environ.get("STREAMWEIR_SHARED") or Path(__file__).resolve().parents[2] / "shared")
GRAMMAR = SHARED / "reference" / "grammar.json"
CORPUS = SHARED / "corpus"

needs_corpus = pytest.mark.skipif(not (CORPUS / "manifest.jsonl").exists(), reason="the corpus is not here")
needs_grammar = pytest.mark.skipif(not GRAMMAR.exists(), reason="the reference grammar is not here")

_GRAMMAR_NAME = {"messages": "anthropic_messages", "chat": "openai_chat", "responses": "openai_responses"}


def recorded(dialect: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The recorded request bodies of a dialect, each once, by name."""
    if not (CORPUS / "manifest.jsonl").exists():
        return
    seen: set[str] = set()
    for line in (CORPUS / "manifest.jsonl").read_text().splitlines():
        entry = json.loads(line)
        if entry["dialect"] == dialect and entry.get("request") and entry["request"] not in seen:
            seen.add(entry["request"])
            body = json.loads((CORPUS / entry["request"]).read_bytes())
            body.setdefault("model", entry["model"])  # some providers have it in the path
            yield entry["request"], body


def type_faults(dialect: str, body: Mapping[str, Any]) -> list[str]:
    """Where a body departs from the SDK's own types; empty: nowhere."""
    try:
        _read_all(_adapter(dialect).validate_python(body, strict=True))
    except ValidationError as error:
        return [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()]
    return []


def grammar_faults(dialect: str, body: Mapping[str, Any]) -> list[str]:
    """Where a body departs from the reference grammar; empty: nowhere."""
    grammar = _grammar()["dialects"][_GRAMMAR_NAME[dialect]]
    return list(_faults(body, {"ref": grammar["request"]}, grammar["types"], "body"))


def _read_all(value: Any) -> None:
    """Read what pydantic validates only when it is iterated: the SDKs' aliases of iterables."""
    if isinstance(value, Mapping):
        for item in value.values():
            _read_all(item)
    elif isinstance(value, list) or type(value).__name__ == "ValidatorIterator":
        for item in value:
            _read_all(item)


@functools.cache
def _grammar() -> Any:
    return json.loads(GRAMMAR.read_bytes())


@functools.cache
def _adapter(dialect: str) -> TypeAdapter[Any]:
    if dialect == "chat":
        from openai.types.chat.completion_create_params import CompletionCreateParamsBase as Chat

        kind: Any = Chat
    elif dialect == "responses":
        from openai.types.responses.response_create_params import ResponseCreateParamsBase as Responses

        kind = Responses
    else:
        from anthropic.types.message_create_params import MessageCreateParamsBase as Messages

        kind = Messages
    with _lists():
        return TypeAdapter(kind)


@contextlib.contextmanager
def _lists() -> Iterator[None]:
    """While this lasts, the SDKs' `Iterable` is a list: pydantic would read an iterable only when it is iterated."""
    changed = []
    for name, module in list(sys.modules.items()):
        if name.startswith(("openai.types", "anthropic.types")):
            for word in ("Iterable", "SequenceNotStr"):
                if hasattr(module, word):
                    changed.append((module, word, getattr(module, word)))
                    setattr(module, word, list)
    try:
        yield
    finally:
        for module, word, value in changed:
            setattr(module, word, value)


_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


def _faults(value: Any, spec: Mapping[str, Any], types: Mapping[str, Any], where: str) -> Iterator[str]:
    if value is None and spec.get("nullable"):
        return
    if "ref" in spec:
        found = types[spec["ref"]]
        yield from (
            _object(value, found["fields"], types, where) if "fields" in found else _faults(value, found, types, where)
        )
    elif "any_of" in spec:
        tried = [list(_faults(value, arm, types, where)) for arm in spec["any_of"]]
        if all(tried):
            yield min(tried, key=len)[0]
    elif "array" in spec:
        if not isinstance(value, list):
            yield f"{where}: no list"
            return
        for at, item in enumerate(value):
            yield from _faults(item, spec["array"], types, f"{where}[{at}]")
    elif "map" in spec:
        if not isinstance(value, Mapping):
            yield f"{where}: no object"
            return
        for name, item in value.items():
            yield from _faults(item, spec["map"], types, f"{where}.{name}")
    elif "enum" in spec:
        if value not in spec["enum"]:
            yield f"{where}: not one of {spec['enum']}"
    elif "const" in spec:
        if value != spec["const"]:
            yield f"{where}: not {spec['const']!r}"
    elif (kinds := _KINDS.get(spec.get("type", "any"))) is not None and (
        not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)
    ):
        yield f"{where}: no {spec['type']}"


def _object(value: Any, fields: Mapping[str, Any], types: Mapping[str, Any], where: str) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"{where}: no object"
        return
    for name, spec in fields.items():
        if name in value:
            yield from _faults(value[name], spec, types, f"{where}.{name}")
        elif spec.get("required"):
            yield f"{where}.{name}: missing"
