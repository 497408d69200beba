"""Reads the bytes of a Substrait plan as a logical plan with Spark's semantics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kquery_spark.errors import SubstraitError
from kquery_spark.expr import Expr, Literal, Named
from kquery_spark.expr.properties import conjunction
from kquery_spark.frontends.sql.analyzer.catalog import Analyzed, Catalog, SessionFacts
from kquery_spark.frontends.substrait.aggregates import AggregateReader
from kquery_spark.frontends.substrait.enums import (
    ALL_ROWS,
    INTERSECTION_PRIMARY,
    JOIN_TYPES,
    SET_OPERATIONS,
    UNION_ALL,
    UNION_DISTINCT,
)
from kquery_spark.frontends.substrait.expressions import ExpressionReader
from kquery_spark.frontends.substrait.extensions import Extensions
from kquery_spark.frontends.substrait.mapping import as_substrait_errors
from kquery_spark.frontends.substrait.messages import Message, kind_of, parse_plan
from kquery_spark.frontends.substrait.null_claims import NullClaims
from kquery_spark.frontends.substrait.output_columns import (
    MAX_COLUMNS,
    apply_emit,
    emit_mapping,
    hinted_names,
    root_names,
)
from kquery_spark.frontends.substrait.scope import OuterQuery, Scope, WindowCalls, columns_of_plan
from kquery_spark.frontends.substrait.tables import TableReader
from kquery_spark.frontends.substrait.types import TypeReader
from kquery_spark.frontends.substrait.windows import WindowReader
from kquery_spark.frontends.unique_names import UniqueNames, unique_names
from kquery_spark.logical import (
    Filter,
    Join,
    JoinKind,
    Limit,
    LogicalPlan,
    Projection,
    SetKind,
    SetOperation,
    Sort,
    Union,
)
from kquery_spark.logical.aggregate import distinct_rows
from kquery_spark.logical.conditions import split_condition
from kquery_spark.logical.join import JoinKey
from kquery_spark.logical.plan import fresh_name
from kquery_spark.sources.base import Source
from kquery_spark.types.names import BOOL, is_integral

_OPTIONAL_COUNT_VERSION = (0, 63)
"""The first version of the specification in which a fetch relation without a count returns all rows. Before, it meant 0."""


OpenParquet = Callable[[Sequence[str]], Source]
"""Opens Parquet files by their paths."""


def read_plan(
    data: bytes, catalog: Catalog, facts: SessionFacts, open_parquet: OpenParquet | None
) -> Analyzed:
    """Return the resolved query of a plan.

    data: the bytes of a Substrait ``Plan``. catalog: the tables that the plan can refer to. open_parquet: opens the
    files that the plan reads by path; None if the plan must not read files. Raises SubstraitError if the plan is malformed,
    or if the engine cannot do exactly what it says.
    """
    try:
        return PlanReader(parse_plan(data), catalog, facts, open_parquet).query()
    except RecursionError:
        raise SubstraitError("the plan is nested too deeply") from None


class PlanReader:
    """Reads the relations of one plan."""

    def __init__(
        self, plan: Message, catalog: Catalog, facts: SessionFacts, open_parquet: OpenParquet | None
    ) -> None:
        self._plan = plan
        self.catalog, self.facts, self.open_parquet = catalog, facts, open_parquet
        self.extensions = Extensions(plan)
        self.types = TypeReader(facts.time_zone, self.extensions.variations)
        self.names = UniqueNames()
        self.null_claims = NullClaims()
        self.expressions = ExpressionReader(self)
        self.aggregates = AggregateReader(self)
        self.windows = WindowReader(self)
        self._tables = TableReader(self)
        self._readers: dict[str, Callable[[Message, OuterQuery | None], LogicalPlan]] = {
            "read": self._tables.read,
            "filter": self._filter,
            "fetch": self._fetch,
            "aggregate": self.aggregates.read,
            "sort": self._sort,
            "join": self._join,
            "cross": self._cross,
            "project": self._project,
            "set": self._set,
        }

    def query(self) -> Analyzed:
        """Return the query of the plan; raises SubstraitError unless the plan has exactly one relation."""
        relations = self._plan.relations
        if len(relations) != 1:
            raise SubstraitError(f"the plan has {len(relations)} relations; it must have exactly one")
        message = relations[0]
        kind = kind_of(message, "rel_type", "a relation of the plan")
        if kind == "rel":
            plan = self.relation(message.rel, None)
            return Analyzed(plan, tuple(plan.schema.names))
        plan = self.relation(message.root.input, None)
        return Analyzed(plan, root_names(plan, message.root.names))

    def relation(self, message: Message, outer: OuterQuery | None) -> LogicalPlan:
        """Return the plan of a relation. outer: the query around it if it is in a subquery."""
        kind = kind_of(message, "rel_type", "a relation")
        reader = self._readers.get(kind)
        if reader is None:
            raise SubstraitError(f"the relation {kind} is not supported")
        inner = getattr(message, kind)
        with as_substrait_errors(f"the relation {kind}"):
            plan = reader(inner, outer)
            # _project applies the emit mapping itself, because it names the columns that are emitted
            if kind != "project":
                plan = apply_emit(plan, inner)
        if len(plan.schema) > MAX_COLUMNS:
            raise SubstraitError(f"the relation {kind} has more than {MAX_COLUMNS:,} columns")
        return plan

    def _filter(self, message: Message, outer: OuterQuery | None) -> LogicalPlan:
        child = self.relation(message.input, outer)
        return Filter(
            child, self.expressions.condition(message.condition, Scope.of_plan(child, outer), "a filter")
        )

    def _fetch(self, message: Message, outer: OuterQuery | None) -> LogicalPlan:
        child = self.relation(message.input, outer)
        version = (self._plan.version.major_number, self._plan.version.minor_number)
        if message.WhichOneof("count_mode") is None and version < _OPTIONAL_COUNT_VERSION:
            raise SubstraitError(
                "a fetch relation without a count is not supported in a plan "
                + (f"of version {version[0]}.{version[1]}" if any(version) else "without a version")
                + ": it can mean no rows or all rows"
            )
        offset, count = (self._row_count(message, f"{name}_mode", name) for name in ("offset", "count"))
        return Limit(child, count, offset or 0)

    def _row_count(self, message: Message, oneof: str, name: str) -> int | None:
        """Return the offset or the count of a fetch relation; None if it is unset, NULL, or the count of all rows.

        oneof: the oneof of two fields, a number and an expression; later versions of the specification have only the second.
        """
        kind = message.WhichOneof(oneof)
        if kind is None:
            return None
        value: Any = getattr(message, kind)
        if kind.endswith("_expr"):
            expr = self.expressions.read(value, Scope(()))
            if not (isinstance(expr, Literal) and (expr.value is None or is_integral(expr.dtype))):
                raise SubstraitError(f"the {name} of a fetch relation must be a literal number of rows")
            value = expr.value
        if value is not None and value < 0 and not (name == "count" and value == ALL_ROWS):
            raise SubstraitError(f"the {name} of a fetch relation is {value}, which is negative")
        return None if value is None or value == ALL_ROWS else int(value)

    def _sort(self, message: Message, outer: OuterQuery | None) -> LogicalPlan:
        child = self.relation(message.input, outer)
        keys = self.expressions.sort_keys(message.sorts, Scope.of_plan(child, outer))
        if not keys:
            raise SubstraitError("a sort relation must have sort fields")
        return Sort(child, keys)

    def _join(self, message: Message, outer: OuterQuery | None) -> LogicalPlan:
        name, kind, swapped = JOIN_TYPES.get(message.type, ("", None, False))
        if kind is None:
            raise SubstraitError(f"the join type {message.type} is not supported")
        left, right = self._sides(message, outer)
        # The condition refers to the columns of left and then of right, also if the sides are swapped afterwards.
        scope = Scope((*columns_of_plan(left), *columns_of_plan(right)), outer)
        condition = None
        if message.HasField("expression"):
            condition = self.expressions.condition(message.expression, scope, f"a {name} join")
        if condition == Literal(True, BOOL):
            condition = None
        if swapped:
            left, right = right, left
        keys, residual = split_condition(condition, left.schema.names, right.schema.names)
        if kind is JoinKind.ANTI and self.extensions.is_datafusion:
            self._check_keys_not_null(left, right, keys)
        plan: LogicalPlan = Join(left, right, kind, tuple(keys), conjunction(residual))
        if message.HasField("post_join_filter"):
            if kind.only_tests_right:
                raise SubstraitError(f"a post_join_filter of a {name} join is not supported")
            after = Scope.of_plan(plan, outer)
            plan = Filter(
                plan, self.expressions.condition(message.post_join_filter, after, "a post_join_filter")
            )
        return plan

    def _check_keys_not_null(self, left: LogicalPlan, right: LogicalPlan, keys: Sequence[JoinKey]) -> None:
        """Raise SubstraitError if a key of an anti join that DataFusion wrote can be NULL.

        DataFusion writes NOT IN and NOT EXISTS as the same join. They differ if keys are NULL: NOT IN then excludes rows
        that NOT EXISTS returns.
        """
        for key in keys:
            for side, expr in ((left, key.left), (right, key.right)):
                if not key.null_safe and not self.null_claims.is_never_null(side, expr):
                    raise SubstraitError(
                        f"an anti join of DataFusion by {expr}, which may be NULL, is not supported: the plan does not "
                        "say whether it is NOT IN or NOT EXISTS, whose results differ"
                    )

    def _cross(self, message: Message, outer: OuterQuery | None) -> LogicalPlan:
        left, right = self._sides(message, outer)
        return Join(left, right, JoinKind.INNER)

    def _sides(self, message: Message, outer: OuterQuery | None) -> tuple[LogicalPlan, LogicalPlan]:
        """Return both inputs of a join. Columns of the right side are renamed if the left side has their names."""
        left, right = self.relation(message.left, outer), self.relation(message.right, outer)
        if not left.column_names & right.column_names:
            return left, right
        used_names = {*left.schema.names, *right.schema.names}
        exprs = []
        for name in right.schema.names:
            unique = fresh_name(name, used_names) if name in left.column_names else name
            used_names.add(unique)
            exprs.append(Named(right.column(name), unique))
        return left, Projection(right, tuple(exprs))

    def _project(self, message: Message, outer: OuterQuery | None) -> LogicalPlan:
        """Return a projection of the columns that the relation emits; by default, the input's columns and the expressions.

        Window calls are computed by Window nodes below the projection. A projection that only adds window calls to the
        input becomes a Window node alone, as in the plans of the SQL frontend; this is why the calls get their final names
        from the hint if all columns are emitted.
        """
        child = self.relation(message.input, outer)
        columns = columns_of_plan(child)
        width = len(columns) + len(message.expressions)
        mapping = emit_mapping(message, width)
        hints = hinted_names(message, width if mapping is None else len(mapping))
        positions = range(width) if mapping is None else mapping
        name_of = {} if hints is None else dict(zip(positions, hints, strict=True))
        # With a mapping, the projection above gives the names in the hint, so columns of window calls need other names.
        windows = WindowCalls({*child.schema.names, *((hints or ()) if mapping is not None else ())})
        exprs: list[Expr] = list(columns)
        for i, each in enumerate(message.expressions):
            name = name_of.get(len(columns) + i, "") if mapping is None else ""
            exprs.append(self.expressions.read(each, Scope(columns, outer, windows, name)))
        plan = windows.add_to(child)
        # The expressions are nothing but window calls, and the Window nodes have all columns in order.
        if mapping is None and windows.groups and exprs == list(columns_of_plan(plan)):
            return plan
        chosen = [exprs[i] for i in positions]
        stems = hints or unique_names([e.default_alias or f"expr_{i + 1}" for i, e in enumerate(chosen)])
        return Projection(plan, tuple(map(Named, chosen, stems)))

    def _set(self, message: Message, outer: OuterQuery | None) -> LogicalPlan:
        inputs = tuple(self.relation(each, outer) for each in message.inputs)
        if len(inputs) < 2:
            raise SubstraitError("a set relation needs at least two inputs")
        operation = message.op
        if operation in (UNION_ALL, UNION_DISTINCT):
            plan: LogicalPlan = Union(_checked_inputs(inputs))
            return plan if operation == UNION_ALL else distinct_rows(plan)
        # INTERSECTION_PRIMARY: rows of the first input that are in any other input. Of two inputs, this is INTERSECT.
        if operation == INTERSECTION_PRIMARY and len(inputs) == 2:
            kind, is_all = SetKind.INTERSECT, False
        elif operation in SET_OPERATIONS:
            kind, is_all = SET_OPERATIONS[operation]
        else:
            raise SubstraitError(f"the set operation {operation} of {len(inputs)} inputs is not supported")
        first, *others = _checked_inputs(inputs)
        for other in others:
            first = SetOperation(first, other, kind, is_all)
        return first


def _checked_inputs(inputs: tuple[LogicalPlan, ...]) -> tuple[LogicalPlan, ...]:
    """Return the inputs of a set relation; raises SubstraitError unless their columns have the same types."""
    for each in inputs:
        if each.schema.types != inputs[0].schema.types:
            raise SubstraitError("the inputs of a set relation have columns of different types")
    return inputs
