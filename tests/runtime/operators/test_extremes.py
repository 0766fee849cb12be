"""Numbers whose powers, sums or products float32 and float16 cannot hold, as releases compute with them.

Lives in tests/runtime/operators/ beside norms.py, distances.py, normalization.py and spreads.py of harness/torch_compat/runtime/operators/.
Every value is that of the release, with the AVX2 kernels used for all records; each row has the releases on both sides of a change.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.runtime.operators.tables import called, inf, nan, t
from torch_compat.errors import Raised, Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime.dtypes import BFLOAT16
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor

HUGE, TINY = t([1e20, 1e20]), t([2e-23, 2e-23, 3e-24])
ROW, ZEROS = t([[1e20, 1e20]]), t([[0.0, 0.0]])
ROW_OF_THREE = t([[1e20, 1e20, 1e20]])
COMPLEX = t(np.asarray([1 + 1j, 2]) * 1e20, "complex64")
CASES: list[tuple[str, tuple[Any, ...], dict[str, str]]] = [
    ("norm", (HUGE, 2), {"1.0.1": "float32[][1.41421e+20]", "1.1.0": "float32[][inf]", "2.15.0": "float32[][inf]"}),
    ("norm", (TINY, 2), {"1.0.1": "float32[][2.84429e-23]", "1.1.0": "float32[][0.0]", "2.15.0": "float32[][0.0]"}),
    (
        "norm",
        (t(3e-24), 2),
        {"1.0.1": "float32[][3e-24]", "1.1.0": "float32[][0.0]", "2.1.2": "float32[][0.0]", "2.4.1": "float32[][3e-24]"},
    ),
    ("norm", (t(3e-24), 2, [0], True), {"1.1.0": "float32[][0.0]", "2.15.0": "float32[][0.0]"}),
    ("norm", (HUGE, 3, [0]), {"1.2.0": "float32[][inf]", "2.15.0": "float32[][inf]"}),
    ("norm", (t([0.0, 0.0]), inf), {"1.0.1": "float32[][0.0]", "1.1.0": "float32[][1.17549e-38]", "1.8.1": "float32[][0.0]"}),
    (
        "norm",
        (t([300.0, 300.0], "float16"), 2),
        {"1.6.0": "float16[][inf]", "2.0.1": "float16[][inf]", "2.1.2": "float16[][424.25]"},
    ),
    ("norm", (t([300.0, 300.0], "float16"), 2), {"1.12.1": "float16[][inf]", "2.1.2": "float16[][424.25]"}),
    (
        "norm",
        (t(np.asarray([1 + 1j, 2]) * 2e-23, "complex64"), 2),
        {
            "1.6.0": "complex64[][(3.743392066509216e-23+0j)]",
            "1.8.1": "float32[][5.29396e-23]",
            "2.15.0": "float32[][5.29396e-23]",
        },
    ),
    (
        "frobenius_norm",
        (t([[2e-23, 2e-23]]), [0]),
        {"1.1.0": "float32[2][0.0, 0.0]", "2.1.2": "float32[2][0.0, 0.0]", "2.4.1": "float32[2][2e-23, 2e-23]"},
    ),
    (
        "dist",
        (t([0.0, 0.0]), t([0.0, 0.0]), inf),
        {"1.4.0": "float32[][0.0]", "1.5.1": "float32[][1.17549e-38]", "1.8.1": "float32[][0.0]"},
    ),
    ("dist", (HUGE, t([0.0, 0.0]), 2), {"1.5.1": "float32[][inf]", "2.15.0": "float32[][inf]"}),
    (
        "renorm",
        (t([[2e-23, 2e-23], [1.0, 1.0]]), 2, 0, 1e-24),
        {
            "1.1.0": "float32[2, 2][2e-23, 2e-23, 7.07107e-25, 7.07107e-25]",
            "2.15.0": "float32[2, 2][2e-23, 2e-23, 7.07107e-25, 7.07107e-25]",
        },
    ),
    ("cdist", (ROW, ZEROS), {"1.1.0": "float32[1, 1][inf]", "2.15.0": "float32[1, 1][inf]"}),
    ("cdist", (ROW, ZEROS, 3.0), {"1.1.0": "float32[1, 1][inf]", "2.15.0": "float32[1, 1][inf]"}),
    ("cdist", (t([[2e-23, 2e-23]]), ZEROS), {"1.1.0": "float32[1, 1][0.0]", "2.15.0": "float32[1, 1][0.0]"}),
    ("cdist", (ROW, ROW, 2.0, 1), {"1.4.0": "float32[1, 1][nan]", "2.15.0": "float32[1, 1][nan]"}),
    ("cdist", (ROW, ROW, 2.0, 2), {"1.4.0": "float32[1, 1][0.0]", "2.15.0": "float32[1, 1][0.0]"}),
    ("pdist", (t([[3e19, 3e19], [0.0, 0.0]]),), {"1.0.1": "float32[1][inf]", "2.15.0": "float32[1][inf]"}),
    ("pairwise_distance", (ROW, ZEROS), {"1.0.1": "float32[1][inf]", "2.15.0": "float32[1][inf]"}),
    ("pairwise_distance", (t([[2e-23, 2e-23]]), ZEROS, 2.0, 0.0), {"1.0.1": "float32[1][0.0]", "2.15.0": "float32[1][0.0]"}),
    (
        "pairwise_distance",
        (ZEROS, ZEROS, inf, 0.0),
        {"1.0.1": "float32[1][0.0]", "1.1.0": "float32[1][1.17549e-38]", "1.8.1": "float32[1][0.0]"},
    ),
    (
        "pairwise_distance",
        (t([[300.0, 300.0]], "float16"), t([[0.0, 0.0]], "float16")),
        {"1.6.0": "float16[1][inf]", "2.0.1": "float16[1][inf]", "2.1.2": "float16[1][424.25]"},
    ),
    (
        "triplet_margin_loss",
        (t([[1e20]]), t([[0.0]]), t([[0.0]])),
        {"1.0.1": "float32[][nan]", "2.1.2": "float32[][nan]", "2.4.1": "float32[][0.0]"},
    ),
    (
        "triplet_margin_loss",
        (t([[1e20]]), t([[0.0]]), t([[1.0]]), 1.0, 2.0, 1e-6, True, 0),
        {"2.1.2": "float32[1][inf]", "2.4.1": "float32[1][1e+20]"},
    ),
    (
        "cosine_similarity",
        (ROW, t([[1e20, 3.0]])),
        {"1.0.1": "float32[1][nan]", "1.10.2": "float32[1][nan]", "1.12.1": "float32[1][0.0]", "2.15.0": "float32[1][0.0]"},
    ),
    (
        "cosine_similarity",
        (t([[1e10, 1e10]]), t([[1e12, 1e12]])),
        {"1.0.1": "float32[1][1.0]", "1.1.0": "float32[1][0.0]", "1.10.2": "float32[1][0.0]", "1.12.1": "float32[1][1.0]"},
    ),
    (
        "cosine_similarity",
        (t([[1e-23, 1e-23]]), t([[1.0, 3.0]]), 1, 1e-30),
        {
            "1.0.1": "float32[1][40000000.0]",
            "1.1.0": "float32[1][inf]",
            "2.0.1": "float32[1][inf]",
            "2.1.2": "float32[1][12649100.0]",
        },
    ),
    (
        "cosine_similarity",
        (t([[300.0, 300.0]], "float16"), t([[300.0, 300.0]])),
        {"1.6.0": "float32[1][0.0]", "2.1.2": "float32[1][0.999893]"},
    ),
    ("cosine_embedding_loss", (ROW, t([[1e20, 3.0]]), t([1.0])), {"1.0.1": "float32[][nan]", "2.15.0": "float32[][nan]"}),
    ("cosine_embedding_loss", (ROW, t([[1.0, 3.0]]), t([-1.0])), {"1.0.1": "float32[][0.0]", "2.15.0": "float32[][0.0]"}),
    (
        "batch_norm",
        (t([[3e38, 1.0], [3e38, 2.0]]), None, None, None, None, True, 0.1, 1e-5, False),
        {
            "1.0.1": "float32[2, 2][0.0, -0.99998, 0.0, 0.99998]",
            "1.8.1": "float32[2, 2][0.0, -0.99998, 0.0, 0.99998]",
            "1.10.2": "float32[2, 2][nan, -0.99998, nan, 0.99998]",
            "2.15.0": "float32[2, 2][nan, -0.99998, nan, 0.99998]",
        },
    ),
    (
        "batch_norm",
        (t([[[1.8e19, -1.8e19]], [[1.8e19, -1.8e19]]]), None, None, None, None, True, 0.1, 1e-5, False),
        {
            "1.8.1": "float32[2, 1, 2][1.0, -1.0, 1.0, -1.0]",
            "1.9.1": "float32[2, 1, 2][1.0, -1.0, 1.0, -1.0]",
            "1.10.2": "float32[2, 1, 2][0.0, 0.0, 0.0, 0.0]",
        },
    ),
    (
        "batch_norm",
        (t([[[1e38, -1e38]], [[1e38, 1e38]]]), None, None, None, None, True, 0.1, 1e-5, False),
        {
            "1.8.1": "float32[2, 1, 2][0.0, 0.0, 0.0, 0.0]",
            "1.9.1": "float32[2, 1, 2][0.57735, -1.73205, 0.57735, 0.57735]",
            "1.10.2": "float32[2, 1, 2][0.0, 0.0, 0.0, 0.0]",
        },
    ),
    (
        "batch_norm",
        (t([[3e38]]), None, None, t([3e38]), t([1e-8]), False, 0.1, 0.0, False),
        {
            "1.0.1": "float32[1, 1][0.0]",
            "1.1.0": "float32[1, 1][nan]",
            "1.4.0": "float32[1, 1][nan]",
            "1.5.1": "float32[1, 1][-inf]",
            "2.6.0": "float32[1, 1][-inf]",
        },
    ),
    (
        "instance_norm",
        (t([[[1e20, 1.0], [3e19, 2.0]]]), None, None, None, None, True, 0.1, 1e-5, False),
        {
            "1.0.1": "float32[1, 2, 2][0.0, 0.0, 1.0, -1.0]",
            "1.8.1": "float32[1, 2, 2][0.0, 0.0, 1.0, -1.0]",
            "1.9.1": "float32[1, 2, 2][1.0, -1.0, 1.0, -1.0]",
            "1.10.2": "float32[1, 2, 2][0.0, 0.0, 0.0, 0.0]",
        },
    ),
    (
        "native_batch_norm",
        (t([[1e20, 1.0], [3e19, 2.0]]), None, None, None, None, True, 0.1, 1e-5),
        {
            "1.0.1": "(float32[2, 2][0.0, -0.99998, 0.0, 0.99998], float32[2][6.5e+19, 1.5], float32[2][0.0, 1.99996])",
            "2.15.0": "(float32[2, 2][0.0, -0.99998, 0.0, 0.99998], float32[2][6.5e+19, 1.5], float32[2][0.0, 1.99996])",
        },
    ),
    (
        "group_norm",
        (t([[1e20, 1.0]]), 1),
        {"1.5.1": "float32[1, 2][0.0, 0.0]", "1.6.0": "float32[1, 2][nan, nan]", "2.15.0": "float32[1, 2][nan, nan]"},
    ),
    (
        "group_norm",
        (t([[1e20, *[1.0] * 8]]), 1),
        {
            "1.9.1": "float32[1, 9][0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]",
            "1.10.2": "float32[1, 9][nan, nan, nan, nan, nan, nan, nan, nan, nan]",
        },
    ),
    (
        "layer_norm",
        (t([1e20, 1.0, 2.0]), [3]),
        {
            "1.0.1": "float32[3][0.0, 0.0, 0.0]",
            "1.1.0": "float32[3][0.0, 0.0, 0.0]",
            "1.2.0": "float32[3][nan, nan, nan]",
            "2.15.0": "float32[3][nan, nan, nan]",
        },
    ),
    (
        "layer_norm",
        (t([1e20, 1.0, 2.0], "bfloat16"), [3]),
        {"1.10.2": "bfloat16[3][nan, nan, nan]", "2.15.0": "bfloat16[3][nan, nan, nan]"},
    ),
    (
        "layer_norm",
        (t([1e20, *[1.0] * 8], "bfloat16"), [9]),
        {
            "1.10.2": "bfloat16[9][0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]",
            "2.0.1": "bfloat16[9][0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]",
        },
    ),
    ("rms_norm", (HUGE, [2]), {"2.6.0": "float32[2][0.0, 0.0]", "2.15.0": "float32[2][0.0, 0.0]"}),
    ("rms_norm", (t([1.5e19, 1.5e19]), [2]), {"2.6.0": "float32[2][0.0, 0.0]"}),
    ("rms_norm", (t([1e-23, 1e-23]), [2], None, 0.0), {"2.6.0": "float32[2][inf, inf]", "2.15.0": "float32[2][inf, inf]"}),
    ("var", (t([3e38, 3e38]),), {"1.6.0": "float32[][0.0]", "1.7.1": "float32[][inf]", "2.15.0": "float32[][inf]"}),
    ("var", (t([3e38, 3e38]), [0]), {"1.8.1": "float32[][0.0]", "1.9.1": "float32[][inf]"}),
    ("std", (t([1e308, 1e308], "float64"),), {"1.5.1": "float64[][inf]", "1.6.0": "float64[][0.0]", "1.7.1": "float64[][inf]"}),
    ("std", (COMPLEX, [0]), {"1.6.0": "complex64[][(inf+nanj)]", "1.8.1": "complex64[][(inf+0j)]", "1.10.2": "float32[][inf]"}),
    ("std", (t(np.asarray([1 + 1j, 2]) * 2e-23, "complex64"), [0]), {"1.10.2": "float32[][0.0]", "2.15.0": "float32[][0.0]"}),
    ("kl_div", (t([3e38]), t([3e38]), 0), {"1.12.1": "float32[1][-inf]", "2.0.1": "float32[1][nan]"}),
    ("prod", (t([1e30, 1e-30, 1e30, 1e-30, 1e30]),), {"1.0.1": "float32[][1e+30]", "2.15.0": "float32[][1e+30]"}),
]


@pytest.mark.parametrize(("name", "args", "said"), CASES)
def test_as_the_releases_computed(name: str, args: tuple[Any, ...], said: dict[str, str]) -> None:
    assert {release: called(name, args, at=release) for release in said} == said


def test_products_are_multiplied_one_after_the_other_or_in_vectors() -> None:
    grows, falls = [1e30, 1e30], [1e-30] * 14
    assert called("prod", (t(grows + falls),), at="2.15.0") == "float32[][inf]"
    assert called("prod", (t([1e-30, 1e-30, 1e30]),), at="1.5.1") == "float32[][0.0]"
    assert called("prod", (t([1e30, 1e-30] * 10),), at="1.2.0") == "float32[][1.0]"
    assert called("prod", (t([1e30, 1e-30] * 20),), at="1.2.0") == "float32[][nan]"
    assert called("prod", (t([[1e30, 1e30], [1e-30, 1e-30]] * 20), 0), at="2.15.0") == "float32[2][1.0, 1.0]"
    assert called("prod", (t([300.0, 300.0, 0.01], "bfloat16"),), at="2.0.1") == "bfloat16[][904.0]"
    assert called("prod", (t(np.full((0, 2), 1.0)), 0), at="2.15.0") == "float32[2][1.0, 1.0]"


@pytest.mark.parametrize(
    ("a", "b", "before", "since"),
    [
        (0.25 + 1.5j, 0j, "(nan+nanj)", "(inf+infj)"),
        (1 + 0j, 0j, "(nan+nanj)", "(inf+nanj)"),
        (1e300 + 1e300j, 1e300 + 1e300j, "(nan+nanj)", "(1+0j)"),
        (1e-200 + 1e-200j, 1e-200 + 1e-200j, "(nan+nanj)", "(1+0j)"),
        (1 + 2j, 1e300 + 1e-300j, "0j", "(1e-300+2e-300j)"),
        (complex(inf, 1), 1 + 1j, "(inf-infj)", "(inf-infj)"),
    ],
)
def test_complex_numbers_of_python_are_divided_by_a_square_up_to_1_13(a: complex, b: complex, before: str, since: str) -> None:
    assert [called("div", (a, b), at=release) for release in ("1.9.1", "1.13.1", "2.0.1", "2.15.0")] == [before] * 2 + [since] * 2


def test_halves_are_summed_one_after_the_other_in_their_dtype() -> None:
    assert called("norm", (t([1.0] * 60000, "float16"), 1, [0]), at="2.0.1") == "float16[][2048.0]"
    assert called("norm", (t([1.0] * 60000, "float16"), 1, [0]), at="2.1.2") == "float16[][60000.0]"
    assert called("norm", (t([1.0] * 3000, "bfloat16"), 2, [0]), at="1.10.2") == "bfloat16[][16.0]"
    assert called("norm", (t([1.0] * 3000, "bfloat16"), 2, [0]), at="1.12.1") == "bfloat16[][54.75]"


def test_statistics_of_tensors_with_gaps_center_first() -> None:
    given = (t([[3e38]]), None, None, t([3e38]), t([1e-8]), False, 0.1, 0.0, False)
    apart = t([[1.0, 1.0]])
    apart.array = apart.array[0, ::2]
    assert called("batch_norm", given, at="2.6.0") == "float32[1, 1][-inf]"
    pair = (t([[3e38, 3e38]]), t([1.0, 1.0]), t([0.0, 0.0]), t([3e38, 3e38]), t([1e-8, 1e-8]), False, 0.1, 0.0, False)
    assert called("batch_norm", pair, at="2.6.0") == "float32[1, 2][-inf, -inf]"
    stepped = t([1.0, 5.0, 1.0, 5.0])
    stepped.array = stepped.array[::2]
    assert called("batch_norm", (pair[0], stepped, *pair[2:]), at="2.6.0") == "float32[1, 2][0.0, 0.0]"


def test_complex_tensors_are_divided_part_by_part_from_2_0() -> None:
    whole = t(np.asarray([1e30 + 1e30j]), "complex64")
    assert called("div", (whole, whole), at="1.13.1") == "complex64[1][(nan+nanj)]"
    assert [called(name, (whole, whole), at="2.0.1") for name in ("div", "true_divide")] == ["complex64[1][(1+0j)]"] * 2
    assert called("div", (t(np.asarray([0.25 + 1j] * 3), "complex128"), inf), at="2.0.1") == "complex128[3][0j, 0j, 0j]"
    for count, release in ((8, "2.0.1"), (8, "2.6.0")):
        with pytest.raises(Unsupported, match="by infinity"):
            called("div", (t(np.asarray([0.25 - 1j] * count), "complex64"), inf), at=release)


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        ("avg_pool2d", (t([[[[3e38, 3e38, 1.0, 1.0]]]]), [1, 2]), "float32[1, 1, 1, 2][inf, 1.0]"),
        ("adaptive_avg_pool3d", (t([[[[[3e38, 3e38, 1.0, 1.0]]]]]), [1, 1, 2]), "float32[1, 1, 1, 1, 2][inf, 1.0]"),
        ("mean", (t([3e38, 3e38], "bfloat16"),), "bfloat16[][inf]"),
        ("nanmean", (t([3e38, 3e38]),), "float32[][inf]"),
        ("nll_loss", (t([[3e38], [3e38]]), t([0, 0], "int64")), "float32[][-inf]"),
        ("multilabel_soft_margin_loss", (t([[3e38, 3e38]]), ZEROS, None, 0), "float32[1][inf]"),
        ("cross", (ROW_OF_THREE, ROW_OF_THREE, 1), "float32[1, 3][-inf, -inf, -inf]"),
        ("sinc", (t([1e20, 1e-20]),), "float32[2][-1.93355e-21, 1.0]"),
    ],
)
def test_sums_and_products_overflow_as_float32(name: str, args: tuple[Any, ...], said: str) -> None:
    assert [called(name, args, at=release) for release in ("1.12.1", "2.15.0")] == [said] * 2


def test_log1p_of_the_greatest_numbers_from_2_0_to_2_6() -> None:
    results = [called("log1p", (t([1e37, 3e38]),), at=release) for release in ("1.13.1", "2.0.0", "2.6.0", "2.7.1")]
    assert results == ["float32[2][85.1956, 88.5968]", *["float32[2][85.1956, inf]"] * 2, "float32[2][85.1956, 88.5968]"]


def test_distances_of_more_than_25_rows_are_products_of_matrices_since_1_4() -> None:
    many, item = t([[3e19, 3e19]] * 30), t([[3e19, 3e19]])
    assert called("cdist", (many, item), at="1.3.1") == f"float32[30, 1]{[0.0] * 30}"
    assert called("cdist", (many, item), at="1.4.0") == f"float32[30, 1][{', '.join(['nan'] * 30)}]"
    assert called("cdist", (t([[3e19, 3e19]] * 25), item), at="1.4.0") == f"float32[25, 1]{[0.0] * 25}"


def test_means_of_batches_are_sums_of_float32_in_1_9() -> None:
    given = (t([[[3e38, 3e38]], [[3e38, 3e38]]]), None, None, None, None, True, 0.1, 1e-5, False)
    results = [called("batch_norm", given, at=release) for release in ("1.8.1", "1.9.1", "1.10.2")]
    assert results == [f"float32[2, 1, 2][{', '.join([name] * 4)}]" for name in ("0.0", "nan", "-inf")]


@pytest.mark.parametrize(
    ("number", "before", "since"),
    [
        (0j, complex(nan, nan), complex(inf, nan)),
        (complex(inf, 0), complex(nan, nan), 0j),
        (1e-30 + 0j, complex(inf, nan), 1e30 + 0j),
    ],
)
def test_reciprocals_of_complex_numbers_divide_by_a_square_up_to_1_13(number: complex, before: complex, since: complex) -> None:
    given = t(np.asarray([number], "complex64"))
    for release, expected in (("1.6.0", before), ("1.13.1", before), ("2.7.1", since), ("2.15.0", since)):
        with np.errstate(all="ignore"):  # as while a program runs
            (result,) = resolve("aten::reciprocal", Release(release))(given).array
        for part, wanted in ((result.real, expected.real), (result.imag, expected.imag)):
            assert part == pytest.approx(wanted, rel=1e-6, nan_ok=True), release
    if not number:
        with pytest.raises(Unsupported, match="by zero"):
            resolve("aten::reciprocal", Release("2.6.0"))(given)


@pytest.mark.parametrize("name", ["all", "any"])
@pytest.mark.parametrize(("release", "expected"), [("1.2.0", 5), ("1.9.1", 5), ("1.10.2", 1), ("2.15.0", 1)])
def test_a_single_byte_is_returned_along_a_dimension_up_to_1_9(name: str, release: str, expected: int) -> None:
    """As 1.2.0, 1.5.1, 1.9.1 and 1.10.2."""
    byte = Tensor(np.array(5, np.uint8))
    for args in ((0,), (0, True)):
        assert resolve(f"aten::{name}", Release(release))(byte, *args).array == expected
    with pytest.raises(Raised):
        resolve(f"aten::{name}", Release(release))(byte, 1)


def test_the_inverse_error_function_of_bfloat16_is_zero_in_1_6() -> None:
    half = Tensor(np.array([0.5, -0.5]).astype(BFLOAT16.array))
    assert resolve("aten::erfinv", Release("1.6.0"))(half).array.tolist() == [0, 0]
    assert resolve("aten::erfinv", Release("1.7.1"))(half).array.tolist() == [0.4765625, -0.4765625]
