"""``kq.explain``: shows what runs in the engine, what falls back to Spark and why, the stages, and the metrics of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import DataFrame

from kquery_spark.accelerate.execution.assemble import assemble
from kquery_spark.accelerate.execution.dataframe import execution_of
from kquery_spark.accelerate.explain_mermaid import flowchart, size_text
from kquery_spark.accelerate.planning.decision import Decision, decide, fits_driver
from kquery_spark.accelerate.planning.fast_reject import cannot_gain
from kquery_spark.accelerate.planning.part import Part
from kquery_spark.accelerate.planning.pipeline import plan_frame
from kquery_spark.accelerate.planning.planned_query import PlannedQuery
from kquery_spark.cached_property import cached_property
from kquery_spark.logical import format_plan
from kquery_spark.physical.operators import ScanExec
from kquery_spark.physical.operators.base import walk_operators
from kquery_spark.runtime.spark.metering import Metering, StageMetrics
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.spark_bridge.session.bypass import bypass
from kquery_spark.stages import Stage

ENGINE, SPARK, HANDOVER = "engine", "Spark", "hand-over"
MARKS = {ENGINE: "*", SPARK: "-", HANDOVER: ">"}


@dataclass(frozen=True)
class ExplainedNode:
    """A node of Spark's plan, and where it runs.

    runs: "engine", "Spark", or "hand-over" for a node that Spark runs and whose rows are passed to the engine.
    reason: why the node falls back to Spark; None if it runs in the engine or falls back only because of another node.
    """

    name: str
    depth: int
    runs: str
    reason: str | None = None

    def __str__(self) -> str:
        text = f"{MARKS[self.runs]} {'  ' * self.depth}{self.name}"
        return text if self.reason is None else f"{text}  ({self.reason})"


@dataclass(frozen=True)
class ExplainedStage:
    """A stage of a part.

    tasks: the number of tasks. splits: the number of splits that they read, of ``all_splits`` in the sources.
    scan_bytes: the estimated bytes of the splits that are read. reads: the stages and hand-overs that the stage reads.
    output: the exchange that its rows go to, or "result". in_driver: actions that collect rows run the stage in the driver,
    in ``threads`` threads. metrics: the metrics of a run; None before one.
    """

    stage_id: str
    tasks: int
    splits: int
    all_splits: int
    scan_bytes: int
    reads: tuple[str, ...]
    output: str
    operators: tuple[str, ...]
    in_driver: bool = False
    threads: int = 1
    metrics: StageMetrics | None = None

    def __str__(self) -> str:
        if self.metrics is None:
            return "\n".join([self._head, *(f"  {line}" for line in self.operators)])
        verb = "shuffled" if self.output != "result" else "returned to Spark"
        head = f"{self._head} [{self.metrics.tasks} task(s) ran, {size_text(self.metrics.sent)} {verb}]"
        lines = [head]
        for line, metrics in self.metrics.operators:
            facts = [f"{metrics.rows:,} rows", size_text(metrics.nbytes), f"{metrics.seconds * 1000:,.0f} ms"]
            facts += [
                f"{name.replace('_', ' ')} {amount:,}" for name, amount in sorted(metrics.extra.items())
            ]
            lines.append(f"  {line}  [{', '.join(facts)}]")
        return "\n".join(lines)

    @property
    def _head(self) -> str:
        """The first line of the stage, with what is known before a run."""
        head = f"{self.stage_id}: {self.tasks} task{'s' if self.tasks != 1 else ''}"
        if self.all_splits:
            pruned = f" of {self.all_splits}" if self.splits < self.all_splits else ""
            head += f", {self.splits}{pruned} split(s) of about {size_text(self.scan_bytes)}"
        if self.reads:
            head += f", reads {', '.join(self.reads)}"
        head += f" -> {self.output}"
        if self.in_driver:
            by = f" by {self.threads} threads" if self.threads > 1 else ""
            head += f", in the driver{by} if an action collects the rows"
        return head


class Section(NamedTuple):
    """A titled section of an explanation; the title may be empty.

    is_query: True for the list of the query's nodes, which a notebook shows in color instead. is_open: unfolded in a
    notebook.
    """

    title: str
    text: str
    is_query: bool = False
    is_open: bool = False


@dataclass(frozen=True, repr=False)
class Explanation:
    """The explanation of one query; ``str`` prints it, a notebook shows it as HTML.

    chosen: the parts that run in the engine, as decided by ``when``. metering: the metrics of a run; None without one.
    """

    planned: PlannedQuery
    decisions: tuple[Decision, ...]
    chosen: tuple[Part, ...]
    trace: bool = False
    metering: Metering | None = None

    @property
    def accelerated(self) -> bool:
        """True if the engine runs any part: one that ``kquery_plan`` chose, or would choose with ``when="auto"``."""
        return bool(self.chosen)

    @property
    def coverage(self) -> float:
        """Share of the optimized plan's nodes, 0 to 1, that the engine can run."""
        return self.planned.coverage

    @property
    def reasons(self) -> list[tuple[str, str]]:
        """The nodes that fall back to Spark: class name and reason."""
        return list(self.planned.reasons)

    @cached_property
    def nodes(self) -> tuple[ExplainedNode, ...]:
        """The nodes of Spark's optimized plan, parents first."""
        return tuple(_nodes(self.planned))

    @cached_property
    def stages(self) -> tuple[tuple[ExplainedStage, ...], ...]:
        """The stages of each part, in the order in which they run."""
        return tuple(
            tuple(
                _stage(
                    stage,
                    (stage is part.compiled.graph.result or part.threaded is not None)
                    and fits_driver(self.planned, part),
                    1 if part.threaded is None else part.threaded.config.parallelism,
                    self.metering.stage(i, stage) if self.metering else None,
                )
                for stage in part.compiled.graph.stages
            )
            for i, part in enumerate(self.planned.parts)
        )

    def sections(self) -> list[Section]:
        """The explanation as sections, in the order in which ``str`` prints them."""
        sections = [Section("", f"Coverage: {self.coverage:.0%} of the plan's nodes can run in the engine")]
        if not self.planned.config.enabled:
            sections.append(Section("", "The engine is switched off: spark.kquery.enabled is false"))
        if self.nodes:
            title = "Query (* engine, - Spark, > handed over to the engine)"
            sections.append(Section(title, _lines(self.nodes), is_query=True))
        for i, (part, decision) in enumerate(zip(self.planned.parts, self.decisions, strict=True)):
            which = f" of part {i + 1}" if len(self.planned.parts) > 1 else ""
            sections.append(Section(f"Decision{which}", str(decision), is_open=True))
            sections.append(Section(f"Logical plan{which}", format_plan(part.compiled.logical)))
            if self.trace:
                sections += [
                    Section(f"Rule {s.rule}{which}", format_plan(s.plan) if s.changed else "(no change)")
                    for s in part.compiled.steps
                ]
            sections.append(Section(f"Optimized plan{which}", format_plan(part.compiled.optimized)))
            sections.append(Section(f"Stages{which}", _lines(self.stages[i])))
        if self.reasons:
            reasons = _lines(f"{node}: {reason}" for node, reason in self.reasons)
            sections.append(Section("Falls back to Spark", reasons, is_open=True))
        if self.trace:
            settings = self.planned.cost.settings().items()
            sections.append(Section("Cost model", _lines(f"{name}={value}" for name, value in settings)))
        return sections

    def __str__(self) -> str:
        blocks = [f"== {s.title} ==\n{s.text}" if s.title else s.text for s in self.sections()]
        return "\n\n".join(blocks)

    def __repr__(self) -> str:
        return str(self)

    def mermaid(self) -> str:
        """Return the stages as a Mermaid flowchart: boxes of operators, and arrows for the exchanges.

        After ``explain(analyze=True)``, it also has the rows, the bytes, and the own time of each operator.
        """
        return flowchart(self)

    def _repr_html_(self) -> str:
        """Return the explanation as HTML, for notebooks."""
        from kquery_spark.accelerate.explain_html import render

        return render(self)


