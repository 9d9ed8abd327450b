"""stages.scrub: what a call says outside of a body, or in place of one: small parts alone."""

import json

import pytest

from stages.scrub.calls import LEFT, free_call
from stages.scrub.families.deepseek import either
from stages.scrub.fence import unfenced
from stages.scrub.grammar import Call
from tests.scrubbing import at_every_cut


@pytest.mark.parametrize(
    ("text", "said", "mended"),
    [
        ("ls", "ls", False),
        ('"ls"', "ls", False),
        ("{'input': 'ls',}", "ls", True),
        ("\n {'input': 'ls',} \n", "ls", True),
        ('{"input": "ls"', "ls", True),
        ('[{"input": "ls"}]', '[{"input": "ls"}]', False),
        ('[{"input": "ls"', '[{"input": "ls"', False),
        ("12", "12", False),
    ],
)
def test_a_text_is_the_input_of_a_freeform_tool(text: str, said: str, mended: bool) -> None:
    call = free_call("cu", text, 200, ["cu"])
    assert isinstance(call, Call)
    assert json.loads(call.arguments) == {"input": said}
    assert call.mended == mended


@pytest.mark.parametrize("closing", ["></tool_call>", "/>"])
def test_what_a_tag_without_a_body_says_beside_its_call_is_recorded(closing: str) -> None:
    for more, lost in (("", []), (' mode="fast"', [("dropped", LEFT.reason)])):
        out = at_every_cut(f'<tool_call name="f" arguments=\'{{"x": 1}}\'{more}{closing}')
        assert out.content == [("f", '{"x": 1}')]
        assert out.lost == lost


def test_either_of_some_tokens_is_found_as_it_is_written() -> None:
    assert either(("a|b", "c.")) == r"a\|b|c\."


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("```sh\nls\n```", "ls"),
        ("```\nls", "```\nls"),
        ("```\n", "```"),
        ("```", "```"),
        ("\r\nXaX\r\n", "XaX"),
        ("\n ls \n", " ls "),
    ],
)
def test_what_is_no_whole_fence_is_text(text: str, inside: str) -> None:
    assert unfenced(text) == inside
