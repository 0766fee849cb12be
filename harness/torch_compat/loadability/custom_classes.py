"""The classes of ``torch.classes`` that releases bring, as far as they decide whether a program with objects of them loads.

Recorded are the methods of these classes (``fixtures/operators/custom_classes.txt``), of every release that lists them: from 1.6 on. A
class without methods stands in the schemas of operators that take it, and so do the few that 1.5 has. A program names a class in its source, and its ``data.pkl`` holds
the state that ``__getstate__`` of the writer gave. The loader gives it to its own ``__setstate__``, after it has taken it apart by the
type of the argument: a tuple of another length ends in an error.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from torch_compat.operators.types import CLASS_PREFIX

if TYPE_CHECKING:
    from torch_compat.operators.history import History
    from torch_compat.releases.known import Known

__all__ = ["NAMED", "NO_TUPLE", "CustomClass", "CustomClasses"]

NO_TUPLE: Final = -1
"""The number of parts of a state that is not a tuple."""
NAMED: Final = re.compile(re.escape(CLASS_PREFIX) + r"(\w+(?:\.\w+)*)")
"""The name of a class, in a schema or in the source of a program."""
_METHOD = re.compile(r"(\w+)\(__torch__\.torch\.classes\.(\w+(?:\.\w+)*) _0(?:, (.*) _1)?(?=[,)])")


class CustomClass(NamedTuple):
    """What is recorded of one class. Sets of releases are bits over :attr:`CustomClasses.known`.

    Attributes:
        having: the releases that have it.
        states: how many parts the state has that ``__setstate__`` takes; None where it takes anything; with the releases.
    """

    having: int
    states: tuple[tuple[int | None, int], ...]


class CustomClasses:
    """The classes of all recorded releases.

    Attributes:
        known: the releases that were asked.
        namespaces: the namespaces in which releases have classes; a class of any other is of an extension.
    """

    def __init__(self, history: History, operators: History) -> None:
        """Read what is recorded.

        Parameters:
            history: the methods of classes.
            operators: the schemas of operators, of the same releases.
        """
        self.known: Known = history.known
        having: dict[str, int] = defaultdict(int)
        states: dict[str, dict[int | None, int]] = defaultdict(lambda: defaultdict(int))
        for text, bits in history.texts():
            found = _METHOD.match(text)
            if found is None:
                continue
            method, name, given = found.groups()
            having[name] |= bits
            if method == "__setstate__" and given is not None:
                states[name][_parts(given)] |= bits
        for line in operators.lines:
            if CLASS_PREFIX in line:
                text, _, spans = line.partition("\t")
                bits = operators.bits(spans)
                for name in NAMED.findall(text):
                    having[name] |= bits
        unsure = 0
        for bits, _ in history.incomplete:
            unsure |= bits
        listed = 0
        for bits in having.values():
            listed |= bits
        self._classes = {
            name: CustomClass(_without_gaps(bits, unsure & listed), tuple(states[name].items())) for name, bits in having.items()
        }
        self.namespaces: frozenset[str] = frozenset(name.partition(".")[0] for name in having)

    def having(self, name: str) -> int:
        """The releases that have a class, as bits."""
        found = self._classes.get(name)
        return 0 if found is None else found.having

    def taking(self, name: str, parts: int) -> int:
        """The releases that have a class whose ``__setstate__`` takes a state of so many parts, as bits.

        Of a release of which no ``__setstate__`` is recorded, it is not known, and it counts as one that takes it.

        Parameters:
            parts: :data:`NO_TUPLE` where the state is no tuple.
        """
        found = self._classes.get(name)
        if found is None:
            return 0
        refusing = 0
        for wanted, bits in found.states:
            if wanted is not None and wanted != parts:
                refusing |= bits
        return found.having & ~refusing


def _without_gaps(bits: int, unsure: int) -> int:
    """Releases that have a class, with those that list not all of theirs, where the releases on both sides have it."""
    return bits | (unsure & (bits << 1) & (bits >> 1))


def _parts(type_: str) -> int | None:
    """How many parts a state of a type has; None where the type says nothing."""
    if type_ == "Any":
        return None
    if not (type_.startswith("(") and type_.endswith(")")):
        return NO_TUPLE
    depth, parts = 0, 1
    for mark in type_[1:-1]:
        depth += (mark in "([") - (mark in ")]")
        parts += mark == "," and depth == 0
    return parts
