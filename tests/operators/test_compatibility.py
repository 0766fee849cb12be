from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.schemas import pairs
from torch_compat.operators.compatibility import (
    VARIABLE,
    CompatibilityResult,
    ProgramCall,
    backward,
    forward,
    forward_call,
    is_backward,
    serialized,
)
from torch_compat.operators.schema import SchemaError, parse


def schemas(new: str, old: str) -> tuple[CompatibilityResult, CompatibilityResult]:
    first, second = (parse(text if "::" in text else f"a::b({text}) -> Tensor") for text in (new, old))
    verdicts = backward(first, second), forward(first, second)
    assert is_backward(first, second) is verdicts[0].compatible
    return verdicts


@pytest.mark.parametrize(
    ("new", "old", "backwards", "forwards"),
    [
        # an argument more
        ("int x, int y=1", "int x", None, None),
        ("int x, *, int y=1", "int x", None, None),
        ("int x, int y", "int x", "no-default", "no-default"),
        ("int x, int[] y=[]", "int x", None, "container-default"),
        ("int x, int y=1, *, Tensor(a!) out", "int x, *, Tensor(a!) out", None, None),
        ("int y=1, *, int x", "*, int x", "renamed", "renamed"),
        # an argument less
        ("int x", "int x, int y=1", "arguments-removed", None),
        ("int x, *, Tensor(a!) out", "int x, int y, *, Tensor(a!) out", "arguments-removed", None),
        # names, order, keywords
        ("int y", "int x", "renamed", "renamed"),
        ("int y, int x", "int x, int y", "renamed", "renamed"),
        ("*, int x", "int x", "keyword-only", "keyword-only"),
        ("int x", "*, int x", None, None),
        # types
        ("Scalar x", "int x", None, "type"),
        ("int x", "Scalar x", "type", None),
        ("Tensor? x", "Tensor x", None, "type"),
        ("Any x", "str x", None, "type"),
        ("SymInt x", "int x", None, None),
        ("int? dtype", "ScalarType? dtype", None, None),
        ("int[2] x", "int[] x", "size", "size"),
        ("Tensor(a!) x", "Tensor x", "alias", "alias"),
        ("Tensor(a|b) x", "Tensor(b|a) x", None, None),
        # defaults
        ("int x=1", "int x", None, "default-added"),
        ("int x", "int x=1", "default-changed", "default-changed"),
        ("int x=1", "int x=2", "default-changed", "default-changed"),
        ("Scalar x=1", "Scalar x=1.", "default-changed", "default-changed"),
        ("int[2] x=1", "int[2] x=[1, 1]", None, None),
        # out arguments
        ("*, Tensor(a!) a, Tensor(b!) b", "*, Tensor(a!) a", None, "out-count"),
        ("*, Tensor(a!) a, int x", "*, Tensor(a!) a", None, "out-count"),
        ("*, Tensor(a!) b", "*, Tensor(a!) a", "renamed", "renamed"),
        ("int x=1, *, Tensor(a!) a", "*, Tensor(a!) a, Tensor(b!) b", "out-missing", "out-count"),
        # the whole
        ("a::c() -> Tensor", "a::b() -> Tensor", "operator", "operator"),
        ("a::b.x() -> Tensor", "a::b() -> Tensor", "operator", "operator"),
        ("a::b(...) -> Tensor", "a::b() -> Tensor", "vararg", "vararg"),
        ("a::b() -> ...", "a::b() -> (...)", None, None),
        ("a::b() -> (Tensor, ...)", "a::b() -> Tensor", "vararg", "vararg"),
        ("a::b() -> (Tensor, Tensor)", "a::b() -> Tensor", "returns-count", "returns-count"),
        ("a::b() -> int", "a::b() -> Scalar", None, None),
        ("a::b() -> Scalar", "a::b() -> int", "return", None),
        ("a::b() -> Tensor x", "a::b() -> Tensor", "return", None),
        ("a::b() -> Tensor(a)", "a::b() -> Tensor", "return", None),
    ],
)
def test_causes(new: str, old: str, backwards: str | None, forwards: str | None) -> None:
    back, ahead = schemas(new, old)
    assert (back.cause, ahead.cause) == (backwards, forwards)
    for verdict in (back, ahead):
        assert verdict.compatible is (verdict.cause is None)
        assert (verdict.reason is None) is verdict.compatible


