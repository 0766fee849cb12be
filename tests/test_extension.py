from __future__ import annotations

import ast
import json
import logging
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import harness.extension
from harness.extension import OperatorApiWarning, Parameter, kernel_fault, plain, python_fault, verify, without_symbols
from harness.operators.schema import parse

SOURCE = Path(harness.extension.__file__)
ADD = "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
MUL = "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor"


class FakeSchema:
    """As much of torch's FunctionSchema as verify asks of it. Compatible where the test says so."""

    def __init__(self, text: str, *, compatible: bool = True) -> None:
        self.parsed, self.text, self.compatible = parse(text), text, compatible
        self.overload_name = self.parsed.overload
        self.arguments = [
            SimpleNamespace(
                name=one.name, type=one.type, kwarg_only=one.kwarg_only, has_default_value=lambda one=one: one.default is not None
            )
            for one in self.parsed.arguments
        ]
        self.returns = [SimpleNamespace(type=one.type) for one in self.parsed.returns]

    def __str__(self) -> str:
        return self.text

    def is_backward_compatible_with(self, _: Any) -> bool:
        return not self.text.endswith("-> Never") and "broken" not in self.text


def fake_torch(*schemas: str, version: str = "2.5.1+cpu", **functions: Any) -> Any:
    def of(name: str) -> list[FakeSchema]:
        return [FakeSchema(text) for text in schemas if parse(text).name == name]

    c = SimpleNamespace(_jit_get_schemas_for_operator=of, parse_schema=FakeSchema, **functions)
    return SimpleNamespace(__version__=version, _C=c)


def manifest(*entries: dict[str, Any], **other: Any) -> dict[str, Any]:
    return {
        "schema_version": 1, "extension": "mine", "built_against": "2.4.1", "backend": "PrivateUse1", "fallback": False, "needs": [],
        "operators": list(entries), **other,
    }  # fmt: skip


def entry(schema: str, use: str = "calls", *, relies: bool = False, **kernel: Any) -> dict[str, Any]:
    kernels = [{"key": "PrivateUse1", "language": None, "signature": None, **kernel}] if use == "registers" else []
    return {
        "operator": schema.partition("(")[0], "use": use, "schema": schema, "kernels": kernels, "relies_on_decomposition": relies,
    }  # fmt: skip


