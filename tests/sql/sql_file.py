"""Parses the SQL test files of this directory: views, queries, and the directives above them.

A file is blocks separated by blank lines::

    -- Config: spark.sql.session.timeZone=UTC,Europe/Berlin

    statement
    CREATE TEMP VIEW t AS SELECT * FROM VALUES (1, 'a'), (2, NULL) AS t(k, s)

    -- NULLs are a group of their own
    query
    SELECT s, count(*) FROM t GROUP BY s
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

FORMATS = ("parquet", "orc", "json", "csv")
Version = tuple[int, ...]

_VIEW = re.compile(r"CREATE\s+(?:OR\s+REPLACE\s+)?TEMP(?:ORARY)?\s+VIEW\s+(\w+)\s+AS\s+(.+)", re.I | re.S)
_SETTING = re.compile(r"--\s*(Config|Format|Tables|MinSparkVersion|MaxSparkVersion)\s*:\s*(.*)")
_LIKE_A_SETTING = re.compile(r"--\s*(Configs?|Formats?|Tables?|\w*Version)\s*:", re.I)
TABLES = Path(__file__).parent / "tables"
"""Views that several files have: ``-- Tables: odd_rows`` takes those of ``tables/odd_rows.sql``."""
_OPTION = re.compile(r"(\w+)(=|\()")


class SqlFileError(Exception):
    """A file that breaks the rules of this format; the text starts with the file and the line."""


@dataclass(frozen=True)
class View:
    """A table of the file: its query's rows are written to ``files`` files, which every engine reads."""

    name: str
    query: str
    line: int
    files: int = 3
    partitioned_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Query:
    """One statement that all engines answer alike, and what else the test expects of it.

    tolerance: relative difference that floats may have (0: none). fallback: words of the reason why ``kquery_plan`` leaves
    a part to Spark. error: error class that every engine raises. context_declines: words of the ExecutionContext's error.
    min_version, max_version: the releases of Spark that the query is for.
    """

    sql: str
    line: int
    name: str = ""
    tolerance: float = 0.0
    fallback: str | None = None
    error: str | None = None
    context_declines: str | None = None
    min_version: Version = ()
    max_version: Version | None = None


@dataclass(frozen=True)
class Versions:
    """The first and the last release of Spark that something is for; None: no last one."""

    min: Version = ()
    max: Version | None = None


@dataclass(frozen=True)
class Variant:
    """One run of a file: a value for each setting of its ``Config`` lines, and the format of its tables."""

    config: tuple[tuple[str, str], ...]
    format: str


@dataclass(frozen=True)
class SqlFile:
    """A parsed file."""

    path: Path
    views: tuple[View, ...]
    queries: tuple[Query, ...]
    config: tuple[tuple[str, tuple[str, ...]], ...] = ()
    formats: tuple[str, ...] = ("parquet",)

    def variants(self) -> list[Variant]:
        """Every combination of the settings' values and the formats."""
        names = [name for name, _ in self.config]
        values = itertools.product(*(choices for _, choices in self.config))
        return [
            Variant(tuple(zip(names, chosen, strict=True)), format_)
            for chosen, format_ in itertools.product(values, self.formats)
        ]


def read_sql_file(path: Path) -> SqlFile:
    """Parse a file."""
    return parse_sql_file(path.read_text("utf-8"), path)


def parse_sql_file(text: str, path: Path) -> SqlFile:
    """Parse the text of a file; ``path`` is for error messages."""
    return _Parser(path).parse(text)


@dataclass(frozen=True)
class _Block:
    """Lines between blank ones. ``line``: number of the first line."""

    line: int
    comments: tuple[str, ...]
    directive: str | None
    sql: str

    @property
    def directive_line(self) -> int:
        return self.line + len(self.comments)


