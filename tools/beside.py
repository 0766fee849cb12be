"""Histories of Python's standard library and numpy next to the recorded releases, in ``fixtures/beside``.

    python tools/beside.py python PYTHON...     the standard library of each of these interpreters
    python tools/beside.py numpy PYTHON...      the numpy of each

The names of a module are its attributes other than modules. A name that a module creates lazily is found if the same module has it
in another version, or another module of the package or Python's builtins have it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from torch_compat.operators.history import quoted
from torch_compat.releases.known import Known
from torch_compat.writes import changing, put

REPOSITORY = Path(__file__).resolve().parents[1]
FOLDER = REPOSITORY / "fixtures" / "beside"
WHAT = {
    "python": "Every module of the standard library that the interpreter carries, except what is listed as left out: imported; "
    "its attributes that are no modules.",
    "numpy": "Every module of numpy, except what is listed as left out: imported; its attributes that are no modules.",
}
MISSING = "Modules that are left out, modules that could not be imported on Linux (with the reason), and names inside classes."
ASK = r"""
import builtins, importlib, io, json, os, pkgutil, sys, types, warnings
warnings.simplefilter("ignore")
kind, left_out, wanted = json.loads(sys.stdin.read())
def walk(prefix, paths):
    for found in pkgutil.iter_modules(paths):
        name = prefix + found.name
        parts = name.split(".")
        if set(parts) & set(left_out) or parts[-1] == "__main__" or parts[0].startswith(("_test", "_sysconfigdata", "_xx", "xx")):
            continue
        yield name
        if found.ispkg:
            for path in paths:
                inside = os.path.join(path, found.name)
                if os.path.isdir(inside):
                    for one in walk(name + ".", [inside]):
                        yield one
if kind == "numpy":
    import numpy
    version, names = numpy.__version__, ["numpy"] + list(walk("numpy.", list(numpy.__path__)))
else:
    own = os.path.dirname(os.__file__)
    version = sys.version.split()[0]
    names = [name for name in sys.builtin_module_names if not name.startswith("_xx")]
    names = sorted(set(names) | set(walk("", [own, os.path.join(own, "lib-dynload")])))
said, sys.stdout, sys.stderr = sys.stdout, io.StringIO(), io.StringIO()
failed = {}
for name in names:
    try:
        importlib.import_module(name)
    except BaseException as error:
        failed[name] = type(error).__name__
tops = {name.partition(".")[0] for name in names}
names = set(names) | {name for name in list(sys.modules) if name.partition(".")[0] in tops and not set(name.split(".")) & set(left_out)}
result = {}
for name in names - {"__main__"}:
    module = sys.modules.get(name)
    if module is None or name in failed:
        result[name] = ["!" + failed.get(name, "ImportError")]
    elif isinstance(module, types.ModuleType):
        asked = set(vars(module)) | set(wanted.get(name, ()))
        if hasattr(module, "__getattr__"):
            asked |= set(dir(builtins)).union(*(set(vars(sys.modules[one])) for one in names if one.startswith(name + ".") and one in sys.modules))
        result[name] = []
        for one in asked:
            if one.startswith("__") and one.endswith("__") and name != "builtins":
                continue
            try:
                value = getattr(module, one)
            except BaseException:
                continue
            if not isinstance(value, types.ModuleType):
                result[name].append(one)
said.write(json.dumps([version, result]))
"""
LEFT_OUT = {
    "python": ["test", "tests", "idlelib", "lib2to3", "turtledemo", "turtle", "tkinter", "antigravity", "this", "ensurepip", "site-packages", "pip", "setuptools", "wheel", "pkg_resources", "_distutils_hack"],
    "numpy": ["tests", "distutils", "f2py", "typing", "_pyinstaller", "conftest", "setup", "testing"],
}  # fmt: skip
"""Modules that are not searched, wherever they are."""


def main() -> int:
    """Query every interpreter twice: the second time with the names that the others reported."""
    kind, *pythons = sys.argv[1:]
    if kind not in WHAT or not pythons:
        print(__doc__, file=sys.stderr)
        return 2
    wanted: dict[str, list[str]] = {}
    for _ in range(2):
        told = [ask(python, kind, wanted) for python in pythons]
        for _, modules in told:
            for module, names in modules.items():
                wanted[module] = sorted({*wanted.get(module, ()), *names})
    by_version = dict(sorted(told, key=lambda item: [int(part) for part in item[0].split(".")]))
    with changing(REPOSITORY):
        put(FOLDER / f"{kind}.txt", history(kind, by_version), encoding="utf-8")
    return 0


def ask(python: str, kind: str, wanted: dict[str, list[str]]) -> tuple[str, dict[str, list[str]]]:
    """The contents of one interpreter: the version of Python or numpy, and names by module."""
    asked = json.dumps([kind, LEFT_OUT[kind], wanted])
    done = subprocess.run([python, "-I", "-c", ASK], input=asked, capture_output=True, text=True, check=True)
    version, modules = json.loads(done.stdout)
    return version, modules


def history(kind: str, by_version: dict[str, dict[str, list[str]]]) -> str:
    """The text of the file."""
    known = Known(by_version)
    lines = ["# history 1 sets", f"# releases {' '.join(by_version)}"]
    lines += [f"# obtained\t{known.releases[0]}..\t{WHAT[kind]}", f"# incomplete\t{known.releases[0]}..\t{MISSING}"]
    facts = [f"(left out)\t{known.releases[0]}.. {' '.join(sorted(LEFT_OUT[kind]))}"]
    for module in {module for modules in by_version.values() for module in modules}:
        spans: dict[int, list[str]] = {}
        having = {version: set(modules[module]) for version, modules in by_version.items() if module in modules}
        empty = known.holding(having)
        for name in sorted(set().union(*having.values())):
            bits = known.holding(version for version, names in having.items() if name in names)
            spans.setdefault(bits, []).append(quoted(name))
        if empty not in spans:
            spans[empty] = ["."]  # the module exists
        facts += [f"{module}\t{known.text(bits)} {' '.join(names)}" for bits, names in spans.items()]
    return "\n".join([*lines, *sorted(facts), ""])


if __name__ == "__main__":
    sys.exit(main())
