"""Programs in separate processes: the same results as in this process, and no effects outside of it."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import torch_compat
from tests.fence.test_findings import flatbuffer
from tests.inside.test_worker import gone
from tests.runtime.archives import HEAD, archive
from tools.fence.programs import generated
from torch_compat.errors import Corrupt, HarnessError, Raised, ReaderError, UsageError
from torch_compat.readers import child_processes
from torch_compat.readers.child_processes import SPARE, Workshop
from torch_compat.readers.isolated import IsolatedModule, load_isolated
from torch_compat.readers.reference import THREADS, Reference
from torch_compat.readers.wire import HEAD as LENGTHS
from torch_compat.readers.wire import MOST_DOCUMENT, Arena
from torch_compat.runtime.encoding import Decoder
from torch_compat.runtime.exported.program import ExportedModule
from torch_compat.runtime.limits import LIMITS, Exhausted
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import NamedTupleValue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.runtime.limits import Limits
    from torch_compat.runtime.module import Module

REPOSITORY = Path(__file__).parents[2]
DIV = REPOSITORY / "fixtures" / "torch-1.5.1" / "div.pt"
PROGRAMS = REPOSITORY / "tests" / "runtime" / "programs"
ROWS: list[dict[str, Any]] = [json.loads(line) for line in (PROGRAMS / "manifest.jsonl").read_text(encoding="utf-8").splitlines()]
pytestmark = pytest.mark.skipif(child_processes.supported() is not None, reason="processes of their own need Linux")


def write(folder: Path, source: str, attributes: dict[str, Any] | None = None) -> Path:
    """An archive of one file of source, or of methods alone."""
    path = folder / "model.pt"
    if not source.startswith("class "):
        source = HEAD + "".join(f"  {line}\n" for line in source.strip("\n").split("\n"))
    path.write_bytes(archive({"__torch__/m.py": source}, attributes))
    return path


# --------------------------------------------------------------------------------------------------------------- both ways


def ended(module: Module | IsolatedModule, method: str, args: tuple[Any, ...]) -> Any:
    """What a call ends in: a value, or an error of ours."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            end: Any = getattr(module, method)(*args) if method != "__call__" else module(*args)
        except HarnessError as error:
            end = (type(error), str(error), error.code)
    return end, [(str(item.message), item.category) for item in heard]


def same(item: Any, other: Any) -> bool:
    """Whether two values are equal in class and bits."""
    if isinstance(item, np.ndarray):
        return (
            isinstance(other, np.ndarray)
            and (item.dtype, item.shape) == (other.dtype, other.shape)
            and (item.strides == other.strides or not item.size)
            and item.tobytes() == other.tobytes()
        )
    if isinstance(item, NamedTupleValue):
        return (
            isinstance(other, NamedTupleValue)
            and (item.qualified_name, item.fields) == (other.qualified_name, other.fields)
            and same(tuple(item), tuple(other))
        )
    if item.__class__ is not other.__class__:
        return False
    if isinstance(item, list | tuple):
        return len(item) == len(other) and all(map(same, item, other))
    if isinstance(item, dict):
        return same(list(item.items()), list(other.items()))
    return bool(np.array(item).tobytes() == np.array(other).tobytes()) if isinstance(item, float | complex) else item == other


def both(
    path: Path, *calls: tuple[Any, ...], reader: str = "reference", limits: Limits = LIMITS, method: str = "__call__"
) -> list[Any]:
    """What calls end in, which is the same both ways; and so is what becomes of their arguments, and of the module."""
    here, there = (loaded(path, reader, limits, way) for way in (True, False))
    if isinstance(here, tuple) or isinstance(there, tuple):
        assert here == there
        return [here]
    assert isinstance(there, IsolatedModule)
    assert there.isolation.whole, there.isolation
    assert there.notes == here.notes
    ends = []
    for args in calls:
        mine, yours = copied(args), copied(args)
        expected, result = ended(here, method, mine), ended(there, method, yours)
        assert same(result[0], expected[0]), (result, expected)
        assert result[1] == expected[1]
        assert same(mine, yours)
        assert sharing(expected[0], mine) == sharing(result[0], yours)
        ends.append(result[0])
    assert same(there.state(), here.state())
    there.close()
    return ends


def loaded(path: Path, reader: str, limits: Limits, in_process: bool) -> Module | IsolatedModule | tuple[Any, ...]:
    """The module, or what is to be said of the error."""
    try:
        module = torch_compat.load(path, reader, limits=limits, in_process=in_process)
    except HarnessError as error:
        return type(error), str(error), error.code, error.where, error.hint
    assert not isinstance(module, ExportedModule)
    return module


def copied(value: Any, arrays: dict[int, Any] | None = None) -> Any:
    """A copy, in which an array that is there twice still is one array."""
    arrays = {} if arrays is None else arrays
    if isinstance(value, np.ndarray):
        return arrays.setdefault(id(value), value.copy(order="K"))
    if isinstance(value, list | tuple):
        return type(value)(copied(item, arrays) for item in value)
    if isinstance(value, dict):
        return {key: copied(item, arrays) for key, item in value.items()}
    return value


