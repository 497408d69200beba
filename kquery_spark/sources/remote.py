"""RemoteTable: a table of a service as its clients know it, a name and a schema."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import SourceError
from kquery_spark.sources.base import Source, Split
from kquery_spark.types.batch import Batch


@dataclass(frozen=True)
class RemoteTable(Source):
    """Stands for a table in a plan on its way to the service, which puts its own table there."""

    table: str
    table_schema: pa.Schema

    @property
    @override
    def schema(self) -> pa.Schema:
        return self.table_schema

    def splits(self) -> list[Split]:
        """Refused: the rows are elsewhere."""
        self._refuse()

    def read(self, split: Split, columns: Sequence[str]) -> Iterator[Batch]:
        """Refused: the rows are elsewhere."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise SourceError(f"{self.table} is a table of a service; only the service can read it")
