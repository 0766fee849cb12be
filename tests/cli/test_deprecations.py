"""``torch-compat deprecations``, ``explain``, ``plan`` and ``new``: their output for a tree, and how a contributor adds to it."""

from __future__ import annotations

import ast
import datetime as dt
import itertools
import json
import re
import shutil
import tomllib
from typing import TYPE_CHECKING, Any

import click
import pytest

from tests.cli.conftest import Ended
from tests.counted import relock
from tests.deprecated_tree import DEPRECATIONS, day_of, make_deprecated_tree, policy_file, write_evidence
from tests.recordings import folder_of, readers_of
from tests.small_tree import once
from torch_compat.cli import main, top_level
from torch_compat.corpus.recorded import write_recorded
from torch_compat.policy import load_policy
from torch_compat.policy.deprecations import KINDS
from torch_compat.policy.messages import UNFINISHED
from torch_compat.policy.timeline import TimelineState, histories

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Ask = Callable[..., Ended]

DAY = dt.timedelta(days=1)


@pytest.fixture
def root(shared: Path, tmp_path: Path) -> Path:
    return shutil.copytree(once(shared, "deprecated-tree", make_deprecated_tree), tmp_path / "tree")


@pytest.fixture
def ask(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(root)

    def run(*arguments: str) -> Ended:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        message = capsys.readouterr()
        return Ended(int(ended.value.code or 0), message.out, message.err)

    return run


def row(ended: Ended, name: str) -> dict[str, Any]:
    results: dict[str, Any] = next(deprecation for deprecation in ended.json["deprecations"] if deprecation["id"] == name)
    return results


def unwaived(root: Path) -> None:
    shutil.rmtree(root / "policies" / "torch" / "waivers")
    relock(root / "policies" / "torch")


# --------------------------------------------------------------------------------------------------------- deprecations


def test_each_deprecation_and_what_falls_due(ask: Ask) -> None:
    ended = ask("deprecations")
    assert ended.status == 0
    assert "was removed in 1.7.0 (2021-12-01), 1 release and 80 days too early" in ended.out
    assert "(waived)" in ended.out
    assert (
        "planned: torch.planned (removal): warned in 1.10.0; may be removed or raise an error from 1.12.0 (2023-04-15, planned)"
        in ended.out
    )
    assert f"{day_of(13)}  planned: is planned to be removed in 1.13.0" in ended.out
    assert "12 deprecations: 9 kept, 2 broken (2 waived), 1 no-promise; as of " in ended.out
    assert ended.out.endswith("exit status 0: every promise that was checked holds, or the violation is waived\n")


def test_the_events_of_one_in_order_and_what_is_planned(ask: Ask) -> None:
    result = ask("deprecations", "--format", "json")
    events = [(event["what"], event["release"]) for event in row(result, "mode")["events"]]
    assert events == [
        ("alternative", "1.2.0"), ("warned", "1.2.0"), ("documented", "1.2.0"), ("removed", "1.4.0"), ("documented", "1.4.0"),
        ("restored", "1.6.0"), ("documented", "1.6.0"),
    ]  # fmt: skip
    earlier = row(ask("deprecations", "--as-of", "1.3.0", "--format", "json"), "mode")["events"]
    assert [(item["what"], item["release"]) for item in earlier] == events[:3]
    assert [(event["what"], event["planned"]) for event in row(result, "planned")["events"]] == [
        ("warned", False), ("documented", False), ("removed", True),
    ]  # fmt: skip


def test_the_verdict_changes_on_the_day_and_not_a_day_before(ask: Ask, root: Path) -> None:
    unwaived(root)
    for line, name in ((7, "too-early"), (4, "late")):
        results = [
            ask("deprecations", "--as-of", day.isoformat(), "--format", "json") for day in (day_of(line) - DAY, day_of(line))
        ]
        assert [row(item, name)["verdict"] for item in results] == ["kept", "broken"]
        assert results[1].status == 1
    late = [row(ask("deprecations", "--as-of", f"1.{line}.0", "--format", "json"), "late") for line in (4, 5, 6)]
    assert [item["overdue"] for item in late] == [True, True, False]
    assert "overdue since 2021-02-04" in late[2]["breaches"][0]["text"]


def test_a_release_stands_for_its_day(ask: Ask) -> None:
    assert ask("deprecations", "--as-of", "1.7.0", "--format", "json").json["as_of"] == day_of(7).isoformat()
    assert ask("deprecations", "--as-of", "torch-1.7", "--format", "json").json["as_of"] == day_of(7).isoformat()
    assert ask("deprecations", "--as-of", "1.13.0", "--format", "json").json["as_of"] == day_of(13).isoformat()
    for wrong in ("soon", "1.99.0", "2021-02-30"):
        refused = ask("deprecations", "--as-of", wrong)
        assert (refused.status, refused.out) == (2, "")


def test_what_falls_due_within_days(ask: Ask) -> None:
    due = [ask("deprecations", "--next", days, "--format", "json").json["due"] for days in ("30-days", "60-days", "1000")]
    assert [len(item) for item in due] == [0, 1, 1]
    assert due[1] == [{"day": day_of(13).isoformat(), "id": "planned", "release": "1.13.0", "what": "is planned to be removed"}]
    assert ask("deprecations", "--next", "soon").status == 2
    earlier = ask("deprecations", "--as-of", "1.9.0", "--next", "400-days", "--format", "json").json["due"]
    assert {
        "day": day_of(11).isoformat(),
        "id": "pending",
        "release": "1.11.0",
        "what": "may be removed or raise an error",
    } in earlier
    assert {
        "day": day_of(12).isoformat(),
        "id": "pending",
        "release": "1.12.0",
        "what": "must be removed, as announced",
    } in earlier


def test_where_evidence_and_file_disagree_nothing_can_be_told(ask: Ask, root: Path) -> None:
    path = root / "policies" / "torch" / "deprecations" / "keyword.toml"
    path.write_text(path.read_text(encoding="utf-8").replace('release = "1.5.0"', 'release = "1.6.0"'), encoding="utf-8")
    ended = ask("deprecations", "--format", "json")
    result = row(ended, "keyword")
    assert (ended.status, result["verdict"]) == (1, "cannot-tell")
    assert result["why"] == ["keyword: in 1.5.0 it must be warned according to its events, but it is error"]
    assert result["states"]["1.5.0"] == "error"


def test_no_deprecations_are_no_pass(ask: Ask, root: Path) -> None:
    shutil.rmtree(root / "policies" / "torch" / "deprecations")
    ended = ask("deprecations")
    assert (ended.status, ended.out) == (4, "")
    assert "torch-compat new deprecation" in ended.err


def test_a_sweep_says_from_which_day_on(ask: Ask, root: Path) -> None:
    ended = ask("deprecations", "--sweep", "1.0.0..1.11.0")
    assert ended.status == 4
    assert f"{day_of(7)} to {day_of(8) - DAY}: " in ended.out
    assert "new: waived: deprecations-timeline:too-early:too-early/removed@1.7.0" in ended.out
    unwaived(root)
    ended = ask("deprecations", "--sweep", "1.0.0..1.11.0", "--format", "json")
    assert ended.status == 1
    spans = ended.json["spans"]
    assert (
        next(span["from"] for span in spans if "deprecations-overdue:too-long:late@1.4.0" in span["broken"])
        == day_of(4).isoformat()
    )
    for before, now in itertools.pairwise(spans):
        assert set(before["broken"]) <= set(now["broken"])
        assert dt.date.fromisoformat(before["to"]) + DAY == dt.date.fromisoformat(now["from"])
    assert ask("deprecations", "--sweep", "1.5.0..1.2.0").status == 2
    assert ask("deprecations", "--sweep", "1.5.0").status == 2
    assert ask("deprecations", "--sweep", "1.2.0..1.5.0", "--as-of", "1.2.0").status == 2


def test_an_expired_waiver_is_red_from_its_day_on(ask: Ask, root: Path) -> None:
    path = root / "policies" / "torch" / "waivers" / "late-and-known.toml"
    path.write_text(path.read_text(encoding="utf-8") + f"expires = {day_of(9)}\n", encoding="utf-8")
    assert [ask("deprecations", "--as-of", (day_of(9) + offset * DAY).isoformat()).status for offset in (-1, 0)] == [0, 1]
    spans = ask("deprecations", "--sweep", "1.8.0..1.10.0", "--format", "json").json["spans"]
    assert [span["from"] for span in spans if span["expired"] == ["late-and-known"]] == [
        day_of(9).isoformat(),
        day_of(10).isoformat(),
    ]


def test_a_stricter_profile_is_chosen_by_name(ask: Ask) -> None:
    strict = ask("deprecations", "--profile", "strict", "--format", "json")
    assert (strict.status, strict.json["profile"]) == (1, "strict")
    assert row(strict, "keyword")["verdict"] == "broken"
    refused = ask("deprecations", "--profile", "strikt")
    assert refused.status == 2
    assert "did you mean strict?" in refused.err
    judged = ask("judge", "--profile", "strict", "--format", "json")
    assert judged.status == 1
    assert judged.json["notes"][0].startswith("judged under the profile strict: ")


# ---------------------------------------------------------------------------------------------------------------- explain


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("deprecations-timeline", ["rule deprecations-timeline", "what: each event of a deprecation", "example: a function first warns in 1.8.0"]),
        ("keyword", ["deprecation keyword", "2021-05-15: error in 1.5.0, allowed from 1.5.0 (2021-05-15)", "verdict: kept"]),
        ("too-early", ["was removed in 1.7.0 (2021-12-01), 1 release and 80 days too early"]),
        ("planned", ["next: may be removed or raise an error from 1.12.0"]),
        ("early-and-known", ["waiver early-and-known", "owner: us", "file: policies/torch/waivers/early-and-known.toml"]),
        ("deprecations-overdue:too-long:late@1.4.0", ["rule deprecations-overdue", "waiver late-and-known"]),
        ("strict", ["profile strict", "days: 360"]),
        ("1.13.0", ["planned release 1.13.0", "source: a plan"]),
        ("file-format 1", ["format version file-format 1"]),
    ],
)  # fmt: skip
def test_whatever_has_an_id_is_explained(ask: Ask, name: str, said: list[str]) -> None:
    ended = ask("explain", name)
    assert ended.status == 0
    for part in said:
        assert part in ended.out


