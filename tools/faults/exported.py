"""Hostile exported programs: the JSON of a program, its weights or its trees, changed structurally, with correct checksums.

Each change targets a specific structure: values used before their definition, names that are not identifiers, nested graphs, endless loops,
exploding symbolic expressions, trees, signatures, weights outside of their records, out-of-range numbers and depths.
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

from torch_compat.runtime import registry
from torch_compat.runtime.exported.execution import NUMBERS
from torch_compat.runtime.exported.higher_order import FUNCTIONS as HIGHER_ORDER

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

__all__ = ["EXPRESSIONS", "is_part", "mutated_exported"]

Json = dict[str, Any]
DEEP = "~deep~"
DEPTHS = (60, 900, 20_000)
MOST_DEEP = 16  # places in one document: an entry copied 20,000 times would take gigabytes
OPENINGS = (("[", "]"), ('{"a":', "}"), ('{"as_graph":{"graph":', "}}"), ('{"as_tensors":[', "]}"))
BOUNDARIES = (
    0, 1, -1, 2, 7, 64, 255, 0x7FFF, 1 << 16, 1 << 20, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 32, 1 << 40, (1 << 61) + 1, 1 << 62, (1 << 63) - 1, 1 << 63,
    -(1 << 31), -(1 << 63), -(1 << 63) - 1, 1 << 200, 10**4000,
)  # fmt: skip
STRANGE: tuple[Any, ...] = (
    None,
    True,
    False,
    "",
    "x",
    [],
    {},
    [1],
    0.5,
    float("inf"),
    float("nan"),
    1e308,
    "NaN",
    "1" * 5000,
    "\ud800",
    "\0",
    {"as_none": True},
)
NAMES = (
    "", " ", "a b", "1x", "__class__", "__import__('os').system('true')", "lambda", "self", "None", "x.y", "../x", "/etc/passwd", "\0", "\x1b[31m",
    "\u202ex", "\ud800", "a" * 70_000, "s0", "L['x']", "x\n", "%s", "{0.__class__}", "\u0661", "\uff53\uff10",
)  # fmt: skip
EXPRESSIONS = (
    "9**9**9**9", "s0**s0**s0", "Pow(Integer(2), Pow(Integer(2), Integer(1000000)))", "2**4095*2**4095*s0", "LShift(1, 1000000000)", "1 << 1 << 1 << 30",
    "1 << s0 << s0", "(" * 5000 + "s0" + ")" * 5000, "+".join(["s0"] * 3000), "*".join(["s0"] * 900), "Mul(" + "2**4095," * 480 + "s0)",
    "Add(" + "2**4095," * 480 + "s0)", "RoundDecimal(s0, -1000000000)", "RoundDecimal(1.5, -1000000000)", "RoundToInt(s0, -9999999999999)", "Max()", "Max(1)", "Min(s0, 'a')",
    "Max(" * 99 + "s0" + ")" * 99, "__import__('os').system('true')", "open('/etc/passwd').read()", "exec('1')", "().__class__.__base__", "[x for x in ()]",
    "lambda: 0", "f'{s0}'", "'a' * 1000000000", "[0] * 1000000000", "L['x'].size()[1000000000]", "L['x'].__class__", "L['x'].size()[-1] >= 0", "L[L]", "L", "s0 // 0",
    "Mod(s0, 0)", "s0 % 0", "FloorDiv(s0, 0)", "s0 / 0", "nan", "\0", "s0\n+1", "Symbol('__class__')", "Symbol('a' * 100)", "Symbol('s0', integer=True)", "Float('1e999', precision=53)",
    "Float('x')", "sqrt(-1)", "sqrt(10**4000)", "(-8)**0.5", "(-8.0)**s0", "1e308*10", "1e308**2", "s0 if s0 else (", "s0 if s0 else u9", "s0 < s0 < s0", "s0 is s0", "s0 in s0",
    "u0", "not " * 900 + "s0", "-" * 900 + "1", "~" * 90 + "s0", "s0.real", "int('9')", "9" * 5000, "0x" + "f" * 5000, "1_0", "PythonMod(10**1200, 7)", "FloatPow(2, 100000)",
    "FloatPow(2.0, 10**400)", "IntTrueDiv(10**400, 3)", "ToFloat(10**400)", "TruncToInt(1e308)", "TruncToInt(1e999)", "floor(inf)", "ceiling(-oo)", "RShift(s0, -1)", "s0 >> 10**30",
    "ModularIndexing(s0, 0, 0)", "Where(s0, s0)", "Eq(s0)", "Abs(-2**4095)", "True + True", "None", "...", "b'x'", "s0; s0", "s0 = 1", "(s0 := 1)", "*s0", "await s0", "yield s0",
    "math.floor(1e999)", "math.sqrt(-1)", "math.isnan(s0)", "math.__loader__", "math.factorial(100000)", "max(s0)", "abs()", "s0()", "s0[0]", "Integer('9')", "Rational(1, 0)", "2**-4000000", "s0",
    "2*s0", "s0 + 1", "Add(Mul(Integer(2), Symbol('s0')), Integer(1))", "", " ",
)  # fmt: skip
TARGETS = (
    "os.system", "builtins.eval", "builtins.exec", "builtins.getattr", "builtins.__import__", "_operator.attrgetter", "_operator.call", "subprocess.run", "math.factorial",
    "torch.load", "torch.ops.load_library", "torch.ops.aten", "torch.ops..", "torch.ops.aten..default", "torch.ops.aten.add.Tensor.more", "torch.ops.os.system", "", ".", "torch",
    "torch._higher_order_ops.wrap.wrap_with_set_grad_enabled", "torch.ops.aten.__class__.default", "torch.ops.aten._dict.default", "torch.ops.prim.Print.default",
    "torch.ops.higher_order.triton_kernel_wrapper_functional", "torch.ops.higher_order.call_torchbind", "torch._C._set_grad_enabled", "_operator.getitem", "\0", "a" * 70_000,
)  # fmt: skip
KINDS: tuple[Json, ...] = (
    {"as_int": 1 << 62}, {"as_int": -1}, {"as_float": "Infinity"}, {"as_float": "x"}, {"as_bool": 1}, {"as_string": "a" * 5000}, {"as_scalar_type": 99},
    {"as_scalar_type": 7}, {"as_memory_format": 9}, {"as_layout": 1}, {"as_device": {"type": "cuda", "index": 1 << 70}}, {"as_device": {"type": "\x1b[0m", "index": None}},
    {"as_ints": [1 << 40] * 3}, {"as_ints": [2, 3]}, {"as_ints": [-1, -1]}, {"as_ints": [1] * 3000}, {"as_strings": ["\ud800"]}, {"as_complex": {"real": "NaN", "imag": 1}},
    {"as_none": True}, {"as_none": True, "as_int": 1}, {}, {"as_int": None, "as_none": None}, {"as_custom_obj": {"name": "x", "class_fqn": "os.system"}},
    {"as_sym_int": {"as_int": 1 << 62}}, {"as_sym_int": {"as_name": "s0"}}, {"as_sym_ints": [{"as_int": 1 << 31}] * 2}, {"as_operator": "os.system"},
    {"as_string_to_argument": {"a": {"as_int": 1}}}, {"as_nested_tensors": [[]]}, {"as_int_lists": [[1], [1 << 62]]}, {"as_what": 1},
)  # fmt: skip
LEAF: Json = {"type": None, "context": None, "children_spec": []}
TREES: tuple[Any, ...] = (
    [1, LEAF], [2, LEAF], [1], [], {}, [1, {"type": "builtins.tuple", "context": "null", "children_spec": [LEAF] * 5000}],
    [1, {"type": "os.system", "context": "true", "children_spec": []}], [1, {"type": "collections.namedtuple", "context": '"a.B"', "children_spec": [LEAF]}],
    [1, {"type": "collections.namedtuple", "context": '{"class_name": "__class__", "fields": ["__init__"]}', "children_spec": [LEAF]}],
    [1, {"type": "builtins.dict", "context": '["__class__"]', "children_spec": [LEAF]}], [1, {"type": "builtins.dict", "context": "[[]]", "children_spec": [LEAF]}],
    [1, {"type": "builtins.dict", "context": '["a", "a"]', "children_spec": [LEAF, LEAF]}], [1, {"type": "collections.defaultdict", "context": '{"dict_context": "9"}', "children_spec": [LEAF]}],
    [1, {"type": "torch.return_types.max", "context": "1" * 5000, "children_spec": [LEAF]}], [float("inf"), LEAF],
)  # fmt: skip
SPECS = ("parameter", "buffer", "tensor_constant", "custom_obj", "token", "constant_input", "user_input")
PATHS = (
    "weight_0",
    "weight_1",
    "tensor_0",
    "../x",
    "/etc/passwd",
    "",
    "../../models/model.json",
    "weight_0/",
    ".",
    "\0",
    "a" * 70_000,
)


def is_part(name: str) -> bool:
    """Whether a record is the JSON of a program, or of weights."""
    return name.endswith(("serialized_exported_program.json", "_config.json")) or (
        "/models/" in f"/{name}" and name.endswith(".json")
    )


def mutated_exported(rng: random.Random, name: str, data: bytes) -> tuple[str, bytes] | None:
    """Apply one to four changes to a record of :func:`is_part`; None if it no longer contains a suitable place."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    changes = WEIGHTS if name.endswith("_config.json") else PROGRAM
    messages = []
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        change = rng.choice(changes)
        try:
            messages.append(f"{change.__name__.strip('_')}: {change(rng, document)}"[:120])
        except (LookupError, TypeError, AttributeError, ValueError, RecursionError):
            messages.append(
                f"{change.__name__.strip('_')}: nothing"
            )  # an earlier change removed it or made it too deep, or there is none
    try:
        text = json.dumps(document)
    except RecursionError:  # nested graphs
        return None
    opening, closing = rng.choice(OPENINGS)
    depth = rng.choice(DEPTHS)
    text = text.replace(f'"{DEEP}"', f"{opening * depth}0{closing * depth}", MOST_DEEP)
    return ", ".join(messages), text.replace(f'"{DEEP}"', "0").encode()


