"""Comparing results: every kind of difference, the size of deviations, and that tolerances consider all of them."""

from __future__ import annotations

import base64
import copy
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from torch_compat.values.compare import (
    KEPT,
    Comparison,
    Difference,
    compare,
    contents,
    distances,
    result_digest,
    swapped,
    tensor_array,
)

Value = Any
NUMPY = {"float16": "<f2", "float32": "<f4", "float64": "<f8", "complex64": "<c8", "complex128": "<c16"}
COMPONENT = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "complex64": 4, "complex128": 8}  # bytes of a number
ERROR = {"type": "builtins.RuntimeError", "message": "no"}


def tensor(values: Any, dtype: str = "float32", **more: Any) -> dict[str, Any]:
    data = np.asarray(values, dtype=NUMPY.get(dtype, dtype)).tobytes() if not isinstance(values, bytes) else values
    shape = [len(data) // np.dtype(NUMPY.get(dtype, dtype)).itemsize] if not isinstance(values, bytes) else [1]
    return {"tensor": {"dtype": dtype, "shape": shape, "strides": [1], "bytes": base64.b64encode(data).decode(), **more}}


def of_value(a: Value, b: Value) -> Comparison:
    return compare({"value": a}, {"value": b})


def turn(value: Value = None, inputs: Value = None) -> dict[str, Any]:
    return {"value": value, "inputs": inputs if inputs is not None else []}


def program(*turns: dict[str, Any], state: Value = None, state_after: Value = None) -> dict[str, Any]:
    return {
        "state": state,
        "state_after": state_after,
        "calls": [{"first": item, "second": copy.deepcopy(item)} for item in turns],
    }


def kinds(comparison: Comparison) -> list[str]:
    return [difference.kind for difference in comparison.differences]


# ----------------------------------------------------------------------------------------------------- kinds of endings


CRASH = {"crashed": {"signal": "SIGSEGV", "stage": "call", "said": "once"}}
EXIT = {"crashed": {"exit": 3, "stage": "call", "said": ""}}
SLOW = {"timed-out": {"stage": "call", "timeout_s": 10}}
REFUSAL = {"error": ERROR}
LOADED = {"value": 1}


@pytest.mark.parametrize(
    ("expected", "got", "result"),
    [
        (LOADED, LOADED, "same"),
        (LOADED, REFUSAL, "refused"),
        (LOADED, CRASH, "crashed"),
        (LOADED, SLOW, "timed-out"),
        (REFUSAL, REFUSAL, "same"),
        (REFUSAL, {"error": {"type": "other", "message": "other"}}, "same"),
        (REFUSAL, LOADED, "relaxed"),
        (REFUSAL, CRASH, "crashed"),
        (REFUSAL, SLOW, "timed-out"),
        (CRASH, LOADED, "relaxed"),
        (CRASH, REFUSAL, "refused"),
        (CRASH, {"crashed": {**CRASH["crashed"], "said": "twice"}}, "same"),
        (CRASH, {"crashed": {**CRASH["crashed"], "signal": "SIGABRT"}}, "crashed"),
        (CRASH, {"crashed": {**CRASH["crashed"], "stage": "load"}}, "crashed"),
        (CRASH, EXIT, "crashed"),
        (CRASH, SLOW, "timed-out"),
        (EXIT, {"crashed": {**EXIT["crashed"], "exit": 4}}, "crashed"),
        (SLOW, SLOW, "same"),
        (SLOW, LOADED, "relaxed"),
        (SLOW, REFUSAL, "refused"),
        (SLOW, CRASH, "crashed"),
    ],
)
def test_endings(expected: dict[str, Any], got: dict[str, Any], result: str) -> None:
    outcome = compare(expected, got)
    assert outcome.result == result
    assert outcome.errors == ((got["error"],) if result == "refused" else ())
    assert outcome.count == (result == "relaxed")


# --------------------------------------------------------------------------------------------------- kinds of difference


@pytest.mark.parametrize(
    ("a", "b", "kind", "where"),
    [
        (1, 2, "value", "value"),
        (1, True, "type", "value"),
        (1, None, "type", "value"),
        ("a", "b", "value", "value"),
        ({"float": 1.5}, {"float": 1.25}, "value", "value"),
        ({"float": 1.0}, 1, "type", "value"),
        ({"float": 0.0}, {"float": "nan"}, "value", "value"),
        ({"dtype": "float32"}, {"dtype": "float64"}, "value", "value"),
        ([1, 2], [1, 3], "value", "value[1]"),
        ([1, 2], [1], "keys", "value"),
        ([1], {"tuple": [1]}, "type", "value"),
        ({"tuple": [1, [2]]}, {"tuple": [1, [3]]}, "value", "value[1][0]"),
        ({"dict": [["a", 1]]}, {"dict": [["a", 2]]}, "value", "value['a']"),
        ({"dict": [["a", 1]]}, {"dict": [["b", 1]]}, "keys", "value"),
        ({"dict": [["a", 1], ["b", 2]]}, {"dict": [["b", 2], ["a", 1]]}, "keys", "value"),
        ({"dict": [[{"tuple": [1]}, 1]]}, {"dict": [[{"tuple": [1]}, 2]]}, "value", "value[…]"),
        ({"object": {"type": "A", "state": 1}}, {"object": {"type": "B", "state": 1}}, "type", "value"),
        ({"object": {"type": "A", "state": 1}}, {"object": {"type": "A", "state": 2}}, "value", "value"),
        (tensor([1]), tensor([2]), "value", "value"),
        (tensor([1]), tensor([1], "float64"), "dtype", "value"),
        (tensor([1, 2]), tensor([1, 2], shape=[1, 2]), "shape", "value"),
        (tensor([1, 2]), tensor([1, 2], strides=[2]), "strides", "value"),
        (tensor([1]), tensor([1], **{"class": "torch.nn.Parameter"}), "class", "value"),
        (tensor([1]), tensor([1], requires_grad=True), "requires_grad", "value"),
        (tensor([1]), 1, "type", "value"),
    ],
)
def test_one_difference(a: Value, b: Value, kind: str, where: str) -> None:
    for item, other in ((a, b), (b, a)):
        result = of_value(item, other)
        assert result.result == "differs"
        assert [(difference.kind, difference.where) for difference in result.differences] == [(kind, where)]
        assert Difference.from_json(result.differences[0].as_json()) == result.differences[0]
        assert result.extent[0]["kind"] == kind
        assert result.count == 1


@pytest.mark.parametrize(
    "value",
    [
        None, True, 3, "x", {"float": "nan"}, {"float": "-inf"}, {"complex": [1.0, "nan"]}, [], {"dict": []},
        tensor([math.nan, -0.0, math.inf]), tensor([]), tensor([True], "bool"), tensor(b"\x01", "qint8"),
        {"object": {"type": "A", "state": {"dict": [["x", tensor([1])]]}}},
    ],
)  # fmt: skip
def test_a_value_is_the_same_as_itself(value: Value) -> None:
    assert of_value(value, copy.deepcopy(value)) == Comparison("same")


def test_defaults_of_tensors_may_be_left_out() -> None:
    plain = tensor([1])
    spelt = tensor([1], requires_grad=False, **{"class": "torch.Tensor"})
    assert of_value(plain, spelt).result == of_value(spelt, plain).result == "same"


def test_what_differs_outweighs_what_raised_and_that_what_relaxed() -> None:
    fine, failed = turn(1), {"error": ERROR}
    assert compare(program(fine), program(failed)).result == "raised"
    assert compare(program(failed), program(fine)).result == "relaxed"
    assert compare(program(failed), program(failed)).result == "same"
    assert compare(program(failed, fine), program(fine, failed)).result == "raised"
    result = compare(program(failed, fine, turn(1)), program(fine, failed, turn(2)))
    assert result.result == "differs"
    assert result.errors == (ERROR,)
    assert result.count == 6
    assert kinds(result)[:2] == ["value", "value"]
    assert [(item["kind"], item["count"]) for item in result.extent] == [("raised", 2), ("relaxed", 2), ("value", 2)]


def test_errors_are_compared_with_errors_where_that_is_asked() -> None:
    other = {"error": {**ERROR, "message": "another"}}
    assert compare(program({"error": ERROR}), program(other)) == Comparison("same")
    result = compare(program({"error": ERROR}), program(other), hear=True)
    assert (result.result, result.count, result.heard) == ("differs", 2, True)
    assert {difference.kind for difference in result.differences} == {"error"}
    (extent,) = result.extent
    assert extent["errors"] == [[ERROR["type"], ERROR["message"], ERROR["type"], "another"]]
    assert compare(program({"error": ERROR}), program({"error": ERROR}), hear=True) == Comparison("same", heard=True)
    assert compare({"error": ERROR}, {"error": other["error"]}, hear=True).result == "differs"
    assert compare({"value": 1}, {"value": 1}, hear=True) == Comparison("same")  # nothing was called


@pytest.mark.parametrize(
    ("dtype", "data", "turned"),
    [("int16", b"ab", b"ba"), ("bool", b"ab", b"ab"), ("complex64", b"abcdefgh", b"dcbahgfe"), ("bfloat16", b"abcd", b"badc")],
)
def test_elements_are_swapped_by_their_parts(dtype: str, data: bytes, turned: bytes) -> None:
    assert swapped({"value": [tensor(data, dtype)]}) == {"value": [tensor(turned, dtype)]}


def test_warnings_of_calls_are_told_where_they_are_others() -> None:
    loud = {**turn(1), "warnings": [["UserWarning", "so"]]}
    result = compare(program(turn(1)), program(loud), hear=True)
    assert (result.result, result.said) == (
        "same",
        tuple((f"calls[0].{name}", (("UserWarning", "so"),)) for name in ("first", "second")),
    )
    assert compare(program(loud), program(turn(1)), hear=True).said[0] == ("calls[0].first", ())
    assert compare(program(loud), program(loud), hear=True).said == ()
    assert compare(program(turn(1)), program(loud)).said == ()


@pytest.mark.parametrize("hear", [True, False])
def test_a_reader_that_could_not_even_make_the_inputs_did_not_raise_as_the_writer(hear: bool) -> None:
    lacking = {"error": {**ERROR, "type": "__main__.NoSuchDtype"}}
    result = compare(program({"error": ERROR}), program(lacking), hear=hear)
    assert (result.result, result.errors) == ("raised", (lacking["error"],))
    assert compare(program(lacking), program(lacking), hear=hear).result == "same"  # of two such readers neither raised


@pytest.mark.parametrize("part", ["state", "state_after"])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_state_that_is_empty_is_not_one_that_is_unknown(part: str, swapped: bool) -> None:
    sides = [program(turn(1), **{part: {"dict": entries}}) for entries in ([], [["w", 1]])]
    result = compare(*(reversed(sides) if swapped else sides))
    assert [difference.kind for difference in result.differences] == ["keys"]


@pytest.mark.parametrize("part", ["state", "state_after"])
def test_state_counts_where_both_sides_know_it(part: str) -> None:
    with_state = [program(turn(1), **{part: {"dict": [["w", value]]}}) for value in (1, 2)]
    assert compare(*with_state).differences[0].where == f"{part}['w']"
    assert compare(with_state[0], program(turn(1))).result == "same"
    assert compare(program(turn(1)), with_state[0]).result == "same"


@pytest.mark.parametrize("which", ["first", "second"])
@pytest.mark.parametrize("part", ["value", "inputs"])
def test_every_part_of_a_call_counts(which: str, part: str) -> None:
    got = program(turn(tensor([1]), [tensor([1])]))
    expected = copy.deepcopy(got)
    got["calls"][0][which][part] = [tensor([2])] if part == "inputs" else tensor([2])
    where = f"calls[0].{which}.{part}" + ("[0]" if part == "inputs" else "")
    assert [difference.where for difference in compare(expected, got).differences] == [where]


def test_all_differences_are_counted_and_the_gravest_are_shown() -> None:
    a, b = [list(map(tensor, ([float(value)] for value in range(20)))) for _ in range(2)]
    for index in range(10):
        b[index] = tensor([index + 2.0**-index])
    b[15] = tensor([15], "float64")
    result = of_value(a, b)
    assert result.count == 11
    assert len(result.differences) == KEPT
    assert kinds(result) == ["dtype", *["value"] * (KEPT - 1)]
    assert [difference.facts["max_abs"] for difference in result.differences[1:]] == [1, 0.5, 0.25, 0.125, 0.0625][: KEPT - 1]
    assert {item["kind"]: item["count"] for item in result.extent} == {"dtype": 1, "value": 10}


# --------------------------------------------------------------------------------------------------------------- sharing


def stored(*storages: int | None) -> list[dict[str, Any]]:
    return [tensor([1], storage=storage) if storage is not None else tensor([1]) for storage in storages]


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ((0, 0), (0, 0), True),
        ((0, 1), (0, 1), True),
        ((0, 1), (1, 0), True),
        ((0, 0), (5, 5), True),
        ((0, 0), (0, 1), False),
        ((0, 1), (0, 0), False),
        ((0, 1, 0), (0, 1, 1), False),
        ((0, 1, 2), (0, 1, 0), False),
        ((None, 0), (None, 0), True),
        ((None, 0), (1, 0), True),
        ((1, 0), (None, 0), True),
    ],
)
def test_sharing(a: tuple[int | None, ...], b: tuple[int | None, ...], same: bool) -> None:
    result = of_value(stored(*a), stored(*b))
    assert result.result == ("same" if same else "differs")
    assert set(kinds(result)) <= {"sharing"}


