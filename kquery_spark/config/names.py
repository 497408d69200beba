"""Declares settings as dataclass fields with names, descriptions and allowed values, and formats them for users."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import Field, field, fields
from typing import Any, NamedTuple

# Keys in a field's metadata.
_DESCRIPTION = "description"
_CHOICES = "choices"
_RANGE = "range"
_KEY = "key"
_QUOTED_CHARACTERS = 80
LARGEST_INTEGER = 2**63 - 1  # the largest integer of Arrow and of the JVM
_BYTE_UNITS = ((2**30, "g"), (2**20, "m"), (2**10, "k"))


class DescribedSetting(NamedTuple):
    """A setting as documents show it: its full name, its default and its description."""

    name: str
    default: object
    description: str


def camel_case(name: str) -> str:
    """Convert ``batch_rows`` to ``batchRows``."""
    first, *others = name.split("_")
    return first + "".join(part.capitalize() for part in others)


def setting(
    default: Any,
    description: str,
    choices: tuple[str, ...] = (),
    allowed: tuple[int, int] = (0, LARGEST_INTEGER),
    key: str | None = None,
) -> Any:
    """Declare a dataclass field that is a setting.

    description: one or two sentences for the page of settings. choices: all values that a setting of type ``str``, or an
    element of a tuple, may have. allowed: the smallest and the largest value of an integer. key: the last part of the
    setting's public name, if it is not the field's name in camel case.
    """
    metadata = {_DESCRIPTION: description, _CHOICES: choices, _RANGE: allowed, _KEY: key}
    return field(default=default, metadata=metadata)


def key_of(setting: Field[Any]) -> str:
    """Return the last part of a setting's public name: ``batchRows`` for the field ``batch_rows``."""
    key: str | None = setting.metadata[_KEY]
    return key or camel_case(setting.name)


def choices_of(setting: Field[Any]) -> tuple[str, ...]:
    """Return the allowed words of a setting; empty for numbers and booleans."""
    choices: tuple[str, ...] = setting.metadata[_CHOICES]
    return choices


def range_of(setting: Field[Any]) -> tuple[int, int]:
    """Return the smallest and the largest value of an integer setting."""
    allowed: tuple[int, int] = setting.metadata[_RANGE]
    return allowed


def setting_values(settings: Any, prefix: str) -> dict[str, object]:
    """Return the values of a dataclass of settings by their full names."""
    return {prefix + key_of(f): getattr(settings, f.name) for f in fields(settings)}


def format_value(name: str, value: object) -> str:
    """Format a value as users would write it for the setting ``name``."""
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
    """Yield the settings that a dataclass declares."""
    for f in fields(settings):
        yield DescribedSetting(prefix + key_of(f), f.default, f.metadata[_DESCRIPTION])


def quoted(user_input: str) -> str:
    """Quote a user's string for a message: one line with at most 80 characters of the string."""
    if len(user_input) <= _QUOTED_CHARACTERS:
        return ascii(user_input)
    return f"{user_input[:_QUOTED_CHARACTERS]!a}..."
