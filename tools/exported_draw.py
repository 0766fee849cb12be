"""``python tools/exported_draw.py FOLDER [--count N] [--seed S]``: randomly generated programs for ``torch.export``, as recipes in FOLDER.

Each is a graph of 4 to 12 operators over floats, integers and booleans, generated from a seed: one program in three has a dynamic batch
dimension, one in four mutates a buffer, half return several values. ``python tools/exported.py FOLDER2 --programs FOLDER`` lets real
releases export and call them, and compares the reference reader with their results.
"""

from __future__ import annotations

import argparse
import random
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from torch_compat.writes import put

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["program"]

FLOAT: Final = "float32"
INT: Final = "int64"
BOOL: Final = "bool"
BATCH: Final = 4  # at export time

Dimension = int | str
"""A size: a number, or a multiple of the batch size, such as ``2b``."""


class Variable(NamedTuple):
    """A tensor of a program."""

    name: str
    dtype: str
    shape: tuple[Dimension, ...]


class Step(NamedTuple):
    """An operator call: its expression and its result."""

    text: str
    dtype: str
    shape: tuple[Dimension, ...]


UNARY_FLOAT: Final = (
    "torch.relu({x})", "torch.sigmoid({x})", "torch.tanh({x})", "torch.exp(torch.clamp({x}, -20.0, 5.0))", "torch.abs({x})", "-{x}",
    "torch.sqrt(torch.abs({x}))", "torch.floor({x})", "torch.ceil({x})", "torch.sign({x})", "torch.nn.functional.gelu({x})",
    'torch.nn.functional.gelu({x}, approximate="tanh")', "torch.nn.functional.silu({x})", "torch.nn.functional.softplus({x})",
    "torch.erf({x})", "torch.rsqrt(torch.abs({x}) + 1)", "torch.log1p(torch.abs({x}))", "torch.clamp({x}, -1.0, 1.5)",
    "torch.clamp({x}, min=0.25)", "torch.nn.functional.leaky_relu({x}, 0.1)", "torch.nn.functional.elu({x})", "torch.round({x})",
    "torch.nn.functional.hardtanh({x})", "torch.sin({x})", "torch.cos({x})", "torch.frac({x})", "torch.trunc({x})",
    "torch.reciprocal(torch.abs({x}) + 0.5)", "torch.square({x})", "torch.nn.functional.hardswish({x})", "torch.nan_to_num({x})",
    "torch.nn.functional.logsigmoid({x})", "torch.nn.functional.mish({x})", "torch.nn.functional.hardsigmoid({x})", "torch.atan({x})",
    "torch.where({x} > 0, {x}, {x} * 0.5)", "{x} * 2.5", "1.5 - {x}", "{x} / 3", "{x} + 1", "{x} ** 2", "torch.pow({x}, 3)",
    "torch.remainder({x}, 2.0)", "torch.fmod({x}, 1.5)", "torch.nn.functional.dropout({x}, 0.5, False)", "{x}.clone()",
    "torch.zeros_like({x}) + {x}", "torch.full_like({x}, 0.5) * {x}", "torch.nn.functional.relu6({x})", "torch.expm1(torch.clamp({x}, -5.0, 5.0))",
)  # fmt: skip
UNARY_INT: Final = (
    "torch.abs({x})", "-{x}", "torch.bitwise_not({x})", "torch.sign({x})", "torch.clamp({x}, -2, 3)", "{x} * 3", "{x} + 2", "7 - {x}",
    "{x} // 2", "{x} % 3", "torch.bitwise_and({x}, 6)", "torch.bitwise_xor({x}, 5)", "{x} ** 2", "torch.remainder({x}, 4)",
)  # fmt: skip
TO_BOOL: Final = ("{x} > 0", "{x} <= 1", "{x} == 2", "{x} != 0", "torch.isnan({f})", "torch.isfinite({f})")
BINARY_FLOAT: Final = (
    "{x} + {y}", "{x} - {y}", "{x} * {y}", "{x} / (torch.abs({y}) + 0.5)", "torch.add({x}, {y}, alpha=2)", "torch.maximum({x}, {y})",
    "torch.minimum({x}, {y})", "torch.atan2({x}, {y})", "torch.fmod({x}, torch.abs({y}) + 0.5)", "torch.lerp({x}, {y}, 0.25)",
    "torch.addcmul({x}, {x}, {y}, value=0.5)", "torch.hypot({x}, {y})", "torch.where({x} > {y}, {x}, {y} - 1)", "torch.rsub({x}, {y})",
    'torch.div({x}, torch.abs({y}) + 1, rounding_mode="floor")', "torch.pow(torch.abs({x}) + 0.5, torch.clamp({y}, -2.0, 2.0))",
)  # fmt: skip
BINARY_INT: Final = (
    "{x} + {y}", "{x} - {y}", "{x} * {y}", "torch.maximum({x}, {y})", "torch.bitwise_or({x}, {y})", "torch.bitwise_and({x}, {y})",
    'torch.div({x}, torch.abs({y}) + 1, rounding_mode="floor")', 'torch.div({x}, torch.abs({y}) + 1, rounding_mode="trunc")',
    "torch.remainder({x}, torch.abs({y}) + 1)",
)  # fmt: skip
BINARY_BOOL: Final = ("{x} & {y}", "{x} | {y}", "{x} ^ {y}", "torch.logical_and({x}, {y})", "torch.logical_or({x}, {y})")
OVER: Final = (
    "torch.sum({x}, {d})", "torch.mean({x}, {d})", "torch.amax({x}, {d})", "torch.amin({x}, {d})", "torch.logsumexp({x}, {d})",
    "torch.prod({x}, {d})", "torch.max({x}, {d})[0]", "torch.min({x}, {d})[0]", "torch.linalg.vector_norm({x}, 2, {d})",
)  # fmt: skip
ALONG: Final = (
    "torch.softmax({x}, {d})", "torch.log_softmax({x}, {d})", "torch.cumsum({x}, {d})", "torch.flip({x}, [{d}])", "torch.roll({x}, 1, {d})",
    "torch.sort({x}, dim={d}, stable=True)[0]", "torch.cumprod(torch.clamp({x}, -1.5, 1.5), {d})", "torch.cummax({x}, {d})[0]",
    "torch.nn.functional.normalize({x}, dim={d})",
)  # fmt: skip


