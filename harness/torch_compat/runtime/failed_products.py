"""Matrix products that raise, but are computed only where their results are used; see :mod:`torch_compat.runtime.slipping`."""

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
    """All functions of a file, including nested functions."""
    tree = parse(str(source, "latin-1"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def use_of(source: bytes | memoryview, line: int) -> bool | None:
    """Whether a later statement of the same block uses the value of the statement on a line; None if the value is returned.

    Only statements of the block itself are inspected: neither nested blocks nor statements after the block.
    """
    for function in functions(bytes(source)):
        if (function.lineno <= line <= (function.end_lineno or line)) and (
            result := _use_in(function.body, line)
        ) is not _NOWHERE:
            return result  # type: ignore[return-value]
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
            return next((result for part in inner if (result := _use_in(part, line)) is not _NOWHERE), False)
        if not isinstance(node, ast.Assign):
            return False
        names = {item.id for item in ast.walk(node.targets[0]) if isinstance(item, ast.Name)}
        return any(
            isinstance(item, ast.Name) and item.id in names
            for later in block[place + 1 :]
            if not isinstance(later, _BLOCKS) and not _copies(later)
            for item in ast.walk(later)
        )
    return _NOWHERE


_BLOCKS = (ast.If, ast.For, ast.While, ast.With, ast.FunctionDef)


def _copies(node: ast.stmt) -> bool:
    """Whether a statement only assigns names for the outputs of its block, without computing anything."""
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Name | ast.Tuple)
        and not any(isinstance(item, ast.Call) for item in ast.walk(node))
    )


def product_shape(name: str, args: tuple[Any, ...]) -> tuple[int, ...]:
    """The shape of the result of a product, provided that the shapes of its arguments match."""
    first, second = args[1:3] if name == "aten::addmm" else args[:2]
    return (*first.array.shape[:-1], *(second.array.shape[:-1] if name == "aten::linear" else second.array.shape[1:]))


def is_absent(value: Any) -> bool:
    """Whether a value is the placeholder for the result of a product that has raised."""
    return value.__class__ is Tensor and isinstance(value.array, _Absent)


class MethodRun:
    """A call of a method.

    Attributes:
        later: whether an earlier call returned a value, so that the release knows which operators it differentiates.
        failed: the product that raised and is deferred to its use.
        stands: whether the product is computed at its place in the source after all.
        sign: the slip that the program meets if the product is not computed there.
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
        """Compute the product at its use by an operator that is differentiated together with it."""
        assert self.failed is not None  # noqa: S101 - asked before
        self.stands = False
        self.sign = sign
        self.failed.fail()


def differentiated(*given: Any) -> bool:
    """Whether an operator with these arguments is differentiated."""
    return grad.enabled and any(
        item.requires_grad for part in given for item in (part if part.__class__ is list else (part,)) if item.__class__ is Tensor
    )


class FailedProduct:
    """A product that raised, with a snapshot of the program's state; the error is raised when the elements of the result are read."""

    def __init__(self, error: Raised, roots: list[Any]) -> None:
        self.error = error
        self._attributes: list[tuple[ScriptObject, dict[str, Any]]] = []
        self._tensors: dict[int, tuple[Tensor, Any, Any]] = {}
        seen: set[int] = set()
        left = list(roots)
        while left:
            root = left.pop()
            if id(root) in seen:
                continue
            seen.add(id(root))
            if root.__class__ is Tensor:
                self._tensors[id(root)] = root, root.array, root.array.copy()
            elif isinstance(root, ScriptObject):
                self._attributes.append((root, dict(root.__dict__)))
                left.extend(root.__dict__.values())
            elif isinstance(root, list | tuple):
                left.extend(root)
            elif isinstance(root, dict):
                left.extend(root.values())

    def stored(self) -> bool:
        """Whether an attribute has been set since the snapshot."""
        return any(
            item.__dict__.keys() != before.keys() or any(item.__dict__[name] is not value for name, value in before.items())
            for item, before in self._attributes
        )

    def unwrite(self) -> None:
        """Undo in-place writes since the snapshot: they may change inputs of the product, so the release keeps them after it."""
        for tensor, array, copy in self._tensors.values():
            array[...] = copy
            tensor.array = array

    def undo(self) -> None:
        """Undo all changes since the snapshot: the release computed the product in place, so it never made them."""
        for item, before in self._attributes:
            item.__dict__.clear()
            item.__dict__.update(before)
        self.unwrite()

    def absent(self, shape: tuple[int, ...] | None) -> Tensor:
        """A placeholder for the result.

        Parameters:
            shape: the shape of the result; None if the shapes of the operands do not match.
        """
        tensor = Tensor(np.empty(0))
        tensor.array = _Absent(self) if shape is None else _Shaped(self, shape)  # type: ignore[assignment]
        return tensor

    def fail(self) -> Any:
        """Raise the error of the product."""
        raise self.error


class _Absent:
    """A placeholder for the array of a result that does not exist."""

    __slots__ = ("_failed",)

    def __init__(self, failed: FailedProduct) -> None:
        self._failed = failed

    def fail(self) -> Any:
        """Raise the error of the operator."""
        return self._failed.fail()

    def __getattr__(self, name: str) -> Any:
        return self._failed.fail()

    def __array__(self, *_: Any, **__: Any) -> Any:
        return self._failed.fail()

    def __getitem__(self, _: Any) -> Any:
        return self._failed.fail()


class _Shaped(_Absent):
    """A placeholder with a known shape."""

    __slots__ = ("ndim", "shape", "size")

    def __init__(self, failed: FailedProduct, shape: tuple[int, ...]) -> None:
        super().__init__(failed)
        self.shape = shape
        self.ndim = len(shape)
        self.size = int(np.prod(shape))
