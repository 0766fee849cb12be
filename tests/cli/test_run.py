from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.runtime.archives import HEAD, archive
from torch_compat.cli import main
from torch_compat.errors import UsageError
from torch_compat.runtime.json_values import plain, read_arguments, shown_value, value_text

if TYPE_CHECKING:
    from collections.abc import Callable

REPOSITORY = Path(__file__).parents[2]
DIV = REPOSITORY / "fixtures" / "torch-1.5.1" / "div.pt"
PAIR = [{"tensor": {"dtype": "int64", "shape": [2], "data": data}} for data in ([7, -7], [2, 2])]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    """Runs ``torch-compat run``: its exit status, standard output and standard error."""
    monkeypatch.chdir(REPOSITORY)

    def run_command(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stopped:
            main(["run", *map(str, arguments)])
        message = capsys.readouterr()
        assert "Traceback" not in message.err
        assert isinstance(stopped.value.code, int)
        return stopped.value.code, message.out, message.err

    return run_command


def given(folder: Path, document: Any) -> Path:
    path = folder / "args.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return path


def model(folder: Path, *lines: str, version: int = 3) -> Path:
    path = folder / "model.pt"
    path.write_bytes(archive({"__torch__/m.py": HEAD + "".join(f"  {line}\n" for line in lines)}, version=version))
    return path


FORWARD = "def forward(self: __torch__.m.Model, x: {0}) -> {0}:"


# --------------------------------------------------------------------------------------------------------------- outcomes


@pytest.mark.parametrize("reader", ["reference", "reference@1.5.1", "reference@2020-06-24"])
def test_a_value(run: Any, tmp_path: Path, reader: str) -> None:
    status, out, err = run(DIV, "--args", given(tmp_path, PAIR), "--reader", reader, "--format", "json")
    assert (status, err) == (0, "")
    message = json.loads(out)
    tensor = {"tensor": {"dtype": "int64", "shape": [2], "data": [3, -3]}}
    assert (message["outcome"], message["value"], message["reader"]) == ("loaded", {"tuple": [tensor, tensor]}, reader)
    assert "error" not in message


def test_text_is_for_people(run: Any, tmp_path: Path) -> None:
    status, out, _ = run(DIV, "--args", given(tmp_path, PAIR), "--explain")
    assert status == 0
    assert out.splitlines() == [
        "loaded  (reference, forward)",
        "tuple of 2",
        "  tensor int64 (2): [3, -3]",
        "  tensor int64 (2): [3, -3]",
        "upgrader: aten::div in __torch__.div, line 7, was replaced by div_0_3",
    ]


def test_of_what_a_release_dies_is_told_as_its_death(run: Any) -> None:
    path = DIV.parents[1] / "torch-2.0.0" / "div_out.pt"
    status, out, err = run(path, "--reader", "reference@1.8.1", "--format", "json")
    message = json.loads(out)
    assert (status, err, message["outcome"], message["error"]["code"]) == (1, "", "crashed", "SIGABRT")
    assert message["error"]["message"].startswith("the release that reference@1.8.1 represents crashes here (SIGABRT): ")
    assert run(path, "--reader", "reference@1.8.1")[1].splitlines()[0] == "crashed  (reference@1.8.1, forward)"


def test_nothing_to_explain_is_said(run: Any, tmp_path: Path) -> None:
    _, out, _ = run(DIV, "--args", given(tmp_path, PAIR), "--explain", "--reader", "reference@1.5.1")
    assert out.splitlines()[-1] == "upgrader: none"


def test_a_method_other_than_forward(run: Any, tmp_path: Path) -> None:
    path = model(tmp_path, "def twice(self: __torch__.m.Model, x: int) -> int:", "  return torch.mul(x, 2)")
    assert run(path, "--method", "twice", "--args", given(tmp_path, [21]))[:2] == (0, "loaded  (reference, twice)\n42\n")
    status, out, err = run(path, "--format", "json")
    assert (status, out) == (2, "")
    assert "the program has no method 'forward'\n  its methods: twice" in err


def test_the_minor_version_of_a_horizon_is_its_newest_patch(run: Any) -> None:
    assert json.loads(run(DIV, "--reader", "reference@1.5", "--format", "json")[1])["reader"] == "reference@1.5.1"
    development = "reference@2.16.0.dev20261120"
    assert json.loads(run(DIV, "--reader", development, "--format", "json")[1])["reader"] == development


@pytest.mark.parametrize(
    ("make", "more", "status", "outcome", "code"),
    [
        ("refused", ("--reader", "reference@1.0.0"), 1, "refused", None),
        ("raises", (), 1, "raised", "torch.jit.Error"),
        ("lacks", (), 4, "unsupported", "operator"),
        ("endless", ("--timeout", "0.5"), 1, "timed-out", "timed-out"),
        ("damaged", (), 1, "refused", "cut-off"),
        ("no release", ("--reader", "torch-2.13.0"), 4, "unavailable", "not-built"),
    ],
)
def test_every_other_outcome_has_its_status_and_an_error(
    run: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: str,
    more: tuple[str, ...],
    status: int,
    outcome: str,
    code: str | None,
) -> None:
    monkeypatch.setenv("TORCH_COMPAT_CACHE", str(tmp_path / "empty"))
    sources = {
        "raises": (FORWARD.format("int"), '  ops.prim.RaiseException("no\\x1b[31m")', "  return x"),
        "lacks": (FORWARD.format("int"), "  return torch.frobnicate(x)"),
        "endless": (FORWARD.format("int"), "  while True:", "    x = torch.add(x, 1)", "  return x"),
    }
    path = REPOSITORY / "fixtures" / "torch-2.13.0" / "gelu.pt"
    if make == "damaged":  # what is left has the records of a torch.save archive
        path = tmp_path / "damaged.pt"
        path.write_bytes((REPOSITORY / "fixtures" / "torch-2.13.0" / "div.pt").read_bytes()[:500])
    if make in sources:
        path = model(tmp_path, *sources[make])
    result, out, err = run(path, "--args", given(tmp_path, [1]), *more, "--format", "json")
    message = json.loads(out)
    assert (result, message["outcome"], err) == (status, outcome, "")
    assert message["error"]["message"]
    assert code in {None, message["error"]["code"]}
    assert "value" not in message
    _, text, _ = run(path, "--args", given(tmp_path, [1]), *more)
    assert text.startswith(f"{outcome}  (")
    assert not [character for character in text if not character.isprintable() and character != "\n"]


@pytest.mark.real_torch("2.13.0")
def test_a_release_gives_the_same_form(run: Any, tmp_path: Path) -> None:
    status, out, _ = run(DIV, "--args", given(tmp_path, PAIR), "--reader", "torch-2.13.0", "--format", "json")
    message = json.loads(out)
    tensor = {"tensor": {"dtype": "int64", "shape": [2], "data": [3, -3]}}
    assert (status, message["value"], message["reader"].partition("+")[0]) == (0, {"tuple": [tensor, tensor]}, "torch-2.13.0")
    status, out, _ = run(DIV, "--reader", "torch-2.13.0", "--format", "json")
    assert (status, json.loads(out)["error"]["code"]) == (1, "RuntimeError")
    status, out, _ = run(REPOSITORY / "fixtures/torch-2.13.0/state_dict.pt", "--reader", "torch-2.13.0", "--format", "json")
    assert (status, json.loads(out)["outcome"]) == (1, "refused")


@pytest.mark.real_torch("2.13.0")
def test_a_method_that_there_is_not_is_wrong_usage_for_a_release_too(run: Any) -> None:
    status, out, err = run(DIV, "--reader", "torch-2.13.0", "--method", "forwrad")
    assert (status, out) == (2, "")
    assert "the program has no method 'forwrad'\n  did you mean forward?" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.pt"], "nowhere.pt: file not found"),
        (["fixtures"], "fixtures: is a directory"),
        (["no\x1b[31mwhere.pt"], "no\\x1b[31mwhere.pt: file not found"),
        (
            [DIV, "--reader", "tensorflow"],
            "expected reference, reference@HORIZON, torch-X.Y.Z, python:PATH, wheel:FILE or nightly:DATE, found 'tensorflow'",
        ),
        ([DIV, "--reader", "reference@soon"], "expected a release (1.5.1) or a date (2020-06-24), found 'soon'"),
        ([DIV, "--reader", "torch-9.9.9"], "9.9.9"),
        ([DIV, "--reader", "torch-2.13.0", "--explain"], "--explain works only with the reference reader"),
        ([DIV, "--reader", "reference@9.9.9"], "the release calendar has no torch release '9.9.9'\n  did you mean 2."),
        ([DIV, "--reader", "reference@1.5.7"], "did you mean 1.5.1 or 1.5.0?"),
        ([DIV, "--reader", "reference@1.99"], "the release calendar has no torch release '1.99'"),
        ([DIV, "--method", "forwrad"], "the program has no method 'forwrad'\n  did you mean forward?"),
        ([DIV, "--method", "x"], "its methods: forward"),
        ([DIV, "--method", ""], "--method is empty"),
        (
            [DIV, "--args", "nowhere.json"],
            "--args 'nowhere.json' is neither a JSON list, which begins with a bracket, nor an existing file",
        ),
        ([DIV, "--args", "1, 2"], "--args '1, 2' is neither a JSON list"),
        ([DIV, "--args", "1, 2"], "write a JSON list of the positional arguments, such as [1, 2.5]"),
        ([DIV, "--args", REPOSITORY], "cannot be read: Is a directory"),
        ([DIV, "--timeout", "0"], "--timeout"),
    ],
)
def test_wrong_usage(run: Any, arguments: list[Any], said: str) -> None:
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert said in err
    assert "\x1b" not in err


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("README.md", "README.md: is a text file, expected a TorchScript, mobile or exported program\n  if this was meant"),
        ("fixtures/torch-2.13.0/state_dict.pt", "is an archive of the family torch-save, which contains no program"),
        ("fixtures/torch-1.5.1/state_dict.pt", "`torch-compat inspect fixtures/torch-1.5.1/state_dict.pt` describes it"),
        ("fixtures/torch-1.5.1/state_dict.pt", "torch_compat.load_state returns its tensors"),
        ("fixtures/torch-2.13.0/package.pt", "is an archive of the family package, which contains no program"),
        (os.devnull, "is a pipe or a device, not a regular file"),
    ],
)
def test_a_file_without_a_program_is_an_invalid_input_file(run: Any, file: str, said: str) -> None:
    for reader in ("reference", "reference@1.5.1"):
        status, out, err = run(file, "--reader", reader, "--format", "json")
        assert (status, out) == (2, "")
        assert said in err


