from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

import torch_compat.replay.extension
from tests.cli.test_schemas import validator
from tests.operators.test_extensions import ANSWER
from torch_compat.cli import main
from torch_compat.operators.history import History
from torch_compat.operators.manifest import read_manifest
from torch_compat.readers.environments import Environment, Environments

if TYPE_CHECKING:
    from collections.abc import Callable

    Run: TypeAlias = Callable[..., tuple[int, str, str]]

LIST = "backend PrivateUse1\nregisters aten::add.Tensor\ncalls aten::_embedding_bag_backward\n"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run_command(*arguments: str | Path) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stopped:
            main(["extension", *map(str, arguments)])
        message = capsys.readouterr()
        assert isinstance(stopped.value.code, int)
        return stopped.value.code, message.out, message.err

    return run_command


@pytest.fixture
def listing(tmp_path: Path) -> Path:
    path = tmp_path / "mine.txt"
    path.write_text(LIST, encoding="utf-8")
    return path


@pytest.fixture
def manifest(run: Run, listing: Path, tmp_path: Path) -> Path:
    path = tmp_path / "mine.json"
    assert run("record", "--operators", listing, "--release", "2.4.1", "--output", path)[0] == 0
    return path


@pytest.fixture
def dispatcher(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """A machine where 2.4.1 is built, and answers with what is in this list."""
    answers = [dict(ANSWER)]
    there = Environment("2.4.1", Path("/e"), Path("/e/bin/python"), {})
    monkeypatch.setattr(Environments, "get", lambda _, version: there if version == "2.4.1" else None)
    monkeypatch.setattr(torch_compat.replay.extension, "ask_extension", lambda *_, **__: answers[0])
    return answers


# ----------------------------------------------------------------------------------------------------------------------- record


def test_record_from_a_list(run: Run, listing: Path, manifest: Path) -> None:
    code, out, _ = run("record", "--operators", listing, "--release", "torch-2.4.1")
    assert code == 0
    assert out == manifest.read_text(encoding="utf-8")
    assert read_manifest(manifest).extension == "mine"
    code, out, _ = run("record", "--operators", listing, "--release", "2.4.1", "--output", manifest, "--name", "other")
    assert (code, out) == (0, "other, built against 2.4.1: registers 1, defines 0, calls 1; relies on the decomposition of 1\n")


def test_record_by_loading(run: Run, listing: Path, tmp_path: Path, dispatcher: list[dict[str, Any]]) -> None:
    output = tmp_path / "out.json"
    code, _, err = run("record", "--module", "pkg", "--reader", "torch-2.4.1", "--operators", listing, "--output", output)
    assert (code, err) == (0, "")
    result = read_manifest(output)
    assert (result.extension, result.torch, result.needs) == ("pkg", "2.4.1+cpu", ("torch.library.Library",))
    assert [(entry.operator, entry.use) for entry in result.operators] == [
        ("aten::_embedding_bag_backward", "calls"),
        ("aten::add.Tensor", "registers"),
        ("mine::f", "defines"),
    ]
    dispatcher[0]["dangling"] = ["aten::gone"]
    code, _, err = run("record", "--library", "x.so", "--reader", "torch-2.4.1")
    assert code == 0
    assert "skipped: aten::gone has a kernel" in err


def test_an_extension_that_does_not_load(run: Run, dispatcher: list[dict[str, Any]]) -> None:
    dispatcher[0]["error"] = {"stage": "load", "type": "OSError", "message": "undefined symbol"}
    code, _, err = run("record", "--module", "pkg", "--reader", "torch-2.4.1")
    assert code == 2
    assert "does not load in torch 2.4.1+cpu: OSError: undefined symbol" in err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "nothing to record"),
        (("--operators", "LIST"), 2, "use --release"),
        (("--operators", "LIST", "--reader", "torch-2.4.1"), 2, "use --release X.Y.Z instead of --reader"),
        (("--operators", "LIST", "--release", "2.4.1", "--reader", "torch-2.4.1"), 2, "use --release X.Y.Z instead of --reader"),
        (("--operators", "LIST", "--release", "2.4.7"), 2, "did you mean 2.4.1?"),
        (("--operators", "missing.txt", "--release", "2.4.1"), 2, "file not found"),
        (("--module", "m", "--library", "x.so", "--reader", "torch-2.4.1"), 2, "--library and --module cannot be combined"),
        (("--module", "m", "--release", "2.4.1"), 2, "use --reader"),
        (("--module", "m", "--reader", "torch-2.5.1"), 4, "torch-compat readers build torch-2.5.1"),
        (("--operators", "EMPTY", "--release", "2.4.1"), 4, "lists no operators"),
        (("--operators", "TYPO", "--release", "2.4.1"), 2, "did you mean aten::linear"),
        (("--operators", "LIST", "--release", "2.4.1", "--output", "/no/such/folder/x"), 2, "cannot be written"),
    ],
)
def test_wrong_usage(
    arguments: tuple[str, ...], code: int, said: str, run: Run, listing: Path, tmp_path: Path, dispatcher: list[dict[str, Any]]
) -> None:
    (tmp_path / "empty.txt").write_text("# nothing\n", encoding="utf-8")
    (tmp_path / "typo.txt").write_text("calls aten::lineer\n", encoding="utf-8")
    files = {"LIST": listing, "EMPTY": tmp_path / "empty.txt", "TYPO": tmp_path / "typo.txt"}
    result, _, err = run("record", *(files.get(argument, argument) for argument in arguments))
    assert result == code
    assert said in err


