"""Lists, dictionaries and texts of TorchScript.

Texts are bytes, one character each (see :mod:`harness.runtime.values`): lengths, indices and order are those of the bytes, and
only ASCII letters have cases.
"""

from __future__ import annotations

import functools
from typing import Any

from harness.runtime.registry import operator
from harness.runtime.tensor import Tensor
from harness.runtime.values import Budget, ScriptObject, bounded, raised


def _index(values: Any, index: int, said: str = "list index out of range") -> int:
    size = len(values)
    at = index + size if index < 0 else index
    if not 0 <= at < size:
        raise raised("IndexError", said)
    return at


# ---------------------------------------------------------------------------------------------------------------- common


@operator("aten::len", of="any")
def length(a: Any) -> int:
    """The number of items; of a tensor, the length of its first dimension."""
    if a.__class__ is Tensor:
        if a.array.ndim == 0:
            raise raised("RuntimeError", "len() of a 0-d tensor")
        return int(a.array.shape[0])
    return len(a)


@operator("aten::__getitem__", of="list")
def getitem(a: list[Any], index: int) -> Any:
    """a[index]."""
    return a[_index(a, index)]


@operator("aten::__getitem__", of="str")
def getitem_str(a: str, index: int) -> str:
    """a[index]."""
    return a[_index(a, index, "string index out of range")]


@operator("aten::__getitem__", of="dict")
def getitem_dict(a: dict[Any, Any], key: Any) -> Any:
    """a[key]."""
    if key not in a:
        raise raised("KeyError", f"KeyError: {key}")
    return a[key]


@operator("aten::select", of="list")
def select_list(a: list[Any], index: int) -> Any:
    """a[index], as 1.0 and 1.1 spell it."""
    return a[_index(a, index)]


@operator("aten::slice", of="list")
def slice_list(a: list[Any], start: int | None = None, end: int | None = None, step: int = 1) -> list[Any]:
    """a[start:end:step]."""
    return a[start:end:step]


@operator("aten::slice", of="str")
def slice_str(a: str, start: int | None = None, end: int | None = None, step: int = 1) -> str:
    """a[start:end:step]."""
    return a[start:end:step]


@operator("aten::add", of="list")
def add_list(a: list[Any], b: list[Any]) -> list[Any]:
    """A + b."""
    bounded(len(a) + len(b))
    return a + b


@operator("aten::add", of="str")
def add_str(a: str, b: str) -> str:
    """A + b."""
    bounded(len(a) + len(b))
    return a + b


@operator("aten::add_", of="list")
def add_list_(a: list[Any], b: list[Any]) -> list[Any]:
    """A += b."""
    bounded(len(a) + len(b))
    a += b
    return a


@operator("aten::mul", of="list")
def mul_list(a: list[Any], b: int) -> list[Any]:
    """A * b."""
    bounded(len(a) * max(0, b))
    return a * b


@operator("aten::mul_", of="list")
def mul_list_(a: list[Any], b: int) -> list[Any]:
    """A *= b."""
    bounded(len(a) * max(0, b))
    a *= b
    return a


@operator("aten::mul", of="str")
def mul_str(a: str, b: int) -> str:
    """A * b."""
    bounded(len(a) * max(0, b))
    return a * b


def _equal(a: Any, b: Any, budget: Budget | None = None) -> bool:
    if a.__class__ is Tensor or b.__class__ is Tensor:
        if a.__class__ is not b.__class__ or a.array.shape != b.array.shape:
            return False
        return bool((a.array == b.array).all())
    listed = a.__class__ is list and b.__class__ is list
    if listed or (isinstance(a, tuple) and isinstance(b, tuple)):
        if len(a) != len(b):
            return False
        budget = budget or Budget()
        budget.take(len(a))
        return all(_equal(one, other, budget) for one, other in zip(a, b, strict=True))
    if a.__class__ is dict and b.__class__ is dict:
        budget = budget or Budget()
        budget.take(len(a))
        return a.keys() == b.keys() and all(_equal(a[key], b[key], budget) for key in a)
    return bool(a == b)


def _measured(value: Any, budget: Budget | None = None) -> Any:
    """The value, which is not too large for Python itself to compare."""
    if value.__class__ is list or isinstance(value, tuple):
        budget = budget or Budget()
        budget.take(len(value))
        for item in value:
            if item.__class__ is list or isinstance(item, tuple):
                _measured(item, budget)
    return value


def _same(a: Any, b: Any) -> bool:
    return _equal(a, b)


for _kind in ("list", "dict", "str", "tuple"):
    operator("aten::eq", of=_kind)(_same)
    operator("aten::ne", of=_kind)(lambda a, b: not _equal(a, b))