def test_a_new_keyword_argument_with_a_default_is_never_a_break() -> None:
    for _, text in pairs.recorded()[::40]:
        try:
            old = parse(text)
        except SchemaError:
            continue
        if old.is_vararg:
            continue
        out = next((at for at, argument in enumerate(old.arguments) if argument.is_out), len(old.arguments))
        extra = parse("a::b(*, int? not_there_before=None) -> ()").arguments
        new = old._replace(arguments=(*old.arguments[:out], *extra, *old.arguments[out:]))
        assert backward(new, old).compatible, text
        assert forward(new, old).compatible, text


def test_reasons_say_what_it_was_and_what_it_is() -> None:
    back, ahead = schemas("Scalar x=2", "Scalar x=1")
    assert back.reason == ahead.reason == "the default of 'x' is 2 instead of 1"
    assert back.argument == "x"
    assert schemas("Tensor(a!) x", "Tensor(a) x")[0].reason == "'x' is annotated (a!) instead of (a)"
    assert schemas("Tensor(a!)[] x", "Tensor x")[0].reason == "'x' is annotated (a!)[] instead of nothing"
    assert schemas("int x", "int x, int y=1")[0].reason == "it no longer has 'y'"
    assert schemas("*, Tensor(a!) a, Tensor(b!) b", "*, Tensor(a!) a")[1].reason == (
        "starting with the first out argument, it has 2 arguments instead of 1 argument"
    )


def test_what_a_check_does_not_see_is_said() -> None:
    back, ahead = schemas("SymInt[2] x", "int[2] x")
    assert back.compatible
    assert back.blind == ahead.blind == ("argument 'x' is SymInt[] instead of int[], which this check treats as equal",)
    back, ahead = schemas("int x", "int x, int y, int z")
    assert ahead.blind == ("'y', 'z' removed, which this check does not detect",)
    assert back.blind == ()
    _, ahead = schemas("a::b() -> Scalar", "a::b() -> int")
    assert ahead.blind == ("return 1 is Scalar instead of int, and this check only counts returns",)
    back, _ = schemas("*, Tensor(a!) a, int x", "*, Tensor(a!) a")
    assert back.blind == ("'x' added after the out arguments, which this check ignores",)
    new = parse("a::b(int[2] x=1) -> ()", recorded=True)
    assert (
        "does not record the default of argument 'x'"
        in backward(new, parse("a::b(int[2] x=<default>) -> ()", recorded=True)).blind[0]
    )


@settings(deadline=None)
@given(st.integers(0, 2**40))
def test_a_schema_is_compatible_with_itself(number: int) -> None:
    text = pairs.generated(number)[0]
    try:
        schema = parse(text)
    except SchemaError:
        return
    again = schema._replace(
        arguments=tuple(argument._replace(spelling="x") for argument in schema.arguments), returns_spelling="x"
    )
    assert again is not schema
    for verdict in (backward(again, schema), forward(again, schema), backward(schema, schema), forward(schema, schema)):
        assert verdict == CompatibilityResult(compatible=True)


# --------------------------------------------------------------------------------------------------------------------------- calls

NEW = parse("aten::op(Tensor self, int k=1, int[2] stride=0, float? scale=None, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)")


@pytest.mark.parametrize(
    ("call", "positional", "keywords"),
    [
        (ProgramCall((VARIABLE,), {"out": VARIABLE}), ("self",), ("out",)),
        (ProgramCall((VARIABLE, 1), {"out": VARIABLE}), ("self",), ("out",)),
        (ProgramCall((VARIABLE, True), {"out": VARIABLE}), ("self", "k"), ("out",)),
        (ProgramCall((VARIABLE, 2), {"out": VARIABLE}), ("self", "k"), ("out",)),
        (ProgramCall((VARIABLE, VARIABLE), {"out": VARIABLE}), ("self", "k"), ("out",)),
        (ProgramCall((VARIABLE, 1, 0), {"out": VARIABLE}), ("self", "k", "stride"), ("out",)),
        (ProgramCall((VARIABLE, 1, VARIABLE, None), {"out": VARIABLE}), ("self", "k", "stride"), ("out",)),
        (ProgramCall((VARIABLE,), {"alpha": 1, "out": VARIABLE}), ("self",), ("out",)),
        (ProgramCall((VARIABLE,), {"alpha": 1.0, "out": VARIABLE}), ("self", "k", "stride", "scale"), ("alpha", "out")),
    ],
)
def test_what_saved_code_states(call: ProgramCall, positional: tuple[str, ...], keywords: tuple[str, ...]) -> None:
    message = serialized(NEW, call)
    assert (message.positional, message.keywords) == (positional, keywords)
    names = [argument.name for argument in NEW.arguments]
    assert [name for name in names if name not in positional and name not in keywords] == list(message.dropped)


