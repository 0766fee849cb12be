"""Safe unpickling to plain values, storages, tensors and descriptions; nothing that a pickle names is imported.

* :mod:`torch_compat.pickles.machine`: bytes to values, one pass, bounded
* :mod:`torch_compat.pickles.opcodes`: names and arguments of the opcodes
* :mod:`torch_compat.pickles.recorder`: the limits, and the record of events
* :mod:`torch_compat.pickles.values`: the resulting values
* :mod:`torch_compat.pickles.brief`: their text, bounded
* :mod:`torch_compat.pickles.weights_only`: the restricted unpickler of each release
* :mod:`torch_compat.pickles.dangers`: names globals that execute code, open files or reach the network
"""

from __future__ import annotations

from torch_compat.pickles.brief import brief, cut
from torch_compat.pickles.dangers import dangerous
from torch_compat.pickles.machine import LIMITS, PickleLimits, Unpickled, unpickle
from torch_compat.pickles.values import (
    Deque,
    Described,
    Device,
    Dict,
    Global,
    ModuleSource,
    NumpyArray,
    NumpyDtype,
    NumpyScalar,
    PersistentId,
    Size,
    Storage,
    Tensor,
    UnpicklerEvent,
    parts,
    tensors,
    walk,
)

__all__ = [
    "LIMITS",
    "Deque",
    "Described",
    "Device",
    "Dict",
    "Global",
    "ModuleSource",
    "NumpyArray",
    "NumpyDtype",
    "NumpyScalar",
    "PersistentId",
    "PickleLimits",
    "Size",
    "Storage",
    "Tensor",
    "Unpickled",
    "UnpicklerEvent",
    "brief",
    "cut",
    "dangerous",
    "parts",
    "tensors",
    "unpickle",
    "walk",
]
