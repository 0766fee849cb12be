"""``torch-compat accept``: counts the evidence, shows each difference from the lock, and writes only when told."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.counted import relock
from tests.deprecated_tree import make_deprecated_tree
from torch_compat.cli import main
from torch_compat.policy.counts import LOCK, key_of, lock_text, read_lock

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
    """Two waivers, of one cell each."""
    path = tmp_path / "root"
    make_deprecated_tree(path)
    return path


@pytest.fixture
def policy(root: Path) -> Path:
    return root / "policies" / "torch"


@pytest.fixture
def ask(root: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    def run(*arguments: str) -> Ended:
        with pytest.raises(SystemExit) as ended:
            main([*arguments, "--root", str(root)])
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return Ended(int(ended.value.code or 0), said.out, said.err)

    return run


def test_nothing_changed(ask: Callable[..., Ended], policy: Path) -> None:
    before = (policy / LOCK).read_bytes()
    for arguments in ((), ("--write",)):
        ended = ask("accept", *arguments)
        assert (ended.status, ended.out) == (0, f"policies/torch/{LOCK}: 2 entries, none changed; nothing is written\n")
        assert (policy / LOCK).read_bytes() == before


def test_a_difference_is_shown_in_words_and_written_only_when_told(ask: Callable[..., Ended], policy: Path) -> None:
    correct = (policy / LOCK).read_bytes()
    relock(policy, {("waiver", "late-and-known"): 5})
    assert ask("judge").status == 1
    wrong = (policy / LOCK).read_bytes()
    ended = ask("accept")
    assert ended.status == 1
    assert ended.out.splitlines() == [
        "waiver late-and-known: 5 -> 1",
        f"policies/torch/{LOCK}: 2 entries, 1 changed; nothing is written: torch-compat accept --write",
    ]
    assert (policy / LOCK).read_bytes() == wrong
    ended = ask("accept", "--write")
    assert (ended.status, ended.out.splitlines()[-1]) == (0, f"policies/torch/{LOCK}: 2 entries, 1 changed; written")
    assert (policy / LOCK).read_bytes() == correct
    assert ask("judge").status == 0


def test_what_is_new_and_what_is_gone(ask: Callable[..., Ended], policy: Path) -> None:
    (policy / LOCK).write_text(lock_text({("waiver", "early-and-known"): 1, ("waiver", "was-known"): 3, ("slip", "was"): 2}))
    document = ask("accept", "--write", "--format", "json").json
    assert document["changes"] == [
        {"kind": "slip", "id": "was", "old": 2, "new": None},
        {"kind": "waiver", "id": "late-and-known", "old": None, "new": 1},
        {"kind": "waiver", "id": "was-known", "old": 3, "new": None},
    ]
    assert (document["written"], document["exit_status"]) == (True, 0)
    assert ask("judge").status == 0


def test_a_lock_that_is_missing_is_made(ask: Callable[..., Ended], policy: Path) -> None:
    before = (policy / LOCK).read_bytes()
    (policy / LOCK).unlink()
    refused = ask("judge")
    assert refused.status == 2
    assert (
        "counts.lock: there is no such file, though the policy has 2 tables to count: torch-compat accept --write" in refused.err
    )
    assert "waiver early-and-known: new, 1" in ask("accept").out
    assert ask("accept", "--write").status == 0
    assert (policy / LOCK).read_bytes() == before


def test_an_order_that_is_wrong_is_written_anew(ask: Callable[..., Ended], policy: Path) -> None:
    before = (policy / LOCK).read_text()
    *head, first, second = before.splitlines(keepends=True)
    (policy / LOCK).write_text("".join([*head, second, first, first]))
    assert ask("judge").status == 2
    assert ask("accept").status == 1
    assert ask("accept", "--write").status == 0
    assert (policy / LOCK).read_text() == before


def test_a_lock_in_conflict_is_an_invalid_file(ask: Callable[..., Ended], policy: Path) -> None:
    (policy / LOCK).write_text((policy / LOCK).read_text() + "<<<<<<< HEAD\n")
    ended = ask("accept", "--write")
    assert ended.status == 2
    assert "counts.lock:5: is the mark of a merge conflict" in ended.err


def test_a_lock_that_leads_out_of_the_tree_is_neither_read_nor_written(
    ask: Callable[..., Ended], root: Path, policy: Path
) -> None:
    outside = root.parent / "outside.lock"
    (policy / LOCK).rename(outside)
    (policy / LOCK).symlink_to(outside)
    before = outside.read_bytes()
    for arguments in (("judge",), ("accept",), ("accept", "--write")):
        ended = ask(*arguments)
        assert ended.status == 2
        assert "is a link that leads out of the tree" in ended.err
    assert outside.read_bytes() == before


def test_a_waiver_that_covers_nothing_is_never_accepted(ask: Callable[..., Ended], policy: Path) -> None:
    path = policy / "waivers" / "late-and-known.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("deprecations-", "deprecation-"), encoding="utf-8")
    for _ in range(2):
        ended = ask("accept", "--write", "--format", "json")
        assert ended.status == 1
        assert ended.json["unused"] == [
            {"kind": "waiver", "id": "late-and-known", "why": "covers nothing: take it out of the policy, or mend it"}
        ]
        assert read_lock(policy).counts["waiver", "late-and-known"] == 1  # as before: judging says what is wrong
    assert ask("judge").status == 1


def test_a_waiver_that_has_expired_is_never_accepted(ask: Callable[..., Ended], policy: Path) -> None:
    path = policy / "waivers" / "late-and-known.toml"
    path.write_text(path.read_text(encoding="utf-8") + "expires = 2020-01-01\n", encoding="utf-8")
    ended = ask("accept")
    assert ended.status == 1
    assert "waiver late-and-known: has expired: take it out of the policy, or give it another day" in ended.out


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

    for pinned, what in (("waits", "new"), ("0123456789abcdef", "another change than before")):
        relock(policies, {key: pinned})
        status, out = run()
        assert (status, out.splitlines()[:-1]) == (
            1,
            [
                f"operator_waiver op-can-cast aten::can_cast: {what}",
                "    backward, since 2.4.1: an argument has another name (argument-renamed)",
                "    old  aten::can_cast(ScalarType from, ScalarType to) -> bool",
                "    new  aten::can_cast(ScalarType from_, ScalarType to) -> bool",
                "    see  torch-compat operators history aten::can_cast",
            ],
        )
    (change,) = json.loads(run("--write", "--format", "json")[1])["changes"]
    (became,) = change["became"]
    assert (became["operator"], became["change"], became["since"]) == ("aten::can_cast", ["argument-renamed"], "2.4.1")
    assert (policies / LOCK).read_bytes() == right
    waiver = policies / "operator_waivers" / "op-can-cast.toml"
    waiver.write_text(waiver.read_text().replace('"argument-renamed"', '"removed"'))
    status, out = run("--write")
    assert status == 1
    assert "operator_waiver op-can-cast aten::can_cast: did not change so: take it out of the policy, or mend it" in out
    assert (policies / LOCK).read_bytes() == right  # as before: judging says what is wrong


def test_incomplete_evidence_is_not_counted(ask: Callable[..., Ended], root: Path, policy: Path) -> None:
    max((root / "reports" / "observations").glob("torch-*")).unlink()
    assert ask("accept").status == 4  # though the counts are those of the lock
    relock(policy, {("waiver", "late-and-known"): 5})
    before = (policy / LOCK).read_bytes()
    ended = ask("accept", "--write")
    assert ended.status == 1
    assert "nothing is written: something could not be checked, so the counts are not final" in ended.out
    assert (policy / LOCK).read_bytes() == before


def test_what_takes_archives_to_count_is_left_to_the_session_that_opens_them(ask: Callable[..., Ended], policy: Path) -> None:
    (policy / "slips.toml").write_text(
        '[[slip]]\nid = "dies"\nall = ["unmet:operator"]\nreaders = "1.1.0.."\noutcome = "crashed"\nstage = "load"\n'
        'signal = "SIGABRT"\nbecause = "so"\nevidence = "seen"\n'
    )
    ended = ask("accept", "--write", "--format", "json")
    assert (ended.status, ended.json["not_checked"]) == (4, ["slip dies: not counted here: nox -s predictions -- --write"])
    assert "counts.lock:3: slip dies has no line here: nox -s predictions -- --write" in ask("judge").err
    relock(policy, {("slip", "dies"): 4})
    assert ask("accept", "--write").status == 0
    assert read_lock(policy).counts["slip", "dies"] == 4
    assert ask("judge").status == 0


def test_without_a_policy(ask: Callable[..., Ended], policy: Path) -> None:
    shutil.rmtree(policy)
    assert ask("accept").status == 4
