"""SQL statements that write the rows of a query: INSERT and CREATE TABLE AS SELECT, as Spark's parser sees them.

Spark runs such a statement while it analyzes it, so its query never becomes a DataFrame with an action. Here it does: the
statement stays Spark's own parsed plan, and only the query in it is exchanged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from kquery_spark.spark_bridge.failures import SPARK_ERRORS
from kquery_spark.spark_bridge.file_writes import WriteTarget, named_target
from kquery_spark.spark_bridge.pyspark_names import ClassicDataFrame
from kquery_spark.spark_bridge.session import Bridge

_PLANS = "org.apache.spark.sql.catalyst.plans.logical."
_INSERT, _INSERT_DIRECTORY = "InsertIntoStatement", "InsertIntoDir"
_CREATE, _REPLACE, _WITH = "CreateTableAsSelect", "ReplaceTableAsSelect", "UnresolvedWith"
_VALUES = ("LocalRelation", "UnresolvedInlineTable")
# The first word of a statement, after comments.
_FIRST_WORD = re.compile(r"(?:\s|--[^\n]*\n|/\*(?:(?!\*/).)*\*/)*(\w+)", re.DOTALL)
_INSERTS = re.compile(r"\binsert\b", re.IGNORECASE)
# In an INSERT's query it may stand for the default of the column that it fills, which only the whole statement knows; the
# database of that name does not.
_DEFAULT = re.compile(r"\bdefault\b(?!`?\s*\.)", re.IGNORECASE)


@dataclass(frozen=True)
class WriteStatement:
    """A statement as Spark's parser gives it, not analyzed yet.

    plan: the statement. query: whose rows it writes, not analyzed either. target: what it writes to.
    """

    plan: Any
    query: Any
    target: WriteTarget

    def run_for(self, frame: DataFrame, link: Bridge) -> DataFrame:
        """Run the statement with the rows of a DataFrame; gives the DataFrame that ``spark.sql`` would."""
        children = self.plan.children()
        array = link.gateway.new_array(link.gateway.jvm.java.lang.Object, children.size())
        for i in range(children.size()):
            array[i] = children.apply(i)
        array[children.size() - 1] = link.analyzed(frame)
        return _frame(self.plan.withNewChildren(_sequence(array, link)), link)

    def query_frame(self, link: Bridge) -> DataFrame:
        """The query as a DataFrame; Spark's error where it cannot be analyzed without the statement."""
        return _frame(self.query, link)


def parse_write(text: str, link: Bridge) -> WriteStatement | None:
    """The statement in a text of SQL; None for other statements, and for those whose failure may leave something behind."""
    if not _may_write(text):
        return None
    try:
        plan = link.spark._jsparkSession.sessionState().sqlParser().parsePlan(text)
        return _write(plan, link)
    except SPARK_ERRORS:  # which Spark raises for the statement, too
        return None


def _may_write(text: str) -> bool:
    """Whether the text is worth parsing: other statements take no more time than without the engine."""
    first = _FIRST_WORD.match(text)
    word = "" if first is None else first[1].lower()
    if word == "with":
        word = "insert" if _INSERTS.search(text) else ""
    return word in ("insert", "create", "replace") and not _DEFAULT.search(text)


def _write(plan: Any, link: Bridge) -> WriteStatement | None:
    name, ctes = str(plan.nodeName()), None
    if name == _WITH:  # WITH ... INSERT: the relations are the query's
        ctes, plan = plan, plan.children().apply(0)
        name = str(plan.nodeName())
    target = _target(name, plan, link)
    if target is None:
        return None
    children = plan.children()
    query = children.apply(children.size() - 1)
    if query.nodeName() in _VALUES:
        return None
    if ctes is not None:
        array = link.gateway.new_array(link.gateway.jvm.java.lang.Object, 1)
        array[0] = query
        query = ctes.withNewChildren(_sequence(array, link))
    return WriteStatement(plan, query, target)


def _target(name: str, plan: Any, link: Bridge) -> WriteTarget | None:
    """What a statement writes to; None for statements of other kinds and targets of other systems."""
    if name == _INSERT:
        table = plan.table()
        if table.nodeName() != "UnresolvedRelation":
            return None
        mode = "overwrite" if plan.overwrite() else "append"
        return named_target(link.spark, _names(table.multipartIdentifier()), mode)
    if name in (_CREATE, _REPLACE):
        identifier = plan.name()
        if identifier.nodeName() != "UnresolvedIdentifier":
            return None
        mode = "overwrite" if name == _REPLACE else "append"
        return named_target(
            link.spark, _names(identifier.nameParts()), mode, _provider(plan.tableSpec(), link)
        )
    if name == _INSERT_DIRECTORY:
        location = plan.storage().locationUri()
        if not location.isDefined() or not plan.provider().isDefined() or not plan.overwrite():
            return None
        return WriteTarget(str(plan.provider().get()), "overwrite", str(location.get().toString()))
    return None


def _provider(spec: Any, link: Bridge) -> str:
    """The format of a table that is to be made; ``hive`` where that decides it."""
    if spec.provider().isDefined():
        return str(spec.provider().get())
    conf = link.spark.conf
    if spec.serde().isDefined() or conf.get("spark.sql.legacy.createHiveTableByDefault", "false") == "true":
        return "hive"
    return str(conf.get("spark.sql.sources.default"))


def _names(parts: Any) -> tuple[str, ...]:
    return tuple(str(parts.apply(i)) for i in range(parts.size()))


def _sequence(array: Any, link: Bridge) -> Any:
    return link.gateway.jvm.scala.Predef.wrapRefArray(array).toIndexedSeq()


def _frame(plan: Any, link: Bridge) -> DataFrame:
    rows = link.jvm.call(link.api.dataset, "ofRows", link.spark._jsparkSession, plan)
    return ClassicDataFrame(rows, link.spark)
