from __future__ import annotations

import gc
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import torch_compat
from tests.state.archives import Call, Named, Storage, pickled, tensor, written
from torch_compat.errors import Corrupt, Unsupported, UsageError
from torch_compat.formats.facts import read_facts
from torch_compat.pickles import Described, Dict, Global
from torch_compat.state import (
    Absent,
    CompressedTensor,
    NestedTensor,
    QuantizedTensor,
    RawTensor,
    SparseTensor,
    SubclassTensor,
    TypedStorage,
    TypedTensor,
    load_state,
)

FIXTURES = Path(__file__).parents[2] / "fixtures"
FLOATS = np.array([1.5, -0.0, np.nan, -np.inf], "<f4")


def floats(key: str = "0", numel: int = 4) -> Storage:
    return Storage("FloatStorage", key, numel)


def base_of(array: Any) -> Any:
    while getattr(array, "base", None) is not None:
        array = array.base
    return array


# ---------------------------------------------------------------------------------------------------------- mapped, not copied


def test_arrays_are_read_only_views_of_the_file_that_share_memory_as_tensors_do(tmp_path: Path) -> None:
    big = np.arange(1 << 16, dtype="<f4")
    results = {"all": tensor(floats(numel=1 << 16), (1 << 16,), (1,)), "turned": tensor(floats(numel=1 << 16), (3, 2), (1, 3), 7)}
    state = load_state(written(tmp_path / "x.pt", results, {"0": big.tobytes()}))
    assert not state["all"].flags.writeable
    assert not state["all"].flags.owndata
    assert np.shares_memory(state["all"], state["turned"])
    assert state["turned"].strides == (4, 12)
    assert np.array_equal(state["turned"], [[7, 10], [8, 11], [9, 12]])
    with pytest.raises(ValueError, match="read-only"):
        state["all"][0] = 1


def test_an_array_keeps_the_file_mapped_when_all_else_is_gone(tmp_path: Path) -> None:
    path = written(tmp_path / "x.pt", [tensor(floats(numel=1 << 16), (1 << 16,), (1,))], {"0": bytes(1 << 18)})
    (array,) = load_state(path)
    gc.collect()
    path.unlink()
    assert not array.any()


def test_copied_arrays_may_be_written_to_and_still_share(tmp_path: Path) -> None:
    results = [tensor(floats(), (4,), (1,)), tensor(floats(), (2,), (1,), 2)]
    path = written(tmp_path / "x.pt", results, {"0": FLOATS.tobytes()})
    whole, part = load_state(path, mmap=False)
    whole[2] = 7
    assert part[0] == 7
    assert np.isnan(load_state(path)[0][2])


def test_memory_does_not_grow_with_storages(tmp_path: Path) -> None:
    """Ten times the memory that reading takes lies in storages; the peak of a process that maps them stays the same."""
    measure = """
import sys
sys.path[:0] = [sys.argv[2]]
import torch_compat
torch_compat.load_state(sys.argv[1])
with open("/proc/self/status") as status:
    print([line for line in status if line.startswith("VmHWM")][0].split()[1])
"""
    peaks = []
    for count in (1 << 10, 1 << 25):  # of floats
        path = tmp_path / f"{count}.pt"
        data = b"\x01" * (count * 4)
        written(path, [tensor(floats(numel=count), (count,), (1,))], {"0": data})
        del data
        arguments = [sys.executable, "-c", measure, str(path), str(FIXTURES.parent)]
        peaks.append(int(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout))
    assert peaks[1] - peaks[0] < 40 << 10  # KiB; the storage has 128 MiB


def test_what_must_not_be_copied_is_refused(tmp_path: Path) -> None:
    packed = written(tmp_path / "a.pt", [tensor(floats(), (4,), (1,))], {"0": FLOATS.tobytes()}, deflate=frozenset({"data/0"}))
    assert load_state(packed)[0].tobytes() == FLOATS.tobytes()
    with pytest.raises(Unsupported, match="its record is compressed") as caught:
        load_state(packed, mmap=True)
    assert caught.value.code == "not-mappable"
    with pytest.raises(Unsupported, match="conjugate"):
        load_state(FIXTURES / "torch-2.13.0/save_conjugates.pt", mmap=True)
    assert load_state(FIXTURES / "torch-2.13.0/save_floats.pt", mmap=True)["one"].shape == ()


