"""The passive values that unpickling produces, besides plain values.

``None``, ``bool``, ``int``, ``float``, ``complex``, ``str``, ``bytes``, ``bytearray``, ``list``, ``tuple``, ``dict``, ``set``,
``frozenset``, ``range`` and ``slice`` are Python's own. Shared objects stay shared, and a container may contain itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from torch_compat.pickles.brief import brief
from torch_compat.values.dtypes import ELEMENT_SIZES, PACKED, storage_class

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "Deque",
    "Described",
    "Device",
    "Dict",
    "Global",
    "ModuleSource",
    "NumpyArray",
    "NumpyDtype",
    "NumpyScalar",
    "PersistentId",
    "Size",
    "Storage",
    "Tensor",
    "UnpicklerEvent",
    "parts",
    "tensors",
    "walk",
]


class Global:
    """A class or function (or a dtype, a layout, a constant) that is only named: ``torch.float32``, ``os.system``.

    Attributes:
        module, name: by their Python 3 names; ``__builtin__.set`` of Python 2 is ``builtins.set``.
        path: both, as ``torch._utils._rebuild_tensor_v2``.
        rebuild: how the machine interprets a call of it; None if a call is only described.
        storage: of a storage class its path, the dtype and the bytes of an element; None for anything else.
    """

    __slots__ = ("module", "name", "path", "rebuild", "storage")

    def __init__(self, module: str, name: str, rebuild: Callable[..., Any] | None = None) -> None:
        self.module = module
        self.name = name
        self.path = f"{module}.{name}"
        self.rebuild = rebuild
        dtype = storage_class(module, name)
        self.storage = (self.path, dtype, ELEMENT_SIZES[dtype]) if dtype else None

    def __eq__(self, other: object) -> bool:
        return other.__class__ is Global and self.module == other.module and self.name == other.name

    def __hash__(self) -> int:
        return hash((self.module, self.name))

    def __repr__(self) -> str:
        return f"Global({self.module!r}, {self.name!r})"


class Dict(dict[Any, Any]):
    """A dictionary of a known class: ``collections.OrderedDict``, ``defaultdict`` or ``Counter``.

    Attributes:
        type: its class.
        factory: the ``default_factory`` of a ``defaultdict``.
        state: attributes set on it, as ``_metadata`` of a state dict; None where there are none.
    """

    __slots__ = ("factory", "state", "type")

    def __init__(self, type_: Global, factory: Any = None) -> None:
        self.type = type_
        self.factory = factory
        self.state: Any = None


class Deque(list[Any]):
    """A ``collections.deque``."""

    __slots__ = ("maxlen", "state", "type")

    def __init__(self, type_: Global, maxlen: int | None = None) -> None:
        self.type = type_
        self.maxlen = maxlen
        self.state: Any = None


class Size(tuple[Any, ...]):
    """A ``torch.Size``."""

    __slots__ = ()


LONGEST = 2000


class _Parts:
    """Base with a repr of its parts, up to :data:`LONGEST` characters, and equality by identity. Dataclasses would slow down the import."""

    __slots__: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return brief(self, LONGEST)


class Device:
    """A ``torch.device``."""

    __slots__ = ("index", "type")

    def __init__(self, type_: str, index: int | None = None) -> None:
        self.type = type_
        self.index = index

    def __eq__(self, other: object) -> bool:
        return other.__class__ is Device and self.type == other.type and self.index == other.index

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __repr__(self) -> str:
        return f"Device({self.type!r}, {self.index!r})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"


class Storage(_Parts):
    """A storage that a pickle names; its bytes are elsewhere in the archive.

    Attributes:
        type_name: its class, as ``torch.FloatStorage``.
        dtype: of its elements, as ``float32``; ``uint8`` if the class does not state it.
        key: names the record (zip) or the place in the list of storages (stream).
        location: ``cpu``, ``cuda:0``.
        numel, nbytes: its length; for an untyped storage, in bytes.
        root: the storage that this one is a part of (only in streams), ``offset`` elements from its start.
    """

    __slots__ = ("dtype", "key", "location", "nbytes", "numel", "offset", "root", "type_name")

    def __init__(
        self, type_name: str, dtype: str, key: str, location: str, numel: int, nbytes: int, root: Storage | None = None,
        offset: int = 0,
    ) -> None:  # fmt: skip
        self.type_name = type_name
        self.dtype = dtype
        self.key = key
        self.location = location
        self.numel = numel
        self.nbytes = nbytes
        self.root = root
        self.offset = offset


class Tensor(_Parts):
    """A tensor that a pickle rebuilds.

    Attributes:
        storage: None for sparse, meta and nested tensors, and for those that wrap another (``parts``).
        dtype: as ``float32``; "" if the pickle does not state it.
        shape, strides, offset: in elements; ``strides`` is None where there are none.
        layout: ``strided``, ``sparse_coo``, ``sparse_csr``, ...; ``nested``.
        device: as ``cpu``, ``cuda:0``, ``meta``.
        parameter: it is a ``torch.nn.Parameter``.
        subclass: its class, if it is a subclass.
        conj, neg: its conjugate and negative bits.
        quantizer: ``(scheme, scale, zero point)``, or ``(scheme, scales, zero points, axis)``.
        parts: its component tensors and values: ``indices``, ``values``, ``data``, ...
        state: attributes set on it; None where there are none.
        rebuilt_by: the name of the function that rebuilds it, as ``_rebuild_tensor_v2``.
    """

    __slots__ = (
        "conj", "device", "dtype", "layout", "neg", "offset", "parameter", "parts", "quantizer", "rebuilt_by", "requires_grad",
        "shape", "state", "storage", "strides", "subclass",
    )  # fmt: skip

    def __init__(
        self, storage: Storage | None, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...] | None, offset: int,
        requires_grad: bool, device: str, rebuilt_by: str, layout: str = "strided", parameter: bool = False,
        subclass: Any = None, conj: bool = False, neg: bool = False, quantizer: tuple[Any, ...] | None = None,
        parts: dict[str, Any] | None = None, state: Any = None,
    ) -> None:  # fmt: skip
        self.storage = storage
        self.dtype = dtype
        self.shape = shape
        self.strides = strides
        self.offset = offset
        self.requires_grad = requires_grad
        self.device = device
        self.rebuilt_by = rebuilt_by
        self.layout = layout
        self.parameter = parameter
        self.subclass = subclass
        self.conj = conj
        self.neg = neg
        self.quantizer = quantizer
        self.parts = parts
        self.state = state

    @property
    def numel(self) -> int:
        """How many elements it has."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def span(self) -> tuple[int, int]:
        """The byte range of its storage that it needs: the first byte, and the byte after the last."""
        bits = PACKED.get(self.dtype) or 8 * ELEMENT_SIZES.get(self.dtype, 1)
        if not self.numel:
            start = self.offset * bits // 8
            return start, start
        low = high = self.offset
        for length, stride in zip(self.shape, self.strides or (), strict=False):
            if stride < 0:
                low += (length - 1) * stride
            else:
                high += (length - 1) * stride
        return low * bits // 8, -(-(high + 1) * bits // 8)

    @property
    def fits(self) -> bool:
        """Whether its storage is long enough for it."""
        if self.storage is None:
            return True
        start, end = self.span
        return start >= 0 and end <= self.storage.nbytes


