"""Random typed SQL expressions as trees, so that they can be shrunk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

Columns = Sequence[tuple[str, str]]
"""Names and kinds of the columns an expression may use."""


@dataclass(frozen=True)
class Expr:
    """SQL with holes ``{0} {1} ...`` for its arguments. ``kind`` is the type without a decimal's digits."""

    text: str
    kind: str
    args: tuple[Expr, ...] = ()

    def sql(self) -> str:
        """The SQL with the holes filled."""
        return self.text.format(*(arg.sql() for arg in self.args)) if self.args else self.text

    def smaller(self) -> Iterator[Expr]:
        """Expressions of the same kind with less in them: an argument, a literal, one smaller argument."""
        for arg in self.args:
            if arg.kind == self.kind:
                yield arg
        simple = Expr(LITERALS[self.kind][0], self.kind)
        if self.args and self != simple:
            yield simple
        for index, arg in enumerate(self.args):
            for less in arg.smaller():
                yield replace(self, args=(*self.args[:index], less, *self.args[index + 1 :]))


LITERALS: dict[str, tuple[str, ...]] = {
    "boolean": ("true", "false", "CAST(NULL AS BOOLEAN)"),
    "tinyint": ("1Y", "-5Y", "CAST(NULL AS TINYINT)"),
    "smallint": ("1S", "-300S", "CAST(NULL AS SMALLINT)"),
    "int": ("1", "0", "-7", "2147483647", "CAST(NULL AS INT)"),
    "bigint": ("1L", "0L", "-9L", "CAST(NULL AS BIGINT)"),
    "float": ("CAST(1.5 AS FLOAT)", "CAST('NaN' AS FLOAT)", "CAST(NULL AS FLOAT)"),
    "double": ("1.5D", "0.0D", "-0.25D", "CAST('NaN' AS DOUBLE)", "CAST(NULL AS DOUBLE)"),
    "decimal": ("1.25", "0.0", "-99.999", "CAST(NULL AS DECIMAL(9,2))"),
    "string": ("'a'", "''", "'AB'", "'10'", "CAST(NULL AS STRING)"),
    "date": ("DATE'2000-02-29'", "DATE'1970-01-01'", "CAST(NULL AS DATE)"),
    "timestamp": ("TIMESTAMP'2024-02-29 12:30:15.25'", "CAST(NULL AS TIMESTAMP)"),
    "timestamp_ntz": ("TIMESTAMP_NTZ'2024-03-31 02:30:00.5'", "CAST(NULL AS TIMESTAMP_NTZ)"),
    "binary": ("X'00FF'", "X''", "CAST(NULL AS BINARY)"),
    "array<int>": ("array(1, NULL)", "CAST(array() AS ARRAY<INT>)", "CAST(NULL AS ARRAY<INT>)"),
    "struct<x:int,s:string>": ("named_struct('x', 1, 's', 'a')", "CAST(NULL AS STRUCT<x: INT, s: STRING>)"),
}
KINDS = tuple(LITERALS)
ORDERS = ("", " DESC", " ASC NULLS LAST", " DESC NULLS FIRST")
NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")

