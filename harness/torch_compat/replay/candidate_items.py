"""What ``torch-compat candidate`` makes of what a build did: one item for each cause, with its witness and what the policy says."""

from __future__ import annotations

import itertools
import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from torch_compat.corpus.manifest import Fixture, release_folder, same_but_for_varying
from torch_compat.corpus.observations import Observation
from torch_compat.judging.cell import Outcome
from torch_compat.judging.compared import BREAKS, RESULTS, Compared, Moved, in_short, subject_of, tell, told, verdict_of, why
from torch_compat.judging.judge import judge_reader
from torch_compat.judging.judgement import Verdict
from torch_compat.judging.operator_check import advice
from torch_compat.policy.model import STORED
from torch_compat.replay.rehearsal import only_last_bits
from torch_compat.replay.snippet import snippet
from torch_compat.report.candidate import CandidateItem, Policy
from torch_compat.report.schedule import allowed_from
from torch_compat.values.compare import compare
from torch_compat.values.normalise import headline
from torch_compat.writes import changing, put

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from torch_compat.corpus.corpus import Corpus
    from torch_compat.corpus.observations import ObservedReader
    from torch_compat.judging.evidence import Evidence
    from torch_compat.judging.judge import ReaderJudgement
    from torch_compat.judging.operator_check import CheckedOperators
    from torch_compat.policy import CalendarRelease
    from torch_compat.policy import Policy as Promises
    from torch_compat.readers.build_release import BuildRelease
    from torch_compat.readers.environments import Environment
    from torch_compat.readers.isolation import Trust
    from torch_compat.replay.progress import ProgressSink
    from torch_compat.replay.trees import BuildTree

__all__ = ["Asking", "Candidate", "Items", "Programs", "ReleasePair"]

OLDER: Final = "older reader"
OWN: Final = "own"
KEPT: Final = frozenset({Outcome.SAME, Outcome.CLOSE})


@dataclass(kw_only=True)
class ReleasePair:
    """Two releases that are compared, and what is known on that day.

    Attributes:
        evidence: the corpus and what is recorded, under a policy whose calendar holds the newer one.
        release: the newer one, which is judged: nothing is known of it but what it was just asked.
        base: the release that it is compared with, as it is recorded, or as it was just asked.
        today: the day of the examination.
        wrote: what the release that it is compared with wrote, where that is a build. The evidence holds it, too, but not its place.
    """

    evidence: Evidence
    release: CalendarRelease
    base: ObservedReader
    today: dt.date
    wrote: Corpus | None = None


@dataclass(kw_only=True)
class Asking:
    """Everything that asking one build needs.

    Attributes:
        evidence: the corpus, under a policy whose calendar holds the build.
        release: the build.
        today: the day on which it is asked.
        tree: where it is kept.
        seed: of the sample; ``everything`` reads all fixtures.
        trust: which archives may be run where this machine cannot isolate the build.
        progress: where progress is told.
        recipes: only these, where some are named.
        shard: the part, and the number of parts, where the recipes are those of a part. The first part asks all that has no recipe.
    """

    evidence: Evidence
    release: BuildRelease
    today: dt.date
    tree: BuildTree
    seed: int
    everything: bool
    trust: Trust
    progress: ProgressSink
    recipes: frozenset[str] | None = None
    shard: tuple[int, int] | None = None

    @property
    def whole(self) -> bool:
        """Whether this examination asks what has no recipe: operators, probes and deprecations."""
        return self.shard is None or self.shard[0] == 1


@dataclass(kw_only=True)
class Candidate(Asking, ReleasePair):
    """Everything that one examination of a build needs.

    Attributes:
        environment: of the release that it is compared with; None where that is not built here.
        operators: the operators of that release: its version, or a file of them.
        earlier: the trees of earlier builds.
    """

    release: BuildRelease
    environment: Environment | None
    operators: str
    earlier: Sequence[BuildTree] = ()


class Programs:
    """Writes programs that show what a build does without torch-compat, into its tree."""

    def __init__(self, asked: Candidate) -> None:
        self._asked = asked
        self._written = 0

    def cell(self, fixture: Fixture, path: Path, options: str, about: str, *, older: bool) -> str | None:
        """Write a program that shows a cell, and give the command that runs it; None where it takes more than a few lines.

        Parameters:
            path: the archive.
            older: whether the release is the reader, which may not be built here.
        """
        sets = {entry.id: entry for entry in self._asked.evidence.policy.options}
        program = self._asked.tree.path.joinpath("reproduce", f"{self._written + 1}.py")
        python = self._asked.release.build.environment.python
        if older:
            if self._asked.environment is None:
                return None
            python = self._asked.environment.python
        command = shlex.join([str(python), str(program)])
        text = snippet(fixture, path, sets[options], command, about)
        if text is None:
            return None
        self._written += 1
        with changing(self._asked.tree.path):
            put(program, text, "utf-8")
        return command

    def operator(self, name: str) -> str:
        """The command that lists the overloads of an operator that the build has."""
        there = f'[print(s) for s in torch._C._jit_get_all_schemas() if str(s).startswith(("{name}(", "{name}."))]'
        return shlex.join([str(self._asked.release.build.environment.python), "-c", f"import torch; {there}"])


