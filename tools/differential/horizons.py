"""Operators of the reference reader at the horizon of a release, compared with that release: generated calls, counted by group.

A *group* is an operator with the dtype of a call's first tensor. Calls are generated from the schemas recorded for the release, and a
graph makes them, as in a program: the compiler of the release chooses the overload.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tools.differential.arguments import Maker, Unwritable, gentle, shown
from tools.differential.calls import Release, tensor_body
from tools.differential.comparison import APART, exclusion, judged
from tools.differential.structured import spec_of
from torch_compat.operators.call_signature import bare, signature_of
from torch_compat.operators.history import History
from torch_compat.proving.arguments import make_call, prepared
from torch_compat.proving.out_of_range import out_of_range
from torch_compat.proving.values import Seeded
from torch_compat.releases.release import Release as Version
from torch_compat.releases.sets import ReleaseSet
from torch_compat.runtime.registration import OUTS
from torch_compat.runtime.registry import known

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["COLUMNS", "HORIZONS", "Compared", "Group", "asked", "column", "compare_at", "document", "not_asked", "schemas_at"]

HORIZONS = (
    "1.2.0", "1.5.1", "1.6.0", "1.7.1", "1.8.1", "1.10.2", "1.11.0", "1.12.1", "1.13.1", "2.0.1", "2.6.0", "2.13.0", "2.15.0",
)  # fmt: skip
COLUMNS = ("equal", "equally refused", "torch refuses only", "reader refuses only", "not modelled", "values differ")
BEYOND = 4  # one in this many calls has an argument at or beyond a limit of its range
DEATHS = 1  # crashes of the release after which no more calls of an overload are made: starting it takes seconds
NUMBERED = {"dtype": "ScalarType", "layout": "Layout", "memory_format": "MemoryFormat"}
"""Schemas of releases up to 1.x declare these arguments as `int`."""


OLD = {
    r"^aten::(keys|values|items)\b": ("..<1.2.0", "lists in the order of a hash table"),
    r"^aten::pow\.Scalar\b": ("..<1.2.0", "two numbers, whose power is an integer in a compiled program and a float in a graph"),
    r"aten::divmod\((int|float) \w+, (float|int) \w+\)": ("..", "torch converts the integer to 32 bits"),
    r"Dict\(Tensor, ": ("..", "dictionaries whose keys are tensors, which are compared by identity: a generated call cannot pass the same tensor"),
    r"^aten::(sym_)?stride": ("..", "strides of an empty tensor, which the compared values do not contain"),
    r"^aten::index_put\.hacked_twin": (
        "1.6.0..<1.13.0", "writes into the tensor that it should copy, depending on the type of the list; programs of the corpus call it",
    ),
}  # fmt: skip
"""Excluded calls, by pattern of the recorded schema, with the releases: reasons of `EXCLUDED` for schemas without overload names."""


@dataclass
class Group:
    """Calls of an operator with the same dtype of the first tensor.

    Attributes:
        counts: calls by column, and calls outside of the columns: torch crashed, or has no such tensor.
        examples: one call for each column of disagreement.
    """

    operator: str
    dtype: str
    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)


def schemas_at(release: str, only: str = "") -> list[dict[str, Any]]:
    """The recorded schemas that a release has for the reader's operators, in the form used to generate calls."""
    recorded = History.load()
    results = []
    for name, kinds in known().items():
        if not re.search(only, name):
            continue
        for text in recorded.schemas(name, release):
            stated = signature_of(text)
            if stated.vararg or "..." in stated.returns:
                continue
            if stated.returns == "()" and not any(argument.mutated for argument in stated.arguments):
                continue  # the compiler drops the call
            returned = re.sub(r"^\(|\)$", "", stated.returns) if stated.returns.startswith("(") else stated.returns
            row = {
                "name": name, "overload": stated.overload, "text": text,
                "returns": [_annotated(argument.type) for argument in signature_of(f"{name}({returned}) -> ()").arguments],
                "arguments": [
                    {
                        "name": argument.name, "real": _annotated(_numbered(argument.name, argument.type)), "default": argument.default is not None,
                        "keyword": argument.kwarg_only, "out": argument.kwarg_only and argument.name in OUTS and argument.type == "Tensor",
                    }
                    for argument in stated.arguments
                ],
            }  # fmt: skip
            results.append({**prepared(row, set(kinds)), "graph": True})
    return results


def _numbered(name: str, kind: str) -> str:
    return kind.replace("int", NUMBERED[name]) if name in NUMBERED else kind


def _annotated(kind: str) -> str:
    """A schema type as an annotation: ``Dict[str, List[int]]``."""
    if kind.endswith("?"):
        return f"Optional[{_annotated(kind[:-1])}]"
    if match := re.fullmatch(r"(.*)\[\d*\]", kind):
        return f"List[{_annotated(match[1])}]"
    if match := re.fullmatch(r"(Dict|Future|RRef|Await)?\((.*)\)", kind):
        inside = ", ".join(_annotated(argument.type) for argument in signature_of(f"x::x({match[2]}) -> ()").arguments)
        return f"{match[1] or 'Tuple'}[{inside}]"
    return "number" if kind == "Scalar" else kind


def column(word: str) -> str:
    """The column of the table for a word of :func:`tools.differential.comparison.judged`; the word itself if there is no column."""
    words = {"compared": 0, "refused": 1, APART[1]: 2, APART[2]: 3, APART[3]: 3, "unsupported": 4, APART[0]: 5}
    if word.startswith("only torch refuses"):
        return COLUMNS[2]
    return COLUMNS[words[word]] if word in words else word


