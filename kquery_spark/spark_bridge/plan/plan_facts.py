"""Reads facts that are missing in the JSON of a plan from the plan's JVM objects.

``toJSON`` prints ``null`` for enumerations, sets, characters, relations and rows. Some of these affect the result of a
query: on overflow, an ``Add`` raises an error, returns NULL, or wraps around, depending on a field that is not printed.
Nothing is guessed: if a fact cannot be read, or if a JVM object does not match the JSON, Unsupported is raised.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeVar, cast

import pyarrow as pa

from kquery_spark.cached_property import cached_property
from kquery_spark.errors import KQueryError, Unsupported
from kquery_spark.sources.text_format import LEGACY, TIME_PARSER
from kquery_spark.spark_bridge.jvm.calls import Jvm
from kquery_spark.spark_bridge.plan.case_json import replace_case
from kquery_spark.spark_bridge.plan.expected_rows import UNKNOWN_ROWS, expected_rows
from kquery_spark.spark_bridge.plan.internal_values import few_elements, internal_value
from kquery_spark.spark_bridge.plan.literal_values import from_text
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode, parse_expression, parse_plan
from kquery_spark.spark_bridge.session.zone_rules import follow_zone

EvalModeName = Literal["ANSI", "TRY", "LEGACY"]

_TREE = "org.apache.spark.sql.catalyst.trees.TreeNode"
_PLAN = "org.apache.spark.sql.catalyst.plans.QueryPlan"
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
_CONTEXT = f"{_EXPRESSIONS}NumericEvalContext"
_CONTEXT_PREFIX = "NumericEvalContext("
_ENUM = "scala.Enumeration$Value toString"
_DATA_TYPE = "org.apache.spark.sql.types.DataType"
_LOGICAL_RELATION = "org.apache.spark.sql.execution.datasources.LogicalRelation"
"""The class of a leaf that reads a relation of DataSource V1, such as files."""
_IDENTITY_HASH = "java.lang.System", "identityHashCode", "java.lang.Object"
_DEFAULT = "CURRENT_DEFAULT"  # a key in the metadata of a column, which the JSON of a plan does not contain

# For each class with an evaluation mode: the class that has its getter. One call reads the modes of all its instances.
_MODE_CLASSES: dict[str, str] = {
    "Cast": f"{_EXPRESSIONS}Cast",
    "Sum": f"{_EXPRESSIONS}aggregate.Sum",
    "Average": f"{_EXPRESSIONS}aggregate.Average",
} | dict.fromkeys(
    ("Add", "Subtract", "Multiply", "Divide", "IntegralDivide", "Remainder", "Pmod"),
    f"{_EXPRESSIONS}BinaryArithmetic",
)


class JvmRelation(NamedTuple):
    """The relation that a LogicalRelation reads: the JVM object, the name of its class, and its identity hash.

    identity_hash: the result of ``System.identityHashCode``. Two objects can have the same hash, although this is rare. So
    if the hashes are equal, call ``Jvm.is_same``.
    """

    jvm_object: Any
    class_name: str
    identity_hash: int


class _PlanIndex:
    """The nodes and expressions of one plan, without its subqueries' plans, as indexed sequences in the JVM.

    nodes: the plan nodes in pre-order. expressions: for each plan node, the sequence of its expressions, each followed by
    all expressions below it. counts: the length of each of these sequences. ``CatalystNode.path`` refers to them.
    Everything except ``nodes`` is read on first use, because each takes a JVM call.
    """

    def __init__(self, jvm: Jvm, plan: Any) -> None:
        self._jvm = jvm
        self.nodes = plan.map(jvm.identity())

    @cached_property
    def expressions(self) -> Any:
        jvm = self._jvm
        below = jvm.mapper(_TREE, "map", jvm.identity())
        expressions = jvm.steps("expressions", (_PLAN, "expressions"), jvm.map_step("flatMap", below))
        return jvm.map_sequence(self.nodes, expressions)

    @cached_property
    def counts(self) -> list[int]:
        return [int(n) for n in self._jvm.map_strings(self.expressions, _length(self._jvm))]

    @cached_property
    def classes(self) -> list[str]:
        """The class names of the plan nodes."""
        return self._jvm.class_names(self.nodes)

    @cached_property
    def relations(self) -> dict[int, JvmRelation]:
        """The relations of the LogicalRelations, by the position of the node. Takes four calls, plus one per relation."""
        jvm, seq = self._jvm, self._jvm.scala.seq
        relations = jvm.steps(
            "relations of nodes",
            (seq, "filter", "scala.Function1", jvm.is_instance(_LOGICAL_RELATION)),
            jvm.map_step("map", jvm.getter(_LOGICAL_RELATION, "relation")),
        ).apply(self.nodes)
        names = jvm.class_names(relations)
        hashes = jvm.map_strings(relations, jvm.static_function(*_IDENTITY_HASH))
        positions = [i for i, name in enumerate(self.classes) if name == _LOGICAL_RELATION]
        return {
            position: JvmRelation(relations.apply(i), name, int(identity))
            for i, (position, name, identity) in enumerate(zip(positions, names, hashes, strict=True))
        }

    @cached_property
    def flat(self) -> Any:
        """All expressions of the plan."""
        return self._jvm.flat_map_sequence(self.expressions, self._jvm.identity())


def _length(jvm: Jvm) -> Any:
    return jvm.getter(jvm.scala.seq, "length")


_F = TypeVar("_F", bound=Callable[..., Any])


def _declines_on_error(method: _F) -> _F:
    """Convert errors of py4j and the JVM in a method of ``Facts`` to Unsupported, with the method's name as the fact."""

    @functools.wraps(method)
    def read_fact(self: Any, node: CatalystNode, *arguments: Any) -> Any:
        try:
            return method(self, node, *arguments)
        except KQueryError:
            raise
        except Exception as error:
            fact = method.__name__.replace("_", " ")
            raise Unsupported(f"the {fact} of {node.cls} cannot be read from Spark's plan") from error

    return cast(_F, read_fact)


