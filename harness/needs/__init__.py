"""What an archive needs: which releases of torch load it, and why no others do.

:func:`of` compares the facts of an archive (:mod:`harness.formats`) with what is recorded of the releases: the formats they read, the
operators they have, what a pickle can name in them, what ``weights_only`` takes, and the rules and quirks of
``policies/torch/needs.toml``. Nothing of it knows a fixture; a test holds it against everything that real releases were seen to do.

* :mod:`harness.needs.signs`: the signs of an archive, for which rules ask
* :mod:`harness.needs.source`: what TorchScript source asks for
* :mod:`harness.needs.fit`: whether a call fits a schema
* :mod:`harness.needs.rules`: what is recorded
* :mod:`harness.needs.verdict`: the verdict and its reasons
"""

from __future__ import annotations

from harness.needs.rules import Rules, load_rules, packaged_rules
from harness.needs.verdict import Judge, Needs, Reason, of

__all__ = ["Judge", "Needs", "Reason", "Rules", "load_rules", "of", "packaged_rules"]
