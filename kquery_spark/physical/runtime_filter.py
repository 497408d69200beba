"""Run-time filters: a join's built keys drop probe rows already in the scan, before other columns are decoded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from kquery_spark.expr import Column, Expr
from kquery_spark.logical.join import JoinKind
from kquery_spark.physical.join_table import JoinTable
from kquery_spark.types.vector import Vector

_TRIAL_ROWS = 200_000
_USELESS_SHARE = 0.6


@dataclass
class RuntimeFilter:
    """Keeps rows whose key columns have a match; switches itself off once it has shown to keep most rows."""

    columns: tuple[str, ...]
    table: JoinTable
    seen: int = 0
    kept: int = 0
    off: bool = field(default=False)

    def mask(self, keys: Sequence[Vector], num_rows: int) -> npt.NDArray[np.bool_]:
        """Which rows have a match."""
        hits = self.table.contains(keys, num_rows)
        self.seen += num_rows
        self.kept += int(np.count_nonzero(hits))
        if self.seen >= _TRIAL_ROWS and self.kept > _USELESS_SHARE * self.seen:
            self.off = True
        return hits


def drops_unmatched(kind: JoinKind, build_is_left: bool) -> bool:
    """Whether a probe row without a match never comes out."""
    if kind is JoinKind.INNER:
        return True
    if build_is_left:
        return kind in (JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI, JoinKind.EXISTENCE)
    return kind in (JoinKind.RIGHT, JoinKind.SEMI)


def key_names(keys: Sequence[Expr]) -> tuple[str, ...] | None:
    """The column names of keys that are all plain columns."""
    names = tuple(k.name for k in keys if isinstance(k, Column))
    return names if len(names) == len(keys) and names else None
