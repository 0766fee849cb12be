"""``python tools/altered.py make KIND FOLDER [--release X]`` or ``check [--release X] [--kind KIND ...] [-- OPTIONS OF candidate]``: altered builds.

A build of torch is made from the environment of a locally built release (2.13.0 by default). Except for the altered files, all its files
are hard links. It reports itself as a nightly of the next minor release, one week after the release. ``KIND`` names the alteration:

    same       nothing
    python     ``torch/_utils.py``: a loaded parameter always requires a gradient
    operators  ``libtorch_cpu.so``: ``aten::nanquantile`` has another name, ``aten::pad_sequence`` pads with ones by default

``check`` makes each kind, and ``itself``: the unmodified environment. It runs ``torch-compat candidate`` with each against the release,
and checks that the report matches the alteration. Options after ``--`` go to ``candidate``; without any, it reads only ``RECIPES``.

Exit status: 0 all reports are right, 1 a report is wrong, 4 the release is not built here.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from torch_compat.policy import load_policy
from torch_compat.readers.environments import Environment, Environments
from torch_compat.releases.release import Release

REPOSITORY = Path(__file__).resolve().parents[1]
RELEASE: Final = "2.13.0"
KINDS: Final = ("same", "python", "operators")
ITSELF: Final = "itself"
RECIPES: Final = ("save_parameters", "default_of_nanquantile", "default_of_pad_sequence", "div")
"""Recipes affected by every alteration, and a program that is not affected."""
DAYS: Final = 7
"""After the release, but within the window in which the release has to read what the build writes."""
CHANGES: Final = {
    "same": {},
    "python": {"_utils.py": {b"torch.nn.Parameter(data, requires_grad)": b"torch.nn.Parameter(data)"}},
    "operators": {
        "lib/libtorch_cpu.so": {  # same length, so that offsets do not change
            b"nanquantile(Tensor self, Tensor q,": b"nanquantil_(Tensor self, Tensor q,",
            b"nanquantile.scalar(Tensor self, float q,": b"nanquantil_.scalar(Tensor self, float q,",
            b"pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0.0": (
                b"pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=1.0"
            ),
        }
    },
}  # type: Final[dict[str, dict[str, dict[bytes, bytes]]]]
EXPECTED: Final = {
    ITSELF: frozenset[tuple[str, str]](),
    "same": frozenset[tuple[str, str]](),
    "python": frozenset({("computes", "save_parameters")}),
    "operators": frozenset(
        {
            ("operator", "aten::nanquantile"),
            ("operator", "aten::nanquantile.scalar"),
            ("operator", "aten::pad_sequence"),
            ("loads", "default_of_nanquantile"),
            ("computes", "default_of_pad_sequence"),
        }
    ),
}
"""The findings that the report has to list as new and as breaking a promise, by kind and by operator or recipe."""


def make(environment: Environment, kind: str, folder: Path, day: dt.date) -> Path:
    """Make a build from an environment and return its Python. Never writes to the environment, not even through a link.

    Raises:
        SystemExit: the release does not contain the text that the kind alters.
    """
    shutil.copytree(environment.prefix, folder, symlinks=True, copy_function=linked)
    (torch,) = folder.glob("lib/python*/site-packages/torch")
    major, minor, _ = Release(environment.version).numbers
    version = f"{major}.{minor + 1}.0.dev{day:%Y%m%d}"
    alter(torch / "version.py", {f"'{environment.version}".encode(): f"'{version}".encode()})
    for name, changes in CHANGES[kind].items():
        alter(torch / name, changes)
    return folder / environment.python.relative_to(environment.prefix)


def linked(source: str, target: str) -> None:
    """Create a file at another path as a hard link if both paths are on one disk, otherwise as a copy."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target)


def alter(path: Path, changes: dict[bytes, bytes]) -> None:
    """Replace text in a file after unlinking it: writing through the hard link would change the original, too."""
    content = path.read_bytes()
    for old, new in changes.items():
        if old not in content:
            raise SystemExit(f"{path.name} of this release does not contain {old.decode()!r}")
        content = content.replace(old, new)
    mode = path.stat().st_mode
    path.unlink()
    path.write_bytes(content)
    path.chmod(mode)


def wrong(kind: str, report: dict[str, Any]) -> list[str]:
    """The differences between a report of ``candidate`` and the expected one."""
    results = {
        (item["what"], item["witness"].partition(" ")[0].rpartition("/")[2])
        for item in report["new"]
        if item["policy"] == "breaks"
    }
    messages = [f"the report lacks: {what} of {name}" for what, name in sorted(EXPECTED[kind] - results)]
    if not EXPECTED[kind]:
        messages += [f"new: {item['cause']}" for item in report["new"]]
    messages += [f"required but not checked: {item['what']}: {item['why']}" for item in report["not_asked"] if item["required"]]
    status = 1 if EXPECTED[kind] else 0
    return [*messages, *([] if report["exit_status"] == status else [f"exit status {report['exit_status']}, expected {status}"])]


def check(environment: Environment, kind: str, folder: Path, day: dt.date, options: list[str]) -> list[str]:
    """Run ``candidate`` with a build; print the duration, and return the errors in its report."""
    python = environment.python if kind == ITSELF else make(environment, kind, folder / kind, day)
    command = ["candidate", f"python:{python}", "--against", f"torch-{environment.version}", "--into", str(folder / "trees")]
    before, began = _processor(), time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "torch_compat", *command, "--format", "json", *options],
        cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    took, processor = time.monotonic() - began, _processor() - before
    try:
        report = json.loads(done.stdout)
    except ValueError:
        return [f"no report, exit status {done.returncode}"]
    asked, new = report["asked"], report["new"]
    print(
        f"{kind}: {asked['cells']} of {asked['cells_in_all']} cells, {asked['own_cells']} of its own archives, {asked['recipes']} recipes, "
        f"{asked['operators']} operators: {len(new)} new, {took:.0f} s, {processor:.0f} s of processor time"
    )
    for item in new:
        print(f"  {item['policy']}: {item['what']}: {item['cause']} ({item['witness']}, {item['count']})")
    return wrong(kind, report)


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(arguments: list[str]) -> int:
    """Run one command and return its exit status."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n\n")[0], formatter_class=argparse.RawTextHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("kind", choices=KINDS)
    making.add_argument("folder", type=Path)
    checking = commands.add_parser("check")
    checking.add_argument("--kind", dest="kinds", action="append", choices=(ITSELF, *KINDS))
    checking.add_argument("options", nargs="*")
    for item in (making, checking):
        item.add_argument("--release", default=RELEASE)
    chosen = parser.parse_args(arguments)
    calendar = load_policy(REPOSITORY / "policies" / "torch").calendar
    release = calendar.resolve(chosen.release)
    environment = Environments().get(release.version)
    if environment is None:
        print(f"not built here: torch-{release.version} (torch-compat readers build torch-{release.version})", file=sys.stderr)
        return 4
    day = release.date + dt.timedelta(days=DAYS)
    if chosen.command == "make":
        print(f"python:{make(environment, chosen.kind, chosen.folder, day)}")
        return 0
    options = chosen.options or [word for recipe in RECIPES for word in ("--recipe", recipe)]
    failed = False
    with tempfile.TemporaryDirectory(prefix="altered-") as scratch:
        for kind in chosen.kinds or (ITSELF, *KINDS):
            for message in check(environment, kind, Path(scratch), day, options):
                failed = True
                print(f"  WRONG: {message}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
