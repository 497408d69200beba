"""The planner: one method per logical node."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import Unsupported
from kquery_spark.expr import Column, Expr, Named
from kquery_spark.logical import (
    Aggregate,
    Expand,
    Filter,
    Generate,
    Input,
    Join,
    JoinKind,
    Limit,
    LogicalPlan,
    Projection,
    Scan,
    SetOperation,
    SingleRow,
    Sort,
    Union,
    Window,
    WindowGroupLimit,
    walk_plan,
)
from kquery_spark.logical.join import JoinKey
from kquery_spark.logical.pruning import needed_filters, sized_splits
from kquery_spark.optimizer.statistics import Estimator
from kquery_spark.physical.dynamic_filters.runtime_filter import drops_unmatched
from kquery_spark.physical.keys import check_key_type
from kquery_spark.physical.operators import (
    AggregateExec,
    BuildSide,
    ExchangeExec,
    ExpandExec,
    FilterExec,
    GenerateExec,
    JoinExec,
    LimitExec,
    Partitioning,
    Phase,
    PhysicalPlan,
    ProjectionExec,
    ReadExec,
    ReplicateExec,
    ScanExec,
    SingleRowExec,
    SortExec,
    UnionExec,
    WindowExec,
    WindowGroupLimitExec,
)
from kquery_spark.planner.copartition import Ranges, find_ranges, ranges_of
from kquery_spark.planner.distinct import TwoLevels, two_levels
from kquery_spark.planner.distribution import Placed, Spread, together
from kquery_spark.planner.grouping_sets import grouping_levels
from kquery_spark.planner.join_strategy import JoinStrategy, named
from kquery_spark.planner.semi_joins import reduced_groups, reduced_sides, value_keys
from kquery_spark.planner.set_operations import lower_set_operation
from kquery_spark.planner.sort_ranges import sort_ranges

_SINGLE = Partitioning((), 1)
_TOP_K = 100_000
_ONE_TASK_GROUPS = 200_000
_ONE_TASK_SHARE = 0.5  # of small_bytes, shuffled to one task: what two would save is less than one costs
_SHARED_SORT = 2.0  # times small_bytes; less is sorted by one task before several have started
_STATE_BYTES = 64  # of one group
_BYTES_PER_REDUCE_TASK = 128 * 1024 * 1024
_MOST_WAVES = 64  # what asks for more is an estimate that went astray; large tasks spill


def plan_query(plan: LogicalPlan, config: EngineConfig, shared_sort: bool = False) -> PhysicalPlan:
    """The physical plan of an optimized logical plan; exchanges mark where it is cut into stages.

    shared_sort: the result may be in order over several tasks, so whoever takes it must keep the order of the tasks.
    """
    estimator = Estimator()
    total = estimator.estimate(plan).scanned
    inputs = any(isinstance(node, Input) for node in walk_plan(plan))
    one_task = total <= config.small_bytes and not inputs
    ranges = None if one_task else find_ranges(plan, config)
    planner = _Planner(config, estimator, one_task, ranges)
    return (planner.place_result(plan) if shared_sort else planner.place(plan)).plan


class _Planner:
    def __init__(
        self,
        config: EngineConfig,
        estimator: Estimator,
        one_task: bool,
        ranges: Ranges | None,
        scan_ids: list[int] | None = None,
    ) -> None:
        self._config = config
        self._estimator = estimator
        self._one_task = one_task
        self._joins = JoinStrategy(config, estimator, one_task, ranges)
        self._aggregated: dict[int, tuple[LogicalPlan, Placed]] = {}
        self._scan_ids = [0] if scan_ids is None else scan_ids

    def place_result(self, plan: LogicalPlan) -> Placed:
        """The physical form of the whole query, whose last sort tasks may share."""
        match plan:
            case Projection():
                return self._projected(self.place_result(plan.child), plan)
            case Sort():
                return self._shared_sort(plan)
        return self.place(plan)

    def place(self, plan: LogicalPlan) -> Placed:
        """The physical form of a node and everything below it."""
        match plan:
            case Scan():
                return self._scan(plan)
            case Input():
                return Placed(ReadExec(plan.key or plan.name, plan.schema), Spread.SPLIT)
            case Filter():
                child = self.place(plan.child)
                return child.over(FilterExec(child.plan, plan.condition))
            case Projection():
                return self._projected(self.place(plan.child), plan)
            case Aggregate():
                return self._aggregate_once(plan)
            case Join():
                return self._join(plan)
            case Sort():
                return self._sort(plan)
            case Limit():
                return self._limit(plan)
            case Union():
                return self._union(plan)
            case Window():
                return self._window(plan)
            case WindowGroupLimit():
                return self._window_group_limit(plan)
            case Expand():
                child = self.place(plan.child)
                spread = Spread.SINGLE if child.spread is Spread.SINGLE else Spread.SPLIT
                return Placed(ExpandExec(child.plan, plan.projections, plan.schema), spread)
            case Generate():
                child = self.place(plan.child)
                done = GenerateExec(child.plan, plan.generator, plan.args, plan.outer, plan.kept, plan.schema)
                return child.over(done)
            case SetOperation():
                return self.place(lower_set_operation(plan))
            case SingleRow():
                child = self._exchange(
                    self.place(plan.child), _SINGLE, self._estimator.estimate(plan.child).nbytes
                )
                return child.over(SingleRowExec(child.plan))
        raise Unsupported(f"The engine has no operator for {type(plan).__name__}.")

    def _scan(self, plan: Scan) -> Placed:
        splits = tuple(sized_splits(plan.source, plan.filters, plan.schema.names))
        filters = needed_filters(plan.source, splits, plan.filters)
        scan_id = self._scan_ids[0]
        self._scan_ids[0] += 1
        columns = tuple(plan.schema.names)
        scan = ScanExec(scan_id, plan.table, plan.source, columns, filters, splits, self._one_task)
        if self._joins.ranges is not None and id(plan) in self._joins.ranges.shares:
            return Placed(replace(scan, shares=self._joins.ranges.shares[id(plan)]), Spread.RANGED)
        return Placed(scan, Spread.SINGLE if self._one_task else Spread.SPLIT)

    def _projected(self, child: Placed, plan: Projection) -> Placed:
        done = ProjectionExec(child.plan, plan.exprs)
        renamed: dict[Expr, Column] = {e.expr: e.column for e in plan.exprs if isinstance(e.expr, Column)}
        return child.renamed(done, renamed.get)

    def _aggregate_once(self, plan: Aggregate) -> Placed:
        """A node that is in the plan twice reads the same stage twice, if nothing but a stage feeds it."""
        found = self._aggregated.get(id(plan))
        if found is None:
            found = plan, self._aggregate(plan)
            if not _scans(found[1].plan):
                self._aggregated[id(plan)] = found
        return found[1]

    def _aggregate(self, plan: Aggregate) -> Placed:
        for key in plan.keys:
            check_key_type(key.expr.dtype)
        sets = grouping_levels(plan)
        if sets is not None:
            child = self.place(sets.child)
            return self._final(plan, Placed(sets.states(child.plan), child.spread))
        child = self.place(plan.child)
        if child.spread is Spread.RANGED and self._joins.ranged(plan):
            return Placed(AggregateExec(child.plan, plan.keys, plan.aggregates, Phase.SINGLE), Spread.RANGED)
        if child.groups_by(tuple(k.expr for k in plan.keys)):
            return self._renamed(child, plan)
        if any(c.is_distinct for c in plan.calls):
            levels = two_levels(plan, child.plan)
            if levels is not None:
                return self._two_levels(plan, levels, child.spread)
            keyed = tuple(k.expr for k in plan.keys)
            size = self._estimator.estimate(plan.child).nbytes
            moved = self._exchange(child, self._partitioning(keyed, size), size)
            return self._renamed(moved, plan)
        partial = AggregateExec(child.plan, plan.keys, plan.aggregates, Phase.PARTIAL)
        return self._final(plan, Placed(partial, child.spread))

    def _final(self, plan: Aggregate, partial: Placed) -> Placed:
        """The results of an aggregation's partial states."""
        columns = tuple(k.column for k in plan.keys)
        groups = self._estimator.groups(plan)
        count = 1 if not columns or groups < _ONE_TASK_GROUPS else self._reduce_tasks(groups * _STATE_BYTES)
        where = Partitioning(columns, count) if count > 1 else _SINGLE
        moved = self._exchange(partial, where, self._states(plan))
        keys = tuple(Named(k.column, k.name) for k in plan.keys)
        return moved.over(AggregateExec(moved.plan, keys, plan.aggregates, Phase.FINAL))

    def _two_levels(self, plan: Aggregate, levels: TwoLevels, spread: Spread) -> Placed:
        """By key when there are many groups; else by key and value, and the few groups meet in one task."""
        spread = Spread.SPLIT if spread is not Spread.SINGLE else spread
        groups = self._estimator.groups(plan)
        size = self._estimator.estimate(plan.child).nbytes
        if plan.keys and groups >= _ONE_TASK_GROUPS:
            moved = self._exchange(Placed(levels.first, spread), self._partitioning(levels.keys, size), size)
            return moved.over(levels.last(levels.second(moved.plan)))
        where = self._partitioning((*levels.keys, *levels.values), size)
        moved = self._exchange(Placed(levels.first, spread), where, size)
        split = Spread.SINGLE if moved.spread is Spread.SINGLE else Spread.SPLIT
        together = self._exchange(Placed(levels.second(moved.plan), split), _SINGLE, self._states(plan))
        return Placed(levels.last(together.plan), Spread.SINGLE)

    def _states(self, plan: Aggregate) -> float:
        """About how many bytes the partial states of an aggregation take: each task may have met every group."""
        return self._estimator.groups(plan) * _STATE_BYTES * self._config.parallelism

    def _renamed(self, child: Placed, plan: Aggregate) -> Placed:
        in_order = together(child.plan, frozenset(k.expr for k in plan.keys))
        done = AggregateExec(child.plan, plan.keys, plan.aggregates, Phase.SINGLE, in_order)
        names = {k.expr: k.column for k in plan.keys}
        return child.renamed(done, names.get)

    def _join(self, plan: Join, reduced: bool = False) -> Placed:
        for key in plan.keys:
            check_key_type(key.left.dtype)
        build = self._joins.build_side(plan)
        built, probe = (plan.left, plan.right) if build is BuildSide.LEFT else (plan.right, plan.left)
        if self._one_task:
            left, right = self.place(plan.left), self.place(plan.right)
            return Placed(self._join_exec(plan, left.plan, right.plan, build), Spread.SINGLE)
        if self._joins.meets(plan):
            left, right = self.place(plan.left), self.place(plan.right)
            return Placed(self._join_exec(plan, left.plan, right.plan, build), Spread.RANGED)
        if self._joins.replicates(plan, build):
            if drops_unmatched(plan.kind, build is BuildSide.LEFT):
                keys = value_keys(plan)
                if build is BuildSide.LEFT:
                    keys = [(right, left) for left, right in keys]
                probe = reduced_groups(probe, keys, built, self._estimator, self._moves)
            placed = self.place(probe)
            inner = self._already_there(built, placed)
            if inner is None:
                alone = _Planner(self._config, self._estimator, True, None, self._scan_ids)
                inner = ReplicateExec(alone.place(built).plan)
            sides: tuple[PhysicalPlan, PhysicalPlan] = (inner, placed.plan)
            left_side, right_side = sides if build is BuildSide.LEFT else sides[::-1]
            return placed.over(self._join_exec(plan, left_side, right_side, build))
        if plan.keys and not plan.null_aware and not reduced:
            return self._join(reduced_sides(plan, self._estimator, self._joins.replicable), reduced=True)
        return self._shuffled(plan, self._joins.smaller(plan) if plan.kind is JoinKind.INNER else build)

    def _already_there(self, built: LogicalPlan, probe: Placed) -> PhysicalPlan | None:
        """A side made of stages that the one task of the other side reads anyway, which need not be computed again."""
        if probe.spread is not Spread.SINGLE:
            return None
        if not any(id(node) in self._aggregated for node in walk_plan(built)):
            return None
        placed = self.place(built)
        there = placed.spread is Spread.SINGLE and _exchanges(placed.plan) <= _exchanges(probe.plan)
        return placed.plan if there else None

    def _shuffled(self, plan: Join, build: BuildSide) -> Placed:
        """A join whose rows are sent to where those with equal keys are."""
        sizes = self._estimator.estimate(plan.left).nbytes, self._estimator.estimate(plan.right).nbytes
        count = self._reduce_tasks(sum(sizes))
        if plan.keys and not plan.null_aware and count > 1:
            brought = self._brought(plan, build)
            if brought is not None:
                return brought
        left, right = self.place(plan.left), self.place(plan.right)
        if left.spread is right.spread is Spread.SINGLE:
            return Placed(self._join_exec(plan, left.plan, right.plan, build), Spread.SINGLE)
        if not plan.keys or plan.null_aware:
            left, right = self._exchange(left, _SINGLE, sizes[0]), self._exchange(right, _SINGLE, sizes[1])
            return Placed(self._join_exec(plan, left.plan, right.plan, build), Spread.SINGLE)
        left = self._exchange(left, Partitioning(tuple(k.left for k in plan.keys), count), sizes[0])
        right = self._exchange(right, Partitioning(tuple(k.right for k in plan.keys), count), sizes[1])
        joined = self._join_exec(plan, left.plan, right.plan, build)
        if count == 1:
            return Placed(joined, Spread.SINGLE)
        return _keyed(plan, joined, plan.keys, count, hashed=True)

    def _brought(self, plan: Join, build: BuildSide) -> Placed | None:
        """A join of a small side's rows, sent to the tasks that read files clustered by the key; those rows stay there."""
        for on_left in (True, False):
            side, other = (plan.left, plan.right) if on_left else (plan.right, plan.left)
            if self._estimator.estimate(other).nbytes > self._estimator.estimate(side).nbytes:
                continue
            for key in plan.keys:
                here, there = (key.left, key.right) if on_left else (key.right, key.left)
                reader = self._reader(side, here)
                if reader is not None and reader._joins.ranges is not None:
                    bounds = reader._joins.ranges.bounds
                    where = Partitioning((there,), len(bounds) + 1, bounds)
                    size = self._estimator.estimate(other).nbytes
                    sides = reader.place(side).plan, ExchangeExec(self.place(other).plan, where, size)
                    left, right = sides if on_left else sides[::-1]
                    joined = self._join_exec(plan, left, right, build)
                    return _keyed(plan, joined, (key,), where.count, hashed=False)
        return None

    def _reader(self, side: LogicalPlan, key: Expr) -> _Planner | None:
        """The planner by which ``side`` is spread by ranges of ``key``: this one, or one with ranges just for that."""
        if named(key, self._joins.ranged(side)):
            return self
        ranges = ranges_of(side, key, self._config)
        if ranges is None:
            return None
        reader = _Planner(self._config, self._estimator, False, ranges, self._scan_ids)
        return reader if named(key, reader._joins.ranged(side)) else None

    def _moves(self, plan: Aggregate) -> bool:
        """Whether an aggregate's rows are shuffled before they are grouped."""
        return not self._one_task and not self._joins.ranged(plan)

    def _join_exec(self, plan: Join, left: PhysicalPlan, right: PhysicalPlan, build: BuildSide) -> JoinExec:
        return JoinExec(
            left, right, plan.kind, plan.keys, plan.condition, build, plan.schema, plan.null_aware
        )

    def _sort(self, plan: Sort, limit: int | None = None) -> Placed:
        """The rows in order, in one task."""
        _check_order(plan)
        return self._sorted(plan, self.place(plan.child), limit)

    def _sorted(self, plan: Sort, child: Placed, limit: int | None = None) -> Placed:
        if child.spread is not Spread.SINGLE:
            if limit is not None:
                child = Placed(SortExec(child.plan, plan.keys, limit), child.spread)
            child = self._exchange(child, _SINGLE, self._first(plan.child, limit))
        return Placed(SortExec(child.plan, plan.keys, limit), Spread.SINGLE)

    def _shared_sort(self, plan: Sort) -> Placed:
        """The rows in order, by ranges of the first key in several tasks where that is worth it."""
        size = self._estimator.estimate(plan.child).nbytes
        little = max(_SHARED_SORT * self._config.small_bytes, self._config.driver_bytes)
        if self._one_task or size < little:
            return self._sort(plan)
        _check_order(plan)
        first = plan.keys[0]
        reader = self._reader(plan.child, first.expr) if first.ascending else None
        child = self.place(plan.child) if reader is None else reader.place(plan.child)
        if reader is not None and child.spread is Spread.RANGED:  # read from files in that order
            return Placed(SortExec(child.plan, plan.keys), Spread.SPLIT)
        count = self._reduce_tasks(size)
        where = sort_ranges(plan, count) if count > 1 and child.spread is not Spread.SINGLE else None
        if where is None:
            return self._sorted(plan, child)
        return Placed(SortExec(ExchangeExec(child.plan, where, size), plan.keys), Spread.SPLIT)

    def _limit(self, plan: Limit) -> Placed:
        wanted = None if plan.count is None else plan.count + plan.offset
        if isinstance(plan.child, Sort):
            child = self._sort(plan.child, wanted if wanted is not None and wanted <= _TOP_K else None)
        elif isinstance(plan.child, Projection) and isinstance(plan.child.child, Sort):
            swapped = Limit(plan.child.child, plan.count, plan.offset)
            below = self._limit(swapped)
            return Placed(ProjectionExec(below.plan, plan.child.exprs), Spread.SINGLE)
        else:
            child = self.place(plan.child)
            if child.spread is not Spread.SINGLE:
                if wanted is not None:
                    child = Placed(LimitExec(child.plan, wanted), child.spread)
                child = self._exchange(child, _SINGLE, self._first(plan.child, wanted))
        return Placed(LimitExec(child.plan, plan.count, plan.offset), Spread.SINGLE)

    def _first(self, plan: LogicalPlan, rows: int | None) -> float:
        """About how many bytes the first rows of every task take."""
        found = self._estimator.estimate(plan)
        if rows is None or found.rows <= rows:
            return found.nbytes
        return found.nbytes * min(1.0, rows * self._config.parallelism / found.rows)

    def _window(self, plan: Window) -> Placed:
        for expr in (*plan.partition, *(k.expr for k in plan.order)):
            check_key_type(expr.dtype)
        child = self.place(plan.child)
        if not child.groups_by(plan.partition):
            size = self._estimator.estimate(plan.child).nbytes
            child = self._exchange(child, self._partitioning(plan.partition, size), size)
        return child.over(WindowExec(child.plan, plan.calls, plan.partition, plan.order))

    def _window_group_limit(self, plan: WindowGroupLimit) -> Placed:
        for expr in (*plan.partition, *(k.expr for k in plan.order)):
            check_key_type(expr.dtype)
        child = self.place(plan.child)
        how = (plan.partition, plan.order, plan.function, plan.limit)
        if not child.groups_by(plan.partition):
            size = self._estimator.estimate(plan.child).nbytes
            pruned = child.over(WindowGroupLimitExec(child.plan, *how))
            child = self._exchange(pruned, self._partitioning(plan.partition, size), size)
        return child.over(WindowGroupLimitExec(child.plan, *how))

    def _union(self, plan: Union) -> Placed:
        placed = [self.place(p) for p in plan.inputs]
        if any(p.spread is not Spread.SINGLE for p in placed) and any(
            p.spread is Spread.SINGLE or _reads(p.plan) for p in placed
        ):
            sizes = [self._estimator.estimate(p).nbytes for p in plan.inputs]
            placed = [self._exchange(p, _SINGLE, size) for p, size in zip(placed, sizes, strict=True)]
        single = all(p.spread is Spread.SINGLE for p in placed)
        return Placed(
            UnionExec(tuple(p.plan for p in placed), plan.schema), Spread.SINGLE if single else Spread.SPLIT
        )

    def _exchange(self, child: Placed, where: Partitioning, nbytes: float) -> Placed:
        """``child`` with its rows, about so many bytes, spread as ``where`` says."""
        if where.count == 1:
            if child.spread is Spread.SINGLE:
                return child
            return Placed(ExchangeExec(child.plan, _SINGLE, nbytes), Spread.SINGLE)
        if child.hashed_by(where.keys, where.count):
            return child
        done = ExchangeExec(child.plan, where, nbytes)
        return Placed(done, Spread.KEYED, where.keys, where.count)

    def _partitioning(self, keys: tuple[Expr, ...], nbytes: float) -> Partitioning:
        count = self._reduce_tasks(nbytes) if keys else 1
        return Partitioning(keys, count) if count > 1 else _SINGLE

    def _reduce_tasks(self, nbytes: float) -> int:
        if self._config.shuffle_partitions:
            return self._config.shuffle_partitions
        if nbytes <= _ONE_TASK_SHARE * self._config.small_bytes:
            return 1
        waves = math.ceil(nbytes / (_BYTES_PER_REDUCE_TASK * self._config.parallelism))
        return self._config.parallelism * min(max(1, waves), _MOST_WAVES)


