"""Bad input: a clear message on standard error with the problem and its place, nothing on standard output, no stack trace."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from torch_compat.cli import main, top_level
from torch_compat.cli._paths import NamedPath

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    out: str
    err: str


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., Ended]:
    """Runs ``torch-compat`` where no release is built."""
    monkeypatch.setenv("TORCH_COMPAT_CACHE", str(tmp_path / "no-cache"))
    monkeypatch.delenv("TORCH_COMPAT_DEBUG", raising=False)

    def command(*arguments: object) -> Ended:
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        message = capfd.readouterr()
        assert "Traceback" not in message.out + message.err
        assert "torch-compat: internal error" not in message.err
        return Ended(int(ended.value.code or 0), message.out, message.err)

    return command


@pytest.fixture(scope="session")
def whole(small_tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A part of real evidence, without observations; not to be changed."""
    path = tmp_path_factory.mktemp("whole")
    ignored = shutil.ignore_patterns("torch-1.6*", "torch-1.12*", "torch-2*")
    shutil.copytree(small_tree / "fixtures", path / "fixtures", ignore=ignored)
    shutil.copytree(small_tree / "policies", path / "policies")
    return path


@pytest.fixture
def root(whole: Path, tmp_path: Path) -> Path:
    """The same, to be changed."""
    return Path(shutil.copytree(whole, tmp_path / "root"))


def refused(ended: Ended, status: int, *message: str) -> None:
    assert (ended.status, ended.out) == (status, "")
    for text in message:
        assert text in ended.err


# ------------------------------------------------------------------------------------------------------------------ root


@pytest.mark.parametrize("command", ["judge", "replay", "readers list"])
def test_a_root_that_is_no_folder(command: str, run: Callable[..., Ended], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    refused(run(*command.split(), "--root", tmp_path / "file"), 2, f"{tmp_path}/file", "is not a directory")
    refused(run(*command.split(), "--root", tmp_path / "nowhere"), 2, f"{tmp_path}/nowhere", "directory not found")
    said = "expected a directory with policies/torch\n  pass a checkout of torch-compat as --root, or omit --root in a checkout\n"
    refused(run(*command.split(), "--root", tmp_path / "nowhere"), 2, said)


@pytest.mark.parametrize("command", ["judge", "replay", "observe --reader torch-1.5.1", "produce torch-1.5.1"])
def test_an_empty_root(command: str, run: Callable[..., Ended], tmp_path: Path) -> None:
    refused(
        run(*command.split(), "--root", tmp_path), 4, str(tmp_path), "has no policies/torch, so there are no promises to check"
    )


NEED_A_CHECKOUT = [
    "accept", "admit torch-1.6.0", "candidate python:python3", "deprecations --states", "deprecations --sweep 1.5.1..1.6.0", "judge",
    "new deprecation x --kind removal", "new recipe x --family torch-save", "new rule x", "new upgrader aten::div.Tensor", "new waiver x",
    "notes 1.6.0", "observe --recipe add --everywhere", "observe --reader torch-1.5.1", "produce torch-1.5.1", "replay", "report 1.6.0",
    "signoff 1.6.0 --by Me",
]  # fmt: skip


@pytest.mark.parametrize("command", NEED_A_CHECKOUT)
def test_no_root_anywhere(command: str, run: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ended = run(*command.split())
    refused(ended, 4, "run it in a checkout of torch-compat" if command.startswith("deprecations") else "or use --root")
    assert list(tmp_path.iterdir()) == []


def test_readme_and_help_state_the_status_without_a_checkout(run: Callable[..., Ended]) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    assert "or there is no checkout" in next(line for line in readme.splitlines() if line.startswith("| 4 |"))
    assert "or there is no checkout to check" in " ".join(run("--help").out.split())


def paths(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Parameter]]:
    """Every option and argument that names a path, with the words of its command."""
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            inner = command.get_command(click.Context(command), name)
            assert inner is not None
            yield from paths(inner, (*words, name))
    yield from ((words, parameter) for parameter in command.params if isinstance(parameter.type, click.Path))


PATHS = [(words, parameter) for words, parameter in paths(top_level) if isinstance(parameter, click.Option)]


@pytest.mark.parametrize(("words", "option"), PATHS, ids=[f"{'-'.join(words)}{option.opts[0]}" for words, option in PATHS])
def test_an_empty_path_is_wrong_usage(
    words: tuple[str, ...], option: click.Option, run: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = top_level
    for word in words:
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), word)  # type: ignore[assignment]
    others = ["x" for parameter in command.params if isinstance(parameter, click.Argument) and parameter.required]
    refused(run(*words, option.opts[0], "", *others), 2, f"'{option.opts[0]}': the name is empty, expected a path")
    assert list(tmp_path.iterdir()) == []


