"""Preaggregation: groups rows by the columns that an expression of Spark reads, before Spark evaluates the expression.

Spark then evaluates it once per combination of these values, and only groups are sent to Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kquery_spark.frontends.catalyst.plans.projections import conjunct_nodes
from kquery_spark.frontends.catalyst.splits.expressible import Expressible, attributes
from kquery_spark.frontends.catalyst.splits.split import PREAGGREGATIONS
from kquery_spark.kernels.ordered_bytes import has_floats
from kquery_spark.spark_bridge.plan.plan_builder import PlanBuilder
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode, aggregate_filter
from kquery_spark.types import names as t

_PARTIAL = "kquery_partial_"
# Types whose equal values give the same result in every function, unlike 0.0 and -0.0, or strings with a collation.
_GROUPED = frozenset(
    {"string", "boolean", "byte", "short", "integer", "long", "date", "timestamp", "timestamp_ntz"}
)


@PREAGGREGATIONS.handles("Aggregate")
def preaggregate(
    node: CatalystNode, children: Sequence[Any], expressible: Expressible, builder: PlanBuilder
) -> Any | None:
    """``sum(x) BY declined(s)`` becomes ``sum(p) BY d`` over ``declined(s) AS d`` over ``sum(x) AS p BY s``."""
    input_ = _Input.match(node.children[0], expressible)
    keys, items = node.trees("groupingExpressions"), node.trees("aggregateExpressions")
    if input_ is None or not all(key.cls == "AttributeReference" for key in keys):
        return None
    calls = [part for item in items for part in item.walk() if part.cls == "AggregateExpression"]
    early = [call for call in calls if not input_.computes(attributes(call))]
    given = {a["exprId"] for a in [*input_.read, *keys]}
    late = attributes(*(call for call in calls if call not in early))
    if not all(a["exprId"] in given for a in late if not input_.computes([a])):
        return None
    if not all(_merges(call, call in early, expressible) for call in calls):
        return None
    # the engine aggregates groups that Spark's terms filter out later, too, which must not raise an error
    if input_.terms and not all(_never_raises(call, expressible) for call in early):
        return None
    if not all(map(builder.is_deterministic, input_.declined)):
        return None
    passed = [key for key in keys if not input_.computes([key])]
    groups = [builder.node(a) for a in _distinct([*input_.read, *passed])]
    partial = {call: builder.alias(builder.node(call), f"{_PARTIAL}{i}") for i, call in enumerate(early)}
    plan = builder.project(input_.columns_below(builder), input_.below(children[0]))
    plan = builder.aggregate(groups, [*groups, *partial.values()], plan)
    if input_.terms:
        plan = builder.filter([builder.node(term) for term in input_.terms], plan)
    values = {call: alias.toAttribute() for call, alias in partial.items()}
    computed = [builder.node(column) for column in input_.computed]
    plan = builder.project([*computed, *groups, *values.values()], plan)
    merged = {call: builder.merged(call, value) for call, value in values.items()}
    upper = [builder.replaced(item, merged) for item in items]
    return builder.aggregate([builder.node(key) for key in keys], upper, plan)


def is_preaggregation(node: CatalystNode) -> bool:
    """Return whether a node is the lower Aggregate of a preaggregation."""
    if node.cls != "Aggregate":
        return False
    names = (str(item.fields.get("name")) for item in node.trees("aggregateExpressions"))
    return any(name.startswith(_PARTIAL) for name in names)


@dataclass(frozen=True)
class _Input:
    """The input of an Aggregate: a Project, optionally over a Filter, with expressions that Spark evaluates.

    columns: the columns of the Project. terms: the terms of the Filter, if Spark evaluates it. computed: the columns that
    Spark computes. depth: the number of these nodes.
    """

    columns: tuple[CatalystNode, ...]
    terms: tuple[CatalystNode, ...]
    computed: tuple[CatalystNode, ...]
    depth: int

    @classmethod
    def match(cls, node: CatalystNode, expressible: Expressible) -> _Input | None:
        """Return the input of an Aggregate; None if it has another form, or if Spark cannot compute it for groups."""
        if node.cls != "Project":
            return None
        columns = node.trees("projectList")
        below, terms, depth = node.children[0], list[CatalystNode](), 1
        while below.cls == "Project" and _only_selects(below):
            below, depth = below.children[0], depth + 1
        if below.cls == "Filter" and any(map(expressible.declines, conjunct_nodes(below.tree("condition")))):
            terms, depth = conjunct_nodes(below.tree("condition")), depth + 1
        computed = [column for column in columns if expressible.declines(column)]
        input_ = cls(tuple(columns), tuple(terms), tuple(computed), depth)
        others = [column for column in columns if column not in computed]
        # the engine evaluates them also for rows that Spark's terms filter out, which must not raise an error
        if terms and not all(map(expressible.is_infallible, others)):
            return None
        return input_ if input_.declined and input_._can_group() else None

    @property
    def declined(self) -> tuple[CatalystNode, ...]:
        """The expressions that Spark evaluates for groups."""
        return (*self.terms, *self.computed)

    @property
    def read(self) -> list[CatalystNode]:
        """The columns that ``declined`` reads."""
        return attributes(*self.declined)

    def _can_group(self) -> bool:
        has_columns = all(column.cls == "Alias" and attributes(column) for column in self.computed)
        return has_columns and bool(self.read) and all(str(a["dataType"]) in _GROUPED for a in self.read)

    def computes(self, columns: Sequence[CatalystNode]) -> bool:
        """Return whether Spark computes any of the columns."""
        ids = {column["exprId"] for column in self.computed}
        return any(column["exprId"] in ids for column in columns)

    def columns_below(self, builder: PlanBuilder) -> list[Any]:
        """The columns of the rows to group."""
        others = [column for column in self.columns if column not in self.computed]
        return [builder.node(column) for column in _distinct([*others, *self.read])]

    def below(self, project: Any) -> Any:
        """The JVM node below the Project and the Filter."""
        node = project
        for _ in range(self.depth):
            node = node.child()
        return node


def _merges(call: CatalystNode, early: bool, expressible: Expressible) -> bool:
    """Return whether merging the values of groups gives the value for all rows, except for the last digits of float sums."""
    if call["mode"] != "Complete" or call["isDistinct"] or aggregate_filter(call) is not None:
        return False
    match call.children[0].cls:
        case "Min" | "Max":
            return _has_one_zero(call.children[0], expressible)
        case "Count":
            return early
        case "Sum":
            return early and _sums_alike(call.children[0], expressible)
    return False


def _never_raises(call: CatalystNode, expressible: Expressible) -> bool:
    return all(map(expressible.is_infallible, call.children[0].children))


def _sums_alike(function: CatalystNode, expressible: Expressible) -> bool:
    """Return whether a sum of partial sums equals the sum: not for decimals (another type) and bigints (overflow)."""
    summed = expressible.translated(function.children[0])
    if summed is None or t.is_decimal(summed.dtype):
        return False
    mode = expressible.eval_mode(function)
    can_overflow = mode == "TRY" or (summed.dtype == t.LONG and mode == "ANSI")
    return t.is_fractional(summed.dtype) or (t.is_integral(summed.dtype) and not can_overflow)


def _has_one_zero(function: CatalystNode, expressible: Expressible) -> bool:
    """Return False for floats and doubles, because MIN and MAX of 0.0 and -0.0 return the one that comes first."""
    value = expressible.translated(function.children[0])
    return value is not None and not has_floats(value.dtype)


def _only_selects(project: CatalystNode) -> bool:
    return all(column.cls == "AttributeReference" for column in project.trees("projectList"))


def _distinct(columns: Iterable[CatalystNode]) -> list[CatalystNode]:
    return list({column["exprId"]: column for column in columns}.values())
