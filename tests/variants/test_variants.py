"""Variants in Parquet files and of JSON strings: every kind of value as every type, as Spark casts it."""

from __future__ import annotations

import datetime as dt
import math
import struct
import uuid
import warnings
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import kquery_spark as kq
from kquery_spark import kquery_plan
from tests.conftest import SPARK_VERSION, settings
from tests.variants.encoding import (
    Encoded,
    Raw,
    Widths,
    decimal,
    encoded,
    integer,
    long_text,
    metadata,
    primitive,
    timestamp,
    write_variants,
)

pytestmark = pytest.mark.skipif(SPARK_VERSION < (4, 0), reason="Spark 3.5 has no variants")

UTC = dt.timezone.utc
TIMES = ("date", "timestamp", "timestamp_ntz")
TYPES = (
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double"),
    *("decimal(10,2)", "decimal(38,10)", "decimal(38,0)", "string", "binary"),
    *TIMES,
)
SCALARS = (
    *(None, True, False, 0, 1, -1, 127, -128, 128, 32767, -32769, 2**31 - 1, 2**31, 2**63 - 1, -(2**63)),
    *(300000000000, 9223372036855, Raw(integer(5, 8)), Raw(integer(-5, 4))),
    *(0.0, -0.0, 1.5, -2.5, 1e10, 1e300, math.nan, math.inf, -math.inf, 1e-7, 123456789.125),
    *(Raw(primitive(14, struct.pack("<f", x))) for x in (1.5, math.nan, 3.4e38, 0.1)),
    *map(
        Decimal, ("0", "1.50", "-1.5", "100.00", "0.0000001", "123456789.12345", "1.999999999", "0.00", "10")
    ),
    *map(Decimal, ("-1.9999999", "9223372036855", "1E-17")),
    *(Raw(decimal(15, 1, size)) for size in (4, 8, 16)),
    *(
        dt.date(2020, 1, 2),
        dt.date(1, 1, 1),
        dt.date(1500, 3, 1),
        Raw(primitive(11, struct.pack("<i", 2932897))),
    ),
    *(
        dt.datetime(2020, 1, 2, 3, 4, 5, 678, tzinfo=UTC),
        dt.datetime(1960, 1, 2, 3, 4, 5, 999999, tzinfo=UTC),
    ),
    *(
        dt.datetime(2020, 7, 2, 3, 4, 5),
        dt.datetime(1960, 1, 2, 3, 4, 5, 123456),
        Raw(timestamp(2**62, False)),
    ),
    *("", "x", "1", " 12 ", "1.5", "-1e3", "true", "t", "no", "2020-01-02", "2020-01-02 03:04:05.6"),
    *("2020-01-02T03:04:05Z", "9223372036854775808", "NaN", "Infinity", "0x1", "é", "日本" * 40, "1e400"),
    *(
        "1970-01-01T00:00:00+05:30",
        Raw(long_text("7")),
        b"",
        b"abc",
        uuid.UUID(int=0xF24F9B6481FA49D1B74E8C09A6E31C56),
    ),
)
#: Decimals that no timestamp is made of here: of more than 18 digits.
WIDE = tuple(
    map(
        Decimal,
        ("9223372036854.775808", "1234567890123456789.5", "9" * 38, "-0." + "9" * 38, "0." + "0" * 37 + "1"),
    )
)
#: Floats whose digits, in decimals and strings, depend on the JVM.
LARGE = (Raw(primitive(14, struct.pack("<f", -1e20))), -1e20)
#: Numbers of seconds that are just no overflow, which in another time zone they may be.
LAST = (9223372036854, 9223372036854.775, Decimal("9223372036854.775807"))


def frame_of(spark: Any, directory: Path, variants: Sequence[Encoded | None]) -> Any:
    """A table of ``id`` and ``v``, the variants."""
    directory.mkdir()
    write_variants(str(directory / "variants.parquet"), variants, row_group_size=40)
    return spark.read.schema("id bigint, v variant").parquet(str(directory))


