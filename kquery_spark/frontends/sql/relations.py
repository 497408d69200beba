"""FROM: tables, subqueries, VALUES, table functions, joins and lateral views."""

from __future__ import annotations

from kquery_spark.frontends.sql.ast import expressions as e
from kquery_spark.frontends.sql.ast import relations as r
from kquery_spark.frontends.sql.pivots import PivotParser
from kquery_spark.frontends.sql.tokens import Kind

# How a join may be written and what it is called in the tree.
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


class RelationParser(PivotParser):
    """Reads relations."""

    def from_clause(self) -> r.Relation:
        """Read what follows FROM: relations separated by commas, with their joins, from left to right."""
        relation = self._relation()
        while self.at_op(","):
            pos = self.advance().pos
            # The joins after a comma see everything to the left of it, as in Spark.
            relation = self._joins(r.Join(relation, self._lateral_primary(), pos=pos))
        return relation

    def lateral_views(self) -> tuple[r.LateralView, ...]:
        """Read any number of LATERAL VIEW clauses."""
        views = []
        while self.at_word("LATERAL", "VIEW"):
            pos = self.token.pos
            self.index += 2
            outer = self.at_word("OUTER") and not self.at_op("(", ".", ahead=1) and bool(self.advance())
            function = self.dotted_name("a function")
            arguments = self._arguments()
            alias = self.name("a name for the lateral view")
            columns: tuple[str, ...] = ()
            if self.take_word("AS") or self.token.kind is Kind.QUOTED or self._is_free_word():
                columns = self.comma_separated(lambda: self.name("a column's name"))
            views.append(r.LateralView(function, arguments, alias, columns, outer, pos=pos))
        return tuple(views)

    def values(self) -> r.Values:
        """Read ``VALUES row, row [alias]``."""
        pos = self.expect_word("VALUES").pos
        rows = self.comma_separated(self._values_row)
        return r.Values(rows, self.table_alias(), pos=pos)

    def _values_row(self) -> tuple[e.Expression, ...]:
        """A row of several values, written as a tuple or as struct(...), or a single value."""
        row = self.expression()
        if isinstance(row, e.Row):
            parts = row.items
        elif isinstance(row, e.Call) and row == e.Call(row.name, row.arguments) and _is_struct(row.name):
            parts = row.arguments
        else:
            return (row,)
        return tuple(part.expression if isinstance(part, e.Aliased) else part for part in parts)

    # --- joins -------------------------------------------------------------------------------------

    def _relation(self) -> r.Relation:
        return self._joins(self._lateral_primary())

    def _joins(self, left: r.Relation) -> r.Relation:
        while True:
            if self.at_pivot():
                left = self.pivoted(left)
            elif (kind := self._join_kind()) is not None:
                left = self._join(left, *kind)
            else:
                return left

    def _join_kind(self) -> tuple[str, bool, int] | None:
        """Read ``[NATURAL] kind JOIN`` or nothing."""
        pos, start = self.token.pos, self.index
        natural = self.take_word("NATURAL")
        for words, kind in _JOIN_KINDS:
            if self.take_word(*words, "JOIN"):
                if natural and kind in ("CROSS", "LEFT SEMI", "LEFT ANTI"):
                    self.fail(f"a NATURAL join cannot be a {kind} join", pos)
                return kind, natural, pos
        self.index = start
        return None

    def _join(self, left: r.Relation, kind: str, natural: bool, pos: int) -> r.Relation:
        right = self._lateral_primary()
        condition: e.Expression | None = None
        using: tuple[str, ...] = ()
        if self.at_any(("ON", "USING")) and natural:
            self.fail("a NATURAL join takes no condition")
        if self.take_word("ON"):
            condition = self.expression()
        elif self.take_word("USING"):
            using = self.names_in_parentheses("a column's name")
        return r.Join(left, right, kind, condition, using, natural, pos=pos)

    # --- primaries ---------------------------------------------------------------------------------

    def _lateral_primary(self) -> r.Relation:
        pos = self.token.pos
        if self.take_word("LATERAL"):
            relation = self._primary_relation()
            if not isinstance(relation, r.Derived | r.TableFunction):
                self.fail("LATERAL can only stand before a subquery or a table function", pos)
            return r.Lateral(relation, pos=pos)
        return self._primary_relation()

    def _primary_relation(self) -> r.Relation:
        with self.nested():
            pos = self.token.pos
            if self.at_op("("):
                return self._parenthesised(pos)
            if self.at_word("VALUES") and self._introduces_query(self.index):
                if self.peek().kind in (Kind.WORD, Kind.QUOTED) and self.peek(2).kind is not Kind.STRING:
                    # VALUES a is a table with an alias to Spark, VALUES (a) are rows.
                    self.fail("after FROM the rows of VALUES need parentheses", self.peek().pos)
                return self.values()
            return self._named_relation()

    def _named_relation(self) -> r.Relation:
        """Read a table or a table function."""
        token = self.token
        if token.kind not in (Kind.WORD, Kind.QUOTED):
            self.fail_expected("a table")
        if self.at_word("IDENTIFIER") and self.at_op("(", ahead=1):
            self.fail("the IDENTIFIER clause is not supported")
        if token.kind is Kind.WORD and not self._is_free_word() and not self.at_op(".", ahead=1):
            # Spark would rather take the word before it for an alias and this one for its clause.
            self.fail(f"expected a table, found {token.value}: a table of this name needs backticks")
        name = self.dotted_name("a table")
        if self.at_op("("):
            return r.TableFunction(name, self._arguments(), self._alias(), pos=token.pos)
        if self.at_op("-"):
            self.fail("a name with a minus sign needs backticks")
        if self._at_sample():
            return self.sampled(r.Table(name, pos=token.pos))
        return r.Table(name, self._alias(), pos=token.pos)

    def _parenthesised(self, pos: int) -> r.Relation:
        if self.at_query(1):
            query = self.query_in_parentheses()
            if self._at_sample():
                return self.sampled(r.Derived(query, pos=pos))
            return r.Derived(query, self._alias(), pos=pos)
        self.expect_op("(")
        relation = self._relation()
        self.expect_op(")", " after the relation")
        if self._at_sample():
            return self.sampled(relation)
        alias = self._alias()
        return relation if alias is None else r.Renamed(relation, alias, pos=pos)

    def _alias(self) -> r.TableAlias | None:
        """Read an alias; fail at clauses after a table that are not supported."""
        self._no_table_clause()
        alias = self.table_alias()
        self._no_table_clause()
        return alias

    def _at_sample(self) -> bool:
        return self.at_word("TABLESAMPLE") and self._is_table_clause()

    def _no_table_clause(self) -> None:
        if self._at_sample():
            self.fail("TABLESAMPLE stands right behind a table or a query in parentheses, before its alias")
        if self._is_table_clause() and not self.at_pivot():
            self.fail("time travel is not supported")

    def _arguments(self) -> tuple[e.Expression, ...]:
        self.expect_op("(")
        if self.take_op(")"):
            return ()
        if self.at_word("TABLE"):
            self.fail("TABLE arguments of functions are not supported")
        arguments = self.comma_separated(self._argument)
        self.expect_op(")", " to close the arguments")
        return arguments


def _is_struct(name: tuple[str, ...]) -> bool:
    return len(name) == 1 and name[0].lower() == "struct"
