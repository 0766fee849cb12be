"""``python -m tests.planted [--count 10000] [--seed 1]``: other outcomes in cells covered by waivers, each of which must be detected.

A plant changes the result of the reader in one covered cell, over all waivers, families and load options: other bits, another dtype or
shape, another error, signal or stage, a refusal instead of a value, the value that was written, or the accepted difference of another
covered cell. The result is changed before the observing code compares it with the golden, so a plant could have been recorded with that
reader. The archive of the cell is then judged alone, by the rules about cells and by :class:`torch_compat.judging.waiving.Waiving`;
tests/planted/test_covered.py shows that judging all of the evidence gives the same result.

Changes that the policy ignores are not planted: values within a tolerance, disregarded strides, varying parts of messages.
"""

from __future__ import annotations

import base64
import copy
import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from torch_compat.corpus.manifest import SYNTHETIC, release_folder
from torch_compat.judging import judge as judging
from torch_compat.judging.cell import Outcome
from torch_compat.judging.evidence import Evidence
from torch_compat.judging.judgement import Verdict
from torch_compat.judging.operator_refusals import OperatorRefusals, walks_through_operators
from torch_compat.judging.waiving import Waiving
from torch_compat.replay.observe import observation
from torch_compat.replay.plan import Task
from torch_compat.values.compare import compare
from torch_compat.values.normalise import alike, headline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

    from torch_compat.corpus.manifest import Fixture
    from torch_compat.corpus.observations import Observation
    from torch_compat.policy import OptionSet
    from torch_compat.policy.accepted import Accepted, Block

    Reply = dict[str, Any]
    Change = Callable[[Random, "Cell", "Planter"], "Reply | Observation | None"]

__all__ = ["KINDS", "Cell", "Planter", "Tried", "reshaped"]

RULES: Final = frozenset(
    {
        "newer-loads",
        "newer-computes",
        "reads-back",
        "older-never-differs",
        "forward-window",
        "synthetic-loads",
        "observations-reproduce",
    }
)
"""The rules that look at cells one by one."""
VALUED: Final = frozenset({Outcome.DIFFERENT, Outcome.RAISED, Outcome.RELAXED})
OF_THE_SAME_SIZE: Final = {
    "float32": "int32", "int32": "float32", "float64": "int64", "int64": "float64", "float16": "int16", "bfloat16": "float16", "int16": "float16",
    "uint8": "int8", "int8": "uint8", "bool": "uint8", "complex64": "float64", "complex128": "complex64",
}  # fmt: skip
SIGNALS: Final = ("SIGABRT", "SIGSEGV", "SIGBUS", "SIGFPE")
NAME: Final = Path("archive.pt")


@dataclass(frozen=True)
class Cell:
    """A covered cell: what one recorded reader did, and the block of the lock that has it.

    Attributes:
        reader: a set of one reader, as bits.
    """

    fixture: Fixture
    options: OptionSet
    observation: Observation
    reader: int
    outcome: Outcome
    block: Block

    @property
    def result(self) -> dict[str, Any]:
        """What the reader computed, to be changed."""
        results: dict[str, Any] = copy.deepcopy(self.observation.own_result(self.fixture.golden))
        return results

    def said(self, reply: Reply) -> Observation:
        """What is observed of another reply of the reader."""
        return observation(Task(self.fixture, NAME, self.options), reply)


@dataclass(frozen=True)
class Tried:
    """A plant, and what judging made of it.

    Attributes:
        kind: of the change.
        noticed: what is red; "" where nothing is.
    """

    kind: str
    cell: Cell
    planted: Observation
    reader: str
    noticed: str

    def __str__(self) -> str:
        options = "" if self.cell.options.id == "default" else f" with {self.cell.options.id}"
        what = f"{self.cell.fixture.id} read by {self.reader}{options}, {self.cell.outcome} by {self.cell.block.waiver}"
        return f"{self.kind}: {what}: {self.planted.result} {self.planted.stage} {self.planted.signal} {self.planted.errors}"


@dataclass(frozen=True)
class Alone(Evidence):
    """Evidence of one archive."""

    held: tuple[tuple[Fixture, OptionSet, list[tuple[Observation, int]]], ...] = field(default=())

    def lines(self) -> Iterator[tuple[Fixture, OptionSet, list[tuple[Observation, int]]]]:
        """What readers are said to have done with it."""
        return iter(self.held)


