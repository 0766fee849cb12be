"""Views of memory are created at one gate. No other code passes an archive's numbers to unchecked numpy functions."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GATE = "harness/torch_compat/arrays.py"
INSIDE = "harness/torch_compat/inside/"  # runs beside a real torch, with nothing of ours
SOURCES = sorted(
    path for path in ROOT.glob("harness/torch_compat/**/*.py") if path != ROOT / GATE and INSIDE not in path.as_posix()
)
DESCRIPTIONS = "harness/torch_compat/pickles/interpret.py"  # its arrays are descriptions of arrays; it does not know numpy
VIEWS = {
    "as_strided",
    "sliding_window_view",
    "frombuffer",
    "memmap",
    "fromfile",
    "repeat",
    "bincount",
    "diagonal",
    "diag",
    "diagflat",
    "trace",
    "tile",
    "setflags",
    "from_address",
}
# Where a dtype is made of something that is no constant, and why an archive has no say in it.
DTYPES = {
    ("harness/torch_compat/runtime/dtypes.py", "numpy"),  # our own table
    ("harness/torch_compat/runtime/operators/bitwise.py", "f'u{array.dtype.itemsize}'"),  # of an array that is there
    ("harness/torch_compat/runtime/operators/ranges.py", "step.dtype"),
    ("harness/torch_compat/runtime/operators/quantized.py", "row.numpy"),  # our own table
    ("harness/torch_compat/state/dtypes.py", "_SIGNS[byteorder] + PLAIN[dtype]"),  # our own table
    ("harness/torch_compat/state/dtypes.py", "getattr(ml_dtypes, dtype)"),  # a name of our own table
    ("harness/torch_compat/values/compare.py", "'<u2' if dtype == 'bfloat16' else _NUMPY.get(dtype, '|u1')"),  # our own table
}


def calls(tree: ast.AST) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def named(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def of_numpy(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node.value).split(".")[0] in {"np", "numpy"}


def offences(source: str, path: str) -> list[str]:
    """What a file does that only the gate may."""
    results = []
    for call in calls(ast.parse(source)):
        name = named(call.func)
        where = f"{path}:{call.lineno}"
        if of_numpy(call.func) and (name in VIEWS or name == "ndarray"):
            results.append(f"{where}: np.{name}()")
        if any(keyword.arg in {"strides", "buffer"} for keyword in call.keywords):
            results.append(f"{where}: {name}() with strides= or buffer=")
        if of_numpy(call.func) and name in {"dtype", "rec", "format_parser"} and call.args:
            argument = call.args[0]
            parts = [argument.body, argument.orelse] if isinstance(argument, ast.IfExp) else [argument]
            constant = all(isinstance(part, ast.Constant) or of_numpy(part) for part in parts)
            if not constant and (path, ast.unparse(argument)) not in DTYPES:
                results.append(f"{where}: np.{name}({ast.unparse(argument)})")
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Attribute)
            and node.attr in {"strides", "data", "shape", "dtype", "flags"}
            and isinstance(node.ctx, ast.Store)
        ):
            inner = ast.unparse(node.value)
            if inner.endswith(("array", "base", "view")) and path != DESCRIPTIONS:
                results.append(f"{path}:{node.lineno}: sets {inner}.{node.attr}")
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ",".join(item.name for item in node.names)
            if "stride_tricks" in module or "ctypeslib" in module:
                results.append(f"{path}:{node.lineno}: imports {module}")
    return results


def test_there_is_something_to_look_at() -> None:
    assert len(SOURCES) > 200


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_only_the_gate_makes_views(path: Path) -> None:
    assert offences(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix()) == []


@pytest.mark.parametrize(
    "line",
    [
        "np.ndarray(shape, dtype, base, offset, strides)",
        "np.ndarray(shape, dtype, buffer=data)",
        "np.frombuffer(data, dtype, count)",
        "np.lib.stride_tricks.as_strided(array, shape, strides)",
        "from numpy.lib.stride_tricks import as_strided",
        "np.repeat(array, counts)",
        "np.bincount(array)",
        "np.dtype({'names': names, 'offsets': offsets})",
        "np.dtype((base, shape))",
        "np.dtype(order + code)",
        "array.strides = strides",
        "self.array.shape = shape",
        "Tensor(x, strides=steps)",
    ],
)
def test_what_would_pass_the_gate_by_is_noticed(line: str) -> None:
    assert offences(line, "harness/torch_compat/state/convert.py")
