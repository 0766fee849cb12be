"""Comparison of every overload in the reference reader with a real release: what is compared, what is excluded and why, and how."""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings

from tools.differential.arguments import Unwritable, calls, gentle, prepared, shown
from tools.differential.calls import FAULT, NONE, Near, Release, call_ours, decode, difference
from tools.differential.structured import spec_of
from torch_compat.releases.release import Release as Version
from torch_compat.runtime.registration import OUTS
from torch_compat.runtime.registry import known
from torch_compat.runtime.tensor import Tensor

__all__ = ["VERSION", "Disagreement", "Outcome", "compare", "compared", "exclusion", "groups", "overloads", "work"]

VERSION = "2.13.0"

# Excluded overloads, by pattern of the full name; the first match applies.
EXCLUDED: dict[str, str] = {
    r"aten::(int_repr|q_scale|q_zero_point|quantize_per_tensor)\..*|aten::dequantize\.(tensors|tensors_out|list|any)|aten::fake_quantize_per_tensor_affine\.tensor_qparams": "needs quantized tensors, which a generated call cannot pass; tests/runtime/operators/test_quantized.py has the results of the releases",
    r"quantized::.*|aten::quantized_\w+\..*": "needs quantized tensors and packed parameters, which a generated call cannot pass; tests/runtime/operators/test_quantized_networks.py has the results of the releases",
    r"aten::_?conv_depthwise[23]d\..*": "refused on the CPU, regardless of the arguments",
    r"aten::sparse_coo_tensor\..*": "returns a sparse tensor, which the tool cannot compare; programs of the corpus convert it to a dense tensor",
    r"aten::stft\.center": "requires the name of a padding mode, which is not generated",
    r"aten::_assert_scalar\.": "torch's compiler removes the call, because its result is unused; exported programs keep it",
    r"aten::(new_)?empty(_like|_strided|_permuted)?\..*|aten::resize(_as)?_?\.|aten::_make_dep_token\.": "its values are uninitialized memory",
    r"aten::(rand|randn|randint|randperm|rand_like|randn_like|randint_like|normal|normal_|uniform_|random_|bernoulli|bernoulli_|multinomial"
    r"|exponential_|cauchy_|geometric_|log_normal_|poisson|rrelu_with_noise)\..*": "draws random numbers, which the reference reader does not support",
    r"aten::(exp|expm1|log|log10|log1p|sqrt|sin|cos|tan|asin|acos|atan|sinh|cosh|tanh|asinh|acosh|atanh|erf|erfc|gamma|lgamma|degrees|radians|fabs"
    r"|ceil|floor)\.Scalar|aten::(log|atan2|copysign|fmod)\.Scalar_Scalar|aten::(atan2|copysign|fmod)\.": "truncates a value that is declared as Scalar to 32 bits; the value does not show how it was declared",
    r".*\.(Dict_Tensor|Tensor_dict|.*\(Tensor\)).*|aten::(popitem|pop|keys|values|items|get|setdefault|update|copy|clear|len|Delete|_set_item"
    r"|__contains__|__getitem__|dict)\.([a-zA-Z_]*_)?Tensor(_.*)?": "dictionaries whose keys are tensors, which are compared by identity: a generated call cannot pass the same tensor",
    r"aten::(eq|ne)\.enum|aten::wait\..*": "needs a value that a generated call cannot pass; programs of the corpus have it",
    r"aten::(format|percentFormat|einsum)\.(sublist)?|prim::(Print|tolist|TupleUnpack|ConstantChunk|AutogradAnyNonZero)\.": "accepts any number of arguments; programs of the corpus call it",
    r"aten::(is_grad_enabled|set_grad_enabled|warn)\.|prim::(AutogradZero|grad)\.": "affects gradients or messages, not values",
    r"aten::(eq|ne)\.": "torch has no kernel for two numbers of different types; the compiler never writes such a call",
    r"aten::(linalg_)?svd\..*": "vectors with either sign are correct",
    r"aten::set_\.(source_.*)": "assigns memory to a tensor that does not own it, which no program of a model does",
    r"aten::len\.any|aten::to\.prim_.*|aten::pow\.int_to_int": "a graph selects another overload with the same types",
    r"aten::(Int|angle|gamma|lgamma|neg)\.Scalar|prim::abs\.Scalar|aten::pow\.Scalar_Scalar": "depends on whether a value is declared as Scalar, which the value does not show",
    r"aten::(max|min)\.unary_out|aten::binary_cross_entropy\.out|aten::(std|var)\.(correction_)?out|aten::addbmm\.out|aten::(all|any)\.(dims_|all_)?out|aten::arange\.start_out|aten::native_layer_norm\.out|aten::_native_batch_norm_legit\..*out|aten::_reshape_alias\.|aten::bincount\.out|aten::pow\.Scalar_out|aten::_(log_)?softmax\.out|aten::(_unique2?|unique_consecutive)\.out": "with out=, accepts calls that the form without out= refuses, or writes less than that form returns",
    r"aten::(mm|bmm|addmm|baddbmm)\.dtype(_out)?|aten::(unsafe_split.*|_pack_padded_sequence|native_batch_norm|_embedding_bag.*)\..*out": "torch refuses every generated call, or reads the previous contents of out=",
    r"aten::_stack\..*": "torch reads a view with gaps as if it were contiguous; stack, which programs use, does not",
    r"aten::gelu\.out": "torch does not write to out= if out= is a view with gaps",
    r"aten::values\.": "defined only for sparse tensors",
    r"aten::divmod\.(int_float|float_int)": "torch converts the integer to 32 bits",
    r"aten::pow\.(complex.*|.*_complex)": "C++ computes powers of complex numbers from logarithms",
    r"aten::log\.(complex_.*|.*_complex)": "C++ divides the two logarithms with different rounding",
    r"aten::sum\.complex": "torch empties the list that it sums",
    r"aten::chr\.|aten::device\.(with_index)?": "the call succeeds, but torch refuses to return the result to Python",
    r"aten::detach_\.|aten::pin_memory\.|aten::convolution_overrideable\..*": "needs something that a test cannot provide: a tensor that is not a view, an accelerator, another backend",
}


