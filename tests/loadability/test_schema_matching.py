"""Whether a call matches a schema."""

from __future__ import annotations

import pytest

from torch_compat.loadability.schema_matching import fits, takes
from torch_compat.operators.call_signature import signature_of
from torch_compat.torchscript.calls import CallShape
from torch_compat.torchscript.scanner import scan

ADD = "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
SLICE = "aten::slice.Tensor(Tensor(a) self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor(a)"
OLD_SLICE = "aten::slice.Tensor(Tensor(a) self, int dim=0, int start=0, int end=9223372036854775807, int step=1) -> Tensor(a)"
CONV = 'aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, str mode="a, (b", int groups=1) -> Tensor'
ALIKE = (
    "static_runtime::clamp_nan_to_num(Tensor input, Scalar? min, Scalar? max, float? nan, float? posinf, float? posinf) -> Tensor"
)
LISTS = "aten::append.t(t[](a!) self, t(c -> *) el) -> t[](a!)"


@pytest.mark.parametrize(
    ("call", "schema", "fit"),
    [
        ("torch.permute(x, 1, 0)", "aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)", True),
        ("torch.permute(x, 1, 0.5)", "aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)", False),
        ("torch.flip(x, 1, 0, y)", "aten::flip(Tensor self, int[] dims, Tensor y) -> Tensor", False),
        ("torch.add(x, y)", ADD, True),
        ("torch.add(x, y, alpha=1)", ADD, True),
        ("torch.add(x, y, 1)", ADD, False),
        ("torch.add(x, y, beta=1)", ADD, False),
        ("torch.add(x)", ADD, False),
        ("torch.add(x, 1)", ADD, False),
        ("torch.add(x, other=y)", ADD, True),
        ("torch.slice(x, 0, None, 2)", SLICE, True),
        ("torch.slice(x, 0, None, 2)", OLD_SLICE, False),
        ("torch.slice(x, 0, 1, 2)", OLD_SLICE, True),
        ("torch.conv2d(x, w, None, 2)", CONV, True),
        ("torch.conv2d(x, w, None, 2.)", CONV, False),
        ("torch.append(x, None)", LISTS, True),
        ("ops.static_runtime.clamp_nan_to_num(x, 0, 1, None, None, None)", ALIKE, True),
        ("ops.static_runtime.clamp_nan_to_num(x, 0, 1, None, None)", ALIKE, False),
    ],
)
def test_fits(call: str, schema: str, fit: bool) -> None:
    (called,) = scan(call).shapes
    assert fits(called, signature_of(schema)) is fit


@pytest.mark.parametrize(
    ("type_", "kinds"),
    [
        ("Tensor", ""),
        ("Tensor?", "N"),
        ("int", "i"),
        ("int?", "iN"),
        ("int[2]", "i"),
        ("int[]", ""),
        ("float", "f"),
        ("Scalar", "ifc"),
        ("number", "ifc"),
        ("bool", "b"),
        ("str", "s"),
        ("Device", "s"),
        ("ScalarType", "is"),
        ("Generator", "N"),
        ("t", "ifbscN"),
        ("Any", "ifbscN"),
    ],
)
def test_what_a_type_takes(type_: str, kinds: str) -> None:
    assert {kind for kind in "ifbscN" if takes(type_, kind)} == set(kinds)
    assert takes(type_, "x"), "what does not show its kind may be anything"


@pytest.mark.parametrize(("type_", "kinds"), [("bool", "B"), ("bool?", "IFBSC"), ("str", "S"), ("Scalar", "IFC"), ("Tensor", "")])
def test_what_takes_a_parameter_that_may_be_none(type_: str, kinds: str) -> None:
    assert {kind for kind in "IFBSC" if takes(type_, kind)} == set(kinds)


STFT = "aten::stft(Tensor self, int n_fft, int? hop_length=None, Tensor? window=None, bool normalized=False, bool? onesided=None) -> Tensor"
STFT_CENTER = 'aten::stft.center(Tensor self, int n_fft, int? hop_length=None, Tensor? window=None, bool center=True, str pad_mode="reflect") -> Tensor'


def test_a_parameter_that_may_be_none_tells_overloads_apart() -> None:
    """As of 2.7 ``torch.stft`` passes another argument, which older releases take for the ``pad_mode`` of the other overload."""
    (called,) = scan("""
def stft(x: Tensor, hop: Optional[int]=None, normalized: bool=False, onesided: Optional[bool]=None) -> Tensor:
  return torch.stft(x, 16, hop, None, normalized, onesided)
""").shapes
    assert fits(called, signature_of(STFT))
    assert not fits(called, signature_of(STFT_CENTER))


def test_a_conversion_of_some_releases_is_given_with_them() -> None:
    (called,) = scan("torch.full([2], True)").shapes
    full = signature_of("aten::full(int[] size, Scalar fill_value) -> Tensor")
    assert not fits(called, full)
    assert fits(called, full, {"b": {"Scalar"}})


def test_an_optional_of_any_type_takes_what_that_type_takes() -> None:
    schema = signature_of("prim::unchecked_unwrap_optional(t(a)? optional) -> t(a)")
    for kind in "ifbcsNlx":
        assert fits(CallShape("prim::unchecked_unwrap_optional", kind, ()), schema), kind


def test_the_result_of_an_operator_shows_its_kind() -> None:
    """As of 1.9, releases compare two bools with an operator; 1.6 and 1.8 refuse the call."""
    source = "def f(self, a: int, b: int) -> bool:\n  return torch.eq(torch.lt(a, b), torch.lt(b, torch.len([a])))\n"
    assert {str(shape) for shape in scan(source).shapes} == {"aten::eq(bool, bool)", "aten::lt(int, int)", "aten::len(list)"}


@pytest.mark.parametrize(
    "argument", ["torch.lt(x, a)", "(self).f(torch.lt(a, b), )", "torch.split(x, a)[0]", "torch.max(x, 0)[1]", "-torch.neg(a)"]
)
def test_other_results_do_not(argument: str) -> None:
    source = f"def f(self, a: int, b: int, x: Tensor) -> bool:\n  return torch.eq({argument}, 1)\n"
    assert "aten::eq(_, int)" in {str(shape) for shape in scan(source).shapes}
