"""Columns and metadata that a plan needs from each leaf, so that scans read only these."""

from __future__ import annotations

from dataclasses import dataclass, field

from kquery_spark.frontends.catalyst.file_columns import input_file_expressions, named_relation
from kquery_spark.sources.file_columns import METADATA
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode

# Nodes that read only the columns that their expressions name.
_NARROW = frozenset({"Project", "Aggregate", "Expand"})
# Nodes that pass their child's columns through: they need what their parent needs.
_PASSING = frozenset(
    {
        "Filter",
        "Sort",
        "GlobalLimit",
        "LocalLimit",
        "Offset",
        "SubqueryAlias",
        "View",
        "Window",
        "WindowGroupLimit",
        "Generate",
        "Join",
        "Repartition",
        "RepartitionByExpression",
        "RebalancePartitions",
    }
)
# Nodes above which the partitioning of the rows below is not observable. A global Sort is another.
_REDISTRIBUTING = frozenset({"Aggregate", "Join", "Window", "Distinct"})
# Nodes that call Python functions. Users repartition the rows below them to distribute these calls over tasks, so such
# a repartitioning must not be removed.
_CALLING = frozenset({"BatchEvalPython", "ArrowEvalPython", "BatchEvalPythonUDTF", "ArrowEvalPythonUDTF"})
# Nodes that depend on the partitioning too; they read all columns and pass none through.
_MAPPING = frozenset(
    {
        *("MapInPandas", "MapInArrow", "PythonMapInArrow"),
        *("FlatMapGroupsInPandas", "FlatMapGroupsInArrow"),
        *("FlatMapCoGroupsInPandas", "FlatMapCoGroupsInArrow"),
    }
)
_ONE_SIDED = frozenset({"LeftSemi", "LeftAnti"})


@dataclass
class RequiredColumns:
    """Columns and metadata that the plan needs from each leaf.

    ids: expression ids of the attributes that some node reads.
    whole: leaves (by identity) whose columns are all read.
    metadata: for each ``_metadata`` attribute, the ordinals of the fields that are read; None stands for all fields.
    named: for each leaf (by identity), the classes of expressions such as ``input_file_name()`` that refer to its files.
    with_unobservable_partitioning: nodes (by identity) whose partitioning the query cannot observe.
    conditions: for each leaf (by identity), the condition of the Filter directly above it.
    filters: True if the plan has a Filter.
    null_filters: True if some Filter has a condition that NULL may pass although a value may not.
    """

    ids: set[int] = field(default_factory=set)
    whole: set[int] = field(default_factory=set)
    metadata: dict[int, set[int | None]] = field(default_factory=dict)
    named: dict[int, set[str]] = field(default_factory=dict)
    with_unobservable_partitioning: set[int] = field(default_factory=set)
    conditions: dict[int, CatalystNode] = field(default_factory=dict)
    filters: bool = False
    null_filters: bool = False

    @classmethod
    def collect(cls, root: CatalystNode) -> RequiredColumns:
        """Collect what the plan needs to produce all of its output columns."""
        columns_read = cls()
        stack = [(root, True, False)]
        while stack:
            node, everything, partitioning_is_unobservable = stack.pop()
            if partitioning_is_unobservable:
                columns_read.with_unobservable_partitioning.add(id(node))
            if not node.children:
                if everything:
                    columns_read.whole.add(id(node))
                continue
            stack += [(plan, True, False) for plan in columns_read._expressions(node)]
            below = (
                partitioning_is_unobservable or node.cls in _REDISTRIBUTING or bool(node.fields.get("global"))
            )
            below = below and node.cls not in _CALLING and node.cls not in _MAPPING
            stack += [
                (child, whole, below)
                for child, whole in zip(node.children, _children(node, everything), strict=True)
            ]
        return columns_read

    def __call__(self, leaf: CatalystNode, attribute: CatalystNode) -> bool:
        """True if a column of a leaf is read."""
        return attribute["exprId"] in self.ids or id(leaf) in self.whole

    def _expressions(self, node: CatalystNode) -> list[CatalystNode]:
        """Add what the expressions of a node read; returns the plans of their subqueries, which are visited later."""
        plans = []
        if node.cls == "Filter":
            self.filters = True
            if not node.children[0].children:
                self.conditions[id(node.children[0])] = node.tree("condition")
        naming = set(input_file_expressions(node))
        if naming and (relation := named_relation(node)) is not None:
            self.named.setdefault(id(relation), set()).update(naming)
        for tree in node.expressions():
            ordinals: dict[
                int, int
            ] = {}  # field ordinals by the identity of the attribute below GetStructField
            for part in tree.walk():
                if part.cls == "GetStructField":
                    ordinals[id(part.children[0])] = part["ordinal"]
                elif part.cls == "AttributeReference":
                    self.ids.add(part["exprId"])
                    if str(part["name"]).lower() == METADATA:  # as the query spells it
                        self.metadata.setdefault(part["exprId"], set()).add(ordinals.get(id(part)))
                elif node.cls == "Filter" and _prefers_null(part):
                    self.null_filters = True
                plan = part.fields.get("plan")
                if isinstance(plan, CatalystNode):
                    plans.append(plan)
        return plans


def _prefers_null(part: CatalystNode) -> bool:
    if part.cls in ("IsNull", "EqualNullSafe"):
        return True
    return part.cls == "Not" and any(inner.cls == "IsNotNull" for inner in part.walk())


def _children(node: CatalystNode, everything: bool) -> list[bool]:
    """For each child: True if all of its columns are read."""
    if node.cls in _NARROW:
        # an Expand's projections may be lost in the JSON
        return [node.fields.get("projections", ()) is None] * len(node.children)
    if node.cls == "Join":
        kind = node.fields.get("joinType")
        one_sided = isinstance(kind, dict) or kind in _ONE_SIDED
        return [everything, everything and not one_sided]
    passes = node.cls in _PASSING or node.cls in _CALLING
    return [everything if passes else True] * len(node.children)
