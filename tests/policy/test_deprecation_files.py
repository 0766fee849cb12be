"""Deprecation files: every mistake is reported with its file, line and place."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.deprecated_tree import make_deprecated_tree
from tests.small_tree import once
from torch_compat.errors import PolicyError
from torch_compat.policy import load_policy
from torch_compat.policy.timeline import histories

if TYPE_CHECKING:
    from pathlib import Path

    from torch_compat.policy.deprecations import Timeline


@pytest.fixture(scope="session")
def made(shared: Path) -> Path:
    return once(shared, "deprecated-tree", make_deprecated_tree) / "policies" / "torch"


@pytest.fixture
def policy(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "torch")


def mistakes(policy: Path) -> list[str]:
    with pytest.raises(PolicyError) as refused:
        load_policy(policy)
    return [str(problem).replace(f"{policy.as_posix()}/", "") for problem in refused.value.problems]


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        ("mode", 'what = "warned"', 'what = "warnd"', "deprecations/mode.toml:16: deprecation.events[1].what: must be one of alternative, warned, withdrawn, error, removed, switched, restored; found 'warnd'; did you mean 'warned'?"),
        ("mode", 'what = "warned"', 'what = "warned"\nnigthly = 2020-01-01', "deprecations/mode.toml:17: deprecation.events[1].nigthly: unknown key 'nigthly'; did you mean 'nightly'?"),
        ("mode", 'release = "1.4.0"', 'release = "1.4"', "deprecations/mode.toml:21: deprecation.events[2].release: must be a full release such as '1.12.0'; found '1.4'"),
        ("mode", 'holds = "deprecated"', 'holds = "deprecated"\nabsent = true', "deprecations/mode.toml:27: deprecation.docs[0]: needs either 'holds' or 'absent', but not both"),
        ("mode", 'holds = "deprecated"\n', "", "deprecations/mode.toml:27: deprecation.docs[0]: needs either 'holds' or 'absent', but not both"),
        ("mode", 'probe = "mode"', 'probe = "Mode"', "deprecations/mode.toml:9: deprecation.probe: must be lower-case words joined by underscores such as 'floor_divide'; found 'Mode'"),
        ("mode", 'kind = "mode-change"', 'kind = "mode"', "deprecations/mode.toml:4: deprecation.kind: must be one of mode-change, keyword-only, removal, default-change, behavior-change, rename; found 'mode'; did you mean 'mode-change'?"),
        ("mode", "[deprecation]", "[deprecations]", "deprecations/mode.toml:1: unknown table 'deprecations'; did you mean 'deprecation'?"),
        ("name", "silent = false", "silent = true", "deprecations/name.toml:4: deprecation.kind: there is no [[timeline]] for a silent rename"),
        ("unclear", 'readers = "1.0.0..1.1.0"', 'readers = "1.1.0..1.0.0"', "deprecations/unclear.toml:10: deprecation.unclear[0].readers: must go from an older release to a newer one; found '1.1.0..1.0.0'"),
        ("unclear", '..1.1.0"', '..1.12.0"', "deprecations/unclear.toml:10: deprecation.unclear[0].readers: release '1.12.0' is not in the calendar; did you mean '1.2.0'?"),
        ("unclear", '..1.1.0"', '.."', "deprecations/unclear.toml:10: deprecation.unclear[0].readers: must name a first and a last release, such as '1.5.0..1.8.1'; found '1.0.0..'"),
        ("pending", 'release = "1.12.0"', 'release = "1.99.0"', "deprecations/pending.toml:10: deprecation.announced.release: release '1.99.0' is not in the calendar, and is not planned; did you mean '1.9.0'?"),
        ("pending", 'what = "warned"', 'what = "withdrawn"', "deprecations/pending.toml:13: deprecation.events[0].what: is withdrawn, but has no warning or error to withdraw"),
        ("pending", '[[deprecation.events]]\nwhat = "warned"', '[[deprecation.events]]\nwhat = "error"', "deprecations/pending.toml:7: deprecation.warning: specifies a warning text, but none of its events is a warning"),
        ("long-ago", '[[deprecation.events]]\nwhat = "removed"', '[[deprecation.docs]]\nrelease = "1.1.0"\nholds = "a"\n[[deprecation.docs]]\nrelease = "1.1.0"\nholds = "b"\n[[deprecation.events]]\nwhat = "removed"', "deprecations/long-ago.toml:19: deprecation.docs[1].release: statements must be sorted, oldest first: 1.1.0 follows 1.1.0"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_file_line_and_place(policy: Path, file: str, old: str, new: str, expected: str) -> None:
    path = policy / "deprecations" / f"{file}.toml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    assert expected in mistakes(policy)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('after = "alternative"', 'after = "restored"', "timelines.toml:14: timeline[0].steps[1].after: waits for 'restored', which is not an earlier step"),
        ('version = "1.13.0"', 'version = "1.13.1"', "must be the first release of its line; found 1.13.1"),
    ],
)  # fmt: skip
def test_a_mistake_in_timelines_is_named(policy: Path, old: str, new: str, expected: str) -> None:
    path = policy / "timelines.toml"
    path.write_text(path.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    assert any(expected in mistake for mistake in mistakes(policy)), mistakes(policy)


def test_a_deprecation_has_a_file_of_its_own(policy: Path) -> None:
    path = policy / "promises.toml"
    path.write_text(path.read_text(encoding="utf-8") + '[deprecation]\nid = "x"\n', encoding="utf-8")
    assert any("each deprecation must be in its own file, deprecations/<id>.toml" in mistake for mistake in mistakes(policy))
    path = policy / "deprecations" / "mode.toml"
    path.write_text('[[rule]]\nid = "x"\n' + path.read_text(encoding="utf-8"), encoding="utf-8")
    expected = "deprecations/mode.toml:1: a file in deprecations/ contains one [deprecation] and nothing else; 'rule' belongs in a file in"
    assert any(expected in mistake for mistake in mistakes(policy))


def test_a_half_done_line_is_said_once(policy: Path) -> None:
    path = policy / "deprecations" / "mode.toml"
    text = path.read_text(encoding="utf-8").replace(
        'release = "1.4.0"', 'release = "<replace this: the release that removed it>"', 1
    )
    path.write_text(text, encoding="utf-8")
    assert mistakes(policy) == [
        "deprecations/mode.toml:21: the entry is unfinished: replace the placeholder with the release that removed it"
    ]


def test_a_profile_replaces_windows_and_nothing_else(policy: Path) -> None:
    loaded = load_policy(policy)
    (profile,) = loaded.profiles
    strict = loaded.under(profile)
    assert (strict.name, strict.in_force_from, strict.forward_window_days) == ("strict", profile.in_force_from, 28)
    assert strict.digest != loaded.digest
    assert strict.waivers == loaded.waivers

    def waits(timelines: tuple[Timeline, ...]) -> set[tuple[int, int]]:
        return {(step.releases, step.days) for timeline in timelines for step in timeline.steps}

    assert (waits(loaded.timelines), waits(strict.timelines)) == ({(0, 0), (2, 180)}, {(0, 0), (4, 360)})
    assert all(step.documented for timeline in strict.timelines for step in timeline.steps if step.after)
    broken = [
        [
            history.deprecation.id
            for history in histories(each)
            if any(breach.promised for breach in history.snapshots[-1].breaches)
        ]
        for each in (loaded, strict)
    ]
    assert broken[0] == ["late", "too-early"]
    # under twice the windows what was announced for 1.4.0 is allowed only in 1.6.0, where it went: neither early nor late
    assert broken[1] == ["behaviour", "default", "function", "keyword", "long-ago", "mode", "name", "too-early"]


def test_the_order_of_files_and_comments_change_nothing(policy: Path, tmp_path: Path) -> None:
    before = load_policy(policy)
    path = policy / "deprecations" / "mode.toml"
    path.write_text("# a comment\n\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    assert load_policy(policy).digest == before.digest
    assert [deprecation.id for deprecation in before.deprecations] == sorted(
        deprecation.id for deprecation in before.deprecations
    )
