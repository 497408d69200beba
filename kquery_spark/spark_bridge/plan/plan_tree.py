"""Catalyst plans as plain trees, parsed from the JSON that ``TreeNode.toJSON`` prints.

The JSON is a pre-order list of nodes with ``num-children``; a field that names a child of the same node holds
the child's index, an expression of a plan node is a nested list of the same form, and so is the plan of a
subquery. What the JSON leaves out is read from the JVM by :mod:`~kquery_spark.spark_bridge.plan.plan_facts`, for
which every node carries its ``path``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

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

    ``cls`` is the simple class name of Spark's own classes (a case object without its ``$``) and the full
    name of all other classes, so that a foreign class ``Add`` is never taken for Spark's. ``fields`` are the
    constructor arguments in their order: scalars, child indexes, parsed trees (of a plan node's expressions
    and of subquery plans), lists of these, names of case objects, ints for ``ExprId``. An absent key is
    Scala's ``None``; a ``None`` is a value the JSON does not carry.

    ``path`` leads from the root plan to the node: the position of the plan node in pre-order, then the
    position of the expression among all expressions below that plan node, then the position in the plan of
    that (subquery) expression, and so on. Odd length means a plan node, even length an expression; ``None``
    a copy that the JVM object cannot be found for.
    """

    cls: str
    qualified: str
    fields: Mapping[str, Any]
    children: tuple[CatalystNode, ...]
    path: tuple[int, ...] | None

    @property
    def is_plan(self) -> bool:
        """Whether this is a logical plan node, as opposed to an expression."""
        return len(self.path) % 2 == 1 if self.path else self.qualified.startswith(_PLAN_PACKAGES)

    def __getitem__(self, field: str) -> Any:
        """A constructor argument the JSON must carry; raises Unsupported when it does not."""
        value = self.fields.get(field, _MISSING)
        if value is _MISSING or value is None:
            raise Unsupported(f"Spark's plan does not show the {field} of {self.cls}")
        return value

    def optional(self, field: str) -> Any:
        """A constructor argument that is an ``Option``: None when absent, Unsupported when lost."""
        return self[field] if field in self.fields else None

    def child(self, field: str) -> CatalystNode:
        """The child a field names by its index."""
        index = self[field]
        if type(index) is not int or not 0 <= index < len(self.children):
            raise Unsupported(f"the {field} of {self.cls} is not one of its children")
        return self.children[index]

    def child_list(self, field: str) -> tuple[CatalystNode, ...]:
        """The children a field names by a list of indexes."""
        indexes = self[field]
        if type(indexes) is not list or any(
            type(i) is not int or not 0 <= i < len(self.children) for i in indexes
        ):
            raise Unsupported(f"the {field} of {self.cls} are not among its children")
        return tuple(self.children[i] for i in indexes)

    def tree(self, field: str) -> CatalystNode:
        """The one expression (or subquery plan) a field holds."""
        value = self[field]
        if not isinstance(value, CatalystNode):
            raise Unsupported(f"the {field} of {self.cls} is not an expression")
        return value

    def trees(self, field: str) -> tuple[CatalystNode, ...]:
        """The expressions a ``Seq`` field holds."""
        value = self[field]
        if type(value) is not list or not all(isinstance(item, CatalystNode) for item in value):
            raise Unsupported(f"the {field} of {self.cls} are not expressions")
        return tuple(value)

    def walk(self) -> Iterator[CatalystNode]:
        """This node and what is below it in pre-order: children only, not expressions of plan nodes."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def expressions(self) -> tuple[CatalystNode, ...]:
        """The top-level expressions of a plan node, in the order of its constructor."""
        return tuple(tree for value in self.fields.values() for tree in _trees_in(value) if tree.path)

    def walk_all(self) -> Iterator[CatalystNode]:
        """Every plan node and expression of a plan, subquery plans included."""
        for node in self.walk():
            yield node
            for value in node.fields.values():
                for tree in _trees_in(value):
                    if tree.path:
                        yield from tree.walk_all()

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
    """The plan that ``optimizedPlan().toJSON()`` printed."""
    return _parse(json.loads(text), (), 0, is_plan=True)


def parse_expression(text: str) -> CatalystNode:
    """The expression that ``Expression.toJSON()`` printed; facts the JSON lost cannot be had for it."""
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
    """A pre-order list as a tree; node i gets the path ``prefix + (base + i,)``.

    Goes from the last node to the first, so that children exist before their parent, without recursion:
    chains of ANDs are as deep as a query is long.
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
    """Fields of a plan node: its expressions are numbered as ``QueryPlan.expressions`` meets them."""
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
    """Fields of an expression: nested plans are parsed, nested expressions repeat children and stay raw."""
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
    """A tree outside of what ``expressions`` and ``children`` of the JVM object reach."""
    stack: list[CatalystNode] = []
    for item in reversed(raw):
        children = tuple(stack.pop() for _ in range(item["num-children"]))
        fields = {k: _simplify(v) for k, v in item.items() if k != "class" and k != "num-children"}
        qualified = original_class(item)
        stack.append(CatalystNode(_simple(qualified), qualified, fields, children, None))
    return stack[0]


def _simplify(value: Any) -> Any:
    """Case objects as names, ExprIds as ints, trees inside of products (join types) as detached nodes."""
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
    # Asked of the root of a nested tree only. A logical plan's class is in one of these packages; expressions
    # are not, but for some aggregate functions, which AggregateExpression always wraps.
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
