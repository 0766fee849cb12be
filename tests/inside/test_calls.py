"""Querying a release for recorded calls, as far as possible without a release."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

calls: Any = importlib.import_module("torch_compat.inside.calls")  # has no types, since it runs inside old releases
TENSOR = {"tensor": {"dtype": "float32", "shape": [2, 3], "strides": [3, 1], "bytes": "", "storage": 1, "offset": 0}}


class Torch:
    """A torch that compiles nothing, so that every way to an operator is tried."""

    class jit:  # noqa: N801 - as torch names it
        @staticmethod
        def CompilationUnit(_source: str) -> None:  # noqa: N802 - as torch names it
            raise RuntimeError("object has no attribute neg")

    @staticmethod
    def stft() -> None:
        """A function of Python."""


def test_a_call_is_spelled_with_its_names_in_order() -> None:
    call = {
        "args": [["Tensor", TENSOR], ["None", None], ["Device", {"device": "cpu"}]],
        "keywords": {"out": ["Tensor", TENSOR], "alpha": ["int", 2]},
    }
    parameters, arguments, given = calls.spelled(call)
    assert parameters == ["a0: Tensor", "a1: int", "a2: Tensor"]
    assert arguments == ["a0", "None", 'torch.device("cpu")', "alpha=a1", "out=a2"]
    assert given == [TENSOR, 2, TENSOR]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("aten::add.Tensor", ["torch.ops.aten.add(a0, a1)", "torch.add(a0, a1)", "torch._C._nn.add(a0, a1)", "a0.add(a1)"]),
        ("aten::stft", ["torch.ops.aten.stft(a0, a1)", "torch._C._nn.stft(a0, a1)", "a0.stft(a1)"]),
        ("prim::min.int", ["torch.ops.prim.min(a0, a1)"]),
    ],
)
def test_where_torch_ops_does_not_reach_an_operator_others_are_tried(
    name: str, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "REACHES", [])
    assert list(calls.ways(Torch, name, ["a0", "a1"])) == expected


def test_of_a_tensor_its_own_memory_is_nobodys_matter() -> None:
    assert calls.shown(TENSOR, 1) == {"tensor": {"dtype": "float32", "shape": [2, 3], "bytes": ""}}
    assert calls.shown(TENSOR, 2) == TENSOR
    turned = {"tensor": {**TENSOR["tensor"], "strides": [1, 2]}}
    assert calls.shown([turned], 0)[0]["tensor"]["strides"] == [1, 2]


@pytest.mark.parametrize(
    ("shape", "strides", "is_so"),
    [([2, 3], [3, 1], True), ([2, 3], [1, 2], False), ([1, 3], [7, 1], True), ([0, 3], [9, 9], True)],
)
def test_contiguous_as_torch_means_it(shape: list[int], strides: list[int], is_so: bool) -> None:
    assert calls.contiguous(shape, strides) is is_so
