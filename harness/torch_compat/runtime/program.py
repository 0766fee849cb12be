"""A TorchScript program, loaded from an archive: its classes, functions and tensors.

There are two layouts (see :mod:`torch_compat.formats`): ``data.pkl`` with classes in ``code/`` (1.3 and newer, also mobile archives), and
``model.json`` with a file of methods for each module (1.0 to 1.2). A mobile archive is run from the TorchScript source that it
contains besides its bytecode; ``notes`` says so.
"""

from __future__ import annotations

import ast
import json
from typing import TYPE_CHECKING, Any

from torch_compat import arrays
from torch_compat.archive import ZipArchive
from torch_compat.errors import Corrupt, HarnessError, Refused, Unsupported
from torch_compat.operators.types import CLASS_PREFIX
from torch_compat.pickles import Described, Global, unpickle
from torch_compat.pickles import Device as PickledDevice
from torch_compat.pickles import Tensor as PickledTensor
from torch_compat.releases.release import Release
from torch_compat.runtime import differentiated, dtypes, hash_order, opaque, packed, registry, upgraders
from torch_compat.runtime.faults import translated
from torch_compat.runtime.flatbuffer import Flatbuffer
from torch_compat.runtime.json_integers import INT64, json_integer
from torch_compat.runtime.language import called
from torch_compat.runtime.language.names import ClassInfo
from torch_compat.runtime.language.quick import QUICK
from torch_compat.runtime.language.types import checked_key
from torch_compat.runtime.language.unit import Unit
from torch_compat.runtime.language.unused import Callees
from torch_compat.runtime.signed_bytes import signed_bytes
from torch_compat.runtime.slipping import EQUAL_CALLS, NEUTRAL, STORE, Slipping, storing_methods
from torch_compat.runtime.tensor import OpaqueTensor, Tensor
from torch_compat.runtime.values import Device, NamedTupleValue, ScriptObject, Steps, text_in
from torch_compat.torchscript.parser import memory_needed
from torch_compat.values.dtypes import CAFFE2

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from torch_compat.pickles import Storage
    from torch_compat.runtime.horizons import Horizon
    from torch_compat.runtime.language.names import Names
    from torch_compat.runtime.limits import Limits

__all__ = ["Program"]

# 1.1 and 1.2 write and read integers from -128 to 127 as BININT1, which is unsigned in pickle itself and in 1.3 and newer.
SIGNED_BYTES_UNTIL = Release("1.3.0")
OMITS = 6  # the first bytecode version that omits arguments equal to their defaults
WRITES_INTO_COPIED, COPIES_AGAIN = Release("1.6.0"), Release("1.13.0")  # index_put of a list of tensors
# the first release that folds x == x without comparing
EQUAL_TO_ITSELF: dict[type, Release] = {list: Release("1.6.0"), float: Release("1.10.0")}
MOBILE_UPGRADERS = Release("1.11.0")  # the first lite interpreter that has upgraders
BUILDERS = frozenset({"build_intlist", "build_doublelist", "build_boollist", "build_tensorlist", "restore_type_tag"})


