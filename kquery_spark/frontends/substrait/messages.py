"""Loads the message classes of the package ``substrait``, and parses plans strictly: unknown fields are an error."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from kquery_spark.errors import SubstraitError

#: A message of Substrait. The package's type information depends on its release, so messages have no static types here.
Message = Any

#: The numbers of two fields of later versions: the URNs of a plan's extensions, and the reference of a declaration to one.
#: They are read although the package does not know them.
PLAN_URNS, DECLARATION_URN = 8, 4
_DECLARATIONS = frozenset({"ExtensionFunction", "ExtensionType", "ExtensionTypeVariation"})


@cache
def proto() -> Any:
    """Return the module with all message classes of Substrait."""
    try:
        import substrait.proto
    except ImportError:
        raise SubstraitError(
            "Substrait plans need the package substrait: pip install 'kquery-spark[substrait]'"
        ) from None
    if "extension_uris" not in substrait.proto.Plan.DESCRIPTOR.fields_by_name:
        raise SubstraitError(
            "this release of the package substrait lacks fields of plans; install the one that kquery-spark needs: "
            "pip install 'kquery-spark[substrait]'"
        )
    return substrait.proto


def parse_plan(data: bytes) -> Message:
    """Parse the bytes of a plan; raises SubstraitError for other bytes, and for fields that the package does not know."""
    plan = proto().Plan()
    try:
        plan.ParseFromString(data)
    except DecodeError:
        raise SubstraitError(
            "these bytes are not a Substrait plan, or the plan is nested more than 100 levels deep"
        ) from None
    _check_no_unknown_fields(plan)
    return plan


def _check_no_unknown_fields(message: Message) -> None:
    """Raise SubstraitError for unknown fields and for enhancements: both may change what the plan means."""
    name = message.DESCRIPTOR.name
    for number, _ in unknown_fields(message):
        is_urn = (name == "Plan" and number == PLAN_URNS) or (
            name in _DECLARATIONS and number == DECLARATION_URN
        )
        if not is_urn:
            raise SubstraitError(
                f"{name} has field {number}, which this release of the package substrait does not know"
            )
    if name == "AdvancedExtension" and message.HasField("enhancement"):
        raise SubstraitError(
            f"the enhancement {message.enhancement.type_url or 'without a name'} is not supported"
        )
    for inner in submessages(message):
        _check_no_unknown_fields(inner)


def unknown_fields(message: Message) -> list[tuple[int, Any]]:
    """Return the number and the value of each field that the package does not know."""
    fields: Any = UnknownFieldSet(message)
    return [(field.field_number, field.data) for field in fields]


def submessages(message: Message) -> Iterator[Message]:
    """Yield the messages in the fields of a message, except for Any messages and the entries of maps."""
    for field, value in message.ListFields():
        if field.message_type is None or field.message_type.full_name == "google.protobuf.Any":
            continue
        if field.message_type.GetOptions().map_entry:
            continue
        try:
            yield from value  # a repeated field
        except TypeError:
            yield value


def kind_of(message: Message, oneof: str, what: str) -> str:
    """Return the name of the field of a oneof that is set.

    Raises SubstraitError if none is, which is also how the kinds of later versions look. what: a name for the message.
    """
    kind = message.WhichOneof(oneof)
    if kind is None:
        raise SubstraitError(
            f"{what} without content, or of a kind that this release of substrait does not know"
        )
    return str(kind)