class Planter:
    """Plants in some evidence, in which nothing is red."""

    def __init__(self, evidence: Evidence) -> None:
        accepted = evidence.policy.accepted
        assert accepted is not None, "evidence without a lock of waivers covers nothing"
        self.evidence, self.accepted = evidence, accepted
        self._lines = {(fixture.id, options.id): (fixture, options, result) for fixture, options, result in evidence.lines()}
        self._options = {options.id: options for options in evidence.policy.options}
        self._by_waiver: dict[str, list[Block]] = {}
        for block in accepted.blocks:
            self._by_waiver.setdefault(block.waiver, []).append(block)
        self._locks: dict[tuple[str, str], Accepted] = {}
        self._green: set[str] = set()
        self._rules = tuple(rule for rule in evidence.policy.rules if rule.id in RULES)

    @cached_property
    def _recorded(self) -> dict[str, int]:
        """The places of recorded readers by release."""
        return {reader.release: at for at, reader in enumerate(self.evidence.readers) if reader.recorded}

    # ---------------------------------------------------------------------------------------------------------------- cells

    def cell(self, random: Random, block: Block | None = None) -> Cell:
        """A covered cell: each waiver as often as any other, and of its blocks each as often as any other, unless one is given."""
        if block is None:
            block = random.choice(self._by_waiver[random.choice(sorted(self._by_waiver))])
        writer, readers = random.choice(list(self.accepted.members(block)))
        wrote = SYNTHETIC if writer < 0 else self.accepted.known.releases[writer]
        reader = random.choice(self.accepted.known.of(readers))
        at = self._recorded[reader]
        place = (f"{release_folder(wrote)}/{random.choice(block.recipes)}", block.options)
        fixture, options, result = self._lines[place]
        seen = next(item for item, bits in result if bits >> at & 1)
        others = self.evidence.wordings.others(fixture, seen, reader)
        return Cell(fixture, options, seen, 1 << at, self.evidence.outcome(fixture, seen, others=others), block)

    def other(self, random: Random, cell: Cell) -> Cell | None:
        """A covered cell with another accepted difference, of the same recipe where values differ; None where there is none."""
        valued = cell.outcome in VALUED

        def fits(item: Block) -> bool:
            if (item.outcome, item.digest) == (cell.block.outcome, cell.block.digest):
                return False
            return not valued or (item.outcome in VALUED and cell.fixture.recipe in item.recipes)

        blocks = [item for item in self.accepted.blocks if fits(item)]
        if not blocks:
            return None
        block = random.choice(blocks)
        return self.cell(random, block._replace(recipes=(cell.fixture.recipe,)) if valued else block)

    # -------------------------------------------------------------------------------------------------------------- judging

    def judged(self, fixture: Fixture, lines: dict[str, list[tuple[Observation, int]]] | None = None) -> list[str]:
        """What is red where these are the lines of an archive by options, in words.

        Parameters:
            lines: those that are not as they are recorded.
        """
        held = []
        for options in self.evidence.policy.options:
            line = self._lines.get((fixture.id, options.id))
            if line is not None:
                held.append((fixture, options, (lines or {}).get(options.id, line[2])))
        policy = replace(self.evidence.policy, accepted=self._lock(fixture), rules=self._rules)
        manifests = tuple(
            replace(manifest, fixtures=(fixture,), not_writable=())
            for manifest in self.evidence.corpus.manifests
            if manifest.release == fixture.release
        )
        alone = Alone(
            policy,
            replace(self.evidence.corpus, manifests=manifests),
            self.evidence.recorded,
            {},
            self.evidence.as_of,
            held=tuple(held),
        )
        alone.__dict__["readers"] = self.evidence.readers  # a cached property: the same for every archive
        if walks_through_operators(fixture):  # its refusals are judged by the operators of all releases, which no archive changes
            alone.__dict__["_derived"] = {OperatorRefusals: self.evidence.derived(OperatorRefusals)}
        waiving, red = Waiving(alone), []
        for entry in self._rules:
            for judgement in judging._rule(entry).judge(alone, entry):
                if judgement.cells is None or judgement.verdict is not Verdict.FAIL:
                    continue
                parts = waiving.cells(judgement, judgement.cells)
                red += [f"{entry.id}: {judgement.cells.outcome}" for part in parts if part.judgement.verdict is Verdict.FAIL]
        return [*red, *(f"gone: {waiver} {recipe} {writer} {reader}" for waiver, _, recipe, writer, reader in waiving.gone())]

    def _lock(self, fixture: Fixture) -> Accepted:
        """The cells of an archive in the lock."""
        key = (fixture.release, fixture.recipe)
        if key not in self._locks:
            known = self.accepted.known
            writer = -1 if fixture.release == SYNTHETIC else known.place(fixture.release)
            blocks = []
            for block in self.accepted.blocks:
                readers = dict(self.accepted.members(block)).get(writer, 0) if fixture.recipe in block.recipes else 0
                if readers:
                    blocks.append(
                        block._replace(writers=-1 if writer < 0 else 1 << writer, readers=readers, recipes=(fixture.recipe,))
                    )
            self._locks[key] = replace(self.accepted, blocks=tuple(blocks), findings={})
        return self._locks[key]

    def plant(self, random: Random) -> Tried | None:
        """One plant; None where this kind of change says nothing new of the cell that was chosen."""
        cell = self.cell(random)
        kind = random.choice(sorted(KINDS))
        return self.planted(random, kind, cell)

    def planted(self, random: Random, kind: str, cell: Cell) -> Tried | None:
        """A plant of a kind in a cell; None where it would say nothing new."""
        changed = KINDS[kind](random, cell, self)
        if changed is None:
            return None
        seen = changed if not isinstance(changed, dict) else cell.said(changed)
        seen = replace(seen, fixture=cell.observation.fixture, options=cell.observation.options, key=cell.observation.key)
        _, _, line = self._lines[cell.fixture.id, cell.options.id]
        if cell.fixture.id not in self._green:
            red = self.judged(cell.fixture)
            assert red == [], f"{cell.fixture.id} is red before anything is planted: {red}"
            self._green.add(cell.fixture.id)
        others = [(item, bits & ~cell.reader) for item, bits in line if bits & ~cell.reader]
        red = self.judged(cell.fixture, {cell.options.id: [*others, (seen, cell.reader)]})
        name = self.evidence.readers.first(cell.reader).name
        return Tried(kind, cell, seen, name, "; ".join(red[:2]))

    def campaign(self, random: Random, count: int) -> Iterator[Tried]:
        """So many plants."""
        planted = 0
        while planted < count:
            item = self.plant(random)
            if item is not None:
                planted += 1
                yield item


