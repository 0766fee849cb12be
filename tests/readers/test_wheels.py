"""Builds from wheels: from a file, and from an index of nightlies in a local folder."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import json
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.miniatures import SITE
from torch_compat.errors import BuildError, EnvironmentUnavailable, UsageError
from torch_compat.policy.model import CalendarRelease
from torch_compat.readers.torch_release import TorchRelease
from torch_compat.readers.wheels import expire_wheels, nightly_build, wheel_build
from torch_compat.releases.calendar import Calendar

if TYPE_CHECKING:
    from pathlib import Path

TODAY = dt.date(2026, 11, 23)
VERSION = "2.16.0.dev20261120+cpu"
CALENDAR = Calendar(
    [CalendarRelease(version="2.13.0", date=dt.date(2026, 7, 8), pythons=["3.11"], install="stubs", numpy=">=2")]  # type: ignore[arg-type]
)
TAG = f"py3-none-{'any'}"


def small_wheel(
    folder: Path, version: str = VERSION, *, says: str | None = None, packed: dt.date = dt.date(2026, 11, 20)
) -> Path:
    """A real wheel of a miniature torch, with the numpy that it needs."""
    behaviour = json.dumps({"version": says or version})
    head = "from __future__ import annotations\n"
    source = (SITE / "torch" / "__init__.py").read_text(encoding="utf-8")
    source = source.replace(head, f"{head}import os\nos.environ['MINIATURE_TORCH'] = {behaviour!r}\n", 1)
    info = f"torch-{version}.dist-info"
    files = {
        "torch/__init__.py": source,
        "torch/serialization.py": (SITE / "torch" / "serialization.py").read_text(encoding="utf-8"),
        "numpy.py": (SITE / "numpy.py").read_text(encoding="utf-8"),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {TAG}\n",
    }
    record = []
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(text.encode())}")
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,"]) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"torch-{version}-{TAG}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name, (packed.year, packed.month, packed.day, 12, 0, 0)), text)
    return path


def index_of(folder: Path, *wheels: Path, sha256: str | None = None) -> str:
    """An index of nightlies in a folder: a page that links to these wheels."""
    page = folder / "index" / "torch" / "index.html"
    page.parent.mkdir(parents=True)
    links = [
        f'<a href="{wheel.as_uri()}#sha256={sha256 or hashlib.sha256(wheel.read_bytes()).hexdigest()}">{wheel.name}</a><br>'
        for wheel in wheels
    ]
    page.write_text(
        "<!DOCTYPE html><html><body>" + "\n".join(["<a href='../'>up</a>", *links]) + "</body></html>", encoding="utf-8"
    )
    return (folder / "index").as_uri()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def test_a_wheel_becomes_a_reader(tmp_path: Path, root: Path) -> None:
    file = small_wheel(tmp_path)
    steps: list[str] = []
    build = wheel_build(file, CALENDAR, today=TODAY, root=root, progress=steps.append)
    assert (build.reader, build.day, build.day_from) == (f"torch-{VERSION}", dt.date(2026, 11, 20), "version")
    assert steps[-1] == f"installing {file.name}"
    with TorchRelease(build.environment) as reader:
        assert reader.identity["build"] == build.digest
    again: list[str] = []
    assert wheel_build(file, CALENDAR, today=TODAY, root=root, progress=again.append).digest == build.digest
    assert again == []  # it is there
    assert expire_wheels(TODAY + dt.timedelta(days=14), 14, root) == []
    assert len(expire_wheels(TODAY + dt.timedelta(days=15), 14, root)) == 1
    assert not list((root / "wheels").glob("torch-*"))


def test_a_build_without_a_day_has_that_of_its_wheel(tmp_path: Path, root: Path) -> None:
    build = wheel_build(small_wheel(tmp_path, "2.16.0rc3"), CALENDAR, today=TODAY, root=root)
    assert (build.day, build.day_from, build.release.line) == (dt.date(2026, 11, 20), "build", "2.16")


def test_a_wheel_that_lies_is_refused(tmp_path: Path, root: Path) -> None:
    with pytest.raises(BuildError, match="its files were packed on 2026-10-01"):
        wheel_build(small_wheel(tmp_path / "day", packed=dt.date(2026, 10, 1)), CALENDAR, today=TODAY, root=root)
    with pytest.raises(BuildError, match=r"is named 2\.16\.0rc1, but its torch reports 2\.15\.0"):
        wheel_build(small_wheel(tmp_path / "version", "2.16.0rc1", says="2.15.0"), CALENDAR, today=TODAY, root=root)


def test_what_is_no_wheel_of_torch_is_refused(tmp_path: Path, root: Path) -> None:
    with pytest.raises(UsageError, match="file not found"):
        wheel_build(tmp_path / "torch.whl", CALENDAR, today=TODAY, root=root)
    for name, message in (
        ("torch.whl", "is not the name of a wheel, expected torch-VERSION-PYTHON-ABI-PLATFORM.whl .*wheel:torch-2.14.1-cp311"),
        (f"numpy-2.0-{TAG}.whl", "expected a torch wheel, got numpy 2.0"),
    ):
        (tmp_path / name).write_bytes(b"")
        with pytest.raises(UsageError, match=message):
            wheel_build(tmp_path / name, CALENDAR, today=TODAY, root=root)
    (tmp_path / f"torch-2.16.0rc1-{TAG}.whl").write_bytes(b"no zip")
    with pytest.raises(BuildError, match="is not a wheel"):
        wheel_build(tmp_path / f"torch-2.16.0rc1-{TAG}.whl", CALENDAR, today=TODAY, root=root)


def test_the_nightly_of_a_day_is_found_and_held_to_its_hash(tmp_path: Path, root: Path) -> None:
    other = small_wheel(tmp_path, "2.16.0.dev20261119+cpu")
    index = index_of(tmp_path, other, small_wheel(tmp_path))
    build = nightly_build("2026-11-20", CALENDAR, today=TODAY, index=index, root=root)
    assert (build.name, build.reader) == ("nightly:2026-11-20", f"torch-{VERSION}")


def test_a_wheel_with_another_hash_is_never_run(tmp_path: Path, root: Path) -> None:
    index = index_of(tmp_path, small_wheel(tmp_path), sha256="0" * 64)
    with pytest.raises(BuildError, match="but the index reports 000000000000…: it was not run") as caught:
        nightly_build("2026-11-20", CALENDAR, today=TODAY, index=index, root=root)
    assert (caught.value.code, caught.value.exit_status) == ("wrong-hash", 2)
    assert not list((root / "wheels").glob("*torch*"))
    missing = tmp_path / "without"
    missing.mkdir()
    index = index_of(missing, small_wheel(missing), sha256="none")
    with pytest.raises(BuildError, match="does not provide a SHA-256"):
        nightly_build("2026-11-20", CALENDAR, today=TODAY, index=index, root=root)


def test_what_the_index_does_not_offer_is_said(tmp_path: Path, root: Path) -> None:
    index = index_of(tmp_path, small_wheel(tmp_path))
    with pytest.raises(EnvironmentUnavailable, match=r"offers no nightly for 2026-11-20 with \+cu132") as caught:
        nightly_build("2026-11-20+cu132", CALENDAR, today=TODAY, index=index, root=root)
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("on that day, it offers +cpu for 3.")
    with pytest.raises(EnvironmentUnavailable, match="offers no nightly for 2026-11-18"):
        nightly_build("20261118", CALENDAR, today=TODAY, index=index, root=root)
    with pytest.raises(EnvironmentUnavailable, match="the index cannot be read"):
        nightly_build("20261120", CALENDAR, today=TODAY, index=(tmp_path / "nowhere").as_uri(), root=root)
    for text, more, message in (
        ("tomorrow", index, "'tomorrow' is not a valid date"),
        ("2026-02-31", index, "'2026-02-31' is not a valid date"),
        ("2026-11-20", None, "no nightly index is configured"),
        ("2026-11-20", "ftp://somewhere", "is not the URL of an index"),
    ):
        with pytest.raises(UsageError, match=message):
            nightly_build(text, CALENDAR, today=TODAY, root=root, index=more)
