"""Operators of programs whose results differ between releases that load them."""

from __future__ import annotations

from pathlib import Path

from torch_compat.formats.model import Call, Facts, Producer
from torch_compat.loadability import of
from torch_compat.loadability.changes import ChangeOfMeaning, changes_of
from torch_compat.operators.changes_of_meaning import changes_by_operator

FIXTURES = Path(__file__).parents[2] / "fixtures"


def program(operator: str, producer: Producer | None = None, version: int = 3) -> tuple[ChangeOfMeaning, ...]:
    names = ("data.pkl", "code/a.py", "constants.pkl", "version")
    facts = Facts(
        "a.pt", 1, "torchscript", "zip", versions={"file-format": version}, names=names, records=frozenset(names),
        sources={"code/a.py": ""}, calls=frozenset({Call(operator, None, 2, ())}),
    )  # fmt: skip
    facts.producer = producer
    return changes_of(facts, of(facts))


def test_a_change_between_releases_that_load_a_program_is_told_with_what_it_was() -> None:
    (meaning,) = [item for item in program("aten::floor_divide") if item.id == "floor-divide-rounds-down"]
    assert (meaning.since, meaning.kind, meaning.written) == ("1.13.0", "value", None)
    assert "down" in meaning.after
    assert "zero" in meaning.before


def test_the_form_in_place_is_meant_too() -> None:
    assert "floor-divide-rounds-down" in {item.id for item in program("aten::floor_divide_")}
    assert program("aten::numel") == ()


def test_a_change_that_only_arguments_out_of_range_show_is_left_out() -> None:
    (stated,) = (item for item in changes_by_operator()["aten::arange"] if item.id == "infinite-steps-refused")
    assert stated.out_of_range
    assert "arange-length" in {item.id for item in program("aten::arange")}
    assert "infinite-steps-refused" not in {item.id for item in program("aten::arange")}


def test_what_the_writer_already_did_comes_last() -> None:
    def written(first: str | None, last: str | None, torch: str | None = None) -> str | None:
        return next(
            item.written
            for item in program("aten::floor_divide", Producer(torch, first, last))
            if item.id == "floor-divide-rounds-down"
        )

    assert written("1.6", "1.11") == "before"
    assert written("1.13", None) == "after"
    assert written("1.6", "1.13") is None
    assert written(None, None) is None
    assert written(None, None, "1.12.1+cu116") == "before"
    assert written(None, None, "2.1.0") == "after"


def test_a_change_that_no_two_loading_releases_differ_by_is_not_told() -> None:
    assert "comparisons-give-bool" not in {
        item.id for item in program("aten::eq")
    }  # which 1.5.0 and newer load, and 1.2.0 changed


def test_a_change_that_the_file_format_announces_is_not_told() -> None:
    assert not {item.id for item in program("aten::div")} & {"div-of-integers", "true-division"}
