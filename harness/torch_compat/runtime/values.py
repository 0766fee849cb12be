"""Run-time values of a TorchScript program other than plain Python values and tensors.

A program accesses attributes and methods only under names with the prefixes ``a_`` and ``m_``, which no Python attribute has. This keeps
a program away from Python, whatever its source says.

Strings are bytes in TorchScript: their length, indices and order are those of UTF-8. Here each byte is a character of a ``str``;
:func:`text_in` and :func:`text_out` convert at the border.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

from torch_compat.errors import Raised, Unsupported
from torch_compat.runtime.limits import Exhausted, meter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = [
    "DEQUE", "LARGEST", "LONGEST", "Budget", "CustomObject", "Device", "DictOfClass", "EnumMember", "Future", "ListOfClass", "NamedTupleValue", "ScriptObject",
    "Steps", "bounded", "container", "raised", "text_in", "text_out",
]  # fmt: skip

DEQUE = "collections.deque"
LONGEST = 1 << 26  # maximum items of a list or bytes of a string that a program can create
LONGEST_INDEX = 9  # digits of a device index
LOOK_EVERY = 1 << 12  # steps between two checks of the clock
LARGEST = 1 << 22  # items of a value, including nested items, that a program can compare, convert to a string or return


def raised(kind: str, message: str) -> Raised:
    """The error of an operator; ``kind`` is ``RuntimeError``, ``IndexError``, ``ValueError`` or the like."""
    return Raised(message, code=kind)


def bounded(count: int) -> None:
    """Check the length of a new list or string.

    Raises:
        Raised: it is too long.
    """
    if count > LONGEST:
        raise raised("RuntimeError", f"a program cannot create lists or strings of more than {LONGEST} items")
    meter.items(count)


class Budget:
    """The number of items that may still be visited: a value that contains the same list repeatedly grows exponentially with depth."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = LARGEST

    def take(self, count: int) -> None:
        """Pay for ``count`` items.

        Raises:
            Raised: the budget is exhausted.
        """
        self.left -= count
        if self.left < 0:
            raise raised("RuntimeError", f"a program cannot compare, print or return values of more than {LARGEST} items")


def text_in(text: str) -> str:
    """Convert a string to the form of programs: one character per byte."""
    if text.isascii():
        return text
    try:
        return text.encode("utf-8", "surrogateescape").decode("latin-1")
    except UnicodeEncodeError:  # surrogates that do not stand for bytes: encoded as in a pickle
        return text.encode("utf-8", "surrogatepass").decode("latin-1")


def text_out(text: str) -> str:
    """Convert a string of a program to a Python string.

    Raises:
        Raised: its bytes are not UTF-8, which torch cannot convert to Python either.
    """
    if text.isascii():
        return text
    try:
        return text.encode("latin-1").decode("utf-8")
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise Raised(f"'utf-8' codec can't decode: {error.reason}", code="UnicodeDecodeError") from error


class Device:
    """A device: ``cpu``, ``cuda:1``."""

    __slots__ = ("index", "type")

    def __init__(self, text: str, index: int | None = None) -> None:
        self.type, colon, number = text.partition(":")
        if colon and not (number.isascii() and number.isdecimal() and len(number) <= LONGEST_INDEX):
            raise raised("RuntimeError", f"Invalid device string: '{text[:80]}'")
        self.index = int(number) if number else index

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.type == other.type and self.index == other.index

    def __hash__(self) -> int:
        return hash((self.type, self.index))


class ScriptObject:
    """An object of a class of the program, including modules; each class of the program is a subclass.

    Attributes:
        qualified_name: the qualified name, such as ``__torch__.submodules.Leaf``.
        info: the declaration of the class (see :mod:`torch_compat.runtime.language.unit`).
    """

    qualified_name: ClassVar[str] = ""
    info: ClassVar[Any] = None

    def __getitem__(self, key: int | str) -> Any:
        """``layers[i]`` of a ModuleList and ``layers[name]`` of a ModuleDict: the attribute with that name, so negative indices do not work.

        Raises:
            Raised: there is no such attribute.
        """
        try:
            return getattr(self, f"a_{key}")
        except AttributeError:
            raise raised("RuntimeError", f"{self.qualified_name} does not have a field with name '{key}'") from None


class CustomObject:
    """An object of a ``torch.classes`` class. Programs can hold it but not access it, since the reference reader has no such classes.

    Attributes:
        name: the name of the class.
        where: the archive.
    """

    __slots__ = ("name", "where")

    def __init__(self, name: str, where: str) -> None:
        self.name = name
        self.where = where

    def __getattr__(self, attribute: str) -> Any:
        """Refuse to access an attribute.

        Raises:
            Unsupported: always.
        """
        raise Unsupported(f"the reference reader has no support for class {self.name}", where=self.where, code="custom-class")


