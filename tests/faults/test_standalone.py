"""A standalone cluster in real processes, a master and two workers, whose Python comes with the job (``--archives``)."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import tarfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyspark
import pytest

from tests.conftest import ROOT, worker_environment

pytestmark = pytest.mark.faults

JOB = Path(__file__).with_name("standalone.py")
SPARK = Path(pyspark.__file__).parent
_START_SECONDS = 60


def environment(directory: Path, *, with_package: bool) -> Path:
    """An archive of an environment with all of this one's packages, by reference; with a copy of ours, or without it."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(directory)], check=True)
    packages = next((directory / "lib").glob("python*/site-packages"))
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "kquery" not in entry.name and not (packages / entry.name).exists():
            (packages / entry.name).symlink_to(entry)
    if with_package:
        shutil.copytree(ROOT / "kquery_spark", packages / "kquery_spark")
    archive = directory.with_suffix(".tar.gz")
    with tarfile.open(archive, "w:gz") as tar:
        for entry in directory.iterdir():
            tar.add(entry, entry.name)
    return archive


def variables() -> dict[str, str]:
    """Surroundings in which nothing leads to this source tree."""
    unset = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH", "SPARK_HOME")
    return {k: v for k, v in {**os.environ, **worker_environment()}.items() if k not in unset}


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a cluster of two workers with one core each."""
    directory = tmp_path_factory.mktemp("standalone")
    port = free_port()
    with ExitStack() as stack:

        def start(name: str, *arguments: str) -> None:
            log = stack.enter_context((directory / f"{name}.log").open("w"))
            process = subprocess.Popen(
                [str(SPARK / "bin" / "spark-class"), *arguments],
                env={**variables(), "SPARK_LOCAL_DIRS": str(directory / name), "SPARK_WORKER_DIR": str(directory / name)},
                cwd=directory, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
            stack.callback(process.wait, 30)
            stack.callback(process.kill)

        deploy = "org.apache.spark.deploy."
        address = f"spark://127.0.0.1:{port}"
        start(
            "master",
            f"{deploy}master.Master",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "--webui-port",
            "0",
        )
        for name in ("one", "two"):
            options = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0"]
            start(name, f"{deploy}worker.Worker", *options, address)
        wait_for(directory / "master.log", "Registering worker", 2)
        yield address


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def wait_for(log: Path, text: str, times: int) -> None:
    end = time.monotonic() + _START_SECONDS
    while log.read_text().count(text) < times:
        assert time.monotonic() < end, log.read_text()[-2000:]
        time.sleep(0.2)


def zipped(directory: Path) -> Path:
    """The package as a zip file."""
    shutil.copytree(
        ROOT / "kquery_spark", directory / "kquery_spark", ignore=shutil.ignore_patterns("__pycache__")
    )
    return Path(shutil.make_archive(str(directory.with_name("kquery_spark")), "zip", directory))


def submit(
    master: str, archive: Path, tmp_path: Path, *options: str, driver_path: Path = ROOT
) -> dict[str, object]:
    """What the job prints, run by ``spark-submit`` with this process's Python as driver.

    driver_path: where the driver finds the package.
    """
    job = subprocess.run(
        [
            str(SPARK / "bin" / "spark-submit"), "--master", master, "--archives", f"{archive}#env",
            "--conf", "spark.executor.memory=512m", "--conf", "spark.ui.enabled=false",
            "--conf", "spark.driver.host=127.0.0.1", *options, str(JOB), str(tmp_path),
        ],
        env={
            **variables(), "PYTHONPATH": str(driver_path), "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYSPARK_PYTHON": "./env/bin/python",
        },
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert job.returncode == 0, job.stderr[-3000:]
    printed: dict[str, object] = json.loads(job.stdout.strip().splitlines()[-1])
    return printed


def test_an_environment_that_is_shipped_runs_the_engine(master: str, tmp_path: Path) -> None:
    said = submit(master, environment(tmp_path / "packed", with_package=True), tmp_path)
    assert said["warnings"] == []
    assert said["accelerated"] is True
    assert said["coverage"] == 1.0
    assert said["engine"] == said["spark"]
    assert str(said["python"]).endswith("/env/bin/python")


def test_an_environment_without_the_package_leaves_queries_to_spark(master: str, tmp_path: Path) -> None:
    said = submit(master, environment(tmp_path / "bare", with_package=False), tmp_path)
    (warning,) = said["warnings"]  # type: ignore[misc]
    assert "cannot import what this process" in warning and "/env/bin/python" in warning
    assert said["engine"] == said["spark"]


def test_a_zip_of_the_package_runs_the_engine(master: str, tmp_path: Path) -> None:
    package = zipped(tmp_path / "source")
    archive = environment(tmp_path / "zip", with_package=False)
    said = submit(master, archive, tmp_path, "--py-files", str(package), driver_path=package)
    assert said["warnings"] == []
    assert said["accelerated"] is True
    assert said["engine"] == said["spark"]
