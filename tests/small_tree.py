"""A small root of real evidence: the results of a few releases of the repository for a few recipes, and nothing else.

The repository's own evidence grows with every release. Tests that copy, damage and judge evidence hundreds of times use this part of it,
created anew for each test run, so that their cost does not depend on the size of the whole. Every promise in it holds or is waived, by
waivers drafted from its failures; so every other failure was caused by the test.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import re
import shutil
import tomllib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from tests.counted import relock
from tests.recordings import folder_of, readers_of
from torch_compat.corpus.corpus import FROZEN, read_frozen, write_frozen
from torch_compat.corpus.manifest import MANIFEST, SYNTHETIC, Synthetic, read_manifest, release_folder, write_manifest
from torch_compat.corpus.recorded import write_recorded
from torch_compat.judging.counting import count, write_lock
from torch_compat.judging.format_fixtures import labels
from torch_compat.judging.gathering import gather
from torch_compat.judging.judge import judge
from torch_compat.judging.judgement import Verdict
from torch_compat.policy.accepted import WAIVERS_LOCK
from torch_compat.policy.model import Format, Waiver
from torch_compat.releases.known import Known
from torch_compat.replay.generating import regenerate
from torch_compat.workspace import Root

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from torch_compat.corpus.manifest import Manifest
    from torch_compat.judging.evidence import Evidence

__all__ = ["RECIPES", "RELEASES", "make_small_tree", "once"]

RELEASES: Final = ("1.2.0", "1.5.1", "1.6.0", "1.12.1", "2.13.0")
RECIPES: Final = (
    "control_flow", "div", "div_inplace", "div_scalar", "div_scalar_fraction", "full", "full_dtype", "gelu",
    "integer_arithmetic", "linspace", "linspace_default_steps", "logspace", "mobile", "mobile_bytecode_4", "mobile_bytecode_5",
    "mobile_bytecode_6", "mobile_bytecode_7", "mobile_flatbuffer", "module_with_buffers", "package", "state_dict",
    "state_dict_stream", "views", "whole_module",
)  # fmt: skip
FORWARD_WINDOW: Final = "forward-window"
UPGRADED: Final = {f"file-format {version}" for version in (4, 5, 8, 9, 10)}
"""The formats that upgraders are for. Only with all of them the record of operators is judged, whole, as in the repository."""
WORDINGS: Final = "wordings-exact"
"""The rule that holds wordings to all recorded cells, of which a small tree has too few."""
EXPORTED: Final = frozenset({"export-versions-read", "export-minors-compatible", "export-opsets-tell", "export-unknown-refused"})
"""The rules about exported programs, of which a small tree has none."""
OPERATORS: Final = frozenset(
    {"bumps-in-time", "schema-breaks-upgraded", "upgraders-old-schemas", "upgraders-proven", "operator-waivers-exact"}
)


@dataclass(frozen=True)
class _Part:
    """One table of a policy file as it is written, with what stands between it and the next."""

    text: str
    name: str
    table: dict[str, Any]


def make_small_tree(source: Path, target: Path, releases: Collection[str] = RELEASES, recipes: Collection[str] = RECIPES) -> None:
    """Make a root that holds the part of another root's evidence that belongs to these releases and recipes.

    Parameters:
        source: a root with fixtures, policies and recorded observations.
        target: a folder that does not exist yet.
    """
    invented = {entry.label for entry in Root(source).policy().formats if entry.no_writer}
    kept, formats = _copy_corpus(source / "fixtures", target / "fixtures", releases, recipes, invented)
    readers = [
        replace(reader, cells={cell: item for cell, item in reader.cells.items() if cell[0] in kept})
        for reader in readers_of(source).values()
        if reader.release in releases
    ]
    write_recorded(folder_of(target), readers)
    for name in ("globals", "beside"):  # by which it is predicted who loads what
        shutil.copytree(source / "fixtures" / name, target / "fixtures" / name)
    operators = formats >= UPGRADED
    if operators:
        (target / "fixtures" / "operators").mkdir()
        for name in ("schemas.txt", "operator_versions.txt", "constants.txt", "custom_classes.txt"):
            shutil.copyfile(source / "fixtures" / "operators" / name, target / "fixtures" / "operators" / name)
        shutil.copytree(source / "reports" / "proofs", target / "reports" / "proofs")
    _copy_policies(source / "policies", target / "policies", releases, formats, operators=operators)
    _waive(target)


def once(folder: Path, name: str, make: Callable[[Path], object]) -> Path:
    """What ``make`` makes, a file or a folder, made by whichever process asks first; the others wait for it."""
    path, partial = folder / name, folder / f"{name}.partial"
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            shutil.rmtree(partial, ignore_errors=True)
            make(partial)
            partial.rename(path)
    return path


# ------------------------------------------------------------------------------------------------------------ the corpus


def _copy_corpus(
    source: Path, target: Path, releases: Collection[str], recipes: Collection[str], invented: Collection[str]
) -> tuple[set[str], set[str]]:
    """Copy recipes, probes, archives, manifests and pins; the ids of the entries, and the labels of the formats, that were kept.

    Of what is synthetic that is kept which stands for nothing but what no release writes (``invented``) and what one of these
    releases wrote.
    """
    (target / "recipes").mkdir(parents=True)
    for recipe in recipes:
        shutil.copyfile(source / "recipes" / f"{recipe}.py", target / "recipes" / f"{recipe}.py")
    for probes in ("probes", "deprecations"):
        shutil.copytree(source / probes, target / probes, ignore=shutil.ignore_patterns("__pycache__"))
    kept: set[str] = set()
    formats: set[str] = set()
    for release in releases:
        folder = release_folder(release)
        manifest = _restricted(read_manifest(source / folder / MANIFEST), recipes)
        write_manifest(target / folder / MANIFEST, manifest)
        for fixture in manifest.fixtures:
            shutil.copyfile(source / folder / fixture.file, target / folder / fixture.file)
            formats.update(labels(fixture))
        kept |= {entry.id for entry in manifest.entries}
    if (source / SYNTHETIC / MANIFEST).is_file():
        synthetic = _synthetic(source / SYNTHETIC, target / SYNTHETIC, formats | set(invented))
        kept |= {fixture.id for fixture in synthetic}
        formats |= {label for fixture in synthetic for label in fixture.formats}
    write_frozen(target / FROZEN, {name: pin for name, pin in read_frozen(source / FROZEN).items() if name in kept})
    return kept, formats


def _synthetic(source: Path, target: Path, known: Collection[str]) -> list[Synthetic]:
    """Copy what is synthetic and stands for these formats, with what made it; which that is."""
    manifest = read_manifest(source / MANIFEST)
    results = [fixture for fixture in manifest.fixtures if isinstance(fixture, Synthetic) and set(fixture.formats) <= set(known)]
    left_out = {MANIFEST} | ({fixture.file for fixture in manifest.fixtures} - {fixture.file for fixture in results})
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", *left_out))
    write_manifest(target / MANIFEST, replace(manifest, fixtures=tuple(results)))
    return results


def _restricted(manifest: Manifest, recipes: Collection[str]) -> Manifest:
    fixtures = tuple(fixture for fixture in manifest.fixtures if fixture.recipe in recipes)
    not_writable = tuple(refusal for refusal in manifest.not_writable if refusal.recipe in recipes)
    used = {fixture.writer for fixture in fixtures} | {refusal.writer for refusal in not_writable}
    writers = {name: identity for name, identity in manifest.writers.items() if name in used}
    return replace(manifest, writers=writers, fixtures=fixtures, not_writable=not_writable)


# ---------------------------------------------------------------------------------------------------------- the policies


def _copy_policies(source: Path, target: Path, releases: Collection[str], formats: set[str], *, operators: bool) -> None:
    """Copy the policies without waivers and wordings, for these releases, asking for no format that only others wrote."""
    left_out = {"waivers", WAIVERS_LOCK} | (set() if operators else {"operator_waivers"})
    shutil.copytree(source, target, ignore=lambda folder, names: left_out & set(names))

    def change(part: _Part) -> str:
        if part.name == "policy":
            names = json.dumps(list(releases))
            stated = re.sub(r"^(?:lines|settled|besides|writers|readers) = .*\n", "", part.text, flags=re.MULTILINE)
            return stated.replace("[policy]\n", f"[policy]\nwriters = {names}\nreaders = {names}\n")
        if part.name == "rule" and part.table["id"] in OPERATORS and not operators:
            return ""
        if (part.name == "message" and part.table["kind"] == "error") or (
            part.name == "rule" and part.table["id"] in EXPORTED | {WORDINGS}
        ):
            return ""
        if part.name == "behavior" and part.table["outcome"] == "unlisted" and not operators:
            return ""
        if part.name == "format" and Format.model_validate(part.table).label not in formats:
            return ""
        return part.text

    _rewrite(target / "torch", change)
    _unlink(target / "torch")


def _unlink(policy: Path) -> None:
    """Leave out the names of waivers that are not copied."""
    known = {path.stem for path in policy.glob("operator_waivers/*.toml")}

    def kept(line: re.Match[str]) -> str:
        names = [name for name in json.loads(line[1]) if name in known]
        return f"waivers = {json.dumps(names)}\n" if names else ""

    for path in policy.rglob("*.toml"):
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(r"(?m)^waivers = (\[.*\])\n", kept, text), encoding="utf-8")


def _rewrite(policy: Path, change: Callable[[_Part], str]) -> None:
    """Let every table of a policy's files be changed where it stands."""
    for path in sorted(policy.glob("*.toml")):
        head, *parts = re.split(r"(?m)^(?=\[)", path.read_text(encoding="utf-8"))
        path.write_text(head + "".join(change(_part(text)) for text in parts), encoding="utf-8")


