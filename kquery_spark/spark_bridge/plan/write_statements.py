"""SQL statements that write the rows of a query (INSERT, CREATE TABLE AS SELECT), as Spark's parser returns them.

``spark.sql`` runs such a statement at once, so its query never becomes a DataFrame with an action. This module replaces the
query inside Spark's parsed plan and leaves the rest of the statement as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from kquery_spark.spark_bridge.frames.pyspark_names import ClassicDataFrame
from kquery_spark.spark_bridge.relations.file_writes import WriteTarget, named_target
from kquery_spark.spark_bridge.session.bridge import Bridge
from kquery_spark.spark_bridge.session.failures import SPARK_ERRORS
from kquery_spark.spark_bridge.session.setting_values import is_true

_INSERT, _INSERT_DIRECTORY = "InsertIntoStatement", "InsertIntoDir"
_CREATE, _REPLACE, _WITH = "CreateTableAsSelect", "ReplaceTableAsSelect", "UnresolvedWith"
_VALUES = ("LocalRelation", "UnresolvedInlineTable")
# The first word of a statement, after comments.
_FIRST_WORD = re.compile(r"(?:\s|--[^\n]*\n|/\*(?:(?!\*/).)*\*/)*(\w+)", re.DOTALL)
# For each first word of a statement that may write: a pattern that every such statement contains.
_REQUIRED_WORD = {
    "insert": re.compile("insert", re.IGNORECASE),
    "with": re.compile(r"\binsert\b", re.IGNORECASE),
    "create": re.compile(r"\btable\b", re.IGNORECASE),
    "replace": re.compile(r"\btable\b", re.IGNORECASE),
}
# In an INSERT's query, DEFAULT may mean the default of the target column, which only the whole statement knows. A database
# named ``default`` is fine.
_DEFAULT = re.compile(r"\bdefault\b(?!`?\s*\.)", re.IGNORECASE)


@dataclass(frozen=True)
class WriteStatement:
    """A parsed statement, not analyzed yet.

    plan: the statement. query: the query whose rows it writes, not analyzed either. target: the table or directory.
    """

    plan: Any
    query: Any
    target: WriteTarget

    def run_for(self, frame: DataFrame, bridge: Bridge) -> DataFrame:
        """Run the statement with the rows of a DataFrame; returns the DataFrame that ``spark.sql`` would."""
        query_position = self.plan.children().size() - 1
        return _frame(bridge.replaced(self.plan, {(query_position,): frame}), bridge)

    def query_frame(self, bridge: Bridge) -> DataFrame:
        """Return the query as a DataFrame. Raises Spark's error if it cannot be analyzed without the statement."""
        return _frame(self.query, bridge)


def parse_write(text: str, bridge: Bridge) -> WriteStatement | None:
    """Parse a statement that writes; None for other statements and for targets that the engine does not write to."""
    try:
        plan = bridge.spark._jsparkSession.sessionState().sqlParser().parsePlan(text)
        return _write(plan, bridge)
    except SPARK_ERRORS:  # Spark raises the same error when it runs the statement
        return None


def may_write(text: str) -> bool:
    """Return whether a statement may write. This needs no parser, so that queries are not parsed twice."""
    first = _FIRST_WORD.match(text)
    required = None if first is None else _REQUIRED_WORD.get(first[1].lower())
    return required is not None and bool(required.search(text)) and not _DEFAULT.search(text)


def _write(plan: Any, bridge: Bridge) -> WriteStatement | None:
    name, ctes = str(plan.nodeName()), None
    if name == _WITH:  # WITH ... INSERT: the common table expressions move into the query
        ctes, plan = plan, plan.children().apply(0)
        name = str(plan.nodeName())
    target = _target(name, plan, bridge)
    if target is None:
        return None
    children = plan.children()
    query = children.apply(children.size() - 1)
    if query.nodeName() in _VALUES:
        return None
    if ctes is not None:
        query = ctes.withNewChildren(bridge.jvm.sequence([query]).toIndexedSeq())
    return WriteStatement(plan, query, target)


def _target(name: str, plan: Any, bridge: Bridge) -> WriteTarget | None:
    """The target of a statement; None for other kinds of statements and for targets of other systems."""
    if name == _INSERT:
        table = plan.table()
        if table.nodeName() != "UnresolvedRelation":
            return None
        mode = "overwrite" if plan.overwrite() else "append"
        return named_target(bridge.spark, _names(table.multipartIdentifier()), mode)
    if name in (_CREATE, _REPLACE):
        identifier = plan.name()
        if identifier.nodeName() != "UnresolvedIdentifier":
            return None
        mode = "overwrite" if name == _REPLACE else "append"
        return named_target(
            bridge.spark, _names(identifier.nameParts()), mode, _provider(plan.tableSpec(), bridge)
        )
    if name == _INSERT_DIRECTORY:
        location = plan.storage().locationUri()
        if not location.isDefined() or not plan.provider().isDefined() or not plan.overwrite():
            return None
        return WriteTarget(str(plan.provider().get()), "overwrite", str(location.get().toString()))
    return None


def _provider(spec: Any, bridge: Bridge) -> str:
    """The format of the table that a statement creates."""
    if spec.provider().isDefined():
        return str(spec.provider().get())
    conf = bridge.spark.conf
    if spec.serde().isDefined() or is_true(conf.get("spark.sql.legacy.createHiveTableByDefault", "false")):
        return "hive"
    return str(conf.get("spark.sql.sources.default"))


def _names(parts: Any) -> tuple[str, ...]:
    return tuple(str(parts.apply(i)) for i in range(parts.size()))


def _frame(plan: Any, bridge: Bridge) -> DataFrame:
    rows = bridge.jvm.call(bridge.api.dataset, "ofRows", bridge.spark._jsparkSession, plan)
    return ClassicDataFrame(rows, bridge.spark)
