"""stages.dialects.messages.opaque: what brings reasoning back to the provider that made it."""

import pytest

from stages.dialects.messages.opaque import blob_of, block_of, proof_of


def test_a_proof_is_the_block_but_for_its_text() -> None:
    proof = proof_of("thinking", "SIG==")
    assert proof == '{"type":"thinking","signature":"SIG=="}'
    assert block_of(proof, "hm") == {"type": "thinking", "thinking": "hm", "signature": "SIG=="}
    redacted = proof_of("redacted_thinking", "BLOB")
    assert block_of(redacted, "hm") == {"type": "redacted_thinking", "data": "BLOB"}
    assert [blob_of(one) for one in (proof, redacted)] == ["SIG==", "BLOB"]


@pytest.mark.parametrize(
    "other",
    [
        "",
        "SIG==",
        "{",
        "{}",
        '{"type":"thinking"}',
        '{"type":"thinking","signature":3}',
        '{"type":"text","text":"x"}',
        '{"type":["thinking"],"signature":"x"}',
        '{"id":"rs_1","summary":[],"encrypted_content":"E"}',
        '{"type":"thinking","signature":' + "[" * 300 + "]" * 300 + "}",
    ],
)
def test_the_blob_of_another_provider_is_none_of_ours(other: str) -> None:
    assert block_of(other) is None
    assert blob_of(other) == other
