"""The evidence of a tree: everything that judging uses, read once.

Judging a tree takes one call::

    from torch_compat.judging.gathering import gather
    from torch_compat.judging.judge import judge
    from torch_compat.workspace import find_root

    report = judge(gather(find_root(Path("path/to/tree"))))

``report.exit_status`` is that of ``torch-compat judge``, ``report.counts`` and ``report.findings`` are what it prints.
"""

from __future__ import annotations

import contextlib
import gc
from typing import TYPE_CHECKING

from torch_compat.corpus.corpus import load_corpus
from torch_compat.corpus.exported import read_exports
from torch_compat.corpus.operators import SCHEMAS, read_operators
from torch_compat.corpus.proofs import read_proofs
from torch_compat.errors import CorpusError, NothingSelected
from torch_compat.judging.evidence import Evidence
from torch_compat.workspace import newest_known

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator

    from torch_compat.policy import Policy
    from torch_compat.workspace import Root

__all__ = ["gather", "uncollected"]


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Disable cyclic garbage collection: evidence is a million objects that all stay, and walking them took half of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.freeze()
            gc.unfreeze()  # all objects now count as old, and are not walked immediately
            gc.enable()


def gather(place: Root, policy: Policy | None = None, *, as_of: dt.date | None = None) -> Evidence:
    """Read everything that judging uses, as of the given day, or else of the newest known day.

    Parameters:
        place: the tree.
        policy: by default the tree's own; another one for a profile, for example.
        as_of: the day.

    Raises:
        NothingSelected: there is no corpus.
        CorpusError: operators are recorded for a release that is not in the calendar.
    """
    if not place.fixtures.is_dir():
        raise NothingSelected("has no fixtures/, so there is nothing to judge", where=str(place.path), code="no-corpus")
    policy = place.policy() if policy is None else policy
    corpus = load_corpus(place.fixtures)
    result = place.observations()
    if as_of is None:
        as_of = newest_known(policy, result.readers.values())
    files = dict.fromkeys(result.readers, result.digest)
    operators, proofs = read_operators(place.fixtures), read_proofs(place.inside("reports/proofs"))
    exported = read_exports(place.fixtures)
    unknown = [release for release in operators.schemas.releases if release not in policy.calendar] if operators else []
    if unknown:
        raise CorpusError(
            f"records the operators of torch {', '.join(unknown)}, which the release calendar does not contain",
            where=str(place.fixtures / "operators" / SCHEMAS), hint="add the release to policies/torch/releases.toml", code="unknown-release",
        )  # fmt: skip
    return Evidence(
        policy,
        corpus,
        result.readers,
        {},
        as_of,
        result.unreadable,
        files=files,
        operators=operators,
        proofs=proofs,
        exported=exported,
    )
