"""Writes logical plans as Substrait plans."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from google.protobuf.message import Error as MessageError

from kquery_spark.errors import SubstraitError
from kquery_spark.expr import Call, Expr, Literal
from kquery_spark.expr.properties import conjunction, is_deterministic
from kquery_spark.frontends.sql.analyzer.catalog import Analyzed, Catalog, SessionFacts
from kquery_spark.frontends.substrait.enums import ALL_ROWS, JOIN_TYPES, SET_OPERATIONS, UNION_ALL
from kquery_spark.frontends.substrait.messages import Message, proto
from kquery_spark.frontends.substrait.types import depth_first_names, write_schema
from kquery_spark.frontends.substrait.write_calls import CallWriter
from kquery_spark.frontends.substrait.write_expressions import ExpressionWriter
from kquery_spark.frontends.substrait.write_scope import OuterRow, WriteScope
from kquery_spark.frontends.substrait.write_tables import write_files, write_no_columns, write_rows
from kquery_spark.frontends.substrait.written_functions import WrittenFunctions
from kquery_spark.logical import (
    Aggregate,
    Expand,
    Filter,
    Join,
    JoinKind,
    Limit,
    LogicalPlan,
    Projection,
    Scan,
    SetOperation,
    Sort,
    Union,
    Window,
)
from kquery_spark.logical.subqueries import walk_with_subqueries
from kquery_spark.sources.memory import MemorySource
from kquery_spark.sources.parquet.source import ParquetSource

#: The version 0.74 of Substrait's specification, which written plans follow.
_MINOR_VERSION = 74
_JOIN_TYPES = {kind: number for number, (_, kind, is_swapped) in JOIN_TYPES.items() if not is_swapped}
_SET_OPERATIONS = {operation: number for number, operation in SET_OPERATIONS.items()}


def write_plan(query: Analyzed, catalog: Catalog, facts: SessionFacts) -> bytes:
    """Return a query as the bytes of a Substrait ``Plan``.

    catalog: the tables that the plan refers to by name. Raises SubstraitError if Substrait cannot express the query with
    exactly the same result.
    """
    try:
        data: bytes = _plan_message(query, catalog, facts).SerializeToString(deterministic=True)
        proto().Plan.FromString(data)  # to check that readers can parse it
    except (RecursionError, MessageError):
        # Protobuf parses messages again to copy them, so the error can also come from a part of the plan.
        raise SubstraitError(
            "the query is nested too deeply to be written as Substrait, whose messages can be nested 100 levels deep"
        ) from None
    return data


def _plan_message(query: Analyzed, catalog: Catalog, facts: SessionFacts) -> Message:
    writer = PlanWriter(catalog, facts)
    plan = proto().Plan()
    plan.version.minor_number, plan.version.producer = _MINOR_VERSION, "kquery_spark"
    root = plan.relations.add().root
    root.input.CopyFrom(writer.relation(query.plan, None))
    for field in query.schema:
        root.names.extend(depth_first_names(field))
    writer.functions.declare(plan)
    return plan


class PlanWriter:
    """Writes the relations of one plan."""

    def __init__(self, catalog: Catalog, facts: SessionFacts) -> None:
        self._catalog = catalog
        self.facts = facts
        self.functions = WrittenFunctions()
        self.expressions = ExpressionWriter(self)
        self._calls = CallWriter(self)
        self._writers: dict[type[LogicalPlan], Callable[..., Message]] = {
            Scan: self._scan,
            Filter: self._filter,
            Projection: self._projection,
            Limit: self._limit,
            Sort: self._sort,
            Join: self._join,
            Aggregate: self._aggregate,
            Window: self._window,
            Union: self._union,
            SetOperation: self._set_operation,
            Expand: self._expand,
        }

    def relation(self, plan: LogicalPlan, outer: OuterRow | None) -> Message:
        """Return the message of a plan. outer: the row of the query around it if the plan is in a subquery."""
        write = self._writers.get(type(plan))
        if write is None:
            raise SubstraitError(f"Substrait has no relation for {plan.label()}")
        message: Message = write(plan, outer)
        return message

    def _scan(self, plan: Scan, outer: OuterRow | None) -> Message:
        message = proto().Rel()
        read = message.read
        # A table is written by name if it is still registered under this name, otherwise with its rows or files.
        if plan.projection == () and isinstance(plan.source, MemorySource) and not plan.filters:
            write_no_columns(read, plan.source)
            return message
        read.base_schema.CopyFrom(write_schema(plan.source.schema))
        registered = self._catalog.table((plan.table,))
        if isinstance(registered, Scan) and registered.source == plan.source:
            read.named_table.names.append(plan.table)
        elif isinstance(plan.source, MemorySource):
            write_rows(read, plan.source)
        elif isinstance(plan.source, ParquetSource):
            write_files(read, plan.source)
        else:
            raise SubstraitError(
                f"{plan.table} is not a registered table, so a Substrait plan cannot refer to it"
            )
        scope = WriteScope({name: i for i, name in enumerate(plan.source.schema.names)}, outer)
        condition = conjunction(list(plan.filters))
        if condition is not None:
            read.filter.CopyFrom(self.expressions.write(condition, scope))
        if plan.projection is not None:
            if not plan.projection:
                raise SubstraitError(f"a scan of {plan.table} without columns cannot be written as Substrait")
            for name in plan.projection:
                read.projection.select.struct_items.add(field=scope.positions[name])
        return message

    def _relation_over(
        self, kind: str, child: LogicalPlan, outer: OuterRow | None
    ) -> tuple[Message, Message, WriteScope]:
        """Write the input of a relation, such as a ``filter``.

        Returns the message of the relation, the message of this kind in it, which the caller completes, and the scope of its
        expressions.
        """
        message = proto().Rel()
        inner = getattr(message, kind)
        inner.input.CopyFrom(self.relation(child, outer))
        return message, inner, WriteScope.of_plans([child], outer)

    def _filter(self, plan: Filter, outer: OuterRow | None) -> Message:
        message, filtered, scope = self._relation_over("filter", plan.child, outer)
        filtered.condition.CopyFrom(self.expressions.write(plan.condition, scope))
        return message

    def _projection(self, plan: Projection, outer: OuterRow | None) -> Message:
        return self._project(plan.child, [e.expr for e in plan.exprs], plan.schema.names, outer)

    def _project(
        self, child: LogicalPlan, exprs: Sequence[Expr], names: Sequence[str], outer: OuterRow | None
    ) -> Message:
        """Write a projection. Substrait's has the columns of its input, too, so the emit mapping selects the expressions."""
        message, project, scope = self._relation_over("project", child, outer)
        for i, expr in enumerate(exprs):
            project.expressions.append(self.expressions.write(expr, scope))
            project.common.emit.output_mapping.append(len(child.schema) + i)
        project.common.emit.SetInParent()  # without expressions, no column is emitted
        project.common.hint.output_names.extend(names)
        return message

    def _limit(self, plan: Limit, outer: OuterRow | None) -> Message:
        message, fetch, _ = self._relation_over("fetch", plan.child, outer)
        # These fields are deprecated, but all readers know them. Acero ignores the expressions that replaced them.
        fetch.offset = plan.offset
        fetch.count = ALL_ROWS if plan.count is None else plan.count
        return message

    def _sort(self, plan: Sort, outer: OuterRow | None) -> Message:
        message, sort, scope = self._relation_over("sort", plan.child, outer)
        sort.sorts.extend(self.expressions.sort_fields(plan.keys, scope))
        return message

    def _join(self, plan: Join, outer: OuterRow | None) -> Message:
        kind = _JOIN_TYPES.get(plan.kind)
        if kind is None or plan.null_aware:
            raise SubstraitError(f"Substrait has no relation for {plan.label()}")
        message = proto().Rel()
        if plan.kind is JoinKind.INNER and plan.matches_all_pairs:
            message.cross.left.CopyFrom(self.relation(plan.left, outer))
            message.cross.right.CopyFrom(self.relation(plan.right, outer))
            return message
        join = message.join
        join.left.CopyFrom(self.relation(plan.left, outer))
        join.right.CopyFrom(self.relation(plan.right, outer))
        join.type = kind
        mode = self.facts.mode
        terms: list[Expr] = [
            Call.of("eq_null_safe" if key.null_safe else "eq", key.left, key.right, mode=mode)
            for key in plan.keys
        ]
        condition = conjunction(terms + ([] if plan.condition is None else [plan.condition]))
        scope = WriteScope.of_plans([plan.left, plan.right], outer)
        condition = Literal(True, pa.bool_()) if condition is None else condition
        join.expression.CopyFrom(self.expressions.write(condition, scope))
        return message

    def _aggregate(self, plan: Aggregate, outer: OuterRow | None) -> Message:
        message, aggregate, scope = self._relation_over("aggregate", plan.child, outer)
        grouping = aggregate.groupings.add()
        for i, key in enumerate(plan.keys):
            written = self.expressions.write(key.expr, scope)
            aggregate.grouping_expressions.append(written)
            # also in the old form, for readers of earlier versions of the specification
            grouping.grouping_expressions.append(written)
            grouping.expression_references.append(i)
        for named in plan.aggregates:
            aggregate.measures.append(self._calls.measure(named.expr, scope))
        aggregate.common.direct.SetInParent()
        aggregate.common.hint.output_names.extend(plan.schema.names)
        return message

    def _window(self, plan: Window, outer: OuterRow | None) -> Message:
        """Write a projection that adds the window calls to the columns of the child."""
        message, project, scope = self._relation_over("project", plan.child, outer)
        for named in plan.calls:
            project.expressions.append(self._calls.window(named.expr, plan, scope))
        project.common.direct.SetInParent()
        project.common.hint.output_names.extend(plan.schema.names)
        return message

    def _union(self, plan: Union, outer: OuterRow | None) -> Message:
        return _set(UNION_ALL, [self.relation(each, outer) for each in plan.inputs])

    def _set_operation(self, plan: SetOperation, outer: OuterRow | None) -> Message:
        sides = [self.relation(plan.left, outer), self.relation(plan.right, outer)]
        return _set(_SET_OPERATIONS[plan.kind, plan.all], sides)

    def _expand(self, plan: Expand, outer: OuterRow | None) -> Message:
        """Write UNION ALL of one projection for each copy that Expand makes of a row.

        The union reads the child once for each copy, so the rows of the child must be the same each time. With LIMIT and
        window functions such as ROW_NUMBER they can differ, because rows with equal sort keys have no fixed order.
        """
        for node in walk_with_subqueries(plan.child):
            if isinstance(node, Limit | Window) or not all(map(is_deterministic, node.expressions)):
                raise SubstraitError(
                    "grouping sets over a LIMIT, a window function, or a nondeterministic expression cannot be written "
                    "as Substrait"
                )
        copies = [self._project(plan.child, exprs, plan.names, outer) for exprs in plan.projections]
        return copies[0] if len(copies) == 1 else _set(UNION_ALL, copies)


def _set(operation: int, inputs: Sequence[Message]) -> Message:
    message = proto().Rel()
    message.set.op = operation
    message.set.inputs.extend(inputs)
    return message
