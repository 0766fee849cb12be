"""Operators of the interpreter itself: strings of values, futures, properties of tensors."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.escapes import escaped_output
from torch_compat.runtime import dtypes
from torch_compat.runtime.hash_order import number_hash, text_hash
from torch_compat.runtime.iterated import suggests_channels_last
from torch_compat.runtime.opaque import sizes_of
from torch_compat.runtime.operators._common import FLOAT32, scalar_as
from torch_compat.runtime.registry import grad, operator
from torch_compat.runtime.string_conversion import joined, shown
from torch_compat.runtime.tensor import OpaqueTensor, Tensor
from torch_compat.runtime.values import Device, Future, bounded, raised


def _tensor(value: Any) -> Any:
    """Return the value, which must be a tensor: programs may ask for properties of any value, but must not get Python's own.

    Raises:
        Raised: the value is not a tensor.
    """
    if value.__class__ is not Tensor:
        raise raised("RuntimeError", f"expected a Tensor, found a {type(value).__name__}")
    return value


def _any_tensor(value: Any) -> Any:
    return value if value.__class__ is OpaqueTensor else _tensor(value)


def _device(value: Any) -> Device:
    if value.__class__ is not Device:
        raise raised("RuntimeError", f"expected a Device, found a {type(value).__name__}")
    return value


def _in_texts(since: str, *, by_magnitude: bool) -> None:
    """Register strings of values; since 2.8 tensors are scaled by their largest magnitude, and single numbers have all their digits."""

    def str_(elem: Any) -> str:
        """str(elem)."""
        return shown(elem, by_magnitude=by_magnitude)

    def format_(self: str, *args: Any) -> str:
        """Replace each ``{}`` of a string with the next argument."""
        parts = self.split("{}")
        if len(parts) - 1 > len(args):
            raise raised("RuntimeError", "Too few arguments for format string: " + self)
        results = [parts[0]]
        for part, arg in zip(parts[1:], args, strict=False):
            results += [shown(arg, by_magnitude=by_magnitude), part]
        return joined(results)

    def percent_format(self: str, *args: Any) -> str:
        """``self % args``, for the few formats that torch supports."""
        return _percent_format(
            self, args[0] if len(args) == 1 and args[0].__class__ is tuple else args, by_magnitude=by_magnitude
        )

    for name, function in (("str", str_), ("format", format_), ("percentFormat", percent_format)):
        operator(f"aten::{name}", of="any", since=since)(function)


def _int32(value: float) -> int:
    """A float as a C++ ``int``, the way the processor converts it: the smallest one if it does not fit."""
    return int(value) if -(2.0**31) - 1 < value < 2.0**31 else -(1 << 31)


def _percent_format(self: str, args: tuple[Any, ...], *, by_magnitude: bool) -> str:
    findings, left, used = [], self, 0
    while True:
        before, mark, left = left.partition("%")
        findings.append(before)
        if not mark:
            break
        code, left = left[:1], left[1:]
        if code == "%":
            findings.append("%")
            continue
        if used >= len(args):
            raise raised("RuntimeError", "Too few arguments for format string")
        value, used = args[used], used + 1
        if code in {"d", "i"}:
            if value.__class__ not in {int, float}:
                raise raised("RuntimeError", f"%{code} requires a number for formatting, but got {type(value).__name__}")
            findings.append(str(value if value.__class__ is int else _int32(value)))
        elif code in {"f", "F", "e", "E"}:
            if value.__class__ not in {int, float}:
                raise raised("RuntimeError", f"%{code} requires a number for formatting, but got {type(value).__name__}")
            with np.errstate(over="ignore"):
                findings.append(f"{float(scalar_as(float(value), FLOAT32)):{code}}")  # torch formats a 32-bit float
        elif code == "s":
            findings.append(shown(value, by_magnitude=by_magnitude))
        elif code == "c":
            if value.__class__ is not int and not (value.__class__ is str and len(value) == 1):
                raise raised("RuntimeError", f"%c requires an int or char for formatting, but got {type(value).__name__}")
            findings.append(value if isinstance(value, str) else chr(value & 0xFF))
        else:
            raise raised("RuntimeError", f"The specifier %{code} is not supported in TorchScript format strings")
    if used < len(args):
        raise raised("RuntimeError", "Too many arguments for format string")
    return joined(findings)


_in_texts("1.0.0", by_magnitude=False)
_in_texts("2.8.0", by_magnitude=True)


@operator("prim::Print", of="any")
def print_(*args: Any) -> None:
    """Print to standard error, because standard output is for data."""
    text = " ".join("<tensor>" if arg.__class__ is Tensor else shown(arg) for arg in args)
    sys.stderr.write(escaped_output(text) + "\n")  # standard error may be a terminal


@operator("aten::warn", "aten::warnings", of="any")
def warn(*_: Any, **__: Any) -> None:
    """Do nothing: warnings do not affect results."""


@operator("prim::NumToTensor", of="any")
def num_to_tensor_1_0(a: Any) -> Tensor:
    """Up to 1.2 a bool becomes an integer."""
    return num_to_tensor(int(a) if a.__class__ is bool else a)


@operator("prim::NumToTensor", of="any", since="1.3.0")
@operator("aten::NumToTensor", of="any")
def num_to_tensor(a: Any) -> Tensor:
    """Convert a number to a 0-dim tensor."""
    if a.__class__ is Tensor:
        return a
    if a.__class__ not in {bool, int, float, complex}:
        raise raised("RuntimeError", f"expected a number, found a {type(a).__name__}")
    return Tensor(np.array(a, dtypes.FLOAT64.array if a.__class__ is float else dtypes.of_scalar(a).array))


@operator("prim::dtype", of="any")
def dtype(a: Any) -> int:
    """The code of the dtype."""
    return int(_any_tensor(a).dtype.code)


@operator("prim::device", of="any")
def device(a: Any) -> Device:
    """The device of a tensor, which is always the CPU."""
    del a
    return Device("cpu")


DEVICE_TYPES = frozenset({
    "cpu", "cuda", "fpga", "hip", "hpu", "ideep", "ipu", "lazy", "maia", "meta", "mkldnn", "mlc", "mps", "msnpu", "mtia", "opencl", "opengl",
    "ort", "privateuseone", "ve", "vulkan", "xla", "xpu",
})  # fmt: skip
"""The device types that exist in any release; every release has the first two."""


@operator("aten::device", of="any")
def device_of(a: str, index: int | None = None) -> Device:
    """torch.device(a)."""
    if a.__class__ is not str or (index.__class__ is not int and index is not None):
        raise raised("RuntimeError", "expected a device string and an optional index")
    kind = a.partition(":")[0]
    if kind not in DEVICE_TYPES:
        message = (
            f"Expected one of cpu, cuda, ... device type at start of device string: {a[:80]}"
            if a
            else "Device string must not be empty"
        )
        raise raised("RuntimeError", message)
    return Device(a, index)


@operator("prim::type", of="any")
def type_(a: Device) -> str:
    """The type of a device."""
    return _device(a).type


@operator("prim::index", of="any")
def index(a: Device) -> int | None:
    """The index of a device."""
    return _device(a).index


@operator("prim::layout", of="any")
def layout(a: Any) -> int:
    """The code of the layout, which is always strided."""
    del a
    return 0


@operator("prim::requires_grad", "aten::requires_grad", of="any")
def requires_grad(a: Tensor) -> bool:
    """Whether a tensor requires gradients."""
    tensor = _any_tensor(a)
    return bool(tensor.requires_grad or grad.reaches(tensor))


@operator("prim::shape", of="any")
def shape(a: Tensor) -> list[int]:
    """The shape of a tensor."""
    return list(sizes_of(_any_tensor(a)))


@operator("prim::ndim", of="any")
def ndim(a: Tensor) -> int:
    """The number of dimensions."""
    return len(sizes_of(_any_tensor(a)))


@operator("prim::itemsize", of="any")
def itemsize(a: Tensor) -> int:
    """The number of bytes of an element."""
    return int(_tensor(a).array.itemsize)


@operator("prim::is_cuda", "prim::is_meta", "prim::is_xla", "prim::is_mps", "prim::is_vulkan", "prim::is_ipu", "prim::is_hpu",
          "prim::is_maia", "prim::is_xpu", "prim::is_mtia", "aten::is_cuda", of="any")  # fmt: skip
def is_elsewhere(a: Any) -> bool:
    """Whether a tensor is on another device: always false, everything is on the CPU."""
    del a
    return False


@operator("prim::is_quantized", of="any")
def is_quantized(a: Any) -> bool:
    """Whether a tensor is quantized."""
    return a.__class__ is OpaqueTensor and a.dtype.name.startswith("q")


def _of_layout(name: str, layout: str) -> None:
    def found(a: Any) -> bool:
        """Whether a tensor has this layout."""
        return a.__class__ is OpaqueTensor and a.layout == layout

    operator(f"prim::{name}", of="any")(found)


for _name, _layout in (
    ("is_sparse", "sparse_coo"), ("is_sparse_csr", "sparse_csr"), ("is_mkldnn", "_mkldnn"), ("is_nested", "nested")
):  # fmt: skip
    _of_layout(_name, f"torch.{_layout}")


@operator("prim::is_cpu", of="any")
def is_cpu(a: Any) -> bool:
    """Whether a tensor is on the CPU: always true."""
    del a
    return True


@operator("prim::data", of="any", gradient=False)
def data(a: Tensor) -> Tensor:
    """The same memory, detached from gradients."""
    tensor = Tensor(_tensor(a).array)
    tensor.is_detached = True
    return tensor


@operator("prim::grad", of="any")
def grad_of(a: Tensor) -> None:
    """The gradient of a tensor: always None, because gradients are never computed."""
    del a


@operator("prim::is_leaf", of="any")
def is_leaf_attribute(a: Tensor) -> bool:
    """Whether a tensor is a leaf."""
    return is_leaf(_tensor(a))


@operator("aten::is_leaf", gradient=False)
def is_leaf(self: Tensor) -> bool:
    """Whether a tensor is a leaf: neither computed from tensors that require gradients nor written to with them."""
    return self.is_leaf and not (grad.reaches(self) and not self.requires_grad)


@operator("aten::output_nr", gradient=False)
def output_nr(self: Tensor) -> int:
    """The index of a tensor among the outputs of its operator: 0 if it is a leaf or does not require gradients."""
    if self.requires_grad and not self.is_leaf:
        raise Unsupported("the reference reader does not know which result of its operator this tensor is", code="operator")
    return 0


@operator("aten::retain_grad", gradient=False)
def retain_grad(self: Tensor) -> None:
    """Keep the gradient of a leaf; gradients are never computed.

    Raises:
        Raised: the tensor does not require gradients.
        Unsupported: the tensor is not a leaf.
    """
    if not (self.requires_grad or grad.reaches(self)):
        raise raised("RuntimeError", "can't retain_grad on Tensor that has requires_grad=False")
    if not is_leaf(self):
        raise Unsupported("the reference reader does not record which tensors retain their gradients", code="operator")


@operator("aten::retains_grad", gradient=False)
def retains_grad(self: Tensor) -> bool:
    """Whether the gradient of a non-leaf tensor is kept: always false."""
    del self
    return False


@operator("aten::get_device", gradient=False)
def get_device(self: Tensor) -> int:
    """The index of the device: -1 for the CPU."""
    del self
    return -1


@operator("aten::is_pinned", gradient=False)
def is_pinned(self: Tensor, device: Any = None) -> bool:
    """Whether a tensor is in pinned memory: always false."""
    del self, device
    return False


@operator("aten::is_coalesced", gradient=False)
def is_coalesced(self: Tensor) -> bool:
    """Refused: only sparse tensors have this property."""
    del self
    raise raised("RuntimeError", "is_coalesced expected sparse coordinate tensor layout but got Strided")


def _sparse_alone(name: str) -> None:
    def dimensions(self: Tensor) -> int:
        del self
        raise raised("RuntimeError", f"Could not run 'aten::{name}' with arguments from the 'CPU' backend.")

    operator(f"aten::{name}", gradient=False)(dimensions)


_sparse_alone("dense_dim")
_sparse_alone("sparse_dim")
operator("aten::dense_dim", since="2.0.0", gradient=False)(lambda self: self.ndim)
operator("aten::sparse_dim", since="2.0.0", gradient=False)(lambda self: 0 * self.ndim)


@operator("aten::is_non_overlapping_and_dense", gradient=False)
def is_non_overlapping_and_dense(self: Tensor) -> bool:
    """Whether the elements are stored without gaps, in any order of the dimensions."""
    steps = sorted((step, size) for size, step in zip(self.shape, self.strides, strict=True) if size != 1)
    expected = 1
    for step, size in steps:
        if step != expected:
            return not self.numel
        expected *= size
    return True


CHANNELS_LAST = {2: 4, 3: 5}
"""The channels-last memory formats, and the number of dimensions of their tensors."""


@operator("aten::is_strides_like_format", gradient=False)
def is_strides_like_format(self: Tensor, memory_format: int) -> bool:
    """Whether the strides match the channels-last format."""
    return CHANNELS_LAST.get(memory_format) == self.ndim and suggests_channels_last(self.shape, self.strides)


@operator("aten::hash", of="any")
def hash_1_0(value: Any) -> int:
    """Up to 1.7 the hash of an integer is truncated to 32 bits."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31) if value.__class__ is int else hash_of(value)


