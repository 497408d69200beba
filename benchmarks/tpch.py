"""TPC-H data and 22 queries derived from TPC-H.

The queries in ``queries/tpch/`` are derived from the TPC-H benchmark and are not comparable to published
TPC-H results, as they do not comply with the TPC-H specification. They carry the specification's
validation parameters, in Spark SQL's dialect. The data comes from ``tpchgen-cli``, a reimplementation of
TPC-H's own generator that writes Parquet.

    python -m benchmarks.tpch OUTPUT_DIR --scale 1
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
QUERIES = tuple(range(1, 23))
FAIR_USE = (
    "Queries and data are derived from TPC-H and are not comparable to published TPC-H results, "
    "as they do not comply with the TPC-H specification."
)
_DIRECTORY = Path(__file__).parent / "queries" / "tpch"


class GeneratorMissing(RuntimeError):
    """``tpchgen-cli`` is not installed, or did not do its work."""


def query(number: int) -> str:
    """The text of one query, 1 to 22."""
    if number not in QUERIES:
        raise ValueError(f"there are TPC-H queries 1 to 22, not {number}")
    return (_DIRECTORY / f"q{number:02d}.sql").read_text()


def register(spark: SparkSession, data: str | Path) -> None:
    """Make the eight tables below ``data`` temporary views of their names."""
    for table in TABLES:
        spark.read.parquet(str(Path(data) / f"{table}.parquet")).createOrReplaceTempView(table)


def generate(out: str | Path, scale: float = 1.0) -> Path:
    """Write ``<out>/<table>.parquet`` for the eight tables, unless they exist at this scale; return ``out``."""
    out = Path(out)
    manifest = out / "_tpch.json"
    options = {"scale": scale}
    complete = all((out / f"{table}.parquet").exists() for table in TABLES)
    if complete and manifest.exists() and json.loads(manifest.read_text()) == options:
        return out
    out.mkdir(parents=True, exist_ok=True)
    manifest.unlink(missing_ok=True)
    for table in TABLES:
        (out / f"{table}.parquet").unlink(missing_ok=True)
    command = [_generator(), "parquet", "-s", f"{scale:g}", "--output-dir", str(out), "--quiet"]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        raise GeneratorMissing(f"tpchgen-cli failed: {run.stderr.strip() or run.stdout.strip()}")
    manifest.write_text(json.dumps(options) + "\n")
    return out


def _generator() -> str:
    # beside the interpreter that runs, so that an environment need not be activated
    beside = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
    found = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if found is None:
        raise GeneratorMissing("TPC-H data needs tpchgen-cli; type: pip install tpchgen-cli")
    return found


def main() -> None:
    """Command line: write the data and say where it is."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tpch", description="Make TPC-H data as Parquet."
    )
    parser.add_argument("out", type=Path, help="directory to write the eight files to")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="scale factor, 1 is about 400 MB (%(default)s)"
    )
    arguments = parser.parse_args()
    print(generate(arguments.out, arguments.scale))


if __name__ == "__main__":
    main()
