"""RemoteTable represents a service's table in a client: its name and its schema."""

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
    """A placeholder for a table in a plan that a client sends; the service replaces it by its own table."""

    table: str
    table_schema: pa.Schema

    @property
    @override
    def schema(self) -> pa.Schema:
        return self.table_schema

    @override
    def splits(self) -> list[Split]:
        self._refuse()

    @override
    def read(self, split: Split, columns: Sequence[str]) -> Iterator[Batch]:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise SourceError(f"{self.table} is a table of a service; only the service can read it")
