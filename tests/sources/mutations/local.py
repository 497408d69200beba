"""Damaged files through ``ExecutionContext``, in forked children, so that a signal ends no more than a child.

A child reads many files and reports each one. When the child dies or hangs, the file in progress is the finding, and
another child continues with the next file.
"""

from __future__ import annotations

import math
import resource
import time
import warnings
from collections.abc import Iterator, Sequence

from kquery_spark import ExecutionContext
from kquery_spark.errors import KQueryError, PlanError
from tests.sources.mutations.cases import Case, damaged, undamaged
from tests.sources.mutations.children import Child, Write
from tests.sources.mutations.formats import MutatedFormat, Pristine
from tests.sources.mutations.outcomes import FOREIGN, MISFIT, NAMED, ROWS, SIGNAL, TIMEOUT, UNNAMED, Outcome

_CASES_PER_CHILD = 200
_MEMORY_BYTES = 8 << 30  # of address space: a damaged size may ask for any
_WAY = "ExecutionContext"


def campaign(
    fmt: MutatedFormat,
    inputs: Sequence[Pristine],
    seed: int,
    numbers: Sequence[int],
    seconds: float,
    deadline: float = math.inf,
) -> Iterator[Outcome]:
    """The outcomes of reading the cases that are read before the deadline. seconds: the time limit of one case."""
    fmt.prepare()
    remaining = list(numbers)
    while remaining and time.monotonic() < deadline:
        batch, done = remaining[:_CASES_PER_CHILD], 0
        with undamaged(inputs):
            child = Child.forked(lambda write, batch=batch: _read_all(fmt, inputs, seed, batch, write))
            for outcome in child.outcomes(seconds, deadline):
                done += 1
                yield outcome
            ending = child.end()
        # A child may finish its cases just after the deadline, when its outcomes are not read anymore.
        if time.monotonic() >= deadline and (ending.is_late or ending.has_finished):
            return
        if done < len(batch):
            yield Outcome(batch[done], _WAY, TIMEOUT if ending.is_late else SIGNAL, ending.description)
        remaining = remaining[done + 1 :] if done < len(batch) else remaining[done:]


def _read_all(
    fmt: MutatedFormat, inputs: Sequence[Pristine], seed: int, batch: Sequence[int], write: Write
) -> None:
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in batch:
        with damaged(fmt, inputs, seed, number) as case:
            outcome = read(fmt, case)
        write(outcome.to_line())


def read(fmt: MutatedFormat, case: Case) -> Outcome:
    """Runs the queries of a case in this process."""
    rows = []
    try:
        context = ExecutionContext()
        fmt.register(context, case.pristine.root)
        for query in case.pristine.queries:
            rows.append(context.sql(query).to_arrow().num_rows)
    except PlanError as error:
        return Outcome(case.number, _WAY, MISFIT, str(error))
    except KQueryError as error:
        kind = NAMED if case.is_named_in(str(error)) else UNNAMED
        return Outcome(case.number, _WAY, kind, f"{type(error).__name__}: {error}")
    except Exception as error:
        return Outcome(case.number, _WAY, FOREIGN, f"{type(error).__name__}: {error}")
    return Outcome(case.number, _WAY, ROWS, f"{rows} rows")