# result kind, text, argument kinds; "same" repeats the kind that was drawn for the first "any"
_FORMS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    *(("boolean", f"({{0}} {op} {{1}})", ("any", "same")) for op in ("=", "<>", "<", "<=", ">", ">=", "<=>")),
    ("boolean", "({0} AND {1})", ("boolean", "boolean")),
    ("boolean", "({0} OR {1})", ("boolean", "boolean")),
    ("boolean", "(NOT {0})", ("boolean",)),
    ("boolean", "({0} IS NULL)", ("any",)),
    ("boolean", "({0} IS NOT NULL)", ("any",)),
    ("boolean", "({0} IN ({1}, {2}))", ("any", "same", "same")),
    ("boolean", "({0} BETWEEN {1} AND {2})", ("any", "same", "same")),
    ("boolean", "({0} LIKE 'a%')", ("string",)),
    ("boolean", "({0} LIKE '_b%')", ("string",)),
    ("boolean", "startswith({0}, {1})", ("string", "string")),
    ("boolean", "isnan({0})", ("double",)),
    ("boolean", "array_contains({0}, {1})", ("array<int>", "int")),
    ("boolean", "exists({0}, e -> e > {1})", ("array<int>", "int")),
    ("boolean", "({0} = {1})", ("int", "decimal")),
    ("boolean", "({0} < {1})", ("bigint", "double")),
    ("boolean", "({0} > {1})", ("decimal", "decimal")),
    *(
        (kind, f"{function}({{0}}, {{1}})", (kind, kind))
        for kind in ("int", "bigint", "double", "decimal")
        for function in ("try_add", "try_subtract", "try_multiply")
    ),
    *((kind, f"({{0}} {op} {{1}})", (kind, kind)) for kind in ("double", "decimal") for op in "+-*"),
    ("double", "({0} / ({1} + 0.125D))", ("double", "int")),
    ("double", "try_divide({0}, {1})", ("double", "double")),
    ("double", "try_divide({0}, {1})", ("int", "int")),
    ("decimal", "try_divide({0}, {1})", ("decimal", "decimal")),
    ("int", "({0} % 7)", ("int",)),
    ("bigint", "pmod({0}, 5L)", ("bigint",)),
    ("bigint", "(CAST({0} AS BIGINT) + {1})", ("int", "tinyint")),
    ("int", "({0} + {1})", ("int", "int")),
    ("bigint", "({0} * {1})", ("bigint", "int")),
    ("int", "length({0})", ("string",)),
    ("int", "length({0})", ("binary",)),
    ("int", "size({0})", ("array<int>",)),
    ("int", "hash({0}, {1})", ("array<int>", "struct<x:int,s:string>")),
    ("bigint", "xxhash64({0}, {1})", ("struct<x:int,s:string>", "array<int>")),
    ("int", "array_max({0})", ("array<int>",)),
    ("int", "try_element_at({0}, -1)", ("array<int>",)),
    ("int", "({0}).x", ("struct<x:int,s:string>",)),
    ("string", "({0}).s", ("struct<x:int,s:string>",)),
    ("string", "hex({0})", ("binary",)),
    ("binary", "CAST({0} AS BINARY)", ("string",)),
    ("binary", "concat({0}, {1})", ("binary", "binary")),
    ("array<int>", "array({0}, {1})", ("int", "int")),
    ("array<int>", "array_distinct({0})", ("array<int>",)),
    ("array<int>", "sort_array({0})", ("array<int>",)),
    ("array<int>", "concat({0}, {1})", ("array<int>", "array<int>")),
    ("struct<x:int,s:string>", "named_struct('x', {0}, 's', {1})", ("int", "string")),
    ("timestamp_ntz", "CAST({0} AS TIMESTAMP_NTZ)", ("timestamp",)),
    ("timestamp_ntz", "CAST({0} AS TIMESTAMP_NTZ)", ("date",)),
    ("timestamp", "CAST({0} AS TIMESTAMP)", ("timestamp_ntz",)),
    ("date", "CAST({0} AS DATE)", ("timestamp_ntz",)),
    ("int", "minute({0})", ("timestamp_ntz",)),
    ("string", "CAST({0} AS STRING)", ("timestamp_ntz",)),
    ("int", "year({0})", ("date",)),
    ("int", "month({0})", ("date",)),
    ("int", "dayofweek({0})", ("date",)),
    ("int", "hour({0})", ("timestamp",)),
    ("int", "datediff({0}, {1})", ("date", "date")),
    ("date", "date_add({0}, 31)", ("date",)),
    ("date", "add_months({0}, 1)", ("date",)),
    ("date", "trunc({0}, 'MONTH')", ("date",)),
    ("date", "CAST({0} AS DATE)", ("timestamp",)),
    ("timestamp", "CAST({0} AS TIMESTAMP)", ("date",)),
    ("timestamp", "date_trunc('HOUR', {0})", ("timestamp",)),
    ("string", "upper({0})", ("string",)),
    ("string", "lower({0})", ("string",)),
    ("string", "trim({0})", ("string",)),
    ("string", "concat({0}, {1})", ("string", "string")),
    ("string", "substring({0}, 2, 3)", ("string",)),
    ("string", "substring({0}, -2, 2)", ("string",)),
    ("string", "replace({0}, 'a', 'bc')", ("string",)),
    ("string", "CAST({0} AS STRING)", ("int",)),
    ("string", "CAST({0} AS STRING)", ("bigint",)),
    ("string", "CAST({0} AS STRING)", ("decimal",)),
    ("string", "CAST({0} AS STRING)", ("date",)),
    ("string", "CAST({0} AS STRING)", ("boolean",)),
    ("string", "CAST({0} AS STRING)", ("double",)),
    ("string", "CAST({0} AS STRING)", ("timestamp",)),
    ("int", "try_cast({0} AS INT)", ("string",)),
    ("int", "try_cast({0} AS INT)", ("double",)),
    ("int", "try_cast({0} AS INT)", ("bigint",)),
    ("tinyint", "try_cast({0} AS TINYINT)", ("int",)),
    ("smallint", "try_cast({0} AS SMALLINT)", ("decimal",)),
    ("double", "try_cast({0} AS DOUBLE)", ("string",)),
    ("double", "CAST({0} AS DOUBLE)", ("decimal",)),
    ("double", "CAST({0} AS DOUBLE)", ("float",)),
    ("float", "CAST({0} AS FLOAT)", ("double",)),
    ("date", "try_cast({0} AS DATE)", ("string",)),
    ("decimal", "try_cast({0} AS DECIMAL(12,3))", ("string",)),
    ("decimal", "try_cast({0} AS DECIMAL(12,3))", ("double",)),
    ("decimal", "CAST({0} AS DECIMAL(24,2))", ("bigint",)),
    ("decimal", "round({0}, 1)", ("decimal",)),
    ("double", "round({0}, 1)", ("double",)),
    ("double", "abs({0})", ("double",)),
    ("decimal", "abs({0})", ("decimal",)),
    ("bigint", "floor({0})", ("float",)),
    ("double", "sqrt({0})", ("double",)),
    ("decimal", "(- {0})", ("decimal",)),
    ("double", "(- {0})", ("double",)),
    *((kind, "CASE WHEN {0} THEN {1} ELSE {2} END", ("boolean", kind, kind)) for kind in KINDS),
    *((kind, "CASE WHEN {0} THEN {1} END", ("boolean", kind)) for kind in KINDS),
    *((kind, "coalesce({0}, {1})", (kind, kind)) for kind in KINDS),
    *((kind, "nullif({0}, {1})", (kind, kind)) for kind in KINDS),
    *((kind, f"{f}({{0}}, {{1}})", (kind, kind)) for kind in KINDS for f in ("least", "greatest")),
)
_BY_KIND = {kind: [form for form in _FORMS if form[0] == kind] for kind in KINDS}


