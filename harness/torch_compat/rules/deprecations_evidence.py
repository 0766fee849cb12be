"""The policy file of a deprecation agrees with what releases did.

What: in every release that ran the probe, the deprecated feature is in the state that follows from the events in its file:
silent, warning, raising, removed, or with the new behavior. Its warning is visible by default, unless the file says that Python
hides it. Its alternative exists from the release that the file names, works, and does not warn itself. Its documentation contains
the words that the file quotes, from that release on and not before, and announces nothing that the file does not quote. If, and
only if, the probe cannot determine the state, the file must say so and give the reason.

Why: a warning that nobody sees, or that recommends an alternative which also warns, does not help users. A timeline that is
judged by unchecked dates proves nothing. An event must lie between the last release without it and the first release with it.

Example: a file says that 1.9.0 was the first release to warn, but the probe already recorded the warning in 1.8.1. The file is
wrong.

Reference: this project; the states are recorded under reports/observations, from probes in fixtures/deprecations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from torch_compat.judging.judgement import Asks, Cause, Judgement, Verdict
from torch_compat.judging.timelines import State, hidden, mismatches, seen
from torch_compat.policy.timeline import histories
from torch_compat.releases.release import Release

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import RuleEntry
    from torch_compat.policy.deprecations import Deprecation

__all__ = ["judge"]

ASKS: Final = Asks.OTHER

OF_THE_ALTERNATIVE: Final = "wrong alternative warning"
"""A mismatch that is not an error in a file: a release deprecated the alternative that it had recommended. No promise covered this before
the policy.
"""


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every deprecation in every release that ran the probe."""
    for history in histories(evidence.policy):
        deprecation = history.deprecation
        states = seen(evidence, deprecation)
        observed = evidence.deprecations.get(deprecation.probe, {})
        wrong: dict[str, list[Cause]] = {}
        since: dict[str, str] = {}
        for mismatch in mismatches(evidence, history, states):
            wrong.setdefault(mismatch.release, []).append(Cause(f"wrong {mismatch.what}", deprecation.id, mismatch.text))
            since[mismatch.release] = mismatch.since
        for release, state in states.items():
            subject = f"{deprecation.id} in torch-{release}"
            excuse = _excuse(deprecation, release)
            promised = evidence.policy.calendar[release].date >= evidence.policy.in_force_from
            for cause in wrong.get(release, ()):
                broken = Verdict.FAIL if promised or cause.what != OF_THE_ALTERNATIVE else Verdict.NO_PROMISE
                yield Judgement(rule.id, broken, subject, cause, reader=release, at=since[release])
            if state.state is State.CANNOT_TELL and not excuse:
                cause = Cause("cannot tell", deprecation.id, f"{subject}: {state.why}")
                yield Judgement(rule.id, Verdict.NOT_CHECKED, subject, cause, reader=release)
            elif state.state is State.CANNOT_TELL:
                yield Judgement(rule.id, Verdict.NO_PROMISE, subject, reader=release)
            elif excuse:
                text = f"{subject}: is listed as unclear ({excuse}), but the probe shows that it is {state.state}"
                yield Judgement(rule.id, Verdict.FAIL, subject, Cause("excuse outdated", deprecation.id, text), reader=release)
            elif (
                release not in wrong
                and state.state is State.WARNED
                and (unseen := hidden(deprecation, observed[release].deprecated))
            ):
                text = f"{deprecation.id}: warns with a {unseen}, which Python hides by default"
                yield Judgement(rule.id, Verdict.EXPECTED, subject, Cause("hidden warning", deprecation.id, text), reader=release)
            elif release not in wrong:
                yield Judgement(rule.id, Verdict.PASS, subject, reader=release)
        for span in deprecation.hidden:
            asked = [result.state for release, result in states.items() if Release(release) in span.readers]
            if asked and State.WARNED not in asked:
                text = f"{deprecation.id}: none of the checked releases in {span.readers} warns, but the policy says that Python hides its warning"
                yield Judgement(rule.id, Verdict.FAIL, deprecation.id, Cause("nothing hidden", deprecation.id, text))


def _excuse(deprecation: Deprecation, release: str) -> str:
    """Return why the state in a release is unclear according to the file; "" if it is not."""
    return next((span.why for span in deprecation.unclear if Release(release) in span.readers), "")
