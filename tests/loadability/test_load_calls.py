"""Which call loads an archive, with which allowed globals, and whether it runs code."""

from __future__ import annotations

import argparse
import collections
import datetime as dt
import pickle
import re
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torch_compat.loadability
from torch_compat.formats.model import Call, Facts, StorageRecord
from torch_compat.loadability import Needs, of, packaged_rules
from torch_compat.loadability.load_calls import Way, _numpy_class, packaged_loading
from torch_compat.pickles import unpickle
from torch_compat.releases.release import Release
from torch_compat.releases.sets import ReleaseSet

NEWEST = packaged_rules().releases[-1]


def facts_of(data: bytes, container: str = "zip", *devices: str) -> Facts:
    names = ("data.pkl", "version") if container == "zip" else ()
    record = "data.pkl" if names else "pickle"
    pickles = {record: unpickle(data, where=record)}
    versions = {"file-format": 3} if names else {}
    facts = Facts("a.pt", 1, "torch-save", container, versions=versions, names=names, records=frozenset(names), pickles=pickles)
    facts.storages = [StorageRecord(str(at), "float32", 4, None, device=device) for at, device in enumerate(devices)]
    return facts


def saved(value: Any, *devices: str, protocol: int = 2) -> Needs:
    return of(facts_of(pickle.dumps(value, protocol), "zip", *devices))


def in_release(needs: Needs, release: str) -> list[Way]:
    asked = Release(release)
    return [way for way in needs.how_to_load if any(Release(first) <= asked <= Release(last) for first, last in way.releases)]


def codes(needs: Needs, release: str) -> list[str]:
    return [way.code for way in in_release(needs, release)]


def test_plain_values_need_no_more_than_the_safe_call() -> None:
    needs = saved({"a": 2.5, "b": 1})
    assert codes(needs, NEWEST) == codes(needs, "2.0.1") == ["torch.load(PATH, weights_only=True)"]
    assert codes(needs, "1.12.1") == ["torch.load(PATH)"]
    assert not any(way.runs_code or way.needs or way.safe_globals for way in needs.how_to_load)


def test_a_class_of_python_can_be_allowed_and_the_safe_call_comes_first() -> None:
    needs = saved({"args": argparse.Namespace(lr=0.1)})
    allowed = (
        "from argparse import Namespace; torch.serialization.add_safe_globals([Namespace]); torch.load(PATH, weights_only=True)"
    )
    unlimited = "torch.load(PATH, weights_only=False)"
    assert codes(needs, NEWEST) == codes(needs, "2.4.1") == [allowed, unlimited]
    assert codes(needs, "2.3.1") == [unlimited]
    assert codes(needs, "1.5.1") == ["torch.load(PATH)"]
    assert [way.runs_code for way in in_release(needs, NEWEST)] == [False, True]
    assert needs.readable_by[-1][1] == "2.5.1"  # which keeps its meaning: default arguments


def test_every_name_is_told_at_once() -> None:
    result = saved([argparse.Namespace(), dt.timedelta(1), uuid.UUID(int=1)])
    (way,) = [way for way in in_release(result, NEWEST) if way.safe_globals]
    assert [item.path for item in way.safe_globals] == ["argparse.Namespace", "datetime.timedelta", "uuid.UUID"]


def test_where_no_name_helps_the_safe_call_is_not_offered() -> None:
    result = saved(collections.defaultdict(list, {1: [2]}))  # setting its items is refused since 2.10
    assert any(way.safe_globals for way in in_release(result, "2.9.1"))
    assert [way.code for way in in_release(result, "2.10.0")] == ["torch.load(PATH, weights_only=False)"]
    protocol = saved(argparse.Namespace(), protocol=4)  # of whose opcodes some are refused
    assert not any(way.safe_globals for way in protocol.how_to_load)


@pytest.mark.parametrize("harmful", [b"cposix\nsystem\n(S'x'\ntR.", b"\x80\x02cbuiltins\neval\nU\x01x\x85R."])
def test_what_does_harm_is_never_proposed(harmful: bytes) -> None:
    needs = of(facts_of(harmful))
    assert needs.how_to_load
    assert all(way.runs_code and not way.safe_globals for way in needs.how_to_load)


@pytest.mark.parametrize("name", ["a.b; import os #", "a.b)", "lambda", "a b", "ünïcode"])
def test_a_name_that_is_no_plain_name_never_stands_in_code(name: str) -> None:
    needs = of(facts_of(b"\x80\x02cmine\n" + name.encode() + b"\n)\x81."))
    assert not any(way.safe_globals for way in needs.how_to_load)
    assert not any(name in way.code for way in needs.how_to_load)


