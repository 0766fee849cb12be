"""What was observed of deprecated things: texts are made comparable, and what contradicts itself is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from torch_compat.corpus.deprecations import (
    OUTCOMES,
    DeprecationObservation,
    Use,
    deprecation_entry,
    parse_deprecation,
    read_reply,
    statements,
)
from torch_compat.corpus.lines import read_lines, write_lines
from torch_compat.corpus.observations import ObservedReader, read_observations, write_observations
from torch_compat.errors import CorpusError

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
    found = read_reply(
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
    assert found.deprecated.warnings == (("UserWarning", "old is deprecated"),)
    assert found.deprecated.said == "[W torch/utils/counter.py:N] not found\n[W Context.cpp:N] Warning: beta"


def test_of_a_crash_its_last_words_are_kept() -> None:
    said = "frame 1\n  what():  old is gone\nframe 2\n"
    found = read_reply("old", "key", reply(outcome="crashed", error=["SIGABRT", said]))
    assert found.deprecated.error == {"type": "SIGABRT", "message": "old is gone"}


@pytest.mark.parametrize("name", USES)
def test_a_round_trip_changes_nothing(name: str, tmp_path: Path) -> None:
    one = replace(SEEN, deprecated=USES[name], docs=None if name == "lacks" else SEEN.docs)
    assert parse_deprecation(deprecation_entry(one)) == one
    reader = ObservedReader("torch-1.5.1", {"torch": "1.5.1"}, "2026-11-20", 1, {}, {}, {"old": one})
    path = tmp_path / "torch-1.5.1.jsonl"
    write_observations(path, reader)
    assert read_observations(path) == reader
    assert reader.digest != replace(reader, deprecations={}).digest


def test_every_outcome_is_tried() -> None:
    assert {use.outcome for use in USES.values()} == OUTCOMES


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"outcome": "exploded"}, "unknown outcome 'exploded'"),
        ({"outcome": "raised"}, "is 'raised', but has no error"),
        ({"outcome": "raised", "error": ERROR}, "is 'raised', but is said to behave as old"),
        ({"error": ERROR}, "is 'worked', but has an error"),
        ({"behaves": "strangely"}, "behaves 'strangely', expected"),
        ({"warnings": ["text"]}, ""),
        ({"error": "text"}, ""),
    ],
)
def test_what_contradicts_itself_is_refused_with_its_line(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    reader = ObservedReader("torch-1.5.1", {"torch": "1.5.1"}, "2026-11-20", 1, {}, {}, {"old": SEEN})
    path = tmp_path / "torch-1.5.1.jsonl"
    write_observations(path, reader)
    header, lines = read_lines(path, "observations")
    entries = [entry for _, entry in lines]
    entries[0]["deprecated"].update(change)
    write_lines(path, {key: value for key, value in header.items() if key != "schema_version"}, entries)
    with pytest.raises(CorpusError) as caught:
        read_observations(path)
    assert f"{path}:2" in str(caught.value)
    assert said in str(caught.value)


def test_a_deprecation_is_observed_once(tmp_path: Path) -> None:
    path = tmp_path / "torch-1.5.1.jsonl"
    header = {
        "kind": "observations",
        "reader": "torch-1.5.1",
        "identity": {"torch": "1.5.1"},
        "observed": "2026-11-20",
        "protocol": 1,
    }
    write_lines(path, header, [deprecation_entry(SEEN)] * 2)
    with pytest.raises(CorpusError, match="observes the deprecation old again"):
        read_observations(path)
