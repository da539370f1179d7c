# Verbs of the project; `make help` lists them. Everything runs from .venv, made by `make setup`.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.setup-done
PYTEST := $(BIN)/python -m pytest
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
  --no-emit-index-url --no-emit-find-links
# Most tests wait for processes and sockets: three workers on two cores, each with its own Redis and PostgreSQL.
SPREAD := -n 3 --dist loadfile

.DEFAULT_GOAL := help
.PHONY: help setup lock fmt lint types arch test test-redis7 test-cluster cover interop chaos simulate-day bench bench-asynq bench-leader bench-poll bench-import run check clean

help: ## list the verbs
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

setup: $(STAMP) ## make .venv with every dependency, pinned by hash, and the program .venv/bin/junhong

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11 setup" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

lock: setup ## pin the dependencies of pyproject.toml, and the benchmarks' peers, anew into the lock files
	$(COMPILE) --extra dev pyproject.toml -o requirements.lock
	$(COMPILE) benchmarks/peers/requirements.in -o benchmarks/requirements.lock

fmt: setup ## format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: setup ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup ## mypy, strict
	$(BIN)/mypy

arch: setup ## layers, cycles and budgets
	$(BIN)/lint-imports
	$(PYTEST) -q tests/architecture

test: setup ## the whole suite, on embedded Redis and PostgreSQL
	$(PYTEST) $(SPREAD)

cover: setup ## the whole suite, and which lines and branches it leaves out (5 % at most)
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q $(SPREAD)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

test-redis7: setup ## tests/asynq on the redis-server of PATH (REDIS=program takes another)
	JUNHONG_TEST_REDIS=$(or $(REDIS),redis-server) $(PYTEST) $(SPREAD) tests/asynq

test-cluster: setup ## tests/asynq on a cluster of three nodes
	JUNHONG_TEST_REDIS_CLUSTER=1 $(PYTEST) $(SPREAD) tests/asynq

interop: setup ## against Go's Asynq, its command line and asynqmon (needs Go; REDIS=program takes another)
	@command -v go >/dev/null || { echo "make interop needs Go on PATH" >&2; exit 1; }
	JUNHONG_TEST_REDIS=$(REDIS) $(PYTEST) -n 4 --dist loadfile -m interop tests/interop

chaos: setup ## kill, freeze, cut, flush: a fleet broken on purpose; ends with one JSON line
	$(PYTEST) -q -n 4 --dist load --maxschedchunk 1 -m chaos tests/chaos tests/db/test_retrying.py

simulate-day: setup ## two days and a bit in minutes, over two billing days; ends with one JSON line
	$(PYTEST) -q -n 0 -m simulation tests/simulation

bench: setup ## empty tasks through one worker process; figures of all go to docs/benchmarks.md
	@$(BIN)/python benchmarks/bench_noop.py

bench-asynq: setup ## the task queue against Go's (needs Go); ARGS=--leak for memory, ARGS=--peers for other Python queues
	@$(BIN)/python benchmarks/bench_asynq.py $(ARGS)

bench-leader: setup ## the deciding side with a million cards; ARGS=--cards N for others
	@$(BIN)/python benchmarks/bench_leader.py $(ARGS)

bench-poll: setup ## one consumer process end to end, beside the obvious build; ARGS=--functions for a profile
	@$(BIN)/python benchmarks/bench_poll.py $(ARGS)

bench-import: setup ## card files into cards, 200 000 rows and a stream of 2 GB; ARGS="--rows N --stream-mb N" for others
	@$(BIN)/python benchmarks/bench_import.py $(ARGS)

run: setup ## the main job on embedded Redis and PostgreSQL; Ctrl-C ends it
	@$(BIN)/junhong up

check: lint types arch test ## everything that must be green before a commit lands

clean: ## remove the environments, caches and demo data
	@if [ -L .junhong/postgres ]; then rm -rf "$$(readlink .junhong/postgres)"; fi
	rm -rf $(VENV) benchmarks/peers/.venv build dist .junhong .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage .coverage.* htmlcov
