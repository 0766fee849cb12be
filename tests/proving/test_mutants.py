from __future__ import annotations

import pytest

from torch_compat.proving.mutants import mutants, score
from torch_compat.proving.stated import read

KNOWN = read()


def test_each_mutant_changes_the_body_and_stands_once() -> None:
    result = mutants(KNOWN["div_Tensor_0_3"].body)
    assert len({mutant.body for mutant in result}) == len(result) > 10
    whats = " ".join(mutant.what for mutant in result)
    for what in (
        "flipped",
        "never taken",
        "is removed",
        "'or' is replaced by 'and'",
        "'trunc' is 'floor'",
        "omitted",
        "swapped",
        "in-place",
        "dropped",
    ):
        assert what in whats


@pytest.mark.parametrize("name", ["div_Tensor_0_3", "div__Scalar_0_3", "div_out_0_3", "full_0_4", "gelu_0_9"])
def test_a_proof_notices_mutants(name: str) -> None:
    result = score(KNOWN[name])
    assert result.enough, result.survivors
    assert result.survivors == ()
    assert {mutant.what.partition(": ")[2] for mutant, _ in result.equivalent} == {what for what, _ in KNOWN[name].equivalent}


def test_a_proof_of_few_calls_notices_too_few() -> None:
    assert not score(KNOWN["div_Tensor_0_3"], count=2).enough


def test_leaving_out_what_is_as_by_default_is_no_mutant() -> None:
    whats = {
        name: " ".join(mutant.what for mutant in mutants(KNOWN[name].body))
        for name in ("gelu_0_9", "gelu_out_0_9", "linspace_0_7")
    }
    assert "approximate= is omitted" not in whats["gelu_0_9"]
    assert "out= is omitted" in whats["gelu_out_0_9"]
    assert "omitted" in whats["linspace_0_7"]
    for what in ("the call is dropped", "gelu is made in-place"):
        assert what in whats["gelu_0_9"]


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_a_tenth_of_the_mutants_of_an_upgrader_at_most_is_called_equivalent(name: str) -> None:
    assert 10 * len(KNOWN[name].equivalent) <= len(mutants(KNOWN[name].body))
