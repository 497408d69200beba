"""JSON texts: the value at a path, the number of elements of an array, the names of an object.

The texts are read as Jackson reads them for Spark's JSON functions. A text that needs more than these loops know
(single quotes, escaped names on the way, surrogates, numbers that Java prints in other digits) is ODD: Python reads it.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import boolean, int32, int64, uint64

NULL, VALUE, ODD = 0, 1, 2
_STRING, _ESCAPED, _INTEGER, _FLOAT, _WORD, _CONTAINER = 0, 1, 2, 3, 4, 5
_MAX_DEPTH = 60
_MAX_DIGITS = 15  # a decimal of so many digits names a double that Java prints with the same digits
_MAX_PLAIN_DIGITS = 7  # before the point: Java prints 1e7 and more with an exponent
_MAX_NUMBER_BYTES = 400
_TRUE = np.frombuffer(b"true", np.uint8)
_FALSE = np.frombuffer(b"false", np.uint8)
_NULL_WORD = np.frombuffer(b"null", np.uint8)
_HEX = np.full(256, 255, np.uint8)
for _digit in range(16):
    _HEX[ord("0123456789abcdef"[_digit])] = _HEX[ord("0123456789ABCDEF"[_digit])] = _digit
_SIMPLE = np.zeros(256, np.uint8)  # what the letter behind a backslash stands for
for _letter, _meaning in zip(b"btnfr\"/\\'", b"\b\t\n\f\r\"/\\'", strict=True):
    _SIMPLE[_letter] = _meaning
_SHORT = np.zeros(32, np.uint8)  # the letter that stands for a control character
for _letter, _meaning in zip(b"btnfr", b"\b\t\n\f\r", strict=True):
    _SHORT[_meaning] = _letter
_UPPER = np.frombuffer(b"0123456789ABCDEF", np.uint8)

_Text = numba.types.Array(numba.uint8, 1, "C", readonly=True)
_Offsets = numba.types.Array(numba.int64, 1, "C", readonly=True)
_Bytes, _Numbers, _Flags = numba.uint8[::1], numba.int64[::1], numba.uint8[::1]


@numba.njit(inline="always")
def _blank_end(raw: Any, at: Any, end: Any) -> Any:
    while at < end and (raw[at] == 32 or raw[at] == 10 or raw[at] == 13 or raw[at] == 9):
        at += 1
    return at


@numba.njit(int64(_Text, int64, int64), cache=True, nogil=True)
def _string_end(raw: Any, at: Any, end: Any) -> Any:
    """Twice the position of the closing quote, plus 1 for a string with escapes; -1 for one that is malformed."""
    escaped = 0
    while at < end:
        byte = raw[at]
        if byte == 34:
            return 2 * at + escaped
        if byte == 92:
            escaped = 1
            at += 1
            if at >= end:
                return -1
            if raw[at] == 117:
                if at + 4 >= end:
                    return -1
                for i in range(1, 5):
                    if _HEX[raw[at + i]] == 255:
                        return -1
                at += 4
            elif _SIMPLE[raw[at]] == 0:
                return -1
        at += 1
    return -1


@numba.njit(inline="always")
def _is_digit(byte: Any) -> Any:
    return byte >= 48 and byte <= 57


@numba.njit(int64(_Text, int64, int64), cache=True, nogil=True)
def _number_end(raw: Any, at: Any, end: Any) -> Any:
    """Twice the end of a number, plus 1 for one with a point or an exponent; -1 for one that is malformed."""
    if raw[at] == 45:
        at += 1
    if at >= end or not _is_digit(raw[at]):
        return -1
    if raw[at] == 48:
        at += 1
        if at < end and _is_digit(raw[at]):
            return -1
    while at < end and _is_digit(raw[at]):
        at += 1
    fraction = 0
    if at < end and raw[at] == 46:
        fraction = 1
        at += 1
        if at >= end or not _is_digit(raw[at]):
            return -1
        while at < end and _is_digit(raw[at]):
            at += 1
    if at < end and (raw[at] == 101 or raw[at] == 69):
        fraction = 1
        at += 1
        if at < end and (raw[at] == 43 or raw[at] == 45):
            at += 1
        if at >= end or not _is_digit(raw[at]):
            return -1
        while at < end and _is_digit(raw[at]):
            at += 1
    return 2 * at + fraction


@numba.njit(inline="always")
def _begins(raw: Any, at: Any, end: Any, word: Any) -> Any:
    if at + len(word) > end:
        return False
    for i in range(len(word)):  # noqa: SIM110  numba has no generators here
        if raw[at + i] != word[i]:
            return False
    return True


@numba.njit(int64(_Text, int64, int64), cache=True, nogil=True)
def _word_end(raw: Any, at: Any, end: Any) -> Any:
    """The end of true, false or null; -1 for anything else."""
    if _begins(raw, at, end, _TRUE) or _begins(raw, at, end, _NULL_WORD):
        return at + 4
    return at + 5 if _begins(raw, at, end, _FALSE) else -1


@numba.njit(int64(_Text, int64, int64, int64), cache=True, nogil=True)
def _root_status(raw: Any, at: Any, end: Any, kind: Any) -> Any:
    """Whether a number or word that is the whole text may end here: VALUE, NULL, or ODD for a letter beyond ASCII."""
    if at >= end or (kind != _INTEGER and kind != _FLOAT and kind != _WORD):
        return VALUE
    byte = raw[at]
    if kind != _WORD:
        return VALUE if byte == 32 or byte == 9 or byte == 10 or byte == 13 else NULL
    if byte < 48 or byte == 93 or byte == 125:
        return VALUE
    if byte >= 127:
        return ODD
    is_letter = (byte >= 65 and byte <= 90) or (byte >= 97 and byte <= 122)
    return NULL if is_letter or _is_digit(byte) or byte == 95 else VALUE


@numba.njit(cache=True, nogil=True)
def _scan(
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
    """Read one text: its status, where the value at the path begins and ends, its kind, the root's kind and length.

    names, bounds, indexes: the steps of the path, the name of one between two bounds or an index from 0 on. takes_last: of
    equal names the last counts. positions: a place for each step. keys: where the names of an object begin and end, if it is
    not empty.
    """
    steps = len(indexes)
    start = stop = kind = count = root = int64(0)
    depth = on_path = int64(0)
    hit_depth = int64(-1)
    objects = uint64(0)  # a bit for each open container
    is_found = False
    is_candidate = True
    at = _blank_end(raw, at, end)
    if at >= end:
        return NULL, start, stop, kind, root, count
    root = int64(raw[at])
    while True:
        # a value begins at ``at``
        byte = raw[at]
        is_hit = is_candidate and (takes_last or not is_found) and depth == steps
        value_start, value_kind = at, int64(_WORD)
        is_open = False
        if byte == 34:
            packed = _string_end(raw, at + 1, end)
            if packed < 0:
                return NULL, start, stop, kind, root, count
            value_kind = int64(_ESCAPED if packed & 1 else _STRING)
            at = (packed >> 1) + 1
        elif byte == 123 or byte == 91:
            if depth == _MAX_DEPTH:
                return ODD, start, stop, kind, root, count
            is_open = True
            value_kind = int64(_CONTAINER)
            if is_hit:
                start, kind, hit_depth = at, int64(_CONTAINER), depth
            is_object = byte == 123
            enters = is_candidate and not is_hit and not is_found and depth < steps
            objects = (objects << uint64(1)) | uint64(1 if is_object else 0)
            depth += 1
            if enters and (indexes[depth - 1] < 0) == is_object:
                on_path = depth
                positions[depth - 1] = 0
            at = _blank_end(raw, at + 1, end)
            if at >= end:
                return NULL, start, stop, kind, root, count
        elif byte == 45 or _is_digit(byte):
            packed = _number_end(raw, at, end)
            if packed < 0:
                return NULL, start, stop, kind, root, count
            value_kind = int64(_FLOAT if packed & 1 else _INTEGER)
            at = packed >> 1
        else:
            at = _word_end(raw, at, end)
            if at < 0:
                is_odd = byte == 39 or (depth == 0 and byte >= 127)
                return ODD if is_odd else NULL, start, stop, kind, root, count
            if byte == 110 and depth > 0 and objects & uint64(1):
                is_hit = False  # a field that is null does not count
        if not is_open:
            if is_hit:
                start, stop, kind, is_found = value_start, at, value_kind, True
            if depth == 0:
                status = _root_status(raw, at, end, value_kind)
                return status, start, stop, kind, root, count
        elif raw[at] != (125 if objects & uint64(1) else 93):
            if depth == 1:
                count += 1
            if not objects & uint64(1):
                is_candidate = on_path == depth and indexes[depth - 1] == 0
                continue
            is_compared = on_path == depth and (takes_last or not is_found)
            status, at, is_candidate = _name(raw, at, end, names, bounds, is_compared, depth, keys, count)
            if status != VALUE:
                return status, start, stop, kind, root, count
            continue
        # behind a value: close containers up to the next comma
        while True:
            at = _blank_end(raw, at, end)
            if at >= end:
                return NULL, start, stop, kind, root, count
            in_object = objects & uint64(1)
            if raw[at] == (125 if in_object else 93):
                at += 1
                depth -= 1
                objects >>= uint64(1)
                on_path = min(on_path, depth)
                if depth == hit_depth:
                    stop, is_found, hit_depth = at, True, int64(-1)
                if depth == 0:
                    return VALUE, start, stop, kind, root, count
                continue
            if raw[at] != 44:
                return NULL, start, stop, kind, root, count
            at = _blank_end(raw, at + 1, end)
            if at >= end:
                return NULL, start, stop, kind, root, count
            if depth == 1:
                count += 1
            if in_object:
                is_compared = on_path == depth and (takes_last or not is_found)
                status, at, is_candidate = _name(raw, at, end, names, bounds, is_compared, depth, keys, count)
                if status != VALUE:
                    return status, start, stop, kind, root, count
            else:
                is_candidate = False
                if on_path == depth:
                    positions[depth - 1] += 1
                    is_candidate = positions[depth - 1] == indexes[depth - 1]
            break


@numba.njit(cache=True, nogil=True)
def _name(
    raw: Any, at: Any, end: Any, names: Any, bounds: Any, is_compared: Any, depth: Any, keys: Any, count: Any
) -> Any:
    """Read a name and the colon behind it: a status, where its value begins, and whether it is the step's name."""
    if raw[at] != 34:
        return ODD if raw[at] == 39 else NULL, at, False
    packed = _string_end(raw, at + 1, end)
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
    at = _blank_end(raw, last + 1, end)
    if at >= end or raw[at] != 58:
        return NULL, at, False
    at = _blank_end(raw, at + 1, end)
    return VALUE if at < end else NULL, at, is_same


