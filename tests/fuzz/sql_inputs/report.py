"""The report: how many statements ended how in each mode, and every difference."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyspark

from tests.fuzz.sql_inputs.judge import KINDS
from tests.fuzz.sql_inputs.run import Result

_QUERIES = tuple(kind for kind in KINDS if kind not in ("rejected", "command"))


def differences(results: Iterable[Result]) -> list[Result]:
    """The results that are wrong answers, or failures of one side."""
    return [result for result in results if result.outcome.kind == "differ"]


def render(results: Sequence[Result]) -> str:
    """A table with a line a mode, then every difference with its file and statement."""
    modes = dict.fromkeys(result.mode for result in results)
    heads = ["mode", "files", "queries", *KINDS]
    rows = [heads]
    for mode in modes:
        own = [result for result in results if result.mode == mode]
        counts = Counter(result.outcome.kind for result in own)
        queries = sum(counts[kind] for kind in _QUERIES)
        files = len({result.file for result in own})
        rows.append([mode, str(files), str(queries), *(str(counts[kind]) for kind in KINDS)])
    widths = [max(len(row[index]) for row in rows) for index in range(len(heads))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    for kind in ("several answers", "differ"):
        for result in results:
            if result.outcome.kind == kind:
                lines.append(render_one(result))
    return "\n".join(lines)


def as_json(results: Sequence[Result]) -> dict[str, object]:
    """Versions, counts by mode, counts by file, and all statements that are not the same or setup."""
    by_mode: dict[str, Counter[str]] = {}
    by_file: dict[str, Counter[str]] = {}
    for result in results:
        by_mode.setdefault(result.mode, Counter())[result.outcome.kind] += 1
        by_file.setdefault(f"{result.file} ({result.mode})", Counter())[result.outcome.kind] += 1
    boring = ("same", "same in part", "command")
    return {
        "versions": {
            "spark": pyspark.__version__,
            "pyarrow": pa.__version__,
            "python": platform.python_version(),
        },
        "modes": by_mode,
        "files": by_file,
        "statements": [result.as_dict() for result in results if result.outcome.kind not in boring],
    }


def render_one(result: Result) -> str:
    """One statement, where it stands, and what came of it."""
    settings = "".join(f" {key}={value}" for key, value in result.settings.items())
    head = f"\n{result.outcome.kind}: {result.file} statement {result.number} ({result.mode}){settings}"
    statement = "\n".join(f"    {line}" for line in result.statement.split("\n"))
    return f"{head}\n{statement}\n  {result.outcome.detail}"
