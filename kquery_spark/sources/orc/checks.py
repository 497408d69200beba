"""Makes the checks of Spark's ORC reader that pyarrow does not make, so that a damaged file is an error in both.

If the list of types or streams of a file is inconsistent, pyarrow uses the parts that it needs. The Java reader rejects the
file (``OrcUtils.isValidTypeTree``, ``ReaderImpl.checkOrcVersion`` and ``StripePlanner`` of the ORC project). Each function
raises ValueError for a damaged file.
"""

from __future__ import annotations

from collections.abc import Sequence

from kquery_spark.sources import orc_footer_pb2 as pb

INDEX_STREAMS = frozenset({6, 7, 8})
"""Values of ``Stream.Kind`` for row indexes and Bloom filters, which pyarrow does not read."""

_DATA_STREAMS = frozenset(range(6))
_LIST, _MAP, _STRUCT, _UNION, _DECIMAL = 10, 11, 12, 13, 14  # Type.Kind
_MAX_KIND = 18
_MAX_DIGITS = 38
_VERSIONS: tuple[list[int], ...] = ([], [0, 11], [0, 12])
MAX_BLOCK_BYTES = 1 << 23
"""Upper limit (exclusive) for the size of compressed chunks, whose headers have 23 bits for the length."""


def check_post_script(post: pb.PostScript) -> None:
    """Check the version and the size of compressed blocks."""
    if list(post.version) not in _VERSIONS:
        raise ValueError(f"its version {'.'.join(map(str, post.version))} is not known")
    if post.HasField("block_size") and not 0 < post.block_size < MAX_BLOCK_BYTES:
        raise ValueError(f"its compressed blocks have {post.block_size} bytes")


def check_types(types: Sequence[pb.Type]) -> None:
    """Check that the types form one tree, numbered in depth-first order, and have names in UTF-8."""
    # For other names, one implementation of Protobuf raises UnicodeDecodeError (a ValueError), and another returns bytes.
    if not all(isinstance(name, str) for described in types for name in described.field_names):
        raise ValueError("the name of a field is not valid UTF-8")
    if _end_of_subtree(types, 0) != len(types):
        raise ValueError("some of its types have no parent")


def _end_of_subtree(types: Sequence[pb.Type], root: int) -> int:
    """Return the number after the last type of the subtree at ``root``."""
    # A stack instead of recursion, because a damaged file may nest deeper than Python's call stack.
    pending = [root]
    expected = root
    while pending:
        number = pending.pop()
        if number != expected or number >= len(types):
            raise ValueError(f"there is type {number} where type {expected} of {len(types)} is expected")
        _check_type(types[number], number)
        pending += reversed(types[number].subtypes)
        expected += 1
    return expected


def _check_type(described: pb.Type, number: int) -> None:
    kind, children = described.kind, len(described.subtypes)
    if not described.HasField("kind") or kind > _MAX_KIND:
        raise ValueError(f"type {number} has an unknown kind")
    expected = {_LIST: 1, _MAP: 2, _STRUCT: children, _UNION: children}.get(kind, 0)
    if children != expected:
        raise ValueError(f"type {number} has {children} subtypes instead of {expected}")
    if kind == _STRUCT and len(described.field_names) != children:
        raise ValueError(f"type {number} has {children} fields and {len(described.field_names)} names")
    if kind == _DECIMAL:
        _check_digits(described, number)


def _check_digits(described: pb.Type, number: int) -> None:
    """Check the precision and scale of a decimal, for which Arrow's C++ library ends the process (``TypeDescription``)."""
    precision = described.precision if described.HasField("precision") else _MAX_DIGITS
    if not 1 <= precision <= _MAX_DIGITS or described.scale > precision:
        raise ValueError(f"type {number} has the precision {precision} and the scale {described.scale}")


def check_stripe_positions(footer: pb.Footer, end: int) -> None:
    """Check that the stripes lie before the tail, which begins at ``end``, and have the rows of the file."""
    for number, stripe in enumerate(footer.stripes):
        if stripe.offset + stripe.index_length + stripe.data_length + stripe.footer_length > end:
            raise ValueError(f"stripe {number} ends after byte {end}, where the tail begins")
    rows = sum(stripe.rows for stripe in footer.stripes)
    if rows != footer.rows:
        raise ValueError(f"its stripes have {rows} rows, but its footer says {footer.rows}")


def check_stripe(stripe: pb.StripeInformation, footer: pb.StripeFooter, types: int) -> None:
    """Check the streams and encodings of a stripe in a file with this number of types."""
    if len(footer.encodings) < types:
        raise ValueError(f"it has {len(footer.encodings)} encodings for {types} types")
    seen: set[tuple[int, int]] = set()
    in_data = False
    for stream in footer.streams:
        key = (stream.column, stream.kind)
        is_data = stream.kind in _DATA_STREAMS
        if not (stream.HasField("kind") and (is_data or stream.kind in INDEX_STREAMS)):
            raise ValueError(f"column {stream.column} has a stream of an unknown kind")
        if stream.column >= types or key in seen:
            raise ValueError(f"stream {stream.kind} of column {stream.column} is unexpected or a duplicate")
        if in_data and not is_data:  # the Java reader expects all indexes before all data
            raise ValueError(f"the index of column {stream.column} follows data")
        seen.add(key)
        in_data = is_data
    if sum(stream.length for stream in footer.streams) > stripe.index_length + stripe.data_length:
        raise ValueError("its streams are longer than the stripe")
