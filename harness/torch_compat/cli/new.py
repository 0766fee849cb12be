"""``torch-compat new``: beginnings of things that people add. Each one works, and is refused until it says what only they know."""

from __future__ import annotations

import json
import keyword
import re
import sys
from typing import TYPE_CHECKING, get_args

import click

from torch_compat.cli._help import WithCommands
from torch_compat.cli._output import format_option, print_json, stdout
from torch_compat.cli._root import root_option
from torch_compat.corpus.corpus import FROZEN, read_frozen
from torch_compat.corpus.recipes import UNFINISHED
from torch_compat.errors import UsageError
from torch_compat.places import MOST_OF_A_PROGRAM, inside, read_whole
from torch_compat.policy import Family
from torch_compat.policy.counts import ACCEPT
from torch_compat.policy.deprecations import KINDS
from torch_compat.policy.table_base import IDENTIFIER
from torch_compat.releases.known import Known
from torch_compat.releases.release import Release
from torch_compat.releases.sets import Interval, ReleaseSet
from torch_compat.workspace import PACKAGED, find_root
from torch_compat.writes import changing, put

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from torch_compat.judging.findings import Finding
    from torch_compat.policy import CalendarRelease, Policy
    from torch_compat.workspace import Root

__all__ = ["new"]

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_TAKEN = sys.stdlib_module_names | {"numpy", "torch"}  # the worker runs a recipe as the module of its name

_HEAD = '''\
"""{mark}one sentence on what this checks, and why releases may disagree about it>"""
import torch

FAMILY = "{family}"
OPERATORS = {operators}
SINCE = "{since}"
{why}

'''
_PROGRAM = """\
class Model(torch.nn.Module):
    def forward(self, x, y):
        return x + y, x * y


def build():
    return torch.jit.script(Model())

"""
_CALLS = """
def calls():
    # {mark}inputs for your operators, such as these: both signs, ties, NaN, infinities, extremes, strided, empty, 0-dim, ints>
    floats = torch.tensor([0.5, -0.0, float("nan"), float("inf"), 1e-40, -3e38])
    ints = torch.tensor([7, -7, 0, -1, 2 ** 53 + 1, -(2 ** 63)])
    return [
        ("forward", (floats, floats.flip(0))),
        ("forward", (ints, floats)),
        ("forward", (ints[::2], ints[1::2])),
        ("forward", (floats[:0], floats[:0])),
        ("forward", (torch.tensor(-7), torch.tensor(2))),
    ]
"""
_VALUES = """\
def build():
    # {mark}the value to save, such as this: signs, NaN, infinities, extremes, a view, empty, 0-dim, ints>
    base = torch.tensor([[0.5, -0.0, float("nan")], [float("inf"), 1e-40, -3e38]])
    return {{"base": base, "view": base.t()[1:], "ints": torch.tensor([-(2 ** 63), 7]), "empty": torch.zeros(0)}}
"""
_PACKAGE = """

def write(made, path):
    from torch.package import PackageExporter

    with PackageExporter(path) as exporter:
        exporter.save_pickle("model", "object.pkl", made)
"""
_EXPORT = """\
class Model(torch.nn.Module):
    def forward(self, x, y):
        return x + y, x * y


def build():
    return torch.export.export(Model(), (torch.ones(6), torch.ones(6)))


def calls():
    # {mark}inputs for your operators, with the shapes and dtypes that build() exports, such as these: both signs, NaN, infinities>
    floats = torch.tensor([0.5, -0.0, float("nan"), float("inf"), 1e-40, -3e38])
    return [("forward", (floats, floats.flip(0))), ("forward", (floats, torch.zeros(6)))]
"""
_BODIES = {
    "torchscript": _PROGRAM + _CALLS,
    "torch-save": _VALUES,
    "mobile": _PROGRAM + _CALLS,
    "package": _VALUES + _PACKAGE,
    "export": _EXPORT,
}
_SINCE = {
    "torchscript": ("1.2.0", "torch.jit.script accepts modules since 1.2"),
    "torch-save": ("1.0.0", ""),
    "mobile": ("1.5.0", "_save_for_lite_interpreter is new in 1.5"),
    "package": ("1.8.1", "torch.package is new in 1.8"),
    "export": ("2.1.0", "torch.export.save is new in 2.1"),
}
"""The first release that writes each family's beginning, and why none before it does."""
_PROGRAMS = frozenset({"torchscript", "mobile", "export"})


