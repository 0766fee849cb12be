"""Generates operator calls from schemas: arguments by type and name, mostly consistent with each other, and malformed ones.

Operators whose arguments depend on each other (a convolution's weight on its input) have their own strategy.
"""

from __future__ import annotations

import ast
import copy
import math
import re
from typing import TYPE_CHECKING, Any

from torch_compat.operators.call_signature import bare
from torch_compat.proving.values import COMPLEX, EVERY, FLOATS, HALVES, INTS, KINDS, PLAIN, Maker
from torch_compat.runtime import dtypes
from torch_compat.torchscript.parser import parse_expression

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Generic", "Unwritable", "bare", "gentle", "make_call", "prepared", "read"]

# Operators whose results depend on summation order, or that solve equations: only ordinary numbers, whose sums are (nearly) exact.
GENTLE = {
    "mm", "bmm", "matmul", "addmm", "baddbmm", "addbmm", "linear", "conv", "convolution", "mean", "var", "std", "norm", "sum", "nansum", "cumsum",
    "cumprod", "prod", "einsum", "tensordot", "inner", "dot", "mv", "addmv", "dist", "loss", "pool", "upsample", "grid_sampler", "cdist", "lstm",
    "gru", "rnn", "softmax", "linalg", "inverse", "det", "cholesky", "solve", "cosine", "pairwise", "bilinear", "attention", "kl_div", "renorm",
    "entropy", "logsumexp", "embedding", "outer", "vdot", "chain", "histc", "quantile", "lerp", "addcmul", "addcdiv", "polar", "kron", "trace",
    "unfold", "col2im", "fft", "pinverse", "svd", "qr", "eig", "matrix", "logcumsumexp", "digamma", "lgamma", "erfinv", "affine", "logaddexp",
    "addr", "sinc", "fold", "diff", "bincount", "pdist", "i0", "index_add", "scatter", "put", "interpolate", "transformer", "cross", "ger",
    "gcd", "lcm", "polygamma", "cov", "psi", "gelu", "ldexp", "aminmax", "unique", "searchsorted", "bucketize", "window", "linspace", "logspace", "sdp",
    "lstsq", "lu_unpack", "lu_with_info", "householder", "zeta", "bessel", "airy", "polynomial", "multigammaln",
}  # fmt: skip


def gentle(name: str) -> bool:
    """Whether an operator gets only ordinary numbers, and its results are compared approximately."""
    return any(part in name for part in GENTLE)


class Unwritable(Exception):  # noqa: N818
    """There is no generator for an argument of this type."""


# ------------------------------------------------------------------------------------------------------------------ types


Kind = tuple[str, tuple[Any, ...]]


def read(text: str) -> Kind:
    """Parse a type such as ``List[Optional[Tensor]]`` into a tree."""
    if text.endswith("?"):
        return "Optional", (read(text[:-1]),)
    if text.endswith("[]"):
        return "List", (read(text[:-2]),)

    def walk(node: ast.expr) -> Kind:
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return node.value.id, tuple(walk(item) for item in inner)
        if isinstance(node, ast.Name):
            return node.id, ()
        raise Unwritable(f"a type {text}")

    return walk(parse_expression(text))


NAMES = {"number": "Scalar", "ScalarType": "int", "Layout": "int", "MemoryFormat": "int", "SymInt": "int"}


def in_graph(kind: Kind) -> str:
    """Return the type in the syntax of graphs."""
    head, inner = kind
    if head == "List":
        return in_graph(inner[0]) + "[]"
    if head == "Optional":
        return in_graph(inner[0]) + "?"
    if head == "Dict":
        return f"Dict({in_graph(inner[0])}, {in_graph(inner[1])})"
    if head == "Tuple":
        return f"({', '.join(map(in_graph, inner))})"
    return NAMES.get(head, head)


