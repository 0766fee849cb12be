"""No stored file reveals where on a machine it was created."""

from __future__ import annotations

import base64
import io
import json
import re
import shutil
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).parents[2]
CORRUPT = REPOSITORY / "fixtures" / "corrupt"  # cannot be inflated as they are; what they are made from is searched
ARCHIVES = sorted(
    path for path in REPOSITORY.glob("fixtures/*/*") if path.suffix in {".pt", ".ptl", ".pt2"} and path.parent != CORRUPT
)
RECORDS = [
    *sorted(REPOSITORY.glob("fixtures/*/*.jsonl")),
    *sorted(REPOSITORY.glob("fixtures/operators/*.json")),
    *sorted(REPOSITORY.glob("reports/observations/*.txt")),
]
FOLDERS = {folder: [path for path in ARCHIVES if path.parent == folder] for folder in sorted({path.parent for path in ARCHIVES})}

# Source files of PyTorch on the machines that built its releases, as error messages quote them; and a part of an address in
# torch's own documentation, which 1.2's debug records carry along.
ALLOWED = (
    b"/pytorch/aten/src/",
    b"/pytorch/build/aten/src/",
    b"/pytorch/caffe2/serialize/",
    b"/pytorch/torch/csrc/autograd/",
    b"/pytorch/torch/csrc/jit/",
    b"/pytorch/torch/csrc/utils/",
    b"/__w/pytorch/pytorch/aten/src/",
    b"/__w/pytorch/pytorch/torch/csrc/jit/",
)
ADDRESS = b"/notes/randomness"

# A well-known folder tells by itself; any other path needs some length, since tensors are random bytes.
TOLD_BY_ITS_ROOT = rb"/(?:etc|home|media|mnt|opt|private|root|srv|tmp|usr|var|work|workspace|Users|Volumes)/[\w.+@-]+"
POSIX = rb"(?<![\w.:/~-])/(?:[\w.+@-]{2,}/)+[\w.+@-]{2,}"
WINDOWS = rb"(?<!\w)[A-Za-z]:[\\/]+(?:[\w .+-]{2,}[\\/]+)+[\w.+-]{2,}"
PATH = re.compile(rb"%b|%b|%b" % (POSIX, WINDOWS, TOLD_BY_ITS_ROOT))
SHORTEST = 9


def paths(data: bytes) -> set[bytes]:
    return {text for text in PATH.findall(data) if len(text) >= SHORTEST or re.match(TOLD_BY_ITS_ROOT, text)}


def layers(data: bytes) -> Iterator[bytes]:
    """The bytes themselves and, where they are a zip archive, every record inflated."""
    yield data
    if data.startswith(b"PK") and zipfile.is_zipfile(io.BytesIO(data)):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for info in archive.infolist():
                if info.CRC == 0:  # not protected, which is legal; the standard library would call it damaged
                    info.CRC = None  # type: ignore[assignment]
                yield from layers(archive.read(info))


def texts(value: Any) -> Iterator[bytes]:
    """Every text of a JSON value, and the bytes of its tensors."""
    if isinstance(value, str):
        yield value.encode("utf-8", "surrogatepass")  # a recipe keeps a string that is no text
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key.encode()
            if key == "bytes" and isinstance(item, str):
                yield base64.b64decode(item, validate=True)
            elif key == "departures":
                for places, departed in item:  # places in a JSON value, which look like paths
                    in_bytes = isinstance(departed, str) and places[0].endswith("/bytes")
                    yield from texts({"bytes": departed} if in_bytes else departed)
            else:
                yield from texts(item)


def said(field: bytes) -> Any:
    """A field of a line of recorded observations: JSON, or a text."""
    return json.loads(field) if field.startswith((b"{", b'"')) else field.decode("ascii")


