"""What we write keeps the grammar of its dialect."""

from pipeline.grammar import Grammar
from stages.dialects.chat.grammar import GRAMMAR as CHAT
from stages.dialects.responses.grammar import GRAMMAR as RESPONSES

GRAMMARS: dict[str, Grammar] = {"chat": CHAT, "responses": RESPONSES}


def check_law(dialect: str, stream: bytes) -> None:
    """Fail, naming frame, offset, rule and source, if a stream of ours breaks the grammar of its dialect."""
    if (grammar := GRAMMARS.get(dialect)) is not None:
        breaches = [(breach.frame, breach.offset, breach.rule) for breach in grammar.breaches(stream)]
        assert [f"frame {at}, byte {to}: {rule.part} {rule.says} ({rule.source})" for at, to, rule in breaches] == []
