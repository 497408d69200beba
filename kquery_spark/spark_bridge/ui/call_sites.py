"""Makes Spark's UI name stages and queries by the line of the user's code if the engine calls PySpark's actions.

PySpark describes a job by the frame that called the first function of PySpark: ``collect at /jobs/daily.py:27``. If the
engine calls PySpark, that frame is one of this package. So the function that finds the frame is replaced by one that skips
the frames of this package. If no frame is one of this package, it returns what PySpark finds, so it can stay in place for
the rest of the process. As without the engine, PySpark itself sets and removes the thread's local properties.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import sysconfig
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

import py4j
import pyspark

from kquery_spark import errors

_PACKAGE = os.path.dirname(str(errors.__file__)) + os.sep
_CALLED = (_PACKAGE, os.path.dirname(str(pyspark.__file__)) + os.sep)
_LIBRARIES = (*_CALLED, os.path.dirname(str(py4j.__file__)) + os.sep)
_STANDARD_LIBRARY = sysconfig.get_paths()["stdlib"] + os.sep
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_NOTEBOOK = f"{os.sep}IPython{os.sep}"
_MODULE, _FUNCTION = "pyspark.traceback_utils", "first_spark_call"
_MARK = "_names_by_user_code"


class CallSite(NamedTuple):
    """A call of a Spark action, with the fields of PySpark's class of this name."""

    function: str
    file: str
    linenum: int


def name_by_user_code() -> None:
    """Let PySpark name jobs by the user's line if this package is between that line and PySpark.

    Does nothing if PySpark's function is already replaced, for example by an earlier import of this module, or if PySpark
    does not have it: it is an internal function, and names in the UI are not worth an error.
    """
    module = sys.modules.get(_MODULE)  # PySpark imports it before it creates a session
    find = getattr(module, _FUNCTION, None)
    if find is not None and not hasattr(find, _MARK):
        setattr(module, _FUNCTION, _skipping_package(find))


def _skipping_package(find: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(find)
    def first_spark_call(*args: Any, **kwargs: Any) -> Any:
        found = find(*args, **kwargs)
        with contextlib.suppress(Exception):  # a problem with names in the UI must not make an action fail
            call_site = user_call_site() if found is not None and _is_called_by_package() else None
            if call_site is not None:
                return found._replace(**call_site._asdict())
        return found

    setattr(first_spark_call, _MARK, True)
    return first_spark_call


def _is_called_by_package() -> bool:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(_PACKAGE) and name != __file__:
            return True
        frame = frame.f_back
    return False


def user_call_site() -> CallSite | None:
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
            return CallSite(action, code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return None


def _is_library(file: str) -> bool:
    """Return whether a file belongs to PySpark, py4j, IPython, Python or this package. Other packages are user code."""
    if file.startswith(_LIBRARIES) or _NOTEBOOK in file or file.startswith("<frozen "):
        return True
    return file.startswith(_STANDARD_LIBRARY) and not any(part in file for part in _INSTALLED)
