"""The tool that compares predictions with outside programs: its counts, and its exit status if it cannot compare."""

from __future__ import annotations

import base64
import runpy
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.recordings import readers_of
from torch_compat.errors import CorpusError
from torch_compat.judging.gathering import gather
from torch_compat.loadability import packaged_rules
from torch_compat.workspace import Root

TOOL = Path(__file__).parents[2] / "tools" / "programs.py"
CELL = ("torch-1.5.1/div", "default")


@pytest.fixture(scope="module")
def tool() -> dict[str, Any]:
    return runpy.run_path(str(TOOL))


def test_there_are_forty_of_each_kind_in_each_set(tool: dict[str, Any]) -> None:
    for path in sorted(tool["PROGRAMS"].iterdir()):
        if path.is_dir():
            kinds = list(tool["kinds_of"](path).values())
            assert (kinds.count("ordinary"), kinds.count("adversarial"), len(kinds)) == (40, 40, 80), path.name


def test_two_programs_of_one_name_are_refused(tool: dict[str, Any], tmp_path: Path) -> None:
    for kind in ("ordinary", "adversarial"):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "one.py").write_text("", encoding="utf-8")
    with pytest.raises(CorpusError, match="two programs are named one: one in adversarial, one in ordinary"):
        tool["kinds_of"](tmp_path)


def test_the_kind_of_a_program_names_its_set_where_all_are_asked(tool: dict[str, Any]) -> None:
    kinds = tool["kinds_of"](tool["PROGRAMS"])
    assert kinds["nms_loop"] == "first ordinary"
    assert kinds["viterbi"] == "second ordinary"


def test_a_release_that_refuses_what_was_forecast_to_load_is_wrong(tool: dict[str, Any], small_tree: Path) -> None:
    corpus = gather(Root(small_tree), Root(small_tree).policy(counted=False), as_of=None).corpus
    readers = {item.release: item for item in readers_of(small_tree).values()}
    cells = list(tool["inspected"](corpus, readers, packaged_rules()))
    assert {cell.verdict for cell in cells} == {"right"}
    assert {cell.kind for cell in cells} == {"inspect", "inspect weights-only"}
    reader = readers["1.6.0"]
    refused = replace(reader.cells[CELL], result="refused", errors=({"type": "X", "message": "as planted"},))
    readers["1.6.0"] = replace(reader, cells={**reader.cells, CELL: refused})
    (wrong,) = (cell for cell in tool["inspected"](corpus, readers, packaged_rules()) if cell.verdict != "right")
    assert (wrong.writer, wrong.program, wrong.reader, wrong.verdict) == ("1.5.1", "div", "1.6.0", "wrong")
    assert "predicted: loads; actual: refused" in wrong.text
    assert "as planted" in wrong.text


def test_another_value_than_the_release_gave_is_wrong(tool: dict[str, Any], small_tree: Path) -> None:
    evidence = gather(Root(small_tree), Root(small_tree).policy(counted=False), as_of=None)
    (reader,) = (item for item in readers_of(small_tree).values() if item.release == "1.12.1")
    fixtures = [evidence.corpus.fixtures["torch-1.5.1/div_scalar"], evidence.corpus.fixtures["torch-1.12.1/div_scalar"]]

    def verdicts(reader: Any) -> list[str]:
        return [cell.verdict for cell in tool["interpreted"](evidence.corpus, {"1.12.1": reader}, evidence, fixtures)]

    assert verdicts(reader) == ["right", "right"]
    cell = ("torch-1.5.1/div_scalar", "default")
    planted = replace(reader.cells[cell], result="refused", errors=({"type": "X", "message": "as planted"},))
    assert verdicts(replace(reader, cells={**reader.cells, cell: planted})) == ["wrong", "right"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([1.0, 3e-6, np.inf], True),  # 25 last places of the greatest number, though nothing of the small one is right
        ([1.0, 3e-5, np.inf], False),
        ([1.0, np.nan, np.inf], False),
        ([1.0, 0.0, -np.inf], False),
    ],
)
def test_rounding_is_measured_by_the_greatest_number_of_a_tensor(tool: dict[str, Any], given: list[float], said: bool) -> None:
    def result(values: list[float]) -> dict[str, Any]:
        data = base64.b64encode(np.array(values, np.float32).tobytes()).decode()
        return {"value": {"tensor": {"dtype": "float32", "shape": [3], "strides": [1], "storage": 0, "bytes": data}}}

    assert tool["rounded"](result([1.0, 0.0, np.inf]), result(given)) is said


