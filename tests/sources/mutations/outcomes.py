"""What reading a damaged file came to, and the report of a campaign."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field

ROWS, NAMED, UNNAMED, FOREIGN, SIGNAL, TIMEOUT = "rows", "error", "unnamed", "foreign", "signal", "timeout"
INTACT, MISFIT, FALLBACK, OTHER_ROWS, ROWS_FOR_ERROR = (
    "intact",
    "misfit",
    "fallback",
    "other rows",
    "rows where Spark raises",
)
FINDINGS = (UNNAMED, FOREIGN, SIGNAL, TIMEOUT, OTHER_ROWS, ROWS_FOR_ERROR)
"""UNNAMED: an error of ours that does not name the file. FOREIGN: an error that is not of ours."""

MEANINGS = {
    ROWS: "gave rows",
    NAMED: "gave an error that names the file",
    INTACT: "gave the rows from before the damage, where Spark raises an error",
    MISFIT: "gave an error of the query, whose columns the file no longer has",
    UNNAMED: "gave an error that does not name the file",
    FOREIGN: "gave an error that is not one of ours",
    FALLBACK: "gave Spark's rows after a warning",
    SIGNAL: "ended the process by a signal",
    TIMEOUT: "did not end in time",
    OTHER_ROWS: "gave other rows than Spark",
    ROWS_FOR_ERROR: "gave other rows than before the damage, where Spark raises an error",
}


@dataclass(frozen=True)
class Outcome:
    """What one way of reading gave. way: the reader and the query."""

    number: int
    way: str
    kind: str
    detail: str = ""

    def to_line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Outcome:
        return cls(**json.loads(line))


@dataclass
class Report:
    """The counts of a campaign, and all its findings."""

    counts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    findings: list[Outcome] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        self.counts[outcome.way][outcome.kind] += 1
        if outcome.kind in FINDINGS:
            self.findings.append(outcome)

    def __str__(self) -> str:
        lines = []
        for way, kinds in self.counts.items():
            lines.append(f"{way}: {sum(kinds.values())} reads")
            lines += [f"    {count:7} {MEANINGS[kind]}" for kind, count in kinds.most_common()]
        return "\n".join(lines)
