"""Builds Catalyst plans from the nodes and expressions of an optimized plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from kquery_spark.spark_bridge.jvm.calls import Jvm
from kquery_spark.spark_bridge.plan.plan_facts import Facts
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode

_PLANS = "org.apache.spark.sql.catalyst.plans.logical."
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
_AGGREGATE = f"{_PLANS}Aggregate"
_AGGREGATE_FIELDS = 3  # the number of fields in all releases; later ones also have hints


class PlanBuilder:
    """Builds JVM nodes from the nodes and expressions of one plan; ``facts`` looks up their JVM objects."""

    def __init__(self, jvm: Jvm, facts: Facts) -> None:
        self._jvm = jvm
        self._facts = facts

    def node(self, node: CatalystNode, children: Sequence[Any] | None = None) -> Any:
        """The JVM object of a node or expression, or a copy of it with other children."""
        jvm_node = self._facts.jvm_object(node)
        return jvm_node if children is None else jvm_node.withNewChildren(self._jvm.sequence(children))

    def replaced(self, node: CatalystNode, replacements: Mapping[CatalystNode, Any]) -> Any:
        """A copy of an expression in which some subexpressions are replaced."""
        if node in replacements:
            return replacements[node]
        if not any(part in replacements for part in node.walk()):
            return self.node(node)
        return self.node(node, [self.replaced(child, replacements) for child in node.children])

    def alias(self, expression: Any, name: str) -> Any:
        """An Alias of an expression, with a new expression id."""
        jvm = self._jvm
        new_id = jvm.call(f"{_EXPRESSIONS}NamedExpression", "newExprId")
        return jvm.new(f"{_EXPRESSIONS}Alias", expression, name, new_id, jvm.empty(), jvm.none(), jvm.empty())

    def is_deterministic(self, node: CatalystNode) -> bool:
        """Return whether Spark considers an expression deterministic."""
        return bool(self._facts.jvm_object(node).deterministic())

    def filter(self, terms: Sequence[Any], child: Any) -> Any:
        """A Filter that evaluates the terms in this order."""
        return self._jvm.new(f"{_PLANS}Filter", self._conjunction(terms), child)

    def project(self, items: Sequence[Any], child: Any) -> Any:
        """A Project of named expressions over a plan."""
        return self._jvm.new(f"{_PLANS}Project", self._jvm.sequence(items), child)

    def aggregate(self, keys: Sequence[Any], items: Sequence[Any], child: Any) -> Any:
        """An Aggregate of named expressions over groups of rows."""
        jvm = self._jvm
        more = len(jvm.cls(_AGGREGATE).getConstructors()[0].getParameterTypes()) - _AGGREGATE_FIELDS
        return jvm.new(_AGGREGATE, jvm.sequence(keys), jvm.sequence(items), child, *[jvm.none()] * more)

    def join(self, join: CatalystNode, children: Sequence[Any], terms: Sequence[Any]) -> Any:
        """A copy of a Join whose condition is the conjunction of the terms."""
        jvm_join = self._facts.jvm_object(join)
        condition = self._jvm.some(self._conjunction(terms))
        return self._jvm.new(f"{_PLANS}Join", *children, jvm_join.joinType(), condition, jvm_join.hint())

    def _conjunction(self, terms: Sequence[Any]) -> Any:
        return reduce(lambda a, b: self._jvm.new(f"{_EXPRESSIONS}And", a, b), terms)
