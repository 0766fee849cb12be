"""Every archive of the repository matches its manifest; each is opened once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.repository.packed import offsets_of
from torch_compat.archive import open_archive
from torch_compat.corpus.manifest import MANIFEST, DirectoryFixture, read_manifest
from torch_compat.errors import ArchiveError
from torch_compat.formats import identify
from torch_compat.formats.content import content_digest

MANIFESTS = sorted((Path(__file__).parents[2] / "fixtures").glob(f"*/{MANIFEST}"))


def test_there_are_manifests() -> None:
    assert len(MANIFESTS) >= 5


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.parent.name)
@pytest.mark.sampled(3)
def test_every_archive_is_what_its_manifest_says(path: Path) -> None:
    manifest = read_manifest(path)
    assert manifest.fixtures
    wrong = []
    for fixture in manifest.fixtures:
        file = path.parent / fixture.file
        if isinstance(fixture, DirectoryFixture):  # of no archive that open_archive opens: test_distributed.py
            continue
        try:
            with offsets_of(fixture.recipe):
                archive = open_archive(file)
                result = identify(file)
                message = (result.family, result.container, result.versions, content_digest(file))
            records = all(isinstance(archive.record(name), bytes) for name in archive.names)
        except ArchiveError as error:
            wrong.append(f"{fixture.id}: {error}")
            continue
        if message != (fixture.family, fixture.container, fixture.versions, fixture.content):
            wrong.append(f"{fixture.id}: {message}")
        if (
            archive.container != fixture.container
            or bool(archive.names) is not (fixture.container in {"zip", "tar"})
            or not records
        ):
            wrong.append(f"{fixture.id}: {archive.container} with {len(archive.names)} records")
    assert wrong == []
