"""Pickles of plain values give the same values as Python; tensors, storages and everything else are represented by type."""

from __future__ import annotations

import collections
import fractions
import math
import mmap
import pickle
import pickletools
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_compat.errors import Corrupt, Unsafe
from torch_compat.pickles import (
    Deque,
    Described,
    Device,
    Dict,
    Global,
    ModuleSource,
    NumpyArray,
    NumpyDtype,
    NumpyScalar,
    PersistentId,
    PickleLimits,
    Size,
    Storage,
    Tensor,
    unpickle,
)
from torch_compat.pickles import machine as machine_module
from torch_compat.pickles.machine import CORE
from torch_compat.pickles.opcodes import OPCODES

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def read(data: bytes | memoryview, **options: Any) -> Any:
    return unpickle(data, where="file, record", **options).value


def same(value: Any, expected: Any) -> bool:
    """Equal, of equal types all the way down, bit by bit for floats."""
    if type(value) is not type(expected):
        return False
    if isinstance(expected, float):
        return struct.pack("<d", value) == struct.pack("<d", expected)
    if isinstance(expected, complex):
        return same(value.real, expected.real) and same(value.imag, expected.imag)
    if isinstance(expected, (list, tuple)):
        return len(value) == len(expected) and all(map(same, value, expected))
    if isinstance(expected, dict):
        return same(list(value), list(expected)) and same(list(value.values()), list(expected.values()))
    return bool(value == expected)


SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.binary()
    | st.text(st.characters(codec=None)) | st.binary().map(bytearray) | st.builds(range, st.integers(-9, 9), st.integers(-9, 9))
)  # fmt: skip
KEYS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda keys: st.lists(keys, max_size=3).map(tuple) | st.frozensets(keys, max_size=3),
    max_leaves=5,
)
VALUES = st.recursive(
    SCALARS,
    lambda values: (
        st.lists(values) | st.lists(values).map(tuple) | st.dictionaries(KEYS, values) | st.sets(KEYS) | st.frozensets(KEYS)
    ),
    max_leaves=20,
)


@given(VALUES, st.sampled_from(PROTOCOLS))
def test_plain_values_come_out_as_python_gives_them(value: Any, protocol: int) -> None:
    data = pickle.dumps(value, protocol)
    unpickled = unpickle(data + b"rest", where="file")
    assert same(unpickled.value, pickle.loads(data))
    assert unpickled.end == len(data)
    assert unpickled.protocol == (protocol if protocol >= 2 else 0)


@given(st.lists(st.text(min_size=50) | st.integers() | st.binary(min_size=100), max_size=40), st.sampled_from(PROTOCOLS))
def test_views_are_read_in_pieces(value: list[Any], protocol: int) -> None:
    data = pickle.dumps(value, protocol)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(machine_module, "WINDOW", 64)
        patched.setattr(machine_module, "STRIDE", 16)
        unpickled = unpickle(memoryview(b"before" + data + b"behind"), 6, where="file")
    assert same(unpickled.value, value)
    assert unpickled.end == len(data) + 6


def test_storages_behind_a_pickle_are_not_copied(tmp_path: Any) -> None:
    path = tmp_path / "sparse"
    data = pickle.dumps(["key"], 2)
    with path.open("wb") as stream:
        stream.write(data)
        stream.truncate(1 << 33)
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as view:
        assert read(view) == ["key"]


def test_what_is_shared_stays_shared_and_what_contains_itself_does() -> None:
    inner: list[Any] = []
    value: dict[str, Any] = {"a": inner, "b": inner}
    inner.append(value)
    for protocol in PROTOCOLS:
        result = read(pickle.dumps(value, protocol))
        assert result["a"] is result["b"]
        assert result["a"][0] is result


