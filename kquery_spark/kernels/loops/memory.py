"""Loads, stores and copies of several bytes at any offset of a byte array, which numba does not offer.

Each function is an LLVM intrinsic: it computes the address, casts the pointer, and loads or stores without alignment and
WITHOUT BOUNDS CHECKS. Every caller must ensure beforehand that all bytes exist. For example, ``load64(data, 3)`` reads the
bytes 3 to 10, so ``data`` needs at least 11. A wrong offset reads foreign memory or ends the process.

Byte order is that of the machine; the callers assume a little-endian one.
"""

from __future__ import annotations

from typing import Any

import llvmlite.ir as ir
import numba
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def load64(typing: Any, data: Any, at: Any) -> Any:
    """Load the eight bytes from ``at`` on as an unsigned integer."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.gep(array.data, [arguments[1]])
        return builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)

    return numba.types.uint64(data, at), generate


@intrinsic
def load64_big_endian(typing: Any, data: Any, at: Any) -> Any:
    """Load the eight bytes from ``at`` on as a signed integer whose most significant byte comes first."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.gep(array.data, [arguments[1]])
        return builder.bswap(builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1))

    return numba.types.int64(data, at), generate


@intrinsic
def store64(typing: Any, data: Any, at: Any, value: Any) -> Any:
    """Store a 64-bit integer in the eight bytes from ``at`` on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.gep(array.data, [arguments[1]])
        builder.store(arguments[2], builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)

    return numba.types.void(data, at, value), generate


@intrinsic
def load32(typing: Any, data: Any, at: Any) -> Any:
    """Load the four bytes from ``at`` on as an unsigned integer, extended to 64 bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.gep(array.data, [arguments[1]])
        word = builder.load(builder.bitcast(pointer, ir.IntType(32).as_pointer()), align=1)
        return builder.zext(word, ir.IntType(64))

    return numba.types.uint64(data, at), generate


@intrinsic
def store32(typing: Any, data: Any, at: Any, value: Any) -> Any:
    """Store the low half of a 64-bit integer in the four bytes from ``at`` on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.gep(array.data, [arguments[1]])
        word = builder.trunc(arguments[2], ir.IntType(32))
        builder.store(word, builder.bitcast(pointer, ir.IntType(32).as_pointer()), align=1)

    return numba.types.void(data, at, value), generate


@intrinsic
def copy_bytes(typing: Any, target: Any, to: Any, source: Any, at: Any, count: Any) -> Any:
    """Copy ``count`` bytes from ``source[at]`` on to ``target[to]`` on; the arrays must not overlap."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target_array = context.make_array(signature.args[0])(context, builder, arguments[0])
        source_array = context.make_array(signature.args[2])(context, builder, arguments[2])
        to_pointer = builder.gep(target_array.data, [arguments[1]])
        from_pointer = builder.gep(source_array.data, [arguments[3]])
        cgutils.raw_memcpy(builder, to_pointer, from_pointer, arguments[4], 1, align=1)
        return context.get_dummy_value()

    return numba.types.void(target, to, source, at, count), generate
