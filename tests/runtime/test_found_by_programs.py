"""Cases found by outside programs that no recipe had: each class in a program of a few lines, on both sides of its border.

The results are those of the releases: see ``evidence`` in policies/torch/changes.toml, and fixtures/programs.
"""

from __future__ import annotations

import io
import math
import zipfile
from typing import Any, Literal

import numpy as np
import pytest

from tests.runtime.archives import archive, program
from torch_compat.errors import Raised, Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime.dtypes import BFLOAT16
from torch_compat.runtime.load import load
from torch_compat.runtime.program import Program
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor

NAN = math.nan


def given(*values: Any) -> tuple[Any, ...]:
    return tuple(Tensor(np.array(value)) if isinstance(value, np.ndarray) else value for value in values)


def told(source: str, horizon: str, *args: Any, method: str = "forward") -> Any:
    """What a method gives, arrays as lists; "raises" where it raises."""
    try:
        result = program(source, f"reference@{horizon}").run(method, given(*args))
    except Raised:
        return "raises"
    return plain(result)


def plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.array.tolist()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def method(body: str, parameters: str) -> str:
    return f"def forward(self: __torch__.m.Model,\n    {parameters}):\n  return {body}\n"


FLOATS = "a: float,\n    b: float"


@pytest.mark.parametrize(
    ("body", "before", "since"),
    [
        ("(torch.eq(a, a), torch.ne(a, a))", [False, True], [True, False]),
        ("torch.eq(torch.add(a, b), torch.add(a, b))", False, True),
        ("torch.le(a, a)", False, False),
        ("torch.eq(a, b)", False, False),
        ("torch.eq([a][0], torch.mul(a, 1.))", False, False),
    ],
)
def test_a_float_is_equal_to_itself_from_1_10_on(body: str, before: Any, since: Any) -> None:
    assert told(method(body, FLOATS), "1.9.1", NAN, NAN) == before
    assert told(method(body, FLOATS), "1.10.2", NAN, NAN) == since


def test_a_tensor_is_compared_with_itself_in_every_release() -> None:
    assert told(method("torch.eq(x, x)", "x: Tensor"), "2.15.0", np.array([NAN, 1.0])) == [False, True]


LISTS = "xs: List[float],\n    ys: List[float]"


def test_a_list_is_equal_to_itself_from_1_6_on() -> None:
    """Another list is compared number by number, also where it holds the very same NaN."""
    item = method("(torch.eq(xs, xs), torch.ne(xs, xs))", LISTS)
    assert told(item, "1.5.1", [NAN, 1.0], []) == [False, True]
    assert told(item, "1.6.0", [NAN, 1.0], []) == [True, False]
    two = method("(torch.eq(xs, ys), torch.ne(xs, ys))", LISTS)
    assert told(two, "1.5.1", [NAN, 1.0], [NAN, 1.0]) == [False, True]
    assert told(two, "1.6.0", [NAN, 1.0], [NAN, 1.0]) == [False, True]
    assert told(two, "1.6.0", [0.0], [-0.0]) == [True, False]


@pytest.mark.parametrize(
    ("body", "since"),
    [
        ("return (torch.eq([a], [a]), torch.ne([a], [a]))", [True, False]),
        ("xs = [a, 1.]\nreturn (torch.eq(xs, [a, 1.]), xs)", [True, [NAN, 1.0]]),
        (
            "xs = [torch.mul(a, b)]\nif torch.gt(b, 0.):\n  r = torch.eq(xs, [torch.mul(a, b)])\nelse:\n  r = False\nreturn r",
            True,
        ),
        ("return torch.eq(torch.slice([a], 0, 1, 1), torch.slice([a], 0, 1, 1))", True),
        ("xs = [a]\nys = [a]\nreturn (torch.eq(xs, ys), xs, ys)", [False, [NAN], [NAN]]),
        ("xs = [a]\nxs = [b]\nreturn torch.eq(xs, [a])", False),
        ("xs = [a]\na = torch.add(a, 1.)\nreturn torch.eq(xs, [a])", False),
        ("xs = [a]\n_0 = torch.append(xs, b)\nreturn torch.eq(xs, [a])", False),
        ("return torch.eq([nan], [nan])", False),
    ],
)
def test_a_list_that_is_written_out_twice_is_one_list_from_1_6_on(body: str, since: Any) -> None:
    """Fifteen such programs were asked of 1.5.1, 1.6.0, 1.8.1, 1.12.1, 2.4.1 and 2.15.0."""
    lines = body.replace("\n", "\n  ")
    source = f"def forward(self: __torch__.m.Model,\n    {FLOATS}):\n  {lines}\n"
    assert repr(told(source, "2.15.0", NAN, 1.0)) == repr(since)
    before = told(source, "1.5.1", NAN, 1.0)
    assert (before[0] if isinstance(before, list) else before) is False


def test_a_list_of_tensors_is_equal_to_itself_where_each_tensor_is() -> None:
    source = method("torch.eq(xs, xs)", "xs: List[Tensor]")
    assert told(source, "2.15.0", [Tensor(np.array(NAN))]) is False
    assert told(source, "2.15.0", [Tensor(np.array([1.0, 1.0]))]) == "raises"