def test_every_opcode_of_python_is_known() -> None:
    assert {ord(opcode.code): opcode.name for opcode in pickletools.opcodes} == OPCODES
    assert set(OPCODES.values()) >= CORE


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_containers_of_the_standard_library(protocol: int) -> None:
    ordered: Any = collections.OrderedDict([("a", 1)])
    ordered._metadata = {"version": 1}
    result = read(pickle.dumps(ordered, protocol))
    assert (type(result), result, result.type, result.state) == (
        Dict, {"a": 1}, Global("collections", "OrderedDict"), {"_metadata": {"version": 1}},
    )  # fmt: skip
    counted = read(pickle.dumps(collections.Counter("aab"), protocol))
    assert counted == {"a": 2, "b": 1}
    assert counted.type.path == "collections.Counter"
    default = read(pickle.dumps(collections.defaultdict(list, {1: [2]}), protocol))
    assert default == {1: [2]}
    assert default.factory == Global("builtins", "list")
    deque = read(pickle.dumps(collections.deque([1, 2], 5), protocol))
    assert type(deque) is Deque
    assert (list(deque), deque.maxlen) == ([1, 2], 5)
    result = read(pickle.dumps(slice(1, None, 2), protocol))
    assert result == slice(1, None, 2)


class Mine:
    def __init__(self) -> None:
        self.a = 1


class MyList(list[Any]):
    pass


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_objects_of_unknown_classes_are_described(protocol: int) -> None:
    described = read(pickle.dumps(Mine(), protocol))
    assert type(described) is Described
    assert (described.kind, described.target, described.args, described.state) == (
        "newobj",
        Global(__name__, "Mine"),
        (),
        {"a": 1},
    )
    listed = read(pickle.dumps(MyList([1, 2]), protocol))
    assert listed.items == [1, 2] or listed.args == ([1, 2],)
    fraction = read(pickle.dumps(fractions.Fraction(1, 3), protocol))
    assert (fraction.kind, fraction.target) == ("reduce", Global("fractions", "Fraction"))
    assert read(pickle.dumps(math.sin, protocol)) == Global("math", "sin")


def test_classes_of_old_are_instances() -> None:
    described = read(b"(iname\nClass\np0\n(dp1\nS'a'\np2\nI1\nsb.")
    assert (described.kind, described.target.path, described.state) == ("instance", "name.Class", {"a": 1})
    described = read(b"(cname\nClass\nI5\no.")
    assert (described.kind, described.args) == ("instance", (5,))


def test_names_of_python_2_are_translated() -> None:
    assert read(b"\x80\x02c__builtin__\nxrange\n.") == Global("builtins", "range")
    assert read(b"\x80\x04c__builtin__\nxrange\n.") == Global("__builtin__", "xrange")
    assert read(b"\x80\x02ccopy_reg\n_reconstructor\n(cm\nC\nc__builtin__\nobject\nNtR.").target == Global("m", "C")


def test_texts_of_python_2_are_texts_where_they_can_be() -> None:
    assert read(b"U\x03abc.") == "abc"
    assert read(b"U\x01\xff.") == b"\xff"
    assert read(b"T\x03\0\0\0abc.") == "abc"
    assert read(rb"S'a\x41'" + b"\n.") == "aA"


# ---------------------------------------------------------------------------------------------------------------------- tensors

STORAGE = b"((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\x000X\x03\0\0\0cpuK\x06tQ"


def call(function: str, arguments: bytes) -> bytes:
    module, _, name = function.rpartition(".")
    return b"\x80\x02c" + module.encode() + b"\n" + name.encode() + b"\n(" + arguments + b"tR."


V2 = STORAGE.replace(b"((", b"(", 1) + b"K\x00K\x02K\x03\x86K\x03K\x01\x86\x89ccollections\nOrderedDict\n)R"


def test_a_tensor() -> None:
    unpickled = unpickle(call("torch._utils._rebuild_tensor_v2", V2), where="file")
    tensor = unpickled.value
    assert type(tensor) is Tensor
    assert (tensor.dtype, tensor.shape, tensor.strides, tensor.offset) == ("float32", (2, 3), (3, 1), 0)
    assert (tensor.device, tensor.layout, tensor.requires_grad, tensor.parameter) == ("cpu", "strided", False, False)
    assert (tensor.numel, tensor.span, tensor.fits) == (6, (0, 24), True)
    storage = tensor.storage
    assert storage is not None
    assert (storage.type_name, storage.key, storage.numel, storage.nbytes) == ("torch.FloatStorage", "0", 6, 24)
    assert unpickled.storages == (storage,)
    assert unpickled.arities == {("torch._utils._rebuild_tensor_v2", 6)}
    assert [global_.path for global_ in unpickled.globals] == [
        "torch._utils._rebuild_tensor_v2", "torch.FloatStorage", "collections.OrderedDict",
    ]  # fmt: skip


