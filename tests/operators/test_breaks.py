"""The breaks between two sets of schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from torch_compat.operators.breaks import (
    Break,
    UpgraderEntry,
    Upgraders,
    breaks,
    consecutive,
    dropped_upgraders,
    lost_counts,
    same_schema,
    upgrader_entries,
)
from torch_compat.operators.changes import changes
from torch_compat.operators.history import FactHistory, History
from torch_compat.operators.written import Writer, Written
from torch_compat.releases.data import packaged

if TYPE_CHECKING:
    from pathlib import Path

OLD = "aten::f(Tensor self, int n) -> Tensor"


@pytest.fixture(scope="module")
def versions() -> FactHistory:
    return FactHistory(packaged("fixtures", "operators", "operator_versions.txt"))


def only(value: list[Break]) -> Break:
    (item,) = value
    return item


@pytest.mark.parametrize(
    ("new", "what", "argument"),
    [
        ("aten::f(Tensor self, int n, int m) -> Tensor", "no-default", "m"),
        ("aten::f(Tensor self, int k) -> Tensor", "renamed", "n"),
        ("aten::f(Tensor self, str n) -> Tensor", "type", "n"),
        ("aten::f(Tensor self) -> Tensor", "arguments-removed", None),
        ("aten::f(Tensor self, int n) -> (Tensor, Tensor)", "returns-count", None),
        ("aten::g(Tensor self, int n) -> Tensor", "removed", None),
    ],
)
def test_what_breaks_is_named(new: str, what: str, argument: str | None) -> None:
    item = only(breaks([OLD], [new]))
    assert (item.operator, item.side, item.old, item.what) == ("aten::f", "backward", OLD, what)
    assert item.argument in {argument, None} if argument == "n" else item.argument == argument
    assert item.reason
    assert item.known


@pytest.mark.parametrize(
    "new",
    [
        OLD,
        "aten::f(Tensor self, int n, int m=1) -> Tensor",
        "aten::f(Tensor self, int n, *, bool loud=False) -> Tensor",
        "aten::f(Tensor self, SymInt n) -> Tensor",
        "aten::f(Tensor self, int? n) -> Tensor",
    ],
)
def test_what_works_is_not_listed(new: str) -> None:
    assert breaks([OLD], [new, "aten::other(Tensor self) -> Tensor"]) == []


def test_what_an_incomplete_set_lacks_is_not_known() -> None:
    item = only(breaks([OLD], ["aten::g() -> ()"], incomplete="half of it was asked"))
    assert (item.what, item.known, item.reason) == ("unknown", False, "half of it was asked")


def test_what_an_incomplete_set_has_is_known() -> None:
    assert only(breaks([OLD], ["aten::f(Tensor self) -> Tensor"], incomplete="half of it was asked")).what == "arguments-removed"


def test_another_overload_takes_the_calls_of_code() -> None:
    item = only(
        breaks(["aten::f.a(Tensor self) -> Tensor"], ["aten::f.b(Tensor self) -> Tensor", "aten::f.c(int self) -> Tensor"])
    )
    assert (item.what, item.taken_by) == ("removed", "aten::f.b(Tensor self) -> Tensor")


def test_forward_asks_the_other_way_round() -> None:
    new = "aten::f(Tensor self, int n, int[] m=[1]) -> Tensor"
    assert breaks([OLD], [new]) == []
    assert only(breaks([OLD], [new], side="forward")).what == "container-default"
    assert breaks([OLD], ["aten::g() -> ()"], side="forward") == []


def test_an_upgrader_mends_the_schema_that_it_states(versions: FactHistory) -> None:
    new = ["aten::f(Tensor self) -> Tensor"]
    stated = UpgraderEntry("aten::f", 11, "f_0_10", "aten::f(Tensor self, SymInt n) -> Tensor")  # an int to PyTorch

    def mended(entry: UpgraderEntry) -> str | None:
        upgraders = Upgraders([entry], Writer(Written(versions), History.load(), "2.15.0"))
        return only(breaks([OLD], new, upgraders=upgraders)).upgrader

    assert mended(stated) == "f_0_10"
    assert mended(stated._replace(old="aten::f(Tensor self, int k) -> Tensor")) is None
    assert mended(stated._replace(operator="aten::f.out")) is None
    assert mended(stated._replace(first=3)) == "f_0_10"
    assert mended(stated._replace(first=4)) is None  # 2.15.0 writes it with 3
    assert mended(stated._replace(bump=10)) is None  # and with 10, beside gelu


@pytest.mark.parametrize(
    ("operator", "release", "expected"),
    [
        ("aten::div.Tensor", "2.13.0", (4, 5, 8, 9, 10)),
        ("aten::relu", "2.13.0", (3, 4, 5, 8, 9, 10)),
        ("aten::gelu", "2.13.0", (10,)),
        ("aten::gelu", "1.11.0", (3, 4, 5, 8, 9)),
        ("aten::div.Tensor_mode", "1.11.0", (4, 5, 8, 9)),  # seen when 1.11.0 saved a program with it alone
        ("aten::linspace", "1.10.2", (3, 4, 5)),
        ("aten::div.Tensor", "1.5.1", (2,)),
        ("aten::div.Tensor", "1.4.0", (1,)),
    ],
)
def test_the_versions_that_a_release_writes(
    versions: FactHistory, operator: str, release: str, expected: tuple[int, ...]
) -> None:
    assert Written(versions).versions(operator, release) == expected


def test_what_is_written_with_a_later_version_is_not_mended(versions: FactHistory) -> None:
    """Every operator with an upgrader: taken out of the newest release, none mends what that release itself writes."""
    history = History.load()
    entries = upgrader_entries(versions, "2.15.0")
    for release in ("2.12.1", "2.13.0", "2.15.0"):
        upgraders = Upgraders(entries, Writer(Written(versions), history, release))
        for entry in entries:
            for schema in history.standing(entry.operator, release):
                assert only(breaks([schema], [], upgraders=upgraders)).upgrader is None, schema


def test_why_an_upgrader_does_not_mend(versions: FactHistory) -> None:
    history = History.load()
    entries = upgrader_entries(versions, "2.15.0")
    schema = only_text(history.standing("aten::div.Tensor", "2.13.0"))

    def said(release: str | None) -> Break:
        return only(breaks([schema], [], upgraders=Upgraders(entries, Writer(Written(versions), history, release))))

    assert said("2.13.0").reason.endswith(
        "; the upgrader div_Tensor_0_3 covers file formats 0 to 3, but 2.13.0 writes this operator with 4"
    )
    assert said(None).reason.endswith("but 2.15.0 writes this operator with 4")  # the newest that has this schema
    assert said("1.5.1").upgrader == "div_Tensor_0_3"


def test_a_file_with_the_old_schema_stands_for_the_release_that_had_it(versions: FactHistory) -> None:
    upgraders = Upgraders(upgrader_entries(versions, "2.15.0"), Writer(Written(versions), History.load(), None))
    item = only(breaks(["aten::gelu(Tensor self) -> Tensor"], [], upgraders=upgraders))
    assert item.upgrader == "gelu_0_9"  # 1.11.0 is the newest with it, and writes no 10


def only_text(texts: list[str]) -> str:
    (item,) = texts
    return item


def test_what_cannot_be_read_is_no_pass() -> None:
    assert only(breaks(["aten::f(Tensor self"], [OLD])).known is False
    assert only(breaks([OLD], ["aten::f(Tensor self"])).known is False


def test_one_schema_in_two_spellings() -> None:
    item = "aten::f(int[] size, *, ScalarType? dtype=None, float base=10.0) -> Tensor"
    assert same_schema(item, "aten::f(SymInt[] size, *, int? dtype=None, float base=10.) -> Tensor")
    for other in (
        "aten::f(int[] size, *, ScalarType? dtype=None, float base=2.0) -> Tensor",
        "aten::f(int[] size, ScalarType? dtype=None, float base=10.0) -> Tensor",
        "aten::f(int[2] size, *, ScalarType? dtype=None, float base=10.0) -> Tensor",
        "aten::f(int[] size, *, ScalarType? dtype=None, float base=10.0) -> Tensor(a)",
        "aten::f.x(int[] size, *, ScalarType? dtype=None, float base=10.0) -> Tensor",
        "aten::f(int[] size, *, ScalarType? dtype=None",
    ):
        assert not same_schema(item, other)


# ------------------------------------------------------------------------------------------------------------- histories


def write(tmp_path: Path, incomplete: str, *facts: str) -> History:
    head = "# history 1 texts\n# releases 1.0.0 2.0.0 3.0.0 4.0.0\n# obtained\t1.0.0..\tAsked.\n"
    path = tmp_path / "schemas.txt"
    path.write_text(
        head + (f"# incomplete\t{incomplete}\tHalf.\n" if incomplete else "") + "".join(f"{fact}\n" for fact in sorted(facts))
    )
    return History(path)


def found(history: History, versions: FactHistory, since: int = 0) -> dict[str, list[tuple[str, str, bool]]]:
    return {
        newer: [(item.operator, item.what, item.carried) for item in broken]
        for _, newer, _, broken in consecutive(history, versions, since=since)
    }


def test_what_is_behind_a_gap_is_found_after_it(tmp_path: Path, versions: FactHistory) -> None:
    history = write(
        tmp_path, "2.0.0..3.0.0",
        "aten::gone() -> ()\t1.0.0", "aten::back() -> ()\t1.0.0,4.0.0..", "aten::kept() -> ()\t1.0.0..",
    )  # fmt: skip
    unknown = [("aten::back", "unknown", False), ("aten::gone", "unknown", False)]
    carried = [("aten::back", "unknown", True), ("aten::gone", "unknown", True)]
    expected = {"2.0.0": unknown, "3.0.0": carried, "4.0.0": [("aten::gone", "removed", True)]}
    assert found(history, versions) == expected
    assert found(history, versions, since=3) == {"4.0.0": expected["4.0.0"]}


def test_what_comes_back_changed_behind_a_gap_breaks(tmp_path: Path, versions: FactHistory) -> None:
    history = write(tmp_path, "2.0.0", "aten::f(int n) -> ()\t1.0.0", "aten::f(str n) -> ()\t3.0.0..")
    assert found(history, versions)["3.0.0"] == [("aten::f", "type", True)]


def test_consecutive_releases_are_compared_as_any_two_sets(versions: FactHistory) -> None:
    """The one pass over the history finds what comparing the sets finds, and what the list of changes says."""
    history = History.load()
    for older, newer, lost, broken in consecutive(history, versions):
        before, after = ({text for text, _, bits in history.facts() if bits & history.bit(release)} for release in (older, newer))
        entries, why = upgrader_entries(versions, newer), history.why_incomplete(newer)
        upgraders = Upgraders(entries, Writer(Written(versions), history, older))
        assert breaks(before, after, incomplete=why, upgraders=upgraders) == sorted(item for item in broken if not item.carried)
        assert lost == len(before - after) == lost_counts(history)[newer]
        if history.releases.index(newer) > history.releases.index("1.4.0"):  # until then overloads have no names
            listed = {
                change.old
                for change in changes(history, older, newer)
                if change.backward is not None and not change.backward.compatible
            }
            assert {item.old for item in broken if item.known and not item.carried} == listed


def test_the_upgraders_of_a_release(versions: FactHistory) -> None:
    assert {entry.upgrader for entry in upgrader_entries(versions, "2.15.0")} >= {"div_Tensor_0_3", "gelu_0_9"}
    assert "gelu_0_9" not in {entry.upgrader for entry in upgrader_entries(versions, "1.11.0")}
    assert upgrader_entries(versions, "1.5.1") == upgrader_entries(versions, "1.11.0")  # the first table that is shown


def test_an_upgrader_that_is_gone(versions: FactHistory) -> None:
    assert [entry.operator for entry in dropped_upgraders(versions, "2.12.1", "2.13.0")] == ["aten::full.names"]
    assert dropped_upgraders(versions, "2.13.0", "2.14.1") == []
    assert dropped_upgraders(versions, "1.10.2", "1.11.0") == []  # 1.10 does not show its table
