"""Deletion vectors: read from files and from the log, and errors that name what is damaged."""

import base64
import struct
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

from kquery_spark.errors import SourceError
from kquery_spark.kernels.compiled import FILE_LOOPS
from kquery_spark.sources.deletes.deletion_vectors import DeletionVector
from kquery_spark.sources.deletes.live_rows import LiveRows
from kquery_spark.sources.delta.deletion_vectors import deletion_vector, encoded_deletion_vector
from kquery_spark.sources.parquet.path_source import parquet_source

MAGIC = struct.pack("<I", 1681511377)


def stored(numbers: list[int]) -> bytes:
    return MAGIC + BitMap64(numbers).serialize()


def framed(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))


@pytest.fixture
def vector(tmp_path):
    data = stored([2, 5, 7])
    path = tmp_path / "deleted.bin"
    path.write_bytes(b"\x01" + framed(data))
    return DeletionVector(3, len(data), str(path), 1)


def test_rows_are_read_from_a_file(vector):
    assert vector.positions().tolist() == [2, 5, 7]


@pytest.mark.parametrize(
    ("at", "new", "sentence"),
    [
        (0, b"\x00\x00\x00\x01", "1 bytes long, but the table says"),
        (4, b"\x00", "checksum"),
        (30, b"\xff", "checksum"),
    ],
)
def test_a_damaged_vector_is_an_error_that_names_the_file(vector, at, new, sentence):
    with open(vector.path, "r+b") as file:
        file.seek(1 + at)
        file.write(new)
    with pytest.raises(SourceError, match=rf"deleted\.bin is damaged: .*{sentence}"):
        vector.positions()


def test_a_vector_of_another_table_is_an_error(tmp_path):
    data = stored([1, 2])
    path = tmp_path / "deleted.bin"
    path.write_bytes(framed(data))
    with pytest.raises(SourceError, match="it has 2 rows, but the table says 3"):
        DeletionVector(3, len(data), str(path)).positions()
    with pytest.raises(SourceError, match="the file ends within it"):
        DeletionVector(2, len(data) + 1, str(path)).positions()


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(SourceError, match=r"cannot read the deletion vector at byte 0 of .*gone"):
        DeletionVector(3, 40, str(tmp_path / "gone.bin")).positions()


def test_bytes_without_the_magic_number_are_an_error():
    data = b"xxxx" + BitMap64([1]).serialize()
    with pytest.raises(SourceError, match="in the table's log is damaged"):
        DeletionVector(1, len(data), inline=data).positions()


