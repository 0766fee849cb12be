"""Issue one clear warning at import time if the loaded torch does not have the operators that an extension was built for.

    from torch_compat.extension import verify

    verify(Path(__file__).with_name("manifest.json"))   # first, before the extension loads its library
    import my_backend._C

The manifest is written by ``torch-compat extension record``. :func:`verify` queries the operators of the loaded torch, so no recorded data
has to be installed; it also uses PyTorch's own compatibility check (``FunctionSchema.is_backward_compatible_with``).

This file is self-contained. It needs only the standard library, imports nothing else from this package and runs on Python 3.7 and newer,
so that an extension may ship a copy: torch 1.x runs on Python versions that this package does not support.
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
    """The operators of the loaded torch differ from those an extension was built for, or could not be queried."""


class Fault(NamedTuple):
    """An operator that differs from the one the extension was built for."""

    operator: str
    cause: str
    """``absent``, ``schema``, ``call``, ``dispatch``, ``taken`` or ``needs``, as in ``torch-compat extension check``."""
    reason: str


class Verification(NamedTuple):
    """The result of :func:`verify`."""

    fits: bool | None
    """None if something could not be checked and no fault was found."""
    faults: tuple[Fault, ...]
    unchecked: tuple[str, ...]
    """What could not be checked, and why."""
    warning: str | None
    """The text of the warning; None if there was no warning."""


class Parameter(NamedTuple):
    """The properties of an argument that matter to a kernel written in Python."""

    name: str
    has_default: bool
    kwarg_only: bool


def verify(manifest: str | os.PathLike[str] | Mapping[str, Any], torch: Any = None) -> Verification:
    """Compare the operators of an extension with the loaded torch, and warn once if they do not fit.

    Never raises, whatever the manifest contains, torch does, or a module does that is imported to look up a name: a module that
    ends the process (``SystemExit``) does not end the user's import. There are two exceptions. A user who has turned warnings into
    errors gets the warning as an error. And ``KeyboardInterrupt`` passes: Ctrl-C has to work while modules are imported, and it
    cannot be distinguished from one raised by a module.

    The same warning lists what could not be checked. ``torch_compat.extension`` logs details at debug level.

    Parameters:
        manifest: the file written by ``torch-compat extension record``, or its contents.
        torch: the module; by default, the one that is already imported.
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
    except BaseException as error:  # noqa: BLE001 - a log handler fails, or the stack is exhausted: the warning comes first
        unchecked.append(_said(error))
    if text is not None:
        try:
            warnings.warn(text, OperatorApiWarning, stacklevel=2)
        except (KeyboardInterrupt, Warning):
            raise
        except BaseException as error:  # noqa: BLE001 - a hook of the user fails to show it; the result still contains it
            unchecked.append(_said(error))
    return Verification(False if faults else None if unchecked else True, tuple(faults), tuple(unchecked), text)


class _About:
    """The known facts about the extension and torch for the warning."""

    def __init__(self) -> None:
        self.name = "an extension"
        self.built = "another release"
        self.loaded: str = "?"
        self.count = 0


