"""Qualifies queries in SQL files: Spark plans them without running them, and the cost model estimates the savings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kquery_spark.accelerate.explain import ENGINE, Explanation, explain
from kquery_spark.errors import SourceError
from kquery_spark.qualify.estimate import Saving
from kquery_spark.qualify.judgment import RunsOn
from kquery_spark.qualify.report import Qualification, QueryOutcome, QueryReport, ReportNode
from kquery_spark.spark_bridge.plan.query_text import is_query
from kquery_spark.spark_bridge.session.failures import SPARK_ERRORS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ENDING = ".sql"
_NOT_A_QUERY = "only queries can be qualified without running them, and this statement is not a query"


def sql_files(path: str | Path) -> list[Path]:
    """Return the ``.sql`` files at a path: the file itself, or the files directly in a directory."""
    path = Path(path)
    if path.is_file():
        return [path] if path.suffix == _ENDING else []
    return sorted(path.glob(f"*{_ENDING}")) if path.is_dir() else []


def qualify_sql(spark: SparkSession, files: list[Path]) -> Qualification:
    """Plan the query of each file over the tables and views of the session. No query and no other statement runs."""
    queries = tuple(_query(spark, number, file) for number, file in enumerate(files, 1))
    return Qualification((), queries)


def _query(spark: SparkSession, number: int, file: Path) -> QueryReport:
    try:
        statement = file.read_text(encoding="utf-8").strip().rstrip(";")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"cannot read {file}: {error}") from None
    try:
        if not is_query(spark, statement):  # spark.sql would run it at once
            return _report(number, file, QueryOutcome.FAILED, error=_NOT_A_QUERY)
        explanation = explain(spark.sql(statement))
    except SPARK_ERRORS as error:
        return _report(number, file, QueryOutcome.FAILED, error=str(error).partition("\n")[0])
    return _report(number, file, QueryOutcome.NOT_RUN, explanation)


def _report(
    number: int, file: Path, outcome: QueryOutcome, explanation: Explanation | None = None, error: str = ""
) -> QueryReport:
    saved, nodes = 0.0, tuple[ReportNode, ...]()
    if explanation is not None:
        saved = sum(term.seconds for d in explanation.decisions if d.accelerate for term in d.terms)
        nodes = tuple(
            ReportNode(
                node.name,
                node.depth,
                RunsOn.ENGINE if node.runs == ENGINE else RunsOn.SPARK,
                node.reason or "",
            )
            for node in explanation.nodes
        )
    saving = Saving(*[max(0.0, saved)] * 3)
    share = explanation.coverage if explanation is not None else 0.0
    return QueryReport(
        application=str(file.parent),
        number=number,
        description=file.name,
        outcome=outcome,
        seconds=None,
        task_seconds=0.0,
        cpu_seconds=0.0,
        bytes_read=0,
        shuffle_bytes=0,
        engine_share=share,
        wall=saving,
        tasks=Saving(),
        nodes=nodes,
        error=error,
    )
