"""Algorithms of GNU's C++ library, of which releases take what order equal elements come in: ``std::sort``, ``std::nth_element`` and
``std::partial_sort`` are not stable, but what they do is the same on each machine.

Each takes a list, which it changes, and a function that says whether one element goes before another. They are written down from what
libstdc++ does: quicksort with the median of three, at most sixteen elements by insertion, a heap where the depth is used up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Before = Callable[[int, int], bool]

INSERTED = 16
"""Up to how many elements are sorted by insertion alone."""

SELECTED = 3
"""Up to how many elements a selection sorts by insertion."""


def sort(items: list[int], end: int, before: Before) -> None:
    """Sort the first ``end`` elements, as ``std::sort``."""
    if end < 2:
        return
    _introsort(items, 0, end, 2 * (end.bit_length() - 1), before)
    if end > INSERTED:
        _insertion_sort(items, 0, INSERTED, before)
        for at in range(INSERTED, end):
            _insert(items, at, before)
    else:
        _insertion_sort(items, 0, end, before)


def nth_element(items: list[int], nth: int, before: Before) -> None:
    """Bring the element that belongs to place ``nth`` there, as ``std::nth_element``."""
    first, last = 0, len(items)
    if nth >= last:
        return
    depth = 2 * (last.bit_length() - 1)
    while last - first > SELECTED:
        if not depth:
            _heap_select(items, first, nth + 1, last, before)
            items[first], items[nth] = items[nth], items[first]
            return
        depth -= 1
        cut = _partition(items, first, last, before)
        if cut <= nth:
            first = cut
        else:
            last = cut
    _insertion_sort(items, first, last, before)


def partial_sort(items: list[int], middle: int, before: Before) -> None:
    """Bring the first ``middle`` elements to the front in order, as ``std::partial_sort``."""
    _heap_select(items, 0, middle, len(items), before)
    _sort_heap(items, 0, middle, before)


def _introsort(items: list[int], first: int, last: int, depth: int, before: Before) -> None:
    while last - first > INSERTED:
        if not depth:
            _heap_select(items, first, last, last, before)
            _sort_heap(items, first, last, before)
            return
        depth -= 1
        cut = _partition(items, first, last, before)
        _introsort(items, cut, last, depth, before)
        last = cut


def _partition(items: list[int], first: int, last: int, before: Before) -> int:
    """Around the median of the second, the middle and the last element, which is put in front; where the second part begins."""
    a, b, c = first + 1, first + (last - first) // 2, last - 1
    if before(items[a], items[b]):
        median = b if before(items[b], items[c]) else c if before(items[a], items[c]) else a
    else:
        median = a if before(items[a], items[c]) else c if before(items[b], items[c]) else b
    items[first], items[median] = items[median], items[first]
    pivot, low, high = items[first], first + 1, last
    while True:
        while before(items[low], pivot):
            low += 1
        high -= 1
        while before(pivot, items[high]):
            high -= 1
        if low >= high:
            return low
        items[low], items[high] = items[high], items[low]
        low += 1


def _insert(items: list[int], at: int, before: Before) -> None:
    one = items[at]
    while before(one, items[at - 1]):
        items[at] = items[at - 1]
        at -= 1
    items[at] = one


def _insertion_sort(items: list[int], first: int, last: int, before: Before) -> None:
    for at in range(first + 1, last):
        if before(items[at], items[first]):
            items[first : at + 1] = [items[at], *items[first:at]]
        else:
            _insert(items, at, before)


def _heap_select(items: list[int], first: int, middle: int, last: int, before: Before) -> None:
    length = middle - first
    for parent in range((length - 2) // 2, -1, -1):
        _sift(items, first, parent, length, items[first + parent], before)
    for at in range(middle, last):
        if before(items[at], items[first]):
            one, items[at] = items[at], items[first]
            _sift(items, first, 0, length, one, before)


def _sort_heap(items: list[int], first: int, last: int, before: Before) -> None:
    while last - first > 1:
        last -= 1
        one, items[last] = items[last], items[first]
        _sift(items, first, 0, last - first, one, before)


def _sift(items: list[int], first: int, hole: int, length: int, one: int, before: Before) -> None:
    """Let a hole sink to the bottom, then ``one`` rise from there."""
    top = hole
    child = hole
    while child < (length - 1) // 2:
        child = 2 * child + 2
        if before(items[first + child], items[first + child - 1]):
            child -= 1
        items[first + hole] = items[first + child]
        hole = child
    if length % 2 == 0 and child == (length - 2) // 2:
        child = 2 * child + 1
        items[first + hole] = items[first + child]
        hole = child
    while hole > top:
        parent = (hole - 1) // 2
        if not before(items[first + parent], one):
            break
        items[first + hole] = items[first + parent]
        hole = parent
    items[first + hole] = one
