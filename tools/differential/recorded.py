"""Recorded calls of operators (:mod:`torch_compat.corpus.calls`): how they are chosen, and the reference reader's results for them.

``python -m tools.differential choose`` chooses them again; then every release has to be surveyed again.
"""

from __future__ import annotations

import ast
import base64
import json
import math
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tools.differential.arguments import Maker, Unwritable, gentle
from tools.differential.calls import call_ours
from tools.differential.comparison import RANDOM, compared, exclusion
from tools.differential.horizons import COLUMNS, column, not_asked, schemas_at
from tools.differential.structured import spec_of
from torch_compat.corpus.calls import RecordedCall
from torch_compat.corpus.surveys import FILES, surveyed_releases
from torch_compat.errors import Unsupported
from torch_compat.operators.call_signature import bare, signature_of
from torch_compat.operators.history import FactHistory, History
from torch_compat.proving.arguments import make_call
from torch_compat.proving.cases import cases
from torch_compat.proving.oracles import CallOutcome, Modelled, differences
from torch_compat.proving.programs import Form, archive, forms
from torch_compat.proving.proof import version_for
from torch_compat.proving.stated import read
from torch_compat.proving.values import Seeded, tensor_body
from torch_compat.releases.release import Release
from torch_compat.runtime import dtypes
from torch_compat.runtime.encoding import Decoder, Encoder
from torch_compat.runtime.registry import known

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

FIXTURES = Path(__file__).parents[2] / "fixtures"
SEED = "recorded"
ROUNDS = ((range(10), 620, 260), (range(10, 20), 1100, 260), (range(20, 40), 1500, 1000))
"""For each round: the candidate calls per schema; the maximum length of a call in characters, and how much longer it may be with its
result. Later rounds are for operators for which the earlier ones have no value of some version."""
LEFT_OUT = {"layout", "device", "pin_memory"}
REFUSED = "refused: "
EMPTY = '"bytes": ""'
STRIDES = "other strides"
CONVERTED = "tensors are converted to numbers"
VARIABLES = {"t", "t1", "t2", "tVal", "Any"}
NOTHING: dict[str, Any] = {"tuple": []}
"""The result of an operator without a result, as seen by programs."""

