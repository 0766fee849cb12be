"""How ``inspect`` tells of operators that compute something else since a program was written."""

from __future__ import annotations

import re
from pathlib import Path

from torch_compat.cli._inspected import screen
from torch_compat.inspection import look_at

FIXTURES = Path(__file__).parents[2] / "fixtures"
LINE = re.compile(
    r"(?P<since>[\d.]+): (?P<operators>[\w:, ]+): before: (?P<before>.+); since then: (?P<after>.+) \((?P<id>[a-z0-9-]+)\)$"
)


def test_each_change_is_one_line_in_the_order_of_time_and_what_was_refused_before_comes_last() -> None:
    found = look_at(str(FIXTURES / "torch-1.5.1" / "comparisons.pt"))
    told = [line for line in map(LINE.match, map(str.strip, screen(found, 0, tree=False, code=False).splitlines())) if line]
    met = [one for one in found.changes_of_meaning if one.written != "after"]
    kinds = {one.id: one.kind for one in met}
    assert sorted(line["id"] for line in told) == sorted(kinds)
    for line in told:
        assert line["operators"].split(", ") == [one.operator for one in met if one.id == line["id"]]
        assert (line["since"], line["before"], line["after"]) in {(one.since, one.before, one.after) for one in met}
    accepted = [kinds[line["id"]] == "accepted" for line in told]
    assert accepted == sorted(accepted)
    assert set(accepted) == {False, True}
    assert any(len(line["operators"].split(", ")) > 1 for line in told)
