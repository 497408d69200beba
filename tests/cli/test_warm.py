"""``kquery-spark warm`` compiles every package of loops once."""

from __future__ import annotations

import pkgutil
import sys
from pathlib import Path

import pytest

from kquery_spark import kernels
from kquery_spark.cli import warming
from kquery_spark.cli.failures import Exit, Failure
from kquery_spark.cli.warming import compile_loops
from kquery_spark.kernels import compiled
from kquery_spark.kernels.compiled import ALL_LOOPS, CompiledLoops


def test_every_package_of_loops_is_compiled():
    packages = {module.name for module in pkgutil.iter_modules(kernels.__path__) if module.ispkg}
    assert {loops.package for loops in ALL_LOOPS} == packages


def test_a_second_call_finds_the_loops_ready(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    pytest.importorskip("numba")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    # another test may have imported the package in this process, with another cache directory
    for name in [name for name in sys.modules if name.startswith("kquery_spark.kernels.aggregate_loops")]:
        monkeypatch.delitem(sys.modules, name)
    said: list[str] = []
    for _ in range(2):
        monkeypatch.setattr(warming, "ALL_LOOPS", (CompiledLoops("aggregate_loops"),))
        compile_loops(said.append)
    first, second = said
    assert first.startswith("aggregate_loops: compiled in ")
    assert second.startswith("aggregate_loops: already compiled, ")
    assert ", 0 functions" not in second
    assert second.endswith(f" MB in {next((tmp_path / 'kquery_spark').iterdir())}")


def test_the_error_says_why_nothing_can_be_compiled(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(CompiledLoops, "directory", None)
    # loops that another test has used in this process have found their directory already
    monkeypatch.setattr(warming, "ALL_LOOPS", (CompiledLoops("aggregate_loops"),))
    for has_numba, code, reason in (
        (True, Exit.OUTPUT, "not compiled, because this user has no private cache directory"),
        (False, Exit.USAGE, "compiled by numba, which is not installed"),
    ):
        for module in (warming, compiled):
            monkeypatch.setattr(module, "has_numba", lambda has_numba=has_numba: has_numba)
        with pytest.raises(Failure, match=f"cannot compile the loops: they are {reason}") as failure:
            compile_loops(print)
        assert failure.value.code == code
