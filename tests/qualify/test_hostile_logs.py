"""Event logs that are damaged or made to do harm: what cannot be read is counted and left out, in bounded time and memory."""

from __future__ import annotations

import gzip
import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kquery_spark.errors import SourceError
from kquery_spark.qualify import lines
from kquery_spark.qualify.calls import calls_in
from kquery_spark.qualify.fields import MalformedEvent, printable, whole_number
from kquery_spark.qualify.html import render_html
from kquery_spark.qualify.logs import qualify_logs
from kquery_spark.qualify.report import Qualification
from kquery_spark.qualify.text import render_text

LOGS = Path(__file__).parent / "logs"
SQL = "org.apache.spark.sql.execution.ui.SparkListener"
LOG_START = {"Event": "SparkListenerLogStart", "Spark Version": "4.0.5"}
SURROGATE = chr(0xD83D)


def query_events(number: int = 0, plan: Any = None, **start: Any) -> list[dict[str, Any]]:
    """The events of one query with one task."""
    scan = {"nodeName": "Scan parquet", "simpleString": "FileScan parquet [k#1]", "children": []}
    plan = plan or {
        "nodeName": "HashAggregate",
        "simpleString": "HashAggregate(keys=[k#1])",
        "children": [scan],
    }
    return [
        {"Event": f"{SQL}SQLExecutionStart", "executionId": number, "description": f"query {number}", "time": 1000,
         "sparkPlanInfo": plan, **start},
        {"Event": "SparkListenerJobStart", "Job ID": number, "Stage IDs": [number],
         "Properties": {"spark.sql.execution.id": str(number)}},
        {"Event": "SparkListenerTaskEnd", "Stage ID": number, "Task Info": {"Accumulables": []},
         "Task Metrics": {"Executor Run Time": 500, "Executor CPU Time": 400_000_000}},
        {"Event": "SparkListenerStageCompleted",
         "Stage Info": {"Stage ID": number, "Submission Time": 1100, "Completion Time": 1600}},
        {"Event": "SparkListenerJobEnd", "Job ID": number},
        {"Event": f"{SQL}SQLExecutionEnd", "executionId": number, "time": 2000},
    ]  # fmt: skip


def qualified(tmp_path: Path, events: list[Any], name: str = "app-1") -> tuple[Qualification, str]:
    """The result for a log of events, or of lines, and everything that is reported of it."""
    file = tmp_path / name
    file.write_text("\n".join(e if isinstance(e, str) else json.dumps(e) for e in events) + "\n")
    result = qualify_logs(file)
    report = (
        render_text(result, 50) + render_html(result, "title") + json.dumps(result.as_dict(), allow_nan=False)
    )
    assert report.encode("utf-8")
    assert "nan s" not in report
    assert "inf s" not in report
    return result, report


def note(events: int, first: str) -> str:
    return f"{events} malformed events are left out, the first of them {first}"


ODD_VALUES = [
    None,
    "x",
    "",
    -1,
    2**70,
    1e300,
    float("nan"),
    float("inf"),
    True,
    [],
    [None],
    {},
    {"a": 1},
    "²",
    "9" * 400,
]
FIELDS = [
    (0, ("executionId",)), (0, ("time",)), (0, ("description",)), (0, ("sparkPlanInfo",)), (0, ("sparkPlanInfo", "nodeName")),
    (0, ("sparkPlanInfo", "simpleString")), (0, ("sparkPlanInfo", "children")), (0, ("sparkPlanInfo", "metadata")),
    (0, ("sparkPlanInfo", "metrics")), (1, ("Job ID",)), (1, ("Stage IDs",)), (1, ("Properties",)),
    (1, ("Properties", "spark.sql.execution.id")), (2, ("Stage ID",)), (2, ("Task Info",)), (2, ("Task Info", "Accumulables")),
    (2, ("Task Metrics",)), (2, ("Task Metrics", "Executor Run Time")), (2, ("Task Metrics", "Executor CPU Time")),
    (2, ("Task Metrics", "Input Metrics")), (3, ("Stage Info",)), (3, ("Stage Info", "Submission Time")), (4, ("Job ID",)),
    (5, ("executionId",)), (5, ("time",)), (5, ("errorMessage",)),
]  # fmt: skip


@pytest.mark.parametrize(("position", "path"), FIELDS)
def test_a_field_of_any_type_harms_its_event_only(
    tmp_path: Path, position: int, path: tuple[str, ...]
) -> None:
    for value in ODD_VALUES:
        events = query_events(7)
        record = events[position]
        for name in path[:-1]:
            record = record[name]
        record[path[-1]] = value
        result, _ = qualified(tmp_path, [LOG_START, *query_events(1), *events, *query_events(2)])
        names = [query.description for query in result.queries]
        assert names[0] == "query 1"
        assert "query 2" in names
        for query in result.queries:
            assert query.description not in ("query 1", "query 2") or query.task_seconds == 0.5


