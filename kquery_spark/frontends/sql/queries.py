"""Queries: WITH, SELECT and its clauses, set operations, ORDER BY and LIMIT."""

from __future__ import annotations

from kquery_spark.frontends.sql.ast import expressions as e
from kquery_spark.frontends.sql.ast import queries as q
from kquery_spark.frontends.sql.ast import relations as r
from kquery_spark.frontends.sql.keywords import SET_OPERATORS, STATEMENT_WORDS
from kquery_spark.frontends.sql.relations import RelationParser
from kquery_spark.frontends.sql.tokens import Kind


class QueryParser(RelationParser):
    """Reads whole queries."""

    def statement(self) -> q.Query:
        """Read one query, an optional semicolon and nothing more."""
        if self.token.kind is Kind.END:
            self.fail("there is no query in this text")
        if self.at_any(STATEMENT_WORDS):
            self.fail(f"{self.token.upper} is not supported: only queries are")
        query = self.query()
        self.take_op(";")
        self.expect_end()
        return query

    def query(self) -> q.Query:
        """Read ``[WITH ...] body [ORDER BY ...] [WINDOW ...] [LIMIT ...] [OFFSET ...]``."""
        with self.nested():
            pos = self.token.pos
            recursive, ctes = self._with()
            body = self._set_operations()
            order = self.comma_separated(self.sort_item) if self.take_word("ORDER", "BY") else ()
            for word in ("CLUSTER", "DISTRIBUTE", "SORT"):
                if self.at_word(word, "BY"):
                    self.fail(
                        f"{word} BY is not supported: the order of partitions is the engine's; use ORDER BY"
                    )
            windows = self._windows()
            limit = offset = None
            if self.take_word("LIMIT") and not self._take_limit_all():
                limit = self.expression()
            if self.take_word("OFFSET"):
                offset = self.expression()
                if self.at_word("LIMIT"):
                    self.fail("LIMIT must come before OFFSET")
            if self.at_op("|>"):
                self.fail("pipe syntax is not supported")
            return q.Query(body, ctes, order, windows, limit, offset, recursive, pos=pos)

    def _take_limit_all(self) -> bool:
        return not self.at_op(".", "(", ahead=1) and self.take_word("ALL")

    # --- WITH --------------------------------------------------------------------------------------

    def _with(self) -> tuple[bool, tuple[q.CommonTable, ...]]:
        """Read ``WITH [RECURSIVE] tables``, or nothing."""
        if not self.take_word("WITH"):
            return False, ()
        recursive = self.take_word("RECURSIVE")
        return recursive, self.comma_separated(self._common_table)

    def _common_table(self) -> q.CommonTable:
        pos = self.token.pos
        name = self.name("a name after WITH")
        columns: tuple[str, ...] = ()
        if self.at_op("(") and not self.at_query(1):
            columns = self.names_in_parentheses("a column's name")
        max_rounds = None
        if self.take_word("MAX", "RECURSION"):
            self.expect_word("LEVEL", " after MAX RECURSION")
            max_rounds = self.integer("a number of rounds")
        self.take_word("AS")
        return q.CommonTable(name, self.query_in_parentheses(), columns, max_rounds, pos=pos)

    # --- set operations ----------------------------------------------------------------------------

    def _set_operations(self) -> q.QueryBody:
        """UNION and EXCEPT from left to right; INTERSECT binds tighter."""
        left = self._intersections()
        while self.at_any(SET_OPERATORS):
            token = self.advance()
            keep_all = self._quantifier() == "ALL"
            op = "EXCEPT" if token.upper == "MINUS" else token.upper
            left = q.SetQuery(op, left, self._intersections(), keep_all, pos=token.pos)
        return left

    def _intersections(self) -> q.QueryBody:
        left = self._primary_query()
        while self.at_word("INTERSECT"):
            pos = self.advance().pos
            keep_all = self._quantifier() == "ALL"
            left = q.SetQuery("INTERSECT", left, self._primary_query(), keep_all, pos=pos)
        return left

    def _quantifier(self) -> str | None:
        return self.advance().upper if self.at_any(("ALL", "DISTINCT")) else None

    def _primary_query(self) -> q.QueryBody:
        pos = self.token.pos
        if self.at_op("("):
            query = self.query_in_parentheses()
            # Parentheses around a bare body mean nothing once the tree stands.
            return query.body if query == q.Query(query.body) else query
        if self.at_word("SELECT"):
            return self._select()
        if self.at_word("VALUES"):
            return self.values()
        if self.take_word("TABLE"):
            table = r.Table(self.dotted_name("a table"), pos=pos)
            return q.Select((e.Star(pos=pos),), table, pos=pos)
        if self.at_word("FROM"):
            self.fail("a query cannot start with FROM here: write SELECT first")
        self.fail_expected("SELECT, VALUES, TABLE, WITH or '('")

    # --- SELECT ------------------------------------------------------------------------------------

    def _select(self) -> q.Select:
        pos = self.advance().pos
        hints: tuple[q.Hint, ...] = ()
        while self.at_op("/*+"):
            hints += self._hints()
        distinct = self._select_quantifier()
        items = self.comma_separated(self.named_expression)
        relation: r.Relation | None = None
        views: tuple[r.LateralView, ...] = ()
        if self.take_word("FROM"):
            relation = self.from_clause()
        if self.at_word("LATERAL", "VIEW"):
            views = self.lateral_views()
        where = self.expression() if self.take_word("WHERE") else None
        group_by = self._group_by() if self.take_word("GROUP", "BY") else None
        having = self.expression() if self.take_word("HAVING") else None
        qualify = self.expression() if self.take_word("QUALIFY") else None
        windows = self._windows()
        return q.Select(
            items, relation, views, where, group_by, having, qualify, windows, distinct, hints, pos=pos
        )

    def _select_quantifier(self) -> bool:
        """Read ALL or DISTINCT unless an operator or a comma shows that it is a column of that name."""
        if not self.at_any(("ALL", "DISTINCT")) or self.name_only():
            return False
        return self._quantifier() == "DISTINCT"

    def _hints(self) -> tuple[q.Hint, ...]:
        self.expect_op("/*+")
        hints = [self._hint()]
        while not self.at_op("*/"):
            self.take_op(",")
            hints.append(self._hint())
        self.advance()
        return tuple(hints)

    def _hint(self) -> q.Hint:
        pos = self.token.pos
        name = self.name("a hint")
        arguments: tuple[e.Expression, ...] = ()
        if self.take_op("("):
            arguments = self.comma_separated(self.primary)
            self.expect_op(")", " to close the hint")
        return q.Hint(name, arguments, pos=pos)

    def _windows(self) -> tuple[q.NamedWindow, ...]:
        return self.comma_separated(self._named_window) if self.take_word("WINDOW") else ()

    def _named_window(self) -> q.NamedWindow:
        pos = self.token.pos
        name = self.name("a window's name")
        self.expect_word("AS", " after the window's name")
        return q.NamedWindow(name, self.window(), pos=pos)

    # --- GROUP BY ----------------------------------------------------------------------------------

    def _group_by(self) -> q.GroupBy:
        pos = self.token.pos
        elements = self.comma_separated(self._grouping_element)
        plain = tuple(element for element in elements if isinstance(element, e.Expression))
        for word, node in (("ROLLUP", q.Rollup), ("CUBE", q.Cube)):
            if self.at_word("WITH", word):
                if len(plain) != len(elements):
                    self.fail(f"WITH {word} takes plain expressions only")
                self.index += 2
                return q.GroupBy((node(tuple((expression,) for expression in plain), pos=pos),), pos=pos)
        if self.at_word("GROUPING", "SETS"):
            if len(plain) != len(elements):
                self.fail("GROUPING SETS after GROUP BY takes plain expressions only")
            self.index += 2
            self.expect_op("(")
            sets = self.comma_separated(self._grouping_set)
            self.expect_op(")", " to close GROUPING SETS")
            return q.GroupBy(elements, sets, pos=pos)
        return q.GroupBy(elements, pos=pos)

    def _grouping_element(self) -> q.GroupingElement:
        return self._grouping_analytics() or self.expression()

    def _grouping_analytics(self) -> q.Rollup | q.Cube | q.GroupingSets | None:
        pos = self.token.pos
        if self.at_any(("ROLLUP", "CUBE")) and self.at_op("(", ahead=1):
            node = q.Rollup if self.advance().upper == "ROLLUP" else q.Cube
            self.advance()
            sets = tuple(group.expressions for group in self.comma_separated(self._grouping_set))
            self.expect_op(")")
            return node(sets, pos=pos)
        if self.at_word("GROUPING", "SETS") and self.at_op("(", ahead=2):
            self.index += 3
            with self.nested():
                elements = self.comma_separated(lambda: self._grouping_analytics() or self._grouping_set())
            self.expect_op(")", " to close GROUPING SETS")
            return q.GroupingSets(elements, pos=pos)
        return None

    def _grouping_set(self) -> q.GroupingSet:
        """``()``, ``(a, b)`` or a single expression, which may itself start with a parenthesis."""
        pos = self.token.pos
        if self.at_op("(") and self.at_op(")", ahead=1):
            self.index += 2
            return q.GroupingSet((), pos=pos)
        expression = self.expression()
        parts = expression.items if isinstance(expression, e.Row) else (expression,)
        for part in parts:
            if isinstance(part, (e.Aliased, e.MultiAliased)):
                self.fail("an alias cannot stand in GROUP BY", part.pos)
        return q.GroupingSet(parts, pos=pos)
