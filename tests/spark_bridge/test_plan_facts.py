from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest

from kquery_spark.errors import Unsupported
from kquery_spark.spark_bridge.plan.plan_facts import Facts
from tests.conftest import SPARK_VERSION, settings

MODES = {
    "Add",
    "Subtract",
    "Multiply",
    "Divide",
    "IntegralDivide",
    "Remainder",
    "Pmod",
    "Cast",
    "Sum",
    "Average",
}


@pytest.fixture(autouse=True)
def ansi(spark):
    """ANSI mode, which is off by default in Spark 3.5."""
    with settings(spark, {"spark.sql.ansi.enabled": "true"}):
        yield


def modes(facts):
    return [(node.cls, facts.eval_mode(node)) for node in facts.parse().walk_all() if node.cls in MODES]


def find(facts, cls):
    return [node for node in facts.parse().walk_all() if node.cls == cls]


def test_try_and_ansi_are_distinguished_node_by_node(fetch, numbers):
    facts = fetch(
        f"""select try_add(i, 1) a, i + 2 b, try_subtract(i, 1) c, i - 2 d, try_multiply(i, 3) e, i * 4 f,
            try_divide(d, d) g, d / d h, i % 6 j, i div 7 k, pmod(i, 8) l, cast(s as int) m,
            try_cast(s as bigint) n from {numbers}"""
    )
    assert modes(facts) == [
        ("Add", "TRY"),
        ("Add", "ANSI"),
        ("Subtract", "TRY"),
        ("Subtract", "ANSI"),
        ("Multiply", "TRY"),
        ("Multiply", "ANSI"),
        ("Divide", "TRY"),
        ("Divide", "ANSI"),
        ("Remainder", "ANSI"),
        ("IntegralDivide", "ANSI"),
        ("Cast", "ANSI"),
        ("Pmod", "ANSI"),
        ("Cast", "ANSI"),
        ("Cast", "TRY"),
    ]


@pytest.mark.skipif(SPARK_VERSION < (4, 0), reason="try_mod is of 4.0")
def test_the_remainder_of_try_mod(fetch, numbers):
    facts = fetch(f"select try_mod(i, 5) a, i % 6 b from {numbers}")
    assert modes(facts) == [("Remainder", "TRY"), ("Remainder", "ANSI")]


def test_modes_below_seq_valued_arguments(fetch, numbers):
    facts = fetch(
        f"""select case when try_add(i, 1) > 5 then i + 1 else try_multiply(i, 2) end a,
            coalesce(try_add(i, 3), i + 3) b, concat(cast(i + 4 as string), cast(try_add(i, 4) as string)) c
            from {numbers}"""
    )
    actual = [mode for cls, mode in modes(facts) if cls in ("Add", "Multiply")]
    assert actual == ["TRY", "ANSI", "TRY", "TRY", "ANSI", "ANSI", "TRY"]


def test_modes_of_aggregates(fetch, numbers):
    facts = fetch(f"select sum(i), try_sum(i), avg(d), try_avg(d) from {numbers}")
    assert [m for m in modes(facts) if m[0] != "Cast"] == [
        ("Sum", "ANSI"),
        ("Sum", "TRY"),
        ("Average", "ANSI"),
        ("Average", "TRY"),
    ]


def test_modes_inside_of_subqueries(fetch, numbers):
    facts = fetch(
        f"""select i + 1 a from {numbers} where i > (
              select max(try_add(i, 1)) from {numbers} where i < (select sum(try_multiply(i, 2)) + 1 from {numbers}))"""
    )
    by_depth = Counter(
        (len(n.path), n.cls, facts.eval_mode(n)) for n in facts.parse().walk_all() if n.cls in MODES
    )
    assert by_depth[2, "Add", "ANSI"] == 1
    assert by_depth[4, "Add", "TRY"] == 1
    assert by_depth[6, "Multiply", "TRY"] == 1
    assert by_depth[6, "Add", "ANSI"] == 1


def test_a_plan_made_without_ansi_stays_legacy_after_the_setting_changes(spark, fetch, numbers):
    with settings(spark, {"spark.sql.ansi.enabled": "false"}):
        frame = spark.sql(f"select i + 1 a, cast(s as int) b, sum(i) over () c from {numbers}")
    assert {mode for _, mode in modes(fetch(frame))} == {"LEGACY"}


def test_in_set_values(fetch, numbers):
    many = ", ".join(str(i) for i in range(-3, 12))
    facts = fetch(f"select * from {numbers} where i in ({many})")
    assert sorted(facts.in_set_values(*find(facts, "InSet"), pa.int32())) == list(range(-3, 12))
    days = ", ".join(f"date'2020-01-{i:02d}'" for i in range(1, 13))
    facts = fetch(f"select * from {numbers} where day in ({days})")
    assert sorted(facts.in_set_values(*find(facts, "InSet"), pa.date32())) == list(range(18262, 18274))


