"""kquery-spark serve, as a process of its own."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.cli.failures import run

COMMAND = [sys.executable, "-c", "from kquery_spark.cli import main; main()", "serve"]


@pytest.fixture
def table(tmp_path: Path) -> str:
    pq.write_table(pa.table({"x": [1, 2, 3]}), tmp_path / "t.parquet")
    return f"t={tmp_path / 't.parquet'}"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_service_answers_until_it_is_asked_to_end(table: str, tmp_path: Path, number: int):
    (tmp_path / "token").write_text("secret\n")
    (tmp_path / "token").chmod(0o600)
    options = ["--table", table, "--port", "0", "--token-file", str(tmp_path / "token")]
    process = subprocess.Popen(
        [*COMMAND, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.match(r"serving t at (grpc://127\.0\.0\.1:\d+); press Ctrl\+C to stop", line)
        assert found, line
        with kq.connect(found[1], token="secret") as remote:
            assert remote.sql("SELECT sum(x) AS s FROM t").collect() == [{"s": 6}]
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, out, err) == (0, "stopped\n", "")


def ended(*options: str) -> int:
    from kquery_spark.cli.commands import cli

    return run("kquery-spark", lambda: cli(["serve", *options], standalone_mode=False))


def test_what_a_command_line_can_get_wrong(table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "empty").write_text("\n")
    wrong = {
        (): (2, "--table"),
        ("--table", "t=/nowhere.parquet"): (3, "path does not exist"),
        ("--table", table, "--host", "0.0.0.0"): (
            2,
            "pass --token-file with the token that clients must send",
        ),
        ("--table", table, "--tls-key", "k"): (2, "go together"),
        ("--table", table, "--token-file", "/nowhere"): (3, "/nowhere"),
        ("--table", table, "--token-file", str(tmp_path / "empty")): (2, "no token"),
        ("--table", table, "--host", "256.1.1.1", "--token-file", str(tmp_path / "empty")): (2, "no token"),
    }
    for options, (code, said) in wrong.items():
        assert ended(*options) == code, options
        assert said in capsys.readouterr().err


def test_a_token_file_that_everybody_can_read_is_warned_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    from kquery_spark.cli.service import Address

    file = tmp_path / "token"
    file.write_text("secret")
    for mode, warned in ((0o600, False), (0o640, False), (0o644, True), (0o602, True)):
        file.chmod(mode)
        assert Address("127.0.0.1", 0, str(file)).token == "secret"
        said = capsys.readouterr().err
        assert ("every user of this machine can read" in said) is warned and "secret" not in said
