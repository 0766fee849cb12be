"""Collects all facts about an archive in one pass."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch_compat.allowance import Allowance
from torch_compat.archive import Archive, open_archive
from torch_compat.archive_files import sizes
from torch_compat.errors import Unsafe
from torch_compat.formats import distributed
from torch_compat.formats.identify import add_versions, recognised
from torch_compat.formats.model import Call, Facts, Producer, StorageRecord
from torch_compat.words import count_of

if TYPE_CHECKING:
    from torch_compat.formats.identify import OtherFormat, ZipFormat

__all__ = ["Call", "Facts", "Producer", "StorageRecord", "checkpoint_facts", "fill", "read_facts"]

FAMILIES = {
    "torch-save": "torch.save", "torchscript": "TorchScript", "mobile": "Mobile", "package": "torch.package",
    "export": "torch.export", "distributed": "Distributed checkpoint",
}  # fmt: skip
KINDS = {"stream-protocol": "protocol", "file-format": "file format", "bytecode": "bytecode", "export-schema": "schema"}


def read_facts(source: Path | str | Archive, *, verify: bool = True) -> Facts:
    """Collect all facts about an archive, without executing or importing anything from it.

    Parameters:
        source: a file, a directory that is a distributed checkpoint, or an open archive, which stays open.
        verify: whether to compare the checksums of all records, including those that are not read otherwise.

    Raises:
        UsageError: no such file, or another directory.
        ArchiveError: it cannot be read; the facts found so far are lost (:func:`fill` keeps them).
    """
    if isinstance(source, Archive):
        facts, module = recognised(source)
        fill(facts, module, source, verify=verify)
        return facts
    if distributed.is_checkpoint(str(source)):
        facts = checkpoint_facts(str(source))
        facts.size = sum(sizes(Path(source)).values())
        distributed.read(facts.path, facts, Allowance.to_inspect(facts.size), verify=verify)
        return facts
    with open_archive(source, inspecting=True) as archive:
        facts, module = recognised(archive)
        fill(facts, module, archive, verify=verify)
        return facts


def checkpoint_facts(folder: str) -> Facts:
    """Facts that only identify a directory as a distributed checkpoint; :func:`distributed.read` fills in the rest."""
    facts = Facts(folder, 0, distributed.FAMILY, distributed.CONTAINER)
    facts.layout = distributed.LAYOUT
    facts.name = name_of(facts)
    return facts


def fill(facts: Facts, module: ZipFormat | OtherFormat, archive: Any, *, verify: bool = True) -> None:
    """Fill facts in, as far as the archive can be read.

    Raises:
        ArchiveError: it cannot be read further; the facts contain everything read before, including the damage.
    """
    try:
        add_versions(facts, module, archive)
        module.read(archive, facts)
    except Unsafe as error:  # raised by the payment of work, which does not know the location
        error.where = error.where or archive.path
        raise
    finally:
        facts.name = name_of(facts)
        if facts.incomplete and facts.producer is not None and facts.producer.torch is None:
            facts.producer = None  # derived from the records that are there, and from those that are not
        if verify:
            archive.verify()


def name_of(facts: Facts) -> str:
    """Family, container and version in words: ``TorchScript (zip, file format 4)``."""
    parts = [facts.container]
    if facts.extra.get("native") and not facts.extra.get("programs"):
        return _compiled(facts)
    for kind, number in facts.versions.items():
        message = facts.export_schema if kind == "export-schema" and facts.export_schema else number
        parts.append(f"{KINDS[kind]} {message}")
    names = facts.extra.get("programs") or ()
    if len(names) > 1:
        parts.append(count_of(len(names), "program"))
    return f"{FAMILIES[facts.family]} ({', '.join(parts)})"


def _compiled(facts: Facts) -> str:
    """An AOTInductor package in words: container, platform, machine and device, as stated by its metadata."""
    first = facts.extra["native"][0]
    stated = " ".join(first[word] for word in ("platform", "machine") if word in first) or "platform not stated"
    device = f", {first['device']}" if "device" in first else ""
    return f"AOTInductor package ({facts.container}, file format {facts.versions.get('file-format', '?')}, {stated}{device})"