def test_in_set_with_null_and_the_word_null(fetch, numbers):
    words = ", ".join(f"'{c}'" for c in "abcdefghijk") + ", 'null', 'x y,z'"
    facts = fetch(f"select s in ({words}) a from {numbers}")
    values = facts.in_set_values(*find(facts, "InSet"), pa.string())
    assert sorted(values) == sorted([*"abcdefghijk", "null", "x y,z"])
    facts = fetch(f"select s in ({words}, null) a from {numbers}")
    values = facts.in_set_values(*find(facts, "InSet"), pa.string())
    assert values[-1] is None
    assert sorted(values[:-1]) == sorted([*"abcdefghijk", "null", "x y,z"])


def test_in_set_of_strings_that_cannot_be_distinguished_is_declined(fetch, numbers):
    words = ", ".join(f"'{c}'" for c in "abcdefghijk")
    facts = fetch(f"select s in ({words}, '\\u001e') a from {numbers}")
    with pytest.raises(Unsupported, match="control character"):
        facts.in_set_values(*find(facts, "InSet"), pa.string())


def test_escape_characters_and_patterns(fetch, numbers):
    facts = fetch(
        f"""select s like 'a_%b' a, s like 'x!%_' escape '!' b, s like all ('%a_', 'b%c%d') c,
            s like any ('_x', '%y_%z') d from {numbers}"""
    )
    assert [facts.escape_char(node) for node in find(facts, "Like")][:2] == ["\\", "!"]
    assert facts.patterns(*find(facts, "LikeAll")) == ["%a_", "b%c%d"]
    assert facts.patterns(*find(facts, "LikeAny")) == ["_x", "%y_%z"]


def test_generate_says_which_columns_it_drops(fetch, numbers):
    facts = fetch(f"select id, x from {numbers} lateral view explode(ids) as x")
    (generate,) = find(facts, "Generate")
    with pytest.raises(Unsupported):
        generate["unrequiredChildIndex"]
    assert facts.integers(generate, "unrequiredChildIndex") == [1]


def test_a_copy_cannot_be_looked_up(fetch, numbers):
    facts = fetch(f"select i + 1 a from {numbers}")
    (add,) = find(facts, "Add")
    with pytest.raises(Unsupported, match="Add cannot be looked up"):
        facts.jvm_object(replace(add, path=None))


def test_a_place_with_another_class_is_refused(fetch, numbers):
    facts = fetch(f"select i + 1 a, i like '%' b from {numbers}")
    (add,) = find(facts, "Add")
    with pytest.raises(Unsupported, match="cannot be looked up"):
        facts.jvm_object(replace(add, path=(0, 0)))
    with pytest.raises(Unsupported):
        facts.jvm_object(replace(add, path=(0, 99)))


def test_a_plan_that_is_not_the_jsons_is_refused(spark, jvm, numbers):
    """Expressions that the JSON leaves out would shift places: the counts below each plan node must agree."""
    plan = spark.sql(f"select i + 1 a, i * 2 b from {numbers}")._jdf.queryExecution().optimizedPlan()
    other = spark.sql(f"select i + 1 a from {numbers}")._jdf.queryExecution().optimizedPlan()
    facts = Facts(jvm, plan)
    facts._tree = Facts(jvm, other).parse()
    with pytest.raises(Unsupported, match="not all expressions"):
        facts.eval_mode(*find(facts, "Add"))


def test_a_fact_no_object_has_is_refused(fetch, numbers):
    facts = fetch(f"select i + 1 a from {numbers}")
    (add,) = find(facts, "Add")
    with pytest.raises(Unsupported, match="escape char of Add"):
        facts.escape_char(add)
    (alias,) = find(facts, "Alias")
    with pytest.raises(Unsupported, match="no evaluation mode"):
        facts.eval_mode(alias)


def test_long_strings_come_whole(spark, jvm, numbers):
    ascii_plan = spark.table(numbers).selectExpr(*(f"i + {n} as long_name_{n}" for n in range(60)))
    emoji_plan = spark.table(numbers).selectExpr(*(f"i + {n} as `{'😀' * 50}{n}`" for n in range(30)))
    for frame in (ascii_plan, emoji_plan):
        plan = frame._jdf.queryExecution().optimizedPlan()
        text = jvm.text(plan, "org.apache.spark.sql.catalyst.trees.TreeNode", "toJSON")
        assert len(text) > 14_000
        assert text == plan.toJSON()


@pytest.mark.parametrize("length", [0, 1, 6_999, 7_000, 7_001, 21_000])
@pytest.mark.parametrize("letter", ["a", "é", "😀"])
def test_strings_of_any_length_come_whole(jvm, length, letter):
    text = letter * length
    assert jvm.strings(jvm.mutable_sequence(text)) == [text]
    assert jvm.strings(jvm.mutable_sequence(text, "b", "")) == [text, "b", ""]


def test_elements_are_counted(jvm):
    assert jvm.strings(jvm.empty()) == []
    assert jvm.strings(jvm.mutable_sequence(",", "(1,", "")) == [",", "(1,", ""]
    with pytest.raises(Unsupported, match="control character"):
        jvm.strings(jvm.mutable_sequence("a\x1eb"))
