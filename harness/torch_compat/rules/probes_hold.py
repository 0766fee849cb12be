"""Probes hold.

What: every check of every probe holds in every reader that has the thing it asks about.

Why: load options moved from single functions to one configuration object; whoever still uses the older accessors must
reach the same settings.

Example: ``set_default_load_endianness`` sets what ``torch.utils.serialization.config.load.endianness`` reads.

Reference: pytorch/pytorch#143324.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_compat.corpus.lines import digest
from torch_compat.rules.judgement import Cause, Judgement, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.policy import RuleEntry
    from torch_compat.rules.evidence import Evidence

__all__ = ["judge"]


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every probe with every reader of the policy."""
    for probe in evidence.corpus.probes:
        for version in evidence.policy.corpus.readers:
            observed = [
                (reader, reader.probes[probe.name])
                for source in (evidence.recorded, evidence.fresh)
                for _, reader in sorted(source.items())
                if reader.release == version and probe.name in reader.probes
            ]
            current = [
                entry
                for reader, entry in observed
                if entry.key == digest(probe.sha256, reader.identity_digest, reader.protocol)[:20]
            ]
            subject = f"{probe.name} in torch-{version}"
            if not current:
                why = "the probe changed since it was observed" if observed else "not observed"
                text = f'{subject}: {why}; run nox -s "observe(torch-{version})" -- --record'
                yield Judgement(rule.id, Verdict.NOT_CHECKED, subject, Cause(why, probe.name, text), reader=version)
                continue
            entry = current[0]
            if entry.error is not None:
                text = f"{subject}: {entry.error['type']}: {entry.error['message']}"
                yield Judgement(rule.id, Verdict.FAIL, subject, Cause("error", probe.name, text), reader=version)
            elif not entry.checks:
                cause = Cause("nothing checked", probe.name, f"{subject}: it made no check at all")
                yield Judgement(rule.id, Verdict.NOT_CHECKED, subject, cause, reader=version)
            for check, holds, note in entry.checks:
                if holds is None:
                    yield Judgement(rule.id, Verdict.NO_PROMISE, f"{subject}: {check}", reader=version)
                elif holds:
                    yield Judgement(rule.id, Verdict.PASS, f"{subject}: {check}", reader=version)
                else:
                    cause = Cause("does not hold", check, f"{check}: {note}")
                    yield Judgement(rule.id, Verdict.FAIL, f"{subject}: {check}", cause, reader=version)
