"""Compare what two releases did, without judging it: where two results differ, in which way and by how much.

A *result* is what the worker reports of a program or value (``perform`` in harness/torch_compat/inside/worker.py): a load error,
a value, or the calls with their returned values, inputs afterwards and the state before and after. No tolerance is
applied here: judging decides whether a difference matters.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.arrays import elements
from torch_compat.errors import CorpusError
from torch_compat.values.dtypes import DTYPES
from torch_compat.values.form import kind_of, number
from torch_compat.values.normalise import brief
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = [
    "Comparison", "Difference", "Distances", "Said", "all_differences", "compare", "contents", "distances", "result_digest", "swapped", "tensor_array",
]  # fmt: skip

Said = tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
"""Locations, and the warnings issued there, each with its category and text."""
_SCALARS = {"float": ("float64", 1), "complex": ("complex128", 2)}
KEPT = 3  # differences written out per comparison; all are counted
NOT_ASKED = "__main__.NoSuchDtype"  # the worker could not build the inputs; the writer's program never raises this

_NUMPY = {row.name: f"<{row.numpy}" for row in DTYPES.values() if row.numpy and row.kind != "quantized"}


@dataclass(frozen=True)
class Difference:
    """One place where a result differs from the expected one.

    Attributes:
        kind: ``value``, ``dtype``, ``shape``, ``strides``, ``sharing``, ``type``, ``keys``, ``requires_grad`` or ``class``;
            ``raised`` where a value was expected, ``relaxed`` where an error was expected, ``error`` where a different error was.
        where: the place, as ``calls[2].first.value[0]``.
        dtype: element type of the expected tensor or "" for other values.
        facts: for ``value``: ``max_abs``, ``max_rel``, ``max_ulp``, ``frontier``, ``count`` of elements that differ, ``first``
            (flat index), ``expected`` and ``got`` there; for the rest ``expected`` and ``got``. Non-finite numbers as strings.
        content: everything that was expected and everything found instead, including parts that are not compared further: the
            values themselves where type, dtype, shape or length differ, the bytes in hex where only bits of numbers differ, the
            error or the turn of a call. Not recorded: what a reader computed is recorded as departures.
    """

    kind: str
    where: str
    dtype: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    content: tuple[Any, Any] = field(default=(None, None), compare=False, repr=False)

    def as_json(self) -> dict[str, Any]:
        """The recorded form."""
        shown: dict[str, Any] = {"kind": self.kind, "where": self.where}
        if self.dtype:
            shown["dtype"] = self.dtype
        return {**shown, **self.facts}

    @property
    def distances(self) -> list[Distances]:
        """How far each element is off, for floating-point numbers whose bits differ; otherwise empty."""
        if self.kind != "value" or not self.dtype:
            return []
        results: list[Distances] = []
        _Measure(results).apart(self.where, self.dtype, *map(bytes.fromhex, self.content))
        return results

    @staticmethod
    def from_json(data: dict[str, Any]) -> Difference:
        """From the recorded form."""
        facts = {key: value for key, value in data.items() if key not in {"kind", "where", "dtype"}}
        return Difference(data["kind"], data["where"], data.get("dtype", ""), facts)


@dataclass(frozen=True)
class Comparison:
    """What a comparison found.

    Attributes:
        result: ``same``, ``differs``, ``refused``, ``raised``, ``relaxed``, ``crashed`` or ``timed-out``: the most severe
            finding. A value that differs outweighs an error, because nobody notices it.
        extent: a summary of all differences, one ``{"kind", "dtype", "count", "frontier"}`` for each kind and dtype, which
            judging uses. ``frontier`` is None where no distance is defined, so that only equality counts. Entries of the kind
            ``error`` also have ``errors``: class and text of the expected error, then of the other.
        differences: the first few, most severe kinds first, for people to look at.
        count: the total number of differences.
        errors: the distinct errors raised where none was expected, in order.
        heard: whether errors were compared with errors, and the warnings of calls with the expected ones. Also False if
            nothing was called, so that there was nothing to compare.
        said: the warnings of calls that differ from the expected ones: ``(where, ((category, text), ...))``.
    """

    result: str
    differences: tuple[Difference, ...] = ()
    count: int = 0
    extent: tuple[dict[str, Any], ...] = ()
    errors: tuple[dict[str, str], ...] = ()
    heard: bool = False
    said: Said = ()


def compare(expected: dict[str, Any], got: dict[str, Any], *, hear: bool = False) -> Comparison:
    """Compare a result with the expected one. Both are results of the worker, or ``{"crashed": …}``, ``{"timed-out": …}``.

    Parameters:
        hear: also compare errors with errors, by class and unmodified text, and the warnings of calls. Otherwise any two errors are
            equal: a reader that is not a release words its errors differently.
    """
    for ending in ("crashed", "timed-out"):
        if ending in got:
            alike = ending in expected and _death(got[ending]) == _death(expected[ending])
            return Comparison("same") if alike else Comparison(ending)
    if "error" in got:  # also if the writer's program died: it did not die from being loaded
        if "error" not in expected:
            return Comparison("refused", errors=(got["error"],))
        other = _other_errors(expected["error"], got["error"], "load") if hear else []
        return Comparison("differs" if other else "same", tuple(other), len(other), _extent(other), heard=hear)
    for ending in ("crashed", "timed-out"):
        if ending in expected:
            return Comparison("relaxed", (Difference("relaxed", "program", facts={"expected": ending}),), 1)
    if "error" in expected:
        return Comparison("relaxed", (Difference("relaxed", "load"),), 1)

    outcome, errors = all_differences(expected, got)
    heard = hear and "calls" in expected
    message = _hear(expected, got, outcome) if heard else ()
    distinct = list({json.dumps(error, sort_keys=True): error for error in errors}.values())
    kinds = {difference.kind for difference in outcome}
    if kinds - {"raised", "relaxed"}:
        result = "differs"
    elif "raised" in kinds:
        result = "raised"
    else:
        result = "relaxed" if kinds else "same"
    outcome.sort(key=_mildness)
    return Comparison(result, tuple(outcome[:KEPT]), len(outcome), _extent(outcome), tuple(distinct), heard, message)


def swapped(result: Any) -> Any:
    """A result with the bytes of every element of its tensors reversed, as read in the opposite byte order."""
    if isinstance(result, list):
        return [swapped(item) for item in result]
    if not isinstance(result, dict):
        return result
    if "bytes" not in result or "dtype" not in result:
        return {key: swapped(value) for key, value in result.items()}
    row = DTYPES[result["dtype"]]
    size = row.size // (2 if row.kind == "complex" else 1)
    data = base64.b64decode(result["bytes"])
    turned = b"".join(data[at : at + size][::-1] for at in range(0, len(data), size))
    return {**result, "bytes": base64.b64encode(turned).decode()}


def _hear(expected: dict[str, Any], got: dict[str, Any], value: list[Difference]) -> Said:
    """Add errors of calls that differ from the expected ones to ``value``; return warnings of calls that do."""
    messages = []
    for index, (wanted, given) in enumerate(zip(expected["calls"], got["calls"], strict=True)):
        for turn in ("first", "second"):
            where, item, other = f"calls[{index}].{turn}", wanted[turn], given[turn]
            if "error" in item and "error" in other and other["error"]["type"] != NOT_ASKED:
                value.extend(_other_errors(item["error"], other["error"], where))
            warned = [tuple(map(tuple, side.get("warnings", ()))) for side in (item, other)]
            if set(warned[0]) != set(warned[1]):
                messages.append((where, warned[1]))
    return tuple(messages)


def _other_errors(wanted: dict[str, str], given: dict[str, str], where: str) -> list[Difference]:
    pair = [{"type": item["type"], "message": brief(item["message"])} for item in (wanted, given)]  # goldens may predate brief
    return [] if pair[0] == pair[1] else [Difference("error", where, facts={"expected": pair[0], "got": pair[1]})]


def all_differences(expected: dict[str, Any], got: dict[str, Any]) -> tuple[list[Difference], list[dict[str, str]]]:
    """Every difference between two results of loaded archives, in their order, and every error where none was expected."""
    results: list[Difference] = []
    errors: list[dict[str, str]] = []
    _compare_results(expected, got, lambda: _Walk(results), results, errors)
    return results, errors


def contents(expected: dict[str, Any], got: dict[str, Any]) -> list[Difference]:
    """The same differences, but without measuring how far values are off."""
    results: list[Difference] = []
    _compare_results(expected, got, lambda: _Unmeasured(results), results, [])
    return results


@dataclass(frozen=True)
class Distances:
    """How far the floating-point numbers of one tensor, or one number, are from the expected ones, where bits differ.

    Attributes:
        where, dtype: as in :class:`Difference`.
        gap: absolute distances.
        relative: absolute distances divided by the larger magnitude: 1 where one of the two is zero, infinite if only one is NaN.
        steps: number of representable values in between.
    """

    where: str
    dtype: str
    gap: np.ndarray[Any, np.dtype[np.float64]]
    relative: np.ndarray[Any, np.dtype[np.float64]]
    steps: np.ndarray[Any, np.dtype[np.float64]]


def distances(expected: dict[str, Any], got: dict[str, Any]) -> list[Distances]:
    """Distances of every element, where :func:`compare` reports the maximum and the frontier. Both results have values or calls."""
    results: list[Distances] = []
    _compare_results(expected, got, lambda: _Measure(results), [], [])
    return results


def _compare_results(
    expected: dict[str, Any],
    got: dict[str, Any],
    walk: Callable[[], _Walk],
    value: list[Difference],
    errors: list[dict[str, str]],
) -> None:
    """Walk through all values of two results that both ended normally. Load errors have no values; :func:`compare` compares these."""
    if "error" in expected and "error" in got:
        return
    if "value" in expected:
        walk().compare(expected["value"], got["value"], "value")
        return
    # A reader may be unable to report the state (the lite interpreter); then there is nothing to compare.
    for part in ("state", "state_after"):
        if expected[part] is not None and got[part] is not None:
            walk().compare(expected[part], got[part], part)
    for index, (wanted, given) in enumerate(zip(expected["calls"], got["calls"], strict=True)):
        for turn in ("first", "second"):
            _compare_call(wanted[turn], given[turn], f"calls[{index}].{turn}", walk, value, errors)


def _death(ending: dict[str, Any]) -> tuple[Any, ...]:
    """Where and why a program died; its output is ignored."""
    return tuple(ending.get(key) for key in ("stage", "signal", "exit"))


def _mildness(difference: Difference) -> tuple[int, float]:
    """A sort key, most severe first: different type, shape or set of keys; then values, by how far they are off; then errors.

    A value is far off only if both its absolute distance and its distance in ULP are large.
    """
    if difference.kind in {"raised", "relaxed", "strides", "error"}:
        return 2, 0.0
    if difference.kind != "value":
        return 0, 0.0
    points = difference.facts.get("frontier")
    far = math.inf if points is None else max((min(float(gap), float(steps)) for gap, steps in points), default=0.0)
    return 1, -far


def _extent(value: list[Difference]) -> tuple[dict[str, Any], ...]:
    groups: dict[tuple[str, str], list[Difference]] = {}
    for difference in value:
        groups.setdefault((difference.kind, difference.dtype), []).append(difference)
    extent = []
    for (kind, dtype), members in sorted(groups.items()):
        frontiers = [member.facts.get("frontier") for member in members]
        points = (
            None
            if any(frontier is None for frontier in frontiers)
            else [point for frontier in frontiers for point in frontier or ()]
        )
        frontier = None if points is None else [[_plain(gap), _plain(steps)] for gap, steps in _frontier(points)]
        entry = {"kind": kind, "dtype": dtype, "count": len(members), "frontier": frontier}
        if kind == "error":
            pairs = [
                [member.facts[side][part] for side in ("expected", "got") for part in ("type", "message")] for member in members
            ]
            entry["errors"] = [list(pair) for pair in dict.fromkeys(map(tuple, pairs))]
        extent.append(entry)
    return tuple(extent)


def _frontier(points: Iterable[Iterable[Any]]) -> list[tuple[float, float]]:
    """The points that no other point exceeds in both coordinates, by descending first coordinate."""
    kept: list[tuple[float, float]] = []
    for gap, steps in sorted(((float(gap), float(steps)) for gap, steps in points), reverse=True):
        if not kept or steps > kept[-1][1]:
            kept.append((gap, steps))
    return kept


def _compare_call(
    wanted: dict[str, Any],
    given: dict[str, Any],
    where: str,
    walk: Callable[[], _Walk],
    findings: list[Difference],
    errors: list[dict[str, str]],
) -> None:
    if "error" in wanted and "error" in given and (given["error"]["type"] != NOT_ASKED or wanted["error"]["type"] == NOT_ASKED):
        return
    if "error" in given:
        errors.append(given["error"])
        findings.append(Difference("raised", where, content=(None, given["error"])))
    elif "error" in wanted:
        findings.append(Difference("relaxed", where, content=(wanted["error"], given)))
    else:
        both = walk()
        both.compare(wanted["value"], given["value"], f"{where}.value")
        both.compare(wanted["inputs"], given["inputs"], f"{where}.inputs")


class _Walk:
    """Walks two neutral values side by side; storages must be shared in the same places."""

    def __init__(self, value: list[Difference]) -> None:
        self.found = value
        self.storages: dict[int, int] = {}
        self.taken: set[int] = set()

    def note(
        self, kind: str, where: str, expected: object, got: object, dtype: str = "", content: tuple[Any, Any] | None = None
    ) -> None:
        """Record a difference in anything but bits; ``content`` is what is not compared further."""
        self.found.append(Difference(kind, where, dtype, {"expected": expected, "got": got}, content or (expected, got)))

    def apart(self, where: str, dtype: str, expected: bytes, got: bytes) -> None:
        """Record two sets of elements of the same dtype, some of which have different bits."""
        content = expected.hex(), got.hex()
        self.found.append(Difference("value", where, dtype, _distance(dtype, expected, got), content))

    def compare(self, a: Any, b: Any, where: str) -> None:
        kind_a, kind_b = kind_of(a), kind_of(b)
        if kind_a != kind_b:
            self.note("type", where, kind_a, kind_b, content=(a, b))
        elif kind_a == "tensor":
            self._tensors(a["tensor"], b["tensor"], where)
        elif kind_a == "list":
            self._items(a, b, where)
        elif kind_a == "tuple":
            self._items(a["tuple"], b["tuple"], where)
        elif kind_a == "dict":
            self._dicts(a["dict"], b["dict"], where)
        elif kind_a == "object":
            if a["object"]["type"] != b["object"]["type"]:
                self.note("type", where, a["object"]["type"], b["object"]["type"])
            self.compare(a["object"]["state"], b["object"]["state"], where)
        elif kind_a in _SCALARS:
            self._scalars(a, b, kind_a, where)
        elif a != b:
            self.note("value", where, a, b)

    def _scalars(self, a: dict[str, Any], b: dict[str, Any], kind: str, where: str) -> None:
        """Compare Python floats and complex numbers as 64-bit numbers (each part): the sign of a zero counts, a tolerance applies."""
        dtype, parts = _SCALARS[kind]
        x, y = (struct.pack(f"<{parts}d", *map(float, side[kind] if parts > 1 else [side[kind]])) for side in (a, b))
        if x != y:
            self.apart(where, dtype, x, y)

    def _items(self, a: list[Any], b: list[Any], where: str) -> None:
        if len(a) != len(b):
            self.note("keys", where, len(a), len(b), content=(a, b))
            return
        for index, (x, y) in enumerate(zip(a, b, strict=True)):
            self.compare(x, y, f"{where}[{index}]")

    def _dicts(self, a: list[Any], b: list[Any], where: str) -> None:
        keys_a, keys_b = [json.dumps(key) for key, _ in a], [json.dumps(key) for key, _ in b]
        if keys_a != keys_b:
            self.note("keys", where, [key for key, _ in a], [key for key, _ in b], content=(a, b))
            return
        for (key, x), (_, y) in zip(a, b, strict=True):
            self.compare(x, y, f"{where}[{key!r}]" if isinstance(key, str | int) else f"{where}[…]")

    def _tensors(self, a: dict[str, Any], b: dict[str, Any], where: str) -> None:
        for kind in ("dtype", "shape"):
            if a[kind] != b[kind]:
                self.note(kind, where, a[kind], b[kind], a["dtype"], (a, b))
                return
        for kind, default in (("strides", None), ("class", "torch.Tensor"), ("requires_grad", False)):
            x, y = a.get(kind, default), b.get(kind, default)
            if x != y:
                self.note(kind, where, x, y, a["dtype"])
        if not self._same_sharing(a, b):
            self.note("sharing", where, a.get("storage"), b.get("storage"), a["dtype"])
        if a["bytes"] != b["bytes"]:
            self.apart(where, a["dtype"], base64.b64decode(a["bytes"]), base64.b64decode(b["bytes"]))

    def _same_sharing(self, a: dict[str, Any], b: dict[str, Any]) -> bool:
        """Whether the storages of both sides correspond one to one. Offsets into a storage are not compared."""
        x, y = a.get("storage"), b.get("storage")
        if x is None or y is None:
            return True  # an empty storage has no address, so nothing can share it
        if x in self.storages:
            return bool(self.storages[x] == y)
        if y in self.taken:
            return False
        self.storages[x] = y
        self.taken.add(y)
        return True


class _Unmeasured(_Walk):
    """The same walk without measuring elements that are off."""

    def apart(self, where: str, dtype: str, expected: bytes, got: bytes) -> None:
        self.found.append(Difference("value", where, dtype, content=(expected.hex(), got.hex())))


class _Measure(_Walk):
    """The same walk, recording how far each element is off."""

    def __init__(self, measured: list[Distances]) -> None:
        super().__init__([])
        self.measured = measured

    def apart(self, where: str, dtype: str, expected: bytes, got: bytes) -> None:
        x, y = tensor_array(dtype, expected), tensor_array(dtype, got)
        if x.dtype.kind in "fc":
            self.measured.append(Distances(where, dtype, *_elementwise(x, y, dtype)))


def tensor_array(dtype: str, data: bytes) -> np.ndarray[Any, Any]:
    """The flat elements of a tensor: bfloat16 widened to float32, dtypes that numpy lacks as raw bytes.

    Raises:
        CorpusError: the bytes are not a whole number of elements.
    """
    result = elements(data, np.dtype("<u2" if dtype == "bfloat16" else _NUMPY.get(dtype, "|u1")))
    if result.nbytes != len(data):
        raise CorpusError(
            f"a tensor of {dtype} has {count_of(len(data), 'byte')}, expected a multiple of {result.itemsize}", code="bad-tensor"
        )
    return (result.astype("<u4") << np.uint32(16)).view("<f4") if dtype == "bfloat16" else result


def _distance(dtype: str, expected: bytes, got: bytes) -> dict[str, Any]:
    x, y = tensor_array(dtype, expected), tensor_array(dtype, got)
    raw_x, raw_y = (elements(side, np.dtype(np.uint8)).reshape(len(x), -1) for side in (expected, got))
    unequal = np.flatnonzero((raw_x != raw_y).any(axis=1))
    first = int(unequal[0])
    facts: dict[str, Any] = {"count": len(unequal), "first": first, "expected": _plain(x[first]), "got": _plain(y[first])}
    if x.dtype.kind in "fc":
        facts.update(_float_distance(x[unequal], y[unequal], dtype))
    elif dtype in _NUMPY:
        facts["max_abs"] = max(abs(int(p) - int(q)) for p, q in zip(x[unequal], y[unequal], strict=True))
    return facts


def _float_distance(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], dtype: str) -> dict[str, Any]:
    """Distances of elements whose bits differ. A NaN is infinitely far from a number, and equal to another NaN.

    ``frontier`` lists ``[absolute, ULP]`` of the elements that no other element exceeds in both: a tolerance of the form
    "absolute or ULP" holds for all elements if and only if it holds for these.
    """
    gap, _, steps = _elementwise(x, y, dtype)
    with np.errstate(all="ignore"):
        plain = x.view(f"<f{x.dtype.itemsize // 2}") if x.dtype.kind == "c" else x
        other = y.view(plain.dtype) if x.dtype.kind == "c" else y
        size = np.abs(plain[~(np.isnan(plain) & np.isnan(other))].astype(np.float64))
        relative = np.where(gap == 0, 0.0, gap / size)
    relative[np.isnan(relative)] = np.inf
    return {
        "max_abs": _plain(gap.max(initial=0.0)),
        "max_rel": _plain(relative.max(initial=0.0)),
        "max_ulp": _plain(steps.max(initial=0.0)),
        "frontier": [[_plain(p), _plain(q)] for p, q in _frontier(zip(gap, steps, strict=True))],
    }


def _elementwise(
    x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], dtype: str
) -> tuple[np.ndarray[Any, np.dtype[np.float64]], ...]:
    """Absolute, relative and ULP distances of elements that are not both NaN; a complex element counts as its two parts."""
    if x.dtype.kind == "c":
        x, y = (side.view(f"<f{side.dtype.itemsize // 2}") for side in (x, y))
    both_nan = np.isnan(x) & np.isnan(y)
    x, y = x[~both_nan], y[~both_nan]
    with np.errstate(all="ignore"):  # also where a signaling NaN is widened
        a, b = x.astype(np.float64), y.astype(np.float64)
        gap = np.where(a == b, 0.0, np.abs(a - b))
        gap[np.isnan(gap)] = np.inf  # a NaN on one side only
        relative = np.where(gap == 0, 0.0, gap / np.maximum(np.abs(a), np.abs(b)))
    relative[np.isnan(relative)] = np.inf
    steps = _ulp(x, y, dtype)
    steps[~(np.isfinite(a) & np.isfinite(b)) & (gap > 0)] = np.inf
    return gap, relative, steps


def _ulp(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The number of representable values between elements; both zeros are one value."""
    shift = 16 if dtype == "bfloat16" else 0
    unsigned = f"<u{x.dtype.itemsize}"
    top = 1 << (8 * x.dtype.itemsize - 1)

    def ordered(side: np.ndarray[Any, Any]) -> list[int]:
        bits = [int(value) for value in np.ascontiguousarray(side).view(unsigned)]
        return [(top - value if value >= top else value) >> shift for value in bits]

    return np.array([float(abs(p - q)) for p, q in zip(ordered(x), ordered(y), strict=True)], dtype=np.float64)


def _plain(value: Any) -> Any:
    """A JSON value for a numpy or Python number; non-finite ones as strings."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, complex):
        return [_plain(value.real), _plain(value.imag)]
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) < 2**53 and math.copysign(1, value) > 0
        return int(value) if whole else number(value)
    return value


def result_digest(result: dict[str, Any]) -> str:
    """A short hash of what a result computes: values, dtypes, sharing and whether it raised, but not texts of errors or warnings."""
    return hashlib.sha256(json.dumps(list(_essence(result)), sort_keys=True).encode()).hexdigest()[:16]


def _essence(value: Any, keep: Callable[[str], bool] = lambda key: key not in {"warnings", "error"}) -> Iterator[Any]:
    if isinstance(value, dict):
        for key in sorted(value):
            yield key
            if keep(key):
                yield list(_essence(value[key], keep))
    elif isinstance(value, list):
        for item in value:
            yield list(_essence(item, keep))
    else:
        yield value
