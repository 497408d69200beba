"""The word check of `make lint` finds what it says it finds."""

from __future__ import annotations

from tests.docs.words import STYLE, WordList, markdown_occurrences, python_occurrences

WORDS = WordList.read(STYLE.read_text(encoding="utf-8"))


def _python(source: str, file: str = "kquery_spark/sample.py") -> list[tuple[int, str, str]]:
    return [(o.line, o.word, o.place) for o in python_occurrences(file, source, WORDS)]


def test_words_in_docstrings_comments_and_messages() -> None:
    source = '"""The\nfolder."""\n\nx = 1  # nobody reads it\nraise ValueError(f"{x} is no\\nnumber")\n'
    expected = {(2, "folder", "a string"), (4, "nobody", "a comment"), (5, "is no number", "a string")}
    assert set(_python(source)) == expected


def test_words_in_names() -> None:
    source = "def read_folder(wanted_columns):\n    all_texts = 1\n\n\nclass _Kept:\n    pass\n"
    expected = {
        (1, "folder", "the name read_folder"),
        (1, "wanted", "the name wanted_columns"),
        (2, "texts", "the name all_texts"),
        (5, "_Kept", "the name of a definition"),
    }
    assert set(_python(source)) == expected


def test_plain_english_passes() -> None:
    source = '"""There is no file, and it is no longer needed."""\n\n\ndef kept_rows(contexts):\n    return one(contexts)\n'
    assert _python(source) == []


def test_strings_of_tests_are_data() -> None:
    assert _python('"""A folder."""\n\nSQL = "SELECT folder"\n', "tests/sample.py") == [
        (1, "folder", "a string")
    ]


def test_words_that_cross_lines_of_documents() -> None:
    found = list(markdown_occurrences("a.md", "First line.\nIt stays\nwith Spark.\n", WORDS))
    assert [(o.line, o.word) for o in found] == [(2, "stays with Spark")]
