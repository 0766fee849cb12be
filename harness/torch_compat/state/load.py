"""Reading: a ``torch.save`` archive as values of Python, with arrays of numpy where it has tensors."""

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

# The record of each layout that holds the object itself, by the name under which the facts keep it.
OBJECTS = {"torch_save_zip": "data.pkl", "torch_save_stream": "object", "torch_save_tar": "pickle", "bare_pickle": "pickle"}


def load_state(path: str | os.PathLike[str], *, mmap: bool | None = None, with_types: bool = False) -> Any:
    """What a ``torch.save`` archive holds, with every tensor as a NumPy array. Nothing that it says is executed or imported.

    Arrays are read-only views of the mapped file, with the shape and strides that torch states, in the byte order of the
    archive; views that share a storage share memory, and the file stays mapped while one of them is alive. It must not be cut
    shorter meanwhile. Checksums of all records that are touched are compared.

    * float16, float32, float64, complex64, complex128, bool and integers of 8 to 64 bits: dtypes of numpy; bfloat16 and the float8
      dtypes: those of ml_dtypes; anything else: :class:`~torch_compat.state.RawTensor`
    * conjugate and negative views: the numbers that torch shows, copied
    * quantized, sparse and nested tensors: :class:`~torch_compat.state.QuantizedTensor`, :class:`~torch_compat.state.SparseTensor`,
      :class:`~torch_compat.state.CompressedTensor`, :class:`~torch_compat.state.NestedTensor`
    * storages that were skipped, tensors on ``meta``, all tensors of a bare ``data.pkl``: :class:`~torch_compat.state.Absent`
    * storages that were saved as such: arrays of one axis
    * parameters and tensors of other classes: arrays like others (their classes with ``with_types``)
    * ``OrderedDict``, ``defaultdict`` and ``Counter``: :class:`torch_compat.pickles.Dict`, which is a dict; arrays of numpy: such
    * every other object (modules, classes of the writer's own, calls of functions): :class:`torch_compat.pickles.Described`, not carried
      out

    Parameters:
        path: the file: zip, stream or tar of any release, or a bare pickle; or the directory of a distributed checkpoint, whose tensors are
            whole: those that are stored in several parts are assembled in memory.
        mmap: None maps, and copies what has to be (compressed records, bfloat16 of the other byte order, conjugates); True refuses
            instead of copying; False reads everything into memory, and the arrays may be written to.
        with_types: give a :class:`~torch_compat.state.TypedTensor` for each tensor and a :class:`~torch_compat.state.TypedStorage` for each
            storage: with requires_grad, class, device, key of the storage.

    Raises:
        UsageError: there is no such file, it is a folder, or it may not be read.
        Corrupt: a record is damaged, a size disagrees, a tensor reaches beyond its storage; ``where`` names the record.
        Unsafe: its pickle costs more than a pickle may.
        Unsupported: it is no archive of torch.save, or numpy has no such array.
    """
    folder = os.fspath(path)
    if os.path.isdir(folder) and is_checkpoint(folder):  # noqa: PTH112 - as it was given
        return load_checkpoint(folder, mmap=mmap, with_types=with_types)
    with open_archive(Path(path)) as archive:
        facts = objects_of(archive)
        storages = Storages(archive, facts, mmap)
        made = Converter(storages, with_types=with_types).convert(facts.pickles[OBJECTS[facts.layout]].value)
        refuse_damage(archive, storages.touched | {OBJECTS[facts.layout], "byteorder"})
        return made


def objects_of(archive: Archive) -> Facts:
    """The facts of a ``torch.save`` archive, its pickle read.

    Raises:
        Corrupt, Unsafe: it cannot be read.
        Unsupported: it is of another family.
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
