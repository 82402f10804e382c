# Everything sets itself up: a machine needs python 3.11 and make, nothing else.
PYTHON ?= python3.11
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# The QNN package has wheels for Linux x86_64 and Windows; elsewhere its tests are deselected with the reason.
EXTRAS ?= dev,qnn,hf,genai,dask,parquet
# By this exact version and before anything that wants torch: a range pulls gigabytes of GPU libraries.
TORCH  ?= torch==2.13.0

.PHONY: demo test test-all coverage docs-test test-windows test-windows-short check format benchmarks dist try-dist fuzz docs docs-serve \
        setup clean

setup: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) $(TORCH)
	$(PIP) --editable ".[$(EXTRAS)]"
	touch $@

demo: setup
	$(BIN)/winml sys
	rm -rf build/demo && mkdir -p build
	$(BIN)/winml autoconfig --sample --target cpu --budget 100s -o build/demo

test: setup
	$(BIN)/python -m pytest --numprocesses 2 --dist loadgroup --durations 10

# Also the tests marked `slow`.
test-all: setup
	WINML_TEST_ALL=1 $(BIN)/python -m pytest --numprocesses 2 --dist loadgroup --durations 30

# Which lines of each room the tests run, also in processes that they start; takes about twice as long as `make test`.
coverage: setup
	$(BIN)/python scripts/measure_coverage.py

# Every page of the docs that is run, also the slow ones, each from an empty folder; scripts/run_pages.py runs one alone.
docs-test: setup
	$(PIP) --editable ".[$(EXTRAS),notebooks]"
	WINML_TEST_ALL=1 $(BIN)/python -m pytest tests/docs --numprocesses 2 --dist loadgroup --durations 30

# The tests under a Windows Python in Wine, which is set up in build/windows:
#   make test-windows ARGS="tests/store -k lock" PY=3.13
# `test-windows-short` runs the list scripts/windows/short.txt. Exit 77 of the script: nothing was run, and why.
PY   ?= 3.11
ARGS ?=
test-windows:
	$(PYTHON) scripts/windows/run_tests.py --python $(PY) $(ARGS)

test-windows-short:
	$(PYTHON) scripts/windows/run_tests.py --python $(PY) --short $(ARGS)

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --platform win32
	$(BIN)/mypy --platform darwin
	$(BIN)/mypy --config-file scripts/mypy.ini benchmarks scripts
	$(BIN)/mypy tests/api/user_script.py
	$(BIN)/lint-imports --no-logo

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Damaged files for every reader, for MINUTES (hours are `make fuzz MINUTES=240`); findings are kept in build/fuzz.
MINUTES ?= 3
fuzz: setup
	$(BIN)/python benchmarks/robustness/fuzz.py --minutes $(MINUTES)

# The wheel and the sdist in dist/, the wheel built from the sdist, with what they hold checked.
dist:
	rm -rf dist
	$(PYTHON) -m venv build/dist-env
	build/dist-env/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt build
	build/dist-env/bin/python -m build --outdir dist
	$(PYTHON) scripts/check_dist.py dist

# What a newcomer does first, from that wheel: the first blocks of the README (all of them with BLOCKS=99).
BLOCKS ?= 2
try-dist: dist
	$(PYTHON) scripts/try_readme.py --wheel dist/*.whl --blocks $(BLOCKS)
	$(PYTHON) benchmarks/install_size.py --wheel dist/*.whl

# The documentation site, built into build/site; in an environment of its own, as it needs neither torch nor the tools of the
# tests. Why the variable: docs/decisions/0025-docs-site.md
DOCS   := build/docs-venv
MKDOCS := NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs

docs: $(DOCS)/.installed
	$(MKDOCS) build --strict

docs-serve: $(DOCS)/.installed
	$(MKDOCS) serve

$(DOCS)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[docs]"
	touch $@

benchmarks: setup
	$(BIN)/python benchmarks/startup.py

clean:
	rm -rf $(VENV) build dist
