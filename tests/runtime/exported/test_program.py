"""Exported programs run as releases run them: arguments, results, mutation, trees, guards."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.runtime.exported.documents import (
    LEAF,
    archive,
    arguments,
    document,
    module,
    node,
    sizes,
    tensor,
    tree,
)
from torch_compat.errors import Corrupt, Raised, Refused, Unsupported
from torch_compat.runtime.load import load

ADD = node("torch.ops.aten.add.Tensor", "y", "x", {"as_int": 1})
ONES = np.ones(3, np.float32)


def test_a_graph_is_run() -> None:
    assert module(document(["x"], [ADD], ["y"])).forward(ONES).tolist() == [2, 2, 2]


def test_arguments_by_keyword_are_found_by_the_names_of_forward() -> None:
    assert module(document(["x"], [ADD], ["y"])).forward(x0=ONES).tolist() == [2, 2, 2]


@pytest.mark.parametrize(("args", "words"), [((), {}), ((ONES, ONES), {}), ((ONES,), {"x0": ONES}), ((ONES,), {"other": ONES})])
def test_wrong_arguments_are_a_type_error(args: tuple[object, ...], words: dict[str, object]) -> None:
    with pytest.raises(Raised) as caught:
        module(document(["x"], [ADD], ["y"])).forward(*args, **words)
    assert caught.value.code == "TypeError"


def test_arguments_without_a_kind_are_given_by_name() -> None:
    """As 2.1 to 2.6 write them."""
    call = node("torch.ops.aten.sub.Tensor", "y", self="x", other="z", alpha={"as_int": 2})
    for input_ in call["inputs"]:
        del input_["kind"]
    result = module(document(["x", "z"], [call], ["y"])).forward(ONES, ONES * 3)
    assert result.tolist() == [-5, -5, -5]


def test_a_number_may_be_the_first_argument_of_an_operator_of_tensors() -> None:
    call = node("torch.ops.aten.sub.Tensor", "y", self={"as_int": 1}, other="x")
    del call["inputs"][0]["kind"], call["inputs"][1]["kind"]
    assert module(document(["x"], [call], ["y"])).forward(ONES * 3).tolist() == [-2, -2, -2]


def test_parameters_require_gradients_of_results_also_by_name() -> None:
    from torch_compat.runtime.registry import resolve  # noqa: PLC0415 - only this test needs it
    from torch_compat.runtime.tensor import Tensor  # noqa: PLC0415 - as above

    weight = Tensor(np.ones((2, 3), np.float32), requires_grad=True)
    result = resolve("aten::linear")(Tensor(ONES), weight=weight)
    assert result.requires_grad
    assert not resolve("aten::linear")(Tensor(ONES), weight=Tensor(weight.array)).requires_grad


def test_buffers_that_a_call_changes_stay_changed_and_are_the_result() -> None:
    buffer = {"buffer": {"arg": {"name": "b"}, "buffer_name": "total", "persistent": True}}
    mutated = {"buffer_mutation": {"arg": {"name": "y"}, "buffer_name": "total"}}
    program = document(
        ["b", "x"], [node("torch.ops.aten.add.Tensor", "y", "b", "x")], ["y", "y"],
        input_specs=[buffer, {"user_input": {"arg": tensor("x")}}],
        output_specs=[mutated, {"user_output": {"arg": tensor("y")}}], out_spec=json.dumps([1, LEAF]),
    )  # fmt: skip
    result = module(program, {"total": [1.0, 2.0, 3.0]})
    first = result.forward(ONES)
    assert first.tolist() == [2, 3, 4]
    result.forward(ONES)
    assert first.tolist() == [3, 4, 5], "the result is the buffer itself"
    assert result.state()["total"].tolist() == [3, 4, 5]


def test_inputs_that_a_call_changes_are_changed() -> None:
    mutated = {"user_input_mutation": {"arg": {"name": "y"}, "user_input_name": "x"}}
    program = document(
        ["x"], [ADD], ["y", "y"], output_specs=[mutated, {"user_output": {"arg": tensor("y")}}], out_spec=json.dumps([1, LEAF])
    )
    given = np.zeros(3, np.float32)
    result = module(program).forward(given)
    assert given.tolist() == [1, 1, 1]
    assert result is given


def test_trees_of_arguments_and_results() -> None:
    pair = tree("builtins.tuple", None, LEAF, LEAF)
    program = document(
        ["a", "b", "c"], [node("torch.ops.aten.add.Tensor", "y", "a", "c")], ["y", "b", {"as_none": True}, {"as_int": 7}],
        in_spec=arguments(tree("builtins.dict", ["left", "right"], LEAF, LEAF), scale=LEAF),
        out_spec=json.dumps([1, tree("builtins.dict", ["sum", "rest"], LEAF, tree("builtins.list", None, LEAF, pair))]),
    )  # fmt: skip
    result = module(program).forward({"right": ONES * 2, "left": ONES}, ONES * 3)
    assert result["sum"].tolist() == [4, 4, 4]
    assert result["rest"][0].tolist() == [2, 2, 2]
    assert result["rest"][1] == (None, 7)
    with pytest.raises(Raised) as caught:
        module(program).forward({"left": ONES}, ONES)
    assert caught.value.code == "KeyError"


DYNAMIC = {
    "values": {"x": sizes("s0", 2), "z": sizes("2*s0")},
    "range_constraints": {"s0": {"min_val": 3, "max_val": 6}, "2*s0": {"min_val": 6, "max_val": 12}},
}


@pytest.mark.parametrize(
    ("x", "z", "said"),
    [
        ((4, 2), 8, None),
        ((2, 2), 4, ">= 3"),
        ((7, 2), 14, "<= 6"),
        ((4, 3), 8, "equal to 2"),
        ((4, 2), 9, "equal to 8"),
        ((4,), 8, "number of dimensions"),
    ],
)
def test_calling_the_module_checks_sizes_as_the_hook_of_a_release_does(x: tuple[int, ...], z: int, said: str | None) -> None:
    program = document(["x", "z"], [], ["x", "z"], **DYNAMIC)  # type: ignore[arg-type]
    result = module(program, horizon="reference@2.6.0")
    given = np.ones(x, np.float32), np.ones(z, np.float32)
    result.forward(*given)  # which no release before 2.9 checks
    if said is None:
        result(*given)
        return
    with pytest.raises(Raised, match=said) as caught:
        result(*given)
    assert caught.value.code == "RuntimeError"


@pytest.mark.parametrize(
    ("x", "z", "said"),
    [
        ((4, 2), 8, None),
        ((2, 2), 4, r"x0.size\(\)\[0\] >= 3"),
        ((7, 2), 14, r"x0.size\(\)\[0\] <= 6"),
        ((4, 3), 8, r"x0.size\(\)\[1\] == 2"),
    ],
)
def test_since_2_9_forward_checks_the_same_where_there_are_sample_inputs(x: tuple[int, ...], z: int, said: str | None) -> None:
    program = document(["x", "z"], [], ["x", "z"], **DYNAMIC)  # type: ignore[arg-type]
    given = np.ones(x, np.float32), np.ones(z, np.float32)
    module(program, horizon="reference@2.9.1").forward(*given)
    result = module(program, horizon="reference@2.9.1", samples=True)
    if said is None:
        result.forward(*given)
        return
    with pytest.raises(Raised, match=f"Guard failed: {said}") as caught:
        result.forward(*given)
    assert caught.value.code == "AssertionError"


def test_guards_of_the_program_are_evaluated() -> None:
    program = document(["x"], [], ["x"], values={"x": sizes("s0")}, guards_code=["L['x0'].size()[0] % 2 == 0"])
    result = module(program, horizon="reference@2.13.0", samples=True)
    result.forward(np.ones(4, np.float32))
    with pytest.raises(Raised, match=r"x0\.size"):
        result.forward(ONES)


@pytest.mark.parametrize(("horizon", "count"), [("reference@2.13.0", 3), ("reference@2.14.0", 4), ("reference@2.15.0", 4)])
def test_a_range_to_a_fraction_has_one_element_more_since_2_14(horizon: str, count: int) -> None:
    call = node("torch.ops.aten.arange.start", "y", {"as_int": 0}, {"as_float": 3.7}, dtype={"as_scalar_type": 5})
    assert module(document(["x"], [call], ["y"]), horizon=horizon).forward(ONES).tolist() == list(range(count))


@pytest.mark.parametrize(("horizon", "nan"), [("reference@2.13.0", True), ("reference@2.14.0", False)])
def test_attention_of_a_query_of_nan_in_three_dimensions_is_0_since_2_14(horizon: str, nan: bool) -> None:
    call = node("torch.ops.aten.scaled_dot_product_attention.default", "y", "q", "k", "k")
    query = np.ones((1, 2, 4), np.float32)
    query[0, 0, 1] = np.nan
    result = module(document(["q", "k"], [call], ["y"]), horizon=horizon).forward(query, np.ones((1, 2, 4), np.float32))
    assert np.isnan(result[0, 0]).all() == nan
    assert nan or not result[0, 0].any()


def test_a_higher_order_operator_runs_the_graph_that_it_chooses() -> None:
    def branch(target: str) -> dict[str, object]:
        inner = {
            "inputs": [tensor("a")],
            "outputs": [tensor("b")],
            "nodes": [node(target, "b", "a", {"as_int": 2})],
            "tensor_values": {},
        }
        return {"as_graph": {"name": "branch", "graph": {**inner, "sym_int_values": {}, "sym_bool_values": {}}}}

    call = node(
        "torch.ops.higher_order.cond", [{"as_tensors": [{"name": "y"}]}], "p", branch("torch.ops.aten.add.Tensor"),
        branch("torch.ops.aten.mul.Tensor"), {"as_tensors": [{"name": "x"}]},
    )  # fmt: skip
    result = module(document(["p", "x"], [call], ["y"]))
    assert result.forward(np.array(True), ONES * 3).tolist() == [5, 5, 5]
    assert result.forward(np.array(False), ONES * 3).tolist() == [6, 6, 6]


def test_what_is_missing_is_named() -> None:
    result = module(document(["x"], [node("torch.ops.my.twice.default", "y", "x")], ["y"]))
    assert result.program.missing == {"torch.ops.my.twice.default"}
    with pytest.raises(Unsupported, match="my::twice"):
        result.forward(ONES)
    with pytest.raises(Refused, match="my::twice"):
        module(document(["x"], [node("torch.ops.my.twice.default", "y", "x")], ["y"]), horizon="reference@2.6.0")


@pytest.mark.parametrize(
    "program",
    [
        document(["x"], [node("torch.ops.aten.add.Tensor", "y", "z", "x")], ["y"]),
        document(["x"], [node("torch.ops.aten.add.Tensor", "y", "y", "x")], ["y"]),
        document(["x"], [ADD, ADD], ["y"]),
        document(["x"], [ADD], ["z"]),
        document(["x"], [node("torch.ops.aten.add.Tensor", "y", "x", {"as_int": 1 << 70})], ["y"]),
        document(["x"], [node("torch.ops.aten.add.Tensor", "y", "x", {"as_int": 1, "as_float": 2.0})], ["y"]),
        document(["x"], [ADD], ["y"], in_spec="[1, "),
        document(["x"], [ADD], ["y"], in_spec=arguments(LEAF, LEAF)),
        document(["x"], [node("torch.ops.aten", "y", "x")], ["y"]),
        document(["x"], [ADD], ["y"], input_specs=[{"parameter": {"arg": {"name": "x"}, "parameter_name": "absent"}}]),
        {"graph_module": {"graph": [], "signature": {}}, "schema_version": {"major": 8, "minor": 2}},
    ],
)
def test_a_damaged_program_is_named_when_it_is_loaded(program: dict[str, object]) -> None:
    with pytest.raises(Corrupt):
        load(archive(program))


def test_graphs_that_are_nested_too_deeply_are_refused() -> None:
    inner: dict[str, object] = {"inputs": [], "outputs": [], "nodes": [], "tensor_values": {}}
    for _ in range(80):
        call = node("torch.ops.higher_order.wrap", [], {"as_graph": {"name": "g", "graph": inner}})
        inner = {"inputs": [], "outputs": [], "nodes": [call], "tensor_values": {}}
    program = document(["x"], [ADD], ["y"])
    program["graph_module"]["graph"]["nodes"].append(
        node("torch.ops.higher_order.wrap", [], {"as_graph": {"name": "g", "graph": inner}})
    )
    with pytest.raises(Corrupt, match="nested deeper"):
        load(archive(program))


@pytest.mark.parametrize(("horizon", "ended"), [("2.6.0", "raises"), ("2.8.0", "itself"), ("2.9.1", "copy")])
def test_a_loop_without_a_round_as_each_release_ends_it(horizon: str, ended: str) -> None:
    def graph(output: object) -> dict[str, object]:
        return {
            "as_graph": {"name": "g", "graph": {"inputs": [tensor("a")], "outputs": [output], "nodes": [], "tensor_values": {}}}
        }

    call = node(
        "torch.ops.higher_order.while_loop", [{"as_tensors": [{"name": "y"}]}], graph({"as_bool": False}), graph(tensor("a")),
        {"as_tensors": [{"name": "x"}]}, {"as_tensors": []},
    )  # fmt: skip
    product = module(document(["x"], [call], ["y"]), horizon=f"reference@{horizon}")
    if ended == "raises":
        with pytest.raises(Raised, match="carried_inputs must be a tuple"):
            product.forward(ONES)
        return
    result = product.forward(ONES)
    assert result.tolist() == [1, 1, 1]
    assert np.shares_memory(result, ONES) == (ended == "itself")


@pytest.mark.parametrize(("horizon", "ended"), [("2.6.0", "computes"), ("2.7.1", "raises"), ("2.15.0", "raises")])
def test_a_scan_of_2_6_is_not_run_since_2_7(horizon: str, ended: str) -> None:
    """2.6 gives a dimension and a direction, which the operator has no place for since 2.7: TypeError, as 2.7.1 to 2.15.0 say."""
    graph = {"as_graph": {"name": "g", "graph": {"inputs": [tensor("a"), tensor("b")], "outputs": [tensor("a"), tensor("b")], "nodes": [], "tensor_values": {}}}}  # fmt: skip
    call = node(
        "torch.ops.higher_order.scan", [{"as_tensors": [{"name": "y"}, {"name": "z"}]}], graph, {"as_tensors": [{"name": "x"}]},
        {"as_tensors": [{"name": "x"}]}, {"as_int": 0}, {"as_bool": False}, {"as_tensors": []},
    )  # fmt: skip
    result = module(document(["x"], [call], ["z"]), horizon=f"reference@{horizon}")
    if ended == "raises":
        with pytest.raises(Raised, match="takes 5 positional arguments but 7 were given"):
            result.forward(ONES)
        return
    assert result.forward(ONES).tolist() == [1, 1, 1]


def test_a_loop_without_end_costs_its_steps_and_no_more() -> None:
    from torch_compat.runtime.limits import LIMITS, Exhausted  # noqa: PLC0415 - only this test needs it

    def graph(nodes: list[object], output: object) -> dict[str, object]:
        inner = {"inputs": [tensor("a")], "outputs": [output], "nodes": nodes, "tensor_values": {}}
        return {"as_graph": {"name": "g", "graph": inner}}

    call = node(
        "torch.ops.higher_order.while_loop", [{"as_tensors": [{"name": "y"}]}], graph([], {"as_bool": True}), graph([], tensor("a")),
        {"as_tensors": [{"name": "x"}]}, {"as_tensors": []},
    )  # fmt: skip
    result = load(archive(document(["x"], [call], ["y"])), limits=LIMITS._replace(steps=10_000))
    with pytest.raises(Exhausted, match="steps"):
        result.forward(ONES)


@pytest.mark.parametrize("major", [0, 8])
def test_arguments_without_a_pair_are_those_of_the_first_schema_alone(major: int) -> None:
    program = document(["x"], [ADD], ["y"], in_spec=json.dumps([1, tree("builtins.tuple", None, LEAF)]))
    program["schema_version"] = {"major": major, "minor": 0}
    with pytest.raises(Corrupt, match="does not describe the structure of its arguments and keyword arguments"):
        module(program)
