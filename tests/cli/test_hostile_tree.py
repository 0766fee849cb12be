"""A tree from a stranger: no name and no link leads out of it, and malformed data is reported with file, line and entry."""

from __future__ import annotations

import copy
import json
import os
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.recordings import edit_lines, folder_of, lines_of
from torch_compat.corpus.corpus import FROZEN, load_corpus, read_frozen, write_frozen
from torch_compat.corpus.goldens import GOLDENS, value_id
from torch_compat.corpus.json_lines import digest, dump, read_lines, write_lines
from torch_compat.corpus.manifest import VALUES, Fixture, read_manifest
from torch_compat.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Ended
    from tests.miniatures.tree import Tree

    Command = Callable[..., Ended]

RELEASE = "torch-1.6.0"
FIXTURE = f"{RELEASE}/add"
MANIFEST = f"fixtures/{RELEASE}/manifest.jsonl"
ESCAPE = "\x1b]0;pwn\x07\x9b31m\u202e"
COMMANDS = (
    ("judge",),
    ("judge", "--full"),
    ("judge", "--format", "json"),
    ("replay",),
    ("replay", "--recorded"),
    ("replay", "--reader", "reference"),
    ("observe", "--reader", RELEASE, "--again"),
    ("observe", "--reader", RELEASE, "--recorded", "--show"),
    ("observe", "--reader", RELEASE, "--fixture", FIXTURE, "--show"),
    ("produce", RELEASE),
)


def harmless(ended: Ended) -> None:
    """A command that told the user something, and nothing to the terminal."""
    message = ended.out + ended.err
    assert all(item.isprintable() or item in "\n\t" for item in message), ascii(message)
    assert "Traceback" not in message
    assert "torch-compat: internal error" not in message
    assert ended.status != 3


def change(tree: Tree, edit: Callable[[dict[str, Any]], Any]) -> None:
    """Change the entry of the fixture in its manifest, with a footer that fits, and pin what comes out, as an attacker would."""
    path = tree.root / MANIFEST
    header, *lines, _ = (json.loads(line) for line in path.read_text().splitlines())
    told: dict[str, Any] = {}
    for goldens in (tree.root / "fixtures").glob(f"*/{GOLDENS}"):
        told |= {line["id"]: line["value"] for _, line in read_lines(goldens, "goldens")[1]}
    entry = next(line for line in lines if line.get("recipe") == "add")
    entry |= {name: copy.deepcopy(told.get(entry[name], entry[name])) for name in VALUES}
    edit(entry)
    for name in VALUES:
        if not isinstance(entry[name], str):
            told[value_id(entry[name])] = entry[name]
            entry[name] = value_id(entry[name])
    write_lines(path, header, lines)
    values = [{"kind": "value", "id": name, "value": told[name]} for name in sorted(told)]
    write_lines(path.with_name(GOLDENS), {"kind": "goldens"}, values)
    try:
        entry = next(item for item in read_manifest(path).entries if item.recipe not in {"state", "later"})
    except (CorpusError, StopIteration):
        return
    pins = read_frozen(tree.root / "fixtures" / FROZEN)
    write_frozen(
        tree.root / "fixtures" / FROZEN, {name: pin for name, pin in pins.items() if name != FIXTURE} | {entry.id: entry.pin}
    )


@pytest.fixture
def secret(tree: Tree) -> Path:
    """An archive outside the tree, sound and of the very bytes that the manifest states."""
    path = tree.root.parent / "secret.pt"
    shutil.copyfile(tree.root / "fixtures" / RELEASE / "add.pt", path)
    return path