# ------------------------------------------------------------------------------------------------------------ dtypes and orders


def test_dtypes_that_numpy_lacks_are_those_of_ml_dtypes_or_bits(tmp_path: Path) -> None:
    raw = bytes(range(16))
    bits = Storage("UntypedStorage", "0", 16)
    results = {
        name: tensor(bits, (16 // size,), (1,), dtype=name)
        for name, size in (
            ("uint16", 2),
            ("float8_e8m0fnu", 1),
            ("float4_e2m1fn_x2", 1),
            ("complex32", 4),
            ("bits16", 2),
            ("int4", 1),
        )
    }
    results["bfloat16"] = tensor(Storage("BFloat16Storage", "1", 8), (2, 4), (4, 1))
    state = load_state(written(tmp_path / "x.pt", results, {"0": raw, "1": raw}))
    assert state["bfloat16"].dtype == ml_dtypes.bfloat16
    assert state["bfloat16"].tobytes() == raw
    assert state["float8_e8m0fnu"].dtype == ml_dtypes.float8_e8m0fnu
    assert state["uint16"].tolist() == np.frombuffer(raw, "<u2").tolist()
    for name, dtype, shape in (
        ("complex32", np.float16, (4, 2)), ("bits16", np.uint16, (8,)), ("int4", np.uint8, (16,)), ("float4_e2m1fn_x2", np.uint8, (16,)),
    ):  # fmt: skip
        assert isinstance(state[name], RawTensor)
        assert (state[name].dtype, state[name].array.dtype, state[name].array.shape) == (name, dtype, shape)
        assert state[name].array.tobytes() == raw
    halves = state["float4_e2m1fn_x2"].unpacked()
    assert halves.shape == (16, 2)
    assert halves[:4].astype(float).tolist() == [[0, 0], [0.5, 0], [1, 0], [1.5, 0]]
    with pytest.raises(ValueError, match="int4"):
        state["int4"].unpacked()


@pytest.mark.parametrize("name", ["float32", "complex64", "int16", "bool"])
def test_the_other_byte_order_is_a_dtype_of_numpy(name: str, tmp_path: Path) -> None:
    kind = {"float32": "FloatStorage", "complex64": "ComplexFloatStorage", "int16": "ShortStorage", "bool": "BoolStorage"}[name]
    values = np.array([1, 0, 1], name)
    data = values.astype(values.dtype.newbyteorder(">")).tobytes()
    path = written(tmp_path / "x.pt", [tensor(Storage(kind, "0", 3), (3,), (1,))], {"0": data}, byteorder="big")
    (array,) = load_state(path, mmap=True)
    assert array.tolist() == values.tolist()
    assert not array.flags.owndata


def test_what_has_no_dtype_of_the_other_byte_order_is_turned_once(tmp_path: Path) -> None:
    values = np.array([1.5, -2, 3], ml_dtypes.bfloat16)
    storage = Storage("BFloat16Storage", "0", 3)
    results = [
        tensor(storage, (3,), (1,)),
        tensor(storage, (2,), (1,), 1),
        tensor(Storage("UntypedStorage", "1", 8), (2,), (1,), dtype="complex32"),
    ]
    pair = np.array([1.5, -2, 0.25, 4], ">f2").tobytes()
    path = written(tmp_path / "x.pt", results, {"0": values.view("u2").astype(">u2").tobytes(), "1": pair}, byteorder="big")
    whole, part, half = load_state(path)
    assert (whole.tolist(), part.tolist()) == ([1.5, -2, 3], [-2, 3])
    assert np.shares_memory(whole, part)
    assert half.array.tolist() == [[1.5, -2], [0.25, 4]]
    with pytest.raises(Unsupported, match="byte order"):
        load_state(path, mmap=True)


def test_conjugates_and_negatives_are_numbers_with_the_strides_of_the_view(tmp_path: Path) -> None:
    values = np.array([1 + 2j, -0.0 - 1j, 3, 4j], "<c8")
    storage = Storage("ComplexFloatStorage", "0", 4)
    whole = Storage("LongStorage", "1", 2)
    results = {
        "plain": tensor(storage, (4,), (1,)),
        "conj": tensor(storage, (2, 2), (1, 2), metadata={"conj": True}),
        "neg": tensor(storage, (2,), (2,), 1, metadata={"neg": True}),
        "both": tensor(storage, (4, 2), (1, 0), metadata={"conj": True, "neg": True}),
        "longs": tensor(whole, (2,), (1,), metadata={"neg": True}),
    }
    longs = np.array([5, -(2**63)], "<i8")
    state = load_state(written(tmp_path / "x.pt", results, {"0": values.tobytes(), "1": longs.tobytes()}))
    assert state["conj"].tobytes() == np.conj(values).reshape(2, 2).T.copy().tobytes()
    assert state["conj"].strides == (8, 16)
    assert state["neg"].tobytes() == (-values[1::2]).tobytes()
    assert state["both"].strides == (8, 0)
    assert state["both"][:, 1].tobytes() == (-np.conj(values)).tobytes()
    assert state["longs"].tolist() == [-5, -(2**63)]
    assert state["plain"].tobytes() == values.tobytes()
    assert not state["conj"].flags.writeable


# -------------------------------------------------------------------------------------------------------------- what is no array


def test_quantized_sparse_nested_and_wrapped_tensors() -> None:
    state = load_state(FIXTURES / "torch-2.13.0/save_quantized.pt")["torch.qint8"][0]
    assert isinstance(state, QuantizedTensor)
    assert (state.scheme, state.scale, state.zero_point, state.axis) == ("per_tensor_affine", 0.25, -3, None)
    assert state.int_repr.dtype == np.int8
    rows = load_state(FIXTURES / "torch-1.3.1/save_quantized_per_channel.pt")["rows"]
    assert (rows.scale.tolist(), rows.zero_point.tolist(), rows.axis) == ([0.5, 0.125], [3, -4], 0)
    sparse = load_state(FIXTURES / "torch-2.13.0/save_sparse_coo.pt")["hybrid"]
    assert isinstance(sparse, SparseTensor)
    assert (sparse.shape, sparse.indices.shape, sparse.values.shape) == ((4, 2), (1, 2), (2, 2))
    compressed = load_state(FIXTURES / "torch-2.13.0/save_sparse_csr.pt")["narrow"]
    assert isinstance(compressed, CompressedTensor)
    assert (compressed.layout, compressed.compressed.dtype, compressed.values.dtype) == ("sparse_csr", np.int32, np.float64)


def test_nested_tensors_are_views_of_one_buffer(tmp_path: Path) -> None:
    rows = [tensor(Storage("LongStorage", key, 2), (2, 1), (1, 1)) for key in ("1", "2")]
    parts = (tensor(floats(), (4,), (1,)), *rows, tensor(Storage("LongStorage", "3", 2), (2,), (1,)))
    numbers = {"1": [1, 3], "2": [1, 1], "3": [0, 1]}
    data = {key: np.array(value, "<i8").tobytes() for key, value in numbers.items()}
    nested = Call(Named("torch._utils", "_rebuild_nested_tensor"), parts)
    state = load_state(written(tmp_path / "x.pt", nested, {"0": FLOATS.tobytes(), **data}))
    assert isinstance(state, NestedTensor)
    assert [item.tobytes() for item in state.tensors] == [FLOATS[:1].tobytes(), FLOATS[1:].tobytes()]
    beyond = {**data, "3": np.array([0, 2], "<i8").tobytes()}
    with pytest.raises(Corrupt, match="storage '0'"):
        load_state(written(tmp_path / "y.pt", nested, {"0": FLOATS.tobytes(), **beyond}))


def test_a_class_that_wraps_tensors_is_described_with_arrays(tmp_path: Path) -> None:
    inner = tensor(floats(), (4,), (1,))
    args = (Named("some.place", "Wrapper"), Named("torch", "float32"), (4,), (1,), 0, Named("torch", "strided"), "cpu", False)
    wrapper = Call(Named("torch._utils", "_rebuild_wrapper_subclass"), args, state={"inner": inner})
    state = load_state(written(tmp_path / "x.pt", wrapper, {"0": FLOATS.tobytes()}))
    assert isinstance(state, SubclassTensor)
    assert state.type == Global("some.place", "Wrapper")
    assert state.state["inner"].tobytes() == FLOATS.tobytes()


def test_skipped_storages_are_absent_and_no_numbers_are_made_up(tmp_path: Path) -> None:
    results = {"a": tensor(floats(), (2, 2), (2, 1)), "b": tensor(floats("1"), (4,), (1,)), "s": floats()}
    state = load_state(written(tmp_path / "x.pt", results, {"0": 16, "1": FLOATS.tobytes()}))
    assert isinstance(state["a"], Absent)
    assert (state["a"].dtype, state["a"].shape, state["a"].strides) == ("float32", (2, 2), (2, 1))
    assert "skip_data" in state["a"].why
    assert isinstance(state["s"], Absent)
    assert state["b"].tobytes() == FLOATS.tobytes()


def test_a_bare_pickle_has_shapes_and_no_numbers(tmp_path: Path) -> None:
    (tmp_path / "data.pkl").write_bytes(pickled({"a": tensor(floats(), (2, 2), (2, 1)), "n": 1}))
    state = load_state(tmp_path / "data.pkl")
    assert isinstance(state["a"], Absent)
    assert state["n"] == 1


def test_types_come_along_when_asked_for(tmp_path: Path) -> None:
    parameter = Call(Named("torch._utils", "_rebuild_parameter"), (tensor(floats(), (4,), (1,)), True, {}))
    typed = load_state(written(tmp_path / "x.pt", [parameter, floats()], {"0": FLOATS.tobytes()}), with_types=True)
    first, second = typed
    assert isinstance(first, TypedTensor)
    assert (first.parameter, first.requires_grad, first.storage, first.device) == (True, True, "0", "cpu")
    assert isinstance(second, TypedStorage)
    assert np.shares_memory(first.array, second.array)


# ------------------------------------------------------------------------------------------------------------------- everything


def test_shared_objects_stay_shared_and_cycles_stay_cycles() -> None:
    parent, itself = load_state(FIXTURES / "torch-2.13.0/save_cycles.pt")
    assert parent["children"][0] is parent["children"][1]
    assert parent["children"][0]["parent"] is parent
    assert itself[2] is itself
    assert np.shares_memory(parent["weights"], parent["children"][0]["weights"])
    assert itself[0] is parent["weights"]


def test_ordered_dictionaries_are_dictionaries_and_modules_descriptions() -> None:
    state = load_state(FIXTURES / "torch-1.5.1/save_checkpoint.pt")
    assert isinstance(state["model"], Dict)
    assert list(state["model"])[:2] == ["0.weight", "0.bias"]
    module = load_state(FIXTURES / "torch-1.0.0/whole_module.pt")
    assert isinstance(module, Described)
    assert module.target.module.startswith("torch.nn.modules")


@pytest.mark.parametrize("kind", ["tuple", "list", "state"])
def test_deep_nesting_does_not_recurse(kind: str, tmp_path: Path) -> None:
    depth = 900  # below the bound of the unpickler in any form, above what recursion would take in several frames each
    leaf = b"cbuiltins\nint\n"
    if kind == "state":  # tensors, each an attribute of the one around it
        code = leaf
        for _ in range(depth // 2):
            item = tensor(floats(), (4,), (1,))
            code = pickled(item)[2:-1] + code + b"\x85b"
    else:
        code = {"tuple": leaf + b"\x85" * depth, "list": b"](" * depth + leaf + b"e" * depth}[kind]
    for typed in (False, True):
        load_state(written(tmp_path / "x.pt", b"\x80\x02" + code + b".", {"0": FLOATS.tobytes()}), with_types=typed)


def test_what_is_dangerous_is_described_and_does_nothing(tmp_path: Path) -> None:
    target = tmp_path / "made-by-the-pickle"
    path = written(tmp_path / "x.pt", {"a": Call(Named("os", "mkdir"), (str(target),))}, {})
    state = load_state(path)
    assert isinstance(state["a"], Described)
    assert state["a"].target == Global("os", "mkdir")
    assert not target.exists()


def test_numpy_of_the_file_is_numpy_again(tmp_path: Path) -> None:
    values = [
        np.array([[1, 2], [3, 4]], ">i2"), np.array([1.5], "f8").T, np.array(["2020-02-29"], "M8[D]"), np.array(["ab"]),
        np.zeros(2, [("a", "<f4"), ("b", ">i2", (2,))]), np.array([1, None], object), np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.array(0.5), np.zeros((0, 3)),
    ]  # fmt: skip
    path = written(tmp_path / "x.pt", pickle.dumps([*values, np.float32(1.5), np.dtype("<f4")], 2), {})
    state = load_state(path)
    for wanted, result in zip(values, state, strict=False):
        assert result.dtype == (wanted.dtype if wanted.dtype.fields else wanted.dtype.newbyteorder("="))
        assert result.shape == wanted.shape
        assert str(result.tolist()) == str(wanted.tolist())
    assert state[-2:] == [np.float32(1.5), np.dtype("<f4")]


def test_tensors_can_be_keys(tmp_path: Path) -> None:
    item = tensor(floats(), (4,), (1,))
    state = load_state(written(tmp_path / "x.pt", {(item, 1): 2, item: 3}, {"0": FLOATS.tobytes()}))
    keys = list(state)
    assert isinstance(keys[0][0], TypedTensor)
    assert isinstance(keys[1], TypedTensor)


# ---------------------------------------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("made", "code"),
    [
        (tensor(floats(), (5,), (1,)), "outside-storage"),
        (tensor(floats(), (2, 2), (4, 1)), "outside-storage"),
        (tensor(floats(), (4,), (1,), 1), "outside-storage"),
        (tensor(floats(), (2**62,), (1,)), "outside-storage"),
        (tensor(floats(), (2,), (-1,), 3), "bad-tensor"),
        (tensor(floats(numel=5), (4,), (1,)), "size-disagrees"),
        (tensor(floats(numel=3), (3,), (1,)), "size-disagrees"),
        (floats(numel=1 << 40), "size-disagrees"),
        (tensor(floats("7"), (4,), (1,)), "missing-record"),
        (tensor(floats(), (2,), (1,), dtype="float64"), None),
        (tensor(floats(), (3,), (1,), dtype="float64"), "outside-storage"),
    ],
)
def test_a_tensor_beyond_its_storage_is_corrupt_and_names_the_key(made: Any, code: str | None, tmp_path: Path) -> None:
    path = written(tmp_path / "x.pt", {"a": made}, {"0": FLOATS.tobytes()})
    if code is None:
        assert load_state(path)["a"].tobytes() == FLOATS.tobytes()
        return
    with pytest.raises(Corrupt) as caught:
        load_state(path)
    assert caught.value.code == code
    assert any(name in str(caught.value) for name in ("storage '0'", "data/7", "data/0"))


def test_views_that_would_cost_more_than_their_storage_are_refused(tmp_path: Path) -> None:
    longs, huge = Storage("LongStorage", "1", 2), 1 << 40
    rows = tensor(longs, (huge, 1), (0, 0))
    parts = (tensor(floats(), (4,), (1,)), rows, rows, tensor(longs, (huge,), (0,)))
    device = (tensor(floats(), (huge,), (0,)), Named("torch", "float64"), "xla:0", False)
    for result in (
        Call(Named("torch._utils", "_rebuild_nested_tensor"), parts),
        Call(Named("torch._utils", "_rebuild_device_tensor_from_cpu_tensor"), device),
        tensor(Storage("BoolStorage", "2", 4), (4,), (1,), metadata={"neg": True}),
    ):
        path = written(tmp_path / "x.pt", result, {"0": FLOATS.tobytes(), "1": bytes([1] * 16), "2": bytes([1] * 4)})
        with pytest.raises(Corrupt) as caught:
            load_state(path)
        assert caught.value.code == "bad-tensor"


def test_many_conjugate_views_of_a_storage_need_one_copy(tmp_path: Path) -> None:
    storage = Storage("ComplexFloatStorage", "0", 2)
    results = [tensor(storage, (2,), (1,), metadata={"conj": True}) for _ in range(3)]
    state = load_state(written(tmp_path / "x.pt", results, {"0": np.array([1j, 2], "<c8").tobytes()}))
    assert all(np.shares_memory(state[0], item) for item in state)
    assert state[2].tolist() == [-1j, 2]


def test_a_device_tensor_saved_as_numpy_has_its_own_dtype(tmp_path: Path) -> None:
    dtype = Call(Named("numpy", "dtype"), ("f4", False, True), state=(3, "<", None, None, None, -1, -1, 0))
    empty = Call(
        Named("numpy.core.multiarray", "_reconstruct"),
        (Named("numpy", "ndarray"), (0,), b"b"),
        state=(1, (4,), dtype, False, FLOATS.tobytes()),
    )
    args = (empty, Named("torch", "bfloat16"), "xla:0", False)
    state = load_state(written(tmp_path / "x.pt", Call(Named("torch._utils", "_rebuild_device_tensor_from_numpy"), args), {}))
    assert state.dtype == ml_dtypes.bfloat16
    assert state[0] == 1.5


def test_an_empty_tensor_lies_nowhere(tmp_path: Path) -> None:
    results = [tensor(floats(), (0, 3), (3, 1), 99), tensor(floats("1", 0), (0,), (1,))]
    first, second = load_state(written(tmp_path / "x.pt", results, {"0": FLOATS.tobytes(), "1": b""}))
    assert (first.shape, second.shape) == ((0, 3), (0,))


def test_what_numpy_has_no_shape_for_is_said(tmp_path: Path) -> None:
    path = written(tmp_path / "x.pt", [tensor(floats(), (2**62,), (0,))], {"0": FLOATS.tobytes()})
    with pytest.raises(Unsupported) as caught:
        load_state(path)
    assert caught.value.code == "numpy-limits"


def test_a_changed_byte_in_a_record_that_is_read_is_corrupt_and_named(tmp_path: Path) -> None:
    whole = FIXTURES / "torch-2.13.0/save_floats.pt"
    source, sound = whole.read_bytes(), load_state(whole)
    places = {storage.key: storage.offset or 0 for storage in read_facts(whole).storages}
    path = tmp_path / "x.pt"
    for key, place in places.items():
        path.write_bytes(source[: place + 2] + bytes([source[place + 2] ^ 1]) + source[place + 3 :])
        with pytest.raises(Corrupt) as caught:
            load_state(path)
        assert f"record 'data/{key}'" in str(caught.value)
    unseen = 0
    for position in range(0, len(source), 23):
        path.write_bytes(source[:position] + bytes([source[position] ^ 0x10]) + source[position + 1 :])
        try:
            state = load_state(path)
        except (Corrupt, Unsupported):
            continue
        unseen += 1  # in a record that nothing here reads
        assert {key: array.tobytes() for key, array in state.items()} == {key: array.tobytes() for key, array in sound.items()}
    assert 0 < unseen < len(source) / 23 / 2


@pytest.mark.parametrize("name", ["torch-2.13.0/div.pt", "torch-2.13.0/package.pt", "torch-2.13.0/mobile.ptl"])
def test_other_families_are_named(name: str) -> None:
    with pytest.raises(Unsupported) as caught:
        load_state(FIXTURES / name)
    assert caught.value.code == "not-torch-save"


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        torch_compat.load_state(tmp_path / "none.pt")


def test_importing_the_package_and_inspecting_import_no_numpy() -> None:
    code = "import sys, torch_compat; torch_compat.inspect(sys.argv[1]); assert 'numpy' not in sys.modules, 'numpy'"
    arguments = [sys.executable, "-c", code, str(FIXTURES / "torch-2.13.0/save_floats.pt")]
    subprocess.run(arguments, check=True, cwd=FIXTURES.parent)