@click.group(cls=WithCommands)
def new() -> None:
    """Create a recipe, deprecation, upgrader, rule or waiver from a template."""


@new.command()
@click.argument("name")
@click.option(
    "--family", required=True, type=click.Choice(get_args(Family)), help="Family of the archives that the recipe writes."
)
@root_option
@format_option
def recipe(name: str, family: Family, root: Path | None, format_: str) -> int:
    """Create the recipe fixtures/recipes/NAME.py.

    The template is a small recipe that works, with placeholders to replace. `produce` and `judge` reject it until all placeholders are
    replaced.
    """
    place = find_root(root)
    place.complete()
    policy = place.policy()
    _refuse_name(name, place.inside("fixtures/recipes"))
    path = place.inside(f"fixtures/recipes/{name}.py")
    since = _earliest(policy, family)
    writer = policy.corpus.writers[-1]
    text = _text(family, since)
    _begin(place, {path: text})
    lines = [number for number, line in enumerate(text.splitlines(), 1) if UNFINISHED in line]
    commands = [
        f"torch-compat readers build torch-{writer}",
        f"torch-compat produce torch-{writer} --recipe {name}",
        f"torch-compat observe --reader torch-{writer} --fixture torch-{writer}/{name} --show",
        "torch-compat judge",
    ]
    shown = path.relative_to(place.path).as_posix()
    if format_ == "json":
        print_json({"recipe": name, "path": shown, "family": family, "since": since.version, "replace": lines, "next": commands})
        return 0
    console = stdout()
    numbers = " and ".join(map(str, lines))
    console.print(f"created {shown}", markup=False)
    console.print(f"Replace {UNFINISHED}...> in lines {numbers}, and correct OPERATORS and SINCE. Then run:", markup=False)
    for command in commands:
        console.print(f"  {command}", markup=False, soft_wrap=True)
    return 0


def _refuse_name(name: str, folder: Path) -> None:
    """Refuse a name that is none, is taken, or once was: fixtures outlive the recipe that wrote them.

    Raises:
        UsageError: the name cannot be used.
        CorpusError: the pins of fixtures cannot be read.
    """
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise UsageError(
            f"{name!r} is not a valid recipe name",
            hint="use a Python identifier of lower-case words, such as floor_divide",
            code="bad-name",
        )
    if name in _TAKEN:
        raise UsageError(f"{name!r} is the name of a module that recipes may import", hint="choose another name", code="bad-name")
    path = inside(folder, f"{name}.py")
    if path.exists():
        raise UsageError("already exists", where=str(path), code="exists")
    frozen = inside(folder.parent, FROZEN)
    written = [pin for pin in (read_frozen(frozen) if frozen.exists() else {}) if pin.partition("/")[2] == name]
    if written:
        raise UsageError(
            f"an earlier recipe with this name wrote {', '.join(written)}", hint="choose another name", code="exists"
        )


def _earliest(policy: Policy, family: Family) -> CalendarRelease:
    """The first release of the calendar that writes the family's beginning.

    Raises:
        UsageError: the calendar has none.
    """
    first = Release(_SINCE[family][0])
    for release in policy.calendar:
        if release.parsed >= first:
            return release
    raise UsageError(f"no release in the calendar writes the family {family}, which starts with torch {first}", code="no-writer")


