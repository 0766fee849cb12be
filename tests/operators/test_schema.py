from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.schemas import pairs
from torch_compat.errors import UsageError
from torch_compat.operators.history import History
from torch_compat.operators.schema import Alias, Default, Schema, SchemaError, canonical, parse
from torch_compat.operators.schema_parser import Parser, read_quickly

# ------------------------------------------------------------------------------------------------------------- parsing and printing


def test_every_recorded_schema_comes_back_as_it_was_written() -> None:
    texts = [text for _, text in pairs.recorded()]
    assert len(texts) > 10_000
    for text in texts:
        schema = parse(text, recorded=True)
        assert str(schema) == text
        printed = canonical(schema)
        # 2.13.0 turns alias sets round each time, and prints the defaults of devices in a form that it does not read itself.
        if "|" not in text and not any(
            argument.default is not None and argument.default.kind == "device" for argument in schema.arguments
        ):
            assert canonical(parse(printed, recorded=True)) == printed


def test_most_of_what_newer_releases_print_is_canonical() -> None:
    history = History.load()
    for release in ("2.12.1", "2.14.1", "2.15.0"):
        texts = [text for text, bits in history.texts() if bits & history.bit(release)]
        other = [text for text in texts if canonical(parse(text, recorded=True)) != text]
        # Single returns with a name had parentheses when these were registered, and some alias sets are printed the other way round.
        assert len(other) < 0.01 * len(texts), other[:20]


def test_the_parts_of_a_schema() -> None:
    text = "aten::add.out(Tensor self, SymInt[2] dim=1, *, Scalar alpha=1, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)"
    schema = parse(text)
    assert (schema.name, schema.overload, schema.operator) == ("aten::add", "out", "aten::add.out")
    assert [argument.name for argument in schema.arguments] == ["self", "dim", "alpha", "dtype", "out"]
    assert [argument.kwarg_only for argument in schema.arguments] == [False, False, True, True, True]
    assert [argument.is_out for argument in schema.arguments] == [False, False, False, False, True]
    _, dim, alpha, dtype, out = schema.arguments
    assert (dim.type.text, dim.type.fake.text, dim.size, dim.default) == ("SymInt[]", "int[]", 2, Default("list[int]", (1, 1)))
    assert (dtype.type.text, dtype.type.fake.text) == ("ScalarType?", "int?")
    assert alpha.default == Default("int", 1)
    assert out.alias == Alias(("a",), ("a",), write=True)
    assert str(schema) == text
    assert canonical(schema) == text.replace("SymInt[2] dim=1", "SymInt[2] dim=[1, 1]")


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("a::b()->int x", "a::b() -> int x"),
        ("a::b(int x) -> (Tensor)", "a::b(int x) -> Tensor"),
        ("a::b(int x) -> ((int, str)[])", "a::b(int x) -> ((int, str)[])"),
        ("a::b(int  x = 1,str y='a') -> ()", 'a::b(int x=1, str y="a") -> ()'),
        ("a::b(*, int x, *, int y) -> (...)", "a::b(*, int x, int y) -> ..."),
        ("a::b(Tensor(a)?[] x) -> (int, ...)", "a::b(Tensor?(a)[] x) -> (int, ...)"),
        ("a::b(Tensor(a!)[] x, Tensor![] y) -> ()", "a::b(Tensor(a!)[] x, Tensor($0! -> )[] y) -> ()"),
        ("a::b(Tensor! x, Tensor! y) -> ()", "a::b(Tensor($0! -> ) x, Tensor($1! -> ) y) -> ()"),
        ("a::b(Tensor(a! -> a|b) x) -> ()", "a::b(Tensor(a! -> b|a) x) -> ()"),
        ("a::b(Union(str, int, NoneType) x, Union(int, NoneType) y) -> ()", "a::b(Union(int, NoneType, str) x, int? y) -> ()"),
        ("a::b(Scalar? x, Scalar?? y) -> ()", "a::b(Scalar? x, Union(Scalar)? y) -> ()"),
        (
            "a::b(float x=1e-5, Scalar y=2j, float z=1e22) -> ()",
            "a::b(float x=1.0000000000000001e-05, Scalar y=0.+2.j, float z=1e+22) -> ()",
        ),
        ("a::b(ScalarType x=bfloat16, MemoryFormat y=contiguous_format) -> ()", "a::b(ScalarType x=15, MemoryFormat y=0) -> ()"),
        ("a::b(Device x='cuda:1', Device? y='cpu') -> ()", "a::b(Device x=cuda:1, Device? y=cpu) -> ()"),
        ("a::b((SymInt, int) x, Dict(str, SymInt) y) -> ()", "a::b((int, int) x, Dict(str, int) y) -> ()"),
        ("a::b(int[2.5] x, complex y=12) -> ()", "a::b(int[2] x, complex y=0.+1.j) -> ()"),
        ("a::b(some.thing x, None y) -> ()", "a::b(some.thing x, NoneType y) -> ()"),
        ("a::b(int x, # why\n int y) -> ()\n", "a::b(int x, int y) -> ()"),
        ("a::b(str x='\\t\\101\\'') -> ()", 'a::b(str x="\\tA\\\'") -> ()'),
    ],
)
def test_what_is_printed_is_what_torch_prints(written: str, printed: str) -> None:
    assert canonical(parse(written)) == printed


