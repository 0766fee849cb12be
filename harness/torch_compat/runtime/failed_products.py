"""Products of matrices that raise, and are computed where their results are used: see :mod:`torch_compat.runtime.slipping`."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from torch_compat.runtime.registry import grad
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import ScriptObject
from torch_compat.torchscript.parser import parse

if TYPE_CHECKING:
    from torch_compat.errors import Raised

__all__ = ["PRODUCT", "FailedProduct", "MethodRun", "differentiated", "functions", "is_absent", "product_shape", "use_of"]

PRODUCT: Final = "failed-product"


@lru_cache(maxsize=64)
def functions(source: bytes) -> list[ast.FunctionDef]:
    """Every function of a file, whole and within others."""
    tree = parse(str(source, "latin-1"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def use_of(source: bytes | memoryview, line: int) -> bool | None:
    """Whether the value of a line's statement is used by a later one of the same block; None where it is returned.

    Statements of the block alone are looked at, not what is in blocks within it, nor what is behind it.
    """
    for function in functions(bytes(source)):
        if (function.lineno <= line <= (function.end_lineno or line)) and (found := _use_in(function.body, line)) is not _NOWHERE:
            return found  # type: ignore[return-value]
    return False


_NOWHERE: Final = object()


def _use_in(block: list[ast.stmt], line: int) -> object:
    for place, node in enumerate(block):
        if not node.lineno <= line <= (node.end_lineno or node.lineno):
            continue
        if isinstance(node, ast.Return):
            return None
        if isinstance(node, _BLOCKS):
            inner = [part for part in (node.body, getattr(node, "orelse", [])) if part]
            return next((found for part in inner if (found := _use_in(part, line)) is not _NOWHERE), False)
        if not isinstance(node, ast.Assign):
            return False
        names = {one.id for one in ast.walk(node.targets[0]) if isinstance(one, ast.Name)}
        return any(
            isinstance(one, ast.Name) and one.id in names
            for later in block[place + 1 :]
            if not isinstance(later, _BLOCKS) and not _copies(later)
            for one in ast.walk(later)
        )
    return _NOWHERE


_BLOCKS = (ast.If, ast.For, ast.While, ast.With, ast.FunctionDef)


def _copies(node: ast.stmt) -> bool:
    """Whether a statement names what is to be given by its block, and computes nothing."""
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Name | ast.Tuple)
        and not any(isinstance(one, ast.Call) for one in ast.walk(node))
    )


def product_shape(name: str, args: tuple[Any, ...]) -> tuple[int, ...]:
    """Of what a product would give, as far as the shapes of its arguments fit."""
    first, second = args[1:3] if name == "aten::addmm" else args[:2]
    return (*first.array.shape[:-1], *(second.array.shape[:-1] if name == "aten::linear" else second.array.shape[1:]))


def is_absent(value: Any) -> bool:
    """Whether a value stands for the result of a product that has raised."""
    return value.__class__ is Tensor and isinstance(value.array, _Absent)


class MethodRun:
    """One call of a method.

    Attributes:
        later: whether an earlier one has given a value: then the release knows what it differentiates.
        failed: the product that raised, and waits for its use.
        stands: whether the product is computed where it stands in the source, after all.
        sign: what the program has come to if the product is not computed there.
    """

    __slots__ = ("args", "failed", "later", "method", "root", "sign", "stands")

    def __init__(self, method: str, later: bool, root: ScriptObject, args: list[Any]) -> None:
        self.method = method
        self.later = later
        self.root = root
        self.args = args
        self.stands = False
        self.sign = PRODUCT
        self.failed: FailedProduct | None = None

    def join(self, sign: str) -> None:
        """An operator uses the product that is differentiated with it: it is computed there."""
        assert self.failed is not None  # noqa: S101 - asked before
        self.stands = False
        self.sign = sign
        self.failed.fail()


def differentiated(*given: Any) -> bool:
    """Whether an operator of these values is differentiated."""
    return grad.enabled and any(
        one.requires_grad for part in given for one in (part if part.__class__ is list else (part,)) if one.__class__ is Tensor
    )


class FailedProduct:
    """A product that raised, and what there was then: that comes to light where its elements are asked for."""

    def __init__(self, error: Raised, roots: list[Any]) -> None:
        self.error = error
        self._attributes: list[tuple[ScriptObject, dict[str, Any]]] = []
        self._tensors: dict[int, tuple[Tensor, Any, Any]] = {}
        seen: set[int] = set()
        left = list(roots)
        while left:
            one = left.pop()
            if id(one) in seen:
                continue
            seen.add(id(one))
            if one.__class__ is Tensor:
                self._tensors[id(one)] = one, one.array, one.array.copy()
            elif isinstance(one, ScriptObject):
                self._attributes.append((one, dict(one.__dict__)))
                left.extend(one.__dict__.values())
            elif isinstance(one, list | tuple):
                left.extend(one)
            elif isinstance(one, dict):
                left.extend(one.values())

    def stored(self) -> bool:
        """Whether an attribute was set since."""
        return any(
            one.__dict__.keys() != before.keys() or any(one.__dict__[name] is not value for name, value in before.items())
            for one, before in self._attributes
        )

    def unwrite(self) -> None:
        """Put back what was written in place since: such a write may be to what the product reads, so it waits until behind it."""
        for tensor, array, copy in self._tensors.values():
            array[...] = copy
            tensor.array = array

    def undo(self) -> None:
        """Put back all that was done since: the release did not do it, as the product stands where it stood."""
        for one, before in self._attributes:
            one.__dict__.clear()
            one.__dict__.update(before)
        self.unwrite()

    def absent(self, shape: tuple[int, ...] | None) -> Tensor:
        """In place of the result.

        Parameters:
            shape: None where it has none, since its operands have no common one.
        """
        tensor = Tensor(np.empty(0))
        tensor.array = _Absent(self) if shape is None else _Shaped(self, shape)  # type: ignore[assignment]
        return tensor

    def fail(self) -> Any:
        """Raise what linear raised."""
        raise self.error


class _Absent:
    """In place of the elements of a tensor that there is not."""

    __slots__ = ("_failed",)

    def __init__(self, failed: FailedProduct) -> None:
        self._failed = failed

    def fail(self) -> Any:
        """Raise what the operator raised."""
        return self._failed.fail()

    def __getattr__(self, name: str) -> Any:
        return self._failed.fail()

    def __array__(self, *_: Any, **__: Any) -> Any:
        return self._failed.fail()

    def __getitem__(self, _: Any) -> Any:
        return self._failed.fail()


class _Shaped(_Absent):
    """Likewise; its shape can be asked for."""

    __slots__ = ("ndim", "shape", "size")

    def __init__(self, failed: FailedProduct, shape: tuple[int, ...]) -> None:
        super().__init__(failed)
        self.shape = shape
        self.ndim = len(shape)
        self.size = int(np.prod(shape))
