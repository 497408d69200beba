"""The conditions of a scan, prepared once and applied to the batches and dictionaries of all splits."""

from __future__ import annotations

from collections.abc import Sequence, Set

import numpy as np
import pyarrow as pa

from kquery_spark.cached_property import cached_property
from kquery_spark.expr import Expr, columns_of
from kquery_spark.expr.properties import conjunction, conjuncts, is_pure
from kquery_spark.physical.expr import Program
from kquery_spark.sources.dictionary_column import DictionaryColumn
from kquery_spark.types.batch import Batch, run_in_parts
from kquery_spark.types.vector import Flags, true_flags


class RowConditions:
    """A conjunction of conditions (``terms``): a row passes if all of them are true.

    A file can have thousands of row groups, and each one has its own dictionaries. Therefore, what depends only on the
    conditions is computed once: their division by columns, and the compiled programs.
    """

    def __init__(self, terms: Sequence[Expr]) -> None:
        self.terms = tuple(terms)
        self._programs: dict[tuple[str, ...], Program] = {}
        self._remaining: dict[Set[str], RowConditions] = {}
        self._null_passes: bool | None = None

    @cached_property
    def columns(self) -> Set[str]:
        """The names of the columns that the conditions read."""
        return columns_of(*self.terms)

    @cached_property
    def by_column(self) -> dict[str, RowConditions]:
        """The terms that the dictionary of a single column can decide, by the name of the column."""
        by_column: dict[str, list[Expr]] = {}
        for term in self._conjuncts:
            columns = columns_of(term)
            if len(columns) == 1 and is_pure(term):
                by_column.setdefault(next(iter(columns)), []).append(term)
        return {name: RowConditions(terms) for name, terms in by_column.items()}

    def without(self, decided: Set[str]) -> RowConditions:
        """Return the conditions without those that ``by_column`` has for these columns."""
        remaining = self._remaining.get(decided)
        if remaining is None:
            dropped = [term for name in decided for term in self.by_column[name].terms]
            remaining = RowConditions([term for term in self._conjuncts if term not in dropped])
            self._remaining[decided] = remaining
        return remaining

    @cached_property
    def _conjuncts(self) -> list[Expr]:
        return [conjunct for term in self.terms for conjunct in conjuncts(term)]

    def flags(self, batch: Batch) -> Flags | None:
        """Return flags that are True for the rows of a batch that pass; None if there are no conditions."""
        names = tuple(batch.schema.names)
        program = self._programs.get(names)
        if program is None:
            condition = conjunction(list(self.terms))
            if condition is None:
                return None
            program = self._programs[names] = Program([condition], batch.schema)
        parts = [
            true_flags(vectors[0].physical(part.num_rows))
            for part, vectors in run_in_parts(program.run, batch, repeatable=program.is_deterministic)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def passing_values(self, field: pa.Field, column: DictionaryColumn) -> Flags:
        """Return ``DictionaryColumn.flags`` that are True for values that pass. The conditions read only this column.

        NULL is evaluated once for all dictionaries, because kernels take longer for arrays with NULL.
        """
        if self._null_passes is None:
            self._null_passes = bool(self._are_true(field, pa.nulls(1, column.values.type))[0])
        return column.flags(self._are_true(field, column.values), self._null_passes)

    def _are_true(self, field: pa.Field, values: pa.Array) -> Flags:
        flags = self.flags(Batch(pa.schema([field]), (values,), len(values)))
        assert flags is not None  # None is the result without conditions
        return flags
