"""Policies: what PyTorch promised, read from TOML files into typed values.

:func:`load_policy` reads a folder such as ``policies/torch`` and returns a :class:`Policy`, or raises a
:class:`torch_compat.errors.PolicyError` that lists every error in every file. ``policies/README.md`` documents the file format.
"""

from __future__ import annotations

from torch_compat.policy.load import load_policy
from torch_compat.policy.model import (
    CalendarRelease,
    CorpusScope,
    Dtype,
    Format,
    FormatKind,
    LoadOptions,
    MayRefuse,
    Milestone,
    OptionSet,
    PolicyTable,
    RuleEntry,
    Tolerance,
    Waiver,
)
from torch_compat.policy.policy import Policy
from torch_compat.policy.schema import policy_schema
from torch_compat.policy.table_base import Family

__all__ = [
    "CalendarRelease",
    "CorpusScope",
    "Dtype",
    "Family",
    "Format",
    "FormatKind",
    "LoadOptions",
    "MayRefuse",
    "Milestone",
    "OptionSet",
    "Policy",
    "PolicyTable",
    "RuleEntry",
    "Tolerance",
    "Waiver",
    "load_policy",
    "policy_schema",
]
