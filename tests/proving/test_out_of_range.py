"""Generated calls with one argument moved to a limit of its range."""

from __future__ import annotations

from typing import Any

from tools.differential.horizons import schemas_at
from tools.differential.structured import spec_of
from torch_compat.operators.call_signature import bare
from torch_compat.proving.arguments import Unwritable, make_call
from torch_compat.proving.out_of_range import out_of_range
from torch_compat.proving.values import Maker, Seeded


def moved(operator: str, count: int = 200) -> list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
    """Schemas, calls, and the calls with an argument moved."""
    results = []
    for schema in schemas_at("2.6.0", f"^aten::{operator}$"):
        for at in range(count):
            make = Maker(Seeded(f"{schema['text']}/{at}"), bare(operator), plain=True, graph=True)
            try:
                call = make_call(make, schema, spec_of(f"aten::{operator}"))
            except Unwritable:  # of named dimensions
                break
            results.append((schema, call, out_of_range(make, call, schema)))
    return results


def values(operator: str, argument: str) -> list[Any]:
    """What an argument is moved to."""
    results = []
    for schema, _, call in moved(operator):
        if call.get("malformed") == argument:
            results.append(call["args"][[item["name"] for item in schema["arguments"]].index(argument)])
    return results


def test_one_argument_is_moved_and_the_call_stays_as_it_was() -> None:
    for _, before, after in moved("narrow", 50):
        changed = [at for at, (a, b) in enumerate(zip(before["args"], after["args"], strict=True)) if a != b]
        assert len(changed) <= 1
        assert "malformed" in after


def test_integers_reach_zero_the_negative_and_each_side_of_a_size() -> None:
    result = values("select", "index")
    assert {0, -1, 2, 3, -3, -4} <= set(result)
    assert any(item > 2**40 for item in result)
    assert all(-(2**63) <= item < 2**63 for item in result)


def test_lists_are_too_short_too_long_repeated_and_negative() -> None:
    results = [item for item in values("permute", "dims") if item is not None]
    assert [] in results
    assert any(len(set(item)) < len(item) for item in results)
    assert any(min(item, default=0) < 0 for item in results)
    assert len({len(item) for item in results}) > 3


def test_optional_integers_formats_and_names_are_moved() -> None:
    assert {2, 3} <= set(values("clone", "memory_format"))
    assert {"", "bad"} & set(values("fft_fft", "norm"))
    assert any(item is not None for item in values("repeat_interleave", "output_size"))


def test_operands_of_arithmetic_and_codes_are_left_alone() -> None:
    assert all(call is other for _, call, other in moved("add", 20))
    assert not values("zeros", "dtype")


def test_the_same_seed_gives_the_same_calls() -> None:
    assert moved("roll", 20) == moved("roll", 20)
