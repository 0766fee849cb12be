"""Every distributed checkpoint of the corpus: load_state and inspect agree with the records of real releases."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.recordings import readers_of
from torch_compat.archive_files import measure
from torch_compat.corpus.manifest import MANIFEST, DirectoryFixture, read_manifest
from torch_compat.formats import identify
from torch_compat.formats.content import content_digest
from torch_compat.inspection import inspect
from torch_compat.releases.release import Release
from torch_compat.state import load_state

if TYPE_CHECKING:
    from torch_compat.corpus.observations import ObservedReader

ROOT = Path(__file__).parents[2]
MANIFESTS = sorted((ROOT / "fixtures").glob(f"torch-*/{MANIFEST}"))


def fixtures(manifest: Path) -> list[DirectoryFixture]:
    return [fixture for fixture in read_manifest(manifest).fixtures if isinstance(fixture, DirectoryFixture)]


@pytest.fixture(scope="module")
def readers() -> dict[str, ObservedReader]:
    return {reader.release: reader for reader in readers_of(ROOT).values()}


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.parent.name)
@pytest.mark.sampled(3)
def test_every_directory_is_what_its_manifest_says(manifest: Path) -> None:
    for fixture in fixtures(manifest):
        path = manifest.parent / fixture.file
        assert measure(path) == (fixture.sha256, fixture.size, fixture.files), fixture.id
        assert (*identify(path), content_digest(path)) == (fixture.family, fixture.container, fixture.versions, fixture.content)
        result = inspect(path)
        assert (result["sha256"], result["size"], result["error"], result["damage"]) == (fixture.sha256, fixture.size, None, [])


def test_every_release_from_2_0_on_has_written_each_recipe() -> None:
    recipes = {path.stem for path in (ROOT / "fixtures" / "recipes").glob("distributed*.py")}
    assert len(recipes) >= 5
    written = {
        manifest.parent.name.removeprefix("torch-"): {fixture.recipe for fixture in fixtures(manifest)} for manifest in MANIFESTS
    }
    assert written == {version: recipes if Release(version) >= Release("2.0.0") else set() for version in written}


def same(expected: Any, got: Any) -> bool:
    """Whether a value of load_state has the types, shapes and bits of a neutral one. Strides and sharing are those of who loads."""
    if not isinstance(expected, dict):
        if isinstance(expected, list):
            return isinstance(got, list) and len(expected) == len(got) and all(map(same, expected, got))
        return bool(type(expected) is type(got) and expected == got)
    ((kind, body),) = expected.items()
    if kind == "tensor":
        whole = isinstance(got, np.ndarray) and list(got.shape) == body["shape"] and str(got.dtype) == body["dtype"]
        return whole and np.ascontiguousarray(got).tobytes() == base64.b64decode(body["bytes"])
    if kind == "float":
        return isinstance(got, float) and (got == float(body) or (got != got and body == "nan"))  # noqa: PLR0124
    if kind == "tuple":
        return isinstance(got, tuple) and len(body) == len(got) and all(map(same, body, got))
    if kind == "dict":
        keys = [key for key, _ in body]
        return isinstance(got, dict) and set(keys) == set(got) and all(same(value, got[key]) for key, value in body)
    return bool(kind == "object" and body["type"] == "bytes" and got == base64.b64decode(body["state"]))


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.parent.name)
@pytest.mark.sampled(3)
def test_load_state_gives_what_the_writer_reads_back(manifest: Path) -> None:
    for fixture in fixtures(manifest):
        own = fixture.golden if fixture.readback == "same" else fixture.readback
        assert isinstance(own, dict)
        path = manifest.parent / fixture.file
        assert same(own["value"], load_state(path)), fixture.id
        assert same(own["value"], load_state(path, mmap=False)), fixture.id


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.parent.name)
@pytest.mark.sampled(3)
def test_the_releases_that_inspect_names_are_those_that_loaded_it(manifest: Path, readers: dict[str, ObservedReader]) -> None:
    for fixture in fixtures(manifest):
        ways = inspect(manifest.parent / fixture.file)["how_to_load"]
        spans = [(Release(span["from"]), Release(span["to"])) for way in ways for span in way["releases"]]
        for release, reader in readers.items():
            cell = reader.cells.get((fixture.id, "default"))
            if cell is not None:
                told = any(first <= Release(release) <= last for first, last in spans)
                assert told is (cell.result != "refused"), (fixture.id, release)


@pytest.mark.parametrize(
    ("changed", "value"),
    [({"dtype": "float64"}, 1), ({"shape": [1, 2]}, 1), ({"bytes": base64.b64encode(b"\0" * 8).decode()}, 1), ({}, 2)],
)
def test_a_wrong_value_is_seen(changed: dict[str, Any], value: int) -> None:
    array = np.array([1.0, 2.0], np.float32)
    tensor = {"dtype": "float32", "shape": [2], "bytes": base64.b64encode(array.tobytes()).decode()}
    assert same({"dict": [["w", {"tensor": tensor}], ["n", 1]]}, {"w": array, "n": 1})
    assert not same({"dict": [["w", {"tensor": {**tensor, **changed}}], ["n", value]]}, {"w": array, "n": 1})
    assert not same({"dict": [["n", 1]]}, {"n": True})
