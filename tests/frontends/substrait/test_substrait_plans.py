"""Plans of other forms than this package writes: edits of a plan after which it is declined, or read as another query."""

from __future__ import annotations

from typing import Any

import pytest

from kquery_spark.errors import SubstraitError
from tests.frontends.substrait import queries
from tests.frontends.substrait.engines import in_any_order, rows_of
from tests.frontends.substrait.mutated_plans import messages_within

pytest.importorskip("substrait")


@pytest.fixture(scope="module")
def context():
    return queries.context()


def parsed(context, sql: str) -> Any:
    from substrait.proto import Plan

    return Plan.FromString(context.sql(sql).to_substrait())


def first(message: Any, kind: str) -> Any:
    """The first message of a kind in a message, in depth-first order, or the message itself."""
    return next((m for m in messages_within(message) if m.DESCRIPTOR.name == kind), None)


def read(context, plan: Any) -> list[tuple[Any, ...]]:
    return rows_of(context.substrait(plan.SerializeToString()).to_arrow())


def assigned(kind: str, **values: Any) -> Any:
    """An edit that sets fields of the first message of a kind; a list replaces a repeated field."""

    def edit(plan: Any) -> None:
        message = first(plan, kind)
        for name, value in values.items():
            if isinstance(value, list):
                message.ClearField(name)
                getattr(message, name).extend(value)
            else:
                setattr(message, name, value)

    return edit


def option(kind: str, name: str, *preference: str) -> Any:
    """An edit that gives the first call of a kind one option."""

    def edit(plan: Any) -> None:
        function = first(plan, kind)
        del function.options[:]
        function.options.add(name=name, preference=preference)

    return edit


def sub(kind: str, *path: str, **values: Any) -> Any:
    """An edit that sets fields of a message below the first one of a kind; without values, it only makes the message present."""

    def edit(plan: Any) -> None:
        message = first(plan, kind)
        for name in path:
            message = getattr(message, name)
        message.SetInParent()
        for name, value in values.items():
            setattr(message, name, value)

    return edit


def renamed(name: str) -> Any:
    """An edit that changes the name of the first function that the plan declares."""
    return assigned("ExtensionFunction", name=name)


def from_uri(uri: str) -> Any:
    return assigned("SimpleExtensionURI", uri=uri)


def twice(kind: str, field: str) -> Any:
    """An edit that repeats the first value of a repeated field."""

    def edit(plan: Any) -> None:
        values = getattr(first(plan, kind), field)
        values.add().CopyFrom(values[0])

    return edit


ADD = "SELECT i + 1 AS n FROM t"
FLOATS = "SELECT x + x AS n FROM t"
SUM = "SELECT sum(l) AS n FROM t"
JOIN = "SELECT i, v FROM t JOIN u ON i = k"
GROUPS = "SELECT g, b, sum(l) FROM t GROUP BY g, b"
SORT = "SELECT i FROM t ORDER BY i LIMIT 3"
UNION = "SELECT i FROM t UNION ALL SELECT k FROM u"
WINDOW = "SELECT i, sum(l) OVER (ORDER BY i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t"
VALUES = "SELECT * FROM VALUES (1, 'a'), (2, NULL) AS q(a, b)"
EXISTS = "SELECT i FROM t WHERE EXISTS (SELECT 1 FROM u WHERE k = i)"
IN = "SELECT i FROM t WHERE i IN (SELECT k FROM u)"
LIKE = "SELECT s LIKE 'a%' FROM t"
CASTS = "SELECT CAST(s AS int) FROM t"
DECIMAL = "SELECT m + 1.50BD FROM t"
TIME = "SELECT ts < TIMESTAMP_NTZ '2020-01-01 00:00:00' FROM t"

