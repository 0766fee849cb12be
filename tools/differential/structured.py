"""Strategies for operators with interdependent arguments: most of the generated calls are valid in torch.

A function here provides some arguments by name; the others are generated from their types (see :mod:`arguments`). :func:`spec_of` finds it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from tools.differential.arguments import COMPLEX, EVERY, FLOATS, KINDS
from torch_compat.operators.call_signature import bare

if TYPE_CHECKING:
    from collections.abc import Callable

    from tools.differential.arguments import Maker

    Spec = Callable[[Maker, dict[str, Any]], dict[str, Any]]

_SPECS: list[tuple[re.Pattern[str], Spec]] = []
HALVES = ("float32", "float32", "float32", "float64", "bfloat16", "float16")


def spec(pattern: str) -> Callable[[Spec], Spec]:
    """Register a strategy for matching names, without the namespace and without the ``_`` of in-place variants."""

    def register(function: Spec) -> Spec:
        _SPECS.append((re.compile(pattern), function))
        return function

    return register


def spec_of(name: str) -> Spec | None:
    """The strategy of an operator."""
    plain = bare(name.split("::")[1])
    return next((function for pattern, function in _SPECS if pattern.fullmatch(plain)), None)


def dims_of(name: str) -> int:
    """The number of spatial dimensions: 1 for conv1d, 2 for upsample_nearest2d."""
    match = re.search(r"(\d)d", name)
    return int(match.group(1)) if match else 2


def _none_or(make: Maker, value: Any) -> Any:
    return value if make.flag() else None


def _shaped(schema: dict[str, Any], **values: Any) -> dict[str, Any]:
    """Keep only arguments that the schema has."""
    names = {argument["name"] for argument in schema["arguments"]}
    return {name: value for name, value in values.items() if name in names}


def _like(make: Maker, kind: str, shape: Any, **limits: Any) -> Any:
    return make.tensor(shape, kind, **limits)


# ------------------------------------------------------------------------------------------------------------ convolution


@spec(r"conv[123]d|convolution|convolution_overrideable|_convolution|conv_transpose[123]d")
def convolution(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """A weight that fits the input."""
    n = dims_of(make.name) if "d" in make.name[-2:] else make.integer(1, 2)
    kind = make.pick(("float32", "float32", "float32", "float64", "int64" if "transpose" not in make.name else "float64"))
    groups = make.pick((1, 1, 2))
    transposed = "transpose" in make.name or ("_trans" in make.name) or ("convolution" in make.name and make.flag())
    stride = make.integers(n, 1, 2)
    dilation = make.integers(n, 1, 2)
    kernel = make.integers(n, 1, 3)
    each_in, each_out = make.integer(1, 2), make.integer(1, 2)
    most = [0 if transposed and k == 1 else 1 for k in kernel]  # some kernels reject padding that leaves no output
    sizes = [make.integer(0, 3) + d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    batch = [] if "convolution" not in make.name and make.integer(0, 4) == 0 else [make.integer(1, 2)]
    channels = each_in * groups
    weight = [channels, each_out, *kernel] if transposed else [each_out * groups, each_in, *kernel]
    text = any(argument["name"] == "padding" and argument["real"] == "str" for argument in schema["arguments"])
    padding: Any = make.pick(("valid", "same")) if text else [make.integer(0, item) for item in most]
    output = [make.integer(0, max(0, s - 1)) for s in stride] if transposed else [0] * n
    return _shaped(
        schema, input=_like(make, kind, [*batch, channels, *sizes]), weight=_like(make, kind, weight),
        bias=_none_or(make, _like(make, kind, [each_out * groups])), stride=stride, padding=padding, dilation=dilation, groups=groups,
        transposed=transposed, output_padding=output, benchmark=False, deterministic=False, cudnn_enabled=True, allow_tf32=True,
    )  # fmt: skip


@spec("conv_tbc")
def conv_tbc(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Time, batch, channels."""
    kernel, channels, result = make.integer(1, 2), make.integer(1, 2), make.integer(1, 2)
    return {
        "self": make.tensor([make.integer(2, 4), make.integer(1, 2), channels]), "weight": make.tensor([kernel, channels, result]),
        "bias": make.tensor([result]), "pad": make.integer(0, 1),
    }  # fmt: skip


