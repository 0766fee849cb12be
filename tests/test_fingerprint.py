"""Cache keys of our code: they change with everything that the code depends on, and with nothing else."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

import torch_compat
from torch_compat.fingerprint import code_fingerprint, code_of, content_fingerprint

PACKAGE = Path(torch_compat.__file__).parent


def imported(path: Path) -> set[str]:
    """The modules of ours right below the package that a file imports, as Python reads it."""
    results = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            results |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            results |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {name.split(".")[1] for name in results if name.startswith("torch_compat.")}


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package at another place. A test that changes a file there restores it."""
    path = tmp_path_factory.mktemp("site") / "torch_compat"
    shutil.copytree(PACKAGE, path, ignore=shutil.ignore_patterns("__pycache__", "_packaged"))
    return path


def fingerprint(package: str, root: Path) -> str:
    return code_fingerprint.__wrapped__(package, root)


def test_every_import_of_the_code_is_followed() -> None:
    for package in ("replay", "readers"):
        files = code_of(package)
        folders = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in files}
        assert package in folders
        for path in files:
            if path != PACKAGE / "__init__.py":
                known = {name for name in imported(path) if (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file()}
                assert known <= folders, path


@pytest.mark.parametrize("name", sorted(path.relative_to(PACKAGE).as_posix() for path in code_of("replay")))
@pytest.mark.sampled(10)
def test_changing_any_module_of_the_closure_changes_the_key(copied: Path, name: str) -> None:
    before = fingerprint("replay", copied)
    path = copied / name
    text = path.read_bytes()
    path.write_bytes(text + b"\n# changed\n")
    assert fingerprint("replay", copied) != before
    path.write_bytes(text)
    assert fingerprint("replay", copied) == before


def test_changing_what_only_prints_keeps_the_key(copied: Path) -> None:
    before = fingerprint("replay", copied)
    path = copied / "cli" / "__init__.py"
    text = path.read_bytes()
    path.write_bytes(text + b"\n# changed\n")
    assert fingerprint("replay", copied) == before
    path.write_bytes(text)


def test_a_new_or_renamed_module_changes_the_key(copied: Path) -> None:
    before = fingerprint("replay", copied)
    new = copied / "replay" / "brand_new.py"
    new.write_text("")
    first = fingerprint("replay", copied)
    new.rename(copied / "replay" / "brand_newer.py")
    assert len({before, first, fingerprint("replay", copied)}) == 3
    (copied / "replay" / "brand_newer.py").unlink()


def test_the_place_and_compiled_files_do_not_matter(copied: Path) -> None:
    cache = copied / "replay" / "__pycache__"
    cache.mkdir()
    (cache / "observe.cpython-311.pyc").write_bytes(b"\0")
    assert fingerprint("replay", copied) == code_fingerprint("replay")
    shutil.rmtree(cache)


def test_line_endings_do_not_matter(tmp_path: Path) -> None:
    for name, ending in (("unix", b"\n"), ("dos", b"\r\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").write_bytes(b"import b" + ending + b"x = 1" + ending)
    unix, dos = (content_fingerprint(folder, folder.glob("*")) for folder in (tmp_path / "unix", tmp_path / "dos"))
    assert unix == dos


@pytest.mark.parametrize(
    "statement",
    [
        "import torch_compat.other",
        "import torch_compat.other.deep as name",
        "from torch_compat.other.deep import thing",
        "from torch_compat import __version__, other as name",
        "from torch_compat import (\n    __version__,  # a comment\n    other,\n)",
        "def late():\n    from torch_compat.other import thing",
    ],
)
def test_each_form_of_import_is_followed(tmp_path: Path, statement: str) -> None:
    for name, text in {"__init__": "", "one": statement, "other": "from torch_compat.last import x", "last": ""}.items():
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "apart.py").write_text("")
    assert [path.stem for path in code_of("one", tmp_path)] == ["__init__", "last", "one", "other"]
