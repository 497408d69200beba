"""Parses the JSON of Catalyst plans, which ``TreeNode.toJSON`` prints, into plain trees.

The JSON is a list of nodes in pre-order, each with ``num-children``. A field that refers to a child of the same node is the
child's index. An expression of a plan node, or the plan of a subquery, is a nested list of the same form. For example,
``a + 1`` is a list of three nodes:

    [{"class": "...Add", "num-children": 2, "left": 0, "right": 1}, {"class": "...AttributeReference", ...},
     {"class": "...Literal", ...}]

Facts that the JSON omits are read from the JVM (``plan_facts.py``), which finds the JVM object of a node by its ``path``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kquery_spark.cached_property import cached_property
from kquery_spark.errors import Unsupported
from kquery_spark.spark_bridge.plan.case_json import original_class

_SPARK = "org.apache.spark.sql."
EXPRESSION_CLASSES = f"{_SPARK}catalyst.expressions."
"""The prefix of the names of Catalyst's expression classes."""
JAVA_METHOD_OWNERS = (EXPRESSION_CLASSES, f"{_SPARK}catalyst.util.DateTimeUtils")
"""The prefixes of the names of classes whose methods Spark calls for functions."""
CHAR_UTILITIES = f"{_SPARK}catalyst.util.CharVarcharCodegenUtils"
"""The class whose methods pad CHAR columns."""
_PLAN_PACKAGES = ("org.apache.spark.sql.catalyst.plans.logical.", "org.apache.spark.sql.execution.")
_MISSING = object()


@dataclass(frozen=True, eq=False)
class CatalystNode:
    """One Catalyst plan node or expression.

    cls: the simple class name for Spark's own classes (of a case object without its ``$``), and the full name for other
    classes, so that another library's class ``Add`` is not mistaken for Spark's. fields: the constructor arguments in their
    order: scalars, child indexes, parsed trees (a plan node's expressions and subquery plans), lists of these, names of case
    objects, and ints for ``ExprId``. A missing key stands for Scala's ``None``, and ``None`` for a value that the JSON does
    not contain.

    path: the position of the plan node in pre-order, then the position of the expression among all expressions of that plan
    node, then the position in the plan of that (subquery) expression, and so on. So an odd length means a plan node, and an
    even length an expression. None: a copy for which the JVM object cannot be found.
    """

    cls: str
    qualified: str
    fields: Mapping[str, Any]
    children: tuple[CatalystNode, ...]
    path: tuple[int, ...] | None

    @property
    def is_plan(self) -> bool:
        """True for a logical plan node, False for an expression."""
        return len(self.path) % 2 == 1 if self.path else self.qualified.startswith(_PLAN_PACKAGES)

    def __getitem__(self, field: str) -> Any:
        """A constructor argument; raises Unsupported if the JSON does not contain it."""
        value = self.fields.get(field, _MISSING)
        if value is _MISSING or value is None:
            raise Unsupported(f"Spark's plan does not show the {field} of {self.cls}")
        return value

    def optional(self, field: str) -> Any:
        """A constructor argument that is an ``Option``; raises Unsupported if the JSON does not contain its value."""
        return self[field] if field in self.fields else None

    def child(self, field: str) -> CatalystNode:
        """The child that a field refers to by its index."""
        index = self[field]
        if type(index) is not int or not 0 <= index < len(self.children):
            raise Unsupported(f"the {field} of {self.cls} is not one of its children")
        return self.children[index]

    def child_list(self, field: str) -> tuple[CatalystNode, ...]:
        """The children that a field refers to by a list of indexes."""
        indexes = self[field]
        if type(indexes) is not list or any(
            type(i) is not int or not 0 <= i < len(self.children) for i in indexes
        ):
            raise Unsupported(f"the {field} of {self.cls} are not among its children")
        return tuple(self.children[i] for i in indexes)

    def tree(self, field: str) -> CatalystNode:
        """The expression or subquery plan in a field."""
        value = self[field]
        if not isinstance(value, CatalystNode):
            raise Unsupported(f"the {field} of {self.cls} is not an expression")
        return value

    def trees(self, field: str) -> tuple[CatalystNode, ...]:
        """The expressions in a ``Seq`` field."""
        value = self[field]
        if type(value) is not list or not all(isinstance(item, CatalystNode) for item in value):
            raise Unsupported(f"the {field} of {self.cls} are not expressions")
        return tuple(value)

    def walk(self) -> Iterator[CatalystNode]:
        """Yield this node and its descendants in pre-order: children only, not the expressions of plan nodes."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def expressions(self) -> tuple[CatalystNode, ...]:
        """The top-level expressions of a plan node, in the order of its constructor."""
        return self._trees

    @cached_property
    def _trees(self) -> tuple[CatalystNode, ...]:
        """The trees in the fields, which planning walks through several times."""
        return tuple(tree for value in self.fields.values() for tree in _trees_in(value) if tree.path)

    def walk_all(self) -> Iterator[CatalystNode]:
        """Yield all plan nodes and expressions, including those of subqueries: a node, its expressions, its children."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))
            stack.extend(reversed(node._trees))

    def __str__(self) -> str:
        lines: list[str] = []
        stack = [(self, 0)]
        while stack:
            node, depth = stack.pop()
            shown = ", ".join(f"{name}={_show(value)}" for name, value in node.fields.items())
            lines.append(f"{'  ' * depth}{node.cls}({shown})")
            stack.extend((child, depth + 1) for child in reversed(node.children))
        return "\n".join(lines)


def parse_plan(text: str) -> CatalystNode:
    """Parse the JSON of a plan, from ``optimizedPlan().toJSON()``."""
    return _parse(json.loads(text), (), 0, is_plan=True)


