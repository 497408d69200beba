"""Settings and options that others set: the engine reads on where they do not matter, and gives Spark's answer where they do."""

import datetime
import decimal

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

import kquery_spark as kq
from kquery_spark.frontends.catalyst.file_options import IGNORED
from kquery_spark.spark_bridge.session.settings import IRRELEVANT
from tests.accelerate.checks import check
from tests.conftest import SPARK_VERSION, settings

FIELD_IDS = "spark.sql.parquet.fieldId.read.enabled"
POLICY = "spark.sql.legacy.timeParserPolicy"
OTHER_VALUES = {
    "spark.sql.parquet.inferTimestampNTZ.enabled": "false",
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
    "spark.sql.files.maxRecordsPerFile": "7",
    **{f"spark.sql.{kind}.filterPushdown": "false" for kind in ("parquet", "orc")},
    **{f"spark.sql.{kind}.enableVectorizedReader": "false" for kind in ("parquet", "orc")},
}
# Values with which an option might do something, if a scan looked at it; others are "1".
OPTION_VALUES = {
    "path": None,
    "paths": None,
    "basepath": None,
    "pathglobfilter": "*",
    "modifiedbefore": "2100-01-01T00:00:00",
    "modifiedafter": "2000-01-01T00:00:00",
    "partitionoverwritemode": "dynamic",
    "compression": "snappy",
    "parquet.compression": "GZIP",
    "orc.compress": "ZLIB",
    "codec": "gzip",
    "charset": "UTF-16",
    "encoding": "UTF-16",
    "timezone": "Asia/Tokyo",
    "mode": "FAILFAST",
    "samplingratio": "0.5",
    "nullvalue": "v",
    "comment": "#",
    "locale": "de-DE",
    "unescapedquotehandling": "RAISE_ERROR",
    "extension": "txt",
    **dict.fromkeys(("dateformat", "timestampformat", "timestampntzformat"), "dd/MM/yyyy"),
    **dict.fromkeys(
        [
            *("recursivefilelookup", "ignoreinvalidpartitionpaths", "mergeschema", "header", "inferschema"),
            *("quoteall", "multiline", "escapequotes", "enforceschema", "ignoreleadingwhitespace"),
            *("ignoretrailingwhitespace", "primitivesasstring", "prefersdecimal", "infertimestamp"),
            *("dropfieldifallnull", "ignorenullfields", "pretty", "sortkeys"),
            *("writenonasciicharacterascodepoint", "parquet.strict.typing", "parquet.enable.dictionary"),
            *(name for names in IGNORED.values() for name in names if name.endswith("enabled")),
        ],
        "true",
    ),
}


@pytest.fixture(scope="module")
def directories(spark, tmp_path_factory):
    """The same rows in two files of each format."""
    root = tmp_path_factory.mktemp("options")
    rows = spark.range(60).selectExpr("id", "concat('v', id % 5) AS s", "id % 3 AS k").repartition(2)
    for kind in IGNORED:
        rows.write.format(kind).save(str(root / kind))
    return root


def grouped(frame):
    return frame.groupBy("s").agg({"id": "sum", "k": "max"})


@pytest.mark.parametrize("kind", sorted(IGNORED))
def test_ignored_options_change_nothing(spark, directories, kind):
    for name in IGNORED[kind]:
        value = OPTION_VALUES.get(name, "1")
        if value is None:
            continue
        reader = spark.read.schema("id BIGINT, s STRING, k BIGINT").format(kind).option(name, value)
        plan = kq.explain(grouped(reader.load(str(directories / kind))))
        assert plan.coverage == 1.0, (name, plan.reasons)
    # each one by itself costs a query, and none of them may do anything to Spark's answer
    several = {n: OPTION_VALUES.get(n, "1") for n in IGNORED[kind] if OPTION_VALUES.get(n, "1") is not None}
    frame = spark.read.schema("id BIGINT, s STRING, k BIGINT").format(kind).options(**several)
    found = grouped(frame.load(str(directories / kind)))
    check(found, coverage=1.0)
    plain = grouped(
        spark.read.schema("id BIGINT, s STRING, k BIGINT").format(kind).load(str(directories / kind))
    )
    assert sorted(found.collect()) == sorted(plain.collect())