def paths_in(path: Path) -> set[bytes]:
    data = path.read_bytes()
    if path.suffix == ".json":
        parts = texts(json.loads(data))
    elif path.suffix == ".jsonl":
        parts = (part for line in data.splitlines() for part in texts(json.loads(line)))
    elif path.suffix == ".txt":
        parts = (part for line in data.splitlines() for field in line.split(b"\t") for part in texts(said(field)))
    else:
        parts = layers(data)
    return set().union(*map(paths, parts))


def test_there_is_something_to_search() -> None:
    assert len(ARCHIVES) >= 80
    assert len(RECORDS) >= 15


def foreign(path: Path) -> set[bytes]:
    """Paths of a machine that are not allowed. Text whose parts are of one or two characters is none: records of numbers look so."""
    return {
        result
        for result in paths_in(path)
        if not result.startswith(ALLOWED) and result != ADDRESS and any(len(part) > 2 for part in result.split(b"/"))
    }


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_no_archive_holds_a_path_of_a_machine(folder: Path) -> None:
    assert {path.name: result for path in FOLDERS[folder] if (result := foreign(path))} == {}


def test_no_damaged_archive_holds_a_path_of_a_machine() -> None:
    files = [path for path in CORRUPT.iterdir() if path.is_file()]
    assert len(files) > 80
    assert {path.name: result for path in files if (result := paths(path.read_bytes()) - {ADDRESS})} == {}


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_no_record_holds_a_path_of_a_machine(path: Path) -> None:
    assert foreign(path) == set()


@pytest.mark.parametrize("allowed", ALLOWED, ids=bytes.decode)
def test_every_allowance_is_needed(allowed: bytes) -> None:
    holding = (path for path in RECORDS if allowed in path.read_bytes())
    assert any(result.startswith(allowed) for path in holding for result in paths_in(path))


HOME = f"/{'home'}/somebody"  # in pieces: this file is searched for such paths as well
PLANTED = [
    f"{HOME}/venv/lib/python3.8/site-packages/torch/nn/functional.py",
    "/tmp/x.py",
    "/some/where/else.py",
    f"C:\\{'Users'}\\somebody\\recipe.py",
    "/pytorch/torch/csrc/jit.cpp",
]


@pytest.mark.parametrize("planted", PLANTED)
@pytest.mark.parametrize("container", ["zip", "bytes", "json", "tensor", "departure"])
def test_a_planted_path_is_found(planted: str, container: str, tmp_path: Path) -> None:
    if container == "zip":
        copy = shutil.copyfile(REPOSITORY / "fixtures" / "torch-1.6.0" / "div.pt", tmp_path / "div.pt")
        with zipfile.ZipFile(copy, "a", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("div/code/debug.pkl", b"\x80\x02X\x29\x00\x00\x00" + planted.encode() + b"q\x01" + b"." * 2000)
    elif container == "bytes":
        copy = shutil.copyfile(REPOSITORY / "fixtures" / "torch-1.2.0" / "state_dict.pt", tmp_path / "state_dict.pt")
        copy.write_bytes(copy.read_bytes() + b"\x8c\x20" + planted.encode() + b"\x94.")
    elif container == "json":
        copy = tmp_path / "manifest.jsonl"
        copy.write_text(json.dumps({"calls": [{"error": {"message": f"it failed at {planted}:7"}}]}) + "\n", encoding="utf-8")
    elif container == "departure":
        copy = tmp_path / "torch-1.5.1.txt"
        data = base64.b64encode(b"\0" * 5 + planted.encode() + b"\0").decode()
        departures = [[["/value/tensor/bytes"], data], [["/value/list/0"], {"str": "same"}]]
        copy.write_text(f"outcome\t{'0' * 12}\t{json.dumps({'departures': departures})}\n", encoding="utf-8")
    else:
        copy = tmp_path / "manifest.jsonl"
        data = base64.b64encode(b"\0" * 5 + planted.encode() + b"\0").decode()
        copy.write_text(json.dumps({"golden": [{"tensor": {"dtype": "uint8", "bytes": data}}]}) + "\n", encoding="utf-8")
    assert {path for path in paths_in(copy) if not path.startswith(ALLOWED)}
