"""Whose request it is, and how the provider treats it, as both of OpenAI's dialects say it."""

from collections.abc import Mapping
from typing import Any, TypedDict

from pipeline.members import Members


class Asker(TypedDict):
    """Members of a `Request`."""

    metadata: Mapping[str, Any] | None
    user: str | None
    older_user: str | None
    cache_key: str | None
    service_tier: str | None
    store: bool | None


def asker_of(members: Members) -> Asker:
    """What a body says of it. Raises `ClientError` naming a member that is wrong."""
    user = members.text("safety_identifier") or members.text("user")
    return {
        "metadata": None if (metadata := members.object("metadata")) is None else metadata.value,
        "user": user or None,
        "older_user": members.text("user") if members.text("user") not in ("", user) else None,
        "cache_key": members.text("prompt_cache_key") or None,
        "service_tier": members.text("service_tier") or None,
        "store": members.flag("store"),
    }
