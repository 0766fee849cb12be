"""Programs of an attacker who knows Python, numpy and this reader, generated from a seed and a number.

Two kinds, mixed in one source: statements that try to reach Python (names, attributes, dunders, formats, defaults, annotations, class
bodies, constants, shadowing, recursion), and calls of every operator with arguments that break inexact arithmetic (giant sizes, sizes
whose products overflow, negative strides, views of views that are written to).
"""

from __future__ import annotations

import inspect
import random
from functools import lru_cache
from typing import NamedTuple

from torch_compat.runtime import registration, registry

__all__ = ["Program", "generated", "operators"]

WIDE = [0, 1, 2, 3, 4, 5, 7, 8, 16, -1, -2, -3, 64, 100, 127, 128, 255, 256]
GIANT = [
    2**15, 2**16, 2**20, 2**29 + 1, 2**29 + 2, 2**30, 2**31 - 1, 2**31, 2**32, 2**37 + 1, 2**40, 2**52, 2**53 + 1, 2**59, 2**60 + 1, 2**61, 2**62,
    2**62 + 5, 2**63 - 1, -(2**31), -(2**32), -(2**59), -(2**62), -(2**63) + 1,
]  # fmt: skip
FLOATS = ["0.", "1.", "-1.5", "inf", "nan", "1e308", "-1e-320", "9.3e18", "-9.3e18", "0.1"]
TEXTS = ["''", "'a'", "'{0.__class__}'", "'%s%d%x%c'", "'cpu'", "'cuda:99999999999'", "'sum'", "'ij,jk->ik'", "'...i,i...->'", "'\\\\x00'", "'\\\\ud800'", "'é'", "'a' "]  # fmt: skip
TENSORS = [
    "torch.ones([4])", "torch.ones([3, 4])", "torch.ones([2, 3, 4, 5])", "torch.zeros([0])", "torch.zeros([3, 0, 2])", "torch.tensor(5)",
    "torch.arange(12)", "torch.t(torch.ones([3, 4]))", "torch.expand(torch.ones([1]), [1000000])", "torch.expand(torch.ones([1]), [65536, 65536])",
    "torch.slice(torch.arange(12), 0, 2, 9, 2)", "torch.flip(torch.arange(6), [0])", "torch.eye(4)", "torch.ones([5], dtype=0)",
    "torch.ones([5], dtype=11)", "torch.ones([4], dtype=15)", "torch.ones([3, 3], dtype=10)", "torch.full([4], 9223372036854775807)",
    "torch.tensor([4611686018427387904, 4611686018427387904, 4611686018427387904, 4611686018427387909])", "torch.tensor([-1, -2, 3])",
    "torch.tensor([9223372036854775807])", "torch.as_strided(torch.arange(12), [3, 3], [1, 1])", "torch.select(torch.eye(4), 0, 1)",
    "torch.empty_strided([2, 3], [1, 2])", "torch.view(torch.arange(12), [3, 4])", "torch.full([3], nan)", "torch.detach(self.w)", "self.w",
]  # fmt: skip
NAMES = [
    "self",
    "x",
    "y",
    "l",
    "d",
    "torch",
    "ops",
    "__torch__",
    "CONSTANTS",
    "k0",
    "f0",
    "v",
    "vx",
    "t1",
    "__builtins__",
    "open",
    "eval",
    "print",
]
PARTS = [
    "__class__", "__globals__", "__dict__", "__init__", "__subclasses__", "__mro__", "__call__", "__self__", "__func__", "__code__", "__getattribute__", "__reduce__",
    "__format__", "__del__", "__enter__", "index", "type", "array", "base", "data", "ctypes", "tobytes", "setflags", "strides", "dtype", "m_forward", "a_x", "info",
    "python", "call", "forward", "f", "E", "A", "P", "__new__", "mro", "name", "value", "wait", "append", "format", "items", "h",
]  # fmt: skip
TYPES = ["int", "float", "Tensor", "List[int]", "Optional[Tensor]", "Any", "Dict[str, int]", "Tuple[int, int]", "__torch__.m.P", "__torch__.m.E", "Device", "open", "str", "Future[int]"]  # fmt: skip


class Program(NamedTuple):
    """A program: its number, its source, and whether it may use large tensors."""

    number: int
    source: str
    large: bool


@lru_cache(maxsize=1)
def operators() -> list[tuple[str, list[str], list[tuple[str, str]]]]:
    """Every operator of the reader: name, annotations of its positional arguments, and names and annotations of its keyword arguments."""
    registry.known()
    results = []
    for name, kinds in sorted(registration.registered.items()):
        for versions in kinds.values():
            for version in versions:
                parameters = list(inspect.signature(version.function).parameters.values())
                by_place = [str(p.annotation) for p in parameters if p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD}]
                by_name = [(p.name, str(p.annotation)) for p in parameters if p.kind in {p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD}]
                results.append((name, by_place[:9] or ["Any", "Any"], by_name))
    return results