# -------------------------------------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ":1:1: is not valid JSON: Expecting value"),
        ("[1,\n 2", ":2:3: is not valid JSON: Expecting ',' delimiter"),
        ("[NaN]", 'is not valid JSON: NaN is not a JSON number; write {"float": "nan"}'),
        ("[-Infinity]", 'write {"float": "-inf"}'),
        ("[" * 100_000, "is nested too deeply"),
        ("[" * 300 + "]" * 300, "is nested deeper than 200"),
        ('{"x": 1}', 'contains an object with the keys "x", expected a list'),
        ("7", "contains 7, expected a list"),
        ("[9223372036854775808]", ", [0]: expected a 64-bit integer, found 9223372036854775808"),
        ("[" + "1" * 5000 + "]", "is not valid JSON: Exceeds the limit"),
        ("[1e999]", ", [0]: expected a number that fits in 64 bits"),
        ("[{}]", ", [0]: expected an object with one key, one of float, complex"),
        ('[{"float": 1, "tuple": []}]', "with one key"),
        ('[{"object": {"type": "x", "state": 1}}]', "with one key"),
        ('[{"__class__": 1}]', "with one key"),
        ('[{"value": 1}]', "with one key"),
        ('[{"float": "much\\u001b"}]', '[0].float: expected a number, or "nan", "inf", "-inf", found "much\\u001b"'),
        ('[{"float": true}]', "[0].float: expected a number"),
        ('[{"complex": [1]}]', "[0].complex: expected [real, imaginary], found [1]"),
        ('[{"tuple": 1}]', "[0].tuple: expected a list"),
        ('[[1, {"dict": [[1]]}]]', "[0][1].dict: expected a list of [key, value]"),
        ('[{"dict": [[[], 1]]}]', "[0].dict[0][0]: expected a key that a program can use"),
        ('[{"device": "toaster"}]', "[0].device: expected a device, such as cpu"),
        ('[{"dtype": "float33"}]', "[0].dtype: expected a dtype: uint8"),
        ('[{"tensor": 7}]', '[0].tensor: expected an object with "dtype", "shape" and "data", found 7'),
        ('[{"tensor": {"dtype": "int8", "shape": [1]}}]', '"shape" and "data"'),
        ('[{"tensor": {"dtype": "int8", "shape": [1], "data": [1], "x": 1}}]', "[0].tensor: expected no keys but"),
        ('[{"tensor": {"dtype": "qint8", "shape": [1], "data": [1]}}]', "[0].tensor.dtype: expected a dtype whose elements"),
        ('[{"tensor": {"dtype": 7, "shape": [1], "data": [1]}}]', "[0].tensor.dtype: expected a dtype"),
        (
            '[{"tensor": {"dtype": "int8", "shape": [-1], "data": []}}]',
            "[0].tensor.shape: expected a list of non-negative integers",
        ),
        ('[{"tensor": {"dtype": "int8", "shape": [2, 2], "data": [1]}}]', "a flat list of 4 elements for the shape [2, 2]"),
        (
            '[{"tensor": {"dtype": "int8", "shape": [1], "data": [1.5]}}]',
            ".data[0]: expected an integer in the range of int8, found 1.5",
        ),
        ('[{"tensor": {"dtype": "int8", "shape": [1], "data": [128]}}]', "an integer in the range of int8, found 128"),
        ('[{"tensor": {"dtype": "bool", "shape": [1], "data": [1]}}]', ".data[0]: expected true or false, found 1"),
        ('[{"tensor": {"dtype": "float32", "shape": [1], "data": [null]}}]', ".data[0]: expected a number"),
        ('[{"tensor": {"dtype": "complex64", "shape": [1], "data": [1]}}]', ".data[0]: expected [real, imaginary]"),
        ('[{"tensor": {"dtype": "int8", "shape": [1], "bytes": "*"}}]', ".bytes: expected base64 text"),
        ('[{"tensor": {"dtype": "int8", "shape": [1], "bytes": ""}}]', '.bytes: expected 1 bytes for int8 [1], found "0 bytes"'),
        ('[{"tensor": {"dtype": "int8", "shape": [1], "data": [1], "strides": []}}]', ".strides: expected 1 strides"),
        (
            '[{"tensor": {"dtype": "int8", "shape": [1], "data": [1], "offset": 999999999999}}]',
            "a storage of 1000000000000 elements",
        ),
    ],
)
def test_arguments_that_are_none_say_what_is_wrong_where(tmp_path: Path, text: str, said: str) -> None:
    path = given(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        read_arguments(path)
    assert said in str(caught.value)
    assert str(path) in (caught.value.where or "")
    assert caught.value.exit_status == 2
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("text", ["[]", "[1, 2]", "[1, 2, 3]"])
@pytest.mark.parametrize("file", ["torch-2.13.0/div.pt", "torch-2.13.0/export_alias_of_input.pt2"])
def test_a_call_with_wrong_arguments_is_told_how_to_write_them(run: Any, file: str, text: str) -> None:
    path = REPOSITORY / "fixtures" / file
    status, out, _ = run(path, "--args", text)
    assert status == 1
    assert "note: for --args, write a JSON list of the positional arguments, such as [1, 2.5]" in out
    assert f"note: `torch-compat inspect {path} --code` prints the program" in out
    assert not [note for note in json.loads(run(path, "--args", text, "--format", "json")[1])["notes"] if "--args" in note]


def test_an_error_of_the_program_has_no_advice_about_arguments(run: Any, tmp_path: Path) -> None:
    path = model(tmp_path, FORWARD.format("int"), '  ops.prim.RaiseException("no")', "  return x")
    assert "--args" not in run(path, "--args", "[1]")[1]


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "args.json"
    path.write_bytes(b'["\xff"]')
    with pytest.raises(UsageError, match="is not valid UTF-8 at byte 2"):
        read_arguments(path)


def test_arguments_are_those_of_the_contract(tmp_path: Path) -> None:
    values = [None, True, 7, "text", [1], {"float": "nan"}, {"complex": [1, "inf"]}, {"tuple": [1]}, {"dict": [["k", 1]]},
              {"device": "cuda:1"}, {"dtype": "float32"}]  # fmt: skip
    assert read_arguments(given(tmp_path, values)) == values
    assert read_arguments(given(tmp_path, {"tuple": [1]})) == [1]
    assert read_arguments(given(tmp_path, "[1.5, -0.0]")) == [{"float": 1.5}, {"float": -0.0}]
    assert read_arguments(given(tmp_path, [{"dtype": "torch.long"}])) == [{"dtype": "int64"}]


@pytest.mark.parametrize(
    ("dtype", "data"),
    [
        ("bool", [True, False]),
        ("uint8", [0, 255]),
        ("int64", [-(2**63), 2**63 - 1]),
        ("uint64", [2**64 - 1, 0]),
        ("float16", [1.5, "inf"]),
        ("bfloat16", [1.5, "-inf"]),
        ("float8_e5m2", [1.5, "nan"]),
        ("float32", [0.10000000149011612, "nan"]),
        ("float64", [0.1, 5e-324]),
        ("complex64", [[1.5, "inf"], [0.0, -2.0]]),
        ("complex128", [[0.1, "nan"], [1.0, 2.0]]),
    ],
)
def test_a_tensor_comes_back_as_it_went_in(tmp_path: Path, dtype: str, data: list[Any]) -> None:
    tensor = {"tensor": {"dtype": dtype, "shape": [2, 1], "data": data}}
    assert shown_value(read_arguments(given(tmp_path, [tensor]))) == [tensor]


def test_empty_and_zero_dimensional_tensors(tmp_path: Path) -> None:
    tensors = [{"tensor": {"dtype": "float32", "shape": shape, "data": data}} for shape, data in (([0, 3], []), ([], [2.5]))]
    read = read_arguments(given(tmp_path, tensors))
    assert [argument["tensor"]["strides"] for argument in read] == [[3, 1], []]
    assert shown_value(read) == tensors


def test_goldens_are_arguments_too(tmp_path: Path) -> None:
    golden = {
        "tensor": {
            "dtype": "int8",
            "shape": [2],
            "strides": [2],
            "bytes": "AQI=",
            "storage": 0,
            "offset": 1,
            "requires_grad": True,
        }
    }
    assert read_arguments(given(tmp_path, [golden])) == [golden]


def test_text_of_values() -> None:
    shown = [{"dict": [["a\x1b", {"tuple": [1, {"float": "nan"}]}]]}, {"object": {"type": "Point", "state": [None]}}, []]
    assert value_text(shown).splitlines() == [
        "list of 3", "  dict of 1", '    "a\\u001b": tuple of 2', "      1", '      float "nan"', "  Point: list of 1", "    null", "  list of 0",
    ]  # fmt: skip
    assert plain("a\nb\x7f\u202e") == "a\\nb\\x7f\\u202e"


def test_it_needs_no_torch(run: Any, tmp_path: Path) -> None:
    assert run(DIV, "--args", given(tmp_path, PAIR))[0] == 0
    assert "torch" not in sys.modules


def test_arguments_as_json_and_from_standard_input(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = model(tmp_path, "def twice(self: __torch__.m.Model, x: int) -> int:", "  return torch.mul(x, 2)")
    expected = run(path, "--method", "twice", "--args", given(tmp_path, [21]))
    assert expected[:2] == (0, "loaded  (reference, twice)\n42\n")
    assert run(path, "--method", "twice", "--args", " [21]") == expected
    assert run(path, "--method", "twice", "--args", '{"tuple": [21]}') == expected
    for data, status in ((b"[21]", 0), (b"", 2), (b"[21", 2), (b"\xff", 2)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        result = run(path, "--method", "twice", "--args", "-")
        assert result[0] == status
        assert result == expected if not status else "standard input" in result[2]
    assert "--args:1:4: is not valid JSON" in run(path, "--args", "[21")[2]
    assert run(path, "--args", "no\0where")[0] == 2
