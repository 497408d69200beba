"""What a plan reads of its leaves, so that scans start narrow and plans print short, and what nobody sees of its nodes."""

from __future__ import annotations

from dataclasses import dataclass, field

from kquery_spark.frontends.catalyst.file_columns import input_file_expressions, named_relation
from kquery_spark.sources.file_columns import METADATA
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode

# Nodes that read what their expressions name and nothing else of their children.
_NARROW = frozenset({"Project", "Aggregate", "Expand"})
# Nodes that pass on what is read above them.
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
# Nodes above which nobody sees in which partitions the rows below are; so is a Sort of all rows.
_REDISTRIBUTING = frozenset({"Aggregate", "Join", "Window", "Distinct"})
# Nodes whose work users spread over tasks by the partitions below.
_CALLING = frozenset({"BatchEvalPython", "ArrowEvalPython", "BatchEvalPythonUDTF", "ArrowEvalPythonUDTF"})
# As these, nodes that read all columns and pass on none.
_MAPPING = frozenset(
    {
        *("MapInPandas", "MapInArrow", "PythonMapInArrow"),
        *("FlatMapGroupsInPandas", "FlatMapGroupsInArrow"),
        *("FlatMapCoGroupsInPandas", "FlatMapCoGroupsInArrow"),
    }
)
_ONE_SIDED = frozenset({"LeftSemi", "LeftAnti"})


@dataclass
class Wanted:
    """Expression ids that some node reads, and the leaves (by identity) all of whose columns are read.

    ``metadata``: the ordinals of the fields of each ``_metadata`` attribute that are read, None for a read of all.
    ``named``: by a leaf's identity, the classes of expressions that name the file being read, which is one of the leaf's.
    ``redistributed``: nodes (by identity) whose partitions nobody sees.
    ``conditions``: by a leaf's identity, the condition of the filter right above it.
    ``filters``: there is one. ``null_filters``: it has a condition that NULL may pass and a value may not.
    """

    ids: set[int] = field(default_factory=set)
    whole: set[int] = field(default_factory=set)
    metadata: dict[int, set[int | None]] = field(default_factory=dict)
    named: dict[int, set[str]] = field(default_factory=dict)
    redistributed: set[int] = field(default_factory=set)
    conditions: dict[int, CatalystNode] = field(default_factory=dict)
    filters: bool = False
    null_filters: bool = False

    @classmethod
    def of(cls, root: CatalystNode) -> Wanted:
        """The columns that a plan reads to produce all of its output."""
        columns_read = cls()
        stack = [(root, True, False)]
        while stack:
            node, everything, redistributed = stack.pop()
            if redistributed:
                columns_read.redistributed.add(id(node))
            if not node.children:
                if everything:
                    columns_read.whole.add(id(node))
                continue
            stack += [(plan, True, False) for plan in columns_read._expressions(node)]
            below = redistributed or node.cls in _REDISTRIBUTING or bool(node.fields.get("global"))
            below = below and node.cls not in _CALLING and node.cls not in _MAPPING
            stack += [
                (child, whole, below)
                for child, whole in zip(node.children, _children(node, everything), strict=True)
            ]
        return columns_read

    def __call__(self, leaf: CatalystNode, attribute: CatalystNode) -> bool:
        """Whether a column of a leaf is read."""
        return attribute["exprId"] in self.ids or id(leaf) in self.whole

    def _expressions(self, node: CatalystNode) -> list[CatalystNode]:
        """Adds what a node's expressions read; returns the plans of their subqueries, still to be visited."""
        plans = []
        if node.cls == "Filter":
            self.filters = True
            if not node.children[0].children:
                self.conditions[id(node.children[0])] = node.tree("condition")
        naming = set(input_file_expressions(node))
        if naming and (relation := named_relation(node)) is not None:
            self.named.setdefault(id(relation), set()).update(naming)
        for tree in node.expressions():
            ordinals: dict[int, int] = {}  # of fields, by the identity of the attribute below
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
    """Whether all columns of each child are read."""
    if node.cls in _NARROW:
        # an Expand's projections may be lost in the JSON
        return [node.fields.get("projections", ()) is None] * len(node.children)
    if node.cls == "Join":
        kind = node.fields.get("joinType")
        one_sided = isinstance(kind, dict) or kind in _ONE_SIDED
        return [everything, everything and not one_sided]
    passes = node.cls in _PASSING or node.cls in _CALLING
    return [everything if passes else True] * len(node.children)
