"""Upgraders: what stands in for a call of an operator in an archive that is older than the operator's change.

An archive states a file format version. Where an operator changed with a version, calls in archives of lower versions become
calls of a small TorchScript program that computes what the operator computed before, with the operators of the release that reads
(``torch/csrc/jit/operator_upgraders/upgraders_entry.cpp``). Releases before a change know nothing of its upgrader.

Each overload has its own, named by operator, overload and the versions it is for. The source is run by this same runtime.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from torch_compat.errors import Refused
from torch_compat.releases.release import Release
from torch_compat.runtime import registry
from torch_compat.runtime.language.unit import Unit
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import Steps, raised

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_compat.errors import Raised

__all__ = ["UPGRADERS", "Upgrader", "find"]

DIV = """
def div_Tensor_0_3(self: Tensor, other: Tensor) -> Tensor:
  if torch.is_floating_point(self) or torch.is_floating_point(other):
    return torch.true_divide(self, other)
  return torch.divide(self, other, rounding_mode="trunc")
def div_Scalar_0_3(self: Tensor, other: number) -> Tensor:
  if torch.is_floating_point(self) or isinstance(other, float):
    return torch.true_divide(self, other)
  return torch.divide(self, other, rounding_mode="trunc")
def div_Tensor_mode_0_3(self: Tensor, other: Tensor, rounding_mode: Optional[str]) -> Tensor:
  return torch.divide(self, other, rounding_mode=rounding_mode)
def div_Scalar_mode_0_3(self: Tensor, other: number, rounding_mode: Optional[str]) -> Tensor:
  return torch.divide(self, other, rounding_mode=rounding_mode)
def div_out_0_3(self: Tensor, other: Tensor, out: Tensor) -> Tensor:
  if torch.is_floating_point(self) or torch.is_floating_point(other) or torch.is_floating_point(out):
    return torch.true_divide(self, other, out=out)
  return torch.divide(self, other, rounding_mode="trunc", out=out)
def div_out_mode_0_3(self: Tensor, other: Tensor, rounding_mode: Optional[str], out: Tensor) -> Tensor:
  return torch.divide(self, other, rounding_mode=rounding_mode, out=out)
def div__Tensor_0_3(self: Tensor, other: Tensor) -> Tensor:
  if torch.is_floating_point(self) or torch.is_floating_point(other):
    return torch.true_divide_(self, other)
  return torch.divide_(self, other, rounding_mode="trunc")
def div__Scalar_0_3(self: Tensor, other: number) -> Tensor:
  if torch.is_floating_point(self) or isinstance(other, float):
    return torch.true_divide_(self, other)
  return torch.divide_(self, other, rounding_mode="trunc")
def div__Tensor_mode_0_3(self: Tensor, other: Tensor, rounding_mode: Optional[str]) -> Tensor:
  return torch.divide_(self, other, rounding_mode=rounding_mode)
def div__Scalar_mode_0_3(self: Tensor, other: number, rounding_mode: Optional[str]) -> Tensor:
  return torch.divide_(self, other, rounding_mode=rounding_mode)
"""
FULL = """
def full_0_4(size: List[int], fill_value: number, dtype: Optional[int], layout: Optional[int], device: Optional[Device],
    pin_memory: Optional[bool]) -> Tensor:
  if dtype is None:
    return torch.full(size, float(fill_value), dtype=None, layout=layout, device=device, pin_memory=pin_memory)
  return torch.full(size, fill_value, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)
def full_out_0_4(size: List[int], fill_value: number, out: Tensor) -> Tensor:
  return torch.full(size, fill_value, out=out)
