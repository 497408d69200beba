"""The settings of an object store in Hadoop's configuration."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from kquery_spark.spark_bridge.hadoop.object_store_features import HARMFUL_SETTING


class StoreSettings:
    """The settings of one bucket or container. Names are passed without prefixes and suffixes.

    affixes: pairs of a prefix and a suffix that make the full names of a setting. Earlier pairs override later ones.
    """

    def __init__(self, configuration: Any, *affixes: tuple[str, str]) -> None:
        self._configuration = configuration
        self._affixes = affixes

    def text(self, name: str) -> str:
        """The value of a setting, empty if there is none."""
        for prefix, suffix in self._affixes:
            value = self._configuration.getTrimmed(f"{prefix}{name}{suffix}")
            if value is not None:
                return str(value)
        return ""

    def secret(self, name: str) -> str:
        """The value of a secret, which may be in one of Hadoop's credential stores; empty if there is none."""
        for prefix, suffix in self._affixes:
            characters = self._configuration.getPassword(f"{prefix}{name}{suffix}")
            if characters is not None:
                return "".join(map(str, characters)).strip()
        return ""

    def any_below(self, name: str) -> bool:
        """Return whether there is a setting whose name starts with ``name``."""
        return any(
            not self._configuration.getPropsWithPrefix(f"{prefix}{name}").isEmpty()
            for prefix, _ in self._affixes
        )

    def check_harmless(
        self, scheme: str, prefix: str, values: Mapping[str, Container[str]], secrets: Container[str] = ()
    ) -> None:
        """Raise Unsupported for a setting whose value is not one of the harmless ``values``.

        scheme, prefix: shown in the message. secrets: the settings whose values the message must not show.
        """
        for name, harmless in values.items():
            value = self.text(name)
            if value not in harmless:
                shown = "set" if name in secrets else value
                raise HARMFUL_SETTING.declined(scheme=scheme, setting=f"{prefix}{name}", value=shown)
