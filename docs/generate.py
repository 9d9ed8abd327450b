"""Writes the documents that are made from the code: `python docs/generate.py` from the project's root.

`--check` writes nothing and fails if one of them is not what it would be.
"""

import ast
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from pathlib import Path

from pipeline.ladder import Row, Rule
from pipeline.request import RequestOptions
from pipeline.route import AnswerOptions
from stages.dialects.chat import request_tables as chat
from stages.dialects.messages import request_tables as messages
from stages.dialects.responses import request_tables as responses

DOCS = Path(__file__).resolve().parent

HEAD = """# What happens to each member of a request

Made by `python docs/generate.py` from the tables that the translation follows; do not edit it by hand.

A client's body is read into one canonical `Request` (`pipeline/request.py`), the upstream's is written from it. Each
member meets two rows: one where it is read, one where its canonical member is written. First match wins:

1. It is unknown to us: forwarded untouched, at the top of the body and within messages, parts and tools. Within an
   object inside these (`tool_choice`, an image's source), or where the piece becomes part of one text, it is dropped.
2. It is understood and accepted: as it is.
3. It has another spelling: translated.
4. It cannot be honoured: **degraded** to what can be said, **dropped**, or **refused** with HTTP 400 in the client's
   dialect, naming the member (`messages[2].content[0].type: unknown block 'foo'`).

Of two members that say the same or exclude each other (`function_call` beside `tool_choice`, an image's two sources, a
schema where none is asked for) one counts, and the other is dropped.

Whatever is degraded or dropped stands in the ledger: direction, stage, path, action, reason; never a value. A lenient
route is the default; where a strict one does something else, its column says so.

Toward a client's own dialect nothing of this happens: its body goes up as it came, unknown words and older spellings
included, such as `functions`. Only what must be is written anew: the model that the route maps to, `stream` where the
upstream gives nothing else, Chat's `stream_options.include_usage`, the members that an option below is about, and turns
with reasoning that the upstream did not make. The upstream is the judge of it: what a known member cannot hold
(`temperature: "hot"`) and what is missing (a `model` that stands in the URL) is refused by the other dialects alone, as
is a word that we do not know (a role, an effort, a format's type). A member that we cannot read counts as absent here
and goes up as it came, unless the route decides it, and the ledger says so (`not read`).
Refused there too is only a body that is no JSON object or
too large or deep, and an unreadable member with an envelope of ours in it. The query goes up with it, and the headers
that say which form of the dialect is spoken (`anthropic-beta`, `openai-beta`); they are dropped toward another one.

Reasoning belongs to the provider that made it. What a client echoes is dropped and recorded, never rejected, unless it
is an envelope of ours (`sw1.`, `pipeline/envelope.py`) that this same upstream sealed and whose text nobody edited. The
blob in it is JSON in the upstream's own words: a reasoning item (Responses), a thinking block (Messages), the members
of an assistant's message (Chat).

What is built comes with a map for the answer (`pipeline/toolnames.py`, `RequestMap`): each tool by the name that the
upstream was given, with the client's own name, its namespace, its kind, and whether a freeform tool was `wrapped` as a
function of one string `input`; and each call id that had to be rewritten. Names and ids are rewritten only where the
upstream refuses them, the same way every time.
"""

OPTIONS = """In code `Route(requests=RequestOptions(...))`, in a host's TOML file `[requests]`.

The route itself sets `model` and `upstream`. Beside these a route has `models` (the upstream's model for a client's,
and by the empty name that for a client which names none), `streams_only` (the upstream gives nothing but streams) and
`without` (members that the upstream refuses: left out, and recorded).
"""

ANSWERS = """What a route decides about its answers: `Route(answers=AnswerOptions(...))`, in a host's TOML file
`[answers]`, and most of them flags of a host (`--recover`, `--show-reasoning`, ...).
"""

SPEAKERS = (
    ("Anthropic Messages", messages.READ, messages.WRITE),
    ("OpenAI Chat Completions", chat.READ, chat.WRITE),
    ("OpenAI Responses", responses.READ, responses.WRITE),
)


def requests() -> str:
    """The document of the ladder's rows."""
    text = [
        HEAD,
        f"\n## Options of a route\n\n{OPTIONS}\n{_options(RequestOptions)}\n{ANSWERS}\n{_options(AnswerOptions)}",
    ]
    for title, read, _ in SPEAKERS:
        text.append(f"\n## A client that speaks {title}\n\n{_table('member', 'becomes', read.values())}")
    for title, _, write in SPEAKERS:
        text.append(f"\n## An upstream that speaks {title}\n\n{_table('of the request', 'member', write.values())}")
    return "".join(text)


def _options(options: type) -> str:
    """The options by name, with what stands below each in the code."""
    tree = ast.parse(Path(inspect.getsourcefile(options) or "").read_text(encoding="utf-8"))
    (body,) = [node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == options.__name__]
    lines = ["| option | default | |", "|---|---|---|"]
    for member, text in pairwise(body):
        if isinstance(member, ast.AnnAssign) and isinstance(text, ast.Expr) and member.value is not None:
            shown = " ".join(str(ast.literal_eval(text.value)).split())
            lines.append(f"| `{ast.unparse(member.target)}` | `{ast.unparse(member.value)}` | {shown} |")
    return "\n".join(lines) + "\n"


DOCUMENTS: Mapping[str, Callable[[], str]] = {"requests.md": requests}


def _table(member: str, to: str, rows: Iterable[Row]) -> str:
    lines = [f"| {member} | {to} | lenient | strict | why |", "|---|---|---|---|---|"]
    for row in rows:
        strict = row.under(True)
        other = "" if strict is row.rule else strict.value
        lines.append(f"| `{row.member}` | {_becomes(row)} | {row.rule.value} | {other} | {row.reason} |")
    return "\n".join(lines) + "\n"


def _becomes(row: Row) -> str:
    if row.rule is Rule.DEGRADE:
        return row.to
    return ", ".join(f"`{name}`" for name in row.to.split(", ")) if row.to else ""


def main(arguments: list[str]) -> int:
    """Write the documents, or with `--check` tell which are out of date; the exit code."""
    stale = [name for name, make in DOCUMENTS.items() if not _is(DOCS / name, make())]
    if "--check" in arguments:
        for name in stale:
            print(f"docs/{name} is not what the code says: run python docs/generate.py", file=sys.stderr)
        return 1 if stale else 0
    for name in stale:
        (DOCS / name).write_text(DOCUMENTS[name](), encoding="utf-8")
    return 0


def _is(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
