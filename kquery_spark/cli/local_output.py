"""Writes the result of ``--engine local`` without Spark, as files that Spark and the engine read back as the same rows."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from typing_extensions import override

import kquery_spark as kq
from kquery_spark.cli.failures import Exit, Failure
from kquery_spark.cli.output import AtomicOutput, hidden_name
from kquery_spark.cli.paths import cannot_write, check_new_directory, local_path
from kquery_spark.errors import Unsupported
from kquery_spark.sources.hybrid_calendar import GREGORIAN_START_DAY
from kquery_spark.sources.parquet.calendar import INT96_VERSION, SPARK_VERSION_KEY
from kquery_spark.types import names as t

if TYPE_CHECKING:
    from kquery_spark.frontends.dataframe import DataFrame

_LINE = "line"


class LocalOutput(AtomicOutput[Path]):
    """The path of a result on the local disk: a directory, as for Spark's outputs. It is checked before any work is done.

    The staging directory is in the nearest existing ancestor of the path. A query that fails creates no parent directories.
    """

    def __init__(self, path: str, overwrite: bool = False) -> None:
        super().__init__(path, overwrite)
        local = local_path(path)
        if local is None:
            raise Failure(
                Exit.OUTPUT,
                f"cannot write {path}: --engine local writes to the local disk; use --engine kquery for other file systems",
            )
        self._directory = check_new_directory(local, path, overwrite)
        self._target = Path(os.path.abspath(local))

    def write(self, frame: DataFrame) -> None:
        """Write the rows of a query in the format of the path. Raises Unsupported for types that the format cannot store."""
        self._check_columns(frame)
        write_rows = _WRITERS[self._format.name]
        name = self._target.name
        staging = self._directory / hidden_name(name, "new")
        try:
            staging.mkdir()
            write_rows(frame, staging / f"part-00000{self._format.endings[0]}")
            self._target.parent.mkdir(parents=True, exist_ok=True)
            self._publish(staging, self._target, self._target.with_name(hidden_name(name, "old")))
        except OSError as error:
            raise cannot_write(self.path, error) from error
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def _check_columns(self, frame: DataFrame) -> None:
        """Raise Failure for duplicate column names, and Unsupported for a type that the format or Spark would lose."""
        title = self._format.title
        names: set[str] = set()
        for name in frame.columns:
            if name.lower() in names:
                raise Failure(
                    Exit.OUTPUT, f"cannot write {self.path}: two columns of the result are named {name}"
                )
            names.add(name.lower())
        for field in frame.schema:
            if (reason := _unsupported_reason(field.type, self._format.name)) is not None:
                raise Unsupported(f"column {field.name} cannot be written as {title} without Spark: {reason}")

    @override
    def _exists(self, path: Path) -> bool:
        return os.path.lexists(path)

    @override
    def _rename(self, source: Path, target: Path) -> None:
        source.rename(target)

    @override
    def _delete(self, path: Path) -> None:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _unsupported_reason(dtype: pa.DataType, format_: str) -> str | None:
    """Return why values of a type cannot be written so that Spark reads the same type; None if they can."""
    if format_ == "csv" and (t.is_nested(dtype) or dtype == t.BINARY):
        return f"the format has no {t.spark_name(dtype)}"
    if t.has_variants(dtype) or not _is_storable(dtype):
        return f"{t.spark_name(dtype)} is not supported"
    if format_ == "orc" and _contains(dtype, pa.types.is_timestamp):
        return f"{t.spark_name(dtype)} depends on the time zone of the writer"
    if format_ == "orc" and t.is_nested(dtype) and _contains(dtype, pa.types.is_date32):
        return f"{t.spark_name(dtype)} depends on the calendar of the writer"
    return None


def _is_storable(dtype: pa.DataType) -> bool:
    """Return whether files keep a type. They lose NULL, TIME, intervals, and structs without fields."""
    if t.is_nested(dtype):
        return bool(t.parts_of(dtype)) and all(map(_is_storable, t.parts_of(dtype)))
    return dtype not in (t.NULL, t.TIME) and not t.is_interval(dtype)


def _contains(dtype: pa.DataType, is_kind: Callable[[pa.DataType], bool]) -> bool:
    return is_kind(dtype) or any(_contains(part, is_kind) for part in t.parts_of(dtype))


def _write_parquet(frame: DataFrame, file: Path) -> None:
    with frame.to_reader() as reader:
        # Spark reads dates and times in files of this version as Gregorian. Without it, some releases reject old ones.
        schema = reader.schema.with_metadata({SPARK_VERSION_KEY: INT96_VERSION})
        with pq.ParquetWriter(file, schema) as writer:
            for batch in reader:
                writer.write_batch(batch)


def _write_orc(frame: DataFrame, file: Path) -> None:
    from pyarrow import orc

    with frame.to_reader() as reader, orc.ORCWriter(str(file), compression="zstd") as writer:
        writer.write(reader.schema.empty_table())  # so that a result without rows has columns
        for batch in reader:
            _check_dates(batch)
            writer.write(pa.Table.from_batches([batch]))


def _check_dates(batch: pa.RecordBatch) -> None:
    """Raise Unsupported for dates that Spark would read as other dates: ORC files of pyarrow do not name their calendar."""
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if pa.types.is_date32(field.type):
            first = pc.min(column.view(pa.int32())).as_py()
            if first is not None and first < GREGORIAN_START_DAY:
                raise Unsupported(
                    f"column {field.name} cannot be written as ORC without Spark: a date is before 1582-10-15"
                )


def _write_json(frame: DataFrame, file: Path) -> None:
    _write_lines(frame.select(kq.to_json(_row(frame)).alias(_LINE)), file)


def _write_csv(frame: DataFrame, file: Path) -> None:
    # to_csv also formats the header, so that names with delimiters are quoted. count(*) makes the single row that it needs.
    names = [kq.lit(name).alias(f"c{i}") for i, name in enumerate(frame.columns)]
    header = (
        frame.limit(0).aggregate([], [kq.count(kq.lit(1)).alias(_LINE)]).select(kq.to_csv(kq.struct(*names)))
    )
    lines = frame.select(kq.to_csv(_row(frame)).alias(_LINE))
    _write_lines(lines, file, header.to_arrow().column(0)[0].as_py())


def _row(frame: DataFrame) -> Any:
    return kq.struct(*[frame[i] for i in range(len(frame.columns))])


def _write_lines(lines: DataFrame, file: Path, header: str | None = None) -> None:
    with lines.to_reader() as reader, file.open("wb") as output:
        if header is not None:
            output.write(f"{header}\n".encode())
        for batch in reader:
            # Spark's CSV writer, too, writes no line for a row of one column that is NULL.
            strings = batch.column(0).drop_null()
            if len(strings):
                whole = pa.ListArray.from_arrays([0, len(strings)], strings)
                output.write(pc.binary_join(whole, "\n")[0].as_buffer())
                output.write(b"\n")


_WRITERS: dict[str, Callable[[DataFrame, Path], None]] = {
    "parquet": _write_parquet,
    "csv": _write_csv,
    "json": _write_json,
    "orc": _write_orc,
}
