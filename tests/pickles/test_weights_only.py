"""What restricted unpicklers reject, and what the user can allow."""

from __future__ import annotations

import fractions
import sys
import types
from typing import TYPE_CHECKING, Any

import pytest

from torch_compat.errors import UsageError
from torch_compat.pickles import unpickle
from torch_compat.pickles.machine import CORE
from torch_compat.pickles.values import Global
from torch_compat.pickles.weights_only import (
    Refusal,
    RestrictedUnpickler,
    _generic_allocation,
    add_safe_globals,
    allowing,
    clear_safe_globals,
    get_safe_globals,
    harmless_subclass,
    refusal,
    refusals,
    safe_globals,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

NEW = RestrictedUnpickler(
    "2.13.0",
    frozenset({
        "collections.OrderedDict", "collections.Counter", "torch.Tensor", "torch.Size", "builtins.set", "torch.FloatStorage",
        "torch._tensor._rebuild_from_type_v2", "torch._utils._rebuild_tensor_v2", "torch.nn.parameter.Parameter", "os.harmless",
    }),
    CORE | {"BINFLOAT", "LONG1", "EMPTY_SET", "SHORT_BINSTRING"},
    blocked=frozenset({"sys", "os", "posix", "nt"}),
    setitem=frozenset({"dict", "collections.OrderedDict", "collections.Counter"}),
)  # fmt: skip
MIDDLE = NEW._replace(
    release="2.4.1", renames="protocol-2", objects="safe", blocked=frozenset(), setitem=frozenset({"*"}), nested=False
)
OLD = MIDDLE._replace(release="1.13.1", renames="never", objects="none", adds=False, opcodes=NEW.opcodes - {"BINFLOAT"}, tar=True)


@pytest.fixture(autouse=True)
def _nothing_added() -> Iterator[None]:
    clear_safe_globals()
    yield
    clear_safe_globals()


def said(data: bytes, rules: RestrictedUnpickler = NEW, **options: Any) -> tuple[str, str] | None:
    result = refusal(unpickle(data, where="file"), rules, **options)
    assert refusals(unpickle(data, where="file"), (rules,), **options) == (result,)
    return (result.code, result.subject) if result else None


@pytest.mark.parametrize(("data", "new", "middle", "old"), [
    (b"\x80\x02N.", None, None, None),
    (b"\x80\x02G\0\0\0\0\0\0\0\0.", None, None, ("opcode", "BINFLOAT")),
    (b"\x80\x04\x95\x02\0\0\0\0\0\0\0N.", *[("opcode", "FRAME")] * 3),
    (b"\x80\x04}\x94.", *[("opcode", "MEMOIZE")] * 3),
    (b"\x80\x02\x8b\1\0\0\0\1.", *[("opcode", "LONG4")] * 3),
    (b"\x80\x02cfractions\nFraction\n.", *[("global", "fractions.Fraction")] * 3),
    (b"\x80\x02cos\nsystem\n.", ("blocked-module", "os.system"), *[("global", "os.system")] * 2),
    (b"\x80\x02cos\nharmless\n.", ("blocked-module", "os.harmless"), None, None),
    (b"\x80\x02c__builtin__\nset\n.", None, None, ("global", "__builtin__.set")),
    (b"\x80\x03c__builtin__\nset\n.", None, *[("global", "__builtin__.set")] * 2),
    (b"\x80\x02ctorch\nSize\n)R.", None, None, None),
    (b"\x80\x02ctorch\nSize\n)\x81.", None, *[("object", "torch.Size")] * 2),
    (b"\x80\x02ctorch.nn.parameter\nParameter\n)\x81.", None, None, None),
    (b"\x80\x02ccollections\nOrderedDict\n)R}b.", None, None, None),
    (b"\x80\x02ccollections\nCounter\n)R}b.", None, *[("state", "collections.Counter")] * 2),
    (b"\x80\x02ccollections\nOrderedDict\n)RNNs.", None, None, None),
    (b"\x80\x02]NaK\0Ns.", ("setitem", "list"), None, None),
    (b"\x80\x02ctorch\nSize\n)R)R.", *[("call", "<Size>")] * 3),
    (b"\x80\x02K\x05Q.", *[("persistent-id", "int")] * 3),
    (b"\x80\x02(X\6\0\0\0modulectorch\nSize\nNNtQ.", *[("persistent-id", "tuple of module")] * 3),
    (b"\x80\x02(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\x000NK\x05tQ.", None, None, None),
])  # fmt: skip
def test_what_is_refused(data: bytes, new: Any, middle: Any, old: Any) -> None:
    assert (said(data), said(data, MIDDLE), said(data, OLD)) == (new, middle, old)


def test_the_first_thing_in_the_pickle_is_what_it_is_refused_for() -> None:
    assert said(b"\x80\x02(\x8b\1\0\0\0\1ca\nb\nl.") == ("opcode", "LONG4")
    assert said(b"\x80\x02(ca\nb\n\x8b\1\0\0\0\1l.") == ("global", "a.b")


def test_archives_that_are_no_checkpoints() -> None:
    assert said(b"N.", torchscript=True) == ("torchscript", "")
    assert said(b"ca\nb\n.", OLD._replace(torchscript=True), torchscript=True) is None  # torch.jit.load takes what it likes
    assert said(b"N.", container="tar") == ("tar", "")
    assert said(b"N.", OLD, container="tar") is None
    assert said(b"P12\n.", OLD, container="tar") == ("opcode", "PERSID")
    assert said(b"X\2\0\0\x0012Q.", OLD, container="tar") is None
    assert said(b"X\2\0\0\x0012Q.", OLD) == ("persistent-id", "str")
    assert said(b"K\x0cQ.", OLD, container="tar") == ("persistent-id", "int")


def test_names_are_allowed_where_users_can_add_them() -> None:
    unpickled = unpickle(b"\x80\x02cfractions\nFraction\n)R.", where="file")
    named = allowing(unpickled, NEW)
    assert [item.path for item in named if isinstance(item, Global)] == ["fractions.Fraction"]
    refused = allowing(unpickled, OLD)
    assert isinstance(refused, Refusal)
    assert (refused.code, refused.subject) == ("global", "fractions.Fraction")
    assert allowing(unpickle(b"\x80\x02N.", where="file"), OLD) == ()


def test_the_pickles_of_a_stream_are_asked_in_order() -> None:
    parts = [unpickle(data, where="file") for data in (b"N.", b"ca\nb\n.", b"cc\nd\n.")]
    result = refusals(parts, (NEW, OLD))
    assert [item.subject for item in result if item] == ["a.b", "a.b"]


FRACTION = b"\x80\x02cfractions\nFraction\nX\3\0\0\x001/3\x85R."


def test_safe_globals_are_added_listed_scoped_and_cleared() -> None:
    assert said(FRACTION) == ("global", "fractions.Fraction")
    with safe_globals(["fractions.Fraction"]):
        assert said(FRACTION) is None
        assert said(FRACTION, MIDDLE) is None
        assert said(FRACTION, OLD) == ("global", "fractions.Fraction")  # 1.13 cannot be told
        with safe_globals([test_limits := types.SimpleNamespace]):
            assert get_safe_globals() == ["fractions.Fraction", test_limits]
        assert get_safe_globals() == ["fractions.Fraction"]
    assert said(FRACTION) == ("global", "fractions.Fraction")
    add_safe_globals([fractions.Fraction])
    assert said(FRACTION) is None
    clear_safe_globals()
    assert get_safe_globals() == []
    add_safe_globals([(dict, "fractions.Fraction")])
    assert said(FRACTION) is None


def test_what_is_safe_may_be_made_and_set() -> None:
    result = b"\x80\x02cm\nMine\n)\x81}b."
    with safe_globals(["m.Mine"]):
        assert said(result) is None
        assert said(result, MIDDLE) is None
        appended = b"\x80\x02cm\nMine\n)\x81Na."
        assert said(appended) == ("append", "m.Mine")
        assert said(appended, NEW._replace(appends_safe=True)) is None
        assert said(b"\x80\x02cm\nMine\n)\x81NNs.") == ("setitem", "m.Mine")
        assert said(b"\x80\x02cm\nMine\n)\x81NNs.", MIDDLE) is None


def test_blocked_modules_stay_blocked() -> None:
    with safe_globals(["os.system"]):
        assert said(b"\x80\x02cos\nsystem\n.") == ("blocked-module", "os.system")


class Outer:
    class Inner:
        pass


def test_nested_classes_are_known_by_the_name_that_the_release_gives_them() -> None:
    with safe_globals([Outer.Inner]):
        assert said(f"\x80\x02c{__name__}\nOuter.Inner\n.".encode("latin-1")) is None
        assert said(f"\x80\x02c{__name__}\nOuter.Inner\n.".encode("latin-1"), MIDDLE) == ("global", f"{__name__}.Outer.Inner")
        assert said(f"\x80\x02c{__name__}\nInner\n.".encode("latin-1"), MIDDLE) is None


@pytest.mark.parametrize("added", ["fractions.Fraction", [5], ["Fraction"], [None], [(dict, 5)]])
def test_what_is_no_name_cannot_be_added(added: Any) -> None:
    with pytest.raises(UsageError):
        add_safe_globals(added)


# ----------------------------------------------------------------------------------------------------------- tensor subclasses


class Meta(type):
    pass


class Tensor(metaclass=Meta):
    def __setstate__(self, state: object) -> None:
        raise AssertionError


class Plain(Tensor):
    def other(self) -> None:
        pass


class Getting(Tensor):
    def __getattr__(self, name: str) -> object:
        raise AssertionError


class Stated(Tensor):
    def __setstate__(self, state: object) -> None:
        raise AssertionError


class Setting(Tensor):
    def __setattr__(self, name: str, value: object) -> None:
        raise AssertionError


class Reading(Tensor):
    def __getattribute__(self, name: str) -> object:
        raise AssertionError


class Described(Tensor):
    def __get__(self, *_: object) -> object:
        raise AssertionError


class Describing(Tensor):
    def __set__(self, *_: object) -> object:
        raise AssertionError


class Inherited(Getting):
    pass


@pytest.fixture
def _torch(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("torch")
    module.Tensor = Tensor  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", module)


@pytest.mark.usefixtures("_torch")
def test_subclasses_of_tensor_are_harmless_under_three_conditions() -> None:
    harmless = [name for name, global_ in globals().items() if isinstance(global_, Meta) and harmless_subclass(__name__, name)]
    assert harmless == ["Plain"]
    assert not harmless_subclass("not_imported", "Plain")
    assert not harmless_subclass(__name__, "Outer")
    assert not harmless_subclass(__name__, "missing")
    rebuilt = b"\x80\x02ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_tensor_v2\nc%s\n%s\n)}tR."
    for name, expected in (("Plain", None), ("Getting", ("global", f"{__name__}.Getting"))):
        data = rebuilt % (__name__.encode(), name.encode())
        assert said(data, tensor_subclasses=True) == expected
        assert said(data) == ("global", f"{__name__}.{name}")
    called = b"\x80\x02c%s\nPlain\n)R." % __name__.encode()
    assert said(called, tensor_subclasses=True) == ("call", f"{__name__}.Plain")


def test_without_torch_no_subclass_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert not harmless_subclass(__name__, "Plain")


def test_allocation_of_their_own_is_told() -> None:
    assert _generic_allocation(Plain)
    assert not _generic_allocation(dict)
