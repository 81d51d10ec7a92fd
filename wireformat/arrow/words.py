"""Reading big-endian numbers, comparing bytes and copying short texts a machine word at a time.

The plain functions say what is meant. They run uncompiled, and compiled where bounds are to be checked; elsewhere each
is replaced by one or two machine instructions, for numba makes of the plain ones a load and a check for every byte.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numba.core.cgutils as cgutils
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.base import BaseContext
from numba.extending import intrinsic

from .compiled import inner

BLOCK = 16
"""Bytes that `copy_block` copies."""


def _plain_read(size: int) -> Callable[..., Any]:
    def read(data: Any, at: int) -> Any:
        value = np.int64(0)
        for place in range(size):
            value = value << 8 | np.int64(data[at + place])
        return value

    return inner(read)


def _plain_copy_block(target: Any, to: int, source: Any, at: int) -> None:
    for place in range(BLOCK):
        target[to + place] = source[at + place]


def _plain_same_bytes(data: Any, at: int, other: Any, start: int, length: int) -> bool:
    for place in range(length):
        if data[at + place] != other[start + place]:
            return False
    return True


def _word_read(size: int) -> Callable[..., Any]:
    @intrinsic
    def read(typing_context: Any, data: Any, at: Any) -> Any:
        def generate(context: BaseContext, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
            word = ir.IntType(8 * size)
            loaded = builder.load(_pointer(context, builder, signature.args[0], arguments[0], arguments[1], word))
            loaded.align = 1
            number = builder.bswap(loaded)
            return number if size == 8 else builder.zext(number, ir.IntType(64))

        return types.int64(data, types.int64), generate

    return read


@intrinsic
def _word_copy_block(typing_context: Any, target: Any, to: Any, source: Any, at: Any) -> Any:
    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        block = ir.VectorType(ir.IntType(8), BLOCK)
        loaded = builder.load(_pointer(context, builder, signature.args[2], arguments[2], arguments[3], block))
        loaded.align = 1
        stored = builder.store(loaded, _pointer(context, builder, signature.args[0], arguments[0], arguments[1], block))
        stored.align = 1
        return context.get_dummy_value()

    return types.none(target, types.int64, source, types.int64), generate


@intrinsic
def _word_same_bytes(typing_context: Any, data: Any, at: Any, other: Any, start: Any, length: Any) -> Any:
    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        byte = ir.IntType(8)
        places = [
            _pointer(context, builder, signature.args[place], arguments[place], arguments[place + 1], byte)
            for place in (0, 2)
        ]
        kind = ir.FunctionType(ir.IntType(32), [byte.as_pointer(), byte.as_pointer(), ir.IntType(64)])
        compare = cgutils.get_or_insert_function(builder.module, kind, "memcmp")
        return builder.icmp_signed("==", builder.call(compare, [*places, arguments[4]]), ir.IntType(32)(0))

    return types.boolean(data, types.int64, other, types.int64, types.int64), generate


def _pointer(context: BaseContext, builder: ir.IRBuilder, kind: Any, array: Any, at: Any, word: ir.Type) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(cgutils.gep_inbounds(builder, data, at), word.as_pointer())


if numba.config.DISABLE_JIT or numba.config.BOUNDSCHECK:
    read_16, read_32, read_64 = _plain_read(2), _plain_read(4), _plain_read(8)
    copy_block = inner(_plain_copy_block)
    same_bytes = inner(_plain_same_bytes)
else:
    read_16, read_32, read_64 = _word_read(2), _word_read(4), _word_read(8)
    copy_block = _word_copy_block
    same_bytes = _word_same_bytes
