"""Names a query by its tables and operators, because Spark describes most queries only by a line of code.

Example: ``collect at /jobs/daily.py:27`` becomes ``orders, cities: join, aggregate (collect at daily.py:27)``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kquery_spark.qualify.operators import Kind, operator
from kquery_spark.qualify.plan import PhysicalNode

# The description that Spark derives from a line of code, in the user's Python or in the JVM.
_CALL_SITE = re.compile(r"(?P<action>\S+) at (?P<file>.+):(?P<line>\d+)$")
_UNHELPFUL_FILE = re.compile(r"\.(java|scala)$|^<unknown>$")
_LOCATION = re.compile(r"Location: \w+ ?(?:\([^)]*\))? ?\[(?P<paths>[^\]]*)")
_PARTITION = re.compile(r"[^/=]+=[^/]*$")
_ENGINE_STAGE = re.compile(r"\w*MapInArrow kquery [\w-]+\(")
_MAX_TABLES = 4
_NAMELESS = {"Range": "range", "LocalTableScan": "inline rows", "InMemoryTableScan": "cached table"}


def runs_in_engine(plan: PhysicalNode) -> bool:
    """Return whether the plan has a stage of the engine, so that the query was accelerated when it ran."""
    return any(_ENGINE_STAGE.match(node.text) for node in plan.walk())


def summarize(plan: PhysicalNode) -> str:
    """Return the tables that a plan reads and its expensive operators, in the order of the data flow."""
    nodes = list(_children_first(plan))
    tables = list(dict.fromkeys(name for node in nodes if (name := table_name(node))))
    steps = [_step(node) for node in nodes]
    operators = [step for i, step in enumerate(steps) if step and step not in steps[:i]]
    if len(tables) > _MAX_TABLES:
        tables[_MAX_TABLES:] = [f"{len(tables) - _MAX_TABLES} more"]
    return f"{', '.join(tables)}: {', '.join(operators) or 'scan'}" if tables else ", ".join(operators)


def query_name(description: str, summary: str, number: int) -> tuple[str, str]:
    """Return the name of a query and a detail, which may be empty.

    If the user set the description, it is the name, and the summary is the detail. If Spark derived the description from a
    line of code, the summary is the name, and the line is the detail.
    """
    text = " ".join(description.split())
    match = _CALL_SITE.match(text)
    if not summary:
        return text or f"query {number}", ""
    if not text:
        return summary, ""
    if match is None:
        return text, summary
    file = match["file"].rpartition("/")[2]
    if _UNHELPFUL_FILE.search(file):  # a line of Spark itself says nothing about the query
        return summary, match["action"]
    return summary, f"{match['action']} at {file}:{match['line']}"


def table_name(node: PhysicalNode) -> str:
    """Return the name of the table or directory that a node scans; empty for other nodes."""
    if label := _NAMELESS.get(node.name):
        return label
    kind, _, scanned = node.name.partition(" ")
    if kind not in ("Scan", "BatchScan"):
        return ""
    # "Scan parquet spark_catalog.default.orders" has the name of a table, "Scan parquet" only the format.
    last_word = scanned.strip().rpartition(" ")[2]
    if kind == "BatchScan" or "." in last_word or scanned.startswith("hive "):
        return last_word.rpartition(".")[2]
    match = _LOCATION.search(f"Location: {node.metadata.get('Location', '')}") or _LOCATION.search(node.text)
    return _directory(match["paths"].split(",")[0].strip()) if match else last_word


def _directory(path: str) -> str:
    """Return the last component of a path that is not a partition directory, such as ``day=2026-01-01``."""
    parts = path.rstrip("./").split("/")
    while len(parts) > 1 and _PARTITION.match(parts[-1]):
        parts.pop()
    return parts[-1]


def _step(node: PhysicalNode) -> str:
    """Return what an operator does; empty for operators that take little time or prepare another one."""
    if node.is_wrapper or node.is_exchange:
        return ""
    if node.name.startswith(("Execute ", "WriteFiles", "OverwriteByExpression", "AppendData")):
        return "write"
    kind = operator(node.name)[1]
    # A sort that is not global serves a join or a window.
    if kind is Kind.SORT and node.text.rstrip().endswith(", false, 0"):
        return ""
    if kind is Kind.OTHER:
        return node.name.lower() if node.name in ("Expand", "Generate", "Union", "Sample") else ""
    return "" if kind in (Kind.SCAN, Kind.PROJECT) else str(kind)


def _children_first(plan: PhysicalNode) -> Iterator[PhysicalNode]:
    """Yield all nodes, children before parents, without recursion, because plans of logs may nest deeply."""
    stack, ordered = [plan], []
    while stack:
        node = stack.pop()
        ordered.append(node)
        if node.name != "InMemoryTableScan":  # Spark also logs the plan that fills a cache
            stack += node.children
    yield from reversed(ordered)
