"""CASE and IF."""

from __future__ import annotations

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Case, Expr
from kquery_spark.frontends.catalyst.expressions.translator import EXPRESSIONS, Translator
from kquery_spark.frontends.catalyst.scope import same_type
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode, case_parts
from kquery_spark.types import names as t


@EXPRESSIONS.handles("CaseWhen", family="conditional")
def case_when(node: CatalystNode, translate: Translator) -> Expr:
    """CASE WHEN."""
    pairs, otherwise = case_parts(node)
    branches = tuple((translate(condition), translate(value)) for condition, value in pairs)
    return _case(Case(branches, None if otherwise is None else translate(otherwise)))


@EXPRESSIONS.handles("If", family="conditional")
def if_(node: CatalystNode, translate: Translator) -> Expr:
    """IF(condition, a, b)."""
    condition, yes, no = (translate(node.child(f)) for f in ("predicate", "trueValue", "falseValue"))
    return _case(Case(((condition, yes),), no))


def _case(case: Case) -> Case:
    """Return the CASE; raises Unsupported unless all of its values have the same type."""
    values = [value for _, value in case.branches]
    if case.otherwise is not None:
        values.append(case.otherwise)
    for value in values:
        if not same_type(value.dtype, case.dtype):
            have = f"{t.spark_name(case.dtype)} and {t.spark_name(value.dtype)}"
            raise Unsupported(f"the branches of a CASE have different types, {have}")
    return case
