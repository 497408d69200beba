"""Scans one JSON document: validates it, and finds the value at a path, the length and the names of the root.

The scanner is one loop without recursion. Open containers are the bits of an integer, 1 for an object, so after
``{"a": [`` the bits are 0b10. While it validates, it compares the containers with the path: ``on_path`` is the depth up to
which the open containers match the steps, and ``is_candidate`` says that the next value matches the current step. For the
path ``$.a[1]`` and ``{"a": [5, 6]}``: after the name "a" the array is a candidate and is entered (``on_path`` = 2), element
0 is not a candidate, element 1 is, and at depth 2, the number of steps, it is the hit.
"""

from __future__ import annotations

from typing import Any

import numba
from numba import int64, uint64

from kquery_spark.kernels.json_bytes import (
    CARRIAGE_RETURN,
    CLOSE_ARRAY,
    CLOSE_OBJECT,
    COLON,
    COMMA,
    LINE_FEED,
    LOWER_A,
    LOWER_N,
    LOWER_Z,
    MINUS,
    OPEN_ARRAY,
    OPEN_OBJECT,
    QUOTE,
    SINGLE_QUOTE,
    SPACE,
    TAB,
    UNDERSCORE,
    UPPER_A,
    UPPER_Z,
    ZERO,
)
from kquery_spark.kernels.json_loops.tokens import (
    CONTAINER,
    ESCAPED,
    FLOAT,
    INTEGER,
    STRING,
    WORD,
    Text,
    blank_end,
    is_digit,
    number_end,
    string_end,
    word_end,
)

NULL, VALUE, ODD = 0, 1, 2  # statuses of a document: malformed or blank, valid, or to be parsed by Python
_MAX_DEPTH = 60  # open containers are the bits of one integer


@numba.njit(int64(Text, int64, int64, int64), cache=True, nogil=True)
def root_status(raw: Any, at: Any, end: Any, kind: Any) -> Any:
    """Return whether a number or word that is the whole document may end here; ODD if a non-ASCII character follows."""
    if at >= end or (kind != INTEGER and kind != FLOAT and kind != WORD):
        return VALUE
    byte = raw[at]
    if kind != WORD:
        return VALUE if byte == SPACE or byte == TAB or byte == LINE_FEED or byte == CARRIAGE_RETURN else NULL
    if byte < ZERO or byte == CLOSE_ARRAY or byte == CLOSE_OBJECT:
        return VALUE
    if byte >= 127:
        return ODD
    is_letter = (byte >= UPPER_A and byte <= UPPER_Z) or (byte >= LOWER_A and byte <= LOWER_Z)
    return NULL if is_letter or is_digit(byte) or byte == UNDERSCORE else VALUE


