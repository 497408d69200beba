"""Extreme CSV lines: many values, many quotes, and many lines before the header."""

from __future__ import annotations

import time

import pytest

import kquery_spark as kq
from kquery_spark.errors import SourceError, Unsupported
from kquery_spark.sources.csv.options import csv_options
from kquery_spark.sources.csv.source import csv_source
from tests.sources.compare import read_all, written
from tests.sources.csv_files import compare, cut_by, schema_of  # noqa: F401

MAX_COLUMNS = 20_480


@pytest.mark.parametrize("before", ["", "1\n" * 9], ids=["all lines", "one line"])
@pytest.mark.parametrize("columns", [{"a": "string"}, {"a": "string", "b": "string"}], ids=len)
def test_a_line_of_too_many_values(spark, tmp_path, before, columns):
    compare(spark, written(tmp_path, before + "," * (MAX_COLUMNS - 1) + "\n"), columns, ["a"])
    path = written(tmp_path, before + "," * MAX_COLUMNS + "\n")
    with pytest.raises(Exception, match="TextParsingException"):
        spark.read.schema(", ".join(f"{name} STRING" for name in columns)).csv(str(path)).select(
            "a"
        ).collect()
    with pytest.raises(SourceError, match="a line of 20,481 values is not supported"):
        read_all(csv_source([str(path)], schema_of(columns)), ["a"])


@pytest.mark.parametrize("quotes", [3, 1200])
def test_quotes_after_a_closing_quote(spark, tmp_path, quotes):
    text = '"a"\\' + '"b' * quotes
    compare(spark, written(tmp_path, f'{text},1\n"{text},2\n'), {"s": "string", "i": "int"})


def test_many_comments_before_the_header(tmp_path):
    text = "#\n" * 100_000 + "a,b\n" + "1,2\n" * 1_000_000
    source = csv_source([str(written(tmp_path, text))], comment="#", header=True)
    start = time.monotonic()
    split = source.splits()[0]
    assert source.schema.names == ["a", "b"]
    assert sum(batch.num_rows for batch in source.read(split, ["a"])) > 0
    assert time.monotonic() - start < 20


@pytest.mark.parametrize(
    "option", [{"maxCharsPerColumn": 1}, {"samplingRatio": "false"}, {"recursiveFileLookup": "1"}], ids=str
)
def test_some_options_are_supported_with_harmless_values_only(option):
    with pytest.raises(Unsupported, match="is not supported"):
        csv_options(option)
    csv_options({"maxCharsPerColumn": -1, "samplingRatio": 1.0, "recursiveFileLookup": False})


def test_large_files_with_multi_line(spark, tmp_path, monkeypatch):
    path = written(tmp_path, '1,"a\nb"\n', "small.csv")
    ddl = {"i": "int", "s": "string"}
    compare(spark, path, ddl, multiLine=True)
    source = csv_source([str(path)], schema_of(ddl), multiLine=True)
    monkeypatch.setattr("kquery_spark.sources.csv.blocks.MAX_WHOLE_BYTES", 7)
    with pytest.raises(SourceError, match="multiLine are supported up to 7 bytes"):
        read_all(source)
    with open(tmp_path / "large.csv", "wb") as file:
        file.truncate((1 << 30) + 1)
    with pytest.raises(Unsupported, match=r"large\.csv has 1,073,741,825 bytes"):
        csv_source([str(tmp_path)], multiLine=True)
    reader = spark.read.schema("s STRING, i INT")
    for multi_line in (True, False):
        frame = reader.option("multiLine", multi_line).csv(str(tmp_path))
        assert (
            "bytes, and CSV files with multiLine" in str(kq.explain(frame.groupBy("s").count()))
        ) == multi_line