for _kind in ("list", "str"):
    operator("aten::lt", of=_kind)(lambda a, b: bool(_measured(a) < _measured(b)))
    operator("aten::le", of=_kind)(lambda a, b: bool(_measured(a) <= _measured(b)))
    operator("aten::gt", of=_kind)(lambda a, b: bool(_measured(a) > _measured(b)))
    operator("aten::ge", of=_kind)(lambda a, b: bool(_measured(a) >= _measured(b)))


@operator("aten::__contains__", of="any")
def contains(a: Any, item: Any) -> bool:
    """Item in a."""
    if a.__class__ is list:
        return any(_equal(one, item) for one in a)
    return item in a


@operator("aten::Delete", of="any")
def delete(a: Any, key: Any) -> None:
    """Del a[key]."""
    if a.__class__ is list:
        del a[_index(a, key)]
    elif key in a:
        del a[key]
    else:
        raise raised("KeyError", "KeyError")


@operator("aten::_set_item", of="any")
def set_item(a: Any, key: Any, value: Any) -> Any:
    """a[key] = value."""
    if a.__class__ is list:
        a[_index(a, key)] = value
        return a
    a[key] = value
    return None


@operator("aten::copy", of="any")
def copy(a: Any) -> Any:
    """A shallow copy."""
    return list(a) if a.__class__ is list else dict(a)


@operator("aten::clear", of="any")
def clear(a: Any) -> None:
    """Empty it."""
    a.clear()


@operator("aten::pop", of="list")
def pop_list(a: list[Any], index: int = -1) -> Any:
    """a.pop(index)."""
    if not a:
        raise raised("IndexError", "pop from empty list")
    return a.pop(_index(a, index, "pop index out of range"))


@operator("aten::pop", of="dict")
def pop_dict(a: dict[Any, Any], key: Any, *default: Any) -> Any:
    """a.pop(key, default)."""
    if key in a:
        return a.pop(key)
    if default:
        return default[0]
    raise raised("KeyError", "KeyError")


# ---------------------------------------------------------------------------------------------------------------- lists


@operator("aten::append", of="list")
def append(a: list[Any], item: Any) -> list[Any]:
    """Put an item behind the last."""
    a.append(item)
    return a


@operator("aten::extend", of="list")
def extend(a: list[Any], other: list[Any]) -> None:
    """Put all items of another list behind the last."""
    bounded(len(a) + len(other))
    a.extend(other)


@operator("aten::insert", of="list")
def insert(a: list[Any], index: int, item: Any) -> None:
    """Put an item in front of that at an index."""
    a.insert(index, item)


@operator("aten::remove", of="list")
def remove(a: list[Any], item: Any) -> None:
    """Remove the first item that is equal."""
    for index, one in enumerate(a):
        if _equal(one, item):
            del a[index]
            return
    raise raised("RuntimeError", "list.remove(x): x not in list")


@operator("aten::reverse", of="list")
def reverse(a: list[Any]) -> None:
    """Turn it round, in place."""
    a.reverse()


@operator("aten::index", of="list")
def index_of(a: list[Any], item: Any) -> int:
    """Where the first item that is equal stands."""
    for index, one in enumerate(a):
        if _equal(one, item):
            return index
    raise raised("RuntimeError", f"'{item}' is not in list")


@operator("aten::count", of="list")
def count(a: list[Any], item: Any) -> int:
    """How many items are equal."""
    return sum(1 for one in a if _equal(one, item))


def _compared(x: Any, y: Any) -> int:
    return -1 if x.m___lt__(y) else 1 if y.m___lt__(x) else 0


def _order(values: list[Any]) -> list[Any]:
    _measured(values)
    if values and isinstance(values[0], ScriptObject):  # by the __lt__ of the program's class
        return sorted(values, key=functools.cmp_to_key(_compared))
    if values and values[0].__class__ is Tensor:
        return sorted(values, key=lambda one: one.array.item())
    return sorted(values)


@operator("aten::sort", of="list")
def sort(a: list[Any], reverse: bool = False) -> None:
    """Sort in place."""
    a[:] = _order(a)
    if reverse:
        a.reverse()


@operator("aten::sorted", of="any")
def sorted_(a: list[Any], *, reverse: bool = False) -> list[Any]:
    """A sorted copy."""
    made = _order(list(a))
    return made[::-1] if reverse else made


@operator("aten::list", of="any")
def list_(a: Any) -> list[Any]:
    """A list of the items: of a list, a text's characters."""
    return list(a)


