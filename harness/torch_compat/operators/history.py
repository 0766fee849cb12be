r"""Recorded histories: what each release has, as text files that hold one fact per line and the releases that it is true of.

A file begins with a header::

    # history 1 texts                               the version of this format, and the layout of the lines
    # releases 1.0.0 1.0.1 ... 2.15.0               every release that was asked, oldest first
    # obtained<TAB>1.2.0..<TAB>how the set was obtained, one sentence
    # incomplete<TAB>1.0.0..1.1.0<TAB>what may be missing there, and why

The rest are facts, sorted, in one of three layouts. Nothing else stands between them::

    texts   aten::abs(Tensor self) -> Tensor<TAB>1.0.0..            a text, and its spans
    sets    aten::abs<TAB>1.6.0.. CPU CUDA<TAB>2.1.2.. MPS          a key; then spans and the values with these spans, again and again
    facts   mobile > 9<TAB>"refused: ..."<TAB>1.8.1..1.9.1          a key, its value as JSON, and its spans

*Spans* are ranges over the releases of the header: ``1.5.0`` one, ``1.5.0..1.8.1`` from one to the other, ``1.5.0..`` to the newest;
several are joined by commas. They are as few as possible. An open end is what keeps a line as it is when a new release joins and
has the same. Values of sets have ``%`` and white space written as ``%25``, ``%20``...

A release that is outside a span has **not** what the line says only where the set is complete: ask ``complete(release)``.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cache
from json import loads
from typing import TYPE_CHECKING, Any, Final

from torch_compat.errors import CorpusError, UsageError
from torch_compat.places import read_whole
from torch_compat.releases.data import packaged
from torch_compat.releases.known import Known

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["BesideNames", "FactHistory", "GlobalNames", "History", "HistoryFile", "SetHistory", "quoted"]

VERSION: Final = 1
LAYOUTS: Final = ("texts", "sets", "facts")
HINT: Final = "restore it from version control, or observe its releases again with --record --survey"
UNSURE: Final = "!"
"""Prefix of a value that is not a name: it says why the names of the module are unknown."""
LEFT_OUT: Final = "(left out)"
"""The key under which the names of releases list what was not searched."""

_QUOTED: Final = {"%": "%25", " ": "%20", "\t": "%09", "\n": "%0A", "\r": "%0D"}


def quoted(value: str) -> str:
    """A value as it stands in a set."""
    return value.translate(_TABLE) if not value.isalnum() else value


_TABLE: Final = str.maketrans(_QUOTED)


def unquoted(value: str) -> str:
    """The value that stands in a set in this form."""
    if "%" in value:
        for plain, written in reversed(_QUOTED.items()):
            value = value.replace(written, plain)
    return value


class HistoryFile:
    """One file of a history, whatever its layout: its header, and its lines as they stand.

    Attributes:
        path: the file.
        layout: ``texts``, ``sets`` or ``facts``.
        known: every release that was asked, and sets of them as bits.
        lines: the facts, sorted.
        obtained: ``(releases as bits, how)``.
        incomplete: ``(releases as bits, why)``.
    """

    layout: str = ""
    """The layout that a subclass reads; any layout if not set."""
    __slots__ = ("incomplete", "known", "lines", "obtained", "path", "shown")

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            text = read_whole(path).decode("utf-8")
        except FileNotFoundError:
            raise CorpusError("there is no recorded history", where=str(path), hint=HINT, code="history-missing") from None
        except (OSError, UnicodeDecodeError) as error:
            raise CorpusError(f"cannot be read: {error}", where=str(path), hint=HINT) from error
        lines = text.split("\n")
        if lines.pop() != "" or len(lines) < 2:
            raise CorpusError("ends in the middle of a line, or is empty", where=str(path), hint=HINT)
        first = lines[0].split(" ")
        if first[:3] != ["#", "history", str(VERSION)] or first[3:] not in [[layout] for layout in LAYOUTS]:
            expected = f"# history {VERSION} {self.layout or '<layout>'}"
            raise CorpusError(f"begins with {lines[0]!r}, expected {expected!r}", where=f"{path}, line 1", hint=HINT)
        self.shown = first[3]
        if self.layout not in {"", self.shown}:
            raise CorpusError(f"has layout {self.shown!r}, expected {self.layout!r}", where=f"{path}, line 1", hint=HINT)
        if not lines[1].startswith("# releases "):
            raise CorpusError(f"is {lines[1]!r}, expected '# releases ...'", where=f"{path}, line 2", hint=HINT)
        try:
            self.known = Known(lines[1].split(" ")[2:])
        except UsageError as error:
            raise CorpusError(error.message, where=f"{path}, line 2", hint=HINT) from error
        self.obtained: list[tuple[int, str]] = []
        self.incomplete: list[tuple[int, str]] = []
        count = 2
        while count < len(lines) and lines[count].startswith("# "):
            kind, _, rest = lines[count].partition("\t")
            spans, tab, said = rest.partition("\t")
            told = {"# obtained": self.obtained, "# incomplete": self.incomplete}.get(kind)
            if told is None or not tab:
                raise CorpusError(f"unknown header line: {lines[count]!r}", where=f"{path}, line {count + 1}", hint=HINT)
            told.append((self.bits(spans), said))
            count += 1
        self.lines = lines[count:]

    @property
    def releases(self) -> tuple[str, ...]:
        """Every release that was asked, oldest first."""
        return self.known.releases

    def bits(self, spans: str) -> int:
        """Spans as bits: bit 0 is the oldest release."""
        try:
            return self.known.bits(spans)
        except UsageError as error:
            raise CorpusError(error.message, where=str(self.path), hint=HINT) from error

    def bit(self, release: str) -> int:
        """The bit of a release; raises UsageError for one that was not asked."""
        try:
            return self.known.bit(release)
        except KeyError:
            hint = f"recorded releases: {', '.join(self.releases)}"
            raise UsageError(f"there are no records for the release {release!r}", where=str(self.path), hint=hint) from None

    def of(self, bits: int) -> tuple[str, ...]:
        """The releases that bits stand for, oldest first."""
        return self.known.of(bits)

    def complete(self, release: str) -> bool:
        """Whether nothing is missing from what is recorded of a release. Only then does absence mean anything."""
        return self.why_incomplete(release) is None

    def why_incomplete(self, release: str) -> str | None:
        """What may be missing from what is recorded of a release, and why; None where nothing is."""
        bit = self.bit(release)
        return next((why for bits, why in self.incomplete if bits & bit), None)

    def how(self, release: str) -> str:
        """How the set of a release was obtained."""
        bit = self.bit(release)
        return next(how for bits, how in self.obtained if bits & bit)

    def _run(self, key: str, end: str) -> Iterator[str]:
        """The lines of a key, which ends where one of the characters of ``end`` stands; they sort before all that go into names."""
        lines = self.lines
        at = bisect_left(lines, key)
        size = len(key)
        while at < len(lines) and lines[at].startswith(key) and lines[at][size] in end:
            yield lines[at]
            at += 1

    def _facts(self) -> Iterator[tuple[str, str, int]]:
        """Every fact: key, value (as it stands; empty for texts), releases as bits."""
        for line in self.lines:
            columns = line.split("\t")
            if self.shown == "texts":
                text, spans = columns
                yield text, "", self.bits(spans)
            elif self.shown == "facts":
                key, value, spans = columns
                yield key, value, self.bits(spans)
            else:
                for group in columns[1:]:
                    spans, *values = group.split(" ")
                    for value in values:
                        yield columns[0], unquoted(value), self.bits(spans)

    def facts(self) -> Iterator[tuple[str, str, int]]:
        """Every fact: key, value (of facts as JSON text, of texts empty), releases as bits; CorpusError if a line is malformed."""
        try:
            yield from self._facts()
        except ValueError as error:
            raise CorpusError(
                f"a line does not have the layout {self.shown!r}: {error}", where=str(self.path), hint=HINT
            ) from error


class History(HistoryFile):
    """The schemas of operators (or of the methods of custom classes), release by release."""

    layout = "texts"
    __slots__ = ("_names", "_operators", "_spans_of", "_texts")

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._names: dict[int, frozenset[str]] = {}
        self._texts: list[tuple[str, int]] | None = None
        self._spans_of: dict[int, list[str]] = {}
        self._operators: dict[str, list[tuple[str, int]]] = {}

    @classmethod
    def load(cls, path: Path | None = None) -> History:
        """The history in a file; the packaged one of all operators unless given."""
        return cls(path) if path is not None else _packaged_schemas()

    def texts(self) -> list[tuple[str, int]]:
        """Every schema with the releases that have it, as bits: bit 0 is the oldest; sorted, and kept for the next who asks."""
        if self._texts is None:
            self._texts = [(text, bits) for text, _, bits in self.facts()]
        return self._texts

    def differing(self, one: str, other: str) -> tuple[list[str], list[str]]:
        """The schemas that only the first of two releases has, and those that only the second has; sorted."""
        if not self._spans_of:
            for text, bits in self.texts():
                self._spans_of.setdefault(bits, []).append(text)
        here, there = self.bit(one), self.bit(other)
        found: tuple[list[str], list[str]] = ([], [])
        for bits, texts in self._spans_of.items():
            if bool(bits & here) != bool(bits & there):
                found[not bits & here].extend(texts)
        return sorted(found[0]), sorted(found[1])

    def standing(self, operator: str, release: str) -> list[str]:
        """The schemas that a release has under exactly this name and overload; for many questions, where :meth:`schemas` is for a few."""
        if not self._operators:
            for text, bits in self.texts():
                self._operators.setdefault(text.partition("(")[0], []).append((text, bits))
        bit = self.bit(release)
        return [text for text, bits in self._operators.get(operator, ()) if bits & bit]

    def _of(self, name: str) -> Iterator[tuple[str, int]]:
        for line in self._run(name, "(" if "." in name else "(."):
            text, _, spans = line.partition("\t")
            yield text, self.bits(spans)

    def schemas(self, name: str, release: str) -> tuple[str, ...]:
        """The schemas that a release has under a name: ``aten::add`` all its overloads, ``aten::add.Tensor`` that one."""
        bit = self.bit(release)
        return tuple(text for text, bits in self._of(name) if bits & bit)

    def history(self, name: str) -> tuple[tuple[str, str], ...]:
        """``(schema, spans)`` of everything that ever stood under a name, sorted by the releases."""
        found = [(bits & -bits, text, self.known.text(bits)) for text, bits in self._of(name)]
        return tuple((text, spans) for _, text, spans in sorted(found))

    def with_bits(self, name: str) -> list[tuple[str, int]]:
        """The same in the same order, with the releases as bits: bit 0 is the oldest release."""
        found = sorted((bits & -bits, text, bits) for text, bits in self._of(name))
        return [(text, bits) for _, text, bits in found]

    def having(self, name: str) -> tuple[str, ...]:
        """The releases that have some schema under a name, oldest first. See ``complete`` for those that are not among them."""
        return self.of(self.having_bits(name))

    def having_bits(self, name: str) -> int:
        """The same as bits: bit 0 is the oldest release."""
        total = 0
        for _, bits in self._of(name):
            total |= bits
        return total

    def names(self, release: str) -> frozenset[str]:
        """Every operator of a release, without overload names."""
        bit = self.bit(release)
        if bit not in self._names:
            found = (text.partition("(")[0].partition(".")[0] for text, _, bits in self.facts() if bits & bit)
            self._names[bit] = frozenset(found)
        return self._names[bit]


class SetHistory(HistoryFile):
    """Sets of words under keys, release by release: kernels of operators, names in modules."""

    layout = "sets"
    __slots__ = ("_known",)

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._known: dict[str, dict[str, int]] = {}

    def words(self, key: str) -> dict[str, int]:
        """Every word that ever stood under a key, with its releases as bits; kept, so that asking again costs nothing."""
        known = self._known.get(key)
        if known is None:
            known = {}
            for line in self._run(key, "\t"):
                for group in line.split("\t")[1:]:
                    spans, *values = group.split(" ")
                    bits = self.bits(spans)
                    for value in values:
                        word = unquoted(value)
                        known[word] = known.get(word, 0) | bits
            self._known[key] = known
        return known

    def values(self, key: str, release: str) -> frozenset[str]:
        """The words under a key in a release."""
        bit = self.bit(release)
        return frozenset(word for word, bits in self.words(key).items() if bits & bit)

    def keys(self, release: str) -> frozenset[str]:
        """Every key of a release."""
        bit = self.bit(release)
        return frozenset(key for key, _, bits in self.facts() if bits & bit)


class GlobalNames(SetHistory):
    """What a pickle can name in torch, release by release."""

    __slots__ = ()

    @classmethod
    def load(cls, path: Path | None = None) -> GlobalNames:
        """The history in a file; the packaged one unless given."""
        return cls(path) if path is not None else _packaged_names()

    def having_bits(self, module: str, name: str) -> tuple[int, int]:
        """``(releases that have it, releases of which it is not known)``, as bits. Any other release was searched and has it not.

        Not known are names of modules that are not below torch, that lie in a package which was not searched, or that could not
        be imported; names inside a class, and special names (``__getattr__``...), which are never listed.
        """
        if (module != "torch" and not module.startswith("torch.")) or "." in name or name.startswith("__"):
            return 0, self.known.everyone
        unknown = 0
        left_out, package = self.words(LEFT_OUT), module
        while package:
            unknown |= left_out.get(package, 0)
            package = package.rpartition(".")[0]
        words = self.words(module)
        for word, bits in words.items():
            if word.startswith(UNSURE):
                unknown |= bits
        found = words.get(name, 0)
        return found, unknown & ~found

    def having(self, module: str, name: str) -> tuple[str, ...]:
        """The releases in which the module has the name, oldest first."""
        return self.of(self.having_bits(module, name)[0])

    def has(self, module: str, name: str, release: str) -> bool | None:
        """Whether a pickle finds the name in that release; None where that is not known."""
        found, unknown = self.having_bits(module, name)
        bit = self.bit(release)
        return True if found & bit else None if unknown & bit else False


class BesideNames(SetHistory):
    """What a pickle can name beside torch, version by version: of Python's standard library, or of a package.

    The releases of such a history are versions of Python, or of the package.
    """

    __slots__ = ()

    def module_bits(self, module: str) -> int:
        """The versions in which the module can be imported, or of which that is not known, as bits."""
        left_out = self.words(LEFT_OUT)
        if any(part in left_out for part in module.split(".")):
            return self.known.everyone
        found = 0
        for bits in self.words(module).values():
            found |= bits
        return found

    def having_bits(self, module: str, name: str) -> int:
        """The versions in which the module has the name, or of which that is not known, as bits.

        Not known are names inside classes, and special names, in modules that there are; and all names of modules that were not
        searched.
        """
        name = name.partition(".")[0]
        words = self.words(module)
        if not words or name in words:
            return words.get(name, 0) if words else self.module_bits(module)
        if name.startswith("__") and name.endswith("__") and module != "builtins":
            return self.module_bits(module)
        found = 0
        for word, bits in words.items():
            if word.startswith(UNSURE):
                found |= bits
        return found


class FactHistory(HistoryFile):
    """Values under keys, release by release."""

    layout = "facts"
    __slots__ = ()

    def values(self, key: str) -> dict[str, int]:
        """Every value (JSON text) that ever stood under a key, with its releases as bits."""
        found: dict[str, int] = {}
        for line in self._run(key, "\t"):
            _, value, spans = line.split("\t")
            found[value] = self.bits(spans)
        return found

    def value(self, key: str, release: str) -> Any:
        """The value under a key in a release; raises KeyError where it has none."""
        bit = self.bit(release)
        for value, bits in self.values(key).items():
            if bits & bit:
                return loads(value)
        raise KeyError(key)


@cache
def _packaged_schemas() -> History:
    return History(packaged("fixtures", "operators", "schemas.txt"))


@cache
def _packaged_names() -> GlobalNames:
    return GlobalNames(packaged("fixtures", "globals", "names.txt"))
