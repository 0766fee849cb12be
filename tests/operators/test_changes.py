from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from torch_compat.errors import UsageError
from torch_compat.operators.changes import SchemaChange, changes, taken_over
from torch_compat.operators.history import History
from torch_compat.operators.schema import canonical, parse
from torch_compat.releases.data import packaged

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Make = Callable[..., History]

HEAD = (
    "# history 1 texts\n# releases 1.0.0 1.5.1 2.0.0 2.13.0\n# obtained\t1.0.0..\tAsked.\n"
    "# incomplete\t1.0.0\tGuessed.\n# incomplete\t2.13.0\tWithout CUDA.\n"
)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def made(*lines: str) -> History:
        path = tmp_path / "history.txt"
        path.write_text(HEAD + "".join(f"{line}\n" for line in sorted(lines)), encoding="utf-8")
        return History(path)

    return made


def test_what_can_become_of_an_operator(make: Make) -> None:
    history = make(
        "aten::same(Tensor x) -> Tensor\t1.0.0..",
        "aten::added(Tensor x) -> Tensor\t2.0.0..",
        "aten::removed(Tensor x) -> Tensor\t1.0.0..1.5.1",
        "aten::grown(Tensor x) -> Tensor\t1.0.0..1.5.1",
        "aten::grown(Tensor x, int y=1) -> Tensor\t2.0.0..",
        "aten::broken.out(Tensor x) -> Tensor\t1.0.0..1.5.1",
        "aten::broken.out(Tensor y) -> Tensor\t2.0.0..",
        "aten::printed(Tensor x, int[2] y=[1, 1]) -> (Tensor y)\t1.0.0..1.5.1",
        "aten::printed(Tensor x, int[2] y=1) -> Tensor y\t2.0.0..",
    )
    results = {change.operator: change for change in changes(history, "1.5.1", "2.0.0")}
    assert {name: change.kind for name, change in results.items()} == {
        "aten::added": "added",
        "aten::removed": "removed",
        "aten::grown": "changed",
        "aten::broken.out": "changed",
    }
    assert results["aten::added"] == SchemaChange("aten::added", "added", None, "aten::added(Tensor x) -> Tensor", None, None)
    assert results["aten::added"].backward_compatible is None
    removed, grown, broken = (results[f"aten::{name}"] for name in ("removed", "grown", "broken.out"))
    assert removed.backward is not None
    assert grown.backward is not None
    assert grown.forward is not None
    assert broken.backward is not None
    assert (removed.backward_compatible, removed.new, removed.backward.cause, removed.forward) == (False, None, "removed", None)
    assert (grown.backward_compatible, grown.by, grown.backward.compatible, grown.forward.compatible) == (
        True,
        grown.new,
        True,
        True,
    )
    assert (broken.backward_compatible, broken.by, broken.backward.cause) == (False, None, "renamed")
    assert changes(history, "2.0.0", "2.0.0") == []


def test_nothing_is_removed_from_a_set_that_is_not_complete(make: Make) -> None:
    history = make(
        "aten::gone(Tensor x) -> Tensor\t2.0.0",
        "aten::came(Tensor x) -> Tensor\t2.13.0..",
        "aten::old(Tensor x) -> Tensor\t1.0.0",
        "aten::new(Tensor x) -> Tensor\t1.5.1",
        "aten::changed(Tensor x) -> Tensor\t2.0.0",
        "aten::changed(Tensor x, int y) -> Tensor\t2.13.0",
    )
    results = {change.operator: (change.kind, change.why) for change in changes(history, "2.0.0", "2.13.0")}
    assert results == {
        "aten::gone": ("unknown", "Without CUDA."),
        "aten::came": ("added", None),
        "aten::changed": ("changed", None),
    }
    results = {change.operator: (change.kind, change.why) for change in changes(history, "1.0.0", "1.5.1")}
    assert results == {"aten::old": ("removed", None), "aten::new": ("unknown", "Guessed.")}
    # Backwards: what the incomplete one does not have is not said to be gone.
    results = {change.operator: (change.kind, change.why) for change in changes(history, "1.5.1", "1.0.0")}
    assert results["aten::new"] == ("unknown", "Guessed.")
    assert all(change.backward_compatible is None for change in changes(history, "1.5.1", "1.0.0") if change.kind == "unknown")


