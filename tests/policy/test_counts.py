"""The lock of counts: a grammar that reveals every cut, and merges line by line."""

from __future__ import annotations

import string
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_compat.errors import PolicyError
from torch_compat.policy import Policy, load_policy
from torch_compat.policy.accepted import WAIVERS_LOCK
from torch_compat.policy.counts import (
    ACCEPT,
    BY_JUDGING,
    BY_PREDICTING,
    HEADER,
    LOCK,
    PREDICT,
    WAITS,
    check_lock,
    key_of,
    lock_text,
    read_lock,
    rewritten,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_compat.policy.counts import Key, Value

KINDS = sorted((BY_JUDGING | BY_PREDICTING) - {"operator_waiver"})
SEEN = "0123456789abcdef"
COUNTS: dict[Key, Value] = {
    ("behavior", "dies"): 40,
    ("behavior", "known"): 2,
    ("behavior", "known-too"): 7,
    ("behavior", "odd"): 3,
    ("operator_gap", "2.13.0"): 138,
    ("operator_waiver", "op-a aten::f.out"): SEEN,
}
ids = st.text(string.ascii_lowercase + string.digits + "-.", min_size=1)
counted = st.dictionaries(st.tuples(st.sampled_from(KINDS), ids), st.integers(1, 999_999_999))
pinned = st.dictionaries(
    st.builds(key_of, ids, ids.map("aten::{}".format)), st.just(WAITS) | st.text(string.hexdigits[:16], min_size=16, max_size=16)
)
locks = st.builds(lambda item, other: {**item, **other}, counted, pinned)


def problems(folder: Path, text: str | None, wanted: dict[Key, Value] = COUNTS) -> list[str]:
    if text is not None:
        (folder / LOCK).write_bytes(text.encode())
    return [str(problem).replace(f"{folder.as_posix()}/", "") for problem in check_lock(read_lock(folder), wanted.keys())]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("locks")


@given(locks)
def test_what_is_written_is_read(shared: Path, counts: dict[Key, Value]) -> None:
    assert problems(shared, lock_text(counts), counts) == []
    assert read_lock(shared).values == counts
    assert lock_text(dict(reversed(counts.items()))) == lock_text(counts)


@given(locks.filter(bool), st.data())
def test_every_cut_is_noticed(shared: Path, counts: dict[Key, Value], data: st.DataObject) -> None:
    text = lock_text(counts)
    assert problems(shared, text[: data.draw(st.integers(0, len(text) - 1))], counts)


@given(locks.filter(bool), st.data())
def test_a_line_that_is_taken_out_or_repeated_is_noticed(shared: Path, counts: dict[Key, Value], data: st.DataObject) -> None:
    lines = lock_text(counts).splitlines(keepends=True)
    at = data.draw(st.integers(0, len(lines) - 1))
    assert problems(shared, "".join(lines[:at] + lines[at + 1 :]), counts)
    assert problems(shared, "".join(lines[: at + 1] + lines[at:]), counts)


@given(locks, locks)
def test_two_branches_merge_line_by_line(shared: Path, ours: dict[Key, Value], theirs: dict[Key, Value]) -> None:
    """The lines of both, sorted, are the lock of both."""
    merged = {**theirs, **ours}
    lines = {line for line in lock_text(merged).splitlines() if not line.startswith("#")}
    assert (
        problems(
            shared,
            HEADER + "".join(f"{line}\n" for line in sorted(lines, key=lambda line: line.partition(" = ")[0].split(" ", 1))),
            merged,
        )
        == []
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("behavior known = 2\n", "behavior known = 02\n", "counts.lock:4: must be 'KIND ID = COUNT', such as 'behavior buffers-without-type = 12'; found 'behavior known = 02'"),
        ("behavior known = 2\n", "behavior known = 0\n", f"counts.lock:4: behavior known must have a count greater than 0: remove it from the policy, or {PREDICT}"),
        ("behavior dies = 40\n", "behavior dies = 0\n", f"counts.lock:3: behavior dies must have a count greater than 0: remove it from the policy, or {PREDICT}"),
        ("behavior known = 2\n", "behavior known = 1234567890\n", "counts.lock:4: must be 'KIND ID = COUNT'"),
        ("behavior known = 2\n", "behavior known = -2\n", "counts.lock:4: must be 'KIND ID = COUNT'"),
        ("behavior known = 2\n", "behavior known=2\n", "counts.lock:4: must be 'KIND ID = COUNT'"),
        ("behavior known = 2\n", "behavior known = 2\r\n", "counts.lock:4: must be 'KIND ID = COUNT'"),
        ("behavior known = 2\n", "# behavior known = 2\n", "counts.lock:4: must be 'KIND ID = COUNT'"),
        ("behavior known = 2\n", "\nbehavior known = 2\n", "counts.lock:4: must be 'KIND ID = COUNT'"),
        ("behavior known = 2\n", "exception known = 2\n", "counts.lock:4: must be 'KIND ID = COUNT'"),
        ("behavior known = 2\n", "", f"counts.lock:4: behavior known has no line here: {PREDICT}"),
        ("operator_gap 2.13.0 = 138\n", "", f"counts.lock:7: operator_gap 2.13.0 has no line here: {ACCEPT}"),
        ("operator_gap 2.13.0 = 138\n", "waiver known = 3\n", "counts.lock:7: must be 'KIND ID = COUNT'"),
        ("behavior odd = 3\n", "", f"counts.lock:6: behavior odd has no line here: {PREDICT}"),
        ("behavior known-too = 7\n", "", f"counts.lock:5: behavior known-too has no line here: {PREDICT}"),
        ("behavior known-too = 7\n", "behavior known-to = 7\n", f"counts.lock:5: the policy has no behavior 'known-to'; did you mean 'known-too'?: {ACCEPT}"),
        ("behavior known = 2\nbehavior known-too = 7\n", "behavior known-too = 7\nbehavior known = 2\n", f"counts.lock:5: behavior known belongs before behavior known-too: {PREDICT}"),
        ("behavior known = 2\n", "behavior known = 2\nbehavior known = 3\n", f"counts.lock:5: behavior known is already on line 4: remove one, then run {PREDICT}"),
        ("behavior known = 2\n", "<<<<<<< HEAD\nbehavior known = 2\n", f"counts.lock:4: is a merge conflict marker: keep the lines of one side, then run {ACCEPT}"),
        (f"aten::f.out = {SEEN}\n", f"aten::f.out = {SEEN}", "counts.lock:8: is cut off: the last line has no newline; restore the file from version control"),
        (f"= {SEEN}\n", "= 3\n", "counts.lock:8: must be 'operator_waiver ID OPERATOR = DIGEST', with 16 hexadecimal digits, or 'waits'; found"),
        (f"aten::f.out = {SEEN}\n", f"= {SEEN}\n", "counts.lock:8: must be 'operator_waiver ID OPERATOR = DIGEST'"),
        ("behavior known = 2\n", f"behavior known = {SEEN}\n", "counts.lock:4: must be 'KIND ID = COUNT'"),
        ("aten::f.out", "aten::f", f"counts.lock:8: the policy has no operator_waiver 'op-a aten::f'; did you mean 'op-a aten::f.out'?: {ACCEPT}"),
        (HEADER, "", f"counts.lock:1: does not start with the header of this version: {ACCEPT}"),
        (HEADER, "# older words\n", f"counts.lock:1: does not start with the header of this version: {ACCEPT}"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_line_and_what_to_do(tmp_path: Path, old: str, new: str, expected: str) -> None:
    text = lock_text(COUNTS)
    assert text.count(old) == 1
    result = problems(tmp_path, text.replace(old, new))
    assert [problem for problem in result if problem.startswith(expected)], result


def test_a_lock_that_is_missing(tmp_path: Path) -> None:
    assert problems(tmp_path, None, {}) == []
    (message,) = problems(tmp_path, None)
    assert message == f"counts.lock: file not found, but the policy has 6 tables to count: {ACCEPT} and {PREDICT}"


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_bytes(b"\xff\xfe")
    assert "counts.lock:1: is not UTF-8 text" in problems(tmp_path, None)


def test_a_lock_that_leads_out_of_the_tree(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text(lock_text(COUNTS))
    policy = tmp_path / "policy"
    policy.mkdir()
    (policy / LOCK).symlink_to(tmp_path / "elsewhere")
    assert [problem for problem in problems(policy, None) if "counts.lock:1: " in problem]
    assert read_lock(policy).counts == {}


# -------------------------------------------------------------------------------------------------------------- rewriting


def test_each_command_keeps_what_the_other_one_counts(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_text(lock_text(COUNTS))
    new = rewritten(read_lock(tmp_path), BY_JUDGING, {("operator_gap", "2.13.0"): 5}, COUNTS.keys())
    assert new == {("operator_gap", "2.13.0"): 5, **{key: count for key, count in COUNTS.items() if key[0] in BY_PREDICTING}}
    new = rewritten(
        read_lock(tmp_path), BY_PREDICTING, {("behavior", "dies"): 41}, COUNTS.keys() - {("operator_waiver", "op-a aten::f.out")}
    )
    assert new == {("operator_gap", "2.13.0"): 138, ("behavior", "dies"): 41}


def test_lines_that_would_be_kept_must_be_clear(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_text(lock_text(COUNTS) + "behavior odd = 4\n")
    with pytest.raises(PolicyError, match=r"counts\.lock:9: behavior odd is given twice, with different counts"):
        rewritten(read_lock(tmp_path), BY_JUDGING, {}, COUNTS.keys())
    assert rewritten(read_lock(tmp_path), BY_PREDICTING, {("behavior", "odd"): 4}, COUNTS.keys())["behavior", "odd"] == 4
    (tmp_path / LOCK).write_text(lock_text(COUNTS) + "<<<<<<<\n")
    with pytest.raises(PolicyError, match="merge conflict marker"):
        rewritten(read_lock(tmp_path), BY_PREDICTING, {}, COUNTS.keys())


# ------------------------------------------------------------------------------------------------------------- the policy


def test_whoever_counts_anew_needs_no_lock(write: Callable[[dict[str, str]], Path], files: dict[str, str]) -> None:
    files[LOCK] = "nonsense"
    folder = write(files)
    assert load_policy(folder, counted=False).counts == {}
    with pytest.raises(PolicyError, match=r"counts\.lock:1: "):
        load_policy(folder)


def test_mistakes_of_hand_written_files_come_first(write: Callable[[dict[str, str]], Path], files: dict[str, str]) -> None:
    """A waiver that is half done is no reason to count anything yet."""
    files["waivers/known.toml"] = files["waivers/known.toml"].replace('owner = "someone"\n', "")
    with pytest.raises(PolicyError) as caught:
        load_policy(write(files | {LOCK: "", WAIVERS_LOCK: ""}))
    assert ["known.toml" in problem.file for problem in caught.value.problems] == [True]


def test_the_lock_of_the_repository_is_as_it_is_written(torch: Policy) -> None:
    path = Path(__file__).parents[2] / "policies" / "torch" / LOCK
    assert path.read_text(encoding="utf-8") == lock_text(read_lock(path.parent).values)
    assert len(read_lock(path.parent).values) == len(torch.counts) + len(torch.became)
