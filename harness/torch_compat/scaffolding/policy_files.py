"""Templates of deprecations, rules and waivers: policy files and the files that belong to them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from torch_compat.corpus.recipes import UNFINISHED
from torch_compat.errors import UsageError
from torch_compat.judging.gathering import gather, uncollected
from torch_compat.judging.judge import judge
from torch_compat.judging.judgement import Verdict
from torch_compat.places import MOST_OF_A_PROGRAM, inside, read_whole
from torch_compat.policy.counts import ACCEPT
from torch_compat.releases.known import Known
from torch_compat.releases.release import Release
from torch_compat.releases.sets import Interval, ReleaseSet
from torch_compat.scaffolding.created import Created, create, refuse_id, taken
from torch_compat.words import american
from torch_compat.workspace import PACKAGED
from torch_compat.writes import changing, put

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from torch_compat.judging.findings import Finding
    from torch_compat.policy import Policy
    from torch_compat.workspace import Root

__all__ = ["new_deprecation", "new_rule", "new_waiver"]

_PROBE = '''\
"""{mark}one sentence on what is deprecated>"""
import torch

SUBJECT = "{mark}the dotted name whose docstring mentions the deprecation, such as torch.symeig>"
SINCE = "{since}"


def deprecated():
    # {mark}a few lines that use the deprecated feature, such as these>
    return torch.ones(2).sum()


def alternative():
    # {mark}the same with the alternative, such as these>
    return torch.ones(2).sum()
'''
_BEHAVES = """

def behaves(value):
    # {mark}how to tell the new result from the old one, such as this>
    return "new" if value.dtype == torch.int64 else "old"
"""
_CHANGES = frozenset({"mode-change", "default-change", "behaviour-change"})
_RULE = '''\
"""{mark}one sentence on what must hold>.

What: {mark}what exactly is checked, and what fails>

Why: {mark}why it matters to users>

Example: {mark}one case that fails>

Reference: {mark}where the promise comes from>
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from torch_compat.judging.judgement import Asks, Cause, Judgement, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import RuleEntry

__all__ = ["judge"]