@pytest.mark.parametrize("kind", ["parquet", "orc"])
@pytest.mark.parametrize("name", sorted({*IRRELEVANT, *OTHER_VALUES}))
def test_irrelevant_settings_change_nothing(spark, directories, kind, name):
    with settings(spark, {name: OTHER_VALUES.get(name, "true")}):
        check(grouped(spark.read.format(kind).load(str(directories / kind))), coverage=1.0)


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_files_of_several_schemas_are_read_by_the_merged_one(spark, tmp_path, kind):
    spark.range(5).selectExpr("id", "id * 2 AS x").write.format(kind).save(str(tmp_path / "a" / "p=1"))
    spark.range(5).selectExpr("'t' AS t", "id").write.format(kind).save(str(tmp_path / "a" / "p=2"))
    with settings(spark, {f"spark.sql.{kind}.mergeSchema": "true"}):
        frame = spark.read.format(kind).load(str(tmp_path / "a"))
        assert set(frame.columns) == {"id", "x", "t", "p"}
        check(frame.groupBy("t", "p").agg({"x": "sum", "id": "max"}), coverage=1.0)


@pytest.mark.parametrize(
    ("setting", "value", "column"),
    [
        ("spark.sql.parquet.binaryAsString", "true", pa.array([b"a", b"b", b"a"])),
        ("spark.sql.parquet.inferTimestampNTZ.enabled", "false", pa.array([1, 2, 1], pa.timestamp("us"))),
        ("spark.sql.legacy.parquet.nanosAsLong", "true", pa.array([1, 2, 1], pa.timestamp("ns"))),
    ],
)
def test_settings_that_change_the_schema_of_a_column(spark, tmp_path, setting, value, column):
    path = str(tmp_path / "t.parquet")
    pq.write_table(pa.table({"c": column, "x": [1, 2, 3]}), path, store_schema=False)
    with settings(spark, {setting: value}):
        frame = spark.read.parquet(path)
        check(frame.groupBy("c").sum("x"))
        check(frame.groupBy("x").count(), coverage=1.0)


def test_an_option_overrules_the_setting_on_unreadable_files(spark, directories):
    path = str(directories / "parquet")
    for setting in ("spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles"):
        option = setting.rsplit(".", 1)[1]
        with settings(spark, {setting: "true"}):
            declined = kq.explain(grouped(spark.read.parquet(path)))
            assert f"files are not supported while {setting} is true" in str(declined)
            check(grouped(spark.read.option(option, "false").parquet(path)), coverage=1.0)
        explained = kq.explain(grouped(spark.read.option(option, "true").parquet(path)))
        assert f"files with the option {option.lower()} are not supported" in str(explained)


# ------------------------------------------------------------------------------------------- field ids of Parquet


def field(name, dtype, field_id=None):
    return pa.field(name, dtype, metadata=None if field_id is None else {"PARQUET:field_id": str(field_id)})


def spark_field(name, dtype, field_id=None):
    return StructField(name, dtype, True, {} if field_id is None else {"parquet.field.id": field_id})


@pytest.fixture
def with_ids(tmp_path):
    """A file of columns with ids; fields of a struct have some, too."""
    pair = pa.struct([field("x", pa.int32(), 4), field("y", pa.int32(), 5)])
    fields = [field("a", pa.int32(), 1), field("b", pa.string(), 2), field("s", pair, 3)]
    columns = [[1, 2, 1], ["u", "v", "u"], [{"x": 1, "y": 2}, None, {"x": 3, "y": 4}]]
    pq.write_table(pa.table(columns, schema=pa.schema(fields)), tmp_path / "ids.parquet")
    return str(tmp_path / "ids.parquet")


def test_field_ids_do_not_matter_to_a_schema_without_them(spark, directories, with_ids):
    with settings(spark, {FIELD_IDS: "true"}):
        check(grouped(spark.read.parquet(str(directories / "parquet"))), coverage=1.0)
        check(spark.read.parquet(with_ids).groupBy("a", "b").count(), coverage=1.0)


INT, TEXT = IntegerType(), StringType()
SCHEMAS = {
    "the same": ([spark_field("a", INT, 1), spark_field("b", TEXT, 2)], 1.0, 1.0),
    "some without an id": ([spark_field("a", INT, 1), spark_field("b", TEXT)], 1.0, 1.0),
    "renamed": ([spark_field("z", INT, 1), spark_field("b", TEXT, 2)], 1.0, 0.0),
    "an id that the file lacks": ([spark_field("a", INT, 9), spark_field("b", TEXT)], 1.0, 0.0),
    "a column that the file lacks": ([spark_field("n", INT, 9), spark_field("b", TEXT)], 1.0, 1.0),
    "nested, the same": ([spark_field("s", StructType([spark_field("x", INT, 4)]))], 1.0, 1.0),
    "nested, swapped": (
        [spark_field("s", StructType([spark_field("x", INT, 5), spark_field("y", INT, 4)]), 3)],
        1.0,
        0.0,
    ),
    "nested, renamed": ([spark_field("s", StructType([spark_field("q", INT, 4)]))], 1.0, 0.0),
}


