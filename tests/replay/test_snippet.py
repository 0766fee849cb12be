"""Plain programs that show a cell do the same as the worker."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from torch_compat.corpus.manifest import Fixture
from torch_compat.policy.model import LoadOptions, OptionSet
from torch_compat.replay.snippet import LONGEST, snippet

ARCHIVE = Path("/somewhere/with spaces/div.pt")


def fixture(family: str = "torchscript", *calls: list[Any]) -> Fixture:
    asked = [{"method": "forward", "args": args} for args in calls]
    return Fixture(
        "2.13.0",
        "div",
        "0" * 64,
        "div.pt",
        "0" * 64,
        100,
        "0" * 64,
        "0" * 12,
        "2026-11-23",
        family,
        "zip",
        {},
        [],
        asked,
        {},
        "same",
    )


def options(**load: Any) -> OptionSet:
    return OptionSet(id="some", families=["torch-save"], load=LoadOptions(**load))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "expression"),
    [
        (None, "None"),
        (True, "True"),
        ("a'b\n", repr("a'b\n")),
        ({"float": "nan"}, "float('nan')"),
        ({"float": 1.5}, "1.5"),
        ({"complex": [0.0, "inf"]}, "complex(float('0.0'), float('inf'))"),
        ({"tuple": [1]}, "(1,)"),
        ({"dict": [["a", [1, 2]]]}, "{'a': [1, 2]}"),
        ({"dtype": "float16"}, "torch.float16"),
        (
            {"tensor": {"dtype": "int64", "shape": [1], "strides": [1], "bytes": "AQAAAAAAAAA=", "requires_grad": True}},
            "tensor(torch.int64, [1], [1], 'AQAAAAAAAAA=').requires_grad_()",
        ),
    ],
)
def test_arguments_are_written_out(value: Any, expression: str) -> None:
    text = snippet(fixture("torchscript", [value]), ARCHIVE, options(), "python 1.py")
    assert text is not None
    ast.parse(text)
    assert f"getattr(loaded, 'forward')({expression})" in text
    assert "ARCHIVE = '/somewhere/with spaces/div.pt'" in text
    assert ("def tensor(" in text) is ("tensor" in expression)


def test_load_options_are_those_of_the_cell() -> None:
    text = snippet(fixture("torch-save"), ARCHIVE, options(weights_only=False, endianness="little"), "python 1.py")
    assert text is not None
    assert "torch.load(ARCHIVE, weights_only=False)" in text
    assert "set_default_load_endianness(torch.serialization.LoadEndianness.LITTLE)" in text


@pytest.mark.parametrize(
    ("one", "load"),
    [
        (fixture("package"), {}),
        (fixture("torch-save"), {"crc32": True}),
        (fixture("torchscript", [{"object": {"type": "x", "state": None}}]), {}),
        (fixture("torchscript", [{"dtype": "float16; import os"}]), {}),
        (fixture("torchscript", ["x" * LONGEST]), {}),
        (replace(fixture(), family="unknown"), {}),
    ],
)
def test_what_takes_more_than_a_few_lines_is_left_to_the_harness(one: Fixture, load: dict[str, Any]) -> None:
    assert snippet(one, ARCHIVE, options(**load), "python 1.py") is None
