"""Upgraders declared in policies: one table each, with the fields that releases record.

``[[upgrader]]`` in ``policies/torch/upgraders.toml``, or in a contributor's file: a proposed upgrader is an additional table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from torch_compat.errors import Refused, UsageError
from torch_compat.operators.call_signature import signature_of
from torch_compat.releases.data import packaged, parsed
from torch_compat.releases.release import stated
from torch_compat.runtime.upgraders import saved

if TYPE_CHECKING:
    from pathlib import Path

    from torch_compat.operators.call_signature import SignatureParameter

__all__ = ["StatedUpgrader", "read"]

KEYS: Final[dict[str, type]] = {"id": str, "operator": str, "bump": int, "old_schema": str, "body": str}
OPTIONAL: Final[dict[str, type]] = {"first": int, "old": str, "since": str, "change": str, "link": str, "equivalent": dict}
MOST: Final = 1000


class StatedUpgrader(NamedTuple):
    """One upgrader."""

    id: str
    """Its name in PyTorch: ``div_Tensor_0_3``."""
    operator: str
    """``aten::div``."""
    overload: str
    """``Tensor``; empty if the overload has no name."""
    first: int
    """The first file format version whose calls it replaces."""
    bump: int
    """The first file format version whose calls it does not replace."""
    old_schema: str
    """The schema before the change."""
    body: str
    """The body, in TorchScript."""
    old: str
    """The last release with the old behavior; empty if none had the operator."""
    since: str
    """The first release that includes it; empty if it is proposed."""
    change: str
    """The id of the change that it handles; empty if nothing changes."""
    link: str
    """A link to the change."""
    equivalent: tuple[tuple[str, str], ...] = ()
    """Mutants of the body that change no result, with the reason."""

    @property
    def name(self) -> str:
        """``aten::div.Tensor``."""
        return f"{self.operator}.{self.overload}" if self.overload else self.operator

    @property
    def arguments(self) -> tuple[SignatureParameter, ...]:
        """The arguments of the old schema."""
        return signature_of(self.old_schema).arguments


def read(path: Path | None = None) -> dict[str, StatedUpgrader]:
    """Read the upgraders of a file by id; by default those of the policy.

    Raises:
        UsageError: the file is invalid; the message says what is missing and where.
    """
    path = packaged("policies", "torch", "upgraders.toml") if path is None else path
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot be read: {error}", where=str(path), code="no-file") from None
    results: dict[str, StatedUpgrader] = {}
    rows: Any = parsed(text, str(path)).get("upgrader", [])
    for row in rows if isinstance(rows, list) else []:
        _check(row, str(path))
        operator, _, overload = str(row["operator"]).partition(".")
        item = StatedUpgrader(
            row["id"], operator, overload, row.get("first", 0), row["bump"], row["old_schema"], row["body"].strip("\n"),
            row.get("old", ""), row.get("since", ""), row.get("change", ""), row.get("link", ""),
            tuple(row.get("equivalent", {}).items()),
        )  # fmt: skip
        results[item.id] = item
    return results


def _check(row: Any, where: str) -> None:
    """Check what a proof needs from a table; the policy checks everything else."""
    given = row if isinstance(row, dict) else {}
    missing = [key for key, kind in KEYS.items() if given.get(key).__class__ is not kind]
    wrong = [key for key, kind in OPTIONAL.items() if key in given and given[key].__class__ is not kind]
    name = str(given.get("id", "without id"))
    if missing or wrong:
        message = "; ".join(
            f"{key}: expected {'a string' if {**KEYS, **OPTIONAL}[key] is str else 'an integer'}" for key in (*missing, *wrong)
        )
        raise UsageError(
            f"the [[upgrader]] {name}: {message}", where=where, code="upgrader", hint="see policies/torch/upgraders.toml"
        )
    if not 0 <= given.get("first", 0) < given["bump"] <= MOST:
        raise UsageError(
            f"the [[upgrader]] {name}: its range of versions is empty, or ends above {MOST}", where=where, code="upgrader"
        )
    try:
        signature_of(given["old_schema"])
        saved(given["body"])
    except (Refused, UsageError) as error:
        raise UsageError(f"the [[upgrader]] {name}: {error.message}", where=where, code="upgrader") from None
    for key in ("old", "since"):
        if key in given and stated(given[key]) is None:
            raise UsageError(
                f"the [[upgrader]] {name}: {key} is not a release", where=where, code="upgrader", hint='old = "1.5.1"'
            )
