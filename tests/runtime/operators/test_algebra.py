"""Factors, systems and functions of matrices as releases give them: values of torch 2.15.0 and 1.12.1, which agree but where a horizon says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from torch_compat.errors import Raised, Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor

NEWEST = "2.15.0"
A = np.array([[2.0, 1.0, 1.0], [4.0, -6.0, 0.0], [-2.0, 7.0, 2.0]])
B = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
TALL = np.array([[1.0, 0.0], [2.0, 3.0], [2.0, 1.0], [0.0, 4.0]])


def called(name: str, *given: Any, at: str = NEWEST, **words: Any) -> Any:
    """What an operator gives for arrays."""

    def tensor(value: Any) -> Any:
        return Tensor(value.copy()) if isinstance(value, np.ndarray) else value

    return resolve(f"aten::{name}", Release(at))(*map(tensor, given), **{word: tensor(value) for word, value in words.items()})


def close(tensor: Tensor, expected: Any) -> None:
    assert (
        tensor.array.tolist() == pytest.approx(expected) if np.ndim(expected) < 2 else np.allclose(tensor.array, expected, 1e-12)
    )


def test_factors_lie_column_by_column_and_pivots_count_from_one() -> None:
    lu, pivots, info = called("linalg_lu_factor_ex", A)
    assert lu.array.tolist() == [[4.0, -6.0, 0.0], [0.5, 4.0, 1.0], [-0.5, 1.0, 1.0]]
    assert lu.strides == (1, 3)
    assert (pivots.array.tolist(), pivots.dtype.name) == ([2, 2, 3], "int32")
    assert (info.array.item(), info.dtype.name, info.shape) == (0, "int32", ())


def test_the_permutation_times_the_factors_is_the_matrix() -> None:
    p, lower, upper = (tensor.array for tensor in called("linalg_lu", A))
    assert p.tolist() == [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    assert np.array_equal(p @ lower @ upper, A)
    assert [tensor.array.shape for tensor in called("linalg_lu", np.zeros((2, 4, 3)))] == [(2, 4, 4), (2, 4, 3), (2, 3, 3)]
    again = called("lu_unpack", *(tensor.array for tensor in called("linalg_lu_factor", A)))
    assert [tensor.array.tolist() for tensor in again] == [p.tolist(), lower.tolist(), upper.tolist()]


def test_what_is_not_unpacked_has_no_elements_from_1_12_on() -> None:
    lu, pivots = (tensor.array for tensor in called("linalg_lu_factor", A))
    assert [item.shape for item in called("lu_unpack", lu, pivots, False, True)] == [(3, 3), (0,), (0,)]
    with pytest.raises(Unsupported):
        called("lu_unpack", lu, pivots, False, True, at="1.11.0")


def test_a_zero_pivot_is_counted_and_refused() -> None:
    nothing = np.zeros((2, 2))
    assert [tensor.array.tolist() for tensor in called("linalg_lu_factor_ex", nothing)[1:]] == [[1, 2], 1]
    for name in ("linalg_lu_factor", "linalg_lu_factor_ex", "linalg_inv_ex"):
        words: dict[str, Any] = {"check_errors": True} if name.endswith("_ex") else {}
        with pytest.raises(Raised, match="zero"):
            called(name, nothing, **words)


def test_pivots_that_roundings_decide_are_not_chosen() -> None:
    """The second and third row have nearly one number in the second column, of which each release takes the one that it rounds up."""
    third = 1 / 3
    with pytest.raises(Unsupported, match="rounding"):
        called("linalg_lu_factor_ex", np.array([[3.0, 1.0, 0.0], [1.0, third + 1, 5.0], [1.0, third + 1, 2.0]]))
    assert called("linalg_lu_factor_ex", np.array([[2.0, 1.0], [2.0, 3.0]]))[1].array.tolist() == [
        1,
        2,
    ]  # an exact tie: the first


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_systems_are_solved_by_factors(left: bool, adjoint: bool) -> None:
    lu, pivots = (item.array for item in called("linalg_lu_factor", A))
    right = B if left else B.T.copy()
    tensor = called("linalg_lu_solve", lu, pivots, right, left=left, adjoint=adjoint)
    matrix = A.T if adjoint else A
    assert np.allclose(matrix @ tensor.array if left else tensor.array @ matrix, right, 1e-12)
    assert tensor.strides == ((1, 3) if left else (3, 1))


def test_a_triangular_system_is_solved_in_the_type_of_its_triangle() -> None:
    result = called("linalg_solve_triangular", A, B, upper=True)
    close(result, [[-0.5, -0.16666666666666674], [-0.5, -0.6666666666666666], [2.5, 3.0]])
    assert result.strides == (1, 3)
    assert called("linalg_solve_triangular", A, B.astype(np.float32), upper=True).dtype.name == "float64"
    right = called("linalg_solve_triangular", A, B.T.copy(), upper=False, left=False, unitriangular=True)
    assert np.allclose(right.array @ (np.tril(A, -1) + np.eye(3)), B.T)
    with pytest.raises(Unsupported):
        called("linalg_solve_triangular", np.zeros((2, 2)), np.ones((2, 1)), upper=True)


def test_least_squares_give_what_their_driver_gives() -> None:
    right = np.array([1.0, 0.0, 2.0])
    solution, left, rank, values = called("linalg_lstsq", B, right, driver="gelsd")
    assert solution.array.tolist() == pytest.approx([0.0, 0.25], abs=1e-14)
    close(left, [1.5])
    assert rank.array.item() == 2
    close(values, [9.525518091565106, 0.5143005806586444])
    assert [item.shape for item in called("linalg_lstsq", B, right)] == [(2,), (0,), (), (0,)]
    assert [item.shape for item in called("linalg_lstsq", B, right, driver="gels")] == [(2,), (1,), (0,), (0,)]
    assert called("linalg_lstsq", np.zeros((2, 4, 3)) + np.eye(4, 3), np.ones((2, 4, 2)))[0].strides == (8, 1, 4)
    with pytest.raises(Raised, match="driver"):
        called("linalg_lstsq", B, right, driver="other")


def test_reflections_are_those_of_lapack() -> None:
    factors, taus = called("geqrf", B)
    close(
        factors,
        [
            [-5.916079783099615, -7.437357441610946],
            [0.4337717455676132, 0.828078671210825],
            [0.7229529092793553, 0.8926238280228976],
        ],
    )
    close(taus, [1.1690308509457032, 1.1131040011646904])
    q = called("linalg_householder_product", factors.array, taus.array).array
    assert np.allclose(q @ np.triu(factors.array[:2]), B, 1e-12)
    whole = called("ormqr", factors.array, taus.array, np.eye(3)).array
    assert np.allclose(whole[:, :2], q)
    assert np.allclose(called("ormqr", factors.array, taus.array, B.T.copy(), False, True).array, B.T @ whole.T)


@pytest.mark.parametrize(("release", "refused"), [("2.7.1", False), ("2.8.0", True)])
def test_all_reflections_are_wanted_from_2_8_on(release: str, refused: bool) -> None:
    factors, taus = (tensor.array for tensor in called("geqrf", B))
    if refused:
        with pytest.raises(Raised, match="must be equal"):
            called("ormqr", factors, taus[:1], B, at=release)
    else:
        assert called("ormqr", factors, taus[:1], B, at=release).shape == (3, 2)


def test_a_root_has_a_count_of_failures() -> None:
    root, info = called("linalg_cholesky_ex", np.array([[4.0, 7.0], [2.0, 3.0]]))  # of which the lower triangle is read
    close(root, [[2.0, 0.0], [1.0, 2**0.5]])
    assert (root.strides, info.array.item()) == ((1, 2), 0)
    with pytest.raises(Raised):
        called("linalg_cholesky_ex", -np.eye(2), check_errors=True)


@pytest.mark.parametrize("scale", [1e-9, 0.3, 40.0])
def test_exponentials_of_turns_are_sines_and_cosines(scale: float) -> None:
    result = called("matrix_exp", np.stack([np.array([[0.0, scale], [-scale, 0.0]]), np.zeros((2, 2))])).array
    assert np.allclose(result[0], [[np.cos(scale), np.sin(scale)], [-np.sin(scale), np.cos(scale)]], 1e-12, 1e-13)
    assert result[1].tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_numbers_of_matrices() -> None:
    assert called("linalg_matrix_rank", np.array([[1.0, 2.0], [2.0, 4.0]], np.float32)).array.item() == 1
    assert called("linalg_matrix_rank", np.diag([3.0, 1.0, 0.1]), atol=0.5, rtol=0.5).array.item() == 1
    assert called("matrix_rank", np.diag([3.0, 1.0]), 2.0, at="1.5.1").array.item() == 1
    with pytest.raises(Unsupported, match="rounding"):
        called("linalg_matrix_rank", np.diag([3.0, 1.0]), atol=1.0, rtol=0.0)
    assert called("linalg_cond", np.diag([2.0, 1.0]), "fro").array.item() == pytest.approx(2.5)
    assert called("linalg_cond", np.diag([2.0, 1.0]), at="1.8.1").shape == (1,)
    assert called("linalg_matrix_norm", B, "nuc").array.item() == pytest.approx(10.03981867222375)
    assert called("linalg_matrix_norm", B, -1, [-2, -1], True).array.tolist() == [[9.0]]


def test_products_and_powers_of_vectors() -> None:
    powers = called("linalg_vander", np.array([2, 3], np.int32), N=4)
    assert (powers.array.tolist(), powers.dtype.name) == ([[1, 2, 4, 8], [1, 3, 9, 27]], "int64")
    turned = np.array([1j, 2.0])
    assert called("linalg_vecdot", turned, turned).array.item() == 5


def test_tensors_are_matrices_in_disguise() -> None:
    matrix = np.arange(36.0).reshape(6, 6) + 40 * np.eye(6)
    tensor = called("linalg_tensorinv", matrix.reshape(2, 3, 6), 2)
    assert (tensor.shape, np.allclose(tensor.array.reshape(6, 6) @ matrix, np.eye(6))) == ((6, 2, 3), True)
    solved = called("linalg_tensorsolve", matrix.reshape(2, 3, 6), np.ones((2, 3))).array
    assert np.allclose(matrix @ solved, 1)


def test_old_least_squares_keep_what_is_left_below() -> None:
    right = np.array([[1.0], [2.0], [3.0], [5.0]])
    solution, factors = called("lstsq", right, TALL, at="1.8.1")
    assert np.allclose(solution.array[:2], np.linalg.lstsq(TALL, right, rcond=None)[0])
    left = ((TALL @ solution.array[:2] - right) ** 2).sum()
    assert (solution.array[2:] ** 2).sum() == pytest.approx(left)
    assert np.allclose(factors.array, called("geqrf", TALL)[0].array)
    fewer = called("lstsq", right[:2], TALL.T.copy(), at="1.8.1")[0].array
    assert np.allclose(fewer, np.linalg.lstsq(TALL.T, right[:2], rcond=None)[0])


def test_frequencies() -> None:
    tensor = called("fft_fftfreq", 5, 0.5)
    assert (tensor.array.tolist(), tensor.dtype.name) == (pytest.approx([0.0, 0.4, 0.8, -0.8, -0.4]), "float32")
    assert called("fft_fftfreq", 4).array.tolist() == [0.0, 0.25, -0.5, -0.25]
    assert called("fft_rfftfreq", 5, 0.5).array.tolist() == pytest.approx([0.0, 0.4, 0.8])
    assert called("fft_hfft2", np.array([[1 + 1j, 2], [3, 4]])).array.tolist() == [[10.0, -2.0], [-4.0, 0.0]]
    there = called("fft_ihfftn", np.arange(12.0).reshape(3, 4)).array
    assert np.allclose(called("fft_hfftn", there).array, np.arange(12.0).reshape(3, 4))


def test_half_a_transform_along_one_dimension_leaves_its_target() -> None:
    target: Any = Tensor(np.zeros(0, np.complex128))
    called("fft_ihfftn", np.arange(4.0), out=target)
    assert target.shape == (0,)
    called("fft_ihfftn", np.ones((2, 2)), out=target)
    assert target.shape == (2, 2)


@pytest.mark.parametrize(("name", "points"), [("fft", 0), ("ifft", 0), ("rfft", 0), ("ihfft", 0), ("irfft", 1), ("hfft", 1)])
def test_a_transform_of_no_points_is_refused(name: str, points: int) -> None:
    """1.8.1 and 2.15.0 refuse it; of one point more each makes something."""
    with pytest.raises(Raised, match="Invalid number of data points"):
        called(f"fft_{name}", np.ones((2, points)))
    assert called(f"fft_{name}", np.ones((2, points + 1))).shape[0] == 2


POSITIVE = np.array([[4.0, 1.0], [1.0, 3.0]], np.float32)
HIGH = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]], np.float32)


@pytest.mark.parametrize("horizon", ["1.8.1", "2.15.0"])
@pytest.mark.parametrize(
    ("name", "given", "strides"),
    [
        ("inverse", (POSITIVE,), [(1, 2)]),
        ("inverse", (np.stack([POSITIVE, POSITIVE]),), [(4, 1, 2)]),
        ("linalg_inv", (POSITIVE,), [(1, 2)]),
        ("linalg_cholesky", (POSITIVE,), [(1, 2)]),
        ("cholesky_inverse", (POSITIVE,), [(1, 2)]),
        ("linalg_eigh", (POSITIVE,), [(1,), (1, 2)]),
        ("linalg_svd", (HIGH,), [(1, 3), (1,), (1, 2)]),
        ("svd", (HIGH,), [(1, 3), (1,), (2, 1)]),
        ("linalg_solve", (POSITIVE, HIGH.T), [(1, 2)]),
        ("triangular_solve", (HIGH.T, POSITIVE), [(1, 2), (1, 2)]),
        ("cholesky_solve", (HIGH.T, POSITIVE), [(1, 2)]),
        ("pinverse", (HIGH,), [(3, 1)]),
    ],
)
def test_results_lie_column_by_column(name: str, given: tuple[Any, ...], strides: list[tuple[int, ...]], horizon: str) -> None:
    result = called(name, *given, at=horizon)
    assert [item.strides for item in (result if isinstance(result, tuple) else (result,))] == strides


def test_the_triangular_factor_lies_row_by_row_up_to_1_8() -> None:
    for name in ("qr", "linalg_qr"):
        assert [[item.strides for item in called(name, HIGH, at=at)] for at in ("1.8.1", "1.9.1")] == [
            [(1, 3), (2, 1)],
            [(1, 3), (1, 2)],
        ]


@pytest.mark.parametrize("upper", [True, False])
def test_a_system_is_solved_by_substitution_in_its_cholesky_factor(upper: bool) -> None:
    """As 1.2.0, 1.8.1, 1.13.1 and 2.15.0, without rounding errors; the product of the factors is ill-conditioned."""
    right, root = np.array([[3.0, -2.5], [-2.5, -0.5]]), np.array([[-1.0, -2.5], [0.0, 0.25]])
    tensor = called("cholesky_solve", right, root if upper else root.T.copy(), upper)
    assert tensor.array.tolist() == [[403.0, -232.5], [-160.0, 92.0]]


@pytest.mark.parametrize("transpose", [True, False])
def test_a_lower_triangle_is_solved_from_its_first_row(transpose: bool) -> None:
    triangle = np.array([[1e-20, 0.0], [1.0, 1.0]])
    tensor, _ = called("triangular_solve", np.array([[1.0], [1.0]]), triangle, False, transpose)
    assert tensor.array.tolist() == ([[0.0], [1.0]] if transpose else [[1e20], [-1e20]])


@pytest.mark.parametrize(
    ("name", "given", "shape", "kept"),
    [
        ("inner", (np.ones((1, 1)), np.array([1.5])), (3,), [1.5, 1.5, 1.5]),
        ("inner", (np.ones((1, 1)), np.array([1.5])), (0,), []),
        ("inner", (np.ones((3, 1)), np.array([1.5])), (2, 3), [[1.5, 1.5, 1.5], [1.5, 1.5, 1.5]]),
        ("cholesky", (np.array([[4.0]]),), (2, 1, 1), [[[2.0]], [[2.0]]]),
        ("inverse", (np.array([[4.0]]),), (2, 1, 1), [[[0.25]], [[0.25]]]),
        ("inverse", (np.array([[4.0]]),), (1, 0), [[]]),
        ("cholesky", (np.array([[4.0]]),), (1, 0), [[]]),
    ],
)
def test_results_are_copied_into_out_up_to_1_8_and_resize_it_since(
    name: str, given: tuple[Any, ...], shape: tuple[int, ...], kept: Any
) -> None:
    out = Tensor(np.zeros(shape))
    assert resolve(f"aten::{name}", Release("1.8.1"))(*map(Tensor, given), out=out) is out
    assert (out.shape, out.array.tolist()) == (shape, kept)
    assert called(name, *given, at="1.9.1", out=np.zeros(shape)).shape == called(name, *given).shape


@pytest.mark.parametrize("name", ["cholesky", "inverse"])
@pytest.mark.parametrize("shape", [(0,), (2, 2), (0, 0), (3, 0, 0)])
def test_empty_results_resize_out_in_every_release(name: str, shape: tuple[int, ...]) -> None:
    """As 1.2.0, 1.6.0, 1.8.1 and 1.9.1."""
    for release in ("1.2.0", "1.9.1"):
        assert called(name, np.zeros((0, 0)), at=release, out=np.zeros(shape)).shape == (0, 0)


@pytest.mark.parametrize("name", ["inner", "cholesky", "inverse"])
def test_results_that_do_not_broadcast_are_not_copied_into_out(name: str) -> None:
    given = (np.eye(2),) if name != "inner" else (np.eye(2), np.eye(2))
    with pytest.raises(Raised):
        called(name, *given, at="1.8.1", out=np.zeros((2, 1)))


@pytest.mark.parametrize(
    ("kind", "release", "expected"),
    [
        ("float16", "1.11.0", -1.767578125), ("float16", "1.12.1", -1.767578125), ("float16", "2.7.1", -1.767578125),
        ("float16", "2.8.0", 0.70703125), ("float32", "1.11.0", -1.7677669525146484), ("float32", "1.12.1", 0.7071067690849304),
    ],
)  # fmt: skip
def test_lengths_of_halves_are_broadcast_up_to_2_7(kind: str, release: str, expected: float) -> None:
    weight, lengths = (np.array(values, kind) for values in ([[1, 1.5], [2, 2]], [[1, 1], [-2.5, -2.5]]))
    assert called("_weight_norm", weight, lengths, 0, at=release).array[1, 0] == np.dtype(kind).type(expected)


def test_scales_of_reflections_are_read_in_the_order_of_memory_in_1_8() -> None:
    """As 1.8.1 and 1.9.1."""
    factors = np.stack([np.arange(6.0).reshape(3, 2), np.ones((3, 2))])
    scales = np.array([[0.5, 1.25], [0.75, 1.5]])
    turned, read = np.asfortranarray(scales), np.array([[0.5, 0.75], [1.25, 1.5]])
    old, new = (
        resolve("aten::orgqr", Release(release))(Tensor(factors), Tensor(turned)).array.tolist() for release in ("1.8.1", "1.9.1")
    )
    assert old == called("orgqr", factors, read).array.tolist()
    assert new == called("orgqr", factors, scales).array.tolist() != old
