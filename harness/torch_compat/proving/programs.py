"""Programs that call one operator in one form, as archives that releases load.

A *form* is the set of arguments in a call and their TorchScript types: ``torch.full(size, 3, dtype=6)`` and ``torch.full(size, 3.)`` are
two forms. Each form has its own archive: a release without such a call refuses only that archive, and then no program of that release can
contain the call.

The layout is that of 1.4 and newer: ``data.pkl`` with a stateless module, source in ``code/``, no debug records.
"""

from __future__ import annotations

import io
import zipfile
from itertools import product
from typing import TYPE_CHECKING, Final, NamedTuple

from torch_compat.errors import UsageError

if TYPE_CHECKING:
    from torch_compat.operators.call_signature import SignatureParameter

__all__ = ["MODULE", "Form", "archive", "forms"]

NAME: Final = "proof"
MODULE: Final = f"__torch__.{NAME}"
"""The modules that contain the functions of a program."""
DAY: Final = (1980, 1, 1, 0, 0, 0)
GIVEN, NOTHING, STRANGE = "given", "none", "odd"
SCALARS: Final = ("int", "float")
TYPES: Final = {
    "Tensor": "Tensor", "int[]": "List[int]", "SymInt[]": "List[int]", "int": "int", "SymInt": "int", "float": "float", "bool": "bool",
    "str": "str", "ScalarType": "int",
}  # fmt: skip
"""Maps the type of an argument to that of the program's parameter."""
WRITTEN: Final = {"Layout": "0", "Device": 'torch.device("cpu")', "bool": "False", "Dimname[]": '["N"]', "str[]": '["N"]'}
"""Types whose values a program contains as literals, because they cannot be passed in."""
ODD: Final = {"Layout": "1", "Device": 'torch.device("cuda")', "bool": "True"}
"""Values of these types that a CPU release refuses, both before and after a change."""
OPTIONS: Final = frozenset({"layout", "device", "pin_memory", "names"})


class Form(NamedTuple):
    """One way to call an operator."""

    operator: str
    """``aten::div``."""
    parameters: tuple[tuple[str, str, str], ...]
    """``(argument, TorchScript type of the parameter, type in the schema)``, in the order of the inputs."""
    call: str
    """The expression: ``torch.div(a_self, a_other)``."""

    @property
    def signed(self) -> str:
        """The expression with the types of its parameters, unique for each form."""
        kinds = ", ".join(kind for _, kind, _ in self.parameters)
        return f"{self.call} of {kinds}" if kinds else self.call

    @property
    def source(self) -> str:
        """The class of the program."""
        given = ",\n    ".join(f"a_{name}: {kind}" for name, kind, _ in self.parameters)
        head = "class Model(Module):\n  __parameters__ = []\n  training : bool\n"
        return f"{head}  def forward(self: __torch__.{NAME}.Model,\n    {given}) -> Tensor:\n    return {self.call}\n"


def forms(operator: str, arguments: tuple[SignatureParameter, ...], *, complex_numbers: bool = False) -> list[Form]:
    """Return the forms of an overload's calls.

    Numbers are ints, floats, and complex numbers if programs have them. Arguments with defaults are omitted, given one at a time, and all
    given; all optional ones are given as None, as in saved programs; and each option that a CPU release refuses is given.

    Parameters:
        operator: qualified name without overload.
        arguments: those of its schema.
    """
    required = [
        argument
        for argument in arguments
        if argument.default is None and not (argument.optional and argument.kwarg_only and argument.name in OPTIONS)
    ]
    rest = [argument for argument in arguments if argument not in required]
    choices: list[dict[str, str]] = [{}]
    if rest:
        choices += [{argument.name: GIVEN} for argument in rest if argument.name not in OPTIONS]
        choices += [
            dict.fromkeys((argument.name for argument in rest), GIVEN),
            {argument.name: NOTHING if argument.optional else GIVEN for argument in rest},
        ]
        odd = [argument for argument in rest if argument.name in OPTIONS and argument.type.removesuffix("?") in ODD]
        whole = {argument.name: NOTHING if argument.optional else GIVEN for argument in rest}
        plain = {argument.name: GIVEN for argument in rest if argument.type.removesuffix("?") in {"int", "float"}}
        choices += [{**base, argument.name: STRANGE} for argument in odd for base in (whole, plain)]
    kinds = (*SCALARS, "complex") if complex_numbers else SCALARS
    results: dict[Form, None] = {}
    for choice in choices:
        numbers = [
            argument
            for argument in arguments
            if argument.type.removesuffix("?") in {"Scalar", "number"}
            and (argument in required or choice.get(argument.name) == GIVEN)
        ]
        for given in product(kinds, repeat=len(numbers)):
            results[
                _form(operator, arguments, required, choice, dict(zip((number.name for number in numbers), given, strict=True)))
            ] = None
    return list(results)


def _form(
    operator: str,
    arguments: tuple[SignatureParameter, ...],
    required: list[SignatureParameter],
    choice: dict[str, str],
    numbers: dict[str, str],
) -> Form:
    parameters: list[tuple[str, str, str]] = []
    texts: list[str] = []
    skipped = False
    for argument in arguments:
        if argument not in required and argument.name not in choice:
            skipped = True
            continue
        bare = argument.type.removesuffix("?")
        if choice.get(argument.name) == NOTHING:
            text = "None"
        elif choice.get(argument.name) == STRANGE:
            text = ODD[bare]
        elif argument.name in OPTIONS and bare in WRITTEN:
            text = WRITTEN[bare]
        else:
            kind = numbers.get(argument.name) or TYPES.get(bare)
            if kind is None:
                raise UsageError(
                    f"cannot generate a program for the argument {argument.name} of type {argument.type}", code="no-program"
                )
            # an optional dtype is passed as a number, and a required optional argument as both a value and None
            parameters.append(
                (argument.name, f"Optional[{kind}]" if argument.optional and argument in required else kind, argument.type)
            )
            text = f"a_{argument.name}"
        texts.append(f"{argument.name}={text}" if argument.kwarg_only or skipped else text)
    return Form(operator, tuple(parameters), f"torch.{operator.rpartition('::')[2]}({', '.join(texts)})")


def archive(form: Form, version: int, function: str = "") -> bytes:
    """Return the archive of a form's program; the bytes are deterministic.

    Parameters:
        version: its file format version.
        function: the source of a function that the program calls.
    """
    records = {
        "data.pkl": b"\x80\x02c__torch__." + NAME.encode() + b"\nModel\n)\x81}(X\x08\x00\x00\x00training\x89ub.",
        f"code/__torch__/{NAME}.py": (form.source + (f"{function}\n" if function else "")).encode(),
        "constants.pkl": b"\x80\x02).",
        "version": f"{version}\n".encode(),
    }
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as result:
        for record, data in records.items():
            result.writestr(zipfile.ZipInfo(f"{NAME}/{record}", DAY), data)
    return stream.getvalue()
