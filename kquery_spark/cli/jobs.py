"""``kquery-spark run`` executes an unchanged PySpark job and accelerates its actions with the engine."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

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
    the job creates gets the engine's recommended settings, unless the job sets other values.
    """
    if not os.path.isfile(job):
        raise Failure(Exit.MISSING_PATH, f"path does not exist: {job}")
    if _SUBMIT not in os.environ and "PYSPARK_GATEWAY_PORT" not in os.environ:
        settings = " ".join(f"--conf {s.key}={s.value}" for s in supported_settings())
        os.environ[_SUBMIT] = f"{settings} pyspark-shell"
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


def _job_frames(error: Exception) -> TracebackType | None:
    """Remove the frames that called the job from the error's traceback, and return the traceback.

    A syntax error in the job itself has no other frames.
    """
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_globals.get("__name__") in (__name__, "runpy"):
        frames = frames.tb_next
    error.__traceback__ = frames
    return frames
