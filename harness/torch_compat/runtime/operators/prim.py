"""Operators of the interpreter itself: texts of values, futures, what a tensor is."""

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
    """The value, which has to be a tensor: a program can ask for the properties of any value, and must not get Python's own.

    Raises:
        Raised: it is none.
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
    """Values in texts. Since 2.8 other tensors are scaled, and single numbers have all their digits."""

    def str_(elem: Any) -> str:
        """str(elem)."""
        return shown(elem, by_magnitude=by_magnitude)

    def format_(self: str, *args: Any) -> str:
        """Each ``{}`` of a text becomes the next argument."""
        parts = self.split("{}")
        if len(parts) - 1 > len(args):
            raise raised("RuntimeError", "Too few arguments for format string: " + self)
        made = [parts[0]]
        for part, arg in zip(parts[1:], args, strict=False):
            made += [shown(arg, by_magnitude=by_magnitude), part]
        return joined(made)

    def percent_format(self: str, *args: Any) -> str:
        """``self % args``, for the few forms that torch knows."""
        return _percent_format(
            self, args[0] if len(args) == 1 and args[0].__class__ is tuple else args, by_magnitude=by_magnitude
        )

    for name, function in (("str", str_), ("format", format_), ("percentFormat", percent_format)):
        operator(f"aten::{name}", of="any", since=since)(function)


def _percent_format(self: str, args: tuple[Any, ...], *, by_magnitude: bool) -> str:
    made, left, used = [], self, 0
    while True:
        before, mark, left = left.partition("%")
        made.append(before)
        if not mark:
            break
        code, left = left[:1], left[1:]
        if code == "%":
            made.append("%")
            continue
        if used >= len(args):
            raise raised("RuntimeError", "Too few arguments for format string")
        value, used = args[used], used + 1
        if code == "d":
            if value.__class__ not in {bool, int, float}:
                raise raised("RuntimeError", f"%d requires a number, found a {type(value).__name__}")
            made.append(str(int(value)))
        elif code in {"f", "F", "e", "E", "g", "G"}:
            if value.__class__ not in {bool, int, float}:
                raise raised("RuntimeError", f"%{code} requires a number, found a {type(value).__name__}")
            made.append(f"{float(scalar_as(float(value), FLOAT32)):{code}}")  # torch writes a float of 32 bits
        elif code == "s":
            made.append(shown(value, by_magnitude=by_magnitude))
        elif code == "c":
            if value.__class__ is not str and not (value.__class__ is int and 0 <= value < 256):
                raise raised("RuntimeError", "%c requires a byte or a string")
            made.append(value if isinstance(value, str) else chr(value))
        elif code in {"x", "X", "o"}:
            if value.__class__ is not int:
                raise raised("RuntimeError", f"%{code} requires an integer, found a {type(value).__name__}")
            made.append(f"{value:{code}}")
        else:
            raise raised("RuntimeError", f"The specifier %{code} is not supported in TorchScript format strings")
    if used < len(args):
        raise raised("RuntimeError", "Too many arguments for format string")
    return joined(made)


_in_texts("1.0.0", by_magnitude=False)
_in_texts("2.8.0", by_magnitude=True)


@operator("prim::Print", of="any")
def print_(*args: Any) -> None:
    """Print to standard error: standard output is for data."""
    text = " ".join("<tensor>" if arg.__class__ is Tensor else shown(arg) for arg in args)
    sys.stderr.write(escaped_output(text) + "\n")  # which may be a terminal


@operator("aten::warn", "aten::warnings", of="any")
def warn(*_: Any, **__: Any) -> None:
    """Programs warn people; results do not depend on it."""


@operator("prim::NumToTensor", of="any")
def num_to_tensor_1_0(a: Any) -> Tensor:
    """Up to 1.2 a bool is an integer."""
    return num_to_tensor(int(a) if a.__class__ is bool else a)


@operator("prim::NumToTensor", of="any", since="1.3.0")
@operator("aten::NumToTensor", of="any")
def num_to_tensor(a: Any) -> Tensor:
    """A number as a tensor without dimensions."""
    if a.__class__ is Tensor:
        return a
    if a.__class__ not in {bool, int, float, complex}:
        raise raised("RuntimeError", f"expected a number, found a {type(a).__name__}")
    return Tensor(np.array(a, dtypes.FLOAT64.array if a.__class__ is float else dtypes.of_scalar(a).array))


@operator("prim::dtype", of="any")
def dtype(a: Any) -> int:
    """The number of the dtype."""
    return int(_any_tensor(a).dtype.code)


@operator("prim::device", of="any")
def device(a: Any) -> Device:
    """Where a tensor is: everything is on the CPU."""
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
        said = (
            f"Expected one of cpu, cuda, ... device type at start of device string: {a[:80]}"
            if a
            else "Device string must not be empty"
        )
        raise raised("RuntimeError", said)
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
    """The number of the layout: strided."""
    del a
    return 0


@operator("prim::requires_grad", "aten::requires_grad", of="any")
def requires_grad(a: Tensor) -> bool:
    """Whether it requires gradients."""
    tensor = _any_tensor(a)
    return bool(tensor.requires_grad or grad.reaches(tensor))


@operator("prim::shape", of="any")
def shape(a: Tensor) -> list[int]:
    """The shape."""
    return list(sizes_of(_any_tensor(a)))


@operator("prim::ndim", of="any")
def ndim(a: Tensor) -> int:
    """The number of dimensions."""
    return len(sizes_of(_any_tensor(a)))


@operator("prim::itemsize", of="any")
def itemsize(a: Tensor) -> int:
    """Bytes of an element."""
    return int(_tensor(a).array.itemsize)


@operator("prim::is_cuda", "prim::is_meta", "prim::is_xla", "prim::is_mps", "prim::is_vulkan", "prim::is_ipu", "prim::is_hpu",
          "prim::is_maia", "prim::is_xpu", "prim::is_mtia", "aten::is_cuda", of="any")  # fmt: skip
def is_elsewhere(a: Any) -> bool:
    """Whether it is of another device: everything is on the CPU."""
    del a
    return False


@operator("prim::is_quantized", of="any")
def is_quantized(a: Any) -> bool:
    """Whether its elements are integers that stand for other numbers."""
    return a.__class__ is OpaqueTensor and a.dtype.name.startswith("q")


def _of_layout(name: str, layout: str) -> None:
    def found(a: Any) -> bool:
        """Whether it has this layout."""
        return a.__class__ is OpaqueTensor and a.layout == layout

    operator(f"prim::{name}", of="any")(found)


for _name, _layout in (
    ("is_sparse", "sparse_coo"), ("is_sparse_csr", "sparse_csr"), ("is_mkldnn", "_mkldnn"), ("is_nested", "nested")
):  # fmt: skip
    _of_layout(_name, f"torch.{_layout}")


@operator("prim::is_cpu", of="any")
def is_cpu(a: Any) -> bool:
    """Whether it is on the CPU."""
    del a
    return True


@operator("prim::data", of="any", gradient=False)
def data(a: Tensor) -> Tensor:
    """The same memory without gradients."""
    made = Tensor(_tensor(a).array)
    made.is_detached = True
    return made


@operator("prim::grad", of="any")
def grad_of(a: Tensor) -> None:
    """Its gradient: nothing is ever differentiated here."""
    del a


@operator("prim::is_leaf", of="any")
def is_leaf_attribute(a: Tensor) -> bool:
    """Whether nothing was computed to get it."""
    return is_leaf(_tensor(a))


@operator("aten::is_leaf", gradient=False)
def is_leaf(self: Tensor) -> bool:
    """Whether nothing that requires gradients was computed to get it, and nothing such was written into it."""
    return self.is_leaf and not (grad.reaches(self) and not self.requires_grad)


@operator("aten::output_nr", gradient=False)
def output_nr(self: Tensor) -> int:
    """Which result of the operator that made it: the only one, where nothing requires gradients."""
    if self.requires_grad and not self.is_leaf:
        raise Unsupported("the reference reader does not know which result of its operator this tensor is", code="operator")
    return 0


@operator("aten::retain_grad", gradient=False)
def retain_grad(self: Tensor) -> None:
    """Keep the gradient: nothing is ever differentiated here.

    Raises:
        Raised: it requires none.
    """
    if not (self.requires_grad or grad.reaches(self)):
        raise raised("RuntimeError", "can't retain_grad on Tensor that has requires_grad=False")
    if not is_leaf(self):
        raise Unsupported("the reference reader does not record which tensors retain their gradients", code="operator")


@operator("aten::retains_grad", gradient=False)
def retains_grad(self: Tensor) -> bool:
    """Whether its gradient is kept though it was computed."""
    del self
    return False


@operator("aten::get_device", gradient=False)
def get_device(self: Tensor) -> int:
    """The index of its device: -1 for the CPU."""
    del self
    return -1


@operator("aten::is_pinned", gradient=False)
def is_pinned(self: Tensor, device: Any = None) -> bool:
    """Whether it lies in memory of an accelerator's driver."""
    del self, device
    return False


