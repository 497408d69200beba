"""Integers of structs in Thrift's compact protocol, written into tables, a row for each struct.

One pass over the bytes, driven by a layout, so that numba can compile it (``loops/footers.py``); the same function runs
without numba. It follows the readers that Thrift generates: a field of another type than the layout has is skipped, and
lists have the element type of the layout, whatever their headers say.
"""

from __future__ import annotations

from typing import Any

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)

FIELDS = 32
"""Field ids of a struct in a layout, from 0 on."""

SECOND_SLOTS = 1 << 10
"""Columns of the second table are numbered from here on in a layout."""

UNKNOWN, FIRST_ROW, SECOND_ROW, ROOT = range(4)
"""Structs of every layout: one of which nothing is stored, those that are rows of the first and of the second table, and
that of the whole message."""

OK, TOO_SHORT, TOO_MANY, TOO_DEEP, UNKNOWN_TYPE, TOO_LONG = 0, -1, -2, -3, -4, -5
MAX_DEPTH = 64  # of Thrift's own readers
_IN_STRUCT, _IN_LIST, _IN_MAP = 0, 1, 2


def scan(
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
    """Fills the rows of two tables from the bytes of a struct; returns ``OK`` or what is wrong with the bytes.

    types, elements, children, slots: the layout, an item for each field of each struct, where field 0 of struct 0 stands
    for all unknown ones: the field's type, the type of a list's elements, the struct of a struct or of a list's elements,
    and the column that stores the value, -1 for none; columns of the second table count from ``SECOND_SLOTS`` on. frames:
    room for ``MAX_DEPTH * 4`` integers. first, second: tables of 64-bit integers, row after row, and the numbers of their
    columns. Binary values are stored as their sizes, lists as their lengths, those of binary values as
    the offset of the first one, structs and truth values as 1.
    """
    end = len(data)
    at = 0
    depth = 0
    first_start = -first_width
    second_start = -second_width
    # the frame: its kind; the struct's number or the elements' type; the last field or the elements to come; the elements'
    # struct or the keys' type. The frames around it are in ``frames``. "+ 0" makes a byte a number of 64 bits for numba.
    kind = _IN_STRUCT
    what = ROOT
    count = 0
    more = 0
    while True:
        entry = 0  # of the layout
        child = 0
        is_end = False
        if kind == _IN_STRUCT:
            if at >= end:
                return TOO_SHORT
            head = data[at] + 0
            at += 1
            if head == 0:
                if depth == 0:
                    return OK
                is_end = True
                value_type = 0
            else:
                value_type = head & 15
                if head > 15:
                    count += head >> 4
                else:
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
            if value_type in (TRUE, FALSE):  # a byte each in lists
                value_type = BYTE
        if is_end:
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
            pass  # the type is the value
        elif value_type < I16 or value_type > STRUCT:
            return UNKNOWN_TYPE
        else:
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
                if raw > end - at:  # every element has a byte at least
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
