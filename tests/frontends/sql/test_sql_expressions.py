"""The expression parser: precedence compared as trees, literals, predicates, forms and calls."""

from __future__ import annotations

import pytest
from pyspark.errors import IllegalArgumentException, ParseException
from pyspark.sql import SparkSession

from kquery_spark.errors import SqlError
from kquery_spark.frontends.sql import parse_expression
from kquery_spark.frontends.sql.ast import expressions as e
from kquery_spark.frontends.sql.ast import windows as window_ast
from kquery_spark.frontends.sql.ast.types import ArrayType, NamedType

A, B, C, D = (e.Name((name,)) for name in "abcd")


def i(value: int, kind: str = "int") -> e.IntegerLiteral:
    return e.IntegerLiteral(value, kind)


def binary(op: str, left: e.Expression, right: e.Expression) -> e.Binary:
    return e.Binary(op, left, right)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("1 + 2 * 3", binary("+", i(1), binary("*", i(2), i(3)))),
        ("1 * 2 + 3", binary("+", binary("*", i(1), i(2)), i(3))),
        ("a - b - c", binary("-", binary("-", A, B), C)),
        ("a || b + c", binary("+", binary("||", A, B), C)),
        ("a DIV b % c", binary("%", binary("DIV", A, B), C)),
        ("a & b ^ c | d", binary("|", binary("^", binary("&", A, B), C), D)),
        ("a << b + c", binary("<<", A, binary("+", B, C))),
        ("a = b = c", binary("=", binary("=", A, B), C)),
        ("-a * b", binary("*", e.Unary("-", A), B)),
        ("~a + b", binary("+", e.Unary("~", A), B)),
        ("- -1", e.Unary("-", i(-1))),
        ("-(1)", e.Unary("-", i(1))),
        ("a -1", binary("-", A, i(1))),
        ("a = -1", binary("=", A, i(-1))),
        ("not a = b", e.Not(binary("=", A, B))),
        ("not a and b", e.And((e.Not(A), B))),
        ("! a or not b", e.Or((e.Not(A), e.Not(B)))),
        ("a or b and c", e.Or((A, e.And((B, C))))),
        ("a and b and c", e.And((A, B, C))),
        ("a and (b and c)", e.And((A, e.And((B, C))))),
        ("a < b is null", e.IsNull(binary("<", A, B))),
        ("a between b and c and d", e.And((e.Between(A, B, C), D))),
        ("a between b and c = d", e.Between(A, B, binary("=", C, D))),
        ("not a between b and c", e.Not(e.Between(A, B, C))),
        ("a like b = c", e.Like(A, binary("=", B, C))),
        ("a::int + b", binary("+", e.Cast(A, NamedType("int")), B)),
        ("-a::int", e.Unary("-", e.Cast(A, NamedType("int")))),
        ("-1::int", e.Cast(i(-1), NamedType("int"))),
        ("a + b -> b", binary("+", A, e.Lambda(("b",), B))),
        ("a -> b or c", e.Lambda(("a",), e.Or((B, C)))),
    ],
)
def test_operators_bind_as_in_spark(text: str, tree: e.Expression) -> None:
    assert parse_expression(text) == tree


@pytest.mark.parametrize(
    "text",
    [
        "a is null is null",
        "a in (1) = b",
        "a is not null = b",
        "exists (select 1) = true",
        "a = exists (select 1)",
        "a = not b",
        "a between not b and c",
    ],
)
def test_a_predicate_is_the_end_of_a_value(text: str) -> None:
    with pytest.raises(SqlError):
        parse_expression(text)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("1", i(1)),
        ("2147483648", i(2147483648, "bigint")),
        ("-2147483648", i(-2147483648)),
        ("-9223372036854775808", i(-9223372036854775808, "bigint")),
        ("9223372036854775808", e.DecimalLiteral(9223372036854775808, 0)),
        ("5Y", i(5, "tinyint")),
        ("5s", i(5, "smallint")),
        ("5L", i(5, "bigint")),
        ("1.50", e.DecimalLiteral(150, 2)),
        (".5", e.DecimalLiteral(5, 1)),
        ("1.", e.DecimalLiteral(1, 0)),
        ("1e3BD", e.DecimalLiteral(1000, 0)),
        ("1e-3BD", e.DecimalLiteral(1, 3)),
        ("1e3", e.FloatingLiteral(1000.0, "double")),
        ("1.5d", e.FloatingLiteral(1.5, "double")),
        ("0.1f", e.FloatingLiteral(0.10000000149011612, "float")),
        ("null", e.NullLiteral()),
        ("TRUE", e.BooleanLiteral(True)),
        ("'a' r'b' \"c\"", e.StringLiteral("abc")),
        ("x'1F3'", e.BinaryLiteral(b"\x01\xf3")),
        ("date '2020-01-01'", e.TypedLiteral("date", "2020-01-01")),
        ("timestamp_ltz '2020-01-01'", e.TypedLiteral("timestamp", "2020-01-01")),
        ("timestamp_ntz '2020-01-01'", e.TypedLiteral("timestamp_ntz", "2020-01-01")),
    ],
)
def test_literals_have_sparks_types(text: str, tree: e.Expression) -> None:
    assert parse_expression(text) == tree


