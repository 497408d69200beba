"""A campaign's progress, saved in a file so that a stopped run continues where it was."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kquery_spark.fuzz.oracle import MISMATCHES, Outcome

COMPARED = ("same", "both fail", *MISMATCHES)
"""Outcomes of cases that count: both engines had an answer or an error."""
_MAX_REASONS = 200


@dataclass(frozen=True)
class Finding:
    """A difference: where it came from, what it is, and the smallest query found."""

    seed: int
    batch: int
    kind: str
    detail: str
    sql: str
    settings: dict[str, str]


@dataclass
class Record:
    """Counts of a campaign.

    batches: done, by seed. counts: cases by what they are, format, ANSI mode and outcome. in_process: how many of them
    were also equal in the engine without Spark. reasons: why expressions were left to Spark.
    """

    batches: Counter[int] = field(default_factory=Counter)
    seconds: float = 0.0
    counts: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    in_process: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    def add(
        self, what: str, table_format: str, ansi: bool, outcome: Outcome, in_process: bool = False
    ) -> None:
        """Count one case."""
        self.counts[what, table_format, "on" if ansi else "off", outcome.kind] += 1
        self.in_process += in_process
        if outcome.kind in ("left to spark", "not compared", "invalid") and (
            outcome.detail in self.reasons or len(self.reasons) < _MAX_REASONS
        ):
            self.reasons[f"{outcome.kind}: {outcome.detail[:150]}"] += 1

    @property
    def cases(self) -> int:
        """How many cases both engines ran."""
        return sum(count for key, count in self.counts.items() if key[3] in COMPARED)

    @property
    def mismatches(self) -> int:
        """How many cases differ, also those like one found before."""
        return sum(count for key, count in self.counts.items() if key[3] in MISMATCHES)

    def by(self, field_of: Callable[[tuple[str, str, str, str]], str]) -> Counter[str]:
        """Counts of all cases by one part of their key."""
        totals: Counter[str] = Counter()
        for key, count in self.counts.items():
            totals[field_of(key)] += count
        return totals

    def __str__(self) -> str:
        total = sum(self.counts.values())
        left = self.by(lambda key: key[3])["left to spark"]
        seeds = ", ".join(f"{seed} ({count} batches)" for seed, count in sorted(self.batches.items()))
        lines = [
            f"{self.cases:,} cases compared in {self.seconds:,.0f} s, seeds {seeds or 'none'}; "
            f"{self.in_process:,} of them also without Spark",
            f"left to Spark: {left:,} of {total:,} ({left / max(total, 1):.1%})",
            *(f"{title}: {_listed(self.by(part))}" for title, part in _PARTS),
            f"{self.mismatches} differ; {len(self.findings)} to look at",
        ]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """The record as JSON's types, with sums for readers."""
        return {
            "cases": self.cases,
            "mismatches": self.mismatches,
            "seconds": round(self.seconds, 1),
            "seeds": {str(seed): count for seed, count in sorted(self.batches.items())},
            "in_process": self.in_process,
            "sums": {title: dict(self.by(part).most_common()) for title, part in _PARTS},
            "counts": {"|".join(key): count for key, count in sorted(self.counts.items())},
            "reasons": dict(self.reasons.most_common()),
            "findings": [asdict(finding) for finding in self.findings],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Record:
        """The record that ``to_json`` gave."""
        return cls(
            Counter({int(seed): count for seed, count in data["seeds"].items()}),
            data["seconds"],
            Counter({tuple(key.split("|")): count for key, count in data["counts"].items()}),
            data["in_process"],
            Counter(data["reasons"]),
            [Finding(**finding) for finding in data["findings"]],
        )

    @classmethod
    def load(cls, path: Path | None) -> Record:
        """The record in a file, or a new one."""
        return cls() if path is None or not path.exists() else cls.from_json(json.loads(path.read_text()))

    def save(self, path: Path | None) -> None:
        """Write the file as a whole or not at all."""
        if path is None:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        part.write_text(json.dumps(self.to_json(), indent=1) + "\n")
        part.replace(path)


_PARTS: tuple[tuple[str, Callable[[tuple[str, str, str, str]], str]], ...] = (
    ("kind", lambda key: key[0]),
    ("format", lambda key: key[1]),
    ("ANSI", lambda key: key[2]),
    ("outcome", lambda key: key[3]),
)


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.most_common()) or "none"
