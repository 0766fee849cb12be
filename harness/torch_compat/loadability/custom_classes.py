"""The ``torch.classes`` classes of releases, as far as they determine whether a program with such objects loads.

The methods of these classes are recorded (``fixtures/operators/custom_classes.txt``) for every release that can list them, from 1.6 on.
Classes without methods, and the few classes of 1.5, are found in the schemas of operators that take them. A program refers to a class in
its source, and its ``data.pkl`` contains the state returned by ``__getstate__`` in the writer. The loader passes this state to its own
``__setstate__``, after unpacking it by the type of the argument: a tuple of a different length is an error.
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
    """The recorded facts about one class. Sets of releases are bitmasks over :attr:`CustomClasses.known`.

    Attributes:
        having: the releases that have it.
        states: the number of parts of the state that ``__setstate__`` accepts, None if it accepts anything; with the releases.
    """

    having: int
    states: tuple[tuple[int | None, int], ...]


class CustomClasses:
    """The classes of all recorded releases.

    Attributes:
        known: the recorded releases.
        namespaces: the namespaces in which releases have classes; a class in any other namespace belongs to an extension.
    """

    def __init__(self, history: History, operators: History) -> None:
        """Read the recorded facts.

        Parameters:
            history: the methods of classes.
            operators: the operator schemas of the same releases.
        """
        self.known: Known = history.known
        having: dict[str, int] = defaultdict(int)
        states: dict[str, dict[int | None, int]] = defaultdict(lambda: defaultdict(int))
        for text, bits in history.texts():
            match = _METHOD.match(text)
            if match is None:
                continue
            method, name, given = match.groups()
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
        """Return the releases that have a class, as a bitmask."""
        result = self._classes.get(name)
        return 0 if result is None else result.having

    def taking(self, name: str, parts: int) -> int:
        """Return the releases with a class whose ``__setstate__`` accepts a state with this number of parts, as a bitmask.

        If no ``__setstate__`` is recorded for a release, this is unknown, and the release counts as accepting it.

        Parameters:
            parts: the number of parts; :data:`NO_TUPLE` if the state is not a tuple.
        """
        result = self._classes.get(name)
        if result is None:
            return 0
        refusing = 0
        for wanted, bits in result.states:
            if wanted is not None and wanted != parts:
                refusing |= bits
        return result.having & ~refusing


def _without_gaps(bits: int, unsure: int) -> int:
    """Add releases with incomplete lists to those that have a class, if the releases just before and after them have it."""
    return bits | (unsure & (bits << 1) & (bits >> 1))


def _parts(type_: str) -> int | None:
    """Return the number of parts of a state of this type; None if the type does not determine it."""
    if type_ == "Any":
        return None
    if not (type_.startswith("(") and type_.endswith(")")):
        return NO_TUPLE
    depth, parts = 0, 1
    for mark in type_[1:-1]:
        depth += (mark in "([") - (mark in ")]")
        parts += mark == "," and depth == 0
    return parts