@pytest.mark.parametrize(("horizon", "written"), [("1.5.1", False), ("1.6.0", True), ("1.12.1", True), ("1.13.1", False)])
def test_index_put_of_a_list_of_tensors_writes_into_what_it_copies(horizon: str, written: bool) -> None:
    parameters = "x: Tensor,\n    i: Tensor,\n    v: Tensor"
    args = (np.array([0.0, 1.0]), np.array([1]), np.array([5.0]))
    assert told(method("(torch.index_put(x, [i], v), x)", parameters), horizon, *args) == [
        [0.0, 5.0],
        [0.0, 5.0 if written else 1.0],
    ]
    held = method("(torch.index_put(x, places, v), x)", parameters).replace("  return", "  places = [i]\n  return")
    assert told(held, horizon, *args) == [[0.0, 5.0], [0.0, 5.0 if written else 1.0]]
    optional = "(torch.index_put(x, annotate(List[Optional[Tensor]], [i]), v), x)"
    assert told(method(optional, parameters), horizon, *args) == [[0.0, 5.0], [0.0, 1.0]]


@pytest.mark.parametrize(
    ("text", "before", "since"), [("inf", math.inf, math.inf), ("1e3", "raises", 1000.0), ("x", "raises", "raises")]
)
def test_texts_become_floats_from_1_6_on(text: str, before: Any, since: Any) -> None:
    assert told(method("float(s)", "s: str"), "1.5.1", text) == before
    assert told(method("float(s)", "s: str"), "1.6.0", text) == since


@pytest.mark.parametrize(("horizon", "dtype"), [("1.5.1", "float64"), ("1.6.0", "float32")])
def test_floats_make_a_tensor_of_float64_up_to_1_5(horizon: str, dtype: str) -> None:
    result = program(method("torch.tensor([a, 1.])", "a: float"), f"reference@{horizon}").run("forward", (0.5,))
    assert str(result.dtype).removeprefix("torch.") == dtype


@pytest.mark.parametrize(
    ("body", "horizon", "made"),
    [
        ("torch.tensor(a)", "1.5.1", 1e300),
        ("torch.tensor([a])", "1.5.1", [1e300]),
        ("torch.tensor(a)", "1.6.0", "raises"),
        ("torch.tensor([a])", "1.6.0", [math.inf]),
        ("torch.tensor(a, dtype=7)", "1.6.0", "raises"),
        ("torch.tensor([a], dtype=7)", "1.6.0", [math.inf]),
        ("torch.tensor([0.1], dtype=7)", "1.5.1", [0.1]),
        ("torch.tensor([0.1], dtype=7)", "1.6.0", [0.10000000149011612]),
        ("torch.tensor([16777217.], dtype=4)", "1.5.1", [16777217]),
        ("torch.tensor([16777217.], dtype=4)", "1.6.0", [16777216]),
    ],
)
def test_a_number_that_makes_a_tensor_has_to_fit_from_1_6_on(body: str, horizon: str, made: Any) -> None:
    """It is first of the type that is made of floats, whatever type is asked for; in lists nothing is checked."""
    assert told(method(body, "a: float"), horizon, 1e300) == made


@pytest.mark.parametrize("horizon", ["1.0.1", "1.2.0"])
def test_up_to_1_2_a_number_that_does_not_fit_is_not_compared_either(horizon: str) -> None:
    compare = resolve("aten::eq", Release(horizon))
    with pytest.raises(Raised, match="without overflow"):
        compare(Tensor(np.array([1], np.uint8)), 300)
    with pytest.raises(Raised, match="without overflow"):
        compare(Tensor(np.array([1.0], np.float32)), 1e300)
    assert compare(Tensor(np.array([1], np.uint8)), -1).array.tolist() == [False]


def test_up_to_1_1_no_rows_have_no_norm() -> None:
    norm = resolve("aten::layer_norm", Release("1.1.0"))
    nothing = Tensor(np.zeros((0, 3), np.float32))
    with pytest.raises(Raised):
        norm(nothing, [3])
    assert norm(Tensor(np.ones((2, 3), np.float32)), [3]).shape == (2, 3)
    assert resolve("aten::layer_norm", Release("1.2.0"))(nothing, [3]).shape == (0, 3)


NESTED = "torch.to_padded_tensor(torch._nested_tensor_from_tensor_list([x, y]), -1., SIZE)"


@pytest.mark.parametrize(
    ("x", "y", "size", "made"),
    [
        ([[1.0, 2.0]], [[3.0], [4.0]], "None", [[[1.0, 2.0], [-1.0, -1.0]], [[3.0, -1.0], [4.0, -1.0]]]),
        ([1.0], [2.0, 3.0], "[2, 3]", [[1.0, -1.0, -1.0], [2.0, 3.0, -1.0]]),
        ([1.0], [2.0, 3.0], "[2, 1]", "raises"),
        ([1.0], [2.0, 3.0], "[2]", "raises"),
        ([1.0], [[2.0]], "None", "raises"),
        (1.0, 2.0, "None", "raises"),
    ],
)
def test_nested_tensors_are_padded_behind_their_elements(x: Any, y: Any, size: str, made: Any) -> None:
    source = method(NESTED.replace("SIZE", size), "x: Tensor,\n    y: Tensor")
    assert told(source, "2.15.0", np.array(x), np.array(y)) == made


def test_a_nested_tensor_of_nothing_is_padded_up_to_2_1() -> None:
    source = method(NESTED.replace("SIZE", "None"), "x: Tensor,\n    y: Tensor")
    empty = np.zeros((0, 2))
    assert told(source, "2.1.2", empty, empty) == [[], []]
    assert told(source, "2.2.2", empty, empty) == "raises"
    assert told(method("torch.to_padded_tensor(x, 0.)", "x: Tensor"), "2.15.0", empty) == "raises"


@pytest.mark.parametrize(("horizon", "raises"), [("1.11.0", False), ("1.12.1", True), ("2.1.2", True), ("2.2.2", False)])
def test_convolutions_of_bfloat16_where_one_dnn_may_not(horizon: str, raises: bool) -> None:
    source = method("torch.conv1d(x, w)", "x: Tensor,\n    w: Tensor")
    for dtype, refused in ((BFLOAT16.array, raises), (np.dtype(np.float32), False)):
        x, w = np.ones((1, 1, 3)).astype(dtype), np.ones((1, 1, 2)).astype(dtype)
        assert (told(source, horizon, x, w) == "raises") is refused