def _text(family: Family, since: CalendarRelease) -> str:
    reason = _SINCE[family][1]
    why = f'WHY = "{reason}"\n' if reason else ""
    operators = '["aten::add.Tensor", "aten::mul.Tensor"]' if family in _PROGRAMS else "[]"
    return (_HEAD + _BODIES[family]).format(mark=UNFINISHED, family=family, operators=operators, since=since.version, why=why)


# ----------------------------------------------------------------------------------------------------- policies and rules

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

    from torch_compat.policy import RuleEntry
    from torch_compat.judging.evidence import Evidence

__all__ = ["judge"]

ASKS: Final = Asks.OTHER  # the class says what else a rule may ask; only one rule may ask a cell for its values


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every cell; cells that are alike are judged together."""
    for cells in evidence.cells:
        # Decide whether the promise holds: Verdict.PASS without a cause, or Verdict.FAIL with one. Until then nothing is checked.
        cause = Cause("half done", cells.fixture.recipe, f"{{cells.subject}}: this rule does not define yet what must hold")
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
# expires = 2027-01-31  # only if the behavior can still change: the first day on which the waiver no longer holds
"""
_COVERS = """\
# One line for each part. Leave a set open-ended, such as "1.9.0..", if the cause lasts. `torch-compat accept` pins the differences.
covers = [
    {{ outcome = "different", recipes = ["{mark}the recipes>"], writers = "{mark}the writers>", readers = "{mark}the readers>" }},
]"""
_LINE = re.compile(r'^(\s*[a-z_]+ = )"(?:[^"\\]|\\.)*"(\s*)# (.*)$')


@new.command()
@click.argument("name")
@click.option(
    "--kind", required=True, type=click.Choice(KINDS), help="Kind of deprecation, which selects the timeline that it must follow."
)
@root_option
@format_option
def deprecation(name: str, kind: str, root: Path | None, format_: str) -> int:
    """Create a deprecation: a policy file and a probe.

    Writes policies/torch/deprecations/NAME.toml, from the worked example of its kind, and its probe in fixtures/deprecations. Until
    all placeholders are replaced, every command that loads the policy fails and names them.
    """
    place = find_root(root)
    place.complete()
    policy = place.policy()
    _refuse_id(name, "deprecation")
    probe = re.sub(r"[.-]", "_", name)
    path = place.inside(f"policies/torch/deprecations/{name}.toml")
    program = place.inside(f"fixtures/deprecations/{probe}.py")
    first = next(iter(policy.calendar)).version
    source = _PROBE + (_BEHAVES if kind in _CHANGES else "")
    _begin(place, {path: _deprecation_text(place, name, kind, probe), program: source.format(mark=UNFINISHED, since=first)})
    newest = policy.corpus.readers[-1]
    commands = [
        f"torch-compat observe --reader torch-{newest} --deprecations --record",
        f"torch-compat explain {name}",
        "torch-compat deprecations",
    ]
    return _tell(place, "deprecation", name, [path, program], commands, format_)