def test_a_vararg_call_states_everything() -> None:
    message = serialized(parse("aten::format(str self, ...) -> str"), ProgramCall(("{}{}", VARIABLE, 2)))
    assert message.positional == ("self", "...", "...")


@pytest.mark.parametrize(
    ("old", "call", "cause"),
    [
        ("Tensor self, *, Tensor(a!) out", ProgramCall((VARIABLE,), {"out": VARIABLE}), None),
        ("Tensor self, *, Tensor(a!) out", ProgramCall((VARIABLE, 1), {"out": VARIABLE}), None),
        ("Tensor self, *, Tensor(a!) out", ProgramCall((VARIABLE, 2), {"out": VARIABLE}), "too-many"),
        ("Tensor self, int k=2, *, Tensor(a!) out", ProgramCall((VARIABLE, 1), {"out": VARIABLE}), "default-changed"),
        ("Tensor self, int k=2, *, Tensor(a!) out", ProgramCall((VARIABLE, 3), {"out": VARIABLE}), None),
        ("Tensor self, int k, *, Tensor(a!) out", ProgramCall((VARIABLE,), {"out": VARIABLE}), "missing"),
        ("Tensor input, *, Tensor(a!) out", ProgramCall((VARIABLE,), {"out": VARIABLE}), None),
        ("Tensor self, *, Tensor(a!) result", ProgramCall((VARIABLE,), {"out": VARIABLE}), "unknown-keyword"),
        ("Tensor self, bool flag, int k, *, Tensor(a!) out", ProgramCall((VARIABLE, 2), {"out": VARIABLE}), "moved"),
        ("Tensor self, bool k=True, *, Tensor(a!) out", ProgramCall((VARIABLE, 2), {"out": VARIABLE}), "type"),
        ("Tensor self, Scalar k=1, *, Tensor(a!) out", ProgramCall((VARIABLE, VARIABLE), {"out": VARIABLE}), None),
        ("Tensor self, Tensor(a!) out", ProgramCall((VARIABLE,), {"out": VARIABLE}), None),
        ("Tensor out, *, Tensor(a!) self", ProgramCall((VARIABLE,), {"out": VARIABLE}), "moved"),
    ],
)
def test_forward_compatibility_of_a_call(old: str, call: ProgramCall, cause: str | None) -> None:
    verdict = forward_call(NEW, parse(f"aten::op.other({old}) -> Tensor(a!)"), call)
    assert (verdict.compatible, verdict.cause) == (cause is None, cause), verdict


def test_a_call_decides_where_the_schema_can_not() -> None:
    new = parse("aten::op(Tensor self, int[2] stride=1) -> Tensor")
    old = parse("aten::op(Tensor self) -> Tensor")
    assert not forward(new, old).compatible
    assert forward_call(new, old, ProgramCall((VARIABLE,))).compatible
    assert forward_call(new, old, ProgramCall((VARIABLE, VARIABLE))).cause == "too-many"
    assert forward_call(new, parse("aten::other(Tensor self) -> Tensor"), ProgramCall((VARIABLE,))).cause == "operator"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (ProgramCall((VARIABLE,) * 5, {}), "takes 4 positional arguments, but the call passes 5"),
        (ProgramCall((VARIABLE,), {"nothing": 1}), "has no argument 'nothing'"),
        (ProgramCall((VARIABLE,), {"self": 1}), "got multiple values for 'self'"),
        (ProgramCall((VARIABLE,), {}), "is missing out"),
    ],
)
def test_a_call_that_is_none_of_the_schema_is_refused(call: ProgramCall, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        serialized(NEW, call)