def test_every_path_is_of_the_type_that_refuses_an_empty_one() -> None:
    assert [(words, parameter.name) for words, parameter in paths(top_level) if type(parameter.type) is not NamedPath] == []


@pytest.mark.parametrize("command", ["judge", "replay", "report 1.6.0", "inspect x"])
def test_an_output_without_a_name_is_wrong_usage(command: str, run: Callable[..., Ended], root: Path) -> None:
    more = ("--root", root) if not command.startswith("inspect") else ()
    refused(run(*command.split(), *more, "--output", "junit="), 2, "--output: 'junit=' is not FORMAT=FILE")


@pytest.mark.parametrize("command", ["judge", "replay --recorded", "observe --reader torch-1.5.1"])
def test_no_corpus(command: str, run: Callable[..., Ended], root: Path) -> None:
    shutil.rmtree(root / "fixtures")
    refused(run(*command.split(), "--root", root), 4, str(root), "has no fixtures/, so there is nothing to judge")
    (root / "fixtures").write_text("no folder")
    refused(run(*command.split(), "--root", root), 4, "has no fixtures/")


# ---------------------------------------------------------------------------------------------------------------- policy


@pytest.mark.parametrize("command", ["judge", "replay --recorded", "observe --reader torch-1.5.1"])
def test_every_mistake_of_a_policy_is_named_with_file_and_line(command: str, run: Callable[..., Ended], root: Path) -> None:
    def spoil(name: str, old: str, new: str) -> int:
        path = root / "policies" / "torch" / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))
        return text[: text.index(old)].count("\n") + 1

    places = {
        "promises.toml": spoil("promises.toml", "forward_window_days = 14", 'forward_window_days = "14"'),
        "formats.toml": spoil("formats.toml", 'kind = "bytecode"', 'kind = "bitcode"'),
        "releases.toml": spoil("releases.toml", "date = 2019-02-05", "dated = 2019-02-05"),
    }
    ended = run(*command.split(), "--root", root)
    refused(ended, 2, "errors in the policy", *(f"{name}:{line}: " for name, line in places.items()))


def test_a_policy_that_is_no_toml(run: Callable[..., Ended], root: Path) -> None:
    (root / "policies" / "torch" / "broken.toml").write_text("[policy\nname =\n")
    (root / "policies" / "torch" / "binary.toml").write_bytes(b"\xff\xfe\x00")
    refused(run("judge", "--root", root), 2, "broken.toml:1", "binary.toml")


def test_a_rule_that_does_not_exist(run: Callable[..., Ended], root: Path) -> None:
    path = root / "policies" / "torch" / "promises.toml"
    path.write_text(path.read_text().replace('id = "newer-loads"', 'id = "judge"'))
    refused(run("judge", "--root", root), 2, "the policy names the rule 'judge', which does not exist")


