"""``kquery-spark run job.py``: a job runs unchanged, with the engine in its actions."""

import os
import subprocess
import sys

from tests.conftest import worker_environment

JOB = """
import sys
from pyspark.sql import SparkSession
import kquery_spark as kq
from helper import TABLE

events = []
kq.on_query(events.append)

spark = (
    SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
    .config("spark.driver.host", "127.0.0.1").getOrCreate()
)
frame = spark.read.parquet(sys.argv[1] + "/" + TABLE).groupBy("n_regionkey").count()
print("arguments", sys.argv[2:])
print("rows", sorted(map(tuple, frame.collect())), frame.count())
frame.write.parquet(sys.argv[1] + "/out")
print("socket", spark.conf.get("spark.python.unix.domain.socket.enabled"))
print("engine", [(event.action, event.place) for event in events if event.kind == "finished"])
sys.exit(3)
"""


def run(*arguments, **environment):
    command = [sys.executable, "-c", "from kquery_spark.cli import main; main()", "run", *map(str, arguments)]
    env = {**os.environ, **worker_environment(), **environment}
    for name in ("PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "SPARK_HOME"):
        env.pop(name, None)
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)


def test_a_job_runs_unchanged_and_its_exit_code_is_kept(tmp_path, tpch_dir):
    (tmp_path / "nation.parquet").write_bytes((tpch_dir / "nation.parquet").read_bytes())
    (tmp_path / "helper.py").write_text("TABLE = 'nation.parquet'\n")
    (tmp_path / "job.py").write_text(JOB)
    done = run("--when", "always", tmp_path / "job.py", tmp_path, "--flag", "x y")
    assert done.returncode == 3, done.stderr[-2000:]
    assert "arguments ['--flag', 'x y']" in done.stdout
    assert "rows [(0, 5), (1, 5), (2, 5), (3, 5), (4, 5)] 5" in done.stdout
    assert "socket true" in done.stdout
    assert "engine [('collect', 'driver'), ('collect', 'driver'), ('write', 'tasks')]" in done.stdout
    assert list((tmp_path / "out").glob("*.parquet"))


def test_a_missing_job_is_one_clear_line(tmp_path):
    done = run(tmp_path / "none.py")
    assert done.returncode == 3
    assert done.stderr.strip() == f"kquery-spark: error: path does not exist: {tmp_path}/none.py"
