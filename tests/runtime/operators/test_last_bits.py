"""Norms and means of float32, to the last bit, as releases computed them in a single thread with AVX2.

Lives in tests/runtime/operators/ beside harness/torch_compat/runtime/operators/_moments.py, normalization.py and pooling.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.runtime.operators.tables import digests
from torch_compat.releases.release import Release
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

RANDOM = np.random.RandomState(31)


def draw(*shape: int) -> np.ndarray[Any, Any]:
    return np.asarray((RANDOM.randn(*shape) * 2 + 0.5).astype(np.float32))


ROWS, WEIGHTS, BIASES, LONG = draw(3, 300), draw(300), draw(300), draw(2, 1024)
IMAGE, VOLUME = draw(2, 6, 9, 10), draw(1, 2, 5, 6, 7)
WEIGHT, BIAS, MEAN, VARIANCE = draw(6), draw(6), draw(6), np.abs(draw(6))
CALLS: dict[str, Callable[[], tuple[Any, ...]]] = {
    "layer_norm": lambda: (ROWS, [300], WEIGHTS, BIASES, 1e-5, True),
    "layer_norm of long rows": lambda: (LONG, [1024], None, None, 1e-5, True),
    "group_norm": lambda: (IMAGE, 3, WEIGHT, BIAS, 1e-5, True),
    "group_norm without weights": lambda: (IMAGE, 2, None, None, 1e-5, True),
    "batch_norm": lambda: (IMAGE, WEIGHT, BIAS, MEAN, VARIANCE, False, 0.1, 1e-5, True),
    "batch_norm in training": lambda: (IMAGE, WEIGHT, BIAS, None, None, True, 0.1, 1e-5, True),
    "instance_norm": lambda: (IMAGE, WEIGHT, BIAS, None, None, True, 0.1, 1e-5, True),
    "avg_pool2d": lambda: (IMAGE, [3, 2], [1, 1], [1, 1], False, True, None),
    "avg_pool3d": lambda: (VOLUME, [2, 2, 2], [2, 2, 2], [0, 0, 0], False, True, None),
    "adaptive_avg_pool2d": lambda: (IMAGE, [4, 4]),
    "adaptive_avg_pool2d to one place": lambda: (IMAGE, [1, 1]),
    "adaptive_avg_pool3d to one place": lambda: (VOLUME, [1, 1, 1]),
}
DIGESTS = {
    "1.5.1": "- - - - 531a1200 830fc847 6be5eec1 184c4742 644ebe37 65e86271 8d053172 7fb51439",
    "1.8.1": "- - - - 531a1200 830fc847 6be5eec1 184c4742 644ebe37 65e86271 c70bfd50 7fb51439",
    "1.9.1": "- - - - 531a1200 - - 184c4742 644ebe37 65e86271 c70bfd50 541a4886",
    "1.10.2": "eda040d5 aa6ca52e 4dd952ed abb6c9a9 531a1200 eedcf1be 7a30ddaa 184c4742 644ebe37 65e86271 c70bfd50 541a4886",
    "1.13.1": "eda040d5 aa6ca52e 4dd952ed abb6c9a9 531a1200 eedcf1be 7a30ddaa 184c4742 644ebe37 65e86271 c70bfd50 541a4886",
    "2.0.1": "4fd94cac 4c48e365 3cba9394 6dc1d64e 531a1200 eedcf1be 7a30ddaa 184c4742 644ebe37 65e86271 c70bfd50 541a4886",
    "2.4.1": "ac232f68 41444a22 3cba9394 6dc1d64e 531a1200 eedcf1be 7a30ddaa 184c4742 644ebe37 65e86271 c70bfd50 541a4886",
    "2.9.1": "ac232f68 41444a22 3cba9394 6dc1d64e 531a1200 eedcf1be 7a30ddaa 184c4742 644ebe37 65e86271 c70bfd50 541a4886",
    "2.15.0": "d54f102f 41444a22 3cba9394 ba0b796b 531a1200 eedcf1be 7a30ddaa 184c4742 644ebe37 65e86271 c70bfd50 541a4886",
}
"""The beginning of the SHA-256 of what each release gave; a dash where the reader is only close."""


@pytest.mark.parametrize("release", DIGESTS)
def test_results_are_those_of_the_release_to_the_last_bit(release: str) -> None:
    expected = DIGESTS[release].split()
    assert digests(CALLS, release, expected) == expected


@pytest.mark.parametrize("release", ["1.2.0", "1.5.1", "1.8.1", "1.10.2"])
def test_a_channel_without_variance_and_epsilon(release: str) -> None:
    """As 1.2.0, 1.5.1, 1.8.1 and 1.10.2 gave it: one over the deviation is zero then."""
    norm = resolve("aten::batch_norm", Release(release))
    with np.errstate(all="ignore"):
        tensor = norm(Tensor(np.full((2, 1), 7, np.float32)), None, None, None, None, True, 0.1, 0.0, True)
    assert tensor.array.tolist() == [[0], [0]]
