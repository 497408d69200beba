"""The odd files that Spark's own tests read: the engine reads them as Spark does, or leaves them to it.

They are in the JAR of Spark's tests on Maven, which is downloaded once and kept in the user's cache.
"""

from __future__ import annotations

import warnings
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest

import kquery_spark as kq
from kquery_spark import kquery_plan
from kquery_spark.verify.compare import _values
from tests.support.maven import REPOSITORY, Unreachable, artifact

pytestmark = pytest.mark.faults

# Spark's own version comes first; Maven may lack it while PyPI has it.
VERSIONS = tuple(dict.fromkeys((pyspark.__version__, "4.2.0", "4.1.1")))

CALENDARS = {"datetimeRebaseMode": "LEGACY", "int96RebaseMode": "LEGACY"}
OPTIONS: dict[str, tuple[dict[str, str], ...]] = {
    "parquet": ({}, CALENDARS),
    "orc": ({},),
    "csv": (
        {},
        {"header": "true", "inferSchema": "true"},
        {"header": "true", "sep": "|", "comment": "~", "nullValue": "-"},
        {"header": "true", "multiLine": "true", "escape": '"', "quote": "'"},
        {"sep": "\t", "ignoreLeadingWhiteSpace": "true", "ignoreTrailingWhiteSpace": "true"},
    ),
    "json": ({}, {"primitivesAsString": "true"}, {"multiLine": "true"}),
}
FORMATS = {"parquet": "parquet", "parq": "parquet", "orc": "orc", "csv": "csv", "tsv": "csv", "data": "csv", "zst": "csv", "bz2": "csv",
           "json": "json"}  # fmt: skip


def jar() -> Path | None:
    """The JAR of the tests of this Spark, or of one near it."""
    try:
        jars = (artifact(f"org.apache.spark:spark-sql_2.13:{version}", "tests") for version in VERSIONS)
        return next(filter(None, jars), None)
    except Unreachable:
        return None


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    actual = jar()
    if actual is None:
        pytest.skip(f"{REPOSITORY} cannot be reached, or has no JAR of Spark's tests")
    target = tmp_path_factory.mktemp("spark")
    with zipfile.ZipFile(actual) as file:
        file.extractall(target, [n for n in file.namelist() if n.startswith("test-data/")])
    return target / "test-data"


def rows_of(frame: Any) -> list[tuple[Any, ...]]:
    """The rows in one order, floats by what they print."""
    table = frame.toArrow()
    if any(pa.types.is_null(dtype) for dtype in table.schema.types):
        table = table.cast(
            pa.schema([f.with_type(pa.string()) if pa.types.is_null(f.type) else f for f in table.schema])
        )
    columns = [_values(column.combine_chunks()) for column in table.columns]
    return sorted(zip(*columns, strict=True), key=repr) if columns else [()] * table.num_rows


def outcome(frame: Any) -> Any:
    """The types and rows of a frame, or that it cannot be read."""
    try:
        return frame.schema, repr(rows_of(frame))
    except Exception as error:
        return "an error", type(error).__name__


def compare(spark: Any, path: Path, kind: str, options: dict[str, str]) -> str | None:
    """What differs between Spark and the engine."""
    try:
        frame = spark.read.format(kind).options(**options).load(str(path))
    except Exception:  # Spark cannot tell the columns, so there is no query
        return None
    expected = outcome(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kq.FallbackWarning)
        actual = outcome(kquery_plan(frame, when="always"))
    return (
        None
        if actual[0] == expected[0] and actual[1] == expected[1]
        else f"{path.name} {options}: {expected} {actual}"
    )


@pytest.mark.parametrize(
    ("kind", "options"),
    [(kind, options) for kind, all_options in OPTIONS.items() for options in all_options],
    ids=str,
)
def test_each_file_is_read_as_spark_reads_it(
    spark: Any, directory: Path, kind: str, options: dict[str, str]
) -> None:
    files = sorted(
        p for p in directory.rglob("*") if FORMATS.get(p.suffix[1:]) == kind and "xml" not in str(p)
    )
    assert files
    differences = [compare(spark, path, kind, options) for path in files]
    assert not [text for text in differences if text is not None]
