"""Reading a client's body member by member: what is not as it must be is refused by its path."""

import re
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

from attrs import frozen

from pipeline.errors import ClientError, ErrorKind, LimitExceeded
from pipeline.jsontext import check_depth, dumps, exact, loads
from pipeline.limits import Limits

_LONG_NUMBER = re.compile(rb"[0-9]{19}")
"""A number that may not fit into 64 bits; orjson would round it."""


def read_body(data: bytes, *, limits: Limits) -> Mapping[str, Any]:
    """The one JSON object that a request's body is.

    Raises `ClientError`: 413 if it is larger than `limits.request_bytes`, 400 if it is anything else.
    """
    if len(data) > limits.request_bytes:
        raise ClientError(
            f"the body has {len(data)} bytes, the most is {limits.request_bytes}",
            kind=ErrorKind.REQUEST_TOO_LARGE,
            code="request_too_large",
        )
    try:
        check_depth(data, limits.json_depth)
        body = exact(data) if _LONG_NUMBER.search(data) else loads(data, limits.json_depth)
    except LimitExceeded as error:
        raise ClientError(f"the body: {error}", code=error.code) from error
    except ValueError as error:
        raise ClientError("the body is not one JSON value", code="invalid_json") from error
    if not isinstance(body, Mapping):
        raise ClientError("the body is not a JSON object", code="invalid_json")
    return body


def join(where: str, name: str) -> str:
    """The path of a member."""
    return f"{where}.{name}" if where else name


@frozen
class Members:
    """A JSON object of a client's body, and where it stands. A member that is null counts as absent.

    Every reader raises `ClientError` naming the member if it is not of its kind.
    """

    value: Mapping[str, Any]
    where: str = ""

    @classmethod
    def of(cls, value: Any, where: str) -> "Members":
        """The members of what must be an object."""
        if not isinstance(value, Mapping):
            raise ClientError.about(where, "must be an object")
        return cls(value, where)

    def path(self, name: str) -> str:
        """The path of a member."""
        return join(self.where, name)

    def has(self, name: str) -> bool:
        """Whether it is there and not null."""
        return self.value.get(name) is not None

    def text(self, name: str, default: str = "") -> str:
        """A string."""
        found = self.value.get(name)
        if found is None:
            return default
        if not isinstance(found, str):
            raise ClientError.about(self.path(name), "must be a string")
        return found

    def need(self, name: str) -> str:
        """A string that must be there and say something."""
        found = self.text(name)
        if not found.strip():
            raise ClientError.about(self.path(name), "is required")
        return found

    def given(self, name: str) -> str:
        """A string that must be there; it may be empty."""
        if not self.has(name):
            raise ClientError.about(self.path(name), "must be a string")
        return self.text(name)

    def call_id(self, name: str, limits: Limits) -> str:
        """The id of a tool call, which must be there and within its bound."""
        found = self.need(name).strip()
        if len(found) > limits.id_chars:
            raise ClientError.about(self.path(name), f"is longer than {limits.id_chars} characters")
        return found

    def number(self, name: str) -> float | None:
        """A number."""
        found = self.value.get(name)
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, int | float) or not isfinite(found):
            raise ClientError.about(self.path(name), "must be a number")
        return found

    def integer(self, name: str) -> int | None:
        """A whole number, also where it is written as 1.0."""
        found = self.number(name)
        if found is not None and not float(found).is_integer():
            raise ClientError.about(self.path(name), "must be a whole number")
        return None if found is None else int(found)

    def flag(self, name: str) -> bool | None:
        """True or false."""
        found = self.value.get(name)
        if found is not None and not isinstance(found, bool):
            raise ClientError.about(self.path(name), "must be true or false")
        return found

    def object(self, name: str) -> "Members | None":
        """An object."""
        found = self.value.get(name)
        return None if found is None else Members.of(found, self.path(name))

    def list(self, name: str) -> list[Any]:
        """A list; absent: an empty one."""
        found = self.value.get(name)
        if found is None:
            return []
        if not isinstance(found, list):
            raise ClientError.about(self.path(name), "must be a list")
        return found

    def objects(self, name: str) -> Iterator["Members"]:
        """The objects of a list."""
        for at, item in enumerate(self.list(name)):
            yield Members.of(item, f"{self.path(name)}[{at}]")

    def texts(self, name: str) -> tuple[str, ...]:
        """The strings of a list."""
        found = self.list(name)
        for at, item in enumerate(found):
            if not isinstance(item, str):
                raise ClientError.about(f"{self.path(name)}[{at}]", "must be a string")
        return tuple(found)

    def parts(self, name: str) -> "str | Sequence[Members]":
        """What a tool gave back: a text, or the parts that say their type; any other JSON is its text."""
        found = self.value.get(name)
        if found is None:
            return []
        if isinstance(found, list) and all(isinstance(part, Mapping) and "type" in part for part in found):
            return [Members(part, f"{self.path(name)}[{at}]") for at, part in enumerate(found)]
        return found if isinstance(found, str) else dumps(found).decode()

    def but(self, *names: str) -> dict[str, Any]:
        """The members besides those named that are not null."""
        return {name: value for name, value in self.value.items() if name not in names and value is not None}