@operator("aten::list_with_default", of="list")
def list_with_default(out_size: list[Any], defaults: list[int]) -> list[int]:
    """Sizes, with what is None taken from the end of the defaults."""
    if len(defaults) <= len(out_size):
        raise raised("RuntimeError", f"Input dimension should be at least {len(out_size) + 1}")
    return [d if v is None else v for v, d in zip(out_size, defaults[-len(out_size) :], strict=True)]


@operator("aten::sum", of="list")
def sum_list(a: list[Any]) -> Any:
    """The sum of numbers."""
    return sum(a)


@operator("aten::any", of="list")
def any_list(a: list[Any]) -> bool:
    """Whether any is true."""
    return any(a)


@operator("aten::all", of="list")
def all_list(a: list[Any]) -> bool:
    """Whether all are true."""
    return all(a)


@operator("aten::min", of="list")
def min_list(a: list[Any]) -> Any:
    """The smallest."""
    return min(a)


# ---------------------------------------------------------------------------------------------------------- dictionaries


def _sorted(a: dict[Any, Any]) -> list[tuple[Any, Any]]:
    """From 1.2 to 1.5 what walks over a dictionary does so in the order of its keys."""
    try:
        return sorted(a.items(), key=lambda pair: pair[0])
    except TypeError:  # tensors have no order
        return list(a.items())


def _walks(name: str, take: Any) -> None:
    for since, order in (("1.0.0", dict.items), ("1.2.0", _sorted), ("1.6.0", dict.items)):

        def call(a: dict[Any, Any], *, order: Any = order) -> list[Any]:
            return [take(pair) for pair in order(a)]

        call.__doc__ = f"A list of the {name} of a dictionary."
        operator(f"aten::{name}", of="dict", since=since)(call)


_walks("keys", lambda pair: pair[0])
_walks("values", lambda pair: pair[1])
_walks("items", lambda pair: pair)


@operator("aten::get", of="dict")
def get(a: dict[Any, Any], key: Any, default: Any = None) -> Any:
    """The value of a key, or the default."""
    return a.get(key, default)


@operator("aten::setdefault", of="dict")
def setdefault(a: dict[Any, Any], key: Any, default: Any) -> Any:
    """The value of a key, which gets the default if it has none."""
    return a.setdefault(key, default)


@operator("aten::update", of="dict")
def update(a: dict[Any, Any], other: Any) -> None:
    """Take over all pairs."""
    a.update(other)


@operator("aten::popitem", of="dict")
def popitem(a: dict[Any, Any]) -> tuple[Any, Any]:
    """Remove a pair."""
    if not a:
        raise raised("KeyError", "popitem(): dictionary is empty")
    return a.popitem()


@operator("aten::dict", of="any")
def dict_(*pairs: Any) -> dict[Any, Any]:
    """A dictionary of pairs."""
    return dict(pairs[0]) if pairs else {}


# ---------------------------------------------------------------------------------------------------------------- texts


def _bytewise(name: str) -> Any:
    method = getattr(bytes, name)

    def call(self: str, *args: Any) -> Any:
        found = method(self.encode("latin-1"), *(arg.encode("latin-1") if arg.__class__ is str else arg for arg in args))
        return found.decode("latin-1") if found.__class__ is bytes else found

    call.__doc__ = f"As Python's bytes.{name}."
    return call


for _name in ("upper", "lower", "capitalize", "title", "swapcase", "isupper", "islower", "isdigit", "isspace", "isalnum", "isalpha",
              "istitle"):  # fmt: skip
    operator(f"aten::{_name}", of="str")(_bytewise(_name))


@operator("aten::zfill", of="str")
def zfill(self: str, width: int) -> str:
    """Filled up with zeros behind the sign."""
    bounded(width)
    return self.zfill(width)


@operator("aten::expandtabs", of="str")
def expandtabs(self: str, tabsize: int = 8) -> str:
    """Blanks in place of tabulators."""
    bounded(len(self) * max(1, tabsize))
    return self.expandtabs(tabsize)


@operator("aten::isdecimal", "aten::isnumeric", of="str")
def isdecimal(self: str) -> bool:
    """Whether all are digits."""
    return bool(self) and all("0" <= one <= "9" for one in self)


@operator("aten::isidentifier", of="str")
def isidentifier(self: str) -> bool:
    """Whether it is an identifier of ASCII."""
    return self.isascii() and self.isidentifier()


def _bounds(self: str, start: int, end: int) -> tuple[int, int]:
    size = len(self)
    start = max(0, start + size if start < 0 else start)
    end = max(0, end + 1 + size if end < 0 else min(end, size))
    return start, end


