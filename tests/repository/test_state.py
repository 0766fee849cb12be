"""Every torch-save fixture of every writer is read, without torch, as its writer reads it back.

If the writer refused its own file, or reads varying data, or reads something else than it saved, the saved data counts. Each such
fixture is listed here, with the reason derived from the recorded evidence, as is data that no reader can know because the file does
not contain it.
"""

from __future__ import annotations

import collections
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.recordings import readers_of
from tests.repository.packed import offsets_of
from tests.state.neutral import Neutral
from torch_compat.corpus.manifest import Fixture, Synthetic, read_manifest
from torch_compat.errors import Corrupt
from torch_compat.formats.facts import read_facts
from torch_compat.pickles import Tensor
from torch_compat.policy import load_policy
from torch_compat.state import load_state
from torch_compat.values.compare import compare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.corpus.observations import Observation

ROOT = Path(__file__).parents[2]
ORDER = ("default", "little-endian", "mmap", "mmap-calculated", "weights-only")  # default options first

SAME = "as its writer reads it back"
UNRESTRICTED = "its writer refuses it by default, and reads it back without weights_only"
REFUSED = "its writer refuses it: what was saved counts"
OTHER = "its writer reads something else than it saved: what was saved counts"
LOST = "its writer reads something else than it saved, and so does everybody: the file does not hold what was saved"
NOBODY = "its own writer refuses it, and it is refused here as well"
ABSENT = "its storages were skipped: absent, where torch shows zeros; the rest as its writer reads it back"
SYNTHETIC = "no release wrote it: as the rules of its format say"

WRITERS = load_policy(ROOT / "policies" / "torch").corpus.writers
FROM_1_4 = " ".join(WRITERS[WRITERS.index("1.4.0") :])
FROM_2_2 = " ".join(WRITERS[WRITERS.index("2.2.2") :])
FROM_2_6 = " ".join(WRITERS[WRITERS.index("2.6.0") :])
ALL = " ".join(WRITERS)
MODULES = "activation container conv dropout linear loss normalization padding pooling recurrent reshaping transformer"
# of a recipe that few releases write, those of them that did
LISTED = {
    **{(UNRESTRICTED, f"nn_{name}"): FROM_2_6 for name in MODULES.split()},
    (UNRESTRICTED, "dtypes_whole_module"): FROM_2_6,
    (REFUSED, "dtypes_stream"): FROM_2_2,
    (REFUSED, "dtypes_whole_module_stream"): FROM_2_2,
    (UNRESTRICTED, "save_containers"): FROM_2_6,
    (UNRESTRICTED, "save_module_buffers"): FROM_2_6,
    (UNRESTRICTED, "save_module_cnn"): FROM_2_6,
    (UNRESTRICTED, "save_module_stream"): FROM_2_6,
    (UNRESTRICTED, "save_numpy_values"): FROM_2_6,
    (UNRESTRICTED, "save_parameters"): FROM_2_6,
    (UNRESTRICTED, "save_pickle_protocol_5"): FROM_2_6,
    (UNRESTRICTED, "save_python_values"): FROM_2_6,
    (UNRESTRICTED, "whole_module"): FROM_2_6,
    (REFUSED, "save_class_of_the_writer"): ALL,
    (REFUSED, "save_float8_stream"): FROM_2_2,
    (REFUSED, "save_nested_stream"): FROM_2_2,
    (REFUSED, "save_sparse_coo"): "1.4.0 1.5.0 1.5.1",
    (REFUSED, "save_sparse_stream_last"): "1.4.0 1.5.0 1.5.1 1.6.0",
    (REFUSED, "save_without_version"): FROM_1_4,
    (NOBODY, "save_nested_none"): FROM_2_2,
    (UNRESTRICTED, "save_nested"): "2.15.0",
    (UNRESTRICTED, "save_nested_empty"): "2.15.0",
    (UNRESTRICTED, "save_nested_views"): "2.15.0",
    (OTHER, "save_one_storage_many_dtypes"): "1.8.1 1.9.1 1.10.2",
    (OTHER, "save_storages"): "1.11.0",
    (LOST, "save_conjugates"): "1.10.2 1.11.0 1.12.1 1.13.1",
    (LOST, "save_negatives"): "1.10.2 1.11.0 1.12.1 1.13.1",
    (ABSENT, "save_fake_tensors"): f"2.5.0 2.5.1 {FROM_2_6}",
    (ABSENT, "save_skip_data"): f"2.5.0 2.5.1 {FROM_2_6}",
    (SYNTHETIC, "big_endian"): "synthetic",
    (SYNTHETIC, "big_endian_stream"): "synthetic",
    (SYNTHETIC, "tar"): "synthetic",
}


