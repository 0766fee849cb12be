"""What both layouts of exported programs share: the program as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from harness.errors import Corrupt
from harness.formats.model import Call

if TYPE_CHECKING:
    from harness.archive import ZipArchive
    from harness.formats.model import Facts

__all__ = ["add_program", "load_json", "schema_version"]

KEYWORD = 2  # ArgumentKind of torch/_export/serde/schema.py; 8.3 and newer say it


def load_json(archive: ZipArchive, record: str) -> dict[str, Any]:
    """A record that holds a JSON object.

    Raises:
        Corrupt: it does not.
    """
    where = f"{archive.path}, record {record!r}"
    data = archive.record(record)
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Corrupt(f"is no JSON: {error}", where=where, code="bad-json") from error
    if not isinstance(found, dict):
        raise Corrupt(f"holds a {type(found).__name__}, expected an object", where=where, code="bad-json")
    return found


def schema_version(archive: ZipArchive, record: str, program: dict[str, Any]) -> tuple[int, int | None]:
    """Major and minor number of the schema: ``{"major": 8, "minor": 1}``, or one number in 2.1 and 2.2.

    Raises:
        Corrupt: there is none.
    """
    version = program.get("schema_version")
    major, minor = (version.get("major"), version.get("minor")) if isinstance(version, dict) else (version, None)
    if any(isinstance(part, bool) or not isinstance(part, int) or part < 0 for part in (major, 0 if minor is None else minor)):
        said = f"has the schema version {str(version)[:80]!r}, expected a number or a major and a minor one"
        raise Corrupt(said, where=f"{archive.path}, record {record!r}", code="bad-version")
    assert isinstance(major, int)  # noqa: S101 - it was just looked at
    return major, minor


def add_program(archive: ZipArchive, facts: Facts, record: str, program: dict[str, Any]) -> None:
    """Schema version, operators, and what else the program says about itself.

    Raises:
        Corrupt: it is no program.
    """
    major, minor = schema_version(archive, record, program)
    facts.export_schema = str(major) if minor is None else f"{major}.{minor}"
    for key in ("opset_version", "verifiers", "dialect", "torch_version"):
        if key in program:
            facts.extra[key] = program[key]
    try:
        facts.calls = facts.calls | _calls(program["graph_module"])
    except (LookupError, TypeError, AttributeError) as error:
        where = f"{archive.path}, record {record!r}"
        raise Corrupt(f"is no exported program: {type(error).__name__} {error}", where=where, code="bad-program") from error


def _calls(module: dict[str, Any]) -> frozenset[Call]:
    """The operators that a graph calls, and those that the graphs in its arguments call."""
    found = set()
    graphs = [module["graph"]]
    while graphs:
        for node in graphs.pop()["nodes"]:
            inputs = node["inputs"]
            for one in inputs:
                inner = one["arg"].get("as_graph") if "arg" in one else None
                if inner is not None:
                    graphs.append(inner["graph"])
            namespace, _, rest = str(node["target"]).removeprefix("torch.ops.").partition(".")
            name, _, overload = rest.partition(".")
            if not node["target"].startswith("torch.ops.") or not name or "." in overload:
                continue  # a function of Python: _operator.add, math.floor
            named = tuple(str(one["name"]) for one in inputs if one.get("kind", KEYWORD) == KEYWORD)
            overload = "" if overload == "default" else overload
            found.add(Call(f"{namespace}::{name}", overload, len(inputs) - len(named), named))
    return frozenset(found)