@operator("aten::find", of="str")
def find(self: str, substr: str, start: int = 0, end: int = -1) -> int:
    """Where a text first occurs, or -1; -1 as end is the end."""
    first, last = _bounds(self, start, end)
    return self.find(substr, first, last)


@operator("aten::rfind", of="str")
def rfind(self: str, substr: str, start: int = 0, end: int = -1) -> int:
    """Where a text last occurs, or -1."""
    first, last = _bounds(self, start, end)
    return self.rfind(substr, first, last)


@operator("aten::index", of="str")
def index_str(self: str, substr: str, start: int = 0, end: int = -1) -> int:
    """Where a text first occurs."""
    found: int = find(self, substr, start, end)
    if found < 0:
        raise raised("RuntimeError", "ValueError: substring not found")
    return found


@operator("aten::count", of="str")
def count_str(self: str, substr: str, start: int = 0, end: int = -1) -> int:
    """How often a text occurs."""
    first, last = _bounds(self, start, end)
    return self.count(substr, first, last)


@operator("aten::startswith", of="str")
def startswith(self: str, substr: str, start: int = 0, end: int = -1) -> bool:
    """Whether it begins so."""
    first, last = _bounds(self, start, end)
    return self.startswith(substr, first, last)


@operator("aten::endswith", of="str")
def endswith(self: str, substr: str, start: int = 0, end: int = -1) -> bool:
    """Whether it ends so."""
    first, last = _bounds(self, start, end)
    return self.endswith(substr, first, last)


@operator("aten::replace", of="str")
def replace(self: str, old: str, new: str, max: int = -1) -> str:  # noqa: A002 - the schema\'s own
    """Other text in place of a text."""
    bounded(len(self) * (len(new) + 1))
    return self.replace(old, new, max)


@operator("aten::strip", of="str")
def strip(self: str, chars: str = " \n\t\f\v") -> str:
    """Without these characters at both ends."""
    return self.strip(chars)


@operator("aten::lstrip", of="str")
def lstrip(self: str, chars: str = " \n\t\f\v") -> str:
    """Without these characters at the start."""
    return self.lstrip(chars)


@operator("aten::rstrip", of="str")
def rstrip(self: str, chars: str = " \n\t\f\v") -> str:
    """Without these characters at the end."""
    return self.rstrip(chars)


@operator("aten::split", of="str")
def split(self: str, separator: str | None = None, max: int = -1) -> list[str]:  # noqa: A002 - the schema\'s own
    """Parts between separators."""
    return self.split(separator, max)


@operator("aten::rsplit", of="str")
def rsplit(self: str, separator: str = " ", max: int = -1) -> list[str]:  # noqa: A002 - the schema\'s own
    """Parts between separators, from the end."""
    return self.rsplit(separator, max)


@operator("aten::splitlines", of="str")
def splitlines(self: str, keepends: bool = False) -> list[str]:
    """Lines."""
    return self.splitlines(keepends)


@operator("aten::partition", of="str")
def partition(self: str, separator: str) -> tuple[str, str, str]:
    """What is before, at and behind a separator."""
    return self.partition(separator)


@operator("aten::join", of="str")
def join(self: str, values: list[str]) -> str:
    """Texts, with this one between them."""
    bounded(sum(map(len, values)) + len(self) * len(values))
    return self.join(values)


@operator("aten::ljust", of="str")
def ljust(self: str, width: int, fillchar: str = " ") -> str:
    """Filled up at the end."""
    bounded(width)
    return self.ljust(width, fillchar)


@operator("aten::rjust", of="str")
def rjust(self: str, width: int, fillchar: str = " ") -> str:
    """Filled up at the start."""
    bounded(width)
    return self.rjust(width, fillchar)


@operator("aten::center", of="str")
def center(self: str, width: int, fillchar: str = " ") -> str:
    """Filled up at both ends."""
    bounded(width)
    return self.center(width, fillchar)


@operator("aten::ord", of="str")
def ord_(self: str) -> int:
    """The byte."""
    if len(self) != 1:
        raise raised("RuntimeError", f"String for ord() must be 1 character, found {len(self)}")
    return ord(self)


@operator("aten::chr", of="any")
def chr_(a: int) -> str:
    """The character of a byte."""
    if not 0 <= a < 256:
        raise raised("RuntimeError", f"chr() arg not in range(0x110000), found {a}")
    return chr(a)


@operator("aten::hex", of="any")
def hex_(a: int) -> str:
    """hex(a)."""
    return hex(a)


@operator("aten::oct", of="any")
def oct_(a: int) -> str:
    """oct(a)."""
    return oct(a)


@operator("aten::bin", of="any")
def bin_(a: int) -> str:
    """bin(a)."""
    return bin(a)
