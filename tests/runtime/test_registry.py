from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from torch_compat.errors import Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime import registration, registry
from torch_compat.runtime.registry import operator, resolve
from torch_compat.runtime.tensor import Tensor


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty table, and back to the real one afterwards."""
    monkeypatch.setattr(registration, "registered", {})
    monkeypatch.setattr(registry, "_resolved", {})
    monkeypatch.setattr(registry, "_discovered", True)


@pytest.mark.usefixtures("table")
def test_the_last_version_up_to_the_horizon_is_called() -> None:
    operator("x::f")(lambda _: "old")
    operator("x::f", since="1.6.0")(lambda _: "new")
    tensor = Tensor(np.zeros(1))
    assert resolve("x::f", Release("1.5.1"))(tensor) == "old"
    assert resolve("x::f", Release("1.6.0"))(tensor) == "new"
    assert resolve("x::f")(tensor) == "new"


@pytest.mark.usefixtures("table")
def test_an_operator_is_unknown_before_it_was_there() -> None:
    operator("x::f", since="1.6.0")(lambda _: "new")
    with pytest.raises(Unsupported, match="x::f"):
        resolve("x::f", Release("1.5.1"))


@pytest.mark.usefixtures("table")
def test_the_kind_of_the_first_argument_chooses() -> None:
    for kind in ("tensor", "scalar", "list", "str", "any"):
        operator("x::f", of=kind)(lambda *_, kind=kind: kind)
    f = resolve("x::f")
    tensor = Tensor(np.zeros(1))
    assert [f(tensor), f(1), f(1.5), f(True), f([]), f(""), f({}), f(None)] == [
        "tensor",
        *["scalar"] * 3,
        "list",
        "str",
        "any",
        "any",
    ]
    assert f(1, tensor) == "tensor"
    assert f([], tensor) == "list"


@pytest.mark.usefixtures("table")
def test_a_kind_that_nobody_wrote_is_unsupported_and_named() -> None:
    operator("x::f", of="list")(lambda _: 1)
    with pytest.raises(Unsupported, match="x::f for a value of type str"):
        resolve("x::f")("text")


@pytest.mark.usefixtures("table")
def test_twice_the_same_is_a_mistake() -> None:
    operator("x::f")(lambda _: 1)
    with pytest.raises(ValueError, match="twice"):
        operator("x::f")(lambda _: 2)


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("needs", [True, False])
def test_what_is_computed_from_what_requires_gradients_requires_them(needs: bool) -> None:
    operator("x::f")(lambda *values: [Tensor(np.zeros(1)), (Tensor(np.zeros(1, np.int64)),)])
    operator("x::g", gradient=False)(lambda _: Tensor(np.zeros(1)))
    given = Tensor(np.zeros(1), requires_grad=needs)
    floating, (integer,) = resolve("x::f")([given])
    assert floating.requires_grad is needs
    assert integer.requires_grad is False
    assert resolve("x::g")(given).requires_grad is False


def test_nothing_requires_gradients_while_they_are_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.grad, "enabled", False)
    result: Any = resolve("aten::mul")(Tensor(np.ones(1), requires_grad=True), 2)
    assert result.requires_grad is False


def test_everything_in_the_table_is_callable_at_every_release_it_starts_at() -> None:
    for name, kinds in registry.known().items():
        for versions in kinds.values():
            for since in versions:
                assert callable(resolve(name, since)), name


@pytest.mark.parametrize(("name", "horizon", "tracked"), [
    ("aten::native_batch_norm", "1.6.0", [True, False, False]),
    ("aten::_native_batch_norm_legit_functional", "2.4.1", [True, False, False, False, False]),
    ("aten::native_layer_norm", "1.9.1", [True, True, True]),
    ("aten::native_layer_norm", "1.10.2", [True, False, False]),
    ("aten::native_group_norm", "2.13.0", [True, True, True]),
])  # fmt: skip
def test_results_that_derivatives_do_not_use_require_no_gradients(name: str, horizon: str, tracked: list[bool]) -> None:
    """The answers are those of the releases."""
    x, weight = (Tensor(np.ones(shape, np.float32), requires_grad=True) for shape in ((3, 4), 4))
    stats = Tensor(np.zeros(4, np.float32)), Tensor(np.ones(4, np.float32))
    rest = {"native_layer_norm": ([4], weight, weight, 1e-5), "native_group_norm": (weight, weight, 3, 4, 1, 2, 1e-5)}
    given = rest.get(name.rpartition("::")[2], (weight, weight, *stats, True, 0.1, 1e-5))
    assert [part.requires_grad for part in resolve(name, Release(horizon))(x, *given)] == tracked


def test_the_versions_of_an_operator_stand_in_one_file() -> None:
    """Its history is one look. What belongs together is found together."""
    for name in registry.known():
        for row in registry.implementations(name):
            assert len({version["file"] for version in row["versions"]}) == 1, row