@pytest.mark.parametrize(
    ("line", "first"),
    [
        ("[1]", ""),
        ("null", ""),
        ('{"Event": null}', ""),
        ('{"Event": "SparkListenerJobEnd", "Job ID": ' + "9" * 5000 + "}", ""),
        ('{"Event": "SparkListenerJobEnd", "Job ID": NaN}', "SparkListenerJobEnd: Job ID is not a number"),
        ('{"Event": "SparkListenerJobEnd", "a": ' + "[" * 100_000 + "]" * 100_000 + "}", ""),
    ],
)
def test_a_line_that_is_not_an_event_is_counted(tmp_path: Path, line: str, first: str) -> None:
    result, report = qualified(tmp_path, [LOG_START, line, *query_events(1)])
    assert [query.description for query in result.queries] == ["query 1"]
    assert "1 malformed events are left out" in report
    assert first in report


def test_bytes_that_are_not_utf_8(tmp_path: Path) -> None:
    file = tmp_path / "app-1"
    strings = [json.dumps(event).encode() for event in [LOG_START, *query_events(1)]]
    file.write_bytes(
        b"\n".join(
            [strings[0], b'{"Event": "SparkListenerApplicationStart", "App Name": "\xff"}', *strings[1:]]
        )
    )
    result = qualify_logs(file)
    assert len(result.queries) == 1
    assert "1 malformed events are left out" in result.applications[0].notes


def chain(depth: int, name: str = "Project") -> dict[str, Any]:
    plan: dict[str, Any] = {"nodeName": "Scan parquet", "simpleString": "FileScan", "children": []}
    for _ in range(depth):
        plan = {"nodeName": name, "simpleString": f"{name} [upper(s#1) AS s#2]", "children": [plan]}
    return plan


DEEPER = '{"nodeName": "Project", "simpleString": "Project [upper(s#1)]", "children": [{"nodeName": "Scan"}]}'


def test_plans_are_read_as_deep_as_they_are_and_counted_beyond(tmp_path: Path) -> None:
    result, report = qualified(
        tmp_path, [LOG_START, *query_events(1, chain(150)), *query_events(2, chain(250, "Exchange"))]
    )
    assert [len(query.nodes) for query in result.queries] == [151, 1]
    assert "left out" not in report.split("<!DOCTYPE")[0]
    for depth in (300, 400, 450, 480, 495):
        event = json.dumps(query_events(2, {"nodeName": "Scan"})[0])
        for _ in range(depth):
            event = event.replace('{"nodeName": "Scan"}', DEEPER)
        events = [LOG_START, *query_events(1), event, *query_events(2)[1:]]
        result, report = qualified(tmp_path, events)
        assert result.queries[0].description == "query 1"
        assert len(result.queries) == 2 or "too deeply" in report or "malformed" in report
    text = json.dumps(LOG_START) + "\n" + '{"Event":"x","p":' * 5000 + "1" + "}" * 5000
    (tmp_path / "deep").write_text(text + "\n" + "\n".join(map(json.dumps, query_events(3))))
    assert len(qualify_logs(tmp_path / "deep").queries) == 1


def test_expressions_that_nest_too_deeply_or_are_very_long(tmp_path: Path) -> None:
    for text in ("(" * 60_000, "f(" * 30_000, "a" * 500_000 + "!(", "a." * 200_000 + "(", "OR (" * 200_000):
        plan = {"nodeName": "Filter", "simpleString": f"Filter {text}", "children": [chain(0)]}
        result, report = qualified(tmp_path, [LOG_START, *query_events(1), *query_events(2, plan)])
        assert (
            len(result.queries) == 2
            or "1 queries with plans or expressions that nest too deeply are left out" in report
        )
    with pytest.raises(MalformedEvent, match="nests too deeply"):
        list(calls_in("f(" * 6000))
    assert len(list(calls_in("(" * 999 + "a#1" + " OR f(b#2))" * 999))) == 999


def test_names_with_surrogates_markup_and_control_characters(tmp_path: Path) -> None:
    hostile = f"{SURROGATE}<script>alert(1)</script>\"'>&\x1b[2J\x00\u202e"
    plan = {
        "nodeName": hostile,
        "simpleString": hostile,
        "metadata": {hostile: hostile},
        "children": [chain(0)],
    }
    start = {"Event": "SparkListenerApplicationStart", "App Name": hostile, "App ID": hostile}
    failed = query_events(3, description=hostile)
    failed[-1]["errorMessage"] = hostile
    events = [
        LOG_START,
        start,
        *query_events(1, plan, description=hostile),
        *failed,
        {"Event": hostile, "a": 1},
    ]
    result, report = qualified(tmp_path, events)
    assert len(result.queries) == 2
    assert "\x1b" not in report
    assert "\x00" not in report
    page = render_html(result, hostile.replace(SURROGATE, ""))
    assert "<script" not in page
    assert "alert(1)" in page


def test_a_path_that_is_not_utf_8_is_reported(tmp_path: Path) -> None:
    _, report = qualified(tmp_path, [LOG_START, *query_events(1)], "app-\udcff")
    assert "app-\ufffd" in report


