"""The one table of dtypes: each row matches what torch, numpy and ml_dtypes report."""

from __future__ import annotations

import base64
import json
import subprocess
from collections import Counter
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from torch_compat.readers.environments import Environments
from torch_compat.values.compare import compare
from torch_compat.values.dtypes import (
    ALIASES,
    CAFFE2,
    DTYPES,
    ELEMENT_SIZES,
    MEASURED,
    NUMBERED,
    STORAGE_CLASSES,
    storage_class,
)

NEWEST = "2.13.0"
CODE = """
import json, torch
import torch._export.serde.schema as schema
from torch.storage import _dtype_to_storage_type_map as storages

names = [name for name in dir(torch) if isinstance(getattr(torch, name), torch.dtype)]
parse = lambda name: torch._C.parse_schema("aten::f(ScalarType? dtype=%s) -> Tensor" % name).arguments[0].default_value
print(json.dumps({
    "dtypes": {name: {
        "name": str(getattr(torch, name))[6:],
        "size": getattr(torch, name).itemsize,
        "complex": getattr(torch, name).is_complex,
        "float": getattr(torch, name).is_floating_point,
        "type": torch.empty(0, dtype=getattr(torch, name)).type().rpartition(".")[2],
        "number": parse(name),
    } for name in names},
    "storages": {name: str(dtype)[6:] for dtype, name in storages().items()},
    "export": {member.name: int(member) for member in schema.ScalarType if member.name != "UNKNOWN"},
}))
"""


@pytest.mark.real_torch(NEWEST)
def test_the_table_is_what_a_release_says() -> None:
    environment = Environments().get(NEWEST)
    assert environment is not None
    done = subprocess.run(
        [environment.python, "-W", "ignore", "-c", CODE], check=True, capture_output=True, text=True, env=environment.environ()
    )
    messages: dict[str, Any] = json.loads(done.stdout)
    wrong = []
    for name, real in messages["dtypes"].items():
        row = DTYPES[ALIASES.get(name, name)]
        mine = {
            "name": row.name,
            "size": row.size,
            "complex": row.kind == "complex",
            "float": row.kind == "float" or row.name.startswith("float4"),
            "type": f"{row.word}Tensor",
            "number": row.number,
        }
        if mine != real:
            wrong.append((name, mine, real))
    assert wrong == []
    assert set(messages["dtypes"]) == set(DTYPES) - {"bcomplex32"} | set(ALIASES)  # bcomplex32 is newer
    named = {
        f"{real['type'].removesuffix('Tensor')}Storage": DTYPES[ALIASES.get(name, name)].name
        for name, real in messages["dtypes"].items()
    }
    typed = {name: dtype for name, dtype in STORAGE_CLASSES.items() if "Untyped" not in name}
    assert messages["storages"].items() <= typed.items()
    assert {name: dtype for name, dtype in typed.items() if dtype != "bcomplex32"} == named | messages["storages"]
    assert {row.word.replace("_", "").upper(): row.export for row in DTYPES.values() if row.export is not None} == messages[
        "export"
    ]


def test_no_name_and_no_number_stands_for_two_dtypes() -> None:
    rows = DTYPES.values()
    several = Counter(name for row in rows for name in (row.name, *row.aliases))
    for column in (
        several,
        Counter(name for row in rows for name in row.storages),
        Counter(name for row in rows for name in row.caffe2),
        Counter(row.number for row in rows if row.number is not None),
        Counter(row.export for row in rows if row.export is not None),
        Counter(row.word for row in rows if row.word),
        Counter(row.cpp for row in rows if row.cpp),
    ):
        assert set(column.values()) == {1}
    assert ELEMENT_SIZES.keys() == DTYPES.keys() >= set(ALIASES.values()) | set(STORAGE_CLASSES.values()) | set(CAFFE2.values())
    assert [NUMBERED[row.number] for row in rows if row.number is not None] == [
        row.name for row in rows if row.number is not None
    ]


@pytest.mark.parametrize("name", DTYPES)
def test_a_row_agrees_with_numpy_and_ml_dtypes(name: str) -> None:
    row = DTYPES[name]
    assert not row.ml_dtypes or hasattr(ml_dtypes, name)
    if row.numpy:
        result = np.dtype(row.numpy)
        assert result.itemsize == row.size
        assert {"b": "bool", "i": "integer", "u": "integer", "f": "float", "c": "complex"}[result.kind] == row.kind or (
            row.kind == "quantized" and result.kind in "iu"
        )
    elif row.ml_dtypes:
        assert np.dtype(getattr(ml_dtypes, name)).itemsize == row.size
    if row.ml_dtypes and row.kind == "float":
        item = np.array([1, -1], getattr(ml_dtypes, name)).view(f"u{row.size}")
        assert row.signed_zero == (
            item[0] ^ item[1] == 1 << (8 * row.size - 1)
            and bool(np.array([1 << (8 * row.size - 1)], item.dtype).view(getattr(ml_dtypes, name)) == 0)
        )
    if row.parts:
        assert row.size == (2 if row.kind == "complex" else 1) * DTYPES[row.parts].size
    assert (row.kind == "complex") <= bool(row.parts)
    assert not row.packed or 8 % row.packed == 0


@pytest.mark.parametrize("name", DTYPES)
def test_a_distance_is_measured_where_the_table_says_so(name: str) -> None:
    def result(first: int) -> dict[str, Any]:
        data = bytes([first, *[0] * (DTYPES[name].size - 1)])
        return {"value": {"tensor": {"dtype": name, "shape": [1], "strides": [1], "bytes": base64.b64encode(data).decode()}}}

    (extent,) = compare(result(0), result(1)).extent
    assert (extent["frontier"] is not None) == (name in MEASURED)


def test_storage_classes_belong_to_torch_and_its_devices() -> None:
    assert storage_class("torch.cuda", "HalfStorage") == "float16"
    assert storage_class("torch.storage", "_UntypedStorage") == storage_class("torch", "UntypedStorage") == "uint8"
    assert storage_class("os", "HalfStorage") is None
    assert storage_class("torch", "Tensor") is None
