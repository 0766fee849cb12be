"""TorchScript lists and dictionaries, and the operators that strings share with them."""

from __future__ import annotations

import functools
import math
from typing import Any

from torch_compat.errors import Unsupported
from torch_compat.runtime.language.types import checked_key
from torch_compat.runtime.operators import _algorithms as algorithms
from torch_compat.runtime.operators._equality import equal, measured
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import Budget, ScriptObject, bounded, raised


def _index(values: Any, index: int, text: str = "list index out of range") -> int:
    size = len(values)
    at = index + size if index < 0 else index
    if not 0 <= at < size:
        raise raised("IndexError", text)
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
    """a[index], as named in 1.0 and 1.1."""
    return a[_index(a, index)]


def _first(a: list[Any], start: int | None, end: int | None) -> int | None:
    """The start index of a slice of a list; None if the slice is empty."""
    low, high, _ = slice(start, end).indices(len(a))
    return low if low < high else None


@operator("aten::slice", of="list")
def slice_list_1_0(a: list[Any], start: int | None = None, end: int | None = None, step: int = 1) -> list[Any]:
    """a[start:end:step]; raises for a nonempty slice whose step is not positive."""
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
    """Treat the greatest integer as no bound if the step is negative: old programs write it in this case, too."""
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


@operator("aten::eq", since="1.6.0", of="list")
def eq_lists(a: Any, b: Any) -> bool:
    """A == b of lists: since 1.6 a list equals itself, whatever numbers it holds; tensors are compared one by one."""
    return _one_list(a, b) or equal(a, b)


@operator("aten::ne", since="1.6.0", of="list")
def ne_lists(a: Any, b: Any) -> bool:
    """A != b of lists."""
    return not eq_lists(a, b)


def _one_list(a: Any, b: Any) -> bool:
    return a is b and not (a and a[0].__class__ is Tensor)


@operator("aten::__contains__", of="any")
def contains(a: Any, item: Any) -> bool:
    """Item in a."""
    if a.__class__ is list:
        budget = Budget()
        return any(equal(entry, item, budget) for entry in a)
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
    """Append an item."""
    a.append(item)
    return a


@operator("aten::extend", of="list")
def extend(a: list[Any], other: list[Any]) -> None:
    """Append all items of another list."""
    bounded(len(a) + len(other))
    a.extend(other)


@operator("aten::insert", of="list")
def insert(a: list[Any], index: int, item: Any) -> None:
    """Insert an item before an index."""
    a.insert(index, item)


@operator("aten::remove", of="list")
def remove(a: list[Any], item: Any) -> None:
    """Remove the first equal item."""
    budget = Budget()
    for index, entry in enumerate(a):
        if equal(entry, item, budget):
            del a[index]
            return
    raise raised("RuntimeError", "list.remove(x): x not in list")


@operator("aten::reverse", of="list")
def reverse(a: list[Any]) -> None:
    """Reverse in place."""
    a.reverse()


@operator("aten::index", of="list")
def index_of(a: list[Any], item: Any) -> int:
    """The index of the first equal item."""
    budget = Budget()
    for index, entry in enumerate(a):
        if equal(entry, item, budget):
            return index
    raise raised("RuntimeError", "ValueError: the item is not in list")


@operator("aten::count", of="list")
def count(a: list[Any], item: Any) -> int:
    """The number of equal items."""
    budget = Budget()
    return sum(1 for entry in a if equal(entry, item, budget))


def _compared(x: Any, y: Any) -> int:
    return -1 if x.m___lt__(y) else 1 if y.m___lt__(x) else 0


def _with_nan(values: list[Any], keys: list[float], *, reverse: bool) -> list[Any]:
    """Sort numbers that include NaN like std::sort of libstdc++; in reverse, torch replaces "smaller" with "not smaller"."""

    def before(a: int, b: int) -> bool:
        return keys[a] != keys[b] and (keys[a] < keys[b]) is not reverse

    places = list(range(len(keys)))
    algorithms.sort(places, len(places), before)
    return [values[place] for place in places]


def _order(values: list[Any], *, reverse: bool = False) -> list[Any]:
    measured(values)
    if values and isinstance(values[0], ScriptObject):  # by the __lt__ of the program's class
        return sorted(values, key=functools.cmp_to_key(_compared), reverse=reverse)
    keys = values
    if len(values) > 1 and values[0].__class__ is Tensor:
        if any(value.array.size != 1 for value in values):
            raise raised("RuntimeError", "Boolean value of Tensor with more than one value is ambiguous")
        keys = [value.item() for value in values]
    if any(key.__class__ is float and math.isnan(key) for key in keys):
        if len(values) > algorithms.INSERTED:
            message = f"the reference reader does not sort more than {algorithms.INSERTED} numbers that include NaN"
            raise Unsupported(message, code="operator")
        return _with_nan(values, keys, reverse=reverse)
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
    """Sort in place; strings are not supported."""
    _no_texts(a)
    a[:] = _order(a, reverse=reverse)


@operator("aten::sort", of="list", since="1.7.0")
def sort(a: list[Any], reverse: bool = False) -> None:
    """Sort in place."""
    a[:] = _order(a, reverse=reverse)


