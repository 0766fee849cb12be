"""Which releases load an archive, and the reasons why others do not."""

from __future__ import annotations

import pickle
import time
from typing import Any

import pytest

from torch_compat.archive import Damage
from torch_compat.formats.model import Call, Facts
from torch_compat.loadability import Judge, Needs, of, packaged_rules
from torch_compat.pickles import unpickle

RELEASES = packaged_rules().releases
NEWEST = RELEASES[-1]


def program(source: str, version: int = 3, **given: Any) -> Needs:
    names = ("data.pkl", "code/a.py", "constants.pkl", "version")
    sources = {"code/a.py": source}
    versions = {"file-format": version}
    return of(
        Facts("a.pt", 1, "torchscript", "zip", versions=versions, names=names, records=frozenset(names), sources=sources, **given)
    )


def checkpoint(data: bytes, version: int = 3) -> Needs:
    names = ("data.pkl", "version")
    pickles = {"data.pkl": unpickle(data, where="data.pkl")}
    versions = {"file-format": version}
    return of(Facts("a.pt", 1, "torch-save", "zip", versions=versions, names=names, records=frozenset(names), pickles=pickles))


def test_the_file_format_decides_where_nothing_else_does() -> None:
    needs = program("def f(x: Tensor) -> Tensor:\n  return torch.relu(x)\n")
    assert needs.readable_by == (("1.5.0", NEWEST),)
    assert str(needs.readers) == "1.5.0.."
    assert (needs.minimum_release, needs.maximum_release) == ("1.5.0", None)
    (reason,) = needs.reasons
    assert reason.needs == "file-format 3: torch 1.5.0 and newer"
    assert "record version" in reason.because


def test_an_operator_decides_by_its_schema_and_says_those_on_both_sides() -> None:
    needs = program("def f(x: Tensor) -> Tensor:\n  return torch.gelu(x, approximate='tanh')\n")
    assert needs.minimum_release == "1.12.0"
    reason = needs.reasons[0]
    assert reason.needs == "operator aten::gelu: torch 1.12.0 and newer"
    assert "record code/a.py: called as aten::gelu(_, approximate=str)" in reason.because
    assert "1.11.0 has aten::gelu(Tensor self) -> Tensor" in reason.because
    assert "1.12.0 has aten::gelu(Tensor self, *, str approximate" in reason.because


def test_an_operator_that_is_gone_gives_a_last_release() -> None:
    needs = program("def f(x: Tensor) -> Tensor:\n  return torch.rfft(x, 2, False, True)\n")
    assert needs.maximum_release == "1.7.1"


def test_an_older_schema_is_taken_below_the_version_that_changed_it() -> None:
    source = "def f() -> Tensor:\n  return torch.linspace(0, 1, None)\n"
    assert program(source).maximum_release is None
    assert program(source, 8).readable_by == ()
    assert not program(source, 8).readers


def test_a_bool_is_a_number_only_where_that_is_recorded() -> None:
    assert program("def f(x: Tensor) -> Tensor:\n  return torch.full([2], True)\n").minimum_release == "2.3.0"
    assert program("def f(x: Tensor) -> Tensor:\n  return torch.full([2], 1)\n").minimum_release == "1.5.0"


def test_an_operator_that_no_release_has_leaves_nobody() -> None:
    needs = program("def f(x: Tensor) -> Tensor:\n  return ops.mylib.go(x)\n")
    assert (needs.readable_by, needs.minimum_release, needs.maximum_release) == ((), None, None)
    assert needs.reasons[0].needs == "operator mylib::go: no release of torch"
    assert f"{NEWEST} has no such operator" in needs.reasons[0].because


def test_a_word_of_the_language_decides() -> None:
    needs = program("class A(Module):\n  x : NoneType\n")
    assert needs.minimum_release == "1.9.0"
    assert needs.reasons[0].needs == "word-nonetype: torch 1.9.0 and newer"


def test_a_version_that_is_not_known_leaves_nobody() -> None:
    needs = program("", 99)
    assert needs.readable_by == ()
    assert "no known release reads" in needs.reasons[0].because


def test_a_pickle_without_an_archive_is_loaded_by_nobody() -> None:
    needs = of(Facts("data.pkl", 1, "torch-save", "pickle"))
    assert needs.readable_by == ()
    assert needs.reasons[0].needs == "container pickle: no release of torch"


