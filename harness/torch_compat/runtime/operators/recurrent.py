"""Recurrent networks: cells and whole layers, in one or two directions, with padded or packed sequences."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime.libraries import libraries
from torch_compat.runtime.operators._common import FLOAT32, FLOAT64, INT64, Array, fail, random, words
from torch_compat.runtime.operators._products import UNFOLDED, accumulated, exact, looped, sized
from torch_compat.runtime.operators._vectors import double_exponential, double_tanh, exponentials
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import raised

if TYPE_CHECKING:
    from collections.abc import Callable

State = tuple[Array, ...]
Gates = tuple[Any, Any, Array | None, Array | None]
LSTM = 2  # a mode of oneDNN
MATRIX = 2  # dimensions
BIAS_AT_ONCE, BY_ONEDNN = Release("1.12.0"), Release("2.0.0")
"""The first releases that add the bias of contiguous steps in the product, and whose LSTM layers are computed by oneDNN."""
NOT_OF_NOTHING = Release("2.1.0")
"""The first release after 2.0 that refuses a sequence without steps also where oneDNN would compute it."""


def _sigmoid(x: Array, of: Array) -> Array:
    """The sigmoid, which a release computes in place in ``of``: its memory layout determines the last bits of float32."""
    if x.dtype != FLOAT32:
        return np.asarray(1 / (1 + double_exponential(-x)))
    item = np.ones((), FLOAT32)
    return np.asarray(item / (item + exponentials(-x, of)))


def _tanh(x: Array) -> Array:
    return double_tanh(x) if x.dtype == FLOAT64 else np.asarray(np.tanh(x.astype(FLOAT64)).astype(x.dtype))


def _affine(x: Array, w: Any, b: Array | None, *, apart: bool = False) -> Array:
    """The product with a transposed weight, plus a bias.

    Parameters:
        w: the weight, or a function that multiplies with it and adds its bias, for weights that are not arrays.
        apart: whether the product is rounded before the bias is added, even if it is a single one.
    """
    if w.__class__ is not np.ndarray:
        return np.asarray(w(x))
    value = accumulated(x, w.T)
    if b is None:
        return value.astype(x.dtype)
    return np.asarray((value.astype(x.dtype) if apart else value) + b).astype(x.dtype)


def _lstm_step(inputs: Array, state: State, w: Gates, projection: Array | None = None) -> State:
    h, c = state
    i, f, g, o = np.split(_affine(h, w[1], w[3]) + inputs, 4, axis=-1)
    c = _sigmoid(f, f) * c + _sigmoid(i, i) * _tanh(g)
    h = _sigmoid(o, o) * _tanh(c)
    return (h if projection is None else _affine(h, projection, None)), c


def _gru_step(inputs: Array, state: State, w: Gates, projection: Array | None = None) -> State:
    del projection
    (h,) = state
    a, b, n = np.split(inputs, 3, axis=-1)
    u, v, m = np.split(_affine(h, w[1], w[3]), 3, axis=-1)
    reset, update = _sigmoid(a + u, u), _sigmoid(b + v, v)
    new = _tanh(n + reset * m)
    return ((h - new) * update + new,)


def _simple_step(activation: Callable[[Array], Array]) -> Any:
    def step(inputs: Array, state: State, w: Gates, projection: Array | None = None) -> State:
        del projection
        return (activation(_affine(state[0], w[1], w[3]) + inputs),)

    return step


def _relu(x: Array) -> Array:
    return np.where(x < 0, np.zeros((), x.dtype), x)


STEPS: dict[str, tuple[Any, int]] = {
    "lstm": (_lstm_step, 2), "gru": (_gru_step, 1), "rnn_tanh": (_simple_step(_tanh), 1), "rnn_relu": (_simple_step(_relu), 1),
}  # fmt: skip


def _weights(
    params: list[Tensor], has_biases: bool, projected: bool, layer: int, width: int, prepare: Callable[[Array], Array]
) -> tuple[Gates, Array | None]:
    first = layer * width
    results = [prepare(param.array) for param in params[first : first + width]]
    projection = results[-1] if projected else None
    return (results[0], results[1], results[2] if has_biases else None, results[3] if has_biases else None), projection


def run(
    step: Any, inputs: list[Array], state: State, w: Gates, projection: Array | None, *, back: bool
) -> tuple[list[Array], State]:
    """Run one layer in one direction over steps, given the products with its inputs; later steps may have fewer rows."""
    outputs: list[Array] = [np.empty(0)] * len(inputs)
    whole = tuple(item.copy() for item in state)
    order = range(len(inputs) - 1, -1, -1) if back else range(len(inputs))
    for at in order:
        rows = len(inputs[at])
        result = step(inputs[at], tuple(item[:rows] for item in whole), w, projection)
        for old, new in zip(whole, result, strict=True):
            old[:rows] = new
        outputs[at] = result[0].copy()
    return outputs, whole


def inputs_of(steps: list[Array], w: Gates, *, batches: bool, apart: bool) -> list[Array]:
    """The products of a layer's weight with the inputs of all steps, which are one matrix unless they are ``batches``."""
    if batches:
        return list(_affine(np.stack(steps).swapaxes(0, 1).copy().swapaxes(0, 1), w[0], w[2], apart=True))
    bounds = np.cumsum([0, *map(len, steps)])
    whole = _affine(np.concatenate(steps), w[0], w[2], apart=apart)
    return [whole[a:b] for a, b in pairwise(bounds)]


