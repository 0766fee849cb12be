"""The generated files of the tree, with the text that each must have.

:data:`REGENERATED` lists them in the order in which they are created: files derived from recorded facts come before those
that need a judgement. New generated files are added to this list; `nox -s generate` and `torch-compat admit` both process it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from torch_compat.corpus.surveys import FILES
from torch_compat.corpus.weights_only import weights_only_policy
from torch_compat.errors import UsageError
from torch_compat.judging.forgiven import forgiven
from torch_compat.places import inside, read_whole
from torch_compat.policy import policy_schema
from torch_compat.releases.release import Release
from torch_compat.report.exported_md import exported_md
from torch_compat.report.findings_md import findings_md
from torch_compat.report.release.compatibility_notes import Hand, noted, notes_md, read_hand
from torch_compat.report.release.published import compared, published_md, read_published
from torch_compat.report.release.report import release_report, reported_releases
from torch_compat.report.release.to_md import release_md, releases_md
from torch_compat.report.to_text import summary_text
from torch_compat.report.tolerances_md import tolerances_md
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from torch_compat.judging.evidence import Evidence
    from torch_compat.judging.findings import Named
    from torch_compat.judging.judge import Report
    from torch_compat.report.release.report import ReleaseReport
    from torch_compat.workspace import Root

__all__ = [
    "COMPARED",
    "HAND",
    "NOTES",
    "PUBLISHED",
    "REGENERATED",
    "RELEASES",
    "Generated",
    "JudgedTree",
    "hand_of",
    "release_documents",
    "with_block",
]

RELEASES: Final = "reports/releases"
NOTES: Final = "reports/notes"
PUBLISHED: Final = "reports/published.toml"
COMPARED: Final = "reports/published.md"
HAND: Final = ".toml"
"""File name suffix of hand-written notes about a release."""
_END: Final = "<!-- end of generated content -->"


@dataclass(frozen=True)
class JudgedTree:
    """The recorded evidence of a tree, and its judgement.

    Attributes:
        named: every judgement that a finding groups.
    """

    evidence: Evidence
    report: Report
    named: tuple[Named, ...]


@dataclass(frozen=True)
class Generated:
    """One file that is generated completely or in part.

    Attributes:
        path: the file, relative to the root. It is not created in a tree that does not have it.
        text: a function that returns the new text from the root, the old text, and a function that judges the recorded evidence.
        feeds: whether judging reads the file, so that it has to be repeated after a change.
    """

    path: str
    text: Callable[[Path, str, Callable[[], JudgedTree]], str]
    feeds: bool = False


def _schema(_root: Path, _old: str, _judged: Callable[[], JudgedTree]) -> str:
    return json.dumps(policy_schema(), indent=2, ensure_ascii=False) + "\n"


def _weights_only(root: Path, old: str, _judged: Callable[[], JudgedTree]) -> str:
    recorded = inside(root, f"fixtures/{FILES['weights_only'][0]}").is_file()
    return weights_only_policy(inside(root, "fixtures")) if recorded else old


def _findings(_root: Path, _old: str, judged: Callable[[], JudgedTree]) -> str:
    return findings_md(judged().report)


def _tolerances(_root: Path, _old: str, judged: Callable[[], JudgedTree]) -> str:
    evidence = judged().evidence
    return tolerances_md([tolerance for tolerance in evidence.policy.tolerances if tolerance.kind == "value"], forgiven(evidence))


def _exported(_root: Path, _old: str, judged: Callable[[], JudgedTree]) -> str:
    return exported_md(judged().evidence)


def _readme(_root: Path, old: str, judged: Callable[[], JudgedTree]) -> str:
    tree = judged()
    return with_block(with_block(old, "matrix", f"```\n{summary_text(tree.report)}\n```"), "corpus", _corpus(tree.evidence))


def _corpus(evidence: Evidence) -> str:
    """A description of the corpus in one paragraph."""
    scope, corpus = evidence.policy.corpus, evidence.corpus
    own = [manifest for manifest in corpus.manifests if manifest.release in scope.writers]
    fixtures, refusals = (sum(len(getattr(manifest, kind)) for manifest in own) for kind in ("fixtures", "not_writable"))
    families = ", ".join(
        f"`{family}`" for family in sorted({fixture.family for manifest in own for fixture in manifest.fixtures})
    )
    reading = " and read them" if scope.readers == scope.writers else f"; {len(scope.readers)} read them"
    return (
        f"{count_of(len(scope.writers), 'release')}, from {scope.writers[0]} to {scope.writers[-1]}, wrote archives{reading}.\n"
        f"They ran {count_of(len(corpus.recipes), 'recipe')} and wrote {count_of(fixtures, 'fixture')} with expected results (goldens). In {count_of(refusals, 'case')}, a release\n"
        f"could not run the recipe, and the reason is recorded. The families are {families}."
    )


REGENERATED: Final = (
    Generated("policies/policy.schema.json", _schema),
    Generated("policies/torch/weights_only.toml", _weights_only, feeds=True),
    Generated("reports/findings.md", _findings),
    Generated("reports/tolerances.md", _tolerances),
    Generated("reports/exported.md", _exported),
    Generated("README.md", _readme),
)
"""All generated files that take only seconds, in the order in which they are made. Files that judging counts and reads come
between those derived from recorded facts and those that only people read."""


def release_documents(judged: JudgedTree, hand: Callable[[str], bytes | None], published: bytes | None = None) -> dict[str, str]:
    """The report and the notes of every minor line, and a table of them, by path; also the comparison with published statements.

    Parameters:
        hand: returns the hand-written text about a release, by its version; None if there is none.
        published: the table of statements published by PyTorch; None if the tree has none.

    Raises:
        UsageError: hand-written text is invalid, or its evidence is gone.
    """
    texts: dict[str, str] = {}
    reports = []
    for release in reported_releases(judged.evidence):
        result = release_report(judged.evidence, judged.report, judged.named, release)
        reports.append(result)
        texts[f"{RELEASES}/{release}.md"] = release_md(result)
        where = f"{NOTES}/{release}{HAND}"
        written = hand(release)
        text = read_hand(written, where) if written is not None else Hand()
        noted(result, text, where)
        texts[f"{NOTES}/{release}.md"] = notes_md(result, text)
    texts[f"{RELEASES}/README.md"] = releases_md(reports)
    if published is not None:
        stated = [(item, _of_line(reports, item.version)) for item in read_published(published, PUBLISHED)]
        texts[COMPARED] = published_md(
            [compared(item, report, PUBLISHED) for item, report in stated if report],
            [item for item, report in stated if not report],
        )
    return texts


def _of_line(reports: Iterable[ReleaseReport], version: str) -> ReleaseReport | None:
    """The report for the minor line of a release; None if no release of the line is recorded."""
    line = Release(version).numbers[:2]
    return next((report for report in reports if Release(report.release).numbers[:2] == line), None)


def with_block(text: str, name: str, body: str) -> str:
    """Replace the body between ``<!-- generated: NAME -->`` and the next end mark, each on a line of its own.

    Raises:
        UsageError: the text does not have exactly one such block.
    """
    begin = f"<!-- generated: {name} -->"
    result = re.findall(rf"^{re.escape(begin)}$.*?^{re.escape(_END)}$", text, re.MULTILINE | re.DOTALL)
    if len(result) != 1:
        raise UsageError(
            f"has {count_of(len(result), 'block')} between {begin} and {_END}, expected one",
            hint="restore both markers",
            code="no-block",
        )
    return text.replace(result[0], f"{begin}\n{body}\n{_END}")


def hand_of(place: Root, report: ReleaseReport) -> Hand:
    """The hand-written text of a tree about a release.

    Raises:
        UsageError: the file is invalid, or the evidence of one of its items is gone.
    """
    name = f"{NOTES}/{report.release}{HAND}"
    path = place.inside(name)
    if not path.is_file():
        return Hand()
    hand = read_hand(read_whole(path), name)
    noted(report, hand, name)
    return hand
