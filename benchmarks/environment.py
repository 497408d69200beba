"""What a run was taken on: hardware, system, versions, settings, files with checksums. No names, no secrets."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.suites.base import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGES = [
    "kquery-spark",
    "pyspark",
    "pyarrow",
    "numpy",
    "pandas",
    "duckdb",
    "duckdb-extension-tpcds",
    "datafusion",
    "polars",
    "pysail",
    "tpchgen-cli",
]
_PREFIXES = (
    "spark.kquery.",
    "spark.sql.",
    "spark.python.",
    "spark.master",
    "spark.driver.memory",
    "spark.executor.memory",
)
_PRIVATE_WORDS = (
    "password",
    "secret",
    "token",
    "credential",
    "key",
    "dir",
    "path",
    "user",
    "host",
    "url",
    "uri",
)


def environment() -> dict[str, Any]:
    """Hardware, operating system, interpreter, packages and the commit that ran."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30, 1),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
        "commit": _commit(),
        "load_before": [round(load, 2) for load in os.getloadavg()] if hasattr(os, "getloadavg") else [],
    }


def spark_settings(spark: SparkSession) -> dict[str, str]:
    """The settings that decide speed: ours, Spark SQL's, the workers'; nothing that could name a place or a person."""
    found = dict(spark.sparkContext.getConf().getAll())
    found["java"] = str(spark._jvm.java.lang.System.getProperty("java.version"))  # type: ignore[union-attr]
    for key in ("spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions", "spark.sql.autoBroadcastJoinThreshold",
                "spark.sql.ansi.enabled", "spark.sql.session.timeZone"):  # fmt: skip
        found[key] = str(spark.conf.get(key))
    return published_settings(found)


def published_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Those that name no place, person or secret: neither by their key nor, as places with a scheme do, by their value."""
    return {
        key: value
        for key, value in sorted(settings.items())
        if key == "java" or (_is_publishable(key) and "://" not in value and "@" not in value)
    }


def _is_publishable(key: str) -> bool:
    lowered = key.lower()
    return key.startswith(_PREFIXES) and not any(word in lowered for word in _PRIVATE_WORDS)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _commit() -> str | None:
    def git(*arguments: str) -> str | None:
        here = Path(__file__).parent
        run = subprocess.run(["git", *arguments], cwd=here, capture_output=True, text=True)
        return run.stdout.strip() if run.returncode == 0 else None

    try:
        commit, changes = git("rev-parse", "--short=12", "HEAD"), git("status", "--porcelain", "-uno")
    except OSError:
        return None
    return f"{commit}, with changes" if commit and changes else commit


def files(tables: Sequence[Table], notes: Path | None = None) -> list[dict[str, Any]]:
    """Every data file by table: its name in the table, bytes, SHA-256.

    ``notes``: a file that remembers checksums of files that have not changed since, as gigabytes take their time.
    """
    known = json.loads(notes.read_text()) if notes is not None and notes.exists() else {}
    checksums, found = {}, []
    for table in tables:
        for file in table.files():
            state = file.stat()
            key = f"{table.name}/{file.name} {state.st_size} {state.st_mtime_ns}"
            checksums[key] = known.get(key) or _checksum(file)
            found.append(
                {"table": table.name, "file": file.name, "bytes": state.st_size, "sha256": checksums[key]}
            )
    if notes is not None:
        notes.write_text(json.dumps(checksums) + "\n")
    return found


def _checksum(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
