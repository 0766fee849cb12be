"""Linear and cubic interpolation of float32, to the last bit, as releases computed it in a single thread with AVX2.

Lives in tests/runtime/operators/ beside harness/torch_compat/runtime/operators/_interpolated.py.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest

from torch_compat.errors import Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime.operators._interpolated import CUBIC, LINEAR, era
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor

SHAPES = {
    "cubic": (2, 3, 5, 6), "cubic 1": (1, 1, 4, 3), "pictures": (2, 3, 5, 6), "picture 1": (1, 1, 4, 3), "picture 8": (1, 8, 9, 7), "lines": (2, 3, 7),
    "volume": (1, 2, 3, 4, 5), "pictures 13": (2, 13, 5, 6), "picture 4": (1, 4, 5, 6), "cubic 5": (1, 5, 4, 3), "line 9": (1, 9, 7), "volume 9": (1, 9, 3, 4, 5),
}  # fmt: skip
RANDOM = np.random.RandomState(5)
IMAGES = {name: RANDOM.randn(*shape).astype(np.float32) for name, shape in SHAPES.items()}
BY_DIMENSIONS = {1: "upsample_linear1d", 2: "upsample_bilinear2d", 3: "upsample_trilinear3d"}
CASES = [
    ("cubic", None, False, False), ("pictures", None, False, False), ("picture 4", 80, False, False), ("pictures 13", None, False, True),
    ("lines", None, False, False), ("volume", None, True, False), ("volume 9", None, False, True),
]  # fmt: skip
"""Name, by how many points each direction grows (else to twice the points and one), whether corners are aligned, channels last."""
DIGESTS = {
    "1.0.1": ["", "d2c572ef", "54d90065", "55164c83", "d4a31ae6", "cc8c19eb", "810228a9"],
    "1.1.0": ["80317d52", "6c5495a1", "743c945d", "45fbeadf", "edf85377", "633934a5", "1ab47402"],
    "1.5.1": ["80317d52", "6c5495a1", "743c945d", "45fbeadf", "edf85377", "633934a5", "1ab47402"],
    "1.8.1": ["80317d52", "c6b03a80", "618a643f", "ba7d97f6", "26683dc2", "471d8f66", "82b5e06c"],
    "1.11.0": ["6af35016", "2d0e872a", "b4435964", "ba7d97f6", "26683dc2", "0df391f8", "82b5e06c"],
    "1.12.1": ["6af35016", "2d0e872a", "b4435964", "5003e18a", "26683dc2", "0df391f8", "d1858aa6"],
    "1.13.1": ["af31c1fb", "502cc1ea", "b16ae3c9", "cc5be60d", "615b446f", "55a808c5", "89b11100"],
    "2.3.1": ["6af35016", "c6b03a80", "b4435964", "57439c22", "26683dc2", "0df391f8", "f9a4ec30"],
    "2.5.1": ["1d5e305c", "c6b03a80", "a9667129", "57439c22", "38744530", "0df391f8", "f9a4ec30"],
    "2.6.0": ["1d5e305c", "c6b03a80", "a9667129", "57439c22", "38744530", "0df391f8", "2f2aef5e"],
    "2.7.1": ["1d5e305c", "c6b03a80", "b4435964", "57439c22", "26683dc2", "0df391f8", "f9a4ec30"],
    "2.9.1": ["1d5e305c", "c6b03a80", "a9667129", "57439c22", "38744530", "0df391f8", "f9a4ec30"],
    "2.14.1": ["a38c435f", "c6b03a80", "b4435964", "57439c22", "26683dc2", "0df391f8", "f9a4ec30"],
    "2.15.0": ["a38c435f", "c6b03a80", "a9667129", "57439c22", "38744530", "0df391f8", "2f2aef5e"],
}
"""The beginning of the SHA-256 of what each release gave for each case; 1.0 has no cubic interpolation."""


@pytest.mark.parametrize("release", DIGESTS)
def test_interpolation_is_that_of_the_release_to_the_last_bit(release: str) -> None:
    results = []
    for (name, more, aligned, channels_last), digest in zip(CASES, DIGESTS[release], strict=True):
        image = IMAGES[name]
        sizes = [2 * size + 1 if more is None else size + more for size in image.shape[2:]]
        if channels_last:
            image = np.moveaxis(np.ascontiguousarray(np.moveaxis(image, 1, -1)), -1, 1)
        operator = "upsample_bicubic2d" if name == "cubic" else BY_DIMENSIONS[len(sizes)]
        result = resolve(f"aten::{operator}", Release(release))(Tensor(image), sizes, aligned).array
        results.append(hashlib.sha256(np.ascontiguousarray(result).tobytes()).hexdigest()[:8] if digest else "")
    assert results == DIGESTS[release]


def test_every_entry_of_the_tables_has_a_release_that_was_asked() -> None:
    for table in (LINEAR, CUBIC):
        entries: dict[str, Any] = table
        assert {id(era(entries, release)) for release in DIGESTS} == {id(entry) for entry in entries.values()}


@pytest.mark.parametrize(("release", "expected"), [("1.5.1", [0, 1]), ("1.6.0", [1, 0]), ("2.15.0", [1, 0])])
def test_a_picture_whose_size_stays(release: str, expected: list[int]) -> None:
    """Up to 1.5 it is copied; since 1.6 each element is added to itself times zero, as 1.5.1, 1.6.0, and 2.15.0 gave it."""
    image = np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)
    image[0, 0, 1, 1] = np.inf
    with np.errstate(invalid="ignore"):
        result = resolve("aten::upsample_bilinear2d", Release(release))(Tensor(image), [3, 4], False).array
    assert [int(np.isnan(result).sum()), int(np.isinf(result).sum())] == expected


def test_three_channels_in_a_single_thread() -> None:
    """A large picture of three channels is computed as if its channels were last, one of two is not, as 2.15.0 does."""
    weights: list[np.ndarray[Any, Any]] = []
    for channels in (2, 3):
        image = np.repeat(IMAGES["picture 1"], channels, axis=1)
        result = resolve("aten::upsample_bilinear2d", Release("2.15.0"))(Tensor(image), [90, 90], False).array
        weights.append(result[0, 0])
    two, three = weights
    assert not np.array_equal(two, three)
    assert np.allclose(two, three, atol=1e-5)


def test_as_many_scale_factors_as_dimensions() -> None:
    image = Tensor(IMAGES["picture 1"])
    with pytest.raises(Unsupported, match="as many scale factors as dimensions"):
        resolve("aten::__interpolate", Release("1.5.1"))(image, 5, [0.5], "bilinear", None, False)
