"""examples.gateway.table: what an upstream of the client's dialect is told of its headers."""

from examples.gateway.table import passed_up
from pipeline.dialect import dialect


def test_what_no_server_can_write_and_what_nobody_knows_is_not_told() -> None:
    headers = {"x-codex-a": "1", "x-codex-\x01": "2", "x-codex-b": "a\nb", "x-other": "3", "x-codex-session-token": "4"}
    assert passed_up(headers, dialect("responses").tells) == {"x-codex-a": "1"}
    assert passed_up(headers, dialect("chat").tells) == {}
