"""QR as LAPACK stores it, with Householder reflections: the factors, and products of reflections."""

from __future__ import annotations

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.runtime.operators._common import Array, fail, functional, words
from torch_compat.runtime.operators._products import decomposed, exact, looped, multiplied
from torch_compat.runtime.operators.decompositions import floating_matrices
from torch_compat.runtime.operators.factorizations import columns, only_finite, transposed
from torch_compat.runtime.tensor import Tensor

__all__ = ["reflected", "reflectors"]


def reflectors(matrices: Array) -> tuple[Array, Array]:
    """Same as geqrf: R on and above the diagonal, the vectors of the reflections below it, and the factor of each reflection."""
    array = matrices.copy()
    rows, wide = array.shape[-2:]
    count = min(rows, wide)
    taus = np.zeros((*array.shape[:-2], count), array.dtype)
    for k in range(looped(count, array.size)):
        first, rest = array[..., k, k].copy(), array[..., k + 1 :, k]
        length = np.sqrt(np.abs(first) ** 2 + (np.abs(rest) ** 2).sum(axis=-1))
        still = ((rest == 0).all(axis=-1)) & (first.imag == 0)
        beta = np.where(still, first.real, -np.copysign(length, first.real))
        with np.errstate(all="ignore"):
            taus[..., k] = np.where(still, 0, (beta - first) / np.where(still, 1, beta))
            rest = np.where(still[..., None], 0, rest / np.where(still, 1, first - beta)[..., None])
        reflection = np.concatenate([np.ones((*array.shape[:-2], 1), array.dtype), rest], axis=-1)[..., None]
        below = array[..., k:, k + 1 :]
        array[..., k:, k + 1 :] = below - taus[..., k].conj()[..., None, None] * reflection * (
            transposed(reflection).conj() @ below
        )
        array[..., k, k] = beta
        array[..., k + 1 :, k] = rest
    return array, taus


def reflected(factors: Array, taus: Array, target: Array, *, adjoint: bool) -> Array:
    """Multiply matrices from the left by a product of reflections."""
    result = target.copy()
    rows = factors.shape[-2]
    count = taus.shape[-1]
    for step in range(looped(count, target.size)):
        k = step if adjoint else count - 1 - step
        below = factors[..., k + 1 :, k]
        reflection = np.concatenate([np.ones((*factors.shape[:-2], 1), factors.dtype), below], axis=-1)[..., None]
        tau = (taus[..., k].conj() if adjoint else taus[..., k])[..., None, None]
        part = result[..., k:rows, :]
        result[..., k:rows, :] = part - tau * reflection * multiplied(transposed(reflection).conj(), part)
    return result


def _one_matrix(*arrays: Array, floats: bool = False) -> None:
    """Check the operands of TH operators: nonempty matrices, and factors of reflections.

    Parameters:
        floats: whether complex numbers are refused.

    Raises:
        Raised: the operands are not supported by TH.
        Unsupported: an operand has gaps in memory, for which releases read out of bounds.
    """
    for array in arrays:
        if not (array.flags.c_contiguous or array.flags.f_contiguous):
            raise Unsupported(
                "the reference reader does not support non-contiguous factors, for which releases read out of bounds",
                code="value",
            )
        if floats and array.dtype.kind == "c":
            raise fail(f"not supported on CPUType for {words(array.dtype)}")
    for array in arrays[:1] + arrays[2:]:
        if array.ndim != 2:
            raise fail("invalid argument 1: A should be 2 dimensional")
        if not array.size:
            raise fail("invalid argument 1: A should not be empty")


@functional("geqrf")
def geqrf_1_0(self: Tensor) -> tuple[Tensor, Tensor]:
    """Up to 1.8 only a single nonempty matrix is accepted."""
    _one_matrix(self.array, floats=True)
    return geqrf(self)


@functional("geqrf", since="1.9.0")
def geqrf(self: Tensor) -> tuple[Tensor, Tensor]:
    """QR as LAPACK stores it."""
    array = self.array
    floating_matrices("torch.geqrf", array)
    result, taus = reflectors(only_finite(decomposed(array)))
    return Tensor(columns(result.astype(array.dtype))), Tensor(taus.astype(array.dtype))