class Disagreement(AssertionError):  # noqa: N818 - it is no error of the program
    """Torch and the reference reader disagree.

    Attributes:
        request: the call, if there is one.
    """

    request: dict[str, Any] | None = None


class Outcome:
    """Results of the calls of one overload.

    Attributes:
        counts: ``compared``: both returned a value; ``refused``: neither did; ``unsupported``: torch returned a value, and the reader does
            not support the call; ``UNWRITTEN``: as ``unsupported``, and torch's value depends on uninitialized memory; ``crashed``: torch
            died; ``DRAWN``; a key of ``MORE``: torch rejects the call, the reader does not, and why that is allowed; ``OPEN``.
        said: the reader's messages about unsupported calls.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.said: dict[str, str] = {}


def overloads(release: Release) -> list[dict[str, Any]]:
    """The schemas of every operator in the reference reader, as reported by that release."""
    kinds = known()
    return [prepared(schema, set(kinds[schema["name"]])) for schema in release.ask({"schemas": sorted(kinds)})]


def full_name(schema: dict[str, Any]) -> str:
    """``aten::add.Tensor``."""
    return f"{schema['name']}.{schema['overload']}"


def exclusion(schema: dict[str, Any]) -> str | None:
    """Why an overload is excluded, or None."""
    return next((reason for pattern, reason in EXCLUDED.items() if re.fullmatch(pattern, full_name(schema))), None)


SIZES = {"float16": 2, "bfloat16": 2, "float64": 8, "complex128": 8}  # the rest is computed in the default dtype


def smallest(value: Any) -> int:
    """Bytes of the smallest floating-point type in a request."""
    if isinstance(value, dict):
        if isinstance(value.get("tensor"), dict) and "bytes" in value["tensor"]:
            return SIZES.get(value["tensor"]["dtype"], 4)
        if isinstance(value.get("dtype"), str):
            return SIZES.get(value["dtype"], 4)
        return min((smallest(item) for item in value.values()), default=8)
    if isinstance(value, list):
        return min((smallest(item) for item in value), default=8)
    return 8


def largest(value: Any) -> float:
    """The largest number in its tensors."""
    if isinstance(value, dict):
        if isinstance(value.get("tensor"), dict) and "bytes" in value["tensor"]:
            array = decode(value, {}).array
            with np.errstate(all="ignore"):
                size = np.abs(array.astype(np.complex128) if array.dtype.kind == "c" else array.astype(np.float64))
            return float(np.max(size, initial=0.0, where=np.isfinite(size)))
        return max((largest(item) for item in value.values()), default=0.0)
    if isinstance(value, list):
        return max((largest(item) for item in value), default=0.0)
    return 0.0


def groups(schemas: list[dict[str, Any]], count: int) -> list[list[dict[str, Any]]]:
    """Split the schemas into groups; the schemas of an operator stay together."""
    results: list[list[dict[str, Any]]] = [[] for _ in range(count)]
    names = sorted({schema["name"] for schema in schemas})
    place = {name: at % count for at, name in enumerate(names)}
    for schema in schemas:
        results[place[schema["name"]]].append(schema)
    return results


# Operators of which programs read only the first result; the others are saved for gradients, in forms that change.
FIRST = re.compile("embedding_bag|eigh$|symeig")
# Results that are saved for gradients; releases up to 1.x leave them unwritten or undefined.
BUFFERS = re.compile("log_sigmoid_forward|native_batch_norm|native_layer_norm|nll_loss.*_forward|embedding_bag|eigh$|symeig")
LOGARITHMS = Version("1.11.0")
"""Older releases compute logsigmoid as the logarithm of a sum near one, which is rounded."""
LESS_ONE = Version("2.8.0")
"""Older releases subtract one from a power in celu and multiply the difference, including its rounding error, by alpha."""
PUBLIC = Version("2.0.0")
ORDERED = Version("1.4.0")
"""In older releases, a dictionary that is returned to Python has the order of a hash table."""

# Operators for which the sign of a zero is unspecified, by pattern of the overload's full name; other values are compared as usual.
ZEROS: dict[str, str] = {
    r"aten::(fmax|fmin)\..*": "C does not specify which of two zeros fmax and fmin return: it depends on the dtype, the release and the size",
    r"aten::(maximum|minimum|clamp(_m(ax|in))?_?)\..*|aten::(max|min)\.(other|out)|aten::(max|min|amax|amin|aminmax)\.(out|unary_out)?": "of two zeros, vectorized code returns a different one than the scalar code for the remaining elements",
    r"aten::(nan)?median\.(out)?": "which of several equal numbers is the median depends on the search algorithm",
    r"aten::softshrink\..*": "a value that becomes zero keeps its sign in the scalar code for the remaining elements, but not in vectorized code",
}

# Computed in the element dtype from a matrix that amplifies rounding errors (see `sensitivity`).
SENSITIVE = re.compile("pinv|cholesky|matrix_exp|^(linalg_)?inv(erse|_ex)?$")
CANCELLED = re.compile("[cs]?elu_?")
"""One is subtracted from an exponential, so one unit in its last place is several units in the last place of the result."""
RANDOM = "does not support random numbers"
DRAWN = "random numbers, which differ in every call"
OPEN = "undecided: for a singular matrix, the result depends on how a zero is rounded"


def sensitivity(request: dict[str, Any]) -> float:
    """How much rounding errors of a matrix grow in its inverse or root: the ratio of singular values times the size of the result.

    For an exponential: the size of the matrix times a bound of the result's size, by the largest eigenvalue of its Hermitian part. For an
    inverse, singular values close to zero are ignored, as torch cuts them off, too. The result is infinite where they matter: if the given
    limit is far below the rounding errors, and for a root, which reads one triangle of the matrix.
    """
    matrix = decode(request["args"][0], {}).array
    if matrix.ndim < 2 or not matrix.size or matrix.dtype.kind not in "fc":
        return 0.0
    whole = matrix.astype(np.complex128 if matrix.dtype.kind == "c" else np.float64)
    if "matrix_exp" in request["name"]:
        return _of_exponential(whole)
    root = "cholesky" in request["name"]
    if root and matrix.shape[-1] != matrix.shape[-2]:
        return 0.0
    halves = [np.tril(whole), np.swapaxes(np.triu(whole), -1, -2)] if root else [whole]
    worst = 0.0
    for half in halves:
        full = half + np.swapaxes(np.tril(half, -1), -1, -2).conj() if root else half
        sizes = np.linalg.svd(full, compute_uv=False)
        for item in sizes.reshape(-1, sizes.shape[-1]):
            counts = item > 64 * np.finfo(matrix.dtype).eps * item[0]
            if not counts.all() and item[0] and (root or {"float": "1e-15"} in request["args"]):
                return math.inf
            if counts.any():
                worst = max(worst, float(item[0] / item[counts][-1] * (math.sqrt(item[0]) if root else 1 / item[counts][-1])))
    return worst


def _of_exponential(matrices: np.ndarray[Any, Any]) -> float:
    if matrices.shape[-1] != matrices.shape[-2] or not np.isfinite(matrices).all():
        return 0.0
    growth = np.linalg.eigvalsh((matrices + np.swapaxes(matrices, -1, -2).conj()) / 2)[..., -1]
    with np.errstate(over="ignore"):
        worst = float(np.max(np.linalg.norm(matrices, 2, axis=(-2, -1)) * np.exp(growth)))
    return worst if math.isfinite(worst) else 0.0  # beyond the largest number nothing is rounded


# Calls that torch rejects and the reader computes: allowed, and counted. A program that torch rejects because of its tensor dtypes has no
# result in any release, so the reader's result cannot be wrong for anyone. This does not hold for shapes and ranges.
MORE: dict[str, str] = {
    "only torch refuses: an internal assertion": r"INTERNAL ASSERT",
    "only torch refuses: strides that its kernel cannot view": r"view size is not compatible",
    "only torch refuses: no kernel for the dtype": r"not implemented for '|Low precision dtypes|doesn't handle types|not supported (for|on)|not yet implemented for complex"
    r"|(does not|doesn't|not intended to) support|[Oo]nly supports? |complex|Unsupported dtype|on a bool tensor",
    "only torch refuses: out= with another dtype": r"[Oo]ut(put)? tensor|out tensor|result type|indices output|argument #\d 'indices'|the output given to",
    "only torch refuses: operands with different dtypes": r"(same|expected|inputs?|different|equal|Float|mismatched|unlike|m1 and m2).* d?type|scalar[ _]type|[Ff]ound dtype"
    r"|dtype of the input|has dtype|same data type|dtype double and|dtype must match|must share same datatype|Expected a long tensor|floating.point( and complex)? dtype",
}


# Calls that torch rejects because they are made from Python with the result passed to Python: no program is affected. Such calls are not
# compared, and are counted by reason.
BY_ASKING: dict[str, str] = {
    "arguments that no graph with these types accepts": r"f\(\) Expected a value of type",
    "an undefined tensor, which a graph cannot return": r"undefined Tensor|tensor does not have a device|UndefinedTensorImpl",
    "a string that is not valid UTF-8, which Python does not receive": r"UnicodeDecodeError",
    "a nested tensor, which a graph cannot return": r"NestedTensorImpl doesn't support sizes",
    "a graph that the compiler never makes from a program": r"kind_\.is_prim\(\) INTERNAL ASSERT|We don't have an op for aten::view but",
    "pinned memory, which needs CUDA": r"pin_memory allocator|NVIDIA driver|CUDA_LAUNCH_BLOCKING",
    "a list of bools, which 1.2 receives from Python as an untyped list": r"isBoolList\(\) INTERNAL ASSERT|Unexpected list type",
}


APART = ("values", "only torch refuses", "only the reader refuses", "the reader fails")
FILLED = (0xC4, 0x3B)
"""Byte values that fill a release's new memory: large negative and small positive numbers of every dtype, and both truth values."""
UNWRITTEN = "uninitialized memory: the release returns another result if its new memory holds other bytes"


