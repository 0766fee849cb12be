"""Malicious pickles: nothing is executed, and what they try to do is named."""

from __future__ import annotations

import copyreg
import gc
import pickle
import sys
import time
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_compat.errors import ArchiveError, Corrupt, Unsafe, Unsupported
from torch_compat.pickles import Described, Global, PickleLimits, dangerous, tensors, unpickle, walk
from torch_compat.pickles.interpret import REBUILDERS

READING = {"find_spec", "import", "exec", "open", "os.system", "subprocess.Popen", "compile"}
events: list[str] = []
watching: list[bool] = []  # while it holds something


def hook(event: str, _: Any) -> None:
    if watching and (event in READING or event.startswith(("os.", "subprocess.", "socket.", "ctypes."))):
        events.append(event)


sys.addaudithook(hook)


def read(data: bytes, **options: Any) -> Any:
    """The value; nothing was imported, opened, compiled or run on the way."""
    watching.append(True)
    events.clear()
    try:
        return unpickle(data, where="file", **options)
    finally:
        watching.clear()
        assert events == []


@pytest.mark.parametrize("protocol", [0, 2, 4])
@pytest.mark.parametrize(("module", "name"), [
    ("os", "system"), ("posix", "system"), ("nt", "system"), ("builtins", "eval"), ("builtins", "exec"), ("builtins", "__import__"),
    ("__builtin__", "eval"), ("subprocess", "Popen"), ("os.path", "os.system"), ("a", "x.y.os.system"), ("runpy", "_run_code"),
    ("importlib", "import_module"), ("socket", "create_connection"), ("shutil", "rmtree"), ("pickle", "loads"), ("builtins", "getattr"),
])  # fmt: skip
def test_a_call_of_what_does_harm_is_described_and_named(module: str, name: str, protocol: int) -> None:
    named = f"c{module}\n{name}\n".encode() if protocol < 4 else (
        b"\x8c" + bytes([len(module)]) + module.encode() + b"\x8c" + bytes([len(name)]) + name.encode() + b"\x93"
    )  # fmt: skip
    unpickled = read((b"\x80" + bytes([protocol]) if protocol else b"") + named + b"(X\x07\0\0\0echo hitR.")
    assert type(unpickled.value) is Described
    assert (unpickled.value.kind, unpickled.value.args) == ("reduce", ("echo hi",))
    reason = dangerous(unpickled.globals[0])
    assert reason is not None or module == "__builtin__"  # protocol 4 knows no names of Python 2


def test_what_is_known_to_be_harmless_is_not_called_dangerous() -> None:
    for module, name in [("torch", "FloatStorage"), ("collections", "OrderedDict"), ("torch.nn.modules.linear", "Linear"),
                         ("builtins", "set"), ("torch._utils", "_rebuild_tensor_v2"), ("__torch__", "Model")]:  # fmt: skip
        assert dangerous(Global(module, name)) is None


def test_a_call_of_what_a_call_gives() -> None:
    result = read(b"cbuiltins\ngetattr\n(cos\nX\0\0\0\0tR(X\x02\0\0\0lstRK\x01\x85R.".replace(b"cos\n", b"cos\nfork\n"))
    assert result.value.target.target.target == Global("builtins", "getattr")


def test_extensions_are_refused_though_the_process_has_registered_them() -> None:
    copyreg.add_extension("os", "system", 0xF1)
    try:
        for data in (b"\x80\x02\x82\xf1.", b"\x80\x02\x83\xf1\x00.", b"\x80\x02\x84\xf1\x00\x00\x00."):
            with pytest.raises(Unsafe, match="uses the extension code 241") as raised:
                read(data)
            assert raised.value.code == "extension"
    finally:
        copyreg.remove_extension("os", "system", 0xF1)


STORAGE = b"(X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\x000X\x03\0\0\0cpu%stQ."


@pytest.mark.parametrize("data", [
    STORAGE % b"X\x01\0\0\x009",  # a text for its length
    STORAGE % b"J\xff\xff\xff\xff",
    STORAGE % (b"\x8a\x09" + b"\xff" * 8 + b"\x7f"),
    STORAGE % b"\x88",
    STORAGE % b"G\0\0\0\0\0\0\0\0",
    STORAGE % b"",
    (STORAGE % b"K\x01").replace(b"ctorch\nFloat", b"cos\nFloat"),
    (STORAGE % b"K\x01").replace(b"FloatStorage", b"Tensor"),
    (STORAGE % b"K\x01").replace(b"X\x01\0\0\x000", b"]"),
    (STORAGE % b"K\x01").replace(b"X\x03\0\0\0cpu", b"}"),
    STORAGE % b"K\x05X\x01\0\0\0bK\x04K\x02\x87",  # a part that ends behind it
    STORAGE % b"K\x05X\x01\0\0\0bJ\xff\xff\xff\xffK\x02\x87",
    STORAGE % b"K\x05K\x01",
])  # fmt: skip
def test_storages_that_cannot_be(data: bytes) -> None:
    with pytest.raises(Corrupt, match="storage") as raised:
        read(data)
    assert raised.value.code == "bad-storage"


