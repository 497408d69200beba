"""Hostile plan bytes: mutations of valid messages, read under a watch for side effects, time and memory.

``python -m tests.stages.hostile 100000 --seed 1 --seconds 3600`` reads that many in a child process, or as many as the
time allows. It ends and reports in every case: a message that does not end is a finding, and a new child goes on behind it.
The test suite reads a few thousand in its own process.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any

import pyarrow as pa

from kquery_spark.errors import SerializationError
from kquery_spark.expr import AggregateCall, Call, Column, HigherOrder, Literal, Named, UserCall
from kquery_spark.functions.user import user_function
from kquery_spark.logical import Aggregate, Filter, LogicalPlan, Projection, Scan
from kquery_spark.logical.subqueries import ScalarSubquery
from kquery_spark.planner import plan_query
from kquery_spark.sources.base import DataFile
from kquery_spark.sources.memory import memory_source
from kquery_spark.sources.parquet.source import ParquetSource
from kquery_spark.sources.remote import RemoteTable
from kquery_spark.stages.graph import build_stages
from kquery_spark.stages.serializable import registry
from kquery_spark.stages.serialization import from_bytes, to_bytes
from tests.stages.mutations import BYTES, PLANS, mutate
from tests.stages.plans import CONFIGS, LOGICAL, LONG, MEMORY, STRING, A
from tests.support.fuzzed_cases import run_in_children, time_limit

CPU_SECONDS = 10.0  # for one message, on a busy machine
WALL_SECONDS = 120  # for one message; a child that takes longer is killed
MEMORY_BYTES = 512 << 20  # more than before, for one message
_SIDE_EFFECTS = ("import", "open", "exec", "compile", "marshal.", "pickle.", "subprocess.", "os.", "socket.",
                 "ctypes.", "shutil.", "tempfile.", "glob.", "urllib.", "mmap.", "code.__new__")  # fmt: skip
_PLAIN = (type(None), bool, int, float, str, bytes, Decimal, Enum, pa.DataType, pa.Schema, pa.Table)


def corpus() -> list[bytes]:
    """Valid messages: every logical class, stages of several shapes, scalars of all kinds, rows, files, functions."""
    nested = pa.table(
        {
            "list": pa.array([[1, 2], None, []], pa.list_(LONG)),
            "struct": pa.array([{"x": 1, "y": "a"}, None, {"x": None, "y": None}]),
            "map": pa.array([[("k", 1.5)], None, []], pa.map_(STRING, pa.float64())),
            "dictionary": pa.array(["x", None, "y"]).dictionary_encode(),
            "decimal": pa.array([None, 1, 2], pa.decimal128(20, 2)),
        }
    )
    files = tuple(DataFile(f"/data/part-{i}.parquet", 100 + i, 7, ("x", i)) for i in range(20))
    schema = pa.schema([("a", LONG), ("s", STRING)])
    scan, function = Scan("t", MEMORY), user_function(len, "bigint")
    largest = Aggregate(scan, (), (Named(AggregateCall.of("max", A), "top"),))
    tags = HigherOrder.of("transform", [Column("tags", pa.list_(LONG))], Call.of("negative", Column("x", LONG)),
                          [Column("x", LONG)])  # fmt: skip
    values: list[Any] = [
        *LOGICAL.values(), MEMORY, memory_source(nested), tags,
        Scan("files", ParquetSource(files, schema, ("s",))), Scan("remote", RemoteTable("employee", schema)),
        Projection(scan, (Named(ScalarSubquery(largest), "top"),)),
        Filter(scan, Call.of("eq", UserCall(function.name, (A,), LONG, True, function.code), Literal(1, LONG))),
        (None, True, 1, -(2**63), 2**200, 1.5, float("nan"), b"bytes", "text", Decimal("-1.20"), LONG, schema),
    ]  # fmt: skip
    plans = [LOGICAL[name] for name in ("Aggregate", "Join", "Sort", "Window", "Union", "Expand")]
    values += [build_stages(plan_query(plan, config), config) for config in CONFIGS for plan in plans]
    return [to_bytes(value) for value in values]


@dataclass
class Report:
    """How many messages ended how, the worst of them, and what must not have happened."""

    outcomes: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    cpu_seconds: float = 0.0
    slowest_seconds: float = 0.0
    slowest_message: str = ""
    largest_growth_bytes: int = 0

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {kind}" for kind, count in self.outcomes.most_common())
        lines = [
            f"{sum(self.outcomes.values())} messages: {counts}; {len(self.findings)} findings",
            f"{self.cpu_seconds:.0f} CPU seconds, slowest message {self.slowest_seconds:.2f} ({self.slowest_message}); "
            f"peak memory grew at most {self.largest_growth_bytes >> 20} MiB by one message",
        ]
        return "\n".join([*lines, *self.findings[:20]])


class _Watch:
    """Audit events of this thread between ``start`` and ``stop``; the hook itself stays for good."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self._thread = 0
        sys.addaudithook(self._hook)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if self._thread and self._thread == threading.get_ident() and event.startswith(_SIDE_EFFECTS):
            self.events.append(f"{event}{args!r:.200}")

    @contextmanager
    def watching(self) -> Iterator[list[str]]:
        self.events = []
        self._thread = threading.get_ident()
        try:
            yield self.events
        finally:
            self._thread = 0