def test_spellings_of_old_releases_are_taken_when_asked_for() -> None:
    texts = [
        "aten::conv2d(Tensor x, int[2] stride=<default>) -> Tensor",
        "aten::_set_item(Dict[str, t] l, str idx, t v) -> ",
        "_c10_experimental::Add(Tensor x) -> ",
        "__torch__.torch.classes.quantized.Conv.__getstate__(__torch__.torch.classes.quantized.Conv self) -> Tensor",
        "x::y(Dimname[]? names) -> PyObject",
    ]
    for text in texts:
        with pytest.raises(SchemaError):
            parse(text)
        assert str(parse(text, recorded=True)) == text
    assert parse(texts[0], recorded=True).arguments[1].default == Default("unstated", None)
    assert parse(texts[3], recorded=True).name == "__torch__.torch.classes.quantized.Conv.__getstate__"


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        ("", 1, "the name of an operator"),
        ("aten::add", 10, "'(' and the arguments"),
        ("aten:add(Tensor x) -> Tensor", 6, "':'"),
        ("aten::add.default(Tensor x) -> Tensor", 11, "other than 'default'"),
        ("aten::add(Tensro x) -> Tensor", 11, "a type (did you mean Tensor"),
        ("aten::add(Tensor) -> Tensor", 17, "the name of the argument"),
        ("aten::add(Tensor x, int y -> Tensor", 27, "',' or ')'"),
        ("aten::add(Tensor x,) -> Tensor", 20, "a type"),
        ("aten::add(Tensor x) - Tensor", 21, "'->'"),
        ("aten::add(Tensor x) ->", 23, "a type"),
        ("aten::add(Tensor x) -> Tensor)", 30, "nothing more"),
        ("aten::add(Tensor?(a) x) -> Tensor", 18, "the name of the argument"),
        ("aten::add(Tensor(a x) -> Tensor", 20, "')' after the alias sets"),
        ("aten::add(int[x] y) -> Tensor", 15, "']', or the size of the list"),
        ("aten::add(int x=) -> Tensor", 17, "a default"),
        ("aten::add(int[] x=1) -> Tensor", 19, "'['"),
        ("aten::add(int[2] x=[1, 1.5]) -> Tensor", 20, "values that are int"),
        ("aten::add(Tensor x=1) -> Tensor", 20, "'None'"),
        ("aten::add(str[] x=[]) -> Tensor", 19, "a list of str has none"),
        ("aten::add(Any x=None) -> Tensor", 17, "the type Any has none"),
        ("aten::add(Device x='gpu') -> Tensor", 20, "a string that names a device"),
        ("aten::add(ScalarType x=float33) -> Tensor", 24, "names a dtype"),
        ("aten::add(int x=99999999999999999999) -> Tensor", 17, "a number that fits"),
        ("aten::add(int x=1, Tensor y) -> Tensor", 20, "a default, since an earlier argument has one"),
        ("aten::add(int x=1, ...) -> Tensor", 23, "no defaults together with '...'"),
        ("aten::add(..., int x) -> Tensor", 16, "nothing after '...'"),
        ("aten::add(Dict(t, int) x) -> Tensor", 22, "a Dict key of type"),
        ("aten::add(Union(int, int) x) -> Tensor", 25, "no type includes all the others"),
        ("aten::add(NoneType? x) -> Tensor", 19, "values other than None"),
        ("aten::add(str x='a) -> Tensor", 17, "a name, a number, a string or a symbol"),
        ("aten::add(str x='\\q') -> Tensor", 18, "an escape sequence that PyTorch supports"),
        ("aten::add(Tensor x) -> Tensor $", 31, "a name, a number, a string or a symbol"),
    ],
)
def test_a_typo_is_refused_with_its_column(text: str, column: int, expected: str) -> None:
    with pytest.raises(SchemaError) as caught:
        parse(text)
    assert (caught.value.column, caught.value.text) == (column, text)
    assert expected in caught.value.expected
    assert f"column {column}" in str(caught.value)
    assert isinstance(caught.value, UsageError)
    assert caught.value.exit_status == 2


