"""Unaligned loads and stores of eight bytes, which numba's arrays do not offer."""

from __future__ import annotations

from typing import Any

import llvmlite.ir as ir
import numba
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