def test_a_decimals_precision_is_never_below_its_scale() -> None:
    literal = parse_expression("0.001")
    assert isinstance(literal, e.DecimalLiteral)
    assert (literal.precision, literal.scale, str(literal.value)) == (3, 3, "0.001")


@pytest.mark.parametrize("text", ["300Y", "9223372036854775808L", "1e400", "1e400f", "1" * 39, "1e9999999BD"])
def test_a_literal_out_of_range_is_an_error(text: str) -> None:
    with pytest.raises(SqlError, match=r"out of range|more than 38 digits"):
        parse_expression(text)


DAY, HOUR = 86_400_000_000, 3_600_000_000


@pytest.mark.parametrize(
    ("text", "amount", "start", "end"),
    [
        ("interval '68 days'", 68 * DAY, "DAY", "DAY"),
        ("interval 'interval 1 day 2 hours'", DAY + 2 * HOUR, "DAY", "HOUR"),
        ("interval 1 year 2 months", 14, "YEAR", "MONTH"),
        ("interval 2 month 1 year", 14, "YEAR", "MONTH"),
        ("interval '1' day", DAY, "DAY", "DAY"),
        ("interval -3 days", -3 * DAY, "DAY", "DAY"),
        ("interval -'-1' day", DAY, "DAY", "DAY"),
        ("interval 1 day -2 hours", DAY - 2 * HOUR, "DAY", "HOUR"),
        ("interval '-1-2' year to month", -14, "YEAR", "MONTH"),
        ("interval '1 2:3:4.5' day to second", DAY + 2 * HOUR + 184_500_000, "DAY", "SECOND"),
        ("interval '1:2' minute to second", 62_000_000, "MINUTE", "SECOND"),
        ("interval 1 week 1 millisecond", 7 * DAY + 1000, "DAY", "SECOND"),
        ("interval 1.123456789 second", 1_123_456, "SECOND", "SECOND"),
        ("interval ' 000000001 2 ' day to hour", DAY + 2 * HOUR, "DAY", "HOUR"),
        ("interval '0000000002:3' hour to minute", 2 * HOUR + 180_000_000, "HOUR", "MINUTE"),
        ("interval '000000000003:4.5' minute to second", 184_500_000, "MINUTE", "SECOND"),
    ],
)
def test_intervals_in_all_spellings(text: str, amount: int, start: str, end: str) -> None:
    assert parse_expression(text) == e.IntervalLiteral(amount, start, end)


INTERVALS_THAT_SPARK_REJECTS = [
    "interval '1  02' day to hour",
    "interval '1\t02' day to hour",
    "interval '0000000001 01' day to hour",
    "interval '1 002:03' day to minute",
    "interval '10000000002:3' hour to minute",
    "interval '2:003' hour to minute",
    "interval '0000000000003:4' minute to second",
    "interval '2:3:4.' hour to second",
    "interval '2:3:4.1234567890' hour to second",
    "interval '1.1234567890' second",
    "interval 1.1234567890 second",
    "interval '.1234567891 seconds'",
]


@pytest.mark.parametrize("text", INTERVALS_THAT_SPARK_REJECTS)
def test_spark_rejects_these_intervals(text: str, spark: SparkSession) -> None:
    with pytest.raises((ParseException, IllegalArgumentException)):
        spark.sql(f"SELECT {text}")


