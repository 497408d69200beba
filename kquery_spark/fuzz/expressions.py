"""Generates random typed SQL expressions as trees, which can be shrunk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from kquery_spark.fuzz.grammar import GENERIC, INEXACT, RAISING, SAFE, Argument, Form
from kquery_spark.fuzz.kinds import COMPARED, KINDS, LITERALS, NUMBERS

Columns = Sequence[tuple[str, str]]
"""The names and kinds of the columns that an expression may use."""
ORDERS = ("", " DESC", " ASC NULLS LAST", " DESC NULLS FIRST")
_GENERIC_SHARE = 0.2
_RAISING_SHARE = 0.3
_DEEPER = 3
_FORMS = tuple(form for table in (SAFE, INEXACT) for forms in table.values() for form in forms)
_RAISING_FORMS = tuple(form for forms in RAISING.values() for form in forms)


@dataclass(frozen=True)
class Expr:
    """SQL with placeholders ``{0}``, ``{1}``, ... for its arguments. kind: its type, without the precision of decimals."""

    text: str
    kind: str
    args: tuple[Expr, ...] = ()

    def sql(self) -> str:
        """Return the SQL with the arguments in place of the placeholders."""
        return self.text.format(*(arg.sql() for arg in self.args)) if self.args else self.text

    def strings(self) -> Iterator[str]:
        """Yield the form of every call in the expression, the outermost first."""
        yield self.text
        for arg in self.args:
            yield from arg.strings()

    def smaller(self) -> Iterator[Expr]:
        """Yield smaller expressions of the same kind: an argument, a literal, or the call with one smaller argument."""
        for arg in self.args:
            if arg.kind == self.kind:
                yield arg
        simple = Expr(LITERALS[self.kind][0], self.kind)
        if self.args and self != simple:
            yield simple
        for index, arg in enumerate(self.args):
            for less in arg.smaller():
                yield replace(self, args=(*self.args[:index], less, *self.args[index + 1 :]))


def random_expr(rng: Random, columns: Columns, kind: str, depth: int, can_raise: bool = False) -> Expr:
    """Return an expression of ``kind`` over ``columns``, at most ``depth`` calls deep. It can be a column or a literal.

    can_raise: also use calls that raise errors for some values in ANSI mode. Every call contains a column if there is one of
    a fitting kind, because Spark would evaluate a constant call during planning.
    """
    return _expr(rng, columns, kind, depth, can_raise, False)


def random_call(rng: Random, columns: Columns, depth: int, can_raise: bool = False) -> Expr:
    """Return a call of any kind. All functions have the same probability."""
    if rng.random() < _GENERIC_SHARE / 2:
        form = rng.choice(GENERIC[rng.choice(KINDS)])
    else:
        form = rng.choice(_RAISING_FORMS if can_raise and rng.random() < _RAISING_SHARE else _FORMS)
    return _call(rng, columns, form, depth, can_raise)


def call_of(rng: Random, columns: Columns, kind: str, depth: int, can_raise: bool = False) -> Expr:
    """Return a call of ``kind``."""
    return _call(rng, columns, _form_of(rng, kind, can_raise), depth, can_raise)


def _expr(rng: Random, columns: Columns, kind: str, depth: int, can_raise: bool, must_vary: bool) -> Expr:
    fitting = [name for name, its in columns if its == kind]
    if depth <= 0 or rng.random() < (0.25 if fitting else 0.08):
        if fitting and (must_vary or rng.random() < 0.85):
            return Expr(rng.choice(fitting), kind)
        # If no column has this kind, go a little deeper than requested to reach a kind that a column has.
        if not (must_vary and SAFE[kind] and depth > -_DEEPER):
            return Expr(rng.choice(LITERALS[kind]), kind)
    return _call(rng, columns, _form_of(rng, kind, can_raise), depth, can_raise)


def _form_of(rng: Random, kind: str, can_raise: bool) -> Form:
    if can_raise and RAISING[kind] and rng.random() < _RAISING_SHARE:
        return rng.choice(RAISING[kind])
    return rng.choice(GENERIC[kind] if not SAFE[kind] or rng.random() < _GENERIC_SHARE else SAFE[kind])


def _call(rng: Random, columns: Columns, form: Form, depth: int, can_raise: bool) -> Expr:
    """Return a call of a form. One argument, the anchor, must contain a column, so that the call is not constant."""
    drawn = rng.choice([its for _, its in columns if its in COMPARED] or list(COMPARED))
    kinds = [drawn if arg.kind in ("any", "same") else arg.kind for arg in form.arguments]
    usable = {its for _, its in columns}
    anchors = [i for i, its in enumerate(kinds) if its in usable] or list(range(len(kinds)))
    anchor = rng.choice(anchors) if anchors else -1
    below = depth - 1 - (rng.random() < 0.3)
    args = (
        _argument(rng, columns, arg, its, below, can_raise, i == anchor)
        for i, (arg, its) in enumerate(zip(form.arguments, kinds, strict=True))
    )
    return Expr(form.text, form.kind, tuple(args))


def _argument(
    rng: Random, columns: Columns, arg: Argument, kind: str, depth: int, can_raise: bool, must_vary: bool
) -> Expr:
    """Return an argument. In the body of a lambda, its variables are used three times as often as a column."""
    visible = (*columns, *(arg.variables * 3))
    return _expr(rng, visible, kind, max(depth, 1) if arg.variables else depth, can_raise, must_vary)


_AGGREGATES: dict[str, tuple[tuple[str, str], ...]] = {
    "boolean": (("count_if({0})", "bigint"), ("bool_and({0})", "boolean"), ("bool_or({0})", "boolean")),
    "int": (
        *((f"bit_{name}({{0}})", "int") for name in ("and", "or", "xor")),
        ("sort_array(collect_set({0}))", "array<int>"),
        ("median({0})", "double"),
        ("percentile({0}, 0.3)", "double"),
        ("percentile_disc(0.6) WITHIN GROUP (ORDER BY {0})", "double"),
        ("regr_count({0}, {0})", "bigint"),
    ),
    "string": (
        ("sort_array(collect_set({0}))", "array<string>"),
        ("listagg({0}, ';') WITHIN GROUP (ORDER BY {0} DESC)", "string"),
        ("listagg(DISTINCT {0}) WITHIN GROUP (ORDER BY {0})", "string"),
    ),
    "bigint": (("bit_xor({0})", "bigint"),),
    "interval year to month": (("count({0})", "bigint"),),
}
"""Aggregates by the kind of their argument, each with the kind of its result."""


def random_aggregate(
    rng: Random, columns: Columns, depth: int, distinct: bool = True, can_raise: bool = False
) -> Expr:
    """Return an aggregate call. Sums of doubles have plain columns as arguments, whose sums are exact in any order."""
    kind = rng.choice([its for _, its in columns if its in COMPARED])
    arg = random_expr(rng, columns, kind, depth, can_raise)
    roll = rng.random()
    if roll < 0.05:
        return Expr("count(*)", "bigint")
    if roll < 0.25:
        return Expr("count({0})", "bigint", (arg,))
    if roll < 0.35 and distinct:
        return Expr("count(DISTINCT {0})", "bigint", (arg,))
    if roll < 0.38 and distinct:
        text = rng.choice(("approx_count_distinct({0})", "approx_count_distinct({0}, 0.3)"))
        return Expr(text, "bigint", (arg,))
    if roll < 0.55 and kind in NUMBERS:
        return _sum(rng, columns, kind, arg)
    if roll < 0.7 and distinct and kind in _AGGREGATES:
        text, its = rng.choice(_AGGREGATES[kind])
        return Expr(text, its, (arg,))
    return Expr(rng.choice(("min({0})", "max({0})")), kind, (arg,))


def _sum(rng: Random, columns: Columns, kind: str, arg: Expr) -> Expr:
    if kind in ("float", "double"):
        bare = [Expr(name, its) for name, its in columns if its == kind]
        return Expr(rng.choice(("sum({0})", "avg({0})")), "double", (rng.choice(bare),))
    if kind == "decimal":
        return Expr(rng.choice(("sum({0})", "avg({0})")), "decimal", (arg,))
    # If an intermediate sum overflows but the total does not, Spark's result depends on the order of the rows.
    summed = Expr("CAST({0} % 4611686018427387 AS BIGINT)", "bigint", (arg,)) if kind == "bigint" else arg
    return rng.choice(
        (Expr("try_sum({0})", "bigint", (summed,)), Expr("avg({0})", "double", (small_int(arg),)))
    )


_RANKS = ("row_number()", "rank()", "dense_rank()", "percent_rank()", "cume_dist()", "ntile(3)")
_SHIFTS = (
    "lag({0})",
    "lag({0}, 2)",
    "lead({0}, 1)",
    "first({0})",
    "last({0})",
    "nth_value({0}, 2)",
    "first({0}) IGNORE NULLS",
)
_BOUNDS = ("UNBOUNDED PRECEDING", "2 PRECEDING", "CURRENT ROW", "1 FOLLOWING", "UNBOUNDED FOLLOWING")


def random_window(rng: Random, columns: Columns, depth: int) -> Expr:
    """Return a window function. It is ordered by all columns, so that only equal rows can be exchanged."""
    keys = rng.sample([name for name, _ in columns], min(len(columns), rng.choice((0, 1, 1, 2))))
    directions = [f"{name}{rng.choice(ORDERS)}" for name in rng.sample([n for n, _ in columns], len(columns))]
    return window_call(rng, columns, depth, keys, ", ".join(directions))


def window_call(
    rng: Random, columns: Columns, depth: int, keys: Sequence[str], order: str, can_raise: bool = False
) -> Expr:
    """Return a window function over partitions by ``keys``. order: an order in which ties are only equal rows."""
    partition = f"PARTITION BY {', '.join(keys)} " if keys else ""
    roll = rng.random()
    if roll < 0.3:
        function = rng.choice(_RANKS)
        kind = "double" if function in ("percent_rank()", "cume_dist()") else "int"
        return Expr(f"{function} OVER ({partition}ORDER BY {order})", kind)
    name, kind = rng.choice(columns)
    if roll < 0.55:
        arg = random_expr(rng, columns, kind, depth - 1, can_raise) if depth > 1 else Expr(name, kind)
        return Expr(f"{rng.choice(_SHIFTS)} OVER ({partition}ORDER BY {order})", kind, (arg,))
    call = random_aggregate(rng, columns, min(depth, 1), distinct=False, can_raise=can_raise)
    if rng.random() < 0.3:
        return replace(call, text=f"{call.text} OVER ({partition.strip()})")
    first, last = sorted(rng.sample(range(len(_BOUNDS)), 2))
    rows = f" ROWS BETWEEN {_BOUNDS[first]} AND {_BOUNDS[last]}"
    return replace(call, text=f"{call.text} OVER ({partition}ORDER BY {order}{rng.choice(('', rows))})")


def small_int(arg: Expr) -> Expr:
    """Return an integer expression that is small enough for exact sums as doubles in any order."""
    return Expr("({0} % 1000)", arg.kind, (arg,))
