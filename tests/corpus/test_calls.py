from __future__ import annotations

from pathlib import Path

import pytest

from torch_compat.corpus.calls import CALLS, RecordedCall, recorded_calls, write_calls
from torch_compat.corpus.json_lines import write_lines
from torch_compat.errors import CorpusError

SUB = RecordedCall("aten::sub.Tensor", 1, (("int", 1), ("None", None)), {"alpha": ("int", 2)})
DIV = RecordedCall("aten::div.Tensor", 2, (("float", {"float": "nan"}),), {}, 3)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    write_calls(tmp_path, [SUB, DIV])
    assert recorded_calls(tmp_path) == [DIV, SUB]
    assert [(item.key, item.operator) for item in (SUB, DIV)] == [
        ("aten::sub.Tensor 1", "aten::sub"),
        ("aten::div.Tensor@3 2", "aten::div"),
    ]


def test_a_corpus_may_have_none(tmp_path: Path) -> None:
    assert recorded_calls(tmp_path) == []


def test_a_line_that_is_no_call_is_named(tmp_path: Path) -> None:
    write_lines(tmp_path / CALLS, {"kind": "calls"}, [{"kind": "call", "name": "aten::sub"}])
    with pytest.raises(CorpusError, match="is not an operator call") as caught:
        recorded_calls(tmp_path)
    assert "calls.jsonl:2" in str(caught.value.where)


def test_keys_are_unique_and_the_order_is_that_of_the_file() -> None:
    result = recorded_calls(Path(__file__).parents[2] / "fixtures")
    assert len({call.key for call in result}) == len(result)
    assert [(call.name, call.file_format, call.number) for call in result] == sorted(
        (call.name, call.file_format, call.number) for call in result
    )
