"""No option is ignored: a command refuses an option that has no effect with another option."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from torch_compat.cli import main

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("deprecations --states --next 90", "--states prints one line for each deprecation, so it cannot be combined with --next"),
        ("deprecations --states --full", "cannot be combined with --full"),
        ("deprecations --states --format json", "cannot be combined with --format json"),
        ("deprecations --sweep 1.2.0..1.5.0 --states", "cannot be combined with --states"),
        ("deprecations --sweep 1.2.0..1.5.0 --as-of 1.2.0 --next 5", "cannot be combined with --as-of or --next\n  remove --sweep"),
        ("deprecations floor-divide --sweep 1.2.0..1.5.0", "cannot be combined with an ID"),
        ("inspect x.pt --format json --tree", "--format json prints the facts of each file, so it cannot be combined with --tree"),
        ("inspect x.pt --format json --code --quick", "so it cannot be combined with --code"),
        ("observe --reader torch-1.5.1 --seed 0", "--seed selects a sample, so it requires --sample SHARE\n  add --sample 10%"),
        ("observe --reader torch-1.5.1 --deprecations --recipe div", "--deprecations runs only probes, so it cannot be combined with --recipe"),
        ("signoff 1.5.1 --verify --by me", "--verify does not sign, so it cannot be combined with --by"),
        ("signoff 1.5.1 --attach file --accept a", "--attach does not sign, so it cannot be combined with --accept"),
        ("signoff 1.5.1 --withdraw --by me --accept a", "--withdraw does not sign, so it cannot be combined with --accept"),
        ("operators check --old 1.4.0 --new 1.5.0 --no-waivers --as-of 2026-01-01", "so it cannot be combined with --as-of"),
    ],
)  # fmt: skip
def test_an_option_without_effect_is_refused(
    command: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "policies" / "torch").mkdir(parents=True)  # options are checked before any file is read
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(command.split())
    message = capsys.readouterr()
    assert (ended.value.code, message.out) == (2, "")
    assert said in message.err


@pytest.mark.parametrize("command", ["operators check --old 1.4.0 --new 1.5.0 --as-of", "admit torch-2.16.0 --uploaded"])
@pytest.mark.parametrize(
    ("day", "said"),
    [
        ("soon", "'soon' is not a date in the form YYYY-MM-DD, such as 2027-01-31"),
        ("20270131", "'20270131' is not a date in the form"),
        ("2027-02-30", "'2027-02-30' is not a valid date: there is no such day"),
    ],
)
def test_a_date_has_one_form(command: str, day: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), day])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