def test_what_falls_due_comes_first_and_the_verdict_last(ask: Ask, root: Path) -> None:
    out = ask("deprecations", "--next", "60").out
    first, second, *_ = out.splitlines()
    assert first.startswith("Due within 60 days of ")
    assert second == f"  {day_of(13)}  planned: is planned to be removed in 1.13.0"
    assert "Broken timelines" not in out
    assert "Timelines kept so far" not in out
    assert out.splitlines()[-1].startswith("exit status 0: ")
    unwaived(root)
    broken = ask("deprecations", "--next", "60")
    assert (broken.status, broken.out.startswith("Broken timelines: 2\n")) == (1, True)
    assert "12 deprecations: 9 kept, 2 broken, 1 no-promise" in broken.out


def test_one_deprecation_is_shown_alone(ask: Ask) -> None:
    everything, item = ask("deprecations"), ask("deprecations", "keyword", "--next", "1")
    assert item.status == everything.status
    assert "1 deprecation: 1 kept" in item.out
    assert "torch.late (removal)" in everything.out
    assert "torch.late" not in item.out
    assert item.out.startswith("Nothing falls due within 1 day of ")
    refused = ask("deprecations", "keywrod")
    assert (refused.status, refused.out) == (2, "")
    assert "did you mean keyword?" in refused.err


