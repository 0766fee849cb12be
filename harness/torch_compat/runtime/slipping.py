"""Slips at run time. ``policies/torch/behaviors.toml`` says which releases have them, and why.

    integer-division-by-zero    an integer tensor is divided by zero, also for a remainder
    division-trap               the remainder of an integer scalar by zero, a division of the lowest integer by -1, or a size that is divided by
                                zero (``traps.py``)
    attribute-store             a call of a method of ``model.json`` that sets an attribute, or of a method that calls it
    list-slice-without-bound    a list is sliced with None as a bound
    failed-product              a matrix product raises in a later run of a method, and its result is used again
    joined-product              a matrix product raises, and an operator differentiated together with it uses its result
    joined-batch-norm           the same, and the operator is batch_norm
    upgrader-without-arguments  bytecode omits arguments that an upgrader takes
    equal-calls-in-tuple        a tuple contains equal calls
    forgotten-gradient          a product of tensors does not require gradients although a factor does (decided in ``registry.py``)
    dictionary-in-tuple         a method of a mobile module returns a tuple with a dict that is not an argument
    bfloat16-convolution        a convolution of bfloat16
    list-slice-backwards        a list is sliced with a step below one
    neutral-operand             the literal 0 is added to a tensor, or a tensor is multiplied by the literal 1
    boolean-list-argument       a list of bools that is an argument of a method becomes a tensor
    folded-list                 a tensor is indexed with a list of constant tensors whose type is not optional

Programs of a release without slips run without this module.
"""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.errors import Raised, Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime.dtypes import BFLOAT16, result_type
from torch_compat.runtime.failed_products import (
    PRODUCT,
    FailedProduct,
    MethodRun,
    differentiated,
    functions,
    is_absent,
    product_shape,
    use_of,
)
from torch_compat.runtime.language.folded import INDEXED as INDEXED_BY
from torch_compat.runtime.language.folded import FoldedList
from torch_compat.runtime.narrowing import Narrowing, present_tensors, refuses_narrowing
from torch_compat.runtime.slips import RUNS, DiesCalled, running
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.traps import traps_of
from torch_compat.runtime.values import ScriptObject, raised
from torch_compat.torchscript.parser import dotted

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from torch_compat.releases.behavior import Behavior
    from torch_compat.runtime.horizons import Horizon
    from torch_compat.runtime.language.types import Type

    Function = Callable[..., Any]

__all__ = ["DICTIONARY", "EQUAL_CALLS", "NEUTRAL", "SIGNS", "Slipping", "storing_methods"]

