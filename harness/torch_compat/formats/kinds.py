"""The kind of object saved in an archive: a state dict, an optimizer's state, a Lightning checkpoint, a whole module.

Families and containers describe how a file is written; a kind describes what was saved. It follows from the names and classes of the
outermost values, as the libraries write them:

* ``lightning-checkpoint``: a dict with ``pytorch-lightning_version``
* ``optimizer-state``: a dict of ``state`` and ``param_groups``, as ``torch.optim.Optimizer.state_dict`` returns it
* ``state-dict``: a dict with names as keys and tensors (or the extra state of modules) as values
* ``checkpoint``: any other dict that holds a state dict or an optimizer's state
* ``module``: an object whose state has the parts of a ``torch.nn.Module``
* ``tensor``, ``dict``, ``object``, ``value``: as the name says
* ``program``, ``mobile-program``, ``package``, ``exported-program``: the other families
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any

from torch_compat.formats.tree import shown
from torch_compat.pickles import Described, Dict, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from torch_compat.formats.distributed import Checkpoint
    from torch_compat.formats.model import Facts

__all__ = ["KINDS", "kind_of"]

OF_FAMILY = {
    "torchscript": "program",
    "mobile": "mobile-program",
    "package": "package",
    "export": "exported-program",
    "distributed": "distributed-checkpoint",
}
KINDS = (
    "state-dict", "optimizer-state", "checkpoint", "lightning-checkpoint", "module", "tensor", "dict", "object", "value",
    *OF_FAMILY.values(),
)  # fmt: skip
"""All kinds of archives."""
MAIN = ("data.pkl", "object", "pickle")
"""The records, or parts, that contain the saved object."""
MODULE_STATE = frozenset({"_parameters", "_buffers", "_modules"})
VERSION = "pytorch-lightning_version"
PLACES = ("epoch", "global_step", "epochs", "step", "iteration")
"""Keys under which training scripts store their progress."""
HYPERPARAMETERS = ("hyper_parameters", "hparams", "args", "config", "cfg", "opt")
"""Keys under which training scripts store their settings."""
MOST = 100  # number of names that are reported
SHARD = re.compile(r"(?:^|/)[^/]*-(\d{5})-of-(\d{5})\.[a-z]+\Z")


def kind_of(facts: Facts) -> tuple[str, dict[str, Any]]:
    """The kind of an archive, and its details: strings, numbers, and lists and dicts of them."""
    other = OF_FAMILY.get(facts.family)
    checkpoint = facts.extra.get("checkpoint")
    if checkpoint is not None:
        return OF_FAMILY["distributed"], _of_checkpoint(checkpoint)
    if other is not None:
        return other, {}
    value = next((facts.pickles[name].value for name in MAIN if name in facts.pickles), None)
    kind, about = _of_value(value)
    shard = SHARD.search(facts.path)
    if shard is not None and kind == "state-dict":
        about["shard"], about["shards"] = int(shard[1]), int(shard[2])
    return kind, about


def _of_checkpoint(checkpoint: Checkpoint) -> dict[str, Any]:
    """The first tensors with shapes and dtypes; shards, files, and missing parts."""
    entries = checkpoint.entries
    tensors = [entry for entry in entries if entry.shape is not None]
    return {
        "tensors": len(tensors),
        "objects": len(entries) - len(tensors),
        "shards": sum(len(entry.shards) for entry in entries),
        "files": len({shard.file for entry in entries for shard in entry.shards}),
        "missing": [_name(entry.name) for entry in entries if entry.missing][:MOST],
        "shapes": {_name(tensor.name): f"{tensor.dtype} {list(tensor.shape or ())}" for tensor in tensors[:MOST]},
    }


def _of_value(value: Any) -> tuple[str, dict[str, Any]]:
    if isinstance(value, dict):
        return _of_dict(value)
    if value.__class__ is Tensor:
        return "tensor", {"dtype": value.dtype, "shape": list(value.shape)}
    if value.__class__ is Described:
        name = shown(getattr(value.target, "path", "?"))
        return ("module" if _is_module(value) else "object"), {"class": name}
    return "value", {"type": value.__class__.__name__}


def _of_dict(value: Mapping[Any, Any]) -> tuple[str, dict[str, Any]]:
    if VERSION in value:
        return "lightning-checkpoint", _of_trainer(value, {"lightning": _plain(value[VERSION])})
    kind = _kind_of_part(value)
    if kind == "state-dict":
        results = [item for item in value.values() if item.__class__ is Tensor]
        about: dict[str, Any] = {"tensors": len(results), "elements": sum(item.numel for item in results)}
        if _is_quantized(value):
            about["quantized"] = True
        return kind, about
    if kind == "optimizer-state":
        groups, state = value["param_groups"], value["state"]
        return kind, {
            "groups": len(groups) if isinstance(groups, list) else None, "parameters": len(state) if isinstance(state, dict) else None,
        }  # fmt: skip
    about = _of_trainer(value, {})
    return ("checkpoint" if about["parts"] else "dict"), about


def _of_trainer(value: Mapping[Any, Any], versions: dict[str, Any]) -> dict[str, Any]:
    """The details that a trainer's checkpoint states, and which of its parts are states."""
    parts = {}
    for key, part in islice(value.items(), MOST):
        kind = _kind_of_part(part)
        if kind is None and part.__class__ is list and part:  # the optimizers of a trainer
            kind = _kind_of_part(part[0])
            kind = None if kind is None else f"list of {kind}"
        if kind is not None:
            parts[_name(key)] = kind
    about: dict[str, Any] = {"parts": parts, "keys": [_name(key) for key in islice(value, MOST)]}
    if versions:
        about["versions"] = versions
    for key in PLACES:
        if value.get(key).__class__ is int:
            about[key] = _plain(value[key])
    for key in HYPERPARAMETERS:
        names = _names_of(value.get(key)) if _kind_of_part(value.get(key)) is None else []
        if names:
            about["hyperparameters"] = names
            break
    return about


