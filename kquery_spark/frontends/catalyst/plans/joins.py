"""Imports Join: Spark's condition is divided into equality keys and a residual condition."""

from __future__ import annotations

from typing import Any

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Call, Column, Expr
from kquery_spark.expr.properties import conjunction
from kquery_spark.frontends.catalyst.plans.context import PLANS, Context
from kquery_spark.frontends.catalyst.plans.projections import conjunct_nodes
from kquery_spark.frontends.catalyst.plans.single_joins import single_join
from kquery_spark.frontends.catalyst.plans.subqueries import ScalarSubqueries
from kquery_spark.frontends.catalyst.scope import PlanScope
from kquery_spark.functions.sql_form import Logic
from kquery_spark.logical import Join, JoinKind
from kquery_spark.logical.conditions import as_key
from kquery_spark.logical.join import JoinKey
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.types import names as t

_SINGLE = "LeftSingle"
_KINDS = {
    "Inner": JoinKind.INNER,
    "Cross": JoinKind.INNER,
    "LeftOuter": JoinKind.LEFT,
    "RightOuter": JoinKind.RIGHT,
    "FullOuter": JoinKind.FULL,
    "LeftSemi": JoinKind.SEMI,
    "LeftAnti": JoinKind.ANTI,
    _SINGLE: JoinKind.LEFT,
}


@PLANS.handles("Join", family="joins", partly="LeftSingle by equalities only")
def join(node: CatalystNode, context: Context) -> PlanScope:
    """Import a join of any kind, including NOT IN (null-aware anti join) and EXISTS as a value (existence join)."""
    kind, exists = _kind(node["joinType"])
    left, right = context.subtree_or_handover(node.children[0]), context.subtree_or_handover(node.children[1])
    subqueries = ScalarSubqueries(context)
    translate = context.translator(_columns_of_both_sides(left, right), subqueries)
    condition = node.optional("condition")
    terms = [] if condition is None else [translate(term) for term in conjunct_nodes(condition)]
    output = left.output if kind in (JoinKind.SEMI, JoinKind.ANTI) else (*left.output, *right.output)
    name = ""
    if exists is not None:
        name = context.names.fresh(exists["name"])
        output = (*left.output, (exists["exprId"], name))
    sides = set(left.plan.schema.names), set(right.plan.schema.names)
    null_aware = _null_aware(terms, sides) if kind is JoinKind.ANTI else None
    if null_aware is not None:
        return PlanScope(Join(left.plan, right.plan, kind, (null_aware,), null_aware=True), output)
    keys: list[JoinKey] = []
    residual: list[Expr] = []
    for term in terms:
        key = _key(term, sides)
        if key is None:
            residual.append(term)
        else:
            keys.append(key)
    if node["joinType"] == _SINGLE:
        if not keys or residual or subqueries.uses:
            raise Unsupported("a LeftSingle join by other conditions than equalities is not supported")
        return single_join(left, right, keys, context)
    plan = Join(
        subqueries.attach(left.plan), right.plan, kind, tuple(keys), conjunction(residual), exists=name
    )
    return PlanScope(plan, output)


def _kind(join_type: Any) -> tuple[JoinKind, CatalystNode | None]:
    if isinstance(join_type, dict) and join_type.get("product-class") == "ExistenceJoin":
        return JoinKind.EXISTENCE, join_type["exists"]
    kind = _KINDS.get(join_type) if isinstance(join_type, str) else None
    if kind is None:
        raise Unsupported(f"a {join_type} join is not supported")
    return kind, None


def _columns_of_both_sides(left: PlanScope, right: PlanScope) -> dict[int, Column | None]:
    """The columns of both sides by expression id; None for an id that occurs on both sides."""
    columns: dict[int, Column | None] = dict(left.columns)
    for expr_id, column in right.columns.items():
        columns[expr_id] = None if expr_id in columns else column
    return columns


def _key(term: Expr, sides: tuple[set[str], set[str]]) -> JoinKey | None:
    """Convert an equality of the two sides to a join key; None for other conditions."""
    key = as_key(term, *sides)
    if key is not None and key.null_safe and key.left.dtype == t.NULL:
        # the equality may be true, but such keys never match in Spark's hash and merge joins
        raise Unsupported("a join by <=> of void columns is not supported")
    return key


def _null_aware(terms: list[Expr], sides: tuple[set[str], set[str]]) -> JoinKey | None:
    """The key of NOT IN, for which Spark's condition is exactly ``a = b OR isnull(a = b)``."""
    if len(terms) != 1:
        return None
    (term,) = terms
    if not isinstance(term, Call) or term.logic is not Logic.OR:
        return None
    for equality, test in (term.args, term.args[::-1]):
        is_test = isinstance(test, Call) and test.logic is Logic.IS_NULL and test.args == (equality,)
        if is_test and isinstance(equality, Call) and equality.logic is Logic.EQUAL:
            return _key(equality, sides)
    return None
