r"""Recorded histories: text files with one fact per line and the releases for which it holds.

A file begins with a header::

    # history 1 texts                               the version of this format, and the layout of the lines
    # releases 1.0.0 1.0.1 ... 2.15.0               every recorded release, oldest first
    # obtained<TAB>1.2.0..<TAB>how the set was obtained, one sentence
    # incomplete<TAB>1.0.0..1.1.0<TAB>what may be missing there, and why

The rest are facts, sorted, in one of three layouts. There are no other lines::

    texts   aten::abs(Tensor self) -> Tensor<TAB>1.0.0..            a text, and its spans
    sets    aten::abs<TAB>1.6.0.. CPU CUDA<TAB>2.1.2.. MPS          a key; then spans and the values with these spans, again and again
    facts   mobile > 9<TAB>"refused: ..."<TAB>1.8.1..1.9.1          a key, its value as JSON, and its spans

*Spans* are ranges over the releases of the header: ``1.5.0`` is one release, ``1.5.0..1.8.1`` a range, ``1.5.0..`` a range up to the
newest; several are joined by commas. They are as few as possible. An open end keeps a line unchanged when a new release is added that
has the same fact. Values of sets have ``%`` and white space written as ``%25``, ``%20``...

That a release outside a span does **not** have the fact is certain only if the set is complete: use ``complete(release)``.
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
    """A value as written in a set."""
    return value.translate(_TABLE) if not value.isalnum() else value


_TABLE: Final = str.maketrans(_QUOTED)


def unquoted(value: str) -> str:
    """The value for its written form in a set."""
    if "%" in value:
        for plain, written in reversed(_QUOTED.items()):
            value = value.replace(written, plain)
    return value


class HistoryFile:
    """One file of a history in any layout: its header, and its lines unparsed.

    Attributes:
        path: the file.
        layout: ``texts``, ``sets`` or ``facts``.
        known: every recorded release, and sets of releases as bits.
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
            spans, tab, message = rest.partition("\t")
            told = {"# obtained": self.obtained, "# incomplete": self.incomplete}.get(kind)
            if told is None or not tab:
                raise CorpusError(f"unknown header line: {lines[count]!r}", where=f"{path}, line {count + 1}", hint=HINT)
            told.append((self.bits(spans), message))
            count += 1
        self.lines = lines[count:]

    @property
    def releases(self) -> tuple[str, ...]:
        """Every recorded release, oldest first."""
        return self.known.releases

    def bits(self, spans: str) -> int:
        """Convert spans to bits: bit 0 is the oldest release."""
        try:
            return self.known.bits(spans)
        except UsageError as error:
            raise CorpusError(error.message, where=str(self.path), hint=HINT) from error

    def bit(self, release: str) -> int:
        """The bit of a release; raises UsageError for a release that is not recorded."""
        try:
            return self.known.bit(release)
        except KeyError:
            hint = f"recorded releases: {', '.join(self.releases)}"
            raise UsageError(f"there are no records for the release {release!r}", where=str(self.path), hint=hint) from None

    def of(self, bits: int) -> tuple[str, ...]:
        """Convert bits to releases, oldest first."""
        return self.known.of(bits)

    def complete(self, release: str) -> bool:
        """Whether the recorded data of a release is complete. Only then does absence mean anything."""
        return self.why_incomplete(release) is None

    def why_incomplete(self, release: str) -> str | None:
        """What may be missing from the recorded data of a release, and why; None if it is complete."""
        bit = self.bit(release)
        return next((why for bits, why in self.incomplete if bits & bit), None)

    def how(self, release: str) -> str:
        """How the set of a release was obtained."""
        bit = self.bit(release)
        return next(how for bits, how in self.obtained if bits & bit)

    def _run(self, key: str, end: str) -> Iterator[str]:
        """The lines of a key, which a character of ``end`` terminates; those characters sort before all characters of names."""
        lines = self.lines
        at = bisect_left(lines, key)
        size = len(key)
        while at < len(lines) and lines[at].startswith(key) and lines[at][size] in end:
            yield lines[at]
            at += 1

    def _facts(self) -> Iterator[tuple[str, str, int]]:
        """Every fact: key, value (as written; empty for texts), releases as bits."""
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
        """Every fact: key, value (JSON text for facts, empty for texts), releases as bits; CorpusError if a line is malformed."""
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
        """Load the history from a file; the packaged one of all operators by default."""
        return cls(path) if path is not None else _packaged_schemas()

    def texts(self) -> list[tuple[str, int]]:
        """Every schema with its releases as bits: bit 0 is the oldest; sorted and cached."""
        if self._texts is None:
            self._texts = [(text, bits) for text, _, bits in self.facts()]
        return self._texts

    def differing(self, item: str, other: str) -> tuple[list[str], list[str]]:
        """The schemas only in the first of two releases, and those only in the second; sorted."""
        if not self._spans_of:
            for text, bits in self.texts():
                self._spans_of.setdefault(bits, []).append(text)
        here, there = self.bit(item), self.bit(other)
        results: tuple[list[str], list[str]] = ([], [])
        for bits, texts in self._spans_of.items():
            if bool(bits & here) != bool(bits & there):
                results[not bits & here].extend(texts)
        return sorted(results[0]), sorted(results[1])

    def standing(self, operator: str, release: str) -> list[str]:
        """The schemas of a release with exactly this name and overload; fast for many queries, while :meth:`schemas` suits a few."""
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
        """The schemas of a release under a name: all overloads for ``aten::add``, one for ``aten::add.Tensor``."""
        bit = self.bit(release)
        return tuple(text for text, bits in self._of(name) if bits & bit)

    def history(self, name: str) -> tuple[tuple[str, str], ...]:
        """``(schema, spans)`` of all schemas ever recorded under a name, sorted by release."""
        results = [(bits & -bits, text, self.known.text(bits)) for text, bits in self._of(name)]
        return tuple((text, spans) for _, text, spans in sorted(results))

    def with_bits(self, name: str) -> list[tuple[str, int]]:
        """The same in the same order, with the releases as bits: bit 0 is the oldest release."""
        results = sorted((bits & -bits, text, bits) for text, bits in self._of(name))
        return [(text, bits) for _, text, bits in results]

    def having(self, name: str) -> tuple[str, ...]:
        """The releases with any schema under a name, oldest first. Use ``complete`` for the other releases."""
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
            results = (text.partition("(")[0].partition(".")[0] for text, _, bits in self.facts() if bits & bit)
            self._names[bit] = frozenset(results)
        return self._names[bit]