class Described(_Parts):
    """A call that was not executed, or an object that was not created.

    Attributes:
        kind: ``reduce`` (a call), ``newobj`` (``cls.__new__``) or ``instance`` (of protocol 0).
        target: the function or class, nearly always a :class:`Global`.
        args, kwargs: its arguments.
        state: the state that would be set on it; None if there is none.
        items: what would be appended to it.
        pairs: what would be set in it, as ``(key, value)``.
    """

    __slots__ = ("args", "items", "kind", "kwargs", "pairs", "state", "target")

    def __init__(
        self, kind: str, target: Any, args: tuple[Any, ...], kwargs: dict[Any, Any] | None = None, state: Any = None,
        items: list[Any] | None = None, pairs: list[tuple[Any, Any]] | None = None,
    ) -> None:  # fmt: skip
        self.kind = kind
        self.target = target
        self.args = args
        self.kwargs = kwargs
        self.state = state
        self.items = items
        self.pairs = pairs


class PersistentId(_Parts):
    """An object outside the pickle, named by a persistent id of the writer's own kind."""

    __slots__ = ("pid",)

    def __init__(self, pid: Any) -> None:
        self.pid = pid


class ModuleSource(_Parts):
    """The class of a module, with its source text, which streams store."""

    __slots__ = ("file", "source", "type")

    def __init__(self, type_: Any, file: str | None, source: str | None) -> None:
        self.type = type_
        self.file = file
        self.source = source


class NumpyDtype(_Parts):
    """A ``numpy.dtype``.

    Attributes:
        code: as ``f8``.
        order: ``<``, ``>``, ``|`` or ``=``.
        state: the rest of its state: fields of a record, sizes of texts.
    """

    __slots__ = ("code", "order", "state")

    def __init__(self, code: str, order: str = "=", state: Any = None) -> None:
        self.code = code
        self.order = order
        self.state = state

    def __str__(self) -> str:
        return self.code if self.order in "=|" else f"{self.order}{self.code}"


