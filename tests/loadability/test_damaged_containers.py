"""Container damage that prevents all or some releases from opening an archive; each answer is the behavior of real releases."""

from __future__ import annotations

import io
import itertools
import pickle
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from torch_compat.formats.model import Facts
from torch_compat.inspection import inspect
from torch_compat.loadability import of, packaged_rules
from torch_compat.pickles import unpickle

if TYPE_CHECKING:
    from collections.abc import Callable

FIXTURES = Path(__file__).parents[2] / "fixtures"
NEWEST = packaged_rules().releases[-1]
SAVED = "torch-1.6.0/state_dict.pt"
PROGRAM = "torch-1.2.0/div.pt"
MOBILE = "torch-1.8.1/mobile.ptl"
PACKAGE = "torch-1.9.1/package.pt"


def packed(data: bytes, named: Callable[[str], str] = str, before: str = "", after: str = "") -> bytes:
    """The records of a zip archive under other names, with one more in front or behind."""
    result = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(result, "w") as new:
        if before:
            new.writestr(before, b"x")
        for name in old.namelist():
            new.writestr(named(name), old.read(name))
        if after:
            new.writestr(after, b"x")
    return result.getvalue()


WAYS: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda data: data[:-10],
    "prefix": lambda data: b"junk" + data,
    "flat": lambda data: packed(data, lambda name: name.partition("/")[2]),
    "before": lambda data: packed(data, before="__MACOSX/._a"),
    "after": lambda data: packed(data, after="__MACOSX/._a"),
    "within": lambda data: packed(data, lambda name: name, after=""),
}


def inspected(tmp_path: Path, fixture: str, way: str) -> dict[str, Any]:
    path = tmp_path / "a.pt"
    path.write_bytes(WAYS[way]((FIXTURES / fixture).read_bytes()))
    return inspect(path)


@pytest.mark.parametrize(
    ("fixture", "way"),
    [*itertools.product((SAVED, PROGRAM, MOBILE, PACKAGE), ("cut", "prefix", "before")), (PROGRAM, "flat"), (MOBILE, "flat")],
)
def test_no_release_opens_it_and_the_answer_names_no_call(tmp_path: Path, fixture: str, way: str) -> None:
    row = inspected(tmp_path, fixture, way)
    assert row["readable_by"] == row["how_to_load"] == []
    assert row["error"] is not None
    assert any(reason["needs"].startswith("zip-") for reason in row["reasons"])


@pytest.mark.parametrize(
    ("fixture", "last"), [(SAVED, "1.6.0"), (MOBILE, "1.8.1"), (PACKAGE, None), (PROGRAM, "1.10.2")], ids=str
)
def test_a_record_of_another_folder_behind_the_others_matters_to_loaders_that_list_all_records(
    tmp_path: Path, fixture: str, last: str | None
) -> None:
    row = inspected(tmp_path, fixture, "after")
    assert row["maximum_release"] == last
    assert bool(row["how_to_load"]) == (last is not None)


@pytest.mark.parametrize("fixture", [SAVED, PROGRAM, MOBILE, PACKAGE])
def test_packing_the_same_records_again_changes_nothing(tmp_path: Path, fixture: str) -> None:
    row = inspected(tmp_path, fixture, "within")
    whole = inspect(FIXTURES / fixture)
    assert row["readable_by"] == whole["readable_by"] != []


STORED = {
    0: b"(lp0\nP('storage', <class 'torch.FloatStorage'>, '0', 'cpu', 1)\na.",
    1: b"](U\x07storagectorch\nFloatStorage\nU\x010U\x03cpuK\x01tQa.",
}
"""A list with the reference to a storage, as torch.save writes it with these protocols."""


def checkpoint(data: bytes) -> Facts:
    names = ("data.pkl", "version")
    pickles = {"data.pkl": unpickle(data, where="data.pkl")}
    return Facts(
        "a.pt", 1, "torch-save", "zip", versions={"file-format": 3}, names=names, records=frozenset(names), pickles=pickles
    )


def test_protocol_0_refers_to_storages_by_text_which_no_release_takes() -> None:
    assert of(checkpoint(STORED[0])).how_to_load == ()
    assert of(checkpoint(pickle.dumps([1], 0))).readable_by
    assert of(checkpoint(STORED[1])).how_to_load


def test_what_has_no_name_of_its_own_is_allowed_as_a_pair_where_there_are_pairs() -> None:
    ways = [way for way in of(checkpoint(pickle.dumps([Ellipsis], 2))).how_to_load if way.safe_globals]
    assert [way.statements[0] for way in ways] == ["torch.serialization.add_safe_globals([(Ellipsis, 'builtins.Ellipsis')])"]
    pairs = packaged_rules().offer("safe-globals-by-name")[0]
    assert ways[0].releases == tuple(packaged_rules().known.spans(pairs))


MOVED = {
    "torch.quantization.observer.MinMaxObserver": "torch.quantization.observer",
    "torch.nn.quantized.modules.linear.Linear": "torch.nn.quantized.modules.linear",
    "torch.nn.qat.modules.linear.Linear": "torch.nn.qat.modules.linear",
}


@pytest.mark.parametrize("path", MOVED)
def test_what_moved_below_torch_ao_is_allowed_by_the_name_in_the_pickle(path: str) -> None:
    name = path.removeprefix(f"{MOVED[path]}.")
    needs = of(checkpoint(f"\x80\x02c{MOVED[path]}\n{name}\n)\x81}}b.".encode("latin-1")))
    ways = [way for way in needs.how_to_load if way.safe_globals]
    assert ways
    assert all(f"({name}, {path!r})" in way.code for way in ways)


@pytest.mark.parametrize("value", [iter([1, 2]), reversed([1, 2]), zip([1], [2], strict=False)], ids=["list", "reversed", "zip"])
def test_the_state_of_an_iterator_is_set_and_nothing_that_could_be_allowed_takes_it(value: object) -> None:
    needs = of(checkpoint(pickle.dumps({"rows": value}, 2)))
    assert needs.how_to_load
    assert not any(way.safe_globals for way in needs.how_to_load)


@pytest.mark.parametrize(
    ("data", "readers"),
    [
        (b"\x80\x02ctorch._C\nGenerator\n)\x81(K\x01NK\x02tb.", "1.5.0.."),
        (
            (
                b"\x80\x02ctorch._C\nGenerator\n)\x81(K\x01Nctorch._utils\n_rebuild_tensor_v2\n((U\x07storagectorch\nByteStorage\nU\x010"
                b"U\x03cpuK\x01tQK\x00(K\x01t(K\x01t\x89ccollections\nOrderedDict\n)RtRtb."
            ),
            "2.4.0..",
        ),
        (
            b"\x80\x02ctorch.nn.quantized.modules.linear\nLinearPackedParams\n)\x81(NN\x88ctorch\nqint8\ntb.",
            "1.5.0..1.11.0",
        ),
    ],
    ids=["other state", "generator", "packed parameters"],
)
def test_the_form_of_a_state_decides_which_classes_take_it(data: bytes, readers: str) -> None:
    facts = checkpoint(data)
    loads = of(facts).loads
    assert packaged_rules().known.text(loads) == readers
