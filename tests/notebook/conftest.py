"""A shell of IPython in this process, over the session of the run."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import uncompiled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def shell(spark: SparkSession) -> Iterator[Any]:
    """Has the extension loaded; keeps no history, and does not take the place of ``__main__``."""
    pytest.importorskip("IPython")
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell(config=config, user_module=ModuleType("kquery_notebook"))
    shell.run_line_magic("load_ext", "kquery_spark")
    with uncompiled(spark):
        yield shell
