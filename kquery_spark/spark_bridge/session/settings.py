"""Reads all session settings that decide a query's result, with one JVM call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any
from weakref import WeakKeyDictionary

from kquery_spark.errors import Unsupported
from kquery_spark.sources.file_format import Format
from kquery_spark.sources.formats import FORMATS
from kquery_spark.sources.text_format import CORRECTED, TIME_PARSER
from kquery_spark.spark_bridge.jvm.calls import Jvm
from kquery_spark.spark_bridge.session.setting_values import is_true, parse_bytes
from kquery_spark.spark_bridge.session.versions import Version, minor_version
from kquery_spark.spark_bridge.session.zone_rules import follow_zone

_CONF = "org.apache.spark.sql.internal.SQLConf"
OPTIMIZER_RULES = "org.apache.spark.sql.catalyst.optimizer."
"""The prefix of the names of Spark's optimizer rules in ``EXCLUDED_RULES_SETTING``."""

EXCLUDED_RULES_SETTING = "spark.sql.optimizer.excludedRules"
"""The setting with the rules of Spark's optimizer that are switched off, separated by commas."""

PRECISION_LOSS_SETTING = "spark.sql.decimalOperations.allowPrecisionLoss"
"""The setting that decides the types of sums, products and quotients of decimals."""

IGNORE_NULL_FIELDS_SETTING = "spark.sql.jsonGenerator.ignoreNullFields"
"""The setting that decides whether TO_JSON omits fields that are NULL."""