def arrays_in(value: Any) -> list[Any]:
    if isinstance(value, np.ndarray):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [array for item in items for array in arrays_in(item)]


def sharing(value: Any, args: Any) -> list[tuple[int, int]]:
    """Which arrays of a result, and of the arguments, share memory."""
    results = [*arrays_in(args), *arrays_in(value)]
    return [(i, j) for i in range(len(results)) for j in range(i) if np.shares_memory(results[i], results[j])]


def plain(value: Any) -> Any:
    """A value of the runtime as a caller has it."""
    if isinstance(value, Tensor):
        return value.array
    if isinstance(value, list | tuple):
        return type(value)(map(plain, value))
    return {key: plain(item) for key, item in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize("row", ROWS[::2], ids=[row["file"].removesuffix(".pt") for row in ROWS[::2]])
def test_programs_do_the_same_both_ways(row: dict[str, Any]) -> None:
    for call in row["calls"]:
        args = plain(Decoder().decode({"tuple": call["args"]}))
        both(PROGRAMS / row["file"], args, args, reader=f"reference@{row['writer']}", method=call["method"])


A, B = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(4, dtype=np.int64)
LARGE = np.arange(1 << 15, dtype=np.float64).reshape(128, 256)
SOURCES: dict[str, tuple[str, tuple[Any, ...]]] = {
    "in place": ("def forward(self, x: Tensor) -> None:\n  y = torch.add_(x, 1)\n  return None", (A,)),
    "in place, large": ("def forward(self, x: Tensor) -> None:\n  y = torch.add_(x, 1)\n  return None", (LARGE,)),
    "in place, by columns": ("def forward(self, x: Tensor) -> None:\n  y = torch.add_(x, 1)\n  return None", (np.asfortranarray(A),)),
    "in place, with gaps": ("def forward(self, x: Tensor) -> None:\n  y = torch.add_(x, 1)\n  return None", (LARGE[::2, ::3],)),
    "in place, then raises": (
        'def forward(self, x: Tensor) -> None:\n  y = torch.add_(x, 1)\n  ops.prim.RaiseException("no")\n  return None',
        (A,),
    ),
    "in place, inside of a list": ("def forward(self, x: List[Tensor]) -> None:\n  y = torch.add_(x[1], 1)\n  return None", ([A, A + 1],)),
    "an argument": ("def forward(self, x: Tensor) -> Tensor:\n  return x", (A,)),
    "a view of an argument": ("def forward(self, x: Tensor) -> Tensor:\n  return torch.select(torch.t(x), 0, 1)", (A,)),
    "a view of an argument with gaps": ("def forward(self, x: Tensor) -> Tensor:\n  return torch.t(x)", (LARGE[::2, ::3],)),
    "an argument twice": ("def forward(self, x: Tensor, y: Tensor) -> Tensor:\n  z = torch.add_(x, 1)\n  return y", (A, A)),
    "results share": ("def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:\n  y = torch.mul(x, 2)\n  return (y, torch.t(y))", (A,)),
    "results share a part": (
        "def forward(self, x: Tensor) -> List[Tensor]:\n  y = torch.mul(x, 2)\n  return [torch.select(y, 0, 0), torch.select(y, 0, 1), torch.select(y, 1, 1)]",
        (A,),
    ),
    "a large result": ("def forward(self, x: Tensor) -> Tensor:\n  return torch.cat([x, x, x], 0)", (LARGE,)),
    "no elements": ("def forward(self, x: Tensor) -> Tensor:\n  return torch.slice(x, 0, 2, 2, 1)", (A,)),
    "expanded": ("def forward(self, x: Tensor) -> Tensor:\n  return torch.expand(torch.mul(x, 2), [5, 2, 3])", (A,)),
    "complex, in parts": ("def forward(self, x: Tensor) -> Tensor:\n  return torch.view_as_real(torch.mul(x, 2))", (A.astype(np.complex64),)),
    "real part": ("def forward(self, x: Tensor) -> Tensor:\n  return torch.imag(torch.mul(x, 2))", (A.astype(np.complex64),)),
    "numbers": (
        "def forward(self, x: float, y: int, z: bool) -> Tuple[float, float, int, bool, Optional[int]]:\n  return (torch.neg(x), torch.div(x, -0.5), torch.neg(y), z, None)",
        (float("inf"), -(1 << 63) + 1, True),
    ),
    "not a number": ("def forward(self, x: float) -> List[float]:\n  return [x, torch.neg(x)]", (float("nan"),)),
    "texts": ("def forward(self, x: str) -> Dict[str, str]:\n  return {x: torch.add(x, x)}", ("é\0\U0001f600",)),
    "dictionaries": ("def forward(self, x: Dict[int, Tensor]) -> Dict[int, List[Tensor]]:\n  return {1: [x[7]]}", ({7: A},)),
    "a dtype and a device": ("def forward(self, x: Tensor) -> Tuple[int, Device]:\n  return (ops.prim.dtype(x), ops.prim.device(x))", (A,)),
    "any value": ("def forward(self, x: Any) -> Any:\n  return (x, [x], {1: x})", (A,)),
    "a large integer": ("def forward(self, x: int) -> int:\n  return x", (1 << 70,)),
    "nothing that a program takes": ("def forward(self, x: int) -> int:\n  return x", (object(),)),
    "a text array": ("def forward(self, x: Tensor) -> Tensor:\n  return x", (np.array(["a"]),)),
    "of another byte order": ("def forward(self, x: Tensor) -> Tensor:\n  return x", (A.astype(">f4"),)),
    "too few arguments": ("def forward(self, x: Tensor) -> Tensor:\n  return x", ()),
    "raises": ('def forward(self) -> None:\n  ops.prim.RaiseException("no")\n  return None', ()),
    "an index": ("def forward(self, x: List[int]) -> int:\n  return x[5]", ([1],)),
    "no such operator": ("def forward(self, x: Tensor) -> Tensor:\n  return torch.frobnicate(x)", (A,)),
    "too deep": ("def forward(self) -> Any:\n  x = [1]\n  y = [x]\n" + "".join(f"  y{n} = [y{n - 1 if n else ''}]\n" for n in range(120)) + "  return y119", ()),
}  # fmt: skip


@pytest.mark.parametrize("name", SOURCES)
def test_values_and_errors_are_the_same_both_ways(name: str, tmp_path: Path) -> None:
    source, args = SOURCES[name]
    both(write(tmp_path, source), args, args)


def test_in_place_changes_reach_the_callers_array(tmp_path: Path) -> None:
    path = write(tmp_path, "def forward(self, x: Tensor) -> Tensor:\n  return torch.add_(x, 1)")
    for in_process in (True, False):
        module = torch_compat.load(path, in_process=in_process)
        for array in (A.copy(), LARGE.copy(), LARGE.copy()[::2]):
            before = array.copy()
            assert module(array) is array
            assert (array == before + 1).all()
        kept = A.copy()
        kept.flags.writeable = False
        module(kept)
        assert (kept == A).all()


def test_what_a_view_of_the_caller_is_a_view_of_is_out_of_reach(tmp_path: Path) -> None:
    path = write(tmp_path, "def forward(self, x: Tensor) -> Tensor:\n  return torch.as_strided(x, [6], [1], 0)")
    for in_process in (True, False):
        with pytest.raises(Raised, match="out of bounds for storage of size 8"):
            torch_compat.load(path, in_process=in_process)(A.reshape(-1)[2:4])


STATEFUL = HEAD + """  seen : Tensor
  count : int
  def forward(self, x: Tensor) -> Tensor:
    y = torch.add_(self.seen, x)
    self.count = torch.add(self.count, 1)
    return torch.mul(self.seen, self.count)
  def keep(self, x: Tensor) -> None:
    self.seen = x
    return None
  def begin(self) -> None:
    self.seen = torch.zeros([2])
    return None
"""  # fmt: skip


def test_a_module_keeps_its_state_between_calls(tmp_path: Path) -> None:
    path = write(tmp_path, STATEFUL, {"seen": 0, "count": 0})
    results = []
    for in_process in (True, False):
        module = torch_compat.load(path, in_process=in_process)
        module.begin()
        messages = [module(np.ones(2, np.float32)).copy() for _ in range(3)]
        mine = np.full(2, 5, np.float32)
        module.keep(mine)
        mine[:] = 0  # the program has a copy
        messages.append(module(np.ones(2, np.float32)).copy())
        results.append(messages)
    assert same(*results)
    assert results[0][3].tolist() == [24, 24]


def test_repeated_calls_share_nothing(tmp_path: Path) -> None:
    source = (
        HEAD
        + "  def forward(self, x: Tensor) -> Tuple[List[int], Dict[str, List[Tensor]]]:\n    return ([1, 2], {'a': [torch.add(x, 1)]})\n"
    )
    module = torch_compat.load(write(tmp_path, source))
    first = module(A)
    first[0].append(3)
    first[1]["a"][0][...] = 0
    first[1]["b"] = []
    second = module(A)
    assert second[0] == [1, 2]
    assert list(second[1]) == ["a"]
    assert second[1]["a"][0].tolist() == (A + 1).tolist()


MODES = (
    HEAD
    + """  kept : Tensor
  def forward(self, x: Tensor, y: Tensor, mode: Tensor):
    m = int(mode)
    if torch.eq(m, 0):
      return torch.add(x, y)
    if torch.eq(m, 1):
      return x
    if torch.eq(m, 2):
      z = torch.add_(x, 1)
      return torch.add(x, y)
    if torch.eq(m, 3):
      z = torch.add_(y, 1)
      return y
    if torch.eq(m, 4):
      return torch.select(x, 0, 0)
    if torch.eq(m, 5):
      return torch.t(torch.add(x, 2))
    if torch.eq(m, 6):
      return (torch.add(x, 1), x)
    if torch.eq(m, 7):
      return self.kept
    if torch.eq(m, 8):
      self.kept = torch.add(x, 1)
      return self.kept
    if torch.eq(m, 9):
      ops.prim.RaiseException("as asked")
    if torch.eq(m, 10):
      return torch.empty([0, 2])
    if torch.eq(m, 11):
      return torch.sum(x)
    if torch.eq(m, 12):
      return torch.add_(self.kept, 1)
    if torch.eq(m, 13):
      torch.warn("as asked", 2)
      return torch.add(x, 1)
    if torch.eq(m, 14):
      return torch.select(torch.add(x, 1), 0, 1)
    return m
"""
)


@given(st.data())
@settings(max_examples=12, phases=(Phase.explicit, Phase.reuse, Phase.generate))  # shrinking starts thousands of processes
def test_calls_of_every_layout_in_any_order_are_the_same_both_ways(data: st.DataObject) -> None:
    """Both sides remember the texts of requests and answers: no call may see those of another one."""
    layouts = [(dtype, shape) for dtype in (np.float32, np.int64, np.bool_) for shape in ((2, 2), (4, 4), (0, 4), (90, 90))]
    forms = [np.array, lambda x: np.array(x).T, lambda x: np.array(x)[::-1], np.asfortranarray, np.broadcast_to]
    x, y = np.ones((2, 2), np.float32), np.ones((2, 2), np.float32)
    calls: list[tuple[Any, ...]] = [(x, y, np.array(mode)) for mode in (8, 0, 13, 14)] + [(x, x, np.array(2))]
    for _ in range(40):
        dtype, shape = data.draw(st.sampled_from(layouts[:2] * 4 + layouts))
        x = (np.arange(math.prod(shape)).reshape(shape) % 5 + data.draw(st.integers(0, 3))).astype(dtype)
        form = data.draw(st.sampled_from([np.array] * 6 + forms))
        x = form(x, x.shape) if form is np.broadcast_to else form(x)
        other: Any = np.ones(x.shape, dtype)
        other = data.draw(st.sampled_from([other, other, other, x, np.float64(2), 3]))
        calls.append((x, other, np.array(data.draw(st.integers(0, 15)))))
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), MODES, {"kept": 0})
        first, *_ = both(path, *[call for call in calls for _ in range(2)])
    assert first.tolist() == [[2, 2], [2, 2]]


