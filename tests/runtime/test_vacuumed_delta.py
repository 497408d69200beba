"""Delta tables that are vacuumed while a query reads an older version: the planned rows, or an error that names a file."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kquery_spark as kq
from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import SourceError

deltalake = pytest.importorskip("deltalake")

FILES, ROWS = 12, 20_000
SQL = "SELECT count(*) AS c, sum(v) AS s, max(t) AS t FROM t"


def write(path: Path, first: int, mode: str) -> None:
    """One file of rows, from a number on."""
    values = pa.array(range(first, first + ROWS), pa.int64())
    table = pa.table({"v": values, "t": [f"text {v}" for v in range(first, first + ROWS)]})
    deltalake.write_deltalake(str(path), table, mode=mode)


def overwritten(path: Path) -> None:
    """A table of many files; the newest version has replaced all of them by one."""
    for number in range(FILES):
        write(path, number * ROWS, "append")
    write(path, 10**9, "overwrite")


def vacuum(path: Path) -> list[str]:
    """Delete the files of all versions but the newest."""
    deleted: list[str] = deltalake.DeltaTable(str(path)).vacuum(
        retention_hours=0, dry_run=False, enforce_retention_duration=False
    )
    return deleted


def old_version(path: Path) -> Any:
    """A planned query of the version before the newest."""
    context = kq.ExecutionContext(config=EngineConfig(parallelism=2))
    context.register_delta("t", str(path), version=FILES - 1)
    return context.sql(SQL)


def outcome(frame: Any, path: Path) -> str:
    """What the query says: the rows of its version, or an error that names a file of the table."""
    total = FILES * ROWS
    expected = [{"c": total, "s": total * (total - 1) // 2, "t": "text 99999"}]
    try:
        rows = frame.to_arrow().to_pylist()
    except SourceError as error:
        return "error" if f"{path}/" in str(error) and ".parquet" in str(error) else f"unnamed: {error}"
    return "rows" if rows == expected else f"wrong: {rows}"


def test_a_table_that_is_vacuumed_before_and_while_it_is_read(tmp_path: Path) -> None:
    outcomes: Counter[str] = Counter()
    for number, delay in enumerate((0.0, 0.005, 0.02, 0.05)):
        path = tmp_path / f"t{number}"
        overwritten(path)
        frame = old_version(path)
        assert outcome(frame, path) == "rows"
        frame = old_version(path)
        deleted: list[str] = []
        timer = threading.Timer(delay, lambda path=path, deleted=deleted: deleted.extend(vacuum(path)))
        timer.start()
        outcomes[outcome(frame, path)] += 1
        timer.join()
        assert len(deleted) == FILES
        assert outcome(frame, path) == "error"
        newest = kq.ExecutionContext()
        newest.register_delta("t", str(path))
        assert newest.sql("SELECT count(*) AS c FROM t").to_arrow().to_pylist() == [{"c": ROWS}]
    assert set(outcomes) <= {"rows", "error"}