def test_bits_that_stand_for_the_conjugate() -> None:
    tensor = read(call("torch._utils._rebuild_tensor_v2", V2 + b"}(X\x04\0\0\0conj\x88u"))
    assert (tensor.conj, tensor.neg) == (True, False)


def test_a_dtype_beside_an_untyped_storage() -> None:
    untyped = V2.replace(b"ctorch\nFloat", b"ctorch.storage\nUntyped")
    tensor = read(call("torch._utils._rebuild_tensor_v3", untyped + b"ctorch\nuint16\n"))
    assert (tensor.dtype, tensor.storage.nbytes, tensor.fits) == ("uint16", 6, False)


def test_a_parameter_and_a_subclass() -> None:
    inner = call("torch._utils._rebuild_tensor_v2", V2)[2:-1]
    parameter = read(call("torch._utils._rebuild_parameter", inner + b"\x88}"))
    assert (parameter.parameter, parameter.requires_grad) == (True, True)
    stated = read(call("torch._utils._rebuild_parameter_with_state", inner + b"\x88}}"))
    assert stated.state == {}
    arguments = b"ctorch._utils\n_rebuild_tensor_v2\ncmine\nTensor\n(" + V2 + b"t}"
    for module in ("torch._tensor", "torch.tensor"):
        result = unpickle(call(f"{module}._rebuild_from_type", arguments), where="file")
        assert (result.value.subclass, result.value.state) == (Global("mine", "Tensor"), {})
        assert result.arities == {(f"{module}._rebuild_from_type", 4), ("torch._utils._rebuild_tensor_v2", 6)}
    parameter = read(
        call("torch._tensor._rebuild_from_type_v2", arguments.replace(b"cmine\nTensor", b"ctorch.nn.parameter\nParameter"))
    )
    assert (parameter.parameter, parameter.subclass) == (True, None)


def test_sparse_tensors() -> None:
    inner = call("torch._utils._rebuild_tensor_v2", V2)[2:-1]
    layout = b"ctorch.serialization\n_get_layout\n(X\x10\0\0\0torch.sparse_cootR"
    tensor = read(call("torch._utils._rebuild_sparse_tensor", layout + b"(" + inner + inner + b"K\x05\x85\x88t"))
    assert (tensor.layout, tensor.shape, tensor.parts["coalesced"], tensor.dtype) == ("sparse_coo", (5,), True, "float32")
    layout = layout.replace(b"coo", b"bsc")
    tensor = read(call("torch._utils._rebuild_sparse_tensor", layout + b"(" + inner * 3 + b"K\x05\x85t"))
    assert (tensor.layout, list(tensor.parts)) == ("sparse_bsc", ["ccol_indices", "row_indices", "values"])
    layout = layout.replace(b"bsc", b"csr")
    tensor = read(call("torch._utils._rebuild_sparse_csr_tensor", layout + b"(" + inner * 3 + b"K\x05\x85t"))
    assert list(tensor.parts) == ["crow_indices", "col_indices", "values"]


def test_quantized_tensors() -> None:
    storage = V2.replace(b"FloatS", b"QInt8S").split(b"ccollections")[0][:-1]
    tensor = read(call("torch._utils._rebuild_qtensor", storage + b"(ctorch\nper_tensor_affine\nG?\xe0\0\0\0\0\0\0K\x03t\x89}"))
    assert (tensor.dtype, tensor.quantizer) == ("qint8", ("per_tensor_affine", 0.5, 3))
    tensor = read(call("torch._utils._rebuild_qtensor", storage + b"G?\xe0\0\0\0\0\0\0K\x03\x88}"))
    assert (tensor.quantizer, tensor.requires_grad) == (("per_tensor_affine", 0.5, 3), True)


