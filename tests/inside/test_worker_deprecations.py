"""The worker uses deprecated features: warnings, errors, missing features and crashes are distinguished; uses are independent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.miniatures import miniature
from torch_compat.errors import ReaderError
from torch_compat.readers.torch_release import TorchRelease

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROBE = '''"""Something old."""
import os
import sys
import time
import warnings

import torch

SUBJECT = "torch.load"
ALTERNATIVE = "torch.save"
SINCE = "1.0.0"


class Lacks(Exception):
    """This release does not have it."""


def once():
    if not hasattr(torch, "warned"):
        torch.warned = True
        warnings.warn("old is deprecated", FutureWarning)


def deprecated():
    {deprecated}


def alternative():
    {alternative}
'''
WORKED = {"outcome": "worked", "said": "", "warnings": []}


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TorchRelease]:
    environment = miniature(tmp_path_factory.mktemp("cache"), "1.6.0")
    with TorchRelease(environment) as running:
        yield running


def use(worker: TorchRelease, folder: Path, deprecated: str, alternative: str = "pass", more: str = "") -> dict[str, Any]:
    path = folder / "old.py"
    path.write_text(PROBE.format(deprecated=deprecated, alternative=alternative) + more, encoding="utf-8")
    return worker.request("deprecation", probe=str(path), name="old", timeout_s=5)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("pass", WORKED),
        ("once()", {**WORKED, "warnings": [["FutureWarning", "old is deprecated"]]}),
        (
            "warnings.warn('b', DeprecationWarning); warnings.warn('a'); warnings.warn('a')",
            {**WORKED, "warnings": [["DeprecationWarning", "b"], ["UserWarning", "a"]]},
        ),
        ("print('out'); print('old!', file=sys.stderr)", {**WORKED, "said": "old!\n"}),
        ("os.write(2, b'from below')", {**WORKED, "said": "from below"}),
        ("raise ValueError('no')", {**WORKED, "outcome": "raised", "error": ["builtins.ValueError", "no"]}),
        (
            "torch.nothing()",
            {**WORKED, "outcome": "raised", "error": ["builtins.AttributeError", "module 'torch' has no attribute 'nothing'"]},
        ),
        ("raise Lacks('mode B')", {**WORKED, "outcome": "lacks", "error": ["lacks", "mode B"]}),
        ("os._exit(3)", {"outcome": "crashed", "error": ["exit 3", ""]}),
        ("os.kill(os.getpid(), 11)", {"outcome": "crashed", "error": ["SIGSEGV", ""]}),
        ("time.sleep(60)", {"outcome": "timed-out"}),
    ],
)
def test_what_happened_is_told_apart(source: str, expected: dict[str, Any], worker: TorchRelease, tmp_path: Path) -> None:
    result = use(worker, tmp_path, source)["result"]
    assert result["deprecated"] == expected
    assert result["alternative"] == WORKED


def test_the_alternative_is_used_in_a_process_of_its_own(worker: TorchRelease, tmp_path: Path) -> None:
    result = use(worker, tmp_path, "once()", "once()")["result"]
    assert result["deprecated"]["warnings"] == result["alternative"]["warnings"] == [["FutureWarning", "old is deprecated"]]


@pytest.mark.parametrize(
    "names", ['SUBJECT = "torch.gone"', 'NEEDS = ["torch.load", "torch.gone"]', 'SUBJECT = "torch.load.gone.further"',
              'NEEDS = ["no_such_package.thing"]', 'SUBJECT = "torch.raiser.gone"'],
)  # fmt: skip
def test_an_error_where_a_name_is_lacking_says_that_it_lacks(names: str, worker: TorchRelease, tmp_path: Path) -> None:
    more = f"\n\nclass Raiser(object):\n    def __getattr__(self, name):\n        raise AssertionError(name)\n\n\ntorch.raiser = Raiser()\n{names}\n"
    deprecated = use(worker, tmp_path, "raise AssertionError('not there')", more=more)["result"]["deprecated"]
    assert deprecated["outcome"] == "lacks"
    assert "gone" in deprecated["error"][1] or "no_such_package" in deprecated["error"][1]


def test_what_works_works_whatever_its_name(worker: TorchRelease, tmp_path: Path) -> None:
    assert use(worker, tmp_path, "pass", more='\nSUBJECT = "torch.gone"\n')["result"] == {
        "deprecated": WORKED,
        "alternative": WORKED,
        "docs": None,
    }


def test_the_alternative_lacks_by_its_own_name(worker: TorchRelease, tmp_path: Path) -> None:
    result = use(worker, tmp_path, "pass", "torch.gone()", more='\nALTERNATIVE = "torch.gone"\n')["result"]
    assert result["alternative"] == {**WORKED, "outcome": "lacks", "error": ["lacks", "torch.gone"]}


def test_the_docstring_of_the_subject_is_told(worker: TorchRelease, tmp_path: Path) -> None:
    more = '\n\ndef old():\n    """Old.\n\n    It is deprecated."""\n\n\ntorch.old = old\nSUBJECT = "torch.old"\n'
    assert use(worker, tmp_path, "pass", more=more)["result"]["docs"] == "Old.\n\n    It is deprecated."


def test_a_plain_value_has_no_docstring_of_its_own(worker: TorchRelease, tmp_path: Path) -> None:
    more = '\n\ntorch.old = True\nSUBJECT = "torch.old"\n'
    assert use(worker, tmp_path, "pass", more=more)["result"]["docs"] is None


def test_old_and_new_behaviour_are_told_apart(worker: TorchRelease, tmp_path: Path) -> None:
    more = '\n\ndef behaves(value):\n    return "new" if value else "old"\n'
    result = use(worker, tmp_path, "return 1", "return 0", more=more)["result"]
    assert (result["deprecated"]["behaves"], result["alternative"]["behaves"]) == ("new", "old")
    raised = use(worker, tmp_path, "raise ValueError('no')", "return 0", more=more)["result"]
    assert "behaves" not in raised["deprecated"]


@pytest.mark.parametrize(
    "more", ["\n\ndef behaves(value):\n    return value.gone\n", "\nraise ValueError('no')\n", "\ndel SUBJECT\n"]
)
def test_a_probe_that_fails_by_itself_is_a_fault_of_ours(more: str, worker: TorchRelease, tmp_path: Path) -> None:
    with pytest.raises(ReaderError, match="failed to run 'deprecation'"):
        use(worker, tmp_path, "return 1", more=more)
