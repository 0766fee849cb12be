"""What an archive needs: which releases of torch load it, and why no others do.

:func:`of` compares the facts of an archive (:mod:`torch_compat.formats`) with what is recorded of the releases: the formats they read, the
operators they have, what a pickle can name in them, what ``weights_only`` takes, and the behaviors of
``policies/torch/behaviors.toml``. Nothing of it knows a fixture; a test holds it against everything that real releases were seen to do.

* :mod:`torch_compat.loadability.archive_features`: the signs of an archive, for which rules ask
* :mod:`torch_compat.loadability.schema_matching`: whether a call fits a schema
* :mod:`torch_compat.loadability.release_facts`: what is recorded
* :mod:`torch_compat.loadability.load_calls`: the calls that load it, and what they need beside torch
* :mod:`torch_compat.loadability.loading_releases`: the verdict and its reasons
"""

from __future__ import annotations

from torch_compat.loadability.loading_releases import Judge, Needs, Reason, of
from torch_compat.loadability.release_facts import Rules, load_rules, packaged_rules

__all__ = ["Judge", "Needs", "Reason", "Rules", "load_rules", "of", "packaged_rules"]