def filled(kind: Kind, variables: dict[str, str]) -> Kind:
    """Return the type with its variables, such as ``t``, substituted."""
    head, inner = kind
    return (variables.get(head, head), tuple(filled(item, variables) for item in inner))


OPTIONS: dict[str, tuple[str, ...]] = {
    "rounding_mode": ("trunc", "floor"),
    "approximate": ("none", "tanh"),
    "padding_side": ("right", "left"),
    "reduce": ("sum", "prod", "amax", "amin", "mean"),
    "indexing": ("ij", "xy"),
    "norm": ("backward", "ortho", "forward"),
    "interpolation": ("linear", "lower", "higher", "midpoint", "nearest"),
    "side": ("left", "right"),
    "UPLO": ("L", "U"),
    "ord": ("fro", "nuc"),
    "assert_msg": ("zero", ""),
}
NEVER = {"Generator", "Stream", "Storage", "AnyEnumType", "Future", "Any"}


class Generic:
    """Generates arguments by type and name, mostly with broadcastable shapes and matching types."""

    def __init__(self, make: Maker, schema: dict[str, Any]) -> None:
        self.make = make
        self.schema = schema
        self.name = make.name
        self.shape = make.shape()
        whole = re.fullmatch("bitwise_.*|gcd|lcm", make.name)
        kinds: tuple[str, ...] = (*INTS[:2:-1], *INTS[:3]) if whole else KINDS
        if re.search("pow|logcumsumexp", make.name):  # C++ computes complex powers with logarithms, and treats zero specially
            kinds = tuple(kind for kind in KINDS if kind not in COMPLEX)
        self.kind: str = make.pick(kinds)
        self.same = make.often()
        self.first = True
        self.whole: Any = None  # the first tensor

    def value(self, kind: Kind, own: str) -> Any:
        """Return a value for an argument of this type and name."""
        make, ndim = self.make, len(self.shape)
        head, inner = kind
        if head == "Optional":
            if inner[0][0] in NEVER | {"Layout", "MemoryFormat"}:
                return None
            return self.value(inner[0], own) if make.integer(0, 2) else None
        if head in NEVER:
            raise Unwritable(head)
        if head == "Tensor":
            return self._tensor(own)
        if head == "List":
            return self._list(inner[0], own)
        if head == "Dict":
            count = make.integer(0, 3)
            keys = {repr(key): key for key in (self.value(inner[0], "key") for _ in range(count))}
            return {"dict": [[key, self.value(inner[1], own)] for key in keys.values()]}
        if head == "Tuple":
            return {"tuple": [self.value(item, own) for item in inner]}
        if head == "number":
            if re.fullmatch("bitwise_(and|or|xor)", make.name):
                return make.integer(-3, 9)
            return make.number()
        if head == "bool":
            return make.flag()
        if head == "float":
            return make.real()
        if head == "complex":
            return {"complex": [repr(make.pick(PLAIN)), repr(make.pick(PLAIN))]}
        if head == "ScalarType":
            return {"dtype": make.pick((*FLOATS, *INTS[:2:-1], "bool", *HALVES, *INTS[:1]))}
        if head in {"Layout", "MemoryFormat"}:
            return 0
        if head in {"int", "SymInt"}:
            if own == "reduction":
                return make.integer(0, 2)
            if own.startswith("dim") or own in {"axis", "start_dim", "end_dim", "source", "destination"}:
                return make.integer(-ndim - 1, ndim) if make.integer(0, 3) == 0 else make.integer(-ndim, max(ndim - 1, 0))
            if own in {"a", "b", "x", "y", "self", "other", "i", "el", "key", "default_value"} and not self.schema["tensors"]:
                return make.pick((1, 0, 2, -1, 3, -3, 7, 10, 63, 64, -64, 255, 2**31, 2**62, -(2**63), 2**63 - 1))
            return make.integer(-2, 4)
        if head == "str":
            if own in OPTIONS:
                return make.pick(OPTIONS[own])
            if self.schema["tensors"]:
                raise Unwritable(f"{own}: str")
            return make.text()
        if head == "Device":
            return {"device": "cpu"}
        raise Unwritable(f"{own}: {head}")

    def _tensor(self, own: str) -> Any:
        make = self.make
        if own in {"index", "indices"}:
            return make.tensor(self.shape, "int64", low=-1, high=3)
        if own in {"mask", "condition"}:
            return make.tensor(self.shape if make.often() else make.shape(), "bool")
        if self.whole is not None and make.integer(0, 9) == 0:
            return self.whole  # the same memory
        kind = self.kind if self.same or self.first else make.pick(EVERY)
        here = self.shape
        if not self.first and not self.same:
            here = make.pick((here, here, (), here[-1:], (1,) * len(here), make.shape()))
        self.first = False
        result = make.tensor(here, kind)
        self.whole = self.whole or result
        return result

    def _list(self, inner: Kind, own: str) -> Any:
        make, ndim = self.make, len(self.shape)
        if inner[0] == "Tensor":
            return [self._tensor(own) for _ in range(make.integer(1, 3))]
        if inner[0] == "int" and self.schema["tensors"]:
            if own.startswith("dim"):
                return self.make.source.some(-ndim, max(ndim - 1, 0), 0, max(ndim, 1))
            if own in {"size", "shape"}:
                here = self.shape
                return list(make.pick([here, (-1,), (math.prod(here),), (1, *here), (2, -1), (*here, 1), here[::-1]]))
            return make.integers(make.integer(1, max(ndim, 1)), 0, 3)
        return [self.value(inner, own) for _ in range(make.integer(0, 3))]


