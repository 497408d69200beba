"""The magics ``%%kquery`` and ``%kquery``: run the SQL of a cell or a line through the engine, in the active session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from pyspark.sql import DataFrame, SparkSession

import kquery_spark as kq
from kquery_spark.accelerate.explain import Explanation
from kquery_spark.cli.failures import Exit, explain_failure
from kquery_spark.errors import ConfigError, SqlError
from kquery_spark.notebook.options import USAGE, MagicOptions, parse_line
from kquery_spark.notebook.result import QueryResult, local_result, spark_result
from kquery_spark.spark_bridge.plan.query_text import check_query
from kquery_spark.spark_bridge.session.bypass import bypass
from kquery_spark.spark_bridge.session.failures import without_error_log
from kquery_spark.verify.verify import Report

MagicResult = QueryResult | Explanation | Report


def register(shell: InteractiveShell) -> None:
    """Add the magics to a shell."""

    def kquery(line: str, cell: str | None = None) -> MagicResult:
        """Run SQL in the active Spark session through kquery_spark and show the first rows."""
        with _one_sentence():
            options, text = parse_line(line, is_cell=cell is not None)
            sql = (text if cell is None else cell).strip().rstrip(";")
            if not sql:
                raise ConfigError(f"the SQL is missing: {USAGE}")
            # an enabled session would run statements and actions in the engine
            with bypass() if options.engine == "spark" else nullcontext():
                frame = _frame(sql, options, shell.user_ns)
                if options.name is not None:
                    shell.user_ns[options.name] = frame
                return _result(frame, options)

    shell.register_magic_function(kquery, "line_cell", "kquery")


def _frame(sql: str, options: MagicOptions, names: Mapping[str, Any]) -> Any:
    """Return the DataFrame of the SQL: one of Spark, an accelerated one, or one of an ``ExecutionContext``."""
    if options.engine == "local":
        return _context(options.context, names).sql(sql)
    session = _session(names)
    if options.explain or options.verify:
        check_query(session, sql)
    frame = session.sql(sql)
    return frame if options.engine == "spark" else kq.kquery_plan(frame, when=options.when)


def _result(frame: Any, options: MagicOptions) -> MagicResult:
    if not isinstance(frame, DataFrame):
        if options.explain:
            raise ConfigError(
                "--explain is for queries in Spark; frame.explain() prints the plan of a local query"
            )
        return local_result(frame, options.rows)
    if options.explain:
        return kq.explain(frame)
    if options.verify:
        return kq.verify(frame)
    return spark_result(frame, options.rows)


def _session(names: Mapping[str, Any]) -> SparkSession:
    """Return the active session of this thread, or the notebook's variable ``spark``."""
    session = SparkSession.getActiveSession() or names.get("spark")
    if session is None:
        raise ConfigError(
            "no Spark session is active: create one with spark = kq.configure(SparkSession.builder).getOrCreate()"
        )
    return session


def _context(name: str | None, names: Mapping[str, Any]) -> kq.ExecutionContext:
    """Return the ExecutionContext in the variable ``name``, or the only one of the notebook; a new one if it has none."""
    if name is not None:
        context = names.get(name)
        if not isinstance(context, kq.ExecutionContext):
            raise ConfigError(f"{name} is not an ExecutionContext of this notebook")
        return context
    contexts = {key: v for key, v in names.items() if isinstance(v, kq.ExecutionContext) and key[:1] != "_"}
    different = list({id(v): v for v in contexts.values()}.values())
    if len(different) > 1:
        raise ConfigError(
            f"there are several contexts, so choose one with --context: {', '.join(sorted(contexts))}"
        )
    return different[0] if different else kq.ExecutionContext()


@contextmanager
def _one_sentence() -> Iterator[None]:
    """Turn an error of the query or the options into one sentence with its position in the SQL.

    Unexpected errors are raised unchanged.
    """
    with without_error_log():
        try:
            yield
        except UsageError:
            raise
        except Exception as error:
            failure = explain_failure(error)
            if failure.code is Exit.UNEXPECTED:
                raise
            sentence = str(error).partition("\n")[0] if isinstance(error, SqlError) else failure.message
            raise UsageError(sentence) from None
