"""The reference reader's engine: TorchScript programs of any release, run with numpy.

* :mod:`harness.runtime.dtypes`, :mod:`harness.runtime.tensor`, :mod:`harness.runtime.values`: values of a program
* :mod:`harness.runtime.registry`, :mod:`harness.runtime.operators`: operators, by the release they start at
* :mod:`harness.runtime.language`: source to code
* :mod:`harness.runtime.program`: archives to programs
* :mod:`harness.runtime.module`: what people call
* :mod:`harness.runtime.horizons`: what a release or a day knew
"""

from __future__ import annotations
