"""Every deprecation has a probe, and every release ran it.

What: the probe that a deprecation names exists, and every release of the corpus ran its current version. Every probe of a
deprecation belongs to a deprecation, so that no record stays unjudged.

Why: the history of a deprecation is what releases did, not what release notes say they did.

Example: somebody adds policies/torch/deprecations/lstsq.toml without a probe: the timeline has no evidence.

Reference: this project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from torch_compat.judging.judgement import Asks, Cause, Judgement, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import RuleEntry

__all__ = ["judge"]

ASKS: Final = Asks.BOOKKEEPING


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every deprecation and every probe."""
    probes = {probe.name for probe in evidence.corpus.deprecations}
    asked = {version for observed in evidence.deprecations.values() for version in observed}
    used: set[str] = set()
    for deprecation in evidence.policy.deprecations:
        name = deprecation.probe
        if name in used:
            text = f"{deprecation.id}: its probe, {name}, also belongs to another deprecation"
            yield Judgement(rule.id, Verdict.FAIL, deprecation.id, Cause("shared probe", name, text))
        used.add(name)
        if name not in probes:
            text = f"{deprecation.id}: there is no probe fixtures/deprecations/{name}.py"
            yield Judgement(rule.id, Verdict.FAIL, deprecation.id, Cause("no probe", name, text))
            continue
        observed = evidence.deprecations.get(name, {})
        for version in evidence.policy.corpus.readers:
            subject = f"{deprecation.id} in torch-{version}"
            if version in observed:
                yield Judgement(rule.id, Verdict.PASS, subject, reader=version)
            elif evidence.policy.calendar[version].date > evidence.as_of:
                yield Judgement(rule.id, Verdict.NO_PROMISE, subject, reader=version)
            else:
                what = f"{subject}: the release has not run the current probe"
                if version not in asked:
                    what = f"torch-{version}: the release has not run any deprecation probe"
                cause = Cause("not asked", name, f'{what}; run nox -s "observe(torch-{version})" -- --record')
                yield Judgement(rule.id, Verdict.NOT_CHECKED, subject, cause, reader=version)
    for name in sorted(probes - used):
        text = f"fixtures/deprecations/{name}.py: no deprecation in the policy uses this probe"
        yield Judgement(rule.id, Verdict.FAIL, name, Cause("no deprecation", name, text))
