from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.schemas import pairs
from torch_compat.errors import UsageError
from torch_compat.operators import schema as grammar
from torch_compat.operators.call_signature import SignatureParameter, bare, signature_of


def test_a_schema_is_split_into_its_arguments() -> None:
    signature = signature_of("aten::add.Tensor(Tensor(a!) self, Tensor other, *, Scalar? alpha=1) -> Tensor(a!)")
    assert (signature.name, signature.overload, signature.returns, signature.vararg) == (
        "aten::add",
        "Tensor",
        "Tensor(a!)",
        False,
    )
    assert signature.arguments == (
        SignatureParameter("self", "Tensor", None, False, True),
        SignatureParameter("other", "Tensor", None, False, False),
        SignatureParameter("alpha", "Scalar?", "1", True, False),
    )
    assert [argument.optional for argument in signature.arguments] == [False, False, True]


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("", []),
        ("...", []),
        ("str self, ...", [("self", "str", None)]),
        ("Dict(str, Tensor)(a) self, str key", [("self", "Dict(str, Tensor)", None), ("key", "str", None)]),
        ("Tensor(a -> *)[] x, Tensor[](b!) y", [("x", "Tensor[]", None), ("y", "Tensor[]", None)]),
        ("Tensor(a|b) x, t(c -> *) el", [("x", "Tensor", None), ("el", "t", None)]),
        ("Future(t) self, RRef(t) r, Await(t) w", [("self", "Future(t)", None), ("r", "RRef(t)", None), ("w", "Await(t)", None)]),
        ("(int, Tensor?[], str) p", [("p", "(int, Tensor?[], str)", None)]),
        ('str padding="va,l)id", int[2] stride=[1, 1]', [("padding", "str", '"va,l)id"'), ("stride", "int[2]", "[1, 1]")]),
        ("str x='\\'', float y=1e-05", [("x", "str", "'\\''"), ("y", "float", "1e-05")]),
        ("int[] stride=<default>, int groups=<default>", [("stride", "int[]", "<default>"), ("groups", "int", "<default>")]),
        ("__torch__.torch.classes.xnnpack.LinearOpContext c", [("c", "__torch__.torch.classes.xnnpack.LinearOpContext", None)]),
    ],
)
def test_whatever_a_release_prints(text: str, arguments: list[tuple[str, str, str | None]]) -> None:
    message = signature_of(f"x::y({text}) -> ()")
    assert [(argument.name, argument.type, argument.default) for argument in message.arguments] == arguments
    assert message.vararg == text.endswith("...")


def test_the_dots_of_a_class_are_no_overload() -> None:
    message = signature_of(
        "__torch__.torch.classes.quantized.Conv.__init__(__torch__.torch.classes.quantized.Conv self) -> NoneType _0"
    )
    assert (message.name, message.overload) == ("__torch__.torch.classes.quantized.Conv.__init__", "")


@pytest.mark.parametrize("text", ["", "aten::add", "aten::add(Tensor x", "aten::add(Tensor x)", "(Tensor x) -> y", "a b() -> ()"])
def test_what_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not an operator schema"):
        signature_of(text)


def test_calls() -> None:
    message = signature_of("aten::op(Tensor self, int dim, int? more=None, *, Scalar alpha, Scalar beta=1) -> Tensor")
    assert message.refuses(2, {"alpha"}) is None
    assert message.refuses(3, {"alpha", "beta"}) is None
    assert message.refuses(1, {"alpha", "dim"}) is None
    assert message.refuses(4, {"alpha"}) == "takes 3 positional arguments, but the call passes 4"
    assert message.refuses(2) == "is missing alpha"
    assert message.refuses(0, {"alpha"}) == "is missing self, dim"
    assert message.refuses(2, {"alpha", "gamma"}) == "has no argument 'gamma'"
    assert message.refuses(2, {"alpha", "dim"}) == "got multiple values for 'dim'"
    assert signature_of("aten::format(str self, ...) -> str").refuses(7) is None
    assert signature_of("aten::format(str self, ...) -> str").refuses(0) == "is missing self"


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["Tensor", "Tensor?", "int[2]", "Dict(str, t)", "(int, str)[]", "Future(t)", "Scalar", "SymInt[]"]),
            st.sampled_from(["", "(a)", "(b!)", "(a -> *)"]),
            st.none() | st.sampled_from(["1", "None", "[1, 2]", '"a,b"', "-1", '"("']),
        ),
        max_size=6,
    ),
    st.integers(0, 6),
)
def test_what_was_put_together_is_taken_apart(parts: list[tuple[str, str, str | None]], star: int) -> None:
    written = [
        f"{kind}{'' if kind.startswith(('(', 'Future')) else alias} x{at}" + ("" if default is None else f"={default}")
        for at, (kind, alias, default) in enumerate(parts)
    ]
    if star < len(written):
        written.insert(star, "*")
    message = signature_of(f"ns::name.over({', '.join(written)}) -> Tensor")
    assert [(argument.name, argument.type, argument.default) for argument in message.arguments] == [
        (f"x{at}", kind, default) for at, (kind, _, default) in enumerate(parts)
    ]
    assert [argument.kwarg_only for argument in message.arguments] == [at >= star for at in range(len(parts))]


def test_a_shape_says_what_the_grammar_says() -> None:
    """It is the quick part of one truth: of every recorded schema both say the same."""
    compared = 0
    for _, text in pairs.recorded():
        signature = signature_of(text)
        known = grammar.parse(text, recorded=True)
        assert (signature.name, signature.overload, signature.vararg) == (known.name, known.overload, known.is_vararg)
        assert [(argument.name, argument.kwarg_only) for argument in signature.arguments] == [
            (argument.name, argument.kwarg_only) for argument in known.arguments
        ]
        assert [argument.mutated for argument in signature.arguments] == [
            argument.alias is not None and argument.alias.write for argument in known.arguments
        ]
        # What it says of types and defaults is text; read again, it is the same.
        arguments = [
            f"{argument.type} {argument.name}" + ("" if argument.default is None else f"={argument.default}")
            for argument in signature.arguments
        ]
        arguments.insert(sum(not argument.kwarg_only for argument in signature.arguments), "*")
        again = grammar.parse(f"x::y({', '.join(arguments)}) -> ()", recorded=True)
        for mine, theirs in zip(again.arguments, known.arguments, strict=True):
            assert (mine.type, mine.size, mine.default, mine.alias) == (theirs.type, theirs.size, theirs.default, None), text
        returns = grammar.parse(f"x::y() -> {signature.returns}", recorded=True)
        assert (returns.returns, returns.is_varret) == (known.returns, known.is_varret)
        compared += 1
    assert compared > 10_000


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("aten::add_", "aten::add"),
        ("aten::add", "aten::add"),
        ("aten::__and__", "aten::__and__"),
        ("aten::__iand__", "aten::__iand__"),
    ],
)
def test_the_mark_of_a_form_in_place_is_no_part_of_a_dunder_name(name: str, expected: str) -> None:
    assert bare(name) == expected