"""
LINSPACE = """
def linspace_0_7(start: number, end: number, steps: Optional[int], dtype: Optional[int], layout: Optional[int],
    device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
  if steps is None:
    return torch.linspace(start, end, 100, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)
  return torch.linspace(start, end, steps, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)
def linspace_out_0_7(start: number, end: number, steps: Optional[int], out: Tensor) -> Tensor:
  if steps is None:
    return torch.linspace(start, end, 100, out=out)
  return torch.linspace(start, end, steps, out=out)
"""
LOGSPACE = """
def logspace_0_8(start: number, end: number, steps: Optional[int], base: float, dtype: Optional[int], layout: Optional[int],
    device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
  if steps is None:
    return torch.logspace(start, end, 100, base, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)
  return torch.logspace(start, end, steps, base, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)
def logspace_out_0_8(start: number, end: number, steps: Optional[int], base: float, out: Tensor) -> Tensor:
  if steps is None:
    return torch.logspace(start, end, 100, base, out=out)
  return torch.logspace(start, end, steps, base, out=out)
"""
GELU = """
def gelu_0_9(self: Tensor) -> Tensor:
  return torch.gelu(self, approximate="none")
def gelu_out_0_9(self: Tensor, out: Tensor) -> Tensor:
  return torch.gelu(self, approximate="none", out=out)
"""
Functions = dict[str, "Callable[..., Any]"]
FIRST = Release("1.11.0")  # had upgraders first; their sources call operators by names and in forms that it has


class _Host:
    """What the source of upgraders asks for: operators, as they are."""

    def __init__(self, horizon: Release) -> None:
        self.horizon = max(horizon, FIRST)
        self.steps = Steps(1 << 62)  # they loop nowhere
        self.once = False
        self.itself: frozenset[type] = frozenset()
        self.listed = False
        self.source = 0

    def operator(self, name: str, unit: Unit, line: int) -> Callable[..., Any]:
        del unit, line
        return registry.resolve(name, self.horizon)

    def reference(self, name: str) -> Any:
        raise Refused(f"an upgrader refers to {name}", code="source")

    def constant(self, index: int) -> Any:
        raise Refused(f"an upgrader refers to constant {index}", code="source")

    def equal_calls(self) -> None:
        """Never asked for: ``once`` does not hold here."""

    def of_itself(self, name: str, unit: Unit, line: int) -> Callable[..., Any]:
        """Never asked for: ``itself`` does not hold here."""
        return self.operator(name, unit, line)

    def written(self, unit: Unit, line: int) -> Callable[..., Any]:
        """Never asked for: ``listed`` does not hold here."""
        return self.operator("aten::index_put", unit, line)


class Upgrader:
    """The upgraders of one operator.

    Attributes:
        name: what its overloads have in common: ``div_0_3``.
        operator: the operator.
        bump: the first file format version whose calls are left as they are.
        since: the first release that knows it.
        arguments: how many the operator has without ``out``.
        source: TorchScript, one function for each overload.
    """

    __slots__ = ("_choose", "arguments", "bump", "name", "operator", "since", "source")

    def __init__(
        self, name: str, operator: str, bump: int, since: str, arguments: int, source: str, choose: Callable[..., Any]
    ) -> None:
        self.name = name
        self.operator = operator
        self.bump = bump
        self.since = Release(since)
        self.arguments = arguments
        self.source = source
        self._choose = choose

    def call(self, horizon: Release, *, short: Callable[[Raised], Raised] | None = None) -> Callable[..., Any]:
        """What stands where the operator stood: it picks the overload by the arguments, as the schema would be.

        Parameters:
            short: is told, and gives what is raised, where bytecode is modelled that leaves out arguments which have their
                defaults: the lite interpreter hands an upgrader only those that the archive states, and it runs out of them.
        """
        needed = self.arguments if short is not None else 0
        functions = _functions(self.source, horizon)
        plain = registry.resolve(self.operator, horizon)
        choose = self._choose

        def upgraded(*args: Any, **keywords: Any) -> Any:
            if short is not None and len(args) + len(keywords) < needed and "out" not in keywords:
                raise short(raised("RuntimeError", "pop() called on empty stack"))
            return choose(functions, plain, *args, **keywords)

        return upgraded


@lru_cache(maxsize=256)
def _functions(source: str, horizon: Release) -> Functions:
    unit = Unit(_Host(horizon), "upgraders", source.encode(), "upgraders")
    return {name: info.call for name, info in unit.functions.items()}


_ABSENT = object()


def _div(name: str) -> Callable[..., Any]:
    def choose(found: Functions, plain: Any, self: Any, other: Any, *, rounding_mode: Any = _ABSENT, out: Any = None) -> Any:
        if self.__class__ is not Tensor:  # of numbers, which never changed
            return plain(self, other)
        if out is not None:
            return (
                found["div_out_0_3"](self, other, out)
                if rounding_mode is _ABSENT
                else found["div_out_mode_0_3"](self, other, rounding_mode, out)
            )
        kind = "Tensor" if other.__class__ is Tensor else "Scalar"
        if rounding_mode is _ABSENT:
            return found[f"{name}_{kind}_0_3"](self, other)
        return found[f"{name}_{kind}_mode_0_3"](self, other, rounding_mode)

    return choose


def _full(
    found: Functions, plain: Any, size: Any, fill_value: Any, *, out: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: Any = None, names: Any = None,
) -> Any:  # fmt: skip
    if names is not None:
        return plain(size, fill_value, names=names, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)
    if out is not None:
        return found["full_out_0_4"](size, fill_value, out)
    return found["full_0_4"](size, fill_value, dtype, layout, device, pin_memory)


def _linspace(
    found: Functions, _: Any, start: Any, end: Any, steps: Any = None, *, out: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: Any = None,
) -> Any:  # fmt: skip
    if out is not None:
        return found["linspace_out_0_7"](start, end, steps, out)
    return found["linspace_0_7"](start, end, steps, dtype, layout, device, pin_memory)


def _logspace(
    found: Functions, _: Any, start: Any, end: Any, steps: Any = None, base: float = 10.0, *, out: Any = None, dtype: Any = None,
    layout: Any = None, device: Any = None, pin_memory: Any = None,
) -> Any:  # fmt: skip
    if out is not None:
        return found["logspace_out_0_8"](start, end, steps, base, out)
    return found["logspace_0_8"](start, end, steps, base, dtype, layout, device, pin_memory)


def _gelu(found: Functions, _: Any, self: Any, *, out: Any = None) -> Any:
    return found["gelu_0_9"](self) if out is None else found["gelu_out_0_9"](self, out)


UPGRADERS = (
    Upgrader("div_0_3", "aten::div", 4, "1.6.0", 2, DIV, _div("div")),
    Upgrader("div__0_3", "aten::div_", 4, "1.6.0", 2, DIV, _div("div_")),
    Upgrader("full_0_4", "aten::full", 5, "1.6.0", 6, FULL, _full),
    Upgrader("linspace_0_7", "aten::linspace", 8, "1.11.0", 7, LINSPACE, _linspace),
    Upgrader("logspace_0_8", "aten::logspace", 9, "1.11.0", 8, LOGSPACE, _logspace),
    Upgrader("gelu_0_9", "aten::gelu", 10, "1.12.0", 1, GELU, _gelu),
)
_BY_OPERATOR = {one.operator: one for one in UPGRADERS}


def find(name: str, version: int, horizon: Release) -> Upgrader | None:
    """The upgrader of an operator for archives of a file format version, as far as this horizon knows one."""
    found = _BY_OPERATOR.get(name)
    return found if found is not None and version < found.bump and found.since <= horizon else None
