from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import torch_compat
from tests.state.archives import Storage, pickled, tensor, written
from tools.faults.torch_zip import write_torch_zip
from torch_compat.archive import ZipArchive, open_archive
from torch_compat.errors import Corrupt, UsageError
from torch_compat.formats.facts import read_facts
from torch_compat.readers.environments import Environments
from torch_compat.readers.torch_release import TorchRelease
from torch_compat.state import Absent, fill_storages, load_state
from torch_compat.values.compare import compare

FIXTURES = Path(__file__).parents[2] / "fixtures"
SKIPPED = [
    path for name in ("save_skip_data", "save_fake_tensors") for path in sorted(FIXTURES.glob(f"torch-*/{name}.pt"))
]  # fmt: skip


def holes(path: Path) -> dict[str, int]:
    return {storage.key: storage.nbytes for storage in read_facts(path).storages if storage.absent}


def numbers(path: Path) -> dict[str, bytes]:
    """Data for every hole: no two alike, none of them zero."""
    return {key: bytes((7 * int(key) + place) % 255 + 1 for place in range(size)) for key, size in holes(path).items()}


def two(path: Path, **options: Any) -> Path:
    """An archive of two holes and a storage that has its data."""
    results = {
        "floats": tensor(Storage("FloatStorage", "0", 3), (3,), (1,)),
        "whole": tensor(Storage("LongStorage", "1", 1), (1,), (1,)),
        "halves": tensor(Storage("BFloat16Storage", "2", 5), (5,), (1,)),
    }
    return written(path, results, {"0": 12, "1": bytes([1] * 8), "2": 10}, **options)


@pytest.mark.parametrize("source", SKIPPED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_each_release_skipped_is_filled_and_read(source: Path, tmp_path: Path) -> None:
    given = numbers(source)
    path = tmp_path / "filled.pt"
    assert fill_storages(source, given, to=path) == tuple(given)
    assert len(given) == 2
    before, after = source.read_bytes(), path.read_bytes()
    assert len(before) == len(after)
    with open_archive(path) as archive:
        archive.verify()
        assert not archive.damage
        assert isinstance(archive, ZipArchive)
        for storage in read_facts(archive).storages:
            assert not storage.absent
            assert archive.member(f"data/{storage.key}").protected
            if storage.key in given:
                assert storage.calculated_offset is not None
                assert archive.record(f"data/{storage.key}") == given[storage.key]
                start = storage.calculated_offset
                assert after[start : start + storage.nbytes] == given[storage.key]
    assert isinstance(load_state(source)["base"], Absent)
    state = load_state(path)
    assert state["base"].tobytes() == given["0"]
    assert np.shares_memory(state["base"], state["view"])
    assert state["longs"].tobytes() == given["1"]
    changed = [place for place, (item, other) in enumerate(zip(before, after, strict=True)) if item != other]
    assert len(changed) <= sum(map(len, given.values())) + 2 * 2 * 4  # the holes; two checksums of 4 bytes for each


def test_in_place_and_by_a_callable_that_is_asked_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = two(tmp_path / "x.pt")
    asked = []

    def source(key: str) -> Any:
        asked.append(key)
        return {"0": np.array([1.5, -0.0, np.inf], ">f4"), "2": np.arange(5).astype(ml_dtypes.bfloat16)}[key]

    assert torch_compat.fill_storages(path, source) == ("0", "2")
    assert asked == ["0", "2"]
    state = load_state(path)
    assert state["floats"].tolist() == [1.5, -0.0, np.inf]
    assert state["whole"].tolist() == [0x0101010101010101]
    assert state["halves"].tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(UsageError) as caught:
        fill_storages(path, source)
    assert caught.value.code == "no-holes"


def test_arrays_are_put_into_the_byte_order_of_the_archive(tmp_path: Path) -> None:
    path = two(tmp_path / "x.pt", byteorder="big", alignment=512)
    given = {"0": np.array([1.5, -2, 3], "<f4"), "2": np.array([1, 2, 3, 4, 5], ml_dtypes.bfloat16)}
    fill_storages(path, given)
    assert np.array([1.5, -2, 3], ">f4").tobytes() in path.read_bytes()
    state = load_state(path)
    assert (state["floats"].tolist(), state["halves"].tolist()) == ([1.5, -2, 3], [1, 2, 3, 4, 5])


def test_without_checksums_zeros_are_holes_and_no_checksum_is_written(tmp_path: Path) -> None:
    path = two(tmp_path / "x.pt", crc32=False)
    assert load_state(path)["floats"].tolist() == [0, 0, 0]  # nobody can tell
    fill_storages(path, {"0": b"\1" * 12, "2": b"\2" * 10})
    with open_archive(path) as archive:
        archive.verify()
        assert not archive.damage
        assert isinstance(archive, ZipArchive)
        assert [member.crc for member in archive.members] == [0] * len(archive.members)
        assert archive.record("data/0") == b"\1" * 12


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"0": bytes(12)}, "wrong-keys"),
        ({"0": bytes(12), "2": bytes(10), "1": bytes(8)}, "wrong-keys"),
        ({"0": bytes(12), "2": bytes(9)}, "wrong-size"),
        ({"0": bytes(13), "2": bytes(10)}, "wrong-size"),
        ({"0": np.zeros(3), "2": bytes(10)}, "wrong-dtype"),
        ({"0": np.zeros(3, "i4"), "2": bytes(10)}, "wrong-dtype"),
        ({"0": np.zeros(3, "V4"), "2": bytes(10)}, "wrong-dtype"),
        ({"0": np.array(["a", "b", "c"]), "2": bytes(10)}, "wrong-dtype"),
        ({"0": "text", "2": bytes(10)}, "wrong-data"),
        ({"0": None, "2": bytes(10)}, "wrong-data"),
    ],
)
@pytest.mark.parametrize("copy", [False, True])
def test_nothing_is_written_where_a_mapping_does_not_fit(given: dict[str, Any], code: str, copy: bool, tmp_path: Path) -> None:
    path = two(tmp_path / "x.pt")
    before = path.read_bytes()
    with pytest.raises(UsageError) as caught:
        fill_storages(path, given, to=tmp_path / "y.pt" if copy else None)
    assert caught.value.code == code
    assert path.read_bytes() == before
    assert [item.name for item in tmp_path.iterdir()] == ["x.pt"]


