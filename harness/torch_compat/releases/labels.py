"""Ordered lists of names that need not be versions, and sets of them as text.

Two builds of one release are the same release, but different readers; and archives that no release wrote have a writer name, too. Recorded
files list such names in an order of their own. The text of a set has the form of :mod:`torch_compat.releases.sets`, without spaces and
without open beginnings: ``1.5.0..1.8.1,2.13.0+cpu,2.14.1..``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_compat.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Labels"]


class Labels:
    """An ordered list of names.

    Parameters:
        names: the unique names, in order.

    Raises:
        UsageError: a name occurs twice.
    """

    __slots__ = ("_at", "_known", "names")

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)
        self._at = {name: at for at, name in enumerate(self.names)}
        if len(self._at) != len(self.names):
            raise UsageError("contains a duplicate name", code="no-releases")
        self._known: dict[str, tuple[str, ...]] = {}

    def spans(self, bits: int) -> Iterator[tuple[str, str]]:
        """Yield the first and last name of each run of consecutive names in a bitmask; bit 0 is the first name."""
        at = 0
        while bits >> at:
            at += ((bits >> at) & -(bits >> at)).bit_length() - 1
            end = at + (~(bits >> at) & ((bits >> at) + 1)).bit_length() - 1
            yield self.names[at], self.names[end - 1]
            at = end

    def text(self, bits: int) -> str:
        """Return the shortest text of a set, which is open-ended if it includes the last name."""
        newest = self.names[-1] if self.names else ""
        return ",".join(
            f"{first}.." if last == newest else first if first == last else f"{first}..{last}" for first, last in self.spans(bits)
        )

    def of(self, text: str) -> tuple[str, ...]:
        """Return the names in the set that a text describes, in the order of the text.

        Raises:
            UsageError: the text has an unknown name, a span that runs backwards, or a duplicate name.
        """
        known = self._known.get(text)
        if known is None:
            seen = 0
            results: list[str] = []
            for span in text.split(","):
                first, dots, last = span.partition("..")
                if first not in self._at or (last and last not in self._at):
                    raise UsageError(f"the span {span!r:.80} matches nothing in the list above", code="no-releases")
                start = self._at[first]
                end = start if not dots else self._at[last] if last else len(self.names) - 1
                if end < start:
                    raise UsageError(f"the span {span!r:.80} runs backwards", code="no-releases")
                members = (2 << end) - (1 << start)
                if seen & members:
                    raise UsageError(f"the set {text!r:.80} contains a duplicate", code="no-releases")
                seen |= members
                results += self.names[start : end + 1]
            known = self._known[text] = tuple(results)
        return known
