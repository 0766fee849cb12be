"""The reference reader's historic operators against the releases that had them: the same generated programs, asked of both.

A *group* is an operator with the dtypes of a call's tensors. What only one side refuses, and what gives other values, is counted by group and
kept with an example, so that a disagreement is a class of calls and not a single one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torch_compat.errors import UsageError
from torch_compat.operators.history import History
from torch_compat.operators.shape import shape
from torch_compat.proving.cases import cases
from torch_compat.proving.examples import last_line, shown, told
from torch_compat.proving.oracles import Modelled
from torch_compat.proving.programs import archive, forms
from torch_compat.proving.verdict import agreement
from torch_compat.releases.release import Release
from torch_compat.runtime.horizons import horizon

if TYPE_CHECKING:
    from torch_compat.proving.oracles import Real

__all__ = ["DISAGREEMENTS", "Held", "hold"]

DISAGREEMENTS = ("values", "only-torch-refuses", "only-the-reader-refuses", "not-modelled", "input-differs")
COMPLEX_SINCE = Release("1.9.0")
NEWEST_FORMAT = 10


@dataclass
class Held:
    """How the reference reader agrees with a release about one operator.

    Attributes:
        counts: calls by how they agree.
        groups: dtypes, and how calls with them agree.
        examples: one call for each kind of disagreement, and for each error of the release.
        left_out: overloads of which no program can be written, with the reason.
    """

    operator: str
    release: str
    counts: Counter[str] = field(default_factory=Counter)
    groups: dict[str, Counter[str]] = field(default_factory=dict)
    examples: dict[tuple[str, str], str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def apart(self, word: str) -> list[str]:
        """Groups in which some call disagrees so."""
        return sorted(group for group, counts in self.groups.items() if counts[word])


def hold(operator: str, real: Real, *, seed: int | str = 0, count: int = 144) -> Held:
    """Ask a release and the reference reader at its horizon for generated calls of an operator, all overloads that the release had.

    Parameters:
        operator: qualified name without overload.
        real: the release.
    """
    release = real.version
    model = Modelled(release)
    known = horizon(model.name)
    version = max(one for one in range(1, NEWEST_FORMAT + 1) if known.reads("file-format", one))
    held = Held(operator, release)
    for text in History.load().schemas(operator, release):
        stated = shape(text)
        try:
            found = forms(operator, stated.arguments, complex_numbers=Release(release) >= COMPLEX_SINCE)
        except UsageError as error:
            held.left_out.append(f"{stated.overload or operator}: {error.message}")
            continue
        for form in found:
            data, given = archive(form, version), cases(form, seed, count)
            for args, ours, theirs in zip(given, model.ask(data, given), real.ask(data, given), strict=True):
                word = agreement(ours, theirs)
                held.counts[word] += 1
                held.groups.setdefault(_group(args), Counter())[word] += 1
                if word in DISAGREEMENTS:
                    key = word, last_line(theirs.said)[:60] if theirs.turn is None else last_line(ours.said)[:60]
                    held.examples.setdefault(key, f"{form.call} of {shown(args)}: torch {told(theirs)}; reference {told(ours)}")
    return held


def _group(args: list[Any]) -> str:
    return ", ".join(one["tensor"]["dtype"] for one in args if isinstance(one, dict) and "tensor" in one) or "no tensor"
