"""Altered archives of exported programs, used to test what the loaders of releases do with unknown content.

Each is a frozen fixture of a real release with a single alteration in the JSON of its program, reproducible byte for byte. Apart from
that, only the record layout changes, which comes from ``zipfile``. An archive with nothing but a new layout is the *base* that the others
are compared with. The results of every release are in ``fixtures/operators/export_witnesses.txt``, with the SHA-256 of each archive;
``python tools/export_witnesses.py FOLDER`` writes the archives.
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from torch_compat.operators.export_schema import BASE, Alteration
from torch_compat.places import inside, read_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["BASES", "Witness", "exported_witnesses"]

Document = dict[str, Any]
Shapes = tuple[tuple[int, ...], ...]

RANGE: Final[Shapes] = ((2, 2), (3, 2), (6, 2), (7, 2))
"""Calls to ``export_dynamic_range``: one row too few, both ends of its range, and one row too many."""
BASES: Final[dict[str, tuple[str, Shapes]]] = {
    "2.1.2": ("export_buffer_not_persistent", ((2,),)),
    "2.2.2": ("export_dynamic_range", RANGE),
    "2.4.1": ("export_dynamic_range", RANGE),
    "2.5.1": ("export_dynamic_range", RANGE),
    "2.6.0": ("export_dynamic_range", RANGE),
    "2.9.1": ("export_dynamic_range", RANGE),
}
"""Writers whose archives are altered, one for each major schema version and for both layouts of version 8. Each has its
recipe and the shapes of the inputs for calling the program."""
FIELD: Final = "field_of_the_future"
UNKNOWN: Final = 99


@dataclass(frozen=True)
class Witness:
    """One altered archive.

    Attributes:
        name: ``ALTERATION@WRITER``.
        base: the name of the archive that it is compared with; None for a base itself.
        marker: a text in its program that its base lacks; "" if there is none.
        shapes: the shapes of the inputs of each call.
        data: the archive.
    """

    name: str
    base: str | None
    marker: str
    shapes: Shapes
    data: bytes


def exported_witnesses(fixtures: Path) -> Iterator[Witness]:
    """Yield every altered archive, each base before those made from it; none for a writer that the corpus lacks.

    Parameters:
        fixtures: the folder of the frozen fixtures.
    """
    for writer, (recipe, shapes) in BASES.items():
        path = inside(fixtures, f"torch-{writer}/{recipe}.pt2")
        if not path.is_file():
            continue
        source = read_whole(path)
        for alteration in Alteration:
            data, marker = _altered(source, alteration)
            if data:
                base = None if alteration is BASE else f"{BASE}@{writer}"
                yield Witness(f"{alteration}@{writer}", base, marker, shapes, data)


def _altered(source: bytes, alteration: Alteration) -> tuple[bytes, str]:
    """The archive with one alteration, and its marker; empty bytes if its program has nothing of that kind."""
    with zipfile.ZipFile(io.BytesIO(source)) as archive:
        records = [(name, archive.read(name)) for name in archive.namelist()]
    holders = [name for name, data in records if name.endswith(".json") and b'"schema_version"' in data]
    (holder,) = holders
    program = json.loads(dict(records)[holder])
    stated = program["schema_version"]
    if (stated["major"] if isinstance(stated, dict) else stated) < alteration.major:
        return b"", ""
    try:
        marker = ALTER[alteration](program)
    except LookupError:
        return b"", ""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, data in records:
            archive.writestr(zipfile.ZipInfo(name), json.dumps(program).encode() if name == holder else data)
    return stream.getvalue(), marker


# ------------------------------------------------------------------------------------------------------- the alterations
# Each alters a program in place and returns its marker; LookupError if the program has nothing of that kind.


def _nodes(program: Document) -> list[Document]:
    nodes: list[Document] = program["graph_module"]["graph"]["nodes"]
    return nodes


def _tensor(program: Document) -> Document:
    """The first tensor of the graph; in 2.1 its description is nested one level deeper."""
    first: Document = next(iter(program["graph_module"]["graph"]["tensor_values"].values()))
    deeper: Document = first.get("meta", first)
    return deeper


def _minor(program: Document, minor: Callable[[int], int]) -> str:
    version = program["schema_version"]
    version["minor"] = minor(version["minor"])
    return ""


def _major(program: Document, step: int) -> str:
    version = program["schema_version"]
    if isinstance(version, dict):
        version["major"] += step
    else:
        program["schema_version"] = version + step
    return ""


def _unknown(holder: Document) -> str:
    holder[FIELD] = "kept"
    return FIELD


def _member(program: Document) -> str:
    """An unknown kind of argument, written like the known ones: until 2.2 next to None for all others."""
    argument = _nodes(program)[0]["inputs"][0]["arg"]
    for key in list(argument):
        argument[key] = None
    if len(argument) == 1:
        argument.clear()
    argument[f"as_{FIELD}"] = 1
    return FIELD


def _input_kind(program: Document) -> str:
    specs = program["graph_module"]["signature"]["input_specs"]
    specs[0] = {FIELD: specs[0].popitem()[1]}
    return FIELD


def _argument_kind(program: Document) -> str:
    if "kind" not in _nodes(program)[0]["inputs"][0]:
        raise LookupError("kind")
    _nodes(program)[0]["inputs"][0]["kind"] = UNKNOWN
    return f'"kind": {UNKNOWN}'


def _guards(program: Document) -> str:
    """A guard that a call with fewer than six rows violates."""
    program["guards_code"] = ["L['x'].size()[0] >= 6"]
    return "L['x'].size()[0] >= 6"


def _node_name(program: Document) -> str:
    node = next(node for node in _nodes(program) if "as_tensor" in node["outputs"][0])
    node["name"] = "name_of_the_node"
    return "name_of_the_node"


def _enum(holder: Document, key: str) -> str:
    holder[key] = UNKNOWN
    return f'"{key}": {UNKNOWN}'


def _opset(program: Document, versions: dict[str, int]) -> str:
    program["opset_version"] = versions
    return json.dumps(versions) if versions else ""


def _verifier(program: Document) -> str:
    if "verifiers" in program:
        program["verifiers"] = [FIELD.upper()]
    else:
        program["dialect"] = program["dialect"] and FIELD.upper()
    return FIELD.upper()


ALTER: Final[dict[Alteration, Callable[[Document], str]]] = {
    Alteration.NOTHING: lambda _: "",
    Alteration.FIELD_OF_PROGRAM: _unknown,
    Alteration.FIELD_OF_NODE: lambda program: _unknown(_nodes(program)[0]),
    Alteration.FIELD_OF_ARGUMENT: lambda program: _unknown(_nodes(program)[0]["inputs"][0]),
    Alteration.FIELD_OF_TENSOR: lambda program: _unknown(_tensor(program)),
    Alteration.FIELD_OF_SIGNATURE: lambda program: _unknown(program["graph_module"]["signature"]),
    Alteration.KIND_OF_VALUE: _member,
    Alteration.KIND_OF_INPUT: _input_kind,
    Alteration.DTYPE: lambda program: _enum(_tensor(program), "dtype"),
    Alteration.LAYOUT: lambda program: _enum(_tensor(program), "layout"),
    Alteration.ARGUMENT_KIND: _argument_kind,
    Alteration.VERIFIER: _verifier,
    Alteration.MINOR_NEWER: lambda program: _minor(program, lambda minor: minor + 100),
    Alteration.MINOR_ZERO: lambda program: _minor(program, lambda _: 0),
    Alteration.MAJOR_NEWER: lambda program: _major(program, 1),
    Alteration.MAJOR_OLDER: lambda program: _major(program, -1),
    Alteration.OPSET_NEWER: lambda program: _opset(program, {"aten": program["opset_version"]["aten"] + 1}),
    Alteration.OPSET_OLDER: lambda program: _opset(program, {"aten": 1}),
    Alteration.OPSET_OTHER: lambda program: _opset(program, {**program["opset_version"], FIELD: 3}),
    Alteration.OPSET_NONE: lambda program: _opset(program, {}),
    Alteration.GUARDS: _guards,
    Alteration.NODE_NAME: _node_name,
}