def test_tensors_without_a_storage() -> None:
    inner = call("torch._utils._rebuild_tensor_v2", V2)[2:-1]
    meta = read(call("torch._utils._rebuild_meta_tensor_no_storage", b"ctorch\nfloat16\nK\x02\x85K\x01\x85\x89"))
    assert (meta.device, meta.dtype, meta.storage, meta.fits) == ("meta", "float16", None, True)
    wrapped = read(call(
        "torch._utils._rebuild_wrapper_subclass",
        b"cmine\nTensor\nctorch\ndouble\nK\x02\x85K\x01\x85K\x00ctorch\nstrided\nX\x03\0\0\0cpu\x88",
    ))  # fmt: skip
    assert (wrapped.subclass, wrapped.dtype, wrapped.device) == (Global("mine", "Tensor"), "float64", "cpu")
    nested = read(call("torch._utils._rebuild_nested_tensor", inner * 4))
    assert (nested.layout, list(nested.parts)) == ("nested", ["buffer", "sizes", "strides", "offsets"])
    copied = read(call("torch._utils._rebuild_device_tensor_from_cpu_tensor", inner + b"ctorch\nfloat\nX\x03\0\0\0hpu\x89"))
    assert (copied.device, copied.shape, type(copied.parts["data"])) == ("hpu", (2, 3), Tensor)


def test_storages_of_streams_and_their_parts() -> None:
    pid = b"(X\x07\0\0\0storagectorch.cuda\nHalfStorage\nX\x01\0\0\x00aX\x06\0\0\0cuda:0K\x0a%stQ"
    assert read(pid.replace(b"%s", b"N") + b".").location == "cuda:0"
    result = unpickle(pid.replace(b"%s", b"X\x01\0\0\0bK\x02K\x03\x87") + b".", where="file")
    view = result.value
    assert type(view) is Storage
    assert (view.key, view.offset, view.numel, view.nbytes, view.root) == ("b", 2, 3, 6, result.storages[0])


def test_one_storage_for_one_key() -> None:
    assert len(unpickle(b"(" + STORAGE[1:] + STORAGE[1:] + b"l.", where="file").storages) == 1
    other = STORAGE[1:].replace(b"Float", b"Int")
    assert [storage.dtype for storage in unpickle(b"(" + STORAGE[1:] + other + b"l.", where="file").storages] == [
        "float32",
        "int32",
    ]


def test_other_persistent_ids() -> None:
    unpickled = unpickle(b"(X\x06\0\0\0modulecm\nC\nX\x04\0\0\0fileX\x04\0\0\0texttQ)\x81.", where="file")
    assert (unpickled.value.target, type(unpickled.sources[0]), unpickled.sources[0].source) == (
        Global("m", "C"),
        ModuleSource,
        "text",
    )
    unpickled = unpickle(b"(X\x0e\0\0\0reduce_packageK\x01tQ.", where="file")
    assert type(unpickled.value) is PersistentId
    assert unpickled.value.pid == ("reduce_package", 1)
    assert type(read(b"P12\n.")) is PersistentId
    assert read(b"P12\n.", persistent=int) == 12
    assert read(b"K\x05Q.", persistent=lambda pid: pid + 1) == 6


def test_values_of_torch_that_are_no_tensors() -> None:
    assert read(b"ctorch\nfloat32\n.") == Global("torch", "float32")
    size = read(call("torch.Size", b"K\x02K\x03\x86"))
    assert (type(size), size) == (Size, (2, 3))
    assert type(read(b"ctorch\nSize\n(K\x02K\x03\x86t\x81.")) is Size
    assert read(call("torch.device", b"X\x04\0\0\0cudaK\x01")) == Device("cuda", 1)
    assert str(read(call("torch.device", b"X\x06\0\0\0cuda:2"))) == "cuda:2"
    assert read(call("torch.jit._pickle.restore_type_tag", b"]X\x09\0\0\0List[int]")) == []
    inner = read(call("torch.storage._load_from_bytes", b"B\x02\0\0\0ab"))
    assert (inner.target.path, inner.args) == ("torch.storage._load_from_bytes", (b"ab",))


