"""Typical mistakes in tests of upgraders, planted here: none of them counts as a proof.

Such a test loads a fixture of an old release, calls it with a few random tensors, and compares with a hand-written expectation. It passes
without checking anything if the fixture does not load and is skipped, if its path does not exist, if the assertion cannot fail, if the
old module is never called, or if the expectation is computed with today's operator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from torch_compat.cli import main
from torch_compat.errors import UsageError
from torch_compat.proving import mutants, proof
from torch_compat.proving.mutants import score
from torch_compat.proving.oracles import CallOutcome, Modelled
from torch_compat.proving.proof import prove
from torch_compat.proving.stated import StatedUpgrader, read
from torch_compat.proving.verdict import Judged
from torch_compat.runtime.upgraders import UpgraderTable
from torch_compat.testing import NotPreservedError, prove_upgrader

if TYPE_CHECKING:
    from pathlib import Path

KNOWN = read()
NAME = "div_Tensor_0_3"
FEW = 48


def table(upgrader: StatedUpgrader) -> str:
    rows = {
        "id": upgrader.id,
        "operator": upgrader.name,
        "old_schema": upgrader.old_schema,
        "old": upgrader.old,
        "since": upgrader.since,
    }
    stated = "".join(f'{key} = "{value}"\n' for key, value in rows.items())
    return f"[[upgrader]]\n{stated}bump = {upgrader.bump}\nbody = '''\n{upgrader.body}'''\n"


def not_proven(upgrader: StatedUpgrader, folder: Path) -> str:
    """What both forms of a proof say of an upgrader: a test fails, and the command does not end with 0."""
    path = folder / "mine.toml"
    path.write_text(table(upgrader))
    with pytest.raises((NotPreservedError, UsageError)) as result:
        prove_upgrader(path, count=FEW)
    with pytest.raises(SystemExit) as ended:
        main(["prove", str(path), "--count", str(FEW)])
    assert ended.value.code in {1, 2, 4}
    return str(result.value)


def test_the_upgrader_itself_is_proven(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(table(KNOWN[NAME]))
    assert prove_upgrader(tmp_path / "mine.toml", count=FEW).verdict == "relaxed"


def test_a_fixture_that_does_not_load_is_no_skip(tmp_path: Path) -> None:
    old = KNOWN[NAME]
    lost = old._replace(operator="aten::gone", old_schema=old.old_schema.replace("aten::div", "aten::gone"))
    lost = lost._replace(id="gone_Tensor_0_3", body=old.body.replace("div_Tensor_0_3", "gone_Tensor_0_3"))
    assert "no generated call could be compared" in not_proven(lost, tmp_path)


def test_a_release_that_refuses_every_old_program_proves_nothing() -> None:
    class Refusing:
        name, real = "torch-1.5.1", True

        def ask(self, data: bytes, calls: list[list[Any]]) -> list[CallOutcome]:
            del data
            return [CallOutcome("no-program", said="no such file")] * len(calls)

    result = prove(KNOWN[NAME], old=[Refusing()], count=FEW)
    assert (result.verdict, result.compared) == ("not-checked", 0)


def test_a_path_that_does_not_exist_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        prove_upgrader(tmp_path / "nothing.toml")
    with pytest.raises(UsageError, match="expected one of the upgraders"):
        prove_upgrader("div_Tensor_0_4")


def test_an_assertion_that_cannot_fail_kills_no_mutant(monkeypatch: pytest.MonkeyPatch) -> None:
    assert score(KNOWN[NAME], count=FEW).enough
    monkeypatch.setattr(mutants, "judged", lambda _old, _new: Judged("same"))
    assert not score(KNOWN[NAME], count=FEW).enough


def test_a_program_that_is_never_called_proves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(proof, "cases", lambda *_: [])
    assert "no generated call could be compared" in not_proven(KNOWN[NAME], tmp_path)


def test_a_branch_that_is_never_called_proves_nothing(tmp_path: Path) -> None:
    dead = KNOWN[NAME].body.replace("  if", "  if self.dim() > 9:\n    return self\n  if", 1)
    assert "no generated call reaches the branch" in not_proven(KNOWN[NAME]._replace(body=dead), tmp_path)


def test_a_comparison_with_todays_operator_is_refused(tmp_path: Path) -> None:
    """Both sides would run the upgrader, so that any body would do."""
    today = KNOWN[NAME]._replace(old="2.15.0", body=KNOWN[NAME].body.replace("'trunc'", "'floor'"))
    assert "is not older than the change" in not_proven(today, tmp_path)


def test_the_old_side_is_the_old_operator_and_not_todays() -> None:
    """A body that is today's operator: where today's stood for the old one as well, nothing would differ."""
    wrong = KNOWN[NAME]._replace(
        body="def div_Tensor_0_3(self: Tensor, other: Tensor) -> Tensor:\n  return self.true_divide(other)"
    )
    assert prove(wrong).verdict == "changed"

    class Today(Modelled):
        name, real = "torch-2.15.0", True

        def __init__(self) -> None:
            super().__init__(table=UpgraderTable([]))
            self.name = "torch-2.15.0"

    blind = prove(wrong, old=[Today()], table=UpgraderTable([]))
    assert set(blind.verdicts) == {"same", "equally-refused", "unsupported"}  # float16 beside a complex number is not modelled
    assert blind.verdicts["same"] > 100 * blind.verdicts["unsupported"]
