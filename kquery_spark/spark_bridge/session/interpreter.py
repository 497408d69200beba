"""Chooses the Python interpreter of the engine's tasks, whose worker processes are separate from those of users' functions.

Spark keeps a pool of Python workers for each interpreter and environment. The engine's functions carry a mark in their
environment, so what the engine does to its workers (how memory is allocated, what the garbage collector looks at,
which instructions numpy uses) does not reach the workers of the user's functions.
"""

from __future__ import annotations

import os
import site
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy
import pyarrow as pa
from pyspark import SparkContext

from kquery_spark import errors
from kquery_spark.config.environment import FOR_FUNCTIONS, WORKER_INTERPRETER, WORKER_MARK

_LAUNCHER = Path(__file__).with_name("engine-python")


@dataclass(frozen=True)
class Interpreter:
    """The executable with which Spark starts workers, and the environment variables that are added to Spark's own.

    proven: True if it certainly imports the same packages as this process, because it is this process's own interpreter.
    """

    executable: str
    environment: Mapping[str, str]
    proven: bool

    def environment_with(self, users: Mapping[str, str], for_functions: bool = False) -> dict[str, str]:
        """The environment for the engine's functions: the user's for all Python functions, and the engine's variables.

        for_functions: True for stages that call users' functions, which have workers of their own.
        """
        both = {**users, **self.environment}
        if for_functions:
            both[WORKER_MARK] = FOR_FUNCTIONS
        paths = [e["PYTHONPATH"] for e in (users, self.environment) if e.get("PYTHONPATH")]
        return {**both, "PYTHONPATH": os.pathsep.join(paths)} if paths else both


def interpreter_of(context: SparkContext) -> Interpreter:
    """The interpreter of the engine's tasks.

    With a local master it is the interpreter of this process, whatever ``python3`` or PYSPARK_PYTHON is for the user's
    functions. On a cluster it is the same as for the user's functions.
    """
    own = _own_interpreter() if is_local(context) else None
    return own or Interpreter(str(context.pythonExec), {WORKER_MARK: "1"}, False)


def is_local(context: SparkContext) -> bool:
    """Return whether Spark's tasks run in the driver's JVM."""
    master = str(context.master)
    return master == "local" or master.startswith("local[")


@cache
def _own_interpreter() -> Interpreter | None:
    """This process's interpreter; None if it cannot be started by itself, for example in a server that embeds Python."""
    executable = sys.executable or ""
    named_python = any(name in os.path.basename(executable).lower() for name in ("python", "pypy"))
    if not named_python or not os.path.isabs(executable) or not os.access(executable, os.X_OK):
        return None
    environment = {WORKER_MARK: "1"}
    usual, ours = _usual_directories(), _directory_of(errors.__file__)
    if ours not in usual:
        environment["PYTHONPATH"] = ours
    proven = {_directory_of(pa.__file__), _directory_of(numpy.__file__)} <= usual | {ours}
    if os.name == "posix" and os.access(_LAUNCHER, os.X_OK):
        return Interpreter(str(_LAUNCHER), {**environment, WORKER_INTERPRETER: executable}, proven)
    return Interpreter(executable, environment, proven)


def _usual_directories() -> set[str]:
    """The package directories that are on the path of every process of this interpreter."""
    directories = [*site.getsitepackages(), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    if site.ENABLE_USER_SITE:
        directories.append(site.getusersitepackages())
    return {os.path.abspath(directory) for directory in directories if directory}


def _directory_of(package: str | None) -> str:
    """The parent of a package's directory."""
    assert package is not None
    return os.path.dirname(os.path.dirname(os.path.abspath(package)))
