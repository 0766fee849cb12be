"""waivers.lock: a round trip, every cut and malformed line is reported, and two branches merge line by line."""

from __future__ import annotations

import string
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_compat.errors import PolicyError
from torch_compat.policy.accepted import DIRECTIONS, HEADER, WAIVERS_LOCK, Accepted, Block, pack, read_accepted, toward
from torch_compat.policy.counts import ACCEPT
from torch_compat.releases.known import Known

if TYPE_CHECKING:
    from torch_compat.policy.accepted import Direction
    from torch_compat.policy.policy import Policy

RELEASES = ("1.0.0", "1.0.1", "1.1.0", "1.2.0", "1.10.0", "2.0.0")
KNOWN = Known(RELEASES)
Cells = dict[tuple[str, "Direction", str, str, str, str, int], int]
names = st.sampled_from(["a", "b-c", "d"])
recipes = st.sampled_from(["add", "div", "mul_2"])
digests = st.sampled_from(["0123456789ab", "ba9876543210"])


@st.composite
def cells(draw: st.DrawFn) -> Cells:
    """Any cells, none with two differences."""
    result: Cells = {}
    taken: dict[tuple[str, str, str, int], int] = {}
    for _ in range(draw(st.integers(0, 25))):
        waiver, recipe, options = draw(names), draw(recipes), draw(st.sampled_from(["default", "mmap"]))
        direction = draw(st.sampled_from(DIRECTIONS))
        writer = -1 if direction == "synthetic" else draw(st.integers(0, len(RELEASES) - 1))
        place = (waiver, options, recipe, writer)
        readers = draw(st.integers(0, KNOWN.everyone)) & toward(direction, writer, KNOWN.everyone) & ~taken.get(place, 0)
        if readers:
            taken[place] = taken.get(place, 0) | readers
            key = (waiver, direction, draw(st.sampled_from(["different", "crashed"])), options, draw(digests), recipe, writer)
            result[key] = result.get(key, 0) | readers
    return result


def expanded(accepted: Accepted) -> Cells:
    result: Cells = {}
    for block in accepted.blocks:
        for writer, readers in accepted.members(block):
            for recipe in block.recipes:
                key = (block.waiver, block.direction, block.outcome, block.options, block.digest, recipe, writer)
                assert not result.get(key, 0) & readers  # no cell stands twice
                result[key] = result.get(key, 0) | readers
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("locks")


def read(folder: Path, text: str) -> Accepted:
    (folder / WAIVERS_LOCK).write_bytes(text.encode())
    accepted = read_accepted(folder)
    assert accepted is not None
    return accepted


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        read(folder, text)
    return [str(problem).replace(f"{folder.as_posix()}/", "") for problem in caught.value.problems]


findings = st.dictionaries(st.tuples(names, st.text(string.ascii_lowercase + ":@ .", min_size=1)), digests, max_size=3)
everything = st.builds(
    lambda some, message: Accepted(KNOWN, frozenset({"add", "div", "mul_2"}), pack(some, KNOWN), message), cells(), findings
)


@given(cells())
def test_what_is_packed_has_the_same_cells(some: Cells) -> None:
    assert expanded(Accepted(KNOWN, frozenset(), pack(some, KNOWN))) == some


@given(everything)
def test_what_is_written_is_read(folder: Path, accepted: Accepted) -> None:
    result = read(folder, accepted.text)
    assert expanded(result) == expanded(accepted)
    assert (result.known.releases, result.recipes, result.findings) == (RELEASES, accepted.recipes, accepted.findings)
    assert result.text == accepted.text


@given(everything, st.data())
def test_a_cut_is_noticed_wherever_it_is_not_between_lines(folder: Path, accepted: Accepted, data: st.DataObject) -> None:
    text = accepted.text
    at = data.draw(st.integers(0, len(text) - 1).filter(lambda at: at == 0 or text[at - 1] != "\n"))
    assert problems(folder, text[:at])


@given(everything, st.sets(st.sampled_from(RELEASES)), st.sets(names))
def test_what_is_left_for_some_releases_and_waivers(accepted: Accepted, kept: set[str], waivers: set[str]) -> None:
    known = Known(release for release in RELEASES if release in kept)
    left = expanded(accepted.of(known, waivers))
    told = {
        (*key[:6], "" if key[6] < 0 else known.releases[key[6]], reader)
        for key, bits in left.items()
        for reader in known.of(bits)
    }
    assert told == {
        (*key[:6], "" if key[6] < 0 else RELEASES[key[6]], reader)
        for key, bits in expanded(accepted).items()
        for reader in KNOWN.of(bits)
        if reader in kept and (key[6] < 0 or RELEASES[key[6]] in kept) and key[0] in waivers
    }


