"""Defects in the behavior of releases, each recorded consistently, as if the release had shown it: only a verdict can detect them."""

from __future__ import annotations

import base64
import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.planted.defects.table import defect, version_of
from torch_compat.corpus.corpus import load_corpus
from torch_compat.policy import load_policy
from torch_compat.replay.observe import observation
from torch_compat.replay.plan import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

    from tests.planted.conftest import Cells, Tree
    from tests.planted.defects.table import Plant
    from torch_compat.corpus.manifest import Fixture
    from torch_compat.corpus.observations import Observation
    from torch_compat.policy import Policy

    Result = dict[str, Any]
    Chosen = Callable[[Fixture, Observation, str], bool]


def did(
    tree: Tree, random: Random, chosen: Chosen, do: Callable[[Result], Result | None], *, every: bool = False, by: str = ""
) -> list[str]:
    """Record another result of a reader in one of the chosen cells, or in all; the ids of their fixtures.

    Parameters:
        chosen: whether a cell is one, by its fixture, what is recorded, and the direction.
        do: changes the result that is recorded, or gives another one.
        by: the release of the reader; any unless given.
    """
    fixtures, policy = load_corpus(tree.fixtures).fixtures, load_policy(tree.policy)
    of = {reader: [cell for cell in tree.cells(reader).values() if cell.fixture in fixtures] for reader in tree.readers()}
    results = {
        reader: [cell for cell in cells if chosen(fixtures[cell.fixture], cell, _direction(policy, cell, reader))]
        for reader, cells in of.items()
    }
    reader = random.choice([reader for reader, cells in results.items() if cells and by in {"", version_of(reader)}])
    cells = sorted(results[reader], key=lambda cell: cell.cell)
    cells = cells if every else [random.choice(cells)]
    options = {option.id: option for option in policy.options}

    def record(known: Cells) -> None:
        for cell in cells:
            fixture = fixtures[cell.fixture]
            result = copy.deepcopy(cell.own_result(fixture.golden))
            result["warnings"] = [list(warning) for warning in cell.warnings]
            task = Task(fixture, tree.fixtures / cell.fixture, options[cell.options])
            known[cell.cell] = observation(task, {"result": do(result) or result})

    tree.observe(reader, record)
    return [cell.fixture for cell in cells]


def _direction(policy: Policy, cell: Observation, reader: str) -> str:
    writer = cell.fixture.partition("/")[0].removeprefix("torch-")
    if writer not in policy.calendar:
        return "synthetic"
    if writer == version_of(reader):
        return "own"
    return "backward" if policy.calendar.is_newer(version_of(reader), writer) else "forward"


def tensors(value: Any) -> Iterator[dict[str, Any]]:
    """Every tensor of a result, as it stands in it."""
    if isinstance(value, dict):
        if "tensor" in value and len(value) == 1:
            yield value["tensor"]
        else:
            for item in value.values():
                yield from tensors(item)
    elif isinstance(value, list):
        for item in value:
            yield from tensors(item)


def loaded_as_it_was(fixture: Fixture, cell: Observation, direction: str) -> bool:
    """A newer reader got what is stored, bit for bit."""
    stored = fixture.family == "torch-save" and any(tensor["dtype"] == "float32" for tensor in tensors(fixture.golden))
    return stored and direction == "backward" and cell.result == "same"


@defect(seeds=1)
def stored_values_off_by_four_steps(tree: Tree, random: Random) -> str:
    """As if a release rounded on loading: too little for any tolerance."""

    def shift(result: Result) -> None:
        for tensor in tensors(result):
            if tensor["dtype"] == "float32":
                values = np.frombuffer(base64.b64decode(tensor["bytes"]), "<i4")
                tensor["bytes"] = base64.b64encode((values + 4).tobytes()).decode()

    (name,) = did(tree, random, loaded_as_it_was, shift)
    return f"newer-computes:different:{name.partition('/')[2]}"


def refuse(result: Result) -> Result:
    """What a restricted unpickler says to a global that is not on its list."""
    message = "Weights only load failed. WeightsUnpickler error: Unsupported global: GLOBAL torch.x was not an allowed global by default."
    return {"error": {"stage": "load", "type": "_pickle.UnpicklingError", "message": message}, "warnings": []}


@defect(seeds=1)
def plain_tensors_refused_under_weights_only(tree: Tree, random: Random) -> str:
    """As if a release lost an entry of its list: newer archives of plain tensors, which it took until then."""

    def chosen(fixture: Fixture, cell: Observation, direction: str) -> bool:
        return cell.options == "weights-only" and direction == "backward" and cell.result == "same"

    did(tree, random, chosen, refuse)
    return "newer-loads:refused:weights-only-load-failed"


