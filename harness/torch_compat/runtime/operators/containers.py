"""Lists, dictionaries and texts of TorchScript.

Texts are bytes, one character each (see :mod:`torch_compat.runtime.values`): lengths, indices and order are those of the bytes, and
only ASCII letters have cases.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

from torch_compat.errors import Unsupported
from torch_compat.runtime.language.types import checked_key
from torch_compat.runtime.limits import meter
from torch_compat.runtime.operators._equality import equal, measured
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import Budget, ScriptObject, bounded, raised

if TYPE_CHECKING:
    from torch_compat.errors import Raised


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
    if checked_key(key) not in a:
        raise raised("KeyError", f"KeyError: {key}")
    return a[key]


@operator("aten::select", of="list")
def select_list(a: list[Any], index: int) -> Any:
    """a[index], as 1.0 and 1.1 spell it."""
    return a[_index(a, index)]


def _first(a: list[Any], start: int | None, end: int | None) -> int | None:
    """Where a slice of a list begins; None where it is empty."""
    low, high, _ = slice(start, end).indices(len(a))
    return low if low < high else None


@operator("aten::slice", of="list")
def slice_list_1_0(a: list[Any], start: int | None = None, end: int | None = None, step: int = 1) -> list[Any]:
    """a[start:end:step], which steps out of the list where step is no step forward."""
    bounded(len(a))
    at = _first(a, start, end)
    if step > 0 or at is None:
        return a[start:end:step] if at is not None else []
    if step == 0:
        raise raised("RuntimeError", "std::bad_alloc")
    outside = at % -step + step
    raise raised(
        "RuntimeError", f"vector::_M_range_check: __n (which is {outside + (1 << 64)}) >= this->size() (which is {len(a)})"
    )


GREATEST = (1 << 63) - 1


@operator("aten::slice", of="list", since="1.8.0")
def slice_list(a: list[Any], start: int | None = None, end: int | None = None, step: int = 1) -> list[Any]:
    """a[start:end:step]."""
    bounded(len(a))
    return a[_bound(start, step) : _bound(end, step) : _stepped(step)]


def _bound(bound: int | None, step: int) -> int | None:
    """The greatest integer stands for no bound, which old programs write so where a slice goes backwards, too."""
    return None if bound == GREATEST and step < 0 else bound


def _stepped(step: int) -> int:
    if step == 0:
        raise raised("RuntimeError", "List slice should have non-zero step")
    return step


@operator("aten::slice", of="str")
def slice_str_1_0(a: str, start: int | None = None, end: int | None = None, step: int = 1) -> str:
    """a[start:end]."""
    if step != 1:
        raise raised("RuntimeError", "Slicing a string only supports step=1")
    bounded(len(a))
    return a[start:end]


@operator("aten::slice", of="str", since="1.8.0")
def slice_str(a: str, start: int | None = None, end: int | None = None, step: int = 1) -> str:
    """a[start:end:step]."""
    bounded(len(a))
    return a[_bound(start, step) : _bound(end, step) : _stepped(step)]


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
    if b < 0 and a:
        raise raised("RuntimeError", "vector::reserve")
    bounded(len(a) * b)
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


def _same(a: Any, b: Any) -> bool:
    return equal(a, b)


for _kind in ("list", "dict", "str", "tuple"):
    operator("aten::eq", of=_kind)(_same)
    operator("aten::ne", of=_kind)(lambda a, b: not equal(a, b))
for _kind in ("list", "str"):
    operator("aten::lt", of=_kind)(lambda a, b: bool(measured(a) < measured(b)))
    operator("aten::le", of=_kind)(lambda a, b: bool(measured(a) <= measured(b)))
    operator("aten::gt", of=_kind)(lambda a, b: bool(measured(a) > measured(b)))
    operator("aten::ge", of=_kind)(lambda a, b: bool(measured(a) >= measured(b)))


@operator("aten::__contains__", of="any")
def contains(a: Any, item: Any) -> bool:
    """Item in a."""
    if a.__class__ is list:
        budget = Budget()
        return any(equal(one, item, budget) for one in a)
    return checked_key(item) in a


@operator("aten::Delete", of="any")
def delete(a: Any, key: Any) -> None:
    """Del a[key]."""
    if a.__class__ is list:
        del a[_index(a, key)]
    elif checked_key(key) in a:
        del a[key]
    else:
        raise raised("KeyError", "KeyError")


@operator("aten::_set_item", of="any")
def set_item(a: Any, key: Any, value: Any) -> Any:
    """a[key] = value."""
    if a.__class__ is list:
        a[_index(a, key)] = value
        return a
    a[checked_key(key)] = value
    return None


@operator("aten::copy", of="any")
def copy(a: Any) -> Any:
    """A shallow copy of a list or a dictionary."""
    if a.__class__ is list:
        bounded(len(a))
        return list(a)
    return _entries(a)


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
    if checked_key(key) in a:
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
    budget = Budget()
    for index, one in enumerate(a):
        if equal(one, item, budget):
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
    budget = Budget()
    for index, one in enumerate(a):
        if equal(one, item, budget):
            return index
    raise raised("RuntimeError", "ValueError: the item is not in list")


@operator("aten::count", of="list")
def count(a: list[Any], item: Any) -> int:
    """How many items are equal."""
    budget = Budget()
    return sum(1 for one in a if equal(one, item, budget))


def _compared(x: Any, y: Any) -> int:
    return -1 if x.m___lt__(y) else 1 if y.m___lt__(x) else 0


INSERTED = 16  # as many items as std::sort sorts by insertion


def _inserted(values: list[Any], keys: list[float], *, reverse: bool) -> list[Any]:
    """Numbers with NaN among them as std::sort of libstdc++ leaves them; in reverse torch swaps smaller for not smaller."""

    def before(x: float, y: float) -> bool:
        return x != y and (x < y) is not reverse

    places: list[int] = []
    for place, key in enumerate(keys):
        at = len(places)
        if places and before(key, keys[places[0]]):
            at = 0
        while at and before(key, keys[places[at - 1]]):
            at -= 1
        places.insert(at, place)
    return [values[place] for place in places]


def _order(values: list[Any], *, reverse: bool = False) -> list[Any]:
    measured(values)
    if values and isinstance(values[0], ScriptObject):  # by the __lt__ of the program's class
        return sorted(values, key=functools.cmp_to_key(_compared), reverse=reverse)
    keys = values
    if len(values) > 1 and values[0].__class__ is Tensor:
        if any(one.array.size != 1 for one in values):
            raise raised("RuntimeError", "Boolean value of Tensor with more than one value is ambiguous")
        keys = [one.item() for one in values]
    if any(key.__class__ is float and math.isnan(key) for key in keys):
        if len(values) > INSERTED:
            raise Unsupported(f"the reference reader sorts no more than {INSERTED} numbers with NaN among them", code="operator")
        return _inserted(values, keys, reverse=reverse)
    return [values[place] for place in sorted(range(len(values)), key=keys.__getitem__, reverse=reverse)]


def _no_texts(values: list[Any]) -> None:
    if len(values) > 1 and values[0].__class__ is str:
        raise raised(
            "RuntimeError",
            "To sort a list of str must be of Tensors, ints, floats, bools or a User Defined Class that defines the __lt__ compare method, "
            "got list of str",
        )


@operator("aten::sort", of="list")
def sort_1_0(a: list[Any], reverse: bool = False) -> None:
    """Sort in place, no texts."""
    _no_texts(a)
    a[:] = _order(a, reverse=reverse)


@operator("aten::sort", of="list", since="1.7.0")
def sort(a: list[Any], reverse: bool = False) -> None:
    """Sort in place."""
    a[:] = _order(a, reverse=reverse)


@operator("aten::sorted", of="any")
def sorted_1_0(a: list[Any], *, reverse: bool = False) -> list[Any]:
    """A sorted copy, of no texts."""
    _no_texts(a)
    bounded(len(a))
    return _order(list(a), reverse=reverse)


@operator("aten::sorted", of="any", since="1.7.0")
def sorted_(a: list[Any], *, reverse: bool = False) -> list[Any]:
    """A sorted copy."""
    bounded(len(a))
    return _order(list(a), reverse=reverse)


@operator("aten::list", of="any")
def list_(a: Any) -> list[Any]:
    """A list of the items: of a list, a text's characters."""
    bounded(len(a))
    return list(a)


