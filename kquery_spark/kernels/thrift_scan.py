"""Scans a struct in Thrift's compact protocol and writes the integers of its nested structs into tables, a row per struct.

Parquet footers have one struct per row group (the first table) and one per column chunk (the second table). One pass over
the bytes, driven by a layout, fills both tables. numba can compile the function (``loops/footers.py``), and it also runs
without numba. It follows the readers that Thrift generates: a field whose type differs from the layout is skipped, and lists
have the element type of the layout, whatever their headers say.

In the compact protocol a field begins with a byte ``dddd tttt``: the difference to the previous field id and the type. For
example, ``15 02`` is the next field (1), an I32 (5), with the zigzag varint 02, the number 1. A zero byte ends a struct.
"""

from __future__ import annotations

from typing import Any

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)

FIELDS = 32
"""The number of field ids per struct in a layout, from 0 on."""

SECOND_SLOTS = 1 << 10
"""In a layout, the columns of the second table are numbered from here on."""

UNKNOWN, FIRST_ROW, SECOND_ROW, ROOT = range(4)
"""Structs of every layout: unknown structs, from which nothing is stored; structs that are rows of the first and of the
second table; and the struct of the whole message."""

OK, TOO_SHORT, TOO_MANY, TOO_DEEP, UNKNOWN_TYPE, TOO_LONG = 0, -1, -2, -3, -4, -5
MAX_DEPTH = 64  # the limit of Thrift's own readers
_IN_STRUCT, _IN_LIST, _IN_MAP = 0, 1, 2


def scan(  # noqa: C901  numba compiles it, and it runs without numba: helpers could not be shared
    data: Any,
    types: Any,
    elements: Any,
    children: Any,
    slots: Any,
    frames: Any,
    first: Any,
    first_width: int,
    second: Any,
    second_width: int,
) -> int:
    """Fill the rows of two tables from the bytes of a struct; return ``OK`` or the code of an error.

    The layout consists of four arrays with one item per field of each struct (at struct * ``FIELDS`` + field id); item 0
    stands for all unknown fields. types: the type of the field. elements: the element type of a list. children: the struct
    of a field or of the elements of a list. slots: the column that stores the value, or -1; columns of the second table
    count from ``SECOND_SLOTS`` on.

    frames: room for ``MAX_DEPTH * 4`` integers. first, second: tables of 64-bit integers, row after row; first_width,
    second_width: the number of their columns. The stored value is the number itself, the size of a binary value, the length
    of a list (but the offset of the first element of a list of binary values), or 1 for a struct or a Boolean.
    """
    end = len(data)
    at = 0
    depth = 0
    first_start = -first_width
    second_start = -second_width
    # The current frame is a struct, a list or a map; the enclosing frames are on the stack ``frames``. Its four numbers are
    # kind; what: the number of the struct, or the element type; count: the last field id, or the remaining elements;
    # more: the struct of the elements, or the key type of a map. "+ 0" makes a byte a 64-bit number for numba.
    kind = _IN_STRUCT
    what = ROOT
    count = 0
    more = 0
    while True:
        entry = 0  # index in the layout
        child = 0
        is_end = False
        if kind == _IN_STRUCT:
            if at >= end:
                return TOO_SHORT
            head = data[at] + 0
            at += 1
            if head == 0:  # the end of the struct
                if depth == 0:
                    return OK
                is_end = True
                value_type = 0
            else:
                value_type = head & 15
                if head > 15:
                    count += head >> 4
                else:  # the field id follows as a zigzag varint
                    raw = 0
                    shift = 0
                    while True:
                        if at >= end:
                            return TOO_SHORT
                        byte = data[at] + 0
                        at += 1
                        raw |= (byte & 0x7F) << shift
                        if byte < 0x80:
                            break
                        shift += 7
                        if shift > 56:
                            return TOO_LONG
                    count = (raw >> 1) ^ -(raw & 1)
                if 0 <= count < FIELDS:
                    entry = what * FIELDS + count
                    if types[entry] != value_type and not (types[entry] == TRUE and value_type == FALSE):
                        entry = 0
                child = children[entry]
        elif count == 0:
            is_end = True
            value_type = 0
        else:
            count -= 1
            value_type = what
            if kind == _IN_LIST:
                child = more
            elif count & 1:
                value_type = more
            if value_type in (TRUE, FALSE):  # in lists, a Boolean is a byte
                value_type = BYTE
        if is_end:  # pop the enclosing frame
            depth -= 1
            frame = depth * 4
            kind = frames[frame]
            what = frames[frame + 1]
            count = frames[frame + 2]
            more = frames[frame + 3]
            continue
        stored = 1
        if value_type == BYTE:
            at += 1
        elif value_type == DOUBLE:
            at += 8
        elif value_type == STRUCT:
            if depth >= MAX_DEPTH:
                return TOO_DEEP
            frame = depth * 4
            frames[frame] = kind
            frames[frame + 1] = what
            frames[frame + 2] = count
            frames[frame + 3] = more
            depth += 1
            kind = _IN_STRUCT
            what = child
            count = 0
            if child == FIRST_ROW:
                first_start += first_width
                if first_start >= len(first):
                    return TOO_MANY
            elif child == SECOND_ROW:
                second_start += second_width
                if second_start >= len(second):
                    return TOO_MANY
        elif value_type in (TRUE, FALSE):
            pass  # the type of a Boolean field is its value
        elif value_type < I16 or value_type > STRUCT:
            return UNKNOWN_TYPE
        else:  # integers, binary values, lists and maps begin with a varint, except for short lists
            head = 0
            is_list = value_type in (LIST, SET)
            if is_list:
                if at >= end:
                    return TOO_SHORT
                head = data[at] + 0
                at += 1
            raw = head >> 4
            if not is_list or raw == 15:
                raw = 0
                shift = 0
                while True:
                    if at >= end:
                        return TOO_SHORT
                    byte = data[at] + 0
                    at += 1
                    raw |= (byte & 0x7F) << shift
                    if byte < 0x80:
                        break
                    shift += 7
                    if shift > 56:
                        return TOO_LONG
            if value_type <= I64:
                stored = (raw >> 1) ^ -(raw & 1)
            else:
                stored = raw
                if raw > end - at:  # every element has at least one byte
                    return TOO_SHORT
                if value_type == BINARY:
                    at += raw
                else:
                    if depth >= MAX_DEPTH:
                        return TOO_DEEP
                    frame = depth * 4
                    frames[frame] = kind
                    frames[frame + 1] = what
                    frames[frame + 2] = count
                    frames[frame + 3] = more
                    depth += 1
                    kind = _IN_LIST
                    what = elements[entry] if elements[entry] else head & 15
                    if what == BINARY:
                        stored = at
                    count = raw
                    more = child
                    if value_type == MAP:
                        key_types = 0
                        if raw:
                            if at >= end:
                                return TOO_SHORT
                            key_types = data[at] + 0
                            at += 1
                        kind = _IN_MAP
                        what = key_types & 15
                        count = raw * 2
                        more = key_types >> 4
        slot = slots[entry]
        if slot >= SECOND_SLOTS:
            second[second_start + slot - SECOND_SLOTS] = stored
        elif slot >= 0:
            first[first_start + slot] = stored
