"""Function calls in the strings of plan nodes, and what the engine has of them."""

from __future__ import annotations

import pytest

from kquery_spark.frontends.catalyst.support import Level
from kquery_spark.functions.registry import functions
from kquery_spark.qualify.calls import calls_in
from kquery_spark.qualify.functions import call_support, known_functions


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        (" [upper(s#1) AS u#2, v#3]", ["upper"]),
        (
            "(keys=[k#1], functions=[partial_sum(abs(v#2)), merge_max(w#3), finalmerge_count(x#4)])",
            ["sum", "abs", "max", "count"],
        ),
        (" [sum(v)#12L, count(1)#13L]", []),
        (" [rand(7657912738274359490) AS rand()#10]", ["rand"]),
        (
            " [sum(v#1) windowspecdefinition(k#2) AS sum(v) OVER (PARTITION BY k)#5]",
            ["sum", "windowspecdefinition"],
        ),
        (" (isnotnull(a#1) AND NOT (length(trim(b#2, None)) > 3))", ["isnotnull", "length", "trim"]),
        ("(limit=5, orderBy=[count(1)#8L DESC NULLS LAST], output=[w#7,count(1)#8L])", []),
        (" a#1 IN (1,2,3)", []),
        (" (sum(x)#3 = avg(y#4))", ["avg"]),
        (" ((unbalanced(a#1)", ["unbalanced"]),
    ],
)
def test_calls_of_a_text(text, calls):
    assert list(calls_in(text)) == calls


def test_a_long_chain_of_conditions():
    chain = "(" * 1000 + "(a#1 = 1)" + " OR (upper(b#2) = x))" * 1000
    assert list(calls_in(f" {chain}")) == ["upper"] * 1000


def test_an_unknown_function_stays_with_spark():
    assert call_support("[my_udf(a#1) AS x#2]", "4.3.0").reasons == ("the engine has no function my_udf",)


def test_a_declined_function_has_the_reason_of_the_support_table():
    assert call_support("[rand(5) AS x#2]", "4.3.0").reasons == ("random numbers are not supported",)


def test_every_function_of_the_registry_is_known_by_its_names_and_classes():
    known = known_functions((4, 3, 0))
    for entry in functions().values():
        assert all(known[name].level is not Level.NONE for name in (entry.name, *entry.aliases)), entry.name


def test_what_an_earlier_release_answers_otherwise_stays_with_it():
    changed = [e for e in functions().values() if any(c.concerns is None for c in e.changes)]
    assert changed
    for entry in changed:
        assert known_functions((3, 5, 1))[entry.name].level is Level.NONE
        assert known_functions((4, 3, 0))[entry.name].level is not Level.NONE