@pytest.mark.parametrize(("horizon", "dtype"), [("1.1.0", "uint8"), ("1.2.0", "bool")])
def test_bools_make_a_tensor_of_bool_from_1_2_on(horizon: str, dtype: str) -> None:
    for data in (True, [True]):
        result = resolve("aten::tensor", Release(horizon))(data)
        assert str(result.dtype).removeprefix("torch.") == dtype


@pytest.mark.parametrize("name", ["argmax", "argmin", "max", "min", "mode", "kthvalue", "median", "amax", "aminmax"])
def test_of_no_places_nothing_is_picked_in_any_release(name: str) -> None:
    source = method(
        {"kthvalue": "torch.kthvalue(x, 1, 0)", "aminmax": "torch.aminmax(x, dim=0)"}.get(name, f"torch.{name}(x, 0)"),
        "x: Tensor",
    )
    for horizon in ("2.15.0",) if name == "aminmax" else ("1.8.1", "1.9.1", "2.15.0"):
        assert told(source, horizon, np.zeros((0, 5))) == "raises"


def test_a_median_of_nothing_is_picked_from_1_8_on() -> None:
    source = method("torch.median(x, 1)", "x: Tensor")
    assert told(source, "1.7.1", np.zeros((0, 5))) == "raises"
    assert told(source, "1.8.1", np.zeros((0, 5))) == [[], []]
    assert told(source, "2.15.0", np.zeros((0, 5))) == [[], []]


@pytest.mark.parametrize("name", ["argmax", "argmin", "max", "min", "mode", "kthvalue"])
def test_nothing_is_picked_out_of_nothing_up_to_1_8(name: str) -> None:
    source = method(f"torch.{name}(x, {'1, ' if name == 'kthvalue' else ''}1)", "x: Tensor")
    assert told(source, "1.8.1", np.zeros((0, 5))) == "raises"
    assert told(source, "1.9.1", np.zeros((0, 5))) in ([], [[], []])


@pytest.mark.parametrize(("name", "first", "middle"), [("upsample_bilinear2d", 0.0, 5.5), ("upsample_bicubic2d", -0.46875, 5.5)])
def test_one_point_for_a_direction_is_the_middle_from_1_10_on(name: str, first: float, middle: float) -> None:
    source = method(f"torch.{name}(x, [1, 1], False, None, None)", "x: Tensor")
    image = np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)
    assert told(source, "1.9.1", image) == [[[[first]]]]
    assert told(source, "1.10.2", image) == [[[[middle]]]]


@pytest.mark.parametrize(("mode", "first"), [("bilinear", 0.0), ("bicubic", -0.46875)])
def test_one_point_by_the_operator_of_older_programs_is_that_of_the_release(mode: str, first: float) -> None:
    source = method(f'torch.__interpolate(x, [1, 1], None, "{mode}", False)', "x: Tensor")
    image = np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)
    assert told(source, "1.9.1", image) == [[[[first]]]]
    assert told(source, "1.10.2", image) == [[[[5.5]]]]


@pytest.mark.parametrize(("horizon", "shared"), [("1.11.0", True), ("1.12.1", False)])
def test_finer_pixels_are_a_view_up_to_1_11(horizon: str, shared: bool) -> None:
    item = Tensor(np.arange(4, dtype=np.float32).reshape(1, 4, 1, 1))
    tensor = program(method("torch.pixel_shuffle(x, 2)", "x: Tensor"), f"reference@{horizon}").run("forward", (item,))
    assert np.shares_memory(tensor.array, item.array) is shared


def test_what_is_empty_is_of_no_type_where_several_are_taken() -> None:
    source = method("1", "x: Union[List[int], str]")
    assert told(source, "2.15.0", [1]) == 1
    assert told(source, "2.15.0", []) == "raises"


def test_the_module_itself_can_be_called() -> None:
    assert told(method("torch.add(a, b)", FLOATS), "2.15.0", 1.0, 2.0, method="__call__") == 3.0


def test_points_become_an_integral() -> None:
    assert told(method("torch.trapz(x)", "x: Tensor"), "2.15.0", np.array([1.0, 2.0, 4.0])) == 4.5
    both = method("torch.trapz(y, x)", "y: Tensor,\n    x: Tensor")
    assert told(both, "2.15.0", np.array([1.0, 2.0, 4.0]), np.array([0.0, 3.0, 4.0])) == 7.5


def test_sequences_are_padded() -> None:
    source = method("torch.pad_sequence([x, y], True, -1.)", "x: Tensor,\n    y: Tensor")
    assert told(source, "2.15.0", np.array([1.0, 2.0]), np.array([3.0])) == [[1.0, 2.0], [3.0, -1.0]]


def test_a_member_of_an_enumeration_in_the_state_is_written_as_its_value_alone() -> None:
    """TorchScript calls the class with the value where a pickle has a tuple of arguments; 1.10.2, 2.1.2 and 2.13.0 write it so."""
    source = (
        "class Model(Module):\n  __parameters__ = []\n  training : bool\n  kind : __torch__.m.Kind\n"
        "  def forward(self: __torch__.m.Model) -> str:\n    return self.kind.name\n"
        "class Kind(Enum):\n  A = 1\n  B = 2\n"
    )
    state = b"X\x04\0\0\0kindc__torch__.m\nKind\nK\x02R"
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive({"__torch__/m.py": source}))) as old, zipfile.ZipFile(stream, "w") as result:
        for info in old.infolist():
            record = old.read(info)
            result.writestr(
                info.filename, record.replace(b"u" + b"b.", state + b"ub.") if info.filename == "m/data.pkl" else record
            )
    assert load(stream.getvalue(), "reference@2.15.0").run("forward", ()) == "B"


