"""How ``torch.load(..., weights_only=True)`` of each release responds to a pickle, based on the recorded events.

Every release has its own restricted unpickler, which accepts certain opcodes and globals, and certain operations on certain classes. The
differences are data (:class:`RestrictedUnpickler`) obtained by running the releases. Common to all releases:

* a global is looked up by ``module.name`` at ``GLOBAL``, whether it is used or not
* ``REDUCE`` calls globals on the list, ``NEWOBJ`` makes a Parameter, ``BUILD`` sets the state of a Tensor, a Parameter, an OrderedDict
* ``APPEND`` and ``APPENDS`` go to lists
* a persistent id is a tuple that begins with "storage"; ``torch.load`` gives anything else no meaning

A refusal describes the first item of the pickle that is not accepted. Accepted items can still fail (a call that lacks an argument); they
also fail without ``weights_only``.

Safe globals are what the user says is safe: ``add_safe_globals(["fractions.Fraction"])``, as in ``torch.serialization``.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from torch_compat.errors import UsageError
from torch_compat.pickles.machine import Unpickled
from torch_compat.pickles.values import Global

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from torch_compat.pickles.values import UnpicklerEvent

__all__ = [
    "Refusal",
    "RestrictedUnpickler",
    "add_safe_globals",
    "allowing",
    "clear_safe_globals",
    "get_safe_globals",
    "harmless_subclass",
    "refusal",
    "refusals",
    "safe_globals",
]

ANY = frozenset({"*"})


class RestrictedUnpickler(NamedTuple):
    """The restricted unpickler of one release.

    Attributes:
        release: as ``2.6.0``.
        globals: names that it accepts, as ``torch._utils._rebuild_tensor_v2``.
        opcodes: names of the opcodes that it accepts.
        blocked: modules from which it accepts nothing, whatever the user adds.
        renames: when names of Python 2 are translated first: ``never``, ``protocol-2`` (if the pickle states that) or ``always``.
        objects: for which other classes ``NEWOBJ`` and ``BUILD`` are accepted: ``none``, ``safe`` (those that the user added), ``allowed``
            (all that are taken).
        adds: the user can add safe globals.
        setitem: classes whose items may be set; ``*`` if the release does not check.
        appends_safe: list subclasses that the user added may be appended to.
        tar: the tar of torch 0.1 is read like any other container; else it is refused as a tar.
        torchscript: a TorchScript archive is passed to ``torch.jit.load``; else it is refused as TorchScript.
        nested: added classes are known by their qualified name, as ``module.Outer.Inner``; else as ``module.Inner``.
    """

    release: str
    globals: frozenset[str]
    opcodes: frozenset[str]
    blocked: frozenset[str] = frozenset()
    renames: str = "always"
    objects: str = "allowed"
    adds: bool = True
    setitem: frozenset[str] = ANY
    appends_safe: bool = False
    nested: bool = True
    tar: bool = False
    torchscript: bool = False


class Refusal(NamedTuple):
    """Why a release refuses a pickle.

    Attributes:
        code: ``global``, ``blocked-module``, ``opcode``, ``call``, ``object``, ``state``, ``append``, ``setitem``, ``persistent-id``,
            ``torchscript`` or ``tar``.
        subject: the refused global, opcode or class.
        detail: one human-readable clause.
    """

    code: str
    subject: str
    detail: str


# What the releases translate (torch._utils.IMPORT_MAPPING and NAME_MAPPING: equal in all of them since 2.4).
_MODULES = {
    "__builtin__": "builtins", "copy_reg": "copyreg", "Queue": "queue", "repr": "reprlib", "_abcoll": "collections.abc",
    "UserDict": "collections", "UserList": "collections", "UserString": "collections", "whichdb": "dbm", "StringIO": "io",
    "cStringIO": "io",
}  # fmt: skip
_NAMES = {
    "__builtin__.xrange": "builtins.range", "__builtin__.reduce": "functools.reduce", "__builtin__.intern": "sys.intern",
    "__builtin__.unichr": "builtins.chr", "__builtin__.unicode": "builtins.str", "__builtin__.long": "builtins.int",
    "itertools.izip": "builtins.zip", "itertools.imap": "builtins.map", "itertools.ifilter": "builtins.filter",
    "itertools.ifilterfalse": "itertools.filterfalse", "itertools.izip_longest": "itertools.zip_longest",
    "UserDict.IterableUserDict": "collections.UserDict", "UserList.UserList": "collections.UserList",
    "UserString.UserString": "collections.UserString", "__builtin__.basestring": "builtins.str",
    "exceptions.StandardError": "builtins.Exception", "UserDict.UserDict": "collections.UserDict",
}  # fmt: skip
_PARAMETER = "torch.nn.parameter.Parameter"
_BUILDABLE = frozenset({"torch.Tensor", _PARAMETER, "collections.OrderedDict"})

# ------------------------------------------------------------------------------------------------------------------ safe globals

_safe: dict[str, tuple[str, Any]] = {}  # by qualified path: the path without nesting, and what the user gave


def add_safe_globals(added: Iterable[Any]) -> None:
    """Mark these as safe: classes, functions, names as ``"package.module.Name"``, or pairs of a class and such a name.

    Raises:
        UsageError: one is none of these.
    """
    _safe.update(_named(added))
    _forget()


def get_safe_globals() -> list[Any]:
    """The added globals, as given."""
    return [given for _, given in _safe.values()]


def clear_safe_globals() -> None:
    """Remove all added globals."""
    _safe.clear()
    _forget()


@contextmanager
def safe_globals(added: Iterable[Any]) -> Iterator[None]:
    """Mark globals as safe within a ``with`` statement; earlier ones stay safe afterwards."""
    before = dict(_safe)
    add_safe_globals(added)
    try:
        yield
    finally:
        clear_safe_globals()
        _safe.update(before)


def _forget() -> None:
    _cache.clear()
    _kept.clear()


def _named(added: Iterable[Any]) -> dict[str, tuple[str, Any]]:
    if isinstance(added, str):
        raise UsageError(f"{added!r} is a single name; expected a list of names, classes or functions")
    results = {}
    for given in added:
        item, name = given if isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], str) else (given, "")
        if isinstance(item, str) and "." in item and not name:
            path = flat = item
        elif name and "." in name:
            path = flat = name
        elif isinstance(getattr(item, "__module__", None), str) and isinstance(getattr(item, "__qualname__", None), str):
            path, flat = f"{item.__module__}.{item.__qualname__}", f"{item.__module__}.{item.__name__}"
        else:
            raise UsageError(f"{given!r} is neither a class nor a function, nor the name of one (as 'package.module.Name')")
        results[path] = (flat, given)
    return results


# ------------------------------------------------------------------------------------------------------------ tensor subclasses

_OVERRIDES = ("__setstate__", "__getattr__", "__setattr__", "__get__", "__set__", "__getattribute__")
_MISSING = object()


def harmless_subclass(module: str, name: str) -> bool:
    """Whether this names a tensor subclass whose rebuilding runs no code of its own.

    Three conditions: it does not override what runs when a tensor is rebuilt (``__setstate__``, ``__getattr__``, ``__setattr__``,
    ``__get__``, ``__set__``, ``__getattribute__``); it is allocated like any object; and its module was imported by the user. The lookup
    runs and imports nothing.
    """
    import inspect  # noqa: PLC0415 - nobody else needs it

    torch = sys.modules.get("torch")
    holder = sys.modules.get(module)
    if torch is None or holder is None or "." in name:
        return False
    tensor: Any = inspect.getattr_static(torch, "Tensor", None)
    result: Any = inspect.getattr_static(holder, name, None)
    if not issubclass(type(tensor), type) or not issubclass(type(result), type(tensor)):
        return False
    if result is tensor or tensor not in type.__dict__["__mro__"].__get__(result):
        return False
    if any(_own(result, override) is not _own(tensor, override) for override in _OVERRIDES):
        return False
    return _generic_allocation(result)


def _own(kind: type, name: str) -> Any:
    """The attribute of a class with this name, found in the dictionaries of its bases without running code."""
    for base in type.__dict__["__mro__"].__get__(kind):
        body = type.__dict__["__dict__"].__get__(base)
        if name in body:
            return body[name]
    return _MISSING


def _generic_allocation(kind: type) -> bool:
    """Whether ``tp_alloc`` of a class is ``PyType_GenericAlloc``."""
    import ctypes  # noqa: PLC0415, TID251 - nobody else needs it; of classes that the user has

    get_slot = ctypes.pythonapi.PyType_GetSlot
    get_slot.restype, get_slot.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_int)
    generic = ctypes.cast(ctypes.pythonapi.PyType_GenericAlloc, ctypes.c_void_p).value
    return bool(get_slot(kind, _TP_ALLOC) == generic)


_TP_ALLOC = 47  # Py_tp_alloc of typeslots.h, part of the stable ABI

# ----------------------------------------------------------------------------------------------------------------------- refusal

_cache: dict[Any, tuple[Refusal | None, ...]] = {}
CACHED = 4096


def refusals(
    unpickled: Unpickled | Sequence[Unpickled],
    rules: tuple[RestrictedUnpickler, ...],
    *,
    container: str = "zip",
    torchscript: bool = False,
    tensor_subclasses: bool = False,
) -> tuple[Refusal | None, ...]:
    """The answer of each release, in the order of ``rules``; cached while ``rules`` is the same tuple.

    Parameters: as of :func:`refusal`.
    """
    events = () if torchscript else _events(unpickled)  # of which nothing is asked where it is refused as such, or handed on
    known = tuple([(kind, subject.path if subject.__class__ is Global else _path(subject), how) for kind, subject, how in events])
    # a subclass is judged by what is imported at the moment, which no key tells
    key = None if tensor_subclasses else (known, id(rules), container, torchscript)
    result = _cache.get(key) if key else None
    if result is None:
        told: dict[RestrictedUnpickler, Refusal | None] = {}
        for item in _alike(rules):
            if item not in told:
                told[item] = _refusal(events, item, container, torchscript, tensor_subclasses)
        result = tuple([told[entry] for entry in _alike(rules)])
        if key and len(_cache) < CACHED and len(known) <= 100:  # what is kept, files have chosen
            _cache[key] = result
            _kept[key[1]] = rules  # its identity stays its own
    return result


@lru_cache(maxsize=8)
def _alike(rules: tuple[RestrictedUnpickler, ...]) -> tuple[RestrictedUnpickler, ...]:
    """The rules without release names, which no refusal contains: most equal the previous ones."""
    return tuple([rule._replace(release="") for rule in rules])


_kept: dict[int, tuple[RestrictedUnpickler, ...]] = {}  # by identity


def refusal(
    unpickled: Unpickled | Sequence[Unpickled],
    rules: RestrictedUnpickler,
    *,
    container: str = "zip",
    torchscript: bool = False,
    tensor_subclasses: bool = False,
) -> Refusal | None:
    """What one release refuses first; None if it accepts the pickle.

    Parameters:
        unpickled: the pickle, or all of a stream's in order.
        rules: of the release.
        container: ``zip``, ``stream`` or ``tar``; newer releases refuse any tar.
        torchscript: it is an archive of TorchScript, which newer releases refuse and older ones load as such.
        tensor_subclasses: accept harmless subclasses of Tensor (see :func:`harmless_subclass`), which no release does.
    """
    return _refusal(_events(unpickled), rules, container, torchscript, tensor_subclasses)


def allowing(
    unpickled: Unpickled | Sequence[Unpickled], rules: RestrictedUnpickler, *, container: str = "zip"
) -> tuple[Global, ...] | Refusal:
    """The names to pass to ``add_safe_globals`` so that one release accepts a pickle, in the order of the pickle.

    Parameters: as of :func:`refusal`.

    Returns:
        The names as the release looks them up; none if it accepts the pickle as it is. A refusal if no addition helps.
    """
    events = _events(unpickled)
    wanted: dict[str, Global] = {}
    for event in events:
        if event.kind == "global":
            module, name = _looked_up(event.subject, event.protocol, rules)
            path = f"{module}.{name}"
            if path not in rules.globals:
                wanted.setdefault(path, Global(module, name))
    result = _refusal(events, rules, container, torchscript=False, tensor_subclasses=False, safe=wanted if rules.adds else {})
    return tuple(wanted.values()) if result is None else result


def _events(unpickled: Unpickled | Sequence[Unpickled]) -> tuple[UnpicklerEvent, ...]:
    if isinstance(unpickled, Unpickled):
        return unpickled.events
    return tuple([event for item in unpickled for event in item.events])


def _path(subject: Any) -> str:
    if subject.__class__ is Global:
        return str(subject.path)
    return subject if subject.__class__ is str else f"<{subject.__class__.__name__}>"


def _refusal(
    events: Sequence[UnpicklerEvent],
    rules: RestrictedUnpickler,
    container: str,
    torchscript: bool,
    tensor_subclasses: bool,
    safe: Mapping[str, Any] | None = None,
) -> Refusal | None:
    if torchscript:
        message = "is a TorchScript archive, which weights_only does not accept here"
        return None if rules.torchscript else Refusal("torchscript", "", message)
    if container == "tar" and not rules.tar:
        return Refusal("tar", "", "is a tar archive from torch 0.1, which weights_only does not accept here")
    if safe is None:
        safe = (_safe if rules.nested else {flat: None for flat, _ in _safe.values()}) if rules.adds else {}
    subclasses: set[str] = set()
    for event in events:
        kind = event.kind
        subject = event.subject
        if kind == "global":
            result = _global(subject, event.protocol, rules, safe, subclasses if tensor_subclasses else None)
        elif kind == "opcode":
            result = None
            if subject not in rules.opcodes:
                result = Refusal("opcode", subject, f"uses the opcode {subject}")
        elif kind == "persistent":
            if container == "tar" and subject == "str":  # a number in digits, which nobody looks at before it is used
                continue
            result = Refusal("persistent-id", subject, f"has a persistent id that is not a storage, but a {subject}")
        else:
            result = _done_to(kind, subject, rules, safe, subclasses)
        if result is not None:
            return result
    return None


def _translated(module: str, name: str) -> tuple[str, str]:
    path = _NAMES.get(f"{module}.{name}")
    if path is not None:
        module, _, name = path.rpartition(".")
        return module, name
    return _MODULES.get(module, module), name


def _looked_up(named: Global, protocol: int, rules: RestrictedUnpickler) -> tuple[str, str]:
    """The module and name by which a release looks up a global."""
    if rules.renames == "always" or (rules.renames == "protocol-2" and protocol == 2):
        return _translated(named.module, named.name)
    return named.module, named.name


def _global(
    named: Global, protocol: int, rules: RestrictedUnpickler, safe: Mapping[str, Any], subclasses: set[str] | None
) -> Refusal | None:
    module, name = _looked_up(named, protocol, rules)
    path = f"{module}.{name}"
    if module in rules.blocked:
        return Refusal("blocked-module", path, f"refers to {path}; the module {module} is blocked and cannot be allowlisted")
    if path in rules.globals or path in safe:
        return None
    if subclasses is not None and harmless_subclass(module, name):
        subclasses.add(path)
        return None
    return Refusal("global", path, f"refers to {path}, which is not allowed by default")


def _done_to(
    kind: str, subject: Any, rules: RestrictedUnpickler, safe: Mapping[str, Any], subclasses: set[str]
) -> Refusal | None:
    path = _path(subject)
    named = subject.__class__ is Global
    taken = named and (path in rules.globals or path in safe)
    if kind == "reduce":
        return None if taken else Refusal("call", path, f"calls {path}, which is not an allowed function")
    by_class = named and (path in safe if rules.objects == "safe" else taken and rules.objects == "allowed")
    if kind == "newobj":
        if path == _PARAMETER or by_class:
            return None
        return Refusal("object", path, f"creates an instance of {path} without calling it")
    if kind == "build":
        if path in _BUILDABLE or by_class or path in subclasses:
            return None
        return Refusal("state", path, f"sets the state of {path}")
    if kind == "append":
        if path == "list" or (rules.appends_safe and path in safe):
            return None
        return Refusal("append", path, f"appends to {path}")
    if rules.setitem is ANY or rules.setitem == ANY or path in rules.setitem or path == "dict":
        return None
    return Refusal("setitem", path, f"sets items of {path}")
