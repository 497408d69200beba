"""The declarations of the functions that a plan calls, collected while it is written."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from kquery_spark.frontends.substrait.extensions import STANDARD_URI
from kquery_spark.frontends.substrait.messages import Message
from kquery_spark.types import names as t


class WrittenFunctions:
    """Gives each function, and each extension, an anchor (a number) in the order of the first calls."""

    def __init__(self) -> None:
        self._functions: dict[tuple[str, str], int] = {}
        self._extensions: dict[str, int] = {}

    def anchor(self, name: str, extensions: Sequence[str], types: Sequence[pa.DataType]) -> int:
        """Return the anchor of a function.

        extensions: those that define it. types: the types of the arguments, which decide between the extensions.
        """
        extension = _extension_for(extensions, types)
        self._extensions.setdefault(extension, len(self._extensions) + 1)
        return self._functions.setdefault((name, extension), len(self._functions) + 1)

    def declare(self, plan: Message) -> None:
        """Add the declarations to the message of a plan."""
        for extension, anchor in self._extensions.items():
            plan.extension_uris.add(extension_uri_anchor=anchor, uri=f"{STANDARD_URI}{extension}.yaml")
        for (name, extension), anchor in self._functions.items():
            function = plan.extensions.add().extension_function
            function.function_anchor, function.name = anchor, name
            function.extension_uri_reference = self._extensions[extension]


def _extension_for(extensions: Sequence[str], types: Sequence[pa.DataType]) -> str:
    """Return the extension that defines a function for arguments of these types.

    Most functions are in one extension for numbers and strings, and in others for decimals and for dates and timestamps.
    """
    first = extensions[0]
    if first == "functions_comparison":
        return first  # for arguments of all types
    if any(map(t.is_decimal, types)):
        return next((e for e in extensions if e.endswith("_decimal")), first)
    if any(pa.types.is_temporal(dtype) for dtype in types):
        return next((e for e in extensions if e == "functions_datetime"), first)
    return first
