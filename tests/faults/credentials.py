"""A session with credentials of object stores whose queries run in the engine, and a search for them in all that it leaves.

``credentials.py DIRECTORY engine MASTER`` prints where each credential was seen, as JSON; with ``plain`` only Spark runs queries.
``test_credentials.py`` starts both: credentials may be seen only where Spark itself shows them. With ``local-cluster`` as the
master, it also searches the standard output and error of the executors, which log as the driver does. The workers need them. They
travel in the pickled function of each stage, as Spark's own travel in the Hadoop configuration that it broadcasts.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import CliRunner
from pyspark.sql import SparkSession

import kquery_spark as kq
from kquery_spark import kquery_plan
from kquery_spark.cli.commands import cli
from tests.support.s3 import REGION, SECRET, USER, new_bucket, s3_server

TOKEN = "a-session-token-that-nothing-shows"
AZURE_KEY = base64.b64encode(b"an account key that nothing shows").decode()
SAS_TOKEN = "sv=2024&sig=a-signature-that-nothing-shows"
GOOGLE_KEY = "a-private-key-that-nothing-shows"
CREDENTIALS = {
    "secret key": SECRET, "session token": TOKEN, "account key": AZURE_KEY, "SAS token": SAS_TOKEN, "key file": GOOGLE_KEY,
}  # fmt: skip
_AZURE = "account.dfs.core.windows.net"
_SAS = "other.dfs.core.windows.net"


def forms(secret: str) -> list[bytes]:
    """How a credential may be written: as it is, in UTF-16, in Base64, and as a list of bytes."""
    data = secret.encode()
    numbers = [str(byte) for byte in data[:10]]
    return [data, secret.encode("utf-16-le"), base64.b64encode(data)[:16], ", ".join(numbers).encode(), ",".join(numbers).encode()]  # fmt: skip


class Findings:
    """Which credentials were seen where. A place is counted once."""

    def __init__(self) -> None:
        self.seen: dict[str, set[str]] = {}
        self.searched: dict[str, int] = {}

    def search(self, place: str, data: str | bytes) -> None:
        """Look for all credentials in what a place has."""
        content = data.encode("utf-8", "replace") if isinstance(data, str) else data
        self.searched[place] = self.searched.get(place, 0) + len(content)
        for name, secret in CREDENTIALS.items():
            if any(form in content for form in forms(secret)):
                self.seen.setdefault(place, set()).add(name)


class FileWatch(threading.Thread):
    """Reads every file that appears below directories while queries run."""

    def __init__(self, findings: Findings, *directories: Path) -> None:
        super().__init__(daemon=True)
        self._findings, self._directories = findings, directories
        self._read: dict[Path, float] = {}
        self.ended = threading.Event()

    def run(self) -> None:
        """Look until the end is set, and once more."""
        while not self.ended.wait(0.02):
            self.look()
        self.look()

    def look(self) -> None:
        """Search files that are new or have changed."""
        for directory in self._directories:
            for path in directory.rglob("*"):
                with contextlib.suppress(OSError):
                    if path.is_file() and self._read.get(path) != path.stat().st_mtime:
                        self._read[path] = path.stat().st_mtime
                        self._findings.search(f"files of {directory.name}", path.read_bytes())


_LOGGING = """
rootLogger.level = info
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c: %m%n%ex
logger.spark.name = org.apache.spark
logger.spark.level = debug
"""


def session(directory: Path, endpoint: str, master: str) -> Any:
    """A session that logs all that it does, with credentials in its settings."""
    key_file = directory / "google.json"
    key_file.write_text(json.dumps({"private_key": GOOGLE_KEY, "type": "service_account"}))
    hadoop = {
        "fs.s3a.access.key": USER, "fs.s3a.secret.key": SECRET, "fs.s3a.session.token": TOKEN, "fs.s3a.endpoint": endpoint,
        "fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider",
        "fs.s3a.path.style.access": "true", "fs.s3a.endpoint.region": REGION,
        f"fs.azure.account.key.{_AZURE}": AZURE_KEY, f"fs.azure.sas.fixed.token.{_SAS}": SAS_TOKEN,
        f"fs.azure.account.auth.type.{_SAS}": "SAS",
        "fs.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
        "fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE", "fs.gs.auth.service.account.json.keyfile": str(key_file),
    }  # fmt: skip
    (directory / "log4j2.properties").write_text(_LOGGING)
    (directory / "events").mkdir()
    (directory / "local").mkdir()
    builder = (
        kq.configure(SparkSession.builder)
        .master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.local.dir", str(directory / "local"))
        .config("spark.sql.warehouse.dir", str(directory / "warehouse"))
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={directory}/log4j2.properties")
        .config(
            "spark.executor.extraJavaOptions", f"-Dlog4j2.configurationFile={directory}/log4j2.properties"
        )
        .config("spark.executor.memory", "1g")
        .config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
        .config("spark.eventLog.enabled", "true")
        .config("spark.eventLog.compress", "false")
        .config("spark.eventLog.dir", str(directory / "events"))
        .config("spark.kquery.driverBytes", "0")  # all stages in Spark's workers
    )
    for name, value in hadoop.items():
        builder = builder.config(f"spark.hadoop.{name}", value)
    return builder.getOrCreate()


def executor_directories() -> list[Path]:
    """The working directories of this cluster's executors, which have their standard output and error."""
    running = psutil.Process().children(recursive=True)
    return [
        Path(process.cwd())
        for process in running
        if "org.apache.spark.executor.CoarseGrainedExecutorBackend" in process.cmdline()
    ]


