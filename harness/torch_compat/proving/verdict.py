"""Compares two outcomes of one call: is the old one preserved?

``preserved``   the same value, bit for bit or within the policy's tolerance for its dtype (``close``), or both raise
``relaxed``     the old program raised, the new one returns a value
``changed``     another value, or an error instead of a value
``changed-later`` like ``changed``, but due to a later operator change in the policy: the upgraded call was correct when the upgrader was
                added
``no-program``  no program of the old release can contain this call: there is nothing to preserve
``no-input``    one side has no such dtype
``unsupported`` the reference reader does not support something: the outcome is unknown
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from torch_compat.proving.examples import told
from torch_compat.proving.oracles import CallOutcome, differences
from torch_compat.releases.data import entries, packaged

if TYPE_CHECKING:
    from torch_compat.values.compare import Difference

__all__ = ["ENDS", "Judged", "agreement", "judged", "tolerances"]

Verdict = Literal[
    "same", "close", "equally-refused", "relaxed", "changed", "changed-later", "no-program", "no-input", "unsupported"
]
ENDS = frozenset({"raised", "crashed", "timed-out"})
"""Outcomes of a program that loads but returns no value."""


class Judged(NamedTuple):
    """The verdict on an old outcome."""

    verdict: Verdict
    sort: str = ""
    """For ``changed``, the kind of difference: ``dtype``, ``shape``, ``value of float64``, ``raised``..."""
    said: str = ""
    """A description."""


def judged(old: CallOutcome, new: CallOutcome) -> Judged:
    """Judge whether a new outcome preserves an old one."""
    if old.kind in {"no-program", "no-input", "unsupported"}:
        return Judged(old.kind)
    if new.kind in {"no-input", "unsupported"}:
        return Judged(new.kind)
    if old.kind in ENDS:
        return Judged("relaxed") if new.kind == "value" else Judged("equally-refused")
    if new.kind != "value":
        return Judged("changed", new.kind, told(new))
    result = differences(old, new)
    apart = [difference for difference in result if not near(difference)]
    if apart:
        first = min(apart, key=lambda item: item.kind == "value")
        return Judged("changed", f"{first.kind} of {first.dtype}" if first.kind == "value" else first.kind, described(first))
    return Judged("close" if result else "same")


def agreement(model: CallOutcome, real: CallOutcome) -> str:
    """Return how the reference reader agrees with the release it models, as one word for a table."""
    if real.kind == "no-input" or model.kind == "no-input":
        return "no-input" if real.kind == model.kind else "input-differs"
    if real.kind == "no-program":
        return "no-program"
    if model.kind == "unsupported":
        return "not-modelled"
    if model.kind == "value" and real.kind == "value":
        return "equal" if judged(real, model).verdict in {"same", "close"} else "values"
    if model.kind == "value":
        return "only-torch-refuses"
    return "only-the-reader-refuses" if real.kind == "value" else "equally-refused"


@cache
def tolerances() -> dict[str, tuple[float, float]]:
    """Return the ULP and absolute tolerances by dtype: those of the policy for all operators."""
    stated = entries(packaged("policies", "torch"), ("promises",))["tolerance"]
    return {item["dtype"]: (float(item["max_ulp"]), float(item["max_abs"])) for item in stated if item.get("operators") == ["*"]}


def near(difference: Difference) -> bool:
    """Whether every element is within the policy's absolute or ULP distance for the dtype."""
    if difference.kind != "value" or "frontier" not in difference.facts:
        return False
    ulp, gap = tolerances().get(difference.dtype, (0.0, 0.0))
    return all(float(far) <= gap or float(steps) <= ulp for far, steps in difference.facts["frontier"])


def described(difference: Difference) -> str:
    """Describe a difference."""
    place = difference.where.removeprefix("calls[0].first.")
    facts: dict[str, Any] = difference.facts
    where = f" at element {facts['first']}" if "first" in facts else ""
    far = facts.get("max_abs")
    gap = f" (apart by up to {far:g})" if isinstance(far, float) and math.isfinite(far) else ""
    return f"{difference.kind} of {place}{where}: {facts.get('expected')} became {facts.get('got')}{gap}"
