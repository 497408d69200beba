"""The suites that every supported release of Spark must pass, each release in an environment of its own.

``make matrix`` makes an environment for each release below ``.matrix``, runs the suites there, and writes the table of
``docs/compatibility.md``. ``python -m tests.matrix 3.5 4.0`` takes some releases only, each with its last patch; ``4.0.0`` is that
patch release, ``lowest`` the lowest versions that ``pyproject.toml`` allows of all packages, ``3.5-scala2.13`` the other build of 3.5,
``4.2-python3.13`` a release with another Python, ``python3.13`` of the ``PATH``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from kquery_spark.spark_bridge.session.versions import SUPPORTED
from tests.support.scala_build import spark_home

ROOT = Path(__file__).parents[1]
DIRECTORY = ROOT / ".matrix"
PAGE = ROOT / "docs" / "compatibility.md"
START, END = "<!-- matrix -->\n", "<!-- end of matrix -->\n"
#: Title and path of each suite.
SUITES = (
    ("SQL", "tests/sql"),
    ("Functions", "tests/functions/test_parity.py"),
    ("Files", "tests/sources/test_older_releases.py"),
    ("Actions", "tests/accelerate/enable/test_every_action.py"),
    ("TPC-H", "tests/accelerate/queries/test_tpch.py"),
)
#: What a test reports of a query that stays with this release of Spark, as it answers otherwise than the newest.
DECLINED = "declined"
LOWEST = "lowest"
SCALA_BUILD = "3.5-scala2.13"
#: What runs when it is asked for, and how the table calls it beside its version.
OTHERS = {LOWEST: " (lowest)", SCALA_BUILD: " (Scala 2.13)"}
#: How the table calls a patch release that was asked for.
PATCH = " (patch release)"
_WITH_PYTHON = "-python"


@dataclass(frozen=True)
class Counts:
    """Tests of a suite. equal: as Spark; whole: of these, in the engine as a whole."""

    ran: int
    equal: int
    whole: int

    def __str__(self) -> str:
        return f"{self.ran:,} / {self.whole:,} / {self.equal:,}"


@dataclass(frozen=True)
class Result:
    """One release: its exact version and build, the versions beside it, what each suite counted, and how long it took."""

    spark: str
    beside: str
    counts: tuple[Counts, ...]
    seconds: float
    ok: bool

    def row(self) -> str:
        return f"| {self.spark} | {self.beside} | {' | '.join(map(str, self.counts))} |\n"


def _is_patch(release: str) -> bool:
    """Whether a release is named with its patch, as ``4.0.0``."""
    minor, _, patch = release.rpartition(".")
    return minor in SUPPORTED and patch.isdigit()


def _python_of(release: str) -> tuple[str, str | None]:
    """A release without the Python that it is named with, and this Python's version: ``4.2-python3.13``."""
    spark, _, python = release.partition(_WITH_PYTHON)
    return spark, python or None


def _build(release: str) -> str:
    """What the table says beside the version of a release that was asked for."""
    _, python = _python_of(release)
    if python is not None:
        return f" (Python {python})"
    return PATCH if _is_patch(release) else OTHERS.get(release, "")