UNCALLED: dict[str, str] = {
    r"aten::set_ tensor .*": "no call of it is recorded; tests/runtime/operators/test_storages.py tests the versions",
    r"aten::(cosine_embedding_loss|multi_margin_loss) tensor .*": "the versions differ only for targets and weights of matching shapes, which no recorded call has; tests/runtime/operators/test_ranking.py tests them",
    r"aten::bin any .*|aten::(native_)?channel_shuffle tensor .*|aten::pixel_unshuffle tensor .*": "the versions differ only for the smallest integer, and for empty shapes; tests/runtime/operators/test_asked.py and tests/runtime/test_traps.py test them",
    r"aten::lerp_? tensor 1\.[09]\.0": "the versions differ only for weights of more dimensions; tests/runtime/operators/test_eras.py tests both",
    r"aten::ctc_loss tensor .*": "the versions differ only for sequences without steps; tests/runtime/operators/test_ctc.py tests both",
    r"aten::fake_quantize_per_(tensor|channel)_affine(_cachemask)? tensor .*": "no call of it is recorded; tests/runtime/operators/test_fake_quantized.py tests the versions",
    r"aten::(dequantize|int_repr|q_scale|q_zero_point|quantize_per_(tensor|channel)|q_per_channel_(scales|zero_points|axis)) .*": "needs quantized tensors, which a recorded call cannot pass",
    r"aten::(randint|randperm|normal|normal_|cauchy_|multinomial) .*": "draws random numbers",
    r"aten::(_convolution|convolution|convolution_overrideable|conv[123]d) tensor .*": "the versions differ only in the last bits; tests/runtime/operators/test_convolution_order.py tests them",
    r"aten::(__interpolate|__upsample) tensor 1\.0\.0|aten::adaptive_avg_pool2d tensor 1\.[09]\.0|aten::group_norm tensor .*": "the versions differ only in the last bits; tests/runtime/operators/test_interpolation.py and test_last_bits.py test them",
    r"aten::(special_|_)?(log_)?softmax tensor .*|aten::(elu|selu|gelu)_? tensor .*": "the versions differ only in the last bits; tests/runtime/operators/test_exponentials.py tests them",
    r"aten::(glu|multilabel_margin_loss(_forward)?|hstack) tensor .*|aten::hash any .*": "the versions differ only for out= and for one shape; tests/runtime/operators/test_asked.py tests them",
    r"aten::can_cast tensor .*": "the versions differ only for complex dtypes, which no recorded call has; tests/runtime/operators/test_rarely_called.py tests both",
    r"aten::f(max|min) tensor .*": "the versions differ only in the signs of zeros; tests/runtime/operators/test_signs_of_zeros.py tests both",
    r"aten::(cholesky|inner|inverse) tensor .*": "the versions differ only in the shape of out=; tests/runtime/operators/test_algebra.py tests both",
    r"aten::abs(olute)?_ tensor .*": "the versions differ only for complex numbers in place; tests/runtime/operators/test_out_of_range.py tests both",
    r"aten::einsum tensor .*": "needs an equation and a list of tensors, which no recorded call has; tests/runtime/operators/test_einsum.py tests the versions",
    r"aten::(rot90|qr|linalg_qr) tensor .*": "the versions differ only in the strides of the result, which recorded calls do not contain",
    r"aten::\w+ opaque .*|aten::to_sparse .*|aten::(coalesce|indices|values|_nnz) tensor .*|aten::sparse_coo_tensor .*|aten::to_padded_tensor .*": "needs or returns a sparse or nested tensor, which a recorded call cannot contain",
    r"aten::_scaled_dot_product_.*|aten::native_layer_norm .*": "its results are too long to be recorded",
    r"aten::(_pad_enum|addr|all|any|index_add|masked_fill_|max_pool1d_with_indices|median|unique_dim) tensor 1\.0\.0|aten::median tensor 1\.8\.0"
    r"|aten::max_pool1d_with_indices tensor 1\.2\.0|aten::bitwise_or tensor 1\.5\.0": "the releases before the next version refuse every recorded call, because of its dtype or form",
    r"aten::affine_grid_generator tensor 1\.3\.0|aten::grid_sampler(_3d)? tensor (1\.[05]|2\.1)\.0": "its calls are too long to be recorded",
    r"aten::(rrelu_?|rrelu_with_noise_?|dense_dim|sparse_dim|unflatten_dense_tensors|_pad_circular|embedding_renorm|tensordot|_weight_norm|logaddexp2?|_unique|std_mean|var_mean|tril_indices|unique_dim) tensor .*|aten::_unique2 tensor 1\.13\.0|aten::kl_div tensor 1\.0\.0"
    r"|aten::ceil scalar .*|aten::signbit tensor 1\.(0|13)\.0|aten::(sort|argsort|topk|index_add|_?conj|kthvalue|norm|dist|frobenius_norm|linalg_(vector_)?norm|norm_except_dim|renorm_?|embedding_renorm_|celu_?|range|cdist|pairwise_distance|triplet_margin_loss|cosine_similarity|(native_)?batch_norm|instance_norm|std|var) tensor .*": "the versions were separated after the calls had been chosen; tests/runtime/operators/test_eras.py tests both",
    r"aten::(empty|ones|zeros)_like tensor 1\.(0|5)\.0": "the versions differ only in the strides of their results; tests/runtime/operators/test_found.py tests both",
    r"aten::(linalg_(lu|lu_factor|lu_factor_ex|lu_solve|inv_ex|solve_ex|cholesky_ex|solve_triangular|lstsq|matrix_exp|matrix_rank|matrix_norm|cond|vander|vecdot"
    r"|householder_product|tensorinv|tensorsolve)|_lu_with_info|lu_solve|lu_unpack|lstsq|matrix_exp|matrix_rank|geqrf|orgqr|ormqr|fft_r?fftfreq|fft_i?hfft[2n]"
    r"|mvlgamma_?|polygamma_|special_(multigammaln|polygamma|zeta|ndtr|log_ndtr|round|i1|airy_ai|spherical_bessel_j0|bessel_[jy][01]|(scaled_)?modified_bessel_[ik][01]"
    r"|.*_polynomial_.*)) tensor .*": "added after the calls had been chosen; tests/runtime/operators/test_algebra.py and test_special.py have results of releases",
    r"aten::div scalar .*|aten::reciprocal tensor 2\.[07]\.0": "the versions differ only for complex numbers whose squares are zero or infinite, which no recorded call has; tests/runtime/operators/test_extremes.py tests both",
    r"aten::(histogram|histogramdd) tensor .*": "the versions differ only in the last bit of an edge; tests/runtime/operators/test_rarely_called.py tests both",
    r"aten::(\w+_copy|copy_) tensor .*": "the versions differ only for the tensors that results are written into; tests/runtime/operators/test_rarely_called.py tests both",
    r"aten::(_upsample_(bilinear|bicubic|lanczos)2d_aa|upsample_(nearest[123]d|linear1d|bilinear2d|trilinear3d|bicubic2d)|cummax|cummin|fft_i?fft[2n]|(nll|soft_margin)_loss(_forward)?"
    r"|histc|argsort|pad|_pad_enum|re(flection|plication)_pad[123]d|l1_loss|mse_loss|smooth_l1_loss|arange|diff|cosine_similarity|_s_where) tensor .*": "the versions differ only for arguments outside their range, or for scales together with sizes, which no recorded call has; tests/runtime/operators/test_out_of_range.py tests both",
    r"aten::(str|format|percentFormat) any .*|aten::(gru|lstm|rnn_relu|rnn_tanh)_cell tensor .*": "the versions differ only for tensors in strings, and for cells with many weights, which no recorded call has; tests/runtime/test_tensor_text.py and tests/runtime/operators/test_recurrent.py test both",
    r"aten::stft tensor 2\.0\.0": "returns complex numbers only on request, which no generated call makes",
}
"""Operator versions that releases have but no recorded call reaches: a pattern of operator, kind and release, with the reason."""

