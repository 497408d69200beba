"""Names and types of CSV columns: headers, and schemas that are inferred from the values."""

from __future__ import annotations

import pytest

from kquery_spark.errors import SourceError, Unsupported
from kquery_spark.sources.csv.source import csv_source
from tests.sources.compare import read_all, written
from tests.sources.csv_files import compare, cut_by, schema_of  # noqa: F401


def test_header_and_bom(spark, tmp_path):
    text = b'\xef\xbb\xbf\n  \nid,"first, name",,ID\n1,a,b,c\nid,x,y,z\n'
    path = written(tmp_path, text)
    compare(spark, path, header=True)
    compare(spark, path, header=True, inferSchema=True)
    compare(spark, path, {"p": "int", "q": "string", "r": "string", "s": "string"}, header=True)
    compare(spark, path)


def test_headers_of_every_file_are_skipped(spark, tmp_path):
    for i in range(3):
        written(tmp_path, f"a,b\n{i},x\n{i},y\n", f"f{i}.csv")
    compare(spark, tmp_path, header=True, inferSchema=True)


def test_names_without_a_header(tmp_path):
    path = written(tmp_path, "1,a\n2,b\n")
    assert csv_source([str(path)]).schema.names == ["_c0", "_c1"]
    assert csv_source([str(path)], names="field_{1}").schema.names == ["field_1", "field_2"]


def test_header_is_checked_when_the_schema_is_not_enforced(tmp_path):
    path = written(tmp_path, "a,b\n1,x\n")
    source = csv_source([str(path)], schema_of({"a": "int", "c": "string"}), header=True, enforceSchema=False)
    with pytest.raises(SourceError, match="does not conform"):
        read_all(source)


@pytest.mark.parametrize(
    "values",
    [
        "1 2 3", "1 2147483648", "1 9223372036854775808", "99999999999999999999 1.5", "1 1.5", "1e5 2", "1 x", "NaN 1", "Inf",
        "2019-01-31 2020-02-29", "2019-01-31 x", "2019-01-31 5", "true FALSE", "true 1", "2019-01-31T10:00:00", "x y", "+5 6",
        "2019-01-31T10:00:00 2019-01-31T10:00:00.123Z", "12345678901234567890123456789012345678901", "1d 2", "0x10", "-0 007",
        "2019-01-31T10:00:00 x", "2019-01-31T10:00:00 true", "1.5 true", "20190131 2019",
        "1.", "1.5e1", "15e0 7.", "9999999999. 7", "1.2345678E7", "1.2345678E7 1.5", "2.50e2 x", "1e400", "0.0e1", "10e-0",
    ],
)  # fmt: skip
def test_inferred_types(spark, tmp_path, values):
    text = "".join(f"{v},1\n" for v in [*values.split(" "), ""])
    compare(spark, written(tmp_path, text), inferSchema=True)


@pytest.mark.parametrize(
    "values", ["2019-01-31T10:00:00 2019-01-31", "1. 3000000000", "15e0 7", "9999999999999999999 5000000000"]
)
def test_types_that_depend_on_the_order_of_rows_are_declined(tmp_path, values):
    path = written(tmp_path, values.replace(" ", "\n"))
    with pytest.raises(Unsupported, match="depends on the order"):
        csv_source([str(path)], inferSchema=True)
