"""Expressions as written: nothing is resolved, typed or folded here."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Context, Decimal
from typing import TYPE_CHECKING

from kquery_spark.frontends.sql.ast.node import Node
from kquery_spark.frontends.sql.ast.types import TypeNode
from kquery_spark.functions.user import UserFunction

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.ast.queries import Query
    from kquery_spark.frontends.sql.ast.windows import Window


@dataclass(frozen=True)
class Expression(Node):
    """Base class of expressions with a value, and of ``*``, lambdas and aliases, which occur in the same places."""


@dataclass(frozen=True)
class NullLiteral(Expression):
    """``NULL``."""


@dataclass(frozen=True)
class BooleanLiteral(Expression):
    """``TRUE`` or ``FALSE``."""

    value: bool


@dataclass(frozen=True)
class StringLiteral(Expression):
    """A string, escapes already resolved and neighbors joined."""

    value: str


@dataclass(frozen=True)
class IntegerLiteral(Expression):
    """An integer of type ``tinyint``, ``smallint``, ``int`` or ``bigint``."""

    value: int
    type: str


@dataclass(frozen=True)
class DecimalLiteral(Expression):
    """A decimal kept as digits and scale, because ``1.5`` and ``1.50`` have different types."""

    unscaled: int
    scale: int

    @property
    def precision(self) -> int:
        """Digits in all, as Spark counts them: never fewer than the scale."""
        return max(len(str(abs(self.unscaled))), self.scale)

    @property
    def value(self) -> Decimal:
        """The number itself."""
        return Decimal(self.unscaled).scaleb(-self.scale, Context(prec=60))


@dataclass(frozen=True)
class FloatingLiteral(Expression):
    """A number of type ``double`` or ``float``."""

    value: float
    type: str


@dataclass(frozen=True)
class BinaryLiteral(Expression):
    """``X'1F'``."""

    value: bytes


@dataclass(frozen=True)
class TypedLiteral(Expression):
    """``DATE '...'`` and its like: type ``date``, ``timestamp`` (also TIMESTAMP_LTZ) or ``timestamp_ntz``.

    The string is read by the analyzer, which knows the session's time zone.
    """

    type: str
    text: str


@dataclass(frozen=True)
class IntervalLiteral(Expression):
    """An interval: ``amount`` is months when ``start`` is YEAR or MONTH, else microseconds."""

    amount: int
    start: str
    end: str

    @property
    def is_year_month(self) -> bool:
        """Whether this is a year-month interval (else day-time)."""
        return self.start in ("YEAR", "MONTH")


@dataclass(frozen=True)
class Name(Expression):
    """``a``, ``t.a``, ``s.t.a.field``. The analyzer decides which parts are qualifiers and which are struct fields.

    Functions that are called without parentheses (``current_date``, ``current_timestamp``, ``current_user`` ...) are
    Names, too; a column with the same name takes precedence. The ALL of ``GROUP BY ALL`` and ``ORDER BY ALL`` is also a
    Name.
    origin: the lineage of the column that the name must refer to if it was taken from a DataFrame; otherwise empty.
    """

    parts: tuple[str, ...]
    origin: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True)
class Star(Expression):
    """``*`` or ``t.*``, optionally ``EXCEPT (names)``."""

    qualifier: tuple[str, ...] = ()
    excluded: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Field(Expression):
    """``base.name`` where the base is not itself a dotted name."""

    base: Expression
    name: str


@dataclass(frozen=True)
class Subscript(Expression):
    """``base[index]``: an array's element, a map's value or a struct's field."""

    base: Expression
    index: Expression


@dataclass(frozen=True)
class Aliased(Expression):
    """``expression AS alias``, in select lists, tuples and function arguments of ``struct``."""

    expression: Expression
    alias: str


@dataclass(frozen=True)
class MultiAliased(Expression):
    """``expression AS (a, b)``: a generator's columns."""

    expression: Expression
    aliases: tuple[str, ...]


@dataclass(frozen=True)
class Unary(Expression):
    """``-x``, ``+x`` or ``~x``."""

    op: str
    operand: Expression


@dataclass(frozen=True)
class Binary(Expression):
    """Arithmetic, ``||``, bit operators and comparisons; ``op`` has one spelling (``<>``, ``=``, ``DIV``).

    ``pos`` is the operator's.
    """

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class And(Expression):
    """``a AND b AND c``: flat, so that generated filters of any length stay shallow."""

    terms: tuple[Expression, ...]


@dataclass(frozen=True)
class Or(Expression):
    """``a OR b OR c``, flat as And is."""

    terms: tuple[Expression, ...]


@dataclass(frozen=True)
class Not(Expression):
    """``NOT x`` or ``!x``."""

    operand: Expression


