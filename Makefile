# Everything a fresh machine needs: Python 3.11+, git and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test check coverage mutants callgrind compared clean

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("streamweir needs Python 3.11 or newer; say PYTHON=python3.x") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[proxy,raw]' --group test
	touch $(STAMP)

demo: $(STAMP)  ## Interleaved turns through the proxy with the real SDKs in three dialects, on the embedded upstream.
	$(BIN)/python -m examples.demo

test: $(STAMP)  ## Style, types and all tests.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n auto --dist loadfile

check: test

coverage: $(STAMP)  ## All tests once more, with the lines and branches that none of them runs.
	$(BIN)/coverage run -m pytest
	$(BIN)/coverage report

mutants: $(STAMP)  ## Mutation testing of the stages that hold the rules; OF=stages.scrub of that package only.
	$(BIN)/python -m pip install --quiet --group mutants
	$(BIN)/python -m tests.mutants $(OF)

callgrind: $(STAMP)  ## Instructions an event, against the committed figure; needs valgrind.
	$(BIN)/python -m benchmarks.instructions

compared: $(STAMP)  ## Other translators on our fixtures, in an environment of their own (.compared); writes docs/compared.md.
	$(BIN)/python -m benchmarks.compared

clean:
	rm -rf $(VENV) .compared mutants .mypy_cache .ruff_cache .pytest_cache .coverage