def test_objects_of_a_program_stay_with_it_and_can_be_given_back(tmp_path: Path) -> None:
    source = HEAD + (
        "  def forward(self) -> __torch__.m.Model:\n    return self\n"
        "  def same(self, other: __torch__.m.Model) -> bool:\n    return other.training\n"
    )
    module = torch_compat.load(write(tmp_path, source))
    kept = module()
    assert "__torch__.m.Model" in repr(kept)
    assert module.same(kept) is False
    with pytest.raises(Raised, match="instead found type 'object'"):
        module.same(object())


def test_named_tuples_come_out(tmp_path: Path) -> None:
    source = (
        HEAD + "  def forward(self, x: Tensor) -> __torch__.m.Point:\n    return __torch__.m.Point(x, 2)\n"
        "class Point(NamedTuple):\n  x : Tensor\n  y : int\n"
    )
    (value,) = both(write(tmp_path, source), (A,))
    assert (value.fields, value.qualified_name, value[1]) == (("x", "y"), "__torch__.m.Point", 2)


def test_budgets_are_the_same_both_ways(tmp_path: Path) -> None:
    path = write(tmp_path, "def forward(self) -> int:\n  x = 0\n  while True:\n    x = torch.add(x, 1)\n  return x")
    (result,) = both(path, (), limits=LIMITS._replace(steps=1000))
    assert result[0] is Exhausted


