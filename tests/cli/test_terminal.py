"""Everything from an archive, a tree, an argument or a release reaches a terminal only as text."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest
from rich.table import Table
from rich.text import Text

from tests.conftest import REPOSITORY
from tests.recordings import with_end
from torch_compat.cli import main, top_level
from torch_compat.cli._format import format_option, print_json, say
from torch_compat.cli._listed import COMMANDS
from torch_compat.cli._output import Progress, stderr, stdout
from torch_compat.cli._terminal import Harmless, harmless_output, styled
from torch_compat.errors import NothingSelected
from torch_compat.escapes import escaped, escaped_lines, escaped_output
from torch_compat.workspace import find_policy, find_root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cli.conftest import Ended
    from tests.miniatures.tree import Tree

    Command = Callable[..., Ended]

HOSTILE = "\x1b]0;pwn\x07\x1b[31m\x9b1m\x7f\u202e\u2066\u200b\u2028\r\b"
STYLE = re.compile(r"\x1b\[[0-9;]*m")


def harmless(message: str) -> bool:
    return all(item.isprintable() or item in "\n\t" for item in message)


# ------------------------------------------------------------------------------------------------------------- the streams


@pytest.mark.parametrize(
    "one", [*map(chr, range(32)), *map(chr, range(0x7F, 0xA0)), *"\u200b\u200f\u2028\u202e\u2066\u2069\ufeff\ud800"]
)
def test_every_control_character_is_an_escape(one: str) -> None:
    for function, kept in ((escaped, ""), (escaped_lines, "\n"), (escaped_output, "\n\t")):
        shown = function(f"a{one}b")
        assert shown == f"a{one}b" if one in kept and one else shown.isprintable() and len(shown) > 3
    assert json.loads(f'"{escaped_output(one)}"' if one not in "\n\t" else '""') == ("" if one in "\n\t" else one)


@pytest.mark.parametrize("text", ["", "plain", "käse – 中 😀 ✓≠", "a\nb\tc\n", "x" * 100_000])
def test_all_other_text_is_as_it_was(text: str) -> None:
    assert escaped_output(text) == text
    assert escaped_lines(text.replace("\t", "")) == text.replace("\t", "")


def test_a_document_stays_one() -> None:
    document = {HOSTILE: ["\U000e0001", "\x7f"]}
    assert json.loads(escaped_output(json.dumps(document))) == document
    assert json.loads(escaped_output(json.dumps(document, ensure_ascii=False).replace("\r", "\\r"))) == document


def test_every_way_of_printing(capsys: pytest.CaptureFixture[str]) -> None:
    """What a new command may do without a thought of this."""
    with harmless_output():
        print(HOSTILE)  # noqa: T201 - as somebody may
        print(HOSTILE, file=sys.stderr)  # noqa: T201
        sys.stdout.writelines([HOSTILE, "\n"])
        click.echo(HOSTILE)
        click.echo(HOSTILE, err=True)
        click.secho(HOSTILE, err=True)
        say(HOSTILE)
        say(HOSTILE, err=True)
        print_json({HOSTILE: HOSTILE})
        for console in (stdout(), stderr()):
            console.print(HOSTILE)
            console.print(Text(HOSTILE, style="bold"))
            console.print(f"[link=http://x]{HOSTILE}[/link] :smile:", soft_wrap=True)
            table = Table(HOSTILE)
            table.add_row(f"[red]{HOSTILE}")
            console.print(table)
        with Progress(stderr()) as progress:
            progress.say(HOSTILE)
            progress.task(HOSTILE)(1, 2)
        click.ClickException(HOSTILE).show()
    message = capsys.readouterr()
    assert harmless(message.out), ascii(message.out)
    assert harmless(message.err), ascii(message.err)
    assert "[link=http://x]" in message.out  # no text is taken for markup
    assert ":smile:" in message.out


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_styles_of_ours_survive_and_those_of_others_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    for name, value in (("stdout", terminal), ("stderr", terminal)):
        monkeypatch.setattr(sys, name, value)
    for name in ("NO_COLOR", "CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")
    with harmless_output():
        stdout().print(Text(f"name {HOSTILE}", style="bold"))
        with Progress(stderr()) as progress:
            progress.task(f"reading {HOSTILE}")(1, 2)
            progress.say(f"said {HOSTILE}")
        print("\x1b[1mnot ours")  # noqa: T201 - as somebody may
    message = terminal.getvalue()
    assert "\x1b[1mname " in message
    assert "\x1b[1mnot ours" not in message
    left = re.sub(r"\x1b\[[0-9;]*[mABCDGHJK]|\x1b\[\?25[hl]|\r", "", message)
    assert harmless(left), ascii(left)
    assert "\x1b[31m" not in message


def test_streams_have_no_back_door_and_come_back(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stdout, sys.stderr
    with harmless_output(), harmless_output():
        assert isinstance(sys.stdout, Harmless)
        assert not hasattr(sys.stdout, "buffer")
        assert not isinstance(sys.stdout._stream, Harmless)
        assert sys.stdout.encoding == before[0].encoding
        with pytest.raises(AttributeError):
            sys.stdout.write(b"\x1b")  # type: ignore[arg-type]
        styled(sys.stdout).write("\x1b]0;x\x07\x1b[1mbold\x1b[0m\n")
    assert (sys.stdout, sys.stderr) == before
    assert capsys.readouterr().out == "\\u001b]0;x\\u0007\x1b[1mbold\x1b[0m\n"
    with pytest.raises(SystemExit), harmless_output():
        raise SystemExit
    assert (sys.stdout, sys.stderr) == before


def test_a_stream_that_lacks_a_mark_gets_an_escape() -> None:
    binary = io.BytesIO()
    stream = Harmless(io.TextIOWrapper(binary, encoding="ascii", write_through=True))
    stream.write("≠\n")
    assert binary.getvalue() == b"\\u2260\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_needs_nothing_for_it(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Every command, with a body that prints hostile text by the plainest means: so would the next command."""

    @click.command(context_settings={"ignore_unknown_options": True})
    @click.argument("_", nargs=-1, type=click.UNPROCESSED)
    @format_option
    def hostile(_: tuple[str, ...], format_: str) -> int:
        print(HOSTILE)  # noqa: T201 - as somebody may
        click.echo(HOSTILE, err=True)
        raise RuntimeError(HOSTILE)

    monkeypatch.delenv("TORCH_COMPAT_DEBUG", raising=False)
    monkeypatch.setattr(importlib.import_module(f"torch_compat.cli.{name}"), name, hostile)
    with pytest.raises(SystemExit) as ended:
        main([name, "--", "--x"])
    message = capsys.readouterr()
    assert ended.value.code == 3
    assert harmless(message.out + message.err), ascii(message)


