"""Loads, stores and copies of several bytes at any offset, without bounds checks, which numba's arrays do not offer."""

from __future__ import annotations

from typing import Any

import llvmlite.ir as ir
import numba
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def load64(typing: Any, data: Any, at: Any) -> Any:
    """Load the eight bytes from ``at`` on as a little-endian integer."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.gep(array.data, [arguments[1]])
        return builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)

    return numba.types.uint64(data, at), generate


@intrinsic
def store64(typing: Any, data: Any, at: Any, value: Any) -> Any:
    """Store an integer, little-endian, in the eight bytes from ``at`` on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.gep(array.data, [arguments[1]])
        builder.store(arguments[2], builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)

    return numba.types.void(data, at, value), generate


@intrinsic
def load32(typing: Any, data: Any, at: Any) -> Any:
    """Loads the four bytes from ``at`` on as a little-endian integer of 64 bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.gep(array.data, [arguments[1]])
        word = builder.load(builder.bitcast(pointer, ir.IntType(32).as_pointer()), align=1)
        return builder.zext(word, ir.IntType(64))

    return numba.types.uint64(data, at), generate


@intrinsic
def store32(typing: Any, data: Any, at: Any, value: Any) -> Any:
    """Stores the low half of a 64-bit integer, little-endian, in the four bytes from ``at`` on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.gep(array.data, [arguments[1]])
        word = builder.trunc(arguments[2], ir.IntType(32))
        builder.store(word, builder.bitcast(pointer, ir.IntType(32).as_pointer()), align=1)

    return numba.types.void(data, at, value), generate


@intrinsic
def copy_bytes(typing: Any, target: Any, to: Any, source: Any, at: Any, count: Any) -> Any:
    """Copies ``count`` bytes between arrays of bytes that do not overlap, from ``source[at]`` to ``target[to]`` on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target_array = context.make_array(signature.args[0])(context, builder, arguments[0])
        source_array = context.make_array(signature.args[2])(context, builder, arguments[2])
        to_pointer = builder.gep(target_array.data, [arguments[1]])
        from_pointer = builder.gep(source_array.data, [arguments[3]])
        cgutils.raw_memcpy(builder, to_pointer, from_pointer, arguments[4], 1, align=1)
        return context.get_dummy_value()

    return numba.types.void(target, to, source, at, count), generate
