"""`python -m benchmarks.compared`: run all translators over all cases, and write the page.

`--only NAME` runs some translators and prints; `--show CASE` prints what each gave of a case.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.compared import page
from benchmarks.compared.cases import PAIRS, ROOT, Case, cases_of
from benchmarks.compared.environment import made, versions
from benchmarks.compared.run import Process, cost, read_reply
from benchmarks.compared.translators.jobs import Translator
from benchmarks.compared.upstream import Upstream, frames_of
from benchmarks.compared.verdict import verdict
from benchmarks.stream import chat_stream

OURS = "ours"
OTHERS = (
    "litellm",
    "any_llm",
    "llm_rosetta",
    "protocol_converter",
    "agent_wire_proxy",
    "ant2oai",
    "codex_relay",
)
READING = "reading"
LONG = "chat-999"
"""The model of the long stream that time is measured on."""


def translator(module: str) -> Translator:
    """The translator of a module."""
    found: Translator = importlib.import_module(f"benchmarks.compared.translators.{module}").TRANSLATOR
    return found


def models() -> dict[str, Case]:
    """The cases by the name of the model that stands for each, which tells a translator nothing."""
    cases = [case for dialect in ("chat", "messages", "responses") for case in cases_of(dialect)]
    return {f"{case.dialect}-{number:03}": case for number, case in enumerate(cases)}


def main(argv: Sequence[str] | None = None) -> int:
    """Run; gives the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compared", description=__doc__)
    parser.add_argument("--environment", type=Path, default=ROOT / ".compared")
    parser.add_argument("--only", action="append", metavar="NAME", help="a translator's module")
    parser.add_argument("--show", metavar="CASE", help="print what each gave of a case; write no page")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "compared.md")
    asked = parser.parse_args(argv)
    python = made(asked.environment)
    by_model = models()
    long = b"".join(chat_stream())
    recordings = {model: (case.dialect, case.recording) for model, case in by_model.items()}
    results, costs = page.Results(), dict[str, dict[str, float]]()
    with Upstream({**recordings, LONG: ("chat", long)}) as upstream:
        for module in (OURS, READING, *OTHERS):
            if asked.only and module not in asked.only:
                continue
            one = translator(module)
            process = Process(Path(sys.executable) if module in (OURS, READING) else python, module, asked.environment)
            try:
                _run(one, process, by_model, upstream.origin, results, asked.show)
                if not asked.show and one.measured:
                    costs[one.name] = _costs(one, process, by_model, upstream.origin, len(frames_of(long)))
            finally:
                process.close()
    if asked.show or asked.only:
        print(page.printed(results, costs))
        return 0
    packages = [translator(module).package for module in OTHERS]
    translators = [translator(module) for module in (OURS, *OTHERS)]
    asked.page.write_text(page.page(results, costs, translators, versions(python, packages), len(frames_of(long))))
    return 0


def _run(
    one: Translator, process: Process, by_model: dict[str, Case], origin: str, results: page.Results, show: str | None
) -> None:
    for upstream, client in PAIRS:
        if (upstream, client) not in one.pairs:
            continue
        for model, case in by_model.items():
            if case.dialect != upstream or show not in (None, case.name):
                continue
            reply = process.ask(_job(upstream, client, model, origin, case))
            answer = read_reply(reply, client)
            words = ["hangs"] if reply.get("hangs") else verdict(case.wanted, answer, client, case.sent)
            results.all.append(page.Result((upstream, client), case, one.name, tuple(words), answer))
            if show is not None:
                print(f"== {one.name}: {upstream} to {client}: {words}\n{reply['raised']}\n{reply['body']}\n{answer}")


def _job(upstream: str, client: str, model: str, origin: str, case: Case) -> dict[str, Any]:
    request = case.request(client, model)
    return {"upstream": upstream, "client": client, "model": model, "origin": origin, "request": request}


def _costs(one: Translator, process: Process, by_model: dict[str, Case], origin: str, frames: int) -> dict[str, float]:
    """By client, over the Chat stream that the benchmarks use."""
    case = next(iter(by_model.values()))
    clients = [client for upstream, client in one.pairs if upstream == "chat"] or ([] if one.pairs else ["messages"])
    return {client: cost(process, _job("chat", client, LONG, origin, case), frames, range(5)) for client in clients}


if __name__ == "__main__":
    sys.exit(main())
