"""``python tools/rehearse.py --release 2.15.0 [--into DIR] [-- OPTIONS OF ADMIT]``: remove a release and rehearse its admission.

Copies this repository, removes the release from the copy, adds it again with ``torch-compat admit``, and compares the trees. Newer releases
are first removed from both trees. Waivers, and everything else that people decide in policies, have their current state as soon as the
calendar has the release again. Where the release differs from the one before inside of waivers, a person would have to accept the
difference: it is printed, and then accepted. Prints every difference between the trees. Exit status 0 if there is none and judging ends
as for the expected tree; 1 if there is a difference; otherwise the status of admitting, or of judging if something had to be accepted.
`-- --until survey` rehearses no other reader, and compares the trees at that point.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from torch_compat.errors import CorpusError, HarnessError
from torch_compat.places import inside
from torch_compat.policy.accepted import WAIVERS_LOCK
from torch_compat.policy.calendar_files import joined, split_tables, written_calendar
from torch_compat.policy.counts import LOCK, counted_tables, lock_text, read_lock, rewritten
from torch_compat.policy.source import read_folder
from torch_compat.replay.before import remove_releases
from torch_compat.replay.generating import UNUSED
from torch_compat.replay.rehearsal import DECIDED, differences, rounded_elsewhere

REPOSITORY = Path(__file__).resolve().parents[1]
LEFT_OUT = (".git", ".nox", ".tox", ".venv", ".*_cache", ".hypothesis", "__pycache__", "latest", "build", "dist", "*.egg-info")
WRITTEN = ("releases.toml", "timelines.toml", "weights_only.toml")
"""Policies written by an admission; all others are written by people."""


def command(root: Path, *arguments: str) -> int:
    """Run a program of a copy with the code of that copy; return its exit status."""
    print("rehearse:", *arguments, flush=True)
    return subprocess.run([sys.executable, *arguments], cwd=root, env=environ(root), check=False).returncode


def environ(root: Path) -> dict[str, str]:
    """The environment for running the code of a copy."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "harness"), str(root)])}


def judged(root: Path) -> int:
    """The exit status of judging a copy."""
    return command(root, "-m", "torch_compat", "judge")


def copied(source: Path, target: Path) -> Path:
    """A copy of a tree, code included."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(*LEFT_OUT))
    return target


def without(root: Path, releases: list[str], *, keep_programs: bool = False) -> None:
    """Take releases out of a copy, accept the resulting differences, and regenerate the generated files."""
    remove_releases(root, releases, keep_programs=keep_programs)
    if command(root, "-m", "torch_compat", "accept", "--write") not in {0, 1} or command(root, "tools/generate.py"):
        raise CorpusError("the generated files cannot be regenerated without the removed releases", where=str(root))


def accept(expected: Path, root: Path) -> None:
    """Accept the differences in a copy. If nothing can be accepted because probes need later releases, the accepted state of the other tree is
    used, and judging checks whether it matches this one.
    """
    lock = root / DECIDED / WAIVERS_LOCK
    before = lock.read_bytes()
    command(root, "-m", "torch_compat", "accept", "--write")
    if lock.read_bytes() == before:
        print("rehearse: nothing was accepted; the waiver lock of the expected tree is used", flush=True)
        shutil.copyfile(expected / DECIDED / WAIVERS_LOCK, lock)


def predict(root: Path) -> None:
    """Recompute the predictions for the releases in a copy, as an admission does, without causes that only other releases show."""
    for _ in range(2):
        arguments = [sys.executable, "-m", "tools.predictions", "--write"]
        ended = subprocess.run(arguments, cwd=root, env=environ(root), check=False, stderr=subprocess.PIPE, encoding="utf-8")
        unused = {
            (kind, name) for kind, name in re.findall(rf"^(behavior) (\S+) {re.escape(UNUSED)}$", ended.stderr, re.MULTILINE)
        }
        if not ended.returncode:
            return
        if not unused:
            print(ended.stderr, file=sys.stderr)
            break
        take_out(root, unused)
    raise CorpusError("the predictions cannot be counted without the later releases", where=str(root))


def take_out(root: Path, unused: set[tuple[str, str]]) -> None:
    """Remove tables from the policy of a copy, by table name and id, and from the lock of counts."""
    policies = root / DECIDED
    for path in sorted(policies.glob("*.toml")):
        parts = split_tables(path.read_text(encoding="utf-8"))
        left = [
            part
            for part in parts
            if not any(part.header == f"[[{kind}]]" and f'\nid = "{name}"\n' in part.body for kind, name in unused)
        ]
        if len(left) < len(parts):
            path.write_text(joined(left), encoding="utf-8")
            print("rehearse: removed, because they do not explain anything:", *sorted(name for _, name in unused), flush=True)
    lock = rewritten(read_lock(policies), (), {}, counted_tables(read_folder(policies).entries))
    (policies / LOCK).write_text(lock_text(lock), encoding="utf-8")


def put_back(expected: Path, root: Path) -> None:
    """Restore in a tree the tables that people maintain, from another tree, and add a lock entry for each restored table.

    Entries that the tree has keep their counts, because recounting them is part of the rehearsal.
    """
    source, target = expected / DECIDED, root / DECIDED
    for path in sorted(source.rglob("*.toml")):
        name = path.relative_to(source)
        if name.as_posix() not in WRITTEN:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / name)
    lock = read_lock(target)
    if lock.text is not None:
        values = {**read_lock(source).values, **lock.values}
        wanted = counted_tables(read_folder(target).entries)
        kept = {key: value for key, value in values.items() if key in wanted}
        inside(target, LOCK).write_text(lock_text(kept), encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Rehearse; expected errors are printed as messages."""
    try:
        return rehearse(arguments)
    except HarnessError as error:
        print(f"rehearse: {error}", file=sys.stderr)
        return error.exit_status


