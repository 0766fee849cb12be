"""docs/signing-a-release.md: every command marked as run, in order, from a judged tree to a signed directory."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.small_tree import RELEASES, make_small_tree, once
from torch_compat.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable

REPOSITORY = Path(__file__).parents[2]
DOCUMENT = REPOSITORY / "docs/signing-a-release.md"
RUNS = re.compile(r"<!-- walk-through -->\n```sh\n(.*?)```", re.DOTALL)
SIGNED = "reports/signoffs/2.15.0"


def commands() -> list[list[str]]:
    text = DOCUMENT.read_text(encoding="utf-8")
    return [shlex.split(line) for block in RUNS.findall(text) for line in block.splitlines()]


def with_2_15(path: Path) -> None:
    make_small_tree(REPOSITORY, path, (*RELEASES, "2.15.0"))


@pytest.fixture
def root(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    result = shutil.copytree(once(shared, "tree-with-2.15.0", with_2_15), tmp_path / "tree")
    monkeypatch.chdir(result)
    monkeypatch.setenv("NO_COLOR", "1")
    return result


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


def appended(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


def replaced(old: str, new: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    return change


def removed(path: Path) -> None:
    path.unlink()


def added(path: Path) -> None:
    assert not path.exists()
    path.parent.mkdir(exist_ok=True)
    path.write_text("[[item]]\n", encoding="utf-8")


CHANGES: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "an observation": ("reports/observations/torch-2.15.0.txt", appended, "changed: {}"),
    "an observation that is gone": ("reports/observations/torch-1.6.0.txt", removed, "missing: {}"),
    "a policy": ("policies/torch/promises.toml", appended, "changed: {}"),
    "the text of an exception": ("policies/torch/waivers/known-01.toml", replaced("as recorded", "as wished"), "changed: {}"),
    "what an exception accepted": ("policies/torch/waivers.lock", appended, "changed: {}"),
    "a note": ("reports/notes/2.15.0.toml", added, "added: {}"),
    "the calendar": ("policies/torch/releases.toml", appended, "changed: {}"),
    "a deprecation": ("policies/torch/deprecations/svd.toml", appended, "changed: {}"),
    "a recipe": ("fixtures/recipes/div.py", appended, "changed: {}"),
    "the pins of the fixtures": ("fixtures/FROZEN", appended, "changed: {}"),
    "the signed notes": (f"{SIGNED}/notes.md", appended, "changed: notes.md of the sign-off"),
    "who signed": (f"{SIGNED}/signoff.json", replaced("Your Name", "Nobody"), "changed: signoff.json of the sign-off"),
    "a file beside the statement": (f"{SIGNED}/more.md", added, "added to the sign-off: more.md"),
}


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed here")
def test_the_walk_through_ends_with_a_signed_directory(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "key"], check=True)
    Path("allowed_signers").write_text(f"manager@example.org {Path('key.pub').read_text()}")
    ran = []
    for program, *arguments in commands():
        if program == "torch-compat":
            assert run(*arguments) == 0, (arguments, capsys.readouterr())
        else:
            assert program == "ssh-keygen"
            subprocess.run([program, *arguments], check=True, capture_output=True)
        ran.append(next((argument for argument in arguments if not argument.startswith("-")), ""))
    assert {"judge", "report", "notes", "signoff"} <= set(ran)
    assert sorted(path.name for path in (root / SIGNED).iterdir()) == ["notes.md", "signoff.json", "signoff.json.sig"]
    document = json.loads((root / SIGNED / "signoff.json").read_text())
    assert (document["release"], document["by"], document["accepted"]) == ("2.15.0", "Your Name", [])
    assert document["counts"]["fail"] == document["counts"]["not-checked"] == 0
    assert (root / "draft.md").read_text() == (root / SIGNED / "notes.md").read_text()
    assert (root / "page/index.html").is_file()
    assert (root / "report.md").read_text().startswith("# What changed in torch 2.15.0")
    verify = ("signoff", "2.15.0", "--verify", "--signers", "allowed_signers")
    assert len(CHANGES) >= 10
    for what, (name, change, message) in CHANGES.items():
        path = root / name
        kept = path.read_bytes() if path.is_file() else None
        change(path)
        capsys.readouterr()
        assert run(*verify) == 1, what
        out = capsys.readouterr().out
        assert f"  {message.format(name)}\n" in out, (what, out)
        if kept is None:
            path.unlink()
        else:
            path.write_bytes(kept)
    capsys.readouterr()
    assert run(*verify) == 0
    assert "0 changes since; the signature is by manager@example.org" in capsys.readouterr().out


def test_every_block_of_the_document_is_run_or_needs_more_than_a_test_has() -> None:
    """What adds a release needs an index and hours; what withdraws would undo the rest."""
    text = DOCUMENT.read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    others = [line for block in blocks if block not in RUNS.findall(text) for line in block.splitlines()]
    assert len(blocks) == len(RUNS.findall(text)) + 2
    assert all(" admit " in line or " signoff " in line for line in others)