@pytest.mark.parametrize(
    ("name", "nearest"), [("keywrod", "keyword"), ("deprecation-timeline", "deprecations-timeline"), ("known", "early-and-known")]
)
def test_what_nobody_knows_is_answered_with_the_nearest(ask: Ask, name: str, nearest: str) -> None:
    ended = ask("explain", name)
    assert (ended.status, ended.out) == (2, "")
    assert nearest in ended.err.partition("did you mean ")[2]


# ------------------------------------------------------------------------------------------------------------------- plan


def planned(ended: Ended) -> list[tuple[str | None, str | None, str | None]]:
    return [(step["event"], step["release"], step["nightly"]) for step in ended.json["steps"]]


def test_a_plan_keeps_every_promise(ask: Ask) -> None:
    ended = ask("plan", "mode", "foo(mode='A')", "--from", "1.2.0", "--format", "json")
    begin = day_of(2)
    assert ended.status == 0
    assert planned(ended) == [
        ("alternative", "1.2.0", begin.isoformat()),
        ("warned", "1.2.0", begin.isoformat()),
        ("removed", "1.4.0", (begin + 180 * DAY).isoformat()),
        ("restored", "1.6.0", (begin + 360 * DAY).isoformat()),
    ]
    strict = ask("plan", "mode", "foo(mode='A')", "--from", "1.2.0", "--profile", "strict", "--format", "json")
    assert [release for _, release, _ in planned(strict)] == ["1.2.0", "1.2.0", "1.6.0", "1.10.0"]


