"""Read a ``torch.save`` archive as Python values, with NumPy arrays for its tensors."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch_compat.archive import open_archive
from torch_compat.errors import Unsupported
from torch_compat.formats.distributed import is_checkpoint
from torch_compat.formats.facts import fill
from torch_compat.formats.identify import recognised
from torch_compat.state.convert import Converter
from torch_compat.state.damage import refuse_damage
from torch_compat.state.distributed import load_checkpoint
from torch_compat.state.storages import Storages

if TYPE_CHECKING:
    from torch_compat.archive import Archive
    from torch_compat.formats import Facts

__all__ = ["load_state", "objects_of"]

# The record of each layout that holds the saved object, by its name in the facts.
OBJECTS = {"torch_save_zip": "data.pkl", "torch_save_stream": "object", "torch_save_tar": "pickle", "bare_pickle": "pickle"}


def load_state(path: str | os.PathLike[str], *, mmap: bool | None = None, with_types: bool = False) -> Any:
    """Return the contents of a ``torch.save`` archive, with every tensor as a NumPy array. Nothing in the file is executed or imported.

    Arrays are read-only views of the mapped file, with torch's shape and strides, in the byte order of the
    archive; views that share a storage share memory, and the file stays mapped as long as one of them is alive. It must not be
    truncated meanwhile. The checksums of all records that are read are verified.

    * float16, float32, float64, complex64, complex128, bool and integers of 8 to 64 bits: dtypes of numpy; bfloat16 and the float8
      dtypes: those of ml_dtypes; anything else: :class:`~torch_compat.state.RawTensor`
    * conjugate and negative views: the values that torch shows, copied
    * quantized, sparse and nested tensors: :class:`~torch_compat.state.QuantizedTensor`, :class:`~torch_compat.state.SparseTensor`,
      :class:`~torch_compat.state.CompressedTensor`, :class:`~torch_compat.state.NestedTensor`
    * skipped storages, tensors on ``meta``, all tensors of a bare ``data.pkl``: :class:`~torch_compat.state.Absent`
    * storages that were saved directly: one-dimensional arrays
    * parameters and tensors of other classes: plain arrays (``with_types`` gives their classes)
    * ``OrderedDict``, ``defaultdict`` and ``Counter``: :class:`torch_compat.pickles.Dict`, which is a dict; NumPy arrays: NumPy arrays
    * every other object (modules, the writer's own classes, function calls): :class:`torch_compat.pickles.Described`, which describes it
      without executing it

    Parameters:
        path: the file: zip, stream or tar of any release, or a bare pickle; or the directory of a distributed checkpoint, whose tensors are
            returned whole: those stored in several parts are assembled in memory.
        mmap: None maps the file and copies only what it must (compressed records, bfloat16 of the opposite byte order, conjugates); True
            raises instead of copying; False reads everything into memory, and the arrays are writable.
        with_types: return each tensor as a :class:`~torch_compat.state.TypedTensor` and each storage as a
            :class:`~torch_compat.state.TypedStorage`, with requires_grad, class, device and storage key.

    Raises:
        UsageError: the file does not exist, is a folder, or cannot be read.
        Corrupt: a record is damaged, a size disagrees, or a tensor reaches beyond its storage; ``where`` names the record.
        Unsafe: its pickle exceeds the resource limits.
        Unsupported: it is not an archive of torch.save, or numpy cannot represent an array.
    """
    folder = os.fspath(path)
    if os.path.isdir(folder) and is_checkpoint(folder):  # noqa: PTH112 - as it was given
        return load_checkpoint(folder, mmap=mmap, with_types=with_types)
    with open_archive(Path(path)) as archive:
        facts = objects_of(archive)
        storages = Storages(archive, facts, mmap)
        result = Converter(storages, with_types=with_types).convert(facts.pickles[OBJECTS[facts.layout]].value)
        refuse_damage(archive, storages.touched | {OBJECTS[facts.layout], "byteorder"})
        return result


def objects_of(archive: Archive) -> Facts:
    """The facts of a ``torch.save`` archive, including its pickle.

    Raises:
        Corrupt, Unsafe: it cannot be read.
        Unsupported: it belongs to another family.
    """
    facts, module = recognised(archive)
    if facts.layout not in OBJECTS:
        hint = "use torch-compat inspect to see its contents"
        raise Unsupported(
            f"belongs to the family {facts.family}, which torch.save does not write",
            where=archive.path,
            hint=hint,
            code="not-torch-save",
        )
    fill(facts, module, archive, verify=False)
    return facts