@operator("aten::list_with_default", of="list")
def list_with_default(out_size: list[Any], defaults: list[int]) -> list[int]:
    """Sizes, with what is None taken from the end of the defaults."""
    if not out_size:
        return []
    if len(defaults) <= len(out_size):
        raise raised("RuntimeError", f"Input dimension should be at least {len(out_size) + 1}")
    return [d if v is None else v for v, d in zip(out_size, defaults[-len(out_size) :], strict=True)]


@operator("aten::sum", of="list")
def sum_list(a: list[Any]) -> Any:
    """The sum of numbers; of integers and truths in 32 bits, of which C++ makes the first one.

    A list without items says nothing of its type: its sum is 0.
    """
    total = sum(a)
    return total if total.__class__ is not int else ((total + (1 << 31)) & ((1 << 32) - 1)) - (1 << 31)


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
    return min(measured(a))


# ---------------------------------------------------------------------------------------------------------- dictionaries

ENTRY = 8  # as many items of a list take as much room as one entry of a dictionary, or one pair


def _entries(pairs: Any) -> dict[Any, Any]:
    """A new dictionary of another, or of a list of pairs.

    Raises:
        Raised: there are too many, they are no pairs, or a key is none.
    """
    if pairs.__class__ is not dict and pairs.__class__ is not list:
        raise raised("RuntimeError", f"a {type(pairs).__name__} is no dictionary and no list of pairs")
    bounded(ENTRY * len(pairs))
    if pairs.__class__ is dict:
        return dict(pairs)
    if any(not isinstance(pair, tuple) or len(pair) != 2 for pair in pairs):
        raise raised("RuntimeError", "a dictionary is made of pairs of a key and a value")
    return {checked_key(key): value for key, value in pairs}