@pytest.mark.parametrize("which", SCHEMAS)
def test_columns_are_found_by_id_as_spark_finds_them(spark, with_ids, which):
    fields, by_name, by_id = SCHEMAS[which]
    for value, coverage in (("false", by_name), ("true", by_id)):
        with settings(spark, {FIELD_IDS: value}):
            frame = spark.read.schema(StructType(fields)).parquet(with_ids)
            report = check(frame.groupBy(*frame.columns).count(), coverage)
            assert coverage or not report.accelerated or report.coverage < 1.0


@pytest.mark.parametrize("enabled", ["false", "true"])
def test_a_file_without_ids_is_refused_where_spark_refuses_it(spark, tmp_path, enabled):
    path = str(tmp_path / "plain.parquet")
    pq.write_table(pa.table({"a": pa.array([1, 2], pa.int32()), "b": ["u", "v"]}), path)
    schema = StructType([spark_field("a", INT, 1), spark_field("b", TEXT)])
    with settings(spark, {FIELD_IDS: enabled}):
        query = spark.read.schema(schema).parquet(path).groupBy("a").count()
        assert "so Spark refuses to read it" in str(kq.explain(query))
        for frame in (query, query.transform(kq.kquery_plan, when="always")):
            with pytest.raises(Exception, match="field Ids"):
                frame.collect()
        check(spark.read.schema(schema).parquet(path).groupBy("b").count(), coverage=1.0)
        with settings(spark, {"spark.sql.parquet.fieldId.read.ignoreMissing": "true"}):
            query = spark.read.schema(schema).parquet(path).groupBy("a").count()
            check(query, coverage=1.0 if enabled == "false" else 0.0)


def test_a_struct_of_fields_that_the_file_lacks(spark, with_ids):
    for value in ("true", "false"):
        with settings(spark, {"spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing": value}):
            frame = spark.read.schema("s STRUCT<q: INT>, a INT").parquet(with_ids)
            check(frame.groupBy("s").count())


# -------------------------------------------------------------------------------------- calendars and times of Parquet


def test_rebase_modes_matter_to_dates_of_files_that_spark_did_not_write(spark, tmp_path):
    old = [datetime.date(1500, 1, 1), datetime.date(2020, 1, 1)]
    pq.write_table(pa.table({"d": old, "x": [1, 2]}), tmp_path / "other.parquet")
    spark.createDataFrame([(old[0], 1)], "d DATE, x INT").write.parquet(str(tmp_path / "sparks"))
    mode = "spark.sql.parquet.datetimeRebaseModeInRead"
    for options in ({}, {"datetimeRebaseMode": "CORRECTED"}, {"datetimeRebaseMode": "LEGACY"}):
        for value in ("LEGACY", "CORRECTED"):
            with settings(spark, {mode: value}):
                effective = options.get("datetimeRebaseMode", value)
                other = spark.read.options(**options).parquet(str(tmp_path / "other.parquet"))
                check(other.groupBy("d").count(), 1.0 if effective == "CORRECTED" else 0.0)
                check(other.groupBy("x").count(), 1.0)
                sparks = spark.read.options(**options).parquet(str(tmp_path / "sparks"))
                check(sparks.groupBy("d").count(), 1.0)


@pytest.mark.parametrize("version", ["2.4.8", "3.0.0", None])
def test_files_of_old_sparks_are_of_the_old_calendar(spark, tmp_path, version):
    keys = None if version is None else {"org.apache.spark.version": version}
    dates = pa.array([datetime.date(1500, 1, 1), datetime.date(2020, 1, 1)])
    table = pa.table({"d": dates, "x": [1, 2]}).replace_schema_metadata(keys)
    pq.write_table(table, tmp_path / "t.parquet", store_schema=False)
    frame = spark.read.parquet(str(tmp_path / "t.parquet"))
    check(frame.groupBy("d").count(), coverage=0.0 if version == "2.4.8" else 1.0)
    check(frame.groupBy("x").count(), coverage=1.0)


def test_files_written_in_legacy_mode_are_read_but_for_their_dates(spark, tmp_path):
    with settings(spark, {"spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY"}):
        spark.sql("SELECT DATE'1500-01-01' AS d, 1 AS x").write.parquet(str(tmp_path / "t"))
    frame = spark.read.parquet(str(tmp_path / "t"))
    check(frame.groupBy("d").count())
    check(frame.groupBy("x").count(), coverage=1.0)


