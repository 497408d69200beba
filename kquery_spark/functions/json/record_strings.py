"""FROM_JSON and FROM_CSV: strings that hold one record each, read by the decoders of the file formats."""

from __future__ import annotations

from collections.abc import Sequence

from kquery_spark.functions.call_form import CallForm
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.registry import (
    ALWAYS_RAISES,
    CallContext,
    CatalystParameters,
    Function,
    Kernel,
    Nullability,
    VersionChange,
    given_schema,
    register,
    register_internal,
)
from kquery_spark.types.vector import Data, Vector


class RecordDecoder:
    """A kernel that a file format provides.

    The decoders of file formats are in ``sources``, which is above ``functions`` because it uses casts. Therefore the layer
    above provides them (``kquery_spark.logical.record_decoders``).
    """

    def __init__(self) -> None:
        self._kernel: Kernel | None = None

    def provide(self, kernel: Kernel) -> None:
        """Set the kernel."""
        self._kernel = kernel

    def __call__(self, args: Sequence[Vector], context: CallContext) -> Data:
        """Decode the strings."""
        assert self._kernel is not None, "kquery_spark.logical provides the kernel, but is not imported"
        return self._kernel(args, context)


FROM_JSON = RecordDecoder()
FROM_CSV = RecordDecoder()

register(
    Function(
        "from_json",
        FROM_JSON,
        given_schema,
        nullable=Nullability.OTHER_REASONS,
        calls=CallForm(shape=(2, "from_json({0})")),
        parameters=CatalystParameters(ignored=("schema", "options", "variantAllowDuplicateKeys")),
        changes=(VersionChange("rewrites numbers and objects that are read as strings", since=(4, 0)),),
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
)
register_internal(
    Function(
        "from_csv",
        FROM_CSV,
        given_schema,
        arity=(2, 2),
        nullable=Nullability.FIRST_ARGUMENT,
        raises=ALWAYS_RAISES,
        safe_for=lambda _, values, mode: '"FAILFAST"' not in str(values[1]).upper(),
        parameters=CatalystParameters(ignored=("schema", "options", "requiredSchema")),
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
)
