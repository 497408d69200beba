"""explode and its like: in the select list and in LATERAL VIEW."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kquery_spark.frontends.sql.analyzer.expressions import OuterFrame
from kquery_spark.frontends.sql.analyzer.scope import Relation, ScopeColumn
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast import relations as r

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.analyzer.queries import QueryAnalyzer

_GENERATORS = {
    "explode": ("explode", False),
    "explode_outer": ("explode", True),
    "posexplode": ("posexplode", False),
    "posexplode_outer": ("posexplode", True),
    "inline": ("inline", False),
    "inline_outer": ("inline", True),
}


@dataclass(frozen=True)
class Generated:
    """A generator's call with the names its columns get."""

    call: ast.Call
    aliases: tuple[str, ...] = ()


def generator_of(node: ast.Expression) -> Generated | None:
    """The generator that a select item is; None when it is none."""
    aliases: tuple[str, ...] = ()
    call = node
    if isinstance(node, ast.MultiAliased):
        call, aliases = node.expression, node.aliases
    elif isinstance(node, ast.Aliased):
        call, aliases = node.expression, (node.alias,)
    if isinstance(call, ast.Call) and len(call.name) == 1 and call.name[0].lower() in _GENERATORS:
        return Generated(call, aliases)
    return None


class GeneratorAnalyzer:
    """Adds Generate nodes."""

    def __init__(self, queries: QueryAnalyzer) -> None:
        self._queries = queries

    def generate(
        self, relation: Relation, generated: Generated, outer: OuterFrame | None
    ) -> tuple[Relation, list[ScopeColumn]]:
        """The relation with the generated columns, and those columns."""
        self._queries.fail("explode and its like are not supported", generated.call)

    def lateral_view(self, relation: Relation, view: r.LateralView, outer: OuterFrame | None) -> Relation:
        """FROM with LATERAL VIEW."""
        self._queries.fail("LATERAL VIEW is not supported", view)
