# Two commands: `make demo` sets up, runs the main job and writes its report; `make test` sets up and passes the tests.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test test-fast fuzz check clean

demo: $(VENV)/.demo
	$(BIN)/abstag run +experiment=demo
	$(BIN)/abstag report --experiment demo -o runs/demo-report --force

test: $(VENV)/.test
	$(BIN)/python -m pytest

test-fast: $(VENV)/.test
	$(BIN)/python -m pytest -m "not slow"

fuzz: $(VENV)/.test
	ABSTAG_FUZZ_SECONDS=120 $(BIN)/python -m pytest tests/test_fuzz.py

check: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf $(VENV) runs

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[transformer]'
	touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@
