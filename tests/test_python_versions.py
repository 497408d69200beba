"""What the oldest supported Python, 3.10, does not know and no type checker sees."""

import ast
import re
from pathlib import Path

import kquery_spark

ROOT = Path(kquery_spark.__file__).parent
NEW_IN_3_11 = ("POSSESSIVE_REPEAT", "ATOMIC_GROUP")


def patterns():
    """The constant patterns that the package gives to ``re``, with where they are."""
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re.") and node.args:
                pattern = node.args[0]
                if isinstance(pattern, ast.Constant):
                    yield f"{path.name}:{node.lineno}", pattern.value


def is_of_3_10(pattern):
    try:
        parser = re._parser  # of Python 3.11 and later
    except AttributeError:
        re.compile(pattern)
        return True
    return not any(name in repr(parser.parse(pattern)) for name in NEW_IN_3_11)


def test_patterns_have_no_possessive_repeats():
    found = dict(patterns())
    assert len(found) > 100
    assert [place for place, pattern in found.items() if not is_of_3_10(pattern)] == []
    assert not is_of_3_10("(?:a|b)*+")
