"""``torch-compat observe --deprecations``: runs only those probes, and records only their lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.miniatures import miniature
from tests.recordings import change_cells

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.miniatures.tree import Tree

READER = ("observe", "--reader", "torch-1.6.0")
ASKED = (*READER, "--deprecations")
PROBE = '''"""Something old."""
import warnings

import torch

SUBJECT = "torch.load"
SINCE = "1.5.1"


def deprecated():
    warnings.warn("torch.old is deprecated")


def alternative():
    return 1
'''


@pytest.fixture
def old(tree: Tree) -> Tree:
    """A tree with a probe of something old that nobody was asked yet."""
    path = tree.root / "fixtures/deprecations/old.py"
    path.parent.mkdir()
    path.write_text(PROBE, encoding="utf-8")
    return tree


def kinds(tree: Tree) -> list[str]:
    return [line.partition("\t")[0] for line in lines(tree)]


def lines(tree: Tree) -> list[str]:
    return tree.recording("1.6.0").read_text(encoding="ascii").splitlines()


def test_lines_are_added_and_none_is_changed(command: Callable[..., Any], old: Tree) -> None:
    before = lines(old)
    assert command(*ASKED).status == 4  # nothing is recorded to compare with
    assert lines(old) == before
    ended = command(*ASKED, "--record")
    assert (ended.status, ended.out) == (0, "torch-1.6.0: 1 of 1 deprecation matches the record\n")
    assert "recorded 1 deprecation in reports/observations/torch-1.6.0.txt" in ended.err
    after = lines(old)
    added = [line for line in after if line not in before]
    assert [line.partition("\t")[0] for line in added] == ["reader", "answer", "deprecation", "end"]
    assert added[0].replace(old.recorded("1.6.0").observed, "2026-07-01") == before[1]
    assert [line for line in after if line not in added] == [before[0], *before[2:-1]]
    again = command(*ASKED, "--record")
    assert (again.status, again.err.count("recorded 1")) == (0, 0)
    assert "no file changed: 1 deprecation already recorded" in again.err
    assert lines(old) == after


def test_everything_else_stands_when_fixtures_are_recorded(command: Callable[..., Any], old: Tree) -> None:
    command(*ASKED, "--record")
    known = old.recorded("1.6.0").deprecations
    assert command(*READER, "--record", "--fixture", "torch-1.5.1/add").status == 0
    assert old.recorded("1.6.0").deprecations == known


def test_a_new_release_is_asked_with_everything_else(command: Callable[..., Any], old: Tree) -> None:
    old.recording("1.6.0").unlink()
    assert command(*READER, "--record").status == 0
    assert set(old.recorded("1.6.0").deprecations) == {"old"}
    assert kinds(old).count("deprecation") == 1


def test_what_is_not_as_recorded_is_named(command: Callable[..., Any], old: Tree) -> None:
    command(*ASKED, "--record")
    miniature(old.cache, "1.6.0", at_import="import warnings as w; w.warn = lambda *a, **k: None")
    for arguments in (ASKED, READER):
        ended = command(*arguments)
        assert ended.status == 1
        assert "deprecation old differs from the record\n" in ended.out


def test_a_probe_that_is_not_recorded_is_missing(command: Callable[..., Any], old: Tree) -> None:
    ended = command(*READER, "--missing", "--record", "--format", "json")
    assert (ended.status, ended.json["deprecations"]) == (0, [{"probe": "old", "reproduced": True}])
    assert ended.json["cells"] == []  # what is recorded of fixtures is not observed again for it
    assert command(*READER, "--missing").out == "torch-1.6.0: nothing is missing\n"


def test_a_fixture_and_a_probe_that_are_missing_are_observed_together(command: Callable[..., Any], old: Tree) -> None:
    observed = old.recorded("1.6.0")

    def without_add(cells: dict[tuple[str, str], Any]) -> None:
        for cell in [cell for cell in cells if "add" in cell[0]]:
            del cells[cell]

    change_cells(old.root, "torch-1.6.0", without_add)
    message = command(*READER, "--missing", "--record", "--format", "json").json
    assert {cell["fixture"] for cell in message["cells"]} == {cell[0] for cell in observed.cells if "add" in cell[0]}
    assert [row["probe"] for row in message["deprecations"]] == ["old"]
    assert command(*READER, "--missing").out == "torch-1.6.0: nothing is missing\n"


def test_what_is_recorded_of_a_probe_that_is_gone_goes_too(command: Callable[..., Any], old: Tree) -> None:
    command(*ASKED, "--record")
    (old.root / "fixtures/deprecations/old.py").rename(old.root / "fixtures/deprecations/older.py")
    assert command(*READER, "--missing", "--record").status == 0
    assert set(old.recorded("1.6.0").deprecations) == {"older"}


def test_json_and_show(command: Callable[..., Any], old: Tree) -> None:
    message = command(*ASKED, "--format", "json").json
    assert (message["reader"], message["cells"], message["deprecations"]) == (
        "torch-1.6.0",
        [],
        [{"probe": "old", "reproduced": None}],
    )
    shown = command(*ASKED, "--show").out
    assert "old in torch-1.6.0\n  deprecated: worked\n    UserWarning: torch.old is deprecated\n  alternative: worked\n" in shown


@pytest.mark.parametrize("other", [["--missing"], ["--fixture", "torch-1.5.1/add"], ["--sample", "10%"], ["--recorded"]])
def test_it_goes_with_no_other_choice(other: list[str], command: Callable[..., Any], old: Tree) -> None:
    ended = command(*ASKED, *other)
    assert ended.status == 2
    assert "--deprecations runs only probes" in ended.err


def test_the_reference_reader_has_no_deprecations(command: Callable[..., Any], old: Tree) -> None:
    assert command("observe", "--reader", "reference", "--deprecations").status == 2


def test_nothing_to_ask_is_never_a_pass(command: Callable[..., Any]) -> None:
    ended = command(*ASKED)
    assert ended.status == 4
    assert "no deprecation probes" in ended.err


def test_lines_are_not_added_to_those_of_another_build(command: Callable[..., Any], old: Tree) -> None:
    old.recording("1.6.0").unlink()
    ended = command(*ASKED, "--record")
    assert ended.status == 2
    assert "you cannot replace only some of them" in ended.err


def test_nothing_is_recorded_about_a_corpus_that_is_not_whole(command: Callable[..., Any], old: Tree) -> None:
    (old.root / "fixtures/torch-1.5.1/stray.pt").write_bytes(b"")
    ended = command(*ASKED, "--record")
    assert ended.status == 2
    assert "is not listed in the manifest" in ended.err