def test_values_of_numpy() -> None:
    numpy = pytest.importorskip("numpy")
    for protocol in PROTOCOLS:
        array = read(pickle.dumps(numpy.arange(6, dtype=">i4").reshape(2, 3), protocol))
        assert type(array) is NumpyArray
        assert (array.shape, str(array.dtype), array.fortran) == ((2, 3), ">i4", False)
        assert bytes(array.data) == numpy.arange(6, dtype=">i4").tobytes()
        scalar = read(pickle.dumps(numpy.float64(1.5), protocol))
        assert type(scalar) is NumpyScalar
        assert (str(scalar.dtype), scalar.data) == ("<f8", struct.pack("<d", 1.5))
        assert type(read(pickle.dumps(numpy.dtype([("a", "f4")]), protocol))) is NumpyDtype


# ----------------------------------------------------------------------------------------------------------------------- limits


WEAK = [pickle.dumps(1 << 61 + number, 2)[2:-1] for number in range(11)]
"""Opcodes of integers whose hashes a pickle can choose."""


@pytest.mark.parametrize(("before", "after", "behind"), [
    (b"}(", b"N", b"u."), (b"(", b"N", b"d."), (b"\x8f(", b"", b"\x90."), (b"(", b"", b"\x91."),
])  # fmt: skip
def test_keys_are_counted_wherever_they_are_hashed(before: bytes, after: bytes, behind: bytes) -> None:
    data = [before + b"".join(key + after for key in WEAK[:count]) + behind for count in (10, 11)]
    assert len(unpickle(data[0], where="file", limits=PickleLimits(weak_keys=10)).value) == 10
    with pytest.raises(Unsafe) as raised:
        unpickle(data[1], where="file", limits=PickleLimits(weak_keys=10))
    assert raised.value.code == "too-large"


@pytest.mark.parametrize(("limits", "data"), [
    (PickleLimits(operations=100), b"N" * 200 + b"."),
    (PickleLimits(objects=100), b"]" * 200 + b"."),
    (PickleLimits(objects=100), b"(" * 200 + b"N."),
    (PickleLimits(memo=100), b"N" + b"\x94" * 200 + b"."),
    (PickleLimits(depth=100), b")" + b"\x85" * 200 + b"."),
    (PickleLimits(copied=1), b"\x80\x02c_codecs\nencode\nq\0X\x40\0\0\0" + b"a" * 64 + b"\x85q\1R0h\0h\1R."),
    (PickleLimits(weak_keys=10), pickle.dumps({1 << 61 + number: 0 for number in range(11)})),
])  # fmt: skip
def test_limits(limits: PickleLimits, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_module, "STRIDE", 16)
    with pytest.raises(Unsafe) as raised:
        unpickle(data, where="file", limits=limits)
    assert raised.value.code in {"too-large", "too-deep"}


def test_texts_are_no_operations() -> None:
    value = ["a" * 1000] * 3 + ["b" * 5000]
    assert unpickle(pickle.dumps(value), where="file", limits=PickleLimits(operations=100)).value == value


def test_what_is_put_twice_in_the_memo_can_be_taken_from_both_places() -> None:
    assert read(b"\x80\x02]q\0q\1h\0h\1\x86.") == ([], [])
    assert read(b"\x80\x02]q\0r\1\0\0\0q\2h\0h\2\x86.") == ([], [])


