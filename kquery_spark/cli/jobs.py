"""``kquery-spark run`` executes an unchanged PySpark job and accelerates its actions with the engine."""

from __future__ import annotations

import os
import re
import runpy
import sys
from collections.abc import Sequence
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
    adds_settings = _SUBMIT not in os.environ and "PYSPARK_GATEWAY_PORT" not in os.environ
    if adds_settings:
        site_names = _names_in_spark_defaults()
        added = [s for s in supported_settings() if s.key not in site_names]
        os.environ[_SUBMIT] = " ".join([*(f"--conf {s.key}={s.value}" for s in added), "pyspark-shell"])
    before = sys.argv, list(sys.path)
    sys.argv = [job, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(job)))
    enable_everywhere(when=when)
    try:
        with with_error_log():
            runpy.run_path(job, run_name="__main__")
    except Exception as error:
        sys.excepthook(type(error), error, _job_frames(error))
        sys.exit(int(Exit.UNEXPECTED))
    finally:
        disable_everywhere()
        sys.argv, sys.path[:] = before
        if adds_settings:
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
    """Remove the frames that called the job from the error's traceback, and return the traceback.

    A syntax error in the job itself has no other frames.
    """
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_globals.get("__name__") in (__name__, "runpy"):
        frames = frames.tb_next
    error.__traceback__ = frames
    return frames
