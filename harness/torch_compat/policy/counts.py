"""``counts.lock``: how much each exception and each special case of a policy covers in the recorded evidence.

A policy is written by hand and states intent. How many operators an exception covers is measured: this file holds all such numbers, is
generated, and is reviewed as a diff. Another file holds what waivers for cells cover (see :mod:`torch_compat.policy.accepted`). Judging
fails if its counts differ from those in this file. The grammar, in which NEWLINE is one line feed::

    lock   = header { entry }
    header = the two lines of HEADER
    entry  = kind " " id " = " count NEWLINE
           | "operator_waiver " id " " operator " = " became NEWLINE
    kind   = "operator_gap" | "behavior"
    id     = the `id` of the table; of an operator_gap the release, as `readers` names it
    count  = a whole number above zero without leading zeros, of at most nine digits
    became = 16 hexadecimal digits of the schemas before and after (digest_of in operator_waivers.py)
           | "waits", if the release is not recorded yet

Entries are sorted by kind and id. There is exactly one ``behavior`` entry for each behavior that breaks the rules of the releases, one
``operator_gap`` entry for each behavior with the outcome "unlisted", one ``operator_waiver`` entry for each operator that an operator
waiver names, and no other entry. Each line is independent, so version control merges two branches line by line; a truncated lock lacks
lines, which is an error.

``torch-compat accept --write`` writes the entries that judging alone can count, operator_waiver and operator_gap.
``nox -s predictions -- --write`` writes the behavior entries, which require opening archives and running programs. Each command keeps the
other's entries.
"""

from __future__ import annotations

import re
from bisect import bisect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from torch_compat.errors import CorpusError, PolicyError, Problem
from torch_compat.places import MOST_OF_A_PROGRAM, inside, read_whole
from torch_compat.policy.behaviors import is_counted
from torch_compat.policy.messages import found, suggestion
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from torch_compat.policy.entry import Entry

__all__ = [
    "ACCEPT",
    "BY_JUDGING",
    "BY_PREDICTING",
    "HEADER",
    "LOCK",
    "PREDICT",
    "WAITS",
    "Counts",
    "Key",
    "Lock",
    "Value",
    "check_lock",
    "counted_tables",
    "key_of",
    "lock_text",
    "read_lock",
    "rewritten",
]

Key: TypeAlias = tuple[str, str]
"""The kind and id of a counted table; for an operator_waiver the id and the operator, as written by :func:`key_of`."""
Value: TypeAlias = int | str
"""A count; for an operator_waiver, the new form of the operator."""
Counts: TypeAlias = "Mapping[Key, Value]"

LOCK: Final = "counts.lock"
"""The name of the file in a policy folder."""
HEADER: Final = """\
# Generated: nox -s generate (torch-compat accept --write; behaviors: nox -s predictions -- --write). Not edited by hand.
# What each entry of the policy covers in the recorded evidence. The grammar: harness/torch_compat/policy/counts.py
"""
ACCEPT: Final = "torch-compat accept --write"
PREDICT: Final = "nox -s predictions -- --write"
BY_JUDGING: Final = frozenset({"operator_gap", "operator_waiver"})
"""The kinds whose counts judging computes."""
BY_PREDICTING: Final = frozenset({"behavior"})
"""The kinds that can only be counted with archives and the reference reader."""
WAITS: Final = "waits"
"""The digest of an operator whose release is not recorded yet."""
_ENTRY: Final = re.compile(
    r"(operator_gap|behavior) ([^\s=]+) = (0|[1-9][0-9]{0,8})|(operator_waiver) ([^\s=]+ [^\s=]+) = ([0-9a-f]{16}|waits)"
)
_CONFLICT: Final = re.compile(r"<{7}|={7}|>{7}|\|{7}")


class LockRow(NamedTuple):
    """One entry and its line, counted from 1."""

    line: int
    key: Key
    value: Value


@dataclass(frozen=True)
class Lock:
    """The contents of a lock file, as far as it can be read.

    Attributes:
        file: its path, for messages.
        text: its content; None if the file does not exist, empty if it cannot be read.
        rows: the entries in file order.
        problems: errors of the file, including lines that are not valid entries.
    """

    file: str
    text: str | None
    rows: tuple[LockRow, ...]
    problems: tuple[Problem, ...]

    @property
    def values(self) -> dict[Key, Value]:
        """The entries; the last one if several have the same key."""
        return {row.key: row.value for row in self.rows}

    @property
    def counts(self) -> dict[Key, int]:
        """The entries that are counts."""
        return {key: value for key, value in self.values.items() if isinstance(value, int)}


