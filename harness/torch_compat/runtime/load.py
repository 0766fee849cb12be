"""Load an archive as a callable module: detect the kind of program, and refuse what the release of the horizon refuses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from torch_compat.archive import Archive, ZipArchive, open_archive
from torch_compat.errors import Corrupt, Refused, Unsafe, Unsupported
from torch_compat.formats import is_exported
from torch_compat.runtime import registry, slips
from torch_compat.runtime.flatbuffer import Flatbuffer
from torch_compat.runtime.horizons import horizon as named_horizon
from torch_compat.runtime.limits import LIMITS, Limits, meter
from torch_compat.runtime.module import Module
from torch_compat.runtime.program import Program

if TYPE_CHECKING:
    from torch_compat.runtime import upgraders
    from torch_compat.runtime.exported.program import ExportedModule
    from torch_compat.runtime.horizons import Horizon

__all__ = ["load"]


def load(
    path: str | Path | bytes | Archive,
    horizon: str | Horizon = "reference",
    *,
    limits: Limits = LIMITS,
    table: upgraders.UpgraderTable | None = None,
) -> Module | ExportedModule:
    """Load a TorchScript or mobile archive, or an exported program.

    Parameters:
        path: the file, its bytes, or an open archive, which is closed afterwards.
        horizon: the release or day whose behavior is reproduced; see :mod:`torch_compat.runtime.horizons`.
        limits: limits on the cost of loading and of each later call.
        table: the upgraders; by default those of the horizon's release.

    Raises:
        ArchiveError: the file is not such an archive, is damaged, or is of a kind that cannot be run.
        Refused: a reader of this horizon refuses the archive; its subclass DiesLoading if the release crashes instead.
        Unsupported: the reference reader does not support something in the archive.
    """
    known = named_horizon(horizon) if isinstance(horizon, str) else horizon
    if isinstance(path, bytes):
        path = ZipArchive(Path("<bytes>"), path)
    archive = path if isinstance(path, Archive) else open_archive(Path(path))
    meter.begin(limits)
    try:
        if known.release != registry.NEWEST:
            _refuse(archive, known)
        if archive.container == "flatbuffer":
            return Module(Program(Flatbuffer(archive.data, str(archive.path)), known, limits, str(archive.path), table))
        if not isinstance(archive, ZipArchive):
            message = f"is a {archive.container}: only zip archives with TorchScript source can be run"
            raise Unsupported(message, where=str(archive.path), code="no-source")
        archive.verify()  # all bytes that a checksum covers: the reference reader never computes with damaged data
        if archive.damage:
            first = archive.damage[0]
            where = f"{archive.path}, record {first.record!r}" if first.record else str(archive.path)
            raise Corrupt(first.detail, where=where, code=first.code)
        if is_exported(archive):
            from torch_compat.runtime.exported.program import ExportedProgram  # noqa: PLC0415 - TorchScript needs nothing of it

            return ExportedProgram(archive, known, limits, str(archive.path)).main
        return Module(Program(archive, known, limits, str(archive.path), table))
    except RecursionError as error:
        raise Unsafe("nests values or source too deeply", where=str(archive.path), code="too-deep") from error
    except MemoryError as error:
        raise Unsafe("needs more memory than is available", where=str(archive.path), code="too-large") from error
    finally:
        archive.close()


def _refuse(archive: Archive, horizon: Horizon) -> None:
    """Refuse archives that the release of the horizon refuses to load, according to the recorded evidence.

    Raises:
        Refused: no release up to the horizon loads the archive, or the horizon's own release does not.
        DiesLoading: the release crashes instead of refusing.
    """
    # Only needed for horizons: the newest reader loads everything, and reading the rules takes as long as loading an archive.
    from torch_compat.formats.facts import read_facts  # noqa: PLC0415
    from torch_compat.loadability import of  # noqa: PLC0415

    facts = read_facts(archive, verify=False)
    needs = of(facts)
    if horizon.release not in needs.readers:
        slip = slips.in_place_of_refusing(facts, horizon.release)
        if slip is not None:
            raise slips.DiesLoading(slip, horizon.name, str(archive.path))
        why = "; ".join(f"{reason.needs} ({reason.because})" for reason in needs.reasons[:2]) or "no release reads it"
        raise Refused(f"{horizon.name} cannot read this: {why}", where=str(archive.path), code="needs")
