"""Calls with out-of-range arguments that releases do not refuse, and for which the reference reader matches no release.

Such a call reads unrelated memory, or depends on how a number is converted to another dtype.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from torch_compat.runtime.dtypes import BFLOAT16, FLOAT16, as_dtype
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.unmodelled_calls import Calls, argument, empty, entry, first

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["OUT_OF_RANGE"]


def _sizes_other_than(count: int) -> Callable[[Calls, dict[str, Any]], bool]:
    return lambda args, _: len(args) > 1 and args[1].__class__ is list and len(args[1]) != count


def _unnamed_mode(args: Calls, keywords: dict[str, Any]) -> bool:
    """Whether a grid sampler has an invalid interpolation or padding mode."""
    modes = [argument(args, keywords, name, at, 0) for at, name in ((2, "interpolation_mode"), (3, "padding_mode"))]
    image = first(args)
    volumes = image is not None and image.ndim == 5  # volumes cannot be sampled with bicubic interpolation
    return any(mode.__class__ is int and mode not in {0, 1, 2} for mode in modes) or (volumes and modes[0] == 2)


FAR = 1e6
"""The location beyond which reflection with rounded numbers may end outside the image."""


def _places_elsewhere(args: Calls, keywords: dict[str, Any]) -> bool:
    """Whether locations in an image are NaN, or so far away (or infinite) that they become NaN or are reflected to outside of the image."""
    image, places = first(args), first(args[1:2])
    if image is None or places is None or image.ndim != 4 or places.dtype.kind != "f":
        return False
    padding = argument(args, keywords, "padding_mode", 3, 0)
    if padding == 2:
        return not bool((np.abs(places) < FAR).all())
    return padding == 1 and bool((np.isnan(places) if min(image.shape[2:]) > 1 else ~np.isfinite(places)).any())


def _corners_of_one_point(args: Calls, _keywords: dict[str, Any]) -> bool:
    array = first(args)
    wanted = args[1] if len(args) > 1 and args[1].__class__ is list else []
    align = len(args) > 2 and args[2] is True
    return array is not None and align and any(out == 1 != size for out, size in zip(wanted, array.shape[2:], strict=False))


def _windows_other_than(count: int) -> Callable[[Calls, dict[str, Any]], bool]:
    """Match fractional pooling with a list that does not have ``count`` numbers, or with empty windows."""
    return lambda args, keywords: (
        any(arg.__class__ is list and len(arg) != count for arg in args[1:3]) or _windows_of_nothing(args, keywords)
    )


def _windows_of_nothing(args: Calls, _keywords: dict[str, Any]) -> bool:
    return any(arg.__class__ is list and min(arg, default=1) < 1 for arg in args[1:3])


def _negative_size_of_nothing(args: Calls, _keywords: dict[str, Any]) -> bool:
    return empty(args, {}) and len(args) > 1 and args[1].__class__ is list and any(arg < 0 for arg in args[1])


def _negative_beside_zero(args: Calls, keywords: dict[str, Any]) -> bool:
    size = args[0] if args and args[0].__class__ is list else []
    return "out" in keywords and 0 in size and any(arg < 0 for arg in size if arg.__class__ is int)


def _high_order(args: Calls, _keywords: dict[str, Any]) -> bool:
    order, array = (
        (args[0], first(args[1:2])) if args[:1] and args[0].__class__ is int else (args[1] if len(args) > 1 else 0, first(args))
    )
    return order.__class__ is int and 20 < order % 2**32 < 171 and array is not None and array.dtype != np.float32


def _overflowing_order(args: Calls, _keywords: dict[str, Any]) -> bool:
    return any(arg.__class__ is int and (arg % 2**32 > 33 or arg >= 2**31) for arg in args[:2])


def _residuals_with_elements(_args: Calls, keywords: dict[str, Any]) -> bool:
    given = keywords.get("residuals")
    return given.__class__ is Tensor and given.array.shape != (0,)


def _no_ratio(args: Calls, keywords: dict[str, Any]) -> bool:
    limit = argument(args, keywords, "rcond", 2, None)
    return limit.__class__ is float and not limit < 1


def _scale_not_finite(_args: Calls, keywords: dict[str, Any]) -> bool:
    scale = keywords.get("scale")
    return scale.__class__ is float and not math.isfinite(scale)


def _causal_and_turned(args: Calls, keywords: dict[str, Any]) -> bool:
    scale = keywords.get("scale")
    return scale.__class__ in {int, float} and scale <= 0 and bool(argument(args, keywords, "is_causal", 5, False))


def _without_distance(args: Calls, keywords: dict[str, Any]) -> bool:
    """Whether two samples of complex numbers have the same position."""
    array, spacing = first(args), keywords.get("spacing")
    if array is None or array.dtype.kind != "c":
        return False
    for item in spacing if spacing.__class__ is list else [spacing]:
        places = first((item,))
        if places is None and item == 0:
            return True
        if (
            places is not None
            and places.ndim == 1
            and bool((places[1:] == places[:-1]).any() or (places[2:] == places[:-2]).any())
        ):
            return True
    return False


def _into_another_width(args: Calls, keywords: dict[str, Any]) -> bool:
    """Whether ``out`` holds wider or narrower floats, or complex parts, than the tensor."""
    array, out = first(args), keywords.get("out")
    if array is None or not isinstance(out, Tensor):
        return False
    kinds = {array.dtype.kind, out.array.dtype.kind}
    return kinds <= {"f", "c"} and bool(np.finfo(array.dtype).bits != np.finfo(out.array.dtype).bits)


def _half_into_another_type(args: Calls, keywords: dict[str, Any]) -> bool:
    array, out = first(args), keywords.get("out")
    halves = array is not None and array.dtype in {FLOAT16.array, BFLOAT16.array}
    return halves and isinstance(out, Tensor) and out.array.dtype != array.dtype


def _into_its_own_memory(args: Calls, keywords: dict[str, Any]) -> bool:
    array, outs = first(args), keywords.get("out")
    return array is not None and outs.__class__ is list and any(np.may_share_memory(array, out.array) for out in outs)


def _few_complex(args: Calls, keywords: dict[str, Any]) -> bool:
    array, correction = first(args), keywords.get("correction", 1)
    if array is None or array.dtype.kind != "c" or not isinstance(correction, int):
        return False
    return (array.shape[-1] if array.ndim else 1) <= correction


def _complex_without_spread(args: Calls, _keywords: dict[str, Any]) -> bool:
    """Whether all observations of a complex variable are equal."""
    array = first(args)
    if array is None or array.dtype.kind != "c" or not array.size:
        return False
    return not array.ndim or bool((array == array[..., :1]).all(axis=-1).any())


def _unnamed_bag(args: Calls, keywords: dict[str, Any]) -> bool:
    mode = argument(args, keywords, "mode", 4, 0)
    return mode.__class__ is int and mode not in {0, 1, 2}


def _negative_padding(args: Calls, keywords: dict[str, Any]) -> bool:
    padding = argument(args, keywords, "padding", 3, 0)
    return min(padding, default=0) < 0 if padding.__class__ is list else padding.__class__ is int and padding < 0


def _wide_divisor(args: Calls, keywords: dict[str, Any]) -> bool:
    divisor = argument(args, keywords, "divisor_override", 6, None)
    return divisor.__class__ is int and not -(1 << 31) <= divisor < 1 << 31


def _volumes_before_named(args: Calls, keywords: dict[str, Any]) -> bool:
    return 3 in (keywords.get("memory_format"), *(arg for arg in args[3:] if arg.__class__ is int))


def _factor_not_finite(_args: Calls, keywords: dict[str, Any]) -> bool:
    return any(isinstance(item := keywords.get(name), float) and not math.isfinite(item) for name in ("alpha", "beta"))


def _beyond_the_picture(args: Calls, keywords: dict[str, Any]) -> bool:
    """Whether scales create more points than the image has room for, even with the width of a filter."""
    array = first(args)
    wanted = args[1] if len(args) > 1 and args[1].__class__ is list else []
    factors = [argument(args, keywords, name, at, None) for at, name in ((3, "scales_h"), (4, "scales_w"))]
    return array is not None and any(
        isinstance(factor, float) and factor > 0 and (out - 0.5) / factor - max(1 / factor, 1) + 0.5 >= size
        for factor, out, size in zip(factors, wanted, array.shape[2:], strict=False)
    )


def _to_one_column(args: Calls, _keywords: dict[str, Any]) -> bool:
    """Whether the output has width 1 and another height; channels-last images with several channels are computed by other code."""
    array = first(args)
    if array is None or array.ndim != 4 or len(args) < 2 or args[1].__class__ is not list or len(args[1]) != 2:
        return False
    last = array.shape[1] > 1 and bool(array.transpose(0, 2, 3, 1).flags.c_contiguous)
    return args[1][1] == 1 and args[1][0] not in {1, array.shape[2]} and not last


def _turning(args: Calls, _keywords: dict[str, Any]) -> bool:
    """Whether a real matrix has complex eigenvalues."""
    array = first(args)
    if (
        array is None
        or array.dtype.kind != "f"
        or array.ndim < 2
        or array.shape[-1] != array.shape[-2]
        or not np.isfinite(array).all()
    ):
        return False
    return array.size > 0 and bool(np.linalg.eigvals(array.astype(np.float64)).imag.any())


def _scales(args: Calls, keywords: dict[str, Any], first_at: int) -> list[float]:
    """The scales given to an interpolation, which are its last arguments."""
    return [arg for arg in (*args[first_at:], *keywords.values()) if arg.__class__ is float]


def _beyond_the_last_point(args: Calls, keywords: dict[str, Any]) -> bool:
    """Whether scales create more points than there are between the first and the last."""
    array = first(args)
    wanted = args[1] if len(args) > 1 and args[1].__class__ is list else []
    align = len(args) > 2 and args[2] is True
    factors = _scales(args, keywords, 3)
    return (
        array is not None
        and not align
        and any(
            factor > 0 and (out - 0.5) / factor - 0.5 >= size
            for factor in factors
            for out, size in zip(wanted, array.shape[2:], strict=False)
        )
    )


def _infinite_scale(args: Calls, keywords: dict[str, Any]) -> bool:
    return any(math.isinf(number) for number in _scales(args, keywords, 2))


def _many_in_bfloat16(args: Calls, keywords: dict[str, Any]) -> bool:
    kind = as_dtype(argument(args, keywords, "dtype", 3, None))
    return kind is not None and kind.name == "bfloat16" and any(arg.__class__ is int and arg > 256 for arg in args[:2])


def _polynomial_of_nan(args: Calls, _keywords: dict[str, Any]) -> bool:
    x = args[0] if args else None
    return (
        bool(np.isnan(x.array).any())
        if x.__class__ is Tensor and x.array.dtype.kind == "f"
        else x.__class__ is float and math.isnan(x)
    )


def _no_places(args: Calls, keywords: dict[str, Any]) -> bool:
    """Whether an empty index is used to write into a nonempty tensor."""
    index = argument(args, keywords, "index", 2, None)
    return index.__class__ is Tensor and not index.array.size and not empty(args, keywords)


def _half_without_dimensions(args: Calls, _keywords: dict[str, Any]) -> bool:
    array = first(args)
    return array is not None and not array.ndim and array.dtype == BFLOAT16.array


def _powers_overflow(args: Calls, keywords: dict[str, Any]) -> bool:
    """Whether powers of complex numbers overflow in a Vandermonde matrix."""
    array, count = first(args), keywords.get("N", args[1] if len(args) > 1 else None)
    if array is None or array.dtype.kind != "c" or not array.size:
        return False
    count = array.shape[-1] if count.__class__ is not int else count
    with np.errstate(all="ignore"):
        largest = float(np.abs(array).max())
        return not math.isfinite(largest) or (
            largest > 1 and count * math.log(largest) > math.log(float(np.finfo(array.dtype).max)) - 1
        )


def _complex_power_of_nan(args: Calls, _keywords: dict[str, Any]) -> bool:
    array = first(args)
    return array is not None and array.dtype.kind == "c" and any(arg.__class__ is float and math.isnan(arg) for arg in args[1:2])


def _no_index_of_a_number(args: Calls, _keywords: dict[str, Any]) -> bool:
    """Whether a 0-dim tensor is indexed by an empty tensor."""
    return first(args) is not None and not first(args).ndim and empty(args[2:], {})


OUT_OF_RANGE: Final = (
    entry("index_select", "1.5.0..<2.1.0", _no_index_of_a_number, "selects nothing from a 0-dim tensor: the result is uninitialized memory"),
    entry("norm", "1.6.0..<1.7.0", _complex_power_of_nan, "computes a norm of complex numbers whose power is NaN"),
    entry("relu", "1.2.0..<1.3.0", _half_without_dimensions, "returns uint8 for a 0-dim tensor of bfloat16"),
    entry("linalg_vander", "1.12.0..<2.1.0", _powers_overflow, "overflows: the order of complex products determines whether the result is infinity or NaN"),
    entry("upsample_linear1d|upsample_bilinear2d|upsample_trilinear3d", "..<2.0.0", _beyond_the_last_point, "has scales that do not match its sizes, and reads past the last point"),
    entry("upsample_nearest1d|upsample_nearest2d|upsample_nearest3d", "1.13.0..<2.0.0", _infinite_scale, "has an infinite scale, for which 1.13 computes the points in two different ways"),
    entry("|".join(f"special_{name}" for name in ("chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w",
          "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w",
          "laguerre_polynomial_l", "legendre_polynomial_p")), "2.9.0..<2.14.0", _polynomial_of_nan, "evaluates a polynomial at NaN, where the loop ends before computing anything: uninitialized memory"),
    entry("scatter", "1.10.0..<1.11.0", _no_places, "does not write any elements, and returns uninitialized memory"),
    entry("tril_indices|triu_indices", "1.10.0..<1.13.0", _many_in_bfloat16, "computes indices in bfloat16, which cannot represent every integer above 256"),
    entry("_adaptive_avg_pool2d|adaptive_avg_pool2d|adaptive_max_pool2d", "..<2.1.0", _sizes_other_than(2), "accepts a list of too few or too many sizes, and may read past its end"),
    entry("_adaptive_avg_pool3d|adaptive_avg_pool3d|adaptive_max_pool3d", "..<2.1.0", _sizes_other_than(3), "accepts a list of too few or too many sizes, and may read past its end"),
    entry("_upsample_bilinear2d_aa|_upsample_bicubic2d_aa|_upsample_lanczos2d_aa", "..", _beyond_the_picture, "has scales that do not match its sizes, and filters points outside the image"),
    entry("addr_?|addmm_?|addmv_?|addbmm_?|baddbmm_?", "..", _factor_not_finite, "scales by a factor that is not finite: the library determines whether the result is infinity or NaN"),
    entry("grid_sampler(_[23]d)?", "..", _unnamed_mode, "samples with an invalid interpolation or padding mode, and reads or returns uninitialized memory"),
    entry("grid_sampler(_2d)?", "..<1.7.0", _places_elsewhere, "samples at locations that are nonfinite, or too far away to be reflected, and reads unrelated memory; 1.7 and newer clip them"),
    entry("_?embedding_bag(_forward_only)?", "..<2.13.0", _unnamed_bag, "reduces with an invalid mode, and reads uninitialized memory"),
    entry("avg_pool1d|avg_pool2d|avg_pool3d|max_pool1d|max_pool2d|max_pool3d|max_pool1d_with_indices|max_pool2d_with_indices|max_pool3d_with_indices", "..<1.13.0", _negative_padding, "pools with negative padding, which 1.13 and newer refuse"),
    entry("as_strided_", "..<1.6.0", lambda args, _: len(args) > 2 and args[2].__class__ is list and min(args[2], default=0) < 0,
           "has a negative stride, which 1.6 and newer refuse"),
    entry("avg_pool2d|avg_pool3d", "..<2.5.0", _wide_divisor, "divides by a number that does not fit into 32 bits; some releases truncate it"),
    entry("fractional_max_pool2d", "..<1.10.0", _windows_other_than(2), "pools windows whose sizes are not checked"),
    entry("fractional_max_pool3d", "..<1.10.0", _windows_other_than(3), "pools windows whose sizes are not checked"),
    entry("fractional_max_pool2d|fractional_max_pool3d", "1.10.0..", _windows_of_nothing, "pools windows whose sizes are not checked"),
    entry("_adaptive_avg_pool2d|_adaptive_avg_pool3d|adaptive_avg_pool1d|adaptive_avg_pool2d|adaptive_avg_pool3d|adaptive_max_pool1d|adaptive_max_pool2d|adaptive_max_pool3d", "..", _negative_size_of_nothing, "has no elements and a negative output size, which is not checked"),
    entry("_upsample_bilinear2d_aa|_upsample_bicubic2d_aa|_upsample_lanczos2d_aa", "..", _corners_of_one_point, "aligns the corners of a single point with antialias"),
    entry("zeros|ones|full|empty", "..", _negative_beside_zero, "resizes out= to a shape with a negative size and a size of zero, which is not checked"),
    entry("(special_)?polygamma_?", "..", _high_order, "multiplies by a factorial that the C library computes as a logarithm, which affects the last bits"),
    entry("(special_)?polygamma_?", "..<2.0.0", _overflowing_order, "multiplies by a factorial that float32 cannot represent, in 64-bit arithmetic"),
    entry("linalg_lstsq", "..", _residuals_with_elements, "does not write residuals into a nonempty tensor, which remains unchanged"),
    entry("linalg_lstsq", "..", _no_ratio, "uses an rcond that is NaN or at least 1: which singular values remain depends on LAPACK"),
    entry("_?scaled_dot_product_attention(_math)?", "2.1.0..", _scale_not_finite, "scales by a number that is not finite: which rows are treated as masked depends on the kernel"),
    entry("scaled_dot_product_attention", "2.1.0..", _causal_and_turned, "is causal, and scales by zero or a negative number: which rows are treated as masked depends on the kernel"),
    entry("norm", "1.8.0..<1.10.0", _into_another_width, "reads the elements of out= as if they had the width of the input"),
    entry("norm", "..<1.8.0", _half_into_another_type, "computes a norm of 16-bit numbers in the dtype of out="),
    entry("split_copy|unbind_copy|split_with_sizes_copy", "..", _into_its_own_memory, "copies parts of a tensor into its own memory: later parts read values that have been overwritten"),
    entry("cov", "..", _few_complex, "divides complex numbers by zero: which parts are NaN depends on the release"),
    entry("corrcoef", "..", _complex_without_spread, "divides complex numbers by a spread of zero: which parts are NaN depends on the release"),
    entry("linalg_eig", "2.1.0..", _turning, "computes complex eigenvectors of a real matrix, whose signs depend on the LAPACK library"),
    entry("_upsample_bilinear2d_aa|_upsample_bicubic2d_aa|_upsample_lanczos2d_aa", "2.0.0..", _to_one_column, "resizes the height of an image whose new width is 1: every row of the result is the same"),
    entry("gradient", "..", _without_distance, "divides complex numbers by zero: which parts are NaN depends on the release"),
    entry("contiguous|clone|to|resize_|resize_as_", "..<1.5.0", _volumes_before_named, "uses the memory format channels_last_3d, which was added in 1.5"),
)  # fmt: skip
