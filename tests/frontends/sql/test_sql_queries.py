"""The query parser: SELECT and its clauses, joins, set operations, WITH."""

from __future__ import annotations

import pytest

from kquery_spark.frontends.sql import parse_query
from kquery_spark.frontends.sql.ast import expressions as e
from kquery_spark.frontends.sql.ast import queries as q
from kquery_spark.frontends.sql.ast import relations as r
from kquery_spark.frontends.sql.ast import windows as window_ast

A, B, C, X, Y = (e.Name((name,)) for name in "abcxy")
ONE, TWO, THREE = (e.IntegerLiteral(n, "int") for n in (1, 2, 3))
TA, TB, TC = (r.Table((name,)) for name in "abc")
STAR = e.Star()


def select(sql: str) -> q.Select:
    body = parse_query(sql).body
    assert isinstance(body, q.Select)
    return body


def relation(text: str) -> r.Relation | None:
    return select(f"select * from {text}").relation


def test_a_select_has_all_its_clauses_in_their_places() -> None:
    text = """select /*+ broadcast(t), coalesce(1) */ distinct a as x, b `y` from t lateral view outer explode(a) l as m, n
        where a group by b having c qualify x window w as (order by y) order by 1 desc limit 2 offset 3;"""
    assert parse_query(text) == q.Query(
        q.Select(
            (e.Aliased(A, "x"), e.Aliased(B, "y")),
            r.Table(("t",)),
            (r.LateralView(("explode",), (A,), "l", ("m", "n"), True),),
            A,
            q.GroupBy((B,)),
            C,
            X,
            (q.NamedWindow("w", window_ast.WindowSpec((), (e.SortItem(Y),))),),
            True,
            (q.Hint("broadcast", (e.Name(("t",)),)), q.Hint("coalesce", (ONE,))),
        ),
        order_by=(e.SortItem(ONE, False, False),),
        limit=TWO,
        offset=THREE,
    )


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a, b join c on x", r.Join(r.Join(TA, TB), TC, condition=X)),
        ("a join b on x join c on y", r.Join(r.Join(TA, TB, condition=X), TC, condition=Y)),
        ("a join (b join c on x) on y", r.Join(TA, r.Join(TB, TC, condition=X), condition=Y)),
        ("a left outer join b using (x, y)", r.Join(TA, TB, "LEFT", using=("x", "y"))),
        ("a right join b on x", r.Join(TA, TB, "RIGHT", X)),
        ("a full outer join b on x", r.Join(TA, TB, "FULL", X)),
        ("a left semi join b on x", r.Join(TA, TB, "LEFT SEMI", X)),
        ("a anti join b on x", r.Join(TA, TB, "LEFT ANTI", X)),
        ("a cross join b", r.Join(TA, TB, "CROSS")),
        ("a natural left join b", r.Join(TA, TB, "LEFT", natural=True)),
        ("a as t(x, y)", r.Table(("a",), r.TableAlias("t", ("x", "y")))),
        ("`a.b`.`c``d` t", r.Table(("a.b", "c`d"), r.TableAlias("t"))),
        ("(a join b on x) t", r.Renamed(r.Join(TA, TB, condition=X), r.TableAlias("t"))),
        ("(a)", TA),
        (
            "values (1, 2), (3, 1) as t(x, y)",
            r.Values(((ONE, TWO), (THREE, ONE)), r.TableAlias("t", ("x", "y"))),
        ),
        ("values 1, 2", r.Values(((ONE,), (TWO,)))),
        ("range(1) t(x)", r.TableFunction(("range",), (ONE,), r.TableAlias("t", ("x",)))),
    ],
)
def test_relations(text: str, tree: r.Relation) -> None:
    assert relation(text) == tree


def test_a_lateral_subquery_stands_to_the_right() -> None:
    query = q.Query(q.Select((A,)))
    assert relation("a, lateral (select a) t") == r.Join(TA, r.Lateral(r.Derived(query, r.TableAlias("t"))))
    assert relation("a join lateral (select a)") == r.Join(TA, r.Lateral(r.Derived(query)))


