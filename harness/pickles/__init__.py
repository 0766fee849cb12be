"""Safe unpickling: what a pickle says, as plain values, storages, tensors and descriptions. Nothing that it names is imported.

* :mod:`harness.pickles.machine`: bytes to values, one pass, bounded
* :mod:`harness.pickles.notes`: the bounds, and what is noted on the way
* :mod:`harness.pickles.values`: what comes out
* :mod:`harness.pickles.brief`: its text, bounded
* :mod:`harness.pickles.dtypes`: storage classes and dtypes of every release
* :mod:`harness.pickles.weights_only`: the restricted unpickler as each release has it
* :mod:`harness.pickles.dangers`: which globals execute code, open files or reach the network, to name them
"""

from __future__ import annotations

from harness.pickles.brief import brief, cut
from harness.pickles.dangers import dangerous
from harness.pickles.machine import LIMITS, Limits, Unpickled, unpickle
from harness.pickles.values import (
    Deque,
    Described,
    Device,
    Dict,
    Event,
    Global,
    ModuleSource,
    NumpyArray,
    NumpyDtype,
    NumpyScalar,
    PersistentId,
    Size,
    Storage,
    Tensor,
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
    "Event",
    "Global",
    "Limits",
    "ModuleSource",
    "NumpyArray",
    "NumpyDtype",
    "NumpyScalar",
    "PersistentId",
    "Size",
    "Storage",
    "Tensor",
    "Unpickled",
    "brief",
    "cut",
    "dangerous",
    "parts",
    "tensors",
    "unpickle",
    "walk",
]