class Writer:
    """Writes one program."""

    def __init__(self, seed: int, number: int) -> None:
        self.random = random.Random(f"{seed} {number}")
        self.lines: list[str] = []
        self.variables = ["self.w"]
        self.views = self.random.random() < 0.25  # views of views, and writes to them
        self.calls = self.random.random() < 0.7  # only calls of operators: an invalid statement ends the whole program

    # ------------------------------------------------------------------------------------------------ arguments

    def integer(self) -> str:
        return str(self.random.choice(WIDE if self.random.random() < 0.6 else GIANT))

    def integers(self) -> str:
        return "[" + ", ".join(self.integer() for _ in range(self.random.randrange(5))) + "]"

    def tensor(self) -> str:
        return self.random.choice(TENSORS + self.variables * 6)

    def value(self, depth: int = 0) -> str:
        r = self.random.random()
        if r < 0.34:
            return self.tensor()
        if r < 0.54:
            return self.integer()
        if r < 0.68:
            return self.integers()
        if r < 0.73:
            return self.random.choice(FLOATS)
        if r < 0.78:
            return self.random.choice(TEXTS)
        if r < 0.84:
            return self.random.choice(["True", "False", "None"])
        if r < 0.9 and depth < 3:
            inner = ", ".join(self.value(depth + 1) for _ in range(self.random.randrange(4)))
            return self.random.choice([f"[{inner}]", f"({inner},)" if inner else "()", f"{{1: {self.value(depth + 1)}}}"])
        if r < 0.97:
            return self.random.choice(
                ["torch.device('cpu')", "self", "__torch__.m.E.A", "__torch__.m.P(1, 2)", "l", "d", "1j", "__torch__.m.f(1, )"]
            )
        return self.expression(depth + 1)

    def typed(self, annotation: str) -> str:
        """An argument that is mostly valid for the operator."""
        r = self.random.random()
        if r < 0.08:
            return self.value()
        if "None" in annotation and r < 0.25:
            return "None"
        if "list[Tensor" in annotation or "Sequence[Tensor" in annotation:
            return "[" + ", ".join(self.tensor() for _ in range(self.random.randrange(1, 4))) + "]"
        if "Tensor" in annotation and not ("Scalar" in annotation and r < 0.5):
            return self.tensor()
        if "list" in annotation or "Sizes" in annotation or "Sequence" in annotation:
            return self.integers() if r < 0.85 else self.integer()
        if "bool" in annotation and "int" not in annotation:
            return self.random.choice(["True", "False"])
        if "str" in annotation:
            return self.random.choice(TEXTS)
        if "float" in annotation or "Scalar" in annotation:
            return self.random.choice(FLOATS) if r < 0.6 else self.integer()
        if "int" in annotation:
            return self.integer()
        return self.value() if r < 0.6 else self.tensor() if r < 0.75 else self.integers() if r < 0.9 else self.integer()

    def call(self) -> str:
        name, by_place, by_name = self.random.choice(operators())
        space, _, rest = name.partition("::")
        given = [self.typed(entry) for entry in by_place[: max(1, len(by_place) - self.random.choice([0, 0, 0, 1, 2]))]]
        names = [(word, entry) for place, (word, entry) in enumerate(by_name) if place >= len(given)]
        if names and self.random.random() < 0.3:
            word, item = self.random.choice(names)
            given.append(f"{word}={self.typed(item)}")
        head = f"torch.{rest}" if space == "aten" else f"ops.{space}.{rest}"
        return f"{head}({', '.join(given)})"

    def small(self) -> str:
        return str(self.random.choice([0, 1, 2, 3, 4, -1, -2]) if self.random.random() < 0.9 else self.random.choice(GIANT))

    def smalls(self, count: int) -> str:
        return "[" + ", ".join(self.small() for _ in range(count)) + "]"

    def view(self) -> str:
        """A view of an existing tensor, mostly a valid one: later writes to it reach far."""
        t, n = self.random.choice(self.variables + TENSORS[:6]), self.random.randrange(1, 4)
        return self.random.choice([
            f"torch.as_strided({t}, {self.smalls(n)}, {self.smalls(n)}, {self.small()})", f"torch.as_strided({t}, {self.smalls(n)}, {self.smalls(n)})",
            f"torch.expand({t}, {self.smalls(n)})", f"torch.slice({t}, {self.small()}, {self.small()}, {self.small()}, {self.small()})",
            f"torch.select({t}, {self.small()}, {self.small()})", f"torch.narrow({t}, {self.small()}, {self.small()}, {self.small()})",
            f"torch.unfold({t}, {self.small()}, {self.small()}, {self.small()})", f"torch.diagonal({t}, {self.small()}, {self.small()}, {self.small()})",
            f"torch.transpose({t}, {self.small()}, {self.small()})", f"torch.view({t}, {self.smalls(n)})", f"torch.view({t}, {self.random.choice([0, 1, 4, 5, 7, 9, 11, 15])})",
            f"torch.flip({t}, [0])", f"torch.reshape({t}, {self.smalls(n)})", f"torch.unsqueeze({t}, {self.small()})", f"torch.squeeze({t})", f"torch.detach({t})",
            f"torch.resize_({t}, {self.smalls(n)})", f"torch.set_({t}, {self.random.choice(self.variables)})", f"torch.set_({t}, {self.random.choice(self.variables)}, {self.small()}, {self.smalls(n)}, {self.smalls(n)})",
            f"torch.split({t}, {self.small()})[0]", f"torch.unbind({t})[0]", f"torch.chunk({t}, {self.small()})[0]", f"torch.view_as_real({t})", f"torch.view_as_complex({t})",
            f"torch.empty_strided({self.smalls(n)}, {self.smalls(n)})", f"torch._reshape_alias({t}, {self.smalls(n)}, {self.smalls(n)})", f"torch.as_strided_({t}, {self.smalls(n)}, {self.smalls(n)}, {self.small()})",
            f"torch.movedim({t}, {self.small()}, {self.small()})", f"torch.t({t})", f"torch.swapaxes_({t}, 0, 1)", f"torch.contiguous({t})", f"ops.prim.data({t})",
        ])  # fmt: skip

    def write(self) -> str:
        t, n = self.random.choice(self.variables), self.random.randrange(1, 3)
        return self.random.choice([
            f"torch.fill_({t}, 7)", f"torch.zero_({t})", f"torch.add_({t}, 1)", f"torch.copy_({t}, {self.random.choice(self.variables)})", f"torch.index_fill_({t}, 0, torch.tensor({self.smalls(n)}), 3)",
            f"torch.scatter_({t}, 0, torch.tensor({self.smalls(n)}), 5)", f"torch.put_({t}, torch.tensor({self.smalls(1)}), torch.ones([1]))", f"torch.index_put_({t}, [torch.tensor({self.smalls(n)})], torch.ones([]))",
            f"torch.masked_fill_({t}, torch.ge({t}, 0), 2)", f"torch.index_copy_({t}, 0, torch.tensor({self.smalls(1)}), {t})", f"torch.fill_diagonal_({t}, 9)", f"torch.tril_({t})",
        ])  # fmt: skip

    # ------------------------------------------------------------------------------------------------ language

    def expression(self, depth: int = 0) -> str:
        if depth > 3:
            return self.random.choice(NAMES)
        inner = self.expression(depth + 1) if self.random.random() < 0.6 else self.value(depth + 1)
        part, name = self.random.choice(PARTS), self.random.choice(NAMES)
        return self.random.choice([
            f"({inner}).{part}", f"{name}.{part}", f"{name}({inner})", f"({inner}).{part}({inner})", f"torch.{part}({inner})",
            f"ops.prim.{part}({inner})", f"ops.{name}.{part}({inner})", f"getattr({inner}, '{part}')", f"annotate({self.random.choice(TYPES)}, {inner})",
            f"unchecked_cast({self.random.choice(TYPES)}, {inner})", f"isinstance({inner}, {self.random.choice(TYPES)})", f"fork({name}, {inner})",
            f"__torch__.m.{part}", f"__torch__.m.{part}({inner})", f"__torch__.m.Model.{part}", f"__torch__.m.{part}.__new__(__torch__.m.{part})",
            f"CONSTANTS.{part}", f"[{inner}][0]", f"({inner})[{inner}]", f"'{{0.{part}}}'.format({inner})", f"torch.format('{{}}{{}}', {inner}, {inner})",
            f"'%s' % {inner}", f"({inner} if {inner} else {inner})", f"not {inner}", f"-({inner})", f"{inner} + {inner}", f"{inner} is {inner}", f"{inner} in {inner}",
            f"str({inner})", f"int({inner})", f"hash({inner})", f"len({inner})", f"sorted({inner})", f"uninitialized({self.random.choice(TYPES)})", f"f'{{{name}}}'",
            f"(lambda: {inner})()", f"[{name} for {name} in {inner}]", f"({name} := {inner})", f"{name}(*{inner})", f"{name}(**{inner})", f"ops.prim.type({inner})",
            f"ops.prim.index({inner})", f"ops.prim.data({inner})", f"ops.prim.RaiseException({inner})", f"torch.wait({inner})", f"torch.str({inner})",
        ])  # fmt: skip

    def statement(self) -> None:
        if self.views:
            name = f"t{len(self.lines)}"
            if self.random.random() < 0.3:
                self.lines.append(f"_ = {self.write()}")
                return
            self.lines.append(f"{name} = {self.view()}")
            self.variables.append(name)
            return
        r, s = self.random.random(), self.random.random()
        value = self.call() if self.calls or r < 0.4 else self.expression() if r < 0.8 else self.value()
        name = f"t{len(self.lines)}"
        s = 0.8 * s if self.calls else s
        if s < 0.72:
            self.lines.append(f"{name} = {value}")
            self.variables.append(name)
        elif s < 0.8 and self.calls:
            target = self.random.choice(self.variables)
            write = self.random.choice(
                ["fill_", "add_", "copy_", "zero_", "mul_", "index_fill_", "put_", "set_", "resize_", "as_strided_", "scatter_"]
            )
            self.lines.append(
                f"_ = torch.{write}({target}, {', '.join(self.value() for _ in range(self.random.randrange(1, 4)))})"
            )
        elif s < 0.88:
            odd = [
                f"self.{self.random.choice(PARTS)} = {value}", f"x, y = {value}", f"def h():\n  return {value}\n{name} = fork(h)",
                f"def h():\n  return {value}\n{name} = h", f"for i in range({self.integer()}):\n  x = {value}", f"if {value}:\n  x = {value}",
                f"with {value} as z:\n  x = z", f"raise Exception({value})", f"assert {value}, {value}", f"while {value}:\n  x = {value}",
                f"del {name}", f"import {self.random.choice(['os', 'sys', 'm'])}", f"{self.random.choice(NAMES)} = {value}",
                f"__torch__ = {value}\n{name} = __torch__.m.f", f"torch = {value}\n{name} = torch.{self.random.choice(PARTS)}", f"h = __torch__.m.{self.random.choice(PARTS)}\n{name} = h({value})",
                f"h = __torch__.m.f\n{name} = h", f"{name} : {self.random.choice(TYPES)} = {value}", f"({value}).{self.random.choice(PARTS)} = {value}", f"l[0] = {value}",
                f"_ = torch._set_item(l, {self.integer()}, {value})", f"_ = torch._set_item(d, {value}, {value})", f"_ = torch.append(l, {value})", f"{name} = (self).forward()",
            ]  # fmt: skip
            self.lines += self.random.choice(odd).split("\n")
        else:
            self.lines.append(value)

    def source(self) -> str:
        for _ in range(self.random.randrange(1, 7)):
            self.statement()
        ends = [*self.variables, f"({', '.join(self.variables)},)"]
        last = self.random.choice(ends if self.calls else [*ends, "l", "d", self.expression()])
        body = [
            "x = 1",
            "y = 'a'",
            "l = annotate(List[Any], [])",
            "d = annotate(Dict[int, Any], {})",
            *self.lines,
            f"return {last}",
        ]
        head = ["class Model(Module):", "  __parameters__ = []", "  w : Tensor"]
        if not self.calls and self.random.random() < 0.4:
            head.append("  " + self.random.choice([
                f"c : int = {self.expression()}", f"__annotations__['{self.random.choice(PARTS)}'] = {self.random.choice(TYPES)}", f"__parameters__ = {self.value()}",
                f"__forward_hooks__ = ['{self.random.choice(PARTS)}']", f"{self.random.choice(PARTS)} = {self.value()}", f"__slots__ = {self.value()}",
                f"def __{self.random.choice(['del', 'getattribute', 'call', 'eq', 'hash', 'lt', 'init_subclass'])}__(self):\n    return {self.value()}",
                f"def g(self, a: int={self.value()}, b: {self.random.choice(TYPES)}={self.expression()}):\n    return a", f"@{self.expression()}\n  def g(self):\n    return 1",
            ]))  # fmt: skip
        method = ["  def forward(self) -> Any:", *("    " + line for line in body)]
        rest = [
            "class P(NamedTuple):", "  a : int", "  b : int", "class E(Enum):", "  A = 1", "  B = 'b'", "def f(a: int) -> int:", "  return torch.add(a, 1)",
        ]  # fmt: skip
        return "\n".join([*head, *method, *rest]) + "\n"


def generated(seed: int, number: int) -> Program:
    """The program for a seed and a number, always the same."""
    writer = Writer(seed, number)
    return Program(number, writer.source(), number % 4 == 0)
