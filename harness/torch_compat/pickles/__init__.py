"""Safe unpickling: what a pickle says, as plain values, storages, tensors and descriptions. Nothing that it names is imported.

* :mod:`torch_compat.pickles.machine`: bytes to values, one pass, bounded
* :mod:`torch_compat.pickles.opcodes`: names and arguments of the opcodes
* :mod:`torch_compat.pickles.recorder`: the bounds, and what is noted on the way
* :mod:`torch_compat.pickles.values`: what comes out
* :mod:`torch_compat.pickles.brief`: its text, bounded
* :mod:`torch_compat.pickles.weights_only`: the restricted unpickler as each release has it
* :mod:`torch_compat.pickles.dangers`: which globals execute code, open files or reach the network, to name them
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