def test_queries_that_start_twice_end_twice_or_end_first(tmp_path: Path) -> None:
    first, second = query_events(1), query_events(1, time=1500)
    result, report = qualified(
        tmp_path, [LOG_START, first[-1], first[0], *second, second[-1], *query_events(2)]
    )
    assert [(query.number, query.seconds) for query in result.queries] == [(1, 1.0), (2, 1.0)]
    assert "query 1 starts while it runs" in report
    shuffled = [query_events(5)[i] for i in (5, 2, 0, 3, 1, 4)]
    result, _ = qualified(tmp_path, [LOG_START, *shuffled, *query_events(2)])
    assert [query.number for query in result.queries] == [2]


def test_times_that_run_backwards_save_nothing_negative(tmp_path: Path) -> None:
    events = query_events(1, time=10**15)
    events[3]["Stage Info"]["Submission Time"] = 10**16
    result, _ = qualified(tmp_path, [LOG_START, *events])
    (query,) = result.queries
    assert query.seconds == 0
    assert query.wall.expected == 0


def long_line(size: int) -> bytes:
    """A log in which one event is larger than is read."""
    events = [json.dumps(event).encode() for event in [LOG_START, *query_events(1)]]
    return b"\n".join([events[0], b'{"Event":"x","a":"' + b"a" * size + b'"}', *events[1:]]) + b"\n"


def lz4(data: bytes) -> bytes:
    codec, out = pa.Codec("lz4_raw"), b""
    for start in range(0, len(data), 1 << 16):
        piece = data[start : start + (1 << 16)]
        packed = codec.compress(piece, asbytes=True)
        out += b"LZ4Block" + struct.pack("<Biii", 0x26, len(packed), len(piece), 0) + packed
    return out


def snappy(data: bytes) -> bytes:
    codec, out = pa.Codec("snappy"), b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    for start in range(0, len(data), 1 << 20):
        packed = codec.compress(data[start : start + (1 << 20)], asbytes=True)
        out += len(packed).to_bytes(4, "big") + packed
    return out


PACKED = {
    "plain": lambda data: data,
    "zstd": lambda data: pa.Codec("zstd").compress(data, asbytes=True),
    "gz": lambda data: gzip.compress(data, 1),
    "lz4": lz4,
    "snappy": snappy,
}


@pytest.mark.parametrize("codec", PACKED)
def test_lines_that_are_too_long_are_dropped_as_they_stream(
    tmp_path: Path, monkeypatch: Any, codec: str
) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 1 << 20)
    file = tmp_path / f"app-1.{codec}"
    file.write_bytes(PACKED[codec](long_line(4 << 20)))
    before = pa.total_allocated_bytes()
    result = qualify_logs(file)
    assert [query.description for query in result.queries] == ["query 1"]
    assert any("1 events of more than" in text for text in result.applications[0].notes)
    assert pa.total_allocated_bytes() - before < 1 << 20


BOMB = """
import resource, sys, time
from kquery_spark.cli import commands
from kquery_spark.qualify.logs import qualify_logs
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
began = time.process_time()
try:
    qualify_logs(sys.argv[1])
except Exception as error:
    print(type(error).__name__, error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base) // 1024, time.process_time() - began)
"""


@pytest.mark.parametrize("unit", [b"a", b"\n"])
def test_a_bomb_is_named_in_bounded_time_and_memory(tmp_path: Path, unit: bytes) -> None:
    file = tmp_path / "app-1.zstd"
    start = json.dumps(LOG_START).encode() + b"\n"
    with pa.CompressedOutputStream(str(file), "zstd") as stream:
        stream.write(start)
        for _ in range(60):
            stream.write(unit * (16 << 20))
    assert file.stat().st_size < 1 << 18
    run = subprocess.run(
        [sys.executable, "-c", BOMB, str(file)], capture_output=True, text=True, timeout=120, check=True
    )
    error, measured = run.stdout.strip().splitlines()
    megabytes, seconds = map(float, measured.split())
    assert (
        error
        == f"SourceError cannot decompress {file}: the file decompresses to more than 2,000 times its size"
    )
    assert megabytes < 150
    assert seconds < 30


def test_a_directory_or_pipe_in_place_of_a_log(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SourceError, match="cannot read"):
        qualify_logs(tmp_path / "pipe")
    with pytest.raises(SourceError, match="cannot read"):
        qualify_logs(tmp_path / ("x" * 300))
    with pytest.raises(SourceError, match="no event logs"):
        qualify_logs(tmp_path)


def test_fields_have_the_types_that_spark_writes() -> None:
    assert [whole_number({"n": n}, "n") for n in (None, 5, "5", -3, 2.0, "-7")] == [None, 5, 5, -3, 2, -7]
    for odd in (True, "five", float("nan"), float("-inf"), 2**63, "٣", "1" * 20, [1]):
        with pytest.raises(MalformedEvent, match="n is not a number"):
            whole_number({"n": odd}, "n")
    assert printable(f"ä\t\n😀{SURROGATE}\x07") == "ä\t\n😀\ufffd\ufffd"