def test_sharing_between_a_result_and_an_input_counts() -> None:
    shared = program(turn(stored(0), stored(0)))
    apart = program(turn(stored(0), stored(1)))
    assert kinds(compare(shared, apart)) == ["sharing", "sharing"]  # in both turns of the call


@settings(deadline=None)
@given(st.lists(st.integers(0, 3), max_size=6), st.permutations(range(4)))
def test_names_of_storages_mean_nothing(storages: list[int], names: list[int]) -> None:
    assert of_value(stored(*storages), stored(*(names[storage] for storage in storages))).result == "same"


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=6))
def test_sharing_is_the_same_partition(pairs: list[tuple[int, int]]) -> None:
    one_to_one = len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(set(pairs))
    result = of_value(stored(*(a for a, _ in pairs)), stored(*(b for _, b in pairs)))
    assert (result.result == "same") is one_to_one


# ------------------------------------------------------------------------------------------------------------- distances


def facts(a: Any, b: Any, dtype: str = "float32") -> dict[str, Any]:
    (difference,) = of_value(tensor(a, dtype), tensor(b, dtype)).differences
    return difference.facts


@pytest.mark.parametrize(
    ("a", "b", "gap", "relative", "steps"),
    [
        ([1.0], [1.0 + 2**-23], 2**-23, 2**-23, 1),
        ([0.0], [-0.0], 0, 0, 0),
        ([0.0], [2**-149], 2**-149, "inf", 1),
        ([-(2**-149)], [2**-149], 2**-148, 2, 2),
        ([math.inf], [1.0], "inf", "inf", "inf"),
        ([math.inf], [-math.inf], "inf", "inf", "inf"),
        ([math.nan], [1.0], "inf", "inf", "inf"),
        ([1.0], [math.nan], "inf", "inf", "inf"),
        ([math.nan], [math.inf], "inf", "inf", "inf"),
        ([2.0, 4.0, 8.0], [2.0, 5.0, 8.0], 1, 0.25, 2**21),
    ],
)
def test_how_far_values_are_off(a: list[float], b: list[float], gap: Any, relative: Any, steps: Any) -> None:
    result = facts(a, b)
    assert (result["max_abs"], result["max_rel"], result["max_ulp"]) == (gap, relative, steps)