def _attempt(unchecked: list[str], what: str, function: Any, *arguments: Any) -> Any:
    """Call a function and return its result; on any error, record it as something that could not be checked and return None."""
    try:
        return function(*arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - any error goes into the warning and must not end the user's import
        unchecked.append((what and what + ": ") + _said(error))


def _compare(manifest: Any, torch: Any, about: _About, faults: list[Fault], unchecked: list[str]) -> None:
    """Check everything that the manifest lists; an entry that cannot be checked does not affect the others."""
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
        f"its manifest has {type(result).__name__} for {name}, expected a list"
        for name, result in (("needs", needs), ("operators", operators))
        if not isinstance(result, (list, tuple))
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
    with open(path, encoding="utf-8") as stream:  # noqa: PTH123 - imports faster without pathlib
        return json.load(stream)


def _named(name: object) -> str:
    """The name of an entry, or its type if it has no name."""
    return name if isinstance(name, str) and name else f"an entry that is {type(name).__name__}"


def _said(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - its text cannot be obtained
        return type(error).__name__


def _shown(text: str) -> str:
    """Text on one line, with nonprintable characters escaped: the warning prints text from a manifest to a terminal."""
    return (
        text
        if text.isprintable()
        else "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)
    )


def _text(name: str, built: str, loaded: str, count: int, faults: Sequence[Fault], unchecked: Sequence[str]) -> str | None:
    """The text of the warning: one line, the differences, and what to do."""
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
    """Check one operator of the manifest against the loaded torch."""
    operator, use = entry["operator"], entry["use"]
    if use not in USES:
        raise ValueError(f"its use is {use!r}, expected one of {', '.join(USES)}")
    base, _, overload = operator.partition(".")
    result = torch._C._jit_get_schemas_for_operator(base)  # noqa: SLF001 - there is no public way
    if result and not hasattr(result[0], "overload_name"):
        unchecked.append(f"{operator}: this torch does not report the overloads of its operators")
        return
    known = [schema for schema in result if schema.overload_name == overload]
    if not known:
        if use != "defines":
            faults.append(Fault(operator, "absent", "is gone"))
        return
    texts = [plain(str(schema)) for schema in known]
    if use == "defines":
        parse = getattr(torch._C, "parse_schema", None)  # noqa: SLF001 - the operator may already be loaded, and printed differently here
        if entry["schema"] not in texts and (parse is None or plain(str(parse(entry["schema"]))) not in texts):
            faults.append(Fault(operator, "taken", f"is already defined, as {texts[0]}"))
        return
    if entry["schema"] not in texts:
        LOG.debug("%s: recorded schema: %s", operator, entry["schema"])
        LOG.debug("%s: schema in this torch: %s", operator, " or ".join(texts))
        wanted = without_symbols(entry["schema"])
        reasons = [None if without_symbols(text) == wanted else _differs(entry, text, torch) for text in texts]
        if all(reasons):  # old releases have several schemas of one name: one that fits is enough
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
    """Why an operator with a different schema no longer fits; None if it does.

    Symbolic integers are replaced by ``int``: releases without them cannot parse them, and a call accepts either.
    """
    parse = getattr(torch._C, "parse_schema", None)  # noqa: SLF001 - the only parser in the loaded torch
    if parse is None or "<default>" in text or "<default>" in entry["schema"]:
        return "has a different schema, and this torch cannot compare schemas"
    now, was = parse(without_symbols(text)), parse(without_symbols(entry["schema"]))
    if entry["use"] != "registers":
        return None if now.is_backward_compatible_with(was) else "can no longer be called in the same way"
    for kernel in entry.get("kernels") or [{}]:
        if kernel.get("language") == "python":
            reason = python_fault(
                [_parameter(argument) for argument in now.arguments], [_parameter(argument) for argument in was.arguments]
            )
        else:
            reason = kernel_fault(_types(now.arguments), _types(was.arguments), None)
            reason = reason or kernel_fault(_types(now.returns), _types(was.returns), None, "returns")
        if reason is not None:
            return f"now {reason}"
    return None


def _parameter(argument: Any) -> Parameter:
    return Parameter(argument.name, argument.has_default_value(), argument.kwarg_only)


def _types(arguments: Iterable[Any]) -> list[str]:
    return [str(argument.type) for argument in arguments]


def _served(operator: str, key: str, torch: Any) -> bool | None:
    """Whether a call on this backend finds a kernel other than the backend's own; None if this cannot be queried."""
    computed = getattr(torch._C, "_dispatch_has_computed_kernel_for_dispatch_key", None)  # noqa: SLF001
    if computed is not None:
        return bool(computed(operator, key))
    release = [int(part) for part in re.findall(r"\d+", str(torch.__version__))[:2]]
    if not hasattr(torch._C, "_dispatch_dump") or release < [1, 7]:  # noqa: SLF001 - in 1.6, the query ends the process
        return None
    return re.search(COMPOSITE_LINE, torch._C._dispatch_dump(operator)) is not None  # noqa: SLF001


# ------------------------------------------------------------------------------- rules that `torch-compat extension check` shares


def plain(schema: str) -> str:
    """A schema as text; releases 1.2 to 1.12 print ``-> (Tensor)`` where the others print ``-> Tensor``."""
    return re.sub(r"-> \((?!\.)([^(),\s]+(?:\([^()]*\))?[^(),\s]*)\)$", r"-> \1", schema)


def kernel_fault(now: Sequence[str], was: Sequence[str], kernel: Sequence[str] | None, what: str = "takes") -> str | None:
    """Why registering a compiled kernel fails: the dispatcher compares types, but neither names nor defaults.

    Parameters:
        now, was: the types of the operator's arguments, or of its returns, now and when the kernel fitted.
        kernel: the types that the dispatcher inferred from the kernel, if it was queried. A kernel for ``int`` also serves ``SymInt``.
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
    """A type with ``SymInt``, ``SymBool`` and ``SymFloat`` replaced by ``int``, ``bool`` and ``float``."""
    return re.sub(r"\bSym(Int|Bool|Float)\b", lambda match: match.group(1).lower(), type_)


def python_fault(now: Sequence[Parameter], was: Sequence[Parameter]) -> str | None:
    """Why a kernel written in Python can no longer be called. Arguments at their defaults are not passed to it."""
    positions = [parameter for parameter in was if not parameter.kwarg_only]
    names = {parameter.name for parameter in was if parameter.kwarg_only}
    place = 0
    for new in now:
        known = new.name in names if new.kwarg_only else place < len(positions)
        place += not new.kwarg_only
        if not known and not new.has_default:
            return f"passes {new.name}, which the kernel does not accept"
    missing = [position.name for position in positions[place:] if not position.has_default]
    given = {parameter.name for parameter in now if parameter.kwarg_only}
    missing += [
        parameter.name for parameter in was if parameter.kwarg_only and not parameter.has_default and parameter.name not in given
    ]
    return f"no longer passes {', '.join(missing)}" if missing else None