NAMES = [
    "../../../secret.pt", "{secret}", "../torch-1.6.0/add.pt", "./add.pt", "a/../add.pt", "..\\add.pt", "manifest.jsonl", "../FROZEN",
    "/dev/zero", "/proc/self/environ", "", ".", "..", "a\0b", f"a{ESCAPE}.pt", "\ud800.pt", "\u200badd.pt", "~/x.pt", "x" * 5000,
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name[:30]))
def test_a_manifest_names_files_beside_itself_alone(name: str, tree: Tree, secret: Path, command: Command) -> None:
    change(tree, lambda entry: entry.update(file=name.format(secret=secret) if "{" in name else name))
    corpus = load_corpus(tree.root / "fixtures")
    (damage,) = (item for item in corpus.damage if item.kind == "unreadable-manifest")
    assert damage.subject == f"{RELEASE}/manifest.jsonl"
    assert f"{RELEASE}/manifest.jsonl:3: " in damage.detail
    if name != "\ud800.pt":
        assert "add: file is " in damage.detail
        assert "expected the file name of an archive in the manifest's directory, such as add.pt" in damage.detail
    assert FIXTURE not in corpus.fixtures  # so that no reader is ever given it
    ended = command("judge")
    harmless(ended)
    assert ended.status == 1


@pytest.mark.parametrize("name", ["../../../etc", "a/b", "", ".", "a\nb", f"x{ESCAPE}", "\ud800", "x" * 5000], ids=ascii)
def test_a_manifest_names_recipes_by_plain_names(name: str, tree: Tree, command: Command) -> None:
    change(tree, lambda entry: entry.update(recipe=name))
    (damage,) = (item for item in load_corpus(tree.root / "fixtures").damage if item.kind == "unreadable-manifest")
    assert "manifest.jsonl:3: recipe is " in damage.detail or "contains an unpaired surrogate in recipe" in damage.detail
    for arguments in COMMANDS:
        harmless(command(*arguments))


def test_a_corpus_gives_no_path_outside_it(tree: Tree, secret: Path) -> None:
    """Also of a fixture that no manifest was read for."""
    corpus = load_corpus(tree.root / "fixtures")
    for name in ("../../../secret.pt", str(secret), "/dev/zero"):
        with pytest.raises(CorpusError, match=r"manifest.jsonl, add: refers to the file"):
            corpus.path(replace(corpus.fixtures[FIXTURE], file=name))


PLACES = [
    "fixtures", "fixtures/FROZEN", "fixtures/recipes", "fixtures/recipes/add.py", "fixtures/probes", "fixtures/probes/one.py",
    f"fixtures/{RELEASE}", MANIFEST, f"fixtures/{RELEASE}/add.pt", "policies", "policies/torch", "policies/torch/promises.toml",
    "reports", "reports/observations", f"reports/observations/{RELEASE}.txt",
]  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_no_link_leads_out_of_the_tree(place: str, tree: Tree, command: Command) -> None:
    """Every place where data of the tree is looked for, as a link to the same thing outside: green before, damage now."""
    path, outside = tree.root / place, tree.root.parent / "outside"
    if not path.exists():
        path = next(iter(sorted(path.parent.glob(f"*{path.suffix}"))))
    path.rename(outside)
    path.symlink_to(outside)
    harmless(command("observe", "--reader", RELEASE, "--root", str(tree.root)))
    ended = command("judge", "--full", "--root", str(tree.root))
    harmless(ended)
    assert ended.status in {1, 2}
    assert "is a link that points outside the tree" in ended.out + ended.err


