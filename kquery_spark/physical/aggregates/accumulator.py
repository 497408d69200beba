"""The accumulator protocol.

Map tasks ``update`` raw rows into states, reduce tasks ``merge`` states of the same group, and ``finish`` makes the
result; states are ordinary columns, so they cross a shuffle and spill like any data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import Unsupported
from kquery_spark.functions.registry import CallContext
from kquery_spark.physical.keys import Groups
from kquery_spark.types.vector import Data, Vector


class Accumulator(ABC):
    """One aggregate function's three phases over numbered groups."""

    @abstractmethod
    def state_types(self, args: Sequence[pa.DataType], result: pa.DataType) -> tuple[pa.DataType, ...]:
        """Spark types of the state columns."""

    @abstractmethod
    def update(self, args: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        """States of each group from raw rows."""

    @abstractmethod
    def merge(self, states: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        """States of each group from states of the same group."""

    @abstractmethod
    def finish(self, states: Sequence[Vector], context: CallContext) -> Data:
        """The result column (type ``context.dtype``) from one state row per group."""


class Reduction(Accumulator):
    """An associative reduction: states merge as rows update them, and the first state is the result."""

    @override
    def merge(self, states: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        return self.update(states, groups, context)

    @override
    def finish(self, states: Sequence[Vector], context: CallContext) -> Data:
        return states[0].data


_TABLE: dict[str, Accumulator] = {}


def register_accumulator(name: str, implementation: Accumulator) -> None:
    """Make an accumulator known under the name the aggregate registry uses."""
    if name in _TABLE:
        raise ValueError(f"accumulator {name} is registered twice")
    _TABLE[name] = implementation


def accumulator(name: str) -> Accumulator:
    """The accumulator called ``name``; Unsupported when there is none."""
    entry = _TABLE.get(name)
    if entry is None:
        raise Unsupported(f"the aggregate {name} is not supported")
    return entry
