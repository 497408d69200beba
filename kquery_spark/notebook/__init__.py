"""The extension for IPython and Jupyter: ``%load_ext kquery_spark`` adds the magics ``%%kquery`` and ``%kquery``.

IPython is optional. It is imported only when IPython itself calls these functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Add ``%%kquery`` and ``%kquery`` to a shell; ``%load_ext kquery_spark`` calls it."""
    from kquery_spark.notebook.magics import register

    register(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Remove the magics; ``%unload_ext kquery_spark`` calls it."""
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("kquery", None)