def search_log(findings: Findings, log: str, process: str = "") -> None:
    """Search a log by the class that wrote each line; ``process`` is a prefix of these places."""
    for line in log.splitlines():
        level, _, rest = line.partition(" ")
        is_logged = level in ("TRACE", "DEBUG", "INFO", "WARN", "ERROR")
        place = f"log of {rest.partition(':')[0]}" if is_logged else "standard error"
        findings.search(process + place, line)


def strings_of(frame: Any) -> Iterator[tuple[str, str]]:
    """What a frame says of itself."""
    execution = frame._jdf.queryExecution()
    yield "explain", str(kq.explain(frame)) + kq.explain(frame)._repr_html_()
    yield "plans of Spark", execution.toString()
    yield "plans of Spark as JSON", execution.optimizedPlan().toJSON() + execution.executedPlan().toJSON()
    yield "schema and repr", repr(frame) + str(frame.schema)


def run_queries(spark: Any, findings: Findings, directory: Path) -> None:
    """Queries over a bucket and over local files, by every way into the engine, with events and reports."""
    context = kq.ExecutionContext(spark)
    context.register_parquet("t", "s3a://secret-bucket/t")
    rows = context.sql("SELECT a.k, count(*) AS n, sum(b.v) AS s FROM t a JOIN t b ON a.v = b.v GROUP BY a.k")
    findings.search("explain of a context", rows.explain())
    assert rows.to_arrow().num_rows == 7
    frame = rows.to_spark()
    for place, text in strings_of(frame):
        findings.search(place, text)
    assert len(frame.collect()) == 7
    # rows of this process make the stage so large that it goes to the workers by a file
    context.register_arrow("own", pa.table({"v": list(range(300_000))}))
    assert context.sql("SELECT count(*) AS n FROM t JOIN own ON t.v = own.v").to_arrow()["n"].to_pylist() == [
        40_000
    ]
    local = spark.read.parquet(str(directory / "t.parquet")).groupBy("k").count()
    assert len(local.transform(kquery_plan, when="always", fallback="error").collect()) == 7
    kq.enable(spark)
    try:
        assert len(frame.collect()) == 7 and len(local.collect()) == 7
        local.selectExpr("java_method('java.lang.Math', 'abs', -1)").collect()
    finally:
        kq.disable(spark)


