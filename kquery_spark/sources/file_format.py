"""The registry entry of a file format (``Format``), which all layers iterate over.

The command line and the code that reads a session's settings import the entries long before any file is opened. So their
import must be cheap: the functions of an entry import the reader when they are called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kquery_spark.sources.features import Feature
from kquery_spark.sources.file_features import FILLED_WITHOUT_VECTORS, UNKNOWN_OPTION

if TYPE_CHECKING:
    import pyarrow as pa

    from kquery_spark.sources.base import DataFile, Source
    from kquery_spark.sources.bucketing import Bucketing
    from kquery_spark.sources.file_relation import FileRelation
    from kquery_spark.sources.hybrid_calendar import HybridZone


# Reasons why an option or a setting does not affect the rows of a scan.
LISTING = "selects files, and Spark lists them before the engine plans"
WRITING = "read by writers only"
INFERENCE = "affects only schema inference, which is complete before the engine plans"
SKIPPING = "decides which data Spark skips without reading it, not which rows it returns"
IGNORED = "not read: only Hive uses this table property"


@dataclass(frozen=True)
class FormatOptions:
    """Options of a file relation that have no effect; names are in lower case, values are the reasons.

    All other options are passed to ``Format.read_relation``. ignored: options that have no effect for this format. private:
    options of this format that have no effect for other formats, unless these declare them private, too. table_properties:
    properties that a table retains when its format changes, and that have no effect for any format.
    """

    ignored: Mapping[str, str] = field(default_factory=dict)
    private: Mapping[str, str] = field(default_factory=dict)
    table_properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class FormatSettings:
    """Settings of a Spark session that affect how files of a format are read.

    prefixes: the prefixes of settings in ``expected`` that decline only scans of this format, not the whole query.
    expected: the value of each setting that the engine supports; another value declines the scan. unset: the settings in
    ``expected`` that have no default in Spark. read: settings that the functions of the format read. irrelevant: settings
    that seem to affect a scan, and why they do not. strictest: values of settings for which a scan is declined unless its
    rows are the same for all other values (a value None: this Spark does not have the setting); None without such settings.
    expected_for_paths: the only supported values, in lower case, for files that are read by path without Spark's plan. These
    are the settings that decide which columns Spark infers, and those that ``read_columns`` would check otherwise.
    """

    prefixes: tuple[str, ...]
    expected: Mapping[str, str] = field(default_factory=dict)
    unset: frozenset[str] = frozenset()
    read: tuple[str, ...] = ()
    irrelevant: Mapping[str, str] = field(default_factory=dict)
    strictest: Mapping[str, str | None] | None = None
    expected_for_paths: Mapping[str, str] = field(default_factory=dict)


class ReadSettings(Protocol):
    """The settings of a Spark session that a format may look at."""

    @property
    def time_zone(self) -> str:
        """The session's time zone."""

    @property
    def case_sensitive(self) -> bool:
        """True if names that differ in case are different names."""

    @property
    def corrupt_record_column(self) -> str:
        """The name of the column for lines that cannot be parsed."""

    @property
    def version(self) -> str:
        """Spark's version."""

    @property
    def release(self) -> tuple[int, int]:
        """The major and minor number of Spark's version."""

    def knows(self, name: str) -> bool:
        """True if this Spark has a setting in ``FormatSettings.expected`` or ``read``."""

    def is_on(self, name: str) -> bool:
        """True if a setting in ``FormatSettings.read`` is true."""

    def text(self, name: str) -> str:
        """The value of a setting in ``FormatSettings.read``; Unsupported if this Spark does not know it."""


class Zones(Protocol):
    """The time zones of Spark's JVM, for values of the hybrid calendar."""

    def default(self) -> str | None:
        """The zone for files that do not name one; None if each executor may have its own default."""

    def get(self, name: str) -> HybridZone | None:
        """The rebase rules of a zone by name; None if Spark cannot rebase in it."""


class SessionForFiles(NamedTuple):
    """The settings and the time zones with which a Spark session reads files."""

    settings: ReadSettings
    zones: Zones