def test_a_plan_for_an_operator_begins_with_fixtures_and_an_upgrader(ask: Ask) -> None:
    ended = ask("plan", "operator", "aten::gelu", "--from", (day_of(2) + DAY).isoformat(), "--format", "json")
    what = [step["what"] for step in ended.json["steps"]]
    assert what[0].startswith("fixtures for the current aten::gelu")
    assert what[1].startswith("the upgrader gelu_0_1 ")
    assert what[2].startswith("readers accept file format 2; writers still write 1")
    assert what[3].startswith("writers write file format 2")
    reader, writer, warned = ended.json["steps"][2:5]
    assert (reader["nightly"], writer["nightly"]) == ((day_of(2) + DAY).isoformat(), (day_of(2) + 15 * DAY).isoformat())
    assert warned["release"] == "1.3.0"
    assert [event for event, _, _ in planned(ended)][4:] == ["warned", "error", "switched"]
    loud = ask("plan", "operator", "aten::gelu", "--loud", "--from", "1.2.0", "--format", "json")
    assert [event for event, _, _ in planned(loud)][4:] == ["warned", "switched"]


def test_a_plan_for_a_file_format_deprecates_nothing(ask: Ask) -> None:
    ended = ask("plan", "file-format", "2", "--from", "1.2.0", "--format", "json")
    assert (ended.status, ended.json["draft"]) == (0, None)
    assert {event for event, _, _ in planned(ended)} == {None}
    refused = ask("plan", "file-format", "2", "--from", "1.2.0", "--write", "two")
    assert refused.status == 2
    assert "formats.toml" in refused.err


def test_where_the_calendar_ends_a_plan_says_so(ask: Ask) -> None:
    ended = ask("plan", "removal", "torch.foo", "--from", "1.13.0")
    assert ended.status == 4
    assert "the release is unknown, because the calendar does not have 1 more release" in ended.out
    assert "the calendar, including planned releases, ends with 1.14.0" in ended.out
    assert ask("plan", "removal", "torch.foo", "--from", "2099-01-01").status == 4


@pytest.mark.parametrize("kind", ["operator", "mode", "keyword-only", "removal", "rename", "default", "behaviour"])
@pytest.mark.parametrize("start", ["1.1.0", "1.9.0", "2022-11-11"])
def test_what_a_plan_writes_loads_and_is_kept(ask: Ask, root: Path, kind: str, start: str) -> None:
    ended = ask(
        "plan", kind, "torch.foo", "--from", start, "--write", "my-plan", "--alternative", "torch.bar", "--format", "json"
    )
    assert ended.status in {0, 4}
    assert (root / ended.json["written"]).read_text(encoding="utf-8") == ended.json["draft"]
    history = next(item for item in histories(load_policy(root / "policies" / "torch")) if item.deprecation.id == "my-plan")
    assert not [breach for occurrence in history.happened for breach in occurrence.breaches]
    assert history.snapshots[-1].verdict in {TimelineState.KEPT, TimelineState.NO_PROMISE}
    judged = ask("deprecations", "--format", "json")
    assert judged.status == 1  # the probe that it names comes next
    assert "there is no probe fixtures/deprecations/my_plan.py" in judged.out
    assert ask("plan", kind, "torch.foo", "--from", start, "--write", "my-plan", "--alternative", "torch.bar").status == 2