class NamedTupleValue(tuple[Any, ...]):
    """A value of a NamedTuple of the program; each NamedTuple class is a subclass.

    Attributes:
        qualified_name: the qualified name, such as ``__torch__.named_tuple.Point``.
        fields: the names of its fields in order.
        info: its declaration in the source.
        module: the module of its class in PyTorch; empty if PyTorch creates the class from the program's source.
    """

    __slots__ = ()
    module: ClassVar[str] = ""
    qualified_name: ClassVar[str] = ""
    fields: ClassVar[tuple[str, ...]] = ()
    info: ClassVar[Any] = None

    def __new__(cls, *items: Any) -> NamedTupleValue:  # noqa: PYI034 - a program never makes subclasses of it
        """Create a value with these fields."""
        return tuple.__new__(cls, items)


class DictOfClass(dict[Any, Any]):
    """A dictionary of a class other than ``dict``, such as the OrderedDict that an exported program returns.

    Attributes:
        type_name: the qualified name of the class, such as ``collections.OrderedDict``.
    """

    __slots__ = ("type_name",)

    def __init__(self, type_name: str, items: Iterable[tuple[Any, Any]]) -> None:
        super().__init__(items)
        self.type_name = type_name


class ListOfClass(list[Any]):
    """A list of a class other than ``list``, or a ``collections.deque``.

    Attributes:
        type_name: the qualified name of the class.
    """

    __slots__ = ("type_name",)

    def __init__(self, type_name: str, items: Iterable[Any]) -> None:
        super().__init__(items)
        self.type_name = type_name


def container(type_name: str, value: dict[Any, Any] | list[Any]) -> dict[Any, Any] | list[Any] | deque[Any]:
    """A dictionary or list of another class as it is given to callers: an OrderedDict, a deque, or the value itself."""
    if value.__class__ is dict:
        return OrderedDict(value) if type_name == "collections.OrderedDict" else value
    return deque(value) if type_name == DEQUE else value


class EnumMember:
    """A member of an enum of the program. Each mention in the source is a separate object, equal to the others."""

    __slots__ = ("a_name", "a_value", "qualified_name")

    def __init__(self, qualified_name: str, name: str, value: Any) -> None:
        self.qualified_name = qualified_name
        self.a_name = name
        self.a_value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EnumMember) and (self.qualified_name, self.a_name) == (other.qualified_name, other.a_name)

    def __hash__(self) -> int:
        return hash((self.qualified_name, self.a_name))

    def mentioned(self) -> EnumMember:
        """The object for another mention."""
        return EnumMember(self.qualified_name, self.a_name, self.a_value)


class Future:
    """The result of ``fork``. The call runs immediately, which a program cannot distinguish from a later run."""

    __slots__ = ("error", "value")

    def __init__(self, call: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.value: Any = None
        self.error: Raised | None = None
        try:
            self.value = call(*args)
        except Exhausted:
            raise
        except Raised as error:
            self.error = error

    def wait(self) -> Any:
        """The value.

        Raises:
            Raised: the error of the call.
        """
        if self.error is not None:
            raise self.error
        return self.value


class Steps:
    """The number of steps (function calls, loop iterations) that a program may still take. The clock is checked at intervals."""

    __slots__ = ("_look_at", "left", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.begin()

    def begin(self) -> None:
        """Begin a call with no steps taken."""
        self.left = self.limit
        self._look_at = max(0, self.left - LOOK_EVERY)

    def tick(self) -> None:
        """Take a step.

        Raises:
            Raised: the limit is reached, or another budget of the program is exhausted.
        """
        self.left -= 1
        if self.left < self._look_at:
            self._look()

    def pay(self, count: int) -> None:
        """Take ``count`` steps at once.

        Raises:
            Raised: as in :meth:`tick`.
        """
        self.left -= count
        if self.left < self._look_at:
            self._look()

    def _look(self) -> None:
        if self.left < 0:
            raise Exhausted(f"the program takes more than {self.limit} steps", code="step-limit")
        self._look_at = max(0, self.left - LOOK_EVERY)
        meter.look()

    def rounds(self, *bounds: int) -> Iterable[int]:
        """A range to loop over, paid for in advance."""
        if any(bound.__class__ is not int for bound in bounds):
            raise Raised("range() expects integers", code="RuntimeError")
        if len(bounds) == 3 and bounds[2] == 0:
            raise Raised("range() arg 3 must not be zero", code="RuntimeError")
        result = range(*bounds)
        count = max(0, -((bounds[0] - bounds[1]) // bounds[2])) if len(bounds) == 3 else max(0, result.stop - result.start)
        if count > self.left:  # a loop that ends early by an error or a return still pays for all iterations
            return self._counted(result)
        if count > LOOK_EVERY:
            return chain.from_iterable(self._parts(result, count))
        self.pay(count)
        return result

    def _parts(self, value: range, count: int) -> Iterator[range]:
        """Split a long range into parts that are paid for one by one, so that the clock is checked in between."""
        for start in range(0, count, LOOK_EVERY):
            part = value[start : start + LOOK_EVERY]
            self.pay(len(part))
            yield part

    def _counted(self, item: Iterable[int]) -> Iterator[int]:
        for value in item:
            self.tick()
            yield value
