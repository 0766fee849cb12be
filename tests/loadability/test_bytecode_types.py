"""Which releases load bytecode whose types name classes. Each case is an edited archive that releases loaded or refused.

Loaded were archives of 1.8.1, 1.10.2, 1.11.0 and 2.15.0, with the types replaced, by 1.7.1, 1.8.1, 1.10.2, 1.11.0, 1.12.1, 2.0.1 and 2.15.0
(each archive by the releases that load its bytecode version).
"""

from __future__ import annotations

import pickle
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from torch_compat.errors import Corrupt, HarnessError
from torch_compat.formats.facts import read_facts
from torch_compat.loadability import of

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
NEW, BACKPORTED, OLD = (
    FIXTURES / "torch-2.15.0/mobile.ptl",
    FIXTURES / "torch-1.11.0/mobile.ptl",
    FIXTURES / "torch-1.8.1/mobile.ptl",
)
P = "__torch__.P[NamedTuple, [[a, Tensor],[b, int]]]"
PACKED = "__torch__.torch.classes.quantized.LinearPackedParamsBase"
NOBODY: tuple[()] = ()


def edited(source: Path, path: Path, *, types: Any = None, result: Any = None) -> Path:
    """A copy of an archive whose functions have this table of types, and results of this type in their schemas."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w") as new:
        for item in old.infolist():
            data = old.read(item)
            if item.filename.endswith("/bytecode.pkl"):
                version, *functions = pickle.loads(data)
                data = pickle.dumps((version, *(function(item, types, result) for item in functions)), 2)
            new.writestr(item.filename, data)
    return path


def function(old: Any, types: Any, result: Any) -> tuple[Any, ...]:
    name, code, schema = old
    if types is not None:
        code = tuple((key, types if key == "types" else value) for key, value in code)
    if result is not None:
        returned = ((("name", ""), ("type", result), ("default_value", None)),)
        schema = tuple((key, returned if key == "returns" else value) for key, value in schema)
    return name, code, schema


@pytest.mark.parametrize(
    ("types", "loads"),
    [
        ((P, "List[__torch__.P]"), True),
        (("List[__torch__.P]", P), False),
        ((f"Dict[str,{P}]", "List[__torch__.P]"), False),  # the definition is inside of another type
        ((f"List[{P}]", "List[__torch__.P]"), False),
        ((f"List[{P}]",), True),
        ((P, "__torch__.P"), True),
        (("__torch__.P", P), False),
        ((f"Tuple[{P}, __torch__.P]",), True),
        ((f"Tuple[__torch__.P, {P}]",), False),
        ((P, "List[__torch__.Q]"), False),
        ((P, "List[__torch__.m.P]"), False),
        ((P.replace("P", "m.P", 1), "List[__torch__.m.P]"), True),
        ((P, "List[__torch__.P.b]"), False),
        (("__torch__.Q[NamedTuple, [[p, __torch__.P]]]", P), False),
        ((P, "__torch__.Q[NamedTuple, [[p, __torch__.P]]]", "List[__torch__.Q]"), True),
        ((f"__torch__.Q[NamedTuple, [[p, {P}]]]", "List[__torch__.P]"), False),
        (("__torch__.P[NamedTuple, [[a, List[__torch__.P]]]]",), False),
        ((P, "Optional[List[__torch__.P]]"), True),
        ((P, "List[ __torch__.P ]"), True),
        (("__torch__ . P [NamedTuple, [[a, Tensor],[b, int]]]", "List[__torch__.P]"), True),
        ((P, f"List[{PACKED}]"), True),
        ((PACKED,), True),
        (("__torch__.Z",), False),
        ((P, P), True),
    ],
)
def test_a_type_names_a_named_tuple_after_its_definition(types: tuple[str, ...], loads: bool, tmp_path: Path) -> None:
    result = of(read_facts(edited(NEW, tmp_path / "a.ptl", types=types)))
    assert bool(result.readable_by) is loads
    if not loads:
        assert [reason.needs.partition(":")[0] for reason in result.reasons] == ["named-tuple-without-definition"]


def test_a_definition_in_another_function_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "a.ptl"
    with zipfile.ZipFile(NEW) as old, zipfile.ZipFile(path, "w") as new:
        for item in old.infolist():
            data = old.read(item)
            if item.filename.endswith("/bytecode.pkl"):
                version, first, *others = pickle.loads(data)
                functions = (function(first, (P,), None), function(first, ("List[__torch__.P]",), None), *others)
                data = pickle.dumps((version, *functions), 2)
            new.writestr(item.filename, data)
    assert of(read_facts(path)).readable_by == NOBODY


@pytest.mark.parametrize("source", [NEW, OLD], ids=lambda source: source.parent.name)
@pytest.mark.parametrize(
    ("type_", "loads"),
    [
        ("__torch__.P", True),
        (P, True),
        ("List[__torch__.P]", False),
        ("Optional[__torch__.P]", False),
        ("Dict[str, __torch__.P]", False),
        ("Tuple[__torch__.P, int]", False),
        (f"List[{PACKED}]", True),
        ("Tensor", True),
    ],
)
def test_a_type_of_a_schema_is_parsed_alone(source: Path, type_: str, loads: bool, tmp_path: Path) -> None:
    """Only 1.7, which writes and reads no schemas, loads the others."""
    before = of(read_facts(source)).readable_by
    after = of(read_facts(edited(source, tmp_path / "a.ptl", result=type_))).readable_by
    assert after == (before if loads else {OLD: (("1.7.0", "1.7.1"),), NEW: NOBODY}[source])


@pytest.mark.parametrize(("type_", "first"), [(P, "1.11.0"), (f"List[{PACKED}]", "1.10.0"), ("Tensor", "1.10.0")])
def test_named_tuples_of_bytecode_begin_with_1_11(type_: str, first: str, tmp_path: Path) -> None:
    """1.10 loads bytecode of version 7, which 1.10 and 1.11 write."""
    assert of(read_facts(edited(BACKPORTED, tmp_path / "a.ptl", types=(type_,)))).readable_by[0][0] == first


@pytest.mark.parametrize("types", [7, None, (7,), ((P,),), {"a": 1}], ids=repr)
def test_types_that_are_not_texts_are_damage(types: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.ptl"
    edited(NEW, path, types=() if types is None else types)
    if types is None:
        assert of(read_facts(path)).readable_by
        return
    with pytest.raises(Corrupt, match=r"bytecode\.pkl.*types") as caught:
        read_facts(path)
    assert caught.value.code == "bad-bytecode"


TEXT = "List[__torch__.P]" * 1000
ARGUMENT = (("name", ""), ("type", TEXT), ("default_value", None))


@pytest.mark.parametrize(
    ("part", "shared"),
    [
        ("types", (TEXT,) * 1_000_000),
        ("schema", (("arguments", (ARGUMENT,) * 1000),) * 1000),
        ("schema", (("arguments", ()),) * 20_000),
        ("code", (("register_size", 1),) * 20_000),
    ],
    ids=["types", "arguments", "empty schemas", "entries of code"],
)
def test_shared_parts_do_not_take_more_time_than_an_archive_is_allowed(
    part: str, shared: tuple[Any, ...], tmp_path: Path
) -> None:
    """A pickle of some kilobytes can share one tuple a million times a million times."""
    path = tmp_path / "a.ptl"
    with zipfile.ZipFile(NEW) as old, zipfile.ZipFile(path, "w") as new:
        for item in old.infolist():
            data = old.read(item)
            if item.filename.endswith("/bytecode.pkl"):
                version, (name, code, schema), *_others = pickle.loads(data)
                if part == "types":
                    code = tuple((key, shared if key == part else value) for key, value in code)
                elif part == "code":
                    code += shared
                else:
                    schema = shared
                data = pickle.dumps((version, *((name, code, schema),) * 20_000), 2)
            new.writestr(item.filename, data)
    began = time.process_time()
    with pytest.raises(HarnessError):
        read_facts(path)
    assert time.process_time() - began < 60
