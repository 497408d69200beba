"""The command line of the fuzzer."""

from __future__ import annotations

from pathlib import Path

import pytest

from kquery_spark.cli.failures import Exit, run
from tests.fuzz.random_queries.__main__ import fuzz, seed_list


@pytest.mark.parametrize("option", ["--record", "--output"])
def test_files_of_a_campaign_are_checked_before_it_begins(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("x")
    arguments = ["--cases", "1", option, str(tmp_path / "file" / "r")]
    assert run("fuzz", lambda: fuzz.main(arguments, standalone_mode=False)) == Exit.OUTPUT
    assert f"cannot write {tmp_path / 'file' / 'r'}" in capsys.readouterr().err


def test_several_seeds_alternate() -> None:
    assert seed_list("1,2,1", 0) == (1, 2)
    assert seed_list(None, 3) == (3,)