def test_settings_of_int96_matter_to_such_columns_only(spark, tmp_path):
    times = pa.array([datetime.datetime(2020, 1, 1, 12), datetime.datetime(2021, 1, 1)])
    table = pa.table({"at": times, "x": [1, 2]})
    pq.write_table(table, tmp_path / "t.parquet", use_deprecated_int96_timestamps=True)

    def queries():
        frame = spark.read.schema("at TIMESTAMP, x BIGINT").parquet(str(tmp_path / "t.parquet"))
        return frame.groupBy("at").count(), frame.groupBy("x").count()

    check(queries()[0], coverage=1.0)
    converting = {
        "spark.sql.parquet.int96TimestampConversion": "true",
        "spark.sql.session.timeZone": "America/Los_Angeles",
    }
    for given in (converting, {"spark.sql.parquet.int96RebaseModeInRead": "LEGACY"}):
        with settings(spark, given):
            by_time, by_number = queries()
            check(by_time)
            check(by_number, coverage=1.0)


# ------------------------------------------------------------------------------------------------- patterns of times


def test_the_time_parser_matters_to_patterns_only(spark, directories):
    spark.read.parquet(str(directories / "parquet")).createOrReplaceTempView("policy_t")
    queries = {
        "SELECT s, sum(id) FROM policy_t GROUP BY s": 1.0,
        "SELECT CAST(concat('2020-01-0', k + 1) AS DATE) d, sum(id) FROM policy_t GROUP BY 1": 1.0,
        "SELECT date_format(timestamp_seconds(id * 86400), 'yyyy-MM') m, count(*) FROM policy_t GROUP BY 1": 0.0,
        "SELECT to_date(concat(k + 1, '/1/2020 x'), 'M/d/yyyy') d, count(*) FROM policy_t GROUP BY 1": 0.0,
        "SELECT from_unixtime(id, 'HH:mm') d, count(*) FROM policy_t GROUP BY 1": 0.0,
    }
    with settings(spark, {POLICY: "LEGACY"}):
        for query, coverage in queries.items():
            check(spark.sql(query), coverage)
            if not coverage:
                assert f"while {POLICY} is LEGACY" in str(kq.explain(spark.sql(query)))
    with settings(spark, {POLICY: "CORRECTED"}):
        check(spark.sql("SELECT from_unixtime(id, 'HH:mm') d, count(*) FROM policy_t GROUP BY 1"), 1.0)
    spark.catalog.dropTempView("policy_t")


def test_orc_with_options_of_its_writer(spark, tmp_path):
    orc.write_table(pa.table({"s": ["v", "w"], "id": [1, 2], "k": [3, 4]}), tmp_path / "t.orc")
    reader = spark.read.option("orc.stripe.size", "1024").option("orc.bloom.filter.columns", "s")
    check(grouped(reader.orc(str(tmp_path / "t.orc"))), coverage=1.0)
    positional = spark.read.option("orc.force.positional.evolution", "true").orc(str(tmp_path / "t.orc"))
    explained = kq.explain(grouped(positional))
    assert "files with the option orc.force.positional.evolution are not supported" in str(explained)


@pytest.mark.skipif(SPARK_VERSION < (4, 0), reason="Spark 3.5 maps cases by the JVM")
def test_case_mappings_of_the_jvm_are_not_followed(spark, tmp_path):
    rows = pa.table({"s": ["ßa ǆb", "ΑΣ", "ŉ"]})
    pq.write_table(rows, tmp_path / "t.parquet")

    def counted():
        read = spark.read.parquet(str(tmp_path))
        return (
            read.selectExpr("initcap(s) AS x", "upper(s) AS y", "lower(s) AS z")
            .groupBy("x", "y", "z")
            .count()
        )

    by_icu = sorted(counted().collect())
    check(counted(), coverage=1.0)
    setting = "spark.sql.icu.caseMappings.enabled"
    with settings(spark, {setting: "false"}):
        assert sorted(counted().collect()) != by_icu
        assert f"does not follow the setting {setting}=false" in str(kq.explain(counted()))
        check(counted())


@pytest.mark.skipif(SPARK_VERSION < (4, 1), reason="older releases ask the session when the query is run")
def test_decimals_keep_the_setting_that_the_query_was_made_under(spark, tmp_path):
    rows = pa.table(
        {"x": pa.array([decimal.Decimal("1.234567890123456"), None], pa.decimal128(30, 15)), "i": [1, 2]}
    )
    pq.write_table(rows, tmp_path / "t.parquet")
    setting = "spark.sql.decimalOperations.allowPrecisionLoss"
    with settings(spark, {setting: "false"}):
        read = spark.read.parquet(str(tmp_path))
        frame, whole = read.selectExpr("sum(x * x) AS y"), read.selectExpr("sum(i + i) AS y")
    assert frame.schema != spark.read.parquet(str(tmp_path)).selectExpr("sum(x * x) AS y").schema
    assert f"made while {setting} was false" in str(kq.explain(frame))
    check(frame)
    check(whole, coverage=1.0)
