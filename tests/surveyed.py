"""A minimal survey with every section and every form of entry."""

from __future__ import annotations

from typing import Any

SCHEMAS = [f"aten::op{i}(Tensor self, *, Scalar alpha=1) -> Tensor" for i in range(5)]


def section(entries: Any, why: str | None = None, obtained: str = "Asked.") -> dict[str, Any]:
    return {"obtained": obtained, "complete": why is None, "why_incomplete": why, "entries": entries}


def small_survey() -> dict[str, Any]:
    """A new one each time: tests change it."""
    return {
        "schemas": section(list(SCHEMAS)),
        "custom_classes": section([], "Cannot be asked."),
        "kernels": section({"aten::a": ["CPU", "CUDA"], "aten::b": "crashed: SIGSEGV", "aten::c": []}, "It crashes."),
        "native_functions": section(
            {
                "path": "torchgen/native_functions.yaml",
                "sha256": "0" * 64,
                "functions": {
                    "aten::a": {"dispatch": ["CPU", "CUDA"], "tags": ["core"]},
                    "aten::a.out": {"autogen": ["aten::a.x"], "structured_delegate": "aten::b"},
                    "aten::plain": {},
                },
            }
        ),
        "imported": section({"c10d::f": ["torch.distributed.mine"]}),
        "operator_versions": section({"aten::div": [[4, "div_0_3", "aten::div(Tensor a) -> Tensor"]]}),
        "upgraders": section({"bodies": {"div_0_3": ["def div_0_3(a):\n  return a"]}, "ranges": {"aten::div": [[0, 3]]}}),
        "accepts": section({"torch-save": {"version": {"1": "loads", "9": "refused: too näw"}}, "export": {}}),
        "constants": section({"bytecode": None, "members": ["version", "data.pkl"], "file_formats": {"add": ["version", 3]}}),
        "weights_only": section(
            {
                "allowed": ["collections.OrderedDict", "torch.Size"],
                "answers": {"safe-global": "takes: user.Mine", "persistent-int": "refused: RuntimeError: no"},
                "blocked_modules": [],
                "default": True,
                "opcodes": ["GLOBAL", "STOP"],
                "safe_globals": [],
            }
        ),
        "halves": section({"layer_norm(m, [3])": {"float16": 'RuntimeError: "x" not implemented', "bfloat16": "computes"}}),
        "dtypes": section(
            {"layer_norm(m, [3])": {"RuntimeError: \"x\" not implemented for '{}'": "int16 int8", "computes": "int32"}}
        ),
        "outs": section({"add(m, n)": {"out": {"float32 float64": "float32 int32", "any": "bool"}}}),
        "calls": section(
            {
                "aten::relu 1": [{"tensor": {"dtype": "float32", "shape": [1], "bytes": "AAAAAA=="}}, {}],
                "aten::relu 2": "refused: RuntimeError",
            }
        ),
        "export_schema": section({"version": [8, 1], "records": {"Node": {"target": "str"}}, "unions": {}, "enums": {}}),
        "export_witnesses": section(
            {"unaltered@2.6.0": {"archive": "0" * 64, "loads": "loads", "says": [], "computes": ["2", "1"], "keeps": None}}
        ),
        "global_names": section(
            {
                "names": {"torch": ["Size", "float32"], "torch.nn": ["Linear"]},
                "not_imported": {"torch.hub": "ImportError: 100 % no", "torch.nn": "only half"},
                "left_out": ["torch.testing"],
            },
            "Packages that are left out.",
        ),
        "renamed_modules": section({"torch.tensor": "torch._tensor"}),
    }