Border = tuple[str, str, str]
"""An operator, the kind of its first argument, and the first release of a version."""


# ------------------------------------------------------------------------------------------------------------------ calls


def type_of(value: Any) -> str | None:
    """The TorchScript type of a value; None if the value does not determine it."""
    if value is None:
        return "None"
    if isinstance(value, dict):
        ((kind, inner),) = value.items()
        if kind == "dict":
            pair = [type_of(item) for item in inner[0]] if inner else [None]
            return None if None in pair else f"Dict[{', '.join(map(str, pair))}]"
        if kind == "tuple":
            parts = [type_of(item) for item in inner]
            return None if None in parts or not parts else f"Tuple[{', '.join(map(str, parts))}]"
        return {"tensor": "Tensor", "device": "Device"}.get(kind, kind)
    if isinstance(value, list):
        kinds = {type_of(item) for item in value}
        if "None" in kinds:
            return f"List[Optional[{min(kinds - {'None'})}]]" if len(kinds) == 2 else None  # type: ignore[type-var]
        return f"List[{kinds.pop()}]" if len(kinds) == 1 and None not in kinds else None
    return type(value).__name__


def recorded(request: dict[str, Any], schema: dict[str, Any], number: int) -> RecordedCall | None:
    """Convert a generated call to one that a program of any release makes, without default arguments. None if no program can make it."""
    request = _from_start(request)
    stated = signature_of(schema["text"]).arguments
    count = len(request["args"])
    args: list[tuple[str, Any]] = []
    keywords: dict[str, tuple[str, Any]] = {}
    for value, argument in zip(request["args"], stated[:count], strict=True):
        kind = type_of(value)
        if kind is None and value == [] and argument.type.rstrip("?").startswith(("int[", "SymInt[", "float[")):
            kind = f"List[{'float' if argument.type.startswith('float') else 'int'}]"
        if kind is None:
            return None
        if argument.kwarg_only:
            if value is not None and argument.name not in LEFT_OUT:
                keywords[argument.name] = (kind, value)
        else:
            args.append((kind, value))
    for argument in reversed([item for item in stated[:count] if not item.kwarg_only]):
        if args[-1][0] != "None" or argument.default is None:
            break
        args.pop()
    name = f"{schema['name']}.{schema['overload']}" if schema["overload"] else schema["name"]
    return RecordedCall(name, number, tuple(args), keywords)