@pytest.mark.parametrize("pid", [b"N", b"]", b"cos\nsystem\n(tR", b"))\x86\x85", b")", b"}", b"(X\x07\0\0\0storagel", b"(}NNNt"])
def test_persistent_ids_of_anything_else_mean_nothing(pid: bytes) -> None:
    unpickled = read(pid + b"Q.")
    assert type(unpickled.value).__name__ == "PersistentId"
    assert [event.kind for event in unpickled.events][-1] == "persistent"


@pytest.mark.parametrize("data", [b"NX\x01\0\0\0a\x93.", b"X\x01\0\0\0aK\x01\x93.", b"K\x01K\x02\x93.", b"(l(l\x93."])
def test_globals_that_are_named_by_no_texts(data: bytes) -> None:
    with pytest.raises(Corrupt, match="two strings"):
        read(b"\x80\x04" + data)


def test_a_global_that_is_named_out_of_the_memo() -> None:
    result = read(b"\x80\x04\x8c\x06system\x94\x8c\x02os\x94h\1h\0\x93\x8c\x01x\x85R.")
    assert result.value.target == Global("os", "system")


def test_billions_of_laughs_stay_small() -> None:
    laughs = b"]q\0" + b"".join(b"](" + b"h" + bytes([n]) + b"h" + bytes([n]) + b"eq" + bytes([n + 1]) for n in range(100)) + b"."
    result = read(laughs)
    assert sum(1 for _ in walk(result.value)) == 101
    assert list(tensors(result.value)) == []


@pytest.mark.parametrize("data", [
    b")q\0" + b"".join(b"0h" + bytes([n]) + b"h" + bytes([n]) + b"\x86q" + bytes([n + 1]) for n in range(200)),  # 2**200 parts
    b")" + b"\x85" * 100_000,
    b"(\x91" + b"\x85" * 300,
])  # fmt: skip
def test_keys_that_would_cost_more_than_they_are(data: bytes) -> None:
    started = time.perf_counter()
    for way in (b"N}(%sNu.", b"(%sNd.", b"}%sNs.", b"\x8f(%s\x90.", b"(%s\x91."):
        prefix, suffix = way.split(b"%s")
        with pytest.raises(Unsafe, match="key"):
            read(prefix + data + suffix)
    with pytest.raises(Unsafe, match="key"):
        read(b"cbuiltins\nset\n(](" + data + b"etR.")
    assert time.perf_counter() - started < 20


def test_keys_of_one_hash() -> None:
    data = pickle.dumps({number * ((1 << 61) - 1): None for number in range(1, 4)})
    assert len(read(data).value) == 3
    many = b"\x80\x02}(" + b"".join(
        b"\x8a\x0a" + (number * ((1 << 61) - 1)).to_bytes(10, "little") + b"N" for number in range(1, 40_000)
    ) + b"u."  # fmt: skip
    started = time.perf_counter()
    with pytest.raises(Unsafe, match="attacker-controlled hashes"):
        read(many)
    assert time.perf_counter() - started < 20


DEEP = 1_000_000
LESS = DEEP // 20
PLENTY = PickleLimits(depth=1 << 40)


@pytest.mark.parametrize("data", [
    b"]" * DEEP + b"a" * (DEEP - 1) + b".",
    b")" + b"\x85" * DEEP + b".",
    b"(" * LESS + b"l" * LESS + b".",
    b"(" * LESS + b"t" * LESS + b".",
    b"}X\1\0\0\0a" * LESS + b"}" + b"s" * LESS + b".",
    b"cm\nC\n" + b"\x85" * LESS + b".",
    b"cm\nf\n)R" + b")R" * LESS + b".",  # what is called is what a call gives
    b"cm\nf\n)R" + b"q\0h\0\x85q\1cm\nf\nh\1R" * LESS + b".",
    b"N" + b"Q" * LESS + b".",
    b"cm\nf\n)\x81q\0" + b"cm\nf\n)\x81h\0bq\0" * LESS + b".",
    b"ccollections\nOrderedDict\n)R" + b"q\0ccollections\nOrderedDict\n)Rh\0b" * LESS + b".",
], ids=lambda data: repr(data[:12]))  # fmt: skip
def test_nesting_is_bounded_and_freed(data: bytes) -> None:
    started = time.perf_counter()
    with pytest.raises(Unsafe) as raised:
        read(data)
    assert raised.value.code == "too-deep"
    del raised
    gc.collect()
    result = unpickle(data, where="file", limits=PLENTY)
    del result  # without the C stack
    gc.collect()
    assert time.perf_counter() - started < 60