def _sorted(a: dict[Any, Any]) -> list[tuple[Any, Any]]:
    """From 1.2 to 1.5 what walks over a dictionary does so in the order of its keys."""
    try:
        return sorted(a.items(), key=lambda pair: pair[0])
    except TypeError:  # tensors have no order
        return list(a.items())


def _walks(name: str, take: Any) -> None:
    for since, order in (("1.0.0", dict.items), ("1.2.0", _sorted), ("1.6.0", dict.items)):

        def call(a: dict[Any, Any], *, order: Any = order) -> list[Any]:
            bounded(ENTRY * len(a))
            return [take(pair) for pair in order(a)]

        call.__doc__ = f"A list of the {name} of a dictionary."
        operator(f"aten::{name}", of="dict", since=since)(call)


_walks("keys", lambda pair: pair[0])
_walks("values", lambda pair: pair[1])
_walks("items", lambda pair: pair)


@operator("aten::get", of="dict")
def get(a: dict[Any, Any], key: Any, default: Any = None) -> Any:
    """The value of a key, or the default."""
    return a.get(checked_key(key), default)


@operator("aten::setdefault", of="dict")
def setdefault(a: dict[Any, Any], key: Any, default: Any) -> Any:
    """The value of a key, which gets the default if it has none."""
    return a.setdefault(checked_key(key), default)


@operator("aten::update", of="dict")
def update_1_0(a: dict[Any, Any], other: Any) -> None:
    """Up to 1.6 keys that are there keep what they have."""
    for key, value in _entries(other).items():
        a.setdefault(key, value)


@operator("aten::update", of="dict", since="1.7.0")
def update(a: dict[Any, Any], other: Any) -> None:
    """Take over all pairs."""
    a.update(_entries(other))


@operator("aten::popitem", of="dict")
def popitem(a: dict[Any, Any]) -> tuple[Any, Any]:
    """Remove the pair whose key is the least, up to 1.5."""
    if not a:
        raise raised("KeyError", "popitem(): dictionary is empty")
    key = min(measured(list(a)))
    return key, a.pop(key)