class _Parser:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._views: list[View] = []
        self._queries: list[Query] = []
        self._config: dict[str, tuple[str, ...]] = {}
        self._formats: tuple[str, ...] | None = None
        self._versions = Versions()
        self._has_blocks = False

    def parse(self, text: str) -> SqlFile:
        for block in _blocks(text):
            versions = self._settings(block)
            if block.directive is not None:
                self._has_blocks = True
                self._directive(block, versions)
        if not self._queries:
            raise self._error(1, "the file has no query")
        config = tuple(self._config.items())
        return SqlFile(
            self._path, tuple(self._views), tuple(self._queries), config, self._formats or ("parquet",)
        )

    def _error(self, line: int, message: str) -> SqlFileError:
        return SqlFileError(f"{self._path}:{line}: {message}")

    # --- comments ---------------------------------------------------------------------------------------

    def _settings(self, block: _Block) -> Versions:
        """Reads ``-- Name: value`` lines; gives the versions that the block is for."""
        versions = self._versions
        for line, comment in enumerate(block.comments, block.line):
            found = _SETTING.match(comment)
            if found is None:
                if _LIKE_A_SETTING.match(comment):
                    raise self._error(
                        line,
                        f"unknown setting {comment!r}; there are Config, Format, Tables, MinSparkVersion, "
                        "MaxSparkVersion",
                    )
                continue
            name, value = found[1], found[2].strip()
            if name in ("MinSparkVersion", "MaxSparkVersion"):
                if not re.fullmatch(r"\d+\.\d+", value):
                    raise self._error(line, f"{name} takes a version like 4.3, not {value!r}")
                version = tuple(map(int, value.split(".")))
                versions = replace(versions, **{name[:3].lower(): version})
                if block.directive is None:
                    self._versions = versions
                continue
            if block.directive is not None or self._has_blocks:
                raise self._error(line, f"{name} holds for the whole file: put it above the first block")
            read = {"Config": self._read_config, "Format": self._read_formats, "Tables": self._read_tables}[
                name
            ]
            read(line, value)
        return versions

    def _read_config(self, line: int, text: str) -> None:
        key, equals, values = text.partition("=")
        choices = tuple(v.strip() for v in values.split(","))
        if not equals or not key.strip() or not all(choices):
            raise self._error(line, f"Config takes key=value or key=value,value, not {text!r}")
        if key.strip() in self._config:
            raise self._error(line, f"{key.strip()} is set twice")
        self._config[key.strip()] = choices

    def _read_formats(self, line: int, text: str) -> None:
        names = tuple(f.strip() for f in text.split(","))
        for name in names:
            if name not in FORMATS:
                raise self._error(line, f"unknown format {name!r}; there are {', '.join(FORMATS)}")
        self._formats = names

    def _read_tables(self, line: int, text: str) -> None:
        for name in (n.strip() for n in text.split(",")):
            path = TABLES / f"{name}.sql"
            if not path.is_file():
                known = ", ".join(sorted(p.stem for p in TABLES.glob("*.sql")))
                raise self._error(line, f"there are no tables {name!r}; there are {known}")
            for view in _Parser(path).views(path.read_text("utf-8")):
                self._add_view(view, line)

    def views(self, text: str) -> list[View]:
        """The views of a file that has nothing else."""
        for block in _blocks(text):
            if block.directive is None or block.directive.partition(" ")[0] != "statement":
                raise self._error(block.directive_line, "a file of tables has statements only")
            self._directive(block, Versions())
        return self._views

    # --- directives -------------------------------------------------------------------------------------

    def _directive(self, block: _Block, versions: Versions) -> None:
        assert block.directive is not None
        line = block.directive_line
        kind, _, rest = block.directive.partition(" ")
        if kind not in ("statement", "query"):
            raise self._error(line, f"a block starts with statement or query, not with {block.directive!r}")
        if not block.sql:
            raise self._error(line, f"{kind} without SQL below it")
        if block.sql.endswith(";"):
            raise self._error(line, "a statement ends with its block, without a semicolon")
        options = self._options(line, rest)
        if kind == "statement":
            self._add_view(self._view(block, options), line)
        else:
            self._queries.append(self._query(block, options, versions))

    def _options(self, line: int, text: str) -> dict[str, str]:
        """``name=value`` and ``name(any words)`` as a dictionary."""
        options: dict[str, str] = {}
        rest = text.strip()
        while rest:
            found = _OPTION.match(rest)
            if found is None:
                raise self._error(line, f"an option is name=value or name(words), not {rest!r}")
            if found[2] == "=":
                value, _, rest = rest[found.end() :].partition(" ")
            else:
                end = _closing_parenthesis(rest, found.end())
                if end is None:
                    raise self._error(line, f"{found[1]}( is not closed")
                value, rest = rest[found.end() : end], rest[end + 1 :]
            if found[1] in options:
                raise self._error(line, f"{found[1]} is given twice")
            if not value.strip():
                raise self._error(line, f"{found[1]} is empty")
            options[found[1]] = value.strip()
            rest = rest.strip()
        return options

    def _check_known(self, line: int, options: Mapping[str, str], *names: str) -> None:
        for name in options:
            if name not in names:
                raise self._error(line, f"unknown option {name!r}; there are {', '.join(names)}")

    def _view(self, block: _Block, options: Mapping[str, str]) -> View:
        line = block.directive_line
        self._check_known(line, options, "files", "partitioned_by")
        found = _VIEW.fullmatch(block.sql)
        if found is None:
            raise self._error(line, "a statement is CREATE TEMP VIEW name AS query")
        files = options.get("files", "3")
        if not files.isdigit() or int(files) < 1:
            raise self._error(line, f"files takes a number from 1 on, not {files!r}")
        columns = tuple(c.strip() for c in options.get("partitioned_by", "").split(",") if c.strip())
        return View(found[1], found[2], line, int(files), columns)

    def _add_view(self, view: View, line: int) -> None:
        if any(view.name.lower() == v.name.lower() for v in self._views):
            raise self._error(line, f"there is a view {view.name} already")
        self._views.append(view)

    def _query(self, block: _Block, options: Mapping[str, str], versions: Versions) -> Query:
        line = block.directive_line
        self._check_known(line, options, "tolerance", "expect_fallback", "expect_error", "context_declines")
        if "expect_error" in options and "tolerance" in options:
            raise self._error(line, "a query that raises an error has no rows to compare within a tolerance")
        tolerance = options.get("tolerance", "0")
        try:
            relative = float(tolerance)
        except ValueError:
            raise self._error(line, f"tolerance takes a number like 1e-9, not {tolerance!r}") from None
        return Query(
            block.sql,
            line,
            _name(block.comments),
            relative,
            options.get("expect_fallback"),
            options.get("expect_error"),
            options.get("context_declines"),
            versions.min,
            versions.max,
        )


def _blocks(text: str) -> Iterator[_Block]:
    lines = text.splitlines()
    start = 0
    while start < len(lines):
        if not lines[start].strip():
            start += 1
            continue
        end = next((i for i in range(start, len(lines)) if not lines[i].strip()), len(lines))
        block = [line.rstrip() for line in lines[start:end]]
        comments = list(itertools.takewhile(lambda line: line.startswith("--"), block))
        body = block[len(comments) :]
        yield _Block(start + 1, tuple(comments), body[0] if body else None, "\n".join(body[1:]))
        start = end


def _name(comments: tuple[str, ...]) -> str:
    """The comment above a query, which names it in the test's id."""
    words = [c.removeprefix("--").strip() for c in comments if not _SETTING.match(c)]
    return " ".join(words)


def _closing_parenthesis(text: str, start: int) -> int | None:
    depth = 1
    for i in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return i
    return None
