from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import numpy as np
import pytest

from torch_compat.proving.examples import pytest_text, told
from torch_compat.proving.oracles import CallOutcome, Modelled, Real
from torch_compat.proving.programs import archive, forms
from torch_compat.proving.proof import prove, table_of
from torch_compat.proving.stated import read
from torch_compat.proving.values import tensor_body
from torch_compat.proving.verdict import judged
from torch_compat.readers.environments import Environments
from torch_compat.runtime.upgraders import UpgraderTable

if TYPE_CHECKING:
    from torch_compat.proving.oracles import Oracle

KNOWN = read()
FEW = 96


@pytest.mark.parametrize("name", ["div_Tensor_0_3", "div__Tensor_0_3", "full_0_4", "full_out_0_4", "logspace_0_8", "gelu_0_9"])
def test_an_upgrader_that_preserves_what_old_programs_computed_is_proven(name: str) -> None:
    proof = prove(KNOWN[name], count=FEW)
    assert proof.verdict in {"preserved", "relaxed"}
    assert proof.modelled
    assert proof.verdicts["same"] > 10
    assert proof.counterexamples == []


def test_a_call_that_no_old_release_has_is_no_counterexample() -> None:
    proof = prove(KNOWN["div_Tensor_mode_0_3"])
    assert proof.verdict == "unreachable"
    assert "no archive can contain this call" in proof.notes[0]


def test_a_later_change_of_the_operator_is_not_the_upgraders() -> None:
    proof = prove(KNOWN["linspace_0_7"], count=FEW)
    assert proof.verdict == "preserved"
    assert proof.verdicts["changed-later"]
    assert proof.later == ("linspace-element-by-element",)


def test_the_same_seed_gives_the_same_proof_and_another_seed_another() -> None:
    item, same, other = (prove(KNOWN["div_Scalar_0_3"], seed=seed, count=FEW).verdicts for seed in ("a", "a", "b"))
    assert item == same
    assert item != other


SEVENTH = [
    tensor_body(np.array([1]), "int64", 1, (1,), (1,), 0),
    tensor_body(np.array([7], np.int8), "int8", 2, (1,), (1,), 0),
    tensor_body(np.array([0.0]), "float64", 3, (1,), (1,), 0),
]
"""int64 1 divided by int8 7 into an out= of float64."""


def seventh(before: Oracle, after: Oracle) -> tuple[CallOutcome, CallOutcome]:
    (form,) = forms(KNOWN["div_out_0_3"].operator, KNOWN["div_out_0_3"].arguments)
    old, new = (side.ask(archive(form, 3), [SEVENTH])[0] for side in (before, after))
    return old, new


def test_into_out_the_upgrader_divides_in_single_precision() -> None:
    old, new = seventh(Modelled("1.5.1"), Modelled(table=table_of(KNOWN["div_out_0_3"])))
    assert told(old) == "tensor([0.14285714285714285], float64)"
    assert told(new) == "tensor([0.1428571492433548], float64)"
    assert judged(old, new).verdict == "changed"


@pytest.mark.real_torch("1.5.1", "2.13.0")
def test_releases_on_both_sides_show_that_division_into_out_is_in_single_precision() -> None:
    old, new = (Environments().get(name) for name in ("1.5.1", "2.13.0"))
    assert old is not None
    assert new is not None
    with Real(old) as before, Real(new) as after:
        was, now = seventh(before, after)
    assert told(was) == "tensor([0.14285714285714285], float64)"
    assert told(now) == "tensor([0.1428571492433548], float64)"


# ----------------------------------------------------------------------------------------------- planted wrong upgraders

