"""The template of an upgrader: its table, recipe and test; and the remaining steps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from torch_compat.corpus.proofs import read_proof, stated_digest
from torch_compat.corpus.recipes import UNFINISHED
from torch_compat.errors import CorpusError, UsageError
from torch_compat.operators.bodies import is_call_itself
from torch_compat.operators.breaks import operator_of
from torch_compat.operators.call_signature import signature_of
from torch_compat.operators.history import History
from torch_compat.places import MOST_OF_A_PROGRAM, read_whole
from torch_compat.releases.release import Release
from torch_compat.scaffolding.created import create
from torch_compat.words import suggest
from torch_compat.writes import changing, put

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from torch_compat.operators.call_signature import SignatureParameter
    from torch_compat.policy import Policy
    from torch_compat.policy.upgraders import Upgrader
    from torch_compat.workspace import Root

__all__ = ["UPGRADERS", "UpgraderStep", "new_upgrader", "upgrader_steps"]

UPGRADERS: Final = "policies/torch/upgraders.toml"
ANNOTATIONS: Final = {
    "Tensor": "Tensor", "Scalar": "number", "int": "int", "SymInt": "int", "float": "float", "bool": "bool", "str": "str",
    "ScalarType": "int", "Layout": "int", "Device": "Device", "MemoryFormat": "int", "Dimname": "str",
}  # fmt: skip
"""TorchScript types, keyed by schema type."""
SCRIPTED: Final = Release("1.2.0")
GIVEN: Final = {"Scalar": "2", "int": "1", "SymInt": "1", "float": "0.5", "bool": "True", "str": "'none'"}
TABLE: Final = """
[[upgrader]]
id = "{id}"
operator = "{operator}"
bump = {bump}
old_schema = "{schema}"
body = '''
def {id}({parameters}) -> {returns}:
  return torch.{name}({arguments})'''
