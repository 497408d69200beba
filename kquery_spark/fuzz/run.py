"""The loop: cases until the time or their number is up, each difference shrunk."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from kquery_spark.fuzz.generate import Case, Generator
from kquery_spark.fuzz.oracle import Oracle
from kquery_spark.fuzz.report import Mismatch
from kquery_spark.fuzz.shrink import shrink


@dataclass
class Summary:
    """How many cases ended how, and every difference."""

    outcomes: Counter[str] = field(default_factory=Counter)
    mismatches: list[Mismatch] = field(default_factory=list)

    def __str__(self) -> str:
        counts = ", ".join(f"{kind} {count}" for kind, count in self.outcomes.most_common())
        return f"{sum(self.outcomes.values())} cases: {counts or 'none'}; {len(self.mismatches)} to look at"


def fuzz(
    spark: SparkSession,
    seed: int,
    seconds: float | None = None,
    cases: int | None = None,
    found: Callable[[Mismatch], None] = lambda mismatch: None,
    shrink_attempts: int = 150,
) -> Summary:
    """Run cases of ``seed`` until ``seconds`` have passed or ``cases`` are done.

    ``found`` hears of each difference. Cases that fail alike (same kind, same words) are reported once.
    """
    if seconds is None and cases is None:
        raise ValueError("say for how long (seconds) or how many (cases)")
    generator, summary = Generator(seed), Summary()
    known: set[tuple[str, str]] = set()
    start, number = time.monotonic(), 0
    with Oracle(spark) as oracle:
        while (cases is None or number < cases) and (seconds is None or time.monotonic() - start < seconds):
            number += 1
            case = generator.next()
            outcome = oracle.run(case)
            summary.outcomes[outcome.kind] += 1
            if not outcome.mismatch:
                continue
            failing = outcome

            def still_fails(smaller: Case) -> bool:
                nonlocal failing
                now = oracle.run(smaller)
                same = (now.kind, now.signature, now.local) == (
                    failing.kind,
                    failing.signature,
                    failing.local,
                )
                failing = now if same else failing
                return same

            small = shrink(case, still_fails, shrink_attempts)
            mark = (failing.kind, failing.detail)
            if mark not in known:
                known.add(mark)
                mismatch = Mismatch(seed, number, case, small, failing)
                summary.mismatches.append(mismatch)
                found(mismatch)
    return summary