def explain(frame: DataFrame, trace: bool = False, analyze: bool = False) -> Explanation:
    """Plan a query as ``kquery_plan`` does, and return an explanation that can be printed.

    frame: a DataFrame, accelerated by ``kquery_plan`` or not. trace: also show the plan after each optimizer rule. analyze:
    run the query, discard its rows, and show the metrics of each operator. For a DataFrame of ``kquery_plan``, the parts
    that it chose run in the engine; otherwise, all parts that the engine can run.
    """
    execution = execution_of(frame)
    if execution is not None:
        planned, chosen = execution.placement.planned, execution.placement.parts
        decisions = tuple(decide(planned, p) for p in planned.parts)
    else:
        planned = plan_frame(frame)
        decisions = tuple(_decide_with_fast_reject(planned, p) for p in planned.parts)
        winning = [p for p, d in zip(planned.parts, decisions, strict=True) if d.accelerate]
        chosen = tuple(winning) if planned.config.enabled else ()
    metering = None
    if analyze and planned.parts:
        metering = Metering(planned.bridge.spark.sparkContext)
        parts = planned.parts if execution is None else chosen
        metered = assemble(planned, parts, metrics=metering)
        with bypass():
            metered.write.format("noop").mode("overwrite").save()
    return Explanation(planned, decisions, chosen, trace, metering)


