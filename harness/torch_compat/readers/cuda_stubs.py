"""Stubs for the CUDA libraries that a release of torch links against but a CPU-only machine does not have.

From 1.13 on, torch's Linux wheels load cuBLAS, cuDNN, NCCL and others from packages of several gigabytes, although no computation on the
CPU ever calls them. The dynamic loader requires three things for ``import torch`` to succeed:

* a file of each soname that a loaded object lists as NEEDED;
* in that file, each symbol version that an object requires of it;
* a definition of each undefined function and data symbol, anywhere in the process.

Each missing library is replaced by an empty shared object with that soname and those versions, and all of them link to one more that
contains the definitions. The definitions are kept separate because an unversioned definition may satisfy a versioned reference only from a
file other than the one that the reference names. Since everything is defined, the stubs load with both lazy and immediate binding.

A stubbed function returns 1, which is a failure status in every one of these libraries: torch raises if it ever calls one.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from torch_compat.errors import EnvironmentUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from torch_compat.readers.commands import Commands

__all__ = ["DEFINITIONS", "Gap", "SharedObject", "build_stubs", "find_gap", "need_tool", "read_shared_object"]

DEFINITIONS = "libtorch_compat_stubs.so"
"""The single shared object that defines the symbols of all stubs."""

_OF_CUDA = re.compile(r"(__)?(cu|nv|nccl)")  # the prefixes of every symbol of these libraries
_DATUM_BYTES = 256  # an undefined data symbol states no size; the known ones are single numbers

_NEEDED = re.compile(r"\(NEEDED\).*\[(.*)\]")
_REQUIRES_FILE = re.compile(r"Version: \d+\s+File: (\S+)\s+Cnt:")
_REQUIRES_VERSION = re.compile(r"Name: (\S+)\s+Flags:")


@dataclass(frozen=True)
class SharedObject:
    """The dynamic loader's view of one file.

    Attributes:
        needed: the sonames it loads.
        defined: the symbols it offers, without their versions.
        undefined: the symbols it requires, each with its type, ``FUNC``, ``OBJECT`` or ``NOTYPE``.
        versions: by soname, the symbol versions it requires from that file.
    """

    needed: tuple[str, ...]
    defined: frozenset[str]
    undefined: Mapping[str, str]
    versions: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Gap:
    """What ``import torch`` lacks to succeed; false if nothing is missing.

    Attributes:
        libraries: the missing sonames, sorted.
        functions: the functions that they would have defined.
        data: the variables that they would have defined.
        versions: by missing soname, the symbol versions required from it.
    """

    libraries: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.libraries)


def find_gap(torch: Path, command: Commands) -> Gap:
    """Follow everything that ``import torch`` loads, and collect what is not provided.

    Objects that no other object needs (torch's runtime compiler, loaded when a GPU is used) are not followed.

    Parameters:
        torch: the folder of the installed package; packages of CUDA libraries are in ``nvidia`` next to it.
        command: runs readelf and ldconfig.

    Raises:
        EnvironmentUnavailable: readelf is not installed here.
    """
    offered = _offered(torch, command)
    waiting = [*sorted(torch.glob("*.so")), *torch.glob("lib/libtorch_global_deps.so")]
    loaded: dict[Path, SharedObject] = {}
    missing: set[str] = set()
    while waiting:
        path = waiting.pop()
        if path in loaded:
            continue
        loaded[path] = read_shared_object(path, command)
        for soname in loaded[path].needed:
            if soname in offered:
                waiting.append(offered[soname])
            else:
                missing.add(soname)
    return _gap(loaded.values(), missing)


def read_shared_object(path: Path, command: Commands) -> SharedObject:
    """Read with readelf what the dynamic loader would see in a file."""
    readelf = need_tool("readelf", package="binutils")
    out = command(
        [readelf, "--wide", "--dynamic", "--dyn-syms", "--version-info", path], purpose=f"reading {path.name}", quiet=True
    )
    needed: list[str] = []
    defined: set[str] = set()
    undefined: dict[str, str] = {}
    versions: dict[str, list[str]] = {}
    requires_of: list[str] = []
    for line in out.splitlines():
        if match := _NEEDED.search(line):
            needed.append(match[1])
        elif match := _REQUIRES_FILE.search(line):
            requires_of = versions.setdefault(match[1], [])
        elif match := _REQUIRES_VERSION.search(line):
            requires_of.append(match[1])
        elif (columns := line.split()) and len(columns) >= 8 and columns[0][:-1].isdigit() and columns[0].endswith(":"):
            _number, _value, _size, kind, binding, _visibility, section, name = columns[:8]
            if section != "UND":
                defined.add(name.partition("@")[0])
            elif binding == "GLOBAL":  # a weak reference may stay undefined
                undefined[name.partition("@")[0]] = kind
    return SharedObject(
        tuple(needed), frozenset(defined), undefined, {soname: tuple(sorted(set(names))) for soname, names in versions.items()}
    )


def build_stubs(gap: Gap, folder: Path, command: Commands) -> tuple[str, ...]:
    """Compile a stub for each missing library into a folder that the loader searches; return their file names.

    Raises:
        EnvironmentUnavailable: there is no C compiler here, or it failed.
    """
    compiler = need_tool("cc", "gcc", "clang", package="gcc")
    source = folder / "stubs.c"
    script = folder / "stubs.map"
    shared: list[str | Path] = [compiler, "-shared", "-fPIC", "-nostdlib"]
    try:
        source.write_text(_definitions(gap), encoding="ascii")
        command([*shared, source, f"-Wl,-soname,{DEFINITIONS}", "-o", folder / DEFINITIONS], purpose="compiling the CUDA stubs")
        for soname in gap.libraries:
            source.write_text("", encoding="ascii")
            script.write_text("".join(f"{version} {{ }};\n" for version in gap.versions.get(soname, ())), encoding="ascii")
            versions = [f"-Wl,--version-script={script}"] if gap.versions.get(soname) else []
            links: list[str | Path] = ["-Wl,--no-as-needed", folder / DEFINITIONS, "-Wl,-rpath,$ORIGIN", f"-Wl,-soname,{soname}"]
            command([*shared, source, *versions, *links, "-o", folder / soname], purpose=f"compiling the stub for {soname}")
    finally:
        source.unlink(missing_ok=True)
        script.unlink(missing_ok=True)
    return (DEFINITIONS, *gap.libraries)


def need_tool(*names: str, package: str) -> str:
    """Return the first of these programs that is installed.

    Raises:
        EnvironmentUnavailable: none is.
    """
    for name in names:
        if result := shutil.which(name):
            return result
    raise EnvironmentUnavailable(
        f"a release whose CUDA libraries are not in its wheel needs {' or '.join(names)}, which is not installed",
        hint=f"install {package}",
        code="no-tool",
    )


def _offered(torch: Path, command: Commands) -> dict[str, Path]:
    """Map each soname that the loader can find to its path: torch's own libraries first, then CUDA packages, then the system's."""
    offered: dict[str, Path] = {}
    for folder in [torch / "lib", *sorted(torch.parent.glob("nvidia/**/lib"))]:
        for path in sorted(folder.glob("*.so*")):
            offered.setdefault(path.name, path)
    ldconfig = shutil.which("ldconfig", path="/sbin:/usr/sbin") or shutil.which("ldconfig")
    if ldconfig:
        for line in command([ldconfig, "-p"], purpose="listing the system's libraries", quiet=True).splitlines():
            name, arrow, target = line.partition(" => ")
            if arrow:
                offered.setdefault(name.split()[0], Path(target))
    for folder in _default_folders():
        for path in sorted(folder.glob("*.so*")):
            offered.setdefault(path.name, path)
    return offered


def _default_folders() -> list[Path]:
    """Return the folders that the loader searches last, regardless of its cache."""
    roots = [Path("/lib64"), Path("/usr/lib64"), Path("/lib"), Path("/usr/lib")]
    return [folder for root in roots for folder in (root, root / "x86_64-linux-gnu") if folder.is_dir()]


def _gap(loaded: Iterable[SharedObject], missing: set[str]) -> Gap:
    loaded = list(loaded)
    defined = frozenset[str]().union(*(item.defined for item in loaded))
    undefined = {
        name: kind
        for item in loaded
        for name, kind in item.undefined.items()
        if missing and name not in defined and _OF_CUDA.match(name)
    }
    versions = {
        soname: tuple(sorted({version for item in loaded for version in item.versions.get(soname, ())}))
        for soname in sorted(missing)
    }
    return Gap(
        tuple(sorted(missing)),
        tuple(sorted(name for name, kind in undefined.items() if kind != "OBJECT")),
        tuple(sorted(name for name, kind in undefined.items() if kind == "OBJECT")),
        {soname: names for soname, names in versions.items() if names},
    )


def _definitions(gap: Gap) -> str:
    """Return C source: one failing function aliased to every missing function, and zeros for every missing data symbol."""
    lines = ["static int fail(void) { return 1; }"]
    lines += [f'int {name}(void) __attribute__((alias("fail")));' for name in gap.functions]
    lines += [f"char {name}[{_DATUM_BYTES}] __attribute__((aligned(16)));" for name in gap.data]
    return "\n".join(lines) + "\n"
