"""The table of ``make matrix`` is made of the tests' own reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import matrix

REPORT = """<testsuites><testsuite>
<testcase classname="tests.sql.joins.joins.sql" name="a"/>
<testcase classname="tests.sql.joins.joins.sql" name="b"><failure message="rows differ"/></testcase>
<testcase classname="tests.sql.joins.joins.sql" name="c"><skipped/></testcase>
<testcase classname="tests.sql.windows.frames.sql" name="d">
  <properties><property name="declined" value="Spark 4.0.5, unlike 4.2, ..."/></properties>
</testcase>
<testcase classname="tests.functions.test_parity" name="e"/>
</testsuite></testsuites>"""


def test_cases_are_counted_by_suite(tmp_path: Path) -> None:
    report = tmp_path / "4.0.xml"
    report.write_text(REPORT)
    sql, functions, files, actions, tpch = matrix._counts(report)
    assert sql == matrix.Counts(ran=3, equal=2, whole=1)
    assert functions == matrix.Counts(ran=1, equal=1, whole=1)
    assert files == actions == tpch == matrix.Counts(ran=0, equal=0, whole=0)


def test_a_run_without_a_report_counts_nothing(tmp_path: Path) -> None:
    assert matrix._counts(tmp_path / "none.xml") == (matrix.Counts(0, 0, 0),) * 5


def test_the_table_goes_between_the_marks_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "compatibility.md"
    page.write_text(f"before\n{matrix.START}old\n{matrix.END}after\n")
    monkeypatch.setattr(matrix, "PAGE", page)
    sql, others = matrix.Counts(1476, 1476, 1470), matrix.Counts(23, 23, 23)
    counts = (sql, others, others, others, others)
    matrix.write_page([matrix.Result("4.0.5", "Python 3.11.7", counts, 60.0, True)])
    assert page.read_text() == (
        f"before\n{matrix.START}| PySpark | beside it | SQL | Functions | Files | Actions | TPC-H |\n|---|---|---|---|---|---|---|\n"
        "| 4.0.5 | Python 3.11.7 | 1,476 / 1,470 / 1,476 | 23 / 23 / 23 | 23 / 23 / 23 | 23 / 23 / 23 | 23 / 23 / 23 |\n"
        f"{matrix.END}after\n"
    )


def test_rows_of_releases_that_did_not_run_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "compatibility.md"
    page.write_text(f"{matrix.START}{matrix.END}")
    monkeypatch.setattr(matrix, "PAGE", page)
    counts = (matrix.Counts(1, 1, 1),) * 5
    other_build = ("3.5.9 (Scala 2.13)", "build")
    for version, beside in (
        ("4.1.4", "old"),
        ("3.5.9", "old"),
        ("4.1.5", "new"),
        other_build,
        ("4.0.5", "new"),
    ):
        matrix.write_page([matrix.Result(version, beside, counts, 1.0, True)])
    rows = [row.split("|")[1:3] for row in page.read_text().splitlines()[3:-1]]
    assert rows == [
        [" 3.5.9 ", " old "],
        [" 3.5.9 (Scala 2.13) ", " build "],
        [" 4.0.5 ", " new "],
        [" 4.1.5 ", " new "],
    ]


def test_the_page_has_the_marks() -> None:
    page = matrix.PAGE.read_text()
    assert page.index(matrix.START) < page.index(matrix.END)