def quiet(*arguments: Any) -> harness.extension.Verification:
    """Verify, where a warning would fail the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return verify(*arguments)


def test_what_fits_says_nothing() -> None:
    found = quiet(
        manifest(entry(ADD), entry(MUL, "registers"), entry("mine::f(Tensor x) -> Tensor", "defines")), fake_torch(ADD, MUL)
    )
    assert found == (True, (), (), None)


def test_the_manifest_may_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(manifest(entry(ADD))), encoding="utf-8")
    assert quiet(path, fake_torch(ADD)).fits is True
    assert quiet(str(path), fake_torch(ADD)).fits is True


def test_one_warning_names_operators_releases_and_what_to_do() -> None:
    gone = [entry(f"aten::gone{number}(Tensor x) -> Tensor") for number in range(5)]
    with pytest.warns(OperatorApiWarning) as caught:
        found = verify(manifest(entry(ADD), *gone), fake_torch(ADD))
    (warning,) = caught
    text = str(warning.message)
    assert "\n" not in text
    for said in (
        "mine was built for torch 2.4.1",
        "torch 2.5.1 is loaded",
        "5 of its 6 operators",
        "aten::gone0 is gone",
        "2 more",
        "Install",
    ):
        assert said in text
    assert warning.filename == __file__, "the warning points at who called verify"
    assert (found.fits, [fault.cause for fault in found.faults]) == (False, ["absent"] * 5)


def test_details_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    now = "aten::add.Tensor(Tensor self, Tensor broken) -> Tensor"
    with (
        caplog.at_level(logging.DEBUG, "harness.extension"),
        pytest.warns(OperatorApiWarning, match=r"aten::add\.Tensor can no longer"),
    ):
        verify(manifest(entry(ADD)), fake_torch(now))
    assert f"was {ADD}" in caplog.text
    assert f"is  {now}" in caplog.text
    assert "ms" in caplog.text


@pytest.mark.parametrize(
    ("was", "now", "kernel", "cause"),
    [
        (MUL, "aten::mul.Tensor(Tensor self, Tensor other, bool new=False) -> Tensor", {}, "schema"),
        (MUL, "aten::mul.Tensor(Tensor self, Scalar other) -> Tensor", {}, "schema"),
        (MUL, "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor[]", {}, "schema"),
        (MUL, "aten::mul.Tensor(Tensor self, Tensor another) -> Tensor", {}, None),
        (MUL, "aten::mul.Tensor(Tensor self, Tensor other, bool new=False) -> Tensor", {"language": "python"}, None),
        (MUL, "aten::mul.Tensor(Tensor self, Tensor other, bool new) -> Tensor", {"language": "python"}, "schema"),
        ("aten::f(int a) -> Tensor", "aten::f(SymInt a) -> Tensor", {}, None),
    ],
)
def test_kernels(was: str, now: str, kernel: dict[str, Any], cause: str | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = verify(manifest(entry(was, "registers", **kernel)), fake_torch(now))
    assert [fault.cause for fault in found.faults] == ([cause] if cause else [])


def test_an_operator_of_its_own_that_torch_now_has() -> None:
    own = entry("mine::f(Tensor x) -> Tensor", "defines")
    assert quiet(manifest(own), fake_torch("mine::f(Tensor x) -> Tensor")).fits is True, "its own, loaded already"
    with pytest.warns(OperatorApiWarning, match="is defined already"):
        verify(manifest(own), fake_torch("mine::f(Tensor x, int y) -> Tensor"))


def test_decomposition_is_asked_of_the_dispatcher() -> None:
    relying = manifest(entry(ADD, relies=True))
    served = fake_torch(
        ADD,
        _dispatch_has_computed_kernel_for_dispatch_key=lambda operator, key: (
            (operator, key) == ("aten::add.Tensor", "PrivateUse1")
        ),
    )
    assert quiet(relying, served).fits is True
    alone = fake_torch(ADD, _dispatch_has_computed_kernel_for_dispatch_key=lambda *_: False)
    with pytest.warns(OperatorApiWarning, match=r"aten::add\.Tensor now needs a kernel of the backend's own"):
        assert verify(relying, alone).faults[0].cause == "dispatch"
    assert quiet({**relying, "fallback": True}, alone).fits is True


@pytest.mark.parametrize(
    ("version", "dump", "fits"),
    [
        ("1.8.1", "name: x\nMath[alias]: registered at y", True),
        ("1.12.1", "CompositeExplicitAutograd[alias]: registered at y", True),
        ("1.8.1", "CPU: registered at y", False),
        ("1.6.0", "never asked: it ends the process", None),
    ],
)
def test_older_releases_show_a_dump(version: str, dump: str, fits: bool | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = verify(manifest(entry(ADD, relies=True)), fake_torch(ADD, version=version, _dispatch_dump=lambda _: dump))
    assert found.fits is fits


def test_names_that_it_imports() -> None:
    assert quiet(manifest(entry(ADD), needs=["json.loads"]), fake_torch(ADD)).fits is True
    for name in ("json.no_such_name", "no_such_module_at_all.name"):
        with pytest.warns(OperatorApiWarning, match=f"{name} is missing"):
            verify(manifest(entry(ADD), needs=[name]), fake_torch(ADD))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"schema_version": 2}, "schema_version 2, and 1 is the newest"),
        ({"schema_version": "1"}, "schema_version '1'"),
        ({"operators": []}, "lists no operator"),
        ({"operators": [{}]}, "KeyError"),
        ({"operators": None}, "TypeError"),
    ],
)
def test_what_cannot_be_checked_is_said_and_raises_nothing(given: dict[str, Any], said: str) -> None:
    with pytest.warns(OperatorApiWarning, match="could not be checked") as caught:
        found = verify({**manifest(entry(ADD)), **given}, fake_torch(ADD))
    assert len(caught) == 1
    assert found.fits is None
    assert said in str(caught[0].message)


def test_files_that_are_no_manifest(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{", encoding="utf-8")
    for path in (tmp_path / "missing.json", tmp_path, broken):
        with pytest.warns(OperatorApiWarning, match="could not be checked"):
            assert verify(path, fake_torch(ADD)).fits is None


def test_a_torch_that_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for torch in (SimpleNamespace(__version__="9.0"), SimpleNamespace(__version__="9.0", _C=SimpleNamespace())):
        with pytest.warns(OperatorApiWarning, match=r"whether it fits torch 9\.0 could not be checked"):
            assert verify(manifest(entry(ADD)), torch).fits is None
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with pytest.warns(OperatorApiWarning, match="torch is not imported"):
        verify(manifest(entry(ADD)))


def test_one_operator_that_cannot_be_asked_for_hides_no_other() -> None:
    torch = fake_torch(ADD)
    ask = torch._C._jit_get_schemas_for_operator

    def fail(name: str) -> Any:
        if name == "aten::bad":
            raise RuntimeError("line one\nline two")
        return ask(name)

    torch._C._jit_get_schemas_for_operator = fail
    with pytest.warns(OperatorApiWarning, match=r"aten::gone is gone.*1 could not be checked") as caught:
        found = verify(manifest(entry("aten::bad(Tensor x) -> Tensor"), entry("aten::gone(Tensor x) -> Tensor")), torch)
    assert "\n" not in str(caught[0].message)
    assert (found.fits, len(found.faults), found.unchecked) == (False, 1, ("aten::bad: RuntimeError: line one line two",))


def test_kernel_faults() -> None:
    assert kernel_fault(["Tensor"], ["Tensor"], None) is None
    assert kernel_fault(["Tensor", "int"], ["Tensor"], None) == "takes 2 arguments instead of 1"
    assert kernel_fault([], ["Tensor"], None, "returns") == "returns 0 values instead of 1"
    assert kernel_fault(["int"], ["float"], None) == "takes int as argument 1 instead of float"
    assert kernel_fault(["SymInt[]"], ["int[]"], ["int[]"]) is None, "int serves SymInt"
    assert kernel_fault(["int"], ["SymInt"], ["int"]) is None
    assert kernel_fault(["int"], ["SymInt"], ["SymInt"]) == "takes int as argument 1 instead of SymInt"


def test_python_faults() -> None:
    x, y = Parameter("x", has_default=False, kwarg_only=False), Parameter("y", has_default=True, kwarg_only=False)
    out = Parameter("out", has_default=False, kwarg_only=True)
    assert python_fault([x, y], [x]) is None, "an argument at its default is not handed over"
    assert python_fault([x._replace(name="z")], [x]) is None, "by position"
    assert python_fault([x, out], [x]) == "hands over out, which the kernel does not take"
    assert python_fault([x, x], [x]) == "hands over x, which the kernel does not take"
    assert python_fault([], [x, y]) == "no longer hands over x"
    assert python_fault([x], [x, out]) == "no longer hands over out"


def test_spellings() -> None:
    assert plain("aten::f(Tensor x) -> (Tensor)") == "aten::f(Tensor x) -> Tensor"
    assert plain("aten::f(Tensor x) -> (Tensor, Tensor)") == "aten::f(Tensor x) -> (Tensor, Tensor)"
    assert without_symbols("aten::f(SymInt[2] x, SymBool? y) -> Symbol") == "aten::f(int[2] x, bool? y) -> Symbol"


def test_runs_on_python_3_7_and_carries_nothing() -> None:
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"), feature_version=(3, 7))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "." for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names


def test_importing_it_is_cheap() -> None:
    script = "import sys\nimport harness.extension\nprint(*sorted(name.partition('.')[0] for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) & {"click", "numpy", "packaging", "pydantic", "rich", "torch"} == set()
    assert "harness" in done.stdout.split()