@pytest.mark.parametrize(
    ("body", "made"),
    [
        ("torch.bernoulli(x)", [1.0, 0.0]),
        ("torch.bernoulli(torch.slice(x, 0, 0, 0))", []),
        ("torch.bernoulli(torch.mul(x, 2.))", "raises"),
        ("torch.randint(3, 4, [2])", [3, 3]),
        ("torch.randint(1, [2])", [0, 0]),
        ("torch.randint(0, 9, [0])", []),
        ("torch.randint(4, 4, [0])", "raises"),
        ("torch.rand([0, 2])", []),
        ("torch.randn([0])", []),
        ("torch.randperm(1)", [0]),
        ("torch.multinomial(x, 3, True)", [0, 0, 0]),
        ("torch.multinomial(x, 1)", [0]),
        ("torch.multinomial(x, 2)", [0, 1]),
        ("torch.multinomial(torch.mul(x, 0.), 1)", "raises"),
        ("torch.multinomial(torch.neg(x), 1)", "raises"),
        ("torch.multinomial(x, 3)", "raises"),
        ("torch.multinomial(x, 0)", "raises"),
        ("torch.bernoulli_(torch.clone(x), 1.)", [1.0, 1.0]),
        ("torch.bernoulli_(torch.clone(x), x)", [1.0, 0.0]),
        ("torch.bernoulli_(torch.clone(x), 2.)", "raises"),
        ("torch.normal(x, torch.zeros_like(x))", [1.0, 0.0]),
        ("torch.normal(2., torch.zeros_like(x))", [2.0, 2.0]),
        ("torch.normal(x, torch.sub(x, 1.))", "raises"),
        ("torch.uniform_(torch.clone(x), 2., 2.)", [2.0, 2.0]),
        ("torch.uniform_(torch.clone(x), 3., 2.)", "raises"),
        ("torch.uniform_(torch.slice(x, 0, 0, 0))", []),
        ("torch.random_(torch.clone(x), 3, 4)", [3.0, 3.0]),
        ("torch.random_(torch.clone(x), 1)", [0.0, 0.0]),
        ("torch.geometric_(torch.clone(x), 1.)", "raises"),
        ("torch.poisson(torch.mul(x, 0.))", [0.0, 0.0]),
        ("torch.poisson(torch.neg(x))", "raises"),
        ("torch.randint_like(x, 4, 5)", [4.0, 4.0]),
        ("torch.randint_like(x, 1)", [0.0, 0.0]),
        ("torch.size(torch.rand_like(x))", [2]),
        ("torch.numel(torch.randn([2, 3]))", 6),
    ],
)
def test_random_numbers_are_known_where_chance_has_no_choice(body: str, made: Any) -> None:
    assert told(method(body, "x: Tensor"), "2.15.0", np.array([1.0, 0.0])) == made


@pytest.mark.parametrize(
    "body",
    [
        "torch.bernoulli(torch.mul(x, 0.5))", "torch.randint(0, 2, [1])", "torch.rand([1])", "torch.randn([1])", "torch.randperm(2)",
        "torch.multinomial(torch.add(x, 1.), 1)", "torch.multinomial(torch.cat([x, x]), 2)", "torch.normal(x, x)", "torch.poisson(x)",
        "torch.uniform_(torch.clone(x))", "torch.bernoulli_(torch.clone(x), 0.5)", "torch.exponential_(torch.clone(x))",
        "[torch.rand_like(x)]", "{'a': torch.randint_like(x, 2)}",
    ],
)  # fmt: skip
def test_random_numbers_are_not_drawn(body: str) -> None:
    with pytest.raises(Unsupported, match="does not support random numbers"):
        told(method(body, "x: Tensor"), "2.15.0", np.array([1.0, 0.0]))


@pytest.mark.parametrize(
    ("body", "horizon", "expected"),
    [
        ("torch.normal_(torch.clone(x), 3., 0.)", "1.8.1", "raises"),
        ("torch.normal_(torch.clone(x), 3., 0.)", "1.9.1", [3.0, 3.0]),
        ("torch.normal(x, 0.)", "1.8.1", "raises"),
        ("torch.normal(x, 0.)", "1.9.1", [1.0, 0.0]),
        ("torch.cauchy_(torch.clone(x), 1., 0.)", "1.13.1", [1.0, 1.0]),
        ("torch.cauchy_(torch.clone(x), 1., 0.)", "2.0.1", "raises"),
        ("torch.multinomial(x, 2)", "1.5.1", "raises"),
        ("torch.multinomial(x, 2)", "1.6.0", [0, 1]),
    ],
)
def test_what_releases_take_for_a_distribution(body: str, horizon: str, expected: Any) -> None:
    assert told(method(body, "x: Tensor"), horizon, np.array([1.0, 0.0])) == expected


@pytest.mark.parametrize(
    "body",
    [
        "bool(torch.rand([1]))",
        "torch.eq(torch.rand([1]), torch.rand([1]))",
        "torch.__contains__([x], torch.rand([1]))",
        "torch.add(x, torch.rand([2]))",
        "torch.where(torch.lt(torch.rand([2]), 0.5), x, x)",
        "float(torch.rand([1]))",
        "torch.eq([torch.rand([1])], [x])",
    ],
)
def test_nothing_is_computed_of_numbers_that_nobody_knows(body: str) -> None:
    with pytest.raises(Unsupported):
        told(method(body, "x: Tensor"), "2.15.0", np.array([1.0, 0.0]))