def run_plainly(spark: Any, findings: Findings, directory: Path) -> None:
    """Queries of Spark alone."""
    frame = spark.read.parquet(str(directory / "t.parquet")).groupBy("k").count()
    findings.search("plans of Spark", frame._jdf.queryExecution().toString())
    assert len(frame.collect()) == 7
    assert frame.mapInArrow(lambda batches: batches, frame.schema).count() == 7


def run_failures(spark: Any, findings: Findings) -> None:
    """Errors of paths and of tasks, and stores that do not answer."""
    context = kq.ExecutionContext(spark)
    for path in (
        "s3a://secret-bucket/none",
        "s3a://no-bucket/t",
        f"abfss://c@{_AZURE}/t",
        f"abfss://c@{_SAS}/t",
        "gs://b/t",
    ):
        worker = threading.Thread(target=_fail, args=(findings, f"error of {path}", lambda p=path: context.register_parquet("x", p)), daemon=True)  # fmt: skip
        worker.start()
        worker.join(20)  # a store that does not answer is asked for longer
    context.register_parquet("t", "s3a://secret-bucket/t")
    _fail(findings, "error of a task", lambda: context.sql("SELECT sum(1 / (v - v)) FROM t").to_arrow())
    broken = context.sql("SELECT sum(v) FROM t")
    new_bucket(os.environ["TEST_S3"], "secret-bucket").delete_file("secret-bucket/t/0.parquet")
    _fail(findings, "error of a missing object", broken.to_arrow)


def _fail(findings: Findings, place: str, action: Any) -> None:
    try:
        action()
    except Exception as error:
        findings.search(place, "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error)))


def main() -> None:
    """Run all queries in a directory, then print what was found."""
    directory, findings = Path(sys.argv[1]), Findings()
    directory.joinpath("scratch").mkdir()
    directory.joinpath("logs").mkdir()
    with open(directory / "logs" / "stderr", "w") as log:
        os.dup2(log.fileno(), sys.stderr.fileno())  # of this process, the JVM and its Python workers
    os.environ["TMPDIR"] = str(directory / "scratch")
    os.environ["SPARK_LOCAL_DIRS"] = str(directory / "local")
    table = pa.table({"k": [i % 7 for i in range(20_000)], "v": list(range(20_000))})
    pq.write_table(table, directory / "t.parquet")
    with s3_server() as endpoint, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        os.environ["TEST_S3"] = endpoint
        store = new_bucket(endpoint, "secret-bucket")
        for number in range(2):
            pq.write_table(table, f"secret-bucket/t/{number}.parquet", filesystem=store)
        spark = session(directory, endpoint, sys.argv[3])
        watch = FileWatch(findings, directory / "local", directory / "scratch", directory / "events")
        watch.start()
        if sys.argv[2] == "plain":
            run_plainly(spark, findings, directory)
        else:
            run_queries(spark, findings, directory)
            run_failures(spark, findings)
        executors = executor_directories()
        spark.stop()
        time.sleep(0.5)
        watch.ended.set()
        watch.join()
        findings.search("warnings", "\n".join(str(w.message) for w in caught))
    logs = list((directory / "events").rglob("events_*"))
    page, numbers = directory / "page.html", directory / "numbers.json"
    result = CliRunner().invoke(
        cli, ["qualify", str(directory / "events"), "--html", str(page), "--json", str(numbers)]
    )
    assert result.exit_code == 0, result.output
    findings.search("qualify", result.output + page.read_text() + numbers.read_text())
    search_log(findings, (directory / "logs" / "stderr").read_text(errors="replace"))
    for executor in executors:
        search_log(findings, (executor / "stderr").read_text(errors="replace"), "executor: ")
        findings.search("executor: standard output", (executor / "stdout").read_bytes())
    for log in logs:
        for line in log.read_text().splitlines():
            findings.search(f"event {json.loads(line)['Event'].rpartition('.')[2]}", line)
    print(
        json.dumps({"seen": {k: sorted(v) for k, v in findings.seen.items()}, "searched": findings.searched})
    )


if __name__ == "__main__":
    main()
