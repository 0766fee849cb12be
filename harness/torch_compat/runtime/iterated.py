"""Memory layout of results: elementwise operators follow their operands, copies follow their source, all others are row-major.

torch's elementwise operators order dimensions by the strides of their operands: for each pair of dimensions, the first operand with
different strides decides, and the result is dense in this order. NumPy makes a result row-major as soon as one operand is row-major.

Up to 1.6 most operators resize an empty tensor for their result, which is row-major.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.arrays import contiguous_strides
from torch_compat.releases.release import Release
from torch_compat.runtime import dtypes
from torch_compat.runtime.limits import meter
from torch_compat.runtime.tensor import Tensor, owner, strided

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["arranging", "order", "strides_of", "suggests_channels_last"]

Shape = tuple[int, ...]
Operand = tuple[Shape, Shape]
"""The shape and the strides of a tensor, in elements."""
Arrange = Any  # a function of a result, the positional arguments and the keyword arguments of its operator

FIRST_DECIDES = Release("1.7.0")
"""As of this release, equal strides do not determine an order, and dimensions of size one are considered."""
INFERS = Release("1.8.0")
CASTS_INFER = Release("1.12.0")
"""As of this release, tensors created like a noncontiguous tensor keep its order (copies to another dtype: as of 1.12); in earlier releases, they are row-major."""

POWERS = Release("1.9.0")
"""As of this release, powers with a number as the exponent are iterated, and powers of a number are row-major; in earlier releases, both have the layout of the tensor."""
NUMBERS = frozenset({int, float, bool, complex})
MASKS = (np.dtype(np.bool_), np.dtype(np.uint8))
PICTURES = 4
"""The number of dimensions of a batch of images."""
PICTURES_ORDER = (1, 3, 2, 0)
"""Their dimensions in the channels-last memory format, fastest first."""

ITERATED, WRAPPED, SWAPPED, OUT, ROWS, LIKE, COPY, POWER, LAST, TWICE, PICTURE, PARTS, INDEXED = range(13)
"""Modes, in order: like all operands; the same where numbers are operands as well, which are not tensors of the same shape; the second
operand before the first; into an empty tensor; row-major; like the first operand; like the first operand if it has no holes; as powers;
like the second operand and a number; like all operands, applied twice; row-major, or channels-last if the first operand is; like two
equal parts of the first operand; like the indexed tensor and the indices that are iterated over."""


def _table() -> dict[str, tuple[tuple[Release, int], ...]]:
    results: dict[str, tuple[tuple[Release, int], ...]] = {}
    for names, *eras in (
        (
            (
                "neg negative abs absolute exp exp2 expm1 sigmoid tanh sqrt rsqrt sign sgn floor ceil round trunc fix frac clamp clamp_min clamp_max clip "
                "erf erfc erfinv log log2 log10 log1p reciprocal sin cos tan asin acos atan arcsin arccos arctan sinh cosh asinh acosh atanh isnan "
                "logical_not bitwise_not lgamma digamma logit angle i0 sinc signbit maximum minimum max min hypot xlogy copysign heaviside "
                "atan2 arctan2 lerp addcmul addcdiv logaddexp logaddexp2 logical_and logical_or logical_xor nextafter isposinf isneginf isclose"
            ),
            ("1.6.0", OUT),
            ("1.7.0", ITERATED),
        ),
        (
            (
                "eq ne lt le gt ge greater less not_equal greater_equal less_equal bitwise_and bitwise_or bitwise_xor __and__ __or__ __xor__ "
                "__lshift__ __rshift__ bitwise_left_shift bitwise_right_shift"
            ),
            ("1.6.0", OUT),
            ("1.7.0", WRAPPED),
        ),
        ("fmod", ("1.6.0", OUT), ("1.7.0", ITERATED), ("1.8.0", WRAPPED)),
        ("mul multiply add subtract sub div divide true_divide remainder floor_divide", ("1.6.0", WRAPPED)),
        ("rsub", ("1.6.0", SWAPPED)),
        ("kl_div", ("1.6.0", ROWS), ("1.12.0", SWAPPED)),
        ("binary_cross_entropy_with_logits", ("1.6.0", LAST)),
        ("l1_loss", ("1.6.0", ITERATED), ("2.0.0", TWICE)),
        (
            "relu relu6 leaky_relu elu selu celu softplus softshrink hardshrink threshold hardswish hardsigmoid silu mish mse_loss smooth_l1_loss",
            ("1.6.0", ITERATED),
        ),
        ("hardtanh", ("1.6.0", OUT), ("1.7.0", ITERATED), ("1.12.0", LIKE)),
        ("gelu", ("1.6.0", ROWS), ("1.10.0", ITERATED)),
        ("where", ("1.6.0", ROWS), ("1.12.0", WRAPPED)),
        ("prelu", ("1.6.0", ROWS), ("2.0.0", LIKE)),
        ("pow", ("1.6.0", POWER)),
        ("square", ("1.6.0", LIKE), ("1.9.0", ITERATED)),
        ("nan_to_num huber_loss binary_cross_entropy", ("1.6.0", LIKE)),
        (
            (
                "cumsum cumprod cummax cummin logcumsumexp softmax log_softmax log_sigmoid masked_fill roll tril triu renorm cdist layer_norm "
                "instance_norm topk gather index_select cross sum nansum mean nanmean std var std_mean var_mean prod amax amin norm linalg_vector_norm any all count_nonzero logsumexp"
            ),
            ("1.6.0", ROWS),
        ),
        (
            "batch_norm group_norm avg_pool2d max_pool2d",
            ("1.6.0", ROWS),
            ("1.10.0", PICTURE),
        ),
        ("reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d", ("1.6.0", ROWS), ("2.1.0", PICTURE)),
        ("conv2d _convolution", ("1.10.0", PICTURE)),
        ("constant_pad_nd adaptive_avg_pool2d", ("1.6.0", ROWS), ("1.8.0", PICTURE)),
        ("upsample_nearest2d upsample_bilinear2d upsample_bicubic2d", ("1.6.0", PICTURE), ("1.8.0", ROWS), ("1.10.0", PICTURE)),
        ("sort argsort", ("1.6.0", ROWS), ("1.12.0", LIKE)),
        ("flip", ("1.6.0", ROWS), ("1.10.0", LIKE)),
        ("glu", ("1.6.0", ROWS), ("1.10.0", PARTS)),
        ("diff", ("1.8.0", PARTS)),
        ("index_fill index_put", ("1.6.0", COPY), ("1.10.0", LIKE)),
        ("scatter scatter_add", ("1.6.0", COPY), ("1.10.0", ROWS)),
        ("index_add", ("1.6.0", COPY), ("1.10.0", LIKE), ("1.11.0", ROWS)),
        ("index_copy", ("1.6.0", COPY), ("1.10.0", LIKE), ("1.12.0", ROWS)),
        ("index", ("1.6.0", INDEXED)),
        ("zeros_like ones_like full_like empty_like rand_like randn_like", ("1.6.0", LIKE)),
        ("clone", ("1.6.0", COPY), ("1.10.0", LIKE)),
        (
            "to type_as _to_copy _cast_Float _cast_Double _cast_Half _cast_Long _cast_Int _cast_Short _cast_Byte _cast_Char",
            ("1.6.0", COPY),
            ("1.12.0", LIKE),
        ),
    ):
        versions = tuple((Release(str(since)), int(mode)) for since, mode in eras)
        results.update(dict.fromkeys(names.split(), versions))
    return results


TABLE = _table()


def arranging(name: str, horizon: Release) -> Arrange | None:
    """The function that lays out the result of an operator as a release does; None if nothing has to be done.

    Parameters:
        name: the name of the operator without ``aten::``.
    """
    modes = [mode for since, mode in TABLE.get(name, ()) if since <= horizon]
    if not modes:
        return None
    mode = modes[-1]
    operands = 3 if name == "where" else 2
    several = ROWS if mode in {OUT, ITERATED} else mode  # values and indices along a dimension

    def arrange(result: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        if result.__class__ is tuple:
            for item in result:
                if item.__class__ is Tensor:
                    _lay_out(item, args, keywords, several, operands, horizon)
        elif result.__class__ is Tensor:
            _lay_out(result, args, keywords, mode, operands, horizon)

    return arrange


def _lay_out(result: Tensor, args: tuple[Any, ...], keywords: dict[str, Any], mode: int, operands: int, horizon: Release) -> None:
    """Lay out a result that does not share memory with its inputs."""
    array = result.array
    if array.ndim <= 1 or not array.size or "out" in keywords:
        return
    tensors = [arg for arg in (*args, *keywords.values()) if arg.__class__ is Tensor]
    shape: Shape = array.shape
    if not tensors:
        return
    if 1 not in shape and array.flags.c_contiguous and all(tensor.array.flags.c_contiguous for tensor in tensors):
        return
    if any(owner(tensor.array) is owner(array) for tensor in tensors):
        return
    if mode == POWER:
        mode = _of_powers(args, tensors, horizon)
    if mode in {LIKE, COPY} and (keywords.get("memory_format") not in {None, 1} or tensors[0].array.shape != shape):
        return
    if mode == INDEXED:
        wanted = _indexed(args, shape)
    else:
        numbers = any(arg.__class__ in NUMBERS for arg in (*args[:operands], keywords.get("other")))
        wanted = _wanted(mode, shape, tensors, numbers, horizon)
    if wanted is not None and wanted != result.strides:
        meter.array(array.size)
        laid = strided(np.empty(array.size, array.dtype), shape, wanted, 0)
        laid[...] = array
        result.array = laid


def _of_powers(args: tuple[Any, ...], tensors: list[Tensor], horizon: Release) -> int:
    if len(tensors) > 1:
        return OUT if horizon < FIRST_DECIDES else ITERATED
    if horizon < POWERS:
        return LIKE
    return ITERATED if args[0] is tensors[0] else ROWS


def _wanted(mode: int, shape: Shape, tensors: list[Tensor], numbers: bool, horizon: Release) -> Shape:
    first = horizon >= FIRST_DECIDES
    if mode == ROWS:
        return contiguous_strides(shape)
    if mode == PICTURE:
        lasts = len(shape) == PICTURES and suggests_channels_last(*_operand(tensors[0]))
        return packed(shape, PICTURES_ORDER) if lasts else contiguous_strides(shape)
    if mode == PARTS:
        return strides_of(shape, [(shape, tensors[0].strides)], first=True)
    if mode in {LIKE, COPY}:
        return _like(_operand(tensors[0]), infers=mode == LIKE and horizon >= INFERS)
    operands = _promoted(tensors[::-1] if mode == SWAPPED else tensors, infers=horizon >= CASTS_INFER)
    if not first and len(shape) == PICTURES and any(suggests_channels_last(*operand) for operand in operands):
        return packed(shape, PICTURES_ORDER)
    if mode == OUT:
        return contiguous_strides(shape)
    if mode == LAST:
        del operands[0]
    if mode == LAST or (numbers and mode in {WRAPPED, SWAPPED}):
        operands.append(((), ()))
    result = strides_of(shape, operands, first=first)
    return strides_of(shape, [(shape, result)], first=first) if mode == TWICE else result


def _indexed(args: tuple[Any, ...], shape: Shape) -> Shape | None:
    """The strides of the result of indexing: indexed dimensions have no strides in the source, other dimensions none in the indices."""
    if len(args) < 2 or args[1].__class__ not in {list, tuple}:
        return None
    own, at, places, most = list(args[0].strides), 0, [], 0
    kept: list[int] = []
    for arg in args[1]:
        if arg.__class__ is not Tensor:
            kept.append(own[at])
            at += 1
            continue
        mask = arg.array.dtype in MASKS
        places.append(len(kept))
        at += arg.ndim if mask else 1
        most = max(most, 1 if mask else arg.ndim)
    if not places:
        return None
    before = places[0] if len(set(places)) == 1 else 0
    kept += own[at:]
    if len(kept) + most != len(shape):
        return None
    lead, rest = kept[:before], kept[before:]
    indices = [*[0] * before, *contiguous_strides(shape[before : before + most]), *[0] * len(rest)]
    return packed(shape, order(shape, [(*lead, *[0] * most, *rest), tuple(indices)], first=True))


def _operand(tensor: Tensor) -> Operand:
    return tensor.shape, tensor.strides


def _promoted(tensors: list[Tensor], *, infers: bool) -> list[Operand]:
    """The operands of the iteration: operands whose dtype differs from the common dtype are copied first."""
    kinds = {item.array.dtype for item in tensors if item.array.dtype.kind != "b"}
    if len(kinds) <= 1:
        return [_operand(item) for item in tensors]
    together = dtypes.result_type(tuple(tensors)).array
    results = []
    for tensor in tensors:
        shape, strides = _operand(tensor)
        if tensor.array.dtype.kind != "b" and tensor.array.dtype != together:
            strides = _like((shape, strides), infers=infers)
        results.append((shape, strides))
    return results


def _like(operand: Operand, *, infers: bool) -> Shape:
    """The strides of a tensor created like another tensor."""
    shape, strides = operand
    if _dense(operand):
        return strides
    if infers:
        return packed(shape, order(shape, [strides], first=True))
    if len(shape) == PICTURES and suggests_channels_last(shape, strides):
        return packed(shape, PICTURES_ORDER)
    return contiguous_strides(shape)


def suggests_channels_last(shape: Shape, strides: Shape) -> bool:
    """Whether images or volumes are channels-last in memory, by the rule of ``suggest_memory_format``."""
    if len(shape) not in {PICTURES, PICTURES + 1}:
        return False
    least = 0
    for at in (1, *range(len(shape) - 1, 1, -1), 0):
        size, step = shape[at], strides[at]
        if not size or not strides[1] or step < least or (at == 0 and least == strides[1]):
            return False
        least = step * size
    return True


def order(shape: Shape, operands: Sequence[Shape], *, first: bool) -> list[int]:
    """The dimensions of a shape, fastest first.

    Parameters:
        shape: the shape of the result.
        operands: the strides of each operand along all dimensions, 0 where it is broadcast.
        first: whether the first operand with different strides decides; otherwise any operand for which no swap is needed.
    """
    result = list(range(len(shape)))[::-1]

    def compared(a: int, b: int) -> int:
        """1 if ``a`` comes after ``b``, -1 if before, 0 if no operand decides."""
        for strides in operands:
            mine, yours = strides[a], strides[b]
            if not mine or not yours:
                continue
            if mine != yours:
                return 1 if mine > yours else -1
            if not first:
                return -1
            if shape[a] > shape[b]:
                return 1
        return 0

    for start in range(1, len(result)):
        at = start
        for before in range(start - 1, -1, -1):
            says = compared(result[before], result[at])
            if says > 0:
                result[before], result[at] = result[at], result[before]
                at = before
            elif says < 0:
                break
    return result


def packed(shape: Shape, dimensions: Sequence[int]) -> Shape:
    """The strides of a dense tensor with these dimensions, fastest first."""
    strides, step = [0] * len(shape), 1
    for at in dimensions:
        strides[at] = step
        step *= shape[at]
    return tuple(strides)


def _lies(operand: Operand, dimensions: Sequence[int]) -> bool:
    """Whether a tensor is dense with its dimensions in this order, fastest first; dimensions of size one may be anywhere."""
    shape, strides = operand
    step = 1
    for at in dimensions:
        if shape[at] != 1:
            if strides[at] != step:
                return False
            step *= shape[at]
    return True


def _dense(operand: Operand) -> bool:
    shape, strides = operand
    return _lies(operand, sorted(range(len(shape)), key=lambda at: (shape[at] != 1, strides[at])))


def strides_of(shape: Shape, operands: Sequence[Operand], *, first: bool) -> Shape:
    """The strides of the result of an elementwise operator.

    Parameters:
        shape: the shape of the result.
        operands: the shape and strides of each operand.
        first: see :func:`order`.
    """
    rows = range(len(shape))[::-1]
    if all(item == shape for item, _ in operands):
        if all(_lies(operand, rows) for operand in operands):
            return contiguous_strides(shape)
        if len(shape) == PICTURES and all(_lies(operand, PICTURES_ORDER) for operand in operands):
            return packed(shape, PICTURES_ORDER)
        if len({strides for _, strides in operands}) == 1 and _dense(operands[0]):
            return operands[0][1]
    broadcast = []
    for sizes, strides in operands:
        lead = len(shape) - len(sizes)
        own = [
            0 if size == 1 and not (first and shape[lead + at] == 1) else step
            for at, (size, step) in enumerate(zip(sizes, strides, strict=True))
        ]
        broadcast.append((*[0] * lead, *own))
    return packed(shape, order(shape, broadcast, first=first))