def answers(frame: Any) -> list[tuple[str, ...]]:
    """The rows by id, NaN equal to NaN and 0.0 not to -0.0."""
    return [tuple(map(repr, row)) for row in sorted(frame.collect(), key=lambda row: str(row[0]))]


def same(frame: Any) -> None:
    """The engine runs the whole query, and gives Spark's rows."""
    report = kq.explain(frame)
    assert report.coverage == 1.0, str(report)
    with warnings.catch_warnings():
        warnings.simplefilter("error", kq.FallbackWarning)
        fast = frame.transform(kquery_plan, when="always")
        assert fast.schema == frame.schema
        assert answers(fast) == answers(frame)


def as_types(frame: Any, types: Sequence[str], path: str = "$") -> Any:
    """The value at a path as each of the types; times as strings, as Python has no years past 9999."""
    strings = [f"try_variant_get(v, '{path}', '{dtype}')" for dtype in types]
    shown = [
        f"CAST({text} AS STRING)" if dtype in TIMES else text
        for text, dtype in zip(strings, types, strict=True)
    ]
    return frame.selectExpr("id", *(f"{text} AS c{i}" for i, text in enumerate(shown)))


def values_of_scan(session: Any, pushed: bool) -> Any:
    """Whether Spark's scans take values out of variants."""
    return settings(session, {"spark.sql.variant.pushVariantIntoScan": str(pushed).lower()})


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_scalars_as_every_type(spark: Any, loops: None, tmp_path: Path, zone: str) -> None:
    with settings(spark, {"spark.sql.session.timeZone": zone}), values_of_scan(spark, zone == "UTC"):
        same(as_types(frame_of(spark, tmp_path / "scalars", [None, *map(encoded, SCALARS)]), TYPES))
        inner = [encoded({"a": [value]}) for value in SCALARS]
        same(as_types(frame_of(spark, tmp_path / "inner", inner), TYPES, "$.a[0]"))
        wide = frame_of(spark, tmp_path / "wide", list(map(encoded, WIDE)))
        same(as_types(wide, [dtype for dtype in TYPES if dtype != "timestamp"]))
        if zone == "UTC":
            last = frame_of(spark, tmp_path / "last", list(map(encoded, LAST)))
            same(as_types(last, TYPES))
        large = frame_of(spark, tmp_path / "large", list(map(encoded, LARGE)))
        same(as_types(large, [t for t in TYPES if "decimal" not in t and t != "string"]))


def test_casts_of_variants_raise_sparks_errors(spark: Any, loops: None, tmp_path: Path) -> None:
    good = encoded({"a": 1, "b": "x"})
    shorter = (good[0][:-1], good[1])
    frame = frame_of(spark, tmp_path / "good", [good])
    frame.createOrReplaceTempView("good_variants")
    raises(spark.sql("SELECT variant_get(v, '$.b', 'int') FROM good_variants"), "INVALID_VARIANT_CAST")
    with settings(spark, {"spark.sql.ansi.enabled": "false"}):
        raises(
            spark.sql("SELECT CAST(variant_get(v, '$.b') AS INT) FROM good_variants"), "INVALID_VARIANT_CAST"
        )
    same(
        spark.sql("SELECT id, try_cast(v AS INT), try_cast(variant_get(v, '$.b') AS INT) FROM good_variants")
    )
    for number, bad in enumerate([shorter, (good[0], b"\x02\x00\x00")]):
        frame = frame_of(spark, tmp_path / f"bad{number}", [good, bad])
        raises(frame.selectExpr("try_variant_get(v, '$.b', 'string')"), "MALFORMED_VARIANT")
    names = metadata(["b", "c"])
    nested = [
        encoded({"b": Raw(inner)}) for inner in (b"\x03\x01\x00\x05\x0c", b"\x02\x01\x07\x00\x02\x0c\x01")
    ]
    for number, (value, _) in enumerate(nested):
        frame = frame_of(spark, tmp_path / f"nested{number}", [good, (value, names)])
        raises(frame.selectExpr("try_cast(variant_get(v, '$.b') AS INT)"), "MALFORMED_VARIANT")
    unknown = frame_of(spark, tmp_path / "unknown", [(primitive(40), metadata([]))])
    raises(unknown.selectExpr("try_variant_get(v, '$', 'int')"), "UNKNOWN_PRIMITIVE_TYPE_IN_VARIANT")