@given(everything, everything)
def test_two_branches_merge_line_by_line(folder: Path, ours: Accepted, theirs: Accepted) -> None:
    """The lines of both, sorted, are a lock, unless they contradict each other; then that is said."""
    lines = sorted({*ours.lines, *theirs.lines})
    text = HEADER + f"releases {' '.join(RELEASES)}\nrecipes add div mul_2\n" + "".join(f"{line}\n" for line in lines)
    result, told = None, ""
    try:
        result = read(folder, text)
    except PolicyError as error:
        told = error.problems[0].message
    if result is None:
        assert "two differences" in told
    else:
        cells = {**expanded(ours)}
        for key, bits in expanded(theirs).items():
            cells[key] = cells.get(key, 0) | bits
        assert expanded_loosely(result) == cells


def expanded_loosely(accepted: Accepted) -> Cells:
    result: Cells = {}
    for block in accepted.blocks:
        for writer, readers in accepted.members(block):
            for recipe in block.recipes:
                key = (block.waiver, block.direction, block.outcome, block.options, block.digest, recipe, writer)
                result[key] = result.get(key, 0) | readers
    return result


GOOD = Accepted(
    KNOWN,
    frozenset({"add", "div"}),
    (
        Block("known", "backward", "refused", "default", "0123456789ab", 0b011, 0b111100, ("add", "div")),
        Block("known", "synthetic", "refused", "default", "0123456789ab", -1, 0b100000, ("old",)),
    ),
    {("late", "a:b c@1.0.0"): "ba9876543210"},
)  # fmt: skip
LINE = "known backward refused default 0123456789ab 1.0.0..1.0.1 1.1.0.. add,div"