# ------------------------------------------------------------------------------------------------------------ the commands


def archive(path: Path, records: dict[str, str | bytes], folder: str = "m") -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for name, data in records.items():
            file.writestr(f"{folder}/{name}", data)
    return path


def text(of: str) -> bytes:
    data = of.encode("utf-8", "surrogatepass")
    return b"X" + len(data).to_bytes(4, "little") + data


@pytest.fixture
def archives(tmp_path: Path) -> Path:
    """A folder of archives that hold hostile names wherever an archive has a name."""
    folder = tmp_path / "archives"
    folder.mkdir()
    none = b"\x80\x02N."
    called = b"\x80\x02c" + f"os{HOSTILE}".encode().replace(b"\n", b"") + b"\nsystem\x1b[31m\n" + text(HOSTILE) + b"\x85R."
    node = {"target": f"torch.ops.a{HOSTILE}.b", "inputs": [], "outputs": [], "metadata": {HOSTILE: HOSTILE}}
    archive(folder / "record.pt", {"data.pkl": none, f"x{HOSTILE}": b"y", "version": "3\n"})
    archive(folder / "folder.pt", {"data.pkl": none, "version": "3\n"}, folder=f"f{HOSTILE}")
    archive(folder / "global.pt", {"data.pkl": called, "version": "3\n"})
    archive(folder / "key.pt", {"data.pkl": b"\x80\x02}" + text(HOSTILE) * 2 + b"s.", "version": "3\n"})
    archive(folder / "version.pt", {"data.pkl": none, "version": f"3{HOSTILE}\n", "byteorder": HOSTILE})
    archive(folder / f"name{HOSTILE}.pt", {"data.pkl": none, "version": "3\n"})
    (folder / "foreign.pt").write_bytes(HOSTILE.encode() * 20)
    tensors = [{"dims": [HOSTILE], "strides": [HOSTILE], "dataType": HOSTILE, "data": {"key": HOSTILE}}]
    module = {"name": HOSTILE, "parameters": [{"name": HOSTILE, "tensorId": "0"}], "torchscriptArena": {"key": HOSTILE}}
    model = {"protoVersion": HOSTILE, "producerName": HOSTILE, "mainModule": module, "tensors": tensors}
    archive(folder / "model.pt", {"version": "1\n", "model.json": json.dumps(model)})
    source = f"class M(Module):\n  def forward(self: __torch__.M) -> str:\n    return '{HOSTILE}'\n# {HOSTILE}\n"
    result = b"\x80\x02c__torch__\nM\n)\x81}b."
    script: dict[str, str | bytes] = {"constants.pkl": b"\x80\x02).", "version": "3\n", "data.pkl": result}
    archive(folder / "source.pt", {**script, "code/__torch__.py": source})
    for name, body in {
        "value": f"return '{HOSTILE}'".replace("\r", "").replace("\u2028", ""),
        "raise": "ops.prim.RaiseException('\\x1b]0;x\\x07\\x9b \\u202e')",
        "print": "print('\\x1b]0;x\\x07')\n    return ''",
        "operator": f"return torch.x{HOSTILE}(1)",
    }.items():
        code = f"class M(Module):\n  def forward(self: __torch__.M) -> str:\n    {body}\n"
        archive(folder / f"{name}.pt", {**script, "code/__torch__.py": code})
    exported = {
        "schema_version": {"major": 8, "minor": 8}, "torch_version": HOSTILE, "opset_version": {HOSTILE: HOSTILE},
        "graph_module": {"graph": {"nodes": [node], "inputs": [], "outputs": [], "tensor_values": {HOSTILE: {}}}},
    }  # fmt: skip
    records = {
        "archive_format": "pt2",
        "archive_version": f"0{HOSTILE}",
        "models/m.json": json.dumps(exported),
        "byteorder": "little",
    }
    archive(folder / "export.pt2", {**records, ".data/version": "6\n"})
    package: dict[str, str | bytes] = {
        ".data/python_version": HOSTILE,
        ".data/extern_modules": HOSTILE,
        ".data/version": "6\n",
        "m/x.pkl": none,
    }
    archive(folder / "package.pt", package)
    return folder


