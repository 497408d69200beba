"""What a worker reads of the archives on its path, counted in a process of its own."""

from __future__ import annotations

import compileall
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PROGRAM = """
import importlib, os, sys, zipfile, zipimport
from kquery_spark.runtime.spark.archives import read_archives_once

archive = sys.argv[1]

def write(names):
    with zipfile.ZipFile(archive + ".new", "w") as file:
        for name in names:
            file.writestr(name, "")
    os.replace(archive + ".new", archive)

reads = 0

def counted(path, read=zipimport._read_directory):
    global reads
    reads += path == archive
    return read(path)

zipimport._read_directory = counted
modules = [f"outer/part{i}/__init__.py" for i in range(5)]
write(["outer/__init__.py", *modules])
sys.path.insert(0, archive)
for i in range(5):
    importlib.import_module(f"outer.part{i}")
read_archives_once()

def forgotten():
    before = reads
    importlib.invalidate_caches()
    return reads - before

print(*(forgotten() for _ in range(3)))
write(["outer/__init__.py", *modules, "outer/later.py", "beside.py"])
print(*(forgotten() for _ in range(3)))
print(importlib.import_module("outer.later").__name__, importlib.import_module("beside").__name__)
os.remove(archive)
forgotten(), forgotten()
try:
    importlib.import_module("outer.gone")
except ModuleNotFoundError:
    print("no module")
write(["outer/gone.py"])
forgotten()
print(importlib.import_module("outer.gone").__name__)
"""


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="Python reads when it looks for a module")
def test_an_archive_is_read_again_when_its_file_has_changed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "modules.zip")]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines == ["1 0 0", "1 0 0", "outer.later beside", "no module", "outer.gone"]


def spark_distribution(home: Path, worker: str = "number = 1") -> Path:
    """Create a directory like Spark's, with PySpark as an archive and as a directory; returns the archive."""
    modules = {
        "version.py": "__version__ = '4.3.0'",
        "worker.py": worker,
        "__init__.py": "",
        "serializers.py": "",
    }
    package = home / "python" / "pyspark"
    archive = home / "python" / "lib" / "pyspark.zip"
    for directory in (package, archive.parent):
        directory.mkdir(parents=True)
    with zipfile.ZipFile(archive, "w") as file:
        for name, code in modules.items():
            (package / name).write_text(code)
            file.writestr(f"pyspark/{name}", code)
    compileall.compile_dir(package, quiet=2)
    return archive


def imported_pyspark(archive: Path) -> Path:
    """Return the file from which a process that has the archive on its path imports ``pyspark.worker``."""
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "from kquery_spark.runtime.spark.archives import import_unpacked_pyspark;"
        "import_unpacked_pyspark();"
        "import pyspark.worker; print(pyspark.worker.__file__)"
    )
    command = [sys.executable, "-c", program, str(archive)]
    return Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())


def test_pyspark_is_imported_from_the_directory_beside_the_archive(tmp_path: Path) -> None:
    archive = spark_distribution(tmp_path)
    assert imported_pyspark(archive) == tmp_path / "python" / "pyspark" / "worker.py"


def test_pyspark_is_imported_from_the_directory_that_pip_installed() -> None:
    import pyspark

    package = Path(pyspark.__file__).parent
    compileall.compile_file(package / "worker.py", quiet=2)
    assert imported_pyspark(package / "python" / "lib" / "pyspark.zip") == package / "worker.py"


@pytest.mark.parametrize("name", ["version.py", "worker.py"])
def test_another_pyspark_beside_the_archive_is_not_used(tmp_path: Path, name: str) -> None:
    archive = spark_distribution(tmp_path)
    (tmp_path / "python" / "pyspark" / name).write_text("number = 2")
    assert imported_pyspark(archive) == archive / "pyspark" / "worker.py"


def test_a_directory_that_was_never_compiled_is_not_used(tmp_path: Path) -> None:
    archive = spark_distribution(tmp_path)
    for compiled in (tmp_path / "python" / "pyspark" / "__pycache__").iterdir():
        compiled.unlink()
    assert imported_pyspark(archive) == archive / "pyspark" / "worker.py"


def test_a_directory_that_lacks_a_module_is_not_used(tmp_path: Path) -> None:
    archive = spark_distribution(tmp_path, worker="import pyspark.serializers")
    (tmp_path / "python" / "pyspark" / "serializers.py").unlink()
    assert imported_pyspark(archive) == archive / "pyspark" / "worker.py"


def test_a_directory_that_cannot_be_imported_is_not_used(tmp_path: Path) -> None:
    archive = spark_distribution(tmp_path)
    (tmp_path / "python" / "pyspark" / "__init__.py").write_text("import pyspark.version\nraise ValueError")
    assert imported_pyspark(archive) == archive / "pyspark" / "worker.py"
