"""A fuzzer: reads mutated plans. Each must end in rows or in a KQueryError, never in a crash or an endless loop.

``python -m tests.frontends.substrait.mutated_plans 100000 --seed 1`` reads 100,000 of them in child processes, and
runs those that are still valid plans. The test suite reads a few hundred in its own process.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from google.protobuf.message import DecodeError

import kquery_spark as kq
from kquery_spark.logical import Join, Scan
from kquery_spark.logical.subqueries import walk_with_subqueries
from tests.frontends.substrait import queries
from tests.stages.mutations import BYTES
from tests.support.fuzzed_cases import run_in_children, time_limit

WALL_SECONDS = 60  # the limit for one plan, which is high because the machine may be busy
_MAX_JOINS = 3  # in a plan that is run: each cross join multiplies the rows
_INTERESTING = (0, 1, 2, 3, 15, 127, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, -1, -(2**31), -(2**63))


def corpus() -> list[bytes]:
    """Valid plans that use everything that the reader supports."""
    context = queries.context()
    return [context.sql(sql).to_substrait() for sql in (*queries.QUERIES, *queries.REWRITTEN)]


def mutated(rng: random.Random, plans: Sequence[bytes]) -> bytes:
    """A plan with one or several mutations, either of its bytes or of the fields of its messages."""
    data = rng.choice(plans)
    if rng.random() < 0.3:
        mutation = rng.choice(BYTES)
        return mutation(rng, data, plans)
    from substrait.proto import Plan

    plan, other = Plan.FromString(data), Plan.FromString(rng.choice(plans))
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        messages = [m for m in messages_within(plan) if m.DESCRIPTOR.fields]
        with contextlib.suppress(ValueError, TypeError, OverflowError, DecodeError, AttributeError):
            _edit(rng, rng.choice(messages), messages, list(messages_within(other)))
    return bytes(plan.SerializeToString())


def messages_within(message: Any) -> Iterator[Any]:
    """Yield a message and all messages within it."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for each in [value] if hasattr(value, "DESCRIPTOR") else value:
                yield from messages_within(each)


def _edit(rng: random.Random, message: Any, own: Sequence[Any], others: Sequence[Any]) -> None:
    """Clear, replace, repeat or set a random field of a message. own, others: the messages of its plan and of another one."""
    fields = message.DESCRIPTOR.fields
    present = [field for field, _ in message.ListFields()]
    match rng.randrange(6):
        case 0 if present:
            message.ClearField(rng.choice(present).name)
        case 1:
            same = [m for m in (*own, *others) if m.DESCRIPTOR is message.DESCRIPTOR and m is not message]
            if same:  # parsed from bytes: a message must not be copied into a message within it
                message.ParseFromString(rng.choice(same).SerializeToString())
        case 2:
            repeated = [f for f in present if _is_repeated(f)]
            if repeated:
                values = getattr(message, rng.choice(repeated).name)
                if rng.randrange(2):
                    del values[rng.randrange(len(values))]
                else:
                    values.append(rng.choice(list(values)))
        case 3:
            _set(rng, message, rng.choice(present or fields))
        case _:
            _set(rng, message, rng.choice(fields))


def _is_repeated(field: Any) -> bool:
    """Return whether a field is repeated. Releases of protobuf before 6.31 have labels instead of ``is_repeated``."""
    return bool(field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED)


def _set(rng: random.Random, message: Any, field: Any) -> None:
    """Set a field to a random value of its type; a repeated one gets one more value."""
    number = rng.choice((rng.choice(_INTERESTING), rng.randrange(12)))
    if field.message_type is not None:
        inner = getattr(message, field.name)
        inner.add() if _is_repeated(field) else inner.SetInParent()
        return
    value: Any
    if field.type == field.TYPE_STRING:
        value = rng.choice(
            ("", "t", "u", "add", "equal", "i", "k", "x" * 1000, "\0", "YEAR", "ERROR", "/etc/passwd")
        )
    elif field.type == field.TYPE_BYTES:
        value = rng.randbytes(rng.choice((0, 1, 16, 17)))
    elif field.type == field.TYPE_BOOL:
        value = bool(rng.randrange(2))
    elif field.type in (field.TYPE_FLOAT, field.TYPE_DOUBLE):
        value = rng.choice((0.0, -0.0, 1e308, float("nan"), float("inf")))
    else:
        value = number
    if _is_repeated(field):
        getattr(message, field.name).append(value)
    else:
        setattr(message, field.name, value)


def outcome(context: kq.ExecutionContext, data: bytes) -> str:
    """Read and run a plan; return how it ends.

    "declined": reading raised an error of this package. "failed": running did. "not run": the plan is too large to run.
    "rows": it returned rows. "finding: ...": anything else, which is a bug.
    """
    stage = "declined"
    try:
        with time_limit(WALL_SECONDS):
            query = context.substrait_query(data)
            stage = "failed"
            nodes = list(walk_with_subqueries(query.plan))
            if (
                sum(isinstance(n, Join) for n in nodes) > _MAX_JOINS
                or sum(isinstance(n, Scan) for n in nodes) > 2 * _MAX_JOINS
            ):
                return "not run"
            rows = context.run(query)
            rows.validate(full=True)
            if rows.schema.types != query.plan.schema.types:
                return f"finding: columns {rows.schema} for {query.plan.schema}"
            return "rows"
    except kq.KQueryError:
        return stage
    except BaseException as error:
        return f"finding: {stage}: {type(error).__name__}: {error!s:.300}"


def read_mutated(start: int, count: int, seed: int) -> Iterator[str]:
    """Yield the outcome of each plan from ``start`` to ``count``; a plan depends only on the seed and its number."""
    plans, context = corpus(), queries.context()
    for number in range(start, count):
        yield outcome(context, mutated(random.Random(f"{seed} {number}"), plans))


def read_in_children(count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Return the number of each outcome, and the findings.

    A plan that kills its child process or does not end is a finding, too.
    """
    outcomes: Counter[str] = Counter()
    findings: list[str] = []
    for number, result, problem in run_in_children(read_mutated, count, seed, 2 * WALL_SECONDS):
        ended = result or f"finding: {problem}"
        outcomes[ended.partition(":")[0]] += 1
        if ended.startswith("finding"):
            findings.append(f"seed {seed} plan {number}: {ended}")
    return outcomes, findings


def main() -> None:
    """Read the number of plans on the command line; exit with code 1 if there are findings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    start = time.monotonic()
    outcomes, findings = read_in_children(options.count, options.seed)
    counts = ", ".join(f"{n:,} {kind}" for kind, n in outcomes.most_common())
    print(f"{sum(outcomes.values()):,} plans: {counts}; {time.monotonic() - start:.0f} s")
    print("\n".join(findings[:50]))
    sys.exit(bool(findings))


if __name__ == "__main__":
    main()
