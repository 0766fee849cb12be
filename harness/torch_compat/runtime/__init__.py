"""The reference reader's engine: TorchScript programs of any release, run with numpy.

* :mod:`torch_compat.runtime.dtypes`, :mod:`torch_compat.runtime.tensor`, :mod:`torch_compat.runtime.values`: values of a program
* :mod:`torch_compat.runtime.registry`, :mod:`torch_compat.runtime.operators`: operators, by the release they start at
* :mod:`torch_compat.runtime.language`: source to code
* :mod:`torch_compat.runtime.load`, :mod:`torch_compat.runtime.program`: archives to programs
* :mod:`torch_compat.runtime.module`: what people call
* :mod:`torch_compat.runtime.horizons`: what a release or a day knew
"""

from __future__ import annotations
