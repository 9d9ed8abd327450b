"""Bytes in requests: in base64 within a `data:` URL (RFC 2397), or fetched from anywhere else."""

import base64
import binascii
from mimetypes import MimeTypes
from urllib.parse import unquote_to_bytes

from pipeline.request import Inline, Remote

_PLAIN = "text/plain"
_SIGNS = {
    "JVBERi0": "application/pdf",
    "iVBORw0KGgo": "image/png",
    "/9j/": "image/jpeg",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp",
}
"""What the base64 of some kinds of file begins with."""
_TYPES = MimeTypes()


def from_url(url: str) -> Inline | Remote:
    """Where the bytes of a URL are: in it, if it is a `data:` URL, or in truth the base64 of a file."""
    scheme, colon, rest = url.partition(":")
    head, comma, data = rest.partition(",")
    if not colon and (media_type := _sign_of(url)):
        return Inline(media_type, url)
    if scheme.lower() != "data" or not comma:
        return Remote(url)
    media_type, *parameters = head.split(";")
    media_type = media_type or _PLAIN
    if "base64" in [parameter.strip().lower() for parameter in parameters]:
        return Inline(media_type, data)
    return Inline(media_type, base64.b64encode(unquote_to_bytes(data)).decode())


def from_data(data: str, name: str) -> Inline | Remote:
    """Where the bytes of a file are: in a URL, or in base64 and no more, of the kind that its sign or its name says."""
    source = from_url(data)
    if isinstance(source, Inline) or ":" in data:
        return source
    return Inline(_TYPES.guess_type(name)[0] or "application/octet-stream", data)


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


def _sign_of(data: str) -> str:
    """The kind of file that base64 begins as; empty: none of those known."""
    return next((media_type for sign, media_type in _SIGNS.items() if data.startswith(sign)), "")
