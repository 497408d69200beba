"""``kq.explain``: what runs in the engine, what stays with Spark and why, and the stages."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from kquery_spark.frontends.catalyst.tree import CatalystNode
from kquery_spark.logical import format_plan
from kquery_spark.session.decision import Decision, decide
from kquery_spark.session.planning import Part, PlannedQuery, plan_frame


@dataclass(frozen=True)
class Explanation:
    """The explanation of one query; ``str`` prints it."""

    planned: PlannedQuery
    decisions: tuple[Decision, ...]
    trace: bool = False

    @property
    def accelerated(self) -> bool:
        """Whether ``kquery_plan`` would run any of the query in the engine (``when="auto"``)."""
        return any(d.accelerate for d in self.decisions)

    @property
    def coverage(self) -> float:
        """Share of the optimized plan's nodes, 0 to 1, that the engine can run."""
        return self.planned.coverage

    @property
    def reasons(self) -> list[tuple[str, str]]:
        """What stays with Spark: the node and the sentence that says why."""
        return list(self.planned.reasons)

    def __str__(self) -> str:
        lines = [f"Coverage: {self.coverage:.0%} of the plan's nodes run in the engine"]
        if self.planned.root is not None:
            lines += ["", "== Query (* engine, - Spark, > handed over to the engine) =="]
            lines += _marked(self.planned)
        for part, decision in zip(self.planned.parts, self.decisions, strict=True):
            lines += ["", *_part_lines(part, decision, self.trace)]
        if self.planned.reasons:
            lines += ["", "== Left to Spark =="]
            lines += [f"{node}: {reason}" for node, reason in self.planned.reasons]
        return "\n".join(lines)


def _part_lines(part: Part, decision: Decision, trace: bool) -> list[str]:
    lines = [f"== Decision ==\n{decision.sentence}", "", "== Logical plan ==", format_plan(part.logical)]
    if trace:
        for step in part.steps:
            what = format_plan(step.plan) if step.changed else "(no change)"
            lines += ["", f"== Rule {step.rule} ==", what]
    return [
        *lines,
        "",
        "== Optimized plan ==",
        format_plan(part.optimized),
        "",
        "== Stages ==",
        str(part.graph),
    ]


def _marked(planned: PlannedQuery) -> list[str]:
    assert planned.root is not None
    engine = {id(p.node) for p in planned.parts}
    handed = {id(h.node) for p in planned.parts for h in p.imported.inputs}
    lines: list[str] = []

    def visit(node: CatalystNode, depth: int, inside: bool) -> None:
        inside = (inside or id(node) in engine) and id(node) not in handed
        mark = ">" if id(node) in handed else "*" if inside else "-"
        lines.append(f"{mark} {'  ' * depth}{node.cls}")
        for child in node.children:
            visit(child, depth + 1, inside)

    visit(planned.root, 0, False)
    return lines


def explain(frame: DataFrame, trace: bool = False) -> Explanation:
    """Plan ``frame`` as ``kquery_plan`` would and say what becomes of it; ``trace`` adds every rule's result."""
    planned = plan_frame(frame)
    return Explanation(planned, tuple(decide(planned, p) for p in planned.parts), trace)