ARCHIVE_COMMANDS = (
    ("inspect",),
    ("inspect", "--tree"),
    ("inspect", "--code"),
    ("inspect", "--tree", "--code"),
    ("inspect", "--format", "json"),
)


def test_archives(archives: Path, command: Command) -> None:
    for path in sorted(archives.iterdir()):
        for arguments in (*ARCHIVE_COMMANDS, ("run",), ("run", "--explain"), ("run", "--format", "json")):
            ended = command(*arguments, str(path))
            assert harmless(ended.out + ended.err), (arguments, ascii(path.name), ascii(ended.out + ended.err))
            assert "Traceback" not in ended.err
            if "json" in arguments and (arguments[0] == "inspect" or ended.status != 2):  # `run` refuses a file without a program
                json.loads(ended.out)
    for arguments in (("inspect",), ("inspect", "--format", "json")):
        ended = command(*arguments, str(archives))
        assert harmless(ended.out + ended.err)


ARGUMENTS = [
    ["inspect", HOSTILE], ["inspect", f"--{HOSTILE}"], ["run", HOSTILE], ["run", "x.pt", "--reader", HOSTILE], [HOSTILE],
    ["run", "x.pt", "--reader", f"reference@{HOSTILE}"], ["run", "x.pt", "--method", HOSTILE], ["run", "x.pt", "--args", HOSTILE],
    ["judge", "--root", HOSTILE], ["judge", "--as-of", HOSTILE], ["judge", "--profile", HOSTILE], ["judge", "--findings", f"{HOSTILE}/x"],
    ["replay", "--reader", HOSTILE], ["observe", "--reader", HOSTILE], ["observe", "--reader", "torch-1.6.0", "--fixture", HOSTILE],
    ["observe", "--reader", "torch-1.6.0", "--options", HOSTILE], ["observe", "--reader", "torch-1.6.0", "--sample", HOSTILE],
    ["produce", HOSTILE], ["produce", "torch-1.6.0", "--recipe", HOSTILE], ["explain", HOSTILE], ["readers", "build", HOSTILE],
    ["readers", "remove", HOSTILE], ["operators", "history", HOSTILE], ["operators", "diff", HOSTILE, HOSTILE], ["plan", HOSTILE, HOSTILE],
    ["plan", "removal", HOSTILE], ["plan", "removal", "x", "--write", HOSTILE], ["extension", "check", HOSTILE],
    ["extension", "record", "--name", HOSTILE], ["extension", "kernels", HOSTILE], ["deprecations", HOSTILE],
    ["new", "recipe", HOSTILE, "--family", "torchscript"], ["new", "rule", HOSTILE], ["new", "waiver", HOSTILE, "--finding", HOSTILE],
    ["new", "deprecation", HOSTILE, "--kind", "removal"], ["admit", HOSTILE], ["accept", "--root", HOSTILE],
    ["report", HOSTILE], ["report", "1.6.0", "--since", HOSTILE], ["report", "1.6.0", "--output", HOSTILE], ["notes", HOSTILE],
    ["signoff", HOSTILE, "--by", "x"], ["signoff", "1.6.0", "--by", HOSTILE], ["signoff", HOSTILE, "--verify"],
    ["signoff", "1.6.0", "--by", "x", "--accept", HOSTILE, "--because", "y"], ["judge", "--output", f"junit={HOSTILE}/x"],
    ["judge", "--baseline", HOSTILE], ["prove", HOSTILE], ["prove", "--all", "--reader", HOSTILE],
    ["candidate", HOSTILE], ["candidate", f"python:{HOSTILE}"], ["candidate", f"wheel:{HOSTILE}"], ["candidate", f"nightly:{HOSTILE}"],
    ["candidate", "nightly:2026-11-20", "--index-url", HOSTILE], ["candidate", "nightly:2026-11-20", "--index-url", f"file:///{HOSTILE}"],
    ["candidate", "python:x", "--root", HOSTILE], ["candidate", "python:x", "--earlier", HOSTILE], ["replay", "--require", HOSTILE],
]  # fmt: skip


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=lambda arguments: ascii(" ".join(arguments)))
def test_arguments(arguments: list[str], command: Command, tree: Tree) -> None:
    (tree.root / "x.pt").write_bytes(b"")
    ended = command(*arguments)
    assert harmless(ended.out + ended.err), ascii(ended.out + ended.err)
    assert ended.status != 0 or "--findings" in arguments  # a file may be named so
    assert "Traceback" not in ended.err


