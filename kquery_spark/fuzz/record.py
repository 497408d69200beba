"""The record of a campaign: counts and findings. It is saved in a file, so that a stopped campaign can be resumed."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kquery_spark.fuzz.oracle import MISMATCHES, CaseOutcome

COMPARED = ("same", "both fail", *MISMATCHES)
"""The outcomes that count as compared: both engines had an answer or an error."""
_MAX_REASONS = 200


@dataclass(frozen=True)
class Finding:
    """A difference: its seed and batch, its kind, and the smallest query that shows it."""

    seed: int
    batch: int
    kind: str
    detail: str
    sql: str
    settings: dict[str, str]


@dataclass
class Record:
    """The counts of a campaign.

    batches: the finished batches by seed. counts: cases by shape, table format, ANSI mode and outcome. in_process: cases
    that also had the same result in the engine without Spark. reasons: counts of the reasons why cases were not compared.
    """

    batches: Counter[int] = field(default_factory=Counter)
    seconds: float = 0.0
    counts: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    in_process: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    def add(
        self, what: str, table_format: str, ansi: bool, outcome: CaseOutcome, in_process: bool = False
    ) -> None:
        """Count one case."""
        self.counts[what, table_format, "on" if ansi else "off", outcome.kind] += 1
        self.in_process += in_process
        reason = f"{outcome.kind}: {outcome.detail[:150]}"
        if outcome.kind in ("fallback", "not compared", "invalid") and (
            reason in self.reasons or len(self.reasons) < _MAX_REASONS
        ):
            self.reasons[reason] += 1

    @property
    def cases(self) -> int:
        """The number of cases that both engines ran."""
        return sum(count for key, count in self.counts.items() if key[3] in COMPARED)

    @property
    def mismatches(self) -> int:
        """The number of cases that differ, including those that are like an earlier finding."""
        return sum(count for key, count in self.counts.items() if key[3] in MISMATCHES)

    def counts_by(self, field_of: Callable[[tuple[str, str, str, str]], str]) -> Counter[str]:
        """Return the counts of all cases by one part of their key."""
        totals: Counter[str] = Counter()
        for key, count in self.counts.items():
            totals[field_of(key)] += count
        return totals

    def __str__(self) -> str:
        total = sum(self.counts.values())
        fallbacks = self.counts_by(lambda key: key[3])["fallback"]
        seeds = ", ".join(f"{seed} ({count} batches)" for seed, count in sorted(self.batches.items()))
        lines = [
            f"{self.cases:,} cases compared in {self.seconds:,.0f} s, seeds {seeds or 'none'}; "
            f"{self.in_process:,} of them also without Spark",
            f"fell back to Spark: {fallbacks:,} of {total:,} ({fallbacks / max(total, 1):.1%})",
            *(f"{title}: {_listed(self.counts_by(part))}" for title, part in _PARTS),
            f"{self.mismatches} differ; {len(self.findings)} findings",
        ]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON values, with sums for human readers."""
        return {
            "cases": self.cases,
            "mismatches": self.mismatches,
            "seconds": round(self.seconds, 1),
            "seeds": {str(seed): count for seed, count in sorted(self.batches.items())},
            "in_process": self.in_process,
            "sums": {title: dict(self.counts_by(part).most_common()) for title, part in _PARTS},
            "counts": {"|".join(key): count for key, count in sorted(self.counts.items())},
            "reasons": dict(self.reasons.most_common()),
            "findings": [asdict(finding) for finding in self.findings],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Record:
        """Return the record that ``to_json`` converted."""
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
        """Return the record in a file, or a new one if the file does not exist."""
        return cls() if path is None or not path.exists() else cls.from_json(json.loads(path.read_text()))

    def save(self, path: Path | None) -> None:
        """Write the file atomically."""
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
