"""What slips do while a program runs. Which releases do so, and why, is in ``policies/torch/slips.toml``.

    integer-division-by-zero    a tensor of integers is divided by zero, also for a remainder
    attribute-store             a method of ``model.json`` that sets an attribute is called, or one that calls it
    list-slice-without-bound    a list is sliced with None for an end
    failed-linear               linear raises in a later run of a method, and batch_norm took its result in an earlier one
    upgrader-without-arguments  bytecode leaves out arguments which an upgrader takes
    equal-calls-in-tuple        a tuple holds the result of one call twice
    forgotten-gradient          a product of tensors requires no gradient, though a factor does (``registry.py`` decides it)
    dictionary-argument         a method is called that takes a dictionary

A release that has none of them runs programs without any of this.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.errors import Raised
from torch_compat.releases.release import Release
from torch_compat.runtime.registry import grad
from torch_compat.runtime.slips import RUNS, DiesCalled, running
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import ScriptObject, raised

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_compat.runtime.horizons import Horizon
    from torch_compat.runtime.slips import Slip

    Function = Callable[..., Any]

__all__ = ["DICTIONARY", "EQUAL_CALLS", "SIGNS", "Slipping", "storing_methods"]

DIVISION = "integer-division-by-zero"
STORE = "attribute-store"
SLICE = "list-slice-without-bound"
LINEAR = "failed-linear"
UPGRADER = "upgrader-without-arguments"
EQUAL_CALLS = "equal-calls-in-tuple"
FORGOTTEN = "forgotten-gradient"
DICTIONARY = "dictionary-argument"
SIGNS = frozenset({DIVISION, STORE, SLICE, LINEAR, UPGRADER, EQUAL_CALLS, FORGOTTEN, DICTIONARY})
"""What a program can come to while it runs."""
DIVISIONS = frozenset({
    "aten::div", "aten::div_", "aten::remainder", "aten::remainder_", "aten::fmod", "aten::fmod_", "aten::floor_divide",
})  # fmt: skip
PROMOTES = Release("1.3.0")  # from here on a float divisor makes floats of integers
TRAPS = (np.int32, np.int64)  # of smaller integers, the processor divides wider ones, and the least by -1 is no trap
_DEF = re.compile(r"def (\w+)\(self\b")
_STORE = re.compile(r" +([\w., ]+) = ")
_CALL = re.compile(r"\bself\.(\w+)\(")


class Slipping:
    """The slips of one program's horizon, while it runs.

    Attributes:
        family: ``torchscript`` or ``mobile``: which of the release's interpreters runs the program.
        met: those that the program came to, by id.
    """

    __slots__ = ("_completed", "_horizon", "_joined", "_joins", "_run", "_slips", "family", "met")

    def __init__(self, horizon: Horizon) -> None:
        self._horizon = horizon
        self._slips = running(horizon.release)
        self.family = "torchscript"
        self.met: dict[str, Slip] = {}
        self._completed: set[str] = set()
        self._joined: set[tuple[str, int]] = set()  # calls of linear whose result batch_norm took, by method and count
        self._joins: bool | None = None  # whether linear and batch_norm are; asked at the first call
        self._run: _Run | None = None

    def has(self, sign: str) -> bool:
        """Whether the release does so."""
        return sign in self._slips

    def meet(self, sign: str) -> Slip:
        """The program came to this."""
        slip = self._slips[sign]
        self.met[slip.id] = slip
        return slip

    # ------------------------------------------------------------------------------------------------ calls of methods

    def begin(self, method: str, root: ScriptObject, args: list[Any]) -> None:
        """A method of the module is called."""
        if self._joins is None:
            slip = self._slips.get(LINEAR)
            self._joins = slip is not None and slip.holds((f"family:{self.family}", RUNS + LINEAR))
        if self._joins:
            self._run = _Run(method, method in self._completed, root, args)

    def end(self, method: str) -> None:
        """It gave a value, as far as that is known.

        Raises:
            Raised: what linear raised, whose result nobody took.
        """
        run, self._run = self._run, None
        if run is not None:
            if run.failed is not None:
                run.failed.undo()
                raise run.failed.error
            self._completed.add(method)

    def broken(self) -> Raised | None:
        """It raised; what linear had raised before, if it had: that comes first."""
        run, self._run = self._run, None
        if run is None or run.failed is None:
            return None
        failed = run.failed
        if failed.written():
            failed.undo()
        elif failed.stored():
            self.meet(LINEAR)
        return failed.error

    def stores(self, *_: Any, **__: Any) -> Any:
        """In place of a method that sets an attribute, or calls one that does."""
        self.meet(STORE)
        raise raised("RuntimeError", "temporary: the only valid use of a module is looking up an attribute.")

    # ------------------------------------------------------------------------------------------------ operators

    def around(self, name: str, function: Function) -> Function:
        """The operator, as the release has it."""
        slips = self._slips
        if not slips:
            return function
        if LINEAR in slips:
            if name == "aten::linear":
                return self._linear(function)
            if name == "aten::batch_norm":
                return self._batch_norm(function)
        if DIVISION in slips and name in DIVISIONS:
            return self._division(function)
        if SLICE in slips and name == "aten::slice":
            return self._slice(function)
        if FORGOTTEN in slips and name == "aten::mul":
            return self._product(function)
        return function

    def _division(self, function: Function) -> Function:
        promotes = self._horizon.release >= PROMOTES

        def divide(self_: Any, other: Any, *args: Any, **keywords: Any) -> Any:
            if self_.__class__ is Tensor and self_.array.dtype.kind in "iu":
                divisor = _whole(self_.array, other, promotes)
                if divisor is not None and _traps(self_.array, divisor):
                    raise DiesCalled(self.meet(DIVISION), self._horizon.name)
            return function(self_, other, *args, **keywords)

        return divide

    def _slice(self, function: Function) -> Function:
        def slice_(self_: Any, *args: Any, **keywords: Any) -> Any:
            if self_.__class__ is list and (None in args[:2] or None in keywords.values()):
                self.meet(SLICE)
                raise raised("RuntimeError", "isInt() INTERNAL ASSERT FAILED: a slice of a list takes integers")
            return function(self_, *args, **keywords)

        return slice_

    def _product(self, function: Function) -> Function:
        def multiply(*args: Any, **keywords: Any) -> Any:
            made = function(*args, **keywords)
            tracked = grad.enabled and any(one.__class__ is Tensor and one.requires_grad for one in args)
            if tracked and made.__class__ is Tensor and not made.requires_grad:
                self.meet(FORGOTTEN)
            return made

        return multiply

    def short_of_arguments(self, error: Raised) -> Raised:
        """An upgrader finds fewer arguments than it takes."""
        if UPGRADER in self._slips:
            self.meet(UPGRADER)
        return error

    # ------------------------------------------------------------------------------------------------ linear and batch_norm

    def _linear(self, function: Function) -> Function:
        def linear(input_: Any, weight: Any, bias: Any = None) -> Any:
            run = self._run
            if run is None:
                return function(input_, weight, bias)
            run.count += 1
            try:
                run.made = function(input_, weight, bias)
            except Raised as error:
                joined = run.later and run.failed is None and (run.method, run.count) in self._joined
                if not joined or not _differentiated(input_, weight, bias):
                    raise
                run.failed = _Failed(error, [run.root, *run.args])
                return _absent(run.failed, (*input_.array.shape[:-1], *weight.array.shape[:-1]))
            return run.made

        return linear

    def _batch_norm(self, function: Function) -> Function:
        def batch_norm(input_: Any, *args: Any, **keywords: Any) -> Any:
            run = self._run
            if run is not None and input_ is run.made:
                self._joined.add((run.method, run.count))
            return function(input_, *args, **keywords)

        return batch_norm


class _Run:
    """One call of a method.

    Attributes:
        later: whether an earlier one has given a value: then the release knows what it differentiates as one.
        count: how many times linear was called.
        made: what it gave last.
        failed: its call that raised, and was joined with a batch_norm in an earlier run.
    """

    __slots__ = ("args", "count", "failed", "later", "made", "method", "root")

    def __init__(self, method: str, later: bool, root: ScriptObject, args: list[Any]) -> None:
        self.method = method
        self.later = later
        self.root = root
        self.args = args
        self.count = 0
        self.made: Any = None
        self.failed: _Failed | None = None


def _differentiated(*given: Any) -> bool:
    return (
        grad.enabled
        and all(one is None or one.__class__ is Tensor for one in given)
        and any(one is not None and one.requires_grad for one in given)
    )


class _Failed:
    """A linear that raised, and what there was then: that comes to light where its elements are asked for."""

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

    def written(self) -> bool:
        """Whether a tensor was written in place since: before that, the release would have computed linear."""
        return any(one.array is not array or array.tobytes() != copy.tobytes() for one, array, copy in self._tensors.values())

    def undo(self) -> None:
        """Put back what was done since: the release did not do it, as linear stands where it stood."""
        for one, before in self._attributes:
            one.__dict__.clear()
            one.__dict__.update(before)
        for tensor, array, copy in self._tensors.values():
            array[...] = copy
            tensor.array = array

    def fail(self) -> Any:
        """Raise what linear raised."""
        raise self.error


class _Absent:
    """In place of the elements of a tensor that there is not: only its shape can be asked for."""

    __slots__ = ("_failed", "ndim", "shape", "size")

    def __init__(self, failed: _Failed, shape: tuple[int, ...]) -> None:
        self._failed = failed
        self.shape = shape
        self.ndim = len(shape)
        self.size = int(np.prod(shape))

    def __getattr__(self, name: str) -> Any:
        return self._failed.fail()

    def __array__(self, *_: Any, **__: Any) -> Any:
        return self._failed.fail()

    def __getitem__(self, _: Any) -> Any:
        return self._failed.fail()


def _absent(failed: _Failed, shape: tuple[int, ...]) -> Tensor:
    tensor = Tensor(np.empty(0))
    tensor.array = _Absent(failed, shape)  # type: ignore[assignment]
    return tensor


def _whole(array: Any, other: Any, promotes: bool) -> Any:
    """The divisor as an integer of the release; None where what is computed is no integer."""
    if other.__class__ is Tensor:
        return other.array if other.array.dtype.kind in "iub" else None
    if other.__class__ is float:
        if promotes or other != other or abs(other) >= 2.0**63:  # noqa: PLR0124 - NaN
            return None
        other = int(other)
    if other.__class__ is bool or other.__class__ is int:
        return np.asarray(other, np.int64).astype(array.dtype)
    return None


def _traps(array: Any, divisor: Any) -> bool:
    """Whether the processor has no answer for an element."""
    try:
        array, divisor = np.broadcast_arrays(array, divisor)
    except ValueError:
        return False  # the operator says so
    if np.any(divisor == 0):
        return True
    if array.dtype.type not in TRAPS or divisor.dtype.kind != "i":
        return False
    return bool(np.any((array == np.iinfo(array.dtype).min) & (divisor == -1)))


def storing_methods(source: str) -> set[str]:
    """The methods of one file of ``model.json`` that set an attribute, and those of the file that call them."""
    stores: set[str] = set()
    calls: dict[str, set[str]] = {}
    name = ""
    for line in source.split("\n"):
        header = _DEF.match(line)
        if header is not None:
            name = header[1]
            calls[name] = set()
        elif name:
            found = _STORE.match(line)
            if found is not None and "." in found[1]:
                stores.add(name)
            calls[name].update(_CALL.findall(line))
    while more := {one for one, called in calls.items() if one not in stores and called & stores}:
        stores |= more
    return stores