@numba.njit(boolean(_Text, int64, int64), cache=True, nogil=True)
def _is_plain(raw: Any, at: Any, end: Any) -> Any:
    """Whether Java prints the double that a number names as the number is written."""
    if raw[at] == 45:
        at += 1
    start = at
    while at < end and _is_digit(raw[at]):
        at += 1
    whole = at - start
    if at >= end or raw[at] != 46:
        return False
    point = at
    at += 1
    while at < end and _is_digit(raw[at]):
        at += 1
    places = at - point - 1
    if at < end or whole + places > _MAX_DIGITS or whole > _MAX_PLAIN_DIGITS:
        return False
    if raw[end - 1] == 48 and places > 1:
        return False
    if raw[start] != 48 or (places == 1 and raw[end - 1] == 48):
        return True
    for i in range(1, min(places, 3) + 1):  # noqa: SIM110  below 0.001 there is an exponent
        if raw[point + i] != 48:
            return True
    return False


@numba.njit(int64(uint64, _Bytes, int64), cache=True, nogil=True)
def _put_character(code: Any, out: Any, done: Any) -> Any:
    """Write a character of the basic plane in UTF-8; where it ends."""
    if code < 0x80:
        out[done] = code
        return done + 1
    if code < 0x800:
        out[done] = 0xC0 | (code >> uint64(6))
        out[done + 1] = 0x80 | (code & uint64(0x3F))
        return done + 2
    out[done] = 0xE0 | (code >> uint64(12))
    out[done + 1] = 0x80 | ((code >> uint64(6)) & uint64(0x3F))
    out[done + 2] = 0x80 | (code & uint64(0x3F))
    return done + 3