@pytest.mark.parametrize(
    ("a", "b", "relative"),
    [(1.0, 4.0, 0.75), (4.0, 1.0, 0.75), (-4.0, 1.0, 1.25), (0.0, 4.0, 1), (4.0, 0.0, 1), (4.0, math.nan, math.inf)],
)
def test_a_relative_distance_is_a_share_of_the_larger_magnitude(a: float, b: float, relative: float) -> None:
    (distance,) = distances({"value": tensor([a])}, {"value": tensor([b])})
    assert distance.relative.tolist() == [relative]


def test_a_nan_of_another_payload_is_no_distance_but_other_bits() -> None:
    odd = np.array([0x7FC00001], "<u4").view("<f4")
    result = facts(odd, [math.nan])
    assert (result["count"], result["max_abs"], result["max_ulp"], result["frontier"]) == (1, 0, 0, [])


def test_the_first_difference_is_named() -> None:
    result = facts([1, 2, 3, 4], [1, 5, 3, math.nan])
    assert (result["count"], result["first"], result["expected"], result["got"]) == (2, 1, 2, 5)
    assert facts([1], [math.nan])["got"] == "nan"
    assert facts([-math.inf], [0])["expected"] == "-inf"
    assert facts([1 + 2j], [1 + 3j], "complex64")["got"] == [1, 3]


