"""Files that PyTorch did not write are identified, with advice."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import struct
import zipfile
from typing import TYPE_CHECKING

import pytest

from torch_compat.archive import open_archive
from torch_compat.archive.foreign import STARTS, recognise
from torch_compat.errors import Unsupported

if TYPE_CHECKING:
    from pathlib import Path

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\nsize 440473133\n"
HEADER = json.dumps({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()


def npz() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as out:
        out.writestr("arr_0.npy", b"\x93NUMPY")
    return stream.getvalue()


FOREIGN = [
    (b"", "empty-file", "an empty file"),
    (POINTER, "git-lfs-pointer", "git lfs pull"),
    (b"<!DOCTYPE html>\n<html><body>404</body></html>", "html-page", "download it again"),
    (b"\xef\xbb\xbf\r\n <HTML lang=en>\xff", "html-page", "download it again"),
    (b"<!-- saved --><html>", "html-page", "an HTML page"),
    (b'<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>', "xml", "open the file to check"),
    (b"<Error><Code>NoSuchKey</Code></Error>", "xml", "an XML document"),
    (b'{"error": "Repository not found"}', "json", "open the file to check"),
    (b'{"metadata": {}, "weight_map": {"a": "model-00001.bin"}}', "shard-index", "the files it lists"),
    (b"[1, 2]", "json", "a JSON document"),
    (b"Entry not found", "text", "a text file"),
    (struct.pack("<Q", len(HEADER)) + HEADER + bytes(4), "safetensors", "safetensors"),
    (b"\x38\0\0\0ET12" + bytes(60), "executorch", "ExecuTorch runtime"),
    (b"\x1c\0\0\0TFL3" + bytes(60), "tflite", "TensorFlow Lite"),
    (b"\x89HDF\r\n\x1a\n" + bytes(9), "hdf5", "h5py"),
    (gzip.compress(b"x"), "gzip", "unpack it first"),
    (bz2.compress(b"x"), "bzip2", "unpack it first"),
    (lzma.compress(b"x"), "xz", "unpack it first"),
    (b"\x28\xb5\x2f\xfd\x20\x01", "zstd", "unpack it first"),
    (b"\x04\x22\x4d\x18", "lz4", "unpack it first"),
    (b"7z\xbc\xaf\x27\x1c", "7z", "unpack it first"),
    (b"Rar!\x1a\x07\0", "rar", "unpack it first"),
    (b"PYTORCH1" + bytes(99), "preview-release", "1.0 preview"),
    (b"\x93NUMPY\x01\0", "npy", "numpy.load"),
    (npz(), "npz", "numpy.load"),
    (b"GGUF\x03\0\0\0", "gguf", "llama.cpp"),
    (b"\x08\x07\x12\x07pytorch\x1a\x052.1.0", "onnx", "onnxruntime"),
    (b"\x7fELF\x02\x01\x01", "elf", "AOTInductor"),
    (b"PAR1\x15\x04", "parquet", "its own library"),
    (bytes(5000), "only-zeros", "never written"),
    (b"\x01\x02\x03\x04", "no-archive", "starts with 01 02 03 04"),
    (b"PK", "text", "a text file"),
]


@pytest.mark.parametrize(
    ("data", "code", "said"), FOREIGN, ids=[f"{code}-{number}" for number, (_, code, _) in enumerate(FOREIGN)]
)
def test_a_foreign_file_is_named(data: bytes, code: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(data)
    with pytest.raises(Unsupported) as caught:
        open_archive(path)
    assert caught.value.code == code
    assert said in str(caught.value)
    assert str(path) in str(caught.value)
    assert caught.value.exit_status == 2


def test_each_known_start_is_tried() -> None:
    assert {foreign.code for _, foreign in STARTS} <= {code for _, code, _ in FOREIGN}


@pytest.mark.parametrize(
    "head",
    [
        b"\x80\x02}q\0.",
        b"\x10\0\0\0PTMF",
        struct.pack("<Q", 1 << 40) + b"{",  # states more than there is
        b"\x08\x07\x12\x07\xff\xfe",
        b"abc\0def",
        b"\xff\xfe<html>",
    ],
)
def test_what_is_not_certain_has_no_name(head: bytes) -> None:
    assert recognise(head, len(head)) is None


def test_a_character_may_be_cut_at_the_end_of_what_is_looked_at() -> None:
    text = ("x" * 4095 + "ä").encode()
    result = recognise(text[:4096], len(text))
    assert result is not None
    assert result.code == "text"
    assert recognise(text[:4096], 4096) is None
