"""Generates the documentation's page of supported tables and files from the features of the sources.

``python -m tests.docs.sources_page docs/sources.md`` writes the page.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from kquery_spark.sources.delta.features import DELTA
from kquery_spark.sources.features import Feature, SourceSection
from kquery_spark.sources.file_features import ANY_FILES, ANY_TABLES
from kquery_spark.sources.file_format import Format
from kquery_spark.sources.formats import FORMATS
from kquery_spark.sources.iceberg.features import ICEBERG
from kquery_spark.spark_bridge.hadoop.hdfs_features import HDFS
from kquery_spark.spark_bridge.hadoop.object_store_features import OBJECT_STORES
from kquery_spark.spark_bridge.relations.cached_rows import (
    CACHE_OF_CHANGED_FILES,
    CACHE_OF_OTHER_FORMAT,
    CACHE_OF_REMOTE_FILES,
    COMPUTED_CACHE,
    UNFILLED_CACHE,
)


def _titles(formats: Iterable[Format]) -> str:
    return " and ".join(entry.title for entry in formats)


_FILES = SourceSection(
    title="File formats",
    introduction="""\
Files by path or of the session catalog's tables. Columns that the engine cannot read exactly are declined one by one: a
query that does not read them runs in the engine.""",
    features=(
        *ANY_FILES,
        *(
            replace(feature, name=f"{entry.title}: {feature.name}")
            for entry in FORMATS
            for feature in (Feature("the format"), *entry.features)
        ),
    ),
)
_TABLES = SourceSection(
    title="Tables of the session's catalog",
    introduction="Tables `USING` a file format, and Hive's tables that Spark reads as if they were.",
    features=(
        Feature(
            "columns added with a `DEFAULT`, which older files lack",
            f"of {_titles(entry for entry in FORMATS if entry.fills_defaults)} files",
        ),
        *ANY_TABLES,
    ),
)
_CACHED = SourceSection(
    title="Rows in Spark's cache",
    introduction="""\
`df.cache()`, `df.persist()`, `spark.catalog.cacheTable()`, `CACHE TABLE`. Spark takes about as long to decode its cache
as to decode files. So the engine reads the files that the cached rows came from, if they have not changed since Spark read
them. Otherwise Spark runs the query on its cache. Spark always fills the cache itself. The settings at that time are not
known, so columns whose values depend on settings fall back, such as old dates and times in files that do not name their
calendar.""",
    features=(
        Feature(
            f"all rows of {_titles(entry for entry in FORMATS if entry.settings.strictest is not None)} files of this "
            "machine, by path or of the session's catalog",
            "also some of their columns, under any names, and filters on partition columns only",
        ),
        UNFILLED_CACHE,
        COMPUTED_CACHE,
        CACHE_OF_OTHER_FORMAT,
        CACHE_OF_REMOTE_FILES,
        CACHE_OF_CHANGED_FILES,
    ),
)
SECTIONS = (_FILES, _TABLES, _CACHED, DELTA, ICEBERG, OBJECT_STORES, HDFS)
_HEAD = """# Tables and files that the engine reads

Written by `python -m tests.docs.sources_page docs/sources.md` from the entries that decide; do
not edit.

What a row says holds for `kquery_plan` and `kq.enable`. Where the engine does not read something, Spark does, the
rest of the query still runs in the engine, and `kq.explain(df)` gives the reason. Tests of all of it:
`tests/table_formats`, with the real libraries.
"""


def sources_page(sections: Sequence[SourceSection] = SECTIONS) -> str:
    """The page as Markdown: a table for each section, a row for each feature."""
    lines = [_HEAD]
    for section in sections:
        lines += [
            f"## {section.title}",
            "",
            section.introduction,
            "",
            "| | read by | how far, or why not |",
            "|---|---|---|",
            *(f"| {feature.name} | {feature.reader} | {feature.remark} |" for feature in section.features),
            "",
            *([section.closing, ""] if section.closing else ()),
        ]
    return "\n".join(lines)


def main(path: str) -> None:
    """Write the page to a file."""
    Path(path).write_text(sources_page())


if __name__ == "__main__":
    main(sys.argv[1])
