"""Small files that require hours or gigabytes, by name. Each is created on request; none is in the repository."""

from __future__ import annotations

import io
import json
import pickle
import struct
import tarfile
import zipfile
import zlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

P2 = b"\x80\x02"
HUGE = 1 << 20_000  # more than 4,300 digits


def text(value: str) -> bytes:
    """Push a text."""
    data = value.encode("utf-8", "surrogatepass")
    return b"X" + struct.pack("<I", len(data)) + data


def number(value: int) -> bytes:
    """Push an integer."""
    if 0 <= value < 256:
        return b"K" + bytes([value])
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8b" + struct.pack("<i", len(data)) + data


def name(module: str, attribute: str) -> bytes:
    """Push a global."""
    return f"c{module}\n{attribute}\n".encode()


def tuple_of(*parts: bytes) -> bytes:
    """Push a tuple."""
    return b"(" + b"".join(parts) + b"t"


def shared(levels: int, leaf: bytes = b")") -> bytes:
    """Push a tuple of two references to one tuple, nested repeatedly."""
    return leaf + b"".join(b"r" + struct.pack("<I", at) + b"j" + struct.pack("<I", at) + b"\x86" for at in range(levels))


def nested(levels: int) -> bytes:
    """Push nested tuples."""
    return b")" + b"\x85" * levels


def storage(key: str = "0", count: int = 4, kind: str = "FloatStorage") -> bytes:
    """Push a storage."""
    return tuple_of(text("storage"), name("torch", kind), text(key), text("cpu"), number(count)) + b"Q"


def tensor(key: str = "0", count: int = 4, shape: bytes | None = None) -> bytes:
    """Push a tensor of one dimension."""
    shape = tuple_of(number(count)) if shape is None else shape
    strides = tuple_of(number(1))
    return name("torch._utils", "_rebuild_tensor_v2") + tuple_of(
        storage(key, count), number(0), shape, strides, b"\x89", name("collections", "OrderedDict") + b")R"
    ) + b"R"  # fmt: skip


