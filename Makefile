# Six verbs for people and CI: demo, up, test, lint, docs, bench.
VENV ?= .venv
PY = $(VENV)/bin/python
MILL = $(VENV)/bin/mill
# The first Python that fits; `make PYTHON=/path/to/python3.12 install` chooses another.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null && echo $$p && break; done)
PYTEST_ARGS ?=
# Test files at a time.
JOBS ?= $(shell getconf _NPROCESSORS_ONLN)

# Bytecode is kept: a test run or a demo starts a hundred interpreters, and each would compile all modules for a second.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install models demo up down test test-long lint format docs bench bench-setup extractor clean

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "needs Python 3.11, 3.12 or 3.13; name one: make PYTHON=/path/to/python install"; exit 2; }
	@echo "installing into $(VENV): 2.3 GB on the disk, some minutes of download, then one or two minutes of CPU for kernels"
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --constraint constraints.txt --editable '.[flows,train,dev]'
	$(MILL) models fetch
	$(MILL) warm || test $$? = 7  # nothing can be kept here: kernels are compiled when they are called
	touch $@

models: install
	$(MILL) models fetch

demo: models
	$(MILL) demo

up: models
	$(MILL) up

down:
	$(MILL) down

test: models
	$(PY) -m pytest --numprocesses $(JOBS) --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

test-long: models
	$(PY) -m pytest -m long $(PYTEST_ARGS)

lint: install
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports

format: install
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

docs: install
	$(PY) docs/generate.py

# Every module in bench/ that is a program: one subject each.
bench: models bench-setup
	set -e; for name in $$(grep -l '__name__ == "__main__"' -r bench --include='*.py' | grep -v /peers/ | LC_ALL=C sort \
	  | sed -e 's|/__main__.py$$||' -e 's|\.py$$||' -e 's|/|.|g'); do echo "== $$name"; $(PY) -m $$name --quick; done

bench-setup: .bench-venv/.installed

.bench-venv/.installed: $(VENV)/.installed bench/peers.txt bench/peers-even.txt bench/peers-loaders.txt
	test -x .bench-venv/bin/python || $(PY) -m venv .bench-venv
	.bench-venv/bin/python -m pip install --quiet --requirement bench/peers.txt
	.bench-venv/bin/python -m pip install --quiet --no-deps --upgrade --target .bench-venv/even --requirement bench/peers-even.txt
	test -x .bench-venv/loaders/bin/python || $(PY) -m venv .bench-venv/loaders
	.bench-venv/loaders/bin/python -m pip install --quiet --requirement bench/peers-loaders.txt
	touch $@

# Trains the extractor's models anew (LightGBM, in a venv of its own): about 15 minutes; the same digest each time.
extractor: .extractor-venv/.installed
	.extractor-venv/bin/python -m extractor_training --cache .extractor-venv/trafilatura

.extractor-venv/.installed: $(VENV)/.installed extractor_training/requirements.txt
	test -x .extractor-venv/bin/python || $(PYTHON) -m venv .extractor-venv
	.extractor-venv/bin/python -m pip install --quiet --constraint constraints.txt --editable .
	.extractor-venv/bin/python -m pip install --quiet --requirement extractor_training/requirements.txt
	touch $@

clean:
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