def test_a_record_that_is_missing_leaves_nobody() -> None:
    needs = program("", damage=[Damage("missing-record", "data/0", "has no record 'data/0' for a storage of 8 bytes")])
    assert needs.readable_by == ()
    assert needs.reasons[0].because == "has no record 'data/0' for a storage of 8 bytes"


def test_reasons_that_say_nothing_new_are_left_out() -> None:
    result = program("class A(Module):\n  __buffers__ = []\n  x : NoneType\n")
    assert [reason.needs.partition(":")[0] for reason in result.reasons] == ["word-nonetype"]


def test_bytecode_needs_the_overload_with_as_many_arguments() -> None:
    def mobile(call: Call) -> Needs:
        names = ("bytecode.pkl", "version")
        versions = {"file-format": 3, "bytecode": 6}
        return of(
            Facts("a.ptl", 1, "mobile", "zip", versions=versions, names=names, records=frozenset(names), calls=frozenset({call}))
        )

    assert mobile(Call("aten::add", "Tensor", 3, ())).minimum_release == "1.10.0"
    assert mobile(Call("aten::add", "Tensor", 9, ())).readable_by == ()
    assert mobile(Call("aten::add", "NoSuch", 2, ())).readable_by == ()


def test_a_global_of_torch_decides() -> None:
    needs = checkpoint(b"\x80\x02ctorch\nfloat8_e4m3fn\n.")
    assert needs.minimum_release == "2.1.0"
    assert "global torch.float8_e4m3fn: torch 2.1.0 and newer" in {reason.needs for reason in needs.reasons}


def test_a_global_of_somebody_else_leaves_nobody() -> None:
    needs = checkpoint(b"\x80\x02cultralytics.nn.tasks\nDetectionModel\n.")
    assert needs.readable_by == ()
    assert any("neither in torch nor in Python" in reason.because for reason in needs.reasons)


def test_a_global_of_numpy_is_expected_to_be_there_for_a_python_that_has_it() -> None:
    assert checkpoint(b"\x80\x02cnumpy.core.multiarray\nscalar\n.").readable_by == (("1.5.0", "2.5.1"),)
    assert checkpoint(b"\x80\x02cnumpy._core.multiarray\nscalar\n.").readable_by == (("1.7.1", "2.5.1"),)
    assert str(checkpoint(b"\x80\x02cnumpy._core.multiarray\nscalar\n.").readers) == "1.7.1..2.5.1"


def test_weights_only_refuses_by_default_from_2_6_on() -> None:
    needs = checkpoint(b"\x80\x02ctorch.nn.modules.linear\nLinear\n)\x81.")
    assert needs.maximum_release == "2.5.1"
    assert needs.weights_only.keys() == needs.weights_only_default.keys()
    assert next(release for release, default in needs.weights_only_default.items() if default) == "2.6.0"
    refusal = needs.weights_only[NEWEST]
    assert refusal is not None
    assert refusal.code == "global"
    assert any("defaults to weights_only=True" in reason.because for reason in needs.reasons)


def test_plain_values_are_taken_by_everybody() -> None:
    needs = checkpoint(pickle.dumps({"a": [1, "b", True]}, 2))
    assert needs.readable_by == (("1.5.0", NEWEST),)
    assert set(needs.weights_only.values()) == {None}
    assert "1.12.1" not in needs.weights_only


def test_torch_load_opens_no_packages() -> None:
    names = (".data/extern_modules", ".data/version")
    versions = {"file-format": 6}
    extra = {"extern_modules": ["torch.nn", "sys", "collections", "mine.own"]}
    needs = of(Facts("a.pt", 1, "package", "zip", versions=versions, names=names, records=frozenset(names), extra=extra))
    assert needs.weights_only == {}
    assert needs.reasons[0].needs == "module mine.own: no release of torch"


def packaged(data: bytes) -> Needs:
    names = (".data/extern_modules", ".data/version")
    pickles = {"model/object.pkl": unpickle(data, where="model/object.pkl")}
    facts = Facts(
        "a.pt", 1, "package", "zip", versions={"file-format": 6}, names=names, records=frozenset(names), pickles=pickles
    )
    facts.extra = {"extern_modules": ["torch"]}
    return of(facts)


def test_a_package_takes_the_names_of_torch_from_the_release() -> None:
    """As 2.1.2 refuses uint16 of 2.15.0: module 'torch._utils' has no attribute '_rebuild_tensor_v3'."""
    result = packaged(b"\x80\x02ctorch._utils\n_rebuild_tensor_v3\n.")
    assert "global torch._utils._rebuild_tensor_v3: torch 2.2.0 and newer" in {reason.needs for reason in result.reasons}
    assert not any("global" in reason.needs for reason in packaged(b"\x80\x02cmine\nModel\n.").reasons)


