"""Slips: their conditions, and the behavior of the reference reader if one applies. tests/repository/test_slips.py has the evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.runtime.archives import archive, described, program
from torch_compat.corpus.corpus import load_corpus
from torch_compat.errors import Raised, Refused
from torch_compat.formats.facts import read_facts
from torch_compat.loadability.requirement import Item
from torch_compat.policy import load_policy
from torch_compat.releases.behavior import LOADS, Behavior
from torch_compat.releases.release import Release
from torch_compat.runtime import slips
from torch_compat.runtime.encoding import perform
from torch_compat.runtime.horizons import horizon as horizon_of
from torch_compat.runtime.load import load
from torch_compat.runtime.registry import NEWEST, resolve
from torch_compat.runtime.slipping import SIGNS, Slipping, storing_methods
from torch_compat.runtime.slips import DiesCalled, DiesLoading
from torch_compat.runtime.tensor import Tensor

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures"
POLICY = load_policy(ROOT / "policies" / "torch")
HEAD = "class Model(Module):\n  __parameters__ = []\n"
FORWARD = "  def forward(self: __torch__.m.Model) -> int:\n    return 1\n"
TWO = np.array([7, -7])


def dies(sources: dict[str, str | bytes], horizon: str) -> str:
    """What a horizon dies of while it loads; "" where it refuses."""
    with pytest.raises(Refused) as caught:
        load(archive(sources), f"reference@{horizon}")
    return caught.value.code if isinstance(caught.value, DiesLoading) else ""


def test_what_the_policy_may_ask_for_is_what_there_is() -> None:
    signs = [sign for slip in slips.every() for sign in slip.when.signs]
    assert {sign.removeprefix(slips.RUNS) for sign in signs if sign.startswith(slips.RUNS)} == SIGNS
    known = {entry.id for entry in POLICY.behaviors if entry.outcome == LOADS} | {
        "file-format",
        "bytecode",
        "operator",
        "container",
    }
    assert {sign.partition(":")[2] for sign in signs if sign.startswith("unmet:")} <= known


def test_the_newest_horizon_has_the_slips_of_the_newest_release() -> None:
    newest = Release(list(POLICY.calendar)[-1].version)
    assert slips.slips_of(NEWEST) == slips.slips_of(newest) != ()


@pytest.mark.parametrize(
    ("body", "horizon", "signal"),
    [
        ("  __buffers__ = []\n", "1.5.1", "SIGSEGV"),
        ("  __buffers__ = []\n  x : NoneType\n", "1.5.1", ""),
        ("  __buffers__ = []\n  x : List[NoneType]\n", "1.5.1", ""),
        ("  __buffers__ = []\n  x : __torch__.m.Inner\n  y : NoneType\n", "1.5.1", "SIGSEGV"),
        ("  __buffers__ = []\n  x : __torch__.m.Color\n", "1.5.1", ""),
        ("  __buffers__ = []\n  x : __torch__.m.Model\n  y : __torch__.m.Nowhere\n", "1.5.1", "SIGSEGV"),
        ("  __forward_hooks__ = []\n", "1.6.0", "SIGSEGV"),
        ("  __forward_pre_hooks__ = []\n", "1.7.1", "SIGSEGV"),
        ("  __buffers__ = []\n  x : NoneType\n", "1.6.0", ""),
    ],
)
def test_what_is_set_without_a_type_is_deadly_unless_something_is_refused_before(body: str, horizon: str, signal: str) -> None:
    others = "class Inner(Module):\n  __parameters__ = []\n  __buffers__ = []\nclass Color(Enum):\n  RED = 0\n"
    assert dies({"__torch__/m.py": HEAD + body + FORWARD + others}, horizon) == signal


def test_classes_that_hold_each_other_without_end_are_gone_through() -> None:
    chain = "".join(f"class C{n}(Module):\n  __parameters__ = []\n  x : __torch__.m.C{n + 1}\n" for n in range(5000))
    body = "  __buffers__ = []\n  x : __torch__.m.C0\n"
    assert dies({"__torch__/m.py": HEAD + body + FORWARD + chain}, "1.5.1") == "SIGSEGV"


def test_debug_records_are_deadly_where_the_source_is_refused_and_only_there() -> None:
    path = FIXTURES / "torch-2.0.0" / "div_out.pt"
    with pytest.raises(DiesLoading, match=r"reference@1\.8\.1 represents crashes here \(SIGABRT\)") as caught:
        load(path, "reference@1.8.1")
    assert (caught.value.code, caught.value.where) == ("SIGABRT", str(path))
    facts = read_facts(path, verify=False)
    assert slips.in_place_of_refusing(facts, Release("1.8.1")) is not None
    facts.extra["debug_format"] = "plain"
    assert slips.in_place_of_refusing(facts, Release("1.8.1")) is None


@pytest.mark.parametrize(("where", "dead"), [("code/__torch__/m.py", True), ("constants.pkl", False), ("data.pkl", False)])
def test_debug_records_are_deadly_only_where_something_in_the_source_is_refused(where: str, dead: bool) -> None:
    """Only what is refused in the source is quoted, and only a quotation asks the debug records."""
    facts = read_facts(FIXTURES / "torch-2.0.0" / "div_out.pt", verify=False)
    result = slips.while_loading(facts, [Item(0, "operator", where, "")], (), Release("1.8.1"))
    assert (result is not None) is dead


@pytest.mark.parametrize(("where", "slip"), [("code/__torch__.py", "newer-debug-records"), ("data.pkl", None)])
def test_debug_records_are_deadly_only_where_source_is_to_be_quoted(where: str, slip: str | None) -> None:
    """1.11.0 refuses programs of 2.13.0 with a buffer of float8 or uint16, whose storages its unpickler does not know, and lives."""
    facts = read_facts(FIXTURES / "torch-2.0.0" / "div_out.pt", verify=False)
    result = slips.while_loading(facts, [Item(0, "storage", where, "")], (), Release("1.11.0"))
    assert (None if result is None else result.id) == slip


@pytest.mark.parametrize(
    ("fixture", "horizon", "dead"),
    [
        ("torch-1.10.2/lists", "1.5.1", "SIGSEGV"),
        ("torch-1.6.0/text_beyond_ascii", "1.5.1", ""),
        ("torch-1.10.2/text_beyond_ascii", "1.5.1", ""),
        ("torch-2.0.0/text_beyond_ascii", "1.5.1", ""),
        ("torch-1.8.1/submodules_named_as_words", "1.5.1", ""),
        ("torch-2.0.0/attribute_named_nonetype", "1.9.1", ""),
        ("torch-2.0.0/whole_floats_in_dicts", "1.9.1", "SIGABRT"),
        ("torch-2.0.0/whole_floats_in_dicts", "1.11.0", ""),
        ("torch-1.11.0/union_arguments", "1.6.0", ""),
        ("torch-2.0.0/union_arguments", "1.6.0", "SIGABRT"),
    ],
)
def test_what_is_refused_before_source_is_compiled_is_not_deadly(fixture: str, horizon: str, dead: str) -> None:
    with pytest.raises(Refused) as caught:
        load(FIXTURES / f"{fixture}.pt", f"reference@{horizon}")
    assert (caught.value.code if isinstance(caught.value, DiesLoading) else "") == dead


# ------------------------------------------------------------------------------------------------------ while a program runs


def divides(statement: str, horizon: str, *args: Any) -> Any:
    source = HEAD + f"  def forward(self: __torch__.m.Model, x: Tensor, y: Tensor) -> Tensor:\n    return {statement}\n"
    return load(archive({"__torch__/m.py": source}, version=1), f"reference@{horizon}").run("forward", args)


@pytest.mark.parametrize(
    ("statement", "first", "dead"),
    [
        ("torch.div(x, 0)", np.int64, True),
        ("torch.div(x, y)", np.int64, True),
        ("torch.div_(x, y)", np.int32, True),
        ("torch.remainder(x, 0)", np.uint8, True),
        ("torch.fmod(x, y)", np.int64, True),
        ("torch.div(x, 0)", np.float32, False),
        ("torch.div(x, 0.1)", np.int64, False),
        ("torch.div(x, 2)", np.int64, False),
    ],
)
def test_integers_divided_by_zero_are_deadly(statement: str, first: Any, dead: bool) -> None:
    def given() -> tuple[Tensor, Tensor]:
        return Tensor(TWO.astype(first)), Tensor(np.array([1, 0], first))

    if dead:
        with pytest.raises(DiesCalled, match="SIGFPE") as caught:
            divides(statement, "1.4.0", *given())
        assert caught.value.code == "SIGFPE"
    else:
        divides(statement, "1.4.0", *given())
    if "fmod" in statement:
        return  # 1.5 still leaves it to the processor: tests/runtime/test_traps.py
    try:
        divides(statement, "1.5.1", *given())
    except Raised as error:
        assert not isinstance(error, DiesCalled)  # noqa: PT017 - that it raises is another matter


def test_the_least_integer_has_no_opposite() -> None:
    least = Tensor(np.array([np.iinfo(np.int64).min]))
    with pytest.raises(DiesCalled):
        divides("torch.div(x, -1)", "1.4.0", least, least)
    nothing = Tensor(np.array([], np.int64))
    assert divides("torch.div(x, 0)", "1.4.0", nothing, nothing).array.size == 0


def test_up_to_1_2_a_divisor_is_cut_first() -> None:
    source = "def forward(self,\n    x: Tensor) -> Tensor:\n  return torch.div(x, 0.1)\n"
    with pytest.raises(DiesCalled):
        described(source, "reference@1.2.0").run("forward", (Tensor(TWO),))
    assert described(source, "reference@1.3.1").run("forward", (Tensor(TWO),)).array.tolist() == pytest.approx([70, -70])


def test_methods_that_set_attributes_and_those_that_call_them() -> None:
    source = (
        "op_version_set = 1\n"
        "def reads(self,\n    x: Tensor) -> Tensor:\n  _0 = self.peak\n  return _0\n"
        "def sets(self,\n    x: Tensor) -> Tensor:\n  if x:\n    self.peak = x\n  else:\n    pass\n  return x\n"
        "def deep(self,\n    x: Tensor) -> Tensor:\n  _1 = self.norm\n  _1.mean = x\n  return x\n"
        "def calls(self,\n    x: Tensor) -> Tensor:\n  return self.sets(x)\n"
        "def far(self,\n    x: Tensor) -> Tensor:\n  return torch.add(self.calls(x), x)\n"
    )
    assert storing_methods(source.encode()) == {"sets", "deep", "calls", "far"}


def test_1_1_raises_before_it_sets_an_attribute() -> None:
    path = FIXTURES / "torch-1.2.0" / "module_with_buffers.pt"
    x = np.ones((3, 3), np.float32)
    module = load(path, "reference@1.1.0")
    with pytest.raises(Raised, match="the only valid use of a module"):
        module(x)
    assert (module.attribute("calls").array.tolist(), [*module.program.slips.met]) == ([0], ["attribute-stores"])
    module = load(path, "reference@1.2.0")
    module(x)
    assert (module.attribute("calls").array.tolist(), module.program.slips.met) == ([1], {})


@pytest.mark.parametrize(("horizon", "raises"), [("1.8.1", True), ("1.9.1", False)])
def test_1_8_takes_no_none_for_an_end_of_a_list(horizon: str, raises: bool) -> None:
    module = program(
        "def forward(self, x: List[int]) -> List[int]:\n  return torch.slice(x, None, None, 2)", f"reference@{horizon}"
    )
    if raises:
        with pytest.raises(Raised, match="isInt"):
            module.run("forward", ([1, 2, 3],))
    else:
        assert module.run("forward", ([1, 2, 3],)) == [1, 3]
    assert [*module.program.slips.met] == ["list-slices-without-bounds"] * raises
    whole = program("def forward(self, x: List[int]) -> List[int]:\n  return torch.slice(x, 0, 9, 2)", f"reference@{horizon}")
    assert whole.run("forward", ([1, 2, 3],)) == [1, 3]


@pytest.mark.parametrize(
    ("runs", "horizon", "counted"),
    [(1, "2.13.0", 2), (1, "1.11.0", 2), (0, "2.13.0", 0), (1, "1.10.2", 1), (2, "reference", 3)],
)
def test_a_linear_that_raises_is_computed_where_batch_norm_stands(runs: int, horizon: str, counted: int) -> None:
    """Seen of the releases: ``num_batches_tracked`` counts a call that raises, but for the first one."""
    name = horizon if horizon == "reference" else f"reference@{horizon}"
    for shape in ((1, 3), (2, 3)):  # of one row, what looks at the size of the result would raise first
        module = load(FIXTURES / "torch-1.10.2" / "module_with_buffers.pt", name)
        for _ in range(runs):
            module(np.ones((3, 3), np.float32))
        with pytest.raises(Raised, match="same dtype"):
            module(np.ones(shape, np.int64))
        norm = module.attribute("norm")
        assert int(norm.a_num_batches_tracked.array) == counted
        assert module.attribute("calls").array.tolist() == [runs + 1]
        assert ("products-move-to-their-use" in module.program.slips.met) is (counted > runs)


def test_a_tensor_written_in_place_keeps_linear_where_it_is() -> None:
    """The archives of 1.11 count in place: the releases leave that uncounted where linear raises."""
    module = load(FIXTURES / "torch-1.11.0" / "module_with_buffers.pt", "reference@2.13.0")
    module(np.ones((3, 3), np.float32))
    with pytest.raises(Raised, match="same dtype"):
        module(np.ones((2, 3), np.int64))
    assert int(module.attribute("norm").a_num_batches_tracked.array) == 1
    assert module.program.slips.met == {}
    assert module(np.ones((3, 3), np.float32))[1].tolist() == [3]


@pytest.mark.parametrize(
    ("fixture", "horizon", "slip"),
    [
        ("torch-1.0.1/div_script_method.pt", "1.0.1", "equal-calls-in-a-tuple"),
        ("torch-1.0.1/div_script_method.pt", "1.1.0", ""),
        ("torch-1.0.1/traced.pt", "1.0.1", "products-without-gradient"),
        ("torch-1.0.1/traced.pt", "1.1.0", ""),
        ("torch-1.11.0/mobile_containers.pt", "1.11.0", "dictionaries-of-mobile-modules"),
        ("torch-1.11.0/mobile_containers.pt", "1.12.1", ""),
        ("torch-1.8.1/dtypes_mobile.pt", "1.11.0", "dictionaries-of-mobile-modules"),
        ("torch-1.5.0/dtypes_mobile.pt", "1.11.0", ""),
    ],
)
def test_what_stands_in_code_is_counted_where_a_program_comes_to_it(fixture: str, horizon: str, slip: str) -> None:
    (item,) = (entry for entry in load_corpus(FIXTURES).fixtures.values() if entry.id == fixture.removesuffix(".pt"))
    (path,) = FIXTURES.glob(fixture.removesuffix("pt") + "*")
    met: dict[str, Behavior] = {}
    perform(path, item.family, item.calls, f"reference@{horizon}", met)
    assert [*met] == [slip] * bool(slip)


@pytest.mark.parametrize(
    ("body", "raises"),
    [
        ("return ([(1, {'a': 1})])", True),
        ("return ((1, {'a': 1}), 2)", True),
        ("return {'b': (1, {'a': 1})}", True),
        ("return (1, d)", False),
        ("return (1, [{'a': 1}])", False),
        ("return {'a': 1}", False),
        ("return [{'a': 1}]", False),
        ("t = (1, {'a': 2})\n  return (t)[0]", False),
    ],
)
def test_1_11_cannot_give_a_dict_in_a_tuple_to_python(body: str, raises: bool) -> None:
    """As the lite interpreter of 1.11.0 did with each of these."""
    module = program(f"def forward(self, d: Dict[str, int]):\n  {body}\n", "reference@1.11.0")
    module.program.mobile = True
    if raises:
        with pytest.raises(Raised, match="Cannot create dict for key type"):
            module.run("forward", ({"a": 1},))
    else:
        module.run("forward", ({"a": 1},))
    assert ("dictionaries-of-mobile-modules" in module.program.slips.met) is raises


def test_upgraders_that_run_out_of_arguments_come_to_no_one_end() -> None:
    (path,) = FIXTURES.glob("torch-1.10.2/mobile_upgraders.*")
    met: dict[str, Behavior] = {}
    for horizon, expected in (("2.1.2", {}), ("2.2.2", {"upgraders-without-arguments"}), ("2.6.0", {})):
        met.clear()
        module = load(path, f"reference@{horizon}")
        module.program.slips.met = met
        x = Tensor(np.array([-3.0, 3.0], np.float32))
        with pytest.raises(Raised, match="empty stack"):
            module.run("forward", (x, x, 2, 2.5))
        assert met.keys() == set(expected), horizon


def test_a_death_is_told_in_the_form_of_a_reply() -> None:
    met: dict[str, Behavior] = {}
    done = perform(FIXTURES / "torch-2.0.0" / "div_out.pt", "torchscript", [], "reference@1.8.1", met)
    assert [*met] == ["newer-debug-records"]
    assert (done["crashed"]["stage"], done["crashed"]["signal"]) == ("load", "SIGABRT")
    assert "reference@1.8.1" in done["crashed"]["predicted"]


@pytest.mark.parametrize("named", ["", "  __buffers__ = []\n"])
@pytest.mark.parametrize(("horizon", "buffers"), [("1.8.1", ["w"]), ("1.9.1", [])])
def test_up_to_1_8_each_declared_tensor_is_a_buffer_whatever_the_source_names(
    horizon: str, buffers: list[str], named: str
) -> None:
    source = f"class Model(Module):\n  __parameters__ = []\n{named}  training : bool\n  w : Tensor\n  def forward(self: __torch__.m.Model) -> int:\n    return 1\n"
    module = program(source, f"reference@{horizon}", attributes={"w": None})
    module.object.a_w = Tensor(np.array([1.0], np.float32))  # type: ignore[attr-defined]
    assert [name for name, kind, _ in module.named_tensors() if kind == "buffer"] == buffers


PARAMETERS = '  __parameters__ = ["w", ]\n  w : Tensor\n  count : int\n'


@pytest.mark.parametrize(
    ("body", "counted"),
    [
        ("y = torch.linear(x, w)\n{set}\nreturn torch.relu(y)", 2),
        ("y = torch.matmul(x, torch.t(w))\n{set}\nreturn y", 2),
        ("y = torch.mm(x, torch.t(w))\n{set}\nreturn torch.sum(y)", 2),
        ("y = torch.linear(x, w)\nz = torch.relu(y)\n{set}\nreturn torch.sigmoid(z)", 2),
        ("y = torch.linear(x, torch.detach(w))\n{set}\nreturn torch.relu(y)", 1),
        ('y = torch.linear(x, w)\n{set}\nprint("x")\nreturn torch.relu(y)', 1),
        ("y = torch.linear(x, w)\n{set}\nif torch.gt(self.count, 0):\n  z = torch.relu(y)\nelse:\n  z = y\nreturn z", 1),
        ("y = torch.sum(torch.linear(x, w))\n{set}\nreturn y", 1),
        ("y = torch.mul(x, w)\n{set}\nreturn y", 2),
        ("y = torch.add(x, w)\n{set}\nreturn torch.relu(y)", 2),
        ("y = torch.sub(x, w)\n{set}\nreturn torch.mul(y, 2)", 2),
        ("y = torch.where(torch.gt(x, 0), x, w)\n{set}\nreturn y", 2),
        ("y = torch.cat([torch.t(x), torch.t(w)], 1)\n{set}\nreturn y", 2),
        ("y = torch.layer_norm(w, [torch.size(x, 1)])\n{set}\nreturn y", 2),
        ("y = torch.atan2(x, w)\n{set}\nreturn y", 1),
        ("y = torch.mul(x, torch.detach(w))\n{set}\nreturn y", 1),
        ("y = torch.mul(x, w)\nz = torch.size(y)\n{set}\nreturn torch.add(y, torch.len(z))", 1),
        ("if bool(1):\n  y = torch.linear(x, w)\n  {set}\n  z = torch.relu(y)\nelse:\n  z = x\nreturn z", 2),
    ],
)
def test_a_product_that_raises_waits_for_its_use(body: str, counted: int) -> None:
    """Seen in 1.11.0, 2.4.1 and 2.15.0 of the same programs."""
    assert counts(body, "2.13.0", runs=1) == (counted, ["products-move-to-their-use"] * (counted > 1))


def test_a_container_that_keeps_a_product_is_a_use_of_it() -> None:
    """As a cache of results in 1.12.1 and 2.15.0, whose oldest was gone after a layer had raised."""
    body = "ys = [x]\ny = torch.linear(x, w)\n{set}\n_0 = torch.append(ys, y)\nself.count = 9\nreturn y"
    assert counts(body, "2.13.0", runs=1) == (10, ["products-move-to-their-use"])


@pytest.mark.parametrize("runs", [0, 1])
@pytest.mark.parametrize(
    ("body", "horizon", "moved"),
    [
        ("y = torch.matmul(x, torch.t(w))\n{set}\nreturn torch.relu(y)", "1.4.0", True),
        ("y = torch.mm(x, torch.t(w))\n{set}\nreturn torch.add(y, 1)", "1.4.0", True),
        ('y = torch.mm(x, torch.t(w))\n{set}\nprint("x")\nreturn torch.relu(y)', "1.4.0", True),
        ("y = torch.mm(x, torch.t(w))\n{set}\nreturn torch.mm(y, y)", "1.4.0", True),
        ("y = torch.mm(x, torch.t(w))\n{set}\nreturn y", "1.4.0", False),
        ("y = torch.mm(x, torch.t(w))\n{set}\nreturn torch.sum(y)", "1.4.0", False),
        ("y = torch.mm(x, torch.t(w))\n{set}\nreturn torch.layer_norm(y, [2])", "1.4.0", False),
        ("y = torch.mm(x, torch.t(torch.detach(w)))\n{set}\nreturn torch.relu(y)", "1.4.0", False),
        ("y = torch.mm(x, torch.t(w))\n{set}\nreturn torch.relu(y)", "1.5.1", False),
    ],
)
def test_up_to_1_4_a_product_that_raises_is_where_it_is_differentiated_on(
    body: str, horizon: str, moved: bool, runs: int
) -> None:
    """Seen in 1.2.0 and 1.4.0 of the same uses, also in the first run; what prints is no border there."""
    assert counts(body, horizon, runs=runs) == (runs + moved, ["products-join-their-use"] * moved)


@pytest.mark.parametrize(("horizon", "joins"), [("1.2.0", True), ("1.3.1", False), ("1.4.0", False), ("1.5.1", False)])
def test_batch_norm_joins_products_where_the_policy_says_so(horizon: str, joins: bool) -> None:
    function = resolve("aten::batch_norm", Release(horizon))
    assert (Slipping(horizon_of(horizon)).around("aten::batch_norm", function) is not function) is joins
    assert Slipping(horizon_of(horizon)).around("aten::layer_norm", function) is function


def test_integers_divided_by_zero_are_deadly_where_products_join_their_use() -> None:
    slipping = Slipping(horizon_of("1.4.0"))
    divide = slipping.around("aten::div", resolve("aten::div", Release("1.4.0")))
    with pytest.raises(DiesCalled):
        divide(Tensor(TWO), 0)


def counts(body: str, horizon: str, *, runs: int) -> tuple[int, list[str]]:
    """How often a program counted its calls, of which only the last raises, and which slips it came to."""
    lines = ["w = self.w", *body.replace("{set}", "self.count = torch.add(self.count, 1)").split("\n")]
    source = "class Model(Module):\n" + PARAMETERS + "  def forward(self: __torch__.m.Model, x: Tensor) -> Tensor:\n"
    source += "".join(f"    {line}\n" for line in lines)
    module = load(
        archive({"__torch__/m.py": source}, version=1 if Release(horizon) < Release("1.5.0") else 3), f"reference@{horizon}"
    )
    weight = Tensor(np.ones((2, 3), np.float32))
    weight.requires_grad = True
    module.object.__dict__.update(a_w=weight, a_count=0)
    for _ in range(runs):
        module.run("forward", (Tensor(np.ones((2, 3), np.float32)),))
    with pytest.raises(Raised):
        module.run("forward", (Tensor(np.ones((2, 4), np.float32)),))
    return module.attribute("count"), [*module.program.slips.met]


def fused(of: str, then: str, *, second: bool = True) -> list[bool]:
    """Whether 1.0.1 and 1.1.0 keep the gradient of an integer tensor and what ``of`` gives; of ``of`` itself without ``then``."""
    kept = []
    for release in ("1.0.1", "1.1.0"):
        slipping = Slipping(horizon_of(release))
        weight, i = Tensor(np.ones((2, 2), np.float32), requires_grad=True), Tensor(np.array(2))

        def call(name: str, *args: Any, slipping: Slipping = slipping, release: str = release) -> Any:
            return slipping.around(f"aten::{name}", resolve(f"aten::{name}", Release(release)))(*args)

        result = call(of, *{"mm": (weight, weight), "mul": (i, weight)}.get(of, (weight,))) if of else weight
        if then:
            result = call(then, *((i, result) if second else (result, i)))
        kept.append(result.requires_grad)
    return kept


@pytest.mark.parametrize("then", ["add", "sub", "mul", "div"])
@pytest.mark.parametrize("of", ["relu", "exp"])
def test_1_0_forgets_gradients_of_what_it_takes_for_integers(of: str, then: str) -> None:
    assert fused(of, then) == [False, True]
    assert fused(of, then, second=False) == [True, True]


def test_1_0_keeps_gradients_of_what_it_does_not_fuse() -> None:
    assert [fused(of, "mul") for of in ("mm", "t", "")] == [[True, True]] * 3


def test_1_0_forgets_them_of_what_follows_integers_too() -> None:
    assert fused("mul", "") == [True, True]
    assert fused("mul", "mul", second=False) == [False, True]


LEAST = -(1 << 63)


@pytest.mark.parametrize("horizon", ["1.5.1", "2.0.1", "2.15.0"])
@pytest.mark.parametrize(
    ("statement", "a", "b", "dead"),
    [
        ("torch.remainder(a, b)", 5, 0, True),
        ("torch.remainder(a, b)", LEAST, -1, True),
        ("torch.remainder(a, b)", LEAST, 1, False),
        ("torch.floordiv(a, b)", LEAST, -1, True),
        ("torch.floordiv(a, b)", LEAST, 1, False),
    ],
)
def test_integers_that_are_no_tensors_are_divided_by_the_processor(
    statement: str, a: int, b: int, dead: bool, horizon: str
) -> None:
    module = program(f"def forward(self, a: int, b: int) -> int:\n  return {statement}", f"reference@{horizon}")
    if dead:
        with pytest.raises(DiesCalled, match="SIGFPE"):
            module.run("forward", (a, b))
    else:
        module.run("forward", (a, b))


@pytest.mark.parametrize(
    ("call", "crashes"),
    [
        ("torch.div(x, y)", ["1.5.1"]),  # 1.6 refuses integers, and 1.7 computes in floating point
        ('torch.div(x, y, rounding_mode="trunc")', ["1.8.1", "2.9.1", "2.10.0", "2.15.0"]),
        ('torch.div(x, y, rounding_mode="floor")', ["1.8.1", "2.9.1"]),
        ("torch.remainder(x, y)", ["1.5.1", "1.6.0", "1.8.1", "2.9.1"]),
        ("torch.fmod(x, y)", ["1.5.1", "1.6.0", "1.8.1", "2.9.1"]),
        ("torch.floor_divide(x, y)", ["1.5.1", "1.6.0", "1.8.1", "2.9.1"]),
    ],
)
@pytest.mark.parametrize("kind", [np.int32, np.int64, np.int16])
def test_the_lowest_integer_of_a_tensor_divided_by_minus_one(call: str, crashes: list[str], kind: type[np.signedinteger]) -> None:
    """As 1.5.1, 1.6.0, 1.8.1, 2.9.1, 2.10.0 and 2.15.0 did it, each call in its own process."""
    lowest = np.array([3, np.iinfo(kind).min], kind)
    for horizon in ("1.5.1", "1.6.0", "1.8.1", "2.9.1", "2.10.0", "2.15.0"):
        if "rounding_mode" in call and horizon < "1.8.0":
            continue
        source = f"def forward(self, x: Tensor, y: Tensor) -> Tensor:\n  return {call}"
        module = program(source, f"reference@{horizon}", version=3 if horizon < "1.6.0" else 4)
        for divisors in ([-1, 2], [2, -1]):
            given = (Tensor(lowest), Tensor(np.array(divisors, kind)))
            try:
                with np.errstate(all="ignore"):
                    module.run("forward", given)
                crashed = False
            except DiesCalled:
                crashed = True
            except Raised:
                crashed = False
                assert horizon == "1.6.0"
            assert crashed == (horizon in crashes and kind is not np.int16 and divisors[1] == -1)


@pytest.mark.parametrize("horizon", ["1.5.1", "1.6.0", "1.8.1", "2.10.0", "2.15.0"])
def test_the_upgrader_of_a_division_crashes_as_the_division_did(horizon: str) -> None:
    module = program("def forward(self, x: Tensor) -> Tensor:\n  return torch.div(x, -1)", f"reference@{horizon}")
    with pytest.raises(DiesCalled, match="SIGFPE"):
        module.run("forward", (Tensor(np.array([LEAST])),))


def test_a_division_of_integers_by_zero_raises() -> None:
    module = program("def forward(self, a: int, b: int) -> int:\n  return torch.floordiv(a, b)", "reference@2.15.0")
    with pytest.raises(Raised, match="division by 0") as caught:
        module.run("forward", (5, 0))
    assert not isinstance(caught.value, DiesCalled)


@pytest.mark.parametrize(
    ("operation", "same"),
    [
        ("torch.mul(x, 1.)", True),
        ("torch.div(x, 1)", True),
        ("torch.add(x, 0, alpha=1)", True),
        ("torch.sub(x, 0., alpha=1)", True),
        ("torch.mul(x, 2)", False),
        ("torch.add(x, 0, alpha=2)", False),
        ("torch.mul(x, n)", False),  # a number that the source does not state
    ],
)
@pytest.mark.parametrize(("horizon", "has"), [("1.4.0", True), ("1.5.1", False)])
def test_an_operand_that_changes_nothing_gives_the_tensor_itself(operation: str, same: bool, horizon: str, has: bool) -> None:
    source = f"def forward(self, x: Tensor, n: int) -> Tensor:\n  y = {operation}\n  return torch.add_(y, 1)"
    given = Tensor(np.zeros(2, np.float32))
    program(source, f"reference@{horizon}", version=2).run("forward", (given, 1))
    assert (given.array == 1).all() == (same and has)


@pytest.mark.parametrize(("horizon", "refused"), [("1.2.0", True), ("1.3.1", False)])
def test_a_list_of_bools_that_is_given_is_no_tensor_in_1_2(horizon: str, refused: bool) -> None:
    source = "def forward(self,\n    x: List[bool]) -> Tensor:\n  y = annotate(List[bool], [])\n  z = torch.tensor(y)\n  return torch.tensor(x)\n"
    for given, words in ([], "length != 0 INTERNAL"), ([True], "^0 INTERNAL .* Unexpected list typeTrue"):
        module = described(source, f"reference@{horizon}")
        if refused:
            with pytest.raises(Raised, match=words):
                module.run("forward", (given,))
        else:
            assert module.run("forward", (given,)).array.tolist() == given
