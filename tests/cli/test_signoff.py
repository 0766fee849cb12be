"""Signing off on a release: what prevents it, what it writes, and every later change that --verify lists."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import Ended
from torch_compat.cli import main
from torch_compat.corpus.corpus import load_corpus
from torch_compat.judging.judgement import Verdict
from torch_compat.report.release.signoff import blockers

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from torch_compat.judging.judge import Report

    Run = Callable[..., Ended]

SIGNED = ("signoff", "2.13.0", "--by", "A Tester", "--date", "2026-11-23")
VERIFY = ("signoff", "torch-2.13.0", "--verify")


@pytest.fixture
def root(small_tree: Path, tmp_path: Path) -> Path:
    for name in ("fixtures", "policies", "reports/observations", "reports/proofs"):
        shutil.copytree(small_tree / name, tmp_path / name)
    return tmp_path


@pytest.fixture
def run(root: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*arguments: str) -> Ended:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([*arguments, "--root", str(root)])
        message = capsys.readouterr()
        return Ended(int(ended.value.code or 0), message.out, message.err)

    return command


def files(root: Path) -> dict[str, bytes]:
    folder = root / "reports/signoffs"
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def plant_failure(root: Path) -> None:
    """Forget a waiver for cells that fail, and what was accepted for it."""
    waiver = next(path for path in sorted((root / "policies/torch/waivers").iterdir()) if "outcome" in path.read_text())
    waiver.unlink()
    lock = root / "policies/torch/waivers.lock"
    blocks = lock.read_text()
    kept = [line for line in blocks.splitlines(True) if waiver.stem not in line]
    lock.write_text("".join(kept))
    counts = root / "policies/torch/counts.lock"
    counts.write_text("".join(line for line in counts.read_text().splitlines(True) if waiver.stem not in line))


def test_a_sign_off_says_who_when_and_on_what(run: Run, root: Path) -> None:
    ended = run(*SIGNED)
    assert (ended.status, ended.err) == (0, "")
    assert "2.13.0 is signed by A Tester on 2026-11-23: reports/signoffs/2.13.0" in ended.out
    document = json.loads((root / "reports/signoffs/2.13.0/signoff.json").read_text())
    assert (document["by"], document["date"], document["release"], document["since"]) == (
        "A Tester",
        "2026-11-23",
        "2.13.0",
        "1.12.1",
    )
    assert document["counts"]["pass"] > 1000
    assert document["listed"]["waived"]
    assert "policies/torch/releases.toml" in document["files"]
    assert "reports/observations/torch-2.13.0.txt" in document["files"]
    assert "fixtures/torch-1.5.1/manifest.jsonl" in document["files"]
    assert not [name for name in document["files"] if name.endswith(".pt")]
    assert "# Compatibility of torch 2.13.0" in (root / "reports/signoffs/2.13.0/notes.md").read_text()
    assert run(*VERIFY).status == 0


def test_the_same_evidence_gives_the_same_bytes(run: Run, root: Path) -> None:
    assert run(*SIGNED).status == 0
    first = files(root)
    shutil.rmtree(root / "reports/signoffs")
    assert run(*SIGNED).status == 0
    assert files(root) == first


def test_a_failure_refuses_and_is_named_and_can_be_accepted_for_this_sign_off_only(run: Run, root: Path) -> None:
    plant_failure(root)
    ended = run(*SIGNED)
    assert ended.status == 1
    assert "2.13.0 is not signed" in ended.err
    named = [line.split("--accept '")[1].split("'")[0] for line in ended.err.splitlines() if "--accept" in line]
    assert named
    assert not files(root)
    assert "not-checked" not in ended.err
    accepted = [part for name in named for part in ("--accept", name, "--because", f"known: {len(name)}")]
    assert run(*SIGNED, *accepted).status == 0
    document = json.loads((root / "reports/signoffs/2.13.0/signoff.json").read_text())
    assert [item["id"] for item in document["accepted"]] == named
    assert run("signoff", "2.13.0", "--withdraw", "--by", "B", "--because", "once more").status == 0
    assert run(*SIGNED).status == 1  # nothing stays accepted


def test_what_was_not_checked_refuses_and_cannot_be_accepted(run: Run, root: Path) -> None:
    (root / "reports/observations/torch-1.6.0.txt").unlink()
    ended = run(*SIGNED)
    assert ended.status == 1
    lines = [line for line in ended.err.splitlines() if line.startswith("  not-checked: ")]
    assert lines
    assert not [line for line in lines if "--accept" in line]
    ended = run(*SIGNED, "--accept", "pairs-observed", "--because", "it is late")
    assert ended.status == 2
    assert "cannot be accepted" in ended.err
    assert not files(root)


def test_what_is_only_modelled_is_a_blocker() -> None:
    class Judged:
        findings = ()
        not_checked = ()
        counts = {Verdict.PASS: 3}  # noqa: RUF012
        modelled = {Verdict.PASS: 2, Verdict.FAIL: 0}  # noqa: RUF012

    class Found:
        not_asked = ()

    report: Report = Judged()  # type: ignore[assignment]
    (blocker,) = blockers(report, Found())  # type: ignore[arg-type]
    assert (blocker.kind, blocker.id, blocker.acceptable) == ("modelled", "modelled:pass", True)


def change(path: Path, old: str = "", new: str = "") -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1) if old else text + "\n", encoding="utf-8")


def test_every_change_since_is_named(run: Run, root: Path) -> None:
    assert run(*SIGNED).status == 0
    waiver = min((root / "policies/torch/waivers").iterdir()).name
    signed = "reports/signoffs/2.13.0"
    named = {
        "changed": (
            "reports/observations/torch-2.13.0.txt", "policies/torch/promises.toml", f"policies/torch/waivers/{waiver}",
            "policies/torch/releases.toml", "policies/torch/deprecations/svd.toml", "fixtures/recipes/div.py", "fixtures/FROZEN",
            f"{signed}/notes.md", f"{signed}/signoff.json",
        ),
        "missing": ("policies/torch/changes.toml", f"{signed}/notes.md", "fixtures/recipes/div.py"),
        "added": ("policies/torch/waivers/new.toml", f"{signed}/more.txt", f"{signed}/.hidden", "reports/notes/2.13.0.toml"),
    }  # fmt: skip
    for what, names in named.items():
        for name in names:
            path = root / name
            kept = path.read_bytes() if path.is_file() else None
            assert (kept is None) is (what == "added")
            if what == "missing":
                path.unlink()
            elif name.endswith("signoff.json"):
                change(path, "A Tester", "Another")
            else:
                path.parent.mkdir(exist_ok=True)
                path.write_bytes((kept or b"") + b"\n")
            ended = run(*VERIFY)
            shown = f"{what}: {name}"
            if name.startswith(signed):
                shown = f"added to the sign-off: {path.name}" if what == "added" else f"{what}: {path.name} of the sign-off"
            assert (name, ended.status) == (name, 1), ended.err
            assert f"  {shown}\n" in ended.out
            if kept is None:
                path.unlink()
            else:
                path.write_bytes(kept)
    assert run(*VERIFY).status == 0


def test_a_changed_archive_is_named(run: Run, root: Path) -> None:
    assert run(*SIGNED).status == 0
    fixture = load_corpus(root / "fixtures").fixtures["torch-1.5.1/div"]
    path = root / "fixtures/torch-1.5.1" / fixture.file
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    ended = run(*VERIFY)
    assert ended.status == 1
    assert "torch-1.5.1/div" in ended.out


def test_a_withdrawn_sign_off_is_marked_and_another_one_may_follow(run: Run, root: Path) -> None:
    assert run(*SIGNED).status == 0
    ended = run(*SIGNED)
    assert (ended.status, "2.13.0 is already signed" in ended.err) == (2, True)
    assert run("signoff", "2.13.0", "--withdraw", "--by", "B", "--because", "the evidence was wrong").status == 0
    assert (root / "reports/signoffs/2.13.0/signoff.json").is_file()
    ended = run(*VERIFY)
    assert ended.status == 1
    assert "withdrawn: " in ended.out
    assert run("signoff", "2.13.0", "--withdraw", "--by", "B", "--because", "again").status == 2
    assert run(*SIGNED).status == 0
    assert (root / "reports/signoffs/2.13.0-2/signoff.json").is_file()
    assert run(*VERIFY).status == 0


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed here")
def test_a_detached_signature_is_verified(run: Run, root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    keys = tmp_path_factory.mktemp("keys")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", keys / "key"], check=True)
    (keys / "signers").write_text(f"tester@example.org {(keys / 'key.pub').read_text()}")
    assert run(*SIGNED).status == 0
    assert run(*VERIFY, "--signers", str(keys / "signers")).status == 1  # nothing is attached
    shutil.copyfile(root / "reports/signoffs/2.13.0/signoff.json", keys / "signoff.json")
    subprocess.run(
        ["ssh-keygen", "-q", "-Y", "sign", "-f", keys / "key", "-n", "torch-compat", keys / "signoff.json"], check=True
    )
    assert run("signoff", "2.13.0", "--attach", str(keys / "signers")).status == 2
    assert run("signoff", "2.13.0", "--attach", str(keys / "signoff.json.sig")).status == 0
    ended = run(*VERIFY)
    assert (ended.status, "was not verified: pass --signers FILE" in ended.out) == (4, True)
    ended = run(*VERIFY, "--signers", str(keys / "signers"))
    assert (ended.status, "the signature is by tester@example.org" in ended.out) == (0, True)
    (keys / "others").write_text(f"tester@example.org {(keys / 'key.pub').read_text().replace('AAAAC3', 'AAAAC4')}")
    assert run(*VERIFY, "--signers", str(keys / "others")).status == 1
    change(root / "reports/signoffs/2.13.0/signoff.json", "A Tester", "Another")
    ended = run(*VERIFY, "--signers", str(keys / "signers"))
    assert (ended.status, "does not match" in ended.out) == (1, True)


@pytest.mark.parametrize(("arguments", "said"), [
    (("2.13.0",), "--by is missing"),
    (("2.13.0", "--by", "x\x1b[2J"), "--by is not a single line of printable text"),
    (("2.13.0", "--by", "x" * 1_000_000), "--by is longer than 400"),
    (("2.13.0", "--by", "x", "--date", "yesterday"), "is not a valid date"),
    (("2.13.0", "--by", "x", "--accept", "y"), "got 1 --accept and 0 --because"),
    (("2.13.0", "--by", "x", "--accept", "y", "--because", "z"), "y cannot be accepted"),
    (("2.13.0", "--verify", "--withdraw"), "cannot be combined"),
    (("2.13.0", "--by", "x", "--signers", "s"), "--signers requires --verify"),
    (("2.13.0", "--by", "x", "--withdraw"), "pass exactly one, with the reason"),
    (("2.99", "--by", "x"), "the release calendar has no torch release"),
])  # fmt: skip
def test_wrong_arguments(run: Run, root: Path, arguments: tuple[str, ...], said: str) -> None:
    ended = run("signoff", *arguments)
    assert ended.status == 2
    assert said in ended.err
    assert "\x1b" not in ended.err
    assert not files(root)


def test_what_is_not_signed_cannot_be_verified(run: Run) -> None:
    assert run(*VERIFY).status == 4
    assert run("signoff", "1.6.0", "--withdraw", "--by", "x", "--because", "y").status == 4


def test_a_statement_that_is_none(run: Run, root: Path) -> None:
    folder = root / "reports/signoffs/2.13.0"
    folder.mkdir(parents=True)
    for text in ("", "[]", "{}", '{"schema_version": 2}', "[" * 100_000, "\x00"):
        (folder / "signoff.json").write_text(text)
        ended = run(*VERIFY)
        assert (ended.status, "is not a version 1 sign-off" in ended.err) == (2, True)
