# Everything sets itself up: `make demo` and `make test` work on a fresh machine with Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test check format lint types contracts bench bench-wire hostile fuzz kill9 powerloss sim mutants clean help

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(None if v >= (3, 11) else "surehook needs Python 3.11 or newer, this is %d.%d" % v[:2])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip --constraint constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[server]' --group dev
	@touch $(READY)

demo: $(READY) ## a server, five receivers, a kill -9 in the middle
	$(BIN)/surehook demo

test: $(READY) ## all tests
	$(BIN)/python -m pytest -n 2 --dist worksteal

check: $(READY) format lint types contracts ## before each commit: format, lint, types, fast tests
	$(BIN)/python -m pytest -n 2 --dist worksteal -m 'not slow'

format: $(READY)
	$(BIN)/ruff format src tests bench

lint: $(READY)
	$(BIN)/ruff format --check src tests bench
	$(BIN)/ruff check src tests bench

types: $(READY)
	$(BIN)/mypy

contracts: $(READY)
	$(BIN)/lint-imports

bench: $(READY) ## throughput, latency, isolation, lateness: JSON and a table
	$(BIN)/surehook bench all

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