def _check_order(plan: Sort) -> None:
    for key in plan.keys:
        check_key_type(key.expr.dtype)


def _keyed(plan: Join, joined: JoinExec, keys: Sequence[JoinKey], count: int, hashed: bool) -> Placed:
    """The rows of a join that met by ``keys``."""
    left_keys, right_keys = tuple(k.left for k in keys), tuple(k.right for k in keys)
    if plan.kind is JoinKind.FULL:  # keys of both sides may be NULL padding, wherever the row is
        return Placed(joined, Spread.SPLIT)
    if plan.kind is JoinKind.RIGHT:
        return Placed(joined, Spread.KEYED, right_keys, count, hashed=hashed)
    also = (right_keys,) if plan.kind is JoinKind.INNER else ()
    return Placed(joined, Spread.KEYED, left_keys, count, also, hashed)


def _exchanges(plan: PhysicalPlan) -> set[int]:
    """The exchanges that a stage reads, by identity."""
    if isinstance(plan, ExchangeExec):
        return {id(plan)}
    return {one for child in plan.children for one in _exchanges(child)}


def _scans(plan: PhysicalPlan) -> bool:
    """Whether something other than stages feeds the plan."""
    if isinstance(plan, ExchangeExec):
        return False
    return not plan.children or any(map(_scans, plan.children))


def _reads(plan: PhysicalPlan) -> bool:
    return isinstance(plan, ReadExec | ExchangeExec) or any(_reads(c) for c in plan.children)