@pytest.mark.parametrize(
    ("body", "last", "none"),
    [
        ("torch.randint(0, 1, [1])", "1.12.1", "float32"),
        ("torch.randint(1, [1])", "1.12.1", "float32"),
        ("torch.randperm(1)", "1.8.1", "int64"),
    ],
)
def test_random_integers_were_floats_in_programs(body: str, last: str, none: str) -> None:
    """Asked of 1.4.0 to 2.0.1: outside of programs they are integers in all of them. Older programs give None as the dtype."""

    def dtype(text: str, horizon: str) -> str:
        result = program(method(text, "n: int"), f"reference@{horizon}").run("forward", (1,))
        return str(result.dtype).removeprefix("torch.")

    assert [dtype(body, horizon) for horizon in (last, "1.13.1")] == ["float32", "int64"]
    assert dtype(f"{body[:-1]}, dtype=None)", "2.15.0") == none


@pytest.mark.parametrize(
    ("text", "made"),
    [("12", 12), (" +3", 3), ("\t-7", -7), ("9223372036854775807", 2**63 - 1), ("9223372036854775808", "stoll"), ("", "stoll"), ("x", "stoll"),
     ("5 ", "invalid literal"), ("1_0", "invalid literal"), ("0x10", "invalid literal"), ("1.5", "invalid literal")],
)  # fmt: skip
def test_texts_become_integers_as_c_reads_them(text: str, made: Any) -> None:
    """Ten texts were asked of 1.6.0 to 2.15.0, which agree."""
    call = program(method("int(s)", "s: str"), "reference@2.15.0")
    if isinstance(made, int):
        assert call.run("forward", (text,)) == made
    else:
        with pytest.raises(Raised, match=made):
            call.run("forward", (text,))


@pytest.mark.parametrize(
    ("text", "made"),
    [("0x1p3", 8.0), (" 2", 2.0), ("-Infinity", -math.inf), ("-.5", -0.5), ("1.", 1.0), ("1e999", "stod"), ("1e-999", "stod"), ("", "stod"),
     ("5e-324", "stod"), ("0e-999", 0.0), ("1.5x", "could not convert"), ("2 ", "could not convert"), ("infx", "could not convert"),
     ("1_0", "could not convert")],
)  # fmt: skip
def test_texts_become_floats_as_c_reads_them(text: str, made: Any) -> None:
    """Twelve texts were asked of 1.6.0 to 2.15.0, which agree."""
    call = program(method("float(s)", "s: str"), "reference@2.15.0")
    if isinstance(made, float):
        assert call.run("forward", (text,)) == made
    else:
        with pytest.raises(Raised, match=made):
            call.run("forward", (text,))


def test_an_integer_beside_a_float_is_compared_as_a_float() -> None:
    source = method("(torch.eq(i, x), torch.eq(x, i), torch.lt(x, i), torch.ge(x, i))", "i: int,\n    x: float")
    for horizon in ("1.5.1", "2.15.0"):
        assert told(source, horizon, 2**53 + 1, 2.0**53) == [True, True, False, True]


@pytest.mark.parametrize("horizon", ["1.5.1", "2.15.0"])
def test_texts_inside_of_what_is_shown_have_no_quotes(horizon: str) -> None:
    source = method('torch.format("{} {}", xs, d)', "xs: List[str],\n    d: Dict[str, str]")
    assert told(source, horizon, ["a", "b c"], {"k": "v"}) == "[a, b c] {k: v}"


@pytest.mark.parametrize(
    ("horizon", "step", "made"),
    [("1.7.1", 2, [1, 3]), ("2.15.0", 2, [1, 3]), ("1.8.1", -1, []), ("1.7.1", -1, "n .which is 18446744073709551615. >= this->size.. .which is 4"),
     ("1.7.1", 0, "std::bad_alloc"), ("1.8.1", 0, "List slice should have non-zero step")],
)  # fmt: skip
def test_slices_of_lists_step_forward_only(horizon: str, step: int, made: Any) -> None:
    call = program(method("torch.slice(xs, 1, 6, k)", "xs: List[int],\n    k: int"), f"reference@{horizon}")
    if isinstance(made, list):
        assert call.run("forward", ([0, 1, 2, 3], step)) == made
    else:
        with pytest.raises(Raised, match=made):
            call.run("forward", ([0, 1, 2, 3], step))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([[1.0, 2.0], [3.0]], "length 2 at dim 1 .got 1"),
        ([[1.0], []], "length 1 at dim 1 .got 0"),
    ],
)
def test_rows_of_several_lengths_make_no_tensor(rows: list[list[float]], said: str) -> None:
    call = program(method("torch.tensor(xs)", "xs: List[List[float]]"), "reference@2.15.0")
    with pytest.raises(Raised, match=f"Expected sequence of {said}"):
        call.run("forward", (rows,))
    assert call.run("forward", ([[], []],)).shape == (2, 0)


@pytest.mark.parametrize(
    ("body", "kind"),
    [("torch.tensor(xs)", "int64"), ("torch.tensor(ys)", "bool"), ("torch.tensor(zs)", "float32"), ("torch.tensor(annotate(List[int], []))", "int64"),
     ("torch.tensor(xs, dtype=6)", "float32")],
)  # fmt: skip
def test_an_empty_list_makes_a_tensor_of_what_it_is_said_to_hold(body: str, kind: str) -> None:
    source = method(body, "xs: List[int],\n    ys: List[List[bool]],\n    zs: List[float]")
    result = program(source, "reference@2.15.0").run("forward", ([], [[]], []))
    assert str(result.dtype).removeprefix("torch.") == kind


