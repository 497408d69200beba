"""CSV and JSON: lines of quoted and unquoted values, damaged anywhere, NUL bytes included, also in compressed files."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from tests.sources.mutations.formats import MutatedFormat, Mutation, Pristine
from tests.sources.mutations.mutate import Region, mutated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kquery_spark import ExecutionContext

_ROWS = 120
_SCHEMA = "id bigint, s string, d double, b boolean, day date"
_QUERIES = (
    "SELECT * FROM t",
    "SELECT count(*) FROM t",
    "SELECT s, d FROM t WHERE id > 20",
)
_STRINGS = ("text", "a b", "", "x,y", 'say "hi"', "é", "\\", "#", "'")
_MODES = ("PERMISSIVE", "DROPMALFORMED", "FAILFAST")
_CODECS: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress}


def _csv_line(i: int) -> str:
    string = _STRINGS[i % len(_STRINGS)].replace('"', '""')
    quoted = f'"{string}"' if i % 3 or "," in string or '"' in string else string
    return f"{i},{quoted},{i * 1.5},{'true' if i % 2 else ''},2020-01-{i % 28 + 1:02}"


def _json_line(i: int) -> str:
    string = _STRINGS[i % len(_STRINGS)].replace("\\", "\\\\").replace('"', '\\"')
    flag = "true" if i % 2 else "null"
    return f'{{"id": {i}, "s": "{string}", "d": {i * 1.5}, "b": {flag}, "day": "2020-01-{i % 28 + 1:02}"}}'


def _make(format_name: str, line: Callable[[int], str], directory: Path) -> list[Pristine]:
    """An input for each mode and codec, whose names stand in the directory's name."""
    data = ("\n".join(map(line, range(_ROWS))) + "\n").encode()
    inputs = []
    for mode in _MODES:
        for suffix, compress in _CODECS.items():
            root = directory / f"{mode}{suffix}"
            root.mkdir(parents=True)
            file = root / f"t.{format_name}{suffix}"
            file.write_bytes(compress(data))
            inputs.append(Pristine(root.name, root, (file,), _QUERIES))
    return inputs


def _mutate(data: bytes, file: Path, rng: Random) -> Mutation:
    if file.suffix in (".gz", ".bz2") or rng.random() < 0.6:
        return mutated(data, [Region("lines", 0, len(data))], rng)
    return _with_nuls(data, rng)


def _with_nuls(data: bytes, rng: Random) -> Mutation:
    """NUL bytes at the start of a line, beside a delimiter or quote, or instead of many bytes."""
    marks = {"lines": b"\n", "delimiters": b",", "quotes": b'"', "anything": data}
    name, chosen = rng.choice(list(marks.items()))
    places = [i for i, byte in enumerate(data) if byte in chosen] or [0]
    at = rng.choice(places) + rng.choice((0, 1))
    size = rng.choice((1, 2, 3, 16, 512, 4096))
    replaced = rng.choice((0, size))
    changed = data[:at] + bytes(size) + data[at + replaced :]
    return Mutation(changed, f"{size} NULs at {at} (beside {name}) instead of {replaced} bytes")


def _options(root: Path) -> dict[str, str]:
    return {"mode": root.name.partition(".")[0]}


def _register(format_name: str, context: ExecutionContext, root: Path) -> None:
    register = getattr(context, f"register_{format_name}")
    options = {**_options(root), **({"header": False} if format_name == "csv" else {})}
    register("t", str(root), _SCHEMA, **options)


def _frame(format_name: str, spark: SparkSession, root: Path) -> DataFrame:
    reader = spark.read.schema(_SCHEMA).options(**_options(root))
    frame: DataFrame = getattr(reader, format_name)(str(root))
    return frame


def _prepare_csv() -> None:
    """Loads the compiled loops before the process forks, because every child would load or compile them again."""
    from kquery_spark.kernels.compiled import FILE_LOOPS

    FILE_LOOPS.compile_now()


def text_format(
    format_name: str, line: Callable[[int], str], prepare: Callable[[], None] = lambda: None
) -> MutatedFormat:
    """The entry of a format of lines."""
    return MutatedFormat(
        format_name,
        partial(_make, format_name, line),
        _mutate,
        partial(_register, format_name),
        partial(_frame, format_name),
        prepare,
    )


CSV = text_format("csv", _csv_line, _prepare_csv)
JSON = text_format("json", _json_line)