@operator("aten::sorted", of="any")
def sorted_1_0(a: list[Any], *, reverse: bool = False) -> list[Any]:
    """Return a sorted copy; strings are not supported."""
    _no_texts(a)
    bounded(len(a))
    return _order(list(a), reverse=reverse)


@operator("aten::sorted", of="any", since="1.7.0")
def sorted_(a: list[Any], *, reverse: bool = False) -> list[Any]:
    """Return a sorted copy."""
    bounded(len(a))
    return _order(list(a), reverse=reverse)


@operator("aten::list", of="any")
def list_(a: Any) -> list[Any]:
    """A list of the items; for a string, of its characters."""
    bounded(len(a))
    return list(a)


@operator("aten::list_with_default", of="list")
def list_with_default(out_size: list[Any], defaults: list[int]) -> list[int]:
    """Sizes, where each None is replaced with a value from the end of the defaults."""
    if not out_size:
        return []
    if len(defaults) <= len(out_size):
        raise raised("RuntimeError", f"Input dimension should be at least {len(out_size) + 1}")
    return [d if v is None else v for v, d in zip(out_size, defaults[-len(out_size) :], strict=True)]


@operator("aten::sum", of="list")
def sum_list(a: list[Any]) -> Any:
    """The sum of numbers; integers and bools are summed in 32 bits, because C++ starts with an ``int``.

    The element type of an empty list is unknown: its sum is 0.
    """
    total = sum(a)
    return total if total.__class__ is not int else ((total + (1 << 31)) & ((1 << 32) - 1)) - (1 << 31)


@operator("aten::any", of="list")
def any_list(a: list[Any]) -> bool:
    """Whether any item is true."""
    return any(a)


@operator("aten::all", of="list")
def all_list(a: list[Any]) -> bool:
    """Whether all items are true."""
    return all(a)


@operator("aten::min", of="list")
def min_list(a: list[Any]) -> Any:
    """The smallest item."""
    return min(measured(a))


# ---------------------------------------------------------------------------------------------------------- dictionaries

ENTRY = 8  # list items that take as much memory as one entry of a dictionary, or one pair


def _entries(pairs: Any) -> dict[Any, Any]:
    """A new dictionary from another one, or from a list of pairs.

    Raises:
        Raised: there are too many entries, they are not pairs, or a key has an invalid type.
    """
    if pairs.__class__ is not dict and pairs.__class__ is not list:
        raise raised("RuntimeError", f"a {type(pairs).__name__} is neither a dictionary nor a list of pairs")
    bounded(ENTRY * len(pairs))
    if pairs.__class__ is dict:
        return dict(pairs)
    if any(not isinstance(pair, tuple) or len(pair) != 2 for pair in pairs):
        raise raised("RuntimeError", "a dictionary must be created from pairs of a key and a value")
    return {checked_key(key): value for key, value in pairs}


def _sorted(a: dict[Any, Any]) -> list[tuple[Any, Any]]:
    """From 1.2 to 1.5 dictionaries are iterated in key order; NaN compares neither less nor greater than any key."""
    pairs = list(a.items())
    if any(key.__class__ is float and math.isnan(key) for key in a):
        order = list(range(len(pairs)))
        algorithms.sort(order, len(order), lambda item, other: bool(pairs[item][0] < pairs[other][0]))
        return [pairs[at] for at in order]
    try:
        return sorted(pairs, key=lambda pair: pair[0])
    except TypeError:  # tensors cannot be sorted
        return pairs


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
    """The value of a key, which is set to the default if missing."""
    return a.setdefault(checked_key(key), default)


@operator("aten::update", of="dict")
def update_1_0(a: dict[Any, Any], other: Any) -> None:
    """Up to 1.6 existing keys keep their values."""
    for key, value in _entries(other).items():
        a.setdefault(key, value)


@operator("aten::update", of="dict", since="1.7.0")
def update(a: dict[Any, Any], other: Any) -> None:
    """Update with all pairs."""
    a.update(_entries(other))


@operator("aten::popitem", of="dict")
def popitem(a: dict[Any, Any]) -> tuple[Any, Any]:
    """Up to 1.5 remove the pair with the smallest key."""
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
    """A dictionary from pairs."""
    return _entries(pairs[0]) if pairs else {}


@operator("aten::_infer_size", "aten::broadcast_shapes", of="list")
def broadcast_shapes(*shapes: list[int]) -> list[int]:
    """The shape that these shapes broadcast to."""
    results: list[int] = []
    for shape in shapes:
        longer = max(len(results), len(shape))
        a, b = [1] * (longer - len(results)) + results, [1] * (longer - len(shape)) + list(shape)
        for at in range(longer - 1, -1, -1):
            if a[at] != b[at] and 1 not in {a[at], b[at]}:
                raise raised(
                    "RuntimeError",
                    f"The size of tensor a ({a[at]}) must match the size of tensor b ({b[at]}) at non-singleton dimension {at}",
                )
        results = [y if x == 1 else x for x, y in zip(a, b, strict=True)]
    return results
