"""Bytes in requests: in a `data:` URL, or elsewhere."""

import pytest

from pipeline.media import from_data, from_url, plain_text, to_url
from pipeline.request import DocumentPart, Inline, Remote
from tests.request_shapes import JSON, read, written


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
        ("JVBERi0=", Inline("application/pdf", "JVBERi0=")),
        ("iVBORw0KGgo=", Inline("image/png", "iVBORw0KGgo=")),
        ("/9j/4AAQ", Inline("image/jpeg", "/9j/4AAQ")),
        ("R0lGODlh", Inline("image/gif", "R0lGODlh")),
        ("UklGRgAA", Inline("image/webp", "UklGRgAA")),
    ],
)
def test_a_url_is_read(url: str, source: Inline | Remote) -> None:
    assert from_url(url) == source


@pytest.mark.parametrize(
    ("data", "name", "source"),
    [
        ("JVBERi0=", "", Inline("application/pdf", "JVBERi0=")),
        ("JVBERi0=", "a.txt", Inline("application/pdf", "JVBERi0=")),
        ("YSxi", "a.csv", Inline("text/csv", "YSxi")),
        ("YSxi", "", Inline("application/octet-stream", "YSxi")),
        ("data:text/csv;base64,YSxi", "a.pdf", Inline("text/csv", "YSxi")),
        ("https://x/y", "a.pdf", Remote("https://x/y")),
    ],
)
def test_a_file_without_a_url_is_base64_of_the_kind_that_its_sign_or_its_name_says(
    data: str, name: str, source: Inline | Remote
) -> None:
    assert from_data(data, name) == source


@pytest.mark.parametrize(
    ("client", "part"),
    [
        ("chat", {"type": "file", "file": {"file_data": "YSxi", "filename": "a.csv"}}),
        ("responses", {"type": "input_file", "file_data": "YSxi", "filename": "a.csv"}),
    ],
)
def test_a_clients_bare_base64_is_no_url(client: str, part: JSON) -> None:
    said = [{"role": "user", "content": [part]}]
    given = read(client, {"model": "m", "messages" if client == "chat" else "input": said})
    (document,) = given.turns[0].parts
    assert isinstance(document, DocumentPart)
    assert document.source == Inline("text/csv", "YSxi")
    body = written("messages", given)
    assert body["messages"][0]["content"][0]["source"] == {"type": "text", "media_type": "text/plain", "data": "a,b"}


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
