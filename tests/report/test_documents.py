"""Generated files: those in a tree are regenerated, including those that judging reads."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.counted import relock
from torch_compat.errors import UsageError
from torch_compat.judging.gathering import gather
from torch_compat.judging.judge import examine
from torch_compat.policy.counts import LOCK, read_lock
from torch_compat.replay import generating
from torch_compat.replay.generating import predict, regenerate
from torch_compat.report.documents import REGENERATED, JudgedTree, with_block
from torch_compat.report.predictions import ReaderCounts, stated
from torch_compat.report.release.report import release_report
from torch_compat.workspace import Root

REPOSITORY = Path(__file__).parents[2]
SLIP = """
[[behavior]]
id = "dies"
all = ["unmet:operator"]
readers = "1.6.0.."
outcome = "crashed"
stage = "load"
signal = "SIGABRT"
because = "so"
evidence = "seen"
"""


def test_a_block_is_replaced_and_nothing_else() -> None:
    text = "a\n<!-- generated: x -->\nold\n<!-- end of generated content -->\nb\n<!-- generated: y -->\n<!-- end of generated content -->\n"
    assert with_block(text, "x", "new\n\\1") == text.replace("old", "new\n\\1")
    assert with_block(with_block(text, "y", "1"), "y", "2").endswith(
        "b\n<!-- generated: y -->\n2\n<!-- end of generated content -->\n"
    )


@pytest.mark.parametrize(
    "text", ["", "<!-- generated: x -->\n", "<!-- generated: x -->\n<!-- end of generated content -->\n" * 2]
)
def test_a_block_that_is_not_there_once(text: str) -> None:
    with pytest.raises(UsageError, match="expected one"):
        with_block(text, "x", "new")


def test_the_repository_has_every_generated_file() -> None:
    assert all((REPOSITORY / item.path).is_file() for item in REGENERATED)


def test_a_tree_is_given_what_it_has(small_tree: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    shutil.copytree(small_tree, root)
    (root / "reports/findings.md").write_text("old\n", encoding="utf-8")
    (root / "policies/policy.schema.json").write_text("{}\n", encoding="utf-8")
    told: list[str] = []
    changed, judged = regenerate(Root(root), told.append)
    assert changed == told == ["policies/policy.schema.json", "reports/findings.md"]
    assert judged.report.exit_status == 0
    assert not (root / "README.md").exists()
    published = (REPOSITORY / "policies/policy.schema.json").read_bytes()
    assert (root / "policies/policy.schema.json").read_bytes() == published
    assert regenerate(Root(root))[0] == []


def test_a_tree_with_reports_of_releases_is_given_all_of_them_and_keeps_what_a_person_wrote(
    small_tree: Path, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    shutil.copytree(small_tree, root)
    assert regenerate(Root(root))[0] == []
    hand = root / "reports/notes/2.13.0.toml"
    hand.parent.mkdir()
    (root / "reports/releases").mkdir()
    changed, judged = regenerate(Root(root))
    lines = ["1.5.1", "1.6.0", "1.12.1", "2.13.0"]
    names = [f"reports/{kind}/{line}.md" for line in lines for kind in ("releases", "notes")]
    assert changed == [*names, "reports/releases/README.md"]
    assert regenerate(Root(root))[0] == []
    report = release_report(judged.evidence, judged.report, judged.named, "2.13.0")
    hand.write_text(f'[[item]]\nid = "{report.items[0].id}"\ntext = "Written by hand."\n', encoding="utf-8")
    assert regenerate(Root(root))[0] == ["reports/notes/2.13.0.md"]
    text = (root / "reports/notes/2.13.0.md").read_text(encoding="utf-8")
    assert f"since {report.items[0].when}.\n\nWritten by hand.\n" in text
    hand.write_text('[[item]]\nid = "waiver:gone"\ntext = "Written by hand."\n', encoding="utf-8")
    with pytest.raises(UsageError, match=r"reports/notes/2.13.0.toml: waiver:gone is no longer listed in 2.13.0"):
        regenerate(Root(root))
    assert "waiver:gone" in hand.read_text(encoding="utf-8")


def test_counts_are_made_before_anything_is_judged(small_tree: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    shutil.copytree(small_tree, root)
    policies = root / "policies/torch"
    right = (policies / LOCK).read_bytes()
    key, count = next((key, count) for key, count in read_lock(policies).counts.items() if key[0] == "operator_gap")
    relock(policies, {key: count + 5})
    assert judged_anew(root).report.exit_status == 1
    told: list[str] = []
    changed, judged = regenerate(Root(root), told.append)
    assert changed == [f"policies/torch/{LOCK}"]
    assert told == [*changed, f"{' '.join(key)}: {count + 5} -> {count}"]
    assert judged.report.exit_status == 0
    assert (policies / LOCK).read_bytes() == right
    line = f"{' '.join(key)} = {count}\n"
    (policies / LOCK).write_text(right.decode("utf-8").replace(line, ""), encoding="utf-8")  # no valid policy
    assert regenerate(Root(root))[0] == changed
    assert (policies / LOCK).read_bytes() == right


def test_counts_that_are_not_final_are_not_written(small_tree: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    shutil.copytree(small_tree, root)
    max((root / "reports/observations").glob("torch-*")).unlink()
    before = (root / "policies/torch" / LOCK).read_bytes()
    changed, judged = regenerate(Root(root))
    assert judged.report.not_checked
    assert changed == []
    assert (root / "policies/torch" / LOCK).read_bytes() == before


def judged_anew(root: Path) -> JudgedTree:
    """What judging says of a tree as it is."""
    evidence = gather(Root(root), Root(root).policy(), as_of=None)
    return JudgedTree(evidence, *examine(evidence))


@pytest.mark.parametrize("count", [3, 0])
def test_what_is_predicted_is_written_unless_something_explains_nothing(
    small_tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    root = tmp_path / "root"
    shutil.copytree(small_tree, root)
    policies = root / "policies/torch"
    with (policies / "behaviors.toml").open("a", encoding="utf-8") as stream:
        stream.write(SLIP)
    lock = (policies / LOCK).read_bytes()
    before = {key: item for key, item in read_lock(policies).counts.items() if key[1] != "dies"}
    counts = {key: item + 1 for key, item in before.items() if key[0] == "behavior"} | {("behavior", "dies"): count}
    reader = ReaderCounts("1.6.0", 7, 6, count, Counter({"dies": count}))
    monkeypatch.setattr(generating, "predictions", lambda _: iter([(reader, ["it is wrong"])]))
    monkeypatch.setattr(generating, "rules_of", lambda _: None)
    monkeypatch.setattr(generating, "explained", lambda *_: counts)
    wrong, unused = predict(Root(root), lambda *_: None)
    assert (wrong, unused) == (["it is wrong"], [] if count else ["behavior dies"])
    document = root / "reports/predictions.md"
    assert document.is_file() is bool(count)
    if count:
        assert read_lock(policies).counts == before | counts
        assert [(item.release, item.cells) for item in stated(document.read_text(encoding="utf-8"))] == [("1.6.0", 7)]
        assert Root(root).policy().counts == before | counts
    else:
        assert (policies / LOCK).read_bytes() == lock
