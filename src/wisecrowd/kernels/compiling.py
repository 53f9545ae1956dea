"""Common parts of compiled kernels: compiler options, a vector exponential, prefetching."""

from __future__ import annotations

from typing import Any

import numba as nb
from llvmlite import ir
from numba.extending import intrinsic

# "contract" allows fused multiply-add and no other fast-math option.
compiled = nb.njit(
    cache=True, nogil=True, error_model="numpy", boundscheck=False, fastmath={"contract"}
)
inlined = nb.njit(inline="always", error_model="numpy", fastmath={"contract"})


def _generate_from_bits(typing_context: Any, value: Any) -> Any:
    """Reinterpret an int64 as the float64 with the same bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return nb.float64(nb.int64), generate


_from_bits: Any = intrinsic(_generate_from_bits)


def _generate_to_bits(typing_context: Any, value: Any) -> Any:
    """Reinterpret a float64 as the int64 with the same bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return nb.int64(nb.float64), generate


_to_bits: Any = intrinsic(_generate_to_bits)


def _generate_prefetch_row(typing_context: Any, table: Any, row: Any) -> Any:
    """Prefetch the first two cache lines of a table's row."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        offset = builder.mul(arguments[1], builder.extract_value(array.strides, 0))
        start = builder.gep(builder.bitcast(array.data, byte), [offset])
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        for line in (0, 64):
            address = builder.gep(start, [ir.IntType(64)(line)])
            builder.call(prefetch, [address, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return nb.void(table, nb.int64), generate


prefetch_row: Any = intrinsic(_generate_prefetch_row)


@inlined
def exp_below_zero(x: float) -> float:
    """Return exp(x) for x <= 0, to the last bit or two, in code that the compiler vectorises.

    x = n log 2 + r with abs(r) <= log(2) / 2, and a Taylor polynomial of degree 12 in r. Adding
    1.5 * 2^52 rounds to the integer n and leaves it in the low bits, ready to become the exponent.
    Results below the smallest normal number are 0.
    """
    lowest = -708.0
    y = x if x > lowest else lowest
    shifted = y * 1.4426950408889634 + 6755399441055744.0
    n = shifted - 6755399441055744.0
    r = y - n * 0.693147180369123816490 - n * 1.90821492927058770002e-10
    p = 2.08767569878681e-09
    p = p * r + 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.7557319223985893e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 0.0001984126984126984
    p = p * r + 0.001388888888888889
    p = p * r + 0.008333333333333333
    p = p * r + 0.041666666666666664
    p = p * r + 0.16666666666666666
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    power = p * _from_bits((_to_bits(shifted) + 1023) << 52)
    return power if x > lowest else 0.0