def test_intersect_binds_tighter_than_union_and_the_rest_goes_left_to_right() -> None:
    one, two, three = (q.Select((n,)) for n in (ONE, TWO, THREE))
    assert parse_query("select 1 union select 2 intersect select 3").body == q.SetQuery(
        "UNION", one, q.SetQuery("INTERSECT", two, three)
    )
    assert parse_query("select 1 union all select 2 minus select 3").body == q.SetQuery(
        "EXCEPT", q.SetQuery("UNION", one, two, True), three
    )
    assert parse_query("select 1 union (select 2 except all select 3)").body == q.SetQuery(
        "UNION", one, q.SetQuery("EXCEPT", two, three, True)
    )


def test_order_and_limit_belong_to_the_whole_set_operation_or_to_a_parenthesised_part() -> None:
    query = parse_query("select 1 union (select 2 limit 1) order by a")
    assert query == q.Query(
        q.SetQuery("UNION", q.Select((ONE,)), q.Query(q.Select((TWO,)), limit=ONE)),
        order_by=(e.SortItem(A),),
    )


def test_a_limit_inside_parentheses_stays_inside() -> None:
    assert parse_query("(select 1 limit 3) limit 1") == q.Query(
        q.Query(q.Select((ONE,)), limit=THREE), limit=ONE
    )


def test_limit_all_is_no_limit() -> None:
    assert parse_query("select 1 limit all offset 2") == q.Query(q.Select((ONE,)), offset=TWO)


def test_common_tables_have_column_lists_and_nest() -> None:
    query = parse_query(
        "with a (x) as (with b as (select 1) select * from b), c as (select 2) select * from a"
    )
    inner = q.Query(q.Select((STAR,), TB), (q.CommonTable("b", q.Query(q.Select((ONE,)))),))
    assert query.ctes == (q.CommonTable("a", inner, ("x",)), q.CommonTable("c", q.Query(q.Select((TWO,)))))


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a, 2", q.GroupBy((A, TWO))),
        ("all", q.GroupBy((e.Name(("all",)),))),
        ("a, b with rollup", q.GroupBy((q.Rollup(((A,), (B,))),))),
        ("a with cube", q.GroupBy((q.Cube(((A,),)),))),
        ("a, rollup(b, (c, x)), cube(y)", q.GroupBy((A, q.Rollup(((B,), (C, X))), q.Cube(((Y,),))))),
        (
            "grouping sets ((a, b), a, (), rollup(c))",
            q.GroupBy(
                (
                    q.GroupingSets(
                        (q.GroupingSet((A, B)), q.GroupingSet((A,)), q.GroupingSet(()), q.Rollup(((C,),)))
                    ),
                )
            ),
        ),
        ("a, b grouping sets ((a), b)", q.GroupBy((A, B), (q.GroupingSet((A,)), q.GroupingSet((B,))))),
        ("(a, b)", q.GroupBy((e.Row((A, B)),))),
    ],
)
def test_group_by(text: str, tree: q.GroupBy) -> None:
    assert select(f"select a from t group by {text}").group_by == tree


def test_subqueries_stand_in_expressions() -> None:
    one = q.Query(q.Select((ONE,)))
    assert select("select (select 1), exists (select 1)").items == (e.ScalarSubquery(one), e.Exists(one))
    assert select("select a where (a, b) not in (select 1)").where == e.InSubquery(e.Row((A, B)), one, True)
    assert select("select a where a in ((select 1))").where == e.InList(A, (e.ScalarSubquery(one),))
    union = q.Query(q.SetQuery("UNION", q.Select((ONE,)), q.Select((TWO,))))
    assert select("select ((select 1) union (select 2))").items == (e.ScalarSubquery(union),)
    assert select("select ((select 1) + 2)").items == (e.Binary("+", e.ScalarSubquery(one), TWO),)


def test_star_except_is_distinguished_from_the_set_operation() -> None:
    assert select("select * except (a) from b").items == (e.Star((), (("a",),)),)
    assert isinstance(parse_query("select * from a except (select 1)").body, q.SetQuery)


def test_clause_words_are_aliases_only_where_no_clause_can_start() -> None:
    assert select("select a order from t").items == (e.Aliased(A, "order"),)
    assert select("select a limit, b from t").items == (e.Aliased(A, "limit"), B)
    assert select("select a as select from t").items == (e.Aliased(A, "select"),)
    assert select("select a left, b window from t").items == (e.Aliased(A, "left"), e.Aliased(B, "window"))
    assert relation("a left join b") == r.Join(TA, TB, "LEFT")


def test_table_is_short_for_select_star() -> None:
    assert parse_query("table a") == parse_query("select * from a")