@pytest.mark.parametrize(("given", "said"), [(float(np.float32(0.1)) + 2**-27, True), (0.1 + 1e-9, False)])
def test_a_number_that_was_taken_out_of_a_tensor_is_measured_as_it_was_there(
    tool: dict[str, Any], given: float, said: bool
) -> None:
    wanted = float(np.float32(0.1)) if said else 0.1
    assert tool["rounded"]({"value": {"float": wanted}}, {"value": {"float": given}}) is said


def test_what_the_reference_reader_lacks_is_not_right(tool: dict[str, Any]) -> None:
    cells = [
        tool["Cell"]("reference", name, "1.5.1", "1.6.0", verdict, "")
        for name, verdict in zip("abbb", ("right", "right", "wrong", "lacking"), strict=True)
    ]
    lines = tool["table"](cells, {"a": "ordinary", "b": "adversarial"})
    assert [" ".join(line.split()) for line in lines] == [
        "all all 4 cells, 2 right (50.00 %), 1 wrong, 0 rounded, 1 lacking",
        "reference adversarial 3 cells, 1 right (33.33 %), 1 wrong, 0 rounded, 1 lacking",
        "reference all 4 cells, 2 right (50.00 %), 1 wrong, 0 rounded, 1 lacking",
        "reference by 1.6.0 4 cells, 2 right (50.00 %), 1 wrong, 0 rounded, 1 lacking",
        "reference ordinary 1 cells, 1 right (100.00 %), 0 wrong, 0 rounded, 0 lacking",
    ]


def test_a_program_that_was_changed_after_its_first_run_is_noticed(
    tool: dict[str, Any], small_tree: Path, tmp_path: Path
) -> None:
    folder, programs = tmp_path / "folder", tmp_path / "programs" / "ordinary"
    shutil.copytree(small_tree / "fixtures", folder / "fixtures")
    programs.mkdir(parents=True)
    text = (small_tree / "fixtures/recipes/div.py").read_text(encoding="utf-8")
    (programs / "div.py").write_text(text + "\nCHANGED = True\n", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"div was changed after torch-1\.5\.1 had run it"):
        tool["written"](folder, programs.parent, Root(small_tree).policy(counted=False), ["1.5.1"], {})


def test_a_program_that_cannot_be_read_is_named(tool: dict[str, Any], small_tree: Path, tmp_path: Path) -> None:
    programs = tmp_path / "programs" / "ordinary"
    programs.mkdir(parents=True)
    (programs / "unfinished.py").write_text("FAMILY = 1\n", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"recipes/unfinished\.py"):
        tool["written"](tmp_path / "folder", programs.parent, Root(small_tree).policy(counted=False), [], {})


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--only", "nothing"], 2, "there is no program 'nothing'"),
        (["--set", "no"], 2, "there are no programs in"),
        (["--writer", "2.2.0"], 4, "torch-2.2.0 is not built here"),
    ],
)
def test_what_cannot_be_compared_is_said(
    arguments: list[str],
    status: int,
    said: str,
    tool: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TORCH_COMPAT_CACHE", str(tmp_path / "cache"))
    assert tool["main"]([str(tmp_path / "folder"), *arguments]) == status
    assert said in capsys.readouterr().err


def test_only_right_cells_of_all_programs_are_a_success(tool: dict[str, Any]) -> None:
    right, wrong = (tool["Cell"]("inspect", "a", "1.5.1", "1.6.0", tool[name], "") for name in ("RIGHT", "WRONG"))
    status = tool["exit_status"]
    assert [
        status([right], {}),
        status([right, wrong], {}),
        status([right], {"b of 1.5.1": "cannot be recorded"}),
        status([], {}),
    ] == [0, 1, 1, 4]
