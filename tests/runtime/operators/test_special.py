"""Special functions: results of torch 2.15.0, which earlier releases match unless a horizon is given."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from torch_compat.errors import Raised, Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor


def called(name: str, *given: Any, at: str = "2.15.0") -> Any:
    """What an operator gives for lists, which stand for tensors of float64, and arrays."""
    tensors = (Tensor(np.asarray(item, np.float64)) if isinstance(item, list) else item for item in given)
    return resolve(f"aten::{name}", Release(at))(
        *(Tensor(tensor.copy()) if isinstance(tensor, np.ndarray) else tensor for tensor in tensors)
    )


def single(*numbers: float) -> Any:
    return np.array(numbers, np.float32)


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("special_zeta", ([2.0, 3.0, 1.0, 0.5, 2.0], [1.0, -0.5, 3.0, 1.0, -1.0]), [1.6449340668482266, 0.41439832211716, math.inf, math.nan, math.inf]),
        ("mvlgamma", ([2.5, 3.0, 0.5], 3), [1.8809954616117743, 2.694924879806965, math.inf]),
        ("special_log_ndtr", ([-10.0, 1.0],), [-53.23128515051248, -0.17275377902344985]),
        ("special_polygamma", (2, [1.0]), [-2.4041138063191885]),
        ("special_scaled_modified_bessel_k1", ([75.0, 1.0, 0.0, -1.0],), [0.14544087169291156, 1.636153486263258, math.inf, math.nan]),
        ("special_bessel_j0", ([7.0, 1.0],), [0.3000792697173623, 0.7651976865579665]),
        ("special_bessel_y1", ([1.0, 0.0, -1.0],), [-0.7812128213002887, -math.inf, math.nan]),
        ("special_airy_ai", ([-4.0, 1.0, 4.0, math.inf, 104.0],), [-0.07026553297551054, 0.13529241631288144, 0.0009515638512048024, math.nan, 0.0]),
        ("special_spherical_bessel_j0", ([0.0, 1.0, math.inf],), [1.0, 0.8414709848078965, 0.0]),
        ("special_chebyshev_polynomial_t", ([0.5, 2.0, -1.0, 0.5], [10.0, 3.0, 5.0, -1.0]), [-0.4999999999999983, 26.0, -1.0, 0.0]),
        ("special_shifted_chebyshev_polynomial_u", ([0.75], [3.0]), [-1.0]),
        ("special_hermite_polynomial_h", ([0.5], 4), [1.0]),
        ("special_hermite_polynomial_he", ([0.5], 3), [-1.375]),
        ("special_laguerre_polynomial_l", ([0.5], 2), [0.125]),
        ("special_legendre_polynomial_p", ([0.5], 4), [-0.2890625]),
        ("special_round", ([1.5, 2.5],), [2.0, 2.0]),
    ],
)  # fmt: skip
def test_values(name: str, given: tuple[Any, ...], expected: list[float]) -> None:
    assert called(name, *given).array.tolist() == pytest.approx(expected, rel=1e-14, abs=1e-300, nan_ok=True)


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("special_ndtr", (-3.75, 1.0), (8.842349052429199e-05, 0.8413447141647339)),  # half of one plus what is nearly minus one
        ("special_i1", (8.0,), (399.87353515625,)),  # by few coefficients
        (
            "special_bessel_j0",
            (7.0, 1e5),
            (0.3000792860984802, -0.0017124225851148367),
        ),  # the angle is rounded before its cosine is taken
        ("special_modified_bessel_i0", (91.0,), (math.inf,)),  # the exponential is none of float32, though the function is
    ],
)
def test_single_precision_loses_what_releases_lose(name: str, given: tuple[float, ...], expected: tuple[float, ...]) -> None:
    tensor = called(name, single(*given))
    assert tensor.dtype.name == "float32"
    assert tensor.array.tolist() == pytest.approx(list(expected), rel=3e-7)


def test_integers_become_floats() -> None:
    assert called("special_bessel_j0", np.array([1])).dtype.name == "float32"
    assert called("special_zeta", 2.0, np.array([1], np.int64)).array.tolist() == pytest.approx([1.6449340668])


@pytest.mark.parametrize(
    ("name", "given", "release", "refused"),
    [
        ("mvlgamma", ([0.5], 3), "1.12.1", True), ("mvlgamma", ([0.5], 3), "1.13.1", False), ("mvlgamma", ([2.0], 0), "2.15.0", True),
        ("mvlgamma", (np.array([3]), 2), "1.9.1", True), ("mvlgamma", (np.array([3]), 2), "1.10.2", False),
        ("special_i1", (np.array([1], np.float16),), "2.5.1", True), ("special_i1", (np.array([1], np.float16),), "2.6.0", False),
        ("special_bessel_j0", (np.array([1], np.float16),), "2.15.0", True), ("fft_fftfreq", (4, 1.0), "1.8.1", False),
    ],
)  # fmt: skip
def test_what_a_release_refuses(name: str, given: tuple[Any, ...], release: str, refused: bool) -> None:
    if refused:
        with pytest.raises(Raised):
            called(name, *given, at=release)
    else:
        assert called(name, *given, at=release).array.size


def test_in_place() -> None:
    target = Tensor(np.array([1.0, 2.0]))
    assert resolve("aten::polygamma_", Release("2.15.0"))(target, 1) is target
    assert target.array.tolist() == pytest.approx([1.6449340668482266, 0.6449340668482266])
    resolve("aten::mvlgamma_", Release("1.5.1"))(target, 1)
    assert target.array.tolist() == pytest.approx([math.lgamma(1.6449340668482266), math.lgamma(0.6449340668482266)])


@pytest.mark.parametrize(("p", "expected"), [(300, -math.inf), (400, -math.inf), (500, math.nan), (1000, math.nan)])
def test_the_constant_of_mvlgamma_may_be_infinite_in_16_bits(p: int, expected: float) -> None:
    """As 2.6.0 and 2.15.0: a sum of minus infinity and a constant of 71,000 for ``p=500``."""
    with np.errstate(all="ignore"):
        result = called("mvlgamma", np.array([3.796875, 0.75], np.float16), p).array
    np.testing.assert_array_equal(result, np.full(2, expected, np.float16))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", [np.complex64, np.complex128])
def test_reciprocal_roots_of_complex_zeros(kind: Any) -> None:
    """As 1.6.0 to 2.15.0."""
    zero, finite = np.zeros(1, kind), np.array([4, -4], kind)
    assert np.isnan(called("rsqrt", zero, at="1.13.1").array.real).all()
    newest = called("rsqrt", zero, at="2.7.1").array
    assert newest.real == np.inf
    assert np.isnan(newest.imag)
    for release, number in (("1.10.2", math.inf), ("2.0.1", math.inf), ("2.6.0", 0)):
        with pytest.raises(Unsupported):
            called("rsqrt", np.array([number], kind), at=release)
        assert called("rsqrt", finite, at=release).array.tolist() == called("rsqrt", finite).array.tolist()


N, M, P = complex(math.nan, 0), complex(-math.inf, 0), complex(math.inf, 0)
NN = complex(math.nan, math.nan)


@pytest.mark.parametrize(
    ("kind", "ends", "steps", "expected"),
    [
        ("complex128", (2.5, -math.inf), 5, {"1.6.0": [N] * 5, "1.13.1": [N] * 5, "2.0.1": [N, M, N, N, N]}),
        ("complex128", (2.5, -math.inf), 20, {"1.7.1": [N, N, M], "2.15.0": [N, M, M]}),
        ("complex64", (2.5, -math.inf), 5, {"1.6.0": [N, M, N, N, N], "2.15.0": [N, M, N, N, N]}),
        ("complex64", (2.5, -math.inf), 20, {"1.6.0": [N, N, NN], "1.13.1": [N, N, NN], "2.0.1": [N, M, M]}),
        ("complex128", (math.inf, 1.0), 5, {"1.10.2": [N, N, P, N, N], "2.0.1": [N, N, P, P, N]}),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_complex_points_to_infinity(kind: str, ends: tuple[float, float], steps: int, expected: dict[str, list[complex]]) -> None:
    for release, values in expected.items():
        out = Tensor(np.zeros(0, kind))
        result = resolve("aten::linspace", Release(release))(*ends, steps, out=out).array
        np.testing.assert_array_equal(result[: len(values)], np.array(values, kind), release)


LARGE, SMALL = complex(-3.75, 1e10), complex(1e-3, 1e-3)


@pytest.mark.parametrize(
    ("name", "number", "kind", "expected"),
    [
        ("asin", LARGE, "complex64", {"1.7.1": -1.5707963705062866 + 15.249238014221191j, "2.6.0": -1.5707963705062866 + 15.249238014221191j, "2.7.1": -3.750000032720635e-10 + 23.718997955322266j}),
        ("asin", SMALL, "complex64", {"1.7.1": 0.0009999996982514858 + 0.000999987474642694j, "2.6.0": 0.0009999996982514858 + 0.000999987474642694j, "2.7.1": 0.0009999996982514858 + 0.0010000003967434168j}),
        ("acos", LARGE, "complex64", {"1.8.1": 3.1415927410125732 - 15.249238014221191j, "1.9.1": 1.570796251296997 - 23.718997955322266j, "2.15.0": 1.570796251296997 - 23.718997955322266j}),
        ("acos", complex(1e-3, 1e10), "complex128", {"1.7.1": complex(1.5707963267948966, -math.inf), "2.6.0": complex(1.5707963267948966, -math.inf), "2.7.1": 1.5707963267947966 - 23.7189981105004j}),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_inverse_circular_functions_of_complex_numbers(
    name: str, number: complex, kind: str, expected: dict[str, complex]
) -> None:
    for release, value in expected.items():
        assert called(name, np.array([number], kind), at=release).array.tolist() == [pytest.approx(value, rel=3e-7, abs=1e-12)]
    with pytest.raises(Unsupported):
        called(name, np.array([number], kind), at="1.6.0")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("chebyshev_polynomial_t", [-6.900735526843082e20, 0.5661773681640625, 1137799.5]),
        ("chebyshev_polynomial_w", [-1.1231953545288997e21, 0.3533474802970886, 6351853.0]),
        ("hermite_polynomial_h", [3.9279502435759396e23, -1.1356574958672775e23, 8.072479854240022e22]),
        ("hermite_polynomial_he", [-2.5378855924069827e18, 1.2474444576624476e18, 1.101344462119895e17]),
        ("laguerre_polynomial_l", [1339039.375, 4036.56201171875, 0.1300203800201416]),
        ("legendre_polynomial_p", [-1.3877329439518989e20, 0.18008895218372345, 291919.28125]),
    ],
)
def test_polynomials_of_degree_33_are_equal_to_the_last_bit(name: str, expected: list[float]) -> None:
    """As 1.13.1 to 2.15.0, whose kernels fuse products with sums."""
    result = called(f"special_{name}", single(-2.3, -0.875, 1.1), 33).array
    assert result.tolist() == [float(np.float32(number)) for number in expected]


@pytest.mark.parametrize("horizon", ["1.5.1", "2.15.0"])
def test_gamma_functions_of_float32_to_the_last_bit(horizon: str) -> None:
    """As both releases computed them; in double precision, some of each function round to other bits."""

    def computed(name: str, *args: Any) -> list[float]:
        results: list[float] = resolve(f"aten::{name}", Release(horizon))(*args).array.tolist()
        return results

    x = Tensor(np.array([0.25, 1.1, 3.5, -0.6, 17.3, 2.7, -3.3], np.float32))
    assert computed("digamma", x) == [
        -4.22745418548584, -0.42375487089157104, 1.1031566858291626, -0.8947180509567261, 2.821526288986206, 0.7967831492424011, 3.620354413986206,
    ]  # fmt: skip
    assert computed("polygamma", 1, x) == [
        17.19733238220215, 1.43329918384552, 0.33035773038864136, 10.05313491821289, 0.059506259858608246, 0.4472120702266693, 14.817731857299805,
    ]  # fmt: skip
    y = Tensor(np.array([2.5, 4.0, 100.0, 33.3], np.float32))
    assert computed("mvlgamma", y, 4) == [3.598090171813965, 7.404752731323242, 1426.1883544921875, 323.4317626953125]