def test_a_callable_that_fails_leaves_holes_or_whole_storages(tmp_path: Path) -> None:
    path = two(tmp_path / "x.pt")

    def source(key: str) -> bytes:
        if key == "2":
            raise RuntimeError("the disk with the data is gone")
        return b"\5" * 12

    with pytest.raises(RuntimeError):
        fill_storages(path, source)
    state = load_state(path)
    assert state["floats"].tobytes() == b"\5" * 12
    assert isinstance(state["halves"], Absent)
    fill_storages(path, {"2": b"\6" * 10})
    assert load_state(path)["halves"].tobytes() == b"\6" * 10


def test_what_was_interrupted_is_damaged_and_filling_it_again_mends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"0": b"\5" * 12, "2": b"\6" * 10}
    for survived in range(4):  # calls of fsync before the power is gone
        path = two(tmp_path / f"{survived}.pt")
        calls = 0

        def fsync(descriptor: int, survived: int = survived) -> None:
            nonlocal calls
            calls += 1
            if calls > survived:
                raise OSError("no power")

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", fsync)
            with pytest.raises(OSError, match="no power"):
                fill_storages(path, given)
        if survived in {0, 2}:  # the checksums of a storage are there, its data are not
            with pytest.raises(Corrupt, match="checksum") as caught:
                load_state(path)
            assert caught.value.code == "crc-mismatch"
            fill_storages(path, given if survived == 0 else {"2": given["2"]})
        elif survived == 1:
            fill_storages(path, {"2": given["2"]})
        assert load_state(path)["floats"].tobytes() == given["0"]
        assert load_state(path)["halves"].tobytes() == given["2"]


def test_archives_without_holes_and_damaged_ones_are_refused(tmp_path: Path) -> None:
    for name in ("torch-2.13.0/save_floats.pt", "torch-1.0.0/save_floats.pt", "synthetic/tar.pt"):
        with pytest.raises(UsageError) as caught:
            fill_storages(FIXTURES / name, {})
        assert caught.value.code == "no-holes"
    path = two(tmp_path / "x.pt")
    data = bytearray(path.read_bytes())
    place = next(storage.offset for storage in read_facts(path).storages if storage.key == "0")
    assert place is not None
    data[place - 3] ^= 1  # the padding in front of a hole
    path.write_bytes(data)
    with pytest.raises(Corrupt):
        fill_storages(path, {"0": bytes(12), "2": bytes(10)})
    assert path.read_bytes() == data


def test_what_is_not_laid_out_by_torch_has_no_calculated_offsets(tmp_path: Path) -> None:
    path = two(tmp_path / "x.pt")
    junk = tmp_path / "y.pt"
    junk.write_bytes(b"in front" + path.read_bytes())
    before = junk.read_bytes()
    with pytest.raises(Corrupt):
        fill_storages(junk, {"0": bytes(12), "2": bytes(10)})
    assert junk.read_bytes() == before


def test_holes_beyond_4_gib_are_filled_where_they_are(tmp_path: Path) -> None:
    """Behind a record that is a hole itself, so that the file needs no room."""
    records: dict[str, bytes | int] = {
        "data.pkl": pickled({"a": tensor(Storage("FloatStorage", "0", 3), (3,), (1,))}),
        ".format_version": b"1",
        "byteorder": b"little",
        "other": (1 << 32) + 5,
        "data/0": 12,
        "version": b"3\n",
    }
    path = tmp_path / "x.pt"
    placed = write_torch_zip(path, records)
    assert placed["data/0"].data > 1 << 32
    given = np.array([1.5, -2, 3], "<f4")
    assert fill_storages(path, {"0": given}) == ("0",)
    with path.open("rb") as file:
        file.seek(placed["data/0"].data)
        assert file.read(12) == given.tobytes()
    assert load_state(path)["a"].tolist() == [1.5, -2, 3]


