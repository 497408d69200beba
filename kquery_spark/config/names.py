"""Names and descriptions of settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import Field, field, fields
from typing import Any, NamedTuple

# Keys in a field's metadata.
_DESCRIPTION = "description"
_CHOICES = "choices"


class DescribedSetting(NamedTuple):
    """A setting for readers: its full name, its default and what it means."""

    name: str
    default: object
    description: str


def camel_case(name: str) -> str:
    """``batch_rows`` as ``batchRows``."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def setting(default: Any, description: str, choices: tuple[str, ...] = ()) -> Any:
    """A dataclass field with its default and one or two sentences about it, from which the page of settings is written.

    choices: all values that a setting of type ``str`` may have.
    """
    return field(default=default, metadata={_DESCRIPTION: description, _CHOICES: choices})


def choices_of(setting: Field[Any]) -> tuple[str, ...]:
    """The values that a setting may have, if these are words."""
    choices: tuple[str, ...] = setting.metadata[_CHOICES]
    return choices


def described_settings(settings: type, prefix: str) -> Iterator[DescribedSetting]:
    """The settings of a dataclass whose fields are made by ``setting``."""
    for one in fields(settings):
        yield DescribedSetting(prefix + camel_case(one.name), one.default, one.metadata[_DESCRIPTION])
