"""Proofs as recorded, and what releases report about bodies and about programs that they save."""

from __future__ import annotations

import pytest

from torch_compat.corpus.proofs import ProofCall
from torch_compat.proving.obligations import asked_of, compiled
from torch_compat.proving.oracles import Real
from torch_compat.proving.programs import archive, forms
from torch_compat.proving.proof import prove, table_of, version_for
from torch_compat.proving.recording import record
from torch_compat.proving.stated import StatedUpgrader, read
from torch_compat.readers.environments import Environments

KNOWN = read()
FEW = 24


def programs(upgrader: StatedUpgrader) -> list[tuple[str, bytes]]:
    return [(form.signed, archive(form, version_for(upgrader))) for form in forms(upgrader.operator, upgrader.arguments)]


def test_a_counterexample_is_recorded_and_tried_first_ever_after() -> None:
    right = KNOWN["gelu_0_9"]
    wrong = right._replace(body=right.body.replace("'none'", "'tanh'"))
    result = prove(wrong)
    proof = record(result, 288)
    assert proof.calls["changed"] == result.verdicts["changed"]
    assert [each.arguments for each in proof.kept] == [each.arguments for each in proof.examples] != []
    assert prove(wrong, count=1).verdict != "changed", "one generated call does not show it"
    again = prove(wrong, count=1, kept=proof.kept)
    assert again.verdict == "changed"
    assert record(again, 1, kept=proof.kept).kept == proof.kept
    mended = prove(right, count=1, kept=proof.kept)
    assert mended.verdict != "changed"
    assert record(mended, 1, kept=proof.kept).kept == proof.kept, "kept for good"


def test_a_kept_call_of_another_form_is_not_tried() -> None:
    other = ProofCall("torch.other(a_self) of Tensor", [])
    item, same = (prove(KNOWN["gelu_0_9"], count=FEW, kept=kept).verdicts for kept in ((other,), ()))
    assert item == same


def test_two_forms_that_differ_in_types_alone_are_told_apart() -> None:
    result = forms("aten::full", KNOWN["full_0_4"].arguments)
    assert len({form.signed for form in result}) == len(result) > len({form.call for form in result})


def test_whether_the_reference_reader_compiles_a_body() -> None:
    right = KNOWN["gelu_0_9"]
    assert compiled(right, table_of(right)).found == ""
    wrong = right._replace(body=right.body.replace("torch.gelu", "torch.no_such_operator"))
    assert "no_such_operator" in compiled(wrong, table_of(wrong)).found


def test_branches_are_counted_in_nested_conditions() -> None:
    right = KNOWN["gelu_0_9"]
    body = "def gelu_0_9(self: Tensor) -> Tensor:\n  if self.dim() > 0:\n    if self.dim() > 9:\n      return self\n  return torch.gelu(self)"
    item = right._replace(body=body)
    proof = prove(item, count=96)
    assert len(proof.branches) == 4
    assert [name for name, count in proof.branches.items() if not count] == ["line 3: self.dim() > 9 holds"]
    assert proof.verdict == "not-checked"


@pytest.mark.real_torch("2.13.0")
def test_a_release_compiles_bodies_and_says_what_it_saves() -> None:
    environment = Environments().get("2.13.0")
    assert environment is not None
    right, full = KNOWN["gelu_0_9"], KNOWN["full_0_4"]
    with Real(environment) as real:
        good = {obligation.what: obligation.found for obligation in asked_of(right, real, programs(right))}
        assert good == {"compiles": "", "saved": "10", "again": "same"}
        wrong = right._replace(body=right.body.replace("torch.gelu", "torch.no_such_operator"))
        assert "Unknown builtin op: aten::no_such_operator" in asked_of(wrong, real, [])[0].found
        broken = {obligation.what: obligation.found for obligation in asked_of(full, real, programs(full))}
        assert "Type mismatch: fill_value is set to type float in the true branch" in broken["saved"]
