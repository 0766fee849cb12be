"""One clear warning, at import time, when the torch that is loaded has other operators than an extension was built for.

    from torch_compat.extension import verify

    verify(Path(__file__).with_name("manifest.json"))   # first, before the extension loads its library
    import my_backend._C

The manifest is written by ``torch-compat extension record``. The loaded torch is asked for its operators, so nothing that is recorded
has to be installed; what PyTorch itself knows about compatibility (``FunctionSchema.is_backward_compatible_with``) is asked of it, too.

This file is the whole of it. It needs the standard library only, imports nothing of this package and runs on Python 3.7 and newer, so
that an extension may carry a copy: torch 1.x runs on Pythons that this package does not.
"""

from __future__ import annotations

import importlib
import json
import logging
import re
import sys
import time
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["SCHEMA_VERSION", "Fault", "OperatorApiWarning", "Verification", "verify"]

SCHEMA_VERSION = 1
"""The newest manifest version that this file can read."""
USES = ("calls", "registers", "defines")
"""What an extension can do with an operator."""
NAMED = 3
"""How many operators the warning lists; the log lists all of them."""
COMPOSITE_LINE = r"(?m)^(?:catchall|Math|DefaultBackend|CompositeImplicitAutograd|CompositeExplicitAutograd(?:NonFunctional)?)\b"
LOG = logging.getLogger("torch_compat.extension")


class OperatorApiWarning(UserWarning):
    """The operators of the torch that is loaded are not those that an extension was built for, or could not be asked for."""


class Fault(NamedTuple):
    """An operator that is not what the extension was built for."""

    operator: str
    cause: str
    """``absent``, ``schema``, ``call``, ``dispatch``, ``taken`` or ``needs``, as in ``torch-compat extension check``."""
    reason: str


class Verification(NamedTuple):
    """What :func:`verify` found."""

    fits: bool | None
    """None if anything could not be checked, and no fault was found."""
    faults: tuple[Fault, ...]
    unchecked: tuple[str, ...]
    """What could not be checked, and why."""
    warning: str | None
    """The text of the warning; None if there was no warning."""


class Parameter(NamedTuple):
    """What a kernel written in Python has to know of an argument."""

    name: str
    has_default: bool
    kwarg_only: bool


def verify(manifest: str | os.PathLike[str] | Mapping[str, Any], torch: Any = None) -> Verification:
    """Hold the operators of an extension against the torch that is loaded, and warn once if they do not fit.

    Never raises, whatever the manifest holds, torch does, or a module does that has to be imported to look for a name: one that
    ends the process (``SystemExit``) does not end the user's import. There are two exceptions. A user who has made errors of
    warnings gets the warning as one. And ``KeyboardInterrupt`` passes: Ctrl-C has to work while modules are imported, and one
    that a module raises by itself cannot be told from it.

    What could not be checked is said in the same warning. Details are logged by ``torch_compat.extension`` at debug level.

    Parameters:
        manifest: the file that ``torch-compat extension record`` wrote, or what it holds.
        torch: the module; the one that is imported already unless given.
    """
    started = time.perf_counter()
    about = _About()
    faults: list[Fault] = []
    unchecked: list[str] = []
    _attempt(unchecked, "", _compare, manifest, torch, about, faults, unchecked)
    text: str | None = "the torch operators that an extension needs could not be checked"
    try:
        text = _text(about.name, about.built, about.loaded, about.count, faults, unchecked)
        _log(about, faults, unchecked, 1000 * (time.perf_counter() - started))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a handler of the log that fails, or no room on the stack: the warning comes first
        unchecked.append(_said(error))
    if text is not None:
        try:
            warnings.warn(text, OperatorApiWarning, stacklevel=2)
        except (KeyboardInterrupt, Warning):
            raise
        except BaseException as error:  # noqa: BLE001 - a hook of the user's that fails to show it; the result still has it
            unchecked.append(_said(error))
    return Verification(False if faults else None if unchecked else True, tuple(faults), tuple(unchecked), text)


class _About:
    """What the warning says of the extension and of torch, as far as it is known."""

    def __init__(self) -> None:
        self.name = "an extension"
        self.built = "another release"
        self.loaded: str = "?"
        self.count = 0