@pytest.mark.parametrize(
    ("dtype", "a", "b", "gap"), [("int64", -(2**63), 2**63 - 1, 2**64 - 1), ("uint8", 0, 255, 255), ("bool", 0, 1, 1)]
)
def test_integers_are_off_by_an_exact_number(dtype: str, a: int, b: int, gap: int) -> None:
    result = facts([a], [b], dtype)
    assert result["max_abs"] == gap
    assert "frontier" not in result


def test_a_dtype_without_numbers_has_no_distance() -> None:
    result = of_value(tensor(b"\x01", "qint8"), tensor(b"\x02", "qint8"))
    assert result.extent == ({"kind": "value", "dtype": "qint8", "count": 1, "frontier": None},)


def test_bfloat16_is_counted_in_its_own_steps() -> None:
    def raw(*bits: int) -> dict[str, Any]:
        return {
            "tensor": {
                "dtype": "bfloat16",
                "shape": [len(bits)],
                "bytes": base64.b64encode(np.array(bits, "<u2").tobytes()).decode(),
            }
        }

    result = of_value(raw(0x3F80, 0x0001), raw(0x3F81, 0x8001)).differences[0].facts
    assert (result["max_ulp"], result["max_abs"]) == (2, 2**-7)
    assert tensor_array("bfloat16", b"\x80\x3f").tolist() == [1.0]