def read_lock(folder: Path) -> Lock:
    """Read the lock of a policy folder. Problems are returned, not raised; if there is no file, there are no rows and no problems."""
    file = (folder / LOCK).as_posix()
    try:
        content = read_whole(inside(folder, LOCK, where=file), MOST_OF_A_PROGRAM).decode()
    except FileNotFoundError:
        return Lock(file, None, (), ())
    except UnicodeDecodeError:
        return Lock(file, "", (), (Problem(file, 1, "", "is not UTF-8 text"),))
    except (OSError, CorpusError) as error:
        why = error.message if isinstance(error, CorpusError) else f"cannot be read: {error.strerror}"
        return Lock(file, "", (), (Problem(file, 1, "", why),))
    rows, problems = [], []
    lines = content.split("\n")
    if lines.pop() != "":
        problems.append(
            Problem(file, len(lines) + 1, "", "is cut off: the last line has no newline; restore the file from version control")
        )
    unheaded = next((at for at, line in enumerate(lines) if not line.startswith("#")), len(lines))
    first = HEADER.count("\n") if content.startswith(HEADER) else unheaded
    for number, line in enumerate(lines[first:], first + 1):
        entry = _ENTRY.fullmatch(line)
        if entry is not None:
            is_count = entry[1] is not None
            rows.append(
                LockRow(number, (entry[1], entry[2]), int(entry[3]))
                if is_count
                else LockRow(number, (entry[4], entry[5]), entry[6])
            )
        elif _CONFLICT.match(line):
            problems.append(
                Problem(file, number, "", f"is a merge conflict marker: keep the lines of one side, then run {ACCEPT}")
            )
        else:
            form = "'KIND ID = COUNT', such as 'behavior buffers-without-type = 12'"
            if line.startswith("operator_waiver"):
                form = "'operator_waiver ID OPERATOR = DIGEST', with 16 hexadecimal digits, or 'waits'"
            problems.append(Problem(file, number, "", f"must be {form}; found {found(line)}"))
    return Lock(file, content, tuple(rows), tuple(problems))


def lock_text(counts: Counts) -> str:
    """Return the text of the lock file with these counts."""
    return HEADER + "".join(f"{kind} {name} = {count}\n" for (kind, name), count in sorted(counts.items()))


def key_of(waiver: str, operator: str) -> Key:
    """Return the key of an operator that an operator_waiver names."""
    return "operator_waiver", f"{waiver} {operator}"


def counted_tables(entries: Iterable[Entry]) -> set[Key]:
    """Return the keys of everything in a policy that must have an entry; for malformed tables, those that can be determined."""
    results: set[Key] = set()
    for entry in entries:
        name = entry.get("id")
        if entry.table == "behavior" and entry.get("outcome") == "unlisted" and isinstance(entry.get("readers"), str):
            results.add(("operator_gap", entry.get("readers")))
        if not isinstance(name, str) or not (entry.table in BY_JUDGING or is_counted(entry)):
            continue
        if entry.table == "operator_waiver":
            results.update(key_of(name, operator) for operator in _operators(entry))
        else:
            results.add((entry.table, name))
    return results


def _operators(entry: Entry) -> Iterator[str]:
    """Yield the operators that an operator_waiver names, as far as the table is valid."""
    groups = entry.get("covers")
    for at in range(len(groups) if isinstance(groups, list) else 0):
        operators = entry.get("covers", at, "operators")
        yield from (operator for operator in operators if isinstance(operator, str)) if isinstance(operators, list) else ()


def check_lock(lock: Lock, wanted: Collection[Key]) -> Iterator[Problem]:
    """Yield all problems of a lock.

    Parameters:
        wanted: the keys that the policy requires: the lock must have exactly one entry for each of them, and no other.
    """
    if lock.text is None:
        if wanted:
            commands = " and ".join(sorted({_command(kind) for kind, _ in wanted}, reverse=True))
            yield Problem(
                lock.file, 0, "", f"file not found, but the policy has {count_of(len(wanted), 'table')} to count: {commands}"
            )
        return
    yield from lock.problems
    if not lock.text.startswith(HEADER):
        yield Problem(lock.file, 1, "", f"does not start with the header of this version: {ACCEPT}")
    seen: dict[Key, int] = {}
    newest: Key = ("", "")
    for line, key, count in lock.rows:
        name = " ".join(key)
        if key in seen:
            yield Problem(lock.file, line, "", f"{name} is already on line {seen[key]}: remove one, then run {_command(key[0])}")
        elif key < newest:
            yield Problem(lock.file, line, "", f"{name} belongs before {' '.join(newest)}: {_command(key[0])}")
        seen.setdefault(key, line)
        newest = max(newest, key)
        if key not in wanted:
            known = [item for kind, item in wanted if kind == key[0]]
            yield Problem(lock.file, line, "", f"the policy has no {key[0]} {found(key[1])}{suggestion(key[1], known)}: {ACCEPT}")
        elif count == 0:
            yield Problem(
                lock.file, line, "", f"{name} must have a count greater than 0: remove it from the policy, or {_command(key[0])}"
            )
    if lock.problems:
        return  # an unreadable line may be the missing one
    order = sorted(seen)
    for key in sorted(set(wanted) - seen.keys()):
        at = bisect(order, key)
        line = seen[order[at]] if at < len(order) else max(seen.values(), default=HEADER.count("\n")) + 1
        yield Problem(lock.file, line, "", f"{' '.join(key)} has no line here: {_command(key[0])}")


def rewritten(lock: Lock, kinds: Collection[str], counts: Counts, wanted: Collection[Key]) -> dict[Key, Value]:
    """Return a lock's entries with those of some kinds replaced; the others are kept if they are still in the policy.

    Raises:
        PolicyError: the lock has unreadable lines, or entries to keep contradict each other.
    """
    problems = list(lock.problems)
    kept: dict[Key, Value] = {}
    for line, key, count in lock.rows:
        if key[0] not in kinds and key in wanted and kept.setdefault(key, count) != count:
            problems.append(Problem(lock.file, line, "", f"{' '.join(key)} is given twice, with different counts: remove one"))
    if problems:
        raise PolicyError(problems)
    return {**kept, **counts}


def _command(kind: str) -> str:
    """Return the command that writes entries of a kind."""
    return ACCEPT if kind in BY_JUDGING else PREDICT
