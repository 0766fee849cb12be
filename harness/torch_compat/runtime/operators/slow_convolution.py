"""Convolutions under the names of their kernels; programs that call a kernel directly repeat the kernel size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch_compat.errors import Unsupported
from torch_compat.runtime.operators._common import BOOL, fail, into, not_implemented, sizes
from torch_compat.runtime.operators.convolution import convolution_of
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from torch_compat.runtime.operators.convolution import Sizes

__all__: list[str] = []


def _computed(
    self: Tensor, weight: Tensor, kernel_size: Sizes, bias: Tensor | None, stride: Sizes, padding: Sizes, dilation: Sizes, more: Sizes, n: int, *,
    transposed: bool, groups: int = 1, out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    array = weight.array
    given = {"kernel_size": kernel_size, "stride": stride, "padding": padding, "dilation": dilation, "output_padding": more}
    for name, item in given.items():
        if item.__class__ is list and len(item) != n:
            if transposed:
                raise fail(f"It is expected {name} equals to {n}, but got size {len(item)}")
            raise Unsupported(
                "convolutions whose kernel_size has the wrong number of dimensions are not supported", code="operator"
            )
    if self.array.ndim != n + 2:
        raise Unsupported("unbatched convolutions are not supported", code="operator")
    if any(size < 0 for size in (*sizes(more, n), *sizes(padding, n))):
        raise Unsupported("convolutions with negative padding are not supported", code="operator")
    if array.ndim != n + 2 or array.shape[2:] != sizes(kernel_size, n):
        raise Unsupported("convolutions whose kernel_size does not match the weight are not supported", code="operator")
    if self.array.dtype == BOOL or self.array.dtype.kind == "c":
        raise not_implemented("slow_conv_cpu", self.array.dtype)
    value = convolution_of(
        self.array, array, None if bias is None else bias.array, stride, padding, dilation, transposed, more, groups, spatial=n
    )
    return Tensor(value) if out is None else into(out, value)


def _kernels() -> None:
    for n in (2, 3):

        def plain(
            self: Tensor, weight: Tensor, kernel_size: Sizes, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes = 0, *,
            out: Tensor | None = None, _n: int = n,
        ) -> Tensor:  # fmt: skip
            return _computed(self, weight, kernel_size, bias, stride, padding, 1, 0, _n, transposed=False, out=out)

        def dilated(
            self: Tensor, weight: Tensor, kernel_size: Sizes, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes = 0, dilation: Sizes = 1, *,
            out: Tensor | None = None, _n: int = n,
        ) -> Tensor:  # fmt: skip
            return _computed(self, weight, kernel_size, bias, stride, padding, dilation, 0, _n, transposed=False, out=out)

        def transposed(
            self: Tensor, weight: Tensor, kernel_size: Sizes, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes = 0,
            output_padding: Sizes = 0, dilation: Sizes = 1, *, out: Tensor | None = None, _n: int = n,
        ) -> Tensor:  # fmt: skip
            return _computed(
                self, weight, kernel_size, bias, stride, padding, dilation, output_padding, _n, transposed=True, out=out
            )

        operator(*((f"aten::thnn_conv{n}d",) if n == 2 else ("aten::slow_conv3d", "aten::thnn_conv3d")))(plain)
        operator(f"aten::slow_conv_dilated{n}d", f"aten::thnn_conv_dilated{n}d")(dilated)
        operator(f"aten::slow_conv_transpose{n}d", f"aten::thnn_conv_transpose{n}d")(transposed)


_kernels()


def _on_a_gpu(name: str) -> None:
    def call(
        self: Tensor, weight: Tensor, kernel_size: Sizes, bias: Tensor | None = None, *rest: Any, out: Tensor | None = None
    ) -> Tensor:
        """Refused: only accelerators have this kernel."""
        del self, weight, kernel_size, bias, rest, out
        raise fail(f"Could not run 'aten::{name}' with arguments from the 'CPU' backend.")

    operator(f"aten::{name}")(call)


for _name in ("conv_depthwise3d", "_conv_depthwise2d", "thnn_conv_depthwise2d"):
    _on_a_gpu(_name)
