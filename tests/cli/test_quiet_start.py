"""What other processes print while Spark starts, and unknown formats, which need no Spark."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from kquery_spark.cli import commands
from kquery_spark.cli.commands import cli
from kquery_spark.cli.failures import Exit, run
from kquery_spark.cli.quiet_start import StartOutput, quiet_start
from tests.conftest import worker_environment


def _says(text: str, seconds: float = 0) -> list[str]:
    code = f"import sys, time; time.sleep({seconds}); sys.stderr.write({text!r})"
    return [sys.executable, "-S", "-c", code]


def test_what_a_start_prints_is_dropped_and_what_comes_later_is_not(capfd):
    with quiet_start():
        subprocess.run(_says("a banner\n"), check=True)
        later = subprocess.Popen(_says("an error\n", seconds=0.5))
        time.sleep(0.1)
    later.wait()
    deadline, printed = time.monotonic() + 10, ""
    while "an error" not in printed and time.monotonic() < deadline:
        time.sleep(0.02)
        printed += capfd.readouterr().err
    assert printed == "an error\n"


def test_a_start_that_fails_says_why(capfd):
    with pytest.raises(ValueError), quiet_start() as output:
        subprocess.run(_says("WARNING: modules\n\njava: not found\nbad subscript\n"), check=True)
        raise ValueError
    deadline = time.monotonic() + 10
    while not output.first_line and time.monotonic() < deadline:
        time.sleep(0.02)
    assert output.first_line == "java: not found"
    assert capfd.readouterr().err == ""


def test_without_java_a_command_says_so_in_one_sentence():
    command = [sys.executable, "-c", "from kquery_spark.cli import main; main()", "sql", "SELECT 1"]
    environment = {**os.environ, **worker_environment(), "JAVA_HOME": "/no/such/java"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert ended.returncode == Exit.UNEXPECTED
    (line,) = ended.stderr.splitlines()
    assert line.startswith("kquery-spark: error: Spark did not start (")
    assert "it needs Java, 17 or newer for Spark 4; install it, or set JAVA_HOME to it" in line


def test_a_terminal_that_hung_up_does_not_block_the_jvm():
    source, jvm = os.pipe()
    terminal, target = os.pipe()
    os.close(terminal)
    StartOutput(source, target).pass_on()
    os.set_blocking(jvm, False)
    deadline, written = time.monotonic() + 10, 0
    while written < 1 << 18 and time.monotonic() < deadline:
        with suppress(BlockingIOError):
            written += os.write(jvm, bytes(1 << 12))
    os.close(jvm)
    assert written == 1 << 18


@pytest.mark.parametrize("command", ["sql", "explain", "verify"])
def test_an_unknown_format_starts_no_spark(capsys, monkeypatch, tmp_path, command):
    monkeypatch.setattr(commands, "own_session", lambda *_: pytest.fail("Spark was started"))
    (tmp_path / "t.xyz").write_text("a,b")
    arguments = [command, "SELECT 1", "--table", f"t={tmp_path / 't.xyz'}"]
    code = run("kquery-spark", lambda: cli(arguments, standalone_mode=False))
    assert code == Exit.USAGE
    assert "cannot tell the format of" in capsys.readouterr().err