def _product(where: str, factors: Array, taus: Array) -> Tensor:
    """The orthogonal matrix of the given reflections."""
    if factors.ndim < 2:
        raise fail(f"{where}: input must have at least 2 dimensions.")
    if factors.shape[-2] < factors.shape[-1]:
        raise fail(f"{where}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if not taus.ndim or factors.shape[-1] < taus.shape[-1]:
        raise fail(f"{where}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    if factors.ndim - taus.ndim != 1:
        raise fail(
            f"{where}: Expected tau to have one dimension less than input, but got tau.ndim equal to {taus.ndim} and input.ndim is equal to {factors.ndim}"
        )
    if factors.shape[:-2] != taus.shape[:-1]:
        raise fail(f"{where}: Expected batch of tau to be equal to input.shape[:-2]")
    if taus.dtype != factors.dtype:
        raise fail(f"{where}: tau dtype {words(taus.dtype)} does not match input dtype {words(factors.dtype)}")
    floating_matrices(where, factors)
    start = np.broadcast_to(np.eye(*factors.shape[-2:], dtype=exact(factors).dtype), factors.shape)
    result = reflected(decomposed(factors), exact(taus), start, adjoint=False)
    return Tensor(columns(result.astype(factors.dtype)))


@functional("linalg_householder_product")
def linalg_householder_product(input: Tensor, tau: Tensor) -> Tensor:  # noqa: A002
    """The first columns of a product of reflections."""
    return _product("torch.linalg.householder_product", input.array, tau.array)


@functional("orgqr")
def orgqr_1_0(self: Tensor, input2: Tensor) -> Tensor:
    """Up to 1.7 only a single matrix is accepted, and up to 1.6 columns without a reflection are unchanged."""
    _one_matrix(self.array, input2.array)
    if self.array.shape[-1] != input2.array.size:
        raise Unsupported("the reference reader does not support orgqr with more columns than reflectors", code="value")
    return orgqr(self, input2)


@functional("orgqr", since="1.8.0")
def orgqr_1_8(self: Tensor, input2: Tensor) -> Tensor:
    """In 1.8, the scales of reflections are read in the order of memory, whatever their strides are.

    Raises:
        Unsupported: factors or scales have holes in memory, which 1.8 reads.
    """
    for array in (self.array, input2.array):
        if not (array.flags.c_contiguous or array.flags.f_contiguous):
            raise Unsupported(
                "the reference reader does not support non-contiguous factors, for which releases read out of bounds",
                code="value",
            )
    scales = input2.array
    return orgqr(self, Tensor(scales if scales.flags.c_contiguous else scales.T.reshape(scales.shape)))


@functional("orgqr", since="1.9.0")
def orgqr(self: Tensor, input2: Tensor) -> Tensor:
    """Same as :func:`linalg_householder_product`."""
    return _product("orgqr", self.array, input2.array)


@functional("ormqr")
def ormqr_1_0(self: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """Up to 1.8 only a single matrix is accepted, numbers of rows are not checked, and row-major factors are read as column-major."""
    _one_matrix(self.array, input2.array, input3.array, floats=True)
    if not self.array.flags.f_contiguous:
        raise Unsupported(
            "the reference reader does not support row-major factors, which releases read as column-major", code="value"
        )
    if self.array.shape[0] != input3.array.shape[0 if left else 1] or input2.array.ndim != 1:
        raise Unsupported("the reference reader does not support reflectors whose lengths do not match the matrix", code="value")
    return ormqr_1_9(self, input2, input3, left, transpose)


@functional("ormqr", since="1.9.0")
def ormqr_1_9(self: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """The product of reflections times a matrix, from either side."""
    factors, taus, other = self.array, input2.array, input3.array
    where = "torch.ormqr"
    if factors.ndim < 2 or other.ndim < 2:
        raise fail(f"{where}: input must have at least 2 dimensions.")
    side = other.shape[-2 if left else -1]
    if side != factors.shape[-2] or not taus.ndim or side < taus.shape[-1]:
        raise fail(
            f"{where}: other.shape[{-2 if left else -1}] must be equal to input.shape[-2], and not less than tau.shape[-1]"
        )
    if taus.shape[-1] > factors.shape[-1]:
        raise fail(f"{where}: tau.shape[-1] must be less than or equal to input.shape[-1]")
    if factors.shape[:-2] != taus.shape[:-1] or factors.shape[:-2] != other.shape[:-2]:
        raise fail(f"{where}: Expected batch of tau and of other to be equal to input.shape[:-2]")
    if len({factors.dtype, taus.dtype, other.dtype}) > 1:
        raise fail(f"{where}: Expected input, tau and other to have the same dtype")
    floating_matrices(where, factors)
    wide, given, scale = decomposed(factors), exact(other), exact(taus)
    if left:
        result = reflected(wide, scale, given, adjoint=transpose)
    else:
        result = transposed(reflected(wide, scale, transposed(given).conj(), adjoint=not transpose)).conj()
    return Tensor(columns(result.astype(factors.dtype)))


@functional("ormqr", since="2.8.0")
def ormqr(self: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """As of 2.8 there must be as many reflections as possible."""
    result = ormqr_1_9(self, input2, input3, left, transpose)
    count = min(input3.array.shape[-2 if left else -1], self.array.shape[-1])
    if input2.array.shape[-1] != count:
        raise fail(f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{-2 if left else -1}], input.shape[-1])")
    return result
