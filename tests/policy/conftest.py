"""A small valid policy, and the policy of the repository."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from torch_compat.policy import Policy, load_policy
from torch_compat.policy.accepted import HEADER, WAIVERS_LOCK

if TYPE_CHECKING:
    from collections.abc import Callable

REPOSITORY = Path(__file__).parents[2]

RELEASES = """\
[[release]]
version = "1.9.0"
date = 2021-06-15
pythons = ["3.6", "3.9"]
install = "whole"
numpy = "<2"

[[release]]
version = "1.10.0"
date = 2021-10-21
pythons = ["3.6", "3.9"]
install = "whole"
numpy = "<2"

[[release]]
version = "1.10.1"
date = 2021-12-15
pythons = ["3.6", "3.9"]
install = "stubs"
numpy = ">=1.19,<2"
"""
FORMATS = """\
[[format]]
kind = "file-format"
version = 6
meaning = "moved"
read_from = { release = "1.9.0", day = 2021-06-01 }
written_from = { release = "1.9.0" }

[[format]]
kind = "bytecode"
version = 6
meaning = "counted"
read_from = { release = "1.10.0" }
no_writer = "never left a branch"
"""
PROMISES = """\
[policy]
name = "small"
in_force_from = 2021-06-15
forward_window_days = 14

# Which releases the corpus must cover.
writers = ["1.9.0"]
readers = ["1.9.0", "1.10.0"]

[[options]]
id = "default"
families = ["torch-save", "torchscript"]

[[options]]
id = "mmap"
families = ["torch-save"]
since = "1.10.0"
load = { mmap = true }
may_refuse = { containers = ["stream"], message = "mmap", reason = "streams cannot be mapped" }

[[rule]]
id = "newer-loads"
asks = "It loads."
source = "here"

[[tolerance]]
dtype = "float32"
operators = ["*"]
max_ulp = 4
max_abs = 1e-6
max_rel = 1e-4
reason = "kernels differ"
"""
WAIVER = """\
[waiver]
id = "known"
title = "It is known"
covers = [{ outcome = "refused", recipes = ["add"], writers = "..1.9.0", readers = "1.10.0.." }]
findings = ["recipes-written:not-produced:div"]
reason = "it is so"
evidence = "seen"
owner = "someone"
expires = 2027-01-01
"""
SMALL = {"releases.toml": RELEASES, "formats.toml": FORMATS, "promises.toml": PROMISES, "waivers/known.toml": WAIVER}
SMALL[WAIVERS_LOCK] = f"""\
{HEADER}releases 1.9.0 1.10.0
recipes add div
known backward refused default 0123456789ab 1.9.0 1.10.0 add
known finding ba9876543210 recipes-written:not-produced:div
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[[dict[str, str]], Path]:
    """Writes files into a policy folder and gives the folder."""

    def write_files(files: dict[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / "policy" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path / "policy"

    return write_files


@pytest.fixture(scope="session")
def pristine() -> dict[str, str]:
    """The files of a small valid policy; not to be changed."""
    return SMALL


@pytest.fixture
def files(pristine: dict[str, str]) -> dict[str, str]:
    """The files of a small valid policy, to be changed."""
    return dict(pristine)


@pytest.fixture
def small(write: Callable[[dict[str, str]], Path]) -> Policy:
    return load_policy(write(SMALL))


@pytest.fixture(scope="session")
def torch() -> Policy:
    return load_policy(REPOSITORY / "policies" / "torch")
