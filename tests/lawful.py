"""What we write keeps the grammar of its dialect."""

from pipeline.grammar import Grammar
from stages.dialects.chat.grammar import GRAMMAR as CHAT
from stages.dialects.messages.grammar import GRAMMAR as MESSAGES
from stages.dialects.responses.grammar import GRAMMAR as RESPONSES

GRAMMARS: dict[str, Grammar] = {"chat": CHAT, "messages": MESSAGES, "responses": RESPONSES}


def check_law(dialect: str, stream: bytes) -> None:
    """Fail, naming frame, offset, rule and source, if a stream of ours breaks the grammar of its dialect."""
    breaches = [(breach.frame, breach.offset, breach.rule) for breach in GRAMMARS[dialect].breaches(stream)]
    assert [f"frame {at}, byte {to}: {rule.part} {rule.says} ({rule.source})" for at, to, rule in breaches] == []