# ------------------------------------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        ("judge --as-of soon", 2, "'soon' is neither a date nor a release in the policy"),
        ("judge --as-of 2026-13-01", 2, "'2026-13-01' is not a valid date"),
        ("judge --as-of 2026-13-01", 2, "use a date from 2018-12-07 to 2999-12-31, or a release, such as "),
        ("judge --as-of 2018-12-06", 2, "2018-12-06 is before 2018-12-07, the date of the first release, 1.0.0"),
        ("judge --as-of 3000-01-01", 2, "3000-01-01 is after 2999-12-31, the last date that is accepted"),
        ("judge --format xml", 2, "'xml' is not one of 'text', 'json'"),
        ("replay --format xml", 2, "'xml' is not one of 'text', 'json'"),
        ("judge surplus", 2, "unexpected extra argument (surplus)"),
        ("judge --nonsense", 2, "--nonsense"),
        ("nonsense", 2, "No such command 'nonsense'"),
        ("observe", 2, "Missing option '--reader'"),
        ("produce", 2, "Missing argument"),
        (
            "replay --recorded --reader torch-1.5.1",
            2,
            "--recorded does not observe anything, so it cannot be combined with --reader",
        ),
        ("replay --reader torch-1.55.1", 2, "2.0.0 or 1.5.1?"),
        ("observe --reader torch-1.55.1", 2, "the release calendar has no torch release 'torch-1.55.1'"),
        ("produce torch-1.55.1", 2, "2.0.0 or 1.5.1?"),
        ("readers build torch-1.55.1", 2, "2.0.0 or 1.5.1?"),
        ("observe --reader torch-1.5.1", 4, "torch-1.5.1 is not built here"),
        ("produce torch-1.5.1", 4, "torch-compat readers build torch-1.5.1"),
        ("produce torch-1.5.1 --recipe dvi", 2, "there is no recipe 'dvi' in fixtures/recipes"),
        ("observe --reader torch-1.5.1 --options mapped", 2, "the policy has no set of load options named 'mapped'"),
        ("observe --reader torch-1.5.1 --fixture torch-1.5.1/dvi", 2, "did you mean torch-1.5.1/div"),
        ("observe --reader torch-1.5.1 --fixture fixtures/torch-1.5.1", 2, "there is no fixture 'fixtures/torch-1.5.1'"),
        ("observe --reader torch-1.5.1 --fixture div.pt", 2, "there is no fixture 'div.pt'"),
        ("observe --reader torch-1.5.1 --fixture /", 2, "there is no fixture '/'"),
        ("observe --reader torch-1.5.1 --fixture torch-1.2.0/package", 2, "this release cannot write the recipe"),
    ],
)
def test_arguments(
    command: str, status: int, said: str, run: Callable[..., Ended], whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(whole)
    refused(run(*command.split()), status, said)


def test_no_command_shows_the_help_and_is_a_wrong_use(run: Callable[..., Ended]) -> None:
    refused(run(), 2, "Usage:", "Exit status:")


# ---------------------------------------------------------------------------------------------------------------- corpus


def test_producing_into_a_corpus_that_cannot_be_read(run: Callable[..., Ended], root: Path) -> None:
    (root / "fixtures" / "recipes" / "div.py").write_text("def (:")
    refused(run("produce", "torch-1.5.1", "--root", root), 2, "recipes/div.py:1: is not valid Python 3.6")


def test_damaged_evidence_is_a_finding_and_not_a_fault(run: Callable[..., Ended], root: Path) -> None:
    observations = root / "reports" / "observations"
    observations.mkdir(parents=True)
    (observations / "torch-1.5.1.txt").write_bytes(b"\xff")
    (observations / "torch-1.2.0.txt").mkdir()
    (root / "fixtures" / "FROZEN").write_bytes(b"\xff")
    (root / "fixtures" / "torch-1.2.0" / "manifest.jsonl").write_bytes(b"\0")
    ended = run("judge", "--full", "--root", root)
    assert ended.status == 1
    assert ended.err == ""
    for text in ("torch-1.5.1.txt", "torch-1.2.0.txt", "FROZEN: cannot be read", "torch-1.2.0/manifest.jsonl:1: is not JSON"):
        assert text in ended.out


def test_a_fault_of_ours_is_told_as_one(capfd: pytest.CaptureFixture[str], root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("seven")

    monkeypatch.delenv("TORCH_COMPAT_DEBUG", raising=False)
    monkeypatch.setattr("torch_compat.judging.gathering.load_corpus", broken)
    with pytest.raises(SystemExit) as ended:
        main(["judge", "--root", str(root)])
    message = capfd.readouterr()
    assert (ended.value.code, message.out) == (3, "")
    assert "internal error: ZeroDivisionError: seven" in message.err
    assert "Traceback" not in message.err
    monkeypatch.setenv("TORCH_COMPAT_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(["judge", "--root", str(root)])


def test_operators_of_a_release_that_the_calendar_lacks(run: Callable[..., Ended], root: Path) -> None:
    path = root / "fixtures/operators/schemas.txt"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    for at, line in enumerate(lines):
        if line.startswith("# releases "):
            lines[at] = line.replace(" 1.5.1 ", " 1.5.1 1.5.7 ")
    path.write_text("".join(lines), encoding="utf-8")
    refused(run("judge", "--root", root), 2, "torch 1.5.7, which the release calendar does not contain", "releases.toml")
