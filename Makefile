# secure-kg: `make demo` runs the main job, `make test` runs all tests; each sets up .venv on first use.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PIP    := $(BIN)/python -m pip --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint bench clean

help:
	@echo "make demo    set up .venv once, then train FedR on UMLS, 1 server and 5 clients: private union, secure sums"
	@echo "make test    set up .venv once, then run all tests"
	@echo "make lint    ruff, and mypy --strict on all packages"
	@echo "make bench   what secure and secret aggregation cost next to their plain twin (BENCH='--dataset ...' for options)"
	@echo "make clean   remove .venv, caches and demo runs"

setup: $(STAMP)

# torch first and alone: it decides which build every later package sees. CrypTen last and without its dependency list.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "error: secure-kg needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet -c constraints.txt torch
	$(PIP) install --quiet -c constraints.txt -e '.[paillier,mpc,dev]'
	$(PIP) install --quiet -c constraints.txt --no-deps crypten
	@touch $@

demo: setup
	$(BIN)/python -m launch.fedr_secagg

test: setup
	$(BIN)/python -m pytest

lint: setup
	$(BIN)/ruff check .
	$(BIN)/mypy --strict protocols secure_kg launch benchmarks

bench: setup
	$(BIN)/python -m benchmarks.overhead $(BENCH)

clean:
	rm -rf $(VENV) runs build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
