"""Finding event logs and reading their lines: files that are not logs, logs that are cut off, and unreadable files."""

from __future__ import annotations

import gzip

import pytest

from kquery_spark.errors import SourceError
from kquery_spark.qualify.event_files import EventReader, find_logs
from kquery_spark.qualify.logs import qualify_logs
from kquery_spark.qualify.text import render_text

FIRST = '{"Event":"SparkListenerLogStart","Spark Version":"4.1.0"}\n'


def test_a_path_that_is_not_there(tmp_path):
    with pytest.raises(SourceError, match="path does not exist"):
        find_logs(tmp_path / "nothing")


def test_an_empty_directory(tmp_path):
    with pytest.raises(SourceError, match="no event logs in"):
        find_logs(tmp_path)


@pytest.mark.parametrize("content", ["id,name\n1,2\n", '{"id": 1}\n{"id": 2}\n', "[1]\n"])
def test_what_is_no_event_log_is_named(tmp_path, content):
    file = tmp_path / "table"
    file.write_text(content)
    with pytest.raises(SourceError, match=f"{file} is not a Spark event log: line 1"):
        qualify_logs(file)


def test_a_damaged_line_is_named(tmp_path):
    file = tmp_path / "app-1"
    file.write_text(FIRST + "nonsense\n" + FIRST)
    with pytest.raises(SourceError, match=f"{file} is not a Spark event log: line 2"):
        qualify_logs(file)


def test_a_codec_that_is_not_supported(tmp_path):
    file = tmp_path / "app-1.bz2"
    file.write_bytes(b"")
    with pytest.raises(SourceError, match=r"\.bz2 is not supported; use \.zstd, .* or no compression"):
        qualify_logs(file)


def test_rolled_files_are_read_in_their_order(tmp_path):
    directory = tmp_path / "eventlog_v2_app-1"
    directory.mkdir()
    for number in (10, 2, 1):
        (directory / f"events_{number}_app-1").write_text(f'{{"Event":"{number}"}}\n')
    (directory / "appstatus_app-1.inprogress").touch()
    (log,) = find_logs(tmp_path)
    assert [event["Event"] for event in EventReader(log)] == ["1", "2", "10"]
    assert log.is_running


def test_a_compacted_file_replaces_those_before_it(tmp_path):
    directory = tmp_path / "eventlog_v2_app-1"
    directory.mkdir()
    for name in ("events_1_app-1.gz", "events_2_app-1.gz", "events_2_app-1.gz.compact", "events_3_app-1.gz"):
        event = FIRST.replace("4.1.0", name) if name.endswith("compact") else f'{{"Event":"{name}"}}\n'
        (directory / name).write_bytes(gzip.compress(event.encode()))
    (log,) = find_logs(tmp_path)
    assert [event["Event"] for event in EventReader(log)] == ["SparkListenerLogStart", "events_3_app-1.gz"]
    (application,) = qualify_logs(tmp_path).applications
    assert (
        "the history server compacted the log, so queries that had ended by then are missing"
        in application.notes
    )


def test_hidden_files_are_no_logs(tmp_path):
    (tmp_path / ".app-1.crc").write_bytes(b"crc")
    (tmp_path / "app-1.gz").write_bytes(gzip.compress(FIRST.encode()))
    (application,) = qualify_logs(tmp_path).applications
    assert application.spark_version == "4.1.0"
    assert application.notes == ()


def test_an_empty_log_of_a_release_that_is_not_supported(tmp_path):
    (tmp_path / "empty").touch()
    (tmp_path / "old").write_text(FIRST.replace("4.1.0", "2.4.8"))
    empty, old = qualify_logs(tmp_path).applications
    assert "the end of the log is cut off" in empty.notes
    assert old.notes == ("kquery_spark runs on Spark 3.5 to 4.3, and this was Spark 2.4.8",)


def test_a_file_among_logs_that_is_none_is_named_and_left_out(tmp_path):
    (tmp_path / "app-1").write_text(FIRST)
    (tmp_path / "notes.txt").write_text("buy milk\n")
    result = qualify_logs(tmp_path)
    assert len(result.applications) == 1
    (sentence,) = result.unreadable
    assert f"{tmp_path / 'notes.txt'} is not a Spark event log: line 1" in sentence
    assert f"note: not counted: {sentence}" in render_text(result, 5)
    assert result.as_dict()["unreadable"] == (sentence,)
