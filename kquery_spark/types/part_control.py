"""Limits the size of each array that a function builds for a batch, if the function can run on parts of the batch."""

from __future__ import annotations

from typing_extensions import override

from kquery_spark.errors import BatchTooLarge
from kquery_spark.run_control import RunControl


class PartTooLarge(BatchTooLarge):
    """An array for one batch would have ``nbytes`` bytes, so ``run_in_parts`` has to compute it for fewer rows."""

    def __init__(self, nbytes: int) -> None:
        super().__init__(f"an array of {nbytes} bytes for one batch is not supported")
        self.nbytes = nbytes


class PartControl(RunControl):
    """The control of one call of a function that can run on fewer rows: no array should have more than ``part_bytes`` bytes.

    within: the control of the run, whose limits apply first.
    """

    def __init__(self, part_bytes: int, within: RunControl | None) -> None:
        super().__init__(within=within)
        self._run = within
        self._part_bytes = part_bytes
        if within is None or within.max_bytes is None:
            # Without a limit of the run, sizes far below the limit of a part need not be exact.
            self.negligible_bytes = part_bytes // 4

    @property
    @override
    def limits_allocations(self) -> bool:
        return True

    @override
    def add(self, rows: int, nbytes: int = 0) -> None:
        if self._run is not None:
            self._run.add(rows, nbytes)

    @override
    def reserve(self, nbytes: int) -> None:
        """Raise PartTooLarge if one allocation of this size is too large for a batch."""
        if self._run is not None:
            self._run.reserve(nbytes)
        if nbytes > self._part_bytes:
            raise PartTooLarge(nbytes)
