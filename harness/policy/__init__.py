"""Policies: what PyTorch promised, read from TOML files into typed values.

:func:`load_policy` reads a folder such as ``policies/torch`` and gives a :class:`Policy`, or a
:class:`harness.errors.PolicyError` that names every mistake of every file. ``policies/README.md`` is the manual of the files.
"""

from __future__ import annotations

from harness.policy.calendar import Calendar
from harness.policy.load import load_policy
from harness.policy.model import (
    CorpusScope,
    Disregard,
    Dtype,
    Family,
    Format,
    FormatKind,
    LoadOptions,
    MayRefuse,
    Milestone,
    OptionSet,
    Policy,
    PolicyTable,
    Release,
    RuleEntry,
    Tolerance,
    Waiver,
)
from harness.policy.schema import policy_schema

__all__ = [
    "Calendar",
    "CorpusScope",
    "Disregard",
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
    "Release",
    "RuleEntry",
    "Tolerance",
    "Waiver",
    "load_policy",
    "policy_schema",
]