DIVISION = "integer-division-by-zero"
TRAP = "division-trap"
STORE = "attribute-store"
SLICE = "list-slice-without-bound"
JOINED = "joined-product"
JOINED_NORM = "joined-batch-norm"
UPGRADER = "upgrader-without-arguments"
EQUAL_CALLS = "equal-calls-in-tuple"
FORGOTTEN = "forgotten-gradient"
DICTIONARY = "dictionary-in-tuple"
CONVOLUTION = "bfloat16-convolution"
BOOLS = "boolean-list-argument"
SOURCE = "/pytorch/torch/csrc/jit/register_special_ops.cpp:86"
BACKWARDS = "list-slice-backwards"
NEUTRAL = "neutral-operand"
FOLDED = "folded-list"
SIGNS = frozenset({
    BACKWARDS, BOOLS, CONVOLUTION, DICTIONARY, DIVISION, EQUAL_CALLS, FOLDED, FORGOTTEN, JOINED, JOINED_NORM, NEUTRAL, PRODUCT, SLICE, STORE, TRAP,
    UPGRADER,
})  # fmt: skip
"""The slips that a program can meet."""
INDEXED = frozenset(f"aten::{name[6:]}" for name in INDEXED_BY)
DIVISIONS = frozenset({
    "aten::div", "aten::div_", "aten::remainder", "aten::remainder_", "aten::fmod", "aten::fmod_", "aten::floor_divide",
})  # fmt: skip
LOWEST_DIVIDED = DIVISIONS | {"aten::divide", "aten::divide_", "aten::floor_divide_"}
SCALAR_DIVISIONS = frozenset({"aten::remainder", "aten::floordiv"})
LEAST = -(1 << 63)
CONVOLUTIONS = frozenset({
    "aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::conv_transpose1d", "aten::conv_transpose2d", "aten::conv_transpose3d",
    "aten::convolution", "aten::_convolution",
})  # fmt: skip
PRODUCTS = frozenset({"aten::linear", "aten::matmul", "aten::mm", "aten::addmm"})
MOVED = PRODUCTS | {
    "aten::add", "aten::addcmul", "aten::bmm", "aten::cat", "aten::div", "aten::layer_norm", "aten::max", "aten::mul", "aten::pow", "aten::sub",
    "aten::where",
}  # fmt: skip
"""Operators that 1.11 and newer differentiate together with others and compute at the last of these; not atan2, index, view, expand,
transpose or losses."""
KEEPS = frozenset({"aten::_set_item", "aten::append", "aten::extend", "aten::insert"})
"""Operators that keep their arguments."""
THROUGH = frozenset({"aten::batch_norm", "aten::layer_norm", "aten::relu", "aten::sigmoid", "aten::tanh", "aten::dropout"})
"""Operators that a release differentiates like products: they are delayed together until the last use of the result."""
INTERNAL = Release("1.2.0")
"""As of this release, a failed assertion says that it is internal."""
JOINS = frozenset({
    "aten::relu", "aten::abs", "aten::sqrt", "aten::mean", "aten::sigmoid", "aten::tanh", "aten::exp", "aten::neg", "aten::erf", "aten::log",
    "aten::sin", "aten::t", "aten::add", "aten::sub", "aten::rsub", "aten::mul", "aten::div", "aten::pow", "aten::softmax", "aten::log_softmax",
    "aten::dropout", "aten::clamp", "aten::where", "aten::view",
})  # fmt: skip
NORM = "aten::batch_norm"
"""Operators that are differentiated together with their input product, and the one for which only some releases do this; not layer_norm or sum."""
ARITHMETIC = frozenset({"aten::add", "aten::sub", "aten::mul", "aten::div"})
FUSED = ARITHMETIC | {
    "aten::abs", "aten::addmm", "aten::clamp", "aten::exp", "aten::log", "aten::neg", "aten::relu", "aten::sigmoid", "aten::sin", "aten::tanh",
    "aten::where",
}  # fmt: skip
"""Operators that 1.0 fuses with arithmetic on their results, as far as tested; not mm, matmul, views, reductions, softmax, sqrt or pow.
For addmm it fuses the addition."""
PROMOTES = Release("1.3.0")  # as of this release, dividing integers by a float gives floats
FLOORS = Release("2.10.0")  # as of this release, floors and remainders by -1 are not computed by dividing
TRAPS = (np.int32, np.int64)  # smaller integers are widened before the division, so the minimum by -1 does not trap


