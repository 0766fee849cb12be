"""Builds from wheels: ``wheel:FILE``, and ``nightly:DATE`` from an index of nightlies.

A wheel gets its own environment in the cache, named by its SHA-256, and is then a build like any other. An index of nightlies is a folder
of static pages: ``URL/torch/`` links to wheels, each with its SHA-256 after ``#``. A wheel without a hash, or with a hash other than the
one in its link, is refused before any of it is run.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import fcntl
import hashlib
import json
import os
import re
import shutil
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from torch_compat.errors import BuildError, EnvironmentUnavailable, UsageError
from torch_compat.policy.model import CalendarRelease
from torch_compat.readers.builds import Build, python_build
from torch_compat.readers.commands import Run, run_command
from torch_compat.readers.environments import ASK_TARGET, EnvironmentBuild, cache_folder, remove_environment
from torch_compat.readers.interpreters import find_interpreters, fitting
from torch_compat.readers.isolation import plain_environ
from torch_compat.releases.release import Release, stated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import IO

    from torch_compat.releases.calendar import Calendar

__all__ = ["INDEX", "expire_wheels", "nightly_build", "wheel_build"]

INDEX: Final = "TORCH_COMPAT_NIGHTLY_INDEX"
"""The variable with the URL of the nightly index, used if the option is not given."""
STATE: Final = "wheel.json"
DIGITS: Final = 12
PAGE_BYTES: Final = 64 << 20
WHEEL_BYTES: Final = 8 << 30
SECONDS: Final = 60
AT_ONCE: Final = 1 << 20
EARLIEST: Final = dt.date(2016, 1, 1)  # zip members dated before torch existed have no real date, as in reproducible builds
_DATE: Final = re.compile(r"([0-9]{4})-?([0-9]{2})-?([0-9]{2})(?:\+([A-Za-z0-9.]+))?")
_PYTHON: Final = re.compile(r"cp3([0-9]{1,2})")


class _Wheel(NamedTuple):
    """The parts of a wheel's name: ``torch-2.16.0.dev20261120+cpu-cp311-cp311-linux_x86_64.whl``."""

    release: Release
    pythons: tuple[str, ...]
    platforms: tuple[str, ...]


_WHEEL = "pass the file as pip downloads or builds it, such as wheel:torch-2.14.1-cp311-cp311-linux_x86_64.whl"


def _named(file: str, where: str) -> _Wheel:
    """Parse the name of a wheel.

    Raises:
        UsageError: it is not the name of a wheel, or that of another package.
    """
    try:
        name, version, _, tags = parse_wheel_filename(file)
    except InvalidWheelFilename as error:
        raise UsageError(
            "is not the name of a wheel, expected torch-VERSION-PYTHON-ABI-PLATFORM.whl",
            where=where,
            hint=_WHEEL,
            code="no-wheel",
        ) from error
    release = stated(str(version))
    if name != "torch" or release is None:
        raise UsageError(f"expected a torch wheel, got {name} {version}", where=where, hint=_WHEEL, code="no-wheel")
    pythons = sorted({f"3.{match[1]}" for tag in tags if (match := _PYTHON.fullmatch(tag.interpreter))})
    if any(tag.interpreter.startswith("py3") for tag in tags):
        pythons += sorted({interpreter.minor for interpreter in find_interpreters()} - {*pythons})
    return _Wheel(release, tuple(pythons), tuple(sorted({tag.platform for tag in tags})))


def wheel_build(
    file: Path,
    calendar: Calendar[CalendarRelease],
    *,
    today: dt.date,
    name: str | None = None,
    root: Path | None = None,
    run: Run = run_command,
    progress: Callable[[str], None] = lambda _: None,
) -> Build:
    """Return the build of a wheel; create its environment if it does not exist.

    Parameters:
        calendar: its environment gets the same additional packages as that of the nearest release.
        name: its name in messages; ``wheel:FILE`` by default.
        root: the cache folder.

    Raises:
        UsageError: the file does not exist, or is not a wheel of torch.
        BuildError: it cannot be imported, or reports a version or date that differs from its name.
        EnvironmentUnavailable: its environment cannot be created here.
    """
    name = name or f"wheel:{file}"
    if not file.is_file():
        raise UsageError("file not found", where=str(file), hint="pass a torch wheel as wheel:FILE", code="no-wheel")
    wheel = _named(file.name, str(file))
    built = _packed(file)
    with file.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    prefix = _folder(root) / f"torch-{wheel.release.public}-{sha256[:DIGITS]}"
    with _locked(prefix):
        if not (prefix / STATE).is_file():
            _make(file, wheel, prefix, calendar, sha256, run, progress, today)
    build = python_build(prefix / "bin" / "python", name=name, today=today, built=built)
    if build.release != wheel.release:
        raise BuildError(f"is named {wheel.release}, but its torch reports {build.release}", where=name, code="build-version")
    return build


def _folder(root: Path | None) -> Path:
    return (root or cache_folder()).absolute() / "wheels"