# ------------------------------------------------------------------------------------------------------------------ real torch

SCRIPT = """
import base64
import os


def survey(torch):
    from torch._subclasses.fake_tensor import FakeTensorMode

    base = torch.arange(12, dtype=torch.float32).view(3, 4) - 5.5
    made = {{
        "base": base, "view": base.t()[1:], "longs": torch.tensor([-(2 ** 63), 7]), "empty": torch.zeros(0),
        "halves": torch.tensor([1.5, -2.0, float("nan")]).bfloat16(), "bools": torch.tensor([True, False, True]),
        "complex": torch.tensor([complex(1.5, -2.0)]), "one": torch.tensor(-0.5), "n": -1,
    }}
    if {alignment}:
        from torch.utils.serialization import config
        config.save.storage_alignment = {alignment}
    if not {crc32}:
        torch.serialization.set_crc32_options(False)
    for folder in ("whole", "skipped", "fake"):
        os.makedirs(folder)  # in its scratch folder: it can write nowhere else
    names = [os.path.join(folder, "made.pt") for folder in ("whole", "skipped", "fake")]
    torch.save(made, names[0])
    with torch.serialization.skip_data():
        torch.save(made, names[1])
    with FakeTensorMode() as mode:
        faked = mode.from_tensor(base)
        fake = {{"base": faked, "view": faked.t()[1:]}}
        for key in ("longs", "empty", "halves", "bools", "complex", "one"):
            fake[key] = mode.from_tensor(made[key])
        fake["n"] = -1
        with torch.serialization.skip_data(materialize_fake_tensors=True):
            torch.save(fake, names[2])
    return {{name: base64.b64encode(open(name, "rb").read()).decode() for name in names}}
"""


@pytest.mark.parametrize(
    ("release", "alignment", "crc32"),
    [
        pytest.param("2.13.0", 512, True, marks=pytest.mark.real_torch("2.13.0")),
        pytest.param("2.13.0", 0, False, marks=pytest.mark.real_torch("2.13.0")),
        pytest.param("2.5.1", 0, True, marks=pytest.mark.real_torch("2.5.1")),
    ],
)
def test_torch_reads_what_was_filled_as_what_it_writes_whole(release: str, alignment: int, crc32: bool, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT.format(alignment=alignment, crc32=crc32), encoding="utf-8")
    environment = Environments().get(release)
    assert environment is not None
    with TorchRelease(environment) as reader:
        result = reader.request("survey", script=str(tmp_path / "script.py"), timeout_s=120)["result"]
        for name, content in result.items():
            (tmp_path / name).parent.mkdir()
            (tmp_path / name).write_bytes(base64.b64decode(content))

        def loaded(folder: str, options: dict[str, Any]) -> Any:
            archive = str(tmp_path / folder / "made.pt")
            asked = reader.request("observe", path=archive, family="torch-save", calls=[], options=options)
            return asked["result"]["value"]

        whole = tmp_path / "whole/made.pt"
        with open_archive(whole) as archive:
            given = {
                storage.key: archive.record(f"data/{storage.key}") for storage in read_facts(archive).storages if storage.nbytes
            }
        expected = loaded("whole", {})
        for folder in ("skipped", "fake"):
            path = tmp_path / folder / "made.pt"
            assert loaded(folder, {}) != expected
            keys = fill_storages(path, given)
            assert set(keys) == set(given)
            for options in ({}, {"mmap": True}):
                compared = compare(
                    {"value": expected}, {"value": loaded(folder, options)}
                )  # mapped, what is empty has an address
                assert compared.result == "same", (folder, options, compared.differences)
        # but for the number of the archive, what was filled is what is written whole
        skipped = tmp_path / "skipped/made.pt"
        with open_archive(skipped) as filled, open_archive(whole) as other:
            assert isinstance(filled, ZipArchive)
            assert isinstance(other, ZipArchive)
            filled.verify()
            assert not filled.damage
            for member, two_ in zip(filled.members, other.members, strict=True):
                assert (member.name, member.header_offset, member.size) == (two_.name, two_.header_offset, two_.size)
                if member.record != ".data/serialization_id":
                    assert (member.crc, filled.record(member.record)) == (two_.crc, other.record(two_.record))
    state, wanted = load_state(skipped), load_state(whole)
    assert {key: np.asarray(item).tobytes() for key, item in state.items()} == {
        key: np.asarray(item).tobytes() for key, item in wanted.items()
    }
    assert base64.b64decode(expected["dict"][0][1]["tensor"]["bytes"]) == wanted["base"].tobytes()
