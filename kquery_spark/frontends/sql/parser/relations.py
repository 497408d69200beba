"""FROM: tables, subqueries, VALUES, table functions, joins and lateral views."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kquery_spark.frontends.sql.ast import expressions as e
from kquery_spark.frontends.sql.ast import relations as r
from kquery_spark.frontends.sql.parser.aliases import at_free_word, at_table_clause, parse_table_alias
from kquery_spark.frontends.sql.parser.calls import parse_argument
from kquery_spark.frontends.sql.parser.lookahead import at_query, introduces_query
from kquery_spark.frontends.sql.parser.pivots import at_pivot, parse_pivot_clause
from kquery_spark.frontends.sql.parser.sampling import at_sample, parse_sample
from kquery_spark.frontends.sql.parser.tokens import Kind

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.parser.parser import Parser

# The keywords of each join, and its kind in the syntax tree.
_JOIN_KINDS = (
    (("INNER",), "INNER"),
    (("CROSS",), "CROSS"),
    (("LEFT", "OUTER"), "LEFT"),
    (("LEFT", "SEMI"), "LEFT SEMI"),
    (("LEFT", "ANTI"), "LEFT ANTI"),
    (("LEFT",), "LEFT"),
    (("RIGHT", "OUTER"), "RIGHT"),
    (("RIGHT",), "RIGHT"),
    (("FULL", "OUTER"), "FULL"),
    (("FULL",), "FULL"),
    (("SEMI",), "LEFT SEMI"),
    (("ANTI",), "LEFT ANTI"),
    ((), "INNER"),
)


def parse_from(parser: Parser) -> r.Relation:
    """Read the relations after FROM, which are separated by commas, and their joins, from left to right."""
    relation = _parse_relation(parser)
    while parser.at_op(","):
        pos = parser.advance().pos
        # The left side of a join after a comma is everything to the left of the join, as in Spark.
        relation = _parse_joins(parser, r.Join(relation, _parse_lateral(parser), pos=pos))
    return relation


def parse_lateral_views(parser: Parser) -> tuple[r.LateralView, ...]:
    """Read any number of LATERAL VIEW clauses."""
    views = []
    while parser.at_word("LATERAL", "VIEW"):
        pos = parser.token.pos
        parser.skip(2)
        outer = parser.at_word("OUTER") and not parser.at_op("(", ".", ahead=1) and bool(parser.advance())
        function = parser.dotted_name("a function")
        arguments = _parse_arguments(parser)
        alias = parser.name("a name for the lateral view")
        columns: tuple[str, ...] = ()
        if parser.take_word("AS") or parser.token.kind is Kind.QUOTED or at_free_word(parser):
            columns = parser.names("a column's name")
        views.append(r.LateralView(function, arguments, alias, columns, outer, pos=pos))
    return tuple(views)


def parse_values(parser: Parser) -> r.Values:
    """Read ``VALUES row, row [alias]``."""
    pos = parser.expect_word("VALUES").pos
    rows = parser.comma_separated(_parse_values_row)
    return r.Values(rows, parse_table_alias(parser), pos=pos)


def _parse_values_row(parser: Parser) -> tuple[e.Expression, ...]:
    """Read a row: several values, written as a tuple or as struct(...), or a single value."""
    row = parser.expression()
    if isinstance(row, e.Row):
        parts = row.items
    elif isinstance(row, e.Call) and row == e.Call(row.name, row.arguments) and _is_struct(row.name):
        parts = row.arguments
    else:
        return (row,)
    return tuple(part.expression if isinstance(part, e.Aliased) else part for part in parts)


def _parse_relation(parser: Parser) -> r.Relation:
    return _parse_joins(parser, _parse_lateral(parser))


def _parse_joins(parser: Parser, left: r.Relation) -> r.Relation:
    while True:
        if at_pivot(parser):
            left = parse_pivot_clause(parser, left)
        elif (kind := _parse_join_kind(parser)) is not None:
            left = _parse_join(parser, left, *kind)
        else:
            return left


def _parse_join_kind(parser: Parser) -> tuple[str, bool, int] | None:
    """Read ``[NATURAL] kind JOIN`` or nothing."""
    pos, start = parser.token.pos, parser.index
    natural = parser.take_word("NATURAL")
    for words, kind in _JOIN_KINDS:
        if parser.take_word(*words, "JOIN"):
            if natural and kind in ("CROSS", "LEFT SEMI", "LEFT ANTI"):
                parser.fail(f"a NATURAL join cannot be a {kind} join", pos)
            return kind, natural, pos
    parser.index = start
    return None


def _parse_join(parser: Parser, left: r.Relation, kind: str, natural: bool, pos: int) -> r.Relation:
    right = _parse_lateral(parser)
    condition: e.Expression | None = None
    using: tuple[str, ...] = ()
    if parser.at_any(("ON", "USING")) and natural:
        parser.fail("a NATURAL join takes no condition")
    if parser.take_word("ON"):
        condition = parser.expression()
    elif parser.take_word("USING"):
        using = parser.names_in_parentheses("a column's name")
    return r.Join(left, right, kind, condition, using, natural, pos=pos)


def _parse_lateral(parser: Parser) -> r.Relation:
    pos = parser.token.pos
    if parser.take_word("LATERAL"):
        relation = _parse_primary(parser)
        if not isinstance(relation, r.Derived | r.TableFunction):
            parser.fail("LATERAL can only stand before a subquery or a table function", pos)
        return r.Lateral(relation, pos=pos)
    return _parse_primary(parser)


def _parse_primary(parser: Parser) -> r.Relation:
    with parser.nested():
        pos = parser.token.pos
        if parser.at_op("("):
            return _parse_parentheses(parser, pos)
        if parser.at_word("VALUES") and introduces_query(parser, parser.index):
            if parser.peek().kind in (Kind.WORD, Kind.QUOTED) and parser.peek(2).kind is not Kind.STRING:
                # Spark reads VALUES a as a table with an alias, and VALUES (a) as rows.
                parser.fail("after FROM the rows of VALUES need parentheses", parser.peek().pos)
            return parse_values(parser)
        return _parse_named(parser)


def _parse_named(parser: Parser) -> r.Relation:
    """Read a table or a table function."""
    token = parser.token
    if token.kind not in (Kind.WORD, Kind.QUOTED):
        parser.fail_expected("a table")
    if parser.at_word("IDENTIFIER") and parser.at_op("(", ahead=1):
        parser.fail("the IDENTIFIER clause is not supported")
    if token.kind is Kind.WORD and not at_free_word(parser) and not parser.at_op(".", ahead=1):
        # Spark would read the previous word as an alias and this word as the start of a clause.
        parser.fail(f"expected a table, found {token.value}: a table of this name needs backticks")
    name = parser.dotted_name("a table")
    if parser.at_op("("):
        return r.TableFunction(name, _parse_arguments(parser), _parse_alias(parser), pos=token.pos)
    if parser.at_op("-"):
        parser.fail("a name with a minus sign needs backticks")
    if at_sample(parser):
        return parse_sample(parser, r.Table(name, pos=token.pos))
    return r.Table(name, _parse_alias(parser), pos=token.pos)


def _parse_parentheses(parser: Parser, pos: int) -> r.Relation:
    if at_query(parser, 1):
        query = parser.query_in_parentheses()
        if at_sample(parser):
            return parse_sample(parser, r.Derived(query, pos=pos))
        return r.Derived(query, _parse_alias(parser), pos=pos)
    parser.expect_op("(")
    relation = _parse_relation(parser)
    parser.expect_op(")", " after the relation")
    if at_sample(parser):
        return parse_sample(parser, relation)
    alias = _parse_alias(parser)
    return relation if alias is None else r.Renamed(relation, alias, pos=pos)


def _parse_alias(parser: Parser) -> r.TableAlias | None:
    """Read an optional alias; raises SqlError for a table clause that is not supported."""
    _fail_at_table_clause(parser)
    alias = parse_table_alias(parser)
    _fail_at_table_clause(parser)
    return alias


def _fail_at_table_clause(parser: Parser) -> None:
    if at_sample(parser):
        parser.fail("TABLESAMPLE stands right behind a table or a query in parentheses, before its alias")
    if at_table_clause(parser) and not at_pivot(parser):
        parser.fail("time travel is not supported")


def _parse_arguments(parser: Parser) -> tuple[e.Expression, ...]:
    parser.expect_op("(")
    if parser.take_op(")"):
        return ()
    if parser.at_word("TABLE"):
        parser.fail("TABLE arguments of functions are not supported")
    arguments = parser.comma_separated(parse_argument)
    parser.expect_op(")", " to close the arguments")
    return arguments


def _is_struct(name: tuple[str, ...]) -> bool:
    return len(name) == 1 and name[0].lower() == "struct"
