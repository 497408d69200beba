"""Names and descriptions of settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import Field, field, fields
from typing import Any, NamedTuple

# Keys in a field's metadata.
_DESCRIPTION = "description"
_CHOICES = "choices"
_RANGE = "range"
_QUOTED_CHARACTERS = 80
LARGEST_INTEGER = 2**63 - 1  # the largest integer of Arrow and of the JVM
_BYTE_UNITS = ((2**30, "g"), (2**20, "m"), (2**10, "k"))


class DescribedSetting(NamedTuple):
    """A setting for readers: its full name, its default and what it means."""

    name: str
    default: object
    description: str


def camel_case(name: str) -> str:
    """``batch_rows`` as ``batchRows``."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def setting(
    default: Any,
    description: str,
    choices: tuple[str, ...] = (),
    allowed: tuple[int, int] = (0, LARGEST_INTEGER),
) -> Any:
    """A dataclass field with its default and one or two sentences about it, from which the page of settings is written.

    choices: all values that a setting of type ``str``, or an element of a tuple, may have. allowed: the smallest and
    the largest value of an integer.
    """
    return field(default=default, metadata={_DESCRIPTION: description, _CHOICES: choices, _RANGE: allowed})


def choices_of(setting: Field[Any]) -> tuple[str, ...]:
    """The values that a setting may have, if these are words."""
    choices: tuple[str, ...] = setting.metadata[_CHOICES]
    return choices


def range_of(setting: Field[Any]) -> tuple[int, int]:
    """The smallest and the largest value of an integer setting."""
    allowed: tuple[int, int] = setting.metadata[_RANGE]
    return allowed


def setting_values(settings: Any, prefix: str) -> dict[str, object]:
    """The values of a dataclass whose fields are made by ``setting``, by their full names."""
    return {prefix + camel_case(one.name): getattr(settings, one.name) for one in fields(settings)}


def value_text(name: str, value: object) -> str:
    """A value as users write it in a setting of that name."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, int) and name.endswith("Bytes"):
        for size, unit in _BYTE_UNITS:
            if value and value % size == 0:
                return f"{value // size}{unit}"
    return str(value)


def described_settings(settings: type, prefix: str) -> Iterator[DescribedSetting]:
    """The settings of a dataclass whose fields are made by ``setting``."""
    for one in fields(settings):
        yield DescribedSetting(prefix + camel_case(one.name), one.default, one.metadata[_DESCRIPTION])


def shortened(text: str) -> str:
    """A string of a user, quoted for a message: one line of at most 80 characters."""
    return ascii(text) if len(text) <= _QUOTED_CHARACTERS else f"{text[:_QUOTED_CHARACTERS]!a}..."
