"""Operators of quantized networks: the integers and bits of releases, computed by fbgemm on a processor with 8-bit dot products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.runtime.operators.quantized_cases import Ref, channels, digest, floats, perform, quantized
from torch_compat.errors import Raised, Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import OpaqueTensor, Tensor

Calls = list[tuple[str, str, list[Any]]]
W, WEIGHT, P = Ref("w"), quantized(5, 9, start=3, dtype="qint8", scale=0.02, zero=0), Ref("p")


def linear(operator: str, weight: OpaqueTensor, x: Any, *rest: Any, bias: bool = True) -> Calls:
    count = weight.shape[0]
    return [
        ("w", "quantized::linear_prepack", [weight, floats(count, start=5) if bias else None]),
        ("y", f"quantized::{operator}", [x, W, *rest]),
    ]


def conv(operator: str, weight: OpaqueTensor, x: Any, options: list[Any], *rest: Any, outputs: int) -> Calls:
    prepack = operator.removesuffix("_relu").removesuffix("_dynamic") + "_prepack"
    return [
        ("w", f"quantized::{prepack}", [weight, floats(outputs, start=2), *options]),
        ("y", f"quantized::{operator}", [x, W, *rest]),
    ]


def layer(kind: str, gates: int) -> Calls:
    calls: Calls = []
    cells = []
    for place in range(2):
        weights = [quantized(gates * 5, size, start=place + size, dtype="qint8", scale=0.004, zero=0) for size in (6, 5)]
        biases = [floats(gates * 5, start=place + at) for at in (1, 2)]
        for name, weight, bias in zip("ih", weights, biases, strict=True):
            calls.append((f"{name}{place}", "quantized::linear_prepack", [weight, bias]))
        cell = [Ref(f"i{place}"), Ref(f"h{place}"), *biases, place == 1]
        calls.append((f"c{place}", "quantized::make_quantized_cell_params_dynamic", cell))
        cells.append(Ref(f"c{place}"))
    states = [floats(2, 2, 5, start=at) for at in (7, 8)]
    given = states if kind == "lstm" else states[0]
    calls.append(("y", f"aten::quantized_{kind}", [floats(3, 2, 6, start=4), given, cells, True, 1, 0.0, False, True, False]))
    return calls


def cell(kind: str, gates: int) -> Calls:
    weights = [quantized(gates * 3, size, start=size, dtype="qint8", scale=0.006, zero=0) for size in (4, 3)]
    biases = [floats(gates * 3, start=at) for at in (1, 2)]
    calls = [
        (name, "quantized::linear_prepack", [weight, bias]) for name, weight, bias in zip("ih", weights, biases, strict=True)
    ]
    states = [floats(2, 3, start=at) for at in (7, 8)]
    given = [floats(2, 4, start=4), states if kind == "lstm" else states[0], Ref("i"), Ref("h"), *biases]
    return [*calls, ("y", f"quantized::quantized_{kind}_cell_dynamic", given)]


def bag(bits: str, width: int) -> Calls:
    indices, offsets = Tensor(np.array([3, 0, 0, 1, 2])), Tensor(np.array([0, 2, 2]))
    return [
        ("p", f"quantized::embedding_bag_{bits}_prepack", [floats(4, width, start=3)]),
        (
            "y",
            f"quantized::embedding_bag_{bits}_rowwise_offsets",
            [P, indices, offsets, False, 0, False, floats(5, start=9), None, False],
        ),
    ]


X, Y = quantized(2, 3, 6, 5), quantized(2, 3, 6, 5, start=44, scale=0.11, zero=130)
PICTURES, LAST = quantized(1, 16, 6, 5, zero=100), quantized(1, 16, 6, 5, zero=100, last=True)
STATS = [floats(3, start=3), floats(3, start=4), floats(3, start=5), Tensor(np.array([0.5, 1.5, 2.5], np.float32))]
CASES: dict[str, Calls] = {
    "linear": linear("linear", WEIGHT, quantized(4, 9, start=2), 0.3, 100),
    "linear with a scale per channel": linear("linear", channels(5, 9, zeros=True), quantized(4, 9, start=2), 0.3, 100),
    "linear_relu without bias": linear("linear_relu", WEIGHT, quantized(2, 3, 9), 0.25, 3, bias=False),
    "linear_dynamic": linear("linear_dynamic", WEIGHT, floats(4, 9, start=2, scale=3.0)),
    "linear_dynamic of small numbers": linear("linear_dynamic", channels(5, 9), floats(4, 9, start=2, scale=1e-3)),
    "linear_dynamic of ties": linear("linear_dynamic", WEIGHT, Tensor((np.arange(36).reshape(4, 9) * 0.2 - 1.3).astype(np.float32))),
    "linear_relu_dynamic": linear("linear_relu_dynamic", channels(5, 9), floats(2, 2, 9, start=2, scale=3.0)),
    "linear_dynamic with a smaller range": linear("linear_dynamic", WEIGHT, floats(4, 9, start=2, scale=3.0), True),
    "linear_dynamic_fp16": [
        ("w", "quantized::linear_prepack_fp16", [floats(5, 9, start=3, scale=2.0), floats(5)]),
        ("y", "quantized::linear_dynamic_fp16", [floats(4, 9), W]),
    ],
    "conv2d": conv("conv2d", channels(4, 3, 3, 2, zeros=True), X, [[2, 1], [1, 0], [1, 2], 1], 0.4, 90, outputs=4),
    "conv2d_relu in groups": conv("conv2d_relu", quantized(4, 2, 3, 3, dtype="qint8", scale=0.02, zero=3), quantized(1, 4, 5, 5), [[1, 1], [1, 1], [1, 1], 2], 0.3, 20, outputs=4),
    "conv2d of single channels": conv("conv2d", channels(16, 1, 3, 3, zeros=True), PICTURES, [[1, 1], [1, 1], [1, 1], 16], 0.9, 128, outputs=16),
    "conv1d": conv("conv1d", channels(4, 3, 3), quantized(2, 3, 8), [[1], [1], [1], 1], 0.4, 90, outputs=4),
    "conv3d": conv("conv3d", channels(2, 3, 2, 2, 2), quantized(1, 3, 3, 4, 3), [[1, 1, 1], [0, 0, 1], [1, 1, 1], 1], 0.4, 90, outputs=2),
    "conv_transpose2d": conv("conv_transpose2d", quantized(3, 2, 3, 3, dtype="qint8", scale=0.02, zero=0), X, [[2, 2], [1, 1], [1, 1], [1, 1], 1], 0.3, 90, outputs=2),
    "conv2d_dynamic": conv("conv2d_dynamic", channels(4, 3, 3, 2), floats(1, 3, 5, 5), [[1, 1], [1, 0], [1, 1], 1], outputs=4),
    "quantized_lstm": layer("lstm", 4), "quantized_gru": layer("gru", 3), "lstm cell": cell("lstm", 4), "gru cell": cell("gru", 3),
    "rnn_relu cell": cell("rnn_relu", 1), "rnn_tanh cell": cell("rnn_tanh", 1),
    "add": [("y", "quantized::add", [X, Y, 0.2, 60])], "add_relu": [("y", "quantized::add_relu", [X, Y, 0.2, 60])],
    "mul": [("y", "quantized::mul", [X, Y, 0.5, 60])], "mul of qint8": [("y", "quantized::mul_relu", [quantized(2, 9, dtype="qint8"), quantized(2, 9, start=4, dtype="qint8"), 0.2, -4])],
    "add_scalar": [("y", "quantized::add_scalar", [X, 1.7])], "add_scalar beyond the range": [("y", "quantized::add_scalar_relu", [X, 9.7])],
    "mul_scalar": [("y", "quantized::mul_scalar", [X, -1.7])], "cat": [("y", "quantized::cat", [[X, Y], 1, 0.07, 30])],
    "cat_relu": [("y", "quantized::cat_relu", [[X, Y], -1, None, None])],
    "batch_norm2d": [("y", "quantized::batch_norm2d", [X, *STATS, 1e-5, 0.1, 50])], "batch_norm2d_relu": [("y", "quantized::batch_norm2d_relu", [X, *STATS, 1e-5, 0.1, 50])],
    "layer_norm": [("y", "quantized::layer_norm", [X, [6, 5], floats(6, 5), floats(6, 5, start=2), 1e-5, 0.01, 120])],
    "group_norm": [("y", "quantized::group_norm", [PICTURES, 4, floats(16), floats(16, start=2), 1e-5, 0.01, 120])],
    "instance_norm": [("y", "quantized::instance_norm", [PICTURES, None, None, 1e-5, 0.02, 120])],
    "sigmoid": [("y", "aten::sigmoid", [X])], "tanh of qint8": [("y", "aten::tanh", [quantized(70, dtype="qint8", scale=0.02)])],
    "hardswish": [("y", "quantized::hardswish", [X, 0.04, 11])], "elu": [("y", "quantized::elu", [Y, 0.1, 30, 0.7])],
    "leaky_relu": [("y", "quantized::leaky_relu", [Y, 0.1, False, 0.1, 30])], "relu6": [("y", "quantized::relu6", [X])],
    "hardtanh": [("y", "aten::hardtanh", [X, -0.2, 2.5])], "gelu": [("y", "aten::gelu", [Y])],
    "avg_pool2d": [("y", "aten::avg_pool2d", [PICTURES, [3, 2], [2, 1], [1, 0], False, True, None])],
    "avg_pool2d, channels last": [("y", "aten::avg_pool2d", [LAST, [3, 2], [2, 1], [1, 0], False, False, None])],
    "adaptive_avg_pool2d": [("y", "aten::adaptive_avg_pool2d", [PICTURES, [2, 3]])],
    "adaptive_avg_pool2d, channels last": [("y", "aten::adaptive_avg_pool2d", [LAST, [2, 3]])],
    "max_pool2d": [("y", "quantized::max_pool2d", [X, [3, 2], [2, 1], [1, 0], [1, 1], True])], "mean": [("y", "aten::mean", [PICTURES, [2, 3], True])],
    "upsample_nearest2d": [("y", "aten::upsample_nearest2d", [LAST, [4, 9]])], "upsample_bilinear2d": [("y", "aten::upsample_bilinear2d", [PICTURES, [4, 9], False])],
    "upsample_bilinear2d, channels last": [("y", "aten::upsample_bilinear2d", [LAST, [4, 9], True])],
    "bytes": bag("byte", 6), "4 bits": bag("4bit", 6), "2 bits": bag("2bit", 8),
    "quantize_per_tensor of ties": [("y", "aten::quantize_per_tensor", [Tensor(((np.arange(40) - 20.5) * 0.05059760182417265).astype(np.float32)), 0.05059760182417265, 46, 13])],
}  # fmt: skip
RELEASES = ("1.5.1", "1.6.0", "1.8.1", "1.10.2", "1.12.1", "2.0.1", "2.6.0", "2.13.0", "2.15.0")
EXPECTED: dict[str, str] = {
    "linear": "c01d841b = = = = = = = =",
    "linear with a scale per channel": "c2a3bdcc = = = = = = = =",
    "linear_relu without bias": "af001a97 = = = = = = = =",
    "linear_dynamic": "3bd60578 = = = = = = = =",
    "linear_dynamic of small numbers": "b6227a6e = = 598b0a21 = = = = =",
    "linear_dynamic of ties": "7816fa41 = = = = = = = 6f32d14e",
    "linear_relu_dynamic": "0cb313f3 = = = = = = = =",
    "linear_dynamic with a smaller range": "- ed9fa294 = = = = = = =",
    "linear_dynamic_fp16": "79ff9c8e = = = = = = = =",
    "conv2d": "- d9b88594 = = = = = = =",
    "conv2d_relu in groups": "- 5cfbe8cb = = = = = = =",
    "conv2d of single channels": "- 8a4e5c68 = = = = = = =",
    "conv1d": "- ae4be5c2 = = = = = = =",
    "conv3d": "- e378c255 = = = = = = =",
    "conv_transpose2d": "- = 2515cb7c = = = = = =",
    "conv2d_dynamic": "- = = = 6d14eb51 = = = =",
    "quantized_lstm": "- d0658480 = = = = = = =",
    "quantized_gru": "- 41e7078e = = = = = = =",
    "lstm cell": "- 2a559cb4 600d48cd = = = = = =",
    "gru cell": "- 647b62ad f8b1c911 = = = = = =",
    "rnn_relu cell": "- add439ea 9993d94b = = = = = =",
    "rnn_tanh cell": "- bcf10a1d 770caba8 = = = = = =",
    "add": "019f1ee4 77d9e79f = = = = = = =",
    "add_relu": "e248d762 e5274849 = = = = = = =",
    "mul": "b01f4af9 = = = = = = = =",
    "mul of qint8": "83ef243d = = = = = = = =",
    "add_scalar": "ca0dc213 = = = = = = = =",
    "add_scalar beyond the range": "b7a053cd = = = = = = = =",
    "mul_scalar": "fb535c0c = = = = = = = =",
    "cat": "f9ccee83 = = = = = = = =",
    "cat_relu": "57956a5f = = = = = = = =",
    "batch_norm2d": "- b3d24560 = = = = = = =",
    "batch_norm2d_relu": "b3d24560 b8eafa1e = = = = = = =",
    "layer_norm": "- 0b42bfc1 = = = = = = =",
    "group_norm": "- 0a1624de = = = = = = =",
    "instance_norm": "- 5848ac22 = = = = = = =",
    "sigmoid": "035b7030 = = = = = = = =",
    "tanh of qint8": "ea51ae87 = = = = = = = =",
    "hardswish": "- 38c77134 = = = = = 0f8aecfe 38c77134",
    "elu": "- 959c6293 = = = = = = =",
    "leaky_relu": "- = 4a3a4a90 = = = = = =",
    "relu6": "4a0e6210 = = = = = = = =",
    "hardtanh": "a424a8b1 = = = = = = = =",
    "gelu": "- = = = 0c100a71 = = = =",
    "avg_pool2d": "ac310062 = = = = = = = =",
    "avg_pool2d, channels last": "874d3764 = = = = = = = =",
    "adaptive_avg_pool2d": "d3344a9c = = = = = = = =",
    "adaptive_avg_pool2d, channels last": "d3344a9c = = = = = = = =",
    "max_pool2d": "a93340d9 = = = = = = = =",
    "mean": "c524a0bc fbdcda66 5e574a68 = = c524a0bc = = =",
    "upsample_nearest2d": "436dd927 = = = = = = = =",
    "upsample_bilinear2d": "95ee0783 = = = = = = = =",
    "upsample_bilinear2d, channels last": "2ad3f360 = = = = = = = =",
    "bytes": "- = a8808e4f = = = = = =",
    "4 bits": "- = c0fc8e50 = = = = = =",
    "2 bits": "- = = 462116d9 = = = = =",
    "quantize_per_tensor of ties": "cf9622b9 8a5bd365 = = = = = cf9622b9 8a5bd365",
}
"""The digest of the result in each of the releases; ``=`` is the one before, a dash is a call that the release lacks."""


@pytest.mark.parametrize("name", CASES)
def test_results_of_releases(name: str) -> None:
    results: list[str] = []
    for release, recorded in zip(RELEASES, EXPECTED[name].split(), strict=True):
        expected = results[-1] if recorded == "=" else recorded
        results.append(expected if expected == "-" else digest(perform(CASES[name], release)))
        assert results[-1] == expected, release


def packed(**changed: Any) -> Any:
    options = {"stride": [2, 1], "padding": [1, 0], "dilation": [1, 2], "groups": 1, **changed}
    weight, bias = channels(4, 3, 3, 2), floats(4)
    return resolve("quantized::conv2d_prepack")(weight, bias, *options.values())


def test_what_a_packed_convolution_holds() -> None:
    value = packed()
    words = ("stride", "padding", "output_padding", "dilation", "groups", "transpose")
    assert [resolve(f"quantized::conv2d_{word}")(value) for word in words] == [[2, 1], [1, 0], [0, 0], [1, 2], 1, False]
    weight, bias = resolve("quantized::conv2d_unpack")(value)
    assert weight.shape == (4, 3, 3, 2)
    assert bias.array.shape == (4,)


def test_the_call_of_1_5_repeats_the_options() -> None:
    call = resolve("quantized::conv2d", Release("1.5.1"))
    result = call(X, packed(), [2, 1], [1, 0], [1, 2], 1, 0.4, 90)
    assert digest(result) == digest(resolve("quantized::conv2d", Release("2.15.0"))(X, packed(), 0.4, 90))
    with pytest.raises(Raised, match="does not take these arguments"):
        call(X, packed(), [2, 1], 0.4, 90)


def test_the_weight_in_float16_is_bounded() -> None:
    weight = Tensor(np.array([[1e6, 1.0001, -1e6]], np.float32))
    value = resolve("quantized::linear_prepack_fp16")(weight, None)
    unpacked, bias = resolve("quantized::linear_unpack_fp16")(value)
    assert unpacked.array.tolist() == [[65504.0, 1.0, -65504.0]]
    assert bias is None


def test_sums_of_single_channels_are_saturated() -> None:
    """Two products of 255 and 127 exceed 16 bits; other kernels add them exactly, and so does oneDNN as of 2.0 on some processors."""
    weight = quantized(8, 1, 3, 3, dtype="qint8", scale=1.0, zero=0, least=127, most=127)
    x = quantized(1, 8, 3, 3, scale=1.0, zero=0, least=255, most=255)
    options = [[1, 1], [1, 1], [1, 1], 8]
    w = resolve("quantized::conv2d_prepack")(weight, None, *options)
    result = resolve("quantized::conv2d", Release("1.13.1"))(x, w, 5000.0, 0)
    assert result.parts["elements"][0, 0, 1, 1] == round((4 * 32767 + 255 * 127) / 5000)
    with pytest.raises(Unsupported, match="oneDNN"):
        resolve("quantized::conv2d", Release("2.0.0"))(x, w, 5000.0, 0)


def test_transposed_convolutions_by_onednn() -> None:
    weight = quantized(3, 2, 3, 3, dtype="qint8", scale=0.02, zero=0)
    w = resolve("quantized::conv_transpose2d_prepack")(weight, None, [1, 1], [0, 0], [0, 0], [1, 1], 1)
    assert resolve("quantized::conv_transpose2d", Release("1.13.1"))(X, w, 0.4, 90).shape == (2, 2, 8, 7)
    with pytest.raises(Unsupported, match="oneDNN"):
        resolve("quantized::conv_transpose2d", Release("2.0.0"))(X, w, 0.4, 90)


def test_memory_order_of_pictures() -> None:
    result = resolve("quantized::conv2d", Release("2.15.0"))(X, packed(), 0.4, 90)
    elements = result.parts["elements"]
    assert elements.strides[1] == elements.itemsize
    kept = resolve("aten::dequantize", Release("1.7.1"))(result)
    assert kept.strides[1] == 1
    assert resolve("aten::dequantize", Release("1.6.0"))(result).array.flags.c_contiguous


@pytest.mark.parametrize(
    ("operator", "args"),
    [
        ("linear_prepack", [quantized(5, 9), None]),
        ("linear_prepack", [quantized(5, dtype="qint8"), None]),
        ("linear_prepack", [WEIGHT, floats(4)]),
        ("linear_prepack", [channels(5, 9, axis=1), None]),
        ("linear_prepack_fp16", [floats(5), None]),
        ("conv2d_prepack", [channels(4, 3, 3), None, [1, 1], [0, 0], [1, 1], 1]),
        ("conv2d_prepack", [channels(4, 3, 3, 3), None, [1], [0, 0], [1, 1], 1]),
        ("conv2d_prepack", [channels(4, 3, 3, 3), None, [0, 1], [0, 0], [1, 1], 1]),
        ("conv2d_prepack", [channels(4, 3, 3, 3), None, [1, 1], [0, 0], [1, 1], 3]),
        ("conv2d_prepack", [channels(4, 3, 3, 3), None, [1, 1], [0, -1], [1, 1], 1]),
        ("linear", [quantized(2, 8), "w", 0.1, 0]),
        ("linear", [quantized(2, 9, dtype="qint8"), "w", 0.1, 0]),
        ("linear", [floats(2, 9), "w", 0.1, 0]),
        ("linear", [quantized(2, 9), 3, 0.1, 0]),
        ("linear", [quantized(2, 9), "w"]),
        ("linear_dynamic", [floats(2, 8), "w"]),
        ("linear_dynamic", [Tensor(np.array([[np.nan] * 9], np.float32)), "w"]),
        ("linear_dynamic", [Tensor(np.zeros((2, 9))), "w"]),
        ("linear_dynamic_fp16", [floats(2, 9), "w"]),
        ("conv2d", [quantized(1, 2, 5, 5), packed(), 0.1, 0]),
        ("conv2d", [quantized(1, 3, 1, 1), packed(), 0.1, 0]),
        ("conv2d", [quantized(3, 5, 5), packed(), 0.1, 0]),
        ("add", [X, quantized(2, 3), 0.1, 0]),
        ("add", [X, quantized(2, 3, 6, 5, dtype="qint8"), 0.1, 0]),
        ("add", [X, Y]),
        ("add_scalar", [X, float("nan")]),
        ("cat", [[], 0, None, None]),
        ("cat", [[X, quantized(2, 3)], 0, None, None]),
        ("cat", [[X], 4, None, None]),
        ("layer_norm", [X, [5, 6], None, None, 1e-5, 0.1, 0]),
        ("group_norm", [X, 2, None, None, 1e-5, 0.1, 0]),
        ("batch_norm2d", [X, *STATS[:2], floats(2), STATS[3], 1e-5, 0.1, 0]),
        ("embedding_bag_byte_prepack", [floats(3)]),
        ("embedding_bag_4bit_prepack", [floats(3, 5)]),
        ("embedding_bag_byte_unpack", [floats(3, 5)]),
        ("embedding_bag_byte_rowwise_offsets", ["p", Tensor(np.array([4])), Tensor(np.array([0]))]),
        ("embedding_bag_byte_rowwise_offsets", ["p", Tensor(np.array([1])), Tensor(np.array([2]))]),
    ],
)
def test_refused(operator: str, args: list[Any]) -> None:
    known = {
        "w": resolve("quantized::linear_prepack")(WEIGHT, None),
        "p": resolve("quantized::embedding_bag_byte_prepack")(floats(4, 6)),
    }
    with pytest.raises(Raised):
        resolve(f"quantized::{operator}", Release("2.15.0"))(*(known[item] if item.__class__ is str else item for item in args))


@pytest.mark.parametrize(
    ("operator", "args"),
    [
        ("quantized::embedding_bag_4bit_prepack", [floats(3, 4), True]),
        ("aten::quantized_lstm", [floats(1, 1, 2), [floats(1, 1, 2)] * 2, [floats(2, 2)], True, 1, 0.0, False, False, False]),
        ("aten::gelu", [X]),
    ],
)
def test_not_supported(operator: str, args: list[Any]) -> None:
    keywords = {"approximate": "tanh"} if operator == "aten::gelu" else {}
    with pytest.raises(Unsupported):
        resolve(operator, Release("2.15.0"))(*args, **keywords)
