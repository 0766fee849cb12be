from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pydantic import ValidationError

from torch_compat.policy import Format, LoadOptions, MayRefuse, Policy, Tolerance, Waiver, load_policy
from torch_compat.policy.model import Covers, Milestone
from torch_compat.releases.release import Release
from torch_compat.values.compare import Distances

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_values_cannot_be_changed(small: Policy) -> None:
    with pytest.raises(ValidationError, match="frozen"):
        small.rules[0].asks = "less"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        small.forward_window_days = 0  # type: ignore[misc]


def test_a_release_knows_its_line_and_its_name(small: Policy) -> None:
    release = small.calendar["1.10.1"]
    assert (release.line, release.name) == ("1.10", "torch-1.10.1")


def test_options_that_are_not_given_are_not_passed(small: Policy) -> None:
    assert LoadOptions().given() == {}
    assert LoadOptions(weights_only=False, mmap_flags="shared").given() == {"weights_only": False, "mmap_flags": "shared"}
    assert [options.load.given() for options in small.options] == [{}, {"mmap": True}]


def test_option_sets_are_those_that_family_and_release_have(small: Policy) -> None:
    def names(family: Any, version: str) -> list[str]:
        return [options.id for options in small.option_sets(family, small.calendar[version])]

    assert names("torch-save", "1.9.0") == ["default"]
    assert names("torch-save", "1.10.0") == ["default", "mmap"]
    assert names("torch-save", "1.10.1") == ["default", "mmap"]
    assert names("torchscript", "1.10.1") == ["default"]
    assert names("export", "1.10.1") == []


def test_a_waiver_ends_on_the_day_it_expires() -> None:
    known: dict[str, Any] = {
        "id": "w",
        "title": "It is known",
        "covers": (Covers.model_validate({"outcome": "refused", "recipes": ["a"], "writers": "1.9.0", "readers": "1.10.0.."}),),
        "reason": "r",
        "evidence": "e",
        "owner": "o",
    }
    dated = Waiver(**known, expires=dt.date(2027, 1, 1))
    assert not dated.expired(dt.date(2026, 12, 31))
    assert dated.expired(dt.date(2027, 1, 1))
    assert not Waiver(**known).expired(dt.date(9999, 1, 1))


@pytest.mark.parametrize(
    ("container", "message", "covered"),
    [("stream", "it says: no mmap, sorry", True), ("zip", "it says: no mmap, sorry", False), ("stream", "too new", False)],
)
def test_a_refusal_is_expected_of_the_containers_that_are_named(container: str, message: str, covered: bool) -> None:
    assert MayRefuse(message="no mmap", containers=("stream", "tar"), reason="so").covers(container, message) is covered
    assert MayRefuse(message="no mmap", reason="so").covers(container, message) is ("mmap" in message)


def tolerance(max_ulp: int, *operators: str, dtype: Any = "float32", max_abs: float = 0.0) -> Tolerance:
    return Tolerance(dtype=dtype, operators=operators, max_ulp=max_ulp, max_abs=max_abs, max_rel=0.0, reason="because")


WITHIN, ON_BOTH = (1.0, 1.0, 4), (0.01, 0.1, 5)
"""Elements as absolute, relative and ULP distances: within 4 ULP, and beyond them exactly on both other bounds."""
FAR, RELATIVELY_FAR = (0.02, 0.1, 5), (0.01, 0.2, 5)


@pytest.mark.parametrize(
    ("elements", "covered"),
    [
        ([], True),
        ([WITHIN], True),
        ([ON_BOTH], True),
        ([FAR], False),
        ([RELATIVELY_FAR], False),
        ([WITHIN, ON_BOTH], True),
        ([WITHIN, ON_BOTH, FAR], False),
        ([RELATIVELY_FAR, WITHIN, ON_BOTH], False),
    ],
)
def test_every_element_is_within_the_ulp_bound_or_within_both_others(
    elements: list[tuple[float, float, float]], covered: bool
) -> None:
    gap, relative, steps = np.array(elements, np.float64).reshape(-1, 3).T
    bounds = Tolerance(dtype="float32", operators=("*",), max_ulp=4, max_abs=0.01, max_rel=0.1, reason="because")
    assert bounds.covers(Distances("value", "float32", gap, relative, steps)) is covered


def test_what_is_only_stored_has_no_tolerance(small: Policy) -> None:
    assert small.tolerance("torchscript", [], "float32") is not None
    assert [small.tolerance(family, [], "float32") for family in ("torch-save", "distributed")] == [None, None]


def test_a_kind_of_difference_is_disregarded_for_the_families_that_are_named(
    write: Callable[[dict[str, str]], Path], files: dict[str, str]
) -> None:
    files["promises.toml"] += '\n[[tolerance]]\nkind = "strides"\nfamilies = ["torchscript"]\nreason = "so"\n'
    policy = load_policy(write(files))
    asked = [("strides", "torchscript"), ("strides", "torch-save"), ("sharing", "torchscript")]
    assert [policy.disregards(*item) for item in asked] == [True, False, False]


