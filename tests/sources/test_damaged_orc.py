"""Damaged ORC files: what Spark's reader refuses is an error that names the file, although pyarrow reads it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc

import kquery_spark as kq
from kquery_spark.errors import KQueryError, SourceError
from kquery_spark.sources import orc_footer_pb2 as pb
from kquery_spark.sources.orc.footer import orc_tail
from kquery_spark.sources.orc.source import orc_source
from tests.sources.compare import read_all

ROWS = 30_000


def written(path: Path, compression: str = "uncompressed") -> bytes:
    """The bytes of a new file of several stripes."""
    table = pa.table(
        {"id": range(ROWS), "s": [f"t{i}" for i in range(ROWS)], "n": [[i] for i in range(ROWS)]}
    )
    orc.write_table(table, str(path), compression=compression, stripe_size=1 << 16)
    return path.read_bytes()


def parts(data: bytes) -> tuple[bytes, pb.Footer, pb.PostScript]:
    """The stripes and their statistics, the footer and the PostScript of an uncompressed file."""
    length = data[-1] + 1
    post = pb.PostScript.FromString(data[-length:-1])
    start = len(data) - length - post.footer_length
    return data[:start], pb.Footer.FromString(data[start:-length]), post


def orc_file(body: bytes, footer: pb.Footer, post: pb.PostScript) -> bytes:
    """A file of these parts. Fields that ``orc_footer_pb2`` does not know stay in the messages."""
    end = footer.SerializeToString()
    post.footer_length = len(end)
    last = post.SerializeToString()
    return body + end + last + bytes([len(last)])


def unknown_kind(footer: pb.Footer, post: pb.PostScript) -> None:
    footer.types[2].kind = 99


def no_kind(footer: pb.Footer, post: pb.PostScript) -> None:
    footer.types[1].ClearField("kind")


def children_of_a_number(footer: pb.Footer, post: pb.PostScript) -> None:
    footer.types[1].subtypes.append(2)


def types_in_a_circle(footer: pb.Footer, post: pb.PostScript) -> None:
    footer.types[3].subtypes[0] = 3


def a_list_of_two(footer: pb.Footer, post: pb.PostScript) -> None:
    footer.types[3].subtypes.append(1)


def a_name_too_few(footer: pb.Footer, post: pb.PostScript) -> None:
    footer.types[0].field_names.pop()


def an_orphan(footer: pb.Footer, post: pb.PostScript) -> None:
    footer.types.add().kind = 4


def a_stripe_behind_the_end(footer: pb.Footer, post: pb.PostScript) -> None:
    footer.stripes[1].data_length = 1 << 62


def more_rows_than_stripes_have(footer: pb.Footer, post: pb.PostScript) -> None:
    footer.rows += 1


def a_version_of_the_future(footer: pb.Footer, post: pb.PostScript) -> None:
    post.version[:] = [3, 1]


def no_blocks(footer: pb.Footer, post: pb.PostScript) -> None:
    post.block_size = 0


def a_long_tail(footer: pb.Footer, post: pb.PostScript) -> None:
    post.metadata_length = 1 << 62


@pytest.mark.parametrize(
    "damage",
    [
        *(unknown_kind, no_kind, children_of_a_number, types_in_a_circle, a_list_of_two, a_name_too_few),
        *(an_orphan, a_stripe_behind_the_end, more_rows_than_stripes_have, a_version_of_the_future),
        *(no_blocks, a_long_tail),
    ],
)
def test_a_tail_that_contradicts_itself_is_an_error(
    tmp_path: Path, damage: Callable[[pb.Footer, pb.PostScript], None]
):
    path = tmp_path / "t.orc"
    body, footer, post = parts(written(path))
    damage(footer, post)
    path.write_bytes(orc_file(body, footer, post))
    with pytest.raises(SourceError, match=r"cannot read .*t\.orc as ORC: its tail is damaged"):
        orc_source([str(path)])


def test_names_that_are_not_utf_8_are_an_error(tmp_path: Path):
    path = tmp_path / "t.orc"
    data = written(path)
    at = data.rindex(b"\x02id")  # the field and its length come before a name
    path.write_bytes(data[: at + 1] + b"\xf0d" + data[at + 3 :])
    with pytest.raises(SourceError, match=r"t\.orc as ORC: its tail is damaged: .*UTF-8"):
        orc_source([str(path)])


def test_parts_that_are_joined_again_are_the_file(tmp_path: Path):
    path = tmp_path / "t.orc"
    body, footer, post = parts(written(path))
    before = read_all(orc_source([str(path)]))
    path.write_bytes(orc_file(body, footer, post))
    assert read_all(orc_source([str(path)])).equals(before)


@pytest.mark.parametrize("compression", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
def test_a_damaged_footer_of_a_stripe_is_an_error_even_if_the_stripe_is_skipped(
    tmp_path: Path, compression: str
):
    path = tmp_path / "t.orc"
    data = bytearray(written(path, compression))
    stripe = stripes(bytes(data))[-1]
    start = stripe.offset + stripe.index_length + stripe.data_length
    data[start + 20 : start + 40] = bytes(20)
    path.write_bytes(data)
    ctx = kq.ExecutionContext()
    with pytest.raises(KQueryError, match=r"t\.orc as ORC: the footer of stripe \d+ is damaged"):
        ctx.register_orc("t", str(path))


def stripes(data: bytes) -> list[pb.StripeInformation]:
    class InMemory:
        def read_at(self, nbytes: int, offset: int) -> bytes:
            return data[offset : offset + nbytes]

    tail = orc_tail(InMemory(), len(data))
    assert tail is not None
    return list(tail.footer.stripes)


def a_stream_twice(footer: pb.StripeFooter) -> None:
    footer.streams.append(footer.streams[-1])


def a_stream_of_no_kind(footer: pb.StripeFooter) -> None:
    footer.streams[-1].kind = 77


def a_stream_of_no_column(footer: pb.StripeFooter) -> None:
    footer.streams[-1].column = 77


def a_long_stream(footer: pb.StripeFooter) -> None:
    footer.streams[-1].length = 1 << 40


def an_index_behind_data(footer: pb.StripeFooter) -> None:
    footer.streams[-1].kind = 6
    footer.streams[-1].column = 0
    footer.streams[0].column = 1
    footer.streams[1].column = 2


def no_encodings(footer: pb.StripeFooter) -> None:
    del footer.encodings[:]


@pytest.mark.parametrize(
    "damage",
    [
        *(a_stream_twice, a_stream_of_no_kind, a_stream_of_no_column, a_long_stream, an_index_behind_data),
        no_encodings,
    ],
)
def test_a_stripe_that_contradicts_itself_is_an_error(
    tmp_path: Path, damage: Callable[[pb.StripeFooter], None]
):
    path = tmp_path / "t.orc"
    body, footer, post = parts(written(path))
    stripe = footer.stripes[-1]
    start = stripe.offset + stripe.index_length + stripe.data_length
    described = pb.StripeFooter.FromString(body[start : start + stripe.footer_length])
    damage(described)
    changed = described.SerializeToString()
    body = body[:start] + changed + body[start + stripe.footer_length :]
    stripe.footer_length = len(changed)
    path.write_bytes(orc_file(body, footer, post))
    with pytest.raises(SourceError, match=r"t\.orc as ORC: the footer of stripe \d+ is damaged"):
        read_all(orc_source([str(path)]))
