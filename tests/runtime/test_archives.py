"""What a worker reads of the archives on its path, counted in a process of its own."""

from __future__ import annotations

import subprocess
import sys
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