def test_too_many_names_are_not_proposed() -> None:
    named = b"".join(b"cmine\nC%d\n)\x81" % at for at in range(101))
    assert not any(way.safe_globals for way in of(facts_of(b"\x80\x02(" + named + b"t.")).how_to_load)
    fewer = b"".join(b"cmine\nC%d\n)\x81" % at for at in range(100))
    assert any(way.safe_globals for way in of(facts_of(b"\x80\x02(" + fewer + b"t.")).how_to_load)


def test_scalars_of_numpy_need_the_classes_of_their_dtypes_too() -> None:
    result = saved([np.float64(1.5), np.int32(3)])
    (new,) = [way for way in in_release(result, "2.6.0") if way.safe_globals]
    assert [item.path for item in new.safe_globals][1:] == ["numpy.dtype", "numpy.dtypes.Float64DType", "numpy.dtypes.Int32DType"]
    path = new.safe_globals[0].path
    assert f"(scalar, {path!r})" in new.code  # its own name is another in numpy of another age
    (old,) = [way for way in in_release(result, "2.5.1") if way.safe_globals]
    assert "([scalar, dtype, Float64DType, Int32DType])" in old.code
    assert {need.package for need in old.needs if need.module == "numpy"} <= {"numpy<2", "numpy>=2"}


def test_names_are_imported_from_their_modules_whatever_hides_these() -> None:
    named = b"\x80\x02(ctorch.nn.utils.weight_norm\nWeightNorm\n)\x81cmine\nLinear\n)\x81ctorch.nn\nLinear\n)\x81cmine\nset\n)\x81cmine\nA.B\n)\x81t."
    way = next(way for way in of(facts_of(named)).how_to_load if way.safe_globals)
    *imports, added, _ = way.statements
    assert imports == [
        "from torch.nn.utils.weight_norm import WeightNorm",  # torch.nn.utils.weight_norm is a function
        "from mine import Linear, set as mine_set, A",
        "from torch.nn import Linear as torch_nn_Linear",
    ]
    assert added == "torch.serialization.add_safe_globals([WeightNorm, Linear, torch_nn_Linear, mine_set, (A.B, 'mine.A.B')])"


def test_a_nested_class_is_not_taken_for_a_class_of_a_module_of_that_name() -> None:
    codes_of = [of(facts_of(b"\x80\x02c%s\n)\x81." % named)).how_to_load[0].code for named in (b"mine.a\nB", b"mine\na.B")]
    assert ["from mine.a import B; " in codes_of[0], "from mine import a; " in codes_of[1]] == [True, True]


def test_the_state_of_an_object_of_unnamed_class_cannot_be_allowed() -> None:
    result = b"\x80\x02cnumpy.random._pickle\n__generator_ctor\n%s\x85R}b."
    assert not any(way.safe_globals for way in of(facts_of(result % b"U\x05PCG64")).how_to_load)
    named = of(facts_of(result % b"cnumpy.random._generator\nGenerator\n"))
    assert any(way.safe_globals for way in named.how_to_load)


def test_generators_of_numpy_2_need_numpy_2() -> None:
    result = saved(np.random.default_rng(0))
    packages = {module.module: module.package for module in result.beside}
    assert packages["numpy.random._pcg64"] == "numpy>=2.0"


def test_modules_are_named_with_their_packages() -> None:
    needs = of(facts_of(b"\x80\x02comegaconf.listconfig\nListConfig\n)\x81c__main__\nNet\n)\x81cmine.sub\nThing\n)\x81\x87."))
    told = {module.module: (module.package, module.because) for module in needs.beside}
    assert told["omegaconf.listconfig"] == ("omegaconf", "a version that has ListConfig")
    assert told["mine.sub"] == (None, "code from its author")
    assert "define" in told["__main__"][1]
    assert needs.readable_by == ()  # no release brings them
    assert codes(needs, NEWEST)[-1] == "torch.load(PATH, weights_only=False)"