@operator("aten::hash", of="any", since="1.8.0")
def hash_of(value: Any) -> int:
    """The hash of a number or a string, as computed by the C++ library of the releases."""
    if value.__class__ is str:
        result = text_hash(value)
    elif value.__class__ in {int, float, bool}:
        result = number_hash(value, "<d")
    else:
        raise Unsupported("the reference reader supports hash() only for numbers and strings", code="operator")
    return result - (1 << 64) if result >> 63 else result


@operator("prim::name", of="any")
def name_of(a: Tensor) -> None:
    """The name of a tensor: always None."""
    del a


@operator("prim::nbytes", of="any")
def nbytes(a: Tensor) -> int:
    """The number of bytes of all elements."""
    array = _tensor(a).array
    return int(array.size * array.itemsize)


@operator("prim::rangelist", of="any")
def rangelist(n: int) -> list[int]:
    """The integers from 0 to ``n - 1``."""
    if n < 0:
        raise raised("RuntimeError", "vector::reserve")
    bounded(n)
    return list(range(n))


@operator("prim::unchecked_cast", of="any")
def unchecked_cast(x: Any) -> Any:
    """The value, unchecked."""
    return x


@operator("aten::wait", of="any")
def wait(self: Any) -> Any:
    """The value of a future."""
    return self.wait() if self.__class__ is Future else self


