"""reports/backtest.md is the output of the tool, and names well-known changes."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from torch_compat.report.backtest import backtest_md, drawn, drawn_md, section

if TYPE_CHECKING:
    from types import ModuleType

REPOSITORY = Path(__file__).parents[2]
REPORT = REPOSITORY / "reports" / "backtest.md"
DRAWN = REPOSITORY / "reports" / "backtest" / "drawn.md"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """The tool, imported from its file."""
    spec = importlib.util.spec_from_file_location("backtest_tool", REPOSITORY / "tools" / "backtest.py")
    assert spec is not None
    assert spec.loader is not None
    result = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(result)
    return result


@pytest.mark.parametrize("version", ["1.7.1", "2.12.1"])
def test_a_section_is_current(tool: ModuleType, version: str) -> None:
    (result,) = tool.found_of(REPOSITORY, [version])
    text = REPORT.read_text(encoding="utf-8")
    assert section(result, tool.hand_of(REPOSITORY)) in f"{text}\n", "python tools/backtest.py --write"


@pytest.mark.slow
def test_the_whole_report_is_current(tool: ModuleType) -> None:
    result, hand = tool.found_of(REPOSITORY), tool.hand_of(REPOSITORY)
    assert REPORT.read_text(encoding="utf-8") == backtest_md(result, hand), "python tools/backtest.py --write"
    assert DRAWN.read_text(encoding="utf-8") == drawn_md(result), "python tools/backtest.py --write"
    wanted = {item.key for item in drawn(result)}
    assert not hand.labels or {(label.release, label.fact) for label in hand.labels} == wanted


def part(version: str) -> str:
    """The section of a release, as it is committed."""
    return REPORT.read_text(encoding="utf-8").partition(f"\n## {version}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize(
    ("version", "told"),
    [
        ("1.7.1", "ties: value (int64)"),  # argmax of equal elements
        ("1.7.1", "shifts: value (int64)"),  # to the right, of negative numbers
        ("1.12.1", "clamp: dtype (int64)"),
        ("1.13.1", "integer\\_arithmetic: value (int64)"),  # floor division
        ("2.6.0", "we changed the default value of the \\`weights\\_only\\` argument"),
        ("2.14.1", "scaled\\_dot\\_product\\_attention: value (float32)"),
    ],
)
def test_a_change_is_new_on_its_day(version: str, told: str) -> None:
    assert told in part(version)


def test_what_no_recipe_reaches_is_said() -> None:
    told = part("1.7.1").partition("Known today, not reported: ")[2].partition("\n")[0]
    assert "dimensions-twice" in told
    assert "arithmetic-right-shift" not in told  # the recipe shifts makes one


def test_the_tool_tells_what_it_cannot_use(tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main(["--root", str(tmp_path)]) == 4
    assert "policies/torch" in capsys.readouterr().err
