"""The session settings that decide answers, read in one go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any
from weakref import WeakKeyDictionary

from kquery_spark.errors import Unsupported
from kquery_spark.sources.formats import FORMATS
from kquery_spark.sources.text_format import CORRECTED, TIME_PARSER
from kquery_spark.spark_bridge.jvm.calls import Jvm
from kquery_spark.spark_bridge.session.setting_values import is_true, parse_bytes
from kquery_spark.spark_bridge.session.versions import Version, minor_version
from kquery_spark.spark_bridge.session.zone_rules import follow_zone

_CONF = "org.apache.spark.sql.internal.SQLConf"
OPTIMIZER_RULES = "org.apache.spark.sql.catalyst.optimizer."
"""What the names of Spark's optimizer rules begin with, as ``EXCLUDED_RULES`` takes them."""

EXCLUDED_RULES = "spark.sql.optimizer.excludedRules"
"""The rules of Spark's optimizer that are switched off, with commas between."""

PRECISION_LOSS = "spark.sql.decimalOperations.allowPrecisionLoss"
"""Decides the types of sums, products and quotients of decimals."""

LEAVES_OUT_NULLS = "spark.sql.jsonGenerator.ignoreNullFields"
"""Decides whether TO_JSON writes fields that are NULL."""

# Settings that change what a supported query answers, beyond those with an attribute of their own, each with
# the only value under which the engine's answer is known to be Spark's. Those of file formats decline a scan of the
# format, the time parser's decline what parses or prints times by a pattern, that of precision loss arithmetic of decimals,
# that of NULL fields TO_JSON, the others the query.
EXPECTED: Mapping[str, str] = MappingProxyType(
    {
        TIME_PARSER: CORRECTED,
        PRECISION_LOSS: "true",
        LEAVES_OUT_NULLS: "true",
        "spark.sql.icu.caseMappings.enabled": "true",
        "spark.sql.legacy.allowNegativeScaleOfDecimal": "false",
        "spark.sql.legacy.charVarcharAsString": "false",
        "spark.sql.legacy.disableMapKeyNormalization": "false",
        **{name: value for entry in FORMATS for name, value in entry.settings.expected.items()},
    }
)
# Settings of file formats that look as if they decided what a scan gives, and do not; tests compare scans under each.
IRRELEVANT: Mapping[str, str] = MappingProxyType(
    {
        "spark.sql.sources.partitionOverwriteMode": "read by writers only",
        "spark.sql.files.maxRecordsPerFile": "read by writers only",
        **{name: reason for entry in FORMATS for name, reason in entry.settings.irrelevant.items()},
    }
)
# Settings that an option of the relation may overrule: each scan looks at them.
IGNORE_CORRUPT_FILES = "spark.sql.files.ignoreCorruptFiles"
IGNORE_MISSING_FILES = "spark.sql.files.ignoreMissingFiles"
BUCKETING = "spark.sql.sources.bucketing.enabled"
"""Whether Spark reads bucketed tables by their buckets."""
FORMAT_PREFIXES = tuple(prefix for entry in FORMATS for prefix in entry.settings.prefixes)
"""What the names of settings begin with that decline a scan of some format, not the query."""
# SQLConf refuses to say the value of a setting that has no default, unless one is given along.
_UNSET_BY_DEFAULT = frozenset(name for entry in FORMATS for name in entry.settings.unset)
_MAP_KEYS = "spark.sql.mapKeyDedupPolicy"
_MAX_PARTITION_BYTES = "spark.sql.files.maxPartitionBytes"
_OPEN_COST_BYTES = "spark.sql.files.openCostInBytes"
# Since Spark 4.1.
_RECURSION_LEVELS = "spark.sql.cteRecursionLevelLimit"
_RECURSION_ROWS = "spark.sql.cteRecursionRowLimit"
_UNDEFINED = "<undefined>"
_unknown: WeakKeyDictionary[Jvm, tuple[str, ...]] = WeakKeyDictionary()
_OWN = (
    "spark.sql.ansi.enabled",
    "spark.sql.session.timeZone",
    "spark.sql.caseSensitive",
    "spark.sql.columnNameOfCorruptRecord",
    IGNORE_CORRUPT_FILES,
    IGNORE_MISSING_FILES,
    BUCKETING,
    _MAX_PARTITION_BYTES,
    _OPEN_COST_BYTES,
    _MAP_KEYS,
    _RECURSION_LEVELS,
    _RECURSION_ROWS,
    *(name for entry in FORMATS for name in entry.settings.read),
)


