"""Obligations of an upgrader besides its results: its body compiles, every branch is reached, and saving keeps the version.

A *branch* is one side of a condition in the body. It is reached if a generated call fails with the error of a body that raises there.

A real release is tested for how it saves an upgraded program: it loads the archive of an old program, saves it, loads the result, saves it,
and does so once more. The version must be at least the bump and stay the same. The third archive must have the same code as the second: a
program that is upgraded on every load grows with every save. (The first may be printed differently.)
"""

from __future__ import annotations

import ast
import base64
import copy
from typing import TYPE_CHECKING, Final

from torch_compat.corpus.proofs import Obligation
from torch_compat.errors import HarnessError
from torch_compat.proving.oracles import Modelled
from torch_compat.proving.programs import MODULE, Form, archive
from torch_compat.runtime.horizons import horizon
from torch_compat.runtime.registry import NEWEST
from torch_compat.runtime.upgraders import saved
from torch_compat.torchscript.parser import parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch_compat.proving.oracles import Real
    from torch_compat.proving.stated import StatedUpgrader
    from torch_compat.runtime.upgraders import UpgraderTable

__all__ = ["Branches", "asked_of", "body_archive", "compiled"]

REACHED: Final = "torch-compat: this branch is reached"
PROBE: Final = '''\
"""Saves upgraded programs, and compiles the body of an upgrader."""
import base64
import io
import zipfile

import torch

BODY = {body!r}  # an archive whose program calls the body: the importer compiles it as it compiles upgraders
ARCHIVES = {archives!r}


def saved(program):
    stream = io.BytesIO()
    torch.jit.save(program, stream)
    with zipfile.ZipFile(stream) as archive:
        names = archive.namelist()
        (version,) = [name for name in names if name.endswith("/version") and "/.data/" not in name] or [
            name for name in names if name.endswith("/.data/version")
        ]
        code = sorted((name, archive.read(name)) for name in names if "/code/" in name and name.endswith(".py"))
        return int(archive.read(version).decode().strip()), code, stream.getvalue()


def probe():
    found = []
    try:
        torch.jit.load(io.BytesIO(base64.b64decode(BODY)))
        found.append(["compiles", "", ""])
    except Exception as error:
        found.append(["compiles", "%s: %s" % (type(error).__name__, error), ""])
    for call, text in ARCHIVES:
        try:
            program = torch.jit.load(io.BytesIO(base64.b64decode(text)))
        except Exception:
            continue  # no program of this release holds the call
        try:
            version, _, data = saved(program)
            second, code, data = saved(torch.jit.load(io.BytesIO(data)))
            third, same, _ = saved(torch.jit.load(io.BytesIO(data)))
            found.append(["saved", str(version), call])
            found.append(["again", "same" if version == second == third and code == same else "another program", call])
        except Exception as error:
            found.append(["saved", "%s: %s" % (type(error).__name__, error), call])
    return found
'''


def compiled(stated: StatedUpgrader, table: UpgraderTable) -> Obligation:
    """Check whether the reference reader compiles the body, without calling it."""
    name = "reference"
    try:
        result = table.find(stated.operator, stated.bump - 1)
        if result is not None:
            result.call(NEWEST)
    except HarnessError as error:
        return Obligation("compiles", name, error.message)
    return Obligation("compiles", name, "")


def asked_of(stated: StatedUpgrader, real: Real, archives: list[tuple[str, bytes]]) -> list[Obligation]:
    """Check how a real release handles the body and upgraded programs that it saves.

    Parameters:
        archives: archives of old programs, each with its call.

    Raises:
        ReaderError: the process of the release does not answer, or the probe itself fails.
    """
    known = horizon(f"reference@{real.version}")
    version = max(index for index in range(1, stated.bump + 1) if known.reads("file-format", index))
    body = base64.b64encode(body_archive(stated, version)).decode("ascii")
    given = [(call, base64.b64encode(data).decode("ascii")) for call, data in archives]
    told = real.probe(PROBE.format(body=body, archives=given))
    compiles = [item[1] for item in told if item[0] == "compiles"]
    versions = [item for item in told if item[0] == "saved"]
    results = [Obligation("compiles", real.name, text) for text in compiles]
    if versions:
        lowest = min(versions, key=lambda item: int(item[1]) if item[1].isdecimal() else -1)
        results.append(Obligation("saved", real.name, lowest[1]))
        other = [item for item in told if item[0] == "again" and item[1] != "same"]
        results.append(Obligation("again", real.name, f"{other[0][2]}: {other[0][1]}" if other else "same"))
    return results


def body_archive(stated: StatedUpgrader, version: int) -> bytes:
    """Return an archive of a program that calls an upgrader's body with all its parameters.

    Parameters:
        version: its file format version. At the bump, none of the body's calls are upgraded.
    """
    node = parse(saved(stated.body)).body[0]
    assert isinstance(node, ast.FunctionDef)  # noqa: S101 - saving produces one function
    kinds = [ast.unparse(arg.annotation) if arg.annotation is not None else "Tensor" for arg in node.args.args]
    parameters = tuple((str(at), kind, kind) for at, kind in enumerate(kinds))
    given = ", ".join(f"a_{name}" for name, _, _ in parameters)
    form = Form(stated.operator, parameters, f"{MODULE}.{node.name}({given})")
    return archive(form, version, ast.unparse(node))


class Branches:
    """The branches of a body, and for each the number of calls that reach it in the first program that does.

    Parameters:
        table_of: returns the upgraders of the reference reader with a replaced body.
    """

    def __init__(self, stated: StatedUpgrader, table_of: Callable[[StatedUpgrader], UpgraderTable]) -> None:
        self.counts: dict[str, int] = {}
        self._oracles: list[tuple[str, Modelled]] = []
        for name, body in _stopped(stated.body):
            self.counts[name] = 0
            self._oracles.append((name, Modelled(table=table_of(stated._replace(body=body)))))

    def ask(self, data: bytes, calls: list[list[object]]) -> None:
        """Count the calls of one program that reach each branch not reached by an earlier program."""
        for name, oracle in self._oracles:
            if not self.counts[name]:
                self.counts[name] = oracle.ending(data, calls, REACHED)

    @property
    def found(self) -> list[Obligation]:
        """The findings."""
        return [Obligation("branch", name, str(count)) for name, count in self.counts.items()]


def _stopped(body: str) -> Iterator[tuple[str, str]]:
    """Yield bodies that raise in one branch each, with a description of the branch. A body without conditions has none."""
    tree = parse(body)
    stop = parse(f"ops.prim.RaiseException({REACHED!r})").body
    for at, node in enumerate(list(ast.walk(tree))):
        if not isinstance(node, ast.If):
            continue
        for field, word in (("body", "holds"), ("orelse", "does not hold")):
            result = copy.deepcopy(tree)
            target = list(ast.walk(result))[at]
            setattr(target, field, [*stop, *getattr(target, field)])
            name = f"line {node.lineno}: {ast.unparse(node.test)} {word}"
            yield name, ast.unparse(ast.fix_missing_locations(result))
