"""Runs a campaign: batches of several seeds in turn, until a time or a number of cases is reached."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pyspark.sql import SparkSession

from kquery_spark.fuzz.batch_oracle import BatchOracle
from kquery_spark.fuzz.batches import Batch, random_batch
from kquery_spark.fuzz.expressions import Expr
from kquery_spark.fuzz.generate import Case, Generator
from kquery_spark.fuzz.oracle import CaseOutcome, Oracle
from kquery_spark.fuzz.record import Finding, Record
from kquery_spark.fuzz.report import Mismatch
from kquery_spark.fuzz.settings import UNCOMPILED, applied, is_ansi
from kquery_spark.fuzz.shrink import shrink
from kquery_spark.fuzz.store import TableStore

Cases = Literal["queries", "expressions", "both"]
_QUERIES_PER_BATCH = 8
"""The number of whole queries in one batch. They share their tables."""
_BATCHES_PER_QUERY_BATCH = 16
"""If a run has both kinds of batches, one in this number is of whole queries, because these take most of its time."""
_MAX_SHRUNK_PER_BATCH = 3


@dataclass(frozen=True)
class Campaign:
    """What to run. It ends after ``seconds`` of this run or ``cases`` of the whole record, whichever is reached first."""

    seeds: Sequence[int]
    seconds: float | None = None
    cases: int | None = None
    only: Cases = "both"
    shrink_attempts: int = 150

    def __post_init__(self) -> None:
        if self.seconds is None and self.cases is None:
            raise ValueError("pass seconds or cases")

    def is_over(self, record: Record, seconds: float) -> bool:
        """Return True if the campaign is over. seconds: the time of this run so far."""
        enough = self.cases is not None and record.cases >= self.cases
        return enough or (self.seconds is not None and seconds >= self.seconds)

    def is_of_queries(self, number: int) -> bool:
        """Return True if the batch with this number has whole queries, False if it has expressions."""
        return self.only == "queries" or (
            self.only == "both" and number % _BATCHES_PER_QUERY_BATCH == _BATCHES_PER_QUERY_BATCH - 1
        )


@dataclass
class Fuzzer:
    """Runs batches, counts outcomes, and shrinks the cases that differ. Calls ``found`` for each new difference."""

    spark: SparkSession
    campaign: Campaign
    record: Record
    found: Callable[[Mismatch], None] = lambda mismatch: None
    _known: set[tuple[str, str]] = field(default_factory=set)

    def run(self, progress: Callable[[Record], None] = lambda record: None) -> Record:
        """Run until the campaign is over. ``progress`` is called with the record after each batch."""
        before, start = self.record.seconds, time.monotonic()
        with TableStore(self.spark) as store, applied(self.spark, UNCOMPILED):
            while not self.campaign.is_over(self.record, time.monotonic() - start):
                seed = min(self.campaign.seeds, key=lambda one: self.record.batches[one])
                number = self.record.batches[seed]
                if self.campaign.is_of_queries(number):
                    self._queries(store, seed, number)
                else:
                    self._expressions(store, seed, number)
                self.record.batches[seed] += 1
                self.record.seconds = round(before + time.monotonic() - start, 1)
                progress(self.record)
        return self.record

    def _queries(self, store: TableStore, seed: int, number: int) -> None:
        oracle, generator = Oracle(self.spark, store), Generator(f"{seed}/{number}", _QUERIES_PER_BATCH)
        for _ in range(_QUERIES_PER_BATCH):
            case = generator.next()
            outcome = oracle.run(case)
            formats = {table.format for table in case.tables}
            named = formats.pop() if len(formats) == 1 else "several"
            self.record.add("query", named, is_ansi(case.settings), outcome)
            if outcome.mismatch:
                self._shrink(oracle, seed, number, case, outcome)

    def _expressions(self, store: TableStore, seed: int, number: int) -> None:
        batch = random_batch(seed, number)
        shrunk = 0
        for judged in BatchOracle(self.spark, store).run(batch):
            outcome = judged.outcome
            assert outcome is not None
            self.record.add(batch.shape, batch.table.format, batch.ansi, outcome, judged.in_process)
            if (
                outcome.mismatch
                and not self._is_known(outcome.kind, judged.expr)
                and shrunk < _MAX_SHRUNK_PER_BATCH
            ):
                shrunk += 1
                self._look_into(store, seed, number, batch, judged.expr, outcome)

    def _look_into(
        self, store: TableStore, seed: int, number: int, batch: Batch, expr: Expr, outcome: CaseOutcome
    ) -> None:
        """Shrink an expression if it also differs by itself; otherwise report it unchanged."""
        case = batch.case(expr)
        oracle = Oracle(self.spark, store)
        alone = oracle.run(case)
        if expr.args:
            self._known.add((outcome.kind, expr.text))
        if alone.mismatch:
            self._shrink(oracle, seed, number, case, alone)
        else:
            self._report(Mismatch(seed, number, case, case, outcome))

    def _is_known(self, kind: str, expr: Expr) -> bool:
        """Return True if a difference of the same kind was reported for a call of the same form."""
        return any((kind, text) in self._known for text in expr.strings())

    def _shrink(self, oracle: Oracle, seed: int, number: int, case: Case, outcome: CaseOutcome) -> None:
        # A smaller case counts only if it fails in the same way. Otherwise shrinking could slip to another bug.
        failing = outcome

        def still_fails(smaller: Case) -> bool:
            nonlocal failing
            now = oracle.run(smaller)
            same = (now.kind, now.signature, now.local) == (failing.kind, failing.signature, failing.local)
            failing = now if same else failing
            return same

        small = shrink(case, still_fails, self.campaign.shrink_attempts)
        self._report(Mismatch(seed, number, case, small, failing))

    def _report(self, mismatch: Mismatch) -> None:
        mark = (mismatch.outcome.kind, mismatch.outcome.detail)
        if mark in self._known:
            return
        self._known.add(mark)
        query, outcome = mismatch.case.query, mismatch.outcome
        for item in getattr(query, "items", ()):
            if item.expr.args:
                self._known.add((outcome.kind, item.expr.text))
        where = " (without Spark)" if outcome.local else ""
        detail = f"{outcome.detail}{where}"
        self.record.findings.append(
            Finding(mismatch.seed, mismatch.number, outcome.kind, detail, query.sql(), mismatch.case.settings)
        )
        self.found(mismatch)


def fuzz(
    spark: SparkSession,
    campaign: Campaign,
    path: Path | None = None,
    found: Callable[[Mismatch], None] = lambda mismatch: None,
    progress: Callable[[Record], None] = lambda record: None,
) -> Record:
    """Run a campaign. path: the file of its record, which is read first and written after each batch."""

    def save(record: Record) -> None:
        record.save(path)
        progress(record)

    return Fuzzer(spark, campaign, Record.load(path), found).run(save)