def _part(text: str) -> _Part:
    ((name, table),) = tomllib.loads(text).items()
    return _Part(text, name, table[0] if isinstance(table, list) else table)


def _waive(root: Path) -> None:
    """Waive what fails, and expect the forward window to select nothing, where no releases are that near to each other."""
    place = Root(root)
    relock(root / "policies" / "torch")
    if (place.fixtures / "operators").is_dir():
        regenerate(place)  # of what is generated and read by judging, what is about this tree
    evidence = gather(place, place.policy(), as_of=None)
    report = judge(evidence)
    empty = any(rule == FORWARD_WINDOW for rule, _, _ in report.not_checked)

    def expect(part: _Part) -> str:
        if part.name != "rule" or part.table["id"] != FORWARD_WINDOW or not empty:
            return part.text
        opening, rest = part.text.split("\n", 1)
        return f'{opening}\nexpect_empty = "no two releases of this tree are near enough"\n{rest}'

    _rewrite(root / "policies" / "torch", expect)
    folder = root / "policies" / "torch" / "waivers"
    folder.mkdir()
    drafts = [f"covers = [\n{''.join(parts)}]\n" for parts in _covers(evidence).values()]
    drafts += [
        f"findings = [{json.dumps(finding.id)}]\n"
        for finding in report.findings
        if finding.verdict is Verdict.FAIL and not finding.recipes
    ]
    for number, draft in enumerate(drafts, 1):
        (folder / f"known-{number:02}.toml").write_text(_waiver(f"known-{number:02}", draft), encoding="utf-8")
    write_lock(place, count(place, accepting=True))


