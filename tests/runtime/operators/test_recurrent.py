"""Recurrent layers: the memory order with batch_first, and the kernel that exported programs of 2.1 and 2.2 call for one layer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from torch_compat.errors import Raised, Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor

WIDTH, INPUTS, ROWS, STEPS = 2, 3, 5, 4


def ramp(*shape: int) -> Tensor:
    return Tensor((np.arange(np.prod(shape), dtype=np.float32) % 7 / 4 - 0.5).reshape(shape))


WEIGHTS = [ramp(4 * WIDTH, INPUTS), ramp(4 * WIDTH, WIDTH), ramp(4 * WIDTH), ramp(4 * WIDTH)]
STATE = [ramp(1, ROWS, WIDTH), ramp(1, ROWS, WIDTH)]


@pytest.mark.parametrize("horizon", ["1.0.0", "2.15.0"])
def test_with_the_batch_first_the_result_is_a_view_with_the_steps_outside(horizon: str) -> None:
    """A batch of 5 rows, 4 steps and width 2 has the strides (2, 10, 1) in 1.0.0 and in 2.15.0; with the steps first (10, 2, 1)."""
    lstm = resolve("aten::lstm", Release(horizon))
    first = lstm(ramp(ROWS, STEPS, INPUTS), STATE, WEIGHTS, True, 1, 0.0, False, False, True)[0]
    assert (first.shape, first.strides) == ((ROWS, STEPS, WIDTH), (WIDTH, ROWS * WIDTH, 1))
    later = lstm(ramp(STEPS, ROWS, INPUTS), STATE, WEIGHTS, True, 1, 0.0, False, False, False)[0]
    assert later.strides == (ROWS * WIDTH, WIDTH, 1)


def one_layer(x: Tensor, *, reverse: bool = False, biases: bool = True, mode: int = 2, layers: int = 1) -> tuple[Tensor, ...]:
    call = resolve("aten::mkldnn_rnn_layer", Release("2.2.2"))
    results: tuple[Tensor, ...] = call(x, *WEIGHTS, *STATE, reverse, [], mode, WIDTH, layers, biases, False, False, False)
    return results


@pytest.mark.parametrize("biases", [True, False])
def test_the_layer_of_onednn_computes_a_layer_of_an_lstm(biases: bool) -> None:
    x = ramp(STEPS, ROWS, INPUTS)
    params = WEIGHTS if biases else WEIGHTS[:2]
    expected = resolve("aten::lstm", Release("2.2.2"))(x, STATE, params, biases, 1, 0.0, False, False, False)
    result = one_layer(x, biases=biases)
    assert [tensor.array.tolist() for tensor in result[:3]] == [tensor.array.tolist() for tensor in expected]


def test_the_layer_of_onednn_runs_backwards() -> None:
    x = ramp(STEPS, ROWS, INPUTS)
    turned = one_layer(Tensor(np.ascontiguousarray(x.array[::-1])))
    result = one_layer(x, reverse=True)
    assert result[0].array[::-1].tolist() == turned[0].array.tolist()
    assert [tensor.array.tolist() for tensor in result[1:3]] == [tensor.array.tolist() for tensor in turned[1:3]]


@pytest.mark.parametrize(("mode", "layers"), [(3, 1), (2, 2)])
def test_other_networks_of_onednn_are_not_supported(mode: int, layers: int) -> None:
    with pytest.raises(Unsupported, match="mkldnn_rnn_layer"):
        one_layer(ramp(STEPS, ROWS, INPUTS), mode=mode, layers=layers)


CELLS = {
    kind: [ramp(gates * WIDTH, INPUTS), ramp(gates * WIDTH, WIDTH)]
    for kind, gates in {"gru": 3, "lstm": 4, "rnn_tanh": 1}.items()
}


def cell(kind: str, horizon: str, rows: int, states: int, width: int = WIDTH) -> Any:
    """The shape of what a cell gives, or "raises"."""
    state = ramp(states, width)
    try:
        result = resolve(f"aten::{kind}_cell", Release(horizon))(
            ramp(rows, INPUTS), [state, state] if kind == "lstm" else state, *CELLS[kind]
        )
    except Raised:
        return "raises"
    return (result[0] if kind == "lstm" else result).shape


@pytest.mark.parametrize("kind", CELLS)
def test_a_cell_refuses_what_does_not_fit(kind: str) -> None:
    """1.8.1 takes one row of input with three of the state, 1.9.1 does not; neither takes the other ones."""
    assert cell(kind, "1.8.1", 1, 3) == (3, WIDTH)
    assert cell(kind, "1.9.1", 1, 3) == "raises"
    for horizon in ("1.8.1", "1.9.1", "2.15.0"):
        assert cell(kind, horizon, 3, 3) == (3, WIDTH)
        assert cell(kind, horizon, 3, 1) == "raises"
        assert cell(kind, horizon, 3, 3, WIDTH + 1) == "raises"


@pytest.mark.parametrize(("horizon", "code"), [("1.8.1", "IndexError"), ("2.14.1", "IndexError"), ("2.15.0", "RuntimeError")])
def test_a_cell_refuses_a_vector(horizon: str, code: str) -> None:
    with pytest.raises(Raised) as error:
        resolve("aten::gru_cell", Release(horizon))(ramp(INPUTS), ramp(WIDTH), *CELLS["gru"])
    assert error.value.code == code


def test_a_layer_refuses_a_state_of_another_width() -> None:
    state = ramp(1, ROWS, WIDTH + 1)
    with pytest.raises(Raised, match="cannot be multiplied"):
        resolve("aten::gru")(ramp(STEPS, ROWS, INPUTS), state, CELLS["gru"], False, 1, 0.0, False, False, False)
    with pytest.raises(Unsupported, match="reads past the end"):
        resolve("aten::lstm")(ramp(STEPS, ROWS, INPUTS), [state, state], CELLS["lstm"], False, 1, 0.0, False, False, False)


@pytest.mark.parametrize(("horizon", "accepted"), [("1.13.1", False), ("2.0.0", True), ("2.0.1", True), ("2.1.2", False)])
def test_only_the_onednn_layer_of_2_0_takes_a_sequence_without_steps(horizon: str, accepted: bool) -> None:
    """2.0.0 and 2.0.1 return an empty output, for float32 and without a projection; the states are uninitialized."""
    lstm = resolve("aten::lstm", Release(horizon))
    doubles = [[Tensor(item.array.astype(np.float64)) for item in items] for items in (STATE, WEIGHTS)]
    if accepted:
        output, h, c = lstm(ramp(0, ROWS, INPUTS), STATE, WEIGHTS, True, 1, 0.0, False, False, False)
        assert (output.array.shape, h.array.shape, c.array.shape) == ((0, ROWS, WIDTH), (1, ROWS, WIDTH), (1, ROWS, WIDTH))
    else:
        with pytest.raises(Raised, match="Expected sequence length to be larger than 0 in RNN"):
            lstm(ramp(0, ROWS, INPUTS), STATE, WEIGHTS, True, 1, 0.0, False, False, False)
    with pytest.raises(Raised, match="Expected sequence length to be larger than 0 in RNN"):
        lstm(Tensor(np.zeros((0, ROWS, INPUTS))), *doubles, True, 1, 0.0, False, False, False)
