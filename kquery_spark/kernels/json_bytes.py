"""Names for the bytes of JSON's grammar, so that scanners compare with ``QUOTE`` and not with 34."""

from __future__ import annotations

from typing import Final

TAB: Final = 9
LINE_FEED: Final = 10
CARRIAGE_RETURN: Final = 13
SPACE: Final = 32
QUOTE: Final = 34
SINGLE_QUOTE: Final = 39
PLUS: Final = 43
COMMA: Final = 44
MINUS: Final = 45
POINT: Final = 46
ZERO: Final = 48
NINE: Final = 57
COLON: Final = 58
UPPER_A: Final = 65
UPPER_E: Final = 69
UPPER_Z: Final = 90
OPEN_ARRAY: Final = 91
BACKSLASH: Final = 92
CLOSE_ARRAY: Final = 93
UNDERSCORE: Final = 95
LOWER_A: Final = 97
LOWER_E: Final = 101
LOWER_F: Final = 102
LOWER_N: Final = 110
LOWER_T: Final = 116
LOWER_U: Final = 117
LOWER_Z: Final = 122
OPEN_OBJECT: Final = 123
CLOSE_OBJECT: Final = 125
TO_CLOSING: Final = 2
"""A closing bracket is its opening bracket plus this."""