def _layers(
    kind: str, steps: list[Array], states: list[Array], params: list[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool,
    bidirectional: bool, *, padded: bool, batches: bool, prepare: Callable[[Array], Array],
) -> tuple[list[Array], list[Array]]:  # fmt: skip
    """Run all layers.

    Parameters:
        padded: whether the steps are one tensor with three dimensions.
        batches: whether the inputs of the first layer are not contiguous and are multiplied step by step.
        prepare: converts weights to the dtype of the computation.
    """
    if train and dropout and num_layers > 1:
        raise random(f"aten::{kind} with dropout in training")
    step, _ = STEPS[kind]
    directions = 2 if bidirectional else 1
    if states[0].shape[0] > num_layers * directions:
        raise fail("Expected more hidden states in stacked_rnn")
    width = len(params) // (num_layers * directions)
    projected = kind == "lstm" and width == (5 if has_biases else 3)
    final: list[list[Array]] = [[] for _ in states]
    looped(num_layers * directions * len(steps))
    for layer in range(num_layers):
        results = []
        for direction in range(directions):
            place = layer * directions + direction
            w, projection = _weights(params, has_biases, projected, place, width, prepare)
            apart = padded and (libraries.release < BIAS_AT_ONCE or (batches and not layer))
            inputs = inputs_of(steps, w, batches=batches and not layer and libraries.release >= UNFOLDED, apart=apart)
            outputs, last = run(step, inputs, tuple(state[place] for state in states), w, projection, back=direction == 1)
            results.append(outputs)
            for whole, item in zip(final, last, strict=True):
                whole.append(item)
        steps = [np.concatenate(parts, axis=-1) for parts in zip(*results, strict=True)] if directions == 2 else results[0]
    return steps, [np.stack(entry) for entry in final]


def _check(kind: str, x: Array, params: list[Tensor], hidden: list[Array]) -> None:
    if not params:
        raise fail(f"{kind}: no weights given")
    first = params[0].array
    if first.dtype != x.dtype:
        raise fail(f"input must have the type {words(first.dtype)}, got type {words(x.dtype)}")
    if x.shape[-1] != first.shape[1]:
        raise fail(f"input.size(-1) must be equal to input_size. Expected {first.shape[1]}, got {x.shape[-1]}")
    for item in hidden:
        if item.dtype != x.dtype:
            raise fail(f"hidden state has the type {words(item.dtype)}, the input {words(x.dtype)}")


def _check_width(kind: str, hidden: Array, params: list[Tensor]) -> None:
    """Check the width of the hidden state of a layer, which releases notice only in the multiplication.

    Raises:
        Unsupported: the width differs in an LSTM; releases since 2.0 read beyond the end of its memory.
        Raised: the width differs in another layer.
    """
    gates, width = params[1].array.shape
    if hidden.shape[-1] == width:
        return
    if kind == "lstm":
        raise Unsupported("an LSTM reads past the end of a hidden state with a different width", code="operator")
    raise fail(f"mat1 and mat2 shapes cannot be multiplied ({hidden.shape[-2]}x{hidden.shape[-1]} and {width}x{gates})")


def check_cell(kind: str, x: Array, hidden: list[Array], width: int, *, rows: bool) -> None:
    """Check the sizes of the inputs of a cell.

    Parameters:
        width: the width of the hidden state, given by the weights.
        rows: whether the input must have as many rows as the hidden state; up to 1.8 a single row could go with many.
    """
    if x.ndim == 1 and (rows or kind in {"gru", "lstm"}):
        raise raised("IndexError", "Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    for array in hidden:
        if array.shape[-1] != width:
            raise fail(f"hidden has inconsistent hidden_size: got {array.shape[-1]}, expected {width}")
        if array.ndim == x.ndim and array.shape[:-1] != x.shape[:-1] and (rows or x.shape[0] != 1):
            raise fail(f"Input batch size {x.shape[0]} doesn't match hidden batch size {array.shape[0]}")


def _precision(kind: str, x: Array, *, padded: bool) -> Callable[[Array], Array]:
    """How arrays are converted: float32 is kept where PyTorch computes the steps; oneDNN computes LSTM layers as of 2.0."""
    if x.dtype == FLOAT32 and not (padded and kind == "lstm" and libraries.release >= BY_ONEDNN):
        return lambda item: item
    return exact


def _network(kind: str) -> None:
    _, count = STEPS[kind]

    def of(hx: Any) -> list[Array]:
        return [tensor.array for tensor in hx] if count == 2 else [hx.array]

    def padded(
        input: Tensor, hx: Any, params: list[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool,  # noqa: A002
        batch_first: bool,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        x = input.array
        hidden = of(hx)
        _check(kind, x, params, hidden)
        prepare = _precision(kind, x, padded=True)
        wide = prepare(x.swapaxes(0, 1) if batch_first else x)
        if hidden[0].shape[1] != wide.shape[1]:
            raise fail(
                f"Expected hidden size {(hidden[0].shape[0], wide.shape[1], hidden[0].shape[2])}, got {list(hidden[0].shape)}"
            )
        by_onednn = kind == "lstm" and x.dtype == FLOAT32 and BY_ONEDNN <= libraries.release < NOT_OF_NOTHING
        if not len(wide) and by_onednn and hidden[0].shape[-1] == hidden[1].shape[-1]:
            output = np.zeros((*x.shape[:2], hidden[0].shape[-1] * (2 if bidirectional else 1)), x.dtype)
            return Tensor(output), *(Tensor(np.zeros_like(item)) for item in hidden)  # the contents of the states are undefined
        if not len(wide):
            raise fail("Expected sequence length to be larger than 0 in RNN")
        _check_width(kind, hidden[0], params)
        batches = wide.dtype == FLOAT32 and not wide.flags.c_contiguous and not params[0].requires_grad
        steps, final = _layers(
            kind, list(wide), [prepare(item) for item in hidden], params, has_biases, num_layers, dropout, train, bidirectional,
            padded=True, batches=batches, prepare=prepare,
        )  # fmt: skip
        output = np.stack(steps).astype(x.dtype)
        return Tensor(output.swapaxes(0, 1) if batch_first else output), *(Tensor(item.astype(x.dtype)) for item in final)

    def packed(
        data: Tensor, batch_sizes: Tensor, hx: Any, params: list[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool,
        bidirectional: bool,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        x = data.array
        hidden = of(hx)
        _check(kind, x, params, hidden)
        bounds = np.cumsum([0, *batch_sizes.array.tolist()])
        prepare = _precision(kind, x, padded=False)
        wide = prepare(x)
        pieces = [wide[a:b] for a, b in pairwise(bounds)]
        steps, final = _layers(
            kind, pieces, [prepare(item) for item in hidden], params, has_biases, num_layers, dropout, train, bidirectional,
            padded=False, batches=False, prepare=prepare,
        )  # fmt: skip
        return Tensor(np.concatenate(steps).astype(x.dtype)), *(Tensor(item.astype(x.dtype)) for item in final)

    def call(*args: Any, **keywords: Any) -> tuple[Tensor, ...]:
        is_packed = "data" in keywords or "batch_sizes" in keywords or (len(args) > 3 and args[3].__class__ is list)
        return (packed if is_packed else padded)(*args, **keywords)

    operator(f"aten::{kind}")(call)

    step = STEPS[kind][0]

    def cell(
        input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None, *, _rows: bool = False  # noqa: A002
    ) -> Any:  # fmt: skip
        x = input.array
        hidden = of(hx)
        _check(kind, x, [w_ih], hidden)
        check_cell(kind, x, hidden, w_hh.array.shape[1], rows=_rows)
        prepare = _precision(kind, x, padded=False)
        gates: Any = tuple(None if tensor is None else prepare(tensor.array) for tensor in (w_ih, w_hh, b_ih, b_hh))
        inputs = _affine(prepare(x), gates[0], gates[2])
        results = [Tensor(item.astype(x.dtype)) for item in step(inputs, tuple(prepare(item) for item in hidden), gates)]
        return tuple(results) if count == 2 else results[0]

    def of_rows(input: Tensor, *rest: Any, **named: Any) -> Any:  # noqa: A002
        """Since 1.9 the input must have as many rows as the hidden state."""
        return cell(input, *rest, **named, _rows=True)

    def of_matrices(input: Tensor, *rest: Any, **named: Any) -> Any:  # noqa: A002
        """Since 2.15 the dimensions of the input are checked first, with another error."""
        if input.array.ndim != MATRIX:
            raise fail(f"Expected 2D input (batch x feature), but got {input.array.ndim}D input")
        return cell(input, *rest, **named, _rows=True)

    for since, form in (("1.0.0", cell), ("1.9.0", of_rows), ("2.15.0", of_matrices)):
        operator(f"aten::{kind}_cell", since=since)(form)


for _kind in STEPS:
    _network(_kind)


@operator("aten::mkldnn_rnn_layer")
def mkldnn_rnn_layer(
    input: Tensor, weight0: Tensor, weight1: Tensor, weight2: Tensor, weight3: Tensor, hx_: Tensor, cx_: Tensor, reverse: bool,  # noqa: A002
    batch_sizes: list[int], mode: int, hidden_size: int, num_layers: int, has_biases: bool, bidirectional: bool, batch_first: bool, train: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """One LSTM layer in one direction; exported programs of 2.1 to 2.5 call it for each layer and direction of aten::lstm.

    The fourth result is the workspace that a release keeps for gradients; programs do not read it.
    """
    del hidden_size
    if mode != LSTM or num_layers != 1 or bidirectional or batch_first or batch_sizes or train:
        raise Unsupported("aten::mkldnn_rnn_layer is supported only for one LSTM layer", code="operator")
    x = input.array
    _check("lstm", x, [weight0], [hx_.array, cx_.array])
    biases = (exact(weight2.array), exact(weight3.array)) if has_biases else (None, None)
    gates: Gates = (exact(weight0.array), exact(weight1.array), *biases)
    looped(len(x))
    inputs = inputs_of(list(exact(x)), gates, batches=False, apart=False)
    outputs, state = run(_lstm_step, inputs, (exact(hx_.array[0]), exact(cx_.array[0])), gates, None, back=reverse)
    last = (Tensor(item[np.newaxis].astype(x.dtype)) for item in state)
    return Tensor(np.stack(outputs).astype(x.dtype)), *last, Tensor(np.empty(0, np.uint8))


# --------------------------------------------------------------------------------------------------------------- packing


@operator("aten::_pack_padded_sequence")
def pack_padded_sequence(input: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:  # noqa: A002
    """Pack the steps of sequences that are sorted by length, without padding; also returns the number of rows of each step."""
    x = input.array.swapaxes(0, 1) if batch_first else input.array
    counts = lengths.array
    if counts.dtype != INT64 or counts.ndim != 1:
        raise fail(f"'lengths' argument should be a 1D CPU int64 tensor, but got {counts.ndim}D cpu {words(counts.dtype)} tensor")
    if counts.size != x.shape[1]:
        raise fail(f"Expected `len(lengths)` to be equal to batch_size, but got {counts.size} (batch_size={x.shape[1]})")
    if (counts <= 0).any():
        raise fail("Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0")
    if (counts > len(x)).any():
        raise fail(f"Expected lengths of at most {len(x)}, the number of steps, but got {int(counts.max())}")
    if (counts[1:] > counts[:-1]).any():
        raise fail(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do not need ONNX exportability."
        )
    rows = np.asarray([(counts > step).sum() for step in range(looped(int(counts[0])))], INT64)
    return Tensor(np.concatenate([x[step, :many] for step, many in enumerate(rows)])), Tensor(rows)


@operator("aten::_pad_packed_sequence")
def pad_packed_sequence(
    data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: Any, total_length: int
) -> tuple[Tensor, Tensor]:
    """The inverse of ``_pack_padded_sequence``; also returns the lengths."""
    rows = batch_sizes.array
    if rows.dtype != INT64 or rows.ndim != 1 or not rows.size or (rows < 1).any() or (rows[1:] > rows[:-1]).any():
        raise fail("'batch_sizes' argument should be a 1D CPU int64 tensor of sizes that are positive and do not increase")
    if int(rows[0]) > len(data.array):
        raise fail(f"'data' argument has {len(data.array)} rows, but the first of 'batch_sizes' is {int(rows[0])}")
    steps = max(looped(rows.size), total_length)
    sized(steps, int(rows[0]), *data.array.shape[1:])
    value = np.full((steps, int(rows[0]), *data.array.shape[1:]), padding_value, data.array.dtype)
    start = 0
    for step, many in enumerate(rows):
        value[step, :many] = data.array[start : start + many]
        start += int(many)
    lengths = np.asarray([(rows > row).sum() for row in range(looped(int(rows[0])))], INT64)
    return Tensor(np.ascontiguousarray(value.swapaxes(0, 1)) if batch_first else value), Tensor(lengths)
