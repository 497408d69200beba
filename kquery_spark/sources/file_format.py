"""What a file format is to the engine: one entry that every layer iterates.

The entries are read by the command line and by whatever asks for a session's settings, long before a file is opened. So
importing one must be cheap: the functions of an entry import what reads files, the entry's module does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from kquery_spark.sources.features import Feature
from kquery_spark.sources.file_features import FILLED_WITHOUT_VECTORS, UNKNOWN_OPTION

if TYPE_CHECKING:
    import pyarrow as pa

    from kquery_spark.sources.base import DataFile, Source
    from kquery_spark.sources.bucketing import Bucketing
    from kquery_spark.sources.file_relation import FileRelation
    from kquery_spark.sources.hybrid_calendar import HybridZone


# Why an option or a setting does not change which rows a scan gives.
LISTING = "chooses files, which Spark has listed by the time the engine plans"
WRITING = "read by writers only"
INFERENCE = "read when a schema is inferred, which a relation has by then"
SKIPPING = "decides what Spark skips unread, and not which rows pass"
IGNORED = "not read: tables have it only for Hive"


@dataclass(frozen=True)
class FormatOptions:
    """Options of a file relation, by names in lower case. One that is in none of these reaches ``Format.read_relation``.

    ignored: with the reason why a scan of this format need not look at them. private: with the reason why a scan of any
    other format need not, unless they are private to that one, too. table_properties: what a table of this format retains
    as properties when its format changes, with the reason why a scan of any format ignores them.
    """

    ignored: Mapping[str, str] = field(default_factory=dict)
    private: Mapping[str, str] = field(default_factory=dict)
    table_properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class FormatSettings:
    """Settings of a Spark session that say how files of a format are read.

    prefixes: of the settings in ``expected`` that decline a scan of this format, not the query. expected: settings with the
    only value under which the engine's rows are known to be Spark's. unset: those of ``expected`` that have no default in
    Spark. read: settings that the functions of the format look at. irrelevant: settings that look as if they decided what a
    scan gives, and why they do not. strictest: the settings under which a scan is declined unless it gives the same rows
    under any others (None: not known to Spark); None where there are no such settings.
    """

    prefixes: tuple[str, ...]
    expected: Mapping[str, str] = field(default_factory=dict)
    unset: frozenset[str] = frozenset()
    read: tuple[str, ...] = ()
    irrelevant: Mapping[str, str] = field(default_factory=dict)
    strictest: Mapping[str, str | None] | None = None


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
        """The zone where a file names none; None where each executor may have its own."""

    def get(self, name: str) -> HybridZone | None:
        """A zone by its name; None if Spark cannot rebase in it."""


@dataclass(frozen=True)
class PathsRead:
    """Files under some paths, which are described without help from Spark.

    schema, options: for formats whose files do not describe their columns; without a schema, types are inferred.
    """

    paths: Sequence[str]
    schema: pa.Schema | None
    time_zone: str
    case_sensitive: bool
    options: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class RelationRead:
    """A relation of Spark's plan, and how to read its files.

    schema: columns of the data, then of partitions. options: those that no format ignores. bucketing: of the files, where
    Spark follows it, too.
    """

    relation: FileRelation
    files: tuple[DataFile, ...]
    schema: pa.Schema
    options: Mapping[str, str]
    settings: ReadSettings
    bucketing: Bucketing | None = None

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The names of the columns whose values stand in the paths."""
        return tuple(self.relation.partition_schema.names)


@dataclass(frozen=True)
class ColumnsRead:
    """The source of a relation, when the query's columns are known."""

    source: Source
    relation: FileRelation
    columns: Sequence[str]
    settings: ReadSettings
    zones: Zones


@dataclass(frozen=True)
class Format:
    """All that differs by format. A format is complete with its entry, its ``Source`` and ``register_<name>``.

    name: of the format in Spark (``spark.read.format(name)``). title: in sentences. endings: of file names, the first one
    being the usual one. catalyst_class: Spark's ``FileFormat`` below ``org.apache.spark.sql.execution.datasources``.

    open_paths: the source of files under paths. read_relation: the source of a relation's files; Unsupported or ConfigError
    if Spark has to read them. read_columns: completes that source for the query's columns, or raises Unsupported; what it
    returns serves later reads of the relation, too. check_column: raises Unsupported for a column of a relation that files
    of the format cannot be read into exactly; Spark reads that column.

    finds_by_name: a column is found in a file by its name, so other columns of the file do not matter. in_jvm_zone: times
    are read in the time zone of the JVM that reads them. file_options: with which the command line reads and writes files.
    inference: options with which Spark infers the types of files without a schema.

    writable: the command line may write it. job_commit: Spark's writer moves the files of all tasks into place when the job
    is done, so that a write that failed may run again. fills_defaults: the source gives rows of a file that lacks a column
    the column's default. reads_variants: columns may be variants. footer_bytes: what the footer of a file takes in memory,
    where this process keeps footers; None where it looks at each file anew. features: for the page of sources.
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
    """The defaults of a relation's columns; Unsupported without Spark's vectorized reader, as the other one differs.

    vectorized: the setting that chooses the reader.
    """
    defaults = tuple(read.relation.defaults.items())
    if defaults and not read.settings.is_on(vectorized):
        raise FILLED_WITHOUT_VECTORS.declined(setting=vectorized)
    return defaults


def decline_options(options: Mapping[str, str], *followed: str) -> None:
    """Raise Unsupported for an option that is none of ``followed``."""
    for name in options:
        if name not in followed:
            raise UNKNOWN_OPTION.declined(option=name)