class Facts:
    """Reads facts about a plan's nodes from the JVM object whose JSON was parsed.

    It must be the same object, because each call of ``optimizedPlan`` may create a new plan with other expression ids. The
    methods raise Unsupported if a fact cannot be read.
    """

    def __init__(self, jvm: Jvm, plan: Any) -> None:
        self._jvm = jvm
        self._plan = plan
        self._indexes: dict[tuple[int, ...], _PlanIndex] = {}
        self._modes: dict[tuple[tuple[int, ...], str], list[str]] = {}
        self._tree: CatalystNode | None = None
        self._rows: dict[CatalystNode, float] = {}
        self._expression_counts: Counter[tuple[int, ...]] | None = None

    def parse(self) -> CatalystNode:
        """Parse the plan's JSON into a tree."""
        if self._tree is None:
            shown = replace_case(self._jvm, self._plan)
            self._tree = parse_plan(self._jvm.text(shown, _TREE, "toJSON"))
        return self._tree

    @_declines_on_error
    def eval_mode(self, node: CatalystNode) -> EvalModeName:
        """Return how Cast, arithmetic, Sum and Average treat overflow, division by zero and malformed input."""
        mode = self._eval_context(node).partition(",")[0]
        if mode in ("ANSI", "TRY", "LEGACY"):
            return cast(EvalModeName, mode)
        raise Unsupported(f"the evaluation mode {mode!r} of {node.cls} is not known")

    @_declines_on_error
    def allows_precision_loss(self, node: CatalystNode) -> bool:
        """Return whether decimal arithmetic may lose decimal places; True in releases that use a session setting instead."""
        return self._eval_context(node).partition(",")[2] != "false"

    def follow_zone(self, name: str) -> None:
        """Make the engine use the rules of Spark's JVM for a time zone."""
        follow_zone(self._jvm, name)

    def _eval_context(self, node: CatalystNode) -> str:
        """Return the evaluation mode; in newer releases followed by a comma and ``allowDecimalPrecisionLoss``.

        One call reads the distinct modes of all nodes of the class. Nearly always there is only one. Otherwise, the mode of
        each node is read separately.
        """
        mode_class = _MODE_CLASSES.get(node.cls)
        if mode_class is None:
            raise Unsupported(f"{node.cls} has no evaluation mode that the engine knows")
        prefix = self._prefix(node)
        index = self._index(prefix)
        self._check_counts(node, prefix, index)
        getter = _context_getter(self._jvm, mode_class)
        distinct = self._modes.get((prefix, mode_class))
        if distinct is None:
            seq = self._jvm.scala.seq
            modes = self._jvm.steps(
                f"modes of {mode_class}",
                (seq, "filter", "scala.Function1", self._jvm.is_instance(mode_class)),
                self._jvm.map_step("map", getter),
                (seq, "distinct"),
                (seq, "mkString", "java.lang.String", " "),
            )
            distinct = self._modes[prefix, mode_class] = modes.apply(index.flat).split()
        context = distinct[0] if len(distinct) == 1 else str(getter.apply(self.jvm_object(node)))
        return context.removeprefix(_CONTEXT_PREFIX).removesuffix(")")

    @_declines_on_error
    def in_set_values(self, node: CatalystNode, arrow: pa.DataType) -> list[Any]:
        """Return the internal values of an InSet over values of this type, None for NULL."""
        if pa.types.is_binary(arrow) or pa.types.is_nested(arrow):
            raise Unsupported(f"a long IN list of type {arrow} is not supported")
        values = self.jvm_object(node).hset().toIndexedSeq()
        has_null = values.contains(None)
        strings = self._jvm.strings(values)
        if has_null:
            strings.remove("null")
        internal = [from_text(text, arrow) for text in strings]
        return [*internal, None] if has_null else internal

    @_declines_on_error
    def writes_nulls(self, node: CatalystNode) -> bool:
        """Return whether TO_JSON writes NULL fields, as it does for columns with a default; node: its evaluator."""
        schema = self.jvm_object(node).value().inputSchema()
        return _DEFAULT in self._jvm.text(schema, _DATA_TYPE, "json")

    @_declines_on_error
    def escape_char(self, node: CatalystNode) -> str:
        """Return the escape character of Like (or ILike)."""
        return str(self.jvm_object(node).escapeChar())

    @_declines_on_error
    def patterns(self, node: CatalystNode) -> list[str | None]:
        """Return the patterns of LikeAll, LikeAny or their negations."""
        return [internal_value(value, "string") for value in few_elements(self.jvm_object(node).patterns())]

    @cached_property
    def prints_exact_dates(self) -> bool:
        """False if ``toJSON`` prints dates in the hybrid calendar and without eras, as the LEGACY time parser does.

        The policy is that of the session that is active in the JVM's thread, which may not be the session of the plan.
        """
        try:
            policy = self._jvm.call("org.apache.spark.sql.internal.SQLConf", "get").getConfString(TIME_PARSER)
        except Exception:  # py4j's; then dates are read from the literals themselves
            return False
        return str(policy).upper() != LEGACY

    @_declines_on_error
    def literal_value(self, node: CatalystNode) -> Any:
        """Return the internal value of a Literal."""
        return internal_value(self.jvm_object(node).value(), node["dataType"])

    @_declines_on_error
    def has_options(self, node: CatalystNode) -> bool:
        """Return whether the options of JsonToStructs (or another class with ``options``) are not empty."""
        return not self.jvm_object(node).options().isEmpty()

    @_declines_on_error
    def options(self, node: CatalystNode) -> dict[str, str]:
        """Return the options of CsvToStructs (or another class with ``options``)."""
        return self._jvm.java_map(self.jvm_object(node).options())

    @_declines_on_error
    def integers(self, node: CatalystNode, field: str) -> list[int]:
        """Return a field that is a ``Seq[Int]``, such as Generate.unrequiredChildIndex."""
        return [int(text) for text in self._jvm.strings(getattr(self.jvm_object(node), field)())]

    @_declines_on_error
    def strings(self, node: CatalystNode, field: str) -> list[str]:
        """Return a field that is a ``Seq[String]``, which the JSON prints as one truncated string."""
        return self._jvm.strings(getattr(self.jvm_object(node), field)())

    @_declines_on_error
    def constants(self, node: CatalystNode, field: str, arrow: pa.DataType) -> list[Any]:
        """Return a field that is a ``Seq`` of internal values of a type, None for NULL."""
        values = getattr(self.jvm_object(node), field)()
        strings = self._jvm.strings(values)
        has_null = bool(values.contains(None))
        if has_null and strings.count("null") > 1:
            raise Unsupported(f"the {field} of {node.cls} have both NULL and the string 'null'")
        return [None if has_null and text == "null" else from_text(text, arrow) for text in strings]

    @_declines_on_error
    def output(self, node: CatalystNode) -> list[CatalystNode]:
        """Return the output attributes of a plan node, for nodes whose constructor does not contain them."""
        return parsed_expressions(self.jvm_object(node).output().toIndexedSeq(), self._jvm)

    @_declines_on_error
    def data_type(self, node: CatalystNode) -> Any:
        """Return the JSON of the type of an expression whose own JSON does not contain it."""
        return json.loads(self.jvm_object(node).dataType().json())

    @_declines_on_error
    def projections(self, node: CatalystNode) -> list[list[CatalystNode]]:
        """Return the projections of an Expand, which the JSON contains only if they are Scala lists."""
        rows = self.jvm_object(node).projections()
        expressions = iter(
            parsed_expressions(
                self._jvm.flat_map_sequence(rows, self._jvm.identity()).toIndexedSeq(), self._jvm
            )
        )
        widths = [int(n) for n in self._jvm.map_strings(rows, _length(self._jvm))]
        return [[next(expressions) for _ in range(width)] for width in widths]

    def rows(self, node: CatalystNode) -> float:
        """Estimate the number of rows of a plan node from Spark's statistics."""
        rows = self._rows.get(node)
        if rows is None:
            try:
                rows = expected_rows(self.jvm_object(node), self._jvm)
            except Exception:  # an error of Spark or py4j must not make the query fail because of an estimate
                rows = UNKNOWN_ROWS
            self._rows[node] = rows
        return rows

    @_declines_on_error
    def jvm_object(self, node: CatalystNode) -> Any:
        """Return the py4j object of a node: a relation to inspect, or a subtree that Spark runs."""
        if not node.path:
            raise Unsupported(f"{node.cls} cannot be looked up in Spark's plan")
        prefix = self._prefix(node)
        index = self._index(prefix)
        self._check_counts(node, prefix, index)
        position = node.path[len(prefix)]
        if node.is_plan:
            jvm_object, name = index.nodes.apply(position), index.classes[position]
        else:
            jvm_object = index.expressions.apply(position).apply(node.path[-1])
            name = self._jvm.class_name(jvm_object)
        if name != node.qualified:
            raise Unsupported(f"{node.cls} cannot be looked up in Spark's plan")
        return jvm_object

    @_declines_on_error
    def relation(self, node: CatalystNode) -> JvmRelation:
        """Return the relation that a LogicalRelation reads. The first call reads those of the whole plan."""
        prefix = self._prefix(node)
        return self._index(prefix).relations[(node.path or ())[len(prefix)]]

    def _prefix(self, node: CatalystNode) -> tuple[int, ...]:
        """Return the path of the subquery expression whose plan contains a node; empty for the root plan."""
        if not node.path:
            raise Unsupported(f"{node.cls} cannot be looked up in Spark's plan")
        return node.path[: (len(node.path) - 1) // 2 * 2]

    def _index(self, prefix: tuple[int, ...]) -> _PlanIndex:
        index = self._indexes.get(prefix)
        if index is None:
            plan = self._plan if not prefix else self._expression(prefix).plan()
            index = self._indexes[prefix] = _PlanIndex(self._jvm, plan)
        return index

    def _expression(self, path: tuple[int, ...]) -> Any:
        return self._index(path[:-2]).expressions.apply(path[-2]).apply(path[-1])

    def _check_counts(self, node: CatalystNode, prefix: tuple[int, ...], index: _PlanIndex) -> None:
        """Raise Unsupported unless the JSON and the JVM object have the same number of expressions in the plan node.

        An expression that the JSON omits would shift the positions of all later ones.
        """
        if node.is_plan:
            return
        if self._expression_counts is None:
            self._expression_counts = Counter(
                x.path[:-1] for x in self.parse().walk_all() if x.path and not x.is_plan
            )
        position = (node.path or ())[len(prefix)]
        if self._expression_counts[(*prefix, position)] != index.counts[position]:
            raise Unsupported(f"not all expressions around {node.cls} are in the JSON of Spark's plan")


def parsed_expressions(sequence: Any, jvm: Jvm) -> list[CatalystNode]:
    """Parse the expressions in a Scala sequence, without facts that are missing in the JSON."""
    strings = jvm.map_strings(sequence, jvm.getter(_TREE, "toJSON"))
    return [parse_expression(text) for text in strings]


def _context_getter(jvm: Jvm, mode_class: str) -> Any:
    """Return a JVM function that prints ``evalMode``, or the ``evalContext`` that contains it in newer versions of Spark."""
    if jvm.has_method(mode_class, "evalContext"):
        return jvm.getter(mode_class, "evalContext", f"{_CONTEXT} toString")
    return jvm.getter(mode_class, "evalMode", _ENUM)
