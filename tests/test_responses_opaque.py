"""stages.dialects.responses.opaque: what brings a reasoning item back."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.dialects.responses.opaque import item_of, parts_of, proof_of

parts = st.lists(st.text(min_size=1, max_size=5), max_size=4)


@given(st.text(), st.text(min_size=1), st.sampled_from(["summary", "content"]), parts)
def test_an_item_comes_back_from_its_proof(name: str, blob: str, member: str, texts: list[str]) -> None:
    told = [{"type": "some_text", "text": text} for text in texts]
    item = {"type": "reasoning", "id": name, member: told, "encrypted_content": blob, "format": "some-v1"}
    assert item_of(proof_of(item)) == item


def test_a_proof_is_the_item_without_its_type_as_compact_json() -> None:
    summary = [{"type": "summary_text", "text": "a"}]
    item = {"id": "rs_1", "type": "reasoning", "summary": summary, "encrypted_content": "E"}
    assert proof_of(item) == ('{"id":"rs_1","summary":[{"type":"summary_text","text":"a"}],"encrypted_content":"E"}')


@pytest.mark.parametrize("blob", [None, "", 3])
def test_an_item_without_a_blob_proves_nothing(blob: Any) -> None:
    assert proof_of({"type": "reasoning", "id": "rs_1", "encrypted_content": blob}) == ""


DEEP = '{"encrypted_content":"e","x":' + "[" * 300 + "]" * 300 + "}"


@pytest.mark.parametrize("signature", ["", "EqQBCg", "{", "{}", '{"encrypted_content":1}', "[1]", "sw1.e30", DEEP])
def test_another_signature_carries_no_item(signature: str) -> None:
    assert item_of(signature) is None


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