@pytest.mark.parametrize(
    ("data", "code", "offset"),
    [
        (b"\x80\x02Nq", "cut-off", 3),
        (b"\x80\x02Nq\0", "cut-off", 3),
        (b"\x80\x02Nq\0q", "cut-off", 5),
        (b"\x80\x02q\0.", "pickle-stack", 2),
        (b"\x80\x02Nq\0\x86.", "pickle-stack", 5),
        (b"\x80\x02Nq\0h\1.", "pickle-memo", 5),
        (b"\x80\x02NK", "cut-off", 3),
        (b"\x80\x02N0", "cut-off", 3),
        (b"\x80\x02N00.", "pickle-stack", 4),
        (b"\x80\x02N\x93", "pickle-stack", 3),
    ],
)
@pytest.mark.parametrize("piece", [16, 1 << 20])
def test_errors_around_the_memo_say_where(
    data: bytes, code: str, offset: int, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_module, "WINDOW", piece)
    for item in (data, memoryview(data)):
        with pytest.raises(Corrupt, match=rf"^file, record, offset {offset}: ") as raised:
            read(item)
        assert raised.value.code == code


@pytest.mark.parametrize("before", range(40))
def test_an_opcode_behind_a_binput_may_reach_over_the_end_of_a_piece(before: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_module, "WINDOW", 32)
    monkeypatch.setattr(machine_module, "STRIDE", 8)
    data = b"\x80\x02(" + b"N" * before + b"G?\xf0\0\0\0\0\0\0q\0G@\0\0\0\0\0\0\0q\1h\0q\2h\1t."
    assert read(memoryview(data)) == (None,) * before + (1.0, 2.0, 1.0, 2.0)


def test_errors_say_where() -> None:
    with pytest.raises(Corrupt, match=r"^file, record, offset 4: takes 9 from the memo") as raised:
        read(b"\x80\x02NNh\x09.")
    assert raised.value.code == "pickle-memo"


def test_positions_of_a_list_count_from_its_end_as_in_python() -> None:
    def setting(position: bytes) -> bytes:
        return b"](K\1K\2eJ" + position + b"K\x09s."

    for position in (b"\xff\xff\xff\xff", b"\xfe\xff\xff\xff", b"\0\0\0\0", b"\1\0\0\0"):
        assert read(setting(position)) == pickle.loads(setting(position))
    for position in (b"\xfd\xff\xff\xff", b"\2\0\0\0"):
        with pytest.raises(Corrupt, match="sets a list item that is out of range"):
            read(setting(position))


def test_the_memo_has_a_limit_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_module, "STRIDE", 16)
    data = b"N" + b"\x94" * 200 + b"."
    assert unpickle(data, where="file", limits=PickleLimits(memo=201)).value is None
    with pytest.raises(Unsafe, match="memoizes more than 100"):
        unpickle(data, where="file", limits=PickleLimits(memo=100))


def test_the_memo_is_limited_before_the_end_of_a_pickle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_module, "STRIDE", 16)
    with pytest.raises(Unsafe, match="memoizes more than 100"):
        unpickle(b"N" + b"\x94" * 200 + b"\xff", where="file", limits=PickleLimits(memo=100))  # 0xff is no opcode


def test_the_highest_protocol_that_a_pickle_states_is_its_protocol() -> None:
    stated = [b"N.", b"\x80\x02N.", b"\x80\x02\x80\x04N.", b"\x80\x04\x80\x02N."]
    assert [unpickle(data, where="file").protocol for data in stated] == [0, 2, 4, 4]


def test_texts_are_limited_before_the_end_of_a_pickle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_module, "STRIDE", 16)
    texts = (b"X\x0a\0\0\0" + b"a" * 10) * 20
    assert unpickle(texts + b".", where="file", limits=PickleLimits(memory=400)).value == "a" * 10
    with pytest.raises(Unsafe, match="more than the limit of 399 bytes"):
        unpickle(texts + b".", where="file", limits=PickleLimits(memory=399))
    with pytest.raises(Unsafe, match="more than the limit of 300 bytes"):
        unpickle(texts + b"\xff", where="file", limits=PickleLimits(memory=300))


def test_a_pickle_that_is_shorter_than_a_stride_is_limited_at_its_end() -> None:
    with pytest.raises(Unsafe, match="memoizes more than 100"):
        unpickle(b"N" + b"\x94" * 200 + b".", where="file", limits=PickleLimits(memo=100))
    with pytest.raises(Unsafe, match="creates more than 100 objects"):
        unpickle(b"]" * 200 + b".", where="file", limits=PickleLimits(objects=100))