def test_the_text_of_a_lock() -> None:
    assert GOOD.text == (
        HEADER + f"releases {' '.join(RELEASES)}\nrecipes add div\n{LINE}\n"
        "known synthetic refused default 0123456789ab - 2.0.0.. old\nlate finding ba9876543210 a:b c@1.0.0\n"
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (HEADER, "# older words\n", "waivers.lock:1: does not start with the header"),
        ("releases 1.0.0", "release 1.0.0", "waivers.lock:3: must list the releases that were recorded"),
        ("releases 1.0.0 1.0.1", "releases 1.0.1 1.0.0", "waivers.lock:3: expected unique releases in calendar order"),
        ("releases 1.0.0", "releases one", "waivers.lock:3: "),
        ("recipes add div", "recipes div add", "waivers.lock:4: must list the recipes that existed, in order"),
        ("recipes add div\n", "", "waivers.lock:4: must list the recipes that existed, in order"),
        (" default 0123456789ab 1.0.0..", " 0123456789ab 1.0.0..", "waivers.lock:5: is not a valid line of this file: expected 8 words"),
        ("add,div\n", "add,div more\n", "waivers.lock:5: is not a valid line of this file: expected 8 words"),
        ("known backward", "known  backward", "waivers.lock:5: is not a valid line of this file: expected 8 words"),
        ("backward", "sideways", "waivers.lock:5: is not a valid line of this file: expected a direction"),
        ("backward", "synthetic", "waivers.lock:5: is not a valid line of this file: expected a direction ("),
        ("default 0123456789ab 1.0.0..1.0.1", "default 0123456789ab -", "waivers.lock:5: is not a valid line of this file: expected a direction"),
        ("0123456789ab 1.0.0..1.0.1", "0123456789AB 1.0.0..1.0.1", "waivers.lock:5: is not a valid line of this file: expected a digest"),
        ("0123456789ab 1.0.0..1.0.1", "0123456789 1.0.0..1.0.1", "waivers.lock:5: is not a valid line of this file: expected a digest"),
        ("finding ba9876543210", "finding ba98", "waivers.lock:7: is not a valid line of this file: expected a digest"),
        ("late finding ba9876543210 a:b c@1.0.0", "late finding ba9876543210", "waivers.lock:7: is not a valid line of this file"),
        ("add,div\n", "div,add\n", "waivers.lock:5: is not a valid line of this file: expected unique, sorted recipe names"),
        ("add,div\n", "add,add\n", "waivers.lock:5: is not a valid line of this file: expected unique, sorted recipe names"),
        ("add,div\n", ",add\n", "waivers.lock:5: is not a valid line of this file: expected names of letters"),
        ("add,div\n", "add,d\tiv\n", "waivers.lock:5: is not a valid line of this file: expected names of letters"),
        ("1.0.0..1.0.1 1.1.0..", "1.0.0..1.0.1 none", "waivers.lock:5: is not a valid line of this file: expected releases, found none"),
        ("1.0.0..1.0.1 1.1.0..", "1.0.0..1.0.1 7.7.7", "waivers.lock:5: is not a valid line of this file: "),
        ("1.0.0..1.0.1 1.1.0..", "1.0.1..1.0.0 1.1.0..", "waivers.lock:5: is not a valid line of this file: "),
        (f"{LINE}\n", f"{LINE}\r\n", "waivers.lock:5: is not a valid line of this file"),
        (f"{LINE}\n", f"{LINE}\n\n", "waivers.lock:6: is not a valid line of this file: expected 8 words; found ''"),
        (f"{LINE}\n", f"<<<<<<< HEAD\n{LINE}\n", "waivers.lock:5: is not a valid line of this file"),
        (f"{LINE}\n", f"{LINE}\n{LINE}\n", "waivers.lock:6: is out of order"),
        (f"{LINE}\n", f"{LINE}\n{LINE.replace('known', 'a')}\n", "waivers.lock:6: is out of order"),
        (f"{LINE}\n", f"{LINE}\n{LINE.replace('89ab', '89ac')}\n", "waivers.lock: known has a cell of add with two differences"),
        (f"{LINE}\n", f"{LINE}\n{LINE.replace('refused', 'reused')}\n", "waivers.lock: known has a cell of add with two differences"),
        ("a:b c@1.0.0\n", "a:b c@1.0.0", "waivers.lock:7: is cut off: the last line has no newline; restore the file"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_line(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert GOOD.text.count(old) == 1
    result = problems(tmp_path, GOOD.text.replace(old, new))
    assert [problem for problem in result if problem.startswith(expected)], result


def test_every_malformed_line_is_named(tmp_path: Path) -> None:
    text = GOOD.text.replace("backward", "sideways").replace("ba9876543210", "x")
    assert [problem.split(":")[1] for problem in problems(tmp_path, text)] == ["5", "7"]
    assert all(ACCEPT in problem for problem in problems(tmp_path, text))


def test_one_line_with_a_cell_twice(tmp_path: Path) -> None:
    """Lines overlap in a part of their cells."""
    more = "known backward refused default ba9876543210 1.0.1 1.2.0 div"
    (message,) = problems(tmp_path, GOOD.text.replace(f"{LINE}\n", f"{LINE}\n{more}\n"))
    assert "known has a cell of div with two differences" in message


@given(st.binary(max_size=300))
def test_bytes_give_a_lock_or_problems(folder: Path, content: bytes) -> None:
    (folder / WAIVERS_LOCK).write_bytes(HEADER.encode() + b"releases 1.0.0 2.0.0\nrecipes add\n" + content)
    told: list[str] = []
    try:
        read_accepted(folder)
    except PolicyError as error:
        told = [problem.message for problem in error.problems]
    assert not [message for message in told if "\n" in message]


def test_no_lock_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    assert read_accepted(tmp_path) is None
    (tmp_path / WAIVERS_LOCK).write_bytes(b"\xff")
    with pytest.raises(PolicyError, match="is not UTF-8 text"):
        read_accepted(tmp_path)


def test_a_lock_that_leads_out_of_the_tree_or_is_huge(tmp_path: Path) -> None:
    policy = tmp_path / "policy"
    policy.mkdir()
    (tmp_path / "elsewhere").write_text(GOOD.text, encoding="utf-8")
    (policy / WAIVERS_LOCK).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PolicyError, match="points outside the tree"):
        read_accepted(policy)
    (policy / WAIVERS_LOCK).unlink()
    with (policy / WAIVERS_LOCK).open("wb") as file:
        file.truncate(1 << 32)
    with pytest.raises(PolicyError):
        read_accepted(policy)


def test_a_long_line_is_quoted_in_a_few_words(tmp_path: Path) -> None:
    (message,) = problems(tmp_path, GOOD.text.replace(f"{LINE}\n", "x" * 1_000_000 + "\n"))
    assert len(message) < 1000


def test_the_lock_of_the_repository_is_as_it_is_written(torch: Policy) -> None:
    path = Path(__file__).parents[2] / "policies" / "torch" / WAIVERS_LOCK
    assert torch.accepted is not None
    assert path.read_text(encoding="utf-8") == torch.accepted.text
