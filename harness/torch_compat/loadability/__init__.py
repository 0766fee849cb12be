"""Determines which torch releases load an archive, and why the others do not.

:func:`of` compares the facts of an archive (:mod:`torch_compat.formats`) with the recorded facts about releases: the formats that they
read, their operators, the globals that a pickle can refer to, what ``weights_only`` accepts, and the behaviors in
``policies/torch/behaviors.toml``. The code does not depend on fixtures; a test compares its answers with all recorded results of real
releases.

* :mod:`torch_compat.loadability.archive_features`: the signs of an archive, which rules use
* :mod:`torch_compat.loadability.schema_matching`: whether a call fits a schema
* :mod:`torch_compat.loadability.release_facts`: the recorded facts
* :mod:`torch_compat.loadability.load_calls`: the calls that load it, and what they need besides torch
* :mod:`torch_compat.loadability.loading_releases`: the verdict and its reasons
"""

from __future__ import annotations

from torch_compat.loadability.loading_releases import Judge, Needs, Reason, of
from torch_compat.loadability.release_facts import Rules, load_rules, packaged_rules

__all__ = ["Judge", "Needs", "Reason", "Rules", "load_rules", "of", "packaged_rules"]