def _from_start(value: Any) -> Any:
    """The value, with empty tensors moved to the start of their storages: their offset does not affect any result of a release."""
    if isinstance(value, list):
        return [_from_start(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "tensor" in value and 0 in value["tensor"]["shape"]:
        return {"tensor": {**value["tensor"], "offset": 0}}
    return {key: _from_start(item) for key, item in value.items()}


def request_of(call: RecordedCall) -> dict[str, Any]:
    """A recorded call in the form of :func:`tools.differential.calls.call_ours`: positional arguments first, then keyword arguments."""
    named = sorted(call.keywords)
    values = [*(value for _, value in call.args), *(call.keywords[name][1] for name in named)]
    _, _, overload = call.name.partition(".")
    return {
        "name": call.operator,
        "overload": overload,
        "args": [_whole(value) for value in values],
        "keywords": {},
        "named": named,
    }


def _whole(value: Any) -> Any:
    """The value, with the bytes of the tensors' storages instead of those of their elements."""
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, inner),) = value.items()
    if kind != "tensor":
        return {kind: _whole(inner)} if kind in {"dict", "tuple"} else value
    if 0 in inner["shape"]:
        return value
    kind_of = dtypes.DTYPES[inner["dtype"]].array
    elements = np.frombuffer(base64.b64decode(inner["bytes"]), kind_of)
    places = np.full(inner["shape"], inner["offset"], np.int64)
    for at, step in enumerate(inner["strides"]):
        places += np.arange(inner["shape"][at]).reshape([-1 if other == at else 1 for other in range(places.ndim)]) * step
    base = np.zeros(int(places.max()) + 1, kind_of)
    base[places.reshape(-1)] = elements
    return {"tensor": {**inner, "bytes": base64.b64encode(base.tobytes()).decode()}}


# ----------------------------------------------------------------------------------------------------------------- choice


@cache
def borders() -> dict[tuple[str, str], tuple[Release, ...]]:
    """The first release of every version, for operators with several versions, by kind of first argument."""
    return {(name, kind): since for name, kinds in known().items() for kind, since in kinds.items() if len(since) > 1}


def kind_of_call(call: RecordedCall) -> str:
    """The kind of first argument that selects a version in the reader."""
    kinds = known()[call.operator]
    first = (call.args or [*call.keywords.values()] or [("None", None)])[0][0]
    kind = {"Tensor": "tensor", "int": "scalar", "float": "scalar", "bool": "scalar", "complex": "scalar", "str": "str"}.get(
        first
    )
    kind = kind or {"List": "list", "Dict": "dict", "Tuple": "tuple"}.get(first.partition("[")[0], "any")
    if kind == "scalar" and "tensor" in kinds and len(call.args) > 1 and call.args[1][0] == "Tensor":
        kind = "tensor"
    return kind if kind in kinds else "any" if "any" in kinds else "tensor"


