"""The opcodes of a pickle, as listed by the standard library."""

from __future__ import annotations

import pickle
import pickletools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_compat.pickles import unpickle
from torch_compat.pickles.opcodes import opcodes

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(1 << 3000), 1 << 3000)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.binary().map(bytearray)
    | st.sampled_from([int, pickle.dumps, pickle.Pickler.dump])
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner) | st.sets(st.integers())
)


def listed(pickled: bytes) -> list[tuple[str, object]]:
    return [(opcode.name, argument) for opcode, argument, _ in pickletools.genops(pickled)]


@given(VALUES, st.integers(0, 5))
def test_the_opcodes_of_a_pickle_are_those_of_the_standard_library(value: object, protocol: int) -> None:
    pickled = pickle.dumps(value, protocol)
    assert unpickle(pickled, where="x").end == len(pickled)
    assert list(opcodes(pickled + b"what follows")) == listed(pickled)


@pytest.mark.parametrize(
    "pickled",
    [
        b"(I01\nI00\nI-7\nL5L\nF2.5\nS'a\\x41'\nVb\\u0416\nt.",
        b"\x80\x02(T\x02\0\0\0abU\x01cM\x01\2J\xff\xff\xff\xff\x8b\x01\0\0\0\x7f\x8a\0Nt.",
        b"P7\np0\ng0\n0h\0.",
        b"Pstorage 7\nr\1\0\0\0j\1\0\0\0q\2h\2.",
        b"(icollections\nOrderedDict\n.",
    ],
)
def test_opcodes_that_python_no_longer_writes_are_listed(pickled: bytes) -> None:
    unpickle(pickled, where="x")
    assert list(opcodes(pickled)) == listed(pickled)


def test_a_text_of_python_2_that_is_not_utf_8_is_listed_as_bytes() -> None:
    assert list(opcodes(b"U\x01\xff.")) == [("SHORT_BINSTRING", b"\xff"), ("STOP", None)]
