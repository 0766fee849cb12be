"""Every damaged or malicious archive gets the answer in its manifest, and nothing in it is executed."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import torch_compat
from tools.faults.judge import SMALL
from torch_compat.cli import main
from torch_compat.errors import Corrupt, HarnessError

REPOSITORY = Path(__file__).parents[2]
FOLDER = REPOSITORY / "fixtures" / "corrupt"
MAKER: dict[str, Any] = runpy.run_path(str(FOLDER / "make.py"))
MADE = {item.file: item for item in MAKER["archives"]()}
EXPECTED: list[dict[str, Any]] = [
    json.loads(line) for line in (FOLDER / "expected.jsonl").read_text(encoding="ascii").splitlines()
]
NO_ARCHIVES = {"README.md", "expected.jsonl", "make.py"}
LARGEST = 50_000
READING = ("os.", "subprocess.", "socket.", "ctypes.", "shutil.")
CARRIED_OUT = {"import", "exec", "compile"}
events: list[str] = []
watching: list[bool] = []


def hook(event: str, arguments: tuple[Any, ...]) -> None:
    if watching and (event in CARRIED_OUT or event.startswith(READING)) and event not in {"os.listdir", "os.scandir"}:
        events.append(f"{event} {arguments!r}"[:200])


sys.addaudithook(hook)


@pytest.fixture(scope="module", autouse=True)
def everything_is_imported() -> None:
    """What is imported only when it is needed is no work of an archive."""
    for entry in EXPECTED:
        torch_compat.inspect(FOLDER / entry["file"])
        loaded(FOLDER / entry["file"])


def loaded(path: Path) -> object:
    try:
        return torch_compat.load_state(path)
    except HarnessError as error:
        return error


def test_the_folder_holds_what_the_manifest_lists() -> None:
    assert len(EXPECTED) >= 80
    assert sorted(entry["file"] for entry in EXPECTED) == sorted(MADE)
    assert {path.name for path in FOLDER.iterdir() if path.is_file()} == {*MADE, *NO_ARCHIVES}


@pytest.mark.parametrize("name", MADE)
def test_the_generator_makes_the_same_bytes_again(name: str) -> None:
    assert (FOLDER / name).read_bytes() == MADE[name].data
    assert len(MADE[name].data) <= LARGEST


def test_the_generator_makes_the_same_manifest_again() -> None:
    lines = [MAKER["line"](item) for item in MADE.values()]
    assert (FOLDER / "expected.jsonl").read_text(encoding="ascii") == "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize("entry", EXPECTED, ids=lambda entry: entry["file"])
def test_it_is_answered_as_the_manifest_says(entry: dict[str, Any]) -> None:
    watching.append(True)
    events.clear()
    try:
        row = torch_compat.inspect(FOLDER / entry["file"])
    finally:
        watching.clear()
    assert events == []
    error = row["error"] or {"code": None, "message": ""}
    assert error["code"] == entry["code"], error
    if entry["record"] is not None:
        named = {item["record"] for item in row["damage"]}
        assert entry["record"] in named or repr(entry["record"]) in error["message"]
    if entry["dangerous"] is not None:
        assert entry["dangerous"] in row["globals"]
        assert entry["dangerous"] in {danger["global"] for danger in row["dangers"]}


@pytest.mark.parametrize("entry", EXPECTED, ids=lambda entry: entry["file"])
def test_loading_it_carries_nothing_out(entry: dict[str, Any]) -> None:
    watching.append(True)
    events.clear()
    try:
        loaded(FOLDER / entry["file"])
    finally:
        watching.clear()
    assert events == []


@pytest.mark.parametrize("entry", [entry for entry in EXPECTED if "call" in entry], ids=lambda entry: entry["file"])
def test_calling_it_is_answered_as_the_manifest_says(entry: dict[str, Any]) -> None:
    module = torch_compat.load(FOLDER / entry["file"], limits=SMALL)
    with pytest.raises(HarnessError) as raised:
        module.forward()
    assert raised.value.code == entry["call"]


@pytest.mark.parametrize("name", ["found_bare_pickle.pt", "pickle_and_zip.pkl", "stream_and_zip.pt"])
def test_what_may_be_taken_for_two_things_is_not_loaded(name: str) -> None:
    with pytest.raises(Corrupt) as raised:
        torch_compat.load_state(FOLDER / name)
    assert raised.value.code == "polyglot"


def test_the_command_gives_each_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["inspect", str(FOLDER), "--format", "json"])
    assert ended.value.code == 2
    document = json.loads(capsys.readouterr().out)
    schema = json.loads((REPOSITORY / "harness" / "torch_compat" / "schemas" / "inspect.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(document)
    assert [Path(row["path"]).name for row in document["archives"]] == sorted({*MADE, *NO_ARCHIVES})
    assert {row["error"]["code"] for row in document["archives"] if row["error"]}.isdisjoint({"fault", "crashed"})


def test_the_readme_tells_how_they_are_made() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in text for name in ("make.py", "expected.jsonl"))


def test_what_releases_wrote_names_nothing_dangerous() -> None:
    results = [
        danger
        for path in sorted((REPOSITORY / "fixtures" / "torch-2.13.0").glob("*.pt"))
        for danger in torch_compat.inspect(path)["dangers"]
    ]
    assert results == []
