"""Generated calendars, and the examples of policies/ compared with them."""

from __future__ import annotations

import datetime as dt
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from torch_compat.policy import load_policy
from torch_compat.policy.deprecations import KINDS, Deprecation
from torch_compat.policy.model import CalendarRelease
from torch_compat.policy.timeline import Axis, DeprecationHistory
from torch_compat.releases.calendar import Calendar
from torch_compat.words import american

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch_compat.policy.deprecations import Timeline

__all__ = ["EPOCH", "EXAMPLES", "TORCH", "axes", "calendar_of", "example", "history", "timeline_of"]

POLICIES = Path(__file__).parents[2] / "policies"
TORCH = load_policy(POLICIES / "torch")
EXAMPLES = sorted((POLICIES / "examples").glob("*.toml"))
EPOCH = dt.date(2020, 1, 1)


def example(name: str) -> dict[str, Any]:
    """A worked example as the policy reads it: with the id of its kind."""
    path = POLICIES / "examples" / f"{american(name)}.toml"
    table: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))["deprecation"]
    return table | {"kind": next(kind for kind in KINDS if american(kind) == table["kind"])}


def timeline_of(kind: str, *, silent: bool = False) -> Timeline:
    return next(timeline for timeline in TORCH.timelines if (timeline.kind, timeline.silent) == (kind, silent))


def release(version: str, day: dt.date) -> CalendarRelease:
    return CalendarRelease(version=version, date=day, pythons=("3.11",), install="whole", numpy="<3")


def calendar_of(days: Sequence[dt.date]) -> Calendar[CalendarRelease]:
    """One minor line for each day: 1.0.0, 1.1.0 and so on."""
    return Calendar(release(f"1.{number}.0", day) for number, day in enumerate(days))


def history(
    kind: str, events: Sequence[tuple[str, str]], axis: Axis, *, in_force: dt.date = dt.date.min, **more: Any
) -> DeprecationHistory:
    """A deprecation with these events (what, release), held against the timeline of its kind."""
    raw = example(kind) | {"events": [{"what": what, "release": version} for what, version in events], "docs": []} | more
    result = Deprecation.model_validate(raw)
    return DeprecationHistory(result, timeline_of(kind, silent=result.silent), axis, in_force)


@st.composite
def axes(draw: st.DrawFn) -> Axis:
    """A calendar of minor lines at any distance, some with patches, some of them dated after the next line; more may be planned."""
    gaps = draw(st.lists(st.integers(1, 200), min_size=6, max_size=12))
    day, findings = EPOCH, []
    for minor, gap in enumerate(gaps):
        day += dt.timedelta(days=gap)
        findings.append(release(f"1.{minor}.0", day))
        if draw(st.booleans()):
            findings.append(release(f"1.{minor}.1", day + dt.timedelta(days=draw(st.integers(0, 250)))))
    planned = []
    for minor in range(draw(st.integers(0, 2))):
        day += dt.timedelta(days=draw(st.integers(1, 100)))
        planned.append(CalendarRelease(version=f"1.{len(gaps) + 2 * minor}.0", date=day, source="a plan"))
    return Axis(Calendar(findings), planned)
