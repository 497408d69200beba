"""The image of ``examples/docker``: what its file names is there, and where Docker runs, a query in it is answered as by Spark."""

from __future__ import annotations

import re
import subprocess

import pytest

from kquery_spark.spark_bridge.session.versions import SUPPORTED, minor_version
from tests.conftest import ROOT

DOCKERFILE = ROOT / "examples" / "docker" / "Dockerfile"
IMAGE = "kquery-spark-test"
QUERY = "SELECT id % 7 AS k, count(*) AS n FROM range(1000) GROUP BY id % 7"


def test_the_base_is_a_supported_release_and_what_is_copied_exists() -> None:
    text = DOCKERFILE.read_text()
    base = re.search(r"^ARG BASE=apache/spark:([\d.]+)-python3$", text, re.MULTILINE)
    assert base is not None
    release = minor_version(base[1])
    assert release is not None
    assert ".".join(map(str, release)) in SUPPORTED
    copied = [name for words in re.findall(r"^COPY (.*) \S+$", text, re.MULTILINE) for name in words.split()]
    assert copied
    assert [name for name in copied if not (ROOT / name).exists()] == []


@pytest.fixture(scope="module")
def image() -> str:
    if subprocess.run(["docker", "info"], capture_output=True, check=False).returncode:
        pytest.skip("Docker does not run here")
    subprocess.run(["docker", "build", "-f", str(DOCKERFILE), "-t", IMAGE, str(ROOT)], check=True)
    return IMAGE


@pytest.mark.image
@pytest.mark.parametrize("master", ["local[2]", "local-cluster[2,1,1024]"])
def test_a_query_in_the_image_is_answered_as_by_spark(image: str, master: str) -> None:
    """In tasks; in the second case executors are processes of their own, with the workers that the image gives them."""
    variables = (f"MASTER={master}", "PYSPARK_SUBMIT_ARGS=--conf spark.kquery.driverBytes=0 pyspark-shell")
    given = [word for variable in variables for word in ("-e", variable)]
    command = ["docker", "run", "--rm", *given, image, "kquery-spark", "verify", QUERY]
    run = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("same as Spark SQL: yes")
