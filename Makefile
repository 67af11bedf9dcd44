# secure-kg: `make demo` runs the main job, `make test` runs the tests; each sets up .venv on first use.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PIP    := $(BIN)/python -m pip --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help setup lock tables docs demo test test-fast test-all lint bench clean

help:
	@echo "make demo       set up .venv once, then train FedR on UMLS, 1 server and 5 clients: private union, secure sums"
	@echo "make test       the tests on all cores: every capability, without repetitions that are marked slow"
	@echo "make test-fast  the inner loop: no mpirun jobs, whole runs or statistics"
	@echo "make test-all   everything, the slow repetitions too"
	@echo "make lint       ruff, and mypy --strict on all packages"
	@echo "make bench      what secure and secret aggregation cost next to their plain twin (BENCH='--dataset ...' for options)"
	@echo "make lock       write the lock files again from pyproject.toml and constraints.txt"
	@echo "make tables     write the tables of the documents again that are rendered from the protocols' disclosures"
	@echo "make docs       build the documentation site in build/site; a warning fails it"
	@echo "make clean      remove .venv, caches, builds, runs, audits and what examples wrote"

setup: $(STAMP)

# Every package by hash, as a wheel (nothing is built here but the project) and without dependencies (the lock has them).
# torch by version; the reason is in requirements.lock. pip's settings decide which build of it is installed.
LOCKED := install --quiet --no-deps --only-binary :all:

$(STAMP): pyproject.toml constraints.txt requirements.lock requirements-cuda.lock .ci/installed.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "error: secure-kg needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) $(LOCKED) --require-hashes -r requirements.lock
	$(PIP) $(LOCKED) -c constraints.txt torch
	if $(BIN)/python .ci/installed.py needs-cuda; then \
		$(PIP) $(LOCKED) --require-hashes -r requirements-cuda.lock; fi
	$(BIN)/python .ci/installed.py trim
	$(PIP) install --quiet --no-deps --no-build-isolation -e .
	$(BIN)/python .ci/installed.py check
	env -u PYTHONDONTWRITEBYTECODE PYTHONPATH=. $(BIN)/python .ci/compiled.py
	@sha256sum requirements.lock > $@

# uv, by hash, in a folder of its own. It reads package indexes and constraints.txt, and writes both lock files.
lock:
	$(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip $(LOCKED) --require-hashes -r .ci/uv.txt
	build/lock/bin/python .ci/lock.py build/lock/bin/uv

tables: setup
	$(BIN)/python .ci/tables.py

# Without the theme's note on its successor.
docs: setup
	env NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "build/site/index.html"

demo: setup
	$(BIN)/python -m launch.fedr_secagg

# Three processes per core, eight at most (tests/conftest.py): many tests wait for deadlines and jobs. A process that
# has nothing left takes tests from the end of another's list, so that tests of one module mostly stay together. Bytecode
# is kept even if the environment says otherwise: every process and every rank of a job would compile the project again.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest --numprocesses auto --maxprocesses 8 --dist worksteal

test: setup
	$(PYTEST)

test-fast: setup
	$(PYTEST) --numprocesses logical -m "not mpi and not long and not slow"

test-all: setup
	$(PYTEST) -m ""

lint: setup
	$(BIN)/ruff check .
	$(BIN)/mypy --strict protocols secure_kg launch benchmarks
	$(BIN)/mypy --strict examples

bench: setup
	$(BIN)/python -m benchmarks.overhead $(BENCH)

clean:
	rm -rf $(VENV) runs audits examples/out build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
