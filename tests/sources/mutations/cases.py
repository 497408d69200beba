"""The cases of a campaign: a seed and a number choose the input, the file, and the damage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.sources.mutations.formats import MutatedFormat, Mutation, Pristine


@dataclass(frozen=True)
class Case:
    """One damaged file of one input."""

    number: int
    pristine: Pristine
    file: Path
    mutation: Mutation

    def __str__(self) -> str:
        return f"case {self.number}: {self.pristine.name}/{self.file.name}, {self.mutation.description}"

    def is_named_in(self, message: str) -> bool:
        """True if an error message names the file or its table."""
        return self.file.name in message or self.pristine.root.name in message


@contextmanager
def damaged(fmt: MutatedFormat, inputs: Sequence[Pristine], seed: int, number: int) -> Iterator[Case]:
    """The case, with the file damaged in place until it ends, as metadata of tables names files by absolute paths."""
    rng = Random(f"{fmt.name} {seed} {number}")
    pristine = rng.choice(inputs)
    file = rng.choice(pristine.files)
    original = file.read_bytes()
    mutation = fmt.mutate(original, file, rng)
    try:
        file.write_bytes(mutation.data)
        yield Case(number, pristine, file, mutation)
    finally:
        file.write_bytes(original)


@contextmanager
def undamaged(inputs: Sequence[Pristine]) -> Iterator[None]:
    """Restores all files at the end; a child that died may have left one damaged."""
    originals = {file: file.read_bytes() for pristine in inputs for file in pristine.files}
    try:
        yield
    finally:
        for file, data in originals.items():
            if not file.exists() or file.read_bytes() != data:
                file.write_bytes(data)
