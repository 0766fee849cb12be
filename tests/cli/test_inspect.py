"""``torch-compat inspect``: one row for each file, whatever its content, and nothing in it is executed."""

from __future__ import annotations

import importlib
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

import torch_compat
from torch_compat.cli import main
from torch_compat.cli.inspect import inspect as inspect_command
from torch_compat.errors import PolicyError, Problem, UsageError
from torch_compat.inspection import inspect as inspect_file
from torch_compat.inspection import look_at

if TYPE_CHECKING:
    from collections.abc import Callable

REPOSITORY = Path(__file__).parents[2]
FIXTURES = REPOSITORY / "fixtures"
DIV = FIXTURES / "torch-2.8.0" / "div.pt"
SAVED = FIXTURES / "torch-2.8.0" / "save_checkpoint.pt"
SCHEMA = json.loads((REPOSITORY / "harness" / "torch_compat" / "schemas" / "inspect.schema.json").read_text(encoding="utf-8"))
MODULE = importlib.import_module("torch_compat.cli._inspecting")
PROCESSES = importlib.import_module("torch_compat.processes")

Run = "Callable[..., tuple[int, str, str]]"


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    """Runs the command; its exit status, standard output and standard error."""
    monkeypatch.delenv("TORCH_COMPAT_DEBUG", raising=False)

    def command(*arguments: object) -> tuple[int, str, str]:
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(["inspect", *map(str, arguments)])
        out, err = capfd.readouterr()
        assert "Traceback" not in out + err
        return int(ended.value.code or 0), out, err

    return command


@pytest.fixture
def rows(run: Callable[..., tuple[int, str, str]]) -> Callable[..., tuple[int, list[dict[str, Any]]]]:
    """The same as JSON that the schema accepts: exit status and rows."""

    def command(*arguments: object) -> tuple[int, list[dict[str, Any]]]:
        status, out, _ = run(*arguments, "--format", "json")
        document = json.loads(out)
        jsonschema.Draft202012Validator(SCHEMA).validate(document)
        return status, document["archives"]

    return command


