"""ExecutionContext registers tables by name, and runs SQL and DataFrame queries over them in this process or on Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from zoneinfo import available_timezones

import pyarrow as pa

from kquery_spark.compiler import compile_query
from kquery_spark.config.engine import EngineConfig
from kquery_spark.config.processor import available_cores
from kquery_spark.context.delta_table import delta_source
from kquery_spark.context.iceberg_table import iceberg_table_source
from kquery_spark.context.session import ContextSession, RegisteredTables, limited_depth
from kquery_spark.context.tables import (
    OnePath,
    Paths,
    StorageOptions,
    arrow_schema,
    check_column,
    connect_paths,
    path_list,
)
from kquery_spark.errors import ConfigError, KQueryError, PlanError, Unsupported, type_name
from kquery_spark.frontends.dataframe import DataFrame
from kquery_spark.frontends.dataframe.builder import resolved_query, table_query
from kquery_spark.frontends.dataframe.functions import is_function
from kquery_spark.frontends.dataframe.user_functions import ArrowUdf, arrow_udf
from kquery_spark.frontends.sql import parse_query
from kquery_spark.frontends.sql.analyzer import Analyzed, SessionFacts
from kquery_spark.frontends.sql.ast.relations import Table
from kquery_spark.functions.user import UserFunction
from kquery_spark.kernels.zones import fixed_offset
from kquery_spark.logical import LogicalPlan, Scan, format_plan
from kquery_spark.runtime.executor import Executor
from kquery_spark.runtime.local import LocalExecutor, ReadAheadBudget, Stop
from kquery_spark.sources.base import Source
from kquery_spark.sources.file_format import Format, PathsRead, SessionForFiles
from kquery_spark.sources.files import check_distinct_names
from kquery_spark.sources.formats import format_named
from kquery_spark.sources.memory import memory_source
from kquery_spark.sources.object_stores.connections import bucket_of
from kquery_spark.sources.parquet.format import PARQUET
from kquery_spark.sources.request_limit import limit_requests

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ExecutionContext:
    """Registers tables and runs queries over them.

    spark: a classic Spark session on which queries run; without one, they run in threads of this process and need no JVM.
    config: engine settings (default: one task per core). time_zone, ansi, case_sensitive: the same as Spark's session
    settings of these names; with ``spark``, the session's settings apply instead. If these change later, queries raise
    Unsupported.
    """

    def __init__(
        self,
        spark: SparkSession | None = None,
        *,
        config: EngineConfig | None = None,
        time_zone: str = "UTC",
        ansi: bool = True,
        case_sensitive: bool = False,
    ) -> None:
        self._spark = spark
        self._file_settings: Mapping[str, str | None] | None = None
        self._tables: dict[str, LogicalPlan] = {}
        self._functions: dict[str, UserFunction] = {}
        if spark is None:
            _check_zone(time_zone)
            self._config = config or EngineConfig(parallelism=available_cores())
            self._facts = SessionFacts(time_zone, ansi, case_sensitive)
            limit_requests(self._config.request_seconds)
            return
        from kquery_spark.context.on_spark import session_facts

        facts, settings = session_facts(spark)
        self._config, self._facts = config or settings, facts
        limit_requests(self._config.request_seconds)

    # --- tables -----------------------------------------------------------------------------------------

    def register_parquet(self, name: str, path: Paths, *, storage_options: StorageOptions = None) -> None:
        """Register Parquet files, directories (``year=2019/`` becomes a column) or globs.

        storage_options: how to access an object store or HDFS. The names are environment variables in lower case, or
        arguments of ``pyarrow.fs``'s filesystems:

        - ``s3://bucket/key`` and ``s3a://``: ``aws_access_key_id``, ``aws_secret_access_key``, ``aws_session_token``,
          ``aws_region``, ``aws_endpoint_url``, ``anonymous``.
        - ``gs://bucket/key``: ``google_service_account`` (the path of a key file), ``access_token``, ``anonymous``,
          ``endpoint_url``.
        - ``abfss://container@account.dfs.core.windows.net/key`` and ``az://container/key``: ``azure_storage_account_name``,
          ``azure_storage_account_key``, ``azure_storage_sas_token``, ``azure_client_id``, ``azure_client_secret``,
          ``azure_tenant_id``, ``use_emulator``.
        - ``hdfs://``: Hadoop's settings, in addition to those of the files in ``HADOOP_CONF_DIR``.

        Without storage_options, the store's default credentials are used, or Spark's Hadoop settings in a context on Spark.
        """
        self._register_files("parquet", name, path, storage_options)

    def register_csv(
        self,
        name: str,
        path: Paths,
        schema: pa.Schema | str | None = None,
        *,
        storage_options: StorageOptions = None,
        **options: Any,
    ) -> None:
        """Register CSV files with Spark's options; ``has_header`` (default: True) is another name of ``header``.

        schema: an Arrow schema or SQL (``"id int, name string"``); without one, types are inferred like in Spark. Without a
        header and a schema, the columns are ``field_1``, ``field_2`` and so on.
        """
        self._register_files("csv", name, path, storage_options, schema, options)

    def register_json(
        self,
        name: str,
        path: Paths,
        schema: pa.Schema | str | None = None,
        *,
        storage_options: StorageOptions = None,
        **options: Any,
    ) -> None:
        """Register files with one JSON object per line, with Spark's options.

        schema: an Arrow schema or SQL (``"id int, tags array<string>"``); without one, it is inferred from all lines like
        in Spark, with the columns in the order of their names.
        """
        self._register_files("json", name, path, storage_options, schema, options)

    def register_orc(self, name: str, path: Paths, *, storage_options: StorageOptions = None) -> None:
        """Register ORC files, directories or globs; storage_options as in ``register_parquet``."""
        self._register_files("orc", name, path, storage_options)

    def register_delta(
        self, name: str, path: OnePath, version: int | None = None, *, storage_options: StorageOptions = None
    ) -> None:
        """Register the current version of a Delta table, or an older one; needs the extra ``kquery-spark[delta]``.

        storage_options as in ``register_parquet``. Raises SourceError if the table cannot be read.
        """
        (path,) = path_list(path)
        connect_paths([path], storage_options, self._spark)
        with self._session_for_files(PARQUET, are_paths=False) as session:
            source = delta_source(path, version, self._facts.time_zone, storage_options, session)
            self.register_source(name, source)

    def register_iceberg(
        self, name: str, table: Any, snapshot: int | None = None, *, storage_options: StorageOptions = None
    ) -> None:
        """Register the current snapshot of an Iceberg table, or an older one; needs the extra ``kquery-spark[iceberg]``.

        table: a ``pyiceberg.table.Table`` of a catalog, or the path of a metadata file (``.../metadata/v3.metadata.json``).
        storage_options as in ``register_parquet``. Raises SourceError if the table cannot be read.
        """
        # No _session_for_files: Iceberg's own reader does not follow Spark's settings for files.
        location = table if isinstance(table, str) else table.location()
        if bucket_of(location) is not None:
            connect_paths([location], storage_options, self._spark)
        self.register_source(
            name, iceberg_table_source(table, snapshot, self._facts.time_zone, storage_options)
        )

    def register_arrow(self, name: str, table: Any) -> None:
        """Register a table in memory: an Arrow table, or any object with an Arrow stream, which is read immediately.

        Examples of the latter (``__arrow_c_stream__``): Polars frames, DuckDB relations, and DataFrames of other contexts.
        """
        if not isinstance(table, pa.Table):
            if not hasattr(table, "__arrow_c_stream__"):
                raise PlanError(f"register_arrow takes an Arrow table or stream, not {type_name(table)}")
            table = pa.RecordBatchReader.from_stream(table).read_all()
        for field, column in zip(table.schema, table.columns, strict=True):
            check_column(field, column)
        self.register_source(name, memory_source(table, self._facts.time_zone))

    def register_pandas(self, name: str, frame: Any) -> None:
        """Register a pandas DataFrame without its index."""
        if not hasattr(frame, "columns"):
            raise PlanError(f"register_pandas takes a pandas DataFrame, not {type_name(frame)}")
        self.register_arrow(name, pa.Table.from_pandas(frame, preserve_index=False))

    def register_source(self, name: str, source: Source) -> None:
        """Register any source, including your own; replaces a table with the same name."""
        self._tables[self._facts.fold(name)] = Scan(name, source)

    def register_function(
        self,
        name: str,
        function: ArrowUdf | Callable[..., Any],
        returns: str = "",
        deterministic: bool = True,
    ) -> None:
        """Register your own function for SQL: one from ``kq.arrow_udf``, or a function of Arrow arrays with its type."""
        if is_function(name.lower()):
            raise PlanError(f"there is a function {name} already; give yours another name")
        if isinstance(function, ArrowUdf):
            if returns or not deterministic:
                raise PlanError(f"{name} says itself what it returns: give only its name and the function")
            udf = function
        else:
            udf = arrow_udf(function, returns, deterministic=deterministic)
        self._functions[name.lower()] = replace(udf.function, name=name)

    def table(self, name: str) -> DataFrame:
        """Return a DataFrame with all rows of a table."""
        return DataFrame(table_query(Table((name,))), self._session(""))

    def sql(self, text: str) -> DataFrame:
        """Parse a query in Spark's SQL; raises SqlError, with line, column and a caret, for a syntax error."""
        if not isinstance(text, str):
            raise PlanError(f"sql takes the text of a query, not {type_name(text)}")
        return DataFrame(parse_query(text), self._session(text))

    def substrait(self, plan: bytes) -> DataFrame:
        """Return the query of a Substrait plan over the tables of this context; needs the extra ``kquery-spark[substrait]``.

        Raises SubstraitError if the plan is malformed, or if the engine cannot do exactly what it says.
        """
        return DataFrame(resolved_query(self.substrait_query(plan)), self._session(""))

    def substrait_query(self, plan: bytes, reads_files: bool = True) -> Analyzed:
        """Return the resolved query of a Substrait plan. reads_files: whether the plan may read files by their paths."""
        from kquery_spark.frontends.substrait.reader import read_plan

        open_parquet = partial(self._open_files, PARQUET) if reads_files else None
        with self.checked_analysis():
            return read_plan(plan, self._catalog(), self._facts, open_parquet)

    def checked_analysis(self) -> AbstractContextManager[None]:
        """Return a context manager for analysis; on Spark, it declines constants that the session evaluates differently."""
        if self._spark is None:
            return nullcontext()
        from kquery_spark.context.on_spark import checked_analysis

        return checked_analysis(self._spark)

    # --- for services, which run the queries of other users --------------------------------------------------------------

    @property
    def facts(self) -> SessionFacts:
        """The settings that decide the meaning of queries."""
        return self._facts

    def table_names(self) -> list[str]:
        """Return the names of the registered tables in ascending order."""
        return self._catalog().table_names()

    def table_plan(self, name: str) -> LogicalPlan | None:
        """Return the plan that reads a table, or None if there is no table with this name."""
        return self._catalog().table((name,))

    def run(self, analyzed: Analyzed) -> pa.Table:
        """Run a resolved query and return its rows."""
        return self._executor(analyzed).table()

    def stream(
        self, analyzed: Analyzed, stop: Stop | None = None, budget: ReadAheadBudget | None = None
    ) -> pa.RecordBatchReader:
        """Run a resolved query and return its rows batch by batch.

        Without Spark, it starts when the first batch is read, and stops when the reader is deleted.
        stop: ends the query early. budget: limits the bytes that all queries together compute before their results are read.
        Queries on Spark ignore both.
        """
        return self._executor(analyzed, stop, budget).reader()

    def _executor(
        self, analyzed: Analyzed, stop: Stop | None = None, budget: ReadAheadBudget | None = None
    ) -> Executor:
        """Compile a resolved query and return its executor: in this process, or on Spark if the context has a session."""
        if self._spark is not None:
            from kquery_spark.context.on_spark import spark_executor

            with limited_depth():
                return spark_executor(self._spark, analyzed, self._config, self._facts, self._file_settings)
        with limited_depth():
            graph = compile_query(analyzed.plan, self._config).graph
        schema = _result_schema(graph.result.plan.schema, analyzed)
        return LocalExecutor(graph, self._config, schema, stop, budget=budget)

    def to_spark(self, analyzed: Analyzed) -> Any:
        """Return a resolved query as a lazy Spark DataFrame."""
        if self._spark is None:
            raise KQueryError(
                "this ExecutionContext has no Spark session; make it with ExecutionContext(spark)"
            )
        from kquery_spark.context.on_spark import plan_frame_on_spark

        with limited_depth():
            return plan_frame_on_spark(self._spark, analyzed, self._config, self._facts, self._file_settings)

    def explain(self, analyzed: Analyzed, trace: bool = False) -> str:
        """Return the plans and stages of a resolved query; with ``trace``, also the plan after each optimizer rule."""
        with limited_depth():
            query = compile_query(analyzed.plan, self._config)
        parts = ["== Logical plan ==", format_plan(query.logical)]
        for step in query.steps if trace else ():
            parts += [
                "",
                f"== Rule {step.rule} ==",
                format_plan(step.plan) if step.changed else "(no change)",
            ]
        return "\n".join(
            [
                *parts,
                "",
                "== Optimized plan ==",
                format_plan(query.optimized),
                "",
                "== Stages ==",
                str(query.graph),
            ]
        )

    def _register_files(
        self,
        format_name: str,
        name: str,
        path: Paths,
        storage_options: StorageOptions,
        schema: pa.Schema | str | None = None,
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        schema = arrow_schema(schema, self._facts.time_zone)
        source = self._open_files(
            format_named(format_name), path_list(path), storage_options, schema, options
        )
        self.register_source(name, source)

    def _open_files(
        self,
        file_format: Format,
        paths: Sequence[str],
        storage_options: Mapping[str, Any] | None = None,
        schema: pa.Schema | None = None,
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> Source:
        """Open files by their paths; in a context on Spark, they follow the session's settings."""
        connect_paths(paths, storage_options, self._spark)
        facts = self._facts
        with self._session_for_files(file_format) as session:
            read = PathsRead(paths, schema, facts.time_zone, facts.case_sensitive, options, session)
            source = file_format.open_paths(read)
            check_distinct_names(source.schema.names, facts.case_sensitive)
            return source

    @contextmanager
    def _session_for_files(
        self, file_format: Format, are_paths: bool = True
    ) -> Iterator[SessionForFiles | None]:
        """Yield the session's settings and time zones for files that the block opens; None without a session.

        All files of a context must be opened under the same settings: those of the first block that succeeds.
        """
        if self._spark is None:
            yield None
            return
        from kquery_spark.context.on_spark import files_session

        settings, zones = files_session(self._spark, file_format, self._file_settings, are_paths)
        yield SessionForFiles(settings, zones)
        self._file_settings = settings.for_files

    def _session(self, text: str) -> ContextSession:
        return ContextSession(self, self._catalog(), dict(self._functions), text)

    def _catalog(self) -> RegisteredTables:
        return RegisteredTables(self._tables, self._facts)


def _result_schema(produced: pa.Schema, analyzed: Analyzed) -> pa.Schema:
    """Return the schema of the result: the types of the last stage, and the nullability before optimization, as in Spark."""
    fields = zip(produced, analyzed.names, analyzed.plan.schema, strict=True)
    return pa.schema([pa.field(name, own.type, field.nullable) for own, name, field in fields])


def _check_zone(name: str) -> None:
    try:
        fixed_offset(name)
    except Unsupported:
        if name not in available_timezones():
            raise ConfigError(
                f"there is no time zone {name!r}; write one like Europe/Berlin or +01:00"
            ) from None