# Settings that change the results of supported queries and that SessionSettings has no attribute for, each with the only
# value that the engine supports. If a setting has another value, this falls back to Spark:
# - TIME_PARSER: parsing and printing times by a pattern.
# - PRECISION_LOSS_SETTING: decimal arithmetic.
# - IGNORE_NULL_FIELDS_SETTING: TO_JSON.
# - Settings of a file format: scans of this format.
# - All others: the whole query.
EXPECTED: Mapping[str, str] = MappingProxyType(
    {
        TIME_PARSER: CORRECTED,
        PRECISION_LOSS_SETTING: "true",
        IGNORE_NULL_FIELDS_SETTING: "true",
        "spark.sql.icu.caseMappings.enabled": "true",
        "spark.sql.legacy.allowNegativeScaleOfDecimal": "false",
        "spark.sql.legacy.charVarcharAsString": "false",
        "spark.sql.legacy.disableMapKeyNormalization": "false",
        **{name: value for entry in FORMATS for name, value in entry.settings.expected.items()},
    }
)
# Settings that change how Spark parses or analyzes SQL, each with the only value that the engine's own SQL supports. Plans
# that Spark has analyzed do not depend on them. The empty value means that the setting must be unset: then NULL IN ()
# depends on ANSI mode, as in the engine.
SQL_EXPECTED: Mapping[str, str] = MappingProxyType(
    {
        "spark.sql.ansi.doubleQuotedIdentifiers": "false",
        "spark.sql.groupByAliases": "true",
        "spark.sql.groupByOrdinal": "true",
        "spark.sql.legacy.allowNullComparisonResultInArraySort": "false",
        "spark.sql.legacy.castComplexTypesToString.enabled": "false",
        "spark.sql.legacy.codingErrorAction": "false",
        "spark.sql.legacy.consecutiveStringLiterals.enabled": "false",
        "spark.sql.legacy.createEmptyCollectionUsingStringType": "false",
        "spark.sql.legacy.ctePrecedencePolicy": "corrected",
        "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": "false",
        "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",
        "spark.sql.legacy.followThreeValuedLogicInArrayExists": "true",
        "spark.sql.legacy.groupingIdWithAppendedUserGroupBy": "false",
        "spark.sql.legacy.integerGroupingId": "false",
        "spark.sql.legacy.interval.enabled": "false",
        "spark.sql.legacy.javaCharsets": "false",
        "spark.sql.legacy.literal.pickMinimumPrecision": "true",
        "spark.sql.legacy.negativeIndexInArrayInsert": "false",
        "spark.sql.legacy.nullInEmptyListBehavior": "",
        "spark.sql.legacy.parser.havingWithoutGroupByAsWhere": "false",
        "spark.sql.legacy.percentileDiscCalculation": "false",
        "spark.sql.legacy.scalarSubqueryCountBugBehavior": "false",
        "spark.sql.legacy.setopsPrecedence.enabled": "false",
        "spark.sql.legacy.sizeOfNull": "true",
        "spark.sql.legacy.statisticalAggregate": "false",
        "spark.sql.legacy.truncateForEmptyRegexSplit": "false",
        "spark.sql.legacy.typeCoercion.datetimeToString.enabled": "false",
        "spark.sql.orderByOrdinal": "true",
        "spark.sql.parser.escapedStringLiterals": "false",
        "spark.sql.parser.quotedRegexColumnNames": "false",
        "spark.sql.timestampType": "timestamp_ltz",
    }
)
# Settings of file formats that seem to change a scan's result, but do not; tests compare scans with each.
IRRELEVANT: Mapping[str, str] = MappingProxyType(
    {
        "spark.sql.sources.partitionOverwriteMode": "read by writers only",
        "spark.sql.files.maxRecordsPerFile": "read by writers only",
        **{name: reason for entry in FORMATS for name, reason in entry.settings.irrelevant.items()},
    }
)
# Settings that an option of the relation may override, so each scan checks them.
IGNORE_CORRUPT_FILES = "spark.sql.files.ignoreCorruptFiles"
IGNORE_MISSING_FILES = "spark.sql.files.ignoreMissingFiles"
_PARTITION_TYPES = "spark.sql.sources.partitionColumnTypeInference.enabled"
"""The setting that decides whether Spark infers the types of partition columns; if false, they are strings."""
BUCKETING_SETTING = "spark.sql.sources.bucketing.enabled"
"""The setting that decides whether Spark reads bucketed tables by their buckets."""
FORMAT_PREFIXES = tuple(prefix for entry in FORMATS for prefix in entry.settings.prefixes)
"""The prefixes of settings that decline a scan of some file format, not the whole query."""
# SQLConf raises an error for a setting that has no value and no default, unless the call passes a default.
_UNSET_BY_DEFAULT = frozenset(name for entry in FORMATS for name in entry.settings.unset)
_MAP_KEYS = "spark.sql.mapKeyDedupPolicy"
_MAX_PARTITION_BYTES = "spark.sql.files.maxPartitionBytes"
_OPEN_COST_BYTES = "spark.sql.files.openCostInBytes"
# Since Spark 4.1.
_RECURSION_LEVELS = "spark.sql.cteRecursionLevelLimit"
_RECURSION_ROWS = "spark.sql.cteRecursionRowLimit"
# The only default that SQLConf.getConfString does not parse as a value of the setting (ConfigEntry.UNDEFINED).
_UNDEFINED = "<undefined>"
_unknown: WeakKeyDictionary[Jvm, tuple[str, ...]] = WeakKeyDictionary()
_INTERPRETED = (
    "spark.sql.ansi.enabled",
    "spark.sql.session.timeZone",
    "spark.sql.caseSensitive",
    "spark.sql.columnNameOfCorruptRecord",
    IGNORE_CORRUPT_FILES,
    IGNORE_MISSING_FILES,
    BUCKETING_SETTING,
    _MAX_PARTITION_BYTES,
    _OPEN_COST_BYTES,
    _MAP_KEYS,
    _RECURSION_LEVELS,
    _RECURSION_ROWS,
    *(name for entry in FORMATS for name in entry.settings.read),
)


