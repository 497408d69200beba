"""Remembers compiled queries, so that an equal plan over the same files is not optimized and compiled again.

Under ``kq.enable``, every action plans its query anew, and many programs repeat their queries. A logical plan contains
everything that compilation depends on: expressions with their evaluation modes and time zones, and files with their sizes
and times. If a file has changed, the new plan is therefore not equal to the remembered one, and is compiled.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import suppress

from kquery_spark.compiler.compile import CompiledQuery, compile_query
from kquery_spark.compiler.placement import Placement
from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import SourceError
from kquery_spark.logical import LogicalPlan, Scan, walk_plan

_Key = tuple[LogicalPlan, EngineConfig, Placement]
_MAX_QUERIES = 64
_MAX_SPLITS = 20_000  # of all cached queries; their sources hold file lists and the statistics of each split


class CompiledPlans:
    """Thread-safe LRU cache of compiled queries, with a limit on their number and on the number of their splits."""

    def __init__(self) -> None:
        # Each query with its number of splits; the least recently used query comes first.
        self._queries: OrderedDict[_Key, tuple[CompiledQuery, int]] = OrderedDict()
        self._splits = 0
        self._lock = threading.Lock()

    def compile(self, plan: LogicalPlan, config: EngineConfig, placement: Placement) -> CompiledQuery:
        """Return the compiled query of a plan. The caller has already checked the plan's files and constants.

        Raises the errors of ``compile_query``.
        """
        key = (plan, config, placement)
        with (
            self._lock,
            suppress(RecursionError),
        ):  # comparing plans takes more of Python's stack than compiling them
            if key in self._queries:
                self._queries.move_to_end(key)
                return self._queries[key][0]
        query = compile_query(plan, config, placement, check=False)
        splits = _repeatable_splits(query.optimized)
        if splits is not None and splits <= _MAX_SPLITS:
            self._put(key, query, splits)
        return query

    def _put(self, key: _Key, query: CompiledQuery, splits: int) -> None:
        with self._lock, suppress(RecursionError):
            if key in self._queries:  # another thread has compiled the same plan
                return
            self._queries[key] = query, splits
            self._splits += splits
            while len(self._queries) > _MAX_QUERIES or self._splits > _MAX_SPLITS:
                self._splits -= self._queries.popitem(last=False)[1][1]


def _repeatable_splits(plan: LogicalPlan) -> int | None:
    """Return the number of splits of an optimized plan; None if its query must not be remembered.

    That is the case for sources that prefetch remote files, and for leaves with rows of Spark and for Python functions,
    which belong to one query. The walk finds the scans of subqueries, too, because the
    optimizer has rewritten subqueries to joins.
    """
    count = 0
    for node in walk_plan(plan):
        if node.calls_python or not (node.children or isinstance(node, Scan)):
            return None
        if isinstance(node, Scan):
            try:
                splits = node.source.splits()
            except SourceError:  # a file that compilation did not need is missing; the tasks raise the error
                return None
            if any(map(node.source.is_remote, splits)):
                return None
            count += len(splits)
    return count


COMPILED_PLANS = CompiledPlans()
"""The cache of this process for queries of Spark DataFrames."""
