"""The items that ``torch-compat candidate`` reports on a build: one for each cause, with a witness and the policy's verdict."""

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
from torch_compat.replay.last_bits import only_last_bits
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
    """Two releases to compare, and the facts known on that day.

    Attributes:
        evidence: the corpus and all records, under a policy whose calendar includes the newer release.
        release: the newer release, which is judged: nothing is known of it except the observations just made.
        base: the release that it is compared with, as recorded or as just observed.
        today: the day of the examination.
        wrote: the archives of the base, if that is a build. The evidence includes them, but not their location.
    """

    evidence: Evidence
    release: CalendarRelease
    base: ObservedReader
    today: dt.date
    wrote: Corpus | None = None


@dataclass(kw_only=True)
class Asking:
    """Everything needed to examine one build.

    Attributes:
        evidence: the corpus, under a policy whose calendar includes the build.
        release: the build.
        today: the day of the examination.
        tree: the tree that stores it.
        seed: the seed of the sample; ``everything`` reads all fixtures.
        trust: which archives may be run if this machine cannot isolate the build.
        progress: the sink for progress.
        recipes: the only recipes to use, if given.
        shard: the part and the number of parts, if the recipes are those of a part. The first part runs all checks without a recipe.
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
        """Whether this examination includes the checks without a recipe: operators, probes and deprecations."""
        return self.shard is None or self.shard[0] == 1


@dataclass(kw_only=True)
class Candidate(Asking, ReleasePair):
    """Everything needed to compare a build with its base.

    Attributes:
        environment: the environment of the base; None if it is not built here.
        operators: the operators of the base: its version, or a file that lists them.
        earlier: the trees of earlier builds.
    """

    release: BuildRelease
    environment: Environment | None
    operators: str
    earlier: Sequence[BuildTree] = ()


class Programs:
    """Writes programs into a build's tree that reproduce the build's behavior without torch-compat."""

    def __init__(self, asked: Candidate) -> None:
        self._asked = asked
        self._written = 0

    def cell(self, fixture: Fixture, path: Path, options: str, about: str, *, older: bool) -> str | None:
        """Write a program that reproduces a cell, and return the command that runs it; None if it would take more than a few lines.

        Parameters:
            path: the archive.
            older: whether the base is the reader, which may not be built here.
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
        """The command that lists the overloads of an operator in the build."""
        there = f'[print(s) for s in torch._C._jit_get_all_schemas() if str(s).startswith(("{name}(", "{name}."))]'
        return shlex.join([str(self._asked.release.build.environment.python), "-c", f"import torch; {there}"])


def _merged(items: Iterable[CandidateItem]) -> list[CandidateItem]:
    """Merge items with the same cause: the first recipe is the witness."""
    results: dict[str, CandidateItem] = {}
    for item in items:
        same = results.get(item.id)
        results[item.id] = item if same is None else replace(same, count=same.count + item.count)
    return list(results.values())