def parse_expression(text: str) -> CatalystNode:
    """Parse the JSON of an expression, from ``Expression.toJSON()``; facts that are missing in it cannot be read."""
    return _detached(json.loads(text))


def case_parts(node: CatalystNode) -> tuple[list[tuple[CatalystNode, CatalystNode]], CatalystNode | None]:
    """The (condition, value) pairs of a CaseWhen and its ELSE.

    They are taken from the children, where each has its own position. In ``branches``, two expressions with the same
    string, such as ``try_add(a, 1)`` and ``a + 1``, could not be distinguished.
    """
    paired = len(node.children) // 2 * 2
    pairs = [(node.children[i], node.children[i + 1]) for i in range(0, paired, 2)]
    return pairs, node.children[paired] if paired < len(node.children) else None


def aggregate_filter(node: CatalystNode) -> CatalystNode | None:
    """The FILTER (WHERE ...) of an AggregateExpression."""
    return node.children[1] if len(node.children) > 1 else None


def _parse(raw: list[dict[str, Any]], prefix: tuple[int, ...], base: int, *, is_plan: bool) -> CatalystNode:
    """Build a tree from a list in pre-order; node i gets the path ``prefix + (base + i,)``.

    It goes from the last node to the first, so that children exist before their parent. This needs no recursion, for which
    long chains of ANDs would be too deep.
    """
    stack: list[CatalystNode] = []
    for position in range(len(raw) - 1, -1, -1):
        item = raw[position]
        path = (*prefix, base + position)
        count = item["num-children"]
        children = tuple(stack.pop() for _ in range(count))
        fields = _plan_fields(item, path) if is_plan else _expression_fields(item, path)
        qualified = original_class(item)
        stack.append(CatalystNode(_simple(qualified), qualified, fields, children, path))
    if len(stack) != 1:
        raise Unsupported("Spark's plan is not a single tree")
    return stack[0]


def _plan_fields(item: dict[str, Any], path: tuple[int, ...]) -> dict[str, Any]:
    """The fields of a plan node; its expressions are numbered in the order of ``QueryPlan.expressions``."""
    used = 0

    def convert(value: Any) -> Any:
        nonlocal used
        if type(value) is list:
            if _is_tree(value):
                if _is_plan_tree(value):
                    return _detached(value)
                tree = _parse(value, path, used, is_plan=False)
                used += len(value)
                return tree
            return [convert(part) for part in value]
        return _simplify(value) if type(value) is dict else value

    return {key: convert(value) for key, value in item.items() if key != "class" and key != "num-children"}


def _expression_fields(item: dict[str, Any], path: tuple[int, ...]) -> dict[str, Any]:
    """The fields of an expression: nested plans are parsed, but nested expressions, which repeat children, are not."""
    fields: dict[str, Any] = {}
    for key, value in item.items():
        if key == "class" or key == "num-children":
            continue
        kind = type(value)
        if kind is dict:
            value = _simplify(value)
        elif kind is list and _is_tree(value) and _is_plan_tree(value):
            value = _parse(value, path, 0, is_plan=True)
        fields[key] = value
    return fields


def _detached(raw: list[dict[str, Any]]) -> CatalystNode:
    """Parse a tree that is not reachable by ``expressions`` and ``children`` of the JVM object, so it has no paths."""
    stack: list[CatalystNode] = []
    for item in reversed(raw):
        children = tuple(stack.pop() for _ in range(item["num-children"]))
        fields = {k: _simplify(v) for k, v in item.items() if k != "class" and k != "num-children"}
        qualified = original_class(item)
        stack.append(CatalystNode(_simple(qualified), qualified, fields, children, None))
    return stack[0]


def _simplify(value: Any) -> Any:
    """Convert case objects to names, ExprIds to ints, and trees inside of products (join types) to detached nodes."""
    if type(value) is list:
        return _detached(value) if _is_tree(value) else [_simplify(part) for part in value]
    if type(value) is not dict:
        return value
    if "object" in value and len(value) == 1:
        return _simple(value["object"])
    product = value.get("product-class")
    return value if product is None else _simplify_product(product, value)


def _simplify_product(product: str, value: dict[str, Any]) -> Any:
    if product.endswith(".ExprId"):
        return value["id"]
    return {k: _simple(v) if k == "product-class" else _simplify(v) for k, v in value.items()}


def _is_tree(value: list[Any]) -> bool:
    return bool(value) and type(value[0]) is dict and "num-children" in value[0]


def _is_plan_tree(value: list[Any]) -> bool:
    # Called for the root of a nested tree only. The classes of logical plans are in one of these packages. Expressions are
    # not, except for some aggregate functions, which are always inside of an AggregateExpression.
    return bool(value[0]["class"].startswith(_PLAN_PACKAGES))


_names: dict[str, str] = {}


def _simple(qualified: str) -> str:
    name = _names.get(qualified)
    if name is None:
        name = qualified
        if qualified.startswith(_SPARK):
            name = qualified.rsplit(".", 1)[1].rstrip("$").rsplit("$", 1)[-1]
        _names[qualified] = name
    return name


def _trees_in(value: Any) -> Iterator[CatalystNode]:
    if isinstance(value, CatalystNode):
        yield value
    elif type(value) is list:
        for part in value:
            yield from _trees_in(part)


def _show(value: Any) -> str:
    if isinstance(value, CatalystNode):
        return " ".join(str(value).replace("\n", " ").split())
    if type(value) is list:
        return "[" + ", ".join(_show(part) for part in value) + "]"
    return str(value)
