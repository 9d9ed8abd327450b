"""Bytes in requests: in base64 within a `data:` URL (RFC 2397), or fetched from anywhere else."""

import base64
import binascii
from urllib.parse import unquote_to_bytes

from pipeline.request import Inline, Remote

_PLAIN = "text/plain"


def from_url(url: str) -> Inline | Remote:
    """Where the bytes of a URL are: in it, if it is a `data:` URL."""
    scheme, colon, rest = url.partition(":")
    head, comma, data = rest.partition(",")
    if scheme.lower() != "data" or not colon or not comma:
        return Remote(url)
    media_type, *parameters = head.split(";")
    media_type = media_type or _PLAIN
    if "base64" in [parameter.strip().lower() for parameter in parameters]:
        return Inline(media_type, data)
    return Inline(media_type, base64.b64encode(unquote_to_bytes(data)).decode())


def to_url(source: Inline | Remote) -> str:
    """The URL of bytes."""
    return source.url if isinstance(source, Remote) else f"data:{source.media_type};base64,{source.data}"


def plain_text(source: Inline) -> str | None:
    """The text that the bytes are, if they are said to be text."""
    if not source.media_type.startswith("text/"):
        return None
    try:
        return base64.b64decode(source.data, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
