"""The contents of a ``torch.save`` archive as NumPy arrays, and the second pass that fills an archive of ``skip_data``.

* :mod:`torch_compat.state.load`: :func:`load_state`, archive to values
* :mod:`torch_compat.state.values`: classes for tensors that are not plain arrays
* :mod:`torch_compat.state.storages`: storages to arrays over the mapped file
* :mod:`torch_compat.state.tensors`: tensors of a pickle to arrays
* :mod:`torch_compat.state.convert`: everything else in a pickle, with its tensors replaced
* :mod:`torch_compat.state.dtypes`: dtypes of torch to dtypes of numpy
* :mod:`torch_compat.state.fill`: :func:`fill_storages`

Only this package, the reference reader and comparing need numpy; ml_dtypes is imported only if a file has bfloat16 or the like.
"""

from __future__ import annotations

from torch_compat.state.fill import fill_storages
from torch_compat.state.load import load_state
from torch_compat.state.values import (
    Absent,
    CompressedTensor,
    NestedTensor,
    QuantizedTensor,
    RawTensor,
    SparseTensor,
    SubclassTensor,
    TypedStorage,
    TypedTensor,
)

__all__ = [
    "Absent",
    "CompressedTensor",
    "NestedTensor",
    "QuantizedTensor",
    "RawTensor",
    "SparseTensor",
    "SubclassTensor",
    "TypedStorage",
    "TypedTensor",
    "fill_storages",
    "load_state",
]