@contextlib.contextmanager
def _locked(prefix: Path) -> Iterator[None]:
    """Hold the lock of an environment, which the system releases when the process ends for any reason."""
    path = _ready(prefix.parent / "locks") / f"{prefix.name}.lock"
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _packed(file: Path) -> dt.date | None:
    """Return the date on which ``torch/version.py`` was added to a wheel; None if not recorded.

    Raises:
        BuildError: it is not a zip archive, or does not contain torch.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            names = {*archive.namelist()}
            if "torch/__init__.py" not in names:
                raise BuildError("contains no torch/__init__.py", where=str(file), code="no-wheel")
            member = archive.getinfo("torch/version.py" if "torch/version.py" in names else "torch/__init__.py")
            day = dt.date(*member.date_time[:3])
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise BuildError(f"is not a wheel: {error}", where=str(file), code="no-wheel") from error
    return day if day >= EARLIEST else None


def _make(
    file: Path,
    wheel: _Wheel,
    prefix: Path,
    calendar: Calendar[CalendarRelease],
    sha256: str,
    run: Run,
    progress: Callable[[str], None],
    today: dt.date,
) -> None:
    """Create the environment of a wheel. A failure leaves only the log."""
    machine = os.uname().machine
    if not any(platform == "any" or platform.endswith(machine) for platform in wheel.platforms):
        raise EnvironmentUnavailable(
            f"is for {', '.join(wheel.platforms)}, but this machine is {machine}", where=str(file), code="no-wheel"
        )
    like = calendar.nearest(wheel.release)
    install = "whole" if wheel.release.local.startswith(("cpu", "xpu")) or wheel.platforms == ("any",) else like.install
    release = CalendarRelease.model_construct(
        version=wheel.release.public, date=today, pythons=wheel.pythons, python=None, install=install, numpy=like.numpy
    )
    interpreter = fitting(release, find_interpreters())
    log = prefix.parent / "logs" / f"{prefix.name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("", encoding="utf-8")
    remove_environment(prefix)
    try:
        steps = EnvironmentBuild(release, interpreter, prefix, log, run, progress=progress)
        progress(f"creating an environment with Python {interpreter.version}")
        steps.scratch.mkdir(parents=True)
        steps.command([interpreter.path, "-m", "venv", prefix], purpose="python -m venv")
        progress(f"installing {file.name}")
        steps.pip("install", "--no-deps", "--no-cache-dir", "--no-index", str(file.absolute()), purpose=f"installing {file.name}")
        message = steps.command(
            [steps.python, "-I", "-c", ASK_TARGET], purpose="inspecting the new Python", environ=plain_environ()
        )
        target = json.loads(message)
        site = Path(target["site"])
        requirements = steps.requirements(site, "torch", target["markers"])
        needed = [str(item) for item in requirements if not steps.for_gpu(item)]
        if not any(site.glob("numpy*")):
            needed.append(f"numpy{release.numpy}")
        if needed:
            progress("installing the dependencies of torch")
            steps.install(needed)
        steps.complete_cuda("stub", site, requirements, target["markers"])
        shutil.rmtree(steps.scratch)
        state = {"wheel": file.name, "sha256": sha256, "made": today.isoformat()}
        unfinished = prefix / f"{STATE}.unfinished"
        unfinished.write_text(json.dumps(state, indent=2) + "\n", encoding="utf-8")
        unfinished.replace(prefix / STATE)
    finally:
        if not (prefix / STATE).is_file():
            remove_environment(prefix)


def expire_wheels(today: dt.date, days: int, root: Path | None = None) -> list[str]:
    """Remove the environments of wheels created more than ``days`` days ago; return their names."""
    gone = []
    for path in sorted(_folder(root).glob(f"torch-*/{STATE}")):
        with contextlib.suppress(ValueError, KeyError, TypeError):  # one without a date is kept
            result = dt.date.fromisoformat(json.loads(path.read_text(encoding="utf-8"))["made"])
            if (today - result).days > days:
                with _locked(path.parent):
                    path.unlink()
                    remove_environment(path.parent)
                gone.append(path.parent.name)
    return gone


# --------------------------------------------------------------------------------------------------------------- nightlies


class _Link(NamedTuple):
    url: str
    file: str
    sha256: str
    wheel: _Wheel


def nightly_build(
    text: str,
    calendar: Calendar[CalendarRelease],
    *,
    today: dt.date,
    index: str | None = None,
    root: Path | None = None,
    run: Run = run_command,
    progress: Callable[[str], None] = lambda _: None,
) -> Build:
    """Return the nightly of a date: ``2026-11-20``, or ``2026-11-20+cu132`` for one that is not for the CPU.

    Parameters:
        index: the URL of the index: its pages, including ``torch/``, are below it.

    Raises:
        UsageError: it is not a date, or no index is given.
        BuildError: the wheel's hash differs from the index's, or the index gives none; otherwise as :func:`wheel_build`.
        EnvironmentUnavailable: the index cannot be read, or offers no such wheel for a Python of this machine.
    """
    match = _DATE.fullmatch(text)
    try:
        day = dt.date(*map(int, match.groups()[:3])) if match else None
    except ValueError:
        day = None
    if match is None or day is None:
        raise UsageError(
            f"{text!r} is not a valid date", hint="use nightly:2026-11-20, or nightly:2026-11-20+cu132", code="bad-day"
        )
    if not index:
        raise UsageError(
            "no nightly index is configured",
            hint=f"set {INDEX}, or nightly_index in [policy]; candidate also takes --index-url URL; the torch page must be at URL/torch/",
            code="no-index",
        )
    link = _chosen(index, day, match[4] or "cpu")
    name = f"nightly:{text}"
    with tempfile.TemporaryDirectory(prefix="torch-compat-", dir=_ready(_folder(root))) as scratch:
        file = Path(scratch) / link.file
        progress(f"downloading {link.file}")
        _download(link, file)
        return wheel_build(file, calendar, today=today, name=name, root=root, run=run, progress=progress)


def _ready(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _chosen(index: str, day: dt.date, local: str) -> _Link:
    page = f"{index.rstrip('/')}/torch/"
    links = [link for link in _links(page) if link.wheel.release.day == day]
    here = {interpreter.minor for interpreter in find_interpreters()}
    machine = os.uname().machine
    fits = [
        link
        for link in links
        if link.wheel.release.local == local
        and here.intersection(link.wheel.pythons)
        and any(platform == "any" or platform.endswith(machine) for platform in link.wheel.platforms)
    ]
    if not fits:
        offered = sorted({f"+{link.wheel.release.local} for {', '.join(link.wheel.pythons)}" for link in links})
        raise EnvironmentUnavailable(
            f"offers no nightly for {day} with +{local} for {machine} and CPython {', '.join(sorted(here))}",
            where=_shown(page),
            hint=f"on that day, it offers {'; '.join(offered)}" if offered else "it offers none for that day",
            code="not-offered",
        )
    preferred = "3.11"
    return min(fits, key=lambda link: (preferred not in link.wheel.pythons, link.file))


def _links(page: str) -> Iterator[_Link]:
    """Yield the torch wheels that a page links to; other links are skipped."""
    parser = _Anchors()
    with _opened(page) as stream:
        content = stream.read(PAGE_BYTES + 1)
    if len(content) > PAGE_BYTES:
        raise EnvironmentUnavailable(f"has more than {PAGE_BYTES} bytes", where=_shown(page), code="index-unavailable")
    parser.feed(content.decode("utf-8", "replace"))
    for href in parser.found:
        url, _, fragment = urllib.parse.urljoin(page, href).partition("#")
        file = urllib.parse.unquote(url.rpartition("/")[2])
        with contextlib.suppress(UsageError):
            yield _Link(url, file, fragment.removeprefix("sha256=") if fragment.startswith("sha256=") else "", _named(file, page))


class _Anchors(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.found += [value for key, value in attrs if key == "href" and value]


def _opened(url: str) -> IO[bytes]:
    """Open a page or file of an index; the page of a local folder is its ``index.html``.

    Raises:
        EnvironmentUnavailable: it cannot be read.
    """
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in {"https", "http", "file"}:
        raise UsageError(
            f"{_shown(url)!r} is not the URL of an index", hint="expected https://, http:// or file://", code="no-index"
        )
    if parts.scheme == "file" and url.endswith("/"):
        url += "index.html"
    try:
        stream: IO[bytes] = urllib.request.urlopen(url, timeout=SECONDS)  # noqa: S310 - the scheme is one of three
    except (OSError, ValueError, urllib.error.URLError) as error:
        raise EnvironmentUnavailable(
            f"the index cannot be read: {error}", where=_shown(url), hint="see --index-url", code="index-unavailable"
        ) from error
    return stream


def _download(link: _Link, file: Path) -> None:
    """Download a wheel, and check it against the hash in its link.

    Raises:
        BuildError: the hash differs, or the link has none.
    """
    if not re.fullmatch("[0-9a-f]{64}", link.sha256):
        raise BuildError(
            "the index does not provide a SHA-256 for this wheel", where=link.file, hint="its links must end with #sha256=..."
        )
    result = hashlib.sha256()
    size = 0
    with _opened(link.url) as stream, file.open("wb") as target:
        while block := stream.read(AT_ONCE):
            size += len(block)
            if size > WHEEL_BYTES:
                raise BuildError(f"has more than {WHEEL_BYTES} bytes", where=link.file)
            result.update(block)
            target.write(block)
    if result.hexdigest() != link.sha256:
        raise BuildError(
            f"has SHA-256 {result.hexdigest()[:12]}…, but the index reports {link.sha256[:12]}…: it was not run",
            where=link.file,
            hint="the download was cut off, or the file was replaced: fetch the index page again",
            code="wrong-hash",
        )


def _shown(url: str) -> str:
    """Return a URL without its password."""
    return re.sub(r"//[^/@]*@", "//", url)
