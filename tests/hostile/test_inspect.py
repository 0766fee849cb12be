"""What `inspect` reports about files that are too large, contain a hundred thousand contradictions, or have values of unexpected types."""

from __future__ import annotations

import builtins
import copy
import json
import os
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import torch_compat
from tools.faults.bombs import P2, exported, model_json, name, number, saved, shared, stream, tar, text, tuple_of, zipped
from torch_compat.allowance import HASHED, Allowance
from torch_compat.archive import Damage
from torch_compat.archive.base import MORE, MOST_DAMAGE, Findings
from torch_compat.cli import _inspecting
from torch_compat.errors import HarnessError, Unsafe
from torch_compat.formats import read_facts
from torch_compat.formats.tree import contents
from torch_compat.inspection import look_at
from torch_compat.pickles import brief
from torch_compat.torchscript.scanner import called, scan

if TYPE_CHECKING:
    from collections.abc import Iterator


def sparse(path: Path, data: bytes, size: int) -> Path:
    """A file that begins with these bytes and holds nothing behind them."""
    path.write_bytes(data)
    try:
        os.truncate(path, size)
    except OSError:
        pytest.skip("this file system holds no sparse files of that size")
    return path


# ------------------------------------------------------------------------------------------------------------ large files


@pytest.mark.parametrize(
    "data", [b"", tar(), stream(), saved(P2 + b"N."), b"no archive"], ids=["zeros", "tar", "stream", "zip", "text"]
)
def test_of_more_than_64_gib_no_digest_is_calculated_and_the_row_says_so(data: bytes, tmp_path: Path) -> None:
    row = torch_compat.inspect(sparse(tmp_path / "x.pt", data, 1 << 40))
    assert row["sha256"] is None
    assert row["size"] == 1 << 40
    assert "sha256" in [item["what"] for item in row["omitted"]]
    assert str(HASHED) in row["omitted"][0]["because"]


def test_what_follows_a_tar_is_not_read_to_the_end_and_the_row_says_so(tmp_path: Path) -> None:
    row = torch_compat.inspect(sparse(tmp_path / "x.pt", tar(), 1 << 40))
    assert [item["what"] for item in row["omitted"]] == ["sha256", "end"]


def test_an_ordinary_file_omits_nothing(tmp_path: Path) -> None:
    (tmp_path / "x.pt").write_bytes(saved(P2 + b"N."))
    row = torch_compat.inspect(tmp_path / "x.pt")
    assert row["omitted"] == []
    assert row["sha256"] is not None


def test_checksums_of_large_archives_are_said_to_be_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.pt").write_bytes(saved(P2 + b"N.", **{"data/1": bytes(100_000)}))
    monkeypatch.setattr("torch_compat.allowance.HASHED", 1 << 10)
    monkeypatch.setattr("torch_compat.inspection.HASHED", 1 << 10)
    row = torch_compat.inspect(tmp_path / "x.pt")
    assert [item["what"] for item in row["omitted"]] == ["sha256", "checksums"]


def test_a_file_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.pt").write_bytes(saved(P2 + b"N.", **{"data/1": bytes(1 << 18)}))
    (tmp_path / "y.txt").write_bytes(b"text\n" * 100_000)
    torch_compat.inspect(tmp_path / "x.pt")
    opened: list[str] = []

    def noting(function: Any) -> Any:
        def opening(path: Any, *rest: Any, **more: Any) -> Any:
            opened.append(str(path))
            return function(path, *rest, **more)

        return opening

    for holder in (os, Path, builtins):
        monkeypatch.setattr(holder, "open", noting(holder.open))
    for item in ("x.pt", "y.txt"):
        torch_compat.inspect(tmp_path / item)
        assert opened.count(str(tmp_path / item)) == 1


# ---------------------------------------------------------------------------------------------------------------- damage


def test_damage_is_listed_up_to_a_bound_and_the_rest_is_counted() -> None:
    findings = Findings()
    for at in range(5 * MOST_DAMAGE):
        findings.append(Damage("overlap", f"r{at}", "said"))
    findings.append(Damage("missing-record", "x", "y" * 100_000))
    assert [finding.code for finding in findings[MOST_DAMAGE:]] == ["missing-record", MORE]
    assert findings[-1].detail.startswith(f"{4 * MOST_DAMAGE} more")
    assert len(findings[MOST_DAMAGE].detail) < 2_000