@new.command()
@click.argument("operator", metavar="OPERATOR")
@root_option
@format_option
def upgrader(operator: str, root: Path | None, format_: str) -> int:
    """Create an upgrader for OPERATOR (aten::foo.Bar): a table, a recipe and a test.

    Adds an [[upgrader]] table to policies/torch/upgraders.toml, for the schema that the newest release has and the next file format
    version, and writes the recipe fixtures/recipes/upgrade_ID.py and the test tests/upgraders/test_ID.py. Then prints what is left, step by
    step. Run the command again to see what is left now.
    """
    from torch_compat.cli._new_upgrader import UPGRADERS, begun, steps  # noqa: PLC0415 - reads every schema of every release

    place = find_root(root)
    place.complete()
    policy = place.policy()
    known = next((one for one in policy.upgraders if one.operator == operator and one.since is None), None)
    created: list[str] = []
    if known is None:
        made = begun(place, policy, operator)
        table = place.inside(UPGRADERS)
        with changing(place.path):
            _begin(place, made.files)
            text = read_whole(table, MOST_OF_A_PROGRAM).decode("utf-8")
            put(table, text.rstrip("\n") + "\n" + made.table, encoding="utf-8")
        created = [UPGRADERS, *(path.relative_to(place.path).as_posix() for path in made.files)]
        known = next(one for one in place.policy().upgraders if one.id == made.id)
    left = steps(place, known)
    if format_ == "json":
        rows = [{"done": one.done, "what": one.what, "command": one.command} for one in left]
        print_json({"upgrader": known.id, "files": created, "steps": rows})
        return 0
    console = stdout()
    for path in created:
        console.print(f"{'added to' if path == UPGRADERS else 'created'} {path}", markup=False, soft_wrap=True)
    for number, one in enumerate(left, 1):
        console.print(f"{number}. {'done: ' if one.done else ''}{one.what}", markup=False, soft_wrap=True)
        if not one.done:
            console.print(f"   {one.command}", markup=False, soft_wrap=True)
    return 0


@new.command()
@click.argument("name")
@root_option
@format_option
def rule(name: str, root: Path | None, format_: str) -> int:
    """Create a rule: a module and a policy entry.

    Writes harness/torch_compat/rules/NAME.py, and adds a [[rule]] to policies/torch/promises.toml. Until all placeholders are
    replaced, judging fails and names them.
    """
    place = find_root(root)
    place.complete()
    policy = place.policy()
    _refuse_id(name, "rule")
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
        _begin(place, {path: _RULE.format(mark=UNFINISHED)})
        text = read_whole(promises, MOST_OF_A_PROGRAM).decode("utf-8")
        put(promises, _with_rule(text, _RULE_ENTRY.format(mark=UNFINISHED, name=name)), encoding="utf-8")
    return _tell(place, "rule", name, [path, promises], [f"torch-compat explain {name}", "torch-compat judge"], format_)


@new.command()
@click.argument("name")
@click.option(
    "--finding",
    "ids",
    multiple=True,
    metavar="ID",
    help="Finding to waive; its cells are filled in. Can be repeated.",
)
@root_option
@format_option
def waiver(name: str, ids: tuple[str, ...], root: Path | None, format_: str) -> int:
    """Create the waiver policies/torch/waivers/NAME.toml.

    Until all placeholders are replaced, every command that loads the policy fails and names them.
    """
    place = find_root(root)
    place.complete()
    policy = place.policy()
    _refuse_id(name, "waiver")
    path = place.inside(f"policies/torch/waivers/{name}.toml")
    if path.exists():
        raise UsageError("already exists", where=str(path), code="exists")
    covers, shown = _COVERS.format(mark=UNFINISHED), ""
    if ids:
        findings = _findings(place, policy, ids)
        covers, shown = _covers(findings, policy), f"\nShown by: {findings[0].reproduce}"
    _begin(place, {path: _WAIVER.format(mark=UNFINISHED, name=name, covers=covers, shown=shown)})
    return _tell(place, "waiver", name, [path], [ACCEPT, "torch-compat judge"], format_)


def _refuse_id(name: str, what: str) -> None:
    if not re.fullmatch(IDENTIFIER, name):
        raise UsageError(
            f"{name!r} is not a valid name for a {what}",
            hint="use lower-case words joined by hyphens, such as floor-divide",
            code="bad-name",
        )


def _begin(place: Root, texts: dict[Path, str]) -> None:
    """Write new files, all of them or none.

    Raises:
        UsageError: one is there already.
        WriteError: they cannot be written.
    """
    with changing(place.path):
        for path, text in texts.items():
            if path.exists():
                raise UsageError("already exists", where=str(path), code="exists")
            put(path, text, encoding="utf-8")


