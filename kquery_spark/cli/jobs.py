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

if TYPE_CHECKING:
    from kquery_spark.accelerate.options import When

_SUBMIT = "PYSPARK_SUBMIT_ARGS"


def run_script(job: str, arguments: Sequence[str], when: When = "auto") -> None:
    """Run the file like ``python job arguments``. The command ends with the errors and the exit code of the job.

    A session that the job creates gets the engine's recommended settings, unless the job sets other values.
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
        runpy.run_path(job, run_name="__main__")
    finally:
        disable_everywhere()
        sys.argv, sys.path[:] = before
