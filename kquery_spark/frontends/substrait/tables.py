"""Reads the leaves of plans: tables by name, local files, and rows in the plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from kquery_spark.errors import KQueryError, SubstraitError
from kquery_spark.expr import Literal, Named
from kquery_spark.expr.constants import evaluate_constant, literal_vector
from kquery_spark.expr.properties import is_constant
from kquery_spark.frontends.sql.suggestions import did_you_mean
from kquery_spark.frontends.substrait.literals import read_literal
from kquery_spark.frontends.substrait.messages import Message, kind_of
from kquery_spark.frontends.substrait.scope import OuterQuery, Scope, columns_of_plan
from kquery_spark.frontends.substrait.types import is_same_type
from kquery_spark.logical import Filter, Limit, LogicalPlan, Projection, Scan
from kquery_spark.sources.files import local_path
from kquery_spark.sources.listing import is_glob
from kquery_spark.sources.memory import local_source, one_row_source
from kquery_spark.types.names import spark_name

if TYPE_CHECKING:
    from kquery_spark.frontends.substrait.reader import PlanReader

_MAX_ROWS = 100_000
"""The maximum number of rows of a virtual table in a plan."""


class TableReader:
    """Reads ReadRel, the leaf of a plan."""

    def __init__(self, plan: PlanReader) -> None:
        self._plan = plan

    def read(self, message: Message, outer: OuterQuery | None) -> LogicalPlan:
        """Return the plan of a leaf: a scan, its filter, and its projection, in this order."""
        schema = self._plan.types.schema(message.base_schema)
        kind = kind_of(message, "read_type", "a read relation")
        match kind:
            case "named_table":
                plan = self._with_schema(self._named_table(message.named_table.names), schema)
            case "local_files":
                plan = self._with_schema(self._local_files(message.local_files.items), schema)
            case "virtual_table":
                plan = self._virtual_table(message.virtual_table, schema)
            case _:
                raise SubstraitError(f"reading of {kind} is not supported")
        if message.HasField("filter"):
            scope = Scope.of_plan(plan, outer)
            plan = Filter(plan, self._plan.expressions.condition(message.filter, scope, "a read relation"))
        return _apply_mask(plan, message) if message.HasField("projection") else plan

    def _named_table(self, names: Sequence[str]) -> LogicalPlan:
        catalog = self._plan.catalog
        plan = catalog.table(tuple(names))
        if plan is None:
            name, known = ".".join(names), catalog.table_names()
            raise SubstraitError(
                f"unknown table {name}{did_you_mean(name, known)}; the tables are {', '.join(known) or '(none)'}"
            )
        return plan

    def _with_schema(self, plan: LogicalPlan, schema: pa.Schema) -> LogicalPlan:
        """Return the columns of a table that are in the plan's schema of it, in the order of that schema.

        Expressions refer to columns by their position in the plan's schema; the table may have more columns, or another
        order. The table decides whether a column is nullable, because all columns of files are nullable in Spark. Raises
        SubstraitError if a column is missing or has another type.
        """
        fold = self._plan.facts.fold
        # reversed: the first one of several names that differ only in case
        table_names = {fold(name): name for name in reversed(plan.schema.names)}
        table = plan.table if isinstance(plan, Scan) else "the table"
        if isinstance(plan, Scan):
            self._plan.null_claims.add(plan, schema)
        names = []
        for field in schema:
            name = field.name if field.name in plan.column_names else table_names.get(fold(field.name))
            if name is None:
                raise SubstraitError(
                    f"{table} has no column {field.name}; it has {', '.join(plan.schema.names)}"
                )
            column = plan.schema.field(name)
            if not is_same_type(column.type, field.type):
                raise SubstraitError(
                    f"column {name} of {table} is {spark_name(column.type)}, but the plan says {spark_name(field.type)}"
                )
            names.append(name)
        if len(set(names)) < len(names):
            raise SubstraitError(f"the plan reads a column of {table} twice")
        return _select(plan, names)

    def _local_files(self, items: Sequence[Message]) -> LogicalPlan:
        if self._plan.open_parquet is None:
            raise SubstraitError(
                "a plan that is sent to a service must not read files; it can read the tables of the service"
            )
        if not items:
            raise SubstraitError("local_files must have files")
        paths = []
        for each in items:
            if kind_of(each, "file_format", "the format of a file") != "parquet":
                raise SubstraitError(
                    f"files of the format {each.WhichOneof('file_format')} are not supported, only Parquet"
                )
            if each.start or each.length:
                raise SubstraitError("a byte range of a file is not supported; plans must read whole files")
            kind = kind_of(each, "path_type", "the path of a file")
            uri = getattr(each, kind)
            path = local_path(uri) or uri
            if kind != "uri_path_glob" and is_glob(path):
                raise SubstraitError(f"{path} has glob characters, which are supported only in uri_path_glob")
            paths.append(path)
        return Scan(", ".join(paths), self._plan.open_parquet(paths))

    def _virtual_table(self, message: Message, schema: pa.Schema) -> LogicalPlan:
        rows = [[read_literal(v, self._plan.types) for v in row.fields] for row in message.values]
        # the newer form of a row, whose values can be expressions
        rows += [[self._constant(v) for v in row.fields] for row in message.expressions]
        if len(rows) > _MAX_ROWS:
            raise SubstraitError(
                f"a virtual table with more than {_MAX_ROWS:,} rows is not supported; register a table"
            )
        if not schema.names and len(rows) == 1 and not rows[0]:
            return Scan("one_row", one_row_source(), ())
        if not schema.names and not rows:
            return Limit(Scan("one_row", one_row_source(), ()), 0)
        if not schema.names:
            raise SubstraitError("a virtual table without columns must have no row or one")
        for row in rows:
            _check_row(row, schema)
        columns = [
            pa.concat_arrays([pa.repeat(literal_vector(row[i]).plain(), 1).cast(field.type) for row in rows])
            if rows
            else pa.nulls(0, field.type)
            for i, field in enumerate(schema)
        ]
        table = pa.Table.from_arrays(columns, schema=schema)
        return Scan("values", local_source(table))

    def _constant(self, message: Message) -> Literal:
        """Return the value of an expression; raises SubstraitError unless it is constant."""
        expr = self._plan.expressions.read(message, Scope(()))
        if not is_constant(expr):
            raise SubstraitError("the values of a virtual table must be constants")
        try:
            return evaluate_constant(expr)
        except KQueryError as error:
            raise SubstraitError(f"a value of a virtual table: {error}") from None


def _check_row(row: Sequence[Literal], schema: pa.Schema) -> None:
    if len(row) != len(schema):
        raise SubstraitError(f"a row of a virtual table has {len(row)} value(s) for {len(schema)} column(s)")
    for value, field in zip(row, schema, strict=True):
        if not is_same_type(value.dtype, field.type):
            raise SubstraitError(
                f"a value of column {field.name} is {spark_name(value.dtype)}, not {spark_name(field.type)}"
            )
        if value.value is None and not field.nullable:
            raise SubstraitError(
                f"a value of column {field.name} is NULL, but the plan says that it cannot be"
            )


def _select(plan: LogicalPlan, names: Sequence[str]) -> LogicalPlan:
    """Return the plan with only these columns."""
    if plan.schema.names == list(names):
        return plan
    return Projection(plan, tuple(Named(plan.column(n), n) for n in names))


def _apply_mask(plan: LogicalPlan, message: Message) -> LogicalPlan:
    """Return the plan with only the columns that the projection of a read relation, a mask expression, selects."""
    if not message.projection.HasField("select"):
        raise SubstraitError("a projection of a read relation must select columns")
    columns = columns_of_plan(plan)
    names: list[str] = []
    for item in message.projection.select.struct_items:
        if item.HasField("child"):
            raise SubstraitError(
                "a projection of a read relation that selects within a column is not supported"
            )
        if not 0 <= item.field < len(columns):
            raise SubstraitError(f"a projection selects column {item.field} of {len(columns)}")
        if columns[item.field].name in names:
            raise SubstraitError(f"a projection selects column {item.field} twice")
        names.append(columns[item.field].name)
    return _select(plan, names)