def test_every_command_is_asked() -> None:
    assert {arguments[0] for arguments in ARGUMENTS} >= set(COMMANDS) == set(top_level.commands or COMMANDS)


RECORDED: list[tuple[str, Callable[[str], str]]] = [
    (
        "fixtures/recipes/add.py",
        lambda old: old.replace("numbers", "numbers \x1b[31m\u202e").replace('"aten::add"', '"aten::\\x1b[31m"'),
    ),
    ("fixtures/probes/one.py", lambda old: old.replace("one is one", f"one is {HOSTILE}".replace("\r", ""))),
    ("fixtures/torch-1.6.0/manifest.jsonl", lambda old: old.replace('"aten::add"', json.dumps(f"aten::{HOSTILE}"))),
    ("fixtures/torch-1.6.0/manifest.jsonl", lambda old: old.replace('"container":"zip"', f'"container":{json.dumps(HOSTILE)}')),
    ("fixtures/torch-1.5.1/manifest.jsonl", lambda old: old.replace("there is no such thing", json.dumps(HOSTILE)[1:-1])),
    ("fixtures/FROZEN", lambda old: old + "0" * 64 + "  x\x1b[31m\n"),
    ("policies/torch/promises.toml", lambda old: old.replace("It holds.", "It \\u001b[31m\\u202eholds.")),
    ("policies/torch/promises.toml", lambda old: old.replace("kernels round", "\\u001b]0;x\\u0007\\u009b round")),
    ("policies/torch/promises.toml", lambda old: old.replace('id = "weights-only"', 'id = "\\u001b[31m"')),
    ("policies/torch/promises.toml", lambda old: old + '\n["\\u001b[31m"]\nx = 1\n'),
    ("policies/torch/formats.toml", lambda old: old.replace("the first one", "the \\u001b[31m\\u202e one")),
    ("reports/observations/torch-1.6.0.txt", lambda old: old.replace("\tdefault", "\t" + HOSTILE.replace("\r", "") + "default")),
    ("reports/observations/torch-1.6.0.txt", lambda old: old.replace("\tadd\t", f"\t{json.dumps(HOSTILE)}\t")),
    ("reports/observations/torch-1.5.1.txt", lambda old: old.replace("one is one", json.dumps(HOSTILE)[1:-1])),
]