def zipped(records: dict[str, bytes], deflated: tuple[str, ...] = ()) -> bytes:
    """A zip archive without the layout of torch's writer."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for record, data in records.items():
            method = zipfile.ZIP_DEFLATED if record in deflated else zipfile.ZIP_STORED
            archive.writestr(zipfile.ZipInfo(f"a/{record}"), data, compress_type=method)
    return out.getvalue()


def saved(pickled: bytes, **more: bytes) -> bytes:
    """An archive of torch.save."""
    return zipped({"data.pkl": pickled, "byteorder": b"little", "data/0": b"\1" * 16, "version": b"3\n", **more})


def script(source: str) -> bytes:
    """An archive of TorchScript; its source is deflated."""
    module = name("__torch__.m", "M") + b")\x81}b."
    records = {"data.pkl": P2 + module, "code/__torch__/m.py": source.encode(), "constants.pkl": P2 + b").", "version": b"3\n"}
    return zipped(records, ("code/__torch__/m.py",))


def stream(*parts: bytes) -> bytes:
    """A legacy stream: the magic number, then these pickles in place of protocol, system, object and keys."""
    values: tuple[Any, ...] = (1001, {"little_endian": True}, None, [])
    usual = [pickle.dumps(value, 2) for value in values]
    return pickle.dumps(0x1950A86A20F9469CFC6C, 2) + b"".join([*parts, *usual[len(parts) :]])


def tar(**members: bytes) -> bytes:
    """An archive of torch 0.1."""
    usual = {"sys_info": pickle.dumps({}, 2), "pickle": P2 + b"N.", "storages": pickle.dumps(0, 2) + pickle.dumps([], 2),
             "tensors": pickle.dumps(0, 2)}  # fmt: skip
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for record, data in (usual | members).items():
            header = tarfile.TarInfo(record)
            header.size = len(data)
            archive.addfile(header, io.BytesIO(data))
    return out.getvalue()


def mobile(bytecode: bytes) -> bytes:
    """An archive of the lite interpreter."""
    module = P2 + name("__torch__.m", "M") + b")\x81}b."
    return zipped({"data.pkl": module, "constants.pkl": P2 + b").", "bytecode.pkl": bytecode, "version": b"3\n"})


def model_json(model: Any) -> bytes:
    """An archive of torch 1.0 to 1.2."""
    data = model if isinstance(model, bytes) else json.dumps(model).encode()
    return zipped({"model.json": data, "code/m.py": b"op_version_set = 0\n", "version": b"1\n"}, ("model.json",))


def exported(program: Any) -> bytes:
    """An exported program."""
    data = program if isinstance(program, bytes) else json.dumps(program).encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("serialized_exported_program.json", data)
        archive.writestr("version", "8.2")
    return out.getvalue()


def raw_zip(entries: list[dict[str, Any]]) -> bytes:
    """A zip archive in which every number can be chosen: ``name``, ``data``, and others to deviate from the derived values."""
    out, central = bytearray(), bytearray()
    for entry in entries:
        data, title = entry.get("data", b""), entry["name"]
        method, crc = entry.get("method", 0), entry.get("crc", zlib.crc32(entry.get("plain", data)))
        stored, size = entry.get("stored", len(data)), entry.get("size", len(entry.get("plain", data)))
        start, extra = entry.get("offset", len(out)), entry.get("extra", b"")
        if "offset" not in entry:
            out += struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, method, 0, 0, crc, stored, size, len(title), len(extra))
            out += title + extra + data
        central += struct.pack(
            "<4s6H3I5H2I", b"PK\1\2", 20, 20, 0, method, 0, 0, crc, stored, size, len(title), 0, 0, 0, 0, 0, start
        )
        central += title
    count = min(len(entries), 0xFFFF)
    return bytes(out + central + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count, count, len(central), len(out), 0))


def usual_entries(pickled: bytes = P2 + b"N.") -> list[dict[str, Any]]:
    """The entries of an archive of torch.save."""
    return [{"name": b"a/data.pkl", "data": pickled}, {"name": b"a/byteorder", "data": b"little"}]


def zeros(size: int) -> dict[str, Any]:
    """The parts of an entry with deflated zeros."""
    packer = zlib.compressobj(9, 8, -15)
    data = packer.compress(bytes(size)) + packer.flush()
    return {"data": data, "method": 8, "size": size, "crc": zlib.crc32(bytes(size))}


def many_zeros(count: int) -> bytes:
    """Members with 8 MB of zeros, each within the limit for inflating."""
    item = zeros(8 << 20)
    return raw_zip([*usual_entries(), *({"name": b"a/x%d" % at, **item} for at in range(count))])


def on_each_other(count: int, size: int) -> bytes:
    """Members that share the same stored bytes."""
    first = {"name": b"a/x", "data": b"\1" * size}
    entries = [*usual_entries(), first]
    start = len(raw_zip(entries[:2])) - 22 - 2 * 46 - len(b"a/data.pkl") - len(b"a/byteorder")
    again = [
        {"name": b"a/x%d" % at, "offset": start, "stored": size, "size": size, "crc": zlib.crc32(first["data"])}
        for at in range(count)
    ]
    return raw_zip([*entries, *again])


def shared_header(count: int) -> bytes:
    """Members with one local header, whose extra field holds 16,000 fields."""
    first = {"name": b"a/x", "extra": b"\x99\x99\0\0" * 16_000}
    return raw_zip([first, *usual_entries(), *({"name": b"a/x", "offset": 0} for _ in range(count))])


def moved_storages(count: int) -> bytes:
    """Storages in an archive with the layout of torch's writer, each of them 64 bytes after its expected position."""
    from tools.faults.torch_zip import write_end, write_member  # noqa: PLC0415 - only here

    out = io.BytesIO()
    pickled = P2 + b"](" + b"".join(tensor(str(at)) for at in range(count)) + b"e."
    written = [write_member(out, b"archive/data.pkl", pickled)]
    written += [write_member(out, b"archive/data/%d" % at, bytes(16)) for at in range(count)]
    written += [write_member(out, b"archive/version", b"3\n")]
    written[1:-1] = reversed(written[1:-1])
    write_end(out, written)
    return out.getvalue()