def environment(release: str) -> Path:
    """The Python of the environment of a release, or of the lowest versions, which is made where there is none."""
    directory = DIRECTORY / release
    python = directory / "bin" / "python"
    done = directory / ".installed"
    if not done.exists() or done.stat().st_mtime < (ROOT / "pyproject.toml").stat().st_mtime:
        spark, version = _python_of(release)
        if not python.exists():
            base = sys.executable if version is None else f"python{version}"
            subprocess.run([base, "-m", "venv", str(directory)], check=True)
        print(f"installing PySpark ({release}) and what the tests need into {directory}", flush=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        pyspark = f"pyspark=={spark}" if _is_patch(spark) else f"pyspark~={spark}.0"
        versions = ["--constraint", ".ci/lowest.txt"] if release == LOWEST else [pyspark]
        subprocess.run([*pip, "--editable", ".[test]", *versions], cwd=ROOT, check=True)
        done.touch()
    return python


def run(release: str, arguments: Sequence[str]) -> Result:
    """Run all suites on a release; the tests' own output goes to the terminal."""
    python = environment("3.5" if release == SCALA_BUILD else release)
    report = DIRECTORY / f"{release}.xml"
    report.unlink(missing_ok=True)
    paths = [path for _, path in SUITES]
    command = [
        str(python),
        "-m",
        "pytest",
        "-q",
        "--dist",
        "loadfile",
        f"--junitxml={report}",
        *arguments,
        *paths,
    ]
    variables = {**os.environ, "PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(python)}
    variables.pop("SPARK_HOME", None)
    spark, beside = _versions(python)
    if release == SCALA_BUILD:
        variables["SPARK_HOME"] = str(spark_home(_pyspark(python), spark, DIRECTORY))
    print(f"Spark {release}", flush=True)
    started = time.perf_counter()
    code = subprocess.run(command, cwd=ROOT, env=variables, check=False).returncode
    seconds = time.perf_counter() - started
    return Result(f"{spark}{_build(release)}", beside, _counts(report), seconds, code == 0)


def _versions(python: Path) -> tuple[str, str]:
    code = (
        "import platform, pyspark, pyarrow, numpy, pandas; print(pyspark.__version__, f'Python "
        "{platform.python_version()}, pyarrow {pyarrow.__version__}, numpy {numpy.__version__}, pandas {pandas.__version__}')"
    )
    spark, _, beside = subprocess.check_output([str(python), "-c", code], text=True).strip().partition(" ")
    return spark, beside


def _pyspark(python: Path) -> Path:
    """The directory of an environment's PySpark."""
    code = "import pyspark; print(pyspark.__path__[0])"
    return Path(subprocess.check_output([str(python), "-c", code], text=True).strip())


def _counts(report: Path) -> tuple[Counts, ...]:
    cases = list(ElementTree.parse(report).iter("testcase")) if report.exists() else []
    return tuple(_counts_of([case for case in cases if _is_of(case, path)]) for _, path in SUITES)


def _is_of(case: ElementTree.Element, path: str) -> bool:
    return case.get("classname", "").startswith(path.removesuffix(".py").replace("/", "."))


def _counts_of(cases: Sequence[ElementTree.Element]) -> Counts:
    ran = [case for case in cases if case.find("skipped") is None]
    equal = [case for case in ran if case.find("failure") is None and case.find("error") is None]
    declined = [case for case in equal if case.find(f"properties/property[@name='{DECLINED}']") is not None]
    return Counts(len(ran), len(equal), len(equal) - len(declined))


def table(results: Sequence[Result], others: Sequence[str] = ()) -> str:
    """The results as a table of Markdown. others: rows of other releases, from earlier runs."""
    titles = " | ".join(title for title, _ in SUITES)
    header = f"| PySpark | beside it | {titles} |\n|---|---|{'---|' * len(SUITES)}\n"
    rows = sorted([*others, *(result.row() for result in results)], key=_release_of)
    return header + "".join(rows)


def _release_of(row: str) -> tuple[int, int, str]:
    """The release that a row is about, and its build if that is named; of the header's rows zeros."""
    version, _, build = row.strip("| ").partition(" |")[0].partition(" ")
    if not version[:1].isdigit():
        return (0, 0, "")
    major, minor = map(int, version.split(".")[:2])
    return (major, minor, build)


def write_page(results: Sequence[Result]) -> None:
    """Put the results into the page's table; rows of releases that did not run stay as they are."""
    before, _, rest = PAGE.read_text().partition(START)
    old, _, after = rest.partition(END)
    ran = {_release_of(""), *(_release_of(result.row()) for result in results)}
    others = [row for row in old.splitlines(keepends=True) if _release_of(row) not in ran]
    PAGE.write_text(f"{before}{START}{table(results, others)}{END}{after}")


def main() -> int:
    """Run the releases that are named, or all; 1 if a test of one failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__)
    parser.add_argument(
        "releases",
        nargs="*",
        help=f"{', '.join(SUPPORTED)} (all of these without any), a patch release of these, "
        f"{', '.join(OTHERS)}, one of the first with another Python: 4.2{_WITH_PYTHON}3.13",
    )
    parser.add_argument("-n", default="2", help="processes that run tests")
    parser.add_argument("-k", default="", help="tests to select, as pytest takes it")
    parser.add_argument("--write", action="store_true", help="put the table into docs/compatibility.md")
    options = parser.parse_args()
    for release in options.releases:
        known = (*SUPPORTED, *OTHERS)
        if release not in known and not _is_patch(release) and _python_of(release)[0] not in SUPPORTED:
            parser.error(f"{release} is no supported release; there are {', '.join(known)}")
    arguments = ["-n", options.n, *(["-k", options.k] if options.k else [])]
    results = [run(release, arguments) for release in options.releases or SUPPORTED]
    print(table(results))
    for result in results:
        print(f"Spark {result.spark}: {'passed' if result.ok else 'FAILED'} in {result.seconds:.0f} s")
    if options.write:
        write_page(results)
    return 0 if all(result.ok for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