#: For each edit: the query, the edit of its plan, and what the error says.
DECLINED: dict[str, tuple[str, Any, str]] = {
    "another extension": (ADD, from_uri("https://example.com/functions.yaml"), "function add of the extension https://example"),
    "the extension of another function": (ADD, from_uri("/functions_string.yaml"), "function add of the extension functions_string"),
    "an extension that is not declared": (ADD, assigned("ExtensionFunction", extension_uri_reference=9), "add is of extension 9"),
    "a function that is not known": (ADD, renamed("frobnicate"), "function frobnicate is not supported"),
    "a function that is not declared": (ADD, assigned("ScalarFunction", function_reference=77), "refers to function 77"),
    "a function that is declared twice": (ADD, twice("Plan", "extensions"), "declares function 1 twice"),
    "a function of DataFusion": (LIKE, renamed("btrim"), "is not supported"),
    "an aggregate as a scalar": (ADD, renamed("sum"), "function sum is not supported"),
    "a scalar as an aggregate": (SUM, renamed("add"), "aggregate function add is not supported"),
    "an argument too few": (ADD, assigned("ScalarFunction", arguments=[]), "function add with 0 argument"),
    "overflow that saturates": (ADD, option("ScalarFunction", "overflow", "SATURATE"), "overflow SATURATE is not supported; the engine has ERROR"),
    "an unknown option": (ADD, option("ScalarFunction", "speed", "FAST"), "function add with speed FAST is not supported"),
    "rounding of another kind": (FLOATS, option("ScalarFunction", "rounding", "FLOOR"), "rounding FLOOR is not supported"),
    "a rounding of decimals": (DECIMAL, option("ScalarFunction", "rounding", "TIE_TO_EVEN"), "rounding is supported only for floating-point"),
    "a rounding of the quotients of integers": ("SELECT l DIV 3 FROM t", option("ScalarFunction", "rounding", "TIE_TO_EVEN"), "rounding is supported only for floating-point"),
    "a quotient that is truncated": ("SELECT x / 2.0D FROM t", option("ScalarFunction", "rounding", "TRUNCATE"), "rounding TRUNCATE is not supported"),
    "an error for NaN": ("SELECT x / 2.0D FROM t", option("ScalarFunction", "on_domain_error", "ERROR"), "on_domain_error must allow NAN"),
    "a result of another type": (ADD, sub("ScalarFunction", "output_type", "bool"), "function add returns int, but the plan says boolean"),
    "like without regard to case": (LIKE, option("ScalarFunction", "case_sensitivity", "CASE_INSENSITIVE"), "CASE_INSENSITIVE is not supported"),
    "an integer and a string": ("SELECT i = CAST(s AS int) FROM t", sub("Cast", "type", "string"), "of different types: int, string"),
    "arguments of two types": ("SELECT l + CAST(i AS bigint) AS n FROM t", sub("Cast", "type", "fp64"), "cannot add bigint and double"),
    "a literal of a type that does not fit": (DECIMAL, sub("Literal", "decimal", value=b"\1"), "has 1 bytes, not 16"),
    "a decimal with too many digits": (DECIMAL, sub("Literal", "decimal", precision=1), r"decimal\(1,2\) is not a type"),
    "a decimal of 39 digits": (DECIMAL, sub("Literal", "decimal", precision=39), r"decimal\(39,2\) is not a type"),
    "a timestamp in milliseconds": (TIME, sub("Literal", "precision_timestamp", precision=3), "precision 3 is not supported"),
    "a literal of a time": (TIME, assigned("Literal", time=1), "a literal of the type time is not supported"),
    "a literal in a variation": (ADD, assigned("Literal", type_variation_reference=7), "i32 in variation 7"),
    "a cast to varchar": (CASTS, sub("Cast", "type", "varchar", length=3), "a cast to varchar is not supported"),
    "a cast that Spark does not have": (CASTS, sub("Cast", "type", "interval_year"), "CAST from string to interval year"),
    "a field that does not exist": (ADD, assigned("StructField", field=99), "field 99 of 11 fields"),
    "an outer reference without an outer query": (ADD, sub("FieldReference", "outer_reference", steps_out=1), "not in a subquery"),
    "a field of a number": (ADD, sub("StructField", "child", "struct_field"), "int has no field 0"),
    "a table that does not exist": (ADD, assigned("NamedTable", names=["tt"]), r"unknown table tt \(did you mean t\?\); the tables are t, u"),
    "a column that does not exist": (ADD, assigned("NamedStruct", names=["j", *queries.T.schema.names[1:], *"qrz"]), "t has no column j"),
    "a column of another type": (ADD, lambda plan: first(plan, "NamedStruct").struct.types[0].string.SetInParent(), "column i of t is int, but the plan says string"),
    "two columns of one name": (ADD, assigned("NamedStruct", names=["i", "i", *queries.T.schema.names[2:], *"qrz"]), "a schema has two columns i"),
    "names too few": (ADD, assigned("NamedStruct", names=["i"]), "fewer names than columns"),
    "names too many": (ADD, assigned("NamedStruct", names=[*queries.T.schema.names, *"qrzz"]), "more names than columns"),
    "a type in a variation": (ADD, lambda plan: setattr(first(plan, "NamedStruct").struct.types[0].i32, "type_variation_reference", 1), "the type i32 in variation 1"),
    "a type that Spark does not have": (ADD, lambda plan: first(plan, "NamedStruct").struct.types[0].uuid.SetInParent(), "the type uuid is not supported"),
    "a column that is emitted and missing": (ADD, assigned("Emit", output_mapping=[40]), "emits column 40 of 12"),
    "no column but a name": (ADD, assigned("Emit", output_mapping=[]), "more names than columns"),
    "an enhancement": (ADD, lambda plan: first(plan, "ProjectRel").advanced_extension.enhancement.SetInParent(), "the enhancement without a name is not supported"),
    "an enhancement of the plan": (ADD, lambda plan: setattr(plan.advanced_extensions.enhancement, "type_url", "type/x"), "the enhancement type/x is not supported"),
    "a join of an unknown type": (JOIN, assigned("JoinRel", type=7), "the join type 7 is not supported"),
    "a join without a type": (JOIN, lambda plan: first(plan, "JoinRel").ClearField("type"), "the join type 0 is not supported"),
    "a condition that is not boolean": (JOIN, lambda plan: first(plan, "JoinRel").expression.literal.CopyFrom(literal(i32=1)), "inner join is int, not boolean"),
    "a part of an aggregation": (SUM, assigned("AggregateFunction", phase=1), "partial aggregations are not supported"),
    "an aggregation of sorted rows": (SUM, lambda plan: first(plan, "AggregateFunction").sorts.add(), "sorted arguments"),
    "a sum that saturates": (SUM, option("AggregateFunction", "overflow", "SATURATE"), "overflow SATURATE"),
    "a sum without an argument": (SUM, assigned("AggregateFunction", arguments=[]), "takes one argument, not 0"),
    "a grouping of a missing expression": (GROUPS, assigned("Grouping", expression_references=[5]), "not one of 2"),
    "a grouping in another order": (GROUPS, assigned("Grouping", expression_references=[1, 0]), "must refer to the grouping expressions once each"),
    "an unused grouping expression": (GROUPS, assigned("Grouping", expression_references=[0]), "no grouping refers to"),
    "clustered rows": (SORT, assigned("SortField", direction=5), "must have a direction"),
    "a sort by a function": (SORT, assigned("SortField", comparison_function_reference=1), "must have a direction"),
    "a negative limit": (SORT, assigned("FetchRel", count=-2), "the count of a fetch relation is -2"),
    "a limit that is computed": (SORT, lambda plan: first(plan, "FetchRel").count_expr.cast.SetInParent(), "without content"),
    "a limit that is a string": (SORT, lambda plan: first(plan, "FetchRel").count_expr.literal.CopyFrom(literal(string="3")), "must be a literal number"),
    "a limit that is a date": (SORT, lambda plan: first(plan, "FetchRel").count_expr.literal.CopyFrom(literal(date=3)), "must be a literal number"),
    "a limit that an earlier version may leave out": (SORT, lambda plan: (setattr(plan.version, "minor_number", 62), first(plan, "FetchRel").ClearField("count")), "a fetch relation without a count is not supported in a plan of version 0.62"),
    "a limit that plans without a version may leave out": (SORT, lambda plan: (plan.ClearField("version"), first(plan, "FetchRel").ClearField("count")), "a fetch relation without a count is not supported in a plan without a version"),
    "a projection of a table without columns": (ADD, lambda plan: first(plan, "ReadRel").projection.SetInParent(), "must select columns"),
    "a position that is a date": ("SELECT substring(s, 2) FROM t", assigned("Literal", date=2), "must be integer literals"),
    "a number of digits that is a date": ("SELECT round(x, 1) FROM t", assigned("Literal", date=1), "must be an integer literal"),
    "an offset that is a date": ("SELECT lag(i, 2) OVER (ORDER BY l, i) FROM t", assigned("Literal", date=2), "argument 2 must be an integer literal"),
    "a difference of multisets": (UNION, assigned("SetRel", op=2), "the set operation 2 of 2 inputs is not supported"),
    "a set operation without a kind": (UNION, assigned("SetRel", op=0), "the set operation 0"),
    "a set operation of one input": (UNION, lambda plan: first(plan, "SetRel").inputs.pop(), "needs at least two inputs"),
    "a frame of an unknown unit": (WINDOW, assigned("WindowFunction", bounds_type=0), "must be of ROWS or of RANGE"),
    "a frame of values": (WINDOW, assigned("WindowFunction", bounds_type=2), "RANGE frame with an offset"),
    "a frame that ends before it starts": (WINDOW, sub("WindowFunction", "upper_bound", "preceding", offset=2), "starts after its end"),
    "a frame of many rows": (WINDOW, sub("WindowFunction", "upper_bound", "following", offset=2**40), "with the offset 1099511627776"),
    "distinct values over a window": (WINDOW, assigned("WindowFunction", invocation=2), "DISTINCT over a window"),
    "a scalar function over a window": (WINDOW, renamed("add"), "window function add is not supported"),
    "a row of another width": (VALUES, lambda plan: first(plan, "VirtualTable").values[0].fields.pop(), "1 value.s. for 2 column"),
    "a value of another type": (VALUES, lambda plan: first(plan, "VirtualTable").values[0].fields[0].CopyFrom(literal(i64=1)), "column col1 is bigint, not int"),
    "a NULL that the plan excludes": (VALUES, lambda plan: setattr(first(plan, "NamedStruct").struct.types[1].string, "nullability", 2), "is NULL, but the plan says"),
    "a test for unique rows": (EXISTS, assigned("SetPredicate", predicate_op=2), "subquery set_predicate is not supported"),
    "sides of IN of two types": (IN, lambda plan: first(plan, "InPredicate").needles.append(first(plan, "InPredicate").needles[0]), "different types"),
    "two relations": (ADD, twice("Plan", "relations"), "has 2 relations"),
    "a name too few": (ADD, assigned("RelRoot", names=[]), "fewer names than columns"),
    "a name too many": (ADD, assigned("RelRoot", names=["a", "b"]), "more names than columns"),
    "a relation without content": (ADD, lambda plan: first(plan, "ProjectRel").input.ClearField("read"), "a relation without content"),
    "a relation of an extension": (ADD, lambda plan: first(plan, "ProjectRel").input.extension_leaf.SetInParent(), "the relation extension_leaf is not supported"),
    "an Iceberg table": (ADD, lambda plan: first(plan, "ReadRel").iceberg_table.SetInParent(), "reading of iceberg_table is not supported"),
    "a dynamic parameter": (ADD, lambda plan: first(plan, "Literal").Clear(), "a literal without content"),
}  # fmt: skip


