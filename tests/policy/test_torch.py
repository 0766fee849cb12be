"""What the policy of this repository must state, whatever else it states."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from torch_compat.policy import Policy


def test_every_format_version_is_listed_once(torch: Policy) -> None:
    listed = [(item.kind, item.version) for item in torch.formats]
    assert listed == [
        *(("bytecode", version) for version in range(3, 10)),
        ("byteorder", "big"),
        *(("container", name) for name in ("directory", "flatbuffer", "stream", "tar", "zip")),
        *(("export-schema", version) for version in (1, 2, 5, 7, 8)),
        *(("file-format", version) for version in range(1, 11)),
    ]


def test_a_version_is_read_no_later_than_it_is_written(torch: Policy) -> None:
    for item in torch.formats:
        if item.written_from:
            assert not torch.calendar.is_newer(item.read_from.release, item.written_from.release), item


def test_a_release_that_reads_a_version_reads_all_from_one_on(torch: Policy) -> None:
    for kind in ("file-format", "bytecode", "export-schema"):
        learned = [torch.calendar[item.read_from.release].parsed for item in torch.formats if item.kind == kind]
        assert learned == sorted(learned)


def test_days_lie_before_the_release_that_followed(torch: Policy) -> None:
    dated = [
        milestone for item in torch.formats for milestone in (item.read_from, item.written_from) if milestone and milestone.day
    ]
    assert dated
    for milestone in dated:
        assert milestone.day is not None
        assert milestone.day <= torch.calendar[milestone.release].date


def test_only_default_leaves_weights_only_to_the_release(torch: Policy) -> None:
    introduced = torch.calendar["1.13.0"]
    for options in torch.options:
        passed = options.load.given()
        if options.id == "default":
            assert passed == {}
            assert options.since is None
        elif "torch-save" in options.families and options.since and torch.calendar[options.since].parsed >= introduced.parsed:
            assert passed["weights_only"] is (options.id == "weights-only")


@pytest.mark.parametrize(
    ("version", "names"),
    [
        ("1.2.0", ["default"]),
        ("1.12.1", ["default"]),
        ("1.13.0", ["default", "weights-only"]),
        ("2.6.0", ["default", "weights-only", "little-endian", "mmap"]),
        ("2.13.0", ["default", "weights-only", "little-endian", "mmap", "mmap-calculated"]),
    ],
)
def test_each_release_reads_checkpoints_with_the_options_it_has(torch: Policy, version: str, names: list[str]) -> None:
    assert [options.id for options in torch.option_sets("torch-save", torch.calendar[version])] == names
    assert [options.id for options in torch.option_sets("torchscript", torch.calendar[version])] == ["default"]


def test_the_window_and_the_first_day_are_those_of_the_published_policy(torch: Policy) -> None:
    assert torch.forward_window_days == 14
    assert torch.in_force_from == dt.date(2022, 6, 28) == torch.calendar["1.12.0"].date


def test_an_empty_forward_window_is_expected_exactly_while_it_is_empty(torch: Policy) -> None:
    corpus = {*torch.corpus.writers, *torch.corpus.readers}
    pairs = [
        (reader, writer)
        for reader in torch.corpus.readers
        for writer in torch.corpus.writers
        if reader in corpus
        and torch.calendar.is_newer(writer, reader)
        and torch.calendar.days_between(reader, writer) <= torch.forward_window_days
    ]
    (rule,) = (rule for rule in torch.rules if rule.id == "forward-window")
    assert (rule.expect_empty is None) == bool(pairs)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
def test_every_inexact_dtype_has_a_tolerance(torch: Policy, dtype: str) -> None:
    assert torch.tolerance("torchscript", ["aten::add.Tensor"], dtype)
    assert torch.tolerance("torch-save", ["aten::add.Tensor"], dtype) is None  # what is stored does not round


@pytest.mark.parametrize("dtype", ["int64", "bool", "uint8", "quint8"])
def test_exact_dtypes_have_none(torch: Policy, dtype: str) -> None:
    assert torch.tolerance("torchscript", ["aten::add.Tensor"], dtype) is None
