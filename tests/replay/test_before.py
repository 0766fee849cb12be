"""The tree as it was before a release: whatever was measured of it is gone, and what is left can be judged."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from torch_compat.cli._generating import regenerate
from torch_compat.cli._root import Root
from torch_compat.cli.judge import gather
from torch_compat.corpus.surveys import surveyed_releases
from torch_compat.errors import UsageError
from torch_compat.replay.before import remove_releases
from torch_compat.rules.judgement import Verdict

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize("since", ["", "2.6.0"], ids=["the newest", "every release from 2.6.0 on"])
def test_releases_leave_the_repository(tmp_path: Path, since: str) -> None:
    for name in ("fixtures", "policies", "reports"):
        shutil.copytree(REPOSITORY / name, tmp_path / name, ignore=shutil.ignore_patterns("latest", "__pycache__"))
    calendar = Root(tmp_path).policy().calendar
    first = calendar.resolve(since) if since else calendar.newest()
    gone = [release.version for release in calendar if release.parsed >= first.parsed]
    remove_releases(tmp_path, gone)
    _, judged = regenerate(Root(tmp_path))
    names = re.compile("|".join(f"torch-{re.escape(one)}/" for one in gone).encode())
    recorded = ("fixtures/FROZEN", "fixtures/torch-*/manifest.jsonl", "reports/observations/*", "reports/findings.md")
    assert not [path for pattern in recorded for path in tmp_path.glob(pattern) if names.search(path.read_bytes())]
    assert not set(gone) & surveyed_releases(tmp_path / "fixtures").keys()
    # what people decided stands: of their waivers nothing is wrong but the numbers, and judging says which
    failing = {finding.rule for finding in judged.report.findings if finding.verdict is Verdict.FAIL}
    assert failing <= {"waivers-exact", "operator-waivers-exact"}
    assert not judged.report.not_checked


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
    place = Root(root)
    if gone[-1] == "2.13.0":
        evidence = gather(place, place.policy(), as_of=None)
        assert not {name for name in evidence.corpus.fixtures if name.startswith(tuple(f"torch-{one}/" for one in gone))}
        assert not evidence.corpus.damage


@pytest.mark.parametrize(("release", "said"), [("9.9.9", "knows no torch release")])
def test_what_cannot_leave(small_tree: Path, release: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        remove_releases(small_tree, [release])