class SetHistory(HistoryFile):
    """Sets of words under keys, release by release: kernels of operators, names in modules."""

    layout = "sets"
    __slots__ = ("_known",)

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._known: dict[str, dict[str, int]] = {}

    def words(self, key: str) -> dict[str, int]:
        """All words ever recorded under a key, with their releases as bits; cached."""
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
    """Names in torch that a pickle can refer to, release by release."""

    __slots__ = ()

    @classmethod
    def load(cls, path: Path | None = None) -> GlobalNames:
        """Load the history from a file; the packaged one by default."""
        return cls(path) if path is not None else _packaged_names()

    def having_bits(self, module: str, name: str) -> tuple[int, int]:
        """``(releases that have it, releases of which it is not known)``, as bits. Every other release was searched and does not have it.

        Unknown are names of modules outside torch, in a package that was not searched, or that could not
        be imported; names inside a class; and special names (``__getattr__``...), which are never recorded.
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
        result = words.get(name, 0)
        return result, unknown & ~result

    def having(self, module: str, name: str) -> tuple[str, ...]:
        """The releases in which the module has the name, oldest first."""
        return self.of(self.having_bits(module, name)[0])

    def has(self, module: str, name: str, release: str) -> bool | None:
        """Whether a pickle finds the name in that release; None if unknown."""
        result, unknown = self.having_bits(module, name)
        bit = self.bit(release)
        return True if result & bit else None if unknown & bit else False


class BesideNames(SetHistory):
    """Names outside torch that a pickle can refer to, version by version: in Python's standard library, or in a package.

    The releases of such a history are versions of Python, or of the package.
    """

    __slots__ = ()

    def module_bits(self, module: str) -> int:
        """The versions in which the module can be imported, including those for which this is unknown, as bits."""
        left_out = self.words(LEFT_OUT)
        if any(part in left_out for part in module.split(".")):
            return self.known.everyone
        result = 0
        for bits in self.words(module).values():
            result |= bits
        return result

    def having_bits(self, module: str, name: str) -> int:
        """The versions in which the module has the name, including those for which this is unknown, as bits.

        Unknown are names inside classes and special names, in existing modules; and all names of modules that were
        not searched.
        """
        name = name.partition(".")[0]
        words = self.words(module)
        if not words or name in words:
            return words.get(name, 0) if words else self.module_bits(module)
        if name.startswith("__") and name.endswith("__") and module != "builtins":
            return self.module_bits(module)
        result = 0
        for word, bits in words.items():
            if word.startswith(UNSURE):
                result |= bits
        return result


class FactHistory(HistoryFile):
    """Values under keys, release by release."""

    layout = "facts"
    __slots__ = ()

    def values(self, key: str) -> dict[str, int]:
        """Every value (JSON text) ever recorded under a key, with its releases as bits."""
        results: dict[str, int] = {}
        for line in self._run(key, "\t"):
            _, value, spans = line.split("\t")
            results[value] = self.bits(spans)
        return results

    def value(self, key: str, release: str) -> Any:
        """The value under a key in a release; raises KeyError if there is none."""
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