@pytest.mark.parametrize(("data", "error", "code"), [
    (b"Nr\xff\xff\xff\x7f.", Unsafe, "too-large"),
    (b"Np2147483648\n.", Unsafe, "too-large"),
    (b"Np-1\n.", Unsafe, "too-large"),
    (b"\x80\x02\x8b\xff\xff\xff\x7fab.", Corrupt, "cut-off"),
    (b"\x80\x02\x8b\xff\xff\xff\xffab.", Corrupt, "bad-length"),
    (b"\x80\x05\x96\0\0\0\0\0\0\0\x40ab.", Corrupt, "cut-off"),
    (b"\x80\x04\x8d\0\0\0\0\0\0\0\x40ab.", Corrupt, "cut-off"),
    (b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\xffab.", Corrupt, "cut-off"),
    (b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7fN.", Corrupt, "cut-off"),
    (b"X\xff\xff\xff\xffab.", Corrupt, "cut-off"),
    (b"T\xff\xff\xff\xffab.", Corrupt, "bad-length"),
    (b"\x80\x05\x97.", Corrupt, "out-of-band"),
    (b"\x80\x05N\x98.", Corrupt, "out-of-band"),
    (b"\x80\x06N.", Unsupported, "pickle-protocol"),
    (b"}]Ns.", Corrupt, "unhashable"),
    (b"}}Ns.", Corrupt, "unhashable"),
    (b"}]\x85Ns.", Corrupt, "unhashable"),
    (b"\x8f(]\x90.", Corrupt, "unhashable"),
    (b"(]\x91.", Corrupt, "unhashable"),
    (b"cbuiltins\nset\n(](]etR.", Corrupt, "unhashable"),
    (b"K\x05}b.", Corrupt, "bad-build"),
    (b"]}b.", Corrupt, "bad-build"),
    (b"X\1\0\0\0a}b.", Corrupt, "bad-build"),
    (b"cos\nenviron\n}b.", Unsafe, "changes-global"),
    (b"K\x05K\x06a.", Corrupt, "bad-build"),
    (b"]K\x06K\x06s.", Corrupt, "bad-build"),
    (b"N(00.", Corrupt, "pickle-stack"),
    (b"0.", Corrupt, "pickle-stack"),
    (b"t.", Corrupt, "pickle-stack"),
    (b"(t\x87.", Corrupt, "pickle-stack"),
    (b".", Corrupt, "pickle-stack"),
    (b"(R.", Corrupt, "pickle-stack"),
    (b"N", Corrupt, "cut-off"),
    (b"", Corrupt, "cut-off"),
    (b"K", Corrupt, "cut-off"),
    (b"J\0", Corrupt, "cut-off"),
    (b"cos\nsystem", Corrupt, "cut-off"),
    (b"cos", Corrupt, "cut-off"),
    (b"I12", Corrupt, "cut-off"),
    (b"Ix\n.", Corrupt, "bad-number"),
    (b"F1e\n.", Corrupt, "bad-number"),
    (b"S'a\n.", Corrupt, "bad-number"),
    (b"I" + b"9" * 5000 + b"\n.", Corrupt, "bad-number"),
    (b"X\1\0\0\0\xff.", Corrupt, "bad-text"),
    (b"\xff.", Corrupt, "bad-opcode"),
    (b"h\0.", Corrupt, "pickle-memo"),
    (b"NK\x01R.", Corrupt, "bad-call"),
    (b"K\x01)\x81.", Corrupt, "bad-call"),
    (b"(K\x01d.", Corrupt, "pickle-stack"),
])  # fmt: skip
def test_contradictions_are_named(data: bytes, error: type[ArchiveError], code: str) -> None:
    with pytest.raises(error) as raised:
        read(data)
    assert raised.value.code == code
    assert raised.value.where
    assert raised.value.where.startswith("file, offset ")


@pytest.mark.parametrize("function", sorted(REBUILDERS))
def test_known_functions_take_any_arguments(function: str) -> None:
    module, _, name = function.rpartition(".")
    named = f"c{module}\n{name}\n".encode()
    values = [b"N", b"]", b"}", b")", b"K\1", b"\x88", b"X\1\0\0\0a", b"C\1a", b"G\0\0\0\0\0\0\0\0", b"ctorch\nfloat32\n", b"\x8f",
              (STORAGE % b"K\6")[:-1], b"cnumpy\ndtype\nX\2\0\0\0f4\x85R", b"](K\1K\2e", b"\x8a\x09" + b"\xff" * 8 + b"\x7f",
              b"ctorch._tensor\n_rebuild_from_type\n", b"ctorch._utils\n_rebuild_tensor_v2\n"]  # fmt: skip
    for way in (b"R", b"\x81"):
        for count in range(9):
            for value in values:
                attempt(b"\x80\2" + named + b"(" + value * count + b"t" + way + b".")
            for shift in range(len(values)):
                attempt(b"\x80\2" + named + b"(" + b"".join((values * 2)[shift : shift + count]) + b"t" + way + b"}b.")


def test_tensors_of_impossible_sizes() -> None:
    head = b"ctorch._utils\n_rebuild_tensor_v2\n(" + (STORAGE % b"K\x06")[:-1]
    for rest in (b"K\0J\xff\xff\xff\xff\x85K\1\x85\x89}", b"K\0(J\xff\xff\xff\xffNtK\1K\1\x86\x89}",
                 b"K\0(\x8a\x09" + b"\xff" * 8 + b"\x7ftK\1\x85\x89}",
                 b"K\0K\1\x85K\1K\1\x86\x89}", b"J\xff\xff\xff\xffK\1\x85K\1\x85\x89}"):  # fmt: skip
        with pytest.raises(Corrupt) as raised:
            read(head + rest + b"tR.")
        assert raised.value.code == "bad-tensor"
    huge = read(head + b"K\0J\xff\xff\xff\x7f\x85K\1\x85\x89}tR.").value
    assert not huge.fits


def test_memory_stays_near_the_size_of_the_pickle() -> None:
    repeated = b"\x80\x02c_codecs\nencode\nq\0X\0\0\x10\0" + b"a" * (1 << 20) + b"\x85q\1R" + b"0h\0h\1R" * 100_000 + b"."
    tracemalloc.start()
    try:
        with pytest.raises(Unsafe, match="more often than the limit allows"):
            read(repeated)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


SEEDS = [
    b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + (STORAGE % b"K\x06")[:-1] + b"K\0K\2K\3\x86K\3K\1\x86\x89ccollections\nOrderedDict\n)RtR.",
    *(pickle.dumps({"a": [1, 2.5, (None, True)], (1, 2): {3, 4}, b"x": "text" * 20, "n": 1 << 70}, protocol) for protocol in range(6)),
]  # fmt: skip


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_raise_nothing_of_ours(data: bytes) -> None:
    attempt(data)


@settings(max_examples=1000, deadline=None)
@given(
    st.sampled_from(SEEDS),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255), st.sampled_from(["set", "cut", "insert"])), max_size=6),
)
def test_changed_pickles_raise_nothing_of_ours(seed: bytes, changes: list[tuple[float, int, str]]) -> None:
    data = bytearray(seed)
    for place, byte, way in changes:
        at = int(place * (len(data) - 1)) if data else 0
        if way == "set":
            data[at : at + 1] = bytes([byte])
        elif way == "cut":
            del data[at : at + 1 + byte % 4]
        else:
            data[at:at] = bytes([byte])
    attempt(bytes(data))