# ------------------------------------------------------------------------------------------------------------------ calls


def is_graph(schema: dict[str, Any]) -> bool:
    """Whether its calls must be made in a graph, because Python bindings lack it or interpret its arguments differently."""
    if not schema["name"].startswith("aten::") or "prim" in schema["overload"]:
        return True
    first = schema["arguments"][0]["real"] if schema["arguments"] else ""
    kinds = " ".join([*(argument["real"] for argument in schema["arguments"]), *schema["returns"]])
    return (
        "Tensor" not in kinds or first.startswith(("List[t]", "Dict")) or "AnyEnum" in kinds or schema["listed"] or "[t]" in kinds
    )


def prepared(schema: dict[str, Any], kinds: set[str]) -> dict[str, Any]:
    """Return the schema with the information on how to call it.

    Parameters:
        schema: as reported by the release.
        kinds: the kinds of first arguments for which the reference reader implements the operator.
    """
    first = schema["arguments"][0]["real"] if schema["arguments"] else ""
    listed = first == "List[Tensor]" and "list" in kinds
    tensors = any("Tensor" in argument["real"] for argument in schema["arguments"]) or any(
        "Tensor" in item for item in schema["returns"]
    )
    schema = {**schema, "listed": listed, "tensors": tensors}
    schema["graph"] = is_graph(schema)
    return schema


