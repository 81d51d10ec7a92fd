# What a developer types. `make` alone lists it; every target does the set-up that it needs.

# ARGS is handed on: make quick ARGS='tests/formats -x'
ARGS ?=
PYTHON_IN_VENV := $(CURDIR)/.venv/bin/python

# Spark's workers run the interpreter of .venv, and the Spark that is installed there.
export PYSPARK_PYTHON := $(PYTHON_IN_VENV)
export PYSPARK_DRIVER_PYTHON := $(PYTHON_IN_VENV)
unexport SPARK_HOME
# Without bytecode every process of a test run compiles the package and the tests anew.
unexport PYTHONDONTWRITEBYTECODE
WITH_JAVA = JAVA_HOME="$$(tools/java_home.sh)" && export JAVA_HOME &&
RUN = "$(PYTHON_IN_VENV)"

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

.PHONY: setup
setup: venv ## make .venv, install the pinned packages, make sure of Java (APT=no: leave the system as it is)
	@tools/java_home.sh >/dev/null

.PHONY: venv
venv:
	@tools/setup.sh

.PHONY: demo
demo: venv ## decode the sample capture on Spark, show the row changes and write them as Parquet
	@$(WITH_JAVA) $(RUN) examples/demo.py $(ARGS)

.PHONY: demo-live
demo-live: venv ## start a PostgreSQL server, follow a slot of it into a Delta lake while tables change, show the lake
	@$(RUN) examples/demo_live.py $(ARGS)

# The tests of one file share a process: with one file a second process would find nothing to do.
PYTEST = $(RUN) -m pytest $(if $(findstring .py,$(ARGS)),,-n logical)

.PHONY: quick
quick: venv ## run what a change needs: all layers and formats, few examples, no Spark, no server
	@HYPOTHESIS_PROFILE=quick JAVA_HOME=/nowhere $(PYTEST) -m 'not spark and not server and not slow' $(ARGS)

.PHONY: test
test: venv ## the same, with Spark and a PostgreSQL server of each kind
	@$(WITH_JAVA) HYPOTHESIS_PROFILE=quick $(PYTEST) -m 'not slow' $(ARGS)

.PHONY: test-all
test-all: venv ## run all tests, with all examples
	@$(WITH_JAVA) $(PYTEST) $(ARGS)

.PHONY: test-rest
test-rest: venv ## run what make test leaves out: the other tests, and all examples of the properties
	@$(WITH_JAVA) $(PYTEST) -m 'slow or examples' $(ARGS)

.PHONY: coverage
coverage: venv ## run the quick tests, list the lines of the packages that none of them runs (compiled code is left out)
	@HYPOTHESIS_PROFILE=quick JAVA_HOME=/nowhere $(PYTEST) -m 'not spark and not server and not slow' --cov $(ARGS)

.PHONY: endure
endure: venv ## kill readers and servers of a live slot, and writers on Spark, 50 times each
	@$(WITH_JAVA) WIREFORMAT_KILLS=50 $(RUN) -m pytest tests/live/test_crashes.py tests/live/test_spark_crashes.py tests/spark/test_capture_faults.py $(ARGS)

.PHONY: environments
environments: ## run the quick tests with the lowest versions, and with every Python that is here (ARGS='lowest 3.10': these)
	@tools/try_environments.sh $(ARGS)

.PHONY: check
check: venv ## formatter, linter, strict types, import rules
	$(RUN) -m ruff format --check .
	$(RUN) -m ruff check .
	$(RUN) -m mypy
	$(RUN) -m pytest -q tests/test_architecture.py

.PHONY: format
format: venv ## format the code and sort its imports
	$(RUN) -m ruff check --select I --fix .
	$(RUN) -m ruff format .

.PHONY: bench
bench: venv ## measure speed and memory, write docs/performance.md
	@$(WITH_JAVA) $(RUN) -m benchmarks $(ARGS)

.PHONY: docs
docs: venv ## build the documentation site in build/site/html; warnings and broken links are errors
	@$(RUN) -m tools.site $(ARGS)

.PHONY: docs-serve
docs-serve: venv ## the same, and show the site on this machine
	@$(RUN) -m tools.site --serve $(ARGS)

.PHONY: release
release: venv ## build wheel and sdist in dist/ and check them, all but the upload
	@$(RUN) -m tools.release $(ARGS)

.PHONY: pin
pin: venv ## write constraints.txt anew, with the newest versions for each Python
	tools/pin.sh

.PHONY: clean
clean: ## remove what tests, demo and tools leave behind
	rm -rf build dist .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache
	rm -rf artifacts derby.log metastore_db spark-warehouse
	find . -path ./.venv -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: distclean
distclean: clean ## the same, and .venv
	rm -rf .venv