def random_expr(rng: Random, columns: Columns, kind: str, depth: int) -> Expr:
    """An expression of ``kind`` over ``columns``, at most ``depth`` calls deep."""
    fitting = [name for name, its in columns if its == kind]
    if depth <= 0 or rng.random() < (0.25 if fitting else 0.08):
        if fitting and rng.random() < 0.85:
            return Expr(rng.choice(fitting), kind)
        return Expr(rng.choice(LITERALS[kind]), kind)
    _, text, kinds = rng.choice(_BY_KIND[kind])
    drawn = rng.choice([its for _, its in columns] or list(KINDS))
    return Expr(
        text,
        kind,
        tuple(
            random_expr(
                rng, columns, drawn if its in ("any", "same") else its, depth - 1 - (rng.random() < 0.3)
            )
            for its in kinds
        ),
    )


def random_aggregate(rng: Random, columns: Columns, depth: int, distinct: bool = True) -> Expr:
    """An aggregate call. Sums of doubles take bare columns, whose values add up exactly in any order."""
    kind = rng.choice([its for _, its in columns])
    arg = random_expr(rng, columns, kind, depth)
    roll = rng.random()
    if roll < 0.15:
        return Expr("count(*)", "bigint")
    if roll < 0.3:
        return Expr("count({0})", "bigint", (arg,))
    if roll < 0.4 and distinct:
        return Expr("count(DISTINCT {0})", "bigint", (arg,))
    if roll < 0.43 and distinct:
        return Expr(
            rng.choice(("approx_count_distinct({0})", "approx_count_distinct({0}, 0.3)")), "bigint", (arg,)
        )
    if roll < 0.6 and kind in NUMBERS:
        if kind in ("float", "double"):
            bare = [Expr(name, its) for name, its in columns if its == kind]
            return Expr(rng.choice(("sum({0})", "avg({0})")), "double", (rng.choice(bare),))
        if kind == "decimal":
            return Expr(rng.choice(("sum({0})", "avg({0})")), "decimal", (arg,))
        return rng.choice(
            (Expr("try_sum({0})", "bigint", (arg,)), Expr("avg({0})", "double", (small_int(arg),)))
        )
    if roll < 0.65:
        return Expr("count_if({0})", "bigint", (random_expr(rng, columns, "boolean", depth),))
    return Expr(rng.choice(("min({0})", "max({0})")), kind, (arg,))


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
    """A window function. Its order is by all columns, so that only equal rows can change places."""
    keys = rng.sample([name for name, _ in columns], min(len(columns), rng.choice((0, 1, 1, 2))))
    partition = f"PARTITION BY {', '.join(keys)} " if keys else ""
    directions = [f"{name}{rng.choice(ORDERS)}" for name in rng.sample([n for n, _ in columns], len(columns))]
    order = f"ORDER BY {', '.join(directions)}"
    roll = rng.random()
    if roll < 0.3:
        function = rng.choice(_RANKS)
        kind = "double" if function in ("percent_rank()", "cume_dist()") else "int"
        return Expr(f"{function} OVER ({partition}{order})", kind)
    name, kind = rng.choice(columns)
    if roll < 0.55:
        return Expr(f"{rng.choice(_SHIFTS)} OVER ({partition}{order})", kind, (Expr(name, kind),))
    call = random_aggregate(rng, columns, min(depth, 1), distinct=False)
    if rng.random() < 0.3:
        return replace(call, text=f"{call.text} OVER ({partition.strip()})")
    first, last = sorted(rng.sample(range(len(_BOUNDS)), 2))
    rows = f" ROWS BETWEEN {_BOUNDS[first]} AND {_BOUNDS[last]}"
    return replace(call, text=f"{call.text} OVER ({partition}{order}{rng.choice(('', rows))})")


def small_int(arg: Expr) -> Expr:
    """An integer that a double adds up exactly in any order."""
    return Expr("({0} % 1000)", arg.kind, (arg,))
