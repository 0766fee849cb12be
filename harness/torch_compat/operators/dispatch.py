r"""How a call of an operator ends on a backend without its own kernel: the operator decomposes, or the call fails.

There are two recorded sources. ``kernels.txt`` is what the dispatcher of a release reported when queried (from
1.7.1 on, and in part for 1.6.0); ``native_functions.txt`` is the content of the file that the package has shipped since 1.12. The
dispatcher determines what a program meets, so it takes precedence if the two differ, and the difference is reported.

A backend without a kernel is served by a kernel under one of the keys of ``COMPOSITE``. Two kinds of these kernels are written by
PyTorch's code generator and only forward to another operator, which then needs a kernel (``Dispatch.into``):

* a function or in-place operator with ``structured_delegate`` allocates its result and calls the operator that it names;
* an operator listed under ``autogen`` of another operator calls that operator, and copies.

It is not recorded what the other composite kernels call.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from torch_compat.operators.history import History, SetHistory
from torch_compat.releases.data import packaged

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = [
    "ABSENT",
    "COMPOSITE",
    "DECOMPOSES",
    "NEEDS_KERNEL",
    "NOT_DISPATCHED",
    "UNKNOWN",
    "Dispatch",
    "DispatchChange",
    "Dispatches",
]

COMPOSITE: Final = {
    "catchall": "catch-all",
    "Math": "implicit",
    "CompositeImplicitAutograd": "implicit",
    "DefaultBackend": "explicit",
    "CompositeExplicitAutograd": "explicit",
    "CompositeExplicitAutogradNonFunctional": "explicit, not functional",
}
"""Keys whose kernel works for every backend, in the words of every release, and what they imply for autograd. ``catchall``
in 1.6 and 1.7 is one of the others, but does not say which."""

DECOMPOSES: Final = "decomposes"
NEEDS_KERNEL: Final = "needs-kernel"
NOT_DISPATCHED: Final = "not-dispatched"
ABSENT: Final = "absent"
UNKNOWN: Final = "unknown"

_NOTHING: Final = "-"
_CRASHED: Final = "crashed: "
_AUTOGEN: Final = "autogen:"
_DELEGATE: Final = "structured_delegate:"
_TAG: Final = "tags:"
_FILE: Final = "(file)"


class Dispatch(NamedTuple):
    """What a release does with a call of an operator on a backend without its own kernel."""

    operator: str
    """``aten::add.Tensor``."""
    release: str
    """The release that was queried."""
    kind: str
    """``decomposes``; ``needs-kernel``; ``not-dispatched`` (the TorchScript interpreter runs it itself, for any backend);
    ``absent``; ``unknown``."""
    how: tuple[str, ...]
    """For ``decomposes``: the kinds of kernels that work for every backend, in the words of ``COMPOSITE``."""
    into: str | None
    """For ``decomposes``: the operator that the generated kernel calls. Unknown if the release does not ship the file."""
    keys: tuple[str, ...]
    """Every key that has a kernel (according to the file, if the dispatcher did not report it)."""
    obtained: tuple[str, ...]
    """Where this comes from: ``dispatcher``, ``native_functions.yaml``, or both."""
    disagreement: str | None
    """What the file says, if it disagrees."""
    why: str | None
    """For ``unknown``: what is missing."""

    def shown(self) -> str:
        """The result in words."""
        if self.kind == DECOMPOSES:
            into = f", into {self.into}" if self.into else ""
            return f"decomposes ({'; '.join(self.how)}{into})"
        if self.kind == NEEDS_KERNEL:
            return "needs the backend's own kernel"
        if self.kind == NOT_DISPATCHED:
            return "is not dispatched: the interpreter runs it"
        return self.kind if self.why is None else f"{self.kind}: {self.why}"


class DispatchChange(NamedTuple):
    """An operator whose dispatch changed."""

    operator: str
    old: Dispatch
    new: Dispatch
    breaks: bool
    """Whether a backend without its own kernel worked before and now fails, at this operator or at the one that generated
    kernels call. The latter is known only if both releases ship the file."""


class Dispatches:
    """The dispatch of every operator in every recorded release.

    Parameters:
        kernels, native_functions, schemas: the recorded files; the packaged ones by default.
    """

    def __init__(self, kernels: Path | None = None, native_functions: Path | None = None, schemas: Path | None = None) -> None:
        self.kernels = SetHistory(kernels or packaged("fixtures", "operators", "kernels.txt"))
        self.functions = SetHistory(native_functions or packaged("fixtures", "operators", "native_functions.txt"))
        self.schemas = History.load(schemas)
        self._generated: dict[str, list[tuple[str, int]]] | None = None
        self._unknown: dict[str, str | None] = {}

    @classmethod
    def load(cls) -> Dispatches:
        """The dispatches from the packaged files, read once."""
        return _packaged()

    @property
    def releases(self) -> tuple[str, ...]:
        """All queried releases, oldest first."""
        return self.kernels.releases

    def tags(self, operator: str, release: str) -> frozenset[str] | None:
        """The tags of an operator in the file, such as ``core``; None if the release does not ship the file."""
        if not self._carries_file(release):
            return None
        return frozenset(word[len(_TAG) :] for word in self.functions.values(operator, release) if word.startswith(_TAG))

    def of(self, operator: str, release: str) -> Dispatch:
        """The dispatch of one operator (with its overload, if it has one) in one release.

        Raises:
            UsageError: nothing is recorded for the release.
        """
        asked = self.kernels.values(operator, release)
        crashed = next((word for word in asked if word.startswith(_CRASHED)), None)
        listed, into = self._listed(operator, release)
        if asked and crashed is None:
            keys = asked - {_NOTHING}
            if not keys and listed is None and self.kernels.why_incomplete(release) is not None:
                return self._not_listed(operator, release, None)  # its kernels may exist only in another build
            kind = DECOMPOSES if keys & COMPOSITE.keys() else NEEDS_KERNEL
            obtained: tuple[str, ...] = ("dispatcher",)
            disagreement = None
            if listed is not None:
                generated = into is not None and not listed & COMPOSITE.keys()
                message = DECOMPOSES if generated or listed & COMPOSITE.keys() else NEEDS_KERNEL
                if message == kind:
                    obtained = ("dispatcher", "native_functions.yaml")
                else:
                    words = f"lists {' '.join(sorted(listed)) or 'no key'}" if into is None else f"has it call {into}"
                    disagreement = f"native_functions.yaml {words}, which {_means(message)}"
            return self._made(operator, release, kind, keys, into if kind == DECOMPOSES else None, obtained, disagreement)
        if listed is not None and self.why_unknown(release) is not None:
            kind = DECOMPOSES if into is not None or listed & COMPOSITE.keys() else NEEDS_KERNEL
            return self._made(operator, release, kind, listed, into, ("native_functions.yaml",), None)
        return self._not_listed(operator, release, crashed)

    def changes(self, old: str, new: str) -> list[DispatchChange]:
        """Operators in both releases that decompose in one and need a kernel in the other, or decompose differently.

        Operators whose dispatch in either release is unknown are left out: see :meth:`why_unknown` for both.
        """
        both = self.kernels.bit(old) | self.kernels.bit(new)
        filed = self._carries_file(old) and self._carries_file(new)
        results = []
        for operator in sorted({key for key, _, bits in self.kernels.facts() if bits & both}):
            before, after = self.of(operator, old), self.of(operator, new)
            kinds = {before.kind, after.kind}
            if not kinds <= {DECOMPOSES, NEEDS_KERNEL}:
                continue
            if (before.kind, before.how) != (after.kind, after.how) or (filed and before.into != after.into):
                results.append(DispatchChange(operator, before, after, self._breaks(before, after)))
        return results

    def _breaks(self, old: Dispatch, new: Dispatch) -> bool:
        if old.kind != DECOMPOSES or new.kind == NEEDS_KERNEL:
            return old.kind == DECOMPOSES
        if not self._carries_file(old.release) or not self._carries_file(new.release):
            return False
        *_, before = self.steps(old.operator, old.release)
        *_, after = self.steps(new.operator, new.release)
        return before.kind == DECOMPOSES and after.kind == NEEDS_KERNEL

    def why_unknown(self, release: str) -> str | None:
        """Why the dispatch of some operators of a release is unknown; None if it is known for all.

        A build without CUDA lacks CUDA kernels; kernels that serve every backend are in every build. Only operators without any kernel in
        this build remain unknown, and :meth:`of` reports this.
        """
        if release not in self._unknown:
            why = self.kernels.why_incomplete(release)
            if why is not None:
                bit = self.kernels.bit(release)
                words = [word for _, word, bits in self.kernels.facts() if bits & bit]
                if words and not any(word.startswith(_CRASHED) for word in words):
                    why = None
            self._unknown[release] = why
        return self._unknown[release]

    # ---------------------------------------------------------------------------------------------------------------------

    def _carries_file(self, release: str) -> bool:
        return bool(self.functions.values(_FILE, release))

    def _listed(self, operator: str, release: str) -> tuple[frozenset[str] | None, str | None]:
        """The keys in the file, and the operator that a generated kernel forwards to; None if the file does not list the operator."""
        words = self.functions.values(operator, release)
        keys = frozenset(word for word in words if ":" not in word)
        delegate = next((word[len(_DELEGATE) :] for word in words if word.startswith(_DELEGATE)), None)
        if words:
            return keys, delegate
        bit = self.functions.bit(release)
        source = next((owner for owner, bits in self._autogen(operator) if bits & bit), None)
        return (None, None) if source is None else (frozenset(), source)

    def _autogen(self, operator: str) -> list[tuple[str, int]]:
        """The operators that list this one under ``autogen``, with the releases as bits."""
        if self._generated is None:
            self._generated = {}
            for owner, word, bits in self.functions.facts():
                if word.startswith(_AUTOGEN):
                    self._generated.setdefault(word[len(_AUTOGEN) :], []).append((owner, bits))
        return self._generated.get(operator, [])

    def _not_listed(self, operator: str, release: str, crashed: str | None) -> Dispatch:
        """The dispatch of an operator that neither source lists."""
        has = any(text.partition("(")[0] == operator for text in self.schemas.schemas(operator, release))
        why = self.why_unknown(release)
        if crashed is not None:
            why = f"querying the dispatcher for this operator crashed the process: {crashed[len(_CRASHED) :]}"
        elif not has and self.schemas.complete(release):
            return self._made(operator, release, ABSENT, frozenset(), None, (), None)
        elif why is None and self.kernels.values(operator, release):
            why = self.kernels.why_incomplete(release)
        elif why is None and has:
            return self._made(operator, release, NOT_DISPATCHED, frozenset(), None, ("dispatcher",), None)
        elif not has:
            why = self.schemas.why_incomplete(release) or why
        return self._made(operator, release, UNKNOWN, frozenset(), None, (), None, why)

    @staticmethod
    def _made(
        operator: str,
        release: str,
        kind: str,
        keys: frozenset[str],
        into: str | None,
        obtained: tuple[str, ...],
        disagreement: str | None,
        why: str | None = None,
    ) -> Dispatch:
        how = tuple(dict.fromkeys(meaning for key, meaning in COMPOSITE.items() if key in keys))
        if kind == DECOMPOSES and not how:
            how = ("generated",)
        return Dispatch(operator, release, kind, how, into, tuple(sorted(keys)), obtained, disagreement, why)

    def steps(self, operator: str, release: str) -> Iterator[Dispatch]:
        """The operator, followed by the operators that generated kernels forward to, in order."""
        seen: set[str] = set()
        following: str | None = operator
        while following is not None and following not in seen:
            seen.add(following)
            step = self.of(following, release)
            yield step
            following = step.into


def _means(kind: str) -> str:
    return "serves every backend" if kind == DECOMPOSES else "serves no backend without a kernel"


@cache
def _packaged() -> Dispatches:
    return Dispatches()