@operator("aten::is_coalesced", gradient=False)
def is_coalesced(self: Tensor) -> bool:
    """Of sparse tensors alone."""
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
    """Whether its elements lie in memory without holes, in any order of the dimensions."""
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
    """Whether the channels stand last in memory, as the format says."""
    return CHANNELS_LAST.get(memory_format) == self.ndim and suggests_channels_last(self.shape, self.strides)


@operator("aten::hash", of="any")
def hash_1_0(value: Any) -> int:
    """Up to 1.7 that of an integer is cut to 32 bits."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31) if value.__class__ is int else hash_of(value)


@operator("aten::hash", of="any", since="1.8.0")
def hash_of(value: Any) -> int:
    """The hash of a number or a text, as the C++ library of the releases has it."""
    if value.__class__ is str:
        found = text_hash(value)
    elif value.__class__ in {int, float, bool}:
        found = number_hash(value, "<d")
    else:
        raise Unsupported("the reference reader supports hash() only for numbers and strings", code="operator")
    return found - (1 << 64) if found >> 63 else found


@operator("prim::name", of="any")
def name_of(a: Tensor) -> None:
    """The name that a tensor was given: none here."""
    del a


@operator("prim::nbytes", of="any")
def nbytes(a: Tensor) -> int:
    """Bytes of all elements."""
    array = _tensor(a).array
    return int(array.size * array.itemsize)


@operator("prim::rangelist", of="any")
def rangelist(n: int) -> list[int]:
    """The numbers up to one."""
    if n < 0:
        raise raised("RuntimeError", "vector::reserve")
    bounded(n)
    return list(range(n))


@operator("prim::unchecked_cast", of="any")
def unchecked_cast(x: Any) -> Any:
    """The value, whatever it is."""
    return x


@operator("aten::wait", of="any")
def wait(self: Any) -> Any:
    """The value of a future."""
    return self.wait() if self.__class__ is Future else self


@operator("prim::unchecked_unwrap_optional", of="any")
def unchecked_unwrap_optional(optional: Any) -> Any:
    """The value, whatever it is."""
    return optional


@operator("aten::_unwrap_optional", of="any")
def unwrap_optional(optional: Any) -> Any:
    """The value, which must not be None."""
    if optional is None:
        raise raised("RuntimeError", "Unwrapping null optional")
    return optional


@operator("aten::set_grad_enabled", of="any")
def set_grad_enabled(val: bool) -> None:
    """Whether results require gradients from here on."""
    grad.enabled = val is True


@operator("aten::is_grad_enabled", of="any")
def is_grad_enabled() -> bool:
    """Whether results require gradients."""
    return grad.enabled


@operator("aten::is_autocast_enabled", "aten::is_autocast_cpu_enabled", of="any")
def is_autocast_enabled() -> bool:
    """Whether operators choose their types themselves: nothing outside of a program turns that on here."""
    return False


@operator("aten::is_scripting", of="any")
def is_scripting() -> bool:
    """Always, here."""
    return True


@operator("prim::tolist", of="any")
def tolist(a: Tensor, *_: int) -> Any:
    """The elements as nested lists."""
    bounded(math.prod(size or 1 for size in _tensor(a).array.shape))
    return a.array.tolist()


@operator("prim::TupleUnpack", "prim::ListUnpack", of="any")
def unpack(a: Any) -> Any:
    """What is assigned to several variables."""
    return a


@operator("prim::AutogradZero", "prim::AutogradAnyNonZero", of="any")
def autograd(*_: Any) -> None:
    """Stands only where gradients are computed."""
