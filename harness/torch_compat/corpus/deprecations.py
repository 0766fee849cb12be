"""What a release does with a deprecated feature: warns, works, raises or lacks it; and what its documentation says about it.

A probe (``fixtures/deprecations/<name>.py``) uses the deprecated feature and, as a control, its replacement. The reader's behavior with
both is recorded with its other observations.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from torch_compat.values.normalise import last_word, normalise

__all__ = ["OUTCOMES", "DeprecationObservation", "Use", "deprecation_entry", "parse_deprecation", "read_reply", "statements"]

OUTCOMES: Final = frozenset({"worked", "raised", "lacks", "crashed", "timed-out"})
BEHAVIOURS: Final = frozenset({"old", "new", None})

# Messages about the machine rather than the call: 1.7.1 looks for an NVIDIA driver in the first backward pass.
_OF_THE_MACHINE = re.compile(r"CUDA initialization: ")
# C++ warnings end with the source file's path on the machine that built the release.
_TRIGGERED = re.compile(r"\s*\(Triggered internally at [^)]*\)")
# Loggers print the time and the process before the source file; the letter is the severity.
_STAMP = re.compile(r"(?m)(?:^|\[)([A-Z])\d{4} \d\d:\d\d:\d\d(?:\.\d+)?(?: \d+)? ")
# Sentences of a docstring about a feature's deprecation status, not its use.
_TELLS = re.compile(
    r"deprecat|version(?:changed|removed)::|\bremoved\b|no longer|in the future|future (?:pytorch )?(?:release|version)"
    r"|upcoming release|next (?:major )?release|backwards?[ -]compat|will (?:default|error)|will be (?:changed|required|updated)"
    r"|\blegacy\b|experimental|\bprototype\b|(?:\b(?:version|release|pytorch|since|before|until|as of|up to) |\bv)\d+\.\d",
    re.IGNORECASE,
)
_SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+(?=[A-Z`:*])")


@dataclass(frozen=True)
class Use:
    """What happened when a feature was used.

    Attributes:
        outcome: ``worked``, ``raised``, ``lacks`` (this release does not have it), ``crashed`` or ``timed-out``.
        warnings: categories and texts, sorted.
        said: what was printed on standard error, where some releases warn without a Python warning.
        behaves: ``old`` or ``new``, if the probe can distinguish them.
        error: ``{"type", "message"}`` of the exception; for ``lacks``, the missing name; for ``crashed``, the signal and the last output.
    """

    outcome: str
    warnings: tuple[tuple[str, str], ...] = ()
    said: str = ""
    behaves: str | None = None
    error: dict[str, str] | None = None


@dataclass(frozen=True)
class DeprecationObservation:
    """What one reader did with a deprecated feature and with its alternative.

    Attributes:
        probe: name of the probe.
        key: digest of the reader's input and identity; differs for each probe and reader.
        deprecated, alternative: what happened with each.
        docs: the sentences of the docstring about deprecation, removal or change; None if there is no docstring.
    """

    probe: str
    key: str
    deprecated: Use
    alternative: Use
    docs: tuple[str, ...] | None


def read_reply(probe: str, key: str, result: dict[str, Any]) -> DeprecationObservation:
    """Convert the result of the worker's ``deprecation`` request to an observation, without run-specific text."""
    docs = result["docs"]
    return DeprecationObservation(
        probe,
        key,
        _use(result["deprecated"]),
        _use(result["alternative"]),
        None if docs is None else statements(docs),
    )


def _use(value: dict[str, Any]) -> Use:
    error = None
    if "error" in value:
        kind, message = value["error"]
        error = {"type": kind, "message": normalise(last_word(message) if value["outcome"] == "crashed" else message)}
    given = [(category, text) for category, text in value.get("warnings", ()) if not _OF_THE_MACHINE.match(text)]
    warnings = {(category, normalise(_TRIGGERED.sub("", text))) for category, text in given}
    wording = normalise(_STAMP.sub(r"[\1 ", _TRIGGERED.sub("", value.get("said", ""))))
    return Use(value["outcome"], tuple(sorted(warnings)), wording, value.get("behaves"), error)


def statements(docstring: str) -> tuple[str, ...]:
    """Return the sentences of a docstring about deprecation, removal or change, in order, each on one line."""
    results: list[str] = []
    for paragraph in re.split(r"\n[ \t]*\n", docstring):
        text = " ".join(paragraph.split())
        results.extend(normalise(sentence) for sentence in _SENTENCE_ENDS.split(text) if _TELLS.search(sentence))
    return tuple(dict.fromkeys(results))


def deprecation_entry(observation: DeprecationObservation) -> dict[str, Any]:
    """Return the recorded line of an observation."""
    return {
        "kind": "deprecation",
        "probe": observation.probe,
        "key": observation.key,
        "deprecated": _use_entry(observation.deprecated),
        "alternative": _use_entry(observation.alternative),
        "docs": None if observation.docs is None else list(observation.docs),
    }


def _use_entry(use: Use) -> dict[str, Any]:
    return {
        "outcome": use.outcome,
        "warnings": [list(warning) for warning in use.warnings],
        "said": use.said,
        "behaves": use.behaves,
        "error": use.error,
    }


def parse_deprecation(entry: dict[str, Any]) -> DeprecationObservation:
    """Parse the observation in a recorded line.

    Raises:
        KeyError, TypeError, ValueError: it is incomplete or inconsistent.
    """
    docs = entry["docs"]
    return DeprecationObservation(
        str(entry["probe"]),
        str(entry["key"]),
        _parse_use(entry["deprecated"]),
        _parse_use(entry["alternative"]),
        None if docs is None else tuple(str(sentence) for sentence in docs),
    )


def _parse_use(entry: dict[str, Any]) -> Use:
    error = entry["error"]
    use = Use(
        entry["outcome"],
        tuple((str(category), str(text)) for category, text in entry["warnings"]),
        str(entry["said"]),
        entry["behaves"],
        None if error is None else {"type": str(error["type"]), "message": str(error["message"])},
    )
    if use.outcome not in OUTCOMES:
        raise ValueError(f"unknown outcome {use.outcome!r}")
    if use.behaves not in BEHAVIOURS:
        raise ValueError(f"'behaves' is {use.behaves!r}, expected 'old', 'new' or null")
    if (use.error is not None) is not (use.outcome in {"raised", "lacks", "crashed"}):
        raise ValueError(f"has the outcome {use.outcome!r}, but has {'an' if use.error else 'no'} error")
    if use.behaves is not None and use.outcome != "worked":
        raise ValueError(f"has the outcome {use.outcome!r}, but its recorded behavior is {use.behaves}")
    return use