@operator("prim::unchecked_unwrap_optional", of="any")
def unchecked_unwrap_optional(optional: Any) -> Any:
    """The value, unchecked."""
    return optional


@operator("aten::_unwrap_optional", of="any")
def unwrap_optional(optional: Any) -> Any:
    """The value, which must not be None."""
    if optional is None:
        raise raised("RuntimeError", "Unwrapping null optional")
    return optional


@operator("aten::set_grad_enabled", of="any")
def set_grad_enabled(val: bool) -> None:
    """Set whether results require gradients from now on."""
    grad.enabled = val is True


@operator("aten::is_grad_enabled", of="any")
def is_grad_enabled() -> bool:
    """Whether results require gradients."""
    return grad.enabled


@operator("aten::is_autocast_enabled", "aten::is_autocast_cpu_enabled", of="any")
def is_autocast_enabled() -> bool:
    """Whether autocast is on: always false, nothing outside of a program turns it on."""
    return False


@operator("aten::is_scripting", of="any")
def is_scripting() -> bool:
    """Whether the program is scripted: always true."""
    return True


@operator("prim::tolist", of="any")
def tolist(a: Tensor, *_: int) -> Any:
    """The elements as nested lists."""
    bounded(math.prod(size or 1 for size in _tensor(a).array.shape))
    return a.array.tolist()


@operator("prim::TupleUnpack", "prim::ListUnpack", of="any")
def unpack(a: Any) -> Any:
    """Unpack a value that is assigned to several variables."""
    return a


@operator("prim::AutogradZero", "prim::AutogradAnyNonZero", of="any")
def autograd(*_: Any) -> None:
    """Used only where gradients are computed."""