class Slipping:
    """The run-time slips of the horizon of a program.

    Attributes:
        family: ``torchscript`` or ``mobile``, the interpreter of the release that runs the program.
        met: the slips that the program met, by id.
    """

    __slots__ = (
        "_bools",
        "_completed",
        "_fused",
        "_horizon",
        "_joins",
        "_moves",
        "_narrowing",
        "_run",
        "_slips",
        "_sources",
        "_texts",
        "_whole",
        "family",
        "met",
    )

    def __init__(self, horizon: Horizon) -> None:
        self._horizon = horizon
        self._slips = running(horizon.release)
        self.family = "torchscript"
        self.met: dict[str, Behavior] = {}
        self._completed: set[str] = set()
        self._sources: dict[str, bytes | memoryview] = {}  # by the file name in frames of the compiled program
        self._texts: dict[str, bytes] = {}  # source by the name of its contents, for releases that refuse narrowing
        self._narrowing: Narrowing | None = None
        self._moves: bool | None = None  # whether products are deferred to their use; determined at the first call
        self._joins = False  # whether this happens only if the use is differentiated as well
        self._run: MethodRun | None = None
        # results of fused operators in this call, kept alive so that their ids are not reused
        self._fused: dict[int, Tensor] = {}
        self._whole: dict[int, Tensor] = {}  # those of them that are taken for integers
        self._bools: dict[int, list[Any]] = {}  # lists of bools among the arguments

    def has(self, sign: str) -> bool:
        """Whether the release has a slip."""
        return sign in self._slips

    def _holds(self, sign: str) -> bool:
        """Whether the release has a slip in the interpreter that runs the program."""
        slip = self._slips.get(sign)
        return slip is not None and slip.when.holds((f"family:{self.family}", RUNS + sign))

    def meet(self, sign: str) -> Behavior:
        """Record that the program met a slip, and return it."""
        slip = self._slips[sign]
        self.met[slip.id] = slip
        return slip

    # ------------------------------------------------------------------------------------------------ calls of methods

    def begin(self, method: str, root: ScriptObject, args: list[Any], types: list[Type]) -> None:
        """Begin a call of a method whose parameters have these types.

        Raises:
            Raised: an assertion of the release fails when it analyzes the method.
        """
        self._fused.clear()
        self._whole.clear()
        if BOOLS in self._slips:
            lists = (arg for arg, type_ in zip(args, types, strict=False) if str(type_) == "List[bool]")
            self._bools = {id(list_): list_ for list_ in lists}
        if self._moves is None:
            self._joins = self._holds(JOINED)
            self._moves = self._joins or self._holds(PRODUCT)
        if self._texts and self.family == "torchscript":
            self._refuse_narrowing(method, root, args)
        if self._moves:
            self._run = MethodRun(method, method in self._completed, root, args)

    def _refuse_narrowing(self, method: str, root: ScriptObject, args: list[Any]) -> None:
        if self._narrowing is None:
            self._narrowing = Narrowing(self._texts)
        types = self._narrowing.refused(root.qualified_name, method, present_tensors(self._horizon.release, args))
        if types is not None:
            raise raised("RuntimeError", f"expected_kind INTERNAL ASSERT FAILED, please report a bug to PyTorch. {types}")

    def end(self, method: str) -> None:
        """End a call that apparently returned a value.

        Raises:
            Raised: the error of a product that was deferred until its result was returned.
        """
        run = self._run
        if run is not None and run.failed is not None:
            raise run.failed.error
        self._run = None
        if run is not None:
            self._completed.add(method)

    def broken(self) -> Raised | None:
        """End a call that raised; returns the earlier error of a deferred product, if any, which takes precedence."""
        run, self._run = self._run, None
        if run is None or run.failed is None:
            return None
        failed = run.failed
        if run.stands:
            failed.undo()  # nothing is moved past a print
        else:
            failed.unwrite()
            if failed.stored():
                self.meet(run.sign)
        return failed.error

    def compiled(self, name: str, source: bytes | memoryview, holds: str) -> None:
        """Register a compiled source file under the file name of its frames.

        Parameters:
            holds: the qualified name of its contents.
        """
        if refuses_narrowing(self._horizon.release):
            self._texts[holds] = bytes(source)
            self._narrowing = None
        if PRODUCT in self._slips:
            self._sources[name] = source

    def stores(self, *_: Any, **__: Any) -> Any:
        """Replacement for a method that sets an attribute, or calls a method that does."""
        self.meet(STORE)
        raise raised("RuntimeError", "temporary: the only valid use of a module is looking up an attribute.")

    # ------------------------------------------------------------------------------------------------ operators

    def around(self, name: str, function: Function) -> Function:
        """The operator with the slips of the release."""
        slips = self._slips
        if not slips:
            return function
        if name in INDEXED and FOLDED in slips:
            function = self._indexing(function)
        if TRAP in slips and (traps := traps_of(name, self._horizon.release)):
            function = self._sizes(function, traps)
        if FORGOTTEN in slips and name in FUSED:
            function = self._forgetting(name, function)
        if JOINED in slips:
            if name in PRODUCTS:
                return self._product(name, function)
            if name in JOINS:
                function = self._joined(JOINED, function)
            elif name == NORM and JOINED_NORM in slips:
                function = self._joined(JOINED_NORM, function)
        elif PRODUCT in slips:
            if name in MOVED:
                function = self._product(name, function)
            if name in THROUGH:
                return self._through(function)
            if name in KEEPS:
                return self._keeping(function)
            if name == "prim::Print":
                return self._prints(function)
        function = self._division(function) if DIVISION in slips and name in DIVISIONS else self.around_division(name, function)
        if TRAP in slips and name in SCALAR_DIVISIONS:
            return self._trap(function, by_zero=name == "aten::remainder")
        if BOOLS in slips and name == "aten::tensor":
            return self._tensor(function)
        if CONVOLUTION in slips and name in CONVOLUTIONS:
            return self._convolution(function)
        if SLICE in slips and name == "aten::slice":
            return self._slice(function)
        if BACKWARDS in slips and name == "aten::slice":
            return self._backwards(function)
        return function

    def waits(self, name: str) -> bool:
        """Whether an operator differs only for tensors that are deferred to their use."""
        return PRODUCT in self._slips and JOINED not in self._slips and name in (MOVED - PRODUCTS) | KEEPS

    def _indexing(self, function: Function) -> Function:
        def indexed(self_: Any, indices: Any, *args: Any, **keywords: Any) -> Any:
            if indices.__class__ is FoldedList:
                if self._holds(FOLDED):
                    self.meet(FOLDED)
                    raise raised("RuntimeError", "Tried to cast a List<Tensor> to a List<Tensor?>. Types mismatch.")
                indices = list(indices)
            return function(self_, indices, *args, **keywords)

        return indexed

    def _division(self, function: Function) -> Function:
        promotes = self._horizon.release >= PROMOTES

        def divide(self_: Any, other: Any, *args: Any, **keywords: Any) -> Any:
            if self_.__class__ is Tensor and self_.array.dtype.kind in "iu":
                divisor = _whole(self_.array, other, promotes)
                if divisor is not None and _traps(self_.array, divisor):
                    raise DiesCalled(self.meet(DIVISION), self._horizon.name)
            return function(self_, other, *args, **keywords)

        return divide

    def around_division(self, name: str, function: Function) -> Function:
        """A division of tensors, or its upgrader: the processor traps if the lowest integer is divided by -1 as an integer.

        As of 2.10 only quotients that are truncated are computed so.
        """
        if TRAP not in self._slips or name not in LOWEST_DIVIDED:
            return function
        floors = self._horizon.release < FLOORS

        def divide(self_: Any, other: Any, *args: Any, **keywords: Any) -> Any:
            if self_.__class__ is not Tensor or self_.array.dtype.kind != "i" or not _overflows(self_, other):
                return function(self_, other, *args, **keywords)
            try:
                result = function(self_, other, *args, **keywords)
            except Unsupported as error:
                if error.code != "overflow":
                    raise
                raise DiesCalled(self.meet(TRAP), self._horizon.name) from error
            if floors and result.array.dtype.kind == "i":
                raise DiesCalled(self.meet(TRAP), self._horizon.name)
            return result

        return divide

    def _trap(self, function: Function, *, by_zero: bool) -> Function:
        """Wrap a division that the processor traps; division by zero is refused earlier, except for remainders."""

        def divide(a: Any, b: Any, *args: Any, **keywords: Any) -> Any:
            if b.__class__ is int and a.__class__ is int and ((b == 0 and by_zero) or (b == -1 and a == LEAST)):
                raise DiesCalled(self.meet(TRAP), self._horizon.name)
            return function(a, b, *args, **keywords)

        return divide

    def _sizes(self, function: Function, traps: tuple[Function, ...]) -> Function:
        def divide(*args: Any, **keywords: Any) -> Any:
            if any(applies(args, keywords) for applies in traps):
                raise DiesCalled(self.meet(TRAP), self._horizon.name)
            return function(*args, **keywords)

        return divide

    def _tensor(self, function: Function) -> Function:
        def tensor(data: Any, *args: Any, **keywords: Any) -> Any:
            if id(data) in self._bools:
                self.meet(BOOLS)
                asserted = "0" if data else "length != 0"
                result = f"Unexpected list type{data[0]}" if data else ""
                word = "ASSERT" if self._horizon.release < INTERNAL else "INTERNAL ASSERT"
                raise raised("RuntimeError", f"{asserted} {word} FAILED at {SOURCE}, please report a bug to PyTorch. {result}")
            return function(data, *args, **keywords)

        return tensor

    def _convolution(self, function: Function) -> Function:
        def convolve(input_: Any, *args: Any, **keywords: Any) -> Any:
            result = function(input_, *args, **keywords)  # other errors take precedence
            if input_.array.dtype == BFLOAT16.array and input_.array.size:
                self.meet(CONVOLUTION)
                raise raised("RuntimeError", "could not create a primitive descriptor")
            return result

        return convolve

    def _slice(self, function: Function) -> Function:
        def slice_(self_: Any, *args: Any, **keywords: Any) -> Any:
            if self_.__class__ is list and (None in args[:2] or None in keywords.values()):
                self.meet(SLICE)
                raise raised("RuntimeError", "isInt() INTERNAL ASSERT FAILED: a list slice takes integers")
            return function(self_, *args, **keywords)

        return slice_

    def _backwards(self, function: Function) -> Function:
        def slice_(self_: Any, *args: Any, **keywords: Any) -> Any:
            step = args[2] if len(args) > 2 else keywords.get("step", 1)
            if self_.__class__ is list and step.__class__ is int and step < 1:
                raise DiesCalled(self.meet(BACKWARDS), self._horizon.name)
            return function(self_, *args, **keywords)

        return slice_

    def _forgetting(self, name: str, function: Function) -> Function:
        """Wrap arithmetic whose result is assumed to have the dtype of the first tensor, so that it requires no gradient for integers."""
        arithmetic = name in ARITHMETIC

        def compute(*args: Any, **keywords: Any) -> Any:
            tensor = function(*args, **keywords)
            if tensor.__class__ is not Tensor or not args or args[0].__class__ is not Tensor:
                return tensor
            before = id(args[0]) in self._whole
            if before or (arithmetic and args[0].array.dtype.kind in "iu"):
                self._whole[id(tensor)] = tensor
                if tensor.requires_grad and (before or any(id(arg) in self._fused for arg in args[1:])):
                    tensor.requires_grad = False
                    tensor.is_leaf = True
                    self.meet(FORGOTTEN)
            self._fused[id(tensor)] = tensor
            return tensor

        return compute

    def short_of_arguments(self, error: Raised) -> Raised:
        """The error of an upgrader that gets fewer arguments than it takes."""
        if UPGRADER in self._slips:
            self.meet(UPGRADER)
        return error

    # ------------------------------------------------------------------------------------------------ products of matrices

    def _product(self, name: str, function: Function) -> Function:
        def product(*args: Any, **keywords: Any) -> Any:
            run = self._run
            if run is not None and run.failed is not None and any(is_absent(arg) for arg in args):
                if self._joins:
                    run.join(JOINED)
                return run.failed.absent(product_shape(name, args) if name in PRODUCTS else None)
            try:
                return function(*args, **keywords)
            except Raised as error:
                if run is None:
                    raise
                given = (*args, *keywords.values())
                if run.failed is not None or not differentiated(*given):
                    raise
                if not self._joins and not (run.later and self._used_again()):
                    raise
                run.failed = FailedProduct(error, [run.root, *run.args])
                run.stands = self._joins
                return run.failed.absent(product_shape(name, args) if name in PRODUCTS else None)

        return product

    def _joined(self, sign: str, function: Function) -> Function:
        """Wrap an operator of a release that computes a product at its use by a differentiated operator, and in place otherwise."""

        def joined(*args: Any, **keywords: Any) -> Any:
            run = self._run
            if run is not None and run.failed is not None and any(map(is_absent, (*args, *keywords.values()))):
                run.join(sign)
            return function(*args, **keywords)

        return joined

    def _through(self, function: Function) -> Function:
        def through(input_: Any, *args: Any, **keywords: Any) -> Any:
            if is_absent(input_):
                return input_
            return function(input_, *args, **keywords)

        return through

    def _keeping(self, function: Function) -> Function:
        def keep(*args: Any, **keywords: Any) -> Any:
            for arg in args:
                if is_absent(arg):
                    arg.array.fail()
            return function(*args, **keywords)

        return keep

    def _prints(self, function: Function) -> Function:
        def prints(*args: Any, **keywords: Any) -> Any:
            run = self._run
            if run is not None and run.failed is not None:
                run.stands = True
                run.failed.fail()
            return function(*args, **keywords)

        return prints

    def _used_again(self) -> bool:
        """Whether the block of statements that calls the current operator uses or returns its result.

        The release profiles a value at its use, and moves a product to the profiling node.
        """
        frame: FrameType | None = sys._getframe(2)  # noqa: SLF001 - of the operator's caller on
        while frame is not None:
            source = self._sources.get(frame.f_code.co_filename)
            if source is not None:
                used = use_of(source, frame.f_lineno)
                if used is not None:
                    return used
            frame = frame.f_back
        return True