# ------------------------------------------------------------------------------------------------------------ places


def _graph(document: Json) -> Json:
    result: Json = document["graph_module"]["graph"]
    return result


def _node(rng: random.Random, document: Json) -> Json:
    result: Json = rng.choice(_graph(document)["nodes"])
    return result


def _walk(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a document: a container and a key."""
    places, left = [], [value]
    while left:
        holder = left.pop()
        for key in holder if isinstance(holder, dict) else range(len(holder)):
            places.append((holder, key))
            if isinstance(holder[key], dict | list):
                left.append(holder[key])
    return places


def _keyed(document: Any, *keys: str) -> list[tuple[Any, Any]]:
    """The places with one of these keys."""
    return [(holder, key) for holder, key in _walk(document) if key in keys]


def _names(document: Json) -> list[str]:
    return sorted({holder[key] for holder, key in _keyed(document, "name", "as_name") if isinstance(holder[key], str)})


# --------------------------------------------------------------------------------------------------------- of programs


def _number(rng: random.Random, document: Json) -> str:
    places = [place for place in _walk(document) if place[0][place[1]].__class__ in {int, float}]
    holder, key = rng.choice(places)
    holder[key] = rng.choice((*BOUNDARIES, holder[key] + 1 if rng.random() < 0.5 else -holder[key]))
    return f"{key}"


def _strange(rng: random.Random, document: Json) -> str:
    holder, key = rng.choice(_walk(document))
    holder[key] = copy.deepcopy(rng.choice(STRANGE))
    return f"{key}"


def _deep(rng: random.Random, document: Json) -> str:
    holder, key = rng.choice(_walk(document))
    holder[key] = DEEP
    return f"{key}"


def _gone(rng: random.Random, document: Json) -> str:
    holder, key = rng.choice(_walk(document))
    del holder[key]
    return f"{key}"


def _cycle(rng: random.Random, document: Json) -> str:
    nodes = _graph(document)["nodes"]
    what = rng.choice(["reversed", "itself", "twice", "as an input", "shuffled"])
    if what == "reversed":
        nodes.reverse()
    elif what == "shuffled":
        rng.shuffle(nodes)
    elif what == "itself":
        node = _node(rng, document)
        arguments = _keyed(node["inputs"], "as_tensor")
        holder, key = rng.choice(arguments)
        holder[key] = copy.deepcopy(rng.choice(_keyed(node["outputs"], "as_tensor"))[0]["as_tensor"])
    elif what == "twice":
        nodes.insert(rng.randrange(len(nodes) + 1), copy.deepcopy(_node(rng, document)))
    else:
        _graph(document)["inputs"].append(copy.deepcopy(_node(rng, document)["outputs"][0]))
    return what


def _renamed(rng: random.Random, document: Json) -> str:
    """Rename a value everywhere, so that the program stays consistent."""
    old, new = rng.choice(_names(document)), rng.choice((*NAMES, *_names(document)))
    everywhere = rng.random() < 0.8
    places = [place for place in _walk(document) if place[0][place[1]] == old]
    for holder, key in places if everywhere else [rng.choice(places)]:
        holder[key] = new
    for holder, key in [place for place in _walk(document) if place[1] == old] if everywhere else []:
        holder[new] = holder.pop(key)
    return f"{old!r:.20} is {new!r:.20}"


def _target(rng: random.Random, document: Json) -> str:
    operator = rng.choice(sorted(registry.known())).partition("::")
    mine = f"torch.ops.{operator[0]}.{operator[2]}.default"
    number = rng.choice(sorted(NUMBERS))
    higher = f"torch.ops.higher_order.{rng.choice(sorted(HIGHER_ORDER))}"
    new = rng.choice([mine, mine, mine, mine, number, higher, rng.choice(TARGETS)])
    _node(rng, document)["target"] = new
    return f"{new:.40}"


def _argument(rng: random.Random, document: Json) -> str:
    inputs = _node(rng, document)["inputs"]
    new = copy.deepcopy(rng.choice(KINDS)) if rng.random() < 0.6 else {"as_tensor": {"name": rng.choice(_names(document))}}
    what = rng.choice(["replaced", "replaced", "appended", "dropped"])
    if what == "replaced":
        rng.choice(inputs)["arg"] = new
    elif what == "appended":
        inputs.append({"name": rng.choice(["self", "dim", "out", "dtype", "x", ""]), "arg": new, "kind": rng.choice([1, 2, 3])})
    else:
        del inputs[rng.randrange(len(inputs))]
    return f"{what} {next(iter(new), '')}"


def _inner(rng: random.Random, document: Json) -> str:
    """A graph in an argument, or in a graph in an argument."""
    graph = copy.deepcopy(_graph(document))
    depth = rng.choice([1, 1, 2, 10, 63, 70])
    if depth > 2:
        graph["nodes"] = graph["nodes"][:1]
        graph["tensor_values"] = {}
    for _ in range(depth - 1):
        outer = {
            **graph,
            "nodes": [
                {**graph["nodes"][0], "inputs": [{"name": "f", "arg": {"as_graph": {"name": "g", "graph": graph}}, "kind": 1}]}
            ],
        }
        graph = outer
    node = _node(rng, document)
    node["inputs"].insert(0, {"name": "f", "arg": {"as_graph": {"name": "g", "graph": graph}}, "kind": 1})
    if rng.random() < 0.7:
        node["target"] = f"torch.ops.higher_order.{rng.choice(sorted(HIGHER_ORDER))}"
    return f"{depth} deep"


def _endless(rng: random.Random, document: Json) -> str:
    """A loop whose condition is always true, with a body that does nothing or doubles its value."""
    value = rng.choice(_keyed(_graph(document)["inputs"], "as_tensor"))[0]["as_tensor"]["name"]
    inner = {"as_tensor": {"name": "inner_x"}}
    target = rng.choice(["torch.ops.aten.clone.default", "torch.ops.aten.cat.default", "torch.ops.aten.repeat.default"])
    argument: Json = {"as_tensors": [inner["as_tensor"]] * 2} if ".cat." in target else inner
    more = [{"name": "repeats", "arg": {"as_ints": [2, 2, 2, 2]}, "kind": 1}] if ".repeat." in target else []
    body = {
        "inputs": [inner], "outputs": [{"as_tensor": {"name": "inner_y"}}], "is_single_tensor_return": rng.random() < 0.5, "tensor_values": {},
        "nodes": [{"target": target, "inputs": [{"name": "x", "arg": argument, "kind": 1}, *more], "outputs": [{"as_tensor": {"name": "inner_y"}}]}],
    }  # fmt: skip
    condition = {
        "inputs": [inner],
        "outputs": [{"as_bool": True}],
        "nodes": [],
        "tensor_values": {},
        "is_single_tensor_return": True,
    }
    graphs = [{"name": "f", "arg": {"as_graph": {"name": "g", "graph": item}}, "kind": 1} for item in (condition, body)]
    node = _node(rng, document)
    node["target"] = "torch.ops.higher_order.while_loop"
    node["inputs"] = [
        *graphs,
        {"name": "x", "arg": {"as_tensors": [{"name": value}]}, "kind": 1},
        {"name": "y", "arg": {"as_tensors": []}, "kind": 1},
    ]
    return f"{target.split('.')[3]} without end"


def _expression(rng: random.Random, document: Json) -> str:
    text = rng.choice(EXPRESSIONS)
    new: Json = {"as_expr": {"expr_str": text, "hint": {"as_int": 4}}}
    what = rng.choice(["size", "size", "guard", "guard", "many guards", "range", "number"])
    if what == "size":
        holder, _ = rng.choice(_keyed(_graph(document)["tensor_values"], "sizes"))
        holder["sizes"][rng.randrange(len(holder["sizes"]))] = new
        if rng.random() < 0.7:
            document["range_constraints"] = {text: _range(rng), "s0": _range(rng)}
    elif what == "guard":
        document["guards_code"] = [text, *(document.get("guards_code") or [])]
    elif what == "many guards":
        document["guards_code"] = [text.replace("s0", "1")] * rng.choice([100, 3000])
    elif what == "range":
        document["range_constraints"] = {**(document.get("range_constraints") or {}), text: _range(rng)}
    else:
        _graph(document)["sym_int_values"] = {"s0": new, **(_graph(document).get("sym_int_values") or {})}
    return f"{what} {text:.40}"


def _range(rng: random.Random) -> Json:
    low, high = (rng.choice((None, *BOUNDARIES, 3, 5)) for _ in range(2))
    return {"min_val": low, "max_val": high}


def _tree(rng: random.Random, document: Json) -> str:
    holder, key = rng.choice([place for place in _keyed(document, "in_spec", "out_spec") if isinstance(place[0][place[1]], str)])
    what = rng.choice(["another", "changed", "changed", "deep", "text", "huge"])
    if what == "another":
        holder[key] = json.dumps(rng.choice(TREES))
    elif what == "changed":
        result = json.loads(holder[key])
        inner, place = rng.choice(_walk(result))
        inner[place] = copy.deepcopy(rng.choice((*STRANGE, *BOUNDARIES, *TREES, LEAF)))
        holder[key] = json.dumps(result)
    elif what == "deep":
        depth = rng.choice(DEPTHS)
        opening = '{"type": "builtins.tuple", "context": "null", "children_spec": ['
        holder[key] = f"[1, {opening * depth}{json.dumps(LEAF)}{']}' * depth}]"
    elif what == "huge":
        holder[key] = f"[1, {'[' * 100_000}"
    else:
        holder[key] = rng.choice(NAMES)
    return f"{key} {what}"


def _signature(rng: random.Random, document: Json) -> str:
    signature = document["graph_module"]["signature"]
    side = rng.choice(["input_specs", "output_specs"])
    specs = signature[side]
    what = rng.choice(["kind", "exchanged", "doubled", "dropped", "target", "target"])
    at = rng.randrange(len(specs))
    if what == "kind":
        ((_, value),) = specs[at].items()
        specs[at] = {
            rng.choice(
                (*SPECS, "user_output", "buffer_mutation", "user_input_mutation", "loss_output", "gradient_to_parameter")
            ): value
        }
    elif what == "exchanged":
        rng.shuffle(specs)
    elif what == "doubled":
        specs.insert(at, copy.deepcopy(specs[at]))
    elif what == "dropped":
        del specs[at]
    else:
        keys = ("parameter_name", "buffer_name", "tensor_constant_name", "custom_obj_name", "user_input_name", "name")
        holder, key = rng.choice(_keyed(specs, *keys))
        holder[key] = rng.choice((*NAMES, *_names(document)))
    return f"{side} {what}"


def _version(rng: random.Random, document: Json) -> str:
    new = rng.choice(
        [
            {"major": rng.choice(BOUNDARIES), "minor": rng.choice(BOUNDARIES)},
            rng.choice(BOUNDARIES),
            {"major": "8", "minor": None},
            None,
            [8, 1],
            8.5,
        ]
    )
    document["schema_version"] = new
    return f"{new}"


def _constants(rng: random.Random, document: Json) -> str:
    constants = _graph(document)["constants"]
    key = rng.choice(sorted(constants))
    constants[key] = rng.choice(
        ["", "=", "AAAA", "UEsDBA==", constants[key][: len(constants[key]) // 2], "A" * 1_000_000, "\ud800"]
    )
    return f"{key}"


PROGRAM: tuple[Callable[[random.Random, Json], str], ...] = (
    _number, _number, _strange, _strange, _deep, _gone, _cycle, _cycle, _renamed, _renamed, _target, _target, _target, _target, _argument, _argument, _argument,
    _inner, _inner, _endless, _expression, _expression, _expression, _tree, _tree, _signature, _signature, _version, _constants,
)  # fmt: skip


# ---------------------------------------------------------------------------------------------------------- of weights


def _described(rng: random.Random, document: Json) -> Json:
    result: Json = document["config"][rng.choice(sorted(document["config"]))]
    return result


def _size(rng: random.Random, document: Json) -> str:
    meta = _described(rng, document)["tensor_meta"]
    key = rng.choice(["sizes", "strides", "storage_offset", "dtype"])
    if key == "dtype":
        meta[key] = rng.choice([*range(16), 28, 31, -1, 1 << 40])
    elif key == "storage_offset":
        meta[key] = {"as_int": rng.choice((*BOUNDARIES, meta[key]["as_int"] + 1))}
    else:
        what = rng.choice(["number", "number", "one more", "one less", "many", "expression"])
        at = rng.randrange(len(meta[key]))
        if what == "number":
            meta[key][at] = {"as_int": rng.choice((*BOUNDARIES, meta[key][at]["as_int"] + 1, 2 * meta[key][at]["as_int"]))}
        elif what == "one more":
            meta[key].append({"as_int": rng.choice([0, 1, 2, 1 << 40])})
        elif what == "one less":
            del meta[key][at]
        elif what == "many":
            meta[key] = [{"as_int": 1}] * rng.choice([33, 65, 5000])
        else:
            meta[key][at] = {"as_expr": {"expr_str": rng.choice(EXPRESSIONS)}}
    return key


def _path(rng: random.Random, document: Json) -> str:
    entry = _described(rng, document)
    entry["path_name"] = rng.choice(PATHS)
    return f"{entry['path_name']:.30}"


def _flag(rng: random.Random, document: Json) -> str:
    entry = _described(rng, document)
    key = rng.choice(["use_pickle", "is_param", "tensor_meta"])
    entry[key] = None if key == "tensor_meta" else not entry.get(key)
    return key


def _entry(rng: random.Random, document: Json) -> str:
    config = document["config"]
    what = rng.choice(["renamed", "dropped", "exchanged", "many"])
    first, second = rng.choice(sorted(config)), rng.choice(sorted(config))
    if what == "renamed":
        config[rng.choice(NAMES)] = config.pop(first)
    elif what == "dropped":
        del config[first]
    elif what == "exchanged":
        config[first], config[second] = config[second], config[first]
    else:
        config.update({f"{first}{number}": config[first] for number in range(rng.choice([100, 20_000]))})
    return f"{what} {first}"


WEIGHTS: tuple[Callable[[random.Random, Json], str], ...] = (
    _number, _number, _strange, _deep, _gone, _size, _size, _size, _size, _path, _path, _flag, _entry,
)  # fmt: skip
