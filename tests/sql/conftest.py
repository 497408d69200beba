"""Makes a test file of every SQL file below this directory: each query on Spark and in the engine, with the same rows or error."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.conftest import SPARK_VERSION, exhaustive
from tests.matrix import DECLINED
from tests.sql.engines import (
    MANY_TASKS,
    ONE_TASK,
    TableFiles,
    Verdict,
    is_in_sample,
    open_engines,
    open_session,
)
from tests.sql.sql_file import TABLES, Query, SqlFile, Variant, read_sql_file

DIRECTORY = Path(__file__).parent
#: Queries of a file that run at the same time: Spark's latency, for which one core would wait each time.
QUERIES_AT_ONCE = 4

Opened = tuple[SqlFile, Variant]


class SqlTestFile(pytest.Module):
    """A SQL file as a module with one test function, which takes the file's queries as parameters."""

    def _getobj(self) -> ModuleType:
        module = ModuleType(self.path.stem)
        module.test_sql = _test_of(read_sql_file(self.path))  # type: ignore[attr-defined]
        return module


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> SqlTestFile | None:
    if file_path.suffix != ".sql" or file_path.parent == TABLES:
        return None
    module: SqlTestFile = SqlTestFile.from_parent(parent, path=file_path)
    return module


def _test_of(file: SqlFile) -> Any:
    @pytest.mark.filterwarnings("ignore::kquery_spark.FallbackWarning")
    @pytest.mark.parametrize(("opened", "query", "run"), list(_cases(file)))
    def test_sql(
        runs: Runs, record_property: Callable[[str, object], None], opened: Opened, query: Query, run: str
    ) -> None:
        if not _runs_here(query):
            pytest.skip("for other versions of Spark")
        verdict = runs.verdict(opened, query, run)
        if verdict.declined is not None:
            record_property(DECLINED, verdict.declined)
        if verdict.problems:
            where = f"{file.path.relative_to(DIRECTORY.parents[1])}:{query.line}"
            pytest.fail("\n".join([f"{where}: {query.sql}", *verdict.problems]), pytrace=False)

    return test_sql


def _cases(file: SqlFile) -> Iterator[Any]:
    variants = file.variants()
    for variant in variants:
        opened = (file, variant)
        values = [*(v for _, v in variant.config), variant.format] if len(variants) > 1 else []
        for query in file.queries:
            name = f"{':'.join([str(query.line), *values])} {_first_words(query.sql)}"
            yield pytest.param(opened, query, ONE_TASK, id=name)
            if query.error is None:  # an error ends its worker, and starting another one takes long
                marks = () if is_in_sample(query) else exhaustive
                yield pytest.param(opened, query, MANY_TASKS, marks=marks, id=f"{name} (many tasks)")


def _first_words(sql: str) -> str:
    """Return the beginning of a query as a readable part of a test's id: whole words, at most 60 characters."""
    return textwrap.shorten(sql, 60, placeholder=" ...").replace("[", "(").replace("]", ")")


class Runs:
    """The files' queries; those of one file run at the same time; a file is open until the next one's turn."""

    def __init__(
        self, spark: SparkSession, directory: Path, selected: Sequence[tuple[Opened, Query, str]]
    ) -> None:
        self._spark = spark
        self._tables = TableFiles(directory)
        self._selected = selected
        self._opened: Opened | None = None
        self._verdicts: dict[Query, Future[dict[str, Verdict]]] = {}
        self._stack = ExitStack()

    def verdict(self, opened: Opened, query: Query, run: str) -> Verdict:
        """Return the verdict on a run of a query."""
        if opened is not self._opened:
            self._open(opened)
        return self._verdicts[query].result()[run]

    def _open(self, opened: Opened) -> None:
        self.close()
        engines = self._stack.enter_context(open_engines(self._spark, *opened, self._tables))
        pool = self._stack.enter_context(ThreadPoolExecutor(QUERIES_AT_ONCE))
        self._stack.callback(pool.shutdown, cancel_futures=True)
        selected: dict[Query, list[str]] = {}
        for other, query, run in self._selected:
            if other is opened:
                selected.setdefault(query, []).append(run)
        self._verdicts = {
            query: pool.submit(engines.verdict, query, runs) for query, runs in selected.items()
        }
        self._opened = opened

    def close(self) -> None:
        """Drop the views of the open file, and do not start more of its queries."""
        self._stack.close()
        self._opened = None


@pytest.fixture(scope="session")
def runs(
    request: pytest.FixtureRequest, spark: SparkSession, loops: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Runs]:
    """What runs the queries of all SQL files, in a session of its own."""
    calls = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    selected = [
        (c["opened"], c["query"], c["run"]) for c in calls if "opened" in c and _runs_here(c["query"])
    ]
    with open_session(spark) as session:
        opened = Runs(session, tmp_path_factory.mktemp("sql"), selected)
        yield opened
        opened.close()


def _runs_here(query: Query) -> bool:
    return query.min_version <= SPARK_VERSION and (
        query.max_version is None or query.max_version >= SPARK_VERSION
    )
