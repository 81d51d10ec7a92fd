"""Functions that read and write big-endian numbers, multiply them, compare, copy and fetch bytes, by machine words.

The plain functions define the behaviour. They are used where numba does not compile, or checks bounds. Elsewhere, one
or two machine instructions replace each, since numba would compile the plain ones to a load and a check per byte.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba.core.cgutils as cgutils
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.base import BaseContext
from numba.core.types.containers import UniTuple
from numba.extending import intrinsic

from ..ascii import APOSTROPHE, BACKSLASH, LINE_FEED, QUOTE, SPACE
from .compiler import CHECKED, inner

BLOCK = 16
"""How many bytes `copy_block` copies, `same_block` compares, `special_marks` and `line_marks` look at."""

LINE = 64
"""The bytes that a processor fetches at once; `prefetch` is a hint that it will need some soon."""


def _plain_read(size: int) -> Callable[..., Any]:
    def read(data: Any, at: int) -> Any:
        value = np.int64(0)
        for offset in range(size):
            value = value << 8 | np.int64(data[at + offset])
        return value

    return inner(read)


def _plain_write_64(target: Any, to: Any, number: Any) -> None:
    for offset in range(8):
        target[to + offset] = number >> 8 * (7 - offset) & 0xFF


def _plain_copy_block(target: Any, to: int, source: Any, at: int) -> None:
    for offset in range(BLOCK):
        target[to + offset] = source[at + offset]


def _plain_same_block(data: Any, at: int, other: Any, start: int) -> bool:
    for offset in range(BLOCK):
        if data[at + offset] != other[start + offset]:
            return False
    return True


def _plain_prefetch(data: Any, at: int) -> None:
    """A hint, which changes nothing."""


def _plain_marks(marked: tuple[int, ...], below: int) -> Callable[..., Any]:
    def marks(data: Any, at: Any) -> Any:
        bits = np.int64(0)
        for offset in range(BLOCK):
            byte = data[at + offset]
            if byte < below or byte in marked:
                bits |= np.int64(1) << np.int64(offset)
        return bits

    return inner(marks)


def _plain_lowest_bit(bits: Any) -> int:
    offset = 0
    while not bits >> offset & 1:
        offset += 1
    return offset


_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


def _plain_product(one: Any, other: Any) -> Any:
    one_high, one_low = one >> _HALF, one & _LOW
    other_high, other_low = other >> _HALF, other & _LOW
    low, first, second = one_low * other_low, one_low * other_high, one_high * other_low
    middle = (low >> _HALF) + (first & _LOW) + (second & _LOW)
    high = one_high * other_high + (first >> _HALF) + (second >> _HALF) + (middle >> _HALF)
    return high, (low & _LOW) | ((middle & _LOW) << _HALF)


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
def _word_write_64(typing_context: Any, target: Any, to: Any, number: Any) -> Any:
    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        word = _pointer(context, builder, signature.args[0], arguments[0], arguments[1], ir.IntType(64))
        stored = builder.store(builder.bswap(arguments[2]), word)
        stored.align = 1
        return context.get_dummy_value()

    return types.none(target, types.int64, types.int64), generate


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


_TO_READ, _INTO_ALL_CACHES, _DATA = 0, 3, 1
"""Arguments of LLVM's prefetch."""


@intrinsic
def _word_prefetch(typing_context: Any, data: Any, at: Any) -> Any:
    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        byte, number = ir.IntType(8), ir.IntType(32)
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        pointer = builder.bitcast(cgutils.gep(builder, data, arguments[1]), byte.as_pointer())  # it may be outside
        kind = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte.as_pointer()], kind)
        builder.call(function, [pointer, number(_TO_READ), number(_INTO_ALL_CACHES), number(_DATA)])
        return context.get_dummy_value()

    return types.none(data, types.int64), generate


def _word_marks(marked: tuple[int, ...], below: int) -> Callable[..., Any]:
    @intrinsic
    def marks(typing_context: Any, data: Any, at: Any) -> Any:
        def generate(context: BaseContext, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
            block = ir.VectorType(ir.IntType(8), BLOCK)
            loaded = builder.load(_pointer(context, builder, signature.args[0], arguments[0], arguments[1], block))
            loaded.align = 1
            found = builder.icmp_unsigned("<", loaded, ir.Constant(block, [below] * BLOCK))
            for byte in marked:
                found = builder.or_(found, builder.icmp_unsigned("==", loaded, ir.Constant(block, [byte] * BLOCK)))
            return builder.zext(builder.bitcast(found, ir.IntType(BLOCK)), ir.IntType(64))

        return types.int64(data, types.int64), generate

    return marks


@intrinsic
def _word_lowest_bit(typing_context: Any, bits: Any) -> Any:
    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.IntType(1)(1))

    return types.int64(types.int64), generate


@intrinsic
def _word_same_block(typing_context: Any, data: Any, at: Any, other: Any, start: Any) -> Any:
    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        block = ir.VectorType(ir.IntType(8), BLOCK)
        loaded = []
        for array in (0, 2):
            pointer = _pointer(context, builder, signature.args[array], arguments[array], arguments[array + 1], block)
            loaded.append(builder.load(pointer))
            loaded[-1].align = 1
        bits = builder.bitcast(builder.icmp_unsigned("!=", *loaded), ir.IntType(BLOCK))
        return builder.icmp_unsigned("==", bits, ir.IntType(BLOCK)(0))

    return types.boolean(data, types.int64, other, types.int64), generate


@intrinsic
def _word_product(typing_context: Any, one: Any, other: Any) -> Any:
    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        wide, word = ir.IntType(128), ir.IntType(64)
        product = builder.mul(*(builder.zext(argument, wide) for argument in arguments))
        halves = [builder.trunc(builder.lshr(product, wide(64)), word), builder.trunc(product, word)]
        return context.make_tuple(builder, signature.return_type, halves)

    return UniTuple(types.uint64, 2)(types.uint64, types.uint64), generate


def _pointer(context: BaseContext, builder: ir.IRBuilder, kind: Any, array: Any, at: Any, word: ir.Type) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(cgutils.gep_inbounds(builder, data, at), word.as_pointer())


if CHECKED:
    read_16, read_32, read_64 = _plain_read(2), _plain_read(4), _plain_read(8)
    write_64 = inner(_plain_write_64)
    copy_block = inner(_plain_copy_block)
    same_block = inner(_plain_same_block)
    prefetch = inner(_plain_prefetch)
    marks_of, lowest_bit = _plain_marks, inner(_plain_lowest_bit)
    product = inner(_plain_product)
else:
    read_16, read_32, read_64 = _word_read(2), _word_read(4), _word_read(8)
    write_64 = _word_write_64
    copy_block = _word_copy_block
    same_block = _word_same_block
    prefetch = _word_prefetch
    marks_of, lowest_bit = _word_marks, _word_lowest_bit
    product = _word_product
special_marks = marks_of((QUOTE, APOSTROPHE, BACKSLASH), below=SPACE)
line_marks = marks_of((LINE_FEED, QUOTE, APOSTROPHE), below=0)
"""They return a bit for each byte of a block that they mark, the lowest for the first."""