class Program:
    """A program: its source units, its constants, and its initial objects.

    Attributes:
        horizon: the release or day whose behavior is reproduced.
        limits: limits on the cost of a call.
        upgraders: replacements for operator calls of older archives.
        version: the file format version of the archive.
        main: the object of the top-level module.
        notes: remarks on how the program is run.
        applied: the upgraders that replace calls: ``(unit, line, operator, upgrader)``.
        mobile: whether the archive is a mobile archive.
        bytecode: the version of the bytecode; 0 without bytecode, if the version is not stated, and for the newest horizon.
        once: whether equal calls in a tuple are evaluated once (a slip of 1.0).
        listed: whether index_put with a list of tensors as indices writes into the tensor itself (1.6 to 1.12).
        callees: the functions of the program before compilation.
        source: the memory that the parsed source is estimated to need, in bytes.
        missing: operators that the program calls and the reference reader does not have.
        slips: deviations of the horizon's release from its own rules, and those that the program has met.
        extra: the extra files of the user in the archive, by name.
        differentiation: its methods that have been called, with the results that require gradients as of the second call.
    """

    def __init__(
        self,
        archive: ZipArchive | Flatbuffer,
        horizon: Horizon,
        limits: Limits,
        path: str,
        table: upgraders.UpgraderTable | None = None,
    ) -> None:
        self.path = path
        self.horizon = horizon
        self.limits = limits
        self.upgraders = upgraders.recorded(horizon.release) if table is None else table
        self.steps = Steps(limits.steps)
        self.notes: list[str] = []
        self.mobile = False
        self.bytecode = 0
        self.source = 0
        self.applied: list[tuple[str, int, str, str]] = []
        self.missing: set[str] = set()
        self.slips = Slipping(horizon)
        self.differentiation = differentiated.Differentiation(horizon.release)
        self.once = self.slips.has(EQUAL_CALLS)
        self.neutral = self.slips.has(NEUTRAL)
        self.listed = WRITES_INTO_COPIED <= horizon.release < COPIES_AGAIN
        self.units: dict[str, Unit | None] = {}
        self.callees = Callees(self._text)
        self._archive: ZipArchive | Flatbuffer | None = archive
        self._allowance = archive.allowance if isinstance(archive, ZipArchive) else None
        self._names = frozenset(archive.names)
        self._storages: dict[str, np.ndarray[Any, Any]] = {}
        self._tensors: dict[int, Any] = {}
        self._kept: list[Any] = []
        self._constants: list[Any] | None = None
        self._table: list[Any] = []
        self._linking: list[Unit] = []
        self._source_folders: tuple[str, ...] = ("code/",)
        self.extra: dict[str, bytes] = {}
        self._big = False
        if isinstance(archive, Flatbuffer):
            self.main = self._load_flatbuffer(archive)
            self._archive = None
            return
        self.version = self._version(archive)
        self._big = "byteorder" in self._names and archive.record("byteorder").strip() == b"big"
        if "data.pkl" in self._names:
            self.main = self._load_pickled(archive)
        elif "model.json" in self._names:
            self.main = self._load_json(archive)
        else:
            raise Unsupported("has neither data.pkl nor model.json, so it is not TorchScript", where=self.path, code="no-program")
        self.extra = {name[6:]: archive.record(name) for name in archive.names if name.startswith("extra/")}
        self._archive = None

    def _version(self, archive: ZipArchive) -> int:
        record = ".data/version" if ".data/version" in self._names else "version"
        if record not in self._names:
            raise Corrupt("has no version", where=self.path, code="missing-record")
        text = archive.record(record).strip()
        if not text.isdigit() or len(text) > 9:
            raise Corrupt(f"states version {text[:20]!r}", where=self.path, code="bad-version")
        version = int(text)
        if not self.horizon.reads("file-format", version):
            message = f"has file format version {version}, which {self.horizon.name} does not read"
            raise Refused(message, where=self.path, code="file-format")
        return version

    @property
    def _open(self) -> ZipArchive | Flatbuffer:
        if self._archive is None:
            raise HarnessError("the archive is already closed: it was read in full when it was loaded", code="closed")
        return self._archive

    # ------------------------------------------------------------------------------------------------ what units ask for

    def operator(self, name: str, unit: Names, line: int) -> Callable[..., Any]:
        """The implementation of an operator, or its upgrader if the archive is older than the bump that the horizon knows."""
        upgrader = self.upgraders.find(name, self.version)
        if upgrader is not None and not (self.mobile and self.horizon.release < MOBILE_UPGRADERS):
            self.applied.append((unit.name, line, name, upgrader.name))
            short = self.slips.short_of_arguments if self.bytecode >= OMITS else None
            return self.slips.around_division(name, upgrader.call(self.horizon.release, short=short))
        try:
            return self.slips.around(name, registry.resolve(name, self.horizon.release))
        except Unsupported as error:
            self.missing.add(name)
            return registry.lacking(error)

    def quick(self, name: str, arguments: int) -> Callable[..., Any] | None:
        """The fast form of an operator for loops; None if the release or an upgrader changes the operator."""
        result = QUICK.get(name)
        if result is None or result.arguments != arguments or self.upgraders.find(name, self.version) is not None:
            return None
        operator = registry.resolve(name, self.horizon.release)
        around = self.slips.around(name, operator)  # deferred results are tensors, which the operator itself handles
        return result.made(around) if around is operator or self.slips.waits(name) else None

    @property
    def itself(self) -> frozenset[type]:
        """The types whose values always equal themselves, even with NaN inside.

        Equal expressions are computed once, and a list is compared by identity first (1.6); floats are not compared at all (1.10).
        The bytecode interpreter does neither.
        """
        if self.mobile:
            return frozenset()
        return frozenset(kind for kind, since in EQUAL_TO_ITSELF.items() if self.horizon.release >= since)

    def of_itself(self, name: str, unit: Names, line: int) -> Callable[..., Any]:
        """``eq`` or ``ne`` that compares a value with itself."""
        return called.of_itself(self.operator(name, unit, line), self.itself, equal=name == "aten::eq")

    def written(self, unit: Names, line: int) -> Callable[..., Any]:
        """``index_put`` with a list of tensors as indices."""
        return self.operator("aten::index_put_", unit, line)

    def unchanged(self, name: str, unit: Names, line: int) -> Callable[..., Any]:
        """Arithmetic with a neutral operand: returns the tensor itself."""
        function = self.operator(name, unit, line)

        def call(self_: Any, *args: Any, **keywords: Any) -> Any:
            if self_.__class__ is not Tensor:
                return function(self_, *args, **keywords)
            self.slips.meet(NEUTRAL)
            return self_

        return call

    def equal_calls(self) -> None:
        """Note that a tuple in the source holds equal calls, which ``once`` evaluates once."""
        self.slips.meet(EQUAL_CALLS)

    def constant(self, index: int) -> Any:
        """The tensor at an index of ``CONSTANTS``."""
        if self._constants is None:
            if "constants.pkl" in self._names:
                result = unpickle(
                    self._open.view("constants.pkl"), where=f"{self.path}, record 'constants.pkl'", allowance=self._allowance
                ).value
                if result.__class__ not in {tuple, list}:
                    raise Corrupt("constants.pkl is not a tuple", where=self.path, code="constants")
                self._constants = [self._value(item, "constants/") for item in result]
            else:
                self._constants = self._table
        if index >= len(self._constants):
            raise Refused(f"CONSTANTS.c{index} is not in the archive", where=self.path, code="source")
        return self._constants[index]

    def number(self, index: int, operator: str) -> float | None:
        """The number in a 0-dim constant; None for bytecode and for the replacement of a changed operator in 1.6, which take the tensor."""
        value = self.constant(index)
        replaced = self.horizon.release < Release("1.7.0") and self.upgraders.find(operator, self.version) is not None
        if self.mobile or replaced or value.__class__ is not Tensor or value.ndim or value.array.dtype.kind == "c":
            return None
        return value.item()  # type: ignore[no-any-return]

    def reference(self, name: str) -> Any:
        """The class, function or enum member with a qualified name."""
        parts = name.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            unit = self._unit(".".join(parts[:cut]))
            if unit is None:
                continue
            rest = parts[cut:]
            if rest[0] in unit.functions and len(rest) == 1:
                return unit.functions[rest[0]].call
            info = unit.classes.get(rest[0])
            if info is None:
                continue
            if len(rest) == 1:
                return info.python if info.python is not None else info
            if rest[1] in info.members and len(rest) == 2:
                return info.members[rest[1]]
            if rest[1] in info.methods and len(rest) == 2:
                return info.methods[rest[1]].call
        if name.startswith(CLASS_PREFIX):
            raise Unsupported(f"the reference reader has no support for class {name}", where=self.path, code="custom-class")
        raise Refused(f"Unknown type name or function '{name}'", where=self.path, code="source")

    def info(self, name: str) -> ClassInfo | None:
        """The declaration of a class in the source."""
        unit = self._unit(name.rpartition(".")[0])
        return None if unit is None else unit.classes.get(name.rpartition(".")[2])

    def classes(self, name: str) -> Any:
        """The Python class that represents a class of the program; None if there is none."""
        info = self.info(name)
        return None if info is None else info.python

    def _record(self, name: str) -> str | None:
        path = name.replace(".", "/") + ".py"
        return next((folder + path for folder in self._source_folders if folder + path in self._names), None)

    def _text(self, name: str) -> bytes | None:
        if (record := self._record(name)) is None:
            return None
        text = bytes(self._open.view(record))
        self.source += memory_needed(text)  # parsed separately from compilation
        return text

    def _unit(self, name: str) -> Unit | None:
        if name not in self.units:
            self.units[name] = None
            if (record := self._record(name)) is not None:
                self._compile(name, record)
        return self.units[name]

    def _compile(self, name: str, record: str) -> Unit:
        unit = Unit(self, name, self._open.view(record), f"{self.path}, record {record!r}")
        self.units[name] = unit
        self.slips.compiled(unit.file, self._open.view(record), name)
        unit.link()
        return unit

    # ------------------------------------------------------------------------------------------------ flatbuffers

    def _load_flatbuffer(self, archive: Flatbuffer) -> ScriptObject:
        if not self.horizon.reads("bytecode", archive.bytecode):
            message = f"has bytecode version {archive.bytecode}, which {self.horizon.name} does not read"
            raise Refused(message, where=self.path, code="bytecode")
        if not archive.names:
            raise Unsupported("is a mobile archive without TorchScript source", where=self.path, code="no-source")
        self.version = archive.version
        self.mobile = True
        self.slips.family = "mobile"
        self.bytecode = archive.bytecode if self.horizon.release != registry.NEWEST else 0
        self.notes.append("run from the TorchScript source that it contains, not from its bytecode")
        self._constants = archive.constants(self._made)
        value = archive.state(self._made)
        if not isinstance(value, ScriptObject):
            raise Refused(f"contains {type(value).__name__}, expected a module", where=self.path, code="no-module")
        return value

    def _made(self, name: str, attributes: dict[str, Any] | None, state: Any, by_state: bool) -> Any:
        if name.startswith(CLASS_PREFIX):
            return packed.made(name, lambda: state, self.path)
        info = self.info(name)
        if info is None or info.python is None or not issubclass(info.python, ScriptObject):
            raise Refused(f"names {name}, which is not a class in the source", where=self.path, code="source")
        result = info.python()
        if by_state:
            self._set_state(result, info, state)
        else:
            self._set_attributes(result, info, attributes or {})
        return result

    def _set_state(self, value: Any, info: ClassInfo, state: Any) -> None:
        if "__setstate__" not in info.methods:
            raise Refused(f"{info.qualified_name} has no __setstate__", where=self.path, code="source")
        try:
            value.m___setstate__(state)
        except HarnessError:
            raise
        except Exception as error:
            raise translated(error) from error

    def _set_attributes(self, value: Any, info: ClassInfo, attributes: dict[Any, Any]) -> None:
        for name, item in attributes.items():
            if not isinstance(name, str):
                raise Refused(f"has an attribute whose name is not a string: {name!r}", where=self.path, code="pickle")
            value.__dict__["a_" + name] = item
        for name in info.parameters:
            tensor = value.__dict__.get("a_" + name)
            if tensor.__class__ is Tensor:
                tensor.is_parameter = True

    # ------------------------------------------------------------------------------------------------ data.pkl

    def _load_pickled(self, archive: ZipArchive) -> ScriptObject:
        if "bytecode.pkl" in self._names:
            if not any(name.startswith("code/") for name in self._names):
                raise Unsupported("is a mobile archive without TorchScript source", where=self.path, code="no-source")
            self.mobile = True
            self.slips.family = "mobile"
            if self.horizon.release != registry.NEWEST:
                self.bytecode = self._bytecode(archive)
            self.notes.append("run from the TorchScript source that it contains, not from its bytecode")
        result = unpickle(archive.view("data.pkl"), where=f"{self.path}, record 'data.pkl'", allowance=self._allowance).value
        value = self._value(result, "data/")
        if not isinstance(value, ScriptObject):
            raise Refused(f"data.pkl contains {type(value).__name__}, expected a module", where=self.path, code="no-module")
        return value

    def _bytecode(self, archive: ZipArchive) -> int:
        result = unpickle(
            archive.view("bytecode.pkl"), where=f"{self.path}, record 'bytecode.pkl'", allowance=self._allowance
        ).value
        return result[0] if isinstance(result, tuple) and result and result[0].__class__ is int else 0

    def _value(self, value: Any, folder: str) -> Any:
        """Convert a value of a pickle to a value of the program. Objects that are shared in the pickle stay shared."""
        kind = value.__class__
        if value is None or kind is bool or kind is float or kind is complex:
            return value
        if kind is int:
            if not -INT64 <= value < INT64:
                raise Refused("contains an integer that does not fit in 64 bits", where=self.path, code="pickle")
            return value
        if kind is str:
            return text_in(value)
        known = self._tensors.get(id(value))
        if known is not None:
            return known
        self._kept.append(value)
        if kind is PickledTensor:
            tensor = self._tensors[id(value)] = self._tensor(value, folder)
            return tensor
        if kind is Described:
            product = self._tensors[id(value)] = self._described(value, folder)
            return product
        if isinstance(value, dict):
            return self._dict(value, folder)
        if isinstance(value, list):
            items: list[Any] = []
            self._tensors[id(value)] = items
            items.extend(self._value(item, folder) for item in value)
            return items
        if isinstance(value, tuple):
            product = self._tensors[id(value)] = tuple(self._value(item, folder) for item in value)
            return product
        if kind is PickledDevice:
            return Device(value.type, value.index)
        if kind is Global and value.module == "torch":
            result = dtypes.named(value.name)
            if result is not None:
                return result.code
        raise Unsupported(f"contains {kind.__name__}, which programs cannot contain", where=self.path, code="value")

    def _dict(self, value: dict[Any, Any], folder: str) -> dict[Any, Any]:
        results: dict[Any, Any] = {}
        self._tensors[id(value)] = results
        items = {checked_key(self._value(k, folder)): self._value(v, folder) for k, v in value.items()}
        if self.horizon.release < SIGNED_BYTES_UNTIL:
            order = hash_order.unordered_map if self.horizon.release < Release("1.2.0") else hash_order.flat_hash_map
            items = {key: items[key] for key in order(list(items))}
        results.update(items)
        return results

    def _described(self, value: Described, folder: str) -> Any:
        target = value.target
        if target.__class__ is not Global:
            raise Refused("calls something that is not a name", where=self.path, code="pickle")
        if target.module == "torch.jit._pickle":
            if target.name == "build_tensor_from_id":
                return self._table_entry(self._argument(value))
            if target.name in BUILDERS:
                return self._value(self._argument(value), folder)
        if not target.module.startswith("__torch__"):
            raise Refused(f"names {target.path}, which is not a class in the program", where=self.path, code="pickle")
        if target.path.startswith(CLASS_PREFIX):
            product = self._tensors[id(value)] = packed.made(target.path, lambda: self._value(value.state, folder), self.path)
            return product
        info = self.info(target.path)
        if info is None:
            self.reference(target.path)  # raises the error that says why
            raise Refused(f"names {target.path}, which the source does not define", where=self.path, code="source")
        if info.kind == "enum":
            wanted = self._value(self._argument(value), folder)
            for member in info.members.values():
                if member.a_value.__class__ is wanted.__class__ and member.a_value == wanted:
                    return member.mentioned()
            raise Refused(
                f"{target.path} has no member with this value (of type {type(wanted).__name__})", where=self.path, code="enum"
            )
        if info.python is None:
            raise Refused(f"contains an object of {target.path}, an interface", where=self.path, code="pickle")
        if issubclass(info.python, NamedTupleValue):
            items = value.args[0] if len(value.args) == 1 and isinstance(value.args[0], tuple) else value.args
            return info.python(*(self._value(item, folder) for item in items))
        result = info.python()
        self._tensors[id(value)] = result
        self._kept.append(value)
        state = self._value(value.state, folder)
        if "__setstate__" in info.methods:
            self._set_state(result, info, state)
        elif isinstance(state, dict):
            self._set_attributes(result, info, state)
        elif state is not None:
            raise Refused(f"an object of {target.path} has a state that is not a dictionary", where=self.path, code="pickle")
        return result

    def _argument(self, value: Described) -> Any:
        """The first argument of a call that requires an argument."""
        if not value.args:
            raise Refused("calls a function without a required argument", where=self.path, code="pickle")
        return value.args[0]

    def _tensor(self, value: PickledTensor, folder: str) -> Tensor | OpaqueTensor:
        dtype = dtypes.named(value.dtype)
        if value.storage is None or value.layout != "strided" or dtype is None or value.conj or value.neg:
            return opaque.without_numbers(value, dtype if dtype is not None else dtypes.FLOAT32)
        if any(step < 0 for step in value.strides or ()):
            raise Corrupt("a tensor has a negative stride, which torch does not support", where=self.path, code="bad-tensor")
        if not value.fits or value.strides is None:
            raise Corrupt(f"a tensor of {value.shape} does not fit its storage", where=self.path, code="storage-too-short")
        base = self._storage(value.storage, folder, dtype)
        where = f"{self.path}, record {folder + value.storage.key!r}"
        if base.nbytes < value.storage.nbytes:
            message = f"contains {base.nbytes} bytes, the pickle expects {value.storage.nbytes}"
            raise Corrupt(message, where=where, code="size-disagrees")
        if dtype.numpy is None or value.quantizer:
            return opaque.pickled(value, dtype, base, lambda part: self._value(part, folder), where)
        array = arrays.view(base, dtype.numpy, value.shape, value.strides, value.offset, where=where)
        result = Tensor(array, value.requires_grad)
        result.root = array
        return result

    def _storage(self, storage: Storage, folder: str, dtype: dtypes.Dtype) -> np.ndarray[Any, Any]:
        key = folder + storage.key
        result = self._storages.get(key)
        if result is None:
            result = self._storages[key] = self._bytes(key, dtype)
        return result

    def _bytes(self, record: str, dtype: dtypes.Dtype) -> np.ndarray[Any, Any]:
        if record not in self._names:
            raise Corrupt(f"has no record {record!r}", where=self.path, code="missing-record")
        array = arrays.elements(bytearray(self._open.view(record)), dtype.memory)
        return array.byteswap() if self._big else array

    # ------------------------------------------------------------------------------------------------ model.json

    def _load_json(self, archive: ZipArchive) -> ScriptObject:
        self._source_folders = ("libs/", "code/")
        try:
            model = json.loads(archive.record("model.json"))
            main = model["mainModule"]
            entries = model.get("tensors", [])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise Corrupt(f"model.json: {error}", where=self.path, code="bad-json") from error
        try:
            self._table = [self._json_tensor(entry) for entry in entries]
            values: Any = ()
            if "attributes.pkl" in self._names:
                data: bytes | memoryview = archive.view("attributes.pkl")
                if self.horizon.release < SIGNED_BYTES_UNTIL:
                    data = signed_bytes(bytes(data))
                values = self._value(
                    unpickle(data, where=f"{self.path}, record 'attributes.pkl'", allowance=self._allowance).value, "data/"
                )
            return self._json_module(main, values, "", 0)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            if isinstance(error, HarnessError):
                raise
            raise Corrupt(f"model.json does not follow its format: {error!r}", where=self.path, code="bad-json") from error

    def _table_entry(self, index: Any) -> Any:
        if index.__class__ is not int or not 0 <= index < len(self._table):
            raise Corrupt(
                f"refers to a tensor that is not one of the {len(self._table)} in the table", where=self.path, code="bad-json"
            )
        return self._table[index]

    def _json_tensor(self, entry: dict[str, Any]) -> Tensor:
        name = CAFFE2.get(entry["dataType"])
        dtype = dtypes.named(name) if name else None
        if dtype is None or entry.get("isQuantized"):
            raise Unsupported(f"has a tensor of {entry['dataType']}", where=self.path, code="dtype")
        key = entry["data"]["key"]
        base = self._storages.get(key)
        if base is None:
            base = self._storages[key] = self._bytes(key, dtype)
        shape = tuple(json_integer(size) for size in entry.get("dims", ()))
        strides = tuple(json_integer(step) for step in entry.get("strides", ()))
        array = arrays.view(
            base, dtype.array, shape, strides, json_integer(entry.get("offset", 0)), where=f"{self.path}, record {key!r}"
        )
        return Tensor(array, bool(entry.get("requiresGrad")))

    def _json_module(self, described: dict[str, Any], values: Any, path: str, depth: int) -> ScriptObject:
        if depth > 100:
            raise Corrupt("has modules nested deeper than 100", where=self.path, code="too-deep")
        name = str(described.get("name", ""))
        qualified = f"{path}.{name}" if path else f"__torch__.{name}"
        info = ClassInfo(qualified, "module")
        arena = described.get("torchscriptArena")
        space: dict[str, Any] = {"qualified_name": qualified, "info": info}
        if arena is not None:
            record = str(arena["key"])
            if record not in self._names:
                raise Corrupt(f"has no record {record!r}", where=self.path, code="missing-record")
            unit = self._compile(f"{qualified} ({record})", record)
            info.methods = unit.functions
            if self.slips.has(STORE):
                for method in storing_methods(bytes(self._open.view(record))) & info.methods.keys():
                    info.methods[method].call = self.slips.stores
            space |= {f"m_{entry}": function.call for entry, function in unit.functions.items()}
        info.python = type(name or "Module", (ScriptObject,), space)
        result: ScriptObject = info.python()
        state = described.get("getStateAttributeId")
        if state is not None:  # the class's own __setstate__ sets everything else
            if described.get("parameters") and self.horizon.release < Release("1.3.0"):
                raise Refused("has both parameters and a state, which 1.2 writes but cannot read", where=self.path, code="state")
            for item in described.get("parameters", ()):
                (info.buffers if item.get("isBuffer") else info.parameters).append(item["name"])
            for item in described.get("attributes", ()):
                info.attributes[item["name"]] = ast.Constant(item["type"])
            self._set_submodules(result, described, values, qualified, depth)
            self._set_state(result, info, values[json_integer(state)])
            return result
        for item in described.get("parameters", ()):
            tensor = self._table_entry(json_integer(item["tensorId"]))
            if item.get("isBuffer"):
                info.buffers.append(item["name"])
                info.attributes[item["name"]] = ast.Name("Tensor")
            else:
                info.parameters.append(item["name"])
            tensor.is_parameter = not item.get("isBuffer")
            result.__dict__["a_" + item["name"]] = tensor
        for item in described.get("attributes", ()):
            info.attributes[item["name"]] = ast.Constant(item["type"])
            result.__dict__["a_" + item["name"]] = values[json_integer(item["id"])]
        self._set_submodules(result, described, values, qualified, depth)
        return result

    def _set_submodules(self, value: ScriptObject, described: dict[str, Any], values: Any, qualified: str, depth: int) -> None:
        for item in described.get("submodules", ()):
            value.__dict__["a_" + str(item["name"])] = self._json_module(item, values, qualified, depth + 1)
