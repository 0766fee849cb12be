"""How ``inspect`` reports operators whose results have changed since a program was written."""

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
    inspected = look_at(str(FIXTURES / "torch-1.5.1" / "comparisons.pt"))
    told = [line for line in map(LINE.match, map(str.strip, screen(inspected, 0, tree=False, code=False).splitlines())) if line]
    met = [meaning for meaning in inspected.changes_of_meaning if meaning.written != "after"]
    kinds = {meaning.id: meaning.kind for meaning in met}
    assert sorted(line["id"] for line in told) == sorted(kinds)
    for line in told:
        assert line["operators"].split(", ") == [meaning.operator for meaning in met if meaning.id == line["id"]]
        assert (line["since"], line["before"], line["after"]) in {
            (meaning.since, meaning.before, meaning.after) for meaning in met
        }
    accepted = [kinds[line["id"]] == "accepted" for line in told]
    assert accepted == sorted(accepted)
    assert set(accepted) == {False, True}
    assert any(len(line["operators"].split(", ")) > 1 for line in told)
