"""The Pratt parser of expressions: binding powers, operators and predicates."""

from __future__ import annotations

from dataclasses import replace

from kquery_spark.frontends.sql.ast import expressions as e
from kquery_spark.frontends.sql.forms import FormParser
from kquery_spark.frontends.sql.keywords import OPERATORS
from kquery_spark.frontends.sql.tokens import Kind

# Binding powers, weakest first. Spark's grammar has three layers: boolean (OR, AND, NOT), one optional
# predicate, and values, where comparisons are ordinary left-associative operators of the weakest rank (40).
OR, AND, NOT, PREDICATE, VALUE = 10, 20, 25, 30, 31
UNARY = 110

_CONNECTIVES: dict[str, tuple[int, type[e.And] | type[e.Or]]] = {"AND": (AND, e.And), "OR": (OR, e.Or)}


class ExpressionParser(FormParser):
    """Reads expressions of every kind."""

    def expression(self) -> e.Expression:
        """Read one expression of the boolean layer."""
        with self.nested():
            return self._binary(0)

    def value_expression(self) -> e.Expression:
        """Read one expression of the value layer: no AND, OR, NOT or predicate outside parentheses."""
        with self.nested():
            return self._binary(VALUE)

    def _binary(self, minimum: int) -> e.Expression:
        """Read a prefix, then every operator that binds at least as tightly as ``minimum``."""
        left, ceiling = self._prefix(minimum)
        while True:
            token = self.token
            power = self._operator_power()
            if minimum <= power <= ceiling and power:
                self.advance()
                left = e.Binary(token.upper or token.value, left, self._binary(power + 1), pos=token.pos)
                ceiling = power
            elif token.upper in _CONNECTIVES and minimum <= _CONNECTIVES[token.upper][0] <= ceiling:
                ceiling, connective = _CONNECTIVES[token.upper]
                left = connective(self._terms(left, token.upper, ceiling), pos=left.pos)
            elif minimum <= PREDICATE <= ceiling and (predicate := self._predicate(left)) is not None:
                # A predicate cannot be followed by another one or by an operator: only AND and OR go on.
                left, ceiling = predicate, AND
            else:
                return left

    def _operator_power(self) -> int:
        """The binding power of the operator that stands here; 0 if none does."""
        token = self.token
        return OPERATORS.get(token.upper or token.value, 0) if token.kind in (Kind.OP, Kind.WORD) else 0

    def _terms(self, first: e.Expression, word: str, power: int) -> tuple[e.Expression, ...]:
        terms = [first]
        while self.take_word(word):
            terms.append(self._binary(power + 1))
        return tuple(terms)

    def _prefix(self, minimum: int) -> tuple[e.Expression, int]:
        """Read the start of an expression; the second value limits the binding power of the operator after it."""
        token = self.token
        if (token.upper == "NOT" and not self.name_only()) or self.at_op("!"):
            if minimum > NOT:
                self.fail("NOT must stand in parentheses here")
            self.advance()
            with self.nested():
                return e.Not(self._binary(NOT), pos=token.pos), AND
        if self._at_exists():
            if minimum > PREDICATE:
                self.fail("EXISTS must stand in parentheses here")
            self.advance()
            return e.Exists(self.query_in_parentheses(), pos=token.pos), AND
        if self.at_op("-", "+", "~"):
            return self._signed(), UNARY
        operand = self.primary()
        return operand, 0 if isinstance(operand, (e.Star, e.Lambda)) else UNARY

    def _at_exists(self) -> bool:
        """Whether EXISTS stands here with a subquery, not as a function's name."""
        is_call = self.at_word("EXISTS") and self.at_op("(", ahead=1)
        return is_call and self.at_query(2, through_parentheses=True)

    def _signed(self) -> e.Expression:
        token = self.token
        if token.value == "-" and self.peek().kind is Kind.NUMBER:
            # The sign is part of the literal: the smallest integers can be written, and -1::int casts -1.
            return self.primary()
        self.advance()
        with self.nested():
            return e.Unary(token.value, self._binary(UNARY), pos=token.pos)

    # --- predicates --------------------------------------------------------------------------------

    def _predicate(self, left: e.Expression) -> e.Expression | None:
        """Read ``IS ...``, ``[NOT] IN ...`` and their like after ``left``, or nothing."""
        token = self.token
        if self.take_word("IS"):
            return self._is(left, token.pos)
        negated = token.upper == "NOT"
        word = self.peek(int(negated)).upper
        if word not in ("IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP"):
            return None
        self.index += 1 + int(negated)
        if word == "IN":
            return self._in(left, negated, token.pos)
        if word == "BETWEEN":
            low = self.value_expression()
            self.expect_word("AND", " after BETWEEN's lower bound")
            return e.Between(left, low, self.value_expression(), negated, pos=token.pos)
        return self._like(left, "RLIKE" if word == "REGEXP" else word, negated, token.pos)

    def _is(self, left: e.Expression, pos: int) -> e.Expression:
        negated = self.take_word("NOT")
        if self.take_word("NULL"):
            return e.IsNull(left, negated, pos=pos)
        if self.take_word("DISTINCT"):
            self.expect_word("FROM", " after IS DISTINCT")
            return e.IsDistinct(left, self.value_expression(), negated, pos=pos)
        for word, value in (("TRUE", True), ("FALSE", False), ("UNKNOWN", None)):
            if self.take_word(word):
                return e.IsBoolean(left, value, negated, pos=pos)
        self.fail_expected("NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM after IS")

    def _in(self, left: e.Expression, negated: bool, pos: int) -> e.Expression:
        if self.at_op("(") and self.at_query(1):
            return e.InSubquery(left, self.query_in_parentheses(), negated, pos=pos)
        self.expect_op("(", " after IN")
        items = self.comma_separated(self.expression)
        self.expect_op(")", " after the values of IN")
        return e.InList(left, items, negated, pos=pos)

    def _like(self, left: e.Expression, kind: str, negated: bool, pos: int) -> e.Expression:
        if kind != "RLIKE" and self.at_any(("ANY", "SOME", "ALL")) and self.at_op("(", ahead=1):
            quantifier = "ALL" if self.advance().upper == "ALL" else "ANY"
            self.advance()
            patterns = self.comma_separated(self.expression)
            self.expect_op(")", f" after the patterns of {kind} {quantifier}")
            return e.LikeQuantified(left, patterns, kind, quantifier, negated, pos=pos)
        like = e.Like(left, self.value_expression(), kind, None, negated, pos=pos)
        if kind != "RLIKE" and self.take_word("ESCAPE"):
            if self.token.kind is not Kind.STRING or len(self.token.value) != 1:
                self.fail("ESCAPE takes a string of one character")
            return replace(like, escape=self.advance().value)
        return like
