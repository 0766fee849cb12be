"""Distributed checkpoints: one row for a directory, and whole tensors assembled from its parts."""

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
    result = Maker(tmp_path / "checkpoint")
    result.tensor("model.w", WHOLE, HALVES, files=2)
    result.tensor("b", np.arange(3), [((0,), (3,))])
    result.object("epoch", b"K\x07")
    result.paths = {"model.w": ("model", "w"), "b": ("b",), "epoch": ("epoch",)}
    return result


def row(folder: Path) -> dict[str, Any]:
    return torch_compat.inspect(str(folder))


def test_a_directory_is_one_sound_row_with_shapes_and_shards(maker: Maker) -> None:
    result = row(maker.write())
    assert (result["family"], result["container"], result["error"], result["damage"]) == ("distributed", "directory", None, [])
    assert result["kind"] == "distributed-checkpoint"
    about = result["about"]
    assert (about["tensors"], about["objects"], about["shards"], about["files"], about["missing"]) == (2, 1, 4, 2, [])
    assert about["shapes"] == {"model.w": "float32 [4, 6]", "b": "int64 [3]"}
    assert [storage["key"] for storage in result["storages"]] == ["model.w[0, 0]", "model.w[2, 0]", "b", "epoch"]
    assert result["size"] == sum(file.stat().st_size for file in maker.folder.iterdir())
    assert result["minimum_release"] == "2.0.0"


def test_its_files_have_no_rows_of_their_own(maker: Maker, tmp_path: Path) -> None:
    folder = maker.write()
    (folder / "notes.txt").write_text("x")
    assert list(files_of(str(tmp_path))) == [str(folder), str(folder / "notes.txt")]
    result = row(folder / "__0_0.distcp")
    assert result["error"]["code"] == "part-of-checkpoint"
    assert "inspect the directory" in result["error"]["message"]


def test_the_digest_is_of_names_and_files(maker: Maker) -> None:
    folder = maker.write()
    before = row(folder)["sha256"]
    assert row(folder)["sha256"] == before
    (folder / "__1_0.distcp").write_bytes((folder / "__1_0.distcp").read_bytes() + b"\0")
    assert row(folder)["sha256"] != before


def test_strides_are_read_by_the_releases_that_write_them(tmp_path: Path) -> None:
    product = Maker(tmp_path / "a", strided=True)
    product.tensor("w", WHOLE, HALVES)
    result = row(product.write())
    assert (result["minimum_release"], result["producer"]["from"]) == ("2.15.0", "2.15")
    (way,) = result["how_to_load"]
    assert way["call"].endswith("dcp_to_torch_save")
    assert not way["runs_code"]


def test_older_releases_load_it_in_another_way(maker: Maker) -> None:
    new, old = row(maker.write())["how_to_load"]
    assert (new["releases"][0]["from"], old["releases"]) == ("2.3.0", [{"from": "2.0.0", "to": "2.2.2"}])
    assert "load_state_dict" in old["code"]


def test_an_object_that_names_something_runs_code_when_it_is_loaded(maker: Maker) -> None:
    maker.object("args", b"cposix\nsystem\nX\x01\x00\x00\x00x\x85R")
    result = row(maker.write())
    assert all(way["runs_code"] for way in result["how_to_load"])
    assert [danger["global"] for danger in result["dangers"]] == ["posix.system"]


def test_tensors_come_whole(maker: Maker) -> None:
    result = torch_compat.load_state(maker.write())
    assert result["epoch"] == 7
    np.testing.assert_array_equal(result["model"]["w"], WHOLE)
    assert result["model"]["w"].dtype == np.float32
    np.testing.assert_array_equal(result["b"], [0, 1, 2])


def test_parts_along_any_dimension_are_put_in_their_places(tmp_path: Path) -> None:
    result = Maker(tmp_path / "a")
    result.tensor("w", WHOLE, [((0, 3), (4, 3)), ((0, 0), (2, 3)), ((2, 0), (2, 3))], files=3)
    np.testing.assert_array_equal(torch_compat.load_state(result.write())["w"], WHOLE)


def test_a_list_is_a_list_again(tmp_path: Path) -> None:
    result = Maker(tmp_path / "a")
    for at in range(2):
        result.object(f"groups.{at}.lr", b"K" + bytes([at]))
        result.paths[f"groups.{at}.lr"] = ("groups", at, "lr")
    assert torch_compat.load_state(result.write()) == {"groups": [{"lr": 0}, {"lr": 1}]}


def test_a_list_is_no_longer_than_its_values(tmp_path: Path) -> None:
    result = Maker(tmp_path / "a")
    result.object("x", b"K\x01")
    result.paths["x"] = ("x", 1 << 60)
    assert torch_compat.load_state(result.write()) == {"x": {1 << 60: 1}}


def test_what_is_missing_is_named(maker: Maker) -> None:
    folder = maker.write()
    (folder / "__1_0.distcp").unlink()
    result = row(folder)
    assert [(item["code"], item["record"]) for item in result["damage"]] == [("missing-file", "__1_0.distcp")]
    assert result["how_to_load"] == []
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
    result = Maker(tmp_path / "a")
    result.object("x", b"K\x01")
    next(iter(result.places.values())).relative_path = file
    folder = result.write() if file == "__0_0.distcp" else _written(result)
    assert row(folder)["error"]["code"] == "bad-metadata"
    with pytest.raises(Corrupt, match="not a file in the directory"):
        torch_compat.load_state(folder)


def _written(value: Maker) -> Path:
    value.files = {}
    return value.write()


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
    result = Maker(tmp_path / "a")
    result.tensor("w", WHOLE, [((0, 0), (4, 6))])
    result.values["w"].size = shape
    result.values["w"].chunks = [result.new("ChunkStorageMetadata", offsets=start, sizes=sizes) for start, sizes in parts]
    with pytest.raises(Corrupt, match=said):
        torch_compat.load_state(result.write())


def test_parts_that_overlap_are_refused(tmp_path: Path) -> None:
    result = Maker(tmp_path / "a")
    result.tensor("w", WHOLE, [((0, 0), (2, 6)), ((1, 0), (2, 6))])
    with pytest.raises(Corrupt, match="overlap"):
        torch_compat.load_state(result.write())


def test_a_compressed_entry_is_unsupported(tmp_path: Path) -> None:
    result = Maker(tmp_path / "a")
    result.object("x", b"K\x01")
    next(iter(result.places.values())).transform_descriptors = ("zstd",)
    folder = result.write()
    assert row(folder)["error"] is None
    with pytest.raises(Unsupported, match="zstd"):
        torch_compat.load_state(folder)


def test_metadata_of_another_form_is_an_error_and_no_fault(tmp_path: Path) -> None:
    result = Maker(tmp_path / "a")
    result.values = {3: None}
    assert row(result.write())["error"]["code"] == "bad-metadata"
    result.values = {"x": 5}
    assert row(result.write())["error"]["code"] == "bad-metadata"