# ------------------------------------------------------------------------------------------------------------------------ check


@pytest.mark.parametrize(
    ("releases", "code"),
    [(("2.4.1",), 0), (("2.4.1", "torch-2.3.1"), 0), (("2.5.1",), 1), (("1.6.0",), 1), (("2.4.1", "2.5.1"), 1)],
)
def test_check(releases: tuple[str, ...], code: int, run: Run, manifest: Path) -> None:
    options = [part for release in releases for part in ("--release", release)]
    result, out, _ = run("check", manifest, *options)
    assert result == code
    assert out.splitlines()[0] == "mine, built against 2.4.1, 2 operators"
    assert "aten::" not in out, "operators are named under --verbose"


def test_what_cannot_be_told_is_incomplete(run: Run, tmp_path: Path) -> None:
    listing = tmp_path / "l.txt"
    listing.write_text("backend PrivateUse1\ncalls aten::linear\n", encoding="utf-8")
    path = tmp_path / "m.json"
    run("record", "--operators", listing, "--release", "2.4.1", "--output", path)
    code, out, _ = run("check", path, "--release", "1.5.1")
    assert code == 4
    assert "cannot be determined: 1 unknown" in out
    assert run("check", path, "--all")[0] == 4


def test_verbose_names_operators_and_reasons(run: Run, manifest: Path) -> None:
    code, out, _ = run("check", manifest, "--all", "--verbose")
    assert code == 1
    assert len([line for line in out.splitlines() if line[0].isdigit()]) == len(History.load().releases)
    assert "fault: aten::_embedding_bag_backward (calls): needs its own kernel" in out


def test_check_as_json(run: Run, manifest: Path) -> None:
    code, out, _ = run("check", manifest, "--all", "--format", "json")
    document = json.loads(out)
    validator("extension-check").validate(document)
    told = {release["release"]: release["verdict"] for release in document["releases"]}
    assert (code, told["2.4.1"], told["2.5.1"]) == (1, "fits", "does-not-fit")


def test_a_manifest_from_a_newer_version(run: Run, manifest: Path) -> None:
    text = manifest.read_text(encoding="utf-8").replace('"schema_version": 1', '"schema_version": 7')
    manifest.write_text(text, encoding="utf-8")
    code, _, err = run("check", manifest, "--all")
    assert code == 2
    assert "mine.json:2: schema_version: 7 was written by a newer torch-compat" in err


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ((), 2, "no releases were given"),
        (("--all", "--release", "2.4.1"), 2, "no releases were given"),
        (("--release", "2.44"), 2, "did you mean"),
    ],
)
def test_wrong_questions(options: tuple[str, ...], code: int, said: str, run: Run, manifest: Path) -> None:
    result, _, err = run("check", manifest, *options)
    assert result == code
    assert said in err


# --------------------------------------------------------------------------------------------------------------------- dispatch


def test_dispatch(run: Run) -> None:
    code, out, _ = run("dispatch", "aten::gelu", "aten::mm.out", "--release", "2.13.0")
    assert code == 0
    assert out.splitlines() == [
        "aten::gelu: decomposes (explicit, not functional, into aten::gelu.out) [dispatcher and native_functions.yaml]; tags core, pointwise",
        "aten::mm.out: needs the backend's own kernel [dispatcher and native_functions.yaml]",
    ]
    code, out, _ = run("dispatch", "aten::_nested_get_values", "--release", "2.13.0")
    assert "but native_functions.yaml lists CompositeImplicitAutograd" in out
    assert run("dispatch", "aten::linear", "--release", "1.5.0")[0] == 4


def test_dispatch_changes(run: Run) -> None:
    code, out, _ = run("dispatch", "--changes", "2.4.1", "2.5.1", "--breaks")
    assert code == 0
    assert out.splitlines() == [
        "breaks  aten::_embedding_bag_backward: decomposes (implicit) -> needs the backend's own kernel",
        "1 operator changed, 1 of which now fail on a backend without its own kernel",
    ]
    code, out, _ = run("dispatch", "--changes", "1.5.1", "1.7.1", "aten::linear")
    assert code == 4
    assert "the dispatch of some operators in 1.5.1 is unknown: This release does not show its dispatcher" in out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--release", "2.13.0"), 4, "no operator was given"),
        (("aten::add.Tensor",), 2, "no release was given"),
        (("aten::add.Tensor", "--release", "2.13.0", "--breaks"), 2, "--breaks requires"),
        (("aten::geluu", "--release", "2.13.0"), 2, "did you mean aten::gelu"),
        (("aten::geluu", "--changes", "2.12.1", "2.13.0"), 2, "did you mean aten::gelu"),
        (("--changes", "2.4.1", "2.5.9"), 2, "did you mean 2.5.1 or 2.5.0?"),
    ],
)
def test_wrong_questions_of_dispatch(arguments: tuple[str, ...], code: int, said: str, run: Run) -> None:
    result, _, err = run("dispatch", *arguments)
    assert result == code
    assert said in err


@pytest.mark.parametrize("arguments", [("aten::gelu", "aten::len.t", "--release", "2.13.0"), ("--changes", "1.5.1", "2.4.1")])
def test_dispatch_as_json(arguments: tuple[str, ...], run: Run) -> None:
    code, out, _ = run("dispatch", *arguments, "--format", "json")
    document = json.loads(out)
    validator("extension-dispatch").validate(document)
    assert (code, bool(document.get("unknown"))) in {(0, False), (4, True)}
