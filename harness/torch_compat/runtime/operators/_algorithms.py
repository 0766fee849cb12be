"""Algorithms that determine the order of equal elements: ``std::sort``, ``std::nth_element`` and ``std::partial_sort`` of libstdc++, and
the quicksort of TH, the tensor library of releases up to 1.8. None of them is stable, but their results are the same on every machine.

Each function modifies a list in place and takes a comparison that tells whether an element goes before another. libstdc++ uses quicksort
with the median of three, insertion sort for at most sixteen elements, and a heap when the depth limit is reached.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_compat.runtime.limits import meter

if TYPE_CHECKING:
    from collections.abc import Callable

    Before = Callable[[int, int], bool]

LOOKED_AT = 500
"""The number of multiplications that take as long as a single element access in Python."""

INSERTED = 16
"""The maximum number of elements sorted only by insertion."""

SELECTED = 3
"""The maximum number of elements that a selection sorts by insertion."""

UNSPLIT = 10
"""The maximum size of a part that TH no longer splits; for the whole list, one more."""


def sort(items: list[int], end: int, before: Before) -> None:
    """Sort the first ``end`` elements like ``std::sort``."""
    if end < 2:
        return
    _introsort(items, 0, end, 2 * (end.bit_length() - 1), before)
    if end > INSERTED:
        _insertion_sort(items, 0, INSERTED, before)
        for at in range(INSERTED, end):
            _insert(items, at, before)
    else:
        _insertion_sort(items, 0, end, before)


def quicksort(items: list[int], before: Before) -> None:
    """Sort all elements like TH: Hoare's partition around the median of three, then an insertion sort of everything from the end."""
    parts = [(0, len(items) - 1)] if len(items) > UNSPLIT + 1 else []
    while parts:
        first, last = parts.pop()
        low, high = _split(items, first, last, before)
        parts += [(start, end) for start, end in ((first, high - 1), (low, last)) if end - start >= UNSPLIT]
    for at in range(len(items) - 2, -1, -1):
        item, to = items[at], at + 1
        while to < len(items) and before(items[to], item):
            items[to - 1] = items[to]
            to += 1
        items[to - 1] = item


def _split(items: list[int], first: int, last: int, before: Before) -> tuple[int, int]:
    """Partition around a pivot; returns the start of the second part and the position of the pivot."""
    middle = (first + last) // 2
    items[middle], items[first + 1] = items[first + 1], items[middle]
    for a, b in ((first + 1, last), (first, last), (first + 1, first)):
        if before(items[b], items[a]):
            items[a], items[b] = items[b], items[a]
    low, high, pivot = first + 1, last, items[first]
    while True:
        low += 1
        while before(items[low], pivot):
            low += 1
        high -= 1
        while before(pivot, items[high]):
            high -= 1
        if high < low:
            break
        items[low], items[high] = items[high], items[low]
    items[first], items[high] = items[high], items[first]
    return low, high


def quickselect(items: list[int], rank: int, before: Before) -> None:
    """Move the element with rank ``rank`` to its position, like TH, and like kthvalue of every release."""
    first, last = 0, len(items) - 1
    while last > first + 1:
        meter.work(LOOKED_AT * (last - first + 1))  # paid per pass: the number of passes depends on the order of the data
        low, high = _split(items, first, last, before)
        if high <= rank:
            first = low
        if high >= rank:
            last = high - 1
    if last == first + 1 and before(items[last], items[first]):
        items[first], items[last] = items[last], items[first]


def nth_element(items: list[int], nth: int, before: Before) -> None:
    """Move the element with rank ``nth`` to its position like ``std::nth_element``."""
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
    """Move the first ``middle`` elements of the sorted order to the front like ``std::partial_sort``."""
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
    """Partition around the median of the second, middle and last element, moved to the front; returns the start of the second part."""
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
    item = items[at]
    while before(item, items[at - 1]):
        items[at] = items[at - 1]
        at -= 1
    items[at] = item


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
            item, items[at] = items[at], items[first]
            _sift(items, first, 0, length, item, before)


def _sort_heap(items: list[int], first: int, last: int, before: Before) -> None:
    while last - first > 1:
        last -= 1
        item, items[last] = items[last], items[first]
        _sift(items, first, 0, last - first, item, before)


def _sift(items: list[int], first: int, hole: int, length: int, number: int, before: Before) -> None:
    """Sift a hole down to the bottom, then sift ``number`` up from there."""
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
        if not before(items[first + parent], number):
            break
        items[first + hole] = items[first + parent]
        hole = parent
    items[first + hole] = number
