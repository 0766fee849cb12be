"""Inspecting 1,000 small archives against picklescan reading the same folder, and what one archive of 1 GB costs. Prints ratios.

picklescan is fetched into an environment of its own for this run; it reads pickles for names of globals, and nothing else of a
file. Both are given the same folder in turn, as commands (each as it uses two processors) and inside one process.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import venv
import zlib
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
COUNTS = {("torch-save", "zip"): 400, ("torch-save", "stream"): 200, ("torchscript", "zip"): 400}
LARGEST = 20_000
PROCESSORS = 2
TURNS = 5
STORAGE = 100_000_000  # bytes; ten of them in the large archive
SCANNER = "picklescan==1.0.5"
OURS = (
    "import json, sys, time; from torch_compat import inspect; from torch_compat.inspection import files_of\n"
    "files = list(files_of(sys.argv[1])); inspect(files[0])\n"
    "started = time.perf_counter(); texts = [json.dumps(inspect(path)) for path in files]; print(time.perf_counter() - started)"
)
THEIRS = (
    "import sys, time, logging; logging.disable(); from picklescan.scanner import scan_directory_path\n"
    "started = time.perf_counter(); found = scan_directory_path(sys.argv[1]); seconds = time.perf_counter() - started\n"
    "assert found.scanned_files, found; print(seconds)"
)
ONE = "import json, sys; from torch_compat import inspect; row = inspect(sys.argv[1]); assert row['error'] is None, row; json.dumps(row)"
OFFSETS = """
import sys
from torch_compat.archive import open_archive
archive = open_archive(sys.argv[1])
offsets = [data for _, data in archive.calculated_offsets()]
read = [member.state > 0 for member in archive.members]
stored = [member.record.startswith("data/") for member in archive.members]
assert offsets == [member.data_offset for member in archive.members]
print(len(offsets), sum(read), sum(stored), sum(a and b for a, b in zip(read, stored)))
"""


def small_archives(folder: Path) -> tuple[int, float]:
    """Copy 1,000 archives of the corpus, the larger ones of each kind; give their number and mean size."""
    groups: dict[tuple[str, str], list[tuple[int, Path]]] = {}
    for manifest in sorted(ROOT.glob("fixtures/torch-*/manifest.jsonl")):
        for line in manifest.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            if entry["kind"] == "fixture" and entry["size"] < LARGEST:
                groups.setdefault((entry["family"], entry["container"]), []).append(
                    (entry["size"], manifest.parent / entry["file"])
                )
    sizes = []
    for kind, count in COUNTS.items():
        for size, path in sorted(groups[kind])[-count:]:
            (folder / f"{path.parent.name}_{path.name}").write_bytes(path.read_bytes())
            sizes.append(size)
    return len(sizes), sum(sizes) / len(sizes)


def seconds(*command: str | Path) -> tuple[float, float]:
    """Wall-clock and processor seconds of a command. picklescan ends with 1 where it found something."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in {0, 1}:
        sys.exit(done.stderr.decode())
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def said(*command: str | Path) -> list[float]:
    """The numbers that a command prints."""
    return [float(text) for text in subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()]


def scanner(place: Path) -> Path:
    """The folder of commands of an environment with picklescan."""
    venv.create(place, with_pip=True)
    subprocess.run([place / "bin" / "pip", "install", "--quiet", SCANNER], check=True, stderr=subprocess.DEVNULL)
    return place / "bin"


