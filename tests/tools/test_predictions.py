"""What the seeded sample of predictions detects: defects planted in the runtime, causes without cells, and outdated documents.

``.ci/run`` executes the sample for all readers; the planted defects here need only a few of them.
"""

from __future__ import annotations

import inspect
import io
import re
import zipfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import pytest

import tools.predictions as command
from torch_compat.errors import Refused
from torch_compat.judging.gathering import gather, uncollected
from torch_compat.loadability import packaged_rules
from torch_compat.policy.counts import LOCK, read_lock
from torch_compat.readers.requests import answer
from torch_compat.releases.behavior import Behavior, Condition
from torch_compat.releases.release import Release
from torch_compat.releases.sets import NONE
from torch_compat.replay import reference, sampling
from torch_compat.replay.generating import PREDICTIONS
from torch_compat.replay.loading import LoadingEvidence
from torch_compat.replay.predictions import predictions
from torch_compat.replay.reference import plan_reference
from torch_compat.replay.sampling import BORDER, NAMED, ORDINARY, OTHERWISE, ExecutedSample, draw
from torch_compat.report.predictions import ReaderCounts, document, stated
from torch_compat.runtime import module, registry, slipping, slips
from torch_compat.runtime.load import load
from torch_compat.workspace import Root

if TYPE_CHECKING:
    from torch_compat.judging.evidence import Evidence
    from torch_compat.loadability import Rules
    from torch_compat.replay.plan import Task

REPOSITORY = Path(__file__).parents[2]
READERS = ("1.0.0", "1.0.1", "1.1.0", "1.7.1", "1.8.1", "1.9.1")


class Drawn(NamedTuple):
    """Evidence of a few readers, and a sample of it."""

    evidence: Evidence
    tasks: list[Task]
    loading: LoadingEvidence
    rules: Rules
    sample: ExecutedSample


def drawn(root: Path, readers: tuple[str, ...] | None, *, each: int, seed: str, rules: Rules | None = None) -> Drawn:
    place = Root(root)
    rules = rules or packaged_rules()
    with uncollected():
        evidence = gather(place, place.policy(counted=False), as_of=None)
        recorded = {name: item for name, item in evidence.recorded.items() if readers is None or item.release in readers}
        evidence = replace(evidence, recorded=recorded)
        tasks = plan_reference(evidence.policy, evidence.corpus, list(evidence.corpus.fixtures.values()))
        loading = LoadingEvidence.of(evidence.corpus, recorded.values(), rules)
        return Drawn(evidence, tasks, loading, rules, draw(evidence, tasks, loading, rules, each=each, seed=seed))


@pytest.fixture(scope="module")
def repository() -> Drawn:
    """Nothing ordinary, so that what is noticed is noticed whatever the seed."""
    return drawn(REPOSITORY, READERS, each=0, seed="")


@pytest.fixture(scope="module")
def small(small_tree: Path) -> Drawn:
    return drawn(small_tree, None, each=3, seed="a")


