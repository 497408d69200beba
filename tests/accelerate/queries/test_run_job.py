"""``kquery-spark run job.py``: a job runs unchanged, with the engine in its actions."""

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from tests.conftest import SPARK_VERSION, worker_environment

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
    env = {**os.environ, **worker_environment()}
    for name in ("PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "SPARK_HOME", "SPARK_CONF_DIR"):
        env.pop(name, None)
    env |= environment
    return subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL
    )


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


ERRORS = {
    "key": "def f():\n    return {}['k']\n\nf()\n",
    "file": "open('/no/such/file')\n",
    "end of input": "input()\n",
    "failure": "class Failure(Exception):\n    code = 6\n\nraise Failure('mine') from KeyError('cause')\n",
    "syntax": "x = 1\nx = = 2\n",
    "hook": "import sys\nsys.excepthook = lambda *error: print('hook', error[1], file=sys.stderr)\nraise ValueError('v')\n",
}


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_of_the_job_looks_as_it_does_in_python(tmp_path, error):
    (tmp_path / "job.py").write_text(ERRORS[error])
    python = subprocess.run(
        [sys.executable, tmp_path / "job.py"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )  # fmt: skip
    done = run(tmp_path / "job.py")
    assert python.stderr and python.returncode == 1
    assert (done.stderr, done.returncode) == (python.stderr, 1)


QUERY_ERROR = """
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
    .config("spark.driver.host", "127.0.0.1").getOrCreate()
)
spark.sql("SELECT no_such_column").collect()
"""


def test_an_error_of_a_query_has_the_traceback_and_the_log_of_pyspark(tmp_path):
    (tmp_path / "job.py").write_text(QUERY_ERROR)
    done = run(tmp_path / "job.py")
    assert done.returncode == 1
    assert f'File "{tmp_path}/job.py", line 8, in <module>' in done.stderr
    assert "pyspark.errors.exceptions.captured.AnalysisException: [UNRESOLVED_COLUMN" in done.stderr
    assert "kquery-spark: error" not in done.stderr
    if SPARK_VERSION >= (4,):
        assert '"logger": "SQLQueryContextLogger"' in done.stderr


@pytest.mark.parametrize("ending", ["raise KeyboardInterrupt", "import sys; sys.exit('a reason')"])
def test_ctrl_c_and_sys_exit_keep_their_codes(tmp_path, ending):
    (tmp_path / "job.py").write_text(ending + "\n")
    done = run(tmp_path / "job.py")
    codes = {"raise KeyboardInterrupt": (130, "kquery-spark: error: interrupted")}
    assert (done.returncode, done.stderr.strip()) == codes.get(ending, (1, "a reason"))


SETTINGS = """
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
    .config("spark.driver.host", "127.0.0.1").getOrCreate()
)
for name in ("python.worker.reuse", "sql.execution.arrow.maxBytesPerBatch", "python.unix.domain.socket.enabled"):
    print(spark.sparkContext.getConf().get(f"spark.{name}"))
"""


@pytest.mark.parametrize("place", ["SPARK_CONF_DIR", "SPARK_HOME"])
def test_spark_defaults_override_the_recommended_settings(tmp_path, place):
    """Only recommended settings that spark-defaults.conf does not set are added."""
    (tmp_path / "job.py").write_text(SETTINGS)
    conf, environment = tmp_path, {"SPARK_CONF_DIR": str(tmp_path)}
    if place == "SPARK_HOME":
        home, conf = tmp_path / "home", tmp_path / "home" / "conf"
        conf.mkdir(parents=True)
        for entry in Path(pyspark.__file__).parent.iterdir():
            if entry.name != "conf":
                (home / entry.name).symlink_to(entry)
        environment = {"SPARK_HOME": str(home)}
    (conf / "spark-defaults.conf").write_text(
        "# spark.python.unix.domain.socket.enabled false\n"
        "  spark.python.worker.reuse   false\nspark.sql.execution.arrow.maxBytesPerBatch=1m\n"
    )
    done = run(tmp_path / "job.py", **environment)
    assert done.stdout.split() == ["false", "1m", "true"], done.stderr[-2000:]