def _attempt(unchecked: list[str], what: str, function: Any, *arguments: Any) -> Any:
    """Call a function. Whatever it raises is put down as something that could not be checked; None then."""
    try:
        return function(*arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is told in the warning and must not end the user's import
        unchecked.append((what and what + ": ") + _said(error))


def _compare(manifest: Any, torch: Any, about: _About, faults: list[Fault], unchecked: list[str]) -> None:
    """Look at everything that the manifest lists; what cannot be looked at hides nothing else."""
    torch = torch if torch is not None else sys.modules.get("torch")
    if torch is not None:
        about.loaded = _attempt(unchecked, "the version of torch", _version, torch) or about.loaded
    document: Any = manifest if hasattr(manifest, "keys") else _read(manifest)
    about.name = str(document.get("extension", about.name))
    about.built = "torch " + str(document.get("built_against", "?"))
    version = document.get("schema_version")
    if type(version) is not int or not 1 <= version <= SCHEMA_VERSION:
        unchecked.append(f"its manifest has schema_version {version!r}, and {SCHEMA_VERSION} is the newest supported version")
        return
    if torch is None:
        unchecked.append("torch is not imported")
        return
    needs, operators = document.get("needs", ()), document["operators"]
    unchecked += [
        f"its manifest has {type(found).__name__} for {name}, expected a list"
        for name, found in (("needs", needs), ("operators", operators))
        if not isinstance(found, (list, tuple))
    ]
    if isinstance(needs, (list, tuple)):
        missing = [need for need in needs if _attempt(unchecked, _named(need), _has, need) is False]
        faults += [Fault(need, "needs", "is missing") for need in missing]
    if isinstance(operators, (list, tuple)):
        about.count = len(operators)
        if not operators:
            unchecked.append("its manifest does not list any operators")
        for entry in operators:
            name = entry.get("operator") if isinstance(entry, dict) else entry
            _attempt(unchecked, _named(name), _look_at, entry, document, torch, faults, unchecked)


def _log(about: _About, faults: Sequence[Fault], unchecked: Sequence[str], milliseconds: float) -> None:
    for fault in faults:
        LOG.debug("%s: %s: %s: %s", about.name, fault.operator, fault.cause, fault.reason)
    for why in unchecked:
        LOG.debug("%s: not checked: %s", about.name, why)
    LOG.debug("%s: %d operators against torch %s in %.1f ms", about.name, about.count, about.loaded, milliseconds)


def _version(torch: Any) -> str:
    return str(torch.__version__).partition("+")[0]


def _read(path: Any) -> Any:
    with open(path, encoding="utf-8") as stream:  # noqa: PTH123 - quicker to import without pathlib
        return json.load(stream)


def _named(name: object) -> str:
    """What an entry is called; what it is where it has no name."""
    return name if isinstance(name, str) and name else f"an entry that is {type(name).__name__}"


def _said(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - it cannot say what it is
        return type(error).__name__


def _shown(text: str) -> str:
    """Text on one line. What a manifest says is printed by the warning, and a terminal obeys control characters."""
    return text if text.isprintable() else "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def _text(name: str, built: str, loaded: str, count: int, faults: Sequence[Fault], unchecked: Sequence[str]) -> str | None:
    """The warning: one line, what differs, and what to do."""
    if faults:
        named = "; ".join(f"{fault.operator} {fault.reason}" for fault in faults[:NAMED])
        more = f"; and {len(faults) - NAMED} more" if len(faults) > NAMED else ""
        rest = f" {len(unchecked)} could not be checked." if unchecked else ""
        return _shown(
            f"{name} was built for {built}, but torch {loaded} is loaded: {len(faults)} of its {count} operators "
            f"{'is' if len(faults) == 1 else 'are'} incompatible ({named}{more}).{rest} Loading it or calling them may "
            f"fail. Install {built}, or a build of {name} for torch {loaded}."
        )
    if unchecked:
        more = f" (and {len(unchecked) - 1} more)" if len(unchecked) > 1 else ""
        return _shown(
            f"{name} was built for {built}; its compatibility with torch {loaded} could not be checked: {unchecked[0]}{more}. It may "
            f"still work; it is known to work with {built}."
        )
    return None


# ------------------------------------------------------------------------------------------------------------- one operator


def _look_at(
    entry: Mapping[str, Any], document: Mapping[str, Any], torch: Any, faults: list[Fault], unchecked: list[str]
) -> None:
    """Ask the loaded torch for one operator of the manifest."""
    operator, use = entry["operator"], entry["use"]
    if use not in USES:
        raise ValueError(f"its use is {use!r}, expected one of {', '.join(USES)}")
    base, _, overload = operator.partition(".")
    found = torch._C._jit_get_schemas_for_operator(base)  # noqa: SLF001 - there is no public way
    if found and not hasattr(found[0], "overload_name"):
        unchecked.append(f"{operator}: this torch does not report the overloads of its operators")
        return
    known = [one for one in found if one.overload_name == overload]
    if not known:
        if use != "defines":
            faults.append(Fault(operator, "absent", "is gone"))
        return
    texts = [plain(str(one)) for one in known]
    if use == "defines":
        parse = getattr(torch._C, "parse_schema", None)  # noqa: SLF001 - it may have been loaded already, and be printed otherwise here
        if entry["schema"] not in texts and (parse is None or plain(str(parse(entry["schema"]))) not in texts):
            faults.append(Fault(operator, "taken", f"is already defined, as {texts[0]}"))
        return
    if entry["schema"] not in texts:
        LOG.debug("%s: was %s", operator, entry["schema"])
        LOG.debug("%s: is  %s", operator, " or ".join(texts))
        wanted = without_symbols(entry["schema"])
        reasons = [None if without_symbols(text) == wanted else _differs(entry, text, torch) for text in texts]
        if all(reasons):  # old releases have several of one name: any one that does will do
            faults.append(Fault(operator, "schema" if use == "registers" else "call", str(reasons[0])))
            return
    if entry.get("relies_on_decomposition") and not document.get("fallback"):
        served = _served(operator, document["backend"], torch)
        if served is None:
            unchecked.append(f"{operator}: this torch does not report which operators decompose")
        elif not served:
            faults.append(Fault(operator, "dispatch", "now needs a kernel for the backend"))


def _has(name: str) -> bool:
    """Whether torch has a name that the extension imports."""
    module, _, attribute = name.rpartition(".")
    try:
        return hasattr(importlib.import_module(module), attribute)
    except ImportError:
        return False


def _differs(entry: Mapping[str, Any], text: str, torch: Any) -> str | None:
    """Why an operator whose schema is another one does not do any more; None if it does.

    Symbolic integers are left out of it: releases that do not know them cannot read them, and a call takes either.
    """
    parse = getattr(torch._C, "parse_schema", None)  # noqa: SLF001 - the one parser that the loaded torch has
    if parse is None or "<default>" in text or "<default>" in entry["schema"]:
        return "has a different schema, and this torch cannot compare schemas"
    now, was = parse(without_symbols(text)), parse(without_symbols(entry["schema"]))
    if entry["use"] != "registers":
        return None if now.is_backward_compatible_with(was) else "can no longer be called in the same way"
    for kernel in entry.get("kernels") or [{}]:
        if kernel.get("language") == "python":
            reason = python_fault([_parameter(one) for one in now.arguments], [_parameter(one) for one in was.arguments])
        else:
            reason = kernel_fault(_types(now.arguments), _types(was.arguments), None)
            reason = reason or kernel_fault(_types(now.returns), _types(was.returns), None, "returns")
        if reason is not None:
            return f"now {reason}"
    return None


def _parameter(argument: Any) -> Parameter:
    return Parameter(argument.name, argument.has_default_value(), argument.kwarg_only)


def _types(arguments: Iterable[Any]) -> list[str]:
    return [str(one.type) for one in arguments]


def _served(operator: str, key: str, torch: Any) -> bool | None:
    """Whether a call on this backend finds a kernel, which is not the backend's own; None where it cannot be asked."""
    computed = getattr(torch._C, "_dispatch_has_computed_kernel_for_dispatch_key", None)  # noqa: SLF001
    if computed is not None:
        return bool(computed(operator, key))
    release = [int(part) for part in re.findall(r"\d+", str(torch.__version__))[:2]]
    if not hasattr(torch._C, "_dispatch_dump") or release < [1, 7]:  # noqa: SLF001 - asked in 1.6, the process ends
        return None
    return re.search(COMPOSITE_LINE, torch._C._dispatch_dump(operator)) is not None  # noqa: SLF001


# ------------------------------------------------------------------------------- rules that `torch-compat extension check` shares


def plain(schema: str) -> str:
    """A schema as text; 1.2 to 1.12 print ``-> (Tensor)`` for what the others print as ``-> Tensor``."""
    return re.sub(r"-> \((?!\.)([^(),\s]+(?:\([^()]*\))?[^(),\s]*)\)$", r"-> \1", schema)


def kernel_fault(now: Sequence[str], was: Sequence[str], kernel: Sequence[str] | None, what: str = "takes") -> str | None:
    """Why a compiled kernel is refused when it is registered: the dispatcher compares types, and neither names nor defaults.

    Parameters:
        now, was: the types of the operator's arguments, or of its returns, as they are and as they were when the kernel fitted.
        kernel: those that the dispatcher inferred from the kernel, where it was asked. One that takes ``int`` serves ``SymInt``, too.
        what: ``takes`` or ``returns``.
    """
    noun = "value" if what == "returns" else "argument"
    if len(now) != len(was):
        return f"{what} {len(now)} {noun}s instead of {len(was)}"
    for position, (new, old) in enumerate(zip(now, was)):  # noqa: B905 - Python 3.7
        if new == old or (without_symbols(new) == without_symbols(old) and (new != without_symbols(new) or kernel is None)):
            continue
        if kernel is None or new != kernel[position]:
            return f"{what} {new} as {noun} {position + 1} instead of {old}"
    return None


def without_symbols(type_: str) -> str:
    """A type with ``int`` for ``SymInt`` and so on."""
    return re.sub(r"\bSym(Int|Bool|Float)\b", lambda found: found.group(1).lower(), type_)


def python_fault(now: Sequence[Parameter], was: Sequence[Parameter]) -> str | None:
    """Why a kernel written in Python cannot be called any more. Arguments that are at their defaults are not handed to it."""
    positions = [one for one in was if not one.kwarg_only]
    names = {one.name for one in was if one.kwarg_only}
    place = 0
    for new in now:
        known = new.name in names if new.kwarg_only else place < len(positions)
        place += not new.kwarg_only
        if not known and not new.has_default:
            return f"passes {new.name}, which the kernel does not accept"
    missing = [one.name for one in positions[place:] if not one.has_default]
    given = {one.name for one in now if one.kwarg_only}
    missing += [one.name for one in was if one.kwarg_only and not one.has_default and one.name not in given]
    return f"no longer passes {', '.join(missing)}" if missing else None