@dataclass(frozen=True)
class SessionSettings:
    """The settings of a session at the time of planning. values: all settings that were read; None for unknown ones.

    version: Spark's version.
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
        """True if the last one of duplicate map keys wins; otherwise they are an error."""
        return str(self.values.get(_MAP_KEYS)).strip().upper() == "LAST_WIN"

    @property
    def recursion_levels(self) -> int | None:
        """The maximum number of rounds of a recursive query; None for no limit."""
        return _limit(self.values.get(_RECURSION_LEVELS))

    @property
    def recursion_rows(self) -> int | None:
        """The maximum number of rows of all rounds of a recursive query; None for no limit."""
        return _limit(self.values.get(_RECURSION_ROWS))

    def text(self, name: str) -> str:
        """Return the value of a setting that was read; raises Unsupported if this version of Spark does not have it."""
        return _text(self.values, name)

    def with_values(self, values: Mapping[str, str | None]) -> SessionSettings:
        """Return these settings with other values for some of them."""
        return replace(self, values=MappingProxyType({**self.values, **values}))

    @property
    def for_files(self) -> Mapping[str, str | None]:
        """The settings that decide how files of any format are read."""
        names = (
            TIME_PARSER,
            "spark.sql.columnNameOfCorruptRecord",
            *(n for e in FORMATS for n in e.settings.read),
        )
        return {n: v for n, v in self.values.items() if n in names or n.startswith(FORMAT_PREFIXES)}

    def unexpected(self, *prefixes: str) -> dict[str, str]:
        """Return settings below one of the prefixes (default: all) with a value that the engine does not support."""
        return {
            name: str(self.values[name])
            for name, expected in EXPECTED.items()
            if (not prefixes or name.startswith(prefixes))
            and self.values[name] is not None
            and str(self.values[name]).strip().lower() != expected.lower()
        }


def session_settings(conf: Any, jvm: Jvm) -> SessionSettings:
    """Read the settings of ``sessionState().conf()``, a SQLConf."""
    try:
        values = _values(conf, jvm)
    except Exception:  # a py4j error: a setting that this Spark does not know was set in another session
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
    """Return all settings that decide results; None for one without a value and without a default in this Spark."""
    unknown = _unknown_names(conf, jvm)
    names = tuple(name for name in (*_INTERPRETED, *EXPECTED) if name not in unknown)
    strings = session_values(conf, jvm, names)
    values = {name: None if text == "null" else text for name, text in zip(names, strings, strict=True)}
    if unknown:
        strings = session_values(conf, jvm, unknown, unset=_UNDEFINED)
        values.update(
            (name, None if text == _UNDEFINED else text) for name, text in zip(unknown, strings, strict=True)
        )
    return values


def session_values(conf: Any, jvm: Jvm, names: tuple[str, ...], unset: str | None = None) -> list[str]:
    """Return the values of settings with one JVM call; ``unset`` replaces Spark's defaults for those that are not set."""
    return jvm.map_constants(names, jvm.string_method(conf, _CONF, "getConfString", unset))


def unexpected_for_sql(conf: Any, jvm: Jvm) -> dict[str, str]:
    """Return the settings of ``SQL_EXPECTED`` that are set to another value."""
    return _other_values(conf, jvm, SQL_EXPECTED)


def unexpected_for_paths(conf: Any, jvm: Jvm, file_format: Format) -> dict[str, str]:
    """Return the settings that are set to a value with which a context does not read files of this format by path."""
    return _other_values(conf, jvm, {_PARTITION_TYPES: "true", **file_format.settings.expected_for_paths})


def _other_values(conf: Any, jvm: Jvm, expected: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that are set to a value other than the expected one. expected: values in lower case."""
    names = tuple(expected)
    values = zip(names, session_values(conf, jvm, names, unset=_UNDEFINED), strict=True)
    return {n: v for n, v in values if v != _UNDEFINED and v.strip().lower() != expected[n]}


def _unknown_names(conf: Any, jvm: Jvm) -> tuple[str, ...]:
    """The settings without a default in this Spark; if one of them is requested, the request for all settings fails."""
    known = _unknown.get(jvm)
    if known is None:
        required = tuple(name for name in (*_INTERPRETED, *EXPECTED) if name not in _UNSET_BY_DEFAULT)
        missing: list[str] = []
        try:
            session_values(conf, jvm, required)
        except Exception:  # a py4j error: this Spark is older or newer than the list
            missing = [name for name in required if not _has_default(conf, name)]
        known = _unknown[jvm] = (*missing, *(name for name in EXPECTED if name in _UNSET_BY_DEFAULT))
    return known


def _has_default(conf: Any, name: str) -> bool:
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
    """Parse a limit; None for -1 (no limit), and for versions of Spark without the setting."""
    return None if text is None or int(text) < 0 else int(text)
