"""The tree as it was before a release: everything measured for it is gone, and the rest can be judged."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.releases.versions import releases, sets
from torch_compat.cli import main
from torch_compat.corpus.corpus import load_corpus
from torch_compat.corpus.recipes import read_recipe
from torch_compat.corpus.surveys import surveyed_releases
from torch_compat.errors import UsageError
from torch_compat.judging.gathering import gather
from torch_compat.judging.judgement import Verdict
from torch_compat.policy.accepted import WAIVERS_LOCK, read_accepted
from torch_compat.policy.counts import LOCK, counted_tables, read_lock
from torch_compat.policy.source import read_folder
from torch_compat.releases.release import Release
from torch_compat.releases.sets import ReleaseSet
from torch_compat.replay.before import _file, _Gone, remove_releases
from torch_compat.replay.generating import regenerate
from torch_compat.workspace import Root

REPOSITORY = Path(__file__).parents[2]


SLOW = pytest.param("2.6.0", id="every release from 2.6.0 on", marks=pytest.mark.slow)


@pytest.mark.parametrize("since", [pytest.param("", id="the newest"), SLOW])
def test_releases_leave_the_repository(tmp_path: Path, since: str) -> None:
    for name in ("fixtures", "policies", "reports"):
        shutil.copytree(REPOSITORY / name, tmp_path / name, ignore=shutil.ignore_patterns("latest", "__pycache__"))
    calendar = Root(tmp_path).policy().calendar
    first = calendar.resolve(since) if since else calendar.newest()
    gone = [release.version for release in calendar if release.parsed >= first.parsed]
    remove_releases(tmp_path, gone)
    lock = tmp_path / "policies/torch" / LOCK
    left = lock.read_bytes()
    if since:  # probes ask for what only later releases have, so accepting does not count
        with pytest.raises(SystemExit) as ended:
            main(["accept", "--write", "--root", str(tmp_path)])
        assert ended.value.code == 1
    changed, judged = regenerate(Root(tmp_path))
    assert f"policies/torch/{LOCK}" not in changed
    assert lock.read_bytes() == left
    waived = (tmp_path / "policies/torch" / WAIVERS_LOCK).read_text(encoding="utf-8")
    assert not [version for version in gone if re.search(rf"(?<![\d.]){re.escape(version)}(?![\d.]*\d)", waived)]
    names = re.compile("|".join(f"torch-{re.escape(version)}/" for version in gone).encode())
    recorded = ("fixtures/FROZEN", "fixtures/torch-*/manifest.jsonl", "reports/observations/*", "reports/findings.md")
    assert not [path for pattern in recorded for path in tmp_path.glob(pattern) if names.search(path.read_bytes())]
    assert not set(gone) & surveyed_releases(tmp_path / "fixtures").keys()
    # what people decided stands: a cause that only a newer release shows is without a cell, and judging says so
    failing = [finding for finding in judged.report.findings if finding.verdict is Verdict.FAIL]
    # a recipe that few releases write is asked of the last one, which now is another one that never had to
    unwritten = {finding.smallest.rpartition("/")[2] for finding in failing if finding.rule == "recipes-written"}
    assert all(read_recipe(tmp_path / "fixtures/recipes" / f"{name}.py").reduced for name in unwritten)
    rules = {finding.rule for finding in failing} - {"recipes-written"}
    assert rules <= ({"waivers-exact", "wordings-exact"} if since else set())
    # a probe that asks only for what later releases have is not answered by anyone
    assert {rule for rule, _, _ in judged.report.not_checked} == ({"probes-hold"} if since else set())


@pytest.mark.parametrize(
    ("kept", "gone", "text", "left"),
    [
        ("1.0.0 1.1.0 1.2.0", "2.0.0 2.1.0", "1.1.0..2.0.0", "1.1.0..1.2.0"),
        ("1.0.0 1.1.0 1.2.0", "2.0.0 2.1.0", "..1.0.0, 2.0.0..", "..1.0.0"),
        ("1.0.0 1.1.0 1.2.0", "2.0.0 2.1.0", "2.0.0..2.1.0", "none"),
        ("1.0.0 1.1.0 1.2.0", "2.0.0 2.1.0", "..<2.0.0", ".."),
        ("1.0.0 2.1.0", "1.1.0 2.0.0", "1.1.0, 2.0.0..", "2.1.0.."),
        ("1.0.0 2.1.0", "1.1.0 2.0.0", "..1.1.0", "..1.0.0"),
        ("1.0.0 2.1.0", "1.1.0 2.0.0", ">1.1.0..2.1.0", ">1.0.0..2.1.0"),
        ("1.0.0 2.1.0", "1.1.0", "1.0.0..2.1.0", "1.0.0..2.1.0"),
        ("1.0.0", "1.1.0", "none", "none"),
    ],
)
def test_what_is_gone_leaves_a_set(kept: str, gone: str, text: str, left: str) -> None:
    assert _Gone(frozenset(gone.split()), tuple(map(Release, kept.split()))).without(text) == left


@given(sets, st.sets(releases, min_size=1), st.data())
def test_a_set_holds_what_is_left_as_before(found: ReleaseSet, calendar: set[Release], data: st.DataObject) -> None:
    ordered = sorted(calendar)
    gone = data.draw(st.sets(st.sampled_from(ordered)))
    kept = tuple(release for release in ordered if release not in gone)
    left = ReleaseSet.parse(_Gone(frozenset(release.public for release in gone), kept).without(str(found)))
    assert [release in left for release in kept] == [release in found for release in kept]
    assert not left.ends & {release.public for release in gone}


KNOWN = '[waiver]\nid = "a"\ncovers = [\n{}]\nfindings = [\n{}]\nreason = "so"\n'
HALF = '[waiver]\nid = "a"\ncovers = [\n{}]\nreason = "so"\n'
PARTS = """\
    { outcome = "different", recipes = ["a", "b"], writers = "..2.0.0", readers = "1.1.0.." },
    { outcome = "raised", recipes = ["a"], writers = "2.0.0..", readers = "2.0.0.." },
    { outcome = "refused", recipes = ["a"], writers = "1.0.0", readers = "1.1.0..2.0.0", options = ["mmap"] },