@pytest.mark.parametrize(
    "place", ["fixtures/operators", "policies/torch/waivers", "policies/torch/deprecations", "reports/latest"]
)
def test_no_folder_that_may_be_missing_is_a_link_out_of_the_tree(place: str, tree: Tree, command: Command) -> None:
    outside = tree.root.parent / "outside"
    outside.mkdir()
    for name in ("schemas.txt", "operator_versions.txt", "x.toml", "report.json"):
        (outside / name).write_text("kept")
    path = tree.root / place
    shutil.rmtree(path, ignore_errors=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(outside)
    ended = command("replay", "--recorded")
    harmless(ended)
    assert ended.status == 2
    assert "is a link that points outside the tree" in ended.err
    assert (outside / "report.json").read_text() == "kept"


def test_nothing_is_produced_through_a_link(tree: Tree, command: Command) -> None:
    outside = tree.root.parent / "victim"
    (tree.root / "fixtures" / "recipes" / "more.py").write_text(
        (tree.root / "fixtures" / "recipes" / "later.py").read_text().replace("later", "more")
    )
    (tree.root / "fixtures" / RELEASE / "more.pt").symlink_to(outside)  # dangling: nothing is there to be seen
    ended = command("produce", RELEASE)
    harmless(ended)
    assert ended.status == 2
    assert not outside.exists()


def test_what_is_no_file_is_not_waited_for(tree: Tree, command: Command) -> None:
    for place in (
        MANIFEST,
        f"fixtures/{RELEASE}/add.pt",
        "fixtures/recipes/add.py",
        "fixtures/FROZEN",
        "policies/torch/promises.toml",
    ):
        path = tree.root / place
        kept = path.read_bytes()
        for make in (os.mkfifo, lambda path: path.mkdir(), lambda path: path.symlink_to(path)):
            path.unlink()
            make(path)
            ended = command("judge")
            harmless(ended)
            assert ended.status in {1, 2}
            path.rmdir() if path.is_dir() else path.unlink()
            path.write_bytes(kept)


@pytest.mark.parametrize("place", [MANIFEST, "fixtures/recipes/add.py", "fixtures/FROZEN", "policies/torch/promises.toml"])
def test_a_file_of_a_terabyte_is_not_read(place: str, tree: Tree, command: Command) -> None:
    os.truncate(tree.root / place, 1 << 40)
    ended = command("judge", "--full")
    harmless(ended)
    assert "has 1,099,511,627,776 bytes, expected at most" in ended.out + ended.err


def tensor(**body: Any) -> dict[str, Any]:
    return {"tensor": {"dtype": "float32", "shape": [2], "strides": [1], "bytes": "AAAAAAAAAAA="} | body}


def deep(times: int) -> Any:
    value: Any = 1
    for _ in range(times):
        value = [value]
    return value


GOLDEN: Any = {"calls": [{"method": "forward", "first": {"value": 1, "inputs": []}}], "state": None}
MALFORMED: dict[str, tuple[dict[str, Any], str]] = {
    "calls of a text": ({"calls": ["x"]}, "calls[0] is str 'x', expected an object"),
    "calls without args": ({"calls": [{"method": "forward"}]}, "calls[0] is dict, expected an object"),
    "calls of a number": ({"calls": [{"method": 5, "args": []}]}, "calls[0].method is int 5, expected the name of a method"),
    "calls of a path": ({"calls": [{"method": "a.b", "args": []}]}, "expected the name of a method"),
    "args of a text": ({"calls": [{"method": "f", "args": "x"}]}, "calls[0].args is str 'x', expected a list"),
    "a lone surrogate": ({"calls": [{"method": "f", "args": ["\ud800"]}]}, "lone surrogate \\ud800, expected whole characters"),
    "an integer of 70 bits": ({"calls": [{"method": "f", "args": [1 << 69]}]}, "is an integer of 70 bits, expected at most 64"),
    "a value of two kinds": (
        {"calls": [{"method": "f", "args": [{"a": 1, "b": 2}]}]},
        "expected a value: an object with one key",
    ),
    "a value of no kind": ({"calls": [{"method": "f", "args": [{"zzz": 1}]}]}, "has unknown key 'zzz'"),
    "golden of deep lists": ({"golden": {"value": deep(150)}}, "is nested deeper than 100"),
    "golden of a number": ({"golden": {"calls": [5], "state": 1}}, "golden.calls[0] is int 5, expected an object"),
    "golden without a turn": ({"golden": {"calls": [{"method": "f"}], "state": 1}}, "golden.calls[0] lacks first"),
    "golden with a key": ({"golden": GOLDEN | {"x\x1b": 1}}, "golden has unknown key 'x\\x1b'"),
    "golden of an error": ({"golden": {"error": {"type": 5, "message": ""}}}, "golden.error.type is int 5, expected a string"),
    "a number of a text": ({"golden": {"value": {"float": "x"}}}, "golden.value.float is str 'x', expected a number"),
    "complex of one number": ({"golden": {"value": {"complex": [1]}}}, "golden.value.complex is list, expected two numbers"),
    "a dict of a text": ({"golden": {"value": {"dict": ["ab"]}}}, "golden.value.dict[0] is str 'ab', expected a pair"),
    "a negative size": (
        {"golden": {"value": tensor(shape=[-2])}},
        "tensor.shape[0] is -2, expected a non-negative 63-bit integer",
    ),
    "a negative stride": (
        {"golden": {"value": tensor(strides=[-1])}},
        "tensor.strides[0] is -1, expected a non-negative 63-bit integer",
    ),
    "a negative offset": (
        {"golden": {"value": tensor(offset=-1)}},
        "tensor.offset is -1, expected a non-negative 63-bit integer",
    ),
    "sizes of true": ({"golden": {"value": tensor(shape=[True])}}, "tensor.shape[0] is bool True, expected an integer"),
    "sizes of a fraction": ({"golden": {"value": tensor(shape=[2.0])}}, "tensor.shape[0] is float 2.0, expected an integer"),
    "a size beyond 64 bits": (
        {"golden": {"value": tensor(shape=[1 << 64])}},
        "tensor.shape[0] is 18446744073709551616, expected",
    ),
    "huge strides": ({"golden": {"value": tensor(strides=[1 << 40])}}, "extends to element 1099511627776 of its storage"),
    "a huge shape": ({"golden": {"value": tensor(shape=[1 << 62, 4], strides=[0, 0])}}, "has 8 bytes, expected"),
    "strides that lack one": ({"golden": {"value": tensor(shape=[1, 2])}}, "has 1 stride for 2 dimensions"),
    "bytes that lack some": ({"golden": {"value": tensor(shape=[3])}}, "has 8 bytes, expected 12 for float32 of shape [3]"),
    "bytes that are none": ({"golden": {"value": tensor(bytes="!!")}}, "tensor.bytes is not base64"),
    "bytes of a list": ({"golden": {"value": tensor(bytes=[1])}}, "tensor.bytes is list, expected a string"),
    "an odd dtype": ({"golden": {"value": tensor(dtype="a\x1b")}}, "tensor.dtype is str 'a\\x1b', expected the name of a dtype"),
    "a tensor with a key": ({"golden": {"value": tensor(x=1)}}, "tensor has unknown key 'x'"),
    "a tensor without shape": ({"golden": {"value": {"tensor": {"dtype": "int8"}}}}, "tensor lacks bytes, shape, strides"),
    "a readback": ({"readback": {"a": 1}}, "readback has unknown key 'a'"),
    "a negative length": ({"size": -1}, "add: size is -1, expected 0 or more bytes"),
    "a length of true": ({"size": True}, "add: size is True, expected 0 or more bytes"),
    "a family": ({"family": "os.system"}, "add: family is 'os.system', expected one of torch-save"),
    "versions of a text": ({"versions": {"file-format": "x"}}, "versions.'file-format' is 'x', expected a number"),
    "operators of numbers": ({"operators": [1]}, "operators contains 1, expected strings"),
}


@pytest.mark.parametrize("case", MALFORMED)
@pytest.mark.sampled(2)
def test_a_malformed_entry_is_refused_when_it_is_read(case: str, tree: Tree, command: Command) -> None:
    given, message = MALFORMED[case]
    change(tree, lambda entry: entry.update(given))
    (damage,) = (item for item in load_corpus(tree.root / "fixtures").damage if item.kind == "unreadable-manifest")
    assert f"{RELEASE}/manifest.jsonl:3: " in damage.detail
    assert "add" in damage.detail
    assert message in damage.detail
    for arguments in (("judge",), ("observe", "--reader", RELEASE, "--again"), ("replay", "--reader", "reference")):
        ended = command(*arguments)
        harmless(ended)
        assert ended.status in {1, 2} or arguments[0] != "judge"  # others go on with what is whole


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999", "1" * 5000])
def test_numbers_that_are_none_are_refused(number: str, tree: Tree, command: Command) -> None:
    path = tree.root / MANIFEST
    text = path.read_text()
    path.write_text(text.replace('"size":', f'"size":{number},"odd":', 1))
    ended = command("judge", "--full")
    harmless(ended)
    assert "manifest.jsonl:3: is not JSON: " in ended.out


def test_what_releases_wrote_is_of_the_form() -> None:
    """Lone surrogates and integers of 71 bits in goldens included, which pickles hold."""
    entry = Fixture(
        "1.5.1", "odd", "a" * 64, "odd.pt", "b" * 64, 1, "c" * 64, "w", "2026-11-20", "torch-save", "zip", {}, [], [],
        {"value": {"dict": [["lone \ud800", 1 << 70], [{"float": "nan"}, tensor(offset=0, storage=1, requires_grad=True)]]}}, "same",
    )  # fmt: skip
    from torch_compat.values.form import check_calls, check_result  # noqa: PLC0415

    check_result(entry.golden, "golden")
    check_calls([{"method": "forward", "args": [tensor(), {"tuple": [None, True, {"complex": [0, "inf"]}]}]}])


def test_a_recording_that_names_a_file_elsewhere_is_refused(tree: Tree, command: Command) -> None:
    for kind, at in (("observations", 1), ("reader", 1), ("writers", 2), ("read", 2), ("wrote", 1)):
        path = folder_of(tree.root) / f"{RELEASE}.txt"
        kept = path.read_text()

        def name(lines: list[str], kind: str = kind, at: int = at) -> None:
            index = next(index for index, line in enumerate(lines) if line.startswith(kind))
            fields = lines[index].split("\t")
            fields[at] = "../../x"
            lines[index] = "\t".join(fields)

        edit_lines(path, name)
        ended = command("judge", "--full")
        harmless(ended)
        assert ended.status == 1
        assert path.name in ended.out
        path.write_text(kept)


VALUE: Any = {"kind": "value", "dtype": "float32", "count": 1, "frontier": [[0.5, 1]]}
DIFFERS: Any = {
    "result": "differs", "count": 1, "digest": "d", "extent": [VALUE], "departures": [[["/value"], 1]],
    "differences": [{"kind": "value", "where": "value"}],
}  # fmt: skip
OUTCOMES: dict[str, tuple[dict[str, Any], str]] = {
    "a distance of a text": ({"extent": [VALUE | {"frontier": [["x", 1]]}]}, "a frontier contains 'x', expected a number"),
    "a distance of a list": ({"extent": [VALUE | {"frontier": [[[1], 1]]}]}, "a frontier contains [1], expected a number"),
    "a kind of a list": ({"extent": [VALUE | {"kind": ["value"]}]}, ""),
    "a dtype of a number": (
        {"extent": [VALUE | {"dtype": 5}]},
        "must have the strings kind and dtype, the number count, and frontier",
    ),
    "a count of a text": ({"count": "1"}, "count is '1', expected a non-negative integer"),
    "a digest of a number": ({"digest": 5}, "digest is 5, expected a string"),
    "an error of numbers": ({"errors": [[5, 6]]}, "errors contains values that are not strings"),
    "a place of a number": (
        {"differences": [{"kind": "value", "where": 7}]},
        "'kind' and 'where' of a difference must be strings",
    ),
    "a path of a number": ({"departures": [[[5], 1]]}, "departures contains a path that is not a string"),
}


@pytest.mark.parametrize("case", OUTCOMES)
def test_a_malformed_outcome_is_refused_when_it_is_read(case: str, tree: Tree, command: Command) -> None:
    given, message = OUTCOMES[case]
    path = folder_of(tree.root) / f"{RELEASE}.txt"
    body = DIFFERS | given
    name = digest(body)[:12]
    at = next(number for number, line in enumerate(lines_of(path)) if line[0] == "writers")
    edit_lines(
        path,
        lambda lines: [
            *lines[:at],
            f"outcome\t{name}\t{dump(body)}",
            *(line.replace(" same ", f" {name} ") for line in lines[at:]),
        ],
    )
    for arguments in (("judge", "--full"), ("observe", "--reader", RELEASE, "--recorded", "--show")):
        harmless(command(*arguments))
    ended = command("judge", "--full")
    assert ended.status == 1
    assert f"{RELEASE}.txt:{at + 1}: " in ended.out
    assert message in ended.out


def test_a_manifest_of_an_odd_release(tree: Tree, command: Command) -> None:
    folder = tree.root / "fixtures" / f"torch-1.6.0{ESCAPE}"
    shutil.copytree(tree.root / "fixtures" / RELEASE, folder)
    header, _ = read_lines(tree.root / MANIFEST, "manifest")
    write_lines(folder / "manifest.jsonl", header | {"release": f"1.6.0{ESCAPE}"}, [])
    for arguments in COMMANDS:
        harmless(command(*arguments))
