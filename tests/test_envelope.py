"""The envelope for opaque reasoning."""

import base64

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline import envelope


def test_the_same_provider_gets_the_blob_back_as_it_was() -> None:
    sealed = envelope.seal("upstream-a", "model-1", "I think.", '{"encrypted":"é=="}')
    found = envelope.open(sealed, upstream="upstream-a", text="I think.")
    assert found is not None
    assert found.blob == '{"encrypted":"é=="}'
    assert found.model == "model-1"


@given(*[st.text() for _ in range(4)])
def test_any_blob_comes_back_byte_for_byte(upstream: str, model: str, text: str, blob: str) -> None:
    sealed = envelope.seal(upstream, model, text, blob)
    found = envelope.unseal(sealed)
    assert found is not None
    assert (found.upstream, found.model, found.blob) == (upstream, model, blob)
    assert found.fits(text)


def test_no_other_provider_ever_gets_it() -> None:
    sealed = envelope.seal("upstream-a", "m", "text", "blob")
    assert envelope.open(sealed, upstream="upstream-b", text="text") is None


def test_a_route_without_a_name_opens_nothing() -> None:
    assert envelope.open(envelope.seal("", "m", "text", "blob"), upstream="", text="text") is None


@given(st.lists(st.text(max_size=3), max_size=100))
@example(["a", "é"] * 50)
def test_a_text_may_come_in_any_pieces(pieces: list[str]) -> None:
    text = envelope.TextDigest()
    for piece in pieces:
        text.add(piece)
    assert envelope.seal("a", "m", text, "blob") == envelope.seal("a", "m", "".join(pieces), "blob")


def test_an_edited_text_is_noticed() -> None:
    sealed = envelope.seal("a", "m", "text", "blob")
    assert envelope.open(sealed, upstream="a", text="text.") is None


def test_it_begins_with_its_version_and_holds_only_url_safe_characters() -> None:
    sealed = envelope.seal("a", "m", "t", "\ud800 blob ???>>>")
    assert sealed.startswith("sw1.")
    assert set(sealed) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "EqQBCkYIBx",
        "sw1.",
        "sw1.!!!!",
        "sw1.e30",
        "sw1.AAAA",
        "sw2." + base64.urlsafe_b64encode(b'[1,"a","m","d","b"]').decode(),
        "sw1." + base64.urlsafe_b64encode(b'[2,"a","m","d","b"]').decode(),
        "sw1." + base64.urlsafe_b64encode(b'[1,"a","m","d"]').decode(),
        "sw1." + base64.urlsafe_b64encode(b'[1,"a","m","d",5]').decode(),
        "sw1." + base64.urlsafe_b64encode(b"[" * 100_000).decode(),
    ],
)
def test_what_is_no_envelope_of_this_version_is_none(text: str) -> None:
    assert envelope.unseal(text) is None


def test_an_envelope_of_any_version_is_known_as_ours() -> None:
    assert envelope.is_sealed(envelope.seal("a", "m", "t", "b"))
    assert envelope.is_sealed("sw2.whatever")
    assert not envelope.is_sealed("swap.whatever")
    assert not envelope.is_sealed("EqQBCkYIBx")
