"""Sixteen 32-bit floats side by side, as one value inside a compiled loop.

What a compiler makes of a plain loop over floats depends on the processor: a sum is cut into as many partial sums as
its registers have places. Here the sixteen are written out, and LLVM spreads them over as many registers as it needs.
So the order of every sum is that of the source, products are fused with sums where the source says so, and the result
is the same on any machine. Values also stay in registers from one turn of a loop to the next, which a plain loop over
arrays that might overlap cannot have.

Nothing here may be called outside a compiled function. Machine code that is kept on disk is looked up by the file of
the kernel alone: whoever changes this file must change the kernels that use it, or empty the `__pycache__` folders.
"""

import operator
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.extending import intrinsic, lower_builtin, register_model, type_callable
from numba.np.arrayobj import make_array

COUNT: Final = 16
_FLOAT, _INT = ir.FloatType(), ir.IntType(32)
_WIDE: Final = ir.VectorType(_FLOAT, COUNT)
_BITS: Final = ir.VectorType(_INT, COUNT)
_FLAGS: Final = ir.VectorType(ir.IntType(1), COUNT)


Lanes: TypeAlias = Any
"""Sixteen floats, in annotations."""


class _Sixteen(types.Type):
    """Their type, as numba knows it."""

    def __init__(self) -> None:
        super().__init__("sixteen floats")


LANES: Final = _Sixteen()


@register_model(_Sixteen)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _WIDE)


