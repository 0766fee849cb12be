from __future__ import annotations

import pytest

from torch_compat.proving.mutants import mutants, score
from torch_compat.proving.stated import read

KNOWN = read()


def test_each_mutant_changes_the_body_and_stands_once() -> None:
    made = mutants(KNOWN["div_Tensor_0_3"].body)
    assert len({one.body for one in made}) == len(made) > 10
    whats = " ".join(one.what for one in made)
    for what in ("flipped", "never taken", "is not asked", "'or' is 'and'", "'trunc' is 'floor'", "left out", "swapped"):
        assert what in whats


@pytest.mark.parametrize("name", ["div_Tensor_0_3", "div__Scalar_0_3", "div_out_0_3", "full_0_4", "gelu_0_9"])
def test_a_proof_notices_mutants(name: str) -> None:
    found = score(KNOWN[name])
    assert found.enough, found.survivors
    assert found.survivors == ()
    assert {mutant.what.partition(": ")[2] for mutant, _ in found.equivalent} == {what for what, _ in KNOWN[name].equivalent}


def test_a_proof_of_few_calls_notices_too_few() -> None:
    assert not score(KNOWN["div_Tensor_0_3"], count=2).enough