def raises(frame: Any, error_class: str) -> None:
    """Spark and the engine raise the same, and the engine not because it leaves the query to Spark."""
    assert kq.explain(frame).coverage == 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error", kq.FallbackWarning)
        for each in (frame, frame.transform(kquery_plan, when="always")):
            with pytest.raises(Exception, match=error_class):
                each.collect()


def test_paths_into_objects_and_arrays_of_all_layouts(spark: Any, loops: None, tmp_path: Path) -> None:
    names = [f"k{i}" for i in range(300)]
    odd = ["é", "e", "\uffff", "😀", "a b", "", "a.b", "x'y"]
    many = {name: i for i, name in enumerate([*odd, *names[:40]])}
    values = [
        {"a": {"b": [1, {"c": "x"}], "k": None}, "é": 1}, [[1, 2], [3]], {}, [], {"a": {}}, {"a": []}, "text", None,
        many, {name: i for i, name in enumerate(names)}, list(range(300)), {"a": ["y" * 300] * 3}, {"a": many},
        {name: i for i, name in enumerate(names[:31])}, {name: i for i, name in enumerate(names[:32])}, odd,
    ]  # fmt: skip
    variants: list[Encoded | None] = [None, *map(encoded, values)]
    for width in (2, 3, 4):
        widths = Widths(width, width, large=True, names=width)
        variants += [encoded(value, widths, [*reversed(names), *odd, *"abck"]) for value in values]
    numbers_of = [
        0,
        -1,
        2**63 - 1,
        -(2**63),
        *map(Decimal, ("1.50", "-0.05", "100.00", "0.00", "10", "1E-9", "-123.4")),
    ]
    odd_strings = ['\x00\x1f"\\/\b\t\n\f\r\x7f', "é😀\u2028", "x" * 100]
    variants.append(encoded({"n": numbers_of, "t": odd_strings, '\n"': [True, False, None, {}, []]}))
    # fields in another order than their names: only Spark's search by bisection minds
    variants += [(b"\x02\x02\x01\x00\x00\x02\x04\x0c\x01\x0c\x02", metadata(["a", "b"]))]
    paths = (
        "$", "$.a", "$.a.b", "$.a.b[0]", "$.a.b[1].c", "$.a.b[2]", "$.a.k", "$[0]", "$[1][0]", "$[299]", "$[300]", "$.é",
        "$.e", "$.😀", "$['a b']", "$['']", "$['a.b']", '$["x\'y"]', "$.k0", "$.k31", "$.k299", "$.a[2]", "$.a.k39", "$.b", "$.\uffff",
    )  # fmt: skip
    frame = frame_of(spark, tmp_path / "containers", variants)
    quoted = [path.replace("'", "\\'") for path in paths]
    numbers = [f"try_variant_get(v, '{path}', 'int') AS i{i}" for i, path in enumerate(quoted)]
    nulls = [f"variant_get(v, '{path}') IS NULL AS n{i}" for i, path in enumerate(quoted)]
    json = [f"is_variant_null(variant_get(v, '{path}')) AS j{i}" for i, path in enumerate(quoted)]
    strings = [f"try_variant_get(v, '{path}', 'string') AS s{i}" for i, path in enumerate(quoted)]
    for pushed in (True, False):
        with values_of_scan(spark, pushed):
            same(frame.selectExpr("id", *numbers, *nulls, *json, *strings))