@dataclass
class Candidate:
    """A call that may be recorded, and the reader's result at the releases next to the borders, as one text each."""

    call: RecordedCall
    given: dict[str, str]
    size: int

    @property
    def empty(self) -> bool:
        """Whether an input or output is a tensor without elements: such a call has little value."""
        return any(EMPTY in item for item in self.given.values())


@dataclass
class Choice:
    """The chosen calls.

    Attributes:
        lacking: versions for which no generated call returns a value, named as in `borders`.
        alike: versions that no generated call distinguishes from the previous version.
    """

    calls: list[RecordedCall] = field(default_factory=list)
    lacking: list[Border] = field(default_factory=list)
    alike: list[Border] = field(default_factory=list)


def outcome(call: RecordedCall, release: str) -> str:
    """The reader's result at a horizon, as one text: ``error``, ``unsupported``, or the value with the inputs."""
    ours = call_ours(request_of(call), release)
    if "value" not in ours:
        message = "error" if "error" in ours else "unsupported"
        return "random" if RANDOM in ours.get("unsupported", "") else message
    try:
        together = Encoder()
        return json.dumps([together.encode(ours["inputs"]), together.encode(ours["value"])])
    except Exception:  # noqa: BLE001 - a value that has no neutral form is not recorded
        return "unsupported"


def candidates(
    releases: list[str], wanted: Collection[tuple[str, str]], numbers: range, longest: int, largest: int
) -> dict[tuple[str, str], list[Candidate]]:
    """Generate calls of operators from the schemas of all releases.

    Parameters:
        wanted: keys of `borders`.
    """
    names = {name for name, _ in wanted}
    only = f"^({'|'.join(map(re.escape, sorted(names)))})$"
    texts: dict[str, dict[str, Any]] = {}
    for release in releases:
        for schema in schemas_at(release, only):
            if exclusion(schema) is None and not_asked(schema["text"], release) is None:
                texts.setdefault(schema["text"], schema)
    results: dict[tuple[str, str], list[Candidate]] = defaultdict(list)
    for text, schema in sorted(texts.items()):
        for at in numbers:
            try:
                call = _made(text, schema, at)
            except Unwritable:
                break
            key = (call.operator, kind_of_call(call)) if call is not None else ("", "")
            if call is None or key not in wanted:
                continue
            size = len(json.dumps([call.args, call.keywords]))
            if size > longest:
                continue
            given = {item: outcome(call, item) for item in beside(key, releases)}
            if (
                not any(item.startswith("[") and len(item) - size > largest for item in given.values())
                and "random" not in given.values()
            ):
                results[key].append(Candidate(call, given, size))
    return results


def _made(text: str, schema: dict[str, Any], at: int) -> RecordedCall | None:
    name = schema["name"].split("::")[1]
    make = Maker(Seeded(f"{SEED}/{text}/{at}"), bare(name), plain=gentle(name) or at % 2 == 0, graph=True, body=tensor_body)
    request = make_call(make, schema, spec_of(schema["name"]))
    for value, argument in zip(request["args"], schema["arguments"], strict=False):
        if argument["name"] == "mask" and at % 4 == 3 and at >= ROUNDS[1][0].start and value["tensor"]["dtype"] == "bool":
            value["tensor"]["dtype"] = "uint8"  # masks up to 1.1 have this dtype; a bool has the same bytes
    return recorded(request, schema, 0)


def chosen(releases: list[str], only: str = "") -> Choice:
    """The calls of all rounds, and those of upgraders."""
    wanted = {key for key in borders() if re.search(only, key[0])}
    results: dict[tuple[str, str], list[Candidate]] = defaultdict(list)
    choice, left = Choice(), set(wanted)
    for numbers, *limits in ROUNDS:
        for key, rows in candidates(releases, left, numbers, *limits).items():
            results[key] += rows
        choice = choose(results, wanted, releases)
        left = {(name, kind) for name, kind, _ in choice.lacking}
    choice.calls += [call for call in of_upgraders() if re.search(only, call.operator)]
    return choice