OPCODES = [
    bytes([code])
    for code in b"(.012FIJKLMNPQRSTUVXabc}degh]ijlopqrst)uGBC\x80\x81\x82\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8f\x90\x91\x92\x93\x94\x95\x96"
]
PIECES = st.sampled_from([*OPCODES, b"K\1", b"X\1\0\0\0a", b"cos\nsystem\n", b"ctorch._utils\n_rebuild_tensor_v2\n", b"ctorch\nSize\n",
                          b"cbuiltins\nset\n", b"ccollections\nOrderedDict\n", b"(STORAGE" , b"q\0", b"h\0", b"cnumpy\ndtype\n",
                          b"c_codecs\nencode\n", b"cbuiltins\nrange\n", b"cbuiltins\nslice\n", b"cbuiltins\ncomplex\n",
                          b"ccollections\ndeque\n", b"ctorch._tensor\n_rebuild_from_type_v2\n", b"ctorch\nfloat32\n",
                          b"ctorch.nn.parameter\nParameter\n", b"\x8a\x09" + b"\xff" * 8 + b"\x7f"])  # fmt: skip


@settings(max_examples=1000, deadline=None)
@given(st.lists(PIECES, max_size=40))
def test_opcodes_in_any_order_raise_nothing_of_ours(pieces: list[bytes]) -> None:
    attempt(b"".join(pieces) + b".")


def attempt(data: bytes) -> None:
    try:
        unpickled = read(data)
    except ArchiveError:
        return
    assert unpickled.end <= len(data)
    for count, (_, part) in enumerate(walk(unpickled.value)):
        repr(type(part))
        assert count <= 10 * len(data) + 10
