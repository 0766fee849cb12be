"""There is one table of dtypes. Everything else that the package knows about them is derived from it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from torch_compat.values.dtypes import ALIASES, CAFFE2, DTYPES, STORAGE_CLASSES

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
TABLE = "harness/torch_compat/values/dtypes.py"
INSIDE = "harness/torch_compat/inside/"  # runs beside a real torch, with nothing of ours
SOURCES = sorted(
    path for path in ROOT.glob("harness/torch_compat/**/*.py") if path != ROOT / TABLE and INSIDE not in path.as_posix()
)
MOST = 3  # dtypes in one literal; more are the beginning of a table
NAMES = {name: name for name in DTYPES} | STORAGE_CLASSES
WORDS = {row.word: row.name for row in DTYPES.values() if row.word}
# Literals with more of them, and why each is no table of what dtypes are.
ALLOWED = {
    ("runtime/dtypes.py", "_ORDER"): "in which order types of one category are promoted: what a release computes",
    ("runtime/dtypes.py", "_COMPLEX_OF"): "which complex type a promotion ends in: what a release computes",
    ("runtime/dtypes.py", "BOOL, UINT8, INT8, INT16, INT32, INT64"): "rows by the names that operators use in their code",
    ("runtime/dtypes.py", "FLOAT16, BFLOAT16, FLOAT32, FLOAT64"): "rows by the names that operators use in their code",
    ("runtime/operators/casting.py", "_casts"): "operators that exist for eight dtypes alone",
}


def dtypes_in(node: ast.AST) -> set[str]:
    """The dtypes that a literal names: as texts, as classes of storages, as words of c10, or as attributes of numpy."""
    results = set()
    for part in ast.walk(node):
        text = part.value if isinstance(part, ast.Constant) else part.attr if isinstance(part, ast.Attribute) else None
        if isinstance(text, str):
            known = NAMES.get(text) or WORDS.get(text) or CAFFE2.get(text) or ALIASES.get(text)
            results |= {known} if known else set()
    return results


def literals(source: str) -> Iterator[tuple[str, int, set[str]]]:
    """Each outermost literal with more than :data:`MOST` dtypes: where it stands, its line, its dtypes."""

    def walk(node: ast.AST, place: str) -> Iterator[tuple[str, int, set[str]]]:
        if isinstance(node, ast.Assign):
            place = ", ".join(ast.unparse(target).strip("()") for target in node.targets)
        elif isinstance(node, ast.AnnAssign):
            place = ast.unparse(node.target)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            place = node.name
        if place == "__all__":
            return
        if isinstance(node, ast.Dict | ast.Tuple | ast.List | ast.Set | ast.DictComp | ast.Match):
            result = dtypes_in(node)
            if len(result) > MOST:
                yield place, getattr(node, "lineno", 0), result
                return
        for child in ast.iter_child_nodes(node):
            yield from walk(child, place)

    yield from walk(ast.parse(source), "")


def test_there_is_something_to_look_at() -> None:
    assert len(SOURCES) > 200
    assert len(list(literals((ROOT / TABLE).read_text(encoding="utf-8")))) >= 1


def test_there_is_no_second_table_of_dtypes() -> None:
    met = set()
    wrong = []
    for path in SOURCES:
        name = path.relative_to(ROOT / "harness" / "torch_compat").as_posix()
        for place, line, result in literals(path.read_text(encoding="utf-8")):
            met.add((name, place))
            if (name, place) not in ALLOWED:
                wrong.append(f"{name}:{line}: {place} names {', '.join(sorted(result))}; derive it from {TABLE}")
    assert wrong == []
    assert met == ALLOWED.keys()


@pytest.mark.parametrize(
    "planted",
    [
        'SIZES = {"float16": 2, "float32": 4, "float64": 8, "int64": 8}',
        'NAMES = ["float16", "float32", "float64", "int64"]',
        'TABLE = (("float16", 5), ("float32", 6), ("float64", 7), ("int64", 4))',
        "ARRAYS = {5: np.float16, 6: np.float32, 7: np.float64, 4: np.int64}",
        'STORAGES = {"HalfStorage": 2, "FloatStorage": 4, "DoubleStorage": 8, "LongStorage": 8}',
        'WORDS = {"Half", "Float", "Double", "Long"}',
        'def f(x):\n    return {"FLOAT16": 2, "FLOAT": 4, "DOUBLE": 8, "INT64": 8}[x]',
        'Dtype: TypeAlias = Literal["float16", "bfloat16", "float32", "float64"]',
        'def f(x):\n    match x:\n        case "float16":\n            return 2\n        case "float32" | "int32":\n            return 4\n        case "float64":\n            return 8',
    ],
)
def test_a_second_table_would_be_noticed(planted: str) -> None:
    ((_, _, result),) = literals(planted)
    assert len(result) == 4


@pytest.mark.parametrize(
    "harmless", ['PAIR = ("float16", "bfloat16")', 'X = {"a": 1}', 'f("float16")\ng("float32", "int64", "int8")']
)
def test_a_few_names_are_no_table(harmless: str) -> None:
    assert list(literals(harmless)) == []