def literal(**value: Any) -> Any:
    from substrait.proto import Expression

    return Expression.Literal(**value)


@pytest.mark.parametrize("name", DECLINED)
def test_plan_is_declined_with_a_reason(name, context):
    sql, edit, message = DECLINED[name]
    plan = parsed(context, sql)
    before = plan.SerializeToString()
    edit(plan)
    assert plan.SerializeToString() != before
    with pytest.raises(SubstraitError, match=message):
        read(context, plan)


#: For each edit: the query, the edit of its plan, and the query as which the edited plan is read.
ACCEPTED: dict[str, tuple[str, Any, str]] = {
    "a URI without its beginning": (ADD, from_uri("/functions_arithmetic.yaml"), ADD),
    "no URI": (ADD, lambda plan: (plan.ClearField("extension_uris"), first(plan, "ExtensionFunction").ClearField("extension_uri_reference")), ADD),
    "a name with the types of arguments": (ADD, renamed("add:i32_i32"), ADD),
    "an option with the engine's value among others": (ADD, option("ScalarFunction", "overflow", "SATURATE", "ERROR"), ADD),
    "NaN as a result outside of the domain": ("SELECT x / 2.0D FROM t", option("ScalarFunction", "on_domain_error", "ERROR", "NAN"), "SELECT x / 2.0D FROM t"),
    "no declared type": (ADD, lambda plan: first(plan, "ScalarFunction").ClearField("output_type"), ADD),
    "a wider declared type": (ADD, sub("ScalarFunction", "output_type", "i64"), "SELECT CAST(i + 1 AS bigint) FROM t"),
    "a comparison with a shorter integer": ("SELECT i FROM t WHERE i > 1", assigned("Literal", i8=1), "SELECT i FROM t WHERE i > 1"),
    "a sum of a shorter integer": (ADD, assigned("Literal", i8=1), ADD),
    "a list of shorter integers": ("SELECT i IN (1, 2) FROM t", lambda plan: [setattr(o.literal, "i8", o.literal.i32) for o in first(plan, "SingularOrList").options], "SELECT i IN (1, 2) FROM t"),
    "a year as i32": ("SELECT year(day) FROM t", sub("ScalarFunction", "output_type", "i32"), "SELECT year(day) FROM t"),
    "a count as a decimal": ("SELECT count(*) FROM t", lambda plan: (from_uri("/functions_aggregate_decimal_output.yaml")(plan), sub("AggregateFunction", "output_type", "decimal", precision=38)(plan)), "SELECT CAST(count(*) AS decimal(38, 0)) FROM t"),
    "columns that are emitted in another order": (ADD, assigned("Emit", output_mapping=[11]), ADD),
    "a distinct sum": (SUM, assigned("AggregateFunction", invocation=2), "SELECT sum(DISTINCT l) FROM t"),
    "grouping expressions within a grouping": (GROUPS, lambda plan: (first(plan, "AggregateRel").ClearField("grouping_expressions"), first(plan, "Grouping").ClearField("expression_references")), GROUPS),
    "a union of different rows": (UNION, assigned("SetRel", op=5), "SELECT i FROM t UNION SELECT k FROM u"),
    "an intersection of two": (UNION, assigned("SetRel", op=3), "SELECT i FROM t INTERSECT SELECT k FROM u"),
    "an intersection of multisets": (UNION, assigned("SetRel", op=8), "SELECT i FROM t INTERSECT ALL SELECT k FROM u"),
    "all rows": (SORT, assigned("FetchRel", count=-1), "SELECT i FROM t ORDER BY i"),
    "a fetch relation without a count": (SORT, lambda plan: first(plan, "FetchRel").ClearField("count"), "SELECT i FROM t ORDER BY i"),
    "a limit as a literal": (SORT, lambda plan: first(plan, "FetchRel").count_expr.literal.CopyFrom(literal(i64=2)), "SELECT i FROM t ORDER BY i LIMIT 2"),
    "NULLs last": (SORT, assigned("SortField", direction=2), "SELECT i FROM t ORDER BY i NULLS LAST LIMIT 3"),
    "a filter after a join": (JOIN, lambda plan: first(plan, "JoinRel").post_join_filter.CopyFrom(first(plan, "JoinRel").expression), JOIN),
    "a frame without bounds": (WINDOW, lambda plan: (first(plan, "WindowFunction").ClearField("lower_bound"), first(plan, "WindowFunction").ClearField("upper_bound")), "SELECT i, sum(l) OVER () FROM t"),
}  # fmt: skip