@dataclass(frozen=True)
class IsNull(Expression):
    """``x IS [NOT] NULL``."""

    operand: Expression
    negated: bool = False


@dataclass(frozen=True)
class IsBoolean(Expression):
    """``x IS [NOT] TRUE | FALSE | UNKNOWN``; ``value`` None is UNKNOWN."""

    operand: Expression
    value: bool | None
    negated: bool = False


@dataclass(frozen=True)
class IsDistinct(Expression):
    """``x IS [NOT] DISTINCT FROM y``."""

    left: Expression
    right: Expression
    negated: bool = False


@dataclass(frozen=True)
class InList(Expression):
    """``x [NOT] IN (a, b)``."""

    operand: Expression
    items: tuple[Expression, ...]
    negated: bool = False


@dataclass(frozen=True)
class InSubquery(Expression):
    """``x [NOT] IN (SELECT ...)``; ``x`` may be a Row."""

    operand: Expression
    query: Query
    negated: bool = False


@dataclass(frozen=True)
class Between(Expression):
    """``x [NOT] BETWEEN low AND high``."""

    operand: Expression
    low: Expression
    high: Expression
    negated: bool = False


@dataclass(frozen=True)
class Like(Expression):
    """``x [NOT] LIKE pattern [ESCAPE 'c']``; ``kind`` is LIKE, ILIKE or RLIKE (also written REGEXP)."""

    operand: Expression
    pattern: Expression
    kind: str = "LIKE"
    escape: str | None = None
    negated: bool = False


@dataclass(frozen=True)
class LikeQuantified(Expression):
    """``x [NOT] LIKE ANY | ALL (patterns)``; ``kind`` is LIKE or ILIKE, ``quantifier`` ANY or ALL."""

    operand: Expression
    patterns: tuple[Expression, ...]
    kind: str
    quantifier: str
    negated: bool = False


@dataclass(frozen=True)
class Exists(Expression):
    """``EXISTS (SELECT ...)``."""

    query: Query


@dataclass(frozen=True)
class ScalarSubquery(Expression):
    """``(SELECT ...)`` as a value."""

    query: Query


@dataclass(frozen=True)
class When(Node):
    """``WHEN condition THEN result``."""

    condition: Expression
    result: Expression


@dataclass(frozen=True)
class CaseExpression(Expression):
    """``CASE [operand] WHEN ... [ELSE otherwise] END``."""

    operand: Expression | None
    branches: tuple[When, ...]
    otherwise: Expression | None = None


@dataclass(frozen=True)
class Cast(Expression):
    """``CAST(x AS t)``, ``x::t``, or ``TRY_CAST`` when ``is_try``."""

    operand: Expression
    type: TypeNode
    is_try: bool = False


@dataclass(frozen=True)
class Extract(Expression):
    """``EXTRACT(field FROM x)``; ``field`` as written."""

    field: str
    source: Expression


@dataclass(frozen=True)
class Trim(Expression):
    """``TRIM([BOTH | LEADING | TRAILING] [characters] FROM x)``."""

    side: str
    characters: Expression | None
    source: Expression


@dataclass(frozen=True)
class Row(Expression):
    """``(a, b)``: two values or more; a value may be Aliased."""

    items: tuple[Expression, ...]


@dataclass(frozen=True)
class Lambda(Expression):
    """``x -> body`` or ``(x, y) -> body``."""

    parameters: tuple[str, ...]
    body: Expression


@dataclass(frozen=True)
class NamedArgument(Expression):
    """``name => value`` in a function call."""

    name: str
    value: Expression


@dataclass(frozen=True)
class DateTimeUnit(Expression):
    """The bare unit that comes first in ``timestampadd(DAY, 1, x)`` and its relatives; upper case."""

    unit: str


@dataclass(frozen=True)
class SortItem(Node):
    """``expression [ASC | DESC] [NULLS FIRST | LAST]`` with Spark's defaults filled in."""

    expression: Expression
    ascending: bool = True
    nulls_first: bool = True


@dataclass(frozen=True)
class Call(Expression):
    """A function call with its modifiers: DISTINCT, WITHIN GROUP, FILTER, IGNORE or RESPECT NULLS, and OVER.

    ``count(*)`` has the one argument ``Star()``. SUBSTRING, OVERLAY and POSITION in their keyword forms are
    calls of ``substring``, ``overlay`` and ``locate``, as Spark reads them. ``nulls`` is IGNORE, RESPECT or
    None. ``user``: the user-defined function that is called, or None for a function of SQL.
    """

    name: tuple[str, ...]
    arguments: tuple[Expression, ...] = ()
    distinct: bool = False
    within_group: tuple[SortItem, ...] = ()
    filter: Expression | None = None
    nulls: str | None = None
    over: Window | None = None
    user: UserFunction | None = None
