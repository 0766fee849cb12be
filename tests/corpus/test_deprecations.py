"""Observations of deprecated features: texts are normalized, and contradictions are rejected."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.recordings import edit_lines, lines_of
from torch_compat.corpus.deprecations import (
    OUTCOMES,
    DeprecationObservation,
    Use,
    deprecation_entry,
    parse_deprecation,
    read_reply,
    statements,
)
from torch_compat.corpus.json_lines import digest, dump
from torch_compat.corpus.observations import OUTCOME_DIGITS, ObservedReader
from torch_compat.corpus.recorded import read_recorded, write_recorded

if TYPE_CHECKING:
    from pathlib import Path

ERROR = {"type": "builtins.RuntimeError", "message": "no"}
WARNED = Use("worked", (("UserWarning", "torch.old is deprecated"),), behaves="old")
USES = {
    "warned": WARNED,
    "silent": Use("worked"),
    "said": Use("worked", said="[W Context.cpp:N] Warning: torch.old is deprecated"),
    "raised": Use("raised", error=ERROR),
    "lacks": Use("lacks", error={"type": "lacks", "message": "torch.old"}),
    "crashed": Use("crashed", error={"type": "SIGSEGV", "message": ""}),
    "timed-out": Use("timed-out"),
}
SEEN = DeprecationObservation("old", "k" * 20, WARNED, Use("worked"), ("torch.old is deprecated.",))
DOCSTRING = """
old(input) -> Tensor

Adds things up. It is faster
than new.

.. warning::

    torch.old is deprecated in favor of torch.new
    and will be removed in a future PyTorch release. See :func:`new`.

    ``L = torch.old(A)`` should be replaced with ...

.. versionchanged:: 1.9
   Nothing is old.

Args:
    legacy (bool): no longer used. Default: False.
"""


def reply(**change: Any) -> dict[str, Any]:
    used = {"outcome": "worked", "warnings": [], "said": ""}
    return {"deprecated": {**used, **change}, "alternative": used, "docs": None}


def test_sentences_that_tell_of_the_life_of_the_thing_are_kept_in_one_line_each() -> None:
    assert statements(DOCSTRING) == (
        "torch.old is deprecated in favor of torch.new and will be removed in a future PyTorch release.",
        ".. versionchanged:: 1.9 Nothing is old.",
        "Args: legacy (bool): no longer used.",
    )
    assert statements("Adds things up.\n\nReturns a tensor that is not old.") == ()
    assert statements("It is deprecated.\n\nIt  is\ndeprecated.") == ("It is deprecated.",)


@pytest.mark.parametrize(
    "sentence",
    [
        "In the future `torch.meshgrid` will default to `indexing='xy'`.",
        "Up to version 1.2.0, all grid points along a unit dimension were considered arbitrarily.",
        "Before PyTorch 1.13 :func:`torch.floor_divide` incorrectly performed truncation division.",
        "In version 2.9 we will raise an exception if ``use_reentrant`` is not passed.",
        "In PyTorch 1.7, when :attr:`dtype` is not set, integers are returned.",
        "The default behavior will be changed to ``align_corners = False`` from v1.4.0.",
        ".. deprecated:: 2.2 ``verbose`` is gone.",
        "This flag is experimental.",
    ],
)
def test_ways_in_which_releases_tell_of_it(sentence: str) -> None:
    assert statements(f"Adds things up.\n\n{sentence} It is fast.") == (sentence,)


@pytest.mark.parametrize(
    "sentence", ["Example: 0.5 of 1.0.", "Returns version 3 of it.", ".. versionadded:: 1.7", "See torch 2."]
)
def test_what_is_about_use_is_left_out(sentence: str) -> None:
    assert statements(sentence) == ()


def test_texts_lose_what_only_this_run_has() -> None:
    result = read_reply(
        "old",
        "key",
        reply(
            warnings=[
                ["UserWarning", "old is deprecated (Triggered internally at /build/aten/src/ATen/native/Old.cpp:123.)"],
                ["UserWarning", "CUDA initialization: Found no NVIDIA driver on your system."],
            ],
            said="W1121 19:08:52.875000 24915 torch/utils/counter.py:113] not found\n[W1121 19:08:52 Context.cpp:69] Warning: beta\n",
        ),
    )
    assert result.deprecated.warnings == (("UserWarning", "old is deprecated"),)
    assert result.deprecated.said == "[W torch/utils/counter.py:N] not found\n[W Context.cpp:N] Warning: beta"


def test_of_a_crash_its_last_words_are_kept() -> None:
    message = "frame 1\n  what():  old is gone\nframe 2\n"
    result = read_reply("old", "key", reply(outcome="crashed", error=["SIGABRT", message]))
    assert result.deprecated.error == {"type": "SIGABRT", "message": "old is gone"}


@pytest.mark.parametrize("name", USES)
def test_a_round_trip_changes_nothing(name: str, tmp_path: Path) -> None:
    item = replace(SEEN, deprecated=USES[name], docs=None if name == "lacks" else SEEN.docs)
    assert parse_deprecation(deprecation_entry(item)) == item
    reader = ObservedReader("torch-1.5.1", {"torch": "1.5.1"}, "2026-11-20", 1, {}, {}, {"old": item})
    write_recorded(tmp_path, [reader])
    assert read_recorded(tmp_path).readers == {reader.name: reader}
    assert reader.digest != replace(reader, deprecations={}).digest


def test_every_outcome_is_tried() -> None:
    assert {use.outcome for use in USES.values()} == OUTCOMES


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"outcome": "exploded"}, "unknown outcome 'exploded'"),
        ({"outcome": "raised"}, "has the outcome 'raised', but has no error"),
        ({"outcome": "raised", "error": ERROR}, "has the outcome 'raised', but its recorded behavior is old"),
        ({"error": ERROR}, "has the outcome 'worked', but has an error"),
        ({"behaves": "strangely"}, "'behaves' is 'strangely', expected"),
        ({"warnings": ["text"]}, ""),
        ({"error": "text"}, ""),
    ],
)
def test_what_contradicts_itself_is_refused_with_its_line(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = written(tmp_path)
    (answer,) = lines_of(path, "answer")
    entry = json.loads(answer[2])
    entry["deprecated"].update(change)
    name = digest(entry)[:OUTCOME_DIGITS]
    path.write_text(path.read_text().replace("\t".join(answer[1:]), f"{name}\t{dump(entry)}").replace(answer[1], name))
    edit_lines(path, lambda _: None)
    (why,) = read_recorded(tmp_path).unreadable.values()
    assert f"{path}:4" in why
    assert said in why


def test_a_deprecation_is_observed_once(tmp_path: Path) -> None:
    path = written(tmp_path)
    edit_lines(path, lambda lines: [*lines, lines[-1]])
    (why,) = read_recorded(tmp_path).unreadable.values()
    assert "duplicate observation of the deprecation old" in why


def test_what_several_answer_alike_is_told_once(tmp_path: Path) -> None:
    others = {name: replace(SEEN, probe=name, key=name * 9) for name in ("b", "c")}
    path = written(tmp_path, **others)
    assert [len(lines_of(path, kind)) for kind in ("answer", "deprecation")] == [1, 1]
    (reader,) = read_recorded(tmp_path).readers.values()
    assert reader.deprecations == {"old": SEEN, **others}


def written(folder: Path, **more: DeprecationObservation) -> Path:
    reader = ObservedReader("torch-1.5.1", {"torch": "1.5.1"}, "2026-11-20", 1, {}, {}, {"old": SEEN, **more})
    (path,) = write_recorded(folder, [reader])
    return path
