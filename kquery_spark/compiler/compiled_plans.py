"""Caches compiled queries, so that an equal plan over the same files is not optimized and compiled again.

Under ``kq.enable``, every action plans its query anew, and many programs repeat their queries. A logical plan contains
everything that compilation depends on: expressions with their evaluation modes and time zones, and files with their sizes
and times. If a file has changed, the new plan is therefore not equal to the cached one, and is compiled.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from kquery_spark.cached_property import cached_property
from kquery_spark.compiler.compile import CompiledQuery, compile_query
from kquery_spark.compiler.placement import Placement
from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import SourceError
from kquery_spark.logical import LogicalPlan, Scan, walk_plan
from kquery_spark.sources.lru_cache import LruCache

_MAX_BYTES = 64 << 20
# Estimates: a query holds the plan after each rule, and its sources hold file lists and the statistics of each split.
_QUERY_BYTES = 500_000
_SPLIT_BYTES = 1_000


@dataclass(frozen=True)
class _Key:
    plan: LogicalPlan
    config: EngineConfig
    placement: Placement

    @cached_property
    def _hash(self) -> int:
        return hash((self.plan, self.config, self.placement))

    def __hash__(self) -> int:
        """Return the cached hash, because hashing a plan with many files takes milliseconds."""
        return self._hash


@dataclass(frozen=True)
class _CachedQuery:
    query: CompiledQuery
    nbytes: int


_QUERIES: LruCache[_Key, _CachedQuery] = LruCache(_MAX_BYTES)


def compile_once(plan: LogicalPlan, config: EngineConfig, placement: Placement) -> CompiledQuery:
    """Return the compiled query of a plan, from the cache if possible.

    The caller has already checked the plan's files and constants. Raises the errors of ``compile_query``.
    """
    key = _Key(plan, config, placement)
    # Comparing and hashing a deeply nested plan can take more of Python's stack than compiling it.
    with suppress(RecursionError):
        cached = _QUERIES.get(key)
        if cached is not None:
            return cached.query
    query = compile_query(plan, config, placement, check=False)
    nbytes = _estimated_bytes(query.optimized)
    if nbytes is not None and nbytes <= _MAX_BYTES:
        with suppress(RecursionError):
            _QUERIES.put(key, _CachedQuery(query, nbytes))
    return query


def _estimated_bytes(plan: LogicalPlan) -> int | None:
    """Estimate the memory of a compiled query; None if it must not be cached.

    That is the case for plans that contain rows, or that read rows from Spark or call Python functions, which belong to one
    query. plan: the optimized plan, in which subqueries are joins, so that the walk finds all scans.
    """
    nbytes = _QUERY_BYTES
    for node in walk_plan(plan):
        if node.calls_python or not (node.children or isinstance(node, Scan)):
            return None
        if isinstance(node, Scan):
            if node.source.holds_rows:
                return None
            try:
                nbytes += _SPLIT_BYTES * len(node.source.splits())
            except SourceError:  # a file that compilation did not need is missing; the tasks raise the error
                return None
    return nbytes