def test_several_numbers_in_a_byte_of_a_program() -> None:
    """As 2.13.0 and newer refuse quint4x2 of any release, and their own: they count a byte for each element."""
    data = b"\x80\x02(X\x07\x00\x00\x00storagectorch\nQUInt4x2Storage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ."
    needs = program("def f(x: Tensor) -> Tensor:\n  return x\n", pickles={"data.pkl": unpickle(data, where="data.pkl")})
    assert needs.readable_by == (("1.8.0", "2.12.1"),)


def test_a_dtype_without_a_storage_class_in_a_package() -> None:
    """As 2.2.2 to 2.6.0 refuse it: type object 'torch.storage.UntypedStorage' has no attribute 'dtype'."""
    needs = packaged(b"\x80\x02ctorch._utils\n_rebuild_tensor_v3\n(NNNNNNNtR.")
    assert needs.readable_by[0][0] == "2.7.0"


def test_what_is_kept_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch_compat.loadability.loading_releases.KEPT", 3)
    judge = Judge(packaged_rules())
    facts = Facts("a.pt", 1, "torchscript", "zip", versions={"file-format": 3})
    for number in range(9):
        facts.sources = {"code/a.py": f"torch.nothing_{number}(x)"}
        assert f"aten::nothing_{number}" in judge(facts).reasons[0].needs
        assert len(judge._calls) <= 3


def test_releases_that_were_never_asked_are_told() -> None:
    assert program("").stands_for["2.1.0"] == "2.1.2"


@pytest.mark.parametrize("source", ["def f(x: Tensor) -> Tensor:\n  return torch.add(x, x, alpha=1)\n" * 20])
def test_a_warm_verdict_is_quick(source: str) -> None:
    names = ("data.pkl", "code/a.py", "constants.pkl", "version")
    judge = Judge(packaged_rules())
    facts = Facts(
        "a.pt",
        1,
        "torchscript",
        "zip",
        versions={"file-format": 3},
        names=names,
        records=frozenset(names),
        sources={"code/a.py": source},
    )
    judge(facts)

    def seconds() -> float:
        start = time.process_time()
        for _ in range(200):
            judge(facts)
        return (time.process_time() - start) / 200

    assert min(seconds() for _ in range(5)) < 100e-6, "50 us is what it may take; twice that on a busy machine"


@pytest.mark.parametrize(
    ("module", "name", "readable"),
    [
        ("graphlib", "TopologicalSorter", ("1.7.1", "2.5.1")),
        ("zoneinfo", "ZoneInfo", ("1.7.1", "2.5.1")),
        ("tomllib", "loads", ("1.13.0", "2.5.1")),
        ("statistics", "NormalDist", ("1.5.0", "2.5.1")),
        ("numpy", "matrix", ("1.5.0", "2.5.1")),
        ("numpy.exceptions", "AxisError", ("1.7.1", "2.5.1")),
    ],
)
def test_a_name_is_looked_for_in_the_python_and_the_numpy_of_the_release(
    module: str, name: str, readable: tuple[str, str]
) -> None:
    """As the readers of the corpus do."""
    assert checkpoint(f"\x80\x02c{module}\n{name}\n.".encode("latin-1")).readable_by == (readable,)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("pathlib._local", "PosixPath"),
        ("collections", "NoSuchThing"),
        ("numpy", "float"),
        ("numpy.no", "such"),
        ("itertools", "batched"),
    ],
)
def test_a_name_that_no_python_and_no_numpy_has_leaves_nobody(module: str, name: str) -> None:
    needs = checkpoint(f"\x80\x02c{module}\n{name}\n.".encode("latin-1"))
    assert needs.readable_by == ()
    assert any(f"global {module}.{name}" in reason.needs for reason in needs.reasons)


def test_without_a_record_that_states_the_version_nobody_reads_a_zip_archive() -> None:
    names = ("data.pkl",)
    pickles = {"data.pkl": unpickle(b"\x80\x02}.", where="data.pkl")}
    needs = of(Facts("a.pt", 1, "torch-save", "zip", names=names, records=frozenset(names), pickles=pickles))
    assert needs.readable_by == ()
    assert "version-record: no release of torch" in {reason.needs for reason in needs.reasons}
