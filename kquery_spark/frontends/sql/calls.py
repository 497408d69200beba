"""Names, stars, lambdas and function calls with DISTINCT, FILTER, WITHIN GROUP and OVER."""

from __future__ import annotations

from abc import ABC, abstractmethod

from kquery_spark.frontends.sql.aliases import AliasParser
from kquery_spark.frontends.sql.ast import expressions as e
from kquery_spark.frontends.sql.tokens import Kind
from kquery_spark.functions.aggregate_registry import takes_null_treatment


class CallParser(AliasParser, ABC):
    """Reads expressions that start with a name."""

    @abstractmethod
    def expression(self) -> e.Expression:
        """Read an expression."""

    @abstractmethod
    def value_expression(self) -> e.Expression:
        """Read an expression without AND, OR, NOT and predicates outside parentheses."""

    @abstractmethod
    def at_query(self, ahead: int, *, through_parentheses: bool = False) -> bool:
        """Whether a query starts ``ahead`` tokens from here."""

    def named_expression(self) -> e.Expression:
        """Read an expression with an optional alias or list of aliases."""
        expression = self.expression()
        pos = self.token.pos
        if self.at_op("(") or (self.at_word("AS") and self.at_op("(", ahead=1)):
            self.take_word("AS")
            return e.MultiAliased(expression, self.names_in_parentheses("an alias"), pos=pos)
        alias = self.column_alias()
        return expression if alias is None else e.Aliased(expression, alias, pos=pos)

    def sort_item(self) -> e.SortItem:
        """Read one item of ORDER BY."""
        pos = self.token.pos
        expression = self.expression()
        ascending = self.take_word("ASC") or not self.take_word("DESC")
        nulls_first = ascending
        if self.take_word("NULLS"):
            nulls_first = self.take_word("FIRST")
            if not nulls_first:
                self.expect_word("LAST", " or FIRST after NULLS")
        return e.SortItem(expression, ascending, nulls_first, pos=pos)

    def star_except(self, star: e.Star) -> e.Star:
        """Read ``EXCEPT (names)`` after a star, unless it is the set operation."""
        if not (self.at_word("EXCEPT") and self.at_op("(", ahead=1)) or self.at_query(
            2, through_parentheses=True
        ):
            return star
        self.advance()
        self.expect_op("(")
        excluded = self.comma_separated(self.dotted_name)
        self.expect_op(")")
        return e.Star(star.qualifier, excluded, pos=star.pos)

    def name_or_call(self) -> e.Expression:
        """Read ``a.b.c``, ``t.*``, ``x -> body`` or ``f(...)``."""
        token = self.token
        parts = [self.name()]
        if self.take_op("->"):
            return e.Lambda((parts[0],), self.expression(), pos=token.pos)
        while self.at_op("."):
            self.advance()
            if self.take_op("*"):
                return self.star_except(e.Star(tuple(parts), pos=token.pos))
            parts.append(self.name("a name or * after '.'"))
        if not self.at_op("("):
            return e.Name(tuple(parts), pos=token.pos)
        if token.upper == "IDENTIFIER" and len(parts) == 1:
            self.fail("the IDENTIFIER clause is not supported", token.pos)
        return self._call(tuple(parts), token.pos, token.upper if len(parts) == 1 else "")

    # --- calls -------------------------------------------------------------------------------------

    def _call(self, name: tuple[str, ...], pos: int, keyword: str) -> e.Call:
        self.expect_op("(")
        distinct = False
        arguments: tuple[e.Expression, ...] = ()
        nulls = None
        if not self.at_op(")"):
            distinct = self._set_quantifier() == "DISTINCT"
            argument = self.named_expression if keyword == "STRUCT" else self._argument
            arguments = self.comma_separated(argument)
            takes_nulls = len(arguments) == 1 and takes_null_treatment(keyword)
            if takes_nulls and self.take_word("IGNORE", "NULLS"):
                nulls = "IGNORE"
        self.expect_op(")", f" to close the arguments of {'.'.join(name)}")
        within = self._within_group()
        condition = self._filter()
        nulls = nulls or self._null_treatment()
        over = self.window() if self._at_over() and self.advance() else None
        return e.Call(name, arguments, distinct, within, condition, nulls, over, pos=pos)

    def _set_quantifier(self) -> str:
        """Read DISTINCT or ALL before arguments; empty where the word is an argument's name or function."""
        is_quantifier = self.at_any(("DISTINCT", "ALL")) and not self.at_op(")", ",", ".", "(", ahead=1)
        if is_quantifier or (self.at_word("DISTINCT") and self.at_op("(", ahead=1)):
            return self.advance().upper
        return ""

    def _null_treatment(self) -> str | None:
        """Read ``IGNORE NULLS`` or ``RESPECT NULLS`` or nothing."""
        for option in ("IGNORE", "RESPECT"):
            if self.take_word(option, "NULLS"):
                return option
        return None

    def _argument(self) -> e.Expression:
        token = self.token
        if token.kind in (Kind.WORD, Kind.QUOTED) and self.at_op("=>", ahead=1):
            self.index += 2
            return e.NamedArgument(token.value, self.expression(), pos=token.pos)
        return self.expression()

    def _within_group(self) -> tuple[e.SortItem, ...]:
        if not self.take_word("WITHIN", "GROUP"):
            return ()
        self.expect_op("(")
        self.expect_word("ORDER")
        self.expect_word("BY")
        items = self.comma_separated(self.sort_item)
        self.expect_op(")")
        return items

    def _filter(self) -> e.Expression | None:
        if not (self.at_word("FILTER") and self.at_op("(", ahead=1)):
            return None
        self.advance()
        self.expect_op("(")
        self.expect_word("WHERE", " in FILTER")
        condition = self.expression()
        self.expect_op(")", " to close FILTER")
        return condition

    def _at_over(self) -> bool:
        after = self.peek()
        is_name = after.kind in (Kind.WORD, Kind.QUOTED)
        return self.at_word("OVER") and (is_name or self.at_op("(", ahead=1))

    # --- windows -----------------------------------------------------------------------------------

    def window(self) -> e.Window:
        """Read a window: its name or ``(PARTITION BY ... ORDER BY ... frame)``."""
        pos = self.token.pos
        if not self.at_op("("):
            return e.WindowName(self.name("a window"), pos=pos)
        self.advance()
        if self.token.kind in (Kind.WORD, Kind.QUOTED) and self.at_op(")", ahead=1):
            name = self.advance().value
            self.advance()
            return e.WindowName(name, pos=pos)
        partition: tuple[e.Expression, ...] = ()
        order: tuple[e.SortItem, ...] = ()
        if self.take_word("CLUSTER", "BY"):
            partition = self.comma_separated(self.expression)
        else:
            if self.take_word("PARTITION", "BY") or self.take_word("DISTRIBUTE", "BY"):
                partition = self.comma_separated(self.expression)
            if self.take_word("ORDER", "BY") or self.take_word("SORT", "BY"):
                order = self.comma_separated(self.sort_item)
        frame = self._frame() if self.at_any(("ROWS", "RANGE")) else None
        self.expect_op(")", " to close the window")
        return e.WindowSpec(partition, order, frame, pos=pos)

    def _frame(self) -> e.WindowFrame:
        unit = self.advance()
        if self.take_word("BETWEEN"):
            start = self._bound()
            self.expect_word("AND", " between the frame's bounds")
            return e.WindowFrame(unit.upper, start, self._bound(), pos=unit.pos)
        return e.WindowFrame(
            unit.upper, self._bound(), e.FrameBound("CURRENT ROW", pos=unit.pos), pos=unit.pos
        )

    def _bound(self) -> e.FrameBound:
        pos = self.token.pos
        if self.take_word("CURRENT", "ROW"):
            return e.FrameBound("CURRENT ROW", pos=pos)
        offset = None if self.take_word("UNBOUNDED") else self.expression()
        if not self.at_any(("PRECEDING", "FOLLOWING")):
            self.fail_expected("PRECEDING or FOLLOWING")
        side = self.advance().upper
        return e.FrameBound(side if offset is not None else f"UNBOUNDED {side}", offset, pos=pos)