class Drawing:
    """One program under construction.

    Parameters:
        rng: the random number generator.
        dynamic: whether the first dimension of its inputs is a dynamic batch dimension.
    """

    def __init__(self, rng: random.Random, *, dynamic: bool) -> None:
        self.rng = rng
        batch: Dimension = "1b" if dynamic else BATCH
        self.inputs = [Variable("x", FLOAT, (batch, 3, 4)), Variable("y", FLOAT, (3, 4)), Variable("i", INT, (batch, 3))]
        self.variables = list(self.inputs)
        self.lines: list[str] = []
        self.parts: list[str] = []

    def any_of(self, dtype: str, least: int = 0, most: int = 9) -> Variable | None:
        """A variable with the given dtype and number of dimensions, preferably a recent one."""
        results = [variable for variable in self.variables if variable.dtype == dtype and least <= len(variable.shape) <= most]
        return results[-1 - min(int(self.rng.expovariate(0.7)), len(results) - 1)] if results else None

    def pair(self, dtype: str) -> tuple[Variable, Variable, tuple[Dimension, ...]] | None:
        """Two variables with broadcastable shapes, and the broadcast shape."""
        results = [variable for variable in self.variables if variable.dtype == dtype]
        self.rng.shuffle(results)
        for first in results:
            for second in results:
                shape = together(first.shape, second.shape)
                if shape is not None and (first is not second or self.rng.random() < 0.3):
                    return first, second, shape
        return None

    def part(self, text: str) -> str:
        """A submodule or a tensor of the module; returns its name."""
        name = f"part{len(self.parts)}"
        self.parts.append(f"self.{name} = {text}")
        return f"self.{name}"

    def step(self) -> Step | None:
        """One operator, or None if no operator fits the random choice."""
        kinds: list[tuple[int, Callable[[], Step | None]]] = [
            (6, self.unary), (4, self.binary), (2, self.over), (3, self.along), (2, self.moved), (2, self.cut), (2, self.joined),
            (2, self.layer), (1, self.counted), (1, self.chosen), (1, self.truth), (1, self.converted), (1, self.shaped),
        ]  # fmt: skip
        return self.rng.choices([make for _, make in kinds], [weight for weight, _ in kinds])[0]()

    def unary(self) -> Step | None:
        dtype = self.rng.choice([FLOAT, FLOAT, FLOAT, INT])
        item = self.any_of(dtype)
        if item is None:
            return None
        text = self.rng.choice(UNARY_FLOAT if dtype == FLOAT else UNARY_INT)
        return Step(text.format(x=item.name), dtype, item.shape)

    def binary(self) -> Step | None:
        dtype = self.rng.choice([FLOAT, FLOAT, FLOAT, INT, BOOL])
        pair = self.pair(dtype)
        if pair is None:
            return None
        text = self.rng.choice({FLOAT: BINARY_FLOAT, INT: BINARY_INT, BOOL: BINARY_BOOL}[dtype])
        return Step(text.format(x=pair[0].name, y=pair[1].name), dtype, pair[2])

    def over(self) -> Step | None:
        item = self.any_of(FLOAT, 1)
        if item is None:
            return None
        at = self.rng.randrange(len(item.shape))
        keep = self.rng.random() < 0.4
        text = self.rng.choice(OVER).format(x=item.name, d=at - len(item.shape) if self.rng.random() < 0.5 else at)
        if keep:
            text = text[:-4] + ", keepdim=True)[0]" if text.endswith("[0]") else text[:-1] + ", keepdim=True)"
        return Step(text, FLOAT, (*item.shape[:at], *((1,) if keep else ()), *item.shape[at + 1 :]))

    def along(self) -> Step | None:
        item = self.any_of(FLOAT, 1)
        if item is None:
            return None
        return Step(self.rng.choice(ALONG).format(x=item.name, d=self.rng.randrange(len(item.shape))), FLOAT, item.shape)

    def moved(self) -> Step | None:
        item = self.any_of(self.rng.choice([FLOAT, INT]), 2)
        if item is None:
            return None
        order = list(range(len(item.shape)))
        self.rng.shuffle(order)
        text = f"{item.name}.permute({', '.join(map(str, order))})"
        if self.rng.random() < 0.5:
            text += ".contiguous()"
        return Step(text, item.dtype, tuple(item.shape[at] for at in order))

    def cut(self) -> Step | None:
        item = self.any_of(self.rng.choice([FLOAT, FLOAT, INT, BOOL]), 1)
        places = [at for at, size in enumerate(item.shape) if isinstance(size, int) and size > 1] if item is not None else []
        if item is None or not places:
            return None
        at = self.rng.choice(places)
        size = item.shape[at]
        assert isinstance(size, int)
        rest = (item.shape[:at], item.shape[at + 1 :])
        what = self.rng.choice(["select", "narrow", "slice", "step", "index_select", "chunk", "last"])
        if what == "select":
            return Step(f"{item.name}.select({at}, {self.rng.randrange(-size, size)})", item.dtype, (*rest[0], *rest[1]))
        if what == "narrow":
            return Step(f"{item.name}.narrow({at}, 1, {size - 1})", item.dtype, (*rest[0], size - 1, *rest[1]))
        if what == "chunk":
            return Step(f"torch.chunk({item.name}, 2, {at})[0]", item.dtype, (*rest[0], -(-size // 2), *rest[1]))
        if what == "index_select":
            index = [self.rng.randrange(size) for _ in range(3)]
            name = self.part(f"torch.nn.Parameter(torch.tensor({index}), requires_grad=False)")
            return Step(f"torch.index_select({item.name}, {at}, {name})", item.dtype, (*rest[0], 3, *rest[1]))
        before = ":, " * at
        if what == "slice":
            return Step(f"{item.name}[{before}1:]", item.dtype, (*rest[0], size - 1, *rest[1]))
        if what == "step":
            return Step(f"{item.name}[{before}::2]", item.dtype, (*rest[0], -(-size // 2), *rest[1]))
        return Step(f"{item.name}[{before}-1]", item.dtype, (*rest[0], *rest[1]))

    def joined(self) -> Step | None:
        item = self.any_of(self.rng.choice([FLOAT, INT]), 1)
        if item is None:
            return None
        same = [other for other in self.variables if other.dtype == item.dtype and other.shape == item.shape]
        other = self.rng.choice(same)
        at = self.rng.randrange(len(item.shape))
        if self.rng.random() < 0.3:
            shape = (*item.shape[:at], 2, *item.shape[at:])
            return Step(f"torch.stack([{item.name}, {other.name}], {at})", item.dtype, shape)
        return Step(
            f"torch.cat([{item.name}, {other.name}], {at})",
            item.dtype,
            (*item.shape[:at], twice(item.shape[at]), *item.shape[at + 1 :]),
        )

    def layer(self) -> Step | None:
        item = self.any_of(FLOAT, 2)
        last = item.shape[-1] if item is not None else None
        if item is None or not isinstance(last, int) or last > 16:
            return None
        what = self.rng.choice(["linear", "norm", "matmul", "conv", "attention", "linear without bias"])
        if what.startswith("linear"):
            name = self.part(f"torch.nn.Linear({last}, 5{', bias=False' if 'without' in what else ''})")
            return Step(f"{name}({item.name})", FLOAT, (*item.shape[:-1], 5))
        if what == "norm":
            return Step(f"{self.part(f'torch.nn.LayerNorm({last})')}({item.name})", FLOAT, item.shape)
        if what == "matmul":
            name = self.part(f"torch.nn.Parameter(torch.zeros({last}, 3))")
            return Step(f"torch.matmul({item.name}, {name})", FLOAT, (*item.shape[:-1], 3))
        channels = item.shape[-2]
        if len(item.shape) != 3:
            return None
        if what == "conv" and isinstance(channels, int) and channels <= 16:
            name = self.part(f"torch.nn.Conv1d({channels}, 2, 3, padding=1)")
            return Step(f"{name}({item.name})", FLOAT, (item.shape[0], 2, last))
        return Step(f"torch.bmm({item.name}, {item.name}.transpose(1, 2))", FLOAT, (*item.shape[:-1], item.shape[-2]))

    def counted(self) -> Step | None:
        item = self.any_of(self.rng.choice([FLOAT, INT]), 1)
        if item is None:
            return None
        at = self.rng.randrange(len(item.shape))
        text = self.rng.choice(
            ["torch.argmax({x}, {d})", "torch.count_nonzero({x}, {d})", "torch.argsort({x}, dim={d}, stable=True)"]
        )
        rest = item.shape if "argsort" in text else (*item.shape[:at], *item.shape[at + 1 :])
        return Step(text.format(x=item.name, d=at), INT, rest)

    def chosen(self) -> Step | None:
        where, item = self.any_of(BOOL), self.any_of(FLOAT)
        shape = together(where.shape, item.shape) if where is not None and item is not None else None
        if where is None or item is None or shape is None:
            return None
        if shape == item.shape and self.rng.random() < 0.5:
            return Step(f"{item.name}.masked_fill({where.name}, {self.rng.choice([0.0, -1.5, 3.0])})", FLOAT, shape)
        return Step(f"torch.where({where.name}, {item.name}, {item.name} * -2)", FLOAT, shape)

    def truth(self) -> Step | None:
        item = self.any_of(self.rng.choice([FLOAT, INT]))
        if item is None:
            return None
        text = self.rng.choice(TO_BOOL if item.dtype == FLOAT else TO_BOOL[:4])
        return Step(f"({text.format(x=item.name, f=item.name)})", BOOL, item.shape)

    def converted(self) -> Step | None:
        item = self.any_of(self.rng.choice([INT, BOOL]))
        if item is None:
            return None
        if item.dtype == BOOL and self.rng.random() < 0.5:
            return Step(f"{item.name}.to(torch.int64)", INT, item.shape)
        return Step(f"{item.name}.to(torch.float32)", FLOAT, item.shape)

    def shaped(self) -> Step | None:
        item = self.any_of(self.rng.choice([FLOAT, INT]), 1)
        if item is None:
            return None
        what = self.rng.choice(["unsqueeze", "flatten", "repeat", "pad", "expand"])
        at = self.rng.randrange(len(item.shape) + 1)
        if what == "unsqueeze":
            return Step(f"{item.name}.unsqueeze({at})", item.dtype, (*item.shape[:at], 1, *item.shape[at:]))
        if what == "expand":
            return Step(
                f"{item.name}.unsqueeze(0).expand(2, {', '.join(['-1'] * len(item.shape))})", item.dtype, (2, *item.shape)
            )
        last = item.shape[-1]
        if what == "pad" and isinstance(last, int):
            return Step(f"torch.nn.functional.pad({item.name}, [1, 2])", item.dtype, (*item.shape[:-1], last + 3))
        if what == "repeat" and isinstance(last, int):
            return Step(
                f"{item.name}.repeat({', '.join(['1'] * (len(item.shape) - 1) + ['2'])})",
                item.dtype,
                (*item.shape[:-1], 2 * last),
            )
        if len(item.shape) > 1 and isinstance(last, int) and isinstance(item.shape[-2], int):
            return Step(f"{item.name}.flatten({len(item.shape) - 2})", item.dtype, (*item.shape[:-2], item.shape[-2] * last))
        return None

    def draw(self, count: int) -> None:
        """Add the given number of operators."""
        while len(self.lines) < count:
            step = self.step()
            if step is None or len(step.shape) > 5 or size_of(step.shape) > 4000:
                continue
            name = f"v{len(self.lines)}"
            self.lines.append(f"{name} = {step.text}")
            self.variables.append(Variable(name, step.dtype, step.shape))


def twice(size: Dimension) -> Dimension:
    """Twice a size."""
    return 2 * size if isinstance(size, int) else f"{2 * int(size[:-1])}b"


def size_of(shape: tuple[Dimension, ...]) -> int:
    """The number of elements, with batches of :data:`BATCH`."""
    total = 1
    for size in shape:
        total *= size if isinstance(size, int) else int(size[:-1]) * BATCH
    return total


def together(first: tuple[Dimension, ...], second: tuple[Dimension, ...]) -> tuple[Dimension, ...] | None:
    """The broadcast shape of two shapes; None if they are not broadcastable."""
    width = max(len(first), len(second))
    left, right = ((1,) * (width - len(side)) + side for side in (first, second))
    if any(item != other and 1 not in (item, other) for item, other in zip(left, right, strict=True)):
        return None
    return tuple(other if item == 1 else item for item, other in zip(left, right, strict=True))


VALUES: Final = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 0.1, -0.7, 1e-3, 7.25, -12.0)
HARD: Final = ('float("nan")', 'float("inf")', '-float("inf")', "1e30", "-1e-30")


def values(rng: random.Random, shape: tuple[int, ...], dtype: str, *, hard: bool) -> str:
    """A tensor as a Python expression."""
    count = 1
    for size in shape:
        count *= size
    if dtype == INT:
        body = ", ".join(str(rng.randrange(-6, 9)) for _ in range(count))
    else:
        body = ", ".join(rng.choice(HARD) if hard and rng.random() < 0.15 else repr(rng.choice(VALUES)) for _ in range(count))
    return f"torch.tensor([{body}], dtype=torch.{dtype}).view({', '.join(map(str, shape))})"


def program(seed: int, number: int) -> str:
    """The recipe with this number."""
    rng = random.Random(f"exported {seed} {number}")
    dynamic = number % 3 == 0
    drawing = Drawing(rng, dynamic=dynamic)
    drawing.draw(rng.randrange(4, 13))
    buffer = number % 4 == 1
    results = [variable.name for variable in drawing.variables if variable.name.startswith("v")]
    used = set(re.findall(r"\bv\d+\b", " ".join(line.partition(" = ")[2] for line in drawing.lines)))
    chosen = [name for name in results if name not in used]  # an exporter may remove unused values
    if buffer:
        drawing.parts.append('self.register_buffer("count", torch.zeros(3))')
        drawing.lines.append("self.count.add_(1.5)")
        drawing.lines.append(f"v{len(results)} = self.count * 2")
        chosen.append(f"v{len(results)}")
    sizes = (4, 2, 7) if dynamic else (4, 4, 4)
    calls = []
    for at, size in enumerate(sizes):
        tensors = [
            values(rng, tuple(item if isinstance(item, int) else size for item in given.shape), given.dtype, hard=at == 1)
            for given in drawing.inputs
        ]
        calls.append(f'        ("forward", ({", ".join(tensors)})),')
    example = ", ".join(
        values(rng, tuple(item if isinstance(item, int) else BATCH for item in given.shape), given.dtype, hard=False)
        for given in drawing.inputs
    )
    shapes = ', dynamic_shapes={"x": {0: batch}, "y": None, "i": {0: batch}}' if dynamic else ""
    lines = [
        f'"""Program {number} of seed {seed}, drawn by tools/exported_draw.py."""',
        "",
        "import torch",
        "",
        'FAMILY = "export"',
        "OPERATORS = []",
        'SINCE = "2.1.2"',
        "",
        "",
        "class Model(torch.nn.Module):",
        "    def __init__(self):",
        "        super(Model, self).__init__()",
        *(f"        {part}" for part in drawing.parts),
        "        with torch.no_grad():",
        "            for number, parameter in enumerate(self.parameters()):",
        "                if parameter.dtype == torch.float32:",
        "                    ramp = torch.arange(parameter.numel(), dtype=torch.float32) % 7 - 2.5",
        "                    parameter.copy_((ramp * (number + 1) / 8).view(parameter.shape))",
        "",
        "    def forward(self, x, y, i):",
        *(f"        {line}" for line in drawing.lines),
        f"        return {', '.join(chosen)}",
        "",
        "",
        "def build():",
        "    import torch.export",
        "",
        *(["    batch = torch.export.Dim('batch', min=2)"] if dynamic else []),
        f"    return torch.export.export(Model().eval(), ({example}){shapes})",
        "",
        "",
        "def calls():",
        "    return [",
        *calls,
        "    ]",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Write the recipes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=23)
    asked = parser.parse_args()
    for number in range(asked.count):
        put(asked.folder / f"drawn_{number:03}.py", program(asked.seed, number), encoding="utf-8")


if __name__ == "__main__":
    main()
