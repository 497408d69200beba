"""The console script ``kquery-spark``, and what it shares with the ``spark-submit`` jobs."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the console script; its commands are imported only now, so that jobs need not pay for them."""
    from kquery_spark.config.processor import use_fastest_sort

    if sys.argv[1:2] != [
        "run"
    ]:  # run executes the user's job in this process, so its environment must not change
        use_fastest_sort()
    from kquery_spark.cli.commands import main as run_commands

    run_commands()