def test_an_allowance_that_is_spent_is_a_named_refusal() -> None:
    allowance = Allowance.to_inspect(0)
    with pytest.raises(Unsafe) as raised:
        allowance.expand(1 << 40)
    assert raised.value.code == "too-large"
    assert allowance.spent


# ----------------------------------------------------------------------------------------------------------------- texts


@pytest.mark.parametrize(("value", "said"), [
    pytest.param([1, "a", None, (2,), {"k": b"v"}], "[1, 'a', None, (2,), {'k': b'v'}]", id="containers"),
    pytest.param(1 << 20_000, "int of 20001 bits", id="a large integer"),
    pytest.param("\x1b[31m", r"'\x1b[31m'", id="an escape sequence"),
    pytest.param("\ud800", r"'\ud800'", id="half a character"),
    pytest.param(slice(1, None), "slice(1, None, None)", id="a slice"),
])  # fmt: skip
def test_a_brief_text_is_what_repr_says_as_far_as_that_is_safe(value: Any, said: str) -> None:
    assert brief(value) == said


def test_a_brief_text_is_bounded() -> None:
    value: Any = ()
    for _ in range(100_000):
        value = (value, value)
    assert len(brief(value, 40)) <= 43
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    assert len(brief(cyclic)) <= 83


def test_no_line_of_a_tree_holds_control_characters(tmp_path: Path) -> None:
    escape = "\x1b]0;x\x07"
    dtype = name("numpy", "dtype") + tuple_of(text(escape), b"\x89", b"\x88") + b"R"
    scalar = name("numpy.core.multiarray", "scalar") + tuple_of(dtype, text("x")) + b"R"
    value = P2 + tuple_of(scalar, dtype, text(escape), name("a", "b") + tuple_of(text(escape)) + b"R") + b"."
    (tmp_path / "x.pt").write_bytes(saved(value))
    assert all(line.isprintable() for line in contents(read_facts(tmp_path / "x.pt")))
    model = {"protoVersion": "5", "mainModule": {"parameters": [{"name": escape, "tensorId": "0"}]},
             "tensors": [{"dims": [escape], "data": {"key": "tensors/0"}}]}  # fmt: skip
    (tmp_path / "y.pt").write_bytes(model_json(model))
    lines = contents(read_facts(tmp_path / "y.pt"))
    assert lines
    assert all(line.isprintable() for line in lines)


# -------------------------------------------------------------------------------------------------------- scanners, in proportion


@pytest.mark.parametrize(
    "piece", ["a", "a=1,", "annotate(Tensor, None)", "(", "[", "'", "->", "\n  def f(x) -> float:\n    return _1"]
)
def test_scanners_look_at_nothing_twice(piece: str) -> None:
    import time  # noqa: PLC0415 - only here

    def spent(count: int, at: int) -> float:
        source = f"a{at}\ndef f({piece * count}!: int)\n  x = [{piece * count}\n  y = torch.add(f(), {piece * count})\n"
        started = time.process_time()
        called(source)
        scan(source)
        return time.process_time() - started

    small = max(min(spent(4_000, at) for at in range(3)), 0.002)
    large = min(spent(64_000, at) for at in range(3, 6))  # other work on the machine slows a single run down
    assert large < 60 * small  # 16 times the text; in proportion to its square it is 256 times


# ------------------------------------------------------------------------------------------------------ other types than expected

PROGRAM = {
    "schema_version": {"major": 8, "minor": 2}, "opset_version": {"aten": 10}, "torch_version": "2.6.0",
    "graph_module": {"graph": {"nodes": [
        {"target": "torch.ops.aten.add.Tensor", "inputs": [{"name": "x", "kind": 1, "arg": {"as_tensor": {"name": "x"}}},
                                                            {"name": "alpha", "kind": 2, "arg": {"as_int": 1}}]}]}},
}  # fmt: skip
MODEL = {
    "protoVersion": "5", "producerName": "pytorch",
    "mainModule": {"name": "m", "torchscriptArena": {"key": "code/m.py"}, "parameters": [{"name": "w", "tensorId": "0", "isBuffer": False}],
                   "submodules": [{"name": "n", "parameters": [{"name": "v", "tensorId": "0"}]}]},
    "tensors": [{"dims": ["2"], "strides": ["1"], "offset": "0", "dataType": "FLOAT", "data": {"key": "tensors/0"}}],
}  # fmt: skip
CONFIG = {"config": {"w": {"path_name": "weight_0", "is_param": True, "use_pickle": False,
                           "tensor_meta": {"dtype": 7, "sizes": [{"as_int": 2}], "strides": [{"as_int": 1}]}}}}  # fmt: skip
