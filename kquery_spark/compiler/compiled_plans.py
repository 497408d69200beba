"""Remembers compiled queries, so that an equal plan over the same files is not optimized and compiled again.

Under ``kq.enable``, every action plans its query anew, and many programs repeat their queries. A logical plan contains
everything that compilation depends on: expressions with their evaluation modes and time zones, and files with their sizes
and times. A plan over changed files is therefore another plan.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from kquery_spark.compiler.compile import CompiledQuery, compile_query
from kquery_spark.compiler.placement import Placement
from kquery_spark.config.engine import EngineConfig
from kquery_spark.logical import LogicalPlan, Scan, walk_plan

_Key = tuple[LogicalPlan, EngineConfig, Placement]
_MAX_SPLITS = 2_000  # of one query; file lists and statistics of larger ones would take too much memory


class CompiledPlans:
    """The queries that were used last, at most ``size`` of them. Threads may share the object."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._queries: OrderedDict[_Key, CompiledQuery] = OrderedDict()
        self._lock = threading.Lock()

    def compile(self, plan: LogicalPlan, config: EngineConfig, placement: Placement) -> CompiledQuery:
        """Return the compiled query of a plan whose files and constants need no check.

        Raises the errors of ``compile_query``.
        """
        key = (plan, config, placement)
        with self._lock:
            query = self._queries.get(key)
            if query is not None:
                self._queries.move_to_end(key)
                return query
        query = compile_query(plan, config, placement, check=False)
        if _is_repeatable(query.optimized):
            with self._lock:
                self._queries[key] = query
                if len(self._queries) > self._size:
                    self._queries.popitem(last=False)
        return query


def _is_repeatable(plan: LogicalPlan) -> bool:
    """Return whether a plan may be remembered. In an optimized plan, subqueries are joins, so that all scans are nodes.

    Sources of remote files hold credentials, which expire. Rows of Spark and Python functions belong to one query.
    """
    splits = 0
    for node in walk_plan(plan):
        if node.calls_python or not (node.children or isinstance(node, Scan)):
            return False
        if isinstance(node, Scan):
            scanned = node.source.splits()
            splits += len(scanned)
            if splits > _MAX_SPLITS or any(map(node.source.is_remote, scanned)):
                return False
    return True


COMPILED_PLANS = CompiledPlans(64)
"""The queries that this process compiled last for Spark."""