class Items:
    """Makes report items from observations.

    Parameters:
        own: the archives of the newer release.
        earlier: the trees of earlier builds.
        programs: writes programs that reproduce single items; without it, none are written.
    """

    def __init__(
        self, asked: ReleasePair, own: Corpus, earlier: Iterable[BuildTree] = (), programs: Programs | None = None
    ) -> None:
        self._asked, self._own, self._programs = asked, own, programs
        self._reports = [
            (tree, {str(item.get("id")) for item in report["new"] if isinstance(item, dict)})
            for tree in earlier
            if (report := tree.report())
        ]

    def moved(self, parts: Iterable[Compared], state: str) -> list[CandidateItem]:
        """The changes from the base to the build, one item for each cause."""
        groups: dict[str, list[Moved]] = {}
        for part in parts:
            for item in part.moved:
                if item.state == state:
                    groups.setdefault(item.group, []).append(item)
        return [self._of(group, members) for group, members in groups.items()]

    def _of(self, group: str, members: list[Moved]) -> CandidateItem:
        grave = [member for member in members if verdict_of(member.judged) is BREAKS] or members
        witness = min(grave, key=lambda item: (item.options != "default", self._size(item), item.fixture, item.options))
        verdict = verdict_of(itertools.chain.from_iterable(member.judged for member in members))
        rule = next((judgement.rule for judgement in witness.judged if judgement.verdict is verdict), "")
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

    def _fixture(self, item: Moved) -> Fixture | None:
        """A fixture of the corpus, or one that the build wrote: the corpus may have one with the same name."""
        known, own = self._asked.evidence.corpus.fixtures, self._own.fixtures
        first, second = (own, known) if item.what in {OWN, OLDER} else (known, own)
        return first.get(item.fixture) or second.get(item.fixture)

    def _size(self, item: Moved) -> int:
        fixture = self._fixture(item)
        return fixture.size if fixture is not None else 0

    def _item(self, **facts: Any) -> CandidateItem:
        first = next((tree.name for tree, ids in self._reports if facts["id"] in ids), None)
        return CandidateItem(**facts, first=first or (self._asked.release.name if self._reports else None))

    def _policy(self, item: Moved, verdict: Verdict, rule: str) -> tuple[Policy, str, str | None]:
        """The policy's verdict on a new item, and the day from which it is allowed."""
        promises = self._asked.evidence.policy
        if verdict is Verdict.FAIL:
            fixture = self._asked.evidence.corpus.fixtures.get(item.fixture)
            stored = fixture is not None and fixture.family in STORED
            mends = {
                "newer-computes": "must return the values that were saved"
                if stored
                else "needs an upgrader and a new file format version, or must keep the old behavior",
                "newer-loads": "must load, or be deprecated first",
            }.get(rule, f"see `torch-compat explain {rule}`")
            kinds = {"newer-computes": None if stored else "behaviour", "newer-loads": "removal"}  # only these can be announced
            kind = kinds.get(rule)
            day = self._from(promises, kind, item.fixture) if kind is not None else None
            return "breaks", f"breaks a promise ({rule}): {mends}", day
        if verdict in {Verdict.WAIVED, Verdict.CONTINUES, Verdict.EXPECTED}:
            return ("allowed" if verdict is Verdict.EXPECTED else "waived"), f"is {verdict} ({rule})", None
        if item.what == "deprecation":
            day = self._from(promises, "removal", item.fixture)
            return "needs", "must first be deprecated, with a warning for 2 releases and 180 days", day
        if item.what == "warns":
            return "allowed", "no promise covers this warning: add it to policies/torch/warnings.toml if it is intended", None
        if item.what == "probe":
            return "needs", "the formats in the policy depend on this probe: explain the difference, or correct them", None
        return "allowed", "no promise covers this", None

    def _from(self, promises: Promises, kind: str, subject: str) -> str | None:
        day = allowed_from(promises, kind, subject.partition("/")[2] or subject, self._asked.today)
        return day.isoformat() if day else None

    def _snippet(self, fixture: Fixture, options: str, about: str, *, by: str = "") -> str | None:
        """Write a program that reproduces a cell, and return its command, which uses the base if that is the reader."""
        if self._programs is None:
            return None
        places = [self._own, *([self._asked.wrote] if self._asked.wrote is not None else [])]
        known = self._asked.evidence.corpus
        corpus = next((place for place in places if place.fixtures.get(fixture.id) is fixture), known)
        return self._programs.cell(fixture, corpus.path(fixture), options, about, older=by == OLDER)

    # ---------------------------------------------------------------------------------------------------------- writing

    def written(self, own: Corpus, failures: dict[str, str], judged: Mapping[str, ReaderJudgement]) -> list[CandidateItem]:
        """Recipes that the build writes differently from the base.

        Parameters:
            judged: the rule that an archive of the build breaks by what it declares, keyed by fixture.
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
        """Recipes that the build writes and the base does not."""
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
            result = told(self._asked.evidence, old, old.golden, new.golden)
            subject, cause = tell(old, result) if result else (recipe, f"{recipe}: computes different results")
            reproduce = self._snippet(new, "default", f"{recipe}: results of the build")
            items.append(self._write(f"golden:{subject}", cause, "", "", "needs", recipe, reproduce))
        return items

    def _close(self, old: Fixture, new: Fixture) -> bool:
        if only_last_bits(old, new):
            return True
        result = compare(old.golden, new.golden)
        cell = Observation(
            old.id, "default", "", result.result, errors=result.errors, differences=result.differences, extent=result.extent,
            count=result.count, heard=result.heard, said=result.said,
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
        """Failures of the build with its own archives, where the base succeeds with its own."""
        mine = {
            fixture.id: fixture for fixture in evidence.corpus.fixtures.values() if fixture.release == self._asked.release.version
        }
        return self._against_own(evidence, fresh, mine, judged, OWN)

    def older(self, evidence: Evidence, older: ObservedReader | None) -> list[CandidateItem]:
        """Failures of the base with archives of the build, where it succeeds with its own."""
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
                continue  # the base cannot write it, or does the same with its own: nothing new
            result = None
            if cell.result in RESULTS and cell.departures:
                result = told(evidence, fixture, fixture.golden, cell.own_result(fixture.golden))
                if result == []:
                    continue  # the same error with a different wording
            message = judged.get((fixture_id, options_id), ())
            texts = in_short(evidence.outcome(twin, before), before), in_short(outcome, cell)
            subject, text = f"{outcome}:{subject_of(fixture, cell)}", why(fixture, cell, texts)
            if result:
                subject, text = tell(fixture, result)
            cause = f"{reader.name} with an archive from the build: {text}"
            group = f"{what}:{subject}"
            moved = Moved("new", what, group, fixture_id, options_id, *texts, cause, message)
            groups.setdefault(group, []).append(moved)
        return [self._of(group, members) for group, members in groups.items()]

    # -------------------------------------------------------------------------------------------------------- operators

    def operators(self, checked: CheckedOperators | None) -> list[CandidateItem]:
        """Operators that the build lacks or has with another schema, so that programs of the base do not work."""
        if checked is None:
            return []
        items = []
        for item in checked.broken:
            cause = f"{item.operator}: {item.reason}"
            policy: Policy = "breaks"
            name = item.operator.partition(".")[0]
            items.append(
                self._item(
                    id=f"operator:{item.operator}:{item.what}", what="operator", cause=cause, before=item.old, after=item.new or "gone",
                    policy=policy, says=f"breaks a promise (schema-breaks-upgraded): {advice(item)}", rule="schema-breaks-upgraded",
                    allowed_from=self._from(self._asked.evidence.policy, "operator", item.operator), count=1, witness=item.operator,
                    reproduce=self._programs.operator(name) if self._programs is not None else None,
                )
            )  # fmt: skip
        return items