WRONG = {
    "rounds down instead of towards zero": ("div_Tensor_0_3", "'trunc'", "'floor'"),
    "does not round": ("div_Tensor_0_3", "rounding_mode='trunc'", "rounding_mode=None"),
    "asks one operand only": ("div_Tensor_0_3", " or other.is_floating_point()", ""),
    "divides the other way round": ("div_Scalar_0_3", "self.true_divide(other)", "torch.true_divide(other, self)"),
    "asks for an int": ("div_Scalar_0_3", "isinstance(other, float)", "isinstance(other, int)"),
    "is made out-of-place": ("div__Scalar_0_3", "true_divide_", "true_divide"),
    "drops the cast": ("full_0_4", "float(fill_value)", "fill_value"),
    "drops the dtype": ("full_0_4", "dtype=dtype, ", ""),
    "forgets out": ("full_out_0_4", ", out=out", ""),
    "has another number of steps": ("linspace_0_7", "steps=100", "steps=101"),
    "forgets the base": ("logspace_0_8", "base=base, dtype", "dtype"),
    "takes the approximation": ("gelu_0_9", "'none'", "'tanh'"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_planted_wrong_upgrader_is_caught_with_a_small_counterexample(what: str) -> None:
    name, right, wrong = WRONG[what]
    assert right in KNOWN[name].body
    planted = KNOWN[name]._replace(body=KNOWN[name].body.replace(right, wrong))
    proof = prove(planted, count=FEW, table=table_of(planted))
    assert proof.verdict == "changed"
    counterexample = proof.counterexamples[0]
    text = pytest_text(name, "x", counterexample)
    ast.parse(text)
    assert len(text.splitlines()) < 40
    assert counterexample.archive[:2] == b"PK"


def test_a_wrong_body_of_a_released_upgrader_is_no_later_change() -> None:
    """aten::div changed for halves and complex numbers after its upgraders came; what a wrong body does is none of that."""
    right = KNOWN["div_Tensor_0_3"]
    wrong = right._replace(body=right.body.replace("rounding_mode='trunc'", "rounding_mode=None"))
    proof = prove(wrong, count=FEW)
    assert proof.verdict == "changed"
    assert not proof.later


def test_a_proof_against_no_upgrader_at_all_finds_the_change() -> None:
    proof = prove(KNOWN["full_0_4"], count=FEW, table=UpgraderTable([]))
    assert proof.verdict == "changed"
    assert "dtype" in proof.sorts


class Lying:
    """A release that says of every call that it gives an error."""

    name, real = "torch-2.15.0", True

    def ask(self, data: bytes, calls: list[list[object]]) -> list[CallOutcome]:
        return [CallOutcome("raised", said="no")] * len(calls)


def test_the_word_of_a_release_counts_and_the_disagreement_with_the_reader_is_told() -> None:
    proof = prove(KNOWN["full_out_0_4"], new=[Lying()], count=24)
    assert proof.verdict == "changed"
    assert proof.agreements["torch-2.15.0"]["only-torch-refuses"]
    assert proof.apart["torch-2.15.0: only-torch-refuses"]
    assert proof.modelled, "nobody real answered for the old side"


@pytest.mark.real_torch("1.5.1", "2.15.0")
def test_releases_on_both_sides_confirm_a_proof_and_the_reader_agrees_with_them() -> None:
    old, new = (Environments().get(name) for name in ("1.5.1", "2.15.0"))
    assert old is not None
    assert new is not None
    with Real(old) as before, Real(new) as after:
        proof = prove(KNOWN["div_Tensor_0_3"], old=[before], new=[after], count=FEW)
        wrong = prove(KNOWN["div_out_0_3"], old=[before], new=[after], count=FEW)
    assert proof.verdict == "relaxed"
    assert proof.confirmed > 40
    assert not proof.modelled
    for counts in proof.agreements.values():
        assert not {"values", "only-the-reader-refuses"} & counts.keys(), proof.apart
    kept = [call for name, calls in proof.apart.items() if "only-torch-refuses" in name for call in calls]
    assert all("ComplexHalf" in call for call in kept), "known: the reader has no kernels of complex32 to miss"
    assert wrong.verdict == "changed"
    assert wrong.counterexamples[0].confirmed
