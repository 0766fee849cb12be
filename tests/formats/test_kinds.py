"""The kind of an archive in user terms."""

from __future__ import annotations

import pickle
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from torch_compat.formats import read_facts
from torch_compat.formats.kinds import KINDS, kind_of
from torch_compat.formats.model import Facts
from torch_compat.pickles import Tensor, unpickle

FIXTURES = Path(__file__).parents[2] / "fixtures"
T = Tensor(None, "float32", (2, 3), None, 0, False, "cpu", "_rebuild_tensor_v2")


def of(value: Any, path: str = "a.pt") -> tuple[str, dict[str, Any]]:
    pickles: dict[str, Any] = {"data.pkl": SimpleNamespace(value=value)}
    return kind_of(Facts(path, 1, "torch-save", "zip", pickles=pickles))


def pickled(value: Any) -> Any:
    return unpickle(pickle.dumps(value, 2), where="data.pkl").value


def test_a_state_dict_has_names_and_tensors() -> None:
    assert of({"a.weight": T, "a.bias": T}) == ("state-dict", {"tensors": 2, "elements": 12})
    assert of({"a": T, "_extra_state": {"x": 1}})[0] == "dict"
    assert of({0: T})[0] == "dict"
    assert of({})[0] == "dict"


def test_a_shard_says_which_of_how_many() -> None:
    assert of({"a": T}, "m/pytorch_model-00002-of-00003.bin")[1]["shard"] == 2
    assert "shard" not in of({"a": T}, "m/pytorch_model.bin")[1]


def test_a_checkpoint_of_lightning_says_its_version_place_and_settings() -> None:
    kind, about = of({
        "pytorch-lightning_version": "2.4.0", "epoch": 3, "global_step": 70, "state_dict": {"a": T},
        "optimizer_states": [{"state": {0: {}}, "param_groups": [{}]}], "hyper_parameters": {"lr": 0.1, "depth": 3},
    })  # fmt: skip
    assert kind == "lightning-checkpoint"
    assert about["versions"] == {"lightning": "2.4.0"}
    assert (about["epoch"], about["global_step"]) == (3, 70)
    assert about["parts"] == {"state_dict": "state-dict", "optimizer_states": "list of optimizer-state"}
    assert about["hyperparameters"] == ["lr", "depth"]


def test_a_checkpoint_names_its_parts_and_the_settings_of_an_object() -> None:
    kind, about = of({"model": {"a": T}, "opt": {"state": {}, "param_groups": []}, "args": pickled(Namespace(lr=1, name="x"))})
    assert kind == "checkpoint"
    assert about["parts"] == {"model": "state-dict", "opt": "optimizer-state"}
    assert about["hyperparameters"] == ["lr", "name"]


@pytest.mark.parametrize(
    ("fixture", "kind"),
    [
        ("torch-1.5.1/whole_module.pt", "module"),
        ("torch-2.8.0/save_checkpoint.pt", "checkpoint"),
        ("torch-2.8.0/div.pt", "program"),
        ("torch-2.8.0/state_dict.pt", "checkpoint"),
    ],
)
def test_archives_of_releases(fixture: str, kind: str) -> None:
    result = kind_of(read_facts(FIXTURES / fixture))[0]
    assert result in KINDS
    assert result == kind


def test_what_a_file_names_is_told_without_control_characters_and_not_without_end() -> None:
    kind, about = of({"\x1b[2J": {"a": T}, **{str(at): 1 for at in range(500)}, "epoch": 1 << 5000})
    assert kind == "checkpoint"
    assert list(about["parts"]) == ["\\x1b[2J"]
    assert len(about["keys"]) == 100
    assert about["epoch"] == "int of 5001 bits"