@numba.njit(uint64(_Text, int64), cache=True, nogil=True)
def _escaped_code(raw: Any, at: Any) -> Any:
    """The character that the escape whose letter is at ``at`` stands for."""
    if raw[at] != 117:
        return uint64(_SIMPLE[raw[at]])
    code = uint64(0)
    for i in range(1, 5):
        code = (code << uint64(4)) | uint64(_HEX[raw[at + i]])
    return code


@numba.njit(int64(_Text, int64, int64, _Bytes, int64), cache=True, nogil=True)
def _unescaped(raw: Any, at: Any, end: Any, out: Any, done: Any) -> Any:
    """Write a string without its escapes; where it ends, or -1 for one with surrogates."""
    while at < end:
        if raw[at] != 92:
            out[done] = raw[at]
            done += 1
            at += 1
            continue
        code = _escaped_code(raw, at + 1)
        if code >= 0xD800 and code < 0xE000:
            return -1
        done = _put_character(code, out, done)
        at += 6 if raw[at + 1] == 117 else 2
    return done


@numba.njit(int64(_Text, int64, int64, _Bytes, int64), cache=True, nogil=True)
def _copied_string(raw: Any, at: Any, end: Any, out: Any, done: Any) -> Any:
    """Write what is between quotes as Jackson writes strings; where it ends, or -1 where that may be longer."""
    while at < end:
        byte = raw[at]
        if byte < 32 or byte >= 0xF0:
            return -1
        if byte != 92:
            out[done] = byte
            done += 1
            at += 1
            continue
        code = _escaped_code(raw, at + 1)
        at += 6 if raw[at + 1] == 117 else 2
        if code >= 0xD800 and code < 0xE000:
            return -1
        if code == 34 or code == 92:
            out[done] = 92
            out[done + 1] = code
            done += 2
        elif code >= 32:
            done = _put_character(code, out, done)
        elif _SHORT[code]:
            out[done] = 92
            out[done + 1] = _SHORT[code]
            done += 2
        else:
            out[done] = 92
            out[done + 1] = 117
            out[done + 2] = out[done + 3] = 48
            out[done + 4] = _UPPER[code >> uint64(4)]
            out[done + 5] = _UPPER[code & uint64(15)]
            done += 6
    return done


