from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from torch_compat.policy import LoadOptions, MayRefuse, Policy, Tolerance, Waiver, load_policy
from torch_compat.policy.model import Covers

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
