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
    tables: Any,
    frames: Any,
    first: Any,
    second: Any,
) -> int:
    """Fills the rows of two tables from the bytes of a struct; returns ``OK`` or what is wrong with the bytes.

    types, elements, children, slots, tables: the layout, an item for each field of each struct, where field 0 of struct 0
    stands for all unknown ones: the field's type, the type of a list's elements, the struct of a struct or of a list's
    elements, the column that stores the value (-1 for none) and the table (1 or 2) that it is in. frames: room for
    ``MAX_DEPTH * 4`` integers. first, second: tables of 64-bit integers. Binary values are stored as their sizes, lists as
    their lengths, structs and truth values as 1.
    """
    end = len(data)
    at = 0
    depth = 0
    first_row = second_row = -1
    # a frame: its kind; the struct's number or the element's type; the last field or the elements to come; the key's type
    frames[0] = _IN_STRUCT
    frames[1] = ROOT
    frames[2] = 0
    frames[3] = 0
    while True:
        frame = depth * 4
        kind = frames[frame]
        entry = 0  # of the layout; that of field 0 is unknown
        child = 0
        if kind == _IN_STRUCT:
            if at >= end:
                return TOO_SHORT
            head = int(data[at])
            at += 1
            if head == 0:
                if depth == 0:
                    return OK
                depth -= 1
                continue
            value_type = head & 15
            if head >> 4:
                field = frames[frame + 2] + (head >> 4)
            else:
                raw = 0
                shift = 0
                while True:
                    if at >= end:
                        return TOO_SHORT
                    byte = int(data[at])
                    at += 1
                    raw |= (byte & 0x7F) << shift
                    if byte < 0x80:
                        break
                    shift += 7
                    if shift > 56:
                        return TOO_LONG
                field = (raw >> 1) ^ -(raw & 1)
            frames[frame + 2] = field
            if 0 <= field < FIELDS:
                entry = frames[frame + 1] * FIELDS + field
                if types[entry] != (TRUE if value_type == FALSE else value_type):
                    entry = 0
            child = children[entry]
            if value_type in (TRUE, FALSE):  # the type is the value
                if slots[entry] >= 0:
                    if tables[entry] == 1:
                        first[first_row, slots[entry]] = 1
                    else:
                        second[second_row, slots[entry]] = 1
                continue
        else:
            if frames[frame + 2] == 0:
                depth -= 1
                continue
            frames[frame + 2] -= 1
            value_type = frames[frame + 1]
            if kind == _IN_MAP and frames[frame + 2] & 1:
                value_type = frames[frame + 3]
            if kind == _IN_LIST:
                child = frames[frame + 3]
            if value_type in (TRUE, FALSE):
                value_type = BYTE
        stored = 1
        if value_type == BYTE:
            at += 1
        elif value_type == DOUBLE:
            at += 8
        elif value_type == STRUCT:
            depth += 1
            if depth >= MAX_DEPTH:
                return TOO_DEEP
            frame = depth * 4
            frames[frame] = _IN_STRUCT
            frames[frame + 1] = child
            frames[frame + 2] = 0
            if child == FIRST_ROW:
                first_row += 1
                if first_row >= len(first):
                    return TOO_MANY
            elif child == SECOND_ROW:
                second_row += 1
                if second_row >= len(second):
                    return TOO_MANY
        elif value_type < I16 or value_type > STRUCT:
            return UNKNOWN_TYPE
        else:
            head = 0
            if value_type in (LIST, SET):
                if at >= end:
                    return TOO_SHORT
                head = int(data[at])
                at += 1
            raw = head >> 4
            if value_type not in (LIST, SET) or raw == 15:
                raw = 0
                shift = 0
                while True:
                    if at >= end:
                        return TOO_SHORT
                    byte = int(data[at])
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
                    depth += 1
                    if depth >= MAX_DEPTH:
                        return TOO_DEEP
                    frame = depth * 4
                    frames[frame] = _IN_LIST
                    frames[frame + 1] = elements[entry] if elements[entry] else head & 15
                    frames[frame + 2] = raw
                    frames[frame + 3] = child
                    if value_type == MAP:
                        key_types = 0
                        if raw:
                            if at >= end:
                                return TOO_SHORT
                            key_types = int(data[at])
                            at += 1
                        frames[frame] = _IN_MAP
                        frames[frame + 1] = key_types & 15
                        frames[frame + 2] = raw * 2
                        frames[frame + 3] = key_types >> 4
        if slots[entry] >= 0:
            if tables[entry] == 1:
                first[first_row, slots[entry]] = stored
            else:
                second[second_row, slots[entry]] = stored
