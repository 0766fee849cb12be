"""The synthetic fixtures match the output of their generator, and every one is accounted for."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from torch_compat.corpus.manifest import MANIFEST, read_manifest
from torch_compat.policy import load_policy

REPOSITORY = Path(__file__).parents[2]
FOLDER = REPOSITORY / "fixtures" / "synthetic"
MAKER: dict[str, Any] = runpy.run_path(str(FOLDER / "make.py"))
MADE = {item.file: item for item in MAKER["archives"]()}
ENTRIES = {entry.file: entry for entry in read_manifest(FOLDER / MANIFEST).fixtures}


def test_the_manifest_lists_what_is_made() -> None:
    assert MADE
    assert MADE.keys() == ENTRIES.keys()


@pytest.mark.parametrize("name", MADE)
def test_the_generator_makes_the_same_bytes_again(name: str) -> None:
    assert (FOLDER / name).read_bytes() == MADE[name].data


@pytest.mark.parametrize("name", MADE)
def test_the_generator_makes_the_same_entry_again(name: str) -> None:
    assert MAKER["entry"](MADE[name], FOLDER / name) == ENTRIES[name]


@pytest.mark.parametrize("name", MADE)
def test_the_readme_accounts_for_it(name: str) -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert f"## {Path(name).stem}\n\n`{name}`:" in text


def test_every_version_that_nobody_writes_is_stood_for() -> None:
    formats = load_policy(REPOSITORY / "policies" / "torch").formats
    stood_for = {label for item in MADE.values() for label in item.formats}
    assert {entry.label for entry in formats if entry.no_writer} <= stood_for <= {entry.label for entry in formats}
