"""Identifies files that are not PyTorch archives by their first bytes, so that the user knows what to do.

Each kind has a code, a name, and a hint. Only the start of a file is inspected.
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["Foreign", "recognise"]


class Foreign(NamedTuple):
    """The kind of a file that PyTorch did not write."""

    code: str
    name: str
    hint: str | None = None


PULL = "this is only a pointer: fetch the file with `git lfs pull`"
AGAIN = "if this was meant to be an archive, download it again and check the server's response"
UNPACK = "unpack it first"
OTHERS = "read it with its own library, not with PyTorch"

STARTS: tuple[tuple[bytes, Foreign], ...] = (
    (b"version https://git-lfs.github.com/spec/", Foreign("git-lfs-pointer", "a Git LFS pointer", PULL)),
    (b"PYTORCH1", Foreign("preview-release", "an archive from the PyTorch 1.0 preview, which no release can load", None)),
    (b"\x89HDF\r\n\x1a\n", Foreign("hdf5", "an HDF5 file", "use h5py or Keras to read it")),
    (b"\x1f\x8b", Foreign("gzip", "compressed with gzip", UNPACK)),
    (b"BZh", Foreign("bzip2", "compressed with bzip2", UNPACK)),
    (b"\xfd7zXZ\0", Foreign("xz", "compressed with xz", UNPACK)),
    (b"\x28\xb5\x2f\xfd", Foreign("zstd", "compressed with zstd", UNPACK)),
    (b"\x04\x22\x4d\x18", Foreign("lz4", "compressed with lz4", UNPACK)),
    (b"7z\xbc\xaf\x27\x1c", Foreign("7z", "a 7z archive", UNPACK)),
    (b"Rar!\x1a\x07", Foreign("rar", "a RAR archive", UNPACK)),
    (b"\x93NUMPY", Foreign("npy", "a NumPy array (.npy)", "use numpy.load to read it")),
    (b"GGUF", Foreign("gguf", "a GGUF file", "use llama.cpp or the gguf package to read it")),
    (b"\x7fELF", Foreign("elf", "a compiled library or program", "a model compiled by AOTInductor is loaded by its own runtime")),
    (b"PAR1", Foreign("parquet", "a Parquet file", OTHERS)),
)
IDENTIFIERS = {  # of flatbuffers, at byte 4
    b"TFL3": Foreign("tflite", "a TensorFlow Lite model", OTHERS),
}
EXECUTORCH = re.compile(rb"ET\d\d", re.DOTALL)
EXECUTORCH_MODEL = Foreign("executorch", "an ExecuTorch program (.pte)", "use the ExecuTorch runtime to read it")
SAFETENSORS = Foreign("safetensors", "a safetensors file", "use the safetensors library to read it")
ONNX = re.compile(rb"\x08[\x01-\x1f]\x12[\x01-\x7f][\x20-\x7e]{2}")  # ir_version, then producer_name
ONNX_MODEL = Foreign("onnx", "an ONNX model", "use onnx or onnxruntime to read it")
HTML = re.compile(rb"(?:<!--.*?-->\s*)?<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL)
XML = re.compile(rb"<(?:\?xml\b|[A-Za-z][\w:.-]*[\s/>])")
JSON = re.compile(rb'(?:\{\s*["}]|\[\s*["{\[\d\]-])')
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def recognise(head: bytes, size: int) -> Foreign | None:
    """Identify a file by its first bytes; None if they are of no known kind.

    Args:
        head: its first 4096 bytes, or all of them.
        size: its length.
    """
    if not head:
        return Foreign("empty-file", "an empty file", AGAIN)
    for start, foreign in STARTS:
        if head.startswith(start):
            return foreign
    identifier = head[4:8]
    if EXECUTORCH.fullmatch(identifier):
        return EXECUTORCH_MODEL
    if identifier in IDENTIFIERS:
        return IDENTIFIERS[identifier]
    if head[8:9] == b"{" and 2 <= int.from_bytes(head[:8], "little") <= size - 8:
        return SAFETENSORS
    if ONNX.match(head):
        return ONNX_MODEL
    if not head.strip(b"\0"):
        return Foreign(
            "only-zeros",
            "a file that begins with zeros",
            "space was allocated, but the data was never written: write or download the file again",
        )
    return _text(head, size)


def _text(head: bytes, size: int) -> Foreign | None:
    text = head.removeprefix(BYTE_ORDER_MARK).lstrip()
    if HTML.match(text):
        return Foreign("html-page", "an HTML page", AGAIN)
    if not _is_text(head, size):
        return None
    if XML.match(text):
        return Foreign(
            "xml",
            "an XML document",
            "the server may have returned an XML error: open the file to check, then download the archive again",
        )
    if JSON.match(text):
        if b'"weight_map"' in text:
            hint = "the tensors are in the files it lists: load those instead"
            return Foreign("shard-index", "the JSON index of a sharded checkpoint", hint)
        return Foreign("json", "a JSON document", "the server may have returned a JSON error: open the file to check")
    return Foreign("text", "a text file", AGAIN)


def _is_text(head: bytes, size: int) -> bool:
    """Whether the bytes are UTF-8 without control characters; a character may be cut at the end of the head."""
    if head.translate(None, CONTROLS) != head:
        return False
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return size > len(head) and error.start > len(head) - 4
    return True


CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\x1b")) + b"\x7f"
