"""The token stream that the parser reads; it also raises the parser's errors and limits the nesting depth."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from typing import NoReturn, TypeVar

from typing_extensions import Self

from kquery_spark.errors import SqlError
from kquery_spark.frontends.sql.parser.tokens import Kind, Token, tokenize
from kquery_spark.run_control import check_run

#: Maximum nesting depth of parentheses, CASE, function calls and prefix operators (a subquery counts two or three levels).
#: A level takes about ten stack frames, of the thousand that Python allows by default.
MAX_NESTING = 64

T = TypeVar("T")


class TokenStream:
    """The tokens of one SQL string and the position of the next one."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self.tokens = tokenize(sql)
        self.index = 0
        self._depth = 0

    # --- looking ahead -----------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.index]

    def peek(self, ahead: int = 1) -> Token:
        """Return the token ``ahead`` positions after the next one, or the END token if there are fewer."""
        return self.tokens[min(self.index + ahead, len(self.tokens) - 1)]

    def at_op(self, *operators: str, ahead: int = 0) -> bool:
        """True if the token ``ahead`` positions after the next one is one of these operators."""
        token = self.peek(ahead)
        return token.kind is Kind.OP and token.value in operators

    def at_word(self, *words: str) -> bool:
        """True if the next tokens are these keywords, in this order."""
        return all(self.peek(ahead).upper == word for ahead, word in enumerate(words))

    def at_any(self, words: Collection[str], ahead: int = 0) -> bool:
        """True if the token ``ahead`` positions after the next one is one of these keywords."""
        return self.peek(ahead).upper in words

    # --- reading -----------------------------------------------------------------------------------

    def advance(self) -> Token:
        """Read one token."""
        check_run()
        token = self.tokens[self.index]
        if token.kind is not Kind.END:
            self.index += 1
        return token

    def skip(self, count: int) -> None:
        """Move past ``count`` tokens that the caller has already checked."""
        self.index += count

    def take_op(self, operator: str) -> bool:
        """Read the operator if it is next; return True if so."""
        if self.at_op(operator):
            self.index += 1
            return True
        return False

    def take_word(self, *words: str) -> bool:
        """Read these keywords if all of them are next; return True if so."""
        if self.at_word(*words):
            self.index += len(words)
            return True
        return False

    def expect_op(self, operator: str, where: str = "") -> Token:
        """Read the operator or raise SqlError; ``where`` completes the message."""
        if not self.at_op(operator):
            self.fail_expected(f"'{operator}'{where}")
        return self.advance()

    def expect_word(self, word: str, where: str = "") -> Token:
        """Read the keyword or raise SqlError; ``where`` completes the message."""
        if not self.at_word(word):
            self.fail_expected(f"{word}{where}")
        return self.advance()

    def name(self, what: str = "a name") -> str:
        """Read one identifier: any word, or a name in backticks. ``what`` describes it in the error message."""
        if self.token.kind not in (Kind.WORD, Kind.QUOTED):
            self.fail_expected(what)
        return self.advance().value

    def dotted_name(self, what: str = "a name") -> tuple[str, ...]:
        """Read ``a.b.c``."""
        parts = [self.name(what)]
        while self.take_op("."):
            parts.append(self.name("a name after '.'"))
        return tuple(parts)

    def names(self, what: str = "a name") -> tuple[str, ...]:
        """Read ``a, b``."""
        return self.comma_separated(partial(type(self).name, what=what))

    def names_in_parentheses(self, what: str = "a name") -> tuple[str, ...]:
        """Read ``(a, b)``."""
        self.expect_op("(")
        names = self.names(what)
        self.expect_op(")")
        return names

    def comma_separated(self, item: Callable[[Self], T]) -> tuple[T, ...]:
        """Read one or more items separated by commas; ``item`` reads one of them."""
        items = [item(self)]
        while self.take_op(","):
            items.append(item(self))
        return tuple(items)

    def integer(self, what: str) -> int:
        """Read an integer without a suffix, of at most 18 digits."""
        token = self.token
        if token.kind is not Kind.NUMBER or not token.value.isdecimal() or len(token.value) > 18:
            self.fail_expected(what)
        return int(self.advance().value)

    def expect_end(self) -> None:
        """Raise SqlError unless all tokens have been read."""
        if self.token.kind is not Kind.END:
            self.fail(f"unexpected {self.token.describe()}")

    # --- failing -----------------------------------------------------------------------------------

    def fail(self, message: str, pos: int | None = None) -> NoReturn:
        """Raise SqlError at ``pos``, by default at the next token."""
        raise SqlError(message, self.sql, self.token.pos if pos is None else pos)

    def fail_expected(self, what: str) -> NoReturn:
        """Raise SqlError that says what is expected at the next token."""
        self.fail(f"expected {what}, found {self.token.describe()}")

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Count one level of nesting inside the block; raises SqlError if there are too many."""
        self._depth += 1
        if self._depth > MAX_NESTING:
            self.fail(f"this is nested deeper than {MAX_NESTING} levels")
        try:
            yield
        finally:
            self._depth -= 1
