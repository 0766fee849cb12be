"""Count things that should exist only once in the design: `python tools/house.py` prints the counts, `--check` fails above the limits.

The counts come from the syntax trees of the package and from the recorded files, not from a list maintained by hand. The description
of a count that cannot be exact says how it is counted. `--root DIR` counts in another checkout, such as that of an older commit.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

LONG = 600  # lines of a file that a reader can still overview
NOT_NOUNS = {"one", "found", "said", "made"}  # names that do not say what a variable contains
DTYPES = {
    "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128", "bool",
    "Byte", "Char", "Short", "Int", "Long", "Half", "Float", "Double", "BFloat16", "ComplexFloat", "ComplexDouble",
}  # fmt: skip
A_TABLE = 6  # dtypes in one literal
ALONE = ("inside/", "extension.py")
"""Files that run next to an old torch and cannot import the package, so they have to duplicate some of its code."""


SPANS_OF_DAYS = {"workspace.py"}
DTYPE_RULES = {"runtime/dtypes.py", "runtime/operators/casting.py"}  # which of two dtypes a computation has; which operators cast
EQUATIONS = {
    "runtime/operators/_products.py",
    "runtime/operators/einsum.py",
    "runtime/operators/linear_algebra.py",
}  # of einsum, whose equations contain an arrow, too
PYTHON = {"corpus/recipes.py", "report/explained.py"}  # the docstring of a rule; recipes and probes
DEFINITIONS = {"torchscript/parser.py", "torchscript/scanner.py"}  # of functions, whose results follow an arrow
_GRAMMAR = ("operators/schema_parser.py", "operators/schema_tokens.py")


@dataclass(frozen=True)
class Source:
    """A file of the package, with its path starting at the package."""

    name: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax tree."""
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of the tree."""
        return list(ast.walk(self.tree))

    @cached_property
    def strings(self) -> set[str]:
        """Its string literals, except for docstrings."""
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        docs = {id(node.body[0].value) for node in self.nodes if isinstance(node, documented) and _documented(node)}  # type: ignore[attr-defined]
        constants = (node for node in self.nodes if isinstance(node, ast.Constant) and id(node) not in docs)
        return {node.value for node in constants if isinstance(node.value, str)}

    def calls(self, *methods: str) -> Iterator[tuple[ast.Call, str]]:
        """Calls of methods with these names whose first argument is a string literal, with that string."""
        for node in self.nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in methods and node.args:
                first = node.args[0]
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    yield node, first.value

    @cached_property
    def imported(self) -> set[str]:
        """The modules that it imports, at any level and for any reason."""
        results: set[str] = set()
        for node in self.nodes:
            if isinstance(node, ast.Import):
                results.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
                results.add(node.module)
                results.update(f"{node.module}.{alias.name}" for alias in node.names)
        return results

    def dependencies(self, modules: Collection[str], own: str) -> set[str]:
        """The modules of the package that it imports, at any level and for any reason: also in functions and for type checking.

        ``from package import module`` depends on the module, and not on the package's own file, as no name of that file is used.
        """
        results: set[str] = set()
        for node in self.nodes:
            if isinstance(node, ast.Import):
                results.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                outer = own.split(".") if self.name.endswith("__init__.py") else own.split(".")[:-1]
                above = ".".join(outer[: len(outer) + 1 - node.level]) if node.level else ""
                module = ".".join(part for part in (above, node.module) if part)
                for alias in node.names:
                    inner = f"{module}.{alias.name}"
                    results.add(inner if inner in modules else module)
        return results.intersection(modules) - {own}


def _documented(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    first = node.body[0] if node.body else None
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)


def _by_package(names: Iterable[str]) -> list[str]:
    return sorted({"releases/" if name.startswith("releases/") else name for name in names})


class House:
    """A checkout."""

    def __init__(self, root: Path) -> None:
        self.root = root
        inner = root / "harness" / "torch_compat"
        self.package = inner if inner.is_dir() else root / "harness"
        self.sources = [
            Source(path.relative_to(self.package).as_posix(), path.read_text(encoding="utf-8"))
            for path in sorted(self.package.rglob("*.py"))
        ]
        self.ours = [source for source in self.sources if not source.name.startswith(ALONE)]

    # ------------------------------------------------------------------------------------------------------------ the spine

    def version_types(self) -> list[str]:
        """Files that parse the numbers of a version: with packaging.version, or by splitting a string at its dots. releases/ is one."""
        return _by_package(
            source.name for source in self.ours if "packaging.version" in source.imported or _splits_version(source)
        )

    def set_types(self) -> list[str]:
        """Files with a representation of a set of releases: a string with "..", or a class with a first and a last release. releases/ is one.

        The others have additional data: a recipe its text, a milestone its date, a waiver the release at which it ends.
        """
        return _by_package(
            [source.name for source in self.ours if _spans(source) and source.name not in SPANS_OF_DAYS]
            + [
                f"{source.name}: {name}"
                for source in self.ours
                for name in _with_ends(source)
                if source.name not in SPANS_OF_DAYS
            ]
        )

    def policy_loaders(self) -> list[str]:
        """Files that read TOML."""
        return [source.name for source in self.ours if "tomllib" in source.imported]

    def dtype_tables(self) -> list[str]:
        """Files with a literal that lists six dtypes or more, except for the type promotion rules in runtime/, which are not tables."""
        results: list[str] = []
        for source in self.ours:
            inner: set[int] = set()
            for node in source.nodes:
                if id(node) in inner or not isinstance(node, (ast.Dict, ast.Tuple, ast.List, ast.Set)):
                    continue
                texts = {part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)}
                words = {word for text in texts for word in re.split(r"[ .]", text)}
                if len(words & DTYPES) >= A_TABLE:
                    inner.update(id(part) for part in ast.walk(node))
                    results.append(source.name)
        return sorted(set(results) - DTYPE_RULES)

    def pickle_readers(self) -> list[str]:
        """Files that read pickles: with the standard library, or with a loop over opcodes."""
        return [
            source.name
            for source in self.ours
            if {"pickle", "_pickle", "pickletools"} & source.imported or {"BINPERSID", "opcode"} <= _names(source)
        ] + [source.name for source in self.ours if source.name == "pickles/machine.py"]

    def data_places(self) -> list[str]:
        """Files that know where packaged data is stored."""
        return [source.name for source in self.ours if any("_packaged" in text for text in source.strings)]

    # ------------------------------------------------------------------------------------------------------------ the house

    def cycles(self) -> list[str]:
        """Import cycles, at any time and for any reason."""
        prefix = self.package.name
        modules = {f"{prefix}.{_module(source.name)}".rstrip("."): source for source in self.sources}
        graph = {name: source.dependencies(modules.keys(), name) for name, source in modules.items()}
        return [", ".join(sorted(circle)) for circle in _circles(graph) if len(circle) > 1]

    def policy_tables(self) -> list[str]:
        """The tables allowed in a policy."""
        path = self.root / "policies" / "policy.schema.json"
        return sorted(json.loads(path.read_text(encoding="utf-8"))["properties"]) if path.is_file() else []

    def class_names(self) -> list[str]:
        """Class names used in two or more files."""
        where: dict[str, set[str]] = defaultdict(set)
        for source in self.ours:
            for node in source.tree.body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    where[node.name].add(source.name)
        return [f"{name}: {', '.join(sorted(files))}" for name, files in sorted(where.items()) if len(files) > 1]

    def variables(self) -> list[str]:
        """Variables and parameters whose names do not say what they contain; class fields are not counted."""
        results: list[str] = []
        for source in self.ours:
            fields = {
                id(statement.target)
                for node in source.nodes
                if isinstance(node, ast.ClassDef)
                for statement in node.body
                if isinstance(statement, ast.AnnAssign)
            }
            for node in source.nodes:
                name = node.arg if isinstance(node, ast.arg) else node.id if isinstance(node, ast.Name) else ""
                stored = isinstance(node, ast.arg) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
                if name in NOT_NOUNS and stored and id(node) not in fields:
                    results.append(f"{source.name}: {name}")
        return results

    def long_files(self) -> list[str]:
        """Files of more than 600 lines."""
        return [f"{source.name} ({lines})" for source in self.sources if (lines := source.text.count("\n")) > LONG]

    def schema_readers(self) -> list[str]:
        """Files that parse operator schemas: they search for the arrow. The files of the whole grammar count as one reader.

        Code that only needs the part before the first parenthesis, the operator's name, uses none of them.
        """
        results = {
            source.name
            for source in self.ours
            if any("->" in text for _, text in source.calls(*_SPLITS, *_SEARCHES)) or _patterns(source, "->")
        }
        return sorted({_GRAMMAR[0] if name in _GRAMMAR else name for name in results - EQUATIONS - DEFINITIONS})

    def program_readers(self) -> list[str]:
        """Files that parse TorchScript text: with ast, with patterns for its lines, or by its keyword for a function.

        Files that parse Python source with ast are not counted, and neither is the grammar of schemas, which contains the reserved words.
        """
        return [
            source.name
            for source in self.ours
            if source.name not in PYTHON | {*_GRAMMAR}
            and (
                "ast.parse" in _dotted(source) | source.imported
                or "tokenize" in source.imported
                or _patterns(source, "def ", "class ")
                or any(text.strip() == "def" for text in source.strings)
            )
        ]

    # --------------------------------------------------------------------------------------------------------------- sizes

    def recorded(self) -> tuple[int, int]:
        """Bytes and lines of manifests, goldens and observations."""
        files = [
            *self.root.glob("fixtures/*/manifest.jsonl"), *self.root.glob("fixtures/*/goldens.jsonl"),
            *self.root.glob("reports/observations/*.jsonl"), *self.root.glob("reports/observations/*.txt"),
        ]  # fmt: skip
        data = [path.read_bytes() for path in files]
        return sum(map(len, data)), sum(byte.count(b"\n") for byte in data)

    def lines(self) -> int:
        """Lines of the package."""
        return sum(source.text.count("\n") for source in self.sources)


_SPLITS = ("split", "rsplit", "partition", "rpartition")
_SEARCHES = ("find", "rfind", "index", "rindex", "startswith", "removeprefix")


def _splits_version(source: Source) -> bool:
    """Whether it splits a string at dots and converts the parts to numbers."""
    for node in source.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"int", "map", "tuple", "list"}:
            has_int = node.func.id == "int" or any(isinstance(part, ast.Name) and part.id == "int" for part in ast.walk(node))
            splits = any(
                isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _SPLITS
                and part.args and isinstance(part.args[0], ast.Constant) and part.args[0].value == "."
                for part in ast.walk(node)
            )  # fmt: skip
            if has_int and splits:
                return True
    return False


def _spans(source: Source) -> bool:
    if any(text == ".." for _, text in source.calls(*_SPLITS)):
        return True
    return any(
        isinstance(node, ast.JoinedStr)
        and any(isinstance(part, ast.Constant) and part.value in {"..", "..<"} for part in node.values)
        for node in source.nodes
    )


def _with_ends(source: Source) -> Iterator[str]:
    """Classes with the first and the last of a range."""
    for node in source.nodes:
        if isinstance(node, ast.ClassDef):
            fields = {
                part.target.id for part in node.body if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
            }
            if any(pair <= fields for pair in ({"first", "last"}, {"since", "until"}, {"read_from", "read_until"})):
                yield node.name


def _names(source: Source) -> set[str]:
    return {node.id for node in source.nodes if isinstance(node, ast.Name)} | {
        node.attr for node in source.nodes if isinstance(node, ast.Attribute)
    }


def _dotted(source: Source) -> set[str]:
    return {
        f"{node.value.id}.{node.attr}"
        for node in source.nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }


def _patterns(source: Source, *parts: str) -> bool:
    """Whether one of its regular expressions contains one of the parts."""
    return any(
        any(part in text.replace("\\s+", " ").replace(r"\ ", " ") for part in parts)
        for call, text in source.calls("compile", "match", "search", "fullmatch", "finditer", "findall", "sub")
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and call.func.value.id == "re"
    )


def _module(name: str) -> str:
    return name.removesuffix(".py").removesuffix("__init__").rstrip("/").replace("/", ".")


def _circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components of a graph (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    circles: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for target in sorted(graph[name]):
            if target not in index:
                visit(target)
                low[name] = min(low[name], low[target])
            elif target in stack:
                low[name] = min(low[name], index[target])
        if low[name] == index[name]:
            at = stack.index(name)
            circles.append(stack[at:])
            del stack[at:]

    sys.setrecursionlimit(10_000)
    for name in sorted(graph):
        if name not in index:
            visit(name)
    return circles


@dataclass(frozen=True)
class Count:
    """A count with its limit; ``limit`` is None if there is no limit yet."""

    title: str
    count: Callable[[House], list[str]]
    limit: int | None


COUNTS = (
    Count("files that read the numbers of a version", House.version_types, 1),
    Count("forms of a set of releases", House.set_types, 4),
    Count("loaders of policy", House.policy_loaders, 1),
    Count("tables of dtypes", House.dtype_tables, 1),
    Count("readers of pickles", House.pickle_readers, 1),
    Count("places that look for packaged data", House.data_places, 1),
    Count("circles of imports", House.cycles, 0),
    Count("policy tables", House.policy_tables, 15),
    Count("names of two classes or more", House.class_names, 3),
    Count("variables that are not nouns", House.variables, 0),
    Count("files over 600 lines", House.long_files, 3),
    Count("readers of schemas", House.schema_readers, 2),
    Count("readers of TorchScript text", House.program_readers, 2),
)
MOST_BYTES, MOST_LINES = (
    20 << 20,
    40_000,
)  # of recorded text: the number of archives will grow, and the text per archive should stay as short


def main() -> None:
    """Print the counts; with ``--check``, exit with 1 if a count is above its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1], help="checkout to count in; default: this one")
    parser.add_argument("--check", action="store_true", help="exit with status 1 if a count is above its limit")
    parser.add_argument("--where", action="store_true", help="list the places that were counted")
    arguments = parser.parse_args()
    house = House(arguments.root)
    above: list[str] = []
    for row in COUNTS:
        result = row.count(house)
        limit = "" if row.limit is None else f"at most {row.limit}"
        bad = row.limit is not None and len(result) > row.limit
        print(f"{len(result):8}  {limit:10}  {row.title}")
        if arguments.where or (arguments.check and bad):
            print(*(f"{'':22}{place}" for place in result), sep="\n")
        if bad:
            above.append(row.title)
    size, lines = house.recorded()
    print(f"{size:8}  at most {MOST_BYTES}  bytes of recorded text")
    print(f"{lines:8}  at most {MOST_LINES}  lines of recorded text")
    print(f"{house.lines():8}  {'':10}  lines of the package")
    if size > MOST_BYTES:
        above.append("bytes of recorded text")
    if lines > MOST_LINES:
        above.append("lines of recorded text")
    if arguments.check and above:
        raise SystemExit(f"above the limit: {', '.join(above)}")


if __name__ == "__main__":
    main()
