"""Prevents nested CASE expressions from doubling the JSON of a plan.

``toJSON`` prints the branches and the ELSE of a CaseWhen twice, as its children and as its fields: 20 nested
CASEs would print a million copies, and 30 more than the JVM has memory for. So the JSON is taken from a copy of the plan in
which every CaseWhen is replaced by a hash function of the same children, which prints them once. Its seed identifies it, as
no other function uses that seed. The copy has no other purpose.
"""

from __future__ import annotations

from typing import Any

from kquery_spark.spark_bridge.jvm.calls import Jvm

_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
_TREE = "org.apache.spark.sql.catalyst.trees.TreeNode"
_CASE = f"{_EXPRESSIONS}CaseWhen"
_STAND_IN = f"{_EXPRESSIONS}XxHash64"
_SEED = -8_271_563_391_254_701_911


def replace_case(jvm: Jvm, plan: Any) -> Any:
    """The plan itself if it has no CASE, otherwise a copy that must only be used for ``toJSON``."""
    if not plan.containsPattern(jvm.static("org.apache.spark.sql.catalyst.trees.TreePattern", "CASE_WHEN")):
        return plan
    return plan.transformAllExpressionsWithSubqueries(
        jvm.replacer(_CASE, _TREE, "children", _STAND_IN, _SEED)
    )


def original_class(item: dict[str, Any]) -> str:
    """The class of a node in the JSON; CaseWhen for a stand-in."""
    cls: str = item["class"]
    return _CASE if cls == _STAND_IN and item.get("seed") == _SEED else cls
