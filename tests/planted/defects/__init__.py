"""Every kind of planted defect, in files by the damaged data."""

from __future__ import annotations

from tests.planted.defects import archives, locks, manifests, observations, operators, policies, recipes, verdicts, waivers
from tests.planted.defects.table import DEFECTS, Defect

__all__ = [
    "DEFECTS",
    "Defect",
    "archives",
    "locks",
    "manifests",
    "observations",
    "operators",
    "policies",
    "recipes",
    "verdicts",
    "waivers",
]