@numba.njit(int64(_Text, int64, int64, int64, _Bytes, int64), cache=True, nogil=True)
def _copied_number(raw: Any, at: Any, end: Any, kind: Any, out: Any, done: Any) -> Any:
    """Write a number as Java prints it; where it ends, or -1 where that may be otherwise than it is written."""
    if end - at > _MAX_NUMBER_BYTES or (kind == _FLOAT and not _is_plain(raw, at, end)):
        return -1
    if kind == _INTEGER and end - at == 2 and raw[at] == 45 and raw[at + 1] == 48:
        at += 1
    for i in range(at, end):
        out[done] = raw[i]
        done += 1
    return done


@numba.njit(int64(_Text, int64, int64, _Bytes, int64), cache=True, nogil=True)
def _copied_container(raw: Any, at: Any, end: Any, out: Any, done: Any) -> Any:
    """Write an object or an array, known to be well-formed, without blanks; where it ends, or -1."""
    while at < end:
        byte = raw[at]
        if byte == 34:
            last = _string_end(raw, at + 1, end) >> 1
            out[done] = 34
            done = _copied_string(raw, at + 1, last, out, done + 1)
            if done < 0:
                return -1
            out[done] = 34
            done += 1
            at = last + 1
        elif byte == 45 or _is_digit(byte):
            packed = _number_end(raw, at, end)
            kind = int64(_FLOAT if packed & 1 else _INTEGER)
            done = _copied_number(raw, at, packed >> 1, kind, out, done)
            if done < 0:
                return -1
            at = packed >> 1
        else:
            if not (byte == 32 or byte == 10 or byte == 13 or byte == 9):
                out[done] = byte
                done += 1
            at += 1
    return done


