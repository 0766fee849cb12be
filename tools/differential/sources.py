"""Small programs that hypothesis writes: TorchScript as people write it, well typed by construction.

They write to attributes, lists, dictionaries and tensors, through views too; loop with values that they carry; return early; raise;
call methods of their own. What they compute is bounded, and so is how long they run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["programs"]

TYPES = ("int", "float", "bool", "str", "Tensor", "List[int]", "List[float]", "List[str]", "List[Tensor]", "Dict[str, int]",
         "Optional[int]", "Tuple[int, Tensor]")  # fmt: skip
SIMPLE = ("int", "float", "bool", "str", "Tensor")
STATE = {"count": "int", "rate": "float", "flag": "bool", "name": "str", "numbers": "List[int]", "table": "Dict[str, int]",
         "maybe": "Optional[int]", "buffer": "Tensor", "trace": "int"}  # fmt: skip
GIVEN = (
    ("n", "int"),
    ("r", "float"),
    ("s", "str"),
    ("x", "Tensor"),
    ("y", "Tensor"),
    ("l", "List[int]"),
    ("o", "Optional[int]"),
    ("d", "Dict[str, int]"),
)


class Writer:
    """Writes one program."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self.draw = draw
        self.lines: list[str] = []
        self.fresh = 0
        self.statements = 0
        self.loops = 0
        self.helpers: list[tuple[str, list[str], str]] = []  # name, parameters, result
        self.returns: list[str] = []
        self.self_ = True

    # ------------------------------------------------------------------------------------------------------- choices

    def pick(self, options: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(options))

    def integer(self, low: int, high: int) -> int:
        outcome: int = self.draw(st.integers(low, high))
        return outcome

    def name(self, prefix: str = "v") -> str:
        self.fresh += 1
        return f"{prefix}{self.fresh}"

    def of(self, scope: dict[str, str], kind: str) -> list[str]:
        """What is there of a type; a variable that is a tuple or optional is no number."""
        results = [name for name, item in scope.items() if item == kind]
        return results + [f"self.{name}" for name, item in STATE.items() if item == kind]

    # ---------------------------------------------------------------------------------------------------- expressions

    def expr(self, scope: dict[str, str], kind: str, depth: int) -> str:
        """An expression of a type."""
        known = self.of(scope, kind)
        if known and (depth <= 0 or self.integer(0, 2) == 0):
            outcome: str = self.pick(known)
            return outcome
        if depth <= 0:
            return self.literal(kind)
        if depth > 1 and self.integer(0, 9) == 0:
            return f"({self.expr(scope, kind, depth - 1)} if {self.expr(scope, 'bool', depth - 1)} else {self.expr(scope, kind, depth - 1)})"
        callable_ = [helper for helper in self.helpers if helper[2] == kind]
        if callable_ and self.integer(0, 4) == 0:
            name, parameters, _ = self.pick(callable_)
            return f"self.{name}({', '.join(self.expr(scope, parameter, depth - 1) for parameter in parameters)})"
        template = self.pick(EXPRESSIONS[kind])
        return self.fill(scope, template, depth - 1)

    def fill(self, scope: dict[str, str], template: str, depth: int) -> str:
        """What stands between backticks becomes an expression of that type, ``=0..3`` an integer of that range."""
        parts = template.split("`")
        for at in range(1, len(parts), 2):
            parts[at] = self.small(parts[at]) if parts[at].startswith("=") else self.expr(scope, parts[at], depth)
        return "".join(parts)

    def small(self, slot: str) -> str:
        low, _, high = slot[1:].partition("..")
        return str(self.integer(int(low), int(high)))

    def literal(self, kind: str) -> str:
        outcome: str = self.pick(LITERALS[kind])
        return outcome

    # ------------------------------------------------------------------------------------------------------ statements

    def block(self, scope: dict[str, str], indent: int, count: int, *, loop: bool) -> None:
        """Some statements, and something that is seen from outside, so that torch runs all of them."""
        known = set(scope)
        for _ in range(self.integer(1, count)):
            if self.statements > 25:
                break
            self.statements += 1
            self.statement(scope, indent, loop=loop)
        self.trace(scope, indent, known)

    def trace(self, scope: dict[str, str], indent: int, known: set[str]) -> None:
        """Read what the block made: torch leaves out what nobody reads, with the errors that it would raise."""
        self.put(
            indent,
            " + ".join(
                ["self.trace = self.trace + 1", *(SEEN[kind].format(name) for name, kind in scope.items() if name not in known)]
            ),
        )

    def put(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def statement(self, scope: dict[str, str], indent: int, *, loop: bool) -> None:
        kinds = ["new", "new", "assign", "mutate", "mutate", "state"]
        if indent < 5:
            kinds += ["if", "if"]
            kinds += ["for", "while", "optional"] if self.loops < 3 else []
        kinds += ["leave"] if loop else []
        kinds += ["return", "raise"] if indent > 2 else []
        getattr(self, "s_" + self.pick(kinds))(scope, indent)

    def s_new(self, scope: dict[str, str], indent: int) -> None:
        kind, name = self.pick(TYPES), self.name()
        value = self.expr(scope, kind, 3)
        self.put(indent, f"{name}: {kind} = {value}" if kind.startswith(("List", "Dict", "Optional")) else f"{name} = {value}")
        scope[name] = kind

    def s_assign(self, scope: dict[str, str], indent: int) -> None:
        names = [name for name, kind in scope.items() if kind != "Optional[int]" and not name.startswith(("i", "p", "q"))]
        name = self.pick(names)
        if scope[name] in {"int", "float"} and self.integer(0, 1):
            self.put(indent, f"{name} {self.pick(('+=', '-=', '*='))} {self.expr(scope, scope[name], 2)}")
        else:
            self.put(indent, f"{name} = {self.expr(scope, scope[name], 3)}")

    def s_mutate(self, scope: dict[str, str], indent: int) -> None:
        kind = self.pick(("Tensor", "Tensor", "List[int]", "Dict[str, int]", "List[Tensor]", "List[float]", "List[str]"))
        known = self.of(scope, kind)
        if not known:
            self.s_new(scope, indent)
            return
        target = self.pick(known)
        self.put(indent, target + self.fill(scope, self.pick(MUTATIONS[kind]), 2))

    def s_state(self, scope: dict[str, str], indent: int) -> None:
        name = self.pick(tuple(STATE))
        if STATE[name] == "Tensor":
            self.put(indent, f"self.{name} = {self.expr(scope, 'Tensor', 2)}")
        else:
            self.put(indent, f"self.{name} = {self.expr(scope, STATE[name], 2)}")

    def s_if(self, scope: dict[str, str], indent: int) -> None:
        self.put(indent, f"if {self.expr(scope, 'bool', 2)}:")
        self.block(dict(scope), indent + 1, 3, loop=False)
        if self.integer(0, 2) == 0:
            self.put(indent, f"elif {self.expr(scope, 'bool', 2)}:")
            self.block(dict(scope), indent + 1, 2, loop=False)
        if self.integer(0, 1):
            name, kind = self.name(), self.pick(SIMPLE)
            # what both branches define is there afterwards
            self.put(indent, "else:")
            self.block(dict(scope), indent + 1, 2, loop=False)
            self.put(indent, f"if {self.expr(scope, 'bool', 1)}:")
            self.put(indent + 1, f"{name} = {self.expr(scope, kind, 2)}")
            self.put(indent, "else:")
            self.put(indent + 1, f"{name} = {self.expr(scope, kind, 2)}")
            scope[name] = kind

    def s_optional(self, scope: dict[str, str], indent: int) -> None:
        names = [name for name, kind in scope.items() if kind == "Optional[int]"]
        if not names:
            self.s_new(scope, indent)
            return
        name = self.pick(names)
        self.put(indent, f"if {name} is not None:")
        self.block({**scope, name: "int"}, indent + 1, 2, loop=False)
        if self.integer(0, 1):
            self.put(indent, "else:")
            self.block({item: kind for item, kind in scope.items() if item != name}, indent + 1, 2, loop=False)

    def s_for(self, scope: dict[str, str], indent: int) -> None:
        self.loops += 1
        i, p = self.name("i"), self.name("p")
        head, walked, given = self.pick((
            (f"for {i} in range(`=0..4`):", "", {i: "int"}),
            (f"for {i} in range(`=3..5`, -1, -`=1..2`):", "", {i: "int"}),
            (f"for {i} in range(min(`int`, 4)):", "", {i: "int"}),
            (f"for {p} in WALKED:", "List[int]", {p: "int"}),
            (f"for {i}, {p} in enumerate(WALKED):", "List[int]", {i: "int", p: "int"}),
            (f"for {i}, {p} in zip(WALKED, `List[str]`):", "List[int]", {i: "int", p: "str"}),
            (f"for {p} in `Tensor`:", "", {p: "Tensor"}),
            (f"for {p} in WALKED:", "List[Tensor]", {p: "Tensor"}),
            (f"for {p} in WALKED:", "Dict[str, int]", {p: "str"}),
            (f"for {p}, {i} in WALKED.items():", "Dict[str, int]", {p: "str", i: "int"}),
        ))  # fmt: skip
        if walked:  # a copy, as a program that lets grow what it walks would not end
            copied = self.name("q")
            self.put(indent, f"{copied} = {self.expr(scope, walked, 1)}{'.copy()' if walked.startswith('Dict') else '[:4]'}")
            head = head.replace("WALKED", copied)
        self.put(indent, self.fill(scope, head, 1))
        self.block({**scope, **given}, indent + 1, 3, loop=True)

    def s_while(self, scope: dict[str, str], indent: int) -> None:
        self.loops += 1
        name = self.name("i")
        self.put(indent, f"{name} = 0")
        extra = self.pick(("", f" and {self.expr(scope, 'bool', 1)}"))
        self.put(indent, f"while {name} < {self.integer(0, 5)}{extra}:")
        self.put(indent + 1, f"{name} += 1")
        self.block({**scope, name: "int"}, indent + 1, 3, loop=True)

    def s_leave(self, scope: dict[str, str], indent: int) -> None:
        self.put(indent, f"if {self.expr(scope, 'bool', 2)}:")
        self.put(indent + 1, self.pick(("break", "continue")))

    def s_return(self, scope: dict[str, str], indent: int) -> None:
        self.put(indent, f"if {self.expr(scope, 'bool', 1)}:")
        self.put(indent + 1, self.result(scope))

    def s_raise(self, scope: dict[str, str], indent: int) -> None:
        if self.integer(0, 1):
            self.put(indent, f"assert {self.expr(scope, 'bool', 2)}, 'said'")
        else:
            self.put(indent, f"if {self.expr(scope, 'bool', 1)}:")
            self.put(indent + 1, f"raise RuntimeError({self.pick(('s', repr('said')))})")

    def result(self, scope: dict[str, str]) -> str:
        """A return statement."""
        values = [self.expr(scope, kind, 1) for kind in self.returns]
        return f"return {', '.join(values)}" if len(values) > 1 else f"return {values[0]}"

    # --------------------------------------------------------------------------------------------------------- methods

    def method(self, name: str, parameters: list[tuple[str, str]], returns: list[str], count: int) -> None:
        self.returns = returns
        message = returns[0] if len(returns) == 1 else f"Tuple[{', '.join(returns)}]"
        given = "".join(f", {item}: {kind}" for item, kind in parameters)
        self.put(0, f"def {name}(self{given}) -> {message}:")
        scope = dict(parameters)
        self.block(scope, 1, count, loop=False)
        self.put(1, self.result(scope))

    def program(self) -> str:
        """All of it."""
        for _ in range(self.integer(0, 2)):
            name, kinds = self.name("h"), [self.pick(SIMPLE) for _ in range(self.integer(1, 2))]
            result = self.pick(SIMPLE)
            self.method(name, [("s", "str"), *((f"a{at}", kind) for at, kind in enumerate(kinds))], [result], 3)
            self.helpers.append((name, ["str", *kinds], result))
            self.statements = self.loops = 0
        self.method("forward", list(GIVEN), [self.pick(TYPES) for _ in range(self.integer(1, 3))], 7)
        self.put(0, f"def state(self) -> Tuple[{', '.join(STATE.values())}]:")
        self.put(1, f"return {', '.join(f'self.{name}' for name in STATE)}")
        return "\n".join(self.lines) + "\n"


SEEN = {
    "int": "{} % 7", "float": "int({} > 0)", "bool": "int({})", "str": "len({})", "Tensor": "{}.numel()", "List[int]": "len({})", "List[float]": "len({})",
    "List[str]": "len({})", "List[Tensor]": "len({})", "Dict[str, int]": "len({})", "Optional[int]": "int({} is None)", "Tuple[int, Tensor]": "{}[0] % 7",
}  # fmt: skip
LITERALS: dict[str, tuple[str, ...]] = {
    "int": ("1", "0", "2", "-1", "3", "7", "9223372036854775807"),
    "float": ("1.0", "0.5", "-2.0", "0.0", "3.25", "1e10", "float('inf')"),
    "bool": ("True", "False"),
    "str": ("'a'", "''", "'b c'", "'Xy'", "'é'"),
    "Tensor": (
        "torch.ones([2, 3])",
        "torch.arange(6).reshape([2, 3])",
        "torch.zeros([3])",
        "torch.tensor([1.5, -2.0, 0.0])",
        "torch.tensor(2)",
    ),
    "List[int]": ("[1, 2]", "[0]", "[3, -1, 2]"),
    "List[float]": ("[1.5]", "[0.0, -1.0]"),
    "List[str]": ("['a', 'b']", "['z']"),
    "List[Tensor]": ("[torch.ones([2])]",),
    "Dict[str, int]": ("{'a': 1}", "{'b': 2, 'a': 0}"),
    "Optional[int]": ("None", "5"),
    "Tuple[int, Tensor]": ("(1, torch.ones([2]))",),
}
EXPRESSIONS: dict[str, tuple[str, ...]] = {
    "int": (
        "(`int` + `int`)", "(`int` - `int`)", "(`int` * `int`)", "(`int` // `int`)", "(`int` % (abs(`int`) % 5 + 1))", "-(`int`)", "abs(`int`)",
        "min(`int`, `int`)", "max(`int`, `int`)", "len(`str`)", "len(`List[int]`)", "len(`Dict[str, int]`)", "`List[int]`[`=0..2`]",
        "`List[int]`[`int`]", "`Dict[str, int]`['a']", "`Tuple[int, Tensor]`[0]", "`Tensor`.numel()", "`Tensor`.dim()", "int(`bool`)",
        "(`int` & `int`)", "(`int` | `int`)", "(`int` ^ `int`)", "`Tensor`.size(0)", "sum(`List[int]`)", "int(`str`)", "ord('a')",
        "`str`.find(`str`)", "`List[int]`.count(`int`)", "`Dict[str, int]`.get('a', `int`)", "(`int` << `=0..3`)", "(`int` >> `=0..3`)",
        "int(`float`)", "`List[int]`.index(`int`)",
    ),
    "float": (
        "(`float` + `float`)", "(`float` - `float`)", "(`float` * `float`)", "(`float` / `float`)", "(`int` / `int`)", "float(`int`)",
        "abs(`float`)", "min(`float`, `float`)", "`List[float]`[0]", "float(`Tensor`.sum())", "(`float` // `float`)", "(`float` % `float`)",
        "math.floor(`float`) * 1.0", "math.sqrt(`float`)", "math.exp(`float` * 0.1)", "(`int` * `float`)", "(`float` ** 2)", "round(`float`)", "max(`List[float]`)",
    ),
    "bool": (
        "(`int` < `int`)", "(`int` == `int`)", "(`float` >= `float`)", "(`str` == `str`)", "(`bool` and `bool`)", "(`bool` or `bool`)",
        "(not `bool`)", "(`int` in `List[int]`)", "(`str` in `Dict[str, int]`)", "(`Optional[int]` is None)", "bool(`int`)",
        "`str`.startswith(`str`)", "(`List[int]` == `List[int]`)", "bool((`Tensor` > 0).any())", "(`str` < `str`)", "(`int` != `int`)",
        "(0 <= `int` < 5)",
    ),
    "str": (
        "(`str` + `str`)", "str(`int`)", "`str`[`=0..1`:]", "`str`.upper()", "'{}|{}'.format(`int`, `str`)", "str(`bool`)", "`str`.strip()",
        "('%d' % `int`)", "`str`.replace('a', `str`)", "','.join(`List[str]`)", "`List[str]`[0]", "`str`[`=-2..2`]", "str(`float`)",
        "`str`.lower()", "str(`List[int]`)", "`str`.capitalize()",
    ),
    "Tensor": (
        "(`Tensor` + `Tensor`)", "(`Tensor` * `float`)", "(`Tensor` - `int`)", "(`Tensor` * `Tensor`)", "(`Tensor` / 2)", "`Tensor`[0]", "`Tensor`[`=0..1`:]",
        "`Tensor`[..., `=0..1`]", "`Tensor`.t()", "`Tensor`.view([-1])", "`Tensor`.reshape([-1])", "torch.relu(`Tensor`)", "`Tensor`.sum()", "`Tensor`.sum(0)",
        "torch.cat([`Tensor`, `Tensor`])", "torch.stack([`Tensor`, `Tensor`])", "`List[Tensor]`[0]", "`Tuple[int, Tensor]`[1]", "torch.zeros([`=0..3`, `=1..3`])",
        "torch.full([`=1..3`], `float`)", "`Tensor`.clone()", "(`Tensor` > `float`)", "torch.where(`Tensor` > 0, `Tensor`, `Tensor`)", "`Tensor`.transpose(0, -1)",
        "`Tensor`.unsqueeze(0)", "`Tensor`[:, `=0..1`]", "torch.max(`Tensor`)", "(`Tensor` @ `Tensor`.t())", "`Tensor`.to(torch.float64)", "`Tensor`[`Tensor` > 0]",
        "`Tensor`.expand([2, -1, -1])", "`Tensor`.detach()", "torch.arange(`=0..4`)", "`Tensor`.float()", "`Tensor`.masked_fill(`Tensor` > 1, `int`)",
        "self.weight", "`Tensor`.flatten()", "`Tensor`.add_(`int`)", "torch.tensor([`int`, `int`])", "torch.tensor(`float`)", "`Tensor`.int()", "(`Tensor` // 2)",
    ),
    "List[int]": (
        "[`int`, `int`]", "(`List[int]` + `List[int]`)", "`List[int]`[`=0..2`:]", "[e1 + 1 for e1 in `List[int]`]", "`List[int]`.copy()",
        "sorted(`List[int]`)", "list(range(`=0..4`))", "list(`Dict[str, int]`.values())", "`Tensor`.shape", "`List[int]`[::2]", "(`List[int]` * `=0..2`)",
        "[e2 * e2 for e2 in range(`=0..3`)]",
    ),
    "List[float]": ("[`float`, `float`]", "(`List[float]` + `List[float]`)", "[float(e3) for e3 in `List[int]`]", "`List[float]`[-1:]"),
    "List[str]": ("[`str`, `str`]", "`str`.split('a')", "(`List[str]` + `List[str]`)", "list(`Dict[str, int]`.keys())", "[e4 + '!' for e4 in `List[str]`]", "sorted(`List[str]`)"),
    "List[Tensor]": ("[`Tensor`, `Tensor`]", "(`List[Tensor]` + [`Tensor`])", "[e5 * 2 for e5 in `List[Tensor]`]", "`List[Tensor]`[-1:]", "[`Tensor`]", "torch.unbind(`Tensor`)"),
    "Dict[str, int]": ("{`str`: `int`}", "`Dict[str, int]`.copy()", "{e6: len(e6) for e6 in `List[str]`}"),
    "Optional[int]": ("`int`",),
    "Tuple[int, Tensor]": ("(`int`, `Tensor`)",),
}  # fmt: skip
MUTATIONS: dict[str, tuple[str, ...]] = {
    "Tensor": (
        ".add_(`int`)", ".mul_(`float`)", "[0] = `int`", "[`=0..1`:] = `float`", ".view([-1])[0] = `int`", "[0] += `int`", ".zero_()", ".copy_(`Tensor`)",
        "[..., 0].add_(`Tensor`)", ".t()[0] *= 2", ".sub_(`Tensor`)", "[`Tensor` > 0] = `int`", ".fill_(`float`)", ".transpose(0, -1).add_(1)",
        "[`=0..1`] = `Tensor`", ".clamp_(min=`int`)", ".reshape([-1])[1:].neg_()", "[:, 1].zero_()",
    ),
    "List[int]": (".append(`int`)", "[0] = `int`", ".pop()", ".extend(`List[int]`)", ".insert(`=0..2`, `int`)", ".reverse()", ".sort()", ".clear()", ".remove(`int`)", "[`int`] = `int`"),
    "List[float]": (".append(`float`)", ".pop(`=0..1`)", ".sort(reverse=True)"),
    "List[str]": (".append(`str`)", ".sort()", "[0] = `str`"),
    "List[Tensor]": (".append(`Tensor`)", "[0] = `Tensor`", "[0].add_(1)", ".pop()"),
    "Dict[str, int]": ("[`str`] = `int`", "['a'] = `int`", ".pop(`str`)", ".update(`Dict[str, int]`)", ".clear()", ".setdefault(`str`, `int`)"),
}  # fmt: skip


@st.composite
def programs(draw: Any) -> dict[str, Any]:
    """Source, and the arguments of ``forward``."""
    writer = Writer(draw)
    source = writer.program()
    whole = [float(item) for item in draw(st.lists(st.sampled_from((1.0, 0.0, -1.5, 2.0, 0.25)), min_size=6, max_size=6))]
    return {
        "source": source, "n": draw(st.sampled_from((2, 0, 1, -3, 5))), "r": draw(st.sampled_from((1.5, 0.0, -0.25))), "s": draw(st.sampled_from(("a", "", "bab", "é"))),
        "x": whole, "alias": draw(st.booleans()), "l": draw(st.lists(st.integers(-2, 3), max_size=3)), "o": draw(st.sampled_from((None, 4))),
        "d": draw(st.sampled_from(({"a": 1}, {}, {"b": 3, "a": 2}))),
    }  # fmt: skip
