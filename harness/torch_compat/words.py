"""Phrases that every message and report words alike: suggestions for a mistyped name, and a number with its noun.

Imports nothing: errors are raised in every layer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["american", "count_of", "did_you_mean", "similar_names", "suggest"]

MOST: Final = 3
"""Maximum number of suggested names."""
CLOSE: Final = 0.6
"""The similarity from which a name is suggested, as in :func:`difflib.get_close_matches`."""
SHORTEST: Final = 3
"""The length from which a part of a name is enough."""


def american(text: str) -> str:
    """A text with the ids in it as people spell them: ``behavior-change`` for ``behaviour-change``, the id in JSON."""
    return text.replace("behaviour", "behavior").replace("modelled", "modeled")


def count_of(count: int, noun: str, plural: str = "") -> str:
    """A count with its noun: ``1 cell``, ``2 cells``.

    Parameters:
        plural: the plural of the noun, if it is not the noun with an ``s``.
    """
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"


def similar_names(name: str, known: Iterable[str], *, most: int = MOST, cutoff: float = CLOSE) -> list[str]:
    """The known names that a mistyped name may stand for: those with a similar spelling, then those that contain it."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for errors

    names = list(dict.fromkeys(known))
    results = get_close_matches(name, names, n=most, cutoff=cutoff)
    if len(name) >= SHORTEST:
        results += [item for item in names if name.lower() in item.lower() and item not in results]
    return results[:most]


def did_you_mean(names: Sequence[str]) -> str:
    """The question whether one of these names is meant; empty without names."""
    if not names:
        return ""
    *others, last = names[:MOST]
    return f"did you mean {', '.join(others)} or {last}?" if others else f"did you mean {last}?"


def suggest(name: str, known: Iterable[str], otherwise: str = "", *, cutoff: float = CLOSE) -> str:
    """The hint of an error about an unknown name.

    Parameters:
        otherwise: the hint if no known name is similar; by default, the known names, if they are few.
    """
    names = list(dict.fromkeys(known))
    few = f"known: {', '.join(names)}" if 0 < len(names) <= 12 else ""
    return did_you_mean(similar_names(name, names, cutoff=cutoff)) or otherwise or few