@operator("aten::popitem", of="dict", since="1.6.0")
def popitem_1_6(a: dict[Any, Any]) -> tuple[Any, Any]:
    """Remove the first pair."""
    if not a:
        raise raised("KeyError", "popitem(): dictionary is empty")
    key = next(iter(a))
    return key, a.pop(key)


@operator("aten::dict", of="any")
def dict_(*pairs: Any) -> dict[Any, Any]:
    """A dictionary of pairs."""
    return _entries(pairs[0]) if pairs else {}


# ---------------------------------------------------------------------------------------------------------------- texts


# The bytes of the ends of lines of Unicode, each by itself.
LINE_ENDS = frozenset("\n\r\v\f\x1c\x1d\x1e\x85\xe2\x80\xa8\xa9")


def _bytewise(name: str) -> Any:
    method = getattr(bytes, name)

    def call(self: str, *args: Any) -> Any:
        bounded(len(self))
        found = method(self.encode("latin-1"), *(arg.encode("latin-1") if arg.__class__ is str else arg for arg in args))
        return found.decode("latin-1") if found.__class__ is bytes else found

    call.__doc__ = f"As Python's bytes.{name}."
    return call


for _name in ("upper", "lower", "capitalize", "title", "swapcase", "isupper", "islower", "isdigit", "isspace", "isalnum", "isalpha",
              "istitle"):  # fmt: skip
    operator(f"aten::{_name}", of="str")(_bytewise(_name))


@operator("aten::zfill", of="str")
def zfill(self: str, width: int) -> str:
    """Filled up with zeros from the left, in front of a sign, too."""
    bounded(width)
    return self.rjust(width, "0")


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
    """Whether it begins with a letter and goes on with letters and digits of ASCII; underscores are none."""
    return self.isascii() and self.isalnum() and not self[0].isdigit()


def _slice(self: str, start: int, end: int) -> tuple[str, int]:
    """What lies between start and end, as the operators cut it out: nothing where the end lies before."""
    size = len(self)
    start = max(0, size + start) if start < 0 else start
    end = max(0, size + end + 1) if end < 0 else end
    if end > start > size:
        raise _beyond(start, size)
    return self[start:end] if end > start else "", start


def _beyond(start: int, size: int) -> Raised:
    return raised("RuntimeError", f"basic_string::substr: __pos (which is {start}) > this->size() (which is {size})")


@operator("aten::find", of="str")
def find(self: str, substr: str, start: int = 0, end: int = -1) -> int:
    """Where a text first occurs, or -1; -1 as end is the end."""
    part, first = _slice(self, start, end)
    found = part.find(substr)
    return found + first if found >= 0 else -1


@operator("aten::rfind", of="str")
def rfind(self: str, substr: str, start: int = 0, end: int = -1) -> int:
    """Where a text last occurs, or -1."""
    part, first = _slice(self, start, end)
    meter.work(len(part) * len(substr))
    found = part.rfind(substr)
    return found + first if found >= 0 else -1


@operator("aten::rindex", of="str")
def rindex(self: str, substr: str, start: int = 0, end: int = -1) -> int:
    """Where a text last occurs."""
    found = rfind(self, substr, start, end)
    if found < 0:
        raise raised("RuntimeError", "ValueError: substring not found")
    return found


@operator("aten::isprintable", of="str")
def isprintable(self: str) -> bool:
    """Whether all of it are letters, digits, punctuation and spaces of ASCII."""
    return all(" " <= one <= "~" for one in self)


@operator("aten::index", of="str")
def index_str(self: str, substr: str, start: int = 0, end: int = -1) -> int:
    """Where a text first occurs."""
    found: int = find(self, substr, start, end)
    if found < 0:
        raise raised("RuntimeError", "ValueError: substring not found")
    return found


