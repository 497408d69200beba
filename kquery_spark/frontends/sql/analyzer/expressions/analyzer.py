"""Analyzes expressions of the syntax tree: resolves names and types against a scope."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

import pyarrow as pa

from kquery_spark.errors import PlanError, SqlError, Unsupported
from kquery_spark.expr import Case, Expr, Literal
from kquery_spark.frontends.sql.analyzer.catalog import SessionFacts
from kquery_spark.frontends.sql.analyzer.conversions import Conversions
from kquery_spark.frontends.sql.analyzer.handlers import HandlerTable
from kquery_spark.frontends.sql.analyzer.outer_row import OuterRow, SubqueryAnalyzer
from kquery_spark.frontends.sql.analyzer.scope import ResolvedRelation, Scope
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast import windows as window_ast
from kquery_spark.frontends.sql.ast.node import Node
from kquery_spark.frontends.sql.ast.queries import Query
from kquery_spark.frontends.sql.printer import to_sql
from kquery_spark.frontends.unique_names import UniqueNames
from kquery_spark.functions.registry import EvalMode
from kquery_spark.kernels.elements import is_array
from kquery_spark.logical import LogicalPlan
from kquery_spark.run_control import check_run
from kquery_spark.types import names as t


@dataclass(frozen=True)
class AnalyzedSubquery:
    """An analyzed subquery: its relation, and the outer row with the columns that it reads.

    node: the syntax tree. It is stored so that its id, the key of ``ExpressionAnalyzer.subqueries``, is not reused.
    """

    node: Query
    relation: ResolvedRelation
    outer: OuterRow


@dataclass
class ExpressionAnalyzer:
    """Resolves the expressions in one clause of a query.

    clause: its name in error messages. aliases: earlier select items, which later ones may refer to. preferred: names that
    take precedence over those of ``scope`` (the select list's names in ORDER BY and HAVING). allows_aggregates,
    allows_windows: whether aggregates and window functions are allowed. plans: the plans that produce the scope's columns,
    so that a column of a DataFrame can be resolved by its lineage. time_windows: the columns for calls of ``window`` and
    ``session_window``. subqueries: the latest analysis of each subquery, by the id of its node. reuses_subqueries: True if
    only names and types are needed, for which these analyses are sufficient. Without reuse, each level of nested
    subqueries would be analyzed at least twice, which takes exponential time.
    """

    sql: str
    facts: SessionFacts
    names: UniqueNames
    scope: Scope
    analyze_subquery: SubqueryAnalyzer
    outer: OuterRow | None = None
    aliases: Mapping[str, Expr | None] = field(default_factory=dict)
    preferred: Scope | None = None
    clause: str = ""
    allows_aggregates: bool = False
    allows_windows: bool = False
    in_window: bool = False
    plans: tuple[LogicalPlan, ...] = ()
    named_windows: Mapping[str, window_ast.WindowSpec] = field(default_factory=dict)
    time_windows: Mapping[ast.Call, Expr] = field(default_factory=dict)
    subqueries: dict[int, AnalyzedSubquery] = field(default_factory=dict)
    reuses_subqueries: bool = False

    def __post_init__(self) -> None:
        self.convert = Conversions(self.facts)

    def expr(self, node: ast.Expression) -> Expr:
        """Resolve an expression; raises SqlError at the innermost invalid node."""
        check_run()
        handler = EXPRESSIONS.get(type(node))
        try:
            if handler is None:
                raise Unsupported(f"{to_sql(node)} is not supported")
            return handler(self, node)
        except SqlError:
            raise
        except (PlanError, Unsupported) as error:
            self.fail(str(error), node)

    def condition(self, node: ast.Expression, clause: str) -> Expr:
        """Resolve a condition. clause: its name in error messages."""
        predicate = self.expr(node)
        with self.at(node):
            return self.convert.boolean(predicate, clause)

    def arguments(self, node: ast.Call) -> list[Expr]:
        """A call's arguments as expressions."""
        return [self.expr(a) for a in node.arguments]

    def call(self, name: str, *args: Expr, mode: EvalMode | None = None) -> Expr:
        """A function with implicit casts."""
        return self.convert.call(name, *args, mode=mode)

    def negated(self, predicate: Expr, is_negated: bool) -> Expr:
        """The predicate, or NOT of it."""
        return self.call("not", predicate) if is_negated else predicate

    def case(self, conditions: Sequence[Expr], results: Sequence[Expr], otherwise: Expr | None) -> Expr:
        """Build a CASE whose values are cast to their common type."""
        values = [*results, *([] if otherwise is None else [otherwise])]
        values = self.convert.common(values, "CASE")
        branches = tuple(zip(conditions, values[: len(results)], strict=True))
        return Case(branches, None if otherwise is None else values[-1])

    def field(self, base: Expr, name: str) -> Expr:
        """``base.name``: of a struct, of each struct of an array, or the value of a map's key."""
        dtype = base.dtype
        if pa.types.is_map(dtype):
            return self.call("get_map_value", base, Literal(name, t.STRING))
        if is_array(dtype) and pa.types.is_struct(dtype.value_type):
            index = self._field_index(dtype.value_type, name)
            return self.call("get_array_struct_fields", base, index)
        return self.call("get_struct_field", base, self._field_index(dtype, name))

    def _field_index(self, dtype: pa.DataType, name: str) -> Literal:
        if not pa.types.is_struct(dtype):
            raise PlanError(f"[INVALID_EXTRACT_BASE_FIELD_TYPE] {t.spark_name(dtype)} has no field {name}")
        fold = self.facts.fold
        matches = [i for i in range(dtype.num_fields) if fold(dtype.field(i).name) == fold(name)]
        if not matches:
            have = ", ".join(f.name for f in dtype)
            raise PlanError(f"[FIELD_NOT_FOUND] unknown field {name}; the fields are {have}")
        if len(matches) > 1:
            raise PlanError(f"[AMBIGUOUS_REFERENCE_TO_FIELDS] there are several fields {name}")
        return Literal(matches[0], t.INT)

    def fail(self, message: str, node: Node | None = None) -> NoReturn:
        """Raise SqlError at a node."""
        raise SqlError(message, self.sql, None if node is None or node.pos < 0 else node.pos)

    @contextmanager
    def at(self, node: Node) -> Iterator[None]:
        """Give errors without a position the position of this node."""
        try:
            yield
        except SqlError:
            raise
        except (PlanError, Unsupported) as error:
            self.fail(str(error), node)


ExpressionHandler = Callable[[ExpressionAnalyzer, Any], Expr]
EXPRESSIONS: HandlerTable[type[Node], ExpressionHandler] = HandlerTable()
#: Handlers of functions whose calls are more than a registry entry applied to arguments, by name.
CALLS: HandlerTable[str, ExpressionHandler] = HandlerTable()
