"""Versions and sets of releases for tests: texts as reported by torch, often close to one another."""

from __future__ import annotations

from hypothesis import strategies as st

from torch_compat.releases.release import Release
from torch_compat.releases.sets import Interval, ReleaseSet

numbers = st.lists(st.integers(0, 12), min_size=2, max_size=4).map(lambda value: ".".join(map(str, value)))
suffixes = st.sampled_from(
    ["", "", "", "a0", "b1", "rc1", "rc10", ".post1", ".dev20261119", ".dev20261120", "a0.dev1", "rc2.post1", ".post2.dev3"]
)
locals_ = st.sampled_from(["", "", "+cpu", "+cu102", "+git0123abc", "+44dac51c.nv23.02", "+CPU-1_2"])
publics = st.builds(str.__add__, numbers, suffixes)
versions = st.builds(str.__add__, publics, locals_)
near = st.builds(  # few enough to meet
    str.__add__,
    st.sampled_from(["1.0.0", "1.0.1", "1.1", "1.9.0", "1.10.0", "2.0.0", "2.16.0"]),
    st.sampled_from(["", "", "", "a0", "rc3", ".post1", ".dev20261120"]),
)
releases = near.map(Release)


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    """Any interval that is not empty."""
    ends: tuple[Release | None, Release | None] = draw(st.none() | releases), draw(st.none() | releases)
    if ends[0] is not None and ends[1] is not None and ends[1] < ends[0]:
        ends = ends[::-1]
    with_first = ends[0] is None or draw(st.booleans())
    with_last = ends[1] is None or draw(st.booleans())
    if ends[0] is not None and ends[0] == ends[1]:
        with_first = with_last = True
    return Interval(*ends, with_first, with_last)


sets = st.lists(intervals(), max_size=4).map(ReleaseSet)