# ---------------------------------------------------------------------------------------------------------- kinds of changes


def _calls(result: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The turns of calls of a result."""
    for call in result.get("calls", ()):
        yield from (call["first"], call["second"])


def _compared(cell: Cell, result: dict[str, Any]) -> Iterator[Any]:
    """The parts of a result that are held against the golden or stand where an error stood."""
    golden = cell.fixture.golden
    if "value" in result:
        yield result["value"]
        return
    for part in ("state", "state_after"):
        if golden.get(part) is not None and result.get(part) is not None:
            yield result[part]
    for given in _calls(result):
        if "value" in given:
            yield given["value"]
            yield given["inputs"]


def _tensors(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if isinstance(value.get("tensor"), dict) and "bytes" in value["tensor"]:
            yield value["tensor"]
        else:
            for item in value.values():
                yield from _tensors(item)
    elif isinstance(value, list):
        for item in value:
            yield from _tensors(item)


def _some_tensor(random: Random, cell: Cell) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """A tensor with elements, and the result that holds it."""
    if cell.outcome not in VALUED or not cell.observation.departures:
        return None
    result = cell.result
    results = [tensor for part in _compared(cell, result) for tensor in _tensors(part) if tensor["bytes"]]
    return (random.choice(results), result) if results else None


def other_bits(random: Random, cell: Cell, _: Planter) -> Reply | None:
    """Another value in one element of a tensor, far from the one that was there."""
    outcome = _some_tensor(random, cell)
    if outcome is None:
        return None
    tensor, result = outcome
    data = bytearray(base64.b64decode(tensor["bytes"]))
    count = 1
    for length in tensor["shape"]:
        count *= length
    size = len(data) // max(count, 1)
    if not size or size * count != len(data):
        return None
    at = random.randrange(count)
    data[at * size + size - 1] ^= 1 if tensor["dtype"] == "bool" else 0x55  # of a float, its sign and exponent
    tensor["bytes"] = base64.b64encode(bytes(data)).decode()
    return {"result": result}


def other_dtype(random: Random, cell: Cell, _: Planter) -> Reply | None:
    """The same bytes under another dtype."""
    outcome = _some_tensor(random, cell)
    if outcome is None or outcome[0]["dtype"] not in OF_THE_SAME_SIZE:
        return None
    tensor, result = outcome
    tensor["dtype"] = OF_THE_SAME_SIZE[tensor["dtype"]]
    return {"result": result}


def reshaped(result: dict[str, Any]) -> dict[str, Any]:
    """A result with one dimension more in every tensor."""
    product = copy.deepcopy(result)
    for tensor in _tensors(product):
        _reshape(tensor)
    return product


def _reshape(tensor: dict[str, Any]) -> None:
    tensor["shape"] = [*tensor["shape"], 1]
    if "strides" in tensor:
        tensor["strides"] = [*tensor["strides"], 1]


def other_shape(random: Random, cell: Cell, _: Planter) -> Reply | None:
    """One dimension more."""
    outcome = _some_tensor(random, cell)
    if outcome is None:
        return None
    tensor, result = outcome
    _reshape(tensor)
    return {"result": result}


def one_call_mended(random: Random, cell: Cell, _: Planter) -> Reply | None:
    """One of several calls gives what was written."""
    if cell.outcome not in VALUED or not cell.observation.departures or "calls" not in cell.fixture.golden:
        return None
    result = cell.result
    wanted = cell.fixture.golden["calls"]
    places = [
        (at, turn)
        for at, call in enumerate(result["calls"])
        for turn in ("first", "second")
        if _grave(cell, wanted[at][turn], call[turn])
    ]
    if len(places) < 2:
        return None
    at, turn = random.choice(places)
    result["calls"][at][turn] = copy.deepcopy(wanted[at][turn])
    return {"result": result}


def _grave(cell: Cell, wanted: dict[str, Any], given: dict[str, Any]) -> bool:
    """Whether a call differs far beyond any tolerance: raises, or gives another type, dtype or shape."""
    if "error" in given or "error" in wanted:
        return ("error" in given) is not ("error" in wanted)
    items = {"state": None, "state_after": None, "calls": [{"first": wanted, "second": wanted}]}
    other = {"state": None, "state_after": None, "calls": [{"first": given, "second": given}]}
    kinds = {difference["kind"] for difference in compare(items, other).extent}
    return bool(kinds & {"type", "dtype", "shape", "keys"})


def a_call_raises(random: Random, cell: Cell, _: Planter) -> Reply | None:
    """A call that gave a value raises."""
    if cell.outcome not in VALUED or not cell.observation.departures:
        return None
    result = cell.result
    wanted = cell.fixture.golden.get("calls", [])
    places = [
        (at, turn)
        for at, call in enumerate(result.get("calls", []))
        for turn in ("first", "second")
        if "value" in call[turn] and "value" in wanted[at][turn]
    ]
    if not places:
        return None
    at, turn = random.choice(places)
    result["calls"][at][turn] = {"error": {"type": "builtins.RuntimeError", "message": "planted: the kernel is missing"}}
    return {"result": result}


def _errors(cell: Cell, result: dict[str, Any]) -> list[dict[str, str]]:
    """The errors of calls that were not expected."""
    wanted = cell.fixture.golden.get("calls", [])
    return [
        call[turn]["error"]
        for at, call in enumerate(result.get("calls", []))
        for turn in ("first", "second")
        if "error" in call[turn] and "error" not in wanted[at][turn]
    ]


def _with_error(random: Random, cell: Cell, change: Callable[[dict[str, str]], bool]) -> Reply | None:
    """The reply of the same outcome with one error changed."""
    seen = cell.observation
    if cell.outcome is Outcome.REFUSED:
        error = dict(seen.errors[0])
        return {"result": {"error": error}} if change(error) else None
    if cell.outcome is Outcome.CRASHED and seen.errors:
        error = {"type": "crash", **seen.errors[0]}
        return _death(cell, said=error["message"]) if change(error) and error["type"] == "crash" else None
    if cell.outcome in VALUED and seen.departures:
        result = cell.result
        errors = _errors(cell, result)
        return {"result": result} if errors and change(random.choice(errors)) else None
    return None


def _death(cell: Cell, *, signal: str = "", stage: str = "", said: str | None = None) -> Reply:
    seen = cell.observation
    words = said if said is not None else seen.errors[0]["message"] if seen.errors else ""
    return {
        "crashed": {
            "stage": stage or seen.stage or "load",
            "signal": signal or seen.signal or "SIGSEGV",
            "said": f"terminate called\n  what():  {words}\n" if words else "",
        }
    }


def other_error_class(random: Random, cell: Cell, _: Planter) -> Reply | None:
    """The same words from an exception of another class."""

    def change(error: dict[str, str]) -> bool:
        error["type"] = "builtins.KeyError" if error["type"] == "builtins.ValueError" else "builtins.ValueError"
        return True

    return _with_error(random, cell, change)


def other_error_text(random: Random, cell: Cell, _: Planter) -> Reply | None:
    """Another message altogether."""

    def change(error: dict[str, str]) -> bool:
        error["message"] = "planted: nothing is where it was"
        return True

    return _with_error(random, cell, change)


def other_word_of_the_error(random: Random, cell: Cell, _: Planter) -> Reply | None:
    """One word of the line that says the cause is another one."""

    def change(error: dict[str, str]) -> bool:
        told = headline(error["message"])
        words = [word for word in re.findall(r"[a-z]{4,}", alike(told)) if re.search(rf"\b{word}\b", told)]
        if not words:
            return False
        word = random.choice(words)
        line = re.sub(rf"\b{word}\b", "weasel", told)
        if alike(line) == alike(told):
            return False  # what varies between messages of one cause
        error["message"] = error["message"].replace(told, line)
        return headline(error["message"]) == line

    return _with_error(random, cell, change)


def refused(_: Random, cell: Cell, __: Planter) -> Reply | None:
    """Refused instead, or refused for another reason."""
    return {"result": {"error": {"type": "builtins.RuntimeError", "message": "planted: this archive is too old"}}}


def died(random: Random, cell: Cell, _: Planter) -> Reply | None:
    """Died, or died of another signal."""
    signal = random.choice([item for item in SIGNALS if item != cell.observation.signal])
    return _death(cell, signal=signal)


def died_elsewhere(_: Random, cell: Cell, __: Planter) -> Reply | None:
    """Died of the same, but while running instead of while loading, or the other way round."""
    if cell.outcome is not Outcome.CRASHED:
        return None
    return _death(cell, stage="call" if cell.observation.stage == "load" else "load")


def timed_out(_: Random, cell: Cell, __: Planter) -> Reply | None:
    """Never ended."""
    return None if cell.outcome is Outcome.TIMED_OUT else {"timed-out": {"stage": "load"}}


def mended(_: Random, cell: Cell, __: Planter) -> Reply | Observation | None:
    """Gave what was written."""
    golden = cell.fixture.golden
    if "error" in golden or "crashed" in golden or "timed-out" in golden:
        return replace(
            cell.observation, result="same", stage="", signal="", errors=(), differences=(), extent=(), count=0, both=()
        )
    return {"result": copy.deepcopy(golden)}


def settled(random: Random, cell: Cell, _: Planter) -> Observation | None:
    """What varied gives one of its two results each time."""
    return random.choice(cell.observation.both) if cell.outcome is Outcome.UNSTABLE else None


def swapped(random: Random, cell: Cell, planter: Planter) -> Reply | Observation | None:
    """What another covered cell has."""
    other = planter.other(random, cell)
    if other is None:
        return None
    if cell.outcome not in VALUED:
        return (
            None if other.outcome in VALUED or other.observation.both else other.observation
        )  # values depart from another golden
    if not other.observation.departures or not cell.observation.departures:
        return None
    mine, theirs = cell.result, other.result
    if mine.keys() != theirs.keys() or len(mine.get("calls", ())) != len(theirs.get("calls", ())):
        return None
    message = cell.said({"result": theirs})
    near = replace(message, **_facts(compare(mine, theirs)))
    same = planter.evidence.outcome(cell.fixture, near) in {Outcome.SAME, Outcome.CLOSE}
    if same and _texts(cell, mine) == _texts(cell, theirs):
        return None  # the same result, of another golden
    return {"result": theirs}


def _facts(value: Any) -> dict[str, Any]:
    return {"result": value.result, "extent": value.extent, "count": value.count, "errors": value.errors}


def _texts(cell: Cell, result: dict[str, Any]) -> list[tuple[str, str]]:
    return [(error["type"], alike(headline(error["message"]))) for error in _errors(cell, result)]


KINDS: Final[dict[str, Change]] = {
    item.__name__.replace("_", " "): item
    for item in (
        other_bits, other_dtype, other_shape, one_call_mended, a_call_raises, other_error_class, other_error_text, other_word_of_the_error,
        refused, died, died_elsewhere, timed_out, mended, settled, swapped,
    )
}  # fmt: skip
"""The kinds of plants, by their names."""