def rehearse(arguments: list[str] | None) -> int:
    """Take a release out of a copy, admit it again and compare; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--release", required=True, help="release to remove and admit again, such as 2.15.0")
    parser.add_argument("--into", type=Path, help="directory for the copies, which are kept; default: a temporary directory")
    parser.add_argument("--judge", action="store_true", help="also judge the original tree, and print the result")
    parser.add_argument("options", nargs="*", help="further options of torch-compat admit, after --")
    asked = parser.parse_args(arguments)
    calendar = written_calendar(REPOSITORY / DECIDED)
    release = calendar.resolve(asked.release)
    later = [item.version for item in calendar if item.parsed > release.parsed]
    with tempfile.TemporaryDirectory(prefix="torch-compat-rehearsal-") as scratch:
        into = asked.into or Path(scratch)
        into.mkdir(parents=True, exist_ok=True)
        expected = copied(REPOSITORY, into / "expected") if later else REPOSITORY
        if later:
            without(expected, later)
            predict(expected)
            command(expected, "tools/generate.py")
        root = copied(expected, into / "tree")
        without(root, [release.version], keep_programs=True)
        if asked.judge:
            judged(root)
        admit = ("-m", "torch_compat", "admit", release.name, "--uploaded", release.date.isoformat())
        status = command(root, *admit, "--until", "calendar")
        if status:
            return status
        put_back(expected, root)
        status = command(root, *admit, *asked.options)
        if status == 1 and not asked.options:  # judging failed: the release differs, and people have to accept the differences
            command(root, "-m", "torch_compat", "accept")
            accept(expected, root)
            command(root, "tools/generate.py")
            status = judged(root)
        wanted = judged(expected) if later else 0  # without later releases, exceptions that only they show have no cell
        results = list(differences(expected, root, release.version))
        rounded = [fixture.id for fixture in rounded_elsewhere(expected, root, release.version)]
    if rounded:
        print(f"the last bits differ, as on another processor: {', '.join(rounded)}")
    print("\n".join(results) or "no difference")
    print(f"{len(results)} differences; exit status of admitting: {status}; of judging the expected tree: {wanted}")
    return 1 if results else 0 if status == wanted else status or wanted


if __name__ == "__main__":
    sys.exit(main())
