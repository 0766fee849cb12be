"""Objects of packed parameters in archives: the states that releases write, and states that none writes.

Lives in tests/runtime/ beside harness/torch_compat/runtime/packed.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.runtime.operators.quantized_cases import channels, digest, floats, quantized
from torch_compat.errors import Raised, Refused
from torch_compat.releases.release import Release
from torch_compat.runtime.load import load
from torch_compat.runtime.packed import PackedCell, PackedConvolution, PackedHalves, PackedLinear, made
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import CustomObject

FIXTURES = Path(__file__).parents[2] / "fixtures"
PREFIX = "__torch__.torch.classes."
LINEAR, CONV, CELL = (
    f"{PREFIX}quantized.LinearPackedParamsBase",
    f"{PREFIX}quantized.Conv2dPackedParamsBase",
    f"{PREFIX}rnn.CellParamsBase",
)
WEIGHT, BIAS = channels(4, 3, 3, 2), floats(4)
NUMBERS = [2, 2, 1, 1, 0, 1, 2, 0, 0, 1, 0]
"""Spatial dimensions, stride, padding, dilation, output padding, groups, and whether it is transposed."""


def t(values: Any) -> Tensor:
    return Tensor(np.array(values, np.int16))


def singles(values: list[int]) -> list[Tensor]:
    return [Tensor(np.array([value])) for value in values]


STATES: dict[str, Any] = {
    "1.6": (WEIGHT, BIAS, singles([2, 1]), singles([1, 0]), singles([1, 2]), Tensor(np.array([1]))),
    "2": ("2", [t(NUMBERS), WEIGHT], [BIAS]),
    "3": (3, NUMBERS, [None, WEIGHT, BIAS]),
}


@pytest.mark.parametrize("version", STATES)
def test_states_of_a_convolution(version: str) -> None:
    value = made(CONV, lambda: STATES[version], "a.pt")
    assert isinstance(value, PackedConvolution)
    assert (value.stride, value.padding, value.dilation, value.groups, value.transposed) == ((2, 1), (1, 0), (1, 2), 1, False)
    x = quantized(2, 3, 6, 5)
    built = resolve("quantized::conv2d_prepack")(WEIGHT, BIAS, [2, 1], [1, 0], [1, 2], 1)
    call = resolve("quantized::conv2d", Release("2.15.0"))
    assert digest(call(x, value, 0.4, 90)) == digest(call(x, built, 0.4, 90))


def test_states_of_linear_layers_and_cells() -> None:
    eight = made(LINEAR, lambda: (quantized(5, 9, dtype="qint8", zero=0), None), "a.pt")
    half = made(LINEAR, lambda: (floats(5, 9), floats(5)), "a.pt")
    assert isinstance(eight, PackedLinear)
    assert isinstance(half, PackedHalves)
    cell = made(CELL, lambda: ("quantized_dynamic", [], [], [1], [eight, eight]), "a.pt")
    assert isinstance(cell, PackedCell)
    assert cell.reduce_range
    other = made(CELL, lambda: ("quantized", [], [], [], []), "a.pt")
    assert other.__class__ is CustomObject
    with pytest.raises(Raised, match="weights of another kind"):
        made(CELL, lambda: ("quantized_fp16", [], [], [], [eight, eight]), "a.pt")


@pytest.mark.parametrize(
    ("name", "state"),
    [
        (LINEAR, None),
        (LINEAR, (1,)),
        (LINEAR, (1, 2, 3)),
        (CONV, ()),
        (CONV, ("4", [], [])),
        (CONV, ("2", [], [])),
        (CONV, ("2", [t([3, *NUMBERS[1:]]), WEIGHT], [None])),
        (CONV, (3, [True] * 11, [None, WEIGHT, None])),
        (CONV, (3, NUMBERS[:5], [None, WEIGHT, None])),
        (CELL, ("quantized_dynamic", [], [], [], [])),
        (CELL, 7),
    ],
)
def test_states_that_no_release_writes(name: str, state: Any) -> None:
    with pytest.raises(Refused, match="a state that no release writes"):
        made(name, lambda: state, "a.pt")


@pytest.mark.parametrize(
    ("name", "state"), [(LINEAR, (3, None)), (LINEAR, (floats(3), None)), (CONV, (3, NUMBERS, [None, floats(4, 3, 3, 2), None]))]
)
def test_weights_that_releases_refuse(name: str, state: Any) -> None:
    with pytest.raises(Raised):
        made(name, lambda: state, "a.pt")


def test_a_scale_beyond_float32_is_infinite() -> None:
    layer = made(LINEAR, lambda: (quantized(5, 9, dtype="qint8", scale=1e300, zero=0), None), "a.pt")
    assert isinstance(layer, PackedLinear)
    assert np.isinf(layer.scales).all()


def test_the_state_of_any_other_class_is_not_looked_at() -> None:
    assert made(f"{PREFIX}xnnpack.LinearOpContext", lambda: 1 / 0, "a.pt").__class__ is CustomObject


@pytest.mark.parametrize("release", ["1.6.0", "1.7.1", "1.11.0", "1.12.1", "2.15.0"])
def test_objects_that_releases_wrote(release: str) -> None:
    module = load(FIXTURES / f"torch-{release}" / "packed_parameters.pt", f"reference@{release}")
    kinds = {value.__class__ for value in vars(module.program.main).values()}
    assert {PackedLinear, PackedConvolution} <= kinds


def test_work_and_memory_are_paid_for() -> None:
    wide = resolve("quantized::conv2d_prepack")(WEIGHT, None, [1, 1], [1 << 40, 0], [1, 1], 1)
    with pytest.raises(Raised, match="needs more memory than the limit"):
        resolve("quantized::conv2d")(quantized(1, 3, 6, 5), wide, 0.1, 0)
    spread = resolve("quantized::conv_transpose2d_prepack")(
        quantized(3, 2, 3, 3, dtype="qint8", zero=0), None, [1 << 40, 1], [0, 0], [0, 0], [1, 1], 1
    )
    with pytest.raises(Raised, match="needs more memory than the limit"):
        resolve("quantized::conv_transpose2d", Release("1.13.1"))(quantized(1, 3, 6, 5), spread, 0.1, 0)
