"""The ``torch.nn.Module`` methods that a release's Python calls on a loaded program, as in 1.6.0, 1.8.1, 1.12.1, 2.4.1 and 2.15.0."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.runtime.archives import archive
from torch_compat.errors import Unsupported
from torch_compat.runtime.encoding import perform

FIXTURES = Path(__file__).parents[2] / "fixtures"
WITHOUT_BUFFERS = FIXTURES / "torch-1.5.1" / "module_with_buffers.pt"
"""Its source names no buffers, so that releases from 1.9 on know of none."""
WITH_BUFFERS = FIXTURES / "torch-2.13.0" / "module_with_buffers.pt"
PARAMETERS = ["linear.weight", "linear.bias", "norm.weight", "norm.bias"]
X = [[1.0, 2.0, 3.0], [-1.0, 0.5, 0.0]]
MODES = """class Model(Module):
  __parameters__ = []
  training : bool
  def forward(self: __torch__.m.Model) -> bool:
    return self.training
  def requires_grad_(self: __torch__.m.Model) -> int:
    return 1
  def get_buffer(self: __torch__.m.Model) -> int:
    return 2
"""


def tensor(values: Any, dtype: str = "float32") -> dict[str, Any]:
    array = np.asarray(values, dtype)
    return {"tensor": {"dtype": dtype, "shape": list(array.shape), "data": array.ravel().tolist()}}


def performed(path: Path, release: str, *calls: Any) -> list[Any]:
    asked = [{"method": method, "args": list(args)} for method, *args in calls]
    return [call["first"] for call in perform(path, "torchscript", asked, f"reference@{release}")["calls"]]


def keys(message: dict[str, Any]) -> list[str]:
    body = message["value"]["object"]
    assert body["type"] == "collections.OrderedDict"
    return [key for key, _ in body["state"]["dict"]]


def elements(message: dict[str, Any], name: str) -> tuple[str, list[float]]:
    body = next(value for key, value in message["value"]["object"]["state"]["dict"] if key == name)
    body = body["tuple"][1]["tensor"] if "tuple" in body else body["tensor"]
    return body["dtype"], np.frombuffer(base64.b64decode(body["bytes"]), body["dtype"]).tolist()


def modes(tmp_path: Path, release: str, *calls: Any) -> list[Any]:
    path = tmp_path / "m.pt"
    path.write_bytes(archive({"__torch__/m.py": MODES}))
    return performed(path, release, *calls)


@pytest.mark.parametrize(("release", "known"), [("1.8.1", True), ("1.9.0", False)])
def test_buffers_that_the_source_does_not_name_are_known_up_to_1_8(release: str, known: bool) -> None:
    state = perform(WITHOUT_BUFFERS, "torchscript", [], f"reference@{release}")["state"]["dict"]
    assert {name for name, _ in state} >= set(PARAMETERS)
    assert ("norm.running_mean" in {name for name, _ in state}) is known


def test_modes_of_all_modules_are_set(tmp_path: Path) -> None:
    first, result, _, second, _, third = modes(
        tmp_path, "2.15.0", ["forward"], ["train"], ["train", True], ["forward"], ["eval"], ["forward"]
    )
    assert [item["value"] for item in (first, second, third)] == [False, True, False]
    assert result["value"] == {"object": {"type": "Model", "state": {"dict": []}}}


def test_the_mode_of_submodules_is_set() -> None:
    trained, kept = (
        performed(WITH_BUFFERS, "2.15.0", [mode], ["forward", tensor(X)], ["state_dict"])[2] for mode in ("train", "eval")
    )
    assert elements(trained, "norm.num_batches_tracked") == ("int64", [1 + 1])
    assert elements(kept, "norm.num_batches_tracked") == ("int64", [0])


def test_a_mode_has_to_be_a_bool_since_1_9(tmp_path: Path) -> None:
    for release, works in (("1.8.1", True), ("1.12.1", False)):
        result, number = modes(tmp_path, release, ["train", 1], ["forward"])
        assert ("value" in result) is works
        assert number["value"] is works
    assert "error" in modes(tmp_path, "1.8.1", ["train", "yes"])[0]
    assert "error" in modes(tmp_path, "1.8.1", ["eval", True])[0]


def test_methods_of_the_program_are_hidden(tmp_path: Path) -> None:
    assert "error" in modes(tmp_path, "1.6.0", ["requires_grad_"])[0]
    assert modes(tmp_path, "1.6.0", ["get_buffer"])[0]["value"] == 2
    assert "error" in modes(tmp_path, "1.12.1", ["get_buffer"])[0]


def test_generators_say_nothing(tmp_path: Path) -> None:
    for name in ("parameters", "named_buffers", "children", "named_modules"):
        assert modes(tmp_path, "1.6.0", [name])[0]["value"] == {"object": {"type": "builtins.generator", "state": "<opaque>"}}
    assert "error" in modes(tmp_path, "2.9.1", ["modules", True])[0]
    assert "value" in modes(tmp_path, "2.15.0", ["modules", True])[0]


def test_the_state_is_in_the_order_of_modules_and_detached() -> None:
    (message,) = performed(WITHOUT_BUFFERS, "2.15.0", ["state_dict"])
    assert keys(message) == PARAMETERS
    assert all("requires_grad" not in value["tensor"] for _, value in message["value"]["object"]["state"]["dict"])
    (message,) = performed(WITHOUT_BUFFERS, "1.8.1", ["state_dict"])
    assert keys(message)[:4] == ["calls", "peak", "linear.weight", "linear.bias"]


def test_the_state_is_written_into_a_dict() -> None:
    (message,) = performed(WITHOUT_BUFFERS, "2.15.0", ["state_dict", {"dict": []}, "a."])
    assert [key for key, _ in message["value"]["dict"]] == ["a." + name for name in PARAMETERS]
    assert message["inputs"][0] == message["value"]
    assert "error" in performed(WITHOUT_BUFFERS, "1.8.1", ["state_dict", {"dict": []}, "a."])[0]


def load(path: Path, release: str, state: dict[str, Any], *more: Any) -> list[Any]:
    return performed(path, release, ["load_state_dict", {"dict": [list(item) for item in state.items()]}, *more], ["state_dict"])


def test_what_a_state_lacks_is_told_and_the_rest_is_copied() -> None:
    state = {"linear.bias": tensor([1, 2], "float64"), "linear.bias.more": tensor([1]), "other": tensor([1])}
    message, after = load(WITHOUT_BUFFERS, "2.15.0", state, False)
    missing = ["linear.weight", "norm.weight", "norm.bias"]
    assert message["value"]["object"]["state"] == [missing, ["other", "linear.bias.more"]]
    assert elements(after, "linear.bias") == ("float32", [1.0, 2.0])
    message, after = load(WITHOUT_BUFFERS, "2.15.0", state)
    assert "error" in message
    assert elements(after, "linear.bias") == ("float32", [1.0, 2.0])


def test_a_shape_has_to_fit() -> None:
    message, after = load(WITHOUT_BUFFERS, "2.15.0", {"linear.bias": tensor([1.0]), "norm.bias": tensor([4.0, 5.0])}, False)
    assert "error" in message
    assert elements(after, "linear.bias") == ("float32", [0.5, -3.5])
    assert elements(after, "norm.bias") == ("float32", [4.0, 5.0])


@pytest.mark.parametrize(("release", "works"), [("2.9.1", True), ("2.15.0", False)])
def test_one_number_of_several_was_taken(release: str, works: bool) -> None:
    message, after = load(WITH_BUFFERS, release, {"norm.num_batches_tracked": tensor([7, 8], "int64")}, False)
    assert ("value" in message) is works
    assert elements(after, "norm.num_batches_tracked") == ("int64", [7 if works else 0])


def test_what_floats_is_converted() -> None:
    double, called, other = performed(
        WITH_BUFFERS, "2.15.0", ["double"], ["forward", tensor(X, "float64")], ["forward", tensor(X)]
    )
    assert elements(double, "linear.bias") == ("float64", [0.5, -3.5])
    assert elements(double, "norm.num_batches_tracked")[0] == "int64"
    assert called["value"]["tuple"][0]["tensor"]["dtype"] == "float64"
    assert "error" in other
    back, _ = performed(WITH_BUFFERS, "2.15.0", ["to", {"device": "cpu"}, {"dtype": "float16"}], ["float"])
    assert elements(back, "linear.bias") == ("float16", [0.5, -3.5])
    assert "error" in performed(WITH_BUFFERS, "2.15.0", ["to", {"dtype": "int64"}])[0]
    assert "error" in performed(WITH_BUFFERS, "2.15.0", ["to", "cuda"])[0]
    assert "error" in performed(WITH_BUFFERS, "2.15.0", ["float", 1])[0]
    (message,) = performed(WITHOUT_BUFFERS, "1.8.1", ["type", "torch.DoubleTensor"])
    assert elements(message, "norm.num_batches_tracked") == ("float64", [0.0])


def test_submodules_are_called_by_name() -> None:
    (message,) = performed(WITH_BUFFERS, "2.15.0", ["linear", tensor(X)])
    assert message["value"]["tensor"]["shape"] == [2, 2]
    assert "error" in performed(WITH_BUFFERS, "2.15.0", ["calls"])[0]


def test_modules_are_shown() -> None:
    (message,) = performed(WITH_BUFFERS, "2.15.0", ["__repr__"])
    assert message["value"] == (
        "RecursiveScriptModule(\n  original_name=Model\n  (linear): RecursiveScriptModule(original_name=Linear)\n"
        "  (norm): RecursiveScriptModule(original_name=BatchNorm1d)\n)"
    )


def test_what_would_change_or_save_the_program_is_not_supported(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="save_to_buffer"):
        modes(tmp_path, "2.15.0", ["save_to_buffer"])


def test_up_to_1_3_modules_have_the_methods_of_torch_nn_module_too() -> None:
    """As recipe module_modes_and_state of fixtures/awaiting, written by 1.2.0, shows of 1.1.0, 1.2.0 and 1.3.1."""
    path = FIXTURES / "torch-1.2.0" / "module_with_buffers.pt"
    state: dict[str, Any] = {"dict": []}
    for release, shown, keys_of in (
        ("1.1.0", "torch.jit.ScriptModule", "IncompatibleKeys"),
        ("1.2.0", "torch.jit.ScriptModule", "_IncompatibleKeys"),
        ("1.3.1", "module_with_buffers", "_IncompatibleKeys"),
    ):
        double, loaded, gradients, named = performed(
            path, release, ("double",), ("load_state_dict", state, False), ("zero_grad",), ("double", 1)
        )
        assert double["value"]["object"]["type"] == shown
        assert loaded["value"]["object"]["type"] == f"torch.nn.modules.module.{keys_of}"
        assert gradients["value"] is None
        assert named["error"]["message"] == "double() takes 1 positional argument but 2 were given"


def test_what_their_texts_were_up_to_1_3_is_not_known(tmp_path: Path) -> None:
    path = tmp_path / "m.pt"
    path.write_bytes(archive({"__torch__/m.py": MODES}, version=1))
    with pytest.raises(Unsupported, match="does not know what extra_repr returned"):
        performed(path, "1.3.1", ("extra_repr",))
