"""ExecuTorch programs are identified, with version, methods, operators and delegates."""

from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING

import pytest

from torch_compat.archive import open_archive
from torch_compat.archive.executorch import described
from torch_compat.errors import Unsupported

if TYPE_CHECKING:
    from pathlib import Path

Value = "int | str | list[dict[int, Value]]"


def program(version: int, plans: list[dict[int, object]]) -> bytes:
    """A flatbuffer: tables are dictionaries of fields by number, texts, numbers and lists of tables their values."""
    data = bytearray(b"\0\0\0\0ET12")

    def table(fields: dict[int, object]) -> int:
        most = max(fields, default=-1) + 1
        vtable = len(data)
        places = {number: 4 + 4 * order for order, number in enumerate(fields)}
        data.extend(struct.pack("<HH", 4 + 2 * most, 4 + 4 * len(fields)))
        data.extend(b"".join(struct.pack("<H", places.get(number, 0)) for number in range(most)))
        data.extend(b"\0" * (-len(data) % 4))
        start = len(data)
        data.extend(struct.pack("<i", start - vtable) + b"\0\0\0\0" * len(fields))
        for number, value in fields.items():
            at = start + places[number]
            if isinstance(value, int):
                struct.pack_into("<I", data, at, value)
                continue
            held = len(data)
            if isinstance(value, str):
                data.extend(struct.pack("<I", len(value)) + value.encode() + b"\0")
                data.extend(b"\0" * (-len(data) % 4))
            else:
                assert isinstance(value, list)
                data.extend(struct.pack("<I", len(value)) + b"\0\0\0\0" * len(value))
                for order, item in enumerate(value):
                    place = held + 4 + 4 * order
                    struct.pack_into("<I", data, place, table(item) - place)
            struct.pack_into("<I", data, at, held - at)
        return start

    struct.pack_into("<I", data, 0, table({0: version, 1: plans}))
    return bytes(data)


WHOLE = program(
    3,
    [
        {0: "forward", 6: [{0: "aten::add", 1: "out"}, {0: "aten::mm", 1: "out"}, {0: "my::op"}], 7: [{0: "XnnpackBackend"}]},
        {0: "other"},
    ],
)


def test_a_program_is_named_with_version_methods_operators_and_delegates(tmp_path: Path) -> None:
    path = tmp_path / "model.pte"
    path.write_bytes(WHOLE)
    with pytest.raises(Unsupported) as caught:
        open_archive(path)
    assert caught.value.code == "executorch"
    message = "version 3; methods: forward, other; 3 operators: aten::add.out, aten::mm.out, my::op; delegates: XnnpackBackend"
    assert message in caught.value.message


def test_names_are_escaped_and_damage_is_told() -> None:
    assert "\x1b" not in described(program(0, [{0: "\x1b[31m"}]))
    assert "damaged" in described(WHOLE[:40])
    assert "damaged" in described(b"\xff\xff\xff\xffET12")


def test_any_damage_is_survived() -> None:
    chance = random.Random(7)
    for _ in range(3000):
        data = bytearray(WHOLE)
        for _ in range(chance.choice((1, 2, 5))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        assert isinstance(described(bytes(data)), str)
