"""Shredded variants in Parquet files: those that Spark writes, and those that other writers may write."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark import kquery_plan
from kquery_spark.expr import Call, Literal, Named
from kquery_spark.logical import Filter, LogicalPlan, Projection, Scan, walk_plan
from kquery_spark.optimizer.rules.variant_field_pruning import variant_field_pruning
from kquery_spark.sources.parquet.source import ParquetSource
from kquery_spark.sources.parquet.variants import shredded_parts, variant_column
from kquery_spark.types import names as t
from tests.conftest import SPARK_VERSION, exhaustive, settings
from tests.variants.encoding import encoded, metadata, primitive
from tests.variants.test_variants import (
    SCALARS,
    TYPES,
    as_types,
    frame_of,
    raises,
    same,
    values_of_scan,
)

pytestmark = pytest.mark.skipif(SPARK_VERSION < (4, 0), reason="Spark 3.5 has no variants")

#: What the scalars are shredded as; "variant" leaves them as they are.
SCALAR_SCHEMAS = (
    *("variant", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary"),
    *("decimal(9,2)", "decimal(18,4)", "date", "timestamp", "timestamp_ntz"),
)
NESTED = ("int", "double", "decimal(9,2)", "date") if SPARK_VERSION >= (4, 1) else ("string",)
OBJECTS = (
    *({"a": 1, "b": {"c": "x", "d": [1, Decimal("2.5"), "y", None]}}, {"a": "text", "b": {"c": None, "e": {"z": 1, "y": 2}}}, {}),
    *({"a": None, "b": None}, {"b": [1, {"c": 2}], "q": {"b": 1, "a": 2}}, {"b": {}}, {"b": {"d": []}}, [1, {"a": 2}], []),
    *({"a": 2**40, "é": "é", "B": 3, "b": {"d": [{"f": 1}, {"f": "x", "g": True}, 7]}}, "text", 5, None, True),
    *({"a": Decimal("1.50"), "l": [[1, 2], [], [3]]}, {"l": [[None], 5]}, {"a": "é" * 70, "b": {"d": ["z" * 300] * 3}}),
    *({f"k{i}": i for i in range(300)}, {"b": {f"k{i}": {"k1": i} for i in range(40)}, "a": 7, "k3": None}),
)  # fmt: skip
OBJECT_SCHEMAS = (
    "a int, b struct<c: string, d: array<decimal(3,1)>>",
    "b struct<d: array<struct<f: int>>, c: string, k2: struct<k1: int>>, a string, k299 bigint, B int",
    "q struct<a: int>, l array<array<int>>, b variant, `é` string, a decimal(10,2)",
    "array<struct<a: int>>",
    "bigint",
)
PATHS = (
    "$", "$.a", "$.b", "$.b.c", "$.b.d", "$.b.d[0]", "$.b.d[1].f", "$.b.e.y", "$.q", "$.q.a", "$.l[0]", "$.l[0][1]", "$.l[1]",
    "$.é", "$.B", "$[0]", "$[1].a", "$.k299", "$.k7", "$.b.k2.k1", "$.b.k39", "$.b[1].c", "$.a.x",
)  # fmt: skip


def shredded(session: Any, schema: str = "") -> Any:
    """Spark writes shredded variants, by a schema or by one that it infers."""
    return settings(
        session,
        {
            "spark.sql.variant.writeShredding.enabled": str(schema != "variant").lower(),
            "spark.sql.variant.allowReadingShredded": "true",
            "spark.sql.variant.forceShreddingSchemaForTest": "" if schema == "variant" else schema,
        },
    )


def written(session: Any, frame: Any, directory: Path, schemas: Sequence[str]) -> Any:
    """The rows of a frame once for each schema, in files that are shredded by it."""
    if SPARK_VERSION < (4, 1):
        # its writer fails for numbers inside arrays
        schemas = [schema for schema in schemas if "decimal" not in schema or schema.startswith("decimal")]
    for number, schema in enumerate(schemas):
        with shredded(session, schema):
            shifted = frame.selectExpr(f"id + {1000 * number} AS id", "v").coalesce(1)
            shifted.write.mode("append").option("parquet.block.row.count.limit", 30).parquet(str(directory))
    return session.read.schema("id bigint, v variant").parquet(str(directory))


def test_typed_scalars_as_every_type(spark: Any, loops: None, tmp_path: Path) -> None:
    plain = frame_of(spark, tmp_path / "plain", [None, *map(encoded, SCALARS)])
    inner = frame_of(spark, tmp_path / "inner", [encoded({"a": [value]}) for value in SCALARS])
    frame = written(spark, plain, tmp_path / "scalars", SCALAR_SCHEMAS)
    wide = written(spark, plain, tmp_path / "wide", ["decimal(38,10)"])
    nested = written(spark, inner, tmp_path / "nested", [f"a array<{each}>" for each in NESTED])
    with shredded(spark):
        with values_of_scan(spark, True), settings(spark, {"spark.sql.session.timeZone": "America/New_York"}):
            same(as_types(frame, TYPES))
        with values_of_scan(spark, False):
            same(as_types(frame, ["double", "decimal(10,2)", "string"]))
        same(as_types(nested, TYPES, "$.a[0]"))
        # as timestamps, decimals of more than 18 digits are Spark's
        same(as_types(wide, [dtype for dtype in TYPES if dtype != "timestamp"]))


def test_objects_and_arrays_of_several_schemas(spark: Any, loops: None, tmp_path: Path) -> None:
    plain = frame_of(spark, tmp_path / "plain", [None, *map(encoded, OBJECTS)])
    frame = written(spark, plain, tmp_path / "objects", ["variant", *OBJECT_SCHEMAS])
    columns = [
        f"{text} AS c{number}_{kind}"
        for number, path in enumerate(PATHS)
        for kind, text in enumerate(
            (
                *(f"try_variant_get(v, '{path}', '{dtype}')" for dtype in ("int", "string", "decimal(10,2)")),
                f"variant_get(v, '{path}') IS NULL",
                f"is_variant_null(variant_get(v, '{path}'))",
            )
        )
    ]
    with shredded(spark):
        for pushed in (True, False):
            with values_of_scan(spark, pushed):
                same(frame.filter("id >= 0").selectExpr("id", *columns))
        same(frame.selectExpr("id", "v IS NULL AS n"))
        rebuilt = {}
        for path in sorted((tmp_path / "objects").glob("*.parquet")):
            table = pq.read_table(path)
            variants = variant_column(table["v"].combine_chunks()).to_pylist()
            rebuilt |= dict(zip(table["id"].to_pylist(), variants, strict=True))
        for row in frame.collect():
            given = None if row.v is None else (bytes(row.v.value), bytes(row.v.metadata))
            assert (None if rebuilt[row.id] is None else tuple(rebuilt[row.id].values())) == given


@pytest.mark.skipif(SPARK_VERSION < (4, 1), reason="Spark 4.0 infers no schemas")
def test_schemas_that_spark_infers(spark: Any, loops: None, tmp_path: Path) -> None:
    strings = """CONCAT('{"n": ', id, ', "s": "x', id % 7, '", "at": {"lat": ', id / 8, '}, "tags": ["a", ', id, ']',
        IF(id % 5 = 0, ', "n2": "text"', ', "n2": 1'), IF(id % 50 = 0, ', "rare": true', ''), '}')"""
    directory = tmp_path / "inferred"
    with shredded(spark), settings(spark, {"spark.sql.variant.inferShreddingSchema": "true"}):
        parsed = spark.range(300).selectExpr("id", f"IF(id % 9 = 0, NULL, parse_json({strings})) AS v")
        parsed.repartition(2).write.parquet(str(directory))
        file = next(directory.glob("*.parquet"))
        assert "typed_value" in str(pq.read_schema(file))
        spark.read.parquet(str(directory)).createOrReplaceTempView("inferred")
        same(
            spark.sql(
                "SELECT v:s::STRING AS s, SUM(v:n::BIGINT), MAX(v:at.lat::DOUBLE) FROM inferred GROUP BY 1"
            )
        )
        same(spark.sql("SELECT v:n2::STRING, COUNT(*) FROM inferred WHERE v:tags[1]::INT > 20 GROUP BY 1"))
        same(spark.sql("SELECT COUNT(v:rare), COUNT(v), COUNT_IF(v IS NULL) FROM inferred"))
        same(
            spark.sql(
                "SELECT COUNT(v:missing.x), COUNT(v:s::STRING), MAX(v:n::INT) FROM inferred WHERE id < 200"
            )
        )
        same(
            spark.sql(
                "SELECT g, MIN(v:at::STRING) FROM (SELECT v, v:s::STRING AS g FROM inferred) GROUP BY g"
            )
        )
        raises(spark.sql("SELECT variant_get(v, '$.n2', 'int') FROM inferred"), "INVALID_VARIANT_CAST")


def test_fields_that_are_needed(tmp_path: Path) -> None:
    struct = pa.struct([("value", pa.binary()), ("typed_value", pa.int64())])
    names = ["a", "b", "dotted.name"]
    kind = pa.struct([("metadata", pa.binary()), ("value", pa.binary()),
                      ("typed_value", pa.struct([pa.field(n, struct) for n in names]))])  # fmt: skip
    column, path = pa.field("v", kind), "v.typed_value."
    assert shredded_parts(column, ["b", "c"]) == ["v.metadata", "v.value", f"{path}b"]
    assert shredded_parts(column, ["c"]) == ["v.metadata", "v.value", f"{path}a"]
    assert shredded_parts(column, ["dotted.name"]) == []
    schema = pa.schema([("k", pa.int32()), ("v", t.VARIANT)])
    scan = Scan("t", ParquetSource((), schema))

    def get(field: str) -> Call:
        return Call.of("variant_get", scan.column("v"), Literal(field, t.STRING), dtype=t.INT)

    def fields(plan: LogicalPlan) -> Any:
        (found,) = [node for node in walk_plan(variant_field_pruning(plan)) if isinstance(node, Scan)]
        return dict(found.source.variant_fields) if isinstance(found.source, ParquetSource) else None

    passed_on = Projection(scan, (Named(get("$.b"), "b"), Named(scan.column("v"), "v")))
    assert fields(Projection(scan, (Named(get("$.a.x"), "x"), Named(get("$['b'][1]"), "y")))) == {
        "v": ("a", "b")
    }
    assert fields(Projection(passed_on, (Named(get("$.a"), "a"),))) == {"v": ("a", "b")}
    assert fields(Filter(passed_on, Call.of("isnotnull", get("$.a")))) == {}
    assert fields(Projection(scan, (Named(get("$"), "x"), Named(get("$.a"), "y")))) == {}
    assert fields(Projection(scan, (Named(get("$[0]"), "x"),))) == {}


def variants_of(directory: Path, typed: pa.DataType, rows: Sequence[Any]) -> str:
    """A file of ``v VARIANT`` that is shredded by a type, from what its columns have."""
    kind = pa.struct(
        [
            pa.field("metadata", pa.binary()),
            pa.field("value", pa.binary()),
            pa.field("typed_value", typed),
        ]
    )
    directory.mkdir()
    pq.write_table(pa.table({"v": pa.array(rows, kind)}), directory / "variants.parquet")
    return str(directory)


NAMES, ONE, TEXT = metadata(["a", "b"]), primitive(3, b"\x01"), b"\x05x"
OBJECT = encoded({"a": 1}, names=["a", "b"])[0]
NO_FIELD = {"value": None, "typed_value": None}
GROUP = pa.struct([pa.field("value", pa.binary()), pa.field("typed_value", pa.int64())])


#: Types of a column, and a row in it that no writer of proper variants writes.
MALFORMED = [
    (pa.int64(), {"metadata": NAMES, "value": TEXT, "typed_value": 7}),
    (pa.int64(), {"metadata": NAMES, "value": OBJECT, "typed_value": 7}),
    (pa.int64(), {"metadata": NAMES, "value": None, "typed_value": None}),
    (pa.int64(), {"metadata": None, "value": None, "typed_value": 7}),
    (pa.int64(), {"metadata": NAMES, "value": OBJECT[:-1], "typed_value": None}),
    (pa.struct({"a": GROUP}), {"metadata": NAMES, "value": OBJECT, "typed_value": None}),
    (pa.struct({"a": GROUP}), {"metadata": NAMES, "value": OBJECT, "typed_value": {"a": NO_FIELD}}),
    (pa.struct({"a": GROUP}), {"metadata": NAMES, "value": None, "typed_value": {"a": None}}),
    (pa.struct({"a": GROUP}), {"metadata": NAMES, "value": ONE, "typed_value": {"a": NO_FIELD}}),
    (pa.list_(GROUP), {"metadata": NAMES, "value": None, "typed_value": [NO_FIELD]}),
    (pa.list_(GROUP), {"metadata": NAMES, "value": b"\x03\x01\x00\x02" + ONE, "typed_value": None}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("typed", "row"),
    [pytest.param(*case, id=f"case{i}", marks=exhaustive if i else ()) for i, case in enumerate(MALFORMED)],
)
def test_malformed_columns_fall_back_to_spark(
    spark: Any, loops: None, tmp_path: Path, typed: pa.DataType, row: dict[str, Any]
) -> None:
    path = variants_of(tmp_path / "malformed", typed, [row])
    frame = spark.read.schema("v variant").parquet(path)
    with shredded(spark):
        for pushed, text in ((True, "$.a"), (True, "$"), (True, "$[0]"), (False, "$.a")):
            with values_of_scan(spark, pushed):
                query = frame.selectExpr(f"try_variant_get(v, '{text}', 'string') AS s")
                assert kq.explain(query).coverage == 1.0
                with warnings.catch_warnings(record=True) as warned:
                    warnings.simplefilter("always")
                    assert outcome(query.transform(kquery_plan, when="always")) == outcome(query)
                assert any("malformed" in str(each.message) for each in warned)


def outcome(frame: Any) -> str:
    """The rows, or the class of the error that Spark raises."""
    try:
        return str(frame.collect())
    except Exception as error:
        return str(error).split("]", 1)[0]


@pytest.mark.parametrize(
    ("typed", "values"),
    [
        (pa.large_string(), ["x", None, ""]),
        (pa.large_list(GROUP), [[{"value": None, "typed_value": 1}], []]),
        (pa.struct({"b": GROUP, "a": GROUP}), [{"a": {"value": TEXT, "typed_value": None}, "b": NO_FIELD}]),
        (pa.decimal128(5, 5), [Decimal("0.12300"), None]),
    ],
    ids=str,
)
def test_files_of_other_writers(
    spark: Any, loops: None, tmp_path: Path, typed: pa.DataType, values: Sequence[Any]
) -> None:
    empty = metadata([])
    rows = [
        {
            "metadata": NAMES if value else empty,
            "value": None if value is not None else ONE,
            "typed_value": value,
        }
        for value in values
    ]
    path = variants_of(tmp_path / "others", typed, [*rows, None])
    with shredded(spark):
        frame = spark.read.schema("v variant").parquet(path)
        for each in ("$", "$.a", "$.b", "$[0]"):
            same(frame.selectExpr(f"try_variant_get(v, '{each}', 'string') AS s"))


def test_what_stays_with_spark_says_so(spark: Any, loops: None, tmp_path: Path) -> None:
    plain = variants_of(
        tmp_path / "plain", pa.int64(), [{"metadata": NAMES, "value": None, "typed_value": 7}]
    )
    rare = variants_of(tmp_path / "rare", pa.time64("us"), [{"metadata": NAMES, "value": ONE}])
    with shredded(spark):
        report = kq.explain(spark.read.schema("v variant").parquet(rare).selectExpr("v::INT AS i"))
        assert any("shredded variant with time64[us] in it" in reason for _, reason in report.reasons)
        with settings(spark, {"spark.sql.variant.allowReadingShredded": "false"}):
            frame = spark.read.schema("v variant").parquet(plain).selectExpr("v::INT AS i")
            report = kq.explain(frame)
        assert any("which Spark's settings do not allow" in reason for _, reason in report.reasons)
