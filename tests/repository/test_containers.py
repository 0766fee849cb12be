"""No archive of the repository is damaged, every byte of it is accounted for, and its offsets can be calculated."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.repository.packed import PACKED_AGAIN
from torch_compat.archive import ZipArchive, open_archive
from torch_compat.corpus.manifest import MANIFEST, DirectoryFixture, Fixture, read_manifest

MANIFESTS = sorted((Path(__file__).parents[2] / "fixtures").glob(f"*/{MANIFEST}"))
BY_ZIPFILE = {
    "serialized_exported_program.json",
    "archive_format",
}  # what torch.export.save of 2.1 to 2.8 wrote without torch's writer
STORAGES_WITHOUT = {"save_fake_tensors", "save_skip_data"}  # the room for storages is left, and nothing written into it


def files(path: Path) -> list[Fixture]:
    """The fixtures that are one file. The entries of a directory are archives without a file of their own: test_distributed.py."""
    return [fixture for fixture in read_manifest(path).fixtures if not isinstance(fixture, DirectoryFixture)]


def test_there_are_manifests() -> None:
    assert len(MANIFESTS) >= 34


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.parent.name)
@pytest.mark.sampled(3)
def test_no_archive_is_damaged(path: Path) -> None:
    for fixture in files(path):
        again = fixture.recipe in PACKED_AGAIN
        with open_archive(path.parent / fixture.file, verify_offsets=not again) as archive:
            archive.verify()
            assert archive.damage == [], fixture.id
            if not isinstance(archive, ZipArchive):
                continue
            without = again or BY_ZIPFILE & {*archive.names} or path.parent.name == "synthetic"
            assert archive.torch or without, fixture.id
            assert not (archive.torch and again), fixture.id
            if archive.torch:
                offsets = archive.calculated_offsets()
                assert offsets == [(member.header_offset, member.data_offset) for member in archive.members], fixture.id
            with zipfile.ZipFile(archive.path) as oracle:
                assert [member.name for member in archive.members] == oracle.namelist(), fixture.id


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.parent.name)
@pytest.mark.sampled(3)
def test_records_without_checksum_are_those_that_were_written_so(path: Path) -> None:
    for fixture in files(path):
        with open_archive(path.parent / fixture.file) as archive:
            archive.verify()
            if isinstance(archive, ZipArchive):
                unprotected = {member.record for member in archive.members if not member.protected}
                filled = {member.record for member in archive.members if member.size}
                storages = {name for name in filled if name.startswith("data/")}
                everything = fixture.recipe == "save_without_crc32"
                wanted = filled if everything else storages if fixture.recipe in STORAGES_WITHOUT else set()
                assert unprotected == wanted, fixture.id
