"""The script that runs inside a release, tested with a fake torch."""

from __future__ import annotations

import runpy
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from torch_compat.inside import script

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SCRIPT = runpy.run_path(str(script("extension")))
HEAD = "name: {name}\nschema: {name}(Tensor x) -> (Tensor)\ndebug: registered at x.cpp:1\nalias analysis kind: FROM_SCHEMA\n"
CPU = "CPU: registered at aten/src/RegisterCPU.cpp:5 :: (Tensor _0) -> Tensor _0 [ boxed unboxed ]\n"


class FakeTorch:
    """A dispatcher that an extension changes when it is loaded."""

    def __init__(self, load: Callable[[FakeTorch], None] = lambda _: None, version: str = "2.4.1+cpu") -> None:
        self.__version__ = version
        self.dumps = {"aten::f": HEAD.format(name="aten::f") + CPU, "prim::jit_only": ""}
        self.dangling: list[str] = []
        self.fallbacks: set[str] = set()
        self.ops = SimpleNamespace(load_library=lambda _path: load(self))
        self._C: Any = SimpleNamespace(
            _dispatch_dump=self.dumps.__getitem__,
            _dispatch_get_all_op_names=lambda: list(self.dumps),
            _dispatch_find_dangling_impls=lambda: self.dangling,
            _dispatch_has_backend_fallback=lambda key: key in self.fallbacks,
            DispatchKey=SimpleNamespace(PrivateUse1="PrivateUse1", XLA="XLA"),
        )


def ask(torch: FakeTorch, **request: Any) -> dict[str, Any]:
    answer: dict[str, Any] = SCRIPT["ask"](torch, {"paths": [], "module": None, "library": "x.so", "call": None, **request})
    return answer


def test_nothing_registered() -> None:
    answer = ask(FakeTorch())
    assert answer == {"torch": "2.4.1+cpu", "error": None, "defined": [], "registered": [], "dangling": [], "fallbacks": []}


def test_what_an_extension_did() -> None:
    def load(torch: FakeTorch) -> None:
        torch.dumps["aten::f"] += (
            "PrivateUse1: registered at mine.cpp:3 :: (Tensor _0) -> Tensor _0 [ boxed unboxed ]\n"
            "XLA: registered at site/mine.py:4 :: (none) [ boxed ]\n"
            "MPS: registered at boxed.cpp:5 :: (none) [ boxed ]\n"
        )
        torch.dumps["mine::g.out"] = (
            HEAD.format(name="mine::g.out")
            + "CompositeImplicitAutograd[alias]: registered at a.cpp:1 :: (Tensor _0) -> Tensor _0 [ boxed ]\n"
        )
        torch.dangling.append("name: aten::gone\nschema: (none)\n")
        torch.fallbacks.add("PrivateUse1")

    answer = ask(FakeTorch(load))
    (registered,) = answer["registered"]
    assert registered["operator"] == "aten::f"
    assert registered["schema"] == "aten::f(Tensor x) -> Tensor", "spelled as newer releases print it"
    assert registered["kernels"] == [
        {"key": "MPS", "language": None, "signature": None},
        {"key": "PrivateUse1", "language": "c++", "signature": "(Tensor _0) -> Tensor _0"},
        {"key": "XLA", "language": "python", "signature": None},
    ]
    (defined,) = answer["defined"]
    assert (defined["operator"], [kernel["key"] for kernel in defined["kernels"]]) == (
        "mine::g.out",
        ["CompositeImplicitAutograd"],
    )
    assert (answer["dangling"], answer["fallbacks"]) == (["aten::gone"], ["PrivateUse1"])


def test_a_kernel_that_takes_the_place_of_another() -> None:
    def load(torch: FakeTorch) -> None:
        torch.dumps["aten::f"] = torch.dumps["aten::f"].replace("RegisterCPU.cpp:5", "mine.cpp:1")

    assert [kernel["key"] for kernel in ask(FakeTorch(load))["registered"][0]["kernels"]] == ["CPU"]


def test_an_extension_that_raises_is_an_answer() -> None:
    def load(_: FakeTorch) -> None:
        raise OSError("undefined symbol: f")

    assert ask(FakeTorch(load))["error"] == {"stage": "load", "type": "OSError", "message": "undefined symbol: f"}


def test_a_module_is_imported_and_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "mine_for_this_test.py").write_text("def good(): pass\ndef bad(): raise ValueError('no')\n", encoding="utf-8")
    request = {"library": None, "module": "mine_for_this_test", "paths": [str(tmp_path)]}
    assert ask(FakeTorch(), **request, call="good")["error"] is None
    assert ask(FakeTorch(), **request, call="bad")["error"] == {"stage": "call", "type": "ValueError", "message": "no"}
    assert ask(FakeTorch(), library=None, module="no_such_module_at_all")["error"]["type"] == "ModuleNotFoundError"
    monkeypatch.delitem(sys.modules, "mine_for_this_test")


@pytest.mark.parametrize("version", ["1.5.1", "1.6.0", "1.0.0"])
def test_releases_that_do_not_show_their_dispatcher(version: str) -> None:
    torch = FakeTorch(version=version)
    if version != "1.6.0":
        del torch._C._dispatch_dump
    with pytest.raises(SCRIPT["Unaskable"], match="does not show its dispatcher"):
        ask(torch)


def test_names_come_from_schemas_where_the_dispatcher_does_not_list_them() -> None:
    torch = FakeTorch(version="1.12.1")
    del torch._C._dispatch_get_all_op_names, torch._C._dispatch_find_dangling_impls, torch._C._dispatch_has_backend_fallback
    torch._C._jit_get_all_schemas = lambda: [SimpleNamespace(name="aten::f", overload_name="")]
    assert ask(torch)["registered"] == []
