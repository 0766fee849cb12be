"""Distributed checkpoints in torch's format, created without torch, for tests."""

from __future__ import annotations

import base64
import io
import pickle
import sys
import types
import zipfile
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

METADATA = "torch.distributed.checkpoint.metadata"
NAMES = {
    METADATA: (
        "Metadata",
        "TensorStorageMetadata",
        "BytesStorageMetadata",
        "ChunkStorageMetadata",
        "MetadataIndex",
        "TensorProperties",
    ),
    "torch.distributed.checkpoint.filesystem": ("_StorageInfo",),
    "torch": ("float32", "int64"),
}
STORAGES = {"float32": "FloatStorage", "int64": "LongStorage"}


class _Named:
    """An object of a class of torch, or a name of torch."""


def _classes() -> tuple[dict[str, Any], dict[str, types.ModuleType]]:
    classes: dict[str, Any] = {}
    modules: dict[str, types.ModuleType] = {}
    for module, names in NAMES.items():
        modules[module] = types.ModuleType(module)
        for name in names:
            classes[name] = type(name, (_Named,), {"__module__": module, "__qualname__": name})
            setattr(modules[module], name, classes[name])
    return classes, modules


def saved(array: np.ndarray[Any, Any] | None, value: bytes = b"K\x05") -> bytes:
    """An archive of torch.save: of a tensor, or of a value that is pickled already."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        if array is not None:
            kind = STORAGES[str(array.dtype)].encode()
            pid = (
                b"(X\x07\x00\x00\x00storagectorch\n"
                + kind
                + b"\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuM"
                + array.size.to_bytes(2, "little")
                + b"tQ"
            )
            strides = tuple(number // array.itemsize for number in array.strides)
            value = b"ctorch._utils\n_rebuild_tensor_v2\n(" + pid + b"K\x00" + _sizes(array.shape) + _sizes(strides) + b"\x89}tR"
        archive.writestr("archive/data.pkl", b"\x80\x02" + value + b".")
        if array is not None:
            archive.writestr("archive/data/0", array.tobytes())
        archive.writestr("archive/version", "3\n")
    return data.getvalue()


def _sizes(sizes: tuple[int, ...]) -> bytes:
    return b"(" + b"".join(b"M" + size.to_bytes(2, "little") for size in sizes) + b"t"


RECIPE = '''"""A distributed checkpoint, file by file."""
import base64
import os

FAMILY = "distributed"
OPERATORS = []
SINCE = "1.5.1"
FILES = {files}


def build():
    return {{"epoch": 7}}


def write(made, path):
    os.mkdir(path)
    for name, data in FILES.items():
        with open(os.path.join(path, name), "wb") as stream:
            stream.write(base64.b64decode(data))
'''


def recipe_of(folder: Path) -> str:
    """A recipe that writes the files of a directory, also where torch is a miniature that has no distributed checkpoints."""
    files = {file.name: base64.b64encode(file.read_bytes()).decode() for file in sorted(folder.iterdir())}
    return RECIPE.format(files=files)


class Maker:
    """Collects values, and writes the directory."""

    def __init__(self, folder: Path, *, strided: bool = False) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.classes, self.modules = _classes()
        self.strided = strided
        self.values: dict[Any, Any] = {}
        self.places: dict[Any, Any] = {}
        self.paths: dict[Any, Any] = {}
        self.files: dict[str, bytearray] = {}

    def new(self, name: str, **state: Any) -> Any:
        """An object of a class, with these attributes."""
        result = self.classes[name]()
        result.__dict__.update(state)
        return result

    def store(self, name: str, data: bytes, file: str, offset: tuple[int, ...] | None, **more: Any) -> None:
        """Put an entry into a file."""
        held = self.files.setdefault(file, bytearray())
        index = self.new("MetadataIndex", fqn=name, offset=offset, index=0)
        self.places[index] = self.new("_StorageInfo", relative_path=file, offset=len(held), length=len(data), **more)
        held += data

    def tensor(
        self, name: str, whole: np.ndarray[Any, Any], parts: Sequence[tuple[tuple[int, ...], tuple[int, ...]]], files: int = 1
    ) -> None:
        """A tensor that is stored in parts, each with its first element and its sizes."""
        properties = self.classes["TensorProperties"].__new__(self.classes["TensorProperties"])
        told: tuple[Any, ...] = (self.classes[str(whole.dtype)], None, False, 0, False)
        properties.__class__.__getstate__ = lambda item: item.told
        properties.told = (*told, (1,)) if self.strided else told
        chunks = [self.new("ChunkStorageMetadata", offsets=start, sizes=sizes) for start, sizes in parts]
        self.values[name] = self.new("TensorStorageMetadata", properties=properties, size=whole.shape, chunks=chunks)
        for number, (start, sizes) in enumerate(parts):
            box = tuple(slice(first, first + size) for first, size in zip(start, sizes, strict=True))
            self.store(name, saved(np.ascontiguousarray(whole[box])), f"__{number % files}_0.distcp", start)

    def object(self, name: str, value: bytes) -> None:
        """Anything that is no tensor, pickled."""
        self.values[name] = self.new("BytesStorageMetadata")
        self.store(name, saved(None, value), "__0_0.distcp", None)

    def write(self) -> Path:
        """The directory."""
        state = {"state_dict_metadata": self.values, "planner_data": self.paths or None, "storage_data": self.places}
        with mock.patch.dict(sys.modules, self.modules):
            data = pickle.dumps(self.new("Metadata", **state), 4)
        (self.folder / ".metadata").write_bytes(data)
        for name, held in self.files.items():
            (self.folder / name).write_bytes(held)
        return self.folder
