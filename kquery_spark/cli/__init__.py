"""The console script ``kquery-spark``, and the code that it shares with the ``spark-submit`` jobs."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the console script. Its commands are imported only now, because the jobs do not need them."""
    from kquery_spark.config.processor import use_fastest_sort

    # ``kquery-spark run`` executes the user's job in this process, so its environment must not change.
    if sys.argv[1:2] != ["run"]:
        use_fastest_sort()
    from kquery_spark.cli.commands import main as run_commands

    run_commands()
