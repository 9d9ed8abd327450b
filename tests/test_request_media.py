"""Bytes in requests: in a `data:` URL, or elsewhere."""

import pytest

from pipeline.media import from_url, plain_text, to_url
from pipeline.request import Inline, Remote


@pytest.mark.parametrize(
    ("url", "source"),
    [
        ("data:image/png;base64,QUJD", Inline("image/png", "QUJD")),
        ("DATA:image/png;charset=x;BASE64,QUJD", Inline("image/png", "QUJD")),
        ("data:;base64,QUJD", Inline("text/plain", "QUJD")),
        ("data:text/plain,a%20b", Inline("text/plain", "YSBi")),
        ("data:nothing", Remote("data:nothing")),
        ("https://x/y.png", Remote("https://x/y.png")),
        ("plain", Remote("plain")),
    ],
)
def test_a_url_is_read(url: str, source: Inline | Remote) -> None:
    assert from_url(url) == source


@pytest.mark.parametrize("source", [Inline("image/png", "QUJD"), Remote("https://x")])
def test_a_source_comes_back_from_its_url(source: Inline | Remote) -> None:
    assert from_url(to_url(source)) == source


@pytest.mark.parametrize(
    ("media_type", "data", "text"),
    [
        ("text/markdown", "YSBi", "a b"),
        ("text/plain", "!", None),
        ("text/plain", "/w==", None),
        ("application/pdf", "YSBi", None),
    ],
)
def test_text_is_read_from_bytes_that_are_said_to_be_some(media_type: str, data: str, text: str | None) -> None:
    assert plain_text(Inline(media_type, data)) == text