def test_kinds_are_spelled_in_american_and_stored_as_ids(ask: Ask, root: Path) -> None:
    plans = [ask("plan", kind, "torch.foo", "--from", "1.1.0", "--format", "json").json for kind in ("behavior", "behaviour")]
    assert plans[0] == plans[1]
    assert plans[0]["kind"] == "behaviour"
    assert "changing torch.foo (behavior), starting" in ask("plan", "behaviour", "torch.foo", "--from", "1.1.0").out
    assert "--loud applies only to behavior, default, operator" in ask("plan", "removal", "torch.foo", "--loud").err
    assert ask("new", "deprecation", "mine", "--kind", "behavior-change").status == 0
    written = (root / "policies/torch/deprecations/mine.toml").read_text(encoding="utf-8")
    assert 'kind = "behavior-change"' in written
    assert 'probe = "mine"' in written
    assert "behaviour" not in written
    (root / "policies/torch/deprecations/mine.toml").unlink()
    (root / "fixtures/deprecations/mine.py").unlink()
    assert row(ask("deprecations", "--format", "json"), "behaviour")["kind"] == "behaviour-change"
    told = ask("deprecations", "--full").out
    assert "torch.behaviour (behavior-change): switched" in told
    assert "behaviour-change" not in told
    for name in ("silent behavior-change", "silent behaviour-change"):
        assert ask("explain", name).out.startswith("timeline silent behavior-change\n  kind: behavior-change\n")
    path = root / "policies/torch/deprecations/behaviour.toml"
    text = path.read_text(encoding="utf-8")
    before = load_policy(root / "policies" / "torch").deprecations
    path.write_text(text.replace("behaviour-change", "behavior-change"), encoding="utf-8")
    assert load_policy(root / "policies" / "torch").deprecations == before


def test_help_is_spelled_in_american() -> None:
    british = re.compile(r"\w*(?:behaviour|colour|modelled|neighbour|recognise|normalise|judgement)\w*")

    def texts(command: click.Command) -> Iterator[str]:
        context = click.Context(command)
        yield command.get_help(context)
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner is not None
                yield from texts(inner)

    assert [word for text in texts(top_level) for word in british.findall(text)] == []


def test_a_plan_that_cannot_be_written_leaves_nothing(ask: Ask, root: Path) -> None:
    before = sorted(root.rglob("*.toml"))
    for more in (("--write", "My Plan", "--alternative", "x"), ("--write", "my-plan")):
        assert ask("plan", "removal", "torch.foo", "--from", "1.2.0", *more).status == 2
    assert ask("plan", "removal", "torch.foo", "--from", "2099-01-01", "--write", "a", "--alternative", "x").status == 2
    assert ask("plan", "removal", "torch.foo", "--loud").status == 2
    assert sorted(root.rglob("*.toml")) == before


# -------------------------------------------------------------------------------------------------------------------- new


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_deprecation_is_refused_until_it_is_finished_line_by_line(ask: Ask, root: Path, kind: str) -> None:
    result = ask("new", "deprecation", "my-own", "--kind", kind, "--format", "json").json
    paths = {file["path"]: file["replace"] for file in result["files"]}
    assert set(paths) == {"policies/torch/deprecations/my-own.toml", "fixtures/deprecations/my_own.py"}
    policy, probe = (root / path for path in sorted(paths, reverse=True))
    ast.parse(probe.read_text(encoding="utf-8"))
    tomllib.loads(policy.read_text(encoding="utf-8"))
    refused = ask("deprecations")
    assert (refused.status, refused.out) == (2, "")
    for line in paths["policies/torch/deprecations/my-own.toml"]:
        assert f"deprecations/my-own.toml:{line}: the entry is unfinished: replace the placeholder with " in refused.err
    # finished as an author would: what is asked for, and nothing else
    text = policy.read_text(encoding="utf-8")
    text = re.sub(r'release = "<replace this: [^>]*>"', 'release = "1.11.0"', text)
    text = re.sub(r'"<replace this: a regular expression [^>]*>"', '"my own is deprecated"', text)
    text = re.sub(r"<replace this: ([^>]*)>", r"my own, \1", text)
    policy.write_text(text, encoding="utf-8")
    half = ask("deprecations", "--format", "json")
    assert half.status == 1
    assert "my-own: there is no probe fixtures/deprecations/my_own.py" in half.out
    probe.write_text(re.sub(r"<replace this: ([^>]*)>", r"my own, \1", probe.read_text(encoding="utf-8")), encoding="utf-8")
    asked = ask("deprecations", "--format", "json")
    assert asked.status == 4
    assert "my-own in torch-1.0.0: the release has not run the current probe" in asked.out


