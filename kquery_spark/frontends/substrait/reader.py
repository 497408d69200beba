"""Reads plans of Substrait: from the bytes of a plan to a logical plan, with Spark's answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kquery_spark.errors import PlanError, SubstraitError, Unsupported
from kquery_spark.expr import Expr, Literal, Named
from kquery_spark.expr.properties import conjunction
from kquery_spark.frontends.sql.analyzer.catalog import Analyzed, Catalog, SessionFacts
from kquery_spark.frontends.substrait.expressions import ExpressionReader
from kquery_spark.frontends.substrait.extensions import Extensions
from kquery_spark.frontends.substrait.grouping import GroupingReader
from kquery_spark.frontends.substrait.messages import Message, kind_of, parse_plan
from kquery_spark.frontends.substrait.null_claims import NullClaims
from kquery_spark.frontends.substrait.output_names import hinted_names, unique_names
from kquery_spark.frontends.substrait.scope import Frame, Scope, Windows, columns_of_plan
from kquery_spark.frontends.substrait.tables import TableReader
from kquery_spark.frontends.substrait.types import TypeReader, depth_first_names
from kquery_spark.frontends.substrait.windows import WindowReader
from kquery_spark.frontends.unique_names import UniqueNames
from kquery_spark.logical import (
    Aggregate,
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
from kquery_spark.logical.conditions import split_condition
from kquery_spark.logical.join import JoinKey
from kquery_spark.logical.plan import fresh_name
from kquery_spark.types.names import BOOL

_JOINS = {
    1: ("inner", JoinKind.INNER, False),
    2: ("outer", JoinKind.FULL, False),
    3: ("left", JoinKind.LEFT, False),
    4: ("right", JoinKind.RIGHT, False),
    5: ("left semi", JoinKind.SEMI, False),
    6: ("left anti", JoinKind.ANTI, False),
    8: ("right semi", JoinKind.SEMI, True),
    9: ("right anti", JoinKind.ANTI, True),
}
"""For each JoinType: its name, the kind of join, and whether the sides change places."""
_SET_OPERATIONS = {1: (SetKind.EXCEPT, False), 7: (SetKind.EXCEPT, True), 4: (SetKind.INTERSECT, False)}
_SET_OPERATIONS[8] = (SetKind.INTERSECT, True)
_INTERSECTION_PRIMARY, _UNION_DISTINCT, _UNION_ALL = 3, 5, 6
MAX_COLUMNS = 10_000
"""Columns of a relation."""
_ALL_ROWS = -1


def read_plan(data: bytes, catalog: Catalog, facts: SessionFacts, reads_files: bool = True) -> Analyzed:
    """Return the resolved query of a plan.

    data: the bytes of a Substrait ``Plan``. catalog: its tables. reads_files: whether it may read files by their paths.
    Raises SubstraitError if the plan is malformed, or if the engine cannot do exactly what it says.
    """
    try:
        return PlanReader(parse_plan(data), catalog, facts, reads_files).query()
    except RecursionError:
        raise SubstraitError("the plan is nested too deeply") from None


class PlanReader:
    """Reads the relations of one plan."""

    def __init__(self, plan: Message, catalog: Catalog, facts: SessionFacts, reads_files: bool) -> None:
        self._plan = plan
        self.catalog, self.facts, self.reads_files = catalog, facts, reads_files
        self.extensions = Extensions(plan)
        self.types = TypeReader(facts.time_zone, self.extensions.variations)
        self.names = UniqueNames()
        self.null_claims = NullClaims()
        self.expressions = ExpressionReader(self)
        self.grouping = GroupingReader(self)
        self.windows = WindowReader(self)
        self._tables = TableReader(self)
        self._readers: dict[str, Callable[[Message, Frame | None], LogicalPlan]] = {
            "read": self._tables.read,
            "filter": self._filter,
            "fetch": self._fetch,
            "aggregate": self.grouping.read,
            "sort": self._sort,
            "join": self._join,
            "cross": self._cross,
            "project": self._project,
            "set": self._set,
        }

    def query(self) -> Analyzed:
        """Return the query of the plan, which must have one relation."""
        relations = self._plan.relations
        if len(relations) != 1:
            raise SubstraitError(f"the plan has {len(relations)} relations; a query is one")
        message = relations[0]
        kind = kind_of(message, "rel_type", "a relation of the plan")
        if kind == "rel":
            plan = self.relation(message.rel, None)
            return Analyzed(plan, tuple(plan.schema.names))
        plan = self.relation(message.root.input, None)
        return Analyzed(plan, _root_names(plan, message.root.names))

    def relation(self, message: Message, frame: Frame | None) -> LogicalPlan:
        """Return the plan of a relation. frame: the subquery that it is in."""
        kind = kind_of(message, "rel_type", "a relation")
        reader = self._readers.get(kind)
        if reader is None:
            raise SubstraitError(f"the relation {kind} is not supported")
        inner = getattr(message, kind)
        try:
            plan = reader(inner, frame)
            if kind != "project":
                plan = _emitted(plan, inner)
        except (SubstraitError, RecursionError):
            raise
        except (PlanError, Unsupported) as error:
            raise SubstraitError(f"the relation {kind}: {error}") from None
        if len(plan.schema) > MAX_COLUMNS:
            raise SubstraitError(f"the relation {kind} has more than {MAX_COLUMNS:,} columns")
        return plan

    def _filter(self, message: Message, frame: Frame | None) -> LogicalPlan:
        child = self.relation(message.input, frame)
        return Filter(
            child, self.expressions.condition(message.condition, Scope.of_plan(child, frame), "a filter")
        )

    def _fetch(self, message: Message, frame: Frame | None) -> LogicalPlan:
        child = self.relation(message.input, frame)
        offset, count = (self._row_count(message, f"{name}_mode", name) for name in ("offset", "count"))
        return Limit(child, count, offset or 0)

    def _row_count(self, message: Message, oneof: str, name: str) -> int | None:
        """Return a number of rows, None for all or none; it is a number or a literal."""
        kind = message.WhichOneof(oneof)
        if kind is None:
            return None
        value: Any = getattr(message, kind)
        if kind.endswith("_expr"):
            expr = self.expressions.read(value, Scope(()))
            if not isinstance(expr, Literal) or (expr.value is not None and type(expr.value) is not int):
                raise SubstraitError(f"the {name} of a fetch relation must be a literal number of rows")
            value = expr.value
        if value is not None and value < 0 and not (name == "count" and value == _ALL_ROWS):
            raise SubstraitError(f"the {name} of a fetch relation is {value}")
        return None if value is None or value == _ALL_ROWS else int(value)

    def _sort(self, message: Message, frame: Frame | None) -> LogicalPlan:
        child = self.relation(message.input, frame)
        keys = self.expressions.sort_keys(message.sorts, Scope.of_plan(child, frame))
        if not keys:
            raise SubstraitError("a sort relation without sort fields")
        return Sort(child, keys)

    def _join(self, message: Message, frame: Frame | None) -> LogicalPlan:
        name, kind, swapped = _JOINS.get(message.type, ("", None, False))
        if kind is None:
            raise SubstraitError(f"the join type {message.type} is not supported")
        left, right = self._sides(message, frame)
        scope = Scope((*columns_of_plan(left), *columns_of_plan(right)), frame)
        condition = None
        if message.HasField("expression"):
            condition = self.expressions.condition(message.expression, scope, f"a {name} join")
        if condition == Literal(True, BOOL):
            condition = None
        if swapped:
            left, right = right, left
        keys, residual = split_condition(condition, left.schema.names, right.schema.names)
        if kind is JoinKind.ANTI and self.extensions.is_datafusion:
            self._check_null_keys(left, right, keys)
        plan: LogicalPlan = Join(left, right, kind, tuple(keys), conjunction(residual))
        if message.HasField("post_join_filter"):
            if kind.only_tests_right:
                raise SubstraitError(f"a post_join_filter of a {name} join is not supported")
            after = Scope.of_plan(plan, frame)
            plan = Filter(
                plan, self.expressions.condition(message.post_join_filter, after, "a post_join_filter")
            )
        return plan

    def _check_null_keys(self, left: LogicalPlan, right: LogicalPlan, keys: Sequence[JoinKey]) -> None:
        """Raise SubstraitError if an anti join of DataFusion may stand for NOT IN with NULLs.

        DataFusion writes NOT IN and NOT EXISTS as the same join, but a NULL on either side of NOT IN excludes rows.
        """
        for key in keys:
            for side, expr in ((left, key.left), (right, key.right)):
                if not key.null_safe and not self.null_claims.is_never_null(side, expr):
                    raise SubstraitError(
                        f"an anti join of DataFusion by {expr}, which may be NULL, is not supported: it stands for "
                        "NOT IN or for NOT EXISTS, whose rows are different"
                    )

    def _cross(self, message: Message, frame: Frame | None) -> LogicalPlan:
        left, right = self._sides(message, frame)
        return Join(left, right, JoinKind.INNER)

    def _sides(self, message: Message, frame: Frame | None) -> tuple[LogicalPlan, LogicalPlan]:
        """Return both inputs of a join; columns of the right side get new names if the left side has their names."""
        left, right = self.relation(message.left, frame), self.relation(message.right, frame)
        if not left.column_names & right.column_names:
            return left, right
        used_names = {*left.schema.names, *right.schema.names}
        exprs = []
        for name in right.schema.names:
            unique = fresh_name(name, used_names) if name in left.column_names else name
            used_names.add(unique)
            exprs.append(Named(right.column(name), unique))
        return left, Projection(right, tuple(exprs))

    def _project(self, message: Message, frame: Frame | None) -> LogicalPlan:
        child = self.relation(message.input, frame)
        columns = columns_of_plan(child)
        width = len(columns) + len(message.expressions)
        mapping = _mapping(message, width)
        hints = hinted_names(message, width if mapping is None else len(mapping))
        positions = range(width) if mapping is None else mapping
        name_of = {} if hints is None else dict(zip(positions, hints, strict=True))
        windows = Windows(
            {*child.schema.names, *(hints or ())} if mapping is not None else set(child.schema.names)
        )
        exprs: list[Expr] = list(columns)
        for i, each in enumerate(message.expressions):
            name = name_of.get(len(columns) + i, "") if mapping is None else ""
            exprs.append(self.expressions.read(each, Scope(columns, frame, windows, name)))
        plan = windows.computed_over(child)
        if mapping is None and windows.groups and exprs == list(columns_of_plan(plan)):
            return plan
        chosen = [exprs[i] for i in positions]
        stems = hints or unique_names([e.default_alias or f"expr_{i + 1}" for i, e in enumerate(chosen)])
        return Projection(plan, tuple(map(Named, chosen, stems)))

    def _set(self, message: Message, frame: Frame | None) -> LogicalPlan:
        inputs = tuple(self.relation(each, frame) for each in message.inputs)
        if len(inputs) < 2:
            raise SubstraitError("a set relation needs two inputs")
        operation = message.op
        if operation in (_UNION_ALL, _UNION_DISTINCT):
            plan: LogicalPlan = Union(_checked_inputs(inputs))
            return plan if operation == _UNION_ALL else _distinct(plan)
        if operation == _INTERSECTION_PRIMARY and len(inputs) == 2:
            kind, keeps_all = SetKind.INTERSECT, False
        elif operation in _SET_OPERATIONS:
            kind, keeps_all = _SET_OPERATIONS[operation]
        else:
            raise SubstraitError(f"the set operation {operation} of {len(inputs)} inputs is not supported")
        first, *others = _checked_inputs(inputs)
        for other in others:
            first = SetOperation(first, other, kind, keeps_all)
        return first


def _checked_inputs(inputs: tuple[LogicalPlan, ...]) -> tuple[LogicalPlan, ...]:
    for each in inputs:
        if each.schema.types != inputs[0].schema.types:
            raise SubstraitError("the inputs of a set relation have different columns")
    return inputs


def _distinct(plan: LogicalPlan) -> LogicalPlan:
    return Aggregate(plan, tuple(Named(c, c.name) for c in columns_of_plan(plan)), ())


def _mapping(message: Message, width: int) -> Sequence[int] | None:
    """Return the positions that a relation emits; None for all."""
    if not message.HasField("common") or message.common.WhichOneof("emit_kind") != "emit":
        return None
    mapping = list(message.common.emit.output_mapping)
    if len(mapping) > MAX_COLUMNS:
        raise SubstraitError(f"a relation that emits more than {MAX_COLUMNS:,} columns is not supported")
    for position in mapping:
        if not 0 <= position < width:
            raise SubstraitError(f"a relation emits column {position} of {width}")
    return mapping


def _emitted(plan: LogicalPlan, message: Message) -> LogicalPlan:
    """Return the columns that a relation emits, in its order."""
    mapping = _mapping(message, len(plan.schema))
    if mapping is None:
        return plan
    names = [plan.schema.names[position] for position in mapping]
    hints = hinted_names(message, len(names)) or unique_names(names)
    return Projection(plan, tuple(Named(plan.column(n), h) for n, h in zip(names, hints, strict=True)))


def _root_names(plan: LogicalPlan, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the columns of the result; those of nested fields come after the name of their column."""
    given = list(names)
    columns = []
    for field in plan.schema:
        inner = depth_first_names(field)
        if len(given) < len(inner):
            raise SubstraitError("the plan has fewer names than columns")
        if given[1 : len(inner)] != inner[1:]:
            raise SubstraitError(f"the plan gives other names to the fields within column {given[0]}")
        columns.append(given[0])
        del given[: len(inner)]
    if given:
        raise SubstraitError("the plan has more names than columns")
    return tuple(columns)