"""
LEFT = """\
    { outcome = "different", recipes = ["a", "b"], writers = "..1.1.0", readers = "1.1.0.." },
    { outcome = "refused", recipes = ["a"], writers = "1.0.0", readers = "1.1.0", options = ["mmap"] },
"""
SAID = '[[message]]\nid = "a"\nkind = "{}"\nsays = [\n{}]\nbecause = "so"\n'
FIRST = '    { type = "E", text = "no, 2.0.0 \\"x\\"", releases = "..1.0.0" },\n'
BOTH = '    { type = "E", text = "not", releases = "1.1.0..2.0.0" },\n    { type = "F", text = "never", releases = "2.1.0.." },\n'
WARNED = '    { type = "UserWarning", text = "soon", releases = "..2.0.0" },\n    { type = "UserWarning", text = "now", releases = "2.1.0.." },\n'
TABLES = {
    SAID.format("error", FIRST + BOTH): SAID.format("error", FIRST + '    { type = "E", text = "not", releases = "1.1.0" },\n'),
    SAID.format("error", BOTH): "",  # one text alone explains nothing
    SAID.format("warning", WARNED): SAID.format("warning", '    { type = "UserWarning", text = "soon", releases = "..1.1.0" },\n'),
    SAID.format("warning", WARNED.partition("\n")[2]): "",
    KNOWN.format(PARTS, '    "deprecations-overdue:late:x@1.1.0",\n    "deprecations-overdue:late:y@2.1.0",\n'):
        KNOWN.format(LEFT, '    "deprecations-overdue:late:x@1.1.0",\n'),
    KNOWN.format(PARTS, '    "deprecations-overdue:late:y@2.1.0",\n'): HALF.format(LEFT),
    HALF.format('    { outcome = "raised", recipes = ["a"], writers = "..", readers = "2.0.0.." },\n'): None,
    HALF.format('    { outcome = "raised", recipes = ["a"], synthetic = true, readers = "1.0.0..2.0.0", says = "x" },\n'):
        HALF.format('    { outcome = "raised", recipes = ["a"], synthetic = true, readers = "1.0.0..1.1.0", says = "x" },\n'),
    '[waiver]\nid = "a"\nfindings = ["a:b:c@2.0.0"]\nreason = "so"\n': None,
    '[[behavior]]\nid = "a"\nreaders = "1.1.0..2.0.0"\nbecause = "of 2.0.0"\n':
        '[[behavior]]\nid = "a"\nreaders = "1.1.0"\nbecause = "of 2.0.0"\n',
    '[[behavior]]\nid = "a"\nreaders = "2.0.0.."\n': "",
    '[[behavior]]\nid = "a"\nreaders = "none"\nbecause = "2.0.0"\n': '[[behavior]]\nid = "a"\nreaders = "none"\nbecause = "2.0.0"\n',
    '[[options]]\nid = "a"\nsince = "2.0.0"\n': "",
    '[[format]]\nread_from = { release = "1.0.0" }\nread_until = { release = "2.0.0" }\nwritten_from = { release = "1.0.0" }\n':
        '[[format]]\nread_from = { release = "1.0.0" }\nwritten_from = { release = "1.0.0" }\n',
    '[[format]]\nread_from = { release = "1.0.0" }\nwritten_from = { release = "2.0.0" }\n': "",
    '[policy]\nlines = "newest-patch"\nbesides = ["1.0.0", "2.0.0"]\n': '[policy]\nlines = "newest-patch"\nbesides = ["1.0.0"]\n',
    '[deprecation]\nannounced = { release = "2.0.0", text = "soon" }\nunclear = [{ readers = "1.0.0..2.0.0", why = "a" }, { readers = "2.1.0", why = "b" }]\n':
        '[deprecation]\nunclear = [{ readers = "1.0.0..1.1.0", why = "a" }]\n',
}  # fmt: skip


@pytest.mark.parametrize(("text", "left"), TABLES.items())
def test_what_is_gone_leaves_a_table(text: str, left: str | None) -> None:
    gone = _Gone(frozenset({"2.0.0", "2.1.0"}), (Release("1.0.0"), Release("1.1.0")))
    assert _file(text, gone, alone=text.startswith("[waiver]")) == left


def test_the_locks_lose_what_leaves_and_nothing_else(small_tree: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    shutil.copytree(small_tree, root)
    policies = root / "policies/torch"
    promises = policies / "promises.toml"
    promises.write_text(promises.read_text(encoding="utf-8").replace(', "2.13.0"', ""), encoding="utf-8")
    before = expanded(policies)
    remove_releases(root, ["2.13.0"])
    assert read_lock(policies).values.keys() == counted_tables(read_folder(policies).entries)
    left = {cell for cell in before if "2.13.0" not in cell}
    assert expanded(policies) == left
    assert left < before
    assert {cell[0] for cell in left} <= {path.stem for path in policies.glob("waivers/*.toml")}
    assert Root(root).policy().accepted is not None


def expanded(policies: Path) -> set[tuple[str, ...]]:
    """Every cell of a lock of waivers: the waiver, what differs, who wrote and who read."""
    accepted = read_accepted(policies)
    assert accepted is not None
    known = accepted.known
    return {
        (*block[:5], recipe, "" if writer < 0 else known.releases[writer], reader)
        for block in accepted.blocks
        for writer, readers in accepted.members(block)
        for recipe in block.recipes
        for reader in known.of(readers)
    }


@pytest.mark.parametrize("gone", [["2.13.0"], ["1.12.1", "2.13.0"], ["1.6.0"]], ids=" ".join)
def test_releases_leave_a_small_tree(small_tree: Path, tmp_path: Path, gone: list[str]) -> None:
    root = tmp_path / "root"
    shutil.copytree(small_tree, root)
    promises = root / "policies/torch/promises.toml"
    text = promises.read_text(encoding="utf-8")
    for release in gone:
        text = text.replace(f', "{release}"', "")
    promises.write_text(text, encoding="utf-8")  # a tree that names its releases is changed by whoever wrote them
    before = {path.name for path in (root / "reports/observations").iterdir()}
    try:
        remove_releases(root, gone)
    finally:
        left = {path.name for path in (root / "reports/observations").iterdir()}
    assert len(before) - len(left) == len(gone)
    assert not load_corpus(root / "fixtures").damage
    place = Root(root)
    if gone[-1] == "2.13.0":
        evidence = gather(place, place.policy(), as_of=None)
        assert not {name for name in evidence.corpus.fixtures if name.startswith(tuple(f"torch-{item}/" for item in gone))}
        assert not evidence.corpus.damage


@pytest.mark.parametrize(("release", "said"), [("9.9.9", "has no torch release")])
def test_what_cannot_leave(small_tree: Path, release: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        remove_releases(small_tree, [release])
