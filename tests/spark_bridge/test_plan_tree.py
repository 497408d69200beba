from __future__ import annotations

import json

import pytest

from kquery_spark.errors import Unsupported
from kquery_spark.spark_bridge.plan.plan_tree import (
    aggregate_filter,
    case_parts,
    parse_expression,
    parse_plan,
)

EX = "org.apache.spark.sql.catalyst.expressions."
LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."


def attribute(name, ident=1):
    return {
        "class": f"{EX}AttributeReference",
        "num-children": 0,
        "name": name,
        "dataType": "long",
        "nullable": True,
        "metadata": {},
        "exprId": {"product-class": f"{EX}ExprId", "id": ident, "jvmId": "x"},
        "qualifier": [],
    }


def literal(value, kind="long"):
    return {"class": f"{EX}Literal", "num-children": 0, "value": value, "dataType": kind}


def binary(cls, **more):
    return {"class": EX + cls, "num-children": 2, "left": 0, "right": 1, **more}


ONE_ROW = {"class": f"{LOGICAL}OneRowRelation", "num-children": 0}
SUBQUERY = {
    "class": f"{EX}ScalarSubquery",
    "num-children": 0,
    "plan": [
        {"class": f"{LOGICAL}Project", "num-children": 1, "projectList": [[literal("7")]], "child": 0},
        ONE_ROW,
    ],
    "outerAttrs": [],
    "exprId": {"product-class": f"{EX}ExprId", "id": 3, "jvmId": "x"},
    "joinCond": [],
}
FILTER = [
    {
        "class": f"{LOGICAL}Filter",
        "num-children": 1,
        "condition": [
            binary("GreaterThan"),
            binary("Add", evalContext=None),
            attribute("a"),
            literal("1"),
            SUBQUERY,
        ],
        "child": 0,
    },
    {
        "class": f"{LOGICAL}Sort",
        "num-children": 1,
        "order": [
            [
                {
                    "class": f"{EX}SortOrder",
                    "num-children": 1,
                    "child": 0,
                    "direction": {"object": f"{EX}Descending$"},
                    "nullOrdering": {"object": f"{EX}NullsLast$"},
                    "sameOrderExpressions": [],
                },
                attribute("a"),
            ],
            [attribute("b", 2)],
        ],
        "global": True,
        "child": 0,
    },
    ONE_ROW,
]


def test_a_plan_becomes_a_tree_with_its_expressions_parsed():
    plan = parse_plan(json.dumps(FILTER))
    assert [node.cls for node in plan.walk()] == ["Filter", "Sort", "OneRowRelation"]
    condition = plan.tree("condition")
    assert [node.cls for node in condition.walk()] == [
        "GreaterThan",
        "Add",
        "AttributeReference",
        "Literal",
        "ScalarSubquery",
    ]
    assert condition.child("right").cls == "ScalarSubquery"
    assert condition.child("left").child("left")["name"] == "a"
    assert condition.child("left").child("left")["exprId"] == 1


def test_case_objects_are_names():
    order = parse_plan(json.dumps(FILTER)).child("child").trees("order")[0]
    assert (order["direction"], order["nullOrdering"]) == ("Descending", "NullsLast")


def test_paths_count_plan_nodes_and_then_expressions():
    plan = parse_plan(json.dumps(FILTER))
    assert [node.path for node in plan.walk()] == [(0,), (1,), (2,)]
    assert [node.path for node in plan.tree("condition").walk()] == [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4)]
    assert [tree.path for tree in plan.child("child").trees("order")] == [(1, 0), (1, 2)]
    subquery = plan.tree("condition").child("right").tree("plan")
    assert (subquery.path, subquery.is_plan) == ((0, 4, 0), True)
    assert subquery.trees("projectList")[0].path == (0, 4, 0, 0)
    assert len({node.path for node in plan.walk_all()}) == len(list(plan.walk_all())) == 14


def test_a_lost_field_is_refused_and_an_absent_option_is_none():
    add = parse_plan(json.dumps(FILTER)).tree("condition").child("left")
    with pytest.raises(Unsupported, match="evalContext of Add"):
        add["evalContext"]
    with pytest.raises(Unsupported, match="evalContext of Add"):
        add.optional("evalContext")
    assert add.optional("filter") is None
    with pytest.raises(Unsupported):
        add["filter"]


def test_a_number_that_is_no_child_is_refused():
    node = parse_expression(json.dumps([binary("Add") | {"right": 2}, literal("1"), literal("2")]))
    with pytest.raises(Unsupported, match="right of Add"):
        node.child("right")


def test_a_strangers_class_keeps_its_package():
    node = parse_expression(json.dumps([{"class": "com.example.Add", "num-children": 0}]))
    assert node.cls == "com.example.Add"


def test_case_branches_come_from_the_children():
    branches = [{"product-class": "scala.Tuple2", "_1": [literal("x")], "_2": [literal("y")]}]
    case = {"class": f"{EX}CaseWhen", "num-children": 3, "branches": branches, "elseValue": [literal("3")]}
    pairs, otherwise = case_parts(
        parse_expression(json.dumps([case, literal("1"), literal("2"), literal("3")]))
    )
    assert [(when["value"], then["value"]) for when, then in pairs] == [("1", "2")]
    assert otherwise is not None and otherwise["value"] == "3"
    without = parse_expression(json.dumps([case | {"num-children": 2}, literal("1"), literal("2")]))
    assert case_parts(without)[1] is None


def test_the_filter_of_an_aggregate_is_its_second_child():
    aggregate = {"class": f"{EX}aggregate.AggregateExpression", "num-children": 2, "aggregateFunction": 0}
    count = {"class": f"{EX}aggregate.Count", "num-children": 0, "children": []}
    both = parse_expression(json.dumps([aggregate, count, literal("true", "boolean")]))
    assert aggregate_filter(both) is both.children[1]
    alone = parse_expression(json.dumps([aggregate | {"num-children": 1}, count]))
    assert aggregate_filter(alone) is None


def test_trees_in_a_join_type_are_detached():
    join = {
        "class": f"{LOGICAL}Join",
        "num-children": 2,
        "left": 0,
        "right": 1,
        "joinType": {
            "product-class": "org.apache.spark.sql.catalyst.plans.ExistenceJoin",
            "exists": [attribute("exists", 9)],
        },
        "condition": [literal("true", "boolean")],
        "hint": None,
    }
    node = parse_plan(json.dumps([join, ONE_ROW, ONE_ROW]))
    assert node["joinType"]["product-class"] == "ExistenceJoin"
    assert node["joinType"]["exists"]["exprId"] == 9
    assert node["joinType"]["exists"].path is None
    assert node.tree("condition").path == (0, 0)


def test_deep_chains_need_no_recursion():
    depth = 20_000
    chain = [binary("And")] * depth + [literal("true", "boolean")] * (depth + 1)
    node = parse_expression(json.dumps(chain))
    assert sum(1 for _ in node.walk()) == 2 * depth + 1


def test_more_than_one_tree_is_refused():
    with pytest.raises(Unsupported):
        parse_plan(json.dumps([ONE_ROW, ONE_ROW]))


def test_a_tree_prints_one_node_a_line():
    assert str(parse_plan(json.dumps(FILTER))).splitlines()[2] == "    OneRowRelation()"