@dataclass(frozen=True)
class PathsRead:
    """A request to read files under paths without Spark's catalog.

    schema, options: for formats whose files do not describe their columns; without a schema, types are inferred.
    session: the Spark session that the result must agree with, or None.
    """

    paths: Sequence[str]
    schema: pa.Schema | None
    time_zone: str
    case_sensitive: bool
    options: Mapping[str, object] = field(default_factory=dict)
    session: SessionForFiles | None = None

    @property
    def settings(self) -> ReadSettings | None:
        """The settings of the session, if there is one."""
        return None if self.session is None else self.session.settings


@dataclass(frozen=True)
class RelationRead:
    """A request to read the files of a relation in Spark's plan.

    schema: the data columns, then the partition columns. options: the options that have an effect. bucketing: the bucketing
    of the files, if Spark uses it, too.
    """

    relation: FileRelation
    files: tuple[DataFile, ...]
    schema: pa.Schema
    options: Mapping[str, str]
    settings: ReadSettings
    bucketing: Bucketing | None = None

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The names of the partition columns, whose values are in the paths."""
        return tuple(self.relation.partition_schema.names)


@dataclass(frozen=True)
class ColumnsRead:
    """The source of a relation, and the columns that the query reads."""

    source: Source
    relation: FileRelation
    columns: Sequence[str]
    settings: ReadSettings
    zones: Zones


@dataclass(frozen=True)
class Format:
    """Everything that differs between formats. A format consists of its entry, its ``Source`` and ``register_<name>``.

    name: Spark's name of the format (``spark.read.format(name)``). title: the name in sentences. endings: file name
    extensions; the usual one comes first. catalyst_class: Spark's ``FileFormat`` class below
    ``org.apache.spark.sql.execution.datasources``.

    open_paths: builds the source of files under paths. read_relation: builds the source of a relation's files; raises
    Unsupported or ConfigError to fall back to Spark. read_columns: completes that source for the columns of the query, or
    raises Unsupported; later reads of the relation use the completed source. check_column: raises Unsupported for a column
    that cannot be read exactly; Spark reads that column.

    finds_by_name: True if columns are resolved by name, so that other columns of a file do not matter. in_jvm_zone: True if
    times depend on the JVM's time zone. file_options: options with which the command line reads and writes files. inference:
    options with which Spark infers types without a schema.

    writable: True if the command line can write the format. job_commit: True if Spark's writer moves the files of all tasks
    into place at the end of the job, so that a failed write can be repeated. fills_defaults: True if the source returns a
    column's default for files that lack the column. reads_variants: True if columns may be variants. footer_bytes: returns
    the memory that a file's cached footer takes; None if footers are not cached. features: rows of the documentation page.
    """

    name: str
    title: str
    endings: tuple[str, ...]
    catalyst_class: str
    open_paths: Callable[[PathsRead], Source]
    read_relation: Callable[[RelationRead], Source]
    settings: FormatSettings
    options: FormatOptions = FormatOptions()
    read_columns: Callable[[ColumnsRead], Source] | None = None
    check_column: Callable[[pa.Field], None] | None = None
    finds_by_name: bool = False
    in_jvm_zone: bool = False
    file_options: Mapping[str, str | bool] = field(default_factory=dict)
    inference: Mapping[str, str | bool] = field(default_factory=dict)
    writable: bool = True
    job_commit: bool = True
    fills_defaults: bool = False
    reads_variants: bool = False
    footer_bytes: Callable[[DataFile], int] | None = None
    features: tuple[Feature, ...] = ()


def filled_defaults(read: RelationRead, vectorized: str) -> tuple[tuple[str, object], ...]:
    """The default values of a relation's columns.

    Raises Unsupported if there are any and Spark's vectorized reader is off, because the other reader differs. vectorized:
    the setting that selects the reader.
    """
    defaults = tuple(read.relation.defaults.items())
    if defaults and not read.settings.is_on(vectorized):
        raise FILLED_WITHOUT_VECTORS.declined(setting=vectorized)
    return defaults


def decline_options(options: Mapping[str, str], *followed: str) -> None:
    """Raise Unsupported for an option that is not in ``followed``, the options that the format supports."""
    for name in options:
        if name not in followed:
            raise UNKNOWN_OPTION.declined(option=name)
