"""A small world to judge: four releases, recipes and fixtures as a test needs them, and the stated behavior of readers."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.counted import counts_of
from torch_compat.corpus.corpus import Corpus, CorpusDamage
from torch_compat.corpus.json_lines import digest
from torch_compat.corpus.manifest import SYNTHETIC, Fixture, Manifest, NotWritable, Synthetic
from torch_compat.corpus.observations import Observation, ObservedReader, Probe, cell_key
from torch_compat.corpus.recipes import ProbeFile, Recipe
from torch_compat.judging import judge as judging
from torch_compat.judging.evidence import Evidence
from torch_compat.policy import Policy
from torch_compat.policy.model import (
    CalendarRelease,
    CorpusScope,
    Covers,
    Format,
    LoadOptions,
    MayRefuse,
    Milestone,
    OptionSet,
    RuleEntry,
    Tolerance,
    Waiver,
)
from torch_compat.policy.sayings import KnownMessage, Phrase
from torch_compat.releases.calendar import Calendar
from torch_compat.releases.sets import ReleaseSet

if TYPE_CHECKING:
    from torch_compat.corpus.operators import RecordedOperators
    from torch_compat.corpus.proofs import Proofs
    from torch_compat.judging.cell import Cells
    from torch_compat.judging.judge import Report
    from torch_compat.judging.judgement import Judgement
    from torch_compat.judging.readers import Reader
    from torch_compat.policy.accepted import Accepted
    from torch_compat.policy.table_base import Family

DATES = {"1.0.0": dt.date(2020, 1, 1), "1.1.0": dt.date(2020, 6, 1), "1.1.1": dt.date(2020, 6, 10), "2.0.0": dt.date(2021, 1, 1)}
AS_OF = dt.date(2026, 1, 1)
ANY: tuple[Family, ...] = ("torch-save", "torchscript", "mobile", "package", "export")
PROTOCOL = 1
ERROR = {"type": "builtins.RuntimeError", "message": "version 9 is too new"}


def release(version: str) -> CalendarRelease:
    return CalendarRelease(version=version, date=DATES[version], pythons=("3.8",), install="whole", numpy="<2")


def rule(name: str, **more: Any) -> RuleEntry:
    return RuleEntry(id=name, asks="It holds.", source="here", **more)


def covers(outcome: str, recipes: str = "add", writers: str | None = "1.0.0", readers: str = "2.0.0..", **more: Any) -> Covers:
    """A part of what a waiver is for. Recipes are written with a space between them; none for all."""
    facts: dict[str, Any] = {"outcome": outcome, "writers": writers, "readers": readers, **more}
    if recipes:
        facts["recipes"] = tuple(recipes.split())
    return Covers.model_validate({key: value for key, value in facts.items() if value is not None})


def waiver(
    *parts: Covers, findings: tuple[str, ...] | None = None, name: str = "known", expires: dt.date | None = None
) -> Waiver:
    """A waiver for cells, or for findings that are about none."""
    rest: dict[str, Any] = {"reason": "so", "evidence": "seen", "owner": "us", "expires": expires}
    return Waiver(id=name, title="It is known", covers=parts or None, findings=findings, **rest)


def wording(*says: tuple[str, str], name: str = "check") -> KnownMessage:
    """A wording: texts of RuntimeErrors, each with the releases that say it."""
    phrases = [Phrase(type="RuntimeError", text=text, releases=ReleaseSet.parse(releases)) for text, releases in says]
    return KnownMessage(id=name, kind="error", says=tuple(phrases), because="so")


def file_format(version: int, **more: Any) -> Format:
    reads = Milestone(release=more.pop("read_from", "1.0.0"))
    if "no_writer" not in more:
        more["written_from"] = Milestone(release="1.0.0")
    return Format(kind="file-format", version=version, meaning="so", read_from=reads, **more)


DEFAULT = OptionSet(id="default", families=ANY)
STRICT = OptionSet(
    id="strict",
    families=("torch-save",),
    since="1.1.0",
    load=LoadOptions(weights_only=True),
    may_refuse=MayRefuse(message="version 9", reason="that is its purpose"),
)
TOLERANCE = Tolerance(dtype="float32", operators=("*",), max_ulp=4, max_abs=1e-6, max_rel=1e-4, reason="kernels differ")
POLICY = Policy(
    name="small",
    in_force_from=DATES["1.0.0"],
    forward_window_days=14,
    corpus=CorpusScope(writers=("1.0.0",), readers=("1.0.0", "2.0.0")),
    calendar=Calendar(map(release, DATES)),
    formats=(file_format(1),),
    options=(DEFAULT, STRICT),
    rules=(),
    tolerances=(TOLERANCE,),
    waivers=(),
)


def extent(*frontier: list[Any], kind: str = "value", dtype: str = "float32") -> dict[str, Any]:
    """What an observation says of all its differences of one kind."""
    return {"kind": kind, "dtype": dtype, "count": 1, "frontier": list(frontier) if kind == "value" else None}


NOTHING: dict[str, Any] = {"calls": [], "state": None, "state_after": None}
FAR = extent([1.0, 99])
NEAR = extent([0.5, 4])
FACTS: dict[str, dict[str, Any]] = {
    "same": {},
    "close": {"result": "differs", "count": 1, "digest": "1" * 16, "extent": (NEAR,)},
    "different": {"result": "differs", "count": 1, "digest": "2" * 16, "extent": (FAR,)},
    "refused": {"errors": (ERROR,)},
    "raised": {"errors": (ERROR,), "count": 1, "extent": (extent(kind="raised", dtype=""),)},
    "relaxed": {"count": 1, "extent": (extent(kind="relaxed", dtype=""),)},
    "crashed": {"signal": "SIGSEGV", "stage": "load"},
    "timed-out": {"stage": "call"},
}
ONE, OTHER = (Observation("", "", "", "same", digest=str(index) * 16) for index in range(2))
FACTS["unstable"] = {"both": (ONE, OTHER)}


def put(reader: ObservedReader, cell: Observation) -> Observation:
    """Add a cell to a reader that was made here."""
    assert isinstance(reader.cells, dict)
    reader.cells[cell.cell] = cell
    return cell


class World:
    """Evidence in the making."""

    def __init__(self) -> None:
        self.policy = POLICY
        self.recipes: dict[str, Recipe] = {}
        self.fixtures: list[Fixture] = []
        self.not_writable: list[NotWritable] = []
        self.damage: list[CorpusDamage] = []
        self.probes: list[ProbeFile] = []
        self.recorded: dict[str, ObservedReader] = {}
        self.fresh: dict[str, ObservedReader] = {}
        self.reference: ObservedReader | None = None
        self.operators: RecordedOperators | None = None
        self.proofs: Proofs | None = None
        self.unreadable: dict[str, str] = {}
        self.unavailable: dict[str, str] = {}
        self.as_of = AS_OF

    # ------------------------------------------------------------------------------------------------- what there is

    def promise(self, **change: Any) -> None:
        """Change the policy."""
        policy = replace(self.policy, **change)
        counts = counts_of((*policy.operator_waivers, *policy.behaviors))
        self.policy = replace(policy, counts=counts)

    def accept(self) -> Accepted:
        """Accept every difference that waivers are for, as it is now; what is then in the lock."""
        anything = replace(self.evidence(), policy=replace(self.policy, accepted=None))
        accepted = judging.measure(anything).waiving.accepted()
        self.promise(accepted=accepted)
        return accepted

    def ask(self, *names: str) -> None:
        """Name the rules of the policy."""
        self.promise(rules=tuple(map(rule, names)))

    def recipe(self, name: str = "add", *, since: str = "1.0.0", until: str | None = None, lacking: str | None = None) -> Recipe:
        result = Recipe(name, Path(f"{name}.py"), digest(name), "An idea.", "torchscript", (), since, until, "so", lacking)
        self.recipes[name] = result
        return result

    def fixture(self, version: str = "1.0.0", recipe: str = "add", **change: Any) -> Fixture:
        if recipe not in self.recipes:
            self.recipe(recipe)
        name = f"{recipe}.pt"
        result = Fixture(
            version, recipe, digest(recipe), name, digest(version, recipe), 1000, "c" * 64, "writer", "2026-01-01", "torchscript",
            "zip", {"file-format": 1}, [], [], dict(NOTHING), "same",
        )  # fmt: skip
        result = replace(result, **change)
        self.fixtures.append(result)
        return result

    def synthetic(self, *formats: str, recipe: str = "old", **change: Any) -> Synthetic:
        name = f"{recipe}.pt"
        result = Synthetic(
            SYNTHETIC, recipe, "", name, digest(recipe), 1000, "c" * 64, "writer", "2026-01-01", "torchscript",
            "zip", {"file-format": 1}, [], [], dict(NOTHING), "", list(formats), "",
        )  # fmt: skip
        result = replace(result, **change)
        self.fixtures.append(result)
        return result

    def inability(self, version: str = "1.0.0", recipe: str = "add", message: str = "no such thing") -> NotWritable:
        result = NotWritable(version, recipe, digest(recipe), "writer", "2026-01-01", "ImportError", message)
        self.not_writable.append(result)
        return result

    def probe(self, name: str = "options") -> ProbeFile:
        result = ProbeFile(name, Path(f"{name}.py"), digest(name), "An idea.")
        self.probes.append(result)
        return result

    # ---------------------------------------------------------------------------------------------------- what was seen

    def reader(self, version: str, *, fresh: bool = False) -> ObservedReader:
        """A reader that saw nothing yet, or what is known of it."""
        source = self.fresh if fresh else self.recorded
        name = f"torch-{version}"
        return source.setdefault(name, ObservedReader(name, {"torch": version}, "2026-01-01", PROTOCOL, {}, {}))

    def observe(
        self,
        fixture: Fixture,
        version: str,
        outcome: str = "same",
        options: OptionSet = DEFAULT,
        *,
        fresh: bool = False,
        **change: Any,
    ) -> Observation:
        """Put down what a reader did with a fixture."""
        reader = self.reader(version, fresh=fresh)
        key = cell_key(fixture.subject, options.load.given())
        facts = {"result": outcome, **FACTS[outcome], **change}
        return put(reader, Observation(fixture.id, options.id, facts.pop("key", key), **facts))

    def model(self, fixture: Fixture, outcome: str = "same", **change: Any) -> Observation:
        """Put down what the reference reader did with a fixture."""
        if self.reference is None:
            self.reference = ObservedReader("reference", {"reader": "reference"}, "2026-01-01", PROTOCOL, {}, {})
        key = cell_key(fixture.subject, {})
        facts = {"result": outcome, **FACTS.get(outcome, {}), **change}
        return put(self.reference, Observation(fixture.id, "default", facts.pop("key", key), **facts))

    def answer(
        self, probe: ProbeFile, version: str, *checks: tuple[str, bool | None, str], error: str = "", fresh: bool = False
    ) -> None:
        """Put down what a reader said to a probe."""
        reader = self.reader(version, fresh=fresh)
        key = digest(probe.sha256, reader.identity_digest, reader.protocol)[:20]
        reader.probes[probe.name] = Probe(probe.name, key, checks, {"type": "ImportError", "message": error} if error else None)

    # ---------------------------------------------------------------------------------------------------------- judging

    def evidence(self) -> Evidence:
        versions = sorted({item.release for item in self.fixtures} | {refusal.release for refusal in self.not_writable})
        manifests = tuple(
            Manifest(
                version,
                {},
                tuple(fixture for fixture in self.fixtures if fixture.release == version),
                tuple(entry for entry in self.not_writable if entry.release == version),
            )
            for version in versions
        )
        corpus = Corpus(Path("fixtures"), tuple(self.recipes.values()), tuple(self.probes), manifests, tuple(self.damage))
        recorded, fresh = (
            {
                name: replace(character, cells=dict(character.cells), probes=dict(character.probes))
                for name, character in source.items()
            }
            for source in (self.recorded, self.fresh)
        )
        return Evidence(
            self.policy,
            corpus,
            recorded,
            fresh,
            self.as_of,
            dict(self.unreadable),
            dict(self.unavailable),
            reference=replace(self.reference, cells=dict(self.reference.cells)) if self.reference is not None else None,
            operators=self.operators,
            proofs=self.proofs,
        )

    def judgements(self, name: str) -> list[Judgement]:
        """What one rule says, with the parameters that the policy gives it."""
        entry = next((item for item in self.policy.rules if item.id == name), rule(name))
        return list(judging._rule(entry).judge(self.evidence(), entry))

    def verdicts(self, name: str) -> dict[str, str]:
        """What one rule says of each subject, cells one by one: a verdict, and the kind of cause where there is one."""
        results = [(subject, said(judgement)) for judgement in self.judgements(name) for subject in self.subjects(judgement)]
        assert len(dict(results)) == len(results)
        return dict(results)

    def subjects(self, judgement: Judgement) -> list[str]:
        """What a judgement is of, as people name it: each of its cells, where it is of cells."""
        if judgement.cells is None:
            assert judgement.count == 1
            return [judgement.subject]
        return [judgement.cells.read_by(reader) for reader in self.evidence().readers.of(judgement.cells.readers)]

    def counted(self, name: str) -> Counter[str]:
        """How many subjects got each verdict of a rule."""
        return Counter(self.verdicts(name).values())

    def pairs(self) -> Counter[tuple[str, str]]:
        """How many pairs are observed and how many are not, by the fixture or reader that is named, and verdict."""
        results: Counter[tuple[str, str]] = Counter()
        for judgement in self.judgements("pairs-observed"):
            results[judgement.subject, said(judgement)] += judgement.count
        return results

    def judge(self) -> Report:
        """What all rules of the policy say."""
        return judging.judge(self.evidence())


def observed(evidence: Evidence) -> dict[str, tuple[Cells, Reader]]:
    """Every cell by itself, by what people call it."""
    results = [(cells, reader) for cells in evidence.cells for reader in evidence.readers.of(cells.readers)]
    named = {cells.read_by(reader): (cells, reader) for cells, reader in results}
    assert len(named) == len(results)
    return named


def said(judgement: Judgement) -> str:
    """A verdict, and the kind of cause where there is one."""
    return f"{judgement.verdict}: {judgement.cause.what}" if judgement.cause else str(judgement.verdict)


@pytest.fixture
def world() -> World:
    return World()