def _arithmetic(symbol: Callable[..., Any], instruction: str) -> None:
    """Make an operator of Python that instruction on lanes."""

    @type_callable(symbol)
    def typed(context: Any) -> Any:
        def of(one: Any, other: Any) -> Any:
            return LANES if one is LANES and other is LANES else None

        return of

    @lower_builtin(symbol, _Sixteen, _Sixteen)
    def lowered(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return getattr(builder, instruction)(*values)


for _symbol, _instruction in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _arithmetic(_symbol, _instruction)


def _of_lanes(number: int, build: Callable[..., Any]) -> Any:
    """An intrinsic that takes so many lanes and gives lanes; `build` takes the builder and the values."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return build(builder, *values)

    def one(typing_context: Any, x: Any) -> Any:
        return LANES(LANES), generate

    def two(typing_context: Any, x: Any, y: Any) -> Any:
        return LANES(LANES, LANES), generate

    def three(typing_context: Any, x: Any, y: Any, z: Any) -> Any:
        return LANES(LANES, LANES, LANES), generate

    return intrinsic((one, two, three)[number - 1])


def _call(builder: Any, name: str, *values: Any) -> Any:
    """Of an intrinsic of LLVM that takes and gives lanes."""
    kind = ir.FunctionType(_WIDE, [_WIDE] * len(values))
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"{name}.v{COUNT}f32"), values)


def _constant(value: float) -> Any:
    return ir.Constant(_WIDE, [value] * COUNT)


def _signed(builder: Any, size: Any, sign: Any) -> Any:
    """size · sgn(sign), where sgn is −1, 0 or 1."""
    bits = builder.and_(builder.bitcast(sign, _BITS), ir.Constant(_BITS, [0x80000000] * COUNT))
    turned = builder.bitcast(builder.xor(bits, builder.bitcast(size, _BITS)), _WIDE)
    return builder.select(builder.fcmp_unordered("une", sign, _constant(0.0)), turned, _constant(0.0))


def _two_to_the(builder: Any, power: Any) -> Any:
    """Of whole numbers from −126 to 127, as floats: added to 3 · 2²², they are the last bits of the sum."""
    bits = builder.bitcast(builder.fadd(power, _constant(1.5 * 2**23)), _BITS)
    exponents = builder.shl(bits, ir.Constant(_BITS, [23] * COUNT))
    return builder.bitcast(builder.add(exponents, ir.Constant(_BITS, [127 << 23] * COUNT)), _WIDE)


def _about_inverse_root(builder: Any, x: Any) -> Any:
    """1 / √x to 3.5 %: the exponent halved and turned round, as whole numbers of bits."""
    halves = builder.lshr(builder.bitcast(x, _BITS), ir.Constant(_BITS, [1] * COUNT))
    return builder.bitcast(builder.sub(ir.Constant(_BITS, [0x5F3759DF] * COUNT), halves), _WIDE)


def _kept(builder: Any, x: Any, y: Any, sign: str) -> Any:
    return builder.select(builder.fcmp_unordered(sign, x, y), x, y)


if_positive = _of_lanes(
    3, lambda builder, x, y, z: builder.select(builder.fcmp_ordered(">", x, _constant(0.0)), y, z)
)
"""y where x > 0, elsewhere z."""
fused = _of_lanes(3, lambda builder, x, y, z: _call(builder, "llvm.fma", x, y, z))
"""x · y + z, rounded once."""
size = _of_lanes(1, lambda builder, x: _call(builder, "llvm.fabs", x))
root = _of_lanes(1, lambda builder, x: _call(builder, "llvm.sqrt", x))
whole = _of_lanes(1, lambda builder, x: _call(builder, "llvm.rint", x))
"""The nearest whole numbers."""
signed = _of_lanes(2, _signed)
two_to_the = _of_lanes(1, _two_to_the)
about_inverse_root = _of_lanes(1, _about_inverse_root)
larger = _of_lanes(2, lambda builder, x, y: _kept(builder, x, y, ">"))
"""The larger of both; not a number, if x is not."""
smaller = _of_lanes(2, lambda builder, x, y: _kept(builder, x, y, "<"))


def _load(typing_context: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        place = _place(context, builder, signature.args, values)
        return builder.load(place, align=4)

    return LANES(array, index), generate


def _store(typing_context: Any, array: Any, index: Any, lanes: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.store(values[2], _place(context, builder, signature.args, values), align=4)
        return context.get_dummy_value()

    return types.void(array, index, lanes), generate


def _place(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    array = make_array(kinds[0])(context, builder, values[0])
    parts = cgutils.unpack_tuple(builder, values[1], len(kinds[1]))
    index = [context.cast(builder, part, kind, types.intp) for part, kind in zip(parts, kinds[1], strict=True)]
    pointer = cgutils.get_item_pointer(context, builder, kinds[0], array, index, wraparound=False, boundscheck=False)
    return builder.bitcast(pointer, ir.PointerType(_WIDE))


def _spread(typing_context: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        value = context.cast(builder, values[0], signature.args[0], types.float32)
        first = builder.insert_element(ir.Constant(_WIDE, ir.Undefined), value, ir.Constant(_INT, 0))
        return builder.shuffle_vector(first, ir.Constant(_WIDE, ir.Undefined), ir.Constant(_BITS, [0] * COUNT))

    return LANES(value), generate


def _expect(typing_context: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        place = _place(context, builder, signature.args, values)
        kind = ir.FunctionType(ir.VoidType(), [place.type, _INT, _INT, _INT])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [place, *(ir.Constant(_INT, number) for number in (0, 3, 1))])  # read, keep, data
        return context.get_dummy_value()

    return types.void(array, index), generate


expect: Any = intrinsic(_expect)
"""expect(array, index): begin to bring these sixteen floats near, for a `load` that comes later."""
load: Any = intrinsic(_load)
"""load(array, index): sixteen floats of a contiguous array, from the element with that index, a tuple, on."""
store: Any = intrinsic(_store)
"""store(array, index, lanes): write them there."""
spread: Any = intrinsic(_spread)
"""spread(float): one float in all lanes."""


def _folded(operation: Callable[..., Any]) -> Any:
    """An intrinsic that folds lanes in half until one is left: lane i meets lane i + 8, then i + 4, i + 2, i + 1."""

    def typed(typing_context: Any, lanes: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            rest, width = values[0], COUNT
            while width > 1:
                width //= 2
                none = ir.Constant(rest.type, ir.Undefined)
                low, high = (
                    builder.shuffle_vector(rest, none, ir.Constant(ir.VectorType(_INT, width), list(part)))
                    for part in (range(width), range(width, 2 * width))
                )
                rest = operation(builder, low, high)
            return builder.extract_element(rest, ir.Constant(_INT, 0))

        return types.float32(LANES), generate

    return intrinsic(typed)


total = _folded(lambda builder, x, y: builder.fadd(x, y))
"""Σ of all lanes."""
largest = _folded(lambda builder, x, y: _kept(builder, x, y, ">"))
"""Of all lanes."""