_watch: list[_Watch] = []


def watch() -> _Watch:
    """The one watch of this process."""
    if not _watch:
        _watch.append(_Watch())
    return _watch[0]


@dataclass(frozen=True)
class Reading:
    """How reading one message ended. wrong: what must not have happened."""

    label: str
    kind: str
    wrong: list[str]
    cpu_seconds: float
    growth_bytes: int


def read_hostile(count: int, seed: int) -> Report:
    """Read ``count`` mutated messages of one seed in this process; ``findings`` is empty when nothing was wrong."""
    report = Report()
    for reading in _readings(0, count, seed):
        _add(report, reading)
    return report


def read_in_children(count: int, seed: int, seconds: float, wall_seconds: float = WALL_SECONDS) -> Report:
    """As ``read_hostile``, in child processes and for at most ``seconds``.

    A message that takes more than ``wall_seconds`` or kills its child is a finding; the next child continues behind it.
    """
    report, end = Report(), time.monotonic() + seconds
    for number, reading, problem in run_in_children(_readings, count, seed, wall_seconds, end):
        if reading is None:
            report.findings.append(f"seed {seed} message {number}: {problem}")
            continue
        _add(report, reading)
        if (number + 1) % 10_000 == 0:
            counts = f"{number + 1} messages, {report.cpu_seconds:.0f} CPU s, {len(report.findings)} findings"
            print(counts, file=sys.stderr, flush=True)
    return report


def _readings(start: int, count: int, seed: int) -> Iterator[Reading]:
    originals, watching = corpus(), watch()
    for data in originals:  # what a first message imports is not a finding
        to_bytes(from_bytes(data, object))
    for number in range(start, count):
        # each message has a generator of its own, so that it can be made again without those before it
        name, data = mutate(random.Random(f"{seed} {number}"), originals, (*BYTES, *PLANS, *PLANS))
        peak, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.thread_time()
        with watching.watching() as events:
            outcome = _outcome(data)
        seconds = time.thread_time() - begun
        growth = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) << 10
        kind, _, detail = outcome.partition(": ")
        wrong = [detail] if detail else []
        wrong += [f"side effect {event}" for event in events]
        wrong += [f"{seconds:.1f} CPU seconds"] if seconds > CPU_SECONDS else []
        wrong += [f"{growth >> 20} MiB"] if growth > MEMORY_BYTES else []
        label = f"seed {seed} message {number} ({name}, {len(data)} bytes)"
        yield Reading(label, kind, wrong, seconds, growth)


def _add(report: Report, reading: Reading) -> None:
    report.outcomes[reading.kind] += 1
    report.cpu_seconds += reading.cpu_seconds
    if reading.cpu_seconds > report.slowest_seconds:
        report.slowest_seconds, report.slowest_message = reading.cpu_seconds, reading.label
    report.largest_growth_bytes = max(report.largest_growth_bytes, reading.growth_bytes)
    report.findings += [f"{reading.label}: {wrong}" for wrong in reading.wrong]


def _outcome(data: bytes) -> str:
    try:
        with time_limit(WALL_SECONDS):
            value = from_bytes(data, object)
    except SerializationError:
        return "refused"
    except BaseException as error:
        return f"failed: {type(error).__name__}: {error!s:.200}"
    try:
        with time_limit(WALL_SECONDS):
            return _checked(value)
    except SerializationError as error:
        return f"decoded: cannot be written again: {error}"
    except RecursionError:
        return "decoded, too deep to compare"
    except BaseException as error:
        return f"decoded: {type(error).__name__}: {error!s:.200}"


def _checked(value: Any) -> str:
    """Whether a value holds only what plans may hold and is the same when it is written and read again."""
    waiting, seen = [value], set()
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if type(each) is tuple:
            waiting += each
        elif type(each) in registry().formats:
            waiting += registry().formats[type(each)].values(each)
        elif not isinstance(each, _PLAIN):
            return f"decoded: holds a {type(each).__name__}"
    data = to_bytes(value)
    again = from_bytes(data, object)
    if to_bytes(again) != data:
        return "decoded: another value when written and read again"
    if isinstance(value, LogicalPlan):
        assert isinstance(value.schema, pa.Schema)
    return "decoded"


def main() -> None:
    """Read as many messages as the command line says; exit code 1 for findings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=7200.0, help="run time (default: 7200)")
    options = parser.parse_args()
    start = time.monotonic()
    report = read_in_children(options.count, options.seed, options.seconds)
    print(
        f"{report}\n{time.monotonic() - start:.0f} s, pyarrow {pa.__version__}, Python {sys.version.split()[0]}"
    )
    sys.exit(bool(report.findings))


if __name__ == "__main__":
    main()