@pytest.mark.parametrize("number", range(len(RECORDED)))
def test_trees(number: int, tree: Tree, command: Command) -> None:
    place, edit = RECORDED[number]
    path = tree.root / place
    if not path.exists():
        path = min(path.parent.glob(f"*{path.suffix}"))
    old = path.read_text(encoding="utf-8")
    new = edit(old)
    assert new != old
    if path.suffix == ".jsonl":
        import hashlib  # noqa: PLC0415

        *lines, end = new.splitlines(keepends=True)
        footer = json.loads(end) | {"sha256": hashlib.sha256("".join(lines).encode()).hexdigest()}
        new = "".join(lines) + json.dumps(footer) + "\n"
    elif path.parent.name == "observations":
        new = with_end(new.split("\n")[:-2])
    path.write_text(new, encoding="utf-8")
    shutil.rmtree(tree.root / "reports" / "latest", ignore_errors=True)
    for arguments in (
        ("judge",), ("judge", "--full"), ("judge", "--full", "--findings", "findings.md"), ("replay", "--recorded", "--full"),
        ("replay", "--reader", "torch-1.6.0"), ("observe", "--reader", "torch-1.6.0", "--again", "--show"), ("produce", "torch-1.5.1"),
        ("observe", "--reader", "torch-1.6.0", "--recorded", "--show"), ("explain", "newer-loads"), ("readers", "list"),
    ):  # fmt: skip
        ended = command(*arguments)
        assert harmless(ended.out + ended.err), (arguments, ascii(ended.out + ended.err))
        assert "Traceback" not in ended.err
    findings = tree.root / "findings.md"
    assert not findings.exists() or harmless(findings.read_text(encoding="utf-8"))


def test_what_a_release_says(tree: Tree, command: Command) -> None:
    """Errors, warnings and prints of a release while it reads: recorded, compared and shown."""
    from tests.miniatures import miniature  # noqa: PLC0415

    message = "\\x1b]0;x\\x07\\x1b[31m\\x9b1m\\u202e\\r"
    miniature(tree.cache, "1.6.0", at_call=f"import sys; sys.stderr.write('{message}'); raise RuntimeError('{message}')")
    for arguments in (
        ("observe", "--reader", "torch-1.6.0", "--again", "--show"),
        ("replay", "--reader", "torch-1.6.0", "--full"),
    ):
        ended = command(*arguments)
        assert ended.status == 1
        assert harmless(ended.out + ended.err), ascii(ended.out + ended.err)


