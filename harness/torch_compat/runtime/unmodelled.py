"""Calls of operators that the reference reader reports as *unsupported*, because it is known not to match any release there.

Each entry names operators, releases, calls and the reason. The result of such a call depends on defects of the release (uninitialized
memory, numbers of one dtype read as those of another) that no model relies on.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from torch_compat import arrays
from torch_compat.errors import Unsupported
from torch_compat.runtime.dtypes import BFLOAT16, DTYPES, FLOAT16, as_dtype, result_type
from torch_compat.runtime.registration import OUTS
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.unmodelled_arguments import OUT_OF_RANGE
from torch_compat.runtime.unmodelled_calls import Calls, UnmodelledCalls, empty, entry, first, reads_its_result

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_compat.releases.release import Release

__all__ = ["ENTRIES", "UnmodelledCalls", "checked", "entries_of", "not_modelled"]

VECTORS: Final = 64
"""The minimum size in bytes of a tensor for which a loop in ATen uses vectors: two 256-bit vectors."""
INSERTED: Final = 16
"""The maximum number of keys that `std::sort` sorts only by insertion."""
EXPONENT: Final = 88.0
"""The approximate exponent above which an exponential overflows in 32 bits."""
CODES: Final = frozenset(dtype.code for dtype in DTYPES.values())


def _gaps(value: Any) -> bool:
    return value.__class__ is Tensor and not value.array.flags.c_contiguous


def _is_complex(args: Calls, keywords: dict[str, Any]) -> bool:
    return any(arg.__class__ is Tensor and arg.array.dtype.kind == "c" for arg in (*args, *keywords.values()))


def _longs_with_float(args: Calls, _keywords: dict[str, Any]) -> bool:
    """Whether an int64 tensor is compared in place with a float."""
    array = first(args)
    return array is not None and array.dtype == np.int64 and bool(array.size) and len(args) > 1 and args[1].__class__ is float


def _empty_whole(args: Calls, keywords: dict[str, Any]) -> bool:
    return empty(args, keywords) and keywords.get("dim", args[1] if len(args) > 1 else []) in ([], (), None)


def _is_vector_of_complex(args: Calls, keywords: dict[str, Any]) -> bool:
    """Whether there are complex operands, with at least as many elements as two vector registers hold."""
    return _is_complex(args, keywords) and first(args).nbytes >= 64


def _not_a_key(args: Calls, _keywords: dict[str, Any]) -> bool:
    return bool(args) and args[0].__class__ is dict and any(arg.__class__ is float and math.isnan(arg) for arg in args[0])


def _into_other_dtype(args: Calls, keywords: dict[str, Any]) -> bool:
    """Whether out= has another dtype than the power: the dtype of the base if the exponent is a number, else the common dtype."""
    out, base = keywords.get("out"), first(args)
    if out.__class__ is not Tensor:
        return False
    by_number = base is not None and len(args) > 1 and args[1].__class__ is not Tensor
    return out.array.dtype != (base.dtype if by_number else result_type(args[:2]).array)


def _gaps_in_weight(args: Calls, keywords: dict[str, Any]) -> bool:
    return _gaps(keywords.get("weight", args[4] if len(args) > 4 else None))


def _codes(args: Calls, _keywords: dict[str, Any]) -> bool:
    return any(arg.__class__ is int and arg not in CODES for arg in args)


def _in_another_order(args: Calls) -> bool:
    """Whether the memory order of a tensor's elements differs from their logical order."""
    array = first(args)
    steps = [step for size, step in zip(array.shape, array.strides, strict=True) if size > 1] if array is not None else []
    return steps != sorted(steps, reverse=True)


def _not_finite(args: Calls, keywords: dict[str, Any]) -> bool:
    return any(
        arg.__class__ is Tensor and arg.array.dtype.kind in "fc" and not bool(np.isfinite(arg.array).all())
        for arg in (*args, *keywords.values())
    )


def _negative_count(args: Calls, _keywords: dict[str, Any]) -> bool:
    """Whether the shift count of a tensor, or an element of it, is negative."""
    count = args[1] if len(args) > 1 and args[0].__class__ is Tensor else 0
    if count.__class__ is Tensor:
        return bool(count.array.dtype.kind == "i" and count.array.size and (count.array < 0).any())
    return count.__class__ is int and count < 0


