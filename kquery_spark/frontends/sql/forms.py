"""Primary expressions: literals, names, parentheses and the keyword forms (CASE, CAST, EXTRACT ...)."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import NoReturn

from kquery_spark.frontends.sql.ast import expressions as e
from kquery_spark.frontends.sql.ast.queries import Query
from kquery_spark.frontends.sql.calls import CallParser
from kquery_spark.frontends.sql.intervals import BadInterval, from_range, from_text, from_units, unit_of
from kquery_spark.frontends.sql.keywords import NOT_A_COLUMN, SET_OPERATORS
from kquery_spark.frontends.sql.literals import number_literal
from kquery_spark.frontends.sql.tokens import Kind, Token
from kquery_spark.functions.registry import unit_function

# Operators no keyword form can go on with: a keyword before one of them is a plain name.
_AFTER_A_NAME = frozenset(
    {")", "]", ",", ".", "=", "<>", "<", "<=", ">", ">=", "<=>", "|", "^", "&", "<<", ">>", ">>>"}
    | {"||", "/", "%", "::", "->", "=>", ";", "*/"}
)
_AFTER_QUERY = SET_OPERATORS | {"ORDER", "LIMIT", "OFFSET", "SORT", "CLUSTER", "DISTRIBUTE"}
_DATE_TYPES = {
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_LTZ": "timestamp",
    "TIMESTAMP_NTZ": "timestamp_ntz",
}
_QUERY_STARTS = frozenset({"SELECT", "WITH", "VALUES", "TABLE", "FROM"})
_CONSTANTS = {"NULL": None, "TRUE": True, "FALSE": False}
_HEXADECIMAL = re.compile("[0-9A-Fa-f]*")
_UNITS = frozenset(
    """YEAR QUARTER MONTH WEEK DAY DAYOFYEAR HOUR MINUTE SECOND MILLISECOND MICROSECOND""".split()  # noqa: SIM905
)


class FormParser(CallParser):
    """Reads primary expressions with their suffixes: ``.field``, ``[index]``, ``::type``."""

    @abstractmethod
    def query(self) -> Query:
        """Read a query."""

    def query_in_parentheses(self) -> Query:
        """Read ``(query)``."""
        self.expect_op("(")
        query = self.query()
        self.expect_op(")", " after the subquery")
        return query

    def name_only(self) -> bool:
        """Whether the next word must be a plain name because nothing it could introduce follows."""
        after = self.peek()
        return after.kind is Kind.END or (after.kind is Kind.OP and after.value in _AFTER_A_NAME)

    def at_query(self, ahead: int, *, through_parentheses: bool = False) -> bool:
        """Whether a query starts ``ahead`` tokens from here, which is just inside an open parenthesis.

        ``((SELECT 1))`` starts with a subquery as a value, ``((SELECT 1) UNION ...)`` with a query: what
        follows the inner parenthesis tells, unless ``through_parentheses`` says that only a query can stand
        here.
        """
        first = inner = min(self.index + ahead, len(self.tokens) - 1)
        while self.tokens[inner].kind is Kind.OP and self.tokens[inner].value == "(":
            inner += 1
        if self.tokens[inner].upper not in _QUERY_STARTS or not self._introduces_query(inner):
            return False
        if inner == first or through_parentheses:
            return True
        closing = self._closing(first)
        return closing + 1 < len(self.tokens) and self.tokens[closing + 1].upper in _AFTER_QUERY

    def _introduces_query(self, at: int) -> bool:
        """Whether SELECT, VALUES ... at this index starts a query and is not a column of that name."""
        word, after = self.tokens[at].upper, self.tokens[min(at + 1, len(self.tokens) - 1)]
        if after.kind is Kind.END:
            return False
        if after.kind is Kind.OP:
            return word in ("SELECT", "VALUES") and after.value in ("(", "*", "-", "+", "~", "!", "/*+")
        return word == "SELECT" or after.upper not in ("IS", "IN", "NOT", "AND", "OR", "BETWEEN", "LIKE")

    def _closing(self, opening: int) -> int:
        """Index of the parenthesis that closes the one at ``opening``, or of the end."""
        depth = 0
        for index in range(opening, len(self.tokens)):
            token = self.tokens[index]
            if token.kind is Kind.OP and token.value in "()":
                depth += 1 if token.value == "(" else -1
                if depth == 0:
                    return index
        return len(self.tokens) - 1

    # --- primaries ---------------------------------------------------------------------------------

    def primary(self) -> e.Expression:
        """Read one primary expression."""
        operand = self._atom()
        if isinstance(operand, (e.Lambda, e.Star)):
            return operand
        while True:
            pos = self.token.pos
            if self.take_op("["):
                operand = e.Subscript(operand, self.value_expression(), pos=pos)
                self.expect_op("]", " after the index")
            elif self.take_op("::"):
                operand = e.Cast(operand, self.data_type(), pos=pos)
            elif self.take_op("."):
                name = self.name("a name after '.'")
                if isinstance(operand, e.Name):
                    operand = e.Name((*operand.parts, name), pos=operand.pos)
                else:
                    operand = e.Field(operand, name, pos=pos)
            elif self.at_word("COLLATE") and self.peek().kind in (Kind.WORD, Kind.QUOTED):
                self.fail("COLLATE is not supported")
            else:
                return operand

    def _atom(self) -> e.Expression:
        token = self.token
        if token.kind is Kind.STRING:
            return self._string()
        if token.kind is Kind.NUMBER or self.at_op("-"):
            return self._number()
        if token.kind is Kind.QUOTED:
            return self.name_or_call()
        if token.kind is Kind.WORD:
            return self._word()
        if self.at_op("("):
            return self._parenthesis()
        if self.at_op("*"):
            self.advance()
            return self.star_except(e.Star(pos=token.pos))
        self._fail_no_expression()

    def _fail_no_expression(self) -> NoReturn:
        if self.at_op("?") or (self.at_op(":") and self.peek().kind is Kind.WORD):
            self.fail("query parameters are not supported")
        if self.at_op("/*+"):
            self.fail("a hint can only follow SELECT")
        self.fail_expected("an expression")

    def _string(self) -> e.Expression:
        pos, parts = self.token.pos, []
        while self.token.kind is Kind.STRING:
            parts.append(self.advance().value)
        return e.StringLiteral("".join(parts), pos=pos)

    def _number(self) -> e.Expression:
        pos = self.token.pos
        negative = self.take_op("-")
        literal = number_literal(self.advance().value, pos, negative=negative)
        if isinstance(literal, str):
            self.fail(literal, pos)
        return literal

    def _word(self) -> e.Expression:
        """Read a keyword form if its keyword stands here with what must follow it, else a name or a call."""
        token = self.token
        if token.upper in _CONSTANTS:
            self.advance()
            value = _CONSTANTS[token.upper]
            return e.NullLiteral(pos=token.pos) if value is None else e.BooleanLiteral(value, pos=token.pos)
        form = self._keyword_form()
        if form is not None:
            return form(self)
        if token.upper in NOT_A_COLUMN and not self.at_op(".", "(", ahead=1):
            self.fail_expected("an expression")
        return self.name_or_call()

    def _keyword_form(self) -> _Form | None:
        """What reads the keyword form that stands here; None for a name or a call."""
        word = self.token.upper
        if word == "CASE" and not self.name_only():
            return FormParser._case
        if word == "INTERVAL" and self._at_interval():
            return FormParser._interval
        if self.peek().kind is Kind.STRING:
            return FormParser._typed_literal
        if not self.at_op("(", ahead=1):
            return None
        unit_call = unit_function(word)
        return _FORMS.get(word) or (
            partial(FormParser._unit_function, function=unit_call) if unit_call else None
        )

    def _parenthesis(self) -> e.Expression:
        pos = self.token.pos
        if self.at_query(1):
            return e.ScalarSubquery(self.query_in_parentheses(), pos=pos)
        if self._at_lambda():
            parameters = self.names_in_parentheses()
            self.expect_op("->")
            return e.Lambda(parameters, self.expression(), pos=pos)
        self.advance()
        items = self.comma_separated(self.named_expression)
        self.expect_op(")")
        if len(items) > 1:
            return e.Row(items, pos=pos)
        if isinstance(items[0], (e.Aliased, e.MultiAliased)):
            self.fail("an alias cannot stand inside parentheses", items[0].pos)
        return items[0]

    def _at_lambda(self) -> bool:
        """Whether ``(x, y) ->`` stands here; one parameter is written without parentheses."""
        ahead = 1
        while self.peek(ahead).kind in (Kind.WORD, Kind.QUOTED) and self.at_op(",", ahead=ahead + 1):
            ahead += 2
        is_name = self.peek(ahead).kind in (Kind.WORD, Kind.QUOTED)
        return (
            ahead > 1 and is_name and self.at_op(")", ahead=ahead + 1) and self.at_op("->", ahead=ahead + 2)
        )

    # --- keyword forms -----------------------------------------------------------------------------

    def _case(self) -> e.Expression:
        pos = self.advance().pos
        operand = None if self.at_word("WHEN") else self.expression()
        branches = []
        while self.at_word("WHEN"):
            when = self.advance()
            condition = self.expression()
            self.expect_word("THEN", " after WHEN's condition")
            branches.append(e.When(condition, self.expression(), pos=when.pos))
        if not branches:
            self.fail_expected("WHEN")
        otherwise = self.expression() if self.take_word("ELSE") else None
        self.expect_word("END", " to close CASE")
        return e.CaseExpression(operand, tuple(branches), otherwise, pos=pos)

    def _cast(self) -> e.Expression:
        token = self.advance()
        self.expect_op("(")
        operand = self.expression()
        self.expect_word("AS", f" in {token.upper}")
        kind = self.data_type()
        self.expect_op(")", f" to close {token.upper}")
        return e.Cast(operand, kind, token.upper == "TRY_CAST", pos=token.pos)

    def _extract(self) -> e.Expression:
        if self.peek(3).upper != "FROM":
            return self.name_or_call()
        pos = self.advance().pos
        self.expect_op("(")
        field = self.name("a field to extract")
        self.expect_word("FROM")
        source = self.value_expression()
        self.expect_op(")", " to close EXTRACT")
        return e.Extract(field, source, pos=pos)

    def _trim(self) -> e.Expression:
        inner_words, _ = self._inside()
        if "FROM" not in inner_words:
            return self.name_or_call()
        pos = self.advance().pos
        self.expect_op("(")
        side = "BOTH"
        if self.at_any(("BOTH", "LEADING", "TRAILING")) and not self.at_op(".", ahead=1):
            side = self.advance().upper
        characters = None if self.at_word("FROM") else self.value_expression()
        self.expect_word("FROM", " in TRIM")
        source = self.value_expression()
        self.expect_op(")", " to close TRIM")
        return e.Trim(side, characters, source, pos=pos)

    def _substring(self) -> e.Expression:
        return self._keyword_call("substring", ("FROM", "FOR"), 2)

    def _overlay(self) -> e.Expression:
        return self._keyword_call("overlay", ("PLACING", "FROM", "FOR"), 3)

    def _position(self) -> e.Expression:
        # IN is a predicate elsewhere, but inside POSITION only values can stand before it.
        call = self._keyword_call("locate", ("IN",), 2)
        if isinstance(call, e.Call) and call.name == ("locate",):
            return e.Call(
                call.name, (*call.arguments, e.IntegerLiteral(1, "int", pos=call.pos)), pos=call.pos
            )
        return call

    def _keyword_call(self, function: str, words: tuple[str, ...], at_least: int) -> e.Expression:
        """Read ``f(a WORD b WORD c)`` as a call of ``function``; the comma form is an ordinary call."""
        inner_words, commas = self._inside()
        if words[0] not in inner_words or commas:
            return self.name_or_call()
        token = self.advance()
        self.expect_op("(")
        arguments = [self.value_expression()]
        for word in words:
            if len(arguments) < at_least:
                self.expect_word(word, f" in {token.upper}")
            elif not self.take_word(word):
                break
            arguments.append(self.value_expression())
        self.expect_op(")", f" to close {token.upper}")
        return e.Call((function,), tuple(arguments), pos=token.pos)

    def _unit_function(self, function: str) -> e.Expression:
        """``timestampadd(DAY, 1, x)`` as a call of ``function``; with two arguments these names are ordinary functions."""
        unit = self.peek(2)
        _, commas = self._inside()
        if unit.upper not in _UNITS or not self.at_op(",", ahead=3) or commas != 2:
            return self.name_or_call()
        token = self.advance()
        self.index += 3
        amount = self.value_expression()
        self.expect_op(",")
        value = self.value_expression()
        self.expect_op(")", f" to close {token.upper}")
        arguments = (e.DateTimeUnit(unit.upper, pos=unit.pos), amount, value)
        return e.Call((function,), arguments, pos=token.pos)

    def _inside(self) -> tuple[set[str], int]:
        """The words and the number of commas directly inside the parentheses after the next word."""
        words: set[str] = set()
        commas = depth = 0
        for token in self.tokens[self.index + 1 :]:
            if token.kind is Kind.OP and token.value in "()[]":
                depth += 1 if token.value in "([" else -1
                if depth == 0:
                    break
            elif depth == 1:
                words.add(token.upper)
                commas += token.kind is Kind.OP and token.value == ","
        return words, commas

    # --- typed literals and intervals --------------------------------------------------------------

    def _typed_literal(self) -> e.Expression:
        word = self.advance()
        text = self.advance().value
        if word.upper in _DATE_TYPES:
            return e.TypedLiteral(_DATE_TYPES[word.upper], text, pos=word.pos)
        if word.upper == "X":
            if not _HEXADECIMAL.fullmatch(text):
                self.fail(f"'{text}' is not hexadecimal", word.pos)
            return e.BinaryLiteral(bytes.fromhex("0" * (len(text) % 2) + text), pos=word.pos)
        self.fail(f"there are no literals of type {word.value}", word.pos)

    def _at_interval(self) -> bool:
        sign = int(self.at_op("+", "-", ahead=1))
        value, unit = self.peek(1 + sign), self.peek(2 + sign)
        if value.kind not in (Kind.STRING, Kind.NUMBER):
            return False
        if sign or value.kind is Kind.NUMBER:
            return unit.kind is Kind.WORD and (not sign or _unit(unit) is not None)
        return True

    def _interval(self) -> e.Expression:
        pos = self.advance().pos
        try:
            return self._interval_items(pos)
        except BadInterval as error:
            self.fail(str(error), pos)

    def _interval_items(self, pos: int) -> e.IntervalLiteral:
        """Read ``2 hours '3' minutes``, ``'1 day 2 hours'`` or ``'1-2' YEAR TO MONTH``."""
        items: list[tuple[str, str, bool]] = []
        while not items or self._at_interval_item():
            negate = self._take_sign()
            is_text, text = self.token.kind is Kind.STRING, self.advance().value
            unit = _unit(self.token)
            if unit is None:
                if is_text and not items and not negate:
                    return from_text(text, pos)
                self.fail_expected("a unit of the interval")
            start = self.advance().upper
            if not items and self.take_word("TO"):
                if not is_text:
                    self.fail("the value of an interval with TO must be a string", pos)
                return from_range(text, start, self.name("a unit").upper(), pos, negate=negate)
            items.append((text, unit, negate))
        return from_units(items, pos)

    def _take_sign(self) -> bool:
        """Read a sign, if there is one; whether it is a minus."""
        negate = self.at_op("-")
        if self.at_op("-", "+"):
            self.advance()
        return negate

    def _at_interval_item(self) -> bool:
        """Whether one more ``2 hours`` or ``-2 hours`` follows directly."""
        sign = int(self.at_op("+", "-"))
        value, unit = self.peek(sign), self.peek(sign + 1)
        return value.kind in (Kind.NUMBER, Kind.STRING) and _unit(unit) is not None


def _unit(token: Token) -> str | None:
    """The unit that a word names."""
    return unit_of(token.value) if token.kind is Kind.WORD else None


_Form = Callable[[FormParser], e.Expression]

_FORMS: dict[str, _Form] = {
    "CAST": FormParser._cast,
    "TRY_CAST": FormParser._cast,
    "EXTRACT": FormParser._extract,
    "TRIM": FormParser._trim,
    "SUBSTRING": FormParser._substring,
    "SUBSTR": FormParser._substring,
    "OVERLAY": FormParser._overlay,
    "POSITION": FormParser._position,
}
