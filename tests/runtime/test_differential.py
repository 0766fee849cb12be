"""Every overload that the reference reader has, against torch 2.13.0: generated calls, and what both made of them.

``TORCH_COMPAT_DIFFERENTIAL`` says how many calls of each overload are made; a few unless told otherwise.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from harness.runtime.registry import known
from tests.runtime.calls import Release, Unwritable, call_ours, calls, difference

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION = "2.13.0"
EXAMPLES = int(os.environ.get("TORCH_COMPAT_DIFFERENTIAL", "5"))

# What these do is not in their results, or nobody promised it.
NOT_COMPARED = {
    "rand",
    "empty",
    "empty_like",
    "new_empty",
    "empty_strided",
    "resize_",
    "resize_as_",
    "set_",
    "requires_grad_",
    "stride",
    "is_contiguous",
}

FAMILIES = {
    "arithmetic": "add|sub|subtract|rsub|mul|multiply|div|divide|true_divide|floor_divide|remainder|fmod|pow|neg|negative|square|addcmul|addcdiv|lerp",
    "comparison": "eq|ne|lt|le|gt|ge|maximum|minimum|fmax|fmin|logical_.*|isnan|isinf|isfinite|signbit",
    "bitwise": "bitwise_.*|__(and|or|xor|lshift|rshift)__",
    "rounding": "ceil|floor|round|trunc|fix|frac|sign|sgn|clamp|clamp_min|clamp_max|copysign",
    "pointwise": "exp|exp2|expm1|log|log2|log10|log1p|sqrt|rsqrt|sin|cos|tan|asin|acos|atan|sinh|cosh|tanh|sigmoid|erf|erfc|atan2|hypot|reciprocal",
    "activations": "relu|relu6|hardtanh|leaky_relu|elu|selu|celu|threshold|hardshrink|softshrink|gelu|silu|hardswish|hardsigmoid|softmax|log_softmax",
    "reductions": "sum|mean|prod|amax|amin|argmax|argmin|all|any|cumsum|count_nonzero|logsumexp",
    "sorting": "sort|argsort|topk|kthvalue|median",
    "views": "view|reshape|select|slice|narrow|t|transpose|permute|unsqueeze|squeeze|expand|unbind|split|chunk|flatten|diagonal|unfold|movedim",
    "indexing": "index_select|gather|masked_fill|masked_select|nonzero|where|take|index_fill",
    "joining": "cat|stack|repeat|tile|flip|roll|rot90|diag|constant_pad_nd|hstack|vstack",
    "casting": "to|type_as|copy_|fill_|zero_|zeros_like|ones_like|full_like",
}


@pytest.fixture(scope="module")
def torch() -> Iterator[Release]:
    real = Release(VERSION)
    yield real
    real.close()


@pytest.mark.real_torch(VERSION)
@pytest.mark.parametrize("family", FAMILIES)
def test_same_as_torch(torch: Release, family: str) -> None:
    pattern = re.compile(f"aten::({FAMILIES[family]})_?")
    names = [
        name
        for name, kinds in known().items()
        if pattern.fullmatch(name) and "tensor" in kinds and name.removeprefix("aten::") not in NOT_COMPARED
    ]
    made = 0
    for schema in torch.ask({"schemas": names}):
        first = schema["arguments"][0]["real"] if schema["arguments"] else ""
        if first not in {"Tensor", "List[Tensor]"} or any(
            word in schema["overload"] for word in ("names", "dimname", "Dimname", "_t", "Stream")
        ):
            continue
        if schema["overload"].startswith("prim_"):
            continue  # called from Python, torch takes a bool for a dtype
        if first == "List[Tensor]" and "list" in known()[schema["name"]]:
            continue  # the list's own operator, not that of tensors
        try:
            strategy = calls(schema)
            made += _compare(torch, schema, strategy)
        except Unwritable:
            continue
    assert made >= EXAMPLES * len(names) // 2, f"{made} calls of {len(names)} operators: nothing was compared"


def _compare(torch: Release, schema: dict[str, Any], strategy: Any) -> int:
    made = 0

    @seed(20200624)
    @settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    @given(strategy)
    def run(request: dict[str, Any]) -> None:
        nonlocal made
        if _undefined(request):
            return
        theirs = torch.ask(request)
        ours = call_ours(request, VERSION)
        made += 1
        if "error" in theirs or "crashed" in theirs:
            # torch refuses more combinations of types than this reader, which no program of a corpus can tell: a program that
            # torch refuses has no result that could be wrong. What torch gives, however, has to be given.
            return
        assert "error" not in ours, f"{request}: torch gives a value, here it is refused: {ours['error']}"
        if "unsupported" in ours:
            made -= 1  # an overload that is missing, and says so
            return
        assert difference(theirs["value"], ours["value"]) is None, request
        assert difference(theirs["inputs"], ours["inputs"], "inputs") is None, request

    run()
    return made


def _undefined(request: dict[str, Any]) -> bool:
    """Division of integers by zero ends torch's process with a signal on some processors."""
    return any(part in request["name"] for part in ("div", "remainder", "fmod")) and any(
        isinstance(one, (int, bool)) and not one for one in request["args"]
    )