class Here:
    """The reference reader in this process, where defects can be planted."""

    def __init__(self, *, together: bool) -> None:
        assert together

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def request(self, do: str, *, timeout_s: float, **arguments: Any) -> dict[str, Any]:
        del timeout_s
        return answer({"do": do, **arguments})


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Plants defects in the reference reader, which answers in this process and forgets which operators it found."""
    monkeypatch.setattr(reference, "Reference", Here)
    monkeypatch.setattr(reference, "PROCESSES", 1)
    monkeypatch.setattr(registry, "_resolved", {})
    return monkeypatch


def wrong(drawn: Drawn, reader: str) -> list[str]:
    (result,) = (told for _, told in predictions(drawn.evidence, [reader], drawn.sample.tasks))
    return result


# --------------------------------------------------------------------------------------------------- planted in the runtime


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize("reader", ["1.0.1", "1.8.1"])
@pytest.mark.sampled(2)
def test_the_share_agrees_where_nothing_is_planted(reader: str, repository: Drawn) -> None:
    assert len(repository.sample.tasks[reader]) > 300
    assert wrong(repository, reader) == []


def test_buffers_that_are_said_one_release_too_early_are_noticed(repository: Drawn, planted: pytest.MonkeyPatch) -> None:
    planted.setattr(module, "BUFFERS_SAID", Release("1.8.0"))
    assert len(wrong(repository, "1.8.1")) == 83


def test_gradients_that_1_0_no_longer_forgets_are_noticed(repository: Drawn, planted: pytest.MonkeyPatch) -> None:
    planted.setattr(slipping, "FORGOTTEN", "no sign")
    assert len(wrong(repository, "1.0.1")) == 11


def test_equal_calls_of_1_0_that_give_two_tensors_are_noticed(repository: Drawn, planted: pytest.MonkeyPatch) -> None:
    has = slipping.Slipping.has
    planted.setattr(slipping.Slipping, "has", lambda self, sign: sign != slipping.EQUAL_CALLS and has(self, sign))
    assert wrong(repository, "1.0.1")


@pytest.mark.parametrize("name", ["list-slices-without-bounds", "newer-debug-records"])
def test_a_slip_that_is_forgotten_is_noticed(name: str, repository: Drawn, planted: pytest.MonkeyPatch) -> None:
    kept = tuple(item for item in slips.every() if item.id != name)
    planted.setattr(slips, "every", lambda: kept)
    slips.slips_of.cache_clear()
    slips.running.cache_clear()
    try:
        assert wrong(repository, "1.8.1")
    finally:
        slips.slips_of.cache_clear()
        slips.running.cache_clear()


# -------------------------------------------------------------------------------------------------- what is in the sample


def test_what_a_release_does_otherwise_is_executed_whatever_the_seed(small: Drawn) -> None:
    assert small.sample.chosen[OTHERWISE] == small.sample.among[OTHERWISE] > 0
    assert small.sample.chosen[BORDER] == small.sample.among[BORDER] > 0
    assert sum(small.sample.among.values()) == len(small.tasks) * len(small.evidence.recorded)
    assert sum(small.sample.chosen.values()) == sum(map(len, small.sample.tasks.values()))
    chosen = {release: {task.fixture.id for task in tasks} for release, tasks in small.sample.tasks.items()}
    for reader in small.evidence.recorded.values():
        for task in small.tasks:
            cell = small.evidence.valid(reader, task.fixture, task.options)
            assert cell is not None
            assert cell.result in {"same", "refused", "crashed"} or task.fixture.id in chosen[reader.release]


def test_the_seed_chooses_what_is_ordinary(small: Drawn) -> None:
    def again(each: int, seed: str) -> ExecutedSample:
        return draw(small.evidence, small.tasks, small.loading, small.rules, each=each, seed=seed)

    assert again(3, "a") == small.sample
    assert any(again(3, seed).tasks != small.sample.tasks for seed in "bcd")
    assert again(0, "a").chosen[ORDINARY] == 0
    assert again(10**6, "a").chosen[ORDINARY] == small.sample.among[ORDINARY]


def test_each_recipe_that_is_refused_for_something_is_executed_by_a_reader_of_each_line(small: Drawn) -> None:
    for reader in small.evidence.recorded.values():
        refused = {
            task.fixture.recipe
            for task in small.tasks
            if (cell := small.evidence.valid(reader, task.fixture, task.options)) is not None and cell.result == "refused"
        }
        assert refused <= {task.fixture.recipe for task in small.sample.tasks[reader.release]}


# ------------------------------------------------------------------------------------------------- causes that nothing meets


def test_a_need_that_decides_nothing_is_named(small: Drawn) -> None:
    nothing = Behavior("nothing", Condition(("word:nowhere_to_be_found",)), NONE, "")
    rules = small.rules._replace(needs=(*small.rules.needs, nothing), takers={**small.rules.takers, "nothing": 0})
    sample = draw(small.evidence, small.tasks, small.loading, rules, each=0, seed="")
    assert ("behavior", "nothing") in sample.unmet()
    assert ("behavior", "word-buffers") not in sample.unmet()


def test_a_cause_that_no_other_cell_shows_is_executed_once(small: Drawn, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a builtin that ordinary programs call: a small share need not have any of them."""
    reader = next(iter(small.evidence.recorded.values())).release
    left = [task.fixture.id for task in small.tasks if task not in small.sample.tasks[reader]]
    assert left, "the small tree has to have programs that are left out"
    cells = [(fixture, reader) for fixture in left]
    monkeypatch.setattr(
        sampling, "_causes", lambda *_: iter([(("builtin", "rare"), cells), (("behavior", "of no program"), [("x", reader)])])
    )
    sample = draw(small.evidence, small.tasks, small.loading, small.rules, each=3, seed="a")
    assert sample.causes["builtin", "rare"] == 1 == sample.chosen[NAMED] == sample.among[NAMED]
    assert sample.unmet() == []
    assert sum(map(len, sample.tasks.values())) == 1 + sum(map(len, small.sample.tasks.values()))


