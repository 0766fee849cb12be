"""Distributed checkpoints: one row for a directory, and whole tensors out of its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import torch_compat
from tests.formats.checkpoints import Maker
from torch_compat.errors import Corrupt, Unsupported
from torch_compat.inspection import files_of

if TYPE_CHECKING:
    from pathlib import Path

WHOLE = np.arange(24, dtype=np.float32).reshape(4, 6)
HALVES = [((0, 0), (2, 6)), ((2, 0), (2, 6))]


@pytest.fixture
def maker(tmp_path: Path) -> Maker:
    made = Maker(tmp_path / "checkpoint")
    made.tensor("model.w", WHOLE, HALVES, files=2)
    made.tensor("b", np.arange(3), [((0,), (3,))])
    made.object("epoch", b"K\x07")
    made.paths = {"model.w": ("model", "w"), "b": ("b",), "epoch": ("epoch",)}
    return made


def row(folder: Path) -> dict[str, Any]:
    return torch_compat.inspect(str(folder))


def test_a_directory_is_one_sound_row_with_shapes_and_shards(maker: Maker) -> None:
    found = row(maker.write())
    assert (found["family"], found["container"], found["error"], found["damage"]) == ("distributed", "directory", None, [])
    assert found["kind"] == "distributed-checkpoint"
    about = found["about"]
    assert (about["tensors"], about["objects"], about["shards"], about["files"], about["missing"]) == (2, 1, 4, 2, [])
    assert about["shapes"] == {"model.w": "float32 [4, 6]", "b": "int64 [3]"}
    assert [one["key"] for one in found["storages"]] == ["model.w[0, 0]", "model.w[2, 0]", "b", "epoch"]
    assert found["size"] == sum(file.stat().st_size for file in maker.folder.iterdir())
    assert found["minimum_release"] == "2.0.0"


def test_its_files_have_no_rows_of_their_own(maker: Maker, tmp_path: Path) -> None:
    folder = maker.write()
    (folder / "notes.txt").write_text("x")
    assert list(files_of(str(tmp_path))) == [str(folder), str(folder / "notes.txt")]
    found = row(folder / "__0_0.distcp")
    assert found["error"]["code"] == "part-of-checkpoint"
    assert "inspect the directory" in found["error"]["message"]


def test_the_digest_is_of_names_and_files(maker: Maker) -> None:
    folder = maker.write()
    before = row(folder)["sha256"]
    assert row(folder)["sha256"] == before
    (folder / "__1_0.distcp").write_bytes((folder / "__1_0.distcp").read_bytes() + b"\0")
    assert row(folder)["sha256"] != before


def test_strides_are_read_by_the_releases_that_write_them(tmp_path: Path) -> None:
    made = Maker(tmp_path / "a", strided=True)
    made.tensor("w", WHOLE, HALVES)
    found = row(made.write())
    assert (found["minimum_release"], found["producer"]["from"]) == ("2.15.0", "2.15")
    (way,) = found["how_to_load"]
    assert way["call"].endswith("dcp_to_torch_save")
    assert not way["runs_code"]


def test_older_releases_load_it_in_another_way(maker: Maker) -> None:
    new, old = row(maker.write())["how_to_load"]
    assert (new["releases"][0]["from"], old["releases"]) == ("2.3.0", [{"from": "2.0.0", "to": "2.2.2"}])
    assert "load_state_dict" in old["code"]


def test_an_object_that_names_something_runs_code_when_it_is_loaded(maker: Maker) -> None:
    maker.object("args", b"cposix\nsystem\nX\x01\x00\x00\x00x\x85R")
    found = row(maker.write())
    assert all(way["runs_code"] for way in found["how_to_load"])
    assert [one["global"] for one in found["dangers"]] == ["posix.system"]


def test_tensors_come_whole(maker: Maker) -> None:
    found = torch_compat.load_state(maker.write())
    assert found["epoch"] == 7
    np.testing.assert_array_equal(found["model"]["w"], WHOLE)
    assert found["model"]["w"].dtype == np.float32
    np.testing.assert_array_equal(found["b"], [0, 1, 2])


def test_parts_along_any_dimension_are_put_in_their_places(tmp_path: Path) -> None:
    made = Maker(tmp_path / "a")
    made.tensor("w", WHOLE, [((0, 3), (4, 3)), ((0, 0), (2, 3)), ((2, 0), (2, 3))], files=3)
    np.testing.assert_array_equal(torch_compat.load_state(made.write())["w"], WHOLE)


def test_a_list_is_a_list_again(tmp_path: Path) -> None:
    made = Maker(tmp_path / "a")
    for at in range(2):
        made.object(f"groups.{at}.lr", b"K" + bytes([at]))
        made.paths[f"groups.{at}.lr"] = ("groups", at, "lr")
    assert torch_compat.load_state(made.write()) == {"groups": [{"lr": 0}, {"lr": 1}]}


def test_a_list_is_no_longer_than_its_values(tmp_path: Path) -> None:
    made = Maker(tmp_path / "a")
    made.object("x", b"K\x01")
    made.paths["x"] = ("x", 1 << 60)
    assert torch_compat.load_state(made.write()) == {"x": {1 << 60: 1}}


def test_what_is_missing_is_named(maker: Maker) -> None:
    folder = maker.write()
    (folder / "__1_0.distcp").unlink()
    found = row(folder)
    assert [(one["code"], one["record"]) for one in found["damage"]] == [("missing-file", "__1_0.distcp")]
    assert found["how_to_load"] == []
    with pytest.raises(torch_compat.errors.UsageError, match="file not found"):
        torch_compat.load_state(folder)


def test_a_part_that_is_stored_nowhere_is_missing(maker: Maker) -> None:
    maker.places.pop(next(iter(maker.places)))
    folder = maker.write()
    assert row(folder)["about"]["missing"] == ["model.w"]
    assert row(folder)["damage"][0]["code"] == "missing-shard"
    with pytest.raises(Corrupt, match="has no location"):
        torch_compat.load_state(folder)


def test_a_file_that_is_cut_off_or_changed_is_damaged(maker: Maker) -> None:
    folder = maker.write()
    whole = (folder / "__1_0.distcp").read_bytes()
    (folder / "__1_0.distcp").write_bytes(whole[:-10])
    assert row(folder)["damage"][0]["code"] == "cut-off"
    data = bytearray(whole)
    data[data.index(WHOLE[2:].tobytes())] ^= 1
    (folder / "__1_0.distcp").write_bytes(data)
    assert row(folder)["damage"][0]["code"] == "crc-mismatch"
    with pytest.raises(Corrupt):
        torch_compat.load_state(folder)


@pytest.mark.parametrize("file", ["/etc/hostname", "../x", "a/../../x", "a\\b", "C:x", "", "a//b", "\x1b[2J"])
def test_a_place_outside_of_the_directory_is_refused(file: str, tmp_path: Path) -> None:
    made = Maker(tmp_path / "a")
    made.object("x", b"K\x01")
    next(iter(made.places.values())).relative_path = file
    folder = made.write() if file == "__0_0.distcp" else _written(made)
    assert row(folder)["error"]["code"] == "bad-metadata"
    with pytest.raises(Corrupt, match="not a file in the directory"):
        torch_compat.load_state(folder)


def _written(made: Maker) -> Path:
    made.files = {}
    return made.write()


@pytest.mark.parametrize(
    ("shape", "parts", "said"),
    [
        ((1 << 40, 1 << 20), [((0, 0), (1 << 40, 1 << 20))], "metadata states"),  # only stated: nothing is allocated
        ((4, 6), [((0, 0), (4, 5))], "expected 24"),
        ((4, 6), [((1, 0), (4, 6))], "outside its shape"),
        ((4, 6), [((0,), (4,))], "outside its shape"),
        ((-4, 6), [((0, 0), (4, 6))], "the size of"),
    ],
)
def test_shapes_and_chunks_are_checked_before_memory_is_asked_for(
    shape: tuple[int, ...], parts: list[Any], said: str, tmp_path: Path
) -> None:
    made = Maker(tmp_path / "a")
    made.tensor("w", WHOLE, [((0, 0), (4, 6))])
    made.values["w"].size = shape
    made.values["w"].chunks = [made.new("ChunkStorageMetadata", offsets=start, sizes=sizes) for start, sizes in parts]
    with pytest.raises(Corrupt, match=said):
        torch_compat.load_state(made.write())


def test_parts_that_overlap_are_refused(tmp_path: Path) -> None:
    made = Maker(tmp_path / "a")
    made.tensor("w", WHOLE, [((0, 0), (2, 6)), ((1, 0), (2, 6))])
    with pytest.raises(Corrupt, match="overlap"):
        torch_compat.load_state(made.write())


def test_a_compressed_entry_is_unsupported(tmp_path: Path) -> None:
    made = Maker(tmp_path / "a")
    made.object("x", b"K\x01")
    next(iter(made.places.values())).transform_descriptors = ("zstd",)
    folder = made.write()
    assert row(folder)["error"] is None
    with pytest.raises(Unsupported, match="zstd"):
        torch_compat.load_state(folder)


def test_metadata_of_another_form_is_an_error_and_no_fault(tmp_path: Path) -> None:
    made = Maker(tmp_path / "a")
    made.values = {3: None}
    assert row(made.write())["error"]["code"] == "bad-metadata"
    made.values = {"x": 5}
    assert row(made.write())["error"]["code"] == "bad-metadata"
