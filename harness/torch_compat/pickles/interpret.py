"""Builds the results of a few known functions without calling them: tensors, ordered dictionaries, NumPy arrays.

A call whose arguments match no release is described like a call of an unknown function; numbers that no writer produces (negative sizes)
are an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch_compat.errors import Corrupt, Unsafe
from torch_compat.pickles.budget import UnpicklingBudget
from torch_compat.pickles.values import (
    Deque,
    Described,
    Device,
    Dict,
    Global,
    ModuleSource,
    NumpyArray,
    NumpyDtype,
    NumpyScalar,
    PersistentId,
    Size,
    Storage,
    Tensor,
)
from torch_compat.values.dtypes import ALIASES, ELEMENT_SIZES, storage_class
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["NEWOBJ", "REBUILDERS", "UnpicklingBudget", "build", "storage_of"]

MOST_DIMENSIONS = 64  # as torch has it; tensors may share one shape
MAX = 1 << 63


_ENCODINGS = frozenset({"latin1", "latin-1", "utf-8", "utf8", "ascii"})


def _described(target: Global, args: tuple[Any, ...]) -> Described:
    return Described("reduce", target, args)


def _ordered(target: Global, args: tuple[Any, ...], budget: UnpicklingBudget) -> Any:
    if not args:
        return Dict(target)
    if len(args) > 1:
        return _described(target, args)
    return _filled(Dict(target), target, args, budget)


def _filled(value: Dict, target: Global, args: tuple[Any, ...], budget: UnpicklingBudget) -> Any:
    given = args[-1]
    if given.__class__ is dict or given.__class__ is Dict:  # its keys are checked
        budget.copy(len(given))
        value.update(given)
        return value
    if given.__class__ is not list:
        return _described(target, args)
    budget.copy(len(given))  # before they are inspected: many calls may share them
    if any(pair.__class__ not in {list, tuple} or len(pair) != 2 for pair in given):
        return _described(target, args)
    budget.keys([pair[0] for pair in given])
    value.update(given)
    return value


def _defaultdict(target: Global, args: tuple[Any, ...], budget: UnpicklingBudget) -> Any:
    if not args:
        return Dict(target)
    result = Dict(target, args[0])
    return result if len(args) == 1 else _filled(result, target, args, budget) if len(args) == 2 else _described(target, args)


def _deque(target: Global, args: tuple[Any, ...], budget: UnpicklingBudget) -> Any:
    items, maxlen = (*args, None, None)[:2]
    if len(args) > 2 or items.__class__ not in {type(None), list, tuple} or maxlen.__class__ not in {type(None), int}:
        return _described(target, args)
    result = Deque(target, maxlen)
    if items:
        budget.copy(len(items))
        result.extend(items)
    return result


def _set(target: Global, args: tuple[Any, ...], budget: UnpicklingBudget) -> Any:
    if len(args) > 1 or (args and args[0].__class__ not in {list, tuple, set, frozenset}):
        return _described(target, args)
    items = args[0] if args else ()
    budget.copy(len(items))
    budget.keys(items)
    return set(items) if target.name == "set" else frozenset(items)


def _encode(target: Global, args: tuple[Any, ...], budget: UnpicklingBudget) -> Any:
    if not 0 < len(args) < 3 or any(part.__class__ is not str for part in args) or not _ENCODINGS.issuperset(args[1:]):
        return _described(target, args)
    budget.copy(len(args[0]) >> 6)
    try:
        return args[0].encode(*args[1:])
    except UnicodeEncodeError as error:
        raise Corrupt(f"contains text that cannot be encoded: {error.reason}", code="bad-text") from error


def _bytes(target: Global, args: tuple[Any, ...], budget: UnpicklingBudget) -> Any:
    make = bytearray if target.name == "bytearray" else bytes
    if not args:
        return make()
    if len(args) == 1 and args[0].__class__ is bytes:
        budget.copy(len(args[0]) >> 6)
        return make(args[0])
    if len(args) == 2 and args[0].__class__ is str:
        encoded = _encode(target, args, budget)
        return make(encoded) if encoded.__class__ is bytes else encoded
    return _described(target, args)


def _complex(target: Global, args: tuple[Any, ...], _: UnpicklingBudget) -> Any:
    if not args or len(args) > 2 or any(part.__class__ is not float and part.__class__ is not int for part in args):
        return _described(target, args)
    try:
        return complex(*args)
    except OverflowError as error:
        raise Corrupt("has a complex number whose integers are too large", code="bad-number") from error


def _slice(target: Global, args: tuple[Any, ...], _: UnpicklingBudget) -> Any:
    return slice(*args) if 0 < len(args) < 4 else _described(target, args)


def _range(target: Global, args: tuple[Any, ...], _: UnpicklingBudget) -> Any:
    if not 0 < len(args) < 4 or any(part.__class__ is not int for part in args) or args[2:] == (0,):
        return _described(target, args)
    return range(*args)


def _reconstructor(target: Global, args: tuple[Any, ...], _: UnpicklingBudget) -> Any:
    if len(args) != 3 or args[0].__class__ is not Global or args[1].__class__ is not Global:
        return _described(target, args)
    bare = args[1].name == "object" and args[1].module == "builtins"
    return Described("newobj", args[0], () if bare else args[2:])


def _newobj_function(target: Global, args: tuple[Any, ...], budget: UnpicklingBudget) -> Any:
    budget.copy(len(args))
    return Described("newobj", args[0], args[1:]) if args else _described(target, args)


def _size(target: Global, args: tuple[Any, ...], budget: UnpicklingBudget) -> Any:
    if len(args) > 1 or (args and args[0].__class__ not in {tuple, list, Size}):
        return _described(target, args)
    items = args[0] if args else ()
    budget.copy(len(items))
    return Size(items)


def _device(target: Global, args: tuple[Any, ...], _: UnpicklingBudget) -> Any:
    if args and args[0].__class__ is str:
        kind, colon, number = args[0].partition(":")
        if len(args) == 1 and not colon:
            return Device(kind)
        if len(args) == 1 and number.isdecimal() and len(number) < 9:
            return Device(kind, int(number))
        if len(args) == 2 and not colon and args[1].__class__ is int:
            return Device(kind, args[1])
    return _described(target, args)


def _layout(target: Global, args: tuple[Any, ...], _: UnpicklingBudget) -> Any:
    if len(args) == 1 and args[0].__class__ is str and args[0].startswith("torch."):
        return Global("torch", args[0][6:])
    return _described(target, args)


def _first(target: Global, args: tuple[Any, ...], _: UnpicklingBudget) -> Any:
    """Functions that state the type of a value for TorchScript and return the value."""
    return args[0] if args else _described(target, args)


# ---------------------------------------------------------------------------------------------------------------------- tensors


def dtype_name(value: Any) -> str | None:
    """``float32`` of ``torch.float32``, or of a storage class; None for anything else."""
    if value.__class__ is Global and value.module == "torch":
        name = ALIASES.get(value.name, value.name)
        return name if name in ELEMENT_SIZES else storage_class("torch", name)
    return None


def _sizes(value: Any) -> Any:
    """Sizes of a shape, as a tuple of int; None if they are none.

    Raises:
        Corrupt: one is negative or has more than 63 bits.
    """
    if value.__class__ is not tuple:
        if value.__class__ is not Size and value.__class__ is not list:
            return None
        _few(len(value))
        value = tuple(value)
    _few(len(value))
    for size in value:
        if size.__class__ is not int:
            return None
        if not 0 <= size < MAX:
            raise Corrupt(f"has a tensor of shape {_short(value)}", code="bad-tensor")
    return value


def _few(dimensions: int) -> None:
    if dimensions > MOST_DIMENSIONS:
        raise Corrupt(f"has a tensor or array with {dimensions} dimensions; the maximum is {MOST_DIMENSIONS}", code="bad-tensor")


def _strides(value: Any, shape: tuple[int, ...]) -> Any:
    if value.__class__ is not tuple:
        if value.__class__ is not Size and value.__class__ is not list:
            return None
        _few(len(value))
        value = tuple(value)
    _few(len(value))
    for stride in value:
        if stride.__class__ is not int:
            return None
        if not -MAX <= stride < MAX:
            raise Corrupt("has a tensor with a stride that does not fit in 63 bits", code="bad-tensor")
    if len(value) != len(shape):
        raise Corrupt(f"has a tensor of rank {len(shape)} with {count_of(len(value), 'stride')}", code="bad-tensor")
    return value


def _short(value: tuple[Any, ...]) -> str:
    return "(" + ", ".join(map(_size_text, value[:8])) + (", ...)" if value[8:] else ")")


def _size_text(part: Any) -> str:
    """A size of a refused shape, whose other sizes may be anything."""
    if part.__class__ is not int:
        return "?"
    return hex(part) if abs(part) > MAX else str(part)


def _tensor(target: Global, args: tuple[Any, ...], dtype: str | None, requires_grad: Any) -> Any:
    """Of storage, offset, size, stride and whatever follows."""
    storage, offset, size, stride = args[:4]
    if storage.__class__ is not Storage or dtype is None or offset.__class__ is not int:
        return _described(target, args)
    shape = _sizes(size)
    strides = None if shape is None else _strides(stride, shape)
    if shape is None or strides is None:
        return _described(target, args)
    if not 0 <= offset < MAX:
        raise Corrupt("has a tensor that begins before its storage", code="bad-tensor")
    return Tensor(storage, dtype, shape, strides, offset, requires_grad is True, storage.location, target.name)


def _metadata(tensor: Any, metadata: Any) -> Any:
    if tensor.__class__ is Tensor and metadata.__class__ in {dict, Dict}:
        tensor.conj = metadata.get("conj") is True
        tensor.neg = metadata.get("neg") is True
    return tensor


def _rebuild_tensor(target: Global, args: tuple[Any, ...], _: UnpicklingBudget) -> Any:
    if len(args) != 4:
        return _described(target, args)
    return _tensor(target, args, getattr(args[0], "dtype", None), requires_grad=False)


def _rebuild_tensor_v2(target: Global, args: tuple[Any, ...], _: UnpicklingBudget) -> Any:
    if len(args) == 6:  # nearly all tensors: a faster version of the checks below
        storage, offset, shape, strides, requires_grad = args[:5]
        if (
            storage.__class__ is Storage
            and shape.__class__ is strides.__class__ is tuple
            and offset.__class__ is int
            and 0 <= offset < MAX
            and len(shape) == len(strides) <= MOST_DIMENSIONS
        ):
            for size in shape:
                if size.__class__ is not int or not 0 <= size < MAX:
                    break
            else:
                for stride in strides:
                    if stride.__class__ is not int or not 0 <= stride < MAX:
                        break
                else:
                    return Tensor(
                        storage, storage.dtype, shape, strides, offset, requires_grad is True, storage.location, target.name
                    )
    storage = args[0] if args else None
    if storage.__class__ is not Storage or not 6 <= len(args) <= 7:
        return _described(target, args)
    result = _tensor(target, args, storage.dtype, args[4])
    return _metadata(result, args[6]) if len(args) == 7 else result


def _rebuild_tensor_v3(target: Global, args: tuple[Any, ...], _: UnpicklingBudget) -> Any:
    if not 7 <= len(args) <= 8:
        return _described(target, args)
    result = _tensor(target, args, dtype_name(args[6]), args[4])
    return _metadata(result, args[7]) if len(args) == 8 else result


def _rebuild_qtensor(target: Global, args: tuple[Any, ...], _: UnpicklingBudget) -> Any:
    storage = args[0] if args else None
    if storage.__class__ is not Storage or not 7 <= len(args) <= 8:
        return _described(target, args)
    if len(args) == 8:  # 1.2: scale and zero point stand alone
        quantizer: Any = ("per_tensor_affine", args[4], args[5])
    else:
        quantizer = args[4]
        if quantizer.__class__ is not tuple or not 0 < len(quantizer) < 9:
            return _described(target, args)
        scheme = quantizer[0]
        quantizer = (scheme.name if scheme.__class__ is Global else scheme, *quantizer[1:])
    tensor = _tensor(target, args, storage.dtype, args[-2])
    if tensor.__class__ is Tensor:
        tensor.quantizer = quantizer
    return tensor


def _copied(tensor: Tensor) -> Tensor:
    return Tensor(
        tensor.storage, tensor.dtype, tensor.shape, tensor.strides, tensor.offset, tensor.requires_grad, tensor.device,
        tensor.rebuilt_by, tensor.layout, tensor.parameter, tensor.subclass, tensor.conj, tensor.neg, tensor.quantizer,
        tensor.parts, tensor.state,
    )  # fmt: skip


def _rebuild_parameter(target: Global, args: tuple[Any, ...], _: UnpicklingBudget) -> Any:
    if not 1 <= len(args) <= 4 or args[0].__class__ is not Tensor:
        return _described(target, args)
    tensor = _copied(args[0])
    tensor.parameter = True
    tensor.requires_grad = args[1] is True if len(args) > 1 else True
    if len(args) == 4:
        tensor.state = args[3]
    return tensor


def _rebuild_sparse(target: Global, args: tuple[Any, ...], _: UnpicklingBudget) -> Any:
    layout = args[0].name if args and args[0].__class__ is Global else None
    data = args[1] if len(args) == 2 else None
    if layout is None or data.__class__ is not tuple:
        return _described(target, args)
    if layout == "sparse_coo" and 3 <= len(data) <= 4:
        indices, values, size = data[:3]
        parts = {"indices": indices, "values": values}
        if len(data) == 4:
            parts["coalesced"] = data[3]
    elif len(data) == 4:
        compressed, plain, values, size = data
        rows = layout in {"sparse_csr", "sparse_bsr"}
        names = ("crow_indices", "col_indices") if rows else ("ccol_indices", "row_indices")
        parts = {names[0]: compressed, names[1]: plain, "values": values}
    else:
        return _described(target, args)
    shape = _sizes(size)
    if values.__class__ is not Tensor or shape is None:
        return _described(target, args)
    return Tensor(None, values.dtype, shape, None, 0, False, values.device, target.name, layout, parts=parts)


def _rebuild_nested(target: Global, args: tuple[Any, ...], _: UnpicklingBudget) -> Any:
    if len(args) != 4 or args[0].__class__ is not Tensor:
        return _described(target, args)
    parts = dict(zip(("buffer", "sizes", "strides", "offsets"), args, strict=True))
    return Tensor(None, args[0].dtype, (), None, 0, False, args[0].device, target.name, "nested", parts=parts)


def _rebuild_meta(target: Global, args: tuple[Any, ...], _: UnpicklingBudget) -> Any:
    dtype = dtype_name(args[0]) if len(args) == 4 else None
    shape = None if dtype is None else _sizes(args[1])
    strides = None if shape is None else _strides(args[2], shape)
    if dtype is None or shape is None or strides is None:
        return _described(target, args)
    return Tensor(None, dtype, shape, strides, 0, args[3] is True, "meta", target.name)


def _rebuild_wrapper(target: Global, args: tuple[Any, ...], _: UnpicklingBudget) -> Any:
    dtype = dtype_name(args[1]) if len(args) == 8 else None
    shape = None if dtype is None else _sizes(args[2])
    if dtype is None or shape is None or args[4].__class__ is not int:
        return _described(target, args)
    strides = None if args[3] is None else _strides(args[3], shape)
    layout = args[5].name if args[5].__class__ is Global else "strided"
    return Tensor(None, dtype, shape, strides, args[4], args[7] is True, _place(args[6]), target.name, layout, subclass=args[0])


def _place(device: Any) -> str:
    return str(device) if device.__class__ is Device or device.__class__ is str else ""


def _rebuild_device_tensor(target: Global, args: tuple[Any, ...], _: UnpicklingBudget) -> Any:
    if len(args) != 4:
        return _described(target, args)
    data, dtype, device, requires_grad = args
    name = dtype_name(dtype)
    shape = _sizes(data.shape) if data.__class__ is Tensor or data.__class__ is NumpyArray else None
    if name is None or shape is None:
        return _described(target, args)
    return Tensor(None, name, shape, None, 0, requires_grad is True, _place(device), target.name, parts={"data": data})


def _rebuild_from_type(target: Global, args: tuple[Any, ...], budget: UnpicklingBudget) -> Any:
    """Of function, type, arguments and state: the result of the function, as another class."""
    if len(args) != 4 or args[0].__class__ is not Global or args[2].__class__ is not tuple:
        return _described(target, args)
    function, kind, inner, state = args
    if function.rebuild is None or function.rebuild is _rebuild_from_type:  # only hostile pickles nest it, without end
        return _described(target, args)
    tensor = function.rebuild(function, inner, budget)
    if tensor.__class__ is not Tensor:
        return _described(target, args)
    if kind.__class__ is Global and kind.name == "Parameter" and kind.module == "torch.nn.parameter":
        tensor.parameter = True
    elif kind.__class__ is not Global or kind.name != "Tensor" or kind.module != "torch":
        tensor.subclass = kind
    tensor.state = state
    return tensor


# ------------------------------------------------------------------------------------------------------------------------ numpy


def _numpy_reconstruct(target: Global, args: tuple[Any, ...], _: UnpicklingBudget) -> Any:
    if len(args) != 3 or args[0].__class__ is not Global:
        return _described(target, args)
    return NumpyArray(subclass=None if args[0].name == "ndarray" else args[0])


def _numpy_scalar(target: Global, args: tuple[Any, ...], _: UnpicklingBudget) -> Any:
    return NumpyScalar(*args) if len(args) == 2 and args[0].__class__ is NumpyDtype else _described(target, args)


def _numpy_dtype(target: Global, args: tuple[Any, ...], _: UnpicklingBudget) -> Any:
    return NumpyDtype(args[0]) if args and args[0].__class__ is str else _described(target, args)


def _numpy_frombuffer(target: Global, args: tuple[Any, ...], _: UnpicklingBudget) -> Any:
    shape = _sizes(args[2]) if len(args) >= 4 else None
    if shape is None or args[1].__class__ is not NumpyDtype:
        return _described(target, args)
    return NumpyArray(shape, args[1], args[3] == "F", args[0])


def _build_array(array: NumpyArray, state: Any) -> None:
    if state.__class__ is tuple and len(state) == 5:
        _, shape, dtype, fortran, data = state
        result = _sizes(shape)
        if result is not None and dtype.__class__ is NumpyDtype:
            array.shape, array.dtype, array.fortran, array.data = result, dtype, fortran is True, data
            return
    raise Corrupt("has a NumPy array with an invalid state", code="bad-build")


def _build_dtype(dtype: NumpyDtype, state: Any) -> None:
    if state.__class__ is tuple and len(state) > 2 and state[1].__class__ is str and len(state[1]) == 1:
        dtype.order, dtype.state = state[1], state[2:]
        return
    raise Corrupt("has a NumPy dtype with an invalid state", code="bad-build")


def build(value: Any, state: Any) -> None:
    """Apply ``BUILD`` to an object.

    Raises:
        Corrupt: this kind of object has no state.
        Unsafe: it would change a class or a function for the whole process.
    """
    kind = value.__class__
    if kind is Described:
        value.state = state if value.state is None else (value.state, state)  # a second one adds to the first
    elif kind is Dict or kind is Tensor or kind is Deque:
        value.state = state
    elif kind is NumpyArray:
        _build_array(value, state)
    elif kind is NumpyDtype:
        _build_dtype(value, state)
    elif kind is Global:
        raise Unsafe(f"would set attributes of {value.path} for the whole process", code="changes-global")
    elif kind is PersistentId or kind is ModuleSource or kind is NumpyScalar:
        raise Corrupt(f"sets the state of a value of type {kind.__name__}", code="bad-build")
    else:
        raise Corrupt(f"sets the state of a value of type {kind.__name__}, which has none", code="bad-build")


# --------------------------------------------------------------------------------------------------------------- persistent ids


def storage_of(pid: tuple[Any, ...], seen: dict[Any, Storage], storages: list[Storage]) -> Storage:
    """The storage of ``("storage", class, key, location, numel)``, of streams with a sixth part: None, or which part of it.

    Raises:
        Corrupt: the parts are not of these types, or not possible.
    """
    if not 5 <= len(pid) <= 6:
        raise Corrupt(f"refers to a storage with {count_of(len(pid), 'value')}; expected 5 or 6", code="bad-storage")
    kind, key, location, numel = pid[1:5]
    if location.__class__ is not str:
        location = location.decode("latin-1") if location.__class__ is bytes else "cpu" if location is None else None
    if key.__class__ is not str:
        key = str(key) if key.__class__ is int and -MAX < key < MAX else None
    known = kind.storage if kind.__class__ is Global else None
    if known is None or key is None or location is None or numel.__class__ is not int:
        text = kind.path if kind.__class__ is Global else f"a value of type {kind.__class__.__name__}"
        types = ", ".join(part.__class__.__name__ for part in pid[2:5])
        raise Corrupt(f"refers to a storage by {text} and ({types}); expected a class, string, string, int", code="bad-storage")
    type_name, dtype, size = known
    if not 0 <= numel < MAX // size:
        raise Corrupt(f"names a storage of {numel if abs(numel) < MAX * MAX else hex(numel)} elements", code="bad-storage")
    storage = seen.get(key)
    if storage is None or storage.numel != numel or storage.type_name != type_name:
        storage = Storage(type_name, dtype, key, location, numel, numel * size)
        seen[key] = storage
        storages.append(storage)
    view = pid[5] if len(pid) == 6 else None
    return storage if view is None else _view(storage, view, seen)


def _view(root: Storage, view: Any, seen: dict[Any, Storage]) -> Storage:
    if (
        view.__class__ is not tuple
        or len(view) != 3
        or view[0].__class__ is not str
        or {int} != {part.__class__ for part in view[1:]}
    ):
        raise Corrupt("refers to a part of a storage by something other than (key, offset, size)", code="bad-storage")
    key, offset, numel = view
    if not 0 <= offset <= root.numel or not 0 <= numel <= root.numel - offset:
        raise Corrupt(f"refers to a part outside its storage of {root.numel} elements", code="bad-storage")
    result = seen.get((root.key, key, offset, numel))
    if result is None:
        size = ELEMENT_SIZES[root.dtype]
        result = Storage(root.type_name, root.dtype, key, root.location, numel, numel * size, root, offset)
        seen[root.key, key, offset, numel] = result
    return result


REBUILDERS: dict[str, Callable[[Global, tuple[Any, ...], UnpicklingBudget], Any]] = {
    "collections.OrderedDict": _ordered,
    "collections.Counter": _ordered,
    "collections.defaultdict": _defaultdict,
    "collections.deque": _deque,
    "builtins.set": _set,
    "builtins.frozenset": _set,
    "builtins.bytearray": _bytes,
    "builtins.bytes": _bytes,
    "builtins.complex": _complex,
    "builtins.slice": _slice,
    "builtins.range": _range,
    "_codecs.encode": _encode,
    "copyreg._reconstructor": _reconstructor,
    "copyreg.__newobj__": _newobj_function,
    "torch.Size": _size,
    "torch.device": _device,
    "torch.serialization._get_layout": _layout,
    "torch.nn.parameter.Parameter": _rebuild_parameter,
    "torch._tensor._rebuild_from_type": _rebuild_from_type,
    "torch._tensor._rebuild_from_type_v2": _rebuild_from_type,
    "torch.tensor._rebuild_from_type": _rebuild_from_type,
    "torch._utils._rebuild_tensor": _rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": _rebuild_tensor_v2,
    "torch._utils._rebuild_tensor_v3": _rebuild_tensor_v3,
    "torch._utils._rebuild_qtensor": _rebuild_qtensor,
    "torch._utils._rebuild_parameter": _rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": _rebuild_parameter,
    "torch._utils._rebuild_sparse_tensor": _rebuild_sparse,
    "torch._utils._rebuild_sparse_csr_tensor": _rebuild_sparse,
    "torch._utils._rebuild_nested_tensor": _rebuild_nested,
    "torch._utils._rebuild_meta_tensor_no_storage": _rebuild_meta,
    "torch._utils._rebuild_wrapper_subclass": _rebuild_wrapper,
    "torch._utils._rebuild_device_tensor_from_numpy": _rebuild_device_tensor,
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": _rebuild_device_tensor,
    "torch._utils._rebuild_xla_tensor": _rebuild_device_tensor,
    "torch._utils._rebuild_mlc_tensor": _rebuild_device_tensor,
    **{
        f"torch.jit._pickle.{name}": _first
        for name in ("restore_type_tag", "build_intlist", "build_doublelist", "build_boollist", "build_tensorlist")
    },
    "numpy.dtype": _numpy_dtype,
    **{
        f"numpy.{core}.{path}": rebuild
        for core in ("core", "_core")
        for path, rebuild in (
            ("multiarray._reconstruct", _numpy_reconstruct),
            ("multiarray.scalar", _numpy_scalar),
            ("numeric._frombuffer", _numpy_frombuffer),
        )
    },
}
"""How calls to a global are interpreted, keyed by its Python 3 path."""

NEWOBJ = frozenset({_size, _ordered, _set})
"""Classes for which ``NEWOBJ`` gives the same object as a call, if no mutable object is passed."""