def test_an_exit_status_tells_of_causes_that_were_not_met(
    small_tree: Path, small: Drawn, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The small tree has no program that comes to most slips."""
    monkeypatch.setattr(command, "rules_of", lambda _: small.rules)
    assert command.sampled(Root(small_tree), small.evidence, None, each=0, seed="") == 1
    message = capsys.readouterr()
    assert "0 wrong" in message.out
    assert "slip list-slices-without-bounds was not reached by any executed cell" in message.err
    assert f"{PREDICTIONS} does not state that" in message.err
    assert "slip newer-debug-records was not reached" not in message.err
    assert "behavior pt2-archive was not reached by any executed cell" in message.err


@pytest.mark.parametrize(
    ("file", "before", "after", "said"),
    [
        (PREDICTIONS, r"\| 1\.8\.1 \| (\d+) \| \d+ \| ", r"| 1.8.1 | \1 | 5 | ", "of 1.8.1 agree"),
        (PREDICTIONS, r"\| 1\.8\.1 \| (\d+) \| (\d+) \| \d+ \|", r"| 1.8.1 | \1 | \2 | 3 |", "3 programs of 1.8.1 reach slips"),
        (
            PREDICTIONS,
            r"\| 1\.5\.0 to 1\.5\.1 \| crashed \|",
            "| 1.5.0 to 1.6.0 | crashed |",
            f"does not match the policy and {LOCK}",
        ),
    ],
)
def test_a_document_that_does_not_fit_is_noticed(
    file: str, before: str, after: str, said: str, repository: Drawn, tmp_path: Path
) -> None:
    text = (REPOSITORY / file).read_text(encoding="utf-8")
    changed = re.sub(before, after, text)
    assert changed != text
    counted = [item for item in stated(text) if item.release == "1.8.1"]
    lock = dict(repository.evidence.policy.counts) or read_lock(REPOSITORY / "policies" / "torch").counts
    path = tmp_path / file
    path.parent.mkdir()
    path.write_text(changed, encoding="utf-8")
    results = list(command._document(Root(tmp_path), repository.evidence, counted, lock))
    assert any(said in item for item in results), results


def test_the_document_has_the_texts_of_the_policy(repository: Drawn) -> None:
    """`nox -s generate` writes them; counts change only by `nox -s predictions`."""
    text = (REPOSITORY / PREDICTIONS).read_text(encoding="utf-8")
    lock = read_lock(REPOSITORY / "policies" / "torch").counts
    assert text == document([*stated(text)], repository.evidence.policy, lock)


def test_a_reader_for_which_nothing_is_executed_is_named(repository: Drawn) -> None:
    nothing = ReaderCounts("1.8.1", 0, 0, 0, Counter())
    result = command._document(Root(REPOSITORY), repository.evidence, [nothing], {})
    assert next(result) == "no program was executed for 1.8.1"
    assert nothing.share == "none"


# ----------------------------------------------------------------------------------------------- what no release writes


@pytest.mark.parametrize(("horizon", "takes"), [("2.2.2", False), ("2.3.1", True)])
def test_a_bool_is_taken_for_a_number_from_2_3_on(horizon: str, takes: bool, tmp_path: Path) -> None:
    """Every release writes ``int(b)``. With ``b`` in its place, 2.1.2 and 2.2.2 refuse the archive, 2.3.1 and 2.4.1 load it."""
    assert [key[0] for key in command.UNRECORDED if key[0] != "behavior"] == ["conversion"]
    path = tmp_path / "full_bool.pt"
    written = io.BytesIO()
    with zipfile.ZipFile(REPOSITORY / "fixtures" / "torch-2.3.1" / "full_bool.pt") as old, zipfile.ZipFile(written, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, data.replace(b"int(b)", b"b") if "/code/" in name and name.endswith(".py") else data)
    path.write_bytes(written.getvalue())
    if takes:
        load(path, f"reference@{horizon}")
    else:
        with pytest.raises(Refused, match="aten::full"):
            load(path, f"reference@{horizon}")


def test_the_options_are_refused_that_make_no_sense(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for given in (["--sample", "1", "--write"], ["--sample", "-1"]):
        monkeypatch.setattr("sys.argv", ["predictions", *given])
        with pytest.raises(SystemExit):
            command.main()
        assert "--sample requires a number of at least 0" in capsys.readouterr().err
    assert "--sample" in inspect.getdoc(command)  # type: ignore[operator]
