"""Exponentials of float32 in sums, activations and norms, to the last bit, as releases computed them in a single thread with AVX2.

Lives in tests/runtime/operators/ beside harness/torch_compat/runtime/operators/_vectors.py, softmax.py, activations.py and norms.py.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.runtime.operators.tables import digests
from torch_compat.releases.release import Release
from torch_compat.runtime.dtypes import BFLOAT16
from torch_compat.runtime.operators._vectors import exponential
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

RANDOM = np.random.RandomState(47)
ROWS = (RANDOM.randn(6, 37) * 3).astype(np.float32)
CUBE = (RANDOM.randn(4, 5, 13) * 2).astype(np.float32)
CALLS: dict[str, Callable[[], tuple[Any, ...]]] = {
    "softmax": lambda: (ROWS, 1),
    "softmax of short rows": lambda: (np.ascontiguousarray(ROWS[:, :5]), 1),
    "softmax across": lambda: (CUBE, 1),
    "log_softmax across": lambda: (CUBE, 1),
    "sigmoid": lambda: (ROWS,),
    "sigmoid of a transposed matrix": lambda: (ROWS.T,),
    "sigmoid of parts of rows": lambda: (ROWS[:, :20],),
    "sigmoid of every second": lambda: (ROWS[:, ::2],),
    "silu": lambda: (ROWS,),
    "elu": lambda: (ROWS,),
    "glu": lambda: (CUBE, 0),
    "gelu": lambda: (ROWS,),
    "gelu of a transposed matrix": lambda: (np.ascontiguousarray(ROWS[:, :32]).T,),
    "norm": lambda: (ROWS, 2, [1]),
    "norm of short rows": lambda: (np.ascontiguousarray(ROWS[:, :5]), 2, [1], True),
}
DIGESTS = {
    "1.2.0": "638c65f8 d239fe6a - - 8e86fbad - 739586e3 994bbaed - 8f698df5 86f580fb - - 8e1f7ed5 5a6995d1",
    "1.4.0": "638c65f8 d239fe6a 0df88334 dae4bce8 8e86fbad - 739586e3 994bbaed - 8f698df5 86f580fb - - 8e1f7ed5 5a6995d1",
    "1.5.1": "638c65f8 d239fe6a 0df88334 dae4bce8 8e86fbad 1139bdd6 739586e3 994bbaed - 5de0357a 86f580fb - - 8e1f7ed5 5a6995d1",
    "1.8.1": "638c65f8 d239fe6a 0df88334 dae4bce8 8e86fbad 1139bdd6 739586e3 994bbaed 28a2693a 5de0357a 86f580fb - - 8e1f7ed5 5a6995d1",
    "1.10.2": "638c65f8 d239fe6a b584e107 dae4bce8 8e86fbad 1139bdd6 739586e3 994bbaed 28a2693a 5de0357a 86f580fb - - 8e1f7ed5 5a6995d1",
    "1.12.1": "5424532e d239fe6a b584e107 dae4bce8 8e86fbad 1139bdd6 739586e3 994bbaed 28a2693a 5de0357a 86f580fb ec5c2e31 - 34f4b73a 5a6995d1",
    "1.13.1": "5424532e d239fe6a b584e107 c5e6e7d6 8e86fbad 1139bdd6 739586e3 994bbaed 28a2693a 5de0357a 86f580fb ec5c2e31 - 34f4b73a 5a6995d1",
    "2.0.1": "5424532e d239fe6a b584e107 c5e6e7d6 8e86fbad 1139bdd6 739586e3 994bbaed 28a2693a 5de0357a 86f580fb ec5c2e31 d2cc58c0 34f4b73a 5a6995d1",
    "2.6.0": "5424532e d239fe6a b584e107 c5e6e7d6 8e86fbad 1139bdd6 739586e3 994bbaed 28a2693a 5de0357a 86f580fb ec5c2e31 d2cc58c0 34f4b73a 5a6995d1",
    "2.8.0": "5424532e d239fe6a b584e107 c5e6e7d6 8e86fbad 1139bdd6 739586e3 994bbaed 28a2693a - 86f580fb ec5c2e31 d2cc58c0 34f4b73a 5a6995d1",
    "2.15.0": "5424532e d239fe6a b584e107 c5e6e7d6 8e86fbad 1139bdd6 739586e3 994bbaed 28a2693a - 86f580fb ec5c2e31 d2cc58c0 34f4b73a 5a6995d1",
}
"""The beginning of the SHA-256 of what each release gave; a dash where the reader is only close, or the release has no such operator."""


@pytest.mark.parametrize("release", DIGESTS)
def test_results_are_those_of_the_release_to_the_last_bit(release: str) -> None:
    expected = DIGESTS[release].split()
    assert digests(CALLS, release, expected) == expected


@pytest.mark.parametrize(("dtype", "digest"), [(np.dtype(np.float16), "33c69a25"), (BFLOAT16.array, "f16e8a4c")])
def test_error_functions_of_all_16_bit_numbers(dtype: np.dtype[Any], digest: str) -> None:
    """As 2.6.0 and 2.15.0 gave them."""
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    with np.errstate(all="ignore"):
        result = resolve("aten::erf", Release("2.6.0"))(Tensor(x)).array.view(np.uint16)
    assert hashlib.sha256(result[~np.isnan(x.astype(np.float32))].tobytes()).hexdigest()[:8] == digest


def test_exponentials_at_the_ends() -> None:
    x = np.array([0.0, -0.0, 1.0, 100.0, 100.5, -103.9, -104.5, np.inf, -np.inf, np.nan], np.float32)
    with np.errstate(all="ignore"):
        result = exponential(x)
    assert result[[0, 1, 4, 6, 7, 8]].tolist() == [1, 1, np.inf, 0, np.inf, 0]
    assert result[5] > 0
    assert np.isinf(result[3])
    assert np.isnan(result[9])
    assert np.abs(result[2] - np.e) < 3e-7
