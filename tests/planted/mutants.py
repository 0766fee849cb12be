"""Single-line changes of the code that decides verdicts, each with the tests that must fail with it.

A test that passes with and without such a change does not check it. tests/planted/test_mutants.py applies each change to a copy of the
package, and runs these tests there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

__all__ = ["MUTANTS", "PACKAGE", "ROOT", "Copy", "Mutant"]

ROOT = Path(__file__).parents[2]
PACKAGE = Path("harness", "torch_compat")
LINKED = ("docs", "fixtures", "policies", "reports")
"""Folders that the tests only read."""
FAILED = 1
"""The exit status of pytest if a test failed; every other one but 0 says that the tests did not run."""
INSIDE = """\
import pathlib, sys, pytest, torch_compat
assert pathlib.Path(torch_compat.__file__).is_relative_to(pathlib.Path.cwd()), torch_compat.__file__
sys.exit(pytest.main(sys.argv[1:]))
"""


class Mutant(NamedTuple):
    """A change that tests must notice.

    Attributes:
        file: the file, in the package.
        old, new: a text that occurs once in the file, and its replacement.
        tests: the tests that fail with the replacement, by node id.
        why: what would go unnoticed with it.
    """

    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    why: str


class Copy:
    """A copy of the package and of the tests.

    Parameters:
        folder: an empty folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        ignored = shutil.ignore_patterns("__pycache__")
        for name in ("harness", "tests", "tools"):
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        for name in LINKED:
            (folder / name).symlink_to(ROOT / name)
        shutil.copy(ROOT / "pyproject.toml", folder)

    def change(self, mutant: Mutant) -> None:
        """Apply a change."""
        path = self.folder / PACKAGE / mutant.file
        text = path.read_text(encoding="utf-8")
        assert text.count(mutant.old) == 1, f"{mutant.file} has {text.count(mutant.old)} times {mutant.old!r}"
        path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")

    def restore(self, mutant: Mutant) -> None:
        """Take a change back, with the time of the original file, so that no compiled file of the changed one is used."""
        shutil.copy2(ROOT / PACKAGE / mutant.file, self.folder / PACKAGE / mutant.file)

    def run(self, *tests: str) -> tuple[int, str]:
        """Run tests by node id with the package of the copy; return the exit status of pytest, and its output."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        environment["PYTHONPATH"] = f"{self.folder / 'harness'}{os.pathsep}{self.folder}"
        command = [sys.executable, "-c", INSIDE, "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
        done = subprocess.run(command, env=environment, cwd=self.folder, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


MUTANTS: dict[str, Mutant] = {
    # --------------------------------------------------------------------------------------------------- values of two results
    "inputs that cannot be built count as the error of the writer": Mutant(
        "values/compare.py",
        '    if "error" in wanted and "error" in given and (given["error"]["type"] != NOT_ASKED or wanted["error"]["type"] == NOT_ASKED):',
        '    if "error" in wanted and "error" in given:',
        ("tests/values/test_compare.py::test_a_reader_that_could_not_even_make_the_inputs_did_not_raise_as_the_writer",),
        "A program that cannot be called in a release would agree with a writer that raised.",
    ),
    "two readers that cannot build the inputs disagree": Mutant(
        "values/compare.py",
        ' or wanted["error"]["type"] == NOT_ASKED):',
        "):",
        ("tests/values/test_compare.py::test_a_reader_that_could_not_even_make_the_inputs_did_not_raise_as_the_writer",),
        "The same release observed twice would contradict itself.",
    ),
    "an empty state is not compared": Mutant(
        "values/compare.py",
        "if expected[part] is not None and got[part] is not None:",
        'if expected[part] not in (None, {"dict": []}) and got[part] not in (None, {"dict": []}):',
        ("tests/values/test_compare.py::test_a_state_that_is_empty_is_not_one_that_is_unknown",),
        "A reader that loses every parameter would agree with the writer.",
    ),
    "the exit status of a dead process is ignored": Mutant(
        "values/compare.py",
        '("stage", "signal", "exit"))',
        '("stage", "signal"))',
        ("tests/values/test_compare.py::test_endings",),
        "Two different crashes would be the same.",
    ),
    "warnings that are gone are not reported": Mutant(
        "values/compare.py",
        "if set(warned[0]) != set(warned[1]):",
        "if set(warned[1]) - set(warned[0]):",
        ("tests/values/test_compare.py::test_warnings_of_calls_are_told_where_they_are_others",),
        "A warning that a release lost would go unnoticed.",
    ),
    "two storages become one": Mutant(
        "values/compare.py",
        "        if y in self.taken:\n            return False\n",
        "",
        ("tests/values/test_compare.py::test_sharing",),
        "Tensors that begin to share memory would be equal to tensors that do not.",
    ),
    "a distance is relative to the smaller magnitude": Mutant(
        "values/compare.py",
        "gap / np.maximum(np.abs(a), np.abs(b))",
        "gap / np.minimum(np.abs(a), np.abs(b))",
        ("tests/values/test_compare.py::test_a_relative_distance_is_a_share_of_the_larger_magnitude",),
        "The relative bound of a tolerance would mean something else.",
    ),
    "results and inputs are compared apart": Mutant(
        "values/compare.py",
        'both.compare(wanted["inputs"], given["inputs"], f"{where}.inputs")',
        'walk().compare(wanted["inputs"], given["inputs"], f"{where}.inputs")',
        ("tests/values/test_compare.py::test_sharing_between_a_result_and_an_input_counts",),
        "A result that no longer is a view of an input would be equal.",
    ),
    # ---------------------------------------------------------------------------------------- tolerances and expected refusals
    "one of the two bounds is enough": Mutant(
        "policy/model.py",
        "(distances.gap[beyond] <= self.max_abs) & (distances.relative",
        "(distances.gap[beyond] <= self.max_abs) | (distances.relative",
        ("tests/policy/test_model.py::test_every_element_is_within_the_ulp_bound_or_within_both_others",),
        "Large relative errors of small values would be close.",
    ),
    "one element within the bounds is enough": Mutant(
        "policy/model.py",
        ".all())\n\n    def spec",
        ".any())\n\n    def spec",
        ("tests/policy/test_model.py::test_every_element_is_within_the_ulp_bound_or_within_both_others",),
        "A tensor with one wrong element would be close.",
    ),
    "stored values have a tolerance": Mutant(
        "policy/policy.py",
        "        if family in STORED:\n            return None\n",
        "",
        ("tests/policy/test_model.py::test_what_is_only_stored_has_no_tolerance",),
        "A state that changed by a bit would be close.",
    ),
    "a difference is disregarded for every family": Mutant(
        "policy/policy.py",
        "entry.kind == kind and family in entry.families",
        "entry.kind == kind",
        ("tests/policy/test_model.py::test_a_kind_of_difference_is_disregarded_for_the_families_that_are_named",),
        "Strides of programs would be ignored because those of another family are.",
    ),
    "a format is read by every later release": Mutant(
        "policy/model.py",
        "Release(self.read_until.release) if self.read_until else None)\n\n    @property\n    def label",
        "None)\n\n    @property\n    def label",
        ("tests/policy/test_model.py::test_a_format_is_read_up_to_the_last_release_that_reads_it",),
        "Releases that dropped a format would be expected to read it.",
    ),
    "the containers of an expected refusal are ignored": Mutant(
        "policy/model.py",
        " and (self.containers is None or container in self.containers)",
        "",
        ("tests/policy/test_model.py::test_a_refusal_is_expected_of_the_containers_that_are_named",),
        "A release that refuses to map any zip archive would be expected to.",
    ),
    "any outcome with the message of an expected refusal is expected": Mutant(
        "judging/evidence.py",
        "if cells.outcome is not Outcome.REFUSED or allowed is None or",
        "if allowed is None or",
        ("tests/rules/test_evidence.py::test_only_a_refusal_is_what_load_options_may_cause",),
        "A program that raises would count as a refusal by its load options.",
    ),
    "an observation of another archive is valid": Mutant(
        "judging/evidence.py",
        "return observation if observation.key == cell_key(fixture.subject, options.load.given()) else None",
        "return observation",
        ("tests/rules/test_evidence.py::test_the_observation_of_one_pair_is_valid_under_its_key_alone",),
        "Records of an archive that has changed since would be judged.",
    ),
    "the last day of the forward window is outside": Mutant(
        "judging/evidence.py",
        "if apart <= self.policy.forward_window_days",
        "if apart < self.policy.forward_window_days",
        ("tests/rules/test_cells.py::test_the_window_is_policy_and_holds_its_last_day",),
        "A reader exactly as old as the window would be promised nothing.",
    ),
    "every value in place of an error is explained": Mutant(
        "judging/cells.py",
        "yield part, Verdict.NO_PROMISE if named else Verdict.FAIL",
        "yield part, Verdict.NO_PROMISE",
        ("tests/rules/test_relaxed.py::test_a_change_is_the_cause_where_it_fits",),
        "An error that disappeared without a stated change would break no promise.",
    ),
    "a change explains what happened before it": Mutant(
        "judging/relaxed.py",
        "return any(before < since <= after for since in changed)",
        "return any(before <= since <= after for since in changed)",
        ("tests/rules/test_relaxed.py::test_a_later_relaxation_is_not_explained_by_an_earlier_change",),
        "A change would explain a later one of another cause.",
    ),
    "releases that read nothing explain values of 16-bit floats": Mutant(
        "judging/relaxed.py",
        "} & self._recorded\n",
        "}\n",
        ("tests/rules/test_relaxed.py::test_a_release_that_is_not_recorded_does_not_explain_what_16_bit_floats_do",),
        "A change would be taken from a release without evidence.",
    ),
    "a run that checked nothing passes": Mutant(
        "judging/judge.py",
        "exit_status=1 if counts[Verdict.FAIL] else 4 if counts[Verdict.NOT_CHECKED] or checked_nothing else 0",
        "exit_status=1 if counts[Verdict.FAIL] else 4 if counts[Verdict.NOT_CHECKED] else 0",
        ("tests/rules/test_judge.py::test_a_policy_that_expects_nothing_at_all_checks_nothing",),
        "Nothing checked would look like everything kept.",
    ),
    "results of the reference reader are not missed": Mutant(
        "judging/judge.py",
        '("reference-agrees", evidence.modelled, "the reference reader was run"),',
        "",
        ("tests/rules/test_judge.py::test_a_reader_that_ran_and_wordings_that_no_rule_judges_are_not_a_pass",),
        "A policy without the rule would not judge a reader that ran.",
    ),
    "causes begin with the release of the writer": Mutant(
        "judging/findings.py",
        'nearest = wrote if cells.direction == "own" else wrote + 1',
        "nearest = wrote",
        (
            "tests/rules/test_beginnings.py::test_a_break_that_was_mended_and_came_again_begins_with_the_release_that_broke_it_again",
        ),
        "A finding would name a release that did not break anything.",
    ),
    # ----------------------------------------------------------------------------------------------------------------- waivers
    "general waivers apply to recipes that others name": Mutant(
        "judging/waiving.py",
        "& self._span(covers) & ~named if",
        "& self._span(covers) if",
        ("tests/rules/test_waiving.py::test_a_waiver_that_names_the_recipe_comes_before_one_that_names_none",),
        "Two waivers would cover one cell.",
    ),
    "a waiver continues to other recipes": Mutant(
        "judging/waiving.py",
        "if block.direction == direction and recipe in block.recipes:",
        "if block.direction == direction:",
        ("tests/rules/test_waiving.py::test_a_swap_of_two_accepted_differences_is_red",),
        "Differences that two recipes swap would stay waived.",
    ),
    "a new reader continues with recipes that only exist": Mutant(
        "judging/waiving.py",
        "(new_recipe or recipe in block.recipes) and _held(block, wrote, known) >> read & 1",
        "_held(block, wrote, known) >> read & 1",
        ("tests/rules/test_waiving.py::test_a_new_reader_continues_only_with_the_recipes_of_the_lock",),
        "A program that begins to fail in a new release would be waived.",
    ),
    "a new reader continues what its neighbor mended": Mutant(
        "judging/waiving.py",
        "(new_recipe or recipe in block.recipes) and _held(block, wrote, known) >> read & 1",
        "(new_recipe or recipe in block.recipes)",
        ("tests/rules/test_waiving.py::test_what_the_newest_release_of_the_lock_mended_does_not_continue",),
        "A regression would be waived because of an older release.",
    ),
    "a new writer continues what it does with archives of others": Mutant(
        "judging/waiving.py",
        '        if writer == place and cells.direction != "own":',
        "        if writer == place:",
        ("tests/rules/test_waiving.py::test_a_new_release_that_refuses_its_own_does_not_continue_what_it_refuses_of_others",),
        "A release that cannot read its own archives would be waived.",
    ),
    "an open waiver need not reach the newest release": Mutant(
        "judging/waiving.py",
        "ends += inside[-1:] if interval.last is not None else could[-1:]",
        "ends += inside[-1:] if interval.last is not None else []",
        ("tests/rules/test_waiving.py::test_a_waiver_that_is_open_to_the_newest_release_is_too_wide_where_that_release_loads",),
        "A waiver would stay open for releases in which nothing fails.",
    ),
    "a wording holds for the releases of the other text": Mutant(
        "judging/wordings.py",
        "if after.says(*given):\n                    yield WordingUse(wording.id, wrote, read), after.releases",
        "if after.says(*given):\n                    yield WordingUse(wording.id, wrote, read), before.releases | after.releases",
        ("tests/rules/test_wordings.py::test_a_wording_explains_some_of_the_readers_that_did_the_same",),
        "A text would be accepted from releases that never raised it.",
    ),
    # ------------------------------------------------------------------------------------------------------------------- rules
    "any other values are the stated mistake": Mutant(
        "rules/synthetic_loads.py",
        "cells.outcome is Outcome.DIFFERENT and _as_stated(mistaken, cells):",
        "cells.outcome is Outcome.DIFFERENT:",
        ("tests/rules/test_synthetic_loads.py::test_a_reader_that_mistakes_it_gives_exactly_what_that_comes_to",),
        "Garbage from a format that a reader does not know would be expected.",
    ),
    "archives that nobody loads need not be compared": Mutant(
        "rules/calls_heard.py",
        '("error" in golden or bool(golden.get("calls")))',
        'bool(golden.get("calls"))',
        ("tests/rules/test_calls_heard.py::test_an_archive_that_its_writer_cannot_load_is_refused_in_the_same_words",),
        "Errors of such archives would be equal without having been compared.",
    ),
    "old readers must read what a build wrote": Mutant(
        "rules/pairs_observed.py",
        "0 <= (day - release.date).days <= policy.forward_window_days",
        "0 <= (day - release.date).days",
        ("tests/rules/test_observation_rules.py::test_only_readers_inside_the_window_must_read_what_a_build_wrote",),
        "A build would need observations by every release.",
    ),
    "a reader that refuses once refuses anyway": Mutant(
        "rules/weights_only_predicted.py",
        "{name: bits & ~loaded.get(name, 0) for",
        "{name: bits for",
        ("tests/rules/test_weights_only_predicted.py::test_an_older_reader_that_loads_it_freely_in_any_way_has_no_excuse",),
        "A restricted unpickler could refuse plain tensors unnoticed.",
    ),
    "events of the first day of the policy need no documentation": Mutant(
        "rules/deprecations_documented.py",
        "elif occurrence.point.day < history.in_force:",
        "elif occurrence.point.day <= history.in_force:",
        ("tests/rules/test_deprecation_rules.py::test_a_warning_of_the_first_day_of_the_policy_is_documented",),
        "A deprecation of that day could stay undocumented.",
    ),
    "a break in the release of the writer explains a refusal": Mutant(
        "judging/operator_refusals.py",
        "rank[writer] < newer <= rank[reader]]",
        "rank[writer] <= newer <= rank[reader]]",
        ("tests/rules/test_operator_rules.py::test_a_break_in_the_release_of_the_writer_explains_no_refusal",),
        "A waiver would cover archives that never had the operator.",
    ),
    "one waived break explains a refusal": Mutant(
        "judging/operator_refusals.py",
        "Verdict.EXPECTED if all(between) else",
        "Verdict.EXPECTED if any(between) else",
        ("tests/rules/test_operator_rules.py::test_every_break_between_writer_and_reader_needs_a_waiver",),
        "A break without a waiver would be expected.",
    ),
    # ------------------------------------------------------------------------------------------------------------ deprecations
    "the first day of the policy is not promised": Mutant(
        "policy/timeline.py",
        "        promised = point.day >= self.in_force\n        if before",
        "        promised = point.day > self.in_force\n        if before",
        ("tests/policy/test_timeline.py::test_the_policy_is_in_force_on_its_first_day",),
        "A removal on that day would break no promise.",
    ),
    "nightlies of the first day of the policy are not promised": Mutant(
        "policy/timeline.py",
        "promised = event.nightly >= self.in_force",
        "promised = event.nightly > self.in_force",
        ("tests/policy/test_timeline.py::test_a_nightly_of_the_first_day_of_the_policy_is_promised",),
        "A nightly of that day would break no promise.",
    ),
    "features due on the first day of the policy are not promised": Mutant(
        "policy/timeline.py",
        "due.day >= self.in_force, text)",
        "due.day > self.in_force, text)",
        ("tests/policy/test_timeline.py::test_a_removal_that_is_due_on_the_first_day_of_the_policy_is_promised",),
        "A feature that is overdue since that day would break no promise.",
    ),
    "a step counts from its last event": Mutant(
        "policy/timeline.py",
        "return min(taken,",
        "return max(taken,",
        ("tests/policy/test_timeline.py::test_what_comes_next_waits_from_the_first_event_of_the_step",),
        "A feature that raised for two releases would come back too early.",
    ),
    "an announcement counts before it is allowed": Mutant(
        "policy/timeline.py",
        "max(point, self.axis[allowed.release], key=",
        "min(point, self.axis[allowed.release], key=",
        ("tests/policy/test_timeline.py::test_what_was_announced_too_early_is_late_only_from_when_it_was_allowed",),
        "A removal would be late before it may happen.",
    ),
    "a feature that came back need not warn again": Mutant(
        "policy/timeline.py",
        '            if event.what == "withdrawn" or (event.what == "restored" and self.deprecation.kind != "mode-change"):',
        '            if event.what == "withdrawn":',
        ("tests/policy/test_timeline.py::test_what_was_restored_must_warn_again_before_it_goes",),
        "A second removal would break no promise.",
    ),
    "nightlies of planned releases are ignored": Mutant(
        "policy/timeline.py",
        "(breach.kind == on_nightlies or not self.axis[breach.release].planned)",
        "(not self.axis[breach.release].planned)",
        ("tests/policy/test_timeline.py::test_a_nightly_of_a_planned_release_is_there_before_the_release",),
        "A nightly that breaks users today would be judged with its release.",
    ),
    "removed features may keep a docstring that does not say so": Mutant(
        "judging/timelines.py",
        "State.CANNOT_TELL} and docs is None:",
        "State.CANNOT_TELL}:",
        ("tests/judging/test_timelines.py::test_only_a_docstring_that_is_gone_is_excused",),
        "Documentation of a removed feature would not be checked.",
    ),
    "removed features may keep a docstring without the announcement": Mutant(
        "judging/timelines.py",
        "if observed.docs is None and value.state in",
        "if value.state in",
        ("tests/judging/test_timelines.py::test_an_announcement_is_not_required_of_a_docstring_that_is_gone",),
        "An announcement that was never made would not be missed.",
    ),
    "a visible warning is hidden by another one": Mutant(
        "judging/timelines.py",
        'return given[0] if given and HIDDEN.issuperset(given) else ""',
        'return given[0] if given and HIDDEN.intersection(given) else ""',
        ("tests/judging/test_timelines.py::test_a_warning_that_python_hides_must_be_stated",),
        "A warning that users see would have to be stated as hidden.",
    ),
    "an announcement beyond the stated words is stated": Mutant(
        "judging/timelines.py",
        "if not any(start <= match.start() and match.end() <= end for start, end in stated):",
        "if not any(start <= match.start() for start, end in stated):",
        ("tests/judging/test_timelines.py::test_every_announcement_is_stated_and_every_stated_one_is_made",),
        "An announcement for another release would go unnoticed.",
    ),
    "states that the file calls unclear leave the verdict open": Mutant(
        "judging/timelines.py",
        "if state.state is State.CANNOT_TELL and release not in excused",
        "if state.state is State.CANNOT_TELL",
        ("tests/judging/test_timelines.py::test_a_state_that_is_unclear_leaves_the_verdict_open_unless_the_file_says_so",),
        "A stated excuse would have no effect.",
    ),
    # ---------------------------------------------------------------------------------------------------------------- releases
    "the older of two patches represents a release": Mutant(
        "releases/known.py",
        "-item.numbers[2], at",
        "item.numbers[2], at",
        ("tests/releases/test_known.py::test_of_two_patches_as_near_the_newer_stands",),
        "A patch would have the operators of the patch before it.",
    ),
    "every release of the settled day belongs to the corpus": Mutant(
        "releases/scope.py",
        'if table["date"] > settled:',
        'if table["date"] >= settled:',
        ("tests/releases/test_scope.py::test_a_release_of_the_settled_day_counts_only_as_the_newest_patch_of_its_line",),
        "A patch that was replaced on its day would need observations.",
    ),
    "buffers are named one release too early": Mutant(
        "runtime/module.py",
        'Release("1.9.0")',
        'Release("1.8.0")',
        ("tests/runtime/test_python_methods.py::test_buffers_that_the_source_does_not_name_are_known_up_to_1_8",),
        "The state of programs in 1.8 would lack its buffers.",
    ),
    "anything unmet is unmet in every folder": Mutant(
        "runtime/slips.py",
        'if kind == "unmet-in" and any(item.where.startswith(rest) for item in unmet):',
        'if kind == "unmet-in" and unmet:',
        ("tests/runtime/test_slips.py::test_debug_records_are_deadly_only_where_something_in_the_source_is_refused",),
        "Releases would be predicted to crash where they refuse.",
    ),
    "1.0 keeps gradients of products": Mutant(
        "runtime/slipping.py",
        "if FORGOTTEN in slips and name in FUSED:",
        "if False:",
        (
            "tests/runtime/test_slips.py::test_what_stands_in_code_is_counted_where_a_program_comes_to_it[torch-1.0.1/traced.pt-1.0.1-products-without-gradient]",
        ),
        "Predictions for 1.0 would be wrong.",
    ),
    # ---------------------------------------------------------------------------------------------------------------- archives
    "bytes behind deflated data are accepted": Mutant(
        "archive/zip_member.py",
        "self._compare_length(len(result), sizes, whole=inflater.eof, more=bool(inflater.unused_data))",
        "self._compare_length(len(result), sizes, whole=inflater.eof, more=False)",
        ("tests/archive/test_zip.py::test_bytes_behind_deflated_data_are_damage",),
        "Bytes that no checksum covers would be hidden in a record.",
    ),
    "half of the members share a folder": Mutant(
        "archive/zip.py",
        "2 * counts[best] > len(names)",
        "2 * counts[best] >= len(names)",
        ("tests/archive/test_zip.py::test_a_folder_of_exactly_half_of_the_members_is_not_common",),
        "Names of records would depend on their order.",
    ),
    "an overlap is named twice": Mutant(
        "archive/zip.py",
        "if member is not None and member.record not in overlapping:",
        "if member is not None:",
        ("tests/archive/test_zip.py::test_members_upon_each_other",),
        "The counts of damage would be wrong.",
    ),
    "compressed data need no end": Mutant(
        "archive/zip_member.py",
        "if length in sizes and whole and not more:",
        "if length in sizes and not more:",
        ("tests/archive/test_zip.py::test_compressed_data_without_an_end_are_damage_even_where_all_bytes_came_out",),
        "A truncated record would be read as a whole one.",
    ),
    "flags of the two headers are not compared": Mutant(
        "archive/zip_member.py",
        "(number and (number != 1 or (here ^ there) & COMPARED_FLAGS))",
        "(number and number != 1)",
        ("tests/archive/test_zip.py::test_flags_that_change_the_meaning_agree_in_both_headers",),
        "Readers that trust different headers would disagree about a record.",
    ),
    "data may reach into the directory": Mutant(
        "archive/zip_member.py",
        "if self._offset + self._stored > shared.directory:",
        "if self._offset + self._stored > len(shared.raw):",
        ("tests/archive/test_zip.py::test_data_do_not_reach_into_the_directory",),
        "The directory would be read as a part of a record.",
    ),
    "the end of a file alone makes it one of torch": Mutant(
        "archive/zip_directory.py",
        "shared.torch = votes >= 3",
        "shared.torch = votes >= 2",
        ("tests/archive/test_zip.py::test_the_end_of_a_file_alone_does_not_make_it_one_of_torch",),
        "Archives of other writers would be damaged.",
    ),
    "any negative position of a list is accepted": Mutant(
        "pickles/machine.py",
        "not -len(into) <= key < len(into)",
        "not key < len(into)",
        ("tests/pickles/test_machine.py::test_positions_of_a_list_count_from_its_end_as_in_python",),
        "The machine would die of an IndexError.",
    ),
    "the memo is limited only at the end": Mutant(
        "pickles/machine.py",
        "if product + len(marks) > limits.objects or len(memo) > limits.memo:",
        "if product + len(marks) > limits.objects:",
        ("tests/pickles/test_machine.py::test_the_memo_is_limited_before_the_end_of_a_pickle",),
        "A pickle could fill the memory before it is refused.",
    ),
    "the memo of a short pickle is not limited": Mutant(
        "pickles/machine.py",
        "    if product > limits.objects or len(memo) > limits.memo:",
        "    if product > limits.objects:",
        ("tests/pickles/test_machine.py::test_a_pickle_that_is_shorter_than_a_stride_is_limited_at_its_end",),
        "Many short pickles could fill the memory.",
    ),
    "items of sets are not counted": Mutant(
        "pickles/machine.py",
        "                elif op == 144:  # ADDITEMS\n                    budget.keys(items)\n",
        "                elif op == 144:  # ADDITEMS\n",
        ("tests/pickles/test_machine.py::test_keys_are_counted_wherever_they_are_hashed",),
        "A small pickle could take hours to hash.",
    ),
    "names of Python 2 are translated for every protocol": Mutant(
        "pickles/weights_only.py",
        'if rules.renames == "always" or (rules.renames == "protocol-2" and protocol == 2):',
        'if rules.renames == "always" or rules.renames == "protocol-2":',
        ("tests/pickles/test_weights_only.py::test_what_is_refused",),
        "Pickles would be predicted to load that 2.4 refuses.",
    ),
    "names are offered for releases without add_safe_globals": Mutant(
        "pickles/weights_only.py",
        "safe=wanted if rules.adds else {})",
        "safe=wanted)",
        ("tests/pickles/test_weights_only.py::test_names_are_allowed_where_users_can_add_them",),
        "Users would be told to allow names in releases that cannot.",
    ),
    "texts are limited only at the end": Mutant(
        "pickles/machine.py",
        "if 2 * carried - plain > limits.memory:\n                        raise _too_long(limits)\n                if base + end",
        "if False:\n                        raise _too_long(limits)\n                if base + end",
        ("tests/pickles/test_machine.py::test_texts_are_limited_before_the_end_of_a_pickle",),
        "A pickle could fill the memory with texts before it is refused.",
    ),
}
