"""Recorded deprecations: which of them are evidence, which are strays, and fresh ones compared with recorded ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from torch_compat.corpus.deprecations import DeprecationObservation, Use
from torch_compat.corpus.json_lines import digest
from torch_compat.corpus.recipes import DeprecationFile
from torch_compat.judging.evidence import Evidence, deprecation_key
from torch_compat.policy import RuleEntry
from torch_compat.rules import observations_reproduce, pairs_observed

if TYPE_CHECKING:
    from tests.rules.conftest import World

PROBE = DeprecationFile("old", Path("old.py"), digest("old"), "Something old.", "torch.old", "1.0.0", None)
WARNED = Use("worked", (("UserWarning", "torch.old is deprecated"),))


def rule(name: str) -> RuleEntry:
    return RuleEntry(id=name, asks="It holds.", source="here")


def evidence(
    world: World, *, fresh: bool = False, key: str = "", deprecated: Use = WARNED, docs: tuple[str, ...] | None = ()
) -> Evidence:
    """Evidence in which 2.0.0 was asked, and asked again where ``fresh``; it says the given things the last time."""
    recorded = world.reader("2.0.0")
    item = DeprecationObservation("old", deprecation_key(PROBE.sha256, recorded), WARNED, Use("worked"), ())
    last = replace(item, key=key or item.key, deprecated=deprecated, docs=docs)
    recorded.deprecations["old"] = item if fresh else last
    if fresh:
        world.reader("2.0.0", fresh=True).deprecations["old"] = last
    result = world.evidence()
    return replace(result, corpus=replace(result.corpus, deprecations=(PROBE,)))


def test_the_answer_to_the_probe_as_it_is_counts(world: World) -> None:
    result = evidence(world).deprecations
    assert {name: list(by_release) for name, by_release in result.items()} == {"old": ["2.0.0"]}
    assert result["old"]["2.0.0"].deprecated == WARNED


def test_the_answer_to_another_text_of_the_probe_does_not(world: World) -> None:
    assert evidence(world, key="0" * 20).deprecations == {"old": {}}


def test_a_fresh_answer_counts_where_none_is_recorded(world: World) -> None:
    result = evidence(world, fresh=True)
    del result.recorded["torch-2.0.0"].deprecations["old"]
    assert list(result.deprecations["old"]) == ["2.0.0"]


def test_the_probe_is_part_of_what_is_judged(world: World) -> None:
    result = evidence(world)
    changed = replace(result, corpus=replace(result.corpus, deprecations=(replace(PROBE, since="1.1.0"),)))
    assert changed.digest != result.digest


def test_an_answer_to_a_probe_that_is_gone_is_a_stray(world: World) -> None:
    result = evidence(world)
    without = replace(result, corpus=replace(result.corpus, deprecations=()))
    messages = {item.subject: item for item in pairs_observed.judge(without, rule("pairs-observed"))}
    assert str(messages["old used in torch-2.0.0"].verdict) == "fail"
    assert "old used in torch-2.0.0" not in {item.subject for item in pairs_observed.judge(result, rule("pairs-observed"))}


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({}, "pass"),
        ({"deprecated": Use("worked")}, "fail"),
        ({"deprecated": replace(WARNED, behaves="new")}, "fail"),
        ({"docs": ("It is deprecated.",)}, "fail"),
        ({"docs": None}, "fail"),
    ],
)
def test_a_fresh_answer_against_the_recorded_one(change: dict[str, object], verdict: str, world: World) -> None:
    result = evidence(world, fresh=True, **change)  # type: ignore[arg-type]
    (message,) = [
        item for item in observations_reproduce.judge(result, rule("observations-reproduce")) if "used again" in item.subject
    ]
    assert str(message.verdict) == verdict
    assert message.cause is None or "the record" in message.cause.text


def test_answers_to_two_texts_of_a_probe_are_not_compared(world: World) -> None:
    result = evidence(world, fresh=True, key="0" * 20, deprecated=Use("worked"))
    assert [
        item for item in observations_reproduce.judge(result, rule("observations-reproduce")) if "used again" in item.subject
    ] == []