@dataclass(frozen=True)
class SessionSettings:
    """Settings of a session when a plan was taken; ``values`` has all that were asked, None if unknown.

    version: Spark's.
    """

    version: str
    ansi: bool
    time_zone: str
    case_sensitive: bool
    corrupt_record_column: str
    values: Mapping[str, str | None]

    @property
    def release(self) -> Version:
        """The major and minor number of Spark's version."""
        release = minor_version(self.version)
        assert release is not None  # others have no session
        return release

    def knows(self, name: str) -> bool:
        """Return whether this Spark has a setting that was read."""
        return self.values.get(name) is not None

    def is_on(self, name: str) -> bool:
        """Return whether a setting that was read is true; false if this Spark does not know it."""
        return is_true(self.values.get(name))

    @property
    def whole_file_bytes(self) -> int:
        """The size up to which Spark never splits files: ``FilePartition.maxSplitBytes`` is at least this large."""
        return min(parse_bytes(self.text(name)) for name in (_MAX_PARTITION_BYTES, _OPEN_COST_BYTES))

    @property
    def last_key_wins(self) -> bool:
        """Of equal keys of a map the last one wins; else they are an error."""
        return str(self.values.get(_MAP_KEYS)).strip().upper() == "LAST_WIN"

    @property
    def recursion_levels(self) -> int | None:
        """How many rounds a recursive query may have; None if any number."""
        return _limit(self.values.get(_RECURSION_LEVELS))

    @property
    def recursion_rows(self) -> int | None:
        """How many rows the rounds of a recursive query may have together; None if any number."""
        return _limit(self.values.get(_RECURSION_ROWS))

    def text(self, name: str) -> str:
        """The value of a setting that was read; Unsupported if this Spark does not know it."""
        return _text(self.values, name)

    def with_values(self, values: Mapping[str, str | None]) -> SessionSettings:
        """The same settings with other values of some that were read."""
        return replace(self, values=MappingProxyType({**self.values, **values}))

    def unexpected(self, *prefixes: str) -> dict[str, str]:
        """Settings below one of the prefixes (default: all) whose value the engine does not follow."""
        return {
            name: str(self.values[name])
            for name, expected in EXPECTED.items()
            if (not prefixes or name.startswith(prefixes))
            and self.values[name] is not None
            and str(self.values[name]).strip().lower() != expected.lower()
        }


def session_settings(conf: Any, jvm: Jvm) -> SessionSettings:
    """Reads ``sessionState().conf()``, a SQLConf."""
    try:
        values = _values(conf, jvm)
    except Exception:  # py4j's: a setting that this Spark does not know was set in another session
        _unknown.pop(jvm, None)
        values = _values(conf, jvm)
    time_zone = _text(values, "spark.sql.session.timeZone")
    follow_zone(jvm, time_zone)
    return SessionSettings(
        version=jvm.spark_version,
        ansi=is_true(_text(values, "spark.sql.ansi.enabled")),
        time_zone=time_zone,
        case_sensitive=is_true(_text(values, "spark.sql.caseSensitive")),
        corrupt_record_column=_text(values, "spark.sql.columnNameOfCorruptRecord"),
        values=MappingProxyType(values),
    )


def _values(conf: Any, jvm: Jvm) -> dict[str, str | None]:
    """All settings that decide answers; None for one that is not set and has no default in this Spark."""
    unknown = _unknown_names(conf, jvm)
    names = tuple(name for name in (*_OWN, *EXPECTED) if name not in unknown)
    strings = session_values(conf, jvm, names)
    values = {name: None if text == "null" else text for name, text in zip(names, strings, strict=True)}
    if unknown:
        strings = session_values(conf, jvm, unknown, unset=_UNDEFINED)
        values.update(
            (name, None if text == _UNDEFINED else text) for name, text in zip(unknown, strings, strict=True)
        )
    return values


def session_values(conf: Any, jvm: Jvm, names: tuple[str, ...], unset: str | None = None) -> list[str]:
    """The values of settings in one go; ``unset`` for those that are not set, else Spark's defaults."""
    return jvm.map_strings(names, jvm.caller(conf, _CONF, "getConfString", unset))


def _unknown_names(conf: Any, jvm: Jvm) -> tuple[str, ...]:
    """The settings without a default in this Spark; one of them would fail a request for all."""
    known = _unknown.get(jvm)
    if known is None:
        required = tuple(name for name in (*_OWN, *EXPECTED) if name not in _UNSET_BY_DEFAULT)
        missing: list[str] = []
        try:
            session_values(conf, jvm, required)
        except Exception:  # py4j's: this Spark is older or newer than the list
            missing = [name for name in required if not _has_value(conf, name)]
        known = _unknown[jvm] = (*missing, *(name for name in EXPECTED if name in _UNSET_BY_DEFAULT))
    return known


def _has_value(conf: Any, name: str) -> bool:
    try:
        conf.getConfString(name)
    except Exception:  # py4j's error for NoSuchElementException
        return False
    return True


def _text(values: Mapping[str, str | None], name: str) -> str:
    value = values[name]
    if value is None:
        raise Unsupported(f"this version of Spark does not know the setting {name}")
    return value


def _limit(text: str | None) -> int | None:
    """The value of a limit, of which -1 is none; so is that of a Spark without the setting."""
    return None if text is None or int(text) < 0 else int(text)
