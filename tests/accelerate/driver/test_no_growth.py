"""Many queries in one process: no memory, thread, file or JVM object more with each; threads and sessions do not mix."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.finalizer import ThreadSafeFinalizer

from kquery_spark import kquery_plan
from kquery_spark.accelerate.execution.dataframe import execution_of
from tests.accelerate.driver.test_driver import IN_DRIVER, STAGES, WORKERS
from tests.conftest import settings
from tests.support.memory import MEGABYTES, resident_memory

pytestmark = pytest.mark.faults

ROWS = 20_000


@pytest.fixture(scope="module", autouse=True)
def numbers(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("numbers")
    rows = {
        "k": [i % 10 for i in range(ROWS)],
        "v": range(ROWS),
        "t": [f"text {i % 100}" for i in range(ROWS)],
    }
    for i in range(2):
        pq.write_table(pa.table(rows), directory / f"{i}.parquet", row_group_size=5_000)
    spark.read.parquet(str(directory)).createOrReplaceTempView("numbers")
    yield str(directory)
    spark.catalog.dropTempView("numbers")


@dataclass(frozen=True)
class Held:
    """What this process holds."""

    nbytes: int
    threads: int
    files: int
    jvm_objects: int

    @classmethod
    def now(cls) -> Held:
        gc.collect()
        return cls(
            resident_memory(),
            threading.active_count(),
            len(os.listdir("/proc/self/fd")),
            len(ThreadSafeFinalizer.finalizers),
        )


def query(number: int) -> str:
    return (
        f"SELECT a.k, count(*) AS c, sum(a.v + {number}) AS s, max(b.t) AS t FROM numbers AS a "
        f"JOIN (SELECT DISTINCT k, t FROM numbers WHERE v < {100 + number % 7}) AS b ON a.k = b.k AND a.t = b.t GROUP BY a.k"
    )


def run(spark: Any, number: int, in_driver: bool = True) -> None:
    fast = spark.sql(query(number)).transform(kquery_plan, when="always", fallback="error")
    assert (execution_of(fast).placement.driver is not None) is in_driver
    assert len(fast.collect()) == 10
    if number % 3 == 0:
        assert fast.count() == len(fast.take(20)) == fast.toArrow().num_rows == 10


@pytest.mark.parametrize(
    ("where", "times"), [(IN_DRIVER, 200), (STAGES, 40), (WORKERS, 40)], ids=["driver", "stages", "workers"]
)
def test_queries_leave_nothing_behind(spark: Any, where: dict[str, str], times: int):
    with settings(spark, where):
        for number in range(times // 4):
            run(spark, number, where is not WORKERS)
        before = Held.now()
        for number in range(times // 4, times):
            run(spark, number, where is not WORKERS)
        after = Held.now()
    assert after.threads <= before.threads
    assert after.files <= before.files + 2
    assert after.jvm_objects <= before.jvm_objects + times // 10
    assert after.nbytes <= before.nbytes + 40 * MEGABYTES


def test_what_fails_or_is_too_much_leaves_nothing_behind(spark: Any):
    def fail(number: int) -> None:
        wrong = spark.sql(f"SELECT k, sum(1 div (v - {number})) AS s FROM numbers GROUP BY k")
        with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
            wrong.transform(kquery_plan, when="always", fallback="error").collect()
        much = spark.sql(
            f"SELECT count(*) AS c FROM numbers AS a JOIN numbers AS b ON a.k = b.k AND a.v <> {number}"
        )
        fast = much.transform(kquery_plan, when="always", fallback="error")
        assert len(fast.take(1)) == 1

    with settings(spark, IN_DRIVER):
        for number in range(2):
            fail(number)
        before = Held.now()
        for number in range(2, 8):
            fail(number)
        after = Held.now()
    assert after.threads <= before.threads
    assert after.files <= before.files + 2
    assert after.nbytes <= before.nbytes + 40 * MEGABYTES


def together(work: list[Callable[[], Any]]) -> list[Any]:
    with ThreadPoolExecutor(len(work)) as pool:
        return [f.result() for f in [pool.submit(w) for w in work]]


def test_threads_share_a_session(spark: Any):
    def answers(number: int) -> list[list[Any]]:
        frames = [spark.sql(query(100 * number + i)) for i in range(4)]
        return [sorted(f.transform(kquery_plan, when="always").collect()) for f in frames]

    with settings(spark, IN_DRIVER):
        alone = [answers(number) for number in range(16)]
        together([lambda: answers(0)] * 16)
        before = Held.now()
        assert together([lambda n=n: answers(n) for n in range(16)]) == alone  # type: ignore[misc]
        after = Held.now()
    assert after.threads <= before.threads
    assert after.files <= before.files + 16
    assert sorted(spark.sql(query(0)).collect()) == alone[0][0]


def test_sessions_with_other_settings_at_once(spark: Any, numbers: str):
    zones = ["UTC", "Asia/Tokyo", "America/New_York", "Europe/Berlin"]
    text = "SELECT k, max(CAST(timestamp_seconds(v * 3600) AS string)) AS t, max(try_divide(v, k)) AS q FROM numbers GROUP BY k"

    def session(zone: str, where: dict[str, str]) -> Any:
        made = spark.newSession()
        for name, value in {"spark.sql.session.timeZone": zone, **where}.items():
            made.conf.set(name, value)
        made.read.parquet(numbers).createOrReplaceTempView("numbers")
        return made

    places = [IN_DRIVER, STAGES, WORKERS, IN_DRIVER]
    sessions = [session(zone, where) for zone, where in zip(zones, places, strict=True)]
    expected = [sorted(s.sql(text).collect()) for s in sessions]
    assert len(set(map(str, expected))) == 4

    def answers(made: Any) -> list[Any]:
        return [
            sorted(made.sql(text).transform(kquery_plan, when="always", fallback="error").collect())
            for _ in range(5)
        ]

    actual = together([lambda s=s: answers(s) for s in sessions])  # type: ignore[misc]
    assert actual == [[one] * 5 for one in expected]