def make_call(
    make: Maker, schema: dict[str, Any], spec: Callable[[Maker, dict[str, Any]], dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Make a call of an overload: ``{"name", "overload", "args", "keywords"}``, and ``graph`` if it must be made in a graph.

    Parameters:
        schema: as returned by :func:`prepared`.
        spec: generates arguments that depend on each other.

    Raises:
        Unwritable: there is no generator for one of its arguments.
    """
    name = schema["name"].split("::")[1]
    special = spec(make, schema) if spec is not None else {}
    generic = Generic(make, schema)
    variables: dict[str, str] = {}
    if schema["graph"]:
        kinds_of = ("int", "float", "bool") if name in {"tensor", "as_tensor"} else ("int", "float", "str", "bool")
        variables = {item: make.pick(kinds_of) for item in ("t", "tVal")}
        if "variables" in special:
            variables.update(special.pop("variables"))
    args: list[Any] = []
    keywords: dict[str, Any] = {}
    named: list[str] = []
    kinds: list[str] = []
    skipping = False
    for argument in schema["arguments"]:
        own = argument["name"]
        kind = filled(read(argument["real"]), variables)
        if own in special:
            value = special[own]
            if "Dimname" in argument["real"] and not isinstance(value, str):
                raise Unwritable("a dimension name")
            if skipping and not argument["keyword"]:
                continue
        elif argument["out"]:
            shape = generic.shape if spec is None and make.flag() else (0,)
            value = make.tensor(shape, _out_kind(own, schema, special, generic), low=0, high=0)
        else:
            if argument["default"] and not schema["graph"]:
                if not argument["keyword"] and not skipping:
                    skipping = make.integer(0, 2) == 0 or spec is not None
                if (skipping and not argument["keyword"]) or (argument["keyword"] and make.flag()):
                    continue
            value = generic.value(kind, own)
        kinds.append(in_graph(kind))
        if schema["graph"]:
            args.append(_plain(value))
            if argument["keyword"]:
                named.append(own)
        elif argument["keyword"]:
            keywords[own] = value
        else:
            args.append(value)
    request: dict[str, Any] = {"name": schema["name"], "overload": schema["overload"], "args": args, "keywords": keywords}
    if schema["graph"]:
        request["graph"] = _graph(schema, kinds, variables)
        request["named"] = named
    if "seeded" in schema:
        request["seed"] = make.integer(0, 2**31)
    if spec is not None and not UNCHECKED.search(name) and make.integer(0, 4) == 0:
        request = _malformed(
            make, request, [item["name"] for item in schema["arguments"] if schema["graph"] or not item["keyword"]]
        )
    return request


PLACES = {"indices", "min_indices", "max_values", "exponent", "pivots", "info", "rank"}
NARROW = {"exponent", "pivots", "info"}
BOOLS = re.compile(r"is(nan|inf|posinf|neginf)|signbit|all|any|eq|ne|[lg][te]|not_equal|(less|greater)(_equal)?|logical_.*")


def _out_kind(own: str, schema: dict[str, Any], special: dict[str, Any], generic: Generic) -> str:
    """Return the most likely dtype of a result: most operators refuse others for ``out``."""
    name = schema["name"].split("::")[1]
    if own in PLACES or re.fullmatch(
        "(searchsorted|bucketize|argm.*|argsort|count_nonzero|tri[lu]_indices|nonzero|linalg_matrix_rank)", name
    ):
        return "int32" if own in NARROW else "int64"
    if BOOLS.fullmatch(name):
        return "bool"
    if name == "float_power":
        return "float64"
    if name in {"fft_fftfreq", "fft_rfftfreq"}:
        return "float32"
    for value in special.values():
        if isinstance(value, dict) and "tensor" in value:
            kind: str = value["tensor"]["dtype"]
            if name.startswith("fft_"):
                double = kind in {"float64", "complex128"}
                real = name in {"fft_irfft", "fft_irfftn", "fft_irfft2", "fft_hfft", "fft_hfft2", "fft_hfftn"}
                return ("float64" if double else "float32") if real else "complex128" if double else "complex64"
            if name in {"polar", "complex"}:
                return "complex64" if kind == "float32" else "complex128"
            return kind
        if isinstance(value, list) and value and isinstance(value[0], dict) and "tensor" in value[0]:
            result: str = value[0]["tensor"]["dtype"]
            return result
    return generic.kind


def _plain(value: Any) -> Any:
    """Convert a value for a graph, where dtypes are integers."""
    return dtypes.DTYPES[value["dtype"]].code if isinstance(value, dict) and "dtype" in value else value


def _graph(schema: dict[str, Any], kinds: list[str], variables: dict[str, str]) -> str:
    given = ", ".join(f"%a{at} : {kind}" for at, kind in enumerate(kinds))
    names = ", ".join(f"%a{at}" for at in range(len(kinds)))
    results = [in_graph(filled(read(item), variables)) for item in schema["returns"]]
    result = ", ".join(f"%r{at} : {kind}" for at, kind in enumerate(results))
    lines = [f"graph({given}):"]
    if results:
        lines.append(f"  {result} = {schema['name']}({names})")
    else:
        lines += [f"  {schema['name']}({names})", "  %r0 : None = prim::Constant()"]
        results = ["None"]
    whole, kind = "%r0", results[0]
    if len(results) > 1:
        whole, kind = "%r", f"({', '.join(results)})"
        lines.append(f"  %r : {kind} = prim::TupleConstruct({', '.join(f'%r{at}' for at in range(len(results)))})")
    inputs = f"({', '.join(kinds)})"
    lines.append(f"  %i : {inputs} = prim::TupleConstruct({names})")
    lines.append(f"  %o : ({kind}, {inputs}) = prim::TupleConstruct({whole}, %i)")
    return "\n".join([*lines, "  return (%o)", ""])


# Never called with malformed arguments: operators that torch.nn calls after checking everything itself, and those that return arbitrary
# results for invalid input (a decomposition of a singular matrix, indices of equal numbers), or do not terminate.
UNCHECKED = re.compile(
    "_native_multi_head_attention|_transformer_encoder_layer_fwd|^(lstm|gru|rnn_tanh|rnn_relu)(_cell)?$|logspace|upsample|interpolate|matrix_power|conv_tbc|max_unpool|kthvalue|topk|triplet_margin_loss|cosine_embedding_loss|_pad_circular|_scaled_dot|batch_norm|instance_norm|multi_margin|affine_grid|polygamma|qr$|scaled_dot|bilinear|pairwise|index_copy|diagonal_scatter|max_pool|binary_cross_entropy|^center$|^_adaptive_avg_pool[23]d$"
)
# The results for operands of two dtypes depend on their shapes and on the form of the call; models use one dtype.
ONE_TYPE = re.compile("conv|loss|entropy|_norm|attention|arange")
# Integer codes; for other values torch fails an assertion or reads out of bounds.
NAMED = {
    "reduction",
    "mode",
    "interpolation_mode",
    "padding_mode",
    "type1",
    "type2",
    "from_",
    "to",
    "dtype",
    "compute_mode",
    "mask_type",
    "a",
    "b",
    "sorted",
    "implicit",
}


def _malformed(make: Maker, request: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """Make one argument invalid: another shape, another dtype, out of range, or a list of another length."""
    request = copy.deepcopy(request)
    places: list[tuple[Any, Any]] = [(request["args"], at) for at in range(len(request["args"])) if names[at] not in NAMED]
    places += [(request["keywords"], name) for name in request["keywords"] if not name.startswith("out") and name not in NAMED]
    places = [(where, at) for where, at in places if _changeable(where[at])]
    if not places:
        return request
    where, at = make.pick(places)
    value = where[at]
    if isinstance(value, bool):
        where[at] = not value
    elif isinstance(value, int):
        where[at] = make.pick((-1, 0, 7, -7, 100))
    elif isinstance(value, list):
        fewer = value[:-1] if len(value) > 1 or not request.get("graph") else value
        negative = [-1 if isinstance(item, int) and not isinstance(item, bool) else item for item in value]
        where[at] = make.pick((fewer, [*value, value[-1]], negative))
    else:
        body = value["tensor"]
        shape = tuple(body["shape"])
        if make.flag() or ONE_TYPE.search(request["name"]):
            where[at] = make.tensor(
                make.pick((shape[1:], (1, *shape), (*shape, 1), shape[::-1], (0,), tuple(size + 1 for size in shape))),
                body["dtype"],
            )
        else:
            where[at] = make.tensor(shape, make.pick(EVERY))
    request["malformed"] = True
    return request


def _changeable(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, list) and bool(value)) or (isinstance(value, dict) and "tensor" in value)
