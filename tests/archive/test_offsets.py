"""Calculated offsets, compared with written archives of up to more than 4 GiB (sparse), and with torch itself."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tools.faults.torch_zip import write_torch_zip
from torch_compat.archive import ZipArchive, open_archive
from torch_compat.archive.offsets import calculated_offsets, data_offset, next_header_offset, zip64_field_length
from torch_compat.readers.environments import Environments

M = 0xFFFFFFFF
NEAR = st.sampled_from([M - 65, M - 64, M - 1, M, M + 1, M + 64, 2 * M, 2 * M + 1])
SIZES = st.one_of(st.integers(0, 300), st.integers(0, 1 << 20), NEAR)
ALIGNMENTS = st.one_of(st.sampled_from([1, 2, 64, 4096, 65536]), st.integers(1, 5000))


def opened(path: Path) -> ZipArchive:
    archive = open_archive(path, verify_offsets=False)
    assert isinstance(archive, ZipArchive)
    return archive


@settings(deadline=None, max_examples=60)
@given(
    sizes=st.lists(SIZES, min_size=1, max_size=7),
    alignment=ALIGNMENTS.filter(lambda item: item < 1 << 16),
    folder=st.text("ab", min_size=1, max_size=200),
    longest=st.integers(1, 3000),
)
@example(sizes=[M, 0, 1, 0], alignment=64, folder="archive", longest=1)  # an empty record behind 4 GiB
@example(sizes=[M - 1, 1], alignment=1, folder="archive", longest=1)
@example(sizes=[M - 64, 0, 0, 5], alignment=64, folder="archive", longest=1)  # headers around the threshold
def test_calculated_offsets_are_those_of_the_archive(sizes: list[int], alignment: int, folder: str, longest: int) -> None:
    """Of alignments that the padding in an extra field, of at most 65,535 bytes, can bring about behind any header."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "sparse.pt"
        text = str(alignment).encode()
        records: dict[str, bytes | int] = {".format_version": b"1", ".storage_alignment": text}
        records |= {f"data/{'x' * (longest * number // len(sizes))}{number}": size for number, size in enumerate(sizes)}
        written = write_torch_zip(path, records, folder=folder, alignment=alignment)
        assert path.stat().st_blocks * 512 < 2 << 20  # sparse indeed
        with opened(path) as archive:
            assert archive.alignment() == alignment
            assert archive.calculated_offsets() == [(item.header, item.data) for item in written.values()]
            assert [archive.member(name).data_offset for name in records] == [item.data for item in written.values()]
            assert [archive.member(name).end for name in records] == [item.end for item in written.values()]
            assert [archive.member(name).size for name in records] == [
                data if isinstance(data, int) else len(data) for data in records.values()
            ]
            archive.verify_offsets()
            assert archive.torch
            assert archive.damage == []


@given(cursor=st.integers(0, 2 * M), length=st.integers(1, 70000), size=SIZES, alignment=ALIGNMENTS)
def test_data_start_at_the_first_aligned_offset_behind_their_header(cursor: int, length: int, size: int, alignment: int) -> None:
    start = data_offset(cursor, length, size, alignment)
    least = cursor + 30 + length + zip64_field_length(cursor, size) + 4
    assert start % alignment == 0
    assert least <= start < least + alignment


@pytest.mark.parametrize(
    ("header", "size", "field", "footer"),
    [
        (0, 0, 0, 0),
        (0, 1, 0, 16),
        (0, M - 1, 0, 16),
        (0, M, 20, 24),
        (M - 1, 1, 0, 16),
        (M, 1, 12, 24),
        (M, 0, 12, 0),
        (M, M, 28, 24),
    ],
)
def test_zip64_begins_at_its_own_mark(header: int, size: int, field: int, footer: int) -> None:
    assert zip64_field_length(header, size) == field
    start = data_offset(header, 9, size, 1)
    assert start == header + 30 + 9 + field + 4
    assert next_header_offset(header, start, size) == start + size + footer


def test_compressed_records_take_the_room_that_they_have_in_the_file(tmp_path: Path) -> None:
    records: dict[str, bytes | int] = {"code/a.py": b"pass\n" * 99, "data/0": b"1234"}
    written = write_torch_zip(tmp_path / "a", records, deflate=frozenset({"code/a.py"}))
    with opened(tmp_path / "a") as archive:
        assert archive.calculated_offsets() == [(item.header, item.data) for item in written.values()]
        lying = [(member.name_length, member.size, member.size) for member in archive.members]
        assert calculated_offsets(lying) != archive.calculated_offsets()


def test_a_first_header_may_stand_elsewhere() -> None:
    assert calculated_offsets([(5, 10, 10)], cursor=100) == [(100, 192)]


SCRIPT = """
import io, json, sys, torch
grid, records = json.load(sys.stdin)
out = []
buffer = io.BytesIO()
torch.save({"a": torch.arange(5), "b": torch.zeros(0), "c": torch.arange(300.0)}, buffer)
buffer.seek(0)
reader = torch._C.PyTorchFileReader(buffer)
for cursor, name, size, alignment in grid:
    out.append(reader.get_record_offset_no_read(cursor, name, size, alignment))
with open(sys.argv[1], "wb") as stream:
    stream.write(buffer.getvalue())
real = {name: [reader.get_record_header_offset(name), reader.get_record_offset(name)] for name in reader.get_all_records()}
big = []
for alignment in records:
    path = sys.argv[1] + "." + str(alignment)
    writer = torch._C.PyTorchFileWriter(path, True, alignment)
    for number, size in enumerate((0, 1, 63, 64, 65, 4097, 0)):
        writer.write_record("data/%d" % number, b"x" * size, size)
    writer.write_end_of_file()
    one = torch._C.PyTorchFileReader(path)
    big.append({name: [one.get_record_header_offset(name), one.get_record_offset(name)] for name in one.get_all_records()})
json.dump([out, real, big], sys.stdout)
"""


@pytest.mark.real_torch("2.13.0")
def test_torch_calculates_and_writes_the_same(tmp_path: Path) -> None:
    environment = Environments().get("2.13.0")
    assert environment is not None
    edges = [0, 1, 63, 64, 100000, M - 100, M - 1, M, M + 1, 2 * M]
    grid = [
        (cursor, name, size, alignment)
        for cursor in edges
        for name in ("data/0", "x" * 1000)
        for size in edges
        for alignment in (1, 7, 64, 4096)
    ]
    alignments = [1, 7, 64, 4096, 60000]
    path = tmp_path / "torch.pt"
    run = subprocess.run(
        [environment.python, "-c", SCRIPT, str(path)],
        input=json.dumps([grid, alignments]),
        capture_output=True,
        text=True,
        check=False,
        env=environment.environ(),
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    calculated, real, written = json.loads(run.stdout)
    prefix = len("archive/")
    assert calculated == [data_offset(cursor, prefix + len(name), size, alignment) for cursor, name, size, alignment in grid]
    for file, message, alignment in [(path, real, 64)] + [
        (Path(f"{path}.{alignment}"), text, alignment) for alignment, text in zip(alignments, written, strict=True)
    ]:
        with opened(file) as archive:
            archive.verify()
            assert archive.damage == []
            assert archive.torch
            ours = archive.calculated_offsets(alignment)
            assert {name: list(pair) for name, pair in zip(archive.names, ours, strict=True)} == message
            assert {name: archive.member(name).data_offset for name in archive.names} == {
                name: pair[1] for name, pair in message.items()
            }
