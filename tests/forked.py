"""A pytest plugin for `make mutants`: the tests are collected once, and each mutant is a fork that runs its tests.

mutmut collects them anew for each mutant, and asks at each call of a function which mutant is on trial; both take
longer than the tests do. Here a function is given the code of its mutant in the fork. This runs in mutmut's copy of the
tree, with what mutmut found out: which tests call a function, and how long each takes. Those that killed most come
first, and then the quickest.
"""

import gc
import json
import math
import os
import resource
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import process_time
from types import FunctionType
from typing import NoReturn, TypeVar

import pytest
from attrs import define, field

AT_ONCE = 2
SECONDS = 300
"""So much work ends a fork that `tests.conftest` did not."""
BYTES = 4 << 30
"""So much memory does: what loops may grow as well."""
KILLED, SURVIVED, UNTESTED, UNMADE = "killed", "survived", "no tests", "could not be made"
_BECAME = {0: SURVIVED, 1: KILLED, 2: UNMADE}
NONE = ""
"""No mutant: all tests must pass."""

Made = TypeVar("Made", bound=FunctionType)
_FUNCTIONS: list[tuple[FunctionType, Mapping[str, Callable[..., object]]]] = []
"""The functions that have mutants, with these by their names."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--mutants", type=Path, help="a file of mutmut's names, one a line")
    parser.addoption("--results", type=Path, help="a file for `name<tab>what became of it`")
    parser.addoption("--work", type=float, default=math.inf, help="so many seconds of tests a mutant; then it survived")


def pytest_configure() -> None:
    """Before anything is imported that mutmut has changed."""
    from mutmut.mutation import trampoline

    trampoline.wrap_in_trampoline = _kept


def _kept(mutants: Mapping[str, Callable[..., object]], is_classmethod: bool = False) -> "Callable[[Made], Made]":
    """In place of mutmut's decorator: it leaves a function as it is, and keeps it with its mutants."""

    def keep(function: Made) -> Made:
        _FUNCTIONS.append((function, mutants))
        return function

    return keep


def _break(mutant: str) -> None:
    """Give a function the code of its mutant. Raises `LookupError` if there is none, `ValueError` if it has none of the
    same form."""
    module, _, name = mutant.rpartition(".")
    function, made = next(
        (function, mutants[name])
        for function, mutants in _FUNCTIONS
        if name in mutants and function.__module__ == module
    )
    other = getattr(made, "__func__", made)
    function.__code__, function.__defaults__ = other.__code__, other.__defaults__
    function.__kwdefaults__ = other.__kwdefaults__


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Try the mutants in place of running the tests. Raises `UsageError` if a test fails without any."""
    stats = json.loads(Path("mutmut-stats.json").read_text(encoding="utf-8"))
    most = session.config.getoption("work")
    trials = _Trials(session, stats["tests_by_mangled_function_name"], stats["duration_by_test"], most)
    names = session.config.getoption("mutants").read_text(encoding="utf-8").split()
    if [*trials.run([NONE])] != [(NONE, SURVIVED)]:
        raise pytest.UsageError("a test fails without a mutant")
    gc.freeze()
    with session.config.getoption("results").open("w", encoding="utf-8", buffering=1) as out:
        for name, became in trials.run(names):
            out.write(f"{name}\t{became}\n")
    return True


@define
class _Trials:
    """Mutants that are tried in forks of this process."""

    session: pytest.Session
    tests: Mapping[str, Sequence[str]]
    """The tests that call a function, by mutmut's name for that."""
    seconds: Mapping[str, float]
    """How long each test took."""
    most: float
    """So many seconds of tests a mutant is tried with."""
    _items: dict[str, pytest.Item] = field(init=False)
    _killed: defaultdict[str, Counter[str]] = field(init=False, factory=lambda: defaultdict(Counter))
    """How many mutants of a function, of a module, or of all, a test killed."""

    @_items.default
    def _by_name(self) -> dict[str, pytest.Item]:
        return {item.nodeid: item for item in self.session.items}

    def run(self, names: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Each mutant, and what became of it, in the order in which that was known."""
        waiting, running = [*reversed(names)], dict[int, tuple[str, int]]()
        while waiting or running:
            while waiting and len(running) < AT_ONCE:
                name = waiting.pop()
                items = self._of(name)
                if not items:
                    yield name, UNTESTED
                    continue
                killer, said = os.pipe()
                if pid := os.fork():
                    os.close(said)
                    running[pid] = name, killer
                else:
                    self._try(name, items, said)
            if running:
                pid, status = os.wait()
                name, killer = running.pop(pid)
                with os.fdopen(killer, encoding="utf-8") as told:
                    self._learn(name, told.read())
                yield name, _BECAME.get(os.waitstatus_to_exitcode(status), KILLED)

    def _learn(self, name: str, killer: str) -> None:
        """A test killed a mutant, or none did."""
        if killer:
            for place in _places(name):
                self._killed[place][killer] += 1

    def _of(self, name: str) -> Sequence[pytest.Item]:
        """The tests that a mutant concerns, in the order in which they are tried; all, if it is none."""
        if name == NONE:
            return [*self._items.values()]
        killed = [self._killed[place] for place in _places(name)]
        tests = self.tests.get(_places(name)[0], ())
        first = sorted(tests, key=lambda test: (*(-kills[test] for kills in killed), self.seconds[test]))
        return [self._items[test] for test in first if test in self._items]

    def _try(self, name: str, items: Sequence[pytest.Item], said: int) -> NoReturn:
        """In a fork: run the tests up to the first that fails, and say which. The process ends with 1 if one does, with
        2 if there is no such mutant."""
        try:
            if name != NONE:
                _break(name)
        except (LookupError, ValueError, StopIteration):
            os._exit(2)
        with suppress(BaseException):
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 1)
            os.dup2(silent, 2)
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
            resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
            begin = process_time()
            for item, following in zip(items, [*items[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if self.session.testsfailed:
                    os.write(said, item.nodeid.encode())
                    os._exit(1)
                if process_time() - begin > self.most:
                    break
            os._exit(0)
        os._exit(1)


def _places(name: str) -> tuple[str, str, str]:
    """The function that a mutant is of, as mutmut has it, the module, and all that there is."""
    function = name.rpartition("__mutmut_")[0]
    return function, function.rpartition(".")[0], ""