def spoil(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


# ------------------------------------------------------------------------------------------------------------------- JSON


def test_one_sound_archive(rows: Callable[..., tuple[int, list[dict[str, Any]]]]) -> None:
    status, (row,) = rows(DIV)
    assert status == 0
    assert row["path"] == str(DIV)
    assert row["size"] == DIV.stat().st_size
    assert row["name"] == "TorchScript (zip, file format 4)"
    assert (row["family"], row["container"], row["format_version"], row["bytecode_version"]) == ("torchscript", "zip", 4, None)
    assert row["operators"] == ["aten::div"]
    assert row["minimum_release"] == "1.6.0"
    assert row["maximum_release"] is None
    assert row["readable_by"][0]["from"] == "1.6.0"
    assert row["weights_only"]["2.6.0"]["code"] == "torchscript"
    assert row["weights_only_default"]["2.5.1"] is False
    assert row["weights_only_default"]["2.6.0"] is True
    assert row["error"] is None
    assert row["damage"] == []


def test_storages(rows: Callable[..., tuple[int, list[dict[str, Any]]]]) -> None:
    _, (row,) = rows(SAVED)
    assert (row["byteorder"], row["storage_alignment"]) == ("little", 64)
    assert len(row["storages"]) == 16
    assert all(storage["offset"] == storage["calculated_offset"] for storage in row["storages"])
    assert row["weights_only"]["2.8.0"] is None
    assert "torch._utils._rebuild_tensor_v2" in row["globals"]


def test_rows_come_in_order_also_of_what_cannot_be_read(
    rows: Callable[..., tuple[int, list[dict[str, Any]]]], tmp_path: Path
) -> None:
    pointer = tmp_path / "pointer.pt"
    pointer.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
    damaged = Path(shutil.copy(SAVED, tmp_path / "damaged.pt"))
    offset = inspect_file(SAVED)["storages"][0]["offset"]
    spoil(damaged, offset)
    cut = tmp_path / "cut.pt"
    cut.write_bytes(SAVED.read_bytes()[:900])
    given = [DIV, tmp_path / "nowhere.pt", pointer, damaged, cut, SAVED]
    status, result = rows(*given)
    assert status == 2
    assert [row["path"] for row in result] == [str(path) for path in given]
    assert [row["error"] and row["error"]["code"] for row in result] == [
        None, "usage", "git-lfs-pointer", "crc-mismatch", result[4]["error"]["code"], None,
    ]  # fmt: skip
    assert result[1]["sha256"] is None
    assert result[2]["sha256"] is not None
    assert result[3]["damage"][0]["record"] == "data/0"
    assert result[3]["readable_by"]
    assert result[4]["damage"]
    assert result[4]["damage"][0]["record"] == "data.pkl"
    assert result[4]["error"]["code"] == "cut-off"
    assert result[4]["readable_by"] is None
    assert str(tmp_path) not in result[3]["error"]["message"]


def test_a_folder_stands_for_every_file_in_it(rows: Callable[..., tuple[int, list[dict[str, Any]]]], tmp_path: Path) -> None:
    for name in ("b/z.pt", "b/a/x.bin", "a.pt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SAVED, tmp_path / name)
    status, result = rows(tmp_path)
    assert status == 0
    assert [os.path.relpath(row["path"], tmp_path) for row in result] == ["a.pt", "b/z.pt", "b/a/x.bin"]
    (tmp_path / "b" / "README").write_text("read me")
    status, result = rows(tmp_path / "b", DIV)
    assert status == 0
    assert [row["error"] for row in result] == [None] * 4
    assert next((row["kind"], row["name"]) for row in result) == ("other", "a text file")
    status, result = rows(tmp_path / "b" / "README", tmp_path / "b")  # the same file, named: an error
    assert status == 2
    assert [row["error"] and row["error"]["code"] for row in result] == ["text", "text", None, None]


def test_a_folder_without_files_is_nothing_selected(run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    status, out, err = run(tmp_path, "--format", "json")
    assert status == 4
    assert json.loads(out) == {"schema_version": 1, "archives": []}
    assert err == f"torch-compat: no files to inspect in {tmp_path}\n  name an archive, or a directory that contains archives\n"


def test_many_files_come_in_order_and_one_that_is_damaged_costs_one_row(
    rows: Callable[..., tuple[int, list[dict[str, Any]]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MODULE.os, "sched_getaffinity", lambda _: {0, 1})
    for number in range(150):
        shutil.copy(SAVED if number % 2 else DIV, tmp_path / f"{number:03}.pt")
    (tmp_path / "077.pt").write_bytes(SAVED.read_bytes()[:1000])
    status, result = rows(tmp_path)
    assert status == 2
    assert [Path(row["path"]).name for row in result] == [f"{number:03}.pt" for number in range(150)]
    assert [Path(row["path"]).name for row in result if row["error"]] == ["077.pt"]
    alone = rows(DIV)[1][0]
    assert {**result[0], "path": ""} == {**alone, "path": ""}


def test_a_process_that_dies_costs_one_row(
    rows: Callable[..., tuple[int, list[dict[str, Any]]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MODULE.os, "sched_getaffinity", lambda _: {0, 1})
    real = MODULE.look_at

    def dies(path: str, **asked: bool) -> Any:
        if path.endswith("077.pt"):
            os.kill(os.getpid(), signal.SIGKILL)
        return real(path, **asked)

    monkeypatch.setattr(MODULE, "look_at", dies)
    for number in range(150):
        shutil.copy(SAVED, tmp_path / f"{number:03}.pt")
    status, result = rows(tmp_path)
    assert status == 3
    assert [Path(row["path"]).name for row in result] == [f"{number:03}.pt" for number in range(150)]
    assert [row["error"]["code"] for row in result if row["error"]] == ["crashed"]
    assert result[77]["error"]


def test_what_many_processes_answer_is_what_one_answers(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With names so long that a chunk of them fills the pipe to a process."""
    folder = tmp_path.joinpath(*["f" * 200] * 15)
    folder.mkdir(parents=True)
    for number in range(60):
        shutil.copy(SAVED if number % 2 else DIV, folder / f"{number:03}{'x' * 200}.pt")
    results = []
    for processors in ({0}, {0, 1}, {0, 1, 2}):
        monkeypatch.setattr(MODULE.os, "sched_getaffinity", lambda _, processors=processors: processors)
        for chunk in (1, 8, 100):
            monkeypatch.setattr(PROCESSES, "CHUNK", chunk)
            results.append(run(folder, "--format", "json"))
    assert results == [results[0]] * 9
    assert results[0][0] == 0


def test_what_fails_in_another_process_is_raised_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(path: str, **asked: bool) -> Any:
        raise KeyError(f"unforeseen in {path}")

    monkeypatch.setattr(MODULE.os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(MODULE, "look_at", breaks)
    monkeypatch.setenv("TORCH_COMPAT_DEBUG", "1")
    for number in range(60):
        shutil.copy(DIV, tmp_path / f"{number}.pt")
    with pytest.raises(RuntimeError, match=r"KeyError: 'unforeseen in "):
        main(["inspect", str(tmp_path)])


def test_whoever_has_read_enough_ends_it(tmp_path: Path) -> None:
    for number in range(200):
        shutil.copy(DIV, tmp_path / f"{number}.pt")
    with subprocess.Popen(
        [sys.executable, "-m", "torch_compat", "inspect", str(tmp_path), "--format", "json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=REPOSITORY,
    ) as ended:  # fmt: skip
        assert ended.stdout is not None
        assert ended.stderr is not None
        ended.stdout.read(100)
        ended.stdout.close()
        assert ended.stderr.read() == b""
    assert ended.returncode == 0  # as if everything had been read


def test_rows_say_the_same_under_every_hash_seed(tmp_path: Path) -> None:
    """Where several calls of one operator ask for the same, one of them is named as the reason: always the same one."""
    shutil.copy(FIXTURES / "torch-1.1.0" / "factories.pt", tmp_path / "x.pt")
    messages = {
        subprocess.run(
            [sys.executable, "-m", "torch_compat", "inspect", str(tmp_path / "x.pt"), "--format", "json"],
            capture_output=True, check=True, cwd=REPOSITORY, env={**os.environ, "PYTHONHASHSEED": str(seed)},
        ).stdout
        for seed in range(6)
    }  # fmt: skip
    assert len(messages) == 1


def test_the_text_of_a_row_is_that_of_its_object() -> None:
    for path in [DIV, SAVED, *sorted((FIXTURES / "corrupt").iterdir()), *sorted((FIXTURES / "torch-2.8.0").iterdir())]:
        inspected = look_at(str(path))
        assert inspected.json() == json.dumps(inspected.row())


def test_a_fault_of_ours_costs_one_row(
    rows: Callable[..., tuple[int, list[dict[str, Any]]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = MODULE.look_at

    def breaks(path: str, **asked: bool) -> Any:
        if path == str(DIV):
            raise KeyError("unforeseen")
        return real(path, **asked)

    monkeypatch.setattr(MODULE, "look_at", breaks)
    status, result = rows(DIV, SAVED)
    assert status == 3
    assert result[0]["error"]["code"] == "fault"
    assert "KeyError" in result[0]["error"]["message"]
    assert result[1]["error"] is None


def test_policies_that_cannot_be_read_are_no_fault_of_the_file(
    run: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise PolicyError([Problem("behaviors.toml", 3, "", "is no TOML")])

    monkeypatch.setattr(MODULE, "packaged_rules", broken)
    status, out, err = run(DIV, "--format", "json")
    assert (status, out) == (2, "")
    assert "behaviors.toml:3" in err


def test_a_name_that_is_no_text_is_shown(run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff\x1b[31m.pt")
    shutil.copy(DIV, path)
    status, out, _ = run(path)
    assert status == 0
    assert "\x1b" not in out
    assert "\\x1b[31m" in out
    status, out, _ = run(path, "--format", "json")
    assert json.loads(out)["archives"][0]["path"] == str(path)


# ------------------------------------------------------------------------------------------------------------------- text


def test_one_file_is_one_screen(run: Callable[..., tuple[int, str, str]]) -> None:
    status, out, _ = run(SAVED)
    assert status == 0
    for name in (
        "format        torch.save (zip, file format 3)",
        "written by    torch 2.7 or newer (.format_version record)",
        "storages      16, 88 bytes: 14 float32, 1 int64, 1 float64",
        "16 of 16 offsets can be calculated without reading the file",
        "damage        none",
    ):
        assert name in out
    assert "Contents" not in out


def test_several_files_are_a_table(run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    (tmp_path / "page.pt").write_text("<!DOCTYPE html><html></html>")
    status, out, _ = run(DIV, tmp_path / "page.pt")
    assert status == 2
    heading, first, second = out.splitlines()
    assert heading.split() == ["FORMAT", "READ", "BY", "TORCH", "STATE", "PATH"]
    assert first.startswith("TorchScript (zip, file format 4)")
    assert "1.6.0 and newer" in first
    assert " sound " in first
    assert " html-page " in second


def test_tree_and_code(run: Callable[..., tuple[int, str, str]]) -> None:
    _, out, _ = run(SAVED, "--tree")
    assert "0.weight: tensor float32 [1, 2] (storage 0)" in out
    _, out, _ = run(DIV, SAVED, "--code")
    assert "Source of code/__torch__/div.py" in out
    assert "return (torch.div(a, b)," in out or "torch.div(a, b)" in out
    assert "No TorchScript source" in out


def test_damage_is_named(run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    damaged = Path(shutil.copy(SAVED, tmp_path / "damaged.pt"))
    spoil(damaged, inspect_file(SAVED)["storages"][0]["offset"])
    status, out, _ = run(damaged)
    assert status == 2
    assert "damage        crc-mismatch: record data/0: " in out
    (tmp_path / "cut.pt").write_bytes(SAVED.read_bytes()[:300])
    status, out, _ = run(tmp_path / "cut.pt")
    assert status == 2
    assert "error         " in out
    status, out, err = run(tmp_path / "nowhere.pt")
    assert (status, out) == (2, "")
    assert err == f"torch-compat: {tmp_path}/nowhere.pt: file not found, expected a PyTorch archive\n"


def test_files_that_cannot_be_opened_are_named_on_standard_error(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    status, out, err = run(tmp_path / "a\x1b.pt", SAVED)
    assert (status, out.splitlines()[1].split()[2]) == (2, "unreadable")
    assert err == f"torch-compat: {tmp_path}/a\\x1b.pt: file not found, expected a PyTorch archive\n"
    status, out, err = run(tmp_path / "nowhere.pt", SAVED, "--tree")
    assert (status, out.startswith(f"{SAVED}\n")) == (2, True)
    assert err.count("file not found") == 1
    status, out, err = run(tmp_path / "nowhere.pt", SAVED, "--format", "json")
    assert (status, err, len(json.loads(out)["archives"])) == (2, "", 2)


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("damage,danger", "repeat the option for several conditions: --fail-on damage --fail-on danger"),
        ("damge", "did you mean damage or danger?"),
        ("never", "expected danger, damage, changes, or release:X, such as release:2.6.0"),
    ],
)
def test_a_condition_that_there_is_not(run: Callable[..., tuple[int, str, str]], condition: str, said: str) -> None:
    status, out, err = run(SAVED, "--fail-on", condition)
    assert (status, out) == (2, "")
    assert said in err


@pytest.mark.parametrize(
    "name", ["torch-1.5.1/div.pt", "torch-2.13.0/gelu.pt", "torch-2.13.0/state_dict.pt", "torch-2.13.0/package.pt"]
)
def test_damage_comes_first_and_lost_records_are_no_evidence(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path, name: str
) -> None:
    data = (REPOSITORY / "fixtures" / name).read_bytes()
    path = tmp_path / "cut.pt"
    path.write_bytes(data[: len(data) * 6 // 10])
    status, out, _ = run(path)
    lines = out.splitlines()
    assert status == 2
    assert lines[1].startswith("  damage        ")
    assert any("no-directory: has no end record" in line for line in lines)
    assert "because       zip-directory: no release of torch" in out
    assert ", as far as it could be read" in next(line for line in lines if line.startswith("  format "))
    assert "  written by    unknown" in lines
    for claim in ("neither in torch nor in Python", "code from its author", "weights_only", "  contents "):
        assert claim not in out
    (document,) = json.loads(run(path, "--format", "json")[1])["archives"]
    assert (document["producer"], document["weights_only"], document["needs"]) == (None, {}, [])
    assert [reason["needs"] for reason in document["reasons"]] == ["zip-directory: no release of torch"]


def test_what_was_read_before_an_error_is_not_described_as_the_whole(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    data = (REPOSITORY / "fixtures/torch-1.5.1/whole_module.pt").read_bytes()
    path = tmp_path / "cut.pt"
    path.write_bytes(data[: len(data) * 6 // 10])
    status, out, _ = run(path)
    assert status == 2
    assert out.splitlines()[1].startswith("  error         cut-off: ")
    assert not [line for line in out.splitlines() if line.startswith(("  contents", "  operators", "  globals", "  damage"))]


def test_text_of_an_archive_cannot_act_on_the_terminal(run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("x/data.pkl", b"\x80\x02c\x1b[31mos\n\x07system\n.")
        out.writestr("x/version", "3\n")
    _, text, _ = run(path, "--tree")
    assert not set(text) & set(map(chr, {*range(32), 127} - {10}))
    assert "\\x1b[31mos.\\x07system" in text


def test_long_lists_are_cut_and_counted(run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    pickled = b"\x80\x02" + b"".join(b"ccollections\nname%d\n0" % number for number in range(500)) + b"N."
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("x/data.pkl", pickled)
        out.writestr("x/version", "3\n")
    _, text, _ = run(path)
    assert "and 476 more" in text
    assert max(map(len, text.splitlines())) < 400


def test_help_says_what_a_folder_stands_for(run: Callable[..., tuple[int, str, str]]) -> None:
    status, out, _ = run("--help")
    assert status == 0
    assert "If PATH is a directory, every file below it is inspected" in " ".join(out.split())


def test_no_path_is_wrong_usage(run: Callable[..., tuple[int, str, str]]) -> None:
    status, out, err = run()
    assert (status, out) == (2, "")
    assert "PATH" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["a.pt"],
        ["a.pt", "b c.pt", ""],
        ["a.pt", "--format", "json"],
        ["--format=json", "a.pt", "--tree"],
        ["--code", "--format", "json", "a.pt", "--format", "text", "--tree", "b.pt"],
        [os.fsdecode(b"\xff.pt"), "--code", "--code"],
    ],
)
def test_arguments_that_are_read_without_click_are_read_as_click_reads_them(arguments: list[str]) -> None:
    read = inspect_command.make_context("inspect", list(arguments)).params
    assert MODULE.plain(arguments) == (read["paths"], read["tree"], read["code"], read["format_"])


@pytest.mark.parametrize(
    "arguments",
    [[], ["--tree"], ["a.pt", "--format"], ["a.pt", "--format", "xml"], ["a.pt", "--format="], ["--help"], ["-h"], ["-"], ["--", "a.pt"],
     ["a.pt", "--tre"], ["--tree=1", "a.pt"]],
)  # fmt: skip
def test_all_other_arguments_are_left_to_click(arguments: list[str]) -> None:
    assert MODULE.plain(arguments) is None


# ------------------------------------------------------------------------------------------------------------- the library


def test_the_library_gives_the_same_object(rows: Callable[..., tuple[int, list[dict[str, Any]]]]) -> None:
    _, (row,) = rows(SAVED)
    assert torch_compat.inspect(SAVED) == row
    assert torch_compat.inspect(str(SAVED)) == row


def test_the_library_raises_for_what_is_no_file_and_nothing_else(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="file not found"):
        torch_compat.inspect(tmp_path / "nowhere.pt")
    (tmp_path / "x.pt").write_bytes(b"\0" * 100)
    assert torch_compat.inspect(tmp_path / "x.pt")["error"]["code"] == "only-zeros"


def test_what_the_package_does_not_have_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'inspekt'"):
        torch_compat.inspekt  # noqa: B018


class Run2:
    """Pickles as a call."""

    def __reduce__(self) -> Any:
        return os.system, ("touch executed",)


def test_nothing_is_executed(
    rows: Callable[..., tuple[int, list[dict[str, Any]]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with zipfile.ZipFile("x.pt", "w") as out:
        out.writestr("x/data.pkl", pickle.dumps(Run2(), 2))
        out.writestr("x/version", "3\n")
    status, (row,) = rows("x.pt")
    assert status == 0
    assert not (tmp_path / "executed").exists()
    assert row["globals"] == ["posix.system"]
    assert row["weights_only"]["2.8.0"]["code"] in {"global", "blocked-module"}


HEAVY = "{'click', 'numpy', 'torch', 'rich', 'pydantic', 'jinja2', 'zipfile', 'pickletools', 'xml', 'asyncio'}"


@pytest.mark.parametrize("arguments", [[str(SAVED), "--format", "json"], [str(DIV)]])
def test_what_is_slow_is_not_imported(arguments: list[str]) -> None:
    program = f"""
import sys
import tarfile
sys.argv = ["torch-compat", "inspect", *{arguments!r}]
import torch_compat
assert "torch_compat.inspection" not in sys.modules
from torch_compat.cli import main
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
print(sorted(sys.modules.keys() & {HEAVY}), file=sys.stderr)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    assert ended.stderr.strip() == "[]"


# ---------------------------------------------------------------------------------------------------------------- fail-on

HARMFUL = b"\x80\x02cposix\nsystem\nX\x01\x00\x00\x00x\x85R."


def test_a_file_that_names_harm_fails_only_where_that_is_asked(
    rows: Callable[..., tuple[int, list[dict[str, Any]]]], tmp_path: Path
) -> None:
    (tmp_path / "a.pkl").write_bytes(HARMFUL)
    assert rows(tmp_path)[0] == 0
    status, result = rows(tmp_path, SAVED, "--fail-on", "danger")
    assert status == 1
    assert [row["fails"] for row in result] == [["danger"], []]
    assert rows(SAVED, "--fail-on", "danger")[0] == 0


def test_damage_that_is_asked_for_is_a_condition_and_no_error_of_use(
    rows: Callable[..., tuple[int, list[dict[str, Any]]]], tmp_path: Path
) -> None:
    data = bytearray(SAVED.read_bytes())
    data[data.index(b"data/0") + 200] ^= 1
    (tmp_path / "a.pt").write_bytes(data)
    assert rows(tmp_path)[0] == 2
    status, result = rows(tmp_path, "--fail-on", "damage")
    assert (status, result[0]["fails"]) == (1, ["damage"])
    (tmp_path / "a.pt").write_bytes(data[:1000])  # of which nothing more can be said
    assert rows(tmp_path, "--fail-on", "damage")[0] == 2


def test_a_release_that_does_not_load_a_file_is_a_condition(rows: Callable[..., tuple[int, list[dict[str, Any]]]]) -> None:
    whole = FIXTURES / "torch-1.5.1" / "whole_module.pt"
    status, result = rows(whole, "--fail-on", "release:2.5.1", "--fail-on=release:torch-2.6.0", "--fail-on", "release:2.15")
    assert status == 1
    assert result[0]["fails"] == ["release:2.6.0", "release:2.15.0"]


@pytest.mark.parametrize("given", ["dangers", "release:", "release:9.9.9", "release:x", ""])
def test_a_condition_that_there_is_not_is_wrong_usage(given: str, run: Callable[..., tuple[int, str, str]]) -> None:
    status, out, err = run(SAVED, "--fail-on", given)
    assert (status, out) == (2, "")
    assert "--fail-on" in err


def test_how_many_files_fail_is_told(run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    (tmp_path / "a.pkl").write_bytes(HARMFUL)
    _, _, err = run(tmp_path, SAVED, "--fail-on", "danger")
    assert "1 of 2 files match --fail-on danger" in err


def test_files_of_models_that_torch_did_not_write_are_named(
    rows: Callable[..., tuple[int, list[dict[str, Any]]]], tmp_path: Path
) -> None:
    (tmp_path / "a.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    (tmp_path / "b.gguf").write_bytes(b"GGUF" + bytes(20))
    (tmp_path / "c.json").write_text('{"metadata": {}, "weight_map": {"a": "model-00001-of-00002.safetensors"}}')
    (tmp_path / "d.zip").write_bytes(b"PK\x05\x06" + bytes(18))
    status, result = rows(tmp_path)
    assert status == 0
    assert [row["kind"] for row in result] == ["safetensors", "gguf", "shard-index", "other"]


# --------------------------------------------------------------------------------------------------------- dangers of programs


def test_an_operator_that_reaches_beyond_its_tensors_is_a_danger(
    rows: Callable[..., tuple[int, list[dict[str, Any]]]], tmp_path: Path
) -> None:
    source = "class M(Module):\n  def forward(self: __torch__.M, p: str) -> Tensor:\n    return torch.from_file(p, False, 4)\n"
    with zipfile.ZipFile(tmp_path / "a.pt", "w") as archive:
        archive.writestr("a/data.pkl", b"\x80\x02N.")
        archive.writestr("a/code/__torch__.py", source)
        archive.writestr("a/constants.pkl", b"\x80\x02).")
        archive.writestr("a/version", "3\n")
    (row,) = rows(tmp_path)[1]
    assert row["dangers"] == [
        {
            "global": "aten::from_file",
            "record": "code/__torch__.py",
            "because": "opens or creates a file named by the program, and maps it into memory",
        }
    ]


def test_a_tensor_of_a_program_outside_of_its_storage_is_a_danger(
    rows: Callable[..., tuple[int, list[dict[str, Any]]]], tmp_path: Path
) -> None:
    def saved(length: int) -> None:
        pid = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x02tQ"
        tensor = b"ctorch._utils\n_rebuild_tensor_v2\n(" + pid + b"K\x00K" + bytes([length]) + b"\x85K\x01\x85\x89}tR"
        with zipfile.ZipFile(tmp_path / "a.pt", "w") as archive:
            archive.writestr("a/data.pkl", b"\x80\x02}X\x01\x00\x00\x00w" + tensor + b"s.")
            archive.writestr("a/code/__torch__.py", "")
            archive.writestr("a/constants.pkl", b"\x80\x02).")
            archive.writestr("a/data/0", bytes(8))
            archive.writestr("a/version", "3\n")

    saved(2)
    assert rows(tmp_path)[1][0]["dangers"] == []
    saved(3)
    (danger,) = rows(tmp_path)[1][0]["dangers"]
    assert (danger["global"], danger["record"]) == ("tensor w", "data.pkl")


# ------------------------------------------------------------------------------------------------ archives inside of others


def _zipped(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def test_archives_inside_of_a_zip_are_looked_into(rows: Callable[..., tuple[int, list[dict[str, Any]]]], tmp_path: Path) -> None:
    path = _zipped(tmp_path / "a.zip", {"m/a.pt": SAVED.read_bytes(), "README": b"x", "b.pkl": HARMFUL, "c.bin": b"no archive"})
    status, (row,) = rows(path)
    assert (status, row["error"], row["kind"]) == (0, None, "other")
    assert [contain["path"] for contain in row["contains"]] == [f"{path}/m/a.pt", f"{path}/b.pkl"]
    assert row["contains"][0]["name"] == "torch.save (zip, file format 3)"
    assert [(danger["global"], danger["record"]) for danger in row["dangers"]] == [("posix.system", "b.pkl: pickle")]
    assert rows(path, "--fail-on", "danger")[0] == 1


def test_archives_inside_of_a_tar_are_looked_into(rows: Callable[..., tuple[int, list[dict[str, Any]]]], tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        archive.add(SAVED, "m/a.pt")
        archive.add(__file__, "x.py")
    status, (row,) = rows(tmp_path / "a.tar")
    assert status == 0
    assert [contain["path"] for contain in row["contains"]] == [f"{tmp_path}/a.tar/m/a.pt"]


def test_what_is_damaged_inside_is_damage_of_the_file(
    rows: Callable[..., tuple[int, list[dict[str, Any]]]], tmp_path: Path
) -> None:
    status, (row,) = rows(_zipped(tmp_path / "a.zip", {"a.pt": SAVED.read_bytes()[:1000], "b.pt": SAVED.read_bytes()}))
    assert status == 2
    assert [(item["code"], item["record"]) for item in row["damage"]] == [("cut-off", "a.pt")]


def test_what_is_damaged_beside_an_archive_is_damage_of_the_file_and_a_strange_compression_is_none(
    rows: Callable[..., tuple[int, list[dict[str, Any]]]], tmp_path: Path
) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.pt", SAVED.read_bytes())
        archive.writestr("b.txt", b"unmistakable")
        archive.writestr("c.txt", b"c" * 1000, zipfile.ZIP_BZIP2)
    status, (row,) = rows(path)
    assert (status, row["error"], row["damage"]) == (0, None, [])
    path.write_bytes(path.read_bytes().replace(b"unmistakable", b"Unmistakable"))
    status, (row,) = rows(path)
    assert (status, [(item["code"], item["record"]) for item in row["damage"]]) == (2, [("crc-mismatch", "b.txt")])


def test_a_zip_without_any_is_an_error_where_it_is_named(
    rows: Callable[..., tuple[int, list[dict[str, Any]]]], tmp_path: Path
) -> None:
    path = _zipped(tmp_path / "a.zip", {"a.txt": b"x"})
    assert rows(path)[0] == 2
    assert rows(tmp_path)[0] == 0


def test_looking_inside_has_a_budget_and_says_where_it_ends(
    rows: Callable[..., tuple[int, list[dict[str, Any]]]], tmp_path: Path
) -> None:
    many = {f"{at:03}.pkl": b"\x80\x02N." for at in range(150)}
    (row,) = rows(_zipped(tmp_path / "a.zip", many))[1]
    assert len(row["contains"]) == 100
    assert row["omitted"][0]["what"] == "members"
    bomb = _zipped(tmp_path / "b.zip", {f"{at}.pt": bytes(60_000_000) for at in range(4)})
    (row,) = rows(bomb)[1]
    assert row["omitted"][0]["what"] == "members" or row["error"] is not None