def test_a_new_deprecation_from_nothing_to_a_verdict(ask: Ask, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ask("new", "deprecation", "my-own", "--kind", "removal")
    monkeypatch.setitem(DEPRECATIONS, "my-own", DEPRECATIONS["function"])
    policy, probe = root / "policies/torch/deprecations/my-own.toml", root / "fixtures/deprecations/my_own.py"
    policy.write_text(policy_file("my-own", DEPRECATIONS["function"]), encoding="utf-8")
    probe.write_text(probe.read_text(encoding="utf-8").replace(UNFINISHED, "It is "), encoding="utf-8")
    write_evidence(root, load_policy(root / "policies" / "torch"))
    ended = ask("deprecations", "--format", "json")
    assert (ended.status, row(ended, "my-own")["verdict"]) == (0, "kept")


def test_a_new_waiver_for_a_finding(ask: Ask, root: Path) -> None:
    unwaived(root)
    assert ask("judge").status == 1
    cause = "deprecations-timeline:too-early:too-early/removed@1.7.0"
    result = ask("new", "waiver", "mine", "--finding", cause, "--format", "json").json
    path = root / "policies/torch/waivers/mine.toml"
    (file,) = result["files"]
    refused = ask("judge")
    assert refused.status == 2
    assert len(re.findall("is unfinished", refused.err)) == len(file["replace"]) == 4
    path.write_text(path.read_text(encoding="utf-8").replace(UNFINISHED, "so, "), encoding="utf-8")
    unaccepted = ask("judge", "--format", "json")
    assert unaccepted.status == 1
    messages = [finding["cause"] for finding in unaccepted.json["findings"] if finding["id"] == cause]
    assert ["the waiver mine is for this, but it was accepted with another difference" in item for item in messages] == [True]
    assert ask("accept", "--write").status == 0
    judged = ask("judge", "--format", "json").json
    assert [finding["waiver"] for finding in judged["findings"] if finding["id"] == cause] == ["mine"]
    assert [finding["id"] for finding in judged["findings"] if finding["verdict"] == "fail"] == [
        "deprecations-overdue:too-long:late@1.4.0"
    ]
    assert ask("new", "waiver", "mine").status == 2
    assert ask("new", "waiver", "other", "--finding", "nothing:of:that@1.0.0").status == 2
    assert not (root / "policies/torch/waivers/other.toml").exists()


def test_other_drafts_neither_block_a_waiver_for_a_finding_nor_change_what_fails(ask: Ask, root: Path) -> None:
    unwaived(root)
    cause = "deprecations-timeline:too-early:too-early/removed@1.7.0"
    (root / "harness" / "torch_compat" / "rules").mkdir(parents=True)
    assert ask("new", "waiver", "draft").status == 0
    assert ask("new", "rule", "mine").status == 0
    assert ask("new", "deprecation", "my-own", "--kind", "removal").status == 0
    for name in ("first", "second"):  # the first is a draft, too, so it waives nothing yet
        ended = ask("new", "waiver", name, "--finding", cause)
        assert (ended.status, ended.err) == (0, "")
        assert cause in (root / f"policies/torch/waivers/{name}.toml").read_text(encoding="utf-8")


def test_a_new_waiver_for_nothing_yet(ask: Ask, root: Path) -> None:
    begun = ask("new", "waiver", "mine").out
    assert begun.endswith(
        "After every placeholder is replaced, run:\n  torch-compat accept\n  torch-compat accept --write\n  torch-compat judge\n"
        "With --finding ID, the command fills in the cells of a failing finding.\n"
    )
    refused = ask("judge")
    assert refused.status == 2
    assert "replace the placeholder with the recipes" in refused.err
    assert "replace the placeholder with the person responsible" in refused.err


def test_a_new_rule_is_listed_and_refused_while_it_is_half_done(ask: Ask, root: Path) -> None:
    refused = ask("new", "rule", "mine")
    assert refused.status == 2
    assert "has no harness/torch_compat/rules" in refused.err
    (root / "harness" / "torch_compat" / "rules").mkdir(parents=True)
    result = ask("new", "rule", "mine", "--format", "json").json
    module, promises = (root / file["path"] for file in result["files"])
    docstring = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
    assert [word for word in ("What", "Why", "Example", "Reference") if f"\n{word}: {UNFINISHED}" in docstring] != []
    rules = [rule["id"] for rule in tomllib.loads(promises.read_text(encoding="utf-8"))["rule"]]
    assert rules[-2:] == ["mine", "waivers-exact"]
    assert "promises.toml" in ask("judge").err
    promises.write_text(promises.read_text(encoding="utf-8").replace(UNFINISHED, "so "), encoding="utf-8")
    assert "the rule 'mine', which does not exist" in ask("judge").err  # this tree is not the one that the program runs from
    assert ask("new", "rule", "mine").status == 2
    assert ask("new", "rule", "waivers-exact").status == 2


@pytest.mark.parametrize("what", ["deprecation", "rule", "waiver"])
@pytest.mark.parametrize("name", ["Mine", "my own", "../mine", "-mine", "mine_", "mïne", ""])
def test_a_bad_name_is_refused(ask: Ask, root: Path, what: str, name: str) -> None:
    before = sorted(root.rglob("*"))
    more = ("--kind", "removal") if what == "deprecation" else ()
    assert ask("new", what, *more, "--", name).status == 2
    assert sorted(root.rglob("*")) == before


def test_a_name_that_is_taken_is_refused(ask: Ask) -> None:
    assert "already exists" in ask("new", "deprecation", "mode", "--kind", "removal").err
    assert ask("new", "deprecation", "mine").status == 2


# -------------------------------------------------------------------------------------------------------------- judge --as-of


def test_a_new_release_is_asked_for_from_its_day_on(ask: Ask, root: Path) -> None:
    path = root / "policies/torch/releases.toml"
    more = '\n[[release]]\nversion = "1.12.0"\ndate = {day}\npythons = ["3.8"]\ninstall = "whole"\nnumpy = "<2"\n'
    path.write_text(path.read_text(encoding="utf-8") + more.format(day=day_of(12)), encoding="utf-8")
    timelines = root / "policies/torch/timelines.toml"
    text = timelines.read_text(encoding="utf-8")
    timelines.write_text(
        text.replace(f'[[release]]\nversion = "1.12.0"\ndate = {day_of(12)}\nsource = "a plan"\n', ""), encoding="utf-8"
    )
    results = [ask("deprecations", "--as-of", (day_of(12) + offset * DAY).isoformat(), "--format", "json") for offset in (-1, 0)]
    assert [item.status for item in results] == [0, 1]
    assert [item["not_checked"] for item in (results[0].json,)] == [[]]
    # the release that `pending` was to be gone in is there, and it is not gone: it stays too long
    assert [finding["id"] for finding in results[1].json["findings"] if finding["verdict"] == "fail"] == [
        "deprecations-overdue:too-long:pending@1.12.0"
    ]
    assert {item["reason"].partition(":")[2] for item in results[1].json["not_checked"]} == {
        ' the release has not run any deprecation probe; run nox -s "observe(torch-1.12.0)" -- --record'
    }


def test_recordings_of_other_kinds_do_not_matter(ask: Ask, root: Path) -> None:
    """The light reading of evidence gives what the whole gives."""
    assert write_recorded(folder_of(root), readers_of(root).values()) == []
    light = json.loads(ask("deprecations", "--format", "json").out)["findings"]
    whole = json.loads(ask("judge", "--format", "json").out)["findings"]
    assert [item["id"] for item in light] == [item["id"] for item in whole if item["id"].startswith("deprecations-")]


def test_outside_a_tree_the_packaged_policy_is_compared_with_the_calendar(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders that are called like those of a tree make none."""
    outside = tmp_path / "policies" / "fixtures"
    outside.mkdir(parents=True)
    monkeypatch.chdir(outside)
    ended = ask("deprecations", "--format", "json")
    assert (ended.status, ended.err) == (4, "")
    (unknown,) = ended.json["not_checked"]
    assert unknown["what"] == "deprecations-evidence"
    assert unknown["count"] == len(ended.json["deprecations"]) > 50
    assert row(ended, "floor-divide")["verdict"] == "broken"
    assert row(ended, "floor-divide")["states"] == {}
    assert {finding["verdict"] for finding in ended.json["findings"]} == {"waived"}
    text = ask("deprecations", "floor-divide")
    assert (text.status, "is not in a checkout" in text.out) == (4, True)
    earlier = row(ask("deprecations", "--as-of", "1.10.0", "--format", "json"), "floor-divide")
    assert earlier["state"] == "warned"
    for option in (("--states",), ("--sweep", "1.10.0..1.11.0")):
        assert ask("deprecations", *option).status == 4
    assert ask("deprecations", "--root", str(outside)).status == 4