def asked_again(release: Release, request: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Whether a release gives the same result if its new memory holds other bytes (``FILLED``); False if it crashes."""
    return bool(release.ask({**request, "fill": FILLED[1]}) == theirs)


def judged(release: Release, schema: dict[str, Any], request: dict[str, Any]) -> tuple[str, str]:
    """Compare both results of a call: a word of ``Outcome.counts``, or one of ``APART`` with the difference."""
    theirs = release.ask({**request, "fill": FILLED[0]})
    if "unfilled" in theirs:  # no result of this release could be distinguished from one that depends on uninitialized memory
        raise RuntimeError(f"torch-{release.version}: {theirs['unfilled']}")
    if "no_input" in theirs:
        return "no such tensor", theirs["no_input"]
    if "crashed" in theirs:
        return "crashed", theirs["crashed"]
    word, message = compared(request, full_name(schema), release.version, dict(theirs), call_ours(request, release.version))
    if word == "unsupported" and not asked_again(release, request, theirs):
        return UNWRITTEN, message
    return word, message


def compared(request: dict[str, Any], full: str, release: str, theirs: dict[str, Any], ours: dict[str, Any]) -> tuple[str, str]:
    """How the result of the reference reader agrees with that of a release: as :func:`judged`.

    Parameters:
        full: the name of the operator with its overload.
        theirs: ``value`` and ``inputs`` as JSON, or ``error``.
        ours: the result of :func:`tools.differential.calls.call_ours`.
    """
    name = request["name"].split("::")[1]
    returned = sensitivity(request) if SENSITIVE.search(name) else 0.0
    if math.isinf(returned):
        return OPEN, ""
    if "error" in theirs:
        if "value" not in ours:
            return "refused", ""
        if by_asking := next((word for word, pattern in BY_ASKING.items() if re.search(pattern, theirs["error"])), ""):
            return by_asking, theirs["error"][:200]
        allowed = next((allowed for allowed, pattern in MORE.items() if re.search(pattern, theirs["error"])), "")
        return allowed or APART[1], f"torch refuses, the reader gives a value: {theirs['error'][:200]}"
    if ours.get("unsupported", "").startswith(FAULT):
        return APART[3], f"torch gives a value, the reader fails: {ours['unsupported'][:200]}"
    if RANDOM in ours.get("unsupported", ""):
        return DRAWN, ""
    if "unsupported" in ours:
        return "unsupported", ours["unsupported"][:160]
    if isinstance(theirs["value"], dict) and "other" in theirs["value"]:
        return "a result of a type that the tool cannot compare", f"a {theirs['value']['other']}"
    if "error" in ours:
        return APART[2], f"torch gives a value, the reader refuses: {ours['error'][:200]}"
    loose = Near(smallest(request), largest(request)) if gentle(name) or CANCELLED.fullmatch(name.split(".")[0]) else NONE
    if returned:
        loose = Near(loose.size, max(loose.scale, returned / 4))  # `CLOSE` covers about eight rounding errors
    if any(re.fullmatch(pattern, full) for pattern in ZEROS):
        loose = loose._replace(zeros=True)
    version = Version(release)
    if version < ORDERED:
        theirs = {key: _sorted(theirs[key]) for key in ("value", "inputs")}
        ours = {key: _sorted(ours[key]) for key in ("value", "inputs")}
    if (FIRST if version >= PUBLIC else BUFFERS).search(name) and "tuple" in (theirs["value"] or ()):
        theirs["value"], ours["value"] = {"tuple": theirs["value"]["tuple"][:1]}, ours["value"][:1]
        if outs := len(OUTS.intersection(request.get("named", ()))):
            kept = len(theirs["inputs"]) - outs + 1
            theirs["inputs"], ours["inputs"] = theirs["inputs"][:kept], ours["inputs"][:kept]
    if "layer_norm" in name:  # for equal numbers, or a single one, only the rounding error remains, divided by the root of eps
        loose = Near(loose.size, 316 * max(loose.scale, 1.0))
    if "_polynomial_" in name:  # high degrees are computed from angles, whose rounding error is multiplied by the degree
        degree = max((abs(item) for item in map(_number, request["args"]) if math.isfinite(item)), default=0.0)
        loose = Near(loose.size, (16 + min(degree, 1024)) * max(loose.scale, 1.0))
    if "log_sigmoid" in name and version < LOGARITHMS:
        loose = Near(4, 1.0)
    if "celu" in name and version < LESS_ONE:
        loose = Near(smallest(request), max(1.0, *(abs(item) for item in map(_number, request["args"]) if math.isfinite(item))))
    if request.get("graph"):  # which converts a tensor to a number where the schema has a number
        ours["inputs"] = [
            int(mine.array.item()) if its.__class__ is int and mine.__class__ is Tensor and mine.array.size == 1 else mine
            for mine, its in zip(ours["inputs"], [*theirs["inputs"], *[None] * len(ours["inputs"])], strict=False)
        ]
    apart = difference(theirs["value"], ours["value"], loose=loose)
    apart = apart or difference(theirs["inputs"], ours["inputs"], "inputs", loose=loose)
    return ("compared", "") if apart is None else (APART[0], apart[:600])


def _number(value: Any) -> float:
    """An argument that is a number; 0 for every other."""
    if isinstance(value, dict) and "float" in value:
        return float(value["float"])
    return float(value) if isinstance(value, int | float) else 0.0


def _sorted(value: Any) -> Any:
    """A value, or one of torch as JSON, with its dictionaries in the order of their keys."""
    if isinstance(value, list | tuple):
        return type(value)(map(_sorted, value))
    if isinstance(value, dict) and isinstance(value.get("dict"), list):
        return {"dict": sorted(value["dict"], key=lambda pair: repr(_plain_key(pair[0])))}
    if isinstance(value, dict) and not value.keys() & KEYS_OF_JSON:
        return dict(sorted(value.items(), key=lambda pair: repr(pair[0])))
    return value


KEYS_OF_JSON = {"tensor", "tuple", "float", "complex", "dtype", "device", "other"}


def _plain_key(key: Any) -> Any:
    return float(key["float"]) if isinstance(key, dict) and "float" in key else key


def compare(release: Release, schema: dict[str, Any], count: int, start: int = 20200624) -> Outcome:
    """Generate calls of an overload and compare them.

    Raises:
        Disagreement: with the smallest failing call.
    """
    outcome = Outcome()

    @seed(start)
    @settings(
        max_examples=count, database=None, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate, Phase.shrink],
        report_multiple_bugs=False,
    )  # fmt: skip
    @given(calls(schema, spec_of(schema["name"])))
    def run(request: dict[str, Any]) -> None:
        word, message = judged(release, schema, request)
        if word in APART:
            raise Disagreement(message)
        outcome.counts[word] += 1
        if word == "unsupported":
            outcome.said.setdefault(word, f"{message} <- {shown(request)[:300]}")

    failed: list[dict[str, Any]] = []
    inner = run.hypothesis.inner_test  # type: ignore[attr-defined]

    def noted(request: dict[str, Any]) -> None:
        try:
            inner(request)
        except Disagreement:
            failed[:] = [request]
            raise

    run.hypothesis.inner_test = noted  # type: ignore[attr-defined]
    try:
        run()
    except Disagreement as error:
        error.request = failed[0]
        raise
    return outcome


def row_of(release: Release, schema: dict[str, Any], count: int, start: int) -> dict[str, Any]:
    """The result for an overload, as JSON: ``counts`` and ``said``, or a ``disagreement`` with the ``call``, or ``unwritable``."""
    row: dict[str, Any] = {"name": full_name(schema)}
    began = time.perf_counter()
    try:
        outcome = compare(release, schema, count, start)
        row |= {"counts": dict(outcome.counts), "said": outcome.said}
    except Unwritable as error:
        row["unwritable"] = str(error)
    except Disagreement as error:
        row |= {"disagreement": str(error), "call": shown(error.request or {}), "request": error.request}
    row["seconds"] = round(time.perf_counter() - began, 1)
    return row


def wrong(row: dict[str, Any]) -> str:
    """Why an overload does not count as compared; empty if it does."""
    message: str = row.get("disagreement") or row.get("unwritable") or ""
    if not message and not row["counts"].get("compared"):
        message = f"no value was compared: {row['counts']} {row['said']}"
    return message


def work(job: tuple[list[dict[str, Any]], int, int]) -> list[dict[str, Any]]:
    """Compare some overloads, with a separate torch process."""
    schemas, count, start = job
    release = Release(VERSION)
    rows = [row_of(release, schema, count, start) for schema in schemas]
    release.close()
    return rows