ASKS: Final = Asks.OTHER  # or Asks.LOADING, Asks.BOOKKEEPING; Asks.VALUES only if no other rule with Asks.VALUES judges these cells


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every cell; cells that are alike are judged together."""
    for cells in evidence.cells:
        # Replace these two lines: yield Verdict.PASS without a cause if the promise holds, and Verdict.FAIL with a cause if it does not.
        cause = Cause("unfinished", cells.fixture.recipe, f"{{cells.subject}}: this rule is still the template and checks nothing")
        yield Judgement(rule.id, Verdict.NOT_CHECKED, cells.subject, cause, cells)
'''
_RULE_ENTRY = """
[[rule]]
id = "{name}"
asks = "{mark}what is promised, in one sentence>"
source = "{mark}where the promise comes from>"
"""
_WAIVER = """\
#:schema ../../policy.schema.json
[waiver]
id = "{name}"
title = "{mark}what happened, in one line>"
{covers}
reason = \"\"\"
{mark}why this is accepted>\"\"\"
evidence = \"\"\"
{mark}what shows that the cause is understood>{shown}\"\"\"
owner = "{mark}the person responsible>"
# expires = 2027-01-31  # only if the behavior can still change: the first day on which the waiver no longer applies
"""
_COVERS = """\
# One line for each part. Leave a set open-ended, such as "1.9.0..", if the cause persists. `torch-compat accept` pins the differences.
covers = [
    {{ outcome = "different", recipes = ["{mark}the recipes>"], writers = "{mark}the writers>", readers = "{mark}the readers>" }},
]"""
_LINE = re.compile(r'^(\s*[a-z_]+ = )"(?:[^"\\]|\\.)*"(\s*)# (.*)$')


def new_deprecation(place: Root, name: str, kind: str) -> Created:
    """Write the policy file of a deprecation, based on the example of its kind, and its probe.

    Raises:
        UsageError: the name cannot be used, or the kind has no example.
        WriteError: they cannot be written.
    """
    policy = place.policy(counted=False, drafts=True)
    refuse_id(name, "deprecation")
    probe = re.sub(r"[.-]", "_", name)
    path = place.inside(f"policies/torch/deprecations/{name}.toml")
    program = place.inside(f"fixtures/deprecations/{probe}.py")
    first = next(iter(policy.calendar)).version
    source = _PROBE + (_BEHAVES if kind in _CHANGES else "")
    create(place, {path: _deprecation_text(place, name, kind, probe), program: source.format(mark=UNFINISHED, since=first)})
    commands = (
        f"torch-compat observe --reader torch-{policy.corpus.readers[-1]} --deprecations --record",
        f"torch-compat explain {name}",
        "torch-compat deprecations",
    )
    return Created("deprecation", name, (path, program), commands)


def new_rule(place: Root, name: str) -> Created:
    """Write the module of a rule, and add its entry to the policy.

    Raises:
        UsageError: the name cannot be used, or the tree has no code.
        WriteError: they cannot be written.
    """
    policy = place.policy(counted=False, drafts=True)
    refuse_id(name, "rule")
    folder = place.inside("harness/torch_compat/rules")
    if not folder.is_dir():
        raise UsageError(
            "has no harness/torch_compat/rules, where rules are defined",
            where=str(place.path),
            hint="run the command in a checkout of torch-compat",
        )
    if any(entry.id == name for entry in policy.rules):
        raise UsageError(f"the policy already has a rule {name!r}", code="exists")
    path = inside(folder, f"{name.replace('-', '_')}.py")
    promises = place.inside("policies/torch/promises.toml")
    with changing(place.path):
        create(place, {path: _RULE.format(mark=UNFINISHED)})
        text = read_whole(promises, MOST_OF_A_PROGRAM).decode("utf-8")
        put(promises, _with_rule(text, _RULE_ENTRY.format(mark=UNFINISHED, name=name)), encoding="utf-8")
    return Created("rule", name, (path,), (f"torch-compat explain {name}", "torch-compat judge"), (promises,))


def new_waiver(place: Root, name: str, ids: Sequence[str]) -> Created:
    """Write a waiver.

    Parameters:
        ids: ids of failing findings, whose cells it covers.

    Raises:
        UsageError: the name cannot be used, or a finding does not exist.
        WriteError: it cannot be written.
    """
    policy = place.policy(counted=bool(ids), drafts=True)  # to judge, the counts are needed; other drafts are not
    refuse_id(name, "waiver")
    path = place.inside(f"policies/torch/waivers/{name}.toml")
    if path.exists():
        raise taken(path)
    covers, shown = _COVERS.format(mark=UNFINISHED), ""
    if ids:
        findings = _findings(place, policy, ids)
        covers, shown = _covers(findings, policy), f"\nShown by: {findings[0].reproduce}"
    create(place, {path: _WAIVER.format(mark=UNFINISHED, name=name, covers=covers, shown=shown)})
    return Created("waiver", name, (path,), ("torch-compat accept", ACCEPT, "torch-compat judge"))


def _deprecation_text(place: Root, name: str, kind: str, probe: str) -> str:
    """Return the example of a kind with placeholders for what only its author knows, and with later stages commented out."""
    folders = (place.inside("policies/examples"), PACKAGED / "examples")
    example = next((path for folder in folders if (path := inside(folder, f"{american(kind)}.toml")).is_file()), None)
    if example is None:
        raise UsageError(
            f"there is no worked example policies/examples/{american(kind)}.toml", where=str(place.path), code="no-example"
        )
    schema, _story, *lines = read_whole(example, MOST_OF_A_PROGRAM).decode().splitlines()
    results = [schema.replace("../policy", "../../policy")]
    for line in lines:
        match = _LINE.match(line)
        if match is not None:
            results.append(f'{match[1]}"{UNFINISHED}{match[3]}>"')
        elif not line.startswith("#"):
            results.append(line)
    text = (
        "\n".join(results)
        .replace(f'id = "{american(kind)}"', f'id = "{name}"')
        .replace(f'probe = "{american(kind).replace("-", "_")}"', f'probe = "{probe}"')
    )
    return _only_begun(text)


def _only_begun(text: str) -> str:
    """Return a deprecation at the warning stage: later events and statements are commented out."""
    head, *blocks = re.split(r"(?m)^(?=\[\[)", text)
    kept = [head]
    stated = False
    for block in blocks:
        begun = 'what = "alternative"' in block or 'what = "warned"' in block
        if block.startswith("[[deprecation.docs]]"):
            begun, stated = not stated, True
        quiet = block.replace(UNFINISHED, "").replace('>"', '"')
        kept.append(block if begun else "".join(f"# {line}\n" if line else "\n" for line in quiet.rstrip("\n").split("\n")))
    return "".join(kept).rstrip("\n") + "\n"


def _with_rule(text: str, entry: str) -> str:
    """Return the policy with one more rule, before the rule that counts waivers, which stays last."""
    at = text.rfind('[[rule]]\nid = "waivers-exact"')
    if at < 0:
        return text.rstrip("\n") + "\n" + entry
    return text[:at] + entry.lstrip("\n") + "\n" + text[at:]


def _covers(findings: list[Finding], policy: Policy) -> str:
    """Return the coverage of a waiver for these findings: one part per finding."""
    known = Known(item.version for item in policy.calendar)
    scope = known.holding(policy.corpus.readers)
    parts, others = [], []
    for finding in findings:
        if not finding.recipes:
            others.append(f"    {json.dumps(finding.id)},\n")
            continue
        writers = [version for version in finding.writers if version in known]
        wrote = f"writers = {json.dumps(_set(known, scope, writers))}" if writers else "synthetic = true"
        options = "" if finding.options == "default" else f", options = {json.dumps([finding.options])}"
        parts.append(
            f"    {{ outcome = {json.dumps(finding.what)}, recipes = {json.dumps(list(finding.recipes))}, {wrote}, "
            f"readers = {json.dumps(_set(known, scope, finding.readers))}{options} }},\n"
        )
    covers = f"covers = [\n{''.join(parts)}]" if parts else ""
    names = f"findings = [\n{''.join(others)}]" if others else ""
    return "\n".join(filter(None, (covers, names)))


def _set(known: Known, scope: int, versions: Iterable[str]) -> str:
    """Return releases of the corpus as a release set, which also includes releases between them outside the corpus."""
    bits = known.holding(versions)
    spans: list[Interval] = []
    first = last = None
    for version in known.of(scope):
        if known.bit(version) & bits:
            first, last = first or version, version
        elif first and last:
            spans.append(Interval(Release(first), Release(last)))
            first = None
    if first and last:
        spans.append(Interval(Release(first), None))
    return str(ReleaseSet(spans))


def _findings(place: Root, policy: Policy, ids: Sequence[str]) -> list[Finding]:
    """Return the failing findings with these ids.

    Raises:
        UsageError: one does not currently fail, or has no reader, so that no waiver can cover it.
    """
    with uncollected():
        report = judge(gather(place, policy, as_of=None))
    failing = {finding.id: finding for finding in report.findings if finding.verdict is Verdict.FAIL}
    for name in ids:
        if name not in failing:
            raise UsageError(
                f"there is no failing finding {name!r}",
                hint="`torch-compat judge --full` prints the ids of failing findings",
                code="unknown-id",
            )
        if not failing[name].readers:
            raise UsageError(f"{name!r} is not about a reader, so it cannot be waived and must be fixed", code="not-waivable")
    return [failing[name] for name in ids]
