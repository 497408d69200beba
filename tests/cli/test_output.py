"""A result is there whole or not at all."""

import pytest

from kquery_spark.cli import output as module
from kquery_spark.cli.failures import Exit, Failure
from kquery_spark.cli.output import Output


def names(directory):
    # .crc files are the checksums that Hadoop keeps on a local disk
    return sorted(path.name for path in directory.iterdir() if not path.name.endswith(".crc"))


@pytest.mark.parametrize("format_", ["parquet", "csv", "json", "orc"])
def test_the_ending_says_the_format_and_only_the_result_is_left(spark, tmp_path, format_):
    target = tmp_path / f"r.{format_}"
    Output(spark, str(target)).write(spark.range(7))
    assert names(tmp_path) == [f"r.{format_}"]
    assert any(name.endswith(f".{format_}") for name in names(target))
    assert spark.read.format(format_).option("header", True).load(str(target)).count() == 7


def test_without_an_ending_it_is_parquet(spark, tmp_path):
    Output(spark, str(tmp_path / "r")).write(spark.range(2))
    assert spark.read.parquet(str(tmp_path / "r")).count() == 2


def test_a_query_that_fails_leaves_nothing(spark, tmp_path):
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        Output(spark, str(tmp_path / "r")).write(spark.sql("SELECT 1 / (id - 50) AS x FROM range(100)"))
    assert names(tmp_path) == []


def test_an_output_that_is_there_is_refused_before_any_work(spark, tmp_path):
    (tmp_path / "r").mkdir()
    with pytest.raises(Failure, match="--overwrite") as caught:
        Output(spark, str(tmp_path / "r"))
    assert caught.value.code is Exit.OUTPUT


def test_one_that_appears_meanwhile_is_not_touched(spark, tmp_path):
    output = Output(spark, str(tmp_path / "r"))
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "theirs").write_text("x")
    with pytest.raises(Failure, match="appeared while"):
        output.write(spark.range(2))
    assert names(tmp_path) == ["r"]
    assert names(tmp_path / "r") == ["theirs"]


def test_overwrite_replaces_only_when_the_new_result_is_complete(spark, tmp_path):
    target = tmp_path / "r"
    Output(spark, str(target)).write(spark.range(2))
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        Output(spark, str(target), overwrite=True).write(
            spark.sql("SELECT 1 / (id - 50) AS x FROM range(100)")
        )
    assert spark.read.parquet(str(target)).count() == 2
    Output(spark, str(target), overwrite=True).write(spark.range(5))
    assert spark.read.parquet(str(target)).count() == 5
    assert names(tmp_path) == ["r"]


def test_an_output_that_cannot_be_written_is_code_8(spark, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(Failure, match="is not a directory") as caught:
        Output(spark, str(tmp_path / "file" / "r.parquet"))
    assert caught.value.code is Exit.OUTPUT
    with pytest.raises(Failure, match="no directory can be created in /proc") as caught:
        Output(spark, "/proc/r.parquet")
    assert caught.value.code is Exit.OUTPUT
    for ending, query in (("csv", "SELECT array(1) AS a"), ("parquet", "SELECT 1 AS a, 2 AS a")):
        with pytest.raises(Failure, match="cannot write") as caught:
            Output(spark, str(tmp_path / f"r.{ending}")).write(spark.sql(query))
        assert caught.value.code is Exit.OUTPUT


def test_only_the_parent_of_an_output_has_to_be_writable_in_an_object_store(spark, tmp_path, monkeypatch):
    probed = []
    monkeypatch.setattr(Output, "_check_writable", lambda _, directory: probed.append(directory.getName()))
    for schemes, expected in ((("file",), [tmp_path.name, tmp_path.name]), ((), [tmp_path.name])):
        monkeypatch.setattr(module, "_SCHEMES_WITH_DIRECTORIES", schemes)
        Output(spark, str(tmp_path / "r"))
        Output(spark, str(tmp_path / "missing" / "r"))
        assert probed == expected
        probed.clear()


def test_a_disk_that_fails_during_the_write_is_code_8(spark, tmp_path, monkeypatch):
    output = Output(spark, str(tmp_path / "r"))
    monkeypatch.setattr(
        output, "_sibling", lambda _: output._hadoop.child(output._path.getParent(), "/proc/no/r")
    )
    with pytest.raises(Failure, match=r"cannot write .*: java\.io\.") as caught:
        output.write(spark.range(2))
    assert caught.value.code is Exit.OUTPUT
    assert "calling o" not in caught.value.message