def test_the_number_of_a_truth_value_was_an_integer() -> None:
    source = method("torch.item(x)", "x: Tensor")
    assert [repr(told(source, horizon, np.array([True]))) for horizon in ("1.8.1", "1.9.1")] == ["1", "True"]


def test_texts_are_sorted_from_1_7_on() -> None:
    source = method("torch.sorted(xs)", "xs: List[str]")
    assert told(source, "1.6.0", ["b", "a"]) == "raises"
    assert told(source, "1.6.0", []) == []
    assert told(source, "1.7.1", ["b", "a"]) == ["a", "b"]


def test_texts_are_parted_from_the_end() -> None:
    source = method("(torch.rpartition(s, t), torch.partition(s, t))", "s: str,\n    t: str")
    assert told(source, "2.15.0", "a-b-c", "-") == [["a-b", "-", "c"], ["a", "-", "b-c"]]
    assert told(source, "2.15.0", "abc", "-") == [["", "", "abc"], ["abc", "", ""]]
    assert told(source, "2.15.0", "abc", "") == [["abc", "", ""], ["", "", "abc"]]


@pytest.mark.parametrize("indexing", ["ij", "xy"])
def test_grids_are_views_of_what_they_are_made_of(indexing: Literal["ij", "xy"]) -> None:
    """Asked of 1.0.0, 1.5.1, 1.7.1, 1.12.1 and 2.15.0."""
    x, y = Tensor(np.array([1.0, 2.0, 9.0])[:2]), Tensor(np.array([3.0, 4.0, 5.0]))
    result = program(
        method(f'torch.meshgrid([x, y], indexing="{indexing}")', "x: Tensor,\n    y: Tensor"), "reference@2.15.0"
    ).run("forward", (x, y))
    assert [tensor.array.tolist() for tensor in result] == [
        tensor.tolist() for tensor in np.meshgrid(x.array, y.array, indexing=indexing)
    ]
    assert [item.storage is given.storage for item, given in zip(result, (x, y), strict=True)] == [True, True]


@pytest.mark.parametrize(
    ("dtype", "horizon", "taken"), [(np.int32, "1.13.1", False), (np.int32, "2.0.0", True), (np.int16, "2.15.0", False)]
)
def test_places_of_int32_are_taken_from_2_0_on(dtype: Any, horizon: str, taken: bool) -> None:
    args = np.array([0.0, 1.0]), np.array([1], dtype)
    parameters = "x: Tensor,\n    i: Tensor"
    assert told(method("torch.index(x, [i])", parameters), horizon, *args) == ([1.0] if taken else "raises")
    put = method("torch.index_put_(x, [i], v)", f"{parameters},\n    v: Tensor")
    assert told(put, horizon, *args, np.array([5.0])) == ([0.0, 5.0] if taken else "raises")


@pytest.mark.parametrize("name", ["isnan", "isinf"])
def test_tests_of_floats_give_integers_up_to_2_6(name: str) -> None:
    source = method(f"torch.{name}(a)", "a: float")
    assert [repr(told(source, horizon, 1.0)) for horizon in ("1.5.1", "2.6.0", "2.7.1")] == ["0", "0", "False"]


@pytest.mark.parametrize("name", ["isnan", "isinf"])
@pytest.mark.parametrize(
    "body",
    [
        "  if torch.{}(a):\n    b = 1\n  else:\n    b = 0\n  return b\n",
        "  b = torch.{}(a)\n  return torch.__not__(b)\n",
        "  return (1 if torch.{}(a) else 0)\n",
    ],
)
def test_no_branch_takes_the_integers_that_tests_of_floats_give_up_to_2_6(name: str, body: str) -> None:
    """1.6.0, 1.12.1, 2.4.1 and 2.6.0 end with an internal error whatever the number is; 2.9.1 and newer branch."""
    source = "def forward(self: __torch__.m.Model,\n    a: float):\n" + body.format(name)
    assert [told(source, horizon, 1.0) for horizon in ("1.6.0", "2.6.0")] == ["raises", "raises"]
    assert told(source, "2.9.1", 1.0) in (0, True)
    other = source.replace(f"torch.{name}(a)", "torch.isfinite(a)")
    assert told(other, "1.6.0", 1.0) in (1, False)


@pytest.mark.parametrize(
    ("body", "whole", "other"),
    [
        ("torch.copy_(torch.select(y, 0, 0), w)", True, True),
        ("torch.copy_(torch.select(torch.detach(y), 0, 0), w)", False, False),
        ("torch.add_(y, w)", True, True),
        ("torch.add(torch.select(y, 0, 0), w)", False, False),
    ],
)
def test_gradients_are_seen_through_other_views_of_what_was_written(body: str, whole: bool, other: bool) -> None:
    source = f"""
def forward(self, x: Tensor, w: Tensor) -> Tuple[bool, bool, bool]:
  y = torch.clone(x)
  other = torch.slice(y, 0, 1)
  z = {body}
  return (ops.prim.requires_grad(y), ops.prim.requires_grad(other), ops.prim.requires_grad(x))
"""
    module = program(source, "reference@2.15.0")
    given = Tensor(np.zeros(2, np.float32)), Tensor(np.array(1, np.float32), requires_grad=True)
    assert module.run("forward", given) == (whole, other, False)
    plain = Tensor(np.zeros(2, np.float32)), Tensor(np.array(1, np.float32))
    assert module.run("forward", plain) == (False, False, False)  # nothing is left of the call before


