"""Provides the kernels of FROM_JSON and FROM_CSV, which read each string with the decoder of a file format.

The package ``functions`` cannot import the file formats, because their decoders import its casts. ``logical`` is the
lowest layer above both, and every process that has a plan imports it. So it sets these kernels when it is imported.
Each kernel imports its decoder on the first call, because few queries need it.
"""

from __future__ import annotations

from collections.abc import Sequence

from kquery_spark.functions.json.record_strings import FROM_CSV, FROM_JSON
from kquery_spark.functions.registry import CallContext
from kquery_spark.types.vector import Data, Vector


def _from_json(args: Sequence[Vector], context: CallContext) -> Data:
    from kquery_spark.sources.json.structs import from_json

    return from_json(args, context)


def _from_csv(args: Sequence[Vector], context: CallContext) -> Data:
    from kquery_spark.sources.csv.structs import from_csv

    return from_csv(args, context)


def provide_record_decoders() -> None:
    """Set the kernels. ``kquery_spark.logical`` calls this when it is imported."""
    FROM_JSON.provide(_from_json)
    FROM_CSV.provide(_from_csv)
