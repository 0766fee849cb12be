"""``inspect`` of an exported program with 1 GiB of weights reads no weights; the pages that the system read from the file are counted.

Only the digest and the checksums of the records read all bytes of a file up to ``allowance.HASHED``.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import sys
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from tests.runtime.exported.documents import document
from tools.faults.torch_zip import write_torch_zip
from torch_compat.cli.inspect import inspect as inspect_command
from torch_compat.errors import UsageError
from torch_compat.inspection import inspect

if TYPE_CHECKING:
    from pathlib import Path

GIGABYTE = 1 << 30
FEW = 16 << 20  # bytes that the system may read ahead
FLOAT = 7  # ScalarType of the export schema


def large(path: Path, config: int = 0) -> None:
    """A pt2 archive whose weight is a hole: no byte of it is on the disk.

    Parameters:
        config: bytes of a hole that stands for what the weights are.
    """
    meta = {"dtype": FLOAT, "sizes": [{"as_int": GIGABYTE // 4}], "strides": [{"as_int": 1}], "storage_offset": {"as_int": 0}}
    weights = {"config": {"w": {"path_name": "weight_0", "is_param": True, "use_pickle": False, "tensor_meta": meta}}}
    records: dict[str, bytes | int] = {
        "data/weights/model_weights_config.json": config or json.dumps(weights).encode(),
        "data/weights/weight_0": GIGABYTE,
        "data/constants/model_constants_config.json": b'{"config": {}}',
        "models/model.json": json.dumps(document(["x"], [], ["x"])).encode(),
        "archive_format": b"pt2",
        "archive_version": b"0",
        ".data/version": b"6\n",
        "byteorder": b"little",
    }
    write_torch_zip(path, records, folder="m")


def resident(path: Path) -> int:
    """The bytes of a file that the system has in memory."""
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        start = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
        pages = (ctypes.c_ubyte * (-(-len(mapped) // mmap.PAGESIZE)))()
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.mincore(ctypes.c_void_p(start), ctypes.c_size_t(len(mapped)), pages) == 0
        return mmap.PAGESIZE * sum(bytes(pages).count(value) for value in range(1, 256, 2))


@pytest.mark.skipif(sys.platform != "linux", reason="the pages of a file are counted as Linux tells them")
def test_a_gigabyte_of_weights_is_read_for_digest_and_checksums_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("allowance", "inspection"):
        monkeypatch.setattr(f"torch_compat.{module}.HASHED", FEW)
    path = tmp_path / "large.pt2"
    large(path)
    assert path.stat().st_size > GIGABYTE
    result = inspect(path)
    assert {item["what"] for item in result["omitted"]} == {"sha256", "checksums"}
    assert result["error"] is None
    assert result["family"] == "export"
    assert [storage["nbytes"] for storage in result["storages"]] == [GIGABYTE]
    assert resident(path) < FEW
    with path.open("rb") as file:  # what is read is counted
        for _ in range(64):
            file.read(1 << 20)
    assert resident(path) > FEW


@pytest.mark.skipif(sys.platform != "linux", reason="the pages of a file are counted as Linux tells them")
def test_a_quick_look_reads_no_weights(tmp_path: Path) -> None:
    path = tmp_path / "large.pt2"
    large(path)
    asked = CliRunner().invoke(inspect_command, [str(path), "--quick", "--format", "json"], standalone_mode=False)
    assert asked.return_value == 0
    (row,) = json.loads(asked.output)["archives"]
    assert {item["what"] for item in row["omitted"]} == {"sha256", "checksums"}
    assert row["sha256"] is None
    assert [storage["nbytes"] for storage in row["storages"]] == [GIGABYTE]
    assert resident(path) < FEW


def test_a_quick_look_does_not_answer_whether_a_file_is_damaged(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--quick does not verify checksums, so --fail-on damage cannot be checked"):
        CliRunner().invoke(
            inspect_command, [str(tmp_path), "--quick", "--fail-on", "damage"], standalone_mode=False, catch_exceptions=False
        )


@pytest.mark.skipif(sys.platform != "linux", reason="the pages of a file are counted as Linux tells them")
def test_json_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 1.7 GB, reading it was a MemoryError, and of 400 MB it took 790 MiB."""
    for module in ("allowance", "inspection"):
        monkeypatch.setattr(f"torch_compat.{module}.HASHED", FEW)
    path = tmp_path / "large.pt2"
    large(path, config=GIGABYTE)
    result = inspect(path)
    assert result["error"] is not None
    assert result["error"]["code"] == "too-large"
    assert f"contains {GIGABYTE} bytes of JSON" in result["error"]["message"]
    assert resident(path) < FEW
