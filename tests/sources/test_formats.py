"""A format is one entry: complete, consistent with the others, and named by no other module."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kquery_spark.cli.tables import format_of_path, parse_table
from kquery_spark.context.execution_context import ExecutionContext
from kquery_spark.errors import Unsupported
from kquery_spark.frontends.catalyst.file_options import IGNORED, options_with_effect
from kquery_spark.fuzz.tables import TYPES_OF
from kquery_spark.sources.base import Source
from kquery_spark.sources.file_format import Format, PathsRead, decline_options
from kquery_spark.sources.formats import DEFAULT_FORMAT, FORMATS, format_named
from kquery_spark.spark_bridge.relations.file_writes import FILE_FORMATS
from kquery_spark.spark_bridge.session.settings import EXPECTED, IRRELEVANT

PACKAGE = Path(__file__).parents[2] / "kquery_spark"
SOURCES = PACKAGE / "sources"
_FORMAT = re.compile(rf"(?<![a-z])({'|'.join(entry.name for entry in FORMATS)})(?![a-z])", re.IGNORECASE)

# Modules that may name formats, with the reason.
ALLOWED = {
    "accelerate/calibrate.py": "measures the engine over a Parquet file that it writes for itself",
    "context/execution_context.py": "register_<format> are public methods, each with arguments of its own",
    "context/delta_table.py": "Delta's tables are Parquet files",
    "context/iceberg_table.py": "Iceberg's tables are Parquet files, as far as the engine reads them",
    "sources/delta/": "Delta's tables are Parquet files with field ids",
    "sources/iceberg/": "Iceberg's tables are Parquet files, as far as the engine reads them",
    "spark_bridge/relations/delta.py": "Delta's tables are Parquet files",
    "cli/local_output.py": "has one writer for each format that a context can write",
    "frontends/substrait/tables.py": "Substrait has a field for each format; only Parquet files are read",
    "frontends/substrait/writer.py": "Substrait has a field for each format; only Parquet files are written",
    "frontends/substrait/write_tables.py": "Substrait has a field for each format; only Parquet files are written",
    "fuzz/": "decides by itself what to write in which format: drawn from the entries, it would miss an error in one",
    "sources/formats.py": "the list of the entries",
    "sources/deletes/position_deletes.py": "Iceberg's files of deleted positions are Parquet files, whose footers are checked",
    "spark_bridge/hadoop/hdfs_features.py": "has an example for the page of sources",
    "spark_bridge/hadoop/object_store_features.py": "has an example for the page of sources",
    **dict.fromkeys(
        ("spark_bridge/hadoop/google.py", "sources/object_stores/google.py"),
        "Google's files of credentials are JSON, which names of settings and of files say",
    ),
    **dict.fromkeys(
        (
            *("functions/json/paths.py", "functions/json/reading.py", "functions/json/writing.py"),
            *("functions/variant/parsing.py", "functions/variant/functions.py"),
            *(
                "kernels/json_documents.py",
                "kernels/json_parser.py",
                "kernels/json_loops/",
                "kernels/compiled.py",
                "functions/json/record_strings.py",
            ),
            *(
                "frontends/catalyst/expressions/evaluators.py",
                "frontends/catalyst/expressions/json_values.py",
            ),
            "frontends/catalyst/plans/generators.py",
            "frontends/catalyst/versions.py",
            "frontends/sql/analyzer/expressions/record_strings.py",
            "logical/record_decoders.py",
        ),
        "JSON strings are values of functions, whatever format their table has",
    ),
    **dict.fromkeys(
        ("functions/json/csv_writing.py", "frontends/catalyst/expressions/csv_values.py"),
        "CSV strings are values of functions, too",
    ),
}
# Strings of other modules in which JSON is an encoding, not a format of tables.
ENCODINGS = {
    "cli/commands.py": {
        "JSON file of counts and findings. If it exists, the run continues there.",
        "--json",
        "json_file",
    },
    "qualify/event_files.py": {"the JSON nests too deeply"},
    "functions/aggregate/hyperloglog.py": {"hyperloglog_bias.json"},
    "service/server.py": {"Return the settings that decide the meaning of queries, as JSON."},
    "spark_bridge/session/hybrid_zones.py": {"/julian-gregorian-rebase-micros.json"},
    "spark_bridge/plan/plan_facts.py": {" are in the JSON of Spark's plan", "json"},
    "spark_bridge/relations/file_listing.py": {"json"},
}


def _own_directory(path: Path) -> bool:
    return any(SOURCES / entry.name in path.parents for entry in FORMATS)


def _module(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


_OTHERS = sorted(
    path
    for path in PACKAGE.rglob("*.py")
    if not _own_directory(path)
    and not path.stem.endswith("_pb2")
    and not any(_module(path).startswith(allowed) for allowed in ALLOWED)
)


def namings(text: str) -> Iterator[tuple[int, str]]:
    """Line and text of each literal or import that names a format; docstrings may."""
    tree = ast.parse(text)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            if _FORMAT.search(node.value):
                yield node.lineno, node.value
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kquery_spark.sources"):
            modules = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from ((node.lineno, module) for module in modules if _is_of_a_format(module))
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names if _is_of_a_format(alias.name))


def _is_of_a_format(module: str) -> bool:
    return any(f"{module}.".startswith(f"kquery_spark.sources.{entry.name}.") for entry in FORMATS)


@pytest.mark.parametrize("path", _OTHERS, ids=_module)
def test_only_its_own_directory_names_a_format(path: Path) -> None:
    encodings = ENCODINGS.get(_module(path), set())
    found = [f"line {line}: {text!r}" for line, text in namings(path.read_text()) if text not in encodings]
    assert not found, f"{_module(path)} names formats; take this from their entries:\n" + "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "if name == 'orc': pass",
        "NAMES = ('text', 'csv')",
        "settings = 'spark.sql.parquet.mergeSchema'",
        "raise Unsupported(f'{column} of ORC files')",
        "from kquery_spark.sources.orc.source import OrcSource",
        "from kquery_spark.sources.json import source",
        "from kquery_spark.sources import csv",
        "import kquery_spark.sources.parquet.file",
    ],
)
def test_the_scan_sees(text: str) -> None:
    assert list(namings(text))


@pytest.mark.parametrize(
    "text",
    [
        "'''ORC files.'''",
        "force = 'in force'",
        "from kquery_spark.sources.formats import FORMATS",
        "import json",
    ],
)
def test_the_scan_lets_pass(text: str) -> None:
    assert not list(namings(text))


def test_every_exception_is_needed() -> None:
    for place in ALLOWED:
        path = PACKAGE / place
        files = path.rglob("*.py") if path.is_dir() else [path]
        assert any(list(namings(file.read_text())) for file in files), place
    for module, strings in ENCODINGS.items():
        assert strings <= {text for _, text in namings((PACKAGE / module).read_text())}, module


def test_every_directory_of_a_format_has_an_entry() -> None:
    directories = {path.parent.name for path in SOURCES.glob("*/format.py")}
    assert directories == {entry.name for entry in FORMATS}
    assert DEFAULT_FORMAT in FORMATS


def test_the_fuzzer_writes_every_format() -> None:
    assert set(TYPES_OF) == {entry.name for entry in FORMATS}


@pytest.mark.parametrize("entry", FORMATS, ids=lambda entry: entry.name)
def test_an_entry_is_complete(entry: Format) -> None:
    assert entry.name == entry.name.lower() == entry.title.lower()
    assert entry.endings
    assert all(ending.startswith(".") and ending == ending.lower() for ending in entry.endings)
    assert re.fullmatch(r"\w+\.\w+FileFormat", entry.catalyst_class)
    assert format_named(entry.name) is entry
    assert callable(getattr(ExecutionContext, f"register_{entry.name}"))
    assert "path" in inspect.signature(getattr(ExecutionContext, f"register_{entry.name}")).parameters
    assert (entry.name in FILE_FORMATS) == entry.job_commit
    assert parse_table(f"t={entry.name}:/data").format == entry.name
    for ending in entry.endings:
        assert format_of_path(f"/data/t{ending}") == entry.name


@pytest.mark.parametrize("entry", FORMATS, ids=lambda entry: entry.name)
def test_settings_of_an_entry_agree(entry: Format) -> None:
    settings = entry.settings
    assert settings.prefixes
    assert all(name.startswith(settings.prefixes) for name in settings.expected)
    assert settings.unset <= set(settings.expected)
    assert not set(settings.irrelevant) & (set(settings.expected) | set(settings.read))
    assert all(settings.irrelevant.values())
    assert settings.expected.items() <= EXPECTED.items()
    assert settings.irrelevant.items() <= IRRELEVANT.items()


@pytest.mark.parametrize("entry", FORMATS, ids=lambda entry: entry.name)
def test_options_of_an_entry_agree(entry: Format) -> None:
    options = entry.options
    for name, reason in [
        *options.ignored.items(),
        *options.private.items(),
        *options.table_properties.items(),
    ]:
        assert name == name.lower()
        assert reason
    assert options.ignored.items() <= IGNORED[entry.name].items()
    for other in FORMATS:
        assert set(options.table_properties) <= set(IGNORED[other.name])
        foreign = set(options.private) - set(other.options.private)
        assert foreign <= set(IGNORED[other.name])


def test_an_option_private_to_a_format_reaches_its_source_only() -> None:
    options = {"sep": ";", "mode": "FAILFAST", "parquet.block.size#x": "1"}
    followed = {entry.name: sorted(options_with_effect(entry.name, options)) for entry in FORMATS}
    assert followed == {
        "parquet": [],
        "csv": ["mode", "parquet.block.size#x", "sep"],
        "json": ["mode", "parquet.block.size#x"],
        "orc": ["parquet.block.size#x"],
    }


def test_an_option_that_is_not_supported_is_declined() -> None:
    decline_options({"followed": "1"}, "followed")
    with pytest.raises(Unsupported, match="files with the option strange are not supported"):
        decline_options({"followed": "1", "strange": "1"}, "followed")


def test_no_two_entries_share_a_name_an_ending_or_a_class() -> None:
    names = [entry.name for entry in FORMATS]
    endings = [ending for entry in FORMATS for ending in entry.endings]
    classes = [entry.catalyst_class for entry in FORMATS]
    settings = [name for entry in FORMATS for name in entry.settings.expected]
    for values in (names, endings, classes, settings):
        assert not [value for value, count in Counter(values).items() if count > 1]


@pytest.mark.parametrize("entry", FORMATS, ids=lambda entry: entry.name)
def test_an_entry_opens_what_spark_wrote(spark, entry: Format, tmp_path: Path) -> None:
    directory = tmp_path / "data"
    rows = spark.range(7).selectExpr("id", "concat('v', id) AS s")
    rows.coalesce(1).write.format(entry.name).options(**entry.file_options).save(str(directory))
    source = entry.open_paths(PathsRead([str(directory)], None, "UTC", False))
    assert isinstance(source, Source)
    assert source.schema.names == ["id", "s"]
    assert sum(batch.num_rows for split in source.splits() for batch in source.read(split, ["id"])) == 7


def test_importing_the_entries_opens_no_reader() -> None:
    script = (
        "import sys, kquery_spark.sources.formats\n"
        "assert not {'pyarrow', 'numpy'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=PACKAGE.parent)


def test_a_format_that_is_only_read_is_not_written(spark, monkeypatch, tmp_path: Path) -> None:
    from kquery_spark.cli import output
    from kquery_spark.cli.failures import Exit, Failure

    monkeypatch.setattr(output, "format_named", lambda name: replace(format_named(name), writable=False))
    with pytest.raises(Failure, match="writing Parquet files is not supported") as caught:
        output.Output(spark, str(tmp_path / "t.parquet"))
    assert caught.value.code is Exit.OUTPUT