@pytest.mark.parametrize("name", ACCEPTED)
def test_plan_of_another_form_is_read(name, context):
    sql, edit, expected = ACCEPTED[name]
    plan = parsed(context, sql)
    edit(plan)
    assert in_any_order(read(context, plan)) == in_any_order(rows_of(context.sql(expected).to_arrow()))


@pytest.mark.parametrize(("kind", "expected"), [(8, "SEMI"), (9, "ANTI")])
def test_right_semi_and_anti_joins_keep_the_right_side(kind, expected, context):
    plan = parsed(context, "SELECT k, v, i FROM u RIGHT JOIN t ON i = k")
    # the join without a projection above it: its columns are those of t
    join = first(parsed(context, "SELECT * FROM u RIGHT JOIN t ON i = k"), "JoinRel")
    join.type = kind
    plan.relations[0].root.input.Clear()
    plan.relations[0].root.input.join.CopyFrom(join)
    del plan.relations[0].root.names[:]
    plan.relations[0].root.names.extend([*"ilxfsbm", "day", "ts", "g", "p", *"qrz"])
    frame = context.substrait(plan.SerializeToString())
    rows = frame.select("i").to_arrow()
    assert in_any_order(rows_of(rows)) == in_any_order(
        rows_of(context.sql(f"SELECT i FROM t LEFT {expected} JOIN u ON i = k").to_arrow())
    )