@pytest.mark.parametrize(
    ("given", "hint"), [("insepct", "Did you mean inspect?"), ("zzz", "torch-compat --help lists all commands.")]
)
def test_a_command_that_there_is_not_is_answered_with_the_nearest(
    given: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([given, "x"])
    assert ended.value.code == 2
    assert hint in capsys.readouterr().err


def helps() -> Iterator[tuple[str, ...]]:
    """Every command and every command of a group."""
    yield ()
    for name in COMMANDS:
        yield (name,)
        command = getattr(importlib.import_module(f"torch_compat.cli.{name}"), name)
        for item in getattr(command, "commands", ()):
            yield name, item


@pytest.mark.parametrize("command", [*helps()], ids=" ".join)
def test_help_cuts_no_sentence_and_no_name(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = {}
    for columns in (60, 80):
        monkeypatch.setenv("COLUMNS", str(columns))
        with pytest.raises(SystemExit):
            main([*command, "--help"])
        messages[columns] = capsys.readouterr().out
        over = [line for line in messages[columns].splitlines() if len(line) > columns]
        assert all(len(line.split()) <= 2 for line in over), over  # an option with a name that is longer
        assert "..." not in messages[columns].partition("\n\n")[2]  # below the line of usage
    assert sorted(messages[60].split()) == sorted(messages[80].split())


NARROW = [
    ("readers", "list"), ("operators", "history", "aten::div"), ("explain", "aten::div"), ("deprecations", "--full"),
    ("inspect", "fixtures/torch-1.6.0"), ("inspect", "fixtures/torch-1.6.0/div.pt"), ("plan", "rename", "aten::add"),
]  # fmt: skip


@pytest.mark.parametrize("command", NARROW, ids=" ".join)
def test_a_narrow_terminal_gets_every_number(command: tuple[str, ...]) -> None:
    """What 300 columns show, 60 show as well, in whole words: asked with a real terminal."""
    pty = pytest.importorskip("pty", reason="this system has no pseudo-terminals")
    words = {}
    for columns in (300, 60):
        ours, theirs = pty.openpty()
        environment = {**os.environ, "COLUMNS": str(columns), "TERM": "dumb", "NO_COLOR": "1"}
        with subprocess.Popen(
            [sys.executable, "-m", "torch_compat", *command],
            stdout=theirs,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd=REPOSITORY,
        ) as process:
            os.close(theirs)
            shown = b""
            with contextlib.suppress(OSError):  # the end of a pseudo-terminal
                while part := os.read(ours, 1 << 16):
                    shown += part
            os.close(ours)
        assert process.returncode == 0
        words[columns] = set(shown.decode().replace(";", " ").split())
    assert words[300] <= words[60]


@pytest.mark.parametrize("command", [["operators", "diff", "1.4.0", "1.5.0"], ["deprecations", "--full"], ["report", "2.13.0"]])
def test_a_closed_pipe_does_not_change_the_exit_status(command: list[str]) -> None:
    whole = subprocess.run([sys.executable, "-m", "torch_compat", *command], capture_output=True, cwd=REPOSITORY, check=False)
    with subprocess.Popen(
        [sys.executable, "-m", "torch_compat", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=REPOSITORY
    ) as ended:
        assert ended.stdout is not None
        assert ended.stderr is not None
        ended.stdout.close()
        assert b"Error" not in ended.stderr.read()
    assert (ended.returncode, whole.returncode) == (0, 0)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_no_fault_of_ours() -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "torch_compat", "deprecations"],
            stdout=full,
            stderr=subprocess.PIPE,
            cwd=REPOSITORY,
            check=False,
        )
    assert ended.returncode == 2
    assert b"the output cannot be written: No space left on device" in ended.stderr
    assert b"internal error" not in ended.stderr


def test_no_color_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, styles in (("1", False), ("", True)):
        monkeypatch.setenv("NO_COLOR", value)
        monkeypatch.setenv("FORCE_COLOR", "1")
        stream = io.StringIO()
        monkeypatch.setattr(sys, "stdout", stream)
        stdout().print(Text("bold", style="bold"))
        assert ("\x1b" in stream.getvalue()) is styles


def test_a_folder_that_happens_to_be_called_fixtures_is_no_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fixtures/mine").mkdir(parents=True)
    (tmp_path / "policies").mkdir()
    monkeypatch.chdir(tmp_path / "fixtures/mine")
    with pytest.raises(NothingSelected, match="contains policies/torch/"):
        find_root(None)
    assert find_policy(None).rules
    (tmp_path / "policies/torch").mkdir()
    assert find_root(None).path == tmp_path


@pytest.mark.parametrize(("command", "name"), [("report", "judging"), ("notes", "writing the notes"), ("judge", "judging")])
def test_what_takes_seconds_counts_its_steps_on_a_terminal(command: str, name: str, small_tree: Path) -> None:
    import pty  # noqa: PLC0415 - not on Windows

    release = [] if command == "judge" else ["2.13.0"]
    ours, theirs = pty.openpty()
    run = [sys.executable, "-m", "torch_compat", command, *release, "--root", str(small_tree)]
    environment = {key: value for key, value in os.environ.items() if key not in {"CI", "NO_COLOR"}} | {
        "TERM": "xterm",
        "COLUMNS": "80",
    }
    with subprocess.Popen(run, stdout=subprocess.DEVNULL, stderr=theirs, env=environment) as ended:
        os.close(theirs)
        message = b""
        with contextlib.suppress(OSError):  # the end of a terminal that nobody holds open any more
            while part := os.read(ours, 65536):
                message += part
    os.close(ours)
    assert ended.returncode == 0
    assert re.search(name.encode() + rb".*?\d+/\d+", message), message


def test_nothing_is_counted_where_there_is_no_terminal(small_tree: Path) -> None:
    run = [sys.executable, "-m", "torch_compat", "report", "2.13.0", "--root", str(small_tree)]
    ended = subprocess.run(run, capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.parametrize(("given", "hint"), [("aten::dvi", "aten::div"), ("floor-divde", "floor-divide")])
def test_a_mistyped_id_is_answered_with_the_nearest(given: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["explain", given, "--root", str(REPOSITORY)])
    assert ended.value.code == 2
    assert hint in capsys.readouterr().err