@defect(seeds=1)
def everything_refused_under_weights_only(tree: Tree, random: Random) -> tuple[str, ...]:
    """Every archive that the newest release reads, those of its own, too."""
    did(
        tree,
        random,
        lambda fixture, cell, direction: cell.options == "weights-only" and cell.result == "same",
        refuse,
        every=True,
    )
    return "refused:weights-only-load-failed", "(weights-only)"


@defect(seeds=1)
def taken_that_runs_code(tree: Tree, random: Random) -> str:
    """As if a release put a class of the writer on its list: what it refused under weights_only is loaded."""

    def chosen(fixture: Fixture, cell: Observation, direction: str) -> bool:
        return cell.options == "weights-only" and cell.result == "refused"

    (name,) = did(tree, random, chosen, lambda result: result)
    return f"weights-only-predicted:taken:{name.partition('/')[2]}(weights-only)"


@defect(seeds=1)
def predictions_removed(tree: Tree, random: Random) -> str:
    """Nothing is expected then, and what cannot be checked says so."""
    (tree.policy / "weights_only_refusals.toml").unlink()
    return "how releases handle it under weights_only is not computed yet"


@defect(seeds=1)
def value_where_the_writer_raised(tree: Tree, random: Random) -> str:
    """As if a newer release no longer noticed an error in what it is given."""

    def chosen(fixture: Fixture, cell: Observation, direction: str) -> bool:
        raised = any("error" in call["first"] for call in fixture.golden.get("calls", ()))
        return raised and direction == "backward" and cell.result == "same"

    def give(result: Result) -> None:
        call = next(call for call in result["calls"] if "error" in call["first"])
        call["first"] = call["second"] = {"value": 1, "inputs": {"tuple": []}, "warnings": []}

    (name,) = did(tree, random, chosen, give)
    return f"newer-computes:relaxed:{name.partition('/')[2]}"


def nothing_read(say: Callable[[Result], Result | None]) -> Plant:
    """Nothing that the newest release of the tree wrote in a family is read by the one before it any more."""

    def plant(tree: Tree, random: Random) -> str:
        policy = load_policy(tree.policy)
        *_, older, newest = policy.corpus.writers
        family = random.choice(["torchscript", "torch-save"])

        def chosen(fixture: Fixture, cell: Observation, direction: str) -> bool:
            return fixture.release == newest and fixture.family == family and cell.options == "default"

        did(tree, random, chosen, say, every=True, by=older)
        return f"older-reads-some:nothing-read:{family}@{newest}"

    plant.__name__ = f"newest_archives_{say.__name__}_by_the_release_before"
    return plant


def refused(result: Result) -> Result:
    return {"error": {"stage": "load", "type": "builtins.RuntimeError", "message": "this archive is too new"}, "warnings": []}


def raised(result: Result) -> Result | None:
    """In every call; what has none is refused."""
    if not result.get("calls"):
        return refused(result)
    for call in result["calls"]:
        call["first"] = call["second"] = {
            "error": {"stage": "call", "type": "builtins.RuntimeError", "message": "too new"},
            "warnings": [],
        }
    return None


defect(seeds=1)(nothing_read(refused))
defect(seeds=1)(nothing_read(raised))


@defect(seeds=1)
def layout_that_explains_nothing(tree: Tree, random: Random) -> str:
    """Read after all: what the layout says of the reader is out of date."""
    text = (tree.policy / "behaviors.toml").read_text()
    (tree.policy / "behaviors.toml").write_text(
        text.replace('says = "this release has no lite interpreter', 'says = "this one has no')
    )
    return "older-reads-some:unused-layout:lite-interpreter"


def speaking(message: Callable[[Any], list[list[str]]]) -> Plant:
    """The newest release says something else on every load of a program."""

    def plant(tree: Tree, random: Random) -> str:
        def chosen(fixture: Fixture, cell: Observation, direction: str) -> bool:
            return fixture.family == "torchscript" and cell.result == "same" and bool(cell.warnings)

        def speak(result: Result) -> None:
            result["warnings"] = message(result["warnings"])

        did(tree, random, chosen, speak, every=True, by=load_policy(tree.policy).corpus.readers[-1])
        return f"warnings-expected:{NAMES[message]}"

    plant.__name__ = f"warnings_on_loading_{message.__name__}"
    return plant


def added(warnings: Any) -> list[list[str]]:
    return [*warnings, ["FutureWarning", "archives of this kind will not be read from 2.16 on"]]


def silenced(warnings: Any) -> list[list[str]]:
    return []


def hidden(warnings: Any) -> list[list[str]]:
    return [["PendingDeprecationWarning", text] for _, text in warnings]


NAMES: dict[Callable[[Any], list[list[str]]], str] = {
    added: "new-warning",
    silenced: "missing-warning:jit-load-deprecated",
    hidden: "another-category",
}
for _said in NAMES:
    defect(seeds=1)(speaking(_said))


