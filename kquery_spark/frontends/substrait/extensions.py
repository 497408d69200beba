"""The functions and type variations that a plan declares; calls and types refer to them by anchors (numbers)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from kquery_spark.errors import SubstraitError
from kquery_spark.frontends.substrait.messages import (
    DECLARATION_URN,
    PLAN_URNS,
    Message,
    proto,
    unknown_fields,
)

#: DataFusion writes this number into declarations without an extension.
_NO_REFERENCE = 2**32 - 1
#: The directory of the standard extensions. Some producers write only a slash instead.
STANDARD_URI = "https://github.com/substrait-io/substrait/blob/main/extensions/"
STANDARD_URN = "extension:io.substrait:"
_STANDARD_PREFIXES = (STANDARD_URI, STANDARD_URN, "/")


@dataclass(frozen=True)
class DeclaredFunction:
    """A function that a plan declares.

    name: without the types of its arguments, which producers may append (``add:i32_i32``). extension: the name of the
    standard extension that defines it, or the URI or URN of another extension; "" if the plan does not name one.
    """

    name: str
    extension: str


class Extensions:
    """The declarations of a plan.

    is_datafusion: whether DataFusion wrote the plan; some of its functions and relations differ from the specification.
    variations: the anchors of the type variations that the plan declares.
    """

    def __init__(self, plan: Message) -> None:
        self.is_datafusion = plan.version.producer == "datafusion"
        uris = {each.extension_uri_anchor: each.uri for each in plan.extension_uris}
        urns = _urns(plan)
        self._functions: dict[int, DeclaredFunction] = {}
        variations = []
        for each in plan.extensions:
            kind = each.WhichOneof("mapping_type")
            if kind == "extension_type_variation":
                variations.append(each.extension_type_variation.type_variation_anchor)
            if kind != "extension_function":
                continue
            function = each.extension_function
            if function.function_anchor in self._functions:
                raise SubstraitError(f"the plan declares function {function.function_anchor} twice")
            extension = _extension_of(function, uris, urns)
            self._functions[function.function_anchor] = DeclaredFunction(
                function.name.partition(":")[0], extension
            )
        self.variations = frozenset(variations)

    def check(self, function: DeclaredFunction, extensions: Sequence[str]) -> None:
        """Raise SubstraitError unless a function is in one of the extensions.

        A function without an extension passes, too, because DataFusion writes functions like that. With no ``extensions``
        (``mapping.DATAFUSION``), the function must be in a plan of DataFusion, without an extension.
        """
        if function.extension and function.extension not in extensions:
            raise SubstraitError(
                f"function {function.name} of the extension {function.extension} is not supported"
            )
        if not extensions and not self.is_datafusion:
            raise SubstraitError(f"function {function.name} is not supported")

    def function(self, anchor: int) -> DeclaredFunction:
        """Return the function that a call refers to; raises SubstraitError if the plan does not declare it."""
        declared = self._functions.get(anchor)
        if declared is None:
            raise SubstraitError(f"a call refers to function {anchor}, which the plan does not declare")
        return declared


def _urns(plan: Message) -> dict[int, str]:
    """Return the URNs of a plan, which replaced URIs in later versions of the specification."""
    urns: dict[int, str] = {}
    for number, data in unknown_fields(plan):
        if number == PLAN_URNS and isinstance(data, bytes):
            # The messages of URNs and URIs have the same fields.
            entry = proto().SimpleExtensionURI()
            try:
                entry.ParseFromString(data)
            except DecodeError:
                raise SubstraitError("the plan declares an extension that is malformed") from None
            urns[entry.extension_uri_anchor] = entry.uri
    return urns


def _extension_of(function: Message, uris: dict[int, str], urns: dict[int, str]) -> str:
    """Return the extension that a declaration refers to (see DeclaredFunction); "" if it refers to none."""
    # Later versions of the specification refer to a URN in a field that the package does not know. It has precedence.
    references = [(data, urns) for number, data in unknown_fields(function) if number == DECLARATION_URN]
    references.append((function.extension_uri_reference, uris))
    for reference, locations in references:
        if reference in locations:
            return _standard_name(locations[reference])
    undeclared = [reference for reference, _ in references if reference not in (0, _NO_REFERENCE)]
    if undeclared:
        raise SubstraitError(
            f"function {function.name} is of extension {undeclared[0]}, which the plan does not declare"
        )
    return ""


def _standard_name(location: str) -> str:
    """Return ``functions_string`` for a URI or URN of that extension; other locations are returned whole."""
    for prefix in _STANDARD_PREFIXES:
        if location.startswith(prefix):
            return location.removeprefix(prefix).removesuffix(".yaml")
    return location