def test_several_schemas_under_one_name(make: Make) -> None:
    history = make(
        "aten::size(Tensor x) -> int[]\t1.5.1..",
        "aten::size(Tensor x, int dim) -> int\t1.5.1",
        "aten::size(Tensor x, int dim, bool flag=False) -> int\t2.0.0..",
        "aten::size(str name) -> int\t2.0.0..",
        "aten::size(Tensor x) -> (int[])\t1.5.1",
        "aten::twice(Tensor x, int y=1) -> Tensor\t1.5.1..",
        "aten::twice(Tensor x) -> Tensor\t1.5.1",
    )
    result = changes(history, "1.5.1", "2.0.0")
    assert [(change.operator, change.kind, change.old, change.new) for change in result] == [
        (
            "aten::size",
            "changed",
            "aten::size(Tensor x, int dim) -> int",
            "aten::size(Tensor x, int dim, bool flag=False) -> int",
        ),
        ("aten::size", "added", None, "aten::size(str name) -> int"),
        ("aten::twice", "changed", "aten::twice(Tensor x) -> Tensor", "aten::twice(Tensor x, int y=1) -> Tensor"),
    ]
    twice = next(change for change in result if change.operator == "aten::twice")
    assert twice.by == "aten::twice(Tensor x, int y=1) -> Tensor"


def test_an_overload_that_was_renamed_is_taken_over(make: Make) -> None:
    history = make(
        "aten::add(Tensor x, Tensor y) -> Tensor\t1.5.1",
        "aten::add.Tensor(Tensor x, Tensor y, int z=1) -> Tensor\t2.0.0..",
        "aten::gone(Tensor x) -> Tensor\t1.5.1",
        "aten::gone.x(str x) -> Tensor\t2.0.0..",
        "aten::same(Tensor x) -> Tensor\t1.5.1",
        "aten::same(Tensor x, int y=0) -> Tensor\t2.0.0..",
    )
    results = {change.operator: change for change in changes(history, "1.5.1", "2.0.0")}
    assert (results["aten::add"].kind, results["aten::add"].backward_compatible) == ("removed", False)
    assert taken_over(history, results["aten::add"], "2.0.0") == "aten::add.Tensor(Tensor x, Tensor y, int z=1) -> Tensor"
    assert taken_over(history, results["aten::gone"], "2.0.0") is None
    assert taken_over(history, results["aten::same"], "2.0.0") == results["aten::same"].new
    assert taken_over(history, results["aten::add.Tensor"], "2.0.0") is None


def test_methods_are_told_apart_by_their_class(make: Make) -> None:
    a, b = "__torch__.torch.classes.x.A", "__torch__.torch.classes.x.B"
    history = make(f"run({a} self) -> int\t1.5.1", f"run({b} self) -> int\t1.5.1..", f"run({a} self, int n=1) -> int\t2.0.0..")
    assert [(change.operator, change.kind) for change in changes(history, "1.5.1", "2.0.0")] == [(f"{a}.run", "changed")]


def test_a_text_that_is_no_schema_is_unknown(make: Make) -> None:
    history = make("aten::x(Tensor x) -> Tensor\t1.5.1..", 'aten::x(Tensor x) -> Tensor") FAILED\t1.5.1')
    (change,) = changes(history, "1.5.1", "2.0.0")
    assert change.kind == "unknown"
    assert "is not an operator schema" in str(change.why)


def test_a_release_that_was_not_asked_is_refused(make: Make) -> None:
    with pytest.raises(UsageError, match=r"there are no records for the release '1\.9\.9'"):
        changes(make("aten::x(Tensor x) -> Tensor\t1.5.1.."), "1.9.9", "2.0.0")


# ---------------------------------------------------------------------------------------------------------------- what is recorded


def test_the_case_of_embedding_bag_is_found_by_name() -> None:
    (change,) = [item for item in changes(History.load(), "1.4.0", "1.5.0") if item.operator == "aten::_embedding_bag"]
    assert change.kind == "changed"
    new, old = (parse(str(text), recorded=True) for text in (change.new, change.old))
    assert {argument.name for argument in new.arguments} - {argument.name for argument in old.arguments} == {
        "include_last_offset"
    }
    assert change.backward == change.forward  # a default, in the last place: programs go on, in both directions


def test_every_two_releases_are_answered() -> None:
    for name in ("schemas.txt", "custom_classes.txt"):
        history = History.load(packaged("fixtures", "operators", name))
        for old, new in pairwise(history.releases):
            before, after = history.bit(old), history.bit(new)
            result = changes(history, old, new)
            for change in result:
                assert change.kind != "removed" or history.complete(new)
                assert change.kind != "added" or history.complete(old)
                assert (change.kind == "unknown") is (change.why is not None)
                assert (change.backward is None) is (change.old is None or change.kind == "unknown")
                assert (change.by is None) is not change.backward_compatible
            # Nothing is lost: what differs is a change, or is only printed otherwise.
            told = {change.old for change in result} | {change.new for change in result}
            for side, other in ((before, after), (after, before)):
                lost = [text for text, bits in history.texts() if bits & side and not bits & other and text not in told]
                there = {
                    canonical(parse(text, recorded=True))
                    for text, bits in history.texts()
                    if lost and bits & other and "FAILED" not in text
                }
                assert all(canonical(parse(text, recorded=True)) in there for text in lost)
