"""Probes hold.

What: every check of every probe holds in every reader that has the feature. A check that could not be run says what the release
lacks, and is answered by some other release; a feature that a release had also exists in newer releases. All releases run the
same checks.

Why: load options moved from single functions to one configuration object; code that still uses the older accessors must reach the
same settings. A check that silently did not run would look like a check that holds.

Example: ``set_default_load_endianness`` sets the value that ``torch.utils.serialization.config.load.endianness`` reads. 2.6.0
lacks the configuration object, so the check cannot run there; 2.7.1 has it. A newer release without it has lost the feature.

Reference: pytorch/pytorch#143324.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from torch_compat.corpus.json_lines import digest
from torch_compat.judging.judgement import Asks, Cause, Judgement, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.corpus.observations import Probe
    from torch_compat.corpus.recipes import ProbeFile
    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import RuleEntry

__all__ = ["judge"]

ASKS: Final = Asks.OTHER

LACKS: Final = re.compile(r"this release lacks (?P<what>\S.*)")
"""The note for a check that could not be run."""


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every probe with every reader of the policy."""
    for probe in evidence.corpus.probes:
        results = {version: _observed(evidence, probe, version) for version in evidence.policy.corpus.readers}
        asked = {version: entry for version, (entry, _) in results.items() if entry is not None and entry.error is None}
        peers = _Peers(probe.name, {version: asked[version] for version in sorted(asked, key=evidence.rank.__getitem__)})
        for version, (entry, why) in results.items():
            subject = f"{probe.name} in torch-{version}"
            if entry is None:
                text = f'{subject}: {why}; run nox -s "observe(torch-{version})" -- --record'
                yield Judgement(rule.id, Verdict.NOT_CHECKED, subject, Cause(why, probe.name, text), reader=version)
            elif entry.error is not None:
                text = f"{subject}: {entry.error['type']}: {entry.error['message']}"
                yield Judgement(rule.id, Verdict.FAIL, subject, Cause("error", probe.name, text), reader=version)
            else:
                yield from _judge(rule, entry, version, peers)


def _observed(evidence: Evidence, probe: ProbeFile, version: str) -> tuple[Probe | None, str]:
    """Return a release's answer to the current version of a probe; else None, and the reason."""
    observed = [
        (reader, reader.probes[probe.name])
        for source in (evidence.recorded, evidence.fresh)
        for _, reader in sorted(source.items())
        if reader.release == version and probe.name in reader.probes
    ]
    for reader, entry in observed:
        if entry.key == digest(probe.sha256, reader.identity_digest, reader.protocol)[:20]:
            return entry, ""
    return None, "the probe changed since it was observed" if observed else "not observed"


class _Peers:
    """The answers of all releases to the checks of one probe.

    Attributes:
        name: the name of the probe.
        entries: the answers of each release, oldest first.
        checks: every check that a release ran or could not run.
    """

    def __init__(self, name: str, entries: dict[str, Probe]) -> None:
        self.name, self.entries = name, entries
        self.checks = dict.fromkeys(check for entry in entries.values() for check, _, _ in entry.checks)
        self._answered: dict[str, list[str]] = {}  # the releases that ran a check, oldest first
        self._needing: dict[str, set[str]] = {}  # the checks that some release could not run, by what it lacks
        for version, entry in entries.items():
            for check, holds, note in entry.checks:
                if holds is not None:
                    self._answered.setdefault(check, []).append(version)
                elif lack := LACKS.fullmatch(note):
                    self._needing.setdefault(lack["what"], set()).add(check)

    def answer(self, check: str) -> str:
        """Return the releases that ran a check, for users; "" if none did."""
        result = self._answered.get(check, [""])
        return result[0] if len(result) == 1 else f"{result[0]} to {result[-1]}"

    def lost(self, check: str, version: str) -> tuple[str, str]:
        """Return the newest earlier release that ran a check, and the release after it, which lost it; "" if there is none."""
        order = list(self.entries)
        older = [item for item in self._answered.get(check, ()) if order.index(item) < order.index(version)]
        return (older[-1], order[order.index(older[-1]) + 1]) if older else ("", "")

    def witness(self, what: str, version: str) -> str:
        """Return a check that this release ran although it needs the missing feature; "" if there is none."""
        needing = self._needing.get(what, set())
        return next((check for check, holds, _ in self.entries[version].checks if holds is not None and check in needing), "")


def _judge(rule: RuleEntry, entry: Probe, version: str, peers: _Peers) -> Iterator[Judgement]:
    """Judge the answers of one release."""
    subject = f"{peers.name} in torch-{version}"
    if not peers.checks:
        cause = Cause("nothing checked", peers.name, f"{subject}: it ran no checks")
        yield Judgement(rule.id, Verdict.NOT_CHECKED, subject, cause, reader=version)
    for check, holds, note in entry.checks:
        if holds:
            yield Judgement(rule.id, Verdict.PASS, f"{subject}: {check}", reader=version)
        elif holds is not None:
            cause = Cause("does not hold", check, f"{check}: {note}")
            yield Judgement(rule.id, Verdict.FAIL, f"{subject}: {check}", cause, reader=version)
        else:
            yield _unasked(rule, check, note, version, peers)
    results = {check for check, _, _ in entry.checks}
    for check in peers.checks:
        if check not in results:
            text = f"{subject}: it does not report the check {check}, but other releases do"
            cause = Cause("check missing", check, text)
            yield Judgement(rule.id, Verdict.FAIL, f"{subject}: {check}", cause, reader=version)


def _unasked(rule: RuleEntry, check: str, note: str, version: str, peers: _Peers) -> Judgement:
    """Judge a check that could not be run in a release."""
    subject, lack = f"{peers.name} in torch-{version}: {check}", LACKS.fullmatch(note)
    answer, (before, since) = peers.answer(check), peers.lost(check, version)
    if before:
        text = f"{peers.name}: {check} cannot be run in {since} ({note or 'it does not say why'}), but {before} ran it"
        return Judgement(rule.id, Verdict.FAIL, subject, Cause("lost", check, text), reader=version, at=since)
    if lack is None:
        text = f"{subject} was not run, and does not say what the release lacks: {note or 'no reason'}"
        return Judgement(rule.id, Verdict.NOT_CHECKED, subject, Cause("no reason", check, text), reader=version)
    if witness := peers.witness(lack["what"], version):
        text = f"{subject}: {note}, but {witness}, which needs it, was run"
        return Judgement(rule.id, Verdict.FAIL, subject, Cause("contradiction", check, text), reader=version)
    if not answer:
        text = f"{peers.name}: no release runs {check}: each lacks something, such as {lack['what']}"
        return Judgement(rule.id, Verdict.NOT_CHECKED, subject, Cause("asked nowhere", check, text), reader=version)
    text = f"{peers.name}: {lack['what']} is not available yet; {answer} can be run"
    return Judgement(rule.id, Verdict.NO_PROMISE, subject, Cause("lacks", lack["what"], text), reader=version)