def _decide_with_fast_reject(planned: PlannedQuery, part: Part) -> Decision:
    """Return the decision on a part, including the fast reject, which ``kquery_plan`` does first."""
    decision = decide(planned, part)
    if decision.driver_only and cannot_gain(planned.bridge, planned.plan):
        return Decision(
            False, "Not accelerated: only scans, filters and projections, so no gain is expected."
        )
    return decision


def assert_accelerated(frame: DataFrame, coverage: float = 1.0) -> None:
    """Raise AssertionError unless the engine can run at least this share of the nodes of the query's plan; for tests.

    It does not matter whether the engine should win, because test data is small. A DataFrame of ``kquery_plan`` must also
    run at least one part in the engine.
    """
    explained = explain(frame)
    planned = explained.planned
    execution = execution_of(frame)
    parts = planned.parts if execution is None else execution.placement.parts
    if not planned.config.enabled:
        raise AssertionError("the engine is switched off: spark.kquery.enabled is false")
    if parts and explained.coverage >= coverage:
        return
    lines = [f"the engine runs {explained.coverage if parts else 0:.0%} of the query, not {coverage:.0%}"]
    lines += [f"  {node}: {reason}" for node, reason in explained.reasons]
    raise AssertionError("\n".join(lines))


def _nodes(planned: PlannedQuery) -> Iterator[ExplainedNode]:
    if planned.root is None:
        return
    engine = {p.node for p in planned.parts}
    handed = {h.node for p in planned.parts for h in p.imported.inputs}
    stack = [(planned.root, 0, False)]
    while stack:
        node, depth, inside = stack.pop()
        is_handover = node in handed
        inside = (inside or node in engine) and not is_handover
        reason = None if inside else planned.reason_of(node)
        yield ExplainedNode(node.cls, depth, _runner(is_handover, inside), reason)
        below = [*node.children, *_subqueries(node)]
        stack += [(child, depth + 1, inside) for child in reversed(below)]


def _runner(is_handover: bool, inside: bool) -> str:
    if is_handover:
        return HANDOVER
    return ENGINE if inside else SPARK


def _subqueries(node: CatalystNode) -> list[CatalystNode]:
    """Return the plans of the subqueries in a node's expressions."""
    plans: list[CatalystNode] = []
    stack = list(reversed(node.expressions()))
    while stack:
        expression = stack.pop()
        if expression.is_plan:
            plans.append(expression)
        else:
            stack += [*expression.children, *expression.expressions()]
    return list(dict.fromkeys(plans))


def _stage(stage: Stage, in_driver: bool, threads: int, metrics: StageMetrics | None) -> ExplainedStage:
    splits = all_splits = nbytes = 0
    labels = []
    for node, depth in walk_operators(stage.plan):
        labels.append("  " * depth + node.label())
        if isinstance(node, ScanExec):
            own = node.splits
            if own is None:
                own = tuple(s for task in stage.tasks for s in task.as_dict()[node.scan_id])
            splits += len(own)
            nbytes += sum(s.nbytes for s in own)
            all_splits += len(node.source.splits())
    output = str(stage.output) if stage.output is not None else "result"
    return ExplainedStage(
        stage.stage_id,
        len(stage.tasks),
        splits,
        all_splits,
        nbytes,
        stage.inputs,
        output,
        tuple(labels),
        in_driver,
        threads,
        metrics,
    )


def _lines(items: Iterable[object]) -> str:
    return "\n".join(str(item) for item in items)
