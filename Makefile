# Two commands need nothing but Python 3.10+: `make demo` and `make test`. The rest is for people who work here.
SHELL := /bin/bash
VENV ?= .venv
PY := $(VENV)/bin/python
ARGS ?=
# processes that run tests, each with a Spark session of its own
WORKERS ?= 2
# A file runs in one process, whose fixtures it shares; files in their order, as the long ones come first then.
DIST := --dist loadfile --no-loadscope-reorder
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Spark's JVM and its Python workers: a Java 17+, and the interpreter of this environment in every worker.
SPARK_ENV = set -e; JAVA_HOME="$$(.ci/ensure-java)"; export JAVA_HOME; \
	PYSPARK_PYTHON="$$(pwd)/$(PY)"; export PYSPARK_PYTHON; \
	PYSPARK_DRIVER_PYTHON="$$PYSPARK_PYTHON"; export PYSPARK_DRIVER_PYTHON; \
	unset SPARK_HOME;

.DEFAULT_GOAL := help
.PHONY: help venv demo test test-all sql coverage faults fuzz matrix tables lowest wheel examples image docs check lint bench proto clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-8s %s\n", $$1, $$2}'

venv: $(VENV)/.installed ## make .venv with the package and everything below needs

$(VENV)/.installed: pyproject.toml
	@set -e; python="$$(.ci/find-python)"; test -x $(PY) || "$$python" -m venv $(VENV)
	@echo "installing kquery-spark and its dependencies into $(VENV) (PySpark is large: a few minutes the first time)"
	@$(PY) -m pip install --quiet --upgrade pip
	@$(PY) -m pip install --quiet --editable '.[dev,bench]'
	@touch $@

demo: venv ## Spark and kquery_spark side by side on taxi and TPC-H data (about three minutes)
	@$(SPARK_ENV) $(PY) -m benchmarks.demo $(ARGS)

test: venv ## run the tests; ARGS="tests/jobs -k csv" selects
	@$(SPARK_ENV) $(PY) -m pytest -n $(WORKERS) $(DIST) $(ARGS)

test-all: venv ## every test that needs no other environment: also the cases that `make test` samples, and `make faults` (hours)
	@$(SPARK_ENV) $(PY) -m pytest -n $(WORKERS) $(DIST) -m "not tables and not wheel and not image" $(ARGS)

faults: venv ## killed processes, 22 configurations, other interpreters, Spark's own odd files (many minutes)
	@$(SPARK_ENV) $(PY) -m pytest -m faults $(ARGS)

sql: venv ## the SQL files of tests/sql through Spark and the engine; ARGS="-k joins" selects
	@$(SPARK_ENV) $(PY) -m pytest -n $(WORKERS) $(DIST) -m "" tests/sql $(ARGS)

coverage: venv ## the tests, then which lines of the driver's code no test runs; ARGS="tests/optimizer" selects
	@$(SPARK_ENV) $(PY) -m pytest -n $(WORKERS) $(DIST) --cov=kquery_spark --cov-report=term-missing:skip-covered $(ARGS)

lint: venv ## style, format, types, layers and words, without the tests
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports
	$(PY) -m tests.docs.words

matrix: venv ## SQL files, every function and TPC-H on each supported PySpark; ARGS="3.5 4.0" selects (an hour)
	@$(SPARK_ENV) $(PY) -m tests.matrix $(ARGS)

tables: venv ## Delta, Iceberg, the object stores and HDFS with every PySpark that they have JARs for (an hour, JARs of 1 GB)
	@$(SPARK_ENV) $(PY) -m pytest -m tables tests/accelerate/tables/test_table_formats.py $(ARGS)

lowest: venv ## the same with the lowest versions that pyproject.toml allows
	@$(SPARK_ENV) $(PY) -m tests.matrix lowest $(ARGS)

wheel: venv ## build the package, install it beside PySpark 3.5.1, 3.5 and the newest, run the README's example (ten minutes)
	@$(SPARK_ENV) $(PY) -m pytest -m wheel tests/test_wheel.py $(ARGS)

examples: venv ## the jobs of examples/ with ibis, sqlframe, dbt, Polars and DuckDB, in an environment of their own
	@test -x .examples/bin/python || $(PY) -m venv .examples
	@.examples/bin/python -m pip install --quiet --editable '.[test,metrics]' -r examples/requirements.txt
	@$(SPARK_ENV) PYSPARK_PYTHON="$$(pwd)/.examples/bin/python" PYSPARK_DRIVER_PYTHON="$$(pwd)/.examples/bin/python" \
		.examples/bin/python -m pytest tests/examples tests/docs/test_examples.py $(ARGS)

image: venv ## build the image of examples/docker and verify a query in it; needs Docker
	@$(PY) -m pytest -m image tests/examples/test_docker.py $(ARGS)

docs: venv ## the documentation as a site in .site; a warning is an error, links are checked
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --quiet

check: lint docs test ## everything a change must pass: lint, the site, then the tests

fuzz: venv ## random queries and expressions in Spark and the engine, five minutes; ARGS="--seconds 60 --seeds 1,2" selects
	@$(SPARK_ENV) $(VENV)/bin/kquery-spark fuzz $(if $(ARGS),$(ARGS),--seconds 300 --seeds 1,2,3,4)

bench: venv ## time Spark and kquery_spark; ARGS="--suite tpch --scale 10 --queries 1,6 --engines all --json FILE"
	@$(SPARK_ENV) $(PY) -m benchmarks.bench run $(ARGS)

# The compiler is pinned: code of newer ones asks for a runtime of their own time, this runs on all from 5.28 on.
proto: ## write the messages' Python code from the .proto files
	python="$$(.ci/find-python)"; test -d .protoc || "$$python" -m venv .protoc
	.protoc/bin/python -m pip install --quiet 'grpcio-tools==1.62.3' 'setuptools<80'
	.protoc/bin/python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. kquery_spark/stages/plan.proto \
		kquery_spark/sources/orc_footer.proto kquery_spark/service/flight_sql.proto

clean: ## remove the environment, caches, and generated data
	rm -rf $(VENV) .examples .lowest .protoc .benchdata .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .site
	rm -rf build dist *.egg-info spark-warehouse metastore_db derby.log .coverage .coverage.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