def _deprecation_text(place: Root, name: str, kind: str, probe: str) -> str:
    """The worked example of a kind, with everything that only its author knows left open; what comes later commented out."""
    folders = (place.inside("policies/examples"), PACKAGED / "examples")
    example = next((path for folder in folders if (path := inside(folder, f"{kind}.toml")).is_file()), None)
    if example is None:
        raise UsageError(f"there is no worked example policies/examples/{kind}.toml", where=str(place.path), code="no-example")
    schema, _story, *lines = read_whole(example, MOST_OF_A_PROGRAM).decode().splitlines()
    made = [schema.replace("../policy", "../../policy")]
    for line in lines:
        match = _LINE.match(line)
        if match is not None:
            made.append(f'{match[1]}"{UNFINISHED}{match[3]}>"')
        elif not line.startswith("#"):
            made.append(line)
    text = (
        "\n".join(made)
        .replace(f'id = "{kind}"', f'id = "{name}"')
        .replace(f'probe = "{kind.replace("-", "_")}"', f'probe = "{probe}"')
    )
    return _only_begun(text)


def _only_begun(text: str) -> str:
    """A deprecation that has come as far as its warning: later events and statements are comments, for when they come."""
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
    """The policy with one more rule, after the last one but the one that counts waivers, which comes last."""
    at = text.rfind('[[rule]]\nid = "waivers-exact"')
    if at < 0:
        return text.rstrip("\n") + "\n" + entry
    return text[:at] + entry.lstrip("\n") + "\n" + text[at:]


def _covers(findings: list[Finding], policy: Policy) -> str:
    """What a waiver for these findings says that it covers: for each finding one part."""
    known = Known(one.version for one in policy.calendar)
    scope = known.holding(policy.corpus.readers)
    parts, others = [], []
    for one in findings:
        if not one.recipes:
            others.append(f"    {json.dumps(one.id)},\n")
            continue
        writers = [version for version in one.writers if version in known]
        wrote = f"writers = {json.dumps(_set(known, scope, writers))}" if writers else "synthetic = true"
        options = "" if one.options == "default" else f", options = {json.dumps([one.options])}"
        parts.append(
            f"    {{ outcome = {json.dumps(one.what)}, recipes = {json.dumps(list(one.recipes))}, {wrote}, "
            f"readers = {json.dumps(_set(known, scope, one.readers))}{options} }},\n"
        )
    covers = f"covers = [\n{''.join(parts)}]" if parts else ""
    names = f"findings = [\n{''.join(others)}]" if others else ""
    return "\n".join(filter(None, (covers, names)))


def _set(known: Known, scope: int, versions: Iterable[str]) -> str:
    """Releases of the corpus as a set, in which those between them that are not of the corpus are, too."""
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


def _findings(place: Root, policy: Policy, ids: tuple[str, ...]) -> list[Finding]:
    """The failing findings of these ids.

    Raises:
        UsageError: one does not fail now, or is about no reader, so that no waiver can cover it.
    """
    from torch_compat.judging.gathering import gather, uncollected  # noqa: PLC0415 - only where findings are named
    from torch_compat.judging.judge import judge  # noqa: PLC0415
    from torch_compat.judging.judgement import Verdict  # noqa: PLC0415

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


def _tell(place: Root, what: str, name: str, paths: list[Path], commands: list[str], format_: str) -> int:
    """Say what was made, which lines want something, and what comes then."""
    made = []
    for path in paths:
        lines = [number for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1) if UNFINISHED in line]
        made.append({"path": path.relative_to(place.path).as_posix(), "replace": lines})
    if format_ == "json":
        print_json({"begun": what, "name": name, "files": made, "next": commands})
        return 0
    console = stdout()
    for one in made:
        console.print(f"created {one['path']}", markup=False, soft_wrap=True)
        console.print(f"  replace {UNFINISHED}...> in lines {', '.join(map(str, one['replace']))}", markup=False, soft_wrap=True)
    console.print("Then run:", markup=False)
    for command in commands:
        console.print(f"  {command}", markup=False, soft_wrap=True)
    return 0