def _kind_of_part(value: Any) -> str | None:
    """``state-dict``, ``optimizer-state``, ``module``, or None."""
    if value.__class__ is Described:
        return "module" if _is_module(value) else None
    if not isinstance(value, dict) or not value:
        return None
    if "state" in value and "param_groups" in value:
        return "optimizer-state"
    named = all(key.__class__ is str for key in value)
    if named and _holds_tensors(value.values()) and all(_may_be_saved_by_module(item) for item in value.values()):
        return "state-dict"
    return None


def _holds_tensors(values: Iterable[Any]) -> bool:
    return any(value.__class__ is Tensor for value in values)


def _may_be_saved_by_module(value: Any) -> bool:
    """Whether a module's state dict may contain this: tensors; for quantized modules also packed parameters, scales and dtypes."""
    if value.__class__ is tuple:
        return all(item is None or item.__class__ is Tensor for item in value)
    return (
        value is None
        or value.__class__ in {Tensor, Dict, float, int, bool, str}
        or value.__class__.__name__ in {"Global", "Described"}
    )


def _is_quantized(value: Mapping[str, Any]) -> bool:
    return any(
        (tensor.__class__ is Tensor and tensor.quantizer is not None) or "_packed_params" in name
        for name, tensor in value.items()
    )


def _is_module(value: Described) -> bool:
    state = value.state
    return isinstance(state, dict) and MODULE_STATE.issubset(state)


def _names_of(value: Any) -> list[str]:
    """The names of settings: keys of a dict, attributes of an object such as argparse.Namespace."""
    if value.__class__ is Described:
        value = value.state
    return [_name(key) for key in islice(value, MOST)] if isinstance(value, dict) else []


def _name(key: Any) -> str:
    return (
        shown(key)
        if key.__class__ is str
        else shown(str(key)[:200])
        if key.__class__ in {int, float, bool}
        else key.__class__.__name__
    )


def _plain(value: Any) -> Any:
    """Text, shortened; a bool or an integer of up to 63 bits as is; for anything else, a short description."""
    if value.__class__ is str:
        return shown(value)
    if value.__class__ is int and value.bit_length() > 63:
        return f"int of {value.bit_length()} bits"
    return value if value.__class__ in {int, bool} else value.__class__.__name__
