"""Looks for the words that docs/style.md replaces; a part of `make lint`.

    python -m tests.docs.words            # lists new occurrences and fails if there are any
    python -m tests.docs.words --shrink   # writes the lower counts of files that were rewritten
    python -m tests.docs.words --list kquery_spark/planner   # shows all occurrences below a path

The tables of docs/style.md are the only list of words. `words_allowed.txt` holds the number of occurrences in each file that was written before
this check existed. A file may not have more than its number, and a file that has fewer needs `--shrink`, so the numbers only go down.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
STYLE = ROOT / "docs" / "style.md"
ALLOWED = Path(__file__).with_name("words_allowed.txt")

# These files quote the words on purpose.
_EXEMPT = {"docs/style.md", "tests/docs/words.py", "tests/docs/test_words.py"}
# Data in tests (SQL, rows, expected errors) is not prose, so only comments, docstrings and names of tests are checked.
_STRINGS_ARE_DATA = ("tests/", "benchmarks/queries/")


@dataclass(frozen=True)
class Occurrence:
    """One use of a replaced word: file relative to the repository, 1-based line, the word, and what it stands in."""

    file: str
    line: int
    word: str
    place: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.word!r} in {self.place}"


@dataclass(frozen=True)
class WordList:
    """The replaced words, compiled from the two tables of docs/style.md."""

    prose: re.Pattern[str]
    name_parts: frozenset[str]
    whole_names: frozenset[str]

    @classmethod
    def read(cls, style: str) -> WordList:
        """Parse the first column of the tables that start with `| instead of | write |`."""
        tables = re.findall(r"\| instead of \| write \|\n\|---\|---\|\n((?:\|.*\n?)+)", style)
        phrases, whole_names = ([p for row in t.splitlines() for p in _phrases(row)] for t in tables)
        return cls(
            prose=re.compile(rf"\b(?:{'|'.join(map(_phrase_pattern, phrases))})\b", re.IGNORECASE),
            name_parts=frozenset(p for p in phrases if p.isalpha()),
            whole_names=frozenset(whole_names),
        )

    def in_prose(self, text: str) -> Iterator[tuple[int, str]]:
        """Yield the 0-based line within `text` and the word for each replaced word."""
        for match in self.prose.finditer(text):
            yield text.count("\n", 0, match.start()), " ".join(match.group().split())

    def in_name(self, name: str) -> str | None:
        """Return the replaced word that `name` has as one of its parts, or None."""
        parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().split("_")
        return next((p for p in parts if p in self.name_parts), None)


def _phrases(row: str) -> list[str]:
    return [phrase.strip() for phrase in row.split("|")[1].split(",")]


def _phrase_pattern(phrase: str) -> str:
    if phrase == "is no X":
        # "there is no file" and "is no longer" are plain English.
        return r"(?<!there )is\s+no\s+(?!longer\b|more\b|less\b|later\b|other\b)[a-z]+"
    return r"\s+".join(map(re.escape, phrase.split()))


def python_occurrences(file: str, source: str, words: WordList) -> Iterator[Occurrence]:
    """Yield the occurrences in names, comments, docstrings and, outside of tests, other strings of a Python file."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            for _, word in words.in_prose(token.string):
                yield Occurrence(file, token.start[0], word, "a comment")
    tree = ast.parse(source)
    docstrings = set(_docstring_nodes(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node in docstrings or not file.startswith(_STRINGS_ARE_DATA):
                for line, word in words.in_prose(node.value):
                    yield Occurrence(file, node.lineno + line, word, "a string")
        for name in _bound_names(node):
            if word := words.in_name(name):
                yield Occurrence(file, node.lineno, word, f"the name {name}")  # type: ignore[attr-defined]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if node.name.strip("_").lower() in words.whole_names:
                yield Occurrence(file, node.lineno, node.name, "the name of a definition")


def _docstring_nodes(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield bare string statements: docstrings, and the descriptions that follow constants and fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def _bound_names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.arg):
        return [node.arg]
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return [node.id]
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        return [node.attr]
    return []


def markdown_occurrences(file: str, source: str, words: WordList) -> Iterator[Occurrence]:
    """Yield the occurrences in a Markdown file."""
    for line, word in words.in_prose(source):
        yield Occurrence(file, line + 1, word, "a document")


def all_occurrences(words: WordList) -> dict[str, list[Occurrence]]:
    """Search all Python and Markdown files that git tracks or would track; generated code is left out."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py", "*.md"]
    files = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    occurrences = {}
    for file in sorted(set(files) - _EXEMPT):
        path = ROOT / file
        if file.endswith("_pb2.py") or not path.exists():
            continue
        find = python_occurrences if file.endswith(".py") else markdown_occurrences
        if in_file := list(find(file, path.read_text(encoding="utf-8"), words)):
            occurrences[file] = in_file
    return occurrences


def read_allowed() -> dict[str, int]:
    """Return the number of occurrences that each listed file may have."""
    pairs = (line.rsplit(" ", 1) for line in ALLOWED.read_text(encoding="utf-8").splitlines())
    return {file: int(count) for file, count in pairs}


def main(arguments: list[str]) -> int:
    """Run the command; return its exit code."""
    words = WordList.read(STYLE.read_text(encoding="utf-8"))
    occurrences = all_occurrences(words)
    if arguments[:1] == ["--list"]:
        below = tuple(arguments[1:])
        print(*(o for file, found in occurrences.items() if file.startswith(below) for o in found), sep="\n")
        return 0
    allowed = read_allowed()
    counts = {file: len(in_file) for file, in_file in occurrences.items()}
    if arguments == ["--shrink"] and sum(counts.values()) <= sum(allowed.values()):
        # Files may have been renamed or split, so only the total has to shrink.
        lines = (f"{file} {count}\n" for file, count in sorted(counts.items()))
        ALLOWED.write_text("".join(lines), encoding="utf-8")
        allowed = counts
    grown = [file for file, count in counts.items() if count > allowed.get(file, 0)]
    for file in grown:
        print(
            f"{file} has {counts[file]} words that docs/style.md replaces; {allowed.get(file, 0)} are allowed:"
        )
        print(*(f"  {o}" for o in occurrences[file]), sep="\n")
    if grown:
        return 1
    if counts != allowed:
        print("Some files have fewer replaced words than before: run python -m tests.docs.words --shrink.")
        return 1
    print(f"{sum(counts.values())} replaced words are left in {len(counts)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