old = "{old}"
link = "proposed"
"""
RECIPE: Final = '''\
"""{operator} before file format {bump}: {mark}one sentence on what the change is>"""
import torch

FAMILY = "torchscript"
OPERATORS = ["{operator}"]
SINCE = "{since}"
WHY = "{why}"


class Model(torch.nn.Module):
    def forward(self, {inputs}):
        return torch.ops.aten.{name}({arguments})


def build():
    return torch.jit.script(Model())


def calls():
    # {mark}inputs that show the change, such as these: both signs, ties, NaN, infinities, subnormals, strided, empty, 0-dim>
    floats = torch.tensor([0.5, -0.0, float("nan"), float("inf"), 1e-40, -3e38])
    return [
        ("forward", ({first})),
        ("forward", ({second})),
    ]
'''
TEST: Final = '''\
"""{operator} from before file format {bump} still gives its old results: {id}."""

from pathlib import Path

from torch_compat.testing import prove_upgrader

UPGRADERS = Path(__file__).parents[2] / "{upgraders}"


def test_{id}() -> None:
    prove_upgrader(UPGRADERS, "{id}")
'''


class _Begun(NamedTuple):
    """The initial files of a new upgrader."""

    id: str
    recipe: str
    table: str
    files: dict[Path, str]


class UpgraderStep(NamedTuple):
    """One step on the way to a proven upgrader."""

    done: bool
    what: str
    command: str


def new_upgrader(place: Root, operator: str) -> tuple[Upgrader, list[str], list[Upgrader]]:
    """Return the unreleased upgrader of an operator, created if it does not exist; the written files; and its released upgraders.

    Parameters:
        operator: the operator with its overload: ``aten::foo.Bar``.

    Raises:
        UsageError: the release has no such operator, or an upgrader for it cannot be written in TorchScript.
        WriteError: its files cannot be written.
    """
    policy = place.policy(counted=False, drafts=True)
    own = [upgrader for upgrader in policy.upgraders if upgrader.operator == operator]
    released = [upgrader for upgrader in own if upgrader.since is not None]
    known = next((upgrader for upgrader in own if upgrader.since is None), None)
    if known is not None:
        return known, [], released
    begun = _begun(place, policy, operator)
    table = place.inside(UPGRADERS)
    with changing(place.path):
        create(place, begun.files)
        text = read_whole(table, MOST_OF_A_PROGRAM).decode("utf-8")
        put(table, text.rstrip("\n") + "\n" + begun.table, encoding="utf-8")
    created = [UPGRADERS, *(path.relative_to(place.path).as_posix() for path in begun.files)]
    after = place.policy(counted=False, drafts=True)
    return next(upgrader for upgrader in after.upgraders if upgrader.id == begun.id), created, released


def _begun(place: Root, policy: Policy, operator: str) -> _Begun:
    """Return the table, recipe and test of an upgrader for an operator as it is in the newest recorded release."""
    old = policy.corpus.readers[-1]
    base = operator.partition(".")[0]
    schemas = History(place.inside("fixtures/operators/schemas.txt"))
    having = {operator_of(text): text for text in schemas.schemas(base, old)}
    if operator not in having:
        raise _unknown_operator(operator, old, having, schemas)
    text = having[operator]
    signature = signature_of(text)
    arguments = signature.arguments
    bump = (
        max(format_.version for format_ in policy.formats if format_.kind == "file-format" and isinstance(format_.version, int))
        + 1
    )
    earlier = max((upgrader.bump for upgrader in policy.upgraders if upgrader.operator == operator), default=0)
    name = f"{re.sub('[.]', '_', operator.rpartition('::')[2])}_{earlier}_{bump - 1}"
    recipe = f"upgrade_{name}".lower()
    table = TABLE.format(
        id=name, operator=operator, bump=bump, schema=text, parameters=_parameters(arguments), returns="Tensor",
        name=base.rpartition("::")[2], arguments=_arguments(arguments), old=old,
    )  # fmt: skip
    table = table.replace("bump = ", f"first = {earlier}\nbump = ") if earlier else table
    tensors = [argument for argument in arguments if argument.type == "Tensor" and argument.default is None]
    names = ["x", "y", "z", "u", "v", "w"]
    if not tensors or len(tensors) > len(names) or "Tensor" not in signature.returns:
        raise UsageError(f"{operator} neither takes nor returns a tensor, so it cannot be proven", code="no-program")
    texts = [
        names[tensors.index(argument)] if argument in tensors else _given(argument, operator)
        for argument in arguments
        if argument.default is None
    ]
    texts = [
        f"{argument.name}={given}" if argument.kwarg_only else given
        for argument, given in zip((argument for argument in arguments if argument.default is None), texts, strict=True)
    ]
    since = _since(schemas, operator, policy)
    scripted = Release(since) < SCRIPTED
    why = "torch.jit.script has accepted modules since 1.2" if scripted else f"{operator} was added in {since}"
    since = str(SCRIPTED) if scripted else since
    program = RECIPE.format(
        operator=operator, bump=bump, mark=UNFINISHED, since=since, why=why, inputs=", ".join(names[: len(tensors)]),
        name=base.rpartition("::")[2], arguments=", ".join(texts), first=_inputs("floats", len(tensors)), second=_inputs("floats[::2]", len(tensors)),
    )  # fmt: skip
    files = {
        place.inside(f"fixtures/recipes/{recipe}.py"): program,
        place.inside(f"tests/upgraders/test_{name}.py"): TEST.format(operator=operator, bump=bump, id=name, upgraders=UPGRADERS),
    }
    return _Begun(name, recipe, table, files)


def _unknown_operator(operator: str, release: str, having: Iterable[str], schemas: History) -> UsageError:
    """The error for an operator that a release does not have; names its overloads, or the operators with similar names."""
    overloads = list(having)
    hint = f"it has {', '.join(overloads)}"
    if not overloads:
        base = operator.partition(".")[0]
        base = base if "::" in base else f"aten::{base}"
        overloads = sorted(operator_of(text) for text in schemas.schemas(base, release))
        hint = "write the operator with its namespace and overload, such as aten::add.Tensor"
        more = f"it has {', '.join(overloads)}" if overloads else suggest(base, sorted(schemas.names(release)))
        hint = f"{hint}; {more}" if more else hint
    return UsageError(f"torch {release} has no operator {operator!r}", hint=hint, code="unknown-operator")


def _inputs(text: str, count: int) -> str:
    return f"{', '.join([text] * count)}{',' if count == 1 else ''}"


def _given(parameter: SignatureParameter, operator: str) -> str:
    kind = parameter.type.partition("[")[0].removesuffix("?")
    if parameter.type.endswith("?"):
        return "None"
    if kind not in GIVEN:
        raise UsageError(
            f"{operator} takes {parameter.type} {parameter.name}, for which no recipe can be drafted", code="no-program"
        )
    return f"[{GIVEN[kind]}]" if "[" in parameter.type else GIVEN[kind]


def _annotation(kind: str) -> str:
    optional = kind.endswith("?")
    bare = kind.removesuffix("?")
    listed = re.fullmatch(r"(\w+)\[\d*\]", bare)
    word = ANNOTATIONS.get(listed[1] if listed else bare)
    if word is None:
        raise UsageError(f"an argument of type {kind} is not supported in an upgrader", code="no-program")
    text = f"List[{word}]" if listed else word
    return f"Optional[{text}]" if optional else text


def _parameters(arguments: tuple[SignatureParameter, ...]) -> str:
    texts = []
    starred = False
    for argument in arguments:
        if argument.kwarg_only and not starred:
            texts.append("*")
            starred = True
        texts.append(f"{argument.name}: {_annotation(argument.type)}")
    return ", ".join(texts)


def _arguments(arguments: tuple[SignatureParameter, ...]) -> str:
    return ", ".join(f"{argument.name}={argument.name}" if argument.kwarg_only else argument.name for argument in arguments)


def _since(schemas: History, operator: str, policy: Policy) -> str:
    """Return the first release of the corpus that has the operator."""
    writers = set(policy.corpus.writers)
    base = operator.partition(".")[0]
    return next(
        release
        for release in schemas.releases
        if release in writers and any(operator_of(text) == operator for text in schemas.schemas(base, release))
    )


def upgrader_steps(place: Root, upgrader: Upgrader) -> list[UpgraderStep]:
    """Return the steps for an upgrader in order, with their status."""
    recipe = f"upgrade_{upgrader.id}".lower()
    program = place.inside(f"fixtures/recipes/{recipe}.py")
    finished = program.is_file() and UNFINISHED not in read_whole(program, MOST_OF_A_PROGRAM).decode("utf-8")
    itself = is_call_itself(upgrader.body, upgrader.operator)
    digest = stated_digest(
        upgrader.operator, upgrader.first, upgrader.bump, upgrader.old_schema, upgrader.body, upgrader.old or ""
    )
    try:
        proof = read_proof(place.inside(f"reports/proofs/{upgrader.id}.jsonl"))
        proven = proof.stated == digest and not proof.examples and not proof.calls.get("changed", 0)
    except CorpusError:
        proven = False
    return [
        UpgraderStep(
            not itself,
            f"write the body of {upgrader.id} in {UPGRADERS}: the old results of {upgrader.operator}, with operators that do not change",
            f"torch-compat prove {upgrader.id}",
        ),
        UpgraderStep(
            finished,
            f"replace the placeholders in fixtures/recipes/{recipe}.py",
            f"torch-compat produce torch-{upgrader.old} --recipe {recipe}",
        ),
        UpgraderStep(proven, "record the proof", f"torch-compat prove {upgrader.id} --record"),
        UpgraderStep(False, "check that the proof detects a wrong body", f"torch-compat prove {upgrader.id} --mutate"),
        UpgraderStep(False, "judge only this change", f"torch-compat judge --upgrader {upgrader.id}"),
        UpgraderStep(
            False,
            "with a build of the change: load programs of the old release",
            f"torch-compat prove {upgrader.id} --record --reader torch-{upgrader.old} --reader python:PATH",
        ),
        UpgraderStep(
            False,
            "before merging: write and read the recipe with every release",
            f"torch-compat observe --recipe {recipe} --everywhere",
        ),
    ]
