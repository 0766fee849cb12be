"""Losses with margins of odd arguments, as releases gave them.

Lives in tests/runtime/operators/ beside harness/torch_compat/runtime/operators/margins.py, ranking.py and losses.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from torch_compat.errors import Raised, Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor

NAN, INF = math.nan, math.inf
REFUSED, NOT_MODELLED = "refused", "not modelled"


def t(values: Any, dtype: Any = np.float32) -> Tensor:
    return Tensor(np.array(values, dtype))


X = t([[0.5, -1.0, 2.0], [0.0, 3.0, -2.0]])
ODD = t([[NAN, -1.0, 2.0], [0.0, INF, -INF]])
ONE = t([1.0, 2.0])
LABELS = t([2, 1], np.int64)
NOTHING = t(np.zeros((0, 3)))
NO_LABELS = t([], np.int64)


def answer(horizon: str, name: str, *args: Any) -> Any:
    try:
        with np.errstate(all="ignore"):
            result = resolve(f"aten::{name}", Release(horizon))(*args).array
    except Raised:
        return REFUSED
    except Unsupported:
        return NOT_MODELLED
    return result.tolist()


@pytest.mark.parametrize(
    ("name", "args", "results"),
    [
        (
            "margin_ranking_loss",
            (t([1, 2], np.int64), t([2, 1], np.int64), t([1, 1], np.int64), 0.5, 1),
            {"1.6.0": 0.75, "2.15.0": 0.75},
        ),
        ("margin_ranking_loss", (t([1.0]), t([1.0]), t([True], np.bool_), 0.5, 0), {"1.6.0": REFUSED, "2.15.0": REFUSED}),
        ("multi_margin_loss", (t(0.5), t(0, np.int64), 1, 1.0, None, 0), {"1.6.0": 0.0, "2.15.0": 0.0}),
        ("multi_margin_loss", (NOTHING, NO_LABELS, 1, 1.0, None, 0), {"1.7.1": REFUSED, "1.8.1": [], "2.15.0": []}),
        (
            "multi_margin_loss",
            (NOTHING, NO_LABELS, 1, 1.0, None, 1),
            {"1.7.1": REFUSED, "1.8.1": NOT_MODELLED, "2.15.0": NOT_MODELLED},
        ),
        ("multi_margin_loss", (X, t([2, 1], np.int32), 1, 1.0, None, 0), {"1.6.0": REFUSED, "2.15.0": REFUSED}),
        ("multi_margin_loss", (X, LABELS, 1, 1.0, t([1.0, 2.0]), 0), {"2.0.1": NOT_MODELLED, "2.1.2": REFUSED}),
        (
            "multi_margin_loss",
            (X, t([1, 1], np.int64), 1, 1.0, t([1.0, 2.0, 3.0, 4.0]), 0),
            {"2.0.1": [4.333333492279053, 0.0], "2.1.2": REFUSED},
        ),
        ("multi_margin_loss", (X, LABELS, 1, 1.0, t([1.0] * 3, np.float64), 0), {"1.6.0": REFUSED, "2.15.0": REFUSED}),
        (
            "multilabel_margin_loss",
            (ODD, t([[1, -1, 1], [2, 1, -1]], np.int64), 0),
            {"1.6.0": [1.3333333730697632, INF], "2.15.0": [1.3333333730697632, INF]},
        ),
        ("multilabel_margin_loss", (ODD, t([[0, -1, 1], [2, 1, -1]], np.int64), 0), {"1.6.0": [0.0, INF], "2.15.0": [0.0, INF]}),
        (
            "triplet_margin_loss",
            (ONE, t([2.0, 1.0]), t([0.0, 0.0]), 1.0, 2.0, 1e-6, False, 0),
            {"1.9.1": REFUSED, "1.10.2": 0.1781444549560547},
        ),
        (
            "triplet_margin_loss",
            (X, t([1.0, 2.0, 3.0]), X, 1.0, 2.0, 1e-6, False, 0),
            {"1.9.1": [4.201559066772461, 6.196149826049805], "1.10.2": REFUSED},
        ),
        (
            "triplet_margin_loss",
            (t([[[1.0, 2.0]]]), t([[[1.0, 1.0]]]), t([[[2.0, 2.0]]]), 1.0, 2.0, 1e-6, False, 0),
            {"1.9.1": [[1.9669532775878906e-06, 2.0]], "1.10.2": [[1.0000019073486328]]},
        ),
        ("cosine_embedding_loss", (ONE, ONE, t(1.0), 0.5, 0), {"1.8.1": REFUSED, "1.9.1": REFUSED, "1.10.2": 0.0, "2.15.0": 0.0}),
        ("cosine_embedding_loss", (ONE, ONE, t([1.0]), 0.5, 0), {"1.8.1": REFUSED, "1.9.1": REFUSED, "2.15.0": REFUSED}),
        ("cosine_embedding_loss", (X, X, t(1.0), 0.5, 0), {"1.8.1": [0.0, 0.0], "1.9.1": REFUSED, "1.10.2": REFUSED}),
        ("cosine_embedding_loss", (X, t([1.0, 2.0, 3.0]), t([1.0, 1.0]), 0.5, 0), {"1.8.1": REFUSED, "2.15.0": REFUSED}),
        ("cosine_embedding_loss", (t([[[1.0]]]), t([[[1.0]]]), t([1.0]), 0.5, 0), {"1.9.1": [[0.0]], "1.10.2": REFUSED}),
        (
            "soft_margin_loss",
            (t([-1.0, 2.0]), t([-1.0, 1.0]), 0),
            {"1.13.1": [0.31326165795326233, 0.12692804634571075], "2.0.1": [0.3132616877555847, 0.12692801654338837]},
        ),
        (
            "poisson_nll_loss",
            (t([2.0, 0.0]), t([5.0, 30.0]), False, True, 1e-8, 0),
            {"1.8.1": [3.3051114082336426, 627.27587890625]},
        ),
        (
            "poisson_nll_loss",
            (t([1.0, 2.0]), t([2.0, 7.0]), True, True, 1e-8, 0),
            {"2.15.0": [1.3700882196426392, 1.9023199081420898]},
        ),
    ],
)
def test_losses_of_odd_arguments(name: str, args: tuple[Any, ...], results: dict[str, Any]) -> None:
    assert {horizon: answer(horizon, name, *args) for horizon in results} == results