@pytest.mark.parametrize(
    ("horizon", "given", "found"),
    [
        ("1.5.1", [], ("float64", (0,))),
        ("1.6.0", [], ("float32", (0,))),
        ("1.5.1", [[], []], ("float64", (2, 0))),
        ("1.6.0", [[], [1.0]], "Expected sequence of length 0 at dim 1"),
        ("1.7.1", [[], [1.0]], ("float32", (2, 0))),
        ("2.15.0", [[1.0], []], "Expected sequence of length 1 at dim 1"),
    ],
)
def test_lists_without_numbers_become_tensors(horizon: str, given: list[Any], found: Any) -> None:
    kind = "List[List[float]]" if given else "List[float]"
    module = program(f"def forward(self, x: {kind}) -> Tensor:\n  return torch.tensor(x)", f"reference@{horizon}")
    if isinstance(found, str):
        with pytest.raises(Raised, match=found):
            module.run("forward", (given,))
    else:
        array = module.run("forward", (given,))
        assert (array.dtype.name, array.shape) == found


X = "x: Tensor"
XY = "x: Tensor,\n    y: Tensor"
MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize(
    ("body", "args", "made"),
    [
        (("torch.__and__(x, y)", XY), (np.array([5, -1], np.int8), np.array([300, 3])), [("1.9.1", [4, 3]), ("1.10.2", [4, 3])]),
        (("torch.__and__(x, y)", XY), (np.array([True, False]), np.array([300, 3])), [("1.9.1", "raises"), ("1.10.2", [0, 0])]),
        (("torch.sum(x, [1, 1])", X), (MATRIX,), [("1.6.0", [3.0, 12.0]), ("1.7.1", "raises")]),
        (("torch.mean(x, [1, -1])", X), (MATRIX,), [("1.6.0", [float(np.float32(3) / np.float32(9)), float(np.float32(12) / np.float32(9))]), ("1.7.1", "raises")]),
        (("torch.std(x, [1, 1])", X), (MATRIX,), [("1.6.0", [1.0, 1.0]), ("1.7.1", "raises")]),
        (("torch.logsumexp(x, [1, 1])", X), (MATRIX,), [("1.6.0", "raises"), ("2.15.0", "raises")]),
        (("torch.norm(x, inf)", X), (np.zeros(2, np.float32),), [("1.7.1", 1.1754943508222875e-38), ("1.8.1", 0.0)]),
        (("torch.median(x)", X), (np.zeros(0, np.float32),), [("1.7.1", "raises"), ("1.8.1", "raises")]),
        (("torch.diag(x, 5)", X), (MATRIX,), [("1.13.1", "raises"), ("2.0.1", [])]),
        (("torch.diag(x, 3)", X), (MATRIX,), [("1.13.1", []), ("2.0.1", [])]),
        (("torch.index_fill(x, 0, y, 1.)", XY), (np.zeros(2), np.array(-1)), [("1.7.1", "raises"), ("1.8.1", [0.0, 1.0])]),
        (("torch.index_add(x, 0, y, torch.ones([1, 1]))", XY), (MATRIX, np.array([1])), [("2.0.1", [[0.0, 1.0, 2.0], [4.0, 5.0, 6.0]]), ("2.1.2", "raises")]),
        (("torch.index_copy(x, 0, y, torch.ones([1, 3]))", XY), (MATRIX, np.array([1, 0])), [("1.6.0", "raises"), ("2.15.0", "raises")]),
        (("torch.hann_window(4, dtype=None)", X), (MATRIX,), [("1.12.1", "raises"), ("1.13.1", [0.0, 0.5, 1.0, 0.5])]),
        (("torch.hann_window(1, dtype=None)", X), (MATRIX,), [("1.12.1", [1.0]), ("1.13.1", [1.0])]),
        (("torch.cartesian_prod([x, x])", X), (MATRIX,), [("1.6.0", "raises"), ("2.15.0", "raises")]),
        (('torch.einsum("i->", [x])', X), (np.array([True, False, True]),), [("1.6.0", 2), ("2.15.0", 2)]),
        (("torch.zero_(torch.expand(x, [2, 3]))", X), (np.ones(3, np.float32),), [("1.6.0", [[0.0] * 3] * 2), ("2.15.0", [[0.0] * 3] * 2)]),
    ],
)  # fmt: skip
def test_operators_at_their_borders(body: tuple[str, str], args: tuple[Any, ...], made: list[tuple[str, Any]]) -> None:
    """Each was asked of eight to ten releases from 1.5.1 to 2.6.0."""
    for horizon, value in made:
        assert told(method(*body), horizon, *(arg.copy() for arg in args)) == value


@pytest.mark.parametrize(
    ("body", "horizon", "raises"),
    [
        ("torch.add_(x, 1.)", "1.5.1", True),
        ("torch.add_(torch.contiguous(x), 1.)", "2.15.0", True),
        ("torch.add_(torch.select(x, 0, 0), 1.)", "1.7.1", False),
        ("torch.add_(torch.select(x, 0, 0), 1.)", "1.8.1", True),
        ("torch.add_(torch.view(x, [-1]), 1.)", "2.15.0", True),
        ("torch.add_(torch.detach(x), 1.)", "2.15.0", False),
        ("torch.add_(torch.mul(x, 2.), 1.)", "2.15.0", False),
        ("torch.add_(torch.select(torch.mul(x, 2.), 0, 0), 1.)", "2.15.0", False),
        ("torch.add_(torch.unbind(torch.mul(x, 2.), 0)[0], 1.)", "1.5.1", True),
        ("torch.add_(torch.chunk(torch.mul(x, 2.), 2)[0], 1.)", "1.8.1", False),
        ("torch.add_(torch.chunk(torch.mul(x, 2.), 2)[0], 1.)", "1.9.1", True),
    ],
)
def test_where_gradients_are_required_leaves_and_parts_are_not_written_in_place(body: str, horizon: str, raises: bool) -> None:
    """Thirty such lines were asked of ten releases from 1.5.1 to 2.15.0."""
    for requires in (True, False):
        given = Tensor(MATRIX.copy(), requires_grad=requires)
        call = program(method(body, X), f"reference@{horizon}")
        if raises and requires:
            with pytest.raises(Raised, match=r"in-place|inplace"):
                call.run("forward", (given,))
        else:
            assert call.run("forward", (given,)).requires_grad is (requires and "detach" not in body)


