"""stages.dialects.responses.opaque: what brings a reasoning item back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.dialects.responses.opaque import JOINT, Opaque, parts_of, reasoning_item

parts = st.lists(st.text(min_size=1, max_size=5), max_size=4)


@given(st.text(), st.text(min_size=1), st.sampled_from(["summary", "content"]), parts)
def test_an_item_comes_back_from_its_text_and_its_proof(name: str, blob: str, member: str, texts: list[str]) -> None:
    proof = Opaque(name, blob, member, tuple(map(len, texts)))
    read = Opaque.read(proof.written())
    assert read is not None
    assert read.item(JOINT.join(texts)) == reasoning_item(name, member, texts, blob)


def test_a_proof_is_compact_json() -> None:
    assert Opaque("rs_1", "E").written() == '{"id":"rs_1","encrypted_content":"E"}'
    assert Opaque("rs_1", "E", "content", (2,)).written() == '{"id":"rs_1","encrypted_content":"E","content":[2]}'


@pytest.mark.parametrize(
    "signature",
    ["", "EqQBCg", "{", "{}", '{"id":1,"encrypted_content":"E"}', '{"id":"rs_1","encrypted_content":null}', "[1]"],
)
def test_another_signature_is_no_proof(signature: str) -> None:
    assert Opaque.read(signature) is None


def test_odd_lengths_are_ignored() -> None:
    read = Opaque.read('{"id":"r","encrypted_content":"E","summary":[1,"x"]}')
    assert read == Opaque("r", "E", "summary", (1,))


@pytest.mark.parametrize("text", ["a b", "aXXb", "a\n\nbc"])
def test_a_text_that_was_edited_is_one_part(text: str) -> None:
    assert Opaque("r", "E", "summary", (1, 1)).item(text)["summary"] == [{"type": "summary_text", "text": text}]


def test_an_item_without_text_has_no_parts() -> None:
    assert Opaque("r", "E").item("") == {"id": "r", "type": "reasoning", "summary": [], "encrypted_content": "E"}


def test_an_item_without_a_blob_has_none() -> None:
    assert reasoning_item("r", "content", ["x"]) == {
        "id": "r",
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "x"}],
    }


@pytest.mark.parametrize(
    ("told", "texts"),
    [
        ([{"text": "a"}, {"text": ""}, "b", 3, {"text": None}], ["a", "", "b", "", ""]),
        ("a", ["a"]),
        (None, []),
    ],
)
def test_the_texts_of_an_item_are_read_in_every_form(told: object, texts: list[str]) -> None:
    assert parts_of({"summary": told}) == {"summary": texts, "content": []}
