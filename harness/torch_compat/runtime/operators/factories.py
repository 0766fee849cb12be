"""Factory functions: filled tensors, identity matrices, parts of matrices, windows, and tensors with the shape of another.

Without dtype, a filled tensor is float up to 1.5; 1.6 refuses integral fill values, and 1.7 uses the kind of the fill value.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.arrays import extent
from torch_compat.errors import Unsupported
from torch_compat.runtime import dtypes
from torch_compat.runtime.limits import meter
from torch_compat.runtime.operators._common import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT64,
    Array,
    Scalar,
    any_dtype,
    cast,
    checked_filler,
    checked_scalar,
    fail,
    filled_scalar,
    into,
    on_cpu,
    to_size,
    unaliased,
    wide,
)
from torch_compat.runtime.operators._memory_formats import check_rank, laid_as
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import Budget

if TYPE_CHECKING:
    from collections.abc import Callable

    Element = Callable[[Scalar, np.dtype[Any], int], Array]

# Arguments that every factory takes: names, layout, device, pin_memory, memory_format.
_IGNORED = frozenset({"names", "layout", "pin_memory", "memory_format", "requires_grad"})


def check_options(options: dict[str, Any]) -> None:
    """Refuse common factory arguments that are not supported here.

    Raises:
        Raised: another device or layout is requested.
        Unsupported: no overload takes the argument.
    """
    on_cpu(options.pop("device", None))
    if options.get("pin_memory"):
        raise fail(
            "pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator is available on this system."
        )
    for name, value in options.items():
        if name not in _IGNORED:
            raise Unsupported(f"the reference reader does not support the overload with {name}=", code="operator")
        if name == "layout" and value not in {None, 0, "strided"} and str(value) != "torch.strided":
            raise fail("the reference reader supports only strided tensors")


def to_out(array: Array, out: Tensor | None) -> Tensor:
    """The array as a tensor, or in ``out`` if given."""
    return Tensor(array) if out is None else into(out, array)


def default_type() -> np.dtype[Any]:
    """The default floating point dtype."""
    return dtypes.default_dtype().array


def kind_of(dtype: Any, otherwise: np.dtype[Any], out: Tensor | None) -> np.dtype[Any]:
    """The dtype of the result: the dtype of ``out`` if given, else the named dtype."""
    return any_dtype(dtype, otherwise) if out is None else out.array.dtype


KEEPS_ORDER = "1.5.0"
"""As of this release, tensors created like another tensor have its memory layout."""


def _filler(name: str, value: int) -> None:
    def call(size: Any, *, dtype: Any = None, out: Tensor | None = None, **options: Any) -> Tensor:
        check_options(options)
        return to_out(np.full(to_size(size), value, kind_of(dtype, default_type(), out)), out)

    def like(self: Tensor, *, dtype: Any = None, out: Tensor | None = None, **options: Any) -> Tensor:
        check_options(options)
        check_rank(self.array.ndim, options.get("memory_format"))
        return to_out(np.full(self.array.shape, value, kind_of(dtype, self.array.dtype, out)), out)

    def laid(self: Tensor, *, dtype: Any = None, out: Tensor | None = None, **options: Any) -> Tensor:
        check_options(options)
        array = laid_as(self.array, kind_of(dtype, self.array.dtype, out), options.get("memory_format"))
        array[...] = value
        return to_out(array, out)

    def new(self: Tensor, size: Any, *, dtype: Any = None, out: Tensor | None = None, **options: Any) -> Tensor:
        check_options(options)
        return to_out(np.full(to_size(size), value, kind_of(dtype, self.array.dtype, out)), out)

    operator(f"aten::{name}", gradient=False)(call)
    operator(f"aten::{name}_like", gradient=False)(like)
    operator(f"aten::{name}_like", since=KEEPS_ORDER, gradient=False)(laid)
    operator(f"aten::new_{name}", gradient=False)(new)


_filler("zeros", 0)
_filler("ones", 1)
_filler("empty", 0)  # the contents are undefined


@operator("aten::empty_strided", gradient=False)
def empty_strided(size: list[int], stride: list[int], *, dtype: Any = None, **options: Any) -> Tensor:
    """An uninitialized tensor with given strides."""
    check_options(options)
    kind = any_dtype(dtype, default_type())
    shape = to_size(size)
    if len(shape) != len(stride):
        raise fail(f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides ({len(stride)})")
    if any(step < 0 for step in stride):
        raise fail(f"empty_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    (room,) = to_size(extent(shape, stride)[1] if 0 not in shape else 0)
    return Tensor(np.zeros(room, kind)).as_strided(shape, tuple(stride))


@operator("aten::new_empty_strided", gradient=False)
def new_empty_strided(self: Tensor, size: list[int], stride: list[int], *, dtype: Any = None, **options: Any) -> Tensor:
    """A tensor with given strides, by default with the dtype of the tensor."""
    return empty_strided(size, stride, dtype=self.dtype if dtype is None else dtype, **options)


# ----------------------------------------------------------------------------------------------------------------- full


def _fulls() -> None:
    def version(since: str, kind_of: Callable[[Scalar], np.dtype[Any]], element: Element = checked_filler) -> None:
        def call(size: Any, fill_value: Any, *, dtype: Any = None, out: Tensor | None = None, **options: Any) -> Tensor:
            check_options(options)
            fill = fill_value.item() if fill_value.__class__ is Tensor else fill_value
            named = dtypes.as_dtype(dtype)
            kind = out.array.dtype if out is not None else kind_of(fill) if named is None else named.array
            shape = to_size(size)
            array = np.full(shape, element(fill, kind, math.prod(shape)), kind)
            return Tensor(array) if out is None else into(out, array)

        operator("aten::full", since=since, gradient=False)(call)

    def float_always(fill: Scalar) -> np.dtype[Any]:
        return dtypes.of_scalar(fill).array if fill.__class__ is complex else default_type()

    def refuse(fill: Scalar) -> np.dtype[Any]:
        if fill.__class__ in {bool, int}:
            raise fail(
                "Providing a bool or integral fill value without setting the optional `dtype` or `out` arguments is currently unsupported. In "
                "PyTorch 1.7, when `dtype` and `out` are not set a bool fill value will return a tensor of torch.bool dtype, and an integral "
                "fill value will return a tensor of torch.long dtype."
            )
        return float_always(fill)

    version("1.0.0", float_always)
    version("1.6.0", refuse)
    version("1.7.0", lambda fill: dtypes.of_scalar(fill).array)
    version("2.8.0", lambda fill: dtypes.of_scalar(fill).array, filled_scalar)


_fulls()


def _fulls_of_others() -> None:
    def version(since: str, element: Element, *, keeps: bool = True, alone: bool = False) -> None:
        def like(self: Tensor, fill_value: Scalar, *, dtype: Any = None, out: Tensor | None = None, **options: Any) -> Tensor:
            check_options(options)
            kind = kind_of(dtype, self.array.dtype, out)
            array = laid_as(self.array, kind, options.get("memory_format") if keeps else 0)
            array[...] = element(fill_value, kind, array.size)
            return to_out(array, out)

        def new(
            self: Tensor, size: Any, fill_value: Scalar, *, dtype: Any = None, out: Tensor | None = None, **options: Any
        ) -> Tensor:
            check_options(options)
            kind = kind_of(dtype, self.array.dtype, out)
            shape = to_size(size)
            return to_out(np.full(shape, element(fill_value, kind, math.prod(shape)), kind), out)

        def scalar(s: Scalar, *, dtype: Any = None, out: Tensor | None = None, **options: Any) -> Tensor:
            if options.get("pin_memory"):
                raise fail("pin_memory=True requires a CUDA or other accelerator backend")
            check_options(options)
            return to_out(element(s, kind_of(dtype, default_type(), out), 1), out)

        operator("aten::full_like", since=since, gradient=False)(like)
        if alone:
            return
        operator("aten::new_full", since=since, gradient=False)(new)
        operator("aten::scalar_tensor", since=since, gradient=False)(scalar)

    version("1.0.0", checked_filler, keeps=False)
    version(KEEPS_ORDER, checked_filler, alone=True)
    version("2.8.0", filled_scalar)


_fulls_of_others()


@operator("aten::eye", gradient=False)
def eye_1_0(n: int, m: int | None = None, *, dtype: Any = None, out: Tensor | None = None, **options: Any) -> Tensor:
    """Up to 1.7 a negative number of columns counts as not given."""
    return eye(n, None if m is not None and m < 0 else m, dtype=dtype, out=out, **options)


@operator("aten::eye", gradient=False, since="1.8.0")
def eye(n: int, m: int | None = None, *, dtype: Any = None, out: Tensor | None = None, **options: Any) -> Tensor:
    """Ones on the diagonal."""
    check_options(options)
    if n < 0:
        raise fail(f"n must be greater or equal to 0, got {n}")
    if m is not None and m < 0:
        raise fail(f"m must be greater or equal to 0, got {m}")
    meter.array(n * (n if m is None else m))
    array = np.eye(n, m, dtype=any_dtype(dtype, default_type()) if out is None else out.array.dtype)
    return Tensor(array) if out is None else into(out, array)


def _tensors() -> None:
    def version(since: str, floats: Callable[[], np.dtype[Any]], bools: np.dtype[Any], *, reads_nothing: bool = False) -> None:
        """With ``reads_nothing``, lists are not read if the sizes of the first list on each level leave no room for an element."""

        def call(
            data: Scalar | Tensor | list[Any], *, dtype: Any = None, device: Any = None, requires_grad: bool = False
        ) -> Tensor:
            """A number, or lists of numbers, as a tensor: first in the dtype of the numbers, then converted to the requested dtype."""
            on_cpu(device)
            if data.__class__ is Tensor:
                tensor = Tensor(cast(data.array, any_dtype(dtype, data.array.dtype)))
                tensor.array = tensor.array.copy()
                return tensor
            kinds = {leave.__class__ for leave in _leaves(data, Budget())}
            if not kinds <= {bool, int, float, complex}:
                raise fail(
                    f"Could not infer dtype of {next(item.__name__ for item in kinds if item not in {bool, int, float, complex})}"
                )
            if complex in kinds:
                kind = dtypes.of_scalar(1j).array
            elif float in kinds:
                kind = floats()
            elif not kinds:
                kind = default_type()
            else:
                kind = INT64 if int in kinds else bools
            if data.__class__ is float:
                checked_scalar(data, kind)
            shape = _first_sizes(data)
            if reads_nothing and 0 in shape:
                array = np.zeros(to_size(shape), kind)
            else:
                _same_lengths(data)
                wide: Any = FLOAT64 if kind == FLOAT32 else kind
                array = np.asarray(data, wide).astype(kind)
            result = Tensor(cast(array, any_dtype(dtype, kind)).copy())
            if requires_grad and result.dtype.category < 2:
                raise fail("Only Tensors of floating point and complex dtype can require gradients")
            result.requires_grad = requires_grad
            return result

        operator("aten::tensor", "aten::as_tensor", since=since, gradient=False)(call)

    def double() -> np.dtype[Any]:
        return FLOAT64

    version("1.0.0", double, np.dtype(np.uint8))
    version("1.2.0", double, BOOL)
    version("1.6.0", default_type, BOOL)
    version("1.7.0", default_type, BOOL, reads_nothing=True)


_tensors()


def _first_sizes(data: Any) -> tuple[int, ...]:
    """The lengths of a list, of the first list in it, and so on."""
    sizes = []
    while data.__class__ in {list, tuple}:
        sizes.append(len(data))
        if not data:
            break
        data = data[0]
    return tuple(sizes)


def _same_lengths(data: Any, dim: int = 0) -> None:
    """Check that all lists on a level are as long as the first one.

    Raises:
        Raised: a list has another length.
    """
    row = data
    level = [data]
    while row.__class__ in {list, tuple}:
        for entry in level:
            if len(entry) != len(row):
                raise fail(f"Expected sequence of length {len(row)} at dim {dim} (got {len(entry)})")
        level = [item for element in level for item in element]
        if not level:
            return
        row, dim = level[0], dim + 1


def _leaves(data: Any, budget: Budget) -> list[Any]:
    if data.__class__ in {list, tuple}:
        budget.take(len(data))
        return [leaf for byte in data for leaf in _leaves(byte, budget)]
    return [data]


# ----------------------------------------------------------------------------------------------------- parts of matrices


LONG = 4  # the number of int64


def _triangle(name: str, keep: Any) -> None:
    def call_1_0(self: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
        """Up to 1.13 tensors without elements are not checked."""
        if self.array.size:
            return call(self, diagonal, out=out)
        return Tensor(self.array.copy()) if out is None else into(out, self.array)

    def in_place_1_0(self: Tensor, diagonal: int = 0) -> Tensor:
        return in_place(self, diagonal) if self.array.size else self

    def call(self: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
        if self.array.ndim < 2:
            raise fail(f"{name}: input tensor must have at least 2 dimensions")
        array = keep(self.array, diagonal).astype(self.array.dtype)
        return Tensor(array) if out is None else into(out, array)

    def in_place(self: Tensor, diagonal: int = 0) -> Tensor:
        if self.array.ndim < 2:
            raise fail(f"{name}: input tensor must have at least 2 dimensions")
        unaliased(self.array)
        self.array[...] = keep(self.array, diagonal).astype(self.array.dtype)
        return self

    def indices_1_0(
        row: int, col: int, offset: int = 0, *, dtype: Any = LONG, out: Tensor | None = None, **options: Any
    ) -> Tensor:
        """Up to 1.8 None stands for the default dtype, not for int64."""
        return indices_1_9(row, col, offset, dtype=dtypes.default_dtype() if dtype is None else dtype, out=out, **options)

    def indices_1_9(
        row: int, col: int, offset: int = 0, *, dtype: Any = None, out: Tensor | None = None, **options: Any
    ) -> Tensor:
        """Up to 1.11 the lower triangle of a matrix without rows has one row if the diagonal excludes nothing of that row."""
        first = name == "tril" and row == 0 and offset >= col
        return indices(1 if first else row, col, offset, dtype=dtype, out=out, **options)

    def indices(row: int, col: int, offset: int = 0, *, dtype: Any = None, out: Tensor | None = None, **options: Any) -> Tensor:
        check_options(options)
        meter.array(3 * max(row, 0) * max(col, 0))
        rows, columns = np.nonzero(keep(np.ones((row, col), BOOL), offset))
        return to_out(np.stack([rows, columns]).astype(any_dtype(dtype, INT64)), out)

    operator(f"aten::{name}")(call_1_0)
    operator(f"aten::{name}_")(in_place_1_0)
    operator(f"aten::{name}", since="2.0.0")(call)
    operator(f"aten::{name}_", since="2.0.0")(in_place)
    operator(f"aten::{name}_indices", gradient=False)(indices_1_0)
    operator(f"aten::{name}_indices", gradient=False, since="1.9.0")(indices_1_9)
    if name == "tril":
        operator("aten::tril_indices", gradient=False, since="1.12.0")(indices)


_triangle("tril", np.tril)
_triangle("triu", np.triu)


@operator("aten::one_hot", gradient=False)
def one_hot(self: Tensor, num_classes: int = -1) -> Tensor:
    """One-hot encoding of class indices."""
    array = self.array
    if array.dtype != INT64:
        raise fail("one_hot is only applicable to index tensor of type LongTensor.")
    if array.size and array.min() < 0:
        raise fail("Class values must be non-negative.")
    if num_classes <= 0 and not array.size:
        raise fail("Can not infer total number of classes from empty tensor.")
    if num_classes == -1:
        if not array.size:
            raise fail("Can not infer total number of classes from empty tensor.")
        num_classes = int(array.max()) + 1
    if array.size * num_classes >= 2**60:
        raise fail(f"Storage size calculation overflowed with sizes={[*array.shape, num_classes]}")
    if array.size and int(array.max()) >= num_classes:
        raise fail("Class values must be smaller than num_classes.")
    meter.array(array.size * num_classes)
    return Tensor((array[..., None] == np.arange(num_classes)).astype(INT64, order="C"))


# ---------------------------------------------------------------------------------------------------------------- windows


def _step(array: Any, kind: np.dtype[Any]) -> Array:
    """A step of computing a window: rounded to its dtype, then widened as torch does for the next step."""
    return wide(cast(np.asarray(array), kind))


def _window(name: str, shape: Callable[..., Array]) -> None:
    def call(
        window_length: int, periodic: bool = True, *args: float, dtype: Any = None, out: Tensor | None = None, **options: Any
    ) -> Tensor:
        check_options(options)
        kind = any_dtype(dtype, default_type()) if out is None else out.array.dtype
        if window_length < 0:
            raise fail(f"{name}_window requires non-negative window_length, got window_length={window_length}")
        meter.array(4 * window_length)
        if window_length <= 1:
            return to_out(np.ones(window_length, kind), out)
        last = window_length if periodic else window_length - 1
        return to_out(shape(_step(np.arange(window_length), kind), last, kind, *args).astype(kind), out)

    def call_1_5(
        window_length: int, periodic: bool = True, *args: float, dtype: Any = None, out: Tensor | None = None, **options: Any
    ) -> Tensor:
        """From 1.5 to 1.12, a missing dtype in a program means that of the length, an integer, which is refused for more than one element."""
        if dtype is None and out is None and window_length > 1:
            raise fail("result type Float can't be cast to the desired output type Long")
        return call(window_length, periodic, *args, dtype=dtype, out=out, **options)

    operator(f"aten::{name}_window", gradient=False)(call)
    operator(f"aten::{name}_window", gradient=False, since="1.5.0")(call_1_5)
    operator(f"aten::{name}_window", gradient=False, since="1.13.0")(call)


def _hamming(n: Array, last: int, kind: np.dtype[Any], alpha: float = 0.54, beta: float = 0.46) -> Array:
    waves = _step(np.cos(_step(n * _step(2 * np.pi / last, kind), kind).astype(FLOAT64)), kind)
    return _step(_step(waves * _step(-beta, kind), kind) + _step(alpha, kind), kind)


def _hann(n: Array, last: int, kind: np.dtype[Any]) -> Array:
    return _hamming(n, last, kind, 0.5, 0.5)


def _blackman(n: Array, last: int, kind: np.dtype[Any]) -> Array:
    angle = _step(n * _step(np.pi / last, kind), kind)
    twice, once = (_step(np.cos(_step(angle * times, kind).astype(FLOAT64)), kind) for times in (4, 2))
    waves = _step(twice * _step(0.08, kind), kind) - _step(once * _step(0.5, kind), kind)
    return _step(_step(waves, kind) + _step(0.42, kind), kind)


def _bartlett(n: Array, last: int, kind: np.dtype[Any]) -> Array:
    rising = _step(n * _step(2 / last, kind), kind)
    return np.where(np.arange(len(n)) <= last // 2, rising, _step(2 - rising, kind))


def _kaiser(n: Array, last: int, kind: np.dtype[Any], beta: float = 12.0) -> Array:
    del kind  # each element is computed at once
    return np.i0(beta * np.sqrt(1 - (2 * n.astype(FLOAT64) / last - 1) ** 2)) / np.i0(beta)


for _name, _shape in (
    ("hann", _hann),
    ("hamming", _hamming),
    ("blackman", _blackman),
    ("bartlett", _bartlett),
    ("kaiser", _kaiser),
):
    _window(_name, _shape)