@operator("aten::count", of="str")
def count_str(self: str, substr: str, start: int = 0, end: int = -1) -> int:
    """How often a text occurs: where it begins before the end.

    Raises:
        Raised: the text is empty, of which torch counts without end.
    """
    size = len(self)
    if start > size:
        return 0
    start = max(0, size + start) if start < 0 else start
    end = max(0, size + end + 1) if end < 0 else end
    if not substr:
        if start < end:
            raise raised("RuntimeError", "count() of an empty text never ends")
        return 0
    times, at = 0, self.find(substr, start)
    while -1 < at < end:
        times += 1
        at = self.find(substr, at + len(substr))
    return times


def _part(self: str, start: int, end: int) -> str:
    """The same for those that look at the ends: all to the end where the end lies before."""
    size = len(self)
    start = max(0, size + start) if start < 0 else start
    end = max(0, size + end + 1) if end < 0 else end
    if start > size:
        raise _beyond(start, size)
    return self[start:end] if end >= start else self[start:]


@operator("aten::startswith", of="str")
def startswith(self: str, substr: str, start: int = 0, end: int = -1) -> bool:
    """Whether it begins so."""
    return _part(self, start, end).startswith(substr)


@operator("aten::endswith", of="str")
def endswith(self: str, substr: str, start: int = 0, end: int = -1) -> bool:
    """Whether it ends so."""
    return _part(self, start, end).endswith(substr)


@operator("aten::replace", of="str")
def replace(self: str, old: str, new: str, max: int = -1) -> str:  # noqa: A002 - the schema\'s own
    """Other text in place of a text."""
    if not old:  # torch looks again and again at the same place
        if max < 0:
            raise raised("RuntimeError", "std::bad_alloc")
        bounded(len(self) + len(new) * max)
        return new * max + self
    bounded(len(self) * (len(new) + 1))
    return self.replace(old, new, max)


@operator("aten::strip", of="str")
def strip(self: str, chars: str = " \n\t\f\v") -> str:
    """Without these characters at both ends."""
    meter.work(len(self) * len(chars))
    return self.strip(chars)


@operator("aten::lstrip", of="str")
def lstrip(self: str, chars: str = " \n\t\f\v") -> str:
    """Without these characters at the start."""
    meter.work(len(self) * len(chars))
    return self.lstrip(chars)


@operator("aten::rstrip", of="str")
def rstrip(self: str, chars: str = " \n\t\f\v") -> str:
    """Without these characters at the end."""
    meter.work(len(self) * len(chars))
    return self.rstrip(chars)


@operator("aten::split", of="str")
def split(self: str, separator: str | None = None, max: int = -1) -> list[str]:  # noqa: A002 - the schema\'s own
    """Parts between separators."""
    if separator == "":
        raise raised("ValueError", "empty separator")
    bounded(len(self))
    return self.split(separator, max) if separator is not None else self.split()  # which cuts as often as it can


@operator("aten::rsplit", of="str")
def rsplit(self: str, separator: str = " ", max: int = -1) -> list[str]:  # noqa: A002 - the schema\'s own
    """Parts between separators, from the end.

    Raises:
        Raised: the separator is empty, for which torch looks without end.
    """
    if not separator:
        if not self:
            return []
        raise raised("ValueError", "empty separator")
    bounded(len(self))
    meter.work(len(self) * len(separator))
    return self.rsplit(separator, max)


@operator("aten::splitlines", of="str")
def splitlines(self: str, keepends: bool = False) -> list[str]:
    """Lines: every byte that ends one ends one, that of another character, too; ends that are kept are parts of their own."""
    found: list[str] = []
    bounded(len(self))
    start = 0
    for at, one in enumerate(self):
        if one in LINE_ENDS:
            found.append(self[start:at])
            if keepends:
                found.append(one)
            start = at + 1
    if start < len(self):
        found.append(self[start:])
    return found


@operator("aten::partition", of="str")
def partition(self: str, separator: str) -> tuple[str, str, str]:
    """What is before, at and behind a separator; an empty one is found in front."""
    if not separator:
        return "", "", self
    return self.partition(separator)


@operator("aten::rpartition", of="str")
def rpartition(self: str, separator: str) -> tuple[str, str, str]:
    """The same from the end; an empty one is found at the end."""
    if not separator:
        return self, "", ""
    return self.rpartition(separator)


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
