"""The interface of accumulators, which implement the aggregate functions.

Map tasks ``update`` rows to states, reduce tasks ``merge`` the states of each group, and ``finish`` computes the results.
``avg(x)`` over the rows 1, 2 in one task and 6 in another has the states (sum 3, count 2) and (sum 6, count 1), which merge
to (sum 9, count 3); the result is 3. States are ordinary columns, so they can be shuffled and spilled like any data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import Unsupported
from kquery_spark.functions.registry import CallContext
from kquery_spark.physical.grouping.groups import Groups
from kquery_spark.types.vector import Data, Vector


class Accumulator(ABC):
    """The three phases of one aggregate function. The groups are numbered, and each method works on all groups at once."""

    @abstractmethod
    def state_types(self, args: Sequence[pa.DataType], result: pa.DataType) -> tuple[pa.DataType, ...]:
        """Return the Spark types of the state columns. args: the types of the arguments. result: the type of the result."""

    @abstractmethod
    def update(self, args: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        """Return the state columns of the groups, with one row per group, computed from rows. args: the argument columns."""

    @abstractmethod
    def merge(self, states: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        """Return the state columns of the groups, with one row per group, merged from rows of states."""

    def finish(self, states: Sequence[Vector], context: CallContext) -> Data:
        """Return the result column (of type ``context.dtype``) for states with one row per group; here, the first state."""
        return states[0].data


class Reduction(Accumulator):
    """An associative reduction, such as MIN: states are merged exactly like rows, and the first state is the result."""

    @override
    def merge(self, states: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        return self.update(states, groups, context)


_TABLE: dict[str, Accumulator] = {}


def register_accumulator(name: str, implementation: Accumulator) -> None:
    """Register an accumulator under the name that the functions' registry uses for it. Raises ValueError for duplicates."""
    if name in _TABLE:
        raise ValueError(f"accumulator {name} is registered twice")
    _TABLE[name] = implementation


def accumulator(name: str) -> Accumulator:
    """Return the accumulator with this name. Raises Unsupported if there is none."""
    entry = _TABLE.get(name)
    if entry is None:
        raise Unsupported(f"the aggregate {name} is not supported")
    return entry
