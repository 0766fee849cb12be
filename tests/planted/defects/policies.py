"""Defects in policy files."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from tests.planted.defects.table import defect, version_of
from torch_compat.corpus.manifest import MANIFEST, read_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from tests.planted.conftest import Tree


@defect(4, seeds=1)
def no_policies(tree: Tree, random: Random) -> str:
    shutil.rmtree(tree.path / "policies")
    return "has no policies/torch"


@defect(2, seeds=1)
def policies_emptied(tree: Tree, random: Random) -> str:
    shutil.rmtree(tree.policy)
    tree.policy.mkdir()
    return "contains no policy"


def tables(text: str, kind: str) -> Iterator[str]:
    """Every [[table]] of a kind, as it is written."""
    for part in text.split(f"[[{kind}]]\n")[1:]:
        table, _, _ = part.partition("\n[")
        yield f"[[{kind}]]\n{table}"


@defect(2, seeds=1)
def policy_without_rules(tree: Tree, random: Random) -> str:
    path = tree.policy / "promises.toml"
    text = path.read_text()
    for table in list(tables(text, "rule")):
        text = text.replace(table, "")
    path.write_text(text)
    return "no [[rule]]: nothing would be checked"


@defect(2)
def rule_that_does_not_exist(tree: Tree, random: Random) -> str:
    path = tree.policy / "promises.toml"
    name = random.choice([table.split('"')[1] for table in tables(path.read_text(), "rule")])
    tree.edit(path, f'id = "{name}"', f'id = "{name}-indeed"')
    return f"the policy names the rule '{name}-indeed', which does not exist"


@defect(4, seeds=1)
def rule_that_selects_nothing(tree: Tree, random: Random) -> str:
    path = tree.policy / "promises.toml"
    text = path.read_text()
    path.write_text("".join(line for line in text.splitlines(True) if not line.startswith("expect_empty")))
    return "forward-window × 1: the rule selects nothing"


@defect()
def rule_removed_that_has_waivers(tree: Tree, random: Random) -> str:
    rule = random.choice(["newer-computes", "newer-loads", "older-never-differs"])
    path = tree.policy / "promises.toml"
    tree.edit(path, next(table for table in tables(path.read_text(), "rule") if f'id = "{rule}"' in table), "")
    return "waivers-exact:"


@defect(4, seeds=1)
def rule_removed_that_counts_waivers(tree: Tree, random: Random) -> str:
    path = tree.policy / "promises.toml"
    tree.edit(path, next(table for table in tables(path.read_text(), "rule") if 'id = "waivers-exact"' in table), "")
    return "waivers-exact × 1: the policy has waivers, but not the rule that counts what they cover"


@defect(2)
def policy_file_cut_off(tree: Tree, random: Random) -> str:
    path = random.choice(sorted(tree.policy.glob("*.toml")))
    text = path.read_text()
    path.write_text(text[: text.rindex('"')])
    return path.name


@defect(2)
def policy_key_misspelt(tree: Tree, random: Random) -> str:
    path = tree.policy / "formats.toml"
    lines = path.read_text().splitlines(True)
    index = random.choice([index for index, line in enumerate(lines) if line.startswith("meaning")])
    lines[index] = lines[index].replace("meaning", "meanin")
    path.write_text("".join(lines))
    return f"formats.toml:{index + 1}"


@defect(2)
def reader_removed_from_the_calendar(tree: Tree, random: Random) -> str:
    path = tree.policy / "releases.toml"
    version = random.choice([version_of(reader) for reader in tree.readers()])
    tree.edit(path, next(table for table in tables(path.read_text(), "release") if f'version = "{version}"' in table), "")
    return f"release '{version}' is not in the calendar"


@defect(4)
def reader_added_that_nobody_observed(tree: Tree, random: Random) -> str:
    version = random.choice(["1.7.1", "1.8.0", "2.0.0"])
    tree.edit(tree.policy / "promises.toml", 'readers = ["1.2.0"', f'readers = ["{version}", "1.2.0"')
    return f"torch-{version}: no observations by this reader"


@defect()
def writer_added_that_wrote_nothing(tree: Tree, random: Random) -> str:
    version = random.choice(["1.7.1", "1.8.0", "2.0.0"])
    tree.edit(tree.policy / "promises.toml", 'writers = ["1.2.0"', f'writers = ["{version}", "1.2.0"')
    recipes = len(tree.recipes())
    return f"torch-{version}: {recipes} of {recipes} recipes were not run"


@defect()
def format_version_without_fixture(tree: Tree, random: Random) -> str:
    number = random.randrange(20, 99)
    with (tree.policy / "formats.toml").open("a") as stream:
        stream.write(
            f'\n[[format]]\nkind = "file-format"\nversion = {number}\nmeaning = "more"\n'
            'read_from = { release = "2.13.0" }\nwritten_from = { release = "2.13.0" }\n'
        )
    return f"file-format {number} has no fixture in the corpus"


@defect()
def format_version_forgotten(tree: Tree, random: Random) -> tuple[str, ...]:
    path = tree.policy / "formats.toml"
    written = {
        version
        for folder in tree.releases()
        for fixture in read_manifest(folder / MANIFEST).fixtures
        for version in fixture.versions.items()
    }
    kind, version = random.choice(sorted(pair for pair in written if pair[0] in {"file-format", "bytecode"}))
    head = f'kind = "{kind}"\nversion = {version}\n'
    tree.edit(path, next(table for table in tables(path.read_text(), "format") if head in table), "")
    return f"has {kind} {version}, which is not in the policy", f"{kind}-{version}"


@defect()
def fixture_said_to_be_missing(tree: Tree, random: Random) -> str:
    path = tree.policy / "formats.toml"
    version = random.choice([1, 3, 4])
    tree.edit(
        path, f'kind = "file-format"\nversion = {version}\n', f'kind = "file-format"\nversion = {version}\npending = "soon"\n'
    )
    return f"file-format {version} is marked as having no fixture, but"


@defect(4)
def options_added_that_nobody_observed(tree: Tree, random: Random) -> str:
    load = random.choice(["mmap = false", "crc32 = false", 'endianness = "big"'])
    text = f'[[options]]\nid = "brand-new"\nfamilies = ["torch-save"]\nsince = "2.7.0"\nload = {{ {load} }}\n'
    with (tree.policy / "promises.toml").open("a") as stream:
        stream.write("\n" + text)
    return "torch-2.13.0: not observed"


@defect(4, 1)
def options_changed_since_they_were_observed(tree: Tree, random: Random) -> str:
    tree.edit(tree.policy / "promises.toml", "load = { weights_only = true }", "load = { weights_only = true, crc32 = false }")
    return "torch-2.13.0: observed before the fixture, its golden or the options changed"


@defect(seeds=1)
def tolerances_tightened_to_nothing(tree: Tree, random: Random) -> str:
    path = tree.policy / "promises.toml"
    lines = [
        f"{line.split('=')[0]}= {'0' if line.startswith('max_ulp') else '0.0'}\n" if line.startswith("max_") else line
        for line in path.read_text().splitlines(True)
    ]
    path.write_text("".join(lines))
    return "newer-computes:different:"


@defect(seeds=1)
def strides_held_against_readers(tree: Tree, random: Random) -> str:
    path = tree.policy / "promises.toml"
    text = path.read_text()
    for table in tables(text, "tolerance"):
        text = text.replace(table, "") if 'kind = "strides"' in table else text
    path.write_text(text)
    return "newer-computes:different:"


@defect()
def forward_window_widened(tree: Tree, random: Random) -> str:
    tree.edit(tree.policy / "promises.toml", "forward_window_days = 14", f"forward_window_days = {random.randrange(3000, 9999)}")
    return "forward-window:refused:"