def test_queries_over_variants_run_whole(spark: Any, loops: None, tmp_path: Path) -> None:
    rows = [
        encoded({"kind": "ab"[i % 2], "n": i, "at": {"lat": i / 8}, "tags": ["x", i]}) for i in range(100)
    ]
    frame = frame_of(spark, tmp_path / "events", [*rows, None, encoded({"kind": "a"})])
    frame.createOrReplaceTempView("events")
    strings = "(SELECT id, CONCAT('{\"n\": ', id, ', \"s\": [\"x\", 1e', id % 5, ']}') AS j FROM events)"
    value, parsed = (
        "variant_get(v, '$.{0}', '{1}')".format,
        "variant_get(parse_json(j), '$.{0}', '{1}')".format,
    )
    for query in (
        f"SELECT id, {value('n', 'int')} + 1 AS n FROM events WHERE {value('at.lat', 'double')} > 3 AND v IS NOT NULL",
        "SELECT id, CAST(variant_get(v, '$.n') AS STRING), is_variant_null(v) FROM events "
        "WHERE CAST(variant_get(v, '$.kind') AS STRING) = 'b'",
        f"SELECT {value('kind', 'string')} AS k, SUM({value('n', 'bigint')}) AS s, COUNT(*) AS c FROM events GROUP BY 1",
        f"SELECT e.id, {value('tags[1]', 'int')} AS t, f.n FROM events e JOIN "
        f"(SELECT id, {value('n', 'bigint')} AS n FROM events) f ON e.id = f.n",
        f"SELECT id, {parsed('n', 'int')} AS n, {parsed('s[1]', 'double')} AS d, try_parse_json(j) IS NULL AS x FROM {strings}",
        f"SELECT id, try_variant_get(try_parse_json(SUBSTR(j, 1, 20)), '$.n', 'int') AS n FROM {strings}",
        "SELECT id, CAST(try_parse_json(CAST(id AS STRING)) AS DECIMAL(5,1)) AS d FROM events",
        "SELECT id % 3 AS k, COUNT(v) AS n, COUNT(variant_get(v, '$.n')) AS m, COUNT(id, v) AS b, COUNT(*) AS a FROM events "
        "GROUP BY 1",
        "SELECT COUNT(try_parse_json(j)) AS n FROM (SELECT IF(id % 3 = 0, '{', CAST(id AS STRING)) AS j FROM events)",
        "SELECT id, variant_get(p, '$.n', 'int') AS n, variant_get(p, '$.s[0]', 'string') AS s, p IS NULL AS x "
        f"FROM (SELECT id, try_parse_json(j) AS p FROM {strings}) WHERE variant_get(p, '$.n', 'int') > 10",
        "SELECT a.id, variant_get(a.t, '$[1]', 'int') AS n, b.k FROM (SELECT id, variant_get(v, '$.tags') AS t FROM events) a "
        "LEFT JOIN (SELECT id, variant_get(v, '$.kind') AS x, variant_get(v, '$.kind', 'string') AS k FROM events) b "
        "ON a.id = b.id + 1 WHERE b.x IS NOT NULL OR b.id IS NULL",
    ):
        same(spark.sql(query))
    if SPARK_VERSION >= (4, 1):
        same(
            spark.sql(
                "SELECT id, v:tags[1]::int t, v:at.lat::double l FROM events WHERE v:kind::string = 'a'"
            )
        )
    raises(
        spark.sql(f"SELECT parse_json(SUBSTR(j, 1, 5))::int FROM {strings}"), "MALFORMED_RECORD_IN_PARSING"
    )


def test_what_stays_with_spark_says_so(spark: Any, loops: None, tmp_path: Path) -> None:
    frame = frame_of(spark, tmp_path / "stays", [encoded({"a": [1]}), encoded([True])])
    frame.createOrReplaceTempView("stays")
    for columns, reason in {
        "id + 1 AS n, v": "is a variant",
        "to_json(v) AS j": "variants are supported by",
        "try_variant_get(v, '$.a', 'array<int>') AS x": "variant_get as array<int> is not supported",
        "try_cast(v AS STRUCT<a: ARRAY<INT>>) AS x": "is not supported",
        "COUNT(v) AS c, FIRST(v) AS f": "variants are supported by",
        "schema_of_variant(v) AS s": "schemaOfVariant",
    }.items():
        query = spark.sql(f"SELECT {columns} FROM stays")
        report = kq.explain(query)
        assert report.coverage < 1
        assert any(reason in sentence for _, sentence in report.reasons), (columns, report.reasons)
        assert sorted(map(str, query.transform(kquery_plan, when="always").collect())) == sorted(
            map(str, query.collect())
        )