# --------------------------------------------------------------------------------------- the frontier decides any tolerance


def plain(number: Any) -> float:
    return float(number)


def ordered(bits: np.ndarray[Any, Any], width: int) -> list[int]:
    """Numbers by rank among all numbers of their width."""
    sign = 1 << (width - 1)
    return [int(value) if value < sign else sign - int(value) for value in bits]


def close(a: bytes, b: bytes, dtype: str, most: float, steps: int) -> bool:
    """Whether every number is within an absolute distance or within a number of ULP, element by element."""
    width = 8 * COMPONENT[dtype]
    bits = [np.frombuffer(side, f"<u{width // 8}") for side in (a, b)]
    with np.errstate(invalid="ignore"):  # a signalling NaN
        if dtype == "bfloat16":
            x, y = ((side.astype("<u4") << np.uint32(16)).view("<f4").astype("<f8") for side in bits)
        else:
            x, y = (side.view(f"<f{width // 8}").astype("<f8") for side in bits)
    for p, q, m, n in zip(x, y, *(ordered(side, width) for side in bits), strict=True):
        if (math.isnan(p) and math.isnan(q)) or p == q:
            continue
        if not (math.isfinite(p) and math.isfinite(q)):
            return False
        if not (abs(float(p) - float(q)) <= most or abs(m - n) <= steps):
            return False
    return True


@st.composite
def pairs(draw: st.DrawFn, dtypes: tuple[str, ...] = tuple(sorted(COMPONENT))) -> tuple[str, bytes, bytes]:
    """Two tensors of one dtype, most of their elements near each other, some of them anything."""
    dtype = draw(st.sampled_from(dtypes))
    width = 8 * COMPONENT[dtype]
    numbers = st.integers(0, 2**width - 1)
    count = draw(st.integers(1, 8)) * (2 if dtype.startswith("complex") else 1)
    a = draw(st.lists(numbers, min_size=count, max_size=count))
    steps = draw(st.lists(st.integers(-3, 3) | numbers, min_size=count, max_size=count))
    b = [(bits + step) % 2**width for bits, step in zip(a, steps, strict=True)]
    return dtype, np.array(a, f"<u{width // 8}").tobytes(), np.array(b, f"<u{width // 8}").tobytes()


