"""The shell commands of the README, the guide and the other pages: run here over small data, or at least parsed."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pyspark
import pytest

from benchmarks import bench
from kquery_spark.cli import commands
from kquery_spark.cli.failures import Exit, run
from tests.conftest import ROOT, worker_environment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^( *)```([^\n]*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"(^|\s)#.*")
PROGRAMS = ("kquery-spark", "spark-submit", "make", "pip", "python")
"""What a line of a block without a language begins with if it is a command."""

NOT_RUN = {
    "pip install": "needs an index; the project itself is what it would install",
    "python -m venv": "makes an environment, which takes minutes and needs an index",
    "env/bin/pip install": "needs an index",
    "env/bin/venv-pack": "packs the environment that was not made",
    "pip uninstall": "takes away what the tests need; tests/kernels/test_compiled.py runs without numba",
    "docker": "downloads Spark's image; make image runs tests/examples/test_docker.py",
    "zip -r": "packs the package; tests/runtime/test_other_interpreter.py and test_in_container.py ship it to workers",
    "export": "names the interpreter that the tests name for all of their workers",
    "py-spy": "needs rights over other processes that a container does not have",
    "python -X": "prints what every import takes",
    "kquery-spark run": "begins sessions of its own; tests/cli/test_commands_engine.py runs jobs in a process",
    "kquery-spark serve": "runs until it is interrupted; tests/cli/test_serve.py starts it",
    "kquery-spark calibrate": "measures for a minute; tests/accelerate/planning/test_calibrate.py runs what it calls",
    "kquery-spark warm": "compiles for a minute; tests/cli/test_warm.py runs what it calls",
    "kquery-spark qualify": "needs event logs or SQL files; tests/cli/test_qualify.py runs it",
    "kquery-spark demo": "takes minutes; its options are those of benchmarks.demo",
    "kquery-spark bench": "takes minutes; tests/benchmarks runs what it calls",
    "python -m benchmarks.scale": "takes minutes; tests/benchmarks/test_scale.py runs what it calls",
    "python -m benchmarks.bench": "takes minutes; tests/benchmarks runs what it calls",
    "spark-submit": "tests/jobs runs both jobs by it; here its options and the job's arguments are read",
    "make": "makes an environment or runs for minutes; here the target is looked up",
}
"""The commands that are not run here, and why. Their options are checked all the same, where there is something to ask."""
RUN = ("kquery-spark sql", "kquery-spark explain", "kquery-spark verify")


@dataclass(frozen=True)
class Command:
    """One command of a page, without comments, variables before it, and brackets around what may be left out."""

    page: str
    words: tuple[str, ...]

    @property
    def kind(self) -> str:
        """The entry of ``RUN`` or ``NOT_RUN`` that it belongs to."""
        text = " ".join(self.words)
        return next((start for start in (*RUN, *NOT_RUN) if (text + " ").startswith(start + " ")), text)

    def __str__(self) -> str:
        return f"{self.page}: {' '.join(self.words)}"


def page_commands(page: Path) -> Iterator[Command]:
    for _, language, block in BLOCK.findall(page.read_text()):
        for line in block.splitlines() if language in ("", "bash") else ():
            if language or line.strip().split(" ")[0] in PROGRAMS:
                for part in line.split("&&"):
                    words = shlex.split(_without_brackets(_COMMENT.sub("", part)))
                    while words and re.match(r"\w+=", words[0]):
                        words = words[1:]
                    if words:
                        yield Command(page.name, tuple(words[: _end(words)]))


def _without_brackets(line: str) -> str:
    """With what may be left out, in the first of its forms: ``[--engine kquery|spark]`` as ``--engine kquery``."""
    return re.sub(r" \[(--[^\]|]+)(?:\|[^\]]*)?\]", r" \1", line)


def _end(words: list[str]) -> int:
    """Where a pipe or a redirection begins."""
    return next(
        (i for i, word in enumerate(words) if word in ("|", ">") or word.startswith("2>")), len(words)
    )


COMMANDS = list(dict.fromkeys(command for page in PAGES for command in page_commands(page)))


def test_every_command_is_run_or_has_a_reason_not_to_be() -> None:
    assert len(COMMANDS) > 20
    assert [str(c) for c in COMMANDS if c.kind not in (*RUN, *NOT_RUN)] == []
    assert {*RUN, *NOT_RUN} - {c.kind for c in COMMANDS} == set(), "these are on no page any more"


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.kind in RUN], ids=str)
def test_a_command_over_tables_runs(
    spark: SparkSession,
    taxi_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: Command,
) -> None:
    monkeypatch.setattr(commands, "own_session", lambda name, log_level: spark)
    monkeypatch.chdir(tmp_path)
    real = {"SELECT ...": "SELECT VendorID, count(*) AS n FROM trips GROUP BY VendorID"}
    words = [real.get(word, word.replace("data/trips", str(taxi_dir / "parquet"))) for word in command.words]
    words = [str(tmp_path / word) if word == "out.parquet" else word for word in words]
    try:
        code = run("kquery-spark", lambda: commands.cli(words[1:], standalone_mode=False))
    finally:
        spark.catalog.dropTempView("trips")
    said = capsys.readouterr()
    assert code == Exit.OK, said.err
    assert said.out
    if "--output" in words:
        assert spark.read.parquet(str(tmp_path / "out.parquet")).columns == ["VendorID", "n"]


@pytest.mark.parametrize(
    "command", [c for c in COMMANDS if c.words[0] == "kquery-spark" and c.kind in NOT_RUN], ids=str
)
def test_the_options_of_other_commands_exist(command: Command) -> None:
    name, *arguments = command.words[1:]
    parsed = commands.cli.commands[name].make_context(name, arguments)
    if name == "bench":
        check_bench(parsed.params["arguments"])


def check_bench(words: Sequence[str]) -> None:
    """Parse the command of the benchmarks that these words are."""
    bench.cli.commands[words[0]].make_context(words[0], list(words[1:]))


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.kind == "python -m benchmarks.bench"], ids=str)
def test_the_options_of_benchmarks_exist(command: Command) -> None:
    check_bench(command.words[3:])


@cache
def submit_options() -> set[str]:
    """The options of this release's ``spark-submit``."""
    program = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    environment = {**os.environ, **worker_environment(), "SPARK_HOME": str(program.parents[1])}
    said = subprocess.run([program, "--help"], env=environment, capture_output=True, text=True, timeout=120)
    return set(re.findall(r"--[\w-]+", said.stdout + said.stderr))


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.kind == "spark-submit"], ids=str)
def test_the_options_of_spark_submit_and_of_the_job_exist(command: Command) -> None:
    words = list(command.words[1:])
    at = next(i for i, word in enumerate(words) if word.endswith(".py"))
    options, job, arguments = words[:at], words[at], words[at + 1 :]
    assert {word for word in options if word.startswith("--")} <= submit_options()
    if "--properties-file" in options:
        assert (ROOT / options[options.index("--properties-file") + 1]).is_file()
    if Path(job).name == "job.py":  # the reader's own
        return
    spec = importlib.util.spec_from_file_location("job_of_a_page", ROOT / job)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert isinstance(module.main, click.Command)
    module.main.make_context(job, arguments)


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.words[0] == "make"], ids=str)
def test_the_targets_of_make_exist(command: Command) -> None:
    targets = [word for word in command.words[1:] if "=" not in word]
    assert targets
    for target in targets:
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), target
