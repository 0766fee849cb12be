"""Recurrent networks with weights of 8 bits, or of 16-bit floating-point numbers: cells and whole layers.

The products are those of linear layers whose inputs are quantized by their own range, all steps together; the rest is computed in float32.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime.libraries import libraries
from torch_compat.runtime.operators._common import FLOAT32, INT64, Array, fail, random
from torch_compat.runtime.operators._products import looped
from torch_compat.runtime.operators._typed import typed
from torch_compat.runtime.operators.quantized_linear import linear_of, linear_of_halves
from torch_compat.runtime.operators.recurrent import STEPS, check_cell, inputs_of, run
from torch_compat.runtime.packed import PackedCell, PackedHalves, PackedLinear
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

Weight = PackedLinear | PackedHalves
OF_OBJECTS = Release("1.6.0")
"""The first release that has objects for the weights of a cell; before, a list has two packed weights for each."""
REDUCED = Release("1.8.0")
"""The first release whose cells reduce the range of the numbers."""


def _multiplying(weight: Weight, *, reduce_range: bool) -> Callable[[Array], Array]:
    """A function that multiplies with a weight and adds its bias."""
    if weight.__class__ is PackedHalves:
        return lambda x: linear_of_halves(x, weight)
    return lambda x: linear_of(x, weight, reduce_range=reduce_range)  # type: ignore[arg-type]


# ----------------------------------------------------------------------------------------------------------------- cells


@typed("quantized::make_quantized_cell_params_dynamic")
def make_quantized_cell_params_dynamic(
    w_ih: PackedLinear, w_hh: PackedLinear, bias_ih: Tensor, bias_hh: Tensor, reduce_range: bool = False
) -> PackedCell:
    """The weights of a layer of 8 bits; the biases are those of the packed weights."""
    del bias_ih, bias_hh
    return PackedCell("quantized_dynamic", w_ih, w_hh, reduce_range=reduce_range)


@typed("quantized::make_quantized_cell_params_fp16")
def make_quantized_cell_params_fp16(w_ih: PackedHalves, w_hh: PackedHalves) -> PackedCell:
    """The weights of a layer in float16."""
    return PackedCell("quantized_fp16", w_ih, w_hh)


def _cell(kind: str) -> None:
    step, count = STEPS[kind]

    def result_of(x: Array, hidden: list[Array], w_ih: PackedLinear, w_hh: PackedLinear) -> list[Tensor]:
        check_cell(kind, x, hidden, w_hh.weight.shape[1], rows=True)
        gates = [_multiplying(weight, reduce_range=libraries.release >= REDUCED) for weight in (w_ih, w_hh)]
        inputs = gates[0](x)
        return [Tensor(item) for item in step(inputs, tuple(hidden), (gates[0], gates[1], None, None))]

    if count == 1:

        @typed(f"quantized::quantized_{kind}_cell_dynamic")
        def cell(
            input: Tensor, hx: Tensor, w_ih: PackedLinear, w_hh: PackedLinear, b_ih: Tensor, b_hh: Tensor  # noqa: A002
        ) -> Tensor:  # fmt: skip
            """A cell; the biases are those of the packed weights."""
            del b_ih, b_hh
            return result_of(input.array, [hx.array], w_ih, w_hh)[0]

        return

    @typed(f"quantized::quantized_{kind}_cell_dynamic")
    def cell_of_two(
        input: Tensor, hx: list[Tensor], w_ih: PackedLinear, w_hh: PackedLinear, bias_ih: Tensor, bias_hh: Tensor  # noqa: A002
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """A cell; the biases are those of the packed weights."""
        del bias_ih, bias_hh
        h, c = result_of(input.array, _states(hx, 2), w_ih, w_hh)
        return h, c


for _kind in STEPS:
    _cell(_kind)


# ----------------------------------------------------------------------------------------------------------------- layers


def _states(hx: Any, count: int) -> list[Array]:
    states = hx if hx.__class__ is list else [hx]
    if len(states) != count or any(item.__class__ is not Tensor or item.array.dtype != FLOAT32 for item in states):
        raise fail(f"expected {count} hidden states of float32")
    return [item.array for item in states]


def _cells(params: list[Any]) -> list[tuple[Weight, Weight, bool]]:
    """The weights for inputs and hidden state of each layer and direction, and whether the range is reduced."""
    if libraries.release >= OF_OBJECTS and all(item.__class__ is PackedCell for item in params):
        return [(item.inputs, item.hidden, item.reduce_range) for item in params]
    if any(item.__class__ not in {PackedLinear, PackedHalves} for item in params):
        raise Unsupported("the reference reader supports only packed weights of recurrent networks", code="operator")
    if len(params) % 2:
        raise fail("got an incorrect number of quantized RNN parameters")
    return [(params[at], params[at + 1], False) for at in range(0, len(params), 2)]


def _layers(
    kind: str,
    steps: list[Array],
    states: list[Array],
    params: list[Any],
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[list[Array], list[Array]]:
    if train and dropout and num_layers > 1:
        raise random(f"aten::quantized_{kind} with dropout in training")
    directions = 2 if bidirectional else 1
    cells = _cells(params)
    if num_layers < 1 or len(cells) != num_layers * directions:
        raise fail("got an incorrect number of quantized RNN parameters")
    rows = len(steps[0])
    for item in states:
        if item.shape[:2] != (len(cells), rows):
            raise fail(f"Expected hidden size {(len(cells), rows)}, got {list(item.shape)}")
    final: list[list[Array]] = [[] for _ in states]
    looped(len(cells) * len(steps))
    for layer in range(num_layers):
        results = []
        for direction in range(directions):
            place = layer * directions + direction
            first, second, reduce_range = cells[place]
            gates = (_multiplying(first, reduce_range=reduce_range), _multiplying(second, reduce_range=reduce_range), None, None)
            inputs = inputs_of(steps, gates, batches=False, apart=False)
            check_cell(kind, inputs[0], [state[place] for state in states], second.weight.shape[1], rows=True)
            outputs, last = run(STEPS[kind][0], inputs, tuple(state[place] for state in states), gates, None, back=direction == 1)
            results.append(outputs)
            for whole, entry in zip(final, last, strict=True):
                whole.append(entry)
        steps = [np.concatenate(parts, axis=-1) for parts in zip(*results, strict=True)] if directions == 2 else results[0]
    return steps, [np.stack(entry) for entry in final]


def _network(kind: str) -> None:
    _, count = STEPS[kind]

    def padded(
        input: Tensor, hx: Any, params: list[Any], num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool  # noqa: A002
    ) -> tuple[Tensor, ...]:  # fmt: skip
        x = input.array.swapaxes(0, 1) if batch_first and input.array.ndim > 1 else input.array
        if x.ndim != 3 or not len(x):
            raise fail("Expected sequence length to be larger than 0 in RNN")
        states = _states(hx, count)
        steps, final = _layers(kind, list(x), states, params, num_layers, dropout, train, bidirectional)
        output = np.stack(steps)
        return Tensor(output.swapaxes(0, 1) if batch_first else output), *map(Tensor, final)

    def packed(
        data: Tensor,
        batch_sizes: Tensor,
        hx: Any,
        params: list[Any],
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
    ) -> tuple[Tensor, ...]:
        rows = batch_sizes.array
        if rows.dtype != INT64 or rows.ndim != 1 or not rows.size or (rows < 1).any() or (rows[1:] > rows[:-1]).any():
            raise fail("batch_sizes should be sizes that are positive and do not increase")
        if data.array.ndim != 2 or int(rows.sum()) != len(data.array):
            raise fail("the data of a packed sequence does not have as many rows as its batch sizes")
        bounds = np.cumsum([0, *rows.tolist()])
        pieces = [data.array[a:b] for a, b in pairwise(bounds)]
        steps, final = _layers(kind, pieces, _states(hx, count), params, num_layers, dropout, train, bidirectional)
        return Tensor(np.concatenate(steps)), *map(Tensor, final)

    @typed(f"aten::quantized_{kind}")
    def network(first: Tensor, *rest: Any, dtype: Any = None, use_dynamic: Any = False) -> tuple[Tensor, ...]:
        """A network of several layers, on padded sequences or on a packed one."""
        del dtype
        if kind == "lstm" and not use_dynamic and libraries.release < OF_OBJECTS:
            raise Unsupported("the reference reader supports only dynamic aten::quantized_lstm", code="operator")
        is_packed = len(rest) > 2 and rest[2].__class__ is list
        if len(rest) != 8:
            raise fail(f"quantized_{kind}() does not take these arguments")
        options = rest[3:] if not is_packed else rest[4:]
        given = rest[:2] if not is_packed else rest[:3]
        if any(item.__class__ not in {bool, int, float} for item in options) or given[-1].__class__ is not list:
            raise fail(f"quantized_{kind}() does not take these arguments")
        if is_packed:
            if given[0].__class__ is not Tensor:
                raise fail(f"quantized_{kind}() does not take these arguments")
            return packed(first, *given, *options)
        return padded(first, *given, *options)


for _kind in ("lstm", "gru"):
    _network(_kind)