TOLERANCE = st.sampled_from([0.0, 5e-324, 1e-45, 1e-30, 1e-6, 1e-3, 1.0, 1e4, 1e30, 1e300])


@settings(deadline=None)
@given(pairs(), TOLERANCE, st.integers(0, 5))
@example(("float32", np.array([0.0, math.nan], "<f4").tobytes(), np.array([-0.0, math.nan], "<f4").tobytes()), 0.0, 0)
@example(("float32", np.array([1.0], "<f4").tobytes(), np.array([math.inf], "<f4").tobytes()), 1e300, 5)
@example(("bfloat16", bytes(12) + b"\x80\x7f", bytes(12) + b"\x81\x7f"), 0.0, 0)
def test_a_tolerance_is_decided_by_the_frontier_as_by_every_element(
    pair: tuple[str, bytes, bytes], most: float, steps: int
) -> None:
    dtype, a, b = pair
    size = COMPONENT[dtype] * (2 if dtype.startswith("complex") else 1)
    item, other = (
        {"tensor": {"dtype": dtype, "shape": [len(side) // size], "bytes": base64.b64encode(side).decode()}} for side in (a, b)
    )
    result = of_value(item, other)
    if a == b:
        assert result.result == "same"
        return
    frontier = [(plain(gap), plain(ulp)) for gap, ulp in result.extent[0]["frontier"]]
    assert all(gap <= most or ulp <= steps for gap, ulp in frontier) is close(a, b, dtype, most, steps)
    assert frontier == sorted(set(frontier), reverse=True)
    assert [ulp for _, ulp in frontier] == sorted({ulp for _, ulp in frontier})
    if frontier:
        shown = result.differences[0].facts
        assert plain(shown["max_abs"]) == frontier[0][0]
        assert plain(shown["max_ulp"]) == frontier[-1][1]


@settings(deadline=None)
@given(st.lists(pairs(("float32",)), min_size=1, max_size=3), TOLERANCE, st.integers(0, 5))
def test_the_extent_decides_for_all_tensors_together(several: list[tuple[str, bytes, bytes]], most: float, steps: int) -> None:
    def neutral(data: bytes) -> dict[str, Any]:
        return {"tensor": {"dtype": "float32", "shape": [len(data) // 4], "bytes": base64.b64encode(data).decode()}}

    item, other = [neutral(a) for _, a, _ in several], [neutral(b) for _, _, b in several]
    result = of_value(item, other)
    within = all(plain(gap) <= most or plain(ulp) <= steps for part in result.extent for gap, ulp in part["frontier"])
    assert within is all(close(a, b, "float32", most, steps) for _, a, b in several)


# ---------------------------------------------------------------------------------------------------------------- digests


def test_a_digest_is_of_what_was_computed_not_of_words() -> None:
    base = program(turn(tensor([1])), {"error": ERROR})
    other = copy.deepcopy(base)
    other["calls"][1]["first"]["error"]["message"] = "other words"
    other["warnings"] = [["UserWarning", "careful"]]
    base["warnings"] = []
    assert result_digest(base) == result_digest(other)
    other["calls"][0]["first"]["value"] = tensor([2])
    assert result_digest(base) != result_digest(other)
    assert result_digest(program(turn(1))) != result_digest(program({"error": ERROR}))
    assert result_digest(program(turn(tensor([1])))) != result_digest(program(turn(tensor([1], requires_grad=True))))


def test_two_errors_in_loading_have_no_values_and_one_is_not_passed_over() -> None:
    other = {"type": "builtins.KeyError", "message": "no"}
    assert compare({"error": ERROR}, {"error": other}, hear=True).result == "differs"
    assert contents({"error": ERROR}, {"error": other}) == []
    with pytest.raises(KeyError):
        contents({"value": 1}, {"error": other})
