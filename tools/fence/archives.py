"""An archive of a hostile program: source, and a module with one tensor."""

from __future__ import annotations

import io
import struct
import zipfile

__all__ = ["archive"]

WEIGHT = struct.pack("<8f", *range(8))
TENSOR = (
    b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x08tQK\x00(K\x08t(K\x01t"
    b"\x89ccollections\nOrderedDict\n)RtR"
)  # fmt: skip


def archive(source: str) -> bytes:
    """The bytes of an archive of 1.4 or newer with one source file, whose module is ``__torch__.m.Model``."""
    data = b"\x80\x02c__torch__.m\nModel\n)\x81}(X\x01\x00\x00\x00w" + TENSOR + b"ub."
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as result:
        result.writestr("m/data.pkl", data)
        result.writestr("m/code/__torch__/m.py", source.encode("utf-8", "backslashreplace"))
        result.writestr("m/constants.pkl", b"\x80\x02).")
        result.writestr("m/version", "3\n")
        result.writestr("m/data/0", WEIGHT)
    return stream.getvalue()
