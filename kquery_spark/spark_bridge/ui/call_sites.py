"""Makes Spark's UI name stages and queries by the line of the user's code if the engine calls PySpark's actions.

PySpark describes a job by the frame that called the first function of PySpark: ``collect at /jobs/daily.py:27``. If the
engine calls PySpark, that frame is one of this package. So the function that finds the frame is replaced by one that skips
the frames of this package. As without the engine, PySpark itself sets and removes the thread's local properties.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from types import FrameType

import py4j
import pyspark
from pyspark import traceback_utils

from kquery_spark import errors

_PACKAGE = os.path.dirname(str(errors.__file__)) + os.sep
_CALLED = (_PACKAGE, os.path.dirname(str(pyspark.__file__)) + os.sep)
_LIBRARIES = (*_CALLED, os.path.dirname(str(py4j.__file__)) + os.sep)
_STANDARD_LIBRARY = sysconfig.get_paths()["stdlib"] + os.sep
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_NOTEBOOK = f"{os.sep}IPython{os.sep}"
_find_in_pyspark = traceback_utils.first_spark_call


def name_by_user_code() -> None:
    """Let PySpark name jobs by the user's line if this package is between that line and PySpark."""
    traceback_utils.first_spark_call = _first_spark_call


def _first_spark_call() -> traceback_utils.CallSite | None:
    found: traceback_utils.CallSite | None = _find_in_pyspark()  # type: ignore[no-untyped-call]
    return found if found is None or not _is_called_by_package() else user_call_site() or found


def _is_called_by_package() -> bool:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(_PACKAGE) and name != __file__:
            return True
        frame = frame.f_back
    return False


def user_call_site() -> traceback_utils.CallSite | None:
    """Return the innermost line of the user's code, and the function of PySpark or of this package that it called.

    None if the stack has no such line, for example in a thread that this package started.
    """
    action = ""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(_CALLED):
            action = code.co_name
        elif not _is_library(code.co_filename):
            return traceback_utils.CallSite(action, code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return None


def _is_library(file: str) -> bool:
    """Return whether a file belongs to PySpark, py4j, IPython, Python or this package. Other packages are user code."""
    if file.startswith(_LIBRARIES) or _NOTEBOOK in file or file.startswith("<frozen "):
        return True
    return file.startswith(_STANDARD_LIBRARY) and not any(part in file for part in _INSTALLED)
