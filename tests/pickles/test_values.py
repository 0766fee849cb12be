"""The result of a pickle can be traversed: each object once, without recursion, at any depth."""

from __future__ import annotations

import pickle
from typing import Any

from tests.pickles.test_machine import V2, call
from torch_compat.pickles import Global, tensors, unpickle, walk
from torch_compat.pickles.values import depth


def test_each_object_comes_once_with_the_path_to_it() -> None:
    shared: list[Any] = [1]
    value: dict[str, Any] = {"a": shared, "b": [shared, (2,)]}
    value["c"] = value
    assert [(path, part) for path, part in walk(value) if not isinstance(part, dict)] == [
        (("a",), [1]), (("a", 0), 1), (("b",), [[1], (2,)]), (("b", 1), (2,)), (("b", 1, 0), 2),
    ]  # fmt: skip


def test_parts_of_descriptions_and_keys_that_are_values_are_walked() -> None:
    result = unpickle(b"cm\nC\n)\x81}(X\1\0\0\0a]ub.", where="file").value
    assert [path for path, _ in walk(result)] == [(), ("target",), ("args",), ("state",), ("state", "a")]
    assert [path for path, _ in walk({(1, "x"): None})] == [(), ("key",), ("key", 0), ("key", 1), ((1, "x"),)]


def test_tensors_are_found_with_their_paths_and_not_within_tensors() -> None:
    tensor = call("torch._utils._rebuild_tensor_v2", V2)[2:-1]
    result = unpickle(b"\x80\x02}(X\1\0\0\0a" + tensor + b"q\0X\1\0\0\0b]h\0aX\1\0\0\0c(" + tensor + b"lu.", where="file").value
    assert [path for path, _ in tensors(result)] == [("a",), ("c", 0)]
    layout = b"ctorch.serialization\n_get_layout\n(X\x10\0\0\0torch.sparse_cootR"
    sparse = unpickle(
        call("torch._utils._rebuild_sparse_tensor", layout + b"(" + tensor + tensor + b"K\x05\x85t"), where="file"
    ).value
    assert [outcome.layout for _, outcome in tensors(sparse)] == ["sparse_coo"]


def test_depth_counts_as_a_reader_meets_it() -> None:
    values: list[Any] = [1, [], [[]], [[], [[]]], {"a": (1, [2])}]
    assert [depth(value, 10) for value in values] == [0, 1, 2, 3, 3]
    nested: Any = []
    for _ in range(100):
        nested = [nested]
    assert depth(nested, 10) == 11
    nested.append(nested)
    assert depth(nested, 1000) == 101


def test_globals_are_equal_by_name() -> None:
    assert Global("a", "b") == Global("a", "b") != Global("a", "c")
    assert len({Global("a", "b"), Global("a", "b")}) == 1
    assert Global("a", "b") != "a.b"


def test_tensors_within_deep_values_are_found_without_recursion() -> None:
    value: Any = pickle.loads(b"]" * 1900 + b"a" * 1899 + b".")
    assert sum(1 for _ in walk(value)) == 1900
