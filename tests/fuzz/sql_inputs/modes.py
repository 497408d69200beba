"""How the queries of an input meet the engine: as they are, over Parquet files, or with constants unfolded."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from pyspark.sql import SparkSession

from kquery_spark.spark_bridge.session.settings import EXCLUDED_RULES_SETTING, OPTIMIZER_RULES
from tests.fuzz.sql_inputs.parse import SqlInput
from tests.fuzz.sql_inputs.tables import POSTGRES_FUNCTIONS

Mode = Literal["as-is", "parquet", "unfolded"]
MODES: tuple[Mode, ...] = ("as-is", "parquet", "unfolded")
_FOLDING = (
    "ConstantFolding",
    "ConvertToLocalRelation",
    "NullPropagation",
    "ConstantPropagation",
    "OptimizeIn",
    "BooleanSimplification",
    "SimplifyConditionals",
    "PropagateEmptyRelation",
    "FoldablePropagation",
)
UNFOLDED = {EXCLUDED_RULES_SETTING: ",".join(OPTIMIZER_RULES + rule for rule in _FOLDING)}
"""Without these rules the engine computes what Spark's optimizer would otherwise have computed."""
BASE = {"spark.sql.session.timeZone": "America/Los_Angeles", "spark.sql.shuffle.partitions": "4"}
SKIPPED_DIRECTORIES = frozenset({"udaf", "udtf"})
"""Their functions are made by Spark's own test classes."""
_UDF = re.compile(r"\budf\s*\(", re.IGNORECASE)
_VALUES = re.compile(r"\bVALUES\s*(?=\()", re.IGNORECASE)
_BEFORE_VALUES = re.compile(r"(?:^|\(|\bFROM|\bJOIN|\bAS|,)\s*$", re.IGNORECASE)
_VIEW = re.compile(
    r"CREATE\s+(?:OR\s+REPLACE\s+)?(?P<temporary>(?:GLOBAL\s+)?TEMP(?:ORARY)?\s+)?VIEW\s+"
    r"(?:IF\s+NOT\s+EXISTS\s+)?(?P<name>[\w`.]+)",
    re.IGNORECASE,
)
_QUERY = re.compile(
    r"[\s(]*(?:/\*.*?\*/\s*)*[\s(]*(?:SELECT|WITH|VALUES|FROM|TABLE)\b", re.IGNORECASE | re.DOTALL
)


def session_settings(source: SqlInput, mode: Mode) -> dict[str, str]:
    """The settings of the suite for the directory of a file, and those of the mode; the file's own come after."""
    settings = dict(BASE)
    if source.directory == "timestampNTZ":
        settings["spark.sql.timestampType"] = "TIMESTAMP_NTZ"
    else:
        settings["spark.sql.ansi.enabled"] = str(source.directory != "nonansi").lower()
    if _is_postgres(source):
        settings["spark.sql.legacy.interval.enabled"] = "true"
    return settings | (UNFOLDED if mode == "unfolded" else {})


def create_functions(session: SparkSession, source: SqlInput) -> None:
    """The functions that PostgreSQL's inputs call."""
    if _is_postgres(source):
        for statement in POSTGRES_FUNCTIONS:
            session.sql(statement)


def _is_postgres(source: SqlInput) -> bool:
    return "postgreSQL" in source.name.split("/")


def without_udf(source: SqlInput, statement: str) -> str:
    """The statement with the suite's identity function ``udf(x)`` as ``(x)``."""
    return _UDF.sub("(", statement) if source.directory == "udf" else statement


class FileWriter:
    """Puts Parquet files in the place of inline tables and of temporary views, for the mode ``parquet``."""

    def __init__(self, session: SparkSession, directory: Path) -> None:
        self._session = session
        self._directory = directory
        self._written: dict[str, str | None] = {}

    def rewrite(self, statement: str) -> str:
        """The query or view with ``(SELECT * FROM parquet.`...`)`` for each ``VALUES (...), (...)`` it can write."""
        if not (_QUERY.match(statement) or _VIEW.match(statement)):
            return statement
        done, position = [], 0
        for match in _VALUES.finditer(statement):
            start = match.start()
            if start < position or not _BEFORE_VALUES.search(statement, 0, start):
                continue
            end = _end_of_rows(statement, match.end())
            path = self._write(statement[start:end]) if end else None
            if end and path is not None:
                done += [statement[position:start], f"(SELECT * FROM parquet.`{path}`)"]
                position = end
        return "".join([*done, statement[position:]])

    def materialize(self, statement: str) -> None:
        """Read a temporary view that the statement has created from a file of its rows from now on."""
        match = _VIEW.match(statement)
        if match is None or not match["temporary"] or "GLOBAL" in match["temporary"].upper():
            return
        path = self._write(f"SELECT * FROM {match['name']}", retry=True)
        if path is not None:
            self._session.sql(
                f"CREATE OR REPLACE TEMPORARY VIEW {match['name']} AS SELECT * FROM parquet.`{path}`"
            )

    def _write(self, query: str, retry: bool = False) -> str | None:
        """The directory with the rows of a query; None where they have no place in Parquet."""
        if retry or query not in self._written:
            path = str(self._directory / f"rows-{len(list(self._directory.iterdir()))}")
            try:
                self._session.sql(query).coalesce(1).write.parquet(path)
                self._written[query] = path
            except Exception:
                self._written[query] = None
        return self._written[query]


def _end_of_rows(text: str, position: int) -> int | None:
    """Where the rows ``(...), (...)`` that begin at ``position`` end; None where parentheses do not match."""
    while True:
        end = _closing(text, position)
        if end is None:
            return None
        following = re.compile(r"\s*,\s*(?=\()").match(text, end)
        if following is None:
            return end
        position = following.end()


def _closing(text: str, position: int) -> int | None:
    """The position after the parenthesis that closes the one at ``position``, quotes minded."""
    depth, quote, index = 0, "", position
    while index < len(text):
        char = text[index]
        if quote:
            if char == "\\" and quote != "`":
                index += 1
            elif char == quote:
                quote = ""
        elif char in "'\"`":
            quote = char
        elif char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
            if depth == 0:
                return index + 1
        index += 1
    return None
