"""``kquery-spark run`` executes an unchanged PySpark job and accelerates its actions with the engine."""

from __future__ import annotations

import os
import re
import runpy
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from kquery_spark.accelerate.enable import disable_everywhere, enable_everywhere
from kquery_spark.cli.failures import Exit, Failure
from kquery_spark.config.spark_settings import supported_settings
from kquery_spark.spark_bridge.session.failures import with_error_log

if TYPE_CHECKING:
    from types import TracebackType

    from kquery_spark.accelerate.options import When

_SUBMIT = "PYSPARK_SUBMIT_ARGS"


def run_script(job: str, arguments: Sequence[str], when: When = "auto") -> None:
    """Run the file like ``python job arguments``, with its exit code.

    An error that the job does not catch ends the command as it ends Python: with a traceback and exit code 1. A session that
    the job creates gets the engine's recommended settings, unless the job or ``spark-defaults.conf`` sets other values.
    """
    if not os.path.isfile(job):
        raise Failure(Exit.MISSING_PATH, f"path does not exist: {job}")
    before = sys.argv, list(sys.path)
    sys.argv = [job, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(job)))
    enable_everywhere(when=when)
    try:
        with _recommended_settings(), with_error_log():
            runpy.run_path(job, run_name="__main__")
    except Exception as error:
        error.__traceback__ = _job_frames(error)
        sys.excepthook(type(error), error, error.__traceback__)
        sys.exit(int(Exit.UNEXPECTED))
    finally:
        disable_everywhere()
        sys.argv, sys.path[:] = before


@contextmanager
def _recommended_settings() -> Iterator[None]:
    """Let sessions start with the recommended settings, apart from those in ``spark-defaults.conf``.

    A process that ``spark-submit`` started, or that has arguments for PySpark, has its settings already.
    """
    if _SUBMIT in os.environ or "PYSPARK_GATEWAY_PORT" in os.environ:
        yield
        return
    site_names = _names_in_spark_defaults()
    added = [f"--conf {s.key}={s.value}" for s in supported_settings() if s.key not in site_names]
    os.environ[_SUBMIT] = " ".join([*added, "pyspark-shell"])
    try:
        yield
    finally:
        os.environ.pop(_SUBMIT, None)


def _names_in_spark_defaults() -> set[str]:
    """Return the names of the settings in ``spark-defaults.conf``. Settings on the command line would override them.

    Each line of this Java properties file begins with the name, which ends before a space, "=" or ":".
    """
    home = os.environ.get("SPARK_HOME") or os.path.dirname(str(pyspark.__file__))
    directory = os.environ.get("SPARK_CONF_DIR") or os.path.join(home, "conf")
    try:
        text = Path(directory, "spark-defaults.conf").read_text(encoding="utf-8", errors="replace")
    except OSError:  # Spark would not start with a file that cannot be read
        return set()
    return {re.split(r"[\s=:]", line.strip(), maxsplit=1)[0] for line in text.splitlines()}


def _job_frames(error: Exception) -> TracebackType | None:
    """Return the error's traceback without the frames that called the job; None for a syntax error in the job itself."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_globals.get("__name__") in (__name__, "runpy"):
        frames = frames.tb_next
    return frames
