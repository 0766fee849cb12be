"""Compare the manifest of an extension with the recorded releases, to find those that it fits.

The rules follow the ways in which it would fail: registering a compiled kernel fails if its types differ from the operator's;
a Python kernel receives the arguments that are not at their defaults; a call follows PyTorch's own backward compatibility; an operator
that a backend leaves to decomposition needs a kernel of its own once it no longer decomposes. Whether a library built for one release
works in another also depends on its binary interface: PyTorch promises nothing there, so "fits" means that it fits when
built for that release.

This module also reads lists of operators written by hand::

    # a comment
    backend PrivateUse1 fallback          its own dispatch key; `fallback` if it handles every operator
    needs torch.library.Library           a name of torch's Python modules
    registers aten::add.Tensor            a kernel for an operator of PyTorch, at the backend's key
    registers aten::mul.Tensor CPU CUDA   the same at other keys
    calls aten::linear                    calls an operator; a line with only its name means the same
    calls aten::add(int a, int b) -> int  for releases with several schemas of one name
    defines mine::f(Tensor self) -> Tensor
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from torch_compat.errors import NothingSelected, Problem, UsageError
from torch_compat.extension import Parameter, kernel_fault, python_fault
from torch_compat.operators.compatibility import backward
from torch_compat.operators.dispatch import DECOMPOSES, NEEDS_KERNEL, UNKNOWN, Dispatches
from torch_compat.operators.history import GlobalNames
from torch_compat.operators.manifest import ExtensionManifest, ExtensionOperator, Kernel
from torch_compat.operators.schema import SchemaError, canonical, parse
from torch_compat.words import count_of, did_you_mean, suggest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from torch_compat.operators.schema import Argument, Schema
    from torch_compat.releases.known import Known

__all__ = [
    "CANNOT_BE_TOLD",
    "DOES_NOT_FIT",
    "FITS",
    "ExtensionFinding",
    "Fit",
    "ListError",
    "RecordedReleases",
    "check",
    "from_dispatcher",
    "from_list",
    "known_operator",
    "known_release",
]

FITS: Final = "fits"
DOES_NOT_FIT: Final = "does-not-fit"
CANNOT_BE_TOLD: Final = "cannot-be-told"

FAULT: Final = "fault"
NOT_KNOWN: Final = "unknown"
NOTE: Final = "note"

OWN_KEYS: Final = ("PrivateUse1", "PrivateUse2", "PrivateUse3")
"""Dispatch keys that PyTorch reserves for others: an extension with kernels for them is a backend."""
WHOLE: Final = (
    "names, defaults, aliases or symbolic integers differ: a kernel that is registered with its whole schema, or that takes SymInt "
    "if the operator takes int, is refused"
)
_LISTED: Final = "From a list of operators, with the schemas recorded for the release."
_ASKED: Final = "Loaded in this torch, whose dispatcher was dumped before and after."


class ExtensionFinding(NamedTuple):
    """A finding about one operator in one release."""

    operator: str
    """The operator, or the name of a Python module for ``needs``."""
    use: str
    verdict: str
    """``fault``, ``unknown`` (cannot be determined) or ``note`` (a difference that is harmless in itself)."""
    cause: str
    """``absent``, ``schema``, ``call``, ``dispatch``, ``taken``, ``needs``; for notes also ``argument`` and ``blind``."""
    reason: str


class Fit(NamedTuple):
    """Whether an extension fits a release."""

    release: str
    verdict: str
    """``fits``, ``does-not-fit`` or ``cannot-be-told``."""
    findings: tuple[ExtensionFinding, ...]

    def of(self, verdict: str) -> tuple[ExtensionFinding, ...]:
        """The findings of one verdict."""
        return tuple(finding for finding in self.findings if finding.verdict == verdict)


class RecordedReleases:
    """The recorded data about releases: operators, their dispatch, and the names of Python modules."""

    def __init__(self, dispatches: Dispatches | None = None, names: GlobalNames | None = None) -> None:
        self.dispatches = dispatches or Dispatches.load()
        self.schemas = self.dispatches.schemas
        self._names = names

    @property
    def names(self) -> GlobalNames:
        """The names of Python modules; read only if a manifest needs some."""
        if self._names is None:
            self._names = GlobalNames.load()
        return self._names

    @property
    def known(self) -> Known:
        """The recorded releases."""
        return self.schemas.known

    @property
    def releases(self) -> tuple[str, ...]:
        """The versions of the recorded releases, oldest first."""
        return self.schemas.releases

    def of(self, operator: str, release: str) -> tuple[str, ...]:
        """The schemas of an operator, with its overload, in a release: one, except in old releases, which name few overloads."""
        return tuple(text for text in self.schemas.schemas(operator, release) if text.partition("(")[0] == operator)


# --------------------------------------------------------------------------------------------------------------------- checking


def check(manifest: ExtensionManifest, release: str, recorded: RecordedReleases) -> Fit:
    """Check whether an extension fits a release.

    Raises:
        NothingSelected: the manifest lists no operators.
        UsageError: nothing is recorded for the release.
    """
    if not manifest.operators:
        raise NothingSelected("the manifest does not list any operators, so nothing would be checked", where=manifest.extension)
    recorded.schemas.bit(release)
    findings = [*_needs(manifest, release, recorded)]
    for entry in manifest.operators:
        findings += _entry(manifest, entry, release, recorded)
    verdicts = {finding.verdict for finding in findings}
    verdict = DOES_NOT_FIT if FAULT in verdicts else CANNOT_BE_TOLD if NOT_KNOWN in verdicts else FITS
    return Fit(release, verdict, tuple(findings))


def _needs(manifest: ExtensionManifest, release: str, recorded: RecordedReleases) -> Iterator[ExtensionFinding]:
    for name in manifest.needs:
        module, _, attribute = name.rpartition(".")
        has = recorded.names.has(module, attribute, release)
        if has is None:
            yield ExtensionFinding(name, "needs", NOT_KNOWN, "needs", "there is no record of whether this release has it")
        elif not has:
            yield ExtensionFinding(
                name, "needs", FAULT, "needs", "this release has no such name, so importing the extension fails"
            )


def _entry(
    manifest: ExtensionManifest, entry: ExtensionOperator, release: str, recorded: RecordedReleases
) -> Iterator[ExtensionFinding]:
    def finding(verdict: str, cause: str, reason: str) -> ExtensionFinding:
        return ExtensionFinding(entry.operator, entry.use, verdict, cause, reason)

    known = recorded.of(entry.operator, release)
    if entry.use == "defines":
        if known:
            yield finding(FAULT, "taken", f"this release already defines an operator with this name: {known[0]}")
        return
    if not known:
        missing = recorded.schemas.why_incomplete(release)
        if missing is not None:
            yield finding(NOT_KNOWN, "absent", f"is not in the records of this release, which may be incomplete: {missing}")
        elif entry.use == "registers":
            yield finding(FAULT, "absent", "this release has no such operator, so the kernel is never called")
        else:
            yield finding(FAULT, "absent", "this release has no such operator")
        return
    if entry.schema not in known:
        compare = _registers if entry.use == "registers" else _calls
        was = parse(entry.schema, recorded=True)
        messages = [[finding(*item) for item in compare(entry, parse(now, recorded=True), was)] for now in known]
        yield from min(
            messages, key=lambda findings: sum(item.verdict == FAULT for item in findings)
        )  # one schema that fits is enough
    if entry.relies_on_decomposition and not manifest.fallback:
        yield from (finding(*part) for part in _decomposes(manifest, entry, release, recorded))


def _registers(entry: ExtensionOperator, now: Schema, was: Schema) -> Iterator[tuple[str, str, str]]:
    """Check the kernels of an operator whose schema has changed."""
    for kernel in dict.fromkeys((kernel.language, kernel.signature) for kernel in entry.kernels):
        language, signature = kernel
        if language == "python":
            fault = python_fault(_parameters(now), _parameters(was))
            if fault is not None:
                yield FAULT, "schema", f"the operator {fault}: {now}"
            else:
                new = [argument.name for argument in now.arguments if argument.name not in {old.name for old in was.arguments}]
                if new:
                    yield NOTE, "argument", f"the kernel does not accept {', '.join(new)}: a call that passes it fails"
            continue
        own = parse(entry.operator + signature) if signature is not None else None
        takes, returns = (None, None) if own is None else (_types(own.arguments), _types(own.returns))
        fault = kernel_fault(_types(now.arguments), _types(was.arguments), takes)
        fault = fault or kernel_fault(_types(now.returns), _types(was.returns), returns, "returns")
        if fault is not None:
            yield FAULT, "schema", f"the operator {fault}, so the kernel is refused when it is registered: {now}"
        elif signature is None:
            yield NOTE, "argument", WHOLE


def _calls(_entry: ExtensionOperator, now: Schema, was: Schema) -> Iterator[tuple[str, str, str]]:
    verdict = backward(now, was)
    if not verdict.compatible:
        yield FAULT, "call", f"{verdict.reason}: {now}"
    for blind in verdict.blind:
        yield NOTE, "blind", blind


def _decomposes(
    manifest: ExtensionManifest, entry: ExtensionOperator, release: str, recorded: RecordedReleases
) -> Iterator[tuple[str, str, str]]:
    """Follow an operator without a kernel for the backend to one with a kernel, as far as the calls are recorded."""
    for step in recorded.dispatches.steps(entry.operator, release):
        if step.operator != entry.operator and manifest.has_kernel(step.operator):
            return
        via = "" if step.operator == entry.operator else f"decomposes into {step.operator}, which "
        if step.kind == NEEDS_KERNEL:
            was = (
                recorded.dispatches.of(entry.operator, manifest.built_against)
                if manifest.built_against in recorded.releases
                else None
            )
            before = f"; in {manifest.built_against} it {was.shown()}" if was is not None and was.kind == DECOMPOSES else ""
            yield FAULT, "dispatch", f"{via}needs its own kernel for the backend, but has none{before}"
        elif step.kind == UNKNOWN:
            yield NOT_KNOWN, "dispatch", f"{via}may or may not decompose: {step.why}"


def _types(arguments: Sequence[Argument]) -> list[str]:
    """The types as C++ kernels see them. Releases up to 1.12 print ``ScalarType`` and similar types as ``int``."""
    return [re.sub(r"\b(ScalarType|Layout|MemoryFormat)\b", "int", str(argument.type)) for argument in arguments]


def _parameters(schema: Schema) -> list[Parameter]:
    return [Parameter(argument.name, argument.default is not None, argument.kwarg_only) for argument in schema.arguments]


# --------------------------------------------------------------------------------------------------------------------- recording


class ListError(UsageError):
    """A list of operators has mistakes. Carries all of them at once."""

    default_code = "operator-list"

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        count = len(problems)
        super().__init__(
            f"{count_of(count, 'error')} in the list of operators:\n" + "\n".join(f"  {problem}" for problem in problems)
        )


class _Listed(NamedTuple):
    """The contents of a list."""

    backend: str | None
    fallback: bool
    needs: tuple[str, ...]
    entries: tuple[ExtensionOperator, ...]


def known_release(release: str, known: Known) -> str:
    """The recorded release with a name such as ``2.13.0`` or ``torch-2.13.0``.

    Raises:
        UsageError: nothing is recorded for it; the error names the nearest releases.
    """
    result = known.find(release)
    if result is not None:
        return result
    near = known.near(release)
    raise UsageError(
        f"there are no records for the release {release!r}",
        hint=did_you_mean(near) or f"recorded releases: {', '.join(known.releases)}",
        code="unknown-release",
    )


def known_operator(operator: str, release: str, recorded: RecordedReleases) -> str:
    """The schema of an operator in a release. If the release has several schemas of one name, pass the schema instead of the name.

    Raises:
        UsageError: the release has no such operator; the error names the releases that have it, or the nearest names.
    """
    name = operator.partition("(")[0].strip()
    known = recorded.of(name, release)
    if known and "(" in operator:
        asked = canonical(parse(operator, recorded=True))
        match = next((text for text in known if canonical(parse(text, recorded=True)) == asked), None)
        if match is None:
            raise UsageError(
                f"{release} has {name!r} with a different schema", hint=f"it has {'; '.join(known)}", code="unknown-operator"
            )
        return match
    if len(known) > 1:
        raise UsageError(
            f"{release} has {count_of(len(known), 'operator')} {name!r}",
            hint=f"use the schema of one of them: {'; '.join(known)}",
            code="unknown-operator",
        )
    if not known:
        raise UsageError(f"{release} has no operator {name!r}", hint=_nearest(name, release, recorded), code="unknown-operator")
    return known[0]


def _nearest(operator: str, release: str, recorded: RecordedReleases) -> str:
    """A hint for the name of an operator that a release lacks."""
    bits = 0
    for text, result in recorded.schemas.with_bits(operator):
        if text.partition("(")[0] == operator:
            bits |= result
    if bits:
        having = recorded.schemas.of(bits)
        return f"{having[0]} to {having[-1]} have it" if len(having) > 1 else f"only {having[0]} has it"
    overloads = sorted(text.partition("(")[0] for text in recorded.schemas.schemas(operator.partition(".")[0], release))
    if overloads:
        return f"it has {', '.join(overloads)}"
    names = sorted(recorded.schemas.names(release))
    asked = operator.partition(".")[0]
    return suggest(asked if "::" in asked else f"aten::{asked}", names, "use a name such as aten::add.Tensor")


def from_list(
    text: str, where: str, release: str, recorded: RecordedReleases, *, extension: str, backend: str | None = None
) -> ExtensionManifest:
    """Create the manifest for a list written by hand.

    Raises:
        ListError: all mistakes, each with its line.
        NothingSelected: it lists no operators.
    """
    listed = _read_list(text, where, release, recorded, backend)
    if not listed.entries:
        raise NothingSelected("lists no operators", where=where, hint="write one operator per line, such as: calls aten::linear")
    return _manifest(extension, release, listed, _LISTED, recorded)


def from_dispatcher(
    answer: dict[str, object],
    release: str,
    recorded: RecordedReleases,
    *,
    extension: str,
    listed: tuple[str, str] | None = None,
    backend: str | None = None,
) -> ExtensionManifest:
    """Create a manifest from a release's dispatcher, after an extension was loaded (see harness/torch_compat/inside/extension.py).

    Parameters:
        listed: the text of a list, and its file: what the dispatcher does not know, such as calls.

    Raises:
        ListError: mistakes in that list.
        NothingSelected: the extension registered nothing, and nothing is listed.
    """
    entries = [*_answered(answer["defined"], "defines"), *_answered(answer["registered"], "registers")]
    keys = {kernel.key for entry in entries for kernel in entry.kernels}
    backend = backend or next((key for key in OWN_KEYS if key in keys), None)
    more = _read_list(listed[0], listed[1], release, recorded, backend) if listed is not None else _Listed(backend, False, (), ())
    known = {(entry.operator, entry.use) for entry in entries}
    entries += [entry for entry in more.entries if (entry.operator, entry.use) not in known]
    if not entries:
        raise NothingSelected("the extension registered nothing with the dispatcher", where=extension)
    python = any(kernel.language == "python" for entry in entries for kernel in entry.kernels)
    needs = tuple(dict.fromkeys((*(("torch.library.Library",) if python else ()), *more.needs)))
    fallbacks = answer["fallbacks"]
    assert isinstance(fallbacks, list)  # noqa: S101 - our own script
    whole = _Listed(more.backend, more.fallback or more.backend in fallbacks, needs, tuple(entries))
    return _manifest(extension, release, whole, _ASKED, recorded, str(answer["torch"]))


def _answered(operators: object, use: str) -> Iterator[ExtensionOperator]:
    assert isinstance(operators, list)  # noqa: S101 - our own script
    for operator in operators:
        kernels = tuple(Kernel(kernel["key"], kernel["language"], kernel["signature"]) for kernel in operator["kernels"])
        if kernels or use == "defines":
            yield ExtensionOperator(operator["operator"], use, operator["schema"], kernels)


def _manifest(
    extension: str, release: str, listed: _Listed, obtained: str, recorded: RecordedReleases, torch: str | None = None
) -> ExtensionManifest:
    own = {entry.operator for entry in listed.entries if listed.backend in entry.keys}
    entries = [entry._replace(relies_on_decomposition=_relies(entry, listed, own, release, recorded)) for entry in listed.entries]
    return ExtensionManifest(
        extension,
        release,
        entries,
        torch=torch,
        obtained=obtained,
        backend=listed.backend,
        fallback=listed.fallback,
        needs=listed.needs,
    )


def _relies(entry: ExtensionOperator, listed: _Listed, own: Iterable[str], release: str, recorded: RecordedReleases) -> bool:
    """Whether a call on the backend works because the operator decomposes."""
    if entry.use != "calls" or listed.backend is None or entry.operator in own:
        return False
    return recorded.dispatches.of(entry.operator, release).kind == DECOMPOSES


def _read_list(text: str, where: str, release: str, recorded: RecordedReleases, backend: str | None) -> _Listed:
    problems: list[Problem] = []
    fallback, needs = False, []
    entries: dict[tuple[str, str], ExtensionOperator] = {}
    at_backend: list[tuple[str, str]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        verb, rest = (words[0], words[1:]) if "::" not in words[0] else ("calls", words)
        try:
            if verb == "backend" and rest and rest[1:] in ([], ["fallback"]):
                backend, fallback = rest[0], rest[1:] == ["fallback"]
            elif verb == "needs" and len(rest) == 1 and "." in rest[0]:
                needs.append(rest[0])
            elif verb == "defines" and rest:
                schema = " ".join(rest)
                entry = ExtensionOperator(parse(schema).operator, "defines", schema)
            elif verb == "registers" and rest:
                spelled, keys = (" ".join(rest), []) if "(" in rest[0] else (rest[0], rest[1:])
                schema = known_operator(spelled, release, recorded)
                entry = ExtensionOperator(schema.partition("(")[0], "registers", schema, tuple(Kernel(key) for key in keys))
                if not keys:
                    at_backend.append((entry.operator, "registers"))
            elif verb == "calls" and (len(rest) == 1 or (rest and "(" in rest[0])):
                schema = known_operator(" ".join(rest), release, recorded)
                entry = ExtensionOperator(schema.partition("(")[0], "calls", schema)
            else:
                expected = "backend KEY [fallback], needs NAME, registers OPERATOR [KEY...], calls OPERATOR or defines SCHEMA"
                problems.append(Problem(where, number, "", f"expected {expected}, found {line.strip()!r}"))
                continue
        except SchemaError as error:
            problems.append(Problem(where, number, "", str(error)))
            continue
        except UsageError as error:
            problems.append(Problem(where, number, "", f"{error.message}; {error.hint}"))
            continue
        if verb in {"defines", "registers", "calls"}:
            name = (entry.operator, entry.use)
            if name in entries:
                problems.append(
                    Problem(where, number, "", f"{name[0]} is listed twice as an operator that the extension {name[1]}")
                )
            entries[name] = entry
    for name in at_backend:
        if backend is None:
            problems.append(
                Problem(
                    where, 0, "", f"registers {name[0]} without a dispatch key: add one, or a line such as: backend PrivateUse1"
                )
            )
        else:
            entries[name] = entries[name]._replace(kernels=(Kernel(backend),))
    if problems:
        raise ListError(problems)
    return _Listed(backend, fallback, tuple(needs), tuple(entries.values()))