@pytest.mark.parametrize(
    ("groupings", "sql"),
    [
        ([[0], [1], []], "GROUPING SETS ((g), (b), ())"),
        ([[0, 1], [0], []], "ROLLUP (g, b)"),
        ([[0, 1], [0], [1], []], "CUBE (g, b)"),
    ],
)
def test_last_column_is_the_number_of_the_grouping_set(groupings, sql, context):
    plan = parsed(context, GROUPS)
    aggregate = first(plan, "AggregateRel")
    del aggregate.groupings[:]
    for references in groupings:
        aggregate.groupings.add(expression_references=references)
    del plan.relations[0].root.names[:]
    plan.relations[0].root.names.extend(["g", "b", "n", "number"])
    plan.relations[0].root.input.CopyFrom(wrapped(aggregate))
    rows = read(context, plan)
    expected = rows_of(context.sql(f"SELECT g, b, sum(l) FROM t GROUP BY {sql}").to_arrow())
    assert in_any_order(row[:3] for row in rows) == in_any_order(expected)
    for g, b, _, number in rows:
        assert (g is None or 0 in groupings[number]) and (b is None or 1 in groupings[number])
    assert {row[3] for row in rows} == set(range(len(groupings)))


def wrapped(aggregate: Any) -> Any:
    """The relation of an aggregation."""
    from substrait.proto import Rel

    return Rel(aggregate=aggregate)