def test_a_format_is_read_up_to_the_last_release_that_reads_it() -> None:
    known: dict[str, Any] = {"kind": "container", "version": "tar", "meaning": "so", "no_writer": "so"}
    for until, readers in ((None, "1.9.0.."), (Milestone(release="1.10.1"), "1.9.0..1.10.1")):
        entry = Format(**known, read_from=Milestone(release="1.9.0"), read_until=until)
        assert str(entry.readers) == readers
        assert (Release("1.11.0") in entry.readers) is (until is None)


@pytest.mark.parametrize(
    ("operators", "dtype", "max_ulp"),
    [
        ([], "float32", 4),
        (["aten::add.Tensor"], "float32", 4),
        (["aten::gelu"], "float32", 8),
        (["aten::gelu.out"], "float32", 16),
        (["aten::gelu.other"], "float32", 8),
        (["aten::gelu_"], "float32", 4),
        (["aten::add.Tensor", "aten::gelu", "aten::tanh"], "float32", 9),
        (["aten::gelu"], "float64", 1),
        (["aten::gelu"], "float16", None),
        (["aten::gelu"], "int64", None),
    ],
)
def test_the_most_specific_tolerance_wins_and_of_equals_the_widest(
    write: Callable[[dict[str, str]], Path], files: dict[str, str], operators: list[str], dtype: str, max_ulp: int | None
) -> None:
    files["promises.toml"] = files["promises.toml"].replace(
        "[[tolerance]]",
        """
        [[tolerance]]
        dtype = "float32"
        operators = ["aten::gelu", "aten::erf"]
        max_ulp = 8
        max_abs = 0
        max_rel = 0
        reason = "one"
        [[tolerance]]
        dtype = "float32"
        operators = ["aten::gelu.out"]
        max_ulp = 16
        max_abs = 0
        max_rel = 0
        reason = "two"
        [[tolerance]]
        dtype = "float32"
        operators = ["aten::tanh"]
        max_ulp = 9
        max_abs = 0
        max_rel = 0
        reason = "three"
        [[tolerance]]
        dtype = "float64"
        operators = ["*"]
        max_ulp = 1
        max_abs = 0
        max_rel = 0
        reason = "four"
        [[tolerance]]""",
    )
    result = load_policy(write(files)).tolerance("torchscript", operators, dtype)
    assert (result and result.max_ulp) == max_ulp


def test_a_tolerance_without_a_star_fits_no_other_operator() -> None:
    assert tolerance(1, "aten::gelu").specificity(["aten::add.Tensor"]) == 0
    assert tolerance(1, "aten::gelu", "*").specificity(["aten::add.Tensor"]) == 1


def test_the_digest_is_of_what_is_said_not_of_how(
    write: Callable[[dict[str, str]], Path], files: dict[str, str], small: Policy
) -> None:
    releases, promises = files["releases.toml"].split("\n\n"), files["promises.toml"]
    folder = write(
        {"releases.toml": "# reversed\n" + "\n".join(reversed(releases)), "formats.toml": "", "promises.toml": promises}
    )
    write({"a.toml": files["formats.toml"].replace(" = ", "="), "z.toml": ""})
    again = load_policy(folder)
    assert again.digest == small.digest
    assert len(small.digest) == 64


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("releases.toml", "2021-12-15", "2021-12-16"),
        ("formats.toml", "day = 2021-06-01", "day = 2021-06-02"),
        ("promises.toml", "forward_window_days = 14", "forward_window_days = 13"),
        ("promises.toml", "in_force_from = 2021-06-15", "in_force_from = 2021-06-16"),
        ("promises.toml", 'name = "small"', 'name = "smaller"'),
        ("promises.toml", 'writers = ["1.9.0"]', 'writers = ["1.10.0"]'),
        ("promises.toml", "load = { mmap = true }", "load = { mmap = false }"),
        ("promises.toml", "max_ulp = 4", "max_ulp = 5"),
        ("promises.toml", 'source = "here"', 'source = "here"\nparameters = { window = 14 }'),
        ("waivers.lock", "0123456789ab", "0123456789ac"),
        ("waivers.lock", "ba9876543210", "ba9876543211"),
        ("waivers.lock", "recipes add div", "recipes add"),
    ],
)
def test_the_digest_changes_with_anything_that_is_said(
    *, write: Callable[[dict[str, str]], Path], files: dict[str, str], small: Policy, file: str, old: str, new: str
) -> None:
    before = small.digest
    assert old in files[file]
    assert load_policy(write(files | {file: files[file].replace(old, new)})).digest != before