# ----------------------------------------------------------------------------------------------------------------------------- laws


@settings(deadline=None)
@given(st.integers(0, 2**40))
def test_what_is_parsed_is_printed_and_parsed_again(number: int) -> None:
    for text in pairs.generated(number):
        try:
            schema = parse(text)
        except SchemaError as error:
            assert 1 <= error.column <= len(text) + 1  # noqa: PT017 - most texts are schemas
            continue
        again = parse(str(schema))
        assert plain(again) == plain(schema)
        assert str(again) == str(schema)
        assert canonical(again) == canonical(schema)


def plain(schema: Schema) -> object:
    """A schema without its spellings, and with alias sets in no order."""

    def alias(item: Alias | None) -> object:
        return item and (frozenset(item.before), frozenset(item.after), item.write, [alias(inner) for inner in item.contained])

    ones = [
        [
            (argument.name, argument.type, argument.size, argument.default, argument.kwarg_only, alias(argument.alias))
            for argument in group
        ]
        for group in (schema.arguments, schema.returns)
    ]
    return schema.operator, ones, schema.is_vararg, schema.is_varret


@settings(deadline=None)
@given(st.integers(0, 2**40))
def test_typos_are_refused_inside_the_text(number: int) -> None:
    text = pairs.typo(number)
    try:
        schema = parse(text)
    except SchemaError as error:
        assert 1 <= error.column <= len(text) + 1  # noqa: PT017 - some typos are schemas
        assert error.expected  # noqa: PT017
        assert error.found  # noqa: PT017
    else:
        assert str(parse(str(schema))) == str(schema)


@given(st.text(max_size=60))
def test_any_text_is_a_schema_or_refused(text: str) -> None:
    for whole in (text, f"aten::x({text}) -> Tensor", f"aten::x(Tensor a) -> {text}"):
        try:
            parse(whole)
        except SchemaError as error:
            assert 1 <= error.column <= len(whole) + 1  # noqa: PT017 - some are schemas


def test_the_quick_way_reads_what_the_long_one_reads() -> None:
    quick = 0
    for _, text in pairs.recorded():
        result = read_quickly(text, recorded=True)
        if result is not None:
            quick += 1
            assert result == Parser(text, recorded=True).schema()
    assert quick > 9_000


def test_reading_schemas_imports_nothing_heavy() -> None:
    code = (
        "import sys; from torch_compat.operators import changes, compatibility, schema; "
        "schema.parse('aten::x(Tensor a, *, Scalar b=1) -> Tensor'); "
        "print([name for name in ('pydantic', 'numpy', 'torch', 'rich', 'dataclasses', 'difflib') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"