@defect(seeds=1)
def small_values_lost(tree: Tree, random: Random) -> str:
    """As if a kernel gave half of what is smaller than the absolute tolerance: far less than the others' last place."""

    def chosen(fixture: Fixture, cell: Observation, direction: str) -> bool:
        computed = [tensor for tensor in tensors(fixture.golden.get("calls")) if tensor["dtype"] == "float32" and tensor["bytes"]]
        return fixture.family == "torchscript" and direction == "backward" and cell.result == "same" and bool(computed)

    def lose(result: Result) -> None:
        for tensor in tensors([call[turn]["value"] for call in result["calls"] for turn in call if "value" in call[turn]]):
            if tensor["dtype"] == "float32":
                values = np.frombuffer(base64.b64decode(tensor["bytes"]), "<f4")
                tensor["bytes"] = base64.b64encode(
                    np.where(values == 0, np.float32(1e-7), values).astype("<f4").tobytes()
                ).decode()

    def zeros(fixture: Fixture, cell: Observation, direction: str) -> bool:
        values = [tensor["bytes"] for tensor in tensors(fixture.golden.get("calls")) if tensor["dtype"] == "float32"]
        return chosen(fixture, cell, direction) and any(
            (np.frombuffer(base64.b64decode(value), "<f4") == 0).any() for value in values
        )

    (name,) = did(tree, random, zeros, lose)
    return f"newer-computes:different:{name.partition('/')[2]}"


@defect(2, seeds=1)
def tolerance_of_absurd_size(tree: Tree, random: Random) -> str:
    with (tree.policy / "promises.toml").open("a") as stream:
        stream.write(
            '\n[[tolerance]]\ndtype = "float32"\noperators = ["aten::conv2d", "aten::linear", "aten::softmax", "aten::layer_norm"]\n'
        )
        stream.write('max_ulp = 4\nmax_abs = 1e30\nmax_rel = 0\nreason = "kernels differ"\n')
    return "must be at most 0.01"


def erring(kind: str, message: str) -> Plant:
    """A newer release raises where the writer did, for another reason."""

    def plant(tree: Tree, random: Random) -> tuple[str, ...]:
        def chosen(fixture: Fixture, cell: Observation, direction: str) -> bool:
            raised = any("error" in call["first"] for call in fixture.golden.get("calls", ()))
            return raised and direction == "backward" and cell.result == "same"

        def err(result: Result) -> None:
            for call in result["calls"]:
                for turn in ("first", "second"):
                    if "error" in call[turn]:
                        error = call[turn]["error"]
                        call[turn]["error"] = {**error, "type": kind or error["type"], "message": message or error["message"]}

        (name,) = did(tree, random, chosen, err)
        return f"newer-computes:different:{name.partition('/')[2]}", " instead of "

    plant.__name__ = f"another_error_by_{'class' if kind else 'text'}"
    return plant


defect(seeds=1)(erring("builtins.MemoryError", ""))
defect(seeds=1)(erring("", "INTERNAL ASSERT FAILED, please report a bug"))


@defect(seeds=1)
def warning_in_a_call(tree: Tree, random: Random) -> str:
    """A newer release begins to warn whenever a program is run."""

    def chosen(fixture: Fixture, cell: Observation, direction: str) -> bool:
        return bool(fixture.golden.get("calls")) and direction == "backward" and cell.result == "same"

    def warn(result: Result) -> None:
        for call in result["calls"]:
            call["first"]["warnings"] = [["FutureWarning", "programs will not run from 2.16 on"]]

    did(tree, random, chosen, warn, every=True)
    return "warnings-expected:new-warning-in-a-call"


@defect(4, seeds=1)
def a_cell_in_which_nobody_heard_what_calls_say(tree: Tree, random: Random) -> str:
    """A cell that was recorded without comparing errors and warnings of calls."""

    reader = random.choice(tree.readers())
    heard = sorted(name for name, cell in tree.cells(reader).items() if cell.heard and cell.result == "same" and not cell.said)
    silent = random.choice(heard)

    def forget(known: Cells) -> None:
        known[silent] = replace(known[silent], heard=False)

    tree.observe(reader, forget)
    return "errors and warnings from calls were not compared: observe again"


@defect(seeds=1)
def zip_refused_under_mmap(tree: Tree, random: Random) -> str:
    """In the words in which stacked pickles are refused, as is expected of these alone."""

    def chosen(fixture: Fixture, cell: Observation, direction: str) -> bool:
        return cell.options == "mmap" and fixture.container == "zip" and direction == "backward" and cell.result == "same"

    def refuse_map(result: Result) -> Result:
        message = "mmap can only be used with files saved with `torch.save(_use_new_zipfile_serialization=True)`"
        return {"error": {"stage": "load", "type": "builtins.RuntimeError", "message": message}, "warnings": []}

    did(tree, random, chosen, refuse_map)
    return "newer-loads:refused:mmap-can-only"