def beside(key: tuple[str, str], releases: list[str]) -> list[str]:
    """The releases right before and right after each border, and the newest."""
    chosen = {releases[-1]}
    for since in borders()[key][1:]:
        before = [release for release in releases if Release(release) < since]
        after = [release for release in releases if Release(release) >= since]
        chosen.update([*before[-1:], *after[:1]])
    return sorted(chosen, key=Release)


def choose(value: dict[tuple[str, str], list[Candidate]], wanted: Collection[tuple[str, str]], releases: list[str]) -> Choice:
    """Choose, for each version, the smallest call with a value and the smallest that differs from the previous version; one call may serve several."""
    choice = Choice()
    kept: dict[str, Candidate] = {}
    for key in sorted(wanted):
        since = borders()[key]
        rows = sorted(value.get(key, []), key=lambda item: (item.empty, item.size))
        taken: list[Candidate] = []
        for at, start in enumerate(since):
            end = since[at + 1] if at + 1 < len(since) else None
            mine = [item for item in beside(key, releases) if Release(item) >= start and (end is None or Release(item) < end)]
            before = [item for item in beside(key, releases) if Release(item) < start]
            if at and mine and before:
                telling = [row for row in rows if tells(row, before[-1], mine[0])]
                telling.sort(key=lambda item: (item not in taken, item.empty, not both(item, before[-1], mine[0]), item.size))
                if not telling:
                    choice.alike.append((*key, str(start)))
                taken += [row for row in telling[:1] if row not in taken]
            if not any(item.given[release].startswith("[") for item in taken for release in mine):
                giving = [row for row in rows if any(row.given[release].startswith("[") for release in mine)]
                if not giving:
                    choice.lacking.append((*key, str(start)))
                taken += giving[:1]
        for candidate in taken:
            kept.setdefault(json.dumps([candidate.call.operator, candidate.call.args, candidate.call.keywords]), candidate)
    numbers: Counter[str] = Counter()
    for candidate in sorted(kept.values(), key=lambda item: (item.call.name, json.dumps(item.call[2:]))):
        numbers[candidate.call.name] += 1
        choice.calls.append(candidate.call._replace(number=numbers[candidate.call.name]))
    return choice


def tells(candidate: Candidate, before: str, after: str) -> bool:
    """Whether the results of a call differ at a border."""
    pair = candidate.given[before], candidate.given[after]
    return pair[0] != pair[1] and "unsupported" not in pair


def both(candidate: Candidate, before: str, after: str) -> bool:
    """Whether a call returns a value on both sides."""
    return candidate.given[before].startswith("[") and candidate.given[after].startswith("[")


PER_UPGRADER = 3  # calls: the first that differs from what the newest release computes, and others
OF_UPGRADER = 48  # calls of each form, of which these are chosen


def of_upgraders() -> list[RecordedCall]:
    """Calls made by archives of an old file format: some for each upgrader, preferring calls whose result it changes."""
    results: list[RecordedCall] = []
    newest = list(surveyed_releases(FIXTURES))[-1]
    for stated in read().values():
        if not stated.old:
            continue  # no release had the call
        version = version_for(stated)
        rows: dict[bool, list[RecordedCall]] = {True: [], False: []}
        for form in forms(stated.operator, stated.arguments):
            for values in cases(form, SEED, OF_UPGRADER):
                call = _of_form(form, values, stated.name, version)
                text = json.dumps([call.args, call.keywords]) if call is not None else ""
                if call is None or EMPTY in text or len(text) > ROUNDS[0][1] or _overflows(call, text):
                    continue
                upgraded, as_it_is = (answer_of(call._replace(file_format=item), newest) for item in (version, stated.bump))
                if upgraded.kind == "value" and not _long(upgraded):
                    rows[bool(as_it_is.kind != "value" or differences(upgraded, as_it_is))].append(call)
        taken = [*rows[True][: PER_UPGRADER - 1], *rows[False]][:PER_UPGRADER]
        results += [item._replace(number=at) for at, item in enumerate(taken, 1)]
    return results


