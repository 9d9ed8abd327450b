"""tests.clients: what it says where it cannot run what it is asked for."""

import pytest

from tests.clients import KIT, Case, Verdict, explained, main


@pytest.mark.skipif(not (KIT / "run.py").exists(), reason="../shared/clients does not lie beside the project")
def test_a_client_that_is_not_known_is_told_those_that_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--client", "py-anthropic"])
    said = capsys.readouterr().err
    assert "no client py-anthropic; known are " in said
    assert "py-anthropic:stream" in said


@pytest.mark.parametrize("flag", ["--host", "--upstream", "--scenario"])
def test_what_else_is_not_known_is_told_those_that_are(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([flag, "x"])
    assert "choose from" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("client", "violation", "word", "well"),
    [
        ("codex", "only_done", "silent", True),
        ("js-openai:responses", "eof_mid_args", "silent", True),
        ("codex", "eof_mid_args", "silent", False),
        ("js-openai:responses", "eof_mid_args", "broken call", False),
        ("codex", "only_done", "hang", False),
    ],
)
def test_only_what_is_explained_is_well(client: str, violation: str, word: str, well: bool) -> None:
    assert explained(Case(client, "proxy", "chat", "single", violation), Verdict(word, False)).well is well