def _covers(evidence: Evidence) -> dict[tuple[str, str], list[str]]:
    """What waivers for all cells that fail are for, one waiver for each outcome and recipe: lines for writers with the same readers."""
    known = Known(evidence.policy.corpus.readers)
    failing: dict[tuple[str, str, str], dict[str, int]] = {}
    for entry in evidence.policy.rules:
        module = importlib.import_module(f"torch_compat.rules.{entry.id.replace('-', '_')}")
        for judgement in module.judge(evidence, entry) if hasattr(module, "judge") else ():
            cells = judgement.cells
            if cells is not None and judgement.verdict is Verdict.FAIL:
                writers = failing.setdefault((str(cells.outcome), cells.fixture.recipe, cells.options.id), {})
                readers = known.holding({reader.release for reader in evidence.readers.of(cells.readers)})
                writers[cells.fixture.release] = writers.get(cells.fixture.release, 0) | readers
    results: dict[tuple[str, str], list[str]] = {}
    for (outcome, recipe, options), writers in sorted(failing.items()):
        alike: dict[int, list[str]] = {}
        for writer, readers in writers.items():
            alike.setdefault(readers if writer != SYNTHETIC else -readers, []).append(writer)
        for readers, some in alike.items():
            wrote = f'writers = "{known.text(known.holding(some))}"' if readers > 0 else "synthetic = true"
            results.setdefault((outcome, recipe), []).append(
                f'    {{ outcome = "{outcome}", recipes = ["{recipe}"], {wrote}, readers = "{known.text(abs(readers))}", '
                f'options = ["{options}"] }},\n'
            )
    return results


def _waiver(name: str, draft: str) -> str:
    """A waiver, given what it is for."""
    values: dict[str, str] = {
        "id": json.dumps(name),
        "title": json.dumps(f"What is known as {name}"),
        "reason": '"as recorded"',
        "evidence": '"the repository has it"',
        "owner": '"the tests"',
    }
    missing = [key for key, field in Waiver.model_fields.items() if field.is_required() and key not in values]
    if missing:
        raise AssertionError(f"waivers have the new keys {missing}: say here what stands in them")
    return "[waiver]\n" + "".join(f"{key} = {value}\n" for key, value in values.items()) + draft
