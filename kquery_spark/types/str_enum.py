"""``enum.StrEnum``, which Python 3.10 lacks."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 11):
    from enum import StrEnum
else:
    from enum import Enum

    class StrEnum(str, Enum):
        """An enum whose members are strings; ``str`` returns the value."""

        __str__ = str.__str__


__all__ = ["StrEnum"]