def test_integer_division_truncates_and_raises_for_zero(context):
    plan = parsed(context, "SELECT l DIV 3 FROM t")
    assert read(context, plan) == [(3,), (6,), (10,), (None,), (16,), (2,)]
    assert first(plan, "ScalarFunction").options[0].name == "on_division_by_zero"
    null = parsed(context, "SELECT l DIV 3 FROM t")
    first(null, "ScalarFunction").options[0].preference[:] = ["NULL"]
    with pytest.raises(
        SubstraitError, match="on_division_by_zero NULL is not supported; the engine has ERROR"
    ):
        read(context, null)
    zero = parsed(context, "SELECT l DIV 3 FROM t")
    first(zero, "Literal").i32 = 0
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        read(context, zero)


def test_urns_are_read_although_the_package_does_not_know_them(context):
    """The bytes are put together by hand: field 8 of a plan has URNs, and field 4 of a declaration refers to one."""
    plan = parsed(context, ADD)
    plan.ClearField("extension_uris")
    plan.extensions[0].extension_function.ClearField("extension_uri_reference")

    def with_urn(urn: bytes) -> bytes:
        function = plan.extensions[0].extension_function.SerializeToString() + b"\x20\x01"
        declaration = b"\x1a" + bytes([len(function)]) + function
        anchored = b"\x08\x01\x12" + bytes([len(urn)]) + urn
        without_declarations = type(plan)()
        without_declarations.CopyFrom(plan)
        without_declarations.ClearField("extensions")
        declared = b"\x12" + bytes([len(declaration)]) + declaration
        return (
            without_declarations.SerializeToString() + declared + b"\x42" + bytes([len(anchored)]) + anchored
        )

    standard = with_urn(b"extension:io.substrait:functions_arithmetic")
    assert rows_of(context.substrait(standard).to_arrow()) == rows_of(context.sql(ADD).to_arrow())
    with pytest.raises(SubstraitError, match=r"function add of the extension extension:com.example:math"):
        context.substrait(with_urn(b"extension:com.example:math"))


def test_fields_of_later_versions_are_declined(context):
    plan = parsed(context, ADD)
    data = first(plan, "ProjectRel").input.read.SerializeToString()
    project = first(plan, "ProjectRel")
    project.input.read.ParseFromString(data + b"\xf8\x07\x01")  # field 127
    with pytest.raises(SubstraitError, match="ReadRel has field 127, which this release"):
        context.substrait(plan.SerializeToString())


def test_deep_plans_are_declined(context):
    plan = parsed(context, "SELECT i FROM t")
    from substrait.proto import Rel

    rel = plan.relations[0].root.input
    for _ in range(80):
        deeper = Rel()
        deeper.filter.input.CopyFrom(rel)
        deeper.filter.condition.literal.boolean = True
        rel = deeper
    plan.relations[0].root.input.CopyFrom(rel)
    with pytest.raises(SubstraitError, match="nested more than 100 levels deep"):
        context.substrait(plan.SerializeToString())