def _shifted_beyond(args: Calls, _keywords: dict[str, Any]) -> bool:
    """Whether a shift count is negative or beyond the width, with at least as many elements as one vector holds."""
    pair = [arg.array if arg.__class__ is Tensor else np.asarray(arg) for arg in args[:2]]
    if len(pair) < 2 or any(item.dtype.kind not in "iu" for item in pair):
        return False
    kind = np.result_type(*([item for item in pair if item.ndim] or pair))
    try:
        size = np.broadcast(*pair).size
    except ValueError:  # the shapes do not broadcast
        return False
    beyond = (pair[1] < 0) | (pair[1] >= max(32, 8 * kind.itemsize))
    return bool(size * kind.itemsize >= VECTORS // 2 and beyond.any())


def _points_by_cubes(args: Calls, keywords: dict[str, Any]) -> bool:
    return keywords.get("interpolation_mode", args[2] if len(args) > 2 else 0) == 2


def _along_one(args: Calls, keywords: dict[str, Any]) -> bool:
    array, dim = first(args), keywords.get("dim", args[1] if len(args) > 1 else None)
    return (
        "out" in keywords
        and array is not None
        and dim.__class__ is int
        and -array.ndim <= dim < array.ndim
        and array.shape[dim] == 1
    )


def _into_another_type(args: Calls, keywords: dict[str, Any]) -> bool:
    """Whether the result is computed in another dtype than that of ``out``, or the list of dimensions is empty."""
    out, dtype = keywords.get("out"), as_dtype(keywords.get("dtype"))
    if not isinstance(out, Tensor):
        return False
    half = (
        first(args) is not None and first(args).dtype in {FLOAT16.array, BFLOAT16.array} and out.array.dtype != first(args).dtype
    )
    return half or (dtype is not None and (dtype.array != out.array.dtype or (len(args) > 2 and args[2] == [])))


def _points_of_other_dimensions(args: Calls, _keywords: dict[str, Any]) -> bool:
    image, grid = first(args), first(args[1:2])
    return image is not None and grid is not None and grid.ndim > 0 and grid.shape[-1] != image.ndim - 2


def _other_batches(args: Calls, keywords: dict[str, Any]) -> bool:
    given, matrix = first(args), first(args[1:2])
    return bool(keywords.keys() & OUTS) and given is not None and matrix is not None and given.shape[:-2] != matrix.shape[:-2]


def _not_square(args: Calls, keywords: dict[str, Any]) -> bool:
    matrix = first(args[1:2])
    return "out" in keywords and matrix is not None and matrix.ndim > 1 and matrix.shape[-1] != matrix.shape[-2]


def _halves(_args: Calls, keywords: dict[str, Any]) -> bool:
    dtype = as_dtype(keywords.get("dtype"))
    out = keywords.get("out")
    result = out.array.dtype if isinstance(out, Tensor) else None if dtype is None else dtype.array
    return result in {BFLOAT16.array, FLOAT16.array}


def _imaginary(args: Calls, _keywords: dict[str, Any]) -> bool:
    """Whether some of the complex numbers are purely imaginary."""
    array = first(args)
    return array is not None and array.dtype.kind == "c" and bool(((array.real == 0) & (array.imag != 0)).any())


def _infinite_and_real(args: Calls, _keywords: dict[str, Any]) -> bool:
    """Whether some of the complex numbers are infinite and on the real axis."""
    array = first(args)
    return array is not None and array.dtype.kind == "c" and bool((np.isinf(array.real) & (array.imag == 0)).any())


def _kept_of_one(args: Calls, keywords: dict[str, Any]) -> bool:
    array = first(args)
    return array is not None and not array.ndim and bool(keywords.get("keepdim", args[2] if len(args) > 2 else False))


def _whole_dtype(_args: Calls, keywords: dict[str, Any]) -> bool:
    result = as_dtype(keywords.get("dtype"))
    return result is not None and result.category < FLOAT16.category


def _any_whole(args: Calls, _keywords: dict[str, Any]) -> bool:
    return any(arg.__class__ is Tensor and arg.array.dtype.kind in "iub" for arg in args)


def _bounds_crossed(args: Calls, keywords: dict[str, Any]) -> bool:
    """Whether the bounds are reversed, with enough elements for vectors: in vectors the upper bound wins, in the rest the lower one."""
    array = first(args)
    if array is None or array.nbytes < VECTORS:
        return False
    low: Any = keywords.get("min_val", args[1] if len(args) > 1 else -1)
    high: Any = keywords.get("max_val", args[2] if len(args) > 2 else 1)
    return bool(low > high)


def _limits_crossed(args: Calls, keywords: dict[str, Any]) -> bool:
    """Same as :func:`_bounds_crossed`, for optional bounds."""
    array = first(args)
    bounds: list[Any] = [keywords.get(name, args[at] if len(args) > at else None) for at, name in ((1, "min"), (2, "max"))]
    numbers = all(bound.__class__ in {int, float} for bound in bounds)
    return array is not None and array.nbytes >= VECTORS and numbers and bool(bounds[0] > bounds[1])


def _quotient_overflows(args: Calls, _keywords: dict[str, Any]) -> bool:
    """Whether a quotient of finite numbers overflows, with enough elements for vectors."""
    pair = [arg.array if arg.__class__ is Tensor else np.asarray(arg) for arg in args[:2]]
    tensors = [array.dtype for array in pair if array.ndim] or [item.dtype for item in pair]
    if len(pair) < 2 or any(item.dtype.kind == "c" for item in pair) or all(tensor.kind in "iub" for tensor in tensors):
        return False
    kind = np.dtype(np.float64 if np.dtype(np.float64) in tensors else np.float32)
    with np.errstate(all="ignore"):
        x, y = (item.astype(kind) for item in pair)
        try:
            quotient: Any = np.divide(x, y)
        except ValueError:  # the shapes do not broadcast
            return False
        return bool(quotient.nbytes >= VECTORS and (np.isinf(quotient) & np.isfinite(x) & (y != 0)).any())


def _taken_for_transposed(array: Any) -> bool:
    """Whether TH mistakes a tensor with gaps for a permuted contiguous one, because it counts elements only up to the widest stride."""
    if array is None or array.flags.c_contiguous or not array.size:
        return False
    widest, across = 1, 1
    for size, bytes_ in zip(array.shape, array.strides, strict=True):
        step = bytes_ // array.itemsize
        if not step and size != 1:
            return False
        if step > widest:
            widest, across = step, size
    reach = 1 + sum((size - 1) * (bytes_ // array.itemsize) for size, bytes_ in zip(array.shape, array.strides, strict=True))
    return bool(array.size == widest * across and reach != array.size)


def _slice_taken_for_transposed(args: Calls, _keywords: dict[str, Any]) -> bool:
    array = first(args)
    if (
        array is None
        or array.ndim < 2
        or len(args) < 2
        or args[1].__class__ is not int
        or not -array.ndim <= args[1] < array.ndim
    ):
        return False
    places = [slice(None)] * array.ndim
    return bool(array.shape[args[1]]) and _taken_for_transposed(array[(*places[: args[1] % array.ndim], 0)])


def _smaller_index(args: Calls, _keywords: dict[str, Any]) -> bool:
    """Whether the index has another size than the tensor in a dimension other than the indexed one."""
    array, places = first(args), first(args[2:3])
    if array is None or places is None or array.ndim != places.ndim or args[1].__class__ is not int:
        return False
    return any(a != b for at, (a, b) in enumerate(zip(array.shape, places.shape, strict=True)) if at != args[1] % array.ndim)


def _wider_complex(args: Calls, _keywords: dict[str, Any]) -> bool:
    """Whether a floating-point tensor of at most 32 bits is combined with a 0-dim complex128 tensor."""
    pair = [arg.array for arg in args[:3] if arg.__class__ is Tensor]
    return any(array.dtype == np.complex128 and not array.ndim for array in pair) and any(
        array.ndim and array.dtype.kind in "fV" and array.dtype.itemsize < 8 for array in pair
    )


def _smoothed_beside_ignored(args: Calls, keywords: dict[str, Any]) -> bool:
    target = first(args[1:2])
    reduction, ignored, smoothing = (
        keywords.get(name, args[at] if len(args) > at else value)
        for at, name, value in ((3, "reduction", 1), (4, "ignore_index", -100), (5, "label_smoothing", 0.0))
    )
    return (
        smoothing != 0 and reduction == 1 and target is not None and target.dtype.kind == "i" and bool((target == ignored).any())
    )


def _complex_diagonal(args: Calls, _keywords: dict[str, Any]) -> bool:
    array = first(args)
    if array is None or array.dtype.kind != "c" or array.ndim < 2:
        return False
    return bool((arrays.diagonal(array, 0, -2, -1).imag != 0).any())


def _out_of_another_type(args: Calls, keywords: dict[str, Any]) -> bool:
    array, out = first(args), keywords.get("out")
    return array is not None and out.__class__ is Tensor and out.array.dtype != array.dtype


def _truth_of_imaginary(args: Calls, keywords: dict[str, Any]) -> bool:
    """Whether complex numbers, some of them purely imaginary, are converted to bool."""
    array, given = first(args), (*args[1:], *keywords.values())
    if array is not None and array.dtype.kind == "b":  # copy_
        return _imaginary(args[1:2], keywords)
    truth = DTYPES["bool"]
    truths = any(item is truth or (item.__class__ is int and item == truth.code) for item in given)
    return (truths or any(tensor.__class__ is Tensor and tensor.array.dtype.kind == "b" for tensor in given)) and _imaginary(
        args, keywords
    )


def _truth_filled_with_imaginary(args: Calls, keywords: dict[str, Any]) -> bool:
    """Whether a purely imaginary number is converted to bool."""
    given = (*args, *keywords.values())
    numbers = [arg.array.item() if arg.__class__ is Tensor and arg.array.size == 1 else arg for arg in given]
    array, dtype = first(args), as_dtype(keywords.get("dtype"))
    truths = dtype == DTYPES["bool"] if dtype is not None else array is not None and array.dtype.kind == "b"
    return truths and any(number.__class__ is complex and not number.real and bool(number.imag) for number in numbers)


def _truth_of_imaginary_numbers(args: Calls, keywords: dict[str, Any]) -> bool:
    def imaginary(value: Any) -> bool:
        return (
            any(map(imaginary, value))
            if value.__class__ is list
            else value.__class__ is complex and not value.real and bool(value.imag)
        )

    dtype = keywords.get("dtype", args[1] if len(args) > 1 else None)
    return dtype is not None and as_dtype(dtype) == DTYPES["bool"] and any(map(imaginary, args[:1]))


def _seen_as_expanded(args: Calls, _keywords: dict[str, Any]) -> bool:
    """Whether an index along dimension 0 of a floating-point tensor has stride 1 both between rows and within a row.

    Such an index is mistaken for an expanded one, so that the first element counts for the whole row.
    """
    array, places = next(
        ((a, b) for a, b in ((first(args), first(args[1:2])), (first(args), first(args[2:3]))) if b is not None), (None, None)
    )
    dim = next((arg for arg in args[1:] if arg.__class__ is int), None)
    if array is None or places is None or array.dtype.kind not in "fV" or array.dtype == FLOAT16.array or dim is None:
        return False
    steps = [bytes_ // places.itemsize for bytes_ in places.strides]
    if not places.size or places.ndim != array.ndim or places.ndim < 2 or dim % places.ndim:
        return False
    wide = any(step == 1 and size > 1 for step, size in zip(steps[1:], places.shape[1:], strict=True))
    return wide and steps[0] == 1 and all(b <= a for a, b in pairwise(steps))


def _narrower_expanded_index(args: Calls, _keywords: dict[str, Any]) -> bool:
    """Whether an index along dimension 0 is constant within each row, and its rows differ in size from those of the tensor."""
    array, places = first(args), first(args[2:3])
    if array is None or places is None or not array.ndim or places.ndim != array.ndim:
        return False
    if args[1].__class__ is not int or args[1] % array.ndim:
        return False
    one_each = all(size == 1 or not step for size, step in zip(places.shape[1:], places.strides[1:], strict=True))
    return one_each and places.shape[1:] != array.shape[1:]


def _bfloat16_and_another(args: Calls, _keywords: dict[str, Any]) -> bool:
    kinds = {arg.array.dtype for arg in args if arg.__class__ is Tensor}
    return BFLOAT16.array in kinds and len(kinds) > 1


def _complex_by_zero(args: Calls, keywords: dict[str, Any]) -> bool:
    divisor = first(args[2:3]) if len(args) > 2 else first((keywords.get("tensor2"),))
    return _is_complex(args, keywords) and divisor is not None and bool((divisor == 0).any())


def _not_a_number(args: Calls, _keywords: dict[str, Any]) -> bool:
    array = first(args)
    return array is not None and array.dtype.kind in "fV" and bool(np.isnan(array).any())


def _without_dimensions(args: Calls, _keywords: dict[str, Any]) -> bool:
    array = first(args)
    return array is not None and not array.ndim


def _norm_of_nothing(args: Calls, keywords: dict[str, Any]) -> bool:
    """Whether the norm of an empty tensor is the maximum or minimum norm, or has a negative power."""
    power = keywords.get("p", next((arg for arg in args if arg.__class__ in {int, float}), 2))
    return empty(args, keywords) and (power == math.inf or power < 0)


def _half_power_overflows(args: Calls, keywords: dict[str, Any]) -> bool:
    """Whether the sum of powers of float16 numbers overflows float16."""
    arrays = [arg.array for arg in args if arg.__class__ is Tensor and arg.array.dtype == FLOAT16.array and arg.array.size]
    power: Any = next((keywords[name] for name in ("p", "ord", "pow", "norm_type") if name in keywords), None)
    power = next((arg for arg in args if arg.__class__ in {int, float}), 2) if power is None else power
    if not arrays or not 0 < power < math.inf:
        return False
    with np.errstate(all="ignore"):
        most = sum(float(np.abs(array.astype(np.float64)).max()) for array in arrays[:2])
        return bool(np.float64(most) ** power * max(array.size for array in arrays) > np.finfo(np.float16).max)


def _gate_overflows(args: Calls, keywords: dict[str, Any]) -> bool:
    """Whether a float32 gate is so negative that its exponential overflows, with enough elements for vectors."""
    array = first(args)
    dim: Any = keywords.get("dim", args[1] if len(args) > 1 else -1)
    if (
        array is None
        or array.dtype != np.float32
        or not array.ndim
        or not -array.ndim <= dim < array.ndim
        or array.nbytes < VECTORS
    ):
        return False
    gate = np.split(array, [array.shape[dim] // 2], axis=dim)[1]
    return bool((gate < -EXPONENT).any())


def _list_with_bfloat16(args: Calls, _keywords: dict[str, Any]) -> bool:
    """Whether a list has bfloat16 tensors and tensors of another dtype."""
    result = args[0] if args and args[0].__class__ is list else []
    kinds = {arg.array.dtype for arg in result if arg.__class__ is Tensor}
    return BFLOAT16.array in kinds and len(kinds) > 1


def _into_out(_args: Calls, keywords: dict[str, Any]) -> bool:
    return "out" in keywords


def _nan(args: Calls, _keywords: dict[str, Any]) -> bool:
    array = first(args)
    return array is not None and array.dtype.kind == "f" and bool(np.isnan(array).any())


def _nan_in_vectors(args: Calls, keywords: dict[str, Any]) -> bool:
    """Whether some elements are NaN, with enough elements for vectors."""
    array = first(args)
    return array is not None and array.nbytes >= VECTORS and _nan(args, keywords)


def _apart_in_memory(args: Calls, _keywords: dict[str, Any]) -> bool:
    """Whether a tensor is not contiguous or has a storage offset."""
    return first(args) is not None and (_gaps(args[0]) or args[0].storage_offset > 0)


ENTRIES: Final = (
    *OUT_OF_RANGE,
    entry("(eq|ne|lt|le|gt|ge|not_equal|less|less_equal|greater|greater_equal)_", "1.3.0..<1.6.0", _longs_with_float,
           "compares int64 values with a float in place: 1.3 to 1.5 read float32 values, past the end of the tensor"),
    entry("__i?lshift__|bitwise_left_shift_?", "..<2.1.0", _negative_count, "shifts by a negative number, which is undefined in C++"),
    entry("__i?rshift__|bitwise_right_shift_?", "..<1.7.0", _negative_count, "shifts by a negative number, which is undefined in C++"),
    entry("take", "1.8.0..<1.9.0", lambda args, _: len(args) > 1 and _gaps(args[1]), "reads the memory between the elements of non-contiguous indices"),
    entry("addmm_|addmv_|addr_|addbmm_|baddbmm_", "..", reads_its_result, "writes to elements that the library reads in an order of its own"),
    entry("addr_?", "1.7.0..<1.8.0", lambda _, keywords: keywords.get("beta", 1) == 0, "ignores the shape of an operand multiplied by zero"),
    entry("amax|amin", "1.9.0..<1.12.0", _empty_whole, "returns the maximum of an empty tensor, which is uninitialized memory"),
    entry("tensordot", "1.8.0..<1.9.0", lambda _, keywords: "out" in keywords, "does not write to out="),
    entry("norm_except_dim", "1.6.0..<1.8.0", _is_complex, "computes the norm of complex numbers in a dtype that depends on the release"),
    entry("not_equal_|ne_|eq_", "1.6.0..<2.1.0", _is_vector_of_complex, "overwrites complex numbers with the result of a comparison, in both parts if the code is vectorized"),
    entry("grid_sampler(_2d)?", "..<1.8.0", _points_by_cubes, "uses bicubic sampling, which was added in 1.8: uninitialized memory"),
    entry("elu_", "..<1.2.0", lambda args, keywords: keywords.get("input_scale", args[3] if len(args) > 3 else 1) != 1,
           "in place, also multiplies positive elements by the scale of the input"),
    entry("nll_loss", "..<1.4.0", lambda args, _: len(args) > 1 and args[1].__class__ is Tensor and not args[1].array.ndim,
           "accepts a 0-dim target, for which the result is one-dimensional or the call is refused"),
    entry("(sin|cos)_?", "..<1.2.0", _not_finite, "sometimes returns zero for non-finite values"),
    entry("stft", "1.0.0..", _not_finite, "transforms non-finite values: which elements of the result are NaN depends on the order of summation"),
    entry("pop", "..<1.4.0", lambda args, _: bool(args) and args[0].__class__ is dict, "returns the value of the next key in a hash table"),
    entry("sorted", "..<1.5.0", lambda args, _: bool(args) and args[0].__class__ is list and len(args[0]) > 1 and any(arg.__class__ is Tensor for arg in args[0]),
           "sorts tensors, and also sorts its input list in place"),
    entry("index_put", "1.6.0..<1.13.0", lambda args, _: bool(args) and _gaps(args[0]), "writes to an input that must not change, if it is not contiguous"),
    entry("norm", "1.8.0..<2.1.0", lambda args, keywords: _is_complex(args, keywords) and keywords.get("dtype") is not None,
           "computes the norm of complex numbers in a different dtype: uninitialized memory"),
    entry("norm", "1.8.0..<2.1.0", _into_another_type, "writes a norm of one dtype to out= of another dtype: uninitialized memory, or different rounding"),
    entry("aminmax", "1.10.0..<2.1.0", _kept_of_one, "keeps a dimension of a 0-dim tensor"),
    entry("nanmean", "1.10.0..<2.13.0", _whole_dtype, "computes a mean in an integer dtype"),
    entry("cosine_similarity", "1.12.0..<2.1.0", _any_whole, "divides integers by their norm in their own dtype"),
    entry("linalg_norm|norm_except_dim", "1.8.0..<2.1.0", _half_power_overflows, "adds powers of float16 values in float16, which overflow"),
    entry("norm", "..<1.2.0", _norm_of_nothing, "computes the minimum norm of an empty tensor, which is infinite for some overloads"),
    entry("dist", "..<1.5.0", _norm_of_nothing, "computes the maximum norm of an empty difference, which starts at -1"),
    entry("glu", "..<1.5.0", _gate_overflows, "computes a vectorized exponential that is clamped at 88.4"),
    entry("sort", "1.7.0..<1.12.0", lambda _, keywords: isinstance(out := keywords.get("indices"), Tensor) and out.array.dtype != np.int64,
           "writes indices to a tensor of a different dtype: uninitialized memory"),
    entry("linalg_norm", "1.7.0..<1.8.0", _is_complex, "computes norms of complex numbers in a dtype that depends on the order, or refuses them"),
    entry("linalg_norm", "1.8.0..<1.12.0", _whole_dtype, "computes a norm in an integer dtype"),
    entry("_?(cat|stack)", "1.6.0..<1.7.0", _list_with_bfloat16, "combines bfloat16 with another dtype, although the two have no common dtype"),
    entry("native_dropout", "1.11.0..<1.12.0", lambda args, _: len(args) > 2 and (args[2] is False or args[1] in {0, 1}),
           "returns a float mask if nothing or everything is dropped"),
    entry("sym_size", "1.13.0..<2.1.0", lambda args, _: len(args) > 1 and args[1].__class__ is int and not 0 <= args[1] < args[0].array.ndim,
           "has a dimension that is negative or out of range, and reads past the end of the sizes"),
    entry("hardtanh_?", "1.5.0..<1.8.0", _bounds_crossed, "has a lower bound above the upper bound: which bound applies depends on the position of the element"),
    entry("(clamp|clip)_?", "1.3.0..<1.8.0", _limits_crossed, "has a lower bound above the upper bound: which bound applies depends on the position of the element"),
    entry("fmod_?", "1.5.0..", _quotient_overflows, "divides by a value so small that the quotient overflows, which gives NaN in vectorized code"),
    entry("remainder_?", "1.6.0..", _quotient_overflows, "divides by a value so small that the quotient overflows, which gives NaN in vectorized code"),
    entry("index_fill_", "..<1.6.0", _slice_taken_for_transposed, "fills the memory after the first element of a non-contiguous slice"),
    entry("index_fill", "1.4.0..<1.6.0", _slice_taken_for_transposed, "fills the memory after the first element of a non-contiguous slice"),
    entry("zero_", "..<1.4.0", lambda args, _: _taken_for_transposed(first(args)), "fills the memory after the first element of a non-contiguous tensor"),
    entry("fill_", "..<1.2.0", lambda args, _: _taken_for_transposed(first(args)), "fills the memory after the first element of a non-contiguous tensor"),
    entry("scatter_add_?|scatter_?", "..<1.3.0", _smaller_index, "reads past the end of its index"),
    entry("_weight_norm", "1.6.0..", _is_complex, "accepts complex lengths: releases up to 1.11 use a different dtype, and newer releases refuse a mix of complex and real lengths"),
    entry("(add|sub|subtract|rsub|mul|multiply|div|divide|true_divide|pow|eq|ne|not_equal|result_type|addcmul|addcdiv|lerp|ldexp)_?", "1.6.0..<1.12.0",
           _wider_complex, "computes in the dtype of a 0-dim complex tensor"),
    entry("kthvalue|median", "..<1.1.0", _not_a_number, "compares NaN as C++ does, so the order depends on the position of NaN"),
    entry("argmin|argmax", "1.5.0..<1.6.0", lambda args, keywords: _without_dimensions(args, keywords) and len(args) > 1 and args[1] is not None,
           "reduces a dimension of a 0-dim tensor: uninitialized memory"),
    entry("cross_entropy_loss", "1.10.0..<1.11.0", _smoothed_beside_ignored, "divides the smoothed part by the number of all targets, including ignored ones"),
    entry("result_type", "1.3.0..<1.7.0", _bfloat16_and_another, "combines bfloat16 with another dtype, although the two have no common dtype"),
    entry("nll_loss_forward", "..<1.4.0", lambda args, _: len(args) > 3 and args[3] == 0 and args[1].__class__ is Tensor and not args[1].array.ndim,
           "accepts a 0-dim target, for which the result is one-dimensional or the call is refused"),
    entry("cholesky_inverse", "1.6.0..", _complex_diagonal, "takes a Cholesky factor whose diagonal is not real, which is invalid"),
    entry("index", "1.13.0..<2.2.0", _out_of_another_type, "writes bytes of one dtype to out= of another dtype"),
    entry("addcdiv_?", "1.13.0..", _complex_by_zero, "divides complex numbers by zero: which parts are NaN depends on the release and the form of the call"),
    entry("(new_)?full|full_like|fill_?|masked_fill_?", "1.6.0..<2.4.0", _truth_filled_with_imaginary, "treats complex numbers with a real part of zero as false"),
    entry("to|to_dense|_to_copy|type_as|as_tensor|copy_|sum|prod", "1.6.0..<2.4.0", _truth_of_imaginary, "treats complex numbers with a real part of zero as false"),
    entry("hardshrink", "..<2.0.0", _nan_in_vectors, "shrinks NaN: vectorized code returns zero, but scalar code does not"),
    entry("ne_|not_equal_", "1.6.0..<1.8.0", _nan_in_vectors, "compares NaN in place: vectorized code treats it as equal, but scalar code does not"),
    entry("sort|argsort|msort", "1.6.0..<1.7.0", lambda args, _: first(args) is not None and first(args).dtype == FLOAT16.array
           and bool(np.isnan(first(args)).any()), "compares NaN as C++ does, so the order depends on the position of NaN"),
    entry("keys|values|items", "..<1.3.0", _not_a_key, "iterates over a hash table with the key NaN, which has no defined position among the keys"),
    entry("keys|values|items", "1.3.0..<1.6.0", lambda args, _: _not_a_key(args, _) and len(args[0]) > INSERTED,
           "sorts keys that include NaN: the order of more than 16 keys is not defined"),
    entry("popitem", "..<1.6.0", _not_a_key, "looks up the key NaN, which is never found"),
    entry("linalg_eig", "..<2.1.0", lambda args, _: bool(args), "returns eigenvectors with library-specific signs"),
    entry("batch_norm|native_batch_norm", "1.5.0..<1.6.0", lambda args, _: _in_another_order(args) and first(args).ndim > 1 and first(args).shape[1] == 1,
           "normalizes a single channel in memory order"),
    entry("tensor|as_tensor", "1.6.0..<2.4.0", _truth_of_imaginary_numbers, "treats complex numbers with a real part of zero as false"),
    entry("gather", "2.0.0..<2.1.0", _narrower_expanded_index, "reads rows with the width of an expanded index, but the rows of the tensor are wider"),
    entry("gather|take_along_dim|scatter_add_?|scatter_reduce_?", "2.0.0..<2.6.0", _seen_as_expanded, "mistakes a transposed index for an expanded one"),
    entry("index_fill_?", "1.8.0..<1.9.0", _without_dimensions, "adds a dimension to a 0-dim tensor"),
    entry("isin", "1.10.0..<1.11.0", lambda args, _: any(map(_gaps, args[:2])), "reads the memory between the elements of a non-contiguous tensor"),
    entry("scatter_reduce", "1.11.0..<1.12.0", lambda args, _: len(args) > 3 and args[3].__class__ is str, "reduces a tensor by itself, which only 1.11 supports"),
    entry("ScalarImplicit", "1.6.0..<1.8.0", _is_complex, "returns the real part of a complex number"),
    entry("_local_scalar_dense", "1.6.0..<1.8.0", _is_complex, "converts a complex number to an integer, or refuses it"),
    entry("baddbmm", "1.11.0..<2.1.0", lambda _, keywords: keywords.get("beta", 1) == 0, "multiplies uninitialized memory by zero, which may give NaN"),
    entry("argmin|argmax", "1.7.0..<1.10.0", _along_one, "reduces a dimension of size one, and does not write to out="),
    entry("grid_sampler_2d|grid_sampler_3d", "..<1.12.0", _points_of_other_dimensions, "reads one coordinate for each dimension, even if the point has fewer"),
    entry("cholesky_solve", "..<1.7.0", _not_square, "solves with a nonsquare matrix and out="),
    entry("kaiser_window", "1.10.0..<2.2.0", _halves, "rounds to 16 bits after each step"),
    entry("_local_scalar_dense", "..", empty, "returns the item of an empty tensor: unrelated memory"),
    entry("_cat", "..<1.8.0", lambda args, _: len(args) > 1 and args[1].__class__ is int and args[1] < 0,
           "concatenates along a negative dimension, which is read as a large number"),
    entry("multi_margin_loss", "1.4.0..<2.1.0", _gaps_in_weight, "reads the memory between the elements of a non-contiguous weight"),
    entry("add_", "..", lambda args, _: len(args) > 1 and args[0].__class__ is list and args[0] is args[1] and bool(args[0]),
           "adds a list to itself in place, and reads elements that were moved"),
    entry("can_cast|promote_types", "1.3.0..", _codes, "accepts a number that is not a dtype"),
    entry("__i?lshift__|bitwise_left_shift_?|__i?rshift__|bitwise_right_shift_?", "1.3.0..<1.10.0, 2.0.0..<2.1.0", _shifted_beyond,
           "shifts by more bits than the dtype has: vectorized code returns zero, and scalar code does not"),
    entry("_stack", "1.8.0..", lambda args, keywords: "out" in keywords and len(args) > 1 and args[1].__class__ is int and args[1] < 0,
           "has a negative dimension, and writes before the sizes of out="),
    entry("solve", "..", _other_batches, "solves batches that do not match the matrices: with out=, each tensor is read with its own sizes, past its end"),
    entry("var", "1.8.0..<1.9.0", lambda args, keywords: "out" in keywords and keywords.get("dim", args[1] if len(args) > 1 else None) == [],
           "reduces over an empty dim list with out=: for named dimensions (not detectable here), this returned the standard deviation"),
    entry("logsumexp", "1.6.0..<1.9.0", _is_complex, "reduces complex numbers, which 1.6 to 1.8 refuse"),
    entry("dist", "1.6.0..<1.7.0", _is_complex, "computes a distance of complex numbers, and squares them without taking absolute values"),
    entry("norm|dist|frobenius_norm|nuclear_norm", "1.7.0..<1.8.0", _is_complex, "computes a norm of complex numbers, which 1.7 supports for some powers, returning complex numbers"),
    entry("(arc|a)(sin|cos)_?", "1.6.0..<1.7.0", _is_complex, "computes an inverse trigonometric function of complex numbers, which 1.6 rounds differently"),
    entry("(arc|a)(sin|cos)_?", "1.7.0..<2.7.0", _infinite_and_real, "computes an inverse trigonometric function of infinite complex numbers on the real axis, where the sign of a NaN decides"),
    entry("(arc|a)tan_?", "1.6.0..<2.7.0", _imaginary, "computes an arctangent of imaginary numbers, which some releases compute on the other side of the branch cut"),
    entry("all|any", "1.8.0..<2.4.0", _imaginary, "treats complex numbers with a real part of zero as zero"),
    entry("put|resize|resize_as|embedding_renorm", "..<1.13.0", _into_out, "copies into out=, which 1.12 refuses"),
    entry("matrix_exp", "1.7.0..<1.8.0", _is_complex, "computes the exponential of a complex matrix: 1.7 gets it wrong unless the matrix is small"),
    entry("orgqr", "1.8.0..<1.9.0", _is_complex, "computes complex factors, which 1.8 reads in a different order"),
    entry("pow", "..<1.6.0", _into_other_dtype, "up to 1.5, computes in the dtype of out="),
    entry("histogram|histogramdd", "..<2.0.0", _nan, "counts NaN elements, which land in an arbitrary bin up to 1.13"),
    entry("as_strided_scatter", "..<2.0.0", _apart_in_memory, "up to 1.13, writes into a copy of the tensor instead of its whole storage"),
)  # fmt: skip


def entries_of(name: str, horizon: Release) -> list[UnmodelledCalls]:
    """The entries that may apply to an operator at a horizon."""
    return [calls for calls in not_modelled(name) if horizon in calls.releases]


@lru_cache(maxsize=1024)
def not_modelled(name: str) -> tuple[UnmodelledCalls, ...]:
    """The entries that may apply to an operator at some horizon."""
    short = name.removeprefix("aten::")
    return tuple(item for item in ENTRIES if re.fullmatch(item.operators, short))


def checked(name: str, call: Callable[..., Any], horizon: Release) -> Callable[..., Any]:
    """Wrap an operator to refuse calls that are not modelled; it is returned unchanged if there are none.

    Raises:
        Unsupported: from the returned operator.
    """
    result = entries_of(name, horizon)
    if not result:
        return call

    def check(*args: Any, **keywords: Any) -> Any:
        for calls in result:
            if calls.applies(args, keywords):
                raise Unsupported(f"{name} {calls.reason}", code="operator")
        return call(*args, **keywords)

    return check
