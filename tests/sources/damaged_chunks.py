"""Column chunks with changed bytes: the compiled loops return what pyarrow reads, or decline the chunk."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kquery_spark.errors import SourceError
from kquery_spark.sources.parquet.open_files import open_file
from kquery_spark.sources.parquet.path_source import parquet_source
from tests.sources.parquet_reading import with_comparable_bits

MAX_UNREPORTED = 0.005
"""The largest share of damaged chunks that the loops may read although pyarrow refuses them. Measured: at most 0.001.

pyarrow also parses the fields of page headers that have no effect on the rows, such as statistics, which the loops skip.
"""


def check_damaged_chunks(path: Path, kernels: ModuleType, count: int) -> None:
    """Read ``count`` copies of a file with one row group, each with one to three changed bytes in the chunk of a column.

    The loops must return pyarrow's rows, for all rows and for a selection, if both read a chunk. They must read some of the
    damaged chunks, and decline some of those that pyarrow refuses.
    """
    rng = np.random.default_rng(3)
    good, group = path.read_bytes(), pq.read_metadata(path).row_group(0)
    chosen = np.arange(0, group.num_rows, group.num_rows // 12)
    outcomes: Counter[tuple[bool, bool]] = Counter()
    for number in range(count):
        chunk = group.column(number % group.num_columns)
        start, name = chunk.dictionary_page_offset or chunk.data_page_offset, chunk.path_in_schema
        bad = bytearray(good)
        for _ in range(int(rng.integers(1, 4))):
            bad[int(rng.integers(start, start + chunk.total_compressed_size))] = int(rng.integers(0, 256))
        changed = path.with_name(f"{number}.parquet")
        changed.write_bytes(bad)
        opened = open_file(parquet_source([str(changed)]).files[0])
        found = opened.column_readers([0], [name], kernels)[name].read()
        some = opened.column_readers([0], [name], kernels)[name].read(chosen)
        try:
            expected = with_comparable_bits(opened.read(0, [name]).column(0))
        except SourceError as error:
            assert "row group 0" in str(error) and changed.name in str(error)
            expected = None
        if found is not None:
            found.validate()
            assert some is not None, (number, name)
        if found is not None and expected is not None:
            assert with_comparable_bits(pa.chunked_array([found])).equals(expected), (number, name)
        if some is not None and expected is not None:
            assert with_comparable_bits(pa.chunked_array([some])).equals(expected.take(pa.array(chosen))), (
                number,
                name,
            )
        outcomes[found is not None, expected is not None] += 1
        changed.unlink()
    assert outcomes[True, True] and outcomes[False, False], outcomes
    assert outcomes[True, False] <= MAX_UNREPORTED * count, outcomes
