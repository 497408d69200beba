"""``spark_bridge`` is the only package that touches py4j, JVM classes by name, and private names of PySpark."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pyspark
import pytest

PACKAGE = Path(__file__).parents[2] / "kquery_spark"
SEAM = PACKAGE / "spark_bridge"
_JVM_CLASS = re.compile(r"^(org\.apache\.|java\.|javax\.|scala\.)\w")
_OTHERS = sorted(
    path for path in PACKAGE.rglob("*.py") if SEAM not in path.parents and not path.stem.endswith("_pb2")
)


def _private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


@cache
def _pyspark_names() -> set[str]:
    """Return the private methods and attributes of PySpark's own classes."""
    root = Path(pyspark.__file__).parent
    names = {"_javaAccumulator", "_python_includes"}
    for directory in ("core", "sql"):
        for path in (root / directory).rglob("*.py"):
            if "connect" in path.parts or "tests" in path.parts or "pandas" in path.parts:
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.FunctionDef):
                    names.add(node.name)
                elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                    names.add(node.attr)
    return set(filter(_private, names))


@cache
def _own_names() -> set[str]:
    """Private names that this package itself gives to functions, classes, variables and attributes of ``self``."""
    names = set()
    for path in _OTHERS:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                names.add(node.attr)
    return names


def violations(text: str, own: set[str] | frozenset[str] = frozenset()) -> Iterator[tuple[int, str]]:
    """Line and description of what only the seam may do."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, f"imports {a.name}") for a in node.names if a.name.startswith("py4j"))
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module.startswith("py4j"):
                yield node.lineno, f"imports {node.module}"
            if node.module.startswith("pyspark"):
                hidden = [a.name for a in node.names if _private(a.name)]
                yield from ((node.lineno, f"imports {name} of {node.module}") for name in hidden)
        elif isinstance(node, ast.Attribute) and _private(node.attr):
            of_own_class = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if node.attr not in own or (node.attr in _pyspark_names() and not of_own_class):
                yield node.lineno, f"asks for {node.attr}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _JVM_CLASS.match(node.value):
            yield node.lineno, f"names the JVM class {node.value}"


@pytest.mark.parametrize("path", _OTHERS, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_the_seam_touches_sparks_insides(path: Path) -> None:
    found = [f"line {line}: {what}" for line, what in violations(path.read_text(), _own_names())]
    assert not found, f"{path.relative_to(PACKAGE)} does what belongs into spark_bridge:\n" + "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "import py4j.protocol",
        "from py4j.protocol import Py4JJavaError",
        "from pyspark.sql.types import _create_row",
        "plan = frame._jdf.queryExecution()",
        "includes = context._python_includes",
        "jvm.call('org.apache.spark.sql.SparkSession', 'active')",
        "def count(frame): return frame._jdf.count()",
        "text = frame._show_string(3, True, False)",
    ],
)
def test_the_scan_sees(text: str) -> None:
    assert list(violations(text))
    assert list(violations(text, _own_names() | {"_jdf", "_collect_as_arrow"})), "also with a name of our own"
