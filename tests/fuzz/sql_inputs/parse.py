"""Reads the input format of Spark's SQLQueryTestSuite: statements, settings and dimensions of settings."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

Settings = Mapping[str, str]
_SEMICOLON = re.compile(r"(?<=[^\\]);")
_DIMENSION = re.compile(r"--CONFIG_DIM(\S*)\s+(.*)")
_DELIMITER = "--QUERY-DELIMITER"
_ENGINE = "spark"
IGNORED = frozenset({"ignored.sql"})
"""Files that the suite itself skips."""


@dataclass(frozen=True)
class SqlInput:
    """One input file.

    name: its path below the directory of inputs. settings: those of ``--SET``. dimensions: the alternatives of each
    ``--CONFIG_DIM``. for_spark: False where ``--ONLY_IF`` names another engine.
    """

    name: str
    statements: tuple[str, ...]
    settings: Settings
    dimensions: tuple[tuple[Settings, ...], ...] = ()
    for_spark: bool = True

    @property
    def directory(self) -> str:
        """The first directory of the name, which decides the session's settings; empty at the top."""
        return self.name.split("/")[0] if "/" in self.name else ""

    def combinations(self, every: bool) -> list[dict[str, str]]:
        """The settings of each run of the file: every choice from every dimension, or the first alone."""
        chosen = itertools.product(*self.dimensions) if every else [tuple(d[0] for d in self.dimensions)]
        combinations = []
        for choice in chosen:
            settings = dict(self.settings)
            for one in choice:
                settings.update(one)
            combinations.append(settings)
        return combinations


def find_inputs(directory: Path, patterns: Sequence[str] = ()) -> list[Path]:
    """The ``.sql`` files below ``directory`` whose relative paths match one of the patterns (all, without any)."""
    matches = []
    for path in sorted(directory.rglob("*.sql")):
        name = path.relative_to(directory).as_posix()
        if name not in IGNORED and (not patterns or any(fnmatch(name, pattern) for pattern in patterns)):
            matches.append(path)
    return matches


def parse_file(directory: Path, path: Path) -> SqlInput:
    """Parse one file; ``--IMPORT`` puts the statements of another file of ``directory`` before its own."""
    comments, code = _split_comments(path.read_text(encoding="utf-8"))
    imported: list[str] = []
    for comment in comments:
        if comment.startswith("--IMPORT "):
            other = directory / comment.removeprefix("--IMPORT ").strip()
            if other.exists():
                imported += _split_comments(other.read_text(encoding="utf-8"))[1]
    only = [c.removeprefix("--ONLY_IF ").strip() for c in comments if c.startswith("--ONLY_IF ")]
    lines = [c.removeprefix("--SET ") for c in comments if c.startswith("--SET ")]
    return SqlInput(
        path.relative_to(directory).as_posix(),
        tuple(_statements([*imported, *code])),
        {key: value for line in lines for key, value in _pairs(line).items()},
        _dimensions(comments),
        not only or _ENGINE in only,
    )


def _split_comments(text: str) -> tuple[list[str], list[str]]:
    """Lines that are comments, and the others; delimiters of queries belong to the others."""
    comments: list[str] = []
    code: list[str] = []
    for line in text.split("\n"):
        stripped = line.strip()
        is_comment = stripped.startswith("--") and not stripped.startswith(_DELIMITER)
        (comments if is_comment else code).append(line)
    return comments, code


def _statements(lines: Iterable[str]) -> Iterable[str]:
    """Statements split at semicolons; what stands between two delimiter lines is one statement."""
    pending: list[str] = []
    delimited = False

    def cut() -> list[str]:
        text = "\n".join(pending)
        pending.clear()
        return [text.strip().removesuffix(";")] if delimited else _SEMICOLON.split(text)

    for line in lines:
        if line.strip().startswith(f"{_DELIMITER}-START"):
            yield from _cleaned(cut())
            delimited = True
        elif line.strip().startswith(f"{_DELIMITER}-END"):
            yield from _cleaned(cut())
            delimited = False
        else:
            pending.append(line)
    yield from _cleaned(cut())


def _cleaned(strings: Iterable[str]) -> Iterable[str]:
    """Each text without its comment lines; empty strings are left out."""
    for text in strings:
        cleaned = "\n".join(line for line in text.strip().split("\n") if not line.startswith("--")).strip()
        if cleaned:
            yield cleaned


def _dimensions(comments: Iterable[str]) -> tuple[tuple[Settings, ...], ...]:
    choices_by_name: dict[str, list[Settings]] = {}
    for comment in comments:
        match = _DIMENSION.match(comment)
        if match:
            choices_by_name.setdefault(match[1], []).append(_pairs(match[2]))
    return tuple(tuple(choices) for choices in choices_by_name.values())


def _pairs(line: str) -> dict[str, str]:
    """``key=value,key=value`` as a dictionary."""
    pairs = (part.partition("=") for part in line.split(",") if part.strip())
    return {key.strip(): value.strip() for key, _, value in pairs}