def test_memory_is_bounded(tmp_path: Path) -> None:
    path = write(tmp_path, "def forward(self) -> Tensor:\n  return torch.ones([1000, 1000, 500])")
    with pytest.raises(Raised, match="more memory than the limit"):
        torch_compat.load(path, limits=LIMITS._replace(memory=1 << 28))()


def test_warnings_arrive(hostile: IsolatedModule) -> None:
    code = "import warnings; warnings.warn('look', FutureWarning); reply = {'value': 7, **self.warned()}"
    with pytest.warns(FutureWarning, match="^look$"):
        assert attack(hostile, code) == 7


def test_a_warning_comes_with_an_answer_of_a_text_that_was_said_before(taken_over: Workshop, tmp_path: Path) -> None:
    path = write(tmp_path, "def forward(self, x: Tensor) -> Tensor:\n  return torch.add(x, 1)")
    module = load_isolated(taken_over, str(path), "reference", LIMITS)
    for _ in range(2):
        assert module(np.ones(1, np.int64)).tolist() == [2]
    code = (
        "import warnings; warnings.warn('look', FutureWarning)\n"
        "request = {'call': '__call__', 'args': [{'x': [0, 'int64', [1], None, 0]}], 'words': {}, 'sizes': [8]}\n"
        "reply, parts = type(self).__mro__[1].answer(self, request, memoryview(bytes(16)))"
    )
    with pytest.warns(FutureWarning, match="^look$"):
        assert attack(module, code, np.ones(1, np.int64)).tolist() == [1]
    module.close()


@pytest.mark.parametrize("reader", ["reference", "reference@1.0.0", "reference@1.8.1", "reference@2020-06-24"])
@pytest.mark.parametrize(
    "path", ["torch-2.13.0/gelu.pt", "torch-2.0.0/div_out.pt", "torch-2.13.0/state_dict.pt", "torch-1.0.0/relu.pt", "no.pt", "."]
)
def test_errors_of_loading_are_the_same_both_ways(path: str, reader: str) -> None:
    here, there = (loaded(REPOSITORY / "fixtures" / path, reader, LIMITS, in_process) for in_process in (True, False))
    if isinstance(here, tuple) or isinstance(there, tuple):
        assert here == there


