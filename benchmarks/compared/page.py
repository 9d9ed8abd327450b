"""The page: results, folded into tables and put into `page.md`."""

import platform
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from string import Template

from attrs import define, field, frozen

from benchmarks.compared.answer import Answer
from benchmarks.compared.cases import PAIRS, Case
from benchmarks.compared.translators.jobs import Translator
from benchmarks.compared.verdict import MEANINGS, OK, UNUSABLE

TEMPLATE = Path(__file__).parent / "page.md"
TITLES = {"chat": "Chat", "messages": "Messages", "responses": "Responses"}
Pair = tuple[str, str]
Costs = Mapping[str, Mapping[str, float]]


@frozen
class Result:
    """What one translator made of one case."""

    pair: Pair
    case: Case
    name: str
    words: tuple[str, ...]
    answer: Answer

    @property
    def cell(self) -> str:
        """The words, or that it is right."""
        return ", ".join(self.words) or OK


@define
class Results:
    """All of a run, in its order."""

    all: list[Result] = field(factory=list)

    def of(self, pair: Pair, name: str) -> list[Result]:
        """A translator's results of a pair."""
        return [result for result in self.all if result.pair == pair and result.name == name]


def printed(results: Results, costs: Costs) -> str:
    """Results for the terminal, a line each."""
    lines = [
        f"{one.name}: {one.pair[0]} to {one.pair[1]}: {one.case.name}: {one.cell}"
        + "".join(f" [{said}]" for said in (*one.answer.faults, one.answer.error[:120]) if said)
        for one in results.all
    ]
    spent = [f"{name}, {client}: {each:.1f} µs a frame" for name, by in costs.items() for client, each in by.items()]
    return "\n".join([*lines, *spent])


def page(
    results: Results,
    costs: Costs,
    translators: Sequence[Translator],
    versions: Mapping[str, str],
    frames: int,
) -> str:
    """The whole page; `translators` begins with ours."""
    ours, *others = translators
    return Template(TEMPLATE.read_text()).substitute(
        date=date.today().isoformat(),
        python=platform.python_version(),
        frames=frames,
        versions=_versions(ours, others, versions),
        words="\n".join(f"| {word} | {meaning} |" for word, meaning in MEANINGS.items()),
        counts=_counts(results, translators),
        ours=_not_best(results, ours),
        costs=_costs(costs, ours.name),
        tables="".join(_table(results, pair, translators) for pair in PAIRS),
        faults=_faults(results, translators),
    )


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def titled(pair: Pair) -> str:
    """A pair in words: the upstream's stream, the client's stream."""
    return f"{TITLES[pair[0]]} to {TITLES[pair[1]]}"


def _versions(ours: Translator, others: Sequence[Translator], versions: Mapping[str, str]) -> str:
    rows = [(ours.name, "this tree", ours.door), *((one.name, versions[one.package], one.door) for one in others)]
    return table(("translator", "version", "door"), rows)


def _counts(results: Results, translators: Sequence[Translator]) -> str:
    words = [word for word in MEANINGS if any(word in result.words for result in results.all)]
    rows: list[Sequence[object]] = []
    for pair in PAIRS:
        for one in translators:
            if not (found := results.of(pair, one.name)):
                continue
            seen = Counter(word for result in found for word in result.words)
            right = sum(not result.words for result in found)
            unusable = sum(bool(UNUSABLE & {*result.words}) for result in found)
            counted = [seen[word] or "" for word in words]
            rows.append((titled(pair), one.name, len(found), right, unusable, *counted))
    return table(("pair", "translator", "cases", "right", "unusable", *words), rows)


def _table(results: Results, pair: Pair, translators: Sequence[Translator]) -> str:
    by = {one.name: found for one in translators if (found := results.of(pair, one.name))}
    rows = [
        (f"{row[0].case.shows} ({row[0].case.name})", *(one.cell for one in row))
        for row in zip(*by.values(), strict=True)
    ]
    return f"\n### {titled(pair)}\n\n{table(('case', *by), rows)}\n"


def _faults(results: Results, translators: Sequence[Translator]) -> str:
    rows: list[Sequence[object]] = []
    for one in translators:
        seen = Counter(fault for result in results.all if result.name == one.name for fault in result.answer.faults)
        rows.append((one.name, "; ".join(f"{fault}: {number}" for fault, number in seen.most_common()) or "none"))
    return table(("translator", "breaches"), rows)


def _costs(costs: Costs, ours: str) -> str:
    clients = sorted({client for by in costs.values() for client in by})
    rows = []
    for name, by in costs.items():
        cells = [
            f"{by[client]:.0f} µs, {by[client] / costs[ours][client]:.2f} × ours" if client in by else ""
            for client in clients
        ]
        rows.append((name, *cells))
    return table(("", *(f"Chat to {TITLES[client]}" for client in clients)), rows)


def _not_best(results: Results, ours: Translator) -> str:
    """What the run itself says against us, in lists."""
    mine = [result for result in results.all if result.name == ours.name]
    better = [_bullet(f"{titled(one.pair)}, {one.case.name}: {one.cell}") for one in mine if one.words]
    stopped = _cases(mine, lambda case: case.sent.ended and not case.sent.error and not case.wanted.ended)
    less = [
        _bullet(f"{name}: {', '.join(f'`{path}`' for path in case.recorded)}")
        for name, case in _cases(mine, lambda case: bool(case.recorded)).items()
    ]
    return "\n".join(
        [
            "Cases in which the strict reader does not find what the golden says:\n",
            *(better or ["- none in this run"]),
            "\nCases whose upstream ended as if all were well, and that we end with an error, so that nobody acts:\n",
            *(_bullet(f"{name}: {case.shows}") for name, case in stopped.items()),
            "\nWhat our ledger names: members that the upstream sent and our client does not get, or gets changed:\n",
            *less,
        ]
    )


def _bullet(text: str) -> str:
    return f"- {text}"


def _cases(results: Iterable[Result], wanted: Callable[[Case], bool]) -> dict[str, Case]:
    cases = {f"{TITLES[one.case.dialect]}, {one.case.name}": one.case for one in results}
    return {name: case for name, case in cases.items() if wanted(case)}