def test_operators_of_an_extension_are_needed_and_leave_the_other_needs() -> None:
    names = ("data.pkl", "code/a.py", "constants.pkl", "version")
    sources = {"code/a.py": "def f(x: Tensor) -> Tensor:\n  return ops.torchvision.nms(x, x, 0.5)\n"}
    facts = Facts(
        "a.pt", 1, "torchscript", "zip", versions={"file-format": 3}, names=names, records=frozenset(names), sources=sources,
        calls=frozenset({Call("torchvision::nms", None, 3, ())}),
    )  # fmt: skip
    needs = of(facts)
    assert needs.readable_by == ()
    (way,) = needs.how_to_load
    assert (way.code, way.releases[0][0], way.runs_code) == ("import torchvision; torch.jit.load(PATH)", "1.5.0", False)
    assert [(need.module, need.package) for need in way.needs] == [("torchvision::", "torchvision")]


def test_a_program_that_sets_its_state_runs_when_it_is_loaded() -> None:
    names = ("data.pkl", "code/a.py", "constants.pkl", "version")
    sources = {"code/a.py": "class A(Module):\n  def __setstate__(self: __torch__.A, state: int) -> NoneType:\n    return None\n"}
    facts = Facts(
        "a.pt", 1, "torchscript", "zip", versions={"file-format": 3}, names=names, records=frozenset(names), sources=sources
    )
    assert [way.runs_code for way in of(facts).how_to_load] == [True]


def test_storages_on_other_devices_need_map_location() -> None:
    assert codes(saved({}, "cpu", "cuda:0"), NEWEST) == ["torch.load(PATH, weights_only=True, map_location='cpu')"]
    assert codes(saved({}, "cpu", "meta"), NEWEST) == ["torch.load(PATH, weights_only=True)"]


def test_a_bare_pickle_is_loaded_by_pickle_and_by_no_loader_of_torch() -> None:
    needs = of(facts_of(pickle.dumps({"a": 1}, 2), "pickle"))
    assert needs.weights_only == {}
    assert needs.readable_by == ()
    (way,) = needs.how_to_load
    assert (way.code, way.runs_code) == ("import pickle; pickle.load(open(PATH, 'rb'))", False)
    (named,) = of(facts_of(pickle.dumps(argparse.Namespace(), 2), "pickle")).how_to_load
    assert named.runs_code


def test_a_bare_pickle_whose_storages_are_elsewhere_is_loaded_by_nothing() -> None:
    assert of(facts_of(pickle.dumps({}, 2), "pickle", "cpu")).how_to_load == ()


def test_advisories_are_told_of_the_releases_that_can_load_the_file() -> None:
    results = {advisory.id: advisory for advisory in saved({}).advisories}
    assert results["CVE-2025-32434"].releases == (("1.13.0", "2.5.1"),)
    assert results["CVE-2026-24747"].releases[-1][1] == "2.9.1"
    assert of(facts_of(pickle.dumps({}, 2), "pickle")).advisories == ()


def test_archives_that_need_the_same_but_name_another_class_are_told_apart() -> None:
    needs, other = saved([argparse.Namespace(), 1]), saved([argparse.Namespace(), dt.timedelta(1)])
    assert needs.readable_by == other.readable_by
    assert needs.how_to_load != other.how_to_load


def test_the_packaged_tables_name_each_module_once() -> None:
    assert packaged_loading().packages["torchvision::"][0] == "torchvision"
    assert all(re.fullmatch(r"https://\S+", advisory.evidence) for advisory, _ in packaged_rules().advisories)
    assert packaged_rules().offer("safe-globals-by-name")[0] == packaged_rules().known.bits_of(ReleaseSet.parse("2.6.0.."))


def test_the_policy_has_each_ability_that_the_code_asks_for() -> None:
    sources = (Path(torch_compat.loadability.__file__).parent / name for name in ("load_calls.py", "loading_releases.py"))
    texts = "".join(path.read_text(encoding="utf-8") for path in sources)
    assert packaged_rules().offers.keys() - {"list-with-default", "prim-shape"} == set(
        re.findall(r'"((?:safe-globals|distributed)-[a-z-]+)"', texts)
    )


def test_an_ability_of_no_release_of_the_calendar_is_offered_by_none() -> None:
    assert not packaged_rules()._replace(offers={}).offer("safe-globals-by-name")[0]


@pytest.mark.parametrize(
    "code", ["b1", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "f16", "c8", "c16", "c32", "O", "U3", "S5", "V4", "M8", "m8"]
)
def test_the_class_of_a_numpy_dtype_is_the_one_that_numpy_has(code: str) -> None:
    name = _numpy_class(code)
    assert type(np.dtype(code)) is getattr(np.dtypes, f"{name}DType")


def test_a_dtype_that_is_not_known_is_not_guessed() -> None:
    assert [_numpy_class(code) for code in ("x8", "i3", "i", "", "f-8")] == [None] * 5
