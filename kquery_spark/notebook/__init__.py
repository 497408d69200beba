"""IPython and Jupyter: ``%load_ext kquery_spark`` adds the magics ``%%kquery`` and ``%kquery``.

IPython is optional: only the functions here import it, and IPython is what calls them.
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
    """Take the magics away; ``%unload_ext kquery_spark`` calls it."""
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("kquery", None)