def rates(folder: Path, count: int) -> None:
    """Both on the same files, in turn: a busy machine slows both."""
    with tempfile.TemporaryDirectory() as place:
        theirs = scanner(Path(place))
        times: dict[str, tuple[list[float], list[float]]] = {
            "commands, wall": ([], []), "commands, processor": ([], []), "in process": ([], []),
        }  # fmt: skip
        for turn in range(TURNS + 1):
            both = (
                seconds(sys.executable, "-m", "torch_compat", "inspect", folder, "--format", "json"),
                seconds(theirs / "picklescan", "-p", folder),
            )
            inside = said(sys.executable, "-c", OURS, folder)[0], said(theirs / "python", "-c", THEIRS, folder)[0]
            if not turn:
                continue  # until here modules were compiled and files read for the first time
            for number in range(2):
                times["commands, wall"][number].append(both[number][0])
                times["commands, processor"][number].append(both[number][1])
                times["in process"][number].append(inside[number])
    print(f"{'':22}{'inspect':>22}{SCANNER:>22}{'ratio of rates':>18}   best of {TURNS}; in brackets of medians")
    for way, result in times.items():
        cells = "".join(f"{min(item):9.3f} s {1e3 * min(item) / count:6.3f} ms" for item in result)
        ratio, middle = (pick(result[1]) / pick(result[0]) for pick in (min, median))
        print(f"{way:22}{cells}{ratio:11.2f} ({middle:.2f})")


def peak(path: Path) -> int:
    """The most memory of a process that inspects one archive, in KiB."""
    children = os.spawnvp(os.P_NOWAIT, sys.executable, [sys.executable, "-c", ONE, str(path)])
    _, status, usage = os.wait4(children, 0)
    if status:
        sys.exit(f"inspecting {path.name} failed")
    return usage.ru_maxrss


def large_archive(path: Path) -> None:
    """Ten storages of noise in an archive as torch 2.13 writes it, with checksums."""
    sys.path.append(str(ROOT))
    from tools.faults.torch_zip import write_end, write_member  # noqa: PLC0415 - not on the path before

    noise = os.urandom(1_000_000)
    body = noise * (STORAGE // len(noise))
    assert zlib.crc32(body)
    pairs = b"".join(
        b"X\1\0\0\0%dctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\nByteStorage\nX\1\0\0\0%dX\3\0\0\0cpuJ%btQK\0"
        b"J%b\x85K\1\x85\x89ccollections\nOrderedDict\n)RtR"
        % (key, key, STORAGE.to_bytes(4, "little"), STORAGE.to_bytes(4, "little"))
        for key in range(10)
    )
    records: dict[str, bytes] = {"data.pkl": b"\x80\2}(" + pairs + b"u.", ".format_version": b"1", ".storage_alignment": b"64",
                                 "byteorder": b"little"}  # fmt: skip
    with path.open("wb") as out:
        written: list[Any] = [write_member(out, b"archive/" + name.encode(), data) for name, data in records.items()]
        written += [write_member(out, b"archive/data/%d" % key, body) for key in range(10)]
        written += [
            write_member(out, b"archive/version", b"3\n"),
            write_member(out, b"archive/.data/serialization_id", b"0" * 40),
        ]
        write_end(out, written)


def large(folder: Path, small: Path) -> None:
    """Time, memory, and reads of one archive of 1 GB."""
    path = folder / "large.pt"
    large_archive(path)
    peaks = {item: peak(item) for item in (small, path)}
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", ONE, path], check=True)
    took = time.perf_counter() - started
    records, read, storages, read_of_storages = map(int, said(sys.executable, "-c", OFFSETS, path))
    print(f"\none archive of {path.stat().st_size:,} bytes, every checksum compared: {took:.2f} s")
    more = (peaks[path] - peaks[small]) / 1024
    print(f"peak memory {peaks[path] / 1024:.0f} MiB, of a small one {peaks[small] / 1024:.0f} MiB: {more:+.0f} MiB")
    print(
        f"offsets of {storages} storages calculated, each as its local header says; local headers read for it: {read_of_storages}"
    )
    print(f"(and {read} of the other {records - storages} records: the alignment)")


def main() -> None:
    """Measure and print."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:PROCESSORS])
    with tempfile.TemporaryDirectory() as place:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # as it is where both are installed: compiled
        os.environ["PYTHONPYCACHEPREFIX"] = f"{place}/compiled"
        folder = Path(place, "small")
        folder.mkdir()
        count, mean = small_archives(folder)
        print(f"{count} archives of {mean:,.0f} bytes on average, {PROCESSORS} processors")
        rates(folder, count)
        large(Path(place), next(folder.iterdir()))


if __name__ == "__main__":
    main()
