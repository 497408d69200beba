"""``kq.verify`` is a function for its users, whatever was imported before it."""

import subprocess
import sys


def test_kq_verify_can_be_called_after_its_directory_was_imported():
    code = "import kquery_spark.verify.compare, kquery_spark as kq; kq.verify('no frame')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "not callable" not in run.stderr
    assert "KQueryError: verify takes a Spark DataFrame, not str" in run.stderr