def test_damage_is_the_same_both_ways(tmp_path: Path) -> None:
    whole = DIV.read_bytes()
    path = tmp_path / "model.pt"
    for cut in range(0, len(whole), len(whole) // 12):
        path.write_bytes(whole[:cut] + b"\xff" + whole[cut + 1 :])
        test_errors_of_loading_are_the_same_both_ways(str(path), "reference")


# ---------------------------------------------------------------------------------------------------------------- processes


def test_a_process_serves_one_archive_and_ends_with_it() -> None:
    modules = [torch_compat.load(DIV) for _ in range(3)]
    pids = [module._child.pid for module in modules]
    assert len(set(pids)) == 3
    modules[0].close()
    with pytest.raises(ReaderError, match="it was closed"):
        modules[0](B, B)
    assert gone(pids[0])
    modules[1](B, B + 1)
    del modules
    assert gone(pids[1])
    assert gone(pids[2])


PARENT = """
import sys, torch_compat
from torch_compat.readers.reference import _workshop
module = torch_compat.load(sys.argv[1])
print(_workshop().process.pid, module._child.pid, flush=True)
{then}
"""


@pytest.mark.parametrize("then", ["sys.stdin.readline()", "module(0)"])
def test_a_killed_parent_leaves_nobody_behind(then: str, tmp_path: Path) -> None:
    path = write(tmp_path, "def forward(self, x: int) -> int:\n  while True:\n    x = torch.add(x, 1)\n  return x")
    command = [sys.executable, "-c", PARENT.format(then=then), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, cwd=REPOSITORY) as parent:
        assert parent.stdout is not None
        pids = [int(part) for part in parent.stdout.readline().split()]
        time.sleep(0.3)  # until it calls
        children = [int(pid) for pid in Path(f"/proc/{pids[0]}/task/{pids[0]}/children").read_text().split()]
        assert pids[1] in children
        parent.kill()
    assert all(gone(pid) for pid in {*pids, *children})


def test_a_killed_template_leaves_nobody_behind_and_another_takes_its_place() -> None:
    with own_workshop() as workshop:
        module = load_isolated(workshop, str(DIV), "reference", LIMITS)
        assert workshop.process is not None
        workshop.process.kill()
        assert gone(module._child.pid)
        with pytest.raises(ReaderError, match="died"):
            module(B, B)
        workshop.process.wait()
        assert load_isolated(workshop, str(DIV), "reference", LIMITS)(B, B + 1)


def test_a_process_that_was_forked_does_not_use_what_its_parent_loaded() -> None:
    module = torch_compat.load(DIV)
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        message = "nothing"
        try:
            module(B, B + 1)
        except UsageError as error:
            message = error.code
        message += " " + str(torch_compat.load(DIV)(B, B + 1)[0].tolist())
        os.write(writing, message.encode())
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(reading, 100).decode() == "forked [0, 0, 0, 0]"
    assert module(B, B + 1)[0].tolist() == [0, 0, 0, 0]
    os.close(reading)
    os.close(writing)


def test_interrupting_a_call_ends_it(tmp_path: Path) -> None:
    path = write(tmp_path, "def forward(self, x: int) -> int:\n  while True:\n    x = torch.add(x, 1)\n  return x")
    module = torch_compat.load(path)
    previous = signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            module(0)
    finally:
        signal.signal(signal.SIGALRM, previous)
    assert gone(module._child.pid)
    with pytest.raises(ReaderError, match="load the archive again"):
        module(0)


def test_where_there_are_no_such_processes_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.warns(RuntimeWarning, match="runs in this process: separate processes need Linux"):
        module = torch_compat.load(DIV)
    assert not isinstance(module, IsolatedModule)


def test_those_who_execute_nothing_start_no_process() -> None:
    code = (
        "import sys, torch_compat\n"
        "torch_compat.inspect(sys.argv[1]); torch_compat.load_state(sys.argv[2])\n"
        "print([name for name in sys.modules if name.startswith('torch_compat.readers') or name == 'subprocess'])"
    )
    other = REPOSITORY / "fixtures" / "torch-1.5.1" / "state_dict.pt"
    done = subprocess.run([sys.executable, "-c", code, str(DIV), str(other)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ----------------------------------------------------------------------------------------------------------------- attacks


def own_workshop(module: str = "torch_compat.readers.child") -> Any:
    """A workshop of a test's own."""
    return contextlib.closing(Workshop({**THREADS, "PYTHONPATH": f"{REPOSITORY / 'harness'}:{REPOSITORY}"}, module))


@pytest.fixture(scope="module")
def taken_over() -> Iterator[Workshop]:
    with own_workshop("tests.readers.hostile_child") as workshop:
        yield workshop


@pytest.fixture
def hostile(taken_over: Workshop) -> Iterator[IsolatedModule]:
    module = load_isolated(taken_over, str(DIV), "reference", LIMITS)
    yield module
    module.close()


def attack(module: IsolatedModule, code: str, *args: Any) -> Any:
    """What comes back of a child that runs this."""
    return module._call("attack", (code, *args), {})


ASKED = "try:\n  {}\n  reply = {{'value': 'done'}}\nexcept OSError as error:\n  reply = {{'value': error.strerror}}\n"
FORBIDDEN = {
    "reads a file": "open('/etc/passwd')",
    "reads the variables of its parents": "open(f'/proc/{__import__(\"os\").getppid()}/environ')",
    "looks into a folder": "__import__('os').listdir('/tmp')",
    "writes a file": "open('/tmp/torch-compat-attack', 'w')",
    "writes what it may read": "open(__import__('torch_compat').__file__, 'a')",
    "makes a folder": "__import__('os').mkdir('/tmp/torch-compat-attack')",
    "removes a file": "__import__('os').unlink('/etc/passwd')",
    "opens a socket": "__import__('socket').socket()",
    "opens a pair of sockets": "__import__('socket').socketpair()",
    "forks": "__import__('os').fork() or __import__('os')._exit(0)",
    "runs a program": "__import__('os').execv('/bin/true', ['true'])",
    "kills its parent": "__import__('os').kill(__import__('os').getppid(), 9)",
    "kills the process that asked": "__import__('os').kill({asked}, 9)",
    "has signals sent": "__import__('fcntl').fcntl(self.lines.connection, 8, {asked})",
    "changes limits of others": "__import__('resource').prlimit({asked}, 7, (3, 3))",
    "changes its own limits": "__import__('resource').setrlimit(7, (3, 3))",
    "changes a mode": "__import__('os').chmod('/tmp', 0o777)",
    "makes shared memory": "__import__('os').memfd_create('x')",
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_the_fence_holds_where_the_program_has_taken_over(name: str, hostile: IsolatedModule) -> None:
    code = FORBIDDEN[name].replace("{asked}", str(os.getpid()))
    assert attack(hostile, ASKED.format(code)) in {"Permission denied", "Operation not permitted"}
    assert not Path("/tmp/torch-compat-attack").exists()


def test_no_privileges_are_gained_and_bounds_are_set(hostile: IsolatedModule) -> None:
    status = dict(
        line.split(":\t", 1) for line in Path(f"/proc/{hostile._child.pid}/status").read_text().splitlines() if ":\t" in line
    )
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"
    assert {status[name] for name in ("CapEff", "CapPrm", "CapBnd", "CapInh")} == {"0" * 16} or os.getuid()
    limits = Path(f"/proc/{hostile._child.pid}/limits").read_text()
    rows = {line[:26].strip(): line[26:].split()[:2] for line in limits.splitlines()[1:]}
    assert rows["Max file size"] == ["0", "0"]
    assert rows["Max core file size"] == ["0", "0"]
    assert rows["Max open files"] == ["64", "64"]
    assert rows["Max cpu time"][0] == str(600 + SPARE)
    assert rows["Max address space"][1].isdigit()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("__import__('ctypes').string_at(8)", "SIGSEGV: it accessed invalid memory"),
        ("__import__('os').abort()", "SIGABRT"),
        ("__import__('os')._exit(7)", "exit status 7"),
        ("self.lines.connection.close(); __import__('time').sleep(60)", "SIGKILL"),
        ("raise SystemExit", "exit status 1"),
    ],
)
def test_a_death_is_told_in_words(code: str, said: str, hostile: IsolatedModule) -> None:
    with pytest.raises(ReaderError, match=f"died while trying to call attack: {said}") as caught:
        attack(hostile, code)
    assert caught.value.code == "died"
    with pytest.raises(ReaderError, match="the process that runs this program has exited"):
        hostile(B, B)
    assert gone(hostile._child.pid)


def test_processor_time_is_bounded(taken_over: Workshop) -> None:
    module = load_isolated(taken_over, str(DIV), "reference", LIMITS._replace(seconds=1))
    with pytest.raises(ReaderError, match="SIGXCPU: it exceeded the limit on CPU time"):
        attack(module, "while True: pass")


def test_calls_are_given_processor_time_as_they_take_it(tmp_path: Path) -> None:
    path = write(
        tmp_path, "def forward(self, n: int) -> int:\n  x = 0\n  for i in range(n):\n    x = torch.add(x, 1)\n  return x"
    )
    module = torch_compat.load(path, limits=LIMITS._replace(seconds=1))
    used = 0.0
    while used < 1 + SPARE + 1.5:  # more than it has from the beginning
        module(1_000_000)
        used = sum(map(int, Path(f"/proc/{module._child.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13])) / os.sysconf(
            "SC_CLK_TCK"
        )


def test_a_program_ends_by_its_own_limit_before_its_process_does(tmp_path: Path) -> None:
    path = write(tmp_path, "def forward(self) -> int:\n  x = 0\n  while True:\n    x = torch.add(x, 1)\n  return x")
    messages = []
    for in_process in (True, False):
        module = torch_compat.load(path, limits=LIMITS._replace(seconds=1, steps=10**12), in_process=in_process)
        with pytest.raises(HarnessError) as raised:
            module()
        messages.append((type(raised.value), raised.value.code))
    assert messages[0] == messages[1]
    assert messages[0][0] is not ReaderError


SLOWLY = (
    f"import time\nfor one in {LENGTHS.pack(100, 0)!r} + b' ' * 100: self.lines.connection.send(bytes([one])); time.sleep(0.1)"
)


@pytest.mark.parametrize("code", ["__import__('time').sleep(60)", SLOWLY])
def test_a_process_that_does_not_answer_in_time_is_ended(code: str, hostile: IsolatedModule) -> None:
    hostile._child.wait(0.5)
    with pytest.raises(ReaderError, match="did not respond within"):
        attack(hostile, code)
    assert gone(hostile._child.pid)


RAW = "import os; os.write(self.lines.connection.fileno(), {}); "
GARBAGE: dict[str, str] = {
    "no message": RAW.format("b'GET / HTTP/1.0\\r\\n\\r\\n' * 10"),
    "zeros": RAW.format("bytes(4096)"),
    "a huge document": RAW.format(repr(LENGTHS.pack(MOST_DOCUMENT + 1, 0))),
    "huge data": RAW.format(repr(LENGTHS.pack(2, 1 << 62))),
    "no JSON": RAW.format(repr(LENGTHS.pack(4, 0) + b"{{{{")),
    "deep JSON": RAW.format(f"{LENGTHS.pack(60_000, 0)!r} + b'[' * 60_000"),
    "many values": f"self.lines.connection.sendall({LENGTHS.pack(30_000_001, 0)!r} + b'[' + b'{{}},' * 10_000_000)",
    "no object": "reply = [1]",
    "nothing": "reply = {}",
    "a wrong key": "reply = {'value': {'z': 1}}",
    "two keys": "reply = {'value': {'t': [], 'c': []}}",
    "deep values": "x = 1\nfor _ in range(150): x = [x]\nreply = {'value': x}",
    "a large integer": "reply = {'value': 1 << 64}",
    "a list for a key": "reply = {'value': {'d': [[[1], 2]]}}",
    "a pair of three": "reply = {'value': {'d': [[1, 2, 3]]}}",
    "no storage": "reply = {'value': {'x': [0, 'int8', [1], None, 0]}}",
    "a storage before the first": "reply = {'value': {'x': [-1, 'int8', [1], None, 0]}}",
    "behind its storage": "reply = {'value': {'x': [0, 'int8', [17], None, 0]}, 'sizes': [16]}; parts = [bytes(16)]",
    "before its storage": "reply = {'value': {'x': [0, 'int8', [1], None, -1]}, 'sizes': [16]}; parts = [bytes(16)]",
    "strides that wrap around": "reply = {'value': {'x': [0, 'int64', [2], [1 << 61], 0]}, 'sizes': [16]}; parts = [bytes(16)]",
    "a shape that wraps around": "reply = {'value': {'x': [0, 'int8', [1 << 32, 1 << 32], [0, 0], 0]}, 'sizes': [16]}; parts = [bytes(16)]",
    "many dimensions": "reply = {'value': {'x': [0, 'int8', [1] * 100000, None, 0]}, 'sizes': [16]}; parts = [bytes(16)]",
    "a shape of floats": "reply = {'value': {'x': [0, 'int8', [1.0], None, 0]}, 'sizes': [16]}; parts = [bytes(16)]",
    "no dtype": "reply = {'value': {'x': [0, 'object', [1], None, 0]}, 'sizes': [16]}; parts = [bytes(16)]",
    "a dtype that numpy lacks": "reply = {'value': {'x': [0, 'qint8', [1], None, 0]}, 'sizes': [16]}; parts = [bytes(16)]",
    "sizes beyond the data": "reply = {'value': None, 'sizes': [1 << 40]}",
    "negative sizes": "reply = {'value': None, 'sizes': [-16, 16]}",
    "sizes that are none": "reply = {'value': None, 'sizes': 'x'}",
    "a changed argument that is none": "reply = {'value': None, 'sizes': [16], 'changed': [0]}; parts = [bytes(16)]",
    "a changed argument without bytes": "reply = {'value': None, 'changed': [0]}",
    "too much shared memory": "self.lines.send({'need': 1 << 62}); self.receive()",
    "shared memory of no size": "self.lines.send({'need': 'much'}); self.receive()",
    "an error of ours that is none": "reply = {'error': ['SystemExit', 'x', None, None, 'x', None]}",
    "an error without parts": "reply = {'error': ['Raised']}",
    "an error with numbers": "reply = {'error': ['Raised', 1, None, None, 'x', None]}",
    "an error of a reader": "reply = {'error': ['ReaderError', 'x', None, None, 'x', None]}",
    "a death that is none": "reply = {'error': ['DiesCalled', 'x', None, None, 'x', 'no-such-slip']}",
    "warnings that are none": "reply = {'value': None, 'warnings': [['UserWarning']]}",
    "a named tuple of other fields": "reply = {'value': {'p': ['x', ['a', 'b'], [1]]}}",
    "bits of no float": "reply = {'value': {'n': '00'}}",
    "a device that is none": "reply = {'value': {'v': [1]}}",
    "something kept that is none": "reply = {'value': {'h': ['x', 'y']}}",
}


@pytest.mark.parametrize("name", GARBAGE)
def test_what_is_no_reply_is_an_error_of_ours(name: str, hostile: IsolatedModule) -> None:
    with pytest.raises(ReaderError) as caught:
        attack(hostile, GARBAGE[name])
    assert caught.value.code == "bad-reply", caught.value
    assert gone(hostile._child.pid)
    with pytest.raises(ReaderError, match="has exited"):
        hostile(B, B)


WHOLE = "reply, parts = {'value': {'x': [0, 'int8', [16], None, 0]}, 'sizes': [16]}, "


def test_an_answer_of_the_same_text_needs_its_bytes_too(hostile: IsolatedModule) -> None:
    for filled in (1, 2):
        assert attack(hostile, f"{WHOLE}[bytes([{filled}]) * 16]").tolist() == [filled] * 16
    with pytest.raises(ReaderError, match="storages of 16 bytes, but only 0 bytes of data"):
        attack(hostile, f"{WHOLE}[]")


def test_an_answer_of_the_same_text_to_other_arguments_is_read_again(hostile: IsolatedModule) -> None:
    given = np.zeros(16, np.int8)
    assert attack(hostile, f"{WHOLE}[bytes([1]) * 16]").tolist() == [1] * 16
    assert attack(hostile, f"{WHOLE}[bytes([1]) * 16]", given) is given


def test_values_are_counted_before_they_are_made(hostile: IsolatedModule) -> None:
    with pytest.raises(ReaderError, match="a document of 10000001 values and 10000000 objects"):
        attack(hostile, GARBAGE["many values"])


def test_files_that_come_with_a_reply_are_closed(hostile: IsolatedModule) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    assert attack(hostile, "self.lines.send({'value': 5}, descriptors=[0] * 20); reply, parts = {'value': 6}, []") == 5
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_shared_memory_cannot_be_made_smaller_and_what_came_out_does_not_change(hostile: IsolatedModule) -> None:
    code = (
        "import os, time, threading, numpy as np\n"
        "from torch_compat.readers.wire import Arena\n"
        "self.arena.bytes[:] = 1\n"
        "self.lines.send({'value': {'x': [1, 'uint8', [100000], None, 0]}, 'sizes': [100000]})\n"
        "self.receive()\n"  # the next call: the value is there
        "self.arena.bytes[:] = 2\n"
        "reply = {'value': int(self.arena.bytes[0])}"
    )
    first = attack(hostile, code, LARGE)
    assert hostile._arena is not None
    assert attack(hostile, "") == 2
    assert (first == 1).all()
    arena = Arena(1 << 16)
    for size in (0, 1 << 20):
        with pytest.raises(PermissionError):
            os.ftruncate(arena.descriptor, size)
    arena.handed_over()


@pytest.mark.parametrize("reply", ["[1]", "{'result': {}, 'crashed': {}}", "{'result': {'state': {'dict': 7}}}", "{'result': {'value': {'tensor': {}}}}",
    "{'crashed': {'stage': 'load'}}", "{'unsupported': {'code': 1}}", "{'slips': [1], 'result': {'calls': []}}"])  # fmt: skip
def test_replies_of_the_reference_reader_are_checked(reply: str, taken_over: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reference()
    monkeypatch.setattr(reader, "_workshop", taken_over)
    path = str(DIV)
    with pytest.raises(ReaderError) as caught:
        reader.request("attack", path=path, horizon="reference", reply=reply)
    assert caught.value.code == "bad-reply"


def test_hostile_programs_stay_in_their_processes_where_the_gate_is_open(taken_over: Workshop, tmp_path: Path) -> None:
    from tools.fence.archives import archive as packed  # noqa: PLC0415 - one test

    path = tmp_path / "model.pt"
    outcomes: dict[str, int] = {}
    limits = LIMITS._replace(steps=20_000, seconds=5, memory=1 << 30, elements=1 << 22, work=1 << 26)
    for number in range(60):
        path.write_bytes(packed(generated(17, number).source))
        try:
            with load_isolated(taken_over, str(path), "reference", limits) as module:
                module.forward()
            outcome = "value"
        except HarnessError as error:
            outcome = error.code if isinstance(error, ReaderError) else "refused"
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    assert outcomes.keys() <= {"value", "refused", "died", "bad-reply"}, outcomes
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("stride", "offset"), [((1 << 31) - 1, 0), (1, (1 << 31) - 1)])
def test_a_view_outside_of_all_memory_costs_its_process(stride: int, offset: int, taken_over: Workshop, tmp_path: Path) -> None:
    path = tmp_path / "model.ff"
    path.write_bytes(flatbuffer([4096], [stride], bytes(64), offset))
    with pytest.raises(Corrupt):
        torch_compat.load(path)
    died = "SIGSEGV: it accessed invalid memory"
    with pytest.raises(ReaderError, match=died), load_isolated(taken_over, str(path), "reference", LIMITS) as module:
        module()
    assert load_isolated(taken_over, str(DIV), "reference", LIMITS)(B, B + 1)[0].tolist() == [0, 0, 0, 0]