def headers_in_names(count: int) -> bytes:
    """Local headers without a directory, each of which claims that its name is the following 65,000 bytes."""
    item = struct.pack("<4s5H3I2H", b"PK\3\4", 20, 8, 0, 0, 0, 0, 0, 0, 65_000, 0)
    return item * count + bytes(70_000)


def unlisted_names(count: int) -> bytes:
    """Between two members, local headers that make the same claim about their names."""
    item = struct.pack("<4s5H3I2H", b"PK\3\4", 20, 8, 0, 0, 0, 0, 0, 0, 65_000, 0)
    whole = raw_zip(usual_entries())
    at = whole.index(b"PK\1\2")
    end = struct.unpack("<4s4H2IH", whole[-22:])
    between = item * count + bytes(70_000)
    return whole[:at] + between + whole[at:-22] + struct.pack("<4s4H2IH", *end[:6], end[6] + len(between), 0)


def nested_archives(count: int, each: int) -> bytes:
    """An exported program whose weights are deflated archives that contain deflated zeros."""
    inner = zipped({"data.pkl": P2 + b"N.", "version": b"3\n", "x": bytes(each)}, ("x",))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for record, data in (
            ("archive_format", b"pt2"),
            ("archive_version", b"0"),
            (".data/version", b"6"),
            ("byteorder", b"little"),
        ):
            archive.writestr(f"m/{record}", data)
        for at in range(count):
            archive.writestr(f"m/data/weights/{at}.pt", inner)
    return out.getvalue()


def flatbuffer(count: int, length: int) -> bytes:
    """A flatbuffer whose sources all refer to one table with a long text."""
    # root table at 16, its vtable of 24 bytes before it; field 8 (jit_sources) leads to a vector of one table, again and again
    vtable = struct.pack("<15H", 4 + 2 * 13, 16, 4, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0)
    head = struct.pack("<I", 8 + len(vtable) + 2) + b"PTMF" + vtable + b"\0\0"
    root = len(head)
    out = bytearray(head)
    out += struct.pack("<i", root - 8) + struct.pack("<I", 9) + struct.pack("<I", 8) + struct.pack("<I", 0)
    vector = len(out)
    struct.pack_into("<I", out, root + 8, vector - (root + 8))
    out += struct.pack("<I", count) + bytes(4 * count)
    file_vtable = len(out)
    out += struct.pack("<4H", 8, 12, 4, 8)
    file = len(out)
    out += struct.pack("<iII", file - file_vtable, 8, 4)
    message = len(out)
    out += struct.pack("<I", length) + b"x" * length + b"\0"
    struct.pack_into("<I", out, file + 4, message - (file + 4))
    struct.pack_into("<I", out, file + 8, message - (file + 8))
    for at in range(count):
        place = vector + 4 + 4 * at
        struct.pack_into("<I", out, place, file - place)
    return bytes(out)


def deep_json(levels: int) -> bytes:
    """Nested modules, each with a long name and a parameter of one tensor with many dimensions."""
    tensors = [{"dims": ["1"] * 20_000, "dataType": "FLOAT", "data": {"key": "tensors/0"}}]
    module: dict[str, Any] = {"name": "m", "parameters": []}
    for _ in range(levels):
        parameters = [{"name": f"p{at}", "tensorId": "0"} for at in range(100)]
        module = {"name": "m" * 5_000, "parameters": parameters, "submodules": [module]}
    return model_json({"protoVersion": "5", "mainModule": module, "tensors": tensors})