@pytest.mark.parametrize(
    "text",
    [
        "interval 1 year 2 days",
        "interval '1.5' day",
        "interval '1-13' year to month",
        "interval '25:61' hour to minute",
        "interval '1-2' year to day",
        "interval 1 day to second",
        "interval 1 fortnight",
        "interval '' day",
        "interval 300000000 years",
        "interval 100 nanoseconds",
        *INTERVALS_THAT_SPARK_REJECTS,
    ],
)
def test_intervals_that_mean_nothing_are_errors(text: str) -> None:
    with pytest.raises(SqlError):
        parse_expression(text)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a is not null", e.IsNull(A, True)),
        ("a is unknown", e.IsBoolean(A, None)),
        ("a is not true", e.IsBoolean(A, True, True)),
        ("a is not distinct from b", e.IsDistinct(A, B, True)),
        ("a in (b, 1)", e.InList(A, (B, i(1)))),
        ("a not like b escape '/'", e.Like(A, B, "LIKE", "/", True)),
        ("a regexp b", e.Like(A, B, "RLIKE")),
        ("a ilike some (b, c)", e.LikeQuantified(A, (B, C), "ILIKE", "ANY")),
        ("a not like all (b)", e.LikeQuantified(A, (B,), "LIKE", "ALL", True)),
        ("case a when b then c end", e.CaseExpression(A, (e.When(B, C),))),
        ("case when a then b else c end", e.CaseExpression(None, (e.When(A, B),), C)),
        ("try_cast(a as array<array<int>>)", e.Cast(A, ArrayType(ArrayType(NamedType("int"))), True)),
        ("extract(year from a)", e.Extract("year", A)),
        ("substring(a from b for c)", e.Call(("substring",), (A, B, C))),
        ("trim(leading from a)", e.Trim("LEADING", None, A)),
        ("trim(b from a)", e.Trim("BOTH", B, A)),
        ("trim(a)", e.Call(("trim",), (A,))),
        ("position(a in b)", e.Call(("locate",), (A, B, i(1)))),
        ("overlay(a placing b from c)", e.Call(("overlay",), (A, B, C))),
        ("dateadd(day, a, b)", e.Call(("timestampadd",), (e.DateTimeUnit("DAY"), A, B))),
        ("dateadd(day, a)", e.Call(("dateadd",), (e.Name(("day",)), A))),
        ("a.b.c", e.Name(("a", "b", "c"))),
        ("(a).b", e.Name(("a", "b"))),
        ("a.b[0].c", e.Field(e.Subscript(e.Name(("a", "b")), i(0)), "c")),
        ("(a, b)", e.Row((A, B))),
        ("(a, b) -> a", e.Lambda(("a", "b"), A)),
        ("current_date", e.Name(("current_date",))),
        ("count(*)", e.Call(("count",), (e.Star(),))),
        ("count(distinct a, b)", e.Call(("count",), (A, B), distinct=True)),
        ("a.* except (b, c.d)", e.Star(("a",), (("b",), ("c", "d")))),
        ("f(a => 1)", e.Call(("f",), (e.NamedArgument("a", i(1)),))),
        ("first(a ignore nulls)", e.Call(("first",), (A,), nulls="IGNORE")),
        ("struct(a as b)", e.Call(("struct",), (e.Aliased(A, "b"),))),
        ("explode(a) as (b, c)", e.MultiAliased(e.Call(("explode",), (A,)), ("b", "c"))),
    ],
)
def test_predicates_forms_and_calls(text: str, tree: e.Expression) -> None:
    assert parse_expression(text) == tree


def test_a_call_carries_everything_sql_hangs_on_it() -> None:
    text = "f(a) within group (order by b desc) filter (where c) ignore nulls over (partition by d)"
    assert parse_expression(text) == e.Call(
        ("f",),
        (A,),
        within_group=(e.SortItem(B, False, False),),
        filter=C,
        nulls="IGNORE",
        over=window_ast.WindowSpec((D,)),
    )


def test_a_frame_with_one_bound_ends_at_the_current_row() -> None:
    call = parse_expression("sum(a) over (order by b rows 1 preceding)")
    assert isinstance(call, e.Call) and isinstance(call.over, window_ast.WindowSpec)
    assert call.over.frame == window_ast.WindowFrame(
        "ROWS", window_ast.FrameBound("PRECEDING", i(1)), window_ast.FrameBound("CURRENT ROW")
    )


def test_frames_may_reach_over_intervals() -> None:
    call = parse_expression(
        "sum(a) over (order by b range between interval 1 day preceding and unbounded following)"
    )
    assert isinstance(call, e.Call) and isinstance(call.over, window_ast.WindowSpec)
    day = e.IntervalLiteral(DAY, "DAY", "DAY")
    assert call.over.frame == window_ast.WindowFrame(
        "RANGE", window_ast.FrameBound("PRECEDING", day), window_ast.FrameBound("UNBOUNDED FOLLOWING")
    )


@pytest.mark.parametrize(
    "word", ["year", "left", "values", "all", "order", "interval", "date", "case", "end", "any"]
)
def test_keywords_are_names_where_spark_allows_it(word: str) -> None:
    assert parse_expression(word) == e.Name((word,))


def test_any_word_is_a_name_after_a_dot_or_in_backticks() -> None:
    assert parse_expression("t.select") == parse_expression("`t`.`select`") == e.Name(("t", "select"))


def test_positions_point_at_the_text_and_do_not_count_in_equality() -> None:
    tree = parse_expression("a  + f( b )")
    assert isinstance(tree, e.Binary) and isinstance(tree.right, e.Call)
    assert (tree.pos, tree.left.pos, tree.right.pos, tree.right.arguments[0].pos) == (3, 0, 5, 8)
    assert tree == parse_expression("a+f(b)")


def test_a_filter_of_thousands_of_terms_stays_flat() -> None:
    tree = parse_expression(" or ".join(f"a = {n}" for n in range(5000)))
    assert isinstance(tree, e.Or) and len(tree.terms) == 5000
