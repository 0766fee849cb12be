"""Cases found by generated calls and programs (tools/differential/__main__.py), with torch 2.13.0's results, for machines without it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.runtime.archives import program
from torch_compat.errors import Raised
from torch_compat.releases.release import Release
from torch_compat.runtime.operators.views import of_view
from torch_compat.runtime.registry import grad, resolve
from torch_compat.runtime.tensor import Tensor


def value(expression: str, horizon: str = "reference@2.13.0") -> Any:
    tensor = program(f"def forward(self) -> Any:\n  return {expression}", horizon).run("forward")
    return tensor.array.tolist() if hasattr(tensor, "array") else tensor


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("torch.div(1, 0)", math.inf), ("torch.div(-1, 0)", -math.inf), ("torch.remainder(-1e-20, 1.)", 0.0),
        ("torch.remainder(1, 9223372036854775807)", -1), ("torch.divmod(-7.5, 2.)", (-4.0, 0.5)), ("torch.floordiv(1., 0.1)", 10.0),
        ("torch.floor(9223372036854775807)", -(2**63)), ("torch.ceil(9007199254740993)", 9007199254740993),
        ("torch.mul(complex(1., inf), 2.)", complex(2, math.inf)), ("complex(2147483648, 1)", complex(-2147483648, 1)),
        ("torch.sum([2147483648, 5])", -2147483643), ("torch.sum([1.5, 2.5])", 4.0), ("torch.lgamma(0.)", math.inf), ("torch.atanh(1.)", math.inf),
        ("torch.log1p(-1.)", -math.inf), ("torch.log(8., 2.)", 3.0), ("torch.log(8, 1)", math.inf), ("torch.exp(complex(0., 0.))", 1 + 0j),
        ("torch.angle(-3)", math.pi), ("torch.polar(2, 0)", 2 + 0j), ("torch.frexp(6.5)", (0.8125, 3)), ("torch.ldexp(1.5, 3)", 12.0),
        ("torch.mathremainder(5., 3.)", -1.0), ("torch.__derive_index(2, 10, -3)", 4), ("torch.__range_length(10, 0, -3)", 4),
        ("torch.zfill('-7', 4)", "00-7"), ("torch.find('', '', 1, 0)", 1), ("torch.find('abc', 'b', 1, 0)", -1), ("torch.rfind('abc', '', 0, -3)", 1),
        ("torch.count('aaaa', 'aa', 1, 2)", 1), ("torch.startswith('abc', 'b', 1, 0)", True), ("torch.endswith('aXbX', 'X', 2, 1)", True),
        ("torch.partition('abc', '')", ("", "", "abc")), ("torch.replace('aaa', '', 'b', 1)", "baaa"), ("torch.splitlines('a\\015\\nb', False)", ["a", "", "b"]),
        ("torch.len(torch.split(' a\\t b\\034c\\037d\\302\\240e\\303\\251f '))", 4), ("torch.len(torch.split(' a\\t b\\034c\\037d\\302\\240e\\303\\251f ')[2])", 7),
        ("torch.splitlines('a\\n', True)", ["a", "\n"]), ("torch.str(torch.neg(0.))", "0."), ("torch.str(1e15)", "1000000000000000."), ("torch.str(1e19)", "1e+19"), ("torch.str(-9223372036854775808.)", "-9223372036854775808."), ("torch.popitem({3: 1, 1: 2})", (3, 1)),
        ("ops.prim.abs(torch.tensor([-1.]))", [1.0]), ("torch.complex(torch.tensor(1.), torch.tensor(inf))", complex(1, math.inf)),
        ("torch.vdot(torch.complex(torch.ones([1]), torch.ones([1])), torch.complex(torch.ones([1]), torch.ones([1])))", 2 + 0j),
        ("torch.mH(torch.complex(torch.ones([1, 1]), torch.ones([1, 1])))", [[1 - 1j]]), ("torch.logsumexp(torch.zeros([2]), [0])", pytest.approx(math.log(2))),
        ("torch.sum_to_size(torch.tensor([1, 2]), [])", 3), ("torch.std(torch.ones([0]), None, correction=-1)", pytest.approx(math.nan, nan_ok=True)),
        ("torch.arange(3, out=torch.zeros([3, 1]))", [[0.0], [1.0], [2.0]]), ("torch.tensordot(torch.ones([2, 1]), torch.ones([3]), [1], [0])", [3.0, 3.0]),
        ("torch.polygamma(1, torch.tensor([0.25]))", pytest.approx([17.197329])), ("torch.block_diag(annotate(List[Tensor], []))", [[]]),
        ("torch.float_power(torch.tensor([4.]), -0.5)", [0.5]), ("torch.div(1., torch.round(-0.25))", -math.inf),
        ("torch.str(torch.div(0., 0.))", "-nan"), ("torch.str(torch.neg(torch.remainder(1., 0.)))", "nan"), ("torch.str(torch.pow(-2., 0.5))", "-nan"),
        ("torch.nanquantile(torch.div(torch.zeros([2]), 0), 0.5)", pytest.approx(math.nan, nan_ok=True)),
        ("torch.str(nan)", "nan"), ("torch.div(1., torch.floordiv(0., -1.))", -math.inf), ("torch.floordiv(1., torch.neg(inf))", -0.0),
        ("torch.index(torch.ones([1, 2]), [torch.tensor(True), torch.tensor([0])])", [[1.0, 1.0]]),
        ("torch.index_put(torch.ones([2]), [torch.tensor(True)], torch.tensor(2.))", [2.0, 2.0]), ("torch.mul(torch.ones([2], dtype=5), 70000)", [math.inf, math.inf]),
    ],
)  # fmt: skip
def test_values(expression: str, expected: Any) -> None:
    got = value(expression)
    assert type(got) is type(expected) or not isinstance(expected, int | float | str | tuple | list)
    assert got == expected


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("torch.xlogy(torch.ones([1]), torch.complex(torch.ones([1]), torch.ones([1])))", "not implemented for 'ComplexFloat'"),
        ("torch.floor(nan)", "Cannot convert float nan to integer"), ("torch.ceil(1e30)", "Cannot convert float"), ("torch.mul([1], -1)", "vector::reserve"),
        ("torch.mul(-1, [1])", "vector::reserve"), ("torch.pow(0., -1.)", "negative power"), ("torch.split('a', '')", "empty separator"),
        ("torch.eq([torch.ones([2])], [torch.ones([2])])", "ambiguous"), ("torch.add(torch.zeros([1], dtype=5), 1, alpha=1099511627776)", "overflow"),
        ("torch.fill_(torch.zeros([1], dtype=0), -1.)", "overflow"), ("torch.clamp_min(torch.zeros([1], dtype=3), 1099511627776)", "overflow"),
        ("torch.inner(torch.ones([1, 1]), torch.ones([1, 1], dtype=7))", "same dtype"), ("torch.tril_(torch.ones([2]))", "at least 2 dimensions"),
        ("torch.fft_fftn(torch.ones([2, 2]), None, [0, 0])", "unique"), ("torch.isclose(torch.ones([1]), torch.ones([1]), -1.)", "rtol"),
        ("torch.binary_cross_entropy(torch.ones([1]), torch.neg(torch.ones([1])))", "elements of target"), ("torch.squeeze(torch.ones([2]), [0, -1])", "multiple times"),
        ("torch.index(torch.ones([1]), annotate(List[Tensor], []))", "at least one index"), ("torch.multi_margin_loss(torch.ones([1, 1]), torch.tensor([0]), 3)", "p == 1"),
        ("torch.adaptive_avg_pool2d(torch.ones([1, 2, 2]), [-1, 1])", "greater than or equal to 0"), ("torch.index(torch.ones([2]), [torch.tensor(True)])", "0-dim masks are not valid indices"),
        ("torch.index(torch.ones([2]), [torch.tensor(0), torch.tensor(0)])", "too many indices"), ("torch.sum_to_size(torch.ones([2]), [3])", "not expandable"),
    ],
)  # fmt: skip
def test_refusals(expression: str, said: str) -> None:
    with pytest.raises(Raised, match=said):
        value(expression)


def test_a_result_goes_into_out_for_every_operator() -> None:
    """Also where the function that computes it knows nothing of ``out``."""
    assert value("torch.roll(torch.tensor([1., 2., 3.]), [1], [0], out=torch.zeros([0]))") == [3.0, 1.0, 2.0]
    assert value("torch.avg_pool1d(torch.ones([1, 4]), [2], out=torch.zeros([0]))") == [[1.0, 1.0]]
    assert value("(torch.linalg_qr(torch.eye(2), 'r', Q=torch.zeros([0]), R=torch.zeros([0])))[1]") == np.abs(np.eye(2)).tolist()


def test_popitem_up_to_1_5_takes_the_least_key() -> None:
    assert value("torch.popitem({3: 1, 1: 2})", "reference@1.5.1") == (1, 2)


def test_zero_has_negative_powers_up_to_1_9() -> None:
    assert value("torch.pow(0., -1.)", "reference@1.9.1") == math.inf


@pytest.mark.parametrize(
    ("statement", "horizon", "raises"),
    [
        ("torch.eq(x, 300)", "1.11.0", True), ("torch.eq(x, 300)", "1.5.1", True), ("torch.eq(x, 300)", "1.13.1", False),
        ("torch.ne(x, -1)", "1.11.0", False), ("torch.gt(x, 300.5)", "1.11.0", True), ("torch.ge(x, 2.5)", "1.11.0", False),
    ],
)  # fmt: skip
def test_a_comparison_with_what_bytes_do_not_hold(statement: str, horizon: str, raises: bool) -> None:
    """As seen in 1.3.1 to 1.11.0, and in 1.13.1 and newer."""
    module = program(f"def forward(self, x: Tensor) -> Tensor:\n  return {statement}", f"reference@{horizon}")
    given = (Tensor(np.array([0, 1, 2], np.uint8)),)
    if raises:
        with pytest.raises(Raised, match="without overflow"):
            module.run("forward", given)
    else:
        assert module.run("forward", given).array.dtype == bool


@pytest.mark.parametrize(("horizon", "strides"), [("1.9.1", (2, 1)), ("1.10.2", (1, 4))])
def test_places_lie_row_after_row_and_since_1_10_column_after_column(horizon: str, strides: tuple[int, int]) -> None:
    x = Tensor(np.array([[1.0, 0.0, 2.0], [3.0, 0.0, 1.0]]))
    assert resolve("aten::nonzero", Release(horizon))(x).strides == strides
    rows, columns = resolve("aten::where", Release(horizon))(Tensor(x.array > 0))
    assert rows.storage is columns.storage
    assert (rows.strides, columns.strides) == ((strides[0],), (strides[0],))
    assert columns.array.tolist() == [0, 2, 0, 2]


@pytest.mark.parametrize("power", [0, 2, -1])
def test_powers_of_what_is_not_square_are_refused(power: int) -> None:
    with pytest.raises(Raised, match="square matrices"):
        resolve("aten::matrix_power", Release("2.13.0"))(Tensor(np.ones((2, 3))), power)


def test_tensors_of_an_archive_that_share_a_storage_share_no_gradients() -> None:
    """What is written into a tensor is seen by its views, and not by tensors that only have the same memory."""
    first = Tensor(np.zeros(2))
    other = Tensor(first.array[1:])
    first.root, other.root = object(), object()
    grad.begin()
    grad.write(first)
    assert grad.reaches(of_view(first, first.array[:1]))
    assert not grad.reaches(other)
    grad.begin()


TIED = [float(int(digit)) for digit in "01021012201201100220"]


@pytest.mark.parametrize(
    ("numbers", "k", "largest", "places"),
    [
        ([0.0] * 4, 1, True, [2]),
        (TIED, 3, True, [11, 8, 18]),
        (TIED, 19, False, [19, 0, 9, 12, 5, 15, 16, 2, 14, 13, 10, 4, 1, 6, 17, 8, 18, 7, 3]),
        (TIED * 4, 1, True, [3]),
        ([1.0, math.nan, 2.0, math.nan, 0.0], 2, True, [1, 3]),
    ],
)
def test_of_equal_elements_the_best_few_are_those_that_are_partitioned_to_the_front(
    numbers: list[float], k: int, largest: bool, places: list[int]
) -> None:
    result = resolve("aten::topk", Release("2.13.0"))(Tensor(np.array(numbers, np.float32)), k, -1, largest, True)
    assert result[1].array.tolist() == places


@pytest.mark.parametrize(
    ("horizon", "mixed", "alike"),
    [
        ("1.5.1", (48, 8, 4, 1), (48, 8, 4, 1)),
        ("1.6.0", (48, 1, 24, 6), (48, 1, 24, 6)),
        ("1.12.1", (48, 8, 4, 1), (48, 1, 24, 6)),
    ],
)
def test_what_is_joined_lies_row_after_row_or_has_its_channels_last(
    horizon: str, mixed: tuple[int, ...], alike: tuple[int, ...]
) -> None:
    last = np.zeros((1, 2, 4, 6), np.float32).transpose(0, 3, 1, 2)
    cat = resolve("aten::cat", Release(horizon))
    assert cat([Tensor(last), Tensor(np.ascontiguousarray(last))], 0).strides == mixed
    assert cat([Tensor(last), Tensor(last)], 0).strides == alike
    turned = np.zeros((2, 3, 4), np.float32).transpose(2, 0, 1)
    assert cat([Tensor(turned), Tensor(turned)], 0).strides == (6, 3, 1)


@pytest.mark.parametrize(
    ("kernel", "dilation", "padding", "stride", "said"),
    [
        ([4, 4], 1, 0, 1, r"sliding blocks as \(0, 1\)"),
        ([2, 2], 1, 0, 0, "stride should be greater than zero"),
        ([0, 2], 1, 0, 1, "kernel_size should be greater than zero"),
        ([2, 2], 0, 0, 1, "dilation should be greater than zero"),
        ([2, 2], 1, -1, 1, "padding should be non-negative"),
    ],
)
def test_windows_that_nothing_has_are_refused(kernel: list[int], dilation: int, padding: int, stride: int, said: str) -> None:
    unfold = resolve("aten::im2col", Release("2.13.0"))
    with pytest.raises(Raised, match=said):
        unfold(Tensor(np.zeros((1, 1, 3, 4), np.float32)), kernel, [dilation] * 2, [padding] * 2, [stride] * 2)


@pytest.mark.parametrize(("size", "said"), [([4, 4], "number of sliding blocks 3 . 3 = 9"), ([2, 5], None)])
def test_columns_that_make_no_picture_are_refused(size: list[int], said: str | None) -> None:
    fold = resolve("aten::col2im", Release("2.13.0"))
    columns = Tensor(np.ones((1, 4, 4), np.float32))
    if said is None:
        assert fold(columns, size, [2, 2], [1, 1], [0, 0], [1, 1]).shape == (1, 1, *size)
    else:
        with pytest.raises(Raised, match=said):
            fold(columns, size, [2, 2], [1, 1], [0, 0], [1, 1])


@pytest.mark.parametrize(("horizon", "expected"), [("1.9.1", None), ("1.10.0", [4.0, 1.0, 4.0]), ("2.13.0", [4.0, 1.0, 4.0])])
def test_one_number_of_another_type_is_written_where_a_mask_is(horizon: str, expected: list[float] | None) -> None:
    put, mask = resolve("aten::index_put_", Release(horizon)), Tensor(np.array([True, False, True]))
    target, value = Tensor(np.arange(3, dtype=np.float32)), Tensor(np.array(4))
    if expected is None:
        with pytest.raises(Raised, match="dtypes match"):
            put(target, [mask], value)
    else:
        assert put(target, [mask], value).array.tolist() == expected
    with pytest.raises(Raised, match="dtypes match"):
        put(Tensor(np.arange(3, dtype=np.float32)), [Tensor(np.array([0]))], value)


@pytest.mark.parametrize("target", [-100, 3])
def test_a_class_that_there_is_not_is_refused(target: int) -> None:
    with pytest.raises(Raised, match="out of range"):
        resolve("aten::multi_margin_loss", Release("2.13.0"))(
            Tensor(np.ones((2, 3), np.float32)), Tensor(np.array([0, target])), 1, 1.0, None, 1
        )


@pytest.mark.parametrize(
    ("horizon", "alone", "both"),
    [("1.11.0", [-1.5, 2.5], [-1.5, 1.0]), ("1.12.1", [-1.5, 2.5], None), ("2.11.0", [-1.5, 2.5], None), ("2.12.1", None, None)],
)
def test_a_bound_that_is_no_number(horizon: str, alone: list[float] | None, both: list[float] | None) -> None:
    clamp, x = resolve("aten::clamp", Release(horizon)), Tensor(np.array([-1.5, 2.5], np.float32))
    for tensor, expected in ((clamp(x, math.nan, None), alone), (clamp(x, math.nan, 1.0), both)):
        np.testing.assert_array_equal(tensor.array, [math.nan] * 2 if expected is None else expected)


@pytest.mark.parametrize(("horizon", "strides"), [("1.4.0", (4, 1)), ("1.5.0", (1, 3)), ("2.13.0", (1, 3))])
@pytest.mark.parametrize("name", ["zeros_like", "ones_like", "full_like"])
def test_what_is_made_like_a_tensor_lies_as_it_does(horizon: str, strides: tuple[int, int], name: str) -> None:
    make, given = resolve(f"aten::{name}", Release(horizon)), (2.0,) if name == "full_like" else ()
    turned = Tensor(np.zeros((4, 3), np.float32).T)
    assert make(turned, *given).strides == strides
    assert make(turned, *given, memory_format=0).strides == (4, 1)
    row = np.zeros((1, 4), np.float32).T
    assert make(Tensor(row), *given).strides == ((1, 1) if horizon == "1.4.0" else (1, 4))
    item = np.broadcast_to(np.zeros((2, 1, 4), np.float32), (2, 3, 4))
    assert make(Tensor(item), *given).strides == (12, 4, 1)