def keys_of(count: int, key: bytes) -> bytes:
    """A dictionary in which the same object is set as the key repeatedly."""
    return saved(P2 + key + b"q\1" + b"0}(" + b"h\1N" * count + b"u.")


def called_with(function: bytes, argument: bytes, count: int) -> bytes:
    """One large argument, with which a function is called repeatedly."""
    return saved(P2 + argument + b"\x85q\1" + b"0" + function + b"q\2" + b"0(" + b"h\2h\1R" * count + b"t.")


def many_of(piece: bytes, count: int) -> bytes:
    """A tuple of many values that are pushed by the same opcodes."""
    return saved(P2 + b"(" + piece * count + b"t.")


BOMBS: dict[str, Callable[[], bytes]] = {
    # texts of values
    "stream: magic shared": lambda: b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x190" + shared(60) + b"." + P2 + b"N.",
    "stream: protocol shared": lambda: stream(P2 + shared(60) + b"."),
    "stream: protocol nested": lambda: stream(P2 + nested(1900) + b"."),
    "stream: protocol huge": lambda: stream(P2 + number(HUGE) + b"."),
    "tar: count shared": lambda: tar(storages=P2 + shared(60) + b"."),
    "tar: count huge": lambda: tar(storages=P2 + number(HUGE) + b"."),
    "tar: storage shared": lambda: tar(storages=pickle.dumps(1, 2) + P2 + shared(60) + b"."),
    "tar: storage nested": lambda: tar(storages=pickle.dumps(1, 2) + P2 + nested(1900) + b"."),
    "tar: storage key huge": lambda: tar(storages=pickle.dumps(1, 2) + P2 + tuple_of(number(HUGE), text("cpu"), name("torch", "FloatStorage")) + b"."),
    "tar: view shared": lambda: tar(storages=pickle.dumps(0, 2) + P2 + b"]" + shared(60) + b"a."),
    "tar: view root shared": lambda: tar(storages=pickle.dumps(0, 2) + P2 + b"]" + tuple_of(text("a"), shared(60), b"K\1", b"K\2") + b"a."),
    "tar: tensor shared": lambda: tar(tensors=pickle.dumps(1, 2) + P2 + shared(60) + b"."),
    "tar: tensor storage shared": lambda: tar(tensors=pickle.dumps(1, 2) + P2 + tuple_of(text("a"), shared(60), name("torch", "FloatTensor")) + b"."),
    "tar: id shared": lambda: tar(pickle=P2 + shared(60) + b"Q."),
    "tar: id huge": lambda: tar(pickle=P2 + number(HUGE) + b"Q."),
    "tar: id nested": lambda: tar(pickle=P2 + nested(1900) + b"Q."),
    "tree: slice shared": lambda: saved(P2 + name("builtins", "slice") + shared(60) + b"\x85R."),
    "tree: slice huge": lambda: saved(P2 + name("builtins", "slice") + number(HUGE) + b"\x85R."),
    "tree: range huge": lambda: saved(P2 + name("builtins", "range") + number(HUGE) + b"\x85R."),
    "tree: call of a call of a call": lambda: saved(P2 + name("a", "b") + b")R" * 1900 + b"."),
    "tree: shapes shared": lambda: saved(
        P2 + b"(" + b"K\1" * 60_000 + b"tq\1" + b"0(" + (name("torch", "Size") + b"h\1\x85R") * 1000 + b"t."
    ),
    # hashes and calls
    "mobile: instruction shared": lambda: mobile(P2 + tuple_of(b"K\7", tuple_of(text("f"), tuple_of(
        tuple_of(text("instructions"), tuple_of(tuple_of(shared(60)))), tuple_of(text("operators"), b")")))) + b"."),
    "mobile: key shared": lambda: mobile(P2 + tuple_of(b"K\7", tuple_of(text("f"), tuple_of(tuple_of(shared(60), b")")))) + b"."),
    "mobile: functions shared": lambda: mobile(P2 + tuple_of(text("instructions"), tuple_of(*[tuple_of(text("OP"), b"K\1", b"K\0")] * 2000)) + b"q\1"
        + b"0" + tuple_of(text("operators"), b")") + b"q\2" + b"0" + tuple_of(text("f"), tuple_of(b"h\1", b"h\2")) + b"q\3" + b"0(K\7" + b"h\3" * 20_000 + b"t."),
    "keys: integer of a megabyte": lambda: keys_of(9_000, number(1 << 8_000_000)),
    "keys: tuple of 190": lambda: keys_of(400_000, tuple_of(*[b"K\1"] * 190)),
    "calls: OrderedDict of a shared list": lambda: called_with(name("collections", "OrderedDict"), b"](" + b"N" * 100_000 + b"e", 5_000),
    "calls: OrderedDict of a shared dict": lambda: called_with(
        name("collections", "OrderedDict"), b"}(" + b"".join(b"J" + struct.pack("<i", at) + b"N" for at in range(20_000)) + b"u", 3_000),
    "calls: tensors of a shared shape": lambda: saved(P2 + tuple_of(*[b"K\1"] * 100_000) + b"q\1" + b"0(" + (
        name("torch._utils", "_rebuild_tensor_v2") + tuple_of(storage(), b"K\0", b"h\1", b"h\1", b"\x89", b"}") + b"R") * 1_000 + b"t."),
    "calls: encode of a shared text": lambda: called_with(name("_codecs", "encode"), text("a" * 1_000_000), 3_000),
    # many of the same
    "many: None": lambda: many_of(b"N", 12_000_000),
    "many: lists": lambda: many_of(b"]", 4_000_000),
    "many: sets": lambda: saved(b"\x80\x04(" + b"\x8f" * 3_000_000 + b"t."),
    "many: sets of five": lambda: saved(b"\x80\x04(" + b"\x8f(K\0K\1K\2K\3K\4\x90" * 600_000 + b"t."),
    "many: dicts of one": lambda: many_of(b"}NNs", 1_500_000),
    "many: DUP": lambda: saved(P2 + b"(N" + b"2" * 6_000_000 + b"t."),
    "many: memo": lambda: saved(b"\x80\x04N" + b"\x94" * 6_000_000 + b"."),
    "many: names": lambda: saved(P2 + b"(" + b"".join(name(f"m{at}", "n") for at in range(200_000)) + b"t."),
    "many: names of torch": lambda: saved(P2 + b"(" + b"".join(name(f"torch.m{at}", "n") for at in range(200_000)) + b"t."),
    "many: objects": lambda: saved(P2 + name("a", "b") + b")q\1" + b"0q\2" + b"0(" + b"h\2h\1R" * 1_500_000 + b"t."),
    "many: storages": lambda: saved(P2 + b"(" + b"".join(storage(str(at)) for at in range(100_000)) + b"t."),
    "many: one-byte integers of 2 bytes": lambda: many_of(b"\x8a\x02\1\1", 2_500_000),
    "many: leaves below 1,900 lists": lambda: saved(P2 + b"](" + b"N" * 1_000_000 + b"e" + b"\x85" * 1_900 + b"."),
    "many: rows of a tar": lambda: tar(storages=pickle.dumps(1_000_000, 2) + (
        P2 + tuple_of(text("0"), text("cpu"), name("torch", "FloatStorage")) + b"." + bytes(8)) * 100_000),
    "long: text": lambda: saved(P2 + text("\U0001f600" + "a" * 60_000_000) + b"."),
    "long: name": lambda: saved(P2 + b"(" + b"".join(name(f"a{at}" + ".a" * 30_000, "b") for at in range(40)) + b"t."),
    # containers
    "zip: 1,000 times 8 MB of zeros": lambda: many_zeros(1_000),
    "zip: pickle of zeros": lambda: raw_zip([{"name": b"a/data.pkl", **zeros(8 << 20)}]),
    "zip: members on each other": lambda: on_each_other(20_000, 3_000_000),
    "zip: members with one header": lambda: shared_header(20_000),
    "zip: 300,000 entries": lambda: raw_zip([*usual_entries(), *({"name": b"a/x", "offset": 0} for _ in range(300_000))]),
    "zip: moved storages": lambda: moved_storages(15_000),
    "zip: headers in names": lambda: headers_in_names(60_000),
    "zip: unlisted headers": lambda: unlisted_names(60_000),
    "zip: descriptors": lambda: b"PK\3\4" + struct.pack("<5H3I2H", 20, 8, 0, 0, 0, 0, 0, 0, 1, 0) + b"a" + b"PK\7\x08" * 1_000_000,
    "zip: nested archives": lambda: nested_archives(60, 7 << 20),
    "zip: many nested archives": lambda: nested_archives(6_000, 10),
    "tar: 20,000 members": lambda: tar(sys_info=b"")[:512] * 20_000 + tar(sys_info=b""),
    "tar: much behind its end": lambda: tar() + bytes(60_000_000),
    # what formats read
    "source: parameter": lambda: script("def f(" + "a" * 400_000 + "!: int)\n"),
    "source: None listed": lambda: script("class M(Module):\n  def f(self) -> int:\n    x = [" + "annotate(Tensor, None)" * 100_000 + "\n"),
    "source: keywords": lambda: script("x = torch.add(" + "a=1," * 400_000 + ")\n"),
    "source: keywords behind a call": lambda: script("x = torch.add(f(), " + "a=1," * 400_000 + ")\n"),
    "source: commas": lambda: script("," * 5_000_000),
    "source: brackets": lambda: script("(" * 3_000_000),
    "source: operators": lambda: script("".join(f"x = torch.op{at}(a)\n" for at in range(200_000))),
    "source: shapes of one operator": lambda: script("".join(f"x = torch.div(a, {at}, x{at}=1)\n" for at in range(100_000))),
    "source: returns of one name": lambda: script(
        "def f(x) -> Tuple[float, float]:\n    _1 = (" + "1.0, " * 100_000 + ")\n" + "    return _1\n" * 100_000),
    "source: no def": lambda: script("x -> float\n  return 1\n"),
    "source: blanks": lambda: script(" " * 8_000_000),
    "source: quotes": lambda: script('"' + "\\" * 3_000_000),
    "json: deep names": lambda: deep_json(150),
    "json: many lists": lambda: model_json(b'{"a": [' + b"[]," * 20_000_000 + b"[]]}"),
    "json: nodes": lambda: exported(b'{"schema_version": {"major": 8, "minor": 2}, "graph_module": {"graph": {"nodes": ['
                                    + b",".join([b'{"inputs":[],"target":"torch.ops.a.b"}'] * 400_000) + b"]}}}"),
    "json: nested": lambda: model_json(b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "json: digits": lambda: model_json(b'{"protoVersion": ' + b"1" * 5_000 + b"}"),
    "json: target nested": lambda: exported(b'{"schema_version": 1, "graph_module": {"graph": {"nodes": [{"inputs": [], "target": '
                                            + b"[" * 900 + b"]" * 900 + b"}]}}}"),
    "json: version nested": lambda: exported(b'{"schema_version": ' + b"[" * 900 + b"]" * 900 + b"}"),
    "package: modules": lambda: zipped({".data/extern_modules": b"a\n" * 2_000_000, ".data/version": b"6\n"}, (".data/extern_modules",)),
    "package: one long module": lambda: zipped({".data/extern_modules": b"a" + b".a" * 1_000_000, ".data/version": b"6\n"}, (".data/extern_modules",)),
    "package: pickles": lambda: zipped({".data/extern_modules": b"", ".data/version": b"6\n", **{f"p/{at}.pkl": P2 + storage(str(at)) + b"." for at in range(6_000)}}),
    "flatbuffer: shared sources": lambda: flatbuffer(100_000, 200_000),
}  # fmt: skip