def test_of_another_tensor_only_the_type_is_asked() -> None:
    given = Tensor(MATRIX.copy()), Tensor(np.zeros(1), requires_grad=True)
    for body in ("torch.to(x, y)", "torch.type_as(x, y)"):
        assert not program(method(body, XY), "reference@2.15.0").run("forward", given).requires_grad


@pytest.mark.parametrize(
    ("body", "made"),
    [('torch.rindex(s, "a")', 3), ("torch.isidentifier(s)", True), ("torch.isprintable(s)", True),
     ("torch.slice(s, 0, 9223372036854775807, -1)", "a"), ("torch.slice(s, None, None, -1)", "anaa")],
)  # fmt: skip
def test_texts_as_releases_take_them(body: str, made: Any) -> None:
    assert told(method(body, "s: str"), "2.15.0", "aana") == made
    assert told(method("torch.isidentifier(s)", "s: str"), "2.15.0", "a_1") is False


@pytest.mark.parametrize(
    ("name", "args", "made"),
    [
        ("cov", (np.array([[1.0, 2.0, 4.0], [0.0, 1.0, 0.0]]),), [[7 / 3, -1 / 6], [-1 / 6, 1 / 3]]),
        ("nanmedian", (np.array([NAN, 3.0, 1.0]),), 1.0),
        ("isin", (np.array([1, 2, 3]), np.array([3, 1])), [True, False, True]),
        ("vander", (np.array([2, 3]),), [[2, 1], [3, 1]]),
        ("igamma", (np.array([1.0]), np.array([2.0])), [1 - math.exp(-2)]),
        ("norm_except_dim", (np.array([[3.0, 4.0], [0.0, 2.0]]),), [[5.0], [2.0]]),
        ("unique_dim_consecutive", (np.array([[1, 1], [1, 1], [2, 1]]), 0), [[[1, 1], [2, 1]], [0, 0, 1], [2, 1]]),
    ],
)  # fmt: skip
def test_operators_that_no_recipe_had(name: str, args: tuple[Any, ...], made: Any) -> None:
    result = resolve(f"aten::{name}", Release("2.15.0"))(*given(*args))
    if isinstance(result, tuple):
        assert plain(result) == made
    else:
        np.testing.assert_allclose(plain(result), made, rtol=1e-12)


@pytest.mark.parametrize(
    ("body", "horizon", "expected"),
    [
        *(
            (f"torch.{name}(x, CONSTANTS.c0)", at, "float32")
            for name in ("add", "sub", "mul")
            for at in ("1.4.0", "1.6.0", "2.15.0")
        ),
        ("torch.div(x, CONSTANTS.c0)", "1.4.0", "float32"),
        ("torch.div(x, CONSTANTS.c0)", "1.6.0", "float64"),
        ("torch.div(x, CONSTANTS.c0)", "1.7.1", "float32"),
        ("torch.add(CONSTANTS.c0, x)", "2.15.0", "float64"),
        ("torch.add(x, torch.detach(CONSTANTS.c0))", "2.15.0", "float64"),
        ("torch.mul(torch.gt(x, 0), CONSTANTS.c0)", "2.15.0", "float32"),
    ],
)
def test_a_constant_without_dimensions_is_a_number_as_the_second_operand_of_arithmetic(
    monkeypatch: pytest.MonkeyPatch, body: str, horizon: str, expected: str
) -> None:
    """1.3.1 to 2.15.0, asked for traced programs that 1.3.1, 1.5.1, 1.10.2 and 2.13.0 had written."""
    monkeypatch.setattr(Program, "constant", lambda _self, _index: Tensor(np.array(2.5)))
    tensor = program(method(body, "x: Tensor"), f"reference@{horizon}", version=2 if horizon < "1.5" else 3).run(
        "forward", (Tensor(np.array(1.5, np.float32)),)
    )
    assert tensor.array.dtype == expected


def test_up_to_1_4_arithmetic_with_a_constant_that_changes_nothing_gives_the_tensor_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Program, "constant", lambda _self, _index: Tensor(np.array(1.0)))
    x = Tensor(np.array([1.5], np.float32))
    for horizon, same in (("1.4.0", True), ("1.5.1", False)):
        result = program(method("torch.mul(x, CONSTANTS.c0)", "x: Tensor"), f"reference@{horizon}", version=2)
        tensor = result.run("forward", (x,))
        assert np.shares_memory(tensor.array, x.array) == same


@pytest.mark.parametrize("horizon", ["1.6.0", "1.12.1", "2.15.0"])
def test_a_recurrent_layer_needs_a_step_but_no_batch(horizon: str) -> None:
    gru = resolve("aten::gru", Release(horizon))
    weights = [Tensor(np.ones(shape, np.float32)) for shape in ((9, 4), (9, 3))]
    for steps, batch in ((0, 1), (0, 0)):
        given_ = (Tensor(np.zeros((steps, batch, 4), np.float32)), Tensor(np.zeros((1, batch, 3), np.float32)))
        with pytest.raises(Raised, match="sequence length"):
            gru(*given_, weights, False, 1, 0.0, False, False, False)
    given_ = (Tensor(np.zeros((1, 0, 4), np.float32)), Tensor(np.zeros((1, 0, 3), np.float32)))
    assert gru(*given_, weights, False, 1, 0.0, False, False, False)[0].shape == (1, 0, 3)