@spec("im2col|unfold_nd")
def im2col(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Patches to columns."""
    batch = [make.integer(1, 2)] if make.often() else []
    return {
        "self": make.tensor([*batch, make.integer(1, 2), make.integer(3, 5), make.integer(3, 5)], make.floating()),
        "kernel_size": make.integers(2, 1, 2), "dilation": make.integers(2, 1, 2), "padding": make.integers(2, 0, 1),
        "stride": make.integers(2, 1, 2),
    }  # fmt: skip


@spec("col2im")
def col2im(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Columns to patches: as many as the size gives."""
    size, kernel, dilation = make.integers(2, 3, 4), make.integers(2, 1, 2), make.integers(2, 1, 2)
    padding, stride = make.integers(2, 0, 1), make.integers(2, 1, 2)
    blocks = 1
    for at in range(2):
        blocks *= (size[at] + 2 * padding[at] - dilation[at] * (kernel[at] - 1) - 1) // stride[at] + 1
    batch = [make.integer(1, 2)] if make.often() else []
    columns = make.integer(1, 2) * kernel[0] * kernel[1]
    return {
        "self": make.tensor([*batch, columns, blocks], make.floating()), "output_size": size, "kernel_size": kernel,
        "dilation": dilation, "padding": padding, "stride": stride,
    }  # fmt: skip


# ---------------------------------------------------------------------------------------------------------------- pooling


@spec(r"(max|avg)_pool[123]d(_with_indices)?")
def pool(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Kernels that fit."""
    n = dims_of(make.name)
    kernel = make.integers(n, 1, 3)
    padding = [make.integer(0, k // 2) for k in kernel]
    batch = [make.integer(1, 2)] if make.often() else []
    sizes = [make.integer(3, 6) for _ in range(n)]
    stride = make.pick(([], make.integers(n, 1, 3)))
    kinds = HALVES if "avg" in make.name else (*HALVES, "int64")
    item = make.integer(0, 3) == 0
    return _shaped(
        schema, self=make.tensor([*batch, make.integer(1, 2), *sizes], make.pick(kinds)), kernel_size=kernel[:1] if item else kernel,
        stride=stride, padding=[min(padding)] if item else padding, dilation=make.pick(([1], make.integers(n, 1, 2))), ceil_mode=make.flag(),
        count_include_pad=make.flag(), divisor_override=_none_or(make, make.integer(1, 4)),
    )  # fmt: skip


@spec(r"_?adaptive_(avg|max)_pool[123]d")
def adaptive_pool(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Any size."""
    n = dims_of(make.name)
    batch = [make.integer(0, 2)] if make.often() else []
    return {
        "self": make.tensor([*batch, make.integer(1, 2), *make.integers(n, 1, 5)], make.pick(HALVES)),
        "output_size": make.integers(n, 1, 4),
    }


@spec(r"max_unpool[23]d")
def max_unpool(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Positions within the result, unique within each plane."""
    n = dims_of(make.name)
    sizes = make.integers(n, 1, 2)
    big = [2 * size + make.integer(0, 1) for size in sizes]
    count = int(np.prod(sizes))
    shape = [1, make.integer(1, 2), *sizes]
    places = np.stack([np.random.default_rng(make.integer(0, 9)).permutation(int(np.prod(big)))[:count] for _ in range(shape[1])])
    return _shaped(
        schema, self=make.tensor(shape, make.pick(FLOATS)), indices=make.given(places.reshape(shape)), output_size=big,
        stride=[2] * n, padding=[0] * n,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------------------ interpolation


@spec(r"_?upsample_(nearest|nearest_exact|linear|bilinear|trilinear|bicubic|lanczos)(_exact)?[123]d(_aa)?")
def upsample(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Either a size or scales."""
    n = dims_of(make.name)
    # torch rounds the weights of halves to half precision, which the reader does not; the results differ by about one percent
    kinds = (*FLOATS, "float16", "bfloat16", "uint8") if "nearest" in make.name else FLOATS
    # below two, torch's filters read every row from the first (antialias)
    sizes = make.integers(n, 2 if "_aa" in make.name else 1, 5)
    x = make.tensor([make.integer(1, 2), make.integer(1, 2), *sizes], make.pick(kinds))
    wanted = make.integers(n, 2 if "_aa" in make.name else 1, 6)
    scales = [make.pick((2.0, 1.0, 1.5, 3.0) if "_aa" in make.name else (2.0, 0.5, 1.5, 1.0, 0.75, 3.0)) for _ in range(n)]
    by_scale = make.flag()
    if schema["overload"].startswith("vec"):
        return _shaped(
            schema, input=x, output_size=None if by_scale else wanted, align_corners=make.flag(),
            scale_factors=[{"float": repr(scale)} for scale in scales] if by_scale else None,
        )  # fmt: skip
    if by_scale:
        wanted = [max(1, int(size * scale)) for size, scale in zip(sizes, scales, strict=True)]
    names = {1: ["scales"], 2: ["scales_h", "scales_w"], 3: ["scales_d", "scales_h", "scales_w"]}[n]
    messages = {name: {"float": repr(scale)} if by_scale else None for name, scale in zip(names, scales, strict=True)}
    return _shaped(schema, self=x, output_size=wanted, align_corners=make.flag(), **messages)


@spec(r"__interpolate|__upsample(_nearest|_bilinear)?")
def interpolate(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """As in torch.nn.functional."""
    mode = make.pick(("nearest", "linear", "bilinear", "trilinear", "bicubic", "area", "nearest-exact"))
    n = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}.get(mode) or make.integer(1, 3)
    if make.name == "__upsample_bilinear":
        n = 2
    by_scale = make.flag()
    kinds = {argument["name"]: argument["real"] for argument in schema["arguments"]}

    def many(value: Any, name: str) -> Any:
        return [value] * n if "List" in kinds.get(name, "") else value

    scale: Any = make.pick((2, 3)) if "int" in kinds.get("scale_factor", "") else {"float": make.pick(("2.0", "1.5", "0.5"))}
    corners = make.flag() if mode in {"linear", "bilinear", "trilinear", "bicubic"} and make.flag() else None
    return _shaped(
        schema, input=make.tensor([1, make.integer(1, 2), *make.integers(n, 2, 4)], make.pick(FLOATS)),
        size=None if by_scale else many(make.integer(1, 5), "size"), scale_factor=many(scale, "scale_factor") if by_scale else None,
        mode=mode, align_corners=corners, recompute_scale_factor=make.flag() if by_scale and make.flag() else None, antialias=False,
    )  # fmt: skip


@spec(r"grid_sampler(_[23]d)?")
def grid_sampler(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Positions inside and slightly outside of the image."""
    n = 3 if make.name.endswith("3d") or (make.name == "grid_sampler" and make.integer(0, 3) == 0) else 2
    kind, batch = make.pick(FLOATS), make.integer(1, 2)
    return {
        "input": make.tensor([batch, make.integer(1, 2), *make.integers(n, 1, 4)], kind),
        "grid": make.tensor([batch, *make.integers(n, 1, 3), n], kind, low=-1.4, high=1.35),
        "interpolation_mode": make.integer(0, 1 if n == 3 else 2), "padding_mode": make.integer(0, 2), "align_corners": make.flag(),
    }  # fmt: skip


@spec("affine_grid_generator")
def affine_grid(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Two or three dimensions."""
    n, batch = make.integer(2, 3), make.integer(1, 2)
    return {"theta": make.tensor([batch, n, n + 1], make.pick(FLOATS)), "size": [batch, 1, *make.integers(n, 1, 3)]}


# -------------------------------------------------------------------------------------------------------------- embedding


@spec("embedding|embedding_renorm")
def embedding(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Indices of rows."""
    rows = make.integer(1, 5)
    return _shaped(
        schema, weight=make.tensor([rows, make.integer(1, 3)], make.floating()), self=make.tensor([rows, make.integer(1, 3)]),
        indices=make.tensor(make.shape(), make.pick(("int64", "int32")), low=0, high=rows - 1),
        padding_idx=make.integer(-1, rows - 1), max_norm={"float": "1.5"}, norm_type={"float": make.pick(("2.0", "1.0"))},
        scale_grad_by_freq=False, sparse=False,
    )  # fmt: skip


@spec("embedding_bag|_embedding_bag(_forward_only)?")
def embedding_bag(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Bags by offsets."""
    rows, count, mode = make.integer(1, 4), make.integer(0, 6), make.integer(0, 2)
    last = make.flag()
    offsets = sorted({0, *make.integers(2, 0, count)}) + ([count] if last else [])
    kind = make.pick(FLOATS)
    numbers = np.random.default_rng(make.integer(0, 99)).integers(0, rows, count).astype(make.pick(("int64", "int64", "int32")))
    return _shaped(
        schema, weight=make.tensor([rows, make.integer(1, 3)], kind), indices=make.given(numbers),
        offsets=make.given(np.asarray(offsets, make.pick(("int64", "int64", "int32")))), scale_grad_by_freq=False, mode=mode, sparse=False,
        per_sample_weights=make.tensor([count], kind) if mode == 0 and make.flag() else None, include_last_offset=last,
        padding_idx=make.pick((-1, 0)) if make.name.startswith("_") else make.pick((None, 0)),
    )  # fmt: skip


@spec("one_hot")
def one_hot(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Classes."""
    return {"self": make.tensor(make.shape(), "int64", low=0, high=3), "num_classes": make.pick((-1, 4, 6, 2))}


# ------------------------------------------------------------------------------------------------------- normalization, losses


@spec("batch_norm|native_batch_norm|_native_batch_norm_legit|instance_norm")
def batch_norm(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Statistics, either given or computed from the input."""
    kind, channels = make.pick(("float32", "float32", "float64")), make.integer(1, 3)
    shape = [make.integer(1, 3), channels, *make.integers(make.integer(1 if make.name == "instance_norm" else 0, 2), 1, 3)]
    stats = make.flag() or "running_mean" not in {argument["name"] for argument in schema["arguments"]} or not make.often()
    given = not stats or make.flag() or schema["arguments"][3]["real"] == "Tensor"
    return _shaped(
        schema, input=make.tensor(shape, kind), weight=_none_or(make, make.tensor([channels], kind)),
        bias=_none_or(make, make.tensor([channels], kind)), running_mean=make.tensor([channels], kind) if given else None,
        running_var=make.tensor([channels], kind, low=0.25, high=4.0) if given else None, training=stats, use_input_stats=stats,
        # the statistics of equal numbers consist only of rounding errors, which a small eps amplifies
        momentum={"float": make.pick(("0.1", "0.5"))}, eps={"float": "0.125"}, cudnn_enabled=False,
    )  # fmt: skip


@spec("layer_norm|native_layer_norm|rms_norm")
def layer_norm(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """The last dimensions."""
    kind = make.floating()
    inner = make.integers(make.integer(1, 2), 1, 4)
    return _shaped(
        schema, input=make.tensor([*make.integers(make.integer(0, 2), 1, 3), *inner], kind), normalized_shape=inner,
        weight=_none_or(make, make.tensor(inner, kind)), bias=_none_or(make, make.tensor(inner, kind)),
        eps={"float": "1e-05"}, cudnn_enable=False,
    )  # fmt: skip


@spec("group_norm")
def group_norm(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Groups of channels."""
    groups, kind = make.integer(1, 3), make.floating()
    channels = groups * make.integer(1, 2)
    return {
        "input": make.tensor([make.integer(1, 2), channels, *make.integers(make.integer(0, 2), 1, 3)], kind), "num_groups": groups,
        "weight": _none_or(make, make.tensor([channels], kind)), "bias": _none_or(make, make.tensor([channels], kind)),
        "eps": {"float": "0.125"},
    }  # fmt: skip


@spec(r"nll_loss(_forward|_nd|2d|2d_forward)?|cross_entropy_loss|multi_margin_loss")
def class_loss(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Classes for rows or positions."""
    kind, classes, batch = make.pick(("float32", "float32", "float64")), make.integer(1, 4), make.integer(1, 3)
    places = (
        make.integers(2, 1, 2)
        if "2d" in make.name
        else make.integers(make.pick((0, 0, 1, 2)), 1, 2)
        if re.search("nd|cross", make.name)
        else []
    )
    single = "2d" not in make.name and not places and make.integer(0, 3) == 0
    x = make.tensor([classes] if single else [batch, classes, *places], kind)
    target = make.tensor([] if single else [batch, *places], "int64", low=0, high=classes - 1)
    if make.name == "cross_entropy_loss" and make.integer(0, 3) == 0:
        target = make.tensor([classes] if single else [batch, classes, *places], kind, low=0.0, high=1.0)
    return _shaped(
        schema, self=x, target=target, weight=_none_or(make, make.tensor([classes], kind, low=0.5, high=2.0)), reduction=make.integer(0, 2),
        ignore_index=make.pick((-100, 0, 1)), label_smoothing={"float": make.pick(("0.0", "0.1"))}, p=make.pick((1, 2)),
        margin={"float": make.pick(("1.0", "0.5"))},
    )  # fmt: skip


@spec(r"(mse|l1|smooth_l1|huber|soft_margin|hinge_embedding|poisson_nll|binary_cross_entropy|kl_div).*")
def pair_loss(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Two tensors of the same shape."""
    kind = make.pick(("float32", "float32", "float64", *HALVES))
    shape = make.shape()
    limits: dict[str, Any] = {"low": 0.0, "high": 1.0} if make.name == "binary_cross_entropy" else {}
    target = {"low": 0.0, "high": 1.0} if re.search("binary|kl_div", make.name) else {}
    names = [argument["name"] for argument in schema["arguments"]]
    first = make.tensor(shape, kind, **limits)
    return {
        **_shaped(
            schema,
            self=first,
            input=first,
            target=make.tensor(
                shape if make.often() or not re.search("mse|l1|huber", make.name) else make.shape(), kind, **target
            ),
        ),
        **({"reduction": make.integer(0, 2)} if "reduction" in names else {}),
        **({"beta": {"float": make.pick(("1.0", "0.5"))}} if "beta" in names else {}),
        **({"delta": {"float": make.pick(("1.0", "0.5"))}} if "delta" in names else {}),
        **({"weight": _none_or(make, make.tensor(shape, kind, low=0.5, high=2.0))} if "weight" in names else {}),
        **({"pos_weight": _none_or(make, make.tensor(shape[-1:], kind, low=0.5, high=2.0))} if "pos_weight" in names else {}),
    }


@spec(
    "cosine_embedding_loss|margin_ranking_loss|triplet_margin_loss|pairwise_distance|cosine_similarity|_euclidean_dist|cdist|pdist"
)
def distances(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Vectors in rows."""
    kind, rows, width = make.pick(FLOATS), make.integer(1, 3), make.integer(1, 4)
    a, b, c = (make.tensor([rows, width], kind) for _ in range(3))
    other = make.tensor([make.integer(1, 3), width], kind) if re.search("cdist|euclid", make.name) else b
    target = make.given(np.asarray([make.pick((1, -1)) for _ in range(rows)], np.float32 if kind == "float32" else np.float64))
    if make.name == "margin_ranking_loss":
        a, other = make.tensor([rows], kind), make.tensor([rows], kind)
    return _shaped(
        schema, self=a, input1=a, input2=other, x1=a, x2=other, anchor=a, positive=b, negative=c, target=target,
        margin={"float": make.pick(("0.0", "1.0", "0.5"))}, p={"float": make.pick(("2.0", "1.0", "3.0", "0.0", "inf"))},
        reduction=make.integer(0, 2), dim=make.integer(0, 1), compute_mode=make.pick((None, 0, 1, 2)),
    )  # fmt: skip


# -------------------------------------------------------------------------------------------------------------- recurrent


def _gates(name: str) -> int:
    return 4 if "lstm" in name else 3 if "gru" in name else 1


@spec(r"(lstm|gru|rnn_tanh|rnn_relu)_cell")
def recurrent_cell(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """One step."""
    kind, batch, width, hidden, gates = (
        make.pick(FLOATS),
        make.integer(1, 2),
        make.integer(1, 3),
        make.integer(1, 3),
        _gates(make.name),
    )
    state = make.tensor([batch, hidden], kind)
    biased = make.flag()
    return {
        "input": make.tensor([batch, width], kind), "hx": [state, make.tensor([batch, hidden], kind)] if gates == 4 else state,
        "w_ih": make.tensor([gates * hidden, width], kind), "w_hh": make.tensor([gates * hidden, hidden], kind),
        "b_ih": make.tensor([gates * hidden], kind) if biased else None, "b_hh": make.tensor([gates * hidden], kind) if biased else None,
    }  # fmt: skip


@spec("lstm|gru|rnn_tanh|rnn_relu")
def recurrent(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Layers and directions; packed where the schema has it."""
    kind, gates = make.pick(FLOATS), _gates(make.name)
    batch, steps, width, hidden, layers = (make.integer(1, 2) for _ in range(5))
    both, biased, first = make.flag(), make.flag(), make.flag()
    ways = 2 if both else 1
    params = []
    for layer in range(layers):
        for _ in range(ways):
            taken = width if layer == 0 else hidden * ways
            params += [make.tensor([gates * hidden, taken], kind), make.tensor([gates * hidden, hidden], kind)]
            params += [make.tensor([gates * hidden], kind), make.tensor([gates * hidden], kind)] if biased else []
    packed = schema["overload"] == "data"
    sizes = sorted(make.integers(steps, 1, batch), reverse=True)
    sizes[0] = batch
    state = [make.tensor([layers * ways, batch, hidden], kind) for _ in range(2)]
    return _shaped(
        schema, input=make.tensor([batch, steps, width] if first else [steps, batch, width], kind),
        data=make.tensor([sum(sizes), width], kind), batch_sizes=make.given(np.asarray(sizes, np.int64)) if packed else None,
        hx=state if gates == 4 else state[0], params=params, has_biases=biased, num_layers=layers, dropout={"float": "0.0"}, train=False,
        bidirectional=both, batch_first=first,
    )  # fmt: skip


@spec("_pack_padded_sequence")
def pack_padded(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Lengths in decreasing order."""
    batch, steps, first = make.integer(1, 3), make.integer(1, 3), make.flag()
    lengths = sorted(make.integers(batch, 1, steps), reverse=True)
    shape = [batch, steps] if first else [steps, batch]
    return {
        "input": make.tensor([*shape, *make.integers(make.integer(0, 1), 1, 2)]),
        "lengths": make.given(np.asarray(lengths, np.int64)),
        "batch_first": first,
    }


@spec("_pad_packed_sequence")
def pad_packed(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Batch sizes in decreasing order."""
    sizes = sorted(make.integers(make.integer(1, 3), 1, 3), reverse=True)
    return {
        "data": make.tensor([sum(sizes), make.integer(1, 2)]),
        "batch_sizes": make.given(np.asarray(sizes, np.int64)),
        "batch_first": make.flag(),
        "padding_value": make.real(),
        "total_length": make.pick((0, -1, len(sizes), len(sizes) + 1)),
    }


# -------------------------------------------------------------------------------------------------------------- attention


@spec("scaled_dot_product_attention|_scaled_dot_product_attention_math")
def attention(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Queries, keys, values."""
    kind, heads, width, wide = make.pick(FLOATS), make.integers(make.integer(1, 2), 1, 2), make.integer(1, 4), make.integer(1, 3)
    queries, keys = make.integer(1, 3), make.integer(1, 3)
    causal = make.flag()
    masks = (None, make.tensor([queries, keys], "bool"), make.tensor([queries, keys], kind))
    mask = None if causal else make.pick(masks)
    if mask is masks[1]:  # a row that is fully masked is NaN in one kernel and zero in the other
        allowed = np.ones((queries, keys), bool)
        allowed[:, -1] = make.flag() or keys == 1
        mask = make.given(allowed)
    return _shaped(
        schema, query=make.tensor([*heads, queries, width], kind), key=make.tensor([*heads, keys, width], kind),
        value=make.tensor([*heads, keys, wide], kind), attn_mask=mask, dropout_p={"float": "0.0"}, is_causal=causal, dropout_mask=None,
        scale=make.pick((None, {"float": "0.5"})), enable_gqa=False,
    )  # fmt: skip


@spec("_transformer_encoder_layer_fwd|_native_multi_head_attention")
def encoder_layer(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """The fused paths of torch.nn.TransformerEncoderLayer and torch.nn.MultiheadAttention."""
    heads = make.pick((1, 2))
    width = heads * make.integer(1, 2)
    batch, steps, inner, kind = make.integer(1, 2), make.integer(1, 3), make.integer(1, 4), "float32"

    def some(*shape: int) -> Any:
        return make.tensor(shape, kind, low=-1.0, high=1.0)

    x = some(batch, steps, width)
    return _shaped(
        schema, src=x, query=x, key=x, value=x, embed_dim=width, num_heads=heads, num_head=heads, qkv_weight=some(3 * width, width),
        qkv_bias=some(3 * width), proj_weight=some(width, width), proj_bias=some(width), use_gelu=make.flag(), norm_first=make.flag(),
        # for two nearly equal numbers, which may be all elements of a row, a small eps leaves only earlier rounding errors
        eps={"float": make.pick(("0.125", "0.5"))}, norm_weight_1=some(width), norm_bias_1=some(width), norm_weight_2=some(width), norm_bias_2=some(width),
        ffn_weight_1=some(inner, width), ffn_bias_1=some(inner), ffn_weight_2=some(width, inner), ffn_bias_2=some(width), mask=None,
        mask_type=None, need_weights=make.flag(), average_attn_weights=make.flag(),
    )  # fmt: skip


# --------------------------------------------------------------------------------------------------------------- indexing


@spec("index|_unsafe_index|index_put|_unsafe_index_put|_index_put_impl")
def index(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Index tensors, with omitted dimensions and masks."""
    if schema["arguments"] and schema["arguments"][0]["real"] == "str":
        return within(make, schema)
    if schema["overload"] == "list_Tensor":
        result = make.tensor((), "int64", low=0, high=3)
        return {"self": [result, make.tensor((), "int64", low=4, high=6)], "el": result}
    if not schema["arguments"] or not any("Tensor]" in argument["real"] for argument in schema["arguments"]):
        return {}
    shape, kind = make.integers(make.integer(1, 3), 1, 3), make.pick(KINDS)
    x = np.zeros(shape)
    common = make.pick(((), (2,), (1,), (2, 1)))
    taken: list[Any] = []
    plain: list[Any] = []
    sparse = any("Optional[Tensor]" in argument["real"] for argument in schema["arguments"])
    at = 0
    while at < len(shape):
        what = make.integer(0, 5)
        if what == 0 and sparse:
            taken.append(None)
            plain.append(slice(None))
        elif what == 1 and len(common) == 1 and not any(isinstance(item, np.ndarray) for item in plain):
            mask = np.asarray([make.flag() for _ in range(shape[at])])
            taken.append(make.given(mask))
            plain.append(mask)
        elif what == 2:
            break
        else:
            places = np.random.default_rng(make.integer(0, 99)).integers(-shape[at], shape[at], common)
            taken.append(make.given(places.astype(np.int64 if make.often() else np.int32)))
            plain.append(places)
        at += 1
    if not any(isinstance(item, np.ndarray) for item in plain):
        taken, plain = [make.tensor([1], "int64", low=0, high=0)], [np.zeros(1, np.int64)]
    results: dict[str, Any] = {"self": make.tensor(shape, kind), "indices": taken}
    if "put" in make.name:
        try:
            wanted = x[tuple(plain)].shape
        except IndexError:
            wanted = ()
        results["values"] = make.tensor(make.pick((wanted, (), wanted[-1:])), kind)
        results["accumulate"] = make.flag() and kind not in COMPLEX
        results["unsafe"] = False
    return _shaped(schema, **results)


@spec("gather|scatter|scatter_add|scatter_reduce")
def gather(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """An index that is not larger than the input."""
    shape = make.integers(make.integer(0, 3), 1, 3)
    kind = make.pick(KINDS)
    dim = make.integer(-len(shape), len(shape) - 1) if shape else make.pick((0, -1))
    smaller = [make.integer(1, size) for size in shape]
    if shape and make.name == "gather":
        smaller[dim] = make.integer(1, 4)
    high = (shape[dim] if shape else 1) - 1
    whole = make.pick(("int64", "int64", "int32"))
    place = make.tensor(smaller, whole, low=0, high=high)
    if (
        "reduce" not in make.name and "add" not in make.name and make.name != "gather" and shape
    ):  # unique indices: the result for duplicate indices is unspecified
        order = np.argsort(np.random.default_rng(make.integer(0, 99)).random(shape), axis=dim)
        place = make.given(order[tuple(slice(0, item) for item in smaller)].astype(whole))
    source = make.tensor([item + make.integer(0, 1) for item in smaller] if make.name != "gather" else smaller, kind)
    options = ("sum", "prod", "amax", "amin", "mean") if "reduce" in make.name else ("add", "multiply")
    return _shaped(
        schema, self=make.tensor(shape, kind), dim=dim, index=place, src=source, value=make.number(), reduce=make.pick(options),
        include_self=make.flag(), sparse_grad=False,
    )  # fmt: skip


@spec("index_(select|add|copy|fill)")
def index_dim(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Along one dimension."""
    shape, kind = make.integers(make.integer(1, 3), 1, 3), make.pick(KINDS)
    dim = make.integer(-len(shape), len(shape) - 1)
    count = make.integer(0, 3) if make.name in {"index_select", "index_add"} else make.integer(0, shape[dim])
    places = np.random.default_rng(make.integer(0, 99)).permutation(shape[dim])[:count]
    if make.name in {"index_select", "index_add"}:
        places = np.random.default_rng(make.integer(0, 99)).integers(0, shape[dim], count)
    source = list(shape)
    source[dim] = count
    value: Any = make.number()
    if any(argument["name"] == "value" and argument["real"] == "Tensor" for argument in schema["arguments"]):
        value = make.tensor((), kind)
    return _shaped(
        schema, self=make.tensor(shape, kind), dim=dim, index=make.given(places.astype(make.pick(("int64", "int64", "int32")))), source=make.tensor(source, kind), value=value,
        alpha=make.pick((1, 2)),
    )  # fmt: skip


@spec("take|put|take_along_dim")
def take(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Indices into the flattened tensor."""
    shape, kind = make.integers(make.integer(1, 2), 1, 3), make.pick(KINDS)
    count = int(np.prod(shape))
    wanted = make.integers(make.integer(0, 2), 1, 2)
    dim: Any = make.pick((None, make.integer(0, len(shape) - 1)))
    if make.name == "take_along_dim":
        high = count - 1 if dim is None else shape[dim] - 1
        sizes = (
            [make.integer(1, 3)]
            if dim is None
            else [make.integer(1, 3) if at == dim else make.pick((size, size, 1)) for at, size in enumerate(shape)]
        )
        whole = make.pick(("int64", "int64", "int64", "int32"))
        return _shaped(schema, self=make.tensor(shape, kind), indices=make.tensor(sizes, whole, low=0, high=high), dim=dim)
    place = make.tensor(wanted, "int64", low=-count, high=count - 1)
    accumulate = make.flag()
    if make.name == "put" and not accumulate:
        wanted = [make.integer(0, count)]
        place = make.given(np.random.default_rng(make.integer(0, 99)).permutation(count)[: wanted[0]].astype(np.int64))
    return _shaped(schema, self=make.tensor(shape, kind), index=place, source=make.tensor(wanted, kind), accumulate=accumulate)


@spec("masked_(fill|scatter|select)")
def masked(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """A mask that broadcasts."""
    shape, kind = make.shape(), make.pick(KINDS)
    value: Any = make.number()
    if any(argument["name"] == "value" and argument["real"] == "Tensor" for argument in schema["arguments"]):
        value = make.tensor((), make.pick((kind, kind, "float32")))
    mask = make.tensor(make.pick((shape, shape, shape[-1:], ())), "bool")
    return _shaped(schema, self=make.tensor(shape, kind), mask=mask, value=value, source=make.tensor([12], kind))


@spec("(select|slice|diagonal)_scatter")
def view_scatter(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """A source of the view's shape."""
    shape, kind = make.integers(make.integer(2, 3), 1, 4), make.pick(KINDS)
    dim = make.integer(0, len(shape) - 1)
    at = make.integer(0, shape[dim] - 1)
    if make.name.startswith("select"):
        source = [size for place, size in enumerate(shape) if place != dim]
        return {"self": make.tensor(shape, kind), "src": make.tensor(source, kind), "dim": dim, "index": at}
    if make.name.startswith("slice"):
        step = make.integer(1, 2)
        source = list(shape)
        source[dim] = -(-(shape[dim] - at) // step)
        return {
            "self": make.tensor(shape, kind),
            "src": make.tensor(source, kind),
            "dim": dim,
            "start": at,
            "end": None,
            "step": step,
        }
    offset = make.integer(-1, 1)
    source = list(np.diagonal(np.zeros(shape), offset).shape)
    return {"self": make.tensor(shape, kind), "src": make.tensor(source, kind), "offset": offset, "dim1": 0, "dim2": 1}


# ---------------------------------------------------------------------------------------------------------------- sorting


@spec("searchsorted|bucketize")
def searchsorted(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Sorted boundaries."""
    kind = make.pick(("float32", "float64", "int64", "int32", "float16"))
    limits = np.sort(np.random.default_rng(make.integer(0, 99)).integers(-4, 5, make.integer(1, 5))).astype(kind)
    first = schema["arguments"][0]["name"]
    single = "Scalar" in schema["overload"]
    results: dict[str, Any] = {
        "boundaries": make.given(limits),
        "sorted_sequence": make.given(limits),
        "sorter": None,
        "right": make.flag(),
        "side": None,
    }
    if first == "sorted_sequence":
        results["self"] = make.number() if single else make.tensor(make.integers(make.integer(0, 2), 0, 3), kind)
    else:
        results["self"] = make.number() if single else make.tensor(make.shape(), make.pick((kind, "float32")))
    return _shaped(schema, **results)


@spec("bincount")
def bincount(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Small counts."""
    count = make.integer(0, 5)
    return {
        "self": make.tensor([count], make.pick(("int64", "int32", "uint8")), low=0, high=4),
        "weights": _none_or(make, make.tensor([count], make.pick(("float32", "float64", "int64")))), "minlength": make.integer(0, 6),
    }  # fmt: skip


@spec("histc")
def histc(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Bins."""
    low = make.integer(-2, 0)
    return {
        "self": make.tensor(make.shape(), make.pick(FLOATS)),
        "bins": make.integer(1, 5),
        "min": low,
        "max": make.pick((low, 0, 3)),
    }


@spec("quantile|nanquantile")
def quantile(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Quantiles of a tensor."""
    kind = make.pick(FLOATS)
    scalar = any(argument["name"] == "q" and argument["real"] == "float" for argument in schema["arguments"])
    shape = make.integers(make.integer(1, 3), 1, 4)
    q: Any = {"float": make.pick(("0.5", "0.0", "1.0", "0.25", "0.3"))}
    if not scalar:
        q = make.tensor(make.pick(((), (2,), (1,))), kind, low=0.0, high=1.0)
    dim = make.pick((None, *range(-len(shape), len(shape))))
    return {
        "self": make.tensor(shape, kind),
        "q": q,
        "dim": dim,
        "keepdim": make.flag(),
        "interpolation": make.pick(("linear", "lower", "higher", "midpoint", "nearest")),
    }


@spec("kthvalue|topk")
def kth(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """A valid k, and distinct numbers, because the order of equal numbers is unspecified."""
    shape = make.integers(make.integer(1, 3), 1, 4)
    dim = make.integer(-len(shape), len(shape) - 1)
    order = np.argsort(np.random.default_rng(make.integer(0, 99)).random(int(np.prod(shape)))).reshape(shape) - 3
    kind = make.pick(("float32", "float64", "int64", "int32", "float16", "bfloat16"))
    from torch_compat.runtime import dtypes  # noqa: PLC0415

    low = 1 if make.name == "kthvalue" else 0
    return _shaped(
        schema, self=make.given(order.astype(dtypes.DTYPES[kind].array)), k=make.integer(low, shape[dim]), dim=dim, largest=make.flag(),
        sorted=True, keepdim=make.flag(),
    )  # fmt: skip


@spec("sort|argsort|msort|mode|unique_dim|median|nanmedian|_unique2?|unique_consecutive|cummax|cummin")
def sorting(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Tensors with repeated numbers."""
    if not schema["tensors"] or schema["listed"] or "Tensor" not in schema["arguments"][0]["real"]:
        return {}
    shape = make.integers(make.integer(0, 3), 1, 4)
    names = {argument["name"]: argument for argument in schema["arguments"]}
    kind = make.pick(("float32", "float64", "int64", "uint8", "int32", "bool", "float16"))
    limits = {"low": 0, "high": 2} if make.name in {"unique_dim", "mode"} else {}  # the position of NaN among rows is unspecified
    results: dict[str, Any] = {"self": make.tensor(shape, kind, **limits)}
    if "dim" in names and names["dim"]["real"] == "int":
        results["dim"] = make.integer(-len(shape), len(shape) - 1) if shape else make.pick((0, -1))
    if "stable" in names:
        results["stable"] = True
    return results


# --------------------------------------------------------------------------------------------------------- linear algebra


def _square(
    make: Maker,
    kind: str,
    *,
    symmetric: bool = False,
    definite: bool = False,
    batch: list[int] | None = None,
    size: int | None = None,
) -> Any:
    """A matrix that is far from singular."""
    size = make.integer(1, 3) if size is None else size
    batch = make.integers(make.pick((0, 0, 1)), 1, 2) if batch is None else batch
    rng = np.random.default_rng(make.integer(0, 999))
    result = rng.integers(-3, 4, [*batch, size, size]).astype(np.float64) / 2
    if symmetric or definite:
        result = (result + np.swapaxes(result, -1, -2)) / 2
    result = (
        result
        + np.eye(size) * (5 if definite else 0)
        + np.diag(np.arange(size)) * 2.5
        + (np.eye(size) * 7 if not symmetric else 0)
    )
    return make.given(result.astype(kind))


@spec(
    "inverse|linalg_inv|det|linalg_det|logdet|slogdet|linalg_slogdet|matrix_power|linalg_matrix_power|cholesky|linalg_cholesky|linalg_eigh|_linalg_eigh|linalg_eigvalsh|pinverse|linalg_pinv"
)
def matrix(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """One square matrix."""
    kind = make.pick(FLOATS)
    x = _square(make, kind, symmetric="eig" in make.name, definite="cholesky" in make.name)
    return _shaped(schema, self=x, A=x, n=make.integer(-2, 3), upper=make.flag(), UPLO=make.pick(("L", "U")), compute_v=True, hermitian=False,
                   rcond={"float": "1e-15"} if any(argument["name"] == "rcond" and argument["real"] == "float" for argument in schema["arguments"])
                   else make.given(np.asarray(1e-6, kind)), atol=None, rtol=None)  # fmt: skip


@spec("linalg_solve|triangular_solve|solve|gesv")
def solve(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """A system with a unique solution."""
    kind, size, batch = make.pick(FLOATS), make.integer(1, 3), make.integers(make.pick((0, 1)), 1, 2)
    a = _square(make, kind, batch=batch, size=size)
    b = make.tensor([*batch, size, make.integer(1, 2)], kind)
    return _shaped(schema, self=b, A=a, B=b, left=True, upper=make.flag(), transpose=make.flag(), unitriangular=make.flag())


@spec(
    "linalg_(lu|lu_factor|lu_factor_ex|inv_ex|cholesky_ex|matrix_exp|cond|vander)|matrix_exp|geqrf|_lu_with_info|linalg_polar|linalg_matrix_sqrth|linalg_ldl_factor(_ex)?"
)
def factors(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Matrices whose results mostly do not depend on rounding."""
    kind = make.pick((*FLOATS, *FLOATS, "complex64", "complex128", "int64", "float16"))
    x = _square(make, kind, definite="cholesky" in make.name or "sqrth" in make.name, symmetric="ldl" in make.name)
    if (re.search("lu|geqrf|polar", make.name) and make.flag()) or make.integer(0, 4) == 0 or "vander" in make.name:
        x = make.tensor([*make.integers(make.integer(0, 1), 1, 2), *make.integers(2, 0 if make.flag() else 1, 4)], kind)
    if "exp" in make.name and make.often():
        x = make.tensor([*make.integers(make.integer(0, 1), 1, 2), *[make.integer(0, 3)] * 2], kind, low=-1, high=1)
    return _shaped(
        schema, self=x, A=x, x=x, pivot=make.integer(0, 4) > 0, check_errors=make.flag(), upper=make.flag(), hermitian=make.flag(),
        p=make.pick(("fro", "nuc") if any(argument["real"] == "str" for argument in schema["arguments"]) else (None, 1, -1, 2, -2, {"float": "inf"}, {"float": "-inf"}, 3)),
        N=make.pick((None, 2, 3, 5, 1, 0)),
    )  # fmt: skip


@spec("linalg_matrix_rank|matrix_rank")
def rank(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Matrices with and without full rank, and limits far from their singular values."""
    kind = make.pick(FLOATS)
    batch = make.integers(make.pick((0, 0, 1)), 1, 2)
    x = make.tensor([*batch, *make.integers(2, 0 if make.integer(0, 3) == 0 else 1, 4)], kind)
    hermitian = make.integer(0, 3) == 0
    if hermitian:
        x = _square(make, kind, symmetric=True)
    named = {argument["name"]: argument["real"] for argument in schema["arguments"]}
    results: dict[str, Any] = {}
    for name in ("tol", "atol", "rtol"):
        if "Tensor" in named.get(name, ""):
            results[name] = make.pick(
                (
                    None,
                    make.tensor(make.pick(((), (), tuple(batch), (2, 1))), make.pick(("float64", "float32")), low=0.25, high=2.0),
                )
            )
            if not named[name].startswith("Optional"):
                results[name] = results[name] or make.tensor((), kind, low=0.25, high=2.0)
        else:
            results[name] = (
                {"float": make.pick(("0.3", "1.1", "0.0001", "0.01"))}
                if make.flag() or not named.get(name, "").startswith("Optional")
                else None
            )
    return _shaped(schema, self=x, input=x, hermitian=hermitian, symmetric=hermitian, **results)


@spec("lu_unpack|lu_solve|linalg_lu_solve")
def by_lu(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Factors with valid pivots."""
    kind = make.pick((*FLOATS, *FLOATS, "complex64"))
    size, batch = make.integer(1, 4), make.integers(make.pick((0, 0, 1)), 1, 2)
    lu = _square(make, kind, batch=batch, size=size)
    if make.name == "lu_unpack":
        rows, size = make.integers(2, 1, 4)
        lu = make.tensor([*batch, rows, size], kind)
        pivots = np.random.default_rng(make.integer(0, 999)).integers(
            np.arange(min(rows, size)) + 1, rows + 1, [*batch, min(rows, size)]
        )
    else:
        pivots = np.random.default_rng(make.integer(0, 999)).integers(np.arange(size) + 1, size + 1, [*batch, size])
    whole = make.given(pivots.astype(np.int32))
    left = make.often()
    lead = batch if make.flag() else make.pick(([], [2], [1]))
    b = make.tensor([*lead, *([size, make.integer(1, 2)] if left else [make.integer(1, 2), size])], kind)
    return _shaped(
        schema, self=b, B=b, LU=lu, LU_data=lu, pivots=whole, LU_pivots=whole, left=left, adjoint=make.flag(), unpack_data=make.often(), unpack_pivots=make.often(),
    )  # fmt: skip


@spec("linalg_solve_triangular|linalg_solve_ex")
def triangular(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Systems with a unique solution, on either side."""
    kind, size, batch = make.pick((*FLOATS, *FLOATS, "complex64")), make.integer(1, 4), make.integers(make.pick((0, 1)), 1, 2)
    a, left = _square(make, kind, batch=batch, size=size), make.often()
    lead = batch if make.flag() else make.pick(([], [2], [1]))
    other = kind if make.integer(0, 7) else make.pick(FLOATS)
    b = make.tensor([*lead, *([size, make.integer(0, 2)] if left else [make.integer(1, 2), size])], other)
    if make.name == "linalg_solve_ex" and make.integer(0, 3) == 0:
        b = make.tensor([*batch, size], kind)
    return _shaped(schema, self=a, A=a, B=b, left=left, upper=make.flag(), unitriangular=make.flag(), check_errors=make.flag())


@spec("lstsq|linalg_lstsq")
def least_squares(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """As many equations as unknowns, or more, or fewer."""
    kind, batch = make.pick((*FLOATS, *FLOATS, "complex64")), make.integers(make.pick((0, 0, 1)), 1, 2)
    rows, wide, count = make.integer(1, 5), make.integer(1, 4), make.integer(1, 3)
    if make.name == "lstsq":
        batch = []
    rng = np.random.default_rng(make.integer(0, 9999))
    whole = rng.integers(-6, 7, [*batch, rows, wide]) / 2 + np.eye(rows, wide) * 9
    a = make.given(whole.astype({"float32": np.float32, "float64": np.float64}.get(kind, np.complex64)))
    b = make.tensor([*batch, rows, count] if make.often() else [*batch, rows], kind)
    return _shaped(
        schema, self=b if make.name == "lstsq" else a, A=a, b=b, rcond=make.pick((None, {"float": "1e-3"}, {"float": "0.3"})),
        driver=make.pick((None, "gels", "gelsy", "gelsd", "gelss", "gel")),
    )  # fmt: skip


@spec("orgqr|ormqr|linalg_householder_product")
def reflections(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Reflections, which need not be orthogonal."""
    kind, batch = make.pick((*FLOATS, *FLOATS, "complex64")), make.integers(make.pick((0, 0, 1)), 1, 2)
    wide = make.integer(1, 3)
    rows, count = wide + make.integer(0, 2), make.integer(0 if make.integer(0, 3) == 0 else 1, wide)
    x, tau = make.tensor([*batch, rows, wide], kind), make.tensor([*batch, count], kind, low=0.5, high=2.0)
    left = make.often()
    other = make.tensor([*batch, *([rows, make.integer(1, 2)] if left else [make.integer(1, 2), rows])], kind)
    return _shaped(schema, self=x, input=x, tau=tau, input2=tau, input3=other, left=left, transpose=make.flag())


@spec("linalg_tensor(inv|solve)")
def of_tensors(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Square matrices in the shape that tensorinv and tensorsolve take."""
    kind = make.pick(FLOATS)
    first, last = make.pick((([2, 3], [6]), ([4], [2, 2]), ([2, 2], [4]), ([3], [3]), ([2, 3], [3, 2]), ([2], [3])))
    rng = np.random.default_rng(make.integer(0, 9999))
    size = int(np.prod(last))
    matrix = rng.integers(-3, 4, [int(np.prod(first)), size]) / 2 + np.eye(int(np.prod(first)), size) * 8
    x = make.given(matrix.reshape(*first, *last).astype(np.float32 if kind == "float32" else np.float64))
    return _shaped(
        schema,
        self=x,
        ind=len(first) if make.often() else make.integer(-1, 3),
        other=make.tensor(first, kind),
        dims=make.pick((None, None, [0], [1, 0])),
    )


@spec("linalg_vecdot")
def vecdot(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Vectors of one length, most of the time."""
    kind, shape = make.pick((*FLOATS, "complex64", "float16", "bfloat16", "int64")), make.integers(make.integer(1, 3), 0, 3)
    other = shape if make.often() else make.integers(make.integer(1, 3), 1, 3)
    return _shaped(
        schema,
        x=make.tensor(shape, kind),
        y=make.tensor(other, kind if make.integer(0, 6) else "float64"),
        dim=make.integer(-len(shape), len(shape) - 1),
    )


@spec("qr|linalg_qr|svd|linalg_svd|linalg_svdvals|symeig")
def decomposition(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """A full matrix, square so that every column is of use."""
    x = _square(make, make.pick(FLOATS))
    return _shaped(
        schema,
        self=x,
        A=x,
        some=True,
        compute_uv=True,
        mode=make.pick(("reduced", "complete", "r")),
        full_matrices=True,
        driver=None,
    )


@spec("linalg_matrix_norm")
def matrix_norm(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Valid orders and dimensions."""
    kind = make.pick((*FLOATS, *FLOATS, "complex64", "bfloat16"))
    shape = make.integers(make.integer(2, 3), 0 if make.integer(0, 3) == 0 else 1, 3)
    text = any(argument["name"] == "ord" and argument["real"] == "str" for argument in schema["arguments"])
    dims = make.pick(([-2, -1], [0, 1], [1, 0], [-1, 0], [0, 0], [0]))
    order = make.pick(("fro", "nuc", "max") if text else (1, -1, 2, -2, {"float": "inf"}, {"float": "-inf"}, 3, 0))
    return _shaped(
        schema,
        self=make.tensor(shape, kind),
        ord=order,
        dim=dims,
        dtype=make.pick((None, None, {"dtype": "float64"}, {"dtype": "float32"})),
    )


@spec("linalg_norm|nuclear_norm|frobenius_norm|norm|linalg_vector_norm|renorm|dist")
def norm(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Valid orders."""
    kind = make.pick((*FLOATS, *FLOATS, "complex64"))
    count = 2 if make.name in {"linalg_norm", "nuclear_norm", "frobenius_norm", "renorm"} else make.integer(0, 3)
    shape = make.integers(count, 1, 3)
    order: Any = make.pick((2, 1, {"float": "inf"}, {"float": "-inf"}, {"float": "2.0"}, 0, 3, {"float": "0.5"}))
    names = {argument["name"]: argument["real"] for argument in schema["arguments"]}
    result = _shaped(
        schema, self=make.tensor(shape, kind), other=make.tensor(shape, kind), p=order, maxnorm=make.pick((1, {"float": "2.5"}))
    )
    if "ord" in names:
        result["ord"] = (
            make.pick(("fro", "nuc"))
            if names["ord"] == "str"
            else make.pick((None, 1, 2, {"float": "inf"}, -1, {"float": "-inf"}, -2, 0, 3))
            if make.name == "linalg_norm"
            else order
        )
    if "dim" in names and count:
        two = make.draw_dims(count)
        result["dim"] = two[0] if names["dim"] == "int" else (two if make.name != "nuclear_norm" else [0, 1])
    return result


@spec(
    "mm|bmm|mv|dot|vdot|ger|outer|inner|inner_1d|addmm|addmv|addr|baddbmm|addbmm|linalg_multi_dot|chain_matmul|linear|bilinear|matmul|linalg_matmul|__matmul__"
)
def products(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Shapes that fit together."""
    kind = make.pick((*FLOATS, *FLOATS, "int64", "int32", "bfloat16", "float16", "complex64"))
    a, b, c, n = (make.integer(1, 3) for _ in range(4))
    shapes = {
        "mm": ([a, b], [b, c]), "bmm": ([n, a, b], [n, b, c]), "mv": ([a, b], [b]), "dot": ([a], [a]), "vdot": ([a], [a]),
        "inner_1d": ([a], [a]), "ger": ([a], [b]), "outer": ([a], [b]), "inner": ([a, b], [c, b]),
        "addmm": ([a, b], [b, c]), "addmv": ([a, b], [b]), "addr": ([a], [b]), "baddbmm": ([n, a, b], [n, b, c]), "addbmm": ([n, a, b], [n, b, c]),
        "linear": (make.pick(([a, b], [b], [n, a, b])), [c, b]),
    }  # fmt: skip
    base = make.name
    if "matmul" in base:
        first, second = make.pick(
            (
                ([a, b], [b, c]),
                ([b], [b, c]),
                ([a, b], [b]),
                ([b], [b]),
                ([n, a, b], [b, c]),
                ([n, a, b], [n, b, c]),
                ([a, b], [n, b, c]),
                ([2, 1, a, b], [n, b]),
            )
        )
        return _shaped(schema, self=make.tensor(first, kind), other=make.tensor(second, kind))
    if base in {"linalg_multi_dot", "chain_matmul"}:
        return _shaped(schema, tensors=[make.tensor([a, b], kind), make.tensor([b, c], kind), make.tensor([c, n], kind)][: make.integer(2, 3)],
                       matrices=[make.tensor([a, b], kind), make.tensor([b, c], kind)])  # fmt: skip
    if base == "bilinear":
        return {"input1": make.tensor([n, a], kind), "input2": make.tensor([n, b], kind), "weight": make.tensor([c, a, b], kind),
                "bias": _none_or(make, make.tensor([c], kind))}  # fmt: skip
    first, second = shapes[base]
    x, y = make.tensor(first, kind), make.tensor(second, kind)
    if base == "linear":
        biases = (
            [c],
            [c],
            [c],
            [1, c],
            [1],
            [a, c],
            [a, 1],
            [c, 1],
        )  # what torch accepts depends on the input's shape and layout
        return {"input": x, "weight": y, "bias": _none_or(make, make.tensor(make.pick(biases), kind))}
    if base.startswith(("add", "badd")):
        result = {"addmm": [a, c], "addmv": [a], "addr": [a, b], "baddbmm": [n, a, c], "addbmm": [a, c]}[base]
        small = make.pick((result, result, result[-1:], [1] * len(result))) if not schema["name"].endswith("_") else result
        return _shaped(schema, self=make.tensor(small, kind), mat1=x, mat2=y, mat=x, vec=y, vec1=x, vec2=y, batch1=x, batch2=y,
                       beta=make.pick((1, 2, 0)), alpha=make.pick((1, 3)))  # fmt: skip
    return _shaped(schema, self=x, mat2=y, vec=y, tensor=y, vec2=y, other=y)


@spec("einsum")
def einsum(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Equations with shapes that fit."""
    equation = make.pick(
        (
            "ij,jk->ik",
            "bij,bjk->bik",
            "ij->ji",
            "ii->i",
            "ij,ij->",
            "i,j->ij",
            "...ij,...jk->...ik",
            "ij,jk",
            "ij->",
            "bi,bj->bij",
            "ijk,k->ij",
        )
    )
    size = {item: make.integer(1, 3) for item in "ijkb"}
    given = equation.split("->")[0].split(",")
    kind = make.pick(("float32", "float64", "float32", "int64"))
    return {
        "equation": equation,
        "tensors": [make.tensor([size[item] for item in term.replace("...", "b")], kind) for term in given],
        "path": None,
    }


@spec("tensordot")
def tensordot(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Contracted dimensions of equal size."""
    a, b, c = (make.integer(1, 3) for _ in range(3))
    kind = make.pick(("float32", "float64", "int64"))
    first, second, mine, theirs = make.pick(
        (([a, b], [b, c], [1], [0]), ([a, b, c], [c, b], [1, 2], [1, 0]), ([a], [b], [], []), ([a, b], [a, b], [-1, 0], [1, 0]))
    )
    return {"self": make.tensor(first, kind), "other": make.tensor(second, kind), "dims_self": mine, "dims_other": theirs}


@spec("cross|linalg_cross|kron|trace")
def cross(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Dimensions of size three."""
    kind = make.pick((*FLOATS, "int64", "complex64"))
    shape = make.pick(((3,), (2, 3), (3, 2), (3, 3)))
    if make.name == "trace":
        return {"self": make.tensor(make.integers(2, 0, 3), kind)}
    return _shaped(schema, self=make.tensor(shape, kind), other=make.tensor(shape, kind), dim=list(shape).index(3))


@spec("fft_.*")
def fft(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Signals."""
    name = make.name
    if name in {"fft_hfft2", "fft_hfftn"}:
        return _fft(make, schema, make.pick(("complex64", "complex128", "float32", "int64")))
    complex_ = re.search("c?ifft|irfft|hfft", name) and not re.search("rfft$|ihfft", name.replace("irfft", ""))
    kind = make.pick(
        ("complex64", "complex128")
        if complex_
        else (*FLOATS, *(() if re.search("rfft|ihfft", name) else ("complex64",)), "int64")
    )
    return _fft(make, schema, kind)


def _fft(make: Maker, schema: dict[str, Any], kind: str) -> dict[str, Any]:
    name = make.name
    shape = make.integers(make.integer(2 if "2" in name else 1, 3), 1, 4)
    results: dict[str, Any] = {"self": make.tensor(shape, kind), "norm": make.pick((None, "backward", "ortho", "forward"))}
    names = {argument["name"]: argument["real"] for argument in schema["arguments"]}
    if "n" in names:
        results |= {"n": make.pick((None, 2, 3, 5)), "dim": make.integer(-len(shape), len(shape) - 1)}
    elif "s" in names:
        dims = make.draw_dims(len(shape)) if "2" not in name else [0, 1]
        results |= {"dim": dims, "s": make.pick((None, [make.integer(1, 4) for _ in dims]))}
    elif "dim" in names:
        results["dim"] = make.pick((None, make.draw_dims(len(shape))))
    return _shaped(schema, **results)


# ----------------------------------------------------------------------------------------------------------------- shapes


@spec("view|reshape|_unsafe_view|view_copy")
def view(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Shapes with the same number of elements."""
    if not any(argument["name"] in {"size", "shape"} for argument in schema["arguments"]):
        return {}
    shape = list(make.shape())
    count = int(np.prod(shape))
    size = make.pick((shape, [count], [-1], [1, *shape], [*shape, 1], shape[::-1], [2, -1], [count, 1]))
    return _shaped(schema, self=make.tensor(shape, make.pick(KINDS)), size=size, shape=size)


@spec(
    "expand|broadcast_to|view_as|reshape_as|expand_as|sum_to_size|unflatten|as_strided|split_with_sizes|unsafe_split_with_sizes"
)
def shapes(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Shapes derived from that of the first argument."""
    shape, kind = list(make.shape()), make.pick(KINDS)
    x, name = make.tensor(shape, kind), make.name
    if name in {"expand", "broadcast_to"}:
        size = [item if item != 1 or make.flag() else make.integer(1, 3) for item in shape]
        return _shaped(schema, self=x, size=make.pick((size, [2, *size], [-1] * len(size))), implicit=False)
    if name in {"view_as", "reshape_as", "expand_as"}:
        other = make.tensor([2, *shape] if name == "expand_as" else shape[::-1], kind)
        return {"self": x, "other": other}
    if name == "sum_to_size":
        return {"self": x, "size": make.pick((shape, shape[1:], [1] * len(shape), []))}
    if name == "unflatten":
        shape = [make.pick((4, 6)), *shape]
        return _shaped(
            schema,
            self=make.tensor(shape, kind),
            dim=make.pick((0, -len(shape))),
            sizes=make.pick(([2, -1], [-1, 2], [2, shape[0] // 2])),
        )
    if name == "as_strided":
        inner = make.integers(make.integer(0, 2), 1, 2)
        room = int(np.prod(shape))
        steps = [make.integer(0, 2) for _ in inner]
        needed = 1 + sum((integer - 1) * step for integer, step in zip(inner, steps, strict=True))
        shape = shape if room >= needed else [needed]
        return {
            "self": {**make.given(np.arange(max(needed, room)).astype("float32"))},
            "size": inner,
            "stride": steps,
            "storage_offset": 0,
        }
    sizes = make.integers(make.integer(1, 3), 0, 2)
    return {"self": make.tensor([sum(sizes), 2], kind), "split_sizes": sizes, "dim": 0}


@spec("pad|_pad_enum|_pad_circular|constant_pad_nd|(reflection|replication)_pad[123]d")
def pad(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Valid padding widths."""
    n = dims_of(make.name) if make.name[-2:].endswith("d") and make.name[-2].isdigit() else make.integer(1, 2)
    lead = make.integers(2 if make.name == "_pad_circular" or make.often() else 1, 1, 2)
    constant = make.name == "constant_pad_nd"
    kind = make.pick(KINDS if constant else (*FLOATS, *FLOATS, "float16", "bfloat16", "complex64"))
    widths = make.integers(2 * n, -1 if constant else 0, 2)
    named = {argument["name"]: argument["real"] for argument in schema["arguments"]}
    mode: Any = make.integer(0, 3) if named.get("mode") == "int" else make.pick(("constant", "reflect", "replicate", "circular"))
    value: Any = make.number() if constant else make.pick((None, {"float": "1.5"}))
    if mode not in {0, "constant"} and not constant:
        value = None
    return _shaped(
        schema, self=make.tensor([*lead, *make.integers(n, 3, 4)], kind), pad=widths, padding=widths, mode=mode, value=value
    )


@spec(
    "pixel_(un)?shuffle|(native_)?channel_shuffle|glu|fold|unfold|chunk|unsafe_chunk|hsplit|vsplit|dsplit|rot90|roll|flip|fliplr|flipud"
)
def rearranged(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Divisible sizes."""
    name, kind, factor = make.name, make.pick(FLOATS if make.name == "glu" else KINDS), make.integer(1, 2)
    if name == "pixel_shuffle":
        return {"self": make.tensor([2, 2 * factor * factor, 2, 1], kind), "upscale_factor": factor}
    if name == "pixel_unshuffle":
        return {"self": make.tensor([2, 1, 2 * factor, factor], kind), "downscale_factor": factor}
    if "channel" in name:
        return {"self": make.tensor([1, 2 * factor, 2], kind), "groups": factor}
    if name == "glu":
        shape = [2 * integer for integer in make.integers(make.integer(1, 3), 1, 2)]
        return {"self": make.tensor(shape, kind), "dim": make.integer(-len(shape), len(shape) - 1)}
    if name == "unfold":
        shape = make.integers(make.integer(1, 3), 2, 4)
        return {
            "self": make.tensor(shape, kind),
            "dimension": make.integer(-len(shape), len(shape) - 1),
            "size": make.integer(0, 2),
            "step": make.integer(1, 3),
        }
    shape = make.integers(3, 1, 4)
    x = make.tensor(shape, kind)
    if name in {"roll", "flip"}:
        dims = make.draw_dims(3)
        return _shaped(schema, self=x, shifts=[make.integer(-3, 3) for _ in dims], dims=dims)
    if name == "rot90":
        return {"self": x, "k": make.integer(-5, 5), "dims": make.pick(([0, 1], [1, 2], [2, 0], [-1, 0]))}
    if "split" in name:
        shape = make.integers(make.integer(1, 3), 1, 4)
        x, axis = make.tensor(shape, kind), min({"h": 1, "v": 0, "d": 2}[name[0]], len(shape) - 1)
        return _shaped(schema, self=x, sections=make.pick((1, shape[axis])), indices=sorted(make.integers(2, 0, 4)))
    if "chunk" in name:
        return {"self": x, "chunks": make.integer(1, 5), "dim": make.integer(-3, 2)}
    return {"self": x}


@spec("split|unsafe_split|tensor_split")
def split(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Parts."""
    if schema["arguments"][0]["real"] == "str":
        return {"max": make.pick((-1, 1, 2))}
    shape, kind = make.integers(make.integer(1, 3), 1, 4), make.pick(KINDS)
    named = {argument["name"]: argument["real"] for argument in schema["arguments"]}
    dim = make.integer(-len(shape), len(shape) - 1)
    results: dict[str, Any] = {
        "self": make.tensor(shape, kind),
        "dim": dim,
        "sections": make.integer(1, 4),
        "indices": sorted(make.integers(2, -1, 4)),
    }
    first = make.integer(0, shape[dim])
    results["split_sizes"] = [first, shape[dim] - first]
    results["split_size"] = results["split_sizes"] if "List" in named.get("split_size", "") else make.integer(1, 3)
    results["tensor_indices_or_sections"] = make.given(np.asarray(make.pick((2, [1, 2])), np.int64))
    return _shaped(schema, **results)


@spec(
    "repeat|tile|repeat_interleave|combinations|cartesian_prod|block_diag|meshgrid|cat|concat|concatenate|stack|_stack|[hvd]stack|row_stack|diff"
)
def joined(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Tensors that fit together."""
    name, kind = make.name, make.pick(KINDS)
    shape = list(make.shape())
    if name in {"repeat", "tile"}:
        counts = make.integers(len(shape) + make.integer(0, 1), 0, 2)
        return _shaped(schema, self=make.tensor(shape, kind), repeats=counts, dims=counts)
    if name == "repeat_interleave":
        return _repeat_interleave(make, schema, kind)
    if name == "combinations":
        return {"self": make.tensor([make.integer(0, 4)], kind), "r": make.integer(0, 3), "with_replacement": make.flag()}
    if name == "diff":
        shape = make.integers(make.integer(1, 2), 1, 4)
        return {
            "self": make.tensor(shape, kind),
            "n": make.integer(0, 3),
            "dim": make.integer(-len(shape), len(shape) - 1),
            "prepend": None,
            "append": None,
        }
    if name in {"cartesian_prod", "meshgrid", "block_diag"}:
        dims = 1 if name != "block_diag" else 2
        kinds = [kind, kind, make.pick(EVERY) if name == "block_diag" else kind]
        return _shaped(
            schema,
            tensors=[make.tensor(make.integers(dims, 0, 3), item) for item in kinds[: make.integer(1, 3)]],
            indexing=make.pick(("ij", "xy")),
        )
    count = make.integer(1, 3)
    same = [make.tensor(shape, kind if make.often() else make.pick(EVERY)) for _ in range(count)]
    if "stack" in name:
        return _shaped(schema, tensors=same, dim=make.integer(-len(shape) - 1, len(shape)))
    dim = make.integer(0, max(0, len(shape) - 1))
    parts = [
        make.tensor(
            [size if at != dim else make.integer(0, 3) for at, size in enumerate(shape)],
            kind if make.often() else make.pick(EVERY),
        )
        for _ in range(count)
    ]
    if make.integer(0, 5) == 0:
        parts.append(make.tensor([0], kind))  # an empty one-dimensional tensor can be concatenated with any shape
    return _shaped(schema, tensors=parts, dim=dim)


def _repeat_interleave(make: Maker, schema: dict[str, Any], kind: str) -> dict[str, Any]:
    shape = make.integers(make.integer(1, 2), 1, 3)
    dim = make.pick((None, *range(len(shape))))
    length = int(np.prod(shape)) if dim is None else shape[dim]
    named = {argument["name"]: argument["real"] for argument in schema["arguments"]}
    counts: Any = (
        make.integer(0, 3) if named["repeats"] == "int" else make.tensor([make.pick((length, 1))], "int64", low=0, high=2)
    )
    if "self" not in named:
        counts = make.tensor([make.integer(0, 4)], "int64", low=0, high=3)
    return _shaped(schema, self=make.tensor(shape, kind), repeats=counts, dim=dim, output_size=None)


# -------------------------------------------------------------------------------------------------------------- factories


@spec(
    "zeros|ones|empty|full|new_.*|rand|randn|randint|randperm|eye|arange|range|tril_indices|triu_indices|.*_window|linspace|logspace|empty_strided|resize"
)
def factory(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Valid sizes."""
    size = list(make.shape())
    kind = make.pick(("float32", "float64", "int64", "int32", "bool", "float16", "bfloat16", "uint8"))
    named = {argument["name"]: argument["real"] for argument in schema["arguments"]}
    results: dict[str, Any] = {
        "size": size, "n": make.integer(0, 4), "m": make.integer(0, 3), "steps": make.integer(0, 5), "window_length": make.integer(0, 6),
        "row": make.integer(0, 3), "col": make.integer(0, 3), "offset": make.integer(-2, 2), "stride": [1] * len(size), "periodic": make.flag(),
        "layout": None, "pin_memory": None, "memory_format": None, "names": None, "generator": None,
    }  # fmt: skip
    if re.search("randint", make.name):
        results |= {
            "low": make.integer(-3, 2),
            "high": make.pick((5, 3, 100, 2**31, 2**33)),
            "dtype": make.pick((None, {"dtype": "int64"}, {"dtype": "int32"})),
        }
    elif re.search("rand", make.name):
        results["dtype"] = (
            make.pick((None, {"dtype": "float32"}, {"dtype": "float64"}))
            if make.name != "randperm"
            else make.pick((None, {"dtype": "int64"}))
        )
    elif make.name in {"arange", "range"}:
        results |= {
            "start": make.pick((0, 1, -2, {"float": "0.5"})),
            "end": make.pick((3, 5, 0, {"float": "2.5"})),
            "step": make.pick((1, 2, {"float": "0.5"}, -1)),
        }
        results["dtype"] = make.pick((None, {"dtype": kind if kind != "bool" else "float32"}))
    elif "window" in make.name:
        results |= {"dtype": make.pick((None, {"dtype": "float64"})), "alpha": {"float": "0.5"}, "beta": {"float": "0.5"}}
    elif make.name in {"linspace", "logspace"}:
        for name in ("start", "end"):
            value: Any = make.pick((0, 1, -2, {"float": "2.5"}))
            results[name] = value if named.get(name) == "number" else make.tensor((), "float32")
        results |= {
            "dtype": make.pick((None, {"dtype": "float64"}, {"dtype": "float32"})),
            "base": {"float": make.pick(("10.0", "2.0"))},
        }
    else:
        results["dtype"] = make.pick((None, {"dtype": kind}))
    return _shaped(schema, **results)


@spec("dropout|feature_dropout|alpha_dropout|feature_alpha_dropout|native_dropout")
def dropout(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Mostly in eval mode, as programs run."""
    x = make.tensor(make.shape(), make.pick(FLOATS))
    train = make.integer(0, 2) == 0
    return _shaped(schema, input=x, self=x, p={"float": make.pick(("0.5", "0.0", "1.0", "0.25"))}, train=train)


@spec("rrelu(_with_noise)?")
def rrelu(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """As programs run."""
    shape, kind = make.shape(), make.pick(FLOATS)
    return _shaped(schema, self=make.tensor(shape, kind), noise=make.tensor(shape, kind), training=make.integer(0, 2) == 0)


@spec("normal|uniform|random|bernoulli|multinomial|exponential|cauchy|geometric|log_normal|poisson")
def random(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Valid starts and ends of ranges."""
    named = {argument["name"]: argument["real"] for argument in schema["arguments"]}
    kind = make.pick(FLOATS if make.name != "random" else (*FLOATS, "int64", "int32", "uint8", "bool"))
    shape = make.pick((*((), (1,), (3,), (2, 3)), (20,), (3, 7)))
    results: dict[str, Any] = {"generator": None}
    for name in ("mean", "std"):
        results[name] = (
            make.tensor(shape, kind, low=0.5, high=2.0)
            if named.get(name) == "Tensor"
            else {"float": make.pick(("1.0", "0.0", "0.5"))}
        )
    results |= {
        "size": list(shape),
        "self": make.tensor(shape, kind),
        "from": {"float": "-1.0"} if named.get("from") == "float" else make.integer(-3, 1),
        "to": make.integer(2, 9),
    }
    if make.name == "uniform":
        results["to"] = {"float": "2.0"}
    if make.name in {"bernoulli", "multinomial", "poisson"}:
        results["self"] = make.tensor(shape if make.name != "multinomial" else (4,), kind, low=0.25, high=1.0)
    results["p"] = make.tensor(shape, kind, low=0.0, high=1.0) if named.get("p") == "Tensor" else {"float": "0.25"}
    results |= {
        "lambd": {"float": "1.5"},
        "median": {"float": "0.0"},
        "sigma": {"float": "1.0"},
        "num_samples": make.integer(1, 3),
        "replacement": make.flag(),
    }
    if named.get("dtype"):
        results["dtype"] = None
    return _shaped(schema, **results)


@spec("_conj|polar|complex|view_as_complex|view_as_real|real|imag")
def complex_(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Pairs."""
    if not schema["tensors"]:
        return {}
    shape, kind = make.shape(), make.pick(FLOATS)
    if make.name == "view_as_complex":
        return {"self": make.tensor([*shape, 2], kind)}
    if make.name in {"view_as_real", "imag", "real", "_conj"}:
        return {"self": make.tensor(shape, make.pick(COMPLEX))}
    return _shaped(
        schema,
        abs=make.tensor(shape, kind),
        angle=make.tensor(shape, kind),
        real=make.tensor(shape, kind),
        imag=make.tensor(shape, kind),
    )


@spec("__lshift__|__rshift__")
def shift(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Shifts below the number of bits of the dtype: larger shifts are undefined in C++."""
    if not schema["tensors"]:
        return {"a": make.integer(-9, 9), "b": make.integer(0, 63)}
    kind = make.pick(("int64", "int32", "uint8", "int8", "int16"))
    tensor = any(argument["name"] == "other" and argument["real"] == "Tensor" for argument in schema["arguments"])
    shape = make.shape()
    return {"self": make.tensor(shape, kind), "other": make.tensor(shape, kind, low=0, high=6) if tensor else make.integer(0, 6)}


@spec("mvlgamma|special_(multigammaln|polygamma)|fft_r?fftfreq")
def counted(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Small counts, and numbers for which the functions are mostly finite."""
    kind = make.pick((*FLOATS, *FLOATS, "int64", "int32", "bool", "float16", "bfloat16"))
    few = {"low": 0.75, "high": 4.0} if make.often() else {"low": -3.0, "high": 3.0}
    low, high = (-1, 4) if kind in {"int64", "int32"} else few.values()
    x = make.tensor(make.shape(), kind) if kind == "bool" else make.tensor(make.shape(), kind, low=low, high=high)
    dtype = make.pick(
        (None, {"dtype": "float64"}, {"dtype": "float16"}, {"dtype": "bfloat16"}, {"dtype": "int64"}, {"dtype": "complex64"})
    )
    return _shaped(
        schema, self=x, p=make.integer(0, 4) if make.name != "polygamma" else None, n=make.integer(-1, 9) if "freq" in make.name else make.integer(0, 4),
        d={"float": make.pick(("1.0", "0.5", "0.1", "-2.0", "0.0"))}, dtype=dtype, layout=None, pin_memory=None,
    )  # fmt: skip


@spec("special_.*bessel_.*|special_i1|special_airy_ai")
def bessel(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Numbers near zero and far from it."""
    kind = make.pick((*FLOATS, *FLOATS, "int64", "bfloat16"))
    most = make.pick((2, 8, 30, 100))
    x = (
        make.tensor(make.shape(), kind, low=-most if make.flag() else 0, high=most)
        if make.often()
        else make.tensor(make.shape(), kind)
    )
    return _shaped(schema, self=x, x=x)


@spec("special_.*_polynomial_.*")
def polynomial(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Low degrees, and numbers inside and outside of the interval."""
    kind, most = make.pick((*FLOATS, *FLOATS, "int64")), make.pick((1, 1, 3))
    named = {argument["name"]: argument["real"] for argument in schema["arguments"]}
    x = (
        make.tensor(make.shape(), kind, low=-most, high=most)
        if named["x"] == "Tensor"
        else {"float": make.pick(("0.5", "-1.0", "1.0", "2.5", "-0.3"))}
    )
    degrees = make.pick(("int64", "int64", "int32", "float32"))
    n = make.tensor(make.shape(), degrees, low=-1, high=12) if named["n"] == "Tensor" else make.integer(-1, 14)
    return _shaped(schema, x=x, n=n)


@spec("special_zeta")
def zeta(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Exponents above one most of the time, and a second argument that may be negative."""
    kind = make.pick((*FLOATS, *FLOATS, "int64"))
    named = {argument["name"]: argument["real"] for argument in schema["arguments"]}
    low = 1 if make.often() else -2
    x = (
        make.tensor(make.shape(), kind, low=low, high=6)
        if named["self"] == "Tensor"
        else {"float": make.pick(("1.5", "2.0", "1.0", "0.5", "7.25"))}
    )
    y = (
        make.tensor(make.shape(), kind, low=-4, high=12)
        if named["other"] == "Tensor"
        else {"float": make.pick(("1.5", "-2.0", "-2.5", "30.0"))}
    )
    return _shaped(schema, self=x, other=y)


@spec("polygamma|bitwise_(left|right)_shift|__[il]?r?shift__|__ilshift__|__irshift__|ldexp")
def narrow(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Shifts below the number of bits of the dtype: larger shifts are undefined in C++."""
    if make.name == "polygamma":
        return {"n": make.integer(0, 2), "self": make.tensor(make.shape(), make.pick(FLOATS), low=0.25, high=4.0)}
    named = {argument["name"]: argument["real"] for argument in schema["arguments"]}
    if "ldexp" in make.name or named.get("other") != "Tensor":
        return (
            {"other": make.integer(0, 3)}
            if named.get("other") == "number"
            else {"b": make.integer(0, 3)}
            if named.get("b") == "int"
            else {}
        )
    shape, kind = make.shape(), make.pick(("int64", "int32", "uint8", "int8", "int16"))
    first: Any = make.tensor(shape, kind) if named.get("self") == "Tensor" else make.integer(-3, 9)
    return {"self": first, "other": make.tensor(shape, kind, low=0, high=6)}


@spec("set_data|copy|fill_diagonal|resize_as|set|type_as|result_type|can_cast|promote_types")
def casting(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Tensors of two types."""
    if make.name != "fill_diagonal":
        return {}
    return {
        "self": make.tensor(make.integers(make.integer(2, 3), 2, 2) if make.flag() else make.integers(2, 1, 4), make.pick(KINDS))
    }


@spec("percentFormat|format")
def formats(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """No arguments: these operators are variadic."""
    return {}


@spec("find|rfind|count|startswith|endswith|index")
def within(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Positions within a string; torch's count of an empty string never ends."""
    if schema["arguments"][0]["real"] != "str":
        return {}
    text = make.pick(("a", "b", "ab", "X", "aXbX")) if make.name == "count" else make.pick(("a", "b", "ab", "X", "", "aXbX"))
    return _shaped(schema, substr=text, start=make.integer(-4, 5), end=make.integer(-4, 6))


@spec("(Int|Float|Complex|Scalar)Implicit|Int|Float")
def implicit(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """One element; texts that are numbers."""
    first = schema["arguments"][0]
    if first["real"] == "str":
        return {first["name"]: make.pick(("1", "-12", "x", "", "7"))}
    if first["real"] != "Tensor":
        return {}
    kind = {"IntImplicit": "int64", "FloatImplicit": "float64"}.get(make.name) or make.pick(
        ("int64", "float32", "bool", "complex64")
    )
    return {first["name"]: make.tensor(make.pick(((), (), (1,))), kind)}


@spec("tensor|as_tensor")
def tensor_of(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Nonempty lists: an empty list does not determine its type, which the reader does not know."""
    if not any("List" in argument["real"] for argument in schema["arguments"]):
        return {}
    kind = make.pick(("int", "float", "bool"))
    draw = {"int": lambda: make.integer(-3, 9), "float": make.real, "bool": make.flag}[kind]
    return {"data": [draw() for _ in range(make.integer(1, 3))], "variables": {"t": kind}, "requires_grad": False}


@spec("__getitem__|Delete|_set_item|setdefault|get|pop|popitem|__contains__")
def by_key(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Mostly an existing key."""
    first = schema["arguments"][0]
    if not first["real"].startswith("Dict[") or "Tensor" in first["real"]:
        return {}
    kind = first["real"][5:].split(",")[0]
    by_kind: dict[str, list[Any]] = {
        "str": ["a", "b", "é"], "int": [1, 0, -7], "bool": [True, False], "float": [{"float": "1.5"}, {"float": "0.0"}],
        "complex": [{"complex": ["1.0", "0.5"]}, {"complex": ["0.0", "2.0"]}],
    }  # fmt: skip
    keys = by_kind[kind]
    pairs = [[key, make.integer(-3, 9)] for key in keys[: make.integer(1, len(keys))]]
    return {
        first["name"]: {"dict": pairs},
        **_shaped(schema, key=make.pick(keys), idx=make.pick(keys)),
        "variables": {"t": "int"},
    }


@spec("narrow")
def narrow_(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Within."""
    shape = make.integers(make.integer(1, 3), 1, 4)
    dim = make.integer(-len(shape), len(shape) - 1)
    start = make.integer(0, shape[dim])
    number = any(argument["name"] == "start" and argument["real"] == "int" for argument in schema["arguments"])
    at: Any = start if number else make.given(np.asarray(start, np.int64))
    return {"self": make.tensor(shape, make.pick(KINDS)), "dim": dim, "start": at, "length": make.integer(0, shape[dim] - start)}


@spec("rsplit|replace|count")
def separators(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Nonempty strings: torch searches for an empty one forever."""
    some = make.pick(("a", ",", "X", " ", "ab"))
    return _shaped(schema, separator=some, old=some, substr=some, max=make.pick((-1, 1, 2, 0)))


@spec("factorial")
def factorial(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Arguments whose result fits in 64 bits: an overflow is undefined in C++."""
    return {"a": make.integer(-1, 20)}


@spec("sum")
def sum_(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Nonempty lists: an empty list does not determine its type, which the reader does not know."""
    if schema["tensors"]:
        return {}
    kind = schema["arguments"][0]["real"]
    count = make.integer(1, 3)
    results = {"List[int]": [make.pick((1, -2, 2**31)) for _ in range(count)], "List[bool]": [make.flag() for _ in range(count)]}
    floats = [make.real() for _ in range(count)]
    return {
        schema["arguments"][0]["name"]: results.get(
            kind, floats if kind == "List[float]" else [{"complex": ["1.0", "0.5"]}] * count
        )
    }


@spec("zfill|ljust|rjust|center|expandtabs")
def widths(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Widths for which torch terminates: it does not with more than one fill byte, nor for negative widths at both ends."""
    return _shaped(
        schema,
        width=make.integer(0 if make.name == "center" else -1, 9),
        tabsize=make.integer(0, 9),
        fillchar=make.pick((" ", "x", "-")),
    )


@spec("gradient")
def gradient(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Samples at distances or coordinates, one for each dimension."""
    ndim = make.integer(1, 3)
    shape = make.integers(ndim, 2, 4)
    kinds = {argument["name"]: argument["real"] for argument in schema["arguments"]}
    several = kinds["dim"] == "List[int]"
    dims = make.pick(([make.integer(0, ndim - 1)], list(range(ndim)), [-1]))
    dim: Any = dims if several else make.pick((None, make.integer(-ndim, ndim - 1)))
    chosen = dims if several else list(range(ndim)) if dim is None else [dim]
    numbers = (1, 2, {"float": "0.5"}, {"float": "-1.5"})
    spacing: Any = make.pick((None, *numbers)) if kinds.get("spacing", "").startswith("Optional") else make.pick(numbers)
    if "List[Tensor" in kinds.get("spacing", ""):
        spacing = [make.given(np.cumsum([1.0 + at % 3 for at in range(shape[item])]).astype("float32")) for item in chosen]
    elif "List" in kinds.get("spacing", ""):
        spacing = [make.pick(numbers[:2]) for _ in chosen] if make.flag() else [make.pick(numbers[2:]) for _ in chosen]
    kind = make.pick((*FLOATS, "int64", "int32", "complex64"))
    return _shaped(schema, self=make.tensor(shape, kind), dim=dim, spacing=spacing, edge_order=make.pick((1, 1, 2)))


@spec("cumulative_trapezoid")
def cumulative_trapezoid(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Coordinates of a matching shape."""
    shape = make.integers(make.integer(1, 3), 0, 4)
    dim = make.integer(-len(shape), len(shape) - 1)
    kinds = (*FLOATS, "int64", "complex64")
    places = make.pick((shape, [shape[dim]]))
    return _shaped(
        schema, y=make.tensor(shape, make.pick(kinds)), x=make.tensor(places, make.pick(kinds)), dim=dim,
        dx=make.pick((1, 2, {"float": "0.5"})),
    )  # fmt: skip


@spec("histogram|histogramdd")
def histogram(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Points, and bins for each of their dimensions."""
    kind, several = make.pick(FLOATS), make.name == "histogramdd"
    shape = [*make.integers(make.integer(0, 2), 0, 4), make.integer(1, 4)]
    x = make.tensor([*shape, 2] if several else shape, kind)
    real = next(argument["real"] for argument in schema["arguments"] if argument["name"] == "bins")

    def edges() -> Any:
        return make.given(np.sort(np.asarray([make.integer(-8, 8) / 4 for _ in range(make.integer(2, 5))])).astype(kind))

    bins: Any = make.integer(1, 5)
    if real == "Tensor":
        bins = edges()
    elif real.startswith("List"):
        bins = [edges(), edges()] if "Tensor" in real else make.integers(2, 1, 4)
    ends = [{"float": "-1.0"}, {"float": "2.0"}]
    return _shaped(
        schema, self=x, bins=bins, range=_none_or(make, ends * (2 if several else 1)), weight=_none_or(make, make.tensor(shape, kind)),
        density=make.flag(),
    )  # fmt: skip


@spec("index_reduce")
def index_reduce(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Slices for the indexed positions."""
    shape = make.integers(make.integer(1, 3), 1, 4)
    dim, count, kind = make.integer(0, len(shape) - 1), make.integer(0, 4), make.pick((*FLOATS, "int64", "int32", "uint8"))
    return {
        "self": make.tensor(shape, kind), "dim": dim, "index": make.tensor([count], make.pick(("int64", "int32")), low=0, high=shape[dim] - 1),
        "source": make.tensor([*shape[:dim], count, *shape[dim + 1 :]], kind), "reduce": make.pick(("prod", "mean", "amax", "amin")),
        "include_self": make.flag(),
    }  # fmt: skip


@spec("segment_reduce")
def segment_reduce(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Lengths whose sum is the first size."""
    lengths = make.integers(make.integer(1, 4), 0, 3)
    count = sum(lengths)
    by_offsets = "offsets" in {argument["name"] for argument in schema["arguments"]} and make.flag()
    return _shaped(
        schema, data=make.tensor([max(count, 1), *make.integers(make.integer(0, 2), 1, 3)], make.pick(FLOATS)),
        reduce=make.pick(("max", "min", "mean", "sum", "prod")), indices=None, axis=0, unsafe=False,
        lengths=None if by_offsets else make.given(np.asarray([*lengths, 1 - min(count, 1)], "int64")),
        offsets=make.given(np.cumsum([0, *lengths, 1 - min(count, 1)]).astype("int64")) if by_offsets else None,
        initial=make.pick((None, None, {"float": "1.5"})),
    )  # fmt: skip


@spec(r"fractional_max_pool[23]d")
def fractional_pool(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Windows that fit, and random numbers for each plane."""
    n, kind = dims_of(make.name), make.pick(FLOATS)
    kernel, out = make.integers(n, 1, 3), make.integers(n, 1, 3)
    sizes = [a + b - 1 + make.integer(0, 3) for a, b in zip(kernel, out, strict=True)]
    planes = [make.integer(1, 2), make.integer(1, 2)]
    lead = planes if make.often() else planes[1:]
    samples = np.random.default_rng(make.integer(0, 99)).random([1 if lead is not planes else planes[0], planes[1], n])
    return _shaped(
        schema,
        self=make.tensor([*lead, *sizes], kind),
        kernel_size=kernel,
        output_size=out,
        random_samples=make.given(samples.astype(kind)),
    )


@spec("multilabel_margin_loss(_forward)?")
def multilabel_margin(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Labels that end at -1."""
    shape = make.pick(([make.integer(1, 4)], make.integers(2, 1, 4), []))
    return _shaped(
        schema, self=make.tensor(shape, make.pick(FLOATS)), target=make.tensor(shape, "int64", low=-1, high=(shape or [1])[-1] - 1),
        reduction=make.integer(0, 2),
    )  # fmt: skip


@spec("unflatten_dense_tensors|flatten_dense_tensors")
def flattened(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """Tensors of one dtype, and a matching number of elements."""
    kind = make.pick(KINDS)
    shapes = [make.integers(make.integer(0, 2), 0, 3) for _ in range(make.integer(1, 3))]
    count = sum(int(np.prod(shape)) for shape in shapes)
    return _shaped(schema, tensors=[make.tensor(shape, kind) for shape in shapes], flat=make.tensor([count], kind))


@spec(r"slow_conv(_dilated|_transpose)?[23]d|thnn_conv(_dilated|_transpose)?[23]d|_?(thnn_)?conv_depthwise[23]d")
def kernels(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """A weight that fits the input, and its size."""
    n, transposed, kind = dims_of(make.name), "transpose" in make.name, make.pick(("float32", "float64"))
    kernel, dilation, stride = make.integers(n, 1, 3), make.integers(n, 1, 2), make.integers(n, 1, 2)
    channels, result = make.integer(1, 3), make.integer(1, 2)
    apart = dilation if "dilat" in make.name or transposed else [1] * n
    sizes = [make.integer(0, 3) + d * (k - 1) + 1 for d, k in zip(apart, kernel, strict=True)]
    return _shaped(
        schema, self=make.tensor([make.integer(1, 2), channels, *sizes], kind), kernel_size=kernel, stride=stride, dilation=dilation,
        weight=make.tensor([channels, result, *kernel] if transposed else [result, channels, *kernel], kind),
        bias=_none_or(make, make.tensor([result], kind)), padding=[0 if transposed and k == 1 else make.integer(0, 1) for k in kernel],
        output_padding=[make.integer(0, s - 1) for s in stride],
    )  # fmt: skip


@spec("as_strided_scatter")
def as_strided_scatter(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """A view within the storage."""
    shape, size = make.integers(2, 2, 4), make.integers(2, 1, 2)
    kind = make.pick(EVERY)
    return {
        "self": make.tensor(shape, kind), "src": make.tensor(size, kind), "size": size, "stride": make.pick(([2, 1], [1, 2])),
        "storage_offset": make.pick((None, 0, 1)),
    }  # fmt: skip


@spec("nonzero_static")
def nonzero_static(make: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    """A few places."""
    return {"size": make.integer(0, 6), "fill_value": make.pick((-1, 0, 7))}