WRONG: list[Any] = [
    None,
    True,
    -1,
    10**400,
    0.5,
    float("nan"),
    float("inf"),
    "",
    "²",
    "\ud800\x1b",
    [],
    [[]],
    {},
    {"a": []},
    ["x"] * 3,
]


def pt2(config: Any) -> bytes:
    records = {
        "archive_format": b"pt2", "archive_version": b"0", ".data/version": b"6", "byteorder": b"little",
        "models/m.json": json.dumps(PROGRAM).encode(), "data/weights/m_weights_config.json": json.dumps(config).encode(),
        "data/weights/weight_0": bytes(8),
    }  # fmt: skip
    return zipped(records)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(part, (*path, key))


def changed(value: Any, path: tuple[Any, ...], wrong: Any) -> Any:
    if not path:
        return wrong
    result = copy.deepcopy(value)
    inner = result
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = wrong
    return result


@pytest.mark.parametrize(
    ("whole", "archive"), [(PROGRAM, exported), (MODEL, model_json), (CONFIG, pt2)], ids=["program", "model", "config"]
)
def test_a_value_of_another_type_is_no_fault_of_ours(whole: Any, archive: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    for place in places(whole):
        for wrong in WRONG:
            path.write_bytes(archive(changed(whole, place, wrong)))
            json.dumps(torch_compat.inspect(path))
            try:
                lines = contents(read_facts(path))
            except HarnessError:
                continue
            assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("seed", range(4))
def test_a_pickle_of_other_values_is_no_fault_of_ours(seed: int, tmp_path: Path) -> None:
    source = random.Random(seed)
    pieces = [
        b"N",
        b"K\1",
        b")",
        b"]",
        b"}",
        text("a"),
        text("\ud800"),
        number(1 << 20_000),
        shared(60),
        name("os", "system"),
        b"G" + b"\x7f\xf8" + bytes(6),
    ]
    path = tmp_path / "x.pt"
    for _ in range(60):
        parts = [tuple_of(*source.choices(pieces, k=source.randrange(5))) for _ in range(4)]
        picked = P2 + source.choice([*pieces, *parts]) + b"."
        for data in (
            stream(*[picked] * source.randrange(1, 5)),
            tar(**{source.choice(("sys_info", "pickle", "storages", "tensors")): P2 + b"K\1." + picked}),
        ):
            path.write_bytes(data)
            json.dumps(torch_compat.inspect(path))


# ------------------------------------------------------------------------------------------------------------ faults of ours


@pytest.mark.parametrize("count", [1, 3, 120])
@pytest.mark.parametrize(
    "raised", [ValueError("x" * 100), MemoryError(), RecursionError(), KeyError("k"), HarnessError("said", code="some")]
)
def test_whatever_happens_costs_one_row(
    count: int, raised: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for at in range(count):
        (tmp_path / f"{at:03}.pt").write_bytes(saved(P2 + b"N."))

    def failing(path: str, *, named: bool, complete: bool) -> Any:
        if path.endswith("000.pt"):
            raise raised
        return look_at(path, named=named, complete=complete)

    monkeypatch.delenv("TORCH_COMPAT_DEBUG", raising=False)
    monkeypatch.setattr(_inspecting, "look_at", failing)
    assert _inspecting.inspected((str(tmp_path),), False, False, "json") == 3
    out, err = capfd.readouterr()
    rows = json.loads(out)["archives"]
    assert len(rows) == count
    assert rows[0]["error"]["code"] == ("some" if isinstance(raised, HarnessError) else "fault")
    assert "Traceback" not in out + err
    assert all(row["error"] is None or row["error"]["code"] != "fault" for row in rows[1:])
