# `make demo` and `make test` set up all they need; see README.md.
PYTHON ?= python3
WORK   := .work
BIN    := .venv/bin
VENV   := .venv/installed
UV     := uv==0.13.8
CLUSTER_TESTS = $(BIN)/pytest -q --dist loadgroup -m "not long" tests/integration tests/faults tests/browser
export PYTHONPATH := include
export PYSPARK_PYTHON := $(CURDIR)/$(BIN)/python

.PHONY: setup demo demo-stop check lint types unit test test-long lock docs clean

setup: $(VENV)
	@$(BIN)/python -m local.kafka_jars
	@$(BIN)/python -m local.kafka.class_archive

$(VENV): requirements.txt requirements-dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "twinlog needs Python 3.11 or newer, this is " + sys.version.split()[0])'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "setup: installing Python packages into .venv"
	@$(BIN)/python -m pip install --quiet $(UV)
	@$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python -r requirements.txt -r requirements-dev.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $@

demo: setup
	@$(BIN)/python -m local.demo $(if $(ONCE),--once)

demo-stop:
	@$(BIN)/python -m local.demo --stop

check: $(VENV)
	@$(MAKE) --no-print-directory --output-sync -j2 lint types unit

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types:
	$(BIN)/mypy

unit:
	$(BIN)/pytest -q -n 2 tests/unit

# What failed is tried once more, by itself: clusters, Spark and Airflow share two cores here, and a machine that was
# too slow for one try is no fault of the code. What fails twice is, and what passed at the second try is named.
test: setup check
	$(BIN)/python -m local.debian chromium
	@$(CLUSTER_TESTS) -n 2 --no-loadscope-reorder --cache-clear || { test $$? -eq 1 && echo "test: once more, what failed" \
		&& $(CLUSTER_TESTS) -n 1 -x -rA --show-capture=no --last-failed --last-failed-no-failures none; }

test-long: test
	HYPOTHESIS_PROFILE=long $(BIN)/pytest -q -n 2 tests/unit
	$(BIN)/pytest -q tests -m long

# The benchmarks print a table each; BENCH=quick makes them small.
bench-%: setup
	@PYTHONPATH=include:. $(BIN)/python -P -m benchmarks.$(subst -,_,$*) $(if $(filter quick,$(BENCH)),--quick)

# Resolve requirements.in into the exact set of requirements.txt.
lock:
	$(BIN)/uv pip compile --quiet --no-header --upgrade requirements.in -o requirements.txt
	$(BIN)/uv pip compile --quiet --no-header --upgrade requirements-dev.in -o requirements-dev.txt
	$(BIN)/uv pip compile --quiet --no-header --upgrade requirements-s3.in -o requirements-s3.txt

# Write the generated parts of docs/ anew.
docs: $(VENV)
	$(BIN)/python -m twinlog.model.settings_page > docs/settings.md
	$(BIN)/python -m twinlog.model.metrics_page > docs/metrics.md

clean: demo-stop
	rm -rf .venv $(WORK)
