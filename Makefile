# make demo   three private answers about the sample data, from the installed command line; again and again, free
# make test   format, lint, types, and the contract of every package, in an environment of its own; needs Python alone
# make test-all  after make test, all other tests: needs Java 17, Chromium and axe-core, or skips what they are for
# make test-versions  the tests of SQL and engines with the oldest and newest sqlglot and DuckDB that are accepted
# make check  the same as make test
# make serve  the shop of the examples on a local server, with two analysts; prints where to look
# make spark  every plan and function on Spark, which needs Java 17
# make slow   the tests that take long: distributions, exhaustive neighbours; and make test-versions
# make bench  speed and accuracy
# make look   how answers look in a notebook, as pictures in build/look (needs Chromium)
# make docs   the site, in build/site
# make clean  removes caches and builds; .venv stays, and the next run installs into it afresh

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadgroup -rs
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Stamps say that the installation is newer than pyproject.toml; they live in the environment and go with it.
USER_STAMP := $(VENV)/.installed
TEST_STAMP := $(VENV)/.installed-test

# Where bytecode is not to be written, every process that a test starts would compile all of dpsql again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo serve test test-all test-versions check lint types contract slow spark bench look docs clean
.DELETE_ON_ERROR:

demo: $(USER_STAMP)
	$(BIN)/dpsql adult_sample/adult.csv --schema adult_sample/adult.toml --epsilon 0.5 \
	  -c "SELECT COUNT(*) AS n FROM adult WHERE age >= 40" \
	  -c "SELECT AVG(age) AS avg_age FROM adult" \
	  -c "SELECT sex, COUNT(*) AS n, AVG(\"hours-per-week\") AS avg_hours FROM adult GROUP BY sex"

serve: $(USER_STAMP)
	$(INSTALL) --editable ".[server]"
	$(BIN)/python examples/serve_shop.py

# The types are checked while the tests run: one alone leaves a core idle.
test check: lint
	$(MAKE) --output-sync=target -j 2 types contract

lint: $(TEST_STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(TEST_STAMP)
	$(BIN)/mypy

contract: $(TEST_STAMP)
	$(PYTEST) --level contract

# In one run with `test`, as in .ci/run, no test runs twice.
test-all: test
	$(PYTEST) --level rest

slow: $(TEST_STAMP)
	$(BIN)/python -m pytest -m slow -n 2
	$(MAKE) test-versions

test-versions: $(TEST_STAMP)
	$(BIN)/python benchmarks/test_versions.py

spark: $(TEST_STAMP)
	$(BIN)/python -m pytest -m "spark or not spark" tests/executors/spark

bench: $(TEST_STAMP)
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/planning.py
	$(BIN)/python benchmarks/language.py
	$(BIN)/python benchmarks/accuracy.py
	$(BIN)/python benchmarks/least_error.py
	$(BIN)/python benchmarks/auto_bounds.py
	$(BIN)/python benchmarks/rollups.py
	$(BIN)/python benchmarks/units.py
	$(BIN)/python benchmarks/ledger.py
	$(BIN)/python benchmarks/server.py
	$(BIN)/python benchmarks/server_start.py
	$(BIN)/python benchmarks/accounting.py

look: $(TEST_STAMP)
	$(INSTALL) nbconvert
	$(BIN)/python benchmarks/look.py

docs: $(TEST_STAMP)
	$(INSTALL) --editable ".[docs]"
	$(BIN)/python -m mkdocs build --strict

clean:
	rm -rf build dist dpsql.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -f $(USER_STAMP) $(TEST_STAMP)
	find . \( -path ./.git -o -path ./$(VENV) \) -prune -o \
	  -type d \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +

# pip is the last thing that venv puts in place: a half-made environment is made again.
$(BIN)/pip:
	$(PYTHON) -m venv $(VENV)

$(USER_STAMP): pyproject.toml | $(BIN)/pip
	$(INSTALL) --editable .
	touch $@

$(TEST_STAMP): pyproject.toml | $(BIN)/pip
	$(INSTALL) --editable ".[test,jupyter]"
	touch $(USER_STAMP) $@