@numba.njit(cache=True, nogil=True)
def scan_text(  # noqa: C901  split into helpers, inlined ones too, it took 10 to 20 % longer
    raw: Any,
    at: Any,
    end: Any,
    names: Any,
    bounds: Any,
    indexes: Any,
    takes_last: Any,
    positions: Any,
    keys: Any,
) -> Any:
    """Scan one document; return its status, the start, end and kind of the value at the path, and the root's first byte
    and length.

    names, bounds, indexes: the steps of the path. Step i is the name from ``bounds[i]`` to ``bounds[i + 1]`` in ``names`` if
    ``indexes[i]`` is negative, else a 0-based index. takes_last: of duplicate names the last one counts, not the first.
    positions: scratch space, one item per step. keys: receives the start and end of the names of the root, unless empty.
    """
    steps = len(indexes)
    start = stop = kind = count = root = int64(0)
    depth = on_path = int64(0)
    hit_depth = int64(-1)
    objects = uint64(0)  # one bit for each open container: 1 for an object, 0 for an array
    is_found = False
    is_candidate = True
    at = blank_end(raw, at, end)
    if at >= end:
        return NULL, start, stop, kind, root, count
    root = int64(raw[at])
    while True:
        # a value begins at ``at``
        byte = raw[at]
        is_hit = is_candidate and (takes_last or not is_found) and depth == steps
        value_start, value_kind = at, int64(WORD)
        is_open = False
        if byte == QUOTE:
            packed = string_end(raw, at + 1, end)
            if packed < 0:
                return NULL, start, stop, kind, root, count
            value_kind = int64(ESCAPED if packed & 1 else STRING)
            at = (packed >> 1) + 1
        elif byte == OPEN_OBJECT or byte == OPEN_ARRAY:
            if depth == _MAX_DEPTH:
                return ODD, start, stop, kind, root, count
            is_open = True
            value_kind = int64(CONTAINER)
            if is_hit:
                start, kind, hit_depth = at, int64(CONTAINER), depth
            is_object = byte == OPEN_OBJECT
            enters = is_candidate and not is_hit and (takes_last or not is_found) and depth < steps
            objects = (objects << uint64(1)) | uint64(1 if is_object else 0)
            depth += 1
            if enters and (indexes[depth - 1] < 0) == is_object:
                on_path = depth
                positions[depth - 1] = 0
            at = blank_end(raw, at + 1, end)
            if at >= end:
                return NULL, start, stop, kind, root, count
        elif byte == MINUS or is_digit(byte):
            packed = number_end(raw, at, end)
            if packed < 0:
                return NULL, start, stop, kind, root, count
            value_kind = int64(FLOAT if packed & 1 else INTEGER)
            at = packed >> 1
        else:
            at = word_end(raw, at, end)
            if at < 0:
                is_odd = byte == SINGLE_QUOTE or (depth == 0 and byte >= 127)
                return ODD if is_odd else NULL, start, stop, kind, root, count
            if byte == LOWER_N and depth > 0 and objects & uint64(1):
                is_hit = False  # fields that are null are skipped
        if not is_open:
            if is_hit:
                start, stop, kind, is_found = value_start, at, value_kind, True
            if depth == 0:
                status = root_status(raw, at, end, value_kind)
                return status, start, stop, kind, root, count
        elif raw[at] != (CLOSE_OBJECT if objects & uint64(1) else CLOSE_ARRAY):
            if depth == 1:
                count += 1
            if not objects & uint64(1):
                is_candidate = on_path == depth and indexes[depth - 1] == 0
                continue
            is_compared = on_path == depth and (takes_last or not is_found)
            status, at, is_candidate = _read_name(
                raw, at, end, names, bounds, is_compared, depth, keys, count
            )
            if status != VALUE:
                return status, start, stop, kind, root, count
            continue
        # a value has ended: close containers up to the next comma
        while True:
            at = blank_end(raw, at, end)
            if at >= end:
                return NULL, start, stop, kind, root, count
            in_object = objects & uint64(1)
            if raw[at] == (CLOSE_OBJECT if in_object else CLOSE_ARRAY):
                at += 1
                depth -= 1
                objects >>= uint64(1)
                on_path = min(on_path, depth)
                if depth == hit_depth:
                    stop, is_found, hit_depth = at, True, int64(-1)
                if depth == 0:
                    return VALUE, start, stop, kind, root, count
                continue
            if raw[at] != COMMA:
                return NULL, start, stop, kind, root, count
            at = blank_end(raw, at + 1, end)
            if at >= end:
                return NULL, start, stop, kind, root, count
            if depth == 1:
                count += 1
            if in_object:
                is_compared = on_path == depth and (takes_last or not is_found)
                status, at, is_candidate = _read_name(
                    raw, at, end, names, bounds, is_compared, depth, keys, count
                )
                if status != VALUE:
                    return status, start, stop, kind, root, count
            else:
                is_candidate = False
                if on_path == depth:
                    positions[depth - 1] += 1
                    is_candidate = positions[depth - 1] == indexes[depth - 1]
            break


@numba.njit(cache=True, nogil=True)
def _read_name(
    raw: Any, at: Any, end: Any, names: Any, bounds: Any, is_compared: Any, depth: Any, keys: Any, count: Any
) -> Any:
    """Read a name and its colon; return a status, the start of the value, and whether it is the name of the step."""
    if raw[at] != QUOTE:
        return ODD if raw[at] == SINGLE_QUOTE else NULL, at, False
    packed = string_end(raw, at + 1, end)
    if packed < 0:
        return NULL, at, False
    first, last = at + 1, packed >> 1
    is_escaped = packed & 1 == 1
    is_same = False
    if is_compared:
        if is_escaped:
            return ODD, at, False
        low = bounds[depth - 1]
        is_same = last - first == bounds[depth] - low
        if is_same:
            for i in range(last - first):
                if raw[first + i] != names[low + i]:
                    is_same = False
                    break
    if len(keys) and depth == 1:
        if is_escaped:
            return ODD, at, False
        keys[2 * (count - 1)] = first
        keys[2 * (count - 1) + 1] = last
    at = blank_end(raw, last + 1, end)
    if at >= end or raw[at] != COLON:
        return NULL, at, False
    at = blank_end(raw, at + 1, end)
    return VALUE if at < end else NULL, at, is_same