def _overflows(call: RecordedCall, text: str) -> bool:
    """Whether a power overflows an 8-bit integer, which is undefined in C++."""
    return call.operator == "aten::logspace" and '"uint8"' in text


def _long(outcome: CallOutcome) -> bool:
    return len(json.dumps(outcome.turn)) > sum(ROUNDS[0][1:])


def _of_form(form: Form, values: list[Any], name: str, version: int) -> RecordedCall | None:
    """The call of a form with these values; None if the form contains a literal other than None."""
    given = {f"a_{own}": (kind, value) for (own, kind, _), value in zip(form.parameters, values, strict=True)}
    tree = ast.parse(form.call, mode="eval").body
    assert isinstance(tree, ast.Call)
    texts = [*map(ast.unparse, tree.args), *(ast.unparse(keyword.value) for keyword in tree.keywords)]
    if any(text not in given and text != "None" for text in texts):
        return None
    args = tuple(given.get(ast.unparse(arg), ("None", None)) for arg in tree.args)
    keywords = {str(keyword.arg): given.get(ast.unparse(keyword.value), ("None", None)) for keyword in tree.keywords}
    if any(kind.startswith("Optional") for kind, _ in (*args, *keywords.values())):
        return None
    return RecordedCall(name, 0, args, keywords, version)


def answer_of(call: RecordedCall, release: str) -> CallOutcome:
    """The reader's result for a call made by the program of an archive."""
    values: list[Any] = []
    texts: list[str] = []
    parameters: list[tuple[str, str, str]] = []
    for prefix, (kind, value) in [
        *(("", arg) for arg in call.args),
        *((f"{name}=", call.keywords[name]) for name in sorted(call.keywords)),
    ]:
        if kind == "None":
            texts.append(f"{prefix}None")
        else:
            texts.append(f"{prefix}a_{len(values)}")
            parameters.append((str(len(values)), kind, kind))
            values.append(value)
    form = Form(call.operator, tuple(parameters), f"torch.{call.operator.rpartition('::')[2]}({', '.join(texts)})")
    (result,) = Modelled(release).ask(archive(form, call.file_format), [values])
    return result


# ----------------------------------------------------------------------------------------------------------------- replay


def answers(fixtures: Path = FIXTURES) -> dict[str, dict[str, Any]]:
    """The results of all surveyed releases, by the key of the call."""
    history = FactHistory(fixtures / FILES["calls"][0])
    results: dict[str, dict[str, Any]] = defaultdict(dict)
    for key, text, bits in history.facts():
        for release in history.of(bits):
            results[key][release] = json.loads(text)
    return results


def replayed(call: RecordedCall, release: str, answer: Any) -> tuple[str, str]:
    """Compare the reader's result for a call at the horizon of a release with the recorded one: a column, and the difference.

    The column is one of :data:`tools.differential.horizons.COLUMNS`, ``STRIDES`` if only strides differ, ``CONVERTED``, ``excluded`` if
    `horizons` excludes the call, or the recorded result itself if the release has no such call or crashed.
    """
    if isinstance(answer, str) and not answer.startswith(REFUSED):
        return answer, ""
    if not_asked(f"{call.name}(", release) is not None:
        return "excluded", ""
    if not call.file_format and converted(call, release):
        return CONVERTED, ""
    request = request_of(call)
    ours = _from_archive(call, release) if call.file_format else call_ours(request, release)
    theirs: dict[str, Any] = {"error": answer}
    if not isinstance(answer, str):
        value, changed = answer
        value = None if value == NOTHING else value
        given = [*(item for _, item in call.args), *(call.keywords[name][1] for name in request["named"])]
        places = [at for at, arg in enumerate(given) if arg is not None and "device" not in _keys(arg)]
        for at, body in changed.items():
            given[places[int(at)]] = body
        theirs = {"value": value, "inputs": given}
    kept = (ours.get("inputs"), ours.get("value"))
    word, message = compared(request, call.name, release, theirs, ours)
    if word == "compared" and (apart := memory(theirs, *kept)):
        return STRIDES if apart.partition(": ")[2].startswith("strides") else COLUMNS[-1], apart
    return column(word), message


