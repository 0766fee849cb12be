"""Programs of 2.1 to 2.3 that real releases wrote, at the horizon of their writer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from torch_compat.corpus.manifest import read_manifest
from torch_compat.runtime.encoding import perform

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"


@pytest.mark.parametrize(
    ("release", "recipe"),
    [
        ("2.2.2", "export_dynamic_batch"),  # its range ends with infinity
        ("2.3.1", "export_residual"),
        ("2.1.2", "export_batch_norm_eval"),  # it keeps num_batches_tracked, which no node uses
        ("2.2.2", "export_batch_norm_eval"),  # it loses num_batches_tracked
        ("2.3.1", "export_batch_norm_eval"),
        ("2.2.2", "export_lstm"),  # it calls mkldnn_rnn_layer
    ],
)
def test_it_loads_with_the_state_of_its_writer_and_its_calls_end_alike(release: str, recipe: str) -> None:
    folder = FIXTURES / f"torch-{release}"
    (entry,) = [fixture for fixture in read_manifest(folder / "manifest.jsonl").fixtures if fixture.recipe == recipe]
    result = perform(folder / entry.file, "export", entry.calls, f"reference@{release}")
    assert "error" not in result
    assert names(result["state"]) == names(entry.golden["state"])
    assert [set(call["first"]) for call in result["calls"]] == [set(call["first"]) for call in entry.golden["calls"]]


def names(state: object) -> list[str]:
    return sorted(re.findall(r"[a-z]+(?:[._][a-z_]+)*(?:bias|weight|mean|var|tracked|l0|l1|reverse)", str(state)))
