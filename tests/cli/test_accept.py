"""``torch-compat accept``: measures the evidence, shows each difference from the locks, and writes only with --write."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.counted import relock
from tests.deprecated_tree import make_deprecated_tree
from tests.planted.conftest import Tree, copy_evidence
from torch_compat.cli import main
from torch_compat.policy.accepted import WAIVERS_LOCK, read_accepted
from torch_compat.policy.counts import LOCK, key_of, lock_text, read_lock
from torch_compat.replay.generating import regenerate
from torch_compat.workspace import Root

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True)
class Ended:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two waivers, of one finding each, and no cells."""
    path = tmp_path / "root"
    make_deprecated_tree(path)
    return path


@pytest.fixture
def cells(small_tree: Path, tmp_path: Path) -> Path:
    """A root with waivers for cells."""
    path = tmp_path / "root"
    copy_evidence(small_tree, path)
    return path


@pytest.fixture
def policy(root: Path) -> Path:
    return root / "policies" / "torch"


@pytest.fixture
def ask(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    def run(*arguments: str) -> Ended:
        with pytest.raises(SystemExit) as ended:
            main([*arguments, "--root", str(tmp_path / "root")])
        message = capsys.readouterr()
        assert "Traceback" not in message.err
        return Ended(int(ended.value.code or 0), message.out, message.err)

    return run


NOTHING = (
    f"policies/torch/{WAIVERS_LOCK}: 2 lines, none changed\npolicies/torch/{LOCK}: 0 entries, none changed; nothing written\n"
)
LATE = "late-and-known finding"


def change(policy: Path, old: str, new: str) -> None:
    """Change the lock of waivers."""
    text = (policy / WAIVERS_LOCK).read_text(encoding="utf-8")
    assert text.count(old) == 1
    (policy / WAIVERS_LOCK).write_text(text.replace(old, new), encoding="utf-8")


def line_of(policy: Path, begin: str) -> str:
    (result,) = (line for line in (policy / WAIVERS_LOCK).read_text(encoding="utf-8").splitlines(True) if line.startswith(begin))
    return result


def test_nothing_changed(ask: Callable[..., Ended], policy: Path) -> None:
    before = (policy / WAIVERS_LOCK).read_bytes()
    for arguments in ((), ("--write",)):
        ended = ask("accept", *arguments)
        assert (ended.status, ended.out) == (0, NOTHING)
        assert (policy / WAIVERS_LOCK).read_bytes() == before


def test_a_difference_is_shown_in_words_and_written_only_when_told(ask: Callable[..., Ended], policy: Path) -> None:
    correct = (policy / WAIVERS_LOCK).read_bytes()
    line = line_of(policy, LATE)
    other = line.replace(line.split()[2], "0123456789ab")
    change(policy, line, other)
    assert ask("judge").status == 1
    wrong = (policy / WAIVERS_LOCK).read_bytes()
    ended = ask("accept")
    assert ended.status == 1
    assert ended.out.splitlines() == [
        f"late-and-known: new: {line.strip().partition(' ')[2]}",
        "  deprecations-overdue:too-long:late@1.4.0",
        "  reproduce: torch-compat judge --full",
        f"late-and-known: gone: {other.strip().partition(' ')[2]}",
        f"policies/torch/{WAIVERS_LOCK}: 2 lines, 2 changed",
        f"policies/torch/{LOCK}: 0 entries, none changed; nothing written: torch-compat accept --write",
    ]
    assert (policy / WAIVERS_LOCK).read_bytes() == wrong
    ended = ask("accept", "--write")
    assert (ended.status, ended.out.splitlines()[-1]) == (0, f"policies/torch/{LOCK}: 0 entries, none changed; written")
    assert (policy / WAIVERS_LOCK).read_bytes() == correct
    assert ask("judge").status == 0


def test_generating_takes_no_difference(ask: Callable[..., Ended], root: Path, policy: Path) -> None:
    line = line_of(policy, LATE)
    change(policy, line, line.replace(line.split()[2], "0123456789ab"))
    wrong = (policy / WAIVERS_LOCK).read_bytes()
    regenerate(Root(root))
    assert (policy / WAIVERS_LOCK).read_bytes() == wrong
    assert ask("judge").status == 1


def test_what_is_new_and_what_is_gone(ask: Callable[..., Ended], policy: Path) -> None:
    (policy / LOCK).write_text(lock_text({("behavior", "was"): 2, ("operator_gap", "1.0.0"): 3}))
    lines = line_of(policy, "early-and-known"), line_of(policy, LATE)
    change(policy, "".join(lines), lines[0] + "was-known finding 0123456789ab a:b:c\n")
    document = ask("accept", "--write", "--format", "json").json
    assert document["changes"] == [
        {"kind": "behavior", "id": "was", "old": 2, "new": None},
        {"kind": "operator_gap", "id": "1.0.0", "old": 3, "new": None},
    ]
    assert [(difference["waiver"], difference["new"]) for difference in document["differences"]] == [
        ("late-and-known", True),
        ("was-known", False),
    ]
    assert (document["written"], document["exit_status"], document["blocks"]) == (True, 0, 2)
    assert ask("judge").status == 0


def test_a_lock_that_is_missing_is_made(ask: Callable[..., Ended], policy: Path) -> None:
    before = (policy / WAIVERS_LOCK).read_bytes()
    (policy / WAIVERS_LOCK).unlink()
    refused = ask("judge")
    assert refused.status == 2
    assert f"{WAIVERS_LOCK}: file not found, but the policy has 2 waivers: torch-compat accept --write" in refused.err
    assert "early-and-known: new: finding" in ask("accept").out
    assert ask("accept", "--write").status == 0
    assert (policy / WAIVERS_LOCK).read_bytes() == before


@pytest.mark.parametrize("spoil", ["order", "conflict", "cut", "nonsense"])
def test_a_lock_that_cannot_be_read_is_made_anew_and_everything_is_shown(
    spoil: str, ask: Callable[..., Ended], policy: Path
) -> None:
    before = (policy / WAIVERS_LOCK).read_text()
    *head, first, second = before.splitlines(keepends=True)
    spoilt = {
        "order": "".join([*head, second, first]), "conflict": before + "<<<<<<< HEAD\n", "cut": before[:-1], "nonsense": "nonsense",
    }  # fmt: skip
    (policy / WAIVERS_LOCK).write_text(spoilt[spoil])
    assert ask("judge").status == 2
    ended = ask("accept")
    assert ended.status == 1
    assert "; everything counts as new" in ended.out
    assert "late-and-known: new: " in ended.out
    assert ask("accept", "--write").status == 0
    assert (policy / WAIVERS_LOCK).read_text() == before


def test_a_lock_of_counts_in_conflict_is_an_invalid_file(ask: Callable[..., Ended], policy: Path) -> None:
    (policy / LOCK).write_text(lock_text({}) + "<<<<<<< HEAD\n")
    ended = ask("accept", "--write")
    assert ended.status == 2
    assert "counts.lock:3: is a merge conflict marker" in ended.err


@pytest.mark.parametrize("name", [LOCK, WAIVERS_LOCK])
def test_a_lock_that_leads_out_of_the_tree_is_neither_read_nor_written(
    name: str, ask: Callable[..., Ended], root: Path, policy: Path
) -> None:
    outside = root.parent / "outside.lock"
    outside.write_bytes((policy / name).read_bytes() if (policy / name).exists() else lock_text({}).encode())
    (policy / name).unlink(missing_ok=True)
    (policy / name).symlink_to(outside)
    before = outside.read_bytes()
    for arguments in (("judge",), ("accept",), ("accept", "--write")):
        ended = ask(*arguments)
        assert ended.status in {1, 2}, ended
        assert "is a link that points outside the tree" in ended.err + ended.out
    assert outside.read_bytes() == before


def test_a_waiver_that_covers_nothing_is_never_accepted(ask: Callable[..., Ended], policy: Path) -> None:
    path = policy / "waivers" / "late-and-known.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("deprecations-", "deprecation-"), encoding="utf-8")
    for _ in range(2):
        ended = ask("accept", "--write", "--format", "json")
        assert ended.status == 1
        assert ended.json["unused"] == [
            {"kind": "waiver", "id": "late-and-known", "why": "covers nothing: remove it from the policy, or correct it"}
        ]
    assert ask("judge").status == 1


def test_a_waiver_that_has_expired_is_never_accepted(ask: Callable[..., Ended], policy: Path) -> None:
    path = policy / "waivers" / "late-and-known.toml"
    path.write_text(path.read_text(encoding="utf-8") + "expires = 2020-01-01\n", encoding="utf-8")
    ended = ask("accept")
    assert ended.status == 1
    assert "waiver late-and-known: has expired: remove it from the policy, or give it a later date" in ended.out


def test_an_operator_is_shown_in_words_before_it_is_accepted(
    small_tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "operators"
    shutil.copytree(small_tree, root)
    policies = root / "policies" / "torch"
    right, key = (policies / LOCK).read_bytes(), key_of("op-can-cast", "aten::can_cast")

    def run(*arguments: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main(["accept", "--root", str(root), *arguments])
        return int(ended.value.code or 0), capsys.readouterr().out

    for pinned, what in (("waits", "new"), ("0123456789abcdef", "differs from the accepted change")):
        relock(policies, {key: pinned})
        status, out = run()
        assert (status, out.splitlines()[:-2]) == (
            1,
            [
                f"operator_waiver op-can-cast aten::can_cast: {what}",
                "    backward, since 2.4.1: an argument was renamed (argument-renamed)",
                "    old  aten::can_cast(ScalarType from, ScalarType to) -> bool",
                "    new  aten::can_cast(ScalarType from_, ScalarType to) -> bool",
                "    see  torch-compat operators history aten::can_cast",
            ],
        )
        before = (policies / LOCK).read_bytes()
        regenerate(Root(root))
        assert (policies / LOCK).read_bytes() == before  # taking it is for a person
    (change,) = json.loads(run("--write", "--format", "json")[1])["changes"]
    (became,) = change["became"]
    assert (became["operator"], became["change"], became["since"]) == ("aten::can_cast", ["argument-renamed"], "2.4.1")
    assert (policies / LOCK).read_bytes() == right
    waiver = policies / "operator_waivers" / "op-can-cast.toml"
    waiver.write_text(waiver.read_text().replace('"argument-renamed"', '"removed"'))
    status, out = run("--write")
    assert status == 1
    assert (
        "operator_waiver op-can-cast aten::can_cast: did not change in this way: remove it from the policy, or correct it" in out
    )
    assert (policies / LOCK).read_bytes() == right  # as before: judging says what is wrong


def test_incomplete_evidence_is_not_counted(ask: Callable[..., Ended], root: Path, policy: Path) -> None:
    max((root / "reports" / "observations").glob("torch-*")).unlink()
    line = line_of(policy, LATE)
    change(policy, line, line.replace(line.split()[2], "0123456789ab"))
    before = (policy / WAIVERS_LOCK).read_bytes()
    ended = ask("accept", "--write")
    assert ended.status == 1
    assert "nothing written: something could not be checked, so the counts are not final" in ended.out
    assert (policy / WAIVERS_LOCK).read_bytes() == before


def test_what_takes_archives_to_count_is_left_to_the_session_that_opens_them(ask: Callable[..., Ended], policy: Path) -> None:
    (policy / "behaviors.toml").write_text(
        '[[behavior]]\nid = "dies"\nall = ["unmet:operator"]\nreaders = "1.1.0.."\noutcome = "crashed"\nstage = "load"\n'
        'signal = "SIGABRT"\nbecause = "so"\nevidence = "seen"\n'
    )
    (policy / LOCK).write_text(lock_text({}))
    ended = ask("accept", "--write", "--format", "json")
    assert (ended.status, ended.json["not_checked"]) == (4, ["behavior dies: not counted here: nox -s predictions -- --write"])
    assert "counts.lock:3: behavior dies has no line here: nox -s predictions -- --write" in ask("judge").err
    relock(policy, {("behavior", "dies"): 4})
    assert ask("accept", "--write").status == 0
    assert read_lock(policy).counts["behavior", "dies"] == 4
    assert ask("judge").status == 0


def test_another_difference_in_cells_is_told_with_the_command_that_shows_it(ask: Callable[..., Ended], cells: Path) -> None:
    """Judging fails, generating takes nothing, and accepting shows what differs before it writes."""
    tree = Tree(cells)
    accepted = read_accepted(tree.policy)
    assert accepted is not None
    before = (tree.policy / WAIVERS_LOCK).read_bytes()
    block = next(
        item
        for item in accepted.blocks
        if item.outcome == "refused" and item.direction == "backward" and item.options == "default"
    )
    writer, readers = next(accepted.members(block))
    reader = accepted.known.of(readers)[-1]
    fixture = f"torch-{accepted.known.releases[writer]}/{block.recipes[0]}"
    name = next(item for item in tree.readers() if item.split("+")[0] == f"torch-{reader}")
    error = {"type": "builtins.RuntimeError", "message": "the moon is in the way"}
    tree.observe(name, lambda value: value.update({(fixture, "default"): replace(value[fixture, "default"], errors=(error,))}))
    judged = ask("judge")
    assert judged.status == 1
    assert "the moon is in the way" in judged.out
    regenerate(Root(cells))
    assert ask("judge").status == 1
    assert (tree.policy / WAIVERS_LOCK).read_bytes() == before
    told = ask("accept")
    assert told.status == 1
    assert f"{block.waiver}: new: backward refused default" in told.out
    assert "  the moon is in the way\n" in told.out
    assert f"  reproduce: torch-compat observe --reader torch-{reader} --fixture {fixture} --show --recorded" in told.out
    assert ask("accept", "--write").status == 0
    assert ask("judge").status == 0


def test_everything_that_is_covered_is_shown_where_that_is_asked_for(ask: Callable[..., Ended], policy: Path) -> None:
    ended = ask("accept", "--show")
    assert ended.status == 0
    for name in ("early-and-known", "late-and-known"):
        assert name in ended.out


def test_without_a_policy(ask: Callable[..., Ended], policy: Path) -> None:
    shutil.rmtree(policy)
    assert ask("accept").status == 4
