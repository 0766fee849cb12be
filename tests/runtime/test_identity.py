"""Results of ``is``: each mention of an enumeration member, and each one in the state, is a separate object; numbers are compared.

Programs were written by 1.10.2 and 2.13.0 and read by 1.7.1, 1.8.1, 1.9.1, 1.12.1 and 2.15.0, which agree.
"""

from __future__ import annotations

import io
import math
import zipfile
from typing import Any

import pytest

from tests.runtime.archives import archive, run
from torch_compat.errors import Unsupported
from torch_compat.runtime.load import load
from torch_compat.runtime.module import Module

READERS = ("1.7.1", "1.8.1", "1.12.1", "2.15.0")
HEAD = """class Model(Module):
  __parameters__ = []
  training : bool
  one : __torch__.m.Light
  other : __torch__.m.Light
"""
LIGHT = """class Light(Enum):
  RED = "stop"
  GREEN = "go"
"""
RED, GREEN = "__torch__.m.Light.RED", "__torch__.m.Light.GREEN"


def module(methods: str, horizon: str) -> Module:
    """A module with two attributes that hold one member, each in a pickle of its own."""
    source = HEAD + "".join(f"  {line}\n" for line in methods.strip("\n").split("\n")) + LIGHT
    members = b"".join(b"X%c\0\0\0%sc__torch__.m\nLight\nX\x04\0\0\0stop\x85R" % (len(name), name) for name in (b"one", b"other"))
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive({"__torch__/m.py": source}))) as old, zipfile.ZipFile(stream, "w") as product:
        for info in old.infolist():
            record = old.read(info)
            product.writestr(info.filename, record.replace(b"ub.", members + b"ub.") if info.filename == "m/data.pkl" else record)
    result = load(stream.getvalue(), f"reference@{horizon}")
    assert isinstance(result, Module)
    return result


@pytest.mark.parametrize("horizon", READERS)
def test_members_in_the_state_are_objects_of_their_own(horizon: str) -> None:
    result = module(
        f"""
def forward(self: __torch__.m.Model) -> List[bool]:
  one = self.one
  other = self.other
  one0 = self.one
  return [torch.__is__(one, one0), torch.__is__(one, other), torch.__is__(one, {RED}), torch.eq(one, other)]
def store(self: __torch__.m.Model) -> List[bool]:
  one = self.one
  other = self.other
  before = torch.__is__(one, other)
  self.other = one
  other0 = self.other
  after = torch.__is__(one, other0)
  self.one = {RED}
  one1 = self.one
  return [before, after, torch.__is__(one1, other0)]
""",
        horizon,
    )
    assert result.run("forward") == [True, False, False, True]
    assert [result.run("store"), result.run("store")] == [
        [False, True, False],
        [False, True, True],
    ]  # then the mention of the run before


@pytest.mark.parametrize("horizon", READERS)
def test_each_variable_that_is_set_to_a_member_is_a_mention(horizon: str) -> None:
    result = module(
        f"""
def forward(self: __torch__.m.Model) -> List[bool]:
  _0 = {GREEN}
  _1 = {GREEN}
  _2 = [_0, _1, _0]
  return [torch.__is__(_0, _1), torch.__is__(_0, _0), torch.__isnot__(_0, _1), torch.__is__(_2[0], _2[2]), torch.eq(_0, _1)]
""",
        horizon,
    )
    assert result.run("forward") == [False, True, True, True, True]


def compared(types: str, *args: Any, body: str = "[torch.__is__(a, b), torch.__isnot__(a, b), torch.__is__(a, a)]") -> Any:
    first, second = types.split(", ")
    return run(
        f"\ndef forward(self: __torch__.m.Model,\n    a: {first},\n    b: {second}) -> List[bool]:\n  return {body}\n", *args
    )


@pytest.mark.parametrize(
    ("types", "args", "found"),
    [
        ("int, int", (10**18, 10**18), [True, False, True]),
        ("int, int", (10**18, 10**18 + 1), [False, True, True]),
        ("float, float", (0.5, 0.5), [True, False, True]),
        ("float, float", (0.0, -0.0), [True, False, True]),
        ("float, float", (math.nan, math.nan), [False, True, False]),
        ("bool, bool", (True, False), [False, True, True]),
        ("str, str", ("xyz", str(b"xyz", "ascii")), [False, True, True]),
        ("str, str", ("xyz", "x"), [False, True, True]),
        ("List[int], List[int]", ([1], [1]), [False, True, True]),
    ],
)
def test_numbers_are_compared_and_other_values_are_one_object_or_not(
    types: str, args: tuple[Any, ...], found: list[bool]
) -> None:
    assert compared(types, *args) == found


def test_texts_that_python_keeps_once_are_not_told_apart() -> None:
    """Of two equal texts torch says False."""
    with pytest.raises(Unsupported, match="two equal values are the same text"):
        compared("str, str", "x", "x")


def test_equal_tuples_are_not_told_apart() -> None:
    """Of two tuples of the same items an executor makes one."""
    with pytest.raises(Unsupported, match="two equal values are the same tuple"):
        compared("int, int", 1, 2, body="[torch.__is__((a, 1), (a, 1))]")


def test_nothing_is_itself() -> None:
    assert compared("Optional[int], Optional[int]", None, 1, body="[torch.__is__(a, None), torch.__isnot__(b, None), torch.__is__(a, b)]") == [
        True, True, False,
    ]  # fmt: skip