@numba.njit(int64(_Text, int64, int64, int64, _Bytes, int64), cache=True, nogil=True)
def _rendered(raw: Any, at: Any, end: Any, kind: Any, out: Any, done: Any) -> Any:
    """Write a value as GET_JSON_OBJECT gives it; where it ends, or -1 for one that Python has to write."""
    if kind == _ESCAPED:
        return _unescaped(raw, at + 1, end - 1, out, done)
    if kind == _CONTAINER:
        return _copied_container(raw, at, end, out, done)
    if kind == _INTEGER or kind == _FLOAT:  # noqa: SIM109  numba compares faster
        return _copied_number(raw, at, end, kind, out, done)
    if kind == _STRING:
        at += 1
        end -= 1
    for i in range(at, end):
        out[done] = raw[i]
        done += 1
    return done


@numba.njit(
    int64(_Text, _Offsets, _Text, _Offsets, _Offsets, boolean, _Numbers, _Bytes, _Flags),
    cache=True,
    nogil=True,
)
def json_values(
    raw: Any,
    offsets: Any,
    names: Any,
    bounds: Any,
    indexes: Any,
    takes_last: Any,
    ends: Any,
    out: Any,
    status: Any,
) -> Any:
    """The values at a path, one text after the other; gives their bytes.

    takes_last: of equal names the last counts. ends: where each value begins and the last one ends. out: of as many bytes
    as the texts have. status: NULL, VALUE or ODD.
    """
    done = int64(0)
    positions = np.zeros(len(indexes) + 1, np.int64)
    no_keys = np.zeros(0, np.int64)
    for row in range(len(offsets) - 1):
        ends[row] = done
        state, start, stop, kind, _, _ = _scan(
            raw, offsets[row], offsets[row + 1], names, bounds, indexes, takes_last, positions, no_keys
        )
        if state == VALUE and stop == 0:
            state = NULL
        if state == VALUE:
            last = _rendered(raw, start, stop, kind, out, done)
            if last < 0:
                state = ODD
            else:
                done = last
        status[row] = state
    ends[len(offsets) - 1] = done
    return done


@numba.njit(int32(_Text, _Offsets, _Numbers, _Flags), cache=True, nogil=True)
def json_lengths(raw: Any, offsets: Any, lengths: Any, status: Any) -> Any:
    """The number of elements of each text that is an array."""
    nowhere = np.full(1, -1, np.int64)
    positions, bounds = np.zeros(2, np.int64), np.zeros(2, np.int64)
    names, no_keys = np.zeros(0, np.uint8), np.zeros(0, np.int64)
    for row in range(len(offsets) - 1):
        state, _, _, _, root, count = _scan(
            raw, offsets[row], offsets[row + 1], names, bounds, nowhere, False, positions, no_keys
        )
        lengths[row] = count
        status[row] = NULL if state == VALUE and root != 91 else state
    return 0


@numba.njit(int64(_Text, _Offsets, _Numbers, _Numbers, _Flags), cache=True, nogil=True)
def json_names(raw: Any, offsets: Any, ends: Any, places: Any, status: Any) -> Any:
    """The names in each text that is an object: where they begin and end; gives the number of all of them.

    ends: where the names of each text begin among them, and the last ones end. places: of two items for each byte of the
    texts.
    """
    nowhere = np.full(1, 0, np.int64)
    positions, bounds = np.zeros(2, np.int64), np.zeros(2, np.int64)
    names = np.zeros(0, np.uint8)
    done = int64(0)
    for row in range(len(offsets) - 1):
        ends[row] = done
        state, _, _, _, root, count = _scan(
            raw, offsets[row], offsets[row + 1], names, bounds, nowhere, False, positions, places[2 * done :]
        )
        if state == VALUE and root == 123:
            done += count
        status[row] = NULL if state == VALUE and root != 123 else state
    ends[len(offsets) - 1] = done
    return done
