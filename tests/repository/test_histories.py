"""The recorded histories of operators and names: complete, for every reader, in canonical form, and consistent with the corpus."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.recordings import readers_of
from torch_compat.corpus.surveys import FILES, read_survey, surveyed_releases, write_surveys
from torch_compat.corpus.weights_only import weights_only_policy
from torch_compat.operators.call_signature import signature_of
from torch_compat.operators.history import FactHistory, GlobalNames, History, HistoryFile, SetHistory
from torch_compat.policy import load_policy

if TYPE_CHECKING:
    from torch_compat.corpus.corpus import Corpus

REPOSITORY = Path(__file__).parents[2]
FIXTURES = REPOSITORY / "fixtures"
LARGEST = {"operators": 5_000_000, "globals": 1_000_000}
"""Bytes of a folder; a release that is added takes a hundredth of it."""
HISTORIES = pytest.mark.parametrize("file", [file for file, _ in FILES.values()])


@pytest.fixture(scope="module")
def schemas() -> History:
    return History.load(FIXTURES / "operators/schemas.txt")


def test_every_reader_of_the_policy_was_surveyed_and_nobody_else() -> None:
    told = surveyed_releases(FIXTURES)
    assert tuple(told) == load_policy(REPOSITORY / "policies" / "torch").corpus.readers
    for file, layout in FILES.values():
        recorded = HistoryFile(FIXTURES / file)
        assert (recorded.releases, recorded.shown) == (tuple(told), layout)


def test_every_survey_is_of_the_build_that_observed() -> None:
    readers = set(readers_of(REPOSITORY))
    told = surveyed_releases(FIXTURES)
    assert {f"torch-{entry['identity']['torch']}" for entry in told.values()} == readers
    for release, entry in told.items():
        assert str(entry["identity"]["torch"]).partition("+")[0] == release
        assert dt.date.fromisoformat(entry["recorded"]) >= dt.date(2026, 1, 1)


@HISTORIES
def test_every_fact_is_said_once(file: str) -> None:
    recorded = HistoryFile(FIXTURES / file)
    facts = list(recorded.facts())
    assert facts
    assert len({(key, value) for key, value, _ in facts}) == len(facts)
    assert all(bits for _, _, bits in facts)
    assert len(set(recorded.lines)) == len(recorded.lines)


@HISTORIES
def test_every_release_says_how_it_was_obtained_and_what_is_missing_once(file: str) -> None:
    recorded = HistoryFile(FIXTURES / file)
    for release in recorded.releases:
        bit = recorded.bit(release)
        assert sum(bool(bits & bit) for bits, _ in recorded.obtained) == 1
        assert sum(bool(bits & bit) for bits, _ in recorded.incomplete) <= 1


def test_recording_a_release_again_changes_no_byte(tmp_path: Path) -> None:
    for file in [*(file for file, _ in FILES.values()), "operators/releases.jsonl"]:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_bytes((FIXTURES / file).read_bytes())
    write_surveys(
        tmp_path, [read_survey(tmp_path, release) for release in ("1.0.0", "1.13.1", list(surveyed_releases(tmp_path))[-1])]
    )
    for file, _ in FILES.values():
        assert (tmp_path / file).read_bytes() == (FIXTURES / file).read_bytes(), file


@pytest.mark.parametrize("folder", LARGEST)
def test_the_histories_stay_small(folder: str) -> None:
    assert sum(path.stat().st_size for path in (FIXTURES / folder).iterdir()) < LARGEST[folder]


def test_nothing_else_lies_beside_them() -> None:
    named = {
        "operators/README.md",
        "operators/releases.jsonl",
        "operators/exported.toml",
        "operators/calls.jsonl",
        "globals/README.md",
    }
    expected = {*named, *(file for file, _ in FILES.values())}
    results = {path.relative_to(FIXTURES).as_posix() for folder in LARGEST for path in (FIXTURES / folder).iterdir()}
    assert results == expected


# ------------------------------------------------------------------------------------------------------------- what they say


def test_every_schema_has_a_shape(schemas: History) -> None:
    twice = set()
    for history in (schemas, History.load(FIXTURES / "operators/custom_classes.txt")):
        for text, _, _ in history.facts():
            message = signature_of(text)
            names = [argument.name for argument in message.arguments]
            assert all(names), text
            if len(set(names)) < len(names):
                twice.add(message.name)
            written = f"{message.name}.{message.overload}" if message.overload else message.name
            assert text.startswith(f"{written}("), text
    assert twice == {"static_runtime::clamp_nan_to_num"}  # has two arguments posinf, and says so of itself


def test_what_a_lookup_finds_is_what_the_lines_say(schemas: History) -> None:
    by_name: dict[tuple[str, str], set[str]] = {}
    for text, _, bits in schemas.facts():
        for release in ("1.0.0", "1.6.0", schemas.releases[-1]):
            if bits & schemas.bit(release):
                by_name.setdefault((signature_of(text).name, release), set()).add(text)
    for (name, release), texts in by_name.items():
        assert set(schemas.schemas(name, release)) == texts
    assert {name for name, release in by_name if release == "1.6.0"} == schemas.names("1.6.0")


def test_every_operator_that_a_fixture_exercises_is_known_to_its_writer(corpus: Corpus, schemas: History) -> None:
    missing = {
        (fixture.release, operator)
        for fixture in corpus.fixtures.values()
        if fixture.release in schemas.releases
        for operator in fixture.operators
        if fixture.family != "torch-save" and operator != "*" and not schemas.schemas(operator, fixture.release)
    }
    # A function of Python's that its recipe takes for an operator, and an operator that only later releases have; the recipe is
    # what was run, and stays.
    assert {operator for release, operator in missing if schemas.complete(release)} == {"aten::lp_pool2d", "aten::pad"}


def test_a_kernel_or_a_version_is_of_an_operator_that_is_recorded(schemas: History) -> None:
    kernels, versions = SetHistory(FIXTURES / "operators/kernels.txt"), FactHistory(FIXTURES / "operators/operator_versions.txt")
    known = {text.partition("(")[0] for text, _, _ in schemas.facts()}
    assert {key for key, _, _ in kernels.facts()} - known == set()
    assert {key for key, _, _ in versions.facts()} - known == set()


def test_what_the_corpus_names_can_be_named() -> None:
    names = GlobalNames.load(FIXTURES / "globals/names.txt")
    everywhere = names.releases
    for module, name in (
        ("torch", "FloatStorage"),
        ("torch", "Size"),
        ("torch._utils", "_rebuild_tensor_v2"),
        ("torch.nn.modules.linear", "Linear"),
        ("torch.nn.parameter", "Parameter"),
        ("torch", "float32"),
        ("torch", "add"),
    ):
        assert names.having(module, name) == everywhere, (module, name)
    assert names.having("torch._tensor", "_rebuild_from_type_v2")[0] == "1.10.2"
    assert names.has("torch.storage", "UntypedStorage", "1.12.1") is False
    assert names.has("torch.testing", "make_tensor", "2.13.0") is None


def test_the_policy_says_of_weights_only_what_the_releases_did() -> None:
    text = (REPOSITORY / "policies/torch/weights_only.toml").read_text(encoding="utf-8")
    assert text == weights_only_policy(FIXTURES), "run nox -s generate"
    policy = load_policy(REPOSITORY / "policies" / "torch")
    defaults = [
        (str(entry.readers), entry.takes.default)
        for entry in policy.behaviors
        if entry.takes is not None and entry.takes.default is not None
    ]
    assert defaults == [("1.13.1..2.5.1", False), ("2.6.0..", True)]