def z85(data: bytes) -> str:
    characters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    text = ""
    for (word,) in struct.iter_unpack(">I", data + bytes(-len(data) % 4)):
        text += "".join(characters[word // 85**power % 85] for power in (4, 3, 2, 1, 0))
    return text


class TestDescriptors:
    def test_of_a_file_that_a_uuid_names(self):
        # The examples of Delta's protocol.
        vector = deletion_vector("u", "ab^-aqEH.-t@S}K{vb[*k^", 4, 40, 6, "s3://mytable")
        assert vector.path == "s3://mytable/ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
        assert (vector.offset, vector.nbytes, vector.count) == (4, 40, 6)

    def test_of_an_absolute_path_which_is_escaped(self):
        vector = deletion_vector("p", "s3://my%20table/deletion_vector_1.bin", 4, 40, 6, "/t")
        assert vector.path == "s3://my table/deletion_vector_1.bin"

    def test_of_a_vector_in_the_log(self):
        # Delta's protocol has this example, whose bitmap is in a form that no release has written.
        vector = deletion_vector("i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 0, 40, 6, "/t")
        assert vector.inline[:4].hex() == "6439d3d0"
        with pytest.raises(SourceError, match="does not begin with the magic number"):
            vector.positions()

    @pytest.mark.parametrize("storage", ["u", "p", "r"])
    def test_as_delta_encodes_them_for_its_reader(self, storage):
        where = {"u": "ab^-aqEH.-t@S}K{vb[*k^", "p": "file:/x/d.bin", "r": "d.bin"}[storage]
        text = (
            struct.pack(">qic", 6, 40, storage.encode()) + struct.pack(">iH", 4, len(where)) + where.encode()
        )
        vector = encoded_deletion_vector(base64.b64encode(text).decode(), "/t")
        assert vector == deletion_vector(storage, where, 4, 40, 6, "/t")

    def test_without_an_offset(self):
        text = struct.pack(">qicH", 6, 40, b"R", 5) + b"d.bin"
        vector = encoded_deletion_vector(base64.b64encode(text).decode(), "/t")
        assert (vector.path, vector.offset) == ("/t/d.bin", 0)

    def test_inline(self):
        data = stored([0, 9])
        where = z85(data).encode()
        text = struct.pack(">qicH", 2, len(data), b"i", len(where)) + where
        assert encoded_deletion_vector(base64.b64encode(text).decode(), "/t").positions().tolist() == [0, 9]

    @pytest.mark.parametrize(
        "text",
        [
            b"",
            b"123",
            struct.pack(">qicH", 6, 40, b"R", 9) + b"d.bin",
            struct.pack(">qicH", 6, 40, b"Q", 5) + b"d.bin",
            struct.pack(">qicH", -6, 40, b"R", 5) + b"d.bin",
            struct.pack(">qicH", 6, 40, b"i", 5) + b"d.b\xc3n",
            struct.pack(">qicH", 6, 40, b"i", 5) + b"d\"b'n",
        ],
    )
    def test_what_is_no_descriptor_is_an_error(self, text):
        with pytest.raises(SourceError, match="/t has a deletion vector that cannot be found"):
            encoded_deletion_vector(base64.b64encode(text).decode(), "/t")


class TestLiveRows:
    ROWS = 1000

    @pytest.fixture
    def source(self, tmp_path):
        """Two files of four row groups; the first one has deleted rows: all of its first group, none of its last."""
        for name in ("a", "b"):
            table = pa.table(
                {"x": range(self.ROWS), "s": [None if i % 7 == 0 else str(i % 5) for i in range(self.ROWS)]}
            )
            pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=250)
        deleted = [*range(250), 255, 499, 500, 620]
        data = stored(deleted)
        return LiveRows(
            parquet_source([str(tmp_path)]), (DeletionVector(len(deleted), len(data), inline=data), None)
        )

    @pytest.fixture
    def expected(self):
        return [i for i in range(self.ROWS) if i >= 250 and i not in (255, 499, 500, 620)]

    def test_deleted_rows_are_not_read(self, source, expected):
        read = [batch for split in source.splits() for batch in source.read(split, ["x"])]
        assert [x for batch in read for x in batch.columns[0].to_pylist()] == expected + list(
            range(self.ROWS)
        )

    def test_splits_count_the_rows_that_are_left(self, source):
        assert [split.rows for split in source.splits()] == [0, 248, 248, 250, 250, 250, 250, 250]
        assert source.row_count() == 1746

    def test_rows_without_columns_are_counted(self, source):
        assert [b.num_rows for split in source.splits() for b in source.read(split, [])][:4] == [
            0,
            248,
            248,
            250,
        ]

    def test_rows_go_by_their_number_among_those_left(self, source):
        split = source.splits()[1]
        (batch,) = source.read(split, ["x"])
        some = [0, 5, 100, 247]
        rows = source.read_rows(split, ["x", "s"], np.array(some))
        assert rows.columns[0].to_pylist() == [batch.columns[0][i].as_py() for i in some]

    def test_bounds_are_kept_and_counts_of_nulls_are_not(self, source):
        split, whole = source.splits()[1], source.splits()[5]
        assert (source.ranges(split, "x").low, source.ranges(split, "x").high) == (250, 499)
        assert source.ranges(split, "x").nulls == 0
        assert source.ranges(split, "s").nulls is None
        assert source.ranges(whole, "s").nulls == sum(i % 7 == 0 for i in range(250, 500))

    @pytest.mark.parametrize(
        "deleted", [[*range(0, 200_000, 3)], [70_000, 70_001, 199_999]], ids=["many", "few"]
    )
    def test_codes_are_those_of_the_rows_that_are_left(self, tmp_path, deleted):
        rows = 200_000
        table = pa.table(
            {"x": [i % 97 for i in range(rows)], "n": [None if i % 5 == 0 else i % 7 for i in range(rows)]}
        )
        pq.write_table(table, tmp_path / "a.parquet", row_group_size=100_000)
        data = stored(deleted)
        whole = parquet_source([str(tmp_path)])
        source = LiveRows(whole, (DeletionVector(len(deleted), len(data), inline=data),))
        if FILE_LOOPS.compile_now() is None:
            pytest.skip("there are no kernels here")
        FILE_LOOPS.load()
        for split in source.splits():
            (batch,) = source.read(split, ["x", "n"])
            for i, name in enumerate(("x", "n")):
                column = source.dictionary_column(split, name)
                values, some = batch.columns[i].to_pylist(), np.arange(0, batch.num_rows, 11)
                assert column.take(None).to_pylist() == values
                assert column.take(some).to_pylist() == values[::11]
                selected = np.array([*(value == 3 for value in column.values.to_pylist()), False])
                assert column.rows_where(selected).tolist() == [k for k, v in enumerate(values) if v == 3]
                assert column.rows_where(selected, some).tolist() == [k for k in some if values[k] == 3]
                few = np.array([5, 17, 40_000])
                assert source.dictionary_column(split, name, few).take(few).to_pylist() == [
                    values[k] for k in few
                ]
