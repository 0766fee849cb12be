"""Classes of torch.classes: the releases that have them, and the states that these accept."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from torch_compat.formats.facts import read_facts
from torch_compat.formats.model import Facts
from torch_compat.loadability import Needs, of, packaged_rules
from torch_compat.loadability.archive_features import signs_of
from torch_compat.loadability.custom_classes import NO_TUPLE, CustomClasses
from torch_compat.operators.history import History

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
NEWEST = packaged_rules().releases[-1]
HEAD = """\
# history 1 texts
# releases 1.5.1 1.6.0 1.7.1 2.13.0 2.14.1
# obtained	1.5.1	Not obtained.
# obtained	1.6.0..	Asked.
# incomplete	1.5.1	There is no list.
# incomplete	2.13.0	This is the build without CUDA.
"""
LINES = """\
__setstate__(__torch__.torch.classes.a.Any _0, Any _1) -> NoneType _0	1.6.0..
__setstate__(__torch__.torch.classes.a.Changed _0, (Tensor, (int, str), Tensor?[]) _1) -> (None _0)	1.7.1..
__setstate__(__torch__.torch.classes.a.Changed _0, (str, Tensor[]) _1) -> (None _0)	1.6.0
__setstate__(__torch__.torch.classes.a.Text _0, str _1) -> (None _0)	1.6.0..
synchronize(__torch__.torch.classes.cuda.Event _0) -> (None _0)	1.6.0..1.7.1,2.14.1
unpack(__torch__.torch.classes.a.Gone _0, int _1) -> (None _0)	1.6.0..1.7.1
"""
OPERATORS = """\
a::make(Tensor x) -> __torch__.torch.classes.a.Any	1.5.1..
a::run(__torch__.torch.classes.a.Bare[] all, Tensor x) -> Tensor	1.5.1..1.6.0
"""


def classes(tmp_path: Path) -> CustomClasses:
    path = tmp_path / "custom_classes.txt"
    path.write_text(HEAD + LINES, encoding="utf-8")
    schemas = tmp_path / "schemas.txt"
    schemas.write_text(HEAD + OPERATORS, encoding="utf-8")
    return CustomClasses(History(path), History(schemas))


def having(value: CustomClasses, name: str) -> str:
    return value.known.text(value.having(name))


def program(source: str) -> Needs:
    names = ("data.pkl", "code/a.py", "constants.pkl", "version")
    sources, records = {"code/a.py": source}, frozenset(names)
    return of(Facts("a.pt", 1, "torchscript", "zip", versions={"file-format": 3}, names=names, records=records, sources=sources))


def test_a_class_is_had_where_a_method_of_it_is_listed(tmp_path: Path) -> None:
    result = classes(tmp_path)
    assert having(result, "a.Text") == "1.6.0.."
    assert having(result, "a.Gone") == "1.6.0..1.7.1"
    assert result.having("a.Other") == 0
    assert result.namespaces == {"a", "cuda"}


def test_a_class_is_had_where_an_operator_takes_it(tmp_path: Path) -> None:
    result = classes(tmp_path)
    assert having(result, "a.Any") == "1.5.1.."
    assert having(result, "a.Bare") == "1.5.1..1.6.0"
    assert result.known.text(result.taking("a.Bare", 1)) == "1.5.1..1.6.0"


def test_a_gap_of_a_release_that_lists_not_all_is_none(tmp_path: Path) -> None:
    assert having(classes(tmp_path), "cuda.Event") == "1.6.0.."


@pytest.mark.parametrize(
    ("name", "parts", "taking"),
    [
        ("a.Any", 2, "1.5.1.."),
        ("a.Any", NO_TUPLE, "1.5.1.."),
        ("a.Changed", 2, "1.6.0"),
        ("a.Changed", 3, "1.7.1.."),
        ("a.Changed", 4, "none"),
        ("a.Changed", NO_TUPLE, "none"),
        ("a.Text", NO_TUPLE, "1.6.0.."),
        ("a.Text", 1, "none"),
        ("a.Gone", 7, "1.6.0..1.7.1"),
        ("a.Other", 1, "none"),
    ],
)
def test_a_state_is_taken_by_its_parts(tmp_path: Path, name: str, parts: int, taking: str) -> None:
    result = classes(tmp_path)
    assert (result.known.text(result.taking(name, parts)) or "none") == taking


def test_a_class_that_a_program_names_decides() -> None:
    needs = program("class M(Module):\n  packed : __torch__.torch.classes.xnnpack.LinearOpContext\n")
    assert (needs.minimum_release, needs.maximum_release) == ("1.6.0", "2.12.1")
    assert needs.reasons[0].needs == "class torch.classes.xnnpack.LinearOpContext: torch 1.6.0 to 2.12.1"
    assert needs.reasons[0].because == "record code/a.py: other releases of torch have no such class"


def test_a_class_in_a_text_is_none() -> None:
    assert program('def f() -> str:\n  return "__torch__.torch.classes.no.Such"\n').readable_by == (("1.5.0", NEWEST),)


def test_a_class_of_an_extension_needs_the_extension() -> None:
    needs = program("class M(Module):\n  stack : __torch__.torch.classes.mine.Stack\n")
    assert needs.readable_by == ()
    assert needs.reasons[0].because == "record code/a.py: no release of torch has such a class: it comes from an extension"
    assert [item.module for item in needs.beside] == ["mine::"]
    assert needs.how_to_load, "with the extension it loads"


@pytest.mark.parametrize(
    ("fixture", "span"),
    [
        ("torch-1.6.0/packed_parameters", ("1.6.0", NEWEST)),
        ("torch-1.7.1/packed_parameters", ("1.7.0", NEWEST)),
        ("torch-2.15.0/packed_parameters", ("1.8.0", NEWEST)),
        ("torch-1.7.1/packed_parameters_xnnpack", ("1.7.0", "2.12.1")),
        ("torch-1.12.1/packed_parameters_sparse", ("1.9.0", "1.12.1")),
        ("torch-1.13.1/packed_parameters_sparse", ("1.13.0", "1.13.1")),
    ],
)
def test_archives_of_releases(fixture: str, span: tuple[str, str]) -> None:
    assert of(read_facts(FIXTURES / f"{fixture}.pt")).readable_by == (span,)


@pytest.mark.parametrize(
    ("number", "transposed"),
    [(b"\1\0", True), (b"\0\1", True), (b"\0\0", False), (b"", False), (b"\1\0" * 1000, False), (None, False)],
)
def test_whether_a_convolution_is_transposed_stands_in_its_last_number(
    tmp_path: Path, number: bytes | None, transposed: bool
) -> None:
    """The records of numbers are replaced: by what is right, in either order of bytes, cut off, too long, and by nothing."""
    path = tmp_path / "a.pt"
    with zipfile.ZipFile(FIXTURES / "torch-2.15.0/packed_parameters.pt") as given, zipfile.ZipFile(path, "w") as result:
        for name in given.namelist():
            data = given.read(name)
            if name.rpartition("/")[0].endswith("/data") and len(data) in {22, 30}:  # int16 of two and three dimensions
                if number is None:
                    continue
                data = data[:-2] + number
            result.writestr(name, data)
    signs, _ = signs_of(read_facts(path), {})
    assert ("packed-transposed" in signs) is transposed
