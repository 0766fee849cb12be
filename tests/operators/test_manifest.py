from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

import torch_compat.extension
from tests.cli.test_schemas import schema
from torch_compat.errors import UsageError
from torch_compat.operators.manifest import ExtensionManifest, ExtensionOperator, Kernel, ManifestError, read_manifest

if TYPE_CHECKING:
    from pathlib import Path

MUL = "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor"


def sample() -> ExtensionManifest:
    return ExtensionManifest(
        "mine",
        "2.4.1",
        [
            ExtensionOperator("mine::f", "defines", "mine::f(Tensor x) -> Tensor"),
            ExtensionOperator("aten::linear", "calls", "aten::linear(Tensor x) -> Tensor", relies_on_decomposition=True),
            ExtensionOperator("aten::mul.Tensor", "registers", MUL, (Kernel("PrivateUse1", "c++", "(Tensor _0, Tensor _1) -> Tensor _0"), Kernel("CPU"))),
        ],
        backend="PrivateUse1",
        needs=("torch.library.Library",),
    )  # fmt: skip


def written(tmp_path: Path, document: dict[str, Any]) -> Path:
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(document, indent=2), encoding="utf-8")
    return path


def problems(path: Path) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        read_manifest(path)
    assert (caught.value.exit_status, caught.value.code) == (2, "manifest")
    return [str(problem).removeprefix(f"{path.as_posix()}:") for problem in caught.value.problems]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text(sample().text(), encoding="utf-8")
    again = read_manifest(path)
    assert again.document() == sample().document()
    assert again.text() == sample().text()
    assert [entry.operator for entry in again.operators] == ["aten::linear", "aten::mul.Tensor", "mine::f"]
    assert again.has_kernel("aten::mul.Tensor")
    assert not again.has_kernel("aten::linear")


def test_it_is_as_published() -> None:
    document = json.loads(sample().text())
    jsonschema.Draft202012Validator(schema("extension-manifest")).validate(document)
    assert document["schema_version"] == torch_compat.extension.SCHEMA_VERSION == 1


def test_an_operator_is_a_line() -> None:
    assert sum('"operator":' in line for line in sample().text().splitlines()) == 3


def test_one_of_a_newer_version_is_refused_and_nothing_else_is_said(tmp_path: Path) -> None:
    path = written(tmp_path, {"schema_version": 2, "operators": "of another form"})
    (problem,) = problems(path)
    assert problem == (
        "2: schema_version: 2 was written by a newer torch-compat; 1 is the newest version that this torch-compat reads: update torch-compat"
    )


def test_every_mistake_at_once_with_line_and_path(tmp_path: Path) -> None:
    document = sample().document()
    document["extra"] = 1
    document["backend"] = 5
    document["fallback"] = "no"
    document["needs"] = ["torch"]
    document["operators"][0]["use"] = "uses"
    document["operators"][1]["kernels"][0]["language"] = "rust"
    document["operators"][1]["schema"] = "aten::mul.Tensor(Tensor self Tensor other) -> Tensor"
    document["operators"][2]["schema"] = "mine::g(Tensor x) -> Tensor"
    document["operators"].append(7)
    del document["torch"]
    path = written(tmp_path, document)
    text = path.read_text(encoding="utf-8").splitlines()
    result = problems(path)
    expected = {
        "": "lacks 'torch'",
        "extra": "is unknown",
        "backend": "expected a string or null, found 5",
        "fallback": 'expected true or false, found "no"',
        "needs": "expected a list of names",
        "operators[0].use": "expected registers, defines or calls, found",
        "operators[1].kernels[0].language": 'expected "c++", "python" or null, found "rust"',
        "operators[1].schema": "column 30",
        "operators[2].schema": "is a schema of 'mine::g', expected a schema of 'mine::f'",
        "operators[3]": "expected an object, found 7",
    }
    assert len(result) == len(expected)
    for problem in result:
        line, _, rest = problem.partition(": ")
        place, message = ("", rest) if rest.startswith("lacks") else rest.split(": ", 1)
        assert expected[place] in message
        if place:
            assert place.rpartition(".")[2].partition("[")[0].strip("]") in text[int(line) - 1] or place == "operators[3]"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema_version": "1"}, 'schema_version: expected 1, found "1"'),
        ({"schema_version": True}, "schema_version: expected 1, found true"),
        ({"extension": ""}, 'extension: expected a string, found ""'),
        ({"operators": {}}, "operators: expected a list, found {}"),
        ({"backend": None}, "operators[0].relies_on_decomposition: is true, but the manifest does not name a backend"),
    ],
)
def test_single_mistakes(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    (problem,) = problems(written(tmp_path, {**sample().document(), **change}))
    assert problem.partition(": ")[2] == said


def test_operators_that_stand_twice(tmp_path: Path) -> None:
    document = sample().document()
    document["operators"].append(document["operators"][0])
    (problem,) = problems(written(tmp_path, document))
    assert problem.endswith("operators[3]: aten::linear is listed twice as an operator that the extension calls")


def test_a_kernel_that_is_missing_and_a_name_without_namespace(tmp_path: Path) -> None:
    document = sample().document()
    document["operators"][1]["kernels"] = []
    document["operators"][2] |= {"operator": "f", "schema": "f(Tensor x) -> Tensor"}
    result = problems(written(tmp_path, document))
    assert any("is empty, but the extension registers a kernel for this operator" in problem for problem in result)
    assert any("'f' has no namespace, expected a name such as 'aten::f'" in problem for problem in result)


@pytest.mark.parametrize(
    ("text", "said"), [("{", "1: is not JSON"), ("[]", "1: expected an object, found []"), ('{\n"a" 1}', "2: is not JSON")]
)
def test_files_that_are_no_manifest(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "m.json"
    path.write_text(text, encoding="utf-8")
    assert problems(path)[0].startswith(said)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="file not found"):
        read_manifest(tmp_path / "none.json")
    (tmp_path / "latin.json").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="cannot be read"):
        read_manifest(tmp_path / "latin.json")


def test_lines_are_found_in_nested_json(tmp_path: Path) -> None:
    text = '{"a": {}, "b": [],\n "operators": [ {"x": "}\\"{", "kernels": [1,\n 2]},\n\n true]}'
    path = tmp_path / "m.json"
    path.write_text(text, encoding="utf-8")
    lines = {problem.split(": ")[1]: problem.partition(":")[0] for problem in problems(path)}
    assert lines["a"] == lines["b"] == "1"
    assert lines["operators[0].x"] == lines["operators[0].kernels[0]"] == "2"
    assert lines["operators[0].kernels[1]"] == "3"
    assert lines["operators[1]"] == "5"
