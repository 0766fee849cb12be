"""The reference reader at old horizons: disagreements with releases are counted by group and shown; and a subset of the real comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from tools.differential.comparison import UNWRITTEN
from tools.differential.horizons import COLUMNS, HORIZONS, Compared, asked, compare_at, document, schemas_at
from torch_compat.runtime.registry import known

if TYPE_CHECKING:
    from tools.differential.calls import Release

SLICE = r"^aten::(add|sub|mul|div|remainder|fmod|pow|eq|clamp|sum|cat|floor|where)_?$"


class Refusing:
    """A release that refuses every call with these words."""

    version = "1.5.1"

    def __init__(self, reply: dict[str, Any]) -> None:
        self.reply = reply

    def ask(self, _request: dict[str, Any]) -> dict[str, Any]:
        return dict(self.reply)


def column_of(reply: dict[str, Any], only: str = "^aten::relu$") -> Compared:
    schemas = schemas_at("1.5.1", only)
    return Compared("1.5.1", len(schemas), *asked(cast("Release", Refusing(reply)), schemas, 12, 0))


def test_a_call_that_only_the_release_refuses_is_counted_and_shown() -> None:
    compared = column_of({"error": "RuntimeError: planted"})
    groups = compared.apart("torch refuses only")
    assert groups
    assert "planted" in document([compared], 12, 0)
    assert compared.total["torch refuses only"] > compared.total["equally refused"]


def test_another_value_is_counted_and_shown() -> None:
    compared = column_of({"value": 1, "inputs": []})
    assert compared.total["values differ"] > 0
    assert len({group.dtype for group in compared.apart("values differ")}) > 1
    assert "- values differ: `aten::relu` (" in document([compared], 12, 0)


def test_a_release_without_tensors_of_a_dtype_is_in_no_column() -> None:
    result = column_of({"no_input": "bfloat16"})
    assert not any(result.total[name] for name in COLUMNS)
    product = result.total.total()
    assert product
    text = document([result], 12, 0)
    assert f"| {product:,} | 0 | 0 | 0 | 0 | 0 | 0 | {product:,} |" in text
    assert f"| no such tensor | {product:,} |" in text


def test_what_the_release_does_not_hand_out_is_counted_by_its_reason() -> None:
    result = column_of({"value": {"other": "torch.float32"}, "inputs": []})
    assert result.total["values differ"] == 0
    assert "| a result of a type that the tool cannot compare | " in document([result], 12, 0)


class Unwritten(Refusing):
    """A release whose answer is what its new memory is filled with."""

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"value": request["fill"], "inputs": []}


def test_an_answer_from_memory_that_nothing_wrote_is_no_value() -> None:
    """Where the reader says that a call is not modelled; where it gives a value, that differs."""
    schemas = schemas_at("1.5.1", "^aten::(relu|can_cast)$")
    compared = Compared("1.5.1", len(schemas), *asked(cast("Release", Unwritten({})), schemas, 12, 0))
    assert {group.operator for group in compared.apart(UNWRITTEN)} == {"aten::can_cast"}
    assert {group.operator for group in compared.apart("values differ")} == {"aten::can_cast", "aten::relu"}
    assert not compared.apart("not modelled")
    assert f"| {UNWRITTEN} | {compared.total[UNWRITTEN]:,} |" in document([compared], 12, 0)


def test_a_library_that_does_not_fill_memory_ends_the_comparison() -> None:
    with pytest.raises(RuntimeError, match=r"torch-1\.5\.1: planted"):
        column_of({"unfilled": "planted"})


def test_an_operator_without_calls_is_named() -> None:
    assert any("Generator" in reason or "random" in reason for reason in column_of({"value": 1}, "^aten::bernoulli$").left)


@pytest.mark.parametrize("release", HORIZONS)
def test_schemas_are_those_of_the_release(release: str) -> None:
    result = schemas_at(release)
    assert {schema["name"] for schema in result} <= set(known())
    assert len(result) > 1000


def test_types_of_old_schemas_are_read() -> None:
    (row,) = [schema for schema in schemas_at("1.2.0", "^aten::keys$") if "str" in schema["text"]]
    assert [argument["real"] for argument in row["arguments"]] == ["Dict[str, t]"]
    assert row["returns"] == ["List[str]"]
    (row,) = [
        schema
        for schema in schemas_at("1.2.0", "^aten::zeros$")
        if " out)" not in schema["text"] and "names" not in schema["text"]
    ]
    assert [argument["real"] for argument in row["arguments"]][:2] == ["List[int]", "Optional[ScalarType]"]


@pytest.fixture(params=[pytest.param(item, marks=pytest.mark.real_torch(item)) for item in HORIZONS])
def horizon(request: pytest.FixtureRequest) -> str:
    result: str = request.param
    return result


def test_no_value_differs(horizon: str) -> None:
    compared = compare_at(horizon, SLICE, 4, 20200624)
    assert [group.examples for group in compared.apart("values differ")] == []
    assert compared.total["equal"] > 100
