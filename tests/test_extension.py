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

import torch_compat.extension
from torch_compat.extension import OperatorApiWarning, Parameter, kernel_fault, plain, python_fault, verify, without_symbols
from torch_compat.operators.schema import parse

SOURCE = Path(torch_compat.extension.__file__)
ADD = "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
MUL = "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor"


class FakeSchema:
    """As much of torch's FunctionSchema as verify asks of it. Compatible where the test says so."""

    def __init__(self, text: str, *, compatible: bool = True) -> None:
        self.parsed, self.text, self.compatible = parse(text), text, compatible
        self.overload_name = self.parsed.overload
        self.arguments = [
            SimpleNamespace(
                name=argument.name,
                type=argument.type,
                kwarg_only=argument.kwarg_only,
                has_default_value=lambda item=argument: item.default is not None,
            )
            for argument in self.parsed.arguments
        ]
        self.returns = [SimpleNamespace(type=item.type) for item in self.parsed.returns]

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


def quiet(*arguments: Any) -> torch_compat.extension.Verification:
    """Verify, where a warning would fail the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return verify(*arguments)


def test_what_fits_says_nothing() -> None:
    result = quiet(
        manifest(entry(ADD), entry(MUL, "registers"), entry("mine::f(Tensor x) -> Tensor", "defines")), fake_torch(ADD, MUL)
    )
    assert result == (True, (), (), None)


def test_the_manifest_may_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(manifest(entry(ADD))), encoding="utf-8")
    assert quiet(path, fake_torch(ADD)).fits is True
    assert quiet(str(path), fake_torch(ADD)).fits is True


def test_one_warning_names_operators_releases_and_what_to_do() -> None:
    gone = [entry(f"aten::gone{number}(Tensor x) -> Tensor") for number in range(5)]
    with pytest.warns(OperatorApiWarning) as caught:
        verification = verify(manifest(entry(ADD), *gone), fake_torch(ADD))
    (warning,) = caught
    text = str(warning.message)
    assert "\n" not in text
    for name in (
        "mine was built for torch 2.4.1",
        "torch 2.5.1 is loaded",
        "5 of its 6 operators",
        "aten::gone0 is gone",
        "2 more",
        "Install",
    ):
        assert name in text
    assert warning.filename == __file__, "the warning points at who called verify"
    assert (verification.fits, [fault.cause for fault in verification.faults]) == (False, ["absent"] * 5)


def test_details_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    now = "aten::add.Tensor(Tensor self, Tensor broken) -> Tensor"
    with (
        caplog.at_level(logging.DEBUG, "torch_compat.extension"),
        pytest.warns(OperatorApiWarning, match=r"aten::add\.Tensor can no longer"),
    ):
        verify(manifest(entry(ADD)), fake_torch(now))
    assert f"recorded schema: {ADD}" in caplog.text
    assert f"schema in this torch: {now}" in caplog.text
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
        verification = verify(manifest(entry(was, "registers", **kernel)), fake_torch(now))
    assert [fault.cause for fault in verification.faults] == ([cause] if cause else [])


def test_an_operator_of_its_own_that_torch_now_has() -> None:
    own = entry("mine::f(Tensor x) -> Tensor", "defines")
    assert quiet(manifest(own), fake_torch("mine::f(Tensor x) -> Tensor")).fits is True, "its own, loaded already"
    with pytest.warns(OperatorApiWarning, match="is already defined"):
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
    with pytest.warns(OperatorApiWarning, match=r"aten::add\.Tensor now needs a kernel for the backend"):
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
        result = verify(manifest(entry(ADD, relies=True)), fake_torch(ADD, version=version, _dispatch_dump=lambda _: dump))
    assert result.fits is fits


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
        ({"operators": []}, "does not list any operators"),
        ({"operators": [{}]}, "KeyError"),
        ({"operators": None}, "NoneType for operators, expected a list"),
    ],
)
def test_what_cannot_be_checked_is_said_and_raises_nothing(given: dict[str, Any], said: str) -> None:
    with pytest.warns(OperatorApiWarning, match="could not be checked") as caught:
        result = verify({**manifest(entry(ADD)), **given}, fake_torch(ADD))
    assert len(caught) == 1
    assert result.fits is None
    assert said in str(caught[0].message)


def test_files_that_are_no_manifest(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{", encoding="utf-8")
    for path in (tmp_path / "missing.json", tmp_path, broken):
        with pytest.warns(OperatorApiWarning, match="could not be checked"):
            assert verify(path, fake_torch(ADD)).fits is None


def test_a_torch_that_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for torch in (SimpleNamespace(__version__="9.0"), SimpleNamespace(__version__="9.0", _C=SimpleNamespace())):
        with pytest.warns(OperatorApiWarning, match=r"its compatibility with torch 9\.0 could not be checked"):
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
        verification = verify(manifest(entry("aten::bad(Tensor x) -> Tensor"), entry("aten::gone(Tensor x) -> Tensor")), torch)
    assert "\n" not in str(caught[0].message)
    assert (verification.fits, len(verification.faults), verification.unchecked) == (
        False,
        1,
        ("aten::bad: RuntimeError: line one line two",),
    )


class Mute(Exception):  # noqa: N818 - it says nothing, not even that
    """An error that cannot say what it is."""

    def __str__(self) -> str:
        raise self


class MuteVersion:
    def __str__(self) -> str:
        raise Mute


class Ends(BaseException):
    """Neither an Exception nor an exit."""


class MuteManifest(dict[str, Any]):
    def get(self, *_: Any) -> Any:
        raise Mute


def raising(error: BaseException) -> Any:
    def function(*_: Any) -> Any:
        raise error

    return SimpleNamespace(__version__="2.5.1", _C=SimpleNamespace(_jit_get_schemas_for_operator=function))


@pytest.mark.parametrize("error", [SystemExit(2), Ends(), Mute(), GeneratorExit(), MemoryError(), RecursionError()], ids=repr)
def test_whatever_torch_raises_is_told_in_the_warning(error: BaseException) -> None:
    with pytest.warns(OperatorApiWarning, match=f"could not be checked: aten::add.Tensor: {type(error).__name__}") as caught:
        verification = verify(manifest(entry(ADD)), raising(error))
    assert (len(caught), verification.fits, len(verification.unchecked)) == (1, None, 1)


@pytest.mark.parametrize("raised", ["SystemExit(3)", "__import__('sys').exit('bye')", "GeneratorExit()", "BaseException('odd')"])
def test_a_module_that_ends_the_process_does_not_end_the_users_import(
    raised: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ends_when_imported.py").write_text(f"raise {raised}\n")
    monkeypatch.syspath_prepend(tmp_path)
    given = manifest(entry(ADD), entry(MUL), needs=["ends_when_imported.x", "json.no_such_name"])
    with pytest.warns(OperatorApiWarning, match="json.no_such_name is missing.* 1 could not be checked") as caught:
        verification = verify(given, fake_torch(ADD, MUL))
    assert len(caught) == 1
    assert [fault.operator for fault in verification.faults] == ["json.no_such_name"]
    assert verification.unchecked[0].startswith("ends_when_imported.x: ")


def test_an_interruption_passes_since_the_users_own_looks_the_same() -> None:
    with pytest.raises(KeyboardInterrupt):
        verify(manifest(entry(ADD)), raising(KeyboardInterrupt()))


def test_a_torch_whose_version_cannot_be_told_is_still_asked() -> None:
    torch = fake_torch(ADD)
    torch.__version__ = MuteVersion()
    with pytest.warns(
        OperatorApiWarning, match="1 of its 2 operators is incompatible .*aten::mul.Tensor is gone.* 1 could not be checked"
    ):
        result = verify(manifest(entry(ADD), entry(MUL)), torch)
    assert result.unchecked == ("the version of torch: Mute",)


def test_a_manifest_that_cannot_be_asked() -> None:
    with pytest.warns(OperatorApiWarning, match="could not be checked: Mute"):
        assert verify(MuteManifest(manifest(entry(ADD))), fake_torch(ADD)).fits is None


@pytest.mark.parametrize("odd", [1, None, "aten::add", {}, {"operator": 5}, {"operator": "aten::x", "use": "eats", "schema": ""}])
def test_an_entry_of_a_wrong_form_hides_no_other(odd: Any) -> None:
    given = manifest(entry(ADD))
    given["operators"] = [odd, *given["operators"], entry(MUL)]
    with pytest.warns(OperatorApiWarning, match="aten::mul.Tensor is gone.* 1 could not be checked") as caught:
        verification = verify(given, fake_torch(ADD))
    assert (len(caught), verification.fits, len(verification.faults), len(verification.unchecked)) == (1, False, 1, 1)


def test_a_need_of_a_wrong_form_hides_no_other() -> None:
    with pytest.warns(OperatorApiWarning, match="json.nothing is missing.* 2 could not be checked"):
        result = verify(manifest(entry(ADD), needs=["", 5, "json.nothing"]), fake_torch(ADD))
    assert len(result.unchecked) == 2
    with pytest.warns(OperatorApiWarning, match="has str for needs, expected a list"):
        assert verify(manifest(entry(ADD), needs="json.loads"), fake_torch(ADD)).fits is None


def test_a_log_and_a_hook_that_fail_cost_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise OSError

    monkeypatch.setattr("torch_compat.extension.LOG.debug", broken)
    with pytest.warns(OperatorApiWarning, match="aten::add.Tensor is gone"):
        assert verify(manifest(entry(ADD)), fake_torch()).fits is False
    monkeypatch.setattr("torch_compat.extension.warnings.warn", broken)
    verification = verify(manifest(entry(ADD)), fake_torch())
    assert verification.warning is not None
    assert verification.fits is False


def test_a_warning_leaves_a_terminal_nothing_to_obey() -> None:
    with pytest.warns(OperatorApiWarning) as caught:
        verify(manifest(entry(ADD), extension="a\nb\x1b]0;x\x07\u202e", needs=["json.\x9bx"]), fake_torch(ADD))
    assert str(caught[0].message).isprintable()
    assert "a\\nb\\x1b]0;x\\x07\\u202e was built" in str(caught[0].message)


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
    assert python_fault([x, out], [x]) == "passes out, which the kernel does not accept"
    assert python_fault([x, x], [x]) == "passes x, which the kernel does not accept"
    assert python_fault([], [x, y]) == "no longer passes x"
    assert python_fault([x], [x, out]) == "no longer passes out"


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
    script = "import sys\nimport torch_compat.extension\nprint(*sorted(name.partition('.')[0] for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) & {"click", "numpy", "packaging", "pydantic", "rich", "torch"} == set()
    assert "torch_compat" in done.stdout.split()