def fixtures() -> Iterator[tuple[Fixture, Path, list[Observation]]]:
    """Every torch-save fixture, its file, and what its writer did with it under each set of options."""
    readers = {reader.release: reader for reader in readers_of(ROOT).values()}
    for folder in [*(ROOT / "fixtures").glob("torch-*"), ROOT / "fixtures/synthetic"]:
        manifest = read_manifest(folder / "manifest.jsonl")
        observed = None if manifest.release == "synthetic" else readers[manifest.release]
        for fixture in manifest.fixtures:
            if fixture.family == "torch-save":
                result = [] if observed is None else [observed.cells.get((fixture.id, options)) for options in ORDER]
                yield fixture, folder / fixture.file, [item for item in result if item is not None]


def plain(value: Any) -> Any:
    """Keys in one order, and the one name that changes with numpy, not with torch."""
    return json.loads(json.dumps(value, sort_keys=True).replace('"numpy.bool"', '"numpy.bool_"'))


def judged(fixture: Fixture, path: Path, cells: list[Observation]) -> str:
    """The reason why what is read of a fixture is what it has to be; fails where it is not."""
    neutral = Neutral()
    try:
        loaded = load_state(path, with_types=True)
    except Corrupt:
        assert cells, fixture.id
        assert all(cell.result == "refused" for cell in cells), fixture.id
        return NOBODY
    got = plain({"value": neutral.encode(loaded)})
    golden = plain(fixture.golden)
    saved = compare(golden, got)
    cell = next((item for item in cells if item.result != "refused"), None)
    if not cells:
        assert isinstance(fixture, Synthetic)
        assert saved.result == "same", (fixture.id, saved.differences)
        return SYNTHETIC
    if cell is None:
        assert saved.result == "same", (fixture.id, saved.differences)
        return REFUSED
    own = compare(plain(cell.own_result(fixture.golden)), got)
    if cell.result == "differs":
        if saved.result == "same":
            return OTHER
        assert own.result == "same", (fixture.id, own.differences)
        assert alike_in_file(path, golden), f"{fixture.id}: the file tells apart what was saved"
        return LOST
    assert cell.result == "same"
    assert own.result == "same", (fixture.id, own.differences)
    if neutral.absent:
        assert neutral.absent == sum(item.absent for item in named_absent(path))
        return ABSENT
    return SAME if cell is cells[0] else UNRESTRICTED


def named_absent(path: Path) -> list[Any]:
    """For each tensor of the file the record of its storage."""
    facts = read_facts(path)
    records = {storage.key: storage for storage in facts.storages}
    tensors = [item for item in facts.pickles["data.pkl"].value.values() if isinstance(item, Tensor) and item.storage]
    return [records[tensor.storage.key] for tensor in tensors if tensor.storage]


def alike_in_file(path: Path, golden: dict[str, Any]) -> bool:
    """Whether the file says the same of two tensors that held different numbers."""
    messages: dict[Any, str] = {}
    values = {key: item["tensor"]["bytes"] for key, item in golden["value"]["dict"]}
    for key, tensor in read_facts(path).pickles["data.pkl"].value.items():
        same = (tensor.storage.key, tensor.shape, tensor.strides, tensor.offset, tensor.conj, tensor.neg, tensor.rebuilt_by)
        if values[messages.setdefault(same, key)] != values[key]:
            return True
    return False


def test_every_fixture_is_read_as_its_writer_reads_it_or_listed_with_the_reason() -> None:
    results: dict[tuple[str, str], list[str]] = {}
    counts: collections.Counter[str] = collections.Counter()
    wrote: dict[str, set[str]] = {}
    for fixture, path, cells in fixtures():
        wrote.setdefault(fixture.recipe, set()).add(fixture.release)
        with offsets_of(fixture.recipe):
            reason = judged(fixture, path, cells)
        counts[reason] += 1
        if reason != SAME:
            results.setdefault((reason, fixture.recipe), []).append(fixture.release)
    assert {key: set(releases) for key, releases in results.items()} == {
        key: wrote[key[1]].intersection(message.split()) for key, message in LISTED.items()
    }
    assert counts.total() >= 1066
    assert counts[SAME] >= 903


@pytest.mark.parametrize("release", ["1.0.0", "1.5.1", "2.13.0"])
def test_without_types_and_copied_it_is_the_same(release: str) -> None:
    folder = ROOT / f"fixtures/torch-{release}"
    for fixture in read_manifest(folder / "manifest.jsonl").fixtures:
        if fixture.family == "torch-save" and (NOBODY, fixture.recipe) not in LISTED:
            with offsets_of(fixture.recipe):
                typed = [Neutral().encode(load_state(folder / fixture.file, with_types=True, mmap=way)) for way in (None, False)]
            assert json.dumps(typed[0]) == json.dumps(typed[1]), fixture.id