def converted(call: RecordedCall, release: str) -> bool:
    """Whether no overload of the release takes tensors where the call passes them: its compiler then converts them to numbers."""
    kinds = [kind for kind, _ in call.args]
    return "Tensor" in kinds and not any(all(map(_fits, kinds, taken)) for taken in _taken(call.operator, release))


def _fits(kind: str, taken: str) -> bool:
    if taken in VARIABLES or kind not in {"Tensor", "int", "float", "bool", "complex"}:
        return True
    return taken.startswith("Tensor") == (kind == "Tensor")


@cache
def _taken(operator: str, release: str) -> list[list[str]]:
    """The types of the arguments by position, for every overload in a release."""
    stated = [signature_of(text).arguments for text in History.load().schemas(operator, release)]
    return [[argument.type for argument in arguments if not argument.kwarg_only] for arguments in stated]


def _from_archive(call: RecordedCall, release: str) -> dict[str, Any]:
    """As :func:`tools.differential.calls.call_ours`, for a call made by the program of an archive."""
    result = answer_of(call, release)
    if result.turn is None:
        return {"unsupported" if result.kind == "unsupported" else "error": result.said}
    given = iter(result.turn["inputs"])
    values = [
        value if kind == "None" else next(given)
        for kind, value in (*call.args, *(call.keywords[name] for name in sorted(call.keywords)))
    ]
    decoder = Decoder()
    return {"value": decoder.decode(result.turn["value"]), "inputs": [decoder.decode(value) for value in values]}


def _keys(value: Any) -> Iterable[str]:
    return value.keys() if isinstance(value, dict) else ()


def memory(theirs: dict[str, Any], inputs: Any, value: Any) -> str:
    """The tensor of the reader's result with another memory layout: not shared with an input, or other strides; empty if there is none."""
    together = Encoder()
    together.encode(inputs)
    shared = len(together.storages)
    try:
        ours = together.encode(value)
    except Unsupported:
        return ""
    return next(_apart(theirs["value"], ours, shared, "value"), "")


def _apart(theirs: Any, ours: Any, shared: int, where: str) -> Iterator[str]:
    if isinstance(theirs, list):
        for at, (item, other) in enumerate(
            zip(theirs, ours, strict=False)
        ):  # for some operators, only the first result is compared
            yield from _apart(item, other, shared, f"{where}[{at}]")
    elif isinstance(theirs, dict):
        ((kind, body),) = theirs.items()
        if kind in {"tuple", "dict"}:
            yield from _apart(body, ours[kind], shared, where)
        elif kind == "tensor" and 0 not in body["shape"]:
            mine = ours["tensor"]
            lies = (mine["storage"], mine["offset"]) if mine.get("storage", shared) < shared else None
            wanted = (body["storage"], body["offset"]) if "storage" in body else None
            if lies != wanted:
                yield f"{where}: storage and offset {wanted}, not {lies}"
            elif _steps(body, body.get("strides")) != _steps(mine, mine["strides"]):
                yield f"{where}: strides {body.get('strides', 'of its shape')}, not {mine['strides']}"


def _steps(body: dict[str, Any], strides: list[int] | None) -> list[int]:
    """Strides of the dimensions with more than one element."""
    shape = body["shape"]
    whole = [math.prod(shape[at + 1 :]) for at in range(len(shape))]
    return [step for size, step in zip(shape, whole if strides is None else strides, strict=True) if size > 1]