def asked(release: Release, schemas: Iterable[dict[str, Any]], count: int, start: int | str) -> tuple[list[Group], Counter[str]]:
    """Make the given number of calls of each overload; returns the groups, and the excluded overloads by reason."""
    groups: dict[tuple[str, str], Group] = {}
    left: Counter[str] = Counter()
    for schema in schemas:
        reason = exclusion(schema) or not_asked(schema["text"], release.version)
        if reason is not None:
            left[reason] += 1
            continue
        name = schema["name"].split("::")[1]
        deaths = 0
        for at in range(count):
            source = Seeded(f"{start}/{schema['text']}/{at}")
            make = Maker(source, bare(name), plain=gentle(name) or at % 2 == 0, graph=True, body=tensor_body)
            try:
                request = make_call(make, schema, spec_of(schema["name"]))
            except Unwritable as error:
                left[f"no call has an argument {error}"] += 1
                break
            if at % BEYOND == BEYOND - 1:
                request = out_of_range(make, request, schema)
            word, message = judged(release, schema, request)
            group = groups.setdefault(key := (schema["name"], _dtype(request["args"])), Group(*key))
            result = column(word)
            group.counts[result] += 1
            if result not in COLUMNS[:2]:
                group.examples.setdefault(result, f"{message} <- {shown(request)[: 400 if result != COLUMNS[-1] else 2000]}")
            deaths += word == "crashed"
            if deaths == DEATHS:
                break
    return list(groups.values()), left


def not_asked(text: str, release: str) -> str | None:
    """Why a schema is excluded for a release, or None."""
    results = (
        message
        for pattern, (spans, message) in OLD.items()
        if re.search(pattern, text) and Version(release) in ReleaseSet.parse(spans)
    )
    return next(results, None)


@dataclass
class Compared:
    """Results of the calls at one horizon.

    Attributes:
        overloads: those that both the release and the reader have.
        left: overloads that were not called, by reason.
    """

    release: str
    overloads: int
    groups: list[Group]
    left: Counter[str]

    @property
    def total(self) -> Counter[str]:
        """Calls by column."""
        total: Counter[str] = Counter()
        for group in self.groups:
            total.update(group.counts)
        return total

    def apart(self, name: str) -> list[Group]:
        """The groups with a call in a column, or with calls excluded for a reason."""
        return sorted((group for group in self.groups if group.counts[name]), key=lambda group: (group.operator, group.dtype))


def compare_at(version: str, only: str, count: int, start: int | str) -> Compared:
    """Run one release, in a separate process."""
    schemas = schemas_at(version, only)
    release = Release(version)
    try:
        groups, left = asked(release, schemas, count, start)
    finally:
        release.close()
    return Compared(version, len(schemas), groups, left)


def document(value: list[Compared], count: int, start: int | str) -> str:
    """The table of all horizons, and one call for each disagreement, as Markdown."""
    lines = [
        "# The reference reader at the horizons of releases", "",
        f"Generated by `python -m tools.differential horizon --count {count} --seed {start} --write`. Each release ran {count} calls of each",
        "overload that both it and the reference reader have. A graph makes each call, and one call in four has an argument at or beyond a limit",
        "of its range. A group is an operator with the dtype of the first tensor.",
        "The last column counts the calls that were made, but could not be compared; the second table lists the reasons.", "",
        f"| release | overloads | calls | {' | '.join(COLUMNS)} | not compared |", f"|---|{'---:|' * (3 + len(COLUMNS))}",
    ]  # fmt: skip
    for compared in value:
        total = compared.total
        counts = [total[name] for name in COLUMNS]
        shown = " | ".join(f"{each:,}" for each in (*counts, total.total() - sum(counts)))
        lines.append(f"| {compared.release} | {compared.overloads:,} | {total.total():,} | {shown} |")
    reasons = sorted({word for item in value for word in item.total} - {*COLUMNS})
    lines += [
        "",
        "Calls that were not compared:",
        "",
        f"| reason | {' | '.join(item.release for item in value)} |",
        f"|---|{'---:|' * len(value)}",
    ]
    lines += [f"| {word} | {' | '.join(f'{item.total[word]:,}' for item in value)} |" for word in reasons]
    lines += ["", "Groups:", "", f"| release | groups | computed by the release | {' | '.join(COLUMNS[2:])} |", f"|---|{'---:|' * (2 + len(COLUMNS[2:]))}"]  # fmt: skip
    for compared in value:
        computed = sum(1 for group in compared.groups if any(group.counts[COLUMNS[at]] for at in (0, 3, 4, 5)))
        apart = " | ".join(f"{len(compared.apart(name)):,}" for name in COLUMNS[2:])
        lines.append(f"| {compared.release} | {len(compared.groups):,} | {computed:,} | {apart} |")
    for compared in value:
        lines += ["", f"## {compared.release}", ""]
        for name in COLUMNS[2:]:
            operators: dict[str, list[Group]] = {}
            for group in compared.apart(name):
                operators.setdefault(group.operator, []).append(group)
            for operator, groups in operators.items():
                kinds = ", ".join(group.dtype or "no tensor" for group in groups)
                line = groups[0].examples[name].splitlines()[0]
                most = 300 if name != COLUMNS[-1] else 2000  # a difference is shown with all its arguments
                lines.append(f"- {name}: `{operator}` ({kinds}): `{line[:most].replace('`', chr(39))}`")
    return "\n".join([*lines, ""])


def _dtype(args: list[Any]) -> str:
    for arg in args:
        if isinstance(arg, dict) and "tensor" in arg:
            result: str = arg["tensor"]["dtype"]
            return result
        if isinstance(arg, list) and (inner := _dtype(arg)):
            return inner
    return ""