def _merged(items: Iterable[CandidateItem]) -> list[CandidateItem]:
    """The same items, each cause once: the first recipe is its witness."""
    found: dict[str, CandidateItem] = {}
    for item in items:
        same = found.get(item.id)
        found[item.id] = item if same is None else replace(same, count=same.count + item.count)
    return list(found.values())


class Items:
    """Makes items of a report out of what was observed.

    Parameters:
        own: what the newer release wrote.
        earlier: the trees of earlier builds.
        programs: writes programs that show single items; none are written without it.
    """

    def __init__(
        self, asked: ReleasePair, own: Corpus, earlier: Iterable[BuildTree] = (), programs: Programs | None = None
    ) -> None:
        self._asked, self._own, self._programs = asked, own, programs
        self._reports = [
            (tree, {str(one.get("id")) for one in report["new"] if isinstance(one, dict)})
            for tree in earlier
            if (report := tree.report())
        ]

    def moved(self, parts: Iterable[Compared], state: str) -> list[CandidateItem]:
        """What moved from the release to the build, one item for each cause."""
        groups: dict[str, list[Moved]] = {}
        for part in parts:
            for one in part.moved:
                if one.state == state:
                    groups.setdefault(one.group, []).append(one)
        return [self._of(group, members) for group, members in groups.items()]

    def _of(self, group: str, members: list[Moved]) -> CandidateItem:
        grave = [one for one in members if verdict_of(one.judged) is BREAKS] or members
        witness = min(grave, key=lambda one: (one.options != "default", self._size(one), one.fixture, one.options))
        verdict = verdict_of(itertools.chain.from_iterable(one.judged for one in members))
        rule = next((one.rule for one in witness.judged if one.verdict is verdict), "")
        policy, says, day = self._policy(witness, verdict, rule)
        fixture = self._fixture(witness)
        reproduce = (
            self._snippet(fixture, witness.options, witness.cause, by=witness.what) if fixture and witness.options else None
        )
        name = witness.fixture if witness.options in {"", "default"} else f"{witness.fixture} ({witness.options})"
        return self._item(
            id=group, what=witness.what, cause=witness.cause, before=witness.before, after=witness.after, policy=policy, says=says,
            rule=rule, allowed_from=day, count=len(members), witness=name, reproduce=reproduce,
        )  # fmt: skip

    def _fixture(self, one: Moved) -> Fixture | None:
        """A fixture of the corpus, or one that the build wrote: the corpus may have one of the same name."""
        known, own = self._asked.evidence.corpus.fixtures, self._own.fixtures
        first, second = (own, known) if one.what in {OWN, OLDER} else (known, own)
        return first.get(one.fixture) or second.get(one.fixture)

    def _size(self, one: Moved) -> int:
        fixture = self._fixture(one)
        return fixture.size if fixture is not None else 0

    def _item(self, **facts: Any) -> CandidateItem:
        first = next((tree.name for tree, ids in self._reports if facts["id"] in ids), None)
        return CandidateItem(**facts, first=first or (self._asked.release.name if self._reports else None))

    def _policy(self, one: Moved, verdict: Verdict, rule: str) -> tuple[Policy, str, str | None]:
        """What the policy says of something new, and from which day it is allowed."""
        promises = self._asked.evidence.policy
        if verdict is Verdict.FAIL:
            fixture = self._asked.evidence.corpus.fixtures.get(one.fixture)
            stored = fixture is not None and fixture.family in STORED
            mends = {
                "newer-computes": "must return the values that were saved"
                if stored
                else "needs an upgrader and a new file format version, or must keep the old behavior",
                "newer-loads": "must load, or be deprecated first",
            }.get(rule, f"see `torch-compat explain {rule}`")
            kinds = {"newer-computes": None if stored else "behaviour", "newer-loads": "removal"}  # nothing else can be announced
            kind = kinds.get(rule)
            day = self._from(promises, kind, one.fixture) if kind is not None else None
            return "breaks", f"breaks a promise ({rule}): {mends}", day
        if verdict in {Verdict.WAIVED, Verdict.CONTINUES, Verdict.EXPECTED}:
            return ("allowed" if verdict is Verdict.EXPECTED else "waived"), f"is {verdict} ({rule})", None
        if one.what == "deprecation":
            day = self._from(promises, "removal", one.fixture)
            return "needs", "must first be deprecated, with a warning for 2 releases and 180 days", day
        if one.what == "warns":
            return "allowed", "no promise covers this warning: add it to policies/torch/warnings.toml if it is intended", None
        if one.what == "probe":
            return "needs", "the formats in the policy depend on this probe: explain the difference, or correct them", None
        return "allowed", "no promise covers this", None

    def _from(self, promises: Promises, kind: str, subject: str) -> str | None:
        day = allowed_from(promises, kind, subject.partition("/")[2] or subject, self._asked.today)
        return day.isoformat() if day else None

    def _snippet(self, fixture: Fixture, options: str, about: str, *, by: str = "") -> str | None:
        """Write a program that shows a cell, and give the command that runs it, with the release where it is the reader."""
        if self._programs is None:
            return None
        places = [self._own, *([self._asked.wrote] if self._asked.wrote is not None else [])]
        known = self._asked.evidence.corpus
        corpus = next((one for one in places if one.fixtures.get(fixture.id) is fixture), known)
        return self._programs.cell(fixture, corpus.path(fixture), options, about, older=by == OLDER)

    # ---------------------------------------------------------------------------------------------------------- writing

    def written(self, own: Corpus, failures: dict[str, str], judged: Mapping[str, ReaderJudgement]) -> list[CandidateItem]:
        """Recipes that the build writes differently from the release.

        Parameters:
            judged: the rule that an archive of the build breaks by what it states, by the fixture.
        """
        items: list[CandidateItem] = []
        for recipe, reason in sorted(failures.items()):
            items.append(self._write(recipe, f"{recipe}: {headline(reason)}", "writes it", "does not write it", "breaks"))
        for recipe, old, new in self._pairs(own):
            if isinstance(old, Fixture) and not isinstance(new, Fixture):
                error = f"{new.type.removeprefix('builtins.')}: {headline(new.message)}"
                items.append(self._write(recipe, f"{recipe}: {error}", "writes it", error, "needs"))
            elif isinstance(old, Fixture) and isinstance(new, Fixture):
                items += self._differing(recipe, old, new, judged.get(new.id))
        return _merged(items)

    def mended_writes(self, own: Corpus) -> list[CandidateItem]:
        """Recipes that the build writes and the release does not."""
        return [
            self._write(recipe, f"{recipe}: can be written now", headline(old.message), "writes it", "allowed")
            for recipe, old, new in self._pairs(own)
            if isinstance(new, Fixture) and not isinstance(old, Fixture)
        ]

    def _pairs(self, own: Corpus) -> list[tuple[str, Any, Any]]:
        known = {
            entry.recipe: entry for entry in self._asked.evidence.corpus.entries if entry.release == self._asked.base.release
        }
        return [(entry.recipe, known[entry.recipe], entry) for entry in own.entries if entry.recipe in known]

    def _differing(self, recipe: str, old: Fixture, new: Fixture, judged: ReaderJudgement | None) -> list[CandidateItem]:
        fields = set(same_but_for_varying(old, new)) - {"release", "recipe_sha256"}
        items = []
        if "versions" in fields:
            moved = [
                f"{kind} {old.versions.get(kind, 'none')} to {new.versions.get(kind, 'none')}"
                for kind in sorted(old.versions.keys() | new.versions.keys())
                if old.versions.get(kind) != new.versions.get(kind)
            ]
            texts = str(old.versions), str(new.versions)
            item = self._write(f"version:{', '.join(moved)}", f"{recipe}: writes {', '.join(moved)}", *texts, "needs", recipe)
            if judged is not None:
                says = f"breaks a promise ({judged.rule}): {judged.cause}"
                item = replace(item, id=f"{item.id}:{judged.rule}", policy="breaks", says=says, rule=judged.rule)
            items.append(item)
        if "golden" in fields and not self._close(old, new):
            found = told(self._asked.evidence, old, old.golden, new.golden)
            subject, cause = tell(old, found) if found else (recipe, f"{recipe}: computes different results")
            reproduce = self._snippet(new, "default", f"{recipe}: results of the build")
            items.append(self._write(f"golden:{subject}", cause, "", "", "needs", recipe, reproduce))
        return items

    def _close(self, old: Fixture, new: Fixture) -> bool:
        if only_last_bits(old, new):
            return True
        found = compare(old.golden, new.golden)
        cell = Observation(
            old.id, "default", "", found.result, errors=found.errors, differences=found.differences, extent=found.extent,
            count=found.count, heard=found.heard, said=found.said,
        )  # fmt: skip
        return self._asked.evidence.outcome(old, cell, (old.golden, new.golden)) in KEPT

    def _write(
        self, group: str, cause: str, before: str, after: str, policy: Policy, witness: str = "", reproduce: str | None = None
    ) -> CandidateItem:
        says = {
            "breaks": "breaks a promise (recipes-written): the build must write everything that the release writes",
            "needs": "must be deprecated first, or needs a version bump",
            "allowed": "is allowed",
        }[policy]
        name = f"{release_folder(self._asked.release.version)}/{witness or group}"
        return self._item(
            id=f"writes:{group}", what="writes", cause=cause, before=before, after=after, policy=policy, says=says,
            rule="recipes-written" if policy == "breaks" else "", allowed_from=None, count=1, witness=name, reproduce=reproduce,
        )  # fmt: skip

    def own(self, evidence: Evidence, fresh: ObservedReader, judged: dict[tuple[str, str], Any]) -> list[CandidateItem]:
        """What the build does wrong with its own archives, where the release does it right with its own."""
        mine = {
            fixture.id: fixture for fixture in evidence.corpus.fixtures.values() if fixture.release == self._asked.release.version
        }
        return self._against_own(evidence, fresh, mine, judged, OWN)

    def older(self, evidence: Evidence, older: ObservedReader | None) -> list[CandidateItem]:
        """What the release does wrong with archives of the build, where it does it right with its own."""
        if older is None:
            return []
        mine = {
            fixture.id: fixture for fixture in evidence.corpus.fixtures.values() if fixture.release == self._asked.release.version
        }
        judged, _ = judge_reader(evidence, older.name)
        return self._against_own(evidence, older, mine, judged, OLDER)

    def _against_own(
        self, evidence: Evidence, reader: ObservedReader, mine: dict[str, Fixture], judged: dict[tuple[str, str], Any], what: str
    ) -> list[CandidateItem]:
        groups: dict[str, list[Moved]] = {}
        options = {entry.id: entry for entry in evidence.policy.options}
        base = release_folder(self._asked.base.release)
        for (fixture_id, options_id), cell in sorted(reader.cells.items()):
            fixture = mine.get(fixture_id)
            if fixture is None or (outcome := evidence.outcome(fixture, cell)) in KEPT:
                continue
            twin = self._asked.evidence.corpus.fixtures.get(f"{base}/{fixture.recipe}")
            before = evidence.valid(self._asked.base, twin, options[options_id]) if twin is not None else None
            if twin is None or before is None or evidence.outcome(twin, before) is outcome:
                continue  # the release cannot write it, or does the same with its own: nothing of it is new
            found = None
            if cell.result in RESULTS and cell.departures:
                found = told(evidence, fixture, fixture.golden, cell.own_result(fixture.golden))
                if found == []:
                    continue  # what the build raises, it raises, too, in other words
            said = judged.get((fixture_id, options_id), ())
            texts = in_short(evidence.outcome(twin, before), before), in_short(outcome, cell)
            subject, text = f"{outcome}:{subject_of(fixture, cell)}", why(fixture, cell, texts)
            if found:
                subject, text = tell(fixture, found)
            cause = f"{reader.name} with an archive from the build: {text}"
            group = f"{what}:{subject}"
            moved = Moved("new", what, group, fixture_id, options_id, *texts, cause, said)
            groups.setdefault(group, []).append(moved)
        return [self._of(group, members) for group, members in groups.items()]

    # -------------------------------------------------------------------------------------------------------- operators

    def operators(self, checked: CheckedOperators | None) -> list[CandidateItem]:
        """Operators that the build lacks or has with another schema, so that programs of the release do not work."""
        if checked is None:
            return []
        items = []
        for one in checked.broken:
            cause = f"{one.operator}: {one.reason}"
            policy: Policy = "breaks"
            name = one.operator.partition(".")[0]
            items.append(
                self._item(
                    id=f"operator:{one.operator}:{one.what}", what="operator", cause=cause, before=one.old, after=one.new or "gone",
                    policy=policy, says=f"breaks a promise (schema-breaks-upgraded): {advice(one)}", rule="schema-breaks-upgraded",
                    allowed_from=self._from(self._asked.evidence.policy, "operator", one.operator), count=1, witness=one.operator,
                    reproduce=self._programs.operator(name) if self._programs is not None else None,
                )
            )  # fmt: skip
        return items