class NumpyArray(_Parts):
    """A ``numpy.ndarray``: ``data`` is its bytes, or a list of its objects."""

    __slots__ = ("data", "dtype", "fortran", "shape", "subclass")

    def __init__(
        self, shape: tuple[int, ...] = (), dtype: NumpyDtype | None = None, fortran: bool = False, data: Any = None,
        subclass: Any = None,
    ) -> None:  # fmt: skip
        self.shape = shape
        self.dtype = dtype
        self.fortran = fortran
        self.data = data
        self.subclass = subclass


class NumpyScalar(_Parts):
    """A NumPy scalar: ``data`` is its bytes, or the object itself."""

    __slots__ = ("data", "dtype")

    def __init__(self, dtype: NumpyDtype, data: Any) -> None:
        self.dtype = dtype
        self.data = data


class UnpicklerEvent(NamedTuple):
    """Something that a restricted unpickler may refuse, in order of first occurrence in the pickle.

    Attributes:
        kind: ``opcode``, ``global``, ``reduce``, ``newobj``, ``build``, ``append``, ``setitem`` or ``persistent``.
        subject: the opcode's name; a :class:`Global` as the pickle spells it; the target of a call; the class of the object,
            or a text if it is not an instance of a class; the kind of persistent id.
        protocol: as stated so far; decides whether names of Python 2 are translated.
    """

    kind: str
    subject: Any
    protocol: int


_PARTS: dict[type, tuple[str, ...]] = {
    Tensor: ("storage", "subclass", "quantizer", "parts", "state"),
    Described: ("target", "args", "kwargs", "state", "items", "pairs"),
    PersistentId: ("pid",),
    ModuleSource: ("type",),
    NumpyDtype: ("state",),
    NumpyArray: ("dtype", "data", "subclass"),
    NumpyScalar: ("dtype", "data"),
    Storage: ("root",),
    Dict: ("factory", "state"),
    Deque: ("state",),
    slice: ("start", "stop", "step"),
}
_LEAVES = frozenset({type(None), bool, int, float, complex, str, bytes, bytearray, range, Global, Device})


def children(value: Any) -> Iterator[tuple[Any, Any]]:
    """What a value directly consists of: ``(key, value)`` of a dictionary, index or name of a part, and the part itself.

    Keys that are not plain (such as a tuple of tensors) are parts, too, under the name ``"key"``.
    """
    kind = value.__class__
    if kind is dict or kind is Dict:
        for key, item in value.items():
            if key.__class__ not in _LEAVES:
                yield "key", key
            yield key, item
    elif kind is list or kind is tuple or kind is Deque or kind is Size:
        yield from enumerate(value)
    elif kind is set or kind is frozenset:
        for item in value:
            yield "element", item
    for name in _PARTS.get(kind, ()):
        part = getattr(value, name)
        if part is not None:
            yield name, part


def walk(value: Any, *, into: Callable[[Any], bool] = lambda _: True) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield every object in a value once, with its path; a parent before its parts, in order.

    It does not recurse, so nesting uses no stack, and cycles end.

    Parameters:
        value: any value from a pickle.
        into: whether the parts of this object are wanted, too.
    """
    for keys, part in _visited(value, into):
        yield tuple(keys), part


def parts(value: Any) -> Iterator[Any]:
    """Yield the same objects without their paths, whose cost is proportional to their length."""
    for _, part in _visited(value, lambda _: True):
        yield part


def _visited(value: Any, into: Callable[[Any], bool]) -> Iterator[tuple[list[Any], Any]]:
    """The keys that lead to each object, in a list that is used again, and the object."""
    keys: list[Any] = []
    yield keys, value
    if value.__class__ in _LEAVES or not into(value):
        return
    seen = {id(value)}
    frames = [children(value)]
    keys.append(None)
    while frames:
        for key, part in frames[-1]:
            keys[-1] = key
            if part.__class__ in _LEAVES:
                yield keys, part
                continue
            if id(part) in seen:
                continue
            seen.add(id(part))
            yield keys, part
            if into(part):
                frames.append(children(part))
                keys.append(None)
                break
        else:
            frames.pop()
            keys.pop()


def depth(value: Any, limit: int) -> int:
    """The nesting depth of a value for a reader that visits each object once; stops at one above ``limit``."""
    if value.__class__ in _LEAVES:
        return 0
    seen = {id(value)}
    stack = [children(value)]
    deepest = 1
    while stack:
        for _, part in stack[-1]:
            if part.__class__ in _LEAVES or id(part) in seen:
                continue
            seen.add(id(part))
            stack.append(children(part))
            if len(stack) > deepest:
                deepest = len(stack)
                if deepest > limit:
                    return deepest
            break
        else:
            stack.pop()
    return deepest


def tensors(value: Any) -> Iterator[tuple[tuple[Any, ...], Tensor]]:
    """Yield every tensor in a value once, with its path, without the parts of tensors."""
    for keys, result in _visited(value, lambda part: part.__class__ is not Tensor):
        if result.__class__ is Tensor:
            yield tuple(keys), result
