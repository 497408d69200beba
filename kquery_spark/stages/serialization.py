"""Serializes plans in the language-neutral format that ``plan.proto`` describes.

Reading is safe for untrusted bytes. Only classes of the allow-list are instantiated, every field is checked against its
annotation, sizes are bounded, nothing recurses, and every problem raises a SerializationError.
"""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.message import DecodeError

from kquery_spark.errors import SerializationError
from kquery_spark.stages.decoder import OWN_PLANS, Decoder, ReadLimits
from kquery_spark.stages.encoder import Encoder
from kquery_spark.stages.plan_pb2 import PlanMessage
from kquery_spark.stages.references import MAX_BYTES, VERSION
from kquery_spark.stages.serializable import register_serializable, registered_classes

__all__ = ["ReadLimits", "from_bytes", "register_serializable", "registered_classes", "to_bytes"]

T = TypeVar("T")


def to_bytes(value: object) -> bytes:
    """Serialize a plan, an expression, a stage or a source. Raises a SerializationError that names the obstacle."""
    try:
        data = Encoder().message(value).SerializeToString()
    except (UnicodeEncodeError, ValueError) as error:
        raise SerializationError(f"cannot be written: {error}") from None
    if len(data) > MAX_BYTES:
        raise SerializationError(
            f"a plan of {len(data)} bytes is too large to ship; the limit is {MAX_BYTES}"
        )
    return data


def from_bytes(data: bytes, expected: type[T], limits: ReadLimits = OWN_PLANS) -> T:
    """Read a value that ``to_bytes`` wrote. Raises SerializationError if it is invalid or not an ``expected``."""
    if len(data) > MAX_BYTES:
        raise SerializationError(f"{len(data)} bytes are too many for a plan; the limit is {MAX_BYTES}")
    try:
        message = PlanMessage.FromString(data)
    except DecodeError:
        raise SerializationError("these bytes are not a plan") from None
    if message.version != VERSION:
        raise SerializationError(f"plan format {message.version} is unknown; this version reads {VERSION}")
    value = Decoder(message, limits).root(message.root)
    if not isinstance(value, expected):
        raise SerializationError(f"expected a plan of type {expected.__name__}, not {type(value).__name__}")
    return value
