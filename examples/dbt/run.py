"""A dbt project on Spark: the engine computes the rows of its tables.

    pip install kquery-spark dbt-core 'dbt-spark[session]'
    python examples/dbt/run.py data/trips

dbt builds a table by ``CREATE TABLE ... AS SELECT`` and fills an incremental one by ``INSERT``, both through ``spark.sql``
of the session in its process. After ``kq.enable`` the engine computes their rows. Views have no rows. ``MERGE`` falls
back to Spark.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession

import kquery_spark as kq

PROJECT = Path(__file__).parent


def build(trips: str, target: str = str(PROJECT / "target")) -> bool:
    """Run the project over a directory of trips in the running session. True if dbt built all models.

    target: the directory for compiled SQL and logs.
    """
    directories = ["--project-dir", str(PROJECT), "--profiles-dir", str(PROJECT)]
    directories += ["--target-path", target, "--log-path", target]
    variables = json.dumps({"trips": os.path.abspath(trips)})
    return dbtRunner().invoke(["run", *directories, "--vars", variables]).success


if __name__ == "__main__":
    session = kq.configure(SparkSession.builder).enableHiveSupport().getOrCreate()
    kq.enable(session)
    if not build(sys.argv[1]):
        sys.exit(1)
    session.table("kquery_example.fares").show()