def _whole(array: Any, other: Any, promotes: bool) -> Any:
    """The divisor as an integer of the release; None if the result is not an integer."""
    if other.__class__ is Tensor:
        return other.array if other.array.dtype.kind in "iub" else None
    if other.__class__ is float:
        if promotes or other != other or abs(other) >= 2.0**63:  # noqa: PLR0124 - NaN
            return None
        other = int(other)
    if other.__class__ is bool or other.__class__ is int:
        return np.asarray(other, np.int64).astype(array.dtype)
    return None


def _traps(array: Any, divisor: Any, *, zeros: bool = True) -> bool:
    """Whether the processor traps on an element; ``zeros`` tells whether the release divides by zero instead of refusing."""
    try:
        array, divisor = np.broadcast_arrays(array, divisor)
    except ValueError:
        return False  # the operator raises
    if np.any(divisor == 0):
        return zeros
    if array.dtype.type not in TRAPS or divisor.dtype.kind != "i":
        return False
    return bool(np.any((array == np.iinfo(array.dtype).min) & (divisor == -1)))


def _overflows(dividend: Tensor, divisor: Any) -> bool:
    """Whether an element is the lowest integer of the common dtype, and is divided by -1."""
    if divisor.__class__ is not Tensor and divisor != -1:
        return False
    wide = result_type((dividend, divisor)).array
    if wide.type not in TRAPS:
        return False
    return _traps(
        dividend.array.astype(wide), np.asarray(divisor.array if divisor.__class__ is Tensor else divisor, wide), zeros=False
    )


def storing_methods(source: bytes) -> set[str]:
    """The methods in a file of ``model.json`` that set an attribute, and the methods in this file that call them."""
    stores: set[str] = set()
    calls: dict[str, set[str]] = {}
    for method in functions(source):
        if not method.args.args or method.args.args[0].arg != "self":
            continue
        nodes = list(ast.walk(method))
        targets = [
            part for node in nodes if isinstance(node, ast.Assign) for target in node.targets for part in _assigned(target)
        ]
        if any(isinstance(target, ast.Attribute) for target in targets):
            stores.add(method.name)
        called = [dotted(node.func).partition(".") for node in nodes if isinstance(node, ast.Call)]
        calls[method.name] = {name for owner, _, name in called if owner == "self"}
    while more := {item for item, called in calls.items() if item not in stores and called & stores}:
        stores |= more
    return stores


def _assigned(target: ast.expr) -> list[ast.expr]:
    return target.elts if isinstance(target, ast.Tuple) else [target]
