"""Reads a session's settings without failing the user's job: an invalid value is replaced by the default."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from kquery_spark.config.cost import COST_PREFIX, CostModel
from kquery_spark.config.engine import PREFIX, EngineConfig
from kquery_spark.config.names import format_value, quoted, setting_values
from kquery_spark.errors import ConfigError


@dataclass(frozen=True)
class ToleratedSettings:
    """The settings to use. ``problems``: for each invalid setting, a sentence that names it and the default."""

    config: EngineConfig
    costs: CostModel
    problems: tuple[str, ...] = ()


def read_tolerantly(settings: Mapping[str, str], config: EngineConfig, costs: CostModel) -> ToleratedSettings:
    """Apply the settings that have an allowed value. ``config`` and ``costs`` have the defaults."""
    try:
        return ToleratedSettings(config.with_settings(settings), costs.with_settings(settings))
    except ConfigError:
        pass
    defaults = _values(config, costs)
    problems = []
    for name, value in settings.items():
        try:
            config, costs = config.with_settings({name: value}), costs.with_settings({name: value})
        except ConfigError as error:
            default = format_value(name, defaults[name]) or "empty"
            problems.append(f"{error}; the default, {default}, is used")
    return ToleratedSettings(config, costs, tuple(problems))


def unknown_settings(names: Iterable[str]) -> list[str]:
    """Return a sentence about each name under ``spark.kquery.`` that is not a setting."""
    known = list(_values(EngineConfig(), CostModel()))
    return [
        f"unknown setting {quoted(name)}, which has no effect; {_suggestion(name, known)}"
        for name in sorted(names)
        if name.startswith(PREFIX) and name not in known
    ]


def _suggestion(name: str, known: list[str]) -> str:
    lower = {known_name.lower(): known_name for known_name in known}
    nearest = get_close_matches(name.lower(), lower, n=1, cutoff=0.0)
    return f"the nearest name is {lower[nearest[0]]}"


def _values(config: EngineConfig, costs: CostModel) -> dict[str, object]:
    """Return the values of all settings by their full names."""
    return {**setting_values(config, PREFIX), **setting_values(costs, COST_PREFIX)}
